"""The filter and the graph behind it: both written plainly, and the sets' guarantee."""

import json
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from dagsvm_lab import DAGSVC, DCSVC, FilteredDAGSVC, load, tune
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, pair_index, train
from dagsvm_lab.systems import filtered
from dagsvm_lab.systems.sparse import (
    RIDGE,
    White,
    lead_bound,
    leads,
    matching_pursuit,
    multinomial,
)

SETTINGS = {"C": 8, "gamma": 1.0}


@pytest.fixture(scope="module")
def segments():
    d = load("segment", scaled=True)
    order = np.random.default_rng(0).permutation(len(d.X))
    return d.X[order], d.y[order]


@pytest.fixture(scope="module")
def fitted(segments):
    X, y = segments
    return FilteredDAGSVC(**SETTINGS).fit(X[:700], y[:700])


# ---- the filter


def test_matching_pursuit_takes_what_explains_most_of_what_is_left():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    codes = np.repeat([0, 1, 2], 20)
    X[codes == 1] += 2
    K = Kernel("rbf", 0.5)(X, X[::2])
    found = matching_pursuit(K, codes, 4)

    K = K - K.mean(axis=0)
    left = (np.eye(3)[codes] - 1 / 3) * np.sqrt(3)
    floor = 1e-3 * (K**2).sum(axis=0).mean()
    before = []
    for k in found.tolist():
        gain = ((K.T @ left) ** 2).sum(axis=1) / ((K**2).sum(axis=0) + floor)
        gain[before] = 0
        assert gain[k] == pytest.approx(gain.max(), rel=0.02)
        own = K[:, k] / np.sqrt(K[:, k] @ K[:, k] + floor)
        K = K - np.outer(own, own @ K)
        left = left - np.outer(own, own @ left)
        before.append(k)
    assert len(set(before)) == 4


def test_white_coordinates_are_white_and_nested():
    K = np.random.default_rng(0).random((500, 6)) @ np.diag([1, 2, 3, 4, 5, 6])
    white = White.of(K)
    z = white(K)
    np.testing.assert_allclose(np.cov(z[:-1], bias=True), np.eye(6), atol=1e-4)
    np.testing.assert_allclose(white(K[:, :3])[:3], z[:3], atol=1e-5)
    weights = np.random.default_rng(1).normal(size=(7, 4))
    W, b = white.unfolded(weights)
    np.testing.assert_allclose(K @ W.T + b, z.T @ weights, atol=1e-3)


def test_weights_are_those_of_a_logistic_regression():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 4))
    codes = (z[:, :3] + rng.normal(size=(300, 3))).argmax(axis=1)
    often = rng.integers(1, 4, size=300).astype(float)
    rows = np.vstack([z.T, np.ones(300)]).astype(np.float32)
    W = multinomial(rows, codes, often, np.zeros((1, 3)))
    theirs = LogisticRegression(C=1 / (RIDGE * 300), tol=1e-8).fit(
        z, codes, sample_weight=often / often.mean()
    )
    g = z @ W[:-1] + W[-1]
    np.testing.assert_allclose(leads(g), leads(theirs.decision_function(z)), atol=0.02)


def test_the_bound_lets_no_more_than_a_share_through():
    own = np.array([0.0, 0.0, 0.5, 3.0, 0.2, 1.0, 0.0, 0.0, 0.0])
    assert lead_bound(own, 0.1) == 3.0  # one in ten: the largest itself
    assert lead_bound(own, 0.2) == 1.0
    assert lead_bound(own, 0.0) == 1.5 * 3.0 + 1.0
    assert lead_bound(0 * own, 0.0) == np.log(9)
    rng = np.random.default_rng(0)
    lost = [rng.random() > lead_bound(rng.random(60), 0.05) for _ in range(4000)]
    assert np.mean(lost) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


def test_leads_are_behind_the_best():
    assert leads(np.array([[3.0, 1.0, -2.0]])).tolist() == [[0.0, 2.0, 5.0]]


def test_every_part_has_its_share_of_every_class():
    codes = np.repeat([0, 1, 2], [40, 7, 1])
    part = filtered.stratified_parts(codes, np.random.default_rng(0))
    counts = [np.bincount(part[codes == c], minlength=4).tolist() for c in range(3)]
    assert counts == [[10] * 4, [1, 2, 2, 2], [0, 1, 0, 0]]


# ---- the filter and the graph


def plain_list(left, f, n):
    """The list without what the filter rejects: the answer and the machines asked."""
    asked = []
    while len(left) > 1:
        t = pair_index(left[0], left[-1], n)
        asked.append(t)
        left = left[:-1] if f[t] >= 0 else left[1:]
    return left[0], asked


