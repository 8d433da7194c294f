"""How Yu et al.'s recipe may be read.

Surfaces over (gamma, C) for every pair, and the search for Vowel's numbers.
"""

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
SEARCHED_LISTS = 1000  # random lists beside which a reading is set
# Vowel in Table 2: right answers of 462
GOAL = {"best": 284, "worst": 283, "adaptive": 291}


class Surface(NamedTuple):
    """DBTC and accuracy by ten-fold validation of every pair of a split."""

    gammas: np.ndarray
    Cs: np.ndarray
    dbtc: np.ndarray  # (pairs, gammas)
    accuracy: np.ndarray  # (pairs, gammas, values of C)


def surface(
    split: Split, gammas, Cs=GRID_C, tol: float = 1e-3, each=starmap
) -> Surface:
    """Measure the Surface of a split.

    `each(function, pairs)` computes the function of all pairs.
    """
    est = AdaptiveDAGSVC(Cs=Cs, random_state=split.seed, tol=tol)

    def of_pair(i: int, j: int) -> tuple[list[float], np.ndarray]:
        rows = (split.y == i) | (split.y == j)
        X = split.X[rows]
        y = (split.y[rows] == j).astype(int)
        kernels = [Kernel("rbf", g) for g in gammas]
        apart = [dbtc(k, X[y == 0], X[y == 1]) for k in kernels]
        _, accuracy = est._validation_curves(X, y, kernels)
        return apart, accuracy

    n_classes = split.y.max() + 1
    first, second = np.triu_indices(n_classes, 1)
    found = each(of_pair, zip(first, second, strict=True))
    apart, accuracy = zip(*found, strict=True)
    return Surface(
        gammas=np.asarray(gammas),
        Cs=np.asarray(Cs),
        dbtc=np.array(apart),
        accuracy=np.array(accuracy),
    )


def any_pair_graph(separability: np.ndarray) -> DecisionGraph:
    """Make the graph that always asks the most separable pair of those left.

    Whether or not the survivor is in it.
    """
    n = len(separability)

    def rule(left: frozenset) -> tuple:
        if len(left) == 1:
            return "leaf", *left
        pairs = combinations(sorted(left), 2)
        i, j = max(pairs, key=lambda pair: separability[pair])
        return "node", pair_index(i, j, n), left - {i}, left - {j}

    return DecisionGraph(
        frozenset(range(n)),
        rule,
        lambda left: left,
        n_classes=n,
        n_machines=n * (n - 1) // 2,
    )


def choices(found: Surface) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield every way to choose gamma and C: names, and the index of each by pairs."""
    Cs = found.Cs
    n = len(found.accuracy)
    pairs = np.arange(n)
    for name, a in _gamma_choices(found):
        accuracy = found.accuracy[pairs, a]  # (pairs, values of C)
        yield name, "smallest", a, accuracy.argmax(axis=1)
        allowed = np.where(Cs >= 1, accuracy, -1)
        yield name, "smallest from 1", a, allowed.argmax(axis=1)
        yield name, "largest", a, _last_argmax(accuracy)
        for k, C in enumerate(Cs):
            yield name, f"{C:g}", a, np.full(n, k)
    yield from _by_validation(found)


def _gamma_choices(found: Surface) -> Iterator[tuple[str, np.ndarray]]:
    """Yield every way to choose gamma before C: a name, and each pair's index."""
    n = len(found.dbtc)
    yield "own", found.dbtc.argmax(axis=1)
    yield "shared", np.full(n, _shared_gamma(found))
    for k, gamma in enumerate(found.gammas):
        yield f"{gamma:.4g}", np.full(n, k)


def _shared_gamma(found: Surface) -> np.intp:
    """The index of the gamma with the largest DBTC, summed over the pairs."""
    return found.dbtc.sum(axis=0).argmax()


def _last_argmax(table: np.ndarray) -> np.ndarray:
    """Of each row, the place of its largest value, the last of equals."""
    from_the_end = table[:, ::-1].argmax(axis=1)
    return table.shape[1] - 1 - from_the_end


