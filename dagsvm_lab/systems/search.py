"""Choosing C and gamma by cross-validation, for several systems at the price of one.

A fold's machines are trained from the smallest C to the largest over the same kernel values, and only where a larger
bound changes them (machines.py, `train_grid`); for the held rows, too, a kernel value is computed once for every C.
What is left for a system is its graph: systems that ask the same machines (Max Wins, the DAGs, the trees, DCSVM) share
all of that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import csr_matrix, issparse, vstack
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils.metaestimators import _safe_split

from ..kernels import prepared
from ..machines import STATS, Bank, bank_over
from ..outputs import doubtful, in_single
from ..solvers.small import SMALL
from .base import BankClassifier
from .classifier import KernelClassifier, Sample

NOT_THE_BANKS = {"C", "gamma", "n_jobs", "verbose"}  # parameters that may differ among systems that share machines
FEW = 300  # rows up to which small machines of all gammas take their steps together; Glass: apart 1.2; Vowel: .85
FOLDS = 10  # whose small machines take their steps together
PLAIN = 1 << 17  # coefficients of machines that are asked by one dense product; Vowel: never 1.1
SHARED = 1 << 23  # kernel values that folds share; Letter, 4,000 rows, twice as many: 1.06, two jobs 1.11
PREPARED = ("classes_", "n_features_in_", "feature_names_in_")


@dataclass
class Tuned:
    """What `tune` found, under the names that scikit-learn's GridSearchCV gives it.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray
        `params`, `param_C`, `param_gamma`, `split0_test_score` ..., `mean_test_score`, `std_test_score` and
        `rank_test_score`, one entry a candidate in the order of scikit-learn's ParameterGrid.
    best_index_ : int
        The candidate with the best mean score, the first of equals.
    best_params_ : dict
        Its C and gamma.
    best_score_ : float
        Its mean score.
    best_estimator_ : object
        The estimator with these parameters, fitted to all rows; None if `refit` was False.
    """

    cv_results_: dict[str, Any]
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    best_estimator_: Any = None

    def predict(self, X) -> np.ndarray:
        """Predict with the best estimator."""
        return self.best_estimator_.predict(X)


def tune(estimator: Any, X, y, *, C: Iterable | None = None, gamma: Iterable | None = None, cv: Any = 5,
         refit: bool = True, n_jobs: int | None = None) -> Any:  # fmt: skip
    """Choose C and gamma by validation accuracy.

    Parameters
    ----------
    estimator : estimator or list of estimators
        What to tune. Of a list, those that ask the same machines share them.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Their labels.
    C : iterable of float, default=None
        Values to try; None keeps the estimator's.
    gamma : iterable of float, default=None
        Values to try; None keeps the estimator's.
    cv : int, splitter, iterable of splits, or a pair (X_valid, y_valid), default=5
        Folds, as for scikit-learn's GridSearchCV, or one validation set.
    refit : bool, default=True
        Fit the best candidate to all rows.
    n_jobs : int, default=None
        Folds that are worked on in parallel, as in joblib.

    Returns
    -------
    found : Tuned or list of Tuned
        One for each estimator.

    Examples
    --------
    >>> from dagsvm_lab import DAGSVC, MaxWinsSVC, load, tune
    >>> d = load("iris", scaled=True)
    >>> wins, dag = tune([MaxWinsSVC(), DAGSVC()], d.X, d.y, C=[1, 10], gamma=[0.1, 1], cv=3)
    >>> dag.best_params_ == wins.best_params_, dag.best_score_ > 0.9
    (True, True)
    """
    several = isinstance(estimator, list | tuple)
    ests = [clone(est) for est in (estimator if several else [estimator])]
    X, y = X.tocsr() if issparse(X) else np.asarray(X), np.asarray(y)
    rows, labels, folds = _folds(X, y, cv)
    values = {name: None if v is None else list(v) for name, v in (("C", C), ("gamma", gamma))}
    grid = list(ParameterGrid({name: v for name, v in values.items() if v is not None}))
    Cs, gammas = ([None] if v is None else v for v in values.values())
    gammas.sort(key=lambda g, first=[*gammas]: -abs(2 * first.index(g) - len(first) + 1))  # ends of a list take longest
    n, sizes = effective_n_jobs(n_jobs), np.sort(np.unique(labels, return_counts=True)[1])
    some_gammas = _dealt(gammas, n if len(y) <= FEW else len(gammas))
    few = -(-max(len(folds) / FOLDS, n / len(some_gammas)) // 1)  # parts of the folds, where they share their work
    small = sizes[-2:].sum() * len(folds[0][0]) <= SMALL * len(labels) and len(labels) ** 2 <= SHARED
    jobs = [*product(some_gammas, _dealt(range(len(folds)), int(few) if small else len(folds)))]
    parts = Parallel(n_jobs)(delayed(_part)(ests, rows, labels, [folds[k] for k in ks], Cs, some) for some, ks in jobs)
    scores = np.zeros((len(ests), len(grid), len(folds)))
    for (some, ks), part in zip(jobs, parts, strict=True):
        for g, found in zip(some, part, strict=True):
            at = [i for i, p in enumerate(grid) if p.get("gamma") == g]
            scores[np.ix_(range(len(ests)), at, ks)] = found
    found = [_results(grid, s) for s in scores]
    if refit:
        machines: dict[tuple, Bank] = {}
        for est, one in zip(ests, found, strict=True):
            est.set_params(**one.best_params_)
            one.best_estimator_ = _refitted(est, X, y, machines) if _shares(est) else est.fit(X, y)
    return found if several else found[0]


def _dealt(values: Sequence, parts: int) -> list[Sequence]:
    """The values dealt to so many hands, none of them empty."""
    return [values[k::parts] for k in range(min(parts, len(values)))]


def _folds(X, y: np.ndarray, cv: Any) -> tuple[Any, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """All rows, their labels, and the folds; a validation set's rows stand after the others, as one fold."""
    if isinstance(cv, tuple) and len(cv) == 2 and np.ndim(cv[0]) == 2 and np.shape(cv[0])[1:] == X.shape[1:]:
        join = vstack if issparse(X) else np.concatenate
        every = np.arange(len(y) + len(cv[1]))
        return join([X, cv[0]]), np.concatenate([y, cv[1]]), [(every[: len(y)], every[len(y) :])]
    return X, y, list(check_cv(cv, y, classifier=True).split(X, y))


