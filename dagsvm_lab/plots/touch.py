"""The data behind the interactive figures of the reader's edition.

`walks` follows rows through graphs and has every number ready; `plane` writes down the
machines themselves, which the page evaluates. Notebook 00 writes both beside its
tables; the pages only draw them.
"""

import json
import os
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ..bank import Bank
from ..files import project_root
from ..graphs import DecisionGraph
from ..machines import pair_code
from ..report.record import QUIET
from ..systems.filtered import FilteredDAGSVC
from ..systems.sparse import leads

LARGE = 1e9  # stands for infinity, which JSON does not have


def walks(systems: Mapping[str, Any], X, y, X_train, y_train, shown=None) -> dict:
    """Follow rows X of true labels y through fitted systems over pair machines.

    All systems are of the same classes.

    Returns
    -------
    dict
        `classes`; `rows`, as the page shows them (`shown`, where that is not X itself);
        `systems` with their steps: classes of the two sides, output, classes
        eliminated, kernel values so far; a filter is the first step, with how far each
        class is behind the best and the bound beyond which one is rejected; and
        `ranges` of every machine that some row meets: the middle 90 % of its outputs
        on every class of the training rows.
    """
    classes = next(iter(systems.values())).classes_
    codes = np.searchsorted(classes, np.asarray(y_train))
    told = {}
    ranges = {}
    for name, est in systems.items():
        bank = est.machines_
        followed = [_follow(est, row) for row in np.asarray(X, float)]
        told[name] = {"machines": len(bank.code), "rows": followed}
        steps = [step for row in followed for step in row["steps"]]
        steps = [step for step in steps if "f" in step]  # machines, not filters
        met = sorted({step["machine"] for step in steps})
        ranges |= _ranges(bank, met, np.asarray(X_train, float), codes)
        for step in steps:
            step["machine"] = _sides(bank.code[step["machine"]])
    return {
        "classes": classes.tolist(),
        "rows": _rows(X if shown is None else shown, np.asarray(y)),
        "systems": told,
        "ranges": ranges,
    }


def _rows(shown, y: np.ndarray) -> list[dict]:
    """Rows as the page shows them, with their true labels."""
    return [
        {"x": np.asarray(x).round(3).tolist(), "truth": label}
        for x, label in zip(shown, y.tolist(), strict=True)
    ]


def _ranges(bank: Bank, met: list[int], X: np.ndarray, codes: np.ndarray) -> dict:
    """The middle 90 % of the outputs of machines `met` on every class of X."""
    f = bank.decision(X, machines=np.array(met, dtype=int))  # (rows, machines)
    ranges = {}
    for k, t in enumerate(met):
        own = [f[codes == c, k] for c in range(bank.code.shape[1])]
        limits = [np.quantile(outputs, [0.05, 0.95]) for outputs in own]
        ranges[_sides(bank.code[t])] = [pair.round(3).tolist() for pair in limits]
    return ranges


def _sides(code: np.ndarray) -> str:
    """The classes of a machine's two sides: "0|1,2"."""
    parts = []
    for side in (1, -1):
        members = np.flatnonzero(code == side)
        parts.append(",".join(map(str, members)))
    return "|".join(parts)


def _follow(est, x: np.ndarray) -> dict:
    """One row's answer and steps in one system."""
    bank = est.machines_
    f = bank.decision(x[None])[0]
    steps: list[dict] = []
    seen: set[int] = set()  # support vectors met
    start = None
    if getattr(est, "filter_", None) is not None:
        (lead,) = leads(est.filter_.decision(x[None]))
        left = lead <= est.bound_
        start = est.graph_.entries(left[None])
        seen.update(est.filter_support_.tolist())
        first = {
            "machine": "filter",
            "lead": lead.round(3).tolist(),
            "bound": round(_finite(est.bound_), 3),
            "struck": np.flatnonzero(~left).tolist(),
            "kernel": len(seen),
        }
        steps.append(first)
    for machine, struck in _met(est.graph_, f, start):
        seen.update(bank.coef[machine].indices.tolist())
        value = round(float(f[machine]), 4)
        about = {"machine": machine, "f": value, "struck": struck, "kernel": len(seen)}
        steps.append(about)
    (answer,) = est.predict(x[None]).tolist()
    return {"answer": answer, "steps": steps}


def _finite(bound: float) -> float:
    """The bound of a filter as JSON can say it."""
    return min(float(bound), LARGE)


def _met(graph, f: np.ndarray, start) -> list[tuple[int, list[int]]]:
    """The machines that a row of outputs f meets, and what each eliminates."""
    if not isinstance(graph, DecisionGraph):
        return [(machine, []) for machine in range(len(f))]

    def ask(rows, machines: np.ndarray) -> np.ndarray:
        return f[machines]

    met = []
    for _, (node,), _, (child,) in graph.steps(1, ask, start):
        struck = graph.possible[node] & ~graph.possible[child]
        machine = int(graph.machine[node])
        met.append((machine, np.flatnonzero(struck).tolist()))
    return met


