"""Outputs of machines for blocks of rows: the same bits whatever batch a row is in.

Every sum is formed in one order because every block has one shape. What is computed
faster, in other shapes, may differ from these outputs by rounding; `rounding_terms`
says by how much.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from .kernels import Kernel, squared
from .rows import prepared

BLOCK_ROWS = 240  # rows evaluated together
FEW_ROWS = 16  # and where there are very many machines
BLOCK_OUTPUTS = 1 << 24  # outputs of a block of rows: beyond, blocks have FEW_ROWS
EDGE = 8  # rows more on both sides of a block, where BLAS may round otherwise
FEW_VECTORS = 256  # support vectors up to which outputs are always float64
DENSE_INPUTS = 1 << 12  # inputs of sparse rows up to which blocks may be dense
MODEST = 1e3  # largest coefficient for which float32 outputs are good to about 1e-4


@dataclass
class SupportVectors:
    """Support vectors: index of the training row, class and inputs of each.

    A precomputed kernel has no inputs.
    """

    support: np.ndarray
    classes: np.ndarray
    rows: np.ndarray | csr_matrix | None


@dataclass
class Piece:
    """The support vectors of one class, and the machines that use them."""

    part: slice
    machines: np.ndarray | None  # None: all of them
    weights: np.ndarray | csr_matrix  # (machines, support vectors of the part)


class BlockOutputs:
    """Called with a block of rows, the outputs of machines, without their biases.

    One class at a time: its support vectors meet only the machines that use them, which
    for all pairs saves half the number of classes over one product with every
    coefficient.

    Parameters
    ----------
    vectors : SupportVectors
    kernel : Kernel
    coef : csr_matrix of shape (n_machines, n_support)
    block_rows : int
        Rows of a block; `EDGE` more stand before and after them.
    fast : bool
        Whether to use float32 where it is good to about 1e-4.

    Attributes
    ----------
    used : support vectors that any machine uses, class by class.
    rows : their prepared rows, None for a precomputed kernel.
    vector_rounding, farthest : of dense rows, what the kernel says of their rounding
        (None: nothing is known), and the largest |v|^2 of the transformed rows.
    """

    vector_rounding: np.ndarray | None = None
    farthest = 0.0

    def __init__(
        self,
        vectors: SupportVectors,
        kernel: Kernel,
        coef: csr_matrix,
        block_rows: int,
        fast: bool = True,
    ):
        used = np.unique(coef.indices)
        by_class = np.argsort(vectors.classes[used], kind="stable")
        used = used[by_class]
        self.used = used
        self.support = vectors.support[used]
        self.n_machines = coef.shape[0]
        self.width = block_rows + 2 * EDGE
        self.narrow = block_rows < BLOCK_ROWS  # so many machines: each uses few vectors
        self.rows = None
        classes = vectors.classes[used]
        known = None
        if vectors.rows is not None and len(used):
            known = vectors.rows[used]
        if fast and in_single(known, kernel, coef):
            self._prepare(known, kernel, coef, classes, np.float32)
            if self._rounds_alike(known):
                return
        self._prepare(known, kernel, coef, classes, np.float64)

    @property
    def n_pieces(self) -> int:
        """Products that a block takes."""
        return len(self.pieces)

    @property
    def weights_size(self) -> int:
        """Coefficients that a row of a block is multiplied with."""
        return sum(piece.weights.size for piece in self.pieces)

    def _prepare(self, vectors, kernel, coef, classes, dtype) -> None:
        """Set `rows` and `pieces` in this precision."""
        if vectors is not None:
            rows = prepared(vectors, kernel, dtype)
            if not (rows.sparse or kernel.precomputed):
                self.vector_rounding = kernel.vector_rounding(rows.left)
                self.farthest = float(squared(rows.left).max(initial=0.0))
            # without the left factors, which only blocks among these rows need
            self.rows = rows.subset(slice(None))
        if self.narrow:
            weights = coef[:, self.used].astype(dtype)
            self.pieces = [Piece(slice(None), None, weights)]
        else:
            self.pieces = pieces_of(classes, coef.tocsc()[:, self.used], dtype)

    def _rounds_alike(self, vectors) -> bool:
        """Whether equal rows of a block get equal outputs.

        Some BLAS kernels round the columns of a float32 product differently.
        """
        for k in (0, -1):
            outputs = self(np.repeat(vectors[[k]], self.width, axis=0))
            if not (outputs == outputs[0]).all():
                return False
        return True

    def __call__(self, X) -> np.ndarray:
        """Outputs (rows, machines) of a block of rows, which has edges."""
        left = None if self.rows is None else self.rows.transform(X)
        if self.narrow:
            (piece,) = self.pieces
            tile = self._tile(X, left, piece.part)[:, EDGE:-EDGE]
            outputs = piece.weights @ np.ascontiguousarray(tile)
            return outputs.T
        total = np.zeros((self.n_machines, self.width))
        for piece in self.pieces:
            tile = self._tile(X, left, piece.part)  # (support vectors, width)
            total[piece.machines] += piece.weights @ np.ascontiguousarray(tile)
        return total.T[EDGE:-EDGE]

    def any_rows(self, left: np.ndarray) -> np.ndarray:
        """Outputs (rows, machines) of transformed rows, in no fixed shape."""
        total = np.zeros((self.n_machines, len(left)))
        for piece in self.pieces:
            machines = slice(None) if piece.machines is None else piece.machines
            tile = self.rows.block_transposed(left, piece.part)
            total[machines] += piece.weights @ tile
        return total.T

    def in_block(self, x: np.ndarray, t: int) -> float:
        """The output of machine t for one row, to the bit as in a block."""
        block = np.repeat(x[None], self.width, axis=0)
        if self.narrow:
            return float(self(block)[0, t])
        left = self.rows.transform(block)  # (width, inputs), every row the same
        total = 0.0
        for piece in self.pieces:
            at = int(np.searchsorted(piece.machines, t))
            if at == len(piece.machines) or piece.machines[at] != t:
                continue
            tile = np.ascontiguousarray(self._tile(block, left, piece.part))
            # of all machines, though one is wanted: a smaller product rounds otherwise
            outputs = piece.weights @ tile
            total += float(outputs[at, EDGE])
        return total

    def _tile(self, X, left, part: slice) -> np.ndarray:
        """Kernel values of some of the support vectors (down) with a block."""
        if left is None:
            return X[:, self.support[part]].T
        tile = self.rows.block_transposed(left, part)
        if not self.rows.sparse:
            return tile
        # it came without edges: products have one width all the same
        after = self.width - EDGE - tile.shape[1]
        return np.pad(tile, ((0, 0), (EDGE, after)))


def pieces_of(classes: np.ndarray, columns, dtype) -> list[Piece]:
    """The coefficients (CSC, machines x support vectors) class by class, dense."""
    pieces = []
    for c in np.unique(classes):
        first, end = np.searchsorted(classes, [c, c + 1])
        n = end - first  # support vectors of the class
        ends = columns.indptr[first : end + 1]
        inside = slice(ends[0], ends[-1])
        machines, row = np.unique(columns.indices[inside], return_inverse=True)
        column = np.repeat(np.arange(n), np.diff(ends))
        weights = np.zeros((len(machines), n), dtype)
        weights[row, column] = columns.data[inside]
        pieces.append(Piece(slice(first, end), machines, weights))
    return pieces


class LinearOutputs:
    """As `BlockOutputs`, for linear kernels: one product with the machines' weights.

    Parameters
    ----------
    weights : ndarray of shape (n_machines, n_inputs)
    """

    n_pieces = 1

    def __init__(self, weights: np.ndarray):
        self.weights = weights

    @property
    def weights_size(self) -> int:
        """Coefficients that a row of a block is multiplied with."""
        return self.weights.size

    def __call__(self, X) -> np.ndarray:
        X = X.toarray() if issparse(X) else X
        return (X @ self.weights.T)[EDGE:-EDGE]

    def in_block(self, x: np.ndarray, t: int) -> float:
        """The output of machine t for one row, to the bit as in a block."""
        block = np.repeat(x[None], BLOCK_ROWS + 2 * EDGE, axis=0)
        outputs = self(block)
        return float(outputs[0, t])


def linear_weights(
    coef: csr_matrix, vectors, kernels: list[Kernel]
) -> np.ndarray | None:
    """Weights (machines, inputs) of machines with these kernels, or None.

    None where a kernel is not linear, where there are so many machines that kernel
    values cost less, and where rows are sparse and wide (weights and blocks are dense).
    """
    if vectors is None:
        return None
    inputs = vectors.shape[1]
    if issparse(vectors) and inputs > DENSE_INPUTS:
        return None
    numbers = vectors.nnz if issparse(vectors) else vectors.size
    if coef.shape[0] * inputs > 2 * (numbers + coef.nnz):
        return None
    known = {kernel: kernel.linear_weights(vectors) for kernel in set(kernels)}
    if any(weights is None for weights in known.values()):
        return None
    if len(kernels) == 1:
        weights = coef @ known[kernels[0]]
    else:
        own = [coef[t] @ known[kernel] for t, kernel in enumerate(kernels)]
        weights = vstack(own) if issparse(vectors) else np.concatenate(own)
    return weights.toarray() if issparse(weights) else weights


def in_single(vectors, kernel: Kernel, coef: csr_matrix) -> bool:
    """Whether float32 outputs of machines over these vectors are right to 1e-4."""
    if vectors is None or vectors.shape[0] <= FEW_VECTORS:
        return False
    largest = np.abs(coef.data).max()
    return bool(largest <= MODEST) and kernel.single_is_safe(vectors)


def rounding_terms(
    coef: csr_matrix, vector_rounding: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(flat, steep) of each machine: an output may be off by (steep + flat r) units.

    r is what rounding may do to kernel values with the row that is asked (the kernel's
    `row_rounding`), and `vector_rounding` what it may do to those with each support
    vector. Units are those of the precision.
    """
    size = abs(coef)
    flat = size @ np.ones(coef.shape[1])
    # what summing the terms of an output may do, by their number
    terms = np.diff(coef.indptr) + 1
    summing = 0.25 * np.sqrt(terms) * flat
    steep = size @ vector_rounding + summing
    return flat, steep


def doubtful(
    f: np.ndarray,
    vectors,
    kernel: Kernel,
    coef: csr_matrix,
    X: np.ndarray,
    times: int = 1,
) -> np.ndarray:
    """Rows of X of whose outputs f some might have another sign in blocks of float32.

    Where f itself is of float32, two roundings lie between: `times` is 2.
    """
    if not in_single(vectors, kernel, coef):
        return np.empty(0, int)
    rows = prepared(vectors, kernel)
    flat, steep = rounding_terms(coef, kernel.vector_rounding(rows.left))
    of_rows = kernel.vector_rounding(rows.transform(X))
    unit = times * np.finfo(np.float32).eps
    bound = unit * (steep + np.outer(of_rows, flat))  # (rows, machines)
    near = np.abs(f) <= bound
    return np.flatnonzero(near.any(axis=1))
