"""What speaks against committing a notebook."""

import json
import re

import nbformat

from dagsvm_lab.files import project_root

ABSOLUTE = re.compile(
    r"(?<![\w./:])/(?:home|root|tmp|work|usr|opt|var|mnt|Users|private)/|[A-Z]:\\\\"
)
LARGEST = 1_000_000  # bytes that a code host shows


def complaints(nb) -> list[str]:
    """Return what a committed notebook must not have, or lacks: one line each, an empty
    list for a good one.
    """
    code = [c for c in nb.cells if c.cell_type == "code" and c.source.strip()]
    numbers, kernel = [c.execution_count for c in code], nb.metadata.kernelspec.name
    tagged = sum("parameters" in c.metadata.get("tags", []) for c in nb.cells)
    beyond = set(nb.metadata) - {"kernelspec", "language_info"} or set(
        nb.metadata.language_info
    ) != {"name"}
    wrong = {
        f"its {len(code)} code cells are not numbered from 1 without gaps": numbers
        != list(range(1, len(code) + 1)),
        "it does not have exactly one cell tagged parameters": tagged != 1,
        "it has metadata beyond a kernel's name and a language": beyond,
        f"its kernel {kernel!r} is not the generic python3": kernel != "python3",
        "some cell has metadata other than tags": any(
            set(c.metadata) - {"tags"} for c in nb.cells
        ),
        "it has no outputs": not any(c.outputs for c in code),
        f"it is larger than {LARGEST:,} bytes": len(nbformat.writes(nb).encode())
        > LARGEST,
    }
    said = [line for line, is_so in wrong.items() if is_so]
    for cell in code:
        where, text = (
            f"cell [{cell.execution_count}]",
            json.dumps([cell.source, cell.outputs]),
        )
        said += [
            f"{where} holds an error: {o.ename}: {o.evalue}"
            for o in cell.outputs
            if o.output_type == "error"
        ]
        if any(o.get("name") == "stderr" for o in cell.outputs) or "Warning:" in text:
            said.append(f"{where} holds warning text")
        if ABSOLUTE.search(text) or str(project_root()) in text:
            said.append(f"{where} holds an absolute path")
    return said
