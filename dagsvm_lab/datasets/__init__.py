"""The papers' data sets: `load("letter")` gives arrays, `catalogue()` a card for each.

Fifteen sets ship in files/ as packed.py says; Iris and Wine come from scikit-learn, one is generated, and two are read
from a folder of the user's or fetched. Every file's SHA-256 is checked before it is parsed.
"""

from dataclasses import dataclass
from inspect import signature

import numpy as np

from .cards import Card, card_of, cards, list_text
from .originals import build, fetch_or_find, read_svmlight, read_table, verify
from .packed import DataError, read_verified, sha256, unpack
from .scaling import scale_like_training, standardise_like_training

__all__ = ["Card", "DataError", "Dataset", "build", "catalogue", "list_text", "load", "verify"]
__all__ += ["scale_like_training", "standardise_like_training"]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """All rows of a data set in file order, and its parts as views of them: None where the set has no such part."""

    name: str
    X: np.ndarray
    y: np.ndarray
    rows: dict[str, int]
    feature_names: tuple[str, ...]
    card: Card

    def _part(self, array: np.ndarray, part: str) -> np.ndarray | None:
        ends = dict(zip(self.rows, np.cumsum([*self.rows.values()]), strict=True))
        return array[ends[part] - self.rows[part] : ends[part]] if part in ends else None

    X_train = property(lambda self: self._part(self.X, "train"), doc="The training rows' values.")
    y_train = property(lambda self: self._part(self.y, "train"), doc="The training rows' labels.")
    X_valid = property(lambda self: self._part(self.X, "valid"), doc="The validation rows' values, or None.")
    y_valid = property(lambda self: self._part(self.y, "valid"), doc="The validation rows' labels, or None.")
    X_test = property(lambda self: self._part(self.X, "test"), doc="The test rows' values, or None.")
    y_test = property(lambda self: self._part(self.y, "test"), doc="The test rows' labels, or None.")

    class_names = property(lambda self: self.card.class_names or tuple(map(str, np.unique(self.y))),
                           doc="A name for each class, in the sorted order of the labels.")  # fmt: skip

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {n}" for part, n in self.rows.items())
        return f"Dataset({self.name!r}: {parts}; {self.X.shape[1]} inputs, {self.card.classes} classes)"


def load(name: str, scaled: bool = False, **options) -> Dataset:
    """Load a data set by its name or by one of the papers' names for it.

    Parameters
    ----------
    name : str
        As `dagsvm-lab data list` and `catalogue` give it.
    scaled : bool, default=False
        Scale the values as the set's paper did, fitted on the training rows; otherwise they are the original ones.
    **options
        letter `train=16000` (rows before the split), glass `with_id=False`, heart `drop_missing=False`, artificial
        `seed=0, n_per_class=300`.

    Returns
    -------
    Dataset
        Its `X_train`, `y_train` and so on are float64 values (Covertype's float32) and labels.

    Raises
    ------
    DataError
        If a file is missing or damaged, or the set is neither at hand nor to be fetched.

    Examples
    --------
    >>> from dagsvm_lab import load
    >>> load("iris")
    Dataset('iris': train 150; 4 inputs, 3 classes)
    """
    card = card_of(name)
    reader = READERS.get(card.name, _shipped)
    if unknown := {*options} - {*signature(reader).parameters}:
        raise TypeError(f"load({card.name!r}) has no option {', '.join(sorted(unknown))}")
    X, y, rows, features = reader(card, **options)
    X = _scaled(card, X, rows["train"]) if scaled else X
    return Dataset(card.name, X, y, rows, features or tuple(f"x{j + 1}" for j in range(X.shape[1])), card)


def catalogue():
    """Return all cards as a pandas DataFrame, by name."""
    import pandas as pd

    shown = ["name", "title", "rows", "inputs", "classes", "where", "licence", "done", "scaling", "source", "citation"]
    return pd.DataFrame([vars(card) | {"rows": card.split} for card in cards().values()])[shown].set_index("name")


