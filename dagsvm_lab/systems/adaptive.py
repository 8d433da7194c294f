"""Adaptive DAGSVM (Yu, Rhuma, Naqvi and Chambers 2011): at every step, the most separable pair that is left.

Separability is the squared distance between two class means in feature space (Eq. 6, its within sums divided by n^2
as they must be):  DBTC = sum k(x1,x1)/n1^2 + sum k(x2,x2)/n2^2 - 2 sum k(x1,x2)/(n1 n2).
"""

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.model_selection import StratifiedKFold, check_cv

from ..graphs import DecisionGraph
from ..kernels import Kernel, prepared, resolve
from ..machines import pair_code, pair_index
from .base import BankClassifier, Sample
from .declared import Array, Folds, Positive, Seed
from .grids import Grid

GAMMAS = 2.0 ** np.arange(-15, 4)
CS = 2.0 ** np.arange(-5, 16, 2)


def dbtc(kernel: Kernel, A: np.ndarray, B: np.ndarray) -> float:
    """DBTC of two classes with rows A and B (Eq. 6, corrected)."""
    return float(kernel(A, A).mean() + kernel(B, B).mean() - 2 * kernel(A, B).mean())


def dbtc_matrix(sample: Sample, kernels: list[Kernel]) -> np.ndarray:
    """DBTC between all classes, each pair under its own kernel (`kernels` in the order of `pair_code`)."""
    n = sample.n_classes
    groups = [np.flatnonzero(sample.codes == c) for c in range(n)]
    shares = [sample.mass[g] / sample.mass[g].sum() for g in groups]

    ready = {kernel: prepared(sample.X, kernel) for kernel, uses in Counter(kernels).items() if uses > n}

    def mean(kernel: Kernel, a: int, b: int) -> float:
        rows = groups[a], groups[b]
        block = ready[kernel].block(*rows) if kernel in ready else kernel.between(sample.X, *rows)
        return float(shares[a] @ block @ shares[b])

    triples = list(zip(*np.triu_indices(n, 1), kernels, strict=True))
    within = {(k, c): mean(k, c, c) for k, c in {(k, c) for i, j, k in triples for c in (i, j)}}
    return squareform([within[k, i] + within[k, j] - 2 * mean(k, i, j) for i, j, k in triples])


