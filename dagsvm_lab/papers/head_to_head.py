"""The ground on which the tour and the head-to-head compare systems, and the field that meets there."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from .. import systems as s
from ..datasets import load
from ..datasets.scaling import scale_like_training
from .common import Split, stratified_split, timed

TEST = 4000  # test rows at most
COSTS = ["kernel_evaluations", "support_vectors", "binary_decisions"]


def ground(name: str, rows: int, seed: int = 0, own: bool = True) -> Split:
    """The set's own split (halves by class where it has none, or with own=False), of at most `rows` and TEST rows."""
    d = load(name)
    if own and d.X_test is not None:
        parts = [(d.X_train, d.y_train), (d.X_test, d.y_test)]
    else:
        whole = ~np.isnan(d.X).any(axis=1)
        X, y = d.X[whole], d.y[whole]
        parts = [(X[half], y[half]) for half in stratified_split(y, 0.5, seed)]
    kept = [
        stratified_split(y, min(1, n / len(y)), seed)[0]
        for (_, y), n in zip(parts, (rows, TEST), strict=True)
    ]
    (X, y), (X_test, y_test) = (
        (X[k].astype(float), y[k]) for (X, y), k in zip(parts, kept, strict=True)
    )
    X, X_test = scale_like_training(X, X_test)
    return Split(name, X, y, X_test, y_test, seed=seed)


def field(seed: int = 0, **p) -> dict[str, tuple]:
    """(family, bank, estimator) of every system; those that name the same bank are graphs over the same machines."""
    tree, dc, groups = s.BinaryTreeSVC, s.DCSVC, s.DecisionTreeSVC
    return {
        "1-v-r": ("rest", "rest", s.OneVsRestSVC(**p)),
        "max-wins": ("pairs", "pairs", s.MaxWinsSVC(**p)),
        "and-gate": ("pairs", "pairs", s.AndGateSVC(**p)),
        "dagsvm": ("DAG", "pairs", s.DAGSVC(**p)),
        "adaptive": ("DAG", "pairs", s.AdaptiveDAGSVC(**p)),
        "filtered": ("filtered", "pairs", s.FilteredDAGSVC(**p)),
        "filtered dcsvm": (
            "filtered",
            "pairs",
            s.FilteredDAGSVC(base=dc(), **p),
        ),
        "bts": (
            "tree",
            "pairs",
            tree(pair="random", routing="samples", random_state=seed, **p),
        ),
        "c-bts": ("tree", "pairs", tree(pair="centre", routing="samples", **p)),
        "dcsvm 0%": ("DCSVM", "pairs", dc(**p)),
        "dcsvm 2%": ("DCSVM", "pairs", dc(threshold=0.02, **p)),
        "dcsvm 5%": ("DCSVM", "pairs", dc(threshold=0.05, **p)),
        "posterior ovo": ("pairs", "soft pairs", s.PosteriorSVC(**p)),
        "posterior ovr": ("rest", "soft rest", s.PosteriorSVC(strategy="ovr", **p)),
        "btppsvm": ("tree", "soft pairs", tree(labels="soft", **p)),
        "ecoc dense": ("codes", "dense", s.ECOCSVC(random_state=seed, **p)),
        "ecoc sparse": (
            "codes",
            "sparse",
            s.ECOCSVC(code="sparse", random_state=seed, **p),
        ),
        "ta type 1": ("tree", "groups 1", groups(**p)),
        "ta type 2": ("tree", "groups 2", groups(separate="many", **p)),
        "ta type 3": ("tree", "groups 3", groups(distance="mahalanobis", **p)),
        "ta type 4": (
            "tree",
            "groups 4",
            groups(separate="many", distance="mahalanobis", **p),
        ),
        "crammer-singer": ("direct", "direct 1", s.CrammerSingerSVC(**p)),
        "weston-watkins": ("direct", "direct 2", s.WestonWatkinsSVC(**p)),
        "libsvm": ("peer", None, SVC(C=p["C"], gamma=p["gamma"])),
    }


def compare(
    g: Split, chosen: Mapping[str, tuple]
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Fit and time systems (as from `field`) on one ground; the first that names a bank trains it.

    The table has a row a system: accuracy, mean cost of a test row, size, seconds to train (a shared bank's included)
    and to test. Beside it stands which test rows each system gets wrong.
    """
    banks, rows, wrong = {}, [], {}
    for name, (family, bank, est) in chosen.items():
        trained, before = banks.get(bank, (None, 0.0))
        _, seconds = timed(
            lambda: est.fit_over(trained, g.X, g.y) if trained else est.fit(g.X, g.y)
        )
        if bank is None:  # LIBSVM asks every pair, and keeps no count
            labels, test = timed(lambda: est.predict(g.X_test))  # noqa: B023
            machines, coefficients = (
                len(est.intercept_),
                np.count_nonzero(est.dual_coef_),
            )
            cost, size = (
                [len(est.support_), coefficients, machines],
                est.support_vectors_.size + coefficients,
            )
        else:
            banks.setdefault(bank, (est.machines_, seconds))
            (labels, found), test = timed(lambda: est.predict_with_cost(g.X_test))  # noqa: B023
            cost, machines = (
                [getattr(found, c).mean() for c in COSTS],
                len(est.machines_.code),
            )
            size = est.n_parameters_
        refused = (
            100 * est.unclassified(g.X_test).mean() if name == "and-gate" else np.nan
        )
        wrong[name] = labels != g.y_test
        hits = 100 * np.mean(~wrong[name])
        row = {
            "dataset": g.name,
            "system": name,
            "family": family,
            "test_rows": len(labels),
            "accuracy_pct": hits,
        }
        row |= {
            "unclassified_pct": refused,
            **dict(zip(COSTS, cost, strict=True)),
            "machines": machines,
        }
        rows.append(
            row
            | {
                "size_kparameters": size / 1000,
                "train_s": before + seconds,
                "test_s": test,
            }
        )
    return pd.DataFrame(rows), wrong
