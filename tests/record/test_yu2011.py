"""The record of notebook 02: what its tables must have in common, and what the
notebook's prose rests on.
"""

import numpy as np
import pytest

from dagsvm_lab.files import project_root
from dagsvm_lab.papers import yu2011 as yu
from dagsvm_lab.papers import yu2011_readings as readings
from dagsvm_lab.report.claims import Tables
from dagsvm_lab.report.verdicts import published

from .rules import exceptions

recorded = Tables(project_root() / "figures" / "02_yu2011").__getitem__


@pytest.mark.parametrize("name", ["orders", "splits_drawn", "gamma_turned"])
def test_unsettled_rows_bound_what_an_order_can_do(name):
    t = recorded(name)
    rules = [
        "best - worst <= unsettled",
        "ceiling - settled_right <= unsettled",
        "settled_right <= worst <= mean <= best <= ceiling",
        "adaptive <= ceiling",
        "best_of_twenty <= best + 1e-9",
        "0 <= percentile <= 100",
        "unsettled > 0 or percentile == 50",  # where no order matters, all are equal
    ]
    for system in ("adaptive", "upside_down", "max_wins"):
        rules.append(f"settled_right <= {system} <= settled_right + unsettled")
    assert exceptions(t, *rules) == []


def test_table2_is_the_default_splits():
    table, rows, orders = (
        recorded(name).set_index("dataset") for name in ("table2", "rows", "orders")
    )
    assert table.index.tolist() == published("yu2011_table2").dataset.tolist()
    np.testing.assert_array_equal(rows.adaptive, orders.adaptive[rows.index])
    np.testing.assert_array_equal(rows.n_test, yu.SIZES.test[rows.index])
    np.testing.assert_allclose(
        100 * rows.adaptive / rows.n_test, table.adaptive, atol=0.0051
    )
    np.testing.assert_allclose(
        100 * rows["mean"] / rows.n_test, table.traditional_mean, atol=0.0051
    )
    assert rows.loc[["vehicle", "segment"], "adaptive"].tolist() == [
        291,
        970,
    ]  # whose split is the file's own order


def test_splits_are_twelve_of_each_set():
    t = recorded("splits_drawn")
    assert t.groupby("dataset").seed.nunique().to_dict() == dict.fromkeys(
        (*yu.NAMES, *yu.BEYOND), 12
    )
    drawn = recorded("chosen_orders").merge(
        t, on=["dataset", "seed"], suffixes=("", "_again")
    )
    assert len(drawn) == 72 and all(
        (drawn[c] == drawn[f"{c}_again"]).all()
        for c in ("adaptive", "unsettled", "best")
    )


def test_search_reaches_each_printed_number_but_not_all_three():
    found = recorded("readings")
    assert len(found) > 5000 and found.distance.min() > 0
    both = found[
        (found.best == readings.GOAL["best"]) & (found.worst == readings.GOAL["worst"])
    ]
    assert len(both)
    assert (both.unsettled < readings.GOAL["adaptive"] - readings.GOAL["best"]).all(), (
        np.max(both.unsettled - (readings.GOAL["adaptive"] - readings.GOAL["best"]))
    )
    assert (found.adaptive == readings.GOAL["adaptive"]).any() and (
        found.gain >= 7
    ).any()
    assert not ((found.gain >= 7) & (found.spread <= 1)).any()


def test_cross_validated_pairs_bring_the_paper_s_order_back():
    found = recorded("readings")
    row = found[
        found.gamma.astype(str).eq("cv from 2^-9, steps 1 and 2")
        & found.C.astype(str).eq("smallest gamma")
    ]
    row = row[(row.measure == "own") & (row.next == "survivor")].squeeze()
    assert row.gain > 5 and row.ahead > 0.9 and row.unsettled > 60


def test_fisher_over_all_pairs():
    table = recorded("fisher")
    assert len(table) == 103
    assert (table.gamma_fisher <= table.gamma_dbtc).all(), np.max(
        table.gamma_fisher - table.gamma_dbtc
    )
    assert (table.gamma_fisher == table.gamma_dbtc).sum() <= 3
