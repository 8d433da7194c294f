"""Kernel values of many machines at once, in one table of units: short pieces of kernel rows, end to end.

Machines of whole classes can share kernel values: a class fills some units of `size` rows, and a machine is a list of
units. Other machines have one unit, and a kernel matrix, of their own. Steps and solutions are the same for both: piece
q of kernel row i of machine t is unit row[t, i] + across[t, q].

Steps are taken on H of steps.py. That of a shared Gaussian is computed in float32, where it is safe, and K in float64
only in the rows that solutions ask for: the support vectors.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| UNIT = 64 | rows of a unit | Segment: half 1.02, twice 1.00 |
| LARGEST = 2^24 | shared kernel values | 3,000 rows of ten made classes: half 2.0. Letter, 4,000 rows: half 1.01 |
| KEPT = 2^26 | bytes of an array that a thread keeps | The same 3,000 rows: a quarter 1.04, twice .99 |
| CELLS = 2^18 | kernel values gathered at a time | Segment: a quarter 1.03, four times 1.05 |
"""

import threading
from collections.abc import Callable
from copy import copy
from typing import Self

import numpy as np

from ..kernels import Rows
from .steps import SLIGHT

UNIT = 64
LARGEST = 1 << 24
KEPT = 1 << 26
CELLS = 1 << 18


class _Memory(threading.local):
    """Arrays that a thread keeps from one call to the next: new memory costs more than computing what fills it."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}


_MEMORY = _Memory()


def kept(name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of this shape with any content, in memory kept for `name`; at most KEPT bytes stay."""
    size = int(np.prod(shape))
    flat = _MEMORY.arrays.get(name)
    if flat is None or flat.size < size or flat.dtype != dtype:
        flat = np.empty(size, dtype)
        if flat.nbytes <= KEPT:
            _MEMORY.arrays[name] = flat
    return flat[:size].reshape(shape)


