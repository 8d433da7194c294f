"""The nodes of a decision graph, made as rows reach them, and where rows enter.

Node k is column k of one table: its machine, its left and right child, and its class if
it is a leaf. A graph may grow while rows walk it (graphs.py): only states that some row
reaches are ever made, and nodes of the same state are one node.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

import numpy as np


class GraphTooLarge(RuntimeError):
    """The graph would exceed its limit of nodes."""


def set_keys(left: np.ndarray) -> np.ndarray:
    """A key for each row of a bool array (rows, classes), equal where the rows are."""
    packed = np.packbits(left, axis=1)
    if packed.shape[1] <= 8:  # numbers are sorted faster than strings of bytes
        whole = np.zeros((len(packed), 8), np.uint8)
        whole[:, : packed.shape[1]] = packed
        return whole.view(np.uint64).ravel()
    return np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()


@dataclass(frozen=True)
class EntryNodes:
    """Nodes at which rows enter with some classes left, looked up many at a time."""

    keys: np.ndarray  # (sets,) of `set_keys`, ascending
    nodes: np.ndarray  # (sets,)

    @classmethod
    def none(cls, n_classes: int) -> "EntryNodes":
        """No sets yet, of so many classes."""
        empty = np.zeros((0, n_classes), dtype=bool)
        return cls(set_keys(empty), np.zeros(0, dtype=np.int64))

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place of each key among the known ones, and which are not known."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=int), np.arange(len(keys))
        place = np.searchsorted(self.keys, keys)
        place[place == len(self.keys)] = 0
        return place, np.flatnonzero(self.keys[place] != keys)

    def with_more(self, keys: np.ndarray, nodes: list[int]) -> "EntryNodes":
        """These and other sets."""
        all_keys = np.concatenate([self.keys, keys])
        all_nodes = np.concatenate([self.nodes, nodes])
        order = all_keys.argsort()
        return EntryNodes(all_keys[order], all_nodes[order])


class Nodes:
    """What `DecisionGraph` walks; its parameters are there.

    A column of the table never changes once its node can be reached. The table is read
    by many threads at once: whoever needs nodes makes them under a lock, children
    before the edges that lead to them.
    """

    def __init__(
        self,
        root: Hashable,
        rule: Callable[[Any], tuple],
        members: Callable[[Any], Iterable],
        *,
        n_classes: int,
        n_machines: int,
        max_nodes: int = 1_000_000,
        enter: Callable[..., Hashable] | None = None,
        rank: Callable[[Any], int] | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.n_machines = n_machines
        self.max_nodes = max_nodes
        self.expected_steps = max(1, n_classes - 1)
        self._rule = rule
        self._members = members
        self._enter = enter
        self._rank_of = rank
        self._ranks = np.zeros(64, dtype=np.int64)
        self._lock = RLock()
        self._index: dict[Hashable, int] = {}
        self._states: dict[int, Hashable] = {}
        self._ahead: dict[int, tuple[Hashable, Hashable]] = {}  # children to be made
        # machine and children of the nodes that a row has walked alone
        self._walked: dict[int, tuple[int, int, int]] = {}
        self._entered: dict[bytes, int] = {}  # nodes of sets of classes left,
        self._entries = EntryNodes.none(n_classes)  # and those that batches met
        # machine, left, right, label; -1 where there is none
        self._table = np.full((4, 64), -1, dtype=np.int64)
        self._possible = np.zeros((64, n_classes), dtype=bool)
        self._marked = np.zeros(64, dtype=bool)  # nodes whose classes are known
        self._node(root)

    @classmethod
    def from_arrays(
        cls,
        machine,
        left,
        right,
        label,
        possible,
        n_machines: int,
        n_classes: int | None = None,
    ):
        """The whole graph with these node arrays, -1 where there is none.

        `possible[k]`, or a function of an array of nodes where that would be too large,
        marks the classes that they may still answer.
        """
        graph = cls.__new__(cls)
        graph.n_classes = n_classes or possible.shape[1]
        graph.n_machines = n_machines
        graph._enter = None
        graph._rank_of = None
        graph._index = range(len(machine))
        graph._ahead = {}
        graph._walked = {}
        graph._lock = RLock()
        graph._table = np.array([machine, left, right, label], dtype=np.int64)
        graph._classes = possible if callable(possible) else possible.__getitem__
        graph.expected_steps = max(1, int(graph.depth().max()))
        return graph

    def _classes(self, nodes: np.ndarray) -> np.ndarray:
        """The classes that nodes may still answer, marked when first asked for."""
        marked = self._marked[nodes]
        if not marked.all():
            with self._lock:
                for k in np.unique(nodes[~marked]).tolist():
                    members = self._members(self._states[k])
                    if not isinstance(members, np.ndarray):
                        members = list(members)
                    self._possible[k, members] = True
                    self._marked[k] = True  # last: readers look here
        return self._possible[nodes]

    def _node(self, state: Hashable) -> int:
        """The node of this state, made if there is none yet."""
        k = self._index.get(state, len(self._index))
        if k < len(self._index):
            return k
        if k >= self.max_nodes:
            raise GraphTooLarge(
                f"the decision graph would need more than {self.max_nodes} nodes; raise"
                " max_nodes, or let fewer classes go both ways"
            )
        kind, *what = self._rule(state)
        if k == len(self._marked):
            self._double()
        if kind == "leaf":
            (label,) = what
            self._table[:, k] = (-1, -1, -1, label)
        else:
            machine, left, right = what
            self._table[:, k] = (machine, -1, -1, -1)
            self._ahead[k] = (left, right)
        if self._rank_of is not None:
            self._ranks[k] = self._rank_of(state)
        self._states[k] = state
        self._index[state] = k  # from now on the node is there
        return k

    def _double(self) -> None:
        """Make room for twice as many nodes."""
        more = np.full_like(self._table, -1)
        self._table = np.concatenate([self._table, more], axis=1)
        for name in ("_marked", "_possible", "_ranks"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))

    def _open(self, nodes: np.ndarray) -> None:
        """Make the children of these inner nodes, where they are not made yet."""
        waiting = nodes[self._table[1].take(nodes) < 0]
        if not waiting.size:
            return
        with self._lock:
            for k in np.unique(waiting).tolist():
                if k in self._ahead:
                    left, right = (self._node(state) for state in self._ahead[k])
                    self._table[2, k] = right
                    self._table[1, k] = left  # last: readers look here
                    del self._ahead[k]

    def grow(self, most: int | None = None) -> Self:
        """This graph, every reachable node made.

        More than `most` of them raise `GraphTooLarge`.
        """
        while self._ahead:
            if most is not None and self.n_nodes + len(self._ahead) > most:
                raise GraphTooLarge(f"the graph has more than {most} nodes")
            self._open(np.array(list(self._ahead)))
        return self

    def entries(self, left: np.ndarray) -> np.ndarray:
        """The nodes at which rows enter to which only some classes are left.

        Parameters
        ----------
        left : bool ndarray of shape (n_rows, n_classes)
            The classes left to each row.

        Returns
        -------
        nodes : ndarray of shape (n_rows,)
            For `start` of `steps`, `answer` and `trace`.
        """
        keys = set_keys(left)
        known = self._entries
        place, missing = known.find(keys)
        if missing.size:
            new, first = np.unique(keys[missing], return_index=True)
            made = [self.entry(left[k]) for k in missing[first].tolist()]
            known = known.with_more(new, made)
            self._entries = known
            place, _ = known.find(keys)
        return known.nodes[place]

    def entry(self, left: np.ndarray) -> int:
        """The node at which one row enters: see `entries`."""
        key = left.tobytes()
        node = self._entered.get(key)
        if node is None:
            with self._lock:
                node = self._node(self._enter(left))
            self._entered[key] = node
        return node

    @property
    def n_nodes(self) -> int:
        """Number of nodes made so far, leaves included."""
        return len(self._index)

    @property
    def machine(self) -> np.ndarray:
        """Machine at each node, -1 at leaves."""
        return self._table[0, : self.n_nodes]

    @property
    def left(self) -> np.ndarray:
        """Node reached when f(x) < 0, -1 if not made."""
        return self._table[1, : self.n_nodes]

    @property
    def right(self) -> np.ndarray:
        """Node reached when f(x) >= 0, -1 if not made."""
        return self._table[2, : self.n_nodes]

    @property
    def label(self) -> np.ndarray:
        """Class index at leaves, -1 at inner nodes."""
        return self._table[3, : self.n_nodes]

    @property
    def possible(self) -> np.ndarray:
        """Classes that each node may still answer, (nodes, classes)."""
        return self._classes(np.arange(self.n_nodes))

    @property
    def machines_used(self) -> np.ndarray:
        """Machines at nodes, sorted."""
        return np.unique(self.machine[self.machine >= 0])

    def depth(self) -> np.ndarray:
        """Layer of every node, its longest distance from the root, in layer 0."""
        self.grow()
        machine = self.machine
        children = self._table[1:3]
        depth = np.full(self.n_nodes, -1)
        inner = np.flatnonzero(machine >= 0)
        # edges to each node from parents that have no layer yet
        to_come = np.bincount(children[:, inner].ravel(), minlength=self.n_nodes)
        nodes = np.flatnonzero(to_come == 0)  # of this layer: all parents have theirs
        layer = 0
        while nodes.size:
            depth[nodes] = layer
            inner = nodes[machine[nodes] >= 0]
            nodes, parents = np.unique(children[:, inner], return_counts=True)
            to_come[nodes] -= parents
            nodes = nodes[to_come[nodes] == 0]
            layer += 1
        if (depth < 0).any():
            raise ValueError("the graph has a cycle")
        return depth
