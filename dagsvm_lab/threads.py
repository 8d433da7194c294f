"""BLAS at one thread, for a while, for all threads of the process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from types import SimpleNamespace

_NOW = SimpleNamespace(lock=Lock(), inside=0, before=[])
if hasattr(os, "register_at_fork"):  # a child has none of its parent's other threads
    os.register_at_fork(after_in_child=lambda: vars(_NOW).update(lock=Lock(), inside=0))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread while any thread is inside: jobs share the cores, and sums are formed in one order.

    threadpoolctl lets only one thread of a process set a limit (3.8 ignores the others), and gives it back when that
    thread leaves, whoever else is still inside. So the limit is counted here.
    """
    with _NOW.lock:
        if not _NOW.inside:
            _NOW.before = [(library, library.num_threads) for library in _libraries("cvxopt" in sys.modules)]
        # OpenMP counts threads for every thread apart: each has to set its own
        if not _NOW.inside or "openmp" in [getattr(lib, "threading_layer", "openmp") for lib, _ in _NOW.before]:
            _set([(library, 1) for library, _ in _NOW.before])
        _NOW.inside += 1
    try:
        yield
    finally:
        with _NOW.lock:
            _NOW.inside -= 1
            if not _NOW.inside:
                _set(_NOW.before)


def _set(numbers: list[tuple]) -> None:
    for library, number in numbers:
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


@cache
def _libraries(with_cvxopt: bool) -> list:
    """The BLAS libraries that are loaded; cvxopt brings its own, and may come late."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers
