"""The figures of Platt, Cristianini and Shawe-Taylor 2000, each from a table or from trained machines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..graphs import DecisionGraph
from ..machines import Bank, pair_code, pair_index
from ..report.verdicts import binomial_interval
from . import BLUE, GREEN, GREY, ORANGE, PALETTE, RED, figure, heat
from .graphs import draw

SHAPES = "os^Dv"
TITLES = {"usps": "USPS", "letter": "Letter", "covertype": "Covertype"}


def evaluation_path(graph: DecisionGraph, names: Sequence, f: np.ndarray, image: np.ndarray, title: str):
    """Figure 1a from trained machines: a digit, and its way down the DDAG with the list beside each node."""
    fig, (left, right) = figure(1, 2, (9, 4.6), width_ratios=[1, 3])
    left.imshow(image, cmap="gray_r")
    left.set_axis_off()
    left.set_title("the input x")
    draw(graph, right, names, pair_code(graph.n_classes), path=f, size=10)
    right.set_title(title)
    return fig


def input_space(bank: Bank, graph: DecisionGraph, X: np.ndarray, codes: np.ndarray, names: Sequence):
    """Figure 1b from trained machines: what the root can exclude, and the regions the whole DDAG answers with."""
    from matplotlib.colors import ListedColormap

    fig, axes = figure(1, 2, (9, 3.9), sharex=True, sharey=True)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    u, v = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    f = bank.decision(np.column_stack([u.ravel(), v.ravel()]))
    last = len(names) - 1
    root = f[:, pair_index(0, last, len(names))].reshape(u.shape)
    axes[0].contourf(u, v, root >= 0, levels=[-0.5, 0.5, 1.5], colors=[PALETTE[last], PALETTE[0]], alpha=0.25)
    axes[0].contour(u, v, root, levels=[0], colors="black", linewidths=1.2)
    axes[0].set_title(f"{names[0]} vs {names[last]} can only exclude one of the two")
    labels = graph.run(f)[0].reshape(u.shape)
    axes[1].imshow(labels, origin="lower", extent=(low[0], high[0], low[1], high[1]), aspect="auto", alpha=0.35,
                   cmap=ListedColormap(PALETTE[: len(names)]), vmin=0, vmax=last)  # fmt: skip
    axes[1].set_title(f"the DDAG's answer after {last} exclusions")
    for ax in axes:
        for c, name in enumerate(names):
            rows = np.flatnonzero(codes == c)[::4]
            ax.scatter(*X[rows].T, s=9, color=PALETTE[c], marker=SHAPES[c], lw=0, label=str(name), rasterized=True)
        ax.set_xlabel("first discriminant")
    axes[0].set_ylabel("second discriminant")
    at = dict(ha="center", fontsize=9, bbox=dict(fc="white", ec="none", alpha=0.8))
    for side, name in ((root >= 0, names[last]), (root < 0, names[0])):
        axes[0].text(np.median(u[side]), np.median(v[side]), f"not {name}", **at)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", title="class", markerscale=2)
    return fig


def informative(table: pd.DataFrame, real: pd.DataFrame):
    """m at which Theorem 1 first says anything, over N: a line a margin; `real` places the data sets (n_classes, m)."""
    fig, ax = figure(1, 1, (6.6, 4.2))
    part = table[table["variant"] == "paper"]
    for colour, (gamma, rows) in zip(PALETTE, part.groupby("gamma", sort=False), strict=False):
        for base, style in (("2", "-"), ("e", ":")):
            line = rows[rows["log_base"] == base]
            ax.plot(line["n_classes"], line["m"], style, color=colour, marker="." if base == "2" else "",
                    label=rf"$\gamma/R={gamma:g}$, log base {base}")  # fmt: skip
    ax.scatter(real["n_classes"], real["m"], color="black", marker="x", zorder=3)
    for k, row in enumerate(real.sort_values("n_classes").itertuples()):
        side = dict(ha="right", xytext=(-6, -3)) if k == 0 else dict(ha="left", xytext=(6, -3))
        name = TITLES.get(row.dataset, row.dataset)
        ax.annotate(name, (row.n_classes, row.m), textcoords="offset points", **side)
    ax.set(xscale="log", yscale="log", xlabel="classes N", ylabel="training rows m")
    ax.set_xticks([2, 3, 5, 10, 26, 100], ["2", "3", "5", "10", "26", "100"])
    ax.minorticks_off()
    ax.set_title(r"Theorem 1 needs more rows than Table 1's sets have ($\delta=.05$, equal margins)")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside right center")
    return fig


def simulation(table: pd.DataFrame):
    """Bound and true error against m: a panel for each gap between the classes."""
    gaps = sorted(table["gap"].unique())
    fig, axes = figure(1, len(gaps), (4.3 * len(gaps), 3.4), sharey=True, squeeze=False)
    for ax, gap in zip(axes[0], gaps, strict=True):
        part = table[table["gap"] == gap].groupby("m")
        for (name, colour), style in zip({"bound_2": RED, "bound_e": ORANGE}.items(), "-:", strict=True):
            ax.plot(part[name].median(), style, color=colour, label=f"Theorem 1, log base {name[-1]}")
        ax.plot(part["error"].max().clip(lower=1e-6), "o-", color=BLUE, ms=4, label="largest true error")
        ax.axhline(1, color=GREY, lw=0.8)
        ax.set(xscale="log", yscale="log", xlabel="training rows m", title=f"classes {gap:g} R apart")
    axes[0, 0].set_ylabel("error (zero drawn at 1e-6)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
    return fig


def theorem2(table: pd.DataFrame):
    """Theorem 2's bound for every class as a share of Theorem 1's, for each data set with both."""
    part = table[table["log_base"] == 2].dropna(subset="bound")
    ones = part[part["variant"] == "theorem1_paper"].set_index("dataset")["bound"]
    widths = [3 + n for n in part[part["variant"] == "theorem1_paper"]["n_classes"]]
    fig, axes = figure(1, len(ones), (10, 3.2), sharey=True, squeeze=False, width_ratios=widths)
    for ax, (name, one) in zip(axes[0], ones.items(), strict=True):
        rows = part[(part["dataset"] == name) & part["variant"].str.startswith("theorem2")]
        ax.bar(rows["variant"].str.removeprefix("theorem2_class_").str.slice(0, 4), rows["bound"] / one, color=BLUE)
        ax.axhline(2 / rows["n_classes"].iloc[0], color=RED, lw=1, ls="--", label="2/N, all margins equal")
        ax.set(title=f"{TITLES.get(name, name)}: {one:,.0f}", xlabel="class")
    axes[0, 0].set_ylabel("Theorem 2 / Theorem 1")
    fig.suptitle("Theorem 2 as a share of Theorem 1, whose bound stands above each panel", fontsize=10)
    axes[0, -1].legend()
    return fig


def scaling(pairs: pd.DataFrame, systems: pd.DataFrame):
    """Seconds over m for one machine, and over N for whole systems, with the curves of Eqs. 1 and 2."""
    fig, axes = figure(1, 3, (11.5, 3.4))
    for (solver, part), colour in zip(pairs.groupby("solver"), (ORANGE, BLUE), strict=True):
        axes[0].plot(
            part["m"], part["seconds"], "o-", color=colour, label=rf"{solver}: $\gamma={part['exponent'].iloc[0]:.2f}$"
        )
    axes[0].set(xscale="log", yscale="log", xlabel="rows m", ylabel="seconds", title="one machine")
    for ax, kind, name in ((axes[1], "1-v-r-over-n", "1-v-r"), (axes[2], "1-v-1-over-n", "1-v-1")):
        for (solver, part), colour in zip(
            systems[systems["kind"] == kind].groupby("solver"), (ORANGE, BLUE), strict=True
        ):
            ax.plot(
                part["n_classes"],
                part["seconds"],
                "o-",
                color=colour,
                label=f"{solver}: N^{part['exponent'].iloc[0]:.2f}",
            )
            N, g = part["n_classes"].to_numpy(float), pairs.loc[pairs["solver"] == solver, "exponent"].iloc[0]
            curve = N if kind.startswith("1-v-r") else N * (N - 1) / 2 * (2 / N) ** g
            ax.plot(
                N,
                curve * part["seconds"].iloc[0] / curve[0],
                "--",
                color=colour,
                lw=1,
                label=f"Eq. {1 if curve is N else 2}",
            )
        ax.set(xscale="log", yscale="log", xlabel="classes N (m fixed)", title=f"{name} system")
        ax.set_xticks([2, 3, 4, 5, 7], ["2", "3", "4", "5", "7"])
    sizes = sorted(pairs["m"].unique())
    axes[0].set_xticks(sizes, [f"{m:,}" for m in sizes], rotation=45)
    for ax in axes:
        ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        ax.legend()
    return fig


def table1(printed: pd.DataFrame, measured: pd.DataFrame, tests: dict[str, int]):
    """Table 1 as a picture: the paper's numbers open, ours filled, errors with exact 95 % intervals."""
    both = printed.merge(measured, on=["dataset", "method"], suffixes=("_paper", "")).dropna(subset="error_pct")
    both["where"] = np.arange(len(both))[::-1]
    quantities = {
        "error_pct": "error (%)",
        "kernel_evaluations": "kernel evaluations",
        "size_kparameters": "size (1000 parameters)",
    }
    fig, axes = figure(1, 3, (10.5, 3.6), sharey=True)
    for ax, (column, text) in zip(axes, quantities.items(), strict=True):
        ax.scatter(both[column], both["where"], color=BLUE, s=28, label="measured", zorder=3)
        ax.scatter(
            both[f"{column}_paper"], both["where"], facecolors="none", edgecolors=RED, s=60, label="paper", zorder=4
        )
        ax.set(xlabel=text, xscale="log" if column == "error_pct" else "linear")
        ax.grid(axis="y", lw=0.4, color="0.85")
    for row in both.itertuples():
        n = tests[row.dataset]
        axes[0].hlines(row.where, *binomial_interval(round(row.error_pct * n / 100), n), color=BLUE, lw=2)
    axes[0].set_xticks([2, 3, 5, 10, 30], ["2", "3", "5", "10", "30"])
    axes[0].minorticks_off()
    for ax in axes[1:]:
        ax.set_xlim(0)
    axes[0].set_yticks(
        both["where"], [f"{TITLES[d]}  {m}" for d, m in zip(both["dataset"], both["method"], strict=True)]
    )
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return fig


