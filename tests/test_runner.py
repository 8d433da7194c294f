"""The batch runner: what it refuses, keeps and skips, and what it says of each job."""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import nbformat
import pytest
from batches import TABLE, leftovers, papers

from dagsvm_lab.files import project_root
from dagsvm_lab.run import execute, jobs, parameters, runner
from dagsvm_lab.run.cli import main


def outputs(path: Path) -> list:
    """The outputs of every code cell of the notebook at `path`."""
    return [
        cell.outputs
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code"
    ]


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
            assert (
                'profile = "quick", datasets = None, seed = 0, n_jobs = 1, rate = 0.5'
                in said
            )
    assert not (tmp_path / "out").exists()


def test_right_parameters_are_taken(notebook):
    words = {"datasets": "usps,letter", "seed": "7", "rate": "1", "profile": "full"}
    given = {name: parameters.parse_value(word) for name, word in words.items()}
    [job] = parameters.plan([notebook("02_small")], Path("out").resolve(), given)
    assert job.parameters.pop("out_dir").endswith("out")
    assert job.parameters == {
        "datasets": ["usps", "letter"],
        "seed": 7,
        "rate": 1,
        "profile": "full",
    }


@pytest.fixture
def same_code(monkeypatch):
    """The package's code is the same, even if somebody edits it just now."""
    monkeypatch.setattr(jobs, "code_digest", lambda: "the same")


@pytest.mark.slow
def test_a_batch_survives_its_failures_and_resumes(
    notebook, tmp_path, capsys, monkeypatch, same_code
):
    # a kernel specification that leads nowhere must not matter
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    nowhere = {"argv": ["/nowhere/python"], "display_name": "", "language": "python"}
    spec.write_text(json.dumps(nowhere))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    notebook("01_good_one", TABLE)
    notebook("02_bad", "import sys; print(sys.executable)", "1 / 0", "print('never')")

    assert papers(tmp_path, "--jobs", "2") == 1
    said = capsys.readouterr()
    assert "02_bad failed in cell 4 of 5: ZeroDivisionError: division by" in said.out
    assert "1 finished, 1 failed" in said.out and "verdicts: 1 close" in said.out
    assert said.err == ""  # no terminal, no progress
    bad = outputs(tmp_path / "out" / "02_bad.ipynb")
    assert bad[2][0].text.strip() == sys.executable
    assert bad[3][0].ename == "ZeroDivisionError"
    assert "Traceback" in "".join(bad[3][0].traceback)
    assert not list(tmp_path.glob("out/02*.stamp.json"))
    assert not leftovers(tmp_path)

    good = tmp_path / "out" / "01_good_one.ipynb"
    finished = good.stat().st_mtime_ns
    assert papers(tmp_path, "--resume") == 1
    said = capsys.readouterr()
    assert "1 skipped, 1 failed" in said.out and "verdicts: 1 close" in said.out
    assert good.stat().st_mtime_ns == finished


@pytest.mark.slow
def test_a_notebook_ends_at_its_deadline(notebook, tmp_path, capsys):
    notebook("03_slow", "import time; time.sleep(600)")
    assert papers(tmp_path, "--timeout", "10") == 1
    said = capsys.readouterr().out
    assert "03_slow failed in cell 3 of 3: CellTimeoutError" in said
    assert (tmp_path / "out" / "03_slow.ipynb").is_file()
    assert not list(tmp_path.glob("out/*.stamp.json")) and not leftovers(tmp_path)


@pytest.mark.slow
def test_whatever_decides_the_result_and_only_that_makes_it_run_again(
    notebook, tmp_path, monkeypatch, same_code
):
    [job] = parameters.plan([notebook("01_good_one", TABLE)], tmp_path / "out", {})
    execute.run_job(job)
    assert job.finished()
    [other] = parameters.plan([job.notebook], job.out, {"seed": 1})
    assert not other.finished()
    for name in ("code_digest", "data_digest"):
        with monkeypatch.context() as patch:
            patch.setattr(jobs, name, lambda: "another")
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
    good = job.stamp.read_text()
    for stamp in ("[]", "null", "no json", json.dumps({"files": []})):
        job.stamp.write_text(stamp)
        assert not job.finished()
    job.stamp.write_text(good)
    assert job.finished()
    nb.cells[-2].source += "\n1"
    nbformat.write(nb, job.notebook)
    assert not job.finished()


