r"""The smallest ball that encloses points of feature space.

Its square radius is

    R^2 = max  sum_i c_i K_ii - c'Kc   with  sum c = 1,  c >= 0,

and its centre sum_i c_i phi(x_i) (Schoelkopf, Burges, Vapnik 1995): the dual of
vertex.py with the matrix 2 K, g_i = K_ii, and the total 1. A ball around a few points
grows by the points farthest outside it until it holds all, so the kernel matrix need
not exist.
"""

from collections.abc import Callable

import numpy as np

from .dual import EPS
from .lowrank import centred_factor
from .vertex import ActiveSet

NEW_POINTS = 200  # that a ball grows by at a time


def enclosing_ball(K, tol: float = 1e-9) -> tuple[float, np.ndarray]:
    """(radius, c) of the smallest ball around all phi(x_i), centre sum c_i phi(x_i)."""
    K = np.asarray(K)
    diagonal = np.diagonal(K).astype(float)

    def columns(rows: np.ndarray) -> np.ndarray:
        """Columns of K in float64."""
        return K[:, rows].astype(float)

    return ball_of(diagonal, columns, tol)


def ball_of(
    diagonal: np.ndarray, columns: Callable, tol: float = 1e-9, batch: int = NEW_POINTS
) -> tuple[float, np.ndarray]:
    """`enclosing_ball` from K's diagonal and a function that gives its columns.

    The ball encloses every point, and is at most `tol` (relative) larger than the
    smallest.
    """
    work = np.argsort(-diagonal, kind="stable")[:1]
    weight = np.ones(1)
    inner = 0.0  # the square radius of the smallest ball around the working points
    while True:
        block = columns(work)  # (n, working points)
        # square distance of every point from the centre
        of_centre = weight @ block[work] @ weight
        distance = diagonal - 2 * (block @ weight) + of_centre
        outer = max(float(distance.max()), 0.0)
        outside = np.flatnonzero(distance > inner + tol * outer)
        outside = np.setdiff1d(outside, work, assume_unique=True)
        one_point = outer <= EPS * np.abs(diagonal).max()  # all equal up to rounding
        if len(outside) == 0 or one_point:
            c = np.zeros(len(diagonal))
            c[work] = weight
            return float(np.sqrt(outer)), c
        # points that hold the ball stay: the radius grows, so no set comes back
        holding = weight > 0
        by_distance = np.argsort(-distance[outside], kind="stable")
        farthest = outside[by_distance[:batch]]
        work = np.concatenate([work[holding], farthest])
        start = np.concatenate([weight[holding], np.zeros(len(farthest))])
        weight, inner = _ball(columns(work)[work], start)


def _ball(K: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
    """(c, square radius) of the smallest ball around all the points of K."""
    n = len(K)
    Z = centred_factor(np.diagonal(K), lambda rows: K[:, rows])  # (n, rank)
    square = (Z**2).sum(axis=1)
    # |z_i|^2 and Z Z' in the place of K_ii and K: the same ball, only moved
    lo = np.zeros(n)
    hi = np.ones(n)
    ball = ActiveSet(np.sqrt(2.0) * Z, lo, hi, total=1.0)
    c = ball.solve(square, start)
    centre = Z.T @ c
    return c, float(square @ c - centre @ centre)
