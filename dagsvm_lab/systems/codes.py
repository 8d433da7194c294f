"""Error-correcting output codes over a bank (Dietterich and Bakiri 1995; Allwein, Schapire and Singer 2000)."""

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from ..ballots import Ballot
from .base import BankClassifier, Sample
from .declared import Array, Count, Seed

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


class ECOCSVC(BankClassifier):
    """Machines between groups of classes; the class whose word is nearest to their answers wins.

    Parameters
    ----------
    code : {"dense", "sparse"} or array-like of shape (n_machines, n_classes), default="dense"
        A random code, or a matrix of -1, 0, +1, one row a machine.
    decoding : {"loss", "hamming"}, default="loss"
        Measure the distance to a word by hinge loss, or by Hamming distance of the signs.
    code_size : int, default=None
        Machines of a random code; None gives ceil(10 log2 N) dense or ceil(15 log2 N) sparse ones.
    random_state : int, RandomState or None, default=None
        Seed of the random code; None draws anew at every fit.

    Examples
    --------
    >>> from dagsvm_lab import ECOCSVC
    >>> code = [[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, -1]]
    >>> ECOCSVC(gamma=1, code=code).fit([[0], [1], [4]], ["a", "b", "c"]).predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    code: Literal["dense", "sparse"] | Array = "dense"
    decoding: Literal["loss", "hamming"] = "loss"
    code_size: Count | None = None
    random_state: Seed = None

    def _code(self, sample: Sample) -> np.ndarray:
        n = sample.n_classes
        if isinstance(self.code, str):
            sparse = self.code == "sparse"
            size = self.code_size or int(np.ceil((15 if sparse else 10) * np.log2(n)))
            given = None if sample.bank is None else sample.bank.code
            if given is not None and given.shape == (size, n) and (sparse or given.all()):
                return given  # any draw of this kind
            return random_code(n, size, sparse, self.random_state)
        code = np.asarray(self.code, dtype=np.int8)
        if code.ndim != 2 or code.shape[1] != n or not np.isin(code, (-1, 0, 1)).all():
            raise ValueError(f"code must be a matrix of -1, 0, +1 with {n} columns, one a class")
        return code

    def _make_graph(self) -> Ballot:
        loss = self.decoding == "loss"
        return Ballot(self.machines_.code, hinge if loss else hamming, by_sign=not loss)
