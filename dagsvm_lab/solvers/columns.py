"""Kernel rows of support vectors, kept: they judge duals on all their rows, and long active sets step on them.

| constant | unit | seconds with other values, over today's (one-versus-rest on 4,000 USPS rows, one core) |
|---|---|---|
| BLOCK = 2^25 | bytes of one array of kept rows | an eighth 1.00, eight times .99 |
| CUT = 2^20 | bytes of cut rows allocated at a time | 8,000 Letter rows of 48 inputs: eight times 1.00, one row 1.18 |
| STRIP = 2048 | rows judged at a time, in one thread | 512 .99, 8192 .98 |
| FEW = 3 | duals from which a product of matrices beats products with vectors | 1 1.08, 20 1.14 |
| FOUR = 4 | duals are filled up to a multiple of | 1 1.01 (1.4 for seven duals) |
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..kernels import SIDE, Rows

BLOCK = 1 << 25
CUT = 1 << 20
STRIP = 2048
FEW, FOUR = 3, 4
TILE = SIDE**2  # kernel values computed at a time, so that they stay in a core's own cache


class Columns:
    """K[i, at] of rows i: computed once, and kept while `room` bytes last.

    `each` is the `map` to compute by, perhaps of threads: what comes out is the same.

    Attributes
    ----------
    slot : place of each row among the kept ones, -1 for one that is not kept; ids : the kept rows, in that order.
    blocks : the kept rows, `tall` to an array.
    past : of each dual, the weights of rows not kept when it was judged last, and their product.
    """

    def __init__(self, rows: Rows, at: np.ndarray, room: float, each: Callable = map):
        self.rows, self.at, self.each, self.past = rows, at, each, {}
        width = rows.dtype.itemsize * max(len(at), 1)
        self.most = min(int(room / width), len(rows))
        self.tall = max(1, min(BLOCK // width, max(128, len(at) // 16), self.most))
        self.slot, self.ids, self.blocks = np.full(len(rows), -1), np.empty(0, int), []

    def learn(self, ids: np.ndarray) -> bool:
        """Whether the rows are all kept now: those that are not yet are computed, if there is room."""
        new = ids[self.slot[ids] < 0]
        if len(self.ids) + len(new) > self.most:
            return False
        while len(new):
            k, used = divmod(len(self.ids), self.tall)
            if k == len(self.blocks):
                self.blocks.append(np.empty((self.tall, len(self.at)), self.rows.dtype))
            part, new = new[: self.tall - used], new[self.tall - used :]
            self.rows.fill(part, self.at, self.blocks[k][used : used + len(part)], self.each)
            self.slot[part] = len(self.ids) + np.arange(len(part))
            self.ids = np.concatenate([self.ids, part])
        return True

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


def arrays(n: int, dtype: np.dtype) -> Iterator[np.ndarray]:
    """Arrays of n values, of any content and without end, allocated CUT bytes at a time."""
    while True:
        yield from np.empty((max(1, CUT // (n * dtype.itemsize)), n), dtype)
