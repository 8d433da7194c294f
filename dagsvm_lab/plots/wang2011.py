"""Figures of Wang, Zheng and Zhou 2011's notebook: functions of tables or fitted systems that return a Figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from . import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, figure
from .graphs import draw

SETS = {"letter": "Letter", "optdigit": "Optdigit", "pendigit": "Pendigit", "mnist": "MNIST-49"}
TREES = {"svm_cbts": ("c-BTS", ORANGE), "btppsvm": ("BTPPSVM", BLUE), "dagsvm": ("DAGSVM, n - 1", GREY)}


def planes(X: np.ndarray, y: np.ndarray, flipped: np.ndarray, fitted: dict, softness: Sequence[np.ndarray]):
    """The 2-D picture: a panel a system: boundary, margins, ringed support vectors, |soft label| as size."""
    fig, axes = figure(1, len(fitted), size=(3.1 * len(fitted), 3.3), sharex=True, sharey=True)
    u, v = np.meshgrid(*(np.linspace(column.min(), column.max(), 60) for column in X.T))
    for ax, (title, est), soft in zip(axes, fitted.items(), softness, strict=True):
        f = est.decision_function(np.column_stack([u.ravel(), v.ravel()])).reshape(u.shape)
        ax.contourf(u, v, f, levels=[-1e9, 0, 1e9], colors=[SKY, ORANGE], alpha=0.18)
        lines = {"linestyles": ["--", "-", "--"], "linewidths": [0.7, 1.5, 0.7]}
        ax.contour(u, v, f, levels=[-1, 0, 1], colors="0.3", **lines)
        sure = np.ceil(4 * np.abs(soft)).clip(1)  # in four sizes: markers of one plot are one shape in the file
        for size in np.unique(sure):
            for label, colour in ((0, BLUE), (1, RED)):
                ax.plot(*X[(y == label) & (sure == size)].T, "o", ms=1.2 + 0.8 * size, mew=0, color=colour)
        ax.plot(*X[flipped].T, "x", ms=6, mew=0.8, color="black")
        ax.plot(*X[est.support_].T, "o", ms=7, mew=0.6, mfc="none", mec="0.25")
        ax.set_title(f"{title}: {len(est.support_)} SVs")
        ax.set(xticks=[], yticks=[])
    return fig


def ratio_map(ratio: np.ndarray, names: Sequence):
    """Fisher ratio of every pair of classes; the largest and the smallest are marked."""
    fig, ax = figure(size=(5.6, 4.8))
    shown = np.where(np.eye(len(ratio), dtype=bool), np.nan, ratio)
    image = ax.imshow(shown)
    for value, colour, word in ((np.nanmax(shown), RED, "largest"), (np.nanmin(shown), "white", "smallest")):
        i, j = np.argwhere(shown == value)[0]
        ax.scatter(j, i, s=90, facecolors="none", edgecolors=colour, lw=1.8, label=f"{word}: {names[i]}, {names[j]}")
    ax.set_xticks(range(len(names)), names, fontsize=7)
    ax.set_yticks(range(len(names)), names, fontsize=7)
    fig.colorbar(image, ax=ax, label="Fisher ratio $r_{ij}$ (Eq. 4)")
    i, j = np.argwhere(shown == np.nanmax(shown))[0]
    ax.set_title(f"Parted first: {names[i]} and {names[j]}, the pair with the largest Fisher ratio")
    legend = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    legend.get_frame().set(facecolor="0.7", visible=True)
    legend.set_frame_on(True)
    return fig


def sides(tables: dict[str, pd.DataFrame]):
    """Where the root's machine sends each class's samples, one panel a pair rule."""
    fig, axes = figure(len(tables), 1, size=(8, 2.2 * len(tables)), sharex=True, squeeze=False)
    for ax, (title, table) in zip(axes[:, 0], tables.items(), strict=True):
        x, right = np.arange(len(table)), table["right_pct"].to_numpy()
        ax.bar(x, right, color=BLUE, label="goes right")
        ax.bar(x, 100 - right, bottom=right, color=ORANGE, label="goes left")
        ax.set_xticks(x, table["class"])
        for k in np.flatnonzero(table["own"]):
            ax.annotate("pair", (k, 102), ha="center", fontsize=7, annotation_clip=False)
        split = int(((right > 0) & (right < 100)).sum())
        ax.set_title(f"{title}: {split} of {len(table)} classes go both ways", pad=12)
        ax.set_ylabel("% of samples")
    axes[0, 0].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


def tree(graph, names: Sequence, code: np.ndarray, title: str, size: tuple[float, float] = (9, 4.5)):
    """One decision tree, drawn whole."""
    fig, ax = figure(size=size)
    draw(graph, ax, names=names, code=code, size=7)
    ax.set_title(title)
    return fig


def neighbours(table: pd.DataFrame):
    """Figure 1 for every data set: error and support vectors of BTPPSVM against k, with the bare k-NN's error."""
    names = list(dict.fromkeys(table["dataset"]))
    fig, axes = figure(2, len(names), size=(2.9 * len(names), 4.6), sharex=True, squeeze=False)
    for (top, low), name in zip(axes.T, names, strict=True):
        rows = table[table["dataset"] == name]
        top.plot(rows["k"], rows["error_pct"], "o-", ms=3, color=BLUE, label="BTPPSVM")
        top.plot(rows["k"], rows["oao_error_pct"], "s-", ms=3, color=GREEN, label="posterior OAO")
        top.plot(rows["k"], rows["knn_error_pct"], "--", color=GREY, label="k-NN alone")
        low.plot(rows["k"], rows["support_vectors"], "o-", ms=3, color=BLUE)
        low.plot(rows["k"], rows["oao_support_vectors"], "s-", ms=3, color=GREEN)
        top.set(title=SETS[name], ylim=(0, 1.08 * rows[["error_pct", "oao_error_pct", "knn_error_pct"]].max().max()))
        low.set(xlabel="neighbours k", xticks=range(1, 12, 2), ylim=(0, 1.15 * rows["oao_support_vectors"].max()))
    axes[0, 0].set_ylabel("test error (%)")
    axes[1, 0].set_ylabel("support vectors")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    fig.suptitle("The error rises with k, towards that of k-NN; the support vectors hardly move", fontsize=10)
    return fig


