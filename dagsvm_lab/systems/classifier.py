"""A kernel classifier as scikit-learn knows it: parameters, validation, fitting that is all or nothing, answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..graphs import Cost, costs
from ..kernels import Kernel, resolve
from ..machines import Bank
from .declared import Declared, Finite, Limit, Natural, Positive, Verbosity
from .stored import Stored

MOST = 1e9  # MB of kernel cache: a larger one is one of that size


@dataclass(frozen=True)
class Sample:
    """Checked training data: rows, class indices, kernel, and what weighs them (None where all weights are one)."""

    X: np.ndarray
    codes: np.ndarray
    kernel: Kernel
    repeats: np.ndarray | None  # sample_weight: how often each row counts
    class_weight: np.ndarray | None  # one a class
    C: Any = 1.0  # bound of the dual variables, a number or one a machine
    bank: Bank | None = None  # machines that are trained on these rows already
    outputs: Callable[[bool], np.ndarray] | None = None  # gives the machines' outputs on these rows (or their signs)
    memo: dict = field(default_factory=dict)  # what systems over the same rows and kernel compute once

    n_classes = property(lambda self: int(self.codes.max()) + 1, doc="Number of classes.")

    @cached_property
    def mass(self) -> np.ndarray:
        """How often each row counts."""
        return np.ones(len(self.codes)) if self.repeats is None else self.repeats

    @property
    def by_class(self) -> np.ndarray:
        """The rows that count, sorted by class."""
        rows = np.argsort(self.codes, kind="stable")
        return rows[self.mass[rows] > 0]

    @property
    def weight(self) -> np.ndarray | None:
        """Factor of each row's upper bound C."""
        if self.class_weight is None:
            return self.repeats
        of_class = self.class_weight[self.codes]
        return of_class if self.repeats is None else of_class * self.repeats


