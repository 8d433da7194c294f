"""Batches of notebooks through papermill: checked parameters, grids, resume, threads here or a cluster.

A Job is one notebook, its parameters and the folder its results go to. `run_job` executes it: the kernel is
this very interpreter, the executed copy appears whole or not at all, and a stamp beside it says which
parameters, code and data it came from. `run_batch` runs many jobs in threads, each with its own kernel
process, or on a Dask cluster that sees the same folders.
"""

import ast
import csv
import hashlib
import itertools
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import nbformat
import papermill
import psutil
import yaml
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm

from ..report.record import code_digest, data_digest, project_root, write_atomically, write_json
from ..report.verdicts import WORDS

PROFILES = ("quick", "full")
BATCH = "DAGSVM_LAB_BATCH"  # the variable that tells a kernel which batch it belongs to
KERNELS: dict[int, str] = {}  # process id of each kernel this process started -> its batch
STOPPED: set[str] = set()  # batches that are to end now
OnCell = Callable[[str, int, int], None]  # job's label, cell k, of n


class StoppedError(Exception):
    """The batch of a job was stopped before the job was done."""


class ParameterError(ValueError):
    """A parameter that the notebook does not have, or of another type than it has there."""


@dataclass(frozen=True)
class Job:
    """One notebook to execute: its parameters, and the folder for its executed copy and stamp."""

    notebook: Path
    out: Path
    parameters: dict = field(default_factory=dict)
    timeout: float | None = None  # seconds for the whole notebook
    threads: int | None = None  # BLAS threads of its kernel
    batch: str = ""  # by which it can be stopped

    @property
    def label(self) -> str:
        parts = (self.out.name, self.notebook.stem) if "=" in self.out.name else (self.notebook.stem,)
        return "/".join(parts)

    @property
    def executed(self) -> Path:
        return self.out / self.notebook.name

    @property
    def stamp(self) -> Path:
        return self.out / f"{self.notebook.stem}.stamp.json"

    @property
    def results(self) -> Path:
        """Where the notebook's Record makes its folder."""
        return project_root() / self.parameters.get("out_dir", "runs")

    def written(self) -> dict[Path, int]:
        """The files in the folder of the notebook's Record, whose key is how the notebook's name begins."""
        folders = [f for f in self.results.glob("*") if f.is_dir() and self.notebook.stem.startswith(f.name)]
        files = (path for folder in folders for path in sorted(folder.iterdir()))
        return {path: path.stat().st_mtime_ns for path in files if not path.name.startswith(".")}

    def origin(self) -> dict:
        """What decides the result: parameters, the notebook's code, the package's code, the data."""
        code = [c.source for c in nbformat.read(self.notebook, 4).cells if c.cell_type == "code"]
        return {
            "parameters": self.parameters,
            "notebook": hashlib.sha256(json.dumps(code).encode()).hexdigest(),
            "code": code_digest(),
            "data": data_digest(),
        }

    def finished(self) -> "Outcome | None":
        """The earlier Outcome, if it came of the same parameters, code and data and its files still stand."""
        try:
            stamp = json.loads(self.stamp.read_text())
            same = all(stamp[key] == value for key, value in self.origin().items())
            files = {Path(name): sha for name, sha in stamp["files"].items()}
            if same and all(_sha(path) == sha for path, sha in files.items()):
                return Outcome(self, "skipped", files=tuple(files))
        except (OSError, ValueError, KeyError):
            pass
        return None


@dataclass(frozen=True)
class Outcome:
    """What became of a Job: "finished", "failed" or "skipped", with its cells, seconds, error and files."""

    job: Job
    status: str
    cells: int = 0
    seconds: float = 0.0
    error: str = ""
    files: tuple[Path, ...] = ()

    def verdicts(self) -> Counter:
        """How often each word stands in the `verdict` columns of the tables it wrote."""
        count = Counter()
        for path in self.files:
            if path.suffix == ".csv":
                with path.open(newline="") as lines:
                    count.update(row["verdict"] for row in csv.DictReader(lines) if row.get("verdict"))
        return count


# Parameters


