"""A system: a bank of two-class machines and the graph that says which of them to ask."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..graphs import GraphTooLarge
from ..kernels import Kernel, equal
from ..machines import SETTINGS, Bank, pair_code, train_grid
from ..outputs import Unsure
from .classifier import KernelClassifier, Sample

CELLS = 1 << 22  # machine outputs that are held at once: 32 MB


class BankClassifier(KernelClassifier):
    """A system: a bank of two-class machines and the graph that says which of them to ask.

    A subclass says which machines it wants, if not those of all pairs (`_code`), what it must know of them at work on
    the training rows (`_study`), and how they are asked: `_make_graph()` gives the `Graph` over the trained machines,
    from fitted attributes alone. One that studies nothing has the same graph whatever C is.

    Attributes
    ----------
    graph_ : DecisionGraph or Ballot
        Which machines are asked, in which order, and what follows from their answers.
    """

    scale_pairs = None  # a parameter where machines may have their own scales
    _labels_kind = None  # what the machines must have learnt (`Bank.labels`), if hard or soft will not do

    def fit_over(self, bank: Bank, X, y, sample_weight=None) -> Self:
        """Fit over machines that are trained already: only the graph is made.

        Kernel, C and the kind of labels are those of the bank, whatever this estimator's parameters say.

        Parameters
        ----------
        bank : Bank
            Machines trained on these rows and labels, as another system's `machines_`.

        Returns
        -------
        self : object
            This estimator.
        """
        return self._become(X, y, sample_weight, bank)

    def _fit(self, sample: Sample) -> None:
        self._settle(sample)
        code, bank = self._code(sample), sample.bank
        if bank is None:
            bank = self._train(sample, code, **self._special(sample, code))
        elif reason := self._mismatch(sample, bank, code):
            raise ValueError(f"{type(self).__name__} cannot be fitted over this bank: {reason}")
        self._finish(sample, bank)

    def _finish(self, sample: Sample, bank: Bank) -> None:
        """Set what follows from the trained machines."""
        self.machines_ = bank
        self._study(sample)
        self.graph_ = self._make_graph()

    def _settle(self, sample: Sample) -> None:
        """Set what is known before any machine is trained, and refuse what cannot be."""

    def _code(self, sample: Sample) -> np.ndarray:
        """Coding matrix of the machines to train, one row a machine."""
        return pair_code(sample.n_classes)

    def _special(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        """What differs from machine to machine, as arguments of `machines.train`: C, kernels, soft labels."""
        if not self.scale_pairs:
            return {}
        return {"kernels": [rescaled(sample.kernel, sample.X[row[sample.codes] != 0]) for row in code]}

    def _study(self, sample: Sample) -> None:
        """Set what must be learnt from the machines at work on the training rows."""

    def _train(self, sample: Sample, code: np.ndarray, **special) -> Bank:
        """The machines of `code`, trained on `sample`."""
        return self._train_grid(sample, code, [sample.kernel], [special.pop("C", sample.C)], **special)[0][0]

    def _train_grid(self, sample: Sample, code: np.ndarray, grid: list, Cs: list, **special) -> list[list[Bank]]:
        """The machines of `code`, trained on `sample`, for every kernel of `grid` and every C, which rise."""
        settings = self._settings(SETTINGS)
        return train_grid(sample.X, sample.codes, code, grid, Cs, weight=sample.weight, **settings, **special)

    def _mismatch(self, sample: Sample, bank: Bank, code: np.ndarray) -> str | None:
        """Why `bank` is not what this system would ask, or was not trained on these rows; None if all is well."""
        kind, scaled, scales = self._labels_kind, self.scale_pairs, any(k.widths for k in bank.kernels or [])
        if bank.code.shape[1] != sample.n_classes:
            return f"it tells {bank.code.shape[1]} classes apart, y has {sample.n_classes}"
        if not np.array_equal(bank.code, code):
            return "the system asks other machines"
        if bank.labels == "direct" or kind not in (None, bank.labels):
            return f"its machines learnt labels of the kind {bank.labels!r}, not {kind or 'hard'!r}"
        if (self.kernel == "precomputed") != (bank.vectors is None) or bank.n_inputs != sample.X.shape[1]:
            return f"it has {bank.n_inputs} inputs and the kernel {bank.kernel.name!r}"
        if scaled and bank.kernels is None or scaled is False and scales:  # e1071's rule may leave all unscaled
            return f"scale_pairs={scaled}, but its machines {'have' if scales else 'lack'} scales of their own"
        same = bank.n_rows == len(sample.codes) and np.array_equal(sample.codes[bank.support], bank.support_class)
        if not same or bank.vectors is not None and not equal(sample.X[bank.support], bank.vectors):
            return f"it was trained on other rows (there were {bank.n_rows}) or other labels"
        return None

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        self.graph_ = self._make_graph()

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name not in ("graph_", "asked_")}

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "machines_" in state:
            self.graph_ = self._make_graph()

    n_iter_ = property(lambda self: self.machines_.n_iter, doc="Solver steps of each machine.")

    def _answer(self, X: np.ndarray) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray]:
        labels, paths, scores = zip(*self._each(lambda f: self.graph_.run(f), X), strict=True)
        return np.concatenate(labels), sparse.vstack(paths, format="csr"), np.concatenate(scores)

    def _labels(self, X: np.ndarray) -> np.ndarray:
        if X.shape[0] == 1:  # a walk takes a tenth of a block's time
            try:
                return np.array([self.graph_.walk(self._asked.walker(X[0]))])
            except (Unsure, GraphTooLarge):
                pass
        return np.concatenate(self._each(lambda f: self.graph_.labels(f), X))

    def _trained(self, sample: Sample, by_sign: bool = False) -> np.ndarray:
        """Machine outputs for the training rows; near them, but of the same signs, if only signs are asked for."""
        return sample.outputs(by_sign) if sample.outputs else self.machines_.decision(sample.X, n_jobs=self.n_jobs)

    def _each(self, ask: Callable, X: np.ndarray) -> list:
        """What `ask` says of the machines' outputs for the rows of X, a batch at a time.

        A graph that outgrows its limit of nodes is left to the calls that still read it; a new one takes half the rows.
        """
        bank = self._asked
        batch = max(bank.height, CELLS // len(bank.code))

        def parts(f: np.ndarray) -> list:
            try:
                return [ask(f)]
            except GraphTooLarge:
                self.graph_ = self._make_graph()
                return [ask(f)] if len(f) == 1 else [part for half in np.array_split(f, 2) for part in parts(half)]

        outputs = (bank.decision(X[k : k + batch], n_jobs=self.n_jobs) for k in range(0, X.shape[0], batch))
        return [part for f in outputs for part in parts(f)]


def rescaled(kernel: Kernel, X: np.ndarray) -> Kernel:
    """The kernel with inputs over their standard deviations on X; as in e1071, unscaled if one of them is constant."""
    n = X.shape[0]
    widths = np.sqrt(mean_variance_axis(X, axis=0)[1] * n / (n - 1)) if sparse.issparse(X) else X.std(axis=0, ddof=1)
    return replace(kernel, widths=tuple(widths.tolist())) if (widths > 0).all() else kernel
