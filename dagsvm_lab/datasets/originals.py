"""From the originals: reading their formats, building the shipped files, and the two sets that are not shipped."""

import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np

from .cards import FILES, Card, cards, terms
from .packed import DataError, pack, read_verified, sha256

FOLDER = "DAGSVM_LAB_DATA"  # the variable that names a folder with svmguide4's and poker's files
PATIENCE = 5  # seconds to wait for a server


def build(source: str | Path, out: str | Path | None = None) -> dict[str, bool]:
    """For each shipped file, rebuilt in `out` from the originals in `source`: is it the one this version ships?

    The originals' digests are checked first. `out` is the package's own folder unless given.
    """
    out = Path(out or FILES)
    out.mkdir(parents=True, exist_ok=True)
    same = {}
    for card in cards().values():
        if card.shipped:
            X, labels = read_originals(card, Path(source))
            classes, codes = np.unique(labels, return_inverse=True)
            data = pack(X, classes.tolist(), codes)
            _write(out / card.path.name, data)
            same[card.name] = sha256(data) == card.sha256
    _write(out / "README.md", terms().encode())
    return same


def verify() -> dict[str, str]:
    """For each shipped file "sound", or the sentence that says what is wrong with it."""
    found = {}
    for card in cards().values():
        if card.shipped:
            try:
                read_verified(card.path, card.sha256, card.name)
                found[card.name] = "sound"
            except DataError as error:
                found[card.name] = str(error)
    return found


def read_originals(card: Card, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The values and labels in a set's original files, checked against their digests."""
    data = [_unpacked(file, read_verified(folder / file, digest, card.name)) for file, digest in card.originals.items()]
    if card.name == "mnist":
        return _mnist(*data)
    X, labels = _table(b"".join(data), **card.layout)
    if card.name == "covertype":  # each 1-of-n code becomes one number
        X = np.column_stack([X[:, :10], X[:, 10:14].argmax(axis=1), X[:, 14:].argmax(axis=1)])
    return X, labels


def fetch_or_find(card: Card) -> list[bytes]:
    """The files of a set that is not shipped, from the user's folder or, through pooch, from its home."""
    if folder := os.environ.get(FOLDER):
        paths = [Path(folder).expanduser() / file for file in card.originals]
        if all(path.is_file() for path in paths):
            return [read_verified(path, card.originals[path.name], card.name) for path in paths]
    import pooch

    try:
        cache = Path(pooch.os_cache("dagsvm_lab"))
        paths = [
            pooch.retrieve(
                card.address + file, digest, file, cache, downloader=pooch.HTTPDownloader(timeout=PATIENCE)
            )
            for file, digest in card.originals.items()
        ]
    except (OSError, ValueError) as error:  # no network, a server that fails, a home that cannot be written
        raise DataError(
            f"{card.name} is not shipped and could not be fetched: download {' and '.join(card.originals)} from "
            f"{card.source} into a folder and set {FOLDER} to it."
        ) from error
    return [read_verified(Path(path), card.originals[Path(path).name], card.name) for path in paths]


def read_svmlight(text: bytes, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and labels in LIBSVM's sparse text format."""
    rows = [line.split() for line in text.decode("ascii").splitlines() if line.strip()]
    X = np.zeros((len(rows), inputs))
    for x, row in zip(X, rows):
        for item in row[1:]:
            index, value = item.split(":")
            x[int(index) - 1] = float(value)
    return X, np.array([int(row[0]) for row in rows])


def _table(
    data: bytes, label: str, delimiter: str | None = None, header: int = 0, first_column: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The values and labels of a text table; lines of ARFF's header are left out, "?" becomes NaN."""
    lines = [x for x in data.decode().splitlines()[header:] if x.strip() and x[0] not in "@%"]
    at = (lambda line: line[0]) if label == "first" else (lambda line: line[-1])
    labels = [at(line.split(delimiter)).strip() for line in lines]
    number = _is_number(labels[0])
    columns = np.arange(len(lines[0].split(delimiter)))[first_column:]
    columns = columns[1:] if label == "first" else columns[:-1]
    text = io.StringIO("\n".join(lines).replace("?", "nan"))
    X = np.loadtxt(text, delimiter=delimiter, usecols=columns, ndmin=2)
    return X, np.array([int(float(x)) for x in labels] if number else labels)


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def _mnist(*files: bytes) -> tuple[np.ndarray, np.ndarray]:
    """MNIST's grey values summed over 4 x 4 squares, and the digits, training part first."""
    images = [np.frombuffer(data, np.uint8, offset=16).reshape(-1, 7, 4, 7, 4) for data in files[::2]]
    labels = [np.frombuffer(data, np.uint8, offset=8) for data in files[1::2]]
    sums = [part.sum(axis=(2, 4), dtype=np.int64).reshape(-1, 49) for part in images]
    return np.concatenate(sums).astype(np.float64), np.concatenate(labels).astype(np.int64)


def _unpacked(file: str, data: bytes) -> bytes:
    """The content of an original, unpacked in memory only."""
    if file.endswith(".xz"):
        return lzma.decompress(data)
    if file.endswith(".gz"):
        return gzip.decompress(data)
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(file.removesuffix(".zip"))
    return data


def _write(path: Path, data: bytes) -> None:
    """Nothing; `path` then holds `data`, and never a part of it."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
