"""The batch runner: what it refuses, what it keeps, what it skips, and what is left when it is stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from dagsvm_lab import DAGSVC, load
from dagsvm_lab.files import project_root
from dagsvm_lab.run import parameters, runner
from dagsvm_lab.run.cli import main

TABLE = """
import pandas as pd
from dagsvm_lab import Record
run = Record("01_good", out_dir=out_dir, profile=profile, seed=seed)
run.table("sums", pd.DataFrame({"sum": [seed + rate], "verdict": ["close"]}))
"""


def papers(folder: Path, *args) -> int:
    """The exit code of `dagsvm-lab papers` over <folder>/notebooks into <folder>/out."""
    return main(["papers", "--notebooks", f"{folder / 'notebooks'}", "--out", f"{folder / 'out'}", *args])


def outputs(path: Path) -> list:
    """The outputs of every code cell of the notebook at `path`."""
    return [cell.outputs for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def is_alive(pid: int) -> bool:
    """Whether a process of that id is there and is more than an entry nobody has collected."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.part*")]


def test_wrong_parameters_are_refused_by_name(notebook, tmp_path, capsys):
    notebook("02_small")
    grid = tmp_path / "grid.yaml"
    grid.write_text("rate: [0.1, 0.2]\nno_such_thing: [1]\n")
    for args, named in [
        (["-p", "no_such_thing", "3"], "no_such_thing"),
        (["-p", "seed", "many"], "'many' (str) as 'seed'"),
        (["-p", "seed", "True"], "True (bool) as 'seed'"),
        (["-p", "datasets", "3"], "3 (int) as 'datasets'"),
        (["-p", "profile", "fast"], "'fast'"),
        (["--only", "07"], "'07'"),
        (["--grid", str(grid)], "no_such_thing"),
        (["--grid", str(tmp_path / "none.yaml")], "none.yaml"),
        (["--refresh", "-p", "seed", "3"], "--refresh"),
    ]:
        assert papers(tmp_path, *args) == 2
        said = capsys.readouterr().err
        assert named in said and "Traceback" not in said
        if named == "no_such_thing":
            assert 'profile = "quick", datasets = None, seed = 0, n_jobs = 1, rate = 0.5' in said
    assert not (tmp_path / "out").exists()


def test_right_parameters_are_taken(notebook):
    words = {"datasets": "usps,letter", "seed": "7", "rate": "1", "profile": "full"}
    given = {name: parameters.parse_value(word) for name, word in words.items()}
    [job] = parameters.plan([notebook("02_small")], Path("out").resolve(), given)
    assert job.parameters.pop("out_dir").endswith("out")
    assert job.parameters == {"datasets": ["usps", "letter"], "seed": 7, "rate": 1, "profile": "full"}


