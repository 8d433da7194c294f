"""Banks: many duals together against one by one and LIBSVM.

They are the same whatever n_jobs, and their outputs are so to the bit.
"""

import os
import threading
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import ClassVar

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from dagsvm_lab.bank import Bank
from dagsvm_lab.evaluate import NeedsBlocks
from dagsvm_lab.kept import SharedVectors
from dagsvm_lab.kernels import KERNELS, Gaussian, Kernel
from dagsvm_lab.machines import (
    pair_code,
    pair_index,
    rest_code,
    train,
    train_grid,
)
from dagsvm_lab.rows import prepared
from dagsvm_lab.solvers import certify, columns, short, solve_smo

X, Y = load_digits(return_X_y=True)
X = X[:900] / 16.0
Y = Y[:900]
GAUSS = Kernel("rbf", 0.5)
NARROW = Kernel("rbf", 0.02)
BY_STEPS = {"max_iter": 10**7}  # limited steps: short machines are solved as long ones


@pytest.fixture(scope="module")
def pairs():
    return train(X, Y, pair_code(10), GAUSS, 10.0)


def test_codes():
    code = pair_code(4)
    assert code.tolist()[:4] == [
        [1, -1, 0, 0],
        [1, 0, -1, 0],
        [1, 0, 0, -1],
        [0, 1, -1, 0],
    ]
    assert all(
        code[pair_index(i, j, 4)][[i, j]].tolist() == [1, -1]
        for i in range(4)
        for j in range(i + 1, 4)
    )
    assert rest_code(3).tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "code", [pair_code(10)[:12], rest_code(10)[:6]], ids=["pairs", "rest"]
)
def test_together_is_one_by_one_and_libsvm(code, tol):
    bank = train(X, Y, code, GAUSS, 10.0, tol=tol)
    assert bank.converged.all(), bank.kkt_violation.max()
    assert bank.kkt_violation.max() <= tol
    assert bank.gap.min() >= 0
    for t, row in enumerate(code):
        rows = np.flatnonzero(row[Y])
        K, y = GAUSS(X[rows], X[rows]), row[Y[rows]].astype(float)
        one = solve_smo(K, y, 10.0, tol=tol)
        assert abs(bank.objective[t] - one.objective) <= 10 * tol * abs(one.objective)
        lib = SVC(C=10.0, gamma=0.5, tol=tol).fit(X[rows], y)
        beta = np.zeros(len(rows))
        beta[lib.support_] = lib.dual_coef_[0]
        theirs = 0.5 * beta @ K @ beta - np.abs(beta).sum()
        assert abs(bank.objective[t] - theirs) <= 10 * tol * abs(theirs)
        assert (
            np.abs(bank.decision(X[:50])[:, t] - lib.decision_function(X[:50])).max()
            <= 30 * tol + 2e-4
        )
        alpha = np.zeros(len(rows))
        mine = bank.coef[t]
        alpha[np.searchsorted(rows, bank.support[mine.indices])] = np.abs(mine.data)
        from dataclasses import replace

        again = certify(K, y, replace(one, alpha=alpha, bias=float(bank.bias[t])))
        assert abs(again.objective - bank.objective[t]) <= 1e-6 * abs(again.objective)
        assert (
            abs(again.kkt_violation - bank.kkt_violation[t]) <= 1e-6
            and abs(again.gap - bank.gap[t]) <= 1e-5
        )


@pytest.mark.slow
def test_many_duals_in_several_chunks_are_the_same_whatever_n_jobs(pairs):
    code = np.vstack([pair_code(10)] * 3)
    C = np.repeat([1.0, 10.0, 100.0], 45)
    one = train(X, Y, code, GAUSS, C, n_jobs=1, **BY_STEPS)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend):
            two = train(X, Y, code, GAUSS, C, n_jobs=2, **BY_STEPS)
        assert (one.coef != two.coef).nnz == 0
        np.testing.assert_array_equal(one.bias, two.bias)
        np.testing.assert_array_equal(one.n_iter, two.n_iter)
    np.testing.assert_allclose(one.objective[45:90], pairs.objective, rtol=1e-3)


