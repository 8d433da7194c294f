"""The data behind the reader's edition's things to touch: walks of rows through graphs, and machines in the plane.

Notebook 00 writes it beside its tables; the pages only draw it. `walks` has every number ready, `plane` the machines
themselves, which the page evaluates.
"""

import json
import os
import re
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ..files import project_root
from ..graphs import DecisionGraph
from ..machines import pair_code
from ..report.record import QUIET
from ..systems.conformal import ConformalDAGSVC


def walks(systems: Mapping[str, Any], X, y, X_train, y_train, shown=None) -> dict:
    """Follow rows X of true labels y through fitted systems over pair machines of the same classes.

    Told are classes, rows (as the page shows them: `shown`, where that is not X itself), systems with their steps
    (classes of the two sides, output, classes struck off, kernel values so far), and the ranges of every machine that
    some row meets: the middle 90 % of its outputs on every class of the training rows.
    """
    first = next(iter(systems.values()))
    classes = first.classes_.tolist()
    codes = np.searchsorted(first.classes_, np.asarray(y_train))
    told, ranges = {}, {}
    for name, est in systems.items():
        bank = est.machines_
        sides = ["|".join(",".join(map(str, np.flatnonzero(code == s))) for s in (1, -1)) for code in bank.code]
        followed = [_follow(est, row) for row in np.asarray(X, float)]
        told[name] = {"machines": len(bank.code), "rows": followed}
        steps = [step for row in followed for step in row["steps"]]
        met = sorted({step["machine"] for step in steps})
        f = bank.decision(np.asarray(X_train, float), machines=np.array(met))
        for k, t in enumerate(met):
            limits = (np.quantile(f[codes == c, k], [0.05, 0.95]) for c in range(len(classes)))
            ranges[sides[t]] = [pair.round(3).tolist() for pair in limits]
        for step in steps:
            step["machine"] = sides[step["machine"]]
    rows = [{"x": np.asarray(x).round(3).tolist(), "truth": label} for x, label in
            zip(X if shown is None else shown, np.asarray(y).tolist(), strict=True)]  # fmt: skip
    return {"classes": classes, "rows": rows, "systems": told, "ranges": ranges}


def _follow(est, x: np.ndarray) -> dict:
    """One row's answer and steps in one system."""
    bank, graph = est.machines_, est.graph_
    f = bank.decision(x[None])[0]
    if isinstance(graph, DecisionGraph):
        met = [(int(graph.machine[n[0]]), np.flatnonzero(graph.possible[n[0]] & ~graph.possible[c[0]]))
               for _, n, _, c in graph.steps(1, lambda rows, machines: f[machines])]  # fmt: skip
    else:
        met = [(t, np.zeros(0, int)) for t in range(len(bank.code))]
    steps, seen = [], set()
    for machine, struck in met:
        if steps and steps[-1]["machine"] == machine:  # the same answer, compared with another cut
            steps[-1]["struck"] += struck.tolist()
            continue
        seen.update(bank.coef[machine].indices.tolist())
        value = round(float(f[machine]), 4)
        steps.append({"machine": machine, "f": value, "struck": struck.tolist(), "kernel": len(seen)})
    return {"answer": est.predict(x[None]).tolist()[0], "steps": steps}


def plane(systems: Mapping[str, Any], X, y) -> dict:
    """Write down pair machines in the plane and the graphs over them, so that a page can ask them anywhere.

    The fitted systems are over Gaussian pair machines with one gamma and two inputs. Written are the rows X to draw
    with their classes, support vectors, machines (support, coefficients, bias), graphs as arrays, every machine by its
    place among all pairs, what the sets of a conformal DAG rest on, and the answers at ten points.
    """
    first = max(systems.values(), key=lambda est: len(est.machines_.code))
    bank, n = first.machines_, len(first.classes_)
    place = {tuple(code): t for t, code in enumerate(pair_code(n).tolist())}
    machines = [{"sv": row.indices.tolist(), "beta": row.data.round(6).tolist(), "bias": round(float(bias), 6)}
                for row, bias in zip(bank.coef, bank.bias, strict=True)]  # fmt: skip
    graphs, sets = {}, {}
    for name, est in systems.items():
        own = [place[tuple(code)] for code in est.machines_.code.tolist()]
        if isinstance(est, ConformalDAGSVC):
            finite = dict(posinf=1e9, neginf=-1e9)  # JSON has no infinity
            parts = {"ranges": est.ranges_[:, np.argsort(own)], "calibration": est.calibration_}
            sets[name] = {part: np.nan_to_num(x, **finite).round(5).tolist() for part, x in parts.items()}
        if isinstance(est.graph_, DecisionGraph):
            g = est.graph_.grow()
            asked = [own[m] if m >= 0 else -1 for m in g.machine.tolist()]
            nodes = {part: getattr(g, part).tolist() for part in ("left", "right", "label", "cut")}
            graphs[name] = {"machine": asked, **nodes}
    points = np.random.default_rng(0).uniform(np.min(X, axis=0), np.max(X, axis=0), (10, 2))
    answers = {name: np.searchsorted(first.classes_, est.predict(points)).tolist() for name, est in systems.items()}
    return {
        "classes": first.classes_.tolist(),
        "gamma": bank.kernel.gamma,
        "points": np.column_stack([np.round(X, 3), np.searchsorted(first.classes_, y)]).tolist(),
        "sv": np.asarray(bank.vectors).round(6).tolist(),
        "machines": machines,
        "graphs": graphs,
        "sets": sets,
        "checked": {"points": points.tolist(), "answers": answers},
    }


def interactive(kind: str, data: object, height: int = 640) -> None:
    """Display a thing to touch ("walk", "plane" or "bound") in JupyterLab; a line of text stands for it in a batch.

    The page's own scripts are put into a frame of their own, so nothing is fetched and no widget needs installing.
    """
    from IPython.display import HTML, display

    if QUIET in os.environ:
        print(f"{kind}: run this cell in JupyterLab, or open the page of things to touch")
        return
    folder = project_root() / "notebooks" / "site" / "_static"
    parts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in ("parts", kind)]
    code = re.sub(r"^(import .*|export (?=function|const))", "", "\n".join(parts), flags=re.M)
    style = (folder / "edition.css").read_text(encoding="utf-8")
    page = (
        f"<style>body {{ font: 14px sans-serif; }} {style}</style><div class='touch' id='here'></div>"
        f"<script type='module'>{code}\n{kind}(document.getElementById('here'), {json.dumps(data)});</script>"
    )
    display(HTML(f'<div><iframe srcdoc="{escape(page)}" width="100%" height="{height}" title="{kind}"></iframe></div>'))
