r"""Duals of linear machines of few inputs: interior points, then one exact step.

    minimise 1/2 |Z'b|^2 - (s p)'b   with  sum b = 0,  0 <= x <= u       (b = s x)

Where a kernel value is a product z_i.z_j of short vectors, all that a dual of n rows
decides is w = Z'b and the bias: d + 1 numbers. Steps of SMO do not see that, and take
the longer the larger C is. About twenty steps of inner.py, each of n d^2
multiplications, find all but the last digits; the active set of vertex.py begins there,
and seldom has a step to take.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| FEW_INPUTS = 32 | inputs | more take interior points only where there are MANY_ROWS |
| | | for them. Optdigits, 64 inputs and 760 rows a pair: always 3.7 |
| MANY_ROWS = 1/4 | of the inputs squared | 64 inputs that overlap, 4,000 rows, C = 1, |
| | | 100: SMO 24, 32; 128 inputs, 6,000 rows: 25, 31 |
| MOST_INPUTS = 256 | inputs | memory: two copies of the rows |
| ROWS_TOGETHER = 2^14 | rows stacked at once | Letter: a quarter 1.26, a half 1.04 |
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from joblib import cpu_count, effective_n_jobs

from ..kernels import Kernel, squared
from .dual import Duals, box, is_solved, measure, rounding, snap
from .inner import Machines, interior_points
from .search import Settings
from .vertex import ActiveSet

FEW_INPUTS = 32
MANY_ROWS = 0.25
MOST_INPUTS = 256
ROWS_TOGETHER = 1 << 14


def solve_narrow(
    X,
    kernels: list[Kernel],
    duals: Duals,
    which: np.ndarray,
    settings: Settings,
) -> np.ndarray:
    """Solve those of the machines `which` that are linear and narrow, in place.

    The numbers are the same whatever n_jobs.

    Parameters
    ----------
    X : the training rows.
    kernels : each machine's kernel, or the one of all.
    duals : all machines.
    which : indices of machines.
    settings : their `tol`, `n_jobs` and `progress` count.

    Returns
    -------
    ndarray
        The machines that are left to other means.
    """
    done = np.zeros(len(duals.bias), bool)
    linear = []
    if X.shape[1] <= MOST_INPUTS:
        linear = list(_coordinates(X, kernels, which))
    if not linear:
        return which
    jobs = min(effective_n_jobs(settings.n_jobs), cpu_count())
    with ThreadPoolExecutor(jobs) as pool:
        each = pool.map if jobs > 1 else map
        for Z, own in linear:
            narrow = [_is_narrow(duals, t, Z.shape[1]) for t in own]
            stacks = list(_stacks(duals, own[narrow]))
            # stacks share no machine: threads may take them
            solve = partial(_solve_stack, Z, duals, tol=settings.tol)
            for part, solved in zip(stacks, each(solve, stacks), strict=True):
                done[part] = solved
                settings.progress(int(solved.sum()))
    return which[~done[which]]


def _coordinates(
    X, kernels: list[Kernel], which: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each kernel whose values are products of vectors: these, and its machines."""
    if len(kernels) == 1:
        machines_of = {kernels[0]: which}
    else:
        machines_of = {}
        for t in which.tolist():
            machines_of.setdefault(kernels[t], []).append(t)
    for kernel, machines in machines_of.items():
        Z = kernel.coordinates(X)
        if Z is not None:
            yield Z, np.asarray(machines)


def _is_narrow(duals: Duals, t: int, d: int) -> bool:
    """Whether machine t has rows enough for d inputs, finite bounds and both signs."""
    part = duals.part(t)
    u = duals.u[part]
    s = duals.s[part][u > 0]
    few = d <= FEW_INPUTS or len(s) >= MANY_ROWS * d**2
    both = (s > 0).any() and (s < 0).any()
    return bool(few and both and np.isfinite(u).all())


def _stacks(duals: Duals, which: np.ndarray) -> Iterator[np.ndarray]:
    """Machines of similar length, about ROWS_TOGETHER rows together."""
    length = np.diff(duals.ends)
    order = which[np.argsort(-length[which], kind="stable")]
    first = 0
    while first < len(order):
        some = max(1, ROWS_TOGETHER // int(length[order[first]]))
        yield order[first : first + some]
        first += some


def _solve_stack(
    Z: np.ndarray, duals: Duals, which: np.ndarray, tol: float
) -> np.ndarray:
    """Solve some machines, in place; which of them are solved."""
    parts = [duals.part(t) for t in which]
    rows = [Z[duals.rows[part]] for part in parts]
    centres = [own.mean(axis=0) for own in rows]
    # b sums to 0, so that K of centred rows is as good
    centred = [own - centre for own, centre in zip(rows, centres, strict=True)]
    found = interior_points(_stacked(duals, parts, centred))
    solved = found.near.copy()  # from far away the active set would take long
    for k in np.flatnonzero(found.near):
        x = found.x[k, : len(rows[k])]
        steps = int(found.steps[k])
        solved[k] = _finish(duals, which[k], x, steps, centred[k], centres[k], tol)
    return solved


def _finish(
    duals: Duals, t: int, x, steps: int, rows: np.ndarray, centre: np.ndarray, tol
) -> bool:
    """Bring machine t from x to the exact solution, in place; whether it is one.

    `rows` are its own, centred, and `steps` those taken before.
    """
    part = duals.part(t)
    s = duals.s[part]
    p = duals.p[part]
    u = duals.u[part]
    active = ActiveSet(rows, *box(s, u))
    beta = active.solve(s * p, s * x)
    alpha = snap(np.clip(s * beta, 0.0, u), u)
    w = rows.T @ (s * alpha)
    f = rows @ w + centre @ w  # of the rows as they are, which the bias is for
    noise = float(rounding(squared(rows + centre), alpha))
    certificate = measure(f, s, p, u, alpha, noise=noise)
    solved = bool(is_solved(certificate.kkt_violation, tol, noise))
    duals.alpha[part] = alpha
    duals.store_stats(t, certificate, steps + active.steps, solved)
    return solved


def _stacked(duals: Duals, parts: list[slice], rows: list[np.ndarray]) -> Machines:
    """The machines of these parts, with these coordinates, padded to one length."""
    shape = len(parts), max(len(own) for own in rows)
    A = np.zeros((*shape, rows[0].shape[1] + 1))
    p = np.zeros(shape)
    u = np.full(shape, 2.0)
    for k, (part, own) in enumerate(zip(parts, rows, strict=True)):
        n = len(own)
        moves = duals.u[part] > 0  # the others are held at 0, and fill up
        s = np.where(moves, duals.s[part], 0.0)
        A[k, :n, :-1] = s[:, None] * own
        A[k, :n, -1] = s
        p[k, :n] = np.where(moves, duals.p[part], 0.0)
        u[k, :n] = np.where(moves, duals.u[part], 2.0)
    return Machines(A, p, u)
