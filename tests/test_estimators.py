"""What a user expects of a scikit-learn estimator."""

from functools import partial
from threading import get_ident
from time import sleep

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from dagsvm_lab import (
    DAGSVC,
    DCSVC,
    ECOCSVC,
    MaxWinsSVC,
    OneVsRestSVC,
    gamma_from_sigma,
    load,
    systems,
)
from dagsvm_lab.ballots import won

EVERY = [getattr(systems, name) for name in systems.__all__]
BANKS = [c for c in EVERY if issubclass(c, systems.base.BankClassifier)]


@parametrize_with_checks([make() for make in EVERY])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


KERNELS = ["precomputed", "linear", "poly", "sigmoid", "laplacian"]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("make", EVERY)
def test_scikit_learns_own_checks_with_every_kernel(make, kernel):
    check_estimator(make(kernel=kernel), on_skip=None)


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
        np.testing.assert_array_equal(
            est.decision_function(T[row : row + 1])[0], scores[row]
        )
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
        np.testing.assert_allclose(
            given.decision_function(K), plain.decision_function(X), atol=1e-5
        )


def test_in_pipelines_searches_and_calibration(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DAGSVC()),
        {"dagsvc__C": [0.1, 10.0]},
        cv=3,
        n_jobs=1,
    )
    assert search.fit(X, y).best_score_ > 0.9
    assert CalibratedClassifierCV(MaxWinsSVC(), cv=3).fit(X, y).predict_proba(
        X
    ).shape == (150, 3)


def test_class_and_sample_weights_move_the_answer(iris):
    X, y = iris
    flat = MaxWinsSVC(C=0.1).fit(X, y).predict(X)
    heavy = MaxWinsSVC(C=0.1, class_weight={"virginica": 50}).fit(X, y).predict(X)
    assert (heavy == "virginica").sum() > (flat == "virginica").sum()
    twice = DAGSVC(C=2.0, gamma=0.5).fit(np.vstack([X, X[50:]]), np.append(y, y[50:]))
    weighed = DAGSVC(C=2.0, gamma=0.5).fit(
        X, y, sample_weight=np.repeat([1, 2], [50, 100])
    )
    np.testing.assert_allclose(
        twice.decision_function(X), weighed.decision_function(X), atol=1e-7
    )


def test_a_negative_weight_leaves_a_row_out_as_in_svc(iris):
    X, y = iris
    weights = np.ones(len(y))
    weights[::7] = -1.0
    with_none = MaxWinsSVC().fit(X, y, sample_weight=np.maximum(weights, 0.0))
    ours = MaxWinsSVC().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(
        ours.decision_function(X), with_none.decision_function(X)
    )
    for left, said in (("setosa", "belong to the same class"), ("none", "negative")):
        with pytest.raises(ValueError, match=said):
            MaxWinsSVC().fit(X, y, sample_weight=np.where(y == left, 1.0, -1.0))


def test_a_limit_of_steps_is_said_in_libsvms_words(iris):
    said = r"Solver terminated early \(max_iter=2\).  Consider pre-processing"
    with pytest.warns(ConvergenceWarning, match=said):
        MaxWinsSVC(max_iter=2).fit(*iris)


def test_progress_shows_only_when_asked(iris, capfd):
    MaxWinsSVC().fit(*iris)
    assert capfd.readouterr().err == ""
    MaxWinsSVC(verbose=1).fit(*iris)
    assert "3/3" in capfd.readouterr().err


WRONG = {
    "C": [0, -1.0, "1", np.nan, 10**400, None],
    "kernel": ["gauss", 3, None],
    "gamma": [0, -1, np.nan, np.inf, "wide"],
    "degree": ["3", -1, 2.5],
    "coef0": ["0", np.nan, None],
    "tol": [0, -1.0, "x", np.inf],
    "solver": ["newton", None],
    "n_jobs": [1.5, "2"],
    "cache_size": [-1, 0, "big"],
    "max_iter": [0, -2, 1.5],
    "class_weight": ["even", 3],
    "verbose": ["loud", -1],
    "shrinking": ["no", 2],
    "probability": [True, "no"],
    "decision_function_shape": ["all", None],
    "break_ties": ["no"],
    "scale_pairs": [2],
    "order": ["reverse", 3],
    "random_state": ["a", -1],
    "threshold": [-0.1, 0.5, "0"],
    "prefer": ["purity"],
    "tune": ["best"],
    "gammas": [3],
    "Cs": ["x"],
    "separability": ["all", -1.0],
    "cv": ["x", 1.5],
    "strategy": ["ova"],
    "n_neighbors": [0, 1.5],
    "among": ["none"],
    "bandwidth": [0, -1.0],
    "labels": ["plain"],
    "pair": ["best"],
    "band": [-0.1],
    "split_above": [-0.1, 2],
    "routing": ["rows"],
    "retrain": ["yes"],
    "max_nodes": [0],
    "separate": ["two"],
    "distance": ["cosine"],
    "code": ["full", 3],
    "decoding": ["soft"],
    "code_size": [0, 1.5],
    "alpha": [0, 1, -0.1],
    "loss": [-0.1, 2],
    "posterior": ["yes", 2],
    "base": ["dag", 3, MaxWinsSVC()],
}


