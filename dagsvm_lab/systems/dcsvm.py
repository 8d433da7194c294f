"""DCSVM (Rathgamage Don and Iacob 2018, section 3): at every step the pair machine that
divides the classes best.

C_ij(l, i) is the share of class l's training rows that machine ij calls i (Definition
1); all of them form the all-predictions table (Definition 2), from which a machine's
purity, balance (Definition 3) and score (Definition 4) follow for any set of classes
that are still possible.
"""

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from ..graphs import Cost, DecisionGraph, costs
from .base import BankClassifier
from .believable import expect
from .sample import Sample

COMPARED_AT_ONCE = 1_000_000  # states x machines: some tens of MB


def dcsvm_graph(table: np.ndarray, threshold: float, prefer: str) -> DecisionGraph:
    """Build the DCSVM tree over an all-predictions table (Algorithm 1).

    Nodes with the same classes are one; they are made as rows reach them.
    """
    n_machines, n_classes = table.shape[:2]
    divider = _Divider(table, threshold, prefer)
    return DecisionGraph(
        np.ones(n_classes, dtype=bool).tobytes(),
        divider.rule,
        lambda state: np.flatnonzero(np.frombuffer(state, dtype=bool)),
        n_classes=n_classes,
        n_machines=n_machines,
        enter=lambda left: left.tobytes(),
        rank=lambda state: state.count(1),
    )


