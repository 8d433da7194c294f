"""Batches and fits on a Dask cluster.

The same results as here, also when a worker is lost; a sentence without a cluster.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from batches import TABLE, leftovers, papers

from dagsvm_lab import DAGSVC, load
from dagsvm_lab.run import parameters, runner


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    ["nonsense", "tcp://127.0.0.1", "tcp://", "http://h:1", "tcp://127.0.0.1:9"],
)
def test_a_scheduler_that_is_not_there_gets_one_sentence(
    notebook, tmp_path, capfd, address
):
    notebook("01_good_one", TABLE)
    assert papers(tmp_path, "--scheduler", address) == 1
    said = capfd.readouterr().err
    assert address in said and len(said.splitlines()) == 1


def test_without_dask_a_scheduler_gets_one_sentence(
    notebook, tmp_path, capsys, monkeypatch
):
    notebook("01_good_one", TABLE)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert papers(tmp_path, "--scheduler", "tcp://127.0.0.1:8786") == 1
    assert "dagsvm-lab[cluster]" in capsys.readouterr().err


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes on this machine."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_fit_spreads_its_machines_over_a_cluster(cluster):
    import joblib
    from distributed import Client

    d = load("letter", scaled=True)
    # over 700 rows a machine: shorter ones stay here
    X = d.X_train[:12000]
    y = d.y_train[:12000]
    here = DAGSVC(C=10, gamma=2.5).fit(X, y)
    # with the rows on both workers, no task waits for the one that has them
    with (
        Client(cluster, set_as_default=True) as client,
        joblib.parallel_config(backend="dask", scatter=[X]),
    ):
        there = DAGSVC(C=10, gamma=2.5, n_jobs=-1).fit(X, y)
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert len(done) == 2 and all(done.values())
    for name, array in here.machines_.to_arrays().items():
        np.testing.assert_array_equal(
            array, there.machines_.to_arrays()[name], err_msg=name
        )


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_results(
    cluster, notebook, tmp_path
):
    notebook(
        "01_good_one",
        TABLE,
        "import time; open('started', 'a').write('x'); time.sleep(1)",
    )
    started = tmp_path / "notebooks" / "started"
    grid = tmp_path / "grid.yaml"
    grid.write_text("seed: [1, 2]\nrate: [0.25, 1e-3]\n")
    assert papers(tmp_path, "--grid", str(grid), "--jobs", "2") == 0
    here = {
        p.relative_to(tmp_path / "out"): p.read_bytes()
        for p in tmp_path.glob("out/*=*/*/sums.csv")
    }
    assert len(here) == 4 and len(set(here.values())) == 4
    assert Path("rate=0.001,seed=2/01_good/sums.csv") in here

    there = tmp_path / "there"
    started.unlink()
    jobs = parameters.plan(
        parameters.notebooks((), tmp_path / "notebooks"),
        there,
        {},
        parameters.grid_points(grid),
    )
    victim = cluster.workers[0].process.process.pid

    def kill_when_both_are_busy() -> None:
        while not (started.exists() and started.stat().st_size >= 2):
            time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)

    threading.Thread(target=kill_when_both_are_busy, daemon=True).start()
    outcomes = runner.run_batch(jobs, scheduler=cluster.scheduler_address)
    assert [outcome.status for outcome in outcomes] == ["finished"] * 4
    assert started.stat().st_size == 5  # the one that was lost began again
    assert {
        p.relative_to(there): p.read_bytes() for p in there.glob("*=*/*/sums.csv")
    } == here
    runner.sweep(there)
    assert not leftovers(there)
