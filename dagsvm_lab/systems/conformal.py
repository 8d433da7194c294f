"""A DAG that reads how large an answer is, not only its sign; and sets of classes with a guarantee.

Outputs of machine t on rows of a class l, whether or not t was trained on l, have a range that held-out rows show, and
tails beyond it. A row whose output v lies far out in them is hardly of class l:

    d_tl(v) = max((low_tl - v) / below_tl, (v - high_tl) / above_tl)

Tails that fall by e a spread (below, above) begin at low and high such that a row of class l lies d out at either side
with chance e^-d, however many rows the range was seen on. At a level w, d > w strikes class l off; a pair's machine
strikes off its loser by sign while both its classes are left. If all are struck off, or the one that is left had itself
given an odd answer (d > 6, or w), a value has misled: classes that only values struck off are reopened, and signs alone
decide among what is left. So rows unlike those of the ranges, as of new writers, cost more but are hardly lost.

Before the graph is entered a row may be given a glance or two: a few support vectors tell which classes it may be of at
all (glance.py). Next the graph asks the machine that strikes off most for each new kernel value (support vectors met
before are free), and where many rows come by the one whose whole continuation is cheapest on held-out rows. The level
stands SAFER above the boldest at which held-out rows show no loss against the DDAG: a row or one in a thousand, and few
rows lost whatever is won elsewhere, for what is won on rows unlike all others may be luck.

The guarantee holds for any such graph (split conformal prediction: Papadopoulos et al. 2002; Vovk, Gammerman and Shafer
2005). Let s(x, l) be the largest d_tl over the machines t on x's path, or the lead at its last glance if that is more,
and minus infinity for the answer. Let (x_1, y_1), ..., (x_n, y_n) be fresh rows, exchangeable with (x, y), and q the
k-th smallest of s(x_i, y_i) for k = ceil((1 - alpha)(n + 1)), infinite if k > n.

    Theorem. The set {l : s(x, l) <= q} misses y with probability at most alpha.
    Proof. s was settled before the fresh rows were seen, so the n + 1 numbers s(x_i, y_i) and s(x, y) are exchangeable,
    and s(x, y) is among the k smallest with probability at least k / (n + 1) >= 1 - alpha; ties only help. If it is,
    it is at most the k-th smallest of the others, which is q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph, Glance, GraphTooLarge, costs
from ..machines import pair_code
from .base import BankClassifier, Sample, outputs
from .ddag import ddag
from .declared import Count
from .glance import choose, leads, look, loses, short_machines, with_marks, with_short_machines
from .held import Held
from .plan import LEVELS, POOL, Plan, enough, outside, parts_of, ranges

JUDGED = 750_000  # held-out rows that levels are judged by, times classes squared; 300 at least
HOPELESS = 4  # times what counts as loss: on a quarter of the rows, before any comparison
SAFER = 3  # levels, of half a spread, above the boldest at which no held-out rows are lost: e^-1.5 of the strikes
MANY = 16  # classes up to which continuations are compared: with 26 that takes 7 s a level, and saves nothing


@dataclass(kw_only=True, eq=False, repr=False)
class ConformalDAGSVC(BankClassifier):
    """A DAG that reads the value of an answer: classes whose held-out outputs never lay there are struck off too.

    Fitting trains every machine `folds` times more, on the rows outside each part.

    Parameters
    ----------
    alpha : float, default=0.05
        Chance that `predict_set` may miss the true class.
    loss : float, default=0.005
        Share of held-out rows, and two more, that the graph may answer worse than the DDAG.
    folds : int, default=5
        Parts of the training rows, in their order, that are held out in turn.
    lookahead : int, default=4
        Machines whose continuations are compared at states near the root, with up to 16 classes; 1 takes the greedy
        choice everywhere.
    glances : bool, default=True
        Whether rows may first be given up to two glances: short machines over a few support vectors.

    Attributes
    ----------
    glances_ : ndarray of shape (n_glances, 2)
        Support vectors that each glance reads, and how far behind the best a class may be, in log odds.
    asked_ : Bank
        The machines that rows may meet: `machines_`, and after them the glances' short machines.
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

    alpha: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.05
    loss: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.005
    folds: Annotated[int, Interval(Integral, 2, None, closed="left")] = 5
    lookahead: Count = 4
    glances: bool = True

    _saved: ClassVar[tuple[str, ...]] = (
        "ranges_", "level_", "calibration_", "pool_", "pool_codes_", "settled_", "glances_", "glance_support_",
        "short_coef_", "short_bias_",
    )  # fmt: skip

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
        self._take_glances([], np.zeros(0, int), [])
        if len(rows):
            edges = np.stack([ranges(f[part != k], codes[part != k], known) for k in range(part.max() + 1)], axis=1)
            right = ddag(range(n), n).labels(f) == codes
            lead, at, short = {}, np.zeros(0, int), {}
            if self.glances:
                at, short, g = short_machines(self.machines_, sample, rows, part)
                lead = {q: leads(odds, known) for q, odds in g.items()}
            for chain in dict.fromkeys((tuple(choose(lead, f, codes, right, self.machines_, at, self.loss)), ())):
                self._take_glances(chain, at, [short[q] for q, _ in chain])
                seen = look(chain, lead, (len(f), n))
                if self._choose_level(Held(f, codes, part, edges, right, seen), pool):
                    break

    def _held_out(self, sample: Sample, part: np.ndarray) -> np.ndarray:
        """Outputs for the training rows of machines that were trained without their part."""
        code, out = self._code(sample), np.zeros((len(part), len(self.machines_.bias)))
        square = self.kernel == "precomputed"
        for k in np.unique(part[part >= 0]):
            fit, held = np.flatnonzero(part != k), np.flatnonzero(part == k)
            repeats = None if sample.repeats is None else sample.repeats[fit]
            X = sample.X[np.ix_(fit, fit)] if square else sample.X[fit]
            some = replace(sample, X=X, codes=sample.codes[fit], repeats=repeats, bank=None)
            bank = self._train(some, code)
            new = sample.X[np.ix_(held, fit)] if square else sample.X[held]
            out[held] = np.concatenate(list(outputs(bank, new, self.n_jobs)))
        return out

    def _take_glances(self, chain, at: np.ndarray, short: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Set the glances: of each its size and bound, and its short machines."""
        self.glances_ = np.array(chain, dtype=float).reshape(-1, 2)
        widest = int(self.glances_[:, 0].max(initial=0))
        self.glance_support_ = at[:widest]
        self.short_coef_ = np.array([np.pad(w, ((0, 0), (0, widest - w.shape[1]))) for w, _ in short])
        self.short_bias_ = np.array([b for _, b in short])

    def _choose_level(self, held: Held, pool: np.ndarray) -> bool:
        """Take the cheapest of the boldest graphs that lose no rows, if one is cheaper than the DDAG."""
        n, starts = len(self.classes_), held.some(pool)
        held = held.some(np.unique(np.linspace(0, len(held.f) - 1, max(300, JUDGED // n**2)).astype(int)))
        _, paths, _ = ddag(range(n), n).run(held.f)
        some, least, found = held.some(slice(None, None, 4)), costs(paths, self.machines_.coef).kernel_evaluations, None
        for k, level in enumerate(LEVELS):
            plan = self._plan(level)
            signs = level == np.inf  # the DDAG in another order: which of them errs less is chance
            if not signs and loses(some.answers(plan, some.walk(plan)), some.right, ease=HOPELESS):
                continue
            if signs or not loses(held.answers(plan, held.walk(plan)), held.right, self.loss):
                plan = self._plan(LEVELS[min(k + SAFER, len(LEVELS) - 1)])
                if 1 < self.lookahead and n <= MANY:
                    plan.compare(self.lookahead, starts.starts(plan))
                ends = held.walk(plan)
                if plan.costs(ends).mean() < least.mean():
                    found, self.calibration_ = plan, np.sort(held.scores(plan, ends))
                break
        if found:
            sets = [
                [*np.frombuffer(s[0], "<u8"), *np.isin(range(found.n_machines + len(self.glances_)), s[1]), t]
                for s, t in found.chosen.items()
            ]
            self.level_, self._planned = found.level, found
            self.settled_ = np.array(sets, "<u8").reshape(len(sets), self.settled_.shape[1] + len(self.glances_))
        return found is not None

    def _plan(self, level: float, settled: np.ndarray = ()) -> Plan:
        n = 3 * -(-len(self.classes_) // 64)
        coef = with_marks(self.machines_, self.glance_support_, self.glances_[:, 0].astype(int).tolist())
        uses = np.zeros(coef.shape, dtype=bool)
        uses[np.repeat(np.arange(len(uses)), np.diff(coef.indptr)), coef.indices] = True
        chosen = {(row[:n].tobytes(), tuple(np.flatnonzero(row[n:-1]).tolist())): int(row[-1]) for row in settled}
        return Plan(self.ranges_, level, self.pool_, self.pool_codes_, uses, chosen)

    def _make_graph(self) -> DecisionGraph:
        self.asked_, n = self.machines_, len(self.classes_)
        if np.isnan(self.level_):
            return ddag(range(n), n)
        sized = zip(self.glances_[:, 0].astype(int), self.short_coef_, self.short_bias_, strict=True)
        self.asked_ = with_short_machines(self.machines_, self.glance_support_, [(w[:, :q], b) for q, w, b in sized])
        known = np.isfinite(self.ranges_[0, 0])
        glances = [
            Glance(len(self.machines_.bias) + n * k + np.arange(n), np.where(known, bound, np.inf))
            for k, (_, bound) in enumerate(self.glances_)
        ]
        plan = self.__dict__.pop("_planned", None) or self._plan(float(self.level_), self.settled_)
        return plan.graph(glances)

    def _regrown(self, ask: Callable, X: np.ndarray) -> list:
        """What `ask` says of parts of X: of all at once, or of halves where the graph outgrows its limit of nodes.

        A graph that does is left to the calls that still read it, and grows anew for the next rows.
        """
        try:
            return [ask(X)]
        except GraphTooLarge:
            if len(X) == 1:
                raise
            self.graph_ = self._make_graph()
            return [part for half in np.array_split(X, 2) for part in self._regrown(ask, half)]

    def _labels(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate(self._regrown(super()._labels, X))

    def _answer(self, X: np.ndarray) -> tuple[np.ndarray, csr_matrix, np.ndarray]:
        labels, paths, scores = zip(*self._regrown(super()._answer, X), strict=True)
        return np.concatenate(labels), vstack(paths, format="csr"), np.concatenate(scores)

    def doubts(self, X) -> np.ndarray:
        """Score each class by how far out in its tails the outputs on each row's path lie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `predict`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            s(x, l): the largest d_tl on the path, or the lead at the last glance; minus infinity for the answer.
        """
        return np.concatenate(self._regrown(self._doubts, self._rows(X)))

    def _doubts(self, X: np.ndarray) -> np.ndarray:
        parts, known = [], np.isfinite(self.ranges_[0, 0])
        for f in self._outputs(X):
            labels, paths, _ = self.graph_.run(f)
            _, taken = self.graph_.entered(len(f), lambda rows, t: f[rows, t])  # noqa: B023
            d = np.full((len(f), len(self.classes_)), -np.inf)
            for k, glance in enumerate(self.graph_.glances, start=1):
                rows = np.flatnonzero(taken == k)
                d[rows] = leads(f[np.ix_(rows, glance.machines)], known)
            row, t = np.repeat(np.arange(len(f)), np.diff(paths.indptr)), paths.indices
            row, t = row[t < len(self.machines_.bias)], t[t < len(self.machines_.bias)]
            np.maximum.at(d, row, outside(f[row, t], self.ranges_[:, t]))
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
