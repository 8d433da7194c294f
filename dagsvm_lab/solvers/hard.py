r"""The finish of duals on which SMO gives up: low rank, equal rows, huge bounds.

    minimise  1/2 b'Kb - g'b   with  sum b = total,  lo <= b <= hi

(dual.py has b = s alpha, g = s p, total = 0; for active rows g and total hold what the
others contribute.) Where K is of low rank and C is huge, SMO takes millions of steps,
and the free variables of a solution are not unique. Here K = Z Z' by a pivoted Cholesky
factor (lowrank.py), Z centred, which the fixed sum allows, and the active set of
vertex.py solves the dual of Z Z'. In a long dual it begins from interior points
(inner.py), which come near the solution whatever C is. What K - Z Z' makes of its b
goes into g, and the active set again: the answer is K's, not Z Z''s.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| hard_after(n) = 400 + 4 n | SMO steps | linear Segment, C = 100, 1000, and 3,000 |
| | | rows of Letter, C = 10: a quarter .93, .85, .77; four times 1.20, 1.52, 1.17 |
| CORRECTIONS = 4 | solves, each with the rest of K | Gaussian, gamma = .01, C = 1e9: |
| | | 1 leaves 7 to 20 times the noise, from 2 on it is 1 |
| ROWS_A_LINE = 2 | rows over the rank | fewer begin where SMO ended. White wine, |
| | | 4,898 rows, cubic (rank 363), C = 1, 100: all of them 5.1, 27 |
| BLOCK_COLUMNS = 256 | kernel columns computed at a time | memory alone |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from .dual import box, is_solved, measure, rounding, snap
from .inner import Machines, interior_points
from .lowrank import centred_factor
from .vertex import NEAR, ActiveSet

CORRECTIONS = 4
ROWS_A_LINE = 2
BLOCK_COLUMNS = 256


def hard_after(n: int) -> int:
    """SMO steps after which a dual of n rows counts as hard; most take fewer than n."""
    return 400 + 4 * n


@dataclass(frozen=True)
class HardDual:
    """A dual whose kernel matrix is known by columns.

    Attributes
    ----------
    diagonal : (n,) K_ii.
    columns : gives K[:, rows] in float64; asked for as many as the rank, and for the
        support vectors of each round.
    s, p, u : (n,) as in dual.py.
    total : what beta sums to.
    """

    diagonal: np.ndarray
    columns: Callable
    s: np.ndarray
    p: np.ndarray
    u: np.ndarray
    total: float = 0.0

    @classmethod
    def of_matrix(cls, K: np.ndarray, s, p, u, total: float = 0.0) -> Self:
        """The dual on a whole matrix K."""
        return cls(np.diagonal(K), lambda rows: K[:, rows], s, p, u, total)

    def times(self, beta: np.ndarray) -> np.ndarray:
        """K beta, from the columns of the support vectors, some at a time."""
        product = np.zeros(len(beta))
        support = np.flatnonzero(beta)
        for k in range(0, len(support), BLOCK_COLUMNS):
            part = support[k : k + BLOCK_COLUMNS]
            product += self.columns(part) @ beta[part]
        return product

    def judged(self, beta: np.ndarray, near: float) -> "_Judged":
        """What K says of a point; `near` as of `solve_hard`."""
        alpha = snap(np.clip(self.s * beta, 0.0, self.u), self.u)
        beta = self.s * alpha
        f = self.times(beta)
        noise = float(rounding(self.diagonal, alpha))
        found = measure(f, self.s, self.p, self.u, alpha, noise=noise)
        tol = near * np.abs(self.p).max()
        solved = bool(is_solved(found.kkt_violation, tol, noise))
        # without what it gains where b does not sum to the total exactly
        beyond = float(beta.sum()) - self.total
        objective = found.objective + found.bias * beyond
        return _Judged(beta, f, noise, objective, found.kkt_violation, solved)


def solve_hard(
    dual: HardDual,
    beta: np.ndarray,
    near: float = NEAR,
    factored: Callable | None = None,
    inside: bool = False,
) -> np.ndarray | None:
    """beta of the best point found from a feasible one; None if the rank is too large.

    Parameters
    ----------
    dual : HardDual
    beta : (n,) the start, which is given back where nothing better is found.
    near : violation, over the largest |p|, that is corrected no further; at 0 only
        what rounding leaves.
    factored : gives the factor of K from its diagonal and columns, or None where the
        rank is too large; by default `centred_factor`, whatever the rank.
    inside : whether to begin from interior points, as pays for many rows; only where
        `total` is 0.
    """
    live = np.flatnonzero(dual.u > 0)
    s = dual.s[live]
    u = dual.u[live]
    if len(np.unique(s)) < 2 and dual.total == 0.0:  # zero is the only feasible point
        return np.zeros(len(beta))
    factored = factored or centred_factor
    # (live, rank)

    def columns(rows: np.ndarray) -> np.ndarray:
        """Kernel columns of some of the live rows, on the live rows."""
        whole = dual.columns(live[rows])
        return whole[live]

    Z = factored(dual.diagonal[live], columns)  # (live, rank)
    if Z is None:
        return None
    points = [dual.judged(beta, near)]
    active = ActiveSet(Z, *box(s, u), dual.total)
    for k in range(CORRECTIONS):
        last = points[-1].beta[live]
        # what K - Z Z' makes of the last point goes into g
        beyond_Z = points[-1].f[live] - Z @ (Z.T @ last)
        g = s * dual.p[live] - beyond_Z
        if inside and k == 0:
            last = _from_inside(Z, s, g, u, last)
        found = np.zeros(len(beta))
        found[live] = active.solve(g, last)
        points.append(dual.judged(found, near))
        # where K is not positive semidefinite, corrections lead nowhere
        halved = points[-1].violation < 0.5 * points[-2].violation
        if points[-1].solved or (k > 0 and not halved):
            break
    return _best(points).beta


def _from_inside(Z, s, g, u, beta) -> np.ndarray:
    """Nearly the solution, by interior points; `beta` where that does not pay."""
    n, rank = Z.shape
    if n < ROWS_A_LINE * rank or not np.isfinite(u).all():
        return beta
    lines = np.column_stack([s[:, None] * Z, s])
    found = interior_points(Machines(lines[None], (s * g)[None], u[None]))
    return s * found.x[0] if found.near[0] else beta


@dataclass(frozen=True)
class _Judged:
    """What there is to know of a point.

    Attributes
    ----------
    beta, f : (n,) the point, and K beta.
    noise : what rounding leaves of a violation.
    objective, violation : of the point.
    solved : whether its violation is at most `near`, or what rounding leaves.
    """

    beta: np.ndarray
    f: np.ndarray
    noise: float
    objective: float
    violation: float
    solved: bool


def _best(points: list[_Judged]) -> _Judged:
    """Of the points at the least objective, up to rounding, the best.

    That is a solved one, if there is any, and of these the one of least violation.
    """
    least = min(point.objective for point in points)

    def order(point: _Judged) -> tuple:
        size = float(np.abs(point.beta).sum())
        rounded = 1e-12 * abs(least) + point.noise * size
        above = point.objective > least + rounded
        return above, not point.solved, point.violation

    return min(points, key=order)
