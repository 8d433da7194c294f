r"""Small duals, whole and stacked: SMO for all machines at once, then all free variables at once, exactly.

A bank of small machines costs Python per machine, not arithmetic. Here the duals of dual.py stand in arrays (machines x
rows), their kernels in one (machines x rows x rows), and nothing is done machine by machine. For several values of C
(a path) a stack is made once; a machine with no alpha at its bound is that of every larger C, and one with few of them
starts from where it is.

1. SMO (steps.py), in float32 where that is safe, until the violation is a small share of the first one.
2. Newton's method on all free variables (newton.py), which ends at the exact solution, to the last digit.
3. What it does not settle goes on from the feasible point of step 1: SMO to a smaller share, Newton's method again.
   What is still open is given back (bank.py solves it one by one).

Tried and not kept: kernels of float32 with float64 where it matters (more code than time), Newton's method from
zero (Vowel: half of the machines go round in circles).

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
| SIMILAR = .7 | width over width | machines padded to one width for their kernels. Vowel: 1 1.05 |
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np

from ..kernels import Kernel, Rows, prepared, single_is_safe
from .dual import Duals, measure
from .newton import exact, times
from .steps import SLIGHT, together

SMALL = 700
LEVELS = (0.01, 0.0003, 0.00001)
PATIENCE = 1
CELLS = 1 << 21
ROWS = 1 << 16
SIMILAR = 0.7
WARM = 0.2


class _Memory(threading.local):
    """Arrays that a thread keeps from one call to the next: new memory costs more than computing what fills it."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}


_MEMORY = _Memory()


