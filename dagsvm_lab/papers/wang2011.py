"""Wang, Zheng and Zhou 2011: what the letter claims, as functions of the tables that notebook 03 records.

As written: soft labels as in Eq. 2, trees that route samples, C and gamma cross-validated for each system. As inferred:
C and gamma to which the printed accuracy and share of support vectors point together, and trees retrained on groups,
with the share that gives the printed count of machines.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..report import verdicts as v
from ..report.claims import INFERRED, Outcome, Paper, Tables
from ..statistics import slope_interval
from .common import mean_above, more_often, most

SYSTEMS = ("svm_oao", "svm_oaa", "svm_cbts", "ppsvm_oao", "ppsvm_oaa", "btppsvm")
TREES = ("svm_cbts", "btppsvm")
TESTS = {"letter": 5000, "optdigit": 1797, "pendigit": 3498, "mnist": 10000}

wang = Paper("03_wang2011", "Wang, Zheng, Zhou 2011")


def says(id: str, place: str, text: str, **about):
    """Decorate the function that measures a claim of the letter."""
    return wang.claim(id, place=place, text=text, **about)


def by_set(t: Tables, name: str) -> pd.DataFrame:
    """A table of the paper's shape, a row a data set, without its averages."""
    return t[name].query("dataset != 'average'").set_index("dataset")[list(SYSTEMS)]


def at_rate(rows: pd.DataFrame) -> Outcome:
    """Judge O(log2 n) by the path's exponent as a power of log2 n: 1 or less must lie in its interval."""
    g, low, high = slope_interval(rows["log2_n"], rows["mean_path"])
    return Outcome(v.claim_verdict(low <= 1), f"exponent {g:.2f} [{low:.2f}, {high:.2f}]")


def falls(t: Tables, column: str, where: str) -> pd.Series:
    """Tell of each data set whether `column` of Figure 1's table is less at k = 11 than at k = 1."""
    at = t["figure1"].query(where).pivot(index="dataset", columns="k", values=column)
    return at[11] < at[1]


def noise(t: Tables, choice: str, column: str, more: str) -> Outcome:
    """Judge whether `more` of the two kinds has more of `column`, over data sets and shares of flipped labels."""
    rows = t["noise"].query("choice == @choice and rows == 'all' and noise_pct > 0")
    wide = rows.pivot(index=["dataset", "noise_pct"], columns="machine", values=column)
    return more_often(wide[more], wide[{"ordinary": "posterior", "posterior": "ordinary"}[more]])


def path(t: Tables, system: str, source: str = "letter") -> pd.DataFrame:
    """Mean paths of a system over subsets of a source's classes."""
    return t["paths"].query("source == @source and system == @system")


def saved(t: Tables, other: str) -> Outcome:
    """Time saved over another system: it belongs to a machine, whatever it is."""
    seconds = t["table5"].set_index("system")["test_s"]
    return Outcome(v.OTHER_MACHINE, f"{100 * (1 - seconds['btppsvm'] / seconds[other]):.1f}")


def rank(t: Tables, column: str) -> float:
    """BTPPSVM's place among the six, by a column of Table 5."""
    return t["table5"].set_index("system")[column].rank()["btppsvm"]


# the tables, cell by cell

COUNTS, ACCURACIES = dict.fromkeys(SYSTEMS, ("count",)), dict.fromkeys(SYSTEMS, ("accuracy", TESTS))
RULES = {2: ACCURACIES, 3: COUNTS, 4: dict.fromkeys(TREES, ("count",))}
FITTED = {2: SYSTEMS, 3: tuple(s for s in SYSTEMS if s not in TREES), 4: TREES}  # what "as inferred" was fitted to
ABOUT = dict(published="wang2011_tables2to4", keys=["dataset"])
TIMES = dict.fromkeys(("train_s", "test_s"), ("time",))
COLUMNS = dict.fromkeys(("classes", "features", "train", "test"), ("exact",))

