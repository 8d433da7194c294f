"""Rathgamage Don and Iacob 2018: what the paper states, and how each statement is judged in its two readings.

The rules read tables that notebook 04 records: `cost` (a row a reading, set, method and threshold), `trials` (accuracy
of each trial), `shape` (trees made score first and balance first), `glass_draws` (section 3.2 on 200 draws of Glass).
"More accurate" is judged over trials by an interval for splits that share rows; "in general" by a sign test over sets.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from ..report.claims import INFERRED, WRITTEN, Outcome, Paper, Tables, three
from ..report.verdicts import NOT_REPRODUCED, REPRODUCED, decimals, number, published
from ..statistics import corrected_interval, rank_correlation, sign_interval
from .common import of

don = Paper("04_don2018", "Rathgamage Don, Iacob 2018")
ACCURACIES = ["acc_builtin", "acc_ovo", "acc_2", "acc_1", "acc_0.1", "acc_0.01"]
COSTS = [f"{kind}_{t}" for kind in ("steps", "sv") for t in ("2", "1", "0.1", "0.01")]
PRINTED = published("don2018_tables3to6")
# What the reading as inferred was chosen by: the Id by Glass's accuracies, five files by the digits of theirs,
# Covertype's rows and score-first by the support vectors of Table 6.
CHOSEN_BY = {(name, "acc") for name in ("glass", "artificial", "segmentation", "svmguide4", "vowel", "usps")}
CHOSEN_BY |= {("covertype", "sv"), ("wine-quality", "sv")}

# ------------------------------------------------------------------------------------------------ table cells
MEASURES = {c: ("exact",) for c in ("purity_theta0", "balance_theta0", "score_pct")}
for _reading, _end in ((WRITTEN, "_written"), (INFERRED, "")):
    for _k in (1, 2):
        don.cells(f"don-table{_k}", place=f"Table {_k}", published=f"don2018_table{_k}", table=f"glass_table{_k}{_end}",
                  keys=["machine"], columns=MEASURES, reading=_reading,
                  fitted=(lambda key, column: True) if _reading == INFERRED else None)  # fmt: skip
    don.cells("don-tables3to6", place="Tables 3 to 6", published="don2018_tables3to6", table=f"tables3to6{_end}",
              keys=["dataset"], reading=_reading,
              columns={"classes": ("exact",)} | {c: ("accuracy", "n_test") for c in ACCURACIES}
              | {c: ("count",) for c in COSTS},
              fitted=(lambda key, column: (key[0], column.split("_")[0]) in CHOSEN_BY) if _reading == INFERRED
              else None)  # fmt: skip


# ------------------------------------------------------------------------------------------------ tools of the rules
def both(id: str, place: str, text: str, rule: Callable[[Tables, str], object], **about) -> None:
    """State a claim that one rule of (tables, reading) judges in both readings."""
    don.states(id, place, text, lambda t: rule(t, WRITTEN), lambda t: rule(t, INFERRED), **about)


def wide(t: Tables, reading: str, column: str) -> pd.DataFrame:
    """One column of `cost`: a row a set, a column a method, DCSVM's named by its threshold in per cent."""
    rows = t["cost"].query("reading == @reading and method != 'balance'")
    names = [m if m != "dcsvm" else f"{x:g}" for m, x in zip(rows["method"], rows["threshold_pct"], strict=True)]
    return rows.assign(name=names).pivot(index="dataset", columns="name", values=column)


def asked(t: Tables, reading: str, method: str) -> pd.DataFrame:
    """Select a method's rows of `cost`."""
    return t["cost"].query("reading == @reading and method == @method")


def curve(t: Tables, reading: str, name: str, column: str) -> pd.Series:
    """A column of `cost` for DCSVM on one set, by threshold in per cent."""
    return of(asked(t, reading, "dcsvm"), name).set_index("threshold_pct")[column].sort_index()


def gain(t: Tables, reading: str, better: str, worse: str) -> pd.DataFrame:
    """Per set, mean points of accuracy that one method is ahead of another over the trials, and the 95 % limits."""
    rows = t["trials"].query("reading == @reading")
    ratio = 0.25 if reading == WRITTEN else 1 / 9
    parts = {name: corrected_interval(g[better] - g[worse], ratio) for name, g in rows.groupby("dataset", sort=False)}
    return pd.DataFrame(parts, index=["mean", "low", "high"]).T


