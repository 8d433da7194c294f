"""Linear machines of few inputs: by hand, by cvxopt and LIBSVM, by their conditions."""

import numpy as np
import pytest
from hard_problems import hard_problem
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dagsvm_lab import MaxWinsSVC, OneVsRestSVC, load, solve_qp
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, rest_code, train, train_grid
from dagsvm_lab.solvers.dual import Duals, problem
from dagsvm_lab.solvers.narrow import solve_narrow
from dagsvm_lab.solvers.search import Settings

LINEAR = Kernel("linear")


def solved(X, s, p, u, tol=1e-6, kernel=LINEAR):
    """One machine by interior points: its Duals, and whether they could."""
    n = len(s)
    duals = Duals(np.array([0, n]), np.arange(n), s, p, u)
    left = solve_narrow(X, [kernel], duals, np.zeros(1, int), Settings(tol))
    return duals, not len(left)


def ones(y, C):
    """(s, p, u) of labels +-1."""
    return problem(np.asarray(y, float), C)


def test_two_rows_by_hand():
    X = np.array([[-1.0, 3.0], [1.0, 3.0]])
    duals, done = solved(X, *ones([-1, 1], 10.0))
    assert done
    np.testing.assert_allclose(duals.alpha, 0.5, rtol=1e-12)
    np.testing.assert_allclose(duals.bias, 0.0, atol=1e-12)
    np.testing.assert_allclose(duals.objective, -0.5, rtol=1e-12)


