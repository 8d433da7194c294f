"""Kernels by name: the classes, and what makes a kernel of a user's parameters.

`Kernel("rbf", gamma)` makes the kernel of that name: an object of one of the classes
below. Nothing outside this module compares names. A new kernel is one class, and one
line of `KERNELS`; base.py has the table of what the class may say.

The Gaussian kernel is Platt's exp(-|x - y|^2 / (2 sigma^2)) = exp(-gamma |x - y|^2).
With z = sqrt(2 gamma) (x - mean) its exponent is z.z' - |z|^2 / 2 - |z'|^2 / 2: one
product of rows with two more columns. Subtracting the mean keeps its rounding small.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy.sparse import csr_matrix, issparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from ..threads import one_openmp_thread
from .base import Kernel as Kernel  # the room's names, as type checkers want it said
from .base import ProductKernel as ProductKernel
from .base import rounding_root
from .base import squared as squared

FAR = {  # a Gaussian's exponent below it stands for a kernel value of 0
    np.dtype(np.float32): -1e30,
    np.dtype(np.float64): -1e280,
}
LARGEST_EXPONENT = 1e13  # of a Gaussian: from here on its rounding shows
SINGLE_EXPONENT = 512.0  # up to here float32 keeps a Gaussian right to about 1e-5
EXTREME = 1e100  # inputs beyond it or its inverse are divided by a power of two
ASYMMETRY = 1e-6  # of the largest value: how far K_ij and K_ji may be apart
STRIP = 256  # rows of a matrix whose symmetry is looked at together


class Linear(ProductKernel):
    """x.y"""

    gamma_power = 0

    def of_products(self, products, out=None):
        if out is None:
            return products
        out[...] = products
        return out

    def linear_weights(self, vectors):
        return self.shrunk(self.shrunk(vectors))

    def coordinates(self, X):
        Z = self.shrunk(X)
        return Z.toarray() if issparse(Z) else np.asarray(Z, dtype=float)


class Polynomial(ProductKernel):
    """(gamma x.y + coef0) ** degree"""

    def of_products(self, products, out=None):
        products *= self.gamma
        products += self.coef0
        if self.degree == 0:
            products[...] = 1.0
        elif self.degree > 1:
            once = products.copy()
            for _ in range(self.degree - 1):
                products *= once
        if out is None:
            return products
        out[...] = products
        return out

    @property
    def steepness(self) -> int:
        return self.degree

    def largest_value(self, product):
        return (abs(self.gamma) * product + abs(self.coef0)) ** self.degree


class Sigmoid(ProductKernel):
    """tanh(gamma x.y + coef0)"""

    def of_products(self, products, out=None):
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products if out is None else out)

    def largest_value(self, product):
        return abs(self.gamma) * product + abs(self.coef0)


class Gaussian(ProductKernel):
    """exp(-gamma |x - y|^2)"""

    def __call__(self, A, B) -> np.ndarray:
        block = super().__call__(A, B)
        return np.minimum(block, 1.0, out=block)

    def centre(self, X):
        return None if issparse(X) else X.mean(axis=0, dtype=float)

    def transform(self, X, centre=None, dtype=np.float64):
        """Dense rows as (z, -|z|^2 / 2, 1); sparse ones as z alone, not centred."""
        root = np.sqrt(2.0 * self.gamma)
        if issparse(X):
            return self.shrunk(X) * root
        Z = np.empty((len(X), X.shape[1] + 2))
        z = Z[:, :-2]
        exponent = Z[:, -2]
        with np.errstate(over="ignore"):
            np.subtract(X, centre, out=z)
            if self.widths is not None:
                z[...] = self.shrunk(z)
            z *= root
            exponent[...] = -0.5 * squared(z)
        Z[:, -1] = 1.0
        dtype = np.dtype(dtype)
        far = exponent < FAR[dtype]
        if far.any():  # kernel values with them are 0
            z[far] = 0.0
            exponent[far] = FAR[dtype]
        return Z.astype(dtype, copy=False)

    def transform_row(self, x, centre=None):
        z = self.shrunk(x - centre)
        z *= sqrt(2.0 * self.gamma)
        factor = np.empty(len(z) + 2)
        factor[:-2] = z
        factor[-2] = -0.5 * z.dot(z)
        factor[-1] = 1.0
        return factor

    def right_factor(self, Z):
        """(z, 1, -|z|^2 / 2): the product of both is the exponent."""
        right = Z.copy()
        right[:, -2] = Z[:, -1]
        right[:, -1] = Z[:, -2]
        return right

    def of_products(self, products, out=None):
        return np.exp(products, out=products if out is None else out)

    def pairs(self, A, B) -> np.ndarray:
        if not issparse(A):
            return super().pairs(A, B)
        exponents = (A @ B.T).toarray()
        half_a = 0.5 * squared(A)
        half_b = 0.5 * squared(B)
        exponents -= half_a[:, None] + half_b
        np.minimum(exponents, 0.0, out=exponents)
        return np.exp(exponents, out=exponents)

    def diagonal(self, Z) -> np.ndarray:
        return np.ones(Z.shape[0])

    def largest_exponent(self, X) -> float:
        """The largest gamma |x - y|^2 among rows of X, up to a factor of two."""
        with np.errstate(over="ignore", invalid="ignore"):
            centred = X if issparse(X) else X - X.mean(axis=0, dtype=float)
            exponents = 2.0 * self.gamma * squared(self.shrunk(centred))
        return exponents.max(initial=0.0)

    def in_range(self, X) -> bool:
        return bool(self.largest_exponent(X) < LARGEST_EXPONENT)

    def single_is_safe(self, X) -> bool:
        if issparse(X):
            return False
        return bool(self.largest_exponent(np.asarray(X)) < SINGLE_EXPONENT)

    def vector_rounding(self, Z):
        return self.row_rounding(Z, 0.0)

    def row_rounding(self, z, farthest):
        return rounding_root(z.shape[-1] - 2) * (-2.0 * z[..., -2])


class Laplacian(Kernel):
    """exp(-gamma |x - y|_1), the sum of absolute differences in the exponent"""

    takes_sparse = True
    gamma_power = 1

    def pairs(self, A, B) -> np.ndarray:
        if issparse(A):
            with one_openmp_thread():
                exponents = manhattan_distances(_short_indices(A), _short_indices(B))
        else:
            exponents = cdist(A, B, "cityblock")
        exponents *= -self.gamma
        return np.exp(exponents, out=exponents)

    def diagonal(self, Z) -> np.ndarray:
        return np.ones(Z.shape[0])

    def vector_rounding(self, Z: np.ndarray) -> np.ndarray:
        """Of a sum t of d terms: d t exp(-t) / 2 <= d / 5 units, and exp's own."""
        return np.full(len(Z), 1.0 + 0.2 * Z.shape[1])

    def row_rounding(self, z, farthest):
        return np.zeros(z.shape[:-1])


