"""Where a notebook's tables, figures and provenance go, and what its page displays.

    about = dict(out_dir=out_dir, profile=profile, seed=seed)
    run = Record("01_platt2000", paper=platt, **about)
    run.heading()                                        # which run this page shows
    df = run.table("table1", fresh, keys=["dataset"])    # the table that it shows
    run.figure("pareto", fig)                            # .svg and .png beside it
    run.close(["letter"])                                # run.json: what produced them
    run.provenance()                                     # the same, as the last table

Which run the page shows, the record or the reader's own, is decided in shown.py.

Every file is written under a temporary name and renamed: a run that is killed leaves
the old file or the new one.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from ..files import (
    checkout,
    code_digest,
    write_atomically,
    write_bytes,
    write_csv,
    write_json,
)
from .agreement import agreement
from .beside import show_cells, show_claims
from .claims import Paper
from .parameters import PROFILES, refuse_unknown
from .pictures import (
    close,
    display_figure,
    display_picture,
    laid_out,
    paragraph,
    png,
)
from .prose import Sentence, said
from .provenance import (
    RUN,
    data_digests,
    loop_times,
    provenance_table,
    read_run,
    versions,
)
from .recorded import Tables
from .shown import ShownRun
from .tables import show

QUIET = "DAGSVM_LAB_QUIET"  # the variable that a batch sets: no progress lines


class Record(ShownRun):
    """One run of a notebook: the folder it writes to, and what its page displays.

    Parameters
    ----------
    key : str
        How the notebook's name begins, and the name of its folder.
    paper : Paper, optional
        The paper whose claims the notebook decides.
    out_dir : path, optional
        Where the folder is, relative to the project; "figures" makes the run the
        record.
    profile : {"quick", "full"}, optional
        How much is computed.
    seed : int, optional
        Of every random choice.
    **parameters
        The notebook's other parameters, all of them; each has None as its default.

    Attributes
    ----------
    paper : Paper or None
        The paper whose claims the notebook decides.
    shows_record : bool
        Whether this page shows the recorded full run; else it shows this run.
    tables : Tables
        The tables that this page shows, by name.
    """

    def __init__(
        self,
        key: str,
        *,
        paper: Paper | None = None,
        out_dir: str | Path = "runs",
        profile: str = "quick",
        seed: int = 0,
        **parameters,
    ):
        if profile not in PROFILES:
            raise ValueError(
                f"profile must be one of {', '.join(PROFILES)}, not {profile!r}"
            )
        refuse_unknown()
        self._start = time.perf_counter()
        root = checkout() or Path.cwd()
        own = {"profile": profile, "seed": seed, **parameters}
        super().__init__(root, key, out_dir, own)
        self.agreements: dict[str, str] = {}  # how tables agree with the record
        self.datasets: dict[str, str] = {}
        self.seconds = 0.0
        self.loops: dict[str, float] = {}
        self.paper = paper

    @property
    def full(self) -> bool:
        """Whether this run computes everything."""
        return self.parameters["profile"] == "full"

    def table(
        self,
        name: str,
        fresh: pd.DataFrame | None,
        keys: Sequence[str],
        *,
        rules: Mapping[str, tuple] | None = None,
        precision: int | Mapping[str, int] | None = None,
        caption: str | None = None,
        line: bool = True,
        note: str = "",
    ):
        """Write <name>.csv, and return the table that this page shows.

        Where the page shows the record, that is the recorded table, if there is one of
        the same columns; else `fresh`. Both are returned as they are read back from
        CSV, with the index that `fresh` has where that is named.

        Parameters
        ----------
        name : str
            Of the file.
        fresh : DataFrame or None
            What this run found; None where it does not compute the table at all: then
            the record is returned, or `NotRecordedError` raised where this run is
            shown.
        keys : sequence of str
            Columns (or levels of the index) that tell rows apart; () for their order.
        rules : mapping, optional
            How columns are compared with the record's, where their name and type do not
            say it: `agreement.agreement`.
        precision, caption : optional
            If a precision is given, the table is displayed, as by `show`.
        line : bool, optional
            Whether to display how this run agrees with the record; `agreement(name)`
            displays it elsewhere.
        note : str, optional
            Why cells may differ, for the line.
        """
        if fresh is not None:
            index = any(level is not None for level in fresh.index.names)
            write_csv(self.folder / f"{name}.csv", fresh, index)
            self.written.add(name)
        self._heed_edits()
        levels = [] if fresh is None else [n for n in fresh.index.names if n]
        self.agreements[name] = self._agreement(name, keys, rules, note)
        shown = self.tables[name]
        if levels:
            shown = shown.set_index(levels)
        if precision is not None:
            show(shown, precision, caption)
        if line:
            self.agreement(name)
        return shown

    def _agreement(self, name: str, keys, rules, note: str) -> str:
        """Say how this run's table agrees with the record; "" where there is none."""
        recorded = self.recorded(name)
        if recorded is None or self.folder == self.committed:
            return ""
        run = "this quick run" if self.shows_record else "this run"
        if name not in self.written:
            return f"{name}: {run} does not compute it"
        fresh = Tables(self.folder).get(name)
        if set(fresh) != set(recorded):
            self.outdated.add(name)
            return f"{name}: of {run}, as the record has other columns"
        found = agreement(fresh, recorded, keys, rules)
        why = f" ({note})" if note else ""
        return f"{name}, {run}: {found}{why}"

    def agreement(self, *names: str) -> None:
        """Display a line on how this run's tables agree with the record."""
        lines = [self.agreements[name] for name in names if self.agreements.get(name)]
        if lines:
            paragraph(f"*{'; '.join(lines)}.*")

    def say(self, *sentences: Sentence) -> None:
        """Display a paragraph of sentences: texts, or functions of `tables` that return
        one. A sentence that asks for a table or set that this page does not show is
        left out.
        """
        paragraph(" ".join(said(self.tables, *sentences)))

    def figure(self, name: str, fig, alt: str = "") -> None:
        """Write `fig` to <name>.svg and <name>.png and display it; `alt` says in words
        what it shows. A full run's PNG is finer than what is displayed.
        """
        from matplotlib import rc_context

        # no date, and ids from a fixed salt: the same figure has the same bytes
        box = laid_out(fig)
        look = {"bbox_inches": box, "metadata": {"Date": None}}
        svg = self.folder / f"{name}.svg"
        with rc_context({"svg.hashsalt": self.key}):
            write_atomically(svg, lambda part: fig.savefig(part, **look))
        shown = png(fig, 100, box)
        kept = png(fig, 150, box) if self.full else shown
        write_bytes(self.folder / f"{name}.png", kept)
        display_picture(shown, alt or name)
        close(fig)

    def data(self, name: str, content: object) -> None:
        """Write `content` to <name>.json, for the pages of the reader's edition."""
        write_json(self.folder / f"{name}.json", content, indent=None)

    def progress(
        self, items: Iterable, what: str = "", total: int | None = None
    ) -> Iterable:
        """Go through `items` with a line that says how far, cleared at the end; silent
        in batches and tests.

        run.json keeps the seconds under `what`, for `expected`.
        """
        start = time.perf_counter()
        yield from tqdm(
            items,
            desc=what,
            total=total,
            leave=False,
            file=sys.stdout,
            disable=QUIET in os.environ,
        )
        seconds = round(time.perf_counter() - start, 1)
        self.loops[what] = self.loops.get(what, 0) + seconds

    def map(self, function: Callable, cases: Iterable[tuple], what: str) -> list:
        """Compute `function(*case)` for all cases on n_jobs processes, as the notebook
        says, with `progress`.
        """
        cases = list(cases)
        n_jobs = self.parameters.get("n_jobs", 1)
        parallel = Parallel(n_jobs, batch_size=1, return_as="generator")
        found = parallel(delayed(function)(*case) for case in cases)
        return list(self.progress(found, what, len(cases)))

    def expected(self, *loops: str):
        """Markdown that says how long these loops took in the recorded run and when
        last run here, if over a second.
        """
        from IPython.display import Markdown

        folders = {"the recorded run": self.committed, "the last run here": self.folder}
        told = [loop_times(folder, run, loops) for run, folder in folders.items()]
        told = "; ".join(times for times in told if times)
        return Markdown(f"*The next cell took: {told}.*" if told else "")

    def claims(self, *ids: str) -> None:
        """Show these claims of the paper: its words, the number, and the verdict in
        either reading; in a reader's run beside the recorded ones."""
        claims = [self.paper.claims[id] for id in ids]
        show_claims(claims, self.tables, self._beside)

    def cells(self, id: str, layout: str = "long", reading: str | None = None) -> None:
        """Show a published table beside the measured one.

        "long" has a row a cell, "matrix" a row a first key, "rows" a row a key. In a
        reader's run, cells that it does not have are left out, and the recorded numbers
        stand beside the others ("long").
        """
        specs = [c for c in self.paper.tables if c.id == id]
        specs = [c for c in specs if reading in (None, c.reading)]
        if not specs:
            raise KeyError(f"{self.key} has no table of cells {id!r}")
        for spec in specs:
            show_cells(spec, layout, self.tables, self._beside, self.shows_record)

    def summary(self) -> None:
        """Show what came of the paper: this notebook's rows of the scorecard, counted
        and drawn. A reader's run has none before its first table."""
        from .scorecard import draw, judged, tally

        if not self.shows_record and not self.written:
            paragraph("*The verdicts of this run are counted at its end.*")
            return
        counts = tally(judged(self.paper, self.tables))
        whose = "recorded run" if self.shows_record else "this run"
        show(counts.drop(columns="paper"), caption=f"verdicts, {whose}")
        fig = draw(counts)
        alt = "Verdicts on the paper's statements and table cells, as counted above"
        display_figure(fig, alt)

    def close(self, datasets: Iterable = ()) -> None:
        """Write run.json: date, parameters, versions, seconds, and a digest of code and
        data; and verdicts.csv, of the paper by this run's own tables. A reader's run
        shows its verdicts, counted."""
        self.datasets = data_digests(datasets)
        self.seconds = round(time.perf_counter() - self._start, 1)
        about = {
            "key": self.key,
            "date": datetime.now(UTC).date().isoformat(),
            "parameters": self.parameters,
            "seconds": self.seconds,
            "loops": self.loops,
            "versions": versions(),
            "code": code_digest(),
            "data": self.datasets,
        }
        write_json(self.folder / RUN, about)
        if self.paper is None or self.folder == self.committed:
            return
        from .scorecard import judged

        own = judged(self.paper, Tables(self.folder, only=self.written))
        write_csv(self.folder / "verdicts.csv", own)
        if not self.shows_record:
            self.summary()

    def provenance(self) -> pd.DataFrame:
        """Return what produced the tables that this page shows, for its last cell."""
        if self.shows_record:
            return provenance_table(read_run(self.committed), "recorded run")
        about = {
            "parameters": self.parameters,
            "seconds": self.seconds,
            "versions": versions(),
            "data": self.datasets,
        }
        return provenance_table(about, "this run")
