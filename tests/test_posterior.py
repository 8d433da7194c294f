"""Soft labels and trees retrained on groups, by brute force on tiny sets."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from dagsvm_lab import BinaryTreeSVC, PosteriorSVC
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code
from dagsvm_lab.systems.base import Sample
from dagsvm_lab.systems.posterior import READINGS, Neighbourhood, neighbourhood

TIGHT = dict(C=10.0, gamma=0.3, tol=1e-6)


def blobs(n_classes: int, each: int, spread: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, 2), scale=3)
    y = np.repeat(np.arange(n_classes), each)
    return means[y] + rng.normal(size=(len(y), 2), scale=spread), y


def test_soft_labels_are_neighbour_shares():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    sample = Sample(X, codes, Kernel("rbf", 1.0), None, None)
    near = Neighbourhood(sample, k=5)
    rows = np.flatnonzero(codes != 2)
    found = NearestNeighbors(n_neighbors=5).fit(X[rows]).kneighbors(X[rows], return_distance=False)
    np.testing.assert_allclose(near.posterior(np.array([1, -1, 0]), rows), (codes[rows][found] == 0).mean(axis=1))
    found = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(X, return_distance=False)
    shares = np.stack([(codes[found] == c).mean(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(near.posterior(np.array([-1, 1, -1]), np.arange(90)), shares[:, 1])
    both = shares[rows, 0] + shares[rows, 1]
    np.testing.assert_allclose(near.posterior(np.array([1, -1, 0]), rows, "all"), shares[rows, 0] / both)
    window = Neighbourhood(sample, bandwidth=0.5).posterior(np.array([1, -1, 0]), rows)
    w = np.exp(-((X[rows][:, None] - X[rows]) ** 2).sum(-1) / (2 * 0.5**2))
    np.testing.assert_allclose(window, w @ (codes[rows] == 0) / w.sum(axis=1), atol=1e-9)


def test_readings_of_a_soft_label():
    y, s = np.array([1.0, 0.4, 0.0, -0.4, -1.0]), np.ones(5)
    assert READINGS["soft"](y, s).tolist() == y.tolist()
    assert READINGS["sign"](y, s).tolist() == [1, 1, 0, -1, -1]
    assert READINGS["agreeing"](y, s).tolist() == [1, 0.4, 0, 0, 0]
    assert READINGS["own"](y, s) == pytest.approx([1, 0.7, 0.5, 0.3, 0])
    for read in READINGS.values():  # turning both signs round turns the answer round
        np.testing.assert_allclose(read(-y, -s), -read(y, s))
    with pytest.raises(ValueError, match="reading"):
        PosteriorSVC(reading="hard").fit(*blobs(3, 9, 1.0))


def test_a_row_is_its_own_first_neighbour_even_beside_duplicates():
    X, codes = np.zeros((6, 2)), np.array([0, 0, 0, 1, 1, 1])
    sample = Sample(X, codes, Kernel(), None, None)
    near = Neighbourhood(sample, k=1)
    assert near.posterior(np.array([1, -1]), np.arange(6)).tolist() == [1, 1, 1, 0, 0, 0]
    near = Neighbourhood(sample, k=3)  # itself, and two of five equals, shared evenly
    assert near.posterior(np.array([1, -1]), np.arange(1)) == pytest.approx((1 + 2 * 2 / 5) / 3)


def test_neighbours_are_looked_up_by_content():
    X, y = blobs(3, 20, 1.0)
    first = neighbourhood(Sample(X, y, Kernel(), None, None), 5)
    assert neighbourhood(Sample(X.copy(), y.copy(), Kernel(gamma=9.0), None, None), 5) is first
    assert neighbourhood(Sample(X, y[::-1].copy(), Kernel(), None, None), 5) is not first


def test_soft_labels_of_far_classes_are_hard():
    X, y = blobs(3, 30, 0.01)
    sample = Sample(X, y, Kernel(), None, None)
    for reading in READINGS:
        rows = np.flatnonzero(y < 2)
        sign = 1.0 - 2 * y[rows]
        soft = PosteriorSVC(reading=reading)._special(sample, pair_code(3))["soft"]
        np.testing.assert_array_equal(soft(0, rows, sign), sign)


def grouped_by_hand(X, y, follow):
    """The retrained c-BTS as nested (machine, left, right), every machine scikit-learn's SVC between two groups."""
    kit = dict(C=10.0, gamma=0.3, tol=1e-6)

    def tree(classes):
        if len(classes) == 1:
            return classes[0]
        rows = np.isin(y, classes)
        far = [((X[y == c].mean(axis=0) - X[rows].mean(axis=0)) ** 2).sum() for c in classes]
        i, j = sorted(classes[k] for k in np.argsort(far)[:2])
        f = SVC(**kit).fit(X[(y == i) | (y == j)], y[(y == i) | (y == j)] == i).decision_function(X)
        right = {c: 1.0 if c == i else 0.0 if c == j else np.mean(f[y == c] >= 0) for c in classes}
        left = [c for c in classes if right[c] < 0.5 or min(right[c], 1 - right[c]) > follow]
        right = [c for c in classes if right[c] >= 0.5 or min(right[c], 1 - right[c]) > follow]
        one_way = np.isin(y, list(set(left) ^ set(right)))
        machine = SVC(**kit).fit(X[one_way], np.isin(y[one_way], right))
        return machine, tree(left), tree(right)

    return tree(sorted(set(y.tolist())))


@pytest.mark.parametrize("follow", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_retrained_trees_by_brute_force(follow, seed):
    X, y = blobs(6, 25, 1.2, seed)
    T = blobs(6, 40, 1.2, seed)[0]

    def walk(node, x):
        while isinstance(node, tuple):
            node = node[2] if node[0].decision_function(x[None])[0] >= 0 else node[1]
        return node

    root = grouped_by_hand(X, y, follow)
    est = BinaryTreeSVC(**TIGHT, routing="classes", follow=follow, retrain=True).fit(X, y)
    assert np.mean(est.predict(T) == [walk(root, x) for x in T]) > 0.99
    if follow == 0.5:
        assert est.machines_.code.shape == (5, 6) and est.graph_.n_nodes == 11  # no class goes both ways: n - 1


def test_retrained_trees_over_a_bank_saved_and_refused(tmp_path):
    X, y = load_iris(return_X_y=True)
    about = dict(TIGHT, routing="classes", follow=0.2, retrain=True, posterior=True, reading="own")
    alone = BinaryTreeSVC(**about).fit(X, y)
    pairs = PosteriorSVC(**TIGHT, reading="own").fit(X, y)
    over = BinaryTreeSVC(**about).fit_over(pairs.machines_, X, y)
    np.testing.assert_array_equal(alone.decision_function(X), over.decision_function(X))
    alone.save(tmp_path / "tree.npz")
    np.testing.assert_array_equal(BinaryTreeSVC.load(tmp_path / "tree.npz").predict(X), alone.predict(X))
    with pytest.raises(ValueError, match="routing"):
        BinaryTreeSVC(retrain=True).fit(X, y)
