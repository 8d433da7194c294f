"""Error-correcting output codes over a bank.

Dietterich and Bakiri 1995; Allwein, Schapire and Singer 2000.
"""

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from ..ballots import Ballot
from .base import BankClassifier
from .declared import Array, Count, Seed
from .sample import Sample

CANDIDATES = 200  # random codes; the one with the best separated words is kept


def random_code(
    n_classes: int, n_machines: int, sparse: bool, random_state: Any = None
) -> np.ndarray:
    """Coding matrix (n_machines, n_classes) of random words.

    They are of -1 and +1, or of -1, 0 and +1 with half zeros if `sparse`. Of many
    draws, the one whose two nearest class words are farthest apart is kept; every
    machine has both signs.
    """
    rng = check_random_state(random_state)
    best = None
    farthest = -np.inf
    for _ in range(CANDIDATES):
        code = _drawn_code(rng, n_classes, n_machines, sparse)
        nearest = _nearest(code)
        if nearest > farthest:
            best = code
            farthest = nearest
    return best


def _drawn_code(rng, n_classes: int, n_machines: int, sparse: bool) -> np.ndarray:
    """A code of random entries, whose every machine has both signs."""
    values, chances = [-1, 1], [0.5, 0.5]
    if sparse:
        values, chances = [-1, 0, 1], [0.25, 0.5, 0.25]
    drawn = rng.choice(values, size=(n_machines, n_classes), p=chances)
    code = drawn.astype(np.int8)
    # a machine without both signs is given them, at two classes
    has_plus = (code == 1).any(axis=1)
    has_minus = (code == -1).any(axis=1)
    for t in np.flatnonzero(~(has_plus & has_minus)):
        pair = rng.choice(n_classes, 2, replace=False)
        code[t, pair] = 1, -1
    return code


def _nearest(code: np.ndarray) -> float:
    """The distance between the two nearest class words."""
    words = code.T.astype(float)  # (classes, machines)
    distance = (len(code) - words @ words.T) / 2
    np.fill_diagonal(distance, np.inf)  # of a word to itself
    return distance.min()


def hamming(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: minus the Hamming distance of the signs of f to its word.

    A 0 in a word counts 1/2.
    """
    signs = np.where(f >= 0, 1.0, -1.0)
    # agreements less disagreements: (rows, classes)
    agreement = signs @ code.astype(float)
    return (agreement - len(code)) / 2


def hinge(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: minus the machines' hinge loss against its word, summed.

    A machine's loss is max(0, 1 - entry of the word x output).
    """
    scores = []
    for word in code.T:
        loss = np.maximum(0.0, 1.0 - f * word)  # (rows, machines)
        scores.append(-loss.sum(axis=1))
    return np.stack(scores, axis=1)


class ECOCSVC(BankClassifier):
    """Machines between groups of classes: error-correcting output codes.

    The class whose word is nearest to the machines' answers wins.

    Parameters
    ----------
    code : {"dense", "sparse"} or array-like of shape (n_machines, n_classes), \
default="dense"
        A random code, or a matrix of -1, 0, +1, one row a machine.
    decoding : {"loss", "hamming"}, default="loss"
        Measure the distance to a word by hinge loss, or by Hamming distance of the
        signs.
    code_size : int, default=None
        Machines of a random code; None gives ceil(10 log2 N) dense or
        ceil(15 log2 N) sparse ones.
    random_state : int, RandomState or None, default=None
        Seed of the random code; None draws anew at every fit.

    Examples
    --------
    >>> from dagsvm_lab import ECOCSVC
    >>> code = [[1, -1, -1], [-1, 1, -1], [-1, -1, 1], [1, 1, -1]]
    >>> ecoc = ECOCSVC(gamma=1, code=code).fit([[0], [1], [4]], ["a", "b", "c"])
    >>> ecoc.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    code: Literal["dense", "sparse"] | Array = "dense"
    decoding: Literal["loss", "hamming"] = "loss"
    code_size: Count | None = None
    random_state: Seed = None

    def _coding_matrix(self, sample: Sample) -> np.ndarray:
        if isinstance(self.code, str):
            return self._drawn(sample)
        n = sample.n_classes
        code = np.asarray(self.code, dtype=np.int8)
        is_table = code.ndim == 2 and code.shape[1] == n
        if not is_table or not np.isin(code, (-1, 0, 1)).all():
            raise ValueError(
                f"code must be a matrix of -1, 0, +1 with {n} columns, one a class"
            )
        return code

    def _drawn(self, sample: Sample) -> np.ndarray:
        """A random code; over a bank whose code might have been drawn, that one."""
        n = sample.n_classes
        sparse = self.code == "sparse"
        a_bit = 15 if sparse else 10  # machines, for each bit of a class's number
        size = self.code_size or int(np.ceil(a_bit * np.log2(n)))
        if sample.bank is not None:
            given = sample.bank.code
            if given.shape == (size, n) and (sparse or given.all()):
                return given
        return random_code(n, size, sparse, self.random_state)

    def _make_graph(self) -> Ballot:
        if self.decoding == "loss":
            return Ballot(self.machines_.code, hinge)
        return Ballot(self.machines_.code, hamming, by_sign=True)
