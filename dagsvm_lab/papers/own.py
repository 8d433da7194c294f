"""A reader's own table, for the notebooks that take one.

    dagsvm-lab papers --only 05 -p csv table.csv -p target species

`own_table` reads it, refuses in a sentence what a kernel machine cannot use, and gives
inputs and class indices; `own_split` parts and scales them as the notebooks do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..files import CommandError, project_root
from .common import Split, scaled_parts, stratified_split

FEWEST = 4  # rows of a class: two to train, two to test


@dataclass(frozen=True, eq=False)
class OwnTable:
    """A reader's table: inputs as they are, and class indices."""

    name: str
    X: np.ndarray  # (rows, inputs)
    y: np.ndarray  # (rows,), indices into class_names
    features: tuple[str, ...]
    class_names: tuple[str, ...]


def own_table(csv: str | Sequence[str], target: str | Sequence[str] | None) -> OwnTable:
    """Read a CSV file whose column `target` holds the classes, every other an input.

    A relative path counts from the folder where the notebook runs, or from the project.
    Both may come in parts: the command line takes them apart at commas.
    What cannot be used is refused in a sentence that names the column and what to do:
    missing values, words among the inputs, a target that is a number to predict.
    """
    path = _found(_together(csv))
    target = None if target is None else _together(target)
    table = pd.read_csv(path, skipinitialspace=True)
    if target is None or target not in table:
        columns = ", ".join(map(str, table.columns))
        wrong = "no target is given" if target is None else f"no column {target!r}"
        raise CommandError(f"{path.name}: {wrong}; -p target takes one of {columns}")
    inputs = table.drop(columns=target)
    if inputs.columns.empty or table.empty:
        raise CommandError(f"{path.name} needs rows, and inputs beside {target!r}")
    _refuse_missing(path.name, table, target)
    _refuse_words(path.name, inputs)
    X = inputs.to_numpy(dtype=float)
    for column, values in zip(inputs, X.T, strict=True):
        if not np.isfinite(values).all():
            raise CommandError(
                f"{path.name}: column {column!r} has infinite values: leave out the "
                "rows, or the column"
            )
    classes, y, count = np.unique(
        table[target].to_numpy(), return_inverse=True, return_counts=True
    )
    _refuse_classes(path.name, target, classes, count)
    return OwnTable(
        path.stem, X, y, tuple(map(str, inputs)), tuple(str(c) for c in classes)
    )


def own_split(data: OwnTable, share: float = 0.5, seed: int = 0) -> Split:
    """Part a table by class, `share` of the rows to train, inputs scaled to [-1, 1] by
    them; inputs that are constant among them are left out."""
    train, test = stratified_split(data.y, share, seed)
    X, X_test = scaled_parts(data.X, train, test)
    rule = f"{100 * share:.0f} % of each class, at random"
    return Split(
        data.name, X, data.y[train], X_test, data.y[test], rule, seed, data.class_names
    )


def _together(named: str | Sequence[str]) -> str:
    """What was taken apart at its commas."""
    return named if isinstance(named, str) else ",".join(named)


def _found(named: str) -> Path:
    """The file that was named, from here or from the project's folder."""
    for path in (Path(named).expanduser(), project_root() / named):
        if path.is_file():
            return path
    raise CommandError(
        f"no file {named}: give its whole path, as in -p csv /.../my.csv"
    )


def _refuse_missing(name: str, table: pd.DataFrame, target: str) -> None:
    """Raise for the first column with missing values."""
    lost = table.isna().sum()
    for column in lost[lost > 0].index:
        todo = "leave those rows out"
        if column != target:
            todo += " (table.dropna()), or fill them (sklearn.impute.SimpleImputer)"
        raise CommandError(
            f"{name}: column {column!r} has {lost[column]} missing values of "
            f"{len(table)}: {todo}"
        )


def _refuse_words(name: str, inputs: pd.DataFrame) -> None:
    """Raise for the first input that is not numbers."""
    for column in inputs:
        if pd.api.types.is_numeric_dtype(inputs[column]):
            continue
        values = inputs[column].astype(str).unique()
        shown = ", ".join(map(repr, values[:3]))
        raise CommandError(
            f"{name}: column {column!r} holds words ({shown}): encode it, one "
            f"input a category (pandas.get_dummies(table, columns=[{column!r}])), or "
            "leave it out"
        )


def _refuse_classes(
    name: str, target: str, classes: np.ndarray, count: np.ndarray
) -> None:
    """Raise for a target with one class, with too few rows of one, or of numbers."""
    if len(classes) < 2:
        raise CommandError(f"{name}: target {target!r} has one class, {classes[0]!r}")
    rows = int(count.sum())
    if len(classes) > rows / FEWEST:
        raise CommandError(
            f"{name}: target {target!r} has {len(classes)} values in {rows} rows: is "
            "it a number to predict? Cut it into classes (pandas.cut)"
        )
    if count.min() < FEWEST:
        rare = classes[int(count.argmin())]
        raise CommandError(
            f"{name}: class {rare!r} of target {target!r} has {count.min()} rows, and "
            f"{FEWEST} are needed: leave it out, or join it with another"
        )
