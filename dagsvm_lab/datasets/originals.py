"""From the originals: reading their formats, building the shipped files, and the two sets that are not shipped."""

import gzip
import io
import lzma
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np

from .cards import FILES, Card, shipped, terms
from .packed import DataError, pack, read_verified, sha256

FOLDER = "DAGSVM_LAB_DATA"  # the variable that names a folder with the files of the sets that are not shipped
PATIENCE = 5  # seconds to wait for a server


def build(source: str | Path, out: str | Path | None = None) -> dict[str, bool]:
    """For each set, rebuilt in `out` from the originals in `source`: is it the file this version ships?

    The originals' digests are checked first. `out` is the package's own folder unless given.
    """
    out = Path(out or FILES)
    out.mkdir(parents=True, exist_ok=True)
    same = {}
    for card in shipped():
        X, labels = read_originals(card, Path(source))
        classes, codes = np.unique(labels, return_inverse=True)
        data = pack(X, classes.tolist(), codes)
        _write(out / card.path.name, data)
        same[card.name] = sha256(data) == card.sha256
    _write(out / "README.md", terms().encode())
    return same


def verify() -> dict[str, str]:
    """For each shipped set "sound", or the sentence that says what is wrong with its file."""
    found = {}
    for card in shipped():
        try:
            read_verified(card.path, card.sha256, card.name)
            found[card.name] = "sound"
        except DataError as error:
            found[card.name] = str(error)
    return found


def read_originals(card: Card, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The values to pack and the labels in a set's original files, once their digests are right."""
    data = [_unpacked(file, read_verified(folder / file, digest, card.name)) for file, digest in card.originals.items()]
    if card.name == "mnist":
        return _mnist(*data)
    X, labels = read_table(b"".join(data), **card.layout)
    if card.name == "covertype":  # each 1-of-n code becomes one number
        X = np.column_stack([X[:, :10], X[:, 10:14].argmax(axis=1), X[:, 14:].argmax(axis=1)])
    return X, labels


def fetch_or_find(card: Card) -> list[bytes]:
    """The files of a set that is not shipped, from the user's folder or else, through pooch, from its home."""
    folder = Path(os.environ.get(FOLDER) or os.devnull).expanduser()
    if all((folder / file).is_file() for file in card.originals):
        return [read_verified(folder / file, digest, card.name) for file, digest in card.originals.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm, which pooch imports, misses widgets in a notebook
        import pooch

    pooch.get_logger().setLevel("WARNING")  # it would print the user's folders into notebooks
    try:
        cache, patient = pooch.os_cache("dagsvm_lab"), pooch.HTTPDownloader(timeout=PATIENCE)
        return [
            Path(pooch.retrieve(card.address + file, digest, file, cache, downloader=patient)).read_bytes()
            for file, digest in card.originals.items()
        ]
    except (OSError, ValueError) as error:  # no network, a server that fails or sends another file, a read-only home
        raise DataError(
            f"{card.name} is not shipped and could not be fetched: put {' and '.join(card.originals)} from "
            f"{card.address} into a folder and set {FOLDER} to that folder."
        ) from error


def read_svmlight(text: bytes, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and labels in LIBSVM's sparse text format."""
    rows = [line.split() for line in text.decode().splitlines()]
    X = np.zeros((len(rows), inputs))
    for x, row in zip(X, rows, strict=True):
        for index, value in (item.split(":") for item in row[1:]):
            x[int(index) - 1] = float(value)
    return X, np.array([int(row[0]) for row in rows])


def read_table(text: bytes, label: str, delimiter: str | None = None, header: int = 0, skip: int = 0) -> tuple:
    """The values and labels in a text table: an ARFF header is passed over, "?" becomes NaN, `skip` columns go."""
    lines = [line for line in text.decode().splitlines()[header:] if line.strip() and line[0] not in "@%"]
    at = 0 if label == "first" else -1
    labels = [line.split(delimiter)[at].strip() for line in lines]
    columns = np.arange(len(lines[0].split(delimiter)))
    columns = columns[1:] if label == "first" else columns[skip:-1]
    X = np.loadtxt(io.StringIO("\n".join(lines).replace("?", "nan")), delimiter=delimiter, usecols=columns)
    try:
        return X, np.array(labels, np.float64).astype(np.int64)
    except ValueError:
        return X, np.array(labels)


def _mnist(*files: bytes) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's grey values summed over 4 x 4 squares, and the digits, training part first."""
    images = [np.frombuffer(data, np.uint8, offset=16).reshape(-1, 7, 4, 7, 4) for data in files[::2]]
    labels = [np.frombuffer(data, np.uint8, offset=8) for data in files[1::2]]
    sums = [part.sum(axis=(2, 4), dtype=np.int64).reshape(-1, 49) for part in images]
    return np.concatenate(sums).astype(np.float64), np.concatenate(labels).astype(np.int64)


def _unpacked(file: str, data: bytes) -> bytes:
    """The content of an original, unpacked in memory only."""
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(file.removesuffix(".zip"))
    return {".xz": lzma.decompress, ".gz": gzip.decompress}.get(Path(file).suffix, bytes)(data)


def _write(path: Path, data: bytes) -> None:
    """Nothing; `path` then holds all of `data`, and at no moment a part of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
