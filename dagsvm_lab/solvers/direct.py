r"""The two direct multiclass machines, Crammer and Singer's and Weston and Watkins's: exact, and by decomposition.

One weight vector a class, f_m(x) = <w_m, x> + b_m, the largest wins; the biases are weights on a constant input
(Hsu and Lin 2002), so K stands for k(x_i, x_j) + 1 throughout. With margin mu the primal is

    minimise  1/2 sum_m |w_m|^2 + sum_i C_i loss_i,        r_im = mu - f_{y_i}(x_i) + f_m(x_i)  for m != y_i,
    Crammer-Singer (2001):   mu = 1,  loss_i = max(0, max_m r_im)
    Weston-Watkins (1999):   mu = 2,  loss_i = sum_m max(0, r_im)

and the dual, with a_im >= 0 for m != y_i, c_im = -a_im, c_{i,y_i} = sum_m a_im and w_m = sum_i c_im x_i,

    minimise  1/2 sum_m c_m' K c_m - mu sum_i c_{i,y_i}
    Crammer-Singer:  sum_m a_im <= C_i          Weston-Watkins:  a_im <= C_i.

The derivative with respect to a_im is -r_im. A row is in order when what may grow has no larger r than what may
shrink, where Crammer-Singer's slack C_i - sum_m a_im is one more variable with r = 0: the violation of a row is
that difference, and the solver stops when none exceeds tol. Then the gap between primal and dual is at most
tol sum_i C_i for Crammer-Singer and, with N classes, (N - 1) tol sum_i C_i for Weston-Watkins.

`direct_qp` is the interior point program of qp.py: in x_im = |c_im| the matrix is one +-K per class on the diagonal.

`solve_direct` alternates two steps on a working set that grows by the rows that violate.
1. Descent by rows: the best a_i given all others is a_im = clip(h_m - theta, 0, cap) with h the point at which the
   derivative of a_im alone would vanish, and theta found by sorting h (Crammer and Singer 2001, section 6).
2. Conjugate gradients on the free a_im: the matrix is one block of K per class, the constraint sum_m c_im = 0 is a
   mean subtracted per row; the step is projected, and halved until the dual falls, as it must by the first bound.
Step 1 finds which a_im are free, step 2 their values, which step 1 alone would need hundreds of sweeps for.
Large kernel blocks are float32; the values f are renewed in float64 whenever the working set changes, and
judged so.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dger

from .dual import warn
from .qp import interior_point, positive_solver


@dataclass(frozen=True)
class Loss:
    """Margin mu, and whether the a_im of a row share the bound C_i (Crammer-Singer) or have it each."""

    margin: float
    shared: bool


CRAMMER_SINGER = Loss(1.0, True)
WESTON_WATKINS = Loss(2.0, False)
SINGLE = 1000  # working sets beyond this many rows keep their kernel block in float32
FLAT = 1e-13  # a direction with less curvature than this share of K's size has none
NEAR = 1e-12  # a shared bound is reached when less than this share of it is left


@dataclass(frozen=True)
class DirectDual:
    """A solution: `coef` (n_samples, n_classes) holds c, and the rest is its certificate."""

    coef: np.ndarray
    objective: float
    primal_objective: float
    gap: float
    kkt_violation: float
    n_iter: int
    converged: bool


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


def certificate(F, A, codes, C, loss: Loss, n_iter: int, converged: bool) -> DirectDual:
    """The `DirectDual` of A, where F = K c in float64."""
    own = np.arange(len(codes)), codes
    c = coefficients(A, codes)
    r = np.maximum(shortfall(F, codes, loss), 0.0)
    quadratic = 0.5 * np.sum(c * F)
    dual = quadratic - loss.margin * c[own].sum()
    primal = quadratic + C @ (r.max(axis=1) if loss.shared else r.sum(axis=1))
    worst = violation(F, A, codes, C, loss).max(initial=0.0)
    return DirectDual(c, float(dual), float(primal), float(primal + dual), float(worst), n_iter, converged)


def coefficients(A: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """c from a (whose own-class entries are 0)."""
    c = -A
    c[np.arange(len(codes)), codes] += A.sum(axis=1)
    return c


def direct_qp(K, codes, n_classes: int, C, loss: Loss, tol: float = 1e-8) -> DirectDual:
    """The exact `DirectDual` (gap at most `tol`, relative) on a kernel matrix that has the 1 of the biases.

    For small data: a step costs one Cholesky factor of K per class and one for the constraints, n^3 (classes + 1).
    """
    K, n = np.asarray(K, float), len(codes)
    C = np.array(np.broadcast_to(C, n), float)
    rows = np.flatnonzero(C > 0)
    gram, y, cap = K[np.ix_(rows, rows)], codes[rows], C[rows]
    natural, bound, best = loss.margin / (np.abs(np.diagonal(gram)).mean() or 1.0), cap.max(), None
    for t in [bound] if bound <= natural else [natural, np.sqrt(natural * bound), bound]:  # as in qp.py
        A = np.zeros((n, n_classes))
        A[rows], steps = _interior(gram, y, n_classes, cap, loss, t)
        for polish in (0, 50):  # what is left of the gap is a few variables' sides, which step 2 below settles
            part = _Working(K, K @ coefficients(A, codes), A, codes, C, loss)
            part.solve(1e-10 * loss.margin, polish)
            done = certificate(K @ coefficients(part.A, codes), part.A, codes, C, loss, steps, True)
            if best is None or done.gap < best.gap:
                best = done
            if best.gap <= tol * abs(best.objective):
                return best
    warn(f"direct_qp: duality gap {best.gap:.2e} at objective {best.objective:.6g}")
    return replace(best, converged=False)


def _interior(gram, y, k: int, cap, loss: Loss, t: float) -> tuple[np.ndarray, int]:
    """(A, steps) by interior points in x = |c| / t."""
    size, scale = len(y), t / loss.margin
    sign = np.where(np.arange(k)[:, None] == y, 1.0, -1.0)  # c = sign x

    def solver(D):
        pairs = zip(sign, D.reshape(k, -1), strict=True)
        solves = [positive_solver(scale * gram * np.outer(s, s) + np.diag(d)) for s, d in pairs]

        def solve(r):
            parts = r.reshape(k, size, -1)
            return np.concatenate([f(part) for f, part in zip(solves, parts, strict=True)]).reshape(r.shape)

        return solve

    x, low, high, steps = interior_point(
        lambda x: scale * (sign * ((sign * x.reshape(k, -1)) @ gram)).ravel(),
        solver,
        np.where(sign > 0, -1.0, 0.0).ravel(),
        np.hstack([np.diag(s) for s in sign]),
        np.zeros(size),
        np.where((sign > 0) == loss.shared, cap / t, np.inf).ravel(),
        1e-9,
    )
    a = np.where((sign > 0) | low.reshape(k, -1), 0.0, np.maximum(t * x.reshape(k, -1), 0.0))
    high = high.reshape(k, -1)
    if loss.shared:
        total = a.sum(axis=0)
        full = (total > 0) & ((high & (sign > 0)).any(axis=0) | (total > cap))
        a[:, full] *= cap[full] / total[full]
    else:
        a = np.where(high & (sign < 0), cap, np.minimum(a, cap))
    return a.T, steps


def solve_direct(
    block: Callable,
    codes: np.ndarray,
    n_classes: int,
    C,
    loss: Loss,
    tol: float = 1e-3,
    *,
    max_iter: int = -1,
    cache_size: float = 2000,
    start: int = 2000,
    verbose: int = 0,
) -> DirectDual:
    """The `DirectDual` by decomposition; `block(rows, columns)` gives kernel values, with the 1 of the biases.

    `max_iter` limits the rounds of descent and conjugate gradients; -1 stands for 2,000. `cache_size` (MB)
    limits the working set's kernel matrix; the rows that violate most have the first right to a place in it.
    """
    n = len(codes)
    C = np.array(np.broadcast_to(C, n), float)
    A, F = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    by_class = np.argsort(codes, kind="stable")
    most = max(2, int(np.sqrt(cache_size * 2**20 / 4)))
    work = np.sort(by_class[:: -(-n // min(start, most))])
    limit, rounds, wide = (max_iter if max_iter >= 0 else 2000), 0, tol
    while True:
        K = np.empty((len(work), len(work)), np.float64 if len(work) <= SINGLE else np.float32)
        for k in range(0, len(work), 1024):  # by parts, so that no large float64 matrix is ever whole
            K[k : k + 1024] = block(work[k : k + 1024], work)
        part = _Working(K, F[work], A[work], codes[work], C[work], loss)
        rounds += part.solve(max(tol, 0.1 * wide) if len(work) < n else tol, limit - rounds)
        A[work] = part.A
        F = _products(block, coefficients(A, codes))
        v = violation(F, A, codes, C, loss)
        wide = v.max(initial=0.0)
        if verbose:
            print(f"{len(work)} of {n} rows, {rounds} rounds: largest violation {wide:.3g}")
        if wide <= tol or rounds >= limit:
            break
        inside = np.zeros(n, dtype=bool)
        inside[work] = True
        new = np.flatnonzero(~inside & (v > 0.5 * tol))
        new = new[np.argsort(-v[new], kind="stable")[: max(len(work), start)]]
        if len(work) + len(new) > most:
            useful = A.any(axis=1) + v
            new = new[: max(most // 2, most - len(work))]
            work = work[np.argsort(-useful[work], kind="stable")[: most - len(new)]]
        work = np.union1d(work, new)
    done = certificate(F, A, codes, C, loss, rounds, bool(wide <= tol))
    if not done.converged:
        warn(f"direct machine: {rounds} rounds ended at a violation of {wide:.2e}, above tol={tol}")
    return done


def _products(block, c, rows: int = 1024) -> np.ndarray:
    """K c in float64, by blocks of rows."""
    support = np.flatnonzero(c.any(axis=1))
    take = np.arange(len(c))
    parts = [block(take[k : k + rows], support) @ c[support] for k in range(0, len(c), rows)]
    return np.concatenate(parts)


class _Working:
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
        """Nothing; adds D to c's `rows` in F."""
        changed = D.any(axis=1)
        if changed.any():
            self.F += self.K[rows[changed]].T @ D[changed].astype(self.K.dtype)

    def descend(self, v, floor: float, size: int = 1024) -> None:
        """Nothing; step 1 over the rows whose violation exceeds `floor`, the worst first."""
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
        """Nothing; step 2."""
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
        ratios = [self.A[change < 0] / -change[change < 0]]
        if self.loss.shared:
            room, growth = self.C - self.A.sum(axis=1), change.sum(axis=1)
            ratios.append(np.maximum(room[growth > 0], 0.0) / growth[growth > 0])
        else:
            ratios.append((self.C[:, None] - self.A)[change > 0] / change[change > 0])
        ratios = np.concatenate(ratios)
        return (ratios.min(), ratios.max()) if len(ratios) else (np.inf, 1.0)

    def clip(self, A) -> None:
        """Nothing; puts A inside its bounds."""
        np.maximum(A, 0.0, out=A)
        if self.loss.shared:
            total = A.sum(axis=1)
            over = total > self.C
            A[over] *= (self.C[over] / total[over])[:, None]
        else:
            np.minimum(A, self.C[:, None], out=A)


def row_optimum(h: np.ndarray, C: float, loss: Loss) -> np.ndarray:
    """a_i = clip(h - theta, 0, cap) with theta = sum a_i, or with sum a_i = C where that sum would exceed it."""
    falling = sorted(h.tolist(), reverse=True)
    cap = np.inf if loss.shared else C
    full = 0  # the largest `full` of h are at the cap
    while True:
        total = full * cap if full else 0.0
        theta, count = total, 1
        for value in falling[full:]:
            if value <= theta:
                break
            total += value
            count += 1
            theta = total / count
        if falling[full] - theta <= cap:
            break
        full += 1
    if loss.shared and theta > C:
        total = -C
        for count, value in enumerate(falling, 1):
            total += value
            theta = total / count
            if falling[count] <= theta:  # the last is the own class's -inf
                break
        a = np.maximum(h - theta, 0.0)
        return a * (C / a.sum())  # exactly on its bound, whatever theta lost
    return np.clip(h - theta, 0.0, cap)
