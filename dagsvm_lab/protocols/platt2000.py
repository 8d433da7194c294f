"""The experiments of Platt, Cristianini and Shawe-Taylor 2000, section 5: Table 1 and everything said around it.

A data set's banks are trained once; every method, order and test below is a graph run over their outputs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from ..datasets import Dataset, load
from ..graphs import Ballot, DecisionGraph, costs, largest, votes, won
from ..kernels import Kernel, gamma_from_sigma
from ..machines import Bank, pair_code, rest_code, train
from ..papers.common import mcnemar, stratified_split, timed
from ..report.verdicts import published
from ..systems.ddag import ddag

DATASETS = ("usps", "letter", "covertype")
METHODS = ("1-v-r", "max-wins", "dagsvm")
TEST_ROWS = {"usps": 2007, "letter": 4000, "covertype": 565_892}
RULES = {"error_pct": ("error", TEST_ROWS), "kernel_evaluations": ("count",), "size_kparameters": ("count",),
         "train_cpu_s": ("time",)}  # fmt: skip
NETS = {"usps": (100, 200), "letter": (200, 300), "covertype": (120, 200)}  # hidden units and epochs
BATCH = 8192


def gaussian(sigma: float) -> Kernel:
    """Platt's Gaussian kernel of width sigma."""
    return Kernel("rbf", gamma_from_sigma(sigma))


def graph_of(method: str, n: int, order: Sequence[int] | None = None) -> DecisionGraph | Ballot:
    """The graph that turns machine outputs into the method's answers, over n classes."""
    if method == "dagsvm":
        return ddag(range(n) if order is None else order, n)
    return Ballot(rest_code(n), largest) if method == "1-v-r" else Ballot(pair_code(n), votes)


def decisions(bank: Bank, X: np.ndarray) -> np.ndarray:
    """Outputs of all machines for all rows, a batch at a time."""
    return np.concatenate([bank.decision(X[start : start + BATCH]) for start in range(0, len(X), BATCH)])


def stored_size(bank: Bank) -> int:
    """Platt's classifier size when only nonzero inputs of the unique support vectors are stored."""
    return int(np.count_nonzero(bank.vectors)) + bank.coef.nnz


def counted(names: Iterable[str]) -> pd.DataFrame:
    """Rows, inputs and classes of the data sets as they are loaded."""
    rows = []
    for data in map(load, names):
        valid = 0 if data.X_valid is None else len(data.X_valid)
        sizes = len(data.X_train), valid, len(data.X_test), data.X.shape[1], len(np.unique(data.y))
        rows.append((data.name, *sizes))
    return pd.DataFrame(rows, columns=["dataset", "train", "valid", "test", "inputs", "classes"])


@dataclass
class Trial:
    """One data set of Table 1: a bank for each method (shared where the parameters are), outputs and answers."""

    name: str
    data: Dataset
    X: np.ndarray
    y: np.ndarray
    parameters: dict[str, tuple[float, float]]
    banks: dict[str, Bank] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    paths: dict[str, sparse.csr_matrix] = field(default_factory=dict)

    n_classes = property(lambda self: self.data.card.classes)

    def wrong(self, method: str) -> np.ndarray:
        """Whether the method's answer to each test row is false."""
        return self.labels[method] != self.y


def trial(name: str, test_rows: int | None = None, seed: int = 0) -> Trial:
    """The Trial of a data set at the published parameters; `test_rows` draws a fixed sample of the test rows.

    Training runs in this process alone, so that its CPU seconds can be read.
    """
    data = load(name, scaled=True)
    classes, codes = np.unique(data.y_train, return_inverse=True)
    rows = np.arange(len(data.y_test))
    if test_rows is not None and test_rows < len(rows):
        rows = np.sort(np.random.default_rng(seed).choice(rows, test_rows, replace=False))
    table = published("platt2000_table1").query("dataset == @name and method in @METHODS")
    parameters = {row.method: (row.sigma, row.C) for row in table.itertuples()}
    t = Trial(name, data, data.X_test[rows], np.searchsorted(classes, data.y_test[rows]), parameters)
    done: dict[tuple, str] = {}
    for method, (sigma, C) in parameters.items():
        code = rest_code(len(classes)) if method == "1-v-r" else pair_code(len(classes))
        twin = done.setdefault((len(code), sigma, C), method)
        if twin == method:
            start = time.process_time()
            t.banks[method] = train(data.X_train, codes, code, gaussian(sigma), C, n_jobs=1)
            t.seconds[method] = time.process_time() - start
            t.outputs[method] = decisions(t.banks[method], t.X)
        else:
            t.banks[method], t.seconds[method], t.outputs[method] = t.banks[twin], t.seconds[twin], t.outputs[twin]
        t.labels[method], t.paths[method], _ = graph_of(method, len(classes)).run(t.outputs[method])
    return t


