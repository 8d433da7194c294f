r"""Small duals, whole and stacked: SMO for all machines at once, then all free variables at once, exactly.

A bank of small machines costs Python per machine, not arithmetic. Here the duals of dual.py stand in arrays (machines x
rows), their kernels in one (machines x rows x rows), and nothing is done machine by machine:

1. SMO (steps.py), in float32 where that is safe, until the violation is LEVEL of the first one.
2. The primal-dual active set method (Hintermueller, Ito, Kunisch 2003), which for a support vector machine is Newton's
   method on the optimality conditions (Chapelle 2007). Each row is at 0, at its bound u, or free. With the others held,
   the free beta and the bias b solve

       K_FF beta_F + b = (s p - K beta)_F,    sum beta = 0.

   Then a free alpha outside its box goes to the side that it left by, and a row at a side whose s (v - b) pulls inwards
   becomes free. When no row changes, all conditions hold: the point is the exact solution.
3. Machines that go round in circles, and those whose system is singular (equal rows), are given back with the feasible
   point of step 1; so are those that would end above it, which only a kernel that is not positive semidefinite does.

References: Chapelle, "Training a support vector machine in the primal", Neural Computation 19 (2007);
Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM J. Optim. 13.
Tried and not kept: docs of the constants below say what; whole stacks beyond SMALL rows (segment: 1.4 times the time).

| constant | unit                 | effect of other values |
|---|---|---|
| SMALL    | rows of a machine    | beyond it stacked kernels cost more than active sets that grow (batch.py) |
| LEVEL    | of the 1st violation | 10 times more: twice the linear systems; 10 times less: twice the steps |
| PATIENCE | steps a row          | more: a hard dual (vehicle, C = 100) takes thousands of steps for what 4 systems find |
| ROUNDS   | linear systems       | most duals need 2 to 5; one that needs more than 12 hardly ever ends |
| CELLS    | kernel values        | stacked at once; 4 times more or less costs a tenth |
| SIMILAR  | width over width     | machines this much alike are padded to one width for their kernels |
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from ..kernels import Kernel, Rows, single_is_safe
from .active import EXACT
from .dual import Duals, measure
from .steps import SLIGHT, together

SMALL = 500
LEVELS = (0.01, 0.0003)
PATIENCE = 1
ROUNDS = 8
CELLS = 1 << 21
SIMILAR = 0.7


class _Memory(threading.local):
    """Arrays that a thread keeps from one call to the next: new memory costs more than computing what fills it."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}


_MEMORY = _Memory()


