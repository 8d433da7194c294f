"""Kernel values of many machines at once, in one table of units.

A unit is a short piece of a kernel row, `size` values long. Machines of whole classes
can share kernel values: each class fills some units, and a machine is a list of units
(`SharedLayout`). Other machines have one unit a row, and a kernel matrix, of their own
(`own_matrices`). Steps and solutions are the same for both: piece q of kernel row i of
machine t is unit row[t, i] + across[t, q].

Steps are taken on H of steps.py, half the squared distances in feature space. Where
float32 is safe, H is of float32; K is in float64, and of a shared one only the rows
that solutions ask for, the support vectors, are computed.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| UNIT_ROWS = 64 | rows of a unit | Segment: half 1.02, twice 1.00 |
| MOST_SHARED = 2^24 | shared kernel values | 3,000 rows of ten made classes: half 2.0 |
| | | Letter, 4,000 rows: half 1.01 |
| SCRATCH_BYTES = 2^26 | bytes of an array that a thread keeps | The same 3,000 rows: |
| | | a quarter 1.04, twice .99 |
| MOST_GATHERED = 2^18 | kernel values gathered at a time | Segment: a quarter 1.03, |
| | | four times 1.05 |
"""

import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..rows import Rows
from .dual import starts
from .steps import SLIGHT

UNIT_ROWS = 64
MOST_SHARED = 1 << 24
SCRATCH_BYTES = 1 << 26
MOST_GATHERED = 1 << 18


class _Scratch(threading.local):
    """Arrays that a thread keeps from one call to the next.

    New memory costs more than computing what fills it.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}


_SCRATCH = _Scratch()


def scratch_array(name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of any content, in memory that this thread keeps under `name`.

    The next array of that name overwrites it. Of each name at most SCRATCH_BYTES are
    kept.
    """
    size = int(np.prod(shape))
    flat = _SCRATCH.arrays.get(name)
    if flat is None or flat.size < size or flat.dtype != dtype:
        flat = np.empty(size, dtype)
        if flat.nbytes <= SCRATCH_BYTES:
            _SCRATCH.arrays[name] = flat
    return flat[:size].reshape(shape)


@dataclass(frozen=True)
class Blocks:
    """The values of a table: blocks of equally many rows, one after the other.

    Attributes
    ----------
    H, K : (blocks, rows, rows), those of H, and of K in float64.
    slot : where each row of all blocks is in K, -1 for one still to be computed.
    fetch : fetch(rows, out) computes rows of K; None where K is whole.
    """

    H: np.ndarray
    K: np.ndarray
    slot: np.ndarray
    fetch: Callable | None = None


