"""Whether arrays can be those of a trained estimator: what a file is checked for.

What cannot be is refused in a sentence that names the array.
"""

from typing import Any

import numpy as np
from scipy import sparse

from ..bank import STATS, Bank

WHOLE = "iu"  # kinds of NumPy arrays that hold whole numbers
TINY = np.nextafter(0.0, 1.0)


def expect(
    name: str,
    array: Any,
    kinds: str | None,
    shape: tuple[int, ...],
    low: float = -np.inf,
    high: float = np.inf,
) -> None:
    """Raise a ValueError unless `array` has one of these kinds, this shape and range.

    `kinds` are NumPy's letters, None for any kind; numbers have to be finite.
    """
    array = np.asarray(array)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if kinds is not None and array.dtype.kind not in kinds:
        raise ValueError(f"{name} is of the kind {array.dtype.kind!r}, not {kinds!r}")
    if array.dtype.kind not in "iuf" or not array.size:
        return
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if array.min() < low or array.max() > high:
        raise ValueError(f"{name} holds numbers outside {low:g} to {high:g}")


def check_bank(bank: Bank, n_classes: int) -> None:
    """Raise a ValueError if these arrays cannot be those of trained machines."""
    m = max(len(bank.code), 1)
    expect("code", bank.code, WHOLE, (m, n_classes), -1, 1)
    _check_support(bank, n_classes)
    for name in STATS:
        kinds = {"n_iter": WHOLE, "converged": "b"}.get(name, "f")
        expect(name, getattr(bank, name), kinds, (m,))
    # C is not asked to be finite: a hard margin's is not
    expect("C", np.minimum(bank.C, np.finfo(float).max), "f", (m,), 0)
    _check_kernels(bank, m)
    _check_coef(bank, m)
    _check_vectors(bank)


def _check_support(bank: Bank, n_classes: int) -> None:
    """Which of the training rows are support vectors, and their classes."""
    n = len(bank.support)
    expect("n_inputs", bank.n_inputs, WHOLE, (), 1)
    expect("n_rows", bank.n_rows, WHOLE, (), max(n, 2))
    expect("support", bank.support, WHOLE, (n,), 0, bank.n_rows - 1)
    if not (np.diff(bank.support) > 0).all():
        raise ValueError("support is not sorted")
    expect("support_class", bank.support_class, WHOLE, (n,), 0, n_classes - 1)


def _check_kernels(bank: Bank, m: int) -> None:
    own = bank.kernels
    if own is not None and len(own) != m:
        raise ValueError(f"there are {len(own)} kernels for {m} machines")
    for kernel in [bank.kernel, *(own or [])]:
        expect("gamma", kernel.gamma, "f", (), 0)
        expect("degree", kernel.degree, WHOLE, (), 0)
        expect("coef0", kernel.coef0, "f", ())
        if kernel.widths:
            expect("widths", kernel.widths, "f", (bank.n_inputs,), TINY)


def _check_coef(bank: Bank, m: int) -> None:
    """Coefficients (machines, support vectors), each of a class that is told apart."""
    coef = bank.coef
    shape = (m, len(bank.support))
    coef.check_format(full_check=True)
    expect("coef", coef.data, "f", (coef.nnz,))
    if coef.shape != shape:
        raise ValueError(f"coef has the shape {coef.shape}, not {shape}")
    machine = np.repeat(np.arange(m), np.diff(coef.indptr))
    own_class = bank.support_class[coef.indices]
    if not bank.code[machine, own_class].all():
        raise ValueError("a machine has support vectors of classes that it leaves out")


def _check_vectors(bank: Bank) -> None:
    vectors = bank.vectors
    if vectors is None:
        if not bank.kernel.precomputed or bank.n_inputs != bank.n_rows:
            raise ValueError("its support vectors are missing")
    elif sparse.issparse(vectors):
        vectors.check_format(full_check=True)
        expect("vectors", vectors.data, "f", (vectors.nnz,))
    else:
        expect("vectors", vectors, "f", (len(bank.support), bank.n_inputs))


def check_tree(nodes: np.ndarray, possible: np.ndarray, n_machines: int) -> None:
    """Raise a ValueError unless these are the node arrays of a whole decision graph.

    `nodes` holds machine, left child, right child and label of each node, -1 where
    there is none; children stand after their parents. `possible` (nodes, classes)
    marks the classes that a node may still answer.
    """
    n_nodes, n_classes = possible.shape
    expect("nodes", nodes, WHOLE, (4, max(n_nodes, 1)), -1)
    expect("possible", possible, "b", (n_nodes, n_classes))
    machine, left, right, label = nodes
    is_leaf = machine < 0
    leaf = np.flatnonzero(is_leaf)
    inner = np.flatnonzero(~is_leaf)
    children_of_leaf = nodes[1:3, leaf]
    if (children_of_leaf >= 0).any() or (label[inner] >= 0).any():
        raise ValueError("a node is neither a leaf nor an inner node")
    if (label[leaf] < 0).any() or label.max() >= n_classes:
        raise ValueError("a leaf has no class")
    if machine.max() >= n_machines:
        raise ValueError("a node asks a machine that is not there")
    for child in (left[inner], right[inner]):
        if (child < 0).any() or (child >= n_nodes).any():
            raise ValueError("an edge leads to a node that is not there")
        new = possible[child] & ~possible[inner]
        if new.any():
            raise ValueError("a child may answer what its parent may not")
    if not possible[leaf, label[leaf]].all():
        raise ValueError("a leaf answers a class that it may not")
    _refuse_circles(left, right, inner)


def _refuse_circles(left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> None:
    """Raise a ValueError if some walk over the edges of these nodes has no end."""
    ends = np.ones(len(left), dtype=bool)  # nodes from which every walk ends
    ends[inner] = False
    while inner.size:
        # a walk that enters a node ends if it ends from both children
        done = ends[left[inner]] & ends[right[inner]]
        if not done.any():
            raise ValueError("its edges go round in a circle")
        ends[inner[done]] = True
        inner = inner[~done]
