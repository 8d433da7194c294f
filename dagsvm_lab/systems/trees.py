"""Binary trees of two-class machines.

BTS and c-BTS (Fei and Liu 2006) and BTPPSVM (Wang, Zheng and Zhou 2011) choose at each
node a pair of its classes; the pair's machine divides the others by the way. The four
decision-tree SVMs of Takahashi and Abe (2002) divide the classes by their distances.
Only the machines that a tree uses are kept.
"""

from dataclasses import replace
from numbers import Real
from typing import Annotated, Literal

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph
from .base import BankClassifier
from .believable import check_tree
from .declared import Count, Seed
from .geometry import class_distances
from .growing import Growth
from .posterior import Labels, SoftClassifier
from .sample import Sample


class Tree:
    """What systems have in common whose graph is made at fit."""

    _sparse = False
    _saved = ("_nodes_", "_possible_")

    def _keep(self, graph: DecisionGraph) -> None:
        """Keep the machines that the graph uses, renumbered."""
        used = graph.machines_used
        n_machines = len(self.machines_.code)
        # a leaf's machine is -1, which reads the last entry: it stays -1
        number = np.full(n_machines + 1, -1)
        number[used] = np.arange(len(used))
        machine = number[graph.machine]
        self.machines_ = self.machines_.select(used)
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
        # a band asks how large an output is, not only on which side
        f = self._training_outputs(sample, by_sign=self.band == 0)
        growth = Growth(
            sample,
            f,
            pair=self.pair,
            split_above=self.split_above,
            band=self.band,
            max_nodes=self.max_nodes,
            rng=check_random_state(self.random_state),
        )
        by_classes = self.routing == "classes"
        graph = growth.by_classes() if by_classes else growth.by_samples()
        graph.grow()
        if self.retrain:
            graph = self._retrained(sample, graph)
        self._keep(graph)

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
        if np.ndim(sample.C):  # a bank's: one C a machine, all of them the same
            sample = replace(sample, C=np.unique(sample.C).item())
        options = self._training_options(sample, code)
        self.machines_ = self._train(sample, code, **options)
        machine = np.full(graph.n_nodes, -1)
        machine[inner] = number.ravel()
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
            if len(group) == 1:
                continue
            first, second = self._parts(sorted(group), distance)
            row = np.zeros(n, dtype=np.int8)
            row[list(first)] = 1
            row[list(second)] = -1
            code.append(row)
            waiting += [first, second]
        return np.array(code)

    def _after_training(self, sample: Sample) -> None:
        code = self.machines_.code
        # the machine that splits a group of classes
        splits = {tuple(np.flatnonzero(row)): t for t, row in enumerate(code)}

        def rule(state: tuple) -> tuple:
            if len(state) == 1:
                return "leaf", state[0]
            t = splits[state]
            to_left = tuple(np.flatnonzero(code[t] == -1))
            to_right = tuple(np.flatnonzero(code[t] == 1))
            return "node", t, to_left, to_right

        root = next(iter(splits))  # the first group that was split
        graph = DecisionGraph(
            root, rule, list, n_classes=sample.n_classes, n_machines=len(code)
        )
        self._keep(graph.grow())

    def _parts(
        self, group: list[int], distance: np.ndarray
    ) -> tuple[frozenset, frozenset]:
        """The two groups into which a sorted group of classes is split."""
        d = distance[np.ix_(group, group)].copy()
        np.fill_diagonal(d, np.inf)  # no class is its own neighbour
        if self.separate == "one":
            to_nearest = d.min(axis=1)
            first = {group[int(np.argmax(to_nearest))]}
        else:
            merged = linkage(squareform(d, checks=False), "single")
            cluster = cut_tree(merged, 2).ravel()
            with_first = np.flatnonzero(cluster == cluster[0])
            first = {group[k] for k in with_first}
        return frozenset(first), frozenset(group) - first
