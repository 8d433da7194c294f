r"""The smallest ball that encloses points of feature space.

Its square radius is

    R^2 = max  sum_i c_i K_ii - c'Kc   with  sum c = 1,  c >= 0,

and its centre sum_i c_i phi(x_i) (Schoelkopf, Burges, Vapnik 1995): the dual of hard.py
with the matrix 2 K, g_i = K_ii, and the total 1. A ball around a few points grows by
the points farthest outside it until it holds all, so the kernel matrix need not exist.
"""

from collections.abc import Callable

import numpy as np

from .dual import EPS
from .hard import ActiveSet, centred_factor

NEW_POINTS = 200  # that a ball grows by at a time


def enclosing_ball(K, tol: float = 1e-9) -> tuple[float, np.ndarray]:
    """(radius, c) of the smallest ball around all phi(x_i), centre sum c_i phi(x_i)."""
    K = np.asarray(K)
    diagonal = np.diagonal(K).astype(float)
    return ball_of(diagonal, lambda rows: K[:, rows].astype(float), tol)


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
        distance = diagonal - 2 * (block @ weight) + weight @ block[work] @ weight
        outer = max(float(distance.max()), 0.0)
        outside = np.flatnonzero(distance > inner + tol * outer)
        outside = np.setdiff1d(outside, work, assume_unique=True)
        if len(outside) == 0 or outer <= EPS * np.abs(diagonal).max():
            c = np.zeros(len(diagonal))
            c[work] = weight
            return float(np.sqrt(outer)), c
        # points that hold the ball stay: the radius grows, so no set comes back
        holding = weight > 0
        farthest = outside[np.argsort(-distance[outside], kind="stable")[:batch]]
        start = np.concatenate([weight[holding], np.zeros(len(farthest))])
        work = np.concatenate([work[holding], farthest])
        weight, inner = _ball(columns(work)[work], start)


def _ball(K: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
    """(c, square radius) of the smallest ball around all the points of K."""
    Z = centred_factor(np.diagonal(K), lambda rows: K[:, rows])
    square = (Z**2).sum(axis=1)
    ball = ActiveSet(np.sqrt(2.0) * Z, np.zeros(len(K)), np.ones(len(K)), 1.0)
    c = ball.solve(square, start)
    centre = Z.T @ c
    return c, float(square @ c - centre @ centre)
