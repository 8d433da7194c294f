"""A batch of 200 notebooks on a Dask cluster that loses a worker every minute.

`make endurance` runs it (JOBS=20 SECONDS_APART=10 for less). It ends in 0 if workers
were killed all along, every job finished, every table is what one run alone gives, and
no process is left.
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import dask
import nbformat
import pandas as pd
import psutil
from distributed import LocalCluster

from dagsvm_lab.run import parameters, runner

CELLS = (
    'profile = "quick"\nseed = 0\nout_dir = "runs"',
    "from dagsvm_lab import DAGSVC, Record, load\nimport pandas as pd, time\n"
    'run = Record("01_small", out_dir=out_dir, profile=profile, seed=seed)',
    'd = load("iris", scaled=True)\n'
    "est = DAGSVC(C=10 + seed, gamma=0.5, n_jobs=2).fit(d.X, d.y)\ntime.sleep(1)",
    'found = {"seed": [seed], "score": [est.score(d.X, d.y)], "verdict": ["close"]}\n'
    'run.table("t", pd.DataFrame(found), keys=())',
)


def main(jobs: int, seconds: float) -> int:
    """Run `jobs` notebooks and kill a worker every so many `seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        nb = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]
        )
        nb.metadata.kernelspec = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nb.cells[0].metadata["tags"] = ["parameters"]
        path = Path(folder, "01_small.ipynb")
        nbformat.write(nb, path)
        batch = parameters.plan(
            [path], Path(folder, "out"), {}, [{"seed": k} for k in range(jobs)]
        )
        killed, over, start = [], threading.Event(), time.monotonic()
        # a worker that is slow to come back is not given up, as one of a cluster's is
        # after 15 seconds
        patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
        with (
            patient,
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=50,
            ) as cluster,
        ):

            def kill() -> None:
                while not over.wait(seconds):
                    pids = [
                        nanny.pid for nanny in cluster.workers.values() if nanny.pid
                    ]
                    if len(pids) == 2:  # the one before is back
                        killed.append(random.choice(pids))
                        os.kill(killed[-1], signal.SIGKILL)

            threading.Thread(target=kill, daemon=True).start()
            outcomes = runner.run_batch(batch, scheduler=cluster.scheduler_address)
            over.set()
        enough = len(killed) + 2 >= (time.monotonic() - start) / (2 * seconds)
        files = [job.out / "01_small" / "t.csv" for job in batch]
        tables = [pd.read_csv(path) for path in files if path.exists()]
        finished = sum(outcome.status == "finished" for outcome in outcomes)
        right = sum(
            table["seed"].tolist() == [k] and table["score"][0] > 0.95
            for k, table in enumerate(tables)
        )
        left = [
            p
            for p in psutil.Process().children(recursive=True)
            if "ipykernel_launcher" in " ".join(p.cmdline())
        ]
        print(
            f"{finished} of {jobs} finished, {right} tables right, "
            f"{len(killed)} workers killed, {len(left)} left"
        )
        for outcome in outcomes:
            if outcome.error:
                print(outcome.job.label, outcome.error)
    return int(not finished == right == jobs or bool(left) or not enough)


if __name__ == "__main__":
    sys.exit(
        main(
            int(os.environ.get("JOBS", 200)), float(os.environ.get("SECONDS_APART", 60))
        )
    )
