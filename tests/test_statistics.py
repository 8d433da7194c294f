"""Tests and intervals, by hand and against other implementations."""

import doctest

import numpy as np
import pytest
from scipy.stats import beta, linregress
from scipy.stats import ttest_1samp as t_test

from dagsvm_lab import statistics
from dagsvm_lab.statistics import (
    bayesian_signed_rank,
    binomial_interval,
    cliques,
    corrected_interval,
    mcnemar,
    rank_correlation,
    ranks,
    sign_interval,
    slope_interval,
)


def test_examples_in_the_docstrings():
    assert doctest.testmod(statistics).failed == 0


def test_mcnemar_by_hand():
    # 12 rows that only a gets wrong, 3 that only b does: (|12 - 3| - 1)^2 / 15 = 4.267;
    # 2 sum_{k<=3} C(15,k) / 2^15
    a = np.array([True] * 12 + [False] * 3 + [True] * 5 + [False] * 80)
    b = np.array([False] * 12 + [True] * 3 + [True] * 5 + [False] * 80)
    found = mcnemar(a, b)
    assert (found["only_a_wrong"], found["only_b_wrong"]) == (12, 3)
    assert found["p_exact"] == pytest.approx(2 * (1 + 15 + 105 + 455) / 2**15)
    assert found["p_corrected"] == pytest.approx(0.0389, abs=1e-4)
    assert mcnemar(a, a)["p_exact"] == mcnemar(a, a)["p_corrected"] == 1


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (980, 1000)])
def test_binomial_limits_are_quantiles_of_the_beta(hits, n):
    low, high = binomial_interval(hits, n)
    assert low == pytest.approx(
        100 * beta.ppf(0.025, hits, n - hits + 1) if hits else 0
    )
    assert high == pytest.approx(
        100 * beta.ppf(0.975, hits + 1, n - hits) if hits < n else 100
    )


def test_binomial_limits_cover():
    for p in (0.02, 0.3):
        chance = np.random.default_rng(0).binomial(60, p, 2000)
        limits = {h: binomial_interval(h, 60) for h in set(chance.tolist())}
        assert (
            np.mean([limits[h][0] <= 100 * p <= limits[h][1] for h in chance.tolist()])
            >= 0.95
        )


def test_ranks_by_hand():
    error = [[10, 20, 20, 30], [10, 5, 30, 40], [1, 2, 3, 4]]
    found = ranks(np.array(error))
    assert found.mean.round(3).tolist() == [1.333, 1.833, 2.833, 4.0]
    # Demsar (2006): four classifiers on fourteen sets differ by 1.25 at .05
    assert found.critical_difference * np.sqrt(3 / 14) == pytest.approx(1.25, abs=0.005)
    assert ranks(np.tile([1, 2, 3], (20, 1))).p < 1e-6


def test_cliques_join_all_pairs_that_are_near_and_no_others():
    rng = np.random.default_rng(1)
    for _ in range(50):
        mean, cd = rng.uniform(1, 8, 7), 1.5
        joined = {
            frozenset((a, b)) for g in cliques(mean, cd) for a in g for b in g if a != b
        }
        near = {
            frozenset((a, b))
            for a in range(7)
            for b in range(a)
            if abs(mean[a] - mean[b]) <= cd
        }
        assert joined == near
        groups = [set(g.tolist()) for g in cliques(mean, cd)]
        # none lies within another
        assert not any(a < b for a in groups for b in groups)


def test_signed_rank_says_what_is_plain():
    assert bayesian_signed_rank(np.full(15, 2.0), rope=1)[2] > 0.99
    assert bayesian_signed_rank(np.full(15, -2.0), rope=1)[0] > 0.99
    assert bayesian_signed_rank(np.tile([0.1, -0.1], 8), rope=1)[1] > 0.99
    worse, same, better = bayesian_signed_rank(np.tile([2.0, -2.0], 8), rope=0.5)
    assert abs(worse - better) < 0.02 and worse + same + better == pytest.approx(1)


def test_slope_is_least_squares_on_logarithms():
    rng = np.random.default_rng(0)
    x = np.array([3, 5, 9, 16, 26.0])
    y = 2 * x**1.5 * np.exp(rng.normal(0, 0.1, 5))
    line = linregress(np.log(x), np.log(y))
    g, low, high = slope_interval(x, y)
    assert g == pytest.approx(line.slope)
    assert (high - low) / 2 == pytest.approx(3.182446 * line.stderr)
    assert slope_interval([1, 2], [1, 4]) == (2.0, -np.inf, np.inf)


def test_slope_interval_covers():
    rng, x = np.random.default_rng(3), np.geomspace(1, 100, 6)
    limits = [
        slope_interval(x, x**1.2 * np.exp(rng.normal(0, 0.3, 6)))[1:]
        for _ in range(1000)
    ]
    assert abs(np.mean([low <= 1.2 <= high for low, high in limits]) - 0.95) < 0.025


def test_corrected_interval_widens_the_t_interval_by_what_splits_share():
    gain = np.array([1.0, 2.0, 4.0, 1.5])
    plain = t_test(gain, 0.0).confidence_interval()
    mean, low, high = corrected_interval(gain, 0.0)
    assert (low, high) == pytest.approx((plain.low, plain.high)) and mean == gain.mean()
    wide = corrected_interval(gain, 0.25)
    assert (wide[2] - mean) / (high - mean) == pytest.approx(
        np.sqrt((1 / 4 + 0.25) / (1 / 4))
    )
    assert corrected_interval([3.0], 0.25) == (3.0, -np.inf, np.inf)


def test_rank_correlation_covers_and_sees_order_only():
    rng, inside = np.random.default_rng(0), 0
    for _ in range(500):
        x = rng.normal(size=30)
        low, high = rank_correlation(x, 0.6 * x + 0.8 * rng.normal(size=30))[1:]
        # 6 / pi asin(.6 / 2), Spearman's for a normal pair of correlation .6
        inside += low <= 0.582 <= high
    assert 0.92 < inside / 500 < 0.98
    assert rank_correlation([1, 2, 3, 4], [1, 10, 20, 1000]) == pytest.approx((1, 1, 1))
    assert rank_correlation([1, 2, 3], [1, 3, 2])[1:] == (-1, 1)


def test_sign_interval_is_of_both_signs():
    assert sign_interval(7, 1)[1:] == pytest.approx(
        [-v for v in sign_interval(1, 7)[:0:-1]]
    )
    assert sign_interval(0, 0) == (0, -1, 1)
    assert sign_interval(8, 0)[1] > 0 > sign_interval(4, 0)[1]
