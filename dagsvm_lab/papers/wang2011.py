"""Wang, Zheng and Zhou 2011: what the letter claims, as functions of the tables that notebook 03 records.

As written: soft labels as in Eq. 2, trees that route samples, C and gamma cross-validated for each system. As inferred:
C and gamma to which the printed accuracy and share of support vectors point together, and trees retrained on groups,
with the share that gives the printed count of machines.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from ..report import verdicts as v
from ..report.claims import INFERRED, Outcome, Paper, Tables
from ..statistics import slope_interval
from .common import mean_above, more_often, most

wang = Paper("03_wang2011", "Wang, Zheng, Zhou 2011")
SYSTEMS = ("svm_oao", "svm_oaa", "svm_cbts", "ppsvm_oao", "ppsvm_oaa", "btppsvm")
TREES = ("svm_cbts", "btppsvm")
TESTS = {"letter": 5000, "optdigit": 1797, "pendigit": 3498, "mnist": 10000}


def says(id: str, *about, **more) -> None:
    """State a claim of the letter, as `Paper.states` does."""
    wang.states(f"wang-{id}", *about, **more)


def by_set(t: Tables, name: str) -> pd.DataFrame:
    """A table of the paper's shape, a row a data set, without its averages."""
    return t[name].query("dataset != 'average'").set_index("dataset")[list(SYSTEMS)]


def as_written(t: Tables) -> pd.DataFrame:
    """What each system cost and left unclassified, as written."""
    return t["systems"].query("reading == 'as written'")


def on(table: str, rule: Callable[[pd.DataFrame], object]) -> Callable:
    """Make the body of a claim from a rule over one table of the paper's shape."""
    return lambda t: rule(by_set(t, table))


def at_rate(rows: pd.DataFrame) -> Outcome:
    """Judge O(log2 n) by the path's exponent as a power of log2 n: 1 or less must lie in its interval."""
    g, low, high = slope_interval(rows["log2_n"], rows["mean_path"])
    return Outcome(
        v.claim_verdict(low <= 1), f"exponent {g:.2f} [{low:.2f}, {high:.2f}]"
    )


def falls(t: Tables, column: str, where: str) -> pd.Series:
    """Tell of each data set whether `column` of Figure 1's table is less at k = 11 than at k = 1."""
    at = t["figure1"].query(where).pivot(index="dataset", columns="k", values=column)
    return at[11] < at[1]


def noise(t: Tables, choice: str, column: str, more: str) -> Outcome:
    """Judge whether `more` of the two kinds has more of `column`, over data sets and shares of flipped labels."""
    rows = t["noise"].query("choice == @choice and rows == 'all' and noise_pct > 0")
    wide = rows.pivot(index=["dataset", "noise_pct"], columns="machine", values=column)
    return more_often(
        wide[more], wide[{"ordinary": "posterior", "posterior": "ordinary"}[more]]
    )


def path(t: Tables, system: str, source: str = "letter") -> pd.DataFrame:
    """Mean paths of a system over subsets of a source's classes."""
    return t["paths"].query("source == @source and system == @system")


def saved(t: Tables, other: str) -> Outcome:
    """Time saved over another system: it belongs to a machine, whatever it is."""
    seconds = t["table5"].set_index("system")["test_s"]
    return Outcome(
        v.OTHER_MACHINE, f"{100 * (1 - seconds['btppsvm'] / seconds[other]):.1f}"
    )


# fmt: off
# the tables, cell by cell
COUNTS, ACCURACIES = dict.fromkeys(SYSTEMS, ("count",)), dict.fromkeys(SYSTEMS, ("accuracy", TESTS))
RULES = {2: ACCURACIES, 3: COUNTS, 4: dict.fromkeys(TREES, ("count",))}
FITTED = {2: SYSTEMS, 3: tuple(s for s in SYSTEMS if s not in TREES), 4: TREES}  # what "as inferred" was fitted to
ABOUT = dict(published="wang2011_tables2to4", keys=["dataset"])

wang.cells("wang-table1", place="Table 1", published="wang2011_table1", table="table1", keys=["dataset"],
           columns=dict.fromkeys(("classes", "features", "train", "test"), ("exact",)))
for _n, _rule in RULES.items():
    _about = dict(place=f"Table {_n}", columns=_rule, where=f"table == {_n} and dataset != 'average'", **ABOUT)
    wang.cells(f"wang-table{_n}", table=f"table{_n}", **_about)
    _fitted = lambda key, column, cells=FITTED[_n]: column in cells
    wang.cells(f"wang-table{_n}", table=f"table{_n}_inferred", reading=INFERRED, fitted=_fitted, **_about)
# an average of four accuracies wanders by about .2 points (95 %) by chance alone
for _n, _rule in ((2, ("points", 0.2, 0.4)), (3, ("count",))):
    _about = dict(place=f"Table {_n}, averages", columns=dict.fromkeys(SYSTEMS, _rule), **ABOUT)
    wang.cells(f"wang-averages{_n}", table=f"table{_n}", where=f"table == {_n} and dataset == 'average'", **_about)
