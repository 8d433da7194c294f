"""Kernel rows of support vectors, kept: they judge duals on all their rows, and long active sets step on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..kernels import SIDE, Rows

BLOCK = 1 << 25  # bytes of kept rows at most that are one array
SMALL = 1 << 20  # bytes of a block that is not worth keeping for others
TILE = SIDE**2  # kernel values computed at a time, so that they stay in a core's own cache
CUT = 1 << 23  # bytes of cut rows that are one array: large ones cost the operating system less
STRIP = 2048  # rows judged at a time, all of a strip in one thread
FEW, FOUR = 3, 4  # from so few duals a product of matrices is faster than products with vectors, most so of four rows


class Columns:
    """K[i, at] of rows i: computed once, and kept while `room` bytes last.

    `spare` are arrays that others have released: new memory costs about as much as computing what fills it. `each` is
    the `map` to compute by, perhaps of threads: what comes out is the same.
    """

    def __init__(self, rows: Rows, at: np.ndarray, room: float, spare: list[np.ndarray], each: Callable = map):
        self.rows, self.at, self.spare, self.each = rows, at, spare, each
        width = rows.dtype.itemsize * max(len(at), 1)
        self.most = min(int(room / width), len(rows))
        self.tall = max(1, min(BLOCK // width, max(128, len(at) // 16), self.most))
        self.slot, self.ids, self.blocks = np.full(len(rows), -1), np.empty(0, int), []
        self.cut: list[np.ndarray] = []  # what Cuts of it have cleared
        self.past: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # of a dual: weights not kept, and their product

    def learn(self, ids: np.ndarray) -> bool:
        """Whether the rows are all kept now: those that are not yet are computed, if there is room."""
        new = ids[self.slot[ids] < 0]
        if len(self.ids) + len(new) > self.most:
            return False
        while len(new):
            k, used = divmod(len(self.ids), self.tall)
            if k == len(self.blocks):
                self.blocks.append(self._another())
            part, new = new[: self.tall - used], new[self.tall - used :]
            self.rows.fill(part, self.at, self.blocks[k][used : used + len(part)], self.each)
            self.slot[part] = len(self.ids) + np.arange(len(part))
            self.ids = np.concatenate([self.ids, part])
        return True

    def _another(self) -> np.ndarray:
        shape = (self.tall, len(self.at))
        try:
            block = self.spare.pop()  # in one go: other threads pop too
        except IndexError:
            return np.empty(shape, self.rows.dtype)
        return block if (block.shape, block.dtype) == (shape, self.rows.dtype) else np.empty(shape, self.rows.dtype)

    def release(self) -> None:
        """Nothing; forgets what is kept, and leaves its memory to others."""
        self.spare += [block for block in self.blocks if block.nbytes > SMALL]
        self.slot[:], self.ids, self.blocks, self.past = -1, self.ids[:0], [], {}

    def row(self, i: int) -> np.ndarray:
        """K[i, at] of a row that is kept."""
        k, used = divmod(self.slot.item(i), self.tall)
        return self.blocks[k][used]

    def times(self, support: np.ndarray, weights: np.ndarray, who: Sequence[int]) -> np.ndarray:
        """(K[at, support] @ weights).T in float64, one row a dual; `who` are the duals' numbers.

        Of rows that are not kept, only those whose weights are not those of the last time are computed.
        """
        all_kept = self.learn(support)
        duals = len(who)
        full = np.zeros((-(-duals // FOUR) * FOUR if duals >= FEW else duals, len(self.rows)), self.rows.dtype)
        full[:duals, support] = weights.T
        f = np.zeros((duals, len(self.at)))
        changes, beyond = ([], f) if all_kept and not self.past else self._changes(full, who)

        def strip(first: int) -> None:
            part = slice(first, first + STRIP)
            total, at = f[:, part], self.at[part]
            for k, block in enumerate(self.blocks):
                w = full[:, self.ids[k * self.tall : (k + 1) * self.tall]]
                values = block[: w.shape[1], part]
                if duals >= FEW:
                    total += (w @ values)[:duals]
                else:
                    for one, row in zip(total, w, strict=True):
                        one += row @ values
            for ids, w in changes:
                for n, tile in self.rows.tiles(at, ids, TILE // len(ids)):
                    beyond[:, first + n : first + n + len(tile)] += (w @ tile.T)[:duals]

        for _ in self.each(strip, range(0, len(self.at), STRIP)):
            pass
        return f if beyond is f else f + beyond

    def _changes(self, full: np.ndarray, who: Sequence[int]) -> tuple[list[tuple], np.ndarray]:
        """What has changed of the weights of rows not kept, in parts, and the products of these rows before that."""
        change = full.copy()
        change[:, self.ids] = 0.0
        weights = change[: len(who)]
        none = np.zeros(len(self.rows), full.dtype), np.zeros(len(self.at))
        before, beyond = (np.array(part) for part in zip(*(self.past.get(k, none) for k in who), strict=True))
        self.past |= zip(who, zip(weights.copy(), beyond, strict=True), strict=True)
        weights -= before
        ids = np.flatnonzero(change.any(0))
        return [(part, change[:, part]) for part in np.split(ids, range(SIDE, len(ids), SIDE)) if len(part)], beyond


class Cuts(dict):
    """Rows of Columns by number, cut to the active rows of a dual; clear() leaves their memory to other duals."""

    def __init__(self, columns: Columns):
        self.spare, self.dtype = columns.cut, columns.rows.dtype
        self.size = self.used = max(CUT // self.dtype.itemsize, len(columns.at))
        self.blocks: list[np.ndarray] = []

    def clear(self) -> None:
        """Nothing; forgets all rows."""
        super().clear()
        self.spare += self.blocks
        self.blocks, self.used = [], self.size

    def room(self, n: int) -> np.ndarray:
        """An array of n values to write a row to."""
        if self.used + n > self.size:
            self.blocks.append(self.spare.pop() if self.spare else np.empty(self.size, self.dtype))
            self.used = 0
        self.used += n
        return self.blocks[-1][self.used - n : self.used]
