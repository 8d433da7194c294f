"""Checked training data, as every system is given it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..bank import Bank
from ..kernels import Kernel


@dataclass(frozen=True)
class Sample:
    """Checked training data: rows, class indices, kernel and weights.

    `sample_weight` and `class_weight` are None where all of them are one. `outputs`,
    if given, computes the machines' outputs on these rows; called with True, numbers
    of the same signs will do. In `memo` systems over the same rows and kernel keep
    what they compute once.
    """

    X: np.ndarray  # (rows, inputs), or CSR
    codes: np.ndarray  # (rows,) class indices
    kernel: Kernel
    sample_weight: np.ndarray | None  # (rows,) how often each row counts
    class_weight: np.ndarray | None  # (classes,)
    C: Any = 1.0  # bound of the dual variables, a number or one a machine
    bank: Bank | None = None  # machines that are trained on these rows already
    outputs: Callable[[bool], np.ndarray] | None = None
    memo: dict = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1

    @cached_property
    def row_weight(self) -> np.ndarray:
        """How often each row counts, as an array in any case."""
        if self.sample_weight is None:
            return np.ones(len(self.codes))
        return self.sample_weight

    @property
    def by_class(self) -> np.ndarray:
        """The rows that count, sorted by class."""
        rows = np.argsort(self.codes, kind="stable")
        return rows[self.row_weight[rows] > 0]

    @property
    def bound_factor(self) -> np.ndarray | None:
        """Factor of each row's upper bound C; None where all are one."""
        if self.class_weight is None:
            return self.sample_weight
        return self.class_weight[self.codes] * self.row_weight


def checked_weight(sample_weight: Any, X: Any, codes: np.ndarray) -> np.ndarray:
    """How often each row counts; at least two classes must be left that do."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    weight = np.maximum(weight, 0.0)  # as LIBSVM takes them
    left = np.unique(codes[weight > 0])
    if not len(left):
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    if len(left) < 2:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class"
        )
    return weight
