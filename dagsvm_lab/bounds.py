r"""The bounds of Platt, Cristianini and Shawe-Taylor (2000), symbol by symbol.

A DDAG on N classes has K = N(N-1)/2 nodes; node i separates the m training rows of its
two classes with margin gamma_i = min |<w, x> - theta|, |w| = 1 (section 3), which for a
hard-margin machine is 1/|w|. R is the radius of a ball that holds the support of the
distribution. With probability at least 1 - delta the error is at most

    Theorem 1   130 R^2/m (D' log(4em) log(4m) + log(2 (2m)^K / delta)),
                D' = sum_i 1/gamma_i^2
    Theorem 2   the same for the share of class j that is wrong, with the j-nodes only
                and (2m)^(N-1)
    Theorem 3   fat(gamma) <= min(R^2/gamma^2, n + 1) in n dimensions
    Lemma 4     eps(m, K, delta) = (D log(8m) + log(2^K / delta))/m,
                D = sum_i k_i log(4em/k_i),  k_i = fat(gamma_i/8)

Equation 3 takes Lemma 4 at delta/(2 m^K), with k_i <= 65 R^2/gamma_i^2 and
log(4em/k_i) <= log(4em). That gives

    (65 R^2 D' log(4em) log(8m) + log(2 (2m)^K / delta))/m;

the paper prints log(4m), and R^2 before both terms, so its form changes when all inputs
are multiplied by ten. Vapnik's lemma doubles it. `lemma4_uniform` is the form that the
lemma gives, `lemma4_observed` the sharpest that the proof allows, with the k_i
themselves. The paper does not say which logarithm it means; the argument (swapping
halves of a double sample: 2^-(eps m)) says base 2, hence `log_base`.
"""

from bisect import bisect_left
from collections.abc import Callable
from math import e, inf

import numpy as np

from .kernels import Kernel
from .rows import prepared
from .solvers.ball import ball_of


def D_prime(margins) -> float:
    """Return D' = sum_i 1 / gamma_i^2."""
    return float(np.sum(_applies(margins) ** -2.0))


def theorem1(
    margins, radius: float, m: float, delta: float, log_base: float | str = 2
) -> float:
    """Bound the error of a DDAG by Theorem 1 as printed.

    Parameters
    ----------
    margins : array-like
        gamma_i of the K nodes; all positive, for the theorem needs every node to
        separate its rows.
    radius, m, delta : float
        R of the ball, training rows, and the probability that the bound fails.
    log_base : float or "e"
        Base of all logarithms.

    Returns
    -------
    float
        The bound; above 1 it says nothing.

    Examples
    --------
    >>> round(theorem1([1.0, 1.0, 1.0], radius=1.0, m=10_000, delta=0.05), 1)
    10.6
    """
    log = _log(log_base)
    nodes = len(_applies(margins))
    union = log(2 / delta) + nodes * log(2 * m)
    growth = D_prime(margins) * log(4 * e * m) * log(4 * m)
    return 130 * radius**2 / m * (growth + union)


def theorem2(
    margins, radius: float, m: float, delta: float, log_base: float | str = 2
) -> float:
    """Bound P(x in class j and misclassified) by Theorem 2 as printed.

    `margins` are those of the N - 1 j-nodes, so that Theorem 1's K is N - 1.
    """
    return theorem1(margins, radius, m, delta, log_base)


def fat_shattering(
    gamma: float, radius: float, dimension: float | None = None
) -> float:
    """Bound fat(gamma) of unit hyperplanes on a ball by Theorem 3 as printed.

    With a threshold it is too small by one: a simplex of k points, k even, is shattered
    where R^2/gamma^2 = k - 1. For a margin around one level the bound is
    min(ceil(R^2/gamma^2), n) + 1 (Burges 1998).
    """
    if not gamma > 0:
        raise ValueError("gamma must be positive")
    most = inf if dimension is None else dimension + 1
    return float(min((radius / gamma) ** 2, most))


