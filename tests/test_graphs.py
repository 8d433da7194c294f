"""The engine: hand-written graphs, list against graph, costs, growth."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from dagsvm_lab import DAGSVC, load, systems
from dagsvm_lab.ballots import Ballot, largest, votes, won
from dagsvm_lab.evaluate import Evaluator, NeedsBlocks
from dagsvm_lab.graphs import DecisionGraph, GraphTooLarge, costs
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, pair_index, rest_code, train
from dagsvm_lab.plots.graphs import draw, layout, way
from dagsvm_lab.prepared import LinearMachines
from dagsvm_lab.systems.adaptive import adaptive_graph, dbtc_matrix
from dagsvm_lab.systems.base import Sample
from dagsvm_lab.systems.ddag import ddag, ddag_of_sets, evaluate_list


def test_four_classes_on_a_line():
    """Class k has the points 10k and 10k + 2.

    Pair (i, j) has the support vectors 10i + 2 and 10j.
    """
    X = np.array([[0], [2], [10], [12], [20], [22], [30], [32]], float)
    est = DAGSVC(kernel="linear", C=1e3).fit(X, np.repeat([1, 2, 3, 4], 2))
    names = ["12", "13", "14", "23", "24", "34"]
    want = {  # x: (class, machines met, unique support vectors)
        1: (1, ["14", "13", "12"], {2, 30, 20, 10}),
        12: (2, ["14", "13", "23"], {2, 30, 20, 12}),
        20: (3, ["14", "24", "23"], {2, 30, 12, 20}),
        25: (3, ["14", "24", "34"], {2, 30, 12, 22}),
        31: (4, ["14", "24", "34"], {2, 30, 12, 22}),
    }
    T = np.array([[x] for x in want], float)
    labels, cost = est.predict_with_cost(T)
    paths = est.decision_path(T).toarray().astype(bool)
    for row, (label, met, vectors) in enumerate(want.values()):
        assert labels[row] == label
        assert {names[t] for t in np.flatnonzero(paths[row])} == set(met)
        used = np.unique(est.machines_.coef[np.flatnonzero(paths[row])].indices)
        assert set(X[est.support_[used], 0]) == vectors
    assert cost.binary_decisions.tolist() == [3] * 5
    assert cost.kernel_evaluations.tolist() == [4] * 5
    assert cost.support_vectors.tolist() == [6] * 5
    assert est.n_parameters_ == 6 * 1 + 12
    # path margins: f is 2 (x - half way) / gap, so at x = 25 machine 34 (22 to 30, half
    # way 26) has |f| = 1/4
    assert est.decision_function([[25.0]])[0] == pytest.approx(
        [-2 * (25 - 16) / 28, -2 * (25 - 21) / 18, 0.25, -0.25]
    )


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_list_and_graph_are_the_same_function(n):
    rng = np.random.default_rng(n)
    f = rng.normal(size=(200, n * (n - 1) // 2))
    order = rng.permutation(n)
    graph = ddag(order, n)
    assert graph.n_nodes == n * (n + 1) // 2 and (graph.label >= 0).sum() == n
    labels, paths, scores = graph.run(f)
    for row in range(len(f)):
        label, states = evaluate_list(f[row], order, n)
        assert labels[row] == label == np.argmax(scores[row])
        met = [pair_index(min(s[0], s[-1]), max(s[0], s[-1]), n) for s in states[:-1]]
        assert sorted(met) == paths[row].indices.tolist()


def test_definition_1_numbers_the_nodes():
    n = 6
    graph = ddag(range(n), n)
    depth = graph.depth()
    code = pair_code(n)
    for k in np.flatnonzero(graph.machine >= 0):
        i, j = np.flatnonzero(code[graph.machine[k]]) + 1
        assert depth[k] + 1 == n - j + i
        # the i-th node of layer j leads to the i-th and the (i+1)-st of the next
        below = []
        for child in (graph.left[k], graph.right[k]):
            a, b = np.flatnonzero(graph.possible[child])[[0, -1]] + 1
            below.append(a)
        assert sorted(below) == [i, i + 1]


def test_costs_by_hand():
    coef = sparse.csr_matrix(np.array([[1, -1, 0, 0], [0, 2, -2, 0], [0, 0, 3, -3.0]]))
    paths = sparse.csr_matrix(np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 0]]))
    cost = costs(paths, coef)
    assert cost.binary_decisions.tolist() == [2, 2, 1, 2]
    assert cost.kernel_evaluations.tolist() == [3, 4, 2, 3]
    assert cost.support_vectors.tolist() == [4, 4, 2, 4]


def test_a_graph_grows_only_where_rows_go_and_stops_at_its_limit():
    def rule(state):
        return ("leaf", 0) if state == 30 else ("node", state, 30, state + 1)

    def made(limit):
        return DecisionGraph(
            0, rule, lambda s: [0], n_classes=1, n_machines=30, max_nodes=limit
        )

    graph = made(100)
    f = np.ones((1, 30))
    f[0, 3] = -1
    graph.run(f)
    assert graph.n_nodes == 6  # states 0 to 4 and the leaf
    assert graph.grow().n_nodes == 31
    with pytest.raises(GraphTooLarge, match="max_nodes"):
        made(10).grow()


def test_a_graph_survives_an_interruption_at_any_moment():
    def made(fail_at):
        calls = [0]

        def tick():
            calls[0] += 1
            if calls[0] == fail_at:
                raise KeyboardInterrupt

        def rule(state):
            tick()
            return (
                ("leaf", state % 3)
                if state >= 15
                else ("node", state % 4, 2 * state + 1, 2 * state + 2)
            )

        def members(state):
            tick()
            return [state % 3, (state + 1) % 3] if state < 15 else [state % 3]

        return DecisionGraph(0, rule, members, n_classes=3, n_machines=4)

    f = np.random.default_rng(0).normal(size=(200, 4))
    labels, paths, scores = made(0).run(f)
    for fail_at in range(3, 40, 3):
        graph = made(fail_at)
        with pytest.raises(KeyboardInterrupt):
            graph.run(f)
        again = graph.run(f)
        np.testing.assert_array_equal(again[0], labels)
        np.testing.assert_array_equal(again[1].toarray(), paths.toarray())
        np.testing.assert_array_equal(again[2], scores)


def test_a_graph_is_drawn():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    graph = ddag(range(4), 4)
    fig, ax = plt.subplots()
    draw(graph, ax, "ABCD", pair_code(4), path=np.array([1, 1, 1, 1, 1, 1.0]))
    said = [t.get_text() for t in ax.texts]
    assert "A vs D" in said and "A B C D" in said and said.count("A") == 1
    plt.close(fig)
    # a row that prefers the lower class everywhere keeps the first class: it goes right
    met = way(graph, np.ones(6))
    assert [set(np.flatnonzero(graph.possible[k])) for k in met] == [
        {0, 1, 2, 3},
        {0, 1, 2},
        {0, 1},
        {0},
    ]
    assert layout(graph)[met, 1].tolist() == [0, -1, -2, -3]


def test_adaptive_graph_shares_states():
    D = dbtc_matrix(
        Sample(np.eye(5), np.arange(5), Kernel("linear"), None, None),
        [Kernel("linear")] * 10,
    )
    graph = adaptive_graph(D).grow()
    states = [
        (bool(m >= 0), p.tobytes(), int(m))
        for m, p in zip(graph.machine, graph.possible, strict=True)
    ]
    assert len(states) < 2**5 and graph.depth().max() == 4
    f = np.random.default_rng(0).normal(size=(50, 10))
    labels, paths, _ = graph.run(f)
    assert set(labels) <= set(range(5))
    np.testing.assert_array_equal(paths.sum(axis=1), 4)


@pytest.mark.parametrize(
    "name",
    [
        "MaxWinsSVC",
        "AndGateSVC",
        "DAGSVC",
        "AdaptiveDAGSVC",
        "DCSVC",
        "BinaryTreeSVC",
        "OneVsRestSVC",
        "ECOCSVC",
    ],
)
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_one_row_gets_the_label_that_a_batch_gives_it(name, C):
    X, y = load_digits(return_X_y=True)
    est = getattr(systems, name)(C=C).fit(X[:600], y[:600])
    T = np.concatenate([X[600:750], (X[600:650] + X[700:750]) / 2])
    labels, _ = est.predict_with_cost(T)
    assert [est.predict(T[k : k + 1])[0] for k in range(len(T))] == labels.tolist()
    walked = 0
    for row, label in zip(T, labels, strict=True):
        for steps in (1, 10**6):  # node by node, and all machines at once
            walker = est.machines_.walker(row, steps)
            try:
                assert est.graph_.walk(walker) == np.searchsorted(est.classes_, label)
            except NeedsBlocks:
                continue
            walked += 1
    assert walked > 1.9 * len(T)


def test_a_near_tie_is_left_to_blocks():
    # three classes; the walker says three outputs, known to within a rounding of .1
    class Rounded:
        def __init__(self, f):
            self.f = np.array(f)

        def ask_every(self):
            return self.f, np.full(3, 0.1)

        def closer(self):
            return None

    ballot = Ballot(pair_code(3), votes, won, by_sign=True)  # machines 0-1, 0-2, 1-2
    assert ballot.walk(Rounded([1.0, 1.0, 1.0])) == 0
    assert (
        ballot.walk(Rounded([1.0, 1.0, 0.05])) == 0
    )  # 0 wins twice, whoever wins between 1 and 2
    with pytest.raises(NeedsBlocks):
        ballot.walk(Rounded([0.05, 1.0, 1.0]))  # 0 or 1
    assert (
        ballot.walk(Rounded([1.0, -1.0, 1.0])) == 0
    )  # a tie of one vote each: the first
    with pytest.raises(NeedsBlocks):
        ballot.walk(Rounded([1.0, -1.0, 0.05]))  # a tie, or two votes for class 2
    rest = Ballot(rest_code(3), largest)
    assert rest.walk(Rounded([1.0, -1.0, -2.0])) == 0
    with pytest.raises(NeedsBlocks):
        rest.walk(Rounded([-1.0, -1.5, -2.0]))


def test_one_sparse_row_is_answered_by_machines_of_dense_ones():
    X, y = load_digits(return_X_y=True)
    est = DAGSVC().fit(X[:300], y[:300])
    assert est.predict(sparse.csr_matrix(X[300:301])) == est.predict(X[300:301])


@pytest.fixture(scope="module")
def systems_over_letter():
    """Systems over one bank in float32, and rows of which some lie at a decision."""
    d = load("letter", scaled=True)
    X, y = d.X_train[:4000], d.y_train[:4000]
    votes = systems.MaxWinsSVC(C=16.0, gamma=2.0).fit(X, y)
    T = d.X_test[:1500]
    between = (T[:300] + T[300:600]) / 2
    fitted = [
        family(**own).fit_over(votes.machines_, X, y)
        for family, own in (
            (systems.DAGSVC, {}),
            (systems.AdaptiveDAGSVC, {}),
            (systems.DCSVC, {"threshold": 0.02}),
            (systems.MaxWinsSVC, {}),
        )
    ]
    return fitted, np.concatenate([T, between])


def test_answers_of_a_batch_are_those_of_its_rows_whatever_the_batch(
    systems_over_letter,
):
    fitted, T = systems_over_letter
    order = np.random.default_rng(0).permutation(len(T))
    for est in fitted:
        bank = est.machines_
        assert bank._prepared.in_float32, "the bank should be in float32"
        labels, paths, _ = est.graph_.run(bank.decision(T))
        labels = est.classes_[labels]
        np.testing.assert_array_equal(est.predict(T), labels, "whole")
        np.testing.assert_array_equal(est.predict(T[order]), labels[order], "permuted")
        twice = est.predict(np.concatenate([T, T]))
        np.testing.assert_array_equal(twice, np.tile(labels, 2), "doubled")
        for size in (1, 2, 7, 60, 700):
            few = T[: min(len(T), 20 * size)]
            parts = [est.predict(few[k : k + size]) for k in range(0, len(few), size)]
            found = np.concatenate(parts)
            np.testing.assert_array_equal(found, labels[: len(few)], f"by {size}")
        jobs = est._variant(n_jobs=3)
        np.testing.assert_array_equal(jobs.predict(T), labels, "jobs")
        found, cost = est.predict_with_cost(T)
        np.testing.assert_array_equal(found, labels, "with cost")
        met = est.decision_path(T)
        assert (met != paths).nnz == 0, "paths"
        np.testing.assert_array_equal(
            cost.kernel_evaluations, costs(paths, bank.coef).kernel_evaluations
        )


def test_threads_ask_one_system_at_once(systems_over_letter):
    fitted, T = systems_over_letter
    est = fitted[2]._variant()
    est.machines_ = replace(est.machines_)  # nothing is prepared yet
    est.graph_ = est._make_graph()
    want = fitted[2].predict(T)
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(est.predict, [T[k::8] for k in range(8)])
        for k, found in enumerate(parts):
            np.testing.assert_array_equal(found, want[k::8])


def test_an_evaluator_computes_what_blocks_do(systems_over_letter):
    fitted, T = systems_over_letter
    bank = fitted[0].machines_
    f = bank.decision(T)
    prepared = bank._prepared
    Z, row_rounding = prepared.transform(T)
    every = prepared.every(Z)
    slack = prepared.slack(row_rounding[:, None])
    assert (np.abs(every - f) <= slack).all(), "rounding beyond its bound"
    for k in range(0, len(T), 100):
        g, closer = prepared.closer(Z[k], row_rounding[k])
        assert (np.abs(g - f[k]) <= closer).all(), "rounding beyond its closer bound"
        assert (closer <= slack[k]).all(), np.max(closer - slack[k])
        assert prepared.in_block(T[k], k % 325) == f[k, k % 325]
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(T))
    machines = rng.integers(0, 325, len(T))
    asked = Evaluator(prepared, T, at_once=False).ask(rows, machines)
    want = f[rows, machines]
    np.testing.assert_allclose(asked, want, atol=1e-3)
    np.testing.assert_array_equal(asked >= 0, want >= 0)


@pytest.mark.parametrize("widths", [None, tuple(np.linspace(0.5, 2.0, 64))])
def test_linear_machines_are_one_product(widths):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    kernel = Kernel("linear", widths=widths)
    bank = train(X[:900], y[:900], pair_code(10), kernel, 1.0)
    assert isinstance(bank._prepared, LinearMachines)
    f = bank.decision(X)
    exact = kernel(X, bank.vectors) @ bank.coef.T.toarray() + bank.bias
    np.testing.assert_allclose(f, exact, atol=1e-10)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(bank.decision(X[order]), f[order])
    np.testing.assert_array_equal(bank.decision(X[5:6])[0], f[5])
    for k in range(0, 1700, 50):
        every, slack = bank.walker(X[k]).ask_every()
        assert (np.abs(every - f[k]) <= slack).all(), "rounding beyond its bound"


def made_graph(left, right):
    """A graph whose nodes without children are leaves."""
    left = np.array(left)
    leaf = left < 0
    return DecisionGraph.from_arrays(
        np.where(leaf, -1, 0),
        left,
        np.array(right),
        np.where(leaf, 0, -1),
        np.ones((len(left), 1), dtype=bool),
        n_machines=1,
    )


def test_the_depth_of_a_node_is_its_longest_way_from_the_root():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 30))
        later = [rng.integers(k + 1, n, size=2) for k in range(n - 1)]
        left, right = np.array([*later, [-1, -1]]).T
        longest = np.zeros(n, dtype=int)
        for k in range(n - 1):
            for child in later[k]:
                longest[child] = max(longest[child], longest[k] + 1)
        assert made_graph(left, right).depth().tolist() == longest.tolist()


def test_a_graph_with_a_cycle_has_no_depth():
    with pytest.raises(ValueError, match="cycle"):
        made_graph([1, 2, 1, -1], [1, 3, 3, -1])


def test_values_that_a_machine_has_in_common_with_the_one_before_are_kept():
    d = load("usps")
    X, y, T = d.X_train[::3].astype(float), d.y_train[::3], d.X_test.astype(float)
    est = DAGSVC(C=100, gamma=0.02).fit(X, y)
    bank = est.machines_
    f = bank.decision(T)
    asked = Evaluator(bank._prepared, T, at_once=False)
    slack = bank._prepared.slack(asked.row_rounding[:, None])
    looked_up = 0
    for rows, nodes, outputs, _ in est.graph_.steps(len(T), asked.ask):
        machines = est.graph_.machine[nodes]
        apart = np.abs(outputs - f[rows, machines])
        assert (apart <= slack[rows, machines]).all(), "rounding beyond its bound"
        looked_up += len(asked.kept.tiles) > 1
        for tile in asked.kept.tiles[1:]:
            n_own = bank.n_support[tile.machine]
            assert tile.values.shape[0] == n_own, tile.machine
    assert looked_up > 3, "few steps kept their values"
    np.testing.assert_array_equal(est.predict(T), est.classes_[est.graph_.labels(f)])
    few = T[:30]  # groups so small that all is computed anew
    np.testing.assert_array_equal(est.predict(few), est.predict(T)[:30])


@pytest.mark.parametrize("n", [5, 70])
def test_rows_enter_where_their_sets_of_classes_lead(n):
    rng = np.random.default_rng(0)
    graph = ddag_of_sets(np.arange(n), n)
    for _ in range(3):  # the second and third time most sets are known
        left = rng.random((200, n)) < 0.5
        left[np.arange(200), rng.integers(0, n, 200)] = True
        nodes = graph.entries(left)
        assert nodes.tolist() == [graph.entry(row) for row in left]
        np.testing.assert_array_equal(graph._classes(nodes), left)
