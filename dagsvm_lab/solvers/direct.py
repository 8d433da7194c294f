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

`solve_direct` works on a set of rows that grows by those that violate (working.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .dual import Certificate, warn
from .qp import interior_point, scales
from .working import Loss, Working, coefficients, shortfall, violation

SINGLE = 1000  # working sets beyond this many rows keep their kernel block in float32
PATIENCE = 200  # rounds after which a small dual goes to interior points: those that converge need tens


@dataclass(frozen=True)
class DirectDual(Certificate):
    """A solution: `coef` (n_samples, n_classes) holds c, `bias` is one a class, and the rest is its certificate."""

    coef: np.ndarray
    n_iter: int
    converged: bool


def certificate(F, A, codes, C, loss: Loss, n_iter: int, converged: bool) -> DirectDual:
    """The `DirectDual` of A, where F = K c in float64."""
    own = np.arange(len(codes)), codes
    c = coefficients(A, codes)
    r = np.maximum(shortfall(F, codes, loss), 0.0)
    quadratic = 0.5 * np.sum(c * F)
    dual = quadratic - loss.margin * c[own].sum()
    primal = quadratic + C @ (r.max(axis=1) if loss.shared else r.sum(axis=1))
    worst = violation(F, A, codes, C, loss).max(initial=0.0)
    numbers = map(float, (dual, primal, primal + dual, worst))
    return DirectDual(*numbers, c.sum(axis=0), c, n_iter, converged)


def direct_qp(K, codes, n_classes: int, C, loss: Loss, tol: float = 1e-8) -> DirectDual:
    """The exact `DirectDual` (gap at most `tol`, relative) on a kernel matrix that has the 1 of the biases.

    For small data: a step costs one Cholesky factor of K per class and one for the constraints, n^3 (classes + 1).
    """
    K, n = np.asarray(K, float), len(codes)
    C = np.array(np.broadcast_to(C, n), float)
    rows = np.flatnonzero(C > 0)
    gram, y, cap = K[np.ix_(rows, rows)], codes[rows], C[rows]
    best, natural = None, loss.margin / (np.abs(np.diagonal(gram)).mean() or 1.0)
    for t in scales(natural, cap.max()):
        A = np.zeros((n, n_classes))
        A[rows], steps = _interior(gram, y, n_classes, cap, loss, t)
        for polish in (0, 50):  # what is left of the gap is a few variables' sides, which step 2 below settles
            part = Working(K, K @ coefficients(A, codes), A, codes, C, loss)
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
    sign = np.where(np.arange(k)[:, None] == y, 1.0, -1.0)  # c = sign x
    q, sums = np.where(sign > 0, -1.0, 0.0).ravel(), np.hstack([np.diag(s) for s in sign])
    upper = np.where((sign > 0) == loss.shared, cap / t, np.inf).ravel()
    x, low, high, steps = interior_point(gram, gram, t / loss.margin, sign, q, sums, 0.0 * cap, upper, 1e-9)
    a = np.where((sign > 0) | low.reshape(k, -1), 0.0, np.maximum(t * x.reshape(k, -1), 0.0))
    high = high.reshape(k, -1)
    if loss.shared:
        total = a.sum(axis=0)
        full = (total > 0) & ((high & (sign > 0)).any(axis=0) | (total > cap))
        a[:, full] *= cap[full] / total[full]
    else:
        a = np.where(high & (sign < 0), cap, np.minimum(a, cap))
    return a.T, steps


def solve_direct(block: Callable, codes: np.ndarray, n_classes: int, C, loss: Loss, tol=1e-3, *, max_iter=-1,
                 cache_size=2000, start=2000, verbose=0, quiet=False) -> DirectDual:  # fmt: skip
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
        part = Working(K, F[work], A[work], codes[work], C[work], loss)
        rounds += part.solve(max(tol, 0.1 * wide) if len(work) < n else tol, limit - rounds)
        A[work] = part.A
        F = _products(block, coefficients(A, codes))
        v = violation(F, A, codes, C, loss)
        wide = v.max(initial=0.0)
        if verbose:
            print(f"{len(work)} of {n} rows, {rounds} rounds: largest violation {wide:.3g}")
        if wide <= tol or rounds >= limit:
            break
        new = np.setdiff1d(np.flatnonzero(v > 0.5 * tol), work, assume_unique=True)
        new = new[np.argsort(-v[new], kind="stable")[: max(len(work), start)]]
        if len(work) + len(new) > most:
            useful = A.any(axis=1) + v
            new = new[: max(most // 2, most - len(work))]
            work = work[np.argsort(-useful[work], kind="stable")[: most - len(new)]]
        work = np.union1d(work, new)
    done = certificate(F, A, codes, C, loss, rounds, bool(wide <= tol))
    if not done.converged and not quiet:
        why = "scale the inputs, lower C, or raise max_iter"
        warn(f"direct machine: {rounds} rounds ended at a violation of {wide:.2e}, above tol={tol}: {why}")
    return done


def solve_exactly(block: Callable, codes, n_classes: int, C, loss: Loss, verbose: int = 0) -> DirectDual:
    """The `DirectDual` of few rows to the last digit: by decomposition, or where that takes long by interior points."""
    done = solve_direct(block, codes, n_classes, C, loss, 1e-10, max_iter=PATIENCE, verbose=verbose, quiet=True)
    if done.converged:
        return done
    every = np.arange(len(codes))
    return min(done, direct_qp(block(every, every), codes, n_classes, C, loss), key=lambda dual: dual.gap)


def _products(block, c, rows: int = 1024) -> np.ndarray:
    """K c in float64, by blocks of rows."""
    F, every, support = np.zeros(c.shape), np.arange(len(c)), np.flatnonzero(c.any(axis=1))
    for k in range(0, len(c) if len(support) else 0, rows):
        F[k : k + rows] = block(every[k : k + rows], support) @ c[support]
    return F
