"""Machines of one code for every C, gamma and fold, and what systems over them answer.

What is asked of them are the labels of held-out rows.
"""

from dataclasses import dataclass, field, replace
from typing import Any

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
    samples: dict = field(default_factory=dict)  # checked, by what they depend on


@dataclass
class Start:
    """A system before its training: the draft, its sample and its coding matrix."""

    draft: BankClassifier
    sample: Sample
    code: np.ndarray


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
                banks = list({id(bank.coef): bank for bank in self.banks}.values())
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
            # what learns nothing from the machines takes over what the first has made
            before = draft if learns or not found else found[-1]
            one = draft._with(vars(before) | {"C": C, "machines_": bank})
            if learns or not found:
                sample = replace(self.sample, C=C, outputs=self._on_trained(k))
                one._before_training(sample)
                one._finish_fit(sample, bank)
            found.append(one)
        return found

    def _on_trained(self, k: int):
        return lambda by_sign: self.outputs("trained", k, by_sign)

    def answers(self, systems: list[BankClassifier]) -> list[np.ndarray]:
        """Labels that the systems of each C give to the held rows.

        The rows of systems with the same graph are asked at once.
        """
        held = self.rows["held"]
        found: dict[int, np.ndarray] = {}
        alike: dict[int, list[tuple[int, np.ndarray | slice]]] = {}
        for k, (one, bank) in enumerate(zip(systems, self.banks, strict=True)):
            first_stage = one._entry(one.graph_, held[:1], exact=True)
            kept = None if first_stage else _kept(one.machines_, bank)
            if kept is None:
                found[k] = one._named(held, one._labels(held))
            else:
                alike.setdefault(id(one.graph_), []).append((k, kept))
        for same in alike.values():
            graph = systems[same[0][0]].graph_
            labels = graph.labels(self._stacked(same, by_sign=True))
            if not graph.by_sign:
                labels = graph.labels(self._stacked(same, by_sign=False))
            parts = np.split(labels, len(same))
            for (k, _), part in zip(same, parts, strict=True):
                found[k] = systems[k]._named(held, part)
        return [found[k] for k in range(len(systems))]

    def _stacked(self, same: list[tuple], by_sign: bool) -> np.ndarray:
        """Outputs on the held rows of some values of C, one below the other."""
        parts = [self.outputs("held", k, by_sign)[:, kept] for k, kept in same]
        return np.concatenate(parts)


def _kept(asked: Bank, bank: Bank) -> np.ndarray | slice | None:
    """Which of the bank's machines a system asks; None if it asks others."""
    if asked is bank:
        return slice(None)
    same_code = (asked.code[:, None] == bank.code).all(axis=2)  # (asked, machines)
    kept = same_code.argmax(axis=1)
    return kept if np.array_equal(asked.bias, bank.bias[kept]) else None


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
    options = [one.draft._training_options(one.sample, one.code) for one in starts[0]]
    small = _longest(starts[0][0]) <= SHORT_ROWS and not any(options)
    if len(starts) == 1:
        banks = [_banks_of_one(starts[0], options, path, small)]
    elif small and whole is not None and _alike(starts, whole.y, folds):
        banks = _banks_of_folds(starts[0], path, folds, whole)
    else:
        pairs = zip(starts, folds, strict=True)
        return [grids([own], Cs, [fold], None)[0] for own, fold in pairs]
    at = [path.index(C) for C in Cs]
    found = []
    for of_fold, of_banks, fold in zip(starts, banks, folds, strict=True):
        grid = []
        for one, own in zip(of_fold, of_banks, strict=True):
            # in the order of Cs, which may be any, and may repeat a value
            grid.append(Grid(one.sample, [own[k] for k in at], fold.held))
        found.append(grid)
    return found


def _longest(start: Start) -> int:
    """Rows of the machine that has most."""
    return (np.abs(start.code) @ np.bincount(start.sample.codes)).max()


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
    codes = np.unique(whole.y, return_inverse=True)[1]
    sample = Sample(whole.X, codes, start.sample.kernel, None, None)
    places = np.arange(len(codes))
    sets = np.array([np.isin(places, fold.fit) for fold in folds])  # (folds, rows)
    # the banks of each C for the first kernel's folds, then for the next kernel's
    trained = start.draft._train_grid(sample, start.code, kernels, path, sets=sets)
    n = len(sets)
    return [_among(trained[f::n], inside) for f, inside in enumerate(sets)]