def test_parameters_are_never_dropped(notebook, tmp_path):
    """A notebook whose parameters cannot be looked up is still run with those given."""
    path = notebook("01_good_one", "print(seed)")
    nb = nbformat.read(path, 4)
    del nb.metadata["kernelspec"]
    nbformat.write(nb, path)
    [job] = parameters.plan([path], tmp_path / "out", {}, [{"seed": 3}])
    execute.run_job(job)
    assert outputs(job.executed)[-1][0].text == "3\n"


def test_a_second_batch_in_one_folder_is_refused(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    with runner.alone({tmp_path / "out"}):
        assert papers(tmp_path) == 1
    assert "another batch is writing to" in capsys.readouterr().err
    assert papers(tmp_path) == 0


@pytest.mark.parametrize(
    "values, named",
    [("[1, 1, 2]", "twice"), ("[1, '1']", "twice"), ("{a: 1}", "must map")],
)
def test_the_same_value_twice_in_a_grid_is_refused(
    notebook, tmp_path, capsys, values, named
):
    notebook("01_good_one", TABLE)
    (tmp_path / "grid.yaml").write_text(f"seed: {values}\n")
    assert papers(tmp_path, "--grid", str(tmp_path / "grid.yaml")) == 2
    assert named in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content",
    [b"\x80\x00\xff", b"seed: [", b"a: &a [1]\nb: *b", b"- 1", b"", b"x: [1]" * 9999],
)
def test_a_bad_grid_file_gets_a_sentence(notebook, tmp_path, capsys, content):
    notebook("01_good_one", TABLE)
    (tmp_path / "grid.yaml").write_bytes(content)
    assert papers(tmp_path, "--grid", str(tmp_path / "grid.yaml")) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.slow
def test_every_job_has_an_outcome(notebook, tmp_path, capsys):
    """What is wrong outside a notebook's cells ends that job alone."""
    notebook("01_good_one", TABLE)
    (tmp_path / "notebooks" / "02_text.ipynb").write_text("no json")
    (tmp_path / "notebooks" / "03_empty.ipynb").write_text("")
    notebook("04_blocked", TABLE)
    # where its executed copy should go
    (tmp_path / "out" / "04_blocked.ipynb").mkdir(parents=True)
    notebook("05_dies", "import os; os._exit(3)")
    assert papers(tmp_path, "--jobs", "2") == 1
    said = capsys.readouterr().out
    assert "1 finished, 4 failed" in said and "verdicts: 1 close" in said
    for named in (
        "02_text failed in NotJSONError",
        "03_empty failed in NotJSONError",
        "04_blocked failed in",
        "05_dies failed in cell 3 of 3: DeadKernelError",
    ):
        assert named in said


@pytest.mark.slow
def test_a_limit_on_file_sizes_fails_jobs_and_not_the_batch(notebook, tmp_path):
    notebook("01_large", "print('x' * 300_000)")
    notebook("02_good", "print(1)")
    papers = f"{sys.executable} -m dagsvm_lab papers"
    command = f"ulimit -f 200; exec {papers} --notebooks notebooks --out out"
    env = os.environ | {"PYTHONPATH": str(project_root())}
    run = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (
        run.returncode == 1 and "1 failed" in run.stdout and "1 finished" in run.stdout
    ), run
    assert "File too large" in run.stdout and not leftovers(tmp_path)


FULL_SENTENCE = "OSError: [Errno 28] No space left on device"
FULL = """
mount -t tmpfs -o size=200k tmpfs out || exit 77
model() {{
  {python} -c "$1
from dagsvm_lab import DAGSVC
X, y = np.random.rand(90, 20), np.arange(90) % 3
$2"
}}
model 'import numpy as np;' 'DAGSVC().fit(X[:9], y[:9]).save("out/model.npz")' || exit 1
{python} -m dagsvm_lab papers --notebooks notebooks --out out
echo ended with $?
{python} -c "import glob, json
for path in glob.glob('out/*.*[!z]'): json.load(open(path))" || exit 1
head -c 1000000 /dev/zero > out/fill
model 'import numpy as np;' 'DAGSVC().fit(X, y).save("out/model.npz")' 2>&1 | tail -1
model 'import numpy as np;' 'print(DAGSVC.load("out/model.npz").machines_.n_rows)'
ls -A out
"""


