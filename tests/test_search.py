"""Choosing C and gamma: the choice and scores of scikit-learn's search."""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, f1_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ParameterGrid,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import dagsvm_lab as lab
from dagsvm_lab.systems import base

GRID = {"C": [0.1, 100.0], "gamma": [0.003, 0.03]}
SYSTEMS = [
    lab.MaxWinsSVC(),
    lab.AndGateSVC(unclassified_label=-1),
    lab.DAGSVC(order="random", random_state=1),
    lab.AdaptiveDAGSVC(),
    lab.DCSVC(threshold=0.02),
    lab.BinaryTreeSVC(routing="samples"),
    lab.BinaryTreeSVC(split_above=0.05, retrain=True),
    lab.MaxWinsSVC(scale_pairs=True),
    lab.PosteriorSVC(n_neighbors=5),
    lab.OneVsRestSVC(class_weight="balanced"),
    lab.DecisionTreeSVC(),
    lab.ECOCSVC(random_state=0),
    lab.FilteredDAGSVC(),
    lab.CrammerSingerSVC(),
]


@pytest.fixture(scope="module")
def noisy_digits():
    """Few noisy noisy_digits, so that candidates differ."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X = X[:90] / 4 + np.random.default_rng(0).normal(scale=0.8, size=(90, 64))
    return X, np.array(list("abcd"))[y[:90]]


def assert_same(ours, theirs):
    """Assert that both searches tell the same."""
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-12)
    assert list(ours.cv_results_["params"]) == list(theirs.cv_results_["params"])
    for key in ours.cv_results_:
        if key != "params":
            mine, other = (
                np.asarray(r.cv_results_[key], float) for r in (ours, theirs)
            )
            np.testing.assert_allclose(mine, other, atol=1e-12, err_msg=key)


def test_many_systems_at_once_as_grid_search_finds_them(noisy_digits):
    X, y = noisy_digits
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    for est, ours in zip(SYSTEMS, lab.tune(SYSTEMS, X, y, cv=cv, **GRID), strict=True):
        theirs = GridSearchCV(est, GRID, cv=cv).fit(X, y)
        assert_same(ours, theirs)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert ours.best_estimator_.get_params() == theirs.best_estimator_.get_params()


@pytest.mark.parametrize(
    "systems, grid",
    [
        ([lab.MaxWinsSVC(C=0.01), lab.MaxWinsSVC(C=100.0)], {"gamma": [0.003, 0.03]}),
        ([lab.DAGSVC(gamma=0.003), lab.DAGSVC(gamma=0.3)], {"C": [0.1, 100.0]}),
        (
            [lab.AdaptiveDAGSVC(C=np.full((4, 4), C)) for C in (0.01, 100.0)],
            {"gamma": [0.003, 0.03]},
        ),
    ],
    ids=["C", "gamma", "array"],
)
def test_what_is_not_tried_is_each_systems_own(systems, grid, noisy_digits):
    X, y = noisy_digits
    found = lab.tune(systems, X, y, cv=3, refit=False, **grid)
    for system, ours in zip(systems, found, strict=True):
        alone = lab.tune(system, X, y, cv=3, refit=False, **grid)
        assert_same(ours, alone)
    first, second = (ours.cv_results_["mean_test_score"] for ours in found)
    assert (first != second).any(), "the systems should not be alike"


def test_large_arrays_of_C_are_told_apart():
    # NumPy's repr of more than 1,000 numbers leaves out the middle
    rng = np.random.default_rng(0)
    X = rng.normal(size=(99, 2)) + 3.0 * np.repeat(np.arange(33), 3)[:, None]
    y = np.repeat(np.arange(33), 3)
    weak = np.full((33, 33), 100.0)
    weak[5:28, 5:28] = 1e-4
    systems = [lab.AdaptiveDAGSVC(C=C) for C in (weak, np.full((33, 33), 100.0))]
    for system, ours in zip(systems, lab.tune(systems, X, y, cv=3), strict=True):
        assert_same(ours, GridSearchCV(system, {}, cv=3).fit(X, y))
        alone = clone(system).fit(X, y)
        np.testing.assert_array_equal(ours.predict(X), alone.predict(X))


def test_other_folds_and_grids(noisy_digits):
    X, y = noisy_digits
    est = lab.DAGSVC(gamma=0.01)
    draws = ShuffleSplit(3, test_size=0.3, random_state=2)
    assert_same(
        lab.tune(est, X, y, C=[1.0, 10.0], cv=draws),
        GridSearchCV(est, {"C": [1.0, 10.0]}, cv=draws).fit(X, y),
    )
    every = StratifiedKFold(
        12
    )  # more folds than take their steps together, dealt to two jobs
    assert_same(
        lab.tune(est, X, y, C=[1.0, 10.0], cv=every, n_jobs=2),
        GridSearchCV(est, {"C": [1.0, 10.0]}, cv=every).fit(X, y),
    )
    twice = {"C": [1.0, 10.0, 1.0], "gamma": [0.1, 0.01, 0.1]}
    assert_same(
        lab.tune(est, X, y, cv=3, **twice), GridSearchCV(est, twice, cv=3).fit(X, y)
    )
    held = np.arange(60, 90)
    ours = lab.tune(
        est, X[:60], y[:60], gamma=[0.01, 0.1], cv=(X[held], y[held]), refit=False
    )
    assert_same(
        ours,
        GridSearchCV(
            est, {"gamma": [0.01, 0.1]}, cv=[(np.arange(60), held)], refit=False
        ).fit(X, y),
    )
    assert ours.best_estimator_ is None
    thin = lab.tune(
        est, csr_matrix(X), y, C=[1.0, 10.0], cv=draws
    )  # sparse rows as dense ones
    assert_same(thin, lab.tune(est, X, y, C=[1.0, 10.0], cv=draws))
    K = rbf_kernel(X, gamma=0.01)
    pre = lab.MaxWinsSVC(kernel="precomputed")
    assert_same(
        lab.tune(pre, K, y, C=[0.1, 10.0], cv=3),
        GridSearchCV(pre, {"C": [0.1, 10.0]}, cv=3).fit(K, y),
    )


def test_machines_are_trained_once_for_all_systems(noisy_digits, monkeypatch):
    X, y = noisy_digits
    calls = []
    train = base.train_grid
    monkeypatch.setattr(
        base,
        "train_grid",
        lambda X, codes, code, *more, **how: (
            calls.append(len(code)) or train(X, codes, code, *more, **how)
        ),
    )
    how = dict(cv=3, refit=False, C=[0.1, 1e4, 1e5], gamma=[0.003, 0.03])
    lab.tune(lab.MaxWinsSVC(), X, y, **how)
    alone = calls.copy()
    assert alone == [6]  # the pairs, for every fold, C and gamma at once
    calls.clear()
    lab.tune(
        [lab.MaxWinsSVC(), lab.DAGSVC(), lab.DCSVC(), lab.BinaryTreeSVC()], X, y, **how
    )
    assert calls == alone
    calls.clear()
    lab.tune(
        [lab.MaxWinsSVC(), lab.DAGSVC()], *load_wine(return_X_y=True), C=[1.0], cv=2
    )
    assert calls == [
        3,
        3,
        3,
    ]  # two folds, whose gamma="scale" differs, and one bank for both refits


def test_a_system_that_tunes_itself_is_refused(noisy_digits):
    with pytest.raises(ValueError, match="tune=None"):
        lab.tune(lab.AdaptiveDAGSVC(tune="dbtc"), *noisy_digits, C=[1.0])


def test_values_may_come_from_an_iterator(noisy_digits):
    X, y = noisy_digits
    once = lab.tune(
        lab.DAGSVC(),
        X[:200],
        y[:200],
        C=iter([1, 10]),
        gamma=iter([0.01]),
        cv=2,
        refit=False,
    )
    again = lab.tune(
        lab.DAGSVC(), X[:200], y[:200], C=[1, 10], gamma=[0.01], cv=2, refit=False
    )
    np.testing.assert_array_equal(
        once.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"]
    )


STEP = {f"dagsvc__{key}": values for key, values in GRID.items()}


def test_pipelines_as_grid_search_tunes_them(noisy_digits):
    X, y = noisy_digits
    folds = StratifiedKFold(3)
    pipes = [
        make_pipeline(StandardScaler(), PCA(20, random_state=0), make())
        for make in (lab.DAGSVC, lab.MaxWinsSVC, SVC)
    ]
    found = lab.tune(pipes, X, y, cv=folds, **GRID)
    for pipe, ours in zip(pipes, found, strict=True):
        step = pipe.steps[-1][0]
        grid = {f"{step}__{key}": values for key, values in GRID.items()}
        theirs = GridSearchCV(pipe, grid, cv=folds).fit(X, y)
        assert_same(ours, theirs)
        np.testing.assert_array_equal(
            ours.best_estimator_.decision_function(X),
            theirs.best_estimator_.decision_function(X),
            err_msg=step,
        )
        assert ours.best_estimator_.get_params().keys() == pipe.get_params().keys()


def test_a_pipelines_machines_are_trained_once(noisy_digits, monkeypatch):
    X, y = noisy_digits
    calls = []
    train = base.train_grid
    monkeypatch.setattr(
        base,
        "train_grid",
        lambda *given, **how: calls.append(1) or train(*given, **how),
    )
    pipes = [make_pipeline(StandardScaler(), m()) for m in (lab.MaxWinsSVC, lab.DAGSVC)]
    lab.tune(pipes, X, y, C=[1.0, 10.0], cv=3)
    assert len(calls) == 4  # each fold, and all rows


def test_columns_of_a_frame_are_kept(noisy_digits):
    pd = pytest.importorskip("pandas")
    X, y = noisy_digits
    frame = pd.DataFrame(X[:, :6]).add_prefix("input")
    frame["kind"] = np.array(["u", "v", "w"])[np.arange(len(y)) % 3]
    turn = make_column_transformer(
        (OneHotEncoder(), ["kind"]), remainder=StandardScaler()
    )
    pipe = make_pipeline(turn, lab.DAGSVC())
    ours = lab.tune(pipe, frame, pd.Series(y), cv=3, **GRID)
    assert_same(ours, GridSearchCV(pipe, STEP, cv=3).fit(frame, y))
    assert ours.best_estimator_.feature_names_in_.tolist() == list(frame)
    numbers = frame.drop(columns="kind")
    plain = lab.tune(lab.DAGSVC(), numbers, y, cv=3, **GRID)
    assert_same(plain, GridSearchCV(lab.DAGSVC(), GRID, cv=3).fit(numbers, y))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(numbers[numbers.columns[::-1]])
    held = lab.tune(
        lab.DAGSVC(), numbers[:60], y[:60], cv=(numbers[60:], y[60:]), **GRID
    )
    fold = [(np.arange(60), np.arange(60, 90))]
    assert_same(
        held, GridSearchCV(lab.DAGSVC(), GRID, cv=fold, refit=False).fit(numbers, y)
    )
    with pytest.raises(ValueError, match="columns are not those of X"):
        other = numbers[numbers.columns[::-1]]
        lab.tune(lab.DAGSVC(), numbers, y, cv=(other, y), **GRID)


def by_hand(est, X, y, splits, metric, weights):
    """Mean score of every candidate, fit by fit, held rows weighed as well."""
    means = []
    for point in ParameterGrid(GRID):
        scores = []
        for fit, held in splits:
            one = clone(est).set_params(**point)
            one.fit(X[fit], y[fit], sample_weight=weights[fit])
            answers = one.predict(X[held])
            scores.append(metric(y[held], answers, sample_weight=weights[held]))
        means.append(np.mean(scores))
    return means


def test_weights_groups_and_scoring(noisy_digits):
    X, y = noisy_digits
    weights = np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(y))
    groups = np.arange(len(y)) // 7
    cv = GroupKFold(3)
    splits = list(cv.split(X, y, groups))
    how = dict(cv=cv, groups=groups, sample_weight=weights, **GRID)
    macro = partial(f1_score, average="macro")
    for est in (lab.DAGSVC(), lab.BinaryTreeSVC(), lab.WestonWatkinsSVC()):
        for scoring, metric in (("f1_macro", macro), (None, accuracy_score)):
            ours = lab.tune(est, X, y, scoring=scoring, **how)
            want = by_hand(est, X, y, splits, metric, weights)
            np.testing.assert_allclose(
                ours.cv_results_["mean_test_score"], want, err_msg=f"{est} {scoring}"
            )
        best = clone(est).set_params(**ours.best_params_).fit(X, y, weights)
        np.testing.assert_array_equal(
            ours.best_estimator_.decision_function(X),
            best.decision_function(X),
            err_msg=str(est),
        )
    with pytest.raises(ValueError, match="one metric"):
        lab.tune(lab.DAGSVC(), X, y, scoring=["accuracy", "f1_macro"])
    search = GridSearchCV(lab.DAGSVC(), GRID, cv=cv, scoring="f1_macro")
    ours = lab.tune(
        lab.DAGSVC(), X, y, cv=cv, groups=groups, scoring="f1_macro", **GRID
    )
    assert_same(ours, search.fit(X, y, groups=groups))


def test_weights_in_a_pipeline(noisy_digits):
    X, y = noisy_digits
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(y))
    splits = list(StratifiedKFold(3).split(X, y))
    pipe = make_pipeline(PCA(20, random_state=0), lab.DAGSVC())
    ours = lab.tune(pipe, X, y, cv=3, sample_weight=weights, **GRID)
    means = []
    for point in ParameterGrid(STEP):
        scores = []
        for fit, held in splits:
            one = clone(pipe).set_params(**point)
            one.fit(X[fit], y[fit], dagsvc__sample_weight=weights[fit])
            scores.append(one.score(X[held], y[held], sample_weight=weights[held]))
        means.append(np.mean(scores))
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], means, err_msg="means"
    )


NO_FOLDS = {
    "none": ([], "cv gives no folds"),
    "nothing held": ([(np.arange(80), np.arange(0))], "fold 0 of cv holds no rows"),
    "nothing trained": ([(np.arange(0), np.arange(80))], "fold 0 of cv trains on no"),
    "an empty set": ((np.empty((0, 64)), np.empty(0)), "fold 0 of cv holds no rows"),
}


@pytest.mark.parametrize(("cv", "message"), NO_FOLDS.values(), ids=NO_FOLDS)
def test_folds_without_rows_are_refused(cv, message, noisy_digits):
    with pytest.raises(ValueError, match=message):
        lab.tune(lab.DAGSVC(), *noisy_digits, cv=cv, **GRID)


@pytest.mark.parametrize("kernel", ["laplacian", "linear", "poly", "sigmoid"])
def test_other_kernels_share_machines_as_rightly(kernel, noisy_digits):
    X, y = noisy_digits
    est = lab.MaxWinsSVC(kernel=kernel, coef0=1.0)
    theirs = GridSearchCV(est, GRID, cv=3).fit(X, y)
    assert_same(lab.tune(est, X, y, cv=3, **GRID), theirs)


def test_costs_of_a_pipelines_predictions(noisy_digits):
    X, y = noisy_digits
    pipe = make_pipeline(StandardScaler(), lab.DAGSVC()).fit(X, y)
    labels, cost = pipe[-1].predict_with_cost(pipe[:-1].transform(X))
    np.testing.assert_array_equal(labels, pipe.predict(X))
    assert (cost.binary_decisions == 3).all(), "four classes: three decisions a row"
