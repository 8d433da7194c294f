"""Yu et al. 2011: splits, lists, readings and claims, on cases checked by hand or by
brute force.
"""

from itertools import permutations

import numpy as np
import pytest
from both_ways import Made, table, word

from dagsvm_lab import DAGSVC, AdaptiveDAGSVC
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_index
from dagsvm_lab.papers import yu2011 as yu
from dagsvm_lab.papers import yu2011_readings as readings
from dagsvm_lab.report.claims import INFERRED
from dagsvm_lab.report.verdicts import published
from dagsvm_lab.solvers import solve_smo
from dagsvm_lab.systems.adaptive import adaptive_graph


# ---------------------------------------------------------------- splits
def test_rows_are_what_the_printed_percents_say():
    table = published("yu2011_table2").set_index("dataset")
    n = yu.SIZES["test"]
    hits = {c: (table[c] * n / 100).round().astype(int) for c in table}
    for c in table.columns.drop("traditional_mean"):
        np.testing.assert_allclose(100 * hits[c] / n, table[c], atol=0.0051)
    rows = published("yu2011_rows").set_index("dataset")
    np.testing.assert_array_equal(
        rows.spread, hits["traditional_max"] - hits["traditional_min"]
    )
    np.testing.assert_array_equal(rows.gain, hits["adaptive"] - hits["traditional_max"])


@pytest.mark.parametrize("drawn", [False, True])
def test_splits_have_the_printed_sizes(drawn):
    for name in yu.NAMES:
        s = yu.split(name, drawn, seed=3)
        counted = [len(s.y), len(s.y_test), s.X.shape[1], len(s.class_names)]
        assert counted == yu.SIZES.loc[name].tolist()
        assert yu.sizes(name) == tuple(counted[:2])
        np.testing.assert_allclose(s.X.min(axis=0), -1.0, rtol=1e-5)
        np.testing.assert_allclose(s.X.max(axis=0), 1.0, rtol=1e-5)
        assert len(np.unique(s.y)) == len(np.unique(s.y_test)) == len(s.class_names)


def test_whole_speakers_are_drawn():
    drawn = yu.split("vowel", drawn=True, seed=5)
    assert drawn.rule == "speakers"
    # six times a speaker, eight of them
    assert np.bincount(drawn.y).tolist() == [48] * 11
    # a speaker's rows stand together
    np.testing.assert_array_equal(
        yu.split("vowel").y_test[:66], np.tile(np.arange(11), 6)
    )
    assert yu.split("glass", drawn=True, seed=1).rule == "stratified"


# ---------------------------------------------------------------- lists
def by_list(f, order, n):
    """The list algorithm for one row, said plainly."""
    order = list(order)
    while len(order) > 1:
        i, j = order[0], order[-1]
        low_wins = f[pair_index(min(i, j), max(i, j), n)] >= 0
        order.remove(max(i, j) if low_wins else min(i, j))
    return order[0]


def test_answers_are_the_list_algorithms():
    f = np.random.default_rng(0).normal(size=(40, 10))
    orders = np.array([np.random.default_rng(k).permutation(5) for k in range(20)])
    np.testing.assert_array_equal(
        yu.answers(f, orders),
        [[by_list(row, order, 5) for row in f] for order in orders],
    )


def test_answers_are_dagsvcs():
    s = yu.split("glass")
    est = AdaptiveDAGSVC(gamma=0.5, C=8.0).fit(s.X, s.y)
    dag = DAGSVC().fit_over(est.machines_, s.X, s.y)
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 1, 4, 2]):
        mine = yu.answers(est.machines_.decision(s.X_test), [order])[0]
        np.testing.assert_array_equal(dag.with_order(order).predict(s.X_test), mine)


def test_an_order_matters_on_unsettled_rows_and_on_no_other():
    f = np.random.default_rng(1).normal(size=(400, 10))
    every = np.array(list(permutations(range(5))))
    assert len(yu.lists(5)) == 60
    np.testing.assert_array_equal(
        np.ptp(yu.answers(f, every), axis=0) > 0, yu.unsettled(f, 5)
    )
    # reversed lists agree
    np.testing.assert_array_equal(
        np.ptp(yu.answers(f, yu.lists(5)), axis=0) > 0, yu.unsettled(f, 5)
    )
    settled = f[~yu.unsettled(f, 5)]
    for k in range(5):
        table = np.random.default_rng(k).random((5, 5))
        for graph in (
            adaptive_graph(table + table.T),
            readings.any_pair_graph(table + table.T),
        ):
            np.testing.assert_array_equal(
                graph.run(settled)[0], yu.answers(settled, every[:1])[0]
            )
    assert yu.lists(11).shape == (yu.LISTS, 11)


