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
from .declared import Array, Bound, Folds, Positive, Seed
from .grids import Grid
from .sample import Sample
from .stored import expect

GAMMAS = 2.0 ** np.arange(-15, 4)
CS = 2.0 ** np.arange(-5, 16, 2)


def dbtc(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> float:
    """DBTC of two classes with rows A and B (Eq. 6, corrected)."""
    return float(kernel(A, A).mean() + kernel(B, B).mean() - 2 * kernel(A, B).mean())


def dbtc_matrix(sample: Sample, kernels: list[Kernel]) -> np.ndarray:
    """DBTC between all classes, each pair under its own kernel: (classes, classes).

    `kernels` are in the order of `pair_code`.
    """
    means = _KernelMeans(sample, kernels)
    found = []
    for i, j, kernel in zip(
        *np.triu_indices(sample.n_classes, 1), kernels, strict=True
    ):
        within = means.within(kernel, i) + means.within(kernel, j)
        found.append(within - 2 * means.between(kernel, i, j))
    return squareform(found)


class _KernelMeans:
    """Means of kernel values between classes, a row of weight w counted as w rows."""

    def __init__(self, sample: Sample, kernels: list[Kernel]) -> None:
        self.X = sample.X
        self.rows = [np.flatnonzero(sample.codes == c) for c in range(sample.n_classes)]
        weights = [sample.row_weight[rows] for rows in self.rows]
        # a class without weight has means of 0
        self.shares = [w / (w.sum() or 1.0) for w in weights]
        uses = Counter(kernels)
        often = [kernel for kernel in uses if uses[kernel] > sample.n_classes]
        self.prepared = {kernel: prepared(self.X, kernel) for kernel in often}
        self.inside: dict[tuple[Kernel, int], float] = {}

    def between(self, kernel: Kernel, a: int, b: int) -> float:
        """The mean of k(x, y) over rows x of class a and y of class b."""
        if kernel in self.prepared:
            block = self.prepared[kernel].block(self.rows[a], self.rows[b])
        else:
            block = kernel.between(self.X, self.rows[a], self.rows[b])
        return float(self.shares[a] @ block @ self.shares[b])

    def within(self, kernel: Kernel, c: int) -> float:
        """The mean of k(x, y) over rows x and y of class c, computed once."""
        if (kernel, c) not in self.inside:
            self.inside[kernel, c] = self.between(kernel, c, c)
        return self.inside[kernel, c]


def adaptive_graph(separability: np.ndarray) -> DecisionGraph:
    """The graph that tests the most separable pair, then pits each survivor against the
    class most separable from it.

    A state is (survivor, classes left as the bits of a number); the graph grows as rows
    reach it.
    """
    n = len(separability)
    off = np.where(np.eye(n, dtype=bool), -np.inf, separability)
    # of each class, the others with the most separable first
    rivals = np.argsort(-off, axis=1, kind="stable").tolist()
    first_pair = np.unravel_index(np.argmax(off), off.shape)

    def duel(i: int, j: int, left: int) -> tuple:
        i, j = sorted((i, j))
        j_wins = (j, left & ~(1 << i))
        i_wins = (i, left & ~(1 << j))
        return "node", pair_index(i, j, n), j_wins, i_wins

    def rule(state: tuple[int | None, int]) -> tuple:
        survivor, left = state
        if survivor is None:
            return duel(*map(int, first_pair), left)
        if left == 1 << survivor:
            return "leaf", survivor
        rival = next(c for c in rivals[survivor] if left >> c & 1)
        return duel(survivor, rival, left)

    def members(state: tuple[int | None, int]) -> np.ndarray:
        # bits of a number of any length, the lowest first
        left = state[1].to_bytes(-(-n // 8), "little")
        octets = np.frombuffer(left, np.uint8)
        return np.flatnonzero(np.unpackbits(octets, bitorder="little"))

    root = (None, (1 << n) - 1)
    return DecisionGraph(root, rule, members, n_classes=n, n_machines=n * (n - 1) // 2)


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
    if table.shape != (n, n) or not np.allclose(table, table.T, equal_nan=True):
        raise ValueError(
            f"{what} must be one number or a symmetric table with {n} rows, one a class"
        )
    return table[np.triu_indices(n, 1)]


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
        validation accuracy.
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
            both = [np.flatnonzero(row[sample.codes]) for row in code]
            tuned = [self._tuned(sample.X[rows], sample.codes[rows]) for rows in both]
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
        gammas = GAMMAS if self.gammas is None else np.asarray(self.gammas, dtype=float)
        y = (codes == codes.max()).astype(int)
        if self.tune == "dbtc":
            first = X[y == 0]
            second = X[y == 1]
            apart = [dbtc(self._with_gamma(g), first, second) for g in gammas]
            gammas = [gammas[int(np.argmax(apart))]]
        kernels = [self._with_gamma(g) for g in gammas]
        Cs, accuracies = self._validation_curves(X, y, kernels)
        best = int(accuracies.max(axis=1).argmax())
        return gammas[best], Cs[accuracies[best].argmax()]

    def _validation_curves(
        self, X: np.ndarray, y: np.ndarray, kernels: list[Kernel]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The grid of C, and the share of rows that folds answer rightly.

        Labels are 0 or 1; the share is (kernels, values of C).
        """
        Cs = np.sort(CS if self.Cs is None else np.asarray(self.Cs, dtype=float))
        splits = self._folds(y)
        trained = np.array([np.isin(np.arange(len(y)), fit) for fit, _ in splits])
        sample = Sample(X, y, kernels[0], None, None)
        right = np.zeros((len(kernels), len(Cs)))
        # a machine a fold: rows that the fold holds back have the label 0, and drop out
        banks = self._train_grid(
            sample,
            np.repeat(pair_code(2), len(splits), axis=0),
            kernels,
            Cs.tolist(),
            soft=lambda t, rows, s: s * trained[t, rows],
        )
        for some, share in zip(banks, right, strict=True):
            grid = Grid(sample, some, X)
            for k in range(len(Cs)):
                # pair_code has +1 at the first class: f < 0 says label 1
                wins = grid.outputs("held", k, True) < 0  # (rows, folds)
                for t, (_, held) in enumerate(splits):
                    share[k] += np.sum(wins[held, t] == y[held])
        return Cs, right / len(y)

    def _folds(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The splits of `cv`, at most one fold for each row of the smaller class."""
        folds = self.cv
        if isinstance(folds, int):
            most = min(folds, int(np.bincount(y).min()))
            folds = StratifiedKFold(most, shuffle=True, random_state=self.random_state)
        return list(check_cv(folds, y, classifier=True).split(X=y, y=y))

    def _check_saved(self) -> None:
        n = len(self.classes_)
        for name in self._saved:
            expect(name, getattr(self, name), "f", (n, n))

    def _make_graph(self) -> DecisionGraph:
        return _graph(len(self.classes_), self.separability_.tobytes())
