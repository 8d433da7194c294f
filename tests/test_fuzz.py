"""Estimators and public functions give a finite answer or one sentence, always.

Never a hang, a warning of NumPy's, or an error that names nothing. `make fuzz` looks
for new cases for an hour.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from dagsvm_lab import bounds, gamma_from_sigma, load, solve_qp, solve_smo, systems
from dagsvm_lab.graphs import GraphTooLarge
from dagsvm_lab.solvers import certify

EVERY = [getattr(systems, name) for name in systems.__all__]
X, Y = (part[::5] for part in load_iris(return_X_y=True))
REFUSED = (ValueError, TypeError, GraphTooLarge, ModuleNotFoundError)  # no cvxopt


def outcome(est, rows, labels) -> str:
    """Whether est answered in finite scores, refused by a sentence, or went wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            est.fit(rows, labels)
            found, scores = est.predict(rows), est.decision_function(rows)
        except REFUSED as error:
            return "refused" if len(str(error)) > 10 else f"no sentence: {error!r}"
    return (
        "answered"
        if np.isfinite(scores).all() and len(found) == len(scores) == len(labels)
        else f"scores {scores}"
    )


ODD = st.one_of(
    st.floats(),
    st.integers(-3, 300),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from([[], {}, {0: 2.0}, {"a": 1}, np.array([1.0, 2.0])]),
    st.sampled_from([1e308, 5e-324, 1j, np.float32(2), np.int8(3)]),
    st.sampled_from("linear poly rbf sigmoid precomputed".split()),
    st.sampled_from("scale auto smo qp balanced random".split()),
)
# no thousand processes
WORK = {"n_jobs": st.sampled_from([None, -1, 0, 1, 2, "two", 1.5, True])}


# kinds of matrices given as kernel values
MATRICES = (
    "asymmetric",
    "no kernel",
    "low rank",
    "zero",
    "huge",
    "tiny",
    "not finite",
    "wide",
    "tall",
)
ENDS = ("answered", "refused")


def limits(make, max_iter: int) -> dict:
    """Parameters that keep a fit short."""
    short = {"max_iter": max_iter}
    if "max_nodes" in make().get_params():
        short["max_nodes"] = 200
    return short


@settings(max_examples=150)
@given(st.sampled_from(EVERY), st.data())
def test_any_parameter_is_taken_or_refused(make, data):
    names = st.sampled_from(sorted(set(make().get_params()) - {"verbose"}))
    chosen = data.draw(st.lists(names, min_size=1, max_size=3, unique=True))
    given = {name: data.draw(WORK.get(name, ODD), label=name) for name in chosen}
    assert outcome(make(**(limits(make, 2000) | given)), X, Y) in ENDS


@pytest.mark.parametrize("cache_size", [np.int8(3), 3.4e302])
def test_sizes_that_overflow_when_multiplied_are_taken(cache_size):
    """Found by `make fuzz`."""
    for make in EVERY:
        est = make(cache_size=cache_size, max_iter=np.int8(100))
        assert outcome(est, X, Y) == "answered"


@pytest.mark.parametrize(
    "C, weight",
    [
        (9e306, 1.0),
        (np.inf, 1.0),
        (1e300, 1e-300),
        (1e300, 1e300),
        (1e-300, 1.0),
        (np.float32(2), np.float32(1)),
    ],
)
def test_the_largest_and_the_least_bounds_are_taken(C, weight):
    """Found by `make fuzz`."""
    for make in EVERY:
        assert outcome(make(C=C, tol=2.0, class_weight={0: weight}), X, Y) in ENDS


@pytest.mark.parametrize("bandwidth", [5e-324, 3e-252, 1e154, 1e308])
def test_a_bandwidth_out_of_range_is_refused(bandwidth):
    with pytest.raises(ValueError, match="neither tiny nor huge"):
        systems.PosteriorSVC(bandwidth=bandwidth).fit(X, Y)


@pytest.mark.parametrize("gamma", [1e19, 9e307])
def test_a_separability_out_of_range_is_refused(gamma):
    """Found by `make fuzz`."""
    assert outcome(systems.AdaptiveDAGSVC(separability=gamma), X, Y) == "refused"


@settings(max_examples=100)
@given(
    st.sampled_from(EVERY),
    st.integers(0, 10**6),
    st.sampled_from(MATRICES),
    st.booleans(),
)
@example(systems.FilteredDAGSVC, 0, "huge", False)
@example(systems.FilteredDAGSVC, 0, "tiny", False)
@example(systems.FilteredDAGSVC, 0, "zero", True)
def test_any_matrix_of_kernel_values_is_taken_or_refused(make, seed, kind, by_call):
    n = len(X)
    A = np.random.default_rng(seed).normal(size=(n, n))
    one_missing = A @ A.T
    one_missing.flat[seed % n**2] = np.nan
    K = {
        "asymmetric": A,
        "no kernel": A + A.T,
        "low rank": np.outer(A[0], A[0]),
        "zero": 0 * A,
        "huge": 1e200 * A @ A.T,
        "tiny": 1e-200 * A @ A.T,
        "not finite": one_missing,
        "wide": A[:-1],
        "tall": A[:, :-1],
    }[kind]
    options = limits(make, 500)

    def look(A, B):
        rows = A[:, 0].astype(int) % len(K)
        columns = B[:, 0].astype(int) % K.shape[1]
        return K[np.ix_(rows, columns)]

    if by_call:
        index = np.arange(n, dtype=float)[:, None]
        assert outcome(make(kernel=look, **options), index, Y) in ENDS
        return
    end = outcome(make(kernel="precomputed", **options), K, Y)
    if kind in ("not finite", "wide", "tall"):
        assert end == "refused"
    else:
        assert end in ENDS


