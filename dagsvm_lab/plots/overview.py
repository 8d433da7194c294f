"""Systems by accuracy and cost, ranks as a Nemenyi diagram, and the picture of the whole idea (README, tour)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..graphs import DecisionGraph
from ..statistics import Ranks, cliques, front
from . import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, figure
from .graphs import layout, way

COLOURS = {"rest": GREY, "pairs": ORANGE, "DAG": BLUE, "tree": GREEN, "DCSVM": RED, "codes": PINK, "direct": SKY,
           "peer": "black", "conformal": "#222222"}  # fmt: skip
MARKERS = dict(zip(COLOURS, "svo^DPX+*", strict=True))


class Names(dict):
    """What systems are called in figures; one that has no entry is called by its key."""

    def __missing__(self, key: str) -> str:
        return key


NAMES = Names({
    "1-v-r": "one-vs-rest", "max-wins": "Max Wins", "and-gate": "AND gate", "dagsvm": "DAG", "adaptive": "adaptive DAG",
    "conformal": "conformal DAG",
    "bts": "BTS", "c-bts": "c-BTS", "btppsvm": "BTPPSVM", "dcsvm 0%": "DCSVM 0%", "dcsvm 2%": "DCSVM 2%",
    "dcsvm 5%": "DCSVM 5%", "posterior ovo": "posterior 1-v-1", "posterior ovr": "posterior 1-v-r",
    "ecoc dense": "ECOC dense", "ecoc sparse": "ECOC sparse", "crammer-singer": "Crammer-Singer",
    "weston-watkins": "Weston-Watkins", "libsvm": "LIBSVM",
})  # fmt: skip
NAMES |= {f"ta type {k}": f"T-A type {k}" for k in range(1, 5)}
AXES = {"kernel_evaluations": "kernel evaluations a row", "binary_decisions": "decisions a row",
        "size_kparameters": "size (thousand parameters)", "train_s": "seconds to train"}  # fmt: skip


def idea(graph: DecisionGraph, path: np.ndarray, image: np.ndarray, names, code: np.ndarray, table: pd.DataFrame):
    """Figure of the idea: one digit's way through the DDAG, and all systems by accuracy and cost.

    Drawn for a narrow page: only nodes on the way and leaves are named.
    """
    fig, (top, bottom) = figure(2, 1, size=(6.0, 9.2), height_ratios=(1.25, 1))
    place, met = layout(graph), way(graph, path)
    steps = set(zip(met, met[1:], strict=False))
    for k in np.flatnonzero(graph.machine >= 0).tolist():
        for child in (int(graph.left[k]), int(graph.right[k])):
            look = dict(color=RED, lw=2.5) if (k, child) in steps else dict(color="0.8", lw=0.9)
            top.plot(*zip(place[k], place[child], strict=True), zorder=1, **look)
    for k in range(graph.n_nodes):
        m, on_way = graph.machine[k], k in met
        if m < 0 or on_way:
            text = names[graph.label[k]] if m < 0 else " or ".join(names[c] for c in np.flatnonzero(code[m]))
            box = dict(boxstyle="round", fc="#dbe9f6" if m < 0 else "white", ec=RED if on_way else "0.5", lw=1.5)
            top.text(
                *place[k], text + ("?" if m >= 0 else ""), ha="center", va="center", fontsize=11, zorder=3, bbox=box
            )
        else:
            top.plot(*place[k], "o", color="0.75", ms=6, zorder=2)
    inset = top.inset_axes((0.0, 0.72, 0.24, 0.26), anchor="NW")
    inset.imshow(image, cmap="Greys")
    inset.set(xticks=[], yticks=[])
    inset.spines[:].set(visible=True, color=RED, lw=1.6)
    top.set_axis_off()
    top.set_title(f"A digit meets {len(met) - 1} of {len(code)} machines on its way", fontsize=12)
    cloud(bottom, table, "kernel_evaluations", "accuracy_pct", size=9.5)
    bottom.set_xlim(0, 1.12 * table["kernel_evaluations"].max())
    bottom.set_title("The same machines, asked in many ways; and one machine a class", fontsize=12)
    return fig


def cloud(ax, table: pd.DataFrame, cost: str, height: str, every: bool = True, size: float = 7) -> None:
    """Draw systems by cost and accuracy, the Pareto front as steps; name all, or those on the front."""
    for family, t in table.groupby("family", sort=False):
        ax.plot(
            t[cost],
            t[height],
            MARKERS[family],
            color=COLOURS[family],
            ms=9 if family == "conformal" else 6,
            label=family,
            alpha=0.85,
        )
    best = front(table[height], table[cost]) & (table["family"] != "peer")
    line = table[best].sort_values(cost)
    ax.plot(line[cost], line[height], color="0.75", lw=1, zorder=0, drawstyle="steps-post")
    ax.set(xlabel=AXES[cost], ylabel="accuracy (%)")
    named = table if every else table[best]
    ax.figure.draw_without_rendering()  # settles the layout, which the labels' places depend on
    label(ax, table[[cost, height]].to_numpy(), named[[cost, height]].to_numpy(), named["system"].map(NAMES), size)


def label(ax, points: np.ndarray, at: np.ndarray, texts, size: float = 7) -> None:
    """Write each text beside its place, where it covers fewest points and texts already there."""
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in ax.transData.transform(points)]
    scale = ax.figure.dpi / 72
    for place, (x, y), text in zip(at, ax.transData.transform(at), texts, strict=True):
        wide, high = 0.62 * size * len(text) * scale, 1.1 * size * scale
        spots = [(dx, dy) for dx in (6, -9 - wide / scale, -wide / scale / 2) for dy in (0, 9, -9, 17, -17)]

        def box(spot, x=x, y=y, wide=wide, high=high):
            left, middle = x + spot[0] * scale, y + spot[1] * scale
            return left, middle - high / 2, left + wide, middle + high / 2

        def covered(spot):
            a = box(spot)
            shared = [
                max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1])) for b in taken
            ]
            outside = max(0, a[2] - ax.bbox.x1, ax.bbox.x0 - a[0]) + max(0, a[3] - ax.bbox.y1, ax.bbox.y0 - a[1])
            return sum(shared) + 20 * outside + 0.5 * abs(spot[1]) + (0.3 if spot[0] < 0 else 0)

        best = min(spots, key=covered)
        taken.append(box(best))
        ax.annotate(text, place, xytext=best, textcoords="offset points", fontsize=size, va="center")


def nemenyi(ax, found: Ranks, names: Sequence[str]) -> None:
    """Draw mean ranks on one line, best at the left; bars join systems that Nemenyi's test does not tell apart."""
    order, k = np.argsort(found.mean, kind="stable"), len(names)
    half, bars = -(-k // 2), cliques(found.mean, found.critical_difference)
    depth = 0.35 * len(bars) + 0.6
    low, high = found.mean.min(), found.mean.max()
    for place, s in enumerate(order):
        left = place < half
        y, x = -depth - (place if left else k - 1 - place), found.mean[s]
        edge = low - 0.6 if left else high + 0.6
        ax.plot([x, x, edge], [0, y, y], color="0.5", lw=0.8)
        bold = "bold" if names[s] == "conformal" else "normal"
        ax.text(edge + (-0.1 if left else 0.1), y, f"{NAMES[names[s]]}  {x:.1f}", ha="right" if left else "left",
                va="center", fontsize=8, fontweight=bold)  # fmt: skip
    for level, group in enumerate(bars):
        x = found.mean[group]
        ax.plot([x.min() - 0.05, x.max() + 0.05], [-0.35 * (level + 1)] * 2, color="black", lw=3, solid_capstyle="butt")
    ax.plot([low, high], [0, 0], color="black", lw=1)
    ax.plot(found.mean, np.zeros(k), "|", color="black", ms=8)
    ax.plot([low, low + found.critical_difference], [0.9, 0.9], color=RED, lw=2)
    ax.text(low, 1.2, f"critical difference {found.critical_difference:.2f}", color=RED, fontsize=8, va="bottom")
    ax.set(xlim=(low - 0.35 * (high - low) - 1, high + 0.35 * (high - low) + 1), ylim=(-depth - half, 2))
    ax.set_axis_off()
