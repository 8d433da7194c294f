"""All systems on common ground: the same rows, the same C and gamma, wherever possible the same machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from .. import systems as s
from ..datasets import load
from ..datasets.scaling import scale_like_training
from ..papers.common import slope, stratified_split, timed
from ..report.verdicts import claim_verdict
from ..systems.direct import CrammerSingerSVC, WestonWatkinsSVC

SIZES = {  # training rows at most: quick profile (0: left out), full profile
    "vowel": (528, 528), "vehicle": (423, 423), "glass": (0, 107), "segment": (460, 1155), "optdigits": (500, 3823),
    "pendigits": (500, 7494), "usps": (0, 3000), "letter": (0, 4000), "mnist": (0, 3000), "sensorless": (0, 3000),
    "covertype": (0, 1500),
}  # fmt: skip
TEST = 4000  # test rows at most
GRID = {"C": (1, 8, 64), "gamma": (0.25, 1, 4, 16)}  # gamma times the number of inputs
COSTS = ["kernel_evaluations", "support_vectors", "binary_decisions"]
MEASURED = [
    "test_rows",
    "accuracy_pct",
    "unclassified_pct",
    *COSTS,
    "machines",
    "size_kparameters",
    "train_s",
    "test_s",
]


@dataclass(frozen=True)
class Ground:
    """A data set cut and scaled for comparison: each input in [-1, 1] on the training rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def only(self, classes: np.ndarray) -> Ground:
        """The rows of these classes."""
        a, b = np.isin(self.y, classes), np.isin(self.y_test, classes)
        return Ground(self.name, self.X[a], self.y[a], self.X_test[b], self.y_test[b])


def ground(name: str, rows: int, seed: int = 0) -> Ground:
    """The data set's own split (where it has none, halves), of which at most `rows` train and TEST rows are drawn."""
    d = load(name)
    halves = stratified_split(d.y, 0.5, seed)
    parts = [(d.X[h], d.y[h]) for h in halves] if d.X_test is None else [(d.X_train, d.y_train), (d.X_test, d.y_test)]
    kept = [stratified_split(y, min(1, n / len(y)), seed)[0] for (_, y), n in zip(parts, (rows, TEST), strict=True)]
    (X, y), (X_test, y_test) = ((X[k].astype(float), y[k]) for (X, y), k in zip(parts, kept, strict=True))
    X, X_test = scale_like_training(X, X_test)
    return Ground(name, X, y, X_test, y_test)


def tuned(g: Ground, rows: int = 1000, seed: int = 0, n_jobs: int = 2) -> dict[str, float]:
    """C and gamma by 3-fold cross-validation of Max Wins on at most `rows` training rows; of equals the first."""
    kept = stratified_split(g.y, min(1, rows / len(g.y)), seed)[0]
    grid = {"C": GRID["C"], "gamma": [k / g.X.shape[1] for k in GRID["gamma"]]}
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(s.MaxWinsSVC(), grid, cv=folds, n_jobs=n_jobs, refit=False)
    return search.fit(g.X[kept], g.y[kept]).best_params_


def systems(seed: int = 0, **p) -> dict[str, tuple]:
    """(family, bank, estimator) of every system; those that name the same bank are graphs over the same machines."""
    tree, dc, groups = s.BinaryTreeSVC, s.DCSVC, s.DecisionTreeSVC
    return {
        "1-v-r": ("rest", "rest", s.OneVsRestSVC(**p)),
        "max-wins": ("pairs", "pairs", s.MaxWinsSVC(**p)),
        "and-gate": ("pairs", "pairs", s.AndGateSVC(**p)),
        "dagsvm": ("DAG", "pairs", s.DAGSVC(**p)),
        "adaptive": ("DAG", "pairs", s.AdaptiveDAGSVC(**p)),
        "bts": ("tree", "pairs", tree(pair="random", random_state=seed, **p)),
        "c-bts": ("tree", "pairs", tree(pair="centre", **p)),
        "dcsvm 0%": ("DCSVM", "pairs", dc(**p)),
        "dcsvm 2%": ("DCSVM", "pairs", dc(threshold=0.02, **p)),
        "dcsvm 5%": ("DCSVM", "pairs", dc(threshold=0.05, **p)),
        "posterior ovo": ("pairs", "soft pairs", s.PosteriorSVC(**p)),
        "posterior ovr": ("rest", "soft rest", s.PosteriorSVC(strategy="ovr", **p)),
        "btppsvm": ("tree", "soft pairs", tree(pair="fisher", posterior=True, **p)),
        "ecoc dense": ("codes", "dense", s.ECOCSVC(random_state=seed, **p)),
        "ecoc sparse": ("codes", "sparse", s.ECOCSVC(code="sparse", random_state=seed, **p)),
        "ta type 1": ("tree", "groups 1", groups(**p)),
        "ta type 2": ("tree", "groups 2", groups(separate="many", **p)),
        "ta type 3": ("tree", "groups 3", groups(distance="mahalanobis", **p)),
        "ta type 4": ("tree", "groups 4", groups(separate="many", distance="mahalanobis", **p)),
        "crammer-singer": ("direct", "direct 1", CrammerSingerSVC(**p)),
        "weston-watkins": ("direct", "direct 2", WestonWatkinsSVC(**p)),
        "libsvm": ("peer", None, SVC(C=p["C"], gamma=p["gamma"])),
    }


