r"""Exact programs by interior points (cvxopt): the general dual and the smallest enclosing ball.

Both, and the direct multiclass duals of direct.py, are one program,

    minimise  1/2 x'Px + q'x   with  Ax = b,  0 <= x <= u   (u_j may be infinite),

whose Newton step needs one matrix only: eliminating the multipliers of the bounds leaves

    [ P + D  A' ] [dx]   [r]
    [ A      0  ] [dy] = [t],        D diagonal and positive,

so cvxopt is given its own KKT solver, and P is never handed to it.

General dual (dual.py): x = alpha, P = ss' o K, q = -p, A = s', b = 0. As s'alpha = 0, K may be centred.
Ball of radius R around sum_i c_i phi(x_i): R^2 = max sum_i c_i K_ii - c'Kc over c >= 0, sum c = 1
    (Schoelkopf, Burges, Vapnik 1995).

Interior points leave every alpha strictly inside its bounds. A bound is taken as active when its multiplier exceeds its
slack, both scaled to order 1; from there active.py goes on to the exact solution.

Reference: Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import linalg

from .active import bordered, finish
from .dual import Dual, build, matrix, problem, warn


def centred(K) -> np.ndarray:
    """The kernel matrix in float64, symmetric, with the mean of the phi(x_i) moved to 0."""
    K = np.asarray(K, float)
    K = (K + K.T) / 2
    mean = K.mean(axis=0)
    return K - mean - mean[:, None] + mean.mean()


def _solver(M: np.ndarray, D: np.ndarray) -> Callable:
    """Function that solves with M + D, D diagonal and positive; a ridge of rounding size where it is just short."""
    M[np.diag_indices_from(M)] += D
    for ridge in (0.0, 1e-14, 1e-12):
        try:
            M[np.diag_indices_from(M)] += ridge * np.abs(np.diagonal(M)).mean()
            L = linalg.cho_factor(M, lower=True)
            return lambda r: linalg.cho_solve(L, r)
        except linalg.LinAlgError:
            pass
    raise ArithmeticError("singular Newton matrix")


def interior_point(K, right, scale: float, sign, q, A, b, upper, tol: float) -> tuple:
    """(x, at lower bound, at upper bound, steps) of the program at the top.

    P has one block on its diagonal for each row s of `sign`: scale ss' o K. `right` is K or its transpose.
    """
    from cvxopt import matrix, solvers

    n, capped = len(q), np.flatnonzero(np.isfinite(upper))
    cap = upper[capped]

    def hessian(x, _):  # P x
        return scale * (sign * ((sign * x.reshape(sign.shape)) @ right)).ravel()

    def bounds(x, trans="N"):  # G x: rows -x <= 0 and x / u <= 1, so that every right side is of order one
        if trans == "N":
            return np.concatenate([-x, x[capped] / cap])
        out = -x[:n]
        out[capped] += x[n:] / cap
        return out

    def operator(function):
        def apply(x, y, alpha=1.0, beta=0.0, trans="N"):
            y[:] = matrix(alpha * function(_vector(x), trans) + beta * _vector(y))

        return apply

    def solver(D):  # what solves with P + D
        pairs = zip(sign, D.reshape(sign.shape), strict=True)
        inverses = [_solver(scale * K * np.outer(s, s), d) for s, d in pairs]

        def solve(r):
            parts = zip(inverses, r.reshape(*sign.shape, -1), strict=True)
            return np.concatenate([inverse(part) for inverse, part in parts]).reshape(r.shape)

        return solve

    options = {"show_progress": False, "maxiters": 100, "refinement": 2}
    options |= {"abstol": 1e-15, "reltol": tol / 10, "feastol": 1e-11}
    h = np.concatenate([np.zeros(n), np.ones(len(cap))])
    equal = operator(lambda v, trans: A @ v if trans == "N" else A.T @ v)
    program = operator(hessian), matrix(q), operator(bounds), matrix(h), None, equal, matrix(np.asarray(b, float))
    try:
        out = solvers.coneqp(*program, kktsolver=_newton(solver, A, bounds, cap, capped), options=options)
    except ValueError:  # its first factorisation failed
        raise ValueError("the matrix of the program is not positive semidefinite") from None
    x, slack, z = _vector(out["x"]), _vector(out["s"]), _vector(out["z"])
    at_upper = np.zeros(n, dtype=bool)
    at_upper[capped] = z[n:] / cap > slack[n:] * cap
    return x, z[:n] > slack[:n], at_upper, out["iterations"]


def _vector(v) -> np.ndarray:
    return np.array(v).ravel()


def _newton(solver: Callable, A: np.ndarray, bounds: Callable, cap: np.ndarray, capped: np.ndarray) -> Callable:
    """The function that cvxopt calls for its Newton steps, by the system at the top."""
    from cvxopt import matrix

    def kkt(W):
        di = _vector(W["di"])
        w = di * di
        D = w[: A.shape[1]].copy()
        D[capped] += w[A.shape[1] :] / cap**2
        solve = solver(D)
        columns = solve(A.T)
        schur = linalg.lu_factor(A @ columns)

        def step(x, y, z):
            bz = _vector(z)
            r = _vector(x) + bounds(w * bz, "T")
            if not np.isfinite(r).all():  # an unbounded program: cvxopt stops with the point it has
                raise ArithmeticError("overflow")
            t = solve(r)
            dy = linalg.lu_solve(schur, A @ t - _vector(y))
            dx = t - columns @ dy
            x[:], y[:], z[:] = matrix(dx), matrix(dy), matrix(di * (bounds(dx) - bz))

        return step

    return kkt


def solve_qp(K, y, C=1.0, tol: float = 1e-9, *, linear=None, upper=None) -> Dual:
    """Solve the dual exactly, by interior points.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    y : ndarray of shape (n,)
        Labels: +-1, or soft labels in [-1, 1].
    C : float, default 1.0
        Bound of the dual variables.
    tol : float, default 1e-9
        Largest gap, relative to the objective, that counts as solved.
    linear, upper : ndarray of shape (n,), optional
        The terms p and u of the dual (dual.py), where they do not follow from y and C.

    Returns
    -------
    Dual
        The solution with its certificate; a ConvergenceWarning where its gap is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from dagsvm_lab import solve_qp
    >>> solve_qp(np.array([[1.0, -1.0], [-1.0, 1.0]]), [-1, 1], C=0.25).alpha.tolist()
    [0.25, 0.25]
    """
    s, p, u = problem(y, C, linear, upper)
    K = matrix(K, y)
    single, K = K.dtype == np.float32, K.astype(float, copy=False)
    live = np.flatnonzero(u > 0)
    alpha = np.zeros(len(s))
    if len(np.unique(s[live])) < 2:  # one sign only: zero is the only feasible point
        return build(K, s, p, u, alpha, 0, True)
    gram = centred(K[np.ix_(live, live)])
    convex, smooth = _convex(gram, single)
    polish, size = gram if convex else smooth, np.abs(p[live]).max() or 1.0
    natural = size / (smooth.diagonal().mean() or 1.0)
    best, rank = None, (True, np.inf)  # a point whose alphas do not sum to zero is worse than any other
    for t in scales(natural, u[live][np.isfinite(u[live])].max(initial=0.0) or natural):
        alpha[live], steps = _solve_scaled(polish, smooth, s[live], p[live], u[live], t, size, tol)
        done = build(K, s, p, u, alpha.copy(), steps, convex)
        mine = bool(abs(s @ alpha) > 1e-9 * alpha.sum()), done.gap
        if best is None or mine < rank:
            best, rank = done, mine
        if not rank[0] and best.gap <= tol * abs(best.objective):
            break
    else:
        best = replace(best, converged=False)
    if not best.converged:
        why = "badly conditioned, or not separable"
        if smooth is not gram:
            why = "the kernel is not positive semidefinite" + (" beyond its rounding" if convex else "")
        warn(f"solve_qp: duality gap {best.gap:.2e} at objective {best.objective:.6g} ({why})")
    return best


def scales(natural: float, bound: float) -> list[float]:
    """Sizes of alpha to try: that of a separable problem, that of one at its bounds, and between."""
    return [bound] if bound <= natural else [natural, np.sqrt(natural * bound), bound]


def _solve_scaled(gram, smooth, s, p, u, t, size, tol) -> tuple[np.ndarray, int]:
    """(alpha, steps) through x = alpha / t and an objective of order one; `smooth` is convex, `gram` polishes."""
    sign = s[None]
    x, low, high, steps = interior_point(smooth, smooth.T, t / size, sign, -p / size, sign, [0.0], u / t, tol)
    alpha = np.where(high, u, np.where(low, 0.0, t * x))
    if abs(s @ alpha) > 1e-9 * alpha.sum():  # too few are free to make up for what the others were moved
        alpha = np.clip(t * x, 0.0, u)
    return finish(gram, s, p, u, alpha), steps


def _convex(K: np.ndarray, single: bool) -> tuple[bool, np.ndarray]:
    """(whether the matrix is positive semidefinite up to its precision, its positive part)."""
    trace = np.trace(K) + np.finfo(float).tiny

    def positive(share):
        try:
            np.linalg.cholesky(K + share * trace * np.eye(len(K)))
            return True
        except np.linalg.LinAlgError:
            return False

    if positive(1e-15):
        return True, K
    values, vectors = np.linalg.eigh(K)
    return positive(1e-5 if single else 1e-10), (vectors * np.maximum(values, 0.0)) @ vectors.T


def enclosing_ball(K, tol: float = 1e-9) -> tuple[float, np.ndarray]:
    """(radius, centre) of the smallest ball around phi(x_1..n): the centre is sum_i c_i phi(x_i)."""
    K = np.asarray(K)
    return ball_of(np.diagonal(K).astype(float), lambda rows: K[:, rows].astype(float), tol)


def ball_of(diagonal, columns: Callable, tol: float = 1e-9, batch: int = 200) -> tuple[float, np.ndarray]:
    """`enclosing_ball` from K's diagonal and a function that gives its columns, when K need not exist.

    A ball around a few points grows by those farthest outside it until it holds all. It encloses every
    point, and is at most `tol` (relative) larger than the smallest.
    """
    work, centre, inner = np.argsort(-diagonal, kind="stable")[:1], np.ones(1), 0.0
    while True:
        block = columns(work)
        square = centre @ block[work] @ centre
        distance = diagonal - 2 * (block @ centre) + square
        outer = max(distance.max(), 0.0)
        beyond = np.setdiff1d(np.flatnonzero(distance > inner + tol * outer), work, assume_unique=True)
        if len(beyond) == 0 or outer <= np.finfo(float).eps * np.abs(diagonal).max():
            c = np.zeros(len(diagonal))
            c[work] = centre
            return float(np.sqrt(outer)), c
        # points that hold the ball stay; the square radius grows every round, so no set comes back
        keep = work[centre > 0]
        work = np.concatenate([keep, beyond[np.argsort(-distance[beyond], kind="stable")[:batch]]])
        centre, inner = _ball(columns(work)[work], tol)


def _ball(K, tol) -> tuple[np.ndarray, float]:
    """(c, square radius) of the smallest ball around all the points of K, by one program."""
    gram = centred(K)  # moving every point alike moves the ball only
    diagonal, one = gram.diagonal(), np.ones((1, len(K)))
    kappa = diagonal.mean()
    if kappa <= np.finfo(float).eps * np.abs(np.diagonal(K)).max():
        return np.full(len(K), 1 / len(K)), 0.0
    free = np.full(len(K), np.inf)
    c, low, _, _ = interior_point(gram, gram.T, 2 / kappa, one, -diagonal / kappa, one, [1.0], free, tol)
    c[low] = 0.0
    c /= c.sum()
    # the points that hold the ball are equally far from its centre: that they are exactly, if it can be had
    F = np.flatnonzero(~low)
    exact = np.zeros(len(K))
    exact[F] = np.maximum(bordered(2 * gram[np.ix_(F, F)], diagonal[F], 1.0)[0], 0.0)

    def squares(c):
        """(square radius of the ball around c, square radius that none can be below)."""
        moment = gram @ c
        return (diagonal - 2 * moment).max() + c @ moment, diagonal @ c - c @ moment

    if abs(exact.sum() - 1) < 1e-12 and np.subtract(*squares(exact)) < np.subtract(*squares(c)):
        c = exact
    return c, float(squares(c)[1])
