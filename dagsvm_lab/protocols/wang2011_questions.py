"""What Wang, Zheng and Zhou 2011 claim or leave open, tried: neighbours, routing, bands, layers, paths, noise.

Every function takes splits and trained banks (`wang2011.Split`, `wang2011.Pairs`) and returns a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pandas as pd

from ..graphs import Ballot, DecisionGraph, GraphTooLarge, votes
from ..kernels import Kernel
from ..machines import pair_code, pair_index, train
from ..report.verdicts import published
from ..systems.base import Sample
from ..systems.posterior import Neighbourhood
from ..systems.trees import PAIRS, Geometry, Group, fisher_ratios
from .wang2011 import SYSTEMS, TREES, K, Pairs, Split, bank_of, grow, measure, neighbourhood

MAX_NODES = 30_000
BANDS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
LABELS: dict[str, Callable] = {  # what a machine is told, from its soft label y and the class's sign s
    "soft (Eq. 1)": lambda y, s: y,
    "sign of y": lambda y, s: np.sign(y),
    "doubtful dropped": lambda y, s: s * np.maximum(s * y, 0.0),
    "own sign kept": lambda y, s: s * (1 + s * y) / 2,
}


def neighbours(here: Split, C: float, gamma: float, ks: Sequence[int], n_jobs: int = 2) -> pd.DataFrame:
    """Figure 1: BTPPSVM for each k, beside the same machines voting and the bare k-NN classifier."""
    from sklearn.neighbors import KNeighborsClassifier

    near, rows = neighbourhood(here, k=max(ks)), []
    for k in ks:
        near.k = k
        pairs = bank_of(here, C, gamma, near=near, n_jobs=n_jobs)
        tree = measure(here, pairs, grow(here, pairs, pair="fisher"))
        oao = measure(here, pairs, Ballot(pairs.bank.code, votes))
        knn = KNeighborsClassifier(k, n_jobs=n_jobs).fit(here.X, here.y).predict(here.X_test)
        rows.append({"dataset": here.name, "k": k, "error_pct": 100 - tree["accuracy_pct"],
                     "support_vectors": tree["support_vectors"], "machines": tree["machines"],
                     "oao_error_pct": 100 - oao["accuracy_pct"], "oao_support_vectors": oao["support_vectors"],
                     "knn_error_pct": 100 - here.accuracy(knn)})  # fmt: skip
    return pd.DataFrame(rows).round(3)


def readings(here: Split, C: float, gamma: float, n_jobs: int = 2) -> pd.DataFrame:
    """One-against-one and BTPPSVM when the soft labels are read in other ways; k = 11."""
    near, rows = neighbourhood(here), []
    for among in ("pair", "all"):
        for name, change in LABELS.items():
            pairs = bank_of(here, C, gamma, near=near, among=among, change=change, n_jobs=n_jobs)
            oao = measure(here, pairs, Ballot(pairs.bank.code, votes))
            tree = measure(here, pairs, grow(here, pairs, pair="fisher"))
            rows.append({"dataset": here.name, "neighbours among": among, "labels": name,
                         "oao_accuracy_pct": oao["accuracy_pct"], "oao_support_vectors_pct": oao["support_vectors_pct"],
                         "tree_accuracy_pct": tree["accuracy_pct"], "tree_machines": tree["machines"]})  # fmt: skip
    return pd.DataFrame(rows).round(2)


def at_bound(pairs: Pairs, C: float) -> float:
    """Per cent of the ordinary machines' coefficients that lie at the bound C."""
    return 100 * float(np.mean(np.abs(pairs.bank.coef.data) >= C * (1 - 1e-9)))


def bands(here: Split, banks: dict[str, Pairs], widths: Sequence[float] = BANDS) -> pd.DataFrame:
    """Both trees as the band grows whose samples go both ways."""
    rows = []
    for system, (labels, pair) in TREES.items():
        for band, found in _widening(here, banks[labels], widths, pair):
            rows.append({"dataset": here.name, "system": system, "band": band, **found})
    return pd.DataFrame(rows).round(3)


def _widening(here: Split, pairs: Pairs, widths: Sequence[float], pair: str) -> Iterator[tuple[float, dict]]:
    """Each band with its tree's measures, up to the first tree beyond MAX_NODES: wider bands make larger ones."""
    for band in widths:
        try:
            graph = grow(here, pairs, pair=pair, band=band, max_nodes=MAX_NODES)
        except GraphTooLarge:
            return
        yield band, {"nodes": graph.n_nodes, **measure(here, pairs, graph)}