def net_error(t: Trial) -> float:
    """Test error (%) of a net with one hidden layer: a baseline of ours, for the paper does not describe its nets."""
    units, epochs = NETS[t.name]
    net = MLPClassifier((units,), max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is what was chosen
        net.fit(t.data.X_train, t.data.y_train)
    return 100 * float(np.mean(np.searchsorted(net.classes_, net.predict(t.X)) != t.y))


def table1(trials: Iterable[Trial], nets: bool = False) -> pd.DataFrame:
    """Table 1 as measured; `nets` trains the baseline nets as well, whose rows are empty otherwise."""
    measured = {(t.name, "neural-net"): (net_error(t), *[np.nan] * 3) for t in trials if nets}
    for t in trials:
        for method, bank in t.banks.items():
            evaluations = costs(t.paths[method], bank.coef).kernel_evaluations.mean()
            numbers = 100 * t.wrong(method).mean(), evaluations, t.seconds[method], stored_size(bank) / 1000
            measured[t.name, method] = numbers
    table = published("platt2000_table1")
    columns = ["error_pct", "kernel_evaluations", "train_cpu_s", "size_kparameters"]
    found = [measured.get((row.dataset, row.method), (np.nan,) * 4) for row in table.itertuples()]
    table[columns] = np.array(found, dtype=float)
    run = {t.name for t in trials}
    return table[table["dataset"].isin(run)].reset_index(drop=True)


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """How many times fewer kernel values DAGSVM needs than Max Wins, and how much faster it trains than 1-v-r."""
    wide = table.pivot(index="dataset", columns="method", values=["kernel_evaluations", "train_cpu_s"])
    wide = wide.loc[table["dataset"].unique()]
    evaluations, seconds = wide["kernel_evaluations"], wide["train_cpu_s"]
    found = {"max_wins_evaluations_over_dag": evaluations["max-wins"] / evaluations["dagsvm"],
             "rest_training_over_dag": seconds["1-v-r"] / seconds["dagsvm"]}  # fmt: skip
    return pd.DataFrame(found).reset_index()


def ratios_beside(printed: pd.DataFrame, recorded: pd.DataFrame | None, fresh: pd.DataFrame) -> pd.DataFrame:
    """`ratios` of the published, the recorded and this run's Table 1, a row a ratio."""
    tables = {"published": printed, "recorded": recorded, "fresh": fresh}
    long = {name: ratios(t).melt("dataset", var_name="ratio").set_index(["dataset", "ratio"])["value"]
            for name, t in tables.items() if t is not None}  # fmt: skip
    return pd.DataFrame(long).reindex(columns=list(tables), index=long["fresh"].index).reset_index()


def sizes(trials: Iterable[Trial]) -> pd.DataFrame:
    """What a classifier stores: unique support vectors, coefficients, and its size with all and with nonzero inputs."""
    rows = []
    for t in trials:
        for method, bank in t.banks.items():
            full, stored = bank.n_parameters / 1000, stored_size(bank) / 1000
            rows.append((t.name, method, len(bank.support), bank.coef.nnz, full, stored))
    return pd.DataFrame(rows, columns=["dataset", "method", "unique_svs", "coefficients", "all_k", "nonzero_k"])


def mcnemar_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """McNemar's test for every pair of methods and data set, at .05 by the exact test."""
    rows = []
    for t in trials:
        for a, b in combinations(METHODS, 2):
            found = mcnemar(t.wrong(a), t.wrong(b))
            rows.append({"dataset": t.name, "method_a": a, "method_b": b, **found,
                         "significant": found["p_exact"] < 0.05,
                         "significant_corrected": found["p_corrected"] < 0.05})  # fmt: skip
    return pd.DataFrame(rows)


def indecision(trials: Iterable[Trial]) -> pd.DataFrame:
    """Shares of the test rows (%) that the AND gate leaves unclassified and on whose winner Max Wins' votes tie.

    Errors are given over all rows, and over those the gate refuses.
    """
    rows = []
    for t in trials:
        f, n = t.outputs["max-wins"], t.n_classes
        ballots = won(f, pair_code(n))
        none = ballots.max(axis=1) < n - 1
        tied = (ballots == ballots.max(axis=1, keepdims=True)).sum(axis=1) > 1
        dag = graph_of("dagsvm", n).run(f)[0] != t.y
        refused = 100 * dag[none].mean() if none.any() else np.nan
        rows.append((t.name, 100 * none.mean(), 100 * tied.mean(), 0.0, 100 * dag.mean(), refused))
    columns = ["dataset", "and_gate_unclassified_pct", "max_wins_tied_pct", "dag_undecided_pct", "dag_error_pct",
               "dag_error_on_refused_pct"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def orders(t: Trial, n_random: int, n_moves: int, rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Accuracy (%) of DAGSVM over many lists: the natural, random ones, the best and the worst a local search finds.

    The search swaps two classes at a time and looks at one half of the test rows only; the other half judges.
    """
    rng = np.random.default_rng(seed)
    keep = np.sort(rng.permutation(len(t.y))[:rows])
    f, y, n = t.outputs["dagsvm"][keep], t.y[keep], t.n_classes
    seen, unseen = stratified_split(y, 0.5, seed)

    def hits(order: np.ndarray, part: np.ndarray) -> float:
        return 100 * float(np.mean(graph_of("dagsvm", n, order).run(f[part])[0] == y[part]))

    def climb(sign: int) -> np.ndarray:
        order = np.arange(n)
        score = hits(order, seen)
        for _ in range(n_moves):
            trial = order.copy()
            i, j = rng.choice(n, 2, replace=False)
            trial[[i, j]] = trial[[j, i]]
            new = hits(trial, seen)
            if sign * (new - score) >= 0:
                order, score = trial, new
        return order

    lists = {"natural": np.arange(n)} | {f"random-{k}": rng.permutation(n) for k in range(n_random)}
    lists |= {"best": climb(+1), "worst": climb(-1)}
    found = [(t.name, name, hits(order, slice(None)), hits(order, seen), hits(order, unseen))
             for name, order in lists.items()]  # fmt: skip
    return pd.DataFrame(found, columns=["dataset", "order", "accuracy_pct", "searched_half_pct", "other_half_pct"])


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Least, median and greatest accuracy over the random lists of each data set, and the distance between the ends."""
    groups = table[table["order"].str.startswith("random")].groupby("dataset", sort=False)["accuracy_pct"]
    found = groups.agg(["min", "median", "max"])
    return found.assign(spread=found["max"] - found["min"]).reset_index()


def walk(bank: Bank, graph: DecisionGraph, X: np.ndarray) -> np.ndarray:
    """Class indices by going down the graph node by node, asking a machine only about the rows that reach it."""
    node = np.zeros(len(X), dtype=int)
    while (graph.machine[node] >= 0).any():
        for k in np.unique(node[graph.machine[node] >= 0]):
            rows = np.flatnonzero(node == k)
            f = bank.decision(X[rows], machines=[graph.machine[k]])[:, 0]
            node[rows] = np.where(f >= 0, graph.right[k], graph.left[k])
    return graph.label[node]


def evaluation(t: Trial, rows: int = 2000, repeats: int = 3) -> pd.DataFrame:
    """Milliseconds and kernel values a row: one product for all machines, a walk down the graph, LIBSVM."""
    from sklearn.svm import SVC

    X, n, bank, graph = t.X[:rows], t.n_classes, t.banks["dagsvm"], graph_of("dagsvm", t.n_classes)
    sigma, C = t.parameters["dagsvm"]
    peer = SVC(C=C, gamma=gamma_from_sigma(sigma), cache_size=1000).fit(t.data.X_train, t.data.y_train)
    path = graph.run(bank.decision(X))[1]
    cost = costs(path, bank.coef)
    rest, every = t.banks["1-v-r"], len(bank.support)
    ways = {
        "1-v-r, one product": (lambda: graph_of("1-v-r", n).run(rest.decision(X)), len(rest.support)),
        "Max Wins, one product": (lambda: graph_of("max-wins", n).run(bank.decision(X)), every),
        "DAG, one product": (lambda: graph.run(bank.decision(X)), every),
        "DAG, node by node": (lambda: walk(bank, graph, X), cost.support_vectors.mean()),
        "LIBSVM (all pairs)": (lambda: peer.predict(X), len(peer.support_)),
    }  # fmt: skip
    found = [(t.name, way, 1000 * timed(run, repeats)[1] / len(X), done, cost.kernel_evaluations.mean())
             for way, (run, done) in ways.items()]  # fmt: skip
    return pd.DataFrame(found, columns=["dataset", "way", "ms_a_row", "evaluations_done", "evaluations_on_path"])