def on_letter(t: Tables, reading: str, better: str, worse: str) -> tuple[float, float, float]:
    """The row of `gain` for Letter."""
    return tuple(gain({"trials": of(t["trials"], "letter")}, reading, better, worse).loc["letter"])


def some(holds: pd.Series) -> Outcome:
    """Judge "may": it holds if it happens on some set."""
    return Outcome(REPRODUCED if holds.any() else NOT_REPRODUCED, f"on {holds.sum()} of {len(holds)} sets")


def mostly(differences: pd.Series) -> Outcome:
    """Judge "in general": the sign test over sets, ties left out."""
    differences = differences.round(9)
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    found = three(*sign_interval(better, worse))
    return Outcome(found.word, f"{better} for, {worse} against, {len(differences) - better - worse} equal")


def held(values: pd.Series, printed: float, digits: int = 0) -> Outcome:
    """Judge a number of one unknown draw: reproduced if the middle 95 % of our draws hold it."""
    low, high = np.quantile(values, [0.025, 0.975])
    near = 0.5 * 10.0**-digits
    word = REPRODUCED if low - near <= printed <= high + near else NOT_REPRODUCED
    return Outcome(word, f"{number(values.median(), 1)} [{number(low, 1)}, {number(high, 1)}]")


def shapes(t: Tables, reading: str, column: str) -> pd.Series:
    """How much more of a column of `shape` score first has than balance first, by set."""
    table = t["shape"].query("reading == @reading").pivot(index="dataset", columns="prefer", values=column)
    return table["score"] - table["balance"]


# fmt: off
# ------------------------------------------------------------------------------------------------ sections 1 to 3
don.uncheckable("don-artificial", "Figure 1", "Machine 1-2 separates classes 4 and 6, nearly 5, and halves 3.",
                "the points are not published; ours are made to look so")
don.states("don-depth", "Proposition 1", "The tree is at most k - 1 deep.", kind="definition",
           body=lambda t: t["depth"].query("case == 'any'").eval("depth <= n_classes - 1"))
don.states("don-depth-halving", "Proposition 2", "Where machines halve: at most ceil(log2 k) deep.", kind="definition",
           body=lambda t: t["depth"].query("case == 'halving'").eval("2.0 ** (depth - 1) < n_classes"))
both("don-machines", "section 2.3", "One-versus-one asks k(k-1)/2 machines.", kind="definition",
     rule=lambda t, r: asked(t, r, "ovo").eval("steps == classes * (classes - 1) / 2"))
both("don-dag-steps", "section 2.3", "DAGSVM asks exactly k - 1 machines.", kind="definition",
     rule=lambda t, r: asked(t, r, "dagsvm").eval("steps == classes - 1"))
both("don-bushier", "section 3.1", "Score first may give bushier trees (more nodes, on some set).",
     lambda t, r: some(shapes(t, r, "nodes") > 0))
both("don-balance-speed", "section 3.1", "Purity and balance first favours the speed of decisions.",
     lambda t, r: mostly(shapes(t, r, "steps")))

for _id, _column, _value, _place, _text in (
    ("likelihood", "c16_of_2", 91.8, "Figure 2", "Machine 1-6 calls 91.8 % of Glass's class 2 a 1."),
    ("likelihood-12", "c12_of_1", 100, "Figure 2", "Machine 1-2 calls all of class 1 a 1."),
    ("purity-example", "p16", 3, "Definition 3", "At theta 5 % machine 1-6 leaves 3 classes undecided."),
    ("balance-12", "b12", 1, "Definition 3", "At theta 5 % machine 1-2 has balance 1."),
    ("balance-56", "b56", 2, "Definition 3", "At theta 5 % machine 5-6 has balance 2."),
    ("scores", "full_scores", 15, "section 3.2", "All fifteen machines of Glass score 100 %."),
    ("purest", "pure", 3, "Table 1", "Three machines leave no class of Glass undecided at theta 0."),
    ("separated", "decided", 58, "section 4.3", "At theta 2 % Glass's table has 58 decided cells."),
):
    both(f"don-{_id}", _place, _text, published=_value, rule=lambda t, r, column=_column, value=_value:
         held(t["glass_draws"].query("reading == @r")[column], value, decimals([value])))


def _root(t: Tables, reading: str) -> Outcome:
    share = (t["glass_draws"].query("reading == @reading")["root"] == "5-6").mean()
    return Outcome(REPRODUCED if share >= 0.05 else NOT_REPRODUCED, f"in {100 * share:.0f} % of the draws")