# ---------------------------------------------------------------- readings
def test_any_pair_graph_asks_the_farthest_pair_left():
    table = np.random.default_rng(0).random((5, 5))
    table = table + table.T
    for f in np.random.default_rng(1).normal(size=(50, 10)):
        left = set(range(5))
        while len(left) > 1:
            i, j = max(
                ((a, b) for a in left for b in left if a < b),
                key=lambda pair: table[pair],
            )
            left.remove(j if f[pair_index(i, j, 5)] >= 0 else i)
        assert readings.any_pair_graph(table).run(f[None])[0].tolist() == list(left)


def test_validation_skips_only_what_would_come_out_the_same():
    from sklearn.model_selection import StratifiedKFold

    part = yu.split("iris")
    X, y = part.X[part.y > 0], part.y[part.y > 0] - 1
    est = AdaptiveDAGSVC(Cs=2.0 ** np.arange(8, -4, -2), tol=1e-8, cv=4, random_state=0)
    kernel = Kernel("rbf", 2.0)
    Cs, (accuracy,) = est._validation_curves(X, y, [kernel])
    right, s = np.zeros(len(Cs)), 1.0 - 2 * y
    for fit, held in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        for k, C in enumerate(Cs):
            dual = solve_smo(kernel(X[fit], X[fit]), s[fit], C, tol=1e-8)
            right[k] += (
                s[held] * (kernel(X[held], X[fit]) @ (s[fit] * dual.alpha) + dual.bias)
                > 0
            ).sum()
    assert Cs.tolist() == sorted(Cs)
    np.testing.assert_array_equal(accuracy, right / len(y))


def small_surface():
    """Two pairs, gamma 2^-9 and 2, C 1/2, 4 and 16."""
    accuracy = np.array(
        [[[0.5, 0.9, 0.9], [0.8, 0.95, 0.95]], [[0.7, 0.6, 1.0], [0.7, 0.7, 0.7]]]
    )
    distances = np.array([[0.3, 0.2], [0.1, 0.4]])
    return readings.Surface(
        np.array([2.0**-9, 2.0]), np.array([0.5, 4.0, 16.0]), distances, accuracy
    )


def test_readings_break_ties_as_they_say():
    ways = {
        (g, C): (a.tolist(), b.tolist())
        for g, C, a, b in readings.choices(small_surface())
    }
    assert ways["own", "smallest"] == ([0, 1], [1, 0])
    assert ways["own", "largest"] == ([0, 1], [2, 2])
    # the second pair is right as often with every C
    assert ways["own", "smallest from 1"] == ([0, 1], [1, 1])
    assert ways["shared", "4"] == ([1, 1], [1, 1])  # DBTC sums to .4 and .6
    assert ways["cv from 2^-9, steps 1 and 1", "smallest gamma"] == ([1, 0], [1, 2])
    assert ways["cv from 2^-9, steps 1 and 1", "largest gamma"] == ([1, 0], [2, 2])
    # every second C: 1/2 and 16
    assert ways["cv from 2^-9, steps 2 and 2", "smallest C"] == ([1, 0], [2, 2])
    assert ways["cv shared from 2^-9, steps 1 and 1", "smallest gamma"] == (
        [0, 0],
        [2, 2],
    )
    # only gamma 2 is on that grid
    assert ways["cv from 2^-4, steps 1 and 1", "smallest gamma"] == ([1, 1], [1, 0])
    assert not any("2^-4, steps 2" in gamma for gamma, _ in ways)  # no gamma is


