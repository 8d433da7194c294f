"""Training times for the bench: one machine over its rows, systems over their classes, trained one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from ..datasets import load
from ..kernels import Kernel, gamma_from_sigma
from ..machines import pair_code, rest_code, train
from ..papers.common import timed
from ..statistics import slope


def gaussian(sigma: float) -> Kernel:
    """Platt's Gaussian kernel of width sigma."""
    return Kernel("rbf", gamma_from_sigma(sigma))


def with_exponents(table: pd.DataFrame, over: str) -> pd.DataFrame:
    """`table` with the log-log slope of seconds over the column `over`, for each solver and kind."""
    groups = table.groupby(["solver", "kind"])
    slopes = {key: slope(part[over], part["seconds"]) for key, part in groups}
    return table.assign(exponent=[slopes[key] for key in zip(table["solver"], table["kind"], strict=True)])


def _clock(X, codes, code, kernel: Kernel, C: float, repeats: int) -> dict[str, float]:
    """CPU seconds of our solver and of LIBSVM, with a machine for each row of the coding matrix.

    Machines are trained one at a time, as Eqs. 1 and 2 count them: those of a bank trained at once share their work.
    """
    from sklearn.svm import SVC

    def ours(row: np.ndarray) -> None:
        train(X, codes, row[None], kernel, C, n_jobs=1)

    def libsvm(row: np.ndarray) -> None:
        used = np.flatnonzero(row[codes])
        SVC(C=C, gamma=kernel.gamma, cache_size=1000).fit(X[used], row[codes[used]])

    def seconds(fit: Callable[[np.ndarray], None]) -> float:
        return timed(lambda: [fit(row) for row in code], repeats, time.process_time)[1]

    return {"smo": seconds(ours), "libsvm": seconds(libsvm)}


def pair_times(sizes: Sequence[int], repeats: int = 2, seed: int = 0) -> pd.DataFrame:
    """CPU seconds to train one machine, Covertype's classes 1 against 2, on m rows that Table 1 does not train on."""
    data = load("covertype", scaled=True)
    rows = np.flatnonzero(data.y_test <= 2)
    rows = np.random.default_rng(seed).choice(rows, max(sizes), replace=False)
    X, codes = data.X_test[rows].astype(float), data.y_test[rows] - 1
    found = [{"solver": solver, "kind": "pair-over-m", "n_classes": 2, "m": m, "seconds": s}
             for m in sizes
             for solver, s in _clock(X[:m], codes[:m], pair_code(2), gaussian(1.0), 10.0, repeats).items()]  # fmt: skip
    return with_exponents(pd.DataFrame(found), "m")


def system_times(ns: Sequence[int], m: int, draws: int = 3, seed: int = 0) -> pd.DataFrame:
    """Mean CPU seconds to train 1-v-r and 1-v-1 systems on m rows of Covertype, of N of its seven classes.

    The classes stand in a random circle; draw d takes N neighbours from place d on, so seven draws are fair to all.
    """
    data, rng, found = load("covertype", scaled=True), np.random.default_rng(seed), []
    circle = 1 + rng.permutation(7)
    for n in ns:
        for draw in range(draws):
            pools = [np.flatnonzero(data.y_train == c) for c in np.roll(circle, -draw)[:n]]
            rows = np.concatenate([rng.choice(pool, m // n, replace=False) for pool in pools])
            X, codes = data.X_train[rows], np.repeat(np.arange(n), m // n)
            for kind, code in (("1-v-r-over-n", rest_code(n)), ("1-v-1-over-n", pair_code(n))):
                for solver, s in _clock(X, codes, code, gaussian(1.0), 10.0, 1).items():
                    found.append({"solver": solver, "kind": kind, "n_classes": n, "m": m, "draw": draw, "seconds": s})
    means = pd.DataFrame(found).groupby(["solver", "kind", "n_classes", "m"], sort=False)["seconds"].mean()
    return with_exponents(means.reset_index(), "n_classes")
