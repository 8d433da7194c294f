"""The pages of the record: claims, tables, figures, open questions, front page."""

import html
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
from chapters import HERE, NOTEBOOKS, Chapters, fitted, title

from dagsvm_lab.papers import papers
from dagsvm_lab.report.scorecard import tally, titles
from dagsvm_lab.report.tables import SIGNS, Table

ROOT = HERE.parents[1]
FIGURES = ROOT / "figures"
CLAIMS = """# Claims

Every statement and table cell of the papers, what was measured in this project's
recorded run, and a verdict in two readings. *As written*: nothing chosen by looking at
the printed numbers. *As inferred*: what the paper leaves open was filled in so that its
numbers fit. Each place links to the cell that decides."""
TABLES = """# Tables and figures

The record: every table that the full run of a notebook wrote, as CSV. Below them the
figures of the chapter, by number."""
OPEN = """# Open questions

What no experiment here explains, with what was tried; each from its notebook."""
COLUMNS = (
    "claim or cell",
    "place",
    "published",
    "measured",
    "as written",
    "measured, inferred",
    "as inferred",
)


def write_pages(source: Path, chapters: Chapters, card: pd.DataFrame) -> None:
    """Write all pages of the record to `source`; `chapters` says where claims are
    decided, `card` is the scorecard.
    """
    _write(source / "claims.md", *claims_page(card, chapters.decided))
    _write(source / "tables.md", *tables_page(source, chapters.figures))
    _write(source / "open.md", *open_questions())
    front_page(source, card)
    recipes(source)


def _write(path: Path, *parts: str) -> None:
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def claims_page(card: pd.DataFrame, decided: dict[str, str]) -> list[str]:
    """All claims and cells: words, place, numbers, verdicts, a link to the cell that
    decides.
    """
    rows = [_claim_row(row, decided) for row in card.to_dict("records")]
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="claims">'
        f'<table id="claim-list"><thead><tr>{heads}</tr></thead><tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>"
    )
    return [
        CLAIMS,
        "<details><summary>How many of each</summary>",
        Table(tally(card, titles(papers())))._repr_html_(),
        "</details>",
        _filters(card),
        table,
        '<script src="_static/claims.js"></script>',
        "[The whole list as CSV](_static/tables/scorecard.csv)",
    ]


def _claim_row(row: dict[str, str], decided: dict[str, str]) -> str:
    claim, _, cell = row["id"].partition("/")
    place = html.escape(row["place"])
    if page := decided.get(claim):
        place = f'<a href="{page}.html#claim-{claim}">{place or claim}</a>'
    is_cell = row["kind"] == "cell"
    words = row["statement"] or cell.replace("/", ", ").replace("_", " ")
    cells = [
        html.escape(words),
        place,
        row["published"],
        html.escape(row["measured"]),
        chip(row["verdict"]),
        html.escape(row["inferred"]),
        chip(row["inferred_verdict"]),
    ]
    about = {
        "paper": row["paper"],
        "kind": "cell" if is_cell else "statement",
        "verdict": row["verdict"],
        "inferred": row["inferred_verdict"],
    }
    data = " ".join(f'data-{name}="{value}"' for name, value in about.items())
    anchor = "" if is_cell else f' id="{claim}"'
    filled = "".join(
        f'<td data-label="{name}">{text}</td>'
        for name, text in zip(COLUMNS, cells, strict=True)
    )
    return f"<tr{anchor} {data}>{filled}</tr>"


def _filters(card: pd.DataFrame) -> str:
    """The menus above the list of claims, which claims.js heeds."""
    words = {*card["verdict"], *card["inferred_verdict"]}
    signs = {word: f"{sign} {word}" for word, sign in SIGNS.items() if word in words}
    choices = {
        "paper": {key: paper.title for key, paper in papers().items()},
        "kind": {"statement": "statements", "cell": "table cells"},
        "verdict": signs,
    }
    menus = []
    for name, options in choices.items():
        lines = [
            f'<option value="{v}">{html.escape(t)}</option>' for v, t in options.items()
        ]
        menus.append(
            f'<label>{name} <select data-filter="{name}"><option value="">all</option>'
            + "".join(lines)
            + "</select></label> "
        )
    inside = "".join(menus) + "<output></output>"
    return f'<form id="filters" onsubmit="return false">{inside}</form>'


def chip(word: str) -> str:
    """A verdict's word with its sign, in its colours; nothing for no word."""
    if not word:
        return ""
    return f'<span class="v v-{word.replace(" ", "-")}">{SIGNS[word]} {word}</span>'


