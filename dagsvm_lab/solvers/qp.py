r"""The dual by interior points, exactly: cvxopt's program, then the vertex nearest by.

    minimise  1/2 x'Px - p'x   with  s'x = 0,  0 <= x <= u        (dual.py; x = alpha)

with P = ss' o K, K centred, which s'x = 0 allows. Interior points leave every alpha
strictly inside its bounds; from there hard.py goes on to the exact solution. Nothing
but `solver="qp"` and `solve_qp` comes here: cvxopt need not be installed for the rest.

Reference: Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010).
"""

from dataclasses import replace

import numpy as np

from .dual import Dual, box, build, check_tol, matrix, problem, warn
from .hard import HardDual, solve_hard
from .vertex import balanced

# of cvxopt, which is to go as far as float64 lets it
OPTIONS = {
    "show_progress": False,
    "maxiters": 100,
    "abstol": 1e-12,
    "reltol": 1e-12,
    "feastol": 1e-12,
}


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
        Largest KKT violation that counts as solved, over the largest |p|.
    linear, upper : ndarray of shape (n,), optional
        The terms p and u of the dual (dual.py), where they do not follow from y and C.

    Returns
    -------
    Dual
        The solution with its certificate; a ConvergenceWarning where it is not solved.

    Examples
    --------
    >>> import numpy as np
    >>> from dagsvm_lab import solve_qp
    >>> K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> solve_qp(K, [-1, 1], C=0.25).alpha.tolist()
    [0.25, 0.25]
    """
    check_tol(tol)
    s, p, u = problem(y, C, linear, upper)
    K = matrix(K, y)
    single = K.dtype == np.float32
    K = K.astype(float, copy=False)
    live = np.flatnonzero(u > 0)
    beta = np.zeros(len(s))
    if len(np.unique(s[live])) < 2:  # one sign only: zero is the only feasible point
        return build(K, s, p, u, beta, 0, tol)
    gram = centred(K[np.ix_(live, live)])
    convex, gram = positive_part(gram, single)
    # in units of the largest |p|
    size = float(np.abs(p).max()) or 1.0
    linear_live = p[live] / size
    upper_live = u[live] / size
    beta[live], steps = _interior_points(gram, s[live], linear_live, upper_live)
    start = size * beta
    beta = solve_hard(HardDual.of_matrix(K, s, p, u), start, near=0.0)
    dual = build(K, s, p, u, s * beta, steps, tol * size)
    if dual.converged and convex:
        return dual
    _warn_unsolved(dual, convex)
    return replace(dual, converged=False)


def _warn_unsolved(dual: Dual, convex: bool) -> None:
    """Issue a ConvergenceWarning that says what is missing, and perhaps why."""
    why = "badly conditioned, or not separable"
    if not convex:
        why = "the kernel is not positive semidefinite"
    warn(
        f"solve_qp: KKT violation {dual.kkt_violation:.2e}, duality gap "
        f"{dual.gap:.2e} at objective {dual.objective:.6g} ({why})"
    )


def centred(K) -> np.ndarray:
    """The kernel matrix, symmetric, with the mean of the phi(x_i) moved to 0."""
    K = np.asarray(K, float)
    K = (K + K.T) / 2
    mean = K.mean(axis=0)
    return K - mean - mean[:, None] + mean.mean()


def positive_part(K: np.ndarray, single: bool) -> tuple[bool, np.ndarray]:
    """(whether K is positive semidefinite up to its precision, its positive part)."""
    values, vectors = np.linalg.eigh(K)  # the least value first
    share = 1e-5 if single else 1e-10
    size = np.trace(K) + np.finfo(float).tiny
    convex = bool(values[0] >= -share * size)
    return convex, (vectors * np.maximum(values, 0.0)) @ vectors.T


def _interior_points(gram, s, p, u) -> tuple[np.ndarray, int]:
    """(beta, steps) by cvxopt, in x = alpha / scale: x and the objective are near 1."""
    try:
        from cvxopt import matrix as dense
        from cvxopt import solvers, sparse, spdiag
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'solver="qp" needs cvxopt: pip install "dagsvm-lab[qp]"', name=missing.name
        ) from None

    n = len(s)
    scale = _scale(gram, u)
    P = dense(scale * gram * np.outer(s, s))
    # G x <= h: -x <= 0, and x scale / u <= 1 where there is a bound
    capped = np.flatnonzero(np.isfinite(u))
    floors = spdiag([-1.0] * n)
    caps = sparse(dense(np.eye(n)[capped] * (scale / u)))
    G = sparse([floors, caps])
    h = dense(np.concatenate([np.zeros(n), np.ones(len(capped))]))
    # A x = b: s'x = 0
    A = dense(s[None])
    b = dense(0.0)
    try:
        out = solvers.qp(P, dense(-p), G, h, A, b, options=OPTIONS)
    except (ValueError, ArithmeticError):  # it has no solution, or none in float64
        return np.zeros(n), 0
    lo, hi = box(s, u)
    beta = scale * s * np.array(out["x"]).ravel()
    return balanced(beta, lo, hi, 0.0), out["iterations"]


def _scale(gram: np.ndarray, u: np.ndarray) -> float:
    """That of alpha in a separable problem, or the largest bound where that is less."""
    mean = float(gram.diagonal().mean())
    separable = 1.0 / mean if mean > 0 else np.inf
    scale = min(float(u.max()), separable)
    return scale if np.isfinite(scale) else 1.0
