"""Batches of notebooks through papermill: resumed, in threads here or on a cluster, with nothing left behind.

A Job is one notebook, its parameters and the folder its results go to. `run_job` executes it in a kernel of this very
interpreter and always returns an Outcome; the executed copy appears whole or not at all, and a stamp beside it holds
the digests of what it came from and of what it wrote. Every kernel leads a process group of its own, and a watcher
outside it kills the group when the kernel or this process is gone, whatever ended it.
"""

import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import nbformat
import pandas as pd
import papermill
import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm

from ..datasets.originals import data_digest
from ..files import checkout, code_digest, file_digest, write_atomically, write_json
from ..report.record import QUIET
from ..report.verdicts import WORDS

try:
    import fcntl
except ImportError:
    fcntl = None

BATCH = "DAGSVM_LAB_BATCH"  # the variable that tells a kernel which batch it belongs to
TRIES = 5  # times that a job is begun when Dask gives it up because its workers were lost
WATCH = """import os, signal, sys, time
if os.fork():
    os._exit(0)  # the watcher is nobody's child, and ends when its work is done
import psutil
try:
    watched = [psutil.Process(int(pid)) for pid in sys.argv[1:]]
    while all(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in watched):
        time.sleep(0.2)
except psutil.NoSuchProcess:
    pass
os.killpg(int(sys.argv[2]), signal.SIGKILL)
"""  # what the watcher of a batch and a kernel does


@dataclass(frozen=True)
class Job:
    """One notebook to execute: its parameters, and the folder for its executed copy and stamp."""

    notebook: Path
    out: Path
    parameters: dict = field(default_factory=dict)
    timeout: float | None = None  # seconds for the whole notebook
    threads: int | None = None  # BLAS threads of its kernel
    batch: str = ""  # by which it can be stopped

    label = property(lambda self: (f"{self.out.name}/" if "=" in self.out.name else "") + self.notebook.stem)
    executed = property(lambda self: self.out / self.notebook.name)  # the executed copy
    stamp = property(lambda self: self.out / f"{self.notebook.stem}.stamp.json")  # what vouches for copy and tables
    results = property(lambda self: (checkout() or Path.cwd()) / self.parameters.get("out_dir", "runs"))  # its Record's

    def written(self) -> dict[Path, int]:
        """The files in the folder of the notebook's Record, whose key is how the notebook's name begins."""
        folders = [f for f in self.results.glob("*") if f.is_dir() and self.notebook.stem.startswith(f.name)]
        files = (path for folder in folders for path in sorted(folder.glob("[!.]*")))
        return {path: path.stat().st_mtime_ns for path in files}

    def origin(self) -> dict:
        """What decides the result: parameters, the notebook's code, the package's code, the data."""
        code = json.dumps([c.source for c in nbformat.read(self.notebook, 4).cells if c.cell_type == "code"])
        digest = hashlib.sha256(code.encode()).hexdigest()
        return {"parameters": self.parameters, "notebook": digest, "code": code_digest(), "data": data_digest()}

    def finished(self) -> "Outcome | None":
        """The earlier Outcome, if it came of the same parameters, code and data and its files still stand."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
            files = {self.out / name: digest for name, digest in stamp["files"].items()}
            same = all(stamp[key] == value for key, value in self.origin().items())
            if same and all(file_digest(path) == digest for path, digest in files.items()):
                return Outcome(self, "skipped", files=tuple(files))
        return None


@dataclass(frozen=True)
class Outcome:
    """What became of a Job: "finished", "failed" or "skipped", with its seconds, error and files."""

    job: Job
    status: str
    seconds: float = 0.0
    error: str = ""
    files: tuple[Path, ...] = ()

    def verdicts(self) -> Counter:
        """How often each word stands in the verdict columns of the tables it wrote."""
        count = Counter()
        for path in self.files:
            with suppress(ValueError, OSError):  # a table that is damaged, or gone
                table = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.DataFrame()
                count.update(table.filter(regex="^verdict").stack().dropna())
        return count

    def refresh(self) -> None:
        """Replace the notebook by its executed copy, cleaned."""
        nb = clean(nbformat.read(self.job.executed, 4))
        write_atomically(self.job.notebook, lambda part: nbformat.write(nb, part))


def clean(nb):
    """Return `nb` as it is committed: each stream in one piece, no metadata that the next execution would change."""
    from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nb.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    for cell in nb.cells:
        cell.metadata = nbformat.from_dict({k: tags for k, tags in cell.metadata.items() if k == "tags" and tags})
    return CoalesceStreamsPreprocessor().preprocess(nb, {})[0]


class OwnKernel(AsyncKernelManager):
    """A kernel of this very interpreter, whatever kernel specifications the machine has installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How it is started; its log would only say again what the executed copy shows."""
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=CRITICAL"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")

    async def start_kernel(self, **options) -> None:
        """Start the kernel, and a watcher that ends its process group once the kernel or this process is gone."""
        await self._async_start_kernel(**options)
        if os.name == "posix":
            watched = [sys.executable, "-c", WATCH, str(os.getpid()), str(self.provisioner.pid)]
            subprocess.run(watched, start_new_session=True, stderr=subprocess.DEVNULL)


class OwnEngine(NBClientEngine):
    """papermill's engine with our kernel, one deadline for the whole notebook, and a call per cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, *, job: Job, on_cell: Callable, **_):
        """Execute the notebook of `job`; its copy is written once, at the end, where papermill would twice a cell."""
        copy, nb_man.output_path = nb_man.output_path, None
        deadline = time.monotonic() + (job.timeout or float("inf"))
        client = PapermillNotebookClient(
            nb_man,
            kernel_manager_class=OwnKernel,
            kernel_name=kernel_name,
            timeout_func=lambda cell: max(0.1, deadline - time.monotonic()) if job.timeout else None,
            on_cell_start=lambda cell, cell_index: on_cell((cell_index + 1, len(nb_man.nb.cells))),
        )
        threads = {"OPENBLAS_NUM_THREADS": str(job.threads)} if job.threads else {}
        try:
            client.execute(cwd=str(job.notebook.parent), env=threads | os.environ | {BATCH: job.batch, QUIET: "1"})
        finally:
            nb_man.output_path = copy