def selection(table: pd.DataFrame):
    """Validation error of the Gaussian kernel over sigma and C, a panel a data set and method, the least one framed."""
    part = table[table["kernel"] == "rbf"]
    names, methods = part["dataset"].unique(), part["method"].unique()
    fig, axes = figure(len(names), len(methods), (3.6 * len(methods), 2.1 * len(names)), squeeze=False)
    for i, name in enumerate(names):
        for j, method in enumerate(methods):
            rows = part[(part["dataset"] == name) & (part["method"] == method)]
            grid = rows.pivot(index="C", columns="sigma", values="validation_error_pct")
            widths = [f"{s:.3g}" for s in grid.columns]
            heat(axes[i, j], grid.to_numpy(), [f"{c:g}" for c in grid.index], widths, cmap="cividis_r")
            best = np.unravel_index(np.nanargmin(grid.to_numpy()), grid.shape)
            axes[i, j].add_patch(_frame(best))
            axes[i, j].set_title(f"{TITLES[name]}, {method}")
        axes[i, 0].set_ylabel("C")
    for ax in axes[-1]:
        ax.set_xlabel(r"$\sigma$")
    return fig


def _frame(cell: tuple[int, int]):
    from matplotlib.patches import Rectangle

    return Rectangle((cell[1] - 0.5, cell[0] - 0.5), 1, 1, fill=False, ec=RED, lw=2)


