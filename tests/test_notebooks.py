"""The committed notebooks: what they carry, and that nbval really compares it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

import dagsvm_lab
from dagsvm_lab.committed import complaints

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("[!.]*.ipynb"))
DEFAULTS = {"profile": '"quick"', "datasets": "None", "seed": "0", "n_jobs": "2", "out_dir": '"runs"'}


@pytest.fixture(scope="module")
def fastest() -> Path:
    """The notebook that takes least to execute."""
    for path in NOTEBOOKS:
        if path.name.startswith("02"):
            return path
    pytest.skip("notebook 02 is not there")


def nbval(notebook: Path, folder: Path, change=lambda nb: None, **environment: str) -> str:
    """What `pytest --nbval` says of a changed copy of a notebook, which writes its results to `folder` too."""
    nb = nbformat.read(notebook, 4)
    change(nb)
    for cell in nb.cells:
        cell.source = cell.source.replace(f"out_dir = {DEFAULTS['out_dir']}", f"out_dir = {str(folder)!r}")
    copy = folder / notebook.name
    nbformat.write(nb, copy)
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(folder), str(copy)]
    env = os.environ | environment
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_as_a_committed_one_should_be(path):
    nb = nbformat.read(path, 4)
    nbformat.validate(nb)
    assert complaints(nb) == []
    known = papermill.inspect_notebook(str(path))
    assert {name: known[name]["default"].replace("'", '"') for name in DEFAULTS} == DEFAULTS
    assert all(p["help"] for p in known.values()), "every default has its comment"
    assert nb.cells[0].cell_type == "markdown" and nb.cells[0].source.startswith("# ")


def test_an_altered_output_is_noticed(fastest, tmp_path):
    def alter(nb) -> None:
        compared = [c for c in nb.cells if c.cell_type == "code" and not c.metadata.get("tags")]
        texts = [o for c in compared for o in c.outputs if o.output_type == "stream"]
        texts += [o.data for c in compared for o in c.outputs if "text/plain" in o.get("data", {})]
        numbers = [(t, key) for t in texts for key in ("text", "text/plain") if re.search(r"\d\.\d", t.get(key, ""))]
        assert len(numbers) >= 3, "few numbers are compared"
        text, key = numbers[-1]
        text[key] = re.sub(r"(\d\.)(\d)", lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text[key], count=1)

    said = nbval(fastest, tmp_path, alter)
    assert "Cell outputs differ" in said and re.search(r"\b1 failed", said), said[-2000:]


def test_an_altered_constant_is_noticed(fastest, tmp_path):
    package = Path(dagsvm_lab.__file__).parent
    shutil.copytree(package, tmp_path / "dagsvm_lab", copy_function=os.symlink)
    scaling = tmp_path / "dagsvm_lab" / "datasets" / "scaling.py"
    text = scaling.read_text()
    assert "low: float = -1.0" in text
    scaling.unlink()
    scaling.write_text(text.replace("low: float = -1.0", "low: float = -0.5"))
    said = nbval(fastest, tmp_path, PYTHONPATH=str(tmp_path))
    assert "Cell outputs differ" in said and " failed" in said, said[-2000:]


@pytest.mark.parametrize("core, threads", [("Haswell", "1"), ("SkylakeX", "2")])
def test_another_processor_gives_the_same_outputs(fastest, tmp_path, core, threads):
    said = nbval(fastest, tmp_path, OPENBLAS_CORETYPE=core, OPENBLAS_NUM_THREADS=threads)
    assert re.search(r"^\d+ passed", said.splitlines()[-1]), said[-2000:]
