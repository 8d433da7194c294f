"""The plan of a conformal DAG: ranges of held-out outputs, and which machine to ask in which state.

A state is what is held against each class (0, or 1 for a doubt; 2 is struck off) and the machines asked so far.
systems/conformal.py says what the rules are and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graphs import DecisionGraph

FEWEST = 10  # distinct rows that a class needs for a range: one more row lies outside it with chance 2 / 11
POOL = 600  # held-out rows that plans are made on, at most a tenth of them of one class, six of each
SEEN = 100  # of them, rows compared at one state: more take longer and change few choices
CELLS = 45_000  # rows x machines x classes compared at one state, of the machines with fewest new kernel values
SHARE = 0.05  # share of the pool that must reach a state for its continuations to be compared
State = tuple[bytes, tuple[int, ...]]  # evidence against each class (0, 1; 2 is struck off), machines asked so far


def ranges(f: np.ndarray, codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Lowest and highest held-out output of each machine on each class, and their spread: (3, n_machines, n_classes).

    A class that is not `known` well enough has no range; a small class's spread leans on those of the others.
    """
    out = np.empty((3, f.shape[1], len(known)))
    for c, enough in enumerate(known):
        own = f[codes == c] if enough else f[:0]
        out[:, :, c] = (own.min(axis=0), own.max(axis=0), own.std(axis=0)) if enough else ([[-np.inf], [np.inf], [0.0]])
    count = np.bincount(codes, minlength=len(known)) * known
    mean = (out[2] @ count / max(count.sum(), 1))[:, None]
    out[2] = (out[2] * count + mean * FEWEST) / (count + FEWEST) + 1e-12
    return out


def outside(v: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How far outputs v lie outside the range of each class, in spreads: d_tl(v) of the module's docstring."""
    low, high, spread = edges
    return np.maximum(low - v[..., None], v[..., None] - high) / spread


def parts_of(codes: np.ndarray, usable: np.ndarray, cv: int) -> np.ndarray:
    """The part, 0 to cv - 1, in which each row is held out: each class's rows in order, cut in blocks; -1 for never.

    Rows that stand together often come from one speaker, writer or place. Blocks keep these together, so that held-out
    outputs spread as those of new rows do; shuffled folds show ranges that are too narrow.
    """
    part = np.full(len(codes), -1)
    for c in np.unique(codes):
        rows = np.flatnonzero((codes == c) & usable)
        if len(rows) > 1:
            part[rows] = np.arange(len(rows)) * min(cv, len(rows)) // len(rows)
    return part


@dataclass
class Plan:
    """Which machine to ask in which state, and what its answer does to the state.

    `pool` holds held-out outputs, (rows, n_machines), and `pool_codes` their classes; `bits` the support vectors of
    each machine, packed; `chosen` what comparing continuations has settled.
    """

    edges: np.ndarray  # as `ranges` returns
    level: float
    pool: np.ndarray
    pool_codes: np.ndarray
    bits: np.ndarray
    chosen: dict[State, int]

    def __post_init__(self) -> None:
        _, self.n_machines, self.n = self.edges.shape
        self.i, self.j = np.triu_indices(self.n, 1)
        self.size = np.bitwise_count(self.bits).sum(axis=1)
        self.of_class = [np.flatnonzero(self.pool_codes == c) for c in range(self.n)]
        self.ranked: dict[State, list[tuple[int, int]]] = {}

    @property
    def root(self) -> State:
        """Nothing asked, nothing held against any class."""
        return bytes(self.n), ()

    def after(self, evidence: np.ndarray, v: np.ndarray, t: Any, left: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Evidence against the classes `left` once machines t have answered v, d outside their ranges."""
        raw = evidence[left] + (d > self.level / 2).astype(np.int8) + (d > self.level)
        duel = (evidence[self.i[t]] < 2) & (evidence[self.j[t]] < 2)
        loser = np.where(duel, np.where(v < 0, self.i[t], self.j[t]), -1)
        raw[loser[..., None] == left] = 9
        new = np.minimum(raw, 2)
        none = (new == 2).all(axis=-1)
        if none.any():  # every class is doubted: the least doubted stay
            new[none] = np.where(raw[none] == raw[none].min(axis=-1, keepdims=True), 0, 2)
        return new

    def rank(self, state: State, most: int = 1) -> list[tuple[int, int]]:
        """The best machines to ask next, each with its number of new kernel values, best first."""
        known = self.ranked.get(state)
        if known is None or len(known) < most:
            known = self.ranked[state] = self._rank(state, most)
        return known

    def _rank(self, state: State, most: int) -> list[tuple[int, int]]:
        evidence, asked = np.frombuffer(state[0], np.int8), list(state[1])
        left = np.flatnonzero(evidence < 2)
        live = (evidence < 2)[self.i].astype(int) + (evidence < 2)[self.j]
        live[asked] = 0
        t = np.flatnonzero(live)
        met = np.bitwise_or.reduce(self.bits[asked], axis=0) if asked else np.uint8(0)
        new = np.bitwise_count(self.bits[t] & ~met).sum(axis=1)
        each = max(2, SEEN // len(left))
        if len(t) > (most_compared := max(16, CELLS // (each * len(left) ** 2))):
            kept = np.lexsort((new, -live[t]))[:most_compared]
            t, new = t[kept], new[kept]
        rows = [self.of_class[c][:each] for c in left]
        weight = np.concatenate([np.full(len(r), 1 / (len(left) * max(len(r), 1))) for r in rows])
        v = self.pool[np.ix_(np.concatenate(rows), t)]
        d = outside(v, self.edges[:, t][..., left])
        count = (self.after(evidence, v, t, left, d) < 2).sum(axis=-1)
        gain = np.log(len(left)) - weight @ np.log(count)
        useful = np.flatnonzero((gain > 1e-9) | (live[t] == 2))
        best = useful[np.argsort(-gain[useful] / (new[useful] + 1.0), kind="stable")[:most]]
        return [(int(t[k]), int(new[k])) for k in best]

    def ask(self, state: State) -> int:
        """The machine to ask in this state."""
        t = self.chosen.get(state)
        return self.rank(state)[0][0] if t is None else t

    def split(self, state: State, t: int, v: np.ndarray, d: np.ndarray) -> Iterator[tuple[State, np.ndarray]]:
        """The states that outputs v of machine t lead to, d outside the ranges, each with the places that go there."""
        evidence = np.frombuffer(state[0], np.int8)
        left = np.flatnonzero(evidence < 2)
        new = np.full((len(v), self.n), 2, np.int8)
        new[:, left] = self.after(evidence, v, t, left, d[:, left])
        asked = tuple(sorted((*state[1], t)))
        _, first, inverse = np.unique(new.view(f"S{self.n}").ravel(), return_index=True, return_inverse=True)
        for k, row in enumerate(first):
            yield (new[row].tobytes(), asked), np.flatnonzero(inverse == k)

    def walk(self, f: np.ndarray, part: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, kernel values, and distances outside (rows, classes) of rows judged by `edges[part]`."""
        labels, cost, worst = np.zeros(len(f), int), np.zeros(len(f)), np.full((len(f), self.n), -np.inf)
        todo = [(self.root, np.arange(len(f)))]
        while todo:
            state, rows = todo.pop()
            if done(state):
                labels[rows] = np.frombuffer(state[0], np.int8).argmin()
                cost[rows] = np.bitwise_count(np.bitwise_or.reduce(self.bits[list(state[1])], axis=0)).sum()
                continue
            t = self.ask(state)
            d = outside(f[rows, t], np.moveaxis(edges[part[rows], :, t], 1, 0))
            worst[rows] = np.maximum(worst[rows], d)
            todo += [(child, rows[at]) for child, at in self.split(state, t, f[rows, t], d)]
        worst[np.arange(len(f)), labels] = -np.inf
        return labels, cost, worst

    def compare(self, most: int) -> None:
        """Settle `chosen` near the root: of the best machines, the one whose greedy continuation costs least."""

        def kids(state: State, t: int, rows: np.ndarray) -> list[tuple[State, np.ndarray]]:
            v = self.pool[rows, t]
            return [(s, rows[at]) for s, at in self.split(state, t, v, outside(v, self.edges[:, t]))]

        def cost(state: State, rows: np.ndarray) -> float:
            if done(state):
                return 0.0
            t, new = self.rank(state, most)[0]
            return new * len(rows) + sum(cost(*kid) for kid in kids(state, t, rows))

        todo = [(self.root, np.arange(len(self.pool)))]
        while todo:
            state, rows = todo.pop()
            if not done(state) and len(rows) >= SHARE * len(self.pool):
                options = [
                    (new * len(rows) + sum(cost(*kid) for kid in kids(state, t, rows)), t)
                    for t, new in self.rank(state, most)
                ]
                self.chosen[state] = min(options)[1]
                todo += kids(state, self.chosen[state], rows)

    def outcomes(self, state: State) -> tuple[int, np.ndarray, list[State], np.ndarray]:
        """The machine to ask, where its outcome changes, the states in between, and the pool's rows up to each."""
        t = self.ask(state)
        left = np.flatnonzero(np.frombuffer(state[0], np.int8) < 2)
        low, high, spread = self.edges[:, t, left]
        steps = [edge for w in (self.level / 2, self.level) for edge in (low - w * spread, high + w * spread)]
        cuts = np.unique(np.concatenate([[0.0], *steps]))
        cuts = cuts[np.isfinite(cuts)]
        v = np.concatenate([[cuts[0] - 1.0], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1.0]])
        found = {k: s for s, at in self.split(state, t, v, outside(v, self.edges[:, t])) for k in at.tolist()}
        kept = [k for k in range(len(cuts)) if found[k] != found[k + 1]]
        pool = self.pool[np.isin(self.pool_codes, left), t]
        share = np.bincount(np.searchsorted(cuts[kept], pool, side="right"), minlength=len(kept) + 1) + 0.1
        return t, cuts[kept], [found[k] for k in (*kept, len(cuts))], np.cumsum(share)

    def graph(self) -> DecisionGraph:
        """The plan as a graph of comparisons: a machine with many outcomes stands at several nodes in a row."""
        known: dict[State, tuple] = {}

        def rule(node: tuple[State, int, int]) -> tuple:
            state, a, b = node
            if done(state):
                return "leaf", int(np.frombuffer(state[0], np.int8).argmin())
            if state not in known:
                known[state] = self.outcomes(state)
            t, cuts, states, share = known[state]
            b = len(cuts) if b < 0 else b  # outcomes a to b are possible; cut where about half the pool's rows are
            half = (share[b] + (share[a - 1] if a else 0.0)) / 2
            m = a + int(np.argmin(np.abs(share[a:b] - half)))
            left, right = ((states[p], 0, -1) if p == q else (state, p, q) for p, q in ((a, m), (m + 1, b)))
            return "node", t, left, right, float(cuts[m])

        members = lambda node: np.flatnonzero(np.frombuffer(node[0][0], np.int8) < 2)  # noqa: E731
        return DecisionGraph((self.root, 0, -1), rule, members, n_classes=self.n, n_machines=self.n_machines)


def done(state: State) -> bool:
    """Whether one class is left."""
    return state[0].count(2) == len(state[0]) - 1


def enough(X: np.ndarray) -> bool:
    """Whether rows hold FEWEST distinct ones."""
    return len(X) >= FEWEST and len(np.unique(X, axis=0)) >= FEWEST