papermill_engines.register("dagsvm_lab", OwnEngine)
logging.getLogger("papermill").setLevel(logging.ERROR)  # the summary says it all


def run_job(job: Job, at: dict | None = None) -> Outcome:
    """Execute `job` and return its Outcome, whatever happens; `at[label]` is the cell it is at and their number."""
    start, at = time.monotonic(), {} if at is None else at
    error, files = "", ()

    def execute(part: Path) -> None:
        nonlocal error
        try:
            papermill.execute_notebook(
                str(job.notebook), str(part), job.parameters, engine_name="dagsvm_lab", progress_bar=False,
                kernel_name="python3", language="python", job=job, on_cell=partial(at.__setitem__, job.label),
            )  # fmt: skip
        except PapermillExecutionError as failure:
            error = f"{failure.ename}: {failure.evalue}"
        except Exception as failure:  # a dead kernel or the deadline: the copy shows how far it came
            error = f"{type(failure).__name__}: {failure}"
            if at.get("stopped"):
                raise
            nbformat.read(part, 4)  # raises if it is not there, or cut off by a full disk

    try:
        origin, before = job.origin(), job.written()
        job.stamp.unlink(missing_ok=True)
        write_atomically(job.executed, execute)
        files = (job.executed, *(path for path, t in job.written().items() if before.get(path) != t))
        if not error:
            digests = {os.path.relpath(path, job.out): file_digest(path) for path in files}
            write_json(job.stamp, {**origin, "files": digests})
    except Exception as failure:  # no notebook, a full disk, a folder that cannot be written
        error = error or f"{type(failure).__name__}: {failure}"
    cell, cells = at.pop(job.label, (0, 0))
    seconds = round(time.monotonic() - start, 1)
    if error:
        place = f"cell {cell} of {cells}: " if cell else ""
        return Outcome(job, "failed", seconds, place + (error.strip().splitlines() or [""])[0])
    return Outcome(job, "finished", seconds, files=files)


def stop(batch: str) -> None:
    """Kill the kernels of that batch in this process, with the workers they started."""
    for child in psutil.Process().children():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if child.environ().get(BATCH) == batch:
                os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()


def sweep(folder: Path) -> None:
    """Remove temporary files below `folder` that this process, or one that is gone, left there."""
    for part in folder.rglob(".*.part*"):
        pid = part.name.partition(".part")[0].rpartition(".")[2]
        if pid.isdigit() and (int(pid) == os.getpid() or not psutil.pid_exists(int(pid))):
            part.unlink(missing_ok=True)


