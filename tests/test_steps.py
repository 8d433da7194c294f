"""Steps of SMO against the rule that steps.py states, written plainly."""

import weakref

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dagsvm_lab.solvers.steps import (
    STEPS_AT_ONCE,
    STRETCH,
    Point,
    smo_one,
    smo_stack,
    split_gradient,
)
from dagsvm_lab.solvers.table import half_distances, own_matrices

C = 2.0
N = 40  # rows


def plain_steps(K, s) -> np.ndarray:
    """Beta after some steps from zero: the largest v, and the partner that gains most.

    A partner of first order, the least v, is another one in most steps.
    """
    lo = np.minimum(C * s, 0.0)
    hi = np.maximum(C * s, 0.0)
    beta = np.zeros(N)
    for _ in range(STEPS_AT_ONCE):
        v = s - K @ beta
        i = np.where(beta < hi, v, -np.inf).argmax()
        eta = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-12)
        gain = np.where((beta > lo) & (v < v[i]), (v[i] - v) ** 2 / eta, -np.inf)
        j = gain.argmax()
        t = min(STRETCH * (v[i] - v[j]) / eta[j], hi[i] - beta[i], beta[j] - lo[j])
        beta[i] += t
        beta[j] -= t
    return beta


@pytest.mark.parametrize("duals", [1, 6], ids=["alone", "stacked"])
def test_steps_go_to_the_partner_of_second_order(duals):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    s = np.where(X[:, 0] + rng.normal(size=N) > 0, 1.0, -1.0)
    K = np.array([rbf_kernel(X, gamma=g) for g in np.geomspace(0.1, 1.0, duals)])
    lo = np.tile(np.minimum(C * s, 0.0), (duals, 1))
    hi = np.tile(np.maximum(C * s, 0.0), (duals, 1))
    beta = np.zeros((duals, N))
    v2 = split_gradient(np.tile(s, (duals, 1)), beta, lo, hi)
    table = own_matrices(half_distances(K, single=False))
    limit = np.full(duals, STEPS_AT_ONCE)
    taken = smo_stack(table, Point(v2, beta, lo, hi), np.zeros(duals), limit)
    assert taken.tolist() == limit.tolist()
    for k in range(duals):
        np.testing.assert_allclose(beta[k], plain_steps(K[k], s), atol=1e-9)


@pytest.mark.parametrize("room", [2, 5])
def test_one_dual_keeps_no_more_rows_than_it_may(room):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    s = np.where(X[:, 0] + rng.normal(size=N) > 0, 1.0, -1.0)
    (H,) = half_distances(rbf_kernel(X, gamma=0.5)[None], single=False)
    lo = np.minimum(C * s, 0.0)
    hi = np.maximum(C * s, 0.0)
    fetched = []
    alive = []

    def fetch(i):
        row = H[i].copy()
        fetched.append(weakref.ref(row))
        alive.append(sum(one() is not None for one in fetched))
        return row

    beta = np.zeros(N)
    point = Point(split_gradient(s.copy(), beta, lo, hi), beta, lo, hi)
    assert smo_one(fetch, point, 1e-6, 1000, room) > 20
    assert max(alive) <= room + 2, "besides those kept, the two of a step"
