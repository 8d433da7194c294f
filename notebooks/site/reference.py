"""The reference: a page a public name, and one that lists them all by room."""

import inspect
from pathlib import Path

import dagsvm_lab

HEAD = """# Reference

Everything that `from dagsvm_lab import ...` gives, a page each. Estimators are
scikit-learn classifiers: `fit`, `predict`, `score`, and beside these
`predict_with_cost`, which also says what an answer cost.
"""
ROOMS = {
    "systems": "Estimators and what chooses among them",
    "plots": "Displays",
    "kernels": "Kernels",
    "solvers": "Solvers of one machine",
    "datasets": "Data",
    "report": "Notebooks and reports",
}


def write_reference(source: Path) -> None:
    """Write `reference.md` and, in `reference/`, a page for every public name."""
    folder = source / "reference"
    folder.mkdir()
    rooms: dict[str, list[str]] = {}
    for name in dagsvm_lab.__all__:
        value = getattr(dagsvm_lab, name, None)
        if callable(value):
            (folder / f"{name}.md").write_text(_page(name, value), encoding="utf-8")
            rooms.setdefault(_room(value), []).append(name)
    parts = [HEAD]
    for room in sorted(rooms, key=_place):
        lines = [
            f"- [{name}](reference/{name}.md): {_summary(name)}" for name in rooms[room]
        ]
        parts.append(f"## {ROOMS.get(room, room)}\n\n" + "\n".join(lines))
    names = "\n".join(f"reference/{name}" for room in rooms.values() for name in room)
    parts.append(f"```{{toctree}}\n:hidden:\n{names}\n```")
    (source / "reference.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _page(name: str, value: object) -> str:
    directive = "autofunction"
    options = ""
    if isinstance(value, type):
        directive = "autoclass"
        own = [m for m in dir(value) if _is_ours(value, m)]
        options = f"\n   :members: {', '.join(own)}" if own else ""
    body = f".. {directive}:: dagsvm_lab.{name}{options}"
    return f"# {name}\n\n```{{eval-rst}}\n{body}\n```\n"


def _is_ours(cls: type, member: str) -> bool:
    value = getattr(cls, member, None)
    home = getattr(value, "__module__", None) or ""
    return (
        not member.startswith("_") and callable(value) and home.startswith("dagsvm_lab")
    )


def _room(value) -> str:
    return value.__module__.removeprefix("dagsvm_lab.").split(".")[0]


def _place(room: str) -> tuple[int, str]:
    known = list(ROOMS)
    return (known.index(room) if room in known else len(known), room)


def _summary(name: str) -> str:
    """The first sentence of a docstring, as one line."""
    first = (inspect.getdoc(getattr(dagsvm_lab, name)) or "").split("\n\n")[0]
    return " ".join(first.split())