LAYOUTS = {
    "float32": lambda A: A.astype(np.float32),
    "Fortran": np.asfortranarray,
    "every second": lambda A: np.repeat(A, 2, axis=0)[::2],
    "backwards": lambda A: A[::-1].copy()[::-1],
    "lists": lambda A: A.tolist(),
    "objects": lambda A: A.astype(object),
    "a frame": lambda A: pd.DataFrame(A).astype({0: np.float32}),
    "swapped bytes": lambda A: A.astype(A.dtype.newbyteorder()),
    "sparse": sparse.csr_array,
}
LABELS = {
    "words": lambda y: np.array(["a", "bb", "ccc"])[y],
    "objects": lambda y: np.array(["a", "bb", "ccc"], dtype=object)[y],
    "a list": lambda y: ["a" * (k + 1) for k in y],
    "categories": lambda y: (
        pd.Series(y).map({0: "x", 1: "y", 2: "z"}).astype("category")
    ),
    "whole floats": lambda y: y * 1.0,
    "far apart": lambda y: np.array([-(2**62), 0, 2**62])[y],
    "int8": lambda y: y.astype(np.int8),
}


@settings(max_examples=100)
@given(
    st.sampled_from(EVERY),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(sorted(LABELS)),
)
def test_the_answers_do_not_depend_on_how_rows_and_labels_are_kept(
    make, layout, labels
):
    rows = np.round(X * 8) / 8  # the same numbers in single precision
    assume(layout != "sparse" or make()._sparse)
    options = {"random_state": 0} if "random_state" in make().get_params() else {}
    plain = make(gamma=0.5, **options).fit(rows, Y)
    kept = LAYOUTS[layout](rows)
    est = make(gamma=0.5, **options).fit(kept, LABELS[labels](Y))
    assert (
        est.classes_.searchsorted(est.predict(kept)).tolist()
        == plain.predict(rows).tolist()
    )


def test_rows_in_a_read_only_file_are_taken(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for make in EVERY:
        assert outcome(make(), mapped, Y) == "answered"


@pytest.mark.slow
def test_one_row_of_each_of_a_thousand_classes():
    grid = np.stack(np.unravel_index(np.arange(1000), (10, 10, 10)), axis=1).astype(
        float
    )
    for make in (systems.MaxWinsSVC, systems.DAGSVC, systems.OneVsRestSVC):
        est = make(C=10.0, gamma=1.0).fit(grid, np.arange(1000))
        assert est.predict(grid[::50]).tolist() == list(range(0, 1000, 50))


SIZE = st.floats(1e-70, 1e70)
MARGINS = st.lists(
    st.one_of(SIZE, st.sampled_from([0.0, -1.0, np.nan, np.inf])), max_size=4
)
SAMPLE = {"m": st.integers(1, 10**9), "delta": st.floats(1e-300, 1.0)}
FUNCTIONS = {
    "gamma_from_sigma": (
        gamma_from_sigma,
        {"sigma": st.one_of(SIZE, st.floats(), st.integers(-3, 3))},
    ),
    "theorem1": (bounds.theorem1, {"margins": MARGINS, "radius": SIZE} | SAMPLE),
    "theorem2": (bounds.theorem2, {"margins": MARGINS, "radius": SIZE} | SAMPLE),
    "lemma4": (bounds.lemma4, {"k": MARGINS} | SAMPLE),
    "fat_shattering": (
        bounds.fat_shattering,
        {"gamma": st.one_of(SIZE, st.just(-1.0)), "radius": SIZE},
    ),
}


@settings(max_examples=200)
@given(st.sampled_from(sorted(FUNCTIONS)), st.data())
def test_functions_give_a_number_or_a_sentence(name, data):
    call, strategies = FUNCTIONS[name]
    given = {
        key: data.draw(strategy, label=key) for key, strategy in strategies.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            assert (
                call(**given) >= 0 or name == "lemma4" and max(given["k"]) > given["m"]
            )
        except ValueError as error:
            assert len(str(error)) > 10


@settings(max_examples=100)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["kernel", "no kernel", "zero", "not finite", "wide"]),
    st.one_of(st.floats(), st.sampled_from([1e-300, 1e300, 1.0])),
    st.booleans(),
)
def test_duals_are_solved_to_their_certificate_or_refused(seed, kind, C, exact):
    # without a bound the dual of a matrix that is no kernel may have no minimum
    assume(kind in ("kernel", "wide", "not finite") or C < np.inf)
    A = np.random.default_rng(seed).normal(size=(12, 3))
    K = {
        "kernel": A @ A.T,
        "no kernel": A @ np.diag([1, -1, 1]) @ A.T,
        "zero": np.zeros((12, 12)),
        "not finite": np.full((12, 12), np.inf),
        "wide": np.ones((12, 11)),
    }[kind]
    y = np.where(np.arange(12) % 2, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            if exact:
                dual = solve_qp(K, y, C=C)
            else:
                dual = solve_smo(K, y, C=C, max_iter=10_000)
        except REFUSED as error:
            assert len(str(error)) > 10
            return
        assert 0 <= dual.alpha.min() and dual.alpha.max() <= C
        if dual.converged and kind != "no kernel":
            assert np.isfinite(certify(K, y, dual).kkt_violation)


@given(st.text(max_size=20))
def test_a_set_that_is_not_there_is_refused_by_name(name):
    with pytest.raises(ValueError, match="there is no data set"):
        load(f"no {name}")  # a right name would be looked for far away
