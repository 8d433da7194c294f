"""Which run the committed pages show: read from the notebooks as they are."""

import ast
import builtins
import copy
import re
from collections.abc import Iterator
from contextlib import suppress

import nbformat
import papermill
import pytest

from dagsvm_lab.files import project_root
from dagsvm_lab.papers import papers
from dagsvm_lab.report.claims import INFERRED, WRITTEN, Tables
from dagsvm_lab.report.prose import said

ROOT = project_root()
FIGURES = ROOT / "figures"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[!.]*.ipynb"))


class Page:
    """A committed notebook: its code as one tree, its outputs, its parameters."""

    def __init__(self, path) -> None:
        nb = nbformat.read(path, 4)
        self.key = next(
            p.name for p in FIGURES.iterdir() if path.stem.startswith(p.name)
        )
        self.cells = [cell for cell in nb.cells if cell.cell_type == "code"]
        tagged = [c for c in self.cells if "parameters" in c.metadata.get("tags", [])]
        self.code = [cell.source for cell in self.cells if cell not in tagged]
        self.tree = ast.parse("\n".join(self.code))
        self.parameters = papermill.inspect_notebook(str(path))

    def calls(self, name: str) -> list[ast.Call]:
        """Calls of `name` (run.table, Record, ...), in their order."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [node for node in nodes if ast.unparse(node.func) == name]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def page(request):
    return Page(request.param)


def test_defaults_are_those_by_which_a_page_shows_the_record(page):
    known = {"profile": "quick", "seed": 0, "n_jobs": 2, "out_dir": "runs"}
    for name, about in page.parameters.items():
        default = ast.literal_eval(about["default"])
        assert default == known.get(name), f"{name}: None, so that it says what changed"


def test_each_parameter_that_a_cell_uses_is_known_to_the_record(page):
    [record] = page.calls("Record")
    given = {keyword.arg for keyword in record.keywords}
    names = [node.id for node in ast.walk(page.tree) if isinstance(node, ast.Name)]
    used = set(page.parameters) & set(names)
    assert used <= given, f"Record is not told {used - given}"


def test_every_table_has_keys_and_a_record(page):
    for call in page.calls("run.table"):
        text = ast.unparse(call)
        given = {keyword.arg for keyword in call.keywords}
        assert "keys" in given or len(call.args) > 2, text
        if isinstance(call.args[0], ast.Constant):
            path = FIGURES / page.key / f"{call.args[0].value}.csv"
            assert path.is_file(), f"{path.name} is not recorded: run the full profile"


def test_claims_stand_after_the_tables_that_they_rest_on(page):
    """Else a reader's run, which has its tables one by one, says "not in this run"."""
    paper = papers().get(page.key)
    written = {}
    decided = []
    for k, source in enumerate(page.code):
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = ast.unparse(node.func)
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            if called == "run.table" and texts:
                written.setdefault(texts[0], k)
            elif called == "run.claims":
                decided += [(k, paper.claims[id]) for id in texts]
    for k, claim in decided:
        tables = Tables(FIGURES / page.key)
        for reading in (WRITTEN, INFERRED):
            claim.judge(tables, reading)
        late = [name for name in tables.read if written.get(name, k) > k]
        assert not late, f"{claim.id} stands before {', '.join(late)}"


def test_no_page_shows_a_table_whose_record_has_other_columns(page):
    for cell in page.cells:
        for output in cell.outputs:
            text = output.get("data", {}).get("text/markdown", "")
            assert "as the record has other columns" not in text, text


def test_the_first_screen_says_which_run_it_shows(page):
    text = "".join(
        output.get("data", {}).get("text/markdown", "")
        for cell in page.cells[:4]
        for output in cell.outputs
    )
    assert "This page shows the recorded full run" in text


class Recorded:
    """What `run` is to sentences: the recorded tables."""

    def __init__(self, key: str) -> None:
        self.committed = FIGURES / key
        self.tables = Tables(self.committed)
        self.recorded = self.tables.get
        self.table = self.tables.__getitem__


