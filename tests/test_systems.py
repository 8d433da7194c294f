"""Every system beside an independent computation.

It is scikit-learn's, or a few lines of brute force.
"""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import dagsvm_lab as lab
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, pair_index, rest_code
from dagsvm_lab.systems.adaptive import dbtc
from dagsvm_lab.systems.codes import hamming, random_code

TIGHT = dict(C=10.0, gamma=0.02, tol=1e-6)


@pytest.fixture(scope="module")
def six_digits():
    """Six six_digits: training rows, labels, test rows, test labels."""
    X, y = load_digits(n_class=6, return_X_y=True)
    X = X / 4
    return X[:400], y[:400], X[400:800], y[400:800]


@pytest.fixture(scope="module")
def pairs(six_digits):
    """LIBSVM, and its machines' outputs on the test rows, positive for the first."""
    X, y, T, _ = six_digits
    libsvm = SVC(**TIGHT, decision_function_shape="ovo").fit(X, y)
    return libsvm, libsvm.decision_function(T)


def same_but_for_ties(ours, theirs, margin):
    """Labels agree where the deciding margin is outside the solvers' tolerance."""
    clear = margin > 1e-3
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(ours[clear], theirs[clear])


def test_max_wins_is_libsvms_vote(six_digits, pairs):
    X, y, T, _ = six_digits
    libsvm, f = pairs
    ours = lab.MaxWinsSVC(**TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.machines_.decision(T), f, atol=2e-5)
    clear = ~ours.tied(T)
    np.testing.assert_array_equal(ours.predict(T)[clear], libsvm.predict(T)[clear])
    np.testing.assert_array_equal(ours.support_, np.sort(libsvm.support_))


def test_eighty_thousand_machines_are_asked_in_little_memory():
    corners = np.stack(np.unravel_index(np.arange(400), (20, 20)), axis=1).astype(float)
    votes, dag = (
        make(C=10.0, gamma=1.0).fit(corners, np.arange(400))
        for make in (lab.MaxWinsSVC, lab.DAGSVC)
    )
    tracemalloc.start()
    try:
        for est in (votes, dag):
            assert (
                est.predict(corners[:1])[0] == 0
            )  # what prepares the machines for single rows, then for blocks
            np.testing.assert_array_equal(est.predict(corners), np.arange(400))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * len(votes.machines_.code) * 400  # half of all outputs


def test_one_versus_rest_is_scikit_learns(six_digits):
    X, y, T, _ = six_digits
    theirs = OneVsRestClassifier(SVC(**TIGHT)).fit(X, y)
    ours = lab.OneVsRestSVC(**TIGHT).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(T), theirs.decision_function(T), atol=2e-5
    )
    np.testing.assert_array_equal(ours.predict(T), theirs.predict(T))


def test_and_gate_by_brute_force(six_digits, pairs):
    X, y, T, _ = six_digits
    T, n = (
        T + np.random.default_rng(0).normal(scale=1.2, size=T.shape),
        6,
    )  # noisy enough to be refused at times
    f = pairs[0].decision_function(T)
    gate = lab.AndGateSVC(**TIGHT, unclassified_label=-1).fit(X, y)
    wins = np.zeros((len(T), n))
    for i in range(n):
        for j in range(i + 1, n):
            wins[:, i] += f[:, pair_index(i, j, n)] >= 0
            wins[:, j] += f[:, pair_index(i, j, n)] < 0
    want = np.where(wins.max(axis=1) == n - 1, wins.argmax(axis=1), -1)
    same_but_for_ties(gate.predict(T), want, np.abs(f).min(axis=1))
    assert gate.unclassified(T).sum() == (gate.predict(T) == -1).sum() > 0
    nearest = lab.AndGateSVC(**TIGHT).fit(X, y)
    left = nearest.unclassified(T)
    np.testing.assert_array_equal(
        nearest.predict(T)[left], (f @ pair_code(n)).argmax(axis=1)[left]
    )
    words = lab.AndGateSVC(**TIGHT, unclassified_label="none").fit(
        X, np.array(list("abcdef"))[y]
    )
    assert (words.predict(T) == "none").sum() == left.sum()


