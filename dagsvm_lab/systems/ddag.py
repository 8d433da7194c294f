"""The Decision DAG of Platt, Cristianini and Shawe-Taylor 2000, sections 2 and 4.

The graph is a list of classes: the node for a list tests its first class against its last, and the loser leaves the
list. `ddag` is the graph, `evaluate_list` the list: two forms of the same function, held equal by a test.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from ..graphs import DecisionGraph
from ..machines import pair_index
from .base import BankClassifier, Sample
from .declared import Array, Seed


def ddag(order: Sequence[int], n_classes: int) -> DecisionGraph:
    """The DDAG over the list `order` of class indices. A node stands for a span (first, last) of the list.

    f >= 0 prefers the lower class index of a pair. Figure 1a draws "not first" to the left, and so does this graph for
    a list in natural order; Definition 1 numbers a layer's nodes from the other side, where the first class survives.
    """
    order, n = np.asarray(order, dtype=int), len(order)
    layer = np.repeat(np.arange(n), np.arange(1, n + 1))
    first = layer * (layer + 3) // 2 - np.arange(len(layer))  # a layer's nodes from the last span to the first
    last = n - 1 - layer + first
    i, j = order[first], order[last]
    leaf, drop_first = i == j, np.arange(len(layer)) + layer + 1
    left, right = np.where(i < j, [drop_first, drop_first + 1], [drop_first + 1, drop_first])
    machine = np.where(leaf, -1, pair_index(np.minimum(i, j), np.maximum(i, j), n_classes))
    place = np.full(n_classes, -1)
    place[order] = np.arange(n)

    def possible(nodes: np.ndarray) -> np.ndarray:
        return (place >= first[nodes][:, None]) & (place <= last[nodes][:, None])

    children, label = np.where(leaf, -1, [left, right]), np.where(leaf, i, -1)
    n_machines = n_classes * (n_classes - 1) // 2
    return DecisionGraph.from_arrays(machine, *children, label, possible, n_machines, n_classes)


def evaluate_list(f: np.ndarray, order: Sequence[int], n_classes: int) -> tuple[int, list[tuple[int, ...]]]:
    """Class index and successive list states for one row's machine outputs f: the paper's list form, said plainly."""
    classes = [int(c) for c in order]
    states = [tuple(classes)]
    while len(classes) > 1:
        i, j = classes[0], classes[-1]
        prefers_lower = f[pair_index(min(i, j), max(i, j), n_classes)] >= 0
        classes.remove(max(i, j) if prefers_lower else min(i, j))
        states.append(tuple(classes))
    return classes[0], states


class DAGSVC(BankClassifier):
    """DAGSVM: two-class machines for all pairs, at the nodes of a DDAG. With kernel="linear", a Perceptron DDAG.

    Parameters
    ----------
    order : sequence of class labels or "random", default=None
        The list; None is the order of `classes_`.
    random_state : int, RandomState or None, default=None
        Seed of order="random"; None draws anew at every fit.

    Attributes
    ----------
    order_ : ndarray of shape (n_classes,)
        The list, as class labels.

    Examples
    --------
    >>> from dagsvm_lab import DAGSVC
    >>> dag = DAGSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> dag.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    >>> labels, cost = dag.predict_with_cost([[0.4], [3.1]])
    >>> cost.binary_decisions.tolist()
    [2, 2]
    """

    order: Literal["random"] | Array | None = None
    random_state: Seed = None

    _saved = ("_list_",)
    order_ = property(lambda self: self.classes_[self._list_], doc="The list, as class labels.")

    def _settle(self, sample: Sample | None) -> None:
        """Set the list, as class indices."""
        names, order = self.classes_.tolist(), self.order
        if order is None:
            self._list_ = np.arange(len(names))
        elif isinstance(order, str):
            self._list_ = check_random_state(self.random_state).permutation(len(names))
        else:
            given = np.asarray(order).tolist()
            if len(given) != len(names) or set(given) != set(names):
                raise ValueError(f"order must name each of the {len(names)} classes once, or be None or 'random'")
            self._list_ = np.array([names.index(name) for name in given])

    def _make_graph(self) -> DecisionGraph:
        return ddag(self._list_, len(self.classes_))

    def with_order(self, order: Sequence[Any] | np.ndarray | str | None) -> Self:
        """Copy this fitted estimator with another list over the same machines.

        Parameters
        ----------
        order : sequence of class labels, "random" or None
            The list, as the parameter `order`.

        Returns
        -------
        other : object
            The copy; nothing is trained again.
        """
        other = self._variant(order=order)
        other._settle(None)
        other.graph_ = other._make_graph()
        return other
