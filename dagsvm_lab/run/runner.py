"""Batches of notebooks, in threads here or on a cluster, that leave nothing behind."""

import os
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pandas as pd
import psutil
from tqdm import tqdm

from ..report.verdicts import WORDS
from .execute import run_job, stop
from .jobs import Job, JobOutcome

try:
    import fcntl
except ImportError:
    fcntl = None

TICK = 0.5  # seconds between two looks at how far jobs are
ENDING = 5  # seconds that kernels are killed again: some may only be starting


class Here:
    """Threads of this process that execute jobs, each in a kernel of its own.

    Attributes
    ----------
    at : which cell each job is at, by its label.
    waiting : the jobs that have not ended yet.
    """

    def __init__(self, workers: int):
        self.at: dict = {}
        self.waiting: dict[Future, Job] = {}
        self.pool = ThreadPoolExecutor(workers)

    def begin(self, job: Job) -> None:
        """Begin a job as soon as a thread is free."""
        self.waiting[self.pool.submit(run_job, job, self.at)] = job

    def ended(self) -> list[JobOutcome]:
        """Wait a moment; return the outcomes of the jobs that ended."""
        done = wait(self.waiting, timeout=TICK, return_when=FIRST_COMPLETED).done
        outcomes = []
        for future in done:
            job = self.waiting.pop(future)
            try:
                outcomes.append(future.result())
            except Exception as failure:  # a lost worker or cluster, not the job's
                if self.begins_again(job, failure):
                    self.begin(job)
                    continue
                error = f"{type(failure).__name__}: {failure}"
                outcomes.append(JobOutcome(job, "failed", error=error))
        return outcomes

    def begins_again(self, job: Job, failure: Exception) -> bool:
        """Whether a job is worth another try: here never."""
        return False

    def stop(self, batch: str) -> None:
        """Kill the kernels of the batch, again and again: some may only be starting."""
        for future in self.waiting:
            future.cancel()
        end = time.monotonic() + ENDING
        while wait(self.waiting, timeout=0.1).not_done and time.monotonic() < end:
            self.kill(batch)

    def kill(self, batch: str) -> None:
        """Kill the kernels of the batch; nothing of it is written any more."""
        self.at["stopped"] = True
        stop(batch)

    def close(self) -> None:
        """Let the threads end."""
        self.pool.shutdown(wait=False)


def run_batch(
    jobs: list[Job],
    workers: int = 1,
    resume: bool = False,
    scheduler: str | None = None,
) -> list[JobOutcome]:
    """Run every job and return the outcomes in order.

    With `resume`, jobs whose results still stand are skipped. Ctrl-C kills the kernels
    and raises KeyboardInterrupt.
    """
    batch = uuid4().hex
    folders = {folder for job in jobs for folder in (job.out, job.results)}
    outcomes: dict[Path, JobOutcome] = {}  # by the executed copy
    with alone(folders), closing(_workers(workers, scheduler)) as pool:
        bar = tqdm(total=len(jobs), desc="notebooks", unit="", disable=None)
        try:
            with bar:
                for job in jobs:
                    earlier = job.finished() if resume else None
                    if earlier:
                        outcomes[job.executed] = earlier
                        bar.update()
                    else:
                        pool.begin(replace(job, batch=batch))
                while pool.waiting:
                    for outcome in pool.ended():
                        outcomes[outcome.job.executed] = outcome
                        _tell(bar, outcome)
                    running = list(pool.at.items())
                    cells = [f"{label}: cell {k} of {n}" for label, (k, n) in running]
                    bar.set_postfix_str(", ".join(cells))
        except KeyboardInterrupt:
            pool.stop(batch)
            raise
    return [outcomes[job.executed] for job in jobs]


def _workers(workers: int, scheduler: str | None) -> Here:
    """What executes the jobs: threads here, or a cluster."""
    if scheduler is None:
        return Here(workers)
    from .cluster import Cluster

    return Cluster(scheduler)


def _tell(bar: tqdm, outcome: JobOutcome) -> None:
    """Say in the progress line, if there is one, what became of a job."""
    bar.update()
    if not bar.disable:
        seconds = f"{outcome.seconds:.0f} s"
        bar.write(f"  {outcome.job.label}: {outcome.status}, {seconds}")


@contextmanager
def alone(folders: set[Path]):
    """Make the folders and hold them against a second batch until the end.

    What was only partly written is removed before and after: by an earlier batch that
    was killed, or by a worker that was.
    """
    with ExitStack() as held:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(f"{folder} cannot be written to")
            if fcntl:  # on Windows, stamps alone tell whose results are whose
                _lock(folder, held)
            sweep(folder)
            held.callback(sweep, folder)
        yield


def _lock(folder: Path, held: ExitStack) -> None:
    """Lock the folder until `held` is closed."""
    lock = os.open(folder, os.O_RDONLY)
    held.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(f"another batch is writing to {folder}") from None
    except OSError:  # a file system without locks
        pass


def sweep(folder: Path) -> None:
    """Remove partly written files that this process, or a gone one, left there."""
    for part in folder.rglob(".*.part*"):
        pid = part.name.partition(".part")[0].rpartition(".")[2]
        if not pid.isdigit():
            continue
        if int(pid) == os.getpid() or not psutil.pid_exists(int(pid)):
            part.unlink(missing_ok=True)


def summary(outcomes: list[JobOutcome]) -> str:
    """Say on one screen what ran, how long, what came of it, and where it all is."""
    counts = [outcome.verdicts() for outcome in outcomes]
    words = [word for word in WORDS if any(count[word] for count in counts)]
    table = pd.DataFrame(
        {
            "notebook": [o.job.label for o in outcomes],
            "result": [o.status for o in outcomes],
            "seconds": [o.seconds for o in outcomes],
        }
    )
    for word in words:
        table[word] = [count[word] or "-" for count in counts]
    lines = [table.to_string(index=False, max_rows=20)]
    for outcome in outcomes:
        if outcome.status == "failed":
            lines.append(f"{outcome.job.label} failed in {outcome.error}")
    ended = Counter(outcome.status for outcome in outcomes)
    said = [f"{n} {status}" for status, n in ended.items()]
    lines.append(", ".join(said))
    if words:
        totals = []
        for word in words:
            n = sum(count[word] for count in counts)
            totals.append(f"{n} {word}")
        lines.append(f"verdicts: {', '.join(totals)}")
    places = _places(outcomes)
    lines.append(f"executed notebooks, tables and figures: {', '.join(places)}")
    return "\n".join(lines)


def _places(outcomes: list[JobOutcome]) -> list[str]:
    """The folders where results are."""
    first = os.path.commonpath({o.job.out for o in outcomes})
    others = {
        str(o.job.results)
        for o in outcomes
        if o.files and not o.job.results.is_relative_to(first)
    }
    return [first, *sorted(others)]
