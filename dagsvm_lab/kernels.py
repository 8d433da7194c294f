"""Kernels: each says itself how its values are computed, and how precisely.

`Kernel("rbf", gamma)` makes the kernel of that name: an object of one of the classes
below. Nothing outside this module compares names. A new kernel is one class, and one
line of `KERNELS`. The class needs `pairs`, the block of values of two sets of rows;
all else has a default that is right for every kernel, which faster ones can replace:

| method or attribute | says | default |
|---|---|---|
| `pairs` | the values of rows A with rows B | must be given |
| `transform`, `centre` | rows as `pairs` wants them | inputs divided by `widths` |
| `diagonal` | k(x, x) of many rows | one pair after the other |
| `product_form` | a function of inner products, computed in place | no |
| `takes_sparse` | whether `pairs` takes two CSR matrices | no |
| `in_range` | whether values of these rows are finite numbers | yes |
| `single_is_safe` | whether float32 will do (then k(x, x) must be 1) | no |
| `vector_rounding`, `row_rounding` | what rounding may do to a value | unknown |
| `linear_weights` | w with k(v, x) = w.x | none |
| `gamma_power` | gamma multiplies the inputs to this power; 0: no gamma | 2 |

The Gaussian kernel is Platt's exp(-|x - y|^2 / (2 sigma^2)) = exp(-gamma |x - y|^2).
With z = sqrt(2 gamma) (x - mean) its exponent is z.z' - |z|^2 / 2 - |z'|^2 / 2: one
product of rows with two more columns. Subtracting the mean keeps its rounding small.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, diags_array, issparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from .threads import one_openmp_thread

FAR = {  # a Gaussian's exponent below it stands for a kernel value of 0
    np.dtype(np.float32): -1e30,
    np.dtype(np.float64): -1e280,
}
LARGEST_VALUE = 1e150  # kernel values up to here have squares that are numbers too
LARGEST_EXPONENT = 1e13  # of a Gaussian: from here on its rounding shows
SINGLE_EXPONENT = 512.0  # up to here float32 keeps a Gaussian right to about 1e-5
EXTREME = 1e100  # inputs beyond it or its inverse are divided by a power of two
ASYMMETRY = 1e-6  # of the largest value: how far K_ij and K_ji may be apart
STRIP = 256  # rows of a matrix whose symmetry is looked at together


def gamma_from_sigma(sigma: float) -> float:
    """Return gamma = 1 / (2 sigma^2) of Platt's Gaussian of width sigma."""
    if not 1e-150 < sigma < 1e150:
        raise ValueError(
            f"sigma must be positive, and neither tiny nor huge; got {sigma!r}"
        )
    return 1.0 / (2.0 * float(sigma) ** 2)


