"""nbval, as `make test` runs it over notebooks: it really compares what they hold."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from dagsvm_lab.run import execute, jobs

CELLS = (
    "from dagsvm_lab import DAGSVC, load\nd = load('iris', scaled=True)",
    "labels, cost = DAGSVC(C=10, gamma=0.5).fit(d.X, d.y).predict_with_cost(d.X)",
    "print(f'{(labels == d.y).mean():.1%}')\n"
    "print(f'{cost.kernel_evaluations.mean():.1f} kernel evaluations a row')",
)


def nbval(notebook: Path) -> subprocess.CompletedProcess:
    """What `pytest --nbval` makes of a notebook."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--nbval",
        "--nbval-current-env",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--rootdir", str(notebook.parent), str(notebook)]
    env = os.environ | {"PYTHONPATH": str(Path(jobs.__file__).parents[2])}
    return subprocess.run(
        command, env=env, cwd=notebook.parent, capture_output=True, text=True
    )


@pytest.mark.slow
def test_equal_outputs_pass_and_an_altered_digit_is_noticed(notebook, tmp_path):
    outcome = execute.run_job(
        jobs.Job(notebook("01_good_one", *CELLS), tmp_path / "out")
    )
    assert outcome.status == "finished"
    assert nbval(outcome.job.executed).returncode == 0
    nb = nbformat.read(outcome.job.executed, 4)
    shown = nb.cells[-1].outputs[0]
    digit = next(c for c in shown.text if c.isdigit())
    shown.text = shown.text.replace(digit, str((int(digit) + 1) % 10), 1)
    nbformat.write(nb, outcome.job.executed)
    altered = nbval(outcome.job.executed)
    assert altered.returncode == 1 and "Cell outputs differ" in altered.stdout
