"""What the sentences of the report rest on: recorded tables, and verdicts."""

from pathlib import Path

import pandas as pd

from dagsvm_lab.papers import papers
from dagsvm_lab.report.claims import NotRecordedError, Tables
from dagsvm_lab.report.prose import Sentence

WORDS_OF_SUCCESS = ("reproduced", "close")


class Evidence:
    """The record as a sentence asks for it; what is not there raises LookupError.

    Parameters
    ----------
    figures : Path
        The folder of the record.
    card : DataFrame
        The scorecard: a row a statement or table cell.
    """

    def __init__(self, figures: Path, card: pd.DataFrame) -> None:
        self.figures = figures
        self.card = card.set_index("id")
        self.tables = {
            folder.name[:2]: Tables(folder)
            for folder in sorted(figures.iterdir())
            if folder.is_dir()
        }

    def __getitem__(self, place: str) -> pd.DataFrame:
        """Return a table by notebook and name, as in "01/table1"."""
        notebook, name = place.split("/")
        return self.tables[notebook][name]

    def measured(self, id: str, *words: str, inferred: bool = False) -> str:
        """Return what was measured for a statement or cell.

        A sentence that says how a claim came out names the verdicts under which it is
        true, `words`; under another verdict it is left out.
        """
        row = self.card.loc[id]
        verdict = row["inferred_verdict" if inferred else "verdict"]
        if words and verdict not in words:
            raise NotRecordedError(f"{id} is {verdict}")
        return row["inferred" if inferred else "measured"]

    def printed(self, id: str) -> str:
        """Return what a paper prints for a statement or cell."""
        return self.card.loc[id, "published"]

    def count(self, *words: str, key: str = "", cells: bool = False) -> int:
        """Count statements (or cells) that were given one of `words` as written."""
        rows = self.card[self.card["kind"].eq("cell") == cells]
        if key:
            rows = rows[rows["paper"] == key]
        return int(rows["verdict"].isin(words).sum()) if words else len(rows)

    def title(self, key: str) -> str:
        """Return a paper's authors and year."""
        return papers()[key].title


def paragraph(evidence: Evidence, *sentences: Sentence) -> str:
    """Join the sentences whose tables are recorded and whose verdicts stand."""
    kept = []
    for sentence in sentences:
        try:
            kept.append(sentence(evidence) if callable(sentence) else sentence)
        except LookupError as missing:
            name = getattr(sentence, "__name__", sentence)
            print(f"The report leaves out {name}: {missing}")
    return " ".join(kept)
