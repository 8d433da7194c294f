"""Some folds of the rows, and what the systems that are tried on them share.

Of systems with the same steps before them the inputs are made once; of those with the
same settings of kernel and solver the checked samples are shared, and where they ask
the same machines, the machines.
"""

from copy import deepcopy
from dataclasses import dataclass, fields, replace
from inspect import signature
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split

from ..bank import Bank
from ..threads import one_thread
from .base import BankClassifier
from .classifier import KernelClassifier
from .grids import Fold, Grid, Start, grids
from .splits import Folded, GivenRows

OWN = {  # parameters that may differ among systems that share machines
    "C",
    "gamma",
    "n_jobs",
    "verbose",
    "shrinking",
    "probability",
    "random_state",
}
CHECKED = ("classes_", "n_features_in_", "feature_names_in_")  # set with the sample


@dataclass
class Trials:
    """What is tried on which rows: every estimator with every C and gamma."""

    ests: list
    scorers: list  # one an estimator; None is accuracy
    data: Folded
    Cs: list  # [None] where the estimator's own value stays, as for gammas
    gammas: list

    @one_thread()
    def scores(self, gammas: list, ks: list[int]) -> np.ndarray:
        """Scores of some values of gamma on the folds ks.

        Returned as (gammas, estimators, values of C, folds).
        """
        fit, held = zip(*(self.data.folds[k] for k in ks), strict=True)
        folds = Folds(self.data, list(fit), list(held))
        scores = np.zeros((len(gammas), len(self.ests), len(self.Cs), len(ks)))
        for e, (est, scorer) in enumerate(zip(self.ests, self.scorers, strict=True)):
            shared = isinstance(splitted(est)[2], BankClassifier)
            score = folds.scores if shared else folds.scores_alone
            scores[:, e] = score(est, scorer, self.Cs, gammas)
        return scores


def splitted(est: Any) -> tuple[Pipeline | None, str, Any]:
    """The steps before the system, the prefix of its parameters' names, the system."""
    if not isinstance(est, Pipeline):
        return None, "", est
    name, system = est.steps[-1]
    return est[:-1] if len(est.steps) > 1 else None, f"{name}__", system


def assembled(est: Any, steps: Pipeline | None, system: BankClassifier) -> Any:
    """The fitted estimator that `est` describes, of fitted parts."""
    if not isinstance(est, Pipeline):
        return system
    whole = clone(est)
    before = [] if steps is None else steps.steps
    whole.steps = [*before, (est.steps[-1][0], system)]
    return whole


