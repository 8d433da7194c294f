"""Systems compared on data of one's own: accuracy, cost, time, and which differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from ..graphs import Cost
from ..statistics import binomial_interval, mcnemar
from .adaptive import AdaptiveDAGSVC
from .base import BankClassifier
from .classifier import KernelClassifier
from .dcsvm import DCSVC
from .ddag import DAGSVC
from .filtered import FilteredDAGSVC
from .folds import Folds, splitted
from .splits import folded
from .trees import BinaryTreeSVC
from .wins import MaxWinsSVC, OneVsRestSVC

USUAL = (
    OneVsRestSVC,
    MaxWinsSVC,
    DAGSVC,
    AdaptiveDAGSVC,
    DCSVC,
    BinaryTreeSVC,
    FilteredDAGSVC,
)
COST_FIELDS = [field.name for field in fields(Cost)]
SINGLE_ROWS = 30  # of a fold, that are predicted one by one
REPEATS = 3  # of a batch, the fastest of which counts
COLUMNS = {  # of the table that is shown: measure, heading, number format
    "accuracy": ("accuracy %", "{:.2f}"),
    "low": ("from", "{:.2f}"),
    "high": ("to", "{:.2f}"),
    "p_best": ("p to best", "{:.3g}"),
    "kernel_evaluations": ("kernel evaluations", "{:.1f}"),
    "binary_decisions": ("decisions", "{:.1f}"),
    "row_us": ("us alone", "{:.0f}"),
    "batch_us": ("us in a batch", "{:.1f}"),
    "kparameters": ("1000 parameters", "{:.1f}"),
    "train_s": ("training s", "{:.2f}"),
}


@dataclass
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    names : list of str
        The systems.
    measures : dict of str to ndarray
        One number a system. `accuracy` in per cent of all held rows, with its 95 %
        limits `low` and `high` (Clopper and Pearson); `p_best`, the p-value of
        McNemar's exact test against the most accurate system, times as many as were
        made (Holm); `kernel_evaluations`, `support_vectors` and `binary_decisions` of a
        row, in the mean; `row_us` and `batch_us`, microseconds for a row that comes
        alone and in a batch; `kparameters`, thousands of numbers that are kept;
        `train_s`, seconds of a fold's training, those of shared machines included.
        What an estimator does not count is nan.
    p_values : ndarray of shape (n_systems, n_systems)
        McNemar's exact p-values of all pairs, times as many as were made (Holm).
    wrong : ndarray of bool of shape (n_systems, n_held_rows)
        The held rows that each system gets wrong, in the order of X.
    """

    names: list[str]
    measures: dict[str, np.ndarray]
    p_values: np.ndarray
    wrong: np.ndarray

    def to_frame(self):
        """Give the measures as a pandas DataFrame, a row a system."""
        import pandas as pd

        return pd.DataFrame(self.measures, index=pd.Index(self.names, name="system"))

    def plot(self, cost: str = "kernel_evaluations", ax=None):
        """Draw accuracy with its limits over a cost.

        Parameters
        ----------
        cost : str, default="kernel_evaluations"
            A measure, on a logarithmic axis.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        ax : matplotlib Axes
            The axes that were drawn on.
        """
        import matplotlib.pyplot as plt

        from ..plots.overview import label

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        x = self.measures[cost]
        y = self.measures["accuracy"]
        below = y - self.measures["low"]
        above = self.measures["high"] - y
        ax.errorbar(x, y, yerr=[below, above], fmt="o", capsize=3)
        ax.set_xscale("log")
        heading = cost.replace("_", " ")
        if cost in COLUMNS:
            heading, _ = COLUMNS[cost]
        ax.set_xlabel(heading.replace("us ", "microseconds "))
        ax.xaxis.set_major_formatter("{x:g}")  # plain numbers, not powers of ten
        ax.xaxis.set_minor_formatter("{x:g}")
        ax.set_ylabel("accuracy (%)")
        known = np.isfinite(x)
        points = np.column_stack([x, y])[known]
        ax.figure.draw_without_rendering()  # names stand where the axes end up
        label(ax, points, points, np.array(self.names)[known], size=9)
        return ax

    def _cells(self) -> list[list[str]]:
        """The table that is shown: a heading, then a row a system."""
        lines = [["system", *(heading for heading, _ in COLUMNS.values())]]
        for k, name in enumerate(self.names):
            line = [name]
            for key, (_, how) in COLUMNS.items():
                line.append(how.format(self.measures[key][k]))
            lines.append(line)
        return lines

    def __str__(self) -> str:
        columns = []  # each padded to its widest cell
        for k, column in enumerate(zip(*self._cells(), strict=True)):
            width = max(map(len, column))
            pad = str.rjust if k else str.ljust
            columns.append([pad(cell, width) for cell in column])
        lines = zip(*columns, strict=True)
        return "\n".join("  ".join(line) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = []
        for k, line in enumerate(self._cells()):
            tag = "td" if k else "th"
            cells = [f"<{tag}>{escape(cell)}</{tag}>" for cell in line]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table>{''.join(rows)}</table>"


def compare(X, y, systems: Any = None, cv: Any = 5) -> Comparison:
    """Compare systems on data of one's own, over shared machines.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their labels.
    systems : estimator, list or dict of str to estimator, default=None
        What to compare: a list, or names with the estimators. One estimator, as
        `tune(...).best_estimator_`, stands for the usual systems with its parameters,
        in its pipeline if it is one; None for them with their defaults. Sparse rows
        are for those that take them.
    cv : int, splitter, iterable of splits, or a pair (X_valid, y_valid), default=5
        Folds, as for `tune`; none may hold a row that another one holds.

    Returns
    -------
    found : Comparison
        The table, which shows itself; `plot` draws it, `to_frame` gives it to pandas.

    Examples
    --------
    >>> from dagsvm_lab import DAGSVC, compare, load
    >>> d = load("vowel", scaled=True)
    >>> found = compare(d.X, d.y, DAGSVC(C=10, gamma=1), cv=3)
    >>> found.names[:3]
    ['OneVsRestSVC', 'MaxWinsSVC', 'DAGSVC']
    >>> kernel_evaluations = found.measures["kernel_evaluations"]
    >>> bool(kernel_evaluations[2] < kernel_evaluations[1] / 2)
    True
    """
    _, data = folded(X, y, cv)
    held = np.concatenate([rows for _, rows in data.folds])
    if len(np.unique(held)) < len(held):
        raise ValueError("compare() needs folds that hold each row back at most once")
    folds = [Folds(data, [fit], [rows]) for fit, rows in data.folds]
    chosen = _chosen(systems) or _usual(systems, folds[0])
    wrong = np.zeros((len(chosen), len(data.y)), dtype=bool)
    of_folds = []
    for fold in folds:
        numbers = []
        for k, est in enumerate(chosen.values()):
            measured, mistakes = _measured(fold, clone(est))
            wrong[k, fold.held[0]] = mistakes
            numbers.append(measured)
        of_folds.append(numbers)
    return _summary(list(chosen), wrong[:, np.sort(held)], of_folds)


def _summary(
    names: list[str], wrong: np.ndarray, of_folds: list[list[dict[str, float]]]
) -> Comparison:
    """The table, of mistakes (systems, rows) and numbers (folds, systems)."""
    measures = _accuracies(wrong)
    p_values = _holm(wrong)
    measures["p_best"] = p_values[measures["accuracy"].argmax()]
    for name in of_folds[0][0]:
        numbers = [[row[name] for row in fold] for fold in of_folds]
        measures[name] = np.mean(numbers, axis=0)
    return Comparison(names, measures, p_values, wrong)


def _chosen(systems: Any) -> dict[str, Any]:
    """The estimators of a list or dictionary, by name; empty if it is neither."""
    if isinstance(systems, Mapping):
        return dict(systems)
    if not isinstance(systems, Sequence):
        return {}
    names = []
    for est in systems:
        _, _, system = splitted(est)
        names.append(type(system).__name__)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"{min(twice)} stands in the list twice: give names, in a dictionary"
        )
    return dict(zip(names, systems, strict=True))


