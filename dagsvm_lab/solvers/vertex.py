r"""An active set: from vertex to vertex of a dual whose kernel matrix is Z Z'.

    minimise  1/2 b'Z Z'b - g'b   with  sum b = total,  lo <= b <= hi

Every row has a line A_i = (z_i, 1), and the unknown besides b is (w, bias) with
w = Z'b: a free row has A_i (w, bias) = g_i (lines.py).

1. Crossover to a vertex: where lines of free rows depend on each other, b moves along
   A'd = 0, which leaves w as it is, until enough of them are at a bound.
2. Active set: with the bounded b held, the free b and (w, bias) solve one linear
   system. A step there ends at the first bound that it meets, whose row is then held. A
   bounded row that pulls inwards becomes free, or, where its line depends on those of
   the free rows, moves against them along A'd = 0 and takes the place of the first that
   comes to its bound.

Invariants: b is in its box, and its sum stays; no step raises the objective; the lines
of the free rows are independent. Bounded rows are judged with (w, bias) of the system,
not with K b: a b of 1e10 leaves its rounding in K b.

Where Z has few columns, it starts from interior points (inner.py) and has hardly a step
to take; else from where SMO gave up.

References: Megiddo, "On finding primal- and dual-optimal bases", ORSA J. Computing 3
(1991); Scheinberg, "An efficient implementation of an active set method for SVMs",
JMLR 7 (2006).

| constant | unit | seconds with other values, over today's (one core), and failures |
|---|---|---|
| NO_STEP = 1e-14 | of the largest abs b: a shorter step is none | 300 hard duals (as |
| | | all below but Segment): 0 fails on 13 and takes 2.2, 1e-12 1.0 |
| EXACT (dual.py) | of the largest abs g: a weaker pull is none | linear Segment: |
| | | 1e-9 1.0, 1e-13 5.4 |
| NEAR = 1e-9 | of its box: a start so near to a bound is at it; of the largest abs |
| | | g: a gain so small is rounding (crossover). 0 to 1e-7: 1.0 |
| CIRCLES = 50 | steps of no length, then Bland's rule | 5 1.0; never was it needed |
| NO_GAIN = 1e-13 | of the objective's terms: a smaller fall in ROUND steps is |
| | | rounding. Segment, raw: never 9.5; 1e-9 to 1e-16 1.0 |
| ROUND = 100 | steps between looks at the objective | 20 and 500 1.0 |
| TOGETHER = 128 | rows brought to bounds with one basis' weights | Letter, linear, |
| | | one class against the rest, 15,000 rows: all at once 1.4 |
"""

import numpy as np
from scipy import linalg

from .dual import EXACT
from .lines import DEPENDENT, Lines, size_of, triangular

NO_STEP = 1e-14
NEAR = 1e-9
CIRCLES = 50
NO_GAIN = 1e-13
ROUND = 100
TOGETHER = 128