def _alike(starts: list[list[Start]], y: np.ndarray, folds: list[Fold]) -> bool:
    """Whether all folds have the same kernels, classes and codes.

    Their rows have to be without weights, and in the order of all rows.
    """
    first = starts[0]
    classes = np.unique(y)
    for of_fold, fold in zip(starts, folds, strict=True):
        kernels = [one.sample.kernel for one in of_fold]
        if kernels != [one.sample.kernel for one in first]:
            return False
        if of_fold[0].sample.bound_factor is not None:
            return False
        if not np.array_equal(of_fold[0].draft.classes_, classes):
            return False
        if not np.array_equal(of_fold[0].code, first[0].code):
            return False
        if not (np.diff(fold.fit) > 0).all():
            return False
    return True


def _among(banks: list[list[Bank]], inside: np.ndarray) -> list[list[Bank]]:
    """Banks (kernels, values of C) that count support vectors among these rows alone.

    `inside` (rows,) says which of the whole rows they are.
    """
    place = np.cumsum(inside) - 1  # of each of the whole rows, among these
    n = len(place[inside])

    def among(bank: Bank) -> Bank:
        inputs = n if bank.vectors is None else bank.n_inputs
        return replace(bank, support=place[bank.support], n_rows=n, n_inputs=inputs)

    return [[among(bank) for bank in of_kernel] for of_kernel in banks]


def outputs_together(
    banks: list[Bank], sample: Sample, X: np.ndarray
) -> list[np.ndarray]:
    """Outputs for the rows of X of banks trained on `sample` with one kernel.

    Each kernel value is computed once. They are those of `Bank.decision` up to
    rounding, and have the same signs.
    """
    if len(banks) == 1 or banks[0].kernels is not None or issparse(X):
        return [bank.decision(X) for bank in banks]
    coef = vstack([_on_rows(bank) for bank in banks], format="csr")
    used, column = np.unique(coef.indices, return_inverse=True)
    single = False  # whether outputs are of float32, as the bank's own are then
    if coef.shape[0] * len(used) <= ONE_PRODUCT and banks[0].vectors is not None:
        rows = prepared(sample.X[used], banks[0].kernel)
        parts = (coef.data, column, coef.indptr)
        weights = csr_matrix(parts, shape=(coef.shape[0], len(used))).toarray()
        with np.errstate(over="ignore", invalid="ignore"):
            K = rows.block(rows.transform(X))
            f = K @ weights.T  # (rows, machines of all banks)
        f += np.concatenate([bank.bias for bank in banks])
        if not np.isfinite(f).all():  # the banks say why
            return [bank.decision(X) for bank in banks]
    else:
        single = all(in_single(bank.vectors, bank.kernel, bank.coef) for bank in banks)
        f = _one_bank(banks, sample, coef).decision(X, fast=single)
    found = np.split(f, len(banks), axis=1)
    times = 2 if single else 1
    for part, bank in zip(found, banks, strict=True):
        doubt = doubtful(part, bank.vectors, bank.kernel, bank.coef, X, times)
        if len(doubt):
            part[doubt] = bank.decision(X[doubt])
    return found


def _on_rows(bank: Bank) -> csr_matrix:
    """The bank's coefficients, with a column for each row it was trained on."""
    columns = bank.support[bank.coef.indices]  # among all rows, not among vectors
    shape = (bank.coef.shape[0], bank.n_rows)
    return csr_matrix((bank.coef.data, columns, bank.coef.indptr), shape=shape)


def _one_bank(banks: list[Bank], sample: Sample, coef: csr_matrix) -> Bank:
    """The machines of all these banks as one, with the coefficients `coef`."""
    names = ("code", "C", *STATS)
    joined = {n: np.concatenate([getattr(bank, n) for bank in banks]) for n in names}
    return bank_over(
        sample.X,
        sample.codes,
        coef,
        banks[0].kernel,
        kernels=None,
        labels="",
        **joined,
    )