def squared(X) -> np.ndarray:
    """|x|^2 of every row, dense or sparse."""
    if issparse(X):
        X = csr_matrix(X)
        squares = csr_matrix((X.data**2, X.indices, X.indptr), shape=X.shape)
        return squares @ np.ones(X.shape[1])
    return np.einsum("ij,ij->i", X, X)


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel with its numbers; called with two sets of rows, the block of its values.

    Parameters
    ----------
    name : str or callable
        A name in `KERNELS`, or a function of two arrays of rows that gives the block of
        their kernel values.
    gamma, degree, coef0 : float, int, float
        As in scikit-learn's SVC.
    widths : tuple of float, one an input, default=None
        Inputs are divided by them first (e1071 scales them anew for every machine).

    Examples
    --------
    >>> import numpy as np
    >>> from dagsvm_lab.kernels import Kernel
    >>> Kernel("poly", gamma=1.0, degree=2, coef0=1.0)(np.eye(2), np.eye(2)).tolist()
    [[4.0, 1.0], [1.0, 4.0]]
    """

    name: str | Callable = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    widths: tuple[float, ...] | None = None

    product_form: ClassVar[bool] = False
    precomputed: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    gamma_power: ClassVar[int] = 2

    def __new__(cls, name: str | Callable = "rbf", *numbers, **named) -> Self:
        return object.__new__(kernel_class(name) if cls is Kernel else cls)

    def __call__(self, A, B) -> np.ndarray:
        """Kernel values (rows of A, rows of B), in float64."""
        if issparse(A) or issparse(B):
            self.refuse_sparse()
            A = csr_matrix(A, dtype=float)
            B = csr_matrix(B, dtype=float)
        else:
            A = np.asarray(A, float)
            B = np.asarray(B, float)
        centre = self.centre(B)
        return self.pairs(self.transform(A, centre), self.transform(B, centre))

    def refuse_sparse(self) -> None:
        """Say so if this kernel takes no sparse rows."""
        if not self.takes_sparse:
            name = type(self).__name__
            raise TypeError(f"{name} kernels take dense rows, not sparse ones")

    def centre(self, X) -> np.ndarray | None:
        """What `transform` subtracts from rows that are compared with rows of X."""
        return None

    def transform(self, X, centre=None, dtype=np.float64):
        """Rows of X, an array or CSR in float64, as `pairs` wants them."""
        return self.shrunk(X)

    def transform_row(self, x: np.ndarray, centre=None) -> np.ndarray:
        """One row as `transform` gives it."""
        return self.transform(x[None], centre)[0]

    def shrunk(self, X):
        """X, its inputs divided by the kernel's widths."""
        if self.widths is None:
            return X
        if issparse(X):
            return csr_matrix(X @ diags_array(1.0 / np.asarray(self.widths)))
        return X / np.asarray(self.widths)

    @abstractmethod
    def pairs(self, A, B) -> np.ndarray:
        """Kernel values (rows of A, rows of B) of transformed rows."""

    def diagonal(self, Z) -> np.ndarray:
        """k(x, x) of transformed rows."""
        n = Z.shape[0]
        rows = (Z[k : k + 1] for k in range(n))
        values = [self.pairs(row, row) for row in rows]
        return np.array(values, float).reshape(n)

    def in_range(self, X) -> bool:
        """Whether kernel values among rows like those of X are numbers to work with."""
        return True

    def single_is_safe(self, X) -> bool:
        """Whether float32 keeps kernel values among rows like X right to about 1e-5.

        It may be so only where k(x, x) = 1: solvers rely on that in float32.
        """
        return False

    def vector_rounding(self, Z) -> np.ndarray | None:
        """What rounding may do to kernel values with each of the transformed rows Z.

        In units of the precision. A value k(v, x) computed twice, in another order or
        among other rows, differs by at most the sum of v's and x's (`row_rounding`).
        None where no such bound is known: then there is no single-row form.
        """
        return None

    def row_rounding(self, z: np.ndarray, farthest: float):
        """What rounding may do to values with the row z, or with each row of z.

        `farthest` is the largest |v|^2 of the transformed rows it is compared with.
        A kernel that says `vector_rounding` must say this, too.
        """
        raise TypeError(f"{type(self).__name__} has vector_rounding, not row_rounding")

    def linear_weights(self, vectors):
        """Rows w, one a vector v, with k(v, x) = w.x for every x; or None."""
        return None

    def check(self, X) -> None:
        """Refuse training rows whose kernel values leave the range of numbers."""
        if not self.in_range(X):
            raise ValueError(
                f"kernel values of inputs up to {abs(X).max():.1e} are out of range: "
                "scale the inputs"
            )

    def between(self, X, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Kernel of the training rows i of X with its rows j."""
        return self(X[i], X[j])

    def square(self, X, rows: np.ndarray) -> np.ndarray:
        """Kernel matrix of some of the training rows of X."""
        return self.between(X, rows, rows)

    def subset(self, X, rows: np.ndarray):
        """Some of the training rows of X as training rows of their own."""
        return X[rows]


class ProductKernel(Kernel):
    """A function of inner products of transformed rows, computed in place."""

    product_form = True
    takes_sparse = True

    def transform(self, X, centre=None, dtype=np.float64):
        if issparse(X):
            return self.shrunk(X)
        return np.ascontiguousarray(self.shrunk(X), dtype)

    def transform_row(self, x: np.ndarray, centre=None) -> np.ndarray:
        return self.shrunk(x)

    def right_factor(self, Z):
        """What transformed rows are multiplied with to give the products."""
        return Z

    @abstractmethod
    def of_products(self, products: np.ndarray, out: np.ndarray | None = None):
        """The kernel of a block of products, in place or in `out`.

        `products` is overwritten in either case.
        """

    def pairs(self, A, B) -> np.ndarray:
        if issparse(A):
            return self.of_products((A @ B.T).toarray())
        return self.of_products(A @ self.right_factor(B).T)

    def diagonal(self, Z) -> np.ndarray:
        return self.of_products(squared(Z))

    def in_range(self, X) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.abs(self.of_products(squared(self.shrunk(X))))
        return bool(values.max(initial=0.0) < LARGEST_VALUE)

    def vector_rounding(self, Z: np.ndarray) -> np.ndarray:
        return rounding_root(Z.shape[1]) * squared(Z)

    def row_rounding(self, z: np.ndarray, farthest: float):
        largest = self.largest_value(np.sqrt(np.vecdot(z, z) * farthest))
        root = rounding_root(z.shape[-1])
        return 16.0 * root * self.steepness * np.maximum(largest, 1.0)

    steepness: ClassVar[int] = 1  # relative error of a value over that of its product

    def largest_value(self, product):
        """The largest |k| of products up to this size."""
        return product


def rounding_root(inputs: int) -> float:
    """The share of |x|^2, in units of precision, that a sum over inputs may be off."""
    return 0.25 * sqrt(inputs + 4)


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
        with np.errstate(over="ignore"):
            np.subtract(X, centre, out=Z[:, :-2])
            if self.widths is not None:
                Z[:, :-2] = self.shrunk(Z[:, :-2])
            Z[:, :-2] *= root
            Z[:, -2] = -0.5 * squared(Z[:, :-2])
        Z[:, -1] = 1.0
        dtype = np.dtype(dtype)
        far = Z[:, -2] < FAR[dtype]
        if far.any():  # kernel values with them are 0
            Z[far, :-2] = 0.0
            Z[far, -2] = FAR[dtype]
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
        right[:, -2:] = Z[:, :-3:-1]
        return right

    def of_products(self, products, out=None):
        return np.exp(products, out=products if out is None else out)

    def pairs(self, A, B) -> np.ndarray:
        if not issparse(A):
            return super().pairs(A, B)
        exponents = (A @ B.T).toarray()
        exponents -= 0.5 * squared(A)[:, None] + 0.5 * squared(B)
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
            apart = np.abs(X[part] - X[:, part].T).max()
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
        block = np.asarray(block.toarray() if issparse(block) else block, float)
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
            unit = 1.0
            largest = float(abs(X).max())
            if largest and not 1 / EXTREME < largest < EXTREME:
                unit = 2.0 ** np.floor(np.log2(largest))
                X = X / unit
                widths = (unit,) * X.shape[1]
            variance = _variance(X, weight)
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            gamma *= unit ** (power - 2)
    return Kernel(kernel, float(gamma), int(degree), float(coef0), widths)


def _variance(X, weight) -> float:
    """Variance of all entries of X, a row of weight w counted as w rows."""
    if weight is None and not issparse(X):
        return float(X.var())
    n = X.shape[0]
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    if issparse(X):
        first = float(share @ np.asarray(X.mean(axis=1)).ravel())
        second = float(share @ np.asarray(X.multiply(X).mean(axis=1)).ravel())
        return second - first**2
    mean = share @ X.mean(axis=1)
    return float(share @ ((X - mean) ** 2).mean(axis=1))
