"""Duals that are hard for SMO: kernels of low rank, equal rows, huge C; seeded."""

from dataclasses import dataclass

import numpy as np

KINDS = (
    "linear",
    "polynomial",
    "lattice",
    "rounded",
    "soft",
    "weights",
    "offset",
    "separable",
)


@dataclass(frozen=True)
class Hard:
    """K, y and C of a problem; `upper` is None, or each row's own bound."""

    kind: str
    K: np.ndarray
    y: np.ndarray
    C: float
    upper: np.ndarray | None


def hard_problem(seed: int) -> Hard:
    """One of eight kinds, of 4 to 160 rows in 1 to 5 inputs, C from .1 to 1e10."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 161))
    inputs = int(rng.integers(1, 6))
    kind = str(rng.choice(KINDS))
    C = 10.0 ** rng.uniform(-1, 10)
    X = rng.normal(size=(n, inputs)) * 10.0 ** rng.uniform(-1, 1)
    if kind == "lattice":
        X = rng.integers(0, 4, size=(n, inputs)).astype(float)
    elif kind == "rounded":
        X = X.round(1)
    elif kind == "offset":
        X = X + 100.0
    f = X @ rng.normal(size=inputs)
    f -= np.median(f)
    noise = 0.0 if kind == "separable" else rng.choice([0.1, 0.5, 2.0]) * f.std()
    y = np.where(f + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    upper = None
    if kind == "soft":
        y *= rng.uniform(size=n) ** 3
    elif kind == "weights":
        upper = C * rng.choice([0.0, 0.5, 1.0, 3.0], n)
        upper[:2] = C
    products = X @ X.T
    K = (products + 1.0) ** 2 if kind == "polynomial" else products
    return Hard(kind, K, y, C, upper)