class Folds:
    """Some folds of the rows: `fit` and `held` are the indices of each one's rows."""

    def __init__(self, rows: GivenRows, fit: list, held: list | None = None) -> None:
        self.rows = rows
        self.fit = fit
        self.held = held
        self.made: dict[Any, list[Fold]] = {}
        self.grids: dict[tuple, list[list[Grid]]] = {}
        self.banks: dict[tuple, tuple[Bank, float]] = {}  # and seconds of training

    def scores(self, est: Any, scorer, Cs: list, gammas: list) -> np.ndarray:
        """Scores of a system (gammas, values of C, folds), over shared machines."""
        system = splitted(est)[2]
        values = [system.C] if Cs == [None] else Cs
        for C in values:  # refused before anything is trained
            clone(system).set_params(C=C)._validate_params()
        folds = self._folds(est)[1]
        starts = [_starts(system, fold, gammas) for fold in folds]
        grids = self._grids(est, starts, values)  # (folds, gammas), as starts
        scores = np.zeros((len(gammas), len(values), len(folds)))
        for f, fold in enumerate(folds):
            for g, start in enumerate(starts[f]):
                grid = grids[f][g]
                systems = grid.systems(start.draft, values)
                if scorer is None:
                    scores[g, :, f] = _accuracies(grid.answers(systems), fold)
                else:
                    whole = [assembled(est, fold.steps, one) for one in systems]
                    scores[g, :, f] = [_judged(scorer, one, fold) for one in whole]
        return scores

    def _grids(self, est: Any, starts: list, values: list) -> list[list[Grid]]:
        """The machines of every fold, gamma and C; those of an earlier system again."""
        key, folds = self._folds(est)
        codes = tuple(of_fold[0].code.tobytes() for of_fold in starts)
        key = (key, *_settings(starts[0][0].draft), codes)
        if key not in self.grids:
            self.grids[key] = grids(starts, values, folds, self._whole(est))
        return self.grids[key]

    def scores_alone(self, est: Any, scorer, Cs: list, gammas: list) -> np.ndarray:
        """Scores of an estimator that shares nothing (gammas, values of C, folds)."""
        prefix = splitted(est)[1]
        scores = np.zeros((len(gammas), len(Cs), len(self.fit)))
        for g, gamma in enumerate(gammas):
            for k, C in enumerate(Cs):
                point = {"C": C, "gamma": gamma}
                chosen = {prefix + n: v for n, v in point.items() if v is not None}
                one = clone(est).set_params(**chosen)
                for f in range(len(self.fit)):
                    scores[g, k, f] = self._fitted_and_judged(one, scorer, f)
        return scores

    def _fitted_and_judged(self, est: Any, scorer, f: int) -> float:
        """The score of `est` on one fold; the estimator is fitted anew."""
        fit = self.fit[f]
        held = self.held[f]
        rows, labels = _safe_split(est, self.rows.X, self.rows.y, fit)
        new, truth = _safe_split(est, self.rows.X, self.rows.y, held, fit)
        est.fit(rows, labels, **self._weights(splitted(est)[1], fit))
        weight = self.rows.sample_weight
        judge = scorer or type(est).score
        weights = _score_weights(judge, None if weight is None else weight[held])
        return judge(est, new, truth, **weights)

    @one_thread()
    def fitted(self, est: Any) -> tuple[Any, float]:
        """`est` fitted to the rows of the first fold, and the seconds that took.

        It is fitted over machines that an earlier system has trained if there are; the
        seconds of their training count again, those of a pipeline's other steps never.
        """
        _, prefix, system = splitted(est)
        if not isinstance(system, BankClassifier):
            rows, labels = _safe_split(est, self.rows.X, self.rows.y, self.fit[0])
            start = perf_counter()
            est.fit(rows, labels, **self._weights(prefix, self.fit[0]))
            return est, perf_counter() - start
        key, folds = self._folds(est)
        begun = perf_counter()
        start = _start(system, folds[0])
        bank, before = self._bank(start, (key, repr(system.C), repr(system.gamma)))
        start.draft._finish_fit(start.sample, bank)
        seconds = before + perf_counter() - begun
        return assembled(est, deepcopy(folds[0].steps), start.draft), seconds

    def _bank(self, start: Start, key: tuple) -> tuple[Bank, float]:
        """The machines of a system; the seconds of training that were spent before."""
        draft = start.draft
        given = (start.sample, start.code)
        key = (*key, *_settings(draft), start.code.tobytes())
        if key in self.banks:
            return self.banks[key]
        begun = perf_counter()
        bank = draft._train(*given, **draft._training_options(*given))
        self.banks[key] = bank, perf_counter() - begun
        return bank, 0.0

    def held_rows(self, est: Any) -> tuple[Any, np.ndarray]:
        """The first fold's held rows and labels, as the system is given them."""
        fold = self._folds(est)[1][0]
        return fold.held, fold.truth

    def given_rows(self, est: Any) -> tuple[Any, np.ndarray]:
        """The first fold's held rows and labels, as `est` is given them."""
        return _safe_split(est, self.rows.X, self.rows.y, self.held[0], self.fit[0])

    def _folds(self, est: Any) -> tuple[Any, list[Fold]]:
        """The folds' rows as the system of `est` is given them, and a key to them."""
        steps, _, system = splitted(est)
        pairwise = est.__sklearn_tags__().input_tags.pairwise
        key = (pairwise, None if steps is None else _digest(steps))
        if key not in self.made:
            self.made[key] = [self._fold(est, k) for k in range(len(self.fit))]
        return key, self.made[key]

    def _fold(self, est: Any, k: int) -> Fold:
        X = self.rows.X
        y = self.rows.y
        weight = self.rows.sample_weight
        fit = self.fit[k]
        rows, labels = _safe_split(est, X, y, fit)
        given = truth = held_weight = None
        if self.held is not None:
            given, truth = _safe_split(est, X, y, self.held[k], fit)
            held_weight = None if weight is None else weight[self.held[k]]
        held = given
        steps = splitted(est)[0]
        if steps is not None:
            steps = clone(steps)
            rows = steps.fit_transform(rows, labels)
            held = None if held is None else steps.transform(held)
        weight = None if weight is None else weight[fit]
        return Fold(fit, rows, labels, weight, held, truth, held_weight, given, steps)

    def _whole(self, est: Any) -> GivenRows | None:
        """All rows, if the folds' rows are some of them as they are."""
        if splitted(est)[0] is not None or self.rows.sample_weight is not None:
            return None
        X = self.rows.X if issparse(self.rows.X) else np.asarray(self.rows.X, float)
        return GivenRows(X, self.rows.y, None)

    def _weights(self, prefix: str, fit: np.ndarray) -> dict[str, np.ndarray]:
        weight = self.rows.sample_weight
        return {} if weight is None else {f"{prefix}sample_weight": weight[fit]}


