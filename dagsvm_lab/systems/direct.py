"""Direct multiclass machines: one optimisation for all classes, the largest wins.

Crammer and Singer (2001) pay for the worst rival of a row, Weston and Watkins (1999)
for every rival. Both are what the DCSVM paper (section 2.1) sets against the systems
made of two-class machines. The bank behind them has one machine a class, all trained
together; there is no graph to walk, so every row meets all of them.
"""

from typing import ClassVar

import numpy as np
from scipy import sparse

from ..bank import STATS
from ..machines import bank_over, rest_code
from ..solvers.direct import (
    DirectDual,
    Limits,
    solve_direct,
    solve_exactly,
    solve_interior,
    warn_above,
)
from ..solvers.dual import LARGEST_BOUND
from ..solvers.working import CRAMMER_SINGER, WESTON_WATKINS, Task
from ..threads import one_thread
from .classifier import KernelClassifier
from .sample import Sample

# Small duals are solved to the last digit, so that a weight of 2 is a row given twice;
# larger ones can take minutes to come to it.
EXACT_ROWS = 256
EXACT_VARIABLES = 4096  # rows x classes


class DirectClassifier(KernelClassifier):
    """A class function f_m(x) = sum_i c_im k(x_i, x) + b_m a class, trained by one
    dual.

    The biases are penalised like weights (Hsu and Lin 2002), so b_m = sum_i c_im. `tol`
    is the largest violation of a row, `max_iter` limits the rounds, and `n_jobs` starts
    no workers. `decision_function` gives the class functions, for two classes their
    difference.
    """

    _loss: ClassVar = CRAMMER_SINGER

    def _fit(self, sample: Sample) -> None:
        sample.kernel.check(sample.X)
        with one_thread():
            dual = self._solve(sample)
        warn_above(dual, self.tol)
        n_classes = sample.n_classes
        stats = {name: np.full(n_classes, getattr(dual, name)) for name in STATS}
        self.machines_ = bank_over(
            sample.X,
            sample.codes,
            sparse.csr_matrix(dual.coef.T),
            sample.kernel,
            **stats,
            code=rest_code(n_classes),
            kernels=None,
            C=np.full(n_classes, float(self.C)),
            labels="direct",
        )

    def _solve(self, sample: Sample) -> DirectDual:
        """The dual of all machines; exactly if it is small, or `solver` is "qp"."""
        codes = sample.codes
        factor = np.ones(len(codes))
        if sample.bound_factor is not None:
            factor = np.minimum(sample.bound_factor, LARGEST_BOUND)
        C = min(float(self.C), LARGEST_BOUND)
        bound = np.minimum(C * factor, LARGEST_BOUND)  # (rows,)

        def block(rows, columns):  # the 1 makes the biases weights on a constant input
            return sample.kernel.between(sample.X, rows, columns) + 1.0

        task = Task(codes, sample.n_classes, bound, self._loss)
        if self.solver == "qp":
            every = np.arange(len(codes))
            return solve_interior(block(every, every), task, self.tol)
        names = ("tol", "cache_size", "max_iter", "verbose")
        limits = Limits(**self._solver_settings(names))
        few_rows = len(codes) <= EXACT_ROWS
        few_variables = len(codes) * sample.n_classes <= EXACT_VARIABLES
        if few_rows and few_variables and limits.max_iter < 0:
            return solve_exactly(block, task, limits)
        return solve_direct(block, task, limits)

    @property
    def n_iter_(self) -> int:
        """Rounds of the solver, at least 1."""
        return max(1, int(self.machines_.n_iter[0]))

    def _answer(
        self, X: np.ndarray, scored: bool = True
    ) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        scores = self.machines_.decision(X)
        if scores.shape[1] == 2:
            first = scores[:, 0] - scores[:, 1]
            scores = np.column_stack([first, -first])
        asked = sparse.csr_matrix(np.ones(scores.shape, dtype=np.int8))
        return scores.argmax(axis=1), asked, scores


class CrammerSingerSVC(DirectClassifier):
    """Crammer and Singer's machine: the own class must lead the best rival by 1.

    Examples
    --------
    >>> from dagsvm_lab import CrammerSingerSVC
    >>> machine = CrammerSingerSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"])
    >>> machine.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    _loss = CRAMMER_SINGER


class WestonWatkinsSVC(DirectClassifier):
    """Weston and Watkins's machine: the own class must lead every rival by 2.

    Examples
    --------
    >>> from dagsvm_lab import WestonWatkinsSVC
    >>> machine = WestonWatkinsSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"])
    >>> machine.predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    _loss = WESTON_WATKINS
