"""What Rathgamage Don and Iacob 2018 may have run: the files, splits and scaling of two readings.

"as written" takes the paper at its word: whole files, ten tests of a fifth, e1071's defaults; no printed result was
looked at. "as inferred" is what the printed digits point to: parts of files, Glass with its Id, eleven tests of a
tenth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from ..datasets import load
from ..report.claims import INFERRED, WRITTEN
from .common import stratified_split

THRESHOLDS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.3, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)


@dataclass(frozen=True)
class Source:
    """What is taken of a set of Table 3: how it is loaded, which part, how many rows drawn; and how many trials."""

    options: dict[str, Any] = field(default_factory=dict)
    part: str | None = None
    sample: int | None = None
    quick: int | None = None  # rows drawn in the quick profile
    trials: int | None = None  # in the full profile, where ten or eleven would take too long


AS_WRITTEN = {
    "artificial": Source(quick=600),
    "iris": Source(),
    "segmentation": Source(quick=700),
    "heart": Source({"drop_missing": True}),
    "wine": Source(),
    "wine-quality": Source(quick=800),
    "glass": Source(),
    "covertype": Source(sample=4000, quick=800),
    "svmguide4": Source(),
    "vowel": Source(),
    "usps": Source(quick=800),
    "letter": Source(quick=1560),
    "poker": Source(quick=800, trials=2),
    "sensorless": Source(quick=1100, trials=2),
}
AS_INFERRED = AS_WRITTEN | {
    "artificial": Source({"n_per_class": 500}, quick=600),
    "segmentation": Source(part="train"),
    "glass": Source({"with_id": True}),
    "covertype": Source(sample=1430),
    "svmguide4": Source(part="train"),
    "vowel": Source(part="train"),
    "usps": Source(part="test", quick=800),
    "letter": Source(quick=1560, trials=4),
}
SOURCES = {WRITTEN: AS_WRITTEN, INFERRED: AS_INFERRED}
DATASETS = tuple(AS_WRITTEN)


@lru_cache(maxsize=4)
def rows_of(reading: str, name: str, profile: str = "full") -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a set in a reading; samples are drawn within classes, always the same ones."""
    source = SOURCES[reading][name]
    d = load(name, **source.options)
    X, y = (d.X, d.y) if source.part is None else (getattr(d, f"X_{source.part}"), getattr(d, f"y_{source.part}"))
    n = min(v for v in (source.sample, source.quick if profile == "quick" else None, len(y)) if v)
    if n < len(y):
        kept = np.isin(np.arange(len(y)), stratified_split(y, n / len(y))[0])
        for c in np.unique(y):  # training and testing need some rows of every class: three at least
            more = np.flatnonzero(~kept & (y == c))[: max(0, 3 - int(np.sum(kept & (y == c))))]
            kept[more] = True
        X, y = X[kept], y[kept]
    return np.asarray(X, dtype=np.float64), y


def trials_of(reading: str, name: str, profile: str) -> int:
    """How many trials: ten as written, eleven as inferred, two in the quick profile; fewer of the largest sets."""
    if profile == "quick":
        return 2
    return SOURCES[reading][name].trials or (10 if reading == WRITTEN else 11)


def splits(reading: str, y: np.ndarray, trials: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each trial: a fifth is tested as written, a tenth as inferred."""
    share = 0.2 if reading == WRITTEN else 0.1
    return list(StratifiedShuffleSplit(trials, test_size=share, random_state=seed).split(y, y))


def e1071_scaled(X: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """X and the others as e1071's svm() scales them: standardised, or left alone if one column of X is constant."""
    width = X.std(axis=0, ddof=1)
    return tuple((A - X.mean(axis=0)) / width if (width > 0).all() else A for A in (X, *others))


def step_parts(separation: Sequence[float]) -> tuple[float, float, float]:
    """Shares of the rise from 0 to 5 % that come before 2.3, from 2.3 to 3 and after 3 % (nothing, if none rises)."""
    rise = np.diff(np.asarray(separation, dtype=float))
    return tuple((rise / rise.sum() if rise.sum() > 0 else np.zeros(3)).tolist())
