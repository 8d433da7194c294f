"""Our solvers against their peers, in one run on the same data.

Peers are LIBSVM and, where installed, oneDAL; a ratio is ours over the peer's.
`solvers` measures training and prediction on large sets, `small` on the collection's
small ones, a single row included, and `growth` how both grow with rows, classes and
inputs. resources.py says how seconds and memory are measured.
"""

import warnings
from contextlib import suppress
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..datasets import load
from ..files import project_root, write_csv
from ..kernels import gamma_from_sigma
from ..systems import (
    DAGSVC,
    DCSVC,
    AdaptiveDAGSVC,
    FilteredDAGSVC,
    MaxWinsSVC,
    OneVsRestSVC,
)
from .resources import PEER_CACHE, best, compare, peak_memory

CASES = {  # sigma, C
    "usps": (5.06, 100.0),
    "letter": (0.632, 100.0),
    "covertype": (1.0, 10.0),
    "mnist": (1.0, 10.0),
}
TARGETS = {
    "fit": 1.0,
    "fit, 2 jobs": 0.6,
    "fit 1-v-r": 0.3,
    "fit 1-v-r, 2 jobs": 0.3,
    "predict, max wins": 0.1,
    "predict, dag": 0.1,
}
SAMPLED = 20_000  # Covertype's test rows that the peers predict
SMALL_SETS = "iris wine glass vowel vehicle segment optdigits pendigits letter".split()
GROWTH = {
    "rows": (100, 300, 1000, 3000, 10_000, 30_000, 60_000),
    "classes": (2, 5, 10, 20, 50, 100),
    "inputs": (2, 8, 32, 128, 400, 800),
}
TASKS = ("fit", "predict", "one_row")
ANSWERED = {  # C, gamma; inputs are scaled to [-1, 1] but for USPS
    "letter": (16.0, 2.0),
    "usps": (100.0, gamma_from_sigma(5.06)),
    "optdigits": (4.0, 0.03),
    "pendigits": (8.0, 0.25),
}
ASKED_ALONE = 150  # rows that are asked one by one
PROBED = 10  # pairs whose objectives are compared with LIBSVM's


def case(name: str) -> tuple:
    """One of the large data sets, and what estimators are given on it."""
    sigma, C = CASES[name]
    settings = {"C": C, "gamma": gamma_from_sigma(sigma)}
    return load(name, scaled=True), settings


def measure(name: str) -> list[dict]:
    """Rows (dataset, task, seconds of every party) of one data set."""
    d, settings = case(name)
    X = d.X_train.astype(float)
    y = d.y_train
    tasks = _pair_tasks(X, y, d.X_test.astype(float), settings)
    tasks |= _rest_tasks(X, y, settings)
    about = {"dataset": name}
    return [about | {"task": task} | seconds for task, seconds in tasks.items()]


def _pair_tasks(X, y, every, settings: dict) -> dict[str, dict]:
    """Seconds of fits one-vs-one and of predictions, for test rows `every`."""
    order = np.random.default_rng(0).permutation(len(every))
    T = every[np.sort(order[:SAMPLED])]
    peers = {"libsvm_s": SVC(**settings, cache_size=PEER_CACHE)}
    with suppress(ImportError):  # scikit-learn-intelex is not installed
        from sklearnex.svm import SVC as OneDAL

        peers["onedal_s"] = OneDAL(**settings)
    fit = {who: best(est.fit, X, y) for who, est in peers.items()}
    predict = {who: best(est.predict, T) for who, est in peers.items()}
    tasks: dict[str, dict] = {}
    for jobs, task in ((1, "fit"), (2, "fit, 2 jobs")):
        votes = MaxWinsSVC(**settings, n_jobs=jobs)
        first = best(votes.fit, X, y, most=1)
        tasks[f"{task}, first call"] = fit | {"ours_s": first}
        tasks[task] = fit | {"ours_s": best(votes.fit, X, y)}
    tasks["predict, max wins"] = predict | {"ours_s": best(votes.predict, T)}
    dag = DAGSVC(**settings, n_jobs=2).fit(X, y)
    tasks["predict, dag"] = predict | {"ours_s": best(dag.predict, T)}
    if len(T) < len(every):
        seconds = best(dag.predict, every, most=1)
        tasks["predict, dag, all test rows"] = {"ours_s": seconds}
    return tasks


