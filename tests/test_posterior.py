"""Soft labels and trees of whole classes, by brute force on tiny sets."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC

from dagsvm_lab import BinaryTreeSVC, MaxWinsSVC, PosteriorSVC
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.systems.neighbourhood import (
    NearestNeighbourhood,
    WindowNeighbourhood,
    neighbourhood,
)
from dagsvm_lab.systems.posterior import LABELS
from dagsvm_lab.systems.sample import Sample

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
    near = NearestNeighbourhood(sample, k=5)
    rows = np.flatnonzero(codes != 2)
    found = (
        NearestNeighbors(n_neighbors=5)
        .fit(X[rows])
        .kneighbors(X[rows], return_distance=False)
    )
    np.testing.assert_allclose(
        near.posterior(np.array([1, -1, 0]), rows),
        (codes[rows][found] == 0).mean(axis=1),
    )
    found = NearestNeighbors(n_neighbors=5).fit(X).kneighbors(X, return_distance=False)
    shares = np.stack([(codes[found] == c).mean(axis=1) for c in range(3)], axis=1)
    np.testing.assert_allclose(
        near.posterior(np.array([-1, 1, -1]), np.arange(90)), shares[:, 1]
    )
    both = shares[rows, 0] + shares[rows, 1]
    np.testing.assert_allclose(
        near.posterior(np.array([1, -1, 0]), rows, "all"), shares[rows, 0] / both
    )
    window = WindowNeighbourhood(sample, bandwidth=0.5).posterior(
        np.array([1, -1, 0]), rows
    )
    w = np.exp(-((X[rows][:, None] - X[rows]) ** 2).sum(-1) / (2 * 0.5**2))
    np.testing.assert_allclose(
        window, w @ (codes[rows] == 0) / w.sum(axis=1), atol=1e-9
    )


def test_labelss_of_a_soft_label():
    y, s = np.array([1.0, 0.4, 0.0, -0.4, -1.0]), np.ones(5)
    assert LABELS["soft"](y, s).tolist() == y.tolist()
    assert LABELS["sign"](y, s).tolist() == [1, 1, 0, -1, -1]
    assert LABELS["agreeing"](y, s).tolist() == [1, 0.4, 0, 0, 0]
    assert LABELS["own"](y, s) == pytest.approx([1, 0.7, 0.5, 0.3, 0])
    for read in LABELS.values():  # swapping the classes changes the sign
        np.testing.assert_allclose(read(-y, -s), -read(y, s))
    with pytest.raises(ValueError, match="labels"):
        PosteriorSVC(labels="plain").fit(*blobs(3, 9, 1.0))


def test_a_row_is_its_own_first_neighbour_even_beside_duplicates():
    X, codes = np.zeros((6, 2)), np.array([0, 0, 0, 1, 1, 1])
    sample = Sample(X, codes, Kernel(), None, None)
    near = NearestNeighbourhood(sample, k=1)
    assert near.posterior(np.array([1, -1]), np.arange(6)).tolist() == [
        1,
        1,
        1,
        0,
        0,
        0,
    ]
    # itself, and two of five equals, shared evenly
    near = NearestNeighbourhood(sample, k=3)
    assert near.posterior(np.array([1, -1]), np.arange(1)) == pytest.approx(
        (1 + 2 * 2 / 5) / 3
    )


def test_neighbours_are_looked_up_by_content():
    X, y = blobs(3, 20, 1.0)
    first = neighbourhood(Sample(X, y, Kernel(), None, None), 5)
    assert (
        neighbourhood(Sample(X.copy(), y.copy(), Kernel(gamma=9.0), None, None), 5)
        is first
    )
    assert (
        neighbourhood(Sample(X, y[::-1].copy(), Kernel(), None, None), 5) is not first
    )


@pytest.mark.parametrize("labels", sorted(LABELS))
def test_labels_of_far_classes_are_hard(labels):
    X, y = blobs(3, 30, 0.01)
    hard = MaxWinsSVC(**TIGHT).fit(X, y)
    soft = PosteriorSVC(labels=labels, **TIGHT).fit(X, y)
    np.testing.assert_array_equal(
        soft.machines_.coef.toarray(),
        hard.machines_.coef.toarray(),
        err_msg="neighbours of one class confirm it",
    )


def nested(X, y, divided, leaf_machine):
    """A tree over whole classes as nested (machine, left, right), written plainly.

    `divided(i, j, classes)` gives each class's share on the side of i; `leaf_machine`
    trains the node's machine from the classes that go only left and only right.
    """

    def tree(classes):
        if len(classes) == 1:
            return classes[0]
        centre = X[np.isin(y, classes)].mean(axis=0)
        far = [((X[y == c].mean(axis=0) - centre) ** 2).sum() for c in classes]
        i, j = sorted(classes[k] for k in np.argsort(far)[:2])
        left, right = divided(i, j, classes)
        return leaf_machine(i, j, left, right), tree(left), tree(right)

    return tree(sorted(set(y.tolist())))


def two_class(X, y, left, right):
    """scikit-learn's SVC between two groups of classes, without those in both."""
    one_way = np.isin(y, sorted(set(left) ^ set(right)))
    return SVC(**TIGHT).fit(X[one_way], np.isin(y[one_way], right))


