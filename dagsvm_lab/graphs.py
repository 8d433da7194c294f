"""Decision graphs over one bank of two-class machines, and the engine that runs them.

A system asks its machines in some order and ends with a class. `DecisionGraph` writes that order as plain arrays:
a node holds a machine, its left child is taken when the machine's f(x) < 0 and its right child when f(x) >= 0 (the
"zero" and "one" edges of Platt, Cristianini and Shawe-Taylor 2000, Definition 1), a leaf holds a class. Nodes with the
same state are one node, so lists (DDAG), sets (DCSVM) and trees are all the same thing. A graph may grow while it runs:
only states that some row reaches are ever made. `Ballot` is the flat case: every machine is asked, then votes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

Rule = Callable[[Hashable], tuple]


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
    n, n_machines = paths.shape
    visited = np.zeros((n, n_machines), dtype=bool)
    visited[np.repeat(np.arange(n), np.diff(paths.indptr)), paths.indices] = True
    keys = np.packbits(visited, axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    uses = sparse.csr_matrix((np.ones(coef.nnz), coef.indices, coef.indptr), shape=coef.shape)
    distinct = sparse.csr_matrix(visited[first].astype(float)) @ uses
    unique = np.diff(distinct.tocsr().indptr)[inverse.ravel()]
    summed = paths.astype(float) @ np.diff(coef.indptr)
    return Cost(np.asarray(paths.sum(axis=1), dtype=int).ravel(), unique.astype(int), np.rint(summed).astype(int))


class DecisionGraph:
    """A rooted binary graph whose inner nodes are machines and whose leaves are classes.

    `rule(state)` returns `("leaf", class)` or `("node", machine, left_state, right_state)`; `members(state)` the
    classes still possible there. States are hashable; equal states are one node. Node 0 is the root.
    """

    def __init__(
        self,
        root: Hashable,
        rule: Rule,
        members: Callable[[Any], Iterable[int]],
        *,
        n_classes: int,
        n_machines: int,
        max_nodes: int = 1_000_000,
    ) -> None:
        self.n_classes, self.n_machines, self.max_nodes = n_classes, n_machines, max_nodes
        self._rule, self._members = rule, members
        self._index: dict[Hashable, int] = {}
        self._states: list[Hashable] = []
        self._arrays = np.full((4, 64), -1, dtype=np.int64)  # machine, left, right, label
        self._possible = np.zeros((64, n_classes), dtype=bool)
        self._node(root)

    @classmethod
    def from_arrays(cls, machine, left, right, label, possible, n_machines: int) -> DecisionGraph:
        """The graph with these node arrays; `possible[k]` marks the classes that node k may still answer."""
        rows = list(zip(machine.tolist(), left.tolist(), right.tolist(), label.tolist(), strict=True))
        graph = cls(0, lambda k: ("leaf", rows[k][3]) if rows[k][0] < 0 else ("node", *rows[k][:3]),
                    lambda k: np.flatnonzero(possible[k]), n_classes=possible.shape[1], n_machines=n_machines,
                    max_nodes=len(rows))  # fmt: skip
        return graph.grow()

    def _node(self, state: Hashable) -> int:
        """Index of the node for `state`, made now if it is new; its children are made when first needed."""
        known = self._index.get(state)
        if known is not None:
            return known
        k = len(self._states)
        if k >= self.max_nodes:
            raise GraphTooLarge(
                f"the decision graph would need more than {self.max_nodes} nodes; raise max_nodes, or let fewer "
                "classes go both ways"
            )
        if k == self._arrays.shape[1]:
            self._arrays = np.concatenate([self._arrays, np.full_like(self._arrays, -1)], axis=1)
            self._possible = np.concatenate([self._possible, np.zeros_like(self._possible)])
        self._index[state] = k
        self._states.append(state)
        self._possible[k, list(self._members(state))] = True
        kind, *what = self._rule(state)
        if kind == "leaf":
            self._arrays[3, k] = what[0]
        else:
            self._arrays[0, k] = what[0]
            self._arrays[1:3, k] = -2  # not made yet
            self._states[k] = (what[1], what[2])
        return k

    def _expand(self, nodes: np.ndarray) -> None:
        for k in nodes[self._arrays[1, nodes] == -2].tolist():
            left, right = self._states[k]
            children = self._node(left), self._node(right)  # may replace self._arrays
            self._arrays[1:3, k] = children
            self._states[k] = None

    def grow(self) -> DecisionGraph:
        """This graph, every reachable node made."""
        k = 0
        while k < len(self._states):
            if self._arrays[0, k] >= 0:
                self._expand(np.array([k]))
            k += 1
        return self

    @property
    def n_nodes(self) -> int:
        """Number of nodes made so far, leaves included."""
        return len(self._states)

    machine = property(lambda self: self._arrays[0, : self.n_nodes], doc="Machine at each node, -1 at leaves.")
    left = property(lambda self: self._arrays[1, : self.n_nodes], doc="Node reached when f(x) < 0.")
    right = property(lambda self: self._arrays[2, : self.n_nodes], doc="Node reached when f(x) >= 0.")
    label = property(lambda self: self._arrays[3, : self.n_nodes], doc="Class index at leaves, -1 at inner nodes.")
    possible = property(lambda self: self._possible[: self.n_nodes], doc="Classes each node may still answer.")

    @property
    def machines_used(self) -> np.ndarray:
        """Sorted machines that stand at some node made so far."""
        used = np.unique(self.machine)
        return used[used >= 0]

    def run(self, f: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Labels, paths and scores of a batch whose machine outputs are `f` (n_samples, n_machines).

        A score is a path margin: for the answer, the smallest |f| on the row's path; for any other class, minus the
        |f| of the node that gave it up.
        """
        n = len(f)
        node = np.zeros(n, dtype=np.int64)
        scores = np.zeros((n, self.n_classes))
        smallest = np.full(n, np.inf)
        met: list[tuple[np.ndarray, np.ndarray]] = []
        rows = np.arange(n)
        while rows.size:
            here = node[rows]
            inner = self._arrays[0, here] >= 0
            rows, here = rows[inner], here[inner]
            if not rows.size:
                break
            self._expand(np.unique(here))
            machine = self._arrays[0, here]
            value = f[rows, machine]
            there = np.where(value >= 0, self._arrays[2, here], self._arrays[1, here])
            margin = np.abs(value)
            smallest[rows] = np.minimum(smallest[rows], margin)
            lost = self._possible[here] & ~self._possible[there]
            at, which = np.nonzero(lost)
            scores[rows[at], which] = -margin[at]
            node[rows] = there
            met.append((rows, machine))
        labels = self._arrays[3, node]
        scores[np.arange(n), labels] = np.where(np.isfinite(smallest), smallest, 0.0)
        if met:
            r, c = (np.concatenate(part) for part in zip(*met, strict=True))
        else:
            r = c = np.zeros(0, dtype=np.int64)
        paths = sparse.csr_matrix((np.ones(len(r), dtype=np.int64), (r, c)), shape=(n, self.n_machines))
        return labels, paths, scores

    def depth(self) -> np.ndarray:
        """Layer of every node, the root in layer 0: its longest distance from the root."""
        self.grow()
        depth = np.zeros(self.n_nodes, dtype=int)
        inner = np.flatnonzero(self.machine >= 0)
        for _ in range(self.n_nodes):
            before = depth.copy()
            for child in (self.left, self.right):
                np.maximum.at(depth, child[inner], depth[inner] + 1)
            if (before == depth).all():
                return depth
        raise ValueError("the graph has a cycle")

    def to_dot(self, names: Iterable[Any] | None = None, code: np.ndarray | None = None) -> str:
        """Graphviz text of the whole graph."""
        self.grow()
        text = _texts(self, names, code)
        lines = ["digraph decision {", '  node [shape=box, fontname="sans-serif"];']
        for k in range(self.n_nodes):
            shape = ", shape=ellipse" if self.machine[k] < 0 else ""
            lines.append(f'  n{k} [label="{text[k]}"{shape}];')
            if self.machine[k] >= 0:
                lines += [
                    f'  n{k} -> n{self.left[k]} [label="< 0"];',
                    f'  n{k} -> n{self.right[k]} [label=">= 0"];',
                ]
        return "\n".join([*lines, "}"])

    def draw(self, ax, names: Iterable[Any] | None = None, code: np.ndarray | None = None,
             path: np.ndarray | None = None, states: bool = True, size: float = 9) -> None:  # fmt: skip
        """Nothing; draws the graph in layers on `ax`, with the classes still possible beside each node.

        `path`: the machine outputs f of one row, whose way through the graph is highlighted.
        """
        names = [str(c) for c in (names if names is not None else range(self.n_classes))]
        depth, text = self.depth(), _texts(self, names, code)
        place = self._layout(depth)
        way = self._way(path) if path is not None else []
        taken = set(zip(way, way[1:], strict=False))
        for k in np.flatnonzero(self.machine >= 0):
            for child in (self.left[k], self.right[k]):
                look = dict(color="C3", lw=2.2) if (k, child) in taken else dict(color="0.7", lw=0.9)
                ax.plot(*zip(place[k], place[child], strict=True), zorder=1, **look)
        for k in range(self.n_nodes):
            leaf = self.machine[k] < 0
            box = dict(boxstyle="round" if leaf else "square", fc="#dbe9f6" if leaf else "white")
            box |= dict(ec="C3", lw=1.6) if k in way else dict(ec="0.4", lw=0.8)
            ax.text(*place[k], text[k], ha="center", va="center", fontsize=size, zorder=3, bbox=box)
            if states and not leaf:
                left = " ".join(names[c] for c in np.flatnonzero(self.possible[k]))
                under = dict(xytext=(0, -1.35 * size), textcoords="offset points", ha="center", va="top")
                white = dict(fc="white", ec="none", pad=0.4, alpha=0.85)
                ax.annotate(left, place[k], fontsize=0.78 * size, color="0.35", zorder=3, bbox=white, **under)
        ax.set_axis_off()
        ax.margins(0.08)

    def _way(self, f: np.ndarray) -> list[int]:
        way = [0]
        while self.machine[way[-1]] >= 0:
            k = way[-1]
            way.append(int(self.right[k] if f[self.machine[k]] >= 0 else self.left[k]))
        return way

    def _layout(self, depth: np.ndarray) -> dict[int, tuple[float, float]]:
        """Place of each node: layers downwards; within a layer, nodes in the order their parents ask for."""
        wish = np.zeros(self.n_nodes)
        place: dict[int, tuple[float, float]] = {}
        for layer in range(depth.max() + 1):
            nodes = np.flatnonzero(depth == layer)
            nodes = nodes[np.argsort(wish[nodes], kind="stable")]
            width = 2.0 ** max(depth.max() - layer - 2, 0) if self.n_nodes == 2 ** (depth.max() + 1) - 1 else 1.0
            for rank, k in enumerate(nodes):
                x = (rank - (len(nodes) - 1) / 2) * width
                place[int(k)] = (x, -float(layer))
                if self.machine[k] >= 0:
                    for child, side in ((self.left[k], -0.5), (self.right[k], 0.5)):
                        wish[child] = x + side if wish[child] == 0 else (wish[child] + x + side) / 2
        return place


