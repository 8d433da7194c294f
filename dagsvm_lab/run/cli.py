"""dagsvm-lab papers | collect | data | scorecard | bench: all that the project does."""

import argparse
import math
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from .. import __version__
from ..files import CommandError, checkout


def main(argv: list[str] | None = None) -> int:
    """Return the exit code.

    0 when all went well, 1 when something failed, 2 for a command that makes no sense.
    """
    _open_streams()
    args = _parser().parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # as with `data list | head`: nobody reads on
        _discard_output()
        return 1
    except ImportError as error:  # an installation for the estimators alone
        code = 1
        why = f"{error}; pip install 'dagsvm-lab[notebooks]' brings it"
    except CommandError as error:
        code = 2
        why = str(error)
    except OSError as error:  # a full disk, a folder or file that is not there
        code = 1
        why = str(error)
    with suppress(OSError):
        print(f"dagsvm-lab: {why}", file=sys.stderr)
    return code


def _open_streams() -> None:
    """See to it that any text can be printed, though a stream is closed or is ASCII."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    if sys.stdout is None:
        sys.stdout = sys.stderr
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let what is still to be printed go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    """Print what must be said; to stderr if nobody reads stdout."""
    try:
        print(text, flush=True)
    except OSError:
        _discard_output()
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dagsvm-lab", description=__doc__)
    version = f"dagsvm-lab {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        required=True, metavar="papers | collect | data | scorecard | bench"
    )
    _add_papers(commands)
    _add_collect(commands)
    _add_data(commands)
    scorecard = commands.add_parser(
        "scorecard", help="verdict on every claim of the papers"
    )
    scorecard.set_defaults(run=_scorecard)
    bench = commands.add_parser("bench", help="time solvers and answers against LIBSVM")
    what = ("solvers", "small", "growth", "answers")
    bench.add_argument("what", choices=what, nargs="?", default="solvers")
    bench.set_defaults(run=_bench)
    return parser


def _add_papers(commands) -> None:
    papers = commands.add_parser("papers", help="execute the notebooks with papermill")
    papers.set_defaults(run=_papers)
    _add_what_is_run(papers)
    _add_how_it_is_run(papers)


def _add_what_is_run(papers: argparse.ArgumentParser) -> None:
    """Notebooks and their parameters."""
    papers.add_argument(
        "--notebooks",
        type=Path,
        metavar="DIR",
        help="folder of the notebooks (default: the project's)",
    )
    papers.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="01",
        help="notebooks whose names begin so; repeatable",
    )
    papers.add_argument(
        "--profile",
        choices=("quick", "full"),
        help="how much to compute (default: the notebook's own)",
    )
    papers.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter of the notebooks; repeatable",
    )
    papers.add_argument(
        "--grid",
        type=Path,
        metavar="FILE.yaml",
        help="names with lists of values: every combination is run, and collected",
    )


def _add_how_it_is_run(papers: argparse.ArgumentParser) -> None:
    """Where, for how long, and what becomes of it."""
    papers.add_argument(
        "--jobs",
        type=_positive,
        default=1,
        metavar="N",
        help="notebooks at a time (default 1)",
    )
    papers.add_argument(
        "--resume",
        action="store_true",
        help="skip what is finished with the same parameters, code and data",
    )
    papers.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="longest time for one notebook",
    )
    papers.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results go (default: runs/ in the project)",
    )
    papers.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on the Dask cluster at this address"
    )
    papers.add_argument(
        "--refresh",
        action="store_true",
        help="write clean executed copies over the notebooks themselves",
    )


def _add_collect(commands) -> None:
    collect = commands.add_parser(
        "collect", help="put the tables and verdicts of many runs together"
    )
    collect.set_defaults(run=_collect)
    collect.add_argument("folder", type=Path, metavar="FOLDER", help="of the runs")
    collect.add_argument(
        "--figure",
        nargs=2,
        metavar=("TABLE", "COLUMN"),
        help="draw this number over the parameters: 01_platt2000/table1 accuracy",
    )


def _add_data(commands) -> None:
    data = commands.add_parser("data", help="the data sets")
    data.set_defaults(run=_data)
    kinds = data.add_subparsers(
        required=True, dest="what", metavar="list | build | verify"
    )
    kinds.add_parser("list", help="show every data set")
    kinds.add_parser("verify", help="check the digest of every shipped file")
    build = kinds.add_parser(
        "build", help="rebuild the shipped files from the originals"
    )
    build.add_argument(
        "source", type=Path, metavar="SOURCE", help="folder with the originals"
    )
    build.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="SET",
        help="leave out; repeatable",
    )


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds > 0):
        raise argparse.ArgumentTypeError("a positive number of seconds is needed")
    return seconds


def _papers(args: argparse.Namespace) -> int:
    from . import collect, runner

    jobs = _jobs(args)
    _stop_at_signals()
    try:
        outcomes = runner.run_batch(jobs, args.jobs, args.resume, args.scheduler)
    except KeyboardInterrupt:
        print("stopped; --resume goes on from here", file=sys.stderr, flush=True)
        os._exit(130)  # threads may still be waiting for kernels that are gone
    finished = [outcome for outcome in outcomes if outcome.status != "failed"]
    if args.refresh:
        for outcome in finished:
            outcome.refresh()
    _say(runner.summary(outcomes))
    if args.grid and finished:
        _say(collect.collect(_out(args)))
    return int(len(finished) < len(outcomes))


def _jobs(args: argparse.Namespace) -> list:
    """The jobs that `papers` was asked for."""
    from . import parameters
    from .jobs import Job

    pairs = [tuple(pair) for pair in args.parameter]
    if args.profile:
        pairs.append(("profile", args.profile))
    given = parameters.given_parameters(pairs)
    if args.refresh and (given or args.grid):
        raise CommandError(
            "--refresh runs the notebooks at their defaults: no parameters with it"
        )
    paths = parameters.notebooks(args.only, args.notebooks)
    threads = None
    if args.jobs > 1:
        threads = max(1, (os.cpu_count() or 1) // args.jobs)
    options = {"timeout": args.timeout, "threads": threads}
    if args.refresh:
        return [Job(path, _out(args), **options) for path in paths]
    points = parameters.grid_points(args.grid) if args.grid else [{}]
    return parameters.plan(paths, _out(args), given, points, **options)


def _out(args: argparse.Namespace) -> Path:
    """Where results go."""
    if args.out:
        return args.out.resolve()
    return (checkout() or Path.cwd()) / "runs"


def _stop_at_signals() -> None:
    """End as by Ctrl-C where a session or a scheduler ends this process."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup's wish is kept
        if number and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def _collect(args: argparse.Namespace) -> int:
    from .collect import collect

    _say(collect(args.folder.resolve(), args.figure))
    return 0


def _scorecard(args: argparse.Namespace) -> int:
    return import_module("dagsvm_lab.papers").write_scorecard()


def _bench(args: argparse.Namespace) -> int:
    return import_module("dagsvm_lab.run.bench").main(args.what)


def _data(args: argparse.Namespace) -> int:
    from .. import datasets

    if args.what == "list":
        print(datasets.list_text())
        return 0
    if args.what == "verify":
        found = datasets.verify()
    else:
        found = datasets.build(args.source, without=args.without)
    for name, state in found.items():
        print(f"{name}: {state}")
    return int(any(state != "sound" for state in found.values()))
