"""One step of sequential minimal optimisation, for one dual (`smo_one`) or a stack of
them (`smo_stack`).

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha)

A step moves b_i up and b_j down by the same t. After every step sum b = 0, lo <= b <=
hi, and v = s p - K b, minus the gradient, is up to date but for a number that all rows
of a dual share: only differences of v matter. The dual is solved where the largest v
among rows that may rise (b < hi) is at most the least among rows that may fall (b >
lo). Row i is the one with the largest v, j its best partner of second order: the one
that gains most, (v_i - v_j)^2 / eta_ij with eta_ij = K_ii + K_jj - 2 K_ij (Fan, Chen
and Lin, "Working set selection using second order information for training support
vector machines", JMLR 6:1889-1918, 2005, WSS 2).

Two things keep a step short.

- v is kept twice: -inf stands where b may not rise in the first copy, inf where it may
  not fall in the second. So an argmax needs no mask.
- H_ij = eta_ij / 2 takes the place of K. K_in - K_jn is H_jn - H_in but for a number
  that all n share. In float32, which is for kernels with K_ii = 1, H is kept above
  zero.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| STRETCH = 1.2 | of the step to the least point | Letter: 1 1.07, 1.4 1.00; |
| | | Vowel: 1.13, 1.03; Vehicle: 1.10, .96 |
| STEPS_AT_ONCE = 16 | steps between two looks at who is solved | Letter: 8 .98, |
| | | 32 .99; Segment: 1.04, 1.01 |
| FEW_DUALS = 3 | duals that go one by one | Letter: 1 1.03, 8 .98; |
| | | Segment: 1.15, .99 |
| TAU | least H, half of eta | equal rows would divide by zero (LIBSVM's value) |
| SLIGHT | added to H in float32 | without it rows may seem equal that are not |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import daxpy, saxpy

STRETCH = 1.2
STEPS_AT_ONCE = 16
FEW_DUALS = 3
TAU = 1e-12
SLIGHT = np.array(5e-7, np.float32)


@dataclass
class Point:
    """Where a dual stands (arrays of its rows), or a stack of duals (duals, rows).

    Attributes
    ----------
    v2 : both copies of v, (2, rows) or (2, duals, rows).
    beta, lo, hi : b of the formula above and its box.
    """

    v2: np.ndarray
    beta: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    def of(self, k: int) -> "Point":
        """Dual k of a stack: views, so that steps of it are steps in the stack."""
        return Point(self.v2[:, k], self.beta[k], self.lo[k], self.hi[k])


def split_gradient(v, beta, lo, hi, dtype=float) -> np.ndarray:
    """Both copies of v: -inf where beta may not rise, inf where it may not fall."""
    v2 = np.empty((2, *v.shape), dtype)
    v2[0] = np.where(beta < hi, v, -np.inf)
    v2[1] = np.where(beta > lo, v, np.inf)
    return v2


def merge_gradient(v2: np.ndarray) -> np.ndarray:
    """v of its two copies."""
    return np.where(np.isfinite(v2[0]), v2[0], v2[1])


def smo_stack(table, point: Point, stop, limit, leave: int = 0) -> np.ndarray:
    """Step the duals of a KernelTable until none violates by more than its `stop`.

    In: `point`, a stack; `stop` and `limit` (duals,), violations and numbers of steps;
    where at most `leave` duals are not solved, these are left as they are, unless they
    are few. Out: the steps taken by each dual. beta and v2 of `point` are changed in
    place.
    """
    taken = np.zeros(len(point.beta), int)
    violation = point.v2[0].max(1) - point.v2[1].min(1)
    live = np.flatnonzero(violation > stop)
    few_steps = limit[live] < STEPS_AT_ONCE
    alone = live[few_steps].tolist()  # duals that go on one by one
    live = live[~few_steps]
    while len(live) > FEW_DUALS:
        unsolved = _step_together(table, point, stop, limit, live, taken)
        many_steps_left = taken[live] + STEPS_AT_ONCE <= limit[live]
        alone += live[unsolved & ~many_steps_left].tolist()
        live = live[unsolved & many_steps_left]
        if FEW_DUALS < len(live) <= leave:
            live = live[:0]
    for k in alone + live.tolist():
        rest = limit[k] - taken[k]
        taken[k] += smo_one(table.half(k), point.of(k), stop[k], rest)
    return taken


def _step_together(table, point: Point, stop, limit, live, taken) -> np.ndarray:
    """Step the duals `live` until a quarter of them is solved, or one nears its limit.

    Returns which of them are not solved yet; one whose last step had no length can go
    no further, and counts as solved. `point` and `taken` are changed in place.
    """
    v2 = point.v2.take(live, 1)  # (2, live duals, rows)
    beta = point.beta[live]
    lo = point.lo[live].ravel()
    hi = point.hi[live].ravel()
    march = _March(table, live)
    while True:
        last = march.steps(v2, beta, lo, hi)
        taken[live] += STEPS_AT_ONCE
        violation = v2[0].max(1) - v2[1].min(1)
        unsolved = (violation > stop[live]) & (last > 0)
        at_limit = taken[live] + STEPS_AT_ONCE > limit[live]
        if unsolved.sum() <= 0.75 * len(live) or (unsolved & at_limit).any():
            break
    point.v2[:, live] = v2
    point.beta[live] = beta
    return unsolved


class _March:
    """The steps of a fixed set of stacked duals, and the arrays that they are taken in.

    Rows of all duals are numbered end to end: row r of dual k is k * width + r.
    """

    def __init__(self, table, live: np.ndarray):
        self.H = table.H
        self.row = table.row.take(live, 0).reshape(-1)  # first unit of H of every row
        self.across = table.across.take(live, 0)  # (duals, units): offsets of the units
        self.one_unit = table.units == 1
        duals = len(live)
        width = len(self.row) // duals
        self.first = np.arange(duals) * width  # each dual's first row
        self.shift = self.row[self.first] - self.first  # from a row here to its H
        # what a step writes to, made once: (duals, width)
        self.H_i = np.empty((duals, width), self.H.dtype)
        self.H_j = np.empty_like(self.H_i)
        self.gain = np.empty_like(self.H_i)
        # an array: the maximum with a number takes twice as long
        self.tau = None if self.H.dtype == np.float32 else np.full_like(self.gain, TAU)

    def fetch(self, i: np.ndarray, out: np.ndarray) -> None:
        """Write row i[k] of H of every dual k to out[k]."""
        # clip: no index is outside, and numbers go to `out` without a buffer
        if self.one_unit:
            self.H.take(i + self.shift, 0, out=out, mode="clip")
        else:
            units = out.reshape(*self.across.shape, -1)
            at = self.row.take(i)[:, None] + self.across
            self.H.take(at, 0, out=units, mode="clip")

    def steps(self, v2, beta, lo, hi) -> np.ndarray:
        """Take STEPS_AT_ONCE steps of every dual.

        In: v2 (2, duals, rows) and beta (duals, rows), changed in place; `lo` and `hi`,
        flat. Out: the length (duals,) of each dual's last step.
        """
        H_i = self.H_i
        H_j = self.H_j
        gain = self.gain
        v_up, v_low = v2
        flat_up = v_up.reshape(-1)  # views, as the next two
        flat_low = v_low.reshape(-1)
        flat_beta = beta.reshape(-1)
        pair = np.empty((2, len(beta)), int)
        i, j = pair
        ends = np.empty(pair.shape, H_i.dtype)
        for _ in range(STEPS_AT_ONCE):
            # i: the largest v of rows that may rise
            v_up.argmax(1, out=i)
            i += self.first
            self.fetch(i, H_i)
            # j: the largest (v_i - v_j)^2 / eta_ij of rows that may fall; those that
            # may not have v_low = inf, hence a gain of -inf
            np.subtract(flat_up.take(i)[:, None], v_low, out=gain)
            # H_j is scratch until row j is fetched
            divisor = H_i if self.tau is None else np.maximum(H_i, self.tau, out=H_j)
            np.divide(gain, divisor, out=H_j)  # twice the unclipped step
            np.abs(gain, out=gain)
            gain *= H_j
            gain.argmax(1, out=j)
            j += self.first
            t = 0.5 * STRETCH * H_j.reshape(-1).take(j).astype(float)
            self.fetch(j, H_j)
            # t: not beyond the box of either row, and never back
            at = flat_beta.take(pair)
            highest = hi.take(pair)
            lowest = lo.take(pair)
            np.minimum(t, highest[0] - at[0], out=t)
            np.minimum(t, at[1] - lowest[1], out=t)
            np.maximum(t, 0.0, out=t)
            # v follows: K_i - K_j is H_j - H_i
            H_j -= H_i
            H_j *= t.astype(H_j.dtype)[:, None]
            v2 -= H_j
            at[0] += t
            at[1] -= t
            flat_beta[pair] = at
            # the two rows moved: which copies of their v stand has to be said anew
            ends[0] = flat_up.take(i)
            ends[1] = flat_low.take(j)
            flat_up[pair] = np.where(at < highest, ends, -np.inf)
            flat_low[pair] = np.where(at > lowest, ends, np.inf)
        return t


def smo_one(
    fetch: Callable, point: Point, stop: float, limit: int, room=1 << 30
) -> int:
    """Step one dual until it violates by no more than `stop`, or no step is possible.

    In: `fetch(i)` computes row i of H, above zero in float32; at most `room` rows of H
    are kept. Out: the steps taken. beta and v2 of `point` are changed in place.
    """
    v2 = point.v2.copy()
    v_up, v_low = v2
    gain = np.empty_like(v_up)
    size = np.empty_like(v_up)
    level = np.empty((), v2.dtype)
    single = v2.dtype == np.float32
    axpy = saxpy if single else daxpy
    tau = None if single else np.full_like(gain, TAU)
    # items of lists are read and written faster than those of arrays
    beta = point.beta.tolist()
    lo = point.lo.tolist()
    hi = point.hi.tolist()
    rows: dict[int, np.ndarray] = {}
    steps = 0
    while beta and steps < limit:
        i = int(v_up.argmax())
        top = v_up.item(i)
        H_i = rows.get(i)
        if H_i is None:
            if len(rows) >= room:
                rows.clear()
            H_i = rows[i] = fetch(i)
        level.fill(top)
        np.subtract(level, v_low, out=gain)
        np.abs(gain, out=size)
        gain *= size
        gain /= H_i if tau is None else np.maximum(H_i, tau, out=size)
        j = int(gain.argmax())
        difference = top - v_low.item(j)
        # solved if no pair violates: mostly the best partner tells, without all others
        if not difference > stop and not top - v_low.min() > stop:
            break
        t = 0.5 * STRETCH * difference / max(H_i.item(j), TAU)
        t = min(t, hi[i] - beta[i], beta[j] - lo[j])
        if not t > 0.0:
            break
        H_j = rows.get(j)
        if H_j is None:
            if len(rows) >= room:
                rows.clear()
            H_j = rows[j] = fetch(j)
        # in place: BLAS adds to v_up and v_low, which are contiguous and of its dtype
        axpy(H_i, v_up, a=t)
        axpy(H_i, v_low, a=t)
        axpy(H_j, v_up, a=-t)
        axpy(H_j, v_low, a=-t)
        beta[i] += t
        beta[j] -= t
        # i may fall now, and j rise: their v stands in both copies
        v_i = v_up.item(i)
        v_j = v_low.item(j)
        v_low[i] = v_i
        v_up[j] = v_j
        if beta[i] >= hi[i]:
            v_up[i] = -np.inf
        if beta[j] <= lo[j]:
            v_low[j] = np.inf
        steps += 1
    point.beta[:] = beta
    point.v2[:] = v2
    return steps
