"""Where a notebook's tables, figures and provenance go, and how they get there whole.

    run = Record("01_platt2000", out_dir=out_dir, profile=profile, seed=seed)
    run.table("table1", df)        # <out_dir>/01_platt2000/table1.csv
    run.figure("pareto", fig)      # .svg and .png beside it
    run.close(["letter"])          # run.json: what produced them
    run.provenance()               # the same, as the notebook's last table

Every file is written under a temporary name and renamed: a run that is killed leaves the old file or the new one.
"""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from ..datasets.cards import card_of
from ..files import checkout, code_digest, write_atomically, write_json
from .claims import Tables, papers
from .tables import matrix, show

QUIET = "DAGSVM_LAB_QUIET"  # the variable that a batch sets: no progress lines
PROFILES = ("quick", "full")
SHOWN = ("numpy", "scipy", "scikit-learn", "cvxopt", "matplotlib")
HEADS = {"statement": "claim", "place": "place", "published": "published", "measured": "measured",
         "verdict": "as written", "inferred": "measured, inferred", "inferred_verdict": "as inferred"}  # fmt: skip


class Record:
    """The folder one notebook run writes to, with the record of what produced it."""

    def __init__(self, key: str, *, out_dir: str | Path = "runs", profile: str = "quick", seed: int = 0, **parameters):
        if profile not in PROFILES:
            raise ValueError(f"profile must be one of {', '.join(PROFILES)}, not {profile!r}")
        _refuse_unknown_parameters()
        root = checkout() or Path.cwd()
        self.key = key
        self.folder = root / out_dir / key
        self.committed = root / "figures" / key
        self.parameters = {"profile": profile, "seed": seed, **parameters}
        self.datasets: dict[str, str] = {}
        self.seconds = 0.0
        self.loops: dict[str, float] = {}
        self._start = time.perf_counter()

    def table(self, name: str, df):
        """`df` itself, written to <name>.csv (its index too, where the index has a name)."""
        index = any(level is not None for level in df.index.names)
        write_atomically(self.folder / f"{name}.csv", lambda part: df.to_csv(part, index=index))
        return df

    def figure(self, name: str, fig, alt: str = "") -> None:
        """Write `fig` to <name>.svg and <name>.png and display it; `alt` says in words what it shows."""
        from matplotlib import rc_context

        look = {"dpi": 150, "bbox_inches": "tight", "metadata": {"Date": None}}
        with rc_context({"svg.hashsalt": self.key}):
            write_atomically(self.folder / f"{name}.svg", lambda part: fig.savefig(part, **look))
        write_atomically(self.folder / f"{name}.png", lambda part: part.write_bytes(_png(fig, 150)))
        _display(fig, alt or name)

    def data(self, name: str, content: object) -> None:
        """Write `content` to <name>.json, for the pages of the reader's edition."""
        write_json(self.folder / f"{name}.json", content, indent=None)

    def progress(self, items: Iterable, what: str = "", total: int | None = None) -> Iterable:
        """Go through `items` with a line that says how far, cleared at the end; silent in batches and tests.

        run.json keeps the seconds under `what`, for `expected`.
        """
        start = time.perf_counter()
        yield from tqdm(items, desc=what, total=total, leave=False, file=sys.stdout, disable=QUIET in os.environ)
        self.loops[what] = self.loops.get(what, 0) + round(time.perf_counter() - start, 1)

    def map(self, function: Callable, cases: Iterable[tuple], what: str) -> list:
        """Compute `function(*case)` for all cases on n_jobs processes, as the notebook says, with `progress`."""
        cases = list(cases)
        parallel = Parallel(self.parameters.get("n_jobs", 1), batch_size=1, return_as="generator")
        return list(self.progress(parallel(delayed(function)(*case) for case in cases), what, len(cases)))

    def expected(self, *loops: str):
        """Markdown that says how long these loops took in the recorded run and when last run here, if over a second."""
        from IPython.display import Markdown

        said = []
        for folder, run in {self.committed: "the recorded run", self.folder: "the last run here"}.items():
            with suppress(OSError, KeyError):
                about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
                times = [f"{what} {s:.0f} s" for what, s in about["loops"].items() if what in loops and s >= 1]
                said += [f"{', '.join(times)} in {run} ({about['parameters']['profile']} profile)"] if times else []
        return Markdown(f"*The next cell took: {'; '.join(said)}.*" if said else "")

    def recorded(self, name: str):
        """The committed table figures/<key>/<name>.csv as a DataFrame, or None where there is none."""
        return Tables(self.committed).get(name)

    tables = property(lambda self: Tables(self.committed, self.folder), doc="Tables recorded; else this run's.")
    paper = property(lambda self: papers()[self.key], doc="The paper whose claims this notebook decides.")

    def claims(self, *ids: str) -> None:
        """Show these claims of the paper: its words, the number, and the verdict in either reading."""
        rows = pd.DataFrame([self.paper.claims[id].row(self.tables) for id in ids])
        table = rows.rename(columns=HEADS)[list(HEADS.values())]
        show(table.loc[:, (table != "").any() | table.columns.isin(["claim", "as written"])])

    def cells(self, id: str, layout: str = "long", reading: str | None = None) -> None:
        """Show a published table beside recorded and fresh; "matrix" has a row a first key, "rows" a row a key."""
        specs = [c for c in self.paper.tables if c.id == id and reading in (None, c.reading)]
        if not specs:
            raise KeyError(f"{self.key} has no table of cells {id!r}")
        for spec in specs:
            caption, recorded = f"{spec.place}, {spec.reading}", self.tables.get(spec.table)
            if layout == "long":
                judged = spec.texts(recorded).rename(columns={"measured": "recorded"})
                fresh = spec.texts(Tables(self.folder).get(spec.table))
                judged.insert(len(judged.columns) - 1, "fresh", fresh["measured"])
                show(judged, caption=caption)
            else:
                index = spec.keys[:1] if layout == "matrix" else spec.keys
                show(matrix(spec.against(recorded), index, spec.digits), caption=f"{caption}: measured (published)")

    def summary(self) -> None:
        """Show what came of the paper: this notebook's rows of the scorecard, counted and drawn."""
        from .scorecard import draw, judged, tally

        counts = tally(judged(self.paper, self.tables))
        show(counts.drop(columns="paper"))
        _display(draw(counts), "Verdicts on the paper's statements and table cells, as counted in the table above")

    def close(self, datasets: Iterable = ()) -> None:
        """Write run.json: parameters, versions, seconds, and a digest of code and data."""
        cards = [card_of(data) if isinstance(data, str) else data.card for data in datasets]
        self.datasets = {card.name: card.sha256 or " ".join(card.originals.values()) for card in cards}
        self.seconds = round(time.perf_counter() - self._start, 1)
        about = {"key": self.key, "parameters": self.parameters, "seconds": self.seconds, "loops": self.loops}
        about |= {"versions": versions(), "code": code_digest(), "data": self.datasets}
        write_json(self.folder / "run.json", about)

    def provenance(self):
        """A two-column DataFrame for a notebook's last cell: versions, seconds, data digests."""
        rows = {**self.parameters, "seconds": self.seconds, **versions()}
        rows |= {f"data: {name}": digest[:12] for name, digest in self.datasets.items()}
        return pd.DataFrame({"what": list(rows), "value": [str(v) for v in rows.values()]})