def _usual(model: Any, fold: Folds) -> dict[str, Any]:
    """The usual systems with the parameters of `model`, None for their defaults.

    Where the rows of the fold are sparse, those that take sparse rows.
    """
    steps, _, system = splitted(model)
    if model is not None and not isinstance(system, KernelClassifier):
        raise ValueError(
            "systems must be a list or a dictionary of estimators, or a system whose"
            f" parameters are taken; got {model!r}"
        )
    parameters = {}
    if model is not None:
        for field in fields(KernelClassifier):
            parameters[field.name] = getattr(system, field.name)
    found: dict[str, Any] = {}
    for make in USUAL:
        one = make(**parameters)
        if steps is not None:
            one = Pipeline([*steps.steps, (make.__name__.lower(), one)])
        rows, _ = fold.held_rows(one)
        if make._sparse or not issparse(rows):
            found[make.__name__] = one
    return found


def _measured(fold: Folds, est: Any) -> tuple[dict[str, float], np.ndarray]:
    """What `est` costs on a fold, and which held rows it gets wrong."""
    fitted, seconds = fold.fitted(est)
    asked, rows, truth = _asked(fold, est, fitted)
    numbers = _counted(asked, rows)
    wrong = asked.predict(rows) != truth
    numbers |= _times(asked, rows)
    numbers["train_s"] = seconds
    return numbers, wrong