wang.cells("wang-table5", place="Table 5", published="wang2011_table5", table="table5", keys=["system"],
           columns=dict.fromkeys(("train_s", "test_s"), ("time",)))


# sections 1 and 2
says("pairs", "Section 1", "One-against-one holds n(n-1)/2 machines, one-against-all n.", kind="definition",
     body=on("table4", lambda m: bool(m.eval("ppsvm_oao == svm_oao and ppsvm_oaa == svm_oaa and "
                                             "svm_oao == svm_oaa * (svm_oaa - 1) / 2").all())))
says("path-dag", "Section 1", "A DAGSVM asks n-1 machines for one classification.",
     lambda t: bool(path(t, "dagsvm").eval("mean_path == n_classes - 1").all()), kind="definition")
says("unclassifiable", "Sections 1, 2", "Votes and largest outputs leave regions unclassified, trees none.",
     lambda t: as_written(t).groupby("system")["unclassified_pct"].max().pipe(
         lambda left: bool(((left > 0) != left.index.isin(TREES)).all())))
says("bayes", "Section 2", "A posterior machine agrees with the Bayes classifier more often (made data, points).",
     lambda t: mean_above(t["bayes"].eval("posterior_pct - ordinary_pct")))
says("higher-accuracy", "Section 2", "Posterior machines are more accurate than ordinary ones (both votes, 4 sets).",
     on("table2", lambda a: more_often(a[["ppsvm_oao", "ppsvm_oaa"]].to_numpy(), a[["svm_oao", "svm_oaa"]].to_numpy())))
for _name, _text, _of in (
    ("noise", "posterior machines are more accurate than ordinary ones", ("accuracy_pct", "posterior")),
    ("noise-loss", "posterior machines lose less accuracy than ordinary ones", ("loss_points", "ordinary")),
    ("noise-svs", "posterior machines store fewer support vectors than ordinary ones", ("support_vectors", "ordinary")),
):
    says(_name, "Section 2", f"With flipped labels {_text} (C and gamma of clean labels).",
         lambda t, of=_of: noise(t, "blind", *of), lambda t, of=_of: noise(t, "inferred", *of))
says("noise-chosen", "Section 2", "With flipped labels posterior machines are more accurate, C chosen anew for both.",
     lambda t: noise(t, "anew", "accuracy_pct", "posterior"))


# section 3
def _eq3_root(t: Tables) -> pd.Series:
    part = t["layer_errors"].query("system == 'btppsvm'").groupby("dataset")["error_pct"]
    total = lambda e: 1 - np.prod(1 - e / 100)
    return part.apply(lambda e: total(np.sort(e)[::-1]) < total(np.sort(e)) - 1e-12)


def _top_pair(t: Tables) -> Outcome:
    a = t["pair_rules"].query("labels == 'posterior'").pivot(index="dataset", columns="pair", values="accuracy_pct")
    largest = a.columns.str.startswith("fisher")
    return most(a.loc[:, largest].max(axis=1) > a.loc[:, ~largest].max(axis=1))


def _widths(t: Tables):
    """Trees of c-BTS by the width of their band, a group a data set."""
    return t["band"].query("system == 'svm_cbts'").sort_values("band").groupby("dataset")


says("layers", "Eq. 3", "The tree's error follows from its layers' as if independent (predicted over measured).",
     lambda t: t["layers"].eval("predicted_error_pct / measured_error_pct").mean(), published=1)
says("eq3-root", "Section 3", "By Eq. 3, accuracy is the higher the closer to the root the errors occur.", _eq3_root)
says("top-pair", "Section 3", "Parting the most separable pair first is the most accurate rule, on most sets.",
     _top_pair)
says("fisher-measure", "Eq. 4",
     "The larger a pair's Fisher ratio, the fewer errors its machine makes (rank correlation).",
     lambda t: mean_above(-t["separability"].groupby("dataset")[["ratio", "error_pct"]].corr("spearman").xs(
         "ratio", level=1)["error_pct"]))
says("best-case", "Section 3.2", "In the best case a tree has n-1 machines (reached on some set).",
     on("table4", lambda m: bool((m[list(TREES)].min(axis=1) == m.svm_oaa - 1).any())),
     lambda t: bool(t["retrained"].query("share == 0.5").eval("machines == n_classes - 1").all()))
for _id, _tree, _name, _length, _column in (
    ("cbts", "svm_cbts", "c-BTS", "log_{4/3}((n+3)/4)", "log43"),
    ("bt", "btppsvm", "BTPPSVM", "log2 n", "log2_n"),
):
    _body = lambda t, tree=_tree, column=_column: (path(t, tree)["mean_path"] / path(t, tree)[column]).mean()
    says(f"path-{_id}", "Sections 1, 3.2",
         f"{_name} asks {_length} machines on average (measured over that, mean over n).", _body,
         lambda t, body=_body, tree=f"{_name}, retrained": body(t, tree), published=1)
for _source, _what in (("letter", "Letter's letters"), ("mnist", "MNIST's digits"), ("made", "100 made classes")):
    _text = f"BTPPSVM's path grows as O(log2 n): its exponent in log2 n is at most 1 (up to all of {_what})."
    says(f"growth-{_source}", "Section 3.2", _text, lambda t, source=_source: at_rate(path(t, "btppsvm", source)),
         lambda t, source=_source: at_rate(path(t, "BTPPSVM, retrained", source)))
