"""The tour and the head-to-head: the comparison's own arithmetic by hand, and what the recorded tables must hold."""

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab import DAGSVC, DCSVC, AdaptiveDAGSVC, BinaryTreeSVC, MaxWinsSVC, OneVsRestSVC
from dagsvm_lab.protocols import overview

PAIRS = dict(C=8, gamma=0.5)


def field(dataset: str, **accuracy) -> pd.DataFrame:
    """A table of made-up systems."""
    rows = [(dataset, name, "x", a, 10.0 * (k + 1)) for k, (name, a) in enumerate(accuracy.items())]
    return pd.DataFrame(rows, columns=["dataset", "system", "family", "accuracy_pct", "kernel_evaluations"])


@pytest.fixture(scope="module")
def vowels():
    return overview.ground("vowel", 200)


@pytest.mark.parametrize(
    "est",
    [DAGSVC(**PAIRS), AdaptiveDAGSVC(**PAIRS), BinaryTreeSVC(**PAIRS), DCSVC(threshold=0.02, **PAIRS)],
    ids=lambda est: type(est).__name__,
)
def test_a_graph_over_a_given_bank_is_the_fitted_system(est, vowels):
    bank = MaxWinsSVC(**PAIRS).fit(vowels.X, vowels.y).machines_
    labels, cost = est.fit(vowels.X, vowels.y).predict_with_cost(vowels.X_test)
    again, shared = est.fit_over(bank, vowels.X, vowels.y).predict_with_cost(vowels.X_test)
    assert (labels == again).all()
    for count in overview.COSTS:
        assert (getattr(cost, count) == getattr(shared, count)).all()


def test_a_bank_of_other_machines_is_refused(vowels):
    bank = OneVsRestSVC(**PAIRS).fit(vowels.X, vowels.y).machines_
    with pytest.raises(ValueError, match="asks other machines"):
        DAGSVC(**PAIRS).fit_over(bank, vowels.X, vowels.y)


@pytest.mark.parametrize(("name", "split"), [("vowel", True), ("vehicle", False)])
def test_ground_is_scaled_on_training_rows_that_no_test_row_is_among(name, split):
    g = overview.ground(name, 300, seed=1)
    d = overview.load(name)
    assert abs(len(g.y) - 300) < 10 and len(g.y_test) == (462 if split else 423)
    assert np.allclose(g.X.min(axis=0), -1) and np.allclose(g.X.max(axis=0), 1)
    assert np.abs(g.X_test).max() > 1  # some test row is outside, as its scale is not fitted on it
    shares = [np.unique(y, return_counts=True)[1] / len(y) for y in (g.y, d.y)]
    assert np.abs(shares[0] - shares[1]).max() < 0.01
    rows = {row.tobytes() for row in g.X}
    assert not rows & {row.tobytes() for row in g.X_test}


def test_front_by_hand():
    accuracy, cost = [90, 95, 95, 80, 99], [10, 20, 30, 10, 50]
    assert overview.front(accuracy, cost).tolist() == [True, True, False, False, True]
    assert overview.front([90, 90], [10, 10]).tolist() == [True, True]


def test_ranks_and_critical_difference_by_hand():
    table = pd.concat(
        [field("p", a=90, b=80, c=80, d=70), field("q", a=90, b=95, c=70, d=60), field("r", a=9, b=8, c=7, d=6)]
    )
    found = overview.ranks(table).query("quantity == 'accuracy_pct'").set_index("system")
    assert found["mean_rank"].round(3).to_dict() == {"a": 1.333, "b": 1.833, "c": 2.833, "d": 4.0}
    # Demsar (2006): four classifiers on fourteen sets differ by 1.25 at .05
    assert found["critical_difference"]["a"] * np.sqrt(3 / 14) == pytest.approx(1.25, abs=0.005)


