"""Many duals on shared rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel
from .dual import Dual
from .smo import RowCache, solve_smo


@dataclass
class Task:
    """One dual: the rows of X it uses, their labels (a sign, or a soft label's sign), linear term, upper bounds."""

    rows: np.ndarray
    y: np.ndarray
    linear: np.ndarray | None
    upper: np.ndarray
    kernel: Kernel | None = None


def solve_many(
    X: np.ndarray,
    kernel: Kernel,
    tasks: list[Task],
    *,
    tol: float = 1e-3,
    n_jobs: int | None = None,
    cache_size: float = 2000.0,
    max_iter: int = -1,
    verbose: int = 0,
) -> list[Dual]:
    """The Dual of every task, in order."""
    duals = []
    for task in tasks:
        own = task.kernel or kernel
        if own.name == "precomputed":
            K = X[np.ix_(task.rows, task.rows)]
        elif len(task.rows) ** 2 * 8 <= cache_size * 2**20:
            K = own(X[task.rows], X[task.rows])
        else:
            K = RowCache(X[task.rows], own, cache_size)
        duals.append(
            solve_smo(
                K,
                task.y,
                tol=tol,
                linear=task.linear,
                upper=task.upper,
                max_iter=max_iter,
                cache_size=cache_size,
            )
        )
    return duals
