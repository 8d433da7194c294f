r"""Interior points for direct multiclass duals (direct.py), in NumPy.

    minimise  1/2 sum_m c_m' Z Z' c_m - sum_i c_{i,y_i}
    with      sum_m c_im = 0 for every row i,  0 <= sign c <= upper

where sign is 1 for a row's own class y_i and -1 for the others, and upper may be
infinite. In x = sign c a solution has multipliers y_i of the sums, z of x >= 0 and w of
the room = upper - x >= 0, with goal 1 for own classes and 0 for others:

    sign (Z Z' c - goal - y) - z + w = 0,   x z = 0,   room w = 0,   x, room, z, w >= 0.

A step is Newton's on these conditions with x z = room w = sigma mu: Mehrotra's
predictor to mu = 0, then a corrector. Eliminating dz and dw leaves, for every class,
(Z Z' + D) dc = r + dy with D diagonal and positive: the formula of Sherman, Morrison
and Woodbury where Z is narrow, a Cholesky factor where it is wide.

Invariants: x, room, z and w are positive. The room is stored, and moved by -dx, so that
it keeps its digits where x comes to its bound.

References: Mehrotra, "On the implementation of a primal-dual interior point method",
SIAM J. Optim. 2 (1992); Ferris and Munson, "Interior-point methods for massive support
vector machines", SIAM J. Optim. 13 (2002), for the low-rank form.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

NEWTON_STEPS = 100  # Newton steps at most; hard duals take 10 to 40
STALLED = 12  # steps without a smaller residual after which the best point is taken
SHORT = 0.995  # share of the way to the nearest bound that a step goes


@dataclass(frozen=True)
class Program:
    """The program at the top: Z (rows, rank); sign, upper and c (classes, rows)."""

    Z: np.ndarray
    sign: np.ndarray
    upper: np.ndarray


@dataclass
class Iterate:
    """An iterate: arrays (classes, rows), and `y` (rows,).

    Where there is no bound, room is 1 and w is 0, and they stay so.
    """

    x: np.ndarray
    room: np.ndarray
    z: np.ndarray
    w: np.ndarray
    y: np.ndarray

    def moved(self, step: "Iterate", length: float) -> "Iterate":
        """The point `length` steps on."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return Iterate(*(now + length * change for now, change in pairs))

    def mu(self) -> float:
        """The mean of the products x z and room w."""
        at_zero = np.sum(self.x * self.z)
        at_bound = np.sum(self.room * self.w)
        products = self.z.size + np.count_nonzero(self.w)
        return float(at_zero + at_bound) / products


@dataclass(frozen=True)
class Interior:
    """What was found: c, which of it is at 0 and at its bound, and the steps taken."""

    c: np.ndarray
    at_zero: np.ndarray
    at_bound: np.ndarray
    steps: int


def interior_points(program: Program, tol: float = 1e-10) -> Interior:
    """Solve a program whose solution is of order one, to residuals of `tol`.

    Where rounding stops it before, the best point met is given. An entry is at 0 where
    z > x, at its bound where w > room: a guess, which may leave too few entries between
    for the sums.
    """
    point = _start(program)
    best = point
    least = np.inf
    stalled = 0
    steps = 0
    while True:
        dual, primal = _residuals(program, point)
        worst = max(point.mu(), np.abs(dual).max(), np.abs(primal).max())
        if not np.isfinite(worst):
            break
        stalled = 0 if worst < 0.9 * least else stalled + 1
        if worst < least:
            best = point
            least = worst
        if least <= tol or stalled == STALLED or steps == NEWTON_STEPS:
            break
        try:
            point = _newton_step(program, point, dual, primal)
            steps += 1
        except linalg.LinAlgError:
            break
    at_bound = best.w > best.room
    at_zero = (best.z > best.x) & ~at_bound
    return Interior(program.sign * best.x, at_zero, at_bound, steps)


