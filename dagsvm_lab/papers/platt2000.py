"""Platt, Cristianini and Shawe-Taylor 2000: what the paper states, and how it is
judged.

The rules read tables that notebook 01 records. Where a statement is about training,
*as written* counts the kernel values that Platt's own SMO of 1998 asks for, which do
not depend on the computer, and *as inferred* takes LIBSVM's seconds.
"""

from collections.abc import Iterable
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
from ..report.prose import by_name, of, span
from ..report.verdicts import claim_verdict, published
from ..statistics import binomial_interval, corrected_interval, slope_interval

platt = Paper("01_platt2000", "Platt, Cristianini, Shawe-Taylor 2000")
TEST_ROWS = {"usps": 2007, "letter": 4000, "covertype": 565_892}
METHODS = ("1-v-r", "max-wins", "dagsvm")
PRINTED_TABLE1 = published("platt2000_table1").query("method in @METHODS")
SOLVERS = {WRITTEN: "smo1998", INFERRED: "libsvm"}
TABLE1_RULES = {
    "error_pct": ("error", TEST_ROWS),
    "kernel_evaluations": ("count",),
    "size_kparameters": ("count",),
}

# ------------------------------------------------------------ table cells


def chosen_by_print(key: tuple, column: str) -> bool:
    """Whether a cell as inferred was used to choose the reading: USPS's tolerance was
    picked by its counts, Covertype's coding by all nine numbers."""
    if key[0] == "usps":
        return column != "error_pct"
    return key[0] == "covertype"


platt.picked(
    "table1_inferred",
    why="USPS's tolerance and Covertype's coding agree with these cells",
    cells=chosen_by_print,
)
for _reading, _end, _more in (
    (WRITTEN, "", {"train_cpu_s": ("time",)}),
    (INFERRED, "_inferred", {}),
):
    platt.cells(
        "platt-t1",
        place="Table 1",
        published="platt2000_table1",
        where="method != 'neural-net'",
        table=f"table1{_end}",
        keys=["dataset", "method"],
        columns=TABLE1_RULES | _more,
        reading=_reading,
    )


