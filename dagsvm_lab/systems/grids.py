"""Machines of one code for every C, gamma and fold, and what systems over them answer.

What is asked of them are the labels of held-out rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from ..bank import STATS, Bank
from ..machines import bank_over
from ..outputs import doubtful, in_single
from ..rows import prepared
from ..solvers.short import SHORT_ROWS
from .base import BankClassifier
from .sample import Sample
from .splits import GivenRows

# Coefficients of machines that one dense product asks; Vowel: seconds without it 1.1
ONE_PRODUCT = 1 << 17


@dataclass
class Fold:
    """The rows to train on and those held back, as a system is given them."""

    fit: np.ndarray  # indices of the rows to train on, among all
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    held: Any
    truth: np.ndarray
    held_weight: np.ndarray | None
    given: Any  # the held rows before `steps`
    steps: Any  # the pipeline's fitted steps before the system, or None
    # drafts with the rows they have checked, by their settings
    checked: dict[tuple, tuple[BankClassifier, Sample]] = field(default_factory=dict)
    # with their kernels, by gamma
    samples: dict[tuple, Sample] = field(default_factory=dict)


@dataclass
class Start:
    """A system before its training: the draft, its sample and its coding matrix."""

    draft: BankClassifier
    sample: Sample
    code: np.ndarray


class _Asked(NamedTuple):
    """The machines of the k-th C that a system asks."""

    k: int
    machines: np.ndarray | slice


class Grid:
    """Machines of one code and one kernel, trained on one sample, for every C."""

    def __init__(self, sample: Sample, banks: list[Bank], held: np.ndarray) -> None:
        self.sample = sample
        self.banks = banks
        self.rows = {"held": held, "trained": sample.X}
        self.known: dict[tuple, np.ndarray] = {}

    def outputs(self, rows: str, k: int, by_sign: bool) -> np.ndarray:
        """Outputs for the k-th C on the rows "held" or "trained": (rows, machines).

        If `by_sign`, numbers of the same signs; those of every C are computed at once.
        """
        if (rows, k, by_sign) not in self.known:
            banks = [self.banks[k]]
            if by_sign:  # machines that a larger C left as they were have the same coef
                different = {id(bank.coef): bank for bank in self.banks}
                banks = list(different.values())
            found = outputs_together(banks, self.sample, self.rows[rows])
            for bank, f in zip(banks, found, strict=True):
                for j, other in enumerate(self.banks):
                    if other.coef is bank.coef:
                        self.known[rows, j, by_sign] = f
        return self.known[rows, k, by_sign]

    def systems(self, draft: BankClassifier, Cs: list) -> list[BankClassifier]:
        """`draft` fitted over the machines of each C.

        One that learns nothing from the machines at work has one graph for all.
        """
        learns = type(draft)._after_training is not BankClassifier._after_training
        found: list[BankClassifier] = []
        for k, (C, bank) in enumerate(zip(Cs, self.banks, strict=True)):
            anew = learns or not found
            # what learns nothing from the machines takes over what the first has made
            before = draft if anew else found[-1]
            one = draft._with(vars(before) | {"C": C, "machines_": bank})
            if anew:
                sample = replace(self.sample, C=C, outputs=self._on_trained(k))
                one._before_training(sample)
                one._finish_fit(sample, bank)
            found.append(one)
        return found

    def _on_trained(self, k: int) -> Callable[[bool], np.ndarray]:
        return lambda by_sign: self.outputs("trained", k, by_sign)

    def answers(self, systems: list[BankClassifier]) -> list[np.ndarray]:
        """Labels that the systems of each C give to the held rows.

        The rows of systems with the same graph are asked at once.
        """
        held = self.rows["held"]
        found: dict[int, np.ndarray] = {}
        alike: dict[int, list[_Asked]] = {}  # by graph
        for k, (one, bank) in enumerate(zip(systems, self.banks, strict=True)):
            # of one row: only whether there is a first stage
            first_stage = one._entry(one.graph_, held[:1], exact=True)
            machines = None if first_stage else _kept(one.machines_, bank)
            if machines is None:
                found[k] = one._named(held, one._labels(held))
            else:
                alike.setdefault(id(one.graph_), []).append(_Asked(k, machines))
        for same in alike.values():
            graph = systems[same[0].k].graph_
            labels = graph.labels(self._stacked(same, graph.by_sign))
            parts = np.split(labels, len(same))
            for asked, part in zip(same, parts, strict=True):
                found[asked.k] = systems[asked.k]._named(held, part)
        return [found[k] for k in range(len(systems))]

    def _stacked(self, same: list[_Asked], by_sign: bool) -> np.ndarray:
        """Outputs on the held rows of some values of C, one below the other."""
        parts = []
        for asked in same:
            f = self.outputs("held", asked.k, by_sign)
            parts.append(f[:, asked.machines])
        return np.concatenate(parts)


def _kept(asked: Bank, bank: Bank) -> np.ndarray | slice | None:
    """Which of the bank's machines a system asks; None if it asks others."""
    if asked is bank:
        return slice(None)
    same_code = (asked.code[:, None] == bank.code).all(axis=2)  # (asked, machines)
    place = same_code.argmax(axis=1)
    return place if np.array_equal(asked.bias, bank.bias[place]) else None


