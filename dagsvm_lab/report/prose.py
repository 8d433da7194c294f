"""Sentences that are computed from tables, and say nothing of what is not in them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from .recorded import NotRecordedError, Tables
from .verdicts import number

Sentence = str | Callable[[Tables], str]


def of(table: pd.DataFrame, name: str, column: str = "dataset") -> pd.DataFrame:
    """Return the rows of one data set; where a run left it out, raise
    `NotRecordedError`, so that a claim is "not in this run" and a sentence is left out.
    """
    found = table[table[column] == name]
    if not len(found):
        raise NotRecordedError(f"no rows of {name}")
    return found


def listed(names: Iterable[str], last: str = "and") -> str:
    """Write names as English does.

    >>> listed(["iris", "wine", "vowel"])
    'iris, wine and vowel'
    """
    names = [str(name) for name in names]
    if len(names) < 2:
        return "".join(names)
    *others, final = names
    return f"{', '.join(others)} {last} {final}"


def span(values: Sequence[float], digits: int = 1, unit: str = "") -> str:
    """Write the smallest and the largest of some numbers, or the only one.

    >>> span([2.5, 18.84, 7], 1, " %")
    '2.5 to 18.8 %'
    >>> span([3.0], 0, " rows")
    '3 rows'
    """
    values = np.asarray(values, dtype=float)
    if not values.size:
        raise NotRecordedError("no values")
    low = number(np.nanmin(values), digits)
    high = number(np.nanmax(values), digits)
    if low == high:
        return f"{low}{unit}"
    return f"{low} to {high}{unit}"


def by_name(values: pd.Series) -> str:
    """Write a number beside each name of a series' index.

    >>> by_name(pd.Series({"iris": 1.5, "wine": 2}))
    'iris 1.50, wine 2.00'
    """
    parts = [f"{name} {value:.2f}" for name, value in values.items()]
    return ", ".join(parts)


def said(tables: Tables, *sentences: Sentence) -> list[str]:
    """Evaluate sentences; those that ask for a table or set that is not there are
    left out."""
    found = []
    for sentence in sentences:
        try:
            found.append(sentence(tables) if callable(sentence) else sentence)
        except NotRecordedError:
            continue
    return found
