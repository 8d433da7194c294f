"""What several tests need: the checkout, the originals if at hand, small notebooks.

Tests that take seconds are marked `slow`: left out of `make test-fast`, never of
`make test`.
"""

import faulthandler
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
PARAMETERS = """\
profile = "quick"
datasets = None
seed = 0
n_jobs = 1
rate = 0.5
out_dir = "runs"
"""
os.environ["DAGSVM_LAB_QUIET"] = "1"  # no progress lines in what notebooks print
# Tests run side by side, and would wait for each other's BLAS threads. NumPy is not
# loaded yet; `test_threads.py` fits in a process without this variable.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time, so that a red run is a change's doing; `make fuzz` looks
# for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=os.environ.get("HYPOTHESIS_PROFILE") == "search")
def an_end():
    """While new examples are sought, end a test of ten minutes; say where it hangs."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(items) -> None:
    """Skip what is marked qp, and nothing else, where cvxopt is not installed."""
    if find_spec("cvxopt"):
        return
    for item in items:
        if item.get_closest_marker("qp"):
            item.add_marker(pytest.mark.skip(reason="cvxopt is not installed"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def originals() -> Path:
    """The folder with the original data files and published tables, or a skip."""
    folder = Path(os.environ.get("DAGSVM_LAB_ORIGINALS", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the originals are not here (DAGSVM_LAB_ORIGINALS)")
    return folder


@pytest.fixture
def notebook(tmp_path):
    """notebook(name, *cells) writes <tmp_path>/notebooks/<name>.ipynb; its path.

    A parameters cell comes first.
    """
    import nbformat

    v4 = nbformat.v4
    kernel = {"name": "python3", "display_name": "", "language": "python"}

    def write(name: str, *cells: str) -> Path:
        nb = v4.new_notebook(metadata={"kernelspec": kernel})
        tags = {"tags": ["parameters"]}
        nb.cells = [v4.new_code_cell(PARAMETERS, metadata=tags)]
        nb.cells += [v4.new_code_cell(cell) for cell in cells]
        path = tmp_path / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nb, path)
        return path

    return write
