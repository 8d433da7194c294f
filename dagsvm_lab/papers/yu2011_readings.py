"""How Yu et al.'s recipe may be read: surfaces over (gamma, C) for every pair, and the search for Vowel's numbers."""

from collections.abc import Iterator
from itertools import combinations, product, starmap
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial.distance import squareform

from ..graphs import DecisionGraph
from ..kernels import Kernel
from ..machines import pair_code, pair_index, train
from ..systems.adaptive import AdaptiveDAGSVC, adaptive_graph, dbtc
from .common import Split
from .yu2011 import answers, lists, unsettled

GRID_C = 2.0 ** np.arange(-5, 16, 2)
GOAL = {"best": 284, "worst": 283, "adaptive": 291}  # Vowel in Table 2, right answers of 462


class Surface(NamedTuple):
    """DBTC[pair, gamma] and ten-fold validation accuracy[pair, gamma, C] of every pair of a split."""

    gammas: np.ndarray
    Cs: np.ndarray
    dbtc: np.ndarray
    accuracy: np.ndarray


def surface(split: Split, gammas, Cs=GRID_C, tol: float = 1e-3, each=starmap) -> Surface:
    """Measure the Surface of a split; `each(function, pairs)` computes the function of all pairs."""
    est = AdaptiveDAGSVC(Cs=Cs, random_state=split.seed, tol=tol)

    def of_pair(i: int, j: int) -> tuple[list, list]:
        rows = (split.y == i) | (split.y == j)
        X, y = split.X[rows], (split.y[rows] == j).astype(int)
        kernels = [Kernel("rbf", g) for g in gammas]
        return [dbtc(k, X[y == 0], X[y == 1]) for k in kernels], est._validation_curves(X, y, kernels)[1]

    found = each(of_pair, zip(*np.triu_indices(split.y.max() + 1, 1), strict=True))
    return Surface(np.asarray(gammas), np.asarray(Cs), *(np.array(part) for part in zip(*found, strict=True)))


