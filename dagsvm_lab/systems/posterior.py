"""Posterior-probability SVM (Wang, Zheng and Zhou 2011, section 2, after Tao et al. 2005 and Gonen et al. 2008).

A machine learns soft labels y = 2 P(+|x) - 1 (Eq. 2) in place of hard ones:
min 1/2 w.w + C sum xi_j  with  y_j (w.x_j + b) >= y_j^2 - y_j^2 xi_j,  xi_j >= 0  (Eq. 1).
Its dual is the common one with s = sign y, p = |y|, u = C / |y|; y = 0 says nothing and drops out.
"""

from hashlib import sha256
from typing import Any, ClassVar, Literal

import numpy as np

from ..ballots import Ballot, largest, votes, won
from ..kernels import EXTREME, squared
from ..machines import pair_code, rest_code
from .base import BankClassifier, Sample
from .declared import Count, Positive

CHUNK = 256  # rows whose distances to all others are held at once
READINGS = {  # what a machine is told of a row with soft label y (Eq. 2), whose own class has the sign s
    "soft": lambda y, s: y,
    "sign": lambda y, s: np.sign(y),
    "agreeing": lambda y, s: s * np.maximum(s * y, 0.0),
    "own": lambda y, s: (s + y) / 2,
}


class Neighbourhood:
    """P(class | x_j) at the training points, from the classes' k nearest points or from Gaussian windows.

    Distances are kept once for all machines: for each point, the k smallest to every class (a point is its own first
    neighbour: "k = 1 is the canonical case"), or the sum of its windows over every class. A row with sample weight w
    counts as w rows; class weights multiply the classes' shares.
    """

    def __init__(self, sample: Sample, *, k: int = 11, bandwidth: float | None = None) -> None:
        X, n_classes, by_class = sample.X, sample.n_classes, sample.by_class
        self.k, self.bandwidth, self.n_classes = k, bandwidth, n_classes
        self._class_weight = np.ones(n_classes) if sample.class_weight is None else sample.class_weight
        place = np.full(len(X), -1)
        place[by_class] = np.arange(len(by_class))
        edges = np.searchsorted(sample.codes[by_class], np.arange(n_classes + 1))
        weights = sample.mass[by_class]
        if sample.kernel.name == "precomputed":
            norms = np.diag(X)
            distances = lambda own: norms[own, None] + norms[by_class] - 2 * X[own][:, by_class]  # noqa: E731
        else:  # |x - z|^2 as one product: (x, |x|^2, 1).(-2z, 1, |z|^2)
            Z = X - X.mean(axis=0)
            largest = np.abs(Z).max()
            if largest and not 1 / EXTREME < largest < EXTREME:  # squares of distances would leave the numbers' range
                Z, bandwidth = Z / largest, bandwidth and bandwidth / largest
            norms, ones = squared(Z), np.ones(len(Z))
            left, right = np.column_stack([Z, norms, ones]), np.column_stack([-2 * Z, ones, norms])[by_class].T.copy()
            distances = lambda own: left[own] @ right  # noqa: E731
        grain = 1e-10 * (norms.max() or 1.0)  # distances equal up to rounding are ties
        level = lambda d2: np.where(d2 == -np.inf, -1.0, np.maximum(np.round(d2 / grain) * grain, 0.0))  # noqa: E731
        depth = 1 if bandwidth else min(int(np.ceil(k / weights.min())), int(np.diff(edges).max()))
        self._near = np.full((len(X), n_classes, depth), 0.0 if bandwidth else np.inf)
        self._mass = None if sample.repeats is None else np.zeros((len(X), n_classes, depth))
        for start in range(0, len(X), CHUNK):
            own = np.arange(start, min(start + CHUNK, len(X)))
            d2 = distances(own)
            kept = place[own] >= 0
            d2[np.flatnonzero(kept), place[own][kept]] = -np.inf  # itself, before any duplicate
            for c in range(n_classes):
                span = slice(edges[c], edges[c + 1])
                part, m = d2[:, span], min(depth, edges[c + 1] - edges[c])
                if bandwidth:
                    self._near[own, c, 0] = np.exp(-np.maximum(part, 0) / (2 * bandwidth**2)) @ weights[span]
                elif m and self._mass is None:
                    self._near[own, c, :m] = level(np.partition(part, m - 1, axis=1)[:, :m])
                elif m:
                    part = level(part)
                    first = np.argsort(part, axis=1, kind="stable")[:, :m]
                    self._near[own, c, :m] = np.take_along_axis(part, first, axis=1)
                    self._mass[own, c, :m] = weights[span][first]

    def posterior(self, row: np.ndarray, points: np.ndarray, among: str = "pair") -> np.ndarray:
        """P(+|x) at `points` for the machine with code `row`.

        among="pair": the neighbours are looked for among the machine's own classes; "all": among all classes, then
        renormalised over the machine's classes (1/2 where none is near). Ties at the k-th distance are shared evenly.
        """
        near = self._near[points]
        if self.bandwidth:
            share = near[:, :, 0]
        else:
            seen = np.flatnonzero(row) if among == "pair" else np.arange(self.n_classes)
            share = np.zeros((len(points), self.n_classes))
            share[:, seen] = self._shares(near[:, seen], None if self._mass is None else self._mass[points][:, seen])
        share = share * self._class_weight
        plus, total = share[:, row == 1].sum(axis=1), share[:, row != 0].sum(axis=1)
        return np.divide(plus, total, out=np.full(len(total), 0.5), where=total > 0)

    def _shares(self, near: np.ndarray, mass: np.ndarray | None) -> np.ndarray:
        """How many of the k nearest neighbours each class has, by distances (points, classes, depth)."""
        flat = near.reshape(len(near), -1)
        if mass is None:
            mass = np.ones_like(near)
            k = min(self.k, flat.shape[1])
            reach = np.partition(flat, k - 1, axis=1)[:, k - 1]
        else:
            order = np.argsort(flat, axis=1, kind="stable")
            total = np.cumsum(np.take_along_axis(mass.reshape(flat.shape), order, axis=1), axis=1)
            enough = np.minimum((total < self.k).sum(axis=1), flat.shape[1] - 1)
            reach = np.take_along_axis(flat, order, axis=1)[np.arange(len(flat)), enough]
        reach = np.minimum(reach, np.finfo(float).max)[:, None, None]  # fewer than k: all of them
        inside = (mass * (near < reach)).sum(axis=2)
        tied = (mass * (near == reach)).sum(axis=2)
        left = np.minimum(self.k - inside.sum(axis=1), tied.sum(axis=1))
        return inside + tied * (left / np.maximum(tied.sum(axis=1), 1e-300))[:, None]


