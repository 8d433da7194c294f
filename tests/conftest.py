"""What several tests need: the checkout, the originals where they are at hand, small notebooks."""

import faulthandler
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


@pytest.fixture(autouse=os.environ.get("HYPOTHESIS_PROFILE") == "search")
def an_end():
    """While new examples are sought, a test that takes ten minutes is shown where it hangs, and ended."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


# What takes seconds: left out of `make test-fast`, never of `make test`.
SLOW = """
    test_letter_as_in_platts_table_1 test_usps_as_in_platts_table_1 test_letter_in_single_precision
    test_dcsvm_by_brute_force test_every_solution_proves_itself test_smo_batch_and_exact_agree
    test_radius_exact_beside_the_cheap_ones test_many_duals_in_several_chunks_are_the_same_whatever_n_jobs
    test_programs_run test_scaling_is_fitted_on_training_rows test_splits_and_trials_are_those_the_prose_states
    test_scaling_of_the_sets_of_the_first_paper test_building_again_gives_the_same_bytes
    test_a_damaged_original_is_refused_whatever_its_format test_a_batch_survives_its_failures_and_resumes
    test_ctrl_c_leaves_no_process_and_no_half_result test_nothing_outlives_a_batch_and_it_resumes
    test_a_limit_on_file_sizes_fails_jobs_and_not_the_batch test_every_job_has_an_outcome test_odd_places
    test_a_cluster_that_loses_a_worker_gives_the_same_results test_a_fit_spreads_its_machines_over_a_cluster
    test_equal_outputs_pass_and_an_altered_digit_is_noticed test_a_scheduler_that_is_not_there_gets_one_sentence
    test_refresh_writes_a_clean_notebook_and_leaves_one_that_failed
    test_plain_papermill_is_refused_what_the_notebook_does_not_know test_one_row_of_each_of_a_thousand_classes
    test_a_full_disk_fails_jobs_and_leaves_no_half_file
""".split()


def pytest_collection_modifyitems(items) -> None:
    """Mark what is slow."""
    for item in items:
        if getattr(item, "originalname", None) in SLOW or "site" in item.path.parts:
            item.add_marker("slow")


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
