"""Stacked duals to the last digit: Newton's method on their free variables.

    minimise 1/2 b'Kb - goal'b   with  sum b = total,  b between 0 and s u

(dual.py; a whole dual has goal = s p and total = 0. For active rows, goal and total
hold what the others contribute.) In the primal-dual active set method (Hintermueller,
Ito, Kunisch 2003), which for a support vector machine is Newton's method on the
optimality conditions (Chapelle 2007), each row is at 0, at its bound, or free. With the
others held, the free b and the bias solve

    K_FF b_F + bias = (goal - K b)_F,    sum b = total.

Then a free b outside its box goes to the side that it left by, and a row at a side
whose v - bias pulls inwards becomes free, v = goal - K b. When no row changes, all
conditions hold: the point is the exact solution. The method is not monotone: a machine
may go round in circles, end above its start (only if K is not positive semidefinite),
or meet a singular system. Such a machine is not settled, and keeps the point that it
came with.

References: Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a
semismooth Newton method", SIAM J. Optim. 13 (2003); Chapelle, "Training a support
vector machine in the primal", Neural Computation 19 (2007).

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| MOST_SYSTEMS = 8 | linear systems a machine | most need 1 to 4. Vehicle, C = 100: |
| | | 4 takes 3.3 times as long, 16 1.02 |
| FREE_GROWTH = 1.5 | free rows over those at the start, where machines share kernel |
| | | values | with more, machines stray. |
| | | Segment, C = 100: 1.25 1.03, never 1.35 |
| SYSTEM_CELLS = 2^17 | entries of the systems formed at a time | Vowel, five C: |
| | | an eighth .98, eight times 1.24 |
| EQUAL_RIDGE = 1e-13 | of a free row's K_ii | equal rows share their beta, where the |
| | | system would be singular |
"""

import numpy as np

from .dual import EXACT, measure
from .table import KernelTable

MOST_SYSTEMS = 8
FREE_GROWTH = 1.5
SYSTEM_CELLS = 1 << 17
EQUAL_RIDGE = 1e-13


