"""What is known of long duals between steps; active.py chooses their rows by it.

All arrays hold the rows of a chunk's duals end to end, so that one call judges all of
them. Where their kernel values come from stands in values.py.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| ALONE = 1400 | active rows | a dual that shares kernel rows steps alone on more. |
| | | One-versus-rest on 4,000 rows of USPS: 700 1.04, 2800 .95 |
| JUDGEMENTS = 4 | without gain, after which a dual ends | Segment, C = 1000: 2 .93, |
| | | 8 1.11; Letter: 1.04, 1.03; Pendigits: 1.01, 1.02 |
| ANY_RANK = 400 | rows | duals of more go to hard.py only if the rank is an eighth |
| | | of the rows, or if its factor costs no more than the steps so far: |
| FACTOR = 2^15 | rows * rank^2 that are worth a step | Segment, cubic, C = 1e4: four |
| | | times 13; red wine, 1,599 rows, gamma = .01, C = 1e6 (rank 1,358): a |
| | | quarter 1.2, four times .9, nothing is 4 and leaves it unsolved |
| MOST_FACTOR = 2^24 | entries of a factor of more than an eighth | bounds memory |
| PATIENT = 10 | times hard.py's patience, after which float32 ends in duals of more |
| | | than ANY_RANK rows | 3 to 30: 1.0 |
| MEASURED = 2^18 | rows whose certificates are formed at a time | bounds memory |
| SLIGHT_MOVE = .01 | of tol: what moving alphas to bounds may change of v | |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel
from .dual import EPS, Duals, box, is_solved, measure, ranges, snap, span, starts
from .hard import hard_after
from .lowrank import KeptFactor
from .steps import Point, merge_gradient, split_gradient

ALONE = 1400
JUDGEMENTS = 4
ANY_RANK = 400
FACTOR = 1 << 15
MOST_FACTOR = 1 << 24
PATIENT = 10
MEASURED = 1 << 18
SLIGHT_MOVE = 0.01


@dataclass(frozen=True)
class Settings:
    """How long duals are solved; `progress` is told how many are done, when some are.

    A chunk holds at most cache_size / 2 MB of kernel rows, and a quarter each of
    stacked kernels and of rows cut to the active ones.
    """

    tol: float = 1e-3
    max_iter: int = -1
    cache_size: float = 2000.0
    n_jobs: int | None = None
    progress: Callable = int  # which does nothing with the number that it is told
    alone: int = ALONE


def rows_in(rows: np.ndarray | slice, mask: np.ndarray) -> np.ndarray:
    """Those of some rows (their numbers, or the slice of all) that a mask has."""
    if isinstance(rows, slice):
        return np.flatnonzero(mask)
    return rows[mask]


class Search:
    """The duals of a chunk under way, their rows end to end; rows are numbered so.

    Attributes
    ----------
    first, length : (duals,) each dual's first row, and how many it has.
    owner, goal, lo, hi : (rows,) dual of every row, s p, and the box of beta = s alpha.
    beta, v, active : (rows,) beta, v = s p - K beta, and which rows steps move; v is
        right where it was judged or stepped on.
    top, bottom : (duals,) when last judged, the largest v that may rise, and the least
        that may fall; violation, objective : then as well.
    largest, noise : (duals,) the largest |K_ii|, and what rounding left of a violation
        when last judged.
    aim : (duals,) violation at which the active rows count as solved.
    steps, allowed, limit : (duals,) steps taken, allowed until other means take over,
        and allowed in all.
    best, stalled : (duals,) least objective judged, and judgements since it last fell.
    factor : what hard.py last factored, for the next dual of the same rows.
    """

    def __init__(self, duals: Duals, kernels: list[Kernel], X, settings: Settings):
        self.duals = duals
        self.kernels = kernels
        self.X = X
        self.settings = settings
        self.first = duals.ends[:-1]
        self.length = np.diff(duals.ends)
        n = len(self.length)
        self.owner = np.repeat(np.arange(n), self.length)
        self.goal = duals.s * duals.p
        self.lo, self.hi = box(duals.s, duals.u)
        self.beta = np.zeros(len(self.owner))
        self.v = self.goal.copy()
        self.active = np.zeros(len(self.owner), bool)
        self.top, self.bottom, self.violation, self.objective = np.zeros((4, n))
        self.noise, self.largest = np.zeros((2, n))
        self.judge(np.arange(n), 0.0)  # K beta, as all starts from zero
        self.aim = 0.25 * self.violation  # of the first steps
        self.steps = np.zeros(n, int)
        self.limit = np.maximum(10_000_000, 100 * self.length)  # as LIBSVM has it
        if settings.max_iter > 0:
            self.limit = np.full(n, settings.max_iter)
        self.allowed = self.limit.copy()
        self.best = np.full(n, np.inf)
        self.stalled = np.zeros(n, int)
        self.factor: KeptFactor | None = None

    def rows_of(self, some: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray]:
        """The rows of some of the duals, and where each of these begins among them."""
        if len(some) == len(self.first):  # all, which costs no copies
            return slice(None), self.first
        length = self.length[some]
        return ranges(self.first[some], length), starts(length)

    def may_rise(self, rows) -> np.ndarray:
        """Whether the beta of rows may: it is below the top of its box."""
        return self.beta[rows] < self.hi[rows]

    def may_fall(self, rows) -> np.ndarray:
        """Whether the beta of rows may: it is above the bottom of its box."""
        return self.beta[rows] > self.lo[rows]

    def extremes(self, rows, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest v that may rise, the least that may fall, of duals end to end.

        Dual k begins at rows[first[k]].
        """
        v = self.v[rows]
        of_rising = np.where(self.may_rise(rows), v, -np.inf)
        of_falling = np.where(self.may_fall(rows), v, np.inf)
        top = np.maximum.reduceat(of_rising, first)
        bottom = np.minimum.reduceat(of_falling, first)
        return top, bottom

    def judge(self, some: np.ndarray, f) -> None:
        """Take f = K beta on all rows of some duals: v, violation and objective."""
        rows, first = self.rows_of(some)
        beta = self.beta[rows]
        goal = self.goal[rows]
        v = goal - f
        self.v[rows] = v
        top, bottom = self.extremes(rows, first)
        self.top[some] = top
        self.bottom[some] = bottom
        self.violation[some] = top - bottom
        size = np.add.reduceat(np.abs(beta), first)
        self.noise[some] = EPS * self.largest[some] * size
        # 1/2 b'Kb - goal'b, as K b = goal - v
        terms = beta * (v + goal)
        self.objective[some] = -0.5 * np.add.reduceat(terms, first)

    def count_gains(self, some: np.ndarray, least: float) -> None:
        """Note which duals gained on the objective: more than `least` of its size."""
        objective = self.objective[some]
        best = self.best[some]
        gains = objective < best - least * np.abs(objective)
        longer = self.stalled[some] + 1
        self.stalled[some] = np.where(gains, 0, longer)
        self.best[some] = np.minimum(best, objective)

    def allow(self, exact: bool) -> None:
        """Set the steps after which other means take over, or float64 does."""
        patient = (not exact) & (self.length > ANY_RANK)
        more = np.where(patient, PATIENT, 1) * hard_after(self.length)
        most = self.steps + more
        self.allowed = np.minimum(self.limit, most)

    def most_rank(self, k: int) -> int | None:
        """The largest rank with which hard.py may solve dual k; None if any may be."""
        n = int(self.length[k])
        if n <= ANY_RANK:
            return None
        # its factor costs n rank^2
        rank = int(np.sqrt(FACTOR * self.steps[k] / n))
        return max(n // 8, min(rank, MOST_FACTOR // n))

    def solved(self, some: np.ndarray, tol: float) -> np.ndarray:
        """Which duals violate by no more than `tol`, or than rounding leaves."""
        return is_solved(self.violation[some], tol, self.noise[some])

    def slow(self, some: np.ndarray) -> np.ndarray:
        """Which duals are out of steps, or no longer gain on the objective."""
        out_of_steps = self.steps[some] >= self.allowed[some]
        no_gain = self.stalled[some] >= JUDGEMENTS
        return out_of_steps | no_gain

    def gives_up(self, some: np.ndarray, tol: float) -> np.ndarray:
        """Which duals steps do not solve, as long as there are other means."""
        other_means = self.allowed[some] < self.limit[some]
        slow = self.slow(some) & other_means
        return slow & ~self.solved(some, tol)

    def ended(self, some: np.ndarray, tol: float) -> np.ndarray:
        """Which duals are solved, or too slow to go on."""
        return self.solved(some, tol) | self.slow(some)

    def active_rows(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The active rows of some of the duals, and how many each has."""
        rows, _ = self.rows_of(some)
        rows = rows_in(rows, self.active[rows])
        count = np.bincount(self.owner[rows], minlength=len(self.first))
        return rows, count[some]

    def near(self) -> np.ndarray:
        """Which rows float64 may judge otherwise than float32 did.

        It finds no violation at those without beta that are far on their right side.
        """
        # (duals,): the middle of the ends stands for the bias
        middle = 0.5 * (self.top + self.bottom)
        weight = np.add.reduceat(np.abs(self.beta), self.first)
        margin = np.maximum(0.01, 1e-6 * weight)
        # (rows,): above zero on the wrong side
        slack = self.duals.s * (self.v - np.repeat(middle, self.length))
        is_close = slack > -np.repeat(margin, self.length)
        return is_close | (self.beta != 0)

    def point(self, rows: np.ndarray, at, shape: tuple[int, ...], dtype) -> Point:
        """Where some rows stand, for steps: they go to `at` in arrays of that shape.

        What fills up the arrays has no room to move.
        """
        v, beta, lo, hi = np.zeros((4, *shape))
        v[at] = self.v[rows]
        beta[at] = self.beta[rows]
        lo[at] = self.lo[rows]
        hi[at] = self.hi[rows]
        return Point(split_gradient(v, beta, lo, hi, dtype), beta, lo, hi)

    def store(self, rows: np.ndarray, point: Point, at) -> None:
        """Take beta and v of some rows from where steps left them."""
        self.beta[rows] = point.beta[at]
        self.v[rows] = merge_gradient(point.v2)[at]

    def of(self, k: int) -> slice:
        """The rows of dual k."""
        return span(self.first, self.length, k)

    def result(self) -> Duals:
        """The duals with what was found: alpha, certificates from v, steps."""
        n = len(self.length)
        some = max(1, MEASURED // int(self.length.max()))
        for start in range(0, n, some):
            end = min(n, start + some)
            self._certify(np.arange(start, end))
        return self.duals

    def _certify(self, some: np.ndarray) -> None:
        """Store alpha and certificates of neighbouring duals, stacked for that."""
        duals = self.duals
        rows = ranges(self.first[some], self.length[some])
        owner = self.owner[rows]
        dual = owner - some[0]
        place = rows - self.first[owner]
        at = dual, place
        # (duals, rows); what fills up a dual has p = u = alpha = 0, and no say
        shape = len(some), self.length[some].max()
        f, p, u, alpha = np.zeros((4, *shape))
        s = np.ones(shape)
        f[at] = self.goal[rows] - self.v[rows]
        s[at] = duals.s[rows]
        p[at] = duals.p[rows]
        u[at] = duals.u[rows]
        alpha[at] = duals.s[rows] * self.beta[rows]
        alpha = np.clip(alpha, 0.0, u)  # a step may round past a bound
        snapped = snap(alpha, u)
        # v is that of alpha: with huge bounds a move to them would show in it
        shows = self.largest[some] * np.abs(snapped - alpha).sum(1)
        is_slight = shows <= SLIGHT_MOVE * self.settings.tol
        alpha = np.where(is_slight[:, None], snapped, alpha)
        duals.alpha[rows] = alpha[at]
        noise = EPS * self.largest[some] * alpha.sum(1)
        found = measure(f, s, p, u, alpha, noise=noise)
        converged = is_solved(found.kkt_violation, self.settings.tol, noise)
        duals.store_stats(some, found, self.steps[some], converged)