def test_a_batch_survives_its_failures_and_resumes(notebook, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runner, "code_digest", lambda: "the same")  # even if somebody edits the package just now
    # a kernel specification that leads nowhere must not matter
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/nowhere/python"], "display_name": "no", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    notebook("01_good_one", TABLE)
    notebook("02_bad", "import sys; print(sys.executable)", "1 / 0", "print('never')")
    notebook("03_slow", "import time; time.sleep(60)")

    assert papers(tmp_path, "--jobs", "2", "--timeout", "4") == 1
    said = capsys.readouterr()
    assert "02_bad failed in cell 4 of 5: ZeroDivisionError: division by zero" in said.out
    assert "03_slow failed in cell 3 of 3: CellTimeoutError" in said.out
    assert "1 finished, 2 failed" in said.out and "verdicts: 1 close" in said.out
    assert said.err == ""  # no terminal, no progress
    bad = outputs(tmp_path / "out" / "02_bad.ipynb")
    assert bad[2][0].text.strip() == sys.executable
    assert bad[3][0].ename == "ZeroDivisionError" and "Traceback" in "".join(bad[3][0].traceback)
    assert (tmp_path / "out" / "03_slow.ipynb").is_file() and not list(tmp_path.glob("out/0[23]*.stamp.json"))
    assert not leftovers(tmp_path)

    finished = (tmp_path / "out" / "01_good_one.ipynb").stat().st_mtime_ns
    assert papers(tmp_path, "--only", "01", "--only", "02", "--resume") == 1
    said = capsys.readouterr()
    assert "1 skipped, 1 failed" in said.out and "verdicts: 1 close" in said.out
    assert (tmp_path / "out" / "01_good_one.ipynb").stat().st_mtime_ns == finished

    # whatever decides the result, and only that, makes it run again
    [job] = parameters.plan(parameters.notebooks(["01"], tmp_path / "notebooks"), tmp_path / "out", {})
    assert job.finished()
    [other] = parameters.plan([job.notebook], job.out, {"seed": 1})
    assert not other.finished()
    for name in ("code_digest", "data_digest"):
        with monkeypatch.context() as patch:
            patch.setattr(runner, name, lambda: "another")
            assert not job.finished()
    nb = nbformat.read(job.notebook, 4)
    nb.cells.append(nbformat.v4.new_markdown_cell("A remark changes nothing."))
    nbformat.write(nb, job.notebook)
    assert job.finished()
    table = tmp_path / "out" / "01_good" / "sums.csv"
    kept = table.read_bytes()
    table.write_bytes(kept + b"1,\n")
    assert not job.finished()
    table.write_bytes(kept)
    assert job.finished()
    for stamp in ("[]", "null", "no json", json.dumps({"files": []})):
        good, _ = job.stamp.read_text(), job.stamp.write_text(stamp)
        assert not job.finished()
        job.stamp.write_text(good)
    assert job.finished()
    nb.cells[-2].source += "\n1"
    nbformat.write(nb, job.notebook)
    assert not job.finished()


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
    """Wait until so() holds; five minutes are no limit on speed, but an end to hanging."""
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
    """A real `dagsvm-lab papers` on two notebooks that would sleep for long, with all its processes."""
    notebook("01_good_one", TABLE, SLEEPER)
    notebook("02_sleeper", SLEEPER)
    command = [sys.executable, "-m", "dagsvm_lab", "papers", "--jobs", "2"]
    command += ["--notebooks", f"{tmp_path / 'notebooks'}", "--out", f"{tmp_path / 'out'}"]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    batch = subprocess.Popen(command, **pipes, cwd=project_root(), preexec_fn=heed_signals)
    pids = tmp_path / "notebooks" / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().splitlines()) == 6, "two kernels with two workers each")
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(set(started)) == 6 and all(map(is_alive, started))
    yield batch, started
    for pid in [batch.pid, *started]:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_ctrl_c_leaves_no_process_and_no_half_result(running, tmp_path):
    batch, started = running
    batch.send_signal(signal.SIGINT)
    _, said = batch.communicate(timeout=300)
    assert batch.returncode == 130 and "--resume" in said and "Traceback" not in said
    wait_until(lambda: not any(map(is_alive, started)), "kernels and workers are gone")
    assert not leftovers(tmp_path) and not list(tmp_path.glob("out/0*.*"))


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


def test_parameters_are_never_dropped(notebook, tmp_path):
    """A notebook whose parameters cannot be looked up beforehand is still run with those that were given."""
    path = notebook("01_good_one", "print(seed)")
    nb = nbformat.read(path, 4)
    del nb.metadata["kernelspec"]
    nbformat.write(nb, path)
    [job] = parameters.plan([path], tmp_path / "out", {}, [{"seed": 3}])
    runner.run_job(job)
    assert outputs(job.executed)[-1][0].text == "3\n"


