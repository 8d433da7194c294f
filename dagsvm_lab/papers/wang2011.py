"""Wang, Zheng and Zhou 2011: what the letter states, and how it is judged.

The rules read tables that notebook 03 records. As written: soft labels as in Eq. 2,
eleven neighbours, BTPPSVM's nodes divide whole classes, a class on both sides goes both
ways, no node is trained again; c-BTS routes samples, as its authors do; C and gamma are
cross-validated for each system. As inferred: C, gamma, labels and trees to which the
printed numbers point, and Table 3's trees counted "for one classification".

"More accurate" is judged on the same test rows by McNemar's test (`duels`: a row a data
set and two systems), "on average" by the mean of four sets with its sampling error.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from ..report import judges
from ..report import verdicts as v
from ..report.claims import (
    INFERRED,
    WRITTEN,
    NotRecordedError,
    Outcome,
    Paper,
    Tables,
    each_row,
)
from ..report.prose import of

wang = Paper("03_wang2011", "Wang, Zheng, Zhou 2011")
SYSTEMS = ("svm_oao", "svm_oaa", "svm_cbts", "ppsvm_oao", "ppsvm_oaa", "btppsvm")
TREES = ("svm_cbts", "btppsvm")
VOTES = tuple(s for s in SYSTEMS if s not in TREES)
TWINS = {"ppsvm_oao": "svm_oao", "ppsvm_oaa": "svm_oaa", "btppsvm": "svm_cbts"}
TESTS = {"letter": 5000, "optdigit": 1797, "pendigit": 3498, "mnist": 10000}
PRINTED_TABLES2TO4 = v.published("wang2011_tables2to4")
MEASURES = {2: "accuracy_pct", 3: "support_vectors_pct", 4: "binary_classifiers"}
TARGET = {  # the printed cells: (data set, measure, system)
    (row["dataset"], row["measure"], s): row[s]
    for row in PRINTED_TABLES2TO4.to_dict("records")
    for s in SYSTEMS
}
COMPARABLE_MARGIN = 0.5  # points of accuracy that count as a loss
# times as many rows misled in two layers as chance misleads: so near 1, independent
INDEPENDENT_RATIOS = (0.8, 1.25)

# ------------------------------------------------------------ table cells
COUNTS = dict.fromkeys(SYSTEMS, ("count",))
TABLE_RULES = {
    2: dict.fromkeys(SYSTEMS, ("accuracy", TESTS)),
    3: COUNTS,
    4: dict.fromkeys(TREES, ("count",)),  # 325 and 26 follow from the classes
}
for _n in TABLE_RULES:
    wang.picked(
        f"table{_n}_inferred",
        "C, gamma, labels, shares and the count of support vectors were chosen by "
        "these cells",
    )
wang.cells(
    "wang-table1",
    place="Table 1",
    published="wang2011_table1",
    table="table1",
    keys=["dataset"],
    columns=dict.fromkeys(("classes", "features", "train", "test"), ("exact",)),
)
for _reading, _end in ((WRITTEN, ""), (INFERRED, "_inferred")):
    for _n, _columns in TABLE_RULES.items():
        wang.cells(
            f"wang-table{_n}",
            place=f"Table {_n}",
            published="wang2011_tables2to4",
            where=f"table == {_n} and dataset != 'average'",
            table=f"table{_n}{_end}",
            keys=["dataset"],
            columns=_columns,
            reading=_reading,
        )
# an average of four accuracies wanders by about .2 points (95 %) by chance alone
for _n, _rule in ((2, ("points", 0.2, 0.4)), (3, ("count",))):
    wang.cells(
        f"wang-averages{_n}",
        place=f"Table {_n}, averages",
        published="wang2011_tables2to4",
        where=f"table == {_n} and dataset == 'average'",
        table=f"table{_n}",
        keys=["dataset"],
        columns=dict.fromkeys(SYSTEMS, _rule),
    )
wang.cells(
    "wang-table5",
    place="Table 5",
    published="wang2011_table5",
    table="table5",
    keys=["system"],
    columns=dict.fromkeys(("train_s", "test_s"), ("time",)),
)


# ------------------------------------------------------------ tools of the rules
def by_set(t: Tables, number: int, reading: str = WRITTEN) -> pd.DataFrame:
    """Table 2, 3 or 4 in a reading: a row a data set, without averages."""
    name = f"table{number}" + ("_inferred" if reading == INFERRED else "")
    rows = t[name].query("dataset != 'average'").set_index("dataset")
    return rows[list(SYSTEMS)]


def rule_of(number: int, name: str) -> tuple:
    """How a cell of Table 2, 3 or 4 is judged on a data set."""
    return ("accuracy", TESTS[name]) if number == 2 else ("count",)


def as_written(t: Tables) -> pd.DataFrame:
    """What each system cost and left open, as written."""
    return t["systems"].query("reading == @WRITTEN")


def duels(t: Tables, reading: str, first: str, second: str) -> pd.DataFrame:
    """Rows that only the first, or only the second, of two systems gets right; a row a
    data set, columns wins, losses, n."""
    table = t["duels"].query("reading == @reading")
    forth = table.query("first == @first and second == @second")
    back = table.query("first == @second and second == @first")
    back = back.rename(columns={"wins": "losses", "losses": "wins"})
    rows = pd.concat([forth, back]).set_index("dataset")[["wins", "losses", "n"]]
    if rows.empty:
        raise NotRecordedError(f"{first} never met {second}")
    return rows


def mean_points(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Mean over data sets of the points that the first system is ahead, and the 95 %
    limits that come of the sampling of test rows."""
    each = np.array([judges.points_apart(*r) for r in rows.to_numpy()])
    points, _, high = each.T
    mean = points.mean()
    # sets are independent: their half widths add up as squares
    half = np.sqrt(((high - points) ** 2).sum()) / len(each)
    return float(mean), float(mean - half), float(mean + half)


