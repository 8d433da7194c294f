"""Comparing systems on one's own data: what the table says is what fits say alone."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

import dagsvm_lab as lab
from dagsvm_lab.statistics import binomial_interval, mcnemar
from dagsvm_lab.systems.comparison import _holm


@pytest.fixture(scope="module")
def noisy_iris():
    """Iris with noise, so that systems differ."""
    X, y = load_iris(return_X_y=True)
    X = X + np.random.default_rng(0).normal(scale=0.6, size=X.shape)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def test_the_table_is_what_fits_say_alone(noisy_iris):
    X, y = noisy_iris
    systems = {
        "dag": lab.DAGSVC(C=5.0, gamma=0.3),
        "tree": lab.BinaryTreeSVC(C=5.0, gamma=0.3),
        "pipe": make_pipeline(StandardScaler(), lab.CrammerSingerSVC()),
        "svc": SVC(C=5.0, gamma=0.3),
    }
    cv = StratifiedKFold(3)
    found = lab.compare(X, y, systems, cv=cv)
    assert found.names == list(systems) and found.wrong.shape == (4, 150)
    for k, est in enumerate(systems.values()):
        costs = []
        for fit, held in cv.split(X, y):
            one = clone(est).fit(X[fit], y[fit])
            wrong = one.predict(X[held]) != y[held]
            np.testing.assert_array_equal(found.wrong[k, held], wrong, err_msg=str(est))
            if isinstance(one, lab.DAGSVC | lab.BinaryTreeSVC):
                cost = one.predict_with_cost(X[held])[1]
                costs.append(cost.kernel_evaluations.mean())
        hits = 150 - found.wrong[k].sum()
        assert found.measures["accuracy"][k] == pytest.approx(hits / 1.5)
        limits = (found.measures["low"][k], found.measures["high"][k])
        assert limits == binomial_interval(int(hits), 150)
        if costs:
            evaluations = found.measures["kernel_evaluations"][k]
            assert evaluations == pytest.approx(np.mean(costs))
    assert np.isnan(found.measures["kernel_evaluations"][3]), "SVC counts nothing"
    assert found.measures["binary_decisions"][2] == 3, "one machine a class, all asked"
    for name in ("row_us", "batch_us", "train_s"):
        assert (found.measures[name] > 0).all(), name


def test_usual_systems_take_the_parameters_of_one(noisy_iris):
    X, y = noisy_iris
    tuned = lab.tune(
        make_pipeline(StandardScaler(), lab.MaxWinsSVC()), X, y, C=[1, 5], cv=3
    )
    found = lab.compare(X, y, tuned.best_estimator_, cv=3)
    assert found.names[1] == "MaxWinsSVC" and len(found.names) == 7
    scores = tuned.cv_results_["mean_test_score"]
    assert found.measures["accuracy"][1] == pytest.approx(100 * scores.max())
    assert "DAGSVC" in str(found) and "<td>DAGSVC</td>" in found._repr_html_()


def test_sparse_rows_are_for_systems_that_take_them(noisy_iris):
    X, y = noisy_iris
    thin = csr_matrix(np.where(X > 2, X, 0.0))
    found = lab.compare(thin, y, lab.DAGSVC(C=5), cv=2)
    assert "DAGSVC" in found.names and "BinaryTreeSVC" not in found.names
    pipe = make_pipeline(MaxAbsScaler(), lab.DAGSVC(C=5))
    assert lab.compare(thin, y, pipe, cv=2).names == found.names
    both = [lab.MaxWinsSVC(), lab.BinaryTreeSVC()]  # the same machines
    for tried in (lab.compare, partial(lab.tune, C=[1.0])):
        arguments = (thin, y, both) if tried is lab.compare else (both, thin, y)
        with pytest.raises(TypeError, match="[Ss]parse"):
            tried(*arguments, cv=2)


def test_p_values_are_holms():
    rng = np.random.default_rng(0)
    wrong = rng.random((4, 300)) < np.array([0.1, 0.12, 0.3, 0.5])[:, None]
    table = _holm(wrong)
    pairs = []
    for a, b in combinations(range(4), 2):
        pairs.append((mcnemar(wrong[a], wrong[b])["p_exact"], a, b))
    least = 0.0
    for k, (p, a, b) in enumerate(sorted(pairs)):
        least = max(least, min(1.0, p * (6 - k)))  # step down: 6, 5, ... 1 tests left
        assert table[a, b] == table[b, a] == pytest.approx(least)
    assert table[0, 1] > 0.05 > table[0, 2]


def test_a_picture_and_a_frame(noisy_iris):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("pandas")
    found = lab.compare(*noisy_iris, [lab.DAGSVC(), lab.MaxWinsSVC()], cv=2)
    assert found.to_frame().index.tolist() == ["DAGSVC", "MaxWinsSVC"]
    ax = found.plot("batch_us")
    assert {text.get_text() for text in ax.texts} == {"DAGSVC", "MaxWinsSVC"}
    assert ax.get_xlabel() == "microseconds in a batch"
    plt.close(ax.figure)


def test_what_cannot_be_compared_is_refused(noisy_iris):
    X, y = noisy_iris
    with pytest.raises(ValueError, match="each row back at most once"):
        cv = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
        lab.compare(X, y, cv=cv)
    with pytest.raises(ValueError, match="give names, in a dictionary"):
        lab.compare(X, y, [lab.DAGSVC(), lab.DAGSVC(C=2)])
    with pytest.raises(ValueError, match="systems must be"):
        lab.compare(X, y, SVC())
    with pytest.raises(ValueError, match="no folds"):
        lab.compare(X, y, cv=[])
