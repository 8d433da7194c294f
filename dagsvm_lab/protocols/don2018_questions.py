"""Questions to Rathgamage Don and Iacob 2018: the working example, what explains odd numbers, and what lies beyond."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from ..datasets import load, standardise_like_training
from ..datasets.cards import card_of
from ..graphs import Ballot, costs, votes, won
from ..papers.common import stratified_split
from ..systems import DAGSVC, DCSVC, BinaryTreeSVC
from ..systems.adaptive import adaptive_graph, dbtc_matrix
from ..systems.base import Sample, outputs
from ..systems.dcsvm import dcsvm_graph, measures
from .don2018 import (
    AS_RUN,
    AS_SHOULD,
    CACHE,
    PRINTED,
    RUN,
    available,
    built_in,
    e1071_scaled,
    rows_of,
    splits,
    spread,
    trial,
    trials_of,
)

EXAMPLE = {"C": 1000.0, "gamma": 0.01, "scale_pairs": True}  # of Section 3.2, as far as its tables tell
NEAR_BEST = 0.25  # points of accuracy that the chosen threshold may cost in cross-validation
MEASURED_ON = 300  # rows of a class that the adaptive DAG's separability looks at


# ----------------------------------------------------------------------------------------- the working example


def predictions(est: DCSVC) -> pd.DataFrame:
    """The all-predictions table (Definition 2) in long form: per cent of a class that a machine calls its first."""
    names, first = est.classes_.tolist(), 100 * est.predictions_table_[:, :, 0]
    pairs = [f"{a}-{b}" for k, a in enumerate(names) for b in names[k + 1 :]]
    rows = [
        (pair, label, first[t, c], 100 - first[t, c]) for t, pair in enumerate(pairs) for c, label in enumerate(names)
    ]
    return pd.DataFrame(rows, columns=["machine", "label", "first_pct", "second_pct"])


def optimality(est: DCSVC, labels: Sequence | None = None) -> pd.DataFrame:
    """Purity, balance (Definition 3) and score (Definition 4) at threshold 0 among the classes `labels`."""
    names = est.classes_.tolist()
    classes = np.array([names.index(label) for label in labels or names])
    m = measures(est.predictions_table_, classes, 0.0)[1]
    pairs = [f"{names[i]}-{names[j]}" for i, j in zip(m["i"], m["j"], strict=True)]
    columns = {"purity_theta0": m["purity"], "balance_theta0": m["balance"], "score_pct": 100 * m["score"]}
    return pd.DataFrame({"machine": pairs, **columns})


def example_tried(printed: pd.DataFrame, draws: int = 5, seed: int = 0) -> pd.DataFrame:
    """How near each way to train Glass comes to Table 1: cells of 15 that agree, mean over draws of rows."""
    d = {with_id: load("glass", with_id=with_id) for with_id in (True, False)}
    auto = {with_id: 1 / d[with_id].X.shape[1] for with_id in d}
    ways = [(w, True, 1.0, g, C) for w in d for g in (auto[w], 0.01) for C in (1.0, 1000.0)]
    ways += [(True, False, 1.0, auto[True], 1.0), (True, True, 0.8, 0.01, 1000.0), (True, True, 0.8, auto[True], 1.0)]
    rows = []
    for with_id, scale_pairs, share, gamma, C in ways:
        X, y = d[with_id].X, d[with_id].y
        agree = []
        for k in range(draws if share < 1 else 1):
            kept = stratified_split(y, share, seed + k)[0]
            A = X[kept] if scale_pairs else e1071_scaled(X[kept])[0]
            est = DCSVC(C=C, gamma=gamma, scale_pairs=scale_pairs).fit(A, y[kept])
            mine = optimality(est).round(6)
            agree.append([*(mine[c] == printed[c] for c in ("purity_theta0", "balance_theta0", "score_pct"))])
        purity, balance, score = np.mean(np.array(agree, dtype=float).sum(axis=2), axis=0)
        rows.append({
            "Id column": "in" if with_id else "out", "scaled": "per pair" if scale_pairs else "once",
            "training rows": f"{share:.0%}", "gamma": round(gamma, 3), "C": C, "purity": purity, "balance": balance,
            "score": score, "of 45": purity + balance + score,
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values("of 45", ascending=False, kind="stable")


def depths(seed: int = 0, tables: int = 40) -> pd.DataFrame:
    """Depth of trees really built: over random tables ("any", Proposition 1), over classes on a line ("halving", 2)."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(tables):
        k, threshold = int(rng.integers(2, 9)), float(rng.choice([0.0, 0.05, 0.2]))
        first = rng.random((k * (k - 1) // 2, k)).round(1)  # rounded: whole classes fall on one side too
        graph = dcsvm_graph(np.stack([first, 1 - first], axis=2), threshold, rng.choice(["balance", "score"]))
        rows.append(("any", k, int(graph.depth().max())))
    for k in range(2, 17):
        X = np.repeat(np.arange(k), 8)[:, None] + rng.uniform(-0.2, 0.2, (8 * k, 1))
        est = DCSVC(kernel="linear", C=100.0).fit(X, np.repeat(np.arange(k), 8))
        rows.append(("halving", k, int(est.graph_.depth().max())))
    return pd.DataFrame(rows, columns=["case", "n_classes", "depth"])


# ------------------------------------------------------------------------------------------ what explains it


def denominators(printed: pd.DataFrame) -> pd.DataFrame:
    """Whether all six printed accuracies of a set are fractions of eleven tests of a tenth, or tests of a fifth."""
    accuracies = [c for c in printed if c.startswith("acc_")]
    rows = []
    for name, *values in printed[["dataset", *accuracies]].itertuples(index=False):
        source = RUN[name]
        if source.sample or source.trials:
            continue  # of so many rows nearly every printed number is a fraction
        count = card_of(source.loader).rows
        n = 6 * source.options["n_per_class"] if name == "artificial" else count.get(source.part) or sum(count.values())
        pooled = 11 * ceil(n / 10)
        fits = [_are_fractions(values, m) for m in (pooled, pooled - 1, 11 * ceil(n / 5), 10 * ceil(n / 5))]
        rows.append((name, n, pooled, *("yes" if fit else "no" for fit in fits)))
    columns = ["dataset", "rows", "11 x 10 %", "fits", "less one row", "11 x 20 %", "10 x 20 %"]
    return pd.DataFrame(rows, columns=columns)


def _are_fractions(printed: Sequence[float], n: int) -> bool:
    """Whether each printed per cent is some share of n rows, to its two decimals."""
    return all(abs(round(p * n / 100) * 100 / n - p) < 0.005 + 1e-9 for p in printed)


def constant_pairs(X: np.ndarray, y: np.ndarray) -> float:
    """Per cent of the pairs of classes on whose rows some input is constant, so that e1071 would not scale them."""
    classes = np.unique(y)
    low, high = (np.array([f(X[y == c], axis=0) for c in classes]) for f in (np.min, np.max))
    i, j = np.triu_indices(len(classes), 1)
    return 100 * float(np.mean((np.minimum(low[i], low[j]) == np.maximum(high[i], high[j])).any(axis=1)))


def explanations(trials: int = 3, seed: int = 0) -> pd.DataFrame:
    """Glass, Segmentation and Covertype with and without what we hold responsible for their printed numbers."""
    glass = load("glass", with_id=True)
    (segment, seen), (cover, covered) = rows_of(AS_RUN, "segmentation"), rows_of(AS_RUN, "covertype")
    cases = [
        ("glass", "the Id among the inputs", glass.X, glass.y),
        ("glass", "without the Id", glass.X[:, 1:], glass.y),
        ("glass", "nothing but the Id", glass.X[:, :1], glass.y),
        ("segmentation", "210 rows, a constant column", segment, seen),
        ("segmentation", "without that column", np.delete(segment, 2, axis=1), seen),
        ("covertype", "with 44 columns of codes", cover, covered),
        ("covertype", "its ten measurements", cover[:, :10], covered),
    ]
    rows = []
    for name, variant, X, y in cases:
        defaults, lines = {"C": 1.0, "gamma": 1 / X.shape[1]}, []
        for train, test in splits(AS_RUN, y, trials, seed):
            lines += trial(X[train], y[train], X[test], y[test], defaults, True, PRINTED[-1:])
        by_method = pd.DataFrame(lines).groupby("method")
        means = by_method[["hits", "n_test"]].sum().join(by_method[["steps", "support_vectors"]].mean())
        accuracy = 100 * means["hits"] / means["n_test"]
        rows.append({
            "dataset": name, "variant": variant, "unscaled_pairs_pct": constant_pairs(X, y),
            "largest_class_pct": 100 * np.unique(y, return_counts=True)[1].max() / len(y),
            **{f"acc_{method}": accuracy[method] for method in ("builtin", "ovo", "dcsvm")},
            "steps": means.loc["dcsvm", "steps"], "sv": means.loc["dcsvm", "support_vectors"],
        })  # fmt: skip
    return pd.DataFrame(rows)


def scaled_once_or_per_pair(names: Sequence[str], profile: str, trials: int = 3, seed: int = 0) -> pd.DataFrame:
    """Accuracy of LIBSVM's one-versus-one, of ours on the same inputs, and of ours with each pair scaled anew."""
    rows = []
    for name in available(names):
        X, y = rows_of(AS_RUN, name, profile)
        settings = {"C": 1.0, "gamma": 1 / X.shape[1]}
        right = []
        for train, test in splits(AS_RUN, y, trials, seed):
            A, B = e1071_scaled(X[train], X[test])
            said = [built_in(A, y[train], B, **settings)]
            for inputs, scale_pairs in (((A, B), False), ((X[train], X[test]), True)):
                est = DCSVC(scale_pairs=scale_pairs, **settings).fit(inputs[0], y[train])
                f = est.machines_.decision(inputs[1])
                said.append(est.classes_[Ballot(est.machines_.code, votes, won).run(f)[0]])
            right.append([100 * np.mean(labels == y[test]) for labels in said] + [100 * np.mean(said[0] == said[1])])
        columns = ("built-in", "ovo, scaled once", "ovo, scaled per pair", "same answers (first two)")
        rows.append({"dataset": name, **dict(zip(columns, np.mean(right, axis=0), strict=True))})
    return pd.DataFrame(rows)


# ----------------------------------------------------------------------------------------------------- beyond


def _systems(est: DCSVC, X: np.ndarray, y: np.ndarray, seed: int) -> list[tuple]:
    """Every system over the machines of `est`: its name, those of the machines that it keeps, its graph."""
    bank, codes = est.machines_, np.searchsorted(est.classes_, y)
    rng = np.random.default_rng(seed)
    few = np.concatenate([rng.permutation(np.flatnonzero(codes == c))[:MEASURED_ON] for c in range(len(est.classes_))])
    apart = dbtc_matrix(Sample(X[few], codes[few], bank.kernel, None, None), [bank.kernel] * len(bank.code))
    bts = BinaryTreeSVC(pair="random", random_state=seed).fit_over(bank, X, y)
    systems = [
        ("max-wins", bank, Ballot(bank.code, votes, won)),
        ("dagsvm", bank, DAGSVC().fit_over(bank, X, y).graph_),
    ]
    systems += [("adaptive", bank, adaptive_graph(apart)), ("bts", bts.machines_, bts.graph_)]
    for t, name in ((PRINTED[-1], "dcsvm"), (PRINTED[0], "dcsvm-2")):
        for prefer, tail in (("balance", ""), ("score", "-score")):
            systems.append((name + tail, bank, est.with_threshold(t / 100, prefer).graph_))
    return systems


def _pareto_of(name: str, k: int, profile: str, seed: int, settings: dict) -> list[dict]:
    X, y = rows_of(AS_SHOULD, name, profile)
    train, test = splits(AS_SHOULD, y, trials_of(AS_SHOULD, name, profile), seed)[k]
    A, B = standardise_like_training(X[train], X[test])
    est = DCSVC(cache_size=CACHE, **settings).fit(A, y[train])
    f = np.concatenate(list(outputs(est.machines_, B)))
    rows = []
    for system, bank, graph in _systems(est, A, y[train], seed):
        labels, paths, _ = graph.run(f if bank is est.machines_ else bank.decision(B))
        cost = costs(paths, bank.coef)
        rows.append({
            "dataset": name, "system": system, "accuracy_pct": 100 * np.mean(est.classes_[labels] == y[test]),
            "kernel_evaluations": cost.kernel_evaluations.mean(), "binary_decisions": cost.binary_decisions.mean(),
        })  # fmt: skip
    return rows


def pareto(chosen: pd.DataFrame, profile: str, seed: int = 0, trials: int = 1, n_jobs: int = 2) -> pd.DataFrame:
    """Accuracy and cost of every system over one tuned bank a set, mean over trials; `chosen` as `run` returns it."""
    mine = chosen[chosen["protocol"] == AS_SHOULD]
    jobs = [
        (line.dataset, k, profile, seed, {"C": line.C, "gamma": line.gamma})
        for line in mine.itertuples()
        for k in range(1 if RUN[line.dataset].trials else trials)
    ]
    rows = [row for rows in spread(_pareto_of, jobs, n_jobs) for row in rows]
    return pd.DataFrame(rows).groupby(["dataset", "system"], sort=False).mean().reset_index()


def chosen_threshold(
    X: np.ndarray, y: np.ndarray, thresholds: Sequence[float], seed: int = 0, **settings
) -> tuple[float, np.ndarray]:
    """The largest threshold (per cent) near the best five-fold accuracy, and the accuracies of all (per cent)."""
    right = np.zeros(len(thresholds))
    folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    for fit, held in StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y):
        est = DCSVC(**settings).fit(X[fit], y[fit])
        f = est.machines_.decision(X[held])
        right += [np.sum(est.classes_[est.with_threshold(t / 100).graph_.run(f)[0]] == y[held]) for t in thresholds]
    accuracy = 100 * right / len(y)
    return max(t for t, a in zip(thresholds, accuracy, strict=True) if a >= accuracy.max() - NEAR_BEST), accuracy


def thresholds_by_cv(
    names: Sequence[str], chosen: pd.DataFrame, thresholds: Sequence[float], profile: str, seed: int = 0
) -> pd.DataFrame:
    """On each set's first trial: the threshold that cross-validation picks, and what it brings on the test rows."""
    mine = chosen[chosen["protocol"] == AS_SHOULD].set_index("dataset")
    rows = []
    for name in [n for n in names if n in mine.index]:
        X, y = rows_of(AS_SHOULD, name, profile)
        train, test = splits(AS_SHOULD, y, trials_of(AS_SHOULD, name, profile), seed)[0]
        A, B = standardise_like_training(X[train], X[test])
        settings = {"C": mine.loc[name, "C"], "gamma": mine.loc[name, "gamma"]}
        best, _ = chosen_threshold(A, y[train], thresholds, seed, **settings)
        est, row = DCSVC(**settings).fit(A, y[train]), {"dataset": name, "chosen_pct": best}
        f = est.machines_.decision(B)
        for t, suffix in ((thresholds[0], "at_0"), (best, "at_chosen")):
            labels, paths, _ = est.with_threshold(t / 100).graph_.run(f)
            row[f"accuracy_{suffix}"] = 100 * np.mean(est.classes_[labels] == y[test])
            row[f"steps_{suffix}"] = costs(paths, est.machines_.coef).binary_decisions.mean()
        rows.append(row)
    return pd.DataFrame(rows)
