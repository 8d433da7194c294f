"""Long duals: one loop over active sets that grow, for all duals of a chunk at once.

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha)

A step of SMO on n rows is a dozen array calls whose cost is mostly the call. So steps
are taken on few *active* rows, whose kernel values many duals stack in one array.
v = s p - K b is formed on all rows only to judge what was found, from the support
vectors alone (working sets as in Joachims, "Making large-scale SVM learning practical",
1999).

    active rows: a few of each side
    until no row of a dual violates by more than tol:
        step the active rows until they violate by no more than `aim`
        judge: v, the violation and the objective, on all rows
        aim lower; leave out active rows that rest at a bound, take in the worst others

After every judgement sum b = 0, lo <= b <= hi, and v is right on all rows. The
objective never rises. A dual ends where it is solved, out of steps, or has gained
nothing in four judgements: then rounding is all that is left, or K is not positive
semidefinite.

Where float32 is safe the loop runs in it first, to LOOSE; then float64 judges what was
found and goes on. Steps are those of steps.py. Active rows that take long are solved by
Newton's method (newton.py), a dual that takes too long altogether by hard.py. search.py
holds what is known of the duals between steps.

What jobs do never shows in the result: a job is a chunk of duals, fixed by their number
and lengths; or, where all duals share kernel rows, threads compute these.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| CHUNK = 96 | duals of a chunk | Letter: 48 .92, 192 .97 |
| PROCESS_ROWS = 50,000 | rows of all duals | more: jobs are processes, as |
| | | threads wait for each other |
| SHARED_INPUTS = 32 | inputs | more: duals of the same rows share kernel values. |
| | | One-versus-rest on 4,000 rows of USPS, not shared: 1.33 |
| SPREAD = 1.6 | width over width | of active sets stacked together. |
| | | Letter: 1.2 1.04, 2.5 1.20; Pendigits: 1.01, .97 |
| NARROW_ROWS = 16,384 | stacked rows | fewer are stacked whatever their widths. |
| | | Segment, Pendigits: a quarter .99, 1.01, four times 1.01, 1.00 |
| SLOW = 100 | steps, and one a row, till Newton's method | One-versus-rest, |
| | | C = 1000, Segment: never 1.56, 400 1.09; Vehicle: never 2.21, 400 1.27 |
| SYSTEM = 240,000 | cubed free rows that are worth a step | a dual whose system costs |
| | | more than SLOW steps takes these first. Covertype's pairs, C = 10: never |
| | | 1.95, 80,000 .97; C = 100: 1.77, .89; Letter one-versus-rest: 1.00, .91 |
| LOOSE = 1e-3 | violation asked of float32 | Letter: 1e-2 1.23, 1e-4 1.00; |
| | | Pendigits: 1.17, 1.02 |
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..kernels import Kernel
from ..rows import prepared
from ..threads import one_thread
from .columns import arrays
from .dual import Dual, Duals, build, check_tol, matrix, problem, warn
from .hard import centred_factor, solve_hard
from .newton import solve_newton
from .search import ANY_RANK, KernelValues, Search, Settings, ranges
from .steps import smo_one, smo_stack
from .table import own_matrices

CHUNK = 96
PROCESS_ROWS = 50_000
SHARED_INPUTS = 32
SPREAD = 1.6
NARROW_ROWS = 16_384
SLOW = 100
SYSTEM = 240_000
LOOSE = 1e-3


def solve_smo(
    K, y, C=1.0, tol: float = 1e-3, *, linear=None, upper=None, max_iter: int = -1
) -> Dual:
    """Solve one two-class machine on a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the training rows.
    y : ndarray of shape (n,)
        Labels: +-1, or soft labels in [-1, 1], of which 0 drops out.
    C : float, default 1.0
        Bound of the dual variables.
    tol : float, default 1e-3
        Largest KKT violation that counts as solved.
    linear, upper : ndarray of shape (n,), optional
        The terms p and u of the dual (dual.py), where they do not follow from y and C.
    max_iter : int, default -1
        Limit of the steps; -1 for none.

    Returns
    -------
    Dual
        The solution with its certificate; a ConvergenceWarning where it is above `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from dagsvm_lab import solve_smo
    >>> dual = solve_smo(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([-1, 1]), C=10)
    >>> dual.alpha.round(3).tolist(), round(dual.objective, 3)
    ([0.5, 0.5], -0.5)
    """
    check_tol(tol)
    K = matrix(K, y)
    with one_thread():
        dual = solve_matrix(K, *problem(y, C, linear, upper), Settings(tol, max_iter))
    if not dual.converged:
        warn(
            f"SMO stopped after {dual.n_iter} steps at a violation of "
            f"{dual.kkt_violation:.2g}, above tol={tol}"
        )
    return dual


def solve_matrix(K: np.ndarray, s, p, u, settings: Settings) -> Dual:
    """The Dual of (s, p, u) on the matrix K, converged or not."""
    n = len(s)
    duals = Duals(np.array([0, n]), np.arange(n), s, p, u)  # a bank of one machine
    which = np.zeros(1, int)
    solve_long(K, Kernel("precomputed"), None, duals, which, settings)
    return build(K, s, p, u, duals.alpha, int(duals.n_iter[0]), settings.tol)


def solve_long(
    X,
    kernel: Kernel,
    kernels: Sequence[Kernel] | None,
    duals: Duals,
    which: np.ndarray,
    settings: Settings,
) -> None:
    """Solve the machines `which` of `duals`, in place.

    The numbers are the same whatever n_jobs. `kernels` holds each machine's own kernel,
    where they differ from `kernel`.
    """
    length = np.diff(duals.ends)
    duals.converged[which[length[which] == 0]] = True
    which = which[length[which] > 0]
    parts, shared = chunks(length, which, X.shape, kernels is not None)
    if not parts:
        return
    rows = None
    if kernels is None:
        rows = [prepared(X, kernel, dtype) for dtype in precisions(X, [kernel])]
    tasks = []
    for part in parts:
        own = [kernel] if kernels is None else [kernels[t] for t in part]
        tasks.append((X, own, rows, subset(duals, part), shared))
    jobs = min(effective_n_jobs(settings.n_jobs), cpu_count())
    with one_thread(), ThreadPoolExecutor(jobs) as pool:
        if len(parts) == 1:
            each = pool.map if jobs > 1 else map
            solved = (solve_chunk(*task, settings, each) for task in tasks)
        else:
            in_all = int(length[which].sum())
            prefer = "processes" if in_all > PROCESS_ROWS else "threads"
            told = replace(settings, progress=int)
            solved = Parallel(settings.n_jobs, prefer=prefer, return_as="generator")(
                delayed(solve_chunk)(*task, told) for task in tasks
            )
        for part, found in zip(parts, solved, strict=True):
            duals.alpha[ranges(duals.ends[part], length[part])] = found.alpha
            duals.store_stats(part, found, found.n_iter, found.converged)
            settings.progress(len(part))


def chunks(length, which, shape, own_kernels: bool) -> tuple[list[np.ndarray], bool]:
    """The machines of each chunk, longest first, and whether duals share kernel rows.

    They do where they have one kernel and, on average, more than two thirds of the
    rows: then all of them are one chunk, or a few. Long duals fill an array call by
    few.
    """
    order = which[np.argsort(-length[which], kind="stable")]
    n_duals = len(which)
    in_all = int(length[which].sum())
    same_rows = not own_kernels and in_all > 2 * shape[0] * n_duals // 3
    shared = same_rows and shape[1] >= SHARED_INPUTS
    most = CHUNK
    if not same_rows:
        # about 100,000 rows a chunk
        most = int(np.clip(100_000 * n_duals // max(in_all, 1), 8, CHUNK))
    fewest = 1 if shared else min(2, n_duals)
    n = max(-(-n_duals // most), fewest)
    # dealt out by length, so that chunks take about as long
    return [order[k::n] for k in range(n)], shared


def subset(duals: Duals, which: np.ndarray) -> Duals:
    """The duals `which` alone, not solved yet."""
    length = np.diff(duals.ends)[which]
    rows = ranges(duals.ends[which], length)
    ends = np.concatenate([[0], np.cumsum(length)])
    return Duals(ends, duals.rows[rows], duals.s[rows], duals.p[rows], duals.u[rows])


def precisions(X, kernels: list[Kernel]) -> list[type]:
    """The precisions that duals are solved in, one after the other."""
    single = all(kernel.single_is_safe(X) for kernel in set(kernels))
    return [np.float32, np.float64] if single else [np.float64]


def solve_chunk(X, kernels, rows, duals, shared, settings, each: Callable = map):
    """Solve some duals, which are given back with what was found.

    `kernels` are the duals' own, or the one of all, whose prepared rows are `rows`;
    `each` is the map that kernel rows are computed by.
    """
    with one_thread():
        search = Search(duals, kernels, X, settings)
        dtypes = [own.dtype for own in rows] if rows else precisions(X, kernels)
        for k, dtype in enumerate(dtypes):
            last = dtype == np.float64
            own = rows[k] if rows else None
            values = KernelValues(search, own, dtype, shared, each)
            search.largest = values.largest
            if k:
                search.judge_near(values, each)
            run(search, values, settings.tol if last else max(settings.tol, LOOSE))
        return search.result()


def run(search: Search, values: KernelValues, tol: float) -> None:
    """Bring every dual to `tol`, or as far as it goes: the loop at the top."""
    exact = values.dtype == np.float64
    search.allow(exact)
    # the least gain on the objective that counts, over its size
    least = 1e-12 if exact else 1e-6
    every = np.arange(len(search.steps))
    live = every[~search.solved(every, tol) & (search.steps < search.limit)]
    while len(live):
        step(search, values, live)
        search.judge(live, values.products(search, live))
        search.count_gains(live, least)
        if exact:
            for k in live[search.gives_up(live, tol)]:
                finish_hard(search, values, k)
        live = live[~search.ended(live, tol)]
        search.choose_active(live, tol)


def finish_hard(search: Search, values: KernelValues, k: int) -> None:
    """Solve dual k by hard.py, if it is short or of low rank; asked once a dual."""
    own = search.of(k)
    n = search.length[k]
    rows = values.rows[k]
    ids = values.ids[own]
    left = rows.left[ids]
    duals = search.duals
    s = duals.s[own]
    p = duals.p[own]
    u = duals.u[own]
    most_rank = None if n <= ANY_RANK else n // 8

    def columns(at: np.ndarray) -> np.ndarray:
        """Kernel columns of some of the dual's rows."""
        return rows.block(left, ids[at])

    def factored(*of_rows) -> np.ndarray | None:
        """The factor of K: that of the dual before, if it had the same rows."""
        which = ids[u > 0].tobytes()
        if search.factor[0] is not rows or search.factor[1] != which:
            search.factor = rows, which, centred_factor(*of_rows, most_rank)
        return search.factor[2]

    search.allowed[k] = search.limit[k]  # steps alone, where this fails
    start = search.beta[own]
    diagonal = rows.diagonal(ids)
    beta = solve_hard(diagonal, columns, s, p, u, start, factored=factored)
    if beta is None:  # of high rank: on with SMO
        return
    search.beta[own] = beta
    search.allowed[k] = min(search.limit[k], 10 * search.steps[k])
    search.stalled[k] = 0
    one = np.array([k])
    search.judge(one, values.products(search, one))


def step(search: Search, values: KernelValues, some: np.ndarray) -> None:
    """Step the active rows of some duals until they violate by no more than `aim`."""
    rows, count = search.active_rows(some)
    ends = np.cumsum(count)
    alone = np.zeros(len(some), bool)
    if values.shared:
        for k in np.flatnonzero(count > search.settings.alone):
            own = rows[ends[k] - count[k] : ends[k]]
            alone[k] = values.columns[some[k]].learn(values.ids[own])
    room = search.settings.cache_size * 2**18
    for k in np.flatnonzero(alone):
        own = rows[ends[k] - count[k] : ends[k]]
        step_alone(search, values, some[k], own, room / alone.sum())
    together = np.flatnonzero(~alone)
    for group in groups(together, count, room / values.dtype.itemsize):
        own = rows[ranges(ends[group] - count[group], count[group])]
        step_stack(search, values, some[group], own, count[group])


def groups(which: np.ndarray, count: np.ndarray, most: float) -> Iterator[np.ndarray]:
    """Duals of similarly many active rows: padding to the widest costs little.

    The stacked kernels of several have at most `most` values.
    """
    order = which[np.argsort(count[which], kind="stable")]
    while len(order):
        width = count[order].astype(float)
        n = np.arange(1, len(order) + 1)  # duals of a group that ends here
        unlike = (width > SPREAD * width[0] + 16) & (n * width > NARROW_ROWS)
        over = unlike | (n * width**2 > most)
        over[0] = False
        size = over.argmax() if over.any() else len(order)
        yield order[:size]
        order = order[size:]


def step_alone(search: Search, values: KernelValues, k: int, rows, room: float) -> None:
    """Step the many active `rows` of dual k on kept kernel rows, cut when asked for.

    Those cut are kept while `room` bytes last.
    """
    ids = values.ids[rows].tolist()
    place = values.place[rows]
    half = values.half[rows]
    columns = values.columns[k]
    spare = arrays(len(rows), values.dtype)

    def fetch(i: int) -> np.ndarray:
        """H of the active row i."""
        K = columns.row(ids[i]).take(place, out=next(spare), mode="clip")
        return values.halve(K, half, half[i])

    point = search.point(rows, slice(None), rows.shape, values.dtype)
    most = max(2, int(room / (len(rows) * values.dtype.itemsize)))
    left = search.allowed[k] - search.steps[k]
    search.steps[k] += smo_one(fetch, point, search.aim[k], left, most)
    search.store(rows, point, slice(None))


def step_stack(search: Search, values: KernelValues, group, rows, count) -> None:
    """Step the active `rows` of the duals `group`, `count` of each, in stacked arrays.

    Those that take long go on by Newton's method; where that fails, by more steps.
    """
    # where each active row stands in the stack: (its dual, its place there)
    at = np.repeat(np.arange(len(group)), count), ranges(0 * count, count)
    shape = len(group), -(-count.max() // 16) * 16
    table = own_matrices(values.half_distances(group, rows, at, shape))
    point = search.point(rows, at, shape, values.dtype)
    left = search.allowed[group] - search.steps[group]
    free = ((point.beta > point.lo) & (point.beta < point.hi)).sum(1)
    most = np.minimum(left, SLOW + np.maximum(count, free**3 // SYSTEM))
    taken = smo_stack(table, point, search.aim[group], most)
    search.store(rows, point, at)
    search.steps[group] += taken
    ends = np.cumsum(count)
    for k in np.flatnonzero((taken >= most) & (taken < left)):
        t = group[k]
        own = rows[ends[k] - count[k] : ends[k]]
        if not step_newton(search, t, own):
            one = point.of(k)
            rest = left[k] - taken[k]
            search.steps[t] += smo_one(table.half(k), one, search.aim[t], rest)
            search.store(own, one, slice(count[k]))


def step_newton(search: Search, k: int, rows: np.ndarray) -> bool:
    """Solve the active `rows` of dual k by Newton's method; whether it could."""
    duals = search.duals
    n = len(rows)
    support = search.first[k] + np.flatnonzero(search.beta[search.of(k)])
    held = support[~search.active[support]]
    kernel = search.kernels[k if len(search.kernels) > 1 else 0]
    K = kernel.square(search.X, duals.rows[np.concatenate([rows, held])])
    # support vectors that are not active stay as they are: their share goes into goal
    goal = search.goal[rows] - K[:n, n:] @ search.beta[held]
    table = own_matrices(np.ascontiguousarray(K[None, :n, :n]))
    s = duals.s[None, rows]  # (1, rows): a stack of one, as all that goes in
    u = duals.u[None, rows]
    beta = search.beta[None, rows]
    found, v, settled, rounds = solve_newton(
        table, s, u, goal[None], beta, np.zeros(1, int), beta.sum()
    )
    search.steps[k] += int(rounds[0])
    if settled[0]:
        search.beta[rows] = found[0]
        search.v[rows] = v[0]
    return bool(settled[0])
