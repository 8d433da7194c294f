"""Which notebooks run, with which parameters, into which folder: everything that is refused before anything starts."""

import ast
import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import papermill
import yaml
from sklearn.model_selection import ParameterGrid

from ..files import CommandError, checkout, project_root
from ..report.record import PROFILES
from .runner import Job

LARGEST_GRID = 10_000  # combinations, and characters of the file
ALSO = {type(None): [type(None), list], float: [float, int]}  # None as a default stands for "all of them"


def notebooks(only: Iterable[str] = (), folder: Path | None = None) -> list[Path]:
    """Return the project's notebooks in order, or those whose names begin with one of `only`."""
    found = sorted((folder or project_root() / "notebooks").resolve().glob("[!.]*.ipynb"))
    only = tuple(only) or ("",)
    for start in only:
        if not any(path.name.startswith(start) for path in found):
            names = ", ".join(path.stem for path in found) or "none at all"
            raise CommandError(f"no notebook begins with {start!r}; there are {names}")
    return [path for path in found if path.name.startswith(only)]


def parse_value(text: str):
    """Return the Python value that a command-line word stands for: number, bool, None, list or the word itself."""
    for parse in (ast.literal_eval, yaml.safe_load):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, yaml.YAMLError):
            return parse(text)
    return text


def checked(notebook: Path, given: dict, known: dict) -> dict:
    """Return `given`, once its names and types are the parameters cell's; "a,b" becomes a list where one is meant."""
    taken = {}
    for name, value in given.items():
        kind = type(parse_value(known[name]["default"])) if name in known else None
        kinds = ALSO.get(kind, [kind])
        taken[name] = value.split(",") if list in kinds and isinstance(value, str) else value
        if name not in known:
            wrong = f"has no parameter {name!r}"
        elif name == "profile" and value not in PROFILES:
            wrong = f"knows the profiles {' and '.join(PROFILES)}, not {value!r}"
        elif type(taken[name]) not in kinds:
            wrong = f"cannot take {value!r} ({type(value).__name__}) as {name!r}"
        else:
            continue
        shown = ", ".join(f"{name} = {p['default']}" for name, p in known.items())
        raise CommandError(f"{notebook.stem} {wrong}; its parameters are {shown}")
    return taken


def grid_points(path: Path) -> list[dict]:
    """Return every combination of the lists in a YAML mapping of parameter names to lists of values."""
    try:
        text = path.read_text(encoding="utf-8")
        grid = yaml.safe_load(text) if len(text) <= LARGEST_GRID else None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise CommandError(f"{path} is not a readable YAML file: {str(error).splitlines()[0]}") from None
    if not isinstance(grid, dict) or not all(isinstance(v, list) and v and str(k) == k for k, v in grid.items()):
        raise CommandError(f"{path} must map parameter names to lists of values, in {LARGEST_GRID} characters")
    points = ParameterGrid({k: [parse_value(v) if isinstance(v, str) else v for v in vs] for k, vs in grid.items()})
    if len(points) > LARGEST_GRID:
        raise CommandError(f"{path} has {len(points)} combinations, more than {LARGEST_GRID}")
    return list(points)


def plan(paths: list[Path], out: Path, given: dict, points: Iterable[dict] = ({},), **options) -> list[Job]:
    """Return one Job a notebook and grid point, every parameter checked; each point has a folder of its own."""
    jobs, root = {}, checkout()
    for path in paths:
        known = None
        with suppress(ValueError, KeyError, TypeError, AttributeError, OSError):  # a bad notebook: its job will say so
            known = papermill.inspect_notebook(str(path))
        for point in points:
            folder = out / _folder_name(point)
            where = folder.relative_to(root) if root and folder.is_relative_to(root) else folder
            parameters = given | point if known is None else checked(path, given | point, known)
            if known and "out_dir" in known:
                parameters.setdefault("out_dir", where.as_posix())
            job = Job(path, folder, parameters, **options)
            if jobs.setdefault(str(job.executed).casefold(), job) is not job:
                raise CommandError(f"the grid has {_folder_name(point)} twice")
    return list(jobs.values())


def _folder_name(point: dict) -> str:
    """Return a name safe for any file system: `rate=0.5,seed=0`, with a digest where that is not the whole truth."""
    name = ",".join(f"{key}={value}" for key, value in point.items())
    safe = "".join(c if c.isalnum() or c in "=,.+-_" else "_" for c in name)
    return name if safe == name and len(name) <= 80 else f"{safe[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
