"""Direct multiclass machines: one optimisation for all classes, the largest of the class functions wins.

Crammer and Singer (2001) pay for the worst rival of a row, Weston and Watkins (1999) for every rival. Both are
what the DCSVM paper (section 2.1) sets against the systems made of two-class machines. The bank behind them
has one machine a class, all trained together; there is no graph to walk, so every row meets all of them.
"""

from typing import ClassVar

import numpy as np
from scipy import sparse

from ..machines import STATS, bank_over, rest_code
from ..solvers.direct import direct_qp, solve_direct, solve_exactly
from ..solvers.dual import LARGEST
from ..solvers.working import CRAMMER_SINGER, WESTON_WATKINS
from .classifier import KernelClassifier, Sample

SMALL = 256  # rows up to which the dual is solved to the last digit, so that weights equal repetition
CELLS = 4096  # and rows x classes: beyond, the last digits of a direct dual can take minutes


class DirectClassifier(KernelClassifier):
    """A class function f_m(x) = sum_i c_im k(x_i, x) + b_m for each class, trained by one dual.

    The biases are penalised like weights (Hsu and Lin 2002), so b_m = sum_i c_im. `tol` is the largest violation of a
    row, `max_iter` limits the rounds, and `n_jobs` starts no workers: BLAS has the threads. `decision_function` gives
    the class functions, for two classes their difference.
    """

    _loss: ClassVar = CRAMMER_SINGER

    def _fit(self, sample: Sample) -> None:
        X, codes, kernel, weight, n_classes = sample.X, sample.codes, sample.kernel, sample.weight, sample.n_classes
        factor = np.ones(len(codes)) if weight is None else np.minimum(weight, LARGEST)
        C = np.minimum(min(float(self.C), LARGEST) * factor, LARGEST)
        kernel.check(X)

        def block(rows, columns):  # the 1 makes the biases weights on a constant input
            return kernel.between(X, rows, columns) + 1.0

        if self.solver == "qp":
            every = np.arange(len(codes))
            dual = direct_qp(block(every, every), codes, n_classes, C, self._loss)
        elif len(codes) <= SMALL and len(codes) * n_classes <= CELLS and self.max_iter < 0:
            dual = solve_exactly(block, codes, n_classes, C, self._loss, self.verbose)
        else:
            settings = self._settings(("tol", "cache_size", "max_iter", "verbose"))
            dual = solve_direct(block, codes, n_classes, C, self._loss, **settings)
        stats = {name: np.full(n_classes, getattr(dual, name)) for name in STATS}
        more = dict(code=rest_code(n_classes), kernels=None, C=np.full(n_classes, float(self.C)), labels="direct")
        self.machines_ = bank_over(X, codes, sparse.csr_matrix(dual.coef.T), kernel, **stats, **more)

    n_iter_ = property(lambda self: max(1, int(self.machines_.n_iter[0])), doc="Rounds of the solver, at least 1.")

    def _answer(self, X: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        scores = self.machines_.decision(X)
        if scores.shape[1] == 2:
            scores = np.column_stack([scores[:, 0] - scores[:, 1], scores[:, 1] - scores[:, 0]])
        return scores.argmax(axis=1), sparse.csr_matrix(np.ones(scores.shape, dtype=np.int8)), scores


class CrammerSingerSVC(DirectClassifier):
    """Crammer and Singer's machine: the own class must lead the best rival by 1.

    Examples
    --------
    >>> from dagsvm_lab import CrammerSingerSVC
    >>> CrammerSingerSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"]).predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    _loss = CRAMMER_SINGER


class WestonWatkinsSVC(DirectClassifier):
    """Weston and Watkins's machine: the own class must lead every rival by 2.

    Examples
    --------
    >>> from dagsvm_lab import WestonWatkinsSVC
    >>> WestonWatkinsSVC(gamma=1).fit([[0], [1], [4]], ["a", "b", "c"]).predict([[0.4], [3.1]]).tolist()
    ['a', 'c']
    """

    _loss = WESTON_WATKINS