def on_sets(rows: pd.DataFrame) -> list[Outcome]:
    """McNemar's test on each data set."""
    return [judges.paired(*r) for r in rows[["wins", "losses", "n"]].to_numpy()]


def path(t: Tables, system: str) -> pd.DataFrame:
    """Mean paths of a system over numbers of classes, of all sources."""
    return t["paths"].query("system == @system")


def ratio_to_formula(t: Tables, system: str, column: str) -> Outcome:
    """Judge a mean path against a printed formula, as their mean ratio."""
    rows = path(t, system)
    ratio = rows["mean_path"] / rows[column]
    if ratio.empty:
        raise NotRecordedError(f"no paths of {system}")
    outcome = judges.against(ratio.mean(), 1.0)
    return replace(outcome, effect=f"{ratio.min():.2f} to {ratio.max():.2f}")


# ------------------------------------------------------------ sections 1 and 2
@wang.claim(
    "wang-pairs",
    "Section 1",
    "One-against-one holds n(n-1)/2 machines, one-against-all n.",
    kind="definition",
)
def _pairs(t: Tables) -> pd.Series:
    return by_set(t, 4).eval(
        "ppsvm_oao == svm_oao and ppsvm_oaa == svm_oaa and "
        "svm_oao == svm_oaa * (svm_oaa - 1) / 2"
    )


wang.states(
    "wang-path-dag",
    "Section 1",
    "A DAGSVM asks n-1 machines for one classification.",
    each_row("paths", "mean_path == n_classes - 1", where="system == 'dagsvm'"),
    kind="definition",
)


@wang.claim(
    "wang-unclassifiable",
    "Sections 1, 2",
    "One-against-one and one-against-all leave rows unclassified (some test rows, each "
    "set and system).",
)
def _unclassifiable(t: Tables) -> Outcome:
    votes = as_written(t).query("system in @VOTES")
    return judges.every(votes["unclassified_pct"] > 0, "cases")