def _rest_tasks(X, y, settings: dict) -> dict[str, dict]:
    """Seconds of fits one-vs-rest."""
    libsvm = OneVsRestClassifier(SVC(**settings, cache_size=PEER_CACHE))
    theirs = best(libsvm.fit, X, y)
    tasks = {}
    for jobs, task in ((1, "fit 1-v-r"), (2, "fit 1-v-r, 2 jobs")):
        rest = OneVsRestSVC(**settings, n_jobs=jobs)
        tasks[task] = {"libsvm_s": theirs, "ours_s": best(rest.fit, X, y)}
    return tasks


def agreement(name: str) -> tuple[float, float]:
    """How far some pairs at tol 1e-5 are from LIBSVM's.

    Returns the largest relative difference of dual objectives, and the largest
    violation.
    """
    d, settings = case(name)
    pairs = list(combinations(np.unique(d.y_train), 2))
    found = []
    for pair in pairs[:: max(1, len(pairs) // PROBED)]:
        rows = np.isin(d.y_train, pair)
        X = d.X_train[rows].astype(float)
        y = d.y_train[rows]
        peer = SVC(**settings, tol=1e-5, cache_size=PEER_CACHE)
        peer.fit(X, y == pair[0])
        ours = MaxWinsSVC(**settings, tol=1e-5).fit(X, y).machines_
        support = X[peer.support_]
        beta = peer.dual_coef_[0]
        K = ours.kernel(support, support)
        objective = 0.5 * beta @ K @ beta - np.abs(beta).sum()
        difference = abs(ours.objective[0] - objective) / abs(objective)
        found.append((difference, ours.kkt_violation[0]))
    return tuple(np.max(found, axis=0))


def small(names=SMALL_SETS, repeats: int = 15) -> pd.DataFrame:
    """Compare ours with LIBSVM on standardised sets.

    One job, gamma 1 / inputs, C of 1 and 100.
    """
    rows = []
    for name in names:
        d = load(name)
        X = StandardScaler().fit_transform(d.X_train)
        T = X[np.arange(1000) % len(X)]
        times = repeats if len(X) < 3000 else 3
        for C in (1.0, 100.0):
            row = compare(X, d.y_train, T, times, C=C, gamma=1 / X.shape[1])
            rows.append({"dataset": name, "rows": len(X), "C": C} | row)
    table = pd.DataFrame(rows)
    for task in TASKS:
        ours = table[f"{task}_ours"]
        libsvm = table[f"{task}_libsvm"]
        table[f"{task}_ratio"] = ours / libsvm
    return table


def answers(names=tuple(ANSWERED), repeats: int = 5) -> pd.DataFrame:
    """Time what graphs over one bank answer: a row a set and system.

    Seconds of the test rows as a batch, and of a row asked alone; both also over those
    of Max Wins and of LIBSVM. Beside them the kernel evaluations over Max Wins'.
    """
    rows = []
    for name in names:
        C, gamma = ANSWERED[name]
        d = load(name, scaled=name != "usps")
        X = d.X_train.astype(float)
        T = d.X_test.astype(float)
        votes = MaxWinsSVC(C=C, gamma=gamma).fit(X, d.y_train)
        libsvm = SVC(C=C, gamma=gamma, cache_size=PEER_CACHE).fit(X, d.y_train)
        systems = [DAGSVC(), AdaptiveDAGSVC(), DCSVC(threshold=0.02), FilteredDAGSVC()]
        for est in systems:
            est.fit_over(votes.machines_, X, d.y_train)
        for est in (libsvm, votes, *systems):
            row = {"dataset": name, "system": type(est).__name__}
            row |= _answer_seconds(est, T, repeats)
            if est is not libsvm:
                cost = est.predict_with_cost(T)[1]
                row["evaluations"] = cost.kernel_evaluations.mean()
            rows.append(row)
    return _over_peers(pd.DataFrame(rows).set_index(["dataset", "system"]))


def _over_peers(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with seconds and evaluations over those of Max Wins and LIBSVM."""
    seconds = table[["batch_s", "row_s"]]
    for name, peer in (("max_wins", "MaxWinsSVC"), ("libsvm", "SVC")):
        of_peer = seconds.xs(peer, level="system").reindex(table.index, level=0)
        table[[f"batch_of_{name}", f"row_of_{name}"]] = seconds / of_peer
    votes = table["evaluations"].xs("MaxWinsSVC", level="system")
    table["evaluations"] /= votes.reindex(table.index, level=0)
    return table.reset_index()


def _answer_seconds(est, T: np.ndarray, repeats: int) -> dict[str, float]:
    """Seconds of a batch, and of a row asked alone."""
    n = min(ASKED_ALONE, len(T))
    rows = np.split(T[:n], n)

    def alone() -> None:
        for row in rows:
            est.predict(row)

    alone()
    return {
        "batch_s": best(est.predict, T, most=repeats),
        "row_s": best(alone, most=repeats) / n,
    }


def made(
    rows: int, classes: int, inputs: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of normal classes, all of the same number of rows.

    About one row in fifty is on another class's side.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    used = min(inputs, 8)  # inputs in which the classes differ
    places = rng.normal(size=(classes, used))
    places *= 2.0 * classes**0.25 / np.sqrt(used)
    X = rng.normal(size=(rows, inputs))
    X[:, :used] += 2.0 * places[y]
    return X, y


def growth(
    over: str = "rows", sizes=None, repeats: int = 3, seed: int = 0
) -> pd.DataFrame:
    """Time ours and LIBSVM's on made data that grows in one way, a row a size.

    What grows are "rows" of 10 classes and 16 inputs, "classes" of 30 rows each, or
    "inputs" of 2,000 rows; by default through the sizes of `GROWTH`. Columns are those
    of `compare` (Max Wins fits, and predicts 1,000 rows; a DAG and Max Wins one row),
    and memory_ours and memory_libsvm in MB: the peak of a fit above what was there (not
    a number where processes cannot fork).
    """
    if over not in GROWTH:
        raise ValueError(f"over must be one of {', '.join(GROWTH)}, not {over!r}")
    rows = []
    for size in GROWTH[over] if sizes is None else sizes:
        shapes = {
            "rows": (size, 10, 16),
            "classes": (30 * size, size, 16),
            "inputs": (2000, 10, size),
        }
        n, classes, inputs = shapes[over]
        X, y = made(n, classes, inputs, seed)
        T, _ = made(1000, classes, inputs, seed)
        settings = {"C": 10.0, "gamma": 0.5 / inputs}
        row = {"over": over, "size": size} | compare(X, y, T, repeats, **settings)
        for who, family in (("ours", MaxWinsSVC), ("libsvm", SVC)):
            est = family(**settings)
            row[f"memory_{who}"] = peak_memory(partial(est.fit, X, y))
        rows.append(row)
    return pd.DataFrame(rows)


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with ratios, peers first, and whether each target is reached."""
    table = table.reindex(columns=["dataset", "task", "libsvm_s", "onedal_s", "ours_s"])
    for peer in ("libsvm", "onedal"):
        table[f"of_{peer}"] = table["ours_s"] / table[f"{peer}_s"]
    table["target"] = table["task"].map(TARGETS)
    predicting = table["task"].str.startswith("predict")
    slower = table["of_libsvm"] > table["target"]
    slower |= predicting & (table["of_onedal"] > 0.5)
    known = table["target"].notna() & table["of_libsvm"].notna()
    reached = slower.map({True: "no", False: "yes"})
    return table.assign(reached=reached.where(known))


def main(what: str = "solvers") -> int:
    """Print the tables of `what` as they grow; write them to runs/bench; return 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if what == "growth":
            for over in GROWTH:
                _keep(growth(over), f"growth_{over}")
        elif what == "small":
            table = small()
            _keep(table, "small")
            _print_means(table.filter(like="_ratio"))
        elif what == "answers":
            table = answers()
            _keep(table, "answers")
            for system, of_system in table.groupby("system", sort=False):
                _print_means(of_system.filter(like="_of_"), f"{system}, ")
        else:
            _solvers()
    return 0


def _print_means(ratios: pd.DataFrame, who: str = "") -> None:
    """Print the geometric mean of every column."""
    logarithms = np.log(ratios)
    means = np.exp(logarithms.mean()).round(2)
    print(f"{who}geometric means: {means.to_dict()}")


def _keep(table: pd.DataFrame, name: str) -> None:
    """Print a table, and write it as CSV to runs/bench."""
    path = project_root() / "runs" / "bench" / f"{name}.csv"
    write_csv(path, table)
    print(table.round(4).to_string(index=False, na_rep=""), flush=True)


def _solvers() -> None:
    """Measure the large sets, one after the other."""
    rows: list[dict] = []
    for name in CASES:
        rows += measure(name)
        _keep(judged(pd.DataFrame(rows)), "solvers")
        difference, violation = agreement(name)
        print(
            f"{name}: objectives within {difference:.1e} of LIBSVM's, violation "
            f"{violation:.1e}"
        )
    d, settings = case("mnist")
    rest = OneVsRestSVC(**settings)
    memory = peak_memory(partial(rest.fit, d.X_train, d.y_train))
    print(f"one-versus-rest on mnist: {memory / 1000:.1f} GB at its peak")
