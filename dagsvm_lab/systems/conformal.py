"""A DAG that reads how large an answer is, not only its sign; and sets of classes with a guarantee.

Outputs of machine t on rows of a class l, whether or not t was trained on l, have a range that held-out rows show, and
tails beyond it. A row whose output v lies far out in them is hardly of class l:

    d_tl(v) = max((low_tl - v) / below_tl, (v - high_tl) / above_tl)

Tails that fall by e a spread (below, above) begin at low and high such that a row of class l lies d out at either side
with chance e^-d, however many rows the range was seen on. At a level w, d > w strikes class l off; a pair's machine
strikes off its loser by sign while both its classes are left. If all are struck off, or the one that is left had itself
given an odd answer (d > 6, or w), a value has misled: classes that only values struck off are reopened, and signs alone
decide among what is left. So rows unlike those of the ranges, as of new writers, cost more but are hardly lost.

Next the graph asks the machine that strikes off most for each new kernel value (support vectors already met are free),
and near the root the one whose whole continuation is cheapest on held-out rows. The level is the boldest at which held-
out rows show no loss against the DDAG: a one-sided sign test at p = .1, and few rows lost whatever is won elsewhere,
for what is won on rows unlike all others may be luck.

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

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
from scipy.stats import binomtest
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph, costs
from ..machines import pair_code
from .base import BankClassifier, Sample, outputs
from .ddag import ddag
from .plan import ODD, POOL, Plan, State, enough, outside, parts_of, ranges

LEVELS = (*np.arange(4.5, 10.0, 0.5), 10.5, 12.0, 15.0, np.inf)  # w, bold first
JUDGED = 750_000  # held-out rows that levels are judged by, times classes squared; 300 at least
LOST, HOPELESS = 0.1, 0.01  # p of the sign test: rows are lost; on a quarter of the rows, before any comparison
MANY = 16  # classes up to which continuations are compared: with 26 that takes 7 s a level, and saves nothing


@dataclass
class Held:
    """Held-out rows, tails that had not seen each row's part, and whether the DDAG answers right."""

    f: np.ndarray
    codes: np.ndarray
    part: np.ndarray
    edges: np.ndarray  # (4, parts, n_machines, n_classes)
    right: np.ndarray

    def some(self, step: int) -> Held:
        """Every so many of the rows."""
        return Held(self.f[::step], self.codes[::step], self.part[::step], self.edges, self.right[::step])

    def walk(self, plan: Plan) -> list[State]:
        """Where each row ends."""
        read = lambda rows, t: plan.strikes(self.f[rows, t], self.edges[:, self.part[rows], t])  # noqa: E731
        return plan.walk(np.arange(len(self.f)), read)

    def loses(self, plan: Plan, ends: list[State], share: float, p: float) -> bool:
        """Whether more than two rows and a share are lost, or more than are won by a one-sided sign test at p."""
        right = np.array([plan.members(s)[0] for s in ends]) == self.codes
        lost, won = int((self.right & ~right).sum()), int((right & ~self.right).sum())
        return lost > share * len(right) + 2 or lost > won and binomtest(won, lost + won, alternative="less").pvalue < p

    def scores(self, plan: Plan, ends: list[State]) -> np.ndarray:
        """The score s(x, y) of each row and its own class."""
        asked = [list(s[1]) for s in ends]
        row, t = np.repeat(np.arange(len(asked)), [len(a) for a in asked]), np.concatenate(asked)
        low, high, below, above = self.edges[:, self.part[row], t, self.codes[row]]
        d = np.maximum((low - self.f[row, t]) / below, (self.f[row, t] - high) / above)
        worst = np.maximum.reduceat(d, np.flatnonzero(np.diff(row, prepend=-1)))
        return np.where(np.array([plan.members(s)[0] for s in ends]) == self.codes, -np.inf, worst)


