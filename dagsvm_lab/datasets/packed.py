"""The shipped file format: integer codes, split into byte planes, each plane bz2-packed or left as it is.

A file is one line of JSON, which says what follows, and then the planes. Decimal numbers are kept as whole
numbers, so they survive exactly: 0.048299 is 48299 with six decimals, and -3.0146e-07 is a mantissa and an
exponent in one integer. Nothing is ever unpickled. bz2 is chosen because its encoder has not changed in years: the
same originals give the same bytes on any machine. It also leaves low-order bytes, which are noise, to be stored raw.
"""

import bz2
import hashlib
import json
from pathlib import Path

import numpy as np

MISSING = -1  # the code of a missing value; only sets without negative values have any
MOST_DECIMALS = 7  # beyond this a set is written in mantissas and exponents
WORTH = 0.9  # noise is slow to unpack: a plane that bz2 does not make this much smaller stays as it is
TENS = np.array([float(f"1e{k}") for k in range(23)])  # exact, which a vectorised power need not be


class DataError(OSError):
    """A data file that is missing, damaged or not the one it should be; the message is one sentence."""


def sha256(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_verified(path: Path, digest: str, what: str) -> bytes:
    """The bytes of `path`, once their SHA-256 is `digest`; otherwise a `DataError` that names the file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(f"{what}: the file {path} cannot be read ({reason}).") from error
    if (found := sha256(data)) != digest:
        raise DataError(
            f"{what}: the file {path} is damaged or another file: its SHA-256 begins {found[:12]}, not {digest[:12]}."
        )
    return data


def pack(X: np.ndarray, classes: list, codes: np.ndarray) -> bytes:
    """The bytes of a shipped file: the values of X, the class labels and each row's class code."""
    values, scale = _as_integers(X)
    entries, planes = [], []
    for array in (values, np.asarray(codes)[:, None]):
        entry, blobs = min((_planes(array, order) for order in "CF"), key=lambda packed: sum(packed[0]["planes"]))
        entries.append(entry)
        planes += blobs
    header = {"X": entries[0] | scale, "y": entries[1], "classes": classes}
    return json.dumps(header, sort_keys=True).encode() + b"\n" + b"".join(planes)


def unpack(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The values (float64) and the labels that `pack` was given."""
    header, _, body = data.partition(b"\n")
    header, body = json.loads(header), memoryview(body)
    X, used = _integers(header["X"], body)
    y, _ = _integers(header["y"], body[used:])
    return _as_values(X, header["X"]), np.array(header["classes"])[y.ravel()]


def _planes(array: np.ndarray, order: str) -> tuple[dict, list[bytes]]:
    """The description and the byte planes of an integer matrix, walked by rows (C) or by columns (F)."""
    low = int(array.min())
    raw = (array.ravel(order) - low).astype("<u8").view(np.uint8).reshape(-1, 8)
    width = max((int(array.max() - low).bit_length() + 7) // 8, 1)
    blobs = [raw[:, k].tobytes() for k in range(width)]
    packed = [bz2.compress(blob) for blob in blobs]
    blobs = [short if len(short) < WORTH * len(blob) else blob for blob, short in zip(blobs, packed, strict=True)]
    return {"shape": array.shape, "order": order, "low": low, "planes": [len(blob) for blob in blobs]}, blobs


def _integers(entry: dict, body: memoryview) -> tuple[np.ndarray, int]:
    """The integer matrix that `entry` describes, and how many bytes of `body` it took."""
    size, start = int(np.prod(entry["shape"])), 0
    flat = np.zeros(size, np.int32 if len(entry["planes"]) < 4 else np.int64)
    for k, length in enumerate(entry["planes"]):
        blob = body[start : start + length]
        plane = np.frombuffer(blob if length == size else bz2.decompress(blob), np.uint8)
        flat |= plane.astype(flat.dtype) << 8 * k
        start += length
    flat += entry["low"]
    return flat.reshape(entry["shape"], order=entry["order"]), start


def _as_integers(X: np.ndarray) -> tuple[np.ndarray, dict]:
    """Whole numbers that stand for the values of X, and the scale that turns them back exactly."""
    missing = np.isnan(X)
    known = np.where(missing, 0.0, X)
    decimals = np.full(X.shape[1], MOST_DECIMALS + 1)
    for k in range(MOST_DECIMALS, -1, -1):
        decimals[(np.rint(known * TENS[k]) / TENS[k] == known).all(axis=0)] = k
    if (decimals <= MOST_DECIMALS).all():
        scale = {"decimals": decimals.tolist()}
        values = np.rint(known * TENS[decimals]).astype(np.int64)
        if missing.any():
            scale["missing"] = MISSING
            values[missing] = MISSING
    else:
        for digits in range(5, 16):
            values, scale = _floating(known, digits)
            if np.array_equal(_as_values(values, scale), X):
                break
    if not np.array_equal(_as_values(values, scale), X, equal_nan=True):
        raise ValueError("these values have no exact decimal form")
    return values, scale


def _floating(X: np.ndarray, digits: int) -> tuple[np.ndarray, dict]:
    """Decimal floating point in one integer, in the order of the values: sign, exponent, `digits` of mantissa."""
    span = 9 * 10 ** (digits - 1)  # mantissas run from 10^(digits-1) to 10^digits - 1
    size = np.abs(X)
    exponent = np.floor(np.log10(size, where=size > 0, out=np.zeros_like(size))).astype(np.int64)
    shift = digits - 1 - exponent
    mantissa = np.rint(size * TENS[np.maximum(shift, 0)] / TENS[np.maximum(-shift, 0)]).astype(np.int64)
    carried = mantissa >= 10**digits  # 9.99996 becomes 10.0000
    exponent[carried] += 1
    mantissa[carried] //= 10
    low = int(exponent.min())
    code = (exponent - low) * span + mantissa - 10 ** (digits - 1) + 1
    return np.where(size > 0, np.sign(X).astype(np.int64) * code, 0), {"digits": digits, "exponent": low}


def _as_values(values: np.ndarray, scale: dict) -> np.ndarray:
    """The float64 values that whole numbers stand for; a quotient of two exact numbers is rounded as text is."""
    if "decimals" in scale:
        X = values / TENS[scale["decimals"]]
        if "missing" in scale:
            X[values == scale["missing"]] = np.nan
        return X
    digits = scale["digits"]
    exponent, mantissa = np.divmod(np.abs(values) - 1, 9 * 10 ** (digits - 1))
    mantissa += 10 ** (digits - 1)
    shift = digits - 1 - scale["exponent"] - exponent  # the value is mantissa / 10^shift
    X = mantissa / TENS[np.maximum(shift, 0)]
    if (shift < 0).any():
        X *= TENS[np.maximum(-shift, 0)]
    X[values == 0] = 0.0
    return np.negative(X, where=values < 0, out=X)
