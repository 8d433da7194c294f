"""Tests and intervals: on one set's rows, over many sets, and for laws of growth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv
from scipy.stats import (
    binomtest,
    chi2,
    friedmanchisquare,
    rankdata,
    spearmanr,
    studentized_range,
    t,
)

NORMAL = 1.959964  # the normal distribution's 97.5 % quantile


def binomial_interval(
    hits: int, n: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper-Pearson limits, in per cent, of a share seen in `hits` of `n` cases.

    >>> low, high = binomial_interval(98, 100)
    >>> round(low, 2), round(high, 2)
    (92.96, 99.76)
    """
    tail = (1 - confidence) / 2
    low = 0.0
    high = 1.0
    if hits > 0:
        low = betaincinv(hits, n - hits + 1, tail)
    if hits < n:
        high = betaincinv(hits + 1, n - hits, 1 - tail)
    return 100 * float(low), 100 * float(high)


def mcnemar(a_wrong: np.ndarray, b_wrong: np.ndarray) -> dict[str, float]:
    """McNemar's test on the rows that only one of two methods gets wrong.

    `p_exact` is the exact binomial test; `p_corrected` is chi-square with Edwards'
    correction, (|a - b| - 1)^2 / (a + b).
    """
    a = int(np.sum(a_wrong & ~b_wrong))
    b = int(np.sum(b_wrong & ~a_wrong))
    n = a + b
    exact = binomtest(a, n).pvalue if n else 1.0
    apart = max(abs(a - b) - 1, 0)
    statistic = apart**2 / max(n, 1)
    corrected = chi2.sf(statistic, 1)
    return {
        "only_a_wrong": a,
        "only_b_wrong": b,
        "p_exact": float(exact),
        "p_corrected": float(corrected),
    }


def corrected_interval(
    gain: Sequence[float], test_over_train: float
) -> tuple[float, float, float]:
    """Mean gain over J splits that share rows, and its 95 % limits.

    The variance of the mean is (1/J + m/n) s^2 for m test and n training rows (Nadeau
    and Bengio 2003). The limits are infinite for one split, whose spread is unknown.

    >>> [round(v, 3) for v in corrected_interval([1.0, 2.0, 3.0], 0.25)]
    [2.0, -1.286, 5.286]
    """
    gain = np.asarray(gain, dtype=float)
    mean = float(gain.mean())
    J = len(gain)
    if J < 2:
        return mean, -np.inf, np.inf
    variance = (1 / J + test_over_train) * gain.var(ddof=1)
    quantile = t.ppf(0.975, J - 1)
    wide = float(quantile * np.sqrt(variance))
    return mean, mean - wide, mean + wide


def rank_correlation(
    x: Sequence[float], y: Sequence[float]
) -> tuple[float, float, float]:
    """Spearman's correlation and its 95 % limits.

    Fisher's z, arctanh r, has the variance (1 + r^2 / 2) / (n - 3) (Bonett 2000).

    >>> x = [1, 2, 3, 4, 5, 6, 7]
    >>> [round(v, 3) for v in rank_correlation(x, [1, 2, 3, 4, 5, 7, 6])]
    [0.964, 0.674, 0.997]
    """
    r = float(spearmanr(x, y).statistic)
    n = len(x)
    if n < 4:
        return r, -1.0, 1.0
    if not abs(r) < 1:
        return r, r, r
    z = np.arctanh(r)
    variance = (1 + r * r / 2) / (n - 3)
    wide = NORMAL * np.sqrt(variance)
    low = np.tanh(z - wide)
    high = np.tanh(z + wide)
    return r, float(low), float(high)


def sign_interval(better: int, worse: int) -> tuple[float, float, float]:
    """By how much cases better outweigh cases worse, from -1 to 1; ties are left out.

    With the exact 95 % limits.

    >>> [round(v, 2) for v in sign_interval(9, 1)]
    [0.8, 0.11, 0.99]
    """
    n = better + worse
    outweighs = (better - worse) / max(n, 1)
    low, high = binomial_interval(better, n)  # of the share better, in per cent
    return outweighs, low / 50 - 1, high / 50 - 1