def tables_page(source: Path, figures: dict[str, list[str]]) -> list[str]:
    """Copy every recorded table; list them, and the figures of every chapter."""
    copies = source / "_static" / "tables"
    copies.mkdir(parents=True)
    shutil.copy(FIGURES / "scorecard.csv", copies)
    parts = [TABLES]
    for path in NOTEBOOKS:
        recorded = (p for p in FIGURES.iterdir() if p.is_dir())
        folder = next(p for p in recorded if path.stem.startswith(p.name))
        (copies / folder.name).mkdir()
        links = []
        for file in sorted(folder.glob("*.csv")):
            shutil.copy(file, copies / folder.name)
            address = f"_static/tables/{folder.name}/{file.name}"
            links.append(f'<a href="{address}">{file.stem}</a>')
        shown = []
        for k, words in enumerate(figures[path.stem], start=1):
            number = f"{int(path.stem[:2])}.{k}"
            address = f"{path.stem}.html#figure-{number}"
            shown.append(
                f'* <a href="{address}">Figure {number}</a>: {html.escape(words)}'
            )
        heading = f"## [{title(path)}]({path.name})"
        parts += [heading, " · ".join(links), "\n".join(shown)]
    return parts


def open_questions() -> list[str]:
    """What is unexplained: the notebooks' own sections on it, with computed prose."""
    parts = [OPEN]
    for path in NOTEBOOKS:
        found = _unexplained(nbformat.read(path, 4).cells)
        if any(found):
            parts += [f"## [{title(path)}]({path.name})", *found]
    return parts


def _unexplained(cells: list) -> list[str]:
    """The texts of sections whose heading says "open question" or "unexplained"."""
    inside = False
    found = []
    for cell in cells:
        if cell.cell_type == "markdown":
            for part in re.split(r"^(?=#)", cell.source, flags=re.M):
                heading = re.match(r"#+\s+(.*)\n?", part)
                if heading:
                    words = heading[1].lower()
                    inside = re.search("open question|unexplained", words) is not None
                if inside:
                    found.append(part[heading.end() :] if heading else part)
        elif inside and "provenance" not in cell.source:
            for output in cell.outputs:
                data = output.get("data", {})
                text = data.get("text/markdown") or data.get("text/html") or ""
                found.append(fitted("".join(text)))
    return found


def front_page(source: Path, card: pd.DataFrame) -> None:
    """Fill in the front page: the scorecard as squares that link to claims, and
    findings.
    """
    page = (source / "index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- findings -->\n(.*?)\n<!-- /findings -->", readme, re.S)
    page = page.replace("<!-- findings -->", found[1] if found else "")
    page = page.replace("<!-- scorecard -->", _squares(card))
    (source / "index.md").write_text(page, encoding="utf-8")
    shutil.copy(FIGURES / "00_tour" / "idea.svg", source / "_static" / "idea.svg")


def _squares(card: pd.DataFrame) -> str:
    """Each paper's verdicts as a row of squares, a square a statement, each a link to
    its claim.
    """
    rows = []
    for key, paper in papers().items():
        mine = card[(card["paper"] == key) & (card["kind"] != "cell")]
        squares = "".join(_square(row) for row in mine.itertuples())
        name = f'<span class="paper">{html.escape(paper.title)}</span>'
        rows.append(f'<div class="bar">{name}<span>{squares}</span></div>')
    legend = " ".join(chip(word) for word in SIGNS if word in set(card["verdict"]))
    return f'<div class="bars">{"".join(rows)}<p>{legend}</p></div>'


def _square(row) -> str:
    words = html.escape(row.statement, quote=True)
    return (
        f'<a class="v v-{row.verdict.replace(" ", "-")}" href="claims.html#{row.id}" '
        f'title="{words}: {row.verdict}">'
        f'<span aria-hidden="true">{SIGNS[row.verdict]}</span>'
        f'<span class="sr">{html.escape(row.statement)}: {row.verdict}</span></a>'
    )


def recipes(source: Path) -> None:
    """Put what CONTRIBUTING says on adding a system, a paper, a data set under the
    recipes.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    added = re.search(r"^## Add a system.*?(?=^## Versions)", text, re.S | re.M)
    page = (source / "recipes.md").read_text(encoding="utf-8")
    page = page.replace("<!-- contributing -->", added[0])
    (source / "recipes.md").write_text(page, encoding="utf-8")
