"""Held-out rows: what glances say of them, and how a plan would answer them."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .plan import Plan, State, outside


@dataclass
class Held:
    """Held-out rows, tails that had not seen each row's part, and whether the DDAG answers right.

    After `look`: each class's lead at the row's last glance, the classes left, and how many glances were taken.
    """

    f: np.ndarray
    codes: np.ndarray
    part: np.ndarray
    edges: np.ndarray  # (4, parts, n_machines, n_classes)
    right: np.ndarray
    lead: np.ndarray | None = None
    left: np.ndarray | None = None
    taken: np.ndarray | None = None

    def look(self, chain: list[tuple[int, float]], lead: dict[int, np.ndarray]) -> Self:
        """Take the glances of `chain`, sizes and bounds, as long as more than one class is left."""
        shape, rows = (len(self.f), self.edges.shape[-1]), np.arange(len(self.f))
        new = replace(self, lead=np.full(shape, -np.inf), left=np.ones(shape, bool), taken=np.zeros(len(rows), int))
        for k, (q, bound) in enumerate(chain, start=1):
            new.lead[rows], new.left[rows], new.taken[rows] = lead[q][rows], lead[q][rows] <= bound, k
            rows = rows[new.left[rows].sum(axis=1) > 1]
        return new

    def some(self, rows: np.ndarray | slice) -> Self:
        """Some of the rows."""
        return replace(self, **{name: value[rows] for name, value in vars(self).items() if name != "edges"})

    def starts(self, plan: Plan) -> tuple[list[State], np.ndarray]:
        """The states in which rows enter the graph, in the order of the rows, and each row's place among them."""
        both = np.column_stack([self.left, self.taken])
        _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return [plan.start(self.left[k], int(self.taken[k])) for k in first[order]], np.argsort(order)[place.ravel()]

    def walk(self, plan: Plan) -> tuple[list[State], np.ndarray]:
        """Where each row ends, and which are answered right."""
        read = lambda rows, t: plan.strikes(self.f[rows, t], self.edges[:, self.part[rows], t])  # noqa: E731
        ends = plan.walk(np.arange(len(self.f)), read, *self.starts(plan))
        return ends, np.array([plan.members(s)[0] for s in ends]) == self.codes

    def scores(self, plan: Plan, ends: list[State], right: np.ndarray) -> np.ndarray:
        """The score s(x, y) of each row and its own class."""
        asked = [[t for t in s[1] if t < plan.n_machines] for s in ends]
        row, t = np.repeat(np.arange(len(asked)), [len(a) for a in asked]), np.array(sum(asked, []), dtype=int)
        worst = self.lead[np.arange(len(ends)), self.codes]
        own = self.edges[:, self.part[row], t, self.codes[row], None]
        np.maximum.at(worst, row, outside(self.f[row, t], own)[:, 0])
        return np.where(right, -np.inf, worst)
