"""BLAS threads are the package's to set: one while it works, and the user's after."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from threading import Barrier

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from dagsvm_lab.files import project_root
from dagsvm_lab.threads import one_openmp_thread, one_thread

# Fits and asks every estimator with a kernel that looks how many threads BLAS has.
LOOKING = """
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info

import dagsvm_lab
from dagsvm_lab import tune

seen = set()


def threads():
    found = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return {lib["num_threads"] for lib in found}


def looking(A, B):
    seen.update(threads())
    return rbf_kernel(A, B, gamma=0.5)


before = threads()
rng = np.random.default_rng(0)
y = np.arange(60) % 3
X = rng.normal(size=(60, 4)) + y[:, None]
for name in dagsvm_lab.__all__:
    if name.endswith("SVC"):
        seen.clear()
        est = getattr(dagsvm_lab, name)(kernel=looking).fit(X, y)
        print(name, "fit", *seen)
        seen.clear()
        est.predict(X)
        est.decision_function(X)
        est.predict(X[:1])
        print(name, "predict", *seen)
seen.clear()
tune(dagsvm_lab.DAGSVC(kernel=looking), X, y, C=[1, 10], cv=2)
print("tune", "fit", *seen)
print("after", "all", *(threads() if threads() != before else {1}))
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="BLAS has one thread here")
def test_every_entry_point_works_with_one_blas_thread():
    """As a user runs it: without a variable that sets BLAS's threads."""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    env["PYTHONPATH"] = str(project_root())
    run = subprocess.run(
        [sys.executable, "-c", LOOKING], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    assert len(lines) > 20
    wrong = [line for line in lines if line[2:] != ["1"]]
    assert not wrong, "BLAS had several threads, or the kernel was not asked"


def test_tests_have_one_blas_thread():
    assert np.eye(2).sum() == 2  # NumPy's BLAS is loaded
    assert blas_threads() == {1}, "NumPy was loaded before conftest.py"


def blas_threads():
    return {
        library.num_threads
        for library in ThreadpoolController().select(user_api="blas").lib_controllers
    }


def test_loops_of_scikit_learn_have_one_thread_inside():
    loops = ThreadpoolController().select(user_api="openmp").lib_controllers
    with threadpool_limits(2, user_api="openmp"):
        with one_openmp_thread():
            assert {library.num_threads for library in loops} <= {1}
        assert {library.num_threads for library in loops} <= {2}


def test_a_child_forked_inside_has_its_threads_again():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_thread(), get_context("fork").Pool(1) as pool:
            assert pool.apply(threads_after_one) == before
        assert blas_threads() == before


def threads_after_one():
    with one_thread():
        assert blas_threads() == {1}
    return blas_threads()


def test_blas_is_limited_for_all_threads_until_the_last_one_leaves():
    meet = [Barrier(2, timeout=60) for _ in range(3)]
    seen = []

    def first():
        with one_thread():
            meet[0].wait()
            meet[1].wait()  # the second is inside too
        meet[2].wait()

    def second():
        meet[0].wait()
        with one_thread():
            seen.append(blas_threads())
            meet[1].wait()
            meet[2].wait()  # the first has left
            seen.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(first), pool.submit(second)]:
                done.result()
        assert seen == [{1}, {1}] and blas_threads() == before
        with one_thread(), one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before
