"""The papers' claims as small functions over recorded tables, and their table cells, each with a word.

A paper is a module of `dagsvm_lab.papers` that makes one `Paper` and states its claims:

    platt = Paper("01_platt2000", "Platt, Cristianini, Shawe-Taylor 2000")

    platt.states("platt-path", "section 2", "A row meets N - 1 nodes",
                 lambda t: t["graph"].eval("path_max == n_classes - 1"))

`t["graph"]` is the recorded table. A table that is not there gives "not available here"; a misspelt column raises.
The body returns a truth value, a number (judged against `published` by `rule`), a column of truth values (all must
hold) or an `Outcome`. A second body is for the reading *as inferred*.
"""

import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from . import verdicts as v

WRITTEN, INFERRED = "as written", "as inferred"
Body = Callable[["Tables"], object]


class NotRecordedError(LookupError):
    """A table that a claim rests on is not in the record."""


@dataclass(frozen=True)
class Outcome:
    """A verdict's word, and what was measured, in words."""

    word: str
    text: str


def three(estimate: float, low: float, high: float) -> Outcome:
    """Judge "more" by an interval: it holds above 0, is within chance when the interval has 0 in it, else fails."""
    word = v.REPRODUCED if low > 0 else v.WITHIN_CHANCE if high >= 0 else v.NOT_REPRODUCED
    return Outcome(word, f"{estimate:.2f} [{low:.2f}, {high:.2f}]")


class Tables:
    """Recorded tables by name; the first of the folders that has one gives it."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders

    def get(self, name: str) -> pd.DataFrame | None:
        """Return the table, or None where it is not recorded."""
        paths = [folder / f"{name}.csv" for folder in self.folders]
        return next((pd.read_csv(path) for path in paths if path.is_file()), None)

    def __getitem__(self, name: str) -> pd.DataFrame:
        if (found := self.get(name)) is None:
            raise NotRecordedError(f"no table {name}")
        return found


@dataclass
class Claim:
    """One statement of a paper; `bodies` holds a function for each reading."""

    id: str
    place: str
    text: str
    kind: str = "statement"
    published: float | None = None
    rule: Sequence = ("count",)
    bodies: dict[str, Body] = field(default_factory=dict)

    def judge(self, tables: Tables, reading: str = WRITTEN) -> Outcome:
        """Measure and judge the claim in one reading; an empty word where it has no such reading."""
        body = self.bodies.get(reading)
        if body is None:
            return Outcome("", "")
        try:
            found = body(tables)
        except NotRecordedError as why:
            return Outcome(v.NOT_AVAILABLE, str(why))
        if isinstance(found, Outcome):
            return found
        if self.published is not None:
            digits = v.decimals([self.published])
            word = v.judge(self.rule, self.published, float(found), digits)
            return Outcome(word, v.number(found, digits + 1))
        if isinstance(found, pd.Series):
            holds, text = bool(found.all()) if len(found) else None, f"{found.sum()} of {len(found)}"
        elif isinstance(found, bool | np.bool_ | None):
            holds, text = found, {True: "holds", False: "does not hold", None: ""}[found]
        else:
            raise TypeError(f"{self.id}: a claim without a published number is true or false, not {found!r}")
        return Outcome(v.BY_DEFINITION if holds and self.kind == "definition" else v.claim_verdict(holds), text)

    def row(self, tables: Tables) -> dict[str, str]:
        """Return the claim's row of the scorecard, both readings side by side."""
        first, second = self.judge(tables), self.judge(tables, INFERRED)
        about = dict(id=self.id, place=self.place, kind=self.kind, statement=self.text)
        about |= dict(published=v.number(self.published, 12), measured=first.text, verdict=first.word)
        return about | dict(inferred=second.text, inferred_verdict=second.word)


