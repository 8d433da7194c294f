"""Print every verdict that differs from the committed scorecard, and end in 1 if any does: `make verdicts`."""

import csv
import io
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
COLUMNS = ("verdict", "inferred_verdict")


def words(text: str) -> dict:
    """The verdict of each claim and cell in either reading."""
    rows = csv.DictReader(io.StringIO(text))
    return {(r["paper"], r["id"], r["statement"], c): r[c] for r in rows for c in COLUMNS}


committed = subprocess.run(["git", "show", "HEAD:figures/scorecard.csv"], cwd=ROOT, capture_output=True, text=True)
old, new = words(committed.stdout), words((ROOT / "figures" / "scorecard.csv").read_text(encoding="utf-8"))
changed = [key for key in old | new if old.get(key) != new.get(key)]
for key in changed:
    print(f"{' '.join(key)}: {old.get(key, 'nothing')!r} is now {new.get(key, 'nothing')!r}")
sys.exit(bool(changed))
