"""Kernels: blocks k(A, B) in float64, and prepared rows whose blocks cost one product and one in-place exp.

The Gaussian kernel is Platt's exp(-|x - y|^2 / (2 sigma^2)) = exp(-gamma |x - y|^2). With z = sqrt(2 gamma)(x - mean)
the exponent is z.z' - |z|^2/2 - |z'|^2/2: one product of rows augmented by two columns. Centring keeps its rounding
small.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, diags_array, issparse

FAR = {np.float32: -1e30, np.float64: -1e280}  # an exponent below it stands for a kernel value of 0
SIDE = 256  # rows and columns of a tile of kernel values, which stays in a core's own cache
HUGE = 1e150  # size of kernel values whose squares are numbers too
ROUGH = 1e13  # size of a Gaussian's exponents from which their rounding shows
EXTREME = 1e100  # inputs beyond it or its inverse are divided by a power of two, where that changes nothing else


def gamma_from_sigma(sigma: float) -> float:
    """gamma of exp(-gamma |x - y|^2) for Platt's Gaussian of width sigma: 1 / (2 sigma^2)."""
    if not 1e-150 < sigma < 1e150:
        raise ValueError(f"sigma must be positive, and neither tiny nor huge; got {sigma!r}")
    return 1.0 / (2.0 * float(sigma) ** 2)


