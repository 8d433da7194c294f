"""DCSVM (Rathgamage Don and Iacob 2018, section 3): at every step the pair machine that divides the classes best.

C_ij(l, i) is the share of class l's training rows that machine ij calls i (Definition 1); all of them form the
all-predictions table (Definition 2), from which a machine's purity, balance (Definition 3) and score (Definition 4)
follow for any set of classes still in competition.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from ..graphs import Cost, DecisionGraph, costs
from .base import BankClassifier, Sample

CELLS = 1_000_000  # states x machines compared at once: some tens of MB


def dcsvm_graph(table: np.ndarray, threshold: float, prefer: str) -> DecisionGraph:
    """Build the DCSVM tree over an all-predictions table (Algorithm 1); nodes with the same classes are one.

    A class undecided by the node's machine goes to both children; the machine's own two classes go to their own sides
    (with training errors above the threshold, the paper's lists would otherwise not shrink). Nodes are made as rows
    reach them; the machines of all nodes that wait are chosen at once: a product of (states x classes) with
    (classes x machines) counts every machine's classes on either side, from which Definition 3 follows.
    """
    n, m = table.shape[1], np.arange(len(table))
    i, j = np.triu_indices(n, 1)
    to_i, to_j = np.moveaxis(table > threshold, 2, 0)  # chi_theta(C_ij(l, i)), chi_theta(C_ij(l, j))
    chi_i, chi_j = to_i.T.astype(np.float32), to_j.T.astype(np.float32)
    to_i[m, i], to_i[m, j], to_j[m, i], to_j[m, j] = True, False, False, True
    score = np.round((table[m, i, 0] + table[m, j, 1]) / 2, 12)  # equal shares are equal, whatever their last bit
    worse = np.unique(-score, return_inverse=True)[1].astype(float)
    chosen: dict[bytes, tuple] = {}
    waiting: list[bytes] = []

    def choose(states: list[bytes]) -> None:
        left = np.frombuffer(b"".join(states), dtype=bool).reshape(-1, n)  # classes still possible, a row a state
        k = left.sum(axis=1, keepdims=True, dtype=float)
        as_i, as_j = left.astype(np.float32) @ chi_i, left.astype(np.float32) @ chi_j
        division = (as_i + as_j - k) * (n + 1.0) + np.maximum(as_i, as_j)  # P, then k - B: both of them small
        order = worse * (n + 1) ** 2 + division if prefer == "score" else division * len(m) + worse
        order[~(left[:, i] & left[:, j])] = np.inf
        best = order.argmin(axis=1)  # the first of equals
        ones, others = ([row.tobytes() for row in left & side[best]] for side in (to_j, to_i))
        chosen.update(zip(states, zip(repeat("node"), best.tolist(), ones, others), strict=True))
        waiting.extend(ones + others)

    def rule(state: bytes) -> tuple:
        if state.count(1) == 1:
            return "leaf", state.index(1)
        if state not in chosen:
            due = [s for s in dict.fromkeys(waiting or [state]) if s.count(1) > 1 and s not in chosen]
            waiting.clear()
            for start in range(0, len(due), step := max(1, CELLS // len(m))):
                choose(due[start : start + step])
        return chosen[state]

    members = lambda state: np.flatnonzero(np.frombuffer(state, dtype=bool))  # noqa: E731
    return DecisionGraph(np.ones(n, dtype=bool).tobytes(), rule, members, n_classes=n, n_machines=len(table))


class DCSVC(BankClassifier):
    """Divide and conquer: each step asks the machine that leaves fewest classes undecided, and drops what it rules out.

    Parameters
    ----------
    threshold : float, default=0.0
        The paper's theta: share of a class that may fall on the wrong side before the class counts as undecided.
    prefer : {"balance", "score"}, default="balance"
        "balance" orders machines by purity, balance, score; "score" by score, purity, balance; then the first.
    scale_pairs : bool, default=False
        Standardise the inputs anew for every pair's machine, on its rows, as e1071's one-versus-one does.

    Attributes
    ----------
    predictions_table_ : ndarray of shape (n_machines, n_classes, 2)
        Share of each class's training rows that a machine gives to its first and to its second class.

    Examples
    --------
    >>> from dagsvm_lab import DCSVC
    >>> dc = DCSVC(kernel="linear").fit([[0], [1], [4], [5]], ["a", "b", "c", "d"])
    >>> labels, cost = dc.predict_with_cost([[0.4], [4.9]])
    >>> labels.tolist(), cost.binary_decisions.tolist()
    (['a', 'd'], [2, 2])
    """

    threshold: Annotated[float, Interval(Real, 0, 0.5, closed="left")] = 0.0
    prefer: Literal["balance", "score"] = "balance"
    scale_pairs: bool = False

    _saved = ("predictions_table_",)

    def _study(self, sample: Sample) -> None:
        belongs = np.eye(len(self.classes_))[sample.codes] * sample.mass[:, None]
        share = (self._trained(sample, by_sign=True) >= 0).T.astype(float) @ belongs / belongs.sum(axis=0)
        self.predictions_table_ = np.stack([share, 1 - share], axis=2)

    def with_threshold(self, threshold: float, prefer: str | None = None) -> Self:
        """Copy this fitted estimator with another threshold over the same machines.

        Parameters
        ----------
        threshold : float
            As the parameter `threshold`.
        prefer : {"balance", "score"}, default=None
            As the parameter `prefer`; None leaves it.

        Returns
        -------
        other : object
            The copy; nothing is trained again.
        """
        other = self._variant(threshold=threshold, prefer=prefer or self.prefer)
        other.graph_ = other._make_graph()
        return other

    def sweep(self, X, thresholds: Iterable[float]) -> Iterator[tuple[float, np.ndarray, Cost]]:
        """Answer the rows of X at several thresholds, the machines being asked only once for all of them.

        Parameters
        ----------
        thresholds : iterable of float
            Values of theta, each a share from 0 up to .5.

        Yields
        ------
        threshold, labels, cost
            As `with_threshold(threshold).predict_with_cost(X)` returns the last two.

        Examples
        --------
        >>> dc = DCSVC(kernel="linear").fit([[0], [1], [4], [5]], ["a", "b", "c", "d"])
        >>> [(theta, cost.binary_decisions.tolist()) for theta, _, cost in dc.sweep([[0.4]], (0.0, 0.2))]
        [(0.0, [2]), (0.2, [2])]
        """
        f = self.machines_.decision(self._rows(X), n_jobs=self.n_jobs)
        for threshold in thresholds:
            labels, paths, _ = self.with_threshold(threshold).graph_.run(f)
            yield threshold, self.classes_[labels], costs(paths, self.machines_.coef)

    def _make_graph(self) -> DecisionGraph:
        return dcsvm_graph(self.predictions_table_, self.threshold, self.prefer)