@pytest.mark.parametrize("make", EVERY)
def test_every_parameter_is_checked_and_named(make, iris):
    for name in make().get_params():
        if name == "unclassified_label":  # anything will do
            continue
        for value in WRONG[name]:
            with pytest.raises(
                InvalidParameterError,
                match=f"'{name}' parameter of {make.__name__} must be",
            ):
                make(**{name: value}).fit(*iris)


def test_orders_must_name_every_class(iris):
    for order in (
        ["setosa"],
        ["setosa", "setosa", "virginica"],
        ["setosa", "versicolor", "rose"],
    ):
        with pytest.raises(ValueError, match="each of the 3 classes once"):
            DAGSVC(order=order).fit(*iris)
    with pytest.raises(InvalidParameterError, match="threshold"):
        DCSVC().fit(*iris).with_threshold(0.7)


def test_no_seed_means_another_draw(iris):
    X, y = load_digits(return_X_y=True)
    bank = MaxWinsSVC().fit(X[:200], y[:200]).machines_
    orders = {
        tuple(DAGSVC(order="random").fit_over(bank, X[:200], y[:200]).order_)
        for _ in range(5)
    }
    assert len(orders) > 1
    codes = {ECOCSVC().fit(*iris).machines_.code.tobytes() for _ in range(5)}
    assert len(codes) > 1


@pytest.mark.parametrize("make", EVERY)
def test_what_users_of_svc_look_for(make, iris):
    X, y = iris
    linear, bent = make(kernel="linear").fit(X, y), make().fit(X, y)
    for est in (linear, bent):
        bank = est.machines_
        assert est.support_vectors_.shape == (len(est.support_), 4)
        np.testing.assert_array_equal(est.support_vectors_, X[est.support_])
        assert est.dual_coef_.shape == (
            len(bank.code),
            len(est.support_),
        ) and est.intercept_.shape == (len(bank.code),)
        np.testing.assert_array_equal(
            est.n_support_, [(y[est.support_] == c).sum() for c in est.classes_]
        )
    f = X @ linear.coef_.T + linear.intercept_
    np.testing.assert_allclose(f, linear.machines_.decision(X), atol=1e-9)
    assert not hasattr(bent, "coef_")


def test_attributes_are_libsvms(iris):
    X, y = iris[0][50:], iris[1][50:]
    ours, theirs = (
        MaxWinsSVC(kernel="linear", tol=1e-8).fit(X, y),
        SVC(kernel="linear", tol=1e-8).fit(X, y),
    )
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    order = np.argsort(theirs.support_)  # SVC's stand class by class
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_[:, order], atol=1e-4)
    f = X @ ours.coef_.T + ours.intercept_
    np.testing.assert_allclose(f[:, 0], ours.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="read-only"):
        ours.coef_[0, 0] = 0.0
    scaled = MaxWinsSVC(kernel="linear", scale_pairs=True).fit(*iris)
    f = iris[0] @ scaled.coef_.T + scaled.intercept_
    np.testing.assert_allclose(f, scaled.machines_.decision(iris[0]), atol=1e-9)


def test_saved_models_keep_names_keys_and_labels(iris, tmp_path):
    frame, y = load_iris(as_frame=True, return_X_y=True)
    for est in (
        DAGSVC(class_weight={0: 1.0, 2: 3.0}).fit(frame, y).with_order([2, 0, 1]),
        DCSVC(class_weight={0: 1.0, 2: 3.0}).fit(frame, y).with_threshold(0.1, "score"),
        OneVsRestSVC(class_weight={"virginica": 2.0}).fit(frame, iris[1]),
    ):
        est.save(tmp_path / "model.npz")
        again = type(est).load(tmp_path / "model.npz")
        assert (
            again.feature_names_in_.tolist()
            == frame.columns.tolist()
            == est.feature_names_in_.tolist()
        )
        assert (
            again.get_params() == est.get_params()
            and again.class_weight.keys() == est.class_weight.keys()
        )
        assert again.classes_.dtype == est.classes_.dtype and type(
            again.classes_[0]
        ) is type(est.classes_[0])
        np.testing.assert_array_equal(again.predict(frame), est.predict(frame))
        with pytest.raises(ValueError, match="feature names"):
            again.predict(frame[frame.columns[::-1]])


def test_jobs_at_predict_change_nothing():
    X, y = load_digits(return_X_y=True)
    threads = set()

    def kernel(A, B):
        threads.add(get_ident())
        sleep(0.001)  # long enough for another thread to take the next rows
        return A @ B.T

    one, two = (
        MaxWinsSVC(kernel=kernel, n_jobs=jobs).fit(X[:300], y[:300])
        for jobs in (None, 2)
    )
    scores = one.decision_function(X)
    labels = one.predict(X)
    threads.clear()
    np.testing.assert_array_equal(two.decision_function(X), scores)
    np.testing.assert_array_equal(two.predict(X), labels)
    assert len(threads) > 1