def grids(
    starts: list[list[Start]],
    Cs: list,
    folds: list[Fold],
    whole: GivenRows | None,
) -> list[list[Grid]]:
    """The machines of every fold (`starts`: folds x gammas) for every gamma and C.

    Small ones share kernel values and steps: those of all gammas, and those of all
    folds if `whole` gives the rows of which the folds' rows are some.
    """
    path = sorted(set(Cs))
    first = starts[0]
    options = [one.draft._training_options(one.sample, one.code) for one in first]
    small = _longest(first[0]) <= SHORT_ROWS and not any(options)
    if len(starts) == 1:
        banks = [_banks_of_one(first, options, path, small)]
    elif small and whole is not None and _alike(starts, whole.y, folds):
        banks = _banks_of_folds(first, path, folds, whole)
    else:
        alone = []
        for of_fold, fold in zip(starts, folds, strict=True):
            alone += grids([of_fold], Cs, [fold], None)
        return alone
    # in the order of Cs, which may be any, and may repeat a value
    places = [path.index(C) for C in Cs]
    return _grids_of_banks(starts, banks, places, folds)


def _grids_of_banks(
    starts: list[list[Start]],
    banks: list[list[list[Bank]]],
    places: list[int],
    folds: list[Fold],
) -> list[list[Grid]]:
    """The grids of banks (folds x gammas x values of C), of the C at these places."""
    found = []
    for of_fold, fold_banks, fold in zip(starts, banks, folds, strict=True):
        of_gammas = []
        for start, on_path in zip(of_fold, fold_banks, strict=True):
            of_Cs = [on_path[k] for k in places]
            of_gammas.append(Grid(start.sample, of_Cs, fold.held))
        found.append(of_gammas)
    return found


def _longest(start: Start) -> int:
    """Rows of the machine that has most."""
    in_class = np.bincount(start.sample.codes)
    in_machine = np.abs(start.code) @ in_class
    return in_machine.max()


def _banks_of_one(
    starts: list[Start], options: list[dict], path: list, small: bool
) -> list[list[Bank]]:
    """Banks of one fold for every gamma and C; small machines take steps together."""
    if small:
        kernels = [one.sample.kernel for one in starts]
        first = starts[0]
        return first.draft._train_grid(first.sample, first.code, kernels, path)
    banks = []
    for one, own in zip(starts, options, strict=True):
        kernel = [one.sample.kernel]
        banks += one.draft._train_grid(one.sample, one.code, kernel, path, **own)
    return banks


def _banks_of_folds(
    starts: list[Start], path: list, folds: list[Fold], whole: GivenRows
) -> list[list[list[Bank]]]:
    """Banks of every fold, kernel and C, trained together as sets of the whole rows."""
    start = starts[0]
    kernels = [one.sample.kernel for one in starts]
    _, codes = np.unique(whole.y, return_inverse=True)
    sample = Sample(whole.X, codes, start.sample.kernel, None, None)
    n_folds = len(folds)
    sets = np.zeros((n_folds, len(codes)), dtype=bool)
    for inside, fold in zip(sets, folds, strict=True):
        inside[fold.fit] = True
    # the banks of each C for the first kernel's folds, then for the next kernel's
    trained = start.draft._train_grid(sample, start.code, kernels, path, sets=sets)
    found = []
    for f, inside in enumerate(sets):
        of_kernels = trained[f::n_folds]
        found.append([_among(of_Cs, inside) for of_Cs in of_kernels])
    return found