class Table:
    """Units of kernel matrices (blocks x rows x rows); machine t has the units across[t] of its block.

    Attributes
    ----------
    H, K : units of H, and of K in float64.
    slot, fetch : where each row is in K, -1 for one that is still to be computed, and the function that does it.
    place, at, row : each machine's rows, counted in its block, in all blocks, and as the number of the first unit of H.
    length, units : rows of a block, and units of one of its rows.
    """

    def __init__(self, H, K, slot, fetch: Callable | None, block, across, size: int):
        self.length, self.slot, self.fetch = K.shape[1], slot, fetch
        self.units, self.across = self.length // size, across
        self.place = (across[:, :, None] * size + np.arange(size)).reshape(len(across), -1)
        self.at = block[:, None] * self.length + self.place
        self.row = self.at * self.units
        self.H, self.K = H.reshape(-1, size), K.reshape(-1, size)

    @property
    def diagonal(self) -> np.ndarray:
        """For each machine, the largest |K_ii| of its block."""
        if self.fetch is not None:
            return np.ones(len(self.across))
        K = self.K.reshape(-1, self.length, self.length)
        return np.abs(np.diagonal(K, 0, 1, 2)).max(1)[self.at[:, 0] // self.length]

    def part(self, who: np.ndarray) -> Self:
        """The table of some of the machines."""
        if len(who) == len(self.across):
            return self
        other = copy(self)
        other.across, other.place, other.at, other.row = (a[who] for a in (self.across, self.place, self.at, self.row))
        return other

    def half(self, t: int) -> Callable[[int], np.ndarray]:
        """What gives H_i of machine t."""
        if self.units == 1:
            return self.H[self.row[t, 0] :].__getitem__
        row, across = self.row[t].tolist(), self.across[t]
        return lambda i: self.H.take(row[i] + across, 0, mode="clip").reshape(-1)

    def _slots(self, who: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Places among the rows of K of the rows `at` of the machines `who`."""
        rows = self.at[who, at]
        if self.fetch is not None:
            known = self.slot >= 0
            wanted = known.copy()
            wanted[rows] = True
            if len(new := np.flatnonzero(wanted & ~known)):
                first = np.count_nonzero(known)
                self.slot[new] = first + np.arange(len(new))
                self.fetch(new, self.K.reshape(-1, self.length)[first : first + len(new)])
        return self.slot[rows]

    def times(self, beta: np.ndarray, live: np.ndarray) -> np.ndarray:
        """K beta of the machines `live`, whose beta this is."""
        if self.units == 1:
            K = self.K.reshape(-1, self.length, self.length)
            if len(live) == len(K):
                return (K @ beta[:, :, None])[:, :, 0]
            return np.array([K[t] @ b for t, b in zip(live, beta, strict=True)])
        f, count, first = np.zeros(beta.shape), np.count_nonzero(beta, axis=1), 0
        order = np.argsort(-count, kind="stable")
        while first < len(order) and (most := int(count[order[first]])):
            part = order[first : first + 1 + CELLS // (most * beta.shape[1])]
            at = np.argsort(beta[part] == 0.0, axis=1, kind="stable")[:, :most]
            real = np.arange(most) < count[part, None]
            at = np.where(real, at, at[:, :1])
            rows = self._slots(live[part, None], at) * self.units
            values = self.K.take(rows[:, :, None] + self.across[live[part], None], 0, mode="clip")
            weights = np.take_along_axis(beta[part], at, 1) * real
            f[part] = (weights[:, None] @ values.reshape(len(part), most, -1))[:, 0]
            first += len(part)
        return f

    def square(self, who: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Kernel matrices of the rows at[k] of the machines who[k]."""
        rows, columns = self._slots(who[:, None], at) * self.length, self.place[who[:, None], at]
        return self.K.reshape(-1).take(rows[:, :, None] + columns[:, None], mode="clip")


def apart(H: np.ndarray, K: np.ndarray | None = None) -> Table:
    """The table of machines that have a matrix each."""
    n, w = H.shape[:2]
    return Table(H, H if K is None else K, np.arange(n * w), None, np.arange(n), np.zeros((n, 1), int), w)


def halves(K: np.ndarray, single: bool) -> np.ndarray:
    """H_ij = (K_ii + K_jj) / 2 - K_ij of steps.py; of a Gaussian in float32 where that is safe."""
    if single:
        H = np.subtract(1.0, K, out=kept("H", K.shape, np.float32), casting="same_kind")
        return np.add(H, SLIGHT, out=H)
    half = 0.5 * np.diagonal(K, 0, 1, 2)
    return half[:, :, None] + half[:, None, :] - K


class Classes:
    """Rows of X laid end to end by class, in units of `size` rows.

    Attributes
    ----------
    place : where each row of X is, -1 for rows that no machine has. rows : which row is where; gaps have any.
    """

    def __init__(self, used: np.ndarray, codes: np.ndarray):
        used = used[np.argsort(codes[used], kind="stable")]
        n = np.unique(codes[used], return_counts=True)[1]
        self.size = -(-n.max() // -(-n.max() // UNIT))
        units = -(-n // self.size)
        gaps = np.cumsum(units * self.size) - units * self.size - (np.cumsum(n) - n)
        self.place, self.rows = np.full(len(codes), -1), np.full(units.sum() * self.size, used[0])
        self.place[used] = np.arange(len(used)) + np.repeat(gaps, n)
        self.rows[self.place[used]], self.cells = used, len(self.rows) ** 2

    def share(self, every: list[Rows], single: list[Rows]) -> tuple:
        """Values (H, K, slot, fetch) of a Table of Gaussians, whose rows are prepared in float64 and in float32."""
        B, R = len(every), len(self.rows)
        H, K = kept("H", (B, R, R), np.float32), kept("K", (B, R, R), float)

        def fetch(new: np.ndarray, out: np.ndarray) -> None:
            for b, rows in enumerate(every):
                own = slice(*np.searchsorted(new, [b * R, (b + 1) * R]))
                rows.fill(self.rows[new[own] - b * R], self.rows, out[own])

        for rows, out in zip(single, H, strict=True):
            rows.fill(self.rows, self.rows, out, symmetric=True)
        for part in np.array_split(H.reshape(-1, R), -(-B * R // 64)):
            np.add(np.abs(np.subtract(1.0, part, out=part), out=part), SLIGHT, out=part)
        return H, K, np.full(B * R, -1), fetch

    def units(self, n: int, machine: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The units of n machines, and where among its own each machine has its rows."""
        unit, more = np.divmod(self.place[rows], self.size)
        present = np.zeros((n, len(self.rows) // self.size), bool)
        present[machine, unit] = True
        across = np.argsort(~present, axis=1, kind="stable")[:, : max(1, present.sum(1).max())]
        return across, (np.cumsum(present, axis=1) - 1)[machine, unit] * self.size + more
