"""A kernel classifier as scikit-learn knows it.

Parameters, validation, fitting that is all or nothing, and answers.
"""

import sys
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..bank import Bank
from ..graphs import Cost, costs
from ..kernels import Kernel, kernel_class, resolve
from ..threads import one_thread
from .declared import (
    Bound,
    Declared,
    Finite,
    Limit,
    Natural,
    Never,
    Positive,
    Seed,
    Verbosity,
)
from .like_svc import LikeSVC
from .sample import Sample, checked_weight
from .stored import Stored

MOST_CACHE = 1e9  # MB of kernel cache: a larger one is one of that size


class KernelClassifier(Declared, Stored, LikeSVC, ClassifierMixin, BaseEstimator):
    """A kernel classifier whose parameters mean what they mean in scikit-learn's SVC.

    A subclass says how it is trained, `_fit(sample)`, which sets the fitted
    attributes, and what it answers, `_answer(X)`: class indices, paths and scores of
    the rows of X.

    Parameters
    ----------
    C : float, default=1.0
        Upper bound of the dual variables, times `class_weight` and `sample_weight`;
        infinite for a hard margin.
    kernel : str or callable, default="rbf"
        A name in `dagsvm_lab.kernels.KERNELS` ("linear", "poly", "rbf", "sigmoid",
        "laplacian", "precomputed"), or a callable, which takes two arrays of rows and
        gives the block of their kernel values.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor in the kernel: "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    degree : int, default=3
        Degree of the polynomial kernel (gamma x.y + coef0) ** degree.
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Largest violation of the optimality conditions (LIBSVM's stopping quantity)
        that counts as solved.
    solver : {"smo", "qp"}, default="smo"
        "smo" decomposes in NumPy, and takes interior points for linear machines of few
        inputs; "qp" solves each dual exactly with cvxopt, for small data.
    n_jobs : int, default=None
        Jobs that train and predict in parallel, as in joblib: None is one, -1 all
        processors.
    cache_size : float, default=2000
        Kernel cache in MB.
    max_iter : int, default=-1
        Limit of a machine's solver steps, -1 for none.
    class_weight : dict or "balanced", default=None
        Factor of C for each class.
    verbose : int, default=0
        1 shows progress.
    shrinking : bool, default=True
        As in SVC; it changes nothing here.
    probability : bool, default=False
        As in SVC, where only False is left to choose: for `predict_proba` wrap the
        estimator in scikit-learn's CalibratedClassifierCV.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random; here nothing is.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of inputs.
    machines_ : Bank
        The trained two-class machines: support vectors, coefficients and each
        machine's certificate.
    n_iter_ : int or ndarray of shape (n_machines,)
        Steps of the solver.
    support_ : ndarray of shape (n_support,)
        Unique support vectors, as sorted indices into the training set.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Their rows; of shape (0, 0) if the kernel is precomputed.
    n_support_ : ndarray of shape (n_classes,)
        Their number in each class.
    dual_coef_ : ndarray or csr_matrix of shape (n_machines, n_support)
        Coefficients: machine t answers
        f(x) = sum_i dual_coef_[t, i] k(support_vectors_[i], x) + intercept_[t],
        positive for its first class; where one machine tells two classes apart,
        positive for the second, as `decision_function` is. Sparse if X was, or if
        there are more than 2^24.
    intercept_ : ndarray of shape (n_machines,)
        The machines' constants.
    coef_ : ndarray or csr_matrix of shape (n_machines, n_features)
        Weights of the inputs; only there if the kernel is linear, and read-only.
    n_parameters_ : int
        Platt's classifier size: unique support vectors x inputs + nonzero
        coefficients.
    """

    C: Bound = 1.0
    kernel: Annotated[Any, str, callable] = "rbf"
    gamma: Literal["scale", "auto"] | Positive = "scale"
    degree: Natural = 3
    coef0: Finite = 0.0
    tol: Positive = 1e-3
    solver: Literal["smo", "qp"] = "smo"
    n_jobs: int | None = None
    cache_size: Positive = 2000
    max_iter: Limit = -1
    class_weight: dict | Literal["balanced"] | None = None
    verbose: Verbosity = 0
    shrinking: bool = True
    probability: Never = False
    random_state: Seed = None

    _sparse: ClassVar[bool] = True  # whether sparse rows are taken, if the kernel does

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = kernel_class(self.kernel).precomputed
        # a callable is given sparse rows, but nobody knows whether it takes them
        tags.input_tags.sparse = bool(self._formats) and not callable(self.kernel)
        return tags

    @property
    def _formats(self) -> str | bool:
        """The sparse format in which rows are taken; False where they must be dense."""
        taken = self._sparse and kernel_class(self.kernel).takes_sparse
        return "csr" if taken else False

    # ---- fitting

    def fit(self, X, y, sample_weight=None) -> Self:
        """Train the machines and settle how they are asked.

        Returns
        -------
        self : object
            This estimator. If fitting fails or is interrupted it stays as it was.
        """
        return self._fit_atomically(X, y, sample_weight)

    def _fit_atomically(self, X, y, sample_weight, bank: Bank | None = None) -> Self:
        """Fit a draft and take over its state at the end."""
        self._validate_params()
        draft = self._unfitted()
        with one_thread():
            draft._fit(draft._checked_sample(X, y, sample_weight, bank))
        # one assignment: an interrupt comes before it or after it
        self.__dict__ = draft.__dict__
        return self

    def _validate_params(self) -> None:
        """Refuse parameters that are of a wrong kind or outside their range."""
        for name in self._get_param_names():
            value = getattr(self, name)
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number"
                    f" that fits a float. Got an integer of {value.bit_length()} bits"
                    " instead."
                )
        super()._validate_params()
        try:
            kernel_class(self.kernel)
        except ValueError as error:
            raise InvalidParameterError(
                f"The 'kernel' parameter of {type(self).__name__} must be a callable or"
                f" name a kernel: {error}"
            ) from None

    def _with(self, state: dict[str, Any]) -> Self:
        """An object of this class with these attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(state)
        return other

    def _unfitted(self) -> Self:
        """A copy with the parameters alone."""
        state = vars(self).items()
        return self._with({key: value for key, value in state if key[-1] != "_"})

    def _variant(self, **state) -> Self:
        """A fitted copy with other parameters or attributes."""
        check_is_fitted(self)
        other = self._with(vars(self) | state)
        other._validate_params()
        return other

    def _checked_sample(self, X, y, sample_weight, bank: Bank | None = None) -> Sample:
        """The checked training data; sets classes_ and n_features_in_."""
        if sparse.issparse(X) and kernel_class(self.kernel).precomputed:
            raise TypeError("Sparse precomputed kernels are not taken: make it dense")
        formats = self._formats
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", accept_sparse=formats
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                "the number of classes has to be greater than one;"
                f" got {n_classes} class"
            )
        if sample_weight is not None:
            sample_weight = checked_weight(sample_weight, X, codes)
        class_weight = None
        if self.class_weight is not None:
            class_weight = compute_class_weight(
                self.class_weight,
                classes=self.classes_,
                y=y,
                sample_weight=sample_weight,
            )
        if kernel_class(self.kernel).precomputed:  # before anything is read from it
            Kernel(self.kernel).check(X)
        if bank is not None:
            return Sample(
                X, codes, bank.kernel, sample_weight, class_weight, bank.C, bank
            )
        kernel = self._kernel(X, sample_weight)
        return Sample(X, codes, kernel, sample_weight, class_weight, self.C)

    def _kernel(self, X: np.ndarray, sample_weight: np.ndarray | None) -> Kernel:
        """The kernel to train with; where machines have their own gamma, it is 1.

        gamma="scale" counts a row as often as its sample weight says.
        """
        gamma = self.gamma if np.ndim(self.gamma) == 0 else 1.0
        return resolve(self.kernel, gamma, self.degree, self.coef0, X, sample_weight)

    def _solver_settings(self, names: Iterable[str]) -> dict[str, Any]:
        """These parameters for a solver, as Python's own numbers.

        Their sums and products do not overflow, as those of NumPy's integers would.
        """
        values = {name: getattr(self, name) for name in names}
        values["cache_size"] = min(float(self.cache_size), MOST_CACHE)
        for name, value in values.items():
            if isinstance(value, np.generic):
                values[name] = value.item()
        return values

    # ---- answers

    def _checked_rows(self, X) -> np.ndarray:
        """The checked rows of X.

        An array that is as it must be passes at a tenth of scikit-learn's price.
        """
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
            state = vars(self)
            fitted = state.get("n_features_in_") == X.shape[1] and "classes_" in state
            if fitted and "feature_names_in_" not in state and np.isfinite(X).all():
                return np.ascontiguousarray(X)
        check_is_fitted(self)
        formats = self._formats
        return validate_data(
            self, X, dtype=np.float64, order="C", accept_sparse=formats, reset=False
        )

    def _labels(self, X: np.ndarray) -> np.ndarray:
        """Class indices of the rows of X."""
        return self._answer(X)[0]

    def _named(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Class labels of the rows of X whose class indices are `labels`."""
        return self.classes_[labels]

    @property
    def _path_coef(self) -> sparse.csr_matrix:
        """Coefficients of what the columns of a path stand for, one row each."""
        return self.machines_.coef

    @property
    def n_parameters_(self) -> int:
        """Platt's classifier size."""
        return int(self.machines_.n_parameters)

    def predict(self, X) -> np.ndarray:
        """Predict the class of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        X = self._checked_rows(X)
        return self._named(X, self._labels(X))

    def decision_function(self, X) -> np.ndarray:
        """Score each class for each row.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            The answer has the largest score; where votes decide, a tie of votes goes
            to its first class whatever the scores. With two classes, the score of the
            second. Scores of a `DecisionGraph` are path margins: see its `run`.
        """
        scores = self._answer(self._checked_rows(X))[2]
        if scores.shape[1] == 2:  # as scikit-learn has it: positive for the second
            return (scores[:, 1] - scores[:, 0]) / 2
        return scores

    def predict_with_cost(self, X) -> tuple[np.ndarray, Cost]:
        """Predict the class of each row and count what finding it cost.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        cost : Cost
            Binary decisions, kernel evaluations and support vectors, one integer a
            row each.

        Notes
        -----
        Of a pipeline: `pipe[-1].predict_with_cost(pipe[:-1].transform(X))`.
        """
        X = self._checked_rows(X)
        labels, paths, _ = self._answer(X, scored=False)
        return self._named(X, labels), costs(paths, self._path_coef)

    def decision_path(self, X) -> sparse.csr_matrix:
        """List the machines that each row met.

        Returns
        -------
        paths : csr_matrix of shape (n_samples, n_machines)
            1 where a row met a machine.
        """
        return self._answer(self._checked_rows(X), scored=False)[1]
