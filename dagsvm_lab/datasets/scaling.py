"""Scaling fitted on training rows and applied to others."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scaling:
    """A map x -> (x - shift) * factor + offset, column by column, that keeps its input's precision."""

    shift: np.ndarray
    factor: np.ndarray
    offset: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """X scaled."""
        scaled = (X - self.shift) * self.factor + self.offset
        return scaled.astype(X.dtype if np.issubdtype(X.dtype, np.floating) else np.float64, copy=False)


def _factor(width: np.ndarray, target: float) -> np.ndarray:
    return np.divide(target, width, where=width > 0, out=np.zeros_like(width))


def fit_range(X_train: np.ndarray, low: float = -1.0, high: float = 1.0) -> Scaling:
    """The `Scaling` that takes each training column to [low, high]; a constant column becomes 0 everywhere."""
    X = np.asarray(X_train, dtype=np.float64)
    least, most = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    factor = _factor(most - least, high - low)
    return Scaling(least, factor, np.where(factor > 0, low, 0.0))


def fit_standard(X_train: np.ndarray) -> Scaling:
    """The `Scaling` that takes each training column to mean 0, variance 1; a constant column becomes 0 everywhere."""
    X = np.asarray(X_train, dtype=np.float64)
    mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    constant = np.nanmin(X, axis=0) == np.nanmax(X, axis=0)  # the deviation may miss 0 by rounding
    return Scaling(mean, _factor(np.where(constant, 0.0, deviation), 1.0), np.zeros(X.shape[1]))


def scale_like_training(X_train: np.ndarray, *others: np.ndarray, low: float = -1.0, high: float = 1.0) -> tuple:
    """X_train and the others, scaled by the training rows' least and greatest values (see `fit_range`)."""
    scaling = fit_range(X_train, low, high)
    return tuple(scaling(np.asarray(X)) for X in (X_train, *others))


def standardise_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """X_train and the others, scaled by the training rows' mean and deviation (see `fit_standard`)."""
    scaling = fit_standard(X_train)
    return tuple(scaling(np.asarray(X)) for X in (X_train, *others))
