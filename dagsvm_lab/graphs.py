"""Decision graphs over one bank of two-class machines, and the engine that runs them.

A system asks its machines in some order and ends with a class. `DecisionGraph` writes
that order as plain arrays: a node holds a machine, its left child is taken when the
machine's f(x) < 0 and its right child when f(x) >= 0 (the "zero" and "one" edges of
Platt, Cristianini and Shawe-Taylor 2000, Definition 1), a leaf holds a class. Nodes of
the same state are one node, so lists (DDAG), sets (DCSVM) and trees are all the same
thing. A graph may grow while it runs: only states that some row reaches are ever made.
The flat case, votes of all machines, is in ballots.py.

Machines are asked through an evaluator (evaluate.py), which computes only what the
rows' ways need.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

import numpy as np
from scipy import sparse

from .evaluate import KnownOutputs, Walker


class GraphTooLarge(RuntimeError):
    """The graph would exceed its limit of nodes."""


@dataclass(frozen=True)
class Cost:
    """What each row's answer cost, as the papers count it: integers, one a row."""

    binary_decisions: np.ndarray
    kernel_evaluations: np.ndarray
    support_vectors: np.ndarray


def costs(paths: sparse.csr_matrix, coef: sparse.csr_matrix) -> Cost:
    """Cost of each row that meets the machines in its row of `paths`.

    `coef` holds the machines' coefficients. kernel_evaluations is Platt's count, unique
    support vectors over the path; support_vectors is Don and Iacob's, summed over the
    path. Rows that share a path are counted once.
    """
    visited = paths.astype(bool).toarray()
    packed = np.packbits(visited, axis=1)
    _, first, same = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    met = sparse.csr_matrix(visited[first]) @ coef.astype(bool)  # by different paths
    unique = np.diff(met.indptr)[same.ravel()]
    summed = paths.astype(int) @ np.diff(coef.indptr)
    return Cost(
        binary_decisions=paths.getnnz(axis=1).astype(int),
        kernel_evaluations=unique.astype(int),
        support_vectors=summed.astype(int),
    )


