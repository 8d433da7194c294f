"""Scaling fitted on the training rows and applied to the others.

A column that is constant in the training rows becomes 0.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class _Affine:
    """Columns to (X - start) / width * target + offset, and to 0 where width is 0."""

    start: np.ndarray
    width: np.ndarray
    target: float = 1.0
    offset: float = 0.0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The table so mapped, of X's type if that is of floating point."""
        X = np.asarray(X)
        kind = X.dtype
        if not np.issubdtype(kind, np.floating):
            kind = np.dtype(np.float64)
        varies = self.width > 0
        factor = np.zeros(np.shape(self.width))
        np.divide(self.target, self.width, where=varies, out=factor)
        shift = np.where(varies, self.offset, 0.0)
        scaled = (X - self.start) * factor + shift
        return scaled.astype(kind, copy=False)


def scale_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column's training range taken to [-1, 1]."""
    least = np.nanmin(X_train, axis=0)
    width = np.nanmax(X_train, axis=0) - least
    scaled = _Affine(least, width, target=2.0, offset=-1.0)
    return tuple(scaled(X) for X in (X_train, *others))


def standardise_like_training(X_train: np.ndarray, *others: np.ndarray) -> tuple:
    """Return X_train and the others, each column standardised by its training rows.

    Its training mean is subtracted, and what is left divided by its deviation there.
    """
    mean = np.nanmean(X_train, axis=0, dtype=np.float64)
    deviation = np.nanstd(X_train, axis=0, dtype=np.float64)
    # the deviation of a constant column may miss 0 by rounding
    constant = np.nanmin(X_train, axis=0) == np.nanmax(X_train, axis=0)
    standardised = _Affine(mean, np.where(constant, 0.0, deviation))
    return tuple(standardised(X) for X in (X_train, *others))
