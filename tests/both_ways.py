"""Every claim on a case in which it holds and one in which it fails.

The test module of a paper has a table of made tables by claim:

    BOTH_WAYS = {
        "platt-path": ({"graphs": whole}, {"graphs": broken}),
        ("platt-theorem3", INFERRED): ({"shattered": few}, {"shattered": many}),
    }

tests/test_claims.py runs them, and fails for a claim that has none. What no run can
decide and what belongs to another machine needs none.
"""

from collections.abc import Mapping

import pandas as pd

from dagsvm_lab.report import verdicts as v
from dagsvm_lab.report.claims import HOLD, WRITTEN, NotRecordedError, Paper

FAIL = (v.NOT_REPRODUCED, v.MISPRINT, v.ASSUMPTION_NOT_MET)
NO_CASE = (v.NOT_CHECKABLE, v.OTHER_MACHINE)
Given = Mapping[str, pd.DataFrame]
Cases = Mapping[str | tuple[str, str], tuple[Given, Given]]


class Made(dict):
    """Made tables by name, as claims ask for them."""

    def __missing__(self, name: str):
        raise NotRecordedError(f"no table {name}")


def table(rows=None, columns: str = "", /, **more) -> pd.DataFrame:
    """Make a table of rows with "column names" in one string, or of columns by name."""
    if rows is None:
        return pd.DataFrame(more)
    return pd.DataFrame(rows, columns=columns.split())


def word(paper: Paper, id: str, tables: Given, reading: str = WRITTEN) -> str:
    """The word for a claim over made tables."""
    return paper.claims[id].judge(Made(tables), reading).word


def without_case(paper: Paper, cases: Cases) -> list[str]:
    """The claims that have no case."""
    named = {key if isinstance(key, str) else key[0] for key in cases}
    needed = [c.id for c in paper.claims.values() if c.kind != "uncheckable"]
    return [id for id in needed if id not in named]


def wrong(paper: Paper, cases: Cases) -> list[str]:
    """What claims say of their cases that they should not."""
    said = []
    for key, (holds, fails) in cases.items():
        id, reading = (key, WRITTEN) if isinstance(key, str) else key
        good = word(paper, id, holds, reading)
        bad = word(paper, id, fails, reading)
        if {good, bad} & set(NO_CASE):
            continue
        if good not in HOLD:
            said.append(f"{id}, {reading}: {good!r} where it holds")
        if bad not in FAIL:
            said.append(f"{id}, {reading}: {bad!r} where it fails")
    return said
