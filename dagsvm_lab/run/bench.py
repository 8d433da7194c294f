"""Our solvers against their peers, in one run on the same data: LIBSVM and, where installed, oneDAL.

Seconds are wall-clock, the best of some repeats; a ratio is ours over the peer's. `solvers` measures training and
prediction, `scaling` how training time grows with the rows (Platt's Eqs. 1 and 2) and with the number of classes.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from ..datasets import load
from ..kernels import Kernel, gamma_from_sigma
from ..machines import pair_code, train
from ..report.files import project_root, write_atomically
from ..systems import DAGSVC, MaxWinsSVC, OneVsRestSVC

CASES = {"usps": (5.06, 100.0), "letter": (0.632, 100.0), "covertype": (1.0, 10.0), "mnist": (1.0, 10.0)}  # sigma, C
TARGETS = {"fit": 1.0, "fit, 2 jobs": 0.6, "fit 1-v-r": 0.3, "fit 1-v-r, 2 jobs": 0.3}
TARGETS |= {"predict, max wins": 0.1, "predict, dag": 0.1}
SAMPLED = 20_000  # Covertype's test rows that the peers predict
CACHE = 2000  # MB, for LIBSVM
PROBED = 10  # pairs whose objectives are compared with LIBSVM's


def best(run: Callable[[], object], patience: float = 6.0, most: int = 3) -> float:
    """Fewest seconds of up to `most` runs, within about `patience` seconds in all."""
    found: list[float] = []
    while len(found) < most and sum(found) < patience:
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def onedal() -> type | None:
    """oneDAL's SVC from scikit-learn-intelex, or None where it is not installed."""
    try:
        from sklearnex.svm import SVC as peer
    except ImportError:
        return None
    return peer


def measure(name: str) -> list[dict]:
    """Rows (dataset, task, seconds of every party) of one data set."""
    d = load(name, scaled=True)
    sigma, C = CASES[name]
    both = dict(C=C, gamma=gamma_from_sigma(sigma))
    X, y = d.X_train.astype(float), d.y_train
    T = d.X_test.astype(float)
    if len(T) > SAMPLED:
        T = T[np.sort(np.random.default_rng(0).choice(len(T), SAMPLED, replace=False))]
    rows: list[dict] = []

    def note(task: str, **seconds: float) -> None:
        rows.append({"dataset": name, "task": task, **seconds})

    peers = {"libsvm_s": SVC(**both, cache_size=CACHE)}
    if onedal() is not None:
        peers["onedal_s"] = onedal()(**both)
    fit = {who: best(lambda est=est: est.fit(X, y)) for who, est in peers.items()}
    predict = {who: best(lambda est=est: est.predict(T)) for who, est in peers.items()}
    for jobs, task in ((1, "fit"), (2, "fit, 2 jobs")):
        ours = MaxWinsSVC(**both, n_jobs=jobs)
        note(f"{task}, first call", **fit, ours_s=best(lambda est=ours: est.fit(X, y), most=1))
        note(task, **fit, ours_s=best(lambda est=ours: est.fit(X, y)))
    note("predict, max wins", **predict, ours_s=best(lambda: ours.predict(T)))
    dag = DAGSVC(**both, n_jobs=2).fit(X, y)
    note("predict, dag", **predict, ours_s=best(lambda: dag.predict(T)))
    if len(T) < len(d.X_test):
        every = d.X_test.astype(float)
        note("predict, dag, all test rows", ours_s=best(lambda: dag.predict(every), most=1))
    theirs = best(lambda: OneVsRestClassifier(SVC(**both, cache_size=CACHE)).fit(X, y))
    for jobs, task in ((1, "fit 1-v-r"), (2, "fit 1-v-r, 2 jobs")):
        rest = OneVsRestSVC(**both, n_jobs=jobs)
        note(task, libsvm_s=theirs, ours_s=best(lambda est=rest: est.fit(X, y)))
    return rows


