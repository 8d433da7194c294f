"""Original files: their formats, what is built from them, and what is fetched.

Every digest is checked before a byte is parsed, so a damaged file is never read; sizes
in headers are checked against the data before anything is allocated.
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

from ..files import file_digest, write_bytes, write_text
from .cards import PACKED_SETS, Card, card_of, cards, shipped, terms
from .packed import DataError, pack, read_verified, sha256

FOLDER = "DAGSVM_LAB_DATA"  # the variable that names a folder with sets not shipped
SERVER_SECONDS = 5  # to wait for a server
MOST_FETCHED = 5_000_000  # bytes read from a server; the fetched sets have 0.6 MB


def build(
    source: str | Path, out: str | Path | None = None, without: Iterable[str] = ()
) -> dict[str, str]:
    """Rebuild the shipped files from the originals in `source`.

    They go to `out`, by default the package's own folder. Files of sets to leave out
    (`without`) are removed. For each other set, "sound" says that its file is the one
    that this version ships.
    """
    out = Path(out or PACKED_SETS)
    left_out = {card_of(name).name for name in without}
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for card in shipped():
        path = out / card.path.name
        if card.name in left_out:
            path.unlink(missing_ok=True)
            continue
        data = pack(*read_originals(card, Path(source)))
        write_bytes(path, data)
        found[card.name] = "NOT the file this version ships"
        if sha256(data) == card.sha256:
            found[card.name] = "sound"
    write_text(out / "README.md", terms())
    return found


def verify() -> dict[str, str]:
    """Return "sound" for each shipped set, or what is wrong with its file."""
    found = {}
    for card in shipped():
        found[card.name] = "sound"
        try:
            read_verified(card.path, card.sha256, card.name)
        except DataError as error:
            found[card.name] = str(error)
    return found


def read_originals(card: Card, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the values to pack and the labels in a set's original files.

    Their digests are checked first.
    """
    data = []
    for file, digest in card.originals.items():
        packed = read_verified(folder / file, digest, card.name)
        data.append(_unpacked(file, packed))
    if card.name == "mnist":
        return _mnist(data)
    X, labels = read_table(b"".join(data), **card.layout)
    if card.name == "covertype":  # each 1-of-n code becomes one number
        area = X[:, 10:14].argmax(axis=1)
        soil = X[:, 14:].argmax(axis=1)
        X = np.column_stack([X[:, :10], area, soil])
    return X, labels


def _mnist(data: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return sums over squares of 4 x 4 pixels, 49 an image, and the labels.

    Images and labels are in turns.
    """
    images = np.concatenate([read_idx(part) for part in data[::2]])
    labels = np.concatenate([read_idx(part) for part in data[1::2]])
    # (images, square down, pixel down, square across, pixel across)
    squares = images.reshape(-1, 7, 4, 7, 4)
    sums = squares.sum(axis=(2, 4), dtype=np.int64)
    return sums.reshape(-1, 49).astype(np.float64), labels.astype(np.int64)


def fetch_or_find(card: Card) -> list[bytes]:
    """Return the files of a set that is not shipped.

    From the user's folder, an earlier download, or the set's home.
    """
    wrong = (urllib.error.URLError, TimeoutError, ValueError)
    files = card.originals.items()
    try:
        return [_found_or_fetched(card, file, digest) for file, digest in files]
    except wrong as error:  # no network, or another file than it should be
        raise DataError(
            f"{card.name} is not shipped and could not be fetched: put "
            f"{' and '.join(card.originals)} from {card.address} into a folder and set "
            f"{FOLDER} to that folder."
        ) from error


def own_folders() -> list[Path]:
    """Return where files of sets that are not shipped may be.

    In the user's folder, and that of earlier downloads.
    """
    folders = [Path(os.environ[FOLDER])] if os.environ.get(FOLDER) else []
    with suppress(RuntimeError):  # no home is known
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folders.append(Path(cache) / "dagsvm_lab")
    return folders


def data_digest() -> str:
    """Return a SHA-256 over the data files that are here, shipped or at hand."""
    paths = list(PACKED_SETS.glob("*.npz"))
    for card in cards().values():
        if not card.address:
            continue
        for folder in own_folders():
            files = [folder / file for file in card.originals]
            paths += [path for path in files if path.is_file()]
    return file_digest(*paths)


def _found_or_fetched(card: Card, file: str, digest: str) -> bytes:
    """Return one file of a set, kept for the next time if it had to be fetched."""
    for folder in own_folders():
        if (folder / file).is_file():
            return read_verified(folder / file, digest, card.name)
    if not card.address.startswith("https://"):
        raise ValueError(f"{card.address} is not https")
    with urllib.request.urlopen(card.address + file, timeout=SERVER_SECONDS) as answer:  # nosec B310
        data = answer.read(MOST_FETCHED + 1)
    if sha256(data) != digest:
        raise ValueError(f"{file} from {card.address} is another file")
    # a home that cannot be written is no reason to fail
    with suppress(OSError, IndexError):
        write_bytes(own_folders()[-1] / file, data)
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
        n_axes = data[3]
        sizes = [data[4 + 4 * k : 8 + 4 * k] for k in range(n_axes)]
        shape = [int.from_bytes(size) for size in sizes]
    start = 4 + 4 * len(shape)
    if not shape or len(data) - start != np.prod(shape, dtype=object):
        raise DataError("this is no whole IDX file of bytes.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def read_table(
    text: bytes,
    label: str,
    delimiter: str | None = None,
    header: int = 0,
    skip: int = 0,
) -> tuple:
    """Return the values and labels in a text table.

    ARFF headers are passed over, as are `header` lines; "?" is NaN. The label is the
    "first" or last column; where it is last, `skip` columns in front are left out.
    """
    lines = text.decode().splitlines()[header:]
    lines = [line for line in lines if line.strip() and line[0] not in "@%"]
    if not lines:
        raise DataError("this table has no rows.")
    width = len(lines[0].split(delimiter))
    at = 0
    columns = range(1, width)
    if label != "first":
        at = -1
        columns = range(skip, width - 1)
    labels = np.array([line.split(delimiter)[at].strip() for line in lines])
    values = io.StringIO("\n".join(lines).replace("?", "nan"))
    X = np.loadtxt(values, delimiter=delimiter, usecols=columns, ndmin=2)
    with suppress(ValueError):  # words are labels too
        labels = labels.astype(np.float64).astype(np.int64)
    return X, labels


def _unpacked(file: str, data: bytes) -> bytes:
    """Return what a compressed file holds, by its suffix; other files as they are."""
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(file.removesuffix(".zip"))
    if file.endswith(".xz"):
        return lzma.decompress(data)
    if file.endswith(".gz"):
        return gzip.decompress(data)
    return data
