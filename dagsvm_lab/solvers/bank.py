"""All duals of a bank: the small ones stacked and exact, the long ones by active sets that grow.

| constant | unit | seconds and memory with other values (made text, 4,000 rows of 20,000 inputs, 254,339 nonzeros) |
|---|---|---|
| THIN = 20 | bytes of kernel rows a byte of sparse values | no limit on either: .86, and 269 MB instead of 150 |
| LEAST = 64 | MB of kernel rows | less, with THIN = 10: 1.03, and 101 MB |
"""

from contextlib import nullcontext

import numpy as np
from scipy.sparse import issparse
from tqdm import tqdm

from ..kernels import Kernel
from ..threads import one_thread
from .active import sharpen
from .batch import solve_many
from .dual import Duals, warn
from .small import SMALL, solve_small
from .smo import smo

THIN = 20
LEAST = 64


def solve_bank(
    X,
    kernel: Kernel,
    path: list[Duals],
    kernels=None,
    *,
    codes=None,
    solver: str,
    tol: float,
    max_iter: int,
    verbose: int,
    **how,
) -> None:
    """Solve all Duals of `path`, in place: the same machines, with bounds that grow from one to the next.

    A machine none of whose alphas is at its bound is solved for larger bounds too. Machines of at most SMALL rows are
    solved to the last digit, unless their steps are limited by `max_iter`: their answer depends neither on how it was
    reached, nor on the order of rows, nor on a processor's rounding.
    """
    first, every = path[0], np.arange(len(path[0].bias))

    def square(t: int) -> np.ndarray:
        """Kernel matrix of machine t."""
        return (kernels[t] if kernels else kernel).square(X, first.rows[first.part(t)])

    if solver == "qp":
        from .qp import solve_qp

        for duals in path:
            for t in every:
                part = duals.part(t)
                duals.keep(t, solve_qp(square(t), duals.s[part], linear=duals.p[part], upper=duals.u[part]))
        return
    small = np.diff(first.ends) <= SMALL if max_iter < 0 else np.zeros(len(every), bool)
    total = len(every) * len(path)
    with one_thread(), tqdm(total=total, desc="machines") if verbose else nullcontext() as bar:
        progress = bar.update if verbose else int
        left = solve_small(X, kernel, path, every[small], kernels, progress, codes) if small.any() else [[]] * len(path)
        if issparse(X):
            how["cache_size"] = min(how["cache_size"], max(LEAST, THIN * X.data.nbytes / 2**20))
        before = None
        for duals, hard in zip(path, left, strict=True):
            for t in hard:
                K, part = square(t), duals.part(t)
                s = duals.s[part]
                duals.keep(t, sharpen(K, s, smo(K, s, duals.p[part], duals.u[part], tol)))
            todo = every[~small] if before is None else follow(duals, before, every[~small])
            if len(todo):
                solve_many(X, kernel, duals, todo, kernels, tol=tol, max_iter=max_iter, progress=progress, **how)
            before = duals
    for duals in path:
        above = int((~duals.converged).sum())
        if above:
            warn(f"{above} of {total // len(path)} machines stopped at a violation above tol={tol}: "
                 "see kkt_violation and n_iter")  # fmt: skip


def follow(duals: Duals, before: Duals, which: np.ndarray) -> np.ndarray:
    """Take what `before` found for the machines `which`; returns those of them that larger bounds change."""
    duals.take(before, which)
    changed = ~before.converged[which]
    for k, t in enumerate(which):
        part = duals.part(t)
        duals.alpha[part] = alpha = before.alpha[part]
        changed[k] |= bool(((alpha >= before.u[part]) & (alpha > 0)).any())
    return which[changed]