def test_search_rows_are_real_systems():
    part = yu.split("iris")
    found = readings.search(part, readings.surface(part, [0.5, 2.0], [0.5, 8.0]))
    row = found.query(
        "gamma == '2' and C == '8' and measure == 'own' and next == 'survivor'"
    ).squeeze()
    est = AdaptiveDAGSVC(gamma=2.0, C=8.0, tol=1e-6).fit(part.X, part.y)
    assert (
        row.adaptive
        == (est.predict(part.X_test) == part.y_test).sum()
        == row.best
        == row.worst
    )
    assert row.unsettled == row.spread == row.gain == 0 == row.ahead


# ---------------------------------------------------------------- claims
def against_best(wins, losses):
    """Paired tests against the best of twenty on two sets."""
    return table(
        dataset=["iris", "vowel"],
        against="best of twenty",
        only_a_wrong=[0, losses],
        only_b_wrong=[0, wins],
    )


def gains(gain, half=0.2):
    """Gains over the mean list on the six sets, and one beyond the paper."""
    return table(
        dataset=[*yu.NAMES, "letter"],
        rival="mean list",
        gain=[gain] * 6 + [-9.0],
        low=gain - half,
        high=gain + half,
    )


def identity(printed, corrected):
    return table(
        equation=[6, 6, 9, 9],
        form=["printed", "corrected"] * 2,
        difference=[printed, corrected] * 2,
    )


def pairs(fisher, gammas=1.0):
    """Four pairs of Glass, their separability by DBTC and by Fisher's ratio."""
    return table(
        dataset="glass",
        gamma_dbtc=[1.0] * 4,
        gamma_fisher=gammas,
        dbtc=[1.0, 2.0, 3.0, 4.0],
        fisher=fisher,
    )


def twenty_lists(vowel, iris):
    """The spread of twenty lists on two sets."""
    return table(
        dataset=["iris", "vowel"],
        traditional_max=[90.0, 90.0],
        traditional_min=[90.0 - iris, 90.0 - vowel],
    )


def speed(adaptive, asked=10):
    """Systems on Vowel: kernel evaluations and time are those of 100, but ours."""
    return table(
        dataset="vowel",
        system=["adaptive", "max-wins", "one-versus-rest", "traditional"],
        decisions=[10, 55, 11, asked],
        kernel_evaluations=[adaptive, 100.0, 100.0, 90.0],
        batch_us=[adaptive, 100.0, 100.0, 90.0],
    )


def tuning(wins, losses):
    return table(
        dataset=["iris", "together"],
        rival="cv",
        n_test=[54, 2049],
        wins=[0, wins],
        losses=[0, losses],
        p_exact=[1.0, 0.5],
    )


def all_six(share):
    return table(
        dataset=["all six"], at_least=[share], random_list=[0.001], voting=[0.0]
    )


def best_orders(reached):
    """What the adaptive graph and the best list gain on two sets, and beyond."""
    return table(
        dataset=["glass", "vowel", "glass", "vowel", "letter"],
        what=["adaptive", "adaptive", "best", "best", "adaptive"],
        rows=[reached, reached, 2.0, 2.0, 99.0],
    )


def eq2(printed, meant):
    return {"dual": table(primal=[10.0], eq2=[printed], bounded=[meant])}


