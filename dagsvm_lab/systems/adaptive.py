"""Adaptive DAGSVM (Yu, Rhuma, Naqvi and Chambers 2011): at every step, the most
separable pair that is left.

Separability is the squared distance between two class means in feature space (Eq. 6,
its within sums divided by n^2 as they must be):  DBTC = sum k(x1,x1)/n1^2 + sum
k(x2,x2)/n2^2 - 2 sum k(x1,x2)/(n1 n2).
"""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.model_selection import StratifiedKFold, check_cv

from ..graphs import DecisionGraph
from ..kernels import Kernel, resolve
from ..machines import pair_code, pair_index
from ..rows import prepared
from .base import BankClassifier
from .believable import expect
from .declared import Array, Bound, Folds, Positive, Seed
from .grids import Grid
from .sample import Sample

GAMMAS = 2.0 ** np.arange(-15, 4)
CS = 2.0 ** np.arange(-5, 16, 2)


def dbtc(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> float:
    """DBTC of two classes with rows A and B (Eq. 6, corrected)."""
    within = kernel(A, A).mean() + kernel(B, B).mean()
    return float(within - 2 * kernel(A, B).mean())


def dbtc_matrix(sample: Sample, kernels: list[Kernel]) -> np.ndarray:
    """DBTC between all classes, each pair under its own kernel: (classes, classes).

    `kernels` are in the order of `pair_code`.
    """
    means = _KernelMeans(sample, kernels)
    first, second = np.triu_indices(sample.n_classes, 1)
    found = []
    for i, j, kernel in zip(first, second, kernels, strict=True):
        within = means.within(kernel, i) + means.within(kernel, j)
        between = means.between(kernel, i, j)
        found.append(within - 2 * between)
    return squareform(found)


class _KernelMeans:
    """Means of kernel values between classes, a row of weight w counted as w rows."""

    def __init__(self, sample: Sample, kernels: list[Kernel]) -> None:
        self.X = sample.X
        self.rows: list[np.ndarray] = []  # of each class
        self.shares: list[np.ndarray] = []  # of each row in its class's weight
        for c in range(sample.n_classes):
            rows = np.flatnonzero(sample.codes == c)
            weight = sample.row_weight[rows]
            # a class without weight has means of 0
            total = weight.sum() or 1.0
            self.rows.append(rows)
            self.shares.append(weight / total)
        # to prepare all rows for a kernel pays where many pairs share it
        self.prepared = {}
        for kernel, uses in Counter(kernels).items():
            if uses > sample.n_classes:
                self.prepared[kernel] = prepared(self.X, kernel)
        self.inside: dict[tuple[Kernel, int], float] = {}

    def between(self, kernel: Kernel, a: int, b: int) -> float:
        """The mean of k(x, y) over rows x of class a and y of class b."""
        rows_a = self.rows[a]
        rows_b = self.rows[b]
        if kernel in self.prepared:
            K = self.prepared[kernel].block(rows_a, rows_b)
        else:
            K = kernel.between(self.X, rows_a, rows_b)
        return float(self.shares[a] @ K @ self.shares[b])

    def within(self, kernel: Kernel, c: int) -> float:
        """The mean of k(x, y) over rows x and y of class c, computed once."""
        if (kernel, c) not in self.inside:
            self.inside[kernel, c] = self.between(kernel, c, c)
        return self.inside[kernel, c]


def adaptive_graph(separability: np.ndarray) -> DecisionGraph:
    """The graph that tests the most separable pair, then pits each survivor against the
    class most separable from it; it grows as rows reach its states.
    """
    n = len(separability)
    duels = _Duels(separability)
    every = (1 << n) - 1
    n_pairs = n * (n - 1) // 2
    return DecisionGraph(
        (None, every), duels.rule, duels.members, n_classes=n, n_machines=n_pairs
    )


class _Duels:
    """Which pair is tested next.

    A state is (survivor, classes left as the bits of a number); at the root nobody has
    survived yet, and the survivor is None.
    """

    def __init__(self, separability: np.ndarray) -> None:
        self.n_classes = len(separability)
        itself = np.eye(self.n_classes, dtype=bool)
        off = np.where(itself, -np.inf, separability)
        # of each class, the others with the most separable first
        self.rivals = np.argsort(-off, axis=1, kind="stable").tolist()
        most_separable = int(np.argmax(off))
        self.first_pair = divmod(most_separable, self.n_classes)

    def rule(self, state: tuple[int | None, int]) -> tuple:
        """What stands at a state: a leaf, or a machine and the states of its sides."""
        survivor, left = state
        if survivor is None:
            return self._duel(*self.first_pair, left)
        if left == 1 << survivor:
            return "leaf", survivor
        rival = next(c for c in self.rivals[survivor] if (left >> c) & 1)
        return self._duel(survivor, rival, left)

    def _duel(self, i: int, j: int, left: int) -> tuple:
        i, j = sorted((i, j))
        without_i = left & ~(1 << i)
        without_j = left & ~(1 << j)
        machine = pair_index(i, j, self.n_classes)
        return "node", machine, (j, without_i), (i, without_j)

    def members(self, state: tuple[int | None, int]) -> np.ndarray:
        """The classes left at a state."""
        _, left = state
        # bits of a number of any length, the lowest first
        n_octets = -(-self.n_classes // 8)
        octets = np.frombuffer(left.to_bytes(n_octets, "little"), np.uint8)
        bits = np.unpackbits(octets, bitorder="little")
        return np.flatnonzero(bits)


def _n_right(says_1: np.ndarray, y: np.ndarray, splits: list) -> int:
    """How many held rows their folds' machines answer rightly."""
    n_right = 0
    for t, (_, held) in enumerate(splits):
        right = says_1[held, t] == y[held]
        n_right += np.count_nonzero(right)
    return n_right


@lru_cache(maxsize=8)
def _graph(n: int, separability: bytes) -> DecisionGraph:
    """The graph over a table of doubles; estimators with the same table share what has
    grown of it.
    """
    return adaptive_graph(np.frombuffer(separability).reshape(n, n))


def pair_values(value: Any, n: int, what: str) -> np.ndarray | None:
    """One value a pair, of a symmetric (n, n) table; None when `value` is no table."""
    if np.ndim(value) == 0:
        return None
    table = np.asarray(value, dtype=float)
    right_shape = table.shape == (n, n)
    if not right_shape or not np.allclose(table, table.T, equal_nan=True):
        raise ValueError(
            f"{what} must be one number or a symmetric table with {n} rows, one a class"
        )
    above_diagonal = np.triu_indices(n, 1)
    return table[above_diagonal]


class AdaptiveDAGSVC(BankClassifier):
    """A DAG whose next test is always the most separable pair left; C and gamma may
    differ from pair to pair.

    Parameters
    ----------
    C : float or array-like of shape (n_classes, n_classes), default=1.0
        Upper bound of the dual variables, or a symmetric table of the pairs' own, in
        the order of `classes_`.
    gamma : {"scale", "auto"}, float or array-like, default="scale"
        As C, for the kernel's factor.
    tune : {"dbtc", "cv"}, default=None
        Choose each pair's C and gamma: "dbtc" is the paper's recipe (gamma has the
        largest DBTC, C then the best validation accuracy), "cv" takes both by
        validation accuracy. Sample weights do not count in it.
    gammas : array-like, default=None
        Values that `tune` tries; None is 2^-15 to 2^3.
    Cs : array-like, default=None
        Values of C that `tune` tries; None is 2^-5 to 2^15 in steps of 4.
    cv : int or splitter, default=10
        Folds of `tune`; a number means at most that many, one row of the smaller class
        in each.
    separability : "own" or float, default="own"
        "own" measures each pair under its machine's own kernel; a number is the gamma
        that measures all pairs.
    random_state : int, RandomState or None, default=None
        Seed of the folds; None draws anew at every fit.

    Attributes
    ----------
    separability_ : ndarray of shape (n_classes, n_classes)
        DBTC between the classes.
    gamma_, C_ : ndarray of shape (n_classes, n_classes)
        What each pair's machine was trained with.

    Examples
    --------
    >>> from dagsvm_lab import AdaptiveDAGSVC
    >>> dag = AdaptiveDAGSVC(kernel="linear").fit([[0], [1], [4]], ["a", "b", "c"])
    >>> dag.predict([[0.4], [3.1]]).tolist(), dag.separability_[0].tolist()
    (['a', 'c'], [0.0, 1.0, 16.0])
    """

    C: Bound | Array = 1.0
    gamma: Literal["scale", "auto"] | Positive | Array = "scale"
    tune: Literal["dbtc", "cv"] | None = None
    gammas: Array | None = None
    Cs: Array | None = None
    cv: Folds = 10
    separability: Literal["own"] | Positive = "own"
    random_state: Seed = None

    _saved = ("separability_", "gamma_", "C_")

    def _before_training(self, sample: Sample) -> None:
        if self.tune is not None and sample.bank is not None:
            raise ValueError(
                "tune chooses C and gamma, but the machines of a bank have theirs: "
                "leave tune=None"
            )

    def _training_options(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        if self.tune is None:
            gamma = pair_values(self.gamma, sample.n_classes, "gamma")
            C = pair_values(self.C, sample.n_classes, "C")
        else:
            tuned = []  # (pairs, 2)
            for row in code:
                of_pair = np.flatnonzero(row[sample.codes])
                X = sample.X[of_pair]
                tuned.append(self._tuned(X, sample.codes[of_pair]))
            gamma, C = np.array(tuned).T
        options: dict[str, Any] = {}
        if C is not None:
            options["C"] = C
        if gamma is not None:
            options["kernels"] = [self._with_gamma(g) for g in gamma]
        return options

    def _after_training(self, sample: Sample) -> None:
        bank = self.machines_
        kernels = bank.kernels or [bank.kernel] * len(bank.code)
        self.gamma_ = squareform([kernel.gamma for kernel in kernels])
        self.C_ = squareform(bank.C)
        if self.separability != "own":
            shared = replace(kernels[0], gamma=float(self.separability))
            shared.check(sample.X)
            kernels = [shared] * len(kernels)
        key = ("dbtc", *kernels)
        if key not in sample.memo:
            sample.memo[key] = dbtc_matrix(sample, kernels)
        self.separability_ = sample.memo[key]

    def _with_gamma(self, gamma: float) -> Kernel:
        return resolve(self.kernel, float(gamma), self.degree, self.coef0)

    def _tuned(self, X: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
        """gamma and C of one pair."""
        gammas = GAMMAS
        if self.gammas is not None:
            gammas = np.asarray(self.gammas, dtype=float)
        kernels = [self._with_gamma(g) for g in gammas]
        y = (codes == codes.max()).astype(int)
        if self.tune == "dbtc":
            first = X[y == 0]
            second = X[y == 1]
            apart = [dbtc(kernel, first, second) for kernel in kernels]
            farthest = int(np.argmax(apart))
            gammas = [gammas[farthest]]
            kernels = [kernels[farthest]]
        Cs, accuracies = self._validation_curves(X, y, kernels)  # (gammas, Cs)
        best_gamma = int(accuracies.max(axis=1).argmax())
        best_C = accuracies[best_gamma].argmax()
        return gammas[best_gamma], Cs[best_C]

    def _validation_curves(
        self, X: np.ndarray, y: np.ndarray, kernels: list[Kernel]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The grid of C, and the share of rows that folds answer rightly.

        Labels are 0 or 1; the share is (kernels, values of C).
        """
        Cs = CS
        if self.Cs is not None:
            Cs = np.sort(np.asarray(self.Cs, dtype=float))
        splits = self._folds(y)
        trained = np.zeros((len(splits), len(y)), dtype=bool)
        for t, (fit, _) in enumerate(splits):
            trained[t, fit] = True
        sample = Sample(X, y, kernels[0], None, None)
        # a machine a fold: rows that the fold holds back have the label 0, and drop out
        banks = self._train_grid(
            sample,
            np.repeat(pair_code(2), len(splits), axis=0),
            kernels,
            Cs.tolist(),
            soft=lambda t, rows, s: s * trained[t, rows],
        )
        right = np.zeros((len(kernels), len(Cs)))
        for of_kernel, counts in zip(banks, right, strict=True):
            grid = Grid(sample, of_kernel, X)
            for k in range(len(Cs)):
                # pair_code has +1 at the first class: f < 0 says label 1
                says_1 = grid.outputs("held", k, True) < 0  # (rows, folds)
                counts[k] = _n_right(says_1, y, splits)
        return Cs, right / len(y)

    def _folds(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The splits of `cv`, at most one fold for each row of the smaller class."""
        cv = self.cv
        if isinstance(cv, int):
            smaller = int(np.bincount(y).min())
            n_folds = min(cv, smaller)
            cv = StratifiedKFold(n_folds, shuffle=True, random_state=self.random_state)
        splitter = check_cv(cv, y, classifier=True)
        return list(splitter.split(X=y, y=y))

    def _check_saved(self) -> None:
        n = len(self.classes_)
        for name in self._saved:
            expect(name, getattr(self, name), "f", (n, n))

    def _make_graph(self) -> DecisionGraph:
        return _graph(len(self.classes_), self.separability_.tobytes())
