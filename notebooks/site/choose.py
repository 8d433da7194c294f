"""The page that helps to choose a system: questions, and a table from notebook 05."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from chapters import fitted
from evidence import Evidence, paragraph

from dagsvm_lab.report.prose import span
from dagsvm_lab.report.tables import Table

TITLE = "# Choosing a system"
CLASSES = {  # systems of notebook 05, by the class that makes them
    "1-v-r": "OneVsRestSVC()",
    "max-wins": "MaxWinsSVC()",
    "and-gate": "AndGateSVC()",
    "dagsvm": "DAGSVC()",
    "adaptive": "AdaptiveDAGSVC()",
    "filtered": "FilteredDAGSVC()",
    "filtered dcsvm": "FilteredDAGSVC(base=DCSVC())",
    "c-bts": 'BinaryTreeSVC(pair="centre")',
    "btppsvm": 'BinaryTreeSVC(labels="soft")',
    "dcsvm 0%": "DCSVC()",
    "dcsvm 2%": "DCSVC(threshold=.02)",
    "posterior ovo": "PosteriorSVC()",
    "ecoc dense": "ECOCSVC()",
    "ta type 2": 'DecisionTreeSVC(separate="many")',
    "crammer-singer": "CrammerSingerSVC()",
    "weston-watkins": "WestonWatkinsSVC()",
}
PAIRS = ("max-wins", "dagsvm", "adaptive", "c-bts", "dcsvm 0%", "filtered")
FIRST = {  # columns of the table of firsts, and what a system is good at
    "most accurate": "accuracy",
    "fewest kernel evaluations": "kernel evaluations",
    "fewest decisions": "decisions",
    "smallest": "size",
    "fastest to train": "training",
}


def write_choose(source: Path, evidence: Evidence) -> None:
    """Write choose.md to `source`."""
    questions = []
    for question, *sentences in QUESTIONS:
        questions.append(f"{question}\n: {paragraph(evidence, *sentences)}")
    parts = [TITLE, START, "\n\n".join(questions)]
    if table := _shown(evidence, _table):
        parts += ["## What each is good at", TABLE, table]
    parts.append(OWN)
    (source / "choose.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _shown(evidence: Evidence, make: Callable[[Evidence], pd.DataFrame]) -> str:
    """Write a table as HTML; "" where it is not recorded."""
    try:
        return fitted(Table(make(evidence), 2)._repr_html_())
    except LookupError as missing:
        print(f"The page on choosing leaves out its table: {missing}")
        return ""


def _table(e: Evidence) -> pd.DataFrame:
    """Make a row a system: accuracy and costs beside the vote's, and its firsts."""
    overall = e["05/overall"].set_index("system")
    paying = e["05/paying"]
    rows = []
    for key, name in CLASSES.items():
        if key not in overall.index:
            continue
        row = overall.loc[key]
        firsts = []
        for column, what in FIRST.items():
            if count := int((paying[column] == key).sum()):
                firsts.append(f"{what} ({count})")
        rows.append(
            {
                "system": name,
                "points above the vote": row["points"],
                "kernel evaluations, of the vote's": row["kernel_evaluations"],
                "decisions": row["binary_decisions"],
                "size": row["size_kparameters"],
                "training time": row["train_s"],
                f"first of all in (of {len(paying)} sets)": ", ".join(firsts),
            }
        )
    return pd.DataFrame(rows).set_index("system")


def _batches(e: Evidence) -> str:
    clock = e["05/clock"].pivot(index="dataset", columns="system", values="batch_us")
    ratio = clock[[name for name in PAIRS if name in clock]]
    ratio = np.exp(np.log(ratio.div(clock["max-wins"], axis=0)).mean())
    fastest = ratio.idxmin()
    said = (
        f"A row of the vote, `MaxWinsSVC()`, takes {span(clock['max-wins'])} "
        f"microseconds in a batch ({len(clock)} sets). "
    )
    if fastest == "max-wins":
        return f"{said}Of the systems over pairs it is the fastest."
    return (
        f"{said}Of the systems over pairs `{CLASSES[fastest]}` is the fastest: "
        f"{ratio[fastest]:.2f} of the vote's time, in the geometric mean."
    )


