"""Where the project is, files that are there whole or not at all, and digests."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


class CommandError(ValueError):
    """A command that makes no sense.

    It names a parameter, notebook or folder that is not there or of another kind.
    """


def checkout() -> Path | None:
    """Return the project's folder, or None.

    It is the one that the package was imported from, else the nearest from here up.
    """
    here = Path.cwd()
    for folder in (PACKAGE.parent, here, *here.parents):
        with suppress(OSError, UnicodeDecodeError):
            described = (folder / "pyproject.toml").read_text(encoding="utf-8")
            if 'name = "dagsvm-lab"' in described and (folder / "notebooks").is_dir():
                return folder
    return None


def project_root() -> Path:
    """Return the project's folder, or raise a `CommandError` that says what to do."""
    found = checkout()
    if found is None:
        raise CommandError(
            "this needs the project's notebooks: go to a checkout of dagsvm_lab and "
            "try again there"
        )
    return found


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write(temporary)` fill a file beside `path` that is then renamed over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # savefig picks a format by suffix
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        write(part)
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content`, whole or not at all."""
    write_atomically(path, lambda part: part.write_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_csv(path: Path, table, index: bool = False) -> None:
    """Write a pandas table, whole or not at all."""
    write_atomically(path, partial(table.to_csv, index=index))


def write_json(path: Path, content: object, indent: int | None = 1) -> None:
    """Write `content` as JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=indent) + "\n")


def file_digest(*paths: Path) -> str:
    """Return one SHA-256 over the names and bytes of `paths`."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def code_digest() -> str:
    """Return a SHA-256 over the package's sources: Python, published tables, cards."""
    return file_digest(
        *PACKAGE.rglob("*.py"),
        *PACKAGE.glob("published/*.*"),
        *PACKAGE.glob("datasets/*.toml"),
    )