@wang.claim(
    "wang-no-region",
    "Section 2",
    "A tree leaves no row unclassified.",
    kind="definition",
)
def _no_region(t: Tables) -> pd.Series:
    trees = as_written(t).query("system in @TREES")
    return trees["unclassified_pct"] == 0


@wang.claim(
    "wang-bayes",
    "Section 2",
    "A posterior machine agrees with the Bayes classifier more often (made data, "
    "k = 11, C chosen on further points; points).",
)
def _bayes(t: Tables) -> Outcome:
    table = t["bayes"]
    rows = table[(table["k"] == 11) & (table["C"] == "chosen")]
    means = table.groupby(["k", "C"])["gain"].mean()
    effect = f"over all k and C {means.min():+.1f} to {means.max():+.1f}"
    return replace(judges.mean_above(rows["gain"]), effect=effect)


def more_accurate(t: Tables, reading: str) -> Outcome:
    """Whether posterior votes beat their ordinary twins, over sets and both votes."""
    cases = [duels(t, reading, s, TWINS[s]) for s in ("ppsvm_oao", "ppsvm_oaa")]
    rows = pd.concat(cases)
    return judges.majority(rows.eval("(wins - losses) / n"), "cases")


wang.both(
    "wang-higher-accuracy",
    "Section 2",
    "Posterior machines are more accurate than ordinary ones (both votes, each set).",
    more_accurate,
    fitted=True,
)


def noisy(t: Tables, reading: str, column: str, more: str) -> Outcome:
    """Whether `more` of the two kinds has more of a column, over data sets and shares
    of flipped labels, at C and gamma of clean labels."""
    table = t["noise"]
    wanted = table["choice"] == ("blind" if reading == WRITTEN else "inferred")
    rows = table[wanted & (table["noise_pct"] > 0)]
    keys = ["dataset", "noise_pct"]
    wide = rows.pivot(index=keys, columns="machine", values=column)
    other = {"ordinary": "posterior", "posterior": "ordinary"}[more]
    return judges.majority(wide[more] - wide[other], "cases")


for _id, _text, _column, _more in (
    ("noise", "are more accurate than", "accuracy_pct", "posterior"),
    ("noise-loss", "lose less accuracy than", "loss_points", "ordinary"),
    ("noise-svs", "store fewer support vectors than", "support_vectors", "ordinary"),
):
    wang.both(
        f"wang-{_id}",
        "Section 2",
        f"With flipped labels posterior machines {_text} ordinary ones (C and gamma of "
        "clean labels).",
        partial(noisy, column=_column, more=_more),
        evidence="flipped labels" if _id != "noise-svs" else "",
    )


@wang.claim(
    "wang-redundant",
    "Section 2",
    "Support vectors whose neighbours are all of their own class become redundant "
    "(fewer of them at k = 11 than at k = 1, each set).",
)
def _redundant(t: Tables) -> Outcome:
    found = t["redundant"]
    return judges.every(found["surrounded_soft"] < found["surrounded_hard"], "sets")


# ------------------------------------------------------------ section 3
@wang.claim(
    "wang-layers",
    "Eq. 3",
    "Assuming that the decisions of layers are independent, the tree's error is "
    "1 - prod(1 - e_k) (predicted over measured).",
    published=1,
)
def _layers(t: Tables) -> Outcome:
    rows = t["layers"]
    ratio = rows["predicted_error_pct"] / rows["measured_error_pct"]
    twice = (rows["misled_twice_pct"] / rows["expected_twice_pct"]).median()
    outcome = judges.against(ratio.mean(), 1.0)
    effect = f"independence costs {(ratio.mean() - 1):+.0%} of the error"
    why = f"rows misled twice are {twice:.1f} times as many as independence gives"
    met = INDEPENDENT_RATIOS[0] <= twice <= INDEPENDENT_RATIOS[1]
    return replace(judges.assuming(met, why, outcome), effect=effect)


wang.uncheckable(
    "wang-eq3-root",
    "Section 3",
    "From Eq. 3: the closer to the root the errors occur, the higher the accuracy.",
    "a product has no order: neither this nor the reverse follows from Eq. 3",
)


