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
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..bank import STATS, Bank
from ..files import write_bytes

FORMAT = 2
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
DEFLATE = 1100  # times its size is the most that a deflated file holds, and some names
BANK = "bank_"  # what the names of the bank's arrays begin with
WHOLE = "iu"  # kinds of NumPy arrays that hold whole numbers
TINY = np.nextafter(0.0, 1.0)
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
        named = self.classes_.dtype == object
        about = {
            "class": type(self).__name__,
            "format": FORMAT,
            "params": {name: _plain(value, name) for name, value in params.items()},
            "labels": _plain(self.classes_, "a class label") if named else None,
        }
        arrays = {}
        for name, value in self.machines_.to_arrays().items():
            arrays[BANK + name] = value
        for name in ("n_features_in_", *self._saved):
            arrays[name] = np.asarray(getattr(self, name))
        if not named:
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
        found = [c for c in _family(cls) if c.__name__ == name]
        if not found:
            raise ValueError(f"{path} holds a {name}, not a {cls.__name__}")
        try:
            params = about["params"].items()
            est = found[0](**{key: _original(value) for key, value in params})
            est._validate_params()
            if about["labels"] is None:
                est.classes_ = arrays.pop("classes_")
            else:
                est.classes_ = np.array(_original(about["labels"]), dtype=object)
            est._restore(arrays)
        except Exception as error:
            raise ValueError(
                f"{path} is not a whole model: {type(error).__name__}: {error}"
            ) from None
        return est

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Set the fitted state from `arrays`, and refuse what cannot be."""
        n_classes = len(self.classes_)
        expect("classes_", self.classes_, None, (max(n_classes, 2),))
        if not (self.classes_[:-1] < self.classes_[1:]).all():
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


def expect(
    name: str,
    array: Any,
    kinds: str | None,
    shape: tuple[int, ...],
    low: float = -np.inf,
    high: float = np.inf,
) -> None:
    """Raise a ValueError unless `array` has one of these kinds, this shape and range.

    `kinds` are NumPy's letters, None for any kind; numbers have to be finite.
    """
    array = np.asarray(array)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if kinds is not None and array.dtype.kind not in kinds:
        raise ValueError(f"{name} is of the kind {array.dtype.kind!r}, not {kinds!r}")
    if array.dtype.kind not in "iuf" or not array.size:
        return
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if array.min() < low or array.max() > high:
        raise ValueError(f"{name} holds numbers outside {low:g} to {high:g}")


def check_bank(bank: Bank, n_classes: int) -> None:
    """Raise a ValueError if these arrays cannot be those of trained machines."""
    m = max(len(bank.code), 1)
    n = len(bank.support)
    expect("code", bank.code, WHOLE, (m, n_classes), -1, 1)
    expect("n_inputs", bank.n_inputs, WHOLE, (), 1)
    expect("n_rows", bank.n_rows, WHOLE, (), max(n, 2))
    expect("support", bank.support, WHOLE, (n,), 0, bank.n_rows - 1)
    if not (np.diff(bank.support) > 0).all():
        raise ValueError("support is not sorted")
    expect("support_class", bank.support_class, WHOLE, (n,), 0, n_classes - 1)
    for name in STATS:
        kinds = {"n_iter": WHOLE, "converged": "b"}.get(name, "f")
        expect(name, getattr(bank, name), kinds, (m,))
    # C is not asked to be finite: a hard margin's is not
    expect("C", np.minimum(bank.C, np.finfo(float).max), "f", (m,), 0)
    if bank.kernels is not None and len(bank.kernels) != m:
        raise ValueError(f"there are {len(bank.kernels)} kernels for {m} machines")
    for kernel in [bank.kernel, *(bank.kernels or [])]:
        expect("gamma", kernel.gamma, "f", (), 0)
        expect("degree", kernel.degree, WHOLE, (), 0)
        expect("coef0", kernel.coef0, "f", ())
        if kernel.widths:
            expect("widths", kernel.widths, "f", (bank.n_inputs,), TINY)

    coef = bank.coef
    coef.check_format(full_check=True)
    expect("coef", coef.data, "f", (coef.nnz,))
    if coef.shape != (m, n):
        raise ValueError(f"coef has the shape {coef.shape}, not {(m, n)}")
    machine = np.repeat(np.arange(m), np.diff(coef.indptr))
    if not bank.code[machine, bank.support_class[coef.indices]].all():
        raise ValueError("a machine has support vectors of classes that it leaves out")

    if bank.vectors is None:
        if not bank.kernel.precomputed or bank.n_inputs != bank.n_rows:
            raise ValueError("its support vectors are missing")
    elif sparse.issparse(bank.vectors):
        bank.vectors.check_format(full_check=True)
        expect("vectors", bank.vectors.data, "f", (bank.vectors.nnz,))
    else:
        expect("vectors", bank.vectors, "f", (n, bank.n_inputs))


def check_tree(nodes: np.ndarray, possible: np.ndarray, n_machines: int) -> None:
    """Raise a ValueError unless these are the node arrays of a whole decision graph.

    `nodes` holds machine, left child, right child and label of each node, -1 where
    there is none; children stand after their parents. `possible` (nodes, classes)
    marks the classes that a node may still answer.
    """
    n_nodes, n_classes = possible.shape
    expect("nodes", nodes, WHOLE, (4, max(n_nodes, 1)), -1)
    expect("possible", possible, "b", (n_nodes, n_classes))
    machine, left, right, label = nodes
    leaf = machine < 0
    inner = np.flatnonzero(~leaf)
    if (nodes[1:3, leaf] >= 0).any() or (nodes[3, inner] >= 0).any():
        raise ValueError("a node is neither a leaf nor an inner node")
    if (label[leaf] < 0).any() or label.max() >= n_classes:
        raise ValueError("a leaf has no class")
    if machine.max() >= n_machines:
        raise ValueError("a node asks a machine that is not there")
    for child in (left[inner], right[inner]):
        if (child < 0).any() or (child >= n_nodes).any():
            raise ValueError("an edge leads to a node that is not there")
        if (possible[child] & ~possible[inner]).any():
            raise ValueError("a child may answer what its parent may not")
    if not possible[leaf, label[leaf]].all():
        raise ValueError("a leaf answers a class that it may not")
    _refuse_circles(left, right, inner)


def _refuse_circles(left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> None:
    """Raise a ValueError if some walk over the edges of these nodes has no end."""
    ends = np.ones(len(left), dtype=bool)  # nodes from which every walk ends
    ends[inner] = False
    while inner.size:
        done = ends[left[inner]] & ends[right[inner]]
        if not done.any():
            raise ValueError("its edges go round in a circle")
        ends[inner[done]] = True
        inner = inner[~done]


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz file.

    Each is checked by its CRC-32, and made only if its size can be true.
    """
    found = {}
    with ZipFile(BytesIO(data)) as file:
        members = file.infolist()
        if sum(member.file_size for member in members) > DEFLATE * len(data):
            raise ValueError("it claims to hold more than it can")
        for member in members:
            name = member.filename.removesuffix(".npy")
            found[name] = _array(BytesIO(file.read(member)), member.file_size)
    return found


def _array(member: BytesIO, size: int) -> np.ndarray:
    """The array of an .npy file of that size, made only if it fills the file."""
    read_header = HEADERS[np.lib.format.read_magic(member)]
    shape, _, dtype = read_header(member)
    claimed = prod(shape) * max(dtype.itemsize, 1)
    if claimed != size - member.tell() and not dtype.hasobject:
        raise ValueError("an array in it is larger or smaller than it claims")
    member.seek(0)
    return np.lib.format.read_array(member, allow_pickle=False)


def _family(cls: type) -> list[type]:
    """This class and all that are derived from it."""
    return [cls, *(d for child in cls.__subclasses__() for d in _family(child))]


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
        items = value.items()
        return {"pairs": [[_plain(k, name), _plain(v, name)] for k, v in items]}
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
        return kinds[value["estimator"]](**_original(value["params"]))
    if isinstance(value, dict):
        return {_original(key): _original(part) for key, part in value["pairs"]}
    if isinstance(value, list):
        return [_original(part) for part in value]
    return value
