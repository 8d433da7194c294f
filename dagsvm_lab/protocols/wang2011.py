"""Experiments of Wang, Zheng and Zhou 2011: six systems over shared banks of machines.

Ordinary pair machines give svm_oao and svm_cbts, posterior ones ppsvm_oao and btppsvm: a bank is trained once, and
every tree over it is grown from its outputs on the training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from time import process_time

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from ..datasets import load
from ..graphs import Ballot, DecisionGraph, costs, largest, votes
from ..kernels import Kernel
from ..machines import Bank, pair_code, rest_code, train
from ..papers.common import stratified_split
from ..systems import BinaryTreeSVC, MaxWinsSVC, OneVsRestSVC, PosteriorSVC
from ..systems.base import Sample
from ..systems.posterior import Neighbourhood

SYSTEMS = ("svm_oao", "svm_oaa", "svm_cbts", "ppsvm_oao", "ppsvm_oaa", "btppsvm")
LOADED = {"letter": "letter", "optdigit": "optdigits", "pendigit": "pendigits", "mnist": "mnist"}
K = 11  # neighbours of the posterior estimate, the point itself included
TREES = {"svm_cbts": ("ordinary", "centre"), "btppsvm": ("posterior", "fisher")}
GRID_C = (1.0, 4.0, 16.0, 64.0)
GRID_GAMMA = tuple(2.0**e for e in (-7, -5, -3, -1, 1, 3))
UNTUNED = {"letter": (16.0, 2.0), "optdigit": (4.0, 2.0**-5), "pendigit": (4.0, 0.5), "mnist": (16.0, 2.0**-5)}


@dataclass(frozen=True)
class Split:
    """Training and test rows of a data set, inputs in [-1, 1], labels as class indices."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: tuple

    def sample(self, n: int | None, seed: int = 0) -> Split:
        """The split with about n training rows, drawn at random within each class (all of them for None)."""
        if n is None or n >= len(self.y):
            return self
        rows, _ = stratified_split(self.y, n / len(self.y), seed)
        return replace(self, X=self.X[rows], y=self.y[rows])

    def only(self, classes: Iterable[int]) -> Split:
        """The split with the rows of `classes` alone, renumbered from 0 in that order."""
        number = np.full(len(self.classes), -1)
        number[list(classes)] = np.arange(len(list(classes)))
        train, test = number[self.y] >= 0, number[self.y_test] >= 0
        parts = self.X[train], number[self.y[train]], self.X_test[test], number[self.y_test[test]]
        return Split(self.name, *parts, tuple(self.classes[c] for c in classes))

    def checked(self, gamma: float) -> Sample:
        """The training rows as the package's systems take them."""
        return Sample(self.X, self.y, Kernel("rbf", gamma), None, None)

    def accuracy(self, labels: np.ndarray) -> float:
        """Per cent of the test rows that `labels` names rightly."""
        return 100 * float(np.mean(labels == self.y_test))


def split(name: str) -> Split:
    """The paper's split of a data set: Letter's first 15,000 rows train, the others as they are distributed."""
    d = load(LOADED[name], scaled=True, **({"train": 15000} if name == "letter" else {}))
    classes, codes = np.unique(d.y, return_inverse=True)
    X, n = (2 * d.X - 1 if name == "mnist" else d.X), len(d.y_train)
    return Split(name, X[:n], codes[:n], X[n:], codes[n:], tuple(classes.tolist()))


@dataclass
class Pairs:
    """A trained bank of all pairs (or one machine a class) and its outputs on the training and test rows."""

    bank: Bank
    test: np.ndarray
    rows: np.ndarray | None = field(default=None, repr=False)


def bank_of(
    here: Split,
    C: float,
    gamma: float,
    *,
    near: Neighbourhood | None = None,
    among: str = "pair",
    change: Callable | None = None,
    rest: bool = False,
    look: bool = True,
    n_jobs: int = 2,
) -> Pairs:
    """All pairs' machines or, with `rest`, one a class; posterior if `near` is given; `look`: at training rows too.

    `change(y, sign)` alters the soft labels y, knowing the classes' signs.
    """
    code = (rest_code if rest else pair_code)(len(here.classes))
    soft = near.soft_labels(code, among) if near else None
    if change:
        plain, soft = soft, lambda t, rows, sign: change(plain(t, rows, sign), sign)
    bank = train(here.X, here.y, code, Kernel("rbf", gamma), C, soft=soft, n_jobs=n_jobs)
    return Pairs(bank, bank.decision(here.X_test), bank.decision(here.X) if look else None)


def neighbourhood(here: Split, gamma: float = 1.0, k: int = K) -> Neighbourhood:
    """The k-NN posteriors at the training rows."""
    return Neighbourhood(here.checked(gamma), len(here.classes), k=k)


def grow(here: Split, pairs: Pairs, **rule) -> DecisionGraph:
    """The tree over trained pairs that BinaryTreeSVC(**rule) makes."""
    return BinaryTreeSVC(random_state=0, **rule).grow(here.checked(1.0), pairs.rows)


def measure(here: Split, pairs: Pairs, graph: DecisionGraph | Ballot) -> dict:
    """Accuracy, stored support vectors and distinct machines of a graph over a bank, and its cost for a test row."""
    labels, paths, _ = graph.run(pairs.test)
    stored, cost = pairs.bank.select(graph.machines_used), costs(paths, pairs.bank.coef)
    return {
        "accuracy_pct": here.accuracy(labels),
        "support_vectors": len(stored.support),
        "support_vectors_pct": 100 * len(stored.support) / len(here.y),
        "machines": len(graph.machines_used),
        "mean_path": float(cost.binary_decisions.mean()),
        "kernel_evaluations": float(cost.kernel_evaluations.mean()),
    }


# Tables 2 to 5


def select(here: Split, folds: int = 5, n_jobs: int = 2) -> pd.DataFrame:
    """Cross-validated accuracy and support vectors of one-against-one on the grid, for both kinds of labels.

    Chosen: the best of the ordinary machines; of equals the smallest C, then the smallest gamma.
    """
    part = np.random.default_rng(0).permutation(len(here.y)) % folds
    parts = Parallel(n_jobs=n_jobs)(delayed(_fold)(here, part == fold) for fold in range(folds))
    columns = ["dataset", "labels", "C", "gamma", "cv_accuracy_pct", "support_vectors_pct"]
    table = pd.DataFrame([row for rows in parts for row in rows], columns=columns)
    table = table.groupby(columns[:4], as_index=False).mean().round(4)
    ordered = table.sort_values(["labels", "cv_accuracy_pct", "C", "gamma"], ascending=[True, False, True, True])
    table["best"] = table.index.isin(ordered.groupby("labels").head(1).index)
    table["chosen"] = table["best"] & (table["labels"] == "ordinary")
    return table


def _fold(here: Split, held: np.ndarray) -> list[tuple]:
    inner = Split(here.name, here.X[~held], here.y[~held], here.X[held], here.y[held], here.classes)
    labels, rows = {"ordinary": None, "posterior": neighbourhood(inner)}, []
    for gamma, C, (kind, near) in product(GRID_GAMMA, GRID_C, labels.items()):
        pairs = bank_of(inner, C, gamma, near=near, look=False, n_jobs=1)
        right = inner.accuracy(votes(pairs.test, pairs.bank.code).argmax(axis=1))
        rows.append((here.name, kind, C, gamma, right, 100 * len(pairs.bank.support) / len(inner.y)))
    return rows


def settings(selection: pd.DataFrame | None) -> dict[str, tuple[float, float]]:
    """(C, gamma) of each data set: as chosen in a `select` table, and stated defaults where there is none."""
    found = [] if selection is None else selection[selection["chosen"]].to_dict("records")
    return UNTUNED | {row["dataset"]: (row["C"], row["gamma"]) for row in found}


def pair_banks(here: Split, near: Neighbourhood, C: float, gamma: float, n_jobs: int = 2) -> dict[str, Pairs]:
    """The two banks of pairs, ordinary and posterior."""
    labels = {"ordinary": None, "posterior": near}
    return {kind: bank_of(here, C, gamma, near=soft, n_jobs=n_jobs) for kind, soft in labels.items()}


def six(
    here: Split, banks: dict[str, Pairs], near: Neighbourhood, C: float, gamma: float, n_jobs: int = 2
) -> pd.DataFrame:
    """One row a system: what Tables 2 to 4 count, and more. The one-against-all machines are trained here."""
    found = {}
    for system, (labels, pair) in TREES.items():
        found[system] = measure(here, banks[labels], grow(here, banks[labels], pair=pair))
    for labels, prefix, soft in (("ordinary", "svm", None), ("posterior", "ppsvm", near)):
        pairs = banks[labels]
        found[f"{prefix}_oao"] = measure(here, pairs, Ballot(pairs.bank.code, votes))
        rest = bank_of(here, C, gamma, near=soft, rest=True, look=False, n_jobs=n_jobs)
        found[f"{prefix}_oaa"] = measure(here, rest, Ballot(rest.bank.code, largest))
    about = {"dataset": here.name, "train": len(here.y), "C": C, "gamma": gamma}
    return pd.DataFrame([{**about, "system": system, **found[system]} for system in SYSTEMS]).round(3)