def notebooks(only: Iterable[str] = (), folder: Path | None = None) -> list[Path]:
    """The project's notebooks in order, or those whose names begin with one of `only`."""
    found = sorted((folder or project_root() / "notebooks").resolve().glob("[!.]*.ipynb"))
    only = list(only) or [""]
    for start in only:
        if not any(path.name.startswith(start) for path in found):
            names = ", ".join(path.stem for path in found) or "none at all"
            raise ParameterError(f"no notebook begins with {start!r}; there are {names}")
    return [path for path in found if path.name.startswith(tuple(only))]


def parse_value(text: str):
    """The Python value that a command-line word stands for: number, bool, None, list or the word itself."""
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    with suppress(yaml.YAMLError):
        return yaml.safe_load(text)
    return text


def checked_parameters(notebook: Path, given: dict) -> dict:
    """`given`, once every name and type in it is one of the notebook's parameters cell; "a,b" makes a list there."""
    known = papermill.inspect_notebook(str(notebook))
    shown = ", ".join(f"{name} = {p['default']}" for name, p in known.items())
    checked = {}
    for name, value in given.items():
        if name not in known:
            wrong = f"has no parameter {name!r}"
        elif name == "profile" and value not in PROFILES:
            wrong = f"knows the profiles quick and full, not {value!r}"
        else:
            kinds = _kinds(parse_value(known[name]["default"]), known[name]["inferred_type_name"])
            checked[name] = value.split(",") if list in kinds and isinstance(value, str) else value
            if type(checked[name]) in kinds:
                continue
            wrong = f"cannot take {value!r} ({type(value).__name__}) as {name!r}"
        raise ParameterError(f"{notebook.stem} {wrong}; its parameters are {shown}")
    return checked


def _kinds(default, declared: str) -> tuple[type, ...]:
    # None as a default stands for "all of them" throughout, so a list may replace it, unless another type is declared.
    names = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}
    kind = names.get(declared.split("[")[0]) or (list if default is None else type(default))
    return (kind, *([int] if kind is float else []), *([type(None)] if default is None else []))


def grid_points(path: Path) -> list[dict]:
    """Every combination of the lists in a YAML mapping of parameter names to lists of values."""
    try:
        grid = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ParameterError(f"{path} is not a readable YAML file: {error}") from None
    if not isinstance(grid, dict) or not all(isinstance(v, list) and v for v in grid.values()):
        raise ParameterError(f"{path} must map parameter names to lists of values")
    lists = [[parse_value(v) if isinstance(v, str) else v for v in values] for values in grid.values()]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*lists)]


def plan(paths: list[Path], out: Path, given: dict, points: list[dict] | None = None, **options) -> list[Job]:
    """One Job per notebook and grid point, every parameter checked; each point has a folder of its own."""
    jobs = []
    for point in points or [{}]:
        folder = out / _folder_name(point)
        for path in paths:
            parameters = checked_parameters(path, given | point)
            if "out_dir" in papermill.inspect_notebook(str(path)):
                inside = folder.is_relative_to(project_root())
                where = folder.relative_to(project_root()) if inside else folder
                parameters.setdefault("out_dir", where.as_posix())
            jobs.append(Job(path, folder, parameters, **options))
    return jobs


def _folder_name(point: dict) -> str:
    name = ",".join(f"{key}={value}" for key, value in point.items())
    safe = "".join(c if c.isalnum() or c in "=,.+-_" else "_" for c in name)
    if safe == name and len(name) <= 80:
        return name
    return f"{safe[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


# Execution