def plain_sets(table, threshold, left, f):
    """DCSVM over what the filter leaves, with Don's rule said plainly."""
    pairs = list(zip(*np.triu_indices(table.shape[1], 1), strict=True))
    asked = []
    while len(left) > 1:
        best = None
        for t, (i, j) in enumerate(pairs):
            if i not in left or j not in left:
                continue
            ones = {
                c for c in left if c == i or (c != j and table[t, c, 0] > threshold)
            }
            twos = {
                c for c in left if c == j or (c != i and table[t, c, 1] > threshold)
            }
            impure = len(ones) + len(twos) - len(left)
            uneven = max(len(ones), len(twos))
            score = round((table[t, i, 0] + table[t, j, 1]) / 2, 12)
            key = (impure, uneven, -score)
            if best is None or key < best[0]:
                best = key, t, ones, twos
        _, t, ones, twos = best
        asked.append(t)
        left = ones if f[t] >= 0 else twos
    return left.pop(), asked


@pytest.mark.parametrize(
    "base", [None, DAGSVC(order="random", random_state=3), DCSVC()]
)
def test_the_graph_decides_among_what_the_filter_leaves(segments, base):
    X, y = segments
    est = FilteredDAGSVC(base=base, **SETTINGS).fit(X[:700], y[:700])
    assert len(est.filter_support_), "there is a filter"
    X = X[700:1000]
    n = len(est.classes_)
    bank = est.machines_
    vectors = bank.vectors[est.filter_support_]
    K = Kernel("rbf", 1.0)(X, vectors)
    g = K @ est.filter_coef_.T + est.filter_intercept_
    f = bank.decision(X)
    labels, cost = est.predict_with_cost(X)
    paths = est.decision_path(X)
    uses = np.abs(bank.coef.toarray()) > 0
    sizes = set()
    for k in range(len(X)):
        behind = g[k].max() - g[k]
        if isinstance(base, DCSVC):
            left = set(np.flatnonzero(behind <= est.bound_).tolist())
            table = est.base_.predictions_table_
            answer, asked = plain_sets(table, 0.0, left, f[k])
        else:
            order = est.base_._list_.tolist()
            left = [c for c in order if behind[c] <= est.bound_]
            if base is None:
                answer, asked = plain_list(left, f[k], n)
            else:
                answer, asked = by_order(left, f[k], n)
        sizes.add(len(asked))
        assert est.classes_[answer] == labels[k]
        assert paths[[k]].indices.tolist() == [*sorted(asked), len(bank.code)]
        met = uses[asked].any(axis=0)
        met[est.filter_support_] = True
        summed = uses[asked].sum() + len(est.filter_support_)
        assert cost.kernel_evaluations[k] == met.sum()
        assert cost.support_vectors[k] == summed
        assert cost.binary_decisions[k] == len(asked) + 1
    assert {0, 1} < sizes


def by_order(left, f, n):
    """As `plain_list`, for a list in any order."""
    asked = []
    while len(left) > 1:
        i, j = sorted((left[0], left[-1]))
        t = pair_index(i, j, n)
        asked.append(t)
        left = [c for c in left if c != (j if f[t] >= 0 else i)]
    return left[0], asked


def test_it_is_cheaper_than_the_dag_and_as_accurate(segments, fitted):
    X, y = segments
    dag = DAGSVC(**SETTINGS).fit_over(fitted.machines_, X[:700], y[:700])
    labels, cost = fitted.predict_with_cost(X[700:])
    theirs, dearer = dag.predict_with_cost(X[700:])
    assert cost.kernel_evaluations.mean() < 0.5 * dearer.kernel_evaluations.mean()
    assert abs((labels == y[700:]).mean() - (theirs == y[700:]).mean()) < 0.01


def test_decision_function_ranks_the_answer_first(segments, fitted):
    X, _ = segments
    scores = fitted.decision_function(X[700:])
    first = fitted.classes_[scores.argmax(axis=1)]
    np.testing.assert_array_equal(first, fitted.predict(X[700:]))


def test_the_more_may_be_lost_the_more_is_rejected(segments, fitted):
    X, y = segments
    kept = []
    for loss in (0.0, 0.2, 1.0):
        est = FilteredDAGSVC(loss=loss, **SETTINGS)
        est.fit_over(fitted.machines_, X[:700], y[:700])
        kept.append(est.predict_with_cost(X[700:])[1].kernel_evaluations.mean())
    assert kept[0] >= kept[1] >= kept[2]


