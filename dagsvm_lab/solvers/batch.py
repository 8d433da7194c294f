"""Many long duals at once: small active sets that grow, advanced together, one array call for a step of every dual.

A single SMO step on n rows is a dozen array calls whose cost is mostly the call. Here the active sets of many duals
are stacked (duals x active rows), so that one call advances all of them, each by its own second-order step (steps.py).
Rounds, as in SVMlight (Joachims 1999), with larger working sets:

1. solve the active rows of every dual loosely, to `stop`;
2. judge: recompute v = s p - K beta on all rows, from the support vectors only;
3. bring in the worst violators, leave out what rests at a bound, and solve more tightly, until no row of a dual
   violates by more than `tol`.

No whole kernel matrix is formed: rows of it for support vectors are, once if they fit (columns.py). Duals of the same
rows, as one class against the rest, share these, and one whose active set is long steps alone on them. Where float32
is safe it does the search to LOOSE; float64 judges what was found, and if need be finishes it.

Active rows that take long are finished by Newton's method (newton.py).

What jobs do never shows in the result. Jobs are chunks of the duals, fixed by their number and lengths; or, where all
duals share kernel rows, threads that compute these rows and judge by them, each a fixed strip.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| MOST = 96 | duals of a chunk | Letter: 48 1.04, 192 1.00 |
| HEAVY = 50,000 | rows of all duals | from here on jobs are processes: threads wait for each other |
| WIDE = 1400 | active rows | a dual steps alone from here on. One-versus-rest on 4,000 USPS rows: 700 1.03, 2800 1.00 |
| DEAR = 32 | inputs | duals of the same rows share kernel values from here on. The same rows, not shared: 1.42 |
| SPREAD = 1.6 | width over width | active sets padded to one width. Letter: 1.2 .98, 2.5 .99; Pendigits: 1.01, .99 |
| CELLS = 16,384 | stacked rows | widths matter from here on. Segment, Pendigits: a quarter .99, 1.01, four times 1.00 |
| SLOW = 100 | steps, and one a row, till Newton's method | One-versus-rest, C = 1000, Segment: never 1.60, 400 1.29 |
| | | Vehicle: never 2.28, 400 1.27; C = 100: 1.69, 1.06 |
| LOOSE = 1e-3 | violation | what float32 is asked for. Letter: 1e-2 1.18, 1e-4 .96; Pendigits: 1.10, .99 |
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..kernels import Kernel, prepared, single_is_safe
from ..threads import one_thread
from .columns import Columns, arrays
from .dual import Dual, Duals
from .state import State
from .steps import SLIGHT, lean, together
from .table import apart

MOST = 96
HEAVY = 50_000
WIDE = 1400
DEAR = 32
SPREAD = 1.6
CELLS = 16384
LOOSE = 1e-3
SLOW = 100
ONE = np.array(1.0, np.float32)  # K_ii of a Gaussian


def solve_many(X, kernel: Kernel, duals: Duals, which: np.ndarray, kernels: list[Kernel] | None = None, *, tol=1e-3,
               n_jobs=None, cache_size=2000.0, max_iter=-1, progress: Callable = int) -> None:  # fmt: skip
    """Solve the machines `which` of `duals`, in place; the same numbers whatever n_jobs.

    `progress` is told how many machines are done, each time some are. At most, a chunk holds cache_size / 2 MB of
    kernel rows, and a quarter each of stacked kernels and of rows cut to the active ones.
    """
    length = np.diff(duals.ends)
    order = which[np.argsort(-length[which], kind="stable")]
    total, same = int(length[which].sum()), alike(length[which], X.shape[0], kernels)
    # long duals fill an array call by few; duals that share all their rows share kernel values too
    most = MOST if same else int(np.clip(100_000 * len(order) // max(total, 1), 8, MOST))
    n = max(-(-len(order) // most), 1 if same and X.shape[1] >= DEAR else min(2, len(order)))
    parts = [order[k::n] for k in range(n)]
    chunks = ([State(duals, t, max_iter) for t in part] for part in parts)
    solve = partial(solve_chunk, X, kernel, kernels, tol, cache_size)
    jobs = min(effective_n_jobs(n_jobs), cpu_count())
    with one_thread(), ThreadPoolExecutor(jobs) as pool:
        if n == 1:
            solved = map(partial(solve, each=pool.map if jobs > 1 else map), chunks)
        else:
            prefer = "processes" if total > HEAVY else "threads"
            solved = Parallel(n_jobs, prefer=prefer, return_as="generator")(map(delayed(solve), chunks))
        for part, found in zip(parts, solved, strict=True):
            for t, dual in zip(part, found, strict=True):
                duals.keep(t, dual)
            progress(len(part))


def alike(lengths: np.ndarray, n: int, kernels) -> bool:
    """Whether duals have one kernel, and on average more than two thirds of the n rows."""
    return kernels is None and lengths.sum() > 2 * n * len(lengths) // 3


def solve_chunk(X, kernel, kernels, tol, cache_size, states: list[State], each: Callable = map) -> list[Dual]:
    """The Duals of some machines, advanced together; `each` is the map that kernel rows are computed by."""
    origins, room = [s.at for s in states], cache_size * 2**19
    every = union(origins)
    sharing = alike(np.array([len(at) for at in origins]), len(every), kernels) and X.shape[1] >= DEAR
    own = [kernels[s.number] if kernels else kernel for s in states]
    for s, at, kernel_of in zip(states, origins, own, strict=True):
        s.square = lambda active, at=at, kernel=kernel_of: kernel.square(X, at[active])
    with one_thread():
        single = all(single_is_safe(X, k) for k in set(own))
        for dtype in (np.float32, np.float64) if single else (np.float64,):
            rows = None if kernels else prepared(X, kernel, dtype)
            shared = Columns(rows, every, room, each) if sharing else None
            for s, at, kernel_of in zip(states, origins, own, strict=True):
                mine = rows
                if kernels:
                    X_of = X[np.ix_(at, at)] if kernel_of.name == "precomputed" else X[at]
                    mine, at = prepared(X_of, kernel_of, dtype), np.arange(len(at))
                s.use(shared or Columns(mine, at, room / len(states), each), at)
            if single and dtype == np.float64:
                for s in states:
                    s.judge_again(tol, each)
            rounds(states, tol if dtype == np.float64 else max(tol, LOOSE), cache_size, sharing)
    return [s.dual(tol) for s in states]


def rounds(states: list[State], tol: float, cache_size: float, sharing: bool) -> None:
    """Bring every state to tol, or as far as it goes."""
    live = [s for s in states if s.violation > tol and s.steps < s.limit]
    while live:
        wide = [s for s in live if sharing and len(s.active) > WIDE and s.columns.learn(s.at[s.active])]
        for s in wide:
            alone(s, cache_size * 2**18 / len(wide))
        for group in groups([s for s in live if s not in wide], cache_size):
            advance(group)
        for s in live:
            s.lose_patience()
        ready = [s for s in live if (s.reached and s.stop <= s.aim) or s.steps >= s.limit]
        for part in [ready] if sharing and ready else [[s] for s in ready]:
            refresh(part)
        over = [s for s in ready if s.finished(tol)]
        live = [s for s in live if s not in over]
        for s in live:
            if s.reached:
                s.next_round(tol)


def refresh(states: list[State]) -> None:
    """Judge states that share their columns."""
    columns = states[0].columns
    support = [s.at[s.beta != 0] for s in states]
    some = support[0] if len(states) == 1 else union(support)
    weights = np.zeros((len(some), len(states)))
    for k, (sv, s) in enumerate(zip(support, states, strict=True)):
        weights[np.searchsorted(some, sv), k] = s.beta[s.beta != 0]
    for f, s in zip(columns.times(some, weights, [s.number for s in states]), states, strict=True):
        s.judge(f[s.place])


def alone(s: State, room: float) -> None:
    """Solve the active rows of one state to its `stop`, cutting kept kernel rows as steps come to them.

    Those cut are kept while `room` bytes last, as long as the active rows stay.
    """
    a = s.active
    ids, place, half, spare = s.at[a].tolist(), s.place[a], s.half[a], arrays(len(a), s.rows.dtype)

    def row(i: int) -> np.ndarray:
        """H of the active row i."""
        H = s.columns.row(ids[i]).take(place, out=next(spare), mode="clip")
        if H.dtype == np.float64:
            return np.subtract(half + half[i], H, out=H)
        return np.add(np.abs(np.subtract(ONE, H, out=H), out=H), SLIGHT, out=H)

    b, v2 = s.beta[a], s.twice()
    most = max(2, int(room / (len(a) * v2.itemsize)))
    s.steps += lean(row, v2, b, s.lo[a], s.hi[a], s.stop, min(s.limit, s.hard) - s.steps, most, s.cuts)
    if s.stop <= s.aim:  # the active rows will change
        s.cuts.clear()
    s.take(b, v2)
    s.reached = True


def union(parts: list[np.ndarray]) -> np.ndarray:
    """Rows that are in any of the parts, ascending."""
    return np.flatnonzero(np.bincount(np.concatenate(parts)))


def groups(states: list[State], cache_size: float) -> Iterator[list[State]]:
    """States whose active sets are of similar size, so that padding to the widest costs little."""
    states = sorted(states, key=lambda s: len(s.active))
    while states:
        narrow, room = len(states[0].active), cache_size * 2**18 / states[0].rows.dtype.itemsize
        n = 1
        while n < len(states):
            wide = len(states[n].active)
            if (wide > SPREAD * narrow + 16 and (n + 1) * wide > CELLS) or (n + 1) * wide**2 > room:
                break
            n += 1
        yield states[:n]
        states = states[n:]


def advance(states: list[State]) -> None:
    """Solve each state's active rows to its `stop`; `reached` says whether that was worth finishing now."""
    width = -(-max(1, *(len(s.active) for s in states)) // 16) * 16
    H = np.empty((len(states), width, width), states[0].rows.dtype)  # H_ij = (K_ii + K_jj) / 2 - K_ij of steps.py
    v2 = np.empty((2, len(states), width), H.dtype)
    v2[0], v2[1] = -np.inf, np.inf
    b, lo, hi = np.zeros((3, len(states), width))
    for k, s in enumerate(states):
        a, n = s.active, len(s.active)
        ids, block = s.at[a], H[k, :n]
        block[:, n:] = 0.0
        s.rows.fill(ids, ids, block[:, :n], s.columns.each, symmetric=True)
        if H.dtype == np.float32:  # a Gaussian: K_ii = 1, and equal rows differ by rounding only
            np.abs(np.subtract(1.0, block, out=block), out=block)
            block += SLIGHT
        else:
            np.subtract(s.half[a[np.minimum(np.arange(width), n - 1)]], block, out=block)
            block += s.half[a, None]
        b[k, :n], lo[k, :n], hi[k, :n] = s.beta[a], s.lo[a], s.hi[a]
        v2[:, k, :n] = s.twice()
    stop, limit = np.array([s.stop for s in states]), np.array([min(s.limit, s.hard) - s.steps for s in states])
    most = np.minimum(limit, [SLOW + len(s.active) for s in states])
    taken, reached = together(table := apart(H), v2, b, lo, hi, stop, most)
    for k, s in enumerate(states):
        n = len(s.active)
        s.take(b[k, :n], v2[:, k, :n])
        s.reached = bool(reached[k])
        s.steps += int(taken[k])
        if most[k] <= taken[k] < limit[k] and not s.newton():
            s.steps += lean(table.half(k), v2[:, k], b[k], lo[k], hi[k], stop[k], limit[k] - taken[k])
            s.take(b[k, :n], v2[:, k, :n])
