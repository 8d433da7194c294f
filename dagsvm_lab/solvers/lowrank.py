"""A kernel matrix of low rank as K = Z Z', by a pivoted Cholesky factor.

Only columns of K are asked for, one a rank. Where the sum of beta is fixed, distances
are all that a dual sees of K: Z may then be centred (`centred_factor`), which keeps its
values small where all rows are far from zero.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from ..rows import Rows
from .dual import EPS


@dataclass(frozen=True)
class KeptFactor:
    """The factor Z of the kernel matrix of some rows, kept for duals of the same ones.

    `ids` are the rows' numbers among the prepared `rows`; Z is None where the rank is
    above `most_rank`.
    """

    rows: Rows
    ids: np.ndarray
    most_rank: int | None
    Z: np.ndarray | None

    def is_of(self, rows: Rows, ids: np.ndarray, most_rank: int | None) -> bool:
        """Whether it is the factor of these rows, or none up to this rank."""
        same = self.rows is rows and np.array_equal(self.ids, ids)
        return same and (self.Z is not None or self.most_rank == most_rank)


def centred_factor(
    diagonal: np.ndarray, columns: Callable, most_rank: int | None = None
) -> np.ndarray | None:
    """Z (n, rank), its rows of mean 0, with the distances of K; None if it is too wide.

    K is seen from one of the rows: the rank is that of their differences.
    """
    origin = int(np.argmin(diagonal))
    to_origin = columns(np.array([origin]))[:, 0]
    from_origin = to_origin - to_origin[origin]
    least = len(diagonal) * EPS * float(np.abs(diagonal).max())

    def differences(rows: np.ndarray) -> np.ndarray:
        """Columns of the kernel matrix of phi(x_i) - phi(origin)."""
        return columns(rows) - to_origin[:, None] - from_origin[rows]

    # |phi(x_i) - phi(origin)|^2: the diagonal of `differences`
    left = diagonal - to_origin - from_origin
    others = np.delete(np.arange(len(left)), origin)
    if most_rank is not None and most_rank < len(others):
        # one row more than the rank may be: if they are independent, it is larger
        spread = np.linspace(0, len(others) - 1, most_rank + 1)
        some = others[spread.astype(int)]
        _, _, rank, _ = dpstrf(differences(some)[some], tol=least)
        if rank == len(some):
            return None
    Z = cholesky(left, differences, least, most_rank)
    return None if Z is None else Z - Z.mean(axis=0)


def cholesky(
    diagonal: np.ndarray, columns: Callable, least: float, most_rank: int | None = None
) -> np.ndarray | None:
    """Z (n, rank) with Z Z' = K up to `least`; None if the rank is above `most_rank`.

    Columns are taken in the order of what is left of the diagonal, the largest first.
    """
    n = len(diagonal)
    most = n if most_rank is None else min(most_rank, n)
    left = diagonal.astype(float)
    Z = np.empty((n, min(most, 32)), order="F")
    rank = 0
    while left.max() > max(least, 1e-300):
        if rank == most:
            return None
        if rank == Z.shape[1]:  # twice the room, or all there may be
            more = np.empty((n, min(most, 2 * rank) - rank), order="F")
            Z = np.concatenate([Z, more], axis=1)
        pivot = int(np.argmax(left))
        column = columns(np.array([pivot]))[:, 0].astype(float)
        column -= Z[:, :rank] @ Z[pivot, :rank]  # what the columns before leave of it
        column /= np.sqrt(left[pivot])
        Z[:, rank] = column
        left -= column**2
        left[pivot] = -np.inf  # taken
        rank += 1
    return Z[:, :rank]
