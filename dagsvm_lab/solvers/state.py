"""One dual under way: what is known of it between solves of its active rows."""

import numpy as np

from .columns import Columns
from .dual import Dual, Duals, measure
from .newton import exact
from .smo import ends, limits, once, resting, settle, twice
from .table import apart

# each with the seconds of other values over today's, on Letter, Pendigits, Segment (one core)
START = 48  # rows of each side that a dual starts with: 24 1.08 .97 1.14, 96 1.15 1.01 1.01
SHARE = 60  # or one row of so many, if these are more: 30 1.06, 120 1.12 on Letter
FALL = 0.1  # violation aimed at over that of the last judgement: .3 1.22 1.18 1.03, .03 .89 1.04 1.16
KEEP = 0.5  # what must be left of the active rows for them to stay as they are: .25 .98 1.06, .8 .96 1.07


class State:
    """One dual of a bank (dual.py), solved on active rows that change from round to round (batch.py).

    Attributes
    ----------
    at : the rows of X that it is of, ascending. Other indices count these rows.
    s, p, u, lo, hi : the dual, and its box in beta = s alpha.
    beta : lo <= beta <= hi and sum beta = 0 after every step.
    v : s p - K beta; exact on all rows after `judge`, and on the active rows after every solve of them.
    top, bottom, violation : when last judged, the largest v that may rise, the least that may fall, their difference.
    active : the rows that steps move, ascending.
    aim : the violation of the active rows at which all rows are judged again.
    stop : the violation at which the present solve ends; it falls to `aim` in a few solves of ever fewer rows.
    reached : whether the last solve came to `stop`, or was given up because its stack had become small.
    steps, limit, hard : steps taken, allowed, and the number from which linear systems take over (smo.py).
    best, stalled : the least objective judged so far, and how many judgements in a row have not lowered it.
    columns, place : where kernel values come from (several duals may share them), and where these rows are among its.
    number : of the machine, in its bank. square : gives the kernel matrix of some of the rows in float64.
    half : K_ii / 2. cuts : kernel rows cut to the active rows, for a dual that steps alone.
    """

    def __init__(self, duals: Duals, t: int, max_iter: int):
        part, self.number = duals.part(t), t
        self.at, self.s, self.p, self.u = duals.rows[part], duals.s[part], duals.p[part], duals.u[part]
        self.lo, self.hi = np.minimum(self.s * self.u, 0.0), np.maximum(self.s * self.u, 0.0)
        self.beta = np.zeros(len(self.s))
        self.limit, self.hard = limits(len(self.s), max_iter)
        self.best, self.reached = np.inf, True
        self.steps = self.stalled = 0
        sides = (np.flatnonzero(self.hi > 0), np.flatnonzero(self.lo < 0))
        few = [min(max(START, len(side) // SHARE), len(side)) for side in sides]
        spread = [side[np.linspace(0, len(side) - 1, n).astype(int)] for side, n in zip(sides, few, strict=True)]
        self.active = np.sort(np.concatenate(spread))
        self.judge(np.zeros(len(self.s)))
        self.stop = self.aim = 0.25 * self.violation

    def use(self, columns: Columns, at: np.ndarray) -> None:
        """Take kernel values from `columns`, where the rows of this dual are `at`."""
        self.rows, self.columns, self.at, self.cuts = columns.rows, columns, at, {}
        self.half, self.place = 0.5 * self.rows.diagonal(at), np.searchsorted(columns.at, at)

    def judge(self, f: np.ndarray) -> None:
        """Take f = K beta on all rows: v and the largest violation."""
        self.v = self.s * self.p - f
        self.top, self.bottom = ends(self.v, self.beta, self.lo, self.hi)
        self.violation = self.top - self.bottom

    def part(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(v, beta, lo, hi) of the active rows."""
        return tuple(values[self.active] for values in (self.v, self.beta, self.lo, self.hi))

    def twice(self) -> np.ndarray:
        """v of the active rows as steps.py has it."""
        return twice(*self.part(), self.rows.dtype)

    def take(self, b: np.ndarray, v2: np.ndarray) -> None:
        """Take beta and both copies of v of the active rows from a solve."""
        self.beta[self.active], self.v[self.active] = b, once(v2)

    def newton(self) -> bool:
        """Solve the active rows exactly, and come to `aim`; whether Newton's method settled them."""
        a, b, n = self.active, self.beta[None, self.active], len(self.active)
        others = np.setdiff1d(np.flatnonzero(self.beta), a, assume_unique=True)
        K = self.square(np.concatenate([a, others]))
        goal = (self.s * self.p)[a] - K[:n, n:] @ self.beta[others]
        K, own = np.ascontiguousarray(K[None, :n, :n]), np.zeros(1, int)
        found, v, settled, rounds = exact(apart(K), self.s[None, a], self.u[None, a], goal[None], b, own, b.sum())
        self.steps += int(rounds[0])
        if settled[0]:
            self.beta[a], self.v[a], self.stop = found[0], v[0], self.aim
        return bool(settled[0])

    def remaining(self, tol: float) -> np.ndarray:
        """The active rows without those that rest."""
        part = self.part()
        top, bottom = ends(*part)
        if not np.isfinite(top - bottom):  # all on one side: their partners are still to join
            return self.active
        return self.active[~resting(*part, 0.25 * max(top - bottom, tol))]

    def next_round(self, tol: float) -> None:
        """Set what the next solve works on: how tightly, and on which rows."""
        tight = 0.9 * tol
        if self.stop > self.aim:  # only what is left of the present rows, more tightly
            remaining = self.remaining(tol)
            if len(remaining) < KEEP * len(self.active):
                self.active = remaining
                self.cuts.clear()
            self.stop = max(self.aim, FALL * self.stop)
            return
        if self.violation < 2.0 * self.aim:  # hardly anything outside: all the way before the next look at it
            self.aim, self.stop = tight, max(tight, FALL * self.stop)
        else:
            self.aim = self.stop = max(min(self.aim, FALL * self.violation), tight)
        up, low = self.beta < self.hi, self.beta > self.lo
        excess = np.maximum(np.where(up, self.v - self.bottom, -np.inf), np.where(low, self.top - self.v, -np.inf))
        excess[self.active] = -np.inf
        new = np.flatnonzero(excess > self.aim)
        n = len(self.active)
        most = max(2 * START, n if 16 * n < len(self.v) else n // 2)
        if len(new) > most:
            new = new[np.argpartition(-excess[new], most)[:most]]
        self.active = np.sort(np.concatenate([self.remaining(tol), new]))
        self.cuts.clear()

    def lose_patience(self) -> None:
        """Finish a small dual that takes too many steps in float64, by linear systems."""
        if self.steps < self.hard:
            return
        self.stalled = 4
        if self.rows.dtype == np.float64:
            self.beta = settle(self.rows.block(self.at, self.at), self.s, self.p, self.u, self.beta)
            self.hard, self.limit, self.stalled = np.inf, min(self.limit, 10 * self.steps), 0
        self.reached, self.stop = True, self.aim

    def finished(self, tol: float) -> bool:
        """Whether to stop: converged, out of steps, or no longer gaining on the objective."""
        objective = -0.5 * float(self.beta @ (self.v + self.s * self.p))
        least = 1e-6 if self.rows.dtype == np.float32 else 1e-12
        self.stalled = 0 if objective < self.best - least * abs(objective) else self.stalled + 1
        self.best = min(self.best, objective)
        if self.violation <= tol or self.steps >= self.limit:
            return True
        stuck = self.stalled > 3 and self.stop <= max(tol, self.aim)
        if stuck and self.hard < np.inf and self.rows.dtype == np.float64:
            self.hard = self.steps  # no more patience: `lose_patience` finishes what steps cannot
            return False
        return stuck

    def judge_again(self, tol: float, each) -> None:
        """Judge in float64 what a search in float32 has found, and aim at what it has left.

        Only near rows are judged: float64 finds no violation at those far on their right side.
        """
        if not np.isfinite(self.violation):
            return
        margin, middle = max(0.01, 1e-6 * np.abs(self.beta).sum()), 0.5 * (self.top + self.bottom)
        near = np.flatnonzero((self.beta != 0) | (self.s * (self.v - middle) > -margin))
        f = self.s * self.p - self.v
        f[near] = self.rows.within(self.at[near], self.beta[near], each)
        self.judge(f)
        self.best, self.stalled = np.inf, 0
        self.aim = self.stop = max(0.9 * tol, min(self.stop, FALL * self.violation))

    def dual(self, tol: float) -> Dual:
        """The Dual of what was reached, certified from v."""
        alpha = np.clip(self.s * self.beta, 0.0, self.u)  # a step may round past a bound
        c = measure(self.s * self.p - self.v, self.s, self.p, self.u, alpha)
        how = dict(n_iter=self.steps, converged=bool(c.kkt_violation <= tol), linear=self.p, upper=self.u)
        return Dual(alpha, **vars(c), **how)
