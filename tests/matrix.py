"""The same answers elsewhere: `make matrix` asks everywhere and prints which differ.

A place is a set of environment variables, a number of jobs, or a folder. Answers are
the labels and costs of every estimator on small sets; in each place rows are also
predicted one by one, permuted, and with other class names. Then every notebook runs
there in its quick profile: what its checked cells show and what its tables make of the
papers' claims and cells are answers too. `make matrix ARGS="Zen 'LANG=C'"` chooses
places, NOTEBOOKS=02,04 notebooks.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL"
PLACES = {
    "this one": {},
    "this one, again": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "two BLAS threads": {"OPENBLAS_NUM_THREADS": "2"},
    "NumPy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": NO_512},
    "NumPy without AVX2": {"NPY_DISABLE_CPU_FEATURES": f"AVX2 FMA3 {NO_512}"},
    "n_jobs = 2": {"MATRIX_JOBS": "2"},
    "hash seed 0": {"PYTHONHASHSEED": "0"},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "Auckland, German": {"TZ": "Pacific/Auckland", "LANG": "de_DE.UTF-8"},
    "LANG=C": {"LANG": "C", "LC_ALL": "C"},
    "a path with spaces and umlauts": {"MATRIX_FOLDER": "ein Ordner für Äpfel"},
}
CLOCKED = {  # verdicts on seconds, which differ from run to run: no answers
    "verdict": "don-faster|yu-tuning-time",
    "inferred_verdict": "platt-superlinear|platt-exponent|platt-time-|platt-training-",
}
NOTEBOOKS = os.environ.get("NOTEBOOKS", "00,01,02,03,04,05").split(",")
NAMES = """OneVsRestSVC MaxWinsSVC AndGateSVC DAGSVC AdaptiveDAGSVC BinaryTreeSVC
DecisionTreeSVC DCSVC PosteriorSVC ECOCSVC CrammerSingerSVC WestonWatkinsSVC
FilteredDAGSVC""".split()


def answers() -> dict:
    """Every estimator's labels and mean cost on small sets.

    And where other ways to ask give other answers.
    """
    import numpy as np

    import dagsvm_lab

    found = {"odd": []}
    for name, rows in (
        ("iris", 150),
        ("glass", 214),
        ("vowel", 528),
        ("usps", 400),
        ("letter", 500),
    ):
        d = dagsvm_lab.load(name, scaled=True)
        X, y = d.X[:rows], d.y[:rows]
        half = np.arange(rows) % 3 > 0
        if name == "iris":
            half[:] = True
        renamed = np.unique(y, return_inverse=True)[1] * 7 - 3
        for system in NAMES:
            make = getattr(dagsvm_lab, system)
            jobs = int(os.environ.get("MATRIX_JOBS", 1))
            options = {
                "C": 10,
                "gamma": 0.01 if name == "usps" else 0.5,
                "n_jobs": jobs,
                "random_state": 0,
            }
            options = {
                key: value
                for key, value in options.items()
                if key in make().get_params()
            }
            est = make(**options).fit(X[half], y[half])
            labels = est.predict(X)
            found[f"{system} {name}"] = labels.tolist()
            if hasattr(est, "predict_with_cost"):
                found[f"{system} {name} cost"] = est.predict_with_cost(X)[
                    1
                ].binary_decisions.tolist()
            order = np.random.default_rng(0).permutation(rows)
            ways = {
                "row by row": [est.predict(X[k : k + 1])[0] for k in range(0, rows, 9)]
                == labels[::9].tolist(),
                "permuted rows": est.predict(X[order]).tolist()
                == labels[order].tolist(),
                "other names": make(**options)
                .fit(X[half], renamed[half])
                .predict(X)
                .tolist()
                == [
                    dict(zip(y[half].tolist(), renamed[half].tolist(), strict=True))[
                        label
                    ]
                    for label in labels.tolist()
                ],
            }
            found["odd"] += [
                f"{system} {name}: {way}" for way, same in ways.items() if not same
            ]
    return found


def papers(root: Path, environment: dict, out: Path) -> dict:
    """What checked cells and tables' verdicts say, after a quick run into `out`."""
    import nbformat

    from dagsvm_lab.papers import scorecard

    only = [word for name in NOTEBOOKS for word in ("--only", name)]
    jobs = ["-p", "n_jobs", environment.get("MATRIX_JOBS", "1")]
    command = [
        sys.executable,
        "-m",
        "dagsvm_lab",
        "papers",
        "--out",
        str(out),
        *only,
        *jobs,
    ]
    run = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True
    )
    if run.returncode:
        return {"odd": run.stdout.splitlines()[-1:]}
    table = scorecard(out)
    found = {
        "verdicts": [
            word
            for column, ids in CLOCKED.items()
            for word in table[column][~table["id"].str.match(ids)]
        ]
    }
    for path in sorted(out.glob("*.ipynb")):
        cells = [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
        cells = [
            c
            for c in cells
            if not {"nbval-ignore-output", "parameters"} & {*c.metadata.get("tags", ())}
        ]
        found[f"cells of {path.stem[:2]}"] = [shown(cell.outputs) for cell in cells]
    return found


def shown(outputs: list) -> list:
    """What can be read in a cell's outputs: text and tables, no pictures."""
    data = [o.get("data", {}) for o in outputs]
    return [
        o.get("text", "") + d.get("text/html", d.get("text/plain", ""))
        for o, d in zip(outputs, data, strict=True)
    ]


def ask(place: dict) -> dict:
    """The answers of a new process in that place."""
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT
        if name := place.get("MATRIX_FOLDER"):
            root = Path(folder, name)
            for part in ("dagsvm_lab", "notebooks", "figures"):
                shutil.copytree(ROOT / part, root / part)
            shutil.copy(ROOT / "pyproject.toml", root)
        environment = (
            os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)} | place
        )
        command = [sys.executable, str(Path(__file__)), "--answers"]
        run = subprocess.run(
            command, env=environment, cwd=root, capture_output=True, text=True
        )
        if run.returncode:
            return {"odd": [run.stderr.splitlines()[-1]]}
        found = json.loads(run.stdout.splitlines()[-1])
        more = papers(root, environment, Path(folder, "out"))
    return found | more | {"odd": found["odd"] + more.get("odd", [])}


def kind(key: str) -> str:
    """The column of the table that an answer is counted in."""
    return (
        key.split()[0] if key.startswith(("verdicts", "cells")) else "labels and costs"
    )


def main(chosen: list[str]) -> int:
    """Print the table, or its rows for the chosen places; 1 if any answer differs."""
    here, differ = ask(PLACES["this one"]), 0
    kinds = ("labels and costs", "cells", "verdicts")
    print("| place | " + " | ".join(f"{word} | differ" for word in kinds) + " | odd |")
    print("| --- " * (2 * len(kinds) + 2) + "|")
    for name, place in PLACES.items():
        if chosen and name not in chosen:
            continue
        there = here if name == "this one" else ask(place)
        count, other = dict.fromkeys(kinds, 0), {word: [] for word in kinds}
        for key, values in here.items():
            if key != "odd":
                theirs = there.get(key, [None] * len(values))
                count[kind(key)] += len(values)
                other[kind(key)] += [
                    f"{key}, {k}"
                    for k, v in enumerate(values)
                    if k >= len(theirs) or theirs[k] != v
                ]
        differ += sum(map(len, other.values())) + len(there["odd"])
        counted = " | ".join(f"{count[word]} | {len(other[word])}" for word in kinds)
        print(f"| {name} | {counted} | {len(there['odd'])} |", flush=True)
        print(
            "".join(
                f"  {line}\n" for line in [*sum(other.values(), []), *there["odd"]]
            ),
            end="",
            file=sys.stderr,
        )
    return int(differ > 0)


if __name__ == "__main__":
    if "--answers" in sys.argv:
        print(json.dumps(answers()))
    else:
        sys.exit(main(sys.argv[1:]))
