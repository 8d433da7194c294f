"""Build the reader's edition: a site from the committed notebooks and the record.

    python notebooks/site/build.py OUT

puts the sources together in OUT/source and calls Sphinx, which writes OUT/html. Nothing
is executed. Chapters are made in chapters.py, the pages of the record in pages.py, the
report in report.py, the reference in reference.py.
"""

import json
import shutil
import sys
from pathlib import Path

from chapters import HERE, NOTEBOOKS, write_chapters
from choose import write_choose
from evidence import Evidence
from pages import FIGURES, ROOT, write_pages
from reference import write_reference
from report import write_report

from dagsvm_lab.papers import scorecard

PAGES = (
    "index.md",
    "install.md",
    "glossary.md",
    "recipes.md",
    "references.md",
    "svc.md",
    "references.bib",
    "conf.py",
)


def write_explorers(source: Path) -> None:
    """Write the data of the interactive figures, which notebook 00 recorded, as
    scripts.

    A script can be read by a page that is opened from disk; a JSON file cannot.
    """
    folder = source / "_static" / "touch"
    folder.mkdir()
    for file in FIGURES.glob("00_tour/touch_*.json"):
        data = json.loads(file.read_text(encoding="utf-8"))
        text = json.dumps(data, separators=(",", ":"))
        script = f"dagsvm.data.{file.stem} = {text};\n"
        (folder / f"{file.stem}.js").write_text(script, encoding="utf-8")


def main(out: Path) -> int:
    """Put the sources together and build; 0 when Sphinx had nothing to complain of."""
    from sphinx.cmd.build import main as sphinx

    source = out / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in PAGES:
        shutil.copy(HERE / name, source)
    shutil.copytree(HERE / "_static", source / "_static")
    (source / "_static" / "notebooks").mkdir()
    for notebook in NOTEBOOKS:
        shutil.copy(notebook, source / "_static" / "notebooks")
    chapters = write_chapters(source)
    card = scorecard(FIGURES)
    write_pages(source, chapters, card)
    evidence = Evidence(FIGURES, card)
    write_report(source, evidence)
    write_choose(source, evidence)
    write_reference(source)
    write_explorers(source)
    quiet = ["-q", "-W", "--keep-going", "-d", str(out / "doctrees")]
    failed = sphinx([*quiet, str(source), str(out / "html")])
    if not failed:
        first = (out / "html" / "index.html").resolve()
        print(f"The reader's edition is built. Open {first.as_uri()}")
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "runs" / "site")))
