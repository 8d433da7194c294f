"""DCSVM (Rathgamage Don and Iacob 2018, section 3): at every step the pair machine that divides the classes best.

C_ij(l, i) is the share of class l's training rows that machine ij calls i (Definition 1); all of them form the
all-predictions table (Definition 2), from which a machine's purity, balance (Definition 3) and score (Definition 4)
follow for any set of classes still in competition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..graphs import Cost, DecisionGraph, costs
from ..machines import pair_code
from .base import BankClassifier, Sample, outputs

CELLS = 1_000_000  # states x machines compared at once: some tens of MB
MEASURES = np.dtype([("i", int), ("j", int), ("purity", int), ("balance", int), ("score", float)])


def measures(table: np.ndarray, classes: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Machines between the given classes, and their (i, j, purity, balance, score) within those classes."""
    n = table.shape[1]
    i, j = np.triu_indices(n, 1)
    machines = np.flatnonzero(np.isin(i, classes) & np.isin(j, classes))
    chi = table[np.ix_(machines, classes)] > threshold  # chi_theta(C_ij(l, i)), chi_theta(C_ij(l, j))
    k = len(classes)
    out = np.zeros(len(machines), dtype=MEASURES)
    out["i"], out["j"] = i[machines], j[machines]
    out["purity"] = chi.sum(axis=(1, 2)) - k
    out["balance"] = (k - chi.sum(axis=1)).min(axis=1)
    own = table[machines, i[machines], 0] + table[machines, j[machines], 1]
    out["score"] = own / 2
    return machines, out


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
    waiting: dict[bytes, None] = {}

    def choose(states: list[bytes]) -> None:
        left = np.frombuffer(b"".join(states), dtype=bool).reshape(-1, n)  # classes still possible, a row a state
        k = left.sum(axis=1, keepdims=True, dtype=float)
        as_i, as_j = left.astype(np.float32) @ chi_i, left.astype(np.float32) @ chi_j
        division = (as_i + as_j - k) * (n + 1.0) + np.maximum(as_i, as_j)  # P, then k - B: both of them small
        order = worse * (n + 1) ** 2 + division if prefer == "score" else division * len(m) + worse
        order[~(left[:, i] & left[:, j])] = np.inf
        best = order.argmin(axis=1)  # the first of equals
        for state, t, one, other in zip(states, best.tolist(), left & to_j[best], left & to_i[best], strict=True):
            chosen[state] = ("node", t, one.tobytes(), other.tobytes())
            waiting.update(dict.fromkeys(s for s in chosen[state][2:] if s not in chosen))

    def rule(state: bytes) -> tuple:
        if state.count(1) == 1:
            return "leaf", state.index(1)
        if state not in chosen:
            due = [s for s in waiting if s.count(1) > 1] or [state]
            waiting.clear()
            for start in range(0, len(due), step := max(1, CELLS // len(m))):
                choose(due[start : start + step])
        return chosen[state]

    members = lambda state: np.flatnonzero(np.frombuffer(state, dtype=bool))  # noqa: E731
    return DecisionGraph(np.ones(n, dtype=bool).tobytes(), rule, members, n_classes=n, n_machines=len(table))


@dataclass(kw_only=True, eq=False, repr=False)
class DCSVC(BankClassifier):
    """Divide and conquer: each step asks the machine that leaves fewest classes undecided, and drops what it rules out.

    Parameters
    ----------
    threshold : theta, the share of a class that may fall on the wrong side before the class counts as undecided.
    prefer : "balance" orders machines by purity, balance, score; "score" by score, purity, balance; then the first.
    scale_pairs : standardise the inputs anew for every pair's machine, on its rows, as e1071's one-versus-one does.

    Attributes: `predictions_table_` (n_machines, n_classes, 2), `measures_` (one record a machine, all classes in
    competition), else as in `BankClassifier`. `decision_function`: path margins.
    """

    threshold: float = 0.0
    prefer: str = "balance"
    scale_pairs: bool = False

    def _code(self, n_classes: int) -> np.ndarray:
        return pair_code(n_classes)

    def _fit(self, sample: Sample) -> None:
        if self.prefer not in ("balance", "score"):
            raise ValueError(f"prefer must be 'balance' or 'score', not {self.prefer!r}")
        if not 0 <= self.threshold < 0.5:
            raise ValueError(f"threshold is a share from 0 up to 0.5, not {self.threshold!r}")
        super()._fit(sample)

    def _study(self, sample: Sample) -> None:
        belongs = np.eye(len(self.classes_))[sample.codes] * sample.mass[:, None]
        start, as_i = 0, 0.0
        for f in outputs(self.machines_, sample.X):
            as_i = as_i + (f >= 0).T.astype(float) @ belongs[start : start + len(f)]
            start += len(f)
        share = as_i / belongs.sum(axis=0)
        self.predictions_table_ = np.stack([share, 1 - share], axis=2)

    @property
    def measures_(self) -> np.ndarray:
        """Purity, balance and score of every machine with all classes in competition (the paper's Table 1)."""
        return measures(self.predictions_table_, np.arange(len(self.classes_)), self.threshold)[1]

    def separation(self, threshold: float) -> float:
        """Share of the table's entries that decide for one class up to `threshold` (Figure 10)."""
        return float(np.mean(self.predictions_table_.max(axis=2) >= 1 - threshold))

    def with_threshold(self, threshold: float, prefer: str | None = None) -> DCSVC:
        """A fitted copy over the same machines with another threshold; nothing is trained again."""
        other = type(self)(**(self.get_params() | {"threshold": threshold, "prefer": prefer or self.prefer}))
        for name in ("classes_", "n_features_in_", "machines_", "predictions_table_"):
            setattr(other, name, getattr(self, name))
        other.graph_ = other._make_graph()
        return other

    def sweep(self, X, thresholds: Iterable[float]) -> Iterator[tuple[float, np.ndarray, Cost]]:
        """Answer the rows of X at several thresholds, the machines being asked only once for all of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.
        thresholds : iterable of float
            Values of theta, each a share from 0 up to .5.

        Yields
        ------
        threshold, labels, cost
            As `with_threshold(threshold).predict_with_cost(X)` returns the last two.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> for theta, labels, cost in DCSVC().fit(X, y).sweep(X, (0.0, 0.05)):
        ...     print(theta, f"{cost.binary_decisions.mean():.2f}")
        0.0 7.55
        0.05 6.21
        """
        f = np.concatenate(list(outputs(self.machines_, self._rows(X))))
        for threshold in thresholds:
            labels, paths, _ = self.with_threshold(threshold).graph_.run(f)
            yield threshold, self.classes_[labels], costs(paths, self.machines_.coef)

    def _make_graph(self) -> DecisionGraph:
        return dcsvm_graph(self.predictions_table_, self.threshold, self.prefer)

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | {"table": self.predictions_table_}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.predictions_table_ = arrays.pop("table")
        super()._restore(arrays)
