"""Systems by accuracy and cost."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.text import Text

from ..statistics import front
from . import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

FAMILY_COLOURS = {
    "rest": GREY,
    "pairs": ORANGE,
    "DAG": BLUE,
    "tree": GREEN,
    "DCSVM": RED,
    "codes": PINK,
    "direct": SKY,
    "peer": "black",
    "filtered": "#222222",
}
MARKERS = dict(zip(FAMILY_COLOURS, "svo^DPX+*", strict=True))
NAMES = {  # what systems are called in figures; others are called by their key
    "1-v-r": "one-vs-rest",
    "max-wins": "Max Wins",
    "and-gate": "AND gate",
    "dagsvm": "DAG",
    "adaptive": "adaptive DAG",
    "filtered": "filtered DAG",
    "filtered dcsvm": "filtered DCSVM",
    "bts": "BTS",
    "c-bts": "c-BTS",
    "btppsvm": "BTPPSVM",
    "dcsvm 0%": "DCSVM 0%",
    "dcsvm 2%": "DCSVM 2%",
    "dcsvm 5%": "DCSVM 5%",
    "posterior ovo": "posterior 1-v-1",
    "posterior ovr": "posterior 1-v-r",
    "ecoc dense": "ECOC dense",
    "ecoc sparse": "ECOC sparse",
    "crammer-singer": "Crammer-Singer",
    "weston-watkins": "Weston-Watkins",
    "libsvm": "LIBSVM",
    "ta type 1": "T-A type 1",
    "ta type 2": "T-A type 2",
    "ta type 3": "T-A type 3",
    "ta type 4": "T-A type 4",
}
AXES = {
    "kernel_evaluations": "kernel evaluations a row",
    "binary_decisions": "decisions a row",
    "size_kparameters": "size (thousand parameters)",
    "train_s": "seconds to train",
}
TURNS = 24  # directions in which a text is tried around its point
REACHES = (7, 13, 20, 28, 38, 50)  # and distances, in points
LED = 13  # points from which on a thin line leads to a text
ROUNDS = 3  # times that each text looks for a place: again, once the others have one


def cloud(
    ax, table: pd.DataFrame, cost: str, height: str, every: bool = True, size: float = 7
) -> None:
    """Draw systems by cost and accuracy, the Pareto front as steps.

    All are named, or those on the front; `size` is that of the names.
    """
    for family, t in table.groupby("family", sort=False):
        ax.plot(
            t[cost],
            t[height],
            MARKERS[family],
            color=FAMILY_COLOURS[family],
            ms=9 if family == "filtered" else 6,
            label=family,
            alpha=0.85,
        )
    best = front(table[height], table[cost]) & (table["family"] != "peer")
    line = table[best].sort_values(cost)
    steps = {"color": "0.75", "lw": 1, "zorder": 0, "drawstyle": "steps-post"}
    ax.plot(line[cost], line[height], **steps)
    ax.set(xlabel=AXES[cost], ylabel="accuracy (%)")
    named = table if every else table[best]
    # settles the layout, which the labels' places depend on
    ax.figure.draw_without_rendering()
    texts = named["system"].replace(NAMES)
    points = table[[cost, height]].to_numpy()
    label(ax, points, named[[cost, height]].to_numpy(), texts, size)


def _directions() -> np.ndarray:
    """Unit vectors all around: (TURNS, 2)."""
    turn = 2 * np.pi * np.arange(TURNS) / TURNS
    return np.column_stack([np.cos(turn), np.sin(turn)])


def _notes(ax, at: np.ndarray, texts, size: float) -> list:
    """Write each text on its place, with a thin line to it."""
    thin = {"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 0, "shrinkB": 3}
    look = {"fontsize": size, "ha": "center", "va": "center", "arrowprops": thin}
    return [
        ax.annotate(text, place, (0, 0), textcoords="offset points", **look)
        for place, text in zip(at, texts, strict=True)
    ]


def label(ax, points: np.ndarray, at: np.ndarray, texts, size: float = 7) -> None:
    """Write each text near its place, where it covers fewest points and other texts.

    A thin line leads to a text that is far away, or nearer to another point. `points`
    and `at` are (n, 2), in the units of the axes.
    """
    unit = ax.figure.dpi / 72
    notes = _notes(ax, at, texts, size)
    extents = map(Text.get_window_extent, notes)
    sizes = [(box.width + 2 * unit, box.height) for box in extents]
    half = np.array(sizes).reshape(-1, 2) / 2
    room = _Room(
        spread=ax.transData.transform(points),
        low=ax.bbox.min,
        high=ax.bbox.max,
        unit=unit,
        reach=np.repeat(REACHES, TURNS),
        ways=np.tile(_directions(), (len(REACHES), 1)),
    )
    places = ax.transData.transform(at)
    boxes = np.full((len(notes), 4), np.nan)
    for k in [*range(len(notes))] * ROUNDS:
        others = np.delete(boxes, k, axis=0)
        centre, boxes[k], led = room.best(places[k], half[k], others)
        notes[k].set_position((centre - places[k]) / unit)
        notes[k].arrow_patch.set_visible(led)


@dataclass(frozen=True)
class _Room:
    """Where texts may stand: all in pixels.

    Attributes
    ----------
    spread : (points, 2), what texts should not cover.
    low, high : corners of the axes.
    unit : pixels of a point of type.
    reach, ways : (spots,) and (spots, 2), the distances, in points of type, and
        directions that are tried.
    """

    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unit: float
    reach: np.ndarray
    ways: np.ndarray

    def best(self, place: np.ndarray, half: np.ndarray, others: np.ndarray) -> tuple:
        """(centre, box, whether a line leads there) of a text of half that size.

        `others` are the boxes of other texts, NaN where one has no place yet.
        """
        unit = self.unit
        reach = self.reach[:, None]  # (spots, 1)
        centre = place + self.ways * (unit * reach + half)  # (spots, 2)
        spots = _boxes(centre, half)
        # what a line to the text would cross, seen at one place on its way
        lead = place + self.ways * (0.6 * unit * reach)
        crossed = covered(_boxes(lead, 3 * unit), others)
        marks = _boxes(self.spread, 4 * unit)
        above = np.maximum(spots[:, 2:] - self.high, 0)
        below = np.maximum(self.low - spots[:, :2], 0)
        astray = self._astray(spots, place)
        # square pixels: a text covered is twice as bad as a mark, outside the axes ten
        # times as bad as that; near, and to the right of its point, is better
        cost = covered(spots, marks) + 2 * covered(spots, others) + 5 * crossed
        cost += 20 * (above + below).sum(axis=1)
        right = self.ways[:, 0]
        cost += unit**2 * (0.8 * self.reach - 2 * right + 30 * astray)
        k = int(np.argmin(cost))
        led = self.reach[k] > LED or astray[k]
        return centre[k], spots[k], bool(led)

    def _astray(self, spots: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether each spot is nearer to another point than to its own."""
        # how far each point is outside each spot, across and up: (spots, points, 2)
        before = spots[:, None, :2] - self.spread
        behind = self.spread - spots[:, None, 2:]
        outside = np.maximum(np.maximum(before, behind), 0)
        gap = np.linalg.norm(outside, axis=2)
        own = np.isclose(self.spread, place).all(axis=1)
        nearest_other = gap[:, ~own].min(axis=1, initial=np.inf)
        return nearest_other < gap[:, own].min(axis=1)


def _boxes(centre: np.ndarray, half) -> np.ndarray:
    """Boxes of a half size around their centres, (n, 4): left, bottom, right, top."""
    return np.hstack([centre - half, centre + half])


def covered(spots: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Area of each spot that boxes cover; a box of NaN covers nothing.

    Both are (n, 4): left, bottom, right, top.
    """
    low = np.fmax(spots[:, None, :2], boxes[:, :2])  # (spots, boxes, 2), as high
    high = np.fmin(spots[:, None, 2:], boxes[:, 2:])
    shared = np.maximum(high - low, 0).prod(axis=2)
    shared = np.where(np.isnan(boxes[:, 0]), 0, shared)
    return shared.sum(axis=1)
