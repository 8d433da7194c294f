"""The figures of the tour and of the head-to-head: a bank, its graphs, the plane they carve, what they cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..graphs import DecisionGraph
from ..machines import Bank
from ..protocols.overview import front
from . import BLUE, GREEN, GREY, ORANGE, PALETTE, PINK, RED, SKY, figure
from .graphs import draw

COLOURS = {"rest": GREY, "pairs": ORANGE, "DAG": BLUE, "tree": GREEN, "DCSVM": RED, "codes": PINK, "direct": SKY,
           "peer": "black"}  # fmt: skip
MARKERS = dict(zip(COLOURS, "svo^DPX+", strict=True))
NAMES = {
    "1-v-r": "one-vs-rest", "max-wins": "Max Wins", "and-gate": "AND gate", "dagsvm": "DAG", "adaptive": "adaptive DAG",
    "bts": "BTS", "c-bts": "c-BTS", "btppsvm": "BTPPSVM", "dcsvm 0%": "DCSVM 0%", "dcsvm 2%": "DCSVM 2%",
    "dcsvm 5%": "DCSVM 5%", "posterior ovo": "posterior 1-v-1", "posterior ovr": "posterior 1-v-r",
    "ecoc dense": "ECOC dense", "ecoc sparse": "ECOC sparse", "crammer-singer": "Crammer-Singer",
    "weston-watkins": "Weston-Watkins", "libsvm": "LIBSVM",
}  # fmt: skip
NAMES |= {f"ta type {k}": f"T-A type {k}" for k in range(1, 5)}
AXES = {"kernel_evaluations": "kernel evaluations a row", "binary_decisions": "decisions a row",
        "size_kparameters": "size (thousand parameters)", "train_s": "seconds to train"}  # fmt: skip


def bank_picture(bank: Bank, names: list[str]):
    """Figure of the bank itself: a row a machine, a column a support vector, coloured by the coefficient's sign."""
    order = np.argsort(bank.support_class, kind="stable")
    sign = np.sign(bank.coef.toarray()[:, order])
    fig, ax = figure(size=(7.4, 3.4))
    ax.imshow(np.ma.masked_equal(sign, 0), aspect="auto", cmap="coolwarm", interpolation="none", rasterized=True)
    edges = np.searchsorted(bank.support_class[order], np.arange(len(names) + 1))
    ax.vlines(edges[1:-1] - 0.5, -0.5, len(sign) - 0.5, color="0.8", lw=0.6)
    ax.set_xticks((edges[:-1] + edges[1:]) / 2, names)
    ax.tick_params(axis="x", length=0)
    sides = [tuple(names[c] for c in (*np.flatnonzero(row > 0), *np.flatnonzero(row < 0))) for row in bank.code]
    shown = np.linspace(0, len(sides) - 1, 10).round().astype(int)
    ax.set_yticks(shown, [f"{sides[t][0]} vs {sides[t][1]}" for t in shown])
    ax.set(xlabel="support vectors, by class: each is stored once", ylabel="machine")
    ax.set_title(f"{len(sign)} machines share {len(order)} support vectors")
    return fig


def drawn(graph: DecisionGraph, names, code, path=None, title: str = "", inches=(7.4, 4.6), **look):
    """Figure of one graph, a row's way through it in colour."""
    fig, ax = figure(size=inches)
    draw(graph, ax, names=names, code=code, path=path, **look)
    ax.set_title(title)
    return fig


