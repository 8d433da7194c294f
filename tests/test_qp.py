"""Exact duals: by hand, by LIBSVM, by a primal and a dual written out here."""

import warnings
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from dagsvm_lab.solvers import certify, solve_qp

pytestmark = pytest.mark.qp


def written_out(K, s, p, u, alpha, b):
    """(dual, primal) objective as the formulas read, without the package."""
    n = range(len(s))
    w_w = sum(alpha[i] * alpha[j] * s[i] * s[j] * K[i, j] for i in n for j in n)
    f = [sum(alpha[j] * s[j] * K[i, j] for j in n) + b for i in n]
    slack = sum(u[i] * max(0.0, p[i] - s[i] * f[i]) for i in n)
    return w_w / 2 - sum(p[i] * alpha[i] for i in n), w_w / 2 + slack


def test_two_points_on_a_line_by_hand():
    # x = -1 and 1: w = 1, b = 0 when C allows alpha = 1/2; else both alphas are C and w
    # = 2C
    K, y = np.array([[1.0, -1.0], [-1.0, 1.0]]), [-1, 1]
    free, bound = solve_qp(K, y, C=10), solve_qp(K, y, C=0.25)
    np.testing.assert_allclose(
        [*free.alpha, free.bias, free.objective], [0.5, 0.5, 0, -0.5], atol=1e-12
    )
    np.testing.assert_allclose(
        [*bound.alpha, bound.bias, bound.objective], [0.25, 0.25, 0, -0.375], atol=1e-12
    )


def test_soft_labels_by_hand():
    # x = 1 with y = 1, x = -1 with y = -1/2: w + b = 1 and w - b = 1/2, so w = 3/4, b =
    # 1/4, alpha = w / 2.
    # With C = 0.1 the first alpha is at its bound 0.1; the second's is C / |y| = 0.2.
    # The label 0 drops out.
    X, y = np.array([[1.0], [-1.0], [0.3]]), [1.0, -0.5, 0.0]
    free, bound = solve_qp(X @ X.T, y, C=10), solve_qp(X @ X.T, y, C=0.1)
    np.testing.assert_allclose(
        [*free.alpha, free.bias, free.objective],
        [0.375, 0.375, 0, 0.25, -0.28125],
        atol=1e-12,
    )
    np.testing.assert_allclose(
        [*bound.alpha, bound.objective], [0.1, 0.1, 0, -0.13], atol=1e-12
    )
    assert bound.upper.tolist() == [0.1, 0.2, 0.0]
    assert bound.linear.tolist() == [1.0, 0.5, 0.0]