def _kept(name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array of this shape with any content, in memory kept for `name`; at most CELLS values stay."""
    size = int(np.prod(shape))
    flat = _MEMORY.arrays.get(name)
    if flat is None or flat.size < size:
        flat = np.empty(size, dtype)
        if size <= CELLS:
            _MEMORY.arrays[name] = flat
    return flat[:size].reshape(shape)


def solve_small(X, kernel: Kernel, duals: Duals, which: np.ndarray, kernels: list[Kernel] | None = None, progress=int):
    """Solve the machines `which` of `duals` exactly; returns those that step 2 could not settle.

    `kernels` holds each machine's own kernel, where they differ; `progress` is told how many machines are done.
    """
    width, prepared = np.diff(duals.ends), None if kernels else Rows(X, kernel)
    single = kernels is None and single_is_safe(X, kernel)
    which, left, first = which[np.argsort(-width[which], kind="stable")], [], 0
    while first < len(which):
        part = which[first : first + max(1, CELLS // max(1, width[which[first]]) ** 2)]

        def stack(rows, n, part=part):
            return stacked(prepared, rows, n) if kernels is None else apart(X, [kernels[t] for t in part], rows, n)

        left.append(part[~_solve_stack(stack, duals, part, single)])
        first += len(part)
        progress(len(part))
    return np.sort(np.concatenate(left))


def _solve_stack(stack: Callable, duals: Duals, which: np.ndarray, single: bool) -> np.ndarray:
    """Solve machines, widest first, whose kernels fit one stack; returns which of them are settled."""
    n = np.diff(duals.ends)[which]
    inside = np.arange(n.max(initial=1)) < n[:, None]
    flat = (duals.ends[which][:, None] + np.arange(inside.shape[1]))[inside]
    s, p, u, rows = np.ones(inside.shape), np.zeros(inside.shape), np.zeros(inside.shape), np.zeros(inside.shape, int)
    s[inside], p[inside], u[inside], rows[inside] = duals.s[flat], duals.p[flat], duals.u[flat], duals.rows[flat]
    K = stack(rows, n)
    H = _halves(K, single)
    beta, steps, settled = np.zeros(s.shape), np.zeros(len(which), int), np.zeros(len(which), bool)
    alpha, live = np.zeros(s.shape), np.arange(len(which))
    for level in LEVELS:
        steps[live] += _descend(H, K, s, p, u, beta, live, level)
        alpha[live], settled[live], rounds = _exact(K, s, p, u, beta, live)
        steps[live] += rounds
        live = np.flatnonzero(~settled)
        if not len(live):
            break
    alpha[live] = (s * beta)[live]
    diagonal = np.abs(np.diagonal(K, 0, 1, 2)).max(1, initial=0.0)
    c = measure(_times(K, s * alpha), s, p, u, alpha, noise=np.finfo(float).eps * alpha.sum(1) * diagonal)
    duals.alpha[flat] = alpha[inside]
    duals.note(which, c, steps, settled)
    return settled


def _halves(K: np.ndarray, single: bool) -> np.ndarray:
    """H_ij = (K_ii + K_jj) / 2 - K_ij of steps.py; of a Gaussian in float32 where that is safe."""
    if single:
        H = np.subtract(1.0, K, out=_kept("H", K.shape, np.float32), casting="same_kind")
        return np.add(H, SLIGHT, out=H)
    half = 0.5 * np.diagonal(K, 0, 1, 2)
    return half[:, :, None] + half[:, None, :] - K


def _times(K: np.ndarray, beta: np.ndarray, live=None) -> np.ndarray:
    """K beta of all machines, or of those in `live`, whose beta this is."""
    if live is None or len(live) == len(K):
        return (K @ beta[:, :, None])[:, :, 0]
    return np.array([K[t] @ b for t, b in zip(live, beta, strict=True)])


def stacked(prepared: Rows, rows: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Kernel matrices of the first n[t] of rows[t], zeros beyond; machines of similar width go together."""
    K, first = _kept("K", (*rows.shape, rows.shape[1]), float), 0
    if n.min() > SIMILAR * n.max():
        return prepared.squares(rows, K)
    K[:] = 0.0
    while first < len(n):
        w = n[first]
        last = first + max(1, int(np.searchsorted(-n[first:], -SIMILAR * w)))
        K[first:last, :w, :w] = prepared.squares(rows[first:last, :w])
        first = last
    return K


def apart(X, kernels: list[Kernel], rows: np.ndarray, n: np.ndarray) -> np.ndarray:
    """As `stacked`, each machine with its own kernel."""
    K = np.zeros((*rows.shape, rows.shape[1]))
    for block, kernel, mine, k in zip(K, kernels, rows, n, strict=True):
        block[:k, :k] = kernel.square(X, mine[:k])
    return K


def _descend(H, K, s, p, u, beta, live, level: float) -> np.ndarray:
    """Step 1 for the machines `live`, whose beta changes in place; returns the steps of each."""
    s, p, u, b = s[live], p[live], u[live], beta[live]
    lo, hi = np.minimum(s * u, 0.0), np.maximum(s * u, 0.0)
    v = s * p - _times(K, b, live) if b.any() else s * p
    v2 = np.where([b < hi, b > lo], v, [[[-np.inf]], [[np.inf]]]).astype(H.dtype)
    first = np.where(s > 0, p, 0.0).max(1) + np.where(s < 0, p, 0.0).max(1)
    limit = 50 + PATIENCE * (u > 0).sum(1)
    steps, _ = together(H if len(live) == len(H) else H[live], v2, b, lo, hi, level * first, limit)
    beta[live] = b
    return steps


def _exact(K, s, p, u, beta, live) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(alpha, settled, rounds) of step 2 for the machines `live`, from their feasible beta."""
    every, s, p, u, beta = live, s[live], p[live], u[live], beta[live]
    goal, alpha, T = s * p, s * beta, len(live)
    v = goal - _times(K, beta, live)
    objective = -0.5 * (beta * (v + goal)).sum(1)
    noise = EXACT * np.maximum(np.abs(v).max(1), np.abs(goal).max(1))
    full, free = (alpha >= u) & (u > 0), (alpha > 0) & (alpha < u)
    settled = ~(free | full).any(1)  # nothing moved: one sign only, or nothing to gain
    rounds, at = np.zeros(T, int), np.flatnonzero(~settled)
    for _ in range(ROUNDS):
        if not len(at):
            break
        F, U, sl, ul, gl, who = free[at], full[at], s[at], u[at], goal[at], every[at]
        b = np.where(U, sl * ul, 0.0)
        bias = _free(K, who, F, gl - _times(K, b, who) if U.any() else gl, b)
        v = gl - _times(K, b, who)
        a = sl * b
        empty = ~F.any(1)
        if empty.any():
            bias[empty] = measure((gl - v)[empty], sl[empty], p[at[empty]], ul[empty], a[empty]).bias
        pull, eps = sl * (v - bias[:, None]), noise[at][:, None]
        over = F & (a > ul)
        new_F = (F & ~over & (a >= 0)) | (~F & ~U & (pull > eps) & (ul > 0)) | (U & (pull < -eps))
        new_U = over | (U & ~new_F)
        same = ((new_F == F) & (new_U == U)).all(1)
        rest = np.abs(np.where(F, pull, 0.0)).max(1) + np.abs(b.sum(1)) / (1e-300 + np.abs(b).sum(1))
        lower = -0.5 * (b * (v + gl)).sum(1) <= objective[at] + 1e-9 * np.abs(objective[at])
        alpha[at[same]] = a[same]
        settled[at[same]] = (lower & (rest <= 100 * noise[at]))[same]
        rounds[at] += 1
        free[at], full[at] = new_F, new_U
        at = at[~same & np.isfinite(bias)]
    return np.clip(alpha, 0.0, u), settled, rounds


def _free(K, who, F, right, beta) -> np.ndarray:
    """Solve the free beta, in place, and the bias of the machines `who`; nan where a system is singular."""
    count = F.sum(1)
    w = max(int(count.max()), 1)
    at = np.argsort(~F, axis=1, kind="stable")[:, :w]
    real, own = np.arange(w) < count[:, None], np.arange(len(F))[:, None]
    M = np.empty((len(F), w + 1, w + 1))
    M[:, :w, :w] = K[who[:, None, None], at[:, :, None], at[:, None, :]]
    if not real.all():
        M[:, :w, :w] *= real[:, :, None] & real[:, None, :]
        M[:, range(w), range(w)] += ~real
    M[:, :w, w] = M[:, w, :w] = real
    M[:, w, w] = count == 0
    b = np.zeros((len(F), w + 1, 1))
    b[:, :w, 0] = right[own, at] * real
    b[:, w, 0] = np.where(count > 0, -beta.sum(1), 0.0)
    try:
        found = np.linalg.solve(M, b)[:, :, 0]
    except np.linalg.LinAlgError:
        found = np.full(b.shape[:2], np.nan)
        for t in range(len(F)):
            try:
                found[t] = np.linalg.solve(M[t], b[t])[:, 0]
            except np.linalg.LinAlgError:
                pass
    beta[own, at] = np.where(real, found[:, :w], beta[own, at])
    return found[:, w]