BOTH_WAYS = {
    "yu-eq2": (eq2(10.0, 10.0), eq2(80.0, 10.0)),
    ("yu-eq2", INFERRED): (eq2(80.0, 10.0), eq2(80.0, 12.0)),
    "yu-eq6": ({"identity": identity(0.0, 0.0)}, {"identity": identity(1.0, 0.0)}),
    "yu-eq9": ({"identity": identity(0.0, 0.0)}, {"identity": identity(1.0, 0.0)}),
    ("yu-eq9", INFERRED): (
        {"identity": identity(1.0, 0.0)},
        {"identity": identity(1.0, 1.0)},
    ),
    "yu-eq11": (
        {"scaling": table(train_low=[-1.0], train_high=[1.0])},
        {"scaling": table(train_low=[-1.2], train_high=[1.0])},
    ),
    "yu-undivided": (
        {"undivided": table(box_pct=[1.0, 0.1])},
        {"undivided": table(box_pct=[1.0, 0.0])},
    ),
    "yu-decisions": ({"speed": speed(90.0)}, {"speed": speed(90.0, asked=11)}),
    "yu-fisher": (
        {"fisher": pairs([1.0, 2.0, 3.0, 4.0])},
        {"fisher": pairs([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 0.5])},
    ),
    "yu-fisher-ranks": (
        {"fisher": pairs([1.0, 2.0, 3.0, 4.0])},
        {"fisher": pairs([1.0, 4.0, 2.0, 3.0])},
    ),
    "yu-most-separable": (
        {"steps": table(steps=[10], most_separable=[10])},
        {"steps": table(steps=[10], most_separable=[9])},
    ),
    "yu-guarantee": (
        {"guarantee": table(bound_pct=[40.0, 99.0])},
        {"guarantee": table(bound_pct=[40.0, 101.0])},
    ),
    "yu-order-matters": (
        {"table2": twenty_lists(1.0, 1.0)},
        {"table2": twenty_lists(1.0, 0.0)},
    ),
    ("yu-order-matters", INFERRED): (
        {"table2": twenty_lists(1.0, 0.0)},
        {"table2": twenty_lists(0.0, 0.0)},
    ),
    "yu-better": ({"rivals": gains(1.0)}, {"rivals": gains(-1.0)}),
    ("yu-better", INFERRED): ({"rivals": gains(1.0)}, {"rivals": gains(-1.0)}),
    "yu-not-below-mean": ({"rivals": gains(0.0)}, {"rivals": gains(-1.0)}),
    "yu-not-below-maximum": (
        {"tests": against_best(7, 0)},
        {"tests": against_best(3, 12)},
    ),
    ("yu-not-below-maximum", INFERRED): (
        {"redraws": all_six(0.2)},
        {"redraws": all_six(0.01)},
    ),
    "yu-vowel-better": ({"tests": against_best(7, 0)}, {"tests": against_best(0, 7)}),
    "yu-optimal": (
        {"order_gains": best_orders(2.0)},
        {"order_gains": best_orders(0.4)},
    ),
    "yu-tuning": ({"recipe_tests": tuning(10, 9)}, {"recipe_tests": tuning(20, 80)}),
    "yu-tuning-time": (
        {"tuning_time": table(dbtc_seconds=[1.0], cv_seconds=[9.0])},
        {"tuning_time": table(dbtc_seconds=[9.0], cv_seconds=[1.0])},
    ),
    "yu-faster-than-pairs": ({"speed": speed(50.0)}, {"speed": speed(150.0)}),
    ("yu-faster-than-pairs", INFERRED): (
        {"speed": speed(50.0)},
        {"speed": speed(150.0)},
    ),
    "yu-faster-than-rest": ({"speed": speed(50.0)}, {"speed": speed(150.0)}),
    ("yu-faster-than-rest", INFERRED): (
        {"speed": speed(50.0)},
        {"speed": speed(150.0)},
    ),
}


@pytest.mark.parametrize(
    ("claim", "tables"),
    [
        ("yu-not-below-maximum", {"tests": against_best(0, 1)}),
        ("yu-vowel-better", {"tests": against_best(4, 2)}),
        ("yu-better", {"rivals": gains(-0.1, 3.0)}),
        ("yu-not-below-mean", {"rivals": gains(-0.1, 3.0)}),
        ("yu-tuning", {"recipe_tests": tuning(81, 103)}),
    ],
)
def test_what_chance_can_do_is_within_chance(claim, tables):
    assert word(yu.yu, claim, tables) == "within chance"


def test_pooled_intervals_narrow_with_the_number_of_sets():
    wide = {"rivals": gains(0.5, 1.0)}  # 1 / sqrt 6 = .41 for six sets together
    assert word(yu.yu, "yu-better", wide) == "reproduced"
    assert word(yu.yu, "yu-better", wide, INFERRED) == "within chance"


def test_vowel_s_recipe_is_fitted():
    found = yu.yu.claims["yu-vowel-better"].judge(
        Made({"tests_inferred": against_best(7, 0)}), INFERRED
    )
    assert found.word == "fitted"


def test_the_mean_list_stands_at_fifty():
    hits = np.array([3, 5, 5, 9])
    assert np.mean([yu.percentile(hits, h) for h in hits]) == 50
    assert yu.percentile(hits, 10) == 100 and yu.percentile(hits, 5) == 50
    assert yu.reaches_best(hits, 5, tries=2) == 0.75**2
