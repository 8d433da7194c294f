"""Kernel rows of support vectors, kept: they judge duals on all their rows, and long active sets step on them."""

from __future__ import annotations

import numpy as np

from ..kernels import Rows

BLOCK = 1 << 25  # bytes of kept rows at most that are one array
SMALL = 1 << 20  # bytes of a block that is not worth keeping for others
TILE = 65536  # kernel values computed at a time, so that they stay in a core's own cache
FEW = 3  # so few products with a vector are faster than one with a matrix


class Columns:
    """K[i, at] of rows i: computed once, and kept while `room` bytes last.

    `spare` are arrays that others have released: new memory costs about as much as computing what fills it.
    """

    def __init__(self, rows: Rows, at: np.ndarray, room: float, spare: list[np.ndarray]):
        self.rows, self.at, self.spare = rows, at, spare
        width = rows.dtype.itemsize * max(len(at), 1)
        self.most = min(int(room / width), len(rows))
        self.each = max(1, min(BLOCK // width, max(128, len(at) // 16), self.most))
        self.slot, self.ids, self.blocks = np.full(len(rows), -1), np.empty(0, int), []

    def learn(self, ids: np.ndarray) -> bool:
        """Whether the rows are all kept now: those that are not yet are computed, if there is room."""
        new = ids[self.slot[ids] < 0]
        if len(self.ids) + len(new) > self.most:
            return False
        while len(new):
            k, used = divmod(len(self.ids), self.each)
            if k == len(self.blocks):
                self.blocks.append(self._another())
            part, new = new[: self.each - used], new[self.each - used :]
            self.rows.fill(part, self.at, self.blocks[k][used : used + len(part)])
            self.slot[part] = len(self.ids) + np.arange(len(part))
            self.ids = np.concatenate([self.ids, part])
        return True

    def _another(self) -> np.ndarray:
        shape = (self.each, len(self.at))
        try:
            block = self.spare.pop()  # in one go: other threads pop too
        except IndexError:
            return np.empty(shape, self.rows.dtype)
        return block if (block.shape, block.dtype) == (shape, self.rows.dtype) else np.empty(shape, self.rows.dtype)

    def release(self) -> None:
        """Nothing; forgets what is kept, and leaves its memory to others."""
        self.spare += [block for block in self.blocks if block.nbytes > SMALL]
        self.slot[:], self.ids, self.blocks = -1, self.ids[:0], []

    def row(self, i: int) -> np.ndarray:
        """K[i, at] of a row that is kept."""
        k, used = divmod(self.slot.item(i), self.each)
        return self.blocks[k][used]

    def times(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(K[at, support] @ weights).T in float64, one row a dual."""
        new = support[self.slot[support] < 0]
        if self.learn(new):
            new = new[:0]
        full = np.zeros((weights.shape[1], len(self.rows)), self.rows.dtype)
        full[:, support] = weights.T
        f = np.zeros((len(full), len(self.at)))
        for k, block in enumerate(self.blocks):
            w = full[:, self.ids[k * self.each : (k + 1) * self.each]]
            values = block[: w.shape[1]]
            if len(w) > FEW:
                f += w @ values
            else:
                for total, row in zip(f, w, strict=True):
                    total += row @ values
        for part in range(0, len(new), 256):
            ids = new[part : part + 256]
            for first, tile in self.rows.tiles(self.at, ids, TILE // len(ids)):
                f[:, first : first + len(tile)] += full[:, ids] @ tile.T
        return f
