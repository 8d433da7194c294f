"""What a kernel says of itself: how its values are computed, and how precisely.

A kernel is a class over `Kernel`, and its line in `KERNELS` (`__init__.py`). It needs
`pairs`, the block of values of two sets of rows; all else has a default that is right
for every kernel, which faster ones can replace:

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
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Self

import numpy as np
from scipy.sparse import csr_matrix, diags_array, issparse

LARGEST_VALUE = 1e150  # kernel values up to here have squares that are numbers too


def squared(X) -> np.ndarray:
    """|x|^2 of every row, dense or sparse."""
    if issparse(X):
        X = csr_matrix(X)
        squares = csr_matrix((X.data**2, X.indices, X.indptr), shape=X.shape)
        return squares @ np.ones(X.shape[1])
    return np.einsum("ij,ij->i", X, X)


def rounding_root(inputs: int) -> float:
    """The share of |x|^2, in units of precision, that a sum over inputs may be off."""
    return 0.25 * sqrt(inputs + 4)


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
        if cls is not Kernel:
            return object.__new__(cls)
        from . import kernel_class  # where kernels are named; it imports this module

        return object.__new__(kernel_class(name))

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
        widths = np.asarray(self.widths)
        if issparse(X):
            return csr_matrix(X @ diags_array(1.0 / widths))
        return X / widths

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

    def coordinates(self, X) -> np.ndarray | None:
        """Vectors, as many numbers as inputs, whose products are the kernel values.

        None for kernels without.
        """
        return None

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
        product = np.sqrt(np.vecdot(z, z) * farthest)  # |x.v| is at most |x| |v|
        largest = self.largest_value(product)
        root = rounding_root(z.shape[-1])
        return 16.0 * root * self.steepness * np.maximum(largest, 1.0)

    steepness: ClassVar[int] = 1  # relative error of a value over that of its product

    def largest_value(self, product):
        """The largest |k| of products up to this size."""
        return product
