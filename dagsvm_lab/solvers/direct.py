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
that difference, and the solvers stop when none exceeds tol. Then gap <= tol sum_im a_im + tol sum_i C_i (classes).

`direct_qp` is the interior point program of qp.py: in x_im = |c_im| the matrix is one +-K per class on the diagonal.

`solve_direct` alternates two steps on a working set that grows by the rows that violate.
1. Descent by rows: the best a_i given all others is a_im = clip(h_m - theta, 0, cap) with h the point at which the
   derivative of a_im alone would vanish, and theta found by sorting h (Crammer and Singer 2001, section 6).
2. Conjugate gradients on the free a_im: the matrix is one block of K per class, the constraint sum_m c_im = 0 is a
   mean subtracted per row; the step is projected, and halved until the dual falls.
Step 1 finds which a_im are free, step 2 their values, which step 1 alone would need hundreds of sweeps for.
Large kernel blocks are float32; the values f are renewed in float64 whenever the working set changes, and
judged so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger

from .dual import warn
from .qp import interior_point


@dataclass(frozen=True)
class Loss:
    """Margin mu, and whether the a_im of a row share the bound C_i (Crammer-Singer) or have it each."""

    margin: float
    shared: bool


CRAMMER_SINGER = Loss(1.0, True)
WESTON_WATKINS = Loss(2.0, False)
SINGLE = 1000  # working sets beyond this many rows keep their kernel block in float32
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


def direct_qp(K, codes, n_classes: int, C, loss: Loss, tol: float = 1e-9) -> DirectDual:
    """The exact `DirectDual` on a kernel matrix that already has the 1 of the biases; for small data.

    A step costs one Cholesky factor of K per class and a solve in the constraints: n^3 (classes + 1).
    """
    from scipy import linalg

    K, n, k = np.asarray(K, float), len(codes), n_classes
    C = np.array(np.broadcast_to(C, n), float)
    rows = np.flatnonzero(C > 0)
    y, cap, size = codes[rows], C[rows], len(rows)
    sign = np.where(np.arange(k)[:, None] == y, 1.0, -1.0)  # c = sign x
    gram = K[np.ix_(rows, rows)]
    kappa = np.abs(np.diagonal(gram)).mean() or 1.0
    best = None
    for t in np.unique([min(cap.max(), loss.margin / kappa), cap.max()]):  # see qp.py on the size of x
        scale = t / loss.margin

        def solver(D, scale=scale):
            factors = [
                linalg.cho_factor(scale * gram * np.outer(s, s) + np.diag(d))
                for s, d in zip(sign, D.reshape(k, -1), strict=True)
            ]

            def solve(r):
                parts = r.reshape(k, size, -1)
                out = [linalg.cho_solve(f, part) for f, part in zip(factors, parts, strict=True)]
                return np.concatenate(out).reshape(r.shape)

            return solve

        upper = np.where((sign > 0) == loss.shared, cap / t, np.inf)
        x, low, high, steps = interior_point(
            lambda x, scale=scale: scale * (sign * ((sign * x.reshape(k, -1)) @ gram)).ravel(),
            solver,
            np.where(sign > 0, -1.0, 0.0).ravel(),
            np.hstack([np.diag(s) for s in sign]),
            np.zeros(size),
            upper.ravel(),
            tol,
        )
        a = np.where(low, 0.0, np.maximum(t * x, 0.0)).reshape(k, -1)
        if not loss.shared:
            a = np.where(high.reshape(k, -1), cap, np.minimum(a, cap))
        A = np.zeros((n, k))
        A[rows] = np.where(sign > 0, 0.0, a).T
        if loss.shared:
            full = high.reshape(k, -1)[y, np.arange(size)] | (A[rows].sum(axis=1) > cap)
            A[rows[full]] *= (cap[full] / A[rows[full]].sum(axis=1))[:, None]
        done = certificate(K @ coefficients(A, codes), A, codes, C, loss, steps, True)
        if best is None or done.gap < best.gap:
            best = done
        if best.gap <= 1e-6 * abs(best.objective):
            return best
    warn(f"direct_qp: duality gap {best.gap:.2e} at objective {best.objective:.6g}")
    return DirectDual(**{**vars(best), "converged": False})


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
    most = max(2, int(np.sqrt(cache_size * 2**20 / 8)))
    work = np.sort(by_class[:: -(-n // min(start, most))])
    limit, rounds, wide = (max_iter if max_iter >= 0 else 2000), 0, tol
    while True:
        part = _Working(block(work, work), F[work], A[work], codes[work], C[work], loss)
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
        self.real = np.float64 if len(K) <= SINGLE else np.float32
        self.K, self.F, self.A = np.asarray(K, self.real), F.copy(), A.copy()
        self.codes, self.C, self.loss = codes, C, loss
        self.diagonal = np.maximum(np.diagonal(K), 1e-12).tolist()
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
            self.F += self.K[rows[changed]].T @ D[changed].astype(self.real)

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
            d = d.astype(self.real)
            return np.concatenate([K @ d[span] for K, span in zip(blocks, spans, strict=True)]).astype(float)

        def project(d):
            return d - (np.bincount(i, d, len(count))[i] * weight)

        mine = self.codes[i] == m
        r = project(margin * mine - self.F[i, m])
        d, p, square, goal = np.zeros(len(r)), r, r @ r, reduction * np.abs(r).max()
        for _ in range(steps):
            Kp = project(times(p))
            curvature = p @ Kp
            if not curvature > 0:
                break
            d += square / curvature * p
            r = r - square / curvature * Kp
            if np.abs(r).max() <= goal:
                break
            square, old = r @ r, square
            p = r + square / old * p
        i_other, m_other, d_other = i[~mine], m[~mine], d[~mine]
        t = 1.0
        while t > 1e-4:
            new = A.copy()
            new[i_other, m_other] -= t * d_other
            self.clip(new)
            D = coefficients(new - A, self.codes)
            moved = D[i, m]
            if np.sum(self.F * D) - margin * D[own].sum() + 0.5 * (moved @ times(moved)) < 0:
                self.A = new
                self.move(np.arange(len(A)), D)
                return
            t /= 2

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
    return np.clip(h - theta, 0.0, cap)
