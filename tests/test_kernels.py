"""Kernels against scikit-learn's, and prepared blocks against kernels."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise

from dagsvm_lab import CrammerSingerSVC, MaxWinsSVC, PosteriorSVC, kernels
from dagsvm_lab.kernels import Kernel, gamma_from_sigma, resolve, squared
from dagsvm_lab.machines import pair_code, train
from dagsvm_lab.rows import prepared

X = np.random.default_rng(0).normal(size=(40, 5))
Y = np.random.default_rng(1).normal(size=(30, 5))
KERNELS = {
    "linear": (Kernel("linear"), pairwise.linear_kernel(X, Y)),
    "poly": (
        Kernel("poly", 0.3, 4, 1.0),
        pairwise.polynomial_kernel(X, Y, degree=4, gamma=0.3, coef0=1.0),
    ),
    "rbf": (Kernel("rbf", 0.7), pairwise.rbf_kernel(X, Y, gamma=0.7)),
    "sigmoid": (
        Kernel("sigmoid", 0.1, 3, -0.5),
        pairwise.sigmoid_kernel(X, Y, gamma=0.1, coef0=-0.5),
    ),
    "laplacian": (Kernel("laplacian", 0.7), pairwise.laplacian_kernel(X, Y, gamma=0.7)),
    "callable": (Kernel(pairwise.laplacian_kernel), pairwise.laplacian_kernel(X, Y)),
}


PRECOMPUTED = Kernel("precomputed")
NAMES = sorted(set(kernels.KERNELS) - {"precomputed"})


def test_sigma_is_platts():
    assert np.isclose(
        np.exp(-gamma_from_sigma(5.06) * 3.0**2),
        np.exp(-(3.0**2) / (2 * 5.06**2)),
        rtol=1e-15,
    )


@pytest.mark.parametrize("name", KERNELS)
def test_blocks_diagonals_and_prepared_rows(name):
    kernel, expected = KERNELS[name]
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-14)
    both, whole = np.vstack([X, Y]), kernel(np.vstack([X, Y]), np.vstack([X, Y]))
    rows, i, j = prepared(both, kernel), np.array([3, 50, 7]), np.array([1, 69, 2, 2])
    np.testing.assert_allclose(
        rows.block(i, j), whole[np.ix_(i, j)], rtol=1e-12, atol=1e-14
    )
    tiles = [tile.copy() for _, tile in rows.tiles(i, j, 2)]
    expected_tiles = whole[np.ix_(i, j)]
    np.testing.assert_allclose(np.vstack(tiles), expected_tiles, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.diagonal(), np.diagonal(whole), rtol=1e-12)
    np.testing.assert_allclose(
        rows.block_transposed(rows.transform(Y), slice(0, 40)),
        expected,
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("name", KERNELS)
def test_filled_tiles(name):
    rng, kernel = np.random.default_rng(2), KERNELS[name][0]
    many = rng.normal(size=(700, 5))
    rows = prepared(many, kernel)
    i = rng.permutation(700)[:530]
    j = rng.permutation(700)[:290]
    wide = np.full((530, 600), np.nan)
    with ThreadPoolExecutor(3) as pool:
        for a, b in (
            (i, j),
            (i, i),
            (j, j[:3]),
            (i, np.arange(7, 300)),
            (i, np.arange(300)[::-1]),
        ):
            out, expected = wide[: len(a), : len(b)], kernel(many[a], many[b])
            rows.fill(a, b, out, symmetric=a is b)
            np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
            once = out.copy()
            rows.fill(a, b, out, pool.map, a is b)
            np.testing.assert_array_equal(out, once)
    assert np.isnan(wide[:, 530:]).all(), "written beyond the columns asked for"


@pytest.mark.parametrize("name", KERNELS)
def test_a_product_within_rows_computes_half_of_the_kernel(name):
    rng, kernel = np.random.default_rng(3), KERNELS[name][0]
    many, w = rng.normal(size=(700, 5)), rng.normal(size=530)
    rows, ids = prepared(many, kernel), rng.permutation(700)[:530]
    with ThreadPoolExecutor(3) as pool:
        f = rows.within(ids, w)
        np.testing.assert_allclose(
            f, kernel(many[ids], many[ids]) @ w, rtol=1e-10, atol=1e-10
        )
        np.testing.assert_array_equal(rows.within(ids, w, pool.map), f)
    computed, block = [], rows.block
    rows.block = lambda i, j, out: computed.append(out.size) or block(i, j, out)
    np.testing.assert_array_equal(rows.within(ids, w), f)
    assert sum(computed) <= 530 * (530 + 256) / 2
    assert rows.within(ids[:0], w[:0]).shape == (0,)


def test_a_gaussian_block_keeps_its_precision_far_from_the_origin():
    far, kernel = X + 1e4, Kernel("rbf", 0.7)
    assert np.abs(kernel(far, far) - kernel(X, X)).max() < 1e-10
    assert kernel.single_is_safe(far) and not kernel.single_is_safe(30 * X)
    assert not Kernel("linear").single_is_safe(X)
    assert (
        np.abs(
            prepared(far, kernel, np.float32).block(slice(None)) - kernel(X, X)
        ).max()
        < 1e-5
    )


def test_a_polynomial_of_degree_0_is_constant():
    np.testing.assert_array_equal(Kernel("poly", 0.3, 0, 1.0)(X, Y), 1)
    assert set(
        MaxWinsSVC(kernel="poly", degree=0).fit(X, np.arange(40) % 3).predict(X)
    ) <= {0, 1, 2}


def test_widths_divide_the_inputs():
    widths = (1.0, 2.0, 0.5, 3.0, 1.5)
    np.testing.assert_allclose(
        Kernel("rbf", 0.7, widths=widths)(X, Y),
        Kernel("rbf", 0.7)(X / widths, Y / widths),
        rtol=1e-5,
    )


def test_gamma_is_resolved_as_in_scikit_learn():
    assert resolve("rbf", "scale", 3, 0.0, X).gamma == 1 / (5 * X.var())
    assert resolve("rbf", "auto", 3, 0.0, X).gamma == 1 / 5
    assert resolve("rbf", "scale", 3, 0.0, np.ones((4, 5))).gamma == 1.0


@pytest.mark.parametrize("name", KERNELS)
def test_squares_are_blocks(name):
    kernel, rows = KERNELS[name][0], np.array([[0, 3, 5], [7, 7, 1]])
    expected = [kernel(X[part], X[part]) for part in rows]
    out = np.empty((2, 3, 3))
    np.testing.assert_allclose(
        prepared(X, kernel).squares(rows, out), expected, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        kernel.square(X, rows[0]), expected[0], rtol=1e-12, atol=1e-14
    )
    K = kernel(X, X)
    np.testing.assert_array_equal(
        prepared(K, Kernel("precomputed")).squares(rows, out),
        [K[np.ix_(part, part)] for part in rows],
    )


@pytest.mark.parametrize("size", [1e160, 1e300, 1e-160, 1e-300, 1e50])
@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "poly"}, {"kernel": "linear"}, {"gamma": 0.1}]
)
def test_inputs_of_any_size_are_answered_or_refused_without_a_warning_of_numpy(
    size, settings
):
    rng = np.random.default_rng(5)
    many, labels = rng.normal(size=(60, 3)), np.arange(60) % 3
    many += labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for family in (MaxWinsSVC, PosteriorSVC, CrammerSingerSVC):
            plain = family(max_iter=50, **settings).fit(many, labels).predict(many)
            try:
                same = (
                    family(max_iter=50, **settings)
                    .fit(size * many, labels)
                    .predict(size * many)
                    == plain
                )
            except ValueError as refused:
                assert "scale" in str(refused)
                assert size > 1
                assert "gamma" in settings or "kernel" in settings
            else:
                assert same.mean() > 0.95 or settings in (
                    {"kernel": "linear"},
                    {"gamma": 0.1},
                )


def test_a_row_far_away_meets_no_support_vector():
    bank = train(X, np.arange(40) % 2, pair_code(2), Kernel("rbf", 0.7), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            bank.decision(np.full((3, 5), [[1e20], [1e160], [-1e300]])), bank.bias[0]
        )
    with pytest.raises(ValueError, match="scale"):
        train(X, np.arange(40) % 2, pair_code(2), Kernel("poly"), 1.0).decision(
            np.full((1, 5), 1e308)
        )


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
def test_sparse_rows_give_the_blocks_of_dense_ones(name):
    kernel, thin = KERNELS[name][0], np.where(X > 0.5, X, 0.0)
    rows = prepared(csr_matrix(thin), kernel)
    dense = kernel(thin, thin)
    i = np.array([3, 30, 7])
    j = slice(5, 25)
    np.testing.assert_allclose(rows.block(i, j), dense[i, j], atol=1e-12)
    assert len(rows) == len(thin)
    np.testing.assert_allclose(rows.diagonal(), np.diagonal(dense), rtol=1e-5)
    np.testing.assert_array_equal(rows.block(i, j), rows.block(np.arange(40), j)[i])
    np.testing.assert_allclose(
        rows.block_transposed(rows.transform(thin[:9]), slice(0, 40)),
        dense[:, :9],
        atol=1e-12,
    )
    squares = rows.squares(np.array([i, i + 1]), np.empty((2, 3, 3)))
    np.testing.assert_allclose(
        squares, [dense[np.ix_(k, k)] for k in (i, i + 1)], atol=1e-12
    )
    np.testing.assert_allclose(kernel(csr_matrix(thin), thin), dense, atol=1e-12)
    wide = replace(kernel, widths=(1.0, 2.0, 0.5, 3.0, 1.5))
    np.testing.assert_allclose(
        wide(csr_matrix(thin), csr_matrix(thin)), wide(thin, thin), atol=1e-12
    )
    assert resolve("rbf", "scale", X=csr_matrix(thin)).gamma == pytest.approx(
        resolve("rbf", "scale", X=thin).gamma
    )
    weight = np.arange(40.0)
    assert resolve("rbf", X=csr_matrix(thin), weight=weight).gamma == pytest.approx(
        resolve("rbf", X=thin, weight=weight).gamma
    )
    with pytest.raises(TypeError, match="sparse"):
        prepared(csr_matrix(thin), Kernel("precomputed"))


def test_a_name_that_is_no_kernel_is_refused():
    for name in ("gaussian", "", None, 3):
        with pytest.raises(ValueError, match="laplacian.*callable"):
            Kernel(name)
    with pytest.raises(ValueError, match="laplacian"):
        MaxWinsSVC(kernel="gaussian").fit(X, np.arange(40) % 3)


def test_every_kernel_is_tested_here():
    assert set(NAMES) == set(KERNELS) - {"callable"}, "give each kernel expected values"


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_values(name):
    kernel = KERNELS[name][0]
    numbers = (kernel.name, kernel.gamma, kernel.degree, kernel.coef0, kernel.widths)
    assert kernel == Kernel(*numbers) and hash(kernel) == hash(Kernel(*numbers))
    assert kernel != replace(kernel, gamma=2 * kernel.gamma)
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel and type(again) is type(kernel)


@pytest.mark.parametrize("name", KERNELS)
def test_widths_divide_the_inputs_of_every_kernel(name):
    kernel = KERNELS[name][0]
    widths = (1.0, 2.0, 0.5, 3.0, 1.5)
    expected = kernel(X / widths, Y / widths)
    wide = replace(kernel, widths=widths)
    np.testing.assert_allclose(wide(X, Y), expected, rtol=1e-12, atol=1e-14)
    rows = prepared(Y, wide)
    block = rows.block(rows.transform(X))
    np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_the_single_row_form_is_the_block_up_to_its_own_bound(name):
    kernel, expected = KERNELS[name]
    rows = prepared(X, kernel)
    rounding = kernel.vector_rounding(rows.left)
    farthest = float(squared(rows.left).max())
    some = np.array([5, 0, 31])
    for k, y in enumerate(Y):
        z = rows.single(y)
        values = rows.single_values(z)
        np.testing.assert_allclose(values, expected[:, k], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_almost_equal_nulp(
            rows.single_values(z, some), values[some], nulp=4
        )
        if rounding is not None:
            bound = rounding + kernel.row_rounding(z, farthest)
            off = np.abs(values - kernel(X, Y[[k]])[:, 0])
            assert (off <= 4 * np.finfo(float).eps * bound).all(), "bound too small"
            many = kernel.row_rounding(rows.transform(Y), farthest)
            assert np.shape(many) in ((), (30,)), "row_rounding takes one row or many"


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
def test_a_single_row_needs_no_block(name):
    kernel = KERNELS[name][0]
    assert kernel.vector_rounding(prepared(X, kernel).left) is not None


@pytest.mark.parametrize("name", NAMES)
def test_gamma_goes_with_the_power_of_the_inputs_that_the_kernel_says(name):
    """Else gamma="scale" is another one where inputs are so large that they shrink."""
    kernel, expected = KERNELS[name]
    power = kernel.gamma_power
    shrunk = replace(kernel, gamma=kernel.gamma * 2.0**power)
    factor = 0.5 if power else 1.0  # without a gamma, none may change the values
    values = shrunk(factor * X, factor * Y)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_sparse_rows_are_taken_or_refused_in_a_sentence(name):
    kernel, expected = KERNELS[name]
    thin = csr_matrix(np.where(X > 0.5, X, 0.0))
    if kernel.takes_sparse:
        np.testing.assert_allclose(
            kernel(thin, thin), kernel(thin.toarray(), thin.toarray()), atol=1e-12
        )
    else:
        with pytest.raises(TypeError, match="sparse"):
            kernel(thin, thin)


def test_a_kernel_that_gives_its_pairs_alone_is_right_everywhere():
    """What a new kernel may leave out has defaults that are right."""

    class Cauchy(Kernel):
        def pairs(self, A, B):
            return 1.0 / (1.0 + self.gamma * ((A[:, None] - B) ** 2).sum(2))

    kernel = Cauchy("cauchy", 0.7)
    expected = 1.0 / (1.0 + 0.7 * pairwise.euclidean_distances(X, Y, squared=True))
    rows = prepared(X, kernel)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12)
    np.testing.assert_allclose(rows.block(slice(None)), kernel(X, X))
    np.testing.assert_allclose(rows.diagonal(), np.ones(40))
    np.testing.assert_allclose(rows.single_values(rows.single(Y[3])), expected[:, 3])
    with pytest.raises(TypeError, match="sparse"):
        prepared(csr_matrix(X), kernel)
    bank = train(X, np.arange(40) % 3, pair_code(3), kernel, 2.0)
    given = train(kernel(X, X), np.arange(40) % 3, pair_code(3), PRECOMPUTED, 2.0)
    np.testing.assert_allclose(
        bank.decision(Y), given.decision(kernel(Y, X)), atol=1e-9
    )


def test_a_precomputed_matrix_is_square_and_symmetric_up_to_rounding():
    labels = np.arange(40) % 3
    K = pairwise.rbf_kernel(X)
    near = K.copy()
    near[1, 2] += 5e-7
    far = K.copy()
    far[1, 2] += 5e-6
    for family in (MaxWinsSVC, CrammerSingerSVC):
        est = family(kernel="precomputed")
        est.fit(near, labels)
        with pytest.raises(ValueError, match="symmetric.*5.0e-06.*1e-06"):
            est.fit(far, labels)
        with pytest.raises(ValueError, match="square"):
            est.fit(K[:, :20], labels)
        with pytest.raises(TypeError, match="[Ss]parse"):
            est.fit(csr_matrix(K), labels)
