"""Print every verdict that differs from the committed scorecard, and end in 1 if any
does: `make verdicts`, or `make verdicts ARGS=FOLDER` for a run that was kept there.

Of another folder only what its tables decide is compared: the rest is not in that run.
"""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

from dagsvm_lab.papers import papers
from dagsvm_lab.report.claims import Tables
from dagsvm_lab.report.scorecard import judged
from dagsvm_lab.report.verdicts import NOT_IN_RUN

ROOT = Path(__file__).parent.parent
COLUMNS = ("verdict", "inferred_verdict")


def words(text: str) -> dict:
    """The verdict of each claim and cell in either reading."""
    rows = csv.DictReader(io.StringIO(text))
    return {
        (row["paper"], row["id"], row["statement"], column): row[column]
        for row in rows
        for column in COLUMNS
    }


def committed() -> str:
    """The scorecard of the last commit; outside of git the one that was shipped."""
    command = ["git", "show", "HEAD:figures/scorecard.csv"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return (ROOT / "figures" / "scorecard.csv").read_text(encoding="utf-8")
    return done.stdout


def changed(old: dict, new: dict) -> list[str]:
    """A line for each verdict that differs."""
    return [
        f"{' '.join(key)}: {old.get(key, 'nothing')!r} is now "
        f"{new.get(key, 'nothing')!r}"
        for key in old | new
        if old.get(key) != new.get(key)
    ]


def of_run(folder: Path) -> str:
    """The scorecard of the notebooks that have written tables below `folder`."""
    parts = []
    for key, paper in papers().items():
        names = {path.stem for path in (folder / key).glob("*.csv")}
        if names:
            parts.append(judged(paper, Tables(folder / key, only=names)))
    if not parts:
        sys.exit(f"no tables of a paper's notebook below {folder}")
    return pd.concat(parts).to_csv(index=False)


def main(folder: str = "") -> int:
    """Compare figures/, or the results below `folder`, with the last commit."""
    old = words(committed())
    if folder:
        new = words(of_run(Path(folder)))
        told = {key for key, word in new.items() if word not in ("", NOT_IN_RUN)}
        old = {key: word for key, word in old.items() if key in told}
        new = {key: new[key] for key in told}
        print(f"{len(told)} verdicts of {folder} compared with the record's")
    else:
        path = ROOT / "figures" / "scorecard.csv"
        new = words(path.read_text(encoding="utf-8"))
    lines = changed(old, new)
    print("\n".join(sorted(lines)) or "none differs")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
