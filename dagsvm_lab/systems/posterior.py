"""Posterior-probability SVM: Tao et al. 2005, Gönen et al. 2008, Wang et al. 2011.

A machine learns soft labels y = 2 P(+|x) - 1 (Wang et al., Eq. 2), not hard ones:

    min 1/2 w.w + C sum_j xi_j
    with  y_j (w.x_j + b) >= y_j^2 - y_j^2 xi_j,   xi_j >= 0                     (Eq. 1)

Its dual is the common one (solvers/dual.py) with s = sign y, p = |y|, u = C / |y|. A
sample with y = 0 has the constraint 0 >= 0 and drops out. P(+|x) is estimated from the
samples around x (neighbourhood.py): from Gaussian windows (Tao et al. 2005, who
proposed the machine for two classes) or from the k nearest samples (Gönen, Tanuğur and
Alpaydın 2008, who extended it to several classes; k = 11 in Wang et al. 2011).
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from ..ballots import Ballot, largest, votes, won
from ..machines import pair_code, rest_code
from .base import BankClassifier
from .declared import Count, Positive
from .neighbourhood import neighbourhood
from .sample import Sample

LABELS = {  # what a machine learns for a sample of sign s whose soft label is y (Eq. 2)
    "hard": lambda y, s: s,
    "soft": lambda y, s: y,
    "sign": lambda y, s: np.sign(y),
    "agreeing": lambda y, s: s * np.maximum(s * y, 0.0),
    "own": lambda y, s: (s + y) / 2,
}
Labels = Literal["hard", "soft", "sign", "agreeing", "own"]


class SoftClassifier(BankClassifier):
    """A system whose machines may learn soft labels.

    Parameters
    ----------
    labels : {"hard", "soft", "own", "sign", "agreeing"}, default="soft"
        What a machine learns of a sample with the sign s: "hard" s itself, an ordinary
        SVM; "soft" the label y of Wang et al. 2011, Eq. 2; "own" (s + y) / 2, that is
        s P(s|x), the sample's own sign weakened by its neighbours, never reversed;
        "sign" the sign of y; "agreeing" y, without samples that their neighbours
        contradict.
    n_neighbors : int, default=11
        k of the k-NN posterior, the point itself included; 1 gives the ordinary SVM.
    among : {"pair", "all"}, default="pair"
        Look for neighbours within the machine's classes, or among all classes.
    """

    labels: Labels = "soft"
    n_neighbors: Count = 11
    among: Literal["pair", "all"] = "pair"

    _sparse: ClassVar[bool] = False
    bandwidth = None  # where it is no parameter

    @property
    def _learnt(self) -> str:
        """What the machines learn, as a value of `labels`."""
        return self.labels

    @property
    def _label_kind(self) -> str:
        if self._learnt == "hard":
            return "hard"
        source = f"{self.n_neighbors} nearest among {self.among}"
        if self.bandwidth:
            source = f"windows of width {self.bandwidth:g}"
        return f"soft: {source}, read as {self._learnt}"

    def _training_options(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        if self._learnt == "hard":
            return {}
        return {"soft": self._soft_labels(sample, code), "labels": self._label_kind}

    def _soft_labels(self, sample: Sample, code: np.ndarray) -> Callable:
        """Make the function that gives machine t its labels for rows of signs s."""
        near = neighbourhood(sample, self.n_neighbors, self.bandwidth)
        learnt = LABELS[self._learnt]

        def soft(t: int, rows: np.ndarray, sign: np.ndarray) -> np.ndarray:
            p = near.posterior(code[t], rows, self.among)
            y = 2 * p - 1  # Eq. 2
            return learnt(y, sign)

        return soft


class PosteriorSVC(SoftClassifier):
    """Posterior-probability machines combined one-vs-one (votes) or one-vs-rest.

    With the same C and gamma, labels="own" is more accurate than "soft" on Letter (by
    3 points) and MNIST (by 1.7), where neighbours are wrong more often than the labels;
    notebook 03 has the table.

    Parameters
    ----------
    strategy : {"ovo", "ovr"}, default="ovo"
        One-vs-one, decided by votes, or one-vs-rest, by the largest output: the OAO and
        OAA of Wang et al. 2011.
    bandwidth : float, default=None
        Width of Gaussian windows; a number replaces the k-NN estimate by the window
        estimate.

    Examples
    --------
    >>> from dagsvm_lab import PosteriorSVC
    >>> X, y = [[0], [1], [2], [5], [6], [7]], [0, 0, 0, 1, 1, 1]
    >>> PosteriorSVC(n_neighbors=3).fit(X, y).predict([[1.5], [5.5]])
    array([0, 1])
    """

    strategy: Literal["ovo", "ovr"] = "ovo"
    bandwidth: Positive | None = None

    def _coding_matrix(self, sample: Sample) -> np.ndarray:
        n = sample.n_classes
        if self.strategy == "ovo" or n == 2:
            return pair_code(n)
        return rest_code(n)

    def _make_graph(self) -> Ballot:
        code = self.machines_.code
        if self.strategy == "ovo":
            return Ballot(code, votes, won, by_sign=True)
        return Ballot(code, largest, None, by_sign=False)
