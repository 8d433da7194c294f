r"""The dual that every two-class machine solves, and the certificate of a solution.

    minimise  1/2 sum_ij a_i a_j s_i s_j K_ij - sum_i p_i a_i   with  sum_i s_i a_i = 0,  0 <= a_i <= u_i

is the dual of

    minimise  1/2 |w|^2 + sum_i u_i xi_i   with  s_i (<w, x_i> + b) >= p_i - xi_i,  xi_i >= 0,

with w = sum_i s_i a_i x_i. A support vector machine has p = 1 and u = C. The posterior-probability machine
(Tao et al. 2005) with soft label y in [-1, 1] has s = sign y, p = |y|, u = C / |y|; a label of 0 drops out.

With beta = s a, f = K beta and v = s p - f, a feasible point is optimal when max over I_up of v is at most
min over I_low of v (Keerthi et al. 2001); what is missing is `kkt_violation`, the quantity LIBSVM stops on.
Weak duality makes `gap` = primal + dual objective >= 0 whenever K is positive semidefinite.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """Objectives, gap and largest KKT violation of a feasible point, all in float64."""

    objective: float
    primal_objective: float
    gap: float
    kkt_violation: float
    bias: float


@dataclass(frozen=True)
class Dual:
    """A solution of the dual: `alpha` and `bias`, its certificate, and how it was reached.

    `objective` is the minimised 1/2 a'Qa - p'a (LIBSVM's `obj`), so `gap` = `primal_objective` + `objective`.
    """

    alpha: np.ndarray
    bias: float
    objective: float
    primal_objective: float
    gap: float
    kkt_violation: float
    n_iter: int
    converged: bool
    linear: np.ndarray
    upper: np.ndarray


def problem(y, C=1.0, linear=None, upper=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(s, p, u) of the dual: signs, linear term (default |y|), bounds (default C / |y|, 0 where y is 0)."""
    y = np.asarray(y, dtype=float)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise ValueError("y must be a vector of finite labels: +-1, or soft labels in [-1, 1]")
    soft = np.abs(y)
    p = soft.copy() if linear is None else np.array(np.broadcast_to(linear, y.shape), dtype=float)
    if upper is None:
        with np.errstate(divide="ignore"):
            u = np.where(soft > 0, np.broadcast_to(C, y.shape) / soft, 0.0)
    else:
        u = np.where(soft > 0, np.broadcast_to(upper, y.shape), 0.0).astype(float)
    if not (np.isfinite(p).all() and (u >= 0).all()):
        raise ValueError("linear must be finite, and C and upper must not be negative")
    return np.where(y < 0, -1.0, 1.0), p, u


def product(K, beta: np.ndarray) -> np.ndarray:
    """K beta in float64, whatever K's precision; K may also be an object that has `@`, or only gives rows."""
    if hasattr(K, "__matmul__") and not isinstance(K, np.ndarray):
        return np.asarray(K @ beta, dtype=float)
    if not isinstance(K, np.ndarray):
        return sum((beta[i] * np.asarray(K[i], dtype=float) for i in np.flatnonzero(beta)), np.zeros(len(beta)))
    if K.dtype == np.float64:
        return K @ beta
    support = np.flatnonzero(beta)
    f = np.zeros(len(K))
    for part in np.array_split(support, max(1, len(support) // 256)):  # no float64 copy of the whole matrix
        f += K[:, part].astype(float) @ beta[part]
    return f


def rounding(K, alpha: np.ndarray) -> float:
    """Size of the rounding error in K beta: a slack below it is no slack."""
    diagonal = np.diagonal(K) if isinstance(K, np.ndarray) else K.diagonal()
    return float(np.finfo(float).eps * alpha.sum() * np.abs(diagonal).max(initial=0.0))


def measure(f, s, p, u, alpha, bias: float | None = None, noise: float = 0.0) -> Certificate:
    """Certificate of `alpha`, where f = K beta; the bias is the mean over free vectors, else the midpoint."""
    v = s * p - f
    below, above = alpha < u, alpha > 0
    up = np.where(s > 0, below, above)
    low = np.where(s > 0, above, below)
    top, bottom = v[up].max(initial=-np.inf), v[low].min(initial=np.inf)
    violation = max(top - bottom, 0.0) if up.any() and low.any() else 0.0
    if bias is None:
        free = below & above
        ends = [end for end in (top, bottom) if np.isfinite(end)]
        bias = v[free].mean() if free.any() else sum(ends) / max(len(ends), 1)
    dual = 0.5 * ((s * alpha) @ f) - p @ alpha
    # primal + dual, term by term so that nothing cancels: (u - a) xi + a max(0, -slack)
    slack = s * (v - bias)
    slack[np.abs(slack) <= np.minimum(noise, 1e-6 * np.abs(p))] = 0.0
    room = np.multiply(u - alpha, slack, where=slack > 0, out=np.zeros(len(u)))
    gap = room.sum() - alpha @ np.minimum(slack, 0.0)
    return Certificate(float(dual), float(gap - dual), float(gap), float(violation), float(bias))


def build(K, s, p, u, alpha, n_iter: int, converged: bool) -> Dual:
    """The `Dual` of `alpha`, certified against K in float64."""
    c = measure(product(K, s * alpha), s, p, u, alpha, noise=rounding(K, alpha))
    return Dual(alpha, c.bias, c.objective, c.primal_objective, c.gap, c.kkt_violation, n_iter, converged, p, u)


def certify(K, y, dual: Dual) -> Certificate:
    """Certificate of `dual` recomputed from kernel and labels alone; its own bias is the one judged."""
    s, alpha = np.where(np.asarray(y) < 0, -1.0, 1.0), dual.alpha
    if (alpha < 0).any() or (alpha > dual.upper).any() or abs(s @ alpha) > 1e-9 * alpha.sum():
        raise ValueError("alpha is not feasible: it leaves its box, or sum s alpha is not 0")
    f = product(K, s * alpha)
    return measure(f, s, dual.linear, dual.upper, alpha, dual.bias, rounding(K, alpha))


def warn(message: str) -> None:
    """None; issues a ConvergenceWarning, never silence."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=3)
