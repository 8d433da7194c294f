"""Where the kernel values of long duals come from.

No whole kernel matrix is formed: kernel rows of support vectors are, once if they fit
(columns.py); duals of the same rows, as one class against the rest, share them. Steps
on few active rows have the values of these alone, stacked.
"""

from collections.abc import Callable

import numpy as np

from ..rows import TILE_SIDE, Rows, prepared
from .columns import KernelColumns
from .dual import ranges
from .search import Search
from .steps import SLIGHT


class KernelValues:
    """Where the kernel values of a chunk come from, in one precision.

    Attributes
    ----------
    rows, columns : for each dual, its prepared rows, and the kernel rows kept (several
        duals may share both).
    ids, place : (rows,) every row's number among its dual's prepared rows, and among
        `columns.at`.
    half, largest : (rows,) K_ii / 2, and (duals,) the largest |K_ii|.
    one_rows, shared : whether all duals have the same prepared rows, and kept ones.
    each : the map that kernel rows are computed by.
    """

    def __init__(
        self, search: Search, rows: Rows | None, dtype, shared: bool, each: Callable
    ):
        self.dtype = np.dtype(dtype)
        self.shared = shared
        self.each = each
        self.one_rows = rows is not None
        n = len(search.length)
        first = np.repeat(search.first, search.length)
        within = np.arange(len(first)) - first  # each row's place in its dual
        if rows is None:
            self.rows = self._own_rows(search)
            self.ids = within
            diagonal = np.concatenate([own.diagonal() for own in self.rows])
        else:
            self.rows = [rows] * n
            self.ids = search.duals.rows
            diagonal = rows.diagonal()[self.ids]
        self.half = (0.5 * diagonal).astype(dtype)
        self.largest = np.maximum.reduceat(np.abs(diagonal), search.first)
        room = search.settings.cache_size * 2**19  # half of the MB, in bytes
        if shared:
            every = np.unique(self.ids)
            self.columns = [KernelColumns(rows, every, room, each)] * n
            self.place = np.searchsorted(every, self.ids)
        else:
            self.columns = []
            for k, own in enumerate(self.rows):
                at = self.ids[search.of(k)]
                self.columns.append(KernelColumns(own, at, room / n, each))
            self.place = within

    def _own_rows(self, search: Search) -> list[Rows]:
        """Prepared rows of each dual alone, where each has a kernel of its own."""
        found = []
        for k, kernel in enumerate(search.kernels):
            subset = kernel.subset(search.X, search.duals.rows[search.of(k)])
            found.append(prepared(subset, kernel, self.dtype))
        return found

    def products(self, search: Search, some: np.ndarray) -> np.ndarray:
        """K beta of some duals on all their rows, end to end."""
        if self.shared:
            return self._shared_products(search, some)
        parts = []
        for k in some:
            own = search.of(k)
            beta = search.beta[own]
            support = np.flatnonzero(beta)
            ids = self.ids[own][support]
            f = self.columns[k].times(ids, beta[support, None], [k])  # (1, rows)
            parts.append(f[0])
        return np.concatenate(parts)

    def _shared_products(self, search: Search, some: np.ndarray) -> np.ndarray:
        """The same of duals that share kernel rows: one product for all."""
        length = search.length[some]
        rows = ranges(search.first[some], length)
        owner = np.repeat(np.arange(len(some)), length)
        support = np.flatnonzero(search.beta[rows])
        held = rows[support]
        ids, number = np.unique(self.ids[held], return_inverse=True)
        weights = np.zeros((len(ids), len(some)))
        weights[number, owner[support]] = search.beta[held]
        f = self.columns[0].times(ids, weights, some.tolist())  # (duals, all rows)
        return f[owner, self.place[rows]]

    def half_distances(self, group, rows, at, shape) -> np.ndarray:
        """H_ij = (K_ii + K_jj) / 2 - K_ij of rows of the duals `group`, stacked.

        The rows are `at` (dual, place) in arrays of that shape. In the stack (duals,
        rows, rows) columns that fill up a real row are above zero.
        """
        ids = np.zeros(shape, int)
        half = np.zeros(shape, self.dtype)
        ids[at] = self.ids[rows]
        half[at] = self.half[rows]
        K = np.empty((*shape, shape[1]), self.dtype)
        count = np.bincount(at[0])
        if self.one_rows and shape[1] <= TILE_SIDE:
            self.rows[0].squares(ids, K)
            self.halve(K, half[:, None], half[:, :, None])
        else:
            for k, t in enumerate(group):
                n = count[k]
                own = ids[k, :n]
                out = K[k, :n, :n]
                self.rows[t].fill(own, own, out, self.each, symmetric=True)
                self.halve(out, half[k, :n], half[k, :n, None])
        # rows that fill up are never asked for, but real rows are divided by these
        for k, n in enumerate(count):
            K[k, :n, n:] = 1.0
        return K

    def halve(self, K: np.ndarray, half_j, half_i) -> np.ndarray:
        """H of some kernel values, in their place."""
        np.subtract(half_j, K, out=K)
        K += half_i
        if K.dtype == np.float32:  # equal rows differ by rounding only
            np.abs(K, out=K)
            K += SLIGHT
        return K
