r"""The dual that every two-class machine solves, and the certificate of a solution.

    minimise  1/2 sum_ij a_i a_j s_i s_j K_ij - sum_i p_i a_i
    with      sum_i s_i a_i = 0,  0 <= a_i <= u_i

is the dual of

    minimise  1/2 |w|^2 + sum_i u_i xi_i
    with      s_i (<w, x_i> + b) >= p_i - xi_i,  xi_i >= 0,

with w = sum_i s_i a_i x_i. A support vector machine has p = 1 and u = C. The
posterior-probability machine (Tao et al. 2005) with soft label y in [-1, 1] has
s = sign y, p = |y|, u = C / |y|; a label of 0 drops out.

With beta = s a, f = K beta and v = s p - f, a feasible point is optimal when max over
I_up of v is at most min over I_low of v (Keerthi et al. 2001); what is missing is
`kkt_violation`, the quantity LIBSVM stops on. Weak duality makes
`gap` = primal + dual objective >= 0 whenever K is positive semidefinite.

Rounding alone leaves violations of about `rounding`; a point is `converged` when its
violation is at most tol, or at most four times that.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

EPS = float(np.finfo(float).eps)
LARGEST_BOUND = 1e100  # bounds beyond count as it: the square of all must be a number
EXACT = 1e-11  # of the largest |s p| (newton.py: or |v|): a violation that is none
AT_BOUND = 1e-12  # of a bound: an alpha so near to it is at it,
OF_SUM = 2 * EPS  # and so near, of the sum of all and the root of their number
SUPPORT_BLOCK = 256  # support vectors taken at a time, so that float32 stays small
# what Duals keep of a Certificate
CERTIFICATE = ("bias", "objective", "gap", "kkt_violation")


@dataclass(frozen=True)
class Certificate:
    """What float64 says of a feasible point, or arrays of it for a stack of points."""

    objective: float
    primal_objective: float
    gap: float
    kkt_violation: float
    bias: float


@dataclass(frozen=True)
class Dual:
    """A solution: `alpha` and `bias`, its certificate, and how it was reached.

    `objective` is the minimised 1/2 a'Qa - p'a (LIBSVM's `obj`), so
    `gap` = `primal_objective` + `objective`.
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
    """The duals of many machines end to end: machine t has ends[t] : ends[t + 1].

    Attributes
    ----------
    ends : ndarray of shape (n_machines + 1,)
    rows : flat indices of training rows, ascending within a machine.
    s, p, u : flat, the duals as at the top.
    alpha : flat, the solution.
    bias, objective, gap, kkt_violation, n_iter, converged : one a machine.
    """

    ends: np.ndarray
    rows: np.ndarray
    s: np.ndarray
    p: np.ndarray
    u: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.ends) - 1
        self.alpha = np.zeros(len(self.rows))
        self.n_iter = np.zeros(n, int)
        self.converged = np.zeros(n, bool)
        self.bias, self.objective, self.gap, self.kkt_violation = np.zeros((4, n))

    def part(self, t: int) -> slice:
        """Where machine t's entries are."""
        return slice(self.ends[t], self.ends[t + 1])

    def times(self, C) -> Self:
        """The same machines, unsolved, with C (a number, or one a machine) times u."""
        factor = np.asarray(C, float)
        if factor.ndim:
            factor = np.repeat(factor, np.diff(self.ends))
        factor = np.minimum(factor, LARGEST_BOUND)
        upper = np.minimum(self.u, LARGEST_BOUND) * factor
        upper = np.minimum(upper, LARGEST_BOUND)
        return Duals(self.ends, self.rows, self.s, self.p, upper)

    def copy_stats(self, before: Self, which) -> None:
        """Take all but alpha of the machines `which` from Duals of the same ones."""
        for name in ("n_iter", "converged", *CERTIFICATE):
            getattr(self, name)[which] = getattr(before, name)[which]

    def store_solution(self, t: int, dual: Dual) -> None:
        """Keep a solution of machine t."""
        self.alpha[self.part(t)] = dual.alpha
        self.store_stats(t, dual, dual.n_iter, dual.converged)

    def store_stats(self, t, certificate, n_iter, converged) -> None:
        """Keep all but alpha of machine t, or of several."""
        self.n_iter[t] = n_iter
        self.converged[t] = converged
        for name in CERTIFICATE:
            getattr(self, name)[t] = getattr(certificate, name)