def adaptive_graph(separability: np.ndarray) -> DecisionGraph:
    """The graph that tests the most separable pair, then pits each survivor against the class most separable from it.

    A state is (survivor, classes left as the bits of a number); the graph grows as rows reach it.
    """
    n = len(separability)
    off = np.where(np.eye(n, dtype=bool), -np.inf, separability)
    rivals = np.argsort(-off, axis=1, kind="stable").tolist()  # of each class, the most separable first

    def duel(i: int, j: int, left: int) -> tuple:
        i, j = min(i, j), max(i, j)
        return "node", pair_index(i, j, n), (j, left & ~(1 << i)), (i, left & ~(1 << j))

    def rule(state: tuple[int | None, int]) -> tuple:
        survivor, left = state
        if survivor is None:
            return duel(*map(int, np.unravel_index(np.argmax(off), off.shape)), left)
        if left == 1 << survivor:
            return "leaf", survivor
        return duel(survivor, next(c for c in rivals[survivor] if left >> c & 1), left)

    def members(state: tuple[int | None, int]) -> np.ndarray:
        octets = np.frombuffer(state[1].to_bytes(-(-n // 8), "little"), np.uint8)
        return np.flatnonzero(np.unpackbits(octets, bitorder="little"))

    return DecisionGraph((None, (1 << n) - 1), rule, members, n_classes=n, n_machines=n * (n - 1) // 2)


@lru_cache(maxsize=8)
def _graph(n: int, separability: bytes) -> DecisionGraph:
    """The graph over a table of doubles; estimators with the same table share what has grown of it."""
    return adaptive_graph(np.frombuffer(separability).reshape(n, n))


def pair_values(value: Any, n: int, what: str) -> np.ndarray | None:
    """One value a pair, from a symmetric (n, n) table; None when `value` is no table."""
    if np.ndim(value) == 0:
        return None
    table = np.asarray(value, dtype=float)
    if table.shape != (n, n) or not np.allclose(table, table.T, equal_nan=True):
        raise ValueError(f"{what} must be one number or a symmetric table with {n} rows, one a class")
    return table[np.triu_indices(n, 1)]


class AdaptiveDAGSVC(BankClassifier):
    """A DAG whose next test is always the most separable pair left; C and gamma may differ from pair to pair.

    Parameters
    ----------
    C : float or array-like of shape (n_classes, n_classes), default=1.0
        Upper bound of the dual variables, or a symmetric table of the pairs' own, in the order of `classes_`.
    gamma : {"scale", "auto"}, float or array-like of shape (n_classes, n_classes), default="scale"
        As C, for the kernel's factor.
    tune : {"dbtc", "cv"}, default=None
        Choose each pair's C and gamma: "dbtc" is the paper's recipe (gamma has the largest DBTC, C then the best
        validation accuracy), "cv" takes both by validation accuracy.
    gammas : array-like, default=None
        Values that `tune` tries; None is 2^-15 to 2^3.
    Cs : array-like, default=None
        Values of C that `tune` tries; None is 2^-5 to 2^15 in steps of 4.
    cv : int or splitter, default=10
        Folds of `tune`; a number means at most that many, one row of the smaller class in each.
    separability : "own" or float, default="own"
        "own" measures each pair under its machine's own kernel; a number is the gamma that measures all pairs.
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

    C: Positive | Array = 1.0
    gamma: Literal["scale", "auto"] | Positive | Array = "scale"
    tune: Literal["dbtc", "cv"] | None = None
    gammas: Array | None = None
    Cs: Array | None = None
    cv: Folds = 10
    separability: Literal["own"] | Positive = "own"
    random_state: Seed = None

    _saved = ("separability_", "gamma_", "C_")

    def _kernel(self, X, repeats) -> Kernel:
        if self.tune is None and np.ndim(self.gamma) == 0:
            return super()._kernel(X, repeats)
        return self._with_gamma(1.0)  # every machine has its own

    def _settle(self, sample: Sample) -> None:
        if self.tune is not None and sample.bank is not None:
            raise ValueError("tune chooses C and gamma, but the machines of a bank have theirs: leave tune=None")

    def _special(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        n = sample.n_classes
        if self.tune is None:
            gamma, C = pair_values(self.gamma, n, "gamma"), pair_values(self.C, n, "C")
        else:
            both = [np.flatnonzero(row[sample.codes]) for row in code]
            gamma, C = np.array([self._tuned(sample.X[rows], sample.codes[rows]) for rows in both]).T
        special = {} if C is None else {"C": C}
        return special if gamma is None else special | {"kernels": [self._with_gamma(g) for g in gamma]}

    def _study(self, sample: Sample) -> None:
        bank = self.machines_
        kernels = bank.kernels or [bank.kernel] * len(bank.code)
        self.gamma_, self.C_ = squareform([k.gamma for k in kernels]), squareform(bank.C)
        if self.separability != "own":
            kernels = [replace(kernels[0], gamma=float(self.separability))] * len(kernels)
            kernels[0].check(sample.X)
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
            gammas = [max(gammas, key=lambda g: dbtc(self._with_gamma(g), X[y == 0], X[y == 1]))]
        Cs, accuracies = self._validation_curves(X, y, [self._with_gamma(g) for g in gammas])
        best = int(accuracies.max(axis=1).argmax())
        return gammas[best], Cs[accuracies[best].argmax()]

    def _validation_curves(self, X: np.ndarray, y: np.ndarray, kernels: list[Kernel]) -> tuple[np.ndarray, np.ndarray]:
        """The grid of C, and the share of rows (labels 0 or 1) that folds answer rightly: (kernels, values of C)."""
        Cs, folds = np.sort(CS if self.Cs is None else np.asarray(self.Cs, dtype=float)), self.cv
        if isinstance(folds, int):
            most = min(folds, int(np.bincount(y).min()))
            folds = StratifiedKFold(most, shuffle=True, random_state=self.random_state)
        splits = list(check_cv(folds, y, classifier=True).split(X, y))
        trained = np.array([np.isin(np.arange(len(y)), fit) for fit, _ in splits])
        sample, right = Sample(X, y, kernels[0], None, None), np.zeros((len(kernels), len(Cs)))
        code = np.repeat(pair_code(2), len(splits), axis=0)  # a machine a fold: the others' rows have label 0
        banks = self._train_grid(sample, code, kernels, Cs.tolist(), soft=lambda t, rows, s: s * trained[t, rows])
        for some, share in zip(banks, right, strict=True):
            grid = Grid(sample, some, X)
            for k in range(len(Cs)):
                wins = grid.outputs("held", k, True) < 0
                share[k] = sum(np.sum(wins[held, t] == y[held]) for t, (_, held) in enumerate(splits))
        return Cs, right / len(y)

    def _make_graph(self) -> DecisionGraph:
        return _graph(len(self.classes_), self.separability_.tobytes())
