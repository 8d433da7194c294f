"""Jobs and what became of them.

A Job is one notebook, its parameters and the folder its results go to. A stamp beside
the executed copy holds the digests of what it came from and of what it wrote, so that a
later batch knows whether the result still stands.
"""

import hashlib
import json
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pandas as pd

from ..datasets.originals import data_digest
from ..files import checkout, code_digest, file_digest, write_atomically, write_json

STAMP = ".stamp.json"  # how a stamp's name ends


@dataclass(frozen=True)
class Job:
    """One notebook to execute.

    Attributes
    ----------
    notebook, out : Path
        The notebook, and the folder for its executed copy and stamp.
    parameters : dict
        What its parameters cell is given.
    timeout : float, optional
        Seconds for the whole notebook.
    threads : int, optional
        BLAS threads of its kernel.
    batch : str
        By which its kernel can be found and stopped.
    """

    notebook: Path
    out: Path
    parameters: dict = field(default_factory=dict)
    timeout: float | None = None
    threads: int | None = None
    batch: str = ""

    @property
    def label(self) -> str:
        """What it is called: the notebook's name, after its point of a grid."""
        point = f"{self.out.name}/" if "=" in self.out.name else ""
        return point + self.notebook.stem

    @property
    def executed(self) -> Path:
        """The executed copy."""
        return self.out / self.notebook.name

    @property
    def stamp(self) -> Path:
        """What vouches for copy and tables."""
        return self.out / f"{self.notebook.stem}{STAMP}"

    @property
    def results(self) -> Path:
        """The folder of its Record's folder."""
        return (checkout() or Path.cwd()) / self.parameters.get("out_dir", "runs")

    def written(self) -> dict[Path, int]:
        """The files of the notebook's Record, and when each was written.

        The Record's folder is called as the notebook's name begins.
        """
        found = {}
        for folder in self.results.glob("*"):
            if folder.is_dir() and self.notebook.stem.startswith(folder.name):
                for path in sorted(folder.glob("[!.]*")):
                    found[path] = path.stat().st_mtime_ns
        return found

    def origin(self) -> dict:
        """What decides the result: parameters, code of notebook and package, data."""
        cells = nbformat.read(self.notebook, 4).cells
        code = json.dumps([c.source for c in cells if c.cell_type == "code"])
        return {
            "parameters": self.parameters,
            "notebook": hashlib.sha256(code.encode()).hexdigest(),
            "code": code_digest(),
            "data": data_digest(),
        }

    def write_stamp(self, origin: dict, files: tuple[Path, ...]) -> None:
        """Vouch for these files, made from `origin`."""
        digests = {os.path.relpath(path, self.out): file_digest(path) for path in files}
        write_json(self.stamp, {**origin, "files": digests})

    def finished(self) -> "JobOutcome | None":
        """What came of it before, if its origin is the same and its files stand."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
            files = {self.out / name: digest for name, digest in stamp["files"].items()}
            same = all(stamp[key] == value for key, value in self.origin().items())
            if same and all(file_digest(path) == d for path, d in files.items()):
                return JobOutcome(self, "skipped", files=tuple(files))
        return None


@dataclass(frozen=True)
class JobOutcome:
    """What became of a Job: "finished", "failed" or "skipped"."""

    job: Job
    status: str
    seconds: float = 0.0
    error: str = ""
    files: tuple[Path, ...] = ()

    def verdicts(self) -> Counter:
        """How often each word stands in the verdict columns of the tables it wrote."""
        count: Counter = Counter()
        for path in self.files:
            if path.suffix != ".csv":
                continue
            with suppress(ValueError, OSError):  # a table that is damaged, or gone
                table = pd.read_csv(path, dtype=str)
                count.update(table.filter(regex="^verdict").stack().dropna())
        return count

    def refresh(self) -> None:
        """Replace the notebook by its executed copy, cleaned."""
        nb = clean(nbformat.read(self.job.executed, 4))
        write_atomically(self.job.notebook, lambda part: nbformat.write(nb, part))


def clean(nb):
    """Return `nb` as it is committed.

    Each stream is in one piece, and there is no metadata that the next execution would
    change.
    """
    from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nb.metadata = nbformat.from_dict(about)
    for cell in nb.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    return CoalesceStreamsPreprocessor().preprocess(nb, {})[0]
