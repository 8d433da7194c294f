"""A system: a bank of two-class machines, and the graph that says which to ask."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..bank import Bank
from ..evaluate import KnownOutputs, NeedsBlocks
from ..graphs import Graph, GraphTooLarge
from ..kernels import Kernel
from ..machines import SETTINGS, pair_code, train_grid
from ..threads import one_thread
from .classifier import KernelClassifier
from .mismatch import mismatch
from .sample import Sample

CELLS = 1 << 22  # machine outputs that are held at once: 32 MB


@dataclass
class Entry:
    """Where rows enter a graph."""

    nodes: np.ndarray  # (rows,), as from `DecisionGraph.entries`
    unsure: np.ndarray  # bool (rows,): whether rounding might change the node
    steps: float  # machines that a row is expected to meet from there


class BankClassifier(KernelClassifier):
    """A system: a bank of two-class machines and the graph that says which to ask.

    A subclass says, in the order in which a fit asks for it:

    `_before_training(sample)`
        what must be known before any machine is trained; it refuses what cannot be.
    `_coding_matrix(sample)`
        which machines to train, if not those of all pairs.
    `_training_options(sample, code)`
        what differs from machine to machine: C, kernels, soft labels.
    `_after_training(sample)`
        what must be learnt from the machines at work on the training rows. A system
        that learns nothing there has the same graph whatever C is.
    `_make_graph()`
        how the machines are asked: the `Graph` over them, made from fitted attributes
        alone.
    `_entry(X, exact)`
        where rows enter the graph, if a first stage stands before it.

    (A classifier without a graph has `_answer` instead: see `KernelClassifier`.)

    Attributes
    ----------
    graph_ : DecisionGraph or Ballot
        Which machines are asked, in which order, and what follows from their answers.
    """

    scale_pairs = None  # a parameter where machines may have their own scales
    _label_kind = None  # `Bank.labels` that are needed, if hard or soft will not do

    def fit_over(self, bank: Bank, X, y, sample_weight=None) -> Self:
        """Fit over machines that are trained already: only the graph is made.

        Kernel, C and the kind of labels are those of the bank, whatever this
        estimator's parameters say.

        Parameters
        ----------
        bank : Bank
            Machines trained on these rows and labels, as another system's `machines_`.

        Returns
        -------
        self : object
            This estimator.
        """
        return self._fit_atomically(X, y, sample_weight, bank)

    # ---- what a system says

    def _before_training(self, sample: Sample) -> None:
        """Set what is known before training, and refuse what cannot be trained."""

    def _coding_matrix(self, sample: Sample) -> np.ndarray:
        """Coding matrix of the machines to train: (machines, classes)."""
        return pair_code(sample.n_classes)

    def _training_options(self, sample: Sample, code: np.ndarray) -> dict[str, Any]:
        """What differs from machine to machine, as arguments of `machines.train`."""
        if not self.scale_pairs:
            return {}
        kernels = []
        for row in code:
            own = row[sample.codes] != 0  # rows of the machine's classes
            kernels.append(rescaled(sample.kernel, sample.X[own]))
        return {"kernels": kernels}

    def _after_training(self, sample: Sample) -> None:
        """Set what must be learnt from the machines at work on the training rows."""

    # ---- how it is fitted

    def _fit(self, sample: Sample) -> None:
        self._before_training(sample)
        code = self._coding_matrix(sample)
        bank = sample.bank
        if bank is None:
            bank = self._train(sample, code, **self._training_options(sample, code))
        elif reason := mismatch(self, sample, bank, code):
            name = type(self).__name__
            raise ValueError(f"{name} cannot be fitted over this bank: {reason}")
        self._finish_fit(sample, bank)

    def _finish_fit(self, sample: Sample, bank: Bank) -> None:
        """Set what follows from the trained machines."""
        self.machines_ = bank
        self._after_training(sample)
        self.graph_ = self._make_graph()

    def _train(self, sample: Sample, code: np.ndarray, **options) -> Bank:
        """The machines of `code`, trained on `sample`."""
        Cs = [options.pop("C", sample.C)]
        return self._train_grid(sample, code, [sample.kernel], Cs, **options)[0][0]

    def _train_grid(
        self, sample: Sample, code: np.ndarray, grid: list, Cs: list, **options
    ) -> list[list[Bank]]:
        """The machines of `code` for every kernel of `grid` and every C, which rise."""
        return train_grid(
            sample.X,
            sample.codes,
            code,
            grid,
            Cs,
            weight=sample.bound_factor,
            **self._solver_settings(SETTINGS),
            **options,
        )

    def _training_outputs(self, sample: Sample, by_sign: bool = False) -> np.ndarray:
        """Machine outputs for the training rows: (rows, machines).

        If only their signs are asked for, numbers near them of the same signs.
        """
        if sample.outputs:
            return sample.outputs(by_sign)
        return self.machines_.decision(sample.X, n_jobs=self.n_jobs)

    # ---- how it is kept

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        self.graph_ = self._make_graph()

    def __getstate__(self):
        state = super().__getstate__().items()
        # a graph holds functions, which do not pickle; it is made anew
        return {name: value for name, value in state if name != "graph_"}

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if "machines_" in state:
            self.graph_ = self._make_graph()

    @property
    def n_iter_(self) -> np.ndarray:
        """Solver steps of each machine."""
        return self.machines_.n_iter

    # ---- what it answers

    def _answer(
        self, X: np.ndarray, scored: bool = True
    ) -> tuple[np.ndarray, sparse.csr_matrix, np.ndarray | None]:
        def read(graph: Graph, asked, start) -> tuple:
            labels, paths, scores = graph.trace(asked, start, scored)
            return (labels, paths, scores) if scored else (labels, paths)

        # scores keep their bits in any batch: they come from blocks of one shape
        found = self._read(read, X, exact=scored or self.graph_.asks_all)
        return found if scored else (*found, None)

    def _labels(self, X: np.ndarray) -> np.ndarray:
        if X.shape[0] == 1:  # NumPy's calls for a batch would cost more
            try:
                return np.array([self._label_of_row(X)])
            except (NeedsBlocks, GraphTooLarge):
                pass

        def read(graph: Graph, asked, start) -> tuple:
            return (graph.answer(asked, start),)

        return self._read(read, X, exact=False)[0]

    def _label_of_row(self, X: np.ndarray) -> int:
        """The label of the one row of X; raises `NeedsBlocks` where blocks decide."""
        graph = self.graph_
        start = 0
        steps = graph.expected_steps
        with one_thread():
            entry = self._entry(graph, X, exact=False)
            if entry is not None:
                if entry.unsure[0]:
                    raise NeedsBlocks("the first stage is in doubt")
                start = int(entry.nodes[0])
                steps = entry.steps
            return graph.walk(self.machines_.walker(X[0], steps), start)

    def _entry(self, graph: Graph, X: np.ndarray, exact: bool) -> Entry | None:
        """Where rows enter `graph`, for a system with a first stage before it.

        None: all at the root. If `exact`, an answer must depend on its row alone, to
        the bit, and none is in doubt.
        """
        return None

    def _read(self, read: Callable, X: np.ndarray, exact: bool) -> tuple:
        """What `read(graph, asked, start)` says of the rows of X, batch by batch.

        `read` gives a tuple of arrays with one row for each row that is asked. If
        `exact`, it is given the outputs of blocks.
        """
        bank = self.machines_
        n = X.shape[0]
        jobs = effective_n_jobs(self.n_jobs)
        # a batch a job, but no block of rows cut in two, and CELLS outputs at the most
        most = max(bank.block_rows, CELLS // len(bank.code))
        a_job = -(-n // jobs)
        size = min(most, max(bank.block_rows, a_job))
        batches = [X[first : first + size] for first in range(0, n, size)]
        if len(batches) == 1:
            parts = [self._read_batch(read, X, exact)]
        else:
            parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            ask = delayed(self._read_batch)
            parts = parallel(ask(read, part, exact) for part in batches)
        return _joined(parts)

    def _read_batch(self, read: Callable, X: np.ndarray, exact: bool) -> tuple:
        """`_read` of one batch.

        A graph that outgrows its limit of nodes is left to the calls that still read
        it; a new one takes half the rows.
        """
        try:
            return self._read_over(self.graph_, read, X, exact)
        except GraphTooLarge:
            self.graph_ = self._make_graph()
            if X.shape[0] == 1:
                return self._read_over(self.graph_, read, X, exact)
            half = X.shape[0] // 2
            halves = X[:half], X[half:]
            parts = [self._read_batch(read, part, exact) for part in halves]
            return _joined(parts)

    def _read_over(
        self, graph: Graph, read: Callable, X: np.ndarray, exact: bool
    ) -> tuple:
        """`_read` of one batch over a graph; rows in doubt are answered from blocks."""
        bank = self.machines_
        with one_thread():
            entry = self._entry(graph, X, exact)
            start = None if entry is None else entry.nodes
            steps = graph.expected_steps if entry is None else entry.steps
            if exact:
                asked = KnownOutputs(bank.decision(X))
            else:
                asked = bank.evaluator(X, steps, every=graph.asks_all)
            if entry is not None:
                asked.unsure |= entry.unsure
            found = read(graph, asked, start)
            redo = np.flatnonzero(asked.unsure)
            if not redo.size:
                return found
            entry = self._entry(graph, X[redo], exact=True)
            start = None if entry is None else entry.nodes
            again = read(graph, KnownOutputs(bank.decision(X[redo])), start)
        # what was read again stands behind the rest: rows `redo` take it from there
        place = np.arange(X.shape[0])
        place[redo] = len(place) + np.arange(len(redo))
        return tuple(part[place] for part in _joined([found, again]))

    def _each(self, read: Callable, X: np.ndarray) -> np.ndarray:
        """What `read` says of all machines' outputs for the rows of X, in batches."""
        bank = self.machines_
        size = max(bank.block_rows, CELLS // len(bank.code))
        found = []
        for first in range(0, X.shape[0], size):
            batch = X[first : first + size]
            found.append(read(bank.decision(batch, n_jobs=self.n_jobs)))
        return np.concatenate(found)


def _joined(parts: list[tuple]) -> tuple:
    """Tuples of arrays, dense or CSR, joined array by array."""
    if len(parts) == 1:
        return parts[0]
    joined = []
    for arrays in zip(*parts, strict=True):
        if sparse.issparse(arrays[0]):
            joined.append(sparse.vstack(arrays, format="csr"))
        else:
            joined.append(np.concatenate(arrays))
    return tuple(joined)


def rescaled(kernel: Kernel, X: np.ndarray) -> Kernel:
    """The kernel with inputs over their standard deviations on X.

    As in e1071 it stays unscaled if one of the inputs is constant.
    """
    n = X.shape[0]
    if sparse.issparse(X):
        _, variance = mean_variance_axis(X, axis=0)
        widths = np.sqrt(variance * n / (n - 1))
    else:
        widths = X.std(axis=0, ddof=1)
    if not (widths > 0).all():
        return kernel
    return replace(kernel, widths=tuple(widths.tolist()))
