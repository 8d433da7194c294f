"""Error-correcting output codes over a bank (Dietterich and Bakiri 1995; Allwein, Schapire and Singer 2000)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..graphs import Ballot
from .base import BankClassifier

CANDIDATES = 200  # random codes of which the one with the best separated words is kept


def random_code(n_classes: int, n_machines: int, sparse: bool, random_state: Any = None) -> np.ndarray:
    """Coding matrix (n_machines, n_classes) of random words in {-1, +1}, or {-1, 0, +1} with half zeros when sparse.

    Of many draws, the one whose two nearest class words are farthest apart is kept; every machine has both signs.
    """
    rng = check_random_state(random_state)
    values, chances = ([-1, 0, 1], [0.25, 0.5, 0.25]) if sparse else ([-1, 1], [0.5, 0.5])
    best, apart = None, -np.inf
    upper = np.triu_indices(n_classes, 1)
    for _ in range(CANDIDATES):
        code = rng.choice(values, size=(n_machines, n_classes), p=chances).astype(np.int8)
        idle = ~((code == 1).any(axis=1) & (code == -1).any(axis=1))
        for t in np.flatnonzero(idle):
            code[t, rng.choice(n_classes, 2, replace=False)] = 1, -1
        words = code.T.astype(float)
        distance = (n_machines - words @ words.T) / 2
        if distance[upper].min() > apart:
            best, apart = code, distance[upper].min()
    return best


def hamming(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: minus the Hamming distance of the signs of f to its word, where a 0 counts 1/2."""
    return (np.where(f >= 0, 1.0, -1.0) @ code.astype(float) - len(code)) / 2


def hinge(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: minus the summed hinge loss max(0, 1 - word x output) of the machines against its word."""
    return -np.stack([np.maximum(0.0, 1.0 - f * word).sum(axis=1) for word in code.T], axis=1)


@dataclass(kw_only=True, eq=False, repr=False)
class ECOCSVC(BankClassifier):
    """Machines between groups of classes; the class whose word is nearest to their answers wins.

    Parameters
    ----------
    code : "dense", "sparse", or a matrix (n_machines, n_classes) of -1, 0, +1.
    decoding : "loss" (hinge) or "hamming".
    code_size : machines of a random code; None gives ceil(10 log2 N) dense or ceil(15 log2 N) sparse ones.
    random_state : seeds the random code.

    Else as in `BankClassifier`.
    """

    code: Any = "dense"
    decoding: str = "loss"
    code_size: int | None = None
    random_state: Any = None

    def _code(self, n_classes: int) -> np.ndarray:
        if isinstance(self.code, str):
            if self.code not in ("dense", "sparse"):
                raise ValueError(f"code must be 'dense', 'sparse' or a matrix, not {self.code!r}")
            sparse = self.code == "sparse"
            size = self.code_size or int(np.ceil((15 if sparse else 10) * np.log2(n_classes)))
            return random_code(n_classes, size, sparse, self.random_state)
        code = np.asarray(self.code, dtype=np.int8)
        if code.ndim != 2 or code.shape[1] != n_classes or not np.isin(code, (-1, 0, 1)).all():
            raise ValueError(f"code must be a matrix of -1, 0, +1 with {n_classes} columns, one a class")
        return code

    def _make_graph(self) -> Ballot:
        if self.decoding not in ("loss", "hamming"):
            raise ValueError(f"decoding must be 'loss' or 'hamming', not {self.decoding!r}")
        return Ballot(self.machines_.code, hinge if self.decoding == "loss" else hamming)