def _kept(name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of this shape with any content, in memory kept for `name`; at most CELLS values stay."""
    size = int(np.prod(shape))
    flat = _MEMORY.arrays.get(name)
    if flat is None or flat.size < size:
        flat = np.empty(size, dtype)
        if size <= CELLS:
            _MEMORY.arrays[name] = flat
    return flat[:size].reshape(shape)


def solve_small(X, kernel: Kernel, path: list[Duals], which, kernels: list[Kernel] | None = None, progress=int):
    """Solve the machines `which` of every Duals of a path exactly; returns those of each that step 2 could not settle.

    A path is of the same machines with growing bounds, which share kernel values. `kernels` holds each machine's own
    kernel, where they differ; `progress` is told how many duals are done.
    """
    width, uses = np.diff(path[0].ends), Counter([kernel] * 2 if kernels is None else [kernels[t] for t in which])
    every = {own: prepared(X, own) for own, n in uses.items() if n > 1}
    single = len(every) == len(uses) and all(single_is_safe(X, own) for own in every)
    number = {own: k for k, own in enumerate(uses)}
    which, left, first = which[np.argsort(-width[which], kind="stable")], [], 0
    while first < len(which):
        w = max(1, int(width[which[first]]))
        part = which[first : first + max(1, min(CELLS // w**2, ROWS // w))]
        if kernels is not None:
            part = part[np.argsort([number[kernels[t]] for t in part], kind="stable")]

        def stack(rows, n, part=part):
            return (
                stacked(every[kernel], rows, n)
                if kernels is None
                else apart(X, every, [kernels[t] for t in part], rows, n)
            )

        left.append([part[~settled] for settled in _solve_stack(stack, path, part, single)])
        first += len(part)
        progress(len(part) * len(path))
    return [np.sort(np.concatenate(parts)) for parts in zip(*left, strict=True)]


def _solve_stack(stack: Callable, path: list[Duals], which: np.ndarray, single: bool) -> Iterator[np.ndarray]:
    """Solve machines, widest first, whose kernels fit one stack; for each Duals, which of them are settled."""
    n = np.diff(path[0].ends)[which]
    inside = np.arange(n.max(initial=1)) < n[:, None]
    flat = (path[0].ends[which][:, None] + np.arange(inside.shape[1]))[inside]
    s, p, u, rows = np.ones(inside.shape), np.zeros(inside.shape), np.zeros(inside.shape), np.zeros(inside.shape, int)
    s[inside], p[inside], rows[inside] = path[0].s[flat], path[0].p[flat], path[0].rows[flat]
    K = stack(rows, n)
    H, diagonal = _halves(K, single), np.abs(np.diagonal(K, 0, 1, 2)).max(1, initial=0.0)
    beta, settled, todo = np.zeros(s.shape), np.zeros(len(which), bool), np.arange(len(which))
    for k, duals in enumerate(path):
        if k:
            duals.take(path[k - 1], which)
        u[inside] = duals.u[flat]
        if len(todo):
            steps = _solve(H, K, s, p, u, beta, todo, settled)
            alpha = (s * beta)[todo]
            noise = np.finfo(float).eps * alpha.sum(1) * diagonal[todo]
            c = measure(times(K, beta[todo], todo), s[todo], p[todo], u[todo], alpha, noise=noise)
            duals.note(which[todo], c, steps, settled[todo])
        duals.alpha[flat] = (s * beta)[inside]
        yield settled.copy()
        full = ((s * beta >= u) & (u > 0)).sum(1)
        todo = np.flatnonzero(~settled | (full > 0))
        beta[full > WARM * n] = 0.0


def _solve(H, K, s, p, u, beta, todo, settled) -> np.ndarray:
    """Solve the machines `todo` from their beta; it and `settled` change in place. Returns the steps of each."""
    live, steps = todo, np.zeros(len(beta), int)
    for level in LEVELS:
        steps[live] += _descend(H, K, s, p, u, beta, live, level)
        beta[live], _, settled[live], rounds = exact(K, s[live], u[live], (s * p)[live], beta[live], live)
        steps[live] += rounds
        live = live[~settled[live]]
        if not len(live):
            break
    return steps[todo]


def _halves(K: np.ndarray, single: bool) -> np.ndarray:
    """H_ij = (K_ii + K_jj) / 2 - K_ij of steps.py; of a Gaussian in float32 where that is safe."""
    if single:
        H = np.subtract(1.0, K, out=_kept("H", K.shape, np.float32), casting="same_kind")
        return np.add(H, SLIGHT, out=H)
    half = 0.5 * np.diagonal(K, 0, 1, 2)
    return half[:, :, None] + half[:, None, :] - K


def stacked(every: Rows, rows: np.ndarray, n: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Kernel matrices of the first n[t] of rows[t], zeros beyond; machines of similar width go together."""
    K, first = _kept("K", (*rows.shape, rows.shape[1]), float) if out is None else out, 0
    if n.min() > SIMILAR * n.max():
        return every.squares(rows, K)
    K[:] = 0.0
    while first < len(n):
        w = n[first]
        last = first + max(1, int(np.searchsorted(-n[first:], -SIMILAR * w)))
        K[first:last, :w, :w] = every.squares(rows[first:last, :w])
        first = last
    return K


def apart(X, every: dict[Kernel, Rows], kernels: list[Kernel], rows: np.ndarray, n: np.ndarray) -> np.ndarray:
    """As `stacked`, each machine with its own kernel; those of one kernel in `every` stand together, widest first."""
    K = _kept("K", (*rows.shape, rows.shape[1]), float)
    for kernel, group in groupby(range(len(n)), kernels.__getitem__):
        first, *more = group
        own = slice(first, first + 1 + len(more))
        if kernel in every:
            found = stacked(every[kernel], rows[own], n[own], part := K[own])
            if found is not part:
                part[:] = found
        else:
            k = n[first]
            K[first] = 0.0
            K[first, :k, :k] = kernel.square(X, rows[first, :k])
    return K


def _descend(H, K, s, p, u, beta, live, level: float) -> np.ndarray:
    """Step 1 for the machines `live`, whose beta changes in place; returns the steps of each."""
    s, p, u, b = s[live], p[live], u[live], beta[live]
    lo, hi = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0)
    v = s * p - times(K, b, live) if b.any() else s * p
    v2 = np.where([b < hi, b > lo], v, [[[-np.inf]], [[np.inf]]]).astype(H.dtype)
    first = np.where(s > 0, p, 0.0).max(1) + np.where(s < 0, p, 0.0).max(1)
    limit = 50 + PATIENCE * (u > 0).sum(1)
    steps, _ = together(H if len(live) == len(H) else H[live], v2, b, lo, hi, level * first, limit)
    beta[live] = b
    return steps
