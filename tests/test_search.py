"""Choosing C and gamma: the same choice and the same scores as scikit-learn's search over the same estimator."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold

import dagsvm_lab as lab
from dagsvm_lab.systems import base

GRID = {"C": [0.1, 100.0], "gamma": [0.003, 0.03]}
SYSTEMS = [
    lab.MaxWinsSVC(),
    lab.AndGateSVC(unclassified_label=-1),
    lab.DAGSVC(order="random", random_state=1),
    lab.AdaptiveDAGSVC(),
    lab.DCSVC(threshold=0.02),
    lab.BinaryTreeSVC(pair="fisher"),
    lab.BinaryTreeSVC(routing="classes", follow=0.05, retrain=True),
    lab.MaxWinsSVC(scale_pairs=True),
    lab.PosteriorSVC(n_neighbors=5),
    lab.OneVsRestSVC(class_weight="balanced"),
    lab.DecisionTreeSVC(),
    lab.ECOCSVC(random_state=0),
    lab.ConformalDAGSVC(),
    lab.CrammerSingerSVC(),
]


@pytest.fixture(scope="module")
def digits():
    """Few noisy digits, so that candidates differ."""
    X, y = load_digits(n_class=4, return_X_y=True)
    X = X[:90] / 4 + np.random.default_rng(0).normal(scale=0.8, size=(90, 64))
    return X, np.array(list("abcd"))[y[:90]]


def same(ours, theirs):
    """Whether both searches tell the same."""
    assert ours.best_params_ == theirs.best_params_ and ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-12)
    assert list(ours.cv_results_["params"]) == list(theirs.cv_results_["params"])
    for key in ours.cv_results_:
        if key != "params":
            mine, other = (np.asarray(r.cv_results_[key], float) for r in (ours, theirs))
            np.testing.assert_allclose(mine, other, atol=1e-12, err_msg=key)


def test_many_systems_at_once_as_grid_search_finds_them(digits):
    X, y = digits
    cv = StratifiedKFold(2, shuffle=True, random_state=0)
    for est, ours in zip(SYSTEMS, lab.tune(SYSTEMS, X, y, cv=cv, **GRID), strict=True):
        theirs = GridSearchCV(est, GRID, cv=cv).fit(X, y)
        same(ours, theirs)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
        assert ours.best_estimator_.get_params() == theirs.best_estimator_.get_params()


def test_other_folds_and_grids(digits):
    X, y = digits
    est = lab.DAGSVC(gamma=0.01)
    draws = ShuffleSplit(3, test_size=0.3, random_state=2)
    same(lab.tune(est, X, y, C=[1.0, 10.0], cv=draws), GridSearchCV(est, {"C": [1.0, 10.0]}, cv=draws).fit(X, y))
    every = StratifiedKFold(12)  # more folds than take their steps together, dealt to two jobs
    same(
        lab.tune(est, X, y, C=[1.0, 10.0], cv=every, n_jobs=2),
        GridSearchCV(est, {"C": [1.0, 10.0]}, cv=every).fit(X, y),
    )
    twice = {"C": [1.0, 10.0, 1.0], "gamma": [0.1, 0.01, 0.1]}
    same(lab.tune(est, X, y, cv=3, **twice), GridSearchCV(est, twice, cv=3).fit(X, y))
    held = np.arange(60, 90)
    ours = lab.tune(est, X[:60], y[:60], gamma=[0.01, 0.1], cv=(X[held], y[held]), refit=False)
    same(ours, GridSearchCV(est, {"gamma": [0.01, 0.1]}, cv=[(np.arange(60), held)], refit=False).fit(X, y))
    assert ours.best_estimator_ is None
    thin = lab.tune(est, csr_matrix(X), y, C=[1.0, 10.0], cv=draws)  # sparse rows as dense ones
    same(thin, lab.tune(est, X, y, C=[1.0, 10.0], cv=draws))
    K = rbf_kernel(X, gamma=0.01)
    pre = lab.MaxWinsSVC(kernel="precomputed")
    same(lab.tune(pre, K, y, C=[0.1, 10.0], cv=3), GridSearchCV(pre, {"C": [0.1, 10.0]}, cv=3).fit(K, y))


def test_machines_are_trained_once_for_all_systems(digits, monkeypatch):
    X, y = digits
    calls = []
    train = base.train_grid
    monkeypatch.setattr(
        base,
        "train_grid",
        lambda X, codes, code, *more, **how: calls.append(len(code)) or train(X, codes, code, *more, **how),
    )
    how = dict(cv=3, refit=False, C=[0.1, 1e4, 1e5], gamma=[0.003, 0.03])
    lab.tune(lab.MaxWinsSVC(), X, y, **how)
    alone = calls.copy()
    assert alone == [6]  # the pairs, for every fold, C and gamma at once
    calls.clear()
    lab.tune([lab.MaxWinsSVC(), lab.DAGSVC(), lab.DCSVC(), lab.BinaryTreeSVC()], X, y, **how)
    assert calls == alone
    calls.clear()
    lab.tune([lab.MaxWinsSVC(), lab.DAGSVC()], *load_wine(return_X_y=True), C=[1.0], cv=2)
    assert calls == [3, 3, 3]  # two folds, whose gamma="scale" differs, and one bank for both refits


def test_a_system_that_tunes_itself_is_refused(digits):
    with pytest.raises(ValueError, match="tune=None"):
        lab.tune(lab.AdaptiveDAGSVC(tune="dbtc"), *digits, C=[1.0])


def test_values_may_come_from_an_iterator(digits):
    X, y = digits
    once = lab.tune(lab.DAGSVC(), X[:200], y[:200], C=iter([1, 10]), gamma=iter([0.01]), cv=2, refit=False)
    again = lab.tune(lab.DAGSVC(), X[:200], y[:200], C=[1, 10], gamma=[0.01], cv=2, refit=False)
    np.testing.assert_array_equal(once.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"])
