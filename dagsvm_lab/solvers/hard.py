r"""The finish of duals on which SMO gives up: low rank, equal rows, huge bounds.

    minimise  1/2 b'Kb - g'b   with  sum b = total,  lo <= b <= hi

(dual.py has b = s alpha, g = s p and total = 0; ball.py total = 1.) Where K is of low
rank and C is huge, SMO takes millions of steps, and the free variables of a solution
are not unique. Here K = Z Z' by a pivoted Cholesky factor, Z centred, which the fixed
sum allows. Every row has a line A_i = (z_i, 1), and the unknown besides b is (w, bias)
with w = Z'b: a free row has A_i (w, bias) = g_i.

1. Crossover to a vertex: where lines of free rows depend on each other, b moves along
   A'd = 0, which leaves w as it is, until enough of them are at a bound.
2. Active set: with the bounded b held, the free b and (w, bias) solve one linear
   system. A step there ends at the first bound that it meets, whose row is then held. A
   bounded row that pulls inwards becomes free, or, where its line depends on those of
   the free rows, moves against them along A'd = 0 and takes the place of the first that
   comes to its bound.
3. What K - Z Z' makes of b goes into g, and 2 again: the answer is K's, not Z Z''s.

Invariants: b is in its box, and its sum stays; no step raises the objective; the lines
of the free rows are independent. Bounded rows are judged with (w, bias) of the system,
not with K b: a b of 1e10 leaves its rounding in K b.

Tried and not kept: interior points as the start (Mehrotra's, in low-rank form). From
SMO's point the active set takes as many steps; on linear Vowel and Segment, one class
against the rest, C = 1000, interior points and what follows took 1.6 times as long.

References: Megiddo, "On finding primal- and dual-optimal bases", ORSA J. Computing 3
(1991); Scheinberg, "An efficient implementation of an active set method for SVMs",
JMLR 7 (2006).

| constant | unit | seconds with other values, over today's (one core), and failures |
|---|---|---|
| hard_after(n) = 400 + 4 n | SMO steps | linear Segment, C = 100, 1000, and 3,000 |
| | | rows of Letter, C = 10: a quarter .93, .85, .77; four times 1.20, 1.52, 1.17 |
| NO_STEP = 1e-14 | of the largest abs b: a shorter step is none | 300 hard duals (as |
| | | all below): 0 fails on 13 and takes 2.2, 1e-12 1.0 |
| EXACT (dual.py) | of the largest abs g: a weaker pull is none | linear Segment: |
| | | 1e-9 1.0, 1e-13 5.4 |
| UPDATES = 50 | changes of a QR factor before it is made anew | 0 1.1, 1000 1.0 |
| NEAR = 1e-9 | of its box: a start so near to a bound is at it | 0 to 1e-7: 1.0 |
| DEPENDENT = 1e-9 | share of a line that others leave | 1e-12 to 1e-6: 1.0 |
| CIRCLES = 50 | steps of no length, then Bland's rule | 5 1.0; never was it needed |
| NO_GAIN = 1e-13 | of the objective's terms: a smaller fall in ROUND steps is |
| | | rounding. Segment, raw: never 9.5; 1e-9 to 1e-16 1.0 |
| ROUND = 100 | steps between looks at the objective | 20 and 500 1.0 |
| CORRECTIONS = 4 | solves, each with the rest of K | Gaussian, gamma = .01, C = 1e9: |
| | | 1 leaves 7 to 20 times the noise, from 2 on it is 1 |
| BLOCK_COLUMNS = 256 | kernel columns computed at a time | memory alone |
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dpstrf, dtrtrs

from .dual import EPS, EXACT, Certificate, is_solved, measure, rounding, snap

NO_STEP = 1e-14
UPDATES = 50
NEAR = 1e-9
DEPENDENT = 1e-9
CIRCLES = 50
NO_GAIN = 1e-13
ROUND = 100
CORRECTIONS = 4
BLOCK_COLUMNS = 256


def hard_after(n: int) -> int:
    """SMO steps after which a dual of n rows counts as hard; most take fewer than n."""
    return 400 + 4 * n


def _times(columns: Callable, beta: np.ndarray) -> np.ndarray:
    """K beta, from the columns of the support vectors, some at a time."""
    product = np.zeros(len(beta))
    support = np.flatnonzero(beta)
    for k in range(0, len(support), BLOCK_COLUMNS):
        part = support[k : k + BLOCK_COLUMNS]
        product += columns(part) @ beta[part]
    return product


def solve_hard(
    diagonal: np.ndarray,
    columns: Callable,
    s: np.ndarray,
    p: np.ndarray,
    u: np.ndarray,
    beta: np.ndarray,
    near: float = NEAR,
    factored: Callable | None = None,
) -> np.ndarray | None:
    """beta of the best point found from a feasible one; None if the rank is too large.

    Parameters
    ----------
    diagonal : (n,) K_ii.
    columns : gives K[:, rows] in float64; asked for as many as the rank, and for the
        support vectors of each round.
    s, p, u : (n,) as in dual.py.
    beta : (n,) the start, which is given back where nothing better is found.
    near : violation, over the largest |p|, that is corrected no further; at 0 only
        what rounding leaves.
    factored : gives the factor of K from its diagonal and columns, or None where the
        rank is too large; by default `centred_factor`, whatever the rank.
    """
    live = np.flatnonzero(u > 0)
    if len(np.unique(s[live])) < 2:  # one sign only: zero is the only feasible point
        return np.zeros(len(s))
    factored = factored or centred_factor
    Z = factored(diagonal[live], lambda rows: columns(live[rows])[live])
    if Z is None:
        return None

    def judged(beta: np.ndarray) -> _Judged:
        """What there is to know of a point, from K itself."""
        alpha = snap(np.clip(s * beta, 0.0, u), u)
        f = _times(columns, s * alpha)
        noise = float(rounding(diagonal, alpha))
        found = measure(f, s, p, u, alpha, noise=noise)
        solved = bool(is_solved(found.kkt_violation, near * np.abs(p).max(), noise))
        return _Judged(s * alpha, f, noise, found, solved)

    points = [judged(beta)]
    bound = (s * u)[live]
    active = ActiveSet(Z, np.minimum(bound, 0.0), np.maximum(bound, 0.0))
    for _ in range(CORRECTIONS):
        last = points[-1].beta[live]
        # part 3: what K - Z Z' makes of the last point
        beyond_Z = points[-1].f[live] - Z @ (Z.T @ last)
        found = np.zeros(len(s))
        found[live] = active.solve((s * p)[live] - beyond_Z, last)
        points.append(judged(found))
        if points[-1].solved:
            break
    return _best(points).beta


@dataclass(frozen=True)
class _Judged:
    """A point, f = K beta, what rounding leaves of a violation, its certificate, and
    whether rounding is all that is left of its violation."""

    beta: np.ndarray
    f: np.ndarray
    noise: float
    certificate: Certificate
    solved: bool

    @property
    def objective(self) -> float:
        """The objective, without what it gains where b does not sum to 0 exactly."""
        found = self.certificate
        return found.objective + found.bias * float(self.beta.sum())


def _best(points: list[_Judged]) -> _Judged:
    """The point of least violation, of those at the least objective up to rounding."""
    least = min(point.objective for point in points)

    def order(point: _Judged) -> tuple:
        rounded = 1e-12 * abs(least) + point.noise * float(np.abs(point.beta).sum())
        above = point.objective > least + rounded
        return above, not point.solved, point.certificate.kkt_violation

    return min(points, key=order)


def centred_factor(
    diagonal: np.ndarray, columns: Callable, most_rank: int | None = None
) -> np.ndarray | None:
    """Z (n, rank), its rows of mean 0, with the distances of K; None if it is too wide.

    K is seen from one of the rows: the rank is that of their differences.
    """
    origin = int(np.argmin(diagonal))
    to_origin = columns(np.array([origin]))[:, 0]
    from_origin = to_origin - to_origin[origin]
    least = len(diagonal) * EPS * float(np.abs(diagonal).max())

    def differences(rows: np.ndarray) -> np.ndarray:
        return columns(rows) - to_origin[:, None] - from_origin[rows]

    # |phi(x_i) - phi(origin)|^2: the diagonal of `differences`
    left = diagonal - to_origin - from_origin
    others = np.delete(np.arange(len(left)), origin)
    if most_rank is not None and most_rank < len(others):
        # one row more than the rank may be: if they are independent, it is larger
        some = others[np.linspace(0, len(others) - 1, most_rank + 1).astype(int)]
        if dpstrf(differences(some)[some], tol=least)[2] == len(some):
            return None
    Z = cholesky(left, differences, least, most_rank)
    return None if Z is None else Z - Z.mean(axis=0)


def cholesky(
    diagonal: np.ndarray, columns: Callable, least: float, most_rank: int | None = None
) -> np.ndarray | None:
    """Z (n, rank) with Z Z' = K up to `least`; None if the rank is above `most_rank`.

    Columns are taken in the order of what is left of the diagonal, the largest first.
    """
    n = len(diagonal)
    most = n if most_rank is None else min(most_rank, n)
    left = diagonal.astype(float)
    Z = np.empty((n, min(most, 32)), order="F")
    rank = 0
    while left.max() > max(least, 1e-300):
        if rank == most:
            return None
        if rank == Z.shape[1]:  # twice the room, or all there may be
            more = np.empty((n, min(most, 2 * rank) - rank), order="F")
            Z = np.concatenate([Z, more], axis=1)
        pivot = int(np.argmax(left))
        column = columns(np.array([pivot]))[:, 0].astype(float)
        column -= Z[:, :rank] @ Z[pivot, :rank]
        column /= np.sqrt(left[pivot])
        Z[:, rank] = column
        left -= column**2
        left[pivot] = -np.inf  # taken
        rank += 1
    return Z[:, :rank]


def balanced(
    beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: float
) -> np.ndarray:
    """beta in its box and at its sum, what is amiss taken off the rows inside it."""
    beta = np.clip(beta, lo, hi)
    amiss = float(beta.sum()) - total
    room = beta - lo if amiss > 0 else hi - beta
    inside = (beta > lo) & (beta < hi)
    room = np.where(inside, np.minimum(room, np.abs(beta).sum()), 0.0)
    share = min(1.0, abs(amiss) / room.sum()) if room.any() else 0.0
    return np.clip(beta - np.sign(amiss) * share * room, lo, hi)


class ActiveSet:
    """The box of a dual whose kernel matrix is Z Z', and the point that moves in it.

    Attributes
    ----------
    Z, lo, hi, total : the dual, as at the top.
    g : what `solve` was given.
    beta : the point.
    lines : the free rows, whose lines are independent, and what solves for them.
    steps, stuck : taken by `solve`, and of no length since the last that had one.
    """

    def __init__(self, Z: np.ndarray, lo: np.ndarray, hi: np.ndarray, total=0.0):
        self.Z = Z
        self.lo = lo
        self.hi = hi
        self.total = total

    def solve(self, g: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """beta of the solution from a feasible one, or of the last point reached."""
        self.g = g
        width = np.minimum(self.hi - self.lo, np.abs(beta).max())
        beta = np.where(beta - self.lo <= NEAR * width, self.lo, beta)
        beta = np.where(self.hi - beta <= NEAR * width, self.hi, beta)
        self.beta = balanced(beta, self.lo, self.hi, self.total)
        inside = (self.beta > self.lo) & (self.beta < self.hi)
        self.stuck = 0
        # part 1 of the list at the top; then part 2
        self.lines = Lines(self.Z, self._crossover(np.flatnonzero(inside)))
        least = np.inf
        for self.steps in range(200 + 10 * len(beta)):
            if self.steps % ROUND == 0 and self.stuck < ROUND:
                objective, size = self._objective()
                if objective >= least - NO_GAIN * size:
                    break  # rounding alone moves the point, and may do so in circles
                least = objective
            if not len(self.lines.rows):
                self._first_free()
            target, w, bias = self.lines.solve(self.g, self.beta, self.total)
            before = self.beta.copy()
            if self._go_to(target) and not self._free_one(self.g - self.Z @ w - bias):
                break
            moved = np.abs(self.beta - before).max()
            none = moved <= NO_STEP * np.abs(self.beta).max()
            self.stuck = self.stuck + 1 if none else 0
        return self.beta

    def _objective(self) -> tuple[float, float]:
        """The objective, and the size of its terms: rounding is a share of that."""
        w = self.Z.T @ self.beta
        square = 0.5 * float(w @ w)
        terms = self.g * self.beta
        return square - float(terms.sum()), square + float(np.abs(terms).sum())

    def _first_free(self) -> None:
        """Free the row that gains most by rising: any one gives a bias."""
        v = self.g - self.Z @ (self.Z.T @ self.beta)
        row = int(np.argmax(np.where(self.beta < self.hi, v, -np.inf)))
        self.lines.append(row)

    def _go_to(self, target: np.ndarray) -> bool:
        """Take the free rows to `target`, or to the first bound; whether they got
        there.

        The row whose bound was met is free no more.
        """
        rows = self.lines.rows
        step = target - self.beta[rows]
        if np.abs(step).max() > NO_STEP * np.abs(self.beta).max():
            length, k = self._first_bound(rows, step)
            if length < 1.0:
                self._move(rows, step, length, k)
                self.lines.drop(k)
                return False
        self.beta[rows] = np.clip(target, self.lo[rows], self.hi[rows])
        return True

    def _free_one(self, v: np.ndarray) -> bool:
        """Free a bounded row that pulls inwards, v = g - Z w - bias; False if none can.

        Where its line depends on those of the free rows, it moves against them.
        """
        inwards = np.where(self.beta <= self.lo, v, -v)
        inwards[self.lo == self.hi] = 0.0
        inwards[self.lines.rows] = 0.0
        noise = EXACT * np.abs(self.g).max()
        if not inwards.max() > noise:
            return False
        bland = self.stuck > CIRCLES
        row = int(np.argmax(inwards > noise) if bland else np.argmax(inwards))
        weights = self.lines.weights(row)
        if weights is None:
            self.lines.append(row)
            return True
        way = np.sign(v[row])
        rows = np.append(self.lines.rows, row)
        step = np.append(-way * weights, way)
        length, k = self._first_bound(rows, step)
        if not np.isfinite(length):  # the objective has no minimum
            return False
        self._move(rows, step, length, k)
        if k < len(weights):
            self.lines.drop(k)
            self.lines.append(row)
        return True

    def _first_bound(self, rows: np.ndarray, step: np.ndarray) -> tuple[float, int]:
        """(steps to the first bound, the place in `rows` of the row that meets it).

        Of several, it is the one that moves most, or, against circles, the first row.
        """
        room = np.where(step > 0, self.hi[rows], -self.lo[rows])
        room -= np.sign(step) * self.beta[rows]
        size = np.abs(step)
        moves = size > NO_STEP * size.max()
        lengths = np.full(len(rows), np.inf)
        with np.errstate(over="ignore"):
            np.divide(room, size, where=moves, out=lengths)
        least = float(lengths.min())
        tied = np.flatnonzero(lengths == least)
        order = rows[tied] if self.stuck > CIRCLES else -size[tied]
        return least, int(tied[np.argmin(order)])

    def _move(self, rows: np.ndarray, step: np.ndarray, length: float, k: int) -> None:
        """Take beta of `rows` `length` steps on, to the bound of the k-th of them."""
        beta = self.beta[rows] + length * step
        self.beta[rows] = np.clip(beta, self.lo[rows], self.hi[rows])
        met = rows[k]  # is at its bound exactly, not up to rounding
        self.beta[met] = self.hi[met] if step[k] > 0 else self.lo[met]

    def _crossover(self, rows: np.ndarray) -> np.ndarray:
        """Bring `rows` inside their box to bounds until the lines of the rest, given
        back, are independent; rows far from their bounds are rather left inside."""
        if not len(rows):
            return rows
        near = np.minimum(self.beta - self.lo, self.hi - self.beta)[rows]
        weight = np.maximum(np.sqrt(near / near.max()), 1e-4)
        A = np.column_stack([self.Z[rows] / _size(self.Z), np.ones(len(rows))])
        # pivots are taken by size: a row weighs more the farther it is from its bounds
        R, order = linalg.qr((A * weight[:, None]).T, mode="r", pivoting=True)
        size = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(size > 0.1 * DEPENDENT * size[0]))
        rows = rows[order]
        basis = rows[:rank].copy()
        # (rank, others): the weights with which the basis makes up each other line
        weights = _triangular(R[:rank, :rank], R[:rank, rank:])
        weights *= weight[order[:rank], None]
        weights /= weight[order[rank:]]
        for j, row in enumerate(rows[rank:].tolist()):
            k = self._bring_to_bound(row, basis, weights[:, j])
            if k < rank:  # the row takes the place of the k-th of the basis
                basis[k] = row
                entering = weights[k] / weights[k, j]
                weights -= np.outer(weights[:, j], entering)
                weights[k] = entering
        return basis

    def _bring_to_bound(self, row: int, basis: np.ndarray, weights: np.ndarray) -> int:
        """Move a row against the basis, uphill in g'b, until one of them is at a bound;
        its place in the basis, whose length stands for the row itself."""
        gain = self.g[row] - weights @ self.g[basis]
        if abs(gain) <= NEAR * np.abs(self.g).max():  # rounding: the nearer bound
            gain = self.hi[row] - self.beta[row] < self.beta[row] - self.lo[row]
        way = 1.0 if gain > 0 else -1.0
        both = np.append(basis, row)
        uphill = np.append(-way * weights, way)
        for step in (uphill, -uphill):
            length, k = self._first_bound(both, step)
            if np.isfinite(length):
                self._move(both, step, length, k)
                return k
        return len(basis)


class Lines:
    """Independent lines A_i of free rows: the first row, and the others less the first.

    Attributes
    ----------
    rows : the free rows.
    Q, R : QR factors of the differences (rank, rows - 1).
    """

    def __init__(self, Z: np.ndarray, rows: np.ndarray):
        self.Z = Z
        self.least = 1e-3 * DEPENDENT * _size(Z)
        self._factor(rows)

    def _factor(self, rows: np.ndarray) -> None:
        """Take `rows`, and factor their lines."""
        self.rows = rows
        self.updates = 0
        self.Q = np.zeros((self.Z.shape[1], 0))
        self.R = np.zeros((0, 0))
        if len(rows) > 1:
            lines = self.Z[rows[1:]] - self.Z[rows[0]]
            self.Q, self.R = linalg.qr(lines.T, mode="economic")

    def append(self, row: int) -> None:
        """Add a row whose line is independent of the others."""
        rows = np.append(self.rows, row)
        if len(rows) < 3 or self.updates == UPDATES:
            return self._factor(rows)
        line = self.Z[row] - self.Z[rows[0]]
        at = len(rows) - 2
        self.Q, self.R = linalg.qr_insert(self.Q, self.R, line, at, which="col")
        self.rows = rows
        self.updates += 1

    def drop(self, k: int) -> None:
        """Leave out the k-th row."""
        rows = np.delete(self.rows, k)
        if k == 0 or len(rows) < 2 or self.updates == UPDATES:
            return self._factor(rows)
        Q, R = linalg.qr_delete(self.Q, self.R, k - 1, which="col")
        size = len(rows) - 1  # a square Q stays square, with a column too many
        self.Q = Q[:, :size]
        self.R = R[:size]
        self.rows = rows
        self.updates += 1

    def solve(self, g, beta, total) -> tuple[np.ndarray, np.ndarray, float]:
        """(beta of the free rows, w, bias) that solve the dual, all other beta held."""
        first = self.rows[0]
        others = self.rows[1:]
        held = beta.copy()
        held[self.rows] = 0.0
        rest = total - held.sum()
        w = self.Z.T @ held + rest * self.Z[first]  # w, if the first had all the rest
        along = self.Q.T @ w
        goal = _triangular(self.R, g[others] - g[first], "T")
        found = _triangular(self.R, goal - along)
        across = w - self.Q @ along if len(others) < len(w) else 0.0
        w = self.Q @ goal + across
        bias = float(g[first] - self.Z[first] @ w)
        return np.append(rest - found.sum(), found), w, bias

    def weights(self, row: int) -> np.ndarray | None:
        """The weights with which the lines make up that of another row, if they do."""
        line = self.Z[row] - self.Z[self.rows[0]]
        along = self.Q.T @ line
        left = float(np.linalg.norm(line - self.Q @ along))
        if left > max(DEPENDENT * float(np.linalg.norm(line)), self.least):
            return None
        found = _triangular(self.R, along)
        return np.append(1.0 - found.sum(), found)


def _triangular(R: np.ndarray, b: np.ndarray, trans: str = "N") -> np.ndarray:
    """The solution of R x = b, or of R'x = b; LAPACK refuses empty systems."""
    return dtrtrs(R, b, trans=trans == "T")[0] if len(b) else b


def _size(Z: np.ndarray) -> float:
    """The root of the mean of |z_i|^2."""
    return float(np.sqrt((Z**2).sum() / len(Z))) or 1.0
