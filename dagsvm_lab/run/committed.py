"""What a committed notebook looks like: outputs, and nothing that the next execution would change for no reason."""

import json
import re

import nbformat

from ..report.record import project_root, write_atomically
from .runner import Outcome

ABSOLUTE = re.compile(r"(?<![\w./:])/(?:home|root|tmp|work|usr|opt|var|mnt|Users|private)/|[A-Z]:\\\\")


def refresh(outcome: Outcome) -> list[str]:
    """What speaks against committing the executed copy; with nothing against it, it replaces the notebook."""
    nb = nbformat.read(outcome.job.executed, 4)
    clean(nb)
    against = complaints(nb)
    if not against:
        write_atomically(outcome.job.notebook, lambda part: nbformat.write(nb, part))
    return against


def clean(nb) -> None:
    """Nothing; strips `nb` of execution metadata and joins the pieces a stream happened to arrive in."""
    nb.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in nb.cells:
        cell.metadata = {"tags": cell.metadata.tags} if cell.metadata.get("tags") else {}
        if cell.cell_type == "code":
            joined = []
            for output in cell.outputs:
                if joined and output.output_type == joined[-1].output_type == "stream":
                    if output.name == joined[-1].name:
                        joined[-1].text += output.text
                        continue
                joined.append(output)
            cell.outputs = joined


def complaints(nb) -> list[str]:
    """What a committed notebook must not have, or lacks: one line each, an empty list for a good one."""
    said = []
    code = [c for c in nb.cells if c.cell_type == "code" and c.source.strip()]
    if [c.execution_count for c in code] != list(range(1, len(code) + 1)):
        said.append(f"its {len(code)} code cells are not numbered from 1 without gaps")
    if sum("parameters" in c.metadata.get("tags", []) for c in nb.cells) != 1:
        said.append("it does not have exactly one cell tagged parameters")
    if set(nb.metadata) - {"kernelspec", "language_info"} or set(nb.metadata.language_info) != {"name"}:
        said.append("it has metadata beyond a kernel's name and a language")
    if nb.metadata.kernelspec.name != "python3":
        said.append(f"its kernel {nb.metadata.kernelspec.name!r} is not the generic python3")
    if any(set(c.metadata) - {"tags"} for c in nb.cells):
        said.append("some cell has metadata other than tags")
    if not any(c.outputs for c in code):
        said.append("it has no outputs")
    for cell in code:
        where = f"cell [{cell.execution_count}]"
        for output in cell.outputs:
            if output.output_type == "error":
                said.append(f"{where} holds an error: {output.ename}: {output.evalue}")
            if output.get("name") == "stderr" or "Warning:" in json.dumps(output):
                said.append(f"{where} holds warning text")
        text = json.dumps([cell.source, cell.outputs])
        if ABSOLUTE.search(text) or str(project_root()) in text:
            said.append(f"{where} holds an absolute path")
    return said