def _texts(graph: DecisionGraph, names: Iterable[Any] | None, code: np.ndarray | None) -> list[str]:
    """What is written at each node: the class of a leaf, the two sides of a machine."""
    names = [str(c) for c in (names if names is not None else range(graph.n_classes))]
    if code is None:
        inner = [f"machine {m}" for m in range(graph.n_machines)]
    else:
        side = lambda row, sign: ",".join(names[c] for c in np.flatnonzero(row == sign))  # noqa: E731
        inner = [f"{side(row, 1)} vs {side(row, -1)}" for row in code]
    return [inner[m] if m >= 0 else names[c] for m, c in zip(graph.machine, graph.label, strict=True)]


Decode = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Ballot:
    """The flat graph: all machines of the coding matrix `code` are asked, and `decode(f, code)` scores each class.

    The largest score of `elect` (by default of `decode`) wins, the first of equals.
    """

    code: np.ndarray
    decode: Decode
    elect: Decode | None = None

    @property
    def machines_used(self) -> np.ndarray:
        """All machines."""
        return np.arange(len(self.code))

    def run(self, f: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Labels, paths and scores of a batch whose machine outputs are `f`."""
        scores = self.decode(f, self.code)
        labels = np.argmax(scores if self.elect is None else self.elect(f, self.code), axis=1)
        n, n_machines = len(f), len(self.code)
        columns, starts = np.tile(np.arange(n_machines), n), np.arange(n + 1) * n_machines
        paths = sparse.csr_matrix((np.ones(n * n_machines, dtype=np.int64), columns, starts), shape=(n, n_machines))
        return labels, paths, scores


def largest(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the output of its own machine (with two classes one machine speaks for both)."""
    return np.column_stack([f[:, 0], -f[:, 0]]) if code.shape[1] == 2 else f @ (code == 1)


def won(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the number of machines that it wins."""
    return (f >= 0) @ (code == 1).astype(float) + (f < 0) @ (code == -1).astype(float)


def summed(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its margin summed over its machines, in an order that does not depend on the batch."""
    return (sparse.csr_matrix(code.T.astype(float)) @ f.T).T


def votes(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the machines it wins, plus its summed margin squeezed into (-1/3, 1/3)."""
    if code.shape[1] == 2:
        return largest(f, code)
    margin = summed(f, code)
    return won(f, code) + margin / (3 * (np.abs(margin) + 1))
