r"""Small duals, whole and stacked: SMO for all machines at once, then all free variables at once, exactly.

A bank of small machines costs Python per machine, not arithmetic. Here the duals of dual.py stand in arrays (machines x
rows), their kernel values in a table (table.py), and nothing is done machine by machine. For several values of C (a
path) a table is made once; a machine with no alpha at its bound is that of every larger C, and one with few of them
starts from where it is.

1. SMO (steps.py), in float32 where that is safe, until the violation is a small share of the first one.
2. Newton's method on all free variables (newton.py), which ends at the exact solution, to the last digit.
3. What it does not settle goes on from the feasible point of step 1: SMO to a smaller share, Newton's method again.
   What is still open is given back (bank.py solves it one by one).

Tried and not kept: Newton's method from zero (Vowel: half of the machines go round in circles).

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| SMALL = 700 | rows of a machine | longer: batch.py. Vehicle (435 rows), C = 100: 256 2.4; Optdigits (760): 800 1.8 |
| | | Segment (660), C = 1, 100, 1000: 500 .83, .91, .95; five C of its folds (528): 500 1.35 to 1.75 |
| LEVELS | of the first violation | Vowel: a first level of .1 1.76, .001 .99; Vehicle: 1.12, 1.06 |
| | | Segment, C = 1000: the first two alone 1.49 |
| PATIENCE = 1 | steps a row | Vehicle, C = 100: 4 1.22; Glass, C = 100: 3 1.26, .5 1.02 |
| CELLS = 2^21 | kernel values stacked at once | Vowel: a sixteenth 1.84, eight times .98 |
| ROWS = 2^16 | rows stacked at once | 600 classes of 2 rows: a quarter 1.01, twice 1.02; with no limit 2.2 |
| WARM = .2 | rows at their bound | from more on a larger C starts from zero. Vowel, five C: 0 1.00, always warm 1.09 |
| MANY = 2^22 | kernel values of all machines | from here on shared. Vehicle: a quarter 1.15; Segment: never 1.6 |
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from ..kernels import Kernel, prepared, single_is_safe
from .dual import Duals, measure
from .newton import exact
from .steps import together
from .table import LARGEST, Classes, Table, apart, halves, kept

SMALL = 700
LEVELS = (0.01, 0.0003, 0.00001)
PATIENCE = 1
CELLS = 1 << 21
ROWS = 1 << 16
MANY = 1 << 22
WARM = 0.2


def solve_small(X, kernel: Kernel, path: list[Duals], which, kernels: list[Kernel] | None = None, progress=int,
                codes=None):  # fmt: skip
    """Solve the machines `which` of every Duals of a path exactly; returns those of each that step 2 could not settle.

    A path is of the same machines with growing bounds, which share kernel values. `kernels` holds each machine's own
    kernel, where they differ; `progress` is told how many duals are done. Where `codes`, the classes of the rows of X,
    are given, machines are of whole classes.
    """
    which, left = which[np.argsort(-np.diff(path[0].ends)[which], kind="stable")], []
    for part, table, at, flat in tables(X, path[0], which, kernel, kernels, codes):
        left.append([part[~settled] for settled in _solve_stack(table, path, part, at, flat)])
        progress(len(part) * len(path))
    return [np.sort(np.concatenate(parts)) for parts in zip(*left, strict=True)]


def tables(X, duals: Duals, which, kernel: Kernel, kernels: list[Kernel] | None, codes) -> Iterator[tuple]:
    """(some machines, widest first, their table, (machine, row) of each of their variables in it, and in `duals`)."""
    width = np.diff(duals.ends)
    uses = Counter([kernel] * 2 if kernels is None else [kernels[t] for t in which])
    every = [prepared(X, own) if n > 1 else None for own, n in uses.items()]
    single = all(rows is not None and single_is_safe(X, rows.kernel) for rows in every)
    order = {own: k for k, own in enumerate(uses)}
    number = np.zeros(len(width), int) if kernels is None else np.array([order.get(own, -1) for own in kernels])
    layout, cells = None, int((width[which] ** 2).sum())
    if codes is not None and single and cells > MANY:
        layout = Classes(np.unique(duals.rows[_variables(duals, which)[2]]), codes)
        if len(which) * len(layout.rows) // layout.size > cells:  # classes of few rows: no kernel value is dear
            layout = None
    if layout and len(every) * layout.cells <= min(LARGEST, cells):
        values = layout.share(every, [prepared(X, own, np.float32) for own in uses])
        some = max(1, ROWS // width[which[0]])
        for part in np.split(which, range(some, len(which), some)):
            machine, _, flat = _variables(duals, part)
            across, local = layout.units(len(part), machine, duals.rows[flat])
            yield part, Table(*values, number[part], across, layout.size), (machine, local), flat
        return
    first = 0
    while first < len(which):
        w = max(1, int(width[which[first]]))
        part = which[first : first + max(1, min(CELLS // w**2, ROWS // w))]
        if kernels is not None:
            part = part[np.argsort(number[part], kind="stable")]
        machine, local, flat = _variables(duals, part)
        rows, K = np.zeros((len(part), w), int), kept("K", (len(part), w, w), float)
        rows[machine, local] = duals.rows[flat]
        for k, group in groupby(range(len(part)), number[part].__getitem__) if kernels else [(0, range(len(part)))]:
            t, *more = group
            if every[k]:
                every[k].squares(rows[t : t + 1 + len(more)], K[t : t + 1 + len(more)])
            else:
                n = width[part[t]]
                K[t] = 0.0
                K[t, :n, :n] = kernels[part[t]].square(X, rows[t, :n])
        yield part, apart(halves(K, single), K), (machine, local), flat
        first += len(part)


def _variables(duals: Duals, which) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each variable of the machines `which`: its machine's place there, its own in the machine, and in `duals`."""
    n = np.diff(duals.ends)[which]
    local = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return np.repeat(np.arange(len(which)), n), local, np.repeat(duals.ends[which], n) + local


