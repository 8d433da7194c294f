"""Kernel rows of support vectors, kept: they judge duals on all their rows.

Long active sets step on them, too.

| constant | unit | seconds with other values, over today's (one-versus-rest on |
| | | 4,000 USPS rows, one core) |
|---|---|---|
| BLOCK_BYTES = 2^25 | bytes of one array of kept rows | an eighth 1.00, eight |
| | | times .99 |
| CUT_BYTES = 2^20 | bytes of cut rows allocated at a time | 8,000 Letter rows of 48 |
| | | inputs: eight times 1.00, one row 1.18 |
| STRIP_ROWS = 2048 | rows judged at a time, in one thread | 512 .99, 8192 .98 |
| MATRIX_DUALS = 3 | duals from which on products are of matrices | 1 1.08, 20 1.14 |
| ROUND_DUALS = 4 | duals are filled up to a multiple | 1 1.01 (1.4 for seven duals) |
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..rows import TILE_SIDE, Rows

BLOCK_BYTES = 1 << 25
CUT_BYTES = 1 << 20
STRIP_ROWS = 2048
MATRIX_DUALS = 3
ROUND_DUALS = 4
TILE_VALUES = TILE_SIDE**2  # kernel values that stay in a core's own cache


class KernelColumns:
    """K[i, at] of rows i: computed once, and kept while `room` bytes last.

    `each` is the `map` to compute by, perhaps of threads: what comes out is the same.

    Attributes
    ----------
    slot : place of each row among the kept ones, -1 for one that is not kept.
    ids : the kept rows, in the order of their places.
    blocks : arrays of `block_rows` kept rows each.
    most_kept : rows that there is room for.
    last_weights : of each dual, the weights of rows not kept when it was judged last,
        and the product of these rows with them.
    """

    def __init__(self, rows: Rows, at: np.ndarray, room: float, each: Callable = map):
        self.rows = rows
        self.at = at
        self.each = each
        row_bytes = rows.dtype.itemsize * max(len(at), 1)
        self.most_kept = min(int(room / row_bytes), len(rows))
        of_few_bytes = BLOCK_BYTES // row_bytes
        of_few_rows = max(128, len(at) // 16)
        self.block_rows = max(1, min(of_few_bytes, of_few_rows, self.most_kept))
        self.slot = np.full(len(rows), -1)
        self.ids = np.empty(0, int)
        self.blocks: list[np.ndarray] = []
        self.last_weights: dict[int, tuple] = {}

    def learn(self, ids: np.ndarray) -> bool:
        """Keep these rows, if there is room for all of them; whether there was."""
        new = ids[self.slot[ids] < 0]
        if len(self.ids) + len(new) > self.most_kept:
            return False
        while len(new):
            k, used = divmod(len(self.ids), self.block_rows)
            if k == len(self.blocks):
                shape = (self.block_rows, len(self.at))
                self.blocks.append(np.empty(shape, self.rows.dtype))
            part = new[: self.block_rows - used]
            new = new[len(part) :]
            out = self.blocks[k][used : used + len(part)]
            self.rows.fill(part, self.at, out, self.each)
            self.slot[part] = len(self.ids) + np.arange(len(part))
            self.ids = np.concatenate([self.ids, part])
        return True

    def row(self, i: int) -> np.ndarray:
        """K[i, at] of a row that is kept."""
        k, used = divmod(self.slot.item(i), self.block_rows)
        return self.blocks[k][used]

    def times(
        self, support: np.ndarray, weights: np.ndarray, who: Sequence[int]
    ) -> np.ndarray:
        """(K[at, support] @ weights).T, one row a dual, added up in float64.

        Products are of the rows' precision. `weights` is (support, duals), and `who`
        are the duals' numbers. Of rows that are not kept, only those whose
        weights are not those of the last time are computed.
        """
        all_kept = self.learn(support)
        full = self._on_all_rows(support, weights)
        f = np.zeros((len(who), len(self.at)))
        changes: list[tuple] = []
        beyond = None  # what rows that are not kept add, if there are any
        if not all_kept or self.last_weights:
            changes, beyond = self._changes(full, who)

        def strip(first: int) -> None:
            """Add to f, and to `beyond`, on one strip of `at`."""
            part = slice(first, first + STRIP_ROWS)
            self._add_kept(full, part, f[:, part])
            if beyond is not None:
                self._add_changes(changes, part, beyond[:, part])

        strips = range(0, len(self.at), STRIP_ROWS)
        for _ in self.each(strip, strips):  # strips do not meet: threads may take them
            pass
        return f if beyond is None else f + beyond

    def _on_all_rows(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The weights of all rows, zero but for the support's: (duals, all rows).

        BLAS is slow for some odd heights: many duals are filled up to a round number
        by empty ones.
        """
        n = weights.shape[1]
        padded = -(-n // ROUND_DUALS) * ROUND_DUALS if n >= MATRIX_DUALS else n
        full = np.zeros((padded, len(self.rows)), self.rows.dtype)
        full[:n, support] = weights.T
        return full

    def _add_kept(self, full: np.ndarray, part: slice, total: np.ndarray) -> None:
        """Add the kept rows' share of K[at[part]] @ full.T to `total`, in place."""
        n = len(total)
        for k, block in enumerate(self.blocks):
            first = k * self.block_rows
            ids = self.ids[first : first + self.block_rows]
            w = full[:, ids]
            values = block[: len(ids), part]
            if n >= MATRIX_DUALS:
                of_block = w @ values
                total += of_block[:n]
                continue
            for one, row in zip(total, w, strict=True):  # `one` is a view of `total`
                one += row @ values

    def _add_changes(
        self, changes: list[tuple], part: slice, total: np.ndarray
    ) -> None:
        """Add what has changed, and is not kept, to `total`, in place.

        `changes` are as `_changes` has them; `total` is (duals, rows of the part).
        """
        for ids, w in changes:
            size = TILE_VALUES // len(ids)
            for start, tile in self.rows.tiles(self.at[part], ids, size):
                # (duals and what fills them up, rows of the tile)
                of_tile = w @ tile.T
                total[:, start : start + len(tile)] += of_tile[: len(total)]

    def _changes(
        self, full: np.ndarray, who: Sequence[int]
    ) -> tuple[list[tuple], np.ndarray]:
        """What has changed of the weights of rows that are not kept.

        Returns them in parts, (rows, weights), and the products before these changes:
        an array that `last_weights` keeps, and that `times` brings up to date in place.
        """
        n = len(who)
        change = full.copy()
        change[:, self.ids] = 0.0
        weights = change[:n]  # a view: what is subtracted below shows in change
        before = np.zeros_like(weights)
        beyond = np.zeros((n, len(self.at)))
        for k, dual in enumerate(who):
            if dual in self.last_weights:
                before[k], beyond[k] = self.last_weights[dual]
            # the row of `beyond` is a view too: what `times` adds to it is kept
            self.last_weights[dual] = (weights[k].copy(), beyond[k])
        weights -= before
        ids = np.flatnonzero(change.any(0))
        parts = []
        for first in range(0, len(ids), TILE_SIDE):
            part = ids[first : first + TILE_SIDE]
            parts.append((part, change[:, part]))
        return parts, beyond


def arrays(n: int, dtype: np.dtype) -> Iterator[np.ndarray]:
    """Arrays of n values, of any content and without end, CUT_BYTES at a time."""
    some = max(1, CUT_BYTES // (n * dtype.itemsize))
    while True:
        yield from np.empty((some, n), dtype)
