"""The scorecard: every statement and table cell of the papers beside what was recorded,
and a word for each reading.

Claims that rest on one piece of evidence count once among the independent statements,
by the word that most of them have; where two words are as frequent, by the less
favourable one.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from ..files import write_atomically, write_text
from .claims import Paper
from .recorded import Tables
from .tables import SIGNS
from .verdicts import INFERRED, NOT_AVAILABLE, NOT_REPRODUCED, WORDS, WRITTEN

BAR_COLOURS = (
    *("#0072b2", "#56b4e9", "#f0e442", "#d55e00", "#b8a9c9", "#9c9c9c"),
    *("#d0d0d0", "#e2e2e2", "#c0c0c0", "#8c8c8c", "#f2f2f2", "#fafafa"),
)
BARS = dict(zip(WORDS, BAR_COLOURS, strict=True))
STATEMENTS = "statements"
INDEPENDENT = "independent statements"
TABLE_CELLS = "table cells"
VERDICTS = {WRITTEN: "verdict", INFERRED: "inferred_verdict"}


def judged(paper: Paper, tables: Tables) -> pd.DataFrame:
    """Judge a paper's claims and table cells: `Paper.rows` as words, after a column of
    the paper's key."""
    rows = pd.DataFrame(paper.rows(tables)).fillna("").astype(str)
    rows.insert(0, "paper", paper.key)
    return rows


def scorecard(papers: Mapping[str, Paper], figures: Path) -> pd.DataFrame:
    """Judge all papers by the tables recorded below `figures`."""
    parts = [judged(paper, Tables(figures / key)) for key, paper in papers.items()]
    return pd.concat(parts, ignore_index=True)


