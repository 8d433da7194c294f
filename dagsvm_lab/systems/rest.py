"""One-versus-rest: the i-th machine tells class i from all others, and the largest output wins (Vapnik 1998)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graphs import Ballot, largest
from ..machines import pair_code, rest_code
from .base import BankClassifier, Sample


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsRestSVC(BankClassifier):
    """One machine a class, against the rest; `decision_function` gives the machines' outputs.

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
