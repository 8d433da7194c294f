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
        fit = [self.data.folds[k][0] for k in ks]
        held = [self.data.folds[k][1] for k in ks]
        folds = Folds(self.data, fit, held)
        shape = (len(gammas), len(self.ests), len(self.Cs), len(ks))
        scores = np.zeros(shape)
        for e, (est, scorer) in enumerate(zip(self.ests, self.scorers, strict=True)):
            _, _, system = splitted(est)
            shares = self._shares_machines(system)
            score = folds.scores if shares else folds.scores_alone
            scores[:, e] = score(est, scorer, self.Cs, gammas)
        return scores

    def _shares_machines(self, system: Any) -> bool:
        """Whether the system is a graph over machines with one C and one gamma."""
        if not isinstance(system, BankClassifier):
            return False
        one_C = self.Cs != [None] or np.ndim(system.C) == 0
        one_gamma = self.gammas != [None] or np.ndim(system.gamma) == 0
        return one_C and one_gamma


def splitted(est: Any) -> tuple[Pipeline | None, str, Any]:
    """The steps before the system, the prefix of its parameters' names, the system."""
    if not isinstance(est, Pipeline):
        return None, "", est
    name, system = est.steps[-1]
    before = est[:-1] if len(est.steps) > 1 else None
    return before, f"{name}__", system


def assembled(est: Any, steps: Pipeline | None, system: BankClassifier) -> Any:
    """The fitted estimator that `est` describes, of fitted parts."""
    if not isinstance(est, Pipeline):
        return system
    name, _ = est.steps[-1]
    before = [] if steps is None else steps.steps
    whole = clone(est)
    whole.steps = [*before, (name, system)]
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
        _, _, system = splitted(est)
        values = [system.C] if Cs == [None] else Cs
        for C in values:  # refused before anything is trained
            clone(system).set_params(C=C)._validate_params()
        _, folds = self._folds(est)
        starts = [_starts(system, fold, gammas) for fold in folds]
        grids = self._grids(est, starts, values)  # (folds, gammas), as starts
        scores = np.zeros((len(gammas), len(values), len(folds)))
        for f, fold in enumerate(folds):
            for g, start in enumerate(starts[f]):
                grid = grids[f][g]
                systems = grid.systems(start.draft, values)
                scores[g, :, f] = _scores(est, scorer, fold, grid, systems)
        return scores

    def _grids(self, est: Any, starts: list, values: list) -> list[list[Grid]]:
        """The machines of every fold, gamma and C; those of an earlier system again."""
        # systems share machines that saw the same rows under the same settings and code
        of_rows, folds = self._folds(est)
        settings = _settings(starts[0][0].draft)
        codes = tuple(of_fold[0].code.tobytes() for of_fold in starts)
        # where C or gamma is not tried, each system has its own
        Cs = tuple(_key_of(C) for C in values)
        gammas = tuple(_key_of(one.draft.gamma) for one in starts[0])
        key = (of_rows, *settings, codes, Cs, gammas)
        if key not in self.grids:
            self.grids[key] = grids(starts, values, folds, self._whole(est))
        return self.grids[key]

    def scores_alone(self, est: Any, scorer, Cs: list, gammas: list) -> np.ndarray:
        """Scores of an estimator that shares nothing (gammas, values of C, folds)."""
        _, prefix, _ = splitted(est)
        scores = np.zeros((len(gammas), len(Cs), len(self.fit)))
        for g, gamma in enumerate(gammas):
            for k, C in enumerate(Cs):
                one = clone(est)
                if C is not None:
                    one.set_params(**{f"{prefix}C": C})
                if gamma is not None:
                    one.set_params(**{f"{prefix}gamma": gamma})
                for f in range(len(self.fit)):
                    scores[g, k, f] = self._fitted_and_judged(one, scorer, f)
        return scores

    def _fitted_and_judged(self, est: Any, scorer, f: int) -> float:
        """The score of `est` on one fold; the estimator is fitted anew."""
        _, prefix, _ = splitted(est)
        fit = self.fit[f]
        held = self.held[f]
        rows, labels = self._part(est, fit)
        new, truth = self._part(est, held, fit)
        est.fit(rows, labels, **self._fit_weights(prefix, fit))
        judge = scorer or type(est).score
        return judge(est, new, truth, **_score_weights(judge, self._weight(held)))

    @one_thread()
    def fitted(self, est: Any) -> tuple[Any, float]:
        """`est` fitted to the rows of the first fold, and the seconds that took.

        It is fitted over machines that an earlier system has trained if there are; the
        seconds of their training count again, those of a pipeline's other steps never.
        """
        _, prefix, system = splitted(est)
        if not isinstance(system, BankClassifier):
            fit = self.fit[0]
            rows, labels = self._part(est, fit)
            begun = perf_counter()
            est.fit(rows, labels, **self._fit_weights(prefix, fit))
            return est, perf_counter() - begun
        of_rows, folds = self._folds(est)
        fold = folds[0]
        begun = perf_counter()
        start = _start(system, fold)
        key = (of_rows, _key_of(system.C), _key_of(system.gamma))
        bank, before = self._bank(start, key)
        start.draft._finish_fit(start.sample, bank)
        seconds = before + perf_counter() - begun
        return assembled(est, deepcopy(fold.steps), start.draft), seconds

    def _bank(self, start: Start, key: tuple) -> tuple[Bank, float]:
        """The machines of a system; the seconds of training that were spent before."""
        draft = start.draft
        sample = start.sample
        code = start.code
        key = (*key, *_settings(draft), code.tobytes())
        if key in self.banks:
            return self.banks[key]
        begun = perf_counter()
        options = draft._training_options(sample, code)
        bank = draft._train(sample, code, **options)
        self.banks[key] = bank, perf_counter() - begun
        return bank, 0.0

    def held_rows(self, est: Any) -> tuple[Any, np.ndarray]:
        """The first fold's held rows and labels, as the system is given them."""
        fold = self._folds(est)[1][0]
        return fold.held, fold.truth

    def given_rows(self, est: Any) -> tuple[Any, np.ndarray]:
        """The first fold's held rows and labels, as `est` is given them."""
        return self._part(est, self.held[0], self.fit[0])

    def _folds(self, est: Any) -> tuple[Any, list[Fold]]:
        """The folds' rows as the system of `est` is given them, and a key to them."""
        steps, _, system = splitted(est)
        pairwise = est.__sklearn_tags__().input_tags.pairwise
        made_by = None if steps is None else _digest(steps)
        key = (pairwise, made_by)
        if key not in self.made:
            self.made[key] = [self._fold(est, k) for k in range(len(self.fit))]
        return key, self.made[key]

    def _fold(self, est: Any, k: int) -> Fold:
        fit = self.fit[k]
        rows, labels = self._part(est, fit)
        given = truth = held_weight = None
        if self.held is not None:
            given, truth = self._part(est, self.held[k], fit)
            held_weight = self._weight(self.held[k])
        held = given
        steps, _, _ = splitted(est)
        if steps is not None:
            steps = clone(steps)
            rows = steps.fit_transform(rows, labels)
            held = None if held is None else steps.transform(held)
        return Fold(
            fit=fit,
            X=rows,
            y=labels,
            sample_weight=self._weight(fit),
            held=held,
            truth=truth,
            held_weight=held_weight,
            given=given,
            steps=steps,
        )

    def _part(
        self, est: Any, rows: np.ndarray, trained: np.ndarray | None = None
    ) -> tuple[Any, Any]:
        """Some rows and their labels; of kernel values, those with rows `trained`."""
        return _safe_split(est, self.rows.X, self.rows.y, rows, trained)

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        """How often these rows count; None if all rows count once."""
        weight = self.rows.sample_weight
        return None if weight is None else weight[rows]

    def _whole(self, est: Any) -> GivenRows | None:
        """All rows, if the folds' rows are some of them as they are."""
        steps, _, _ = splitted(est)
        if steps is not None or self.rows.sample_weight is not None:
            return None
        X = self.rows.X
        if not issparse(X):
            X = np.asarray(X, float)
        return GivenRows(X, self.rows.y, None)

    def _fit_weights(self, prefix: str, fit: np.ndarray) -> dict[str, np.ndarray]:
        """The rows' weights as `fit` takes them."""
        weight = self._weight(fit)
        return {} if weight is None else {f"{prefix}sample_weight": weight}