@st.composite
def duals(draw):
    """K, y, C of a hard kind: duplicates, opposite labels, lone points, constant
    inputs, labels near 0, any C.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(2, 24))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    y = np.where(
        X[:, 0] + draw(st.sampled_from([0.0, 1.0])) * rng.normal(size=n) > 0, 1.0, -1.0
    )
    kind = draw(
        st.sampled_from(
            ["plain", "same twice", "opposite twins", "lone point", "constant", "soft"]
        )
    )
    if kind == "same twice":
        X, y = np.vstack([X, X]), np.r_[y, y]
    elif kind == "opposite twins":
        X, y = np.vstack([X, X]), np.r_[y, -y]
    elif kind == "lone point":
        y[:] = -1
        y[0] = 1
    elif kind == "constant":
        X[:] = 1.0
    elif kind == "soft":
        y *= rng.uniform(size=n) ** 6
        y[0] = 0.0
    kernel = draw(
        st.sampled_from(
            [
                lambda A: A @ A.T,
                lambda A: rbf_kernel(A, gamma=0.7),
                lambda A: (A @ A.T + 1) ** 3,
            ]
        )
    )
    return kernel(X), y, 10.0 ** draw(st.integers(-6, 6))


# found by `make fuzz`: bounds up to 2.7e11, whose sums of slacks have an error of 1,700
LINE = np.array(
    [
        1.4551,
        -1.1408,
        -0.3551,
        0.3411,
        -0.1166,
        0.8659,
        -0.7328,
        -0.5727,
        -1.4758,
        0.3678,
        1.364,
    ]
)[:, None]
NO_DIGITS = np.array(
    [
        0.092,
        -6.7e-6,
        7.9e-5,
        0.0096,
        -4.3e-4,
        0.047,
        -0.36,
        -3.7e-7,
        -0.25,
        -0.022,
        -0.36,
    ]
)


THREE = np.array(
    [
        [3.08254460, -7.94792398e-03, 8.87948187],
        [-7.94792398e-03, 74.2179032, -5.21607657],
        [8.87948187, -5.21607657, 50.4156648],
    ]
)
TWINS = np.array([-1.0, 1, -1, -1, 1, -1])  # labels of THREE's rows, each twice

# found by `make fuzz`: interior points, their sum not quite 0, were the lowest
POINTS = np.array(
    [
        [0.0],
        [0.31652],
        [0.26901],
        [1.14649],
        [0.71514],
        [1.02895],
        [1.62846],
        [1.64092],
        [1.32069],
        [0.54598],
    ]
)
UNBALANCED = np.array(
    [
        0.0,
        -0.386,
        -0.000826,
        0.832,
        -0.0193,
        -0.00112,
        0.000508,
        -0.0495,
        0.00138,
        -0.0977,
    ]
)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:solve_qp"
)  # where labels of 1e-9 and bounds of 1e9 leave no digits
@settings(max_examples=120, deadline=None)
@given(duals(), st.randoms(use_true_random=False))
@example((np.exp(-0.7 * (LINE - LINE.T) ** 2), NO_DIGITS, 1e5), Random(25))
@example((np.tile(THREE, (2, 2)), TWINS, 1000.0), Random(0))
@example((np.exp(-((POINTS - POINTS.T) ** 2)), UNBALANCED, 10.0), Random(0))
def test_every_solution_proves_itself(case, random):
    K, y, C = case
    dual = solve_qp(K, y, C)
    s = np.where(y < 0, -1.0, 1.0)
    objective, primal = written_out(
        K, s, dual.linear, dual.upper, dual.alpha, dual.bias
    )
    # what rounding of f costs: u_i eps sum_j alpha_j |K_ij|, and no more
    noise = (
        10 * np.finfo(float).eps * np.abs(K).max() * dual.alpha.sum() * dual.upper.sum()
    )
    assert dual.converged or noise > -1e-9 * objective
    assert abs(s @ dual.alpha) <= 1e-12 * dual.alpha.sum()
    assert (dual.alpha >= 0).all(), dual.alpha.min()
    assert (dual.alpha <= dual.upper).all(), np.max(dual.alpha - dual.upper)
    assert dual.objective == pytest.approx(objective, rel=1e-9, abs=noise)
    assert (
        -1e-12 * -objective - noise <= primal + objective <= 1e-9 * -objective + noise
    )
    assert certify(K, y, dual).gap == dual.gap
    order = np.arange(len(y))
    random.shuffle(order)
    other = solve_qp(K[np.ix_(order, order)], y[order], C)
    same = pytest.approx(dual.objective, rel=1e-8, abs=noise)
    assert other.objective == same or not (dual.converged and other.converged)


# found by `make fuzz`: alphas that did not sum to zero had a gap of zero
ALMOST_HARD = np.array(
    [
        [1.53950607, 0.82378849, 1.36812292, -1.0072124],
        [0.82378849, 0.66219651, 0.24773496, -0.35170712],
        [1.36812292, 0.24773496, 2.374111, -1.19820441],
        [-1.0072124, -0.35170712, -1.19820441, 0.93241136],
    ]
)


# found by `make fuzz`: of bounds up to 1.6e5, float32 makes another problem
STRETCHED = np.random.default_rng(0).normal(size=11)
STRETCHED_LABELS = np.array(
    [
        0.0,
        -7.34833290e-02,
        5.43102634e-02,
        -3.19005638e-03,
        -9.83375948e-01,
        -8.90382527e-01,
        1.03801671e-01,
        7.57391923e-02,
        1.06468724e-01,
        -3.46075777e-03,
        6.07945549e-06,
    ]
)


@settings(max_examples=25, deadline=None)
@given(duals())
@example((np.outer(STRETCHED, STRETCHED), STRETCHED_LABELS, 1.0))
@example(
    (ALMOST_HARD, np.array([0.0, -1.34103528e-01, 3.38476661e-08, 4.09348019e-14]), 1.0)
)
def test_single_precision_is_solved_or_named(case):
    # rounding may leave a float32 matrix indefinite; then either the gap is small all
    # the same, or a warning says why
    K, y, C = case
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dual = solve_qp(K.astype(np.float32), y, C)
    said = [w for w in caught if w.category is ConvergenceWarning]  # others are others'
    assert dual.converged != bool(said)
    assert abs(np.sign(y) @ dual.alpha) <= 1e-9 * dual.alpha.sum()
    if C <= 1 and dual.converged:
        exact = solve_qp(K, y, C)
        rounding = np.finfo(np.float32).eps * max(
            found.alpha @ np.abs(K) @ found.alpha for found in (dual, exact)
        )
        assert dual.objective == pytest.approx(exact.objective, rel=1e-4, abs=rounding)


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_as_libsvm(C, gamma):
    rng = np.random.default_rng(int(10 * gamma))
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=80) > 0, 1, -1)
    K, dual = rbf_kernel(X, gamma=gamma), solve_qp(rbf_kernel(X, gamma=gamma), y, C)
    peer = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    beta = np.zeros(80)
    beta[peer.support_] = peer.dual_coef_[0]
    np.testing.assert_allclose(
        dual.objective, beta @ K @ beta / 2 - np.abs(beta).sum(), rtol=1e-8
    )
    np.testing.assert_allclose(
        K @ (y * dual.alpha) + dual.bias, peer.decision_function(K), atol=1e-4
    )


def test_general_linear_term_and_bounds_as_scipy():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(7, 3))
    K, s = Z @ Z.T + 0.1 * np.eye(7), np.array([1, -1, 1, 1, -1, -1, 1.0])
    p, u = rng.normal(size=7), rng.uniform(0.1, 2, size=7)
    Q = K * np.outer(s, s)
    peer = minimize(
        lambda a: a @ Q @ a / 2 - p @ a,
        np.zeros(7),
        jac=lambda a: Q @ a - p,
        bounds=[(0, top) for top in u],
        constraints={"type": "eq", "fun": lambda a: s @ a},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(
        solve_qp(K, s, linear=p, upper=u).alpha, peer.x, atol=1e-6
    )


def test_one_sign_only_leaves_zero():
    dual = solve_qp(np.eye(3), [1, 1, 0])
    assert dual.converged and not dual.alpha.any() and dual.gap == 0 and dual.bias >= 1


def test_what_has_no_solution_says_so():
    K, y = np.array([[1.0, 2.0], [2.0, 1.0]]), [1, -1]
    assert solve_qp(-K, y, C=1).converged  # indefinite, but not where sum beta = 0
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        assert not solve_qp(K, y, C=1).converged
    with pytest.warns(ConvergenceWarning, match="not separable"):
        assert not solve_qp(np.ones((2, 2)), y, C=np.inf).converged
    dual = solve_qp(np.eye(2), y)
    dual.alpha[0] += 0.1
    with pytest.raises(ValueError, match="not feasible"):
        certify(np.eye(2), y, dual)


def line(n: int, inputs: int = 10):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, inputs))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)


def test_certificate_in_single_precision():
    X, y = line(60, 3)
    K = rbf_kernel(X)
    dual = solve_qp(K, y, 1.0)
    dual.alpha[:] *= 0.9  # not optimal, but feasible: the gap is a number to agree on
    whole = certify(K, y, dual)
    assert whole.gap > 0.01
    assert whole.gap == pytest.approx(
        whole.primal_objective + whole.objective, rel=1e-9
    )
    assert certify(K.astype(np.float32), y, dual).gap == pytest.approx(
        whole.gap, rel=1e-4
    )


def test_no_warning_where_all_is_well():
    X, y = line(60, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dual = solve_qp(rbf_kernel(X), y, 1.0)
    assert dual.converged and dual.gap <= 1e-9 * -dual.objective
