"""Platt's SMO with second-order working-set choice: one dual, lean loop, kernel rows from a matrix or an LRU cache.

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha, alpha in [0, u])

v = s p - K b is minus the gradient. A step moves b_i up and b_j down; the solution has max v over {b < hi} <= min v
over {b > lo}. i is the maximal violator, j the best second-order partner (Fan, Chen, Lin 2005, JMLR 6:1889-1918, WSS
2). v is kept twice, -inf where b may not rise and +inf where it may not fall, so that one argmax needs no mask.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import numpy as np
from scipy.linalg.blas import daxpy, saxpy

from ..kernels import Kernel, Rows
from .active import finish
from .dual import Dual, build, measure, problem, product, warn

TAU = 1e-12
STRETCH = 1.2  # how far a step goes, where 1 is the least along it: this saves one step of seven
EXACT = 400  # rows up to which a dual that makes its solver lose patience is finished by an active-set method


class RowCache:
    """Kernel rows of X on demand; the least recently used go first when `cache_size` MB are full."""

    def __init__(self, X: np.ndarray, kernel: Kernel, cache_size: float = 200.0, dtype=np.float64):
        X = np.asarray(X)
        self.rows = Rows(X, kernel, dtype)
        self.left = self.rows.place(X)
        self.diag = kernel.diagonal(X)
        self.shape = (len(X), len(X))
        self.limit = max(2, int(cache_size * 2**20 / (len(X) * np.dtype(dtype).itemsize)))
        self.kept: OrderedDict[int, np.ndarray] = OrderedDict()

    def __getitem__(self, i: int) -> np.ndarray:
        row = self.kept.get(i)
        if row is None:
            if len(self.kept) >= self.limit:
                self.kept.popitem(last=False)
            row = self.kept[i] = self.rows.block(self.left[i : i + 1])[0]
        else:
            self.kept.move_to_end(i)
        return row

    def diagonal(self) -> np.ndarray:
        """K_ii of every row."""
        return self.diag

    def __matmul__(self, beta: np.ndarray) -> np.ndarray:
        """K beta, from the rows where beta is not zero."""
        return sum((beta[i] * self[i] for i in np.flatnonzero(beta)), np.zeros(len(beta)))


def starting_point(s, u, warm) -> np.ndarray:
    """beta to start from: zero, or `warm` (alpha) clipped to the box and made to satisfy sum beta = 0."""
    if warm is None:
        return np.zeros(len(s))
    beta = s * np.clip(warm, 0.0, u)
    plus, minus = beta[s > 0].sum(), -beta[s < 0].sum()
    if abs(plus - minus) > 1e-12 * (plus + minus):
        beta[s > 0 if plus > minus else s < 0] *= min(plus, minus) / max(plus, minus)
    return beta


def solve_smo(
    K,
    y: np.ndarray,
    C: float = 1.0,
    tol: float = 1e-3,
    *,
    linear: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    max_iter: int = -1,
    warm: np.ndarray | None = None,
    cache_size: float = 200.0,
    shrinking: bool = True,
) -> Dual:
    """The Dual of one two-class machine on the kernel matrix K, or on anything with K[i] -> row i and K.diagonal()."""
    s, p, u = problem(y, C, linear, upper)
    K = K if isinstance(K, RowCache) else np.asarray(K, float)
    diag = np.asarray(K.diagonal(), float)
    lo, hi = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0)
    beta = starting_point(s, u, warm)
    limit = max_iter if max_iter > 0 else max(10_000_000, 100 * len(s))
    steps, room = 0, max(8, int(cache_size * 2**20 / (16 * max(1, len(s)))))
    everything, hard = np.flatnonzero(u > 0), patience(len(s))
    active, stop, objective, stalled = everything, np.inf, np.inf, 0
    v = s * p - product(K, beta)
    while True:
        up, low = beta[active] < hi[active], beta[active] > lo[active]
        top, bottom = v[active].max(where=up, initial=-np.inf), v[active].min(where=low, initial=np.inf)
        if stop <= 0.9 * tol:  # the rows left are solved: unshrink, and judge every row afresh
            v = s * p - product(K, beta)
            last, objective = objective, -0.5 * float(beta @ (v + s * p))
            stalled = 0 if objective < last - 1e-12 * abs(objective) else stalled + 1
            active, stop = everything, np.inf
            continue
        if stop < np.inf:  # shrink: what rests at a bound, and far from moving, stays there for now
            margin = max(top - bottom, tol)
            above, below = v[active] > max(top, bottom) + margin, v[active] < min(top, bottom) - margin
            resting = (~up & above) | (~low & below)
            active = active[~resting]
        elif top - bottom <= tol or steps >= limit or stalled > 3:
            break
        stop = max(0.9 * tol, 0.1 * min(top - bottom, stop)) if shrinking else 0.9 * tol
        v2 = np.array([np.where(beta < hi, v, -np.inf), np.where(beta > lo, v, np.inf)])[:, active]
        b = beta[active]
        half = 0.5 * diag[active]
        fetch = partial(lambda half, active, i: half[i] + half - K[active[i]][active], half, active)
        steps += lean(fetch, v2, b, lo[active], hi[active], stop, min(limit, hard) - steps, room)
        beta[active], v[active] = b, np.where(np.isfinite(v2[0]), v2[0], v2[1])
        if hard <= steps < limit:
            beta, hard, stop = settle(K, s, p, u, beta), limit, 0.0
            limit = min(limit, 10 * steps) if len(s) <= EXACT else limit
    dual = build(K, s, p, u, s * beta, steps, bool(top - bottom <= tol))
    if not dual.converged:
        warn(f"SMO stopped after {steps} steps at a violation of {dual.kkt_violation:.2g}, above tol={tol}")
    return dual


def patience(n: int) -> float:
    """Steps after which a dual of n rows counts as hard: huge C on a kernel of low rank can take millions."""
    return 4000 + 40 * n if n <= EXACT else np.inf


def settle(K, s, p, u, beta) -> np.ndarray:
    """beta finished in its free variables by linear systems, or solved exactly where those go round in circles."""
    from .qp import solve_qp

    K = K if isinstance(K, np.ndarray) else np.array([K[i] for i in range(len(s))])
    alphas = [s * beta, finish(K, s, p, u, s * beta)]
    if measure(product(K, s * alphas[1]), s, p, u, alphas[1]).kkt_violation > 1e-9 * np.abs(p).max():
        try:
            alphas.append(solve_qp(K, s, linear=p, upper=u).alpha)
        except (ValueError, ArithmeticError):  # K is not positive semidefinite
            pass
    return s * min(alphas, key=lambda a: measure(product(K, s * a), s, p, u, a).objective)


def lean(fetch, v2, b, lo, hi, stop: float, limit: int, room: int = 1 << 30, seen=None) -> int:
    """Steps taken until the violation is <= stop, or none is possible; b and the two copies of v change in place.

    fetch(i) computes H_i, above zero in float32; at most about `room` of them are kept, in `seen` for another call on
    the same rows. Only differences of v matter to a step, and K_in - K_jn = H_jn - H_in + the same for every n; eta is
    2 H_ij.
    """
    state, v2 = v2, v2.copy()
    vU, vL = v2
    (gain, size), level = np.empty_like(v2), np.empty((), v2.dtype)
    axpy, tau = (saxpy, None) if v2.dtype == np.float32 else (daxpy, np.full_like(gain, TAU))
    x, low, high = b.tolist(), lo.tolist(), hi.tolist()
    rows = {} if seen is None else seen
    steps = 0
    while x and steps < limit:
        i = int(vU.argmax())
        top = vU.item(i)
        H_i = rows.get(i)
        if H_i is None:
            if len(rows) >= room:
                rows.clear()
            H_i = rows[i] = fetch(i)
        level.fill(top)
        np.subtract(level, vL, out=gain)
        np.abs(gain, out=size)
        gain *= size
        gain /= H_i if tau is None else np.maximum(H_i, tau, out=size)
        j = int(gain.argmax())
        difference = top - vL.item(j)
        # the best partner is rarely the worst violator, but when it is none the whole set may be in order
        if not difference > stop and not top - vL.min() > stop:
            break
        t = min(0.5 * STRETCH * difference / max(H_i.item(j), TAU), high[i] - x[i], x[j] - low[j])
        if not t > 0.0:
            break
        H_j = rows.get(j)
        if H_j is None:
            H_j = rows[j] = fetch(j)
        axpy(H_i, vU, a=t)
        axpy(H_i, vL, a=t)
        axpy(H_j, vU, a=-t)
        axpy(H_j, vL, a=-t)
        x[i] += t
        x[j] -= t
        v_i, v_j = vU.item(i), vL.item(j)
        vL[i], vU[j] = v_i, v_j
        if x[i] >= high[i]:
            vU[i] = -np.inf
        if x[j] <= low[j]:
            vL[j] = np.inf
        steps += 1
    b[:], state[:] = x, v2
    return steps