def any_pair_graph(separability: np.ndarray) -> DecisionGraph:
    """Make the graph that always asks the most separable pair of those left, whether or not the survivor is in it."""
    n = len(separability)

    def rule(left: frozenset) -> tuple:
        if len(left) == 1:
            return "leaf", *left
        i, j = max(combinations(sorted(left), 2), key=lambda pair: separability[pair])
        return "node", pair_index(i, j, n), left - {i}, left - {j}

    return DecisionGraph(frozenset(range(n)), rule, lambda left: left, n_classes=n, n_machines=n * (n - 1) // 2)


def choices(found: Surface) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield every way to choose gamma and C: their names, and the index of each for every pair."""
    pairs, Cs, (n, _, n_C) = np.arange(len(found.dbtc)), found.Cs, found.accuracy.shape
    gammas = {"own": found.dbtc.argmax(axis=1), "shared": np.full(n, found.dbtc.sum(axis=0).argmax())}
    gammas |= {f"{g:.4g}": np.full(n, k) for k, g in enumerate(found.gammas)}
    for name, a in gammas.items():
        accuracy = found.accuracy[pairs, a]
        yield name, "smallest", a, accuracy.argmax(axis=1)
        yield name, "smallest from 1", a, np.where(Cs >= 1, accuracy, -1).argmax(axis=1)
        yield name, "largest", a, n_C - 1 - accuracy[:, ::-1].argmax(axis=1)
        for k, C in enumerate(Cs):
            yield name, f"{C:g}", a, np.full(n, k)
    for low, step, C_step in product((-15, -9, -4), (1, 2), (1, 2)):  # grids that a reader may have meant, 2^low to 2^3
        on = np.flatnonzero(np.isin(np.log2(found.gammas), np.arange(low, 4, step)))
        if not len(on):
            continue
        grid, name = found.accuracy[:, on, ::C_step], f"from 2^{low}, steps {step} and {C_step}"
        flat, turned = grid.reshape(n, -1), grid.swapaxes(1, 2).reshape(n, -1)
        most = flat.shape[1] - 1 - flat[:, ::-1].argmax(axis=1)
        together = np.full(n, grid.mean(axis=0).argmax())
        for who, tie, (a, b) in (
            ("cv", "smallest gamma", divmod(flat.argmax(axis=1), grid.shape[2])),
            ("cv", "largest gamma", divmod(most, grid.shape[2])),
            ("cv", "smallest C", divmod(turned.argmax(axis=1), len(on))[::-1]),
            ("cv shared", "smallest gamma", divmod(together, grid.shape[2])),
        ):
            yield f"{who} {name}", tie, on[a], b * C_step


def search(split: Split, found: Surface, seed: int = 0, progress=iter) -> pd.DataFrame:
    """Count right answers under every reading of the recipe that the grids allow, one row a reading.

    `gamma` and `C` as in `choices` (own or shared DBTC, given, cross-validated); `measure`: DBTC under the pair's gamma
    or the shared one, Eq. 6 as printed, Fisher's ratio; `next`: the survivor's farthest class, or any pair left.
    `best`, `worst`, `mean` are of twenty random lists; `ahead` is the chance that the adaptive graph is ahead of the
    best of twenty, (share of random lists below it)^20; `distance` is from Table 2's three numbers. `progress` wraps
    the loop over `choices`.
    """
    n, y = len(split.class_names), split.y_test
    pairs, (first, second) = np.arange(len(found.dbtc)), np.triu_indices(n, 1)
    orders, sizes, code = lists(n, seed), np.bincount(split.y), pair_code(n)
    tiled, tiled_C = np.tile(code, (len(found.Cs), 1)), np.repeat(found.Cs, len(code))  # one bank for all C
    banks = (train(split.X, split.y, tiled, Kernel("rbf", g), tiled_C, tol=1e-4) for g in found.gammas)
    outputs = np.array([bank.decision(split.X_test).reshape(len(y), len(found.Cs), len(code)) for bank in banks])
    groups = [split.X[split.y == c] for c in range(n)]
    within = np.array([[Kernel("rbf", g)(X, X).mean() for X in groups] for g in found.gammas])
    inside = within[:, first] + within[:, second]
    printed = sizes[first] * within[:, first] + sizes[second] * within[:, second] - (inside - found.dbtc.T)
    shared, rows = found.dbtc[:, found.dbtc.sum(axis=0).argmax()], []
    graphs = {"survivor": adaptive_graph, "any": any_pair_graph}
    for gamma, C, a, b in progress(list(choices(found))):
        f = outputs[a, :, b, pairs].T
        open_ = unsettled(f, n)
        settled = int((answers(f[~open_], [range(n)])[0] == y[~open_]).sum())
        hits = settled + (answers(f[open_], orders) == y[open_]).sum(axis=1)
        own = found.dbtc[pairs, a]
        measures = {"own": own, "shared": shared, "printed": printed[a, pairs], "fisher": own / (2 - inside[a, pairs])}
        for (measure, values), (step, make) in product(measures.items(), graphs.items()):
            right = settled + int((make(squareform(values)).run(f[open_])[0] == y[open_]).sum())
            twenty = hits[:20]
            rows.append((gamma, C, measure, step, twenty.max(), twenty.min(), twenty.mean(), right,
                         round((hits < right).mean() ** 20, 4), int(open_.sum())))  # fmt: skip
    columns = ["gamma", "C", "measure", "next", "best", "worst", "mean", "adaptive", "ahead", "unsettled"]
    out = pd.DataFrame(rows, columns=columns).eval("spread = best - worst\ngain = adaptive - best")
    out["distance"] = sum((out[c] - goal).abs() for c, goal in GOAL.items())
    return out.sort_values("distance", kind="stable", ignore_index=True)