def test_adaptive_dag_by_brute_force(six_digits, pairs):
    X, y, T, _ = six_digits
    f, n = pairs[1], 6
    est = lab.AdaptiveDAGSVC(**TIGHT).fit(X, y)
    D = np.array(
        [
            [dbtc(Kernel("rbf", 0.02), X[y == a], X[y == b]) for b in range(n)]
            for a in range(n)
        ]
    )
    np.testing.assert_allclose(est.separability_, D, atol=1e-12)
    want, least = [], []
    for row in f:
        i, j = np.unravel_index(np.argmax(D), D.shape)
        left, seen = set(range(n)), []
        while True:
            i, j = min(i, j), max(i, j)
            value = row[pair_index(i, j, n)]
            seen.append(abs(value))
            survivor, loser = (i, j) if value >= 0 else (j, i)
            left.discard(loser)
            if len(left) == 1:
                break
            i, j = survivor, max(left - {survivor}, key=lambda c: D[survivor, c])
        want.append(survivor)
        least.append(min(seen))
    same_but_for_ties(est.predict(T), np.array(want), np.array(least))
    np.testing.assert_array_equal(est.predict_with_cost(T)[1].binary_decisions, n - 1)


def test_distance_between_classes_is_eq_9_corrected():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 3)), rng.normal(size=(5, 3)) + 1
    k = Kernel("rbf", 0.3)

    def d(P, Q):  # Eq. 10
        return (np.diag(k(P, P))[:, None] + np.diag(k(Q, Q)) - 2 * k(P, Q)).sum()

    right = d(A, B) / (7 * 5) - d(A, A) / (2 * 7**2) - d(B, B) / (2 * 5**2)
    assert dbtc(k, A, B) == pytest.approx(right, abs=1e-14)
    assert dbtc(Kernel("linear"), A, B) == pytest.approx(
        ((A.mean(0) - B.mean(0)) ** 2).sum()
    )
    assert (
        abs(dbtc(k, A, B) - (d(A, B) / 35 - d(A, A) / 49 - d(B, B) / 25)) > 0.1
    )  # as printed


def test_per_pair_parameters(six_digits):
    X, y, T, _ = six_digits
    n = 6
    gamma, C = np.full((n, n), 0.02), np.full((n, n), 10.0)
    gamma[1, 4] = gamma[4, 1] = 0.2
    C[0, 5] = C[5, 0] = 0.05
    est = lab.AdaptiveDAGSVC(gamma=gamma, C=C, tol=1e-6).fit(X, y)
    for i, j, g, c in ((1, 4, 0.2, 10.0), (0, 5, 0.02, 0.05), (2, 3, 0.02, 10.0)):
        rows = (y == i) | (y == j)
        theirs = SVC(gamma=g, C=c, tol=1e-6).fit(X[rows], y[rows])
        np.testing.assert_allclose(
            est.machines_.decision(T)[:, pair_index(i, j, n)],
            -theirs.decision_function(T),
            atol=2e-5,
        )
    with pytest.raises(ValueError, match="symmetric"):
        lab.AdaptiveDAGSVC(gamma=np.triu(gamma)).fit(X, y)
    tuned = lab.AdaptiveDAGSVC(
        tune="dbtc", gammas=[0.001, 0.02, 0.5], Cs=[0.1, 10], cv=3
    ).fit(X, y)
    i, j = 2, 3
    best = max(
        [0.001, 0.02, 0.5], key=lambda g: dbtc(Kernel("rbf", g), X[y == i], X[y == j])
    )
    assert tuned.gamma_[i, j] == best and set(np.unique(tuned.C_)) <= {0, 0.1, 10}


@pytest.mark.slow
def test_dcsvm_by_brute_force(six_digits, pairs):
    X, y, T, _ = six_digits
    libsvm, f = pairs
    n, theta = 6, 0.02
    train = libsvm.decision_function(X)
    code = pair_code(n)

    def answer(row, classes):
        steps = 0
        while len(classes) > 1:
            best = None
            for t in range(len(code)):
                i, j = np.flatnonzero(code[t])
                if i in classes and j in classes:
                    as_i = {
                        c for c in classes if np.mean(train[y == c, t] >= 0) > theta
                    }
                    as_j = {c for c in classes if np.mean(train[y == c, t] < 0) > theta}
                    k = len(classes)
                    score = np.mean(train[y == i, t] >= 0) + np.mean(
                        train[y == j, t] < 0
                    )
                    key = (
                        len(as_i) + len(as_j) - k,
                        -min(k - len(as_j), k - len(as_i)),
                        -score,
                    )
                    if best is None or key < best[0]:
                        best = key, t, as_i - {j} | {i}, as_j - {i} | {j}
            classes = best[2] if row[best[1]] >= 0 else best[3]
            steps += 1
        return classes.pop(), steps

    want = [answer(row, set(range(n))) for row in f]
    est = lab.DCSVC(**TIGHT, threshold=theta).fit(X, y)
    labels, cost = est.predict_with_cost(T)
    same_but_for_ties(labels, np.array([w[0] for w in want]), np.abs(f).min(axis=1))
    assert np.mean(cost.binary_decisions == [w[1] for w in want]) > 0.99
    np.testing.assert_allclose(est.predictions_table_.sum(axis=2), 1)
    again = est.with_threshold(0.0)
    np.testing.assert_array_equal(
        again.predict(T), lab.DCSVC(**TIGHT).fit(X, y).predict(T)
    )


