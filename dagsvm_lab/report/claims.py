"""The papers' claims as small functions over recorded tables, and their table cells.

A paper is a module of `dagsvm_lab.papers` that makes one `Paper` and states its claims:

    platt = Paper("01_platt2000", "Platt, Cristianini, Shawe-Taylor 2000")

    @platt.claim("platt-path", "section 2", "A row meets N - 1 nodes")
    def path(t):
        return t["graphs"].eval("path_max == n_classes - 1")

`t["graphs"]` is a table. A table that is not there gives "not available here", or "not
in this run" where a reader's run is judged; a misspelt column raises. The body returns
an `Outcome` (`report.judges` has the judges), a truth value, a number (judged against
`published` by `rule`) or a column of truth values (all must hold). A second body is for
the reading *as inferred*.

Two short forms: `each_row` makes the body that asks a condition of each row of a table,
and `Paper.both` states a claim that one rule of (tables, reading) judges in either
reading.

Words that are given in one place, here:
    fitted    whatever was picked because it agrees with the printed numbers, and
              whatever is computed from it: `Paper.picked` names the tables or cells,
              and a claim says `fitted=True` or `fitted=False` where it reads them
    misprint  a claim of kind "misprint" that fails as printed and holds as meant (its
              second body)
Claims that rest on one piece of evidence name it (`evidence="glass bank"`); among the
independent claims they count once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from . import verdicts as v
from .cells import Cells
from .recorded import NotRecordedError as NotRecordedError  # notebooks find them here
from .recorded import Tables as Tables
from .verdicts import INFERRED as INFERRED
from .verdicts import WRITTEN as WRITTEN

JUDGED = (v.REPRODUCED, v.CLOSE, v.WITHIN_CHANCE, v.NOT_REPRODUCED)
HOLD = (v.REPRODUCED, v.CLOSE, v.BY_DEFINITION, v.FITTED)
Body = Callable[[Tables], object]
Rule = Callable[[Tables, str], object]  # of the tables and the reading


@dataclass(frozen=True)
class Outcome:
    """A verdict's word and what was measured, in words.

    Attributes
    ----------
    word, text : str
        One of `verdicts.WORDS`, and the measured number with its interval or counts.
    effect : str
        How large the difference is, where `text` says how sure it is.
    tells : str
        What the rule could have told apart: its tolerance, or the smallest difference
        that this many rows or sets can show.
    chance : str
        What chance alone gives, say a random list's own figure.
    """

    word: str
    text: str
    effect: str = ""
    tells: str = ""
    chance: str = ""

    @property
    def remark(self) -> str:
        """Effect, what could have been told apart, and chance, in one phrase."""
        parts = {"effect": self.effect, "tells": self.tells, "chance": self.chance}
        return "; ".join(f"{name} {text}" for name, text in parts.items() if text)


def each_row(table: str, condition: str, where: str | None = None) -> Body:
    """Make the body that asks a condition of each row of a table, or of those `where`
    another one holds; both as pandas evaluates them."""

    def holds(tables: Tables) -> pd.Series:
        rows = tables[table]
        if where is not None:
            rows = rows.query(where)
        return rows.eval(condition)

    return holds


@dataclass
class Claim:
    """One statement of a paper; `bodies` holds a function for each reading.

    `kind` is "statement", "definition" (true by construction), "misprint" or
    "uncheckable". `fitted` says whether the reading as inferred was picked by printed
    numbers that decide this claim; `evidence` names what it shares with other claims.
    """

    id: str
    place: str
    text: str
    kind: str = "statement"
    published: float | None = None
    rule: Sequence = ("count",)
    evidence: str = ""
    fitted: bool | None = None
    bodies: dict[str, Body] = field(default_factory=dict)

    def judge(self, tables: Tables, reading: str = WRITTEN) -> Outcome:
        """Measure and judge the claim in one reading; an empty word where it has no
        such reading."""
        body = self.bodies.get(reading)
        if body is None:
            return Outcome("", "")
        partial = getattr(tables, "partial", False)
        missing = v.NOT_IN_RUN if partial else v.NOT_AVAILABLE
        try:
            outcome = self._outcome(body(tables))
        except NotRecordedError as why:
            return Outcome(missing, "" if partial else str(why))
        except (LookupError, ValueError):
            if not partial:  # a misspelt column, say
                raise
            return Outcome(missing, "")  # the run has too little of it
        if outcome.word == v.NOT_AVAILABLE:
            return replace(outcome, word=missing)
        if self.fitted and reading == INFERRED and outcome.word in JUDGED:
            return replace(outcome, word=v.FITTED)
        if self.kind == "misprint" and reading == WRITTEN:
            return self._misprint(outcome, tables)
        return outcome

    def _misprint(self, printed: Outcome, tables: Tables) -> Outcome:
        """Judge what fails as printed by what was meant: the reading as inferred."""
        fails = printed.word == v.NOT_REPRODUCED
        if fails and self.judge(tables, INFERRED).word in HOLD:
            return replace(printed, word=v.MISPRINT)
        return printed

    def _outcome(self, found: object) -> Outcome:
        """Judge what a body returned."""
        if isinstance(found, Outcome):
            return found
        if self.published is not None:
            digits = v.decimals([self.published])
            word = v.judge(self.rule, self.published, float(found), digits)
            return Outcome(word, v.number(found, digits + 1))
        if isinstance(found, pd.Series):
            holds = bool(found.all()) if len(found) else None
            text = f"{found.sum()} of {len(found)}"
        elif isinstance(found, bool | np.bool_ | None):
            holds = found
            text = {True: "holds", False: "does not hold", None: ""}[found]
        else:
            raise TypeError(
                f"{self.id}: a claim without a published number is true or false, "
                f"not {found!r}"
            )
        if holds and self.kind == "definition":
            return Outcome(v.BY_DEFINITION, text)
        return Outcome(v.claim_verdict(holds), text)

    def row(self, tables: Tables) -> dict[str, str]:
        """Return the claim's row of the scorecard, both readings side by side."""
        first = self.judge(tables)
        second = self.judge(tables, INFERRED)
        remarks = dict.fromkeys(part.remark for part in (first, second) if part.remark)
        return {
            "id": self.id,
            "place": self.place,
            "kind": self.kind,
            "statement": self.text,
            "published": v.number(self.published, 12),
            "measured": first.text,
            "verdict": first.word,
            "inferred": second.text,
            "inferred_verdict": second.word,
            "remarks": "; as inferred: ".join(remarks),
            "evidence": self.evidence,
        }


