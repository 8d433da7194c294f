"""The Decision DAG of Platt, Cristianini and Shawe-Taylor 2000, sections 2 and 4.

The graph is a list of classes: the node for a list tests its first class against its last, and the loser leaves the
list. `ddag` is the graph, `evaluate_list` the list: two forms of the same function, held equal by a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..graphs import DecisionGraph
from ..machines import pair_code, pair_index
from .base import BankClassifier, Sample


def node_place(i: int, j: int, n: int) -> tuple[int, int]:
    """Layer and place, from 1, of the ij-node (1 <= i < j <= n) by Definition 1: the i-th node of layer n - j + i."""
    return n - j + i, i


def ddag(order: Sequence[int], n_classes: int) -> DecisionGraph:
    """The DDAG over the list `order` of class indices. A node's state is the span (first, last) of the list.

    f >= 0 prefers the lower class index of a pair. Figure 1a draws "not first" to the left, and so does this graph for
    a list in natural order; Definition 1 numbers a layer's nodes from the other side, where the first class survives.
    """
    order = [int(c) for c in order]

    def rule(span: tuple[int, int]) -> tuple:
        first, last = span
        if first == last:
            return "leaf", order[first]
        i, j = order[first], order[last]
        drop_first, drop_last = (first + 1, last), (first, last - 1)
        sides = (drop_first, drop_last) if i < j else (drop_last, drop_first)
        return "node", pair_index(min(i, j), max(i, j), n_classes), *sides

    return DecisionGraph(
        (0, len(order) - 1),
        rule,
        lambda span: order[span[0] : span[1] + 1],
        n_classes=n_classes,
        n_machines=n_classes * (n_classes - 1) // 2,
    ).grow()


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


@dataclass(kw_only=True, eq=False, repr=False)
class DAGSVC(BankClassifier):
    """DAGSVM: two-class machines for all pairs, at the nodes of a DDAG. With kernel="linear", a Perceptron DDAG.

    Parameters
    ----------
    order : the list: None for the order of `classes_`, a sequence of all class labels, or "random".
    random_state : seeds order="random".

    `order_` holds the list as class labels. `decision_function`: path margins (`DecisionGraph.run`). Else as in
    `BankClassifier`.
    """

    order: Any = None
    random_state: Any = None

    def _code(self, n_classes: int) -> np.ndarray:
        return pair_code(n_classes)

    def _fit(self, sample: Sample) -> None:
        self.order_ = self._list()
        super()._fit(sample)

    def _list(self) -> np.ndarray:
        if self.order is None:
            return self.classes_.copy()
        if isinstance(self.order, str) and self.order == "random":
            return check_random_state(self.random_state).permutation(self.classes_)
        order = np.asarray(self.order)
        if sorted(order.tolist(), key=str) != sorted(self.classes_.tolist(), key=str):
            raise ValueError(f"order must name each of the {len(self.classes_)} classes once, or be None or 'random'")
        return order

    def _make_graph(self) -> DecisionGraph:
        place = {c: k for k, c in enumerate(self.classes_.tolist())}
        return ddag([place[c] for c in self.order_.tolist()], len(self.classes_))

    def with_order(self, order: Sequence[Any]) -> DAGSVC:
        """A fitted copy over the same machines with another list; nothing is trained again."""
        other = type(self)(**(self.get_params() | {"order": order}))
        for name in ("classes_", "n_features_in_", "machines_"):
            setattr(other, name, getattr(self, name))
        other.order_ = other._list()
        other.graph_ = other._make_graph()
        return other

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | {"order": np.searchsorted(self.classes_, self.order_)}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.order_ = self.classes_[arrays["order"]]
        super()._restore(arrays)
