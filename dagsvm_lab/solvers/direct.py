r"""The direct multiclass machines of Crammer and Singer, and of Weston and Watkins.

One weight vector a class, f_m(x) = <w_m, x> + b_m, the largest wins; the biases are
weights on a constant input (Hsu and Lin 2002), so K stands for k(x_i, x_j) + 1
throughout. With margin mu the primal is

    minimise  1/2 sum_m |w_m|^2 + sum_i C_i loss_i
    with      r_im = mu - f_{y_i}(x_i) + f_m(x_i)  for m != y_i,
    Crammer-Singer (2001):   mu = 1,  loss_i = max(0, max_m r_im)
    Weston-Watkins (1999):   mu = 2,  loss_i = sum_m max(0, r_im)

and the dual, with a_im >= 0 for m != y_i, c_im = -a_im, c_{i,y_i} = sum_m a_im and
w_m = sum_i c_im x_i,

    minimise  1/2 sum_m c_m' K c_m - mu sum_i c_{i,y_i}
    Crammer-Singer:  sum_m a_im <= C_i          Weston-Watkins:  a_im <= C_i.

The derivative with respect to a_im is -r_im. A row is in order when what may grow has
no larger r than what may shrink, where Crammer-Singer's slack C_i - sum_m a_im is one
more variable with r = 0: the violation of a row is that difference. Where none exceeds
tol, the gap between primal and dual is at most tol sum_i C_i for Crammer-Singer and,
with N classes, (N - 1) tol sum_i C_i for Weston-Watkins.

`solve_direct` works on a set of rows that grows by those that violate (working.py).
After every round a is in its bounds, and the dual no higher. `solve_interior` takes the
interior points of interior.py, for few rows; `solve_exactly` takes both.

References: Crammer and Singer, "On the algorithmic implementation of multiclass
kernel-based vector machines", JMLR 2 (2001); Weston and Watkins, "Support vector
machines for multi-class pattern recognition", ESANN (1999); Hsu and Lin, "A comparison
of methods for multiclass support vector machines", IEEE Trans. Neural Networks 13
(2002).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .dual import EPS, Certificate, is_solved, rounding, warn
from .interior import Program, interior_points
from .lowrank import cholesky
from .working import Task, Working

DOUBLE_ROWS = 1000  # working rows up to which their kernel block is float64
GROW_ROWS = 2000  # working rows to start with; a round at most doubles them
DIRECT_STRIP = 1024  # kernel rows computed at a time, so that float64 is never whole
EXACT_ROUNDS = 200  # rounds, after which few rows go to interior points; most need tens
MOST_ROUNDS = 2000  # rounds after which larger duals are given up
TIGHT = 1e-10  # violation, over the margin, asked of exact solutions


@dataclass(frozen=True)
class DirectDual(Certificate):
    """A solution and its certificate.

    `coef` (n_samples, n_classes) holds c, `bias` is one a class.
    """

    coef: np.ndarray
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Limits:
    """When decomposition stops, and what it may use.

    `max_iter` limits the rounds of descent and conjugate gradients, -1 stands for
    2,000; `cache_size` (MB) the working set's kernel matrix: rows that violate most
    have the first right to a place in it. It starts with `start` rows.
    """

    tol: float = 1e-3
    max_iter: int = -1
    cache_size: float = 2000
    verbose: int = 0
    start: int = GROW_ROWS

    @property
    def most_rounds(self) -> int:
        """Rounds after which the dual is given back as it is."""
        return self.max_iter if self.max_iter >= 0 else MOST_ROUNDS

    @property
    def most_rows(self) -> int:
        """Working rows whose kernel matrix, in float32, fills the cache."""
        values = self.cache_size * 2**20 / 4
        return max(2, int(np.sqrt(values)))


def solve_direct(block: Callable, task: Task, limits: Limits) -> DirectDual:
    """Solve a direct dual by decomposition.

    `block(rows, columns)` gives kernel values, with the 1 of the biases.
    """
    n = len(task.codes)
    A = np.zeros((n, task.n_classes))
    F = np.zeros((n, task.n_classes))
    work = _spread(task.codes, min(limits.start, limits.most_rows))
    rounds = 0
    worst = limits.tol
    while True:
        part = Working(_square(block, work), F[work], A[work], task.part(work))
        # a working set that will grow is solved to a share of what was violated
        aim = limits.tol if len(work) == n else max(limits.tol, 0.1 * worst)
        rounds += part.solve(aim, limits.most_rounds - rounds)
        A[work] = part.A
        F, largest = _products(block, task.coefficients(A))
        violation = task.violation(F, A)  # (rows,)
        worst = violation.max(initial=0.0)
        if limits.verbose:
            print(f"{len(work)} of {n} rows, {rounds} rounds: violation {worst:.3g}")
        dual = certified(F, A, task, rounds, limits.tol, largest)
        if dual.converged or rounds >= limits.most_rounds:
            return dual
        work = _next_rows(work, violation, A, limits)


def _next_rows(
    work: np.ndarray, violation: np.ndarray, A: np.ndarray, limits: Limits
) -> np.ndarray:
    """The working set `work`, with the rows that violate most taken in.

    `violation` is that of every row, and A its variables.
    """
    violators = np.flatnonzero(violation > 0.5 * limits.tol)
    outside = np.setdiff1d(violators, work, assume_unique=True)
    new = _largest(violation, outside, max(len(work), limits.start))
    most = limits.most_rows
    if len(work) + len(new) > most:
        # no room for all: rows without variables and violation leave first
        new = new[: max(most // 2, most - len(work))]
        useful = A.any(axis=1) + violation
        work = _largest(useful, work, most - len(new))
    return np.union1d(work, new)


def _largest(value: np.ndarray, rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the rows, those of largest value first."""
    order = np.argsort(-value[rows], kind="stable")
    return rows[order[:most]]


