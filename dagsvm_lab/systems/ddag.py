"""The Decision DAG of Platt, Cristianini and Shawe-Taylor 2000, sections 2 and 4.

The graph is a list of classes: the node for a list tests its first class against its
last, and the loser leaves the list. `ddag` is the graph, `evaluate_list` the list: two
forms of the same function, held equal by a test.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils import check_random_state

from ..graphs import DecisionGraph
from ..machines import pair_index
from .base import BankClassifier
from .believable import WHOLE, expect
from .declared import Array, Seed
from .sample import Sample


def ddag(order: Sequence[int], n_classes: int) -> DecisionGraph:
    """The DDAG over the list `order` of class indices.

    A node stands for a span (first, last) of the list; layer d holds the d + 1 spans
    that are d classes shorter than the list, numbered from the last span to the first.
    f >= 0 prefers the lower class index of a pair. Figure 1a draws "not first" to the
    left, and so does this graph for a list in natural order; Definition 1 numbers a
    layer's nodes from the other side, where the first class survives.
    """
    order = np.asarray(order, dtype=int)
    spans = _Spans.of_list(len(order))
    i = order[spans.first]  # (nodes,), as all below
    j = order[spans.last]
    leaf = i == j
    left = np.where(i < j, spans.without_first, spans.without_last)
    right = np.where(i < j, spans.without_last, spans.without_first)
    left[leaf] = -1
    right[leaf] = -1
    label = np.where(leaf, i, -1)
    pair = pair_index(np.minimum(i, j), np.maximum(i, j), n_classes)
    machine = np.where(leaf, -1, pair)

    place = np.full(n_classes, -1)  # of each class in the list
    place[order] = np.arange(len(order))
    return DecisionGraph.from_arrays(
        machine,
        left,
        right,
        label,
        lambda nodes: spans.hold(nodes, place),
        n_machines=n_classes * (n_classes - 1) // 2,
        n_classes=n_classes,
    )


def ddag_of_sets(order: Sequence[int], n_classes: int) -> DecisionGraph:
    """The DDAG over the list `order`, to be entered with some of its classes left.

    A node stands for what is left of the list, which need not be a span of it; it asks
    the first against the last, as in `ddag`. Nodes are made as rows reach them.
    """
    order = [int(c) for c in order]
    place = {c: k for k, c in enumerate(order)}

    def rule(state: tuple[int, ...]) -> tuple:
        i = state[0]
        j = state[-1]
        if i == j:
            return "leaf", i
        without_i = state[1:]
        without_j = state[:-1]
        if i < j:
            return "node", pair_index(i, j, n_classes), without_i, without_j
        return "node", pair_index(j, i, n_classes), without_j, without_i

    def enter(left: np.ndarray) -> tuple[int, ...]:
        return tuple(c for c in order if left[c])

    return DecisionGraph(
        tuple(order),
        rule,
        list,
        n_classes=n_classes,
        n_machines=n_classes * (n_classes - 1) // 2,
        enter=enter,
        rank=lambda state: place[state[-1]] - place[state[0]],
    )


@dataclass(frozen=True)
class _Spans:
    """What each node's span is of a list, and which nodes follow: each (nodes,)."""

    first: np.ndarray  # places in the list
    last: np.ndarray
    without_first: np.ndarray  # the node of the span without its first place

    @classmethod
    def of_list(cls, n: int) -> Self:
        """The spans of a list of n classes."""
        d = np.arange(n)
        layer = np.repeat(d, d + 1)
        node = np.arange(len(layer))
        # node d (d + 1) / 2 + k, the k-th of layer d, has the span that begins at d - k
        first = layer * (layer + 3) // 2 - node
        last = n - 1 - layer + first
        without_first = node + layer + 1
        return cls(first, last, without_first)

    @property
    def without_last(self) -> np.ndarray:
        """The node of the span without its last place: the next one of its layer."""
        return self.without_first + 1

    def hold(self, nodes: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether places stand in the nodes' spans: (nodes, places)."""
        begins = self.first[nodes][:, None]
        ends = self.last[nodes][:, None]
        return (begins <= place) & (place <= ends)


def evaluate_list(
    f: np.ndarray, order: Sequence[int], n_classes: int
) -> tuple[int, list[tuple[int, ...]]]:
    """Class index and successive lists for one row's machine outputs f.

    The paper's list form, said plainly.
    """
    classes = [int(c) for c in order]
    states = [tuple(classes)]
    while len(classes) > 1:
        low, high = sorted([classes[0], classes[-1]])
        prefers_low = f[pair_index(low, high, n_classes)] >= 0
        classes.remove(high if prefers_low else low)
        states.append(tuple(classes))
    return classes[0], states


class DAGSVC(BankClassifier):
    """DAGSVM: two-class machines for all pairs, at the nodes of a DDAG.

    With kernel="linear", a Perceptron DDAG.

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

    @property
    def order_(self) -> np.ndarray:
        """The list, as class labels."""
        return self.classes_[self._list_]

    def _before_training(self, sample: Sample | None) -> None:
        """Set the list, as class indices."""
        names = self.classes_.tolist()
        n = len(names)
        if self.order is None:
            self._list_ = np.arange(n)
        elif isinstance(self.order, str):
            self._list_ = check_random_state(self.random_state).permutation(n)
        else:
            given = np.asarray(self.order).tolist()
            if len(given) != n or set(given) != set(names):
                raise ValueError(
                    f"order must name each of the {n} classes once, or be None or"
                    " 'random'"
                )
            self._list_ = np.array([names.index(name) for name in given])

    def _check_saved(self) -> None:
        n = len(self.classes_)
        expect("the list", self._list_, WHOLE, (n,), 0, n - 1)
        if len(np.unique(self._list_)) < n:
            raise ValueError("a class stands in the list twice")

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
        other._before_training(None)
        other.graph_ = other._make_graph()
        return other
