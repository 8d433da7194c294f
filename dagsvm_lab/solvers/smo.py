"""One dual on a kernel matrix: Platt's SMO (1999) with second-order steps (steps.py) and shrinking.

After every round: sum beta = 0, lo <= beta <= hi, and v = s p - K beta is exact on all rows. Inside a round v is kept
only on the active rows; those that rest at a bound and pull outwards are left out (shrinking, Joachims 1999), and all
of them are judged afresh before the dual counts as solved.

A dual whose C is huge on a kernel of low rank can take millions of steps. One of at most EXACT rows that takes more
than `patience` is finished by linear systems instead (active.py), or by interior points (qp.py) where these go round
in circles.
"""

import numpy as np

from .active import finish
from .dual import Dual, build, judge, matrix, problem, product, warn
from .qp import solve_qp
from .steps import lean

EXACT = 400  # rows; beyond, a system of all free rows costs more than the steps that it saves
ROUNDING = 1e-12  # difference of two objectives over their size that says nothing
ROOM = 1 << 25  # values of rows of H kept by one dual


def solve_smo(K, y, C=1.0, tol: float = 1e-3, *, linear=None, upper=None, max_iter: int = -1) -> Dual:
    """Solve one two-class machine on a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training rows.
    y : ndarray of shape (n,)
        Labels: +-1, or soft labels in [-1, 1], of which 0 drops out.
    C : float, default 1.0
        Bound of the dual variables.
    tol : float, default 1e-3
        Largest KKT violation that counts as solved.
    linear, upper : ndarray of shape (n,), optional
        The terms p and u of the dual (dual.py), where they do not follow from y and C.
    max_iter : int, default -1
        Limit of the steps; -1 for none.

    Returns
    -------
    Dual
        The solution with its certificate; a ConvergenceWarning where it is above `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from dagsvm_lab import solve_smo
    >>> dual = solve_smo(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1, 1]), C=10)
    >>> dual.alpha.round(3).tolist(), round(dual.objective, 3)
    ([0.5, 0.5], -0.5)
    """
    dual = smo(matrix(K, y).astype(float, copy=False), *problem(y, C, linear, upper), tol, max_iter)
    if not dual.converged:
        warn(f"SMO stopped after {dual.n_iter} steps at a violation of {dual.kkt_violation:.2g}, above tol={tol}")
    return dual


def smo(K: np.ndarray, s, p, u, tol: float, max_iter: int = -1) -> Dual:
    """The Dual of (s, p, u) on the matrix K, converged or not."""
    lo, hi, beta = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0), np.zeros(len(s))
    half, steps = 0.5 * np.diagonal(K), 0
    limit, hard = limits(len(s), max_iter)
    active = everything = np.flatnonzero(u > 0)
    stop, objective, stalled = np.inf, np.inf, 0  # stop: the violation that the round before aimed at
    v = s * p
    while True:
        part = v[active], beta[active], lo[active], hi[active]
        top, bottom = ends(*part)
        if stop <= 0.9 * tol:  # the rows left are solved: unshrink, and judge every row afresh
            v = s * p - product(K, beta)
            last, objective = objective, -0.5 * float(beta @ (v + s * p))
            stalled = 0 if objective < last - ROUNDING * abs(objective) else stalled + 1
            active, stop = everything, np.inf
            continue
        if stop < np.inf:
            active = active[~resting(*part, max(top - bottom, tol))]
        elif top - bottom <= tol or steps >= limit or stalled > 3:
            return build(K, s, p, u, np.clip(s * beta, 0.0, u), steps, bool(top - bottom <= tol))
        stop = max(0.9 * tol, 0.1 * min(top - bottom, stop))
        b, v2 = beta[active], twice(v[active], beta[active], lo[active], hi[active])

        def row(i: int, rows=active) -> np.ndarray:
            """H of the active row i."""
            return half[rows[i]] + half[rows] - K[rows[i]][rows]

        room = max(8, ROOM // max(1, len(s)))
        steps += lean(row, v2, b, lo[active], hi[active], stop, min(limit, hard) - steps, room)
        beta[active], v[active] = b, once(v2)
        if hard <= steps < limit:
            beta, hard, stop = settle(K, s, p, u, beta), limit, 0.0
            limit = min(limit, 10 * steps) if len(s) <= EXACT else limit


def ends(v: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[float, float]:
    """(max v over the rows that may rise, min v over those that may fall)."""
    return np.where(b < hi, v, -np.inf).max(initial=-np.inf), np.where(b > lo, v, np.inf).min(initial=np.inf)


def resting(v: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray, margin: float) -> np.ndarray:
    """Which rows rest: those at a bound that pull outwards by `margin` more than any violator pulls inwards."""
    top, bottom = ends(v, b, lo, hi)
    high, low = max(top, bottom) + margin, min(top, bottom) - margin
    return ((b >= hi) & (v > high)) | ((b <= lo) & (v < low))


def twice(v: np.ndarray, b: np.ndarray, lo: np.ndarray, hi: np.ndarray, dtype=float) -> np.ndarray:
    """The two copies of v that steps.py works on: -inf where b may not rise, and inf where it may not fall."""
    return np.array([np.where(b < hi, v, -np.inf), np.where(b > lo, v, np.inf)], dtype)


def once(v2: np.ndarray) -> np.ndarray:
    """v of its two copies."""
    return np.where(np.isfinite(v2[0]), v2[0], v2[1])


def limits(n: int, max_iter: int) -> tuple[float, float]:
    """(steps that a dual of n rows may take, steps after which it counts as hard)."""
    return max_iter if max_iter > 0 else max(10_000_000, 100 * n), 4000 + 40 * n if n <= EXACT else np.inf


def settle(K: np.ndarray, s, p, u, beta) -> np.ndarray:
    """beta finished in its free variables by linear systems, or solved exactly where those go round in circles.

    Of points whose objectives differ by rounding alone, that with the least violation is taken.
    """

    def judged(alpha):
        return judge(K, s, p, u, alpha), alpha

    found = [judged(s * beta), judged(finish(K, s, p, u, s * beta))]
    if found[1][0].kkt_violation > 1e-9 * np.abs(p).max():
        try:
            found.append(judged(solve_qp(K, s, linear=p, upper=u).alpha))
        except (ValueError, ArithmeticError):  # K is not positive semidefinite
            pass
    least = min(c.objective for c, _ in found)
    best = [(c, alpha) for c, alpha in found if c.objective <= least + ROUNDING * abs(least)]
    return s * min(best, key=lambda one: one[0].kkt_violation)[1]