def _spread(codes: np.ndarray, most: int) -> np.ndarray:
    """About `most` rows, at equal steps through the rows sorted by class."""
    by_class = np.argsort(codes, kind="stable")
    return np.sort(by_class[:: -(-len(codes) // most)])


def solve_exactly(block: Callable, task: Task, limits: Limits) -> DirectDual:
    """Solve a dual of few rows to the last digit.

    By decomposition, or where that takes long by interior points.
    """
    tight = Limits(TIGHT, EXACT_ROUNDS, limits.cache_size, limits.verbose)
    dual = solve_direct(block, task, tight)
    if dual.converged:
        return dual
    every = np.arange(len(task.codes))
    other = solve_interior(block(every, every), task, limits.tol)
    return min(dual, other, key=lambda found: found.gap)


def solve_interior(K: np.ndarray, task: Task, tol: float = 1e-3) -> DirectDual:
    """Solve a dual exactly on a kernel matrix that has the 1 of the biases.

    For few rows: a Newton step costs a Cholesky factor a class, and one more of the
    size of K. `converged` is judged by `tol`, but a relative gap of 1e-8 is aimed at.
    """
    K = np.asarray(K, float)
    rows = np.flatnonzero(task.C > 0)
    Z = _factor(K, rows)
    # the scale of c where classes are separable
    size = np.abs(np.diagonal(K)[rows]).mean()
    natural = task.loss.margin / (size or 1.0)
    largest = float(np.abs(K).max())
    # interior points want a solution of order one, and its order is not known before
    found = []
    for scale in _scales(natural, float(task.C.max())):
        A = np.zeros((len(K), task.n_classes))
        A[rows], steps = _interior(Z, task.part(rows), scale)
        # what is left of the gap is a few variables' sides, which rounds settle
        for rounds in (0, 50):
            part = Working(K, K @ task.coefficients(A), A, task)
            part.solve(TIGHT * task.loss.margin, rounds)
            F = K @ task.coefficients(part.A)
            dual = certified(F, part.A, task, steps, tol, largest)
            if dual.gap <= 1e-8 * abs(dual.objective):
                return dual
            found.append(dual)
    return min(found, key=lambda dual: dual.gap)


def _factor(K: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Z (rows, rank) with Z Z' = K of some rows, up to the rounding of K."""
    diagonal = np.diagonal(K)[rows]
    least = len(rows) * EPS * float(np.abs(diagonal).max())

    def columns(some: np.ndarray) -> np.ndarray:
        """Kernel columns of some of the rows."""
        return K[np.ix_(rows, rows[some])]

    return cholesky(diagonal, columns, least)


def _scales(natural: float, most: float) -> list[float]:
    """Scales of c to try: that of separable classes, that of bounds, and between."""
    between = np.sqrt(natural * most)
    return sorted({min(natural, most), between, most})


def _interior(Z: np.ndarray, task: Task, scale: float) -> tuple[np.ndarray, int]:
    """(A, steps) by interior points in c / scale, whose arrays are (classes, rows)."""
    loss = task.loss
    own = np.arange(task.n_classes)[:, None] == task.codes
    bounded = own if loss.shared else ~own  # the c on which C is a bound
    program = Program(
        Z=Z * np.sqrt(scale / loss.margin),
        sign=np.where(own, 1.0, -1.0),
        upper=np.where(bounded, task.C / scale, np.inf),
    )
    point = interior_points(program)
    a = np.where(own | point.at_zero, 0.0, np.abs(scale * point.c))
    # what is guessed to be at its bound, or beyond it, is put there
    if loss.shared:
        total = a.sum(axis=0)
        at_bound = (point.at_bound & own).any(axis=0)
        full = (total > 0) & (at_bound | (total > task.C))
        a[:, full] *= task.C[full] / total[full]
    else:
        a = np.where(point.at_bound & ~own, task.C, np.minimum(a, task.C))
    return a.T, point.steps


def certified(
    F: np.ndarray, A: np.ndarray, task: Task, n_iter: int, tol: float, largest: float
) -> DirectDual:
    """The `DirectDual` of A, where F = K c in float64, of values up to `largest`."""
    c = task.coefficients(A)
    r = np.maximum(task.shortfall(F), 0.0)
    quadratic = 0.5 * float(np.sum(c * F))
    objective = quadratic - task.loss.margin * float(c[task.own].sum())
    losses = r.max(axis=1) if task.loss.shared else r.sum(axis=1)
    primal = quadratic + float(task.C @ losses)
    violation = float(task.violation(F, A).max(initial=0.0))
    noise = float(rounding(np.array([largest]), c.T).max())
    return DirectDual(
        objective=objective,
        primal_objective=primal,
        gap=primal + objective,
        kkt_violation=violation,
        bias=c.sum(axis=0),
        coef=c,
        n_iter=n_iter,
        converged=bool(is_solved(violation, tol, noise)),
    )


def warn_above(dual: DirectDual, tol: float) -> None:
    """Issue a ConvergenceWarning where the violation is above `tol`."""
    if dual.kkt_violation > tol:
        warn(
            f"direct machine: {dual.n_iter} rounds ended at a violation of "
            f"{dual.kkt_violation:.2e}, above tol={tol}: scale the inputs, lower C, or "
            "raise max_iter"
        )


def _square(block: Callable, rows: np.ndarray) -> np.ndarray:
    """The kernel matrix of some rows; of many in float32."""
    n = len(rows)
    K = np.empty((n, n), np.float64 if n <= DOUBLE_ROWS else np.float32)
    for k in range(0, n, DIRECT_STRIP):
        strip = slice(k, k + DIRECT_STRIP)
        K[strip] = block(rows[strip], rows)
    return K


def _products(block: Callable, c: np.ndarray) -> tuple[np.ndarray, float]:
    """(K c in float64, the largest |K_ij| met), by strips."""
    F = np.zeros(c.shape)
    largest = 0.0
    every = np.arange(len(c))
    support = np.flatnonzero(c.any(axis=1))
    if not len(support):
        return F, largest
    for k in range(0, len(c), DIRECT_STRIP):
        strip = every[k : k + DIRECT_STRIP]
        K = block(strip, support)
        F[strip] = K @ c[support]
        largest = max(largest, float(K.max()), -float(K.min()))
    return F, largest
