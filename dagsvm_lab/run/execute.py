"""One job executed: a kernel of this very interpreter, that leaves nothing behind.

`run_job` always returns a JobOutcome; the executed copy appears whole or not at all.
Every kernel leads a process group of its own, and a watcher outside it kills the group
when the kernel or this process is gone, whatever ended it.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import nbformat
import papermill
import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from ..files import write_atomically
from ..report.record import QUIET
from .jobs import Job, JobOutcome

BATCH = "DAGSVM_LAB_BATCH"  # the variable that tells a kernel which batch it belongs to
# What the watcher does: it is nobody's child, and ends when its work is done.
WATCH = """import os, signal, sys, time
if os.fork():
    os._exit(0)
import psutil
try:
    watched = [psutil.Process(int(pid)) for pid in sys.argv[1:]]
    while all(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in watched):
        time.sleep(0.2)
except psutil.NoSuchProcess:
    pass
os.killpg(int(sys.argv[2]), signal.SIGKILL)
"""
KERNEL = "-m ipykernel_launcher -f {connection_file} --log-level=CRITICAL"


class OwnKernel(AsyncKernelManager):
    """A kernel of this interpreter, whatever kernel specifications are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How it is started; its log would only repeat what the executed copy shows."""
        command = [sys.executable, *KERNEL.split()]
        return KernelSpec(argv=command, display_name="Python 3", language="python")

    async def start_kernel(self, **options) -> None:
        """Start the kernel, and the watcher of its process group."""
        await self._async_start_kernel(**options)
        if os.name == "posix":
            pids = [str(os.getpid()), str(self.provisioner.pid)]
            watcher = [sys.executable, "-c", WATCH, *pids]
            subprocess.run(watcher, start_new_session=True, stderr=subprocess.DEVNULL)


class OwnEngine(NBClientEngine):
    """papermill's engine with our kernel, one deadline, and a call per cell."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, *, job: Job, on_cell: Callable, **_
    ):
        """Execute the notebook of `job`.

        Its copy is written once, at the end; papermill would write it twice a cell.
        """
        copy = nb_man.output_path
        nb_man.output_path = None
        deadline = time.monotonic() + (job.timeout or float("inf"))

        def time_left(cell) -> float | None:
            return max(0.1, deadline - time.monotonic()) if job.timeout else None

        def started(cell, cell_index: int) -> None:
            on_cell((cell_index + 1, len(nb_man.nb.cells)))

        client = PapermillNotebookClient(
            nb_man,
            kernel_manager_class=OwnKernel,
            kernel_name=kernel_name,
            timeout_func=time_left,
            on_cell_start=started,
        )
        env = os.environ | {BATCH: job.batch, QUIET: "1"}
        if job.threads:
            env.setdefault("OPENBLAS_NUM_THREADS", str(job.threads))
        try:
            client.execute(cwd=str(job.notebook.parent), env=env)
        finally:
            nb_man.output_path = copy


papermill_engines.register("dagsvm_lab", OwnEngine)
logging.getLogger("papermill").setLevel(logging.ERROR)  # the summary says it all


def run_job(job: Job, at: dict | None = None) -> JobOutcome:
    """Execute `job` and return its JobOutcome, whatever happens.

    While it runs, at[job.label] is the cell it is at and their number. Once
    at["stopped"] is set, nothing is written any more.
    """
    start = time.monotonic()
    at = {} if at is None else at
    failures: list[str] = []  # the first says what was wrong
    files: tuple[Path, ...] = ()
    try:
        origin = job.origin()
        before = job.written()
        job.stamp.unlink(missing_ok=True)
        write_atomically(job.executed, lambda part: _execute(job, part, at, failures))
        changed = [p for p, t in job.written().items() if before.get(p) != t]
        files = (job.executed, *changed)
        if not failures:
            job.write_stamp(origin, files)
    except Exception as failure:  # no notebook, a full disk, a folder not to be written
        failures.append(f"{type(failure).__name__}: {failure}")
    cell, cells = at.pop(job.label, (0, 0))
    seconds = round(time.monotonic() - start, 1)
    if not failures:
        return JobOutcome(job, "finished", seconds, files=files)
    place = f"cell {cell} of {cells}: " if cell else ""
    first_line = (failures[0].strip().splitlines() or [""])[0]
    return JobOutcome(job, "failed", seconds, place + first_line)


def _execute(job: Job, part: Path, at: dict, failures: list[str]) -> None:
    """Execute the notebook into the file `part`; what fails in it joins `failures`."""
    try:
        papermill.execute_notebook(
            str(job.notebook),
            str(part),
            job.parameters,
            engine_name="dagsvm_lab",
            progress_bar=False,
            kernel_name="python3",
            language="python",
            job=job,
            on_cell=partial(at.__setitem__, job.label),
        )
    except PapermillExecutionError as failure:
        failures.append(f"{failure.ename}: {failure.evalue}")
    except Exception as failure:  # a dead kernel, or the deadline
        failures.append(f"{type(failure).__name__}: {failure}")
        if at.get("stopped"):
            raise
        nbformat.read(part, 4)  # shows how far it came; raises if it is cut off


def stop(batch: str) -> None:
    """Kill the kernels of that batch in this process, with the workers they started."""
    for child in psutil.Process().children():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if child.environ().get(BATCH) != batch:
                continue
            if os.name == "posix":
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
