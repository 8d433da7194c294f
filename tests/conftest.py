"""What several tests need: the checkout, the originals where they are at hand, small notebooks."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
os.environ["DAGSVM_LAB_QUIET"] = "1"  # no progress lines in what notebooks print

# The same examples every time, so that a red run is a change's doing; `make fuzz` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def originals() -> Path:
    """The folder with the original data files and published tables; without it the test is skipped."""
    folder = Path(os.environ.get("DAGSVM_LAB_ORIGINALS", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the originals are not here (DAGSVM_LAB_ORIGINALS)")
    return folder


@pytest.fixture
def notebook(tmp_path):
    """notebook(name, *cells) writes <tmp_path>/notebooks/<name>.ipynb with a parameters cell, and returns its path."""
    import nbformat

    v4 = nbformat.v4
    parameters = 'profile = "quick"\ndatasets = None\nseed = 0\nn_jobs = 1\nrate = 0.5\nout_dir = "runs"'

    def write(name: str, *cells: str) -> Path:
        nb = v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}})
        nb.cells = [v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
        nb.cells += [v4.new_code_cell(cell) for cell in cells]
        path = tmp_path / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nb, path)
        return path

    return write
