"""P(class | x) at the training points, from the samples around each.

From Gaussian windows (Tao et al. 2005) or from the k nearest samples (Gönen, Tanuğur
and Alpaydın 2008; k = 11 in Wang et al. 2011).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise

import numpy as np

from ..kernels import EXTREME, squared
from .sample import Sample

DISTANCE_ROWS = 256  # samples whose distances to all others are held at once


class PointDistances:
    """Squared distances between the training rows, in input or in feature space.

    `scale` is what the inputs were divided by: 1, or their largest value where squares
    would leave the range of numbers. Distances closer than `tie` are equal up to
    rounding.
    """

    def __init__(self, sample: Sample) -> None:
        self._columns = sample.by_class  # rows that count, sorted by class
        self._gram: np.ndarray | None = None
        self.scale = 1.0
        if sample.kernel.precomputed:
            self._gram = sample.X
            self._norms = np.diag(sample.X)
        else:
            self._norms = self._product_form(sample.X)
        self.tie = 1e-10 * (self._norms.max() or 1.0)

    def _product_form(self, X: np.ndarray) -> np.ndarray:
        """Set factors with |x - z|^2 = (x, |x|^2, 1).(-2z, 1, |z|^2); the norms."""
        Z = X - X.mean(axis=0)
        largest_input = np.abs(Z).max()
        if largest_input and not 1 / EXTREME < largest_input < EXTREME:
            self.scale = largest_input
            Z = Z / largest_input
        norms = squared(Z)
        ones = np.ones(len(Z))
        self._left = np.column_stack([Z, norms, ones])  # (rows, inputs + 2)
        right = np.column_stack([-2 * Z, ones, norms])
        self._right = right[self._columns].T.copy()  # (inputs + 2, columns)
        return norms

    def to_columns(self, rows: np.ndarray) -> np.ndarray:
        """Squared distances (rows, columns) to all rows that count."""
        if self._gram is None:
            return self._left[rows] @ self._right
        own_norms = self._norms[rows, None]
        norms = self._norms[self._columns]
        products = self._gram[rows][:, self._columns]
        return own_norms + norms - 2 * products

    def rounded(self, d2: np.ndarray) -> np.ndarray:
        """Distances with ties made equal; -inf, a point to itself, becomes -1."""
        multiples = np.round(d2 / self.tie) * self.tie
        return np.where(d2 == -np.inf, -1.0, np.maximum(multiples, 0.0))


class Neighbourhood(ABC):
    """P(class | x_j) at the training points: a base of two density estimates.

    What is kept of the distances serves all machines of a system. A point is its own
    first neighbour, so that k = 1 is "the canonical case" (Wang et al. 2011). A row
    with sample weight w counts as w rows; class weights multiply the classes' shares.
    """

    def __init__(self, sample: Sample) -> None:
        self.n_classes = sample.n_classes
        self._class_weight = sample.class_weight
        if self._class_weight is None:
            self._class_weight = np.ones(self.n_classes)
        # columns of distances are the rows that count, by class: each class is a span
        columns = sample.by_class
        edges = np.searchsorted(sample.codes[columns], np.arange(self.n_classes + 1))
        self._spans = [slice(a, b) for a, b in pairwise(edges)]
        self._weights = sample.row_weight[columns]
        self._points = PointDistances(sample)

    def _blocks(self, sample: Sample) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield some rows and their distances (rows, columns), to itself -inf."""
        columns = sample.by_class
        n_rows = len(sample.codes)
        place = np.full(n_rows, -1)  # each row's column, -1 where it does not count
        place[columns] = np.arange(len(columns))
        for start in range(0, n_rows, DISTANCE_ROWS):
            rows = np.arange(start, min(start + DISTANCE_ROWS, n_rows))
            d2 = self._points.to_columns(rows)
            own = place[rows]
            counts = np.flatnonzero(own >= 0)
            d2[counts, own[counts]] = -np.inf  # before any duplicate
            yield rows, d2

    @abstractmethod
    def shares(self, points: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Weight (points, classes) of each class near each point, among `classes`."""

    def posterior(
        self, row: np.ndarray, points: np.ndarray, among: str = "pair"
    ) -> np.ndarray:
        """P(+|x) at `points` for the machine with code `row`.

        among="pair" looks for neighbours among the machine's own classes; "all" among
        all classes, then renormalises over the machine's (1/2 where none is near).
        """
        seen = np.flatnonzero(row) if among == "pair" else np.arange(self.n_classes)
        share = np.zeros((len(points), self.n_classes))
        share[:, seen] = self.shares(points, seen)
        share *= self._class_weight
        plus = share[:, row == 1].sum(axis=1)
        total = share[:, row != 0].sum(axis=1)
        even = np.full(len(total), 0.5)
        return np.divide(plus, total, out=even, where=total > 0)


class NearestNeighbourhood(Neighbourhood):
    """Shares of the k nearest samples (Gönen et al. 2008); ties are shared evenly."""

    def __init__(self, sample: Sample, k: int = 11) -> None:
        super().__init__(sample)
        self.k = k
        sizes = [span.stop - span.start for span in self._spans]
        # of each class no more than k samples can count; of weight below 1, more can
        most = int(np.ceil(k / self._weights.min()))
        depth = min(most, max(sizes))
        shape = (len(sample.codes), self.n_classes, depth)
        self._near = np.full(shape, np.inf)  # each class's nearest distances
        self._near_weight = None if sample.sample_weight is None else np.zeros(shape)
        for rows, d2 in self._blocks(sample):
            for c in np.flatnonzero(sizes):
                self._keep_nearest(rows, c, d2[:, self._spans[c]])

    def _keep_nearest(self, rows: np.ndarray, c: int, d2: np.ndarray) -> None:
        """Store the nearest samples of class c to `rows`: d2 (rows, samples)."""
        rounded = self._points.rounded
        m = min(self._near.shape[2], d2.shape[1])
        if self._near_weight is None:
            nearest = np.partition(d2, m - 1, axis=1)[:, :m]
            self._near[rows, c, :m] = rounded(nearest)
            return
        d2 = rounded(d2)
        first = np.argsort(d2, axis=1, kind="stable")[:, :m]
        weights = self._weights[self._spans[c]]
        self._near[rows, c, :m] = np.take_along_axis(d2, first, axis=1)
        self._near_weight[rows, c, :m] = weights[first]

    def shares(self, points: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """How many of each point's k nearest samples each of `classes` has."""
        near = self._near[points][:, classes]  # (points, classes, depth)
        weight = np.ones_like(near)
        if self._near_weight is not None:
            weight = self._near_weight[points][:, classes]
        reach = self._reach(near, weight)[:, None, None]
        # weight before the reach, and at it: (points, classes)
        inside = (weight * (near < reach)).sum(axis=2)
        tied = (weight * (near == reach)).sum(axis=2)
        # what k still wants, from those at the reach itself, in equal parts
        all_tied = tied.sum(axis=1)
        wanted = np.minimum(self.k - inside.sum(axis=1), all_tied)
        part = wanted / np.maximum(all_tied, 1e-300)
        return inside + tied * part[:, None]

    def _reach(self, near: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Distance within which samples of a total weight of k lie: (points,)."""
        n_points = len(near)
        near = near.reshape(n_points, -1)  # (points, samples)
        n_samples = near.shape[1]
        if self._near_weight is None:
            k = min(self.k, n_samples)
            ordered = np.partition(near, k - 1, axis=1)
            reach = ordered[:, k - 1]
        else:
            order = np.argsort(near, axis=1, kind="stable")
            ordered = np.take_along_axis(near, order, axis=1)
            weight = np.take_along_axis(weight.reshape(near.shape), order, axis=1)
            # the first sample with which the weight is k, or the last one
            short = (weight.cumsum(axis=1) < self.k).sum(axis=1)
            last = np.minimum(short, n_samples - 1)
            reach = ordered[np.arange(n_points), last]
        # infinite where there are fewer than k samples: all of them are near
        return np.minimum(reach, np.finfo(float).max)


class WindowNeighbourhood(Neighbourhood):
    """Shares of Gaussian windows around the point (Tao et al. 2005)."""

    def __init__(self, sample: Sample, bandwidth: float) -> None:
        super().__init__(sample)
        width = bandwidth / self._points.scale
        if not 1e-150 < width < 1e150:  # its square is a number, too
            raise ValueError(
                "bandwidth must be neither tiny nor huge beside the inputs; got "
                f"{bandwidth!r}"
            )
        self._density = np.zeros((len(sample.codes), self.n_classes))
        for rows, d2 in self._blocks(sample):
            for c, span in enumerate(self._spans):
                to_class = np.maximum(d2[:, span], 0)
                windows = np.exp(-to_class / (2 * width**2))
                self._density[rows, c] = windows @ self._weights[span]

    def shares(self, points: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Sum of each class's windows at each point."""
        return self._density[points][:, classes]


_latest: dict[tuple, Neighbourhood] = {}


def neighbourhood(
    sample: Sample, k: int, bandwidth: float | None = None
) -> Neighbourhood:
    """Look up the neighbourhood of these very rows and labels, or make it.

    The last one made is kept: one system after another asks for the same, and on
    60,000 rows of MNIST the distances cost more than the machines.
    """
    key = (
        _digest(sample.X),
        _digest(sample.codes),
        _digest(sample.sample_weight),
        _digest(sample.class_weight),
        sample.kernel.precomputed,  # on other kernels no distance depends
        k,
        bandwidth,
    )
    made: Neighbourhood | None = _latest.get(key)
    if made is None:
        if bandwidth:
            made = WindowNeighbourhood(sample, bandwidth)
        else:
            made = NearestNeighbourhood(sample, k)
        # fits in other threads may replace it at any time: `made` is given back
        _latest.clear()
        _latest[key] = made
    return made


def _digest(array: np.ndarray | None) -> bytes | None:
    """Equal for arrays of the same bytes."""
    return None if array is None else sha256(np.ascontiguousarray(array)).digest()
