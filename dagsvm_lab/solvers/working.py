r"""Two steps for a direct multiclass dual (direct.py has it, and its letters) on a working set of rows.

1. Descent by rows: the best a_i given all others is a_im = clip(h_m - theta, 0, cap) with h the point at which the
   derivative of a_im alone would vanish, and theta found by sorting h (Crammer and Singer 2001, section 6).
2. Conjugate gradients on the free a_im: the matrix is one block of K per class, the constraint sum_m c_im = 0 is a
   mean subtracted per row; the step is projected, and halved until the dual falls, as it must by the first bound.
Step 1 finds which a_im are free, step 2 their values, which step 1 alone would need hundreds of sweeps for.
Large kernel blocks are float32; the values f are renewed in float64 whenever the working set changes, and
judged so.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger

from .dual import LARGEST


@dataclass(frozen=True)
class Loss:
    """Margin mu, and whether the a_im of a row share the bound C_i (Crammer-Singer) or have it each."""

    margin: float
    shared: bool


CRAMMER_SINGER = Loss(1.0, True)
WESTON_WATKINS = Loss(2.0, False)
FLAT = 1e-13  # a direction with less curvature than this share of K's size has none
NEAR = 1e-12  # a shared bound is reached when less than this share of it is left


def shortfall(F: np.ndarray, codes: np.ndarray, loss: Loss) -> np.ndarray:
    """r, with 0 in each row's own class."""
    own = np.arange(len(codes)), codes
    r = F + (loss.margin - F[own])[:, None]
    r[own] = 0.0
    return r


def violation(F, A, codes, C, loss: Loss) -> np.ndarray:
    """Violation of every row, >= 0; A holds a with 0 in each row's own class."""
    own = np.arange(len(codes)), codes
    r = shortfall(F, codes, loss)
    if loss.shared:
        slack = C - A.sum(axis=1)
        A = A.copy()
        A[own] = np.where(slack > NEAR * C, slack, 0.0)
        grows, shrinks = r.max(axis=1), np.where(A > 0, r, np.inf).min(axis=1)
        return np.where(C > 0, np.maximum(grows - shrinks, 0.0), 0.0)
    grows = np.where(A < C[:, None], r, 0.0).max(axis=1)
    shrinks = np.where(A > 0, r, 0.0).min(axis=1)
    return np.maximum(grows, -shrinks)


