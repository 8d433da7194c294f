"""Binary trees of one-against-one machines: BTS and c-BTS (Fei and Liu 2006), BTPPSVM (Wang, Zheng and Zhou 2011).

A node's machine tells two of its classes apart and routes the samples of the others; a class with samples on both sides
goes to both children. Only the machines that the tree uses are kept.
"""

from dataclasses import replace
from numbers import Real
from typing import Annotated, Any, Literal

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph
from ..kernels import squared
from ..machines import pair_index
from .base import BankClassifier, Sample
from .declared import Count, Seed
from .posterior import SoftClassifier


def geometry(sample: Sample, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows sorted by class: inner products between class means, each class's total variance tr S and share of them.

    In input space or, for a precomputed kernel, in feature space.
    """
    starts, mass = np.flatnonzero(np.diff(sample.codes[rows], prepend=-1)), sample.mass[rows]
    n = np.add.reduceat(mass, starts)
    if sample.kernel.name == "precomputed":
        K = sample.X[np.ix_(rows, rows)]
        sums = np.add.reduceat(np.add.reduceat(K * np.outer(mass, mass), starts, axis=0), starts, axis=1)
        norms, products = np.diag(K), sums / np.outer(n, n)
    else:
        X = sample.X[rows]
        means = np.add.reduceat(X * mass[:, None], starts, axis=0) / n[:, None]
        norms, products = squared(X), means @ means.T
    spread = np.add.reduceat(norms * mass, starts) / n - np.diag(products)
    return products, np.maximum(spread, 0.0), n / n.sum()


def squared_distances(products: np.ndarray) -> np.ndarray:
    """|mu_i - mu_j|^2 from inner products of means."""
    norm = np.diag(products)
    return np.maximum(norm[:, None] + norm - 2 * products, 0.0)


class Tree:
    """What systems have in common whose graph is settled at fit, over just the machines that it uses."""

    _sparse, _saved = False, ("_nodes_", "_possible_")

    def _keep(self, graph: DecisionGraph) -> None:
        """Keep the machines that the graph uses, renumbered."""
        used = graph.machines_used
        number = np.full(len(self.machines_.code) + 1, -1)
        number[used] = np.arange(len(used))
        self.machines_ = self.machines_.select(used)
        self._nodes_ = np.array([number[graph.machine], graph.left, graph.right, graph.label])
        self._possible_ = graph.possible.copy()

    def _make_graph(self) -> DecisionGraph:
        return DecisionGraph.from_arrays(*self._nodes_, self._possible_, n_machines=len(self.machines_.code))


class BinaryTreeSVC(Tree, SoftClassifier):
    """A binary tree of pair machines; BTS: pair="random", c-BTS: "centre", BTPPSVM: "fisher" with posterior=True.

    Parameters
    ----------
    pair : {"centre", "fisher", "closest", "random"}, default="centre"
        A node's pair: the two class means nearest the mean of the node's data, the pair with the largest or the
        smallest Fisher ratio, or a random one.
    posterior : bool, default=False
        Train the machines on soft labels, as `PosteriorSVC` does.
    band : float, default=0.0
        Samples with |f| < band go both ways: a larger band is more accurate and makes a larger tree.
    follow : float, default=0.0
        A class whose share on its smaller side is at most this goes with its majority.
    routing : {"samples", "classes"}, default="samples"
        A child has the samples that were routed to it, or a class goes whole, one way or both.
    retrain : bool, default=False
        With routing="classes", the pair's machine only parts the classes; then a machine is trained anew between those
        that go right and those that go left, without those that go both ways, and takes its place.
    max_nodes : int, default=200_000
        Limit of the tree's size.
    random_state : int, RandomState or None, default=None
        Seed of pair="random"; None draws anew at every fit.

    Examples
    --------
    >>> from dagsvm_lab import BinaryTreeSVC
    >>> tree = BinaryTreeSVC(kernel="linear").fit([[0], [1], [4], [5]], ["a", "b", "c", "d"])
    >>> labels, cost = tree.predict_with_cost([[0.4], [4.9]])
    >>> labels.tolist(), cost.binary_decisions.tolist()
    (['a', 'd'], [2, 2])
    """

    pair: Literal["centre", "fisher", "closest", "random"] = "centre"
    posterior: bool = False
    band: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0
    follow: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.0
    routing: Literal["samples", "classes"] = "samples"
    retrain: bool = False
    max_nodes: Count = 200_000
    random_state: Seed = None

    def _settle(self, sample: Sample) -> None:
        if self.retrain and self.routing != "classes":
            raise ValueError("retrain=True needs routing='classes'")
        if self.retrain and sample.bank is not None and sample.bank.kernels:
            raise ValueError(f"{type(self).__name__} cannot be fitted over this bank: retrain=True needs one kernel")

    def _study(self, sample: Sample) -> None:
        graph = self._grown(sample, self._trained(sample, by_sign=self.band == 0))
        self._keep(self._retrained(sample, graph) if self.retrain else graph)

    def _retrained(self, sample: Sample, graph: DecisionGraph) -> DecisionGraph:
        """Train machines anew for a graph of whole classes; the graph over them.

        A node's machine gets +1 for the classes that go only right there and -1 for those that go only left; its own
        pair is among them, so neither side is empty. Nodes that ask for the same machine share it.
        """
        inner = np.flatnonzero(graph.machine >= 0)
        code = np.subtract(*(graph.possible[side[inner]].astype(np.int8) for side in (graph.right, graph.left)))
        code, number = np.unique(code, axis=0, return_inverse=True)
        machine = np.full(graph.n_nodes, -1)
        machine[inner] = number.ravel()
        if np.ndim(sample.C):  # a bank's, the same for every machine
            sample = replace(sample, C=np.unique(sample.C).item())
        self.machines_ = self._train(sample, code, **self._special(sample, code))
        nodes = machine, graph.left, graph.right, graph.label, graph.possible
        return DecisionGraph.from_arrays(*nodes, n_machines=len(code))

    def _grown(self, sample: Sample, f: np.ndarray) -> DecisionGraph:
        """The tree over all pairs, from their outputs f on the sample's rows."""
        codes, mass, n = sample.codes, sample.mass, sample.n_classes
        rng = check_random_state(self.random_state)
        groups: dict[Any, tuple[np.ndarray, np.ndarray]] = {}  # rows, sorted by class, and their classes

        def group(rows: np.ndarray) -> Any:
            classes = np.flatnonzero(np.bincount(codes[rows]))
            key = frozenset(classes.tolist()) if self.routing == "classes" else len(groups)
            groups.setdefault(key, (rows, classes))
            return key

        def rule(key: Any) -> tuple:
            rows, classes = groups[key]
            if len(classes) == 1:
                return "leaf", classes[0]
            i, j = self._choose(sample, rows, classes, rng)
            t = pair_index(i, j, n)
            sides = self._route(f[rows, t], codes[rows], mass[rows], i, j)
            return "node", t, *(group(rows[side]) for side in sides)

        limits = dict(n_classes=n, n_machines=f.shape[1], max_nodes=self.max_nodes)
        return DecisionGraph(group(sample.by_class), rule, lambda key: groups[key][1], **limits).grow()

    def _choose(self, sample: Sample, rows: np.ndarray, classes: np.ndarray, rng: np.random.RandomState) -> tuple:
        """The two classes that the node's machine tells apart, the smaller index first."""
        k = len(classes)
        if self.pair == "random":
            chosen = rng.choice(k, 2, replace=False)
        else:
            products, spread, share = geometry(sample, rows)
            if self.pair == "centre":
                chosen = np.argsort(np.diag(products) - 2 * products @ share, kind="stable")[:2]
            else:
                i, j = np.triu_indices(k, 1)
                ratio = (squared_distances(products) / np.maximum(spread[:, None] + spread, 1e-300))[i, j]  # Eq. 4
                best = ratio.argmax() if self.pair == "fisher" else ratio.argmin()
                chosen = [i[best], j[best]]
        return tuple(int(c) for c in np.sort(classes[chosen]))

    def _route(self, f: np.ndarray, codes: np.ndarray, mass: np.ndarray, i: int, j: int) -> tuple:
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


class DecisionTreeSVC(Tree, BankClassifier):
    """The four decision-tree SVMs of Takahashi and Abe (2002): N - 1 machines, each between two groups of classes.

    Parameters
    ----------
    separate : {"one", "many"}, default="one"
        "one" splits off the class farthest from its nearest neighbour (types 1 and 3); "many" splits the classes into
        the two groups left when nearest groups are merged (types 2 and 4).
    distance : {"euclidean", "mahalanobis"}, default="euclidean"
        Distance between class means (types 1 and 2), or the larger Mahalanobis distance of a pair's two (3 and 4).

    Examples
    --------
    >>> from dagsvm_lab import DecisionTreeSVC
    >>> tree = DecisionTreeSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> tree.machines_.code.tolist()
    [[-1, -1, 1], [1, -1, 0]]
    """

    separate: Literal["one", "many"] = "one"
    distance: Literal["euclidean", "mahalanobis"] = "euclidean"

    def _settle(self, sample: Sample) -> None:
        classes, distance = np.unique(sample.codes[sample.by_class]), np.zeros((sample.n_classes, sample.n_classes))
        distance[np.ix_(classes, classes)] = class_distances(sample, self.distance)
        waiting, self._splits_ = [frozenset(classes.tolist())], {}  # groups from the root down, with their two parts
        while waiting:
            if len(group := waiting.pop()) > 1:
                self._splits_[group] = self._parts(sorted(group), distance)
                waiting += self._splits_[group]

    def _code(self, sample: Sample) -> np.ndarray:
        code = np.zeros((len(self._splits_), sample.n_classes), dtype=np.int8)
        for t, (a, b) in enumerate(self._splits_.values()):
            code[t, list(a)], code[t, list(b)] = 1, -1
        return code

    def _study(self, sample: Sample) -> None:
        number = {state: t for t, state in enumerate(self._splits_)}

        def rule(state: frozenset) -> tuple:
            if len(state) == 1:
                return "leaf", next(iter(state))
            a, b = self._splits_[state]
            return "node", number[state], b, a

        sizes = dict(n_classes=sample.n_classes, n_machines=len(number))
        self._keep(DecisionGraph(next(iter(number)), rule, lambda state: state, **sizes).grow())

    def _parts(self, group: list[int], distance: np.ndarray) -> tuple[frozenset, frozenset]:
        d = distance[np.ix_(group, group)] + np.diag(np.full(len(group), np.inf))
        if self.separate == "one":
            alone = group[int(np.argmax(d.min(axis=1)))]
            return frozenset([alone]), frozenset(group) - {alone}
        cluster = cut_tree(linkage(squareform(d, checks=False), "single"), 2).ravel()
        first = frozenset(np.array(group)[cluster == cluster[0]].tolist())
        return first, frozenset(group) - first


def class_distances(sample: Sample, kind: str) -> np.ndarray:
    """Distances between class means; for "mahalanobis" the larger of those in either class's covariance."""
    X, rows = sample.X, sample.by_class
    if kind == "euclidean":
        return np.sqrt(squared_distances(geometry(sample, rows)[0]))
    if sample.kernel.name == "precomputed":
        raise ValueError("distance='mahalanobis' needs inputs, not a precomputed kernel")
    groups = np.split(rows, np.flatnonzero(np.diff(sample.codes[rows])) + 1)
    means = np.array([np.average(X[g], axis=0, weights=sample.mass[g]) for g in groups])
    spread = [np.atleast_2d(np.cov(X[g].T, bias=True, aweights=sample.mass[g])) for g in groups]
    ridge = 1e-6 * max(np.mean([np.trace(S) for S in spread]) / X.shape[1], 1e-12) * np.eye(X.shape[1])
    inverse = np.array([np.linalg.inv(S + ridge) for S in spread])
    difference = means[:, None] - means[None]
    own = np.einsum("abi,aij,abj->ab", difference, inverse, difference)
    return np.sqrt(np.maximum(own, own.T))
