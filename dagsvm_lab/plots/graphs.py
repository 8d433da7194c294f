"""Drawings of decision graphs: layers downwards, and one row's way through them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graphs import DecisionGraph
from . import RED

UNDER = 1.35  # times the size of letters that a node's classes stand below it


def draw(
    graph: DecisionGraph,
    ax,
    names: Iterable[Any] | None = None,
    code: np.ndarray | None = None,
    path: np.ndarray | None = None,
    size: float = 9,
) -> None:
    """Draw the whole graph, grown to its last node, in layers.

    Under each node stand the classes still possible.

    Parameters
    ----------
    names : iterable, optional
        Of the classes; else their indices are shown.
    code : ndarray of shape (machines, classes), optional
        The coding matrix, which names the two sides of each node's machine.
    path : ndarray of shape (machines,), optional
        The machine outputs of one row, whose way through the graph is coloured.
    size : float, optional
        Of the letters, in points.
    """
    names = [str(c) for c in (range(graph.n_classes) if names is None else names)]
    place = layout(graph)
    met = [] if path is None else way(graph, path)
    edges(graph, ax, place, met)
    possible = graph.possible
    centred = {"ha": "center", "va": "center", "fontsize": size, "zorder": 3}
    for k in range(graph.n_nodes):
        machine = graph.machine[k]
        leaf = machine < 0
        text = names[graph.label[k]] if leaf else _sides(machine, code, names)
        box = {"boxstyle": "square", "fc": "white", "ec": "0.4", "lw": 0.8}
        if leaf:
            box |= {"boxstyle": "round", "fc": "#dbe9f6"}
        if k in met:
            box |= {"ec": RED, "lw": 1.6}
        ax.text(*place[k], text, bbox=box, **centred)
        if not leaf:
            left = [names[c] for c in np.flatnonzero(possible[k])]
            _write_below(ax, place[k], " ".join(left), size)
    ax.set_axis_off()
    ax.margins(0.08)


def _sides(machine: int, code: np.ndarray | None, names: list[str]) -> str:
    """What a machine tells apart, in words."""
    if code is None:
        return f"machine {machine}"
    sides = []
    for side in (1, -1):
        classes = np.flatnonzero(code[machine] == side)
        sides.append(",".join(names[c] for c in classes))
    return " vs ".join(sides)


def _write_below(ax, place: np.ndarray, text: str, size: float) -> None:
    """Write the classes still possible below a node."""
    ax.annotate(
        text,
        place,
        xytext=(0, -UNDER * size),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=0.78 * size,
        color="0.35",
        zorder=3,
        bbox={"fc": "white", "ec": "none", "pad": 0.4, "alpha": 0.85},
    )


def edges(graph: DecisionGraph, ax, place: np.ndarray, met: list[int]) -> None:
    """Draw the arcs between nodes at `place`, those between the nodes met in colour."""
    taken = set(zip(met, met[1:], strict=False))
    for k in np.flatnonzero(graph.machine >= 0).tolist():
        for child in (int(graph.left[k]), int(graph.right[k])):
            look = {"color": "0.75", "lw": 0.9}
            if (k, child) in taken:
                look = {"color": RED, "lw": 2.4}
            x, y = zip(place[k], place[child], strict=True)
            ax.plot(x, y, zorder=1, **look)


def way(graph: DecisionGraph, f: np.ndarray) -> list[int]:
    """The nodes that a row with machine outputs f meets, root and leaf included."""

    def ask(rows, machines: np.ndarray) -> np.ndarray:
        return f[machines]

    met = [0]
    for *_, (child,) in graph.steps(1, ask):
        met.append(int(child))
    return met


def layout(graph: DecisionGraph) -> np.ndarray:
    """Place each node: (nodes, 2), layers downwards.

    Within a layer, nodes stand in the order their parents ask for.
    """
    depth = graph.depth()
    last = int(depth.max())
    full = graph.n_nodes == 2 ** (last + 1) - 1  # a full binary tree spreads its layers
    place = np.zeros((graph.n_nodes, 2))
    wish = np.zeros(graph.n_nodes)  # where parents want a node, 0 for nowhere yet
    for layer in range(last + 1):
        nodes = np.flatnonzero(depth == layer)
        nodes = nodes[np.argsort(wish[nodes], kind="stable")]
        width = 2.0 ** max(last - layer - 2, 0) if full else 1.0
        middle = (len(nodes) - 1) / 2
        for rank, k in enumerate(nodes):
            x = (rank - middle) * width
            place[k] = x, -layer
            if graph.machine[k] < 0:
                continue
            for child, side in ((graph.left[k], -0.5), (graph.right[k], 0.5)):
                asked = wish[child]
                wish[child] = x + side if asked == 0 else (asked + x + side) / 2
    return place
