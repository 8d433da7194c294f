"""All duals of a bank: the small ones stacked and exact, the long ones by active sets that grow."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from tqdm import tqdm

from ..kernels import Kernel
from ..threads import one_thread
from .active import sharpen
from .batch import solve_many
from .dual import Duals, warn
from .small import SMALL, solve_small
from .smo import smo


def solve_bank(
    X, kernel: Kernel, duals: Duals, kernels=None, *, solver: str, tol: float, max_iter: int, verbose: int, **how
) -> None:
    """Solve `duals`, in place.

    Machines of at most SMALL rows are solved to the last digit, unless their steps are limited by `max_iter`: their
    answer depends neither on how it was reached, nor on the order of rows, nor on a processor's rounding.
    """

    def square(t: int) -> np.ndarray:
        """Kernel matrix of machine t."""
        return (kernels[t] if kernels else kernel).square(X, duals.rows[duals.part(t)])

    every = np.arange(len(duals.ends) - 1)
    if solver == "qp":
        from .qp import solve_qp

        for t in every:
            part = duals.part(t)
            duals.keep(t, solve_qp(square(t), duals.s[part], linear=duals.p[part], upper=duals.u[part]))
        return
    small = np.diff(duals.ends) <= SMALL if max_iter < 0 else np.zeros(len(every), bool)
    with one_thread(), tqdm(total=len(every), desc="machines") if verbose else nullcontext() as bar:
        progress = bar.update if verbose else int
        left = solve_small(X, kernel, duals, every[small], kernels, progress) if small.any() else []
        for t in left:
            K, part = square(t), duals.part(t)
            s = duals.s[part]
            duals.keep(t, sharpen(K, s, smo(K, s, duals.p[part], duals.u[part], tol)))
        if not small.all():
            solve_many(X, kernel, duals, every[~small], kernels, tol=tol, max_iter=max_iter, progress=progress, **how)
    above = int((~duals.converged).sum())
    if above:
        warn(f"{above} of {len(every)} machines stopped at a violation above tol={tol}: see kkt_violation and n_iter")
