"""The same answers elsewhere: `make matrix` asks for them in every place below and prints which differ.

A place is a set of environment variables, a number of jobs, or a folder. Answers are the labels and costs of every
estimator on small sets; in each place rows are also predicted one by one, permuted, and with other class names.
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
}  # fmt: skip
NAMES = """OneVsRestSVC MaxWinsSVC AndGateSVC DAGSVC AdaptiveDAGSVC BinaryTreeSVC DecisionTreeSVC DCSVC PosteriorSVC
ECOCSVC CrammerSingerSVC WestonWatkinsSVC""".split()


def answers() -> dict:
    """Every estimator's labels and mean cost on small sets, and where other ways to ask give other answers."""
    import numpy as np

    import dagsvm_lab

    found = {"odd": []}
    for name, rows in (("iris", 150), ("glass", 214), ("vowel", 528), ("usps", 400), ("letter", 500)):
        d = dagsvm_lab.load(name, scaled=True)
        X, y = d.X[:rows], d.y[:rows]
        half = np.arange(rows) % 3 > 0
        if name == "iris":
            half[:] = True
        renamed = np.unique(y, return_inverse=True)[1] * 7 - 3
        for system in NAMES:
            make = getattr(dagsvm_lab, system)
            jobs = int(os.environ.get("MATRIX_JOBS", 1))
            options = {"C": 10, "gamma": 0.01 if name == "usps" else 0.5, "n_jobs": jobs, "random_state": 0}
            options = {key: value for key, value in options.items() if key in make().get_params()}
            est = make(**options).fit(X[half], y[half])
            labels = est.predict(X)
            found[f"{system} {name}"] = labels.tolist()
            if hasattr(est, "predict_with_cost"):
                found[f"{system} {name} cost"] = est.predict_with_cost(X)[1].binary_decisions.tolist()
            order = np.random.default_rng(0).permutation(rows)
            ways = {
                "row by row": [est.predict(X[k : k + 1])[0] for k in range(0, rows, 9)] == labels[::9].tolist(),
                "permuted rows": est.predict(X[order]).tolist() == labels[order].tolist(),
                "other names": make(**options).fit(X[half], renamed[half]).predict(X).tolist()
                == [
                    dict(zip(y[half].tolist(), renamed[half].tolist(), strict=True))[label] for label in labels.tolist()
                ],
            }
            found["odd"] += [f"{system} {name}: {way}" for way, same in ways.items() if not same]
    return found


def ask(place: dict) -> dict:
    """The answers of a new process in that place."""
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT
        if name := place.get("MATRIX_FOLDER"):
            root = Path(folder, name)
            shutil.copytree(ROOT / "dagsvm_lab", root / "dagsvm_lab")
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(root)} | place
        command = [sys.executable, str(Path(__file__)), "--answers"]
        run = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {"odd": [run.stderr.splitlines()[-1]]}


def main(chosen: list[str]) -> int:
    """Print the table, or its rows for the chosen places; 1 if any answer differs."""
    here, differ = ask(PLACES["this one"]), 0
    print("| place | labels and costs | of them differ | odd ways |\n| --- | --- | --- | --- |")
    for name, place in PLACES.items():
        if chosen and name not in chosen:
            continue
        there = ask(place) if place else here
        asked = {key: values for key, values in here.items() if key != "odd"}
        other = [f"{key}, row {k}" for key, values in asked.items()
                 for k, value in enumerate(values) if there.get(key, [None] * len(values))[k] != value]  # fmt: skip
        differ += len(other) + len(there["odd"])
        print(f"| {name} | {sum(map(len, asked.values()))} | {len(other)} | {len(there['odd'])} |", flush=True)
        print("".join(f"  {line}\n" for line in [*other, *there["odd"]]), end="", file=sys.stderr)
    return int(differ > 0)


if __name__ == "__main__":
    if "--answers" in sys.argv:
        print(json.dumps(answers()))
    else:
        sys.exit(main(sys.argv[1:]))