@pytest.mark.slow
def test_a_full_disk_fails_jobs_and_leaves_no_half_file(notebook, tmp_path):
    """A file system of 200 kB in memory, mounted where only the command sees it."""
    notebook("01_good_one", TABLE)
    notebook("02_large", "print('x' * 300_000)")
    (tmp_path / "out").mkdir()
    env = os.environ | {"PYTHONPATH": str(project_root())}
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        FULL.format(python=sys.executable),
    ]
    try:
        run = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("unshare is not here")
    if run.returncode == 77 or "unshare" in run.stderr:
        pytest.skip("no file system may be mounted here")
    said = run.stdout.splitlines()
    assert (
        run.returncode == 0
        and f"02_large failed in cell 3 of 3: {FULL_SENTENCE}" in run.stdout
    ), run
    assert "1 finished, 1 failed" in said and "ended with 1" in said
    model = said.index(FULL_SENTENCE)
    assert said[model + 1 :] == [
        "9",
        "01_good",
        "01_good_one.ipynb",
        "01_good_one.stamp.json",
        "fill",
        "model.npz",
    ]


def test_an_output_folder_that_vanishes_half_way_fails_the_job(
    notebook, tmp_path, capsys
):
    notebook(
        "01_good_one", TABLE, f"import shutil; shutil.rmtree({str(tmp_path / 'out')!r})"
    )
    code = papers(tmp_path)
    assert code == 1 and "01_good_one failed in" in capsys.readouterr().out


@pytest.mark.slow
def test_odd_places(notebook, tmp_path):
    """Spaces and letters beyond ASCII in paths, LANG=C, and no home."""
    folder = tmp_path / "ein Ordner für Äpfel"
    folder.mkdir()
    notebook("01_good_one", TABLE).parent.rename(folder / "Hefte")
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    env |= {"LANG": "C", "LC_ALL": "C", "PYTHONPATH": str(project_root())}
    command = [
        sys.executable,
        "-m",
        "dagsvm_lab",
        "papers",
        "--notebooks",
        "Hefte",
        "--out",
        "Läufe",
    ]
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0 and "1 finished" in run.stdout, run
    assert (folder / "Läufe" / "01_good" / "sums.csv").is_file()


def test_an_output_folder_that_cannot_be_is_refused_in_one_sentence(
    notebook, tmp_path, capsys
):
    notebook("01_good_one", TABLE)
    (tmp_path / "file").write_text("")
    for out in (
        tmp_path / "file",
        tmp_path / "file" / "below",
        tmp_path / ("x" * 300),
        Path("/proc/none"),
    ):
        code = main(
            ["papers", "--notebooks", str(tmp_path / "notebooks"), "--out", str(out)]
        )
        said = capsys.readouterr()
        assert code == 1 and len(said.err.splitlines()) == 1 and said.out == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, value, named", [("profile", "fulll", "fulll"), ("no_such", 3, "no_such")]
)
def test_plain_papermill_is_refused_what_the_notebook_does_not_know(
    notebook, tmp_path, name, value, named
):
    import papermill

    path = notebook("01_good_one", TABLE)
    given = {"out_dir": str(tmp_path), name: value}
    with pytest.raises(
        papermill.PapermillExecutionError, match=f"ValueError: .*{named}"
    ):
        papermill.execute_notebook(
            str(path), None, given, progress_bar=False, cwd=project_root()
        )
    assert not (tmp_path / "01_good").exists()


@pytest.mark.slow
def test_outside_a_checkout_only_what_was_named_is_written(tmp_path):
    """The wheel, in a stranger's project: a sentence, and no file touched."""
    stranger = tmp_path / "theirs"
    (stranger / "figures").mkdir(parents=True)
    (stranger / "pyproject.toml").write_text('[project]\nname = "theirs"\n')
    (stranger / "figures" / "scorecard.csv").write_text("theirs")
    package = tmp_path / "site" / "dagsvm_lab"
    package.parent.mkdir()
    package.symlink_to(project_root() / "dagsvm_lab")
    copied = "import sys, pathlib; import dagsvm_lab.files as f\n"
    copied += "f.PACKAGE = pathlib.Path(sys.argv[1])\n"
    copied += "from dagsvm_lab.run.cli import main; sys.exit(main(sys.argv[2:]))"
    for command in ("papers", "scorecard"):
        run = subprocess.run(
            [sys.executable, "-c", copied, str(package), command],
            cwd=stranger,
            text=True,
            capture_output=True,
            env=os.environ | {"PYTHONPATH": str(package.parent)},
        )
        assert run.returncode == 2
        assert len(run.stderr.splitlines()) == 1
        assert "checkout" in run.stderr
    assert (stranger / "figures" / "scorecard.csv").read_text() == "theirs"
    assert sorted(p.name for p in stranger.rglob("*")) == [
        "figures",
        "pyproject.toml",
        "scorecard.csv",
    ]


