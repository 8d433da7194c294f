"""BLAS at one thread, for a while, for all threads of the process."""

import os
import sys
from functools import cache
from threading import Lock


class _OneThread:
    """BLAS at one thread, for all threads of the process at once, while any of them is inside.

    threadpoolctl lets only one thread of a process set a limit (3.8 ignores the others), and gives it back when that
    thread leaves, whoever else is still inside. So the limit is counted here.
    """

    def __init__(self) -> None:
        self.lock, self.inside, self.before = Lock(), 0, []
        if hasattr(os, "register_at_fork"):  # a child has none of its parent's other threads
            os.register_at_fork(after_in_child=lambda: self.__dict__.update(lock=Lock(), inside=0))

    def _set(self, numbers: list[tuple]) -> None:
        for library, number in numbers:
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(number)
            release(force=True)

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.before = [(library, library.num_threads) for library in _libraries("cvxopt" in sys.modules)]
            # OpenMP counts threads for every thread apart: each has to set its own
            if not self.inside or "openmp" in [getattr(lib, "threading_layer", "openmp") for lib, _ in self.before]:
                self._set([(library, 1) for library, _ in self.before])
            self.inside += 1

    def __exit__(self, *_) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self._set(self.before)


@cache
def _libraries(with_cvxopt: bool) -> list:
    """The BLAS libraries that are loaded; cvxopt brings its own, and may come late."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


_ONE_THREAD = _OneThread()


def one_thread() -> _OneThread:
    """A context in which BLAS keeps to one thread: jobs share the cores, and sums are formed in one order."""
    return _ONE_THREAD
