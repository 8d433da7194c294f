"""All pairs asked at once: Friedman's Max Wins and Knerr's AND gate (Platt et al. 2000, section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graphs import Ballot, summed, votes, won
from ..machines import pair_code
from .base import BankClassifier, Sample, outputs


@dataclass(kw_only=True, eq=False, repr=False)
class MaxWinsSVC(BankClassifier):
    """Every pair's machine casts a vote; the class with most votes wins.

    Parameters
    ----------
    break_ties : False gives a tie to its first class (as LIBSVM does), True to the one with the largest score.
    scale_pairs : standardise the inputs anew for every pair's machine, on its rows, as e1071's one-versus-one does.

    `decision_function`: votes plus the summed margin squeezed into (-1/3, 1/3). Else as in `BankClassifier`.
    """

    break_ties: bool = False
    scale_pairs: bool = False

    def _code(self, n_classes: int) -> np.ndarray:
        return pair_code(n_classes)

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, votes, None if self.break_ties else won)

    def tied(self, X) -> np.ndarray:
        """Whether each row's most votes go to more than one class."""
        counts = _won(self, X)
        return (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1


@dataclass(kw_only=True, eq=False, repr=False)
class AndGateSVC(MaxWinsSVC):
    """The class that every one of its machines accepts; where there is none, the row is unclassified.

    Parameters
    ----------
    unclassified_label : answer for unclassified rows; None gives the class with the largest summed margin instead.

    `unclassified(X)` marks those rows; `unclassified_share_` is their share of the training rows. `decision_function`:
    summed margin squeezed into (-1, 1), plus 2 for the accepted class. Else as in `BankClassifier`.
    """

    unclassified_label: Any = None

    def _study(self, sample: Sample) -> None:
        self.unclassified_share_ = float(np.average(self._unclassified(sample.X), weights=sample.mass))

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, accepted)

    def _unclassified(self, X: np.ndarray) -> np.ndarray:
        return _won(self, X, checked=True).max(axis=1) < len(self.classes_) - 1

    def unclassified(self, X) -> np.ndarray:
        """Whether each row is accepted by all machines of no class."""
        return self._unclassified(self._rows(X))

    def _named(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        labels = super()._named(X, labels)
        if self.unclassified_label is None:
            return labels
        mixed = np.array([self.unclassified_label])
        kind = object if mixed.dtype.kind != labels.dtype.kind else np.result_type(mixed, labels)
        labels = labels.astype(kind)
        labels[self._unclassified(X)] = self.unclassified_label
        return labels

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | {"unclassified_share": np.array(self.unclassified_share_)}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        self.unclassified_share_ = float(arrays["unclassified_share"])


def accepted(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its summed margin squeezed into (-1, 1), plus 2 where all its machines accept it."""
    margin = summed(f, code)
    return margin / (np.abs(margin) + 1) + 2.0 * (won(f, code) == code.shape[1] - 1)


def _won(est: BankClassifier, X, checked: bool = False) -> np.ndarray:
    """Pairs won by each class, for the rows of X."""
    X = X if checked else est._rows(X)
    return np.concatenate([won(f, est.machines_.code) for f in outputs(est.machines_, X)])
