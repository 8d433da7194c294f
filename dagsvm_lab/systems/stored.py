"""Fitted estimators as files of plain arrays.

Nothing is pickled. A file that is no model, a damaged one, and one whose arrays cannot
be those of a trained model are refused in a sentence when they are loaded.
"""

import json
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Self
from zipfile import ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..bank import Bank
from ..files import write_bytes
from .believable import check_bank, expect

FORMAT = 2
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
DEFLATE = 1100  # times its size is the most that a deflated file holds, and some names
BANK = "bank_"  # what the names of the bank's arrays begin with
GONE = {
    "ConformalDAGSVC": "which version 3.0 no longer has: fit a FilteredDAGSVC instead"
}


class Stored:
    """An estimator that can be saved as plain arrays and loaded again."""

    _saved: ClassVar[tuple[str, ...]] = ()  # fitted arrays besides bank and classes

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file of plain arrays.

        A pipeline's other steps, as a scaler, are not part of it.

        Parameters
        ----------
        path : str or Path
            The file, by custom `*.npz`. Nothing in it is pickled.
        """
        check_is_fitted(self)
        params = self.get_params(deep=False)
        about = {
            "class": type(self).__name__,
            "format": FORMAT,
            "params": {name: _plain(value, name) for name, value in params.items()},
            "labels": None,
        }
        arrays = {}
        for name, value in self.machines_.to_arrays().items():
            arrays[BANK + name] = value
        for name in ("n_features_in_", *self._saved):
            arrays[name] = np.asarray(getattr(self, name))
        if self.classes_.dtype == object:  # which an array could only pickle
            about["labels"] = _plain(self.classes_, "a class label")
        else:
            arrays["classes_"] = self.classes_
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in_"] = self.feature_names_in_.astype(str)
        content = BytesIO()
        np.savez_compressed(content, about=np.array(json.dumps(about)), **arrays)
        write_bytes(Path(path), content.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        estimator : object
            The fitted estimator, of this class or one derived from it.
        """
        data = Path(path).read_bytes()
        try:
            arrays = _arrays(data)
            about = json.loads(str(arrays.pop("about")))
            name = about["class"]
            version = about["format"]
        except Exception as error:
            raise ValueError(
                f"{path} is not a model that dagsvm_lab saved, or it is damaged:"
                f" {error}"
            ) from None
        if version != FORMAT:
            raise ValueError(
                f"{path} has format {version}; this version reads format {FORMAT}"
            )
        if name in GONE:
            raise ValueError(f"{path} holds a {name}, {GONE[name]}")
        found = [kind for kind in _family(cls) if kind.__name__ == name]
        if not found:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        try:
            return found[0]._of_parts(about, arrays)
        except Exception as error:
            raise ValueError(
                f"{path} is not a whole model: {type(error).__name__}: {error}"
            ) from None

    @classmethod
    def _of_parts(cls, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The estimator that a file describes; raises where the parts do not fit."""
        params = about["params"].items()
        est = cls(**{name: _original(value) for name, value in params})
        est._validate_params()
        if about["labels"] is None:
            est.classes_ = arrays.pop("classes_")
        else:
            est.classes_ = np.array(_original(about["labels"]), dtype=object)
        est._restore(arrays)
        return est

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Set the fitted state from `arrays`, and refuse what cannot be."""
        n_classes = len(self.classes_)
        expect("classes_", self.classes_, None, (max(n_classes, 2),))
        ascend = self.classes_[:-1] < self.classes_[1:]
        if not ascend.all():
            raise ValueError("classes_ are not sorted")

        of_bank = {name for name in arrays if name.startswith(BANK)}
        known = {"n_features_in_", "feature_names_in_", *self._saved}
        if unknown := sorted(arrays.keys() - of_bank - known):
            raise ValueError(f"{unknown[0]!r} is no array of this estimator")
        bank = {name.removeprefix(BANK): arrays[name] for name in of_bank}
        self.machines_ = Bank.from_arrays(bank)
        check_bank(self.machines_, n_classes)

        for name in ("n_features_in_", *self._saved):
            value = arrays[name]
            # a number was made an array to be saved
            setattr(self, name, value if value.ndim else value.item())
        n_inputs = self.machines_.n_inputs
        if self.n_features_in_ != n_inputs:
            raise ValueError(f"n_features_in_ is not {n_inputs}")
        if "feature_names_in_" in arrays:
            names = arrays["feature_names_in_"]
            expect("feature_names_in_", names, "U", (n_inputs,))
            self.feature_names_in_ = names.astype(object)
        self._check_saved()

    def _check_saved(self) -> None:
        """Refuse arrays of `_saved` that cannot be those of a fitted estimator."""


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz file.

    Each is checked by its CRC-32, and made only if its size can be true.
    """
    found = {}
    with ZipFile(BytesIO(data)) as file:
        members = file.infolist()
        claimed = sum(member.file_size for member in members)
        if claimed > DEFLATE * len(data):
            raise ValueError("it claims to hold more than it can")
        for member in members:
            name = member.filename.removesuffix(".npy")
            content = BytesIO(file.read(member))
            found[name] = _array(content, member.file_size)
    return found


def _array(member: BytesIO, size: int) -> np.ndarray:
    """The array of an .npy file of that size, made only if it fills the file."""
    read_header = HEADERS[np.lib.format.read_magic(member)]
    shape, _, dtype = read_header(member)
    claimed = prod(shape) * max(dtype.itemsize, 1)
    there = size - member.tell()
    if claimed != there and not dtype.hasobject:
        raise ValueError("an array in it is larger or smaller than it claims")
    member.seek(0)
    return np.lib.format.read_array(member, allow_pickle=False)


def _family(cls: type) -> list[type]:
    """This class and all that are derived from it."""
    family = [cls]
    for child in cls.__subclasses__():
        family += _family(child)
    return family


def _plain(value: Any, name: str) -> Any:
    """`value` as JSON can write it.

    A dictionary becomes a list of pairs, which keeps the types of its keys; an
    estimator becomes its class and its parameters.
    """
    if isinstance(value, Stored):
        params = value.get_params(deep=False)
        return {"estimator": type(value).__name__, "params": _plain(params, name)}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        pairs = [[_plain(key, name), _plain(v, name)] for key, v in value.items()]
        return {"pairs": pairs}
    if isinstance(value, list | tuple):
        return [_plain(part, name) for part in value]
    if not isinstance(value, str | int | float | None):
        raise ValueError(
            f"only plain parameters and labels can be saved; {name} is not plain:"
            f" {value!r}"
        )
    return value


def _original(value: Any) -> Any:
    """What `_plain` was given."""
    if isinstance(value, dict) and "estimator" in value:
        kinds = {kind.__name__: kind for kind in _family(Stored)}
        kind = kinds[value["estimator"]]
        return kind(**_original(value["params"]))
    if isinstance(value, dict):
        return {_original(key): _original(part) for key, part in value["pairs"]}
    if isinstance(value, list):
        return [_original(part) for part in value]
    return value
