"""Scaling fitted on the training rows and applied to the others.

A column that is constant in the training rows becomes 0.
"""

import numpy as np


def scale_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column's training range taken to [-1, 1]."""
    least = np.nanmin(X_train, axis=0)
    width = np.nanmax(X_train, axis=0) - least
    tables = (X_train, *others)
    return tuple(_affine(X, least, width, 2.0, -1.0) for X in tables)


def standardise_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column standardised by its training rows.

    Its training mean is subtracted, and what is left divided by its deviation there.
    """
    mean = np.nanmean(X_train, axis=0, dtype=np.float64)
    deviation = np.nanstd(X_train, axis=0, dtype=np.float64)
    # the deviation of a constant column may miss 0 by rounding
    constant = np.nanmin(X_train, axis=0) == np.nanmax(X_train, axis=0)
    width = np.where(constant, 0.0, deviation)
    tables = (X_train, *others)
    return tuple(_affine(X, mean, width, 1.0, 0.0) for X in tables)


def _affine(
    X: np.ndarray, start: np.ndarray, width: np.ndarray, target: float, offset: float
) -> np.ndarray:
    """Return (X - start) / width * target + offset, and 0 where the width is 0.

    Of X's type, if that is of floating point.
    """
    X = np.asarray(X)
    kind = X.dtype if np.issubdtype(X.dtype, np.floating) else np.dtype(np.float64)
    varies = width > 0
    factor = np.divide(target, width, where=varies, out=np.zeros(np.shape(width)))
    scaled = (X - start) * factor + np.where(varies, offset, 0.0)
    return scaled.astype(kind, copy=False)
