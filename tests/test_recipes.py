"""Every program in the documents runs, in the order in which readers would run them."""

import contextlib
import io
import re

import matplotlib
import pytest

from dagsvm_lab import kernels

matplotlib.use("agg")
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "notebooks/site/recipes.md",
    "notebooks/site/svc.md",
)


def programs(text: str) -> list[str]:
    """The Python programs of a page, but for those that need a cluster."""
    return [
        p
        for p in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
        if "distributed.Client" not in p
    ]


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_programs_run(root, document, monkeypatch):
    page = root / document
    if not page.is_file():
        pytest.skip(f"{document} is not here")
    monkeypatch.setattr(kernels, "KERNELS", dict(kernels.KERNELS))
    names: dict = {"__name__": "recipe"}
    found = programs(page.read_text(encoding="utf-8"))
    assert found
    for program in found:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(program, document, "exec"), names)
        assert "nan" not in said.getvalue()
