"""What tests of batches of notebooks share: a good notebook, the command, and what it may not leave behind."""

from pathlib import Path

from dagsvm_lab.run.cli import main

TABLE = """
import pandas as pd
from dagsvm_lab import Record
run = Record("01_good", out_dir=out_dir, profile=profile, seed=seed)
run.table("sums", pd.DataFrame({"sum": [seed + rate], "verdict": ["close"]}))
"""


def papers(folder: Path, *args) -> int:
    """The exit code of `dagsvm-lab papers` over <folder>/notebooks into <folder>/out."""
    return main(["papers", "--notebooks", f"{folder / 'notebooks'}", "--out", f"{folder / 'out'}", *args])


def leftovers(folder: Path) -> list[Path]:
    """Files that were only partly written."""
    return [path for path in folder.rglob("*.part*")]
