"""Every complaint about a notebook has a case that earns it."""

import nbformat

from dagsvm_lab.files import project_root
from dagsvm_lab.run.jobs import clean

from .clean import complaints


def test_complaints_name_what_is_wrong(notebook):
    nb = nbformat.read(notebook("01_good_one", "print(1)", "2"), 4)
    nb = clean(nb)
    for k, cell in enumerate(nb.cells):
        cell.execution_count = k + 1
    nb.cells[1].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    assert complaints(nb) == []
    for change, named in [
        (lambda nb: nb.cells[2].update(execution_count=9), "numbered"),
        (lambda nb: nb.cells[1].metadata.update(tags=["parameters"]), "parameters"),
        (lambda nb: nb.cells[1].metadata.update(execution={}), "metadata"),
        (lambda nb: nb.metadata.kernelspec.update(name="venv"), "venv"),
        (lambda nb: nb.metadata.update(papermill={}), "metadata"),
        (lambda nb: nb.cells[1].update(outputs=[]), "no outputs"),
        (lambda nb: nb.cells[1].outputs[0].update(name="stderr"), "warning"),
        (
            lambda nb: nb.cells[1].outputs[0].update(text="see /usr/lib/data"),
            "absolute path",
        ),
        (
            lambda nb: nb.cells[2].update(source=f"open('{project_root()}')"),
            "absolute path",
        ),
        (
            lambda nb: nb.cells[2].outputs.append(
                nbformat.v4.new_output("error", ename="E")
            ),
            "error",
        ),
    ]:
        worse = nbformat.reads(nbformat.writes(nb), 4)
        change(worse)
        assert [line for line in complaints(worse) if named in line], named
