r"""Long duals: dealt out to chunks, whose duals are solved together, and to jobs.

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha)

A step of SMO on n rows is a dozen array calls whose cost is mostly the call. So steps
are taken on few *active* rows, whose kernel values many duals stack in one array.
v = s p - K b is formed on all rows only to judge what was found, from the support
vectors alone (working sets as in Joachims, "Making large-scale SVM learning practical",
1999). The loop stands in grow.py.

Where float32 is safe the loop runs in it first, to LOOSE; then float64 judges what was
found and goes on.

What jobs do never shows in the result: a job is a chunk of duals, fixed by their number
and lengths; or, where all duals share kernel rows, threads compute these.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| CHUNK = 96 | duals of a chunk | Letter: 48 .92, 192 .97 |
| PROCESS_ROWS = 50,000 | rows of all duals | more: jobs are processes, as |
| | | threads wait for each other |
| SHARED_INPUTS = 32 | inputs | more: duals of the same rows share kernel values. |
| | | One-versus-rest on 4,000 rows of USPS, not shared: 1.33 |
| LOOSE = 1e-3 | violation asked of float32 | Letter: 1e-2 1.23, 1e-4 1.00; |
| | | Pendigits: 1.17, 1.02 |
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..kernels import Kernel
from ..rows import Rows, prepared
from ..threads import one_thread
from .active import choose_first
from .dual import Dual, Duals, build, check_tol, matrix, problem, ranges, warn
from .grow import judge_in_double, run
from .search import Search, Settings
from .values import KernelValues

CHUNK = 96
PROCESS_ROWS = 50_000
SHARED_INPUTS = 32
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


@dataclass(frozen=True)
class Chunk:
    """Some duals that one job solves together, and what their kernel values are of.

    Attributes
    ----------
    X : the rows.
    kernels : the duals' own, or the one of all.
    rows : of the one kernel, the rows prepared in each precision; else None.
    duals : the duals.
    shared : whether they share kernel rows.
    """

    X: np.ndarray
    kernels: list[Kernel]
    rows: list[Rows] | None
    duals: Duals
    shared: bool


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
    tasks = chunk_tasks(X, kernel, kernels, duals, parts, shared)
    jobs = min(effective_n_jobs(settings.n_jobs), cpu_count())
    with one_thread(), ThreadPoolExecutor(jobs) as pool:
        each = pool.map if jobs > 1 else map
        solved = solve_chunks(tasks, settings, each)
        for part, found in zip(parts, solved, strict=True):
            variables = ranges(duals.ends[part], length[part])
            duals.alpha[variables] = found.alpha
            duals.store_stats(part, found, found.n_iter, found.converged)
            settings.progress(len(part))


def chunk_tasks(
    X,
    kernel: Kernel,
    kernels: Sequence[Kernel] | None,
    duals: Duals,
    parts: list[np.ndarray],
    shared: bool,
) -> list[Chunk]:
    """The chunks of these machines, all on the same prepared rows if on one kernel."""
    rows = None
    if kernels is None:
        rows = [prepared(X, kernel, dtype) for dtype in precisions(X, [kernel])]
    tasks = []
    for part in parts:
        own = [kernel] if kernels is None else [kernels[t] for t in part]
        tasks.append(Chunk(X, own, rows, subset(duals, part), shared))
    return tasks


def solve_chunks(
    tasks: list[Chunk], settings: Settings, each: Callable
) -> Iterable[Duals]:
    """The solved duals of every chunk in turn, each chunk a job.

    A chunk that is alone computes its kernel rows by the map `each` instead.
    """
    if len(tasks) == 1:
        return (solve_chunk(task, settings, each) for task in tasks)
    in_all = sum(len(task.duals.rows) for task in tasks)
    prefer = "processes" if in_all > PROCESS_ROWS else "threads"
    # jobs tell nobody how far they are: `solve_long` does, who has their results
    silent = replace(settings, progress=int)
    run_all = Parallel(settings.n_jobs, prefer=prefer, return_as="generator")
    return run_all(delayed(solve_chunk)(task, silent) for task in tasks)


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
        of_100_000_rows = 100_000 * n_duals // max(in_all, 1)
        most = int(np.clip(of_100_000_rows, 8, CHUNK))
    fewest = 1 if shared else min(2, n_duals)
    n = max(-(-n_duals // most), fewest)
    # dealt out by length, so that chunks take about as long
    return [order[k::n] for k in range(n)], shared


def subset(duals: Duals, which: np.ndarray) -> Duals:
    """The duals `which` alone, not solved yet."""
    length = np.diff(duals.ends)[which]
    rows = ranges(duals.ends[which], length)
    ends = np.concatenate([[0], np.cumsum(length)])
    s = duals.s[rows]
    p = duals.p[rows]
    u = duals.u[rows]
    return Duals(ends, duals.rows[rows], s, p, u)


def precisions(X, kernels: list[Kernel]) -> list[type]:
    """The precisions that duals are solved in, one after the other."""
    single = all(kernel.single_is_safe(X) for kernel in set(kernels))
    return [np.float32, np.float64] if single else [np.float64]


def solve_chunk(chunk: Chunk, settings: Settings, each: Callable = map) -> Duals:
    """Solve the duals of a chunk, which are given back with what was found.

    `each` is the map that kernel rows are computed by.
    """
    with one_thread():
        search = Search(chunk.duals, chunk.kernels, chunk.X, settings)
        choose_first(search)
        if chunk.rows is None:
            dtypes = precisions(chunk.X, chunk.kernels)
        else:
            dtypes = [own.dtype for own in chunk.rows]
        for k, dtype in enumerate(dtypes):
            rows = chunk.rows[k] if chunk.rows else None
            values = KernelValues(search, rows, dtype, chunk.shared, each)
            search.largest = values.largest
            if k:
                judge_in_double(search, values)
            is_last = dtype == np.float64
            tol = settings.tol if is_last else max(settings.tol, LOOSE)
            run(search, values, tol)
        return search.result()