def test_a_second_batch_in_one_folder_is_refused(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    with runner.alone({tmp_path / "out"}):
        assert papers(tmp_path) == 1
    assert "another batch is writing to" in capsys.readouterr().err
    assert papers(tmp_path) == 0


@pytest.mark.parametrize("values, named", [("[1, 1, 2]", "twice"), ("[1, '1']", "twice"), ("{a: 1}", "must map")])
def test_the_same_value_twice_in_a_grid_is_refused(notebook, tmp_path, capsys, values, named):
    notebook("01_good_one", TABLE)
    (tmp_path / "grid.yaml").write_text(f"seed: {values}\n")
    assert papers(tmp_path, "--grid", str(tmp_path / "grid.yaml")) == 2
    assert named in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"\x80\x00\xff", b"seed: [", b"a: &a [1]\nb: *b", b"- 1", b"", b"x: [1]" * 9999])
def test_a_bad_grid_file_gets_a_sentence(notebook, tmp_path, capsys, content):
    notebook("01_good_one", TABLE)
    (tmp_path / "grid.yaml").write_bytes(content)
    assert papers(tmp_path, "--grid", str(tmp_path / "grid.yaml")) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_job_has_an_outcome(notebook, tmp_path, capsys):
    """Whatever is wrong outside a notebook's cells ends that job alone, and the batch reports."""
    notebook("01_good_one", TABLE)
    (tmp_path / "notebooks" / "02_text.ipynb").write_text("no json")
    (tmp_path / "notebooks" / "03_empty.ipynb").write_text("")
    notebook("04_blocked", TABLE)
    (tmp_path / "out" / "04_blocked.ipynb").mkdir(parents=True)  # where its executed copy should go
    notebook("05_dies", "import os; os._exit(3)")
    assert papers(tmp_path, "--jobs", "2") == 1
    said = capsys.readouterr().out
    assert "1 finished, 4 failed" in said and "verdicts: 1 close" in said
    for named in ("02_text failed in NotJSONError", "03_empty failed in NotJSONError", "04_blocked failed in",
                  "05_dies failed in cell 3 of 3: DeadKernelError"):  # fmt: skip
        assert named in said


def test_a_limit_on_file_sizes_fails_jobs_and_not_the_batch(notebook, tmp_path):
    notebook("01_large", "print('x' * 300_000)")
    notebook("02_good", "print(1)")
    command = f"ulimit -f 200; exec {sys.executable} -m dagsvm_lab papers --notebooks notebooks --out out"
    env = os.environ | {"PYTHONPATH": str(project_root())}
    run = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 1 and "1 failed" in run.stdout and "1 finished" in run.stdout, run
    assert "File too large" in run.stdout and not leftovers(tmp_path)


FULL = """
mount -t tmpfs -o size=200k tmpfs out || exit 77
model() {{ {python} -c "$1 from dagsvm_lab import DAGSVC; X, y = np.random.rand(90, 20), np.arange(90) % 3;$2"; }}
model 'import numpy as np;' 'DAGSVC().fit(X[:9], y[:9]).save("out/model.npz")' || exit 1
{python} -m dagsvm_lab papers --notebooks notebooks --out out
echo ended with $?
{python} -c "import glob, json; [json.load(open(path)) for path in glob.glob('out/*.*[!z]')]" || exit 1
head -c 1000000 /dev/zero > out/fill
model 'import numpy as np;' 'DAGSVC().fit(X, y).save("out/model.npz")' 2>&1 | tail -1
model 'import numpy as np;' 'print(DAGSVC.load("out/model.npz").machines_.n_rows)'
ls -A out
"""


def test_a_full_disk_fails_jobs_and_leaves_no_half_file(notebook, tmp_path):
    """A file system in memory of 200 kB, mounted where only the command under test sees it."""
    notebook("01_good_one", TABLE)
    notebook("02_large", "print('x' * 300_000)")
    (tmp_path / "out").mkdir()
    env = os.environ | {"PYTHONPATH": str(project_root())}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL.format(python=sys.executable)]
    try:
        run = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("unshare is not here")
    if run.returncode == 77 or "unshare" in run.stderr:
        pytest.skip("no file system may be mounted here")
    said = run.stdout.splitlines()
    assert (
        run.returncode == 0
        and "02_large failed in cell 3 of 3: OSError: [Errno 28] No space left on device" in run.stdout
    ), run
    assert "1 finished, 1 failed" in said and "ended with 1" in said
    model = said.index("OSError: [Errno 28] No space left on device")
    assert said[model + 1 :] == ["9", "01_good", "01_good_one.ipynb", "01_good_one.stamp.json", "fill", "model.npz"]