class KernelClassifier(Declared, Stored, ClassifierMixin, BaseEstimator):
    """A kernel classifier with scikit-learn's interface; the parameters mean what they mean in scikit-learn's SVC.

    A subclass says how it is trained, `_fit(sample)`, which sets the fitted attributes, and what it answers,
    `_answer(X)`: class indices, paths and scores of the rows of X.

    Parameters
    ----------
    C : float, default=1.0
        Upper bound of the dual variables, times `class_weight` and `sample_weight`.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        Kernel; a callable takes two arrays of rows and gives the block of their kernel values.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor in the kernel: "scale" is 1 / (n_features * X.var()), "auto" 1 / n_features.
    degree : int, default=3
        Degree of the polynomial kernel (gamma x.y + coef0) ** degree.
    coef0 : float, default=0.0
        Constant of the polynomial and the sigmoid kernel.
    tol : float, default=1e-3
        Largest violation of the optimality conditions (LIBSVM's stopping quantity) that counts as solved.
    solver : {"smo", "qp"}, default="smo"
        "smo" decomposes in NumPy; "qp" solves each dual exactly with cvxopt, for small data.
    n_jobs : int, default=None
        Jobs that train and predict in parallel, as in joblib: None is one, -1 all processors.
    cache_size : float, default=2000
        Kernel cache in MB.
    max_iter : int, default=-1
        Limit of a machine's solver steps, -1 for none.
    class_weight : dict or "balanced", default=None
        Factor of C for each class.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of inputs.
    machines_ : Bank
        The trained two-class machines: support vectors, coefficients and each machine's certificate.
    n_iter_ : int or ndarray of shape (n_machines,)
        Steps of the solver.
    support_ : ndarray of shape (n_support,)
        Unique support vectors, as sorted indices into the training set.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Their rows; of shape (0, 0) if the kernel is precomputed.
    n_support_ : ndarray of shape (n_classes,)
        Their number in each class.
    dual_coef_ : csr_matrix of shape (n_machines, n_support)
        Coefficients: machine t answers f(x) = sum_i dual_coef_[t, i] k(support_vectors_[i], x) + intercept_[t],
        positive for its first class.
    intercept_ : ndarray of shape (n_machines,)
        The machines' constants.
    coef_ : ndarray of shape (n_machines, n_features)
        Weights of the inputs; only there if the kernel is linear.
    n_parameters_ : int
        Platt's classifier size: unique support vectors x inputs + nonzero coefficients.
    """

    C: Positive = 1.0
    kernel: Literal["linear", "poly", "rbf", "sigmoid", "precomputed"] | Callable = "rbf"
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

    _sparse: ClassVar[bool] = True  # whether rows in scipy.sparse formats are taken

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self._sparse
        return tags

    def fit(self, X, y, sample_weight=None) -> Self:
        """Train the machines and settle how they are asked.

        Returns
        -------
        self : object
            This estimator. If fitting fails or is interrupted it stays as it was.
        """
        return self._become(X, y, sample_weight)

    def _become(self, X, y, sample_weight, bank: Bank | None = None) -> Self:
        """Fit a draft and take over its state at the end."""
        self._validate_params()
        draft = self._unfitted()
        draft._fit(draft._prepare(X, y, sample_weight, bank))
        self.__dict__ = draft.__dict__
        return self

    def _with(self, state: dict[str, Any]) -> Self:
        """An object of this class with these attributes."""
        other = object.__new__(type(self))
        other.__dict__.update(state)
        return other

    def _unfitted(self) -> Self:
        """A copy with the parameters alone."""
        return self._with({name: value for name, value in vars(self).items() if not name.endswith("_")})

    def _variant(self, **state) -> Self:
        """A fitted copy with other parameters or attributes."""
        check_is_fitted(self)
        other = self._with(vars(self) | state)
        other._validate_params()
        return other

    def _prepare(self, X, y, sample_weight, bank: Bank | None = None) -> Sample:
        """The checked training data; sets classes_ and n_features_in_."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse=self._sparse and "csr")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"the number of classes has to be greater than one; got {len(self.classes_)} class")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError("a precomputed kernel must be a square matrix at fit")
        repeats = of_class = None
        if sample_weight is not None:
            repeats = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if len(np.unique(codes[repeats > 0])) < 2:
                raise ValueError("rows with a positive sample weight are of one class or none; two classes are needed")
        if self.class_weight is not None:
            of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=repeats)
        kernel, C = (self._kernel(X, repeats), self.C) if bank is None else (bank.kernel, bank.C)
        return Sample(X, codes, kernel, repeats, of_class, C, bank)

    def _kernel(self, X: np.ndarray, repeats: np.ndarray | None) -> Kernel:
        """The kernel to train with; gamma="scale" counts a row as often as its sample weight says."""
        return resolve(self.kernel, self.gamma, self.degree, self.coef0, X, repeats)

    def _settings(self, names: Iterable[str]) -> dict[str, Any]:
        """These parameters for a solver: as Python's own numbers, whose sums and products do not overflow."""
        values = {name: getattr(self, name) for name in names}
        values["cache_size"] = min(float(self.cache_size), MOST)
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}

    def _rows(self, X) -> np.ndarray:
        """The checked rows of X; an array that is as it must be passes at a tenth of scikit-learn's price."""
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
            state = vars(self)
            known = state.get("n_features_in_") == X.shape[1] and "feature_names_in_" not in state
            if known and "classes_" in state and np.isfinite(X).all():
                return np.ascontiguousarray(X)
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, order="C", accept_sparse=self._sparse and "csr", reset=False)

    def _labels(self, X: np.ndarray) -> np.ndarray:
        """Class indices of the rows of X."""
        return self._answer(X)[0]

    def _named(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Class labels of the rows of X whose class indices are `labels`."""
        return self.classes_[labels]

    _asked = property(lambda self: vars(self).get("asked_", self.machines_), doc="The machines that rows may meet.")
    support_ = property(lambda self: self.machines_.support, doc="Unique support vectors: indices of training rows.")
    n_support_ = property(lambda self: np.bincount(self.machines_.support_class, minlength=len(self.classes_)))
    dual_coef_ = property(lambda self: self.machines_.coef, doc="Coefficients of the machines, one sparse row each.")
    intercept_ = property(lambda self: self.machines_.bias, doc="Constants of the machines.")
    n_parameters_ = property(lambda self: int(self._asked.n_parameters), doc="Platt's classifier size.")
    support_vectors_ = property(lambda self: np.empty((0, 0)) if (rows := self.machines_.vectors) is None else rows)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the inputs in each machine, if the kernel is linear."""
        bank = self.machines_
        if bank.kernel.name != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        scales = [k.widths or (1.0,) * bank.n_inputs for k in bank.kernels or [bank.kernel] * len(bank.code)]
        return bank.coef @ bank.vectors / np.array(scales) ** 2

    def predict(self, X) -> np.ndarray:
        """Predict the class of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        """
        X = self._rows(X)
        return self._named(X, self._labels(X))

    def decision_function(self, X) -> np.ndarray:
        """Score each class for each row.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            The answer has the largest score; with two classes, the score of the second. Scores of a `DecisionGraph`
            are path margins: see its `run`.
        """
        scores = self._answer(self._rows(X))[2]
        return (scores[:, 1] - scores[:, 0]) / 2 if scores.shape[1] == 2 else scores

    def predict_with_cost(self, X) -> tuple[np.ndarray, Cost]:
        """Predict the class of each row and count what finding it cost.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Class labels.
        cost : Cost
            Binary decisions, kernel evaluations and support vectors, one integer a row each.
        """
        X = self._rows(X)
        labels, paths, _ = self._answer(X)
        return self._named(X, labels), costs(paths, self._asked.coef)

    def decision_path(self, X) -> sparse.csr_matrix:
        """List the machines that each row met.

        Returns
        -------
        paths : csr_matrix of shape (n_samples, n_machines)
            1 where a row met a machine.
        """
        return self._answer(self._rows(X))[1]