wang.cells(
    "wang-table1", place="Table 1", published="wang2011_table1", table="table1", keys=["dataset"], columns=COLUMNS
)
for _n, _rule in RULES.items():
    _about = dict(place=f"Table {_n}", columns=_rule, where=f"table == {_n} and dataset != 'average'", **ABOUT)
    wang.cells(f"wang-table{_n}", table=f"table{_n}", **_about)
    _fitted = lambda key, column, cells=FITTED[_n]: column in cells  # noqa: E731
    wang.cells(f"wang-table{_n}", table=f"table{_n}_inferred", reading=INFERRED, fitted=_fitted, **_about)
# an average of four accuracies wanders by about .2 points (95 %) by chance alone
for _n, _rule in ((2, ("points", 0.2, 0.4)), (3, ("count",))):
    _about = dict(place=f"Table {_n}, averages", columns=dict.fromkeys(SYSTEMS, _rule), **ABOUT)
    wang.cells(f"wang-averages{_n}", table=f"table{_n}", where=f"table == {_n} and dataset == 'average'", **_about)
wang.cells("wang-table5", place="Table 5", published="wang2011_table5", table="table5", keys=["system"], columns=TIMES)


# sections 1 and 2


@wang.by_definition("wang-pairs", place="Section 1", text="One-against-one holds n(n-1)/2 machines, one-against-all n.")
def pairs(t):
    m = by_set(t, "table4")
    both = (m.ppsvm_oao == m.svm_oao) & (m.ppsvm_oaa == m.svm_oaa)
    return bool((both & (m.svm_oao == m.svm_oaa * (m.svm_oaa - 1) / 2)).all())


@wang.by_definition("wang-path-dag", place="Section 1", text="A DAGSVM asks n-1 machines for one classification.")
def path_dag(t):
    return bool(path(t, "dagsvm").eval("mean_path == n_classes - 1").all())


@says("wang-unclassifiable", "Sections 1, 2", "Votes and largest outputs leave regions unclassified, trees none.")
def unclassifiable(t):
    left = t["systems"].query("reading == 'as written'").groupby("system")["unclassified_pct"].max()
    return bool((left.drop(list(TREES)) > 0).all() and (left[list(TREES)] == 0).all())


@says("wang-bayes", "Section 2", "A posterior machine agrees with the Bayes classifier more often (made data, points).")
def bayes(t):
    return mean_above(t["bayes"].eval("posterior_pct - ordinary_pct"))


@says(
    "wang-higher-accuracy", "Section 2", "Posterior machines are more accurate than ordinary ones (both votes, 4 sets)."
)
def higher_accuracy(t):
    a = by_set(t, "table2")
    return more_often(pd.concat([a.ppsvm_oao, a.ppsvm_oaa]), pd.concat([a.svm_oao, a.svm_oaa]))


for _name, _text, _column, _more in (
    ("noise", "posterior machines are more accurate than ordinary ones", "accuracy_pct", "posterior"),
    ("noise-loss", "posterior machines lose less accuracy than ordinary ones", "loss_points", "ordinary"),
    ("noise-svs", "posterior machines store fewer support vectors than ordinary ones", "support_vectors", "ordinary"),
):
    _claim = says(f"wang-{_name}", "Section 2", f"With flipped labels {_text} (C and gamma of clean labels).")(
        lambda t, column=_column, more=_more: noise(t, "blind", column, more)
    )
    _claim.as_inferred(lambda t, column=_column, more=_more: noise(t, "inferred", column, more))


@says(
    "wang-noise-chosen",
    "Section 2",
    "With flipped labels posterior machines are more accurate, C chosen anew for both.",
)
def noise_chosen(t):
    return noise(t, "anew", "accuracy_pct", "posterior")


# section 3


@says(
    "wang-layers",
    "Eq. 3",
    "The tree's error follows from its layers' as if independent (predicted over measured).",
    published=1,
)
def layers(t):
    return t["layers"].eval("predicted_error_pct / measured_error_pct").mean()


@says("wang-eq3-root", "Section 3", "By Eq. 3, accuracy is the higher the closer to the root the errors occur.")
def eq3_root(t):
    part = t["layer_errors"].query("system == 'btppsvm'").groupby("dataset")["error_pct"]
    total = lambda e: 1 - np.prod(1 - e / 100)  # noqa: E731
    return part.apply(lambda e: total(np.sort(e)[::-1]) < total(np.sort(e)) - 1e-12)


