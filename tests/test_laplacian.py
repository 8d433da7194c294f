"""The Laplacian kernel in every estimator: the shape of a test for any new kernel.

The peer is the same estimator given scikit-learn's Laplacian as a callable, which takes
none of the shorter ways: no sparse rows, no single-row form, no files.
"""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import dagsvm_lab as lab
from dagsvm_lab.evaluate import Walker
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, rest_code, train

GAMMA = 0.05
FAMILIES = [
    lab.OneVsRestSVC,
    lab.MaxWinsSVC,
    lab.AndGateSVC,
    lab.DAGSVC,
    lab.AdaptiveDAGSVC,
    lab.BinaryTreeSVC,
    lab.DecisionTreeSVC,
    lab.DCSVC,
    lab.PosteriorSVC,
    partial(lab.ECOCSVC, random_state=0),
    lab.CrammerSingerSVC,
    lab.WestonWatkinsSVC,
]


@pytest.fixture(scope="module")
def scaled_digits():
    """Rows whose products would do for a Gaussian, and not for a Laplacian."""
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:400] / 16.0, y[:400]


def peer(A, B):
    return laplacian_kernel(A, B, gamma=GAMMA)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_estimator_takes_it_dense_sparse_alone_and_from_a_file(
    family, scaled_digits, tmp_path
):
    X, y = scaled_digits
    T = X[200:260]
    est = family(C=5.0, kernel="laplacian", gamma=GAMMA).fit(X[:200], y[:200])
    called = family(C=5.0, kernel=peer).fit(X[:200], y[:200])
    scores = est.decision_function(T)
    np.testing.assert_allclose(scores, called.decision_function(T), atol=2e-2)
    labels = called.predict(T)
    np.testing.assert_array_equal(est.predict(T), labels)
    alone = [est.predict(row[None])[0] for row in T]
    np.testing.assert_array_equal(alone, labels, "single rows")
    est.save(tmp_path / "model.npz")
    again = type(est).load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.decision_function(T), scores, "saved")
    if est._formats:
        thin = family(C=5.0, kernel="laplacian", gamma=GAMMA)
        thin.fit(csr_matrix(X[:200]), y[:200])
        np.testing.assert_allclose(
            thin.decision_function(csr_matrix(T)), scores, atol=2e-2
        )
        np.testing.assert_array_equal(thin.predict(csr_matrix(T)), labels, "sparse")


@pytest.mark.parametrize("code", [pair_code, rest_code])
@pytest.mark.parametrize("solver", ["smo", pytest.param("qp", marks=pytest.mark.qp)])
def test_machines_are_those_of_the_given_matrix(code, solver, scaled_digits):
    X, y = scaled_digits
    kernel = Kernel("laplacian", GAMMA)
    K = peer(X, X)
    n = 120 if solver == "qp" else len(X)
    bank = train(X[:n], y[:n], code(5), kernel, 5.0, solver=solver, tol=1e-6)
    given = train(
        K[:n, :n], y[:n], code(5), Kernel("precomputed"), 5.0, solver=solver, tol=1e-6
    )
    np.testing.assert_allclose(bank.objective, given.objective, rtol=1e-9)
    np.testing.assert_allclose(bank.decision(X), given.decision(K[:, :n]), atol=1e-4)
    thin = train(
        csr_matrix(X[:n]), y[:n], code(5), kernel, 5.0, solver=solver, tol=1e-6
    )
    np.testing.assert_allclose(thin.decision(X), bank.decision(X), atol=1e-4)


@pytest.mark.slow
def test_long_machines_are_those_of_the_given_matrix():
    """More rows than small machines have: growing active sets, shared kernel rows."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    kernel = Kernel("laplacian", GAMMA)
    K = kernel(X, X)
    for code in (pair_code(10)[:3], rest_code(10)):
        bank = train(X, y, code, kernel, 5.0, tol=1e-5)
        given = train(K, y, code, Kernel("precomputed"), 5.0, tol=1e-5)
        assert bank.converged.all(), "a machine did not converge"
        np.testing.assert_allclose(bank.objective, given.objective, rtol=1e-6)
        np.testing.assert_allclose(bank.decision(X), given.decision(K), atol=1e-2)


def test_a_row_is_walked_and_within_its_bound(scaled_digits):
    X, y = scaled_digits
    bank = train(X, y, pair_code(5), Kernel("laplacian", GAMMA), 5.0)
    f = bank.decision(X[:50])
    for x, row in zip(X[:50], f, strict=True):
        walker = bank.walker(x)
        assert isinstance(walker, Walker)
        for t in (3, 0, 9):
            assert walker.ask(t) == pytest.approx(row[t], abs=1e-10)
        every, slack = walker.ask_every()
        assert (np.abs(every - row) <= slack).all(), "rounding beyond the bound"
        assert slack.max() < 1e-8


def test_a_block_has_the_same_bits_whatever_rows_are_in_it(scaled_digits):
    X, y = scaled_digits
    bank = train(X, y, pair_code(5), Kernel("laplacian", GAMMA), 5.0)
    order = np.random.default_rng(0).permutation(400)
    f = bank.decision(X)
    np.testing.assert_array_equal(bank.decision(X[order]), f[order])
    np.testing.assert_array_equal(bank.decision(X[7:8]), f[7:8])


@pytest.mark.parametrize("thin", [False, True])
def test_tuned_as_by_grid_search(scaled_digits, thin):
    X, y = scaled_digits
    X, y = X[:200], y[:200]
    if thin:  # the time of sparse rows grows with the inputs
        X, y = csr_matrix(X[:100, ::3]), y[:100]
    grid = {"C": [1.0, 10.0], "gamma": [0.003, 0.03, 0.3]}
    folds = StratifiedKFold(3)
    est = lab.DAGSVC(kernel="laplacian")
    ours = lab.tune(est, X, y, **grid, cv=folds)
    theirs = GridSearchCV(est, grid, cv=folds).fit(X, y)
    scores = theirs.cv_results_["mean_test_score"]
    assert ours.best_params_ == theirs.best_params_
    assert np.ptp(scores) > 0.01
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], scores, atol=1e-3)


@pytest.mark.parametrize("size", [1e160, 1e-160])
def test_gamma_scale_means_the_same_for_inputs_of_any_size(size):
    """gamma = 1 / (inputs x variance) grows with X^-2, and |x - y|_1 with X."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    est = lab.MaxWinsSVC(kernel="laplacian").fit(size * X, np.arange(40) % 3)
    kernel = est.machines_.kernel
    exponent = -np.abs(X[0] - X[1]).sum() / (3 * X.var()) / size
    expected = np.exp(np.maximum(exponent, -1e9))
    found = kernel(size * X[:1], size * X[1:2]).item()
    assert found == pytest.approx(expected, rel=1e-9)