def _results(grid: list[dict], scores: np.ndarray) -> Tuned:
    """What GridSearchCV would report of these scores (candidates x folds)."""
    mean = scores.mean(axis=1)
    table: dict[str, Any] = {f"param_{name}": np.array([p[name] for p in grid]) for name in grid[0]}
    table |= {"params": grid, **{f"split{k}_test_score": column for k, column in enumerate(scores.T)}}
    rank = rankdata(-mean, method="min").astype(np.int32)
    table |= {"mean_test_score": mean, "std_test_score": scores.std(axis=1), "rank_test_score": rank}
    best = int(rank.argmin())
    return Tuned(table, best, grid[best], float(mean[best]))


def _shares(est: Any) -> tuple:
    """What systems must have in common to share machines, besides the coding matrix; empty if `est` shares none."""
    if not isinstance(est, BankClassifier):
        return ()
    own = {f.name for f in fields(KernelClassifier)} - NOT_THE_BANKS
    return (*(repr(getattr(est, name)) for name in sorted(own)), est._labels_kind or "hard", bool(est.scale_pairs))


def _started(est: BankClassifier, X, y, samples: dict, key=()) -> tuple[BankClassifier, Sample, np.ndarray]:
    """A draft of `est`, its checked sample and the coding matrix of its machines."""
    draft = est._unfitted()
    draft._validate_params()
    if key not in samples:
        samples[key] = draft, draft._prepare(X, y, None)
    first, sample = samples[key]
    draft.__dict__.update({name: value for name, value in vars(first).items() if name in PREPARED})
    if (own := (key, repr(est.gamma))) not in samples:
        samples[own] = replace(sample, kernel=draft._kernel(sample.X, sample.repeats), memo={})
    draft._settle(samples[own])
    return draft, samples[own], draft._code(samples[own])


def _refitted(est: BankClassifier, X, y, machines: dict[tuple, Bank]) -> BankClassifier:
    """`est` fitted to all rows, over machines that an earlier system has trained if there are."""
    draft, sample, code = _started(est, X, y, {})
    key = (*_shares(est), repr(est.C), repr(est.gamma), code.tobytes())
    if key not in machines:
        machines[key] = draft._train(sample, code, **draft._special(sample, code))
    draft._finish(sample, machines[key])
    est.__dict__ = draft.__dict__
    return est


def _part(ests: list, X, y, folds: list, Cs: list, gammas: list) -> np.ndarray:
    """Scores (values of gamma x estimators x values of C x folds) of some folds."""
    scores = np.zeros((len(gammas), len(ests), len(Cs), len(folds)))
    samples: list[dict] = [{} for _ in folds]
    banks: dict[tuple, list[list[Grid]]] = {}
    for e, est in enumerate(ests):
        split = [(*_safe_split(est, X, y, fit), *_safe_split(est, X, y, held, fit)) for fit, held in folds]
        variants = [clone(est) if g is None else clone(est).set_params(gamma=g) for g in gammas]
        if not isinstance(est, BankClassifier):
            for (g, one), (k, c), (f, (rows, labels, held, truth)) in product(*map(enumerate, (variants, Cs, split))):
                one = one if c is None else one.set_params(C=c)
                scores[g, e, k, f] = one.fit(rows, labels).score(held, truth)
            continue
        if getattr(est, "tune", None):
            raise ValueError("tune() chooses C and gamma: leave the estimator's own tune=None")
        shared, values = _shares(est), [est.C] if Cs == [None] else Cs
        for c in values:
            clone(est).set_params(C=c)._validate_params()
        variants = [one.set_params(C=1.0) for one in variants]
        started = [[_started(one, rows, labels, of_fold, shared) for one in variants]
                   for of_fold, (rows, labels, *_) in zip(samples, split, strict=True)]  # fmt: skip
        if (key := (*shared, *(some[0][2].tobytes() for some in started))) not in banks:
            whole = X if issparse(X) else np.asarray(X, float)
            banks[key] = _grids(started, values, [held for _, _, held, _ in split], whole, y, [fit for fit, _ in folds])
        for f, (some, grids) in enumerate(zip(started, banks[key], strict=True)):
            for g, ((draft, *_), grid) in enumerate(zip(some, grids, strict=True)):
                scores[g, e, :, f] = [np.mean(labels == split[f][3]) for labels in grid.answers(draft, values)]
    return scores


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


def _grids(started: list[list], Cs: list, held: list, X, y, trained: list) -> list[list[Grid]]:
    """The machines of every fold for every gamma of `started`; small ones share kernel values and steps."""
    draft, sample, code = started[0][0]
    special = [one._special(own, code) for one, own, code in started[0]]
    small = (np.abs(code) @ np.bincount(sample.codes)).max() <= SMALL and not any(special)
    if len(started) > 1 and not (small and _alike(started, y, trained)):
        return [_grids([of], Cs, [rows], X, y, [fit])[0] for of, rows, fit in zip(started, held, trained, strict=True)]
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
        bias = np.concatenate([bank.bias for bank in banks])
        every = rows.block(rows.place(X)) @ weights.reshape(-1, len(used)).T + bias
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