def _scores(est: Any, scorer, fold: Fold, grid: Grid, systems: list) -> list[float]:
    """Scores on a fold of the systems over a grid's machines, one for each C."""
    if scorer is None:
        return _accuracies(grid.answers(systems), fold)
    whole = [assembled(est, fold.steps, one) for one in systems]
    return [_judged(scorer, one, fold) for one in whole]


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


def _key_of(value: Any) -> Any:
    """Equal for equal parameters; of a large array `repr` leaves out the middle."""
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def _settings(system: BankClassifier) -> tuple:
    """What systems must have in common to share machines, besides the coding matrix."""
    parameters = {field.name for field in fields(KernelClassifier)}
    common = [repr(getattr(system, name)) for name in sorted(parameters - OWN)]
    return *common, system._label_kind or "hard", bool(system.scale_pairs)


def _starts(system: BankClassifier, fold: Fold, gammas: list) -> list[Start]:
    """The system on a fold with each gamma, None for its own."""
    starts = []
    for gamma in gammas:
        one = clone(system).set_params(C=1.0)
        if gamma is not None:
            one.set_params(gamma=gamma)
        starts.append(_start(one, fold))
    return starts


def _start(system: BankClassifier, fold: Fold) -> Start:
    """A draft of `system`, its checked sample of the fold, and its coding matrix."""
    draft = system._unfitted()
    draft._validate_params()
    # rows are checked once for systems of the same settings; some take no sparse rows
    key = (*_settings(system), system._sparse)
    if key not in fold.checked:
        sample = draft._checked_sample(fold.X, fold.y, fold.sample_weight)
        if not fold.checked and fold.held is not None:
            fold.held = draft._checked_rows(fold.held)
        fold.checked[key] = draft, sample
    first, sample = fold.checked[key]
    for name in CHECKED:
        if hasattr(first, name):
            setattr(draft, name, getattr(first, name))
    # a kernel is made once for each gamma, with what systems remember under it
    own = (key, _key_of(system.gamma))
    if own not in fold.samples:
        kernel = draft._kernel(sample.X, sample.sample_weight)
        fold.samples[own] = replace(sample, kernel=kernel, memo={})
    sample = replace(fold.samples[own], C=system.C)
    draft._before_training(sample)
    code = draft._coding_matrix(sample)
    return Start(draft, sample, code)