def test_trees_by_brute_force(six_digits, pairs):
    X, y, T, _ = six_digits
    libsvm, f = pairs
    train, n = libsvm.decision_function(X), 6

    def tree(rows):
        classes = np.unique(y[rows])
        if len(classes) == 1:
            return classes[0]
        centre = X[rows].mean(axis=0)
        far = [
            ((X[rows][y[rows] == c].mean(axis=0) - centre) ** 2).sum() for c in classes
        ]
        i, j = sorted(classes[np.argsort(far)[:2]])
        t = pair_index(i, j, n)
        right = np.where(
            y[rows] == i, True, np.where(y[rows] == j, False, train[rows, t] >= 0)
        )
        return t, tree(rows[~right]), tree(rows[right])

    def walk(node, row):
        while isinstance(node, tuple):
            node = node[2] if row[node[0]] >= 0 else node[1]
        return node

    root = tree(np.arange(len(X)))
    est = lab.BinaryTreeSVC(**TIGHT, pair="centre", routing="samples").fit(X, y)
    same_but_for_ties(
        est.predict(T), np.array([walk(root, row) for row in f]), np.abs(f).min(axis=1)
    )
    assert len(est.machines_.code) == len(est.graph_.machines_used) <= 15
    for pair in ("fisher", "closest", "random"):
        for more in (dict(), dict(routing="samples", band=0.1), dict(split_above=0.05)):
            other = lab.BinaryTreeSVC(**TIGHT, pair=pair, random_state=0, **more).fit(
                X, y
            )
            assert (
                other.score(T, six_digits[3]) > 0.9
                and other.graph_.depth().max() <= n - 1
            )
    with pytest.raises(RuntimeError, match="max_nodes"):
        lab.BinaryTreeSVC(**TIGHT, max_nodes=5).fit(X, y)


@pytest.mark.parametrize("separate", ["one", "many"])
@pytest.mark.parametrize("distance", ["euclidean", "mahalanobis"])
def test_decision_tree_svms_of_takahashi_and_abe(six_digits, separate, distance):
    X, y, T, u = six_digits
    est = lab.DecisionTreeSVC(**TIGHT, separate=separate, distance=distance).fit(X, y)
    assert len(est.machines_.code) == 5 and est.score(T, u) > 0.93
    if separate == "one":
        np.testing.assert_array_equal(np.sort((est.machines_.code == 1).sum(axis=1)), 1)
    if (separate, distance) == ("one", "euclidean"):
        means = np.array([X[y == c].mean(axis=0) for c in range(6)])
        d = np.sqrt(((means[:, None] - means) ** 2).sum(-1)) + np.diag([np.inf] * 6)
        root = est.machines_.code[est.graph_.machine[0]]
        assert np.flatnonzero(root == 1).tolist() == [np.argmax(d.min(axis=1))]
        t = est.graph_.machine[0]
        theirs = SVC(**TIGHT).fit(X, y == np.argmax(d.min(axis=1)))
        np.testing.assert_allclose(
            est.machines_.decision(T)[:, t], theirs.decision_function(T), atol=2e-5
        )


@pytest.mark.parametrize("distance", ["euclidean", "mahalanobis"])
def test_a_class_whose_rows_count_nothing_is_left_out_of_the_tree(six_digits, distance):
    X, y, T, _ = six_digits
    here = y != 2
    est, alone = (lab.DecisionTreeSVC(**TIGHT, distance=distance) for _ in range(2))
    est.fit(X, y, sample_weight=here.astype(float))
    np.testing.assert_array_equal(
        est.predict(T), alone.fit(X[here], y[here]).predict(T)
    )


