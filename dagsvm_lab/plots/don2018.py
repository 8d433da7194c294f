"""Figures of Rathgamage Don and Iacob 2018's notebook: functions of tables or fitted systems that return a Figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..machines import pair_code
from ..systems import DCSVC
from . import BLUE, GREEN, GREY, ORANGE, PALETTE, PINK, RED, SKY, figure
from .graphs import draw

METHODS = {"builtin": ("built-in", GREY), "ovo": ("one-versus-one", ORANGE), "dcsvm": ("DCSVM", BLUE)}
SYSTEMS = {
    "max-wins": ("Max Wins", "s", GREY),
    "dagsvm": ("DAGSVM", "v", GREEN),
    "adaptive": ("adaptive DAG", "^", PINK),
    "bts": ("BTS", "P", RED),
    "dcsvm": ("DCSVM .01 %", "o", BLUE),
    "dcsvm-2": ("DCSVM 2 %", "D", SKY),
}


def idea(X: np.ndarray, y: np.ndarray, est: DCSVC, table: pd.DataFrame):
    """Figure 1: the classes, the line of machine 1-2, and the share of every class on each side of it."""
    fig, (ax, bars) = figure(1, 2, size=(8.4, 3.6), width_ratios=(1.25, 1))
    for label, colour in zip(est.classes_, PALETTE, strict=False):
        here = X[y == label]
        ax.scatter(*here.T, s=5, color=colour, alpha=0.6, lw=0, rasterized=True)
        ax.text(*here.mean(axis=0), str(label), weight="bold", ha="center", va="center", size=12,
                bbox=dict(boxstyle="circle", fc="white", ec=colour, alpha=0.85))  # fmt: skip
    u, v = np.meshgrid(*(np.linspace(*np.quantile(x, [0, 1]), 100) for x in X.T))
    f = est.machines_.decision(np.column_stack([u.ravel(), v.ravel()]), machines=np.array([0])).reshape(u.shape)
    ax.contour(u, v, f, levels=[0], colors="black", linewidths=1.8)
    ax.set(xticks=[], yticks=[], title="Machine 1-2 knows two classes, and divides all six")
    at = np.arange(len(table))[::-1]
    bars.barh(at, table["first_pct"], color=PALETTE[0], label="called 1")
    bars.barh(at, table["second_pct"], left=table["first_pct"], color=PALETTE[1], label="called 2")
    bars.set(yticks=at, yticklabels=[f"class {c}" for c in table["label"]], xlabel="% of the class")
    bars.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return fig


def all_predictions(table: pd.DataFrame, title: str):
    """Figure 2: a row a machine, a column a class; each cell says what share goes to the first and the second class."""
    wide = table.pivot(index="machine", columns="label", values="first_pct").loc[table["machine"].unique()]
    fig, ax = figure(size=(6.6, 5.2))
    image = ax.imshow(wide, cmap="RdYlBu", vmin=0, vmax=100, aspect="auto")
    for (i, j), value in np.ndenumerate(wide.to_numpy()):
        pale = 15 < value < 85
        text = f"{value:.3g} | {100 - value:.3g}" if pale or value in (0, 100) else f"{value:.1f} | {100 - value:.1f}"
        ax.text(j, i, text, ha="center", va="center", fontsize=7.5, color="black" if pale else "white")
    ax.set_xticks(range(wide.shape[1]), [f"class {c}" for c in wide.columns])
    ax.set_yticks(range(len(wide)), [f"{k}. {m}" for k, m in enumerate(wide.index, 1)])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    fig.colorbar(image, ax=ax, label="% of the class called the machine's first")
    ax.set_title(title)
    return fig


def tree(est: DCSVC, x: np.ndarray, title: str):
    """Figure 3: the decision tree, and the way of row x through it."""
    fig, axes = figure(1, 2, size=(11, 5.2))
    code = pair_code(len(est.classes_))
    f = est.machines_.decision(x[None])[0]
    for ax, path, head in zip(axes, (None, f), ("(a) the whole tree", f"(b) {title}"), strict=True):
        draw(est.graph_, ax, names=est.classes_, code=code, path=path, size=8)
        ax.set_title(head)
    return fig


def protocols(table: pd.DataFrame):
    """One-versus-one's accuracy on every set: as printed, and under both protocols (columns of `table`)."""
    fig, ax = figure(size=(7.6, 4.2))
    at = np.arange(len(table))[::-1]
    ax.hlines(at, 0, 100, color="0.92", lw=0.8, zorder=0)
    marks = {"published": ("D", "black", 34), "as run": ("o", BLUE, 46), "as it should be": ("s", ORANGE, 34)}
    for column, (marker, colour, size) in marks.items():
        ax.scatter(table[column], at, marker=marker, s=size, label=column, alpha=0.9, lw=1.3,
                   facecolors="none" if column == "published" else colour, edgecolors=colour)  # fmt: skip
    ax.set(yticks=at, yticklabels=table["dataset"], xlim=(20, 102), xlabel="accuracy of one-versus-one, %")
    ax.set_title("The printed accuracies are those of untuned machines, not always of the set one expects")
    ax.legend(loc="lower left", bbox_to_anchor=(0.02, 0.3))
    return fig


