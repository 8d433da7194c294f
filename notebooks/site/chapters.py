"""Notebooks as chapters: what the build adds to the copies that it renders. The notebooks themselves stay as they are.

Each copy gets links under its title, an anchor where a claim is decided and a link from each claim's words to the list
of claims, numbered figures with their words, references for the works it names, and links to the chapters it names.
"""

import base64
import html
import re
import struct
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
from pybtex.database import parse_file

from dagsvm_lab.report.claims import papers

HERE = Path(__file__).resolve().parent
# what stays as it is: headings, fenced code, formulas, code, links, tags
KEPT = r"^#.*?$|^```.*?^```|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\[[^]]*\]\([^)]*\)|<[^>]*>"
NOTEBOOKS = sorted(HERE.parent.glob("*.ipynb"))


def chapters(source: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Write every notebook as a chapter; return the page that decides each claim, and the figures of each page."""
    decided: dict[str, str] = {}
    figures: dict[str, list[str]] = {}
    known = {id for paper in papers().values() for id in [*paper.claims, *(c.id for c in paper.tables)]}
    (source / "_static" / "pictures").mkdir(parents=True, exist_ok=True)
    for path in NOTEBOOKS:
        nb = nbformat.read(path, 4)
        figures[path.stem], missing, cells = [], [*citations(), *words()], []
        tags, opened = set(re.findall(r"\\tag\{(\w+)\}", "".join(cell.source for cell in nb.cells))), False
        for cell in nb.cells:
            cell.source = cell.source.replace("../figures/scorecard.md", "claims.md")
            if cell.cell_type == "markdown":
                opened |= cell.source.startswith("## ")
                cell.source = with_equations(linked(cell.source, missing), tags)
            else:
                named = sorted(set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9.]+)+)"', cell.source)) & known - set(decided))
                decided |= {id: path.stem for id in named}
                if named:
                    anchors = "".join(f'<a class="claim" id="claim-{id}"></a>' for id in named)
                    cells.append(nbformat.v4.new_markdown_cell(anchors))
                if not opened or plumbing(cell.source):
                    cell.metadata.setdefault("tags", []).append("hide-input")
                for output in cell.outputs:
                    show(output, cell.source, path.stem, figures[path.stem], source)
                    plain = output.get("data", {}).get("text/markdown")
                    if plain:
                        output["data"]["text/markdown"] = linked(plain, missing)
            cells.append(cell)
        heading, _, rest = cells[0].source.partition("\n")
        cells[0].source = f"{heading}\n\n{under_title(path)}\n{rest}"
        nb.cells = cells
        nbformat.write(nb, source / path.name)
    return decided, figures


@cache
def title(path: Path) -> str:
    """What a notebook's first heading says."""
    return nbformat.read(path, 4).cells[0].source.partition("\n")[0].lstrip("# ")


def under_title(path: Path) -> str:
    """The line under a chapter's title: the paper, its claims, and what explains the letters."""
    links = ["[symbols and words](glossary.md)", "[tables and figures](tables.md)", "[open questions](open.md)"]
    for key, paper in papers().items():
        if path.stem.startswith(key):
            cited = f"{paper.title} {{cite}}`{key.partition('_')[2]}`"
            links = [cited, f'<a href="claims.html?paper={key}">its claims</a>', *links]
    return f'<div class="under-title">\n\n{" · ".join(links)}\n\n</div>\n'


def plumbing(code: str) -> bool:
    """Whether a cell only draws, or tells where the results came from: such cells are folded, ideas stay open."""
    return ("run.figure(" in code and "run.table(" not in code) or "run.provenance(" in code


def citations() -> Iterator[tuple[re.Pattern, str]]:
    """How each work of the bibliography is named in a sentence, and the sentence with its reference."""
    for key, entry in parse_file(HERE / "references.bib").entries.items():
        name = " ".join(entry.persons["author"][0].last_names).split()[-1]
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        by, year = rf"\b(?:{name}|{plain})\b(?: et al\.|[^.;:()]{{0,50}}?)\s", entry.fields["year"]
        yield re.compile(rf"{by}(?:\({year}\)|{year}\b)"), rf"\g<0> {{cite}}`{key}`"


def words() -> Iterator[tuple[re.Pattern, str]]:
    """Each word of the glossary, and what links it there."""
    terms = re.findall(r"^(\w[\w ]+)\n  ", (HERE / "glossary.md").read_text(encoding="utf-8"), re.M)
    for term in terms:
        yield re.compile(rf"(?<![\w`]){term}s?(?![\w`])", re.I), rf"{{term}}`\g<0> <{term}>`"


def linked(text: str, missing: list[tuple[re.Pattern, str]]) -> str:
    """Link the chapters that `text` names, and the works and words among `missing` where they first come."""
    parts = re.split(f"({KEPT})", text, flags=re.M | re.S)
    for place in range(0, len(parts), 2):
        for named in list(missing):
            parts[place], found = named[0].subn(named[1], parts[place], count=1)
            if found:
                missing.remove(named)
        for path in NOTEBOOKS:
            number = path.stem[:2]
            names = rf"\b[Nn]otebook {number}\b|(?<=\*\*){number}(?=\*\*)|(?<=^\| ){number}(?= \|)"
            parts[place] = re.sub(names, rf"[\g<0>]({path.name})", parts[place], flags=re.M)
    return "".join(parts)


def with_equations(text: str, tags: set[str]) -> str:
    """Give each numbered equation an anchor, and link what names one of the chapter's `tags` to it."""
    text = re.sub(r"^(?=\$\$(?:(?!\$\$).)*\\tag\{(\w+)\})", r'<a id="eq-\1"></a>\n\n', text, flags=re.M | re.S)
    parts = re.split(f"({KEPT})", text, flags=re.M | re.S)
    for place in range(0, len(parts), 2):
        named = re.compile(rf"\bEq\. ({'|'.join(tags) or '(?!)'})\b")
        parts[place] = named.sub(r'<a href="#eq-\1">\g<0></a>', parts[place])
    return "".join(parts)


def show(output, code: str, page: str, figures: list[str], source: Path) -> None:
    """Give a picture its number, words and a file of its own; link the words of claims in a table to their list."""
    data = output.get("data", {})
    if "image/png" in data:
        alt = output.get("metadata", {}).get("image/png", {}).get("alt") or "figure"
        png = base64.b64decode(data["image/png"])
        width, height = struct.unpack(">II", png[16:24])
        figures.append(alt)
        number, words = f"{int(page[:2])}.{len(figures)}", html.escape(alt, quote=True)
        file = f"_static/pictures/{page}-{len(figures)}.png"
        (source / file).write_bytes(png)
        data.clear()
        data["text/html"] = (
            f'<figure class="numbered" id="figure-{number}" style="--wide: {width}px">'
            f'<div class="scroll" tabindex="0" role="region" aria-label="figure {number}">'
            f'<img src="{file}" alt="{words}" width="{width}" height="{height}" loading="lazy"></div>'
            f"<figcaption><b>Figure {number}.</b> {words}.</figcaption></figure>"
        )
    elif "text/html" in data:
        data["text/html"] = with_claims(data["text/html"], code)


def with_claims(table: str, code: str) -> str:
    """Link the words of claims in a cell's table to the list of all claims."""
    for paper in papers().values():
        for claim in paper.claims.values():
            if f'"{claim.id}"' in code:
                said = f">{html.escape(claim.text)}</td>"
                table = table.replace(said, f'><a href="claims.html#{claim.id}"{said[:-5]}</a></td>')
    return table
