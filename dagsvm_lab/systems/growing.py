"""How a binary tree grows over the machines of all pairs.

A node takes a pair of its classes; the pair's machine divides what the node holds,
whole classes or training samples, between two children (Fei and Liu 2006; Wang, Zheng
and Zhou 2011). Nodes grow until each holds one class.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..graphs import DecisionGraph
from ..machines import pair_index
from .geometry import ClassGeometry
from .sample import Sample


@dataclass(frozen=True)
class Growth:
    """What a tree grows from: the machines' outputs, and the choices at its nodes.

    `pair`, `split_above`, `band` and `max_nodes` are parameters of `BinaryTreeSVC`.
    """

    sample: Sample
    f: np.ndarray  # (rows, pairs), outputs of all pairs' machines
    pair: str
    split_above: float
    band: float
    max_nodes: int
    rng: np.random.RandomState

    def by_samples(self) -> DecisionGraph:
        """The tree whose nodes hold samples."""
        sample = self.sample
        held = [sample.by_class]  # rows of each node, sorted by class

        def classes_of(node: int) -> np.ndarray:
            in_class = np.bincount(sample.codes[held[node]])
            return np.flatnonzero(in_class)

        def rule(node: int) -> tuple:
            rows = held[node]
            classes = classes_of(node)
            if len(classes) == 1:
                return "leaf", classes[0]
            pair = self._chosen_pair(ClassGeometry.of_rows(sample, rows), classes)
            machine = pair_index(*pair, sample.n_classes)
            sides = self._divided_samples(rows, machine)
            left, right = _own_sides(*sides, sample.codes[rows], pair)
            # the children are the next two nodes
            held.extend([rows[left], rows[right]])
            return "node", machine, len(held) - 2, len(held) - 1

        return self._graph(0, rule, classes_of)

    def by_classes(self) -> DecisionGraph:
        """The tree whose nodes hold whole classes."""
        sample = self.sample
        rows = sample.by_class
        geometry = ClassGeometry.of_rows(sample, rows)
        present = np.unique(sample.codes[rows])  # classes with rows that count
        share = self._shares_right(rows)

        def rule(state: tuple) -> tuple:
            if len(state) == 1:
                return "leaf", state[0]
            classes = np.array(state)
            places = np.searchsorted(present, classes)
            pair = self._chosen_pair(geometry.among(places), classes)
            machine = pair_index(*pair, sample.n_classes)
            sides = self._divided_classes(share[classes, machine])
            left, right = _own_sides(*sides, classes, pair)
            to_left = tuple(classes[left].tolist())
            to_right = tuple(classes[right].tolist())
            return "node", machine, to_left, to_right

        root = tuple(present.tolist())
        return self._graph(root, rule, lambda state: state)

    def _graph(self, root, rule: Callable, members: Callable) -> DecisionGraph:
        return DecisionGraph(
            root,
            rule,
            members,
            n_classes=self.sample.n_classes,
            n_machines=self.f.shape[1],
            max_nodes=self.max_nodes,
        )

    def _chosen_pair(
        self, geometry: ClassGeometry, classes: np.ndarray
    ) -> tuple[int, int]:
        """The pair that the node's machine tells apart, the smaller index first."""
        if self.pair == "random":
            chosen = self.rng.choice(len(classes), 2, replace=False)
        elif self.pair == "centre":
            chosen = geometry.nearest_to_centre()
        else:
            i, j = np.triu_indices(len(classes), 1)
            ratio = geometry.fisher_ratios()[i, j]  # Eq. 4
            best = ratio.argmax() if self.pair == "fisher" else ratio.argmin()
            chosen = np.array([i[best], j[best]])
        first, second = np.sort(classes[chosen]).tolist()
        return first, second

    def _divided_samples(
        self, rows: np.ndarray, machine: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of these rows go left and which right, by the machine's outputs."""
        f = self.f[rows, machine]
        left = f < self.band
        right = f >= -self.band
        if self.split_above > 0:
            codes = self.sample.codes[rows]
            weight = self.sample.row_weight[rows]
            in_class = np.bincount(codes, weight)  # (classes,), as the next lines
            on_right = np.bincount(codes, weight * (f >= 0))
            share = on_right / np.where(in_class > 0, in_class, 1)
            whole = ~self._split(share)
            majority = share >= 0.5
            right = np.where(whole[codes], majority[codes], right)
            left = np.where(whole[codes], ~majority[codes], left)
        return left, right

    def _divided_classes(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which classes go left and which right, by the share of each on the right."""
        split = self._split(share)
        left = split | (share < 0.5)
        right = split | (share >= 0.5)
        return left, right

    def _split(self, share: np.ndarray) -> np.ndarray:
        """Whether a class is on both sides, by the share of each on the right."""
        smaller = np.minimum(share, 1 - share)
        return smaller > self.split_above

    def _shares_right(self, rows: np.ndarray) -> np.ndarray:
        """The share of each class's weight with f >= 0: (classes, machines).

        `rows` are sorted by class.
        """
        sample = self.sample
        present, starts = np.unique(sample.codes[rows], return_index=True)
        share = np.zeros((sample.n_classes, self.f.shape[1]))
        for c, own in zip(present, np.split(rows, starts[1:]), strict=True):
            weight = sample.row_weight[own]
            on_right = weight @ (self.f[own] >= 0)
            share[c] = on_right / weight.sum()
        return share


def _own_sides(
    left: np.ndarray, right: np.ndarray, classes: np.ndarray, pair: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """`left` and `right` with the pair's first class right only, its second left only.

    They go there whatever their samples do: so both children are smaller.
    """
    i, j = pair
    left = (left | (classes == j)) & (classes != i)
    right = (right | (classes == i)) & (classes != j)
    return left, right