def top_pair(t: Tables, routing: str) -> Outcome:
    """Whether Fisher's pair first beats the other rules, over the same soft machines,
    on each set by McNemar's test."""
    rows = t["pair_rules"].query("routing == @routing and labels == 'soft'")
    if rows.empty:
        raise NotRecordedError(f"no trees that route {routing}")
    return judges.most_outcomes(on_sets(rows))


wang.states(
    "wang-top-pair",
    "Section 3",
    "Separating the most separable pair first is the most accurate rule (against the "
    "centre and the closest pair, each set, McNemar). (Inferred: samples routed, and "
    "against a random pair, too.)",
    partial(top_pair, routing="classes"),
    partial(top_pair, routing="samples"),
)


@wang.claim(
    "wang-fisher-measure",
    "Eq. 4",
    "The larger a pair's Fisher ratio, the fewer errors its machine makes (rank "
    "correlation, each set).",
)
def _fisher_measure(t: Tables) -> Outcome:
    return judges.on_each(
        judges.correlated(part["ratio"], -part["error_pct"])
        for _, part in t["separability"].groupby("dataset", sort=False)
    )


wang.states(
    "wang-best-case",
    "Section 3.2",
    "Where no class goes both ways a tree has n-1 machines.",
    each_row("retrained", "machines == n_classes - 1", where="share == .5"),
    kind="definition",
)
NOT_HALVED = "the paper's condition, no common class, is not met"


def growth(t: Tables, system: str) -> Outcome:
    """Whether a path grows no faster than log2 n, on each source of classes."""
    rows = path(t, system)
    if rows.empty:
        raise NotRecordedError(f"no paths of {system}")
    found = {
        source: judges.exponent(part["log2_n"], part["mean_path"], 1.0, at_most=True)
        for source, part in rows.groupby("source", sort=False)
    }
    text = ", ".join(f"{source} {one.text}" for source, one in found.items())
    times = (rows["mean_path"] / rows["log2_n"]).agg(["min", "max"])
    effect = f"{times['min']:.2f} to {times['max']:.2f} times log2 n"
    return replace(judges.on_each(found.values()), text=text, effect=effect)


def growth_under_condition(t: Tables) -> Outcome:
    """The same for BTPPSVM, under the paper's condition."""
    return judges.assuming(common(t) == 0, NOT_HALVED, growth(t, "btppsvm"))


wang.states(
    "wang-growth",
    "Abstract, section 3.2",
    "Under the condition that children have no common class the path grows as "
    "O(log2 n): its exponent in log2 n is at most 1. (As written classes are shared. "
    "Inferred: no class is, nodes retrained.)",
    growth_under_condition,
    partial(growth, system="halving"),
    evidence="halving",
)


def common(t: Tables) -> float:
    """Share of the classes at BTPPSVM's nodes that go to both children, in per cent."""
    return t["layer_classes"].query("tree == 'shared'")["both_ways_pct"].max()


def halved(t: Tables, tree: str) -> Outcome:
    """Whether nodes of layer k hold n / 2^k classes on average, within 15 %, layers of
    one class or less left out."""
    rows = t["layer_classes"].query("tree == @tree and expected > 1 and layer > 0")
    if rows.empty:
        raise NotRecordedError("no layers")
    ratio = rows["mean_classes"] / rows["expected"]
    outcome = judges.against(ratio.mean(), 1.0, ("count", 0.15, 0.3))
    return replace(outcome, effect=f"{ratio.min():.2f} to {ratio.max():.2f}")


def halved_under_condition(t: Tables) -> Outcome:
    """The same for BTPPSVM, under the paper's condition."""
    return judges.assuming(common(t) == 0, NOT_HALVED, halved(t, "shared"))


