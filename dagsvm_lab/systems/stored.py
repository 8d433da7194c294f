"""Fitted estimators as files of plain arrays: nothing is pickled, and a file that is no model gets a sentence."""

import json
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Self
from zipfile import ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..files import write_atomically
from ..machines import Bank

FORMAT = 2
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
DEFLATE = 1100  # times its size is the most that a deflated file can hold, with room for names


class Stored:
    """An estimator that can be saved as plain arrays and loaded again."""

    _saved: ClassVar[tuple[str, ...]] = ()  # fitted attributes that are kept besides the bank and the classes

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file of plain arrays.

        Parameters
        ----------
        path : str or Path
            The file, by custom `*.npz`. Nothing in it is pickled.
        """
        check_is_fitted(self)
        params = {name: _plain(value, name) for name, value in self.get_params().items()}
        named = self.classes_.dtype == object
        about = {"class": type(self).__name__, "format": FORMAT, "params": params}
        about["labels"] = _plain(self.classes_, "a class label") if named else None
        arrays = {f"bank_{name}": value for name, value in self.machines_.to_arrays().items()}
        arrays |= {name: np.asarray(getattr(self, name)) for name in ("n_features_in_", *self._saved)}
        if not named:
            arrays["classes_"] = self.classes_
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names_in_"] = self.feature_names_in_.astype(str)
        content = BytesIO()
        np.savez_compressed(content, about=np.array(json.dumps(about)), **arrays)
        write_atomically(Path(path), lambda part: part.write_bytes(content.getvalue()))

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
            name, version = about["class"], about["format"]
        except Exception as error:
            raise ValueError(f"{path} is not a model that dagsvm_lab saved, or it is damaged: {error}") from None
        if version != FORMAT:
            raise ValueError(f"{path} has format {version}; this version reads format {FORMAT}")
        found = [c for c in _family(cls) if c.__name__ == name]
        if not found:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        try:
            est = found[0](**{key: _original(value) for key, value in about["params"].items()})
            labels = about["labels"]
            est.classes_ = arrays.pop("classes_") if labels is None else np.array(_original(labels), dtype=object)
            est._restore(arrays)
        except Exception as error:
            raise ValueError(f"{path} is not a whole model: {type(error).__name__}: {error}") from None
        return est

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Set the fitted state from `arrays`."""
        bank = {name[5:]: arrays.pop(name) for name in list(arrays) if name.startswith("bank_")}
        self.machines_ = bank = Bank.from_arrays(bank)
        bank.coef.check_format(full_check=True)
        shapes = bank.coef.shape == (len(bank.code), len(bank.support)) and bank.bias.shape == (len(bank.code),)
        if not shapes or bank.vectors is not None and bank.vectors.shape != (len(bank.support), bank.n_inputs):
            raise ValueError("its arrays do not fit each other")
        if bank.code.shape[1] != len(self.classes_) or bank.n_inputs != arrays["n_features_in_"]:
            raise ValueError("its classes or inputs are not those of its machines")
        for name, value in arrays.items():
            setattr(self, name, value if value.ndim else value.item())
        if "feature_names_in_" in arrays:
            self.feature_names_in_ = arrays["feature_names_in_"].astype(object)


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, each checked by its CRC-32 and made only if its size can be true."""
    with ZipFile(BytesIO(data)) as file:
        members = file.infolist()
        if sum(m.file_size for m in members) > DEFLATE * len(data):
            raise ValueError("it claims to hold more than it can")
        return {m.filename.removesuffix(".npy"): _array(BytesIO(file.read(m)), m.file_size) for m in members}


def _array(member: BytesIO, size: int) -> np.ndarray:
    """The array of an .npy file of that size, made only if it fills the file."""
    shape, _, dtype = HEADERS[np.lib.format.read_magic(member)](member)
    if prod(shape) * max(dtype.itemsize, 1) != size - member.tell() and not dtype.hasobject:
        raise ValueError("an array in it is larger or smaller than it claims")
    member.seek(0)
    return np.lib.format.read_array(member, allow_pickle=False)


def _family(cls: type) -> list[type]:
    return [cls, *(d for c in cls.__subclasses__() for d in _family(c))]


def _plain(value: Any, name: str) -> Any:
    """`value` as JSON can write it; a dictionary as a list of pairs, which keeps the types of its keys."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {"pairs": [[_plain(part, name) for part in pair] for pair in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(part, name) for part in value]
    if not isinstance(value, str | int | float | None):
        raise ValueError(f"only plain parameters and labels can be saved; {name} is not plain: {value!r}")
    return value


def _original(value: Any) -> Any:
    """What `_plain` was given."""
    if isinstance(value, dict):
        return {_original(key): _original(part) for key, part in value["pairs"]}
    return [_original(part) for part in value] if isinstance(value, list) else value