# ------------------------------------------------------------ tools of the rules
def wide(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """One column of a table: a row a set, a column a method."""
    return table.pivot(index="dataset", columns="method", values=column)


def in_print(t: Tables) -> pd.DataFrame:
    """Table 1 as the paper prints it; made ones in tests."""
    given = t.get("printed")
    return PRINTED_TABLE1 if given is None else given


def work(t: Tables, reading: str) -> pd.DataFrame:
    """Training work of the three systems by a reading's solver, a row a set."""
    rows = t["training"]
    return wide(rows[rows["solver"] == SOLVERS[reading]], "work")


# ------------------------------------------------------------ section 1
platt.states(
    "platt-friedman",
    "section 1",
    "In some circumstances Max Wins is Bayes optimal: where each machine prefers the "
    "more probable of its two classes (and so is the DDAG, under any list).",
    each_row("friedman", "max_wins_differs == 0 and dag_differs == 0"),
    kind="definition",
)


@platt.claim(
    "platt-no-bound",
    "section 1",
    "The AND gate and Max Wins have no bound on the generalization error. (Judged by "
    "the proof of Theorem 1, which bounds the chance that a machine of the true class "
    "errs: does it leave an error of theirs uncovered?)",
)
def _no_bound(t: Tables) -> Outcome:
    found = t["covered"].query("system != 'dagsvm'")
    uncovered = int(found["uncovered"].sum())
    text = f"{uncovered} of {int(found['wrong'].sum())} errors uncovered"
    return Outcome(claim_verdict(uncovered > 0), text)


@platt.claim(
    "platt-size-grows",
    "section 1",
    "The size of the 1-v-1 classifier may grow superlinearly with N (exponent less 1, "
    "the set where it is surest).",
    evidence="growth of size",
)
def _size_grows(t: Tables) -> Outcome:
    rows = t["growth"].query("method == 'max-wins'")
    if rows.empty:
        raise NotRecordedError("no rows of USPS or Letter")
    fits = [
        slope_interval(part["n_classes"], part["size_k"])
        for _, part in rows.groupby("dataset")
    ]
    estimate, low, high = max(fits, key=lambda fit: fit[1])
    return judges.above(estimate - 1, low - 1, high - 1)


def errs_more(t: Tables, first: str, second: str) -> Outcome:
    """Whether a system of `overfit` errs more than another on most sets, by McNemar."""
    rows = t["overfit"].query("first == @first and second == @second")
    tests = [
        judges.paired(row.only_first_wrong, row.only_second_wrong, row.test_rows)
        for row in rows.itertuples()
    ]
    points = 100 * (rows["only_first_wrong"] - rows["only_second_wrong"])
    points = (points / rows["test_rows"]).set_axis(rows["dataset"])
    text = by_name(points)
    return replace(judges.most_outcomes(tests), text=f"points more: {text}")


platt.states(
    "platt-regularised",
    "section 1",
    "A significant disadvantage of the 1-v-1 approach: unless the individual "
    "classifiers are carefully regularized (as in SVMs), the system tends to overfit. "
    "Unpruned trees of pairs err more than pruned ones (McNemar, most sets). "
    "(Inferred, a disadvantage of 1-v-1: more than unpruned trees 1-v-r.)",
    partial(errs_more, first="1-v-1 unpruned", second="1-v-1 pruned"),
    partial(errs_more, first="1-v-1 unpruned", second="1-v-r unpruned"),
)

# ------------------------------------------------------------ section 2
platt.states(
    "platt-nodes",
    "Definition 1",
    "A DDAG on N classes has N(N-1)/2 nodes and N leaves.",
    each_row(
        "graphs", "nodes == n_classes * (n_classes - 1) / 2 and leaves == n_classes"
    ),
    kind="definition",
)
platt.states(
    "platt-path",
    "section 2",
    "Every answer takes exactly N-1 decisions.",
    each_row("graphs", "path_min == n_classes - 1 and path_max == n_classes - 1"),
    kind="definition",
)
platt.states(
    "platt-list",
    "section 2",
    "The DDAG is equivalent to operating on a list (sets of outputs on which the two "
    "programs differ: none).",
    each_row("graphs", "list_differs == 0"),
    kind="definition",
)
platt.states(
    "platt-tree",
    "section 2",
    "The DDAG does what the tree with its repeated branches does, with fewer nodes "
    "(from four classes on).",
    each_row(
        "graphs", "tree_differs == 0 and nodes < tree_nodes", where="n_classes >= 4"
    ),
    kind="definition",
)


# ------------------------------------------------------------ section 3
@platt.claim(
    "platt-dimension",
    "Theorem 1",
    "The bound has margins and classes in it, not the dimension of the space.",
    kind="definition",
)
def _dimension(t: Tables) -> bool:
    bound = t["dimension"]["bound"]
    return bool(np.ptp(bound) < 1e-6 * bound.max())


@platt.claim(
    "platt-theorem1-proof",
    "Theorem 1, Eq. 3",
    "Theorem 1 as printed is at least what Lemma 4 and Vapnik's lemma give, in units "
    "in which R = 1. (It is if D' log(4em) log 2 <= (1 - 1/(65 R^2)) log(2 (2m)^K / "
    "delta), which depends on the units.)",
)
def _theorem1_proof(t: Tables) -> Outcome:
    found = t["bounds"].query("variant == 'theorem1'").dropna(subset="bound")
    outcome = judges.every(found["true_from_R"] <= 1, "bounds")
    from_R = span(found["true_from_R"], 1)
    return replace(outcome, effect=f"true in units in which R is at least {from_R}")


@platt.claim(
    "platt-pessimistic",
    "section 3",
    "In some situations the bound is pessimistic: it says something (is below 1), and "
    "is ten times what the error can be, or more.",
)
def _pessimistic(t: Tables) -> Outcome:
    found = t["simulation"].query("bound_e < 1")
    if found.empty:
        raise NotRecordedError("no bound below 1")
    most = [
        binomial_interval(round(row.error * row.test_rows), row.test_rows)[1] / 100
        for row in found.itertuples()
    ]
    ratio = found["bound_e"] / most
    outcome = judges.some(ratio >= 10, "runs with a bound below 1")
    return replace(outcome, effect=f"up to {ratio.max():,.0f} times")


platt.states(
    "platt-cells",
    "section 3",
    "The DDAG of hyperplanes cuts the input space into polytopic regions (midpoints of "
    "two points with one path that leave it: none).",
    each_row("midpoints", "left == 0", where="kernel == 'linear'"),
    kind="definition",
)


def margins_and_errors(t: Tables, column: str) -> Outcome:
    """Rank correlation of a class's D' with its error, ranks taken within each set."""
    by_set = t["jnodes"].groupby("dataset")
    outcome = judges.correlated(
        by_set["D_prime"].rank(pct=True), by_set[column].rank(pct=True)
    )
    return replace(outcome, effect=f"{by_set.ngroups} sets, {len(t['jnodes'])} classes")


platt.states(
    "platt-jnodes",
    "section 3",
    "A DDAG whose j-nodes have large margins errs less on class j: the larger D', the "
    "larger epsilon_j = P(in class j and misclassified), as Theorem 2 has it (ranks "
    "within each set).",
    partial(margins_and_errors, column="joint_pct"),
    evidence="margins at the j-nodes",
)
platt.states(
    "platt-jnodes-share",
    "section 3",
    "The same with the share of class j that is misclassified (how accurate it is at "
    "identifying class j).",
    partial(margins_and_errors, column="error_pct"),
    evidence="margins at the j-nodes",
)
platt.states(
    "platt-theorem2",
    "Theorem 2",
    "For one class the j-nodes' margins suffice: a sum over fewer terms.",
    lambda t: t["classes"].dropna(subset="share").eval("share < 1"),
    kind="definition",
)


# ------------------------------------------------------------ section 4
platt.states(
    "platt-safe",
    "section 4",
    "It is safe to discard the losing class (hard margin): no training row of it lies "
    "nearer to the surface than the margin.",
    each_row("safe", "training_inside == 0"),
    kind="definition",
)


def as_chance_has(significant: pd.Series) -> bool:
    """Whether no more differences are significant at .05 than chance makes so."""
    low, _ = binomial_interval(int(significant.sum()), len(significant))
    return low <= 5


@platt.claim(
    "platt-order",
    "section 4",
    "Re-ordering the list does not change accuracy significantly: on each set no more "
    "of the random lists than chance has differ from the natural one (McNemar, .05).",
)
def _order(t: Tables) -> Outcome:
    by_set = t["orders"].groupby("dataset", sort=False)
    few = by_set["significant"].agg(as_chance_has)
    points = t["orders"].eval("100 * abs(gained) / test_rows")
    median = points.groupby(t["orders"]["dataset"], sort=False).median()
    return replace(
        judges.every(few, "sets"),
        effect=f"median difference in points: {by_name(median)}",
    )


def trained(t: Tables, reading: str, kind: str) -> pd.DataFrame:
    """Rows of `scaling` by a reading's solver: single machines, or whole systems."""
    rows = t["scaling"]
    return rows[(rows["solver"] == SOLVERS[reading]) & (rows["kind"] == kind)]


def machine_exponents(t: Tables, reading: str) -> pd.Series:
    """Exponent of one machine's work over its rows, a pair of classes and draw each."""
    rows = trained(t, reading, "machine")
    found = {
        key: slope_interval(part["m"], part["work"])[0]
        for key, part in rows.groupby(["pair", "draw"])
    }
    return pd.Series(found).groupby(level=0).mean()


def exponent_interval(t: Tables, reading: str) -> tuple[float, float, float]:
    """Mean exponent over pairs of classes, with Student's interval."""
    return corrected_interval(machine_exponents(t, reading), 0.0)


def over_eq2(t: Tables, reading: str, gamma: float) -> tuple[float, float, float]:
    """Exponent over N of all pairs' work divided by Eq. 2's N(N-1)/2 (2m/N)^gamma."""
    rows = trained(t, reading, "1-v-1")
    n = rows["n_classes"]
    ideal = n * (n - 1) / 2 * (2 / n) ** gamma
    return slope_interval(n, rows["work"] / ideal)


def superlinear(t: Tables, reading: str) -> Outcome:
    """Whether the exponent is above 1."""
    estimate, low, high = exponent_interval(t, reading)
    return judges.above(estimate - 1, low - 1, high - 1)


def gamma_two(t: Tables, reading: str) -> Outcome:
    """Whether the exponent is about 2."""
    found = machine_exponents(t, reading)
    outcome = judges.judge_exponent(*exponent_interval(t, reading), printed=2.0)
    return replace(outcome, effect=f"single pairs {span(found, 2)}")


def linear_in_n(t: Tables, reading: str) -> Outcome:
    """Whether 1-v-r's work grows as N."""
    rows = trained(t, reading, "1-v-r")
    return judges.exponent(rows["n_classes"], rows["work"], printed=1.0)


def eq2_holds(t: Tables, reading: str) -> Outcome:
    """Whether all pairs' work over Eq. 2 with gamma 2 does not depend on N."""
    outcome = judges.near_zero(*over_eq2(t, reading, 2.0), margin=0.25)
    own = exponent_interval(t, reading)[0]
    other = judges.interval_text(*over_eq2(t, reading, own))
    return replace(outcome, effect=f"with the measured gamma {own:.2f}: {other}")


def at_most_twice(t: Tables, reading: str) -> Outcome:
    """Whether all pairs take at most twice the work of one 1-v-r machine, most
    classes."""
    pairs = trained(t, reading, "1-v-1").query("n_classes == n_classes.max()")
    rest = trained(t, reading, "1-v-r").query("n_classes == n_classes.max()")
    n = pairs["n_classes"].max()
    ratio = pairs.set_index("draw")["work"] / (rest.set_index("draw")["work"] / n)
    mean, low, high = corrected_interval(ratio, 0.0)
    exact = 2 * (n - 1) / n
    outcome = judges.above(2 - mean, 2 - high, 2 - low)
    text = judges.interval_text(mean, low, high)
    return replace(outcome, text=f"{text} times", effect=f"Eq. 2 exactly: {exact:.2f}")


platt.both(
    "platt-superlinear",
    "section 4",
    "Training scales more than linearly with m (exponent less 1, over pairs of "
    "classes).",
    superlinear,
    evidence="exponent of training",
)
platt.both(
    "platt-exponent",
    "section 4",
    "Training time is c m^gamma with gamma about 2 (over pairs of classes).",
    gamma_two,
    published=2.0,
    evidence="exponent of training",
)
platt.both(
    "platt-time-rest",
    "section 1, Eq. 1",
    "1-v-r training grows linearly with N (its exponent).",
    linear_in_n,
    published=1.0,
)
platt.both(
    "platt-time-pairs",
    "Eq. 2",
    "All 1-v-1 machines take c N(N-1)/2 (2m/N)^2: over that, nothing depends on N "
    "(exponent within .25 of 0).",
    eq2_holds,
    evidence="all pairs over N",
)
platt.both(
    "platt-time-twice",
    "section 4",
    "All 1-v-1 machines take only twice the time of a single 1-v-r machine (2(N-1)/N, "
    "so at most 2).",
    at_most_twice,
    published=2.0,
    evidence="all pairs over N",
)


def faster_than_wins(training: pd.DataFrame) -> Outcome:
    """Whether Max Wins takes longer to train on each set; a column a method."""
    ratio = training["max-wins"] / training["dagsvm"]
    return replace(judges.every(ratio > 1, "sets"), effect=by_name(ratio))


def faster_by_solver(t: Tables, reading: str) -> Outcome:
    """The same, of the work that a reading's solver counts."""
    return faster_than_wins(work(t, reading))


platt.both(
    "platt-faster-than-wins",
    "Abstract, section 4",
    "DAGSVM is substantially faster to train than Max Wins (work of Max Wins over "
    "DAGSVM's, at Table 1's sigma and C).",
    faster_by_solver,
    evidence="training against Max Wins",
)


@platt.claim(
    "platt-faster-than-wins-printed",
    "Table 1",
    "The same, of the seconds that Table 1 prints.",
    evidence="training against Max Wins",
)
def _faster_in_print(t: Tables) -> Outcome:
    return faster_than_wins(wide(in_print(t), "train_cpu_s"))


# ------------------------------------------------------------ section 5
@platt.claim(
    "platt-covertype-test",
    "section 5",
    "Covertype has 565,893 test examples.",
    published=565_893,
    rule=("exact",),
)
def _covertype_test(t: Tables) -> int:
    return of(t["datasets"], "covertype")["test"].iloc[0]


@platt.claim(
    "platt-gaussian-best",
    "section 5",
    "The Gaussian kernel was always found to be best: for every method on every set it "
    "beats each polynomial (McNemar, .05; else a tie). (Inferred, by the paper's own "
    "selection: it has the lowest validation error.)",
    evidence="kernels on validation rows",
)
def _gaussian_best(t: Tables) -> Outcome:
    rows = t["kernels"]
    tests = [
        judges.paired(row.only_polynomial_wrong, row.only_gaussian_wrong)
        for row in rows.itertuples()
    ]
    words = [test.word for test in tests]
    better = words.count(v.REPRODUCED)
    worse = words.count(v.NOT_REPRODUCED)
    ties = len(words) - better - worse
    text = f"{better} better, {ties} ties, {worse} worse"
    return replace(judges.on_each(tests), text=text)


@platt.inferred("platt-gaussian-best")
def _lowest_on_validation(t: Tables) -> Outcome:
    lower = t["kernels"]["gaussian_pct"] < t["kernels"]["polynomial_pct"]
    return judges.every(lower, "methods and sets")


@platt.claim(
    "platt-parameters",
    "section 5",
    "The optimal parameters are very similar for the three methods: on each set some "
    "Gaussian setting is within chance of all three methods' best.",
)
def _parameters(t: Tables) -> Outcome:
    rows = t["selection"].query("kernel == 'rbf'")
    least = rows.groupby(["dataset", "sigma", "C"])["p_to_best"].min()
    return judges.every(least.ge(0.05).groupby("dataset").any(), "sets")


@platt.claim(
    "platt-selected",
    "Table 1",
    "The nine sigma and C of Table 1 were chosen on validation rows: on ours each is "
    "within chance of the best (McNemar, .05 over nine tests).",
)
def _selected(t: Tables) -> Outcome:
    found = t["selected"]
    near = found["p_to_best"] >= 0.05 / len(PRINTED_TABLE1)
    worse = found["printed_pct"] - found["best_pct"]
    outcome = judges.every(near, "settings")
    return replace(outcome, effect=f"{span(worse, 2)} points above the best")


@platt.claim(
    "platt-errors-similar",
    "section 5",
    "Error rates are similar for the three methods (at most 1.2 points apart, Table "
    "1's widest).",
)
def _errors_similar(t: Tables) -> Outcome:
    rows = t["table1"].query("method in @METHODS")
    apart = rows.groupby("dataset", sort=False)["error_pct"].agg(np.ptp)
    outcome = judges.every(apart <= 1.2, "sets", tells="1.2 points")
    return replace(outcome, effect=f"{by_name(apart)} points apart")


def none_better(t: Tables, name: str) -> Outcome:
    """Whether no other method is significantly better than DAGSVM on a set."""
    rows = of(t["mcnemar"], name).query("method_b == 'dagsvm'")
    better = rows.eval("p_exact < .05 and only_a_wrong < only_b_wrong")
    n = rows["test_rows"].iloc[0]
    points = 100 * rows.eval("only_b_wrong - only_a_wrong") / n
    discordant = rows.eval("only_a_wrong + only_b_wrong").max()
    outcome = judges.every(~better, "methods")
    return replace(
        outcome,
        effect=f"DAGSVM errs {span(points, 2)} points more",
        tells=f"differences of {196 * np.sqrt(discordant) / n:.2f} points",
    )


def training_ratio(t: Tables, reading: str, name: str) -> Outcome:
    """How many times as long 1-v-r trains as DAGSVM, against the printed ratio."""
    row = of(work(t, reading).reset_index(), name).iloc[0]
    printed = RATIOS[name]
    if reading == INFERRED:
        return judges.clock([row["dagsvm"]], [row["1-v-r"]], printed)
    return judges.against(row["1-v-r"] / row["dagsvm"], printed, digits=1)


RATIOS = {"usps": 11.5, "letter": 2.2}
for _name, _title in (("usps", "USPS"), ("letter", "Letter")):
    platt.states(
        f"platt-mcnemar-{_name}",
        "section 5",
        f"On {_title} neither 1-v-r nor Max Wins is significantly better than DAGSVM "
        "(McNemar, .05).",
        partial(none_better, name=_name),
    )
    platt.both(
        f"platt-training-{_name}",
        "section 5",
        f"DAGSVM trains {RATIOS[_name]} times faster than 1-v-r on {_title}.",
        partial(training_ratio, name=_name),
        published=RATIOS[_name],
    )


def faster_than_rest(t: Tables, reading: str) -> Outcome:
    """Whether both 1-v-1 systems train faster than 1-v-r on every set."""
    found = work(t, reading)
    ratio = found["1-v-r"] / found[["dagsvm", "max-wins"]].max(axis=1)
    return replace(judges.every(ratio > 1, "sets"), effect=f"{span(ratio)} times")


platt.both(
    "platt-training-order",
    "section 5",
    "DAGSVM and Max Wins train faster than 1-v-r on every set.",
    faster_than_rest,
)


@platt.claim(
    "platt-covertype-wins",
    "section 5",
    "On Covertype Max Wins is slightly better than either other system (McNemar, .05).",
)
def _covertype_wins(t: Tables) -> Outcome:
    rows = of(t["mcnemar"], "covertype")
    rows = rows[(rows["method_a"] == "max-wins") | (rows["method_b"] == "max-wins")]
    first = rows["method_a"] == "max-wins"
    wins = rows["only_b_wrong"].where(first, rows["only_a_wrong"])
    losses = rows["only_a_wrong"].where(first, rows["only_b_wrong"])
    tests = [
        judges.paired(*row) for row in zip(wins, losses, rows["test_rows"], strict=True)
    ]
    chance = ""
    if t.get("orders") is not None:
        lists = of(t["orders"], "covertype")
        beaten = int((lists["gained"] > lists["max_wins_gains"]).sum())
        chance = f"{beaten} of {len(lists)} random lists beat Max Wins"
    effect = "; ".join(test.effect for test in tests)
    return replace(judges.on_each(tests), effect=effect, chance=chance)


@platt.claim(
    "platt-wins-before-rest",
    "section 5",
    "Max Wins needs fewer kernel evaluations than 1-v-r: its machines share support "
    "vectors.",
)
def _wins_before_rest(t: Tables) -> pd.Series:
    evaluations = wide(t["table1"], "kernel_evaluations")
    return evaluations["max-wins"] < evaluations["1-v-r"]


@platt.claim(
    "platt-dag-fastest",
    "section 5",
    "DAGSVM has the fastest evaluation: the fewest kernel evaluations of the three.",
)
def _dag_fastest(t: Tables) -> pd.Series:
    evaluations = wide(t["table1"], "kernel_evaluations")
    dag = evaluations["dagsvm"]
    return (dag < evaluations["max-wins"]) & (dag < evaluations["1-v-r"])


def evaluation_ratio(t: Tables, name: str, table: str) -> float:
    """How many times DAGSVM's kernel evaluations Max Wins has on a set."""
    row = wide(of(t[table], name), "kernel_evaluations").iloc[0]
    return row["max-wins"] / row["dagsvm"]


for _id, _text, _name, _times in (
    ("most", "At best", "usps", 2.3),
    ("least", "At worst", "covertype", 1.6),
):
    platt.states(
        f"platt-evaluation-{_id}",
        "section 5",
        f"{_text} DAGSVM evaluates {_times} times faster than Max Wins ({_name}).",
        partial(evaluation_ratio, name=_name, table="table1"),
        partial(evaluation_ratio, name=_name, table="table1_inferred"),
        published=_times,
        fitted=True,
    )


def clocked(t: Tables, what: str, rival: str) -> pd.DataFrame:
    """Time and kernel evaluations of a rival over DAGSVM's over the same machines, a
    row a set."""
    column = f"{what}_us"
    times = wide(t["evaluation"], column)
    counts = wide(t["evaluation"], "kernel_evaluations")
    return pd.DataFrame(
        {
            "time": times[rival] / times["dagsvm"],
            "evaluations": counts[rival] / counts["dagsvm"],
        }
    )


def faster_answers(t: Tables, what: str) -> Outcome:
    """Whether DAGSVM answers in less time than both others, on each set."""
    column = f"{what}_us"
    times = wide(t["evaluation"], column)
    return judges.clock(times["dagsvm"], times[["1-v-r", "max-wins"]].min(axis=1))


def indicates(t: Tables, what: str) -> Outcome:
    """Whether ratios of evaluations are ratios of time, within 15 or 30 %."""
    found = pd.concat([clocked(t, what, rival) for rival in ("1-v-r", "max-wins")])
    ratio = found["time"] / found["evaluations"]
    tests = [judges.against(x, 1.0, ("ratio", 0.15, 0.3)) for x in ratio]
    rho = found["time"].corr(found["evaluations"], "spearman")
    text = f"time over evaluations {span(ratio, 2)}"
    outcome = replace(judges.on_each(tests), text=text)
    return replace(outcome, effect=f"rank correlation {rho:.2f}")


platt.states(
    "platt-faster-answers",
    "Abstract",
    "DAGSVM is substantially faster to evaluate than 1-v-r or Max Wins, on the clock "
    "(seconds of one run: a batch). (Inferred: rows one at a time.)",
    partial(faster_answers, what="batch"),
    partial(faster_answers, what="row"),
    evidence="clock of answers",
)
platt.states(
    "platt-indication",
    "section 5",
    "The number of kernel evaluations is a good indication of evaluation time: on each "
    "set the rivals' time over DAGSVM's is the ratio of evaluations within 15 % "
    "(close: 30 %; seconds of one run, a batch). (Inferred: rows one at a time.)",
    partial(indicates, what="batch"),
    partial(indicates, what="row"),
    evidence="clock of answers",
)


@platt.claim(
    "platt-sharing",
    "section 5",
    "Sharing support vectors across classifiers is a great savings in classifier size "
    "(at most half of what the 1-v-1 machines store apart, on each set).",
)
def _sharing(t: Tables) -> Outcome:
    rows = t["sizes"].query("method == 'max-wins'").set_index("dataset")
    ratio = rows["apart_k"] / rows["nonzero_inputs_k"]
    outcome = judges.every(ratio >= 2, "sets", tells="savings of half")
    return replace(outcome, effect=f"{by_name(ratio)} times smaller")


@platt.claim(
    "platt-size-comparable",
    "section 5",
    "DAGSVM and Max Wins hold about as many parameters as 1-v-r (half to twice as "
    "many).",
)
def _size_comparable(t: Tables) -> Outcome:
    sizes = wide(t["table1"], "size_kparameters")
    ratio = sizes[["dagsvm", "max-wins"]].div(sizes["1-v-r"], axis=0)
    near = ((ratio >= 0.5) & (ratio <= 2)).all(axis=1)
    effect = f"{span(ratio.to_numpy().ravel(), 2)} times"
    return replace(judges.every(near, "sets", tells="factors of 2"), effect=effect)


platt.uncheckable(
    "platt-neural-net",
    "Table 1",
    "Neural networks err 5.9, 4.3 and 30 % on the three sets.",
    "the networks are cited, not described",
)

# ------------------------------------------------------------ section 6
platt.states(
    "platt-theorem3",
    "Theorem 3",
    "Hyperplanes with a threshold shatter at margin gamma at most min(R^2/gamma^2, n + "
    "1) points of a ball of radius R. (Meant: min(ceil(R^2/gamma^2), n) + 1; the "
    "printed form is that of hyperplanes through the origin.)",
    each_row("shattered", "points <= printed + 1e-6"),
    each_row("shattered", "points <= corrected + 1e-6"),
    kind="misprint",
)


@platt.claim(
    "platt-lemma4",
    "Lemma 4",
    "A graph that is right on one half of a double sample errs on more than epsilon of "
    "the other with probability below delta (draws with epsilon below 1; within chance "
    "where no error came near epsilon: then the draws do not contradict it, and could "
    "not).",
)
def _lemma4(t: Tables) -> Outcome:
    rows = t["lemma4"].query("epsilon < 1")
    if rows.empty:
        raise NotRecordedError("no draw with epsilon below 1")
    return exceeded(
        rows["exceeded"],
        float(rows["delta"].iloc[0]),
        rows["error_on_other_half"].max(),
        rows["epsilon"].min(),
    )


def exceeded(
    hits: Iterable[bool], delta: float, largest: float, epsilon: float
) -> Outcome:
    """Judge "with probability below delta" by draws, and by how near they came."""
    hits = np.asarray(list(hits), dtype=bool)
    low, high = (x / 100 for x in binomial_interval(int(hits.sum()), len(hits)))
    if low > delta:
        word = v.NOT_REPRODUCED
    else:
        able = high < delta and largest >= epsilon / 10
        word = v.REPRODUCED if able else v.WITHIN_CHANCE
    text = f"{hits.sum()} of {len(hits)} draws, at most {high:.3f}"
    effect = f"errors up to {largest:.3g}, epsilon from {epsilon:.3g}"
    return Outcome(word, text, effect=effect)