both("don-root", "section 3.2", "Machine 5-6 is the root of Glass's tree.", _root)
don.states("don-72", "section 4.3", "58 of the 15 x 6 cells are 72.5 %.", lambda t: 100 * 58 / (15 * 6),
           published=72.5, rule=("exact",))


# ------------------------------------------------------------------------------------------------ sections 4.1, 4.2
def _alike_in_print(t: Tables, reading: str) -> pd.Series:
    """Fisher's exact test of the best against the worst printed accuracy, on as many rows as the reading tests."""
    mine = t["tables3to6" + ("_written" if reading == WRITTEN else "")].dropna(subset="n_test").set_index("dataset")
    n = mine["n_test"].astype(float)
    hits = PRINTED.set_index("dataset").loc[n.index, ["acc_builtin", "acc_ovo", "acc_0.01"]].mul(n / 100, axis=0)
    pairs = zip(hits.max(axis=1).round(), hits.min(axis=1).round(), n, strict=True)
    return pd.Series([fisher_exact([[a, m - a], [b, m - b]]).pvalue >= 0.05 for a, b, m in pairs], hits.index)


both("don-no-difference", "section 4.1", "Built-in, one-versus-one and DCSVM do not differ significantly.",
     lambda t, r: pd.concat([gain(t, r, a, b).eval("low <= 0 and high >= 0") for a, b in (
         ("ovo", "builtin"), ("dcsvm", "ovo"), ("dcsvm", "builtin"))], axis=1).all(axis=1))
both("don-no-difference-printed", "Table 4", "The same, of the accuracies that the paper prints.", _alike_in_print)
both("don-accuracy-kept", "section 4.2", "DCSVM (.01 %) is nowhere less accurate than one-versus-one.",
     lambda t, r: gain(t, r, "dcsvm", "ovo")["high"] >= 0)
both("don-easy-sets", "Table 4", "On Iris and Wine all methods and thresholds are equally accurate.",
     lambda t, r: wide(t, r, "accuracy_pct").query("dataset in ['iris', 'wine']")[
         ["builtin", "ovo", "2", "1", "0.1", "0.01"]].agg(np.ptp, axis=1) < 1e-9)
both("don-fewer-decisions", "section 4.2", "DCSVM takes fewer decisions than one-versus-one, each set.",
     lambda t, r: wide(t, r, "steps").eval("`0.01` < ovo"))
both("don-fewer-evaluations", "section 4.2", "DCSVM meets fewer support vectors (summed), each set.",
     lambda t, r: wide(t, r, "support_vectors").eval("`0.01` < ovo"))
both("don-svs-steps", "section 4.2", "Support vectors follow the number of steps (ranks of what is saved).",
     lambda t, r: three(*rank_correlation(*(wide(t, r, c).eval("`0.01` / ovo") for c in ("support_vectors", "steps")))))
don.states("don-faster", "Figure 7", "DCSVM predicts a row faster than one-versus-one, each set.",
           lambda t: t["times"].set_index("dataset").eval("dcsvm < ovo"))


# ------------------------------------------------------------------------------------------------ section 4.3
both("don-larger-better", "section 4.3", "The larger the threshold, the better the accuracy, in general.",
     lambda t, r: mostly(wide(t, r, "accuracy_pct").eval("`2` - `0.01`")))
don.states("don-larger-better-printed", "Table 4", "The same, of the accuracies that the paper prints.",
           lambda t: mostly(PRINTED["acc_2"] - PRINTED["acc_0.01"]))
both("don-threshold-accuracy", "section 1", "A higher threshold possibly sacrifices accuracy (on some set).",
     lambda t, r: some(gain(t, r, "dcsvm_2", "dcsvm")["high"] < 0))
both("don-threshold-steps", "section 4.3", "A larger threshold may increase speed (fewer steps, some set).",
     lambda t, r: some(wide(t, r, "steps").eval("`2` < `0.01` - 1e-9")))
both("don-threshold-svs", "section 4.3", "A larger threshold may reduce effort (fewer support vectors, some set).",
     lambda t, r: some(wide(t, r, "support_vectors").eval("`2` < `0.01` - 1e-9")))
both("don-steps-below", "section 4.3", "In all cases the number of decision steps is below k - 1.",
     lambda t, r: asked(t, r, "dcsvm").query("threshold_pct in [2, 1, .1, .01]").set_index("dataset").eval(
         "steps < classes - 1 - 1e-9").groupby(level=0).all())
