"""The committed record: notebooks, figures/ and the scorecard. These check results at
rest, not the code.
"""

import json
import re
from io import StringIO

import nbformat
import pandas as pd
import papermill
import pytest

from dagsvm_lab.files import project_root
from dagsvm_lab.papers import papers
from dagsvm_lab.papers.findings import findings
from dagsvm_lab.report import scorecard
from dagsvm_lab.report.claims import INFERRED, WRITTEN, Tables
from dagsvm_lab.report.verdicts import NOT_AVAILABLE, WORDS

from .clean import complaints

ROOT = project_root()
FIGURES = ROOT / "figures"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[!.]*.ipynb"))
DEFAULTS = {"profile": '"quick"', "seed": "0", "out_dir": '"runs"'}
RECORDED = sorted(path for path in FIGURES.iterdir() if path.is_dir())


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    """A committed notebook, and where it is."""
    return request.param, nbformat.read(request.param, 4)


def test_a_notebook_is_as_a_committed_one_should_be(notebook):
    path, nb = notebook
    nbformat.validate(nb)
    assert complaints(nb) == []
    known = papermill.inspect_notebook(str(path))
    assert {
        name: known[name]["default"].replace("'", '"') for name in DEFAULTS
    } == DEFAULTS
    assert all(p["help"] for p in known.values()), "every default has its comment"
    assert nb.cells[0].cell_type == "markdown" and nb.cells[0].source.startswith("# ")


def test_links_work_in_the_checkout_and_in_make_lab(notebook):
    """`make lab` copies the notebooks and figures/scorecard.* as they lie here."""
    path, nb = notebook
    for cell in nb.cells:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", cell.source):
            if cell.cell_type != "markdown" and not link.endswith((".ipynb", ".md")):
                continue  # code that indexes, and calls
            if not link.startswith(("https://", "http://")):
                assert (path.parent / link).is_file(), link
                copied = link.endswith(".ipynb") or link == "../figures/scorecard.md"
                assert copied, f"make lab has no {link}"


def test_notebooks_have_one_form(notebook):
    cells = notebook[1].cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    heads = re.findall(r"^## (.*)", text, re.M)
    numbered = [head for head in heads if head[0].isdigit()]
    assert [int(head.partition(". ")[0]) for head in numbered] == list(
        range(1, len(numbered) + 1)
    )
    summary = [h for h in heads if h.startswith(("What reproduced", "What came of"))]
    assert len(summary) == 1 and heads.index(summary[0]) <= 1, "on the first screen"
    heads.remove(summary[0])
    questions = [head for head in heads if head == "Open questions"]
    appendices = [head for head in heads if head.startswith("Appendix ")]
    end = ["Exercises", *appendices, "Provenance"]
    assert heads == [*numbered, *questions, *end]
    assert not [
        cell.source for cell in cells if re.search(r"print\(.*\bbool\(", cell.source)
    ]


def test_every_figure_has_words_for_those_who_cannot_see_it(notebook):
    for cell in notebook[1].cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                about = output.metadata.get("image/png", {}).get(
                    "alt"
                ) or output.metadata.get("alt", "")
                assert len(about) > 20, f"cell [{cell.execution_count}]"


@pytest.mark.parametrize("key", sorted(papers()))
def test_every_claim_is_decided_in_one_cell_of_its_notebook(key):
    [path] = [p for p in NOTEBOOKS if p.stem.startswith(key)]
    code = [
        cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"
    ]
    for id in papers()[key].claims:
        assert sum(f'"{id}"' in source for source in code) == 1, id


@pytest.mark.parametrize("key", sorted(papers()))
def test_every_claim_evaluates(key):
    tables = Tables(FIGURES / key)
    for claim in papers()[key].claims.values():
        for reading in (WRITTEN, INFERRED):
            assert claim.judge(tables, reading).word in ("", *WORDS), claim.id


@pytest.mark.parametrize("key", ["01_platt2000", "02_yu2011"])
def test_nothing_that_these_papers_say_is_left_unjudged(key):
    rows = papers()[key].rows(Tables(FIGURES / key))
    assert not [
        row["id"]
        for row in rows
        if NOT_AVAILABLE in (row["verdict"], row.get("inferred_verdict"))
    ]


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_a_folder_holds_whole_tables_figures_in_both_forms_and_what_made_them(folder):
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert about["key"] == folder.name and about["parameters"]["profile"] == "full"
    assert about["seconds"] > 0 and {"python", "numpy"} <= set(about["versions"])
    for path in folder.glob("*.csv"):
        table = pd.read_csv(path)
        assert len(table) and not any(
            str(column).startswith("Unnamed") for column in table
        ), path.name
    assert {p.stem for p in folder.glob("*.svg")} == {
        p.stem for p in folder.glob("*.png")
    }
    assert sum(p.stat().st_size for p in folder.iterdir()) < 3e6


def test_the_scorecard_is_that_of_the_record():
    for path, text in scorecard.texts(papers(), findings, ROOT).items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} is out of date: run dagsvm-lab scorecard"
        )


def test_numbers_of_the_readme_are_counted(capsys):
    """The sentence beside the table, if it names totals, is the one that the scorecard
    says.
    """
    card = pd.read_csv(
        StringIO((FIGURES / "scorecard.csv").read_text(encoding="utf-8")), dtype=str
    ).fillna("")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    cells = int((card["kind"] == "cell").sum())
    for statements, counted in re.findall(
        r"(\d+) statements and (\d+) table cells", readme
    ):
        assert (int(statements), int(counted)) == (len(card) - cells, cells)
