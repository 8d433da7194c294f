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

from dataclasses import replace
from numbers import Integral, Real
from typing import Annotated, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import _safe_split

from ..graphs import DecisionGraph, Glance, costs
from .base import BankClassifier, Sample
from .ddag import ddag
from .declared import Count
from .glance import choose, loses, short_machines, with_marks, with_short_machines
from .held import Held
from .plan import LEVELS, POOL, Plan, enough, outside, parts_of, ranges

JUDGED = 750_000  # held-out rows that levels are judged by, times classes squared; 300 at least
HOPELESS = 4  # times what counts as loss: on a quarter of the rows, before any comparison
SAFER = 3  # levels, of half a spread, above the boldest at which no held-out rows are lost: e^-1.5 of the strikes
MANY = 16  # classes up to which continuations are compared: with 26 that takes 7 s a level, and saves nothing


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
    >>> from dagsvm_lab import ConformalDAGSVC, load
    >>> d = load("iris", scaled=True)
    >>> est = ConformalDAGSVC(C=10).fit(d.X[::3], d.y[::3]).calibrate(d.X[1::3], d.y[1::3])
    >>> est.predict_set(d.X[[50, 70]], alpha=0.05).sum(axis=1).tolist()
    [1, 2]
    """

    _sparse: ClassVar[bool] = False

    alpha: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.05
    loss: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.005
    folds: Annotated[int, Interval(Integral, 2, None, closed="left")] = 5
    lookahead: Count = 4
    glances: bool = True

    _saved = ("ranges_", "level_", "calibration_", "pool_", "pool_codes_", "settled_", "glances_", "glance_support_",
              "short_coef_", "short_bias_")  # fmt: skip

    def _study(self, sample: Sample) -> None:
        n, codes, part = sample.n_classes, sample.codes, parts_of(sample.codes, sample.mass > 0, self.folds)
        known = np.array([enough(sample.X[(codes == c) & (part >= 0)]) for c in range(n)])
        if n == 2 or not known.any():
            part[:] = -1
        rows = np.flatnonzero(part >= 0)
        f, codes, part = self._held_out(sample, part)[rows], codes[rows], part[rows]
        self.ranges_ = ranges(f, codes, known & (len(rows) > 0))
        order = np.random.default_rng(0).permutation(len(rows))
        pool = np.concatenate([order[codes[order] == c][: np.clip(POOL // n, 4, POOL // 10)] for c in range(n)])
        self.pool_, self.pool_codes_ = f[pool], codes[pool]
        self.level_, self.calibration_, self.settled_ = np.nan, np.full(0, np.inf), np.zeros(0, "<u8")
        bank, at, short, lead = self.machines_, np.zeros(0, int), {}, {}
        self._take_glances((), at, [])
        if not len(rows):
            return
        edges = np.stack([ranges(f[part != k], codes[part != k], known) for k in range(part.max() + 1)], axis=1)
        held = Held(f, codes, part, edges, ddag(range(n), n).labels(f) == codes)
        if self.glances:
            at, short, lead = short_machines(bank, sample, rows, part, known)
        for chain in dict.fromkeys([choose(held, lead, bank, at, self.loss), ()]):
            self._take_glances(chain, at, [short[q] for q, _ in chain])
            if self._choose_level(held.look(chain, lead), pool):
                break

    def _held_out(self, sample: Sample, part: np.ndarray) -> np.ndarray:
        """Outputs for the training rows of machines that were trained without their part."""
        code, out = self._code(sample), np.zeros((len(part), len(self.machines_.bias)))
        for k in np.unique(part[part >= 0]):
            fit, held = np.flatnonzero(part != k), np.flatnonzero(part == k)
            X, codes = _safe_split(self, sample.X, sample.codes, fit)
            repeats = None if sample.repeats is None else sample.repeats[fit]
            bank = self._train(replace(sample, X=X, codes=codes, repeats=repeats, bank=None), code)
            out[held] = bank.decision(_safe_split(self, sample.X, None, held, fit)[0], n_jobs=self.n_jobs)
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
        n, entering = len(self.classes_), held.some(pool)
        held = held.some(np.unique(np.linspace(0, len(held.f) - 1, max(300, JUDGED // n**2)).astype(int)))
        _, paths, _ = ddag(range(n), n).run(held.f)
        some, least = held.some(slice(None, None, 4)), costs(paths, self.machines_.coef).kernel_evaluations

        def too_bold(level: float) -> bool:
            if level == np.inf:  # the DDAG in another order: which of them errs less is chance
                return False
            plan = self._plan(level)
            hopeless = loses(some.walk(plan)[1], some.right, ease=HOPELESS)
            return hopeless or loses(held.walk(plan)[1], held.right, self.loss)

        boldest = next(k for k, level in enumerate(LEVELS) if not too_bold(level))
        plan = self._plan(LEVELS[min(boldest + SAFER, len(LEVELS) - 1)])
        if 1 < self.lookahead and n <= MANY:
            plan.compare(self.lookahead, *entering.starts(plan))
        ends, right = held.walk(plan)
        if cheaper := plan.costs(ends).mean() < least.mean():
            self.level_, self._planned, self.calibration_ = plan.level, plan, np.sort(held.scores(plan, ends, right))
            asked = range(len(plan.uses))
            sets = [[*np.frombuffer(s, "<u8"), *np.isin(asked, met), t] for (s, met), t in plan.chosen.items()]
            self.settled_ = np.array(sets, "<u8")
        return bool(cheaper)

    def _plan(self, level: float, settled: np.ndarray = ()) -> Plan:
        n = 3 * -(-len(self.classes_) // 64)
        uses = with_marks(self.machines_, self.glance_support_, self.glances_[:, 0].astype(int).tolist()).toarray()
        chosen = {(row[:n].tobytes(), tuple(np.flatnonzero(row[n:-1]).tolist())): int(row[-1]) for row in settled}
        return Plan(self.ranges_, level, self.pool_, self.pool_codes_, uses, chosen)

    def _make_graph(self) -> DecisionGraph:
        bank, n, known = self.machines_, len(self.classes_), np.isfinite(self.ranges_[0, 0])
        if np.isnan(self.level_):
            self.asked_ = bank
            return ddag(range(n), n)
        sizes, bounds = self.glances_.T
        short = sizes.astype(int), self.short_coef_, self.short_bias_
        self.asked_ = with_short_machines(bank, self.glance_support_, *short)
        places = len(bank.bias) + np.arange(n * len(bounds)).reshape(-1, n)
        plan = self.__dict__.pop("_planned", None) or self._plan(float(self.level_), self.settled_)
        return plan.graph([Glance(own, bound, known) for own, bound in zip(places, bounds, strict=True)])

    def doubts(self, X) -> np.ndarray:
        """Score each class by how far out in its tails the outputs on each row's path lie.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            s(x, l): the largest d_tl on the path, or the lead at the last glance; minus infinity for the answer.
        """
        return np.concatenate(self._each(self._doubts, self._rows(X)))

    def _doubts(self, f: np.ndarray) -> np.ndarray:
        graph, d = self.graph_, np.full((len(f), len(self.classes_)), -np.inf)
        labels, paths, _ = graph.run(f)
        for glance in graph.glances:  # the last one that a row has met counts
            rows = paths[:, glance.machines[:1]].nonzero()[0]
            d[rows] = glance.lead(f[np.ix_(rows, glance.machines)])
        row, t = paths[:, : len(self.machines_.bias)].nonzero()
        np.maximum.at(d, row, outside(f[row, t], self.ranges_[:, t]))
        d[np.arange(len(f)), labels] = -np.inf
        return d

    def calibrate(self, X, y) -> Self:
        """Calibrate `predict_set` on fresh rows, for which its guarantee is exact.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that no machine was trained on, drawn as those to be predicted are.

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
