"""Duals to the last digit: a primal active-set method that starts from an approximate solution.

In beta = s a the dual is: minimise 1/2 b'Kb - (s p)'b with sum b = 0 and lo <= b <= hi. With the bounded variables
held, the free ones and the bias solve one linear system; a step that would leave the box stops at its side, and a
bounded variable that wants to move is freed. No step raises the objective. It cleans what interior points leave inside
the box (qp.py), and makes small machines exact, so that their answer does not depend on how it was reached: on the
order of the rows, on a weight of two or two equal rows, or on a processor's rounding.
"""

import numpy as np

from .dual import Dual, build

EXACT = 1e-11  # violation, relative to the largest |s p - K beta|, that counts as none


def finish(K, s: np.ndarray, p: np.ndarray, u: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """alpha of the exact solution, or the point reached when degenerate steps use up the patience."""
    lo, hi, goal = np.minimum(0.0, s * u), np.maximum(0.0, s * u), s * p
    beta = np.clip(s * alpha, lo, hi)
    width = np.minimum(hi - lo, np.abs(beta).max(initial=0.0))
    beta = np.where(beta - lo <= 1e-9 * width, lo, np.where(hi - beta <= 1e-9 * width, hi, beta))
    free = (beta > lo) & (beta < hi)
    for _ in range(20 + 4 * len(beta)):
        v = goal - K @ beta
        noise = EXACT * max(np.abs(v).max(initial=0.0), np.abs(goal).max(initial=0.0))
        if not free.any():
            up, low = np.where(beta < hi, v, -np.inf), np.where(beta > lo, v, np.inf)
            i, j = np.argmax(up), np.argmin(low)
            if not up[i] - low[j] > noise:
                break
            free[[i, j]] = True
        F = np.flatnonzero(free)
        step, bias = bordered(K[np.ix_(F, F)], v[F], -beta.sum())
        step -= (step.sum() + beta.sum()) / len(F)  # where K and the ones differ in size, rounding left a rest
        room = np.where(step > 0, hi[F] - beta[F], lo[F] - beta[F])
        with np.errstate(over="ignore"):
            ratio = np.divide(room, step, out=np.full(len(F), np.inf), where=step != 0)
        k = int(np.argmin(ratio))
        if ratio[k] < 1.0:
            beta[F] = np.clip(beta[F] + ratio[k] * step, lo[F], hi[F])
            beta[F[k]] = hi[F[k]] if step[k] > 0 else lo[F[k]]
            free[F[k]] = False
            continue
        beta[F] += step
        v = goal - K @ beta
        wants = np.where(free | (hi == lo), 0.0, np.where(beta <= lo, v - bias, bias - v))
        worst = int(np.argmax(wants))
        if wants[worst] <= noise:
            break
        free[worst] = True
    return s * beta


def bordered(K: np.ndarray, v: np.ndarray, total: float) -> tuple[np.ndarray, float]:
    """Step d and bias b with K d + b = v and sum d = total; the shortest step where K is singular."""
    n = len(v)
    system = np.ones((n + 1, n + 1))
    system[:n, :n], system[n, n] = K, 0.0
    right = np.append(v, total)
    try:
        found = np.linalg.solve(system, right)
        if np.abs(system @ found - right).max() > 1e-9 * max(np.abs(right).max(), 1e-300):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(system, right, rcond=1e-12)[0]
    return found[:n], float(found[n])


def sharpen(K: np.ndarray, y: np.ndarray, dual: Dual) -> Dual:
    """The exact Dual that `dual` approximates, or `dual` itself where (K not positive semidefinite) none is found."""
    s = np.where(np.asarray(y) < 0, -1.0, 1.0)
    alpha = finish(np.asarray(K, dtype=float), s, dual.linear, dual.upper, dual.alpha)
    exact = build(K, s, dual.linear, dual.upper, alpha, dual.n_iter, True)
    return exact if exact.kkt_violation <= dual.kkt_violation else dual
