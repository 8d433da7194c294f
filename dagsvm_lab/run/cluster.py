"""Batches on a Dask cluster: all that knows Dask."""

import re
from collections import Counter

from .execute import run_job, stop
from .jobs import Job
from .runner import Here

PATIENCE = 8  # seconds to wait for a scheduler
TRIES = 5  # times that a job is begun, when workers were lost under it


def connected(address: str):
    """Return a Dask client of that scheduler, or raise an OSError of one sentence."""
    if not re.fullmatch(r"(tcp|tls|ws|wss)://[^/]+:\d+", address):
        raise OSError(f"a scheduler's address is like tcp://HOST:8786, not {address!r}")
    try:
        from distributed import Client
    except ImportError:
        install = "pip install 'dagsvm-lab[cluster]'"
        raise OSError(f"a scheduler needs Dask: {install}") from None
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        kind = type(error).__name__
        raise OSError(f"no Dask scheduler answers at {address}: {kind}") from None


class Cluster(Here):
    """Workers of a Dask cluster that execute jobs, each in a kernel of its own.

    They do not tell which cells they are at: `at` stays empty.
    """

    def __init__(self, address: str):
        self.at = {}
        self.waiting = {}
        self.client = connected(address)
        self.pool = self.client.get_executor(pure=False)
        self.tries: Counter = Counter()

    def begin(self, job: Job) -> None:
        """Begin a job on some worker."""
        self.tries[job.executed] += 1
        self.waiting[self.pool.submit(run_job, job)] = job

    def begins_again(self, job: Job, failure: Exception) -> bool:
        """Whether a job failed for no fault of its own: its workers were lost."""
        lost = type(failure).__name__ == "KilledWorker"
        return lost and self.tries[job.executed] < TRIES

    def kill(self, batch: str) -> None:
        """Kill the kernels of the batch on every worker."""
        self.client.run(stop, batch)

    def close(self) -> None:
        """Leave the cluster."""
        super().close()
        self.client.close()
