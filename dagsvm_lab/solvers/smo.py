"""Platt's SMO with second-order working-set choice: one dual, lean loop, kernel rows from a matrix or an LRU cache.

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha, alpha in [0, u])

v = s p - K b is minus the gradient. A step moves b_i up and b_j down; the solution has max v over {b < hi} <= min v over
{b > lo}. i is the maximal violator, j the best second-order partner (Fan, Chen, Lin 2005, JMLR 6:1889-1918, WSS 2).
v is kept twice, -inf where b may not rise and +inf where it may not fall, so that one argmax needs no mask.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict

import numpy as np

from ..kernels import Kernel, Rows
from .dual import Dual

TAU = 1e-12


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
        return self.diag


def problem(y, C, linear, upper) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(s, p, u): signs, linear term and upper bounds as float64 vectors."""
    y = np.asarray(y, float)
    p = np.ones(len(y)) if linear is None else np.asarray(linear, float)
    u = np.full(len(y), float(C)) if upper is None else np.asarray(upper, float)
    return np.where(y > 0, 1.0, -1.0), p, u


def finish(s, p, u, beta, v, n_iter: int, converged: bool) -> Dual:
    """The Dual of beta with its certificate, from v = s p - K beta in float64."""
    lo, hi = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0)
    up, low = v[beta < hi], v[beta > lo]
    top, bottom = up.max(initial=-np.inf), low.min(initial=np.inf)
    free = (beta > lo) & (beta < hi)
    if free.any():
        bias = float(v[free].mean())
    else:
        ends = [e for e in (top, bottom) if np.isfinite(e)]
        bias = float(np.mean(ends)) if ends else 0.0
    objective = -0.5 * float(beta @ (v + s * p))
    primal = 0.5 * float(beta @ (s * p - v)) + float(u @ np.maximum(0.0, s * (v - bias)))
    return Dual(
        alpha=s * beta,
        bias=bias,
        objective=objective,
        primal_objective=primal,
        gap=primal + objective,
        kkt_violation=max(0.0, float(top - bottom)),
        n_iter=n_iter,
        converged=converged,
        linear=p,
        upper=u,
    )


def starting_point(s, u, warm) -> np.ndarray:
    """beta to start from: zero, or `warm` (alpha) clipped to the box and made to satisfy sum beta = 0."""
    if warm is None:
        return np.zeros(len(s))
    beta = s * np.clip(warm, 0.0, u)
    plus, minus = beta[s > 0].sum(), -beta[s < 0].sum()
    if plus > minus:
        beta[s > 0] *= minus / plus
    elif minus > plus:
        beta[s < 0] *= plus / minus
    return beta


def times(K, beta) -> np.ndarray:
    """K beta in float64, from the rows where beta is not zero."""
    if isinstance(K, np.ndarray):
        return K @ beta
    out = np.zeros(K.shape[0])
    for i in np.flatnonzero(beta):
        out += beta[i] * K[i]
    return out


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
    keep = np.flatnonzero(u > 0)
    while True:
        v = s * p - times(K, beta)
        top = v[beta < hi].max(initial=-np.inf)
        bottom = v[beta > lo].min(initial=np.inf)
        if top - bottom <= tol or steps >= limit:
            break
        # shrink: what is at a bound and pulls outwards by more than the present violation stays there for now
        outside = ((beta >= hi) & (v > top)) | ((beta <= lo) & (v < bottom))
        act = np.flatnonzero((u > 0) & ~outside) if shrinking and steps else keep
        done, moved = lean(K, diag, act, beta, lo, hi, v, tol, limit - steps, room)
        steps += done
        if (
            not moved or not done
        ):  # no step possible on the whole set: nothing more to gain in this arithmetic
            if len(act) == len(keep):
                v = s * p - times(K, beta)
                break
            shrinking = False
    converged = bool(v[beta < hi].max(initial=-np.inf) - v[beta > lo].min(initial=np.inf) <= tol)
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(f"SMO stopped after {steps} steps above tol={tol}", ConvergenceWarning, stacklevel=2)
    return finish(s, p, u, beta, v, steps, converged)


def lean(K, diag, act, beta, lo, hi, v, tol, limit, room) -> tuple[int, bool]:
    """(steps, False if stuck) on the rows `act` until their violation is <= 0.9 tol; beta changes in place."""
    whole = len(act) == len(beta)
    b, low, high = beta[act].tolist(), lo[act].tolist(), hi[act].tolist()
    d, points = diag[act], act.tolist()
    v2 = np.vstack([v[act], v[act]])
    vU, vL = v2
    vU[beta[act] >= hi[act]] = -np.inf
    vL[beta[act] <= lo[act]] = np.inf
    gain, move = np.empty(len(act)), np.empty(len(act))
    kept: OrderedDict[int, tuple] = OrderedDict()

    def row(i):
        pair = kept.get(i)
        if pair is None:
            if len(kept) >= room:
                kept.popitem(last=False)
            k = K[points[i]]
            k = k if whole else k[act]
            eta = np.maximum(d[i] + d - 2.0 * k, TAU)
            pair = kept[i] = (k, 1.0 / np.sqrt(eta))
        else:
            kept.move_to_end(i)
        return pair

    stop, steps, moved = 0.9 * tol, 0, True
    while steps < limit:
        i = int(vU.argmax())
        top = vU[i]
        k_i, r_i = row(i)
        np.subtract(top, vL, out=gain)
        gain *= r_i
        j = int(gain.argmax())
        difference = top - vL[j]
        # the best partner is rarely the worst violator: only when it is none can the whole set be in order
        if not difference > stop and not (top - vL).max(initial=-np.inf) > stop:
            break
        t = min(difference * r_i[j] ** 2, high[i] - b[i], b[j] - low[j])
        if not t > 0.0 or not np.isfinite(t) or (b[i] + t == b[i] and b[j] - t == b[j]):
            moved = False
            break
        k_j = row(j)[0]
        np.subtract(k_i, k_j, out=move)
        move *= t
        v2 -= move
        old_i, old_j = b[i], b[j]
        b[i] = high[i] if t >= high[i] - old_i else old_i + t
        b[j] = low[j] if t >= old_j - low[j] else old_j - t
        if b[i] >= high[i]:
            vU[i] = -np.inf
        if old_i <= low[i]:
            vL[i] = vU[i] if b[i] < high[i] else top - move[i]
        if b[j] <= low[j]:
            vL[j] = np.inf
        if old_j >= high[j]:
            vU[j] = top - difference - move[j]
        steps += 1
    beta[act] = b
    return steps, moved
