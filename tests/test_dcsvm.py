"""DCSVM: the paper's tables and propositions, and every node by brute force."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from dagsvm_lab import DCSVC, load
from dagsvm_lab.machines import pair_code
from dagsvm_lab.report.verdicts import published
from dagsvm_lab.systems.dcsvm import dcsvm_graph

# A table in the style of Don and Iacob's Figure 2 that has the measures of their Tables
# 1 and 2; by class 1, 2, 3, 5, 6, 7: always the first, always the second, or undecided.
FIGURE_2 = {
    "1-2": "ijjjjj",
    "1-3": "i?j???",
    "1-5": "i?jj??",
    "1-6": "i?i?j?",
    "1-7": "i???ij",
    "2-3": "?ijj??",
    "2-5": "iiijj?",
    "2-6": "?i?ij?",
    "2-7": "ii?i?j",
    "3-5": "??ijjj",
    "3-6": "i?iiji",
    "3-7": "??i?ij",
    "5-6": "iiiijj",
    "5-7": "iiiijj",
    "6-7": "????ij",
}


def measures(table, classes, theta):
    """Definitions 3 and 4, a class at a time.

    (i, j, purity, balance, score) of each machine between the classes.
    """
    found = {}
    for t, (i, j) in enumerate(combinations(range(table.shape[1]), 2)):
        if i in classes and j in classes:
            as_i, as_j = (
                sum(table[t, c, side] > theta for c in classes) for side in (0, 1)
            )
            k, own = len(classes), table[t, i, 0] + table[t, j, 1]
            found[t] = i, j, as_i + as_j - k, min(k - as_i, k - as_j), own / 2
    return found


def test_dcsvm_measures_and_first_steps_as_printed():
    share = {"i": (1.0, 0.0), "j": (0.0, 1.0), "?": (0.6, 0.4)}
    table = np.array([[share[c] for c in row] for row in FIGURE_2.values()])
    names = np.array([1, 2, 3, 5, 6, 7])
    for number, classes in ((1, [0, 1, 2, 3, 4, 5]), (2, [0, 1, 2, 3])):
        printed = published(f"don2018_table{number}")[
            ["machine", "purity_theta0", "balance_theta0", "score_pct"]
        ]
        found = measures(table, classes, 0.0).values()
        mine = [(f"{names[i]}-{names[j]}", p, b, 100 * s) for i, j, p, b, s in found]
        assert mine == list(printed.itertuples(index=False, name=None))
    graph = dcsvm_graph(table, 0.0, "balance").grow()
    sets = [set(names[np.flatnonzero(p)]) for p in graph.possible]
    machines = list(FIGURE_2)
    assert machines[graph.machine[0]] == "5-6"
    assert sets[graph.left[0]] == {6, 7} and sets[graph.right[0]] == {1, 2, 3, 5}
    assert machines[graph.machine[graph.right[0]]] == "1-2"
    assert sets[graph.right[graph.right[0]]] == {1}


@pytest.mark.parametrize("prefer", ["balance", "score"])
@pytest.mark.parametrize("theta", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_every_node_of_dcsvm_asks_its_best_machine(k, theta, prefer):
    first = np.random.default_rng(k).random((k * (k - 1) // 2, k)).round(1)
    table = np.stack([first, 1 - first], axis=2)
    graph = dcsvm_graph(table, theta, prefer).grow()
    for node in np.flatnonzero(graph.machine >= 0):
        classes = np.flatnonzero(graph.possible[node])
        found = measures(table, classes, theta)
        keys = {}
        for t, (_, _, purity, balance, score) in found.items():
            division = purity, -balance
            score = -score.round(12)
            by_score = (score, *division)
            keys[t] = (*division, score) if prefer == "balance" else by_score
        best = min(keys, key=keys.get)
        assert graph.machine[node] == best
        i, j = found[best][:2]
        sides = (table[best, classes] > theta).T
        as_i, as_j = ({*classes[side].tolist()} for side in sides)
        assert {*np.flatnonzero(graph.possible[graph.right[node]])} == as_i - {j} | {i}
        assert {*np.flatnonzero(graph.possible[graph.left[node]])} == as_j - {i} | {j}


def test_dcsvm_sweep_answers_as_each_threshold_does():
    X, y = load_digits(n_class=6, return_X_y=True)
    T = X[400:800]
    est = DCSVC(C=10.0).fit(X[:400], y[:400])
    for theta, labels, cost in est.sweep(T, (0.0, 0.02, 0.2)):
        want, theirs = est.with_threshold(theta).predict_with_cost(T)
        np.testing.assert_array_equal(labels, want)
        for name, counts in vars(cost).items():
            np.testing.assert_array_equal(counts, getattr(theirs, name), err_msg=name)


@pytest.mark.parametrize("seed", range(20))
def test_dcsvm_is_never_deeper_than_proposition_1(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 8))
    share = rng.choice([0.0, 0.0, 1.0, 1.0, 0.5], size=(k * (k - 1) // 2, k))
    i, j = np.triu_indices(k, 1)
    share[np.arange(len(i)), i], share[np.arange(len(i)), j] = 0.9, 0.2
    graph = dcsvm_graph(np.stack([share, 1 - share], axis=2), 0.05, "balance").grow()
    assert graph.depth().max() <= k - 1


@pytest.mark.parametrize("k", [4, 8, 16])
def test_dcsvm_halves_as_in_proposition_2(k):
    """Classes on a line, every machine calling a class by the nearer of its two.

    So it halves, up to the pairs that fit.
    """
    code = pair_code(k)
    i, j = np.triu_indices(k, 1)
    nearer = np.abs(np.arange(k) - i[:, None]) < np.abs(np.arange(k) - j[:, None])
    share = np.where(
        np.abs(np.arange(k) - i[:, None]) == np.abs(np.arange(k) - j[:, None]),
        1.0,
        nearer,
    )
    graph = dcsvm_graph(np.stack([share, 1 - share], axis=2), 0.0, "balance").grow()
    assert graph.depth().max() == int(np.ceil(np.log2(k))) and len(code) == len(share)


def test_rounded_shares_of_weighted_rows_stay_believable(tmp_path):
    d = load("vowel")
    X = StandardScaler().fit_transform(d.X)[::2]
    y = d.y[::2]
    weight = np.random.default_rng(0).uniform(0.2, 3, len(y))
    weight[::9] = 0
    est = DCSVC(C=10).fit(X, y, sample_weight=weight)
    table = est.predictions_table_
    assert table.min() == 0 and table.max() == 1
    est.save(tmp_path / "model.npz")
    again = DCSVC.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predictions_table_, table)
    np.testing.assert_array_equal(again.predict(X), est.predict(X))


def test_a_graph_that_outgrows_its_limit_starts_anew():
    X, y = load_digits(return_X_y=True)
    est = DCSVC(threshold=0.05).fit(X[:300], y[:300])
    want = est.predict(X)
    for rows in (slice(None), slice(1)):
        small = est.graph_ = est._make_graph()
        small.max_nodes = 3
        np.testing.assert_array_equal(est.predict(X[rows]), want[rows])
        assert est.graph_ is not small
