"""Which run a page shows: the record, or the reader's own.

The rule stands here and nowhere else. With default parameters (profile quick, seed 0,
every other one None; n_jobs and out_dir do not count) a page shows the record: the
tables that the last full run left in figures/, with figures, prose and verdicts that
are computed from them, and a line on what this quick run just found. With any other
parameter it shows the reader's own run in all four, and from a changed cell on
(edits.py).
"""

from pathlib import Path

import pandas as pd

from .edits import Edits
from .parameters import changed, in_words
from .pictures import paragraph
from .provenance import date_and_version, has_run, read_run
from .recorded import Tables


class ShownRun:
    """The run that a page shows, and its tables.

    Parameters
    ----------
    root : Path
        The project.
    key : str
        How the notebook's name begins, and the name of its folder.
    out_dir : path
        Where the folder is, relative to the project; "figures" makes the run the
        record.
    parameters : dict
        All of the notebook's, by name.
    """

    def __init__(self, root: Path, key: str, out_dir: str | Path, parameters: dict):
        self.key = key
        self.folder = root / out_dir / key
        self.committed = root / "figures" / key
        self.parameters = parameters
        self.written: set[str] = set()  # tables of this run
        self.outdated: set[str] = set()  # those whose record has other columns
        other = changed(parameters)
        if self.folder == self.committed and other != {"profile": "full"}:
            raise ValueError(
                "figures/ holds the full run with default parameters: give out_dir "
                "another folder, or profile full and nothing else"
            )
        self.shows_record = not other and has_run(self.committed)
        committed = sorted((root / "notebooks").glob(f"{key}*.ipynb"))
        self._edits = Edits(committed[0] if committed else None)

    @property
    def tables(self) -> Tables:
        """The tables that this page shows: the record's, or what this run wrote."""
        if self.shows_record:
            return Tables(self.committed, self.folder, outdated=self.outdated)
        return Tables(self.folder, only=self.written)

    def recorded(self, name: str) -> pd.DataFrame | None:
        """The recorded table, or None: for what a page says of the record by name."""
        return Tables(self.committed).get(name)

    @property
    def _beside(self) -> Tables | None:
        """The record's tables, where a reader's run is shown beside them."""
        if self.shows_record or self.folder == self.committed:
            return None
        return Tables(self.committed)

    def heading(self) -> None:
        """Display which run this page shows, and what stands beside it."""
        if self.shows_record:
            text = (
                f"**This page shows the recorded full run** {self._record_is()}: its "
                "tables and figures, and words and verdicts computed from them. What "
                "the run that made this page found itself (quick profile, smaller "
                "samples) is said in a line under each table."
            )
        else:
            text = f"**This page shows this run**: {in_words(self.parameters)}."
            if has_run(self.committed) and self.folder != self.committed:
                text += (
                    " Tables, figures, words and verdicts are its own. What is called "
                    f"*recorded* is the project's full run {self._record_is()}."
                )
        paragraph(text)

    def _record_is(self) -> str:
        """Date and version of the recorded run, as far as run.json says them."""
        return date_and_version(read_run(self.committed))

    def _heed_edits(self) -> None:
        """Show the reader's own run from the first changed cell on, and say so."""
        if self.shows_record and self._edits:
            self.shows_record = False
            paragraph(
                "**From here on this page shows this run**: a cell was changed. What "
                f"is called *recorded* is the full run {self._record_is()}."
            )
