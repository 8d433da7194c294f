"""Type checkers accept the documents' programs and find what is wrong in wrong ones."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_recipes import DOCUMENTS, programs

from dagsvm_lab import __all__ as NAMES

pytestmark = pytest.mark.skipif(
    not importlib.util.find_spec("pyright"), reason="make lint installs pyright"
)

WRONG = """
from dagsvm_lab import DAGSVC, load
d = load("iris")
est = DAGSVC(C=1.0, gamma=0.5).fit(d.X, d.y)
est.predict_with_cost(d.X)[1].kernel_evaluations.mean()
DAGSVC(CC=3)
est.no_such_method()
"""


def found(folder) -> dict[str, list[dict]]:
    """The errors that pyright reports in each file of `folder`."""
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        str(folder),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    errors = {path.name: [] for path in folder.glob("*.py")}
    for report in json.loads(run.stdout)["generalDiagnostics"]:
        if report["severity"] == "error":
            errors[Path(report["file"]).name].append(report)
    return errors


def test_programs_are_sound_and_mistakes_are_found(root, tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    for document in DOCUMENTS:
        text = "\n".join(programs((root / document).read_text(encoding="utf-8")))
        (tmp_path / Path(document).with_suffix(".py").name).write_text(
            text, encoding="utf-8"
        )
    errors = found(tmp_path)
    where = [
        (report["range"]["start"]["line"] + 1, report["rule"])
        for report in errors.pop("wrong.py")
    ]
    assert where == [(6, "reportCallIssue"), (7, "reportAttributeAccessIssue")]
    # what is inferred of scikit-learn, which has no annotations, is not always right
    ours = [
        r
        for reports in errors.values()
        for r in reports
        if any(name in r["message"] for name in NAMES)
    ]
    assert len(errors) == len(DOCUMENTS) and not ours, ours
