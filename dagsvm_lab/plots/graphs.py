"""Drawings of decision graphs: layers downwards, the classes still possible beside each node, one row's way."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graphs import DecisionGraph
from . import RED


def draw(graph: DecisionGraph, ax, names: Iterable[Any] | None = None, code: np.ndarray | None = None,
         path: np.ndarray | None = None, size: float = 9) -> None:  # fmt: skip
    """Draw the whole graph, grown to its last node, in layers, and under each node the classes still possible.

    Classes have `names`, or else their indices; the coding matrix `code` (machines, classes) names the two sides of
    each node's machine; `path` holds the machine outputs of one row, whose way through the graph is drawn in colour.
    """
    names = [str(c) for c in (names if names is not None else range(graph.n_classes))]

    def sides(t: int) -> str:
        if code is None:
            return f"machine {t}"
        return " vs ".join(",".join(names[c] for c in np.flatnonzero(code[t] == side)) for side in (1, -1))

    place = layout(graph)
    on_way = way(graph, path) if path is not None else []
    edges(graph, ax, place, on_way)
    for k in range(graph.n_nodes):
        leaf = graph.machine[k] < 0
        box = dict(boxstyle="round" if leaf else "square", fc="#dbe9f6" if leaf else "white")
        box |= dict(ec=RED, lw=1.6) if k in on_way else dict(ec="0.4", lw=0.8)
        text = names[graph.label[k]] if leaf else sides(graph.machine[k])
        ax.text(*place[k], text, ha="center", va="center", fontsize=size, zorder=3, bbox=box)
        if not leaf:
            left = " ".join(names[c] for c in np.flatnonzero(graph.possible[k]))
            under = dict(xytext=(0, -1.35 * size), textcoords="offset points", ha="center", va="top")
            white = dict(fc="white", ec="none", pad=0.4, alpha=0.85)
            ax.annotate(left, place[k], fontsize=0.78 * size, color="0.35", zorder=3, bbox=white, **under)
    ax.set_axis_off()
    ax.margins(0.08)


def edges(graph: DecisionGraph, ax, place: np.ndarray, met: list[int]) -> None:
    """Draw the arcs between nodes at `place`, those between the nodes met in colour."""
    taken = set(zip(met, met[1:], strict=False))
    for k in np.flatnonzero(graph.machine >= 0).tolist():
        for child in (int(graph.left[k]), int(graph.right[k])):
            look = dict(color=RED, lw=2.4) if (k, child) in taken else dict(color="0.75", lw=0.9)
            ax.plot(*zip(place[k], place[child], strict=True), zorder=1, **look)


def way(graph: DecisionGraph, f: np.ndarray) -> list[int]:
    """The nodes that a row with machine outputs f meets, root and leaf included."""
    return [0, *(int(children[0]) for *_, children in graph.steps(1, lambda rows, machines: f[machines]))]


def layout(graph: DecisionGraph) -> np.ndarray:
    """Place (x, y) of each node: layers downwards; within a layer, nodes in the order their parents ask for."""
    depth = graph.depth()
    place, wish = np.zeros((graph.n_nodes, 2)), np.zeros(graph.n_nodes)
    last, full = depth.max(), graph.n_nodes == 2 ** (depth.max() + 1) - 1
    for layer in range(last + 1):
        nodes = np.flatnonzero(depth == layer)
        nodes = nodes[np.argsort(wish[nodes], kind="stable")]
        width = 2.0 ** max(last - layer - 2, 0) if full else 1.0
        for rank, k in enumerate(nodes):
            x = (rank - (len(nodes) - 1) / 2) * width
            place[k] = x, -layer
            if graph.machine[k] >= 0:
                for child, side in ((graph.left[k], -0.5), (graph.right[k], 0.5)):
                    wish[child] = x + side if wish[child] == 0 else (wish[child] + x + side) / 2
    return place