def frontier(
    here: Split, banks: dict[str, Pairs], near: Neighbourhood, C: float, gamma: float, n_jobs: int = 2
) -> pd.DataFrame:
    """Machines and accuracy of every reading of the tree: which pair, which labels, who goes both ways, who decides."""
    rules = [{"follow": share} for share in (0.02, 0.05, 0.1, 0.2, 0.5)]
    rules += [{"routing": "classes", "follow": share} for share in (0.05, 0.1, 0.2)]
    rows = []
    for labels, pairs in banks.items():
        for pair in PAIRS:
            about = {"dataset": here.name, "labels": labels, "pair": pair}
            for band, found in _widening(here, pairs, BANDS, pair):
                rows.append({**about, "reading": f"band {band}", **found})
            for rule in rules:
                text = ", ".join(f"{name} {value}" for name, value in rule.items())
                graph = grow(here, pairs, pair=pair, max_nodes=MAX_NODES, **rule)
                rows.append({**about, "reading": text, "nodes": graph.n_nodes, **measure(here, pairs, graph)})
            tree = grow(here, pairs, pair=pair)
            for band in (0.1, 0.25):
                rows.append({**about, "reading": f"both ways at test {band}", **both_ways(here, pairs, tree, band)})
            if pair in ("centre", "fisher"):
                split = grow(here, pairs, pair=pair, routing="classes", follow=0.5)
                found = retrained(here, split, C, gamma, near if labels == "posterior" else None, n_jobs)
                rows.append({**about, "reading": "retrained on groups", **found})
    return pd.DataFrame(rows).round(3)


def both_ways(here: Split, pairs: Pairs, graph: DecisionGraph, band: float) -> dict:
    """A tree followed down both branches where |f| < band at test time; the classes reached vote among themselves."""
    rows, node = np.arange(len(here.y_test)), np.zeros(len(here.y_test), dtype=int)
    reached = np.zeros((len(rows), len(here.classes)), dtype=bool)
    met = np.zeros((len(rows), pairs.test.shape[1]), dtype=bool)
    while rows.size:
        machine = graph.machine[node]
        ends = machine < 0
        reached[rows[ends], graph.label[node[ends]]] = True
        rows, node, machine = rows[~ends], node[~ends], machine[~ends]
        met[rows, machine] = True
        f = pairs.test[rows, machine]
        right, left = f > -band, f < band
        right |= ~left & (f >= 0)
        there = np.concatenate([np.column_stack([rows, graph.right[node]])[right],
                                np.column_stack([rows, graph.left[node]])[left]])  # fmt: skip
        rows, node = there.T
    code = pairs.bank.code.astype(float)
    asked = reached.astype(float) @ np.abs(code).T == 2
    f = np.where(asked, pairs.test, 0.0)
    margin = f @ code
    score = np.sign(f) @ code + margin / (3 * (np.abs(margin) + 1))
    labels = np.where(reached, score, -np.inf).argmax(axis=1)
    met |= asked
    return {"nodes": graph.n_nodes, "accuracy_pct": here.accuracy(labels), "machines": int(met.any(axis=0).sum()),
            "mean_path": met.sum(axis=1).mean()}  # fmt: skip


def retrained(
    here: Split, tree: DecisionGraph, C: float, gamma: float, near: Neighbourhood | None = None, n_jobs: int = 2
) -> dict:
    """A tree in which no class goes both ways, each node's machine trained anew between the classes left and right."""
    inner = np.flatnonzero(tree.machine >= 0)
    sides = (tree.possible[part[inner]].astype(np.int8) for part in (tree.right, tree.left))
    code = np.subtract(*sides)
    number = np.full(tree.n_nodes, -1)
    number[inner] = np.arange(len(inner))
    graph = DecisionGraph.from_arrays(number, tree.left, tree.right, tree.label, tree.possible, n_machines=len(inner))
    soft = near.soft_labels(code) if near else None
    bank = train(here.X, here.y, code, Kernel("rbf", gamma), C, soft=soft, n_jobs=n_jobs)
    pairs = Pairs(bank, bank.decision(here.X_test))
    return {"nodes": graph.n_nodes, **measure(here, pairs, graph)}