class OwnKernel(AsyncKernelManager):
    """A kernel of this very interpreter, whatever kernel specifications the machine has installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        # its log would only say again what the executed copy shows
        options = ["-f", "{connection_file}", "--log-level=CRITICAL"]
        command = [sys.executable, "-m", "ipykernel_launcher", *options]
        return KernelSpec(argv=command, display_name="Python 3", language="python")

    async def start_kernel(self, **options) -> None:
        await self._async_start_kernel(**options)
        batch = KERNELS[self.provisioner.pid] = options["env"][BATCH]
        if batch in STOPPED:
            stop(batch)


class OwnEngine(NBClientEngine):
    """papermill's engine with our kernel, one deadline for the whole notebook, and a call per cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, job: Job, on_cell: Callable, **_):
        deadline = time.monotonic() + (job.timeout or float("inf"))
        client = PapermillNotebookClient(
            nb_man,
            kernel_manager_class=OwnKernel,
            kernel_name=kernel_name,
            timeout_func=lambda cell: max(0.1, deadline - time.monotonic()) if job.timeout else None,
            on_cell_start=lambda cell, cell_index: on_cell(cell_index + 1, len(nb_man.nb.cells)),
        )
        threads = {"OPENBLAS_NUM_THREADS": str(job.threads)} if job.threads else {}
        client.execute(cwd=str(job.notebook.parent), env=threads | os.environ | {BATCH: job.batch})


papermill_engines.register("dagsvm_lab", OwnEngine)
logging.getLogger("papermill").setLevel(logging.ERROR)  # the summary says it all


def run_job(job: Job, on_cell: OnCell | None = None) -> Outcome:
    """The Outcome of executing `job`; the executed copy keeps a failure's traceback."""
    start, at = time.monotonic(), [0, 0]

    def follow(k: int, n: int) -> None:
        at[:] = k, n
        if on_cell:
            on_cell(job.label, k, n)

    origin, before, error = job.origin(), job.written(), None
    job.stamp.unlink(missing_ok=True)

    def execute(part: Path) -> None:
        nonlocal error
        try:
            papermill.execute_notebook(
                str(job.notebook), str(part), job.parameters, engine_name="dagsvm_lab", progress_bar=False,
                kernel_name="python3", language="python", job=job, on_cell=follow,
            )  # fmt: skip
        except PapermillExecutionError as failure:
            error = f"{failure.ename}: {failure.evalue}"
        except Exception as failure:  # a dead kernel, a timeout: the copy shows it where it happened
            error = f"{type(failure).__name__}: {failure}"
            if at[0]:
                _mark(part, at[0], failure)
        if job.batch in STOPPED:
            raise StoppedError(job.label)

    write_atomically(job.executed, execute)
    seconds = round(time.monotonic() - start, 1)
    if error:
        line = error.strip().splitlines()[0]
        return Outcome(job, "failed", at[1], seconds, f"cell {at[0]} of {at[1]}: {line}")
    files = [job.executed, *(path for path, time in job.written().items() if before.get(path) != time)]
    stamp = {**origin, "seconds": seconds, "files": {str(path): _sha(path) for path in files}}
    write_json(job.stamp, stamp)
    return Outcome(job, "finished", at[1], seconds, files=tuple(files))


