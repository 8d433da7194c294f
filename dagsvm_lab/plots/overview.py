"""Systems by accuracy and cost."""

import numpy as np
import pandas as pd
from matplotlib.text import Text

from ..statistics import front
from . import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

COLOURS = {"rest": GREY, "pairs": ORANGE, "DAG": BLUE, "tree": GREEN, "DCSVM": RED, "codes": PINK, "direct": SKY,
           "peer": "black", "conformal": "#222222"}  # fmt: skip
MARKERS = dict(zip(COLOURS, "svo^DPX+*", strict=True))


NAMES = {  # what systems are called in figures; others are called by their key
    "1-v-r": "one-vs-rest", "max-wins": "Max Wins", "and-gate": "AND gate", "dagsvm": "DAG", "adaptive": "adaptive DAG",
    "conformal": "conformal DAG", "conformal ranges": "ranges alone",
    "bts": "BTS", "c-bts": "c-BTS", "btppsvm": "BTPPSVM", "dcsvm 0%": "DCSVM 0%", "dcsvm 2%": "DCSVM 2%",
    "dcsvm 5%": "DCSVM 5%", "posterior ovo": "posterior 1-v-1", "posterior ovr": "posterior 1-v-r",
    "ecoc dense": "ECOC dense", "ecoc sparse": "ECOC sparse", "crammer-singer": "Crammer-Singer",
    "weston-watkins": "Weston-Watkins", "libsvm": "LIBSVM",
} | {f"ta type {k}": f"T-A type {k}" for k in range(1, 5)}  # fmt: skip
AXES = {"kernel_evaluations": "kernel evaluations a row", "binary_decisions": "decisions a row",
        "size_kparameters": "size (thousand parameters)", "train_s": "seconds to train"}  # fmt: skip


def cloud(ax, table: pd.DataFrame, cost: str, height: str, every: bool = True, size: float = 7) -> None:
    """Draw systems by cost and accuracy, the Pareto front as steps; name all, or those on the front."""
    for family, t in table.groupby("family", sort=False):
        ms = 9 if family == "conformal" else 6
        ax.plot(t[cost], t[height], MARKERS[family], color=COLOURS[family], ms=ms, label=family, alpha=0.85)
    best = front(table[height], table[cost]) & (table["family"] != "peer")
    line = table[best].sort_values(cost)
    ax.plot(line[cost], line[height], color="0.75", lw=1, zorder=0, drawstyle="steps-post")
    ax.set(xlabel=AXES[cost], ylabel="accuracy (%)")
    named = table if every else table[best]
    ax.figure.draw_without_rendering()  # settles the layout, which the labels' places depend on
    label(ax, table[[cost, height]].to_numpy(), named[[cost, height]].to_numpy(), named["system"].replace(NAMES), size)


def label(ax, points: np.ndarray, at: np.ndarray, texts, size: float = 7) -> None:
    """Write each text near its place, where it covers fewest points and other texts.

    A thin line leads to a text that is far away, or nearer to another point.
    """
    unit = ax.figure.dpi / 72
    spread, places = ax.transData.transform(points), ax.transData.transform(at)
    marks = np.hstack([spread - 4 * unit, spread + 4 * unit])
    thin = dict(arrowstyle="-", color="0.6", lw=0.6, shrinkA=0, shrinkB=3)
    notes = [ax.annotate(text, place, (0, 0), textcoords="offset points", fontsize=size, ha="center", va="center",
                         arrowprops=thin) for place, text in zip(at, texts, strict=True)]  # fmt: skip
    extents = [Text.get_window_extent(note) for note in notes]
    half = np.array([(box.width + 2 * unit, box.height) for box in extents]).reshape(-1, 2) / 2
    turn = 2 * np.pi * np.arange(24) / 24
    reach = np.repeat([7, 13, 20, 28, 38, 50], len(turn))
    ways = np.tile(np.column_stack([np.cos(turn), np.sin(turn)]), (6, 1))
    boxes = np.full((len(notes), 4), np.nan)
    for k in [*range(len(notes))] * 3:  # again, once the others have a place
        centre = places[k] + ways * (unit * reach[:, None] + half[k])
        spots = np.hstack([centre - half[k], centre + half[k]])
        out = np.maximum(spots[:, 2:] - ax.bbox.max, 0) + np.maximum(ax.bbox.min - spots[:, :2], 0)
        others, lead = np.delete(boxes, k, axis=0), places[k] + ways * (0.6 * unit * reach[:, None])
        crossed = covered(np.hstack([lead - 3 * unit, lead + 3 * unit]), others)
        cost = covered(spots, marks) + 2 * covered(spots, others) + 5 * crossed + 20 * out.sum(axis=1)
        beside = np.maximum(spots[:, None, :2] - spread, spread - spots[:, None, 2:])
        gap, own = np.linalg.norm(np.maximum(beside, 0), axis=2), np.isclose(spread, places[k]).all(axis=1)
        astray = gap[:, ~own].min(axis=1, initial=np.inf) < gap[:, own].min(axis=1)
        best = np.argmin(cost + unit**2 * (0.8 * reach - 2 * ways[:, 0] + 30 * astray))
        boxes[k] = spots[best]
        notes[k].set_position((centre[best] - places[k]) / unit)
        notes[k].arrow_patch.set_visible(reach[best] > 13 or astray[best])


def covered(spots: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Area of each spot (left, bottom, right, top) that boxes cover; a box of NaN covers nothing."""
    low = np.fmax(spots[:, None, :2], boxes[:, :2])
    high = np.fmin(spots[:, None, 2:], boxes[:, 2:])
    shared = np.maximum(high - low, 0).prod(axis=2)
    return np.where(np.isnan(boxes[:, 0]), 0, shared).sum(axis=1)
