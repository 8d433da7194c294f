"""Choosing C and gamma by cross-validation, for several systems at the price of one.

A fold's machines are trained from the smallest C to the largest over the same kernel
values, and only where a larger bound changes them (machines.py, `train_grid`); small
machines of all folds share kernel values and steps, too. For the held rows, again, a
kernel value is computed once for every C. What is left for a system is its graph:
systems that ask the same machines (Max Wins, the DAGs, the trees, DCSVM) share all of
that. In a pipeline the steps before the system are fitted once in each fold.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid

from ..solvers.short import SHORT_ROWS
from .base import BankClassifier
from .folds import Folds, Trials, splitted
from .splits import Folded, GivenRows, folded

# Beside each constant: seconds with other values, over today's.

# rows up to which small machines of all gammas take their steps together; Glass: apart
# 1.2; Vowel: .85
FEW = 300
# folds whose small machines take their steps together; Segment, ten folds: half of them
# 1.15; Vowel, twenty: twice as many 1.01
FOLDS_TOGETHER = 10
# kernel values that folds share; Letter, 4,000 rows: twice as many 1.10, two jobs 1.11
SHARED = 1 << 23


@dataclass
class Tuned:
    """What `tune` found, under the names that scikit-learn's GridSearchCV gives it.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray
        `params`, `param_C`, `param_gamma`, `split0_test_score` ..., `mean_test_score`,
        `std_test_score` and `rank_test_score`, one entry a candidate in the order of
        scikit-learn's ParameterGrid. In a pipeline names begin with the step's.
    best_index_ : int
        The candidate with the best mean score, the first of equals.
    best_params_ : dict
        Its C and gamma.
    best_score_ : float
        Its mean score.
    best_estimator_ : object
        The estimator with these parameters, fitted to all rows; None if `refit` was
        False.
    """

    cv_results_: dict[str, Any]
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    best_estimator_: Any = None

    def predict(self, X) -> np.ndarray:
        """Predict with the best estimator."""
        return self.best_estimator_.predict(X)


def tune(
    estimator: Any,
    X,
    y,
    *,
    C: Iterable | None = None,
    gamma: Iterable | None = None,
    cv: Any = 5,
    refit: bool = True,
    n_jobs: int | None = None,
    scoring: str | Callable | None = None,
    groups=None,
    sample_weight=None,
) -> Any:
    """Choose C and gamma by cross-validation.

    The scores are those of scikit-learn's GridSearchCV over the same estimator.

    Parameters
    ----------
    estimator : estimator or list of estimators
        What to tune: a system, or a pipeline that ends in one, whose other steps are
        fitted anew in each fold. Of a list, those that ask the same machines share
        them.
    X : array-like of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Their labels.
    C, gamma : iterable of float, default=None
        Values to try; None keeps the estimator's.
    cv : int, splitter, iterable of splits, or a pair (X_valid, y_valid), default=5
        Folds, as for scikit-learn's GridSearchCV, or one validation set.
    refit : bool, default=True
        Fit the best candidate to all rows.
    n_jobs : int, default=None
        Parts of the search, values of gamma and folds, that are worked on in parallel,
        as in joblib.
    scoring : str or callable, default=None
        One metric, as scikit-learn's GridSearchCV takes it; None is accuracy.
    groups : array-like of shape (n_samples,), default=None
        Groups of the rows, for a `cv` that keeps them together.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts, in training and in the scores.

    Returns
    -------
    found : Tuned or list of Tuned
        One for each estimator.

    Examples
    --------
    >>> from dagsvm_lab import DAGSVC, MaxWinsSVC, load, tune
    >>> d = load("iris", scaled=True)
    >>> grid = dict(C=[1, 10], gamma=[0.1, 1])
    >>> wins, dag = tune([MaxWinsSVC(), DAGSVC()], d.X, d.y, cv=3, **grid)
    >>> dag.best_params_ == wins.best_params_, dag.best_score_ > 0.9
    (True, True)

    In a pipeline:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipe = make_pipeline(StandardScaler(), DAGSVC())
    >>> sorted(tune(pipe, d.X, d.y, cv=3, **grid).best_params_)
    ['dagsvc__C', 'dagsvc__gamma']
    """
    several = isinstance(estimator, list | tuple)
    given = estimator if several else [estimator]
    ests = [clone(est) for est in given]
    scorers = _scorers(ests, scoring)
    every, data = folded(X, y, cv, groups, sample_weight)
    points = Points.of(C, gamma)
    trials = Trials(ests, scorers, data, points.Cs, points.gammas)
    scores = _scores(trials, points, n_jobs)
    named = [points.named(splitted(est)[1]) for est in ests]
    found = [_results(own, got) for own, got in zip(named, scores, strict=True)]
    if refit:
        _fit_best(ests, found, every)
    return found if several else found[0]


@dataclass
class Points:
    """The candidates of a search; Cs and gammas are [None] where nothing is tried."""

    points: list[dict[str, Any]]  # in the order of scikit-learn's ParameterGrid
    Cs: list
    gammas: list

    @classmethod
    def of(cls, C: Iterable | None, gamma: Iterable | None) -> Self:
        """All combinations of the values that are given."""
        grid = {}
        if C is not None:
            grid["C"] = list(C)
        if gamma is not None:
            grid["gamma"] = list(gamma)
        # without repeated values
        Cs = list(dict.fromkeys(grid.get("C", [None])))
        gammas = list(dict.fromkeys(grid.get("gamma", [None])))
        return cls(list(ParameterGrid(grid)), Cs, gammas)

    def named(self, prefix: str) -> list[dict[str, Any]]:
        """The candidates with a step's name before each parameter."""
        return [{prefix + k: v for k, v in point.items()} for point in self.points]