@says("wang-top-pair", "Section 3", "Parting the most separable pair first is the most accurate rule, on most sets.")
def top_pair(t):
    a = t["pair_rules"].query("labels == 'posterior'").pivot(index="dataset", columns="pair", values="accuracy_pct")
    largest = a.columns.str.startswith("fisher")
    return most(a.loc[:, largest].max(axis=1) > a.loc[:, ~largest].max(axis=1))


@says(
    "wang-fisher-measure",
    "Eq. 4",
    "The larger a pair's Fisher ratio, the fewer errors its machine makes (rank correlation).",
)
def fisher_measure(t):
    r = t["separability"].groupby("dataset")[["ratio", "error_pct"]].corr("spearman").xs("ratio", level=1)["error_pct"]
    return mean_above(-r)


@says("wang-best-case", "Section 3.2", "In the best case a tree has n-1 machines (reached on some set).")
def best_case(t):
    m = by_set(t, "table4")
    return bool((m[list(TREES)].min(axis=1) == m.svm_oaa - 1).any())


@best_case.as_inferred
def _(t):
    rows = t["retrained"].query("share == 0.5")
    return bool((rows["machines"] == rows["n_classes"] - 1).all())


for _id, _tree, _name, _length, _column in (
    ("cbts", "svm_cbts", "c-BTS", "log_{4/3}((n+3)/4)", "log43"),
    ("bt", "btppsvm", "BTPPSVM", "log2 n", "log2_n"),
):
    _text = f"{_name} asks {_length} machines on average (measured over that, mean over n)."
    _body = lambda t, tree=_tree, column=_column: (path(t, tree)["mean_path"] / path(t, tree)[column]).mean()  # noqa: E731
    says(f"wang-path-{_id}", "Sections 1, 3.2", _text, published=1)(_body).as_inferred(
        lambda t, body=_body, tree=f"{_name}, retrained": body(t, tree)
    )


for _source, _what in (("letter", "Letter's letters"), ("mnist", "MNIST's digits"), ("made", "100 made classes")):
    _text = f"BTPPSVM's path grows as O(log2 n): its exponent in log2 n is at most 1 (up to all of {_what})."
    _body = lambda t, source=_source, tree="btppsvm": at_rate(path(t, tree, source))  # noqa: E731
    says(f"wang-growth-{_source}", "Section 3.2", _text)(_body).as_inferred(
        lambda t, body=_body: body(t, tree="BTPPSVM, retrained")
    )


@says("wang-band-machines", "Section 3.2", "A larger reassignment threshold raises the number of machines.")
def band_machines(t):
    rows = t["band"].query("system == 'svm_cbts'").sort_values("band").groupby("dataset")["machines"]
    return rows.last() > rows.first()


@says(
    "wang-band-accuracy",
    "Section 3.2",
    "A larger threshold brings no significant gain in accuracy (McNemar, each set).",
)
def band_accuracy(t):
    rows = t["band"].query("system == 'svm_cbts'").sort_values("band").groupby("dataset").last()
    return (rows["p_value"] > 0.05) | (rows["gain_points"] <= 0)


# section 4


@says("wang-comparable", "Abstract", "BTPPSVM's accuracy is at most half a point below the best system's.")
def comparable(t):
    a = by_set(t, "table2")
    return a.btppsvm >= a.max(axis=1) - 0.5


@says(
    "wang-second",
    "Section 4",
    "BTPPSVM ranks second of six in mean accuracy, behind posterior one-against-one (ties count).",
)
def second(t):
    a = by_set(t, "table2").mean()
    return bool(a.ppsvm_oao > a.btppsvm and (a.btppsvm >= a.drop(["btppsvm", "ppsvm_oao"]) - 0.005).all())


@says("wang-equals-oao", "Section 4", "In the mean BTPPSVM is as accurate as ordinary one-against-one (points apart).",
      published=0, rule=("points", 0.05, 0.25))  # fmt: skip
def equals_oao(t):
    return by_set(t, "table2").eval("btppsvm - svm_oao").mean()


