"""The paper's bounds: formulas typed out, reference values, what changes nothing."""

from math import e, log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsvm_lab.bounds import (
    D_prime,
    enclosing_radius,
    fat_shattering,
    first_informative_m,
    lemma4,
    lemma4_observed,
    lemma4_uniform,
    theorem1,
    theorem2,
)
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.solvers import solve_qp

MARGINS, R, M, DELTA = [0.5, 1.0, 2.0], 3.0, 1000, 0.05


@pytest.mark.parametrize(("base", "ln"), [(2, log2), ("e", log), (e, log)])
def test_the_formulas_as_printed(base, ln):
    D = 1 / 0.25 + 1 + 1 / 4
    union = ln(2 * (2 * M) ** 3 / DELTA)
    assert D_prime(MARGINS) == D
    printed = 130 * R**2 / M * (D * ln(4 * e * M) * ln(4 * M) + union)
    derived = 2 * (65 * R**2 * D * ln(4 * e * M) * ln(8 * M) + union) / M
    assert theorem1(MARGINS, R, M, DELTA, log_base=base) == pytest.approx(
        printed, rel=1e-12
    )
    assert theorem2(MARGINS, R, M, DELTA, log_base=base) == pytest.approx(
        printed, rel=1e-12
    )
    assert lemma4_uniform(MARGINS, R, M, DELTA, log_base=base) == pytest.approx(
        derived, rel=1e-12
    )
    D = 7 * ln(4 * e * M / 7) + 3 * ln(4 * e * M / 3)
    assert lemma4([7, 3], M, DELTA, base) == pytest.approx(
        (D * ln(8 * M) + ln(2**2 / DELTA)) / M, rel=1e-12
    )


def test_theorem_3():
    assert fat_shattering(0.5, 1.0) == 4
    assert fat_shattering(0.5, 1.0, dimension=2) == 3
    assert fat_shattering(0.5, 2.0, dimension=100) == 16


@pytest.mark.parametrize(
    ("n_classes", "gamma", "natural", "base2"),
    [(2, 1.0, 2.0e4, 4.6e4), (10, 0.1, 2.6e8, 5.9e8), (26, 1.0, 1.5e7, 3.3e7)],
)
def test_rows_from_which_theorem_1_says_anything(n_classes, gamma, natural, base2):
    margins = np.full(n_classes * (n_classes - 1) // 2, gamma)
    for base, known in (("e", natural), (2, base2)):
        m = first_informative_m(margins, 1.0, DELTA, base)
        assert theorem1(margins, 1.0, m, DELTA, base) < 1
        assert theorem1(margins, 1.0, m - 1, DELTA, base) >= 1
        assert m == pytest.approx(known, rel=0.03)


def test_letter_with_the_largest_margins_one_could_wish_for():
    margins = np.ones(26 * 25 // 2)
    assert theorem1(margins, 1.0, 16_000, DELTA, "e") == pytest.approx(380, abs=0.5)
    assert theorem1(margins, 1.0, 16_000, DELTA) == pytest.approx(773, abs=0.6)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=45),
    st.integers(10, 10**9),
    st.floats(0.001, 0.5),
    st.floats(0.1, 10),
)
def test_what_moves_the_bounds_and_what_does_not(margins, m, delta, scale):
    margins = np.array(margins)
    uniform = lemma4_uniform(margins, 1.0, m, delta)
    # units do not matter
    in_other_units = lemma4_uniform(scale * margins, scale, m, delta)
    assert in_other_units == pytest.approx(uniform, rel=1e-9)
    # the printed form has R^2 before the union term as well: in other units it is
    # another number
    union = log2(2 / delta) + len(margins) * log2(2 * m)
    printed = theorem1(margins, 1.0, m, delta)
    moved = theorem1(scale * margins, scale, m, delta) - printed
    expected = 130 / m * (scale**2 - 1) * union
    assert moved == pytest.approx(expected, rel=1e-6, abs=1e-9 * uniform)
    assert theorem1(2 * margins, 1.0, m, delta) < printed
    assert theorem2(margins[:1], 1.0, m, delta) <= printed
    # k_i <= 64 R^2 / gamma_i^2 < 65 ..., and log(4em / k_i) <= log(4em): the uniform
    # form gives something away
    observed = lemma4_observed(margins, 1.0, m, delta)
    assert observed <= uniform or observed == np.inf
    assert lemma4_observed(margins, 1.0, m, delta, dimension=3) <= observed


def test_a_node_with_training_errors_has_no_margin():
    with pytest.raises(ValueError, match="does not apply"):
        theorem1([0.5, np.nan], 1.0, 100, DELTA)
    with pytest.raises(ValueError, match="does not apply"):
        theorem2([0.0], 1.0, 100, DELTA)


@pytest.mark.qp
def test_margin_of_a_hard_margin_machine_is_one_over_the_norm():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(15, 2)) + 4, rng.normal(size=(15, 2)) - 4])
    s = np.repeat([1, -1], 15)
    dual = solve_qp(X @ X.T, s, C=np.inf)
    w = X.T @ (s * dual.alpha)
    gamma = (s * (X @ w + dual.bias)).min() / np.linalg.norm(w)
    assert gamma == pytest.approx(1 / np.linalg.norm(w), rel=1e-9)
    assert dual.objective == pytest.approx(-(gamma**-2) / 2, rel=1e-9)


def test_radius_is_below_the_cheap_ones():
    X = np.random.default_rng(0).normal(size=(1500, 3)) + [5, 0, 0]
    exact = enclosing_radius(X=X)
    around_origin = np.linalg.norm(X, axis=1).max()
    around_mean = np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    assert exact < around_mean < min(around_origin, 2 * exact)
    assert enclosing_radius(X @ X.T) == pytest.approx(exact, rel=1e-9)
    # moving all rows moves the ball only
    assert enclosing_radius(X=X + 100) == pytest.approx(exact, rel=1e-7)
    gaussian = Kernel("rbf", 0.5)
    in_features = enclosing_radius(X=X, kernel=gaussian)
    assert enclosing_radius(gaussian(X, X)) == pytest.approx(in_features, rel=1e-9)
    assert in_features < 1
    with pytest.raises(ValueError, match="either"):
        enclosing_radius()
