"""The benchmark's bookkeeping; its seconds are nobody's assertion."""

import os
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab.run import bench


def test_ratios_stand_peers_first_and_targets_are_judged():
    rows = [
        dict(dataset="a", task="fit", libsvm_s=2.0, onedal_s=4.0, ours_s=1.0),
        dict(dataset="a", task="fit, 2 jobs", libsvm_s=2.0, onedal_s=4.0, ours_s=1.9),
        dict(dataset="a", task="predict, dag", libsvm_s=2.0, onedal_s=0.1, ours_s=0.1),
        dict(dataset="a", task="predict, dag, all test rows", ours_s=3.0),
    ]
    table = bench.judged(pd.DataFrame(rows))
    assert table.columns[:5].tolist() == [
        "dataset",
        "task",
        "libsvm_s",
        "onedal_s",
        "ours_s",
    ]
    np.testing.assert_allclose(table["of_libsvm"][:3], [0.5, 0.95, 0.05])
    assert table["reached"].tolist()[:3] == ["yes", "no", "no"]
    assert pd.isna(table["reached"][3])
    assert pd.isna(
        bench.judged(pd.DataFrame(rows[:1]).drop(columns="onedal_s"))["of_onedal"][0]
    )


def test_best_takes_the_fastest_run():
    turns = iter([0.05, 0.0, 0.02])

    def run():
        import time

        time.sleep(next(turns))

    assert bench.best(run) < 0.02


def test_objectives_agree_with_libsvm_on_some_pairs(monkeypatch):
    monkeypatch.setitem(bench.CASES, "vowel", (0.5, 10.0))
    difference, violation = bench.agreement("vowel")
    assert difference < 1e-5 and violation <= 1e-5


@pytest.mark.parametrize("over", bench.GROWTH)
def test_growth_has_both_parties_at_every_size(over):
    table = bench.growth(over, (20, 40) if over == "rows" else (2, 3), repeats=1)
    assert set(table["over"]) == {over} and table["size"].is_monotonic_increasing
    seconds = [
        f"{task}_{who}"
        for task in ("fit", "predict", "one_row")
        for who in ("ours", "libsvm")
    ]
    assert (table[[*seconds, "one_row_votes", "fit_limit", "predict_limit"]] > 0).all(
        axis=None
    )
    memory = table[["memory_ours", "memory_libsvm"]]
    assert not (memory < 0).any(axis=None), memory  # nan where processes cannot fork
    with pytest.raises(ValueError, match="rows, classes, inputs"):
        bench.growth("columns")


def test_small_data_ratios_are_ours_over_libsvms():
    table = bench.small(("iris",), repeats=1)
    assert table["C"].tolist() == [1.0, 100.0]
    assert table["rows"].tolist() == [150, 150]
    np.testing.assert_allclose(
        table["fit_ratio"], table["fit_ours"] / table["fit_libsvm"]
    )


def test_made_classes_are_balanced_and_nearly_apart():
    X, y = bench.made(600, 10, 16, 0)
    assert X.shape == (600, 16)
    np.testing.assert_array_equal(np.bincount(y), 60)
    assert bench.made(600, 10, 16, 0)[0].tobytes() == X.tobytes()
    means = np.array([X[y == c].mean(0) for c in range(10)])
    assert (((X[:, None] - means) ** 2).sum(2).argmin(1) == y).mean() > 0.9


def many():
    return [np.ones(10_000) for _ in range(1000)]


def test_memory_of_a_run_is_measured_where_nothing_was_freed_before():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    many(), many()  # this process may keep their 80 MB for what comes next
    assert 60 < bench.peak_memory(many) < 200
    assert 60 < bench.peak_memory(partial(np.ones, 10_000_000)) < 200
    assert np.isnan(bench.peak_memory(partial(os._exit, 1)))


def test_answers_are_timed_over_max_wins_and_libsvm(monkeypatch):
    monkeypatch.setitem(bench.ANSWERED, "vowel", (10.0, 0.5))
    table = bench.answers(["vowel"], repeats=1).set_index("system")
    assert list(table.index) == [
        "SVC",
        "MaxWinsSVC",
        "DAGSVC",
        "AdaptiveDAGSVC",
        "DCSVC",
        "FilteredDAGSVC",
    ]
    assert table.loc["MaxWinsSVC", "batch_of_max_wins"] == 1.0
    assert table.loc["SVC", "row_of_libsvm"] == 1.0
    seconds = table["row_s"] / table["row_s"]["SVC"]
    np.testing.assert_allclose(table["row_of_libsvm"], seconds)
    assert pd.isna(table["evaluations"]["SVC"])
    assert table["evaluations"]["DAGSVC"] < table["evaluations"]["MaxWinsSVC"] == 1.0
