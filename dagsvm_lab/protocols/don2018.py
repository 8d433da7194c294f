"""Experiments of Rathgamage Don and Iacob 2018: fourteen data sets under two protocols.

"as run" is what the printed numbers point to: e1071's defaults, its rule of constant columns, eleven tests of a tenth
of the rows, and of some sets another file than one would expect. "as it should be" scales on the training rows, tunes
C and gamma, and tests on a fifth, ten times. One bank a trial serves one-versus-one and DCSVM at every threshold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from sklearn.model_selection import StratifiedShuffleSplit

from ..datasets import DataError, load, standardise_like_training
from ..datasets.cards import card_of
from ..graphs import Ballot, costs, votes, won
from ..machines import Bank
from ..papers.common import stratified_split, timed
from ..systems import DCSVC
from ..systems.base import outputs

AS_RUN, AS_SHOULD = "as run", "as it should be"
PRINTED = (2.0, 1.0, 0.1, 0.01)  # thresholds of Tables 4 to 6, in per cent
THRESHOLDS = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
CS, GAMMAS = (1.0, 10.0, 100.0), (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # tuning grid; gamma in units of 1 / inputs
TUNED_ON = 1500  # rows that tuning sees at most
CACHE = 1000  # MB of kernel a worker may keep
TIMED = 10  # test rows whose decisions are timed


@dataclass(frozen=True)
class Source:
    """Where a set of Table 3 comes from: loader, options, part of the file, rows drawn; and its cheaper versions."""

    loader: str
    options: dict[str, Any] = field(default_factory=dict)
    part: str | None = None
    sample: int | None = None
    quick: int | None = None  # rows drawn in the quick profile
    trials: int | None = None  # of the full profile, where eleven or ten would take too long


RUN = {
    "artificial": Source("artificial", {"n_per_class": 500}, quick=900),
    "iris": Source("iris"),
    "segmentation": Source("segmentation", part="train"),
    "heart": Source("heart", {"drop_missing": True}),
    "wine": Source("wine"),
    "wine-quality": Source("winequality-red"),
    "glass": Source("glass", {"with_id": True}),
    "covertype": Source("covertype", sample=1430),
    "svmguide4": Source("svmguide4", part="train"),
    "vowel": Source("vowel", part="train"),
    "usps": Source("usps", part="test", quick=800),
    "letter": Source("letter", quick=1820, trials=4),
    "poker": Source("poker", quick=1200, trials=2),
    "sensorless": Source("sensorless", quick=1650, trials=2),
}
SHOULD = RUN | {
    "segmentation": Source("segmentation", quick=700),
    "glass": Source("glass"),
    "covertype": Source("covertype", sample=8000, quick=800, trials=5),
    "svmguide4": Source("svmguide4"),
    "vowel": Source("vowel"),
    "usps": Source("usps", quick=900, trials=5),
    "letter": Source("letter", quick=1560, trials=4),
    "poker": Source("poker", sample=8000, quick=800, trials=3),
    "sensorless": Source("sensorless", sample=22000, quick=1100, trials=3),
}
SOURCES = {AS_RUN: RUN, AS_SHOULD: SHOULD}
DATASETS = tuple(RUN)


@lru_cache(maxsize=4)
def rows_of(protocol: str, name: str, profile: str = "full") -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a set under a protocol; samples are drawn within classes, always the same."""
    source = SOURCES[protocol][name]
    d = load(source.loader, **source.options)
    X, y = (d.X, d.y) if source.part is None else (getattr(d, f"X_{source.part}"), getattr(d, f"y_{source.part}"))
    n = min(v for v in (source.sample, source.quick if profile == "quick" else None, len(y)) if v)
    if n < len(y):
        kept = stratified_split(y, n / len(y))[0]
        kept = np.sort(np.concatenate([kept, _missing(y, kept)]))
        X, y = X[kept], y[kept]
    return np.asarray(X, dtype=np.float64), y


