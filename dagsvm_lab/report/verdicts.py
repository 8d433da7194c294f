"""A word for every published number: what the measured one says about it.

Accuracies are shares of a test set, so chance sets their tolerance, not taste. With h
hits in n rows, and the published p known to half a unit of its last printed digit:
    reproduced      p lies in the exact 95 % interval of h/n (Clopper and Pearson 1934)
    close           p was measured on n rows too, and its own 95 % interval meets h/n's
    not reproduced  otherwise
Counts and ratios: within 5 % of the published number, within 15 %, or neither. Exact
numbers: equal to the printed digits, within 5 %, or neither. Orderings hold, are within
chance, or fail. Words that are neither success nor failure:
    misprint            the formula as printed is wrong, and what was meant is clear
    assumption not met  the statement says "assuming ...", and what it assumes is false
    by definition       true by construction: it cannot fail
    fitted              picked because it agrees with the printed numbers, or computed
                        from what was
    other machine       seconds, which belong to a machine
    not checkable       no run could decide it
    not available here  a data set or table is not at hand
    not in this run     a reader's run left out what it rests on
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from ..statistics import binomial_interval

PUBLISHED = Path(__file__).resolve().parents[1] / "published"
WRITTEN = "as written"  # how a paper is read
INFERRED = "as inferred"
REPRODUCED = "reproduced"
CLOSE = "close"
WITHIN_CHANCE = "within chance"
NOT_REPRODUCED = "not reproduced"
MISPRINT = "misprint"
ASSUMPTION_NOT_MET = "assumption not met"
BY_DEFINITION = "by definition"
FITTED = "fitted"
OTHER_MACHINE = "other machine"
NOT_CHECKABLE = "not checkable"
NOT_AVAILABLE = "not available here"
NOT_IN_RUN = "not in this run"
WORDS = (
    REPRODUCED,
    CLOSE,
    WITHIN_CHANCE,
    NOT_REPRODUCED,
    MISPRINT,
    ASSUMPTION_NOT_MET,
    BY_DEFINITION,
    FITTED,
    OTHER_MACHINE,
    NOT_CHECKABLE,
    NOT_AVAILABLE,
    NOT_IN_RUN,
)


def published(name: str) -> pd.DataFrame:
    """The paper's table `name` (say "platt2000_table1") as printed."""
    return pd.read_csv(PUBLISHED / f"{name}.csv")


def accuracy_verdict(
    published_pct: float, hits: float, n: float, rounding: float = 0.0
) -> str:
    """The word for a published accuracy or error, `hits` of `n` rows having been so
    counted here.
    """
    if pd.isna(published_pct) or pd.isna(hits) or pd.isna(n):
        return NOT_AVAILABLE
    hits = round(hits)
    n = round(n)
    low, high = binomial_interval(hits, n)
    if low - rounding <= published_pct <= high + rounding:
        return REPRODUCED
    their_hits = min(n, round(published_pct * n / 100))
    their_low, their_high = binomial_interval(their_hits, n)
    return CLOSE if their_low <= high and low <= their_high else NOT_REPRODUCED


def claim_verdict(holds: bool | None) -> str:
    """The word for a statement that holds, does not, or could not be looked at."""
    if pd.isna(holds):
        return NOT_AVAILABLE
    return REPRODUCED if holds else NOT_REPRODUCED


def judge(rule: Sequence, published: float, measured: float, digits: int = 0) -> str:
    """The word that `rule` gives `measured`; `digits` decimals of `published` were
    printed.

    A rule is ("accuracy", n), ("error", n), ("count",), ("ratio", near, far),
    ("points", near, far), ("exact",) or ("time",).
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
            hits = None if pd.isna(n) else measured * n / 100
            return accuracy_verdict(published, hits, n, rounding)
        case "count" | "ratio":
            near, far = (share * abs(published) for share in limits or (0.05, 0.15))
        case "points":
            near, far = limits
        case "exact":
            near = rounding
            far = max(rounding, 0.05 * abs(published))
        case _:
            raise ValueError(f"unknown rule {name!r}")
    # a boundary is inside, whatever its last bit
    distance = abs(measured - published) * (1 - 1e-9)
    if distance <= near:
        return REPRODUCED
    return CLOSE if distance <= far else NOT_REPRODUCED


def compare(
    printed: pd.DataFrame,
    measured: pd.DataFrame | None,
    keys: Sequence[str],
    rules: Mapping,
) -> pd.DataFrame:
    """A long table, one row a published cell: keys, quantity, published, measured,
    verdict.

    The n of an accuracy is a number, the name of a column (of either table), or a
    mapping from the first key.
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
        for column, rule in rules.items():
            if pd.isna(line[column]):
                continue
            rule = _with_n(rule, line | here, key)
            value = here.get(column)
            word = judge(rule, line[column], value, digits[column])
            rows.append((*key, column, line[column], value, word))
    columns = [*keys, "quantity", "published", "measured", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def _with_n(rule: Sequence, row: Mapping, key: tuple) -> Sequence:
    """Put in the number of rows where a rule names its column, or maps the first key
    to it."""
    name, *limits = rule
    if limits and isinstance(limits[0], str):
        return name, row.get(limits[0])
    if limits and isinstance(limits[0], Mapping):
        return name, limits[0].get(key[0])
    return rule


def number(value, digits: int) -> str:
    """Write a number with at most `digits` decimals and without idle zeros; "" where
    there is none.
    """
    if pd.isna(value):
        return ""
    text = f"{round(float(value), digits) + 0.0:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimals(values: Iterable[float]) -> int:
    """How many decimals were printed: the most that any of `values` shows."""
    printed = (repr(float(value)).partition(".")[2] for value in values)
    return max((len(part) for part in printed if part != "0"), default=0)
