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
from dagsvm_lab.run.committed import complaints

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("[!.]*.ipynb"))
DEFAULTS = {"profile": '"quick"', "datasets": "None", "seed": "0", "n_jobs": "2", "out_dir": '"runs"'}


@pytest.fixture(scope="module")
def fastest() -> Path:
    """The notebook that takes least to execute: the tour."""
    if not NOTEBOOKS or NOTEBOOKS[0].stem != "00_tour":
        pytest.skip("the tour is not there")
    return NOTEBOOKS[0]


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
        texts = [o for c in compared for o in c.outputs if o.output_type == "stream" and re.search(r"\d", o.text)]
        assert len(texts) >= 3, "few numbers are compared"
        texts[-1].text = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), texts[-1].text, count=1)

    said = nbval(fastest, tmp_path, alter)
    assert "Cell outputs differ" in said and re.search(r"\b1 failed", said), said[-2000:]


def test_an_altered_constant_is_noticed(fastest, tmp_path):
    package = Path(dagsvm_lab.__file__).parent
    shutil.copytree(package, tmp_path / "dagsvm_lab", copy_function=os.symlink)
    verdicts = tmp_path / "dagsvm_lab" / "verdicts.py"
    text = verdicts.read_text()
    constants = "near: float = 0.05, far: float = 0.15"
    assert constants in text
    verdicts.unlink()
    verdicts.write_text(text.replace(constants, "near: float = 1e-5, far: float = 2e-5"))
    said = nbval(fastest, tmp_path, PYTHONPATH=str(tmp_path))
    assert "Cell outputs differ" in said and re.search(r"\b1 failed", said), said[-2000:]


@pytest.mark.parametrize("core, threads", [("Haswell", "1"), ("SkylakeX", "2")])
def test_another_processor_gives_the_same_outputs(fastest, tmp_path, core, threads):
    said = nbval(fastest, tmp_path, OPENBLAS_CORETYPE=core, OPENBLAS_NUM_THREADS=threads)
    assert re.search(r"^\d+ passed", said.splitlines()[-1]), said[-2000:]
