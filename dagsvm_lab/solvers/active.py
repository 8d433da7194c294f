"""Which rows of long duals are active next, and what steps on them aim at.

A few rows of each side to start with. After every judgement, active rows that rest at a
bound leave, and the worst violators of the others come in.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| START = 48 | rows of each side to start with | Letter, Pendigits, and Segment |
| | | one-versus-rest: 24 1.03, 1.00, 1.22; 96 1.15, 1.09, .91 |
| START_SHARE = 60 | or one row of so many, if more | Letter: 30 1.07, 120 1.03 |
| FALL = .1 | aim over the violation judged last | the same three: |
| | | .3 1.20, 1.05, .98; .03 .98, 1.06, 1.79 |
"""

import numpy as np

from .dual import ranges, span, starts
from .search import Search, rows_in

START = 48
START_SHARE = 60
FALL = 0.1
LAST_AIM = 0.9  # of tol: the last aim, so that rounding leaves the judgement below tol


def choose_first(search: Search) -> None:
    """Set the rows that the first steps move: some of each side, as pairs are taken."""
    of_rising = spread(search, search.hi > 0)
    of_falling = spread(search, search.lo < 0)
    search.active = of_rising | of_falling


def spread(search: Search, side: np.ndarray) -> np.ndarray:
    """Rows spread evenly over those of one side of each dual."""
    rows = np.flatnonzero(side)
    count = np.bincount(search.owner[rows], minlength=len(search.first))
    wanted = np.minimum(count, np.maximum(START, count // START_SHARE))
    dual = np.repeat(np.arange(len(count)), wanted)
    number = ranges(np.zeros_like(wanted), wanted)  # 0, 1, ... of each dual's
    place = number * (count[dual] - 1) // np.maximum(wanted[dual] - 1, 1)
    first = starts(count)[dual]  # in `rows`: where the dual's of this side begin
    chosen = np.zeros(len(side), bool)
    chosen[rows[first + place]] = True
    return chosen


def choose_next(search: Search, some: np.ndarray, tol: float) -> None:
    """Set what the next steps of some duals aim at, and which rows they move."""
    if not len(some):
        return
    tight = LAST_AIM * tol
    aim = search.aim[some]
    violation = search.violation[some]
    lower = np.minimum(aim, FALL * violation)
    lower = np.maximum(lower, tight)
    # hardly anything is violated outside: all the way before the next judgement
    search.aim[some] = np.where(violation < 2.0 * aim, tight, lower)
    # violators by the new aim; both by the active rows as they were
    rests = resting(search, some, tol)
    new = worst_violators(search, some)
    search.active[rests] = False
    search.active[new] = True


def aim_anew(search: Search, some: np.ndarray) -> None:
    """Aim at what float64 has left of the violations; gains count from here."""
    tight = LAST_AIM * search.settings.tol
    share = FALL * search.violation[some]
    left = np.minimum(search.aim[some], share)
    search.aim[some] = np.maximum(tight, left)
    search.best[some] = np.inf
    search.stalled[some] = 0


def resting(search: Search, some: np.ndarray, tol: float) -> np.ndarray:
    """Active rows at a bound that pull outwards harder than violators inwards."""
    rows, count = search.active_rows(some)
    top, bottom = search.extremes(rows, starts(count))
    # infinite where all are on one side: their partners are to come, and none rests
    margin = 0.25 * np.maximum(np.abs(top - bottom), tol)
    high = np.maximum(top, bottom) + margin
    low = np.minimum(top, bottom) - margin
    v = search.v[rows]
    far_above = v > np.repeat(high, count)
    far_below = v < np.repeat(low, count)
    pulls_up = far_above & ~search.may_rise(rows)
    pulls_down = far_below & ~search.may_fall(rows)
    # never all: the rows at top and bottom do not rest
    return rows[pulls_up | pulls_down]


def worst_violators(search: Search, some: np.ndarray) -> np.ndarray:
    """Rows not active that violate by more than `aim`; the worst, if many."""
    rows, first = search.rows_of(some)
    length = search.length[some]
    excess = excesses(search, some, rows)
    aim = np.repeat(search.aim[some], length)
    is_active = search.active[rows]
    new = (excess > aim) & ~is_active
    # (duals,): how many are active, may come in, and would
    active = np.add.reduceat(is_active, first, dtype=int)
    most = most_new(active, length)
    count = np.add.reduceat(new, first, dtype=int)
    for k in np.flatnonzero(count > most):
        own = span(first, length, k)
        negated = np.where(new[own], -excess[own], 0.0)
        worst = np.argpartition(negated, most[k])[: most[k]]
        new[own] = False
        new[first[k] + worst] = True
    return rows_in(rows, new)


def excesses(search: Search, some: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    """How far v of each row is above what may fall, or below what may rise.

    `rows` are those of the duals `some`; a way that a row may not go counts as 0.
    """
    length = search.length[some]
    v = search.v[rows]
    above = v - np.repeat(search.bottom[some], length)
    below = np.repeat(search.top[some], length) - v
    above = np.where(search.may_rise(rows), above, 0)
    below = np.where(search.may_fall(rows), below, 0)
    return np.maximum(above, below)


def most_new(active: np.ndarray, length: np.ndarray) -> np.ndarray:
    """How many rows may become active at once, in duals of that length.

    As many as are active, half as many where those are a sixteenth of the dual or more,
    but 2 START at least.
    """
    few = 16 * active < length
    as_many = np.where(few, active, active // 2)
    return np.maximum(2 * START, as_many)
