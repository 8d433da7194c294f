"""Notebooks as chapters: what the build adds to the copies that it renders.

The notebooks themselves stay as they are. Each copy gets links under its title, an
anchor where a claim is decided and a link from each claim's words to the list of
claims, numbered figures with their words, references for the works it names, links to
the chapters it names, folded code, and the interactive figures themselves where
JupyterLab would show them.
"""

import base64
import html
import re
import struct
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path

import nbformat
from pybtex.database import parse_file

from dagsvm_lab.papers import papers

HERE = Path(__file__).resolve().parent
NOTEBOOKS = sorted(HERE.parent.glob("*.ipynb"))
# what stays as it is: headings, fenced code, formulas, code, links, tags
KEPT = r"^#.*?$|^```.*?^```|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\[[^]]*\]\([^)]*\)|<[^>]*>"
IDENTIFIER = re.compile(r'"([a-z0-9]+(?:-[a-z0-9.]+)+)"')
EXPLORER = re.compile(r'interactive\(\s*"(\w+)"')
# a cell of a table that is a sentence or a list: its words wrap
LONG_CELL = re.compile(r"(<td[^>]*)>(?=[^<]*[A-Za-z]{3})([^<]{26,})")
Links = list[tuple[re.Pattern, str]]  # what a sentence may name, and how it is linked


@dataclass
class Chapters:
    """What the chapters say: the page that decides each claim, the figures of each
    page.
    """

    decided: dict[str, str] = field(default_factory=dict)
    figures: dict[str, list[str]] = field(default_factory=dict)


def write_chapters(source: Path) -> Chapters:
    """Write every notebook as a chapter into `source`."""
    (source / "_static" / "pictures").mkdir(parents=True, exist_ok=True)
    found = Chapters()
    known = known_claims()
    for path in NOTEBOOKS:
        nb = nbformat.read(path, 4)
        found.figures[path.stem] = []
        missing = [*citations(), *words()]
        text = "".join(cell.source for cell in nb.cells)
        tags = set(re.findall(r"\\tag\{(\w+)\}", text))
        cells = []
        for cell in nb.cells:
            cell.source = cell.source.replace("../figures/scorecard.md", "claims.md")
            if cell.cell_type == "markdown":
                cell.source = with_equations(linked(cell.source, missing), tags)
            else:
                decides = set(IDENTIFIER.findall(cell.source)) & known
                cells += anchors(sorted(decides - set(found.decided)))
                found.decided |= dict.fromkeys(decides - set(found.decided), path.stem)
                cell.metadata.setdefault("tags", []).append("hide-input")
                show_outputs(cell, path.stem, found.figures[path.stem], source, missing)
            cells.append(cell)
        heading, _, rest = cells[0].source.partition("\n")
        cells[0].source = f"{heading}\n\n{under_title(path)}\n{rest}"
        nb.cells = cells
        nbformat.write(nb, source / path.name)
    return found


def known_claims() -> set[str]:
    """The identifiers of all claims and tables of cells."""
    known = set()
    for paper in papers().values():
        known.update(paper.claims)
        known.update(cells.id for cells in paper.tables)
    return known


def anchors(claims: list[str]) -> list:
    """A cell that a link to these claims leads to, or none."""
    if not claims:
        return []
    marks = "".join(f'<a class="claim" id="claim-{claim}"></a>' for claim in claims)
    return [nbformat.v4.new_markdown_cell(marks)]


@cache
def title(path: Path) -> str:
    """What a notebook's first heading says."""
    return nbformat.read(path, 4).cells[0].source.partition("\n")[0].lstrip("# ")


def under_title(path: Path) -> str:
    """The line under a chapter's title: the paper, its claims, what explains the
    letters.
    """
    links = [
        "[symbols and words](glossary.md)",
        "[tables and figures](tables.md)",
        "[open questions](open.md)",
    ]
    for key, paper in papers().items():
        if path.stem.startswith(key):
            cited = f"{paper.title} {{cite}}`{key.partition('_')[2]}`"
            links = [cited, f'<a href="claims.html?paper={key}">its claims</a>', *links]
    return f'<div class="under-title">\n\n{" · ".join(links)}\n\n</div>\n'


def citations() -> Iterator[tuple[re.Pattern, str]]:
    """How each work of the bibliography is named in a sentence, and the same with its
    reference.
    """
    for key, entry in parse_file(HERE / "references.bib").entries.items():
        name = " ".join(entry.persons["author"][0].last_names).split()[-1]
        ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore")
        names = rf"\b(?:{name}|{ascii_name.decode()})\b"
        year = entry.fields["year"]
        named = rf"{names}(?: et al\.|[^.;:()]{{0,50}}?)\s(?:\({year}\)|{year}\b)"
        yield re.compile(named), rf"\g<0> {{cite}}`{key}`"


def words() -> Iterator[tuple[re.Pattern, str]]:
    """Each word of the glossary, and what links it there."""
    glossary = (HERE / "glossary.md").read_text(encoding="utf-8")
    for term in re.findall(r"^(\w[\w ]+)\n  ", glossary, re.M):
        named = re.compile(rf"(?<![\w`]){term}s?(?![\w`])", re.I)
        yield named, rf"{{term}}`\g<0> <{term}>`"


