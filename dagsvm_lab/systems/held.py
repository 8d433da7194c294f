"""Held-out rows, and how a plan would answer them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .glance import Seen
from .plan import Plan, State


@dataclass
class Held:
    """Held-out rows, tails that had not seen each row's part, what glances say, and whether the DDAG answers right."""

    f: np.ndarray
    codes: np.ndarray
    part: np.ndarray
    edges: np.ndarray  # (4, parts, n_machines, n_classes)
    right: np.ndarray
    seen: Seen

    def some(self, rows: np.ndarray | slice) -> Held:
        """Some of the rows."""
        own = {name: getattr(self, name)[rows] for name in ("f", "codes", "part", "right")}
        return replace(self, seen=self.seen.some(rows), **own)

    def starts(self, plan: Plan) -> list[State]:
        """Where each row enters the graph."""
        both = np.column_stack([self.seen.left, self.seen.taken])
        _, first, place = np.unique(both, axis=0, return_index=True, return_inverse=True)
        starts = [plan.start(self.seen.left[k], int(self.seen.taken[k])) for k in first]
        return [starts[k] for k in place.ravel()]

    def walk(self, plan: Plan) -> list[State]:
        """Where each row ends."""
        read = lambda rows, t: plan.strikes(self.f[rows, t], self.edges[:, self.part[rows], t])  # noqa: E731
        return plan.walk(np.arange(len(self.f)), read, self.starts(plan))

    def answers(self, plan: Plan, ends: list[State]) -> np.ndarray:
        """Which rows are answered right."""
        return np.array([plan.members(s)[0] for s in ends]) == self.codes

    def scores(self, plan: Plan, ends: list[State]) -> np.ndarray:
        """The score s(x, y) of each row and its own class."""
        asked = [[t for t in s[1] if t < plan.n_machines] for s in ends]
        row, t = np.repeat(np.arange(len(asked)), [len(a) for a in asked]), np.array(sum(asked, []), dtype=int)
        low, high, below, above = self.edges[:, self.part[row], t, self.codes[row]]
        worst = self.seen.lead[np.arange(len(ends)), self.codes]
        np.maximum.at(worst, row, np.maximum((low - self.f[row, t]) / below, (self.f[row, t] - high) / above))
        return np.where(self.answers(plan, ends), -np.inf, worst)