wang.states(
    "wang-layer-classes",
    "Section 3.2",
    "Under the same condition a node of layer k holds n / 2^k classes on average "
    "(measured over that).",
    halved_under_condition,
    partial(halved, tree="halving"),
    evidence="halving",
)
wang.states(
    "wang-path-cbts",
    "Section 1",
    "c-BTS asks log_{4/3}((n+3)/4) machines on average (measured over that). "
    "(Inferred: retrained on groups.)",
    partial(ratio_to_formula, system="svm_cbts", column="log43"),
    partial(ratio_to_formula, system="svm_cbts, retrained", column="log43"),
    published=1,
)


def widths(t: Tables) -> pd.DataFrame:
    """Trees of c-BTS by the width of their band, none first."""
    return t["band"].query("system == 'svm_cbts'").sort_values(["dataset", "band"])


@wang.claim(
    "wang-band-machines",
    "Section 3.2",
    "A larger reassignment threshold raises the number of machines (c-BTS, each set).",
)
def _band_machines(t: Tables) -> Outcome:
    machines = widths(t).groupby("dataset")["machines"]
    return judges.every(machines.last() > machines.first(), "sets")


@wang.claim(
    "wang-band-accuracy",
    "Section 3.2",
    "No threshold brings a significant gain in accuracy (c-BTS; every width and set, "
    "McNemar at .05 over the number of widths).",
)
def _band(t: Tables) -> Outcome:
    rows = widths(t).query("band > 0")
    level = 0.05 / rows["band"].nunique()
    gained = (rows["p_value"] < level) & (rows["gain_points"] > 0)
    outcome = judges.every(~gained, "widths and sets")
    return replace(outcome, effect=f"at most {rows['gain_points'].max():+.2f} points")


