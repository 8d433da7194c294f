"""Whether a reader has changed the notebook that is running.

A page at default parameters shows the record. Someone who changes a loop in JupyterLab
wants to see what comes of it: so a cell that is not in the committed notebook, and
binds a name that the notebook binds, makes the rest of the page the reader's own run. A
cell that only looks at something changes nothing.
"""

import ast
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def executed() -> list[str]:
    """The sources of the cells that this kernel has executed, the running one last."""
    from IPython import get_ipython

    history = getattr(get_ipython(), "history_manager", None)
    return [] if history is None else list(history.input_hist_raw)


def bound(source: str) -> set[str]:
    """The names that a cell binds: by assignment, import, def or class."""
    names = set()
    with suppress(SyntaxError):  # a magic, which binds what nobody knows
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= {part.asname or part.name for part in node.names}
    return names


class Edits:
    """The cells executed from now on, beside those of a committed notebook.

    Parameters
    ----------
    notebook : Path or None
        The committed notebook; without one, nothing counts as changed.
    """

    def __init__(self, notebook: Path | None) -> None:
        self.known = _cells(notebook)
        self.names = set().union(*map(bound, self.known))
        self.start = len(executed())

    def __bool__(self) -> bool:
        """Whether a changed cell was executed since this began to watch."""
        if not self.known:
            return False
        new = [source.strip() for source in executed()[self.start :]]
        return any(s not in self.known and bound(s) & self.names for s in new)


def _cells(notebook: Path | None) -> set[str]:
    """The sources of a notebook's code cells."""
    if notebook is None:
        return set()
    with suppress(OSError, ValueError, KeyError):
        cells: Iterable[dict] = json.loads(notebook.read_text(encoding="utf-8"))[
            "cells"
        ]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        return {"".join(source).strip() for source in code}
    return set()
