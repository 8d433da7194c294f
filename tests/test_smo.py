"""SMO against the exact solver and LIBSVM: objectives and certificates on random and on awkward duals."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from dagsvm_lab.kernels import Kernel
from dagsvm_lab.solvers import certify, solve_qp, solve_smo
from dagsvm_lab.solvers.batch import Task, solve_many
from dagsvm_lab.solvers.smo import RowCache

KERNELS = (Kernel("rbf", 0.5), Kernel("rbf", 20.0), Kernel("linear"), Kernel("poly", 0.5, 3, 1.0))


@st.composite
def problems(draw):
    """(X, y, C, kernel): overlapping clouds or not, equal rows of opposite labels, one row a class, constant inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    y = np.where(rng.random(n) < draw(st.sampled_from([0.1, 0.5])), 1.0, -1.0)
    y[:2] = 1, -1
    X = rng.normal(size=(n, d)) + np.outer(y, np.full(d, draw(st.sampled_from([0.0, 0.5, 4.0]))))
    kind = draw(st.sampled_from(["plain", "equal rows", "one row", "constant"]))
    if kind == "equal rows":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "one row":
        y[1:] = -1
    elif kind == "constant":
        X[:, 0] = 3.0
    return X, y, 10.0 ** draw(st.integers(-6, 6)), draw(st.sampled_from(KERNELS))


def scale(K, dual) -> float:
    """Size of the dual's objective terms, against which differences are judged."""
    return max(dual.alpha.sum(), 1e-12)


def noise(K, dual) -> float:
    """What rounding may cost the objective: its quadratic terms are large and cancel."""
    return 10 * np.finfo(float).eps * float(dual.alpha @ np.abs(K) @ dual.alpha)


@given(problems())
@settings(max_examples=200, deadline=None)
def test_smo_batch_and_exact_agree(problem):
    X, y, C, kernel = problem
    K = kernel(X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # judged below
        duals = [solve_smo(K, y, C, tol=1e-6), solve_smo(K, y, C, tol=1e-6, shrinking=False),
                 *solve_many(X, kernel, [Task(np.arange(len(y)), y, None, np.full(len(y), C))], tol=1e-6)]  # fmt: skip
        exact = solve_qp(K, y, C)
    for dual in duals:
        c = certify(K, y, dual)
        assert abs(c.objective - dual.objective) <= 1e-8 * scale(K, dual) + noise(K, dual)
        assert (dual.alpha >= 0).all() and (dual.alpha <= C).all()
        assert abs(y @ dual.alpha) <= 1e-9 * max(dual.alpha.max(), 1e-300) * len(y)
        assert dual.converged == (dual.kkt_violation <= 1e-6)
        if dual.converged:
            # weak duality bounds both ends: what tol leaves open is at most tol x sum of alpha
            assert abs(dual.objective - exact.objective) <= 1e-5 * scale(K, exact) + 1e-9 + noise(K, dual)
    assert all(dual.converged for dual in duals) or C * np.abs(K).max() > 1e6  # rounding of v exceeds tol


@given(problems(), st.floats(1e-9, 1.0))
@settings(max_examples=50, deadline=None)
def test_soft_labels_near_zero(problem, least):
    X, y, C, kernel = problem
    C = min(C, 1e3)
    soft = np.linspace(least, 1.0, len(y))
    K, upper = kernel(X, X), C / soft
    dual, exact = solve_smo(K, y, tol=1e-6, linear=soft, upper=upper), solve_qp(K, y, linear=soft, upper=upper)
    [many] = solve_many(X, kernel, [Task(np.arange(len(y)), y, soft, upper)], tol=1e-6)
    for found in (dual, many):
        assert found.converged
        assert abs(found.objective - exact.objective) <= 1e-5 * scale(K, exact) + 1e-9


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.1, 5.0])
def test_objectives_are_libsvms(C, gamma):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.where(y[50:] == 1, 1.0, -1.0)
    kernel = Kernel("rbf", gamma)
    K = kernel(X, X)
    lib = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    beta = np.zeros(len(y))
    beta[lib.support_] = lib.dual_coef_[0]
    theirs = 0.5 * beta @ K @ beta - np.abs(beta).sum()
    for dual in (solve_smo(K, y, C, tol=1e-6), solve_smo(RowCache(X, kernel), y, C, tol=1e-6),
                 *solve_many(X, kernel, [Task(np.arange(len(y)), y, None, np.full(len(y), C))], tol=1e-6)):  # fmt: skip
        assert abs(dual.objective - theirs) <= 1e-8 * abs(theirs)
        assert abs(dual.bias - lib.intercept_[0]) < 1e-4