class _Divider:
    """The machine that divides a set of classes best; a state is the set, as bytes.

    A class undecided by a machine goes to both sides; the machine's own two classes go
    to their own sides (with training errors above the threshold, the paper's lists
    would otherwise not shrink). The machines of all states that wait are chosen at
    once: a product of (states, classes) with (classes, machines) counts every
    machine's classes on either side, from which Definition 3 follows.
    """

    def __init__(self, table: np.ndarray, threshold: float, prefer: str) -> None:
        self.n_classes = table.shape[1]
        self.prefer = prefer
        self.i, self.j = np.triu_indices(self.n_classes, 1)  # classes of the machines
        share_i = table[..., 0]  # C_ij(l, i): (machines, classes)
        share_j = table[..., 1]
        called_i = share_i > threshold
        called_j = share_j > threshold
        # chi_theta of Definition 3: (classes, machines)
        self.chi_i = called_i.T.astype(np.float32)
        self.chi_j = called_j.T.astype(np.float32)
        # the classes that go to either side: (machines, classes)
        of_i = np.arange(len(table)), self.i
        of_j = np.arange(len(table)), self.j
        self.to_i = called_i
        self.to_j = called_j
        self.to_i[of_i] = True
        self.to_i[of_j] = False
        self.to_j[of_i] = False
        self.to_j[of_j] = True
        score = (share_i[of_i] + share_j[of_j]) / 2  # Definition 4
        # equal shares are equal, whatever their last bit; 0 for the best score
        _, ranks = np.unique(-np.round(score, 12), return_inverse=True)
        self.score_rank = ranks.astype(float)
        self.chosen: dict[bytes, tuple] = {}
        self.waiting: list[bytes] = []  # states that a choice has led to

    def rule(self, state: bytes) -> tuple:
        """What stands at a state: a leaf, or a machine and the states of its sides."""
        if state.count(1) == 1:
            return "leaf", state.index(1)
        if state not in self.chosen:
            self._choose_waiting(state)
        return self.chosen[state]

    def _choose_waiting(self, state: bytes) -> None:
        """Choose the machines of this state and of all that wait."""
        due = []
        for one in dict.fromkeys([*self.waiting, state]):
            if one.count(1) > 1 and one not in self.chosen:
                due.append(one)
        self.waiting.clear()
        step = max(1, COMPARED_AT_ONCE // len(self.i))
        for start in range(0, len(due), step):
            self._choose(due[start : start + step])

    def _choose(self, states: list[bytes]) -> None:
        """Choose the machines of these states; the states that follow wait then."""
        flat = np.frombuffer(b"".join(states), dtype=bool)
        left = flat.reshape(-1, self.n_classes)  # (states, classes)
        best = self._badness(left).argmin(axis=1)  # the first of equals
        where_j = left & self.to_j[best]
        where_i = left & self.to_i[best]
        for k, state in enumerate(states):
            state_j = where_j[k].tobytes()
            state_i = where_i[k].tobytes()
            self.chosen[state] = ("node", int(best[k]), state_j, state_i)
            self.waiting += [state_j, state_i]

    def _badness(self, left: np.ndarray) -> np.ndarray:
        """How badly each machine divides the classes left, in the order that `prefer`
        wants: (states, machines), infinite for machines that may not be asked."""
        n = self.n_classes
        k = left.sum(axis=1, keepdims=True, dtype=float)  # classes left in each state
        as_i = left.astype(np.float32) @ self.chi_i
        as_j = left.astype(np.float32) @ self.chi_j
        purity = as_i + as_j - k  # P of Definition 3: small is good
        unbalance = np.maximum(as_i, as_j)  # k - B
        # one number in the place of a tuple: each part is less than the next one's unit
        division = purity * (n + 1.0) + unbalance
        if self.prefer == "score":
            order = self.score_rank * (n + 1) ** 2 + division
        else:
            order = division * len(self.i) + self.score_rank
        # a machine is asked only while both its classes are left
        may_be_asked = left[:, self.i] & left[:, self.j]
        order[~may_be_asked] = np.inf
        return order


class DCSVC(BankClassifier):
    """Divide and conquer: each step asks the machine that leaves fewest classes
    undecided.

    What it rules out is dropped, several classes at a step. It pays where classes fall
    wholly on one side of machines that were not trained on them: look at
    `predictions_table_`, whose *decided cells* (shares of 0 or 1) are 2 / n_classes
    where no machine says anything about other classes than its own. Notebook 04
    measures how that share moves with inputs and rows, and from where on it pays.

    Parameters
    ----------
    threshold : float, default=0.0
        The paper's theta: share of a class that may fall on the wrong side before the
        class counts as undecided.
    prefer : {"balance", "score"}, default="balance"
        "balance" orders machines by purity, balance, score; "score" by score, purity,
        balance; then the first.
    scale_pairs : bool, default=False
        Standardise the inputs anew for every pair's machine, on its rows, as e1071's
        one-versus-one does.

    Attributes
    ----------
    predictions_table_ : ndarray of shape (n_machines, n_classes, 2)
        Share of each class's training rows that a machine gives to its first and to its
        second class.

    Examples
    --------
    >>> from dagsvm_lab import DCSVC
    >>> dc = DCSVC(kernel="linear").fit([[0], [1], [4], [5]], ["a", "b", "c", "d"])
    >>> labels, cost = dc.predict_with_cost([[0.4], [4.9]])
    >>> labels.tolist(), cost.binary_decisions.tolist()
    (['a', 'd'], [2, 2])
    """

    threshold: Annotated[float, Interval(Real, 0, 0.5, closed="left")] = 0.0
    prefer: Literal["balance", "score"] = "balance"
    scale_pairs: bool = False

    _saved = ("predictions_table_",)

    def _after_training(self, sample: Sample) -> None:
        one_hot = np.eye(len(self.classes_))[sample.codes]
        belongs = one_hot * sample.row_weight[:, None]  # (rows, classes)
        weight = belongs.sum(axis=0)  # (classes,)
        counts = weight > 0
        f = self._training_outputs(sample, by_sign=True)
        called_first = (f >= 0).T.astype(float)  # (machines, rows)
        share = called_first @ belongs / np.where(counts, weight, 1.0)
        # two sums of real-valued weights differ by rounding, which may pass 1
        share = np.clip(share, 0.0, 1.0)
        # a class without weight is on neither side
        self.predictions_table_ = np.stack([share, counts - share], axis=2)

    def with_threshold(self, threshold: float, prefer: str | None = None) -> Self:
        """Copy this fitted estimator with another threshold over the same machines.

        Parameters
        ----------
        threshold : float
            As the parameter `threshold`.
        prefer : {"balance", "score"}, default=None
            As the parameter `prefer`; None leaves it.

        Returns
        -------
        other : object
            The copy; nothing is trained again.
        """
        other = self._variant(threshold=threshold, prefer=prefer or self.prefer)
        other.graph_ = other._make_graph()
        return other

    def sweep(
        self, X, thresholds: Iterable[float]
    ) -> Iterator[tuple[float, np.ndarray, Cost]]:
        """Answer the rows of X at several thresholds, the machines being asked only
        once for all of them.

        Parameters
        ----------
        thresholds : iterable of float
            Values of theta, each a share from 0 up to .5.

        Yields
        ------
        threshold, labels, cost
            As `with_threshold(threshold).predict_with_cost(X)` returns the last two.

        Examples
        --------
        >>> dc = DCSVC(kernel="linear").fit([[0], [1], [4], [5]], ["a", "b", "c", "d"])
        >>> for theta, _, cost in dc.sweep([[0.4]], (0.0, 0.2)):
        ...     print(theta, cost.binary_decisions.tolist())
        0.0 [2]
        0.2 [2]
        """
        f = self.machines_.decision(self._checked_rows(X), n_jobs=self.n_jobs)
        for threshold in thresholds:
            graph = self.with_threshold(threshold).graph_
            labels, paths, _ = graph.run(f)
            cost = costs(paths, self.machines_.coef)
            yield threshold, self.classes_[labels], cost

    def _check_saved(self) -> None:
        shape = (*self.machines_.code.shape, 2)
        expect("predictions_table_", self.predictions_table_, "f", shape, 0, 1)

    def _make_graph(self) -> DecisionGraph:
        return dcsvm_graph(self.predictions_table_, self.threshold, self.prefer)