def regions(answers: Mapping[str, np.ndarray], grid: tuple[np.ndarray, np.ndarray], X: np.ndarray, y: np.ndarray):
    """Figure of the plane as each system divides it; -1 is unclassified and stays white."""
    from matplotlib.colors import ListedColormap

    fig, axes = figure(2, len(answers) // 2, size=(8.4, 5.6), sharex=True, sharey=True)
    cmap = ListedColormap(["white", *PALETTE[: y.max() + 1]])
    extent = (grid[0].min(), grid[0].max(), grid[1].min(), grid[1].max())
    for ax, (name, labels) in zip(axes.flat, answers.items(), strict=True):
        look = dict(cmap=cmap, vmin=-1, vmax=y.max(), alpha=0.5, aspect="auto", interpolation="none")
        ax.imshow(labels, origin="lower", extent=extent, **look)
        ax.scatter(*X[::4].T, c=np.array(PALETTE)[y[::4]], s=7, lw=0.4, edgecolors="white")
        ax.set(title=name, xticks=[], yticks=[], xlim=extent[:2], ylim=extent[2:])
    return fig


def idea(graph: DecisionGraph, path: np.ndarray, image: np.ndarray, names, code: np.ndarray, table: pd.DataFrame):
    """Figure of the idea: one digit's way through the DDAG, and all graphs over the same bank by accuracy and cost."""
    fig, (left, right) = figure(1, 2, size=(9.4, 4.4), width_ratios=(1.35, 1))
    draw(graph, left, names=names, code=code, path=path, states=False, size=6.2)
    inset = left.inset_axes((0.03, 0.74, 0.2, 0.24), anchor="NW")
    inset.imshow(image, cmap="Greys")
    inset.set(xticks=[], yticks=[])
    inset.spines[:].set(visible=True, color="C3", lw=1.6)
    left.set_title(f"A digit meets {(code.shape[1] - 1)} of {len(code)} machines on its way through the DDAG")
    right.set_xlim(0, 1.12 * table["kernel_evaluations"].max())
    cloud(right, table, "kernel_evaluations", "accuracy_pct")
    right.set_title("One bank of machines, asked in many ways")
    return fig


def cloud(ax, table: pd.DataFrame, cost: str, height: str, every: bool = True) -> None:
    """Nothing; draws systems by cost and accuracy, the Pareto front as steps; names all, or those on the front."""
    for family, t in table.groupby("family", sort=False):
        ax.plot(t[cost], t[height], MARKERS[family], color=COLOURS[family], ms=6, label=family, alpha=0.85)
    best = front(table[height], table[cost]) & (table["family"] != "peer")
    line = table[best].sort_values(cost)
    ax.plot(line[cost], line[height], color="0.75", lw=1, zorder=0, drawstyle="steps-post")
    ax.set(xlabel=AXES[cost], ylabel="accuracy (%)")
    named = table if every else table[best]
    ax.figure.draw_without_rendering()  # settles the layout, which the labels' places depend on
    label(ax, table[[cost, height]].to_numpy(), named[[cost, height]].to_numpy(), named["system"].map(NAMES.get))


def label(ax, points: np.ndarray, at: np.ndarray, texts, size: float = 7) -> None:
    """Nothing; writes each text beside its place, where it covers fewest points and texts already there."""
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


def fronts(table: pd.DataFrame):
    """Figure of accuracy against kernel evaluations, a panel a data set."""
    sets = list(dict.fromkeys(table["dataset"]))
    rows = -(-len(sets) // 3)
    fig, axes = figure(rows, 3, size=(9.6, 2.7 * rows), squeeze=False)
    for ax in axes.flat[len(sets) :]:
        ax.set_axis_off()
    for ax, name in zip(axes.flat, sets, strict=False):
        t = table[table["dataset"] == name]
        floor = t["accuracy_pct"].max() - 8
        cloud(ax, t[t["accuracy_pct"] >= floor], "kernel_evaluations", "accuracy_pct", every=False)
        ax.set_title(name)
    handles = {text: line for ax in axes.flat for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles, loc="outside lower center", ncols=8)
    return fig


def overall(summary: pd.DataFrame, floor: float = -4.0):
    """Figure of mean accuracy against two relative costs; systems under `floor` stand on it, with their number."""
    fig, axes = figure(1, 2, size=(9.6, 4.6), sharey=True)
    table = summary.assign(height=summary["points"].clip(lower=floor))
    for ax, cost in zip(axes, ("kernel_evaluations", "train_s"), strict=True):
        if cost == "train_s":
            ax.set_xscale("log", subs=())
            ax.set_xticks(ticks := (0.1, 0.2, 0.5, 1, 2, 5, 10), ticks)
        ax.axhline(0, color="0.9", zorder=0)
        cloud(ax, table, cost, "height")
        ax.set(xlabel=f"{AXES[cost]}, as a multiple of Max Wins'", ylabel="points of accuracy above Max Wins")
    low = summary[summary["points"] < floor]
    below = ", ".join(f"{NAMES[name]} {points:.1f}" for name, points in zip(low["system"], low["points"], strict=True))
    title = "Graphs keep the votes' accuracy at about half the kernel evaluations (means over the data sets)"
    fig.suptitle(title + (f"\non the floor: {below}" if below else ""), fontsize=10)
    return fig


def rank_picture(table: pd.DataFrame):
    """Figure of mean ranks; systems in the grey band are not told apart from the best (Nemenyi, .05)."""
    fig, axes = figure(1, 2, size=(8.6, 4.4))
    for ax, (quantity, t) in zip(axes, table.groupby("quantity"), strict=True):
        t = t.sort_values("mean_rank", ascending=False)
        best = t["mean_rank"].min()
        ax.axvspan(best, best + t["critical_difference"].iloc[0], color="0.92", zorder=0)
        ax.plot(t["mean_rank"], range(len(t)), "o", color=BLUE, ms=5)
        ax.set_yticks(range(len(t)), t["system"].map(NAMES.get), fontsize=7)
        what = {"accuracy_pct": "accuracy", "kernel_evaluations": "kernel evaluations"}[quantity]
        ax.set(xlabel="mean rank", title=f"{what}: Friedman p = {t['p'].iloc[0]:.1g}")
    return fig


def growth(table: pd.DataFrame):
    """Figure of costs against the number of classes, with the exponents of N."""
    fig, axes = figure(1, 3, size=(10.2, 3.6))
    colours = dict(zip(dict.fromkeys(table["system"]), PALETTE, strict=False))
    for ax, cost in zip(axes, ("kernel_evaluations", "binary_decisions", "train_s"), strict=True):
        for name, t in table.groupby("system", sort=False):
            exponent = t[f"{cost}_exponent"].iloc[0]
            ax.loglog(
                t["n_classes"], t[cost], "o-", ms=3, color=colours[name], label=f"{NAMES[name]}: N^{exponent:.1f}"
            )
        ns = sorted(set(table["n_classes"]))
        ax.set_xticks(ns, ns)
        ax.minorticks_off()
        ax.set(xlabel="classes N", title=AXES[cost])
        ax.set_ylim(top=6 * table[cost].max())  # room for the legend
        ax.legend(fontsize=7, loc="upper left")
    return fig
