"""Stacked duals to the last digit: Newton's method on all free variables of all machines at once.

In beta = s a the dual is: minimise 1/2 b'Kb - goal'b with sum b = total and b between 0 and s u. (A whole dual has
goal = s p and total = 0; for active rows, goal and total hold what the others contribute.) The primal-dual active set
method (Hintermueller, Ito, Kunisch 2003), which for a support vector machine is Newton's method on the optimality
conditions (Chapelle 2007): each row is at 0, at its bound, or free. With the others held, the free beta and the bias
solve

    K_FF beta_F + bias = (goal - K beta)_F,    sum beta = total.

Then a free beta outside its box goes to the side that it left by, and a row at a side whose v - bias pulls inwards
becomes free, v = goal - K beta. When no row changes, all conditions hold: the point is the exact solution. It is not
monotone: a machine may go round in circles, end above its start (only if K is not positive semidefinite), or meet a
singular system. Those are not settled, and the caller goes on from where it was.

References: Hintermueller, Ito, Kunisch, "The primal-dual active set strategy as a semismooth Newton method", SIAM J.
Optim. 13 (2003); Chapelle, "Training a support vector machine in the primal", Neural Computation 19 (2007).
"""

import numpy as np

from .active import EXACT
from .dual import measure
from .table import Table

ROUNDS = 8  # linear systems; most machines need 1 to 4. Vehicle, C = 100: with 4 it takes 3.3 times as long, 16 1.02
GROWTH = 1.5  # free rows over those of the start: with more, machines stray. Segment, C = 100: 1.25 1.03, never 1.35
CELLS = 1 << 17  # entries of the systems formed at a time. Vowel, five C: an eighth .98, eight times 1.24
RIDGE = 1e-13  # of a free row's K_ii: rows that are equal share their beta, where the system would be singular


def exact(table: Table, s, u, goal, beta, live, total=0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solve the machines `live` of `table`, of which all else is given; returns (beta, v, settled, rounds)."""
    alpha, total = s * beta, np.broadcast_to(np.asarray(total, float), len(live))
    full, free = (alpha >= u) & (u > 0), (alpha > 0) & (alpha < u)
    held = np.where(full, s * u, 0.0)  # beta of the full rows, and K times it, which changes little from round to round
    of_held = table.times(held, live) if full.any() else np.zeros(held.shape)
    v, beta = goal - of_held - table.times(np.where(full, 0.0, beta), live), beta.copy()
    objective = -0.5 * (beta * (v + goal)).sum(1)
    noise = EXACT * np.maximum(np.abs(v).max(1), np.abs(goal).max(1))
    settled = ~(free | full).any(1)  # nothing moved: one sign only, or nothing to gain
    rounds, at = np.zeros(len(live), int), np.flatnonzero(~settled)
    most = GROWTH * free.sum(1) + 8 if table.units > 1 else np.full(len(live), np.inf)
    for _ in range(ROUNDS):
        if not len(at):
            break
        F, U, sl, ul, gl, who = free[at], full[at], s[at], u[at], goal[at], live[at]
        b = np.where(U, sl * ul, 0.0)
        if (new := b - held[at]).any():
            held[at], of_held[at] = b, of_held[at] + table.times(new, who)
        right = gl - of_held[at]
        bias = _free(table, who, F, right, b, total[at])
        new_v = right - table.times(np.where(F, b, 0.0), who) if table.units > 1 else gl - table.times(b, who)
        a = sl * b
        empty = ~F.any(1)
        if empty.any():
            bias[empty] = measure((gl - new_v)[empty], sl[empty], (sl * gl)[empty], ul[empty], a[empty]).bias
        pull, eps = sl * (new_v - bias[:, None]), noise[at][:, None]
        over = F & (a > ul)
        new_F = (F & ~over & (a >= 0)) | (~F & ~U & (pull > eps) & (ul > 0)) | (U & (pull < -eps))
        new_U = over | (U & ~new_F)
        same = ((new_F == F) & (new_U == U)).all(1)
        rest = np.abs(np.where(F, pull, 0.0)).max(1)
        rest += np.abs(b.sum(1) - total[at]) / (1e-300 + np.abs(b).sum(1)) * np.abs(gl).max(1)
        lower = -0.5 * (b * (new_v + gl)).sum(1) <= objective[at] + 1e-9 * np.abs(objective[at])
        good = same & lower & (rest <= 100 * noise[at])
        beta[at[good]], v[at[good]], settled[at[good]] = np.where(a > ul, sl * ul, b)[good], new_v[good], True
        rounds[at] += 1
        free[at], full[at] = new_F, new_U
        at = at[~same & np.isfinite(bias) & (new_F.sum(1) <= most[at])]
    return beta, v, settled, rounds


def _free(table, who, F, right, beta, total) -> np.ndarray:
    """Solve the free beta, in place, and the bias of the machines `who`; nan where a system is singular."""
    count, bias, first = F.sum(1), np.empty(len(F)), 0
    order = np.argsort(-count, kind="stable")
    while first < len(F):
        w = max(int(count[order[first]]), 1)
        part = order[first : first + CELLS // w**2 + 1]
        at = np.argsort(~F[part], axis=1, kind="stable")[:, :w]
        own, real = part[:, None], np.arange(w) < count[part, None]
        found = _bordered(table, who[part], at, real, right[own, at], total[part] - beta[part].sum(1))
        beta[own, at] = np.where(real, found[:, :w], beta[own, at])
        bias[part] = found[:, w]
        first += len(part)
    return bias


def _bordered(table, who, at, real, right, rest) -> np.ndarray:
    """Solutions (beta, bias) of K beta + bias = right on the rows `at` that are `real`, with sum beta = rest."""
    P, w = at.shape
    M = np.empty((P, w + 1, w + 1))
    M[:, :w, :w] = table.square(who, np.where(real, at, at[:, :1]))
    if not real.all():
        M[:, :w, :w] *= real[:, :, None] & real[:, None, :]
        M[:, range(w), range(w)] += ~real
    M[:, :w, w] = M[:, w, :w] = real
    M[:, w, w] = ~real[:, 0]
    M[:, range(w), range(w)] *= 1.0 + RIDGE
    b = np.zeros((P, w + 1, 1))
    b[:, :w, 0] = right * real
    b[:, w, 0] = np.where(real[:, 0], rest, 0.0)
    return _solved(M, b)


def _solved(M, b) -> np.ndarray:
    """Solutions of the stacked systems; nan where one is singular."""
    try:
        return np.linalg.solve(M, b)[:, :, 0]
    except np.linalg.LinAlgError:
        if len(M) == 1:
            return np.full(b.shape[:2], np.nan)
        return np.concatenate([_solved(*part) for part in zip(np.array_split(M, 2), np.array_split(b, 2), strict=True)])