@dataclass(kw_only=True, eq=False, repr=False)
class ConformalDAGSVC(BankClassifier):
    """A DAG that reads the value of an answer: classes whose held-out outputs never lay there are struck off too.

    Fitting trains every machine `folds` times more, on the rows outside each part.

    Parameters
    ----------
    alpha : float, default=0.05
        Chance that `predict_set` may miss the true class.
    loss : float, default=0.015
        Share of held-out rows, and two more, that the graph may answer worse than the DDAG.
    folds : int, default=5
        Parts of the training rows, in their order, that are held out in turn.
    lookahead : int, default=4
        Machines whose continuations are compared at states near the root, with up to 16 classes; 1 takes the greedy
        choice everywhere.

    Attributes
    ----------
    level_ : float
        How far out, in spreads, a class is struck off; infinite if only signs are used, nan if the graph is the DDAG
        (two classes, classes of few rows, or nothing cheaper).
    ranges_ : ndarray of shape (4, n_machines, n_classes)
        Where the lower and the upper tail of the held-out outputs begin, and their spreads.
    calibration_ : ndarray
        Sorted scores of the true classes of the rows that calibrate: held-out training rows, or those of `calibrate`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> est = ConformalDAGSVC(C=10).fit(X[:1000], y[:1000]).calibrate(X[1000:1400], y[1000:1400])
    >>> sets = est.predict_set(X[1400:], alpha=0.02)
    >>> bool(sets[range(397), y[1400:]].mean() > 0.95)
    True
    """

    _sparse: ClassVar[bool] = False

    alpha: float = 0.05
    loss: float = 0.015
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
        n, codes, f = sample.n_classes, sample.codes, np.zeros((0, len(self.machines_.bias)))
        part = parts_of(codes, sample.mass > 0, self.folds)
        rows = np.flatnonzero(part >= 0)
        known = np.array([enough(sample.X[rows[codes[rows] == c]]) for c in range(n)])
        if n == 2 or not known.any():
            rows = rows[:0]
        else:
            f = self._held_out(sample, part)[rows]
        codes, part = codes[rows], part[rows]
        self.ranges_ = ranges(f, codes, known & (len(rows) > 0))
        order = np.random.default_rng(0).permutation(len(rows))
        pool = np.concatenate([order[codes[order] == c][: np.clip(POOL // n, 4, POOL // 10)] for c in range(n)])
        self.pool_, self.pool_codes_ = f[pool], codes[pool]
        self.level_, self.calibration_ = np.nan, np.full(0, np.inf)
        self.settled_ = np.zeros((0, 3 * -(-n // 64) + f.shape[1] + 1), "<u8")
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
        """Take the cheapest of the boldest graphs that lose no rows; the DDAG if none is cheaper than that."""
        edges = np.stack([ranges(f[part != k], codes[part != k], known) for k in range(part.max() + 1)], axis=1)
        rows = np.unique(np.linspace(0, len(codes) - 1, max(300, JUDGED // len(known) ** 2)).astype(int))
        labels, paths, _ = ddag(range(len(known)), len(known)).run(f[rows])
        held = Held(f[rows], codes[rows], part[rows], edges, labels == codes[rows])
        some, least, found = held.some(4), costs(paths, self.machines_.coef).kernel_evaluations.mean(), None
        for level in LEVELS:
            plan = self._plan(level)
            if some.loses(plan, some.walk(plan), 1.0, HOPELESS):
                continue
            if 1 < self.lookahead and len(known) <= MANY:
                plan.compare(self.lookahead)
            ends = held.walk(plan)
            cost = plan.costs(ends).mean()
            if cost < least and not held.loses(plan, ends, self.loss, LOST):
                least, found, self.calibration_ = cost, plan, np.sort(held.scores(plan, ends))
            elif found:
                break
            if found and level >= ODD:  # safer graphs are dearer; below, many answers are odd
                break
        if found:
            sets = [
                [*np.frombuffer(s[0], "<u8"), *np.isin(range(f.shape[1]), s[1]), t] for s, t in found.chosen.items()
            ]
            self.level_, self._planned = found.level, found
            self.settled_ = np.array(sets, "<u8").reshape(-1, self.settled_.shape[1])

    def _plan(self, level: float, settled: np.ndarray = ()) -> Plan:
        n, coef = 3 * -(-len(self.classes_) // 64), self.machines_.coef
        uses = np.zeros(coef.shape, dtype=bool)
        uses[np.repeat(np.arange(len(uses)), np.diff(coef.indptr)), coef.indices] = True
        chosen = {(row[:n].tobytes(), tuple(np.flatnonzero(row[n:-1]).tolist())): int(row[-1]) for row in settled}
        return Plan(self.ranges_, level, self.pool_, self.pool_codes_, uses, chosen)

    def _make_graph(self) -> DecisionGraph:
        if np.isnan(self.level_):
            return ddag(range(len(self.classes_)), len(self.classes_))
        plan = self.__dict__.pop("_planned", None) or self._plan(float(self.level_), self.settled_)
        return plan.graph()

    def doubts(self, X) -> np.ndarray:
        """Score each class by how far out in its tails the outputs on each row's path lie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `predict`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            s(x, l): the largest d_tl on the path; minus infinity for the answer.
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
        """Return the score q that belongs to a chance of a miss.

        Parameters
        ----------
        alpha : float
            Chance of a miss.

        Returns
        -------
        q : float
            The k-th smallest of `calibration_`; infinite if that holds too few.
        """
        n = len(self.calibration_)
        k = int(np.ceil((1 - alpha) * (n + 1) - 1e-9))
        return float(self.calibration_[k - 1]) if k <= n else np.inf