def _mark(path: Path, k: int, failure: Exception) -> None:
    nb = nbformat.read(path, 4)
    what = {"ename": type(failure).__name__, "evalue": str(failure), "traceback": str(failure).splitlines()}
    nb.cells[k - 1].outputs.append(nbformat.v4.new_output("error", **what))
    nbformat.write(nb, path)


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stop(batch: str) -> None:
    """Nothing; kills that batch's kernels in this process, now and when they start, with the workers they started."""
    STOPPED.add(batch)
    for kernel in psutil.Process().children():
        if KERNELS.get(kernel.pid) == batch:
            with suppress(psutil.NoSuchProcess):
                for process in [kernel, *kernel.children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()


def is_alive(pid: int) -> bool:
    """Whether a process of that id is there and is more than an entry nobody has collected."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sweep(folders: Iterable[Path]) -> None:
    """Nothing; removes temporary files below `folders` that this process, or one that is gone, left there."""
    for part in {path for folder in folders for path in folder.rglob(".*.part*")}:
        pid = part.name.partition(".part")[0].rpartition(".")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or not is_alive(int(pid))):
            part.unlink(missing_ok=True)


class Progress:
    """One bar for the batch and one line for each running notebook; nothing where there is no terminal."""

    def __init__(self, total: int):
        self.bar = tqdm(total=total, desc="notebooks", unit="", disable=None)
        self.running: dict[str, tuple[int, int, float]] = {}
        self.lines: dict[str, tqdm] = {}

    def cell(self, label: str, k: int, n: int) -> None:
        start = self.running.get(label, (0, 0, time.monotonic()))[2]
        self.running[label] = (k, n, start)

    def draw(self) -> None:
        for label, (k, n, start) in list(self.running.items()):
            if label not in self.lines:
                self.lines[label] = tqdm(bar_format="{desc}", leave=False, disable=None)
            text = f"  {label}: cell {k} of {n}, {time.monotonic() - start:.0f} s"
            self.lines[label].set_description_str(text)

    def close(self) -> None:
        for line in [*self.lines.values(), self.bar]:
            line.close()

    def done(self, outcome: Outcome) -> None:
        label = outcome.job.label
        self.running.pop(label, None)
        if (line := self.lines.pop(label, None)) is not None:
            line.close()
        if not self.bar.disable:
            cells = outcome.error or f"{outcome.cells} cells"
            self.bar.write(f"  {label}: {outcome.status}, {cells}, {outcome.seconds:.0f} s")
        self.bar.update()


def run_batch(jobs: list[Job], workers: int = 1, resume: bool = False, scheduler: str | None = None) -> list[Outcome]:
    """The Outcome of every job in order. Ctrl-C kills the kernels and raises KeyboardInterrupt."""
    folders = {folder for job in jobs for folder in (job.out, job.results)}
    sweep(folders)
    known = [job.finished() for job in jobs] if resume else []
    outcomes = {outcome.job.executed: outcome for outcome in known if outcome}
    progress = Progress(len(jobs))
    for outcome in outcomes.values():
        progress.done(outcome)
    if scheduler:
        from distributed import Client

        client = Client(scheduler, set_as_default=False)
        pool, extra = client.get_executor(pure=False), ()
    else:
        client = None
        pool, extra = ThreadPoolExecutor(workers), (progress.cell,)
    waiting, batch = set(), uuid4().hex
    try:
        todo = [replace(job, batch=batch) for job in jobs if job.executed not in outcomes]
        waiting = {pool.submit(run_job, job, *extra) for job in todo}
        while waiting:
            done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for outcome in (future.result() for future in done):
                outcomes[outcome.job.executed] = outcome
                progress.done(outcome)
            progress.draw()
        return [outcomes[job.executed] for job in jobs]
    except KeyboardInterrupt:
        for future in waiting:
            future.cancel()
        stop(batch)
        if client:
            client.run(stop, batch)
        wait(waiting, timeout=3)
        sweep(folders)
        raise
    finally:
        progress.close()
        if client:
            client.close()


def summary(outcomes: list[Outcome], rows: int = 20) -> str:
    """One screen: what ran, how long, what did and did not reproduce, what failed where, where it all is."""
    counts = [outcome.verdicts() for outcome in outcomes]
    total = sum(counts, Counter())
    words = [word for word in WORDS if total[word]]
    width = max(8, *(len(o.job.label) for o in outcomes))
    lines = ["  ".join([f"{'notebook':{width}}  result    seconds", *words])]
    for outcome, count in list(zip(outcomes, counts, strict=True))[:rows]:
        cells = [f"{count[word] or '-':>{len(word)}}" for word in words]
        head = f"{outcome.job.label:{width}}  {outcome.status:8}  {outcome.seconds:7.1f}"
        lines.append("  ".join([head, *cells]))
    if len(outcomes) > rows:
        lines.append(f"... and {len(outcomes) - rows} more")
    lines += [f"{o.job.label} failed in {o.error}" for o in outcomes if o.status == "failed"]
    lines.append(", ".join(f"{n} {word}" for word, n in Counter(o.status for o in outcomes).items()))
    if words:
        lines.append("verdicts: " + ", ".join(f"{total[word]} {word}" for word in words))
    places = [os.path.commonpath(o.job.out for o in outcomes)]
    tables = {str(path.parent.parent) for o in outcomes for path in o.files if path.parent != o.job.out}
    if tables and not all(Path(folder).is_relative_to(places[0]) for folder in tables):
        places.append(os.path.commonpath(tables))
    return "\n".join([*lines, f"executed notebooks, tables and figures: {', '.join(places)}"])