def layers(here: Split, pairs: Pairs, graph: DecisionGraph) -> pd.DataFrame:
    """The share of test rows that each layer's machines mislead, on rows that are put right again after every mistake.

    Columns: layer, asked_pct (rows that meet a machine there), error_pct (of all rows), alone_pct (of the rows that no
    earlier layer had misled: what really happens).
    """
    y, node, rows = here.y_test, np.zeros(len(here.y_test), dtype=int), []
    astray = np.zeros(len(y), dtype=bool)
    while (graph.machine[node] >= 0).any():
        inner = graph.machine[node] >= 0
        right = pairs.test[np.arange(len(y)), graph.machine[node]] >= 0
        taken, other = (np.where(side, graph.right[node], graph.left[node]) for side in (right, ~right))
        wrong = inner & ~graph.possible[taken, y]
        alive = (~astray).sum()
        rows.append((len(rows) + 1, 100 * inner.mean(), 100 * wrong.mean(), 100 * (wrong & ~astray).sum() / alive))
        astray |= wrong
        node = np.where(inner, np.where(wrong, other, taken), node)
    return pd.DataFrame(rows, columns=["layer", "asked_pct", "error_pct", "alone_pct"])


def eq3(here: Split, banks: dict[str, Pairs]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Eq. 3's e = 1 - prod (1 - e_k) from the layers' own errors, against the trees' error; and the layers."""
    rows, parts = [], []
    for system, (labels, pair) in TREES.items():
        graph = grow(here, banks[labels], pair=pair)
        part = layers(here, banks[labels], graph)
        predicted = 100 * (1 - np.prod(1 - part["error_pct"] / 100))
        wrong = 100 - measure(here, banks[labels], graph)["accuracy_pct"]
        rows.append((here.name, system, len(part), predicted, wrong))
        parts.append(part.assign(dataset=here.name, system=system))
    columns = ["dataset", "system", "layers", "predicted_error_pct", "measured_error_pct"]
    return pd.DataFrame(rows, columns=columns).round(3), pd.concat(parts).round(4)


def paths(here: Split, banks: dict[str, Pairs], sizes: Sequence[int], repeats: int, seed: int = 0) -> pd.DataFrame:
    """Machines met by a test row when only n classes are there, over random class subsets, beside the two formulas.

    A pair's machine does not know the other classes, so the bank of all classes serves every subset.
    """
    rng, rows, N = np.random.default_rng(seed), [], len(here.classes)
    for n in sizes:
        for draw in range(1 if n == N else repeats):
            classes = np.sort(rng.choice(N, n, replace=False))
            part, i, j = here.only(classes), *np.triu_indices(n, 1)
            columns = pair_index(classes[i], classes[j], N)
            train_rows, test_rows = np.isin(here.y, classes), np.isin(here.y_test, classes)
            systems = {"dagsvm": (n - 1, n - 1, n - 1, len(i))}
            for system, (labels, pair) in TREES.items():
                bank = banks[labels]
                f, f_test = bank.rows[np.ix_(train_rows, columns)], bank.test[np.ix_(test_rows, columns)]
                graph = grow(part, Pairs(bank.bank, f_test, f), pair=pair)
                met = np.diff(graph.run(f_test)[1].indptr)
                systems[system] = (met.mean(), *np.percentile(met, [10, 90]), len(graph.machines_used))
            rows += [(n, draw, system, *found) for system, found in systems.items()]
    table = pd.DataFrame(rows, columns=["n_classes", "draw", "system", "mean_path", "p10", "p90", "machines"])
    table = table.groupby(["n_classes", "system"], as_index=False).mean().drop(columns="draw")
    return table.assign(log2_n=np.log2(table["n_classes"]), log43=expected_path(table["n_classes"])).round(4)


def expected_path(n):
    """Fei and Liu's average path, log_{4/3}((n + 3) / 4): the steps in which n' = (3/4)(n - 1) comes down to one."""
    return np.log((np.asarray(n) + 3) / 4) / np.log(4 / 3)


def noise(here: Split, C: float, gamma: float, shares: Sequence[float], seed: int = 0, n_jobs: int = 2) -> pd.DataFrame:
    """One-against-one with ordinary and posterior machines, and k-NN, when a share of the training labels is flipped.

    "... C chosen": C from `TRY_C` by a third of the noisy training rows held out, so that neither side is tied to the
    C of clean labels.
    """
    from sklearn.neighbors import KNeighborsClassifier

    rng, rows = np.random.default_rng(seed), []
    order = rng.permutation(len(here.y))
    shift = rng.integers(1, len(here.classes), len(here.y))
    for share in shares:
        y = here.y.copy()
        hit = order[: round(share * len(y))]
        y[hit] = (y[hit] + shift[hit]) % len(here.classes)
        noisy = Split(here.name, here.X, y, here.X_test, here.y_test, here.classes)
        held = rng.random(len(y)) < 1 / 3
        inner = Split(here.name, here.X[~held], y[~held], here.X[held], y[held], here.classes)
        for machine in ("ordinary", "posterior"):
            found = {c: _voted(inner, c, gamma, machine, n_jobs)["accuracy_pct"] for c in TRY_C}
            best = max(found, key=found.get)
            for name, c in ((machine, C), (f"{machine}, C chosen", best)):
                rows.append({"machine": name, "share": share, "C": c, **_voted(noisy, c, gamma, machine, n_jobs)})
        knn = here.accuracy(KNeighborsClassifier(K).fit(here.X, y).predict(here.X_test))
        rows.append({"machine": "k-nn", "share": share, "accuracy_pct": knn})
    table = pd.DataFrame(rows)
    table.insert(0, "dataset", here.name)
    table.insert(1, "noise_pct", (100 * table.pop("share")).round(1))
    return table[["dataset", "noise_pct", "machine", "C", "accuracy_pct", "support_vectors"]].round(3)


TRY_C = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)