def test_where_it_does_not_pay_there_is_none(segments):
    X, y = segments
    few = np.concatenate([np.flatnonzero(y == c)[:8] for c in np.unique(y)])
    two = np.flatnonzero(np.isin(y[:700], np.unique(y)[:2]))
    for rows in (few, two):
        est = FilteredDAGSVC(**SETTINGS).fit(X[rows], y[rows])
        dag = DAGSVC(**SETTINGS).fit(X[rows], y[rows])
        assert est.filter_ is None and est.bound_ == np.inf
        np.testing.assert_array_equal(est.predict(X), dag.predict(X))
        np.testing.assert_array_equal(
            est.decision_function(X), dag.decision_function(X)
        )
        assert (est.decision_path(X) != dag.decision_path(X)).nnz == 0


def test_a_class_of_one_row(segments):
    X, y = segments
    rows = [
        np.flatnonzero(y == c)[: 60 if k else 1] for k, c in enumerate(np.unique(y))
    ]
    rows = np.concatenate(rows)
    est = FilteredDAGSVC(**SETTINGS).fit(X[rows], y[rows])
    assert np.isfinite(est.filter_coef_).all(), est.filter_coef_
    assert (est.predict(X[rows]) == y[rows]).mean() > 0.95


def test_rows_that_count_twice_count_twice(segments):
    X, y = segments
    often = np.random.default_rng(0).integers(1, 3, size=400)
    once = FilteredDAGSVC(**SETTINGS).fit(X[:400], y[:400], sample_weight=often)
    none = np.concatenate([often, np.zeros(100)])
    with_none = FilteredDAGSVC(**SETTINGS).fit(X[:500], y[:500], sample_weight=none)
    np.testing.assert_array_equal(once.filter_coef_, with_none.filter_coef_)


# ---- as every estimator


def test_copies_give_the_same_answers(segments, fitted, tmp_path):
    X, y = segments
    fitted = pickle.loads(pickle.dumps(fitted)).calibrate(X[700:900], y[700:900])
    fitted.save(tmp_path / "model.npz")
    copies = [FilteredDAGSVC.load(tmp_path / "model.npz")]
    copies.append(pickle.loads(pickle.dumps(fitted)))
    over = FilteredDAGSVC(**SETTINGS).fit_over(fitted.machines_, X[:700], y[:700])
    copies.append(over.calibrate(X[700:900], y[700:900]))
    X = X[900:]
    for est in copies:
        np.testing.assert_array_equal(
            est.decision_function(X), fitted.decision_function(X)
        )
        np.testing.assert_array_equal(
            est.predict_set(X, 0.02), fitted.predict_set(X, 0.02)
        )
        assert (est.decision_path(X) != fitted.decision_path(X)).nnz == 0


def test_the_base_is_saved_too(segments, tmp_path):
    X, y = segments
    base = DCSVC(threshold=0.05, prefer="score")
    est = FilteredDAGSVC(base=base, **SETTINGS).fit(X[:700], y[:700])
    est.save(tmp_path / "model.npz")
    again = FilteredDAGSVC.load(tmp_path / "model.npz")
    assert again.base.get_params() == base.get_params()
    np.testing.assert_array_equal(again.predict(X), est.predict(X))


