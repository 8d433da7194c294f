"""Decision graphs over one bank of two-class machines, and the engine that runs them.

A system asks its machines in some order and ends with a class. `DecisionGraph` writes that order as plain arrays:
a node holds a machine, its left child is taken when the machine's f(x) < 0 and its right child when f(x) >= 0 (the
"zero" and "one" edges of Platt, Cristianini and Shawe-Taylor 2000, Definition 1), a leaf holds a class. Nodes with the
same state are one node, so lists (DDAG), sets (DCSVM) and trees are all the same thing. A graph may grow while it runs:
only states that some row reaches are ever made. The flat case, votes of all machines, is in ballots.py.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Self

import numpy as np
from scipy import sparse

from .outputs import Unsure, Walker


class GraphTooLarge(RuntimeError):
    """The graph would exceed its limit of nodes."""


@dataclass(frozen=True)
class Cost:
    """What each row's answer cost, counted as the papers count it: one integer a row in each array."""

    binary_decisions: np.ndarray
    kernel_evaluations: np.ndarray
    support_vectors: np.ndarray


def costs(paths: sparse.csr_matrix, coef: sparse.csr_matrix) -> Cost:
    """Cost of each row whose visited machines are the rows of `paths`, over machines with coefficients `coef`.

    kernel_evaluations is Platt's count, unique support vectors over the path; support_vectors is Don and Iacob's,
    summed over the path. Rows that share a path are counted once.
    """
    visited = paths.astype(bool).toarray()
    _, first, inverse = np.unique(np.packbits(visited, axis=1), axis=0, return_index=True, return_inverse=True)
    vectors = sparse.csr_matrix(visited[first]) @ coef.astype(bool)  # those of each different path
    unique, summed = np.diff(vectors.indptr)[inverse.ravel()], paths.astype(int) @ np.diff(coef.indptr)
    return Cost(*(count.astype(int) for count in (paths.getnnz(axis=1), unique, summed)))


class Graph:
    """Which machines are asked, and what their answers mean: a new one says `run`, `n_machines` and `machines_used`."""

    by_sign = False  # whether the signs of f alone settle the labels

    def labels(self, f: np.ndarray) -> np.ndarray:
        """The labels of `run` alone."""
        return self.run(f)[0]

    def walk(self, walker: Walker) -> int:
        """The label of one row (`Bank.walker`), if all signs are sure and settle it; else `Unsure`: blocks decide."""
        f, slack = walker.ask_all()
        if (np.abs(f) <= slack).any():
            raise Unsure("an output is zero within rounding")
        return int(self.labels(f[None])[0])


@dataclass(frozen=True)
class Glance:
    """Machines, one a class, that are asked together: classes further than `bound` behind the best are struck off."""

    machines: np.ndarray
    bound: float
    known: np.ndarray  # classes that can be struck off

    def lead(self, g: np.ndarray) -> np.ndarray:
        """The `leads` of outputs g."""
        return leads(g, self.known)


def leads(g: np.ndarray, known: np.ndarray) -> np.ndarray:
    """How far each class is behind the best, of outputs g (..., classes); classes that are not `known` never are."""
    return np.where(known, g.max(axis=-1, keepdims=True) - g, -np.inf)


