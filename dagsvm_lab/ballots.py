"""The flat graph: every machine of a coding matrix is asked, then votes or margins decide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .graphs import Graph
from .machines import entries
from .outputs import Unsure, Walker

Decode = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Code(np.ndarray):
    """A coding matrix that keeps its words (classes x machines, sparse) and how many machines have each class at -1."""

    def __array_wrap__(self, out, context=None, return_scalar=False):
        return np.asarray(out)[()]  # what is computed from a code is no code

    @cached_property
    def words(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        at = entries(np.asarray(self))
        words = sparse.csr_matrix((np.asarray(self)[at].astype(float), at[::-1]), shape=self.T.shape)
        return words, -np.asarray(words.minimum(0).sum(axis=1))


@dataclass(eq=False)
class Ballot(Graph):
    """The flat graph: all machines of the coding matrix `code` are asked, and `decode(f, code)` scores each class.

    The largest score of `elect` (by default of `decode`) wins, the first of equals.
    """

    code: np.ndarray
    decode: Decode
    elect: Decode | None = None
    by_sign: bool = False  # whether the signs of f alone settle the election

    def __post_init__(self) -> None:
        self.code = np.asarray(self.code).view(Code)

    n_machines = property(lambda self: len(self.code), doc="Number of machines, all of which are asked.")
    machines_used = property(lambda self: np.arange(len(self.code)), doc="All machines.")

    def run(self, f: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Labels, paths and scores of a batch whose machine outputs are `f`."""
        scores = self.decode(f, self.code)
        labels = np.argmax(scores if self.elect is None else self.elect(f, self.code), axis=1)
        columns, starts = np.tile(np.arange(f.shape[1]), len(f)), np.arange(len(f) + 1) * f.shape[1]
        return labels, sparse.csr_matrix((np.ones(f.size, dtype=np.int64), columns, starts), shape=f.shape), scores

    def labels(self, f: np.ndarray) -> np.ndarray:
        return np.argmax((self.elect or self.decode)(f, self.code), axis=1)

    def walk(self, walker: Walker) -> int:
        """The label of one row; raises `Unsure` where rounding might change it and blocks must decide."""
        f, slack = walker.ask_all()
        scores = (self.elect or self.decode)(f[None], self.code)[0]
        best, open_ = int(scores.argmax()), np.abs(f) <= slack
        if self.by_sign:
            # the most that a rival can have, and the least for the best, whatever the open machines say
            side = np.asarray(self.code)[open_]
            side *= np.where(f[open_] >= 0, np.int8(1), np.int8(-1))[:, None]
            reach = scores + (side < 0).sum(axis=0)
            reach[best] = scores[best] - (side[:, best] > 0).sum()
        else:
            reach = scores + slack.sum()
            reach[best] = scores[best] - (np.inf if open_.any() else slack.sum())
        if reach.argmax() != best:
            raise Unsure("rounding might change the answer")
        return best


def _words(code: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
    return (code if isinstance(code, Code) else np.asarray(code).view(Code)).words


def largest(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the output of its own machine (with two classes one machine speaks for both)."""
    return np.column_stack([f[:, 0], -f[:, 0]]) if code.shape[1] == 2 else f @ (code == 1)


def won(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the number of machines that it wins."""
    words, against = _words(code)
    return (words @ (f >= 0).T.astype(float) + against).T


def summed(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its margin summed over its machines, in an order that does not depend on the batch."""
    return (_words(code)[0] @ f.T).T


def votes(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the machines it wins, plus its summed margin squeezed into (-1/3, 1/3)."""
    if code.shape[1] == 2:
        return largest(f, code)
    margin = summed(f, code)
    return won(f, code) + margin / (3 * (np.abs(margin) + 1))
