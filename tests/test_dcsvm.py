"""DCSVM: the paper's tables and propositions, and every node by brute force."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dagsvm_lab import DCSVC
from dagsvm_lab.machines import pair_code
from dagsvm_lab.report.verdicts import published
from dagsvm_lab.systems.dcsvm import dcsvm_graph, measures

FIGURE_2 = {  # a table in the style of Don and Iacob's Figure 2 that has the measures of their Tables 1 and 2;
    "1-2": "ijjjjj",  # by class 1, 2, 3, 5, 6, 7: always the first, always the second, or undecided
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


def test_dcsvm_measures_and_first_steps_as_printed():
    share = {"i": (1.0, 0.0), "j": (0.0, 1.0), "?": (0.6, 0.4)}
    table = np.array([[share[c] for c in row] for row in FIGURE_2.values()])
    names = np.array([1, 2, 3, 5, 6, 7])
    for number, classes in ((1, [0, 1, 2, 3, 4, 5]), (2, [0, 1, 2, 3])):
        _, m = measures(table, np.array(classes), 0.0)
        printed = published(f"don2018_table{number}")
        assert [f"{names[a]}-{names[b]}" for a, b in zip(m["i"], m["j"], strict=True)] == printed["machine"].tolist()
        assert m["purity"].tolist() == printed["purity_theta0"].tolist()
        assert m["balance"].tolist() == printed["balance_theta0"].tolist()
        assert (100 * m["score"]).tolist() == printed["score_pct"].tolist()
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
        machines, m = measures(table, classes, theta)
        keys = [(p, -b, -s) if prefer == "balance" else (-s, p, -b)
                for p, b, s in zip(m["purity"], m["balance"], m["score"].round(12), strict=True)]  # fmt: skip
        best = keys.index(min(keys))
        assert graph.machine[node] == machines[best]
        i, j = m["i"][best], m["j"][best]
        sides = (table[machines[best], classes] > theta).T
        as_i, as_j = ({*classes[side].tolist()} for side in sides)
        assert {*np.flatnonzero(graph.possible[graph.right[node]])} == as_i - {j} | {i}
        assert {*np.flatnonzero(graph.possible[graph.left[node]])} == as_j - {i} | {j}


def test_dcsvm_sweep_answers_as_each_threshold_does():
    X, y = load_digits(n_class=6, return_X_y=True)
    T = X[400:800]
    est = DCSVC(C=10.0).fit(X[:400], y[:400])
    for theta, labels, cost in est.sweep(T, (0.0, 0.02, 0.2)):
        want, theirs = est.with_threshold(theta).predict_with_cost(T)
        assert (labels == want).all()
        assert all((a == b).all() for a, b in zip(vars(cost).values(), vars(theirs).values(), strict=True))


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
    """Classes on a line, every machine calling a class by the nearer of its two: halves, up to the pairs that fit."""
    code = pair_code(k)
    i, j = np.triu_indices(k, 1)
    nearer = np.abs(np.arange(k) - i[:, None]) < np.abs(np.arange(k) - j[:, None])
    share = np.where(np.abs(np.arange(k) - i[:, None]) == np.abs(np.arange(k) - j[:, None]), 1.0, nearer)
    graph = dcsvm_graph(np.stack([share, 1 - share], axis=2), 0.0, "balance").grow()
    assert graph.depth().max() == int(np.ceil(np.log2(k))) and len(code) == len(share)