def frontier(table: pd.DataFrame, printed: pd.DataFrame):
    """Machines against accuracy of every reading of the tree, the paper's two trees on it."""
    names = list(dict.fromkeys(table["dataset"]))
    fig, axes = figure(1, len(names), size=(3.9 * len(names), 3.9), squeeze=False)
    kinds = {
        "band": ("o", "samples within a band go both ways"),
        "follow": ("s", "minorities follow their class"),
        "routing": ("D", "whole classes"),
        "both ways": ("^", "both branches at test time"),
        "retrained": ("P", "machines retrained on groups"),
    }
    colours = {"ordinary": ORANGE, "posterior": BLUE}
    for ax, name in zip(axes[0], names, strict=True):
        rows = table[table["dataset"] == name]
        for labels, colour in colours.items():
            for kind, (marker, _) in kinds.items():
                part = rows[(rows["labels"] == labels) & rows["reading"].str.startswith(kind)]
                ax.scatter(part["machines"], part["accuracy_pct"], s=22, marker=marker, color=colour, alpha=0.75, lw=0)
        paper = printed[printed["dataset"] == name].set_index("measure")
        for system, colour in (("svm_cbts", ORANGE), ("btppsvm", BLUE)):
            at = paper.at["binary_classifiers", system], paper.at["accuracy_pct", system]
            ax.scatter(*at, s=190, marker="*", color=colour, edgecolors="black", lw=0.8, zorder=4)
        ax.set(title=SETS[name], xlabel="distinct machines", ylim=(max(40, rows["accuracy_pct"].min() - 2), 100))
    axes[0, 0].set_ylabel("test accuracy (%)")
    ax = axes[0, 0]
    handles = [ax.scatter([], [], marker=marker, color="0.3", label=text) for marker, text in kinds.values()]
    handles += [ax.scatter([], [], marker="s", color=colour, label=labels) for labels, colour in colours.items()]
    handles.append(ax.scatter([], [], marker="*", s=120, color="white", edgecolors="black", label="the paper"))
    fig.legend(handles=handles, loc="outside lower center", ncols=4)
    fig.suptitle(
        "Between two classes, fewer machines cost accuracy; machines retrained on groups escape that", fontsize=10
    )
    return fig


def band(table: pd.DataFrame):
    """Accuracy (above) and distinct machines (below) of both trees as the band grows."""
    names = list(dict.fromkeys(table["dataset"]))
    fig, axes = figure(2, len(names), size=(3.2 * len(names), 4.4), sharex=True, squeeze=False)
    for (top, low), name in zip(axes.T, names, strict=True):
        for system, rows in table[table["dataset"] == name].groupby("system"):
            label, colour = TREES[system]
            top.plot(rows["band"], rows["accuracy_pct"], "o-", color=colour, label=label)
            low.plot(rows["band"], rows["nodes"], "o-", color=colour)
        top.set_title(SETS[name])
        low.set(xlabel="band: samples with |f| < band go both ways", yscale="log")
    axes[0, 0].set_ylabel("test accuracy (%)")
    axes[1, 0].set_ylabel("nodes of the tree")
    axes[0, 0].legend()
    return fig


