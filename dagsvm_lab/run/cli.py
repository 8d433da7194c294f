"""dagsvm-lab papers | data | scorecard | bench: everything the project does, from a command line."""

import argparse
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from .. import __version__
from ..files import CommandError, checkout


def main(argv: list[str] | None = None) -> int:
    """Return the exit code: 0 when all went well, 1 when something failed, 2 for a command that makes no sense."""
    args = _parser().parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # as with `data list | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ImportError as error:  # the wheel's own requirements are those of the estimators
        code, why = 1, f"{error}; pip install 'dagsvm-lab[notebooks]' brings it"
    except CommandError as error:
        code, why = 2, error
    except OSError as error:  # a full disk, a folder that cannot be written, a file that is not there
        code, why = 1, error
    print(f"dagsvm-lab: {why}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dagsvm-lab", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dagsvm-lab {__version__}")
    commands = parser.add_subparsers(required=True, metavar="papers | data | scorecard | bench")

    papers = commands.add_parser("papers", help="execute the notebooks with papermill")
    papers.set_defaults(run=_papers)
    add = papers.add_argument
    add("--notebooks", type=Path, metavar="DIR", help="folder of the notebooks (default: the project's)")
    add("--only", action="append", default=[], metavar="01", help="notebooks whose names begin so; repeatable")
    add("--profile", choices=("quick", "full"), help="how much to compute (default: the notebook's own)")
    add("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
        help="a parameter of the notebooks; repeatable")  # fmt: skip
    add("--grid", type=Path, metavar="FILE.yaml", help="names with lists of values: every combination is run")
    add("--jobs", type=_positive, default=1, metavar="N", help="notebooks at a time (default 1)")
    add("--resume", action="store_true", help="skip what is finished with the same parameters, code and data")
    add("--timeout", type=float, metavar="SECONDS", help="longest time for one notebook")
    add("--out", type=Path, metavar="DIR", help="where results go (default: runs/ in the project)")
    add("--scheduler", metavar="ADDRESS", help="run on the Dask cluster at this address")
    add("--refresh", action="store_true", help="write clean executed copies over the notebooks themselves")

    data = commands.add_parser("data", help="the data sets")
    data.set_defaults(run=_data)
    kinds = data.add_subparsers(required=True, dest="what", metavar="list | build | verify")
    kinds.add_parser("list", help="show every data set")
    kinds.add_parser("verify", help="check the digest of every shipped file")
    build = kinds.add_parser("build", help="rebuild the shipped files from the originals")
    build.add_argument("source", type=Path, metavar="SOURCE", help="folder with the originals")
    build.add_argument("--without", action="append", default=[], metavar="SET", help="leave out; repeatable")

    scorecard = commands.add_parser("scorecard", help="verdict on every claim of the papers")
    scorecard.set_defaults(run=lambda args: import_module("dagsvm_lab.report.scorecard").main())
    bench = commands.add_parser("bench", help="time our solvers against LIBSVM")
    bench.add_argument("what", choices=("solvers", "small", "growth"), nargs="?", default="solvers")
    bench.set_defaults(run=lambda args: import_module("dagsvm_lab.run.bench").main(args.what))
    return parser


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


def _papers(args: argparse.Namespace) -> int:
    from . import parameters, runner

    given = {name: parameters.parse_value(value) for name, value in args.parameter}
    given |= {"profile": args.profile} if args.profile else {}
    if args.refresh and (given or args.grid):
        raise CommandError("--refresh runs the notebooks at their defaults: no parameters with it")
    out = args.out.resolve() if args.out else (checkout() or Path.cwd()) / "runs"
    threads = max(1, (os.cpu_count() or 1) // args.jobs) if args.jobs > 1 else None
    options = {"timeout": args.timeout, "threads": threads}
    paths = parameters.notebooks(args.only, args.notebooks)
    if args.refresh:
        jobs = [runner.Job(path, out, **options) for path in paths]
    else:
        points = parameters.grid_points(args.grid) if args.grid else [{}]
        jobs = parameters.plan(paths, out, given, points, **options)
    for name in ("SIGTERM", "SIGHUP"):  # nohup's wish is kept
        if (number := getattr(signal, name, None)) and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        outcomes = runner.run_batch(jobs, args.jobs, args.resume, args.scheduler)
    except KeyboardInterrupt:
        print("stopped; --resume goes on from here", file=sys.stderr, flush=True)
        os._exit(130)  # threads may still be waiting for kernels that are gone
    for outcome in outcomes if args.refresh else ():
        if outcome.status == "finished":
            outcome.refresh()
    print(runner.summary(outcomes))
    return int(any(outcome.status == "failed" for outcome in outcomes))


def _data(args: argparse.Namespace) -> int:
    from .. import datasets

    if args.what == "list":
        print(datasets.list_text())
        return 0
    found = datasets.verify() if args.what == "verify" else datasets.build(args.source, without=args.without)
    for name, state in found.items():
        print(f"{name}: {state}")
    return int(any(state != "sound" for state in found.values()))
