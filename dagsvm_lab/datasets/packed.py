"""The shipped files: NumPy's .npz of whole numbers, so that decimals survive exactly.

A value is `code / 10**shift`, the quotient of two exact numbers, rounded once as text
is: 0.048299 is 48299 with shift 6. `shift` has an entry a column, or one a value where
a column has no fixed number of decimals. The members are packed with bz2, whose encoder
has not changed in years: the same originals give the same bytes on any machine.
"""

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np

MOST_DECIMALS = 7  # a set with more gets a shift for every value
# exact, which a vectorised power need not be
TENS = np.array([float(f"1e{k}") for k in range(23)])
INTEGERS = ("i1", "<i2", "<i4", "<i8")  # from the smallest on


class DataError(OSError):
    """A data file that is missing, damaged or another one; says so in one sentence."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read_verified(path: Path, digest: str, what: str) -> bytes:
    """Return the bytes of `path`, once their SHA-256 is `digest`.

    Otherwise raise a `DataError` that names the file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(
            f"{what}: the file {path} cannot be read ({reason})."
        ) from error
    found = sha256(data)
    if found != digest:
        raise DataError(
            f"{what}: the file {path} is damaged or another file: its SHA-256 begins "
            f"{found[:12]}, not {digest[:12]}."
        )
    return data


def pack(X: np.ndarray, y: np.ndarray) -> bytes:
    """Return the bytes of a shipped file."""
    missing = np.isnan(X)
    codes, shift = _as_integers(np.where(missing, 0.0, X))
    arrays = {
        "codes": codes,
        "shift": shift.astype(np.int8),
        "missing": np.flatnonzero(missing),
        "y": np.asarray(y),
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, array in arrays.items():
            if array.dtype.kind == "i":
                array = _smallest(array)
            array = np.asfortranarray(array)
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            about = zipfile.ZipInfo(f"{name}.npy")  # without a time of day
            archive.writestr(about, member.getvalue(), zipfile.ZIP_BZIP2)
    return whole.getvalue()


def _smallest(array: np.ndarray) -> np.ndarray:
    """The array in the smallest integers that hold it."""
    kinds = [kind for kind in INTEGERS if (array == array.astype(kind)).all()]
    return array.astype(kinds[0])


def unpack(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (float64) and the labels that `pack` was given."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            values = file["codes"] / TENS[file["shift"]]
            X = np.ascontiguousarray(values)
            X.ravel()[file["missing"]] = np.nan  # its own memory, as it is contiguous
            y = file["y"]
    except Exception as error:  # whatever zip, its compressions and NumPy may find
        raise DataError(f"this is no whole packed file: {error}") from None
    if y.dtype.kind == "i":
        y = y.astype(np.int64)
    return X, y


def _as_integers(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers and shifts that give the values of X back exactly."""
    shift = np.full(X.shape[1], MOST_DECIMALS + 1)
    for k in range(MOST_DECIMALS, -1, -1):
        restored = np.rint(X * TENS[k]) / TENS[k]
        shift[(restored == X).all(axis=0)] = k
    if (shift <= MOST_DECIMALS).all():
        codes = np.rint(X * TENS[shift])
        return codes.astype(np.int64), shift
    # a shift for every value: as many digits as give all of them back
    size = np.abs(X)
    logarithm = np.log10(size, where=size > 0, out=np.zeros_like(size))
    exponent = np.floor(logarithm).astype(int)
    for digits in range(5, 16):
        shift = np.clip(digits - 1 - exponent, 0, len(TENS) - 1)
        codes = np.rint(X * TENS[shift])
        if (codes / TENS[shift] == X).all():
            return codes.astype(np.int64), shift
    raise ValueError("these values have no exact decimal form")
