"""Kernels: blocks k(A, B) in float64, and prepared rows whose blocks cost one product and one in-place exp.

The Gaussian kernel is Platt's exp(-|x - y|^2 / (2 sigma^2)) = exp(-gamma |x - y|^2). With z = sqrt(2 gamma)(x - mean) the
exponent is z.z' - |z|^2/2 - |z'|^2/2: one product of rows augmented by two columns. Centring keeps its rounding small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def gamma_from_sigma(sigma: float) -> float:
    """gamma of exp(-gamma |x - y|^2) for Platt's Gaussian of width sigma: 1 / (2 sigma^2)."""
    return 1.0 / (2.0 * float(sigma) ** 2)


@dataclass(frozen=True)
class Kernel:
    """k(A, B), a float64 block: x.y | (gamma x.y + coef0)^degree | exp(-gamma |x-y|^2) | tanh(gamma x.y + coef0) | callable.

    `widths`, one an input, divides the inputs first (e1071 scales them anew for every machine).
    """

    name: str | Callable = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    widths: tuple[float, ...] | None = None

    def shrunk(self, X: np.ndarray) -> np.ndarray:
        """X, its inputs divided by the kernel's widths."""
        return X if self.widths is None else X / np.asarray(self.widths)

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = np.asarray(A, float), np.asarray(B, float)
        if callable(self.name):
            return np.asarray(self.name(A, B), float)
        if self.name == "precomputed":
            return A
        if self.name == "rbf":
            rows = Rows(B, self, np.float64)
            return rows.block(rows.place(A))
        return self.of_products(self.shrunk(A) @ self.shrunk(B).T)

    def of_products(self, block: np.ndarray) -> np.ndarray:
        """The kernel of a block of inner products, computed in place (not for the Gaussian)."""
        if self.name != "linear":
            block *= self.gamma
            block += self.coef0
        if self.name == "poly":
            np.power(block, self.degree, out=block)
        elif self.name == "sigmoid":
            np.tanh(block, out=block)
        return block

    def diagonal(self, A: np.ndarray) -> np.ndarray:
        """k(a, a) for every row of A (for a precomputed kernel: of the square matrix A)."""
        A = np.asarray(A, float)
        if callable(self.name):
            return np.array([float(np.asarray(self.name(a[None], a[None])).item()) for a in A])
        if self.name == "precomputed":
            return np.diagonal(A).astype(float)
        if self.name == "rbf":
            return np.ones(len(A))
        A = self.shrunk(A)
        return self.of_products(np.einsum("ij,ij->i", A, A))


def resolve(
    kernel: str | Callable, gamma: float | str = "scale", degree: int = 3, coef0: float = 0.0, X=None
) -> Kernel:
    """The Kernel with its numbers: gamma "scale" is 1 / (inputs x variance of X), "auto" 1 / inputs, as in scikit-learn."""
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel) and kernel not in NAMES:
        raise ValueError(f"kernel must be a callable or one of {', '.join(NAMES)}, not {kernel!r}")
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be 'scale', 'auto' or a number, not {gamma!r}")
        if callable(kernel) or kernel in ("precomputed", "linear"):
            gamma = 1.0
        else:
            X = np.asarray(X, float)
            variance = X.var() if gamma == "scale" else 1.0
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return Kernel(kernel, float(gamma), int(degree), float(coef0))


class Rows:
    """Prepared rows of X: `block(P)` is the kernel of other prepared rows P with all of these, in dtype."""

    def __init__(self, X: np.ndarray, kernel: Kernel, dtype=np.float64, mean: np.ndarray | None = None):
        self.kernel, self.dtype = kernel, dtype
        X = np.asarray(X)
        self.plain = callable(kernel.name) or kernel.name == "precomputed"
        if kernel.name == "rbf":
            self.mean = X.mean(axis=0, dtype=float) if mean is None else mean
            left = self.place(X)
            self.right = left.copy()
            self.right[:, -2:] = left[:, :-3:-1]
        else:
            self.right = X.astype(float) if self.plain else kernel.shrunk(X).astype(dtype, copy=False)

    def place(self, X: np.ndarray) -> np.ndarray:
        """X prepared as the left factor of a block."""
        if self.kernel.name != "rbf":
            X = np.asarray(X)
            return (X if self.plain else self.kernel.shrunk(X)).astype(self.right.dtype, copy=False)
        Z = np.empty((len(X), X.shape[1] + 2))
        np.subtract(X, self.mean, out=Z[:, :-2])
        Z[:, :-2] = self.kernel.shrunk(Z[:, :-2]) * np.sqrt(2.0 * self.kernel.gamma)
        Z[:, -2] = -0.5 * np.einsum("ij,ij->i", Z[:, :-2], Z[:, :-2])
        Z[:, -1] = 1.0
        return Z.astype(self.dtype, copy=False)

    def block(self, P: np.ndarray, take=slice(None), out: np.ndarray | None = None) -> np.ndarray:
        """Kernel of prepared rows P (as `place` gives them) with these rows' `take`."""
        if self.plain:
            return np.asarray(self.kernel(P, self.right[take]), self.dtype)
        out = np.matmul(P, self.right[take].T, out=out)
        if self.kernel.name != "rbf":
            return self.kernel.of_products(out)
        np.minimum(out, 0.0, out=out)
        return np.exp(out, out=out)