class Ranks(NamedTuple):
    """Mean ranks (1 is best), Friedman's statistic and p, Nemenyi's difference."""

    mean: np.ndarray
    statistic: float
    p: float
    critical_difference: float


def ranks(table: np.ndarray, level: float = 0.05) -> Ranks:
    """Friedman's test and Nemenyi's difference for `table` (sets, systems).

    Smaller is better (Demsar 2006). Two mean ranks differ if they are
    q sqrt(k (k + 1) / 6 N) apart, for k systems and N sets.
    """
    table = np.asarray(table, dtype=float)
    N, k = table.shape
    mean = rankdata(table, axis=1).mean(axis=0)
    test = friedmanchisquare(*table.T)
    q = studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
    deviation = np.sqrt(k * (k + 1) / (6 * N))  # of a difference of two mean ranks
    return Ranks(mean, float(test.statistic), float(test.pvalue), float(q * deviation))


def cliques(mean: np.ndarray, difference: float) -> list[np.ndarray]:
    """The largest groups of systems whose mean ranks are within `difference`.

    They are the bars of a Nemenyi diagram.

    >>> [group.tolist() for group in cliques(np.array([1.0, 3.5, 2.0, 5.0]), 1.6)]
    [[0, 2], [2, 1], [1, 3]]
    """
    order = np.argsort(mean, kind="stable")
    rising = np.asarray(mean)[order]
    ends = np.searchsorted(rising, rising + difference, side="right")  # they rise too
    groups = []
    reached = 0  # where the group before ended: one that ends there is part of it
    for first, end in enumerate(ends):
        if end - first > 1 and end > reached:
            groups.append(order[first:end])
        reached = end
    return groups


def front(accuracy: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Whether no other system is as accurate and as cheap, and better in one of these.

    >>> front([90, 95, 95, 80, 99], [10, 20, 30, 10, 50]).tolist()
    [True, True, False, False, True]
    """
    others = np.asarray(accuracy)
    own = others[:, None]
    others_cost = np.asarray(cost)
    own_cost = others_cost[:, None]
    # (systems, by whom), all three
    as_good = (others >= own) & (others_cost <= own_cost)
    better = (others > own) | (others_cost < own_cost)
    beaten = as_good & better
    return ~beaten.any(axis=1)


def bayesian_signed_rank(
    differences: Sequence[float], rope: float, draws=50_000, seed=0
) -> tuple[float, float, float]:
    """Probabilities that the first is worse, practically equal, or better.

    Within `rope` both are practically equal. Benavoli et al. (2017): Walsh averages of
    the differences, one a set, under a Dirichlet process whose prior is one
    pseudo-observation of weight 1 at zero. Each draw votes for the largest of the three
    shares.
    """
    z = np.concatenate([[0.0], np.asarray(differences, dtype=float)])
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(len(z)), draws)  # (draws, observations)
    walsh = (z[:, None] + z) / 2
    # of each draw, the weight of the pairs whose average is on each side of the rope
    shares = []  # (sides, draws)
    for side in (walsh < -rope, np.abs(walsh) <= rope, walsh > rope):
        counted = side.astype(float)
        share = np.einsum("di,ij,dj->d", weights, counted, weights, optimize=True)
        shares.append(share)
    largest = np.argmax(shares, axis=0)
    votes = np.bincount(largest, minlength=3)
    return tuple((votes / draws).tolist())


def slope_interval(
    x: Sequence[float], y: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Exponent of the best power law and its limits by Student's t.

    The limits are infinite with two points.

    >>> [round(v, 3) for v in slope_interval([1, 2, 4, 8], [3, 12, 48, 192])]
    [2.0, 2.0, 2.0]
    """
    a = np.log(np.asarray(list(x), float))
    b = np.log(np.asarray(list(y), float))
    a = a - a.mean()
    b = b - b.mean()
    # least squares: b = g a, and the standard error of g
    g = float(a @ b / (a @ a))
    free = len(a) - 2  # degrees of freedom
    if free < 1:
        return g, -np.inf, np.inf
    residual = ((b - g * a) ** 2).sum()
    error = np.sqrt(residual / free / (a @ a))
    quantile = t.ppf((1 + confidence) / 2, free)
    wide = float(quantile * error)
    return g, g - wide, g + wide
