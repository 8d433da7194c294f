"""The tour and the head-to-head: the ground, the field and the comparison by hand."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from dagsvm_lab import (
    DAGSVC,
    DCSVC,
    AdaptiveDAGSVC,
    BinaryTreeSVC,
    MaxWinsSVC,
    OneVsRestSVC,
    load,
)
from dagsvm_lab.papers.head_to_head import COSTS, compare, field, ground
from dagsvm_lab.plots.overview import cloud

PAIRS = dict(C=8, gamma=0.5)


@pytest.fixture(scope="module")
def vowels():
    return ground("vowel", 200)


@pytest.mark.parametrize(
    "est",
    [
        DAGSVC(**PAIRS),
        AdaptiveDAGSVC(**PAIRS),
        BinaryTreeSVC(**PAIRS),
        DCSVC(threshold=0.02, **PAIRS),
    ],
    ids=lambda est: type(est).__name__,
)
def test_a_graph_over_a_given_bank_is_the_fitted_system(est, vowels):
    bank = MaxWinsSVC(**PAIRS).fit(vowels.X, vowels.y).machines_
    labels, cost = est.fit(vowels.X, vowels.y).predict_with_cost(vowels.X_test)
    again, shared = est.fit_over(bank, vowels.X, vowels.y).predict_with_cost(
        vowels.X_test
    )
    assert (labels == again).all()
    for count in COSTS:
        assert (getattr(cost, count) == getattr(shared, count)).all()


def test_a_bank_of_other_machines_is_refused(vowels):
    bank = OneVsRestSVC(**PAIRS).fit(vowels.X, vowels.y).machines_
    with pytest.raises(ValueError, match="asks other machines"):
        DAGSVC(**PAIRS).fit_over(bank, vowels.X, vowels.y)


@pytest.mark.parametrize(
    ("name", "own", "test"),
    [("vowel", True, 462), ("vowel", False, 495), ("vehicle", True, 423)],
)
def test_ground_is_scaled_on_training_rows_that_no_test_row_is_among(name, own, test):
    g, d = ground(name, 300, seed=1, own=own), load(name)
    assert abs(len(g.y) - 300) < 10 and len(g.y_test) == pytest.approx(test, abs=6)
    assert np.allclose(g.X.min(axis=0), -1) and np.allclose(g.X.max(axis=0), 1)
    assert (
        np.abs(g.X_test).max() > 1
    )  # some test row is outside, as its scale is not fitted on it
    shares = [np.unique(y, return_counts=True)[1] / len(y) for y in (g.y, d.y)]
    assert np.abs(shares[0] - shares[1]).max() < 0.01
    assert not {row.tobytes() for row in g.X} & {row.tobytes() for row in g.X_test}


def test_splits_differ_and_the_first_is_the_sets_own():
    first, second = ground("vowel", 528), ground("vowel", 528, seed=1, own=False)
    assert np.array_equal(first.y, load("vowel").y_train) and not np.array_equal(
        first.X, second.X
    )
    assert not np.isnan(
        ground("heart", 150).X
    ).any()  # rows with missing values are left out


def test_systems_on_one_set(vowels):
    chosen = field(**PAIRS)
    names = (
        "1-v-r",
        "max-wins",
        "dagsvm",
        "filtered",
        "posterior ovo",
        "btppsvm",
        "libsvm",
    )
    few = {name: chosen[name] for name in names}
    table, wrong = compare(vowels, few)
    table = table.set_index("system")
    assert table["binary_decisions"][
        ["1-v-r", "max-wins", "dagsvm", "libsvm"]
    ].tolist() == [11, 55, 10, 55]
    assert table["kernel_evaluations"]["libsvm"] == pytest.approx(
        table["kernel_evaluations"]["max-wins"], rel=0.02
    )
    assert table["accuracy_pct"]["libsvm"] == pytest.approx(
        table["accuracy_pct"]["max-wins"], abs=1
    )
    alone = chosen["btppsvm"][2].fit(vowels.X, vowels.y)
    assert table["accuracy_pct"]["btppsvm"] == 100 * alone.score(
        vowels.X_test, vowels.y_test
    )
    for name in few:
        assert 100 * np.mean(~wrong[name]) == table["accuracy_pct"][name]
    assert (
        table["train_s"]["dagsvm"] >= table["train_s"]["max-wins"]
    )  # a shared bank's seconds are counted


def test_a_row_in_the_field_is_all_that_a_system_needs_to_be_drawn(vowels):
    chosen = {
        "max-wins": field(**PAIRS)["max-wins"],
        "my own": ("DAG", "pairs", DAGSVC(**PAIRS)),
    }
    ax = Figure().subplots()
    cloud(ax, compare(vowels, chosen)[0], "kernel_evaluations", "accuracy_pct")
    assert {"Max Wins", "my own"} <= {text.get_text() for text in ax.texts}