@pytest.mark.parametrize("retrain", [True, False])
@pytest.mark.parametrize("split_above", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_trees_of_whole_classes_by_brute_force(split_above, seed, retrain):
    X, y = blobs(6, 25, 1.2, seed)
    T = blobs(6, 40, 1.2, seed)[0]

    def divided(i, j, classes):
        f = two_class(X, y, [j], [i]).decision_function(X)
        share = {c: np.mean(f[y == c] >= 0) for c in classes} | {i: 1.0, j: 0.0}
        split = {c for c in classes if min(share[c], 1 - share[c]) > split_above}
        left = [c for c in classes if share[c] < 0.5 or c in split]
        return left, [c for c in classes if share[c] >= 0.5 or c in split]

    def machine(i, j, left, right):
        return two_class(X, y, left, right) if retrain else two_class(X, y, [j], [i])

    def walk(node, x):
        while isinstance(node, tuple):
            node = node[2] if node[0].decision_function(x[None])[0] >= 0 else node[1]
        return node

    root = nested(X, y, divided, machine)
    est = BinaryTreeSVC(
        **TIGHT, pair="centre", split_above=split_above, retrain=retrain
    ).fit(X, y)
    assert np.mean(est.predict(T) == [walk(root, x) for x in T]) > 0.99
    if split_above == 0.5:  # no class goes both ways: n - 1 machines
        assert est.machines_.code.shape == (5, 6)
        assert est.graph_.n_nodes == 11


def test_a_tree_that_splits_every_class_in_doubt_answers_like_a_vote():
    X, y, T, u = load_iris(return_X_y=True) * 2
    tree = BinaryTreeSVC(**TIGHT).fit(X, y)
    np.testing.assert_array_equal(
        tree.predict(T), MaxWinsSVC(**TIGHT).fit(X, y).predict(T), err_msg="on iris"
    )


def test_retrained_trees_over_a_bank_saved_and_refused(tmp_path):
    X, y = load_iris(return_X_y=True)
    about = dict(TIGHT, split_above=0.2, retrain=True, labels="own")
    alone = BinaryTreeSVC(**about).fit(X, y)
    pairs = PosteriorSVC(**TIGHT, labels="own").fit(X, y)
    over = BinaryTreeSVC(**about).fit_over(pairs.machines_, X, y)
    np.testing.assert_array_equal(alone.decision_function(X), over.decision_function(X))
    alone.save(tmp_path / "tree.npz")
    np.testing.assert_array_equal(
        BinaryTreeSVC.load(tmp_path / "tree.npz").predict(X), alone.predict(X)
    )
    with pytest.raises(ValueError, match="routing"):
        BinaryTreeSVC(routing="samples", retrain=True).fit(X, y)


def test_posterior_is_the_older_name_for_soft_labels():
    X, y = load_iris(return_X_y=True)
    soft = BinaryTreeSVC(**TIGHT, labels="soft").fit(X, y)
    older = BinaryTreeSVC(**TIGHT, posterior=True).fit(X, y)
    np.testing.assert_array_equal(
        older.decision_function(X), soft.decision_function(X), err_msg="on iris"
    )
    BinaryTreeSVC(posterior=True).fit_over(PosteriorSVC().fit(X, y).machines_, X, y)
    hard = MaxWinsSVC(**TIGHT).fit(X, y).machines_
    with pytest.raises(ValueError, match="cannot be fitted over this bank"):
        BinaryTreeSVC(posterior=True).fit_over(hard, X, y)
    with pytest.raises(ValueError, match="posterior=True means labels='soft'"):
        BinaryTreeSVC(posterior=True, labels="own").fit(X, y)
