"""Files that are there whole or not at all."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write(temporary)` fill a file beside `path` that is then renamed over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")  # savefig picks by suffix
    try:
        write(part)
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
