"""DCSVM (Rathgamage Don and Iacob 2018, section 3): at every step the pair machine that divides the classes best.

C_ij(l, i) is the share of class l's training rows that machine ij calls i (Definition 1); all of them form the
all-predictions table (Definition 2), from which a machine's purity, balance (Definition 3) and score (Definition 4)
follow for any set of classes still in competition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graphs import DecisionGraph
from ..machines import pair_code
from .base import BankClassifier, Sample, outputs

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
    """The DCSVM tree over an all-predictions table; nodes with the same classes are one, made as rows reach them.

    A class undecided by the node's machine goes to both children; the machine's own two classes go to their own sides
    (with training errors above the threshold, the paper's lists would otherwise not shrink).
    """
    i_of, j_of = np.triu_indices(table.shape[1], 1)

    def rule(state: frozenset) -> tuple:
        classes = np.array(sorted(state))
        if len(classes) == 1:
            return "leaf", int(classes[0])
        machines, m = measures(table, classes, threshold)
        keys = (
            (-m["balance"], m["purity"], -m["score"])
            if prefer == "score"
            else (-m["score"], -m["balance"], m["purity"])
        )
        t = machines[np.lexsort(keys)[0]]
        i, j = int(i_of[t]), int(j_of[t])
        as_i = {int(c) for c in classes[table[t, classes, 0] > threshold]}
        as_j = {int(c) for c in classes[table[t, classes, 1] > threshold]}
        return "node", t, frozenset(as_j - {i} | {j}), frozenset(as_i - {j} | {i})

    n = table.shape[1]
    return DecisionGraph(frozenset(range(n)), rule, lambda s: s, n_classes=n, n_machines=len(table))


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

    def _make_graph(self) -> DecisionGraph:
        return dcsvm_graph(self.predictions_table_, self.threshold, self.prefer)

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | {"table": self.predictions_table_}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.predictions_table_ = arrays.pop("table")
        super()._restore(arrays)
