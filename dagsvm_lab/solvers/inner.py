r"""Interior points for a stack of linear machines of few inputs.

    minimise 1/2 |Z'b|^2 - (s p)'b   with  sum b = 0,  0 <= x <= u       (b = s x)

Every row has a signed line A_i = s_i (Z_i, 1), Z_i its row of Z, and a solution has
multipliers z of x >= 0 and w of the room u - x >= 0:

    A (Z'b, bias) - p - z + w = 0,   s'x = 0,   x z = 0,   room w = 0,   all >= 0

A step is Newton's with x z = room w = sigma mu: Mehrotra's predictor to mu = 0, then a
corrector. With dz and dw eliminated,

    dx = D^-1 (r - A q),  D = z / x + w / room,  (A'D^-1 A + I_d) q = A'D^-1 r - (0, e)

where I_d has a 0 for the bias, and e is what s'x lacks: n d^2 multiplications, whatever
C is, and one system of d + 1 unknowns. Machines stand in arrays (machines, rows): a row
that fills up a machine has A = 0 and p = 0, and stays in the middle of its box.

What is at its bound is told by the multipliers: z > x, or w > room.

Invariants: x, room, z and w are positive; the room is moved by -dx, so that it keeps
its digits where x comes to its bound.

References: Ferris and Munson, "Interior-point methods for massive support vector
machines", SIAM J. Optim. 13 (2002); Mehrotra, "On the implementation of a primal-dual
interior point method", SIAM J. Optim. 2 (1992).

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| LEFT_OVER = 1e-7 | of p: residual and gap left to the active set | 1e-5 .98, and up |
| | | to 300 rows more inside their box, C = 1e4 |
| CLOSED = 1e-9 | of p'x: a gap after which no step is taken, for rounding | Segment |
| | | as it is, C = 1e4: 1e-12 loses what was found |
"""

from dataclasses import dataclass

import numpy as np

from .dual import EPS
from .interior import NEWTON_STEPS, SHORT, STALLED

LEFT_OVER = 1e-7
CLOSED = 1e-9


@dataclass(frozen=True)
class Machines:
    """The duals of a stack of machines, each row with its signed line.

    A is (machines, rows, d + 1), p and u are (machines, rows).
    """

    A: np.ndarray
    p: np.ndarray
    u: np.ndarray

    def of(self, some: np.ndarray) -> "Machines":
        """Some of the machines."""
        return Machines(self.A[some], self.p[some], self.u[some])


@dataclass
class Iterate:
    """Where machines stand, or a step: arrays (machines, rows), `bias` (machines,)."""

    x: np.ndarray
    room: np.ndarray
    z: np.ndarray
    w: np.ndarray
    bias: np.ndarray

    def of(self, some: np.ndarray) -> "Iterate":
        """Some of the machines."""
        return Iterate(*(value[some] for value in vars(self).values()))

    def added_to(self, point: "Iterate", length: np.ndarray) -> "Iterate":
        """The point that is this step of every machine, times `length`, further on."""
        along = length[:, None]
        return Iterate(
            point.x + along * self.x,
            point.room + along * self.room,
            point.z + along * self.z,
            point.w + along * self.w,
            point.bias + length * self.bias,
        )

    def longest(self, point: "Iterate", share: float) -> np.ndarray:
        """Of this step, how much of it goes `share` of the way to a bound, or 1."""
        shrinks = [
            (-change / value).max(axis=1)
            for change, value in (
                (self.x, point.x),
                (self.room, point.room),
                (self.z, point.z),
                (self.w, point.w),
            )
        ]
        return share / np.maximum(np.max(shrinks, axis=0), share)


@dataclass(frozen=True)
class Found:
    """What interior points found of each machine.

    Attributes
    ----------
    x : (machines, rows), at 0 where z > x, at its bound where w > room.
    near : (machines,) whether that is near the solution, by LEFT_OVER or by CLOSED.
    steps : (machines,) Newton steps.
    """

    x: np.ndarray
    near: np.ndarray
    steps: np.ndarray