def balanced(
    beta: np.ndarray, lo: np.ndarray, hi: np.ndarray, total: float
) -> np.ndarray:
    """beta in its box and at its sum, what is amiss taken off the rows inside it."""
    beta = np.clip(beta, lo, hi)
    amiss = float(beta.sum()) - total
    room = beta - lo if amiss > 0 else hi - beta
    inside = (beta > lo) & (beta < hi)
    # bounds may be huge: no row's room counts for more than the size of beta
    size = np.abs(beta).sum()
    room = np.where(inside, np.minimum(room, size), 0.0)
    share = 0.0
    if room.any():
        share = min(1.0, abs(amiss) / room.sum())
    taken = np.sign(amiss) * share * room
    return np.clip(beta - taken, lo, hi)


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
        self.largest = float(np.abs(g).max())
        self.beta = self._start(beta)
        self.stuck = 0
        # part 1 of the list at the top; then part 2
        inside = (self.beta > self.lo) & (self.beta < self.hi)
        free = self._crossover(np.flatnonzero(inside))
        self.lines = Lines(self.Z, free)
        least = np.inf
        for step in range(200 + 10 * len(beta)):
            self.steps = step
            # where no step has a length, Bland's rule has to end it
            if step % ROUND == 0 and self.stuck < ROUND:
                objective, size = self._objective()
                if objective >= least - NO_GAIN * size:
                    break  # rounding alone moves the point, and may do so in circles
                least = objective
            if not len(self.lines.rows):
                self._first_free()
            target, w, bias = self.lines.solve(self.g, self.beta, self.total)
            before = self.beta.copy()
            if self._go_to(target):
                v = self.g - self.Z @ w - bias
                if not self._free_one(v):
                    break  # no bounded row can come in: the solution, or no minimum
            moved = np.abs(self.beta - before).max()
            none = moved <= NO_STEP * np.abs(self.beta).max()
            self.stuck = self.stuck + 1 if none else 0
        return self.beta

    def _start(self, beta: np.ndarray) -> np.ndarray:
        """beta in its box and at its sum, with values near a bound at it."""
        width = np.minimum(self.hi - self.lo, np.abs(beta).max())
        near = NEAR * width
        beta = np.where(beta - self.lo <= near, self.lo, beta)
        beta = np.where(self.hi - beta <= near, self.hi, beta)
        return balanced(beta, self.lo, self.hi, self.total)

    def _objective(self) -> tuple[float, float]:
        """The objective, and the size of its terms: rounding is a share of that."""
        w = self.Z.T @ self.beta
        square = 0.5 * float(w @ w)
        terms = self.g * self.beta
        objective = square - float(terms.sum())
        return objective, square + float(np.abs(terms).sum())

    def _first_free(self) -> None:
        """Free the row that gains most by rising: any one gives a bias."""
        w = self.Z.T @ self.beta
        v = self.g - self.Z @ w
        of_rising = np.where(self.beta < self.hi, v, -np.inf)
        self.lines.append(int(np.argmax(of_rising)))

    def _go_to(self, target: np.ndarray) -> bool:
        """Take the free rows to `target`, or to the first bound; whether they arrived.

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
        noise = EXACT * self.largest
        if not inwards.max() > noise:
            return False
        if self.stuck > CIRCLES:
            row = int(np.argmax(inwards > noise))  # Bland's rule: the first of them
        else:
            row = int(np.argmax(inwards))
        weights = self.lines.weights(row)
        if weights is None:
            self.lines.append(row)
            return True
        # along A'd = 0, which leaves w as it is
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
        # hi - beta of those that rise, beta - lo of those that fall
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
        bound = self.hi if step[k] > 0 else self.lo
        self.beta[met] = bound[met]

    def _crossover(self, rows: np.ndarray) -> np.ndarray:
        """Bring some of `rows`, which are inside their box, to bounds.

        The others, whose lines are independent, are given back; they are rather those
        far from their bounds.
        """
        if not len(rows):
            return rows
        basis, others = self._basis(rows)
        for first in range(0, len(others), TOGETHER):
            part = others[first : first + TOGETHER]
            weights = self._weights(basis, part)
            for j, row in enumerate(part.tolist()):
                k = self._bring_to_bound(row, basis, weights[:, j])
                if k < len(basis):  # the row takes the place of the k-th of the basis
                    basis[k] = row
                    # the lines to come are made up from the new basis
                    entering = weights[k] / weights[k, j]
                    weights -= np.outer(weights[:, j], entering)
                    weights[k] = entering
        return basis

    def _basis(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Part `rows` into a basis, whose lines are independent, and the others.

        Rows far from their bounds are the first in the basis.
        """
        beta = self.beta[rows]
        near = np.minimum(beta - self.lo[rows], self.hi[rows] - beta)
        weight = np.maximum(np.sqrt(near / near.max()), 1e-4)
        # pivots are taken by size: a row weighs more the farther it is from its bounds
        weighted = self._scaled_lines(rows) * weight[:, None]
        R, order = linalg.qr(weighted.T, mode="r", pivoting=True)
        size = np.abs(np.diagonal(R))
        independent = size > 0.1 * DEPENDENT * size[0]
        rank = int(np.count_nonzero(independent))
        return rows[order[:rank]], rows[order[rank:]]

    def _scaled_lines(self, rows: np.ndarray) -> np.ndarray:
        """Lines of some rows, (rows, d + 1), the z of a size with the 1 beside them."""
        z = self.Z[rows] / size_of(self.Z)
        return np.column_stack([z, np.ones(len(rows))])

    def _weights(self, basis: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(basis, rows): the weights with which the basis makes up the rows' lines."""
        Q, R = linalg.qr(self._scaled_lines(basis).T, mode="economic")
        along = Q.T @ self._scaled_lines(rows).T
        return triangular(R, along)

    def _bring_to_bound(self, row: int, basis: np.ndarray, weights: np.ndarray) -> int:
        """Move a row against the basis, uphill in g'b, until one of them is at a bound.

        Returns its place in the basis, whose length stands for the row itself.
        """
        gain = self.g[row] - weights @ self.g[basis]
        rises = gain > 0
        if abs(gain) <= NEAR * self.largest:  # rounding: the nearer bound
            to_hi = self.hi[row] - self.beta[row]
            to_lo = self.beta[row] - self.lo[row]
            rises = to_hi < to_lo
        way = 1.0 if rises else -1.0
        both = np.append(basis, row)
        uphill = np.append(-way * weights, way)
        for step in (uphill, -uphill):
            length, k = self._first_bound(both, step)
            if np.isfinite(length):
                self._move(both, step, length, k)
                return k
        return len(basis)  # no bound either way
