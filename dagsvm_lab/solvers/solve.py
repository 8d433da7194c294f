"""All duals of a bank, each by what suits it.

Linear machines of few inputs by interior points (narrow.py), short ones stacked and
exact (short.py), long ones by active sets that grow (long.py).

| constant | unit | seconds and memory with other values |
|---|---|---|
| SPARSE_CACHE = 20 | bytes of kernel rows a byte of sparse values | |
| LEAST_CACHE = 64 | MB of kernel rows | less, with 10 bytes a byte: 1.03, and 101 MB |
| | | instead of 150; no limit on either: .86, and 269 MB |

(Made text: 4,000 rows of 20,000 inputs, 254,339 nonzeros.)
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse
from tqdm import tqdm

from ..kernels import Kernel
from ..threads import one_thread
from .dual import Dual, Duals, build, warn
from .hard import HardDual, solve_hard
from .long import Settings, solve_long, solve_matrix
from .narrow import solve_narrow
from .short import most_rows, solve_short

SPARSE_CACHE = 20
LEAST_CACHE = 64


def solve_bank(
    X,
    kernel: Kernel,
    path: list[Duals],
    kernels: list[Kernel] | None = None,
    *,
    codes=None,
    solver: str,
    verbose: int,
    **how,
) -> None:
    """Solve all Duals of `path`, in place.

    They are of the same machines, with bounds that grow from one to the next: a machine
    none of whose alphas is at its bound is that of larger bounds too. `kernels` holds
    each machine's own kernel, where they differ; `codes`, a number for each row of X,
    says which rows are together in most machines (None: nothing is shared); `how`
    becomes Settings.
    """
    settings = Settings(**how)
    if solver == "qp":
        solve_exactly(X, kernel, path, kernels)
    else:
        total = len(path[0].bias) * len(path)
        bar = tqdm(total=total, desc="machines") if verbose else nullcontext()
        with one_thread(), bar:
            if verbose:
                settings = replace(settings, progress=bar.update)
            solve_fast(X, kernel, path, kernels, codes, settings)
    for duals in path:
        above = int((duals.kkt_violation > settings.tol).sum())
        if above:
            warn(
                f"{_limited(settings.max_iter)}{above} of {len(duals.bias)} machines"
                f" stopped at a violation above tol={settings.tol}: see kkt_violation"
                " and n_iter"
            )


def _limited(max_iter: int) -> str:
    """What LIBSVM says, in its words, where a number of steps was the limit."""
    if max_iter < 0:
        return ""
    return (
        f"Solver terminated early (max_iter={max_iter}).  Consider pre-processing your"
        " data with StandardScaler or MinMaxScaler. "
    )


def solve_exactly(X, kernel: Kernel, path: list[Duals], kernels) -> None:
    """Solve machine by machine by interior points (cvxopt)."""
    from .qp import solve_qp

    with one_thread():
        for duals in path:
            for t in range(len(duals.bias)):
                part = duals.part(t)
                own = kernels[t] if kernels else kernel
                K = own.square(X, duals.rows[part])
                dual = solve_qp(
                    K, duals.s[part], linear=duals.p[part], upper=duals.u[part]
                )
                duals.store_solution(t, dual)


def solve_fast(X, kernel: Kernel, path: list[Duals], kernels, codes, settings) -> None:
    """Solve by SMO and what follows it.

    Linear machines of few inputs, and short ones, are solved to the last digit, unless
    their steps are limited: their answer depends neither on how it was reached, nor on
    the order of rows, nor on a processor's rounding.
    """
    long = np.arange(len(path[0].bias))
    if settings.max_iter < 0:
        left = solve_narrow_path(X, kernels or [kernel], path, settings)
        alone = len(path) == 1 and kernels is None
        n_rows = np.diff(path[0].ends)[left]
        is_short = n_rows <= most_rows(X, kernel, alone)
        short = left[is_short]
        long = left[~is_short]
        if len(short):
            solve_short_path(X, kernel, kernels, path, short, codes, settings)
    if len(long):
        solve_long_path(X, kernel, kernels, path, long, settings)


def solve_short_path(
    X, kernel: Kernel, kernels, path: list[Duals], short: np.ndarray, codes, settings
) -> None:
    """Solve the short machines in all Duals of a path, in place."""
    progress = settings.progress
    open_ones = solve_short(
        X, kernel, path, short, kernels, progress, codes, settings.tol
    )
    for duals, still_open in zip(path, open_ones, strict=True):
        for t in still_open:
            own = kernels[t] if kernels else kernel
            K = own.square(X, duals.rows[duals.part(t)])
            duals.store_solution(t, finish(K, duals, t, settings.tol))


def solve_long_path(
    X, kernel: Kernel, kernels, path: list[Duals], long: np.ndarray, settings
) -> None:
    """Solve the long machines in all Duals of a path, in place."""
    if issparse(X):
        most = max(LEAST_CACHE, SPARSE_CACHE * X.data.nbytes / 2**20)
        settings = replace(settings, cache_size=min(settings.cache_size, most))
    before = None
    for duals in path:
        todo = long if before is None else follow(duals, before, long)
        if len(todo):
            solve_long(X, kernel, kernels, duals, todo, settings)
        before = duals


def solve_narrow_path(
    X, kernels: list[Kernel], path: list[Duals], settings: Settings
) -> np.ndarray:
    """Solve the linear machines of few inputs in all Duals of a path, in place.

    Returns the machines that are left, for one Duals at least, to other means.
    """
    every = np.arange(len(path[0].bias))
    left = np.zeros(len(every), bool)
    before = None
    for duals in path:
        todo = every[~left]
        if before is not None:
            todo = follow(duals, before, todo)
        others = solve_narrow(X, kernels, duals, todo, settings)
        left[others] = True
        before = duals
    return every[left]


def finish(K, duals: Duals, t: int, tol: float) -> Dual:
    """The Dual of machine t from the point where it is.

    By hard.py, or by steps where K is not positive semidefinite.
    """
    part = duals.part(t)
    s = duals.s[part]
    p = duals.p[part]
    u = duals.u[part]
    start = s * duals.alpha[part]
    steps = int(duals.n_iter[t])
    beta = solve_hard(HardDual.of_matrix(K, s, p, u), start)
    dual = build(K, s, p, u, s * beta, steps, tol)
    return dual if dual.converged else solve_matrix(K, s, p, u, Settings(tol))


def follow(duals: Duals, before: Duals, which: np.ndarray) -> np.ndarray:
    """Take what smaller bounds gave for the machines `which`, into `duals`.

    Returns those of them whose solution the larger bounds of `duals` change: those with
    an alpha at the smaller bound, and those that were not solved.
    """
    duals.copy_stats(before, which)
    changed = ~before.converged[which]
    for k, t in enumerate(which):
        part = duals.part(t)
        alpha = before.alpha[part]
        duals.alpha[part] = alpha
        at_bound = (alpha >= before.u[part]) & (alpha > 0)
        changed[k] |= at_bound.any()
    return which[changed]
