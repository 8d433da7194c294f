"""One thread for BLAS, and for loops of scikit-learn, for a while."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache
from itertools import product
from threading import Lock
from types import SimpleNamespace

# before: (library, its number of threads) of those that were changed
# inherited: the same, of a process that was forked while another thread was inside
_NOW = SimpleNamespace(lock=Lock(), inside=0, before=[], inherited=[])


def _forget_others() -> None:
    """A forked child has none of its parent's other threads."""
    _NOW.lock = Lock()
    if _NOW.inside:
        _NOW.inherited = _NOW.before
    _NOW.inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)


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
                for library, number in _NOW.inherited:
                    library.set(number)
                _NOW.inherited = []
                _NOW.before = []
                for library in _libraries("cvxopt" in sys.modules):
                    number = library.number()
                    if number != 1 or library.counts_apart:
                        _NOW.before.append((library, number))
                        library.set(1)
            else:
                for library, _ in _NOW.before:
                    if library.counts_apart:
                        library.set(1)
            _NOW.inside += 1

    def __exit__(self, *error) -> None:
        with _NOW.lock:
            _NOW.inside -= 1
            if not _NOW.inside:
                for library, number in _NOW.before:
                    library.set(number)


class _Library:
    """A BLAS library that is loaded.

    Attributes
    ----------
    counts_apart : whether it counts its threads for every thread, so that each sets its
        own number. OpenMP does.
    number, set : functions that read and set its number of threads.
    """

    def __init__(self, controller):
        self.controller = controller
        layer = getattr(controller, "threading_layer", "openmp")
        self.counts_apart = layer == "openmp"
        self.number = controller.get_num_threads
        self.set = self._set
        if controller.internal_api == "openblas" and not self.counts_apart:
            # its own functions take a fifth of the time, which single rows feel
            self.number = self._own_function("get") or self.number
            self.set = self._own_function("set") or self.set

    def _set(self, number: int) -> None:
        """Set the number of threads, whichever thread set it before."""
        release = getattr(self.controller, "clear_controlling_thread", _nothing)
        # before, to be allowed to set it, and after, so that others are
        release(force=True)
        self.controller.set_num_threads(number)
        release(force=True)

    def _own_function(self, verb: str) -> Callable | None:
        """The library's function that gets or sets the number, by any of its names."""
        for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
            name = f"{prefix}openblas_{verb}_num_threads{suffix}"
            function = getattr(self.controller.dynlib, name, None)
            if function is not None:
                return function
        return None


def _nothing(force: bool) -> None:
    """What releasing is where no thread holds the limit: threadpoolctl before 3.8."""


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
def _libraries(with_cvxopt: bool) -> list[_Library]:
    """The BLAS libraries that are loaded.

    cvxopt brings its own, and may come late: that it is there is the cache's key alone.
    """
    from threadpoolctl import ThreadpoolController

    loaded = ThreadpoolController().select(user_api="blas")
    return [_Library(controller) for controller in loaded.lib_controllers]
