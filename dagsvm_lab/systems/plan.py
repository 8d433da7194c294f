"""The plan of a conformal DAG: ranges of held-out outputs, and which machine to ask in which state.

systems/conformal.py says what the rules are and why. A state is three sets of classes and the machines asked so far:
the classes left; those of them whose range did not hold an answer (odd); those that only values struck off. Once the
last are reopened they hold every class. Sets are bits of words of 64, so that all machines and rows are compared with
few array calls.
"""

from dataclasses import dataclass

import numpy as np

from ..graphs import DecisionGraph, Glance

LEVELS = (*np.arange(4.5, 12.0, 0.5), 13.5, 15.0, 18.0, np.inf)  # how far out, in spreads, a class is struck off
FEWEST = 10  # distinct rows that a class needs for a range: one more row lies outside it with chance 2 / 11
POOL = 600  # held-out rows that plans are made on, at most a tenth of them of one class, four of each
SEEN = 100  # of them, rows compared at one state: more take longer and change few choices
CELLS = 60_000  # rows x machines compared at one state, of the machines with fewest new kernel values
ODD = 6.0  # an answer that fewer than e^-6, one row in 400, of a class lie beyond is odd for that class
CHUNK = 1 << 21  # distances that are held at once: 16 MB
SHARE = 0.02  # share of the pool that must reach a state for its continuations to be compared
State = tuple[bytes, tuple[int, ...]]  # the three sets as words, machines asked so far


