"""Build the reader's edition: a static site from the committed notebooks and the record. Nothing is executed.

    python notebooks/site/build.py OUT

puts the sources together in OUT/source and calls Sphinx, which writes OUT/html. Every step is a small function:
chapters (see chapters.py), the claims page, tables to download and figures to find, open questions, the reference,
the front page, and the data of the things to touch.
"""

import html
import json
import re
import shutil
import sys
from pathlib import Path

import nbformat
from chapters import HERE, NOTEBOOKS, chapters, title

from dagsvm_lab.report.claims import papers
from dagsvm_lab.report.scorecard import scorecard, tally
from dagsvm_lab.report.tables import SIGNS, Table

ROOT = HERE.parents[1]
FIGURES = ROOT / "figures"
PAGES = ("index.md", "glossary.md", "recipes.md", "references.md", "touch.md", "references.bib", "conf.py")


def claims_page(source: Path, decided: dict[str, str]) -> None:
    """Write the page of all claims and cells: words, place, numbers, verdicts, a link to the cell that decides."""
    card = scorecard(FIGURES)
    rows = []
    for row in card.to_dict("records"):
        claim = row["id"].partition("/")[0]
        page = decided.get(claim)
        place = html.escape(row["place"])
        link = f'<a href="{page}.html#claim-{claim}">{place or claim}</a>' if page else place
        said = html.escape(row["statement"] or row["id"].partition("/")[2].replace("/", ", ").replace("_", " "))
        cells = [said, link, row["published"], html.escape(row["measured"]), _chip(row["verdict"]),
                 html.escape(row["inferred"]), _chip(row["inferred_verdict"])]  # fmt: skip
        data = f'data-paper="{row["paper"]}" data-kind="{"cell" if row["kind"] == "cell" else "statement"}"'
        data += f' data-verdict="{row["verdict"]}" data-inferred="{row["inferred_verdict"]}"'
        anchor = f' id="{claim}"' if row["kind"] != "cell" else ""
        rows.append(f"<tr{anchor} {data}>" + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
    heads = ("claim or cell", "place", "published", "measured", "as written", "measured", "as inferred")
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="claims"><table id="claims"><thead><tr>'
        + "".join(f'<th scope="col">{h}</th>' for h in heads)
        + "</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )  # fmt: skip
    titles = {key: p.title for key, p in papers().items()}
    words = {*card["verdict"], *card["inferred_verdict"]}
    choices = {
        "paper": titles,
        "kind": {"statement": "statements", "cell": "table cells"},
        "verdict": {word: f"{sign} {word}" for word, sign in SIGNS.items() if word in words},
    }
    menus = "".join(
        f'<label>{name} <select data-filter="{name}"><option value="">all</option>'
        + "".join(f'<option value="{value}">{html.escape(text)}</option>' for value, text in options.items())
        + "</select></label> "
        for name, options in choices.items()
    )
    text = [
        "# Claims",
        "Every statement and table cell of the papers, what was measured in this project's recorded run, and a verdict "
        "in two readings. *As written*: nothing chosen by looking at the printed numbers. *As inferred*: what the "
        "paper leaves open was filled in so that its numbers fit. Each place links to the cell that decides.",
        Table(tally(card))._repr_html_(),
        f'<form id="filters" onsubmit="return false">{menus}<output></output></form>',
        table,
        '<script src="_static/claims.js"></script>',
        "[The whole list as CSV](_static/tables/scorecard.csv)",
    ]
    (source / "claims.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _chip(word: str) -> str:
    return f'<span class="v v-{word.replace(" ", "-")}">{SIGNS[word]} {word}</span>' if word else ""


def tables_page(source: Path, figures: dict[str, list[str]]) -> None:
    """Copy every recorded table; write the page that lists them, and the figures of every chapter."""
    text = ["# Tables and figures", "The record: every table that the full run of a notebook wrote, as CSV. Below them "
            "the figures of the chapter, by number."]  # fmt: skip
    (source / "_static" / "tables").mkdir(parents=True, exist_ok=True)
    shutil.copy(FIGURES / "scorecard.csv", source / "_static" / "tables")
    for path in NOTEBOOKS:
        folder = next(p for p in FIGURES.iterdir() if p.is_dir() and path.stem.startswith(p.name))
        files = sorted(folder.glob("*.csv"))
        (source / "_static" / "tables" / folder.name).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, source / "_static" / "tables" / folder.name)
        links = " · ".join(f'<a href="_static/tables/{folder.name}/{f.name}">{f.stem}</a>' for f in files)
        numbers = [f"{int(path.stem[:2])}.{k}" for k in range(1, len(figures[path.stem]) + 1)]
        shown = "\n".join(
            f'* <a href="{path.stem}.html#figure-{number}">Figure {number}</a>: {html.escape(words)}'
            for number, words in zip(numbers, figures[path.stem], strict=True)
        )
        text += [f"## [{title(path)}]({path.name})", links, shown]
    (source / "tables.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def open_questions(source: Path) -> None:
    """Write the page of what is unexplained: the notebooks' own sections on it, computed prose included."""
    text = ["# Open questions", "What no experiment here explains, with what was tried; each from its notebook."]
    for path in NOTEBOOKS:
        inside, found = False, []
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                for part in re.split(r"^(?=#)", cell.source, flags=re.M):
                    heading = re.match(r"#+\s+(.*)\n?", part)
                    if heading:
                        inside = re.search("open question|unexplained", heading[1].lower()) is not None
                    if inside:
                        found.append(part[heading.end() :] if heading else part)
            elif inside and "provenance" not in cell.source:
                datas = [o.get("data", {}) for o in cell.outputs]
                found += ["".join(d.get("text/markdown", "")) or "".join(d.get("text/html", "")) for d in datas]
        if any(found):
            text += [f"## [{title(path)}]({path.name})", *found]
    (source / "open.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def api_page(source: Path) -> None:
    """Write the reference of the public names, by room."""
    import dagsvm_lab

    rooms: dict[str, list[str]] = {}
    for name in dagsvm_lab.__all__:
        value = getattr(dagsvm_lab, name)
        if callable(value):
            rooms.setdefault(value.__module__.removeprefix("dagsvm_lab.").split(".")[0], []).append(name)
    text = ["# Reference", "Everything that `from dagsvm_lab import ...` gives."]
    for room, names in rooms.items():
        text.append(f"## {room}")
        for name in names:
            value = getattr(dagsvm_lab, name)
            kind, members = "autofunction", ""
            if isinstance(value, type):
                own = [m for m in dir(value) if not m.startswith("_") and _ours(getattr(value, m, None))]
                kind, members = "autoclass", "\n   :members: " + ", ".join(own) if own else ""
            text.append(f"```{{eval-rst}}\n.. {kind}:: dagsvm_lab.{name}{members}\n```")
    (source / "reference.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _ours(member) -> bool:
    return callable(member) and (getattr(member, "__module__", None) or "").startswith("dagsvm_lab")


def front_page(source: Path) -> None:
    """Fill in the front page: the scorecard as a picture whose parts link to claims, and the README's findings."""
    page = (source / "index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- findings -->\n(.*?)\n<!-- /findings -->", readme, re.S)
    page = page.replace("<!-- findings -->", found[1] if found else "")
    page = page.replace("<!-- scorecard -->", _bars(scorecard(FIGURES)))
    (source / "index.md").write_text(page, encoding="utf-8")
    shutil.copy(FIGURES / "00_tour" / "idea.svg", source / "_static" / "idea.svg")


def recipes(source: Path) -> None:
    """Put what CONTRIBUTING says on adding a system, a paper, a data set under the recipes."""
    added = re.search(
        r"^## Add a system.*?(?=^## Versions)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.S | re.M
    )
    page = (source / "recipes.md").read_text(encoding="utf-8")
    (source / "recipes.md").write_text(page.replace("<!-- contributing -->", added[0]), encoding="utf-8")


def _bars(card) -> str:
    """Each paper's verdicts as a row of squares, a square a statement, each a link to its claim."""
    rows = []
    for key, paper in papers().items():
        mine = card[(card["paper"] == key) & (card["kind"] != "cell")]
        squares = "".join(
            f'<a class="v v-{row.verdict.replace(" ", "-")}" href="claims.html#{row.id}" '
            f'title="{html.escape(row.statement, quote=True)}: {row.verdict}">'
            f'<span aria-hidden="true">{SIGNS[row.verdict]}</span><span class="sr">{html.escape(row.statement)}: '
            f"{row.verdict}</span></a>"
            for row in mine.itertuples()
        )
        rows.append(
            f'<div class="bar"><span class="paper">{html.escape(paper.title)}</span><span>{squares}</span></div>'
        )
    legend = " ".join(_chip(word) for word in SIGNS if word in set(card["verdict"]))
    return f'<div class="bars">{"".join(rows)}<p>{legend}</p></div>'


def touch(source: Path) -> None:
    """Copy the data of the things to touch, which notebook 00 wrote with its record."""
    (source / "_static" / "touch").mkdir(parents=True, exist_ok=True)
    for file in FIGURES.glob("00_tour/touch_*.json"):
        text = json.dumps(json.loads(file.read_text(encoding="utf-8")), separators=(",", ":"))
        (source / "_static" / "touch" / file.name).write_text(text, encoding="utf-8")


def main(out: Path) -> int:
    """Put the sources together and build; 0 when Sphinx had nothing to complain of."""
    from sphinx.cmd.build import main as sphinx

    source = out / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in PAGES:
        shutil.copy(HERE / name, source)
    shutil.copytree(HERE / "_static", source / "_static")
    decided, figures = chapters(source)
    claims_page(source, decided)
    tables_page(source, figures)
    for write in (open_questions, api_page, front_page, recipes, touch):
        write(source)
    return sphinx(["-q", "-W", "--keep-going", "-d", str(out / "doctrees"), str(source), str(out / "html")])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs" / "site")))