def test_bounds_that_are_met_by_hand():
    # C = .1 holds both alphas back: w = .2, and any bias within .8 of 0 will do
    X = np.array([[-1.0], [1.0]])
    duals, done = solved(X, *ones([-1, 1], 0.1))
    assert done
    assert duals.alpha.tolist() == [0.1, 0.1]
    np.testing.assert_allclose(duals.bias, 0.0, atol=1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_objectives_are_those_of_cvxopt(data, C):
    pytest.importorskip("cvxopt")
    X, y = data(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    s = np.where(y == 1, 1.0, -1.0)
    duals, done = solved(X, *ones(s, C))
    exact = solve_qp(X @ X.T, s, C)
    assert done
    np.testing.assert_allclose(duals.objective[0], exact.objective, rtol=1e-9)
    assert duals.gap[0] <= 1e-7 * abs(exact.objective)


def test_soft_labels_weights_and_rows_without_weight():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    labels = np.where(y == 2, 1.0, -1.0) * rng.uniform(0.2, 1.0, len(y))
    s, p, u = problem(labels, 5.0)
    u[::7] = 0.0
    duals, done = solved(X, s, p, u)
    assert done
    assert not duals.alpha[::7].any()
    kept = u > 0  # rows without weight might as well not be there
    alone, _ = solved(X[kept], s[kept], p[kept], u[kept])
    np.testing.assert_allclose(duals.objective, alone.objective, rtol=1e-10)
    np.testing.assert_allclose(duals.bias, alone.bias, atol=1e-6)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_hard_problems_with_bounds(first):
    tried = 0
    for seed in range(first, first + 20):
        hard = hard_problem(seed)
        s, p, u = problem(hard.y, hard.C, upper=hard.upper)
        values, vectors = np.linalg.eigh(hard.K)
        some = values > 1e-12 * values[-1]
        X = vectors[:, some] * np.sqrt(values[some])
        if X.shape[1] > 20:
            continue
        duals, done = solved(X, s, p, u)
        if not done:  # goes on by other means: what was found is not kept as solved
            assert not duals.converged[0]
            continue
        tried += 1
        noise = np.finfo(float).eps * (X**2).sum(1).max() * duals.alpha.sum()
        assert duals.kkt_violation[0] <= max(1e-6, 4 * noise), seed
        w = (s * duals.alpha) @ X
        objective = 0.5 * w @ w - p @ duals.alpha
        np.testing.assert_allclose(duals.objective[0], objective, rtol=1e-9)
    assert tried


def test_rows_that_overlap_take_few_steps():
    X, y = make_classification(3000, 20, n_informative=10, random_state=0)
    for C in (1.0, 1e4):
        est = MaxWinsSVC(kernel="linear", C=C).fit(X, y)
        machines = est.machines_
        assert machines.converged.all()
        assert machines.n_iter.max() < 150, machines.n_iter
        assert machines.gap.max() <= 1e-9 * abs(machines.objective).max()


def test_labels_are_those_of_libsvm():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for C in (0.1, 10.0):
        est = MaxWinsSVC(kernel="linear", C=C).fit(X, y)
        assert (est.predict(X) == SVC(kernel="linear", C=C).fit(X, y).predict(X)).all()


def test_a_machine_is_the_same_alone_with_others_and_with_jobs():
    vowel = load("vowel")
    codes = np.unique(vowel.y, return_inverse=True)[1]
    X = np.asarray(vowel.X, float)
    code = pair_code(codes.max() + 1)
    bank = train(X, codes, code, LINEAR, 10.0)
    two_jobs = train(X, codes, code, LINEAR, 10.0, n_jobs=2)
    assert (bank.coef != two_jobs.coef).nnz == 0
    assert (bank.bias == two_jobs.bias).all()
    for t in (0, 17, 54):
        alone = train(X, codes, code[t : t + 1], LINEAR, 10.0)
        np.testing.assert_allclose(alone.objective[0], bank.objective[t], rtol=1e-9)
        np.testing.assert_allclose(alone.bias[0], bank.bias[t], atol=1e-7)


def test_growing_bounds_give_what_each_gives_alone():
    vowel = load("vowel")
    codes = np.unique(vowel.y, return_inverse=True)[1]
    X = np.asarray(vowel.X, float)
    code = rest_code(codes.max() + 1)
    path = train_grid(X, codes, code, [LINEAR], [0.1, 1.0, 10.0])[0]
    for C, bank in zip([0.1, 1.0, 10.0], path, strict=True):
        alone = train(X, codes, code, LINEAR, C)
        np.testing.assert_allclose(bank.objective, alone.objective, rtol=1e-9)


def test_sparse_rows_are_those_of_dense_ones():
    X, y = load_iris(return_X_y=True)
    dense = OneVsRestSVC(kernel="linear", C=3.0).fit(X, y).machines_
    thin = OneVsRestSVC(kernel="linear", C=3.0).fit(csr_matrix(X), y).machines_
    assert (dense.coef != thin.coef).nnz == 0
    assert (dense.bias == thin.bias).all()


def test_widths_of_inputs_count():
    X, y = load_iris(return_X_y=True)
    s = np.where(y == 1, 1.0, -1.0)
    widths = (1.0, 2.0, 0.5, 4.0)
    wide, done = solved(X, *ones(s, 1.0), kernel=Kernel("linear", widths=widths))
    divided, _ = solved(X / np.array(widths), *ones(s, 1.0))
    assert done
    np.testing.assert_allclose(wide.alpha, divided.alpha, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "shape", "how"),
    [
        ("poly", (60, 3), "plain"),
        ("linear", (60, 300), "plain"),
        ("linear", (60, 40), "plain"),  # too few rows for so many inputs
        ("linear", (60, 3), "one sign"),
        ("linear", (60, 3), "no bound"),
    ],
)
def test_others_are_left_to_other_means(kernel, shape, how):
    X = np.random.default_rng(0).normal(size=shape)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    s, p, u = ones(y, np.inf if how == "no bound" else 1.0)
    if how == "one sign":
        s[:] = 1.0
    duals, done = solved(X, s, p, u, kernel=Kernel(kernel))
    assert not done
    assert not duals.alpha.any()


def test_equal_rows_and_equal_inputs():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], 30, axis=0)
    y = np.repeat([-1.0, 1.0, 1.0], 30)
    duals, done = solved(X, *ones(y, 100.0))
    assert done
    w = (duals.s * duals.alpha) @ X
    np.testing.assert_allclose(w, [1.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(duals.bias, -1.0, rtol=1e-9)
    assert np.count_nonzero(duals.alpha) <= 3