def methods(summed: pd.DataFrame, columns: dict[str, str], title: str, groups: Sequence[Sequence[str]]):
    """Figures 4 to 7: a row of panels a quantity, a panel a group of sets, a bar a method."""
    from matplotlib.ticker import LogLocator

    fig, axes = figure(len(columns), len(groups), size=(9.6, 2.5 * len(columns)), squeeze=False)
    for row, (column, label) in zip(axes, columns.items(), strict=True):
        for ax, names in zip(row, groups, strict=True):
            wide = summed.pivot(index="dataset", columns="method", values=column)
            wide = wide.reindex([n for n in names if n in wide.index])[[m for m in METHODS if m in wide]].dropna(axis=1)
            width = 0.8 / max(1, wide.shape[1])
            for k, method in enumerate(wide.columns):
                name, colour = METHODS[method]
                ax.bar(np.arange(len(wide)) + (k - (wide.shape[1] - 1) / 2) * width, wide[method], width,
                       color=colour, label=name)  # fmt: skip
            ax.set_xticks(range(len(wide)), wide.index, rotation=25, ha="right", fontsize=7.5)
            ax.set_ylabel(label)
            if column != "accuracy_pct":
                ax.set_yscale("log")
                ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                ax.yaxis.set_major_formatter("{x:g}")
                ax.yaxis.set_minor_formatter("")
    axes[0, -1].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3)
    fig.suptitle(title, x=0.02, ha="left", fontsize=10)
    return fig


def thresholds(table: pd.DataFrame, title: str):
    """Figure 8: accuracy and steps over thresholds, a line a set."""
    fig, axes = figure(1, 2, size=(8.6, 3.4))
    for (name, here), colour in zip(table.groupby("dataset", sort=False), PALETTE, strict=False):
        for ax, column in zip(axes, ("accuracy_pct", "steps"), strict=True):
            ax.plot(here["threshold_pct"], here[column], "o-", ms=3, color=colour, label=name)
    axes[0].set(xlabel="threshold θ, %", ylabel="accuracy, %")
    axes[1].set(xlabel="threshold θ, %", ylabel="steps a decision", ylim=(0, None))
    axes[1].legend()
    fig.suptitle(title, fontsize=10)
    return fig


def letter_methods(table: pd.DataFrame, title: str):
    """Figure 9: Letter's accuracy over thresholds, beside the two methods that have none."""
    fig, ax = figure(size=(5.6, 3.4))
    for method, (name, colour) in METHODS.items():
        here = table[table["method"] == method]
        ax.plot(here["threshold_pct"], here["accuracy_pct"], "o-" if method == "dcsvm" else "--", ms=3.5, color=colour,
                label=name)  # fmt: skip
    ax.set(xlabel="threshold θ, %", ylabel="accuracy on letter, %", title=title)
    ax.legend(loc="lower left")
    return fig


def separation(table: pd.DataFrame):
    """Figure 10: share of decided cells of the all-predictions table over thresholds, a panel a set."""
    names = table["dataset"].unique()
    fig, axes = figure(1, len(names), size=(2.5 * len(names), 2.6), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        here = table[table["dataset"] == name]
        ax.plot(here["threshold_pct"], here["separation_pct"], "o-", ms=3, color=BLUE)
        ax.set(title=name, xlabel="threshold θ, %")
    axes[0, 0].set_ylabel("decided cells, %")
    return fig


def pareto(table: pd.DataFrame, columns: int = 5):
    """Accuracy against kernel evaluations of every system over one bank, a panel a set."""
    names = table["dataset"].unique()
    rows = -(-len(names) // columns)
    fig, axes = figure(rows, columns, size=(2.15 * columns, 2.1 * rows + 0.4), squeeze=False)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    for ax, name in zip(axes.flat, names, strict=False):
        here = table[table["dataset"] == name].set_index("system")
        for system, (label, marker, colour) in SYSTEMS.items():
            if system in here.index:
                place = here.loc[system, ["kernel_evaluations", "accuracy_pct"]]
                ax.scatter(*place, marker=marker, s=38, color=colour, label=label, alpha=0.85, lw=0)
        ax.set_title(name, fontsize=9)
        ax.margins(0.15)
        ax.tick_params(labelsize=7)
        ax.locator_params(nbins=4)
    fig.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SYSTEMS))
    fig.supxlabel("unique support vectors met (kernel evaluations) a decision", fontsize=9)
    fig.supylabel("accuracy, %", fontsize=9)
    return fig
