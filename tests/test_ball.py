"""The smallest enclosing ball: by hand, by brute force, grown from a few points."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from dagsvm_lab.solvers.ball import ball_of, enclosing_ball


def smallest_circle(P) -> float:
    """Radius of the smallest circle around points of the plane: the best through two or
    three of them.
    """
    best = np.inf
    for count in (2, 3):
        for chosen in combinations(P, count):
            A = np.array([q - chosen[0] for q in chosen[1:]])
            # the centre is the point of their span at equal distance from all
            centre = (
                chosen[0] + np.linalg.lstsq(2 * A, (A**2).sum(axis=1), rcond=None)[0]
            )
            r = np.linalg.norm(P - centre, axis=1).max()
            best = min(best, r)
    return best


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 12))
def test_enclosing_ball_by_brute_force(seed, n):
    P = np.random.default_rng(seed).normal(size=(n, 2)) + 30
    radius, c = enclosing_ball(P @ P.T)
    assert c.min() >= 0 and c.sum() == pytest.approx(1)
    assert np.linalg.norm(P - c @ P, axis=1).max() == pytest.approx(radius, rel=1e-6)
    assert radius == pytest.approx(smallest_circle(P), rel=1e-6)


def test_enclosing_ball_known_and_grown():
    # orthonormal points
    assert enclosing_ball(np.eye(4))[0] == pytest.approx(np.sqrt(3 / 4))
    assert enclosing_ball(np.ones((3, 3)))[0] == 0
    X = np.random.default_rng(0).normal(size=(400, 4))
    K = rbf_kernel(X, gamma=0.3)
    small = ball_of(np.ones(400), lambda rows: K[:, rows], batch=7)
    assert small[0] == pytest.approx(enclosing_ball(K)[0], rel=1e-8)
    assert enclosing_ball(9 * K)[0] == pytest.approx(3 * small[0], rel=1e-8)
