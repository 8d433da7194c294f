"""Figures on the adaptive DAGSVM: class distances, graphs reached, tuning curves, spreads, the search, and gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..graphs import DecisionGraph
from . import BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY, figure, heat
from .graphs import draw


def distances(table: np.ndarray, names: Sequence[str], title: str) -> Figure:
    """DBTC between all classes as a heat map, and the class means themselves, seen along their two widest directions.

    DBTC under one kernel is a squared distance, so classical scaling of the table gives the means' true coordinates.
    """
    n = len(table)
    fig, (left, right) = figure(1, 2, (10, 4.2), width_ratios=(1.25, 1))
    heat(left, np.where(np.eye(n, dtype=bool), np.nan, table), names, names, digits=2)
    left.set_title(title)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ table @ centre)
    share = np.maximum(values, 0) / np.maximum(values, 0).sum()
    points = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])
    points *= np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])  # a direction has no sign of its own
    right.scatter(*points.T, s=25, color=BLUE)
    for name, point in zip(names, points, strict=True):
        right.annotate(name, point, xytext=(4, 4), textcoords="offset points", fontsize=8)
    right.set_aspect("equal", "datalim")
    right.margins(0.15)
    right.set(xlabel="first direction", ylabel="second direction")
    right.set_title(f"class means: {100 * share[-2:].sum():.0f} % of their spread in the plane")
    return fig


def reached(graphs: Mapping[str, tuple[DecisionGraph, np.ndarray]]) -> Figure:
    """For each name the nodes of its graph that rows with outputs f reached; area and width say how many rows did."""
    fig, axes = figure(2, (len(graphs) + 1) // 2, (3.6 * ((len(graphs) + 1) // 2), 6.4), squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, (name, (graph, f)) in zip(axes.flat, graphs.items(), strict=False):
        layers, flow = _flow(graph, f)
        place = {k: (x - (len(layer) - 1) / 2, -d) for d, layer in enumerate(layers) for x, k in enumerate(layer)}
        for (a, b), rows in flow.items():
            ax.plot(*zip(place[a], place[b], strict=True), color=GREY, lw=0.4 + 5 * rows / len(f), alpha=0.7, zorder=1)
        rows = {0: len(f)}
        for (_, b), r in flow.items():
            rows[b] = rows.get(b, 0) + r
        nodes = list(place)
        leaf = graph.machine[nodes] < 0
        ax.scatter(*np.array([place[k] for k in nodes]).T, s=[6 + 160 * rows[k] / len(f) for k in nodes],
                   c=np.where(leaf, BLUE, ORANGE), zorder=2)  # fmt: skip
        ax.set_title(f"{name}: {np.sum(~leaf)} nodes reached")
    return fig


def _flow(graph: DecisionGraph, f: np.ndarray) -> tuple[list[list[int]], dict[tuple[int, int], int]]:
    """The nodes of each layer that rows f reach, and how many rows go along each edge."""
    node, layers, flow = np.zeros(len(f), dtype=int), [[0]], {}
    while (inner := graph.machine[node] >= 0).any():
        value = f[np.flatnonzero(inner), graph.machine[node[inner]]]
        there = np.where(value >= 0, graph.right[node[inner]], graph.left[node[inner]])
        edges, counts = np.unique(np.column_stack([node[inner], there]), axis=0, return_counts=True)
        flow |= {(int(a), int(b)): int(c) for (a, b), c in zip(edges, counts, strict=True)}
        above = {k: x for x, k in enumerate(layers[-1])}
        wish = {b: np.mean([above[a] for a, c in edges.tolist() if c == b]) for b in edges[:, 1].tolist()}
        layers.append(sorted(wish, key=wish.get))
        node[inner] = there
    return layers, flow


def example(fixed: DecisionGraph, adaptive: DecisionGraph, f: np.ndarray, names: Sequence[str], code) -> Figure:
    """One row's way through a fixed DDAG and through the adaptive graph."""
    fig, axes = figure(1, 2, (11, 4.6))
    for ax, graph, title in zip(axes, (fixed, adaptive), ("fixed DAG", "adaptive graph"), strict=True):
        draw(graph, ax, names, code, path=f, size=8)
        ax.set_title(f"{title}: this row is {names[graph.run(f[None])[0][0]]!r}")
    return fig


