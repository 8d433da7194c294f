"""One thread for BLAS, and for loops of scikit-learn, for a while."""

import os
import sys
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache
from threading import Lock
from types import SimpleNamespace

_NOW = SimpleNamespace(lock=Lock(), inside=0, before=[])
if hasattr(os, "register_at_fork"):  # a child has none of its parent's other threads
    os.register_at_fork(after_in_child=lambda: vars(_NOW).update(lock=Lock(), inside=0))


class one_thread(ContextDecorator):
    """Keep BLAS to one thread while any thread is inside.

    So jobs share the cores, and sums are formed in one order. threadpoolctl lets only
    one thread of a process set a limit (3.8 ignores the others), and gives it back when
    that thread leaves, whoever else is still inside. So the limit is counted here. A
    class, because a generator takes twice as long to enter, and single rows enter here.
    """

    def __enter__(self) -> None:
        with _NOW.lock:
            if not _NOW.inside:
                _NOW.before = []
                for library in _libraries("cvxopt" in sys.modules):
                    number = library.num_threads
                    # where it is one already, setting it takes half of a row's time
                    if number != 1 or _of_each_thread(library):
                        _NOW.before.append((library, number))
            if _NOW.before and (not _NOW.inside or _counted_apart()):
                _set([(library, 1) for library, _ in _NOW.before])
            _NOW.inside += 1

    def __exit__(self, *error) -> None:
        with _NOW.lock:
            _NOW.inside -= 1
            if not _NOW.inside:
                _set(_NOW.before)


def _counted_apart() -> bool:
    """Whether a library counts its threads for every thread, so that each sets its own.

    OpenMP does.
    """
    return any(_of_each_thread(library) for library, _ in _NOW.before)


def _of_each_thread(library) -> bool:
    """Whether each thread has a number of this library's threads of its own."""
    return getattr(library, "threading_layer", "openmp") == "openmp"


def _set(numbers: list[tuple]) -> None:
    """Give each library its number of threads."""
    for library, number in numbers:
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Keep scikit-learn's own loops to one thread, for the thread that is inside.

    Many short calls would otherwise wait for each other's threads: on a busy machine
    distances of 100 sparse rows then take 20 ms instead of 2.
    """
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp():
    """The OpenMP libraries that are loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")


@cache
def _libraries(with_cvxopt: bool) -> list:
    """The BLAS libraries that are loaded; cvxopt brings its own, and may come late."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers
