"""Kernel values kept from one machine on a row's way to the next.

Machines of pairs that have a class in common share support vectors, and on the way of a
row such pairs follow each other: in a DDAG the class that has just won is in the next
pair, too. Where rows have many inputs, a kernel value is looked up faster than it is
computed again.
"""

from dataclasses import dataclass

import numpy as np

LOOKED_UP = 50  # cost of a kernel value that is looked up: the unit of evaluate.py
GROUP = 800_000  # and of one more group of rows
SHARED = 0.25  # of a machine's support vectors the one before has about so many
MOST_VALUES = 1 << 24  # kernel values that are kept at most


@dataclass
class Shared:
    """The support vectors of one machine that the one asked before has, too."""

    here: np.ndarray  # their places among the machine's own,
    there: np.ndarray  # and among those of the machine asked before
    missing: np.ndarray  # the other ones: their places among the machine's own,
    part: np.ndarray  # and among all prepared rows


@dataclass
class Tile:
    """Kernel values of one machine with the rows that were asked in one step."""

    machine: int
    values: np.ndarray  # (support vectors, rows)


class KeptValues:
    """Answers for rows of a batch, from what was computed in the step before.

    Parameters
    ----------
    prepared : PreparedMachines
    Z : ndarray of shape (n_rows, n_factors)
        The transformed rows of the batch.
    """

    def __init__(self, prepared, Z: np.ndarray):
        self.prepared = prepared
        self.Z = Z
        self.tiles: list[Tile | None] = [None]  # of the step before
        self.tile = np.zeros(len(Z), dtype=np.int64)  # of each row; 0: none
        self.column = np.zeros(len(Z), dtype=np.int64)  # of each row in its tile

    @staticmethod
    def pay(prepared, n_rows: int, n_inputs: int) -> bool:
        """Whether to keep values of a batch like this."""
        n_values = n_rows * prepared.n_support.mean()
        return n_inputs > 2 * LOOKED_UP and n_values <= MOST_VALUES

    def ask(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray | None:
        """The output of machine machines[k] for row rows[k].

        None where groups of rows are so small that looking values up saves nothing.
        """
        if not self._pays(machines, np.count_nonzero(np.bincount(machines))):
            self._forget()
            return None
        n_tiles = len(self.tiles)
        keys = machines * n_tiles + self.tile[rows]
        order = keys.argsort(kind="stable")
        keys = keys.take(order)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))  # of groups of equal keys
        if not self._pays(machines, len(starts)):
            self._forget()
            return None
        rows = rows.take(order)
        asked, before = np.divmod(keys[starts], n_tiles)
        groups = np.split(rows, starts[1:])
        first = np.flatnonzero(np.diff(asked, prepend=-1))  # groups of a new machine
        tiles = [None]
        f = []
        for begin, end in zip(first, [*first[1:], len(asked)], strict=True):
            known = [self.tiles[k] for k in before[begin:end]]
            tile = self._tile(int(asked[begin]), groups[begin:end], known)
            machine = self.prepared.machine(tile.machine)
            f.append(machine.coef @ tile.values + machine.bias)
            tiles.append(tile)
        sizes = [len(part) for part in f]
        self._forget()
        self.tiles = tiles
        self.tile[rows] = np.repeat(np.arange(1, len(tiles)), sizes)
        self.column[rows] = np.concatenate([np.arange(size) for size in sizes])
        outputs = np.empty(len(rows))
        outputs[order] = np.concatenate(f)
        return outputs

    def _pays(self, machines: np.ndarray, n_groups: int) -> bool:
        """Whether what is looked up costs less than that many groups of rows."""
        n_values = self.prepared.n_support[machines].sum()
        saving = self.Z.shape[1] - LOOKED_UP
        return SHARED * n_values * saving > n_groups * GROUP

    def _forget(self) -> None:
        """Drop what was kept."""
        self.tiles = [None]
        self.tile[:] = 0

    def _tile(self, t: int, groups: list[np.ndarray], before: list) -> Tile:
        """Machine t's kernel values with groups of rows, each with its tile before."""
        machine = self.prepared.machine(t)
        ends = np.cumsum([len(rows) for rows in groups])
        values = np.empty((len(machine.coef), ends[-1]), self.Z.dtype)
        for rows, tile, end in zip(groups, before, ends, strict=True):
            self._fill(values[:, end - len(rows) : end], t, rows, tile)
        return Tile(t, values)

    def _fill(
        self, values: np.ndarray, t: int, rows: np.ndarray, before: Tile | None
    ) -> None:
        """Write machine t's kernel values with these rows to `values`."""
        Z = self.Z.take(rows, axis=0)
        if before is None:
            values[...] = self.prepared.machine(t).values(Z)
            return
        shared = self.prepared.shared(t, before.machine)
        values[shared.missing] = self.prepared.rows.block_transposed(Z, shared.part)
        known = before.values.take(shared.there, axis=0)
        values[shared.here] = known.take(self.column[rows], axis=1)