def test_probabilities_by_calibration(iris):
    X, y = iris
    make = partial(CalibratedClassifierCV, cv=3, method="sigmoid", ensemble=False)
    dag = make(make_pipeline(StandardScaler(), DAGSVC())).fit(X, y)
    p = dag.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert roc_auc_score(y, p, multi_class="ovr") > 0.95
    both = VotingClassifier(
        [("dag", make(DAGSVC())), ("wins", make(MaxWinsSVC()))], voting="soft"
    ).fit(X, y)
    assert both.score(X, y) > 0.9
    assert (
        cross_val_score(make(MaxWinsSVC()), X, y, scoring="roc_auc_ovr", cv=3).mean()
        > 0.95
    )


@pytest.mark.parametrize("make", EVERY)
def test_the_answer_has_the_largest_score(make):
    X, y = load_digits(n_class=5, return_X_y=True)
    T = X[200:600] + np.random.default_rng(0).normal(scale=4, size=(400, 64))
    est = make(C=5.0).fit(X[:200], y[:200])
    scores = est.decision_function(T)
    best = est.classes_[scores.argmax(axis=1)]
    tied = np.zeros(len(T), bool)
    if make in (systems.MaxWinsSVC, systems.PosteriorSVC):  # ties go to the first
        counts = won(est.machines_.decision(T), est.machines_.code)
        tied = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    np.testing.assert_array_equal(est.predict(T)[~tied], best[~tied])
    two = make(C=5.0).fit(X[y < 2][:60], y[y < 2][:60])
    np.testing.assert_array_equal(two.predict(T), two.decision_function(T) > 0)


def test_scores_of_machines_as_svc_gives_them(iris):
    X, y = iris
    ours = MaxWinsSVC(gamma=0.5, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    theirs = SVC(gamma=0.5, tol=1e-6, decision_function_shape="ovo").fit(X, y)
    f = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), f, atol=1e-5)
    with pytest.raises(ValueError, match="break_ties must be False"):
        ours.set_params(break_ties=True).predict(X)


@pytest.mark.parametrize("make", EVERY)
def test_which_kernels_take_sparse_rows(make, iris):
    X, y = iris
    thin = csr_matrix(np.where(X > 3, X, 0.0))
    given = make(kernel="precomputed")
    assert not given.__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match="Sparse precomputed"):
        given.fit(csr_matrix(X @ X.T), y)
    make = partial(make, random_state=0)
    called = make(kernel=lambda A, B: A @ B.T)
    assert not called.__sklearn_tags__().input_tags.sparse  # nobody knows
    if called._sparse:
        linear = make(kernel="linear").fit(thin, y)
        np.testing.assert_array_equal(
            called.fit(thin, y).predict(thin), linear.predict(thin)
        )


@pytest.mark.parametrize("make", EVERY)
def test_skops_keeps_them(make, iris):
    skops = pytest.importorskip("skops.io")
    X, y = iris
    pipe = make_pipeline(StandardScaler(), make()).fit(X, y)
    data = skops.dumps(pipe)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))


def test_random_and_given_orders(iris):
    X, y = iris
    given = DAGSVC(order=["virginica", "setosa", "versicolor"]).fit(X, y)
    assert given.order_.tolist() == ["virginica", "setosa", "versicolor"]
    once, again = (
        DAGSVC(order="random", random_state=4).fit(X, y).order_.tolist()
        for _ in range(2)
    )
    assert once == again and sorted(once) == sorted(set(y))
    np.testing.assert_array_equal(
        given.with_order(once).predict(X), DAGSVC(order=once).fit(X, y).predict(X)
    )


PLATT = [  # sigma, C; Table 1's kernel evaluations, K parameters, error of Letter
    ("OneVsRestSVC", 0.447, 100, 8183, 148, 2.2),
    ("MaxWinsSVC", 0.632, 100, 7357, 160, 2.4),
    ("DAGSVC", 0.447, 10, 3834, 223, 2.2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sigma", "C", "evaluations", "size", "error"), PLATT)
def test_letter_as_in_platts_table_1(name, sigma, C, evaluations, size, error):
    d = load("letter", scaled=True)
    est = getattr(systems, name)(C=C, gamma=gamma_from_sigma(sigma)).fit(
        d.X_train, d.y_train
    )
    labels, cost = est.predict_with_cost(d.X_test)
    assert cost.kernel_evaluations.mean() == pytest.approx(evaluations, rel=0.03)
    assert est.n_parameters_ / 1000 == pytest.approx(size, rel=0.03)
    assert 100 * np.mean(labels != d.y_test) == pytest.approx(error, abs=0.2)


@pytest.mark.slow
def test_usps_as_in_platts_table_1():
    d = load("usps")
    est = MaxWinsSVC(C=100, gamma=gamma_from_sigma(5.06)).fit(d.X_train, d.y_train)
    assert len(est.support_) == pytest.approx(1936, abs=10)
    assert (est.predict(d.X_test) != d.y_test).sum() == pytest.approx(92, abs=2)