def test_an_output_folder_that_vanishes_half_way_fails_the_job(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE, f"import shutil; shutil.rmtree({str(tmp_path / 'out')!r})")
    code = papers(tmp_path)
    assert code == 1 and "01_good_one failed in" in capsys.readouterr().out


def test_odd_places(notebook, tmp_path):
    """Spaces and letters beyond ASCII in paths, LANG=C, and no home."""
    folder = tmp_path / "ein Ordner für Äpfel"
    folder.mkdir()
    notebook("01_good_one", TABLE).parent.rename(folder / "Hefte")
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    env |= {"LANG": "C", "LC_ALL": "C", "PYTHONPATH": str(project_root())}
    command = [sys.executable, "-m", "dagsvm_lab", "papers", "--notebooks", "Hefte", "--out", "Läufe"]
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0 and "1 finished" in run.stdout, run
    assert (folder / "Läufe" / "01_good" / "sums.csv").is_file()


def test_an_output_folder_that_cannot_be_is_refused_in_one_sentence(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300), Path("/proc/none")):
        code = main(["papers", "--notebooks", str(tmp_path / "notebooks"), "--out", str(out)])
        said = capsys.readouterr()
        assert code == 1 and len(said.err.splitlines()) == 1 and said.out == ""


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1", "tcp://", "http://h:1", "tcp://127.0.0.1:9"])
def test_a_scheduler_that_is_not_there_gets_one_sentence(notebook, tmp_path, capfd, address):
    notebook("01_good_one", TABLE)
    assert papers(tmp_path, "--scheduler", address) == 1
    said = capfd.readouterr().err
    assert address in said and len(said.splitlines()) == 1


def test_without_dask_a_scheduler_gets_one_sentence(notebook, tmp_path, capsys, monkeypatch):
    notebook("01_good_one", TABLE)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert papers(tmp_path, "--scheduler", "tcp://127.0.0.1:8786") == 1
    assert "dagsvm-lab[cluster]" in capsys.readouterr().err


@pytest.mark.parametrize("name, value, named", [("profile", "fulll", "fulll"), ("no_such", 3, "no_such")])
def test_plain_papermill_is_refused_what_the_notebook_does_not_know(notebook, tmp_path, name, value, named):
    import papermill

    path, given = notebook("01_good_one", TABLE), {"out_dir": str(tmp_path), name: value}
    with pytest.raises(papermill.PapermillExecutionError, match=f"ValueError: .*{named}"):
        papermill.execute_notebook(str(path), None, given, progress_bar=False, cwd=project_root())
    assert not (tmp_path / "01_good").exists()


def test_outside_a_checkout_only_what_was_named_is_written(tmp_path):
    """The wheel, in a stranger's project: a sentence instead of results, and no file touched."""
    stranger = tmp_path / "theirs"
    (stranger / "figures").mkdir(parents=True)
    (stranger / "pyproject.toml").write_text('[project]\nname = "theirs"\n')
    (stranger / "figures" / "scorecard.csv").write_text("theirs")
    package = tmp_path / "site" / "dagsvm_lab"
    package.parent.mkdir()
    package.symlink_to(project_root() / "dagsvm_lab")
    copied = "import sys, pathlib; import dagsvm_lab.files as f; f.PACKAGE = pathlib.Path(sys.argv[1]);"
    copied += "from dagsvm_lab.run.cli import main; sys.exit(main(sys.argv[2:]))"
    for command in ("papers", "scorecard"):
        run = subprocess.run([sys.executable, "-c", copied, str(package), command], cwd=stranger, text=True,
                             capture_output=True, env=os.environ | {"PYTHONPATH": str(package.parent)})  # fmt: skip
        assert run.returncode == 2 and len(run.stderr.splitlines()) == 1 and "checkout" in run.stderr
    assert (stranger / "figures" / "scorecard.csv").read_text() == "theirs"
    assert sorted(p.name for p in stranger.rglob("*")) == ["figures", "pyproject.toml", "scorecard.csv"]


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes on this machine."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        yield cluster


