"""The notebooks as a reader runs them: another seed, two sets. No output names a set
that is not in the run, unless it says that it is recorded."""

import re

import nbformat
import pytest

from dagsvm_lab.files import project_root
from dagsvm_lab.run import execute, jobs

ROOT = project_root()
SETS = {  # a notebook's own sets, of which the first two run
    "01_platt2000": ("letter", "usps", "covertype"),
    "02_yu2011": ("iris", "wine", "glass", "vowel", "vehicle", "segment"),
    "03_wang2011": ("optdigit", "pendigit", "letter", "mnist"),
    "04_don2018": ("iris", "wine", "glass", "vowel", "letter", "poker", "covertype"),
    "05_head_to_head": ("iris", "wine", "glass", "vowel", "letter", "mnist"),
}


def texts(output) -> str:
    """An output as a reader of plain text sees it."""
    data = output.get("data", {})
    text = output.get("text") or data.get("text/markdown") or data.get("text/plain")
    return text or ""


def statements(text: str) -> list[str]:
    """The parts of an output that name sets: sentences, or a table's rows. A table of
    claims quotes the paper's words, which may name any set; and so may one that says
    that it is as printed."""
    first = text.lstrip().partition("\n")[0].lower()
    if first.startswith("claim ") or "recorded" in first or "as printed" in first:
        return []
    return re.split(r"(?<=[.:;])\s|\n", text)


@pytest.mark.slow
def test_the_tour_with_another_seed_is_the_reader_s(tmp_path):
    [path] = (ROOT / "notebooks").glob("00*.ipynb")
    given = {"seed": 7, "n_jobs": 1, "out_dir": str(tmp_path / "tables")}
    outcome = execute.run_job(jobs.Job(path, tmp_path, given))
    assert outcome.status == "finished", outcome.error
    cells = nbformat.read(outcome.job.executed, 4).cells
    shown = [texts(o) for cell in cells for o in cell.get("outputs", [])]
    assert any("profile quick, seed 7" in text for text in shown)
    assert not any("shows the recorded" in text for text in shown)


@pytest.mark.slow
@pytest.mark.parametrize("key", SETS)
def test_a_run_on_two_sets_names_no_other(key, tmp_path):
    [path] = (ROOT / "notebooks").glob(f"{key}*.ipynb")
    known = SETS[key]
    given = {"seed": 7, "datasets": ",".join(known[:2]), "n_jobs": 1}
    given["out_dir"] = str(tmp_path / "tables")
    outcome = execute.run_job(jobs.Job(path, tmp_path, given))
    assert outcome.status == "finished", outcome.error
    cells = nbformat.read(outcome.job.executed, 4).cells
    shown = [texts(o) for cell in cells for o in cell.get("outputs", [])]
    assert any("This page shows this run" in text for text in shown)
    assert not any("shows the recorded" in text for text in shown)
    others = re.compile(rf"\b({'|'.join(known[2:])})\b", re.I)
    named = [
        part.strip()
        for text in shown
        for part in statements(text)
        if others.search(part) and "recorded" not in part.lower()
    ]
    assert named == [], "names a set that is not in this run"
