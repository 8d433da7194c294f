"""What users of scikit-learn's SVC look for on a fitted estimator."""

from typing import Any

import numpy as np
from scipy import sparse

from ..bank import Bank

MOST_DENSE = 1 << 24  # coefficients of a dense `dual_coef_`: 128 MB


class LikeSVC:
    """The fitted attributes of SVC, read from the bank of machines.

    With two classes and one machine, `dual_coef_`, `intercept_` and `coef_` have the
    sign of `decision_function`: positive for the second class, as in SVC. With more
    classes, or machines, each is positive for its own first class.
    """

    machines_: Bank
    classes_: np.ndarray

    @property
    def support_(self) -> np.ndarray:
        """Unique support vectors: indices of training rows."""
        return self.machines_.support

    @property
    def support_vectors_(self) -> Any:
        """Rows of the support vectors; of shape (0, 0) if the kernel is precomputed."""
        vectors = self.machines_.vectors
        return np.empty((0, 0)) if vectors is None else vectors

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors in each class."""
        return np.bincount(self.machines_.support_class, minlength=len(self.classes_))

    @property
    def dual_coef_(self) -> Any:
        """Coefficients of the machines, one row each."""
        bank = self.machines_
        coef = self._sign * bank.coef
        few = np.prod(coef.shape) <= MOST_DENSE
        dense = few and not sparse.issparse(bank.vectors)
        return coef.toarray() if dense else coef

    @property
    def intercept_(self) -> np.ndarray:
        """Constants of the machines."""
        return self._sign * self.machines_.bias

    @property
    def coef_(self) -> Any:
        """Weights of the inputs in each machine, if the kernel is linear; read-only."""
        bank = self.machines_
        of_vectors = bank.kernel.linear_weights(bank.vectors)
        if of_vectors is None:
            raise AttributeError("coef_ is only available when using a linear kernel")
        if bank.kernels is None:
            weights = bank.coef @ of_vectors
        else:
            own = []
            for t, kernel in enumerate(bank.kernels):
                of_vectors = kernel.linear_weights(bank.vectors)
                own.append(bank.coef[[t]] @ of_vectors)
            stack = sparse.vstack if sparse.issparse(bank.vectors) else np.vstack
            weights = stack(own)
        weights = self._sign * weights  # (machines, inputs)
        values = weights.data if sparse.issparse(weights) else weights
        values.flags.writeable = False
        return weights

    @property
    def _sign(self) -> float:
        """-1 where one machine speaks for two classes and is positive for the first."""
        code = self.machines_.code
        alone = code.shape == (1, 2)
        return -1.0 if alone and code[0, 0] > 0 else 1.0