def test_relative_and_pays_by_hand():
    table = pd.DataFrame(
        [("p", "max-wins", "pairs", 90, 100, 45, 10, 1), ("p", "dagsvm", "DAG", 89.5, 25, 9, 10, 1.5),
         ("p", "bts", "tree", 80, 10, 3, 5, 1), ("q", "max-wins", "pairs", 70, 100, 45, 10, 1),
         ("q", "dagsvm", "DAG", 71, 100, 9, 10, 1), ("q", "bts", "tree", 70.5, 10, 3, 5, 2)],
        columns=["dataset", "system", "family", "accuracy_pct", "kernel_evaluations", "binary_decisions",
                 "size_kparameters", "train_s"],
    )  # fmt: skip
    summary = overview.relative(table).set_index("system")
    assert summary.loc["dagsvm", ["points", "kernel_evaluations"]].tolist() == pytest.approx([0.25, 0.5])
    assert overview.pays(table).to_numpy().tolist() == [
        ["p", "max-wins", "dagsvm", "dagsvm", "max-wins", "max-wins"],
        ["q", "dagsvm", "bts", "bts", "bts", "max-wins"],
    ]


def test_systems_on_one_set(vowels):
    chosen = overview.systems(**PAIRS)
    few = {name: chosen[name] for name in ("1-v-r", "max-wins", "dagsvm", "posterior ovo", "btppsvm", "libsvm")}
    table = overview.compare(vowels, few).set_index("system")
    assert table["binary_decisions"][["1-v-r", "max-wins", "dagsvm", "libsvm"]].tolist() == [11, 55, 10, 55]
    assert table["kernel_evaluations"]["libsvm"] == pytest.approx(table["kernel_evaluations"]["max-wins"], rel=0.02)
    assert table["accuracy_pct"]["libsvm"] == pytest.approx(table["accuracy_pct"]["max-wins"], abs=1)
    alone = chosen["btppsvm"][2].fit(vowels.X, vowels.y)
    assert table["accuracy_pct"]["btppsvm"] == 100 * alone.score(vowels.X_test, vowels.y_test)


@pytest.fixture(scope="module")
def record(root):
    return lambda key, name: pd.read_csv(root / "figures" / key / f"{name}.csv")


def test_recorded_table_is_whole_and_its_counts_fit_together(record):
    table, grounds = record("05_head_to_head", "table"), record("05_head_to_head", "grounds").set_index("dataset")
    names = list(overview.systems(C=1, gamma=1))
    assert set(grounds.index) == set(overview.SIZES)
    assert sorted(zip(table["dataset"], table["system"], strict=True)) == sorted(
        (d, s) for d in grounds.index for s in names
    )
    wide = table.pivot(index="dataset", columns="system")
    n = grounds["classes"].reindex(wide.index)
    asked, kernels = wide["binary_decisions"], wide["kernel_evaluations"]
    for name in ("dagsvm", "adaptive"):
        assert (asked[name] == n - 1).all()
    for name in ("max-wins", "and-gate", "posterior ovo", "libsvm"):
        assert (asked[name] == n * (n - 1) / 2).all()
    for name in ("dagsvm", "adaptive", "bts", "c-bts", "dcsvm 0%", "dcsvm 2%", "dcsvm 5%"):
        assert (kernels[name] < kernels["max-wins"]).all()
    assert (kernels <= wide["support_vectors"]).all(axis=None)
    assert (abs(kernels["libsvm"] / kernels["max-wins"] - 1) < 0.02).all()
    assert (abs(wide["accuracy_pct"]["libsvm"] - wide["accuracy_pct"]["max-wins"]) < 0.5).all()


def test_recorded_summaries_follow_from_the_recorded_table(record):
    table = record("05_head_to_head", "table")
    for name, made in (("summary", overview.relative), ("ranks", overview.ranks), ("pays", overview.pays),
                       ("sentences", overview.sentences)):  # fmt: skip
        pd.testing.assert_frame_equal(record("05_head_to_head", name), made(table), check_dtype=False, rtol=1e-6)


