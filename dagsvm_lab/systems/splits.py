"""Rows as a user gives them, and the folds they are to be tried on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, check_consistent_length


@dataclass
class GivenRows:
    """Rows as they were given, their labels and how often each counts."""

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None


@dataclass
class Folded(GivenRows):
    """Rows and the folds of a search: indices to train on, and of those held back."""

    folds: list[tuple[np.ndarray, np.ndarray]]


def folded(X, y, cv: Any, groups=None, sample_weight=None) -> tuple[GivenRows, Folded]:
    """The rows to train on in the end, and the rows and folds of the search.

    A validation set's rows stand after the others, as the one fold's held rows.
    """
    if issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    y = np.asarray(y)
    check_consistent_length(X, y, groups)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    every = GivenRows(X, y, sample_weight)
    if _is_validation_set(cv, X):
        data = _with_validation_set(every, *cv)
    else:
        splits = check_cv(cv, y, classifier=True).split(X, y, groups)
        folds = [(_places(fit, y), _places(held, y)) for fit, held in splits]
        data = Folded(X, y, sample_weight, folds)
    if not data.folds:
        raise ValueError("cv gives no folds; at least one is needed")
    for k, (fit, held) in enumerate(data.folds):
        if not len(fit):
            raise ValueError(f"fold {k} of cv trains on no rows")
        if not len(held):
            raise ValueError(f"fold {k} of cv holds no rows back")
    return every, data


def _with_validation_set(rows: GivenRows, X, y) -> Folded:
    """The rows to train on, then those of a validation set, as one fold."""
    joined = _joined(rows.X, X)
    labels = np.concatenate([rows.y, y])
    check_consistent_length(joined, labels)
    weight = rows.sample_weight
    if weight is not None:
        weight = np.concatenate([weight, np.ones(len(y))])
    n = len(rows.y)
    fit = np.arange(n)
    held = np.arange(n, len(labels))
    return Folded(joined, labels, weight, [(fit, held)])


def _places(chosen, y: np.ndarray) -> np.ndarray:
    """Indices of chosen rows, also where they are given as a mask."""
    return np.arange(len(y))[chosen]


def _is_validation_set(cv: Any, X) -> bool:
    """Whether `cv` is a pair (X_valid, y_valid) of rows like those of X."""
    if not isinstance(cv, tuple) or len(cv) != 2:
        return False
    rows, _ = cv
    return np.ndim(rows) == 2 and np.shape(rows)[1:] == X.shape[1:]


def _joined(X, more) -> Any:
    """The rows of X, then these."""
    if issparse(X):
        return vstack([X, more], format="csr")
    if not hasattr(X, "iloc"):
        return np.concatenate([X, more])
    import pandas as pd

    if list(X.columns) != list(getattr(more, "columns", ())):
        raise ValueError("the validation set's columns are not those of X")
    return pd.concat([X, more], ignore_index=True)