@pytest.mark.slow
def test_refresh_writes_a_clean_notebook_and_leaves_one_that_failed(notebook, tmp_path):
    good = notebook(
        "01_good_one",
        "import sys\nfor k in range(9): print(k); sys.stdout.flush()",
        "1 + 1",
    )
    picture = "from IPython.display import Image, display\n"
    picture += "display(Image(b'\\x89PNG' + b'0' * 40, alt='what it shows'))"
    fails, shows = notebook("02_fails", "1 / 0"), notebook("03_shows", picture)
    before = fails.read_bytes()
    assert papers(tmp_path, "--refresh") == 1
    assert fails.read_bytes() == before
    nb = nbformat.read(good, 4)
    assert [len(o) for o in outputs(good)] == [0, 1, 1]
    assert outputs(good)[1][0].text == "".join(f"{k}\n" for k in range(9))
    assert [c.execution_count for c in nb.cells] == [1, 2, 3]
    assert "papermill" not in good.read_text()
    assert set(nb.metadata) == {"kernelspec", "language_info"}
    assert nb.metadata.kernelspec.name == "python3"
    assert nb.cells[0].metadata == {"tags": ["parameters"]}
    assert nb.cells[1].metadata == {}
    assert outputs(shows)[1][0].metadata["image/png"]["alt"] == "what it shows"


@pytest.mark.parametrize(
    "args, named",
    [
        (["-p", "seed", ""], "'seed' is given no value"),
        (["-p", "seed", "1", "-p", "seed", "2"], "'seed' is given twice"),
        (["-p", "profile", "full", "--profile", "quick"], "'profile' is given twice"),
        (["-p", "out_dir", "~"], "needs a value for 'out_dir': '~'"),
    ],
)
def test_parameters_that_say_nothing_or_too_much_are_refused(
    notebook, tmp_path, capsys, args, named
):
    notebook("02_small")
    assert papers(tmp_path, *args) == 2
    said = capsys.readouterr().err
    assert named in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "soon"])
def test_a_timeout_is_a_positive_number_of_seconds(tmp_path, capsys, seconds):
    with pytest.raises(SystemExit, match="2"):
        papers(tmp_path, "--timeout", seconds)
    assert "--timeout" in capsys.readouterr().err


def test_a_key_given_twice_in_a_grid_is_refused(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    (tmp_path / "grid.yaml").write_text("seed: [1]\nrate: [0.5]\nseed: [2]\n")
    assert papers(tmp_path, "--grid", str(tmp_path / "grid.yaml")) == 2
    assert "'seed' twice" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_an_endless_grid_is_read_to_its_limit(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    tracemalloc.start()
    assert papers(tmp_path, "--grid", "/dev/zero") == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6, "the file was read on and on"
    assert "10000" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["PYTHONIOENCODING=ascii {}", "{} >&-", "{} >/dev/full", "{} 2>&- | true"]
)
def test_output_that_is_ascii_or_closed_is_no_error(notebook, tmp_path, how):
    notebook("01_gut", "print('ä')")
    folder = tmp_path / "Läufe"
    command = f"{sys.executable} -m dagsvm_lab papers --notebooks notebooks"
    command = how.format(f"{command} --out '{folder}'") + "; echo ended with $? >&2"
    env = os.environ | {"PYTHONPATH": str(project_root())}
    run = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert "ended with 0" in run.stderr, run
    assert "run/cli.py" not in run.stderr, "a traceback instead of a summary"
    if "true" not in how:
        assert "1 finished" in run.stdout + run.stderr, run
    assert (folder / "01_gut.ipynb").is_file()


def test_a_part_that_a_gone_process_left_is_swept_at_the_end(tmp_path):
    ask = [sys.executable, "-c", "import os; print(os.getpid())"]
    gone = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    with runner.alone({tmp_path}):
        left = tmp_path / "01_good" / f".sums.{gone}.part.csv"
        left.parent.mkdir()
        left.write_text("half")
    assert not leftovers(tmp_path)