def _short_indices(X) -> csr_matrix:
    """X with the 32-bit indices that scikit-learn's distances want."""
    indices = X.indices.astype(np.int32, copy=False)
    return csr_matrix((X.data, indices, X.indptr.astype(np.int32)), shape=X.shape)


class Precomputed(Kernel):
    """Rows stand for themselves: row i of X holds its values with the training rows."""

    precomputed = True
    gamma_power = 0

    def __call__(self, A, B) -> np.ndarray:
        if issparse(A) or issparse(B):
            self.refuse_sparse()
        return self.pairs(np.asarray(A, float), B)

    def pairs(self, A, B) -> np.ndarray:
        return A  # which are the values already

    def check(self, X) -> None:
        """Refuse a matrix that is not square, or not symmetric up to rounding."""
        if X.shape[0] != X.shape[1]:
            raise ValueError("a precomputed kernel must be a square matrix at fit")
        largest = np.abs(X).max(initial=0.0)
        for first in range(0, len(X), STRIP):
            part = slice(first, first + STRIP)
            difference = X[part] - X[:, part].T
            apart = np.abs(difference).max()
            if apart > ASYMMETRY * largest:
                raise ValueError(
                    "a precomputed kernel must be symmetric: K_ij and K_ji differ by "
                    f"{apart:.1e}, more than {ASYMMETRY:g} of the largest value "
                    f"{largest:.1e}; (K + K.T) / 2 is symmetric"
                )

    def between(self, X, i, j):
        return X[np.ix_(i, j)]

    def subset(self, X, rows):
        return X[np.ix_(rows, rows)]