def _accuracies(answers: list[np.ndarray], fold: Fold) -> list[float]:
    """Shares of the held rows that are answered rightly."""
    right = [labels == fold.truth for labels in answers]
    return [np.average(part, weights=fold.held_weight) for part in right]


def _judged(scorer, est: Any, fold: Fold) -> float:
    """What a scorer says of a fitted estimator on the held rows."""
    weights = _score_weights(scorer, fold.held_weight)
    return scorer(est, fold.given, fold.truth, **weights)


def _score_weights(scorer, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """The held rows' weights for a scorer, if there are any and it takes them."""
    if weight is None or "sample_weight" not in signature(scorer).parameters:
        return {}
    return {"sample_weight": weight}


def _digest(steps: Pipeline) -> Any:
    """What steps have in common that do the same; their identity if that is unknown."""
    try:
        return joblib.hash(steps)
    except Exception:  # what cannot be pickled, as a lambda
        return tuple(id(step) for _, step in steps.steps)


def _settings(system: BankClassifier) -> tuple:
    """What systems must have in common to share machines, besides the coding matrix."""
    common = {f.name for f in fields(KernelClassifier)} - OWN
    return (
        *(repr(getattr(system, name)) for name in sorted(common)),
        system._label_kind or "hard",
        bool(system.scale_pairs),
    )


def _starts(system: BankClassifier, fold: Fold, gammas: list) -> list[Start]:
    """The system on a fold with each gamma, None for its own."""
    starts = []
    for gamma in gammas:
        one = clone(system).set_params(C=1.0)
        starts.append(
            _start(one if gamma is None else one.set_params(gamma=gamma), fold)
        )
    return starts


def _start(system: BankClassifier, fold: Fold) -> Start:
    """A draft of `system`, its checked sample of the fold, and its coding matrix."""
    draft = system._unfitted()
    draft._validate_params()
    # rows are checked once for systems of the same settings; some take no sparse rows
    key = (*_settings(system), system._sparse)
    if key not in fold.samples:
        sample = draft._checked_sample(fold.X, fold.y, fold.sample_weight)
        if not fold.samples and fold.held is not None:
            fold.held = draft._checked_rows(fold.held)
        fold.samples[key] = draft, sample
    first = fold.samples[key][0]
    for name in CHECKED:
        if hasattr(first, name):
            setattr(draft, name, getattr(first, name))
    # a kernel is made once for each gamma, with what systems remember under it
    own = (key, repr(system.gamma))
    if own not in fold.samples:
        sample = fold.samples[key][1]
        kernel = draft._kernel(sample.X, sample.sample_weight)
        fold.samples[own] = replace(sample, kernel=kernel, memo={})
    sample = replace(fold.samples[own], C=system.C)
    draft._before_training(sample)
    return Start(draft, sample, draft._coding_matrix(sample))
