"""The flat graph: all machines of a coding matrix asked; votes or margins decide."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .evaluate import NeedsBlocks, Walker
from .graphs import Graph
from .machines import entries

Decode = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Code(np.ndarray):
    """A coding matrix that keeps its words, (classes x machines) and sparse.

    Beside them it keeps how many machines have each class at -1.
    """

    def __array_wrap__(self, out, context=None, return_scalar=False):
        return np.asarray(out)[()]  # what is computed from a code is no code

    @cached_property
    def words(self) -> tuple[sparse.csr_matrix, np.ndarray]:
        code = np.asarray(self)
        machine, own_class = entries(code)
        values = code[machine, own_class].astype(float)
        words = sparse.csr_matrix((values, (own_class, machine)), shape=self.T.shape)
        against = words.minimum(0).sum(axis=1)
        return words, -np.asarray(against)


@dataclass(eq=False)
class Ballot(Graph):
    """The flat graph: all machines are asked, and `decode(f, code)` scores each class.

    The largest score of `elect` (by default of `decode`) wins, the first of equals.
    """

    code: np.ndarray
    decode: Decode
    elect: Decode | None = None
    by_sign: bool = False  # whether the signs of f alone settle the election

    asks_all = True

    def __post_init__(self) -> None:
        self.code = np.asarray(self.code).view(Code)

    @property
    def n_machines(self) -> int:
        """Number of machines, all of which are asked."""
        return len(self.code)

    @property
    def machines_used(self) -> np.ndarray:
        """All machines."""
        return np.arange(len(self.code))

    @property
    def expected_steps(self) -> int:
        """Machines that a row meets."""
        return len(self.code)

    def trace(self, asked, start=None, scored: bool = True):
        """Labels, paths and scores of an evaluator's rows."""
        labels, f = self._elected(asked)
        scores = self.decode(f, self.code) if scored else None
        n, n_machines = f.shape
        # every row meets every machine: a full matrix in sparse form
        ones = np.ones(f.size, dtype=np.int64)
        columns = np.tile(np.arange(n_machines), n)
        ends = np.arange(n + 1) * n_machines
        paths = sparse.csr_matrix((ones, columns, ends), shape=f.shape)
        return labels, paths, scores

    def answer(self, asked, start=None) -> np.ndarray:
        return self._elected(asked)[0]

    def _elected(self, asked) -> tuple[np.ndarray, np.ndarray]:
        """Labels and outputs of an evaluator's rows; notes those in doubt."""
        f, slack = asked.ask_every()  # (rows, machines), both; slack may be None
        elect = self.elect or self.decode
        scores = elect(f, self.code)  # (rows, classes)
        labels = np.argmax(scores, axis=1)
        if slack is None:
            return labels, f
        # rows whose answer rounding might change: if signs alone decide, those with an
        # output near 0, else all; most of them are certain after all
        near = (np.abs(f) <= slack).any(axis=1)
        in_doubt = near if self.by_sign else np.ones(len(f), dtype=bool)
        for k in np.flatnonzero(in_doubt).tolist():
            label = self._certain(f[k], slack[k], scores[k])
            if label is None:
                label = self._certain_closer(asked.closer(k))
            if label is None:
                asked.unsure[k] = True
            else:
                labels[k] = label
        return labels, f

    def walk(self, walker: Walker, start: int = 0) -> int:
        f, slack = walker.ask_every()
        elect = self.elect or self.decode
        scores = elect(f[None], self.code)[0]
        label = self._certain(f, slack, scores)
        if label is None:
            label = self._certain_closer(walker.closer())
        if label is None:
            raise NeedsBlocks("rounding might change the answer")
        return label

    def _certain_closer(self, outputs: tuple | None) -> int | None:
        """As `_certain`, of outputs in float64 and their bounds, if there are any."""
        if outputs is None:
            return None
        f, slack = outputs
        elect = self.elect or self.decode
        scores = elect(f[None], self.code)[0]
        return self._certain(f, slack, scores)

    def _certain(
        self, f: np.ndarray, slack: np.ndarray, scores: np.ndarray
    ) -> int | None:
        """The winner of one row, if it is the same for all outputs within `slack`."""
        best = int(scores.argmax())
        open_ = np.abs(f) <= slack  # machines whose sign is not sure
        # the most that a rival can have, and the least for the best
        if not self.by_sign:
            apart = slack.sum()
            reach = scores + apart
            reach[best] = scores[best] - (np.inf if open_.any() else apart)
        elif open_.any():
            code = np.asarray(self.code)[open_]  # (open machines, classes)
            prefers_plus = f[open_] >= 0
            # 1 for the class that wins as the sign stands, -1 for one that might win
            side = np.where(prefers_plus[:, None], code, -code)
            reach = scores + (side < 0).sum(axis=0)
            reach[best] = scores[best] - (side[:, best] > 0).sum()
        else:
            return best
        return best if reach.argmax() == best else None


def _words(code: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
    """What a `Code` keeps beside its entries, of any coding matrix."""
    if not isinstance(code, Code):
        code = np.asarray(code).view(Code)
    return code.words


def largest(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the output of its own machine (of two classes, of the one)."""
    if code.shape[1] == 2:
        return np.column_stack([f[:, 0], -f[:, 0]])
    return f @ (code == 1)


def won(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: the number of machines that it wins."""
    words, against = _words(code)
    plus = (f >= 0).T.astype(float)  # (machines, rows)
    return (words @ plus + against).T


def summed(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: its margin summed over its machines.

    The order of the sum does not depend on the batch.
    """
    words, _ = _words(code)
    return (words @ f.T).T


def votes(f: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Score of a class: machines it wins, plus its margin squeezed into (-1/3, 1/3)."""
    if code.shape[1] == 2:
        return largest(f, code)
    margin = summed(f, code)
    return won(f, code) + margin / (3 * (np.abs(margin) + 1))
