"""Yu et al. 2011: splits, lists, readings and claims, on cases checked by hand or by brute force."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab import DAGSVC, AdaptiveDAGSVC
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_index
from dagsvm_lab.papers import yu2011 as yu
from dagsvm_lab.papers import yu2011_readings as readings
from dagsvm_lab.report.claims import INFERRED, Tables
from dagsvm_lab.report.verdicts import published
from dagsvm_lab.solvers import solve_smo
from dagsvm_lab.systems.adaptive import adaptive_graph


# ------------------------------------------------------------------------------------------------ splits
def test_rows_are_what_the_printed_percents_say():
    table, n = published("yu2011_table2").set_index("dataset"), yu.SIZES.test
    hits = {c: (table[c] * n / 100).round().astype(int) for c in table}
    assert all(np.allclose(100 * hits[c] / n, table[c], atol=0.0051) for c in table if c != "traditional_mean")
    rows = published("yu2011_rows").set_index("dataset")
    assert (rows.spread == hits["traditional_max"] - hits["traditional_min"]).all()
    assert (rows.gain == hits["adaptive"] - hits["traditional_max"]).all()


@pytest.mark.parametrize("drawn", [False, True])
def test_splits_have_the_printed_sizes(drawn):
    for name in yu.NAMES:
        s = yu.split(name, drawn, seed=3)
        counted = [len(s.y), len(s.y_test), s.X.shape[1], len(s.class_names)]
        assert counted == yu.SIZES.loc[name].tolist() and yu.sizes(name) == tuple(counted[:2])
        assert np.allclose([s.X.min(axis=0), s.X.max(axis=0)], [[-1], [1]])
        assert len(np.unique(s.y)) == len(np.unique(s.y_test)) == len(s.class_names)


def test_whole_speakers_are_drawn():
    drawn = yu.split("vowel", drawn=True, seed=5)
    assert drawn.rule == "speakers" and np.bincount(drawn.y).tolist() == [48] * 11  # six times a speaker, eight of them
    assert np.array_equal(yu.split("vowel").y_test[:66], np.tile(np.arange(11), 6))  # a speaker's rows stand together
    assert yu.split("glass", drawn=True, seed=1).rule == "stratified"


# ------------------------------------------------------------------------------------------------ lists
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
    assert np.array_equal(yu.answers(f, orders), [[by_list(row, order, 5) for row in f] for order in orders])


def test_answers_are_dagsvcs():
    s = yu.split("glass")
    est = AdaptiveDAGSVC(gamma=0.5, C=8.0).fit(s.X, s.y)
    dag = DAGSVC().fit_over(est.machines_, s.X, s.y)
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 1, 4, 2]):
        mine = yu.answers(est.machines_.decision(s.X_test), [order])[0]
        assert np.array_equal(dag.with_order(order).predict(s.X_test), mine)


def test_an_order_matters_on_unsettled_rows_and_on_no_other():
    f = np.random.default_rng(1).normal(size=(400, 10))
    every = np.array(list(permutations(range(5))))
    assert len(yu.lists(5)) == 60 and np.array_equal(np.ptp(yu.answers(f, every), axis=0) > 0, yu.unsettled(f, 5))
    assert np.array_equal(np.ptp(yu.answers(f, yu.lists(5)), axis=0) > 0, yu.unsettled(f, 5))  # reversed lists agree
    settled = f[~yu.unsettled(f, 5)]
    for k in range(5):
        table = np.random.default_rng(k).random((5, 5))
        for graph in (adaptive_graph(table + table.T), readings.any_pair_graph(table + table.T)):
            assert np.array_equal(graph.run(settled)[0], yu.answers(settled, every[:1])[0])
    assert yu.lists(11).shape == (yu.LISTS, 11)


# ------------------------------------------------------------------------------------------------ readings
def test_any_pair_graph_asks_the_farthest_pair_left():
    table = np.random.default_rng(0).random((5, 5))
    table = table + table.T
    for f in np.random.default_rng(1).normal(size=(50, 10)):
        left = set(range(5))
        while len(left) > 1:
            i, j = max(((a, b) for a in left for b in left if a < b), key=lambda pair: table[pair])
            left.remove(j if f[pair_index(i, j, 5)] >= 0 else i)
        assert readings.any_pair_graph(table).run(f[None])[0].tolist() == list(left)


def test_validation_skips_only_what_would_come_out_the_same():
    from sklearn.model_selection import StratifiedKFold

    part = yu.split("iris")
    X, y = part.X[part.y > 0], part.y[part.y > 0] - 1
    est, kernel = AdaptiveDAGSVC(Cs=2.0 ** np.arange(8, -4, -2), tol=1e-8, cv=4, random_state=0), Kernel("rbf", 2.0)
    Cs, (accuracy,) = est._validation_curves(X, y, [kernel])
    right, s = np.zeros(len(Cs)), 1.0 - 2 * y
    for fit, held in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        for k, C in enumerate(Cs):
            dual = solve_smo(kernel(X[fit], X[fit]), s[fit], C, tol=1e-8)
            right[k] += (s[held] * (kernel(X[held], X[fit]) @ (s[fit] * dual.alpha) + dual.bias) > 0).sum()
    assert Cs.tolist() == sorted(Cs) and np.array_equal(accuracy, right / len(y))


def small_surface():
    """Two pairs, gamma 2^-9 and 2, C 1/2, 4 and 16."""
    accuracy = np.array([[[0.5, 0.9, 0.9], [0.8, 0.95, 0.95]], [[0.7, 0.6, 1.0], [0.7, 0.7, 0.7]]])
    distances = np.array([[0.3, 0.2], [0.1, 0.4]])
    return readings.Surface(np.array([2.0**-9, 2.0]), np.array([0.5, 4.0, 16.0]), distances, accuracy)


def test_readings_break_ties_as_they_say():
    ways = {(g, C): (a.tolist(), b.tolist()) for g, C, a, b in readings.choices(small_surface())}
    assert ways["own", "smallest"] == ([0, 1], [1, 0]) and ways["own", "largest"] == ([0, 1], [2, 2])
    assert ways["own", "smallest from 1"] == ([0, 1], [1, 1])  # the second pair is right as often with every C
    assert ways["shared", "4"] == ([1, 1], [1, 1])  # DBTC sums to .4 and .6
    assert ways["cv from 2^-9, steps 1 and 1", "smallest gamma"] == ([1, 0], [1, 2])
    assert ways["cv from 2^-9, steps 1 and 1", "largest gamma"] == ([1, 0], [2, 2])
    assert ways["cv from 2^-9, steps 2 and 2", "smallest C"] == ([1, 0], [2, 2])  # every second C: 1/2 and 16
    assert ways["cv shared from 2^-9, steps 1 and 1", "smallest gamma"] == ([0, 0], [2, 2])
    assert ways["cv from 2^-4, steps 1 and 1", "smallest gamma"] == ([1, 1], [1, 0])  # only gamma 2 is on that grid
    assert not any("2^-4, steps 2" in gamma for gamma, _ in ways)  # no gamma is


def test_search_rows_are_real_systems():
    part = yu.split("iris")
    found = readings.search(part, readings.surface(part, [0.5, 2.0], [0.5, 8.0]))
    row = found.query("gamma == '2' and C == '8' and measure == 'own' and next == 'survivor'").squeeze()
    est = AdaptiveDAGSVC(gamma=2.0, C=8.0, tol=1e-6).fit(part.X, part.y)
    assert row.adaptive == (est.predict(part.X_test) == part.y_test).sum() == row.best == row.worst
    assert row.unsettled == row.spread == row.gain == 0 == row.ahead


# ------------------------------------------------------------------------------------------------ claims
def judged(tmp_path, claim, reading="as written", **tables):
    """The word of a claim over made tables."""
    for name, rows in tables.items():
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    return yu.yu.claims[claim].judge(Tables(tmp_path), reading).word


def against_best(wins, losses, p):
    """Paired tests against the best of twenty on two sets."""
    return dict(dataset=["iris", "vowel"], against="best of twenty", only_a_wrong=[0, losses], only_b_wrong=[0, wins],
                p_exact=[1.0, p])  # fmt: skip


@pytest.mark.parametrize(("wins", "losses", "p", "word"), [
    (7, 0, 0.016, "reproduced"), (0, 1, 1.0, "within chance"), (3, 12, 0.035, "not reproduced"),
])  # fmt: skip
def test_at_least_the_best_of_twenty_has_three_outcomes(tmp_path, wins, losses, p, word):
    assert judged(tmp_path, "yu-not-below-maximum", tests=against_best(wins, losses, p)) == word
    assert judged(tmp_path, "yu-vowel-better") == word
    assert judged(tmp_path, "yu-vowel-better", INFERRED, tests_inferred=against_best(7, 0, 0.016)) == "reproduced"


@pytest.mark.parametrize(("share", "word"), [(0.99, "reproduced"), (0.4, "within chance"), (0.01, "not reproduced")])
def test_all_six_at_once(tmp_path, share, word):
    table = dict(dataset=["iris", "all six"], at_least=[1.0, share])
    assert judged(tmp_path, "yu-not-below-maximum", INFERRED, redraws=table) == word


@pytest.mark.parametrize(("gain", "half", "better", "not_below"), [
    (1.0, 0.5, "reproduced", "reproduced"), (-0.1, 0.5, "within chance", "within chance"),
    (-1.0, 0.5, "not reproduced", "not reproduced"),
])  # fmt: skip
def test_gains_over_the_mean_list(tmp_path, gain, half, better, not_below):
    six = dict(
        dataset=[*yu.NAMES, "letter"], rival="mean list", gain=[gain] * 6 + [-9], low=gain - half, high=gain + half
    )
    assert judged(tmp_path, "yu-better", rivals=six) == better == judged(tmp_path, "yu-better", INFERRED)
    assert judged(tmp_path, "yu-not-below-mean") == not_below


def test_pooled_intervals_narrow_with_the_number_of_sets(tmp_path):
    six = dict(dataset=yu.NAMES, rival="mean list", gain=0.5, low=-0.5, high=1.5)  # 1 / sqrt 6 = .41
    assert judged(tmp_path, "yu-better", rivals=six) == "reproduced"
    assert judged(tmp_path, "yu-better", INFERRED) == "within chance"


@pytest.mark.parametrize(("wins", "losses", "p", "word"), [
    (9, 9, 1.0, "reproduced"), (4, 6, 0.75, "within chance"), (1, 20, 1e-5, "not reproduced"),
])  # fmt: skip
def test_dbtc_stands_in_unless_it_is_significantly_worse(tmp_path, wins, losses, p, word):
    table = dict(dataset=["iris", "together"], wins=[50, wins], losses=[0, losses], p_exact=[0.0, p])
    assert judged(tmp_path, "yu-tuning", recipe_tests=table) == word


@pytest.mark.parametrize("good", [True, False])
def test_the_plain_claims_can_hold_and_fail(tmp_path, good):
    words = {True: "reproduced", False: "not reproduced"}
    off = 0.0 if good else 1.0
    lines = dict(dataset=["vowel", "vowel"], system=["adaptive", "max-wins"], kernel_evaluations=[90 + 20 * off, 100])
    more = dict(dataset=["vowel", "vowel"], system=["one-versus-rest", "traditional"], kernel_evaluations=[100, 90])
    speed = pd.concat([pd.DataFrame(lines), pd.DataFrame(more)])
    speed["decisions"] = [10, 55, 11, 10 + off]
    found = dict(
        dual=dict(primal=[10.0], eq2=[10 + off], bounded=[10 + off]),
        identity=dict(equation=[6, 6, 9, 9], form=["printed", "corrected"] * 2, difference=off),
        scaling=dict(test_outside_pct=[off], train_low=[-1 - off], train_high=[1.0]),
        undivided=dict(box_pct=[1 - off]),
        fisher=dict(dataset="glass", gamma_dbtc=[1.0] * 4, gamma_fisher=1 - off, dbtc=[1, 2, 3, 4],
                    fisher=[1, 2, 3, 4] if good else [1, 4, 2, 3]),
        steps=dict(steps=[10], most_separable=[10 - off]),
        table2=dict(dataset=["iris", "vowel"], traditional_max=[90, 90.0], traditional_min=[90 - off, 90 - off]),
        tuning_time=dict(dbtc_seconds=[1 + off], cv_seconds=[2.0]),
        speed=speed,
    )  # fmt: skip
    for name, rows in found.items():
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    for claim in ("yu-eq2", "yu-eq6", "yu-eq9", "yu-eq11", "yu-fisher-ranks"):
        assert judged(tmp_path, claim) == judged(tmp_path, claim, INFERRED) == words[good], claim
    for claim in ("yu-undivided", "yu-fisher", "yu-most-separable", "yu-order-idle", "yu-tuning-time"):
        assert judged(tmp_path, claim) == words[good], claim
    for claim in ("yu-faster-than-pairs", "yu-faster-than-rest", "yu-as-fast"):
        assert judged(tmp_path, claim) == words[good], claim
    assert judged(tmp_path, "yu-order-matters", INFERRED) == words[not good]
    assert judged(tmp_path, "yu-decisions") == ("by definition" if good else "not reproduced")
    assert judged(tmp_path, "yu-guarantee") == "not checkable"


@pytest.mark.parametrize(("gain", "word"), [(6, "reproduced"), (10, "close"), (-9, "not reproduced")])
def test_vowels_gain_in_rows(tmp_path, gain, word):
    assert judged(tmp_path, "yu-vowel-gain", rows=dict(dataset=["vowel"], gain=[gain])) == word
    assert judged(tmp_path, "yu-vowel-gain", INFERRED) == "not available here"


@pytest.mark.parametrize(("rest", "word"), [
    ([120, 118, 121], "reproduced"), ([120, 80, 100], "within chance"), ([70, 80, 75], "not reproduced"),
])  # fmt: skip
def test_cheaper_in_the_mean_over_sets(tmp_path, rest, word):
    sets = ["iris", "wine", "glass"]
    rows = [(name, system, k) for system, values in {"adaptive": [100] * 3, "one-versus-rest": rest}.items()
            for name, k in zip(sets, values, strict=True)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["dataset", "system", "kernel_evaluations"])
    assert judged(tmp_path, "yu-faster-than-rest", INFERRED, speed=table) == word
