"""From the originals: reading their formats, building the shipped files, and the sets that are not shipped.

Every digest is checked before a byte is parsed, so a damaged file is never read; sizes in headers are checked against
the data before anything is allocated.
"""

import gzip
import io
import lzma
import os
import urllib.request
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..files import file_digest, write_atomically
from .cards import FILES, Card, card_of, cards, shipped, terms
from .packed import DataError, pack, read_verified, sha256

FOLDER = "DAGSVM_LAB_DATA"  # the variable that names a folder with the files of the sets that are not shipped
PATIENCE = 5  # seconds to wait for a server
LARGEST = 5_000_000  # bytes that are read from a server; the fetched sets have 0.6 MB


def build(source: str | Path, out: str | Path | None = None, without: Iterable[str] = ()) -> dict[str, str]:
    """Rebuild the shipped files in `out` (by default the package's own) from the originals in `source`.

    Files of sets to leave out (`without`) are removed. For each other set, "sound" says that its file is the one that
    this version ships.
    """
    out, left_out = Path(out or FILES), {card_of(name).name for name in without}
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for card in shipped():
        path = out / card.path.name
        if card.name in left_out:
            path.unlink(missing_ok=True)
            continue
        data = pack(*read_originals(card, Path(source)))
        write_atomically(path, lambda part, data=data: part.write_bytes(data))
        found[card.name] = "sound" if sha256(data) == card.sha256 else "NOT the file this version ships"
    write_atomically(out / "README.md", lambda part: part.write_bytes(terms().encode()))
    return found


def verify() -> dict[str, str]:
    """Return "sound" for each shipped set, or the sentence that says what is wrong with its file."""
    found = {}
    for card in shipped():
        found[card.name] = "sound"
        try:
            read_verified(card.path, card.sha256, card.name)
        except DataError as error:
            found[card.name] = str(error)
    return found


def read_originals(card: Card, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the values to pack and the labels in a set's original files, once their digests are right."""
    data = [_unpacked(file, read_verified(folder / file, digest, card.name)) for file, digest in card.originals.items()]
    if card.name == "mnist":
        sums = [read_idx(part).reshape(-1, 7, 4, 7, 4).sum(axis=(2, 4), dtype=np.int64) for part in data[::2]]
        labels = np.concatenate([read_idx(part) for part in data[1::2]])
        return np.concatenate(sums).reshape(-1, 49).astype(np.float64), labels.astype(np.int64)
    X, labels = read_table(b"".join(data), **card.layout)
    if card.name == "covertype":  # each 1-of-n code becomes one number
        X = np.column_stack([X[:, :10], X[:, 10:14].argmax(axis=1), X[:, 14:].argmax(axis=1)])
    return X, labels


def fetch_or_find(card: Card) -> list[bytes]:
    """Return the files of a set that is not shipped: from the user's folder, an earlier download, or its home."""
    try:
        return [_found_or_fetched(card, file, digest) for file, digest in card.originals.items()]
    except (urllib.error.URLError, TimeoutError, ValueError) as error:  # no network, or another file than it should be
        raise DataError(
            f"{card.name} is not shipped and could not be fetched: put {' and '.join(card.originals)} from "
            f"{card.address} into a folder and set {FOLDER} to that folder."
        ) from error


def own_folders() -> list[Path]:
    """Return where files of sets that are not shipped may be: the user's folder, and that of earlier downloads."""
    folders = [Path(os.environ[FOLDER])] if os.environ.get(FOLDER) else []
    with suppress(RuntimeError):  # no home is known
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dagsvm_lab")
    return folders


def data_digest() -> str:
    """Return a SHA-256 over the data files that are here: the shipped ones, and those not shipped but at hand."""
    others = [file for card in cards().values() if card.address for file in card.originals]
    paths = [folder / file for folder in own_folders() for file in others]
    return file_digest(*FILES.glob("*.npz"), *(path for path in paths if path.is_file()))


def _found_or_fetched(card: Card, file: str, digest: str) -> bytes:
    for folder in own_folders():
        if (folder / file).is_file():
            return read_verified(folder / file, digest, card.name)
    if not card.address.startswith("https://"):
        raise ValueError(f"{card.address} is not https")
    with urllib.request.urlopen(card.address + file, timeout=PATIENCE) as answer:  # nosec B310
        data = answer.read(LARGEST + 1)
    if sha256(data) != digest:
        raise ValueError(f"{file} from {card.address} is another file")
    with suppress(OSError, IndexError):  # a home that cannot be written is no reason to fail
        write_atomically(own_folders()[-1] / file, lambda part: part.write_bytes(data))
    return data


def read_svmlight(text: bytes, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and labels in LIBSVM's sparse text format."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(text), n_features=inputs, zero_based=False)
    return X.toarray(), y.astype(np.int64)


def read_idx(data: bytes) -> np.ndarray:
    """Return the array of bytes in an IDX file."""
    shape = []
    if data[:3] == b"\0\0\x08" and len(data) > 3:
        shape = [int.from_bytes(data[4 + 4 * k : 8 + 4 * k]) for k in range(data[3])]
    start = 4 + 4 * len(shape)
    if not shape or len(data) - start != np.prod(shape, dtype=object):
        raise DataError("this is no whole IDX file of bytes.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_table(text: bytes, label: str, delimiter: str | None = None, header: int = 0, skip: int = 0) -> tuple:
    """Return the values and labels in a text table: ARFF headers are passed over, "?" is NaN, `skip` columns go."""
    lines = [line for line in text.decode().splitlines()[header:] if line.strip() and line[0] not in "@%"]
    if not lines:
        raise DataError("this table has no rows.")
    width = len(lines[0].split(delimiter))
    at, columns = (0, range(1, width)) if label == "first" else (-1, range(skip, width - 1))
    labels = np.array([line.split(delimiter)[at].strip() for line in lines])
    X = np.loadtxt(io.StringIO("\n".join(lines).replace("?", "nan")), delimiter=delimiter, usecols=columns, ndmin=2)
    with suppress(ValueError):  # words are labels too
        labels = labels.astype(np.float64).astype(np.int64)
    return X, labels


def _unpacked(file: str, data: bytes) -> bytes:
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(file.removesuffix(".zip"))
    return {".xz": lzma.decompress, ".gz": gzip.decompress}.get(Path(file).suffix, bytes)(data)