@pytest.mark.parametrize(
    "soft", [None, lambda t, rows, sign: np.where((rows + t) % 9, 0.9 * sign, 0.0)]
)
def test_machines_that_share_rows_are_the_same_whatever_n_jobs(soft):
    # more rows than a thread judges at a time, so that there is work for several
    rng = np.random.default_rng(0)
    y = np.arange(columns.STRIP_ROWS + 300) % 4
    rows = rng.normal(size=(4, 40))[y] + rng.normal(size=(len(y), 40))
    same = train(rows, y, rest_code(4), NARROW, 10.0, soft=soft, n_jobs=1)
    found = train(rows, y, rest_code(4), NARROW, 10.0, soft=soft, n_jobs=2)
    assert (same.coef != found.coef).nnz == 0
    np.testing.assert_array_equal(same.bias, found.bias)
    np.testing.assert_array_equal(same.n_iter, found.n_iter)


@dataclass(frozen=True)
class Seen(Gaussian):
    """A Gaussian kernel that notes the threads which compute it."""

    threads: ClassVar[set[int]] = set()

    def of_products(self, products, out=None):
        self.threads.add(threading.get_ident())
        return super().of_products(products, out)


def test_machines_that_share_rows_are_computed_by_several_threads(monkeypatch):
    monkeypatch.setitem(KERNELS, "seen", Seen)
    y = np.arange(columns.STRIP_ROWS + 300) % 4
    rows = np.random.default_rng(0).normal(size=(len(y), 40)) + y[:, None] / 4
    seen = {}
    for jobs in (1, 2):
        Seen.threads.clear()
        train(rows, y, rest_code(4), Kernel("seen", NARROW.gamma), 10.0, n_jobs=jobs)
        seen[jobs] = len(Seen.threads)
    assert seen[1] == 1, seen
    assert seen[2] > 1 or joblib.cpu_count() == 1, seen


def test_chunks_in_threads_share_nothing():
    code = np.vstack([rest_code(10)] * 12)
    C = np.repeat(np.geomspace(0.1, 100.0, 12), 10)
    few = X[:400], Y[:400]
    with joblib.parallel_config(backend="threading"):
        one = train(*few, code, GAUSS, C, n_jobs=1, **BY_STEPS)
        four = train(*few, code, GAUSS, C, n_jobs=4, **BY_STEPS)
    assert (one.coef != four.coef).nnz == 0
    np.testing.assert_array_equal(one.bias, four.bias)