def coefficients(A: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """c from a (whose own-class entries are 0)."""
    c = -A
    c[np.arange(len(codes)), codes] += A.sum(axis=1)
    return c


class Working:
    """The dual on a working set: a kernel block (float32 when large), values F and variables A in float64."""

    def __init__(self, K, F, A, codes, C, loss: Loss):
        self.K, self.F, self.A = K, F.copy(), A.copy()
        self.codes, self.C, self.loss = codes, C, loss
        self.diagonal = np.maximum(np.diagonal(K), 1e-12).tolist()
        self.scale = float(np.mean(self.diagonal))
        self.own = np.arange(len(codes)), codes

    def solve(self, tol: float, limit: int) -> int:
        """Rounds done until the violation is at most tol."""
        for done in range(limit):
            v = violation(self.F, self.A, self.codes, self.C, self.loss)
            worst = v.max(initial=0.0)
            if worst <= tol:
                return done
            self.descend(v, max(0.1 * worst, 0.5 * tol))
            self.newton()
        return limit

    def move(self, rows, D) -> None:
        """Add D to c's `rows` in F."""
        changed = D.any(axis=1)
        if changed.any():
            self.F += self.K[rows[changed]].T @ D[changed].astype(self.K.dtype)

    def descend(self, v, floor: float, size: int = 1024) -> None:
        """Do step 1 over the rows whose violation exceeds `floor`, the worst first."""
        todo = np.flatnonzero(v > floor)
        todo = todo[np.argsort(-v[todo], kind="stable")]
        for k in range(0, len(todo), size):
            rows = todo[k : k + size]
            K = self.K[np.ix_(rows, rows)].astype(float)
            F, before = self.F[rows], self.A[rows]
            A, turned = before.copy(), F.T
            for i, (row, y) in enumerate(zip(rows.tolist(), self.codes[rows].tolist(), strict=True)):
                f, a = F[i], A[i]
                h = f + (self.loss.margin - f[y])
                h /= self.diagonal[row]
                h += a
                h += a.sum()
                h[y] = -np.inf
                new = row_optimum(h, self.C[row], self.loss)
                step = a - new
                step[y] = -step.sum()
                A[i] = new
                dger(1.0, step, K[i], a=turned, overwrite_a=1)  # F += K_i step', in place
            self.A[rows] = A
            self.move(rows, coefficients(A - before, self.codes[rows]))

    def newton(self, steps: int = 50, reduction: float = 0.1) -> None:
        """Do step 2."""
        A, own, margin = self.A, self.own, self.loss.margin
        free = A > 0
        if self.loss.shared:
            free[own] = A.sum(axis=1) < self.C * (1 - NEAR)
        else:
            free &= A < self.C[:, None]
            free[own] = True
        free[free.sum(axis=1) < 2] = False
        m, i = np.nonzero(free.T)  # sorted by class
        if len(i) == 0:
            return
        ends = np.searchsorted(m, np.arange(A.shape[1] + 1))
        spans = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        blocks = [self.K[np.ix_(i[span], i[span])] for span in spans]
        count = free.sum(axis=1)
        weight = 1.0 / count[i]

        def times(d):
            d = d.astype(self.K.dtype)
            return np.concatenate([K @ d[span] for K, span in zip(blocks, spans, strict=True)]).astype(float)

        def project(d):
            return d - (np.bincount(i, d, len(count))[i] * weight)

        mine = self.codes[i] == m
        r = project(margin * mine - self.F[i, m])
        d, p, square, goal = np.zeros(len(r)), r, r @ r, reduction * np.abs(r).max()
        flat = False
        for step in range(steps):
            Kp = project(times(p))
            curvature = p @ Kp
            if curvature <= FLAT * (p @ p) * self.scale:
                if flat := step == 0:  # nothing to solve for: the dual falls along p until a bound is met
                    d = p
                break
            d += square / curvature * p
            r = r - square / curvature * Kp
            if np.abs(r).max() <= goal:
                break
            square, old = r @ r, square
            p = r + square / old * p
        change = np.zeros_like(A)
        change[i[~mine], m[~mine]] = -d[~mine]
        first, last = self.reach(change)
        t = last if flat else 1.0
        while t > 0:
            new = A + t * change
            self.clip(new)
            D = coefficients(new - A, self.codes)
            moved = D[i, m]
            if np.sum(self.F * D) - margin * D[own].sum() + 0.5 * (moved @ times(moved)) < 0:
                self.A = new
                self.move(np.arange(len(A)), D)
                return
            if t <= first:
                return  # rounding is all that is left
            t = max(t / (8 if flat else 2), first)  # up to the first bound the dual is sure to fall

    def reach(self, change) -> tuple[float, float]:
        """(smallest, largest) multiple of `change` at which some bound of A is met."""
        with np.errstate(over="ignore"):
            ratios = [self.A[change < 0] / -change[change < 0]]
            if self.loss.shared:
                room, growth = self.C - self.A.sum(axis=1), change.sum(axis=1)
                ratios.append(np.maximum(room[growth > 0], 0.0) / growth[growth > 0])
            else:
                ratios.append((self.C[:, None] - self.A)[change > 0] / change[change > 0])
        ratios = np.minimum(np.concatenate(ratios), LARGEST)
        return (ratios.min(), ratios.max()) if len(ratios) else (np.inf, 1.0)

    def clip(self, A) -> None:
        """Put A inside its bounds."""
        np.maximum(A, 0.0, out=A)
        if self.loss.shared:
            total = A.sum(axis=1)
            over = total > self.C
            A[over] *= (self.C[over] / total[over])[:, None]
        else:
            np.minimum(A, self.C[:, None], out=A)


def row_optimum(h: np.ndarray, C: float, loss: Loss) -> np.ndarray:
    """a_i = clip(h - theta, 0, cap) with theta = sum a_i, or with sum a_i = C where that sum would exceed it."""
    falling = sorted(h.tolist(), reverse=True)  # the last is the own class's -inf
    cap = np.inf if loss.shared else C
    full = 0  # the largest `full` of h are at the cap
    while falling[full] - (theta := _level(falling[full:], full * cap if full else 0.0, 1)) > cap:
        full += 1
    if loss.shared and theta > C:
        a = np.maximum(h - _level(falling, -C, 0), 0.0)
        if not a.any():  # C is within the rounding of theta
            a = (h == falling[0]).astype(float)
        return a * (C / a.sum())  # exactly on its bound, whatever theta lost
    return np.clip(h - theta, 0.0, cap)


def _level(falling: list[float], total: float, count: int) -> float:
    """theta = (total + sum of the values above theta) / (count + their number)."""
    theta = total if count else -np.inf
    for value in falling:
        if value <= theta:
            break
        total += value
        count += 1
        theta = total / count
    return theta