# ------------------------------------------------------------ section 4: accuracy
def comparable(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM is within a margin of each vote, on each set."""
    cases = pd.concat([duels(t, reading, "btppsvm", other) for other in VOTES])
    points = [judges.points_apart(*row) for row in cases.to_numpy()]
    outcome = judges.on_each(
        judges.not_below(*p, margin=COMPARABLE_MARGIN) for p in points
    )
    worst = min(p[0] for p in points)
    return replace(outcome, effect=f"at worst {worst:+.2f} points")


def second(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM is behind posterior one-against-one and not behind the other
    four, in mean accuracy."""
    behind = [judges.above(*mean_points(duels(t, reading, "ppsvm_oao", "btppsvm")))]
    for other in ("svm_oao", "svm_oaa", "svm_cbts", "ppsvm_oaa"):
        points = mean_points(duels(t, reading, "btppsvm", other))
        behind.append(judges.not_below(*points, margin=0.05))
    rank = by_set(t, 2, reading).mean().round(9).rank(ascending=False)["btppsvm"]
    return replace(judges.on_each(behind), text=f"rank {rank:g} of {len(SYSTEMS)}")


def oao_best(t: Tables, reading: str) -> Outcome:
    """Whether, on most sets, a form of one-against-one beats every other system."""
    rights = by_set(t, 2, reading)
    found = []
    for name in rights.index:
        best = rights.loc[name, ["svm_oao", "ppsvm_oao"]].idxmax()
        others = [s for s in SYSTEMS if not s.endswith("oao")]
        rows = pd.concat([duels(t, reading, best, s).loc[[name]] for s in others])
        found.append(judges.on_each(on_sets(rows)))
    return judges.most_outcomes(found)


def equals_oao(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM is within .25 points of one-against-one, in the mean."""
    points = mean_points(duels(t, reading, "btppsvm", "svm_oao"))
    return judges.near_zero(*points, margin=0.25)


def above_cbts(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM is more accurate than c-BTS, in the mean."""
    return judges.above(*mean_points(duels(t, reading, "btppsvm", "svm_cbts")))


ACCURACY = "accuracies of the six"
for _id, _place, _text, _rule in (
    (
        "comparable",
        "Abstract",
        "BTPPSVM is at least comparable to the votes: less than half a point below "
        "each, on every set.",
        comparable,
    ),
    (
        "second",
        "Section 4",
        "BTPPSVM ranks second of six in mean accuracy, behind posterior "
        "one-against-one.",
        second,
    ),
    (
        "equals-oao",
        "Section 4",
        "On average BTPPSVM is as accurate as ordinary one-against-one (within .25).",
        equals_oao,
    ),
    (
        "above-cbts",
        "Section 4",
        "On average BTPPSVM is more accurate than c-BTS (printed: about .1 points).",
        above_cbts,
    ),
    (
        "oao-best",
        "Section 4",
        "In general one-against-one obtains the best accuracy (one of its forms beats "
        "every other system, most sets).",
        oao_best,
    ),
):
    wang.both(f"wang-{_id}", _place, _text, _rule, fitted=True, evidence=ACCURACY)


# ------------------------------------------------------------ section 4: counts
def share_of(t: Tables, reading: str, other: str) -> float:
    """BTPPSVM's support vectors over another system's, in means of per cents."""
    mean = by_set(t, 3, reading).mean()
    return float(100 * mean["btppsvm"] / mean[other])


def fewer_with_posterior(t: Tables, reading: str) -> Outcome:
    """Whether each system has fewer support vectors than its ordinary twin, on each
    set."""
    stored = by_set(t, 3, reading)
    fewer = [stored[soft] < stored[hard] for soft, hard in TWINS.items()]
    return judges.every(pd.concat(fewer), "cases")


def fewest(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM has the fewest support vectors of the six, on each set."""
    return judges.every(by_set(t, 3, reading).idxmin(axis=1) == "btppsvm", "sets")


TREE_VECTORS = "support vectors of the trees"
wang.both(
    "wang-posterior-fewer-svs",
    "Section 4",
    "Each system stores fewer support vectors with posterior labels, on every set. "
    "(Inferred: trees counted for one classification.)",
    fewer_with_posterior,
    fitted=True,
)
wang.both(
    "wang-fewest-svs",
    "Table 3",
    "BTPPSVM stores the fewest support vectors of the six on every set. (Inferred: as "
    "above.)",
    fewest,
    fitted=True,
    evidence=TREE_VECTORS,
)
for _other, _name, _share in (
    ("svm_oao", "ordinary", 60),
    ("ppsvm_oao", "posterior", 78),
):
    wang.both(
        f"wang-svs-{_share}",
        "Section 4",
        f"BTPPSVM stores {_share} % of the support vectors of {_name} one-against-one "
        "(means). (Inferred: as above.)",
        partial(share_of, other=_other),
        published=_share,
        fitted=True,
        evidence=TREE_VECTORS,
    )


def asked(t: Tables) -> pd.DataFrame:
    """Mean machines that a row meets, as written: a row a set, a column a system."""
    return as_written(t).pivot(index="dataset", columns="system", values="mean_path")


@wang.claim(
    "wang-fewer-than-oao",
    "Section 4",
    "For one classification both trees ask significantly fewer machines than "
    "one-against-one (less than half, each set).",
)
def _fewer_than_oao(t: Tables) -> Outcome:
    half = asked(t).eval("svm_cbts < svm_oao / 2 and btppsvm < svm_oao / 2")
    return judges.every(half, "sets")


def fewer_machines(t: Tables, reading: str) -> Outcome:
    """Whether BTPPSVM has fewer machines than c-BTS and one-against-one, most sets."""
    fewer = by_set(t, 4, reading).eval("btppsvm < svm_cbts and btppsvm < svm_oao")
    text = f"{fewer.sum()} of {len(fewer)} sets"
    each = [judges.every([one], "") for one in fewer]
    return replace(judges.most_outcomes(each), text=text)


wang.both(
    "wang-fewer-than-cbts",
    "Section 4",
    "In most cases BTPPSVM has fewer machines than both one-against-one and c-BTS.",
    fewer_machines,
    fitted=True,
)


# ------------------------------------------------------------ section 4: time
def saved(t: Tables, other: str, printed_pct: float) -> Outcome:
    """Judge a saving of test time as a ratio of seconds of one run."""
    seconds = t["table5"].set_index("system")["test_s"]
    ours = seconds["btppsvm"]
    theirs = seconds[other]
    ratio = round(1 / (1 - printed_pct / 100), 2)
    outcome = judges.clock([ours], [theirs], ratio)
    return replace(outcome, effect=f"saves {100 * (1 - ours / theirs):.1f} %")


def shortest(t: Tables, column: str) -> Outcome:
    """Whether BTPPSVM takes the fewest seconds of the six, in one run."""
    seconds = t["table5"].set_index("system")[column]
    others = seconds.drop("btppsvm")
    outcome = judges.clock(np.full(len(others), seconds["btppsvm"]), others)
    rank = seconds.rank()["btppsvm"]
    return replace(outcome, effect=f"rank {rank:g} of {len(seconds)}")


CLOCK = "seconds on Letter"
for _id, _other, _share in (
    ("48", "ppsvm_oao", 48.5),
    ("19", "ppsvm_oaa", 18.9),
    ("50", "svm_oao", 50.4),
    ("48-oaa", "svm_oaa", 47.7),
    ("57", "svm_cbts", 57.1),
):
    wang.states(
        f"wang-saves-{_id}",
        "Section 4",
        f"BTPPSVM saves {_share} % of {_other}'s test time on Letter (a ratio of "
        f"{1 / (1 - _share / 100):.2f}; seconds of one run).",
        partial(saved, other=_other, printed_pct=_share),
        evidence=CLOCK,
    )
for _id, _column in (("test", "test_s"), ("training", "train_s")):
    wang.states(
        f"wang-shortest-{_id}",
        "Table 5",
        f"BTPPSVM has the shortest {_id} time of the six on Letter (one run).",
        partial(shortest, column=_column),
        evidence=CLOCK if _id == "test" else "",
    )


@wang.claim(
    "wang-least-work",
    "Section 4",
    "BTPPSVM computes the fewest kernel values of the six for a row of Letter.",
)
def _least_work(t: Tables) -> Outcome:
    rows = of(as_written(t), "letter").set_index("system")["kernel_evaluations"]
    fewest = rows.drop("btppsvm").min()
    effect = f"{rows['btppsvm']:.0f}, the next {fewest:.0f}"
    return replace(judges.every([rows["btppsvm"] < fewest], "sets"), effect=effect)


# ------------------------------------------------------------ Figure 1
def at_eleven(t: Tables, letter: bool) -> pd.DataFrame:
    """BTPPSVM at k = 11 beside k = 1, on Letter or on the other sets."""
    table = t["figure1"]
    rows = table[(table["dataset"] == "letter") == letter]
    ends = rows[rows["k"] == 11].set_index("dataset")
    if ends.empty:
        raise NotRecordedError("no such set")
    first = rows[rows["k"] == 1].set_index("dataset")["support_vectors"]
    return ends.assign(first=first)


def error_falls(t: Tables, letter: bool) -> Outcome:
    """Whether the test error is lower at k = 11 than at k = 1, by McNemar's test."""
    return judges.on_each(on_sets(at_eleven(t, letter)))


def vectors_fall(t: Tables, letter: bool) -> Outcome:
    """Whether there are fewer support vectors at k = 11 than at k = 1."""
    ends = at_eleven(t, letter)
    return judges.every(ends["support_vectors"] < ends["first"], "sets")


for _letter, _end, _place, _where in (
    (True, "", "Figure 1", "On Letter"),
    (False, "-others", "Section 4", "On the other sets, too,"),
):
    wang.states(
        f"wang-k-error{_end}",
        _place,
        f"{_where} the test error falls from k = 1 to k = 11 (McNemar).",
        partial(error_falls, letter=_letter),
        evidence="error over k",
    )
    wang.states(
        f"wang-k-svs{_end}",
        _place,
        f"{_where} the number of support vectors falls from k = 1 to k = 11.",
        partial(vectors_fall, letter=_letter),
        evidence="support vectors over k",
    )
