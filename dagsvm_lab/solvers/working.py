r"""Two steps for a direct multiclass dual on a working set of rows (direct.py has it).

1. Descent by rows: the best a_i with all others held is

       a_im = clip(h_m - theta, 0, cap),

   h the point at which the derivative of a_im alone would vanish, theta found by
   sorting h (Crammer and Singer 2001, section 6).
2. Conjugate gradients on the free a_im: the matrix is one block of K a class, the sums
   sum_m c_im = 0 are met by subtracting a mean from every row; the step is projected,
   and halved until the dual falls, as it must by the first bound.

Step 1 finds which a_im are free, step 2 their values, which step 1 alone would need
hundreds of sweeps for. After both, a is in its bounds, F = K c, and the dual is not
above what it was. Large kernel blocks are float32; F is formed in float64 whenever the
working set changes, and judged so.

Reference: Crammer and Singer, "On the algorithmic implementation of multiclass
kernel-based vector machines", JMLR 2 (2001).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.blas import dger

from .dual import LARGEST_BOUND

FLAT = 1e-13  # of K's size: a direction with less curvature has none
NEAR_CAP = 1e-12  # of a shared bound: it is reached when less is left
DESCENT_ROWS = 1024  # rows whose kernel block step 1 takes at a time
GRADIENTS = 50  # conjugate gradients of a step 2 at most
REDUCTION = 0.1  # of the residual that step 2 stops at
DESCENT_SHARE = 0.1  # of the largest violation: rows with less rest in step 1


@dataclass(frozen=True)
class Loss:
    """Margin mu, and whether the a_im of a row share C_i (Crammer-Singer) or each has
    it.
    """

    margin: float
    shared: bool


CRAMMER_SINGER = Loss(1.0, True)
WESTON_WATKINS = Loss(2.0, False)


@dataclass(frozen=True)
class Task:
    """The dual of some rows, all but their kernel.

    Attributes
    ----------
    codes : (rows,) each row's own class.
    C : (rows,) each row's bound.
    n_classes, loss : of the machine.
    """

    codes: np.ndarray
    n_classes: int
    C: np.ndarray
    loss: Loss

    def part(self, rows: np.ndarray) -> Self:
        """The dual of some of the rows."""
        return Task(self.codes[rows], self.n_classes, self.C[rows], self.loss)

    @property
    def own(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of each row's own class in arrays (rows, classes)."""
        return np.arange(len(self.codes)), self.codes

    def shortfall(self, F: np.ndarray) -> np.ndarray:
        """r (rows, classes) where F = K c, with 0 in each row's own class."""
        r = F + (self.loss.margin - F[self.own])[:, None]
        r[self.own] = 0.0
        return r

    def violation(self, F: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Violation (rows,) of every row, >= 0; A holds a, 0 in each own class."""
        r = self.shortfall(F)
        may_shrink = A > 0
        if not self.loss.shared:
            may_grow = A < self.C[:, None]
            grows = np.where(may_grow, r, 0.0).max(axis=1)
            shrinks = np.where(may_shrink, r, 0.0).min(axis=1)
            return np.maximum(grows, -shrinks)
        # the own class stands for the slack
        slack = self.C - A.sum(axis=1)
        may_shrink[self.own] = slack > NEAR_CAP * self.C
        shrinks = np.where(may_shrink, r, np.inf).min(axis=1)
        worst = r.max(axis=1) - shrinks
        return np.where(self.C > 0, np.maximum(worst, 0.0), 0.0)

    def coefficients(self, A: np.ndarray) -> np.ndarray:
        """c (rows, classes) from a."""
        c = -A
        c[self.own] += A.sum(axis=1)
        return c

    def clip(self, A: np.ndarray) -> None:
        """Put A inside its bounds, in place."""
        np.maximum(A, 0.0, out=A)
        if self.loss.shared:
            total = A.sum(axis=1)
            over = total > self.C
            A[over] *= (self.C[over] / total[over])[:, None]
        else:
            np.minimum(A, self.C[:, None], out=A)


class Working:
    """The dual on a working set, on which both steps work.

    Attributes
    ----------
    K : kernel block, float32 when large.
    F, A : (rows, classes) values and variables, in float64; they change.
    """

    def __init__(self, K: np.ndarray, F: np.ndarray, A: np.ndarray, task: Task):
        self.K = K
        self.F = F.copy()
        self.A = A.copy()
        self.task = task
        self.diagonal = np.maximum(np.diagonal(K), 1e-12).tolist()
        self.scale = float(np.mean(self.diagonal))

    def solve(self, tol: float, limit: int) -> int:
        """Rounds of both steps until the violation is at most tol; at most `limit`."""
        for done in range(limit):
            violation = self.task.violation(self.F, self.A)  # (rows,)
            worst = violation.max(initial=0.0)
            if worst <= tol:
                return done
            self.descend(violation, max(DESCENT_SHARE * worst, 0.5 * tol))
            self.newton()
        return limit

    def _move(self, rows: np.ndarray, D: np.ndarray) -> None:
        """Add K's rows times D, what c changed by there, to F."""
        changed = D.any(axis=1)
        if changed.any():
            D = D[changed].astype(self.K.dtype)
            self.F += self.K[rows[changed]].T @ D

    def descend(self, v: np.ndarray, floor: float) -> None:
        """Do step 1 on the rows whose violation v exceeds `floor`, the worst first."""
        todo = np.flatnonzero(v > floor)
        todo = todo[np.argsort(-v[todo], kind="stable")]
        for k in range(0, len(todo), DESCENT_ROWS):
            rows = todo[k : k + DESCENT_ROWS]
            part = self.task.part(rows)
            A = self._descend_rows(rows, part)
            D = part.coefficients(A - self.A[rows])
            self.A[rows] = A
            self._move(rows, D)

    def _descend_rows(self, rows: np.ndarray, part: Task) -> np.ndarray:
        """a of some rows after step 1 on each, one after the other."""
        K = self.K[np.ix_(rows, rows)].astype(float)
        F = self.F[rows]  # copies: what a row moves, the next ones have to see
        A = self.A[rows]
        turned = F.T  # a view, in the order that dger writes to
        for i, y in enumerate(part.codes.tolist()):
            f = F[i]
            a = A[i]
            h = f + (part.loss.margin - f[y])
            h /= self.diagonal[rows[i]]
            h += a
            h += a.sum()
            h[y] = -np.inf
            new = row_optimum(h, part.C[i], part.loss)
            step = a - new
            step[y] = -step.sum()
            A[i] = new
            dger(1.0, step, K[i], a=turned, overwrite_a=1)  # F += K_i step', in place
        return A

    def newton(self) -> None:
        """Do step 2."""
        free = self._free()
        m, i = np.nonzero(free.T)  # sorted by class
        if len(i) == 0:
            return
        system = _FreeSystem(self.K, i, m, free)
        mine = self.task.codes[i] == m
        margin = self.task.loss.margin
        # d changes the free c_im; c = -a in all classes but the own
        right = margin * mine - self.F[i, m]
        d, flat = system.solve(right, self.scale)
        change = np.zeros_like(self.A)
        change[i[~mine], m[~mine]] = -d[~mine]
        self._go_along(change, system, flat)

    def _go_along(self, change: np.ndarray, system: "_FreeSystem", flat: bool) -> None:
        """Add `change` to A, or a share of it: the step is halved until the dual falls.

        Along a flat one, which falls until bounds stop it, the step starts at the last
        bound, and is an eighth from one try to the next.
        """
        first, last = self._reach(change)
        t = last if flat else 1.0
        while t > 0:
            new = self.A + t * change
            self.task.clip(new)
            D = self.task.coefficients(new - self.A)
            if self._added(D, system) < 0:
                self.A = new
                self._move(np.arange(len(new)), D)
                return
            if t <= first:
                return  # rounding is all that is left
            # up to the first bound the dual is sure to fall
            t = max(t / (8 if flat else 2), first)

    def _added(self, D: np.ndarray, system: "_FreeSystem") -> float:
        """What a change D of c, at the free variables of `system`, adds to the dual."""
        of_own = D[self.task.own].sum()
        slope = np.sum(self.F * D) - self.task.loss.margin * of_own
        moved = D[system.i, system.m]
        return slope + 0.5 * (moved @ system.times(moved))

    def _free(self) -> np.ndarray:
        """Which variables (rows, classes) are free; own classes stand for the slack."""
        task = self.task
        free = self.A > 0
        if task.loss.shared:
            free[task.own] = self.A.sum(axis=1) < task.C * (1 - NEAR_CAP)
        else:
            free &= self.A < task.C[:, None]
            free[task.own] = True
        free[free.sum(axis=1) < 2] = False
        return free

    def _reach(self, change: np.ndarray) -> tuple[float, float]:
        """(smallest, largest) multiple of `change` at which a bound of A is met."""
        falls = change < 0
        with np.errstate(over="ignore"):
            ratios = [self.A[falls] / -change[falls]]
            if self.task.loss.shared:
                growth = change.sum(axis=1)
                grows = growth > 0
                room = self.task.C - self.A.sum(axis=1)
                ratios.append(np.maximum(room[grows], 0.0) / growth[grows])
            else:
                rises = change > 0
                room = self.task.C[:, None] - self.A
                ratios.append(room[rises] / change[rises])
        ratios = np.minimum(np.concatenate(ratios), LARGEST_BOUND)
        return (ratios.min(), ratios.max()) if len(ratios) else (np.inf, 1.0)


class _FreeSystem:
    """The matrix of step 2: a block of K a class, projected to sums of 0 in rows.

    Attributes
    ----------
    i, m : (free variables,) each one's row and class, sorted by class.
    spans, blocks : of each class, where its variables are, and K of their rows.
    weight : (free variables,) 1 over how many are free in each one's row.
    """

    def __init__(self, K: np.ndarray, i: np.ndarray, m: np.ndarray, free: np.ndarray):
        ends = np.searchsorted(m, np.arange(free.shape[1] + 1))
        self.spans = list(map(slice, ends[:-1], ends[1:]))
        self.blocks = [K[np.ix_(i[span], i[span])] for span in self.spans]
        self.dtype = K.dtype
        self.i = i
        self.m = m
        self.rows = len(free)
        self.weight = 1.0 / free.sum(axis=1)[i]

    def times(self, d: np.ndarray) -> np.ndarray:
        """The blocks times d."""
        d = d.astype(self.dtype)
        pairs = zip(self.blocks, self.spans, strict=True)
        return np.concatenate([K @ d[span] for K, span in pairs]).astype(float)

    def project(self, d: np.ndarray) -> np.ndarray:
        """d without its mean in every row."""
        total = np.bincount(self.i, d, self.rows)
        return d - total[self.i] * self.weight

    def solve(self, right: np.ndarray, scale: float) -> tuple[np.ndarray, bool]:
        """(d, whether it is flat) by conjugate gradients from 0.

        Where the first direction has no curvature, there is nothing to solve for: the
        dual falls along it until a bound is met.
        """
        r = self.project(right)
        d = np.zeros(len(r))
        p = r
        square = r @ r
        goal = REDUCTION * np.abs(r).max()
        for step in range(GRADIENTS):
            Kp = self.project(self.times(p))
            curvature = p @ Kp
            if curvature <= FLAT * (p @ p) * scale:
                return (p, True) if step == 0 else (d, False)
            length = square / curvature
            d += length * p
            r = r - length * Kp
            if np.abs(r).max() <= goal:
                break
            before = square
            square = r @ r
            p = r + square / before * p
        return d, False


def row_optimum(h: np.ndarray, C: float, loss: Loss) -> np.ndarray:
    """a_i = clip(h - theta, 0, cap), theta = sum a_i or, if that is above C, a sum of
    C.

    The own class's h is -inf, and its a 0.
    """
    falling = sorted(h.tolist(), reverse=True)  # a list: its items are read one by one
    cap = np.inf if loss.shared else C
    full = 0  # the largest `full` of h are at the cap
    while True:
        at_cap = full * cap if full else 0.0  # the cap may be infinite
        theta = _level(falling[full:], at_cap, 1)
        if falling[full] - theta <= cap:
            break
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