def solve_newton(
    table: KernelTable, s, u, goal, beta, live, total=0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve the machines `live` of `table`; returns (beta, v, settled, rounds) of them.

    s, u, goal and beta are theirs (machines, rows), beta feasible; `total` is one
    number, or one a machine. None of them is changed.
    """
    stack = _Stack(table, s, u, goal, beta, live, total)
    at = np.flatnonzero(~stack.settled)
    for _ in range(MOST_SYSTEMS):
        if not len(at):
            break
        at = stack.step(at)
    return stack.beta, stack.v, stack.settled, stack.rounds


class _Stack:
    """The machines under way; all arrays are (machines, rows), or one number a machine.

    Attributes
    ----------
    table, live, s, u, goal, total : what `solve_newton` was given.
    free, full : which rows are free, and which are at their bounds.
    held, of_held : b of the full rows and K times it, which change little in a step.
    beta, v, settled, rounds : what is given back; beta and v change with settled alone.
    objective, noise : at the start, and the difference of v that counts as none.
    most : free rows beyond which a machine is given up.
    """

    def __init__(self, table: KernelTable, s, u, goal, beta, live, total):
        self.table = table
        self.live = live
        self.s = s
        self.u = u
        self.goal = goal
        self.total = np.broadcast_to(np.asarray(total, float), len(live))
        self.beta = beta.copy()
        alpha = s * beta
        self.full = (alpha >= u) & (u > 0)
        self.free = (alpha > 0) & (alpha < u)
        # K times held changes little from step to step: kept, and brought up to date
        self.held = np.where(self.full, s * u, 0.0)
        self.of_held = np.zeros(beta.shape)
        if self.full.any():
            self.of_held = table.times(self.held, live)
        others = np.where(self.full, 0.0, beta)
        self.v = goal - self.of_held - table.times(others, live)
        self.objective = _objective(beta, self.v, goal)
        largest_v = np.abs(self.v).max(1)
        largest_goal = np.abs(goal).max(1)
        self.noise = EXACT * np.maximum(largest_v, largest_goal)
        # no step moved anything: one sign only, or nothing to gain
        self.settled = ~(self.free | self.full).any(1)
        self.rounds = np.zeros(len(live), int)
        self.most = np.full(len(live), np.inf)
        if table.units > 1:
            self.most = FREE_GROWTH * self.free.sum(1) + 8

    def step(self, at: np.ndarray) -> np.ndarray:
        """Take one step of the machines `at`; returns those that go on."""
        b, bias, v = self._solve(at)
        pull = self.s[at] * (v - bias[:, None])
        free, full = self._new_sides(at, b, pull)
        # (machines, rows), and then (machines,)
        still_free = free == self.free[at]
        still_full = full == self.full[at]
        same = (still_free & still_full).all(1)
        good = same & self._is_solution(at, b, v, pull)
        self._settle(at[good], b[good], v[good])
        self.rounds[at] += 1
        self.free[at] = free
        self.full[at] = full
        few = free.sum(1) <= self.most[at]
        return at[~same & np.isfinite(bias) & few]

    def _settle(self, solved: np.ndarray, b: np.ndarray, v: np.ndarray) -> None:
        """Take b and v of the machines that they solve."""
        self.beta[solved] = b
        self.v[solved] = v
        self.settled[solved] = True

    def _new_sides(self, at, b, pull) -> tuple[np.ndarray, np.ndarray]:
        """(free, full) of the machines `at`, whose systems are solved by b."""
        free = self.free[at]
        full = self.full[at]
        u = self.u[at]
        alpha = self.s[at] * b
        noise = self.noise[at][:, None]
        # a free row goes to the side that it left its box by
        over = free & (alpha > u)
        inside = free & ~over & (alpha >= 0)
        # a row at a side becomes free where it pulls inwards
        at_zero = ~free & ~full & (u > 0)
        off_zero = at_zero & (pull > noise)
        off_bound = full & (pull < -noise)
        new_free = inside | off_zero | off_bound
        new_full = over | (full & ~off_bound)
        return new_free, new_full

    def _is_solution(self, at, b, v, pull) -> np.ndarray:
        """Whether b, where no row changes sides, is the solution.

        That is, whether its system was solved up to rounding, and the objective did
        not rise.
        """
        goal = self.goal[at]
        # what is left of the free rows' equations, and of the sum in the same unit
        left = np.where(self.free[at], pull, 0.0)
        rest = np.abs(left).max(1)
        size = 1e-300 + np.abs(b).sum(1)
        amiss = np.abs(b.sum(1) - self.total[at])
        rest += amiss / size * np.abs(goal).max(1)
        before = self.objective[at]
        highest = before + 1e-9 * np.abs(before)
        lower = _objective(b, v, goal) <= highest
        return lower & (rest <= 100 * self.noise[at])

    def _solve(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(b, bias, v) of the machines `at`: free rows solved, the others held."""
        table = self.table
        live = self.live[at]
        free = self.free[at]
        goal = self.goal[at]
        # the full rows are at their bounds, the others at zero till they are solved for
        b = np.where(self.full[at], self.s[at] * self.u[at], 0.0)
        right = goal - self._held_share(at, b)
        bias = _solve_free(table, live, free, right, b, self.total[at])
        if table.units > 1:  # kernel rows are gathered: of the free rows alone
            v = right - table.times(np.where(free, b, 0.0), live)
        else:
            v = goal - table.times(b, live)
        none = ~free.any(1)
        if none.any():
            bias[none] = self._bias_of_bounds(at[none], b[none], v[none])
        return b, bias, v

    def _held_share(self, at: np.ndarray, held: np.ndarray) -> np.ndarray:
        """K times b of the full rows, `held`, of the machines `at`."""
        change = held - self.held[at]
        if change.any():
            self.held[at] = held
            self.of_held[at] += self.table.times(change, self.live[at])
        return self.of_held[at]

    def _bias_of_bounds(self, at, b, v) -> np.ndarray:
        """What the bounds allow the bias of machines `at`, which have no free row."""
        s = self.s[at]
        goal = self.goal[at]
        return measure(goal - v, s, s * goal, self.u[at], s * b).bias


def _objective(b: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """1/2 b'Kb - goal'b of every machine, where v = goal - K b."""
    return -0.5 * (b * (v + goal)).sum(1)


def _solve_free(table: KernelTable, who, free, right, beta, total) -> np.ndarray:
    """Solve for the free beta; returns the biases, nan where a system is singular.

    In: the machines `who`; `free`, `right` (goal less what the full rows contribute)
    and `beta`, (machines, rows); `total`, one a machine. Out: beta of the free rows,
    in place.
    """
    count = free.sum(1)
    bias = np.empty(len(free))
    # systems of similar size are solved together, filled up to that of the largest
    order = np.argsort(-count, kind="stable")
    first = 0
    while first < len(free):
        width = max(int(count[order[first]]), 1)
        some = 1 + SYSTEM_CELLS // width**2
        part = order[first : first + some]
        # (machines of the part, width): the free rows first, then what fills up
        free_first = np.argsort(~free[part], axis=1, kind="stable")
        rows = free_first[:, :width]
        real = np.arange(width) < count[part, None]
        rest = total[part] - beta[part].sum(1)
        # what fills up repeats the first row: no kernel row is computed for it
        filled = np.where(real, rows, rows[:, :1])
        K = table.square(who[part], filled)
        own = part[:, None], rows  # where in (machines, rows) the system's rows are
        found = _bordered(K, real, right[own], rest)
        beta[own] = np.where(real, found[:, :width], beta[own])
        bias[part] = found[:, width]
        first += len(part)
    return bias


def _bordered(K: np.ndarray, real, right, rest) -> np.ndarray:
    """(beta, bias) with K beta + bias = right on the `real` rows, and sum beta = rest.

    K is (machines, width, width); rows that are not real, which fill it up, get 0.
    """
    machines, width = real.shape
    any_real = real[:, 0]  # real rows come first
    # each M is K with a border of ones, whose unknown is the bias
    M = np.empty((machines, width + 1, width + 1))
    inner = M[:, :width, :width]  # a view
    inner[:] = K
    every = range(width)
    if not real.all():  # rows of the identity where a row is not real
        both_real = real[:, :, None] & real[:, None, :]
        inner *= both_real
        M[:, every, every] += ~real
    M[:, :width, width] = real
    M[:, width, :width] = real
    M[:, width, width] = ~any_real
    M[:, every, every] *= 1.0 + EQUAL_RIDGE
    b = np.zeros((machines, width + 1, 1))
    b[:, :width, 0] = right * real
    b[:, width, 0] = np.where(any_real, rest, 0.0)
    return _solved(M, b)


def _solved(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solutions of the stacked systems; nan where one is singular."""
    try:
        found = np.linalg.solve(M, b)  # (machines, width + 1, 1)
        return found[:, :, 0]
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.full(b.shape[:2], np.nan)
        # which of them is singular is found by halving
        half = len(M) // 2
        first = _solved(M[:half], b[:half])
        second = _solved(M[half:], b[half:])
        return np.concatenate([first, second])
