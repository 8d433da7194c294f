"""What a user expects of a scikit-learn estimator."""

from functools import partial

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dagsvm_lab import DAGSVC, MaxWinsSVC, gamma_from_sigma, load, systems

EVERY = [getattr(systems, name) for name in systems.__all__]
BANKS = [c for c in EVERY if issubclass(c, systems.base.BankClassifier)]


@parametrize_with_checks([make() for make in EVERY])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]


@pytest.mark.parametrize("make", EVERY)
def test_saved_and_loaded_it_answers_the_same(make, iris, tmp_path):
    X, y = iris
    est = make(C=3.0).fit(X[::2], y[::2])
    est.save(tmp_path / "model.npz")
    again = make.load(tmp_path / "model.npz")
    assert again.get_params() == est.get_params()
    np.testing.assert_array_equal(again.predict(X), est.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), est.decision_function(X))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    other = DAGSVC if make is not DAGSVC else MaxWinsSVC
    with pytest.raises(ValueError, match=make.__name__):
        other.load(tmp_path / "model.npz")


def test_what_cannot_be_saved_says_so(iris, tmp_path):
    est = MaxWinsSVC(kernel=rbf_kernel).fit(*iris)
    with pytest.raises(ValueError, match="kernel"):
        est.save(tmp_path / "model.npz")


@pytest.mark.parametrize("make", BANKS)
def test_a_row_gets_the_same_answer_in_any_batch(make):
    X, y = load_digits(n_class=5, return_X_y=True)
    est = make(C=10.0).fit(X[:300], y[:300])
    T = X[300:600]
    scores, labels = est.decision_function(T), est.predict(T)
    order = np.random.default_rng(0).permutation(len(T))
    np.testing.assert_array_equal(est.decision_function(T[order]), scores[order])
    for row in order[:10]:
        np.testing.assert_array_equal(est.decision_function(T[row : row + 1])[0], scores[row])
    pieces = [est.predict(part) for part in np.split(T, [1, 8, 140])]
    np.testing.assert_array_equal(np.concatenate(pieces), labels)


@pytest.mark.parametrize("make", BANKS)
def test_precomputed_and_callable_kernels(make, iris):
    X, y = iris
    fit, K = X[::2], rbf_kernel(X, X[::2], gamma=0.5)
    if make is systems.DecisionTreeSVC:
        plain, given = make(gamma=0.5).fit(fit, y[::2]), None
    else:
        make = partial(make, random_state=0) if make is systems.ECOCSVC else make
        plain = make(gamma=0.5).fit(fit, y[::2])
        given = make(kernel="precomputed").fit(K[::2], y[::2])
    called = make(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5)).fit(fit, y[::2])
    np.testing.assert_array_equal(called.predict(X), plain.predict(X))
    if given is not None and make not in (
        systems.BinaryTreeSVC,
        systems.PosteriorSVC,
    ):  # these measure in feature space
        np.testing.assert_allclose(given.decision_function(K), plain.decision_function(X), atol=1e-5)


def test_in_pipelines_searches_and_calibration(iris):
    X, y = iris
    search = GridSearchCV(make_pipeline(StandardScaler(), DAGSVC()), {"dagsvc__C": [0.1, 10.0]}, cv=3, n_jobs=1)
    assert search.fit(X, y).best_score_ > 0.9
    assert CalibratedClassifierCV(MaxWinsSVC(), cv=3).fit(X, y).predict_proba(X).shape == (150, 3)


def test_class_and_sample_weights_move_the_answer(iris):
    X, y = iris
    flat = MaxWinsSVC(C=0.1).fit(X, y).predict(X)
    heavy = MaxWinsSVC(C=0.1, class_weight={"virginica": 50}).fit(X, y).predict(X)
    assert (heavy == "virginica").sum() > (flat == "virginica").sum()
    twice = DAGSVC(C=2.0, gamma=0.5).fit(np.vstack([X, X[50:]]), np.append(y, y[50:]))
    weighed = DAGSVC(C=2.0, gamma=0.5).fit(X, y, sample_weight=np.repeat([1, 2], [50, 100]))
    np.testing.assert_allclose(twice.decision_function(X), weighed.decision_function(X), atol=1e-7)


def test_progress_shows_only_when_asked(iris, capfd):
    MaxWinsSVC().fit(*iris)
    assert capfd.readouterr().err == ""
    MaxWinsSVC(verbose=1).fit(*iris)
    assert "3/3" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (dict(solver="newton"), "solver"),
        (dict(kernel="gauss"), "kernel"),
        (dict(gamma="wide"), "gamma"),
        (dict(C=-1.0), "C"),
        (dict(order=["setosa"]), "order"),
    ],
)
def test_wrong_parameters_are_named(params, message, iris):
    with pytest.raises(ValueError, match=message):
        DAGSVC(**params).fit(*iris)


def test_random_and_given_orders(iris):
    X, y = iris
    given = DAGSVC(order=["virginica", "setosa", "versicolor"]).fit(X, y)
    assert given.order_.tolist() == ["virginica", "setosa", "versicolor"]
    once, again = (DAGSVC(order="random", random_state=4).fit(X, y).order_.tolist() for _ in range(2))
    assert once == again and sorted(once) == sorted(set(y))
    np.testing.assert_array_equal(given.with_order(once).predict(X), DAGSVC(order=once).fit(X, y).predict(X))


PLATT = [  # sigma, C, and Table 1's kernel evaluations, K parameters and error of Letter
    ("OneVsRestSVC", 0.447, 100, 8183, 148, 2.2),
    ("MaxWinsSVC", 0.632, 100, 7357, 160, 2.4),
    ("DAGSVC", 0.447, 10, 3834, 223, 2.2),
]


@pytest.mark.parametrize(("name", "sigma", "C", "evaluations", "size", "error"), PLATT)
def test_letter_as_in_platts_table_1(name, sigma, C, evaluations, size, error):
    d = load("letter", scaled=True)
    est = getattr(systems, name)(C=C, gamma=gamma_from_sigma(sigma)).fit(d.X_train, d.y_train)
    labels, cost = est.predict_with_cost(d.X_test)
    assert cost.kernel_evaluations.mean() == pytest.approx(evaluations, rel=0.03)
    assert est.n_parameters_ / 1000 == pytest.approx(size, rel=0.03)
    assert 100 * np.mean(labels != d.y_test) == pytest.approx(error, abs=0.2)


def test_usps_as_in_platts_table_1():
    d = load("usps")
    est = MaxWinsSVC(C=100, gamma=gamma_from_sigma(5.06)).fit(d.X_train, d.y_train)
    assert len(est.support_) == pytest.approx(1936, abs=10)
    assert (est.predict(d.X_test) != d.y_test).sum() == pytest.approx(92, abs=2)