def _start(program: Program) -> Iterate:
    """The point to start from: 1, or half of a bound that is less than 2."""
    bounded = np.isfinite(program.upper)
    x = np.minimum(0.5 * program.upper, 1.0)
    room = np.where(bounded, program.upper - x, 1.0)
    w = np.where(bounded, 1.0 / np.maximum(room, 1.0), 0.0)
    return Iterate(x, room, np.ones(x.shape), w, np.zeros(x.shape[1]))


def _residuals(program: Program, point: Iterate) -> tuple[np.ndarray, np.ndarray]:
    """(what is left of the first condition, what the sums miss)."""
    c = program.sign * point.x
    goal = np.maximum(program.sign, 0.0)
    gradient = (c @ program.Z) @ program.Z.T - goal - point.y
    dual = program.sign * gradient - point.z + point.w
    return dual, -c.sum(axis=0)


def _newton_step(
    program: Program, point: Iterate, dual: np.ndarray, primal: np.ndarray
) -> Iterate:
    """The next point: a predictor to mu = 0, and a corrector to sigma mu."""
    x = point.x
    room = point.room
    z = point.z
    w = point.w
    bounded = w > 0
    solve = _newton_system(program, z / x + w / room)

    def towards(of_zero: np.ndarray, of_bound: np.ndarray) -> Iterate:
        """The Newton step that changes x z by `of_zero` and room w by `of_bound`."""
        right = of_zero / x - of_bound / room - dual
        dc, dy = solve(program.sign * right, primal)
        dx = program.sign * dc
        dz = (of_zero - z * dx) / x
        dw = (of_bound + w * dx) / room
        return Iterate(dx, np.where(bounded, -dx, 0.0), dz, dw, dy)

    # Mehrotra: the less the predictor could lower mu, the nearer to the centre
    ahead = towards(-x * z, -room * w)
    mu = point.mu()
    reached = point.moved(ahead, _length(point, ahead, 1.0)).mu()
    sigma = (reached / mu) ** 3
    centre = sigma * mu
    # the corrector: what the predictor's products would add is taken off
    of_zero = centre - x * z - ahead.x * ahead.z
    of_bound = np.where(bounded, centre - room * w - ahead.room * ahead.w, 0.0)
    step = towards(of_zero, of_bound)
    return point.moved(step, _length(point, step, SHORT))


def _length(point: Iterate, step: Iterate, share: float) -> float:
    """The largest length up to 1 that goes at most `share` of the way to the nearest
    bound.
    """
    longest = 1.0
    for name in ("x", "room", "z", "w"):
        change = getattr(step, name)
        falls = change < 0
        if falls.any():
            ratio = getattr(point, name)[falls] / -change[falls]
            longest = min(longest, share * float(ratio.min()))
    return longest


def _newton_system(program: Program, D: np.ndarray) -> Callable:
    """What solves (Z Z' + D) dc - dy = right, sum of dc over classes = rest."""
    inverses = [_inverse(program.Z, d) for d in D]
    every = np.eye(D.shape[1])
    schur = linalg.cho_factor(sum(inverse(every) for inverse in inverses))

    def solve(right: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # without dy, the sums would miss `rest` by what dy is solved from
        found = [inverse(r) for inverse, r in zip(inverses, right, strict=True)]
        dy = linalg.cho_solve(schur, rest - sum(found))
        of_dy = [inverse(dy) for inverse in inverses]
        return np.array(found) + np.array(of_dy), dy

    return solve


def _inverse(Z: np.ndarray, d: np.ndarray) -> Callable:
    """What solves with Z Z' + diag(d), for one right side or several."""
    n, rank = Z.shape
    if 2 * rank > n:
        matrix = Z @ Z.T
        matrix[np.diag_indices(n)] += d
        factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
        return lambda r: linalg.cho_solve(factor, r)
    # Sherman, Morrison, Woodbury: a system of Z's rank in the place of one of n
    scaled = Z / d[:, None]
    inner = Z.T @ scaled
    inner[np.diag_indices(rank)] += 1.0
    factor = linalg.cho_factor(inner, lower=True, overwrite_a=True)

    def solve(r: np.ndarray) -> np.ndarray:
        plain = (r.T / d).T
        return plain - scaled @ linalg.cho_solve(factor, Z.T @ plain)

    return solve
