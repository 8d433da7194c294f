"""Whether a run agrees with the record: cell by cell, over the rows that both have."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ..statistics import binomial_interval

COUNTS_DIFFER = 0.05  # the share that counts may differ by
TIMES = re.compile(r"(_s|_ms|_us|_mb|seconds|ms_a_row)$|^(fit|predict|one_row|memory)_")
PERCENTAGES = re.compile(r"(_pct|, ?%)$|^(accuracy|acc_)")
TESTED_ROWS = (
    "test_rows",
    "n_test",
    "validation_rows",
)  # columns that count tested rows
NOT_COMPARED = re.compile(r"^p$|^p_|_p$|_low$|_high$|^low$|^high$")
NAMED = 4  # cells that a line names before it says "and others"


@dataclass(frozen=True)
class Agreement:
    """How many cells were compared, and the names of those that differ."""

    rows: int  # rows that both tables have
    recorded_rows: int
    cells: int
    differ: tuple[str, ...]

    def __str__(self) -> str:
        if not self.rows:
            return "no row of it is in the record"
        if not self.cells:
            return "nothing in it is compared"
        agree = self.cells - len(self.differ)
        text = f"{agree} of {self.cells} cells agree with the record"
        if self.rows < self.recorded_rows:
            text += f", in {self.rows} of its {self.recorded_rows} rows"
        if self.differ:
            text += f"; differs: {', '.join(self.differ[:NAMED])}"
        if len(self.differ) > NAMED:
            text += f" and {len(self.differ) - NAMED} others"
        return text


def agreement(
    fresh: pd.DataFrame,
    recorded: pd.DataFrame,
    keys: Sequence[str],
    rules: Mapping[str, tuple] | None = None,
) -> Agreement:
    """Compare two tables whose rows are told apart by `keys`, in the columns of both.

    Two percentages agree when their exact 95 % intervals meet, two counts within 5 %,
    two words when they are equal. Seconds, p-values and limits of intervals are not
    compared.

    Parameters
    ----------
    fresh, recorded : DataFrame
        What a run found, and the record.
    keys : sequence of str
        Columns that tell rows apart; with none, rows are matched by their place.
    rules : mapping of str to tuple, optional
        ("percent", n) with n a number, the name of a column or a mapping from the
        first key; ("count", share); ("points", width); ("equal",); ("skip",). What is
        not named goes by the column's name and type (`rule_of`).
    """
    keys = list(keys)
    here = _by_key(fresh, keys, "this run")
    there = _by_key(recorded, keys, "the record")
    rule = {}
    for column in recorded:
        if column in fresh and column not in keys:
            rule[column] = (rules or {}).get(column) or rule_of(recorded[column])
    compared = [column for column in rule if rule[column][0] != "skip"]
    common = [key for key in there if key in here]
    differ = []
    for key in common:
        for column in compared:
            if not _agree(rule[column], column, here[key], there[key], key):
                name = map(str, key if keys else (key,))
                differ.append(" ".join([*name, column]))
    cells = len(common) * len(compared)
    return Agreement(len(common), len(recorded), cells, tuple(differ))


def rule_of(column: pd.Series) -> tuple:
    """Return the rule for a column, by its name and type."""
    name = str(column.name)
    if name in TESTED_ROWS or TIMES.search(name) or NOT_COMPARED.search(name):
        return ("skip",)
    if PERCENTAGES.search(name):
        return ("percent", None)
    number = pd.api.types.is_numeric_dtype(column)
    if number and not pd.api.types.is_bool_dtype(column):
        return ("count", COUNTS_DIFFER)
    return ("equal",)


def _by_key(table: pd.DataFrame, keys: list[str], which: str) -> dict:
    """Rows as dictionaries, by the tuple of their keys or by their place."""
    rows = table.to_dict("records")
    if not keys:
        return dict(enumerate(rows))
    lost = [key for key in keys if key not in table]
    if lost:
        raise ValueError(f"{which} has no column {', '.join(lost)}")
    found = {tuple(row[key] for key in keys): row for row in rows}
    if len(found) < len(rows):
        told = ", ".join(keys)
        raise ValueError(f"{which} has rows that {told} do not tell apart")
    return found


def _agree(rule: tuple, column: str, fresh: dict, recorded: dict, key) -> bool:
    """Tell whether one cell agrees, whose rows are `fresh` and `recorded`."""
    a = fresh[column]
    b = recorded[column]
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    match rule:
        case ("equal",):
            return bool(a == b)
        case ("points", width):
            return abs(a - b) <= width
        case ("percent", n):
            a_low, a_high = _interval(a, fresh, n, key)
            b_low, b_high = _interval(b, recorded, n, key)
            # they meet: the higher of the lower ends is not above the lower upper one
            return max(a_low, b_low) <= min(a_high, b_high) + 1e-9
        case ("count", share):
            larger = max(abs(a), abs(b))
            return abs(a - b) <= share * larger + 1e-9
        case _:
            raise ValueError(f"unknown rule {rule!r}")


def _interval(percent: float, row: dict, n, key) -> tuple[float, float]:
    """Exact limits of a percentage of n rows; without n, within 5 % of its distance
    from 0 or 100, the larger."""
    if isinstance(n, str):
        n = row[n]
    elif isinstance(n, Mapping):
        n = n.get(key[0])
    elif n is None:
        n = next((row[name] for name in TESTED_ROWS if name in row), None)
    if n is None or pd.isna(n):
        width = COUNTS_DIFFER * max(abs(percent), abs(100 - percent)) / 2
        return percent - width, percent + width
    n = round(n)
    hits = round(percent * n / 100)
    hits = min(n, max(0, hits))
    return binomial_interval(hits, n)