def _refuse_unknown_parameters() -> None:
    """Raise for a name that papermill gave this notebook and its parameters cell does not have."""
    from IPython import get_ipython

    for parameters, cell in pairwise(getattr(get_ipython(), "user_ns", {}).get("In", ())):
        if cell.startswith("# Parameters\n"):  # what papermill writes over the cell that it puts in
            known, given = (re.findall(r"^(\w+) *[:=]", code, re.M) for code in (parameters, cell))
            if unknown := [name for name in given if name not in known]:
                raise ValueError(f"no parameter {', '.join(unknown)}; there are {', '.join(known)}")


def _png(fig, dpi: int) -> bytes:
    """Draw a figure with 128 colours: enough for lines and letters, in a third of the room."""
    from PIL import Image

    out, small = BytesIO(), BytesIO()
    fig.savefig(out, format="png", dpi=dpi, bbox_inches="tight", pil_kwargs={"compress_level": 0})
    picture = Image.open(out).convert("RGB")  # MAXCOVERAGE keeps the colour of a few marks apart from another's
    picture.quantize(128, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def _display(fig, alt: str) -> None:
    """Display a figure as a PNG with a text for those who cannot see it, and close it."""
    from IPython.display import Image, display

    display(Image(_png(fig, 100), alt=alt))
    if hasattr(fig, "number"):  # made by pyplot
        import matplotlib.pyplot as plt

        plt.close(fig)


def versions() -> dict[str, str]:
    """Return the version of Python, of this package and of the libraries that decide its numbers."""
    found = {"python": platform.python_version()}
    for name in ("dagsvm-lab", *SHOWN):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
