r"""The finish of duals on which SMO gives up: low rank, equal rows, huge bounds.

    minimise  1/2 b'Kb - g'b   with  sum b = total,  lo <= b <= hi

(dual.py has b = s alpha, g = s p, total = 0; for active rows g and total hold what the
others contribute.) Where K is of low rank and C is huge, SMO takes millions of steps,
and the free variables of a solution are not unique. Here K = Z Z' by a pivoted Cholesky
factor (lowrank.py), Z centred, which the fixed sum allows. Interior points (inner.py)
come near the solution of the dual of Z Z', and the active set of vertex.py solves it.
What K - Z Z' makes of its b goes into g, and the active set again: the answer is K's,
not Z Z''s.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| hard_after(n) = 400 + 4 n | SMO steps | linear Segment, C = 100, 1000, and 3,000 |
| | | rows of Letter, C = 10: a quarter .93, .85, .77; four times 1.20, 1.52, 1.17 |
| CORRECTIONS = 4 | solves, each with the rest of K | Gaussian, gamma = .01, C = 1e9: |
| | | 1 leaves 7 to 20 times the noise, from 2 on it is 1 |
| ROWS_A_LINE = 2 | rows over the rank | fewer begin where SMO ended. White wine, |
| | | 4,898 rows, cubic (rank 363), C = 1, 100: all of them 3.9, 20 |
| BLOCK_COLUMNS = 256 | kernel columns computed at a time | memory alone |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .dual import Certificate, box, is_solved, measure, rounding, snap
from .inner import Machines, interior_points
from .lowrank import centred_factor
from .vertex import NEAR, ActiveSet

CORRECTIONS = 4
ROWS_A_LINE = 2
BLOCK_COLUMNS = 256


def hard_after(n: int) -> int:
    """SMO steps after which a dual of n rows counts as hard; most take fewer than n."""
    return 400 + 4 * n


def solve_hard(
    diagonal: np.ndarray,
    columns: Callable,
    s: np.ndarray,
    p: np.ndarray,
    u: np.ndarray,
    beta: np.ndarray,
    near: float = NEAR,
    factored: Callable | None = None,
    total: float = 0.0,
) -> np.ndarray | None:
    """beta of the best point found from a feasible one; None if the rank is too large.

    Parameters
    ----------
    diagonal : (n,) K_ii.
    columns : gives K[:, rows] in float64; asked for as many as the rank, and for the
        support vectors of each round.
    s, p, u : (n,) as in dual.py.
    beta : (n,) the start, which is given back where nothing better is found.
    near : violation, over the largest |p|, that is corrected no further; at 0 only
        what rounding leaves.
    factored : gives the factor of K from its diagonal and columns, or None where the
        rank is too large; by default `centred_factor`, whatever the rank.
    total : what beta sums to.
    """
    live = np.flatnonzero(u > 0)
    one_sign = len(np.unique(s[live])) < 2
    if one_sign and total == 0.0:  # zero is the only feasible point
        return np.zeros(len(s))
    factored = factored or centred_factor
    # (live, rank)
    Z = factored(diagonal[live], lambda rows: columns(live[rows])[live])
    if Z is None:
        return None

    def judged(beta: np.ndarray) -> _Judged:
        """What there is to know of a point, from K itself."""
        alpha = snap(np.clip(s * beta, 0.0, u), u)
        f = _times(columns, s * alpha)
        noise = float(rounding(diagonal, alpha))
        found = measure(f, s, p, u, alpha, noise=noise)
        solved = bool(is_solved(found.kkt_violation, near * np.abs(p).max(), noise))
        return _Judged(s * alpha, f, noise, found, solved)

    points = [judged(beta)]
    active = ActiveSet(Z, *box(s[live], u[live]), total)
    for k in range(CORRECTIONS):
        last = points[-1].beta[live]
        # what K - Z Z' makes of the last point goes into g
        beyond_Z = points[-1].f[live] - Z @ (Z.T @ last)
        g = (s * p)[live] - beyond_Z
        if k == 0 and total == 0.0:
            last = _from_inside(Z, s[live], g, u[live], last)
        found = np.zeros(len(s))
        found[live] = active.solve(g, last)
        points.append(judged(found))
        if points[-1].solved:
            break
    return _best(points, total).beta


def _from_inside(Z, s, g, u, beta) -> np.ndarray:
    """Nearly the solution, by interior points; `beta` where that does not pay."""
    n, rank = Z.shape
    if n < ROWS_A_LINE * rank or not np.isfinite(u).all():
        return beta
    lines = np.column_stack([s[:, None] * Z, s])
    found = interior_points(Machines(lines[None], (s * g)[None], u[None]))
    return s * found.x[0] if found.near[0] else beta


def _times(columns: Callable, beta: np.ndarray) -> np.ndarray:
    """K beta, from the columns of the support vectors, some at a time."""
    product = np.zeros(len(beta))
    support = np.flatnonzero(beta)
    for k in range(0, len(support), BLOCK_COLUMNS):
        part = support[k : k + BLOCK_COLUMNS]
        product += columns(part) @ beta[part]
    return product


@dataclass(frozen=True)
class _Judged:
    """What there is to know of a point.

    Attributes
    ----------
    beta, f : (n,) the point, and K beta.
    noise : what rounding leaves of a violation.
    certificate : of the point.
    solved : whether rounding is all that is left of its violation.
    """

    beta: np.ndarray
    f: np.ndarray
    noise: float
    certificate: Certificate
    solved: bool

    def objective(self, total: float) -> float:
        """The objective, without what it gains where b does not sum to `total`."""
        found = self.certificate
        return found.objective + found.bias * (float(self.beta.sum()) - total)


def _best(points: list[_Judged], total: float) -> _Judged:
    """The point of least violation, of those at the least objective up to rounding."""
    least = min(point.objective(total) for point in points)

    def order(point: _Judged) -> tuple:
        size = float(np.abs(point.beta).sum())
        rounded = 1e-12 * abs(least) + point.noise * size
        above = point.objective(total) > least + rounded
        return above, not point.solved, point.certificate.kkt_violation

    return min(points, key=order)