don.states("don-steps-printed", "Table 5", "The same, of the steps that the paper itself prints.",
           lambda t: PRINTED.filter(like="steps_").max(axis=1) < PRINTED["classes"] - 1)
both("don-before-dag", "section 4.3", "DCSVM outperforms DAGSVM: fewer steps, in general.",
     lambda t, r: mostly(wide(t, r, "steps").eval("dagsvm - `0.01`")))
both("don-separable", "section 4.3", "The more separable the data, the less the threshold changes speed.",
     lambda t, r: three(*rank_correlation(wide(t, r, "separation_pct")["0"], wide(t, r, "steps").eval("`5` / `0`"))))
both("don-shallow", "section 4.3", "The more cells are decided, the shallower the tree (steps over k - 1).",
     lambda t, r: three(*rank_correlation(wide(t, r, "separation_pct")["2"],
                                          wide(t, r, "steps").eval("-`2` / dagsvm"))))
both("don-vowel-steady", "Figure 8", "On Vowel the threshold moves neither accuracy nor steps (by 1 %).",
     lambda t, r: all(np.ptp(c) < 0.01 * c.max() for c in (
         curve(t, r, "vowel", column).loc[[0.01, 0.1, 1, 2]] for column in ("accuracy_pct", "steps"))))
both("don-letter-ovo", "section 4.3", "On Letter one-versus-one is more accurate than the built-in method.",
     lambda t, r: three(*on_letter(t, r, "ovo", "builtin")))
both("don-letter-small", "Figure 9", "On Letter at .01 % DCSVM is as accurate as one-versus-one (.1 points).",
     lambda t, r: abs(on_letter(t, r, "dcsvm", "ovo")[0]) <= 0.1)
both("don-letter-accuracy", "Figure 9", "On Letter DCSVM at 2 % falls below one-versus-one.",
     lambda t, r: three(*on_letter(t, r, "ovo", "dcsvm_2")))
both("don-letter-between", "Figure 9", "On Letter at 2 % DCSVM is still more accurate than built-in.",
     lambda t, r: three(*on_letter(t, r, "dcsvm_2", "builtin")))
both("don-letter-steps", "Figure 8", "On Letter steps fall as the threshold rises (each printed value).",
     lambda t, r: bool((curve(t, r, "letter", "steps").loc[[0.1, 1, 2]].diff().dropna() < 0).all()))

# ------------------------------------------------------------------------------------------------ Figure 10
both("don-separation-grows", "Figure 10", "Separation grows with the threshold.", kind="definition",
     rule=lambda t, r: pd.Series([curve(t, r, name, "separation_pct").is_monotonic_increasing
                                  for name in ("letter", "vowel", "usps", "sensorless")]))


def step_parts(separation: Sequence[float]) -> tuple[float, float, float]:
    """Shares of the rise from 0 to 5 % that come before 2.3, from 2.3 to 3 and after 3 % (nothing, if none rises)."""
    rise = np.diff(np.asarray(separation, dtype=float))
    return tuple((rise / rise.sum() if rise.sum() > 0 else np.zeros(3)).tolist())


def _step(t: Tables, reading: str) -> Outcome:
    before, _, after = step_parts(curve(t, reading, "vowel", "separation_pct").loc[[0, 2.3, 3, 5]].tolist())
    return Outcome(REPRODUCED if before < 0.1 and after < 0.1 else NOT_REPRODUCED, f"{before:.2f} and {after:.2f}")


for _id, _name in (("letter", "Letter"), ("usps", "USPS")):
    both(f"don-linear-{_id}", "Figure 10", f"On {_name} separation is almost linear (correlation above .98).",
         lambda t, r, name=_id: curve(t, r, name, "separation_pct").loc[np.arange(0, 5.1, 0.5)].pipe(
             lambda even: bool(np.corrcoef(even.index, even)[0, 1] > 0.98)))
both("don-sharp-sensorless", "Figure 10", "On Sensorless it jumps, then flattens: half the rise by 1 %.",
     lambda t, r: curve(t, r, "sensorless", "separation_pct").pipe(lambda c: bool(c[1.0] - c[0.0] > c[5.0] - c[1.0])))
both("don-step-vowel", "Figure 10",
     "On Vowel, a step: of its rise, under .1 before 2.3 % and under .1 after 3 %.", _step)
don.uncheckable("don-consistently", "section 5", "DCSVM performs consistently better than existing methods on average.",
                "neither the methods nor the measure are named")
