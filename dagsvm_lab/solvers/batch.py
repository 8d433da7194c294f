"""Many duals at once: small active sets that grow, advanced together, one array call for a step of every dual.

A single SMO step on n rows is a dozen array calls whose cost is mostly the call. Here the active sets of many duals
are stacked (duals x active rows), so that one call advances all of them, each by its own second-order step (smo.py has
it in words). Rounds: solve the stacked active sets loosely; recompute v = s p - K beta on all rows of a dual from its
support vectors only; bring in the worst violators, leave out what rests at a bound; repeat more tightly until no row
violates more than `tol`. No whole kernel matrix is formed: rows of it for support vectors are, once if they fit. Duals
of the same rows, as one class against the rest, share these, and one whose active set is long steps alone on them.
Where float32 is safe it does the search, and float64 judges what was found and, if need be, finishes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from tqdm import tqdm

from ..kernels import Kernel, Rows, one_thread, single_is_safe
from .columns import Columns, Cuts
from .dual import Dual, measure, problem, warn
from .smo import STRETCH, TAU, lean, patience, settle

START = 48  # rows of each side a dual starts with, or a 60th of them
FALL = 0.1  # how much tighter a solve of the active rows is than the violation that led to it
STEPS = 16  # steps between two looks at who has converged
HEAVY = 50_000  # rows of all duals from which jobs are processes: threads wait for each other between array calls
FEW = 3  # so few duals are advanced one by one
WIDE = 1400  # active rows from which a dual steps alone, on the kernel rows that it shares with others
DEAR = 32  # inputs from which a kernel value costs more than what sharing it adds to the products
KEEP = 0.5  # what must be left of the active rows for them to stay as they are
CELLS = 16384  # so few stacked rows cost little more than the call, whatever the padding
ONE = np.array(1.0, np.float32)  # K_ii of a Gaussian
SLIGHT = np.array(5e-7, np.float32)  # what keeps float32 from calling rows equal that are not
LOOSE = 1e-3  # the tolerance float32 is asked for


@dataclass
class Task:
    """One dual: the rows of X it uses, their labels (a sign, or a soft label's sign), linear term, upper bounds."""

    rows: np.ndarray
    y: np.ndarray
    linear: np.ndarray | None
    upper: np.ndarray
    kernel: Kernel | None = None


class State:
    """One dual under way: its box, beta and v = s p - K beta on its rows, its active rows, and where it is heading."""

    def __init__(self, task: Task, max_iter: int):
        self.at, self.limit = task.rows, max_iter if max_iter > 0 else max(10_000_000, 100 * len(task.rows))
        self.s, self.p, self.u = problem(task.y, 1.0, task.linear, task.upper)
        self.lo, self.hi = np.minimum(self.s * self.u, 0.0), np.maximum(self.s * self.u, 0.0)
        self.beta = np.zeros(len(self.s))
        self.steps = self.stalled = 0
        self.reached, self.best, self.hard = True, np.inf, patience(len(task.rows))
        sides = (np.flatnonzero(self.hi > 0), np.flatnonzero(self.lo < 0))
        few = [min(max(START, len(side) // 60), len(side)) for side in sides]
        spread = [side[np.linspace(0, len(side) - 1, n).astype(int)] for side, n in zip(sides, few, strict=True)]
        self.active = np.sort(np.concatenate(spread))
        self.judge(np.zeros(len(self.s)))
        self.stop = self.aim = 0.25 * self.violation

    def use(self, columns: Columns, at: np.ndarray, number: int = 0) -> None:
        """Nothing; kernel values come from here from now on, where its rows are `at` and it has this number."""
        self.rows, self.columns, self.at, self.shares = columns.rows, columns, at, columns.at is not at
        self.half, self.place = 0.5 * self.rows.diagonal(at), np.searchsorted(columns.at, at)
        self.cuts, self.number = Cuts(columns), number

    def judge(self, f: np.ndarray) -> None:
        """Nothing; takes f = K beta: v on all rows, and the largest violation."""
        self.v = self.s * self.p - f
        self.top, self.bottom = self.ends(slice(None))
        self.violation = self.top - self.bottom

    def ends(self, rows) -> tuple[float, float]:
        """(max v over those of the rows that may rise, min v over those that may fall)."""
        v, b = self.v[rows], self.beta[rows]
        return v.max(where=b < self.hi[rows], initial=-np.inf), v.min(where=b > self.lo[rows], initial=np.inf)

    def twice(self, a: np.ndarray) -> np.ndarray:
        """v of rows a as smo.py has it: -inf where it may not rise, and again with inf where it may not fall."""
        v, b = self.v[a], self.beta[a]
        return np.array([np.where(b < self.hi[a], v, -np.inf), np.where(b > self.lo[a], v, np.inf)], self.rows.dtype)

    def take(self, a: np.ndarray, b: np.ndarray, v2: np.ndarray) -> None:
        """Nothing; beta and v of rows a become these."""
        self.beta[a], self.v[a] = b, np.where(np.isfinite(v2[0]), v2[0], v2[1])

    def remaining(self, tol: float) -> np.ndarray:
        """The active rows without those that rest: at a bound, pulling outwards by more than any violator pulls in."""
        a = self.active
        v, b = self.v[a], self.beta[a]
        top, bottom = self.ends(a)
        if not np.isfinite(top - bottom):  # all on one side: their partners are still to join
            return a
        margin = 0.25 * max(top - bottom, tol)
        high, low = max(top, bottom) + margin, min(top, bottom) - margin
        resting = ((b >= self.hi[a]) & (v > high)) | ((b <= self.lo[a]) & (v < low))
        return a[~resting]

    def next_round(self, tol: float) -> None:
        """Nothing; sets what the next solve works on: how tightly, and on which rows."""
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
        """Nothing; a small dual that takes too many steps is finished in float64 by linear systems."""
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
        return (
            self.violation <= tol or self.steps >= self.limit or (self.stalled > 3 and self.stop <= max(tol, self.aim))
        )

    def dual(self, tol: float) -> Dual:
        """The Dual of what was reached, certified from v."""
        alpha = self.s * self.beta
        c = measure(self.s * self.p - self.v, self.s, self.p, self.u, alpha)
        numbers = c.bias, c.objective, c.primal_objective, c.gap, c.kkt_violation
        return Dual(alpha, *numbers, self.steps, bool(c.kkt_violation <= tol), self.p, self.u)


def solve_many(
    X: np.ndarray,
    kernel: Kernel,
    tasks: list[Task],
    *,
    tol: float = 1e-3,
    n_jobs: int | None = None,
    cache_size: float = 2000.0,
    max_iter: int = -1,
    verbose: int = 0,
) -> list[Dual]:
    """The Dual of every task in order, the same whatever n_jobs.

    Jobs are chunks of the tasks, or, where all share kernel rows, the threads that compute these and judge by them. At
    most, a chunk holds cache_size / 2 MB of kernel rows, and a quarter each of stacked kernels and of rows cut to size.
    """
    order = sorted(range(len(tasks)), key=lambda t: -len(tasks[t].rows))
    total = sum(len(task.rows) for task in tasks)
    # long duals fill an array call by few; duals that share all their rows share kernel values too
    most = 96 if alike(tasks, len(X)) else int(np.clip(100_000 * len(tasks) // max(total, 1), 8, 96))
    n = max(-(-len(tasks) // most), 1 if alike(tasks, len(X)) and X.shape[1] >= DEAR else min(2, len(tasks)))
    parts = [order[k::n] for k in range(n)]
    duals: dict[int, Dual] = {}
    solve = partial(solve_chunk, X, kernel, tol=tol, cache_size=cache_size, max_iter=max_iter, spare=[])
    with one_thread(), threads(n_jobs) as each, tqdm(total=len(tasks), desc="machines", disable=not verbose) as bar:
        if n == 1:
            solved = [solve([tasks[t] for t in order], each=each)]
        else:
            solved = Parallel(n_jobs, prefer="processes" if total > HEAVY else "threads", return_as="generator")(
                delayed(solve)([tasks[t] for t in part]) for part in parts
            )
        for part, found in zip(parts, solved, strict=True):
            duals |= zip(part, found, strict=True)
            bar.update(len(part))
    above = sum(not dual.converged for dual in duals.values())
    if above:
        warn(f"{above} of {len(tasks)} machines stopped at a violation above tol={tol}: see kkt_violation and n_iter")
    return [duals[t] for t in range(len(tasks))]


def alike(tasks: list[Task], n: int) -> bool:
    """Whether the tasks have one kernel, and on average more than two thirds of the n rows."""
    return sum(len(task.rows) for task in tasks) > 2 * n * len(tasks) // 3 and not any(task.kernel for task in tasks)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[Callable]:
    """A `map` whose calls are spread over as many threads as joblib gives n_jobs."""
    jobs = min(effective_n_jobs(n_jobs), cpu_count())
    if jobs == 1:
        yield map
        return
    with ThreadPoolExecutor(jobs) as pool:
        yield pool.map


def solve_chunk(X, kernel, tasks: list[Task], *, tol, cache_size, max_iter, spare, each=map) -> list[Dual]:
    """The Duals of some tasks, advanced together; `each` is the map that kernel rows are computed by."""
    states = [State(task, max_iter) for task in tasks]
    every, room = np.flatnonzero(marked(len(X), [task.rows for task in tasks])), cache_size * 2**19

    def prepare(dtype) -> None:
        shared = None if all(task.kernel for task in tasks) else Rows(X, kernel, dtype)
        if alike(tasks, len(every)) and X.shape[1] >= DEAR:
            columns = Columns(shared, every, room, spare, each)
            for k, s in enumerate(states):
                s.use(columns, s.at, k)
            return
        for task, s in zip(tasks, states, strict=True):
            if task.kernel is None:
                s.use(Columns(shared, task.rows, room / len(tasks), spare, each), task.rows)
            else:
                own = X[np.ix_(task.rows, task.rows)] if task.kernel.name == "precomputed" else X[task.rows]
                at = np.arange(len(task.rows))
                s.use(Columns(Rows(own, task.kernel, dtype), at, room / len(tasks), spare, each), at)

    with one_thread():
        single = all(single_is_safe(X, k) for k in {task.kernel or kernel for task in tasks})
        if single:
            prepare(np.float32)
            rounds(states, max(tol, LOOSE), cache_size)
            for s in states:
                s.columns.release()
        prepare(np.float64)
        for s in [s for s in states if single and np.isfinite(s.violation)]:
            # where it can matter: a row far on its right side has neither slack nor violation
            margin = max(0.01, 1e-6 * np.abs(s.beta).sum())
            near = np.flatnonzero((s.beta != 0) | (s.s * (s.v - 0.5 * (s.top + s.bottom)) > -margin))
            f = s.s * s.p - s.v
            f[near] = s.rows.within(s.at[near], s.beta[near], each)
            s.judge(f)
            s.best, s.stalled = np.inf, 0
            s.aim = s.stop = max(0.9 * tol, min(s.stop, FALL * s.violation))
        rounds(states, tol, cache_size)
        for s in states:
            s.columns.release()
    return [s.dual(tol) for s in states]


def rounds(states: list[State], tol: float, cache_size: float) -> None:
    """Nothing; brings every state to tol, or as far as it goes."""
    live = [s for s in states if s.violation > tol and s.steps < s.limit]
    work = np.empty(0)
    while live:
        wide = [s for s in live if s.shares and len(s.active) > WIDE and s.columns.learn(s.at[s.active])]
        for s in wide:
            alone(s, cache_size * 2**18 / len(wide))
        for group, width in groups([s for s in live if s not in wide], cache_size):
            need = len(group) * width**2
            if work.size < need or work.dtype != group[0].rows.dtype:
                work = np.empty(need, group[0].rows.dtype)
            advance(group, width, work[:need].reshape(len(group), width, width))
        for s in live:
            s.lose_patience()
        ready = [s for s in live if (s.reached and s.stop <= s.aim) or s.steps >= s.limit]
        refresh(ready)
        over = [s for s in ready if s.finished(tol)]
        live = [s for s in live if s not in over]
        for s in live:
            if s.reached:
                s.next_round(tol)


def refresh(states: list[State]) -> None:
    """Nothing; recomputes v of the states on all their rows, together where they share kernel rows."""
    for columns in dict.fromkeys(s.columns for s in states):
        now = [s for s in states if s.columns is columns]
        support = [s.at[s.beta != 0] for s in now]
        union = support[0] if len(now) == 1 else np.flatnonzero(marked(len(columns.rows), support))
        weights = np.zeros((len(union), len(now)))
        for k, (sv, s) in enumerate(zip(support, now, strict=True)):
            weights[np.searchsorted(union, sv), k] = s.beta[s.beta != 0]
        for f, s in zip(columns.times(union, weights, [s.number for s in now]), now, strict=True):
            s.judge(f[s.place] if s.shares else f)


def alone(s: State, room: float) -> None:
    """Nothing; solves the active rows of one state to its `stop`, cutting kept kernel rows as steps come to them.

    Those cut are kept while `room` bytes last, as long as the active rows stay.
    """
    a = s.active
    ids, place, half = s.at[a].tolist(), s.place[a], s.half[a]

    def fetch(i: int) -> np.ndarray:
        H = s.columns.row(ids[i]).take(place, out=s.cuts.room(len(a)), mode="clip")
        if H.dtype == np.float64:
            return np.subtract(half + half[i], H, out=H)
        return np.add(np.abs(np.subtract(ONE, H, out=H), out=H), SLIGHT, out=H)

    b, v2 = s.beta[a], s.twice(a)
    most = max(2, int(room / (len(a) * v2.itemsize)))
    s.steps += lean(fetch, v2, b, s.lo[a], s.hi[a], s.stop, min(s.limit, s.hard) - s.steps, most, s.cuts)
    if s.stop <= s.aim:  # the active rows will change
        s.cuts.clear()
    s.take(a, b, v2)
    s.reached = True


def marked(n: int, parts: list[np.ndarray]) -> np.ndarray:
    """Which of n rows are in any of the parts."""
    out = np.zeros(n, bool)
    for part in parts:
        out[part] = True
    return out


def groups(states: list[State], cache_size: float) -> Iterator[tuple[list[State], int]]:
    """(states, width): those whose active sets are of similar size, so that padding to the widest costs little."""
    states = sorted(states, key=lambda s: len(s.active))
    while states:
        narrow, room = len(states[0].active), cache_size * 2**18 / states[0].rows.dtype.itemsize
        n = 1
        while n < len(states):
            wide = len(states[n].active)
            if (wide > 1.6 * narrow + 16 and (n + 1) * wide > CELLS) or (n + 1) * wide**2 > room:
                break
            n += 1
        yield states[:n], -(-max(len(states[n - 1].active), 1) // 16) * 16
        states = states[n:]


def advance(states: list[State], width: int, H: np.ndarray) -> None:
    """Nothing; solves each state's active rows to its `stop`; `reached` says whether that was worth finishing now.

    H_ij = (K_ii + K_jj) / 2 - K_ij is all a step needs: twice it is the step's eta, and K_in - K_jn is H_jn - H_in up
    to a constant, which differences of v do not see.
    """
    v2 = np.empty((2, len(states), width), H.dtype)
    v2[0], v2[1] = -np.inf, np.inf
    b, lo, hi = np.zeros((3, len(states), width))
    for k, s in enumerate(states):
        a, n = s.active, len(s.active)
        ids, block = s.at[a], H[k, :n]
        block[:, n:] = 0.0
        s.rows.fill(ids, ids, block[:, :n], s.columns.each)
        if H.dtype == np.float32:  # a Gaussian: K_ii = 1, and equal rows differ by rounding only
            np.abs(np.subtract(1.0, block, out=block), out=block)
            block += SLIGHT
        else:
            np.subtract(s.half[a[np.minimum(np.arange(width), n - 1)]], block, out=block)
            block += s.half[a, None]
        b[k, :n], lo[k, :n], hi[k, :n] = s.beta[a], s.lo[a], s.hi[a]
        v2[:, k, :n] = s.twice(a)
    stop, limit = np.array([s.stop for s in states]), np.array([min(s.limit, s.hard) - s.steps for s in states])
    taken, reached = together(H, v2, b, lo, hi, stop, limit)
    for k, s in enumerate(states):
        n = len(s.active)
        s.take(s.active, b[k, :n], v2[:, k, :n])
        s.reached = bool(reached[k])
        s.steps += int(taken[k])


def together(H, v2, b, lo, hi, stop, limit) -> tuple[np.ndarray, np.ndarray]:
    """(steps, reached) of the stacked duals; b and the two copies of v (smo.py) change in place.

    When only a few of many are left, they are given back unfinished, to go on in better company.
    """
    width, kind = b.shape[1], H.dtype
    table = H.reshape(-1, width)
    taken, reached = np.zeros(len(b), int), np.ones(len(b), bool)
    who = np.flatnonzero(v2[0].max(1) - v2[1].min(1) > stop)
    room = limit[who] >= STEPS
    late, who = who[~room].tolist(), who[room]
    while len(who) > FEW and reached.all():
        P = len(who)
        v, x, low, high = v2.take(who, 1), b[who], lo[who].ravel(), hi[who].ravel()
        own = np.arange(P) * width
        shift = who * width - own
        (vU, vL), flat = v, x.reshape(-1)
        fU, fL = vU.reshape(-1), vL.reshape(-1)
        H_i, H_j, gain = np.empty((3, P, width), kind)
        tau = None if kind == np.float32 else np.full_like(gain, TAU)
        newton, pair, ends = H_j.reshape(-1), np.empty((2, P), int), np.empty((2, P), kind)
        i, j = pair
        still = open_ = np.ones(P, bool)
        while still.sum() > 0.75 * P and still[open_].all():
            for _ in range(STEPS):
                vU.argmax(1, out=i)
                i += own
                table.take(i + shift, 0, out=H_i, mode="clip")
                np.subtract(fU.take(i)[:, None], vL, out=gain)
                eta = H_i if tau is None else np.maximum(H_i, tau, out=H_j)
                np.divide(gain, eta, out=H_j)  # twice the unclipped step
                np.abs(gain, out=gain)
                gain *= H_j
                gain.argmax(1, out=j)
                j += own
                t = 0.5 * STRETCH * newton.take(j).astype(float)
                table.take(j + shift, 0, out=H_j, mode="clip")
                at, top, floor = flat.take(pair), high.take(pair), low.take(pair)
                np.minimum(t, top[0] - at[0], out=t)
                np.minimum(t, at[1] - floor[1], out=t)
                np.maximum(t, 0.0, out=t)
                H_j -= H_i
                H_j *= t.astype(kind)[:, None]
                v -= H_j
                at[0] += t
                at[1] -= t
                flat[pair] = at
                ends[0], ends[1] = fU.take(i), fL.take(j)
                fU[pair] = np.where(at < top, ends, -np.inf)
                fL[pair] = np.where(at > floor, ends, np.inf)
            taken[who] += STEPS
            open_ = (vU.max(1) - vL.min(1) > stop[who]) & (t > 0)
            still = open_ & (taken[who] + STEPS <= limit[who])
        v2[:, who], b[who] = v, x
        late += who[open_ & ~still].tolist()
        who = who[still]
        if FEW < len(who) <= len(b) // 4:
            reached[who] = False
    for k in late + who[reached[who]].tolist():
        taken[k] += lean(H[k].__getitem__, v2[:, k], b[k], lo[k], hi[k], stop[k], limit[k] - taken[k])
    return taken, reached