says("band-machines", "Section 3.2", "A larger reassignment threshold raises the number of machines.",
     lambda t: _widths(t)["machines"].last() > _widths(t)["machines"].first())
says("band-accuracy", "Section 3.2", "A larger threshold brings no significant gain in accuracy (McNemar, each set).",
     lambda t: _widths(t).last().eval("p_value > .05 or gain_points <= 0"))


# section 4
def _second(t: Tables) -> bool:
    a = by_set(t, "table2").mean()
    return bool(a.ppsvm_oao > a.btppsvm and (a.btppsvm >= a.drop(["btppsvm", "ppsvm_oao"]) - 0.005).all())


says("comparable", "Abstract", "BTPPSVM's accuracy is at most half a point below the best system's.",
     on("table2", lambda a: a.btppsvm >= a.max(axis=1) - 0.5))
says("second", "Section 4",
     "BTPPSVM ranks second of six in mean accuracy, behind posterior one-against-one (ties count).",
     _second)
says("equals-oao", "Section 4", "In the mean BTPPSVM is as accurate as ordinary one-against-one (points apart).",
     on("table2", lambda a: a.eval("btppsvm - svm_oao").mean()), published=0, rule=("points", 0.05, 0.25))
says("above-cbts", "Section 4", "In the mean BTPPSVM is about 0.1 points more accurate than c-BTS.",
     on("table2", lambda a: a.eval("btppsvm - svm_cbts").mean()), published=0.1, rule=("points", 0.1, 0.2))
says("oao-best", "Section 4", "In general one-against-one is the most accurate: on most sets one of its forms leads.",
     on("table2", lambda a: most(a[["svm_oao", "ppsvm_oao"]].max(axis=1) >= a.max(axis=1))))
says("posterior-fewer-svs", "Section 4",
     "Each system stores fewer support vectors with posterior labels, on every set.",
     on("table3", lambda s: s.eval("ppsvm_oao < svm_oao and ppsvm_oaa < svm_oaa and btppsvm < svm_cbts")))
says("fewest-svs", "Table 3", "BTPPSVM stores the fewest support vectors of the six on every set.",
     on("table3", lambda s: s.btppsvm < s.drop(columns="btppsvm").min(axis=1)))
for _other, _name, _share in (("svm_oao", "ordinary", 60), ("ppsvm_oao", "posterior", 78)):
    _body = lambda t, table="table3", other=_other: (lambda s: 100 * s.btppsvm / s[other])(by_set(t, table).mean())
    says(f"svs-{_share}", "Section 4",
         f"BTPPSVM stores {_share} % of the support vectors of {_name} one-against-one (means).", _body,
         lambda t, body=_body: body(t, "table3_inferred"), published=_share)
says("fewer-than-oao", "Section 4", "For one answer both trees ask less than half of one-against-one's machines.",
     lambda t: as_written(t).pivot(index="dataset", columns="system", values="mean_path").eval(
         "svm_cbts < svm_oao / 2 and btppsvm < svm_oao / 2"))
says("fewer-than-cbts", "Section 4", "By the Fisher ratio BTPPSVM holds fewer machines than c-BTS, in most cases.",
     on("table4", lambda m: most(m.eval("btppsvm < svm_cbts"))))
for _name, _other, _share in (("48", "ppsvm_oao", 48.5), ("19", "ppsvm_oaa", 18.9), ("50", "svm_oao", 50.4),
                              ("48-oaa", "svm_oaa", 47.7), ("57", "svm_cbts", 57.1)):  # fmt: skip
    says(f"saves-{_name}", "Section 4", f"BTPPSVM saves {_share} % of {_other}'s test time on Letter.",
         lambda t, other=_other: saved(t, other))
for _name, _column in (("test", "test_s"), ("training", "train_s")):
    says(f"shortest-{_name}", "Table 5", f"BTPPSVM has the shortest {_name} time of the six on Letter.",
         lambda t, column=_column: Outcome(v.OTHER_MACHINE, "rank {:.0f} of 6".format(
             t["table5"].set_index("system")[column].rank()["btppsvm"])))
says("least-work", "Section 4", "BTPPSVM computes the fewest kernel values of the six for a row of Letter.",
     lambda t: as_written(t).query("dataset == 'letter'").set_index("system")["kernel_evaluations"].pipe(
         lambda work: bool(work["btppsvm"] < work.drop("btppsvm").min())))
for _name, _column, _text in (("error", "error_pct", "test error"),
                              ("svs", "support_vectors", "number of support vectors")):
    says(f"k-{_name}", "Figure 1", f"On Letter the {_text} falls as k grows from 1 to 11.",
         lambda t, column=_column: falls(t, column, "dataset == 'letter'"))
    says(f"k-{_name}-others", "Section 4", f"On the other three sets the {_text} falls from k = 1 to 11, too.",
         lambda t, column=_column: falls(t, column, "dataset != 'letter'"))