def _every_cell(key: tuple, column: str) -> bool:
    """Pick all cells of a table."""
    return True


class Paper:
    """A paper's claims and table cells, in the order in which they are stated."""

    def __init__(self, key: str, title: str) -> None:
        self.key = key
        self.title = title
        self.claims: dict[str, Claim] = {}
        self.tables: list[Cells] = []
        self.picks: dict[str, Callable[[tuple, str], bool]] = {}

    def picked(
        self,
        table: str,
        why: str,
        cells: Callable[[tuple, str], bool] | None = None,
    ) -> None:
        """Say that a table, or those of its cells for which `cells(key, column)` holds,
        was picked because it agrees with the printed numbers; and why.

        Say it before `cells`: they are "fitted" then. Claims whose reading as inferred
        reads the table say `fitted=True` or `fitted=False` (`undeclared`).
        """
        if not why:
            raise ValueError(f"{self.key}: why was {table} picked?")
        self.picks[table] = cells or _every_cell

    def undeclared(self, folder: Path) -> list[str]:
        """List the claims that read a picked table as inferred and do not say whether
        that makes them fitted."""
        found = []
        for claim in self.claims.values():
            tables = Tables(folder)
            claim.judge(tables, INFERRED)
            if claim.fitted is None and tables.read & set(self.picks):
                found.append(claim.id)
        return found

    def states(
        self,
        id: str,
        place: str,
        text: str,
        body: Body,
        inferred: Body | None = None,
        **about,
    ) -> Claim:
        """State a claim by the function that measures it, and by the one for the
        reading as inferred, if there is one.

        `about` are fields of `Claim`. What is true by construction has the kind
        "definition", and is no success.
        """
        if id in self.claims:
            raise ValueError(f"{self.key} states {id} twice")
        bodies = {WRITTEN: body}
        if inferred is not None:
            bodies[INFERRED] = inferred
        self.claims[id] = Claim(id, place, text, bodies=bodies, **about)
        return self.claims[id]

    def claim(self, id: str, place: str, text: str, **about) -> Callable[[Body], Body]:
        """Decorate the function that measures a claim; `about` as for `states`."""

        def state(body: Body) -> Body:
            self.states(id, place, text, body, **about)
            return body

        return state

    def both(self, id: str, place: str, text: str, rule: Rule, **about) -> Claim:
        """State a claim that one rule judges in both readings; `about` as for
        `states`."""

        def written(tables: Tables) -> object:
            return rule(tables, WRITTEN)

        def inferred(tables: Tables) -> object:
            return rule(tables, INFERRED)

        return self.states(id, place, text, written, inferred, **about)

    def inferred(self, id: str) -> Callable[[Body], Body]:
        """Decorate the function that measures a stated claim as inferred."""

        def add(body: Body) -> Body:
            self.claims[id].bodies[INFERRED] = body
            return body

        return add

    def uncheckable(self, id: str, place: str, text: str, reason: str) -> Claim:
        """State a claim that no run can decide, and why."""

        def say_why(tables: Tables) -> Outcome:
            return Outcome(v.NOT_CHECKABLE, reason)

        return self.states(id, place, text, say_why, kind="uncheckable")

    def cells(self, id: str, published: str, where: str | None = None, **about) -> None:
        """State a published table whose cells are judged: fields of `Cells`. Say it
        again for another reading.
        """
        printed = v.published(published)
        if where:
            printed = printed.query(where, engine="python")
        about.setdefault("fitted", self.picks.get(about["table"]))
        made = Cells(id, printed, **about)
        if made.reading not in (WRITTEN, INFERRED):
            raise ValueError(
                f"a reading is {WRITTEN!r} or {INFERRED!r}, not {made.reading!r}"
            )
        self.tables.append(made)

    def rows(self, tables: Tables) -> Iterator[dict]:
        """Yield the scorecard's rows: a claim or a cell each, both readings side by
        side.
        """
        for claim in self.claims.values():
            yield claim.row(tables)
        found: dict[str, dict] = {}
        for spec in self.tables:
            for name, part in self._cell_rows(spec, tables):
                about = {"id": name, "place": spec.place, "kind": "cell"}
                found.setdefault(name, about | {"statement": ""}).update(part)
        yield from found.values()

    def _cell_rows(self, spec: Cells, tables: Tables) -> Iterator[tuple[str, dict]]:
        """Yield each cell's name, and what one reading adds to its row."""
        written = spec.reading == WRITTEN
        measured = "measured" if written else "inferred"
        verdict = "verdict" if written else "inferred_verdict"
        missing = getattr(tables, "missing", v.NOT_AVAILABLE)
        cells = spec.texts(tables.get(spec.table))
        cells["verdict"] = cells["verdict"].replace(v.NOT_AVAILABLE, missing)
        for cell in cells.to_dict("records"):
            keys = [str(cell[key]) for key in spec.keys]
            name = "/".join([spec.id, *keys, cell["quantity"]])
            yield (
                name,
                {
                    "published": cell["published"],
                    measured: cell["measured"],
                    verdict: cell["verdict"],
                },
            )