class Given(Kernel):
    """A callable that is given two arrays of rows, or two CSR matrices."""

    takes_sparse = True
    gamma_power = 0

    def pairs(self, A, B) -> np.ndarray:
        block = self.name(A, B)
        if issparse(block):
            block = block.toarray()
        block = np.asarray(block, float)
        shape = (A.shape[0], B.shape[0])
        if block.shape != shape or not np.isfinite(block).all():
            raise ValueError(
                f"kernel must give {shape[0]} x {shape[1]} finite numbers; "
                f"it gave {block.shape}"
            )
        return block


KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "rbf": Gaussian,
    "sigmoid": Sigmoid,
    "laplacian": Laplacian,
    "precomputed": Precomputed,
}


def kernel_class(name: str | Callable) -> type[Kernel]:
    """The class of the kernel of that name, or of a callable."""
    if isinstance(name, str) and name in KERNELS:
        return KERNELS[name]
    if callable(name):
        return Given
    raise ValueError(
        f"there is no kernel {name!r}: a kernel is one of {', '.join(KERNELS)}, or a "
        "callable"
    )


def gamma_from_sigma(sigma: float) -> float:
    """Return gamma = 1 / (2 sigma^2) of Platt's Gaussian of width sigma."""
    if not 1e-150 < sigma < 1e150:
        raise ValueError(
            f"sigma must be positive, and neither tiny nor huge; got {sigma!r}"
        )
    return 1.0 / (2.0 * float(sigma) ** 2)


def resolve(
    kernel: str | Callable,
    gamma: float | str = "scale",
    degree=3,
    coef0=0.0,
    X=None,
    weight=None,
) -> Kernel:
    """Return the Kernel with its numbers for rows X; one of weight w counts as w rows.

    gamma "scale" is 1 / (inputs x variance of X), "auto" 1 / inputs, as elsewhere.
    Inputs so large or small that their squares leave the range of numbers are divided
    by a power of two first, and gamma makes up for it.
    """
    widths = None
    if isinstance(gamma, str):
        power = kernel_class(kernel).gamma_power
        if power == 0:
            gamma = 1.0
        elif gamma == "auto":
            gamma = 1.0 / X.shape[1]
        else:
            gamma, widths = _scale(X, weight, power)
    return Kernel(kernel, float(gamma), int(degree), float(coef0), widths)


def _scale(X, weight, power: int) -> tuple[float, tuple[float, ...] | None]:
    """Gamma "scale" of a kernel with this `gamma_power`, and the widths it needs."""
    inputs = X.shape[1]
    unit = 1.0
    widths = None
    largest = float(abs(X).max())
    if largest and not 1 / EXTREME < largest < EXTREME:
        unit = 2.0 ** np.floor(np.log2(largest))
        X = X / unit
        widths = (unit,) * inputs
    variance = _variance(X, weight)
    gamma = 1.0 / (inputs * variance) if variance > 0 else 1.0
    # for the inputs as they are, gamma is this over unit^2; the kernel sees them
    # divided by unit, for which unit^power makes up
    gamma *= unit ** (power - 2)
    return gamma, widths


def _variance(X, weight) -> float:
    """Variance of all entries of X, a row of weight w counted as w rows."""
    if weight is None and not issparse(X):
        return float(X.var())
    n = X.shape[0]
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    if issparse(X):  # the mean of squares less the square of the mean
        of_rows = np.asarray(X.mean(axis=1)).ravel()
        squares_of_rows = np.asarray(X.multiply(X).mean(axis=1)).ravel()
        first = float(share @ of_rows)
        second = float(share @ squares_of_rows)
        return second - first**2
    mean = share @ X.mean(axis=1)
    spread = ((X - mean) ** 2).mean(axis=1)
    return float(share @ spread)
