"""Every machine asked at once: one-versus-rest, Max Wins and the AND gate.

Platt, Cristianini and Shawe-Taylor 2000, section 1.
"""

from typing import Any, Literal

import numpy as np

from ..ballots import Ballot, largest, summed, votes, won
from ..machines import pair_code, rest_code
from .base import BankClassifier
from .sample import Sample


class OneVsRestSVC(BankClassifier):
    """One machine a class, against the rest (Vapnik 1998).

    `decision_function` gives the machines' outputs.

    Examples
    --------
    >>> from dagsvm_lab import OneVsRestSVC
    >>> rest = OneVsRestSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"])
    >>> rest.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    def _coding_matrix(self, sample: Sample) -> np.ndarray:
        n = sample.n_classes
        return pair_code(2) if n == 2 else rest_code(n)

    def _make_graph(self) -> Ballot:
        return Ballot(self.machines_.code, largest)


class MaxWinsSVC(BankClassifier):
    """Every pair's machine casts a vote, the class with most votes wins.

    Friedman's Max Wins (1996), and LIBSVM's way. `decision_function` gives votes plus
    the summed margin squeezed into (-1/3, 1/3).

    Parameters
    ----------
    break_ties : bool, default=False
        False gives a tie to its first class, as LIBSVM does, True to the one with the
        largest score.
    scale_pairs : bool, default=False
        Standardise the inputs anew for every pair's machine, on its rows, as e1071's
        one-versus-one does.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What `decision_function` gives for more than two classes: a score for each
        class, or each machine's output.

    Examples
    --------
    >>> from dagsvm_lab import MaxWinsSVC
    >>> wins = MaxWinsSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> wins.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    break_ties: bool = False
    scale_pairs: bool = False
    decision_function_shape: Literal["ovr", "ovo"] = "ovr"

    def _make_graph(self) -> Ballot:
        code = self.machines_.code
        if self.break_ties:
            return Ballot(code, votes)
        return Ballot(code, votes, elect=won, by_sign=True)

    def predict(self, X) -> np.ndarray:
        """Predict the class of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': there"
                " are no scores of classes to break them by"
            )
        return super().predict(X)

    def decision_function(self, X) -> np.ndarray:
        """Score each class for each row, or give each machine's output.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes or n_machines) or (n_samples,)
            Votes plus the summed margin squeezed into (-1/3, 1/3); the answer has the
            largest score, but for ties of votes (`break_ties`). With
            decision_function_shape="ovo" the machines' outputs, positive for the first
            class of a pair. With two classes, the score of the second.
        """
        if self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            X = self._checked_rows(X)
            return self.machines_.decision(X, n_jobs=self.n_jobs)
        return super().decision_function(X)

    def tied(self, X) -> np.ndarray:
        """Tell the rows whose most votes go to more than one class.

        Returns
        -------
        tied : ndarray of bool of shape (n_samples,)
            Whether the row is tied.
        """
        counts = self._won(self._checked_rows(X))  # (rows, classes)
        most = counts.max(axis=1, keepdims=True)
        return (counts == most).sum(axis=1) > 1

    def _won(self, X: np.ndarray) -> np.ndarray:
        """Pairs won by each class, for checked rows."""
        return self._each(lambda f: won(f, self.machines_.code), X)


class AndGateSVC(MaxWinsSVC):
    """The class that every one of its machines accepts (Knerr 1990).

    Where there is none, the row is unclassified. `decision_function` gives the summed
    margin squeezed into (-1, 1), plus 2 for the accepted class.

    Parameters
    ----------
    unclassified_label : object, default=None
        Answer for unclassified rows; None gives the class with the largest summed
        margin instead.

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
        most = self._won(X).max(axis=1)
        return most < len(self.classes_) - 1

    def unclassified(self, X) -> np.ndarray:
        """Tell the rows that no class wins outright.

        Returns
        -------
        unclassified : ndarray of bool of shape (n_samples,)
            Whether every class is refused by one of its machines.
        """
        return self._unclassified(self._checked_rows(X))

    def _named(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        labels = super()._named(X, labels)
        if self.unclassified_label is None:
            return labels
        own = np.array([self.unclassified_label])
        if own.dtype.kind == labels.dtype.kind:
            kind = np.result_type(own, labels)
        else:
            kind = np.dtype(object)
        labels = labels.astype(kind)
        labels[self._unclassified(X)] = self.unclassified_label
        return labels


def accepted(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its summed margin, plus 2 where all its machines accept it.

    The margin is squeezed into (-1, 1).
    """
    margin = summed(f, code)
    unanimous = won(f, code) == code.shape[1] - 1
    return margin / (np.abs(margin) + 1) + 2.0 * unanimous
