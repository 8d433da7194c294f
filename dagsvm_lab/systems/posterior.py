"""Posterior-probability SVM (Wang, Zheng and Zhou 2011, section 2, after Tao et al. 2005 and Gonen et al. 2008).

A machine learns soft labels y = 2 P(+|x) - 1 (Eq. 2) in place of hard ones:
min 1/2 w.w + C sum xi_j  with  y_j (w.x_j + b) >= y_j^2 - y_j^2 xi_j,  xi_j >= 0  (Eq. 1).
Its dual is the common one with s = sign y, p = |y|, u = C / |y|; y = 0 says nothing and drops out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..graphs import Ballot, largest, votes
from ..kernels import Kernel
from ..machines import pair_code, rest_code
from .base import BankClassifier

CHUNK = 1024  # rows whose distances to all others are held at once


class Neighbourhood:
    """P(class | x_j) at the training points, from the classes' k nearest points or from Gaussian windows.

    Distances are kept once for all machines: for each point, the k smallest to every class (a point is its own first
    neighbour: "k = 1 is the canonical case"), or the sum of its windows over every class.
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, n_classes: int, *, k: int = 11, bandwidth: float | None = None,
                 kernel: Kernel | None = None) -> None:  # fmt: skip
        self.k, self.bandwidth, self.n_classes = k, bandwidth, n_classes
        by_class = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[by_class], np.arange(n_classes + 1))
        spans = [slice(edges[c], edges[c + 1]) for c in range(n_classes)]
        depth = 1 if bandwidth else k
        self._near = np.full((len(X), n_classes, depth), 0.0 if bandwidth else np.inf)
        precomputed = kernel is not None and kernel.name == "precomputed"
        if precomputed:
            norms = np.diag(X).copy()
        else:
            X = X - X.mean(axis=0)
            norms = np.einsum("ij,ij->i", X, X)
            others = X[by_class].T.copy()
        grain = 1e-10 * (norms.max() or 1.0)  # distances equal up to rounding are ties
        for start in range(0, len(X), CHUNK):
            own = slice(start, min(start + CHUNK, len(X)))
            products = X[own][:, by_class] if precomputed else X[own] @ others
            d2 = norms[own, None] + norms[by_class] - 2 * products
            d2 = np.maximum(np.round(d2 / grain) * grain, 0.0)
            at = np.empty(len(X), dtype=int)
            at[by_class] = np.arange(len(X))
            rows = np.arange(own.stop - own.start)
            d2[rows, at[own]] = -1.0  # itself, before any duplicate
            for c, span in enumerate(spans):
                part = d2[:, span]
                if bandwidth:
                    self._near[own, c, 0] = np.exp(-np.maximum(part, 0) / (2 * bandwidth**2)).sum(axis=1)
                else:
                    m = min(k, part.shape[1])
                    self._near[own, c, :m] = np.sort(np.partition(part, m - 1, axis=1)[:, :m], axis=1)

    def posterior(self, row: np.ndarray, points: np.ndarray, among: str = "pair") -> np.ndarray:
        """P(+|x) at `points` for the machine with code `row`.

        among="pair": the neighbours are looked for among the machine's own classes; "all": among all classes, then
        renormalised over the machine's classes (1/2 where none of them is near). Ties at the k-th distance are shared evenly.
        """
        near = self._near[points]
        if self.bandwidth:
            plus, minus = near[:, row == 1, 0].sum(axis=1), near[:, row == -1, 0].sum(axis=1)
            return _ratio(plus, minus)
        seen = np.flatnonzero(row) if among == "pair" else np.arange(self.n_classes)
        flat = near[:, seen].reshape(len(points), -1)
        reach = np.partition(flat, self.k - 1, axis=1)[:, self.k - 1 : self.k] if flat.shape[1] >= self.k else np.inf
        inside = (near < reach if np.ndim(reach) == 0 else near < reach[:, :, None]).sum(axis=2).astype(float)
        if np.ndim(reach):
            tied = (near == reach[:, :, None]).sum(axis=2)
            left = self.k - inside[:, seen].sum(axis=1)
            inside += tied * (left / np.maximum(tied[:, seen].sum(axis=1), 1))[:, None]
        return _ratio(inside[:, row == 1].sum(axis=1), inside[:, row == -1].sum(axis=1))

    def soft_labels(self, code: np.ndarray, among: str = "pair") -> Callable:
        """soft(t, rows, sign): the labels y = 2 P(+|x) - 1 (Eq. 2) of machine t of `code`, as `machines.train` asks for them."""
        return lambda t, rows, sign: 2 * self.posterior(code[t], rows, among) - 1


def _ratio(plus: np.ndarray, minus: np.ndarray) -> np.ndarray:
    total = plus + minus
    return np.divide(plus, total, out=np.full(len(total), 0.5), where=total > 0)


@dataclass(kw_only=True, eq=False, repr=False)
class PosteriorSVC(BankClassifier):
    """Posterior-probability machines combined one-versus-one (votes) or one-versus-rest (largest output).

    Parameters
    ----------
    strategy : "ovo" or "ovr" (the paper's OAO and OAA).
    n_neighbors : k of the k-NN posterior, the point itself included; 1 gives the ordinary SVM.
    among : "pair" looks for neighbours within the machine's classes, "all" among all classes.
    bandwidth : width of Gaussian windows; a number replaces the k-NN estimate by the window estimate.

    Else as in `BankClassifier`.
    """

    strategy: str = "ovo"
    n_neighbors: int = 11
    among: str = "pair"
    bandwidth: float | None = None

    def _fit(self, X, codes, kernel, weight) -> None:
        if self.strategy not in ("ovo", "ovr"):
            raise ValueError(f"strategy must be 'ovo' or 'ovr', not {self.strategy!r}")
        n_classes = len(self.classes_)
        near = Neighbourhood(X, codes, n_classes, k=self.n_neighbors, bandwidth=self.bandwidth, kernel=kernel)
        code = self._code(n_classes)
        soft = near.soft_labels(code, self.among)
        self.machines_ = self._train(X, codes, code, kernel, self.C, weight=weight, soft=soft)
        self.graph_ = self._make_graph()

    def _code(self, n_classes: int) -> np.ndarray:
        return pair_code(n_classes) if self.strategy == "ovo" or n_classes == 2 else rest_code(n_classes)

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, votes if self.strategy == "ovo" else largest)