def test_recorded_costs_grow_as_the_text_says(record):
    grows = record("05_head_to_head", "scaling").drop_duplicates("system").set_index("system").filter(like="exponent")
    asked, kernels = grows["binary_decisions_exponent"], grows["kernel_evaluations_exponent"]
    assert asked["max-wins"] > 2 and 1 < asked["dagsvm"] < 1.3 and asked["c-bts"] < 1
    assert (kernels.drop(["max-wins", "1-v-r"]) < kernels["max-wins"]).all() and kernels["max-wins"] < 1.8


def test_soft_labels_end_at_the_neighbours_rule(record):
    soft = record("05_head_to_head", "soft").set_index(["dataset", "k"])
    accuracy, near = soft["accuracy_pct"].unstack(), soft["neighbours_pct"].unstack()
    assert (abs(accuracy[11] - near[11]) < 3).all() and (abs(accuracy[11] - near[11]) < 1).sum() > len(near) / 2
    assert (accuracy[1] - accuracy[11] > 10).sum() >= 3  # "ten points and more"
    assert (accuracy.loc[["optdigits", "pendigits"], 1] - accuracy.loc[["optdigits", "pendigits"], 11] < 0.5).all()


def test_recorded_costs_are_those_the_closing_words_give(record):
    mean = record("05_head_to_head", "summary").set_index("system")
    kernels, asked, points = mean["kernel_evaluations"], mean["binary_decisions"], mean["points"]
    assert 0.45 < kernels["dagsvm"] < 0.55 and abs(points["dagsvm"]) < 0.2 and abs(points["adaptive"]) < 0.2
    assert 0.05 < 1 - kernels["adaptive"] / kernels["dagsvm"] < 0.15  # "about a tenth"
    assert (
        0.7 < asked["dcsvm 0%"] / asked["dagsvm"] < 0.8 and -0.3 < points["dcsvm 0%"] < -0.1
    )  # "a quarter", "a fifth"
    assert kernels["dcsvm 0%"] < kernels["dagsvm"] and -2.5 < points["dcsvm 5%"] < -1.5
    assert set(asked.nsmallest(2).index) == {"ta type 2", "ta type 4"}
    groups = [f"ta type {k}" for k in range(1, 5)]
    assert (mean.loc[groups, ["train_s", "size_kparameters"]] < 0.95).all(axis=None) and (points[groups] > -2).all()
    direct = ["crammer-singer", "weston-watkins"]
    assert set(mean["size_kparameters"].nsmallest(2).index) == set(direct)
    assert (mean.loc[direct, "size_kparameters"] < 0.8).all() and (mean.loc[direct, "train_s"] > 5).all()
    letter = record("05_head_to_head", "table").query("dataset == 'letter'").set_index("system")
    hard = letter[~letter.index.isin(["posterior ovo", "posterior ovr", "btppsvm"])]
    assert set(hard["kernel_evaluations"].nsmallest(2).index) == {"bts", "c-bts"}
    assert (letter["accuracy_pct"]["max-wins"] - letter["accuracy_pct"][["bts", "c-bts"]] > 5).all()
    pays = record("05_head_to_head", "pays")
    assert pays["most accurate"].str.startswith("ecoc").sum() == 2
    assert not pays.drop(columns=["dataset", "most accurate"]).stack().str.startswith("ecoc").any()


def test_recorded_tour_shows_what_its_figure_says(record, root):
    table = record("00_tour", "table").set_index("system")
    assert table["kernel_evaluations"]["dagsvm"] < 2 / 3 * table["kernel_evaluations"]["max-wins"]
    assert abs(table["accuracy_pct"]["dagsvm"] - table["accuracy_pct"]["max-wins"]) < 1
    for key in ("00_tour", "05_head_to_head"):
        drawn = list((root / "figures" / key).glob("*.svg"))
        assert drawn and all(path.stat().st_size < 300_000 and path.with_suffix(".png").is_file() for path in drawn)