def _by_validation(found: Surface) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield the ways to choose gamma and C at once, on grids that may be meant.

    Those are 2^low to 2^3.
    """
    exponents = np.log2(found.gammas)
    lows = (-15, -9, -4)
    steps = (1, 2)
    for low, step, C_step in product(lows, steps, steps):
        meant = np.arange(low, 4, step)
        on = np.flatnonzero(np.isin(exponents, meant))
        if not len(on):
            continue
        grid = found.accuracy[:, on, ::C_step]  # (pairs, gammas, values of C)
        name = f"from 2^{low}, steps {step} and {C_step}"
        for who, tie, (a, b) in _best_of(grid):
            yield f"{who} {name}", tie, on[a], b * C_step


def _best_of(grid: np.ndarray) -> list[tuple]:
    """Whose accuracy is best, how a tie is broken, and the indices of gamma and C."""
    n, n_gammas, n_C = grid.shape
    # gamma by gamma, so that the first of equals has the smallest gamma; then C by C
    by_gamma = grid.reshape(n, -1)
    by_C = grid.swapaxes(1, 2).reshape(n, -1)
    C, gamma = divmod(by_C.argmax(axis=1), n_gammas)
    together = np.full(n, grid.mean(axis=0).argmax())
    return [
        ("cv", "smallest gamma", divmod(by_gamma.argmax(axis=1), n_C)),
        ("cv", "largest gamma", divmod(_last_argmax(by_gamma), n_C)),
        ("cv", "smallest C", (gamma, C)),
        ("cv shared", "smallest gamma", divmod(together, n_C)),
    ]


GRAPHS = {"survivor": adaptive_graph, "any": any_pair_graph}


class _Cyclic:
    """The test rows whose answer depends on the order, under one choice of machines.

    The others answer alike in every order: `settled` of them rightly.
    """

    def __init__(self, f: np.ndarray, y: np.ndarray, n: int) -> None:
        cyclic = unsettled(f, n)
        any_order = [range(n)]
        (alike,) = answers(f[~cyclic], any_order)
        right = alike == y[~cyclic]
        self.settled = int(right.sum())
        self.f = f[cyclic]
        self.y = y[cyclic]

    def right(self, found: np.ndarray) -> np.ndarray:
        """Right answers among all test rows: (orders,) of `found` (orders, rows)."""
        return self.settled + (found == self.y).sum(axis=1)


def search(split: Split, found: Surface, seed: int = 0, progress=iter) -> pd.DataFrame:
    """Count right answers under every reading of the recipe that the grids allow.

    One row a reading:

    `gamma` and `C` as in `choices` (own or shared DBTC, given, cross-validated);
    `measure`: DBTC under the pair's gamma or the shared one, Eq. 6 as printed, Fisher's
    ratio; `next`: the survivor's farthest class, or any pair left. `best`, `worst`,
    `mean` are of twenty random lists; `ahead` is the chance that the adaptive graph is
    ahead of the best of twenty, (share of random lists below it)^20; `distance` is from
    Table 2's three numbers. `progress` wraps the loop over `choices`.
    """
    n = len(split.class_names)
    pairs = np.arange(len(found.dbtc))
    orders = lists(n, seed)[:SEARCHED_LISTS]
    outputs = _outputs(split, found)
    measured = _Measures(split, found)
    rows = []
    for gamma, C, a, b in progress(list(choices(found))):
        f = outputs[a, :, b, pairs].T  # (test rows, pairs)
        cyclic = _Cyclic(f, split.y_test, n)
        hits = cyclic.right(answers(cyclic.f, orders))
        for counted in _adaptive_counts(cyclic, hits, measured.of(a)):
            rows.append((gamma, C, *counted))
    columns = "gamma C measure next best worst mean adaptive ahead unsettled"
    return _by_distance(pd.DataFrame(rows, columns=columns.split()))


def _adaptive_counts(
    cyclic: _Cyclic, hits: np.ndarray, measures: dict[str, np.ndarray]
) -> Iterator[tuple]:
    """Yield what `search` counts for every measure and graph, beside lists' `hits`."""
    twenty = hits[:20]
    of_lists = (twenty.max(), twenty.min(), twenty.mean())
    for measure, values in measures.items():
        for step, make in GRAPHS.items():
            graph = make(squareform(values))
            (right,) = cyclic.right(graph.labels(cyclic.f)[None])
            below = (hits < right).mean()
            ahead = round(float(below**20), 4)
            yield measure, step, *of_lists, int(right), ahead, len(cyclic.y)


def _by_distance(out: pd.DataFrame) -> pd.DataFrame:
    """Readings with their differences, those nearest to the paper's numbers first."""
    out["spread"] = out["best"] - out["worst"]
    out["gain"] = out["adaptive"] - out["best"]
    out["distance"] = 0
    for column, goal in GOAL.items():
        out["distance"] += (out[column] - goal).abs()
    return out.sort_values("distance", kind="stable", ignore_index=True)


def _outputs(split: Split, found: Surface) -> np.ndarray:
    """Outputs for the test rows: (gammas, rows, values of C, pairs)."""
    code = pair_code(len(split.class_names))
    n_C = len(found.Cs)
    every = np.tile(code, (n_C, 1))  # one bank for all values of C
    every_C = np.repeat(found.Cs, len(code))
    outputs = []
    for gamma in found.gammas:
        kernel = Kernel("rbf", gamma)
        bank = train(split.X, split.y, every, kernel, every_C, tol=1e-4)
        f = bank.decision(split.X_test)
        outputs.append(f.reshape(-1, n_C, len(code)))
    return np.array(outputs)


class _Measures:
    """What a reader may take for the separability of a pair, under chosen gammas."""

    def __init__(self, split: Split, found: Surface) -> None:
        n = len(split.class_names)
        first, second = np.triu_indices(n, 1)
        groups = [split.X[split.y == c] for c in range(n)]
        kernels = [Kernel("rbf", gamma) for gamma in found.gammas]
        # the mean of k(x, y) within each class: (gammas, classes)
        within = np.array([[k(X, X).mean() for X in groups] for k in kernels])
        of_first = within[:, first]  # (gammas, pairs)
        of_second = within[:, second]
        sizes = np.bincount(split.y)
        self.dbtc = found.dbtc  # (pairs, gammas)
        self.inside = of_first + of_second
        between = self.inside - found.dbtc.T
        # Eq. 6 as printed divides by n1 and n2, not by their squares
        printed_inside = sizes[first] * of_first + sizes[second] * of_second
        self.printed = printed_inside - between
        self.shared = found.dbtc[:, _shared_gamma(found)]

    def of(self, a: np.ndarray) -> dict[str, np.ndarray]:
        """Each measure of every pair, the pair's gamma having the index a."""
        pairs = np.arange(len(self.dbtc))
        own = self.dbtc[pairs, a]
        return {
            "own": own,
            "shared": self.shared,
            "printed": self.printed[a, pairs],
            "fisher": own / (2 - self.inside[a, pairs]),
        }