def _filter(est: FilteredDAGSVC) -> dict:
    """What a page needs to answer as a filtered DAG does."""
    calibration = np.nan_to_num(est.calibration_, posinf=LARGE, neginf=-LARGE)
    return {
        "list": est.base_._list_.tolist(),
        "sv": est.filter_support_.tolist(),
        "coef": est.filter_coef_.round(6).tolist(),
        "bias": est.filter_intercept_.round(6).tolist(),
        "bound": _finite(est.bound_),
        "calibration": calibration.round(5).tolist(),
    }


def plane(systems: Mapping[str, Any], X, y) -> dict:
    """Write down pair machines in the plane and the graphs over them.

    So a page can ask them anywhere. The fitted systems are over Gaussian pair machines
    with one gamma and two inputs.

    Returns
    -------
    dict
        The rows X to draw with their classes, support vectors, machines (support,
        coefficients, bias), graphs as arrays, every machine by its place among all
        pairs, the filter and the calibration of a filtered DAG, and the answers at ten
        points, by which a page checks itself.
    """
    first = max(systems.values(), key=lambda est: len(est.machines_.code))
    bank = first.machines_
    pairs = pair_code(len(first.classes_)).tolist()
    place = {tuple(code): t for t, code in enumerate(pairs)}
    graphs = {}
    filters = {}
    for name, est in systems.items():
        if isinstance(est, FilteredDAGSVC):
            filters[name] = _filter(est)
        elif isinstance(est.graph_, DecisionGraph):
            own = [place[tuple(code)] for code in est.machines_.code.tolist()]
            graphs[name] = _nodes(est.graph_.grow(), own)
    classes = first.classes_
    codes = np.searchsorted(classes, y)
    return {
        "classes": classes.tolist(),
        "gamma": bank.kernel.gamma,
        "points": np.column_stack([np.round(X, 3), codes]).tolist(),
        "sv": np.asarray(bank.vectors).round(6).tolist(),
        "machines": _machines(bank),
        "graphs": graphs,
        "filters": filters,
        "checked": _checked(systems, classes, X),
    }


def _checked(systems: Mapping[str, Any], classes: np.ndarray, X) -> dict:
    """Ten points among the rows X, and the class index each system gives them."""
    rng = np.random.default_rng(0)
    least = np.min(X, axis=0)
    most = np.max(X, axis=0)
    points = rng.uniform(least, most, (10, 2))
    answers = {}
    for name, est in systems.items():
        codes = np.searchsorted(classes, est.predict(points))
        answers[name] = codes.tolist()
    return {"points": points.tolist(), "answers": answers}


def _machines(bank: Bank) -> list[dict]:
    """Each machine's support vectors, coefficients and bias."""
    machines = []
    for row, bias in zip(bank.coef, bank.bias, strict=True):
        about = {
            "sv": row.indices.tolist(),
            "beta": row.data.round(6).tolist(),
            "bias": round(float(bias), 6),
        }
        machines.append(about)
    return machines


def _nodes(graph: DecisionGraph, own: list[int]) -> dict:
    """A grown graph as lists; machine t is called own[t], and a leaf's is -1."""
    asked = [own[m] if m >= 0 else -1 for m in graph.machine.tolist()]
    return {
        "machine": asked,
        "left": graph.left.tolist(),
        "right": graph.right.tolist(),
        "label": graph.label.tolist(),
    }


def interactive(kind: str, data: object, height: int = 640) -> None:
    """Display an interactive figure ("walk", "plane" or "bound") in JupyterLab.

    The page's own scripts are put into a frame of their own, so nothing is fetched and
    no widget needs installing. In a batch, a line of text stands for it.
    """
    from IPython.display import HTML, display

    if QUIET in os.environ:
        print(f"{kind}: run this cell in JupyterLab, or see the reader's edition")
        return
    folder = project_root() / "notebooks" / "site" / "_static"
    parts = (folder / "parts.js").read_text(encoding="utf-8")
    own = (folder / f"{kind}.js").read_text(encoding="utf-8")
    style = (folder / "edition.css").read_text(encoding="utf-8")
    call = f"dagsvm.{kind}(document.getElementById('here'), {json.dumps(data)});"
    page = (
        f"<style>body {{ font: 14px sans-serif; }} {style}</style>"
        "<div class='touch' id='here'></div>"
        f"<script>{parts}\n{own}\n{call}</script>"
    )
    size = f'width="100%" height="{height}" title="{kind}"'
    frame = f'<iframe srcdoc="{escape(page)}" {size}></iframe>'
    display(HTML(f"<div>{frame}</div>"))