def agreement(name: str) -> tuple[float, float]:
    """(largest relative difference of dual objectives from LIBSVM's, largest violation) of some pairs at tol 1e-5."""
    d = load(name, scaled=True)
    sigma, C = CASES[name]
    classes, codes = np.unique(d.y_train, return_inverse=True)
    code, worst, violation = pair_code(len(classes)), 0.0, 0.0
    for row in code[:: max(1, len(code) // PROBED)]:
        rows = np.flatnonzero(row[codes])
        X, s = d.X_train[rows].astype(float), row[codes[rows]]
        peer = SVC(C=C, gamma=gamma_from_sigma(sigma), tol=1e-5, cache_size=CACHE).fit(X, s)
        beta = peer.dual_coef_[0]
        ours = train(X, (s < 0).astype(int), pair_code(2), Kernel("rbf", peer.gamma), C, tol=1e-5)
        K = ours.kernel(X[peer.support_], X[peer.support_])
        objective = 0.5 * beta @ K @ beta - np.abs(beta).sum()
        worst = max(worst, abs(ours.objective[0] - objective) / abs(objective))
        violation = max(violation, float(ours.kkt_violation[0]))
    return worst, violation


def peak_memory_of_rest(name: str = "mnist") -> float:
    """Peak memory, in GB, of a process that trains one-versus-rest on the data set."""
    text = (
        "import resource; from dagsvm_lab import OneVsRestSVC, load; "
        f"d = load({name!r}, scaled=True); sigma, C = {CASES[name]!r}; "
        "OneVsRestSVC(C=C, gamma=1 / (2 * sigma**2)).fit(d.X_train, d.y_train); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return int(out.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024) / 1e9


def growth(over: str = "rows", sizes=None, repeats: int = 3, seed: int = 0) -> pd.DataFrame:
    """Time ours and LIBSVM's on made data that grows in one way.

    Parameters
    ----------
    over : {"rows", "classes", "inputs"}
        What grows: rows of 10 classes and 16 inputs, classes of 30 rows each, or inputs of 2,000 rows.
    sizes : sequence of int, optional
        The sizes to time; by default those of `GROWTH`.
    repeats : int, default 3
        The fewest seconds of so many runs are kept.
    seed : int, default 0
        Seed of the made data.

    Returns
    -------
    DataFrame
        One row a size: over, size, and seconds of ours and libsvm's: fit_ours, fit_libsvm, predict_ours (Max Wins,
        1,000 rows), predict_libsvm, one_row_ours (DAG), one_row_votes, one_row_libsvm; memory_ours, memory_libsvm
        in MB (peak of the fit above the data).
    """
    raise NotImplementedError("comes with the next commits")


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with ratios, peers first, and whether each target is reached."""
    table = table.reindex(columns=["dataset", "task", "libsvm_s", "onedal_s", "ours_s"])
    table["of_libsvm"] = table["ours_s"] / table["libsvm_s"]
    table["of_onedal"] = table["ours_s"] / table["onedal_s"]
    table["target"] = table["task"].map(TARGETS)
    reached = table["of_libsvm"] <= table["target"]
    predicting = table["task"].str.startswith("predict") & table["of_onedal"].notna()
    reached &= ~predicting | (table["of_onedal"] <= 0.5)
    table["reached"] = reached.map({True: "yes", False: "no"}).where(
        table["target"].notna() & table["of_libsvm"].notna()
    )
    return table


def main(what: str = "solvers") -> int:
    """Exit code 0; prints the table of `what` as it grows, and writes it as CSV to runs/bench."""
    folder = project_root() / "runs" / "bench"

    def keep(table: pd.DataFrame, name: str) -> None:
        write_atomically(folder / f"{name}.csv", lambda part: table.to_csv(part, index=False))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if what == "scaling":
            from ..protocols.platt2000_training import pair_times, system_times

            table = pd.concat([pair_times([500, 1000, 2000, 4000, 8000]), system_times(range(2, 8), 3000)])
            keep(table, "scaling")
            print(table.round(3).to_string(index=False))
            return 0
        rows: list[dict] = []
        for name in CASES:
            rows += measure(name)
            table = judged(pd.DataFrame(rows))
            keep(table, "solvers")
            print(table[table["dataset"] == name].round(3).to_string(index=False, na_rep=""), flush=True)
            print("{}: objectives within {:.1e} of LIBSVM's, largest violation {:.1e}".format(name, *agreement(name)))
    print(f"one-versus-rest on mnist: {peak_memory_of_rest():.1f} GB at its peak")
    print("oneDAL: not installed" if onedal() is None else "oneDAL: scikit-learn-intelex")
    return 0
