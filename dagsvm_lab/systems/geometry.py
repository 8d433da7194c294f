"""Where the classes lie: their means, variances and distances.

The trees choose by them which classes to tell apart.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..kernels import squared
from .sample import Sample


@dataclass(frozen=True)
class ClassGeometry:
    """Means and variances of classes, in input space or, precomputed, feature space."""

    products: np.ndarray  # (classes, classes) inner products of the means
    spread: np.ndarray  # (classes,) total variance tr S
    weight: np.ndarray  # (classes,) how often the class's rows count

    @classmethod
    def of_rows(cls, sample: Sample, rows: np.ndarray) -> Self:
        """Measure the classes of `rows`, which are sorted by class."""
        # where each class begins among the rows: (classes,)
        starts = np.flatnonzero(np.diff(sample.codes[rows], prepend=-1))
        row_weight = sample.row_weight[rows]
        weight = np.add.reduceat(row_weight, starts)
        if sample.kernel.precomputed:
            K = sample.X[np.ix_(rows, rows)]
            K = K * np.outer(row_weight, row_weight)
            # K summed over the rows of one class, then of two: (classes, classes)
            of_one = np.add.reduceat(K, starts, axis=0)
            of_two = np.add.reduceat(of_one, starts, axis=1)
            products = of_two / np.outer(weight, weight)
            norms = np.diag(sample.X)[rows]
        else:
            X = sample.X[rows]
            weighted = X * row_weight[:, None]
            sums = np.add.reduceat(weighted, starts, axis=0)
            means = sums / weight[:, None]  # (classes, inputs)
            products = means @ means.T
            norms = squared(X)
        mean_norm = np.add.reduceat(norms * row_weight, starts) / weight
        # tr S is the mean of |x|^2 less |mu|^2, which rounding may leave below 0
        spread = np.maximum(mean_norm - np.diag(products), 0.0)
        return cls(products, spread, weight)

    def among(self, classes: np.ndarray) -> Self:
        """The geometry of these classes alone."""
        block = np.ix_(classes, classes)
        return replace(
            self,
            products=self.products[block],
            spread=self.spread[classes],
            weight=self.weight[classes],
        )

    def squared_distances(self) -> np.ndarray:
        """|mu_i - mu_j|^2 of every two means."""
        norm = np.diag(self.products)
        return np.maximum(norm[:, None] + norm - 2 * self.products, 0.0)

    def fisher_ratios(self) -> np.ndarray:
        """r_ij of Wang et al. 2011, Eq. 4, for vectors."""
        spread = np.maximum(self.spread[:, None] + self.spread, 1e-300)
        return self.squared_distances() / spread

    def nearest_to_centre(self) -> np.ndarray:
        """The two classes whose means are nearest to the mean of all rows."""
        share = self.weight / self.weight.sum()
        # |mu_i - centre|^2 without the term |centre|^2, which all have
        to_centre = np.diag(self.products) - 2 * self.products @ share
        return np.argsort(to_centre, kind="stable")[:2]


def class_distances(sample: Sample, kind: str) -> np.ndarray:
    """Distances between class means.

    For "mahalanobis" the larger of those in either class's covariance.
    """
    if kind == "euclidean":
        geometry = ClassGeometry.of_rows(sample, sample.by_class)
        return np.sqrt(geometry.squared_distances())
    if sample.kernel.precomputed:
        raise ValueError(
            "distance='mahalanobis' needs inputs, not a precomputed kernel"
        )
    mean, covariance = _means_and_covariances(sample)
    n_inputs = sample.X.shape[1]
    scale = np.mean([np.trace(S) for S in covariance]) / n_inputs
    # so that a class of fewer rows than inputs has an inverse
    ridge = 1e-6 * max(scale, 1e-12) * np.eye(n_inputs)
    inverse = np.array([np.linalg.inv(S + ridge) for S in covariance])
    apart = mean[:, None] - mean  # (classes, classes, inputs)
    # squared distances in the first class's covariance, then the larger of the two
    by_first = np.einsum("abi,aij,abj->ab", apart, inverse, apart)
    return np.sqrt(np.maximum(by_first, by_first.T))


def _means_and_covariances(sample: Sample) -> tuple[np.ndarray, list[np.ndarray]]:
    """The classes' means (classes, inputs), and each one's S (inputs, inputs)."""
    rows = sample.by_class
    second_on = np.flatnonzero(np.diff(sample.codes[rows])) + 1
    means = []
    covariances = []
    for own in np.split(rows, second_on):
        X = sample.X[own]
        weight = sample.row_weight[own]
        S = np.cov(X.T, bias=True, aweights=weight)
        means.append(np.average(X, axis=0, weights=weight))
        covariances.append(np.atleast_2d(S))  # of one input, S is a number
    return np.array(means), covariances
