"""Machines of one code for every C, gamma and fold, and what systems over them answer to held-out rows."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix, issparse, vstack

from ..kernels import prepared
from ..machines import STATS, Bank, bank_over
from ..outputs import doubtful, in_single
from ..solvers.small import SMALL
from .base import BankClassifier
from .classifier import Sample

PLAIN = 1 << 17  # coefficients of machines that are asked by one dense product; Vowel: never 1.1


class Grid:
    """Machines of one code and one kernel for every C, and what they answer to held-out rows and to their own."""

    def __init__(self, sample: Sample, banks: list[Bank], held: np.ndarray) -> None:
        self.sample, self.banks = sample, banks
        self.rows = {"held": held, "trained": sample.X}
        self.known: dict[tuple, np.ndarray] = {}

    def outputs(self, rows: str, k: int, by_sign: bool) -> np.ndarray:
        """Outputs, or numbers of the same signs, for the k-th value of C on the rows "held" or "trained"."""
        if (rows, k, by_sign) not in self.known:
            banks = list({id(bank.coef): bank for bank in self.banks}.values()) if by_sign else [self.banks[k]]
            for bank, f in zip(banks, together(banks, self.sample, self.rows[rows]), strict=True):
                same = [j for j, other in enumerate(self.banks) if other.coef is bank.coef]
                self.known |= {(rows, j, by_sign): f for j in same}
        return self.known[rows, k, by_sign]

    def answers(self, draft: BankClassifier, Cs: list) -> list[np.ndarray]:
        """Labels that `draft` gives to the held rows over the machines of each C, the rows of one graph at once."""
        held, found, alike, one = self.rows["held"], {}, {}, draft
        learns = type(draft)._study is not BankClassifier._study
        for k, (C, bank) in enumerate(zip(Cs, self.banks, strict=True)):
            one = draft._with(vars(draft if learns else one) | {"C": C, "machines_": bank})
            if learns or not k:
                sample = replace(self.sample, C=C, outputs=lambda by_sign, k=k: self.outputs("trained", k, by_sign))
                one._settle(sample)
                one._finish(sample, bank)
            kept = slice(None)
            if (own := one._asked) is not bank:  # a tree keeps some of them or has trained others, glances have more
                kept = (own.code[:, None] == bank.code).all(2).argmax(1)
                if not np.array_equal(own.bias, bank.bias[kept]):
                    found[k] = one.predict(held)
                    continue
            alike.setdefault(id(one.graph_), []).append((k, one, kept))
        for same in alike.values():
            graph = same[0][1].graph_
            labels = graph.labels(self._stacked(same, True))
            if not graph.by_sign:  # which a graph that grows may find out on the way
                labels = graph.labels(self._stacked(same, False))
            for (k, one, _), part in zip(same, np.split(labels, len(same)), strict=True):
                found[k] = one._named(held, part)
        return [found[k] for k in range(len(Cs))]

    def _stacked(self, same: list[tuple], by_sign: bool) -> np.ndarray:
        return np.concatenate([self.outputs("held", k, by_sign)[:, kept] for k, _, kept in same])


def grids(started: list[list], Cs: list, held: list, X, y, trained: list) -> list[list[Grid]]:
    """The machines of every fold for every gamma of `started`; small ones share kernel values and steps."""
    draft, sample, code = started[0][0]
    special = [one._special(own, code) for one, own, code in started[0]]
    small = (np.abs(code) @ np.bincount(sample.codes)).max() <= SMALL and not any(special)
    if len(started) > 1 and not (small and _alike(started, y, trained)):
        return [grids([of], Cs, [rows], X, y, [fit])[0] for of, rows, fit in zip(started, held, trained, strict=True)]
    kernels, path = [own.kernel for _, own, _ in started[0]], sorted(set(Cs))
    if len(started) > 1:
        sets = np.array([np.isin(np.arange(len(y)), fit) for fit in trained])
        whole = Sample(X, np.unique(y, return_inverse=True)[1], sample.kernel, None, None)
        found = draft._train_grid(whole, code, kernels, path, sets=sets)
        banks = [[[_among(bank, fit) for bank in of] for of in found[f :: len(sets)]] for f, fit in enumerate(sets)]
    elif small:
        banks = [draft._train_grid(sample, code, kernels, path)]
    else:
        runs = zip(started[0], special, strict=True)
        banks = [[one._train_grid(own, code, [own.kernel], path, **more)[0] for (one, own, _), more in runs]]
    at = [path.index(C) for C in Cs]
    return [[Grid(own, [of[k] for k in at], rows) for (_, own, _), of in zip(*both, strict=True)]
            for *both, rows in zip(started, banks, held, strict=True)]  # fmt: skip


def _alike(started: list[list], y: np.ndarray, trained: list) -> bool:
    """Whether the folds' machines are those of the same code and kernels on parts of the same rows, in their order."""
    drafts, samples, codes = zip(*(some[0] for some in started), strict=True)
    kernels = [[own.kernel for _, own, _ in some] for some in started]
    classes = [np.unique(y), *(draft.classes_ for draft in drafts)]
    return (
        all(own == kernels[0] for own in kernels)
        and all(map(np.array_equal, classes, classes[1:]))
        and all(map(np.array_equal, codes, codes[1:]))
        and all(own.weight is None for own in samples)
        and all((np.diff(rows) > 0).all() for rows in trained)
    )