def _alone(e: Evidence) -> str:
    clock = e["05/clock"].pivot(index="dataset", columns="system", values="one_row_us")
    fastest = clock.drop(columns="libsvm").idxmin(axis=1).value_counts()
    name = CLASSES.get(fastest.index[0], fastest.index[0])
    return (
        f"Of those timed, `{name}` was the fastest for a row alone on "
        f"{fastest.iloc[0]} of {len(clock)} sets."
    )


def _filter(e: Evidence) -> str:
    row = e["05/overall"].set_index("system").loc["filtered"]
    return (
        "The filter brings kernel evaluations to "
        f"{100 * row['kernel_evaluations']:.0f} % of the vote's "
        f"({row['points']:+.2f} points) and trains {row['train_s']:.0f} times as long."
    )


def _no_filter(e: Evidence) -> str:
    row = e["05/overall"].set_index("system").loc["dcsvm 0%"]
    return (
        f"`DCSVC()` needs {100 * row['kernel_evaluations']:.0f} % of the vote's "
        f"({row['points']:+.2f} points) at {row['train_s']:.1f} times the training "
        "time."
    )


def _posterior(e: Evidence) -> str:
    points = e["05/overall"].set_index("system")["points"]
    table = e["03/noise"].query("choice == 'anew' and noise_pct > 0")
    wide = table.pivot(
        index=["dataset", "noise_pct"], columns="machine", values="accuracy_pct"
    )
    ahead = int((wide["posterior"] > wide["ordinary"]).sum())
    return (
        "Choose C and gamma anew on the noisy labels first: soft labels were better "
        f"then in {ahead} of {len(wide)} cases of notebook 03. `PosteriorSVC` is for "
        "when they must stay as chosen on clean labels; on clean ones it costs "
        f"{-points['posterior ovo']:.1f} points."
    )


def _small(e: Evidence) -> str:
    size = e["05/overall"].set_index("system")["size_kparameters"]
    points = e["05/overall"].set_index("system")["points"]
    return (
        f"`DecisionTreeSVC` keeps {100 * size['ta type 2']:.0f} % of the vote's "
        f"numbers ({points['ta type 2']:+.1f} points), `CrammerSingerSVC` "
        f"{100 * size['crammer-singer']:.0f} % ({points['crammer-singer']:+.1f})."
    )


START = (
    "All systems take the same parameters, so that changing your mind costs one word. "
    "Go down the list; the first line that fits is the answer."
)
QUESTIONS = (
    (
        "Rows come in batches, with a built-in kernel",
        _batches,
    ),
    (
        "A kernel value is expensive: long rows, or a kernel that is a program",
        "`FilteredDAGSVC()`; if training must be short, `DCSVC()`.",
        _filter,
        _no_filter,
    ),
    (
        "Rows come alone, and each must be answered fast",
        "Measure: `compare` times a row alone.",
        _alone,
        "The [recipe on single rows](recipes.md) takes the pipeline out of the way.",
    ),
    (
        "An answer must say how sure it is",
        "A set that holds the true class with a chance you choose: "
        "`FilteredDAGSVC().calibrate(...)`, then `predict_set`. Probabilities: any "
        "system within `CalibratedClassifierCV`. Refusal of rows that no class wins: "
        "`AndGateSVC().unclassified(X)`.",
    ),
    ("Labels are noisy", _posterior),
    ("The model must be small", _small),
    (
        "None of these",
        "`DAGSVC()`: the vote's accuracy, one machine a class less one, no option to "
        "set. The order of its list is not worth a search.",
    ),
)
TABLE = (
    "Geometric means over the sets of notebook 05 of cost as a multiple of the "
    "one-vs-one vote's, points of accuracy in the mean; the last column counts the "
    "sets on which a system was first of all in something."
)
OWN = """On your own data `compare` gives such a table in one line
([recipes](recipes.md)). [Notebook 05](05_head_to_head.ipynb) says how the numbers came
about."""