def linked(text: str, missing: Links) -> str:
    """Link the chapters that `text` names, and what it is the first to name of
    `missing`.

    What was linked is taken from `missing`.
    """
    parts = re.split(f"({KEPT})", text, flags=re.M | re.S)
    for place in range(0, len(parts), 2):
        for named in list(missing):
            parts[place], count = named[0].subn(named[1], parts[place], count=1)
            if count:
                missing.remove(named)
        for path in NOTEBOOKS:
            number = path.stem[:2]
            names = (
                rf"\b[Nn]otebook {number}\b|(?<=\*\*){number}(?=\*\*)"
                rf"|(?<=^\| ){number}(?= \|)"
            )
            link = rf"[\g<0>]({path.name})"
            parts[place] = re.sub(names, link, parts[place], flags=re.M)
    return "".join(parts)


def with_equations(text: str, tags: set[str]) -> str:
    """Give each numbered equation an anchor; link what names one of the chapter's
    `tags` to it.
    """
    equation = r"^(?=\$\$(?:(?!\$\$).)*\\tag\{(\w+)\})"
    text = re.sub(equation, r'<a id="eq-\1"></a>\n\n', text, flags=re.M | re.S)
    named = re.compile(rf"\bEq\. ({'|'.join(tags) or '(?!)'})\b")
    parts = re.split(f"({KEPT})", text, flags=re.M | re.S)
    for place in range(0, len(parts), 2):
        parts[place] = named.sub(r'<a href="#eq-\1">\g<0></a>', parts[place])
    return "".join(parts)


def show_outputs(
    cell, page: str, figures: list[str], source: Path, missing: Links
) -> None:
    """Prepare a cell's outputs, in place: pictures, tables of claims, prose, explorers.

    `figures` gets the words of each picture, `source` its file.
    """
    if explorer := EXPLORER.search(cell.source):
        data = {"text/html": explorer_html(explorer[1])}
        cell.outputs = [nbformat.v4.new_output("display_data", data=data)]
        return
    cell.outputs = [output for output in cell.outputs if not says_nothing(output)]
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt") or "figure"
            figures.append(alt)
            png = base64.b64decode(data["image/png"])
            data.clear()
            data["text/html"] = numbered(png, page, figures, source)
        elif "text/html" in data:
            linked_claims = with_claims(data["text/html"], cell.source)
            data["text/html"] = fitted(linked_claims)
        if "text/markdown" in data:
            data["text/markdown"] = linked(data["text/markdown"], missing)


def says_nothing(output) -> bool:
    """Whether an output is a paragraph without a word, which has only its type's name
    beside it.
    """
    return output.get("data", {}).get("text/markdown", "some").strip() == ""


def explorer_html(kind: str) -> str:
    """An interactive figure: its box, and scripts that work from disk as well."""
    files = ["parts", kind]
    argument = "null"
    if kind != "bound":
        files.append(f"touch/touch_{kind}")
        argument = f"dagsvm.data.touch_{kind}"
    scripts = "".join(f'<script src="_static/{file}.js"></script>' for file in files)
    call = f'dagsvm.{kind}(document.getElementById("{kind}"), {argument});'
    hint = "<noscript>This needs JavaScript.</noscript>"
    box = f'<div class="touch" id="{kind}">{hint}</div>'
    return f"{box}{scripts}<script>{call}</script>"


def numbered(png: bytes, page: str, figures: list[str], source: Path) -> str:
    """The last of `figures` with its number and words, the picture in a file of its
    own.
    """
    width, height = struct.unpack(">II", png[16:24])
    number = f"{int(page[:2])}.{len(figures)}"
    alt = html.escape(figures[-1], quote=True)
    file = f"_static/pictures/{page}-{len(figures)}.png"
    (source / file).write_bytes(png)
    return (
        f'<figure class="numbered" id="figure-{number}" style="--wide: {width}px">'
        f'<div class="scroll" tabindex="0" role="region" aria-label="figure {number}">'
        f'<img src="{file}" alt="{alt}" width="{width}" height="{height}" '
        'loading="lazy"></div>'
        f"<figcaption><b>Figure {number}.</b> {alt}.</figcaption></figure>"
    )


def with_claims(table: str, code: str) -> str:
    """Link the words of claims in a cell's table to the list of all claims."""
    for paper in papers().values():
        for claim in paper.claims.values():
            if f'"{claim.id}"' in code:
                text = html.escape(claim.text)
                link = f'<a href="claims.html#{claim.id}">{text}</a>'
                table = table.replace(f">{text}</td>", f">{link}</td>")
    return table


def fitted(tables: str) -> str:
    """Prepare tables for narrow screens: claims become cards, long cells wrap."""
    tables = re.sub(r"<table.*?</table>", with_labels, tables, flags=re.S)
    return LONG_CELL.sub(r'\1 class="words">\2', tables)


def with_labels(found: re.Match) -> str:
    """Give each cell of a table of claims its column's name, for the cards into which a
    narrow screen turns the rows; leave another table as it is.
    """
    table = found[0]
    heads = re.findall(r"<th\b[^>]*>(.*?)</th>", table)
    if not heads or heads[0] not in ("claim", "statement"):
        return table
    names = cycle(heads)
    table = re.sub("<td", lambda cell: f'{cell[0]} data-label="{next(names)}"', table)
    table = re.sub(r"(<td[^>]*)>-</td>", r'\1 class="none">-</td>', table)
    return table.replace('class="dagsvm"', 'class="dagsvm claims"')
