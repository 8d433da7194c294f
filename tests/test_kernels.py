"""Kernels against scikit-learn's, and prepared blocks against kernels."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise
from threadpoolctl import ThreadpoolController, threadpool_limits

from dagsvm_lab import CrammerSingerSVC, MaxWinsSVC, PosteriorSVC
from dagsvm_lab.kernels import Kernel, Rows, SparseRows, gamma_from_sigma, resolve, single_is_safe
from dagsvm_lab.machines import pair_code, train
from dagsvm_lab.threads import one_thread

X = np.random.default_rng(0).normal(size=(40, 5))
Y = np.random.default_rng(1).normal(size=(30, 5))
KERNELS = {
    "linear": (Kernel("linear"), pairwise.linear_kernel(X, Y)),
    "poly": (Kernel("poly", 0.3, 4, 1.0), pairwise.polynomial_kernel(X, Y, degree=4, gamma=0.3, coef0=1.0)),
    "rbf": (Kernel("rbf", 0.7), pairwise.rbf_kernel(X, Y, gamma=0.7)),
    "sigmoid": (Kernel("sigmoid", 0.1, 3, -0.5), pairwise.sigmoid_kernel(X, Y, gamma=0.1, coef0=-0.5)),
    "callable": (Kernel(pairwise.laplacian_kernel), pairwise.laplacian_kernel(X, Y)),
}


def test_sigma_is_platts():
    assert np.isclose(np.exp(-gamma_from_sigma(5.06) * 3.0**2), np.exp(-(3.0**2) / (2 * 5.06**2)), rtol=1e-15)


@pytest.mark.parametrize("name", KERNELS)
def test_blocks_diagonals_and_prepared_rows(name):
    kernel, expected = KERNELS[name]
    assert np.allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-14)
    both, whole = np.vstack([X, Y]), kernel(np.vstack([X, Y]), np.vstack([X, Y]))
    rows, i, j = Rows(both, kernel), np.array([3, 50, 7]), np.array([1, 69, 2, 2])
    assert np.allclose(rows.block(i, j), whole[np.ix_(i, j)], rtol=1e-12, atol=1e-14)
    assert np.allclose(np.vstack([tile for _, tile in map(lambda t: (t[0], t[1].copy()), rows.tiles(i, j, 2))]),
                       whole[np.ix_(i, j)], rtol=1e-12, atol=1e-14)  # fmt: skip
    assert np.allclose(rows.diagonal(), np.diagonal(whole), rtol=1e-12)
    assert np.allclose(rows.under(rows.place(Y), slice(0, 40)), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_filled_tiles(name):
    rng, kernel = np.random.default_rng(2), KERNELS[name][0]
    many = rng.normal(size=(700, 5))
    rows, i, j = Rows(many, kernel), rng.permutation(700)[:530], rng.permutation(700)[:290]
    wide = np.full((530, 600), np.nan)
    with ThreadPoolExecutor(3) as pool:
        for a, b in ((i, j), (i, i), (j, j[:3]), (i, np.arange(7, 300)), (i, np.arange(300)[::-1])):
            out, expected = wide[: len(a), : len(b)], kernel(many[a], many[b])
            rows.fill(a, b, out, symmetric=a is b)
            assert np.allclose(out, expected, rtol=1e-12, atol=1e-14)
            once = out.copy()
            rows.fill(a, b, out, pool.map, a is b)
            assert (out == once).all()
    assert np.isnan(wide[:, 530:]).all()


@pytest.mark.parametrize("name", KERNELS)
def test_a_product_within_rows_computes_half_of_the_kernel(name):
    rng, kernel = np.random.default_rng(3), KERNELS[name][0]
    many, w = rng.normal(size=(700, 5)), rng.normal(size=530)
    rows, ids = Rows(many, kernel), rng.permutation(700)[:530]
    with ThreadPoolExecutor(3) as pool:
        f = rows.within(ids, w)
        assert np.allclose(f, kernel(many[ids], many[ids]) @ w, rtol=1e-10, atol=1e-10)
        assert (rows.within(ids, w, pool.map) == f).all()
    computed, block = [], rows.block
    rows.block = lambda i, j, out: computed.append(out.size) or block(i, j, out)
    assert (rows.within(ids, w) == f).all() and sum(computed) <= 530 * (530 + 256) / 2
    assert rows.within(ids[:0], w[:0]).shape == (0,)


def test_a_gaussian_block_keeps_its_precision_far_from_the_origin():
    far, kernel = X + 1e4, Kernel("rbf", 0.7)
    assert np.abs(kernel(far, far) - kernel(X, X)).max() < 1e-10
    assert single_is_safe(far, kernel) and not single_is_safe(30 * X, kernel)
    assert not single_is_safe(X, Kernel("linear"))
    assert np.abs(Rows(far, kernel, np.float32).block(slice(None)) - kernel(X, X)).max() < 1e-5


def test_a_polynomial_of_degree_0_is_constant():
    assert (Kernel("poly", 0.3, 0, 1.0)(X, Y) == 1).all()
    assert set(MaxWinsSVC(kernel="poly", degree=0).fit(X, np.arange(40) % 3).predict(X)) <= {0, 1, 2}


def test_widths_divide_the_inputs():
    widths = (1.0, 2.0, 0.5, 3.0, 1.5)
    assert np.allclose(Kernel("rbf", 0.7, widths=widths)(X, Y), Kernel("rbf", 0.7)(X / widths, Y / widths))


def test_gamma_is_resolved_as_in_scikit_learn():
    assert resolve("rbf", "scale", 3, 0.0, X).gamma == 1 / (5 * X.var())
    assert resolve("rbf", "auto", 3, 0.0, X).gamma == 1 / 5
    assert resolve("rbf", "scale", 3, 0.0, np.ones((4, 5))).gamma == 1.0


@pytest.mark.parametrize("name", KERNELS)
def test_squares_are_blocks(name):
    kernel, rows = KERNELS[name][0], np.array([[0, 3, 5], [7, 7, 1]])
    expected = [kernel(X[part], X[part]) for part in rows]
    out = np.empty((2, 3, 3))
    assert np.allclose(Rows(X, kernel).squares(rows, out), expected, rtol=1e-12, atol=1e-14)
    assert np.allclose(kernel.square(X, rows[0]), expected[0], rtol=1e-12, atol=1e-14)
    K = kernel(X, X)
    assert (Rows(K, Kernel("precomputed")).squares(rows, out) == [K[np.ix_(part, part)] for part in rows]).all()


def blas_threads():
    return {library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers}


def test_blas_is_limited_for_all_threads_until_the_last_one_leaves():
    meet = [Barrier(2, timeout=60) for _ in range(3)]
    seen = []

    def first():
        with one_thread():
            meet[0].wait()
            meet[1].wait()  # the second is inside too
        meet[2].wait()

    def second():
        meet[0].wait()
        with one_thread():
            seen.append(blas_threads())
            meet[1].wait()
            meet[2].wait()  # the first has left
            seen.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(first), pool.submit(second)]:
                done.result()
        assert seen == [{1}, {1}] and blas_threads() == before
        with one_thread(), one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before


@pytest.mark.parametrize("size", [1e160, 1e300, 1e-160, 1e-300, 1e50])
@pytest.mark.parametrize("settings", [{}, {"kernel": "poly"}, {"kernel": "linear"}, {"gamma": 0.1}])
def test_inputs_of_any_size_are_answered_or_refused_without_a_warning_of_numpy(size, settings):
    rng = np.random.default_rng(5)
    many, labels = rng.normal(size=(60, 3)), np.arange(60) % 3
    many += labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for family in (MaxWinsSVC, PosteriorSVC, CrammerSingerSVC):
            plain = family(max_iter=50, **settings).fit(many, labels).predict(many)
            try:
                same = family(max_iter=50, **settings).fit(size * many, labels).predict(size * many) == plain
            except ValueError as refused:
                assert "scale" in str(refused) and size > 1 and ("gamma" in settings or "kernel" in settings)
            else:
                assert same.mean() > 0.95 or settings in ({"kernel": "linear"}, {"gamma": 0.1})


def test_a_row_far_away_meets_no_support_vector():
    bank = train(X, np.arange(40) % 2, pair_code(2), Kernel("rbf", 0.7), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (bank.decision(np.full((3, 5), [[1e20], [1e160], [-1e300]])) == bank.bias[0]).all()
    with pytest.raises(ValueError, match="scale"):
        train(X, np.arange(40) % 2, pair_code(2), Kernel("linear"), 1.0).decision(np.full((1, 5), 1e308))


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid"])
def test_sparse_rows_give_the_blocks_of_dense_ones(name):
    kernel, thin = KERNELS[name][0], np.where(X > 0.5, X, 0.0)
    rows, dense, i, j = SparseRows(csr_matrix(thin), kernel), kernel(thin, thin), np.array([3, 30, 7]), slice(5, 25)
    assert np.allclose(rows.block(i, j), dense[i, j], atol=1e-12) and len(rows) == len(thin)
    assert (
        np.allclose(rows.diagonal(), np.diagonal(dense)) and (rows.block(i, j) == rows.block(np.arange(40), j)[i]).all()
    )
    assert np.allclose(rows.under(rows.place(thin[:9]), slice(0, 40)), dense[:, :9], atol=1e-12)
    squares = rows.squares(np.array([i, i + 1]), np.empty((2, 3, 3)))
    assert np.allclose(squares, [dense[np.ix_(k, k)] for k in (i, i + 1)], atol=1e-12)
    assert np.allclose(kernel(csr_matrix(thin), thin), dense, atol=1e-12)
    wide = replace(kernel, widths=(1.0, 2.0, 0.5, 3.0, 1.5))
    assert np.allclose(wide(csr_matrix(thin), csr_matrix(thin)), wide(thin, thin), atol=1e-12)
    assert resolve("rbf", "scale", X=csr_matrix(thin)).gamma == pytest.approx(resolve("rbf", "scale", X=thin).gamma)
    weight = np.arange(40.0)
    assert resolve("rbf", X=csr_matrix(thin), weight=weight).gamma == pytest.approx(
        resolve("rbf", X=thin, weight=weight).gamma
    )
    with pytest.raises(TypeError, match="sparse"):
        SparseRows(csr_matrix(thin), Kernel("precomputed"))
