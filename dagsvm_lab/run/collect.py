"""What a batch over a grid of parameters found, in one table a kind.

A run is an executed notebook with a stamp, and so with its parameters. Its tables are
stacked under those of the other runs, with columns `run` and `param_<name>` in front;
verdicts on the papers' claims stand side by side, a column a run.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..files import CommandError, write_atomically, write_csv
from ..papers import papers
from ..report.claims import Paper
from ..report.recorded import Tables
from ..report.scorecard import VERDICTS, judged
from .jobs import STAMP

COLLECTED = "collected"  # the folder that all goes to, below that of the runs
SHOWN = 20  # rows of the table of runs that are printed


@dataclass(frozen=True)
class Run:
    """One executed notebook: its parameters and the tables that it wrote."""

    name: str
    parameters: dict
    tables: tuple[Path, ...]

    @property
    def columns(self) -> dict:
        """Its parameters as columns; where results went is none."""
        return {
            f"param_{name}": _plain(value)
            for name, value in self.parameters.items()
            if name != "out_dir"
        }


def runs_below(folder: Path) -> list[Run]:
    """The runs whose stamps lie below a folder, by name."""
    runs = []
    for stamp in sorted(folder.rglob(f"*{STAMP}")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            about = json.loads(stamp.read_text(encoding="utf-8"))
            parameters = dict(about["parameters"])
            files = [(stamp.parent / name).resolve() for name in about["files"]]
            tables = [path for path in files if path.suffix == ".csv"]
            name = stamp.relative_to(folder).as_posix().removesuffix(STAMP)
            runs.append(Run(name, parameters, tuple(sorted(tables))))
    return runs


def collect(folder: Path, number: Sequence[str] | None = None) -> str:
    """Write what the runs below `folder` found to <folder>/collected; say it in words.

    Parameters
    ----------
    folder : Path
        Where a batch has put its results.
    number : (table, column), optional
        Draw this number over the parameters: "01_platt2000/table1", "accuracy".
    """
    runs = runs_below(folder)
    if not runs:
        raise CommandError(f"there is no finished run below {folder}")
    out = folder / COLLECTED
    about = runs_table(runs)
    tables = stacked(runs)
    write(out / "runs", about)
    for name, table in tables.items():
        write(out / name, table)
    for key, table in verdicts(runs).items():
        write(out / key / "verdicts", table)
    lines = [about.to_string(index=False, max_rows=SHOWN)]
    if number is not None:
        name, column = number
        figure = drawing(tables, name, column)
        safe = name.replace("/", "-")
        path = out / f"{safe}-{column}.svg"
        write_atomically(path, figure.savefig)
        lines.append(f"figure: {path}")
    lines.append(f"{len(runs)} runs, {len(tables)} tables: {out}")
    return "\n".join(lines)


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """A row a run: its parameters, and how often its tables say each verdict."""
    rows = []
    for run in runs:
        row = {"run": run.name} | run.columns
        for path in run.tables:
            verdict_columns = _read(path, dtype=str).filter(regex="^verdict")
            words = verdict_columns.stack().dropna()
            for word, n in words.value_counts().items():
                row[word] = row.get(word, 0) + n
        rows.append(row)
    return pd.DataFrame(rows)


def stacked(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Each table of the runs, <folder>/<name>, those of all runs below each other."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        about = {"run": run.name} | run.columns
        for path in run.tables:
            table = _read(path)
            for at, (name, value) in enumerate(about.items()):
                table.insert(at, name, [value] * len(table), allow_duplicates=True)
            name = f"{path.parent.name}/{path.stem}"
            parts.setdefault(name, []).append(table)
    return {name: pd.concat(own, ignore_index=True) for name, own in parts.items()}


def verdicts(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """For each paper, a row a claim or cell and reading, a column a run."""
    found: dict[str, dict[str, pd.Series]] = {}  # paper, run
    for run in runs:
        names: dict[Path, set[str]] = {}
        for path in run.tables:
            names.setdefault(path.parent, set()).add(path.stem)
        for folder, only in names.items():
            paper = papers().get(folder.name)
            if paper is not None:
                columns = found.setdefault(paper.key, {})
                columns[run.name] = _words(paper, Tables(folder, only=only))
    tables = {}
    for key, columns in found.items():
        table = pd.DataFrame(columns)
        said = (table != "").any(axis=1)
        tables[key] = table[said].reset_index()
    return tables


def _words(paper: Paper, tables: Tables) -> pd.Series:
    """The verdicts on a paper by these tables, by id and reading."""
    card = judged(paper, tables).set_index("id")
    by_reading = {reading: card[column] for reading, column in VERDICTS.items()}
    return pd.concat(by_reading, names=["reading"]).swaplevel()


def write(path: Path, table: pd.DataFrame) -> None:
    """Write <path>.csv, and <path>.parquet if pandas has what that needs."""
    write_csv(path.with_name(f"{path.name}.csv"), table)
    with suppress(ImportError, ValueError, TypeError):  # no engine; mixed columns
        parquet = path.with_name(f"{path.name}.parquet")
        write_atomically(parquet, lambda part: table.to_parquet(part, index=False))


def drawing(tables: dict[str, pd.DataFrame], name: str, column: str):
    """Draw the mean of a table's column over the parameters.

    The parameter with most values runs across, that with the next most has a line a
    value, and others are averaged.
    """
    from ..plots import figure

    if name not in tables or column not in tables[name]:
        there = tables[name] if name in tables else tables
        raise CommandError(f"no {column!r} in {name!r}; there are {', '.join(there)}")
    table = tables[name]
    numbers = pd.to_numeric(table[column], errors="coerce")
    table = table.assign(**{column: numbers})
    varied = _varied(table)
    if not varied:
        raise CommandError(f"no parameter varies among the runs of {name}")
    across, *others = varied[:2]
    parts = table.groupby(others[0]) if others else [("", table)]
    fig, ax = figure()
    for value, part in parts:
        mean = part.groupby(across)[column].mean()
        x = mean.index
        if not pd.api.types.is_numeric_dtype(x):
            x = x.map(str)
        ax.plot(x, mean.to_numpy(), "o-", label=str(value))
    ax.set(xlabel=across.removeprefix("param_"), ylabel=f"{column}, {name}")
    if others:
        ax.legend(title=others[0].removeprefix("param_"))
    return fig


def _varied(table: pd.DataFrame) -> list[str]:
    """The parameters with more than one value, that with most values first."""
    parameters = [c for c in table if c.startswith("param_")]
    n_values = {c: table[c].nunique() for c in parameters}
    varied = [c for c in parameters if n_values[c] > 1]
    return sorted(varied, key=lambda c: n_values[c], reverse=True)


def _read(path: Path, **options) -> pd.DataFrame:
    """The table, or an empty one if it is damaged or gone."""
    with suppress(OSError, ValueError):
        return pd.read_csv(path, **options)
    return pd.DataFrame()


def _plain(value):
    """A parameter as a cell of a table."""
    return ",".join(map(str, value)) if isinstance(value, list) else value