def test_error_correcting_codes_by_brute_force(six_digits):
    X, y, T, _ = six_digits
    code = random_code(6, 12, True, 0)
    f = []
    for row in code:
        side = row[y]
        machine = SVC(**TIGHT).fit(X[side != 0], side[side != 0])
        f.append(machine.decision_function(T))
    f = np.array(f).T
    loss = np.maximum(0, 1 - f[:, :, None] * code[None]).sum(axis=1)
    ours = lab.ECOCSVC(**TIGHT, code=code).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(T), -loss, atol=1e-4)
    away = ((1 - np.sign(f)[:, :, None] * code[None]) / 2).sum(axis=1)
    np.testing.assert_allclose(hamming(f, code), -away)
    dense = random_code(6, 15, False, 0)
    np.testing.assert_array_equal(np.abs(dense), 1)
    assert (np.abs(dense.sum(axis=1)) < 6).all(), np.max(np.abs(dense.sum(axis=1)) - 6)
    np.testing.assert_array_equal(
        lab.ECOCSVC(**TIGHT, code=rest_code(6)).fit(X, y).predict(T),
        lab.OneVsRestSVC(**TIGHT).fit(X, y).predict(T),
    )


def test_posterior_with_one_neighbour_is_the_ordinary_machine(six_digits):
    X, y, T, _ = six_digits
    for strategy, plain in (("ovo", lab.MaxWinsSVC), ("ovr", lab.OneVsRestSVC)):
        soft = lab.PosteriorSVC(**TIGHT, strategy=strategy, n_neighbors=1).fit(X, y)
        np.testing.assert_allclose(
            soft.machines_.decision(T),
            plain(**TIGHT).fit(X, y).machines_.decision(T),
            atol=1e-6,
        )
    hard = lab.BinaryTreeSVC(**TIGHT, pair="fisher").fit(X, y)
    soft = lab.BinaryTreeSVC(**TIGHT, pair="fisher", labels="soft", n_neighbors=1).fit(
        X, y
    )
    np.testing.assert_array_equal(hard.predict(T), soft.predict(T))


@pytest.mark.qp
@pytest.mark.parametrize(
    "name",
    [
        "OneVsRestSVC",
        "MaxWinsSVC",
        "DAGSVC",
        "AdaptiveDAGSVC",
        "BinaryTreeSVC",
        "DCSVC",
        "PosteriorSVC",
    ],
)
def test_both_solvers_give_the_same_labels(name):
    X, y = load_iris(return_X_y=True)
    make = getattr(lab, name)
    smo, qp = (
        make(C=5.0, gamma=0.3, tol=1e-5, solver=s).fit(X[::2], y[::2])
        for s in ("smo", "qp")
    )
    np.testing.assert_array_equal(smo.predict(X), qp.predict(X))
    np.testing.assert_allclose(
        smo.decision_function(X), qp.decision_function(X), atol=1e-3
    )


def test_costs_count_what_is_on_the_path(six_digits):
    X, y, T, _ = six_digits
    for est in (lab.DAGSVC(**TIGHT), lab.DCSVC(**TIGHT), lab.MaxWinsSVC(**TIGHT)):
        _, cost = est.fit(X, y).predict_with_cost(T[:30])
        paths, coef = (
            est.decision_path(T[:30]).toarray().astype(bool),
            est.machines_.coef,
        )
        for row in range(30):
            met = coef[np.flatnonzero(paths[row])]
            assert cost.kernel_evaluations[row] == len(set(met.indices))
            assert (
                cost.support_vectors[row] == met.nnz
                and cost.binary_decisions[row] == paths[row].sum()
            )


def test_answers_are_plain_arrays(six_digits):
    X, y, T, _ = six_digits
    for est in (
        lab.OneVsRestSVC(),
        lab.ECOCSVC(),
        lab.ECOCSVC(decoding="hamming"),
        lab.MaxWinsSVC(),
        lab.AndGateSVC(),
    ):
        est.fit(X, y)
        labels, cost = est.predict_with_cost(T[:5])
        for value in (
            labels,
            est.predict(T[:1]),
            est.decision_function(T[:5]),
            cost.kernel_evaluations,
        ):
            assert type(value) is np.ndarray
