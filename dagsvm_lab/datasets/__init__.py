"""The papers' data sets: `load("letter")` gives arrays, `catalogue()` a card for each.

Fifteen sets ship in files/ as packed.py says; Iris and Wine come from scikit-learn, one
is generated, and two are read from a folder of the user's or fetched. Every file's
SHA-256 is checked before it is parsed.
"""

from dataclasses import dataclass
from inspect import signature

import numpy as np

from .cards import Card, card_of, cards, list_text
from .originals import build, fetch_or_find, read_svmlight, read_table, verify
from .packed import DataError, read_verified, sha256, unpack
from .scaling import scale_like_training, standardise_like_training

__all__ = [
    "Card",
    "DataError",
    "Dataset",
    "build",
    "catalogue",
    "list_text",
    "load",
    "scale_like_training",
    "standardise_like_training",
    "verify",
]
CARD_FIELDS = (  # fields of a card that `catalogue` shows, from "rows" on
    "title rows inputs classes where licence done scaling source citation"
).split()


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """All rows of a data set in file order, and its parts as views of them.

    A part is None where the set has none such. Values are (rows, inputs).
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    rows: dict[str, int]
    feature_names: tuple[str, ...]
    card: Card

    def _part(self, array: np.ndarray, part: str) -> np.ndarray | None:
        """The rows of a part, which follow each other in the order of `rows`."""
        first = 0
        for name, n in self.rows.items():
            if name == part:
                return array[first : first + n]
            first += n
        return None

    @property
    def X_train(self) -> np.ndarray:
        """The training rows' values."""
        return self._part(self.X, "train")

    @property
    def y_train(self) -> np.ndarray:
        """The training rows' labels."""
        return self._part(self.y, "train")

    @property
    def X_valid(self) -> np.ndarray | None:
        """The validation rows' values, or None."""
        return self._part(self.X, "valid")

    @property
    def y_valid(self) -> np.ndarray | None:
        """The validation rows' labels, or None."""
        return self._part(self.y, "valid")

    @property
    def X_test(self) -> np.ndarray | None:
        """The test rows' values, or None."""
        return self._part(self.X, "test")

    @property
    def y_test(self) -> np.ndarray | None:
        """The test rows' labels, or None."""
        return self._part(self.y, "test")

    @property
    def class_names(self) -> tuple[str, ...]:
        """A name for each class, in the sorted order of the labels."""
        return self.card.class_names or tuple(map(str, np.unique(self.y)))

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {n}" for part, n in self.rows.items())
        sizes = f"{self.X.shape[1]} inputs, {self.card.classes} classes"
        return f"Dataset({self.name!r}: {parts}; {sizes})"


def load(name: str, scaled: bool = False, **options) -> Dataset:
    """Load a data set by its name or by one of the papers' names for it.

    Parameters
    ----------
    name : str
        As `dagsvm-lab data list` and `catalogue` give it.
    scaled : bool, default=False
        Scale the values as the set's paper did, fitted on the training rows; otherwise
        they are the original ones.
    **options
        letter `train=16000` (rows before the split), glass `with_id=False`, heart
        `drop_missing=False`, artificial `seed=0, n_per_class=300`.

    Returns
    -------
    Dataset
        Its `X_train`, `y_train` and so on are float64 values (Covertype's float32) and
        labels.

    Raises
    ------
    DataError
        If a file is missing or damaged, or the set is neither at hand nor fetched.

    Examples
    --------
    >>> from dagsvm_lab import load
    >>> load("iris")
    Dataset('iris': train 150; 4 inputs, 3 classes)
    """
    card = card_of(name)
    reader = READERS.get(card.name, _shipped)
    unknown = set(options) - set(signature(reader).parameters)
    if unknown:
        names = ", ".join(sorted(unknown))
        raise TypeError(f"load({card.name!r}) has no option {names}")
    X, y, rows, features = reader(card, **options)
    if scaled:
        X = _scaled(card, X, rows["train"])
    if not features:
        features = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    return Dataset(card.name, X, y, rows, features, card)


def catalogue():
    """Return all cards as a pandas DataFrame, by name."""
    import pandas as pd

    rows = [vars(card) | {"rows": card.split} for card in cards().values()]
    return pd.DataFrame(rows).set_index("name")[CARD_FIELDS]