def lemma4(k, m: float, delta: float, log_base: float | str = 2) -> float:
    """Return Lemma 4's eps(m, K, delta).

    `k` are the fat-shattering dimensions k_i of the K nodes at gamma_i / 8.
    """
    log = _log(log_base)
    k = np.atleast_1d(np.asarray(k, dtype=float))
    if not ((k > 0) & (k < inf)).all():
        raise ValueError("every k_i must be positive and finite")
    D = sum(k_i * log(4 * e * m / k_i) for k_i in k)
    growth = D * log(8 * m)
    nodes = len(k) * log(2)
    return float((growth + nodes + log(1 / delta)) / m)


def lemma4_uniform(
    margins, radius: float, m: float, delta: float, log_base: float | str = 2
) -> float:
    """Bound the error as the proof of Theorem 1 does.

    With log(8m), and R^2 before D' alone, so that units do not matter.
    """
    log = _log(log_base)
    nodes = len(_applies(margins))
    union = log(2 / delta) + nodes * log(2 * m)
    D = 65 * radius**2 * D_prime(margins)
    growth = D * log(4 * e * m) * log(8 * m)
    return 2 / m * (growth + union)


def lemma4_observed(
    margins,
    radius: float,
    m: float,
    delta: float,
    log_base: float | str = 2,
    dimension: float | None = None,
) -> float:
    """Bound the error as sharply as the proof allows.

    Twice Lemma 4 at delta / (2 m^K), with k_i = fat(gamma_i / 8).
    """
    log = _log(log_base)
    # fat counts points, so the largest whole number under Theorem 3's bound (and its
    # rounding error) bounds it too
    bounds = [fat_shattering(g / 8, radius, dimension) for g in _applies(margins)]
    k = [max(1.0, np.floor(bound * (1 + 1e-12))) for bound in bounds]
    if max(k) > m:
        return inf  # no statement: k_i is at most m in the proof
    # log(1 / (delta / (2 m^K))), written out so that m^K cannot overflow
    smaller_delta = (log(2) + len(k) * log(m)) / m
    return 2 * (lemma4(k, m, delta, log_base) + smaller_delta)


def first_informative_m(
    margins,
    radius: float = 1.0,
    delta: float = 0.05,
    log_base: float | str = 2,
    bound: Callable = theorem1,
) -> int:
    """Find the smallest sample size m at which `bound` drops below 1, margins held."""

    def says_anything(m: int) -> bool:
        return bound(margins, radius, m, delta, log_base) < 1

    return 2 + bisect_left(range(2, 2**53), True, key=says_anything)


def enclosing_radius(K=None, *, X=None, kernel: Kernel | None = None) -> float:
    """Find the radius of the smallest ball in feature space that holds all rows.

    Given are the rows' kernel matrix K, or rows X and a kernel (by default linear).
    """
    if (K is None) == (X is None):
        raise ValueError("give either the kernel matrix K or rows X")
    if X is None:
        rows = prepared(K, Kernel("precomputed"))
    else:
        rows = prepared(X, kernel or Kernel("linear"))

    def columns(some) -> np.ndarray:
        return rows.block(slice(None), some)

    return ball_of(rows.diagonal(), columns)[0]


def _applies(margins) -> np.ndarray:
    """The margins, all positive: else the theorem does not apply."""
    margins = np.atleast_1d(np.asarray(margins, dtype=float))
    if not (margins > 0).all():
        raise ValueError(
            "the theorem does not apply: a node has a training error, so no positive "
            "margin"
        )
    return margins


def _log(base: float | str) -> Callable[[float], float]:
    """The logarithm to that base."""
    unit = np.log(e if base == "e" else float(base))
    if not unit > 0:
        raise ValueError("log_base must be greater than 1, or 'e'")
    return lambda x: float(np.log(x) / unit)
