"""The papers' data sets: `load("letter")` gives arrays, `catalogue()` a card for each.

Fifteen sets ship with the package in files/, packed as packed.py says; Iris and Wine come from scikit-learn, one set is
generated, and two are read from a folder of the user's or fetched. Every file's SHA-256 is checked before it is parsed.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

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
        start = 0
        for name, n in self.rows.items():
            if name == part:
                return array[start : start + n]
            start += n
        return None

    X_train = property(lambda self: self._part(self.X, "train"), doc="The training rows' values.")
    y_train = property(lambda self: self._part(self.y, "train"), doc="The training rows' labels.")
    X_valid = property(lambda self: self._part(self.X, "valid"), doc="The validation rows' values, or None.")
    y_valid = property(lambda self: self._part(self.y, "valid"), doc="The validation rows' labels, or None.")
    X_test = property(lambda self: self._part(self.X, "test"), doc="The test rows' values, or None.")
    y_test = property(lambda self: self._part(self.y, "test"), doc="The test rows' labels, or None.")

    @property
    def class_names(self) -> tuple[str, ...]:
        """A name for each class, in the sorted order of the labels."""
        return self.card.class_names or tuple(str(label) for label in np.unique(self.y))

    def __repr__(self) -> str:
        parts = ", ".join(f"{part} {n}" for part, n in self.rows.items())
        return f"Dataset({self.name!r}: {parts}; {self.X.shape[1]} inputs, {self.card.classes} classes)"


def load(name: str, scaled: bool = False, **options) -> Dataset:
    """The data set of that name: original values, or with `scaled` as its paper scaled it, fitted on training rows.

    Options: letter `train=16000` (rows before the split), glass `with_id=False`, heart `drop_missing=False`, artificial
    `seed=0, n_per_class=300`. Values are float64, Covertype's float32. A missing or damaged file, or a set that is
    neither at hand nor to be fetched, raises `DataError`.
    """
    card = card_of(name)
    reader = READERS.get(card.name, _shipped)
    if unknown := set(options) - set(reader.__code__.co_varnames[1 : reader.__code__.co_argcount]):
        raise TypeError(f"load({card.name!r}) has no option {', '.join(sorted(unknown))}")
    X, y, rows, features = reader(card, **options)
    if scaled:
        X = _scaled(card, X, rows["train"])
    return Dataset(card.name, X, y, rows, features or tuple(f"x{j + 1}" for j in range(X.shape[1])), card)


def catalogue():
    """All cards as a pandas DataFrame, by name."""
    import pandas as pd

    columns = ("title", "split", "inputs", "classes", "where", "licence", "done", "scaling", "source", "citation")
    rows = [[getattr(card, column) for column in columns] for card in cards().values()]
    table = pd.DataFrame(rows, columns=columns, index=pd.Index(cards(), name="name"))
    table["originals"] = [
        " ".join(f"{digest} {file}" for file, digest in c.originals.items()) for c in cards().values()
    ]
    return table.rename(columns={"split": "rows"})


def _scaled(card: Card, X: np.ndarray, n: int) -> np.ndarray:
    """X scaled as the card says, fitted on its first n rows."""
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
    """The rows of a shipped file."""
    return *unpack(read_verified(card.path, card.sha256, card.name)), card.rows, card.features


def _letter(card: Card, train: int = 16000) -> tuple:
    """Letter, with the split after `train` rows."""
    X, y, _, features = _shipped(card)
    if not 0 < train < len(X):
        raise ValueError(f"letter: train must lie between 1 and {len(X) - 1}, not {train}")
    return X, y, {"train": train, "test": len(X) - train}, features


def _covertype(card: Card) -> tuple:
    """Covertype's ten measurements, and its two codes as 4 and 40 inputs of 0 and 1."""
    kept, y, rows, features = _shipped(card)
    X = np.zeros((len(kept), 54), np.float32)
    X[:, :10] = kept[:, :10]
    for first, code in ((10, kept[:, 10]), (14, kept[:, 11])):
        X[np.arange(len(X)), first + code.astype(np.intp)] = 1
    areas, soils = (f"wilderness area {k + 1}" for k in range(4)), (f"soil type {k + 1}" for k in range(40))
    return X, y, rows, (*features, *areas, *soils)


def _glass(card: Card, with_id: bool = False) -> tuple:
    """Glass, without the Id column or, as one of the papers had it, with it in front."""
    X, y, rows, features = _shipped(card)
    return (X, y, rows, features) if with_id else (X[:, 1:].copy(), y, rows, features[1:])


def _heart(card: Card, drop_missing: bool = False) -> tuple:
    """Cleveland's rows, or only those in which nothing is missing."""
    X, y, rows, features = _shipped(card)
    if drop_missing:
        whole = ~np.isnan(X).any(axis=1)
        X, y, rows = X[whole], y[whole], {"train": int(whole.sum())}
    return X, y, rows, features


def _from_sklearn(card: Card) -> tuple:
    """Iris or Wine as scikit-learn has it; refused if its values are not what they were."""
    folder = find_spec("sklearn").submodule_search_locations[0]  # importing it would take longer than reading its file
    try:
        text = Path(folder, "datasets", "data", card.layout["file"]).read_bytes()
    except OSError as error:
        raise DataError(f"{card.name}: scikit-learn has no file {card.layout['file']} any more.") from error
    X, y = read_table(text, label="last", delimiter=",", header=1)
    if (found := sha256(X.astype("<f8").tobytes() + y.astype("<i8").tobytes())) != card.sha256:
        raise DataError(f"{card.name}: scikit-learn's copy has changed: SHA-256 {found[:12]}, not {card.sha256[:12]}.")
    return X, y, card.rows, card.features


# Centre and deviation (x, y) of each class, as in Figure 1 of Don and Iacob. The linear machine of 1 and 2 is near
# x = 0: class 6 lies on 1's side, 4 on 2's, 5 on 2's but for a fiftieth, and 3 on both.
LAYOUT = {
    1: (-1.6, 0.0, 0.6, 1.5),
    2: (1.6, 0.0, 0.6, 1.5),
    3: (0.0, 5.2, 1.2, 0.6),
    4: (4.7, 3.6, 0.8, 0.8),
    5: (1.9, -5.0, 0.9, 0.6),
    6: (-4.7, 3.6, 0.8, 0.8),
}


def _artificial(card: Card, seed: int = 0, n_per_class: int = 300) -> tuple:
    """Six Gaussian classes in the plane, drawn from the seed, in a random order of rows."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(list(LAYOUT), n_per_class))
    place = np.array([LAYOUT[label] for label in y])
    return place[:, :2] + place[:, 2:] * rng.standard_normal((len(y), 2)), y, {"train": len(y)}, card.features


def _svmguide4(card: Card) -> tuple:
    """svmguide4: the file of 300 rows, then the one of 312."""
    parts = [read_svmlight(data, card.inputs) for data in fetch_or_find(card)]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X, y, card.rows, card.features


def _poker(card: Card) -> tuple:
    """Poker's training file."""
    return *read_table(*fetch_or_find(card), **card.layout), card.rows, card.features


READERS = {
    "letter": _letter,
    "covertype": _covertype,
    "glass": _glass,
    "heart": _heart,
    "iris": _from_sklearn,
    "wine": _from_sklearn,
    "artificial": _artificial,
    "svmguide4": _svmguide4,
    "poker": _poker,
}