def test_outputs_are_the_same_bits_in_any_batch(pairs):
    f = pairs.decision(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(pairs.decision(X[order]), f[order])
    for i in order[:10]:
        np.testing.assert_array_equal(pairs.decision(X[i : i + 1])[0], f[i])
    np.testing.assert_array_equal(pairs.decision(X[13:700]), f[13:700])
    np.testing.assert_array_equal(pairs.decision(X, n_jobs=2), f)
    np.testing.assert_allclose(
        pairs.decision(X[:20], machines=[3, 40]), f[:20][:, [3, 40]], atol=2e-4
    )
    assert pairs.decision(X[:0]).shape == (0, 45)


def test_outputs_are_the_sum_over_support_vectors(pairs):
    exact = GAUSS(X, pairs.vectors) @ pairs.coef.T.toarray() + pairs.bias
    assert np.abs(pairs.decision(X) - exact).max() < 2e-4
    for kernel in (Kernel("poly", 0.05, 3, 1.0), Kernel("linear")):
        bank = train(X, Y, rest_code(10), kernel, 0.1)
        np.testing.assert_allclose(
            bank.decision(X),
            kernel(X, bank.vectors) @ bank.coef.T.toarray() + bank.bias,
            atol=1e-9,
        )


def test_a_bank_survives_storage(pairs, tmp_path):
    np.savez(tmp_path / "bank.npz", **pairs.to_arrays())
    with np.load(tmp_path / "bank.npz", allow_pickle=False) as file:
        again = Bank.from_arrays(dict(file))
    np.testing.assert_array_equal(again.decision(X[:100]), pairs.decision(X[:100]))
    assert again.n_parameters == len(pairs.support) * 64 + pairs.coef.nnz


def test_precomputed_and_per_machine_kernels(pairs):
    K = GAUSS(X, X)
    bank = train(K, Y, pair_code(10), Kernel("precomputed"), 10.0)
    np.testing.assert_allclose(bank.objective, pairs.objective, rtol=1e-3)
    np.testing.assert_allclose(bank.decision(K[:50]), pairs.decision(X[:50]), atol=0.02)
    own = [Kernel("rbf", g) for g in np.geomspace(0.05, 2.0, 45)]
    mixed = train(X, Y, pair_code(10), GAUSS, 10.0, kernels=own)
    for t in (0, 17, 44):
        alone = train(X, Y, pair_code(10)[t : t + 1], own[t], 10.0)
        assert abs(mixed.objective[t] - alone.objective[0]) <= 1e-3 * abs(
            alone.objective[0]
        )
        assert (
            np.abs(mixed.decision(X[:50])[:, t] - alone.decision(X[:50])[:, 0]).max()
            < 0.02
        )


@pytest.mark.parametrize(
    "soft", [None, lambda t, rows, sign: np.where(rows % 9, 0.9 * sign, 0.0)]
)
def test_machines_find_the_same_whether_they_share_kernel_values(soft):
    grid = [GAUSS, NARROW, Kernel("rbf", 0.1)]
    n = short.SHORT_ROWS
    given = {
        "weight": np.arange(n) % 4,
        "soft": soft,
    }  # a quarter of the rows drops out
    code = np.concatenate([pair_code(10), rest_code(10)])
    longest = np.count_nonzero(given["weight"])
    assert 30 * longest**2 > short.MANY_CELLS, "enough for kernel values to be shared"
    assert 165 * longest > short.STACK_ROWS, "enough for several stacks"
    together = train_grid(X[:n], Y[:n], code, grid, [0.5, 50.0], **given)
    for t in (0, 20, 44, 45, 54):
        one = train_grid(X[:n], Y[:n], code[t : t + 1], grid, [0.5, 50.0], **given)
        for bank, alone in zip(sum(together, []), sum(one, []), strict=True):
            assert bank.converged[t], bank.kkt_violation[t]
            np.testing.assert_allclose(bank.objective[t], alone.objective, rtol=1e-11)
            np.testing.assert_array_equal(bank.n_support[t], alone.n_support)
            np.testing.assert_allclose(bank.bias[t], alone.bias, atol=1e-9)


def test_a_wide_machine_is_the_same_alone_and_on_a_path():
    # 600 rows of 64 inputs: alone it is long, on a path its kernel values are shared
    digits = load_digits()
    X = digits.data[:600] / 16.0
    y = (digits.target[:600] > 4).astype(int)
    kernel = Kernel("rbf", 0.05)
    assert short.most_rows(X, kernel, alone=True) < 600
    assert short.most_rows(X, kernel, alone=False) >= 600
    assert short.most_rows(X[:, :16], kernel, alone=True) >= 600
    assert short.most_rows(X, Kernel("precomputed"), alone=True) >= 600
    values_of_C = [1.0, 10.0]
    path = train_grid(X, y, pair_code(2), [kernel], values_of_C)[0]
    for C, on_path in zip(values_of_C, path, strict=True):
        alone = train(X, y, pair_code(2), kernel, C)
        assert on_path.kkt_violation[0] < 1e-9
        assert alone.kkt_violation[0] <= 1e-3
        np.testing.assert_allclose(alone.objective, on_path.objective, rtol=1e-5)
        f = alone.decision(X) - on_path.decision(X)
        assert np.abs(f).max() < 2e-3


def test_sets_of_rows_are_trained_as_each_alone():
    grid, sets = (
        [GAUSS, Kernel("rbf", 0.02)],
        np.arange(400) % 5 != np.arange(3)[:, None],
    )
    sets[2, :250] = False
    for weight in (None, 1.0 + np.arange(400) % 4):
        found = train_grid(
            X[:400], Y[:400], pair_code(10), grid, [0.5, 50.0], sets=sets, weight=weight
        )
        for k, banks in enumerate(found):
            kernel, rows = grid[k // 3], np.flatnonzero(sets[k % 3])
            own = None if weight is None else weight[rows]
            (path,) = train_grid(
                X[rows], Y[rows], pair_code(10), [kernel], [0.5, 50.0], weight=own
            )
            for bank, alone in zip(banks, path, strict=True):
                assert bank.converged.all(), bank.kkt_violation.max()
                np.testing.assert_allclose(bank.objective, alone.objective, rtol=1e-11)
                np.testing.assert_array_equal(bank.support, rows[alone.support])
                np.testing.assert_array_equal(bank.n_support, alone.n_support)


def test_little_memory_gives_the_same_machines(pairs):
    tight = train(X, Y, pair_code(10), GAUSS, 10.0, cache_size=0.2)
    assert tight.converged.all(), tight.kkt_violation.max()
    np.testing.assert_allclose(tight.objective, pairs.objective, rtol=1e-3)
    rest = train(X, Y, rest_code(10), GAUSS, 10.0, cache_size=1.0)
    np.testing.assert_allclose(
        rest.objective, train(X, Y, rest_code(10), GAUSS, 10.0).objective, rtol=1e-3
    )


@pytest.mark.parametrize("room", [0.0, 100_000.0, 1e9])
def test_kept_rows_give_the_product_whatever_the_room(room):
    rows, at = prepared(X, GAUSS), np.arange(0, 900, 2)
    rng = np.random.default_rng(0)
    for _ in range(2):
        kept = columns.KernelColumns(rows, at, room)
        for n, duals in ((20, 1), (300, 5), (301, 2)):
            support = np.sort(rng.choice(len(X), n, replace=False))
            weights = rng.normal(size=(n, duals))
            for who in (range(duals), range(7, 7 + duals), range(duals)[::-1]):
                f = kept.times(support, weights, who)
                np.testing.assert_allclose(
                    f, (GAUSS(X[at], X[support]) @ weights).T, atol=1e-10
                )
        assert sum(block.nbytes for block in kept.blocks) < 2 * room + 1
        known = np.flatnonzero(kept.slot >= 0)[:5]
        for i in known:
            expected = GAUSS(X[[i]], X[at])[0]
            np.testing.assert_allclose(kept.row(i), expected, rtol=1e-5)


def test_machines_share_what_both_have_and_nothing_with_an_empty_one():
    coef = csr_matrix(np.array([[1.0, 2, 0, 3, 0], [0, 0, 0, 0, 0], [0, 4, 5, 6, 0]]))
    place = np.array([4, 3, 2, 1, 0])
    vectors = SharedVectors(coef, place)
    shared = vectors.between(2, 0)  # 1, 2, 3 after 0, 1, 3
    assert shared.here.tolist() == [0, 2]
    assert shared.there.tolist() == [1, 2]
    assert shared.missing.tolist() == [1]
    assert shared.part.tolist() == [2]
    after_none = vectors.between(0, 1)
    assert not len(after_none.here)
    assert after_none.part.tolist() == [4, 3, 1]
    assert not len(vectors.between(1, 0).part)


def test_cut_rows_share_no_memory():
    n = columns.CUT_BYTES // 9  # two rows of float32 are allocated at a time
    few = list(islice(columns.arrays(n, np.dtype(np.float32)), 5))
    for k, row in enumerate(few):
        row[:] = k
    for k, row in enumerate(few):
        np.testing.assert_array_equal(row, np.full(n, k))


def test_weights_and_soft_labels_reach_the_bounds():
    weight = np.where(np.arange(len(X)) % 2, 1.0, 0.1)
    bank = train(X, Y, pair_code(10)[:3], GAUSS, 0.5, weight=weight)
    for t in range(3):
        mine = bank.coef[t]
        assert (
            np.abs(mine.data) <= 0.5 * weight[bank.support[mine.indices]] + 1e-12
        ).all(), np.max(
            np.abs(mine.data) - (0.5 * weight[bank.support[mine.indices]] + 1e-12)
        )
    soft = train(
        X,
        Y,
        pair_code(10)[:3],
        GAUSS,
        0.5,
        soft=lambda t, rows, sign: np.where(rows % 3, sign, 0.0),
    )
    assert (soft.support % 3 != 0).all()


@pytest.mark.parametrize(
    "kernel",
    [GAUSS, Kernel("poly", 0.05, 3, 1.0), Kernel("linear")],
    ids=["rbf", "poly", "linear"],
)
def test_a_row_walks_with_the_signs_of_blocks(kernel):
    bank = train(X, Y, pair_code(10), kernel, 10.0)
    f = bank.decision(X[:200])
    for x, row in zip(X[:200], f, strict=True):
        rng = np.random.default_rng(int(x.sum() * 16))
        path = rng.permutation(45)[:9]
        for steps in (1, 10**6):  # machine by machine, and all at once
            walker = bank.walker(x, steps)
            every, slack = walker.ask_every()
            np.testing.assert_array_less(np.abs(every - row), slack + 1e-300)
            for t in [*path, path[0]]:
                assert abs(walker.ask(t) - row[t]) <= slack[t] < 1e-2


def test_a_row_on_the_edge_goes_through_blocks():
    bank = train(np.array([[-1.0], [1.0]]), np.array([0, 1]), pair_code(2), GAUSS, 1.0)
    edge = np.zeros(1)
    assert bank.walker(edge).ask(0) == bank.decision(edge[None])[0, 0]
    assert (
        bank.walker(np.array([-0.5])).ask(0) > 0 > bank.walker(np.array([0.5])).ask(0)
    )
    with pytest.raises(NeedsBlocks):
        train(GAUSS(X, X), Y, pair_code(10), Kernel("precomputed"), 10.0).walker(X[0])


def test_two_banks_trained_at_once_in_threads_are_the_serial_ones():
    def one(C):
        bank = train(X, Y, rest_code(10), GAUSS, C)
        return (
            bank.coef.data.tobytes(),
            bank.bias.tobytes(),
            bank.decision(X[:300]).tobytes(),
        )

    with threadpool_limits(2, user_api="blas"):
        serial = [one(C) for C in (1.0, 10.0)]
        with ThreadPoolExecutor(2) as pool:
            for _ in range(3):
                assert list(pool.map(one, (1.0, 10.0))) == serial


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_after_training_answers_and_trains_alike(pairs):
    here = (
        pairs.decision(X[:300]).tobytes(),
        train(X[:300], Y[:300], pair_code(10), GAUSS, 10.0).coef.data.tobytes(),
    )
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        there = pool.submit(_answers, pairs)
        assert there.result(timeout=120) == here


def _answers(bank):
    return bank.decision(X[:300]).tobytes(), train(
        X[:300], Y[:300], pair_code(10), GAUSS, 10.0
    ).coef.data.tobytes()


@pytest.mark.parametrize("code", [pair_code(10), rest_code(10)], ids=["pairs", "rest"])
@pytest.mark.parametrize("kernel", [GAUSS, Kernel("linear")], ids=["rbf", "linear"])
def test_sparse_rows_train_and_answer_as_dense_ones(code, kernel, tmp_path):
    thin, few = csr_matrix(X), slice(0, 300)
    sparse, dense = (train(rows, Y, code, kernel, 1.0) for rows in (thin, X))
    np.testing.assert_allclose(sparse.objective, dense.objective, rtol=0.0001)
    f = sparse.decision(thin)
    assert np.abs(f - dense.decision(X)).max() < 0.02
    np.testing.assert_array_equal(sparse.decision(thin[7]), f[7:8])
    np.testing.assert_array_equal(sparse.decision(thin[few]), f[few])
    np.testing.assert_array_equal(sparse.decision(X[few]), f[few])
    np.testing.assert_allclose(dense.decision(thin), dense.decision(X), rtol=1e-5)
    np.savez(tmp_path / "bank.npz", **sparse.to_arrays())
    with np.load(tmp_path / "bank.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(
            Bank.from_arrays(dict(file)).decision(thin[few]), f[few]
        )


def test_weights_over_sparse_rows_answer_to_the_bit_as_over_dense_ones():
    # a row just between two classes is on the same side, whatever its storage
    Z = np.array([[0, 0, 0], [1, 1, 1], [2, 0, 0], [0, 0, 2], [3, 3, 3]], float)
    thin, codes = csr_matrix(Z), np.array([0, 1, 1, 1, 2])
    banks = [train(r, codes, pair_code(3), Kernel("linear")) for r in (thin, Z)]
    asked = np.array([[2.0, 2.0, 2.0], [-1.0, -1.0, -1.0], [1.0, 0.0, 2.0]])
    f = banks[1].decision(asked)
    for bank in banks:
        np.testing.assert_array_equal(bank.decision(asked), f)
        np.testing.assert_array_equal(bank.decision(csr_matrix(asked)), f)
    wide = random_array((60, 5000), density=0.01, random_state=0, format="csr")
    few = train(wide, np.arange(60) % 3, pair_code(3), Kernel("linear"))
    parts = few.decision(wide)
    np.testing.assert_allclose(parts, few.decision(wide.toarray()), atol=1e-12)


def test_sparse_memory_follows_the_nonzeros():
    rng = np.random.default_rng(0)
    thin = random_array((600, 50_000), density=2e-4, random_state=rng, format="csr")
    labels = np.arange(600) % 3
    tracemalloc.start()
    bank = train(thin, labels, pair_code(3), Kernel("linear"), 10.0)
    bank.decision(thin)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6 < thin.shape[0] * thin.shape[1] * 8
    assert (bank.decision(thin).argmax(1) >= 0).all(), (
        bank.decision(thin).argmax(1).min()
    )


def test_many_classes_of_two_rows():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(240, 4)), np.repeat(np.arange(120), 2)
    bank = train(rows, labels, pair_code(120), Kernel("rbf", 0.25), 1.0)
    assert bank.converged.all(), bank.kkt_violation.max()
    assert bank.kkt_violation.max() < 1e-9
    assert bank.coef.nnz <= 4 * 7140
    t = pair_index(3, 77, 120)
    mine = np.r_[6, 7, 154, 155]
    one = solve_smo(
        Kernel("rbf", 0.25)(rows[mine], rows[mine]),
        np.array([1.0, 1, -1, -1]),
        1.0,
        tol=1e-9,
    )
    assert bank.objective[t] == pytest.approx(one.objective, rel=1e-9)


def test_a_bank_of_very_many_machines_answers_as_its_coefficients_say():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(760, 4)), np.repeat(np.arange(380), 2)
    bank = train(rows, labels, pair_code(380), Kernel("rbf", 0.25), 1.0)
    assert bank.block_rows == 16
    f = bank.decision(rows[:37])
    np.testing.assert_allclose(
        f, bank.bias + (bank.coef @ bank.kernel(bank.vectors, rows[:37])).T, atol=1e-5
    )
    np.testing.assert_array_equal(
        f[[3, 20, 36]], bank.decision(rows[[3, 20, 36]])
    )  # the same bits in any batch
