"""A word for every published number: what the measured one says about it.

Accuracies are shares of a test set, so chance sets their tolerance, not taste. With h hits in n rows, and the
published p known to half a unit of its last printed digit:
    reproduced      p lies in the exact 95 % interval of h/n                  (Clopper and Pearson 1934)
    close           p was measured on n rows too, and its own 95 % interval meets that of h/n
    not reproduced  otherwise
Counts and ratios: within 5 % of the published number, within 15 %, or neither. Exact numbers: equal to the
printed digits, within 5 %, or neither. Orderings hold, are within chance, or fail. Times belong to a machine: "other
machine", whatever they are. What was not measured, because a data set is not at hand, is "not available here". What
is true by construction is "by definition", and a cell that a reading was fitted on is "fitted": neither is a success.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..statistics import binomial_interval

PUBLISHED = Path(__file__).resolve().parents[1] / "published"
REPRODUCED, CLOSE, WITHIN_CHANCE, NOT_REPRODUCED = "reproduced", "close", "within chance", "not reproduced"
BY_DEFINITION, FITTED, OTHER_MACHINE = "by definition", "fitted", "other machine"
NOT_CHECKABLE, NOT_AVAILABLE = "not checkable", "not available here"
WORDS = (REPRODUCED, CLOSE, WITHIN_CHANCE, NOT_REPRODUCED, BY_DEFINITION, FITTED, OTHER_MACHINE, NOT_CHECKABLE,
         NOT_AVAILABLE)  # fmt: skip


def published(name: str) -> pd.DataFrame:
    """The paper's table `name` (say "platt2000_table1") as printed."""
    return pd.read_csv(PUBLISHED / f"{name}.csv")


def accuracy_verdict(published_pct: float, hits: float, n: float, rounding: float = 0.0) -> str:
    """The word for a published accuracy or error, `hits` of `n` rows having been so counted here."""
    if pd.isna(published_pct) or pd.isna(hits) or pd.isna(n):
        return NOT_AVAILABLE
    hits, n = round(hits), round(n)
    low, high = binomial_interval(hits, n)
    if low - rounding <= published_pct <= high + rounding:
        return REPRODUCED
    their_low, their_high = binomial_interval(min(n, round(published_pct * n / 100)), n)
    return CLOSE if their_low <= high and low <= their_high else NOT_REPRODUCED


def claim_verdict(holds: bool | None) -> str:
    """The word for a statement that holds, does not, or could not be looked at (None)."""
    return NOT_AVAILABLE if pd.isna(holds) else REPRODUCED if holds else NOT_REPRODUCED


def judge(rule: Sequence, published: float, measured: float, digits: int = 0) -> str:
    """The word that `rule` gives `measured`; `digits` decimals of `published` were printed.

    A rule is ("accuracy", n), ("error", n), ("count",), ("ratio", near, far), ("points", near, far),
    ("exact",) or ("time",).
    """
    name, *limits = rule
    if pd.isna(published) or pd.isna(measured):
        return NOT_AVAILABLE
    rounding = 0.5 * 10.0**-digits
    match name:
        case "time":
            return OTHER_MACHINE
        case "accuracy" | "error":
            [n] = limits
            return accuracy_verdict(published, None if pd.isna(n) else measured * n / 100, n, rounding)
        case "count" | "ratio":
            near, far = (share * abs(published) for share in limits or (0.05, 0.15))
        case "points":
            near, far = limits
        case "exact":
            near, far = rounding, max(rounding, 0.05 * abs(published))
        case _:
            raise ValueError(f"unknown rule {name!r}")
    distance = abs(measured - published) * (1 - 1e-9)  # a boundary is inside, whatever its last bit
    return REPRODUCED if distance <= near else CLOSE if distance <= far else NOT_REPRODUCED


def compare(printed: pd.DataFrame, measured: pd.DataFrame | None, keys: Sequence[str], rules: Mapping) -> pd.DataFrame:
    """A long table, one row a published cell: keys, quantity, published, measured, verdict.

    The n of an accuracy is a number, the name of a column (of either table), or a mapping from the first key.
    """
    mine = [] if measured is None else measured.to_dict("records")
    found = {tuple(row[k] for k in keys): row for row in mine}
    if len(found) != len(mine):
        raise ValueError(f"measured rows are not told apart by {', '.join(keys)}")
    digits = {column: decimals(printed[column]) for column in rules}
    rows = []
    for line in printed.to_dict("records"):
        key = tuple(line[k] for k in keys)
        here = found.get(key, {})
        for column, (name, *limits) in rules.items():
            if pd.isna(line[column]):
                continue
            if limits and isinstance(limits[0], str):
                limits = [here.get(limits[0], line.get(limits[0]))]
            elif limits and isinstance(limits[0], Mapping):
                limits = [limits[0].get(key[0])]
            value = here.get(column)
            word = judge((name, *limits), line[column], value, digits[column])
            rows.append((*key, column, line[column], value, word))
    return pd.DataFrame(rows, columns=[*keys, "quantity", "published", "measured", "verdict"])


def number(value, digits: int) -> str:
    """Write a number with at most `digits` decimals and without idle zeros; "" where there is none."""
    if pd.isna(value):
        return ""
    text = f"{round(float(value), digits) + 0.0:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimals(values: Iterable[float]) -> int:
    """How many decimals were printed: the most that any of `values` shows."""
    printed = (repr(float(value)).partition(".")[2] for value in values)
    return max((len(part) for part in printed if part != "0"), default=0)