def _scorers(ests: list, scoring) -> list:
    """A scorer for each estimator, None for accuracy; refuses what is not tuned."""
    for est in ests:
        _, _, system = splitted(est)
        tunes_itself = getattr(system, "tune", None)
        if isinstance(system, BankClassifier) and tunes_itself:
            raise ValueError(
                "tune() chooses C and gamma: leave the estimator's own tune=None"
            )
    if scoring is None:
        return [None] * len(ests)
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError("scoring must be one metric: a name or a function")
    return [check_scoring(est, scoring) for est in ests]


def _fit_best(ests: list, found: list[Tuned], every: GivenRows) -> None:
    """Fit each estimator with its best parameters to all rows, into `found`."""
    whole = Folds(every, [np.arange(len(every.y))])
    for est, one in zip(ests, found, strict=True):
        est.set_params(**one.best_params_)
        one.best_estimator_ = whole.fitted(est)[0]


def _scores(trials: Trials, points: Points, n_jobs: int | None) -> np.ndarray:
    """The scores of a search: (estimators, candidates, folds)."""
    n_folds = len(trials.data.folds)
    jobs = _jobs(trials.data, trials.gammas, effective_n_jobs(n_jobs))
    ask = delayed(trials.scores)
    parts = Parallel(n_jobs)(ask(gammas, ks) for gammas, ks in jobs)
    scores = np.zeros((len(trials.ests), len(points.points), n_folds))
    for (gammas, ks), part in zip(jobs, parts, strict=True):
        for i, point in enumerate(points.points):
            gamma = point.get("gamma")
            if gamma in gammas:
                g = gammas.index(gamma)
                c = trials.Cs.index(point.get("C"))
                scores[:, i, ks] = part[g, :, c]  # (estimators, the job's folds)
    return scores


def _jobs(data: Folded, gammas: list, n: int) -> list[tuple[list, list]]:
    """What n jobs are given, one after the other.

    Each gets some values of gamma, and the numbers of some folds.
    """
    n_rows = len(data.y)
    n_folds = len(data.folds)
    middle = (len(gammas) - 1) / 2
    # the ends of a list of gammas take longest
    ends_first = sorted(range(len(gammas)), key=lambda k: -abs(k - middle))
    # of few rows, a job takes its gammas together; else each gamma is a job
    gamma_hands = n if n_rows <= FEW else len(gammas)
    some_gammas = _dealt([gammas[k] for k in ends_first], gamma_hands)
    fold_hands = n_folds
    if _small(data) and n_rows**2 <= SHARED:
        # folds go together, but no job stays idle
        fewest = max(n_folds / FOLDS_TOGETHER, n / len(some_gammas))
        fold_hands = int(np.ceil(fewest))
    some_folds = _dealt(range(n_folds), fold_hands)
    return list(product(some_gammas, some_folds))


def _small(data: Folded) -> bool:
    """Whether a fold's pairs, the longest about, are of `SHORT_ROWS` rows or fewer."""
    n_rows = len(data.y)
    fit, _ = data.folds[0]
    _, in_class = np.unique(data.y, return_counts=True)
    longest_pair = np.sort(in_class)[-2:].sum()
    return longest_pair * len(fit) <= SHORT_ROWS * n_rows


def _dealt(values: Sequence, hands: int) -> list[list]:
    """The values dealt to so many hands, none of them empty."""
    return [list(values[k::hands]) for k in range(min(hands, len(values)))]


def _results(points: list[dict], scores: np.ndarray) -> Tuned:
    """What GridSearchCV would report of these scores (candidates x folds)."""
    mean = scores.mean(axis=1)
    rank = rankdata(-mean, method="min").astype(np.int32)
    table: dict[str, Any] = {}
    for name in points[0]:
        table[f"param_{name}"] = np.array([point[name] for point in points])
    table["params"] = points
    for k, column in enumerate(scores.T):
        table[f"split{k}_test_score"] = column
    table["mean_test_score"] = mean
    table["std_test_score"] = scores.std(axis=1)
    table["rank_test_score"] = rank
    best = int(rank.argmin())
    return Tuned(table, best, points[best], float(mean[best]))