class Graph(ABC):
    """Which machines are asked, and what their answers mean.

    A new kind of graph says `trace`, `walk`, `n_machines` and `machines_used`. An
    evaluator is a `KnownOutputs` or an `Evaluator`; the answers for rows that it notes
    as unsure are to be computed again from blocks.
    """

    by_sign = True  # whether the signs of f alone settle the labels
    asks_all = False  # whether every row meets all machines
    expected_steps = 1  # machines that a row is expected to meet

    @abstractmethod
    def trace(self, asked, start=None, scored: bool = True) -> tuple:
        """Labels, paths and scores (None if not `scored`) of an evaluator's rows."""

    def answer(self, asked, start=None) -> np.ndarray:
        """Labels alone."""
        return self.trace(asked, start)[0]

    @abstractmethod
    def walk(self, walker: Walker, start: int = 0) -> int:
        """The label of one row; raises `NeedsBlocks` where blocks must decide."""

    def run(self, f: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Labels, paths and scores of rows whose machine outputs are `f`."""
        return self.trace(KnownOutputs(f))

    def labels(self, f: np.ndarray) -> np.ndarray:
        """The labels of `run` alone."""
        return self.answer(KnownOutputs(f))


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
        keys = np.concatenate([self.keys, keys])
        order = keys.argsort()
        return EntryNodes(keys[order], np.concatenate([self.nodes, nodes])[order])


class DecisionGraph(Graph):
    """A rooted binary graph: its inner nodes are machines, its leaves are classes.

    Node k is column k of one table and never changes once it can be reached. A graph is
    read by many threads at once: `steps` makes the nodes that it needs under a lock,
    children before the edges that lead to them.

    Parameters
    ----------
    root : hashable
        State of node 0. Equal states are one node.
    rule : callable
        `rule(state)` gives `("leaf", class)` or `("node", machine, left_state,
        right_state)`.
    members : callable
        `members(state)` gives the classes that are still possible there.
    n_classes, n_machines : int
        Number of classes and of machines in the bank.
    max_nodes : int
        A graph that would need more nodes raises `GraphTooLarge`.
    enter : callable, default=None
        `enter(left)` gives the state of a row to which only the classes `left` (bool,
        one a class) are left: see `entries`.
    rank : callable, default=None
        `rank(state)`, a number that falls along every edge. Rows of the highest rank
        are asked first, so that those that entered elsewhere join them at the same node
        and a machine is asked of all of them together. None: layer by layer.

    Examples
    --------
    >>> def rule(state):
    ...     return ("leaf", state) if state >= 0 else ("node", 0, 0, 1)
    >>> def members(state):
    ...     return [state] if state >= 0 else [0, 1]
    >>> graph = DecisionGraph(-1, rule, members, n_classes=2, n_machines=1)
    >>> graph.labels(np.array([[-2.0], [3.0]]))
    array([0, 1])
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
        self._walked: dict[int, tuple[int, int, int]] = {}  # nodes as `walk` reads them
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
        if not self._marked[nodes].all():
            with self._lock:
                for k in np.unique(nodes[~self._marked[nodes]]).tolist():
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
            self._table[:, k] = (-1, -1, -1, what[0])
        else:
            self._table[:, k] = (what[0], -1, -1, -1)
            self._ahead[k] = (what[1], what[2])
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

    def steps(
        self,
        n: int,
        ask: Callable,
        start: np.ndarray | None = None,
        end: np.ndarray | None = None,
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Walk n rows down the graph, one layer at a time.

        Parameters
        ----------
        n : int
            Number of rows.
        ask : callable
            `ask(rows, machines)` gives the output of machine machines[k] for row
            rows[k], as `Evaluator.ask` does.
        start : ndarray of shape (n,), default=None
            Nodes at which the rows enter, as from `entries`; None is the root.
        end : ndarray of shape (n,), default=None
            Is given the leaf of each row when it arrives there.

        Yields
        ------
        rows, nodes, outputs, children : ndarrays
            A layer, or the rows of the highest rank: which rows, the node where each
            stands, the output of its machine, and the node that it goes to.
        """
        rows = np.arange(n)
        nodes = np.zeros(n, dtype=np.int64) if start is None else start
        while True:
            machines = self._table[0].take(nodes)
            if machines.min(initial=0) < 0:  # some have arrived at leaves
                inner = machines >= 0
                if end is not None:
                    end[rows[~inner]] = nodes[~inner]
                rows = rows[inner]
                nodes = nodes[inner]
                machines = machines[inner]
            if not rows.size:
                return
            if start is None or self._rank_of is None:
                outputs = ask(rows, machines)
                children = self._children(nodes, outputs)
                yield rows, nodes, outputs, children
                nodes = children
                continue
            ranks = self._ranks[nodes]
            due = np.flatnonzero(ranks == ranks.max())
            here = nodes[due]
            outputs = ask(rows[due], machines[due])
            children = self._children(here, outputs)
            yield rows[due], here, outputs, children
            nodes = nodes.copy()
            nodes[due] = children

    def _children(self, nodes: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """The nodes to which rows go from these, with these outputs."""
        right = outputs >= 0.0
        _, left_of, right_of, _ = self._table
        children = np.where(right, right_of.take(nodes), left_of.take(nodes))
        if children.min() < 0:  # some are not made yet
            self._open(nodes)
            _, left_of, right_of, _ = self._table
            children = np.where(right, right_of.take(nodes), left_of.take(nodes))
        return children

    def trace(self, asked, start=None, scored: bool = True):
        """Labels, paths and scores of an evaluator's rows.

        A score is a path margin: of the answer, the smallest |f| on the row's path; of
        any other class, minus the |f| of the node that gave it up.

        Parameters
        ----------
        asked : KnownOutputs or Evaluator
        start : ndarray of shape (n_rows,), default=None
            Nodes at which the rows enter; None is the root.
        scored : bool
            Whether to compute scores.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
        paths : csr_matrix of shape (n_rows, n_machines)
        scores : ndarray of shape (n_rows, n_classes), or None
        """
        n = len(asked.unsure)
        smallest = np.full(n, np.inf)
        scores = np.zeros((n, self.n_classes)) if scored else None
        met = []
        end = np.empty(n, dtype=np.int64)
        for rows, nodes, outputs, children in self.steps(n, asked.ask, start, end):
            met.append((rows, self._table[0, nodes]))
            if scored:
                margin = np.abs(outputs)
                smallest[rows] = np.minimum(smallest[rows], margin)
                given_up = self._classes(nodes) & ~self._classes(children)
                at, lost = np.nonzero(given_up)
                scores[rows[at], lost] = -margin[at]
        labels = self._table[3, end]
        if scored:
            own = np.where(np.isfinite(smallest), smallest, 0.0)
            scores[np.arange(n), labels] = own
        return labels, self._paths(n, met), scores

    def _paths(self, n: int, met: list[tuple]) -> sparse.csr_matrix:
        """1 where a row met a machine, of (rows, machines) layer by layer."""
        none = np.zeros(0, dtype=np.int64)
        row = np.concatenate([none, *(rows for rows, _ in met)])
        machine = np.concatenate([none, *(machines for _, machines in met)])
        ones = np.ones(len(row), dtype=np.int64)
        paths = sparse.csr_matrix((ones, (row, machine)), (n, self.n_machines))
        paths.data[:] = 1  # a machine that stands at two nodes of a path is asked once
        return paths

    def answer(self, asked, start=None) -> np.ndarray:
        n = len(asked.unsure)
        end = np.empty(n, dtype=np.int64)
        for _ in self.steps(n, asked.ask, start, end):
            pass
        return self._table[3, end]

    def walk(self, walker: Walker, start: int = 0) -> int:
        k = start
        while True:
            machine, left, right = self._walked.get(k) or self._walk_node(k)
            if machine < 0:
                return left
            k = right if walker.ask(machine) >= 0 else left

    def _walk_node(self, k: int) -> tuple[int, int, int]:
        """Machine, left and right child of a node; -1, label, -1 of a leaf."""
        if self._table[0, k] >= 0:
            self._open(np.array([k]))
        machine, left, right, label = self._table[:, k].tolist()
        node = (machine, left, right) if machine >= 0 else (-1, label, -1)
        self._walked[k] = node
        return node

    def depth(self) -> np.ndarray:
        """Layer of every node, its longest distance from the root, in layer 0."""
        self.grow()
        depth = np.full(self.n_nodes, -1)
        inner = np.flatnonzero(self._table[0, : self.n_nodes] >= 0)
        to_come = np.bincount(self._table[1:3, inner].ravel(), minlength=self.n_nodes)
        nodes = np.flatnonzero(to_come == 0)  # of this layer: all parents have theirs
        layer = 0
        while nodes.size:
            depth[nodes] = layer
            inner = nodes[self._table[0, nodes] >= 0]
            nodes, parents = np.unique(self._table[1:3, inner], return_counts=True)
            to_come[nodes] -= parents
            nodes = nodes[to_come[nodes] == 0]
            layer += 1
        if (depth < 0).any():
            raise ValueError("the graph has a cycle")
        return depth