class OnlyTheName(ast.NodeTransformer):
    """Leave of `run.table(name, fresh, ...)` the name: what is shown is the record."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if ast.unparse(node.func) == "run.table":
            node.args, node.keywords = node.args[:1], []
        return node


QUOTED = {"np", "pd", "math", "published", "binomial_interval"} | set(dir(builtins))
PAPERS = {"platt", "yu", "wang", "don"}  # their modules, or the papers in them


def paragraphs(page: Page) -> Iterator[tuple[dict, str]]:
    """Yield each cell that says something, and what it says of the record alone.

    Sentences may use imports, functions, constants and what papers print, recorded
    tables, and what is computed from these: nothing that the run computed beside them.
    """
    names = {"run": Recorded(page.key)} | vars(builtins)
    known = QUOTED | PAPERS
    shown = {"run"}  # names of recorded tables, and of what is computed from them
    definitions = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    for cell in page.cells:
        for node in on_the_record(ast.parse(cell.source).body):
            if ast.unparse(node).startswith("run.say("):
                with suppress(InlineError):
                    yield cell, " ".join(spoken(node.value, names))
            elif isinstance(node, definitions):
                exec(compiled(node), names)
            elif isinstance(node, ast.Assign | ast.For):
                node = OnlyTheName().visit(copy.deepcopy(node))
                bound = own_names(node)
                free = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - bound
                of_record = free & shown and free <= set(names)
                allowed = free <= known or of_record
                try:
                    if is_experiment(node) or not allowed:
                        raise NameError("of this run")
                    exec(compiled(node), names)
                    (shown if of_record else known).update(bound)
                except Exception:  # a NameError to the sentence that needs it
                    for name in bound - {"run"}:
                        names.pop(name, None)


class InlineError(Exception):
    """An f-string written into `run.say` names what cannot be had from the record
    alone: only the run of the notebook itself holds it to its tables."""


def compiled(node: ast.stmt):
    """A statement as code."""
    tree = ast.fix_missing_locations(ast.Module([node], []))
    return compile(tree, "notebook", "exec")


def spoken(call: ast.Call, names: dict) -> list[str]:
    """The sentences of a `run.say`, of the recorded tables."""
    sentences = []
    for argument in call.args:
        try:
            code = compile(ast.Expression(argument), "notebook", "eval")
            sentences.append(eval(code, names))
        except Exception as error:
            if isinstance(argument, ast.JoinedStr):
                raise InlineError from error
            raise
    return said(names["run"].tables, *sentences)


def is_experiment(node: ast.Assign | ast.For) -> bool:
    """Whether a statement does more than to compute from tables, or to fill columns."""
    if isinstance(node, ast.For):
        fills = [getattr(part, "targets", [None])[0] for part in node.body]
        return not all(isinstance(target, ast.Subscript) for target in fills)
    return bool(re.search(r"\b(load|split|fit|train)\w*\(", ast.unparse(node)))


def own_names(node: ast.AST) -> set[str]:
    """Names that a statement binds, those of its comprehensions and lambdas too."""
    bound = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            bound.add(part.id)
    return bound


def on_the_record(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a cell that a page which shows the record executes."""
    for node in body:
        if not isinstance(node, ast.If):
            yield node
        elif ast.unparse(node.test) == "run.shows_record":
            yield from on_the_record(node.body)
        elif ast.unparse(node.test) == "not run.shows_record":
            yield from on_the_record(node.orelse)


def test_prose_is_what_the_recorded_tables_say(page):
    """Each paragraph is written again from the record alone: every number in it is that
    of the tables that the page shows. A sentence that uses what the run computed beside
    them is a NameError here."""
    for cell, text in paragraphs(page):
        outputs = [o.get("data", {}).get("text/markdown") for o in cell.outputs]
        assert not text or text in outputs, f"cell [{cell.execution_count}]: {text}"


@pytest.mark.parametrize("key", sorted(papers()))
def test_claims_that_read_picked_tables_say_whether_they_are_fitted(key):
    assert papers()[key].undeclared(FIGURES / key) == []
