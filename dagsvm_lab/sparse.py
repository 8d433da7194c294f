"""Rows in scipy.sparse formats: kernel blocks as sparse products; the rows themselves are never made dense.

Memory is that of the nonzeros and of the kernel rows that `cache_size` lets a solver keep.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .kernels import Kernel, Rows, squared


class SparseRows(Rows):
    """Rows in CSR form: a block is a sparse product, in memory proportional to the nonzeros and to the block.

    Inputs are not centred, which would fill them. Every kernel value is summed over its own row's nonzeros, in their
    order, so that it has the same bits in any block.
    """

    plain = True

    def __init__(self, X, kernel: Kernel, dtype=np.float64):
        if callable(kernel.name) or kernel.name == "precomputed":
            raise TypeError("sparse rows go with the kernels that are known by name, not with precomputed or callables")
        self.kernel, self.dtype, self.index = kernel, np.dtype(np.float64), None
        self.left = self.right = self.place(X)
        self.halves = 0.5 * squared(self.left)

    def __len__(self) -> int:
        return self.left.shape[0]

    def place(self, X):
        """X prepared as the left factor of a block."""
        X = csr_matrix(self.kernel.shrunk(csr_matrix(X, dtype=float)))
        X.sort_indices()
        return X * np.sqrt(2.0 * self.kernel.gamma) if self.kernel.name == "rbf" else X

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        """Kernel of rows i (indices, a slice, or a prepared left factor) with rows j."""
        left = i if issparse(i) else self.left[i]
        products = (left @ self.right[j].T).toarray()
        if self.kernel.name == "rbf":
            products -= 0.5 * squared(left)[:, None] + self.halves[j]
            np.minimum(products, 0.0, out=products)
        return self.finish(products, out)


def prepared(X, kernel: Kernel, dtype=np.float64) -> Rows:
    """Prepare rows X, dense or sparse."""
    return (SparseRows if issparse(X) else Rows)(X, kernel, dtype)


def rows_of(X):
    """X as it is worked on: an array, or CSR where it is sparse."""
    return csr_matrix(X) if issparse(X) else np.asarray(X)


def equal(A, B) -> bool:
    """Whether two sets of rows, dense or sparse, are the same."""
    if issparse(A) != issparse(B) or A.shape != B.shape:
        return False
    return (A != B).nnz == 0 if issparse(A) else np.array_equal(A, B)