def _among(bank: Bank, inside: np.ndarray) -> Bank:
    """A bank that counts its support vectors among these rows alone."""
    n = int(inside.sum())
    inputs = bank.n_inputs if bank.vectors is not None else n
    return replace(bank, support=np.cumsum(inside)[bank.support] - 1, n_rows=n, n_inputs=inputs)


def together(banks: list[Bank], sample: Sample, X: np.ndarray) -> list[np.ndarray]:
    """Outputs for the rows of X of banks trained on `sample` with one kernel, each kernel value computed once.

    They are those of `Bank.decision` up to rounding, and have the same signs.
    """
    if len(banks) == 1 or banks[0].kernels is not None or issparse(X):
        return [bank.decision(X) for bank in banks]
    parts = [(bank.coef.data, bank.support[bank.coef.indices], bank.coef.indptr) for bank in banks]
    coef = vstack([csr_matrix(part, (len(part[2]) - 1, len(sample.codes))) for part in parts], format="csr")
    used, column = np.unique(coef.indices, return_inverse=True)
    single = False  # whether outputs here are of float32, as the bank's own are then
    if (cells := coef.shape[0] * len(used)) <= PLAIN and banks[0].vectors is not None:
        rows, weights = prepared(sample.X[used], banks[0].kernel), np.zeros(cells)
        weights[np.repeat(np.arange(coef.shape[0]) * len(used), np.diff(coef.indptr)) + column] = coef.data
        with np.errstate(over="ignore", invalid="ignore"):
            every = rows.block(rows.place(X)) @ weights.reshape(-1, len(used)).T
        every += np.concatenate([bank.bias for bank in banks])
        if not np.isfinite(every).all():  # the banks say why
            return [bank.decision(X) for bank in banks]
    else:
        more = {name: np.concatenate([getattr(bank, name) for bank in banks]) for name in ("code", "C", *STATS)}
        whole = bank_over(sample.X, sample.codes, coef, banks[0].kernel, kernels=None, labels="", **more)
        single = all(in_single(bank.vectors, bank.kernel, bank.coef) for bank in banks)
        every = whole.decision(X, fast=single)
    found = np.split(every, len(banks), axis=1)
    for f, bank in zip(found, banks, strict=True):
        doubt = doubtful(f, bank.vectors, bank.kernel, bank.coef, X, 1 + single)
        if len(doubt):
            f[doubt] = bank.decision(X[doubt])
    return found
