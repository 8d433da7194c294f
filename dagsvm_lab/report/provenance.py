"""What produced a run: its run.json, and the words and the table that a page makes of
it.

run.json holds the notebook's key, the date, parameters, seconds (of all, and of each
loop), versions of the libraries that decide numbers, and digests of code and data.
"""

import json
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd

from ..datasets.cards import card_of

RUN = "run.json"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "cvxopt", "matplotlib")


def read_run(folder: Path) -> dict:
    """Read the run.json of a folder."""
    return json.loads((folder / RUN).read_text(encoding="utf-8"))


def has_run(folder: Path) -> bool:
    """Whether a run was finished there."""
    return (folder / RUN).is_file()


def versions() -> dict[str, str]:
    """Return the version of Python, of this package and of the libraries that decide
    its numbers.
    """
    found = {"python": platform.python_version()}
    for name in ("dagsvm-lab", *LIBRARIES):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def data_digests(datasets: Iterable) -> dict[str, str]:
    """Return the digests of data sets, given by name or as `load` returns them."""
    found = {}
    for data in datasets:
        card = card_of(data) if isinstance(data, str) else data.card
        found[card.name] = card.sha256 or " ".join(card.originals.values())
    return found


def date_and_version(about: Mapping) -> str:
    """Say when and by which version of the package a run was made, as far as its
    run.json says so.

    >>> date_and_version({"date": "2025-03-01", "versions": {"dagsvm-lab": "3.0"}})
    'of 2025-03-01, version 3.0'
    """
    number = about.get("versions", {}).get("dagsvm-lab", "unknown")
    if "date" in about:
        return f"of {about['date']}, version {number}"
    return f"with version {number}"


def loop_times(folder: Path, name: str, loops: Iterable[str]) -> str:
    """Say how long these loops took in a folder's run, which is called `name`; "" where
    none took a second or no run is there.
    """
    with suppress(OSError, KeyError):
        about = read_run(folder)
        profile = about["parameters"]["profile"]
        times = []
        for loop in loops:
            seconds = about["loops"].get(loop, 0)
            if seconds >= 1:
                times.append(f"{loop} {seconds:.0f} s")
        if times:
            return f"{', '.join(times)} in {name} ({profile} profile)"
    return ""


def provenance_table(about: Mapping, head: str) -> pd.DataFrame:
    """Lay out what a run.json says, a row a fact; `head` names the run."""
    rows = {"date": about["date"]} if "date" in about else {}
    rows |= about["parameters"]
    rows["seconds"] = about["seconds"]
    rows |= about["versions"]
    for name, digest in about["data"].items():
        rows[f"data: {name}"] = digest[:12]
    values = [str(value) for value in rows.values()]
    return pd.DataFrame({"what": list(rows), head: values})
