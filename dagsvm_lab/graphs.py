"""Decision graphs over one bank of two-class machines, and the engine that runs them.

A system asks its machines in some order and ends with a class. `DecisionGraph` writes
that order as plain arrays: a node holds a machine, its left child is taken when the
machine's f(x) < 0 and its right child when f(x) >= 0 (the "zero" and "one" edges of
Platt, Cristianini and Shawe-Taylor 2000, Definition 1), a leaf holds a class. Nodes of
the same state are one node, so lists (DDAG), sets (DCSVM) and trees are all the same
thing. A graph may grow while it runs: only states that some row reaches are ever made
(nodes.py). The flat case, votes of all machines, is in ballots.py.

Machines are asked through an evaluator (evaluate.py), which computes only what the
rows' ways need.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .evaluate import KnownOutputs, Walker
from .nodes import GraphTooLarge as GraphTooLarge  # which users catch by this name
from .nodes import Nodes


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
    visited = paths.astype(bool).toarray()  # (rows, machines)
    packed = np.packbits(visited, axis=1)  # of which equal ones are found faster
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


class DecisionGraph(Nodes, Graph):
    """A rooted binary graph: its inner nodes are machines, its leaves are classes.

    `Nodes` makes and keeps the nodes; here rows walk them. Many threads may do so at
    once.

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
                # (rows of this layer, classes): what each gives up at its node
                given_up = self._classes(nodes) & ~self._classes(children)
                at, lost = np.nonzero(given_up)
                scores[rows[at], lost] = -margin[at]
        labels = self._table[3, end]
        if scored:  # a row that entered at a leaf met no machine, and has no margin
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
