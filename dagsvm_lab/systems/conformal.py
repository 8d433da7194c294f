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

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from ..graphs import DecisionGraph, costs
from ..machines import pair_code
from ..statistics import mcnemar
from .base import BankClassifier, Sample, outputs
from .ddag import ddag
from .plan import POOL, Plan, enough, outside, parts_of, ranges

LEVELS = (np.inf, 8.0, 5.0, 3.5, 2.5, 1.75, 1.25, 1.0, 0.75, 0.5, 0.35)  # w, slow and safe first
JUDGED = 30_000  # held-out rows that the levels are judged by, times classes
PRIOR, SIGNIFICANT = 4000, 0.05  # rows added that lost nothing, lest a few rows of a small set decide; McNemar's p


@dataclass(kw_only=True, eq=False, repr=False)
class ConformalDAGSVC(BankClassifier):
    """A DAG that reads the value of an answer: classes whose held-out outputs never lay there are struck off too.

    Fitting trains every machine `folds` times more, on the rows outside each part.

    Parameters
    ----------
    alpha : float, default=0.05
        Chance that `predict_set` may miss the true class.
    loss : float, default=0.001
        Share of rows that the graph may answer worse than the DDAG. The level grows bolder until more held-out rows
        are lost (as if 4,000 more had lost nothing), or McNemar's test finds the loss at p = .05.
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
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> est = ConformalDAGSVC(C=10).fit(X[:1000], y[:1000]).calibrate(X[1000:1400], y[1000:1400])
    >>> sets = est.predict_set(X[1400:], alpha=0.02)
    >>> bool(sets[range(397), y[1400:]].mean() > 0.95)
    True
    """

    _sparse: ClassVar[bool] = False

    alpha: float = 0.05
    loss: float = 0.001
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
        pool = np.concatenate([order[codes[order] == c][: np.clip(POOL // n, 6, POOL // 10)] for c in range(n)])
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
        judged = np.unique(np.linspace(0, len(f) - 1, JUDGED // len(known)).astype(int))
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