def curves(tuning: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> Figure:
    """DBTC and validation accuracy over gamma for (data set, pair)s, with the gamma that each recipe takes."""
    fig, axes = figure(2, (len(pairs) + 1) // 2, squeeze=False, sharex=True)
    for ax in axes.flat[len(pairs) :]:
        ax.set_axis_off()
    for ax, (name, pair) in zip(axes.flat, pairs, strict=False):
        part = tuning[(tuning.dataset == name) & (tuning.pair == pair)]
        curve = part[part.recipe == "curve"]
        x = np.log2(curve.gamma)
        ax.plot(x, curve.validation_accuracy_pct, "o-", ms=3, color=BLUE)
        ax.set(title=f"{name}: {pair}" if len(pair) < 30 else f"{name}:\n{pair}", xlabel="log2 gamma")
        ax.set_ylabel("validation accuracy %", color=BLUE)
        other = ax.twinx()
        other.spines["right"].set_visible(True)
        ax.tick_params(labelbottom=True)
        other.plot(x, curve.dbtc, "s--", ms=3, color=ORANGE)
        other.set_ylabel("DBTC", color=ORANGE)
        for recipe, colour, style in (("dbtc", ORANGE, ":"), ("cv", BLUE, ":")):
            ax.axvline(np.log2(part[part.recipe == recipe].gamma.item()), color=colour, ls=style, lw=1.5)
    return fig


def spreads(repeats: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Accuracy over splits of the traditional and the adaptive system, the paper's and the default split's marked."""
    names = list(printed.dataset)
    fig, axes = figure(1, len(names), (2.1 * len(names), 3.6))
    for ax, name in zip(axes, names, strict=True):
        part = repeats[repeats.dataset == name]
        for x, (method, column) in enumerate((("traditional", "traditional_mean"), ("adaptive", "adaptive"))):
            mine = part[part.method == method]
            drawn = mine[mine.rule.isin(["stratified", "speakers"])].accuracy_pct.to_numpy()
            shift = 0.36 * (np.arange(len(drawn)) + 0.5) / max(len(drawn), 1) - 0.18
            ax.scatter(x + shift, drawn, s=10, color=BLUE, alpha=0.6, label="drawn split")
            for rule, mark, colour in (("first-n", "s", GREEN), ("standard", "^", GREEN)):
                given = mine[mine.rule == rule].accuracy_pct
                ax.scatter([x] * len(given), given, s=34, marker=mark, color=colour, label=rule, zorder=3)
            paper = printed.set_index("dataset").loc[name, column]
            ax.plot([x - 0.35, x + 0.35], [paper, paper], color=RED, lw=2, label="paper")
        ax.set_xticks([0, 1], ["traditional", "adaptive"])
        ax.set_xlim(-0.5, 1.5)
        ax.set_title(name)
    axes[0].set_ylabel("accuracy %")
    entries = {label: h for ax in axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(entries.values(), entries, loc="outside lower center", ncols=4)
    return fig


def searched(found: pd.DataFrame, goal: pd.Series) -> Figure:
    """Every reading tried on Vowel: what twenty orders spread against what the adaptive graph gains, and the hits."""
    fig, (left, right) = figure(1, 2, (9.4, 3.8))
    rules = found.gamma.where(found.gamma.isin(["own", "shared"]), "given")
    for colour, (rule, part) in zip((SKY, BLUE, ORANGE), found.groupby(rules), strict=False):
        left.scatter(part.spread, part.gain, s=12, color=colour, alpha=0.6, label=f"gamma {rule}", rasterized=True)
        right.scatter(part.traditional_max, part.adaptive, s=12, color=colour, alpha=0.6, rasterized=True)
    left.scatter(goal.traditional_max - goal.traditional_min, goal.gain, marker="*", s=150, color=RED, label="paper")
    right.scatter(goal.traditional_max, goal.adaptive, marker="*", s=150, color=RED)
    left.axhline(0, color=GREY, lw=0.8)
    left.set(xlabel="best minus worst of twenty orders (rows)", ylabel="adaptive minus best of twenty (rows)")
    left.set_title(f"{(found.gain >= goal.gain).sum()} of {len(found)} readings gain what was printed")
    middle = goal.traditional_max
    right.axline((middle, middle), slope=1, color=GREY, lw=0.8, zorder=0)
    right.set(
        xlim=(middle - 45, middle + 45), ylim=(middle - 45, middle + 45), title="right answers of 462, near the paper's"
    )
    right.set(xlabel="best of twenty orders", ylabel="adaptive")
    left.legend()
    return fig


def forest(gains: pd.DataFrame, cost: pd.DataFrame) -> Figure:
    """Gain of the adaptive graph over its rivals with 95 % intervals, and its cost beside theirs."""
    names = list(dict.fromkeys(gains.dataset))
    fig, (left, right) = figure(1, 2, (10, 0.42 * len(names) + 1.6), width_ratios=(1.3, 1), sharey=True)
    place = np.arange(len(names))[::-1]
    rivals = {"traditional": "the mean of 20 orders", "traditional-max": "the best of 20 orders", "max-wins": "voting"}
    for colour, shift, (rival, label) in zip((BLUE, ORANGE, GREEN), (0.22, 0, -0.22), rivals.items(), strict=True):
        part = gains[gains.rival == rival].set_index("dataset").loc[names]
        error = np.array([part.gain - part.low, part.high - part.gain])
        left.errorbar(part.gain, place + shift, xerr=error, fmt="o", ms=4, color=colour, label=f"over {label}")
    clear = ((gains.low > 0) | (gains.high < 0))[gains.rival.isin(rivals)].sum()
    left.set(xlabel="gain of the adaptive graph (points), 95 % interval")
    left.set_title(f"accuracy: {clear} of {3 * len(names)} intervals leave out zero")
    against = {"traditional": "random orders", "least-separable": "the graph upside down", "max-wins": "voting"}
    for colour, shift, (rival, label) in zip((BLUE, PINK, GREEN), (0.22, 0, -0.22), against.items(), strict=True):
        ratio = cost.loc[names, "adaptive"] / cost.loc[names, rival]
        right.scatter(ratio, place + shift, s=22, color=colour, label=f"of {label}")
    right.set(xlabel="kernel evaluations of the adaptive graph, as a share", title="cost")
    for ax, at in ((left, 0), (right, 1)):
        ax.axvline(at, color=GREY, lw=0.8, zorder=0)
        ax.set_yticks(place, names)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return fig


def sweep(found: pd.DataFrame) -> Figure:
    """Over gamma: the share of rows that an order can change, and the adaptive graph's gain with 95 % intervals."""
    fig, (left, right) = figure(1, 2, (9.4, 3.4))
    one = found[found.rival == "traditional"]
    left.plot(np.log2(one.gamma), one.unsettled_pct, "o-", ms=4, color=ORANGE)
    left.set_ylim(0)
    left.set(xlabel="log2 gamma", ylabel="unsettled test rows %", title="smooth machines leave more to the order")
    rivals = {
        "traditional": "the mean of 20 orders",
        "traditional-max": "the best of 20 orders",
        "least-separable": "the graph upside down",
    }
    for colour, shift, (rival, label) in zip((BLUE, ORANGE, PINK), (-0.08, 0, 0.08), rivals.items(), strict=True):
        part = found[found.rival == rival]
        error = np.array([part.gain - part.low, part.high - part.gain])
        right.errorbar(
            np.log2(part.gamma) + shift, part.gain, error, fmt="o-", ms=4, lw=1, color=colour, label=f"over {label}"
        )
    right.axhline(0, color=GREY, lw=0.8, zorder=0)
    right.set(xlabel="log2 gamma", ylabel="gain of the adaptive graph (points)")
    right.set_title("the gain over random orders, and over the best of them")
    fig.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=3)
    return fig