def as_printed(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """table2, table3, table4 in the published columns, from the rows of `six`; averages where the paper has them."""
    tables = {}
    for number, measure in ((2, "accuracy_pct"), (3, "support_vectors_pct"), (4, "machines")):
        wide = results.pivot(index="dataset", columns="system", values=measure)
        wide = wide.reindex(index=[d for d in LOADED if d in wide.index], columns=list(SYSTEMS))
        if number < 4:
            wide.loc["average"] = wide.mean()
        wide = wide.round(2) if number < 4 else wide.astype(int)
        wide = wide.reset_index(names="dataset").rename_axis(columns=None)
        wide.insert(0, "measure", "binary_classifiers" if number == 4 else measure)
        wide.insert(0, "table", number)
        tables[f"table{number}"] = wide
    return tables


def times(here: Split, C: float, gamma: float, repeats: int = 1) -> pd.DataFrame:
    """Processor seconds of each system as an estimator on one core: to fit, and to predict the test rows.

    Of a tree also: to fit if machines that it does not use were never trained (train_used_s), and to predict by asking
    only the machines on each row's path (walk_s), where `predict` asks all of them in one product (predict_s). Its
    test_s is the shorter of the two.
    """
    both = dict(C=C, gamma=gamma, n_jobs=1)
    systems = {
        "svm_oao": MaxWinsSVC(**both),
        "svm_oaa": OneVsRestSVC(**both),
        "svm_cbts": BinaryTreeSVC(pair="centre", **both),
        "ppsvm_oao": PosteriorSVC(n_neighbors=K, **both),
        "ppsvm_oaa": PosteriorSVC(strategy="ovr", n_neighbors=K, **both),
        "btppsvm": BinaryTreeSVC(pair="fisher", posterior=True, n_neighbors=K, **both),
    }
    rows = []
    for name, est in systems.items():
        train_s = processor_seconds(lambda est=est: est.fit(here.X, here.y), repeats)
        test_s = processor_seconds(lambda est=est: est.predict(here.X_test), 2 * repeats)
        row = {"system": name, "train_s": train_s, "test_s": test_s}
        if name in TREES:
            codes = pair_code(len(here.classes)), est.machines_.code
            whole, used = (processor_seconds(lambda est=est, c=c: _trained(here, est, c), repeats) for c in codes)
            walk_s = processor_seconds(lambda est=est: walk(est.graph_, est.machines_, here.X_test), 2 * repeats)
            row |= {"train_used_s": train_s - whole + used, "predict_s": test_s, "walk_s": walk_s}
            row["test_s"] = min(test_s, walk_s)
        rows.append(row)
    return pd.DataFrame(rows)


def processor_seconds(function: Callable[[], object], repeats: int) -> float:
    """The least processor time of this process that a call of `function` took: a busy machine does not lengthen it."""
    spent = []
    for _ in range(repeats):
        start = process_time()
        function()
        spent.append(process_time() - start)
    return min(spent)


def _trained(here: Split, est: BinaryTreeSVC, code: np.ndarray) -> Bank:
    soft = neighbourhood(here).soft_labels(code) if est.posterior else None
    return train(here.X, here.y, code, Kernel("rbf", est.gamma), est.C, soft=soft, n_jobs=est.n_jobs)


def walk(graph: DecisionGraph, bank: Bank, X: np.ndarray) -> np.ndarray:
    """Class indices found by asking only the machines on each row's path, layer by layer."""
    node = np.zeros(len(X), dtype=int)
    while (waiting := np.flatnonzero(graph.machine[node] >= 0)).size:
        asked = graph.machine[node[waiting]]
        order = np.argsort(asked, kind="stable")
        for rows in np.split(waiting[order], np.flatnonzero(np.diff(asked[order])) + 1):
            t = graph.machine[node[rows[0]]]
            span = slice(bank.coef.indptr[t], bank.coef.indptr[t + 1])
            K_rows = bank.kernel(X[rows], bank.vectors[bank.coef.indices[span]])
            right = K_rows @ bank.coef.data[span] + bank.bias[t] >= 0
            node[rows] = np.where(right, graph.right[node[rows]], graph.left[node[rows]])
    return graph.label[node]


def savings(table5: pd.DataFrame) -> pd.DataFrame:
    """Test time that BTPPSVM saves over each other system, in per cent of it, from a Table 5."""
    seconds = table5.set_index("system")["test_s"]
    saved = 100 * (1 - seconds["btppsvm"] / seconds.drop("btppsvm"))
    return saved.rename("saved_pct").rename_axis("over").reset_index()


def stored(table3: pd.DataFrame) -> pd.DataFrame:
    """BTPPSVM's support vectors in per cent of each other system's, from a Table 3's averages."""
    mean = table3[table3["dataset"] != "average"][list(SYSTEMS)].mean()
    share = 100 * mean["btppsvm"] / mean.drop("btppsvm")
    return share.rename("stored_pct").rename_axis("of").reset_index()