def compare(g: Ground, chosen: dict[str, tuple]) -> pd.DataFrame:
    """A row a system: accuracy, mean cost of a test row, size, seconds to train (a shared bank's included) and test."""
    banks, rows = {}, []
    for name, (family, bank, est) in chosen.items():
        trained, before = banks.get(bank, (None, 0.0))
        _, seconds = timed(lambda: est.fit_over(trained, g.X, g.y) if trained else est.fit(g.X, g.y))  # noqa: B023
        if bank is None:  # LIBSVM asks every pair, and keeps no count
            labels, test = timed(lambda: est.predict(g.X_test))  # noqa: B023
            n, coefficients = len(est.classes_), np.count_nonzero(est.dual_coef_)
            machines = n * (n - 1) // 2
            cost = [len(est.support_), coefficients, machines]
            size = est.support_vectors_.size + coefficients
        else:
            banks.setdefault(bank, (est.machines_, seconds))
            (labels, found), test = timed(lambda: est.predict_with_cost(g.X_test))  # noqa: B023
            cost = [getattr(found, c).mean() for c in COSTS]
            machines, size = len(est.machines_.code), est.n_parameters_
        refused = 100 * est.unclassified(g.X_test).mean() if name == "and-gate" else np.nan
        hits = 100 * np.mean(labels == g.y_test)
        rows.append(
            (g.name, name, family, len(labels), hits, refused, *cost, machines, size / 1000, before + seconds, test)
        )
    return pd.DataFrame(rows, columns=["dataset", "system", "family", *MEASURED])


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """A row a system, over the data sets: mean points above Max Wins, and geometric means of its costs over theirs."""
    base = table[table["system"] == "max-wins"].set_index("dataset")
    ratios = ["kernel_evaluations", "binary_decisions", "size_kparameters", "train_s"]
    out = table[["system", "family"]].assign(points=table["accuracy_pct"] - table["dataset"].map(base["accuracy_pct"]))
    for column in ratios:
        out[column] = np.log(table[column] / table["dataset"].map(base[column]))
    out = out.groupby(["system", "family"], sort=False).mean().reset_index()
    return out.assign(**np.exp(out[ratios]))


