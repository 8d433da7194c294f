"""Recorded tables by name: those of the record, of a reader's run, or of both.

A table that is not there raises `NotRecordedError`, whose verdict is "not available
here", or "not in this run" where a reader's run is judged.
"""

from pathlib import Path

import pandas as pd

from . import verdicts as v


class NotRecordedError(LookupError):
    """A table or data set that a claim rests on is not there."""


class Tables:
    """Tables by name; the first of the folders that has one gives it.

    Parameters
    ----------
    *folders : Path
        Where to look for <name>.csv.
    only : set of str, optional
        The names that a run has written: others, left by an earlier run, are not there.
    outdated : set of str, optional
        The names for which the first folder does not count.
    """

    def __init__(
        self,
        *folders: Path,
        only: set[str] | None = None,
        outdated: set[str] | frozenset[str] = frozenset(),
    ) -> None:
        self.folders = folders
        self.only = only
        self.outdated = outdated
        self.read: set[str] = set()  # the names that were asked for

    @property
    def partial(self) -> bool:
        """Whether these are the tables of a reader's run, which may leave sets out."""
        return self.only is not None

    @property
    def missing(self) -> str:
        """The word for what rests on a table that is not there."""
        return v.NOT_IN_RUN if self.partial else v.NOT_AVAILABLE

    def get(self, name: str) -> pd.DataFrame | None:
        """Return the table, or None where there is none."""
        self.read.add(name)
        if self.only is not None and name not in self.only:
            return None
        for folder in self.folders[1 if name in self.outdated else 0 :]:
            path = folder / f"{name}.csv"
            if path.is_file():
                return pd.read_csv(path)
        return None

    def __getitem__(self, name: str) -> pd.DataFrame:
        if (found := self.get(name)) is None:
            raise NotRecordedError(f"no table {name}")
        return found