def _scaled(card: Card, X: np.ndarray, n: int) -> np.ndarray:
    """Return X scaled as the card says, fitted on its first n rows."""
    if card.name == "covertype":  # its codes stay 0 or 1; a column at a time, for they are long
        for j in range(10):
            X[:, j] = standardise_like_training(X[:n, j], X[:, j])[1]
        return X
    return {
        "none": lambda: X,
        "x / 7.5 - 1": lambda: X / 7.5 - 1,
        "x / 4080": lambda: X / 4080,
        "to [-1, 1]": lambda: scale_like_training(X[:n], X)[1],
        "to mean 0, variance 1": lambda: standardise_like_training(X[:n], X)[1],
    }[card.scaling]()


def _shipped(card: Card) -> tuple:
    return *unpack(read_verified(card.path, card.sha256, card.name)), card.rows, card.features


def _letter(card: Card, train: int = 16000) -> tuple:
    X, y, _, features = _shipped(card)
    if not 0 < train < len(X):
        raise ValueError(f"letter: train must lie between 1 and {len(X) - 1}, not {train}")
    return X, y, {"train": train, "test": len(X) - train}, features


def _covertype(card: Card) -> tuple:
    """Return Covertype's ten measurements, and its two codes as 4 and 40 inputs of 0 and 1."""
    kept, y, rows, features = _shipped(card)
    X = np.zeros((len(kept), 54), np.float32)
    X[:, :10] = kept[:, :10]
    for first, code in ((10, kept[:, 10]), (14, kept[:, 11])):
        X[np.arange(len(X)), first + code.astype(np.intp)] = 1
    areas, soils = (f"wilderness area {k + 1}" for k in range(4)), (f"soil type {k + 1}" for k in range(40))
    return X, y, rows, (*features, *areas, *soils)


def _glass(card: Card, with_id: bool = False) -> tuple:  # one of the papers had the Id in front
    X, y, rows, features = _shipped(card)
    return (X, y, rows, features) if with_id else (X[:, 1:].copy(), y, rows, features[1:])


def _heart(card: Card, drop_missing: bool = False) -> tuple:
    X, y, rows, features = _shipped(card)
    if drop_missing:
        whole = ~np.isnan(X).any(axis=1)
        X, y, rows = X[whole], y[whole], {"train": int(whole.sum())}
    return X, y, rows, features


def _from_sklearn(card: Card) -> tuple:
    """Return Iris or Wine as scikit-learn has it; refused if its values are not what they were."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{card.name}")(return_X_y=True)
    if (found := sha256(X.astype("<f8").tobytes() + y.astype("<i8").tobytes())) != card.sha256:
        raise DataError(f"{card.name}: scikit-learn's copy has changed: SHA-256 {found[:12]}, not {card.sha256[:12]}.")
    return X, y, card.rows, card.features


def _artificial(card: Card, seed: int = 0, n_per_class: int = 300) -> tuple:
    """Return six Gaussian classes in the plane, drawn from the seed, in a random order of rows."""
    rng = np.random.default_rng(seed)
    classes = np.array(card.layout["classes"])
    y = rng.permutation(np.repeat(np.arange(1, len(classes) + 1), n_per_class))
    place = classes[y - 1]
    return place[:, :2] + place[:, 2:] * rng.standard_normal((len(y), 2)), y, {"train": len(y)}, card.features


def _fetched(card: Card) -> tuple:
    files = fetch_or_find(card)
    parts = [read_table(f, **card.layout) if card.layout else read_svmlight(f, card.inputs) for f in files]
    return *map(np.concatenate, zip(*parts, strict=True)), card.rows, card.features


READERS = dict(letter=_letter, covertype=_covertype, glass=_glass, heart=_heart, artificial=_artificial)
READERS |= dict(iris=_from_sklearn, wine=_from_sklearn, svmguide4=_fetched, poker=_fetched)