class DecisionGraph(Graph):
    """A rooted binary graph whose inner nodes are machines and whose leaves are classes.

    Node k is column k of one table and never changes once it can be reached. A graph is read by many threads at once:
    `steps` makes the nodes that it needs under a lock, children before the edges that lead to them.

    Parameters
    ----------
    root : hashable
        State of node 0. Equal states are one node.
    rule : callable
        `rule(state)` gives `("leaf", class)` or `("node", machine, left_state, right_state)`, the latter with a fifth
        entry if the machine's output is compared with another number than zero.
    members : callable
        `members(state)` gives the classes that are still possible there.
    n_classes, n_machines : int
        Number of classes and of machines in the bank.
    max_nodes : int
        A graph that would need more nodes raises `GraphTooLarge`.
    glances : sequence of Glance
        What is asked before the graph is entered, until one class is left; the last one counts.
    enter : callable
        `enter(left, taken)` gives the state of rows to which that many glances have left these classes (bool).

    Examples
    --------
    >>> rule = lambda state: ("leaf", state) if state >= 0 else ("node", 0, 0, 1)
    >>> graph = DecisionGraph(-1, rule, lambda state: [0, 1] if state < 0 else [state], n_classes=2, n_machines=1)
    >>> graph.labels(np.array([[-2.0], [3.0]]))
    array([0, 1])
    """

    def __init__(self, root: Hashable, rule: Callable[[Any], tuple], members: Callable[[Any], Iterable], *,
                 n_classes: int, n_machines: int, max_nodes: int = 1_000_000, glances: Sequence[Glance] = (),
                 enter: Callable[[np.ndarray, int], Hashable] | None = None) -> None:  # fmt: skip
        self.n_classes, self.n_machines, self.max_nodes = n_classes, n_machines, max_nodes
        self.glances, self._enter = glances, enter
        self._rule, self._members = rule, members
        self._index: dict[Hashable, int] = {}
        self._ahead: dict[int, tuple[Hashable, Hashable]] = {}  # states of the children that are still to be made
        self._lock = RLock()
        self._table = np.full((4, 64), -1, dtype=np.int64)  # machine, left, right, label; -1 where there is none
        self._cut = np.zeros(64)  # what the machine's output is compared with
        self._possible, self._marked = np.zeros((64, n_classes), dtype=bool), np.zeros(64, dtype=bool)
        self._states: dict[int, Hashable] = {}
        self._node(root)

    @classmethod
    def from_arrays(cls, machine, left, right, label, possible, n_machines: int, n_classes: int | None = None):
        """The whole graph with these node arrays, -1 where there is none; `possible[k]`, or a function of an array of
        nodes where that would be too large, marks the classes that they may still answer."""
        graph = cls.__new__(cls)
        graph.n_classes, graph.n_machines, graph.glances = n_classes or possible.shape[1], n_machines, ()
        graph._index, graph._ahead, graph._lock = range(len(machine)), {}, RLock()
        graph._table, graph._cut = np.array([machine, left, right, label], dtype=np.int64), np.zeros(len(machine))
        graph._classes = possible if callable(possible) else possible.__getitem__
        return graph

    def _classes(self, nodes: np.ndarray) -> np.ndarray:
        """The classes that nodes may still answer, marked when they are first asked for."""
        if not self._marked[nodes].all():
            with self._lock:
                for k in np.unique(nodes[~self._marked[nodes]]).tolist():
                    members = self._members(self._states[k])
                    self._possible[k, members if isinstance(members, np.ndarray) else list(members)] = True
                    self._marked[k] = True  # last: readers look here
        return self._possible[nodes]

    def _node(self, state: Hashable) -> int:
        k = self._index.get(state, len(self._index))
        if k < len(self._index):
            return k
        if k >= self.max_nodes:
            why = "raise max_nodes, or let fewer classes go both ways"
            raise GraphTooLarge(f"the decision graph would need more than {self.max_nodes} nodes; {why}")
        kind, *what = self._rule(state)
        if k == len(self._cut):
            self._table = np.concatenate([self._table, np.full_like(self._table, -1)], axis=1)
            arrays = self._marked, self._possible, self._cut
            self._marked, self._possible, self._cut = (np.concatenate([a, np.zeros_like(a)]) for a in arrays)
        leaf = kind == "leaf"
        self._table[:, k] = (-1, -1, -1, what[0]) if leaf else (what[0], -1, -1, -1)
        self._cut[k] = what[3] if len(what) > 3 else 0.0
        if not leaf:
            self._ahead[k] = (what[1], what[2])
        self._states[k] = state
        self._index[state] = k  # from now on the node is there
        return k

    def _open(self, nodes: np.ndarray) -> None:
        """Make the children of these inner nodes, where they are not made yet."""
        waiting = nodes[self._table[1, nodes] < 0]
        if waiting.size:
            with self._lock:
                for k in np.unique(waiting).tolist():
                    if k in self._ahead:
                        left, right = (self._node(state) for state in self._ahead[k])
                        self._table[2, k] = right
                        self._table[1, k] = left  # last: readers look here
                        del self._ahead[k]

    def grow(self) -> Self:
        """This graph, every reachable node made."""
        while self._ahead:
            self._open(np.array(list(self._ahead)))
        return self

    def entered(self, n: int, ask: Callable) -> tuple[np.ndarray, np.ndarray]:
        """The nodes at which n rows enter the graph, and how many glances each has taken; arguments as of `steps`."""
        nodes, taken, rows = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.arange(n)
        for k, glance in enumerate(self.glances, start=1):
            g = np.stack([ask(rows, np.full(len(rows), t)) for t in glance.machines], axis=1)
            left, taken[rows] = glance.lead(g) <= glance.bound, k
            ready = np.flatnonzero((left.sum(axis=1) == 1) | (k == len(self.glances)))
            sets, place = np.unique(left[ready], axis=0, return_inverse=True)
            nodes[rows[ready]] = self._entries(sets, k)[place.ravel()]
            rows = np.delete(rows, ready)
        return nodes, taken

    def _entries(self, sets: np.ndarray, taken: int) -> np.ndarray:
        with self._lock:
            return np.array([self._node(self._enter(left, taken)) for left in sets], dtype=np.int64)

    n_nodes = property(lambda self: len(self._index), doc="Number of nodes made so far, leaves included.")
    machine = property(lambda self: self._table[0, : self.n_nodes], doc="Machine at each node, -1 at leaves.")
    left = property(lambda self: self._table[1, : self.n_nodes], doc="Node reached when f(x) < cut, -1 if not made.")
    right = property(lambda self: self._table[2, : self.n_nodes], doc="Node reached when f(x) >= cut, -1 if not made.")
    by_sign = property(lambda self: not (self.glances or self._cut.any()), doc="Whether all nodes ask for signs alone.")
    cut = property(lambda self: self._cut[: self.n_nodes], doc="What each node compares f(x) with.")
    label = property(lambda self: self._table[3, : self.n_nodes], doc="Class index at leaves, -1 at inner nodes.")
    possible = property(lambda self: self._classes(np.arange(self.n_nodes)), doc="Classes each node may still answer.")

    machines_used = property(lambda self: np.unique(self.machine[self.machine >= 0]), doc="Machines at nodes, sorted.")

    def steps(self, n: int, ask: Callable, start: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, ...]]:
        """Walk n rows down the graph, one layer at a time, from the nodes `start` or where `entered` says.

        `ask(rows, machines)` gives the output of machine `machines[k]` for row `rows[k]`. A layer is four arrays: the
        rows still under way, the node where each stands, the output of its machine, and the node it goes to.
        """
        rows, nodes = np.arange(n), self.entered(n, ask)[0] if start is None else start
        while True:
            inner = self._table[0, nodes] >= 0
            if not inner.all():
                rows, nodes = rows[inner], nodes[inner]
            if not rows.size:
                return
            self._open(nodes)
            machine, left, right, _ = self._table[:, nodes]
            outputs = ask(rows, machine)
            children = np.where(outputs >= self._cut[nodes], right, left)
            yield rows, nodes, outputs, children
            nodes = children

    def run(self, f: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Labels, paths and scores of a batch whose machine outputs are `f` (n_samples, n_machines).

        A score is a path margin: for the answer, the smallest |f| on the row's path; for any other class, minus the
        |f| of the node that gave it up.
        """
        n, ask = len(f), lambda rows, machines: f[rows, machines]
        (start, taken), smallest, scores = self.entered(n, ask), np.full(n, np.inf), np.zeros((n, self.n_classes))
        end, met = start.copy(), [(np.zeros(0, dtype=np.int64),) * 2]
        for k, glance in enumerate(self.glances, start=1):
            rows, last = np.flatnonzero(taken >= k), np.flatnonzero(taken == k)
            met.append((np.repeat(rows, self.n_classes), np.tile(glance.machines, len(rows))))
            over = glance.lead(f[np.ix_(last, glance.machines)]) - glance.bound
            scores[last], smallest[last] = -np.maximum(over, 0), np.where(over > 0, over, np.inf).min(axis=1)
        for rows, nodes, outputs, children in self.steps(n, ask, start):
            margin = np.abs(outputs - self._cut[nodes])
            smallest[rows] = np.minimum(smallest[rows], margin)
            at, lost = np.nonzero(self._classes(nodes) & ~self._classes(children))
            scores[rows[at], lost] = -margin[at]
            end[rows] = children
            met.append((rows, self._table[0, nodes]))
        labels = self._table[3, end]
        scores[np.arange(n), labels] = np.where(np.isfinite(smallest), smallest, 0.0)
        row, machine = (np.concatenate(part) for part in zip(*met, strict=True))
        paths = sparse.csr_matrix((np.ones(len(row), dtype=np.int64), (row, machine)), shape=(n, self.n_machines))
        paths.data[:] = 1  # a machine that stands at two nodes of a path is asked once
        return labels, paths, scores

    def labels(self, f: np.ndarray) -> np.ndarray:
        ask = lambda rows, machines: f[rows, machines]  # noqa: E731
        end = self.entered(len(f), ask)[0]
        for rows, _, _, children in self.steps(len(f), ask, end.copy()):
            end[rows] = children
        return self._table[3, end]

    def walk(self, walker: Walker) -> int:
        """The label of one row, asking only the machines on its path; raises `Unsure` where blocks must decide."""
        k = self._entered_alone(walker) if self.glances else 0
        while True:
            (machine, left, right, label), cut = self._table[:, k].tolist(), float(self._cut[k])
            if machine < 0:
                return label
            if left < 0:
                self._open(np.array([k]))
            else:
                k = right if walker.ask(machine, cut) >= cut else left

    def _entered_alone(self, walker: Walker) -> int:
        for k, glance in enumerate(self.glances, start=1):
            g, slack = walker.ask_some(glance.machines)
            lead = glance.lead(g)
            if (np.abs(lead - glance.bound) <= 2 * slack.max()).any():
                raise Unsure("a class is as far behind as it may be, within rounding")
            left = lead <= glance.bound
            if k == len(self.glances) or left.sum() == 1:
                return int(self._entries(left[None], k)[0])

    def depth(self) -> np.ndarray:
        """Layer of every node, the root in layer 0: its longest distance from the root."""
        self.grow()
        depth, nodes = np.zeros(self.n_nodes, dtype=int), np.arange(self.n_nodes)
        for layer in range(self.n_nodes):
            depth[nodes] = layer
            nodes = np.unique(self._table[1:3, nodes[self._table[0, nodes] >= 0]])
            if not nodes.size:
                return depth
        raise ValueError("the graph has a cycle")
