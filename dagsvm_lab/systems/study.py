"""Rows on which a filter is chosen: how it does on rows that it has not seen."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .sparse import White, leads, multinomial

PARTS = 4  # of the rows; held out in turn


@dataclass(frozen=True)
class Study:
    """Rows on which a filter is chosen.

    `K` are their kernel values with the support vectors `at` (places in `Bank.support`,
    best first), `f` the machines' outputs, `right` says where the graph answers right,
    and `share` is that of right answers which may be lost.
    """

    K: np.ndarray  # (rows, candidates)
    at: np.ndarray  # (candidates,)
    codes: np.ndarray  # (rows,), as the next two
    row_weight: np.ndarray
    part: np.ndarray  # 0 to PARTS - 1
    f: np.ndarray  # (rows, machines)
    right: np.ndarray  # (rows,)
    share: float
    n_classes: int

    @cached_property
    def white(self) -> White:
        """White coordinates of the kernel values."""
        return White.of(self.K)

    def fitted(self, rows: np.ndarray, q: int, start: np.ndarray | None = None):
        """Weights (q + 1, classes) of a filter of size q, fitted on some rows."""
        if start is None:
            start = np.zeros((1, self.n_classes))
        z = self.white(self.K[rows, :q])
        return multinomial(z, self.codes[rows], self.row_weight[rows], start)

    def leads(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Leads of all classes on some rows: (rows, classes)."""
        z = self.white(self.K[rows, : len(weights) - 1])
        return leads(z.T @ weights)

    def own(self, rows: np.ndarray, lead: np.ndarray) -> np.ndarray:
        """Leads of the rows' own classes, 0 where the graph has no right answer."""
        own = lead[np.arange(len(rows)), self.codes[rows]]
        return np.where(self.right[rows], own, 0.0)

    def held_out_leads(self, q: int) -> np.ndarray:
        """Leads (rows, classes) by filters of size q that had not seen the part."""
        lead = np.zeros((len(self.codes), self.n_classes))
        for k in range(PARTS):
            held = np.flatnonzero(self.part == k)
            weights = self.fitted(np.flatnonzero(self.part != k), q)
            lead[held] = self.leads(held, weights)
        return lead


def stratified_parts(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A part from 0 to PARTS - 1 for each row; a class of one row is not in part 0."""
    part = np.zeros(len(codes), dtype=int)
    for c in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == c))
        part[rows] = (np.arange(len(rows)) + 1) % PARTS
    return part
