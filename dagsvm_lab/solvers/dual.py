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
from typing import Self

import numpy as np

LARGEST = 1e100  # finite bounds on alpha beyond it are taken for it, and all of a bank's: its square must be a number
NUMBERS = ("bias", "objective", "gap", "kkt_violation")


@dataclass(frozen=True)
class Certificate:
    """Objectives, gap and largest KKT violation of a feasible point in float64, or arrays of them for a stack."""

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


@dataclass
class Duals:
    """The duals of many machines end to end: machine t has the entries ends[t] : ends[t + 1] of the flat arrays.

    Attributes
    ----------
    ends : ndarray of shape (n_machines + 1,)
    rows : flat indices of training rows, ascending within a machine; s, p, u : flat, as at the top.
    alpha : flat, the solution; bias, objective, gap, kkt_violation, n_iter, converged : one a machine.
    """

    ends: np.ndarray
    rows: np.ndarray
    s: np.ndarray
    p: np.ndarray
    u: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.ends) - 1
        self.alpha, self.n_iter, self.converged = np.zeros(len(self.rows)), np.zeros(n, int), np.zeros(n, bool)
        self.bias, self.objective, self.gap, self.kkt_violation = np.zeros((4, n))

    def part(self, t: int) -> slice:
        """Where machine t's entries are."""
        return slice(self.ends[t], self.ends[t + 1])

    def times(self, C) -> Self:
        """The same machines, not solved yet, with C times the bounds; C is a number, or one a machine."""
        factor = np.minimum(np.asarray(C, float) if np.ndim(C) == 0 else np.repeat(C, np.diff(self.ends)), LARGEST)
        return Duals(self.ends, self.rows, self.s, self.p, np.minimum(np.minimum(self.u, LARGEST) * factor, LARGEST))

    def take(self, before: Self, which) -> None:
        """Take the numbers of the machines `which`, all but their alpha, from Duals of the same machines."""
        for name in ("n_iter", "converged", *NUMBERS):
            getattr(self, name)[which] = getattr(before, name)[which]

    def keep(self, t: int, dual: Dual) -> None:
        """Keep a solution of machine t."""
        self.alpha[self.part(t)] = dual.alpha
        self.note(t, dual, dual.n_iter, dual.converged)

    def note(self, t, certificate, n_iter, converged) -> None:
        """Keep the numbers of machine t, or of several."""
        self.n_iter[t], self.converged[t] = n_iter, converged
        for name in NUMBERS:
            getattr(self, name)[t] = getattr(certificate, name)


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
    return np.where(y < 0, -1.0, 1.0), p, np.where(np.isinf(u), u, np.minimum(u, LARGEST))


def matrix(K, y) -> np.ndarray:
    """K as an array, if it is the finite kernel matrix of as many rows as y has."""
    K = np.asarray(K)
    if K.shape != (len(y),) * 2 or not np.isfinite(K).all():
        raise ValueError(f"K must be a finite matrix of {len(y)} x {len(y)} kernel values, not {K.shape}")
    return K


def product(K: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """K beta in float64, whatever K's precision."""
    if K.dtype == np.float64:
        return K @ beta
    support = np.flatnonzero(beta)
    parts = np.array_split(support, max(1, len(support) // 256))  # no float64 copy of the whole matrix
    return sum((K[:, part].astype(float) @ beta[part] for part in parts), np.zeros(len(K)))


def measure(f, s, p, u, alpha, bias=None, noise=0.0) -> Certificate:
    """Certificate of `alpha`, where f = K beta, or of each row of a stack of them (a row with p = u = 0 has no say).

    The bias is the mean of v over free rows, else the midpoint of what the bounded ones allow.
    """
    v = s * p - f
    below, above = alpha < u, alpha > 0
    up, low = np.where(s > 0, below, above), np.where(s > 0, above, below)
    top, bottom = np.where(up, v, -np.inf).max(-1, initial=-np.inf), np.where(low, v, np.inf).min(-1, initial=np.inf)
    violation = np.maximum(np.where(np.isfinite(top) & np.isfinite(bottom), top - bottom, 0.0), 0.0)
    if bias is None:
        free = below & above
        count = free.sum(-1)
        ends = np.array([top, bottom])
        held = np.isfinite(ends)
        middle = np.where(held, ends, 0.0).sum(0) / np.maximum(held.sum(0), 1)
        bias = np.where(count > 0, v.sum(-1, where=free) / np.maximum(count, 1), middle)
    bias, noise = np.asarray(bias, float), np.asarray(noise, float)
    dual = 0.5 * (s * alpha * f).sum(-1) - (p * alpha).sum(-1)
    # primal + dual, term by term so that nothing cancels: (u - a) xi + a max(0, -slack)
    slack = s * (v - bias[..., None])
    slack[np.abs(slack) <= np.minimum(noise[..., None], 1e-6 * np.abs(p))] = 0.0
    room = np.multiply(u - alpha, slack, where=slack > 0, out=np.zeros_like(slack))
    gap = room.sum(-1) - (alpha * np.minimum(slack, 0.0)).sum(-1)
    numbers = dual, gap - dual, gap, violation, bias
    return Certificate(*(n if n.ndim else float(n) for n in map(np.asarray, numbers)))


def judge(K: np.ndarray, s, p, u, alpha, bias=None) -> Certificate:
    """Certificate of `alpha` on the kernel matrix K; a slack below the rounding error of K beta is no slack."""
    noise = np.finfo(float).eps * alpha.sum() * np.abs(np.diagonal(K)).max(initial=0.0)
    return measure(product(K, s * alpha), s, p, u, alpha, bias, noise)


def build(K, s, p, u, alpha, n_iter: int, converged: bool) -> Dual:
    """The `Dual` of `alpha`, certified against K in float64."""
    how = dict(n_iter=n_iter, converged=converged, linear=p, upper=u)
    return Dual(alpha, **vars(judge(K, s, p, u, alpha)), **how)


def certify(K, y, dual: Dual) -> Certificate:
    """Certificate of `dual` recomputed from kernel and labels alone; its own bias is the one judged."""
    s, alpha = np.where(np.asarray(y) < 0, -1.0, 1.0), dual.alpha
    if (alpha < 0).any() or (alpha > dual.upper).any() or abs(s @ alpha) > 1e-9 * alpha.sum():
        raise ValueError("alpha is not feasible: it leaves its box, or sum s alpha is not 0")
    return judge(K, s, dual.linear, dual.upper, alpha, dual.bias)


def warn(message: str) -> None:
    """Issue a ConvergenceWarning."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=3)