def interior_points(machines: Machines) -> Found:
    """Solve machines to LEFT_OVER, or as far as it goes."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return _interior_points(machines)


def _interior_points(machines: Machines) -> Found:
    """`interior_points`; numbers that overflow end their machine."""
    n = len(machines.p)
    found = Found(np.zeros(machines.p.shape), np.zeros(n, bool), np.zeros(n, int))
    live = np.arange(n)
    point = _start(machines)
    least = np.full(n, np.inf)
    stalled = np.zeros(n, int)
    for step in range(NEWTON_STEPS + 1):
        dual, primal = _residuals(machines, point)
        residual, gap = _shares(machines, point, dual)
        worst = np.maximum(residual, gap)
        stalled = np.where(worst < 0.9 * least, 0, stalled + 1)
        least = np.fmin(least, worst)
        # beyond CLOSED rounding moves the residual, and then everything
        near = (worst <= LEFT_OVER) | (gap <= CLOSED)
        ended = near | ~np.isfinite(worst) | (stalled >= STALLED)
        ended |= step == NEWTON_STEPS
        if ended.any():
            found.x[live[ended]] = _snapped(machines.of(ended), point.of(ended))
            found.near[live[ended]] = near[ended]
            found.steps[live[ended]] = step
            left = ~ended
            if not left.any():
                break
            live = live[left]
            least = least[left]
            stalled = stalled[left]
            machines = machines.of(left)
            point = point.of(left)
            dual = dual[left]
            primal = primal[left]
        point = _newton_step(machines, point, dual, primal)
    return found


def _start(machines: Machines) -> Iterate:
    """A feasible point, and multipliers with which only x z and room w are amiss."""
    A = machines.A
    s = A[:, :, -1]
    x = _feasible(machines)
    weights = np.einsum("mn,mnd->md", x, A)[:, :-1]  # Z'b
    gradient = np.einsum("mnd,md->mn", A[:, :, :-1], weights) - machines.p
    bias = -(s * gradient).sum(axis=1) / np.count_nonzero(s, axis=1)
    slack = gradient + s * bias[:, None]
    least = np.maximum(np.abs(slack).mean(axis=1), 1e-3)[:, None]
    above = np.maximum(slack, 0.0) + least
    below = np.maximum(-slack, 0.0) + least
    return Iterate(x, machines.u - x, above, below, bias)


def _feasible(machines: Machines) -> np.ndarray:
    """x inside its box: both signs have the same sum, in proportion to u."""
    A = machines.A
    p = machines.p
    u = machines.u
    s = A[:, :, -1]
    sums = [np.where(side, u, 0.0).sum(axis=1) for side in (s > 0, s < 0)]
    lines = np.einsum("mnd,mnd->m", A, A) / np.count_nonzero(s, axis=1)
    most = np.abs(p).max(axis=1) / lines  # so that A (w, bias) is about as large as p
    mass = np.minimum(0.5 * np.minimum(*sums), most)
    of_plus, of_minus = (mass / side for side in sums)
    share = np.where(s > 0, of_plus[:, None], of_minus[:, None])
    # a row that fills up is in the middle of its box, which is 2 wide
    return np.where(s == 0, 1.0, share * u)


def _residuals(machines: Machines, point: Iterate) -> tuple[np.ndarray, np.ndarray]:
    """What is left of the first condition, and what the sums of s x lack."""
    A = machines.A
    sums = np.matmul(point.x[:, None, :], A)[:, 0]  # (machines, d + 1): Z'b, s'x
    q = sums.copy()
    q[:, -1] = point.bias
    outputs = np.matmul(A, q[:, :, None])[:, :, 0]
    return outputs - machines.p - point.z + point.w, -sums[:, -1]


def _shares(
    machines: Machines, point: Iterate, dual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A machine's residual as a share of p, and its gap as one of p'x."""
    gap = (point.x * point.z + point.room * point.w).sum(axis=1)
    size = (np.abs(machines.p) * point.x).sum(axis=1)
    residual = np.abs(dual).max(axis=1) / np.abs(machines.p).max(axis=1)
    return residual, gap / size


def _newton_step(
    machines: Machines, point: Iterate, dual: np.ndarray, primal: np.ndarray
) -> Iterate:
    """The next point: a predictor to mu = 0, and a corrector to sigma mu."""
    newton = _Newton(machines, point, dual, primal)
    x_z = point.x * point.z
    room_w = point.room * point.w
    ahead = newton.change(-x_z, -room_w)
    mu = (x_z + room_w).mean(axis=1) / 2
    reached = ahead.added_to(point, ahead.longest(point, 1.0))
    mu_reached = (reached.x * reached.z + reached.room * reached.w).mean(axis=1) / 2
    # Mehrotra: the less the predictor could lower mu, the nearer to the centre
    centre = ((mu_reached / mu) ** 3 * mu)[:, None]
    change = newton.change(
        centre - x_z - ahead.x * ahead.z, centre - room_w - ahead.room * ahead.w
    )
    return change.added_to(point, change.longest(point, SHORT))


class _Newton:
    """Newton's system at a point, factored into what all right sides share."""

    def __init__(self, machines: Machines, point: Iterate, dual, primal):
        self.A = machines.A
        self.point = point
        self.dual = dual
        self.primal = primal
        self.inverse = 1.0 / (point.z / point.x + point.w / point.room)  # D^-1
        self.scaled = self.A * self.inverse[:, :, None]
        N = np.matmul(self.A.transpose(0, 2, 1), self.scaled)
        d = self.A.shape[2] - 1
        N[:, range(d), range(d)] += 1.0
        # in units in which the diagonal is 1 fewer digits are lost
        self.units = 1.0 / np.sqrt(np.diagonal(N, axis1=1, axis2=2))
        self.N = N * self.units[:, :, None] * self.units[:, None, :]
        # equal lines make it singular, which `solve` refuses
        self.N[:, range(d + 1), range(d + 1)] += 8.0 * EPS

    def change(self, of_zero: np.ndarray, of_bound: np.ndarray) -> Iterate:
        """The step that changes x z by `of_zero` and room w by `of_bound`."""
        point = self.point
        right = of_zero / point.x - of_bound / point.room - self.dual
        goal = np.matmul(right[:, None, :], self.scaled)[:, 0]  # (machines, d + 1)
        goal[:, -1] -= self.primal
        q = np.linalg.solve(self.N, (self.units * goal)[:, :, None])
        q *= self.units[:, :, None]
        dx = self.inverse * (right - np.matmul(self.A, q)[:, :, 0])
        dz = (of_zero - point.z * dx) / point.x
        dw = (of_bound + point.w * dx) / point.room
        return Iterate(dx, -dx, dz, dw, q[:, -1, 0])


def _snapped(machines: Machines, point: Iterate) -> np.ndarray:
    """x, at 0 or at its bound where the multiplier says so."""
    x = np.where(point.z > point.x, 0.0, point.x)
    return np.where(point.w > point.room, machines.u, x)