def front(accuracy: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Whether no other system is at least as accurate and as cheap, and better in one of the two."""
    a, c = np.asarray(accuracy), np.asarray(cost)
    beaten = (a >= a[:, None]) & (c <= c[:, None]) & ((a > a[:, None]) | (c < c[:, None]))
    return ~beaten.any(axis=1)


def pays(table: pd.DataFrame, points: float = 1.0) -> pd.DataFrame:
    """For each data set its most accurate system, and of those within `points` of it the cheapest by each cost."""
    rows = []
    for name, t in table[table["family"] != "peer"].groupby("dataset", sort=False):
        near = t[t["accuracy_pct"] >= t["accuracy_pct"].max() - points].set_index("system")
        costs = ("kernel_evaluations", "binary_decisions", "size_kparameters", "train_s")
        rows.append((name, near["accuracy_pct"].idxmax(), *(near[c].idxmin() for c in costs)))
    columns = [
        "dataset",
        "most accurate",
        "fewest kernel evaluations",
        "fewest decisions",
        "smallest",
        "fastest to train",
    ]
    return pd.DataFrame(rows, columns=columns)


def sentences(table: pd.DataFrame) -> pd.DataFrame:
    """What the four papers say of their systems, as they would have it on every data set: in how many it holds.

    As accurate: not below the other by more than the 95 % sampling error of one accuracy on the test rows.
    """
    wide = table.pivot(index="dataset", columns="system")
    right, kernels, asked = wide["accuracy_pct"], wide["kernel_evaluations"], wide["binary_decisions"]

    def as_accurate(one: str, other: str) -> pd.Series:
        p = right[other] / 100
        return right[one] >= right[other] - 196 * np.sqrt(p * (1 - p) / wide["test_rows"][other])

    said = [
        ("Platt", "DAGSVM is as accurate as Max Wins", as_accurate("dagsvm", "max-wins")),
        ("Platt", "DAGSVM evaluates fewer kernels than Max Wins", kernels["dagsvm"] < kernels["max-wins"]),
        ("Yu", "the adaptive order is as accurate as the list's", as_accurate("adaptive", "dagsvm")),
        ("Yu", "the adaptive order is more accurate than the list's", right["adaptive"] > right["dagsvm"]),
        ("Wang", "c-BTS asks fewer machines than DAGSVM", asked["c-bts"] < asked["dagsvm"]),
        ("Wang", "BTPPSVM is as accurate as c-BTS", as_accurate("btppsvm", "c-bts")),
        ("Wang", "a vote of soft-label machines is as accurate as Max Wins", as_accurate("posterior ovo", "max-wins")),
        ("Don", "DCSVM (2%) asks fewer machines than DAGSVM", asked["dcsvm 2%"] < asked["dagsvm"]),
        ("Don", "DCSVM (2%) is as accurate as Max Wins", as_accurate("dcsvm 2%", "max-wins")),
        ("Don", "DCSVM asks no more machines at 5% than at 0%", asked["dcsvm 5%"] <= asked["dcsvm 0%"]),
    ]
    rows = [
        (
            paper,
            text,
            int(holds.sum()),
            len(holds),
            claim_verdict(bool(holds.all())),
            ", ".join(holds.index[~holds]) or "-",
        )
        for paper, text, holds in said
    ]
    return pd.DataFrame(rows, columns=["paper", "sentence", "holds_on", "of", "verdict", "fails_on"])


def soft_labels(g: Ground, ks: Iterable[int], **p) -> pd.DataFrame:
    """Accuracy of a vote of machines with soft labels from k neighbours, and of the k neighbours' own vote."""
    rows = []
    for k in ks:
        vote = s.PosteriorSVC(n_neighbors=k, **p).fit(g.X, g.y)
        near = KNeighborsClassifier(k).fit(g.X, g.y)
        rows.append((g.name, k, *(100 * est.score(g.X_test, g.y_test) for est in (vote, near))))
    return pd.DataFrame(rows, columns=["dataset", "k", "accuracy_pct", "neighbours_pct"])


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Mean rank of every system by accuracy and by kernel evaluations, with Friedman's test and Nemenyi's difference.

    Two mean ranks differ at .05 if they are CD = q sqrt(k (k + 1) / 6 N) apart, for k systems and N data sets.
    """
    rows = []
    for quantity, sign in (("accuracy_pct", -1), ("kernel_evaluations", 1)):
        wide = table[table["family"] != "peer"].pivot(index="dataset", columns="system", values=quantity)
        (n, k), test = wide.shape, friedmanchisquare(*wide.to_numpy().T)
        q = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
        mean = rankdata(sign * wide.to_numpy().round(6), axis=1).mean(axis=0)
        tail = (n, test.statistic, test.pvalue, q * np.sqrt(k * (k + 1) / (6 * n)))
        rows += [(quantity, name, rank, *tail) for name, rank in zip(wide.columns, mean, strict=True)]
    columns = ["quantity", "system", "mean_rank", "n_datasets", "friedman", "p", "critical_difference"]
    return pd.DataFrame(rows, columns=columns).sort_values(["quantity", "mean_rank"], ignore_index=True)


def scaling(g: Ground, ns: Iterable[int], names: Iterable[str], repeats: int, seed: int = 0, **p) -> pd.DataFrame:
    """Mean costs over random subsets of n classes, and the exponent of n by which each grows."""
    rng, classes, parts = np.random.default_rng(seed), np.unique(g.y), []
    for n in ns:
        for _ in range(repeats if n < len(classes) else 1):
            some = g.only(rng.choice(classes, n, replace=False))
            everything = systems(seed, **p)
            parts.append(compare(some, {name: everything[name] for name in names}).assign(n_classes=n))
    columns = ["accuracy_pct", *COSTS, "size_kparameters", "train_s"]
    table = pd.concat(parts).groupby(["system", "n_classes"], sort=False)[columns].mean().reset_index()
    for column in columns[1:]:
        grows = {name: slope(t["n_classes"], t[column]) for name, t in table.groupby("system")}
        table[f"{column}_exponent"] = table["system"].map(grows)
    return table
