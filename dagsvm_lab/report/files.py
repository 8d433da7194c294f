"""Where the project is, and digests of what decides a result."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from ..files import write_atomically

PACKAGE = Path(__file__).resolve().parents[1]


class CommandError(ValueError):
    """A command that makes no sense: a parameter, notebook or folder that is not there or of another kind."""


def checkout() -> Path | None:
    """Return the project's folder: the one the package was imported from, else the nearest from here up; else None."""
    here = Path.cwd()
    for folder in (PACKAGE.parent, here, *here.parents):
        with suppress(OSError, UnicodeDecodeError):
            described = (folder / "pyproject.toml").read_text(encoding="utf-8")
            if 'name = "dagsvm-lab"' in described and (folder / "notebooks").is_dir():
                return folder
    return None


def project_root() -> Path:
    """Return the project's folder; without one, raise a `CommandError` that says what to do."""
    if found := checkout():
        return found
    raise CommandError("this needs the project's notebooks: go to a checkout of dagsvm_lab and try again there")


def write_json(path: Path, content: object, indent: int | None = 1) -> None:
    """Write `content` as JSON."""
    text = json.dumps(content, indent=indent) + "\n"
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def file_digest(*paths: Path) -> str:
    """Return one SHA-256 over the names and bytes of `paths`."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def code_digest() -> str:
    """Return a SHA-256 over the package's own sources: Python, published tables, cards of the data."""
    return file_digest(*PACKAGE.rglob("*.py"), *PACKAGE.glob("published/*.*"), *PACKAGE.glob("datasets/*.toml"))


def data_digest() -> str:
    """Return a SHA-256 over the data files that are here: the shipped ones, and those not shipped but at hand."""
    from ..datasets.cards import FILES, cards
    from ..datasets.originals import own_folders

    others = [file for card in cards().values() if card.address for file in card.originals]
    paths = [folder / file for folder in own_folders() for file in others]
    return file_digest(*FILES.glob("*.npz"), *(path for path in paths if path.is_file()))
