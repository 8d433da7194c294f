"""Choosing C and gamma by cross-validation, for several systems at the price of one.

A fold's machines are trained from the smallest C to the largest over the same kernel values, and only where a larger
bound changes them (machines.py, `train_grid`); for the held rows, too, a kernel value is computed once for every C.
What is left for a system is its graph: systems that ask the same machines (Max Wins, the DAGs, the trees, DCSVM) share
all of that.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix, issparse, vstack
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils.metaestimators import _safe_split

from ..machines import STATS, Bank, bank_over
from ..outputs import doubtful
from ..solvers.small import SMALL
from .base import BankClassifier
from .classifier import KernelClassifier, Sample

NOT_THE_BANKS = {"C", "gamma", "n_jobs", "verbose"}  # parameters that may differ among systems that share machines
FEW = 1000  # rows up to which small machines of all gammas take their steps together; Vowel: apart 1.3
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
    jobs = [(k, some) for some in ([gammas] if len(y) <= FEW else [[g] for g in gammas]) for k in range(len(folds))]
    parts = Parallel(n_jobs)(delayed(_fold)(ests, rows, labels, folds[k], Cs, some) for k, some in jobs)
    scores = np.zeros((len(ests), len(grid), len(folds)))
    for (k, some), part in zip(jobs, parts, strict=True):
        for g, found in zip(some, part, strict=True):
            at = [i for i, p in enumerate(grid) if p.get("gamma") == g]
            scores[:, at, k] = found
    found = [_results(grid, s) for s in scores]
    if refit:
        machines: dict[tuple, Bank] = {}
        for est, one in zip(ests, found, strict=True):
            est.set_params(**one.best_params_)
            one.best_estimator_ = _refitted(est, X, y, machines) if _shares(est) else est.fit(X, y)
    return found if several else found[0]


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


def _fold(ests: list, X, y, fold: tuple, Cs: list, gammas: list) -> np.ndarray:
    """Scores (values of gamma x estimators x values of C) of one fold."""
    scores, samples, banks = np.zeros((len(gammas), len(ests), len(Cs))), {}, {}
    for e, est in enumerate(ests):
        held, truth = _safe_split(est, X, y, fold[1], fold[0])
        rows, labels = _safe_split(est, X, y, fold[0])
        variants = [clone(est) if g is None else clone(est).set_params(gamma=g) for g in gammas]
        if not isinstance(est, BankClassifier):
            for g, one in enumerate(variants):
                for k, c in enumerate(Cs):
                    one = one if c is None else one.set_params(C=c)
                    scores[g, e, k] = one.fit(rows, labels).score(held, truth)
            continue
        if getattr(est, "tune", None):
            raise ValueError("tune() chooses C and gamma: leave the estimator's own tune=None")
        shared, values = _shares(est), [est.C] if Cs == [None] else Cs
        started = [_started(one.set_params(C=1.0), rows, labels, samples, shared) for one in variants]
        if (key := (*shared, started[0][2].tobytes())) not in banks:
            banks[key] = _grids(started, values, held)
        for g, ((draft, *_), grid) in enumerate(zip(started, banks[key], strict=True)):
            for k, c in enumerate(values):
                scores[g, e, k] = np.mean(grid.answer(draft._variant(C=c), k) == truth)
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

    def answer(self, one: BankClassifier, k: int) -> np.ndarray:
        """Labels that the draft `one` gives to the held rows over the machines with the k-th value of C."""
        sample = replace(self.sample, C=one.C, outputs=lambda by_sign: self.outputs("trained", k, by_sign))
        one._settle(sample)
        one._finish(sample, self.banks[k])
        held, graph, own, bank = self.rows["held"], one.graph_, one._asked, self.banks[k]
        kept = slice(None)
        if own is not bank:  # a tree keeps some of them or has trained others, glances have more
            kept = (own.code[:, None] == bank.code).all(2).argmax(1)
            if not np.array_equal(own.bias, bank.bias[kept]):
                return one.predict(held)
        labels = graph.labels(self.outputs("held", k, True)[:, kept])
        return one._named(held, labels if graph.by_sign else graph.labels(self.outputs("held", k, False)[:, kept]))


def _grids(started: list[tuple], Cs: list, held: np.ndarray) -> list[Grid]:
    """The machines for every gamma of `started`; small ones take their steps together."""
    draft, sample, code = started[0]
    path, special = sorted(set(Cs)), [one._special(own, code) for one, own, _ in started]
    small = (np.abs(code) @ np.bincount(sample.codes)).max() <= SMALL
    if small and not any(special):
        found = draft._train_grid(sample, code, [own.kernel for _, own, _ in started], path)
    else:
        runs = zip(started, special, strict=True)
        found = [one._train_grid(own, code, [own.kernel], path, **more)[0] for (one, own, _), more in runs]
    banks = [dict(zip(path, some, strict=True)) for some in found]
    return [Grid(own, [of[C] for C in Cs], held) for (_, own, _), of in zip(started, banks, strict=True)]


def together(banks: list[Bank], sample: Sample, X: np.ndarray) -> list[np.ndarray]:
    """Outputs for the rows of X of banks trained on `sample` with one kernel, each kernel value computed once.

    They are those of `Bank.decision` up to rounding, and have the same signs.
    """
    if len(banks) == 1 or banks[0].kernels is not None or issparse(X):
        return [bank.decision(X) for bank in banks]
    parts = [(bank.coef.data, bank.support[bank.coef.indices], bank.coef.indptr) for bank in banks]
    coef = vstack([csr_matrix(part, (len(part[2]) - 1, len(sample.codes))) for part in parts], format="csr")
    more = {name: np.concatenate([getattr(bank, name) for bank in banks]) for name in ("code", "C", *STATS)}
    whole = bank_over(sample.X, sample.codes, coef, banks[0].kernel, kernels=None, labels="", **more)
    found = np.split(whole.decision(X, fast=False), len(banks), axis=1)
    for f, bank in zip(found, banks, strict=True):
        doubt = doubtful(f, bank.vectors, bank.kernel, bank.coef, X)
        if len(doubt):
            f[doubt] = bank.decision(X[doubt])
    return found
