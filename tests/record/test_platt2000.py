"""The record of notebook 01: what its tables must have in common, and what the notebook's prose rests on."""

import numpy as np
import pytest

from dagsvm_lab.files import project_root
from dagsvm_lab.papers.platt2000 import METHODS, TEST_ROWS
from dagsvm_lab.report.claims import Tables
from dagsvm_lab.report.verdicts import published

recorded = Tables(project_root() / "figures" / "01_platt2000").__getitem__


@pytest.mark.parametrize("name", ["table1", "table1_inferred"])
def test_letter_is_the_papers_in_both_readings(name):
    printed = published("platt2000_table1").set_index(["dataset", "method"]).loc["letter"].loc[list(METHODS)]
    found = recorded(name).set_index(["dataset", "method"]).loc["letter"].loc[list(METHODS)]
    for column in ("kernel_evaluations", "size_kparameters"):
        assert np.allclose(found[column], printed[column], rtol=0.03)


def test_covertypes_zones_are_nearer_than_plain_codes_and_near():
    printed = published("platt2000_table1").set_index(["dataset", "method"]).loc["covertype"].loc[list(METHODS)]
    plain, zones = (recorded(name).set_index(["dataset", "method"]).loc["covertype"].loc[list(METHODS)]
                    for name in ("table1", "table1_inferred"))  # fmt: skip
    for column, near in {"error_pct": 0.01, "kernel_evaluations": 0.03, "size_kparameters": 0.03}.items():
        off = [(t[column] / printed[column] - 1).abs().max() for t in (plain, zones)]
        assert off[1] < near < off[0], column


def test_all_test_rows_and_three_hundred_lists():
    orders = recorded("orders")
    assert orders.groupby("dataset").size().eq(300).all()
    assert orders.groupby("dataset")["test_rows"].first().to_dict() == TEST_ROWS
    assert (orders["gained"] == orders["won"] - orders["lost"]).all()
    tests = recorded("mcnemar")
    assert (tests["p_corrected"] - tests["p_exact"]).abs().max() < 0.05


def test_bounds_say_nothing_and_never_fail():
    bounds, truth = recorded("bounds"), recorded("simulation")
    assert bounds["bound"].dropna().min() > 1
    assert (truth["error"] <= truth["bound_e"]).all() and (truth["bound_e"] < truth["bound_2"]).all()


def test_a_promise_on_held_out_rows_is_kept_where_rows_are_alike():
    wide = recorded("promises").pivot(index="dataset", columns="promise", values="value")
    kept = wide["true error (test rows)"] <= wide["held-out, binomial"]
    assert kept["letter"]


def test_grids_hold_the_papers_sigmas():
    chosen = recorded("selection").query("kernel == 'rbf'")
    for row in published("platt2000_table1").query("method in @METHODS").itertuples():
        sigmas = chosen.query("dataset == @row.dataset and method == @row.method and C == @row.C")["sigma"]
        assert (np.abs(sigmas - row.sigma) < 0.01).any(), row
