"""Scaling fitted on the training rows and applied to the others. A column that is constant there becomes 0."""

import numpy as np


def scale_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column taken from its training range to [-1, 1]."""
    least, most = np.nanmin(X_train, axis=0), np.nanmax(X_train, axis=0)
    return tuple(_affine(X, least, most - least, 2.0, -1.0) for X in (X_train, *others))


def standardise_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column less its training mean, over its training deviation."""
    mean, deviation = (f(X_train, axis=0, dtype=np.float64) for f in (np.nanmean, np.nanstd))
    constant = np.nanmin(X_train, axis=0) == np.nanmax(X_train, axis=0)  # the deviation may miss 0 by rounding
    return tuple(_affine(X, mean, np.where(constant, 0.0, deviation), 1.0, 0.0) for X in (X_train, *others))


def _affine(X: np.ndarray, start: np.ndarray, width: np.ndarray, target: float, offset: float) -> np.ndarray:
    """Return (X - start) / width * target + offset in floating point, and 0 where the width is 0."""
    X = np.asarray(X)
    kind = X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
    factor = np.divide(target, width, where=width > 0, out=np.zeros(np.shape(width)))
    return ((X - start) * factor + np.where(width > 0, offset, 0.0)).astype(kind, copy=False)