def squared(X) -> np.ndarray:
    """|x|^2 of every row, dense or sparse."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if issparse(X) else np.einsum("ij,ij->i", X, X)


def as_slice(ids: np.ndarray) -> np.ndarray | slice:
    """The slice of consecutive indices, which takes rows without a copy; other indices as they are."""
    return slice(ids[0], ids[-1] + 1) if len(ids) and (np.diff(ids) == 1).all() else ids


@dataclass(frozen=True)
class Kernel:
    """k(A, B), a float64 block of kernel values.

    linear x.y, poly (gamma x.y + coef0)^degree, rbf exp(-gamma |x-y|^2), sigmoid tanh(gamma x.y + coef0), a callable.
    `widths`, one an input, divides the inputs first (e1071 scales them anew for every machine).
    """

    name: str | Callable = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    widths: tuple[float, ...] | None = None

    def shrunk(self, X: np.ndarray) -> np.ndarray:
        """X, its inputs divided by the kernel's widths."""
        if self.widths is None:
            return X
        return X @ diags_array(1.0 / np.asarray(self.widths)) if issparse(X) else X / np.asarray(self.widths)

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if not (issparse(A) or issparse(B)):
            A, B = np.asarray(A, float), np.asarray(B, float)
            if self.name == "precomputed":
                return A
            if callable(self.name):
                block = np.asarray(self.name(A, B), float)
                if block.shape != (len(A), len(B)) or not np.isfinite(block).all():
                    raise ValueError(f"kernel must give {len(A)} x {len(B)} finite numbers; it gave {block.shape}")
                return block
        rows = (SparseRows if issparse(A) or issparse(B) else Rows)(B, self)
        block = rows.block(rows.place(A))
        return np.minimum(block, 1.0, out=block) if self.name == "rbf" else block

    def largest(self, X: np.ndarray) -> float:
        """The largest kernel value in size that rows of X may have; of the Gaussian, the largest exponent."""
        gauss = self.name == "rbf"
        with np.errstate(over="ignore", invalid="ignore"):
            squares = squared(self.shrunk(X - X.mean(axis=0, dtype=float) if gauss and not issparse(X) else X))
            return np.abs(2.0 * self.gamma * squares if gauss else self.of_products(squares)).max(initial=0.0)

    def check(self, X: np.ndarray) -> None:
        """Refuse training rows whose kernel values leave the range of numbers."""
        known = not (callable(self.name) or self.name == "precomputed")
        if known and not self.largest(X) < (ROUGH if self.name == "rbf" else HUGE):
            raise ValueError(f"kernel values of inputs up to {abs(X).max():.1e} are out of range: scale the inputs")

    def between(self, X: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Kernel of the training rows i of X with its rows j."""
        return X[np.ix_(i, j)] if self.name == "precomputed" else self(X[i], X[j])

    def square(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self.between(X, rows, rows)

    def of_products(self, block: np.ndarray) -> np.ndarray:
        """The kernel of a block of inner products, computed in place (not for the Gaussian)."""
        if self.name != "linear":
            block *= self.gamma
            block += self.coef0
        if self.name == "poly":
            once = block.copy()
            for _ in range(self.degree - 1):
                block *= once
            if self.degree == 0:
                block[...] = 1.0
        elif self.name == "sigmoid":
            np.tanh(block, out=block)
        return block


def resolve(kernel: str | Callable, gamma: float | str = "scale", degree=3, coef0=0.0, X=None, weight=None) -> Kernel:
    """Return the Kernel with its numbers for rows X, of which one with weight w counts as w rows.

    gamma "scale" is 1 / (inputs x variance of X), "auto" 1 / inputs, as elsewhere. Inputs so large or small that
    their squares leave the range of numbers are divided by a power of two first, where gamma makes up for it.
    """
    widths = None
    if isinstance(gamma, str):
        if callable(kernel) or kernel in ("precomputed", "linear"):
            gamma = 1.0
        elif gamma == "auto":
            gamma = 1.0 / X.shape[1]
        else:
            largest = float(abs(X).max())
            if largest and not 1 / EXTREME < largest < EXTREME:
                unit = 2.0 ** np.floor(np.log2(largest))
                X, widths = X / unit, (unit,) * X.shape[1]
            variance = _variance(X, weight)
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return Kernel(kernel, float(gamma), int(degree), float(coef0), widths)


def _variance(X, weight) -> float:
    """Variance of all entries of X, a row of weight w counted as w rows."""
    if weight is None and not issparse(X):
        return float(X.var())
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
    if issparse(X):
        first, second = (float(share @ np.asarray(part.mean(axis=1)).ravel()) for part in (X, X.multiply(X)))
        return second - first**2
    mean = share @ X.mean(axis=1)
    return float(share @ ((X - mean) ** 2).mean(axis=1))


class Rows:
    """Prepared rows of X, whose kernel blocks cost one product and, for the Gaussian, one in-place exp.

    Kernels that are `plain` (precomputed, callables, sparse rows) are no function of such a product: for them there is
    `block` alone, and what goes tile by tile for the others goes in one block.
    """

    def __init__(self, X: np.ndarray, kernel: Kernel, dtype=np.float64):
        self.kernel, self.dtype, X = kernel, np.dtype(dtype), np.asarray(X)
        self.given = X if kernel.name == "precomputed" else None  # its rows stand for themselves, by number
        self.plain = self.given is not None or callable(kernel.name)
        self.mean = X.mean(axis=0, dtype=float) if kernel.name == "rbf" else None
        self.left = self.right = self.place(X) if self.given is None else np.arange(len(X))
        if kernel.name == "rbf":
            self.right = self.left.copy()
            self.right[:, -2:] = self.left[:, :-3:-1]

    def __len__(self) -> int:
        return self.left.shape[0]

    def place(self, X: np.ndarray) -> np.ndarray:
        """X prepared as the left factor of a block."""
        X = X.toarray() if issparse(X) else X
        if self.plain:
            return np.ascontiguousarray(X, float)
        if self.kernel.name != "rbf":
            return np.ascontiguousarray(self.kernel.shrunk(X), self.dtype)
        Z = np.empty((len(X), X.shape[1] + 2))
        with np.errstate(over="ignore"):
            np.subtract(X, self.mean, out=Z[:, :-2])
            Z[:, :-2] = self.kernel.shrunk(Z[:, :-2]) * np.sqrt(2.0 * self.kernel.gamma)
            Z[:, -2] = -0.5 * squared(Z[:, :-2])
        Z[:, -1] = 1.0
        far = Z[:, -2] < FAR[self.dtype.type]
        if far.any():  # kernel values with them are 0
            Z[far, :-2], Z[far, -2] = 0.0, FAR[self.dtype.type]
        return Z.astype(self.dtype, copy=False)

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        """Kernel of rows i (indices, a slice, or a prepared left factor) with rows j."""
        left, right = i if isinstance(i, np.ndarray) and i.ndim == 2 else self.left[i], self.right[j]
        if not self.plain:
            return self.finish(np.matmul(left, right.T, out=out))
        block = self.kernel(left, right) if self.given is None else self.given[np.ix_(left, right)]
        if out is None:
            return block.astype(self.dtype, copy=False)
        out[...] = block
        return out

    def squares(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Kernel matrices of the rows[t] (n, w), written to `out` (n, w, w)."""
        if not self.plain:
            return self.finish(np.matmul(self.left[rows], self.right[rows].transpose(0, 2, 1), out=out))
        for part, K in zip(rows, out, strict=True):
            self.block(part, part, out=K)
        return out

    def fill(self, i, j, out: np.ndarray, each: Callable = map, symmetric: bool = False) -> None:
        """Write the kernel of rows i with rows j to `out`, tile by tile: half of them where j equals i (`symmetric`).

        `each` maps over the strips of tiles: `map` does one after the other, a pool's map some at a time.
        """
        if self.plain or out.size <= SIDE**2:
            self.block(i, j, out=out)
            return
        left, right = self.left[i], self.right[as_slice(j)]

        def strip(across: int) -> None:
            tile, ahead = np.empty((SIDE, SIDE), self.dtype), right[across : across + SIDE].T
            for down in range(0, across + 1 if symmetric else len(i), SIDE):
                part = out[down : down + SIDE, across : across + SIDE]
                products = np.matmul(left[down : down + SIDE], ahead, out=tile[: len(part), : part.shape[1]])
                self.finish(products, part)
                if symmetric and down < across:
                    out[across : across + SIDE, down : down + SIDE] = part.T

        list(each(strip, range(0, len(j), SIDE)))

    def within(self, ids: np.ndarray, w: np.ndarray, each: Callable = map) -> np.ndarray:
        """K[ids, ids] @ w in float64, with half of the kernel computed; `each` as for `fill`."""

        def strip(first: int) -> np.ndarray:
            f, across, tile = np.zeros(len(ids)), slice(first, first + SIDE), np.empty((SIDE, SIDE), self.dtype)
            for down in range(0, first + 1, SIDE):
                rows = slice(down, down + SIDE)
                K = self.block(ids[rows], ids[across], tile[: len(f[rows]), : len(f[across])])
                f[rows] += K @ w[across]
                if down < first:
                    f[across] += w[rows] @ K
            return f

        return sum(each(strip, range(0, len(ids), SIDE)), np.zeros(len(ids)))

    def under(self, left: np.ndarray, part: slice) -> np.ndarray:
        """Kernel of a slice of these rows (down) with a prepared left factor (across)."""
        if self.plain:
            return self.block(left, part).T
        return self.finish(self.right[part] @ left.T)

    def tiles(self, i: np.ndarray, j: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """(first, kernel of rows i[first : first + size] with rows j), small blocks one by one in the same buffer."""
        if self.plain:
            yield from ((first, self.block(i[first : first + size], j)) for first in range(0, len(i), size))
            return
        left, right, out = self.left[as_slice(i)], self.right[j].T, np.empty((size, len(j)), self.dtype)
        for first in range(0, len(i), size):
            part = left[first : first + size]
            yield first, self.finish(np.matmul(part, right, out=out[: len(part)]))

    def finish(self, block: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The kernel of a block of products of prepared rows, computed in place, or written to `out`."""
        out = block if out is None else out
        if self.kernel.name == "rbf":
            return np.exp(block, out=out)
        out[...] = self.kernel.of_products(block)
        return out

    def diagonal(self, rows=slice(None)) -> np.ndarray:
        """k(x, x) of the rows, in float64."""
        if self.given is not None:
            return self.given[self.left[rows], self.left[rows]].astype(float)
        if callable(self.kernel.name):
            return np.array([self.block([k], [k]).item() for k in np.arange(len(self))[rows]])
        if self.kernel.name == "rbf":
            return np.ones(len(self))[rows]
        return self.kernel.of_products(squared(self.left[rows]))


class SparseRows(Rows):
    """Rows in CSR form: a block is a sparse product, in memory proportional to the nonzeros and to the block.

    The rows are never made dense: inputs are not centred, which would fill them. Every kernel value is summed over its
    own row's nonzeros, in their order, so that it has the same bits in any block.
    """

    plain = True

    def __init__(self, X, kernel: Kernel, dtype=np.float64):
        if callable(kernel.name) or kernel.name == "precomputed":
            raise TypeError("sparse rows go with the kernels that are known by name, not with precomputed or callables")
        self.kernel, self.dtype, self.given = kernel, np.dtype(np.float64), None
        self.left = self.right = self.place(X)
        self.halves = 0.5 * squared(self.left)

    def place(self, X):
        X = csr_matrix(self.kernel.shrunk(csr_matrix(X, dtype=float)))
        X.sort_indices()
        return X * np.sqrt(2.0 * self.kernel.gamma) if self.kernel.name == "rbf" else X

    def block(self, i, j=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        left = i if issparse(i) else self.left[i]
        products = (left @ self.right[j].T).toarray()
        if self.kernel.name == "rbf":
            products -= 0.5 * squared(left)[:, None] + self.halves[j]
            np.minimum(products, 0.0, out=products)
        return self.finish(products, out)


def prepared(X, kernel: Kernel, dtype=np.float64) -> Rows:
    return (SparseRows if issparse(X) else Rows)(X, kernel, dtype)


def rows_of(X):
    """X as it is worked on: an array, or CSR where it is sparse."""
    return csr_matrix(X) if issparse(X) else np.asarray(X)


def equal(A, B) -> bool:
    """Whether two sets of rows, dense or sparse, are the same."""
    same = issparse(A) == issparse(B) and A.shape == B.shape
    return same and ((A != B).nnz == 0 if issparse(A) else np.array_equal(A, B))


def single_is_safe(X: np.ndarray, kernel: Kernel) -> bool:
    """Whether float32 keeps the exponent of a Gaussian block on rows like X right to about 1e-5."""
    return kernel.name == "rbf" and not issparse(X) and bool(kernel.largest(np.asarray(X)) < 512.0)
