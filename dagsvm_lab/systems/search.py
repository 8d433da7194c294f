"""Choosing C and gamma by cross-validation, for several systems at the price of one.

A fold's machines are trained from the smallest C to the largest over the same kernel values, and only where a larger
bound changes them (machines.py, `train_grid`); small machines of all folds share kernel values and steps, too. For the
held rows, again, a kernel value is computed once for every C. What is left for a system is its graph: systems that ask
the same machines (Max Wins, the DAGs, the trees, DCSVM) share all of that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import issparse, vstack
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils.metaestimators import _safe_split

from ..machines import Bank
from ..solvers.small import SMALL
from .base import BankClassifier
from .classifier import KernelClassifier, Sample
from .grids import Grid, grids

NOT_THE_BANKS = {"C", "gamma", "n_jobs", "verbose"}  # parameters that may differ among systems that share machines
FEW = 300  # rows up to which small machines of all gammas take their steps together; Glass: apart 1.2; Vowel: .85
FOLDS = 10  # whose small machines take their steps together; Segment, ten folds: half 1.15; Vowel, twenty: twice 1.01
SHARED = 1 << 23  # kernel values that folds share; Letter, 4,000 rows: twice as many 1.10, two jobs 1.11
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
        Parts of the search, values of gamma and folds, that are worked on in parallel, as in joblib.

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
    Cs, gammas = ([None] if v is None else [*dict.fromkeys(v)] for v in values.values())
    jobs = _jobs(labels, folds, gammas, effective_n_jobs(n_jobs))
    parts = Parallel(n_jobs)(delayed(_part)(ests, rows, labels, [folds[k] for k in ks], Cs, some) for some, ks in jobs)
    scores = np.zeros((len(ests), len(grid), len(folds)))
    for (some, ks), part in zip(jobs, parts, strict=True):
        for i, p in enumerate(grid):
            if (g := p.get("gamma")) in some:
                scores[:, i, ks] = part[some.index(g), :, Cs.index(p.get("C"))]
    found = [_results(grid, s) for s in scores]
    if refit:
        machines: dict[tuple, Bank] = {}
        for est, one in zip(ests, found, strict=True):
            est.set_params(**one.best_params_)
            one.best_estimator_ = _refitted(est, X, y, machines) if _shares(est) else est.fit(X, y)
    return found if several else found[0]


def _jobs(labels: np.ndarray, folds: list, gammas: list, n: int) -> list[tuple]:
    """What n jobs are given, one after the other: some values of gamma, and the numbers of some folds."""
    order = sorted(range(len(gammas)), key=lambda k: -abs(2 * k - len(gammas) + 1))  # ends of a list take longest
    some_gammas = _dealt([gammas[k] for k in order], n if len(labels) <= FEW else len(gammas))
    sizes = np.sort(np.unique(labels, return_counts=True)[1])
    parts = len(folds)
    if sizes[-2:].sum() * len(folds[0][0]) <= SMALL * len(labels) and len(labels) ** 2 <= SHARED:
        parts = int(np.ceil(max(len(folds) / FOLDS, n / len(some_gammas))))
    return [*product(some_gammas, _dealt(range(len(folds)), parts))]


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
            banks[key] = grids(started, values, [held for _, _, held, _ in split], whole, y, [fit for fit, _ in folds])
        for f, both in enumerate(zip(started, banks[key], strict=True)):
            for g, ((draft, *_), grid) in enumerate(zip(*both, strict=True)):
                scores[g, e, :, f] = [np.mean(labels == split[f][3]) for labels in grid.answers(draft, values)]
    return scores
