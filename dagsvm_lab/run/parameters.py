"""Which notebooks run, with which parameters, into which folder.

Everything that is refused before anything starts is refused here.
"""

import ast
import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import papermill
import yaml
from sklearn.model_selection import ParameterGrid

from ..files import CommandError, checkout, project_root
from ..report.parameters import PROFILES
from .jobs import Job

LARGEST_GRID = 10_000  # combinations, and characters of the file
LONGEST_NAME = 80  # characters of a folder's name that says all parameters
ALSO = {  # kinds that a parameter takes, by its default's; None means "all of them"
    type(None): [type(None), list],
    float: [float, int],
}


def notebooks(only: Iterable[str] = (), folder: Path | None = None) -> list[Path]:
    """Return the project's notebooks in order, or those whose names begin so."""
    folder = folder or project_root() / "notebooks"
    found = sorted(folder.resolve().glob("[!.]*.ipynb"))
    only = tuple(only) or ("",)
    for start in only:
        if not any(path.name.startswith(start) for path in found):
            names = ", ".join(path.stem for path in found) or "none at all"
            raise CommandError(f"no notebook begins with {start!r}; there are {names}")
    return [path for path in found if path.name.startswith(only)]


def parse_value(text: str):
    """Return the Python value that a command-line word stands for.

    A number, bool, None, list, or the word itself.
    """
    wrong = (ValueError, SyntaxError, MemoryError, RecursionError, yaml.YAMLError)
    for parse in (ast.literal_eval, yaml.safe_load):
        with suppress(*wrong):
            return parse(text)
    return text


def given_parameters(pairs: Iterable[tuple[str, str]]) -> dict:
    """Return the parameters that the command line gives, each once and with a value."""
    given: dict = {}
    for name, text in pairs:
        if name in given:
            raise CommandError(f"the parameter {name!r} is given twice")
        if not text.strip():
            raise CommandError(
                f"the parameter {name!r} is given no value; without -p {name} the "
                "notebook's own holds"
            )
        given[name] = parse_value(text)
    return given


def checked(notebook: Path, given: dict, known: dict) -> dict:
    """Return `given`, once its names and types are the parameters cell's.

    "a,b" becomes a list where one is meant.
    """
    taken = {}
    for name, value in given.items():
        default = parse_value(known[name]["default"]) if name in known else None
        kinds = ALSO.get(type(default), [type(default)])
        if list in kinds and isinstance(value, str):
            value = value.split(",")
        wrong = _what_is_wrong(name, value, known, kinds)
        if wrong:
            defaults = [f"{key} = {about['default']}" for key, about in known.items()]
            shown = ", ".join(defaults)
            raise CommandError(f"{notebook.stem} {wrong}; its parameters are {shown}")
        taken[name] = value
    return taken


def _what_is_wrong(name: str, value, known: dict, kinds: list[type]) -> str:
    """Why a notebook cannot take this value; "" if it can."""
    if name not in known:
        return f"has no parameter {name!r}"
    if name == "profile" and value not in PROFILES:
        return f"knows the profiles {' and '.join(PROFILES)}, not {value!r}"
    if value is None and type(None) not in kinds:
        return (
            f"needs a value for {name!r}: '~' and 'null' stand for none, and a path is "
            "written in full"
        )
    if type(value) not in kinds:
        return f"cannot take {value!r} ({type(value).__name__}) as {name!r}"
    return ""


class UniqueKeys(yaml.SafeLoader):
    """YAML whose mappings say each key once."""

    def construct_mapping(self, node, deep=False):
        """Refuse a key that is given twice, of which YAML would keep the last."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise CommandError(f"it gives {key!r} twice")
        return super().construct_mapping(node, deep)


def grid_points(path: Path) -> list[dict]:
    """Return every combination of the values in a YAML file of names and lists."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_GRID + 1)
        grid = yaml.load(text, UniqueKeys) if len(text) <= LARGEST_GRID else None
    except CommandError as error:
        raise CommandError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError, yaml.YAMLError, RecursionError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise CommandError(f"{path} is not a readable YAML file: {why}") from None
    lists = isinstance(grid, dict) and all(
        isinstance(name, str) and isinstance(values, list) and values
        for name, values in grid.items()
    )
    if not lists:
        raise CommandError(
            f"{path} must map parameter names to lists of values, in {LARGEST_GRID} "
            "characters"
        )
    for name, values in grid.items():
        parsed = [parse_value(v) if isinstance(v, str) else v for v in values]
        grid[name] = parsed
    points = ParameterGrid(grid)
    if len(points) > LARGEST_GRID:
        raise CommandError(
            f"{path} has {len(points)} combinations, more than {LARGEST_GRID}"
        )
    return list(points)


def plan(
    paths: list[Path], out: Path, given: dict, points: Iterable[dict] = ({},), **options
) -> list[Job]:
    """Return one Job a notebook and grid point, every parameter checked.

    Each point has a folder of its own. `options` are fields of every Job.
    """
    jobs: dict[str, Job] = {}
    for path in paths:
        known = None
        wrong = (ValueError, KeyError, TypeError, AttributeError, OSError)
        with suppress(*wrong):  # a bad notebook: its job will say so
            known = papermill.inspect_notebook(str(path))
        for point in points:
            folder = out / _folder_name(point)
            parameters = given | point
            if known is not None:
                parameters = checked(path, parameters, known)
                if "out_dir" in known:
                    parameters.setdefault("out_dir", _from_checkout(folder))
            job = Job(path, folder, parameters, **options)
            if jobs.setdefault(str(job.executed).casefold(), job) is not job:
                raise CommandError(f"the grid has {_folder_name(point)} twice")
    return list(jobs.values())


def _from_checkout(folder: Path) -> str:
    """The folder as seen from the checkout, if it lies in it."""
    root = checkout()
    if root and folder.is_relative_to(root):
        folder = folder.relative_to(root)
    return folder.as_posix()


def _folder_name(point: dict) -> str:
    """Return a name safe for any file system: `rate=0.5,seed=0`.

    With a digest where that is not the whole truth.
    """
    name = ",".join(f"{key}={value}" for key, value in point.items())
    safe = "".join(c if c.isalnum() or c in "=,.+-_" else "_" for c in name)
    if safe == name and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{safe[:60]}-{digest[:8]}"
