"""What several papers need: sets loaded once, splits, gains over them, timing."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ..datasets import Dataset, load
from ..datasets.scaling import scale_like_training
from ..statistics import corrected_interval


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of a data set, inputs in [-1, 1] on the training rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    rule: str = ""  # how the rows were parted, from which seed
    seed: int = 0
    class_names: tuple[str, ...] = ()  # where y holds class indices


@lru_cache(maxsize=2)
def loaded(name: str, **options) -> Dataset:
    """A data set as `load` gives it, read-only; this process keeps the last two, so
    that readings and experiments which follow each other share one.
    """
    d = load(name, **options)
    d.X.flags.writeable = False
    d.y.flags.writeable = False
    return d


def chosen(datasets: str | Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """The data sets to run: those of `known` that the parameter names ("a,b" or a
    list), or all when it is None.
    """
    if datasets is None:
        return list(known)
    named = datasets.split(",") if isinstance(datasets, str) else datasets
    named = [name.strip() for name in named]
    unknown = [name for name in named if name not in known]
    if unknown:
        raise ValueError(
            f"this notebook knows {', '.join(known)}, not {', '.join(unknown)}"
        )
    return named


def stratified_split(
    y: np.ndarray, share: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted row indices of two parts, the first with `share` of every class (rounded),
    drawn at random.
    """
    rng = np.random.default_rng(seed)
    first = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        first[rows[: round(share * len(rows))]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def scaled_parts(
    X: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of X, inputs in [-1, 1] on the training rows; inputs that
    are constant there are left out."""
    varies = np.ptp(X[train], axis=0) > 0
    return scale_like_training(X[train][:, varies], X[test][:, varies])


def mean_over_splits(
    points: pd.Series, n_test: pd.Series, n_train: pd.Series
) -> tuple[float, float, float]:
    """Mean of points won on splits that share rows, with Nadeau and Bengio's limits
    (2003); without a spread, and so without an interval, three times the mean."""
    if np.ptp(points) == 0:
        return (float(points.iloc[0]),) * 3
    return corrected_interval(points, (n_test / n_train).mean())


def timed(
    function: Callable[[], Any],
    repeats: int = 1,
    clock=time.perf_counter,
    patience: float = np.inf,
) -> tuple:
    """(what `function()` returned, its fewest seconds by `clock` of up to `repeats`
    runs, within about `patience`).
    """
    found: list[float] = []
    while len(found) < repeats and sum(found) < patience:
        start = clock()
        result = function()
        found.append(clock() - start)
    return result, min(found)
