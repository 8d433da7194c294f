"""Every machine asked at once: one-versus-rest, Max Wins and the AND gate (Platt et al. 2000, section 1)."""

from typing import Any

import numpy as np

from ..ballots import Ballot, largest, summed, votes, won
from ..machines import pair_code, rest_code
from .base import BankClassifier, Sample


class OneVsRestSVC(BankClassifier):
    """One machine a class, against the rest (Vapnik 1998); `decision_function` gives the machines' outputs.

    Examples
    --------
    >>> from dagsvm_lab import OneVsRestSVC
    >>> OneVsRestSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"]).predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    def _code(self, sample: Sample) -> np.ndarray:
        return pair_code(2) if sample.n_classes == 2 else rest_code(sample.n_classes)

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, largest)


class MaxWinsSVC(BankClassifier):
    """Every pair's machine casts a vote; the class with most votes wins (Friedman 1996).

    `decision_function` gives votes plus the summed margin squeezed into (-1/3, 1/3).

    Parameters
    ----------
    break_ties : bool, default=False
        False gives a tie to its first class, as LIBSVM does, True to the one with the largest score.
    scale_pairs : bool, default=False
        Standardise the inputs anew for every pair's machine, on its rows, as e1071's one-versus-one does.

    Examples
    --------
    >>> from dagsvm_lab import MaxWinsSVC
    >>> MaxWinsSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"]).predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    break_ties: bool = False
    scale_pairs: bool = False

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, votes, None if self.break_ties else won, by_sign=not self.break_ties)

    def tied(self, X) -> np.ndarray:
        """Tell the rows whose most votes go to more than one class.

        Returns
        -------
        tied : ndarray of bool of shape (n_samples,)
            Whether the row is tied.
        """
        counts = self._won(self._rows(X))
        return (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1

    def _won(self, X: np.ndarray) -> np.ndarray:
        """Pairs won by each class, for checked rows."""
        return np.concatenate(self._each(lambda f: won(f, self.machines_.code), X))


class AndGateSVC(MaxWinsSVC):
    """The class that every one of its machines accepts (Knerr 1990); where there is none, the row is unclassified.

    `decision_function` gives the summed margin squeezed into (-1, 1), plus 2 for the accepted class.

    Parameters
    ----------
    unclassified_label : object, default=None
        Answer for unclassified rows; None gives the class with the largest summed margin instead.

    Examples
    --------
    >>> from dagsvm_lab import AndGateSVC
    >>> gate = AndGateSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> gate.unclassified([[0.4], [3.1]]).tolist()
    [False, False]
    """

    unclassified_label: Any = None

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, accepted)

    def _unclassified(self, X: np.ndarray) -> np.ndarray:
        return self._won(X).max(axis=1) < len(self.classes_) - 1

    def unclassified(self, X) -> np.ndarray:
        """Tell the rows that no class wins outright.

        Returns
        -------
        unclassified : ndarray of bool of shape (n_samples,)
            Whether every class is refused by one of its machines.
        """
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


def accepted(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its summed margin squeezed into (-1, 1), plus 2 where all its machines accept it."""
    margin = summed(f, code)
    return margin / (np.abs(margin) + 1) + 2.0 * (won(f, code) == code.shape[1] - 1)
