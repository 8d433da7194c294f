"""Binary trees of two-class machines.

BTS and c-BTS (Fei and Liu 2006) and BTPPSVM (Wang, Zheng and Zhou 2011) choose at each
node a pair of its classes; the pair's machine divides the others by the way. The four
decision-tree SVMs of Takahashi and Abe (2002) divide the classes by their distances.
Only the machines that a tree uses are kept.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph
from ..kernels import squared
from ..machines import pair_index
from .base import BankClassifier
from .declared import Count, Seed
from .posterior import Labels, SoftClassifier
from .sample import Sample
from .stored import check_tree


@dataclass(frozen=True)
class ClassGeometry:
    """Means and variances of classes, in input space or, precomputed, feature space."""

    products: np.ndarray  # (classes, classes) inner products of the means
    spread: np.ndarray  # (classes,) total variance tr S
    weight: np.ndarray  # (classes,) how often the class's rows count

    @classmethod
    def of_rows(cls, sample: Sample, rows: np.ndarray) -> Self:
        """Measure the classes of `rows`, which are sorted by class."""
        starts = np.flatnonzero(np.diff(sample.codes[rows], prepend=-1))  # (classes,)
        row_weight = sample.row_weight[rows]
        weight = np.add.reduceat(row_weight, starts)
        if sample.kernel.precomputed:
            K = sample.X[np.ix_(rows, rows)] * np.outer(row_weight, row_weight)
            # (classes, classes): K summed over the rows of two classes
            sums = np.add.reduceat(np.add.reduceat(K, starts, axis=0), starts, axis=1)
            products = sums / np.outer(weight, weight)
            norms = np.diag(sample.X)[rows]
        else:
            X = sample.X[rows]
            sums = np.add.reduceat(X * row_weight[:, None], starts, axis=0)
            means = sums / weight[:, None]  # (classes, inputs)
            products = means @ means.T
            norms = squared(X)
        mean_norm = np.add.reduceat(norms * row_weight, starts) / weight
        # tr S is the mean of |x|^2 less |mu|^2, which rounding may leave below 0
        spread = np.maximum(mean_norm - np.diag(products), 0.0)
        return cls(products, spread, weight)

    def among(self, classes: np.ndarray) -> Self:
        """The geometry of these classes alone."""
        block = np.ix_(classes, classes)
        return replace(
            self,
            products=self.products[block],
            spread=self.spread[classes],
            weight=self.weight[classes],
        )

    def squared_distances(self) -> np.ndarray:
        """|mu_i - mu_j|^2 of every two means."""
        norm = np.diag(self.products)
        return np.maximum(norm[:, None] + norm - 2 * self.products, 0.0)

    def fisher_ratios(self) -> np.ndarray:
        """r_ij of Wang et al. 2011, Eq. 4, for vectors."""
        spread = np.maximum(self.spread[:, None] + self.spread, 1e-300)
        return self.squared_distances() / spread

    def nearest_to_centre(self) -> np.ndarray:
        """The two classes whose means are nearest to the mean of all rows."""
        share = self.weight / self.weight.sum()
        # |mu_i - centre|^2 without the term |centre|^2, which all have
        distance = np.diag(self.products) - 2 * self.products @ share
        return np.argsort(distance, kind="stable")[:2]


class Tree:
    """What systems have in common whose graph is made at fit."""

    _sparse = False
    _saved = ("_nodes_", "_possible_")

    def _keep(self, graph: DecisionGraph) -> None:
        """Keep the machines that the graph uses, renumbered."""
        used = graph.machines_used
        # a leaf's machine is -1, which reads the last entry: it stays -1
        number = np.full(len(self.machines_.code) + 1, -1)
        number[used] = np.arange(len(used))
        self.machines_ = self.machines_.select(used)
        machine = number[graph.machine]
        self._nodes_ = np.array([machine, graph.left, graph.right, graph.label])
        self._possible_ = graph.possible.copy()

    def _check_saved(self) -> None:
        check_tree(self._nodes_, self._possible_, len(self.machines_.code))

    def _make_graph(self) -> DecisionGraph:
        return DecisionGraph.from_arrays(
            *self._nodes_, self._possible_, n_machines=len(self.machines_.code)
        )


class BinaryTreeSVC(Tree, SoftClassifier):
    """A binary tree whose nodes each ask the machine of one pair of their classes.

    c-BTS (Fei and Liu 2006) is pair="centre", BTS pair="random", both with
    routing="samples"; BTPPSVM (Wang et al. 2011) is pair="fisher", labels="soft". What
    the choices are worth, at one C and gamma a data set (accuracy in per cent, machines
    of the tree, machines that a test row meets; pair="fisher", labels="hard"):

    ===============================  ================  ===============  ===============
    choices                          Letter            Optdigit         Pendigit
    ===============================  ================  ===============  ===============
    routing="samples"                89.14, 313, 13.7  98.00, 44, 8.5   98.08, 45, 8.0
    routing="classes" (default)      97.58, 324, 24.9  98.27, 44, 8.7   98.43, 43, 8.5
    ... split_above=.25, retrain     97.46, 158, 9.1   97.94, 25, 5.4   98.31, 12, 3.9
    ... split_above=.5, retrain      96.34, 25, 5.1    98.11, 9, 3.5    98.46, 9, 3.4
    one-vs-one, votes                97.64, 325, 325   98.33, 45, 45    98.40, 45, 45
    ===============================  ================  ===============  ===============

    The default is as accurate as a vote, and its path about as long as DAGSVM's;
    retrained nodes give much shorter paths for some tenths of a point. Notebook 03 has
    the whole table.

    Parameters
    ----------
    labels : {"hard", "soft", "own", "sign", "agreeing"}, default="hard"
        What the machines learn: labels, or the soft labels of `PosteriorSVC`.
    pair : {"fisher", "centre", "closest", "random"}, default="fisher"
        A node's pair: the two classes with the largest Fisher ratio, the two whose
        means are nearest the mean of the node's data, the two with the smallest Fisher
        ratio, or a random one.
    routing : {"classes", "samples"}, default="classes"
        What the pair's machine divides: whole classes, or training samples, each by its
        own output. A class that is on both sides goes to both children. Trees that
        route classes have far more nodes where many classes overlap.
    split_above : float, default=0.0
        A class is on both sides if more than this share of its samples lies on its
        smaller side; else all of it goes with the majority. At .5 no class is split.
    retrain : bool, default=False
        With routing="classes": the pair's machine only divides the classes; then a
        machine is trained between those that go right and those that go left, without
        those that go both ways, and takes its place.
    band : float, default=0.0
        With routing="samples": samples with |f| < band go both ways.
    max_nodes : int, default=200_000
        Limit of the tree's size.
    random_state : int, RandomState or None, default=None
        Seed of pair="random"; None draws anew at every fit.
    posterior : bool, default=False
        The machines learn soft labels: the second edition's name for labels="soft".

    Examples
    --------
    >>> from dagsvm_lab import BinaryTreeSVC
    >>> X, y = [[0], [1], [4], [5]], ["a", "b", "c", "d"]
    >>> tree = BinaryTreeSVC(kernel="linear", pair="centre").fit(X, y)
    >>> labels, cost = tree.predict_with_cost([[0.4], [4.9]])
    >>> labels.tolist(), cost.binary_decisions.tolist()
    (['a', 'd'], [2, 2])
    """

    labels: Labels = "hard"
    pair: Literal["fisher", "centre", "closest", "random"] = "fisher"
    routing: Literal["classes", "samples"] = "classes"
    split_above: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.0
    retrain: bool = False
    band: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0
    max_nodes: Count = 200_000
    random_state: Seed = None
    posterior: bool = False

    @property
    def _learnt(self) -> str:
        return "soft" if self.posterior else self.labels

    def _before_training(self, sample: Sample) -> None:
        if self.posterior and self.labels not in ("hard", "soft"):
            raise ValueError(
                f"posterior=True means labels='soft', not labels={self.labels!r}"
            )
        if self.retrain and self.routing != "classes":
            raise ValueError("retrain=True needs routing='classes'")
        if self.band and self.routing != "samples":
            raise ValueError("a band needs routing='samples'")
        if self.retrain and sample.bank is not None and sample.bank.kernels:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted over this bank: "
                "retrain=True needs one kernel"
            )

    def _after_training(self, sample: Sample) -> None:
        f = self._training_outputs(sample, by_sign=self.band == 0)
        grow = self._by_classes if self.routing == "classes" else self._by_samples
        graph = grow(sample, f).grow()
        self._keep(self._retrained(sample, graph) if self.retrain else graph)

    def _by_samples(self, sample: Sample, f: np.ndarray) -> DecisionGraph:
        """The tree whose nodes hold samples, from outputs f (rows, all pairs)."""
        rng = check_random_state(self.random_state)
        groups = [sample.by_class]  # rows of each node, sorted by class

        def classes_of(node: int) -> np.ndarray:
            return np.flatnonzero(np.bincount(sample.codes[groups[node]]))

        def rule(node: int) -> tuple:
            rows = groups[node]
            classes = classes_of(node)
            if len(classes) == 1:
                return "leaf", classes[0]
            i, j = self._choose(ClassGeometry.of_rows(sample, rows), classes, rng)
            t = pair_index(i, j, sample.n_classes)
            left, right = self._divide_samples(sample, rows, f[rows, t], (i, j))
            # the children are the next two nodes
            groups.extend([rows[left], rows[right]])
            return "node", t, len(groups) - 2, len(groups) - 1

        return self._graph(sample, f, 0, rule, classes_of)

    def _by_classes(self, sample: Sample, f: np.ndarray) -> DecisionGraph:
        """The tree whose nodes hold whole classes, from outputs f (rows, all pairs)."""
        rng = check_random_state(self.random_state)
        present, geometry, to_right = self._class_tables(sample, f)

        def rule(classes: tuple) -> tuple:
            if len(classes) == 1:
                return "leaf", classes[0]
            node = np.array(classes)
            i, j = self._choose(
                geometry.among(np.searchsorted(present, node)), node, rng
            )
            t = pair_index(i, j, sample.n_classes)
            left, right = self._divide_classes(to_right[node, t])
            # the pair's own two go to their own sides, whatever their samples do: so
            # both children are smaller
            left |= node == j
            right |= node == i
            left &= node != i
            right &= node != j
            return "node", t, tuple(node[left].tolist()), tuple(node[right].tolist())

        root = tuple(present.tolist())
        return self._graph(sample, f, root, rule, lambda classes: classes)

    def _class_tables(
        self, sample: Sample, f: np.ndarray
    ) -> tuple[np.ndarray, ClassGeometry, np.ndarray]:
        """What a tree of whole classes must know.

        The classes with rows that count, their geometry, and of all classes the share
        (classes, machines) of their weight with f >= 0.
        """
        rows = sample.by_class
        present, starts = np.unique(sample.codes[rows], return_index=True)
        to_right = np.zeros((sample.n_classes, f.shape[1]))
        for c, own in zip(present, np.split(rows, starts[1:]), strict=True):
            weight = sample.row_weight[own]
            to_right[c] = weight @ (f[own] >= 0) / weight.sum()
        return present, ClassGeometry.of_rows(sample, rows), to_right

    def _graph(
        self, sample: Sample, f: np.ndarray, root, rule, members
    ) -> DecisionGraph:
        sizes = {"n_classes": sample.n_classes, "n_machines": f.shape[1]}
        return DecisionGraph(root, rule, members, max_nodes=self.max_nodes, **sizes)

    def _choose(
        self, geometry: ClassGeometry, classes: np.ndarray, rng: np.random.RandomState
    ) -> tuple[int, int]:
        """The pair that the node's machine tells apart, the smaller index first."""
        if self.pair == "random":
            chosen = rng.choice(len(classes), 2, replace=False)
        elif self.pair == "centre":
            chosen = geometry.nearest_to_centre()
        else:
            i, j = np.triu_indices(len(classes), 1)
            ratio = geometry.fisher_ratios()[i, j]  # Eq. 4
            best = ratio.argmax() if self.pair == "fisher" else ratio.argmin()
            chosen = np.array([i[best], j[best]])
        first, second = np.sort(classes[chosen]).tolist()
        return first, second

    def _divide_classes(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which classes go left and right, by the share of each on the right."""
        split = np.minimum(share, 1 - share) > self.split_above
        return split | (share < 0.5), split | (share >= 0.5)

    def _divide_samples(
        self, sample: Sample, rows: np.ndarray, f: np.ndarray, pair: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which rows go left and right; the pair's first all right, its second left."""
        codes = sample.codes[rows]
        right = f >= -self.band
        left = f < self.band
        if self.split_above > 0:
            weight = sample.row_weight[rows]
            total = np.bincount(codes, weight)  # (classes,), as the next lines
            on_right = np.bincount(codes, weight * (f >= 0))
            share = on_right / np.where(total > 0, total, 1)
            whole = np.minimum(share, 1 - share) <= self.split_above
            majority = share >= 0.5
            right = np.where(whole[codes], majority[codes], right)
            left = np.where(whole[codes], ~majority[codes], left)
        i, j = pair
        right = (right | (codes == i)) & (codes != j)
        left = (left | (codes == j)) & (codes != i)
        return left, right

    def _retrained(self, sample: Sample, graph: DecisionGraph) -> DecisionGraph:
        """Train machines anew for a graph of whole classes; the graph over them.

        A node's machine gets +1 for the classes that go only right there and -1 for
        those that go only left; its own pair is among them, so neither side is empty.
        Nodes that ask for the same machine share it.
        """
        inner = np.flatnonzero(graph.machine >= 0)
        # (inner nodes, classes), 1 for a class that goes there; 1 - 1 leaves it out
        to_right = graph.possible[graph.right[inner]].astype(np.int8)
        to_left = graph.possible[graph.left[inner]].astype(np.int8)
        code, number = np.unique(to_right - to_left, axis=0, return_inverse=True)
        machine = np.full(graph.n_nodes, -1)
        machine[inner] = number.ravel()
        if np.ndim(sample.C):  # a bank's: one C a machine, all of them the same
            sample = replace(sample, C=np.unique(sample.C).item())
        options = self._training_options(sample, code)
        self.machines_ = self._train(sample, code, **options)
        return DecisionGraph.from_arrays(
            machine,
            graph.left,
            graph.right,
            graph.label,
            graph.possible,
            n_machines=len(code),
        )


class DecisionTreeSVC(Tree, BankClassifier):
    """The four decision-tree SVMs of Takahashi and Abe (2002).

    N - 1 machines for N classes, each between two groups of classes.

    Parameters
    ----------
    separate : {"one", "many"}, default="one"
        "one" splits off the class farthest from its nearest neighbour (types 1 and 3);
        "many" splits the classes into the two groups left when nearest groups are
        merged (types 2 and 4).
    distance : {"euclidean", "mahalanobis"}, default="euclidean"
        Distance between class means (types 1 and 2), or the larger Mahalanobis distance
        of a pair's two (3 and 4).

    Examples
    --------
    >>> from dagsvm_lab import DecisionTreeSVC
    >>> tree = DecisionTreeSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> tree.machines_.code.tolist()
    [[-1, -1, 1], [1, -1, 0]]
    """

    separate: Literal["one", "many"] = "one"
    distance: Literal["euclidean", "mahalanobis"] = "euclidean"

    def _coding_matrix(self, sample: Sample) -> np.ndarray:
        n = sample.n_classes
        classes = np.unique(sample.codes[sample.by_class])
        distance = np.zeros((n, n))
        distance[np.ix_(classes, classes)] = class_distances(sample, self.distance)
        code = []
        waiting = [frozenset(classes.tolist())]  # groups, from the root down
        while waiting:
            group = waiting.pop()
            if len(group) > 1:
                parts = self._parts(sorted(group), distance)
                row = np.zeros(n, dtype=np.int8)
                row[list(parts[0])] = 1
                row[list(parts[1])] = -1
                code.append(row)
                waiting += parts
        return np.array(code)

    def _after_training(self, sample: Sample) -> None:
        code = self.machines_.code
        number = {tuple(np.flatnonzero(row)): t for t, row in enumerate(code)}

        def rule(state: tuple) -> tuple:
            if len(state) == 1:
                return "leaf", state[0]
            t = number[state]
            sides = (np.flatnonzero(code[t] == sign) for sign in (-1, 1))
            return "node", t, *(tuple(side) for side in sides)

        sizes = dict(n_classes=sample.n_classes, n_machines=len(code))
        root = next(iter(number))  # the first group that was split
        self._keep(DecisionGraph(root, rule, list, **sizes).grow())

    def _parts(
        self, group: list[int], distance: np.ndarray
    ) -> tuple[frozenset, frozenset]:
        # between the group's classes; none is its own neighbour
        d = distance[np.ix_(group, group)] + np.diag(np.full(len(group), np.inf))
        if self.separate == "one":
            alone = group[int(np.argmax(d.min(axis=1)))]
            return frozenset([alone]), frozenset(group) - {alone}
        merged = linkage(squareform(d, checks=False), "single")
        cluster = cut_tree(merged, 2).ravel()
        first = frozenset(np.array(group)[cluster == cluster[0]].tolist())
        return first, frozenset(group) - first


def class_distances(sample: Sample, kind: str) -> np.ndarray:
    """Distances between class means.

    For "mahalanobis" the larger of those in either class's covariance.
    """
    rows = sample.by_class
    if kind == "euclidean":
        return np.sqrt(ClassGeometry.of_rows(sample, rows).squared_distances())
    if sample.kernel.precomputed:
        raise ValueError(
            "distance='mahalanobis' needs inputs, not a precomputed kernel"
        )
    starts = np.flatnonzero(np.diff(sample.codes[rows])) + 1
    means = []
    spreads = []  # each class's covariance (inputs, inputs)
    for own in np.split(rows, starts):
        X = sample.X[own]
        weight = sample.row_weight[own]
        means.append(np.average(X, axis=0, weights=weight))
        spreads.append(np.atleast_2d(np.cov(X.T, bias=True, aweights=weight)))
    n_inputs = sample.X.shape[1]
    scale = np.mean([np.trace(S) for S in spreads]) / n_inputs
    # so that a class of fewer rows than inputs has an inverse
    ridge = 1e-6 * max(scale, 1e-12) * np.eye(n_inputs)
    inverse = np.array([np.linalg.inv(S + ridge) for S in spreads])
    mean = np.array(means)  # (classes, inputs)
    apart = mean[:, None] - mean  # (classes, classes, inputs)
    own_distance = np.einsum("abi,aij,abj->ab", apart, inverse, apart)
    return np.sqrt(np.maximum(own_distance, own_distance.T))