def ranges(f: np.ndarray, codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Where the lower and the upper tail of each machine's held-out outputs on each class begin, and their spreads.

    In an exponential tail rows are e times rarer a spread farther out. A spread is the mean distance of the outer tenth
    of the outputs from where that tenth begins; the tail begins so that the outermost of m rows lies log m spreads out.
    A class that is not `known` well enough has no tails; a small class's spreads lean on those of the others. The array
    (4, n_machines, n_classes) holds low, high, below, above.
    """
    out = np.zeros((4, f.shape[1], len(known)))
    out[0], out[1] = -np.inf, np.inf
    for c in np.flatnonzero(known):
        own = np.sort(f[codes == c], axis=0)
        tenth = -(-len(own) // 10)
        low, high = own[tenth] - own[:tenth].mean(axis=0), own[-tenth:].mean(axis=0) - own[-tenth - 1]
        out[:, :, c] = own[0], own[-1], low, high
    count = np.bincount(codes, minlength=len(known)) * known
    mean = (out[2:] @ count / max(count.sum(), 1))[..., None]
    out[2:] = (out[2:] * count + mean * 3 * FEWEST) / (count + 3 * FEWEST) + 1e-12
    out[:2] += np.log(np.maximum(count, 1)) * out[2:] * np.array([1, -1])[:, None, None]
    return out


def outside(v: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How far out outputs v lie in the tails of each class: d_tl(v) of systems/conformal.py."""
    low, high, below, above = edges
    return np.maximum((low - v[..., None]) / below, (v[..., None] - high) / above)


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


def words(sets: np.ndarray) -> np.ndarray:
    """Sets (..., n) as bits of words of 64: (words, ...)."""
    *shape, n = sets.shape
    wide = np.zeros((*shape, -(-n // 64) * 64), dtype=bool)
    wide[..., :n] = sets
    return np.moveaxis(np.packbits(wide, axis=-1, bitorder="little").view("<u8"), -1, 0)


@dataclass
class Plan:
    """Which machine to ask in which state, and what its answer does to the state.

    `pool` holds held-out outputs, (rows, n_machines), and `pool_codes` their classes; `uses` marks the support vectors
    of each machine, then those of each glance; `chosen` is what comparing continuations has settled. The glances that
    a state has taken stand among the machines asked, numbered after these.
    """

    edges: np.ndarray  # as `ranges` returns
    level: float
    pool: np.ndarray
    pool_codes: np.ndarray
    uses: np.ndarray
    chosen: dict[State, int]

    def __post_init__(self) -> None:
        _, self.n_machines, self.n = self.edges.shape
        glances = np.full(len(self.uses) - self.n_machines, self.n)  # are of no pair
        self.i, self.j = (np.concatenate([side, glances]) for side in np.triu_indices(self.n, 1))
        self.one = words(np.eye(self.n + 1, self.n, dtype=bool))
        self.bits = np.ascontiguousarray(words(self.uses).T)
        self.of_class = [np.flatnonzero(self.pool_codes == c) for c in range(self.n)]
        self.ranked: dict[tuple[State, int], list[int]] = {}
        size = max(1, CHUNK // max(1, len(self.pool) * self.n))
        spans = [slice(t, t + size) for t in range(0, self.n_machines, size)]
        read = [self.strikes(self.pool[:, t].T, self.edges[:, t, None]) for t in spans]
        self.read = tuple(np.ascontiguousarray(np.concatenate(part, axis=-2)) for part in zip(*read, strict=True))

    def strikes(self, v: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether answers v are negative, and for which classes, of tails `edges` (4, ..., n), they are odd and far."""
        low, high, below, above = edges
        v, widths = v[..., None], (min(self.level, ODD), self.level)
        odd, far = (words((v < low - w * below) | (v > high + w * above)) for w in widths)
        return v[..., 0] < 0, odd, far

    def start(self, left: np.ndarray, taken: int) -> State:
        """The state in which so many glances have left these classes (bool), and struck off the others."""
        three = words(np.stack([left, left & False, ~left]))
        return np.ascontiguousarray(three.T).tobytes(), tuple(range(self.n_machines, self.n_machines + taken))

    def sets(self, states: list[State]) -> np.ndarray:
        """The three sets of each state: (3, words, states)."""
        joined = np.frombuffer(b"".join(s[0] for s in states), "<u8")
        return np.moveaxis(joined.reshape(len(states), 3, -1), 0, 2)

    def step(self, states: list[State], ask: np.ndarray, at: np.ndarray, read: tuple) -> tuple[list[State], np.ndarray]:
        """The states that follow when each state asks one machine, and each row's place among them.

        Row k stands at states[at[k]]; `read` is what the answers mean, as from `strikes`.
        """
        t, asked = ask[at], [tuple(sorted({*s[1], int(t)})) for s, t in zip(states, ask, strict=True)]
        sign, odd, far = read
        left, doubted, struck = self.sets(states)[..., at]
        i, j = self.one[:, self.i[t]], self.one[:, self.j[t]]
        duel = (left & i).any(axis=0) & (left & j).any(axis=0)
        kept = left & ~np.where(duel, np.where(sign, i, j), 0)
        reopened = (left & struck).any(axis=0)
        stay = np.where(reopened, kept, kept & ~far)
        doubted = np.where(reopened, 0, stay & (doubted | odd))
        struck = np.where(reopened, struck, struck | kept & ~stay)
        many = np.bitwise_count(stay).sum(axis=0)
        wrong = ~reopened & ((many == 0) | (many == 1) & doubted.any(axis=0) & struck.any(axis=0))
        stay = np.where(wrong, kept | struck, stay)
        doubted, struck = np.where(wrong, 0, doubted), np.where(wrong, ~np.zeros_like(struck), struck)
        keys = np.ascontiguousarray(np.concatenate([at[None].astype("<u8"), stay, doubted, struck]).T)
        same = keys.view(f"V{keys.shape[1] * 8}").ravel()
        _, first, inverse = np.unique(same, return_index=True, return_inverse=True)
        index: dict[State, int] = {}
        place = [index.setdefault((keys[k, 1:].tobytes(), asked[at[k]]), len(index)) for k in first.tolist()]
        return list(index), np.array(place)[inverse]

    def rank(self, state: State, most: int = 1) -> list[int]:
        """The best machines to ask next, best first: those that strike off most for each new kernel value."""
        if (state, most) in self.ranked:
            return self.ranked[state, most]
        left, _, struck = self.sets([state])[..., 0]
        inside = (self.one & left[:, None]).any(axis=0)
        members, reopened, asked = np.flatnonzero(inside), (left & struck).any(), list(state[1])
        live = inside[self.i].astype(np.int8) + inside[self.j]
        live[asked] *= live[asked] == 2  # of two reopened classes: its value is known, and its sign counts again
        t = np.flatnonzero(live == 2 if reopened else live)
        new = np.bitwise_count(self.bits[t] & ~self.met(asked)).sum(axis=1, dtype=int)
        each = max(2, SEEN // len(members))
        rows = [self.of_class[c][:each] for c in members]
        weight = np.concatenate([np.full(len(r), 1 / (len(members) * max(len(r), 1))) for r in rows])
        if len(t) > (most_compared := max(16, CELLS // max(len(weight), 1))):
            kept = np.lexsort((new, -live[t]))[:most_compared]
            t, new = t[kept], new[kept]
        sign, _, far = self.read
        cell = t[:, None] * len(self.pool) + np.concatenate(rows)
        duel, count = live[t] == 2, 0
        for one, mine, out in zip(self.one, left, far, strict=True):
            off = np.zeros(cell.shape, np.uint64) if reopened else out.take(cell)
            i, j = one[self.i[t[duel]], None], one[self.j[t[duel]], None]
            off[duel] |= np.where(sign.take(cell[duel]), i, j)
            count = count + np.bitwise_count(mine & ~off)
        logs = np.log(np.maximum(np.arange(len(members) + 1), 1))
        gain = logs[-1] - logs.take(count) @ weight
        useful = np.flatnonzero((gain > 1e-9) | duel)
        best = useful[np.argsort(-gain[useful] / (new[useful] + 1.0), kind="stable")[:most]]
        self.ranked[state, most] = t[best].tolist()
        return self.ranked[state, most]

    def ask(self, state: State) -> int:
        """The machine to ask in this state, -1 if one class is left."""
        if self.left(state).bit_count() == 1:
            return -1
        return self.chosen[state] if state in self.chosen else self.rank(state)[0]

    def left(self, state: State) -> int:
        """The classes left, as bits of one number."""
        return int.from_bytes(state[0][: 8 * len(self.one)], "little")

    def members(self, state: State) -> list[int]:
        """The classes left."""
        left = self.left(state)
        return [c for c in range(self.n) if left >> c & 1]

    def met(self, asked: list[int]) -> np.ndarray:
        """The support vectors of the machines asked, as bits."""
        return np.bitwise_or.reduce(self.bits[asked], axis=0)

    def costs(self, states: list[State]) -> np.ndarray:
        """Kernel values that the machines asked on the way to each state have needed."""
        known = {asked: np.bitwise_count(self.met(list(asked))).sum() for asked in {s[1] for s in states}}
        return np.array([known[s[1]] for s in states], dtype=int)

    def walk(self, rows: np.ndarray, read, states: list[State], at: np.ndarray) -> list[State]:
        """The state in which each row ends; row k starts at states[at[k]], `read(rows, t)` is what answers mean."""
        ends, todo = np.empty(len(rows), object), np.arange(len(rows))
        while True:
            ask = np.array([self.ask(s) for s in states])
            for k in np.flatnonzero(ask[at] < 0).tolist():
                ends[todo[k]] = states[at[k]]
            on = ask[at] >= 0
            if not on.any():
                return ends.tolist()
            todo, at = todo[on], at[on]
            states, at = self.step(states, ask, at, read(rows[todo], ask[at]))

    def compare(self, most: int, states: list[State], at: np.ndarray) -> None:
        """Settle `chosen` where many rows are: of the best machines, the one whose greedy continuation costs least.

        Row k of the pool enters the graph at states[at[k]].
        """
        read = lambda rows, t: tuple(part[..., t, rows] for part in self.read)  # noqa: E731

        def cost(state: State, t: int, rows: np.ndarray) -> tuple[int, int]:
            self.chosen[state] = t
            return int(self.costs(self.walk(rows, read, [state], np.zeros(len(rows), int))).sum()), t

        todo = [(state, np.flatnonzero(at == k)) for k, state in enumerate(states)]
        while todo:
            state, rows = todo.pop()
            if self.ask(state) < 0 or len(rows) < SHARE * len(self.pool):
                continue
            t = self.chosen[state] = min(cost(state, t, rows) for t in self.rank(state, most))[1]
            here = np.zeros(len(rows), int)
            kids, place = self.step([state], np.array([t]), here, read(rows, here + t))
            todo += [(kid, rows[place == k]) for k, kid in enumerate(kids)]

    def outcomes(self, state: State) -> tuple[int, np.ndarray, list[State], np.ndarray]:
        """The machine to ask, where its outcome changes, the states in between, and the pool's rows up to each."""
        t, left = self.ask(state), self.members(state)
        low, high, below, above = self.edges[:, t, left]
        steps = [edge for w in (min(self.level, ODD), self.level) for edge in (low - w * below, high + w * above)]
        cuts = np.unique(np.concatenate([[0.0], *steps]))
        cuts = cuts[np.isfinite(cuts)]
        v = np.concatenate([[cuts[0] - 1.0], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1.0]])
        read = self.strikes(v, self.edges[:, [t]])
        kids, place = self.step([state], np.array([t]), np.zeros(len(v), int), read)
        kept = np.flatnonzero(place[1:] != place[:-1])
        kept = kept if len(kept) else np.flatnonzero(cuts == 0)  # every answer says the same
        pool = self.pool[np.concatenate([self.of_class[c] for c in left]), t]
        share = np.bincount(np.searchsorted(cuts[kept], pool, side="right"), minlength=len(kept) + 1) + 0.1
        return t, cuts[kept], [kids[place[k]] for k in (*kept, len(cuts))], np.cumsum(share)

    def graph(self, glances: list[Glance]) -> DecisionGraph:
        """The plan as a graph of comparisons: a machine with many outcomes stands at several nodes in a row."""
        known: dict[State, tuple] = {}

        def rule(node: tuple[State, int, int]) -> tuple:
            state, a, b = node
            if self.ask(state) < 0:
                return "leaf", self.members(state)[0]
            if state not in known:
                known[state] = self.outcomes(state)
            t, cuts, states, share = known[state]
            b = len(cuts) if b < 0 else b  # outcomes a to b are possible; cut where about half the pool's rows are
            half = (share[b] + (share[a - 1] if a else 0.0)) / 2
            m = a + int(np.argmin(np.abs(share[a:b] - half)))
            left, right = ((states[p], 0, -1) if p == q else (state, p, q) for p, q in ((a, m), (m + 1, b)))
            return "node", t, left, right, float(cuts[m])

        members = lambda node: self.members(node[0])  # noqa: E731
        enter = lambda left, taken: (self.start(left, taken), 0, -1)  # noqa: E731
        machines = self.n_machines + self.n * len(glances)
        root, sizes = enter(np.ones(self.n, dtype=bool), 0), dict(n_classes=self.n, n_machines=machines)
        return DecisionGraph(root, rule, members, glances=glances, enter=enter, **sizes)


def enough(X: np.ndarray) -> bool:
    """Whether rows hold FEWEST distinct ones."""
    return len(X) >= FEWEST and len(np.unique(X, axis=0)) >= FEWEST