def _solve_stack(table: Table, path: list[Duals], which: np.ndarray, at, flat: np.ndarray) -> Iterator[np.ndarray]:
    """Solve the machines of a table; for each Duals, which of them are settled."""
    s, p, u = np.ones(table.place.shape), np.zeros(table.place.shape), np.zeros(table.place.shape)
    s[at], p[at], n = path[0].s[flat], path[0].p[flat], np.diff(path[0].ends)[which]
    beta, settled, todo = np.zeros(s.shape), np.zeros(len(which), bool), np.arange(len(which))
    for k, duals in enumerate(path):
        if k:
            duals.take(path[k - 1], which)
        u[at] = duals.u[flat]
        if len(todo):
            steps, v = _solve(table, s, p, u, beta, todo, settled)
            alpha = (s * beta)[todo]
            noise = np.finfo(float).eps * alpha.sum(1) * table.diagonal[todo]
            c = measure((s * p - v)[todo], s[todo], p[todo], u[todo], alpha, noise=noise)
            duals.note(which[todo], c, steps, settled[todo])
        duals.alpha[flat] = (s * beta)[at]
        yield settled.copy()
        full = ((s * beta >= u) & (u > 0)).sum(1)
        todo = np.flatnonzero(~settled | (full > 0))
        beta[full > WARM * n] = 0.0


def _solve(table, s, p, u, beta, todo, settled) -> tuple[np.ndarray, np.ndarray]:
    """Solve the machines `todo` from their beta; it and `settled` change in place. Returns the steps of each, and v."""
    live, steps, v = todo, np.zeros(len(beta), int), np.zeros(beta.shape)
    for level in LEVELS:
        steps[live] += _descend(table, s, p, u, beta, live, level)
        beta[live], v[live], settled[live], rounds = exact(table, s[live], u[live], (s * p)[live], beta[live], live)
        steps[live] += rounds
        live = live[~settled[live]]
        if not len(live):
            break
    return steps[todo], v


def _descend(table, s, p, u, beta, live, level: float) -> np.ndarray:
    """Step 1 for the machines `live`, whose beta changes in place; returns the steps of each."""
    s, p, u, b = s[live], p[live], u[live], beta[live]
    lo, hi = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0)
    v = s * p - table.times(b, live) if b.any() else s * p
    v2 = np.where([b < hi, b > lo], v, [[[-np.inf]], [[np.inf]]]).astype(table.H.dtype)
    first = np.where(s > 0, p, 0.0).max(1) + np.where(s < 0, p, 0.0).max(1)
    limit = 50 + PATIENCE * (u > 0).sum(1)
    steps, _ = together(table.part(live), v2, b, lo, hi, level * first, limit)
    beta[live] = b
    return steps