_latest: dict[tuple, Neighbourhood] = {}


def neighbourhood(sample: Sample, k: int, bandwidth: float | None = None) -> Neighbourhood:
    """Look up the Neighbourhood of these very rows and labels, the last one made, or make it.

    One system after another asks for the same; on MNIST's 60,000 rows the distances cost more than the machines.
    """
    parts = [sample.X, sample.codes, sample.repeats, sample.class_weight]
    digests = [None if part is None else sha256(np.ascontiguousarray(part)).digest() for part in parts]
    key = (*digests, sample.kernel.name == "precomputed", k, bandwidth)
    if (found := _latest.get(key)) is None:
        found = Neighbourhood(sample, k=k, bandwidth=bandwidth)
        _latest.clear()
        _latest[key] = found
    return found


class SoftClassifier(BankClassifier):
    """A system whose machines learn soft labels, if it is `posterior`.

    Parameters
    ----------
    n_neighbors : int, default=11
        k of the k-NN posterior, the point itself included; 1 gives the ordinary SVM.
    among : {"pair", "all"}, default="pair"
        Look for neighbours within the machine's classes, or among all classes.
    reading : {"soft", "sign", "agreeing", "own"}, default="soft"
        What a machine is told of a row with the sign s: the label y of Eq. 2; the sign of y alone; y, rows that their
        neighbours contradict left out; or (s + y) / 2 = s P(s|x), the row's own sign weakened, never turned.
    """

    n_neighbors: Count = 11
    among: Literal["pair", "all"] = "pair"
    reading: Literal["soft", "sign", "agreeing", "own"] = "soft"

    _sparse: ClassVar[bool] = False
    posterior, bandwidth = True, None  # where they are no parameters

    @property
    def _labels_kind(self) -> str:
        width = self.bandwidth
        what = f"windows of width {width:g}" if width else f"{self.n_neighbors} nearest among {self.among}"
        return f"soft: {what}, read as {self.reading}" if self.posterior else "hard"

    def _special(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        if not self.posterior:
            return {}
        near, read = neighbourhood(sample, self.n_neighbors, self.bandwidth), READINGS[self.reading]

        def soft(t: int, rows: np.ndarray, sign: np.ndarray) -> np.ndarray:
            return read(2 * near.posterior(code[t], rows, self.among) - 1, sign)  # Eq. 2

        return {"soft": soft, "labels": self._labels_kind}


class PosteriorSVC(SoftClassifier):
    """Posterior-probability machines combined one-versus-one (votes) or one-versus-rest (largest output).

    Parameters
    ----------
    strategy : {"ovo", "ovr"}, default="ovo"
        One-versus-one or one-versus-rest, the paper's OAO and OAA.
    bandwidth : float, default=None
        Width of Gaussian windows; a number replaces the k-NN estimate by the window estimate.

    Examples
    --------
    >>> from dagsvm_lab import PosteriorSVC
    >>> X, y = [[0], [1], [2], [5], [6], [7]], [0, 0, 0, 1, 1, 1]
    >>> PosteriorSVC(n_neighbors=3).fit(X, y).predict([[1.5], [5.5]])
    array([0, 1])
    """

    strategy: Literal["ovo", "ovr"] = "ovo"
    bandwidth: Positive | None = None

    def _code(self, sample: Sample) -> np.ndarray:
        n = sample.n_classes
        return pair_code(n) if self.strategy == "ovo" or n == 2 else rest_code(n)

    def _make_graph(self) -> Ballot:
        one = self.strategy == "ovo"
        return Ballot(self.machines_.code, votes if one else largest, won if one else None, by_sign=one)