class KernelTable:
    """Units of kernel matrices; machine t has the units across[t] of its block.

    A block is one kernel matrix, of a machine's own or of all classes.

    Attributes
    ----------
    H, K, slot, fetch : as in Blocks, but H and K as units, (units, size).
    block : (machines,) which block each machine has its rows in; it is given alone.
    length, units : rows of a block, and units of one of its rows.
    across : (machines, units), where each machine's units are in a row of its block.
    place : (machines, rows), each machine's rows, counted in its block.
    at : the same, counted in all blocks.
    row : the same, as the number of the row's first unit in H.
    """

    def __init__(self, blocks: Blocks, block, across, size: int):
        n = len(across)
        self.length = blocks.K.shape[1]
        self.units = self.length // size
        self.slot = blocks.slot
        self.fetch = blocks.fetch
        self.across = across
        # (machines, units, size), and then (machines, rows)
        within = across[:, :, None] * size + np.arange(size)
        self.place = within.reshape(n, -1)
        self.at = block[:, None] * self.length + self.place
        self.row = self.at * self.units
        self.H = blocks.H.reshape(-1, size)
        self.K = blocks.K.reshape(-1, size)

    @property
    def largest_diagonal(self) -> np.ndarray:
        """For each machine, the largest |K_ii| of its block."""
        if self.fetch is not None:  # shared kernels are safe in float32, so K_ii = 1
            return np.ones(len(self.across))
        K = self.K.reshape(-1, self.length, self.length)
        K_ii = np.diagonal(K, axis1=1, axis2=2)  # (blocks, rows)
        largest = np.abs(K_ii).max(1)
        block = self.at[:, 0] // self.length
        return largest[block]

    def part(self, machines: np.ndarray) -> Self:
        """The table of some of the machines."""
        if len(machines) == len(self.across):
            return self
        other = copy(self)
        other.across = self.across[machines]
        other.place = self.place[machines]
        other.at = self.at[machines]
        other.row = self.row[machines]
        return other

    def half(self, t: int) -> Callable[[int], np.ndarray]:
        """What gives H_i of machine t."""
        if self.units == 1:
            # the machine's rows of H stand one after the other
            return self.H[self.row[t, 0] :].__getitem__
        row = self.row[t].tolist()
        across = self.across[t]

        def H_i(i: int) -> np.ndarray:
            return self.H.take(row[i] + across, 0, mode="clip").reshape(-1)

        return H_i

    def _slots(self, machines: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Places among the rows of K of the machines' rows `local`.

        Rows that are not there yet are computed, and placed after the others.
        """
        rows = self.at[machines, local]
        if self.fetch is None:
            return self.slot[rows]
        known = self.slot >= 0
        wanted = known.copy()
        wanted[rows] = True
        new = np.flatnonzero(wanted & ~known)
        if len(new):
            # rows of K are given out in the order in which they are asked for
            first = np.count_nonzero(known)
            last = first + len(new)
            self.slot[new] = np.arange(first, last)
            whole_rows = self.K.reshape(-1, self.length)
            self.fetch(new, whole_rows[first:last])
        return self.slot[rows]

    def times(self, beta: np.ndarray, live: np.ndarray) -> np.ndarray:
        """K beta of the machines `live`, whose beta (machines, rows) this is."""
        if self.units == 1:
            K = self.K.reshape(-1, self.length, self.length)
            if len(live) == len(K):  # all of them, in order
                f = K @ beta[:, :, None]
                return f[:, :, 0]
            pairs = zip(live, beta, strict=True)
            return np.array([K[t] @ b for t, b in pairs])
        # units: machines of similarly many support vectors together
        f = np.zeros(beta.shape)
        count = np.count_nonzero(beta, axis=1)
        order = np.argsort(-count, kind="stable")
        first = 0
        while first < len(order) and count[order[first]]:
            most = int(count[order[first]])
            some = 1 + MOST_GATHERED // (most * beta.shape[1])
            part = order[first : first + some]
            f[part] = self._gathered_times(beta[part], live[part], most)
            first += len(part)
        return f

    def _gathered_times(self, beta, live, most: int) -> np.ndarray:
        """K beta of some machines, from at most `most` rows of each, gathered."""
        # (machines, most): the support vectors, then, not real, the first of them again
        support_first = np.argsort(beta == 0.0, axis=1, kind="stable")
        at = support_first[:, :most]
        count = np.count_nonzero(beta, axis=1)
        real = np.arange(most) < count[:, None]
        at = np.where(real, at, at[:, :1])
        # (machines, most, units), and then (machines, most, rows)
        first_unit = self._slots(live[:, None], at) * self.units
        across = self.across[live]
        units = first_unit[:, :, None] + across[:, None]
        values = self.K.take(units, 0, mode="clip")
        values = values.reshape(len(live), most, -1)
        weights = np.take_along_axis(beta, at, 1) * real
        f = weights[:, None] @ values
        return f[:, 0]

    def square(self, machines: np.ndarray, local: np.ndarray) -> np.ndarray:
        """Kernel matrices (machines, w, w) of rows local[k] (w,) of the machines[k]."""
        own = machines[:, None]
        rows = self._slots(own, local) * self.length
        columns = self.place[own, local]
        values = rows[:, :, None] + columns[:, None]  # where each is in K, laid flat
        return self.K.reshape(-1).take(values, mode="clip")


def own_matrices(H: np.ndarray, K: np.ndarray | None = None) -> KernelTable:
    """The table of machines that have a matrix each, (n, w, w).

    Without K the one that is given stands for both: H for steps, K for Newton's method.
    """
    n, w = H.shape[:2]
    one_unit = np.zeros((n, 1), int)
    K = H if K is None else K
    blocks = Blocks(H, K, slot=np.arange(n * w))
    return KernelTable(blocks, np.arange(n), one_unit, w)


def half_distances(K: np.ndarray, single: bool) -> np.ndarray:
    """H_ij = (K_ii + K_jj) / 2 - K_ij of steps.py; in float32 where that is safe."""
    if single:
        H = scratch_array("H", K.shape, np.float32)
        # K_ii = 1 here, and K at most 1 up to rounding: H stays above zero
        np.subtract(1.0, K, out=H, casting="same_kind")
        return np.add(H, SLIGHT, out=H)
    half = 0.5 * np.diagonal(K, axis1=1, axis2=2)  # (machines, rows)
    return half[:, :, None] + half[:, None, :] - K


class SharedLayout:
    """Rows of X laid end to end by class, in units of `size` rows.

    Attributes
    ----------
    place : where each row of X is, -1 for rows that no machine has.
    rows : which row is where; gaps have any.
    cells : kernel values of the layout.
    """

    def __init__(self, used: np.ndarray, codes: np.ndarray):
        by_class = np.argsort(codes[used], kind="stable")
        used = used[by_class]
        _, n = np.unique(codes[used], return_counts=True)  # rows of each class
        # the largest class fills its units evenly, to at most UNIT_ROWS
        most_units = -(-n.max() // UNIT_ROWS)
        self.size = -(-n.max() // most_units)
        units = -(-n // self.size)
        room = units * self.size
        gaps = starts(room) - starts(n)  # empty places before each class
        number = np.arange(len(used))
        self.place = np.full(len(codes), -1)
        self.place[used] = number + np.repeat(gaps, n)
        self.rows = np.full(room.sum(), used[0])
        self.rows[self.place[used]] = used
        self.cells = len(self.rows) ** 2

    def share(self, every: list[Rows], single: list[Rows]) -> Blocks:
        """The values of a table, one block a kernel.

        The kernels' rows are prepared in float64 (`every`) and in float32 (`single`).
        """
        B = len(every)
        R = len(self.rows)
        H = scratch_array("H", (B, R, R), np.float32)
        K = scratch_array("K", (B, R, R), float)
        slot = np.full(B * R, -1)

        def fetch(new: np.ndarray, out: np.ndarray) -> None:
            """Compute rows of K, numbered block after block and in that order."""
            for b, rows in enumerate(every):
                first, last = np.searchsorted(new, [b * R, (b + 1) * R])
                in_block = new[first:last] - b * R
                rows.fill(self.rows[in_block], self.rows, out[first:last])

        for rows, out in zip(single, H, strict=True):
            rows.fill(self.rows, self.rows, out, symmetric=True)
        # H = 1 - K, in the place of K, and above zero; 64 rows stay in the cache
        n_parts = -(-B * R // 64)
        for part in np.array_split(H.reshape(-1, R), n_parts):
            np.subtract(1.0, part, out=part)
            np.abs(part, out=part)
            part += SLIGHT
        return Blocks(H, K, slot, fetch)

    def units(
        self, n: int, machine: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(units of n machines, where among its own each machine has its rows).

        `machine` and `rows` say machine by machine which rows of X it has.
        """
        unit, within = np.divmod(self.place[rows], self.size)
        present = np.zeros((n, len(self.rows) // self.size), bool)  # (machines, units)
        present[machine, unit] = True
        most = max(1, present.sum(1).max())
        # a machine's own units first; others fill up, whose rows have no room to move
        across = np.argsort(~present, axis=1, kind="stable")[:, :most]
        own_number = np.cumsum(present, axis=1) - 1  # of a unit among the machine's
        local = own_number[machine, unit] * self.size + within
        return across, local
