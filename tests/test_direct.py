"""Direct multiclass machines: by hand, by scipy, by liblinear, by one another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from dagsvm_lab import CrammerSingerSVC, WestonWatkinsSVC
from dagsvm_lab.datasets import load
from dagsvm_lab.solvers.direct import Limits, solve_direct, solve_interior
from dagsvm_lab.solvers.working import CRAMMER_SINGER, WESTON_WATKINS, Task, row_optimum

LOSSES = pytest.mark.parametrize("loss", [CRAMMER_SINGER, WESTON_WATKINS])


def of(K):
    return lambda rows, columns: K[np.ix_(rows, columns)]


@LOSSES
def test_two_points_by_hand(loss):
    # x = 1 and -1, with the constant input K + 1 = 2 I. Each class function is
    # a (x_own - x_other), so the dual is 4 a^2 - 2 mu a: a = mu / 4, and -mu^2 / 4 at
    # the
    # minimum. With C = 0.1 both stay at their bound.
    K, mu = 2 * np.eye(2), loss.margin
    wide, narrow = (Task(np.array([0, 1]), 2, np.full(2, C), loss) for C in (10.0, 0.1))
    for dual in (solve_interior(K, wide), solve_direct(of(K), wide, Limits(tol=1e-9))):
        np.testing.assert_allclose(
            dual.coef, mu / 4 * np.array([[1, -1], [-1, 1]]), atol=1e-8
        )
        assert dual.objective == pytest.approx(-(mu**2) / 4, rel=1e-8)
        assert dual.converged
    for dual in (solve_interior(K, narrow), solve_direct(of(K), narrow, Limits())):
        np.testing.assert_allclose(
            dual.coef, 0.1 * np.array([[1, -1], [-1, 1]]), atol=1e-9
        )


def primal(w, X, codes, C, loss):
    """Primal objective as the papers write it; w (classes, inputs + 1), 1 appended."""
    f = np.column_stack([X, np.ones(len(X))]) @ w.T
    total = 0.5 * np.sum(w**2)
    for row, y, c in zip(f, codes, np.broadcast_to(C, len(X)), strict=True):
        slack = [
            max(0.0, loss.margin - row[y] + value)
            for m, value in enumerate(row)
            if m != y
        ]
        total += c * (max(slack) if loss.shared else sum(slack))
    return total


@LOSSES
def test_minimum_of_the_primal_that_scipy_finds(loss):
    rng = np.random.default_rng(3)
    X, codes = rng.normal(size=(9, 2)), np.arange(9) % 3
    dual = solve_interior(X @ X.T + 1, Task(codes, 3, np.full(9, 0.7), loss))
    w = dual.coef.T @ np.column_stack([X, np.ones(9)])
    assert primal(w, X, codes, 0.7, loss) == pytest.approx(
        dual.primal_objective, rel=1e-9
    )
    assert dual.primal_objective == pytest.approx(-dual.objective, rel=1e-7)

    # the same minimum with slacks as variables: a smooth program that SLSQP can solve
    k, n = 3, len(X)
    Z = np.column_stack([X, np.ones(n)])
    count = n if loss.shared else n * k

    def cost(v):
        return 0.5 * np.sum(v[:9] ** 2) + 0.7 * np.sum(v[9:])

    def slacks(v):
        f, xi = Z @ v[:9].reshape(3, 3).T, v[9:]
        rows = [(i, m) for i in range(n) for m in range(k) if m != codes[i]]
        return np.array(
            [
                f[i, codes[i]]
                - f[i, m]
                - loss.margin
                + xi[i if loss.shared else i * k + m]
                for i, m in rows
            ]
        )

    bounds = [(None, None)] * 9 + [(0, None)] * count
    start = np.r_[np.zeros(9), np.full(count, loss.margin)]
    peer = minimize(
        cost,
        start,
        bounds=bounds,
        constraints={"type": "ineq", "fun": slacks},
        method="SLSQP",
    )
    assert dual.primal_objective == pytest.approx(peer.fun, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 5),
    st.sampled_from([CRAMMER_SINGER, WESTON_WATKINS]),
    st.integers(-6, 3),
)
def test_decomposition_reaches_the_exact_minimum(seed, k, loss, exponent):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k, 40))
    X, codes = rng.normal(size=(n, 2)), np.r_[np.arange(k), rng.integers(0, k, n - k)]
    X[: n // 4] = X[n // 4 : 2 * (n // 4)]  # twins, some with other labels
    C = 10.0**exponent * rng.choice([0.0, 0.5, 1.0, 2.0], n)
    C[:k] = 10.0**exponent
    K = rbf_kernel(X, gamma=0.5) + 1
    task = Task(codes, k, C, loss)
    exact = solve_interior(K, task)
    # 6 rows at first, and never more than 20: the set has to grow, and to let rows go
    few = Limits(tol=1e-6, start=6, cache_size=20**2 * 4 / 2**20)
    ours = solve_direct(of(K), task, few)
    assert ours.converged and ours.kkt_violation <= 1e-6
    assert exact.converged
    assert ours.objective == pytest.approx(exact.objective, rel=1e-4)
    assert (
        ours.gap
        <= ours.kkt_violation * C.sum() * (1 if loss.shared else k - 1)
        + 1e-9 * -ours.objective
    )
    assert -1e-9 <= ours.gap / -ours.objective
    assert ours.objective >= exact.objective - exact.gap - 1e-9
    for dual in (exact, ours):
        np.testing.assert_allclose(dual.coef.sum(axis=1), 0, atol=1e-9 * C.max())
        own = np.arange(n), codes
        rivals = -dual.coef.copy()
        rivals[own] = 0
        assert rivals.min() >= 0
        paid = rivals.sum(axis=1) if loss.shared else rivals.max(axis=1)
        assert (paid <= C * (1 + 1e-9)).all(), np.max(paid - C)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.floats(0.01, 3),
    st.sampled_from([CRAMMER_SINGER, WESTON_WATKINS]),
)
def test_a_row_is_solved_exactly(h, C, loss):
    # minimise 1/2 |a|^2 + 1/2 (sum a)^2 - h'a over the row's box or capped simplex:
    # no feasible direction goes down
    a = row_optimum(np.array([*h, -np.inf]), C, loss)[:-1]
    down = np.array(h) - a - a.sum()
    assert a.min() >= 0
    if loss.shared:
        slack = C - a.sum()
        gains = np.append(down, 0.0)
        losses = np.append(down, 0.0)[np.append(a > 1e-12, slack > 1e-12)]
        assert slack >= -1e-12 and gains.max() - losses.min(initial=gains.max()) <= 1e-9
    else:
        assert a.max() <= C
        assert down[a < C].max(initial=0) <= 1e-9
        assert down[a > 0].min(initial=0) >= -1e-9


def test_linear_machine_is_liblinears():
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    peer = LinearSVC(C=0.5, multi_class="crammer_singer", tol=1e-8, max_iter=10**6).fit(
        X, y
    )
    est = CrammerSingerSVC(C=0.5, kernel="linear").fit(X, y)
    w = est.machines_.coef @ est.machines_.vectors
    np.testing.assert_allclose(w, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(est.machines_.bias, peer.intercept_, atol=1e-4)
    np.testing.assert_allclose(
        est.decision_function(X), peer.decision_function(X), atol=1e-3
    )


@pytest.mark.parametrize("cls", [CrammerSingerSVC, WestonWatkinsSVC])
def test_qp_and_smo_agree_and_costs_are_counted(cls, tmp_path):
    X, y = load_iris(return_X_y=True)
    fast, exact = (
        cls(C=3, gamma=0.4, solver=solver).fit(X, y) for solver in ("smo", "qp")
    )
    np.testing.assert_allclose(
        fast.decision_function(X), exact.decision_function(X), atol=1e-4
    )
    np.testing.assert_array_equal(fast.predict(X), exact.predict(X))
    np.testing.assert_array_equal(fast.support_, exact.support_)
    labels, cost = fast.predict_with_cost(X)
    np.testing.assert_array_equal(labels, fast.predict(X))
    np.testing.assert_array_equal(cost.binary_decisions, 3)
    np.testing.assert_array_equal(cost.kernel_evaluations, len(fast.support_))
    np.testing.assert_array_equal(cost.support_vectors, fast.machines_.coef.nnz)
    assert fast.n_parameters_ == 4 * len(fast.support_) + fast.machines_.coef.nnz
    fast.save(tmp_path / "direct.npz")
    again = cls.load(tmp_path / "direct.npz")
    np.testing.assert_array_equal(again.decision_function(X), fast.decision_function(X))
    pre = cls(C=3, kernel="precomputed").fit(rbf_kernel(X, gamma=0.4), y)
    np.testing.assert_allclose(
        pre.decision_function(rbf_kernel(X, gamma=0.4)),
        fast.decision_function(X),
        atol=1e-6,
    )
    two = cls().fit(X[:100], y[:100])
    assert two.decision_function(X).shape == (150,)
    np.testing.assert_array_equal(two.predict(X) == 1, two.decision_function(X) > 0)


def test_a_limit_reached_is_said():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        assert (
            not CrammerSingerSVC(C=100, max_iter=1).fit(X, y).machines_.converged.any()
        )


@pytest.mark.slow
@pytest.mark.parametrize("cls", [CrammerSingerSVC, WestonWatkinsSVC])
def test_letter_in_single_precision(cls):
    d = load("letter", scaled=True)
    X, y = d.X_train[:1500], d.y_train[:1500]
    # a cache for 998 working rows, whose block is float64; for 1,145, float32; for all
    fitted = [cls(C=10, gamma=1.25, cache_size=MB).fit(X, y) for MB in (3.8, 5, 2000)]
    double = fitted[0].machines_
    labels = fitted[0].predict(d.X_test)
    for est in fitted:
        assert est.machines_.converged.all(), est.machines_.kkt_violation.max()
        assert est.machines_.kkt_violation.max() <= 1e-3
        np.testing.assert_allclose(est.machines_.objective, double.objective, rtol=1e-5)
        assert np.mean(est.predict(d.X_test) == labels) > 0.999
    assert fitted[0].score(d.X_test, d.y_test) > 0.8


@pytest.mark.parametrize("family", [CrammerSingerSVC, WestonWatkinsSVC])
def test_hard_duals_end(family):
    rng = np.random.default_rng(0)
    many = family().fit(rng.normal(size=(200, 5)), np.repeat(np.arange(100), 2))
    assert many.machines_.converged.all(), many.machines_.kkt_violation.max()
    assert many.n_iter_ <= 100
    # inputs in the thousands: decomposition stalls, interior points do not
    X, y = load_wine(return_X_y=True)
    wine = family(kernel="linear").fit(X, y)
    assert wine.machines_.converged.all(), wine.machines_.kkt_violation.max()
    assert wine.machines_.gap[0] <= 1e-6 * abs(wine.machines_.objective[0])