def cloud(n: int, seed: int = 0, shift: float = 0.7):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + shift * y[:, None], y


def test_matrix_and_cached_rows_end_alike():
    X, y = cloud(300)
    kernel = Kernel("rbf", 1.0)
    tight = RowCache(X, kernel, cache_size=0.01)  # room for four rows
    full, cached = solve_smo(kernel(X, X), y, 10.0, tol=1e-7), solve_smo(tight, y, 10.0, tol=1e-7, cache_size=0.01)
    assert len(tight.kept) <= tight.limit < 10
    assert abs(full.objective - cached.objective) <= 1e-9 * abs(full.objective)


def test_row_order_and_input_precision_do_not_matter():
    X, y = cloud(200)
    kernel, order = Kernel("rbf", 1.0), np.random.default_rng(1).permutation(200)
    plain = solve_smo(kernel(X, X), y, 10.0, tol=1e-8)
    other = solve_smo(kernel(X[order], X[order]), y[order], 10.0, tol=1e-8)
    assert np.allclose(plain.alpha[order], other.alpha, atol=1e-5)
    single = X.astype(np.float32)
    low = solve_smo(kernel(single, single).astype(np.float32), y, 10.0, tol=1e-4)
    assert low.converged and abs(low.objective - plain.objective) <= 1e-4 * abs(plain.objective)


def test_a_warm_start_saves_the_steps():
    X, y = cloud(300)
    K = Kernel("rbf", 1.0)(X, X)
    cold = solve_smo(K, y, 10.0)
    warm = solve_smo(K, y, 10.0, warm=cold.alpha)
    assert warm.n_iter == 0 and abs(warm.objective - cold.objective) <= 1e-9 * abs(cold.objective)
    less = solve_smo(K, y, 5.0, warm=cold.alpha)
    assert less.converged and less.alpha.max() <= 5.0


def test_a_kernel_that_is_not_positive_semidefinite_ends_with_an_honest_certificate():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 60))
    K = K + K.T
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    dual = solve_smo(K, y, 1.0)
    [many] = solve_many(K, Kernel("precomputed"), [Task(np.arange(60), y, None, np.ones(60))])
    for found in (dual, many):
        violation = certify(K, y, found).kkt_violation
        assert found.n_iter < 10_000 and found.converged == (violation <= 1e-3)
        assert found.alpha.any() and abs(violation - found.kkt_violation) <= 1e-9


def test_a_limit_reached_is_never_silent():
    X, y = cloud(300, shift=0.1)
    kernel = Kernel("rbf", 1.0)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        dual = solve_smo(kernel(X, X), y, 100.0, max_iter=5)
    assert dual.n_iter == 5 and not dual.converged and dual.kkt_violation > 1e-3
    task = Task(np.arange(300), y, None, np.full(300, 100.0))
    with pytest.warns(ConvergenceWarning, match="5 of 5 machines"):
        many = solve_many(X, kernel, [task] * 5, max_iter=40)
    assert all(d.n_iter <= 40 and not d.converged for d in many)


def test_nothing_to_separate():
    for y in (np.ones(4), -np.ones(4), np.ones(1)):
        dual = solve_smo(np.eye(len(y)), y)
        [many] = solve_many(np.eye(len(y)), Kernel("linear"), [Task(np.arange(len(y)), y, None, np.ones(len(y)))])
        for found in (dual, many):
            assert found.converged and not found.alpha.any() and found.bias == y[0] and found.gap == 0.0