def _scaled(card: Card, X: np.ndarray, n: int) -> np.ndarray:
    """Return X scaled as the card says, fitted on its first n rows."""
    if card.name == "covertype":  # its codes stay 0 or 1
        for j in range(10):  # a column at a time, for they are long
            _, X[:, j] = standardise_like_training(X[:n, j], X[:, j])
        return X
    match card.scaling:
        case "none":
            return X
        case "x / 7.5 - 1":
            return X / 7.5 - 1
        case "x / 4080":
            return X / 4080
        case "to [-1, 1]":
            return scale_like_training(X[:n], X)[1]
        case "to mean 0, variance 1":
            return standardise_like_training(X[:n], X)[1]
    raise ValueError(f"{card.name}: there is no scaling {card.scaling!r}")


# Readers return values, labels, the rows of each part, and names of the inputs.


def _shipped(card: Card) -> tuple:
    """Return a set that ships with the package."""
    X, y = unpack(read_verified(card.path, card.sha256, card.name))
    return X, y, card.rows, card.features


def _letter(card: Card, train: int = 16000) -> tuple:
    """Return Letter, its first rows as training rows."""
    X, y, _, features = _shipped(card)
    if not 0 < train < len(X):
        raise ValueError(
            f"letter: train must lie between 1 and {len(X) - 1}, not {train}"
        )
    return X, y, {"train": train, "test": len(X) - train}, features


def _covertype(card: Card) -> tuple:
    """Return Covertype: ten measurements, and two codes as 4 and 40 inputs of 0, 1."""
    kept, y, rows, features = _shipped(card)
    X = np.zeros((len(kept), 54), np.float32)
    X[:, :10] = kept[:, :10]
    every = np.arange(len(X))
    area = kept[:, 10].astype(np.intp)
    soil = kept[:, 11].astype(np.intp)
    X[every, 10 + area] = 1
    X[every, 14 + soil] = 1
    areas = [f"wilderness area {k + 1}" for k in range(4)]
    soils = [f"soil type {k + 1}" for k in range(40)]
    return X, y, rows, (*features, *areas, *soils)


def _glass(card: Card, with_id: bool = False) -> tuple:
    """Return Glass; one of the papers had the Id in front."""
    X, y, rows, features = _shipped(card)
    if with_id:
        return X, y, rows, features
    return X[:, 1:].copy(), y, rows, features[1:]


def _heart(card: Card, drop_missing: bool = False) -> tuple:
    """Return Heart, perhaps without the rows that lack a value."""
    X, y, rows, features = _shipped(card)
    if drop_missing:
        whole = ~np.isnan(X).any(axis=1)
        return X[whole], y[whole], {"train": int(whole.sum())}, features
    return X, y, rows, features


def _from_sklearn(card: Card) -> tuple:
    """Return Iris or Wine as scikit-learn has it, if its values are what they were."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{card.name}")(return_X_y=True)
    found = sha256(X.astype("<f8").tobytes() + y.astype("<i8").tobytes())
    if found != card.sha256:
        raise DataError(
            f"{card.name}: scikit-learn's copy has changed: SHA-256 {found[:12]}, not "
            f"{card.sha256[:12]}."
        )
    return X, y, card.rows, card.features


def _artificial(card: Card, seed: int = 0, n_per_class: int = 300) -> tuple:
    """Return six Gaussian classes in the plane, drawn from the seed, rows shuffled."""
    rng = np.random.default_rng(seed)
    classes = np.array(card.layout["classes"])
    y = rng.permutation(np.repeat(np.arange(1, len(classes) + 1), n_per_class))
    centre = classes[y - 1, :2]
    deviation = classes[y - 1, 2:]
    X = centre + deviation * rng.standard_normal((len(y), 2))
    return X, y, {"train": len(y)}, card.features


def _fetched(card: Card) -> tuple:
    """Return a set from a folder of the user's, or from its home."""
    values = []
    labels = []
    for file in fetch_or_find(card):
        if card.layout:
            X, y = read_table(file, **card.layout)
        else:
            X, y = read_svmlight(file, card.inputs)
        values.append(X)
        labels.append(y)
    X = np.concatenate(values)
    return X, np.concatenate(labels), card.rows, card.features


READERS = {
    "letter": _letter,
    "covertype": _covertype,
    "glass": _glass,
    "heart": _heart,
    "artificial": _artificial,
    "iris": _from_sklearn,
    "wine": _from_sklearn,
    "svmguide4": _fetched,
    "poker": _fetched,
}