@says("wang-above-cbts", "Section 4", "In the mean BTPPSVM is about 0.1 points more accurate than c-BTS.",
      published=0.1, rule=("points", 0.1, 0.2))  # fmt: skip
def above_cbts(t):
    return by_set(t, "table2").eval("btppsvm - svm_cbts").mean()


@says(
    "wang-oao-best",
    "Section 4",
    "In general one-against-one is the most accurate: on most sets one of its forms leads.",
)
def oao_best(t):
    a = by_set(t, "table2")
    return most(a[["svm_oao", "ppsvm_oao"]].max(axis=1) >= a.max(axis=1))


@says(
    "wang-posterior-fewer-svs",
    "Section 4",
    "Each system stores fewer support vectors with posterior labels, on every set.",
)
def posterior_fewer_svs(t):
    s = by_set(t, "table3")
    return (s.ppsvm_oao < s.svm_oao) & (s.ppsvm_oaa < s.svm_oaa) & (s.btppsvm < s.svm_cbts)


@says("wang-fewest-svs", "Table 3", "BTPPSVM stores the fewest support vectors of the six on every set.")
def fewest_svs(t):
    s = by_set(t, "table3")
    return s.btppsvm < s.drop(columns="btppsvm").min(axis=1)


for _other, _name, _share in (("svm_oao", "ordinary", 60), ("ppsvm_oao", "posterior", 78)):
    _text = f"BTPPSVM stores {_share} % of the support vectors of {_name} one-against-one (means)."
    _body = lambda t, table="table3", other=_other: (lambda s: 100 * s.btppsvm / s[other])(by_set(t, table).mean())  # noqa: E731
    says(f"wang-svs-{_share}", "Section 4", _text, published=_share)(_body).as_inferred(
        lambda t, body=_body: body(t, "table3_inferred")
    )


@says("wang-fewer-than-oao", "Section 4", "For one answer both trees ask less than half of one-against-one's machines.")
def fewer_than_oao(t):
    p = t["systems"].query("reading == 'as written'").pivot(index="dataset", columns="system", values="mean_path")
    return p[list(TREES)].max(axis=1) < p.svm_oao / 2


@says(
    "wang-fewer-than-cbts", "Section 4", "By the Fisher ratio BTPPSVM holds fewer machines than c-BTS, in most cases."
)
def fewer_than_cbts(t):
    m = by_set(t, "table4")
    return most(m.btppsvm < m.svm_cbts)


for _name, _other, _share in (("48", "ppsvm_oao", 48.5), ("19", "ppsvm_oaa", 18.9), ("50", "svm_oao", 50.4),
                              ("48-oaa", "svm_oaa", 47.7), ("57", "svm_cbts", 57.1)):  # fmt: skip
    says(f"wang-saves-{_name}", "Section 4", f"BTPPSVM saves {_share} % of {_other}'s test time on Letter.")(
        lambda t, other=_other: saved(t, other)
    )
for _name, _column in (("test", "test_s"), ("training", "train_s")):
    says(f"wang-shortest-{_name}", "Table 5", f"BTPPSVM has the shortest {_name} time of the six on Letter.")(
        lambda t, column=_column: Outcome(v.OTHER_MACHINE, f"rank {int(rank(t, column))} of 6")
    )


@says("wang-least-work", "Section 4", "BTPPSVM computes the fewest kernel values of the six for a row of Letter.")
def least_work(t):
    rows = t["systems"].query("reading == 'as written' and dataset == 'letter'")
    work = rows.set_index("system")["kernel_evaluations"]
    return bool(work["btppsvm"] < work.drop("btppsvm").min())


for _name, _column, _text in (
    ("error", "error_pct", "test error"),
    ("svs", "support_vectors", "number of support vectors"),
):
    says(f"wang-k-{_name}", "Figure 1", f"On Letter the {_text} falls as k grows from 1 to 11.")(
        lambda t, column=_column: falls(t, column, "dataset == 'letter'")
    )
    says(f"wang-k-{_name}-others", "Section 4", f"On the other three sets the {_text} falls from k = 1 to 11, too.")(
        lambda t, column=_column: falls(t, column, "dataset != 'letter'")
    )