def _missing(y: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Rows to add so that every class has three: training and testing need some of each."""
    out = np.ones(len(y), dtype=bool)
    out[kept] = False
    more = [np.flatnonzero(out & (y == c))[: max(0, 3 - int(np.sum(y[kept] == c)))] for c in np.unique(y)]
    return np.concatenate(more)


def available(names: Iterable[str]) -> list[str]:
    """Those of the sets that can be loaded here."""
    return [name for name in names if _is_here(RUN[name].loader)]


@cache
def _is_here(loader: str) -> bool:
    try:
        return card_of(loader).where != "fetched" or load(loader) is not None
    except DataError:
        return False


def splits(protocol: str, y: np.ndarray, trials: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of each trial: a tenth tested "as run", a fifth as the paper says and it should be."""
    share = 0.1 if protocol == AS_RUN else 0.2
    return list(StratifiedShuffleSplit(trials, test_size=share, random_state=seed).split(y, y))


def trials_of(protocol: str, name: str, profile: str) -> int:
    """How many trials: eleven "as run", ten otherwise; three in the quick profile; fewer of the largest sets."""
    if profile == "quick":
        return 3
    return SOURCES[protocol][name].trials or (11 if protocol == AS_RUN else 10)


def e1071_scaled(X: np.ndarray, *others: np.ndarray) -> tuple:
    """X and the others as e1071's svm() scales them: standardised, or left alone if one column of X is constant."""
    width = X.std(axis=0, ddof=1)
    return tuple((A - X.mean(axis=0)) / width if (width > 0).all() else A for A in (X, *others))


def tuned(X: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, float]:
    """C and gamma with the best three-fold accuracy of one-versus-one."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    if len(y) > TUNED_ON:
        kept = next(StratifiedShuffleSplit(1, train_size=TUNED_ON, random_state=seed).split(y, y))[0]
        X, y = X[kept], y[kept]
    common = np.isin(y, [c for c in np.unique(y) if np.sum(y == c) >= 3])
    grid = {"C": CS, "gamma": [g / X.shape[1] for g in GAMMAS]}
    search = GridSearchCV(SVC(), grid, cv=StratifiedKFold(3, shuffle=True, random_state=seed))
    return search.fit(X[common], y[common]).best_params_


def built_in(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, **settings) -> np.ndarray:
    """Labels by LIBSVM's own one-versus-one, all machines on the same inputs."""
    from sklearn.svm import SVC

    return SVC(cache_size=CACHE, **settings).fit(X, y).predict(X_test)


def one_by_one(bank: Bank, X: np.ndarray, paths: sparse.csr_matrix) -> float:
    """Seconds a decision when each row asks the machines on its path one after the other, as R's predict() would."""

    def decide() -> None:
        for row, machines in zip(X, np.split(paths.indices, paths.indptr[1:-1]), strict=True):
            for t in machines:
                bank.decision(row[None], t)

    return timed(decide)[1] / len(X)


def trial(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, settings: dict[str, Any], scale_pairs: bool,
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[dict]:  # fmt: skip
    """A record for the built-in method, one-versus-one and DCSVM at each threshold (per cent): hits, steps, SVs."""
    n = len(y_test)
    A, B = e1071_scaled(X, X_test) if scale_pairs else (X, X_test)
    said = [{"method": "builtin", "n_test": n, "hits": int(np.sum(built_in(A, y, B, **settings) == y_test))}]
    est = DCSVC(scale_pairs=scale_pairs, cache_size=CACHE, **settings).fit(X, y)
    f = np.concatenate(list(outputs(est.machines_, X_test)))
    systems = [("ovo", np.nan, Ballot(est.machines_.code, votes, won))]
    systems += [("dcsvm", t, est.with_threshold(t / 100).graph_) for t in thresholds]
    for method, threshold, graph in systems:
        labels, paths, _ = graph.run(f)
        cost = costs(paths, est.machines_.coef)
        clock = method == "ovo" or threshold == PRINTED[-1]
        said.append({
            "method": method, "threshold_pct": threshold,
            "n_test": n, "hits": int(np.sum(est.classes_[labels] == y_test)),
            "steps": cost.binary_decisions.mean(), "support_vectors": cost.support_vectors.mean(),
            "separation_pct": np.nan if method == "ovo" else 100 * est.separation(threshold / 100),
            "seconds": one_by_one(est.machines_, X_test[:TIMED], paths[:TIMED]) if clock else np.nan,
        })  # fmt: skip
    return said


def _trial_of(protocol: str, name: str, k: int, profile: str, seed: int, settings: dict) -> list[dict]:
    X, y = rows_of(protocol, name, profile)
    train, test = splits(protocol, y, trials_of(protocol, name, profile), seed)[k]
    A, B = X[train], X[test]
    if protocol == AS_SHOULD:
        A, B = standardise_like_training(A, B)
    said = trial(A, y[train], B, y[test], settings, scale_pairs=protocol == AS_RUN)
    case = {"protocol": protocol, "dataset": name, "classes": len(np.unique(y)), "rows": len(y), "trial": k}
    return [case | line for line in said]


def settings_of(protocol: str, name: str, profile: str, seed: int) -> dict[str, float]:
    """C and gamma: e1071's defaults, or those tuned on the first trial's training rows."""
    X, y = rows_of(protocol, name, profile)
    if protocol == AS_RUN:
        return {"C": 1.0, "gamma": 1 / X.shape[1]}
    train, test = splits(protocol, y, trials_of(protocol, name, profile), seed)[0]
    return tuned(standardise_like_training(X[train])[0], y[train], seed)


def spread(function: Callable, jobs: Iterable[tuple], n_jobs: int) -> list:
    """function(*job) of every job, over n_jobs processes."""
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A worker stopped")  # it is replaced, nothing is lost
        return Parallel(batch_size=1)(delayed(function)(*job) for job in jobs)


def settings(
    names: Sequence[str], profile: str, seed: int = 0, n_jobs: int = 2, known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """C and gamma of every set under both protocols; rows of `known` are taken over instead of tuned."""
    cases = [(protocol, name) for name in names for protocol in SOURCES]
    old = {} if known is None else {(line.protocol, line.dataset): (line.C, line.gamma) for line in known.itertuples()}
    new = [case for case in cases if case not in old]
    found = spread(settings_of, [(*case, profile, seed) for case in new], n_jobs)
    old |= {case: (s["C"], s["gamma"]) for case, s in zip(new, found, strict=True)}
    return pd.DataFrame([(*case, *old[case]) for case in cases], columns=["protocol", "dataset", "C", "gamma"])


def run(chosen: pd.DataFrame, profile: str, seed: int = 0, n_jobs: int = 2) -> pd.DataFrame:
    """A record for each trial, method and threshold of each set and protocol in `chosen`, the slowest trials first."""
    slow = ["sensorless", "poker", "letter", "usps", *DATASETS]
    jobs = [
        (line.protocol, line.dataset, k, profile, seed, {"C": line.C, "gamma": line.gamma})
        for line in sorted(chosen.itertuples(), key=lambda line: slow.index(line.dataset))
        for k in range(trials_of(line.protocol, line.dataset, profile))
    ]
    return pd.DataFrame([line for lines in spread(_trial_of, jobs, n_jobs) for line in lines])


def summary(records: pd.DataFrame) -> pd.DataFrame:
    """A row a protocol, set, method and threshold: trials, pooled test rows and accuracy, mean cost a decision."""
    keys = ["protocol", "dataset", "classes", "rows", "method", "threshold_pct"]
    mean = ["steps", "support_vectors", "separation_pct", "seconds"]
    groups = records.groupby(keys, dropna=False, sort=False)
    table = groups.agg(trials=("trial", "nunique"), n_test=("n_test", "sum"), hits=("hits", "sum"))
    table["accuracy_pct"] = 100 * table["hits"] / table["n_test"]
    return table.join(groups[mean].mean()).drop(columns="hits").reset_index()


def tables3to6(summed: pd.DataFrame, protocol: str, printed: pd.DataFrame) -> pd.DataFrame:
    """Tables 3 to 6 in the paper's columns and rows; a set that is not here has no numbers."""
    mine = summed[summed["protocol"] == protocol].set_index(["dataset", "method"])
    rows = []
    for no, name in printed[["no", "dataset"]].itertuples(index=False):
        row: dict[str, Any] = {"no": no, "dataset": name}
        if name in mine.index.get_level_values(0):
            row["classes"] = mine.loc[(name, "ovo"), "classes"].item()
            for method in ("builtin", "ovo"):
                row[f"acc_{method}"] = mine.loc[(name, method), "accuracy_pct"].item()
            dcsvm = mine.loc[[(name, "dcsvm")]].set_index("threshold_pct")
            for short, column in {"acc": "accuracy_pct", "steps": "steps", "sv": "support_vectors"}.items():
                row |= {f"{short}_{t:g}": dcsvm.loc[t, column] for t in PRINTED}
        rows.append(row)
    table = pd.DataFrame(rows).reindex(columns=printed.columns).round(2)
    return table.astype({"classes": "Int64"})


def tested(summed: pd.DataFrame, protocol: str) -> dict[str, int]:
    """Pooled test rows of each set."""
    mine = summed[(summed["protocol"] == protocol) & (summed["method"] == "ovo")]
    return dict(zip(mine["dataset"], mine["n_test"].tolist(), strict=True))


def figure9(summed: pd.DataFrame) -> pd.DataFrame:
    """Letter's accuracy "as run" by method and threshold; a method without a threshold is repeated at each."""
    mine = summed[(summed["protocol"] == AS_RUN) & (summed["dataset"] == "letter")]
    rows = [
        (line.method, t, line.accuracy_pct)
        for line in mine.itertuples()
        for t in (THRESHOLDS if line.method != "dcsvm" else (line.threshold_pct,))
    ]
    return pd.DataFrame(rows, columns=["method", "threshold_pct", "accuracy_pct"])
