"""What every system shares: parameters, validation, the bank behind it, cost, and saving as plain arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..graphs import Ballot, Cost, DecisionGraph, costs
from ..kernels import Kernel, resolve
from ..machines import Bank, train

FORMAT = 1
BATCH = 8192  # rows whose machine outputs are held at once


@dataclass(frozen=True)
class Sample:
    """Checked training data: rows, class indices, kernel, and what weighs them (None where all weights are one)."""

    X: np.ndarray
    codes: np.ndarray
    kernel: Kernel
    repeats: np.ndarray | None  # sample_weight: how often each row counts
    class_weight: np.ndarray | None  # one a class

    @property
    def mass(self) -> np.ndarray:
        """How often each row counts."""
        return np.ones(len(self.codes)) if self.repeats is None else self.repeats

    @property
    def weight(self) -> np.ndarray | None:
        """Factor of each row's upper bound C."""
        if self.class_weight is None:
            return self.repeats
        of_class = self.class_weight[self.codes]
        return of_class if self.repeats is None else of_class * self.repeats


@dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(ClassifierMixin, BaseEstimator):
    """A kernel classifier with scikit-learn's interface; the parameters mean what they mean in scikit-learn's SVC.

    Parameters
    ----------
    C : float, bound of the dual variables (times `class_weight` and `sample_weight`).
    kernel : "rbf", "linear", "poly", "sigmoid", "precomputed" or a callable giving a block of kernel values.
    gamma : float, "scale" or "auto"; degree, coef0 : the polynomial kernel is (gamma x.y + coef0) ** degree.
    tol : largest violation of the KKT conditions (LIBSVM's stopping quantity) that counts as solved.
    solver : "smo" (NumPy) or "qp" (cvxopt, exact, for small data).
    n_jobs : workers of joblib, threads where machines share kernel rows.
    cache_size : MB of kernel columns kept; max_iter : steps a machine, -1 for no limit.
    """

    C: Any = 1.0
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    solver: str = "smo"
    n_jobs: int | None = None
    cache_size: float = 2000
    max_iter: int = -1
    class_weight: Any = None
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _prepare(self, X, y, sample_weight) -> Sample:
        """The checked training data; sets classes_ and n_features_in_."""
        if self.solver not in ("smo", "qp"):
            raise ValueError(f"solver must be 'smo' or 'qp', not {self.solver!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
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
                raise ValueError(
                    "the rows with a positive sample weight are of fewer than two classes, one class or none"
                )
        if self.class_weight is not None:
            of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=repeats)
        return Sample(X, codes, self._kernel(X, repeats), repeats, of_class)

    def _kernel(self, X: np.ndarray, repeats: np.ndarray | None) -> Kernel:
        """The kernel to train with; gamma="scale" counts a row as often as its sample weight says."""
        gamma = self.gamma
        if isinstance(gamma, str) and gamma == "scale" and repeats is not None and self.kernel != "precomputed":
            share = repeats / repeats.sum()
            mean = share @ X.mean(axis=1)
            variance = share @ ((X - mean) ** 2).mean(axis=1)
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        return resolve(self.kernel, gamma, self.degree, self.coef0, X)

    def _rows(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, order="C", reset=False)

    def _answer(self, X) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        """Class indices, paths and scores of the rows of X."""
        raise TypeError(f"{type(self).__name__} has no engine")

    def predict(self, X) -> np.ndarray:
        """Class label of each row."""
        X = self._rows(X)
        return self._named(X, self._answer(X)[0])

    def _named(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Class labels of the rows of X whose class indices are `labels`."""
        return self.classes_[labels]

    def decision_function(self, X) -> np.ndarray:
        """Score of each class (n_samples, n_classes), or of the second class (n_samples,) when there are two."""
        scores = self._answer(self._rows(X))[2]
        return (scores[:, 1] - scores[:, 0]) / 2 if scores.shape[1] == 2 else scores

    def predict_with_cost(self, X) -> tuple[np.ndarray, Cost]:
        """Class label of each row, and what finding it cost."""
        X = self._rows(X)
        labels, paths, _ = self._answer(X)
        return self._named(X, labels), costs(paths, self.machines_.coef)

    def decision_path(self, X) -> sparse.csr_matrix:
        """Machines that each row met, as a CSR matrix (n_samples, n_machines)."""
        return self._answer(self._rows(X))[1]

    def _arrays(self) -> dict[str, np.ndarray]:
        """Fitted state as plain arrays."""
        return {f"bank_{name}": value for name, value in self.machines_.to_arrays().items()}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Nothing; sets the fitted state from `arrays`."""
        bank = {name[5:]: value for name, value in arrays.items() if name.startswith("bank_")}
        self.machines_ = Bank.from_arrays(bank)

    def save(self, path: str | Path) -> None:
        """Nothing; writes the fitted estimator to `path` as one .npz of plain arrays, without pickling."""
        check_is_fitted(self)
        plain = lambda value: value.tolist() if isinstance(value, np.ndarray | np.generic) else value  # noqa: E731
        params = {name: plain(value) for name, value in self.get_params().items()}
        try:
            text = json.dumps({"class": type(self).__name__, "format": FORMAT, "params": params})
        except TypeError:
            odd = sorted(k for k, v in params.items() if not isinstance(v, str | int | float | list | tuple | None))
            raise ValueError(f"only plain parameters can be saved; {', '.join(odd)} is not plain") from None
        classes = self.classes_
        if classes.dtype == object:
            classes = np.array([str(c) for c in classes])
        arrays = self._arrays() | {"classes_": classes, "n_features_in_": np.array(self.n_features_in_)}
        arrays["object_labels"] = np.array(self.classes_.dtype == object)
        with open(path, "wb") as out:
            np.savez_compressed(out, about=np.array(text), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> KernelClassifier:
        """The estimator that `save` wrote to `path`."""
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            raise ValueError(f"{path} has format {about['format']}; this version reads format {FORMAT}")
        family = [cls, *_all_subclasses(cls)]
        found = [c for c in family if c.__name__ == about["class"]]
        if not found:
            raise ValueError(f"{path} holds a {about['class']}, not a {cls.__name__}")
        est = found[0](**about["params"])
        est.classes_ = arrays.pop("classes_")
        if arrays.pop("object_labels"):
            est.classes_ = est.classes_.astype(object)
        est.n_features_in_ = int(arrays.pop("n_features_in_"))
        est._restore(arrays)
        return est


def _all_subclasses(cls: type) -> list[type]:
    return [d for c in cls.__subclasses__() for d in (c, *_all_subclasses(c))]


class BankClassifier(KernelClassifier):
    """A system: a bank of two-class machines and the graph that says which of them to ask.

    A subclass says which machines it wants (`_code`) and how they are asked (`_make_graph`).

    Attributes
    ----------
    classes_, n_features_in_ : as in scikit-learn; machines_ : the Bank; graph_ : the DecisionGraph or Ballot.
    support_ : unique support vectors, as sorted indices into the training set.
    n_parameters_ : unique support vectors x inputs + nonzero coefficients (Platt's classifier size).
    """

    def fit(self, X, y, sample_weight=None):
        """This estimator, fitted to rows X with labels y."""
        self._fit(self._prepare(X, y, sample_weight))
        return self

    def fit_over(self, bank: Bank, X, y) -> BankClassifier:
        """This estimator, fitted over a bank that is already trained on the same rows: only the graph is made."""
        self._given = bank
        try:
            return self.fit(X, y)
        finally:
            del self._given

    def _fit(self, sample: Sample) -> None:
        code = self._code(len(self.classes_))
        kernels = None
        if self._rescales():
            kernels = [rescaled(sample.kernel, sample.X[row[sample.codes] != 0]) for row in code]
        self.machines_ = self._train(sample, code, kernels=kernels)
        self._study(sample)
        self.graph_ = self._make_graph()

    def _rescales(self) -> bool:
        """Whether every machine scales the inputs anew on its own rows."""
        return getattr(self, "scale_pairs", False)

    def _study(self, sample: Sample) -> None:
        """Nothing; a system that must see its machines at work on the training rows does so here."""

    def _train(self, sample: Sample, code: np.ndarray, C: Any = None, anew: bool = False, **more) -> Bank:
        """The machines of `code`, trained on `sample` unless `fit_over` was given them and they are not made anew."""
        given = None if anew else getattr(self, "_given", None)
        if given is not None:
            if not np.array_equal(given.code, code) or given.n_inputs != sample.X.shape[1]:
                raise ValueError(f"{type(self).__name__} asks other machines than this bank has")
            return given
        settings = dict(tol=self.tol, solver=self.solver, cache_size=self.cache_size, n_jobs=self.n_jobs)
        settings |= dict(max_iter=self.max_iter, verbose=self.verbose, weight=sample.weight)
        C = self.C if C is None else C
        return train(sample.X, sample.codes, code, sample.kernel, C, **settings, **more)

    def _code(self, n_classes: int) -> np.ndarray:
        """Coding matrix of the machines to train, one row a machine."""
        raise TypeError(f"{type(self).__name__} names no machines")

    def _make_graph(self) -> DecisionGraph | Ballot:
        """The graph over the trained machines."""
        raise TypeError(f"{type(self).__name__} names no graph")

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        self.graph_ = self._make_graph()

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "graph_"}

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "machines_" in state:
            self.graph_ = self._make_graph()

    n_iter_ = property(lambda self: self.machines_.n_iter, doc="Solver steps of each machine.")
    support_ = property(lambda self: self.machines_.support, doc="Unique support vectors: indices of training rows.")
    n_parameters_ = property(lambda self: int(self.machines_.n_parameters), doc="Platt's classifier size.")

    def _answer(self, X: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        parts = [self.graph_.run(f) for f in outputs(self.machines_, X)]
        labels, paths, scores = zip(*parts, strict=True)
        return np.concatenate(labels), sparse.vstack(paths, format="csr"), np.concatenate(scores)


def outputs(bank: Bank, X: np.ndarray) -> Iterator[np.ndarray]:
    """Machine outputs for the rows of X, a batch at a time."""
    for start in range(0, len(X), BATCH):
        yield bank.decision(X[start : start + BATCH])


def rescaled(kernel: Kernel, X: np.ndarray) -> Kernel:
    """The kernel with inputs over their standard deviations on X; as in e1071, unscaled if one of them is constant."""
    widths = X.std(axis=0, ddof=1)
    return replace(kernel, widths=tuple(widths.tolist())) if (widths > 0).all() else kernel