def _alike(starts: list[list[Start]], y: np.ndarray, folds: list[Fold]) -> bool:
    """Whether all folds have the same kernels, classes and codes.

    Their rows have to be without weights, and in the order of all rows.
    """
    classes = np.unique(y)
    code = starts[0][0].code
    first_kernels = [one.sample.kernel for one in starts[0]]
    for of_fold, fold in zip(starts, folds, strict=True):
        kernels = [one.sample.kernel for one in of_fold]
        start = of_fold[0]
        if kernels != first_kernels:
            return False
        if start.sample.bound_factor is not None:
            return False
        if not np.array_equal(start.draft.classes_, classes):
            return False
        if not np.array_equal(start.code, code):
            return False
        if not (np.diff(fold.fit) > 0).all():
            return False
    return True


def _among(banks: list[Bank], inside: np.ndarray) -> list[Bank]:
    """Banks that count support vectors among these rows alone.

    `inside` (rows,) says which of the whole rows they are.
    """
    place = np.cumsum(inside) - 1  # of each of the whole rows, among these
    n = np.count_nonzero(inside)
    found = []
    for bank in banks:
        # kernel values are inputs, one for each row
        n_inputs = n if bank.vectors is None else bank.n_inputs
        support = place[bank.support]
        found.append(replace(bank, support=support, n_rows=n, n_inputs=n_inputs))
    return found


def outputs_together(
    banks: list[Bank], sample: Sample, X: np.ndarray
) -> list[np.ndarray]:
    """Outputs for the rows of X of banks trained on `sample` with one kernel.

    Each kernel value is computed once. They are those of `Bank.decision` up to
    rounding, and have the same signs.
    """
    first = banks[0]
    if len(banks) == 1 or first.kernels is not None or issparse(X):
        return [bank.decision(X) for bank in banks]
    coef = vstack([_on_rows(bank) for bank in banks], format="csr")
    used, column = np.unique(coef.indices, return_inverse=True)
    shape = (coef.shape[0], len(used))  # (machines of all banks, support vectors)
    single = False  # whether outputs are of float32, as the bank's own are then
    if np.prod(shape) <= ONE_PRODUCT and first.vectors is not None:
        weights = csr_matrix((coef.data, column, coef.indptr), shape).toarray()
        vectors = prepared(sample.X[used], first.kernel)
        with np.errstate(over="ignore", invalid="ignore"):
            K = vectors.block(vectors.transform(X))
            f = K @ weights.T  # (rows, machines of all banks)
        f += np.concatenate([bank.bias for bank in banks])
        if not np.isfinite(f).all():  # the banks say why
            return [bank.decision(X) for bank in banks]
    else:
        single = all(in_single(bank.vectors, bank.kernel, bank.coef) for bank in banks)
        f = _one_bank(banks, sample, coef).decision(X, fast=single)
    found = np.split(f, len(banks), axis=1)
    # an output whose sign rounding might change is computed as its bank would
    times = 2 if single else 1
    for part, bank in zip(found, banks, strict=True):
        doubt = doubtful(part, bank.vectors, bank.kernel, bank.coef, X, times)
        if len(doubt):
            part[doubt] = bank.decision(X[doubt])
    return found


def _on_rows(bank: Bank) -> csr_matrix:
    """The bank's coefficients, with a column for each row it was trained on."""
    coef = bank.coef
    columns = bank.support[coef.indices]  # among all rows, not among vectors
    shape = (coef.shape[0], bank.n_rows)
    return csr_matrix((coef.data, columns, coef.indptr), shape)


def _one_bank(banks: list[Bank], sample: Sample, coef: csr_matrix) -> Bank:
    """The machines of all these banks as one, with the coefficients `coef`."""
    joined = {}
    for name in ("code", "C", *STATS):
        joined[name] = np.concatenate([getattr(bank, name) for bank in banks])
    return bank_over(
        sample.X,
        sample.codes,
        coef,
        banks[0].kernel,
        kernels=None,
        labels="",
        **joined,
    )
