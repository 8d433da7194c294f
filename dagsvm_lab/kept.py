"""Kernel values kept from one machine on a row's way to the next.

Machines of pairs that have a class in common share support vectors, and on the way of a
row such pairs follow each other: in a DDAG the class that has just won is in the next
pair, too. Where rows have many inputs, a kernel value is looked up faster than it is
computed again.
"""

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
from scipy.sparse import csr_matrix

LOOKED_UP = 50  # cost of a kernel value that is looked up: the unit of ways.py
GROUP = 800_000  # and of one more group of rows
SHARE_KNOWN = 0.25  # of a machine's support vectors the one before has about so many
LINKS = 4  # pairs of machines, times the machines, whose sharing is remembered
MOST_VALUES = 1 << 24  # kernel values that are kept at most


@dataclass
class Shared:
    """The support vectors of one machine that the one asked before has, too."""

    here: np.ndarray  # their places among the machine's own,
    there: np.ndarray  # and among those of the machine asked before
    missing: np.ndarray  # the other ones: their places among the machine's own,
    part: np.ndarray  # and among all prepared rows


class SharedVectors:
    """What machines share with those asked before them; the first ones are remembered.

    Parameters
    ----------
    coef : csr_matrix of shape (n_machines, n_support)
    place : ndarray of shape (n_support,)
        Of each support vector among all prepared rows.
    """

    def __init__(self, coef: csr_matrix, place: np.ndarray):
        self.coef = coef
        self.place = place
        self.known: dict[tuple[int, int], Shared] = {}

    def between(self, t: int, before: int) -> Shared:
        """What machine t shares with the one that was asked before it."""
        shared = self.known.get((t, before))
        if shared is None:
            own = self._own(t)
            other = self._own(before)
            is_shared = np.isin(own, other, assume_unique=True)
            here = np.flatnonzero(is_shared)
            there = np.searchsorted(other, own[here])
            missing = np.flatnonzero(~is_shared)
            shared = Shared(here, there, missing, self.place[own[missing]])
            if len(self.known) < LINKS * self.coef.shape[0]:
                self.known[t, before] = shared
        return shared

    def _own(self, t: int) -> np.ndarray:
        """The support vectors of machine t, ascending."""
        return self.coef.indices[self.coef.indptr[t] : self.coef.indptr[t + 1]]


@dataclass
class Tile:
    """Kernel values of one machine with the rows that were asked in one step."""

    machine: int
    rows: np.ndarray
    values: np.ndarray  # (support vectors, rows)


@dataclass
class Group:
    """Rows that meet one machine, and where they met the one before."""

    machine: int
    before: Tile | None
    rows: np.ndarray


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
    def worth_keeping(prepared, n_rows: int, n_inputs: int) -> bool:
        """Whether to keep values of a batch like this."""
        n_values = n_rows * prepared.n_support.mean()
        return n_inputs > 2 * LOOKED_UP and n_values <= MOST_VALUES

    def ask(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray | None:
        """The output of machine machines[k] for row rows[k].

        None where groups of rows are so small that looking values up saves nothing.
        """
        groups = []
        n_asked = np.count_nonzero(np.bincount(machines))
        if self._pays(machines, n_asked):
            order, groups = self._groups(rows, machines)
        if not groups or not self._pays(machines, len(groups)):
            self._keep([])  # what was kept would be from two steps before
            return None
        same = groupby(groups, key=attrgetter("machine"))
        tiles = [self._tile(t, list(own)) for t, own in same]
        self._keep(tiles)
        outputs = np.empty(len(rows))
        outputs[order] = np.concatenate([self._outputs(tile) for tile in tiles])
        return outputs

    def _pays(self, machines: np.ndarray, n_groups: int) -> bool:
        """Whether what is looked up costs less than that many groups of rows."""
        n_values = self.prepared.n_support[machines].sum()
        saving = self.Z.shape[1] - LOOKED_UP
        return SHARE_KNOWN * n_values * saving > n_groups * GROUP

    def _groups(self, rows, machines) -> tuple[np.ndarray, list[Group]]:
        """The order in which the groups' rows follow each other, and the groups."""
        n_tiles = len(self.tiles)
        keys = machines * n_tiles + self.tile[rows]
        order = keys.argsort(kind="stable")
        keys = keys.take(order)
        rows = rows.take(order)
        last_of_group = np.flatnonzero(keys[1:] != keys[:-1])
        ends = [*(last_of_group + 1).tolist(), len(keys)]
        groups = []
        start = 0
        for end in ends:
            machine, tile = divmod(int(keys[start]), n_tiles)
            groups.append(Group(machine, self.tiles[tile], rows[start:end]))
            start = end
        return order, groups

    def _keep(self, tiles: list[Tile]) -> None:
        """Keep these tiles, and none of before."""
        self.tiles = [None, *tiles]
        self.tile[:] = 0
        for k, tile in enumerate(tiles, 1):
            self.tile[tile.rows] = k
            self.column[tile.rows] = np.arange(len(tile.rows))

    def _outputs(self, tile: Tile) -> np.ndarray:
        """The outputs of a tile's machine for its rows."""
        machine = self.prepared.machine(tile.machine)
        return machine.coef @ tile.values + machine.bias

    def _tile(self, t: int, groups: list[Group]) -> Tile:
        """Machine t's kernel values with all groups that meet it."""
        rows = np.concatenate([group.rows for group in groups])
        n_own = int(self.prepared.n_support[t])
        values = np.empty((n_own, len(rows)), self.Z.dtype)
        stop = 0
        for group in groups:
            start = stop
            stop += len(group.rows)
            self._fill(values[:, start:stop], group)
        return Tile(t, rows, values)

    def _fill(self, values: np.ndarray, group: Group) -> None:
        """Write the machine's kernel values with the group's rows to `values`."""
        Z = self.Z.take(group.rows, axis=0)
        before = group.before
        if before is None:
            values[...] = self.prepared.machine(group.machine).values(Z)
            return
        shared = self.prepared.shared.between(group.machine, before.machine)
        values[shared.missing] = self.prepared.rows.block_transposed(Z, shared.part)
        known = before.values.take(shared.there, axis=0)
        values[shared.here] = known.take(self.column[group.rows], axis=1)
