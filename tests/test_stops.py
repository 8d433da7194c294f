"""What is left of a batch that is stopped, whatever stops it.

No process, nothing half-written, and work to resume.
"""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from batches import TABLE, leftovers, papers

from dagsvm_lab.files import project_root


def is_alive(pid: int) -> bool:
    """Whether a process of that id is there, and not only its entry."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


SLEEPER = """
import joblib, os, time
def report(seconds):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(seconds)
report(0)
if not os.path.exists("quick"):
    joblib.Parallel(2)(joblib.delayed(report)(600) for _ in range(2))
"""


def wait_until(so, what: str) -> None:
    """Wait until so() holds; five minutes are no limit on speed but end hanging."""
    end = time.monotonic() + 300
    while not so():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.1)


def heed_signals():
    """Heed what a shell or nohup has background jobs ignore: the suite may be one."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)


@pytest.fixture
def running(notebook, tmp_path):
    """A real `dagsvm-lab papers`, on two notebooks that would sleep for long."""
    notebook("01_good_one", TABLE, SLEEPER)
    notebook("02_sleeper", SLEEPER)
    command = [sys.executable, "-m", "dagsvm_lab", "papers", "--jobs", "2"]
    command += [
        "--notebooks",
        f"{tmp_path / 'notebooks'}",
        "--out",
        f"{tmp_path / 'out'}",
    ]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    batch = subprocess.Popen(
        command, **pipes, cwd=project_root(), preexec_fn=heed_signals
    )
    pids = tmp_path / "notebooks" / "pids"
    wait_until(
        lambda: pids.exists() and len(pids.read_text().splitlines()) == 6,
        "two kernels with two workers each",
    )
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(set(started)) == 6 and all(map(is_alive, started))
    yield batch, started
    for pid in [batch.pid, *started]:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_and_no_half_result(running, tmp_path):
    batch, started = running
    batch.send_signal(signal.SIGINT)
    _, said = batch.communicate(timeout=300)
    assert batch.returncode == 130 and "--resume" in said and "Traceback" not in said
    wait_until(lambda: not any(map(is_alive, started)), "kernels and workers are gone")
    assert not leftovers(tmp_path) and not list(tmp_path.glob("out/0*.*"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGHUP", "SIGQUIT", "SIGTERM"])
def test_nothing_outlives_a_batch_and_it_resumes(running, tmp_path, capsys, how):
    batch, started = running
    batch.send_signal(getattr(signal, how))
    batch.communicate(timeout=300)
    wait_until(lambda: not any(map(is_alive, started)), "kernels and workers are gone")
    assert not list(tmp_path.glob("out/0*.*"))
    if how == "SIGKILL":
        (tmp_path / "notebooks" / "quick").touch()
        assert papers(tmp_path, "--jobs", "2", "--resume") == 0
        assert "2 finished" in capsys.readouterr().out
        assert not leftovers(tmp_path)
