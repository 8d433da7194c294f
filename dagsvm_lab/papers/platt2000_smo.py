"""The plain SMO of Platt 1998 ("Fast training of support vector machines"), with its kernel evaluations counted.

    minimise 1/2 sum_ij a_i a_j y_i y_j K_ij - sum_i a_i    with  sum_i y_i a_i = 0,  0 <= a_i <= C

One pair of multipliers moves at a time. Invariants: both constraints hold after every step, and E_i = f(x_i) - y_i.
The machine stops when no row breaks the KKT conditions by more than `tol` (or no step on one is large enough).
`evaluations` counts the kernel values that the 1998 program asks for: those of all support vectors for the error of a
row at a bound, two for each row off the bounds when the cache of errors follows a step, three for a pair that is tried.
A count depends on the rows alone, not on the computer. For speed this program is given all kernel values and keeps
every E_i.
"""

from typing import NamedTuple

import numpy as np

BLOCK = 256  # rows whose conditions are looked at in one array call


class Trained(NamedTuple):
    """Multipliers, bias of f(x) = sum_i a_i y_i K(x_i, x) + bias, steps taken, and kernel values asked for."""

    alpha: np.ndarray
    bias: float
    steps: int
    evaluations: int


def smo1998(K: np.ndarray, y: np.ndarray, C: float, tol: float = 1e-3, eps: float = 1e-3, seed: int = 0) -> Trained:
    """Train one machine on rows with kernel matrix K and labels y of -1 and 1, by the program of 1998.

    `tol` is the largest violation of the KKT conditions (1998's text has 1e-3 to 1e-2), `eps` the smallest relative
    step; `seed` is of the places where loops over candidates start.

    Examples
    --------
    >>> x, y = np.array([0.0, 1.0, 3.0, 4.0]), np.array([-1, -1, 1, 1])
    >>> smo1998(np.outer(x, x), y, C=10.0).alpha.round(3)
    array([0. , 0.5, 0.5, 0. ])
    """
    state = _State(K, y.astype(float), C, tol, eps, seed)
    everything, changed = True, 0
    while changed or everything:
        changed = state.sweep(everything)
        everything = not everything and not changed
    return Trained(state.alpha, state.bias, state.steps, state.evaluations)


class _State:
    """What the program holds between steps; `error` is exact after every step, up to rounding."""

    def __init__(self, K, y, C, tol, eps, seed):
        self.K, self.y, self.C, self.tol, self.eps = K, y, C, tol, eps
        self.alpha, self.error, self.bias = np.zeros(len(y)), -y.copy(), 0.0
        self.free = np.zeros(len(y), bool)  # 0 < alpha < C
        self.steps = self.evaluations = self.n_support = self.n_free = 0
        self.rng = np.random.default_rng(seed)
        self.diagonal = np.diagonal(K).astype(float)

    def sweep(self, everything: bool) -> int:
        """Examine all rows in turn, or those off the bounds; how many of them moved."""
        changed, at, m = 0, 0, len(self.y)
        while at < m:
            part = slice(at, min(at + BLOCK, m))
            r, a, free = self.error[part] * self.y[part], self.alpha[part], self.free[part]
            broken = ((r < -self.tol) & (a < self.C)) | ((r > self.tol) & (a > 0))
            found = np.flatnonzero(broken if everything else broken & free)
            end = at + found[0] if len(found) else part.stop - 1
            if everything:  # a row at a bound has no cached error
                self.evaluations += self.n_support * (end + 1 - at - int(np.count_nonzero(free[: end + 1 - at])))
            if len(found):
                changed += self.examine(end)
            at = end + 1
        return changed

    def examine(self, i: int) -> bool:
        """Move row i with the best partner: the largest |E_j - E_i|, then any off the bounds, then any."""
        free = np.flatnonzero(self.free)
        if len(free) > 1 and self.tried(i, free[[np.argmax(np.abs(self.error[free] - self.error[i]))]]):
            return True
        return any(len(rows) and self.tried(i, np.roll(rows, -self.rng.integers(len(rows))))
                   for rows in (free, np.arange(len(self.y))))  # fmt: skip

    def tried(self, i: int, j: np.ndarray) -> bool:
        """Take the step with the first of the partners j that allows one of sufficient size."""
        y, a, C = self.y, self.alpha, self.C
        same = y[j] == y[i]
        low = np.where(same, np.maximum(0, a[i] + a[j] - C), np.maximum(0, a[i] - a[j]))
        high = np.where(same, np.minimum(C, a[i] + a[j]), np.minimum(C, C + a[i] - a[j]))
        eta = np.maximum(self.diagonal[j] + self.diagonal[i] - 2 * self.K[i, j], 1e-12)
        new = np.clip(a[i] + y[i] * (self.error[j] - self.error[i]) / eta, low, high)
        new[new < 1e-8 * C] = 0.0
        new[new > C * (1 - 1e-8)] = C
        found = np.flatnonzero((np.abs(new - a[i]) >= self.eps * (new + a[i] + self.eps)) & (j != i) & (high > low))
        looked = j[: found[0] + 1] if len(found) else j
        at_bound = len(looked) - int(np.count_nonzero(self.free[looked]))
        self.evaluations += 3 * len(looked) + self.n_support * at_bound
        if len(found):
            self.step(i, int(j[found[0]]), float(new[found[0]]))
        return len(found) > 0

    def step(self, i: int, j: int, new: float) -> None:
        """Set a_i to `new`, a_j to keep sum_i y_i a_i = 0; the bias puts a row off the bounds on its margin."""
        y, a, C = self.y, self.alpha, self.C
        other = min(max(a[j] + y[i] * y[j] * (a[i] - new), 0.0), C)
        other = 0.0 if other < 1e-8 * C else C if other > C * (1 - 1e-8) else other
        change = y[i] * (new - a[i]) * self.K[i] + y[j] * (other - a[j]) * self.K[j]
        bi, bj = (-self.error[k] - change[k] for k in (i, j))  # makes E_i or E_j zero
        shift = bi if 0 < new < C else bj if 0 < other < C else (bi + bj) / 2
        for k, value in ((i, new), (j, other)):
            self.n_support += int(value > 0) - int(a[k] > 0)
            self.n_free += int(0 < value < C) - int(self.free[k])
            a[k], self.free[k] = value, 0 < value < C
        self.error += change
        self.error += shift
        self.bias += shift
        self.evaluations += 2 * self.n_free
        self.steps += 1