@dataclass(frozen=True)
class Cells:
    """A published table and the recorded one that answers it, cell by cell, in one reading.

    `columns` gives each column its rule; `fitted(key, column)` marks cells that the reading was fitted on.
    """

    id: str
    printed: pd.DataFrame
    place: str
    table: str
    keys: Sequence[str]
    columns: dict[str, Sequence]
    reading: str = WRITTEN
    fitted: Callable[[tuple, str], bool] | None = None

    digits = property(lambda self: {name: v.decimals(self.printed[name]) for name in self.columns}, doc="As printed.")

    def against(self, measured: pd.DataFrame | None) -> pd.DataFrame:
        """Compare with a measured table: a row a cell, its name, keys, quantity, published, measured, verdict."""
        if measured is not None and not {*self.keys} <= {*measured.columns}:
            raise ValueError(f"{self.table}: its rows need {', '.join(self.keys)}")
        found = v.compare(self.printed, measured, self.keys, self.columns)
        if self.fitted is not None:
            marked = [self.fitted(tuple(row[k] for k in self.keys), row["quantity"]) for _, row in found.iterrows()]
            found.loc[marked, "verdict"] = v.FITTED
        return found

    def texts(self, measured: pd.DataFrame | None) -> pd.DataFrame:
        """Compare, and say numbers in words: the published as printed, the measured with a decimal more."""
        found, digits = self.against(measured), self.digits
        for column, more in {"published": 0, "measured": 1}.items():
            pairs = zip(found[column], found["quantity"], strict=True)
            found[column] = [v.number(x, digits[quantity] + more) for x, quantity in pairs]
        return found


class Paper:
    """A paper's claims and table cells, in the order in which they are stated."""

    def __init__(self, key: str, title: str) -> None:
        self.key, self.title = key, title
        self.claims: dict[str, Claim] = {}
        self.tables: list[Cells] = []

    def states(self, id: str, place: str, text: str, body: Body, inferred: Body | None = None, **about) -> Claim:
        """State a claim by the function that measures it, and by the one for the reading as inferred, if there is one.

        `about` are fields of `Claim`. What is true by construction has the kind "definition", and is no success.
        """
        if id in self.claims:
            raise ValueError(f"{self.key} states {id} twice")
        bodies = {WRITTEN: body} | ({INFERRED: inferred} if inferred else {})
        return self.claims.setdefault(id, Claim(id, place, text, bodies=bodies, **about))

    def claim(self, id: str, place: str, text: str, **about) -> Callable[[Body], Body]:
        """Decorate the function that measures a claim; `about` as for `states`."""

        def state(body: Body) -> Body:
            self.states(id, place, text, body, **about)
            return body

        return state

    def uncheckable(self, id: str, place: str, text: str, reason: str) -> Claim:
        """State a claim that no run can decide, and why."""
        return self.states(id, place, text, lambda tables: Outcome(v.NOT_CHECKABLE, reason), kind="uncheckable")

    def cells(self, id: str, published: str, where: str | None = None, **about) -> None:
        """State a published table whose cells are judged: fields of `Cells`. Say it again for another reading."""
        printed = v.published(published)
        made = Cells(id, printed.query(where, engine="python") if where else printed, **about)
        if made.reading not in (WRITTEN, INFERRED):
            raise ValueError(f"a reading is {WRITTEN!r} or {INFERRED!r}, not {made.reading!r}")
        self.tables.append(made)

    def rows(self, tables: Tables) -> Iterator[dict]:
        """Yield the scorecard's rows: a claim or a cell each, both readings side by side."""
        yield from (claim.row(tables) for claim in self.claims.values())
        found: dict[str, dict] = {}
        for spec in self.tables:
            measured, verdict = ("measured", "verdict") if spec.reading == WRITTEN else ("inferred", "inferred_verdict")
            for cell in spec.texts(tables.get(spec.table)).to_dict("records"):
                name = "/".join([spec.id, *(str(cell[key]) for key in spec.keys), cell["quantity"]])
                row = found.setdefault(name, dict(id=name, place=spec.place, kind="cell", statement=""))
                row |= {"published": cell["published"], measured: cell["measured"], verdict: cell["verdict"]}
        yield from found.values()


def papers() -> dict[str, Paper]:
    """Find the papers: every module of `dagsvm_lab.papers` that states claims, by key."""
    package = import_module("dagsvm_lab.papers")
    modules = [import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    found = {p.key: p for m in modules for p in vars(m).values() if isinstance(p, Paper)}
    return dict(sorted(found.items()))