def test_a_fit_spreads_its_machines_over_a_cluster(cluster):
    import joblib
    from distributed import Client

    d = load("letter", scaled=True)
    X, y = d.X_train[:12000], d.y_train[:12000]  # over 700 rows a machine: shorter ones stay here
    here = DAGSVC(C=10, gamma=2.5).fit(X, y)
    # with the rows on both workers, no task waits for the one that has them
    with Client(cluster, set_as_default=True) as client, joblib.parallel_config(backend="dask", scatter=[X]):
        there = DAGSVC(C=10, gamma=2.5, n_jobs=-1).fit(X, y)
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert len(done) == 2 and all(done.values())
    for name, array in here.machines_.to_arrays().items():
        np.testing.assert_array_equal(array, there.machines_.to_arrays()[name], err_msg=name)


def test_a_cluster_that_loses_a_worker_gives_the_same_results(cluster, notebook, tmp_path):
    notebook("01_good_one", TABLE, "import time; open('started', 'a').write('x'); time.sleep(1)")
    started = tmp_path / "notebooks" / "started"
    grid = tmp_path / "grid.yaml"
    grid.write_text("seed: [1, 2]\nrate: [0.25, 1e-3]\n")
    assert papers(tmp_path, "--grid", str(grid), "--jobs", "2") == 0
    here = {p.relative_to(tmp_path / "out"): p.read_bytes() for p in tmp_path.glob("out/*/*/sums.csv")}
    assert len(here) == 4 and len(set(here.values())) == 4
    assert Path("rate=0.001,seed=2/01_good/sums.csv") in here

    there = tmp_path / "there"
    started.unlink()
    jobs = parameters.plan(parameters.notebooks((), tmp_path / "notebooks"), there, {}, parameters.grid_points(grid))
    victim = cluster.workers[0].process.process.pid

    def kill_when_both_are_busy() -> None:
        while not (started.exists() and started.stat().st_size >= 2):
            time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)

    threading.Thread(target=kill_when_both_are_busy, daemon=True).start()
    outcomes = runner.run_batch(jobs, scheduler=cluster.scheduler_address)
    assert [outcome.status for outcome in outcomes] == ["finished"] * 4
    assert started.stat().st_size == 5  # the one that was lost began again
    assert {p.relative_to(there): p.read_bytes() for p in there.glob("*/*/sums.csv")} == here
    runner.sweep(there)
    assert not leftovers(there)


def test_refresh_writes_a_clean_notebook_and_leaves_one_that_failed(notebook, tmp_path):
    good = notebook("01_good_one", "import sys\nfor k in range(9): print(k); sys.stdout.flush()", "1 + 1")
    picture = "from IPython.display import Image, display\ndisplay(Image(b'\\x89PNG' + b'0' * 40, alt='what it shows'))"
    fails, shows = notebook("02_fails", "1 / 0"), notebook("03_shows", picture)
    before = fails.read_bytes()
    assert papers(tmp_path, "--refresh") == 1
    assert fails.read_bytes() == before
    nb = nbformat.read(good, 4)
    assert [len(o) for o in outputs(good)] == [0, 1, 1]
    assert outputs(good)[1][0].text == "".join(f"{k}\n" for k in range(9))
    assert [c.execution_count for c in nb.cells] == [1, 2, 3] and "papermill" not in good.read_text()
    assert set(nb.metadata) == {"kernelspec", "language_info"} and nb.metadata.kernelspec.name == "python3"
    assert nb.cells[0].metadata == {"tags": ["parameters"]} and nb.cells[1].metadata == {}
    assert outputs(shows)[1][0].metadata["image/png"]["alt"] == "what it shows"
