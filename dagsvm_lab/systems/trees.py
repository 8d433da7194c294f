"""Binary trees of one-against-one machines: BTS and c-BTS (Fei and Liu 2006), BTPPSVM (Wang, Zheng and Zhou 2011).

A node's machine tells two of its classes apart and routes the samples of the others; a class with samples on both sides
goes to both children. Only the machines that the tree uses are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..graphs import DecisionGraph
from ..machines import Bank, pair_code, pair_index
from .base import BankClassifier, Sample, outputs
from .posterior import neighbourhood

PAIRS = ("centre", "fisher", "closest", "random")


@dataclass(frozen=True, eq=False)
class Group:
    """A node's training rows, sorted by class, and its classes."""

    rows: np.ndarray
    classes: np.ndarray
    counts: np.ndarray = field(repr=False)


class Geometry:
    """Class means and spreads of any group of rows, in input space or, for a precomputed kernel, in feature space."""

    def __init__(self, sample: Sample) -> None:
        self.X, self.mass = sample.X, sample.mass
        self.precomputed = sample.kernel.name == "precomputed"
        self.norms = np.diag(self.X).copy() if self.precomputed else np.einsum("ij,ij->i", self.X, self.X)

    def __call__(self, group: Group) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inner products between the group's class means, each class's total variance tr S and share of the rows."""
        rows, starts = group.rows, np.concatenate([[0], np.cumsum(group.counts)[:-1]])
        mass = self.mass[rows]
        n = np.add.reduceat(mass, starts)
        if self.precomputed:
            weighted = self.X[np.ix_(rows, rows)] * np.outer(mass, mass)
            products = np.add.reduceat(np.add.reduceat(weighted, starts, axis=0), starts, axis=1) / np.outer(n, n)
        else:
            means = np.add.reduceat(self.X[rows] * mass[:, None], starts, axis=0) / n[:, None]
            products = means @ means.T
        spread = np.add.reduceat(self.norms[rows] * mass, starts) / n - np.diag(products)
        return products, np.maximum(spread, 0.0), n / n.sum()


def squared_distances(products: np.ndarray) -> np.ndarray:
    """|mu_i - mu_j|^2 from inner products of means."""
    norm = np.diag(products)
    return np.maximum(norm[:, None] + norm - 2 * products, 0.0)


def fisher_ratios(products: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """r_ij = |mu_i - mu_j|^2 / (tr S_i + tr S_j), Eq. 4 for vectors."""
    return squared_distances(products) / np.maximum(spread[:, None] + spread, 1e-300)


class TreeClassifier(BankClassifier):
    """A system whose graph is settled at fit, over just the machines that it uses."""

    def _keep(self, bank: Bank, graph: DecisionGraph) -> None:
        """Nothing; keeps the machines that the graph uses, renumbered."""
        used = graph.machines_used
        number = np.full(len(bank.code) + 1, -1)
        number[used] = np.arange(len(used))
        self.machines_ = bank.select(used)
        self._nodes = (number[graph.machine], graph.left, graph.right, graph.label, graph.possible)
        self.graph_ = self._make_graph()

    def _make_graph(self) -> DecisionGraph:
        return DecisionGraph.from_arrays(*self._nodes, n_machines=len(self.machines_.code))

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | {f"node_{k}": part for k, part in enumerate(self._nodes)}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._nodes = tuple(arrays.pop(f"node_{k}") for k in range(5))
        super()._restore(arrays)


@dataclass(kw_only=True, eq=False, repr=False)
class BinaryTreeSVC(TreeClassifier):
    """A binary tree of pair machines; BTS: pair="random", c-BTS: "centre", BTPPSVM: "fisher" with posterior=True.

    Parameters
    ----------
    pair : a node's pair: "centre" (the two class means nearest the mean of the node's data), "fisher" (largest Fisher
        ratio), "closest" (smallest), "random".
    posterior : machines with soft labels; n_neighbors, among, reading : as in `PosteriorSVC`.
    band : samples with |f| < band go both ways (larger: more accurate, larger tree).
    follow : a class whose share on its smaller side is at most this goes with its majority.
    routing : "samples" (a child has the samples routed to it) or "classes" (a class goes whole, one way or both).
    retrain : with routing="classes": the pair machine only parts the classes; then a machine is trained anew between
        the classes that go right and those that go left, without those that go both ways, and takes its place.
    max_nodes : limit of the tree's size.
    random_state : seeds pair="random".

    `decision_function`: path margins. Else as in `BankClassifier`.
    """

    pair: str = "centre"
    posterior: bool = False
    n_neighbors: int = 11
    among: str = "pair"
    band: float = 0.0
    follow: float = 0.0
    routing: str = "samples"
    reading: str = "soft"
    retrain: bool = False
    max_nodes: int = 200_000
    random_state: Any = None

    def _fit(self, sample: Sample) -> None:
        if self.pair not in PAIRS:
            raise ValueError(f"pair must be one of {', '.join(PAIRS)}, not {self.pair!r}")
        if self.routing not in ("samples", "classes"):
            raise ValueError(f"routing must be 'samples' or 'classes', not {self.routing!r}")
        if self.retrain and self.routing != "classes":
            raise ValueError("retrain=True needs routing='classes'")
        bank = self._machines(sample, pair_code(len(self.classes_)))
        graph = self.grow(sample, np.concatenate(list(outputs(bank, sample.X))))
        self._keep(*(self.retrained(sample, graph) if self.retrain else (bank, graph)))

    def _machines(self, sample: Sample, code: np.ndarray, anew: bool = False) -> Bank:
        """Trained machines of `code`, with soft labels if the tree is a posterior one."""
        soft = None
        if self.posterior and (anew or not hasattr(self, "_given")):
            near = neighbourhood(sample, code.shape[1], self.n_neighbors)
            soft = near.soft_labels(code, self.among, self.reading)
        return self._train(sample, code, anew=anew, soft=soft)

    def retrained(self, sample: Sample, graph: DecisionGraph) -> tuple[Bank, DecisionGraph]:
        """A bank trained anew for a graph of whole classes, and the graph over it.

        A node's machine gets +1 for the classes that go only right there and -1 for those that go only left; its own
        pair is among them, so neither side is empty. Nodes that ask for the same machine share it.
        """
        inner = np.flatnonzero(graph.machine >= 0)
        code = np.subtract(*(graph.possible[side[inner]].astype(np.int8) for side in (graph.right, graph.left)))
        code, number = np.unique(code, axis=0, return_inverse=True)
        machine = np.full(graph.n_nodes, -1)
        machine[inner] = number.ravel()
        nodes = machine, graph.left, graph.right, graph.label, graph.possible
        return self._machines(sample, code, anew=True), DecisionGraph.from_arrays(*nodes, n_machines=len(code))

    def grow(self, sample: Sample, f: np.ndarray) -> DecisionGraph:
        """The tree over all pairs, from their outputs f on the sample's rows: many trees can share one bank."""
        codes, mass, geometry = sample.codes, sample.mass, Geometry(sample)
        n = int(codes.max()) + 1
        rng = check_random_state(self.random_state)
        groups: dict[Any, Group] = {}

        def group(rows: np.ndarray) -> Any:
            classes, counts = np.unique(codes[rows], return_counts=True)
            made = Group(rows, classes, counts)
            key = frozenset(classes.tolist()) if self.routing == "classes" else id(made)
            groups.setdefault(key, made)
            return key

        def rule(key: Any) -> tuple:
            here = groups[key]
            if len(here.classes) == 1:
                return "leaf", here.classes[0]
            i, j = self._choose(here, geometry, rng)
            t = pair_index(i, j, n)
            sides = self._route(f[here.rows, t], codes[here.rows], mass[here.rows], i, j)
            return "node", t, *(group(here.rows[side]) for side in sides)

        root = group(counted(codes, mass))
        return DecisionGraph(root, rule, lambda key: groups[key].classes, n_classes=n, n_machines=f.shape[1],
                             max_nodes=self.max_nodes).grow()  # fmt: skip

    def _choose(self, group: Group, geometry: Geometry, rng: np.random.RandomState) -> tuple[int, int]:
        """The two classes that the node's machine tells apart, the smaller index first."""
        k = len(group.classes)
        if self.pair == "random":
            chosen = rng.choice(k, 2, replace=False)
        else:
            products, spread, share = geometry(group)
            if self.pair == "centre":
                chosen = np.argsort(np.diag(products) - 2 * products @ share, kind="stable")[:2]
            else:
                ratio = fisher_ratios(products, spread)
                upper = np.triu_indices(k, 1)
                best = np.argmax(ratio[upper]) if self.pair == "fisher" else np.argmin(ratio[upper])
                chosen = np.array([upper[0][best], upper[1][best]])
        return tuple(int(c) for c in np.sort(group.classes[chosen]))

    def _route(
        self, f: np.ndarray, codes: np.ndarray, mass: np.ndarray, i: int, j: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which samples go left and which go right; i's own all go right, j's all left."""
        right, left = f >= -self.band, f < self.band
        right[codes == i], left[codes == i] = True, False
        right[codes == j], left[codes == j] = False, True
        if self.follow > 0 or self.routing == "classes":
            n = np.bincount(codes, mass)
            side = np.bincount(codes, mass * (f >= 0)) / np.where(n > 0, n, 1)
            for c in set(np.flatnonzero(n).tolist()) - {i, j}:
                mine = codes == c
                if min(side[c], 1 - side[c]) <= self.follow:
                    right[mine], left[mine] = side[c] >= 0.5, side[c] < 0.5
                elif self.routing == "classes":
                    right[mine] = left[mine] = True
        return left, right


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionTreeSVC(TreeClassifier):
    """The four decision-tree SVMs of Takahashi and Abe (2002): N - 1 machines, each between two groups of classes.

    Parameters
    ----------
    separate : "one" splits off the class farthest from its nearest neighbour (types 1 and 3); "many" splits the classes
        into the two groups left when nearest groups are merged (types 2 and 4).
    distance : "euclidean" between class means (types 1 and 2) or "mahalanobis", the larger of a pair's two (3 and 4).

    `decision_function`: path margins. Else as in `BankClassifier`.
    """

    separate: str = "one"
    distance: str = "euclidean"

    def _fit(self, sample: Sample) -> None:
        if self.separate not in ("one", "many") or self.distance not in ("euclidean", "mahalanobis"):
            raise ValueError("separate must be 'one' or 'many', distance 'euclidean' or 'mahalanobis'")
        splits = self._splits(class_distances(sample, self.distance))
        n = len(self.classes_)
        code = np.zeros((len(splits), n), dtype=np.int8)
        for t, (a, b) in enumerate(splits.values()):
            code[t, list(a)], code[t, list(b)] = 1, -1
        number = {state: t for t, state in enumerate(splits)}

        def rule(state: frozenset) -> tuple:
            if len(state) == 1:
                return "leaf", next(iter(state))
            a, b = splits[state]
            return "node", number[state], b, a

        graph = DecisionGraph(frozenset(range(n)), rule, lambda s: s, n_classes=n, n_machines=len(code)).grow()
        self._keep(self._train(sample, code), graph)

    def _splits(self, distance: np.ndarray) -> dict[frozenset, tuple[frozenset, frozenset]]:
        """Every group of classes met from the root down, with its two parts."""
        splits: dict[frozenset, tuple[frozenset, frozenset]] = {}
        waiting = [frozenset(range(len(distance)))]
        while waiting:
            group = waiting.pop()
            if len(group) > 1:
                splits[group] = self._parts(sorted(group), distance)
                waiting += splits[group]
        return splits

    def _parts(self, group: list[int], distance: np.ndarray) -> tuple[frozenset, frozenset]:
        d = distance[np.ix_(group, group)] + np.diag(np.full(len(group), np.inf))
        if self.separate == "one":
            alone = group[int(np.argmax(d.min(axis=1)))]
            return frozenset([alone]), frozenset(group) - {alone}
        parts = [[k] for k in range(len(group))]
        while len(parts) > 2:
            gap = {(a, b): d[np.ix_(parts[a], parts[b])].min() for a in range(len(parts)) for b in range(a)}
            a, b = min(gap, key=gap.get)
            parts[b] += parts.pop(a)
        first, second = (frozenset(group[k] for k in part) for part in parts)
        return first, second


def class_distances(sample: Sample, kind: str) -> np.ndarray:
    """Distances between class means; for "mahalanobis" the larger of those in either class's covariance."""
    X, rows = sample.X, counted(sample.codes, sample.mass)
    classes, counts = np.unique(sample.codes[rows], return_counts=True)
    if kind == "euclidean":
        return np.sqrt(squared_distances(Geometry(sample)(Group(rows, classes, counts))[0]))
    if sample.kernel.name == "precomputed":
        raise ValueError("distance='mahalanobis' needs inputs, not a precomputed kernel")
    groups = [rows[sample.codes[rows] == c] for c in classes]
    means = np.array([np.average(X[g], axis=0, weights=sample.mass[g]) for g in groups])
    spread = [np.atleast_2d(np.cov(X[g].T, bias=True, aweights=sample.mass[g])) for g in groups]
    ridge = 1e-6 * max(np.mean([np.trace(S) for S in spread]) / X.shape[1], 1e-12) * np.eye(X.shape[1])
    inverse = np.array([np.linalg.inv(S + ridge) for S in spread])
    difference = means[:, None] - means[None]
    own = np.einsum("abi,aij,abj->ab", difference, inverse, difference)
    return np.sqrt(np.maximum(own, own.T))


def counted(codes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Rows that count, sorted by class."""
    rows = np.argsort(codes, kind="stable")
    return rows[mass[rows] > 0]
