"""What cases may take: a second of processor time each, and 200 MB together."""

import multiprocessing
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from time import process_time

import pytest

SECONDS = 1.0
BYTES = 200e6


def limited(check: Callable[[object], bool], cases: Iterable) -> int:
    """How many of the cases `check` finds true, each within SECONDS and BYTES.

    They run in a forked child, which the system kills where a case goes on for seconds,
    be it in C, and whose memory counts from the fork.
    """
    resource = pytest.importorskip(
        "resource", reason="there are no limits on processes here"
    )
    fork = multiprocessing.get_context("fork")
    at, found = fork.Value("i", -1), fork.Value("i", 0)

    def largest() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard, before = resource.getrlimit(resource.RLIMIT_CPU)[1], largest()
        for at.value, case in enumerate(cases):
            start = process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(start + SECONDS) + 2, hard))
            tracemalloc.start()
            found.value += check(case)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert process_time() - start < SECONDS
            assert peak < BYTES
        assert largest() - before < BYTES

    process = fork.Process(target=child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads
        process.start()
    process.join()
    assert process.exitcode == 0, f"case {at.value} ended with {process.exitcode}"
    return found.value
