"""The benchmark's bookkeeping; its seconds are nobody's assertion."""

import numpy as np
import pandas as pd

from dagsvm_lab.run import bench


def test_ratios_stand_peers_first_and_targets_are_judged():
    rows = [
        dict(dataset="a", task="fit", libsvm_s=2.0, onedal_s=4.0, ours_s=1.0),
        dict(dataset="a", task="fit, 2 jobs", libsvm_s=2.0, onedal_s=4.0, ours_s=1.9),
        dict(dataset="a", task="predict, dag", libsvm_s=2.0, onedal_s=0.1, ours_s=0.1),
        dict(dataset="a", task="predict, dag, all test rows", ours_s=3.0),
    ]
    table = bench.judged(pd.DataFrame(rows))
    assert table.columns[:5].tolist() == ["dataset", "task", "libsvm_s", "onedal_s", "ours_s"]
    np.testing.assert_allclose(table["of_libsvm"][:3], [0.5, 0.95, 0.05])
    assert table["reached"].tolist()[:3] == ["yes", "no", "no"] and pd.isna(table["reached"][3])
    assert pd.isna(bench.judged(pd.DataFrame(rows[:1]).drop(columns="onedal_s"))["of_onedal"][0])


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