def _asked(fold: Folds, est: Any, fitted: Any) -> tuple[Any, Any, np.ndarray]:
    """What is asked for the held rows of a fold, the rows as it takes them, and truth.

    That is our own system without the steps before it, so that costs can be counted
    and times are the system's; of other estimators, all of it.
    """
    steps, _, system = splitted(fitted)
    if isinstance(system, BankClassifier):
        rows, truth = fold.held_rows(est)
        # these rows are arrays: a frame's columns are not asked for again
        state = dict(vars(system))
        state.pop("feature_names_in_", None)
        return system._with(state), rows, truth
    rows, truth = fold.given_rows(est)
    if not isinstance(system, KernelClassifier):
        return fitted, rows, truth
    if steps is not None:
        rows = steps.transform(rows)
    return system, rows, truth


def _counted(asked: Any, rows: Any) -> dict[str, float]:
    """Mean costs of a row and size of the classifier, nan where nothing is counted."""
    numbers = dict.fromkeys([*COST_FIELDS, "kparameters"], np.nan)
    if isinstance(asked, KernelClassifier):
        _, cost = asked.predict_with_cost(rows)
        for name in COST_FIELDS:
            numbers[name] = float(np.mean(getattr(cost, name)))
        numbers["kparameters"] = asked.n_parameters_ / 1000
    return numbers


def _times(est: Any, rows: Any) -> dict[str, float]:
    """Microseconds of a row that comes alone and in a batch; `est` is warm."""
    n = rows.shape[0]
    singles = [_safe_indexing(rows, [k]) for k in range(min(n, SINGLE_ROWS))]
    est.predict(singles[0])  # what single rows need is made once
    alone = [_seconds(est, row) for row in singles]
    batch = min(_seconds(est, rows) for _ in range(REPEATS))
    return {
        "row_us": 1e6 * float(np.median(alone)),
        "batch_us": 1e6 * batch / n,
    }


def _seconds(est: Any, rows: Any) -> float:
    start = perf_counter()
    est.predict(rows)
    return perf_counter() - start


def _accuracies(wrong: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy in per cent with its 95 % limits, of mistakes (systems, rows)."""
    n = wrong.shape[1]
    hits = n - wrong.sum(axis=1)
    limits = np.array([binomial_interval(int(h), n) for h in hits])
    low, high = limits.T
    return {"accuracy": 100 * hits / n, "low": low, "high": high}


def _holm(wrong: np.ndarray) -> np.ndarray:
    """McNemar's exact p-values of all pairs of systems, corrected by Holm's method."""
    n = len(wrong)
    i, j = np.triu_indices(n, 1)
    found = []
    for a, b in zip(i, j, strict=True):
        test = mcnemar(wrong[a], wrong[b])
        found.append(test["p_exact"])
    p = np.array(found)
    order = np.argsort(p)
    # the smallest p times all tests, the next times one less, and never below the last
    times = len(p) - np.arange(len(p))
    rising = np.maximum.accumulate(p[order] * times)
    corrected = np.minimum(rising, 1.0)
    table = np.ones((n, n))
    table[i[order], j[order]] = corrected
    table[j[order], i[order]] = corrected
    return table