def orders(table: pd.DataFrame, tests: dict[str, int]):
    """Accuracy over random lists, with the natural one, the best and worst found, and the sampling error of one."""
    names = table["dataset"].unique()
    fig, axes = figure(1, len(names), (3.7 * len(names), 3), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        rows = table[table["dataset"] == name].set_index("order")["accuracy_pct"]
        drawn = rows[rows.index.str.startswith("random")]
        ax.hist(drawn, bins=15, color=GREY)
        ax.locator_params(axis="x", nbins=5)
        for which, colour, style in (("natural", BLUE, "-"), ("best", GREEN, "--"), ("worst", RED, ":")):
            ax.axvline(rows[which], color=colour, ls=style, label=which)
        low, high = binomial_interval(round(rows["natural"] * tests[name] / 100), tests[name])
        ax.set(title=f"{TITLES[name]} (95 % interval {low:.2f} to {high:.2f})", xlabel="accuracy (%)")
    axes[0, 0].set_ylabel("random lists")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
    return fig


def then_and_now(ways: pd.DataFrame):
    """Milliseconds a row against kernel values computed a row, for every way to evaluate."""
    names = ways["dataset"].unique()
    fig, axes = figure(1, len(names), (3.7 * len(names), 3), squeeze=False, sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        rows = ways[ways["dataset"] == name][::-1]
        ax.barh(
            rows["way"],
            rows["ms_a_row"],
            color=[RED if "node" in w else GREY if "LIBSVM" in w else BLUE for w in rows["way"]],
        )
        ax.bar_label(ax.containers[0], [f"{v:,.0f} values" for v in rows["evaluations_done"]], fontsize=7, padding=2)
        ax.set(title=TITLES[name], xlabel="ms a row")
        ax.margins(x=0.35)
    return fig