def _voted(here: Split, C: float, gamma: float, machine: str, n_jobs: int) -> dict:
    near = neighbourhood(here) if machine == "posterior" else None
    pairs = bank_of(here, C, gamma, near=near, look=False, n_jobs=n_jobs)
    return measure(here, pairs, Ballot(pairs.bank.code, votes))


def ratios(here: Split) -> np.ndarray:
    """Fisher ratio of every pair of classes (Eq. 4), on the whole training set."""
    geometry, rows = Geometry(here.checked(1.0)), np.argsort(here.y, kind="stable")
    products, spread, _ = geometry(Group(rows, *np.unique(here.y, return_counts=True)))
    return fisher_ratios(products, spread)


def routed(here: Split, pairs: Pairs, graph: DecisionGraph) -> pd.DataFrame:
    """The root's pair, and the share of each class's training rows that its machine sends right."""
    t = graph.machine[0]
    right = pd.Series(pairs.rows[:, t] >= 0).groupby(here.y).mean()
    table = pd.DataFrame({"class": [str(c) for c in here.classes], "right_pct": 100 * right.to_numpy()})
    return table.assign(own=pairs.bank.code[t] != 0)


def fractions() -> pd.DataFrame:
    """Every printed accuracy beside the nearest share of its test set, at the printed two decimals."""
    tests = published("wang2011_table1").set_index("dataset")["test"]
    table = published("wang2011_tables2to4").query("table == 2 and dataset != 'average'")
    long = table.melt("dataset", list(SYSTEMS), "system", "printed_pct")
    n = long["dataset"].map(tests)
    hits = (long["printed_pct"] * n / 100).round().astype(int)
    nearest = (100 * hits / n).round(2)
    return long.assign(
        test=n, nearest_hits=hits, nearest_pct=nearest, is_fraction=nearest == long["printed_pct"].round(2)
    )


def plane(n: int = 200, flipped: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two overlapping curved classes in the plane: points, labels with a share flipped, and which are flipped."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    angle = rng.uniform(0, np.pi, n)
    X = np.column_stack([np.cos(angle) + y - 0.5, np.sin(angle) * (1 - 2 * y) + 0.4 * y - 0.2])
    X += rng.normal(scale=0.18, size=X.shape)
    flip = rng.random(n) < flipped
    return X, np.where(flip, 1 - y, y), flip


def told(X: np.ndarray, y: np.ndarray, **options) -> np.ndarray:
    """Soft labels of two classes' points (Eq. 2), positive for the first class; options as of `Neighbourhood`."""
    near = Neighbourhood(Sample(X, y, Kernel(), None, None), 2, **options)
    return near.soft_labels(pair_code(2))(0, np.arange(len(y)), None)
