"""What tests of batches share: a notebook, the command, what it must not leave."""

from pathlib import Path

from dagsvm_lab.run.cli import main

TABLE = """
import pandas as pd
from dagsvm_lab import Record
run = Record("01_good", out_dir=out_dir, profile=profile, seed=seed)
made = pd.DataFrame({"sum": [seed + rate], "verdict": ["close"]})
run.table("sums", made, keys=())
"""


def papers(folder: Path, *args) -> int:
    """Run `dagsvm-lab papers`, <folder>/notebooks into <folder>/out; its exit code."""
    return main(
        [
            "papers",
            "--notebooks",
            f"{folder / 'notebooks'}",
            "--out",
            f"{folder / 'out'}",
            *args,
        ]
    )


def leftovers(folder: Path) -> list[Path]:
    """Files that were only partly written."""
    return [path for path in folder.rglob("*.part*")]