def layers(table: pd.DataFrame):
    """The layers' own errors on rows that are always put right again, and on rows not misled before."""
    shown = table[table["system"] == "btppsvm"]
    names = list(dict.fromkeys(shown["dataset"]))
    fig, axes = figure(1, len(names), size=(2.9 * len(names), 3), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        rows = shown[shown["dataset"] == name]
        ax.plot(
            rows["layer"], rows["error_pct"], "o-", ms=3, color=BLUE, label="every row, put right after each mistake"
        )
        ax.plot(rows["layer"], rows["alone_pct"], "s--", ms=3, color=PINK, label="rows not misled so far")
        ax.set(title=SETS[name], xlabel="layer", ylim=(0, None))
    axes[0, 0].set_ylabel("error $e_k$ (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def paths(table: pd.DataFrame):
    """Machines met on average, and where 80 % of the test rows lie, against the two formulas."""
    fig, ax = figure(size=(6.4, 4))
    for system, (label, colour) in TREES.items():
        rows = table[table["system"] == system]
        ax.plot(rows["n_classes"], rows["mean_path"], "o-", ms=3, color=colour, label=label)
        if system != "dagsvm":
            ax.fill_between(rows["n_classes"], rows["p10"], rows["p90"], color=colour, alpha=0.15, lw=0)
    rows = table[table["system"] == "btppsvm"]
    ax.plot(rows["n_classes"], rows["log43"], "--", color=GREEN, label=r"$\log_{4/3}((n+3)/4)$")
    ax.plot(rows["n_classes"], rows["log2_n"], ":", color=RED, label=r"$\log_2 n$")
    ax.set(xlabel="classes n (subsets of Letter)", ylabel="machines met by a test row")
    ax.set_title("Paths are longer than either formula: classes go both ways")
    ax.legend()
    return fig


def noise(table: pd.DataFrame):
    """Test accuracy against the share of flipped training labels."""
    names = list(dict.fromkeys(table["dataset"]))
    fig, axes = figure(1, len(names), size=(3.6 * len(names), 3.4), squeeze=False)
    styles = {"ordinary": (ORANGE, "o-"), "ordinary, C chosen": (ORANGE, "s--"), "posterior": (BLUE, "o-"),
              "posterior, C chosen": (BLUE, "s--"), "k-nn": (GREY, "^:")}  # fmt: skip
    for ax, name in zip(axes[0], names, strict=True):
        for machine, (colour, style) in styles.items():
            rows = table[(table["dataset"] == name) & (table["machine"] == machine)]
            ax.plot(rows["noise_pct"], rows["accuracy_pct"], style, ms=4, color=colour, label=machine)
        ax.set(title=SETS[name], xlabel="labels flipped (%)")
    axes[0, 0].set_ylabel("test accuracy (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return fig


def choice(table: pd.DataFrame, printed_pct: dict[str, float]):
    """Cross-validated error of ordinary one-against-one against its support vectors, a point a (C, gamma)."""
    names = list(dict.fromkeys(table["dataset"]))
    fig, axes = figure(1, len(names), size=(2.9 * len(names), 3.2), squeeze=False)
    ticks = [0.5, 1, 2, 5, 10, 20, 50, 100]
    for ax, name in zip(axes[0], names, strict=True):
        rows = table[(table["dataset"] == name) & (table["labels"] == "ordinary")]
        error = 100 - rows["cv_accuracy_pct"]
        ax.scatter(rows["support_vectors_pct"], error, c=GREY, s=14, lw=0, label="a point of the grid")
        best = rows[rows["chosen"]].iloc[0]
        ax.scatter(best["support_vectors_pct"], 100 - best["cv_accuracy_pct"], c=BLUE, s=40, label="chosen")
        ax.axvline(printed_pct[name], color=RED, lw=1, ls="--", label="Table 3, OAO (all rows)")
        title = f"{SETS[name]}: C = {best['C']:g}, $\\gamma$ = {best['gamma']:.3g}"
        ax.set(title=title, xlabel="support vectors (%)", yscale="log", xlim=(0, 102))
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(0.8 * error.min(), 110)
    axes[0, 0].set_ylabel("cross-validated error (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig
