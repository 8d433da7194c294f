"""Prepared rows: what many kernel blocks of the same rows need is computed once.

`prepared(X, kernel, dtype)` gives the form that suits the kernel: products of rows, in
place and tile by tile; pairs of rows; or a given matrix. All have the same methods.
"""

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .kernels import Kernel, ProductKernel

TILE_SIDE = 256  # rows and columns of a tile, which stays in a core's own cache


def prepared(X, kernel: Kernel, dtype=np.float64) -> "Rows":
    """Prepare rows of X for many blocks of the kernel.

    In float32 only where the kernel's `single_is_safe` says so.
    """
    if kernel.precomputed:
        return MatrixRows(X, kernel, dtype)
    if kernel.product_form and not issparse(X):
        return ProductRows(X, kernel, dtype)
    return Rows(X, kernel, dtype)


def rows_of(X):
    """X as it is worked on: an array, or CSR where it is sparse."""
    return csr_matrix(X) if issparse(X) else np.asarray(X)


def equal(A, B) -> bool:
    """Whether two sets of rows, dense or sparse, are the same."""
    if issparse(A) != issparse(B) or A.shape != B.shape:
        return False
    if issparse(A):
        return (A != B).nnz == 0
    return np.array_equal(A, B)


def as_slice(ids: np.ndarray) -> np.ndarray | slice:
    """The slice of consecutive indices, which takes rows without a copy, or `ids`."""
    if len(ids) and (np.diff(ids) == 1).all():
        return slice(ids[0], ids[-1] + 1)
    return ids


class Rows:
    """Rows of X whose kernel values are computed pair by pair, dense or in CSR form.

    Sparse rows are never made dense: inputs are not centred, which would fill them.
    Every value is summed over its own rows' nonzeros, in their order, so that it has
    the same bits in any block. What `ProductRows` computes in tiles is one block here.

    Attributes
    ----------
    left : the transformed rows, (rows, inputs).
    sparse : whether they are in CSR form.
    """

    def __init__(self, X, kernel: Kernel, dtype=np.float64):
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.sparse = issparse(X)
        if self.sparse:
            kernel.refuse_sparse()
            self.dtype = np.dtype(np.float64)
            X = csr_matrix(X, dtype=float)
        else:
            X = np.asarray(X)
        self.centre = kernel.centre(X)
        self.left = self.transform(X)

    def __len__(self) -> int:
        return self.left.shape[0]

    def transform(self, X):
        """Other rows, prepared as the left factor of a block."""
        if self.sparse:
            X = csr_matrix(X, dtype=float)
            X = csr_matrix(self.kernel.transform(X))
            X.sort_indices()
            return X
        X = X.toarray() if issparse(X) else X
        transformed = self.kernel.transform(X, self.centre)
        return np.ascontiguousarray(transformed, float)

    def subset(self, rows: np.ndarray) -> "Rows":
        """Some of these rows, as what others transformed here are compared with."""
        some = copy(self)
        some.left = self.left[rows]
        return some

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        """Kernel of rows i (indices, a slice, or transformed rows) with rows j."""
        values = self.kernel.pairs(self._left(i), self.left[j])
        if out is None:
            return values.astype(self.dtype, copy=False)
        out[...] = values
        return out

    def _left(self, i):
        """Transformed rows: those given, or the rows with these indices."""
        return i if getattr(i, "ndim", 1) == 2 else self.left[i]

    def block_transposed(self, left, part: slice) -> np.ndarray:
        """Kernel of a slice of these rows (down) with transformed rows (across)."""
        return self.block(left, part).T

    def squares(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Kernel matrices of the rows[t] (n, w), written to `out` (n, w, w)."""
        for part, K in zip(rows, out, strict=True):
            self.block(part, part, out=K)
        return out

    def fill(
        self, i, j, out: np.ndarray, each: Callable = map, symmetric: bool = False
    ) -> None:
        """Write the kernel of rows i with rows j to `out`, in tiles where they help.

        Where j equals i (`symmetric`), half of the tiles are computed. `each` maps over
        strips of tiles: `map` does one after the other, a pool's map some at a time.
        """
        self.block(i, j, out=out)

    def tiles(
        self, i: np.ndarray, j: np.ndarray, size: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """(first, kernel of rows i[first : first + size] with rows j), one by one.

        Small blocks share one buffer: each is gone when the next one comes.
        """
        for first in range(0, len(i), size):
            yield first, self.block(i[first : first + size], j)

    def within(
        self, ids: np.ndarray, w: np.ndarray, each: Callable = map
    ) -> np.ndarray:
        """K[ids, ids] @ w in float64, half of K computed; `each` as in `fill`."""
        n = len(ids)

        def strip(first: int) -> np.ndarray:
            """What the tiles above the diagonal in one strip of columns add to f."""
            f = np.zeros(n)
            across = slice(first, first + TILE_SIDE)
            j = ids[across]
            tile = np.empty((TILE_SIDE, TILE_SIDE), self.dtype)
            for down in range(0, first + 1, TILE_SIDE):
                rows = slice(down, down + TILE_SIDE)
                i = ids[rows]
                K = self.block(i, j, tile[: len(i), : len(j)])
                f[rows] += K @ w[across]
                if down < first:  # the tile's mirror image below the diagonal
                    f[across] += w[rows] @ K
            return f

        return sum(each(strip, range(0, n, TILE_SIDE)), np.zeros(n))

    def diagonal(self, rows=slice(None)) -> np.ndarray:
        """k(x, x) of the rows, in float64."""
        return self.kernel.diagonal(self.left[rows]).astype(float, copy=False)

    def single(self, x: np.ndarray) -> np.ndarray:
        """One row, prepared for `single_values`."""
        return self.kernel.transform_row(x, self.centre)

    def single_values(self, z: np.ndarray, rows=slice(None)) -> np.ndarray:
        """Kernel of the prepared row z with these rows."""
        return self.kernel.pairs(z[None], self.left[rows])[0]


class ProductRows(Rows):
    """Dense rows whose blocks cost one product, and one function of it in place.

    Attributes
    ----------
    right : what transformed rows are multiplied with.
    """

    kernel: ProductKernel

    def __init__(self, X, kernel: Kernel, dtype=np.float64):
        super().__init__(X, kernel, dtype)
        self.right = kernel.right_factor(self.left)

    def subset(self, rows):
        some = copy(self)
        some.right = self.right[rows]
        some.left = None
        return some

    def transform(self, X):
        X = X.toarray() if issparse(X) else X
        return self.kernel.transform(X, self.centre, self.dtype)

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        products = np.matmul(self._left(i), self.right[j].T, out=out)
        return self.kernel.of_products(products)

    def block_transposed(self, left, part: slice) -> np.ndarray:
        return self.kernel.of_products(self.right[part] @ left.T)

    def squares(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        left = self.left[rows]  # (n, w, inputs)
        # of a matrix with itself BLAS computes one half
        right = left if self.right is self.left else self.right[rows]
        products = np.matmul(left, right.transpose(0, 2, 1), out=out)
        return self.kernel.of_products(products)

    def fill(
        self, i, j, out: np.ndarray, each: Callable = map, symmetric: bool = False
    ) -> None:
        if out.size <= TILE_SIDE**2:
            self.block(i, j, out=out)
            return
        left = self.left[i]
        right = self.right[as_slice(j)]

        # a tile's products are still in the cache when their kernel values are taken
        def strip(across: int) -> None:
            """Fill one strip of columns; its mirror image too, if `symmetric`."""
            tile = np.empty((TILE_SIDE, TILE_SIDE), self.dtype)
            columns = slice(across, across + TILE_SIDE)
            factor = right[columns].T
            end = across + 1 if symmetric else len(i)
            for down in range(0, end, TILE_SIDE):
                rows = slice(down, down + TILE_SIDE)
                part = out[rows, columns]
                products = tile[: len(part), : part.shape[1]]
                np.matmul(left[rows], factor, out=products)
                self.kernel.of_products(products, part)
                if symmetric and down < across:
                    out[columns, rows] = part.T

        for _ in each(strip, range(0, len(j), TILE_SIDE)):
            pass

    def tiles(
        self, i: np.ndarray, j: np.ndarray, size: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        left = self.left[as_slice(i)]
        right = self.right[j].T
        out = np.empty((size, len(j)), self.dtype)
        for first in range(0, len(i), size):
            part = left[first : first + size]
            products = np.matmul(part, right, out=out[: len(part)])
            yield first, self.kernel.of_products(products)

    def single_values(self, z: np.ndarray, rows=slice(None)) -> np.ndarray:
        return self.kernel.of_products(self.right[rows].dot(z))


class MatrixRows(Rows):
    """Rows of a given kernel matrix: they stand for themselves, by number."""

    def __init__(self, X, kernel: Kernel, dtype=np.float64):
        if issparse(X):
            kernel.refuse_sparse()
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.sparse = False
        self.given = np.asarray(X)
        self.left = np.arange(len(self.given))

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        values = self.given[np.ix_(self.left[i], self.left[j])]
        if out is None:
            return values.astype(self.dtype, copy=False)
        out[...] = values
        return out

    def diagonal(self, rows=slice(None)) -> np.ndarray:
        return self.given[self.left[rows], self.left[rows]].astype(float)
