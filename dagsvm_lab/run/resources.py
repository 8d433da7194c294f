"""Seconds and memory: of one call, and of ours and LIBSVM's on the same rows.

Seconds are wall-clock, the fewest of some repeats. The limit of a machine is what its
kernel values cost alone: a product of float32 matrices, and exponentials.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context

import numpy as np
from sklearn.svm import SVC

from ..papers.common import timed
from ..systems import DAGSVC, MaxWinsSVC
from ..threads import one_thread

PEER_CACHE = 2000  # MB, for LIBSVM


def best(run: Callable, *args, patience: float = 6.0, most: int = 3) -> float:
    """Fewest seconds of up to `most` runs on `args`, within about `patience` in all."""
    _, seconds = timed(partial(run, *args), most, patience=patience)
    return seconds


def limit(values: float, inputs: int) -> float:
    """Seconds that so many values of a Gaussian kernel take.

    A float32 product and its exponentials, in cache.
    """
    A = np.ones((256, inputs + 2), np.float32)
    B = np.zeros((inputs + 2, 256), np.float32)
    out = np.empty((256, 256), np.float32)
    repeats = 20

    def run() -> None:
        for _ in range(repeats):
            np.matmul(A, B, out=out)
            np.exp(out, out=out)

    with one_thread():
        seconds = best(run, patience=0.1, most=10)
    return seconds / (repeats * out.size) * values


def compare(X, y, T, repeats: int = 3, **settings) -> dict:
    """Seconds of ours and LIBSVM's on rows X: fit, predict T, and one row.

    With these the limit of this machine.
    """
    peer = SVC(cache_size=PEER_CACHE, **settings)
    votes = MaxWinsSVC(**settings)
    dag = DAGSVC(**settings)
    row: dict[str, float] = {}
    for who, est in (("libsvm", peer), ("ours", votes)):
        est.fit(X, y).predict(T)
        row[f"fit_{who}"] = best(est.fit, X, y, patience=4.0, most=repeats)
        row[f"predict_{who}"] = best(est.predict, T, patience=4.0, most=repeats)
    dag.fit_over(votes.machines_, X, y).predict(T[:1])
    for who, est in (("libsvm", peer), ("votes", votes), ("ours", dag)):
        row[f"one_row_{who}"] = best(est.predict, T[:1], patience=0.2, most=50)
    bank = votes.machines_
    _, of_class = np.unique(y, return_counts=True)
    of_machine = np.abs(bank.code) @ of_class  # rows of each machine
    to_fit = float(bank.n_support @ of_machine)  # kernel values
    to_predict = float(len(bank.support) * len(T))
    inputs = X.shape[1]
    row["fit_limit"] = limit(to_fit, inputs)
    row["predict_limit"] = limit(to_predict, inputs)
    return row


def peak_memory(run: Callable[[], object]) -> float:
    """MB of memory that `run` needs at its peak, above what is there before it.

    It is measured in a new process, so `run` must be picklable: one that is forked from
    this one would use again what was freed here, unseen.
    """
    if not hasattr(os, "fork"):
        return float("nan")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    # it stays what it is if the process runs out of memory
    found = context.RawValue("d", float("nan"))
    process = context.Process(target=_measure_peak, args=(run, found))
    process.start()
    process.join()
    return found.value


def _measure_peak(run: Callable[[], object], found) -> None:
    """Set found.value to the MB by which `run` raises this process's peak."""
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10  # of ru_maxrss, in MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found.value = (after - before) / unit