def test_a_conformal_model_is_refused_in_a_sentence(segments, fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        arrays = dict(file)
    about = json.loads(str(arrays["about"])) | {"class": "ConformalDAGSVC"}
    arrays["about"] = np.array(json.dumps(about))
    np.savez(tmp_path / "old.npz", **arrays)
    for kind in (FilteredDAGSVC, DAGSVC):
        with pytest.raises(ValueError, match="fit a FilteredDAGSVC instead"):
            kind.load(tmp_path / "old.npz")


def test_one_row_is_answered_as_in_a_batch(segments, fitted):
    X, _ = segments
    alone = [fitted.predict(x[None])[0] for x in X[700:1000]]
    assert alone == fitted.predict(X[700:1000]).tolist()


def test_rows_given_as_a_kernel_matrix_or_sparse(segments, fitted):
    X, y = segments
    kernel = Kernel("rbf", 1.0)
    of_kernel = FilteredDAGSVC(C=8, kernel="precomputed")
    of_kernel.fit(kernel(X[:700], X[:700]), y[:700])
    of_sparse = FilteredDAGSVC(**SETTINGS).fit(csr_matrix(X[:700]), y[:700])
    want = fitted.predict(X[700:])
    assert of_kernel.bound_ == pytest.approx(fitted.bound_, rel=1e-2)
    assert (of_kernel.predict(kernel(X[700:], X[:700])) == want).mean() > 0.995
    assert (of_sparse.predict(csr_matrix(X[700:])) == want).mean() > 0.995


def test_it_can_be_tuned(segments):
    X, y = segments
    found = tune(FilteredDAGSVC(), X[:300], y[:300], C=(1, 8), gamma=(1.0,), cv=3)
    assert found.best_params_["C"] in (1, 8)
    assert found.best_estimator_.score(X[300:600], y[300:600]) > 0.85


def test_a_base_with_scales_of_its_own_is_refused(segments):
    X, y = segments
    with pytest.raises(ValueError, match="scale_pairs"):
        FilteredDAGSVC(base=DCSVC(scale_pairs=True)).fit(X[:100], y[:100])


# ---- sets


def test_scores_are_duels_with_the_answer_then_leads(segments, fitted):
    X, _ = segments
    X = X[700:800]
    scores = fitted.set_scores(X)
    g = fitted.filter_.decision(X)
    f = fitted.machines_.decision(X)
    answer = np.searchsorted(fitted.classes_, fitted.predict(X))
    for k, a in enumerate(answer):
        for c in range(7):
            behind = g[k].max() - g[k, c]
            if c == a:
                want = -np.inf
            elif behind > fitted.bound_:
                want = 1000 + behind
            else:
                duel = f[k, pair_index(min(a, c), max(a, c), 7)]
                want = duel if a < c else -duel
            assert scores[k, c] == pytest.approx(want)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_theorem_by_simulation(segments, fitted, alpha):
    X, y = segments
    scores = fitted.set_scores(X[700:])
    own = np.searchsorted(fitted.classes_, y[700:])
    score = scores[np.arange(len(own)), own]
    est = fitted._variant()
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(300):
        rows = rng.permutation(len(own))
        est.calibration_ = np.sort(score[rows[:99]])
        covered.append((score[rows[99:299]] <= est.threshold(alpha)).mean())
    assert np.mean(covered) >= 1 - alpha - 3 * np.std(covered) / np.sqrt(300)


def test_sets_hold_the_answer_and_shrink_with_alpha(segments, fitted):
    X, y = segments
    est = fitted._variant().calibrate(X[700:900], y[700:900])
    assert len(est.calibration_) == 200
    before = np.ones((len(X) - 900, 7), dtype=bool)
    for alpha in (0.001, 0.01, 0.05, 0.3):
        sets = est.predict_set(X[900:], alpha)
        assert (sets <= before).all(), alpha
        answer = np.searchsorted(est.classes_, est.predict(X[900:]))
        assert sets[np.arange(len(sets)), answer].all(), alpha
        before = sets
    # 200 rows cannot promise one in a thousand
    assert est.threshold(0.001) == np.inf
    np.testing.assert_array_equal(
        est.predict_set(X[900:]), est.predict_set(X[900:], est.alpha)
    )


def test_without_a_calibration_set_there_are_no_sets(segments, fitted):
    X, _ = segments
    with pytest.raises(NotFittedError, match="calibrate"):
        fitted.predict_set(X[700:])
    strange = fitted._variant().calibrate(X[700:900], np.full(200, -7))
    assert strange.predict_set(X[900:]).all(), "a class that cannot be ruled out"


@pytest.mark.parametrize("alpha", [0, 1, True, 1.5, 5, -0.1, np.nan])
def test_no_chance_of_a_miss_is_refused(alpha, segments, fitted):
    X, y = segments
    est = fitted._variant().calibrate(X[700:900], y[700:900])
    with pytest.raises(ValueError, match="alpha"):
        est.predict_set(X[900:], alpha)
    with pytest.raises(ValueError, match="alpha"):
        est.set_params(alpha=alpha).predict_set(X[900:])


def test_labels_that_cannot_be_meant_are_refused(segments, fitted):
    X, y = segments
    est = fitted._variant()
    with pytest.raises(ValueError, match="inconsistent"):
        est.calibrate(X[700:900], y[700:800])
    with pytest.raises(ValueError, match="kind"):
        est.calibrate(X[700:900], y[700:900].astype(str))
    with pytest.raises(ValueError):
        est.calibrate(X[700:900], None)


def test_the_machines_held_out_know_nothing_of_the_part(segments, fitted):
    X, y = segments
    codes = np.searchsorted(fitted.classes_, y[:700])
    sample = fitted._checked_sample(X[:700], y[:700], None)
    rows = np.arange(700)
    part = rows % 4
    error = fitted._held_out_error(sample, rows[part == 0])
    bank = train(
        X[:700][part > 0], codes[part > 0], pair_code(7), Kernel("rbf", 1.0), 8.0
    )
    f = bank.decision(X[:700][part == 0])
    wrong = [
        plain_list(list(range(7)), row, 7)[0] != c
        for row, c in zip(f, codes[part == 0], strict=True)
    ]
    assert error == pytest.approx(np.mean(wrong), abs=1 / 175)