@contextmanager
def alone(folders: set[Path]):
    """Make the folders and hold them against a second batch until the end, however that comes."""
    with ExitStack() as held:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(f"{folder} cannot be written to")
            if fcntl:  # else Windows, where stamps alone tell whose results are whose
                lock = os.open(folder, os.O_RDONLY)
                held.callback(os.close, lock)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise BlockingIOError(f"another batch is writing to {folder}") from None
                except OSError:  # a file system without locks
                    pass
            sweep(folder)
        yield


def _client(address: str):
    """Return a Dask client, or raise an OSError of one sentence."""
    if not re.fullmatch(r"(tcp|tls|ws|wss)://[^/]+:\d+", address):
        raise OSError(f"a scheduler's address is like tcp://HOST:8786, not {address!r}")
    try:
        from distributed import Client

        return Client(address, timeout=8, set_as_default=False)
    except ImportError:
        raise OSError("a scheduler needs Dask: pip install 'dagsvm-lab[cluster]'") from None
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {address}: {type(error).__name__}") from None


def run_batch(jobs: list[Job], workers: int = 1, resume: bool = False, scheduler: str | None = None) -> list[Outcome]:
    """Run every job and return the outcomes in order. Ctrl-C kills the kernels and raises KeyboardInterrupt."""
    batch, at, tries, waiting = uuid4().hex, {}, Counter(), {}
    with alone({folder for job in jobs for folder in (job.out, job.results)}), ExitStack() as stack:
        client = stack.enter_context(_client(scheduler)) if scheduler else None
        pool = client.get_executor(pure=False) if client else ThreadPoolExecutor(workers)
        stack.callback(pool.shutdown, wait=False)
        outcomes = [job.finished() if resume else None for job in jobs]
        bar = stack.enter_context(tqdm(total=len(jobs), desc="notebooks", unit="", disable=None))
        bar.update(len(jobs) - outcomes.count(None))
        todo, told = [k for k, outcome in enumerate(outcomes) if not outcome], () if client else (at,)
        try:
            while todo or waiting:
                for k in todo:
                    waiting[pool.submit(run_job, replace(jobs[k], batch=batch), *told)] = k
                tries.update(todo)
                todo = []
                for future in wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED).done:
                    k = waiting.pop(future)
                    try:
                        outcomes[k] = future.result()
                    except Exception as failure:  # a lost worker, a lost cluster: run_job itself never raises
                        if type(failure).__name__ == "KilledWorker" and tries[k] < TRIES:
                            todo.append(k)
                            continue
                        outcomes[k] = Outcome(jobs[k], "failed", error=f"{type(failure).__name__}: {failure}")
                    bar.update()
                    if not bar.disable:
                        bar.write(f"  {jobs[k].label}: {outcomes[k].status}, {outcomes[k].seconds:.0f} s")
                bar.set_postfix_str(", ".join(f"{label}: cell {k} of {n}" for label, (k, n) in list(at.items())))
        except KeyboardInterrupt:
            at["stopped"] = True
            for future in waiting:
                future.cancel()
            end = time.monotonic() + 5
            while wait(waiting, timeout=0.1).not_done and time.monotonic() < end:
                client.run(stop, batch) if client else stop(batch)  # again and again: some may only be starting
            raise
    return outcomes


def summary(outcomes: list[Outcome]) -> str:
    """Say on one screen what ran, how long, what did and did not reproduce, what failed where, where it all is."""
    counts = [outcome.verdicts() for outcome in outcomes]
    words = [word for word in WORDS if any(count[word] for count in counts)]
    about = [{"notebook": o.job.label, "result": o.status, "seconds": o.seconds} for o in outcomes]
    table = pd.DataFrame(about).assign(**{word: [count[word] or "-" for count in counts] for word in words})
    lines = [table.to_string(index=False, max_rows=20)]
    lines += [f"{o.job.label} failed in {o.error}" for o in outcomes if o.status == "failed"]
    lines.append(", ".join(f"{n} {word}" for word, n in Counter(o.status for o in outcomes).items()))
    if words:
        lines.append("verdicts: " + ", ".join(f"{sum(count[w] for count in counts)} {w}" for w in words))
    places = [os.path.commonpath({o.job.out for o in outcomes})]
    places += {str(o.job.results) for o in outcomes if o.files and not o.job.results.is_relative_to(places[0])}
    return "\n".join([*lines, f"executed notebooks, tables and figures: {', '.join(places)}"])