def starts(length: np.ndarray) -> np.ndarray:
    """Where pieces of these lengths begin, which are end to end."""
    return np.cumsum(length) - length


def span(first: np.ndarray, length: np.ndarray, k: int) -> slice:
    """Where the k-th of some pieces is."""
    return slice(first[k], first[k] + length[k])


def ranges(first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """first[0], first[0] + 1, ... (length[0] of them), first[1], ... end to end."""
    shift = first - starts(length)
    return np.arange(length.sum()) + np.repeat(shift, length)


def box(s: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lo, hi) of beta = s alpha, where 0 <= alpha <= u."""
    bound = s * u
    return np.minimum(bound, 0.0), np.maximum(bound, 0.0)


def problem(
    y, C=1.0, linear=None, upper=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(s, p, u) of the dual; if not given, p is |y|, u is C / |y| or 0 where y is 0."""
    y = np.asarray(y, dtype=float)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise ValueError(
            "y must be a vector of finite labels: +-1, or soft labels in [-1, 1]"
        )
    soft = np.abs(y)
    if linear is None:
        linear = soft
    try:
        p = np.array(np.broadcast_to(linear, y.shape), float)
        bound = np.asarray(C if upper is None else upper, float)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(
            "C, linear and upper must be numbers that fit a float, one or one a row"
        ) from None
    u = np.broadcast_to(bound, y.shape)
    if upper is None:
        with np.errstate(all="ignore"):  # where y is 0 there is no number: u is 0 there
            u = u / soft
    u = np.where(soft > 0, u, 0.0).astype(float)
    if not (np.isfinite(p).all() and (u >= 0).all()):
        raise ValueError("linear must be finite, and C and upper must not be negative")
    s = np.where(y < 0, -1.0, 1.0)
    # an infinite bound stays one: there is none
    capped = np.where(np.isinf(u), u, np.minimum(u, LARGEST_BOUND))
    return s, p, capped


def check_tol(tol) -> None:
    """Refuse a tolerance that no solution could meet, or any would."""
    if not 0.0 < tol < np.inf:
        raise ValueError(f"tol must be a positive number; got {tol!r}")


def matrix(K, y) -> np.ndarray:
    """K as an array, if it is the finite kernel matrix of as many rows as y has."""
    K = np.asarray(K)
    n = len(y)
    if K.shape != (n, n) or not np.isfinite(K).all():
        raise ValueError(
            f"K must be a finite matrix of {n} x {n} kernel values, not {K.shape}"
        )
    return K


def product(K: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """K beta in float64, whatever K's precision."""
    if K.dtype == np.float64:
        return K @ beta
    f = np.zeros(len(K))
    support = np.flatnonzero(beta)
    for k in range(0, len(support), SUPPORT_BLOCK):
        part = support[k : k + SUPPORT_BLOCK]
        f += K[:, part].astype(float) @ beta[part]
    return f


def rounding(diagonal: np.ndarray, alpha: np.ndarray):
    """What rounding leaves of a violation: eps max|K_ii| sum(alpha); or of a stack."""
    largest = np.abs(diagonal).max(-1, initial=0.0)
    return EPS * largest * np.abs(alpha).sum(-1)


def is_solved(violation, tol, noise):
    """Whether a violation counts as none: the one meaning of `converged`."""
    return violation <= np.maximum(tol, 4.0 * noise)


def snap(alpha: np.ndarray, u: np.ndarray) -> np.ndarray:
    """alpha with those within rounding of a bound at it, so that none counts as free.

    Where bounds are huge, the largest alpha stands for them. The sum s'alpha = 0 holds
    up to rounding alone: what that leaves to a bound does not count either.
    """
    near = AT_BOUND * np.minimum(u, alpha.max(-1, initial=0.0, keepdims=True))
    terms = np.count_nonzero(alpha, axis=-1, keepdims=True)
    of_sum = OF_SUM * np.sqrt(terms) * alpha.sum(-1, keepdims=True)
    near = np.maximum(near, of_sum)
    alpha = np.where(alpha <= near, 0.0, alpha)
    return np.where(u - alpha <= near, u, alpha)


def measure(f, s, p, u, alpha, bias=None, noise=0.0) -> Certificate:
    """Certificate of `alpha` where f = K beta, or of each row of a stack of them.

    Arrays are (rows,), or (duals, rows); `bias` and `noise` a number, or one a dual.
    The bias is the mean of v over free rows, else the midpoint of what the bounded ones
    allow. A row with p = u = 0 has no say.
    """
    v = s * p - f
    below = alpha < u
    above = alpha > 0
    top, bottom = _extremes(v, s, below, above)
    both = np.isfinite(top) & np.isfinite(bottom)  # else no pair of rows can move
    violation = np.maximum(np.where(both, top - bottom, 0.0), 0.0)
    if bias is None:
        bias = _bias(v, below & above, np.array([top, bottom]))
    bias = np.asarray(bias, float)
    noise = np.asarray(noise, float)
    quadratic = 0.5 * (s * alpha * f).sum(-1)
    dual = quadratic - (p * alpha).sum(-1)
    slack = s * (v - bias[..., None])
    gap = _gap(slack, p, u, alpha, noise)
    numbers = [np.asarray(x) for x in (dual, gap - dual, gap, violation, bias)]
    return Certificate(*(x if x.ndim else float(x) for x in numbers))


def _extremes(v, s, below: np.ndarray, above: np.ndarray) -> tuple:
    """Largest v where beta may rise, and least where it may fall.

    alpha is `below` its bound, and `above` zero.
    """
    may_rise = np.where(s > 0, below, above)
    may_fall = np.where(s > 0, above, below)
    top = np.where(may_rise, v, -np.inf).max(-1, initial=-np.inf)
    return top, np.where(may_fall, v, np.inf).min(-1, initial=np.inf)


def _gap(slack: np.ndarray, p, u, alpha, noise: np.ndarray) -> np.ndarray:
    """primal + dual, term by term so that nothing cancels.

    slack = p - s (f + bias) is xi where a row falls short of its margin, and below 0
    beyond it. The terms are (u - a) xi + a max(0, -slack). A slack of at most `noise`,
    and of at most 1e-6 |p|, is none.
    """
    none = np.minimum(noise[..., None], 1e-6 * np.abs(p))
    slack = np.where(np.abs(slack) <= none, 0.0, slack)
    # u may be infinite, and 0 times it is no number
    short = np.multiply(u - alpha, slack, where=slack > 0, out=np.zeros_like(slack))
    beyond = alpha * np.minimum(slack, 0.0)
    return short.sum(-1) - beyond.sum(-1)


def _bias(v: np.ndarray, free: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The mean of v over free rows; without any, the middle of the ends that exist."""
    count = free.sum(-1)
    mean = v.sum(-1, where=free) / np.maximum(count, 1)
    exist = np.isfinite(ends)
    in_all = np.where(exist, ends, 0.0).sum(0)
    middle = in_all / np.maximum(exist.sum(0), 1)
    return np.where(count > 0, mean, middle)


def judge(K: np.ndarray, s, p, u, alpha, bias=None) -> Certificate:
    """Certificate of `alpha` on the kernel matrix K."""
    noise = rounding(np.diagonal(K), alpha)
    return measure(product(K, s * alpha), s, p, u, alpha, bias, noise)


def build(K, s, p, u, alpha, n_iter: int, tol: float) -> Dual:
    """The `Dual` of `alpha`, its values at their bounds, certified against K."""
    alpha = snap(alpha, u)
    found = judge(K, s, p, u, alpha)
    noise = rounding(np.diagonal(K), alpha)
    converged = bool(is_solved(found.kkt_violation, tol, noise))
    how = dict(n_iter=n_iter, converged=converged, linear=p, upper=u)
    return Dual(alpha, **vars(found), **how)


def certify(K, y, dual: Dual) -> Certificate:
    """Certificate of `dual` from kernel and labels alone, its own bias judged."""
    s = np.where(np.asarray(y) < 0, -1.0, 1.0)
    alpha = dual.alpha
    outside = (alpha < 0).any() or (alpha > dual.upper).any()
    if outside or abs(s @ alpha) > 1e-9 * alpha.sum():
        raise ValueError(
            "alpha is not feasible: it leaves its box, or sum s alpha is not 0"
        )
    return judge(K, s, dual.linear, dual.upper, alpha, dual.bias)


def warn(message: str) -> None:
    """Issue a ConvergenceWarning."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=3)