def tally(card: pd.DataFrame, titles: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Count the words: a row for each paper's statements, independent statements and
    cells, as written and, where there is one, as inferred.

    `titles` gives papers their names by key.
    """
    cells = card["kind"].eq("cell")
    parts = {
        STATEMENTS: card[~cells],
        INDEPENDENT: independent(card[~cells]),
        TABLE_CELLS: card[cells],
    }
    rows = []
    for key in dict.fromkeys(card["paper"]):
        for kind, part in parts.items():
            own = part[part["paper"] == key]
            for reading, column in VERDICTS.items():
                counts = own[column].value_counts()
                counts = {word: int(counts.get(word, 0)) for word in WORDS}
                if any(counts.values()):
                    name = (titles or {}).get(key, key)
                    about = {"paper": name, "of": kind, "reading": reading}
                    rows.append(about | counts)
    table = pd.DataFrame(rows, columns=["paper", "of", "reading", *WORDS])
    unused = [word for word in WORDS if not table[word].any()]
    return table.drop(columns=unused)


def independent(statements: pd.DataFrame) -> pd.DataFrame:
    """Return one row for all statements of a paper that share their evidence."""
    shares = statements["evidence"] != ""
    merged = []
    for (_, evidence), rows in statements[shares].groupby(["paper", "evidence"]):
        words = {column: _word(rows[column]) for column in VERDICTS.values()}
        merged.append(rows.iloc[:1].assign(id=evidence, **words))
    return pd.concat([statements[~shares], *merged], ignore_index=True)


def _word(words: pd.Series) -> str:
    """The most frequent word, of several the less favourable; "" without a word."""
    counts = words[words != ""].value_counts()
    tied = counts[counts == counts.max()].index
    return max(tied, key=WORDS.index) if len(tied) else ""


def texts(
    papers: Mapping[str, Paper], findings: Callable[[Path], list[str]], root: Path
) -> dict[Path, str]:
    """Return what scorecard.csv, scorecard.md and README.md, with its table and
    findings, should hold."""
    figures = root / "figures"
    readme = root / "README.md"
    card = scorecard(papers, figures)
    counts = tally(card, titles(papers))
    parts = {
        "scorecard": _markdown(counts),
        "findings": "\n".join(f"- {said}" for said in findings(figures)),
    }
    page = readme.read_text(encoding="utf-8")
    for name, part in parts.items():
        marked = f"(?<=<!-- {name} -->\n).*?(?=\n<!-- /{name} -->)"
        page = re.sub(marked, lambda _, part=part: part, page, flags=re.S)
    return {
        figures / "scorecard.csv": card.to_csv(index=False, lineterminator="\n"),
        figures / "scorecard.md": _page(papers, card, counts),
        readme: page,
    }


def titles(papers: Mapping[str, Paper]) -> dict[str, str]:
    """Papers' titles by key."""
    return {key: paper.title for key, paper in papers.items()}


def write(
    papers: Mapping[str, Paper], findings: Callable[[Path], list[str]], root: Path
) -> int:
    """Write figures/scorecard.* and README's table and findings; print the counts."""
    from matplotlib import rc_context

    for path, text in texts(papers, findings, root).items():
        write_text(path, text)
    figures = root / "figures"
    card = scorecard(papers, figures)
    counts = tally(card, titles(papers))
    with rc_context({"svg.hashsalt": "scorecard"}):
        write_atomically(
            figures / "scorecard.svg",
            lambda part: draw(counts).savefig(part, metadata={"Date": None}),
        )
    print(_markdown(counts))
    lost = card[(card["verdict"] == NOT_AVAILABLE) & (card["kind"] != "cell")]
    for (paper, why), rows in lost.groupby(["paper", "measured"]):
        print(f"{paper}, {why}: {', '.join(rows['id'])}")
    print(sentence(card))
    return 0


def sentence(card: pd.DataFrame) -> str:
    """Say in one line how many statements and cells there are, and what became of them
    in either reading."""
    said = []
    for reading, column in VERDICTS.items():
        counts = card[column].value_counts()
        words = [f"{counts[word]} {word}" for word in WORDS if word in counts]
        said.append(f"{reading}: {', '.join(words)}")
    cells = int((card["kind"] == "cell").sum())
    alone = len(independent(card[card["kind"] != "cell"]))
    return (
        f"{len(card) - cells} statements ({alone} independent) and {cells} table "
        f"cells; {'; '.join(said)}"
    )


def _markdown(table: pd.DataFrame) -> str:
    """Write a table in Markdown."""
    rows: list[Iterable] = [table.columns, ["---"] * table.shape[1]]
    rows += table.itertuples(index=False)
    lines = []
    for row in rows:
        cells = [str(cell).replace("|", "/") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _page(papers: Mapping[str, Paper], card: pd.DataFrame, counts: pd.DataFrame) -> str:
    """Write scorecard.md: the counts, every statement, and the cells that differ."""
    parts = [
        "# Scorecard",
        "Written by `dagsvm-lab scorecard` from the recorded tables. Statements that "
        "name the same evidence count once among the independent ones.",
        _markdown(counts),
    ]
    told = ["id", "place", "published", "measured", "verdict", "inferred"]
    for key, paper in papers.items():
        rows = card[card["paper"] == key]
        statements = rows[rows["kind"] != "cell"].drop(columns="paper")
        parts += [f"## {paper.title}", _markdown(statements)]
        far = (rows[["verdict", "inferred_verdict"]] == NOT_REPRODUCED).any(axis=1)
        cells = rows[(rows["kind"] == "cell") & far]
        if len(cells):
            parts += [
                "Table cells not reproduced in one reading or both:",
                _markdown(cells[[*told, "inferred_verdict"]]),
            ]
    return "\n\n".join(parts) + "\n"


def draw(counts: pd.DataFrame):
    """Draw a tally as stacked bars, a panel for statements, independent statements and
    table cells, a bar a paper and reading; return the figure."""
    from matplotlib.figure import Figure

    words = [word for word in WORDS if word in counts]
    there = set(counts["of"])
    kinds = [k for k in (STATEMENTS, INDEPENDENT, TABLE_CELLS) if k in there]
    most = counts.groupby("of").size().max()
    size = (3.4 * len(kinds), 1.5 + 0.3 * most)
    figure = Figure(figsize=size, layout="constrained")
    (panels,) = figure.subplots(1, len(kinds), squeeze=False)
    for k, (ax, kind) in enumerate(zip(panels, kinds, strict=True)):
        rows = counts[counts["of"] == kind]
        _bars(ax, rows, words)
        ax.set_title(kind, fontsize=10)
        if k and len(rows) == most:  # the first panel's names are the same
            ax.set_yticklabels([])
    figure.legend(
        *panels[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=5,
        frameon=False,
        fontsize=8,
    )
    return figure


def _bars(ax, rows: pd.DataFrame, words: list[str]) -> None:
    """Draw one panel: a bar a paper and reading, a colour a word."""
    short = rows["paper"].str.replace(r"^([\w ]+?),.* (\d{4})$", r"\1 \2", regex=True)
    names = (short + ", " + rows["reading"]).tolist()
    if rows["paper"].nunique() == 1:
        names = rows["reading"].tolist()
    most = rows[words].sum(axis=1).max()
    left = 0
    for word in words:
        name = f"{SIGNS[word]} {word}"
        bars = ax.barh(names, rows[word], left=left, color=BARS[word], label=name)
        texts = [str(n) if n > most / 20 else "" for n in rows[word]]
        dark = word in ("reproduced", "not reproduced")
        ink = "white" if dark else "black"
        ax.bar_label(bars, texts, label_type="center", fontsize=8, color=ink)
        left = left + rows[word]
    ax.tick_params(labelsize=8)
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
