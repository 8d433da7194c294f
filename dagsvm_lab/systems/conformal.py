"""A DAG that reads how large an answer is, not only its sign; and sets of classes with a guarantee.

Outputs of machine t on rows of a class l, whether or not t was trained on l, have a range that held-out rows show. A
row whose output v lies far outside it is hardly of class l:

    d_tl(v) = max(low_tl - v, v - high_tl) / spread_tl         how far v is outside the range of class l, in spreads

At a level w one distance above w strikes class l off, or two above w / 2; a pair's machine strikes off its loser by
sign while both its classes are left. Next the graph asks the machine that strikes off most for each new kernel value
(support vectors already met are free), and near the root the one whose whole continuation is cheapest on held-out rows.
The level is the last, from safe to bold, at which the held-out rows show no loss against the DDAG that matters.

The guarantee holds for any such graph (split conformal prediction: Papadopoulos et al. 2002; Vovk, Gammerman and Shafer
2005). Let s(x, l) be the largest d_tl over the machines t on x's path, and minus infinity for the answer. Let (x_1,
y_1), ..., (x_n, y_n) be fresh rows, exchangeable with (x, y), and q the k-th smallest of s(x_i, y_i) for k =
ceil((1 - alpha)(n + 1)), infinite if k > n.

    Theorem. The set {l : s(x, l) <= q} misses y with probability at most alpha.
    Proof. s was settled before the fresh rows were seen, so the n + 1 numbers s(x_i, y_i) and s(x, y) are exchangeable,
    and s(x, y) is among the k smallest with probability at least k / (n + 1) >= 1 - alpha; ties only help. If it is,
    it is at most the k-th smallest of the others, which is q.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph, costs
from ..machines import pair_code
from ..statistics import mcnemar
from .base import BankClassifier, Sample, outputs
from .ddag import ddag

LEVELS = (np.inf, 8.0, 5.0, 3.5, 2.5, 1.75, 1.25, 1.0, 0.75, 0.5, 0.35)  # w, slow and safe first
FEWEST = 10  # distinct rows that a class needs for a range: one more row lies outside it with chance 2 / 11
POOL = 60  # held-out rows a class that plans are made on
SEEN = 100  # of them, rows compared at one state: more take longer and change few choices
CANDIDATES = 256  # machines compared at one state, those with fewest support vectors
JUDGED = 5000  # held-out rows that the levels are judged by
PRIOR, SIGNIFICANT = 2000, 0.05  # rows added that lost nothing, lest a few rows of a small set decide; McNemar's p
SHARE = 0.02  # share of the pool that must reach a state for its continuations to be compared
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
        if len(t) > CANDIDATES:
            t = np.flatnonzero(live == 2) if (live == 2).any() else t
            t = t[np.argsort(self.size[t], kind="stable")[:CANDIDATES]]
        met = np.bitwise_or.reduce(self.bits[asked], axis=0) if asked else np.uint8(0)
        new = np.bitwise_count(self.bits[t] & ~met).sum(axis=1)
        each = max(4, SEEN // len(left))
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


@dataclass(kw_only=True, eq=False, repr=False)
class ConformalDAGSVC(BankClassifier):
    """A DAG that reads the value of an answer: classes whose held-out outputs never lay there are struck off too.

    Fitting trains every machine `folds` times more, on the rows outside each part.

    Parameters
    ----------
    alpha : float, default=0.05
        Chance that `predict_set` may miss the true class.
    loss : float, default=0.002
        Share of rows that the graph may answer worse than the DDAG. The level grows bolder until more held-out rows
        are lost (as if 2,000 more had lost nothing), or McNemar's test finds the loss at p = .05.
    folds : int, default=5
        Parts of the training rows, in their order, that are held out in turn.
    lookahead : int, default=4
        Machines whose continuations are compared at states near the root; 1 takes the greedy choice everywhere.

    Attributes
    ----------
    level_ : float
        Spreads outside its range at which a class is struck off; infinite if only signs are used, nan if the graph is
        the DDAG (two classes, classes of few rows, or nothing cheaper).
    ranges_ : ndarray of shape (3, n_machines, n_classes)
        Lowest and highest held-out output, and their spread.
    calibration_ : ndarray
        Sorted scores of the true classes of the rows that calibrate: held-out training rows, or those of `calibrate`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> est = ConformalDAGSVC(C=10).fit(X[:1200], y[:1200]).calibrate(X[1200:1500], y[1200:1500])
    >>> sets = est.predict_set(X[1500:], alpha=0.02)
    >>> bool(sets[range(297), y[1500:]].mean() > 0.95)
    True
    """

    alpha: float = 0.05
    loss: float = 0.002
    folds: int = 5
    lookahead: int = 4

    _parameter_constraints: ClassVar[dict[str, list]] = BankClassifier._parameter_constraints | {
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "loss": [Interval(Real, 0, 1, closed="both")],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "lookahead": [Interval(Integral, 1, None, closed="left")],
    }
    _saved: ClassVar[tuple[str, ...]] = ("ranges_", "level_", "calibration_", "pool_", "pool_codes_", "settled_")

    def _code(self, sample: Sample) -> np.ndarray:
        return pair_code(sample.n_classes)

    def _study(self, sample: Sample) -> None:
        n, codes = sample.n_classes, sample.codes
        part = parts_of(codes, sample.mass > 0, self.folds)
        known = np.array([enough(sample.X[(codes == c) & (part >= 0)]) for c in range(n)])
        self.level_, self.settled_ = np.nan, np.zeros((0, n + len(self.machines_.bias) + 1), int)
        if n == 2 or not known.any():
            f, rows = np.zeros((0, len(self.machines_.bias))), np.zeros(0, int)
        else:
            rows = np.flatnonzero(part >= 0)
            f = self._held_out(sample, part)[rows]
        codes, part = codes[rows], part[rows]
        self.ranges_ = ranges(f, codes, known & (len(rows) > 0))
        order = np.random.default_rng(0).permutation(len(rows))
        pool = np.concatenate([order[codes[order] == c][:POOL] for c in range(n)])
        self.pool_, self.pool_codes_ = f[pool], codes[pool]
        self.calibration_ = np.full(0, np.inf)
        if len(rows):
            self._choose_level(f, codes, part, known)

    def _held_out(self, sample: Sample, part: np.ndarray) -> np.ndarray:
        """Outputs for the training rows of machines that were trained without their part."""
        code, out = self._code(sample), np.zeros((len(part), len(self.machines_.bias)))
        square = self.kernel == "precomputed"
        for k in np.unique(part[part >= 0]):
            fit, held = np.flatnonzero(part != k), np.flatnonzero(part == k)
            repeats = None if sample.repeats is None else sample.repeats[fit]
            X = sample.X[np.ix_(fit, fit)] if square else sample.X[fit]
            bank = self._train(replace(sample, X=X, codes=sample.codes[fit], repeats=repeats, bank=None), code)
            new = sample.X[np.ix_(held, fit)] if square else sample.X[held]
            out[held] = np.concatenate(list(outputs(bank, new, self.n_jobs)))
        return out

    def _choose_level(self, f: np.ndarray, codes: np.ndarray, part: np.ndarray, known: np.ndarray) -> None:
        """Take the cheapest graph whose loss on held-out rows is small enough; the DDAG is one of them."""
        edges = np.stack([ranges(f[part != k], codes[part != k], known) for k in range(part.max() + 1)])
        judged = np.unique(np.linspace(0, len(f) - 1, JUDGED).astype(int))
        f, codes, part = f[judged], codes[judged], part[judged]
        labels, paths, _ = ddag(range(len(known)), len(known)).run(f)
        by_list = labels != codes
        best = costs(paths, self.machines_.coef).kernel_evaluations.mean()

        def judge(plan: Plan, best: float) -> tuple[bool, float]:
            labels, cost, worst = plan.walk(f, part, edges)
            test = mcnemar(labels != codes, by_list)
            lost = test["only_a_wrong"] - test["only_b_wrong"]
            if lost > self.loss * (len(f) + PRIOR) or (lost > 0 and test["p_exact"] < SIGNIFICANT):
                return False, best
            if cost.mean() < best:
                self.level_, self.calibration_ = plan.level, np.sort(worst[np.arange(len(f)), codes])
            return True, min(best, cost.mean())

        safe, bold = 0, len(LEVELS)
        judge(self._plan(LEVELS[0]), best)
        while bold - safe > 1:  # bolder levels lose more: halve the interval in which the test begins to find it
            middle = (safe + bold) // 2
            good, best = judge(self._plan(LEVELS[middle]), best)
            safe, bold = (middle, bold) if good else (safe, middle)
        if self.lookahead > 1 and not np.isnan(self.level_):
            plan = self._plan(self.level_)
            plan.compare(self.lookahead)
            good, cheaper = judge(plan, best)
            if good and cheaper < best:
                self.settled_ = np.array(
                    [[*s[0], *np.isin(range(f.shape[1]), s[1]), t] for s, t in plan.chosen.items()]
                )

    def _plan(self, level: float, settled: np.ndarray | None = None) -> Plan:
        n, coef = len(self.classes_), self.machines_.coef
        used = np.zeros(coef.shape, dtype=bool)
        used[np.repeat(np.arange(len(used)), np.diff(coef.indptr)), coef.indices] = True
        chosen = {}
        for row in () if settled is None else settled:
            chosen[row[:n].astype(np.int8).tobytes(), tuple(np.flatnonzero(row[n:-1]).tolist())] = int(row[-1])
        return Plan(self.ranges_, level, self.pool_, self.pool_codes_, np.packbits(used, axis=1), chosen)

    def _make_graph(self) -> DecisionGraph:
        if np.isnan(self.level_):
            return ddag(range(len(self.classes_)), len(self.classes_))
        return self._plan(float(self.level_), self.settled_).graph()

    def doubts(self, X) -> np.ndarray:
        """Score each class by how far outside its ranges the outputs on each row's path lie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `predict`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            s(x, l): the largest distance on the path, in spreads; minus infinity for the answer.
        """
        parts = []
        for f in self._outputs(self._rows(X)):
            labels, paths, _ = self.graph_.run(f)
            v = f[np.repeat(np.arange(len(f)), np.diff(paths.indptr)), paths.indices]
            d = np.maximum.reduceat(outside(v, self.ranges_[:, paths.indices]), paths.indptr[:-1])
            d[np.arange(len(f)), labels] = -np.inf
            parts.append(d)
        return np.concatenate(parts)

    def calibrate(self, X, y) -> Self:
        """Calibrate `predict_set` on fresh rows, for which its guarantee is exact.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that no machine was trained on, drawn as those to be predicted are.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        estimator : object
            A fitted copy; machines and graph are the same.
        """
        scores, known = self.doubts(X), {c: k for k, c in enumerate(self.classes_.tolist())}
        place = [known.get(c, -1) for c in np.asarray(y).tolist()]
        own = np.where(np.array(place) < 0, np.inf, scores[np.arange(len(scores)), place])  # an unknown class is missed
        return self._variant(calibration_=np.sort(own))

    def predict_set(self, X, alpha: float | None = None) -> np.ndarray:
        """Predict a set of classes that misses the true one with chance at most alpha.

        The guarantee is exact after `calibrate`. Without it the training rows calibrate, each scored by machines and
        ranges that had not seen its part; machines of all rows differ a little from these.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `predict`.
        alpha : float, default=None
            Chance of a miss; None takes the parameter `alpha`.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes)
            Whether each class belongs to the row's set; the answer of `predict` always does.
        """
        return self.doubts(X) <= self.threshold(self.alpha if alpha is None else alpha)

    def threshold(self, alpha: float) -> float:
        """The score q that belongs to `alpha`: the k-th smallest of `calibration_`, infinite if that holds too few."""
        n = len(self.calibration_)
        k = int(np.ceil((1 - alpha) * (n + 1) - 1e-9))
        return float(self.calibration_[k - 1]) if k <= n else np.inf


def enough(X: np.ndarray) -> bool:
    """Whether rows hold FEWEST distinct ones."""
    return len(X) >= FEWEST and len(np.unique(X, axis=0)) >= FEWEST
