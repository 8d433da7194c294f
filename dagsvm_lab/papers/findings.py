"""What a reader would repeat to a colleague: sentences computed from recorded tables.

A finding that names an extreme takes it from every recorded row that bears on it;
tests/record/test_findings.py holds each to all of them.
"""

from pathlib import Path

import pandas as pd

from ..report.claims import Tables
from ..report.prose import of, said, span
from ..report.verdicts import NOT_REPRODUCED, WITHIN_CHANCE
from . import blind


def theorem1_bounds(t: Tables) -> pd.Series:
    """Every bound of Theorem 1 on a trained graph, in per cent of errors."""
    return 100 * t["bounds"].query("variant == 'theorem1'")["bound"].dropna()


def shares_unsettled(t: Tables) -> pd.DataFrame:
    """Per cent of test rows that an order of the list can decide: a row a split of the
    six sets."""
    columns = ["dataset", "unsettled", "n_test"]
    six = t["chosen_orders"]["dataset"].unique()
    # the splits of "chosen_orders" are those of "splits_drawn"
    rows = pd.concat(t[name][columns] for name in ("orders", "splits_drawn"))
    rows = rows[rows["dataset"].isin(six)]
    return rows.assign(share=100 * rows["unsettled"] / rows["n_test"])


def _row_number(t: Tables) -> str:
    rows = of(t["three_sets"], "glass").set_index("variant")["one-versus-one, %"]
    return (
        "**Glass is classified by its row number.** With the Id column among the "
        "inputs, as Rathgamage Don and Iacob must have had it, "
        f"{rows['the Id among the inputs']:.0f} % are right; without it "
        f"{rows['without the Id']:.0f} %; by the Id alone "
        f"{rows['nothing but the Id']:.0f} %."
    )


def _order(t: Tables) -> str:
    rows = shares_unsettled(t)
    means = rows.groupby("dataset")["share"].mean()
    most = rows["share"].max()
    six = set(rows["dataset"])
    place = t["percentiles"][t["percentiles"]["dataset"].isin(six)]["percentile"]
    return (
        "**Order hardly matters.** Most rows get the same answer whatever the order of "
        f"the DAG's list: on the six sets of Yu et al. all but {span(means, 1, ' %')}, "
        f"in the worst of {len(rows)} splits all but {most:.1f} %. No order can gain "
        "more than these rows, and the adaptive order beats "
        f"{place.mean():.0f} % of all orders in the mean, where chance gives 50."
    )


def _zones(t: Tables) -> str:
    plain = t["table1"].set_index(["dataset", "method"])["error_pct"]
    coded = t["table1_inferred"].set_index(["dataset", "method"])["error_pct"]
    tried = t["codings"]["coding"].nunique()
    return (
        "**Forty soil types were probably not forty inputs.** Platt et al. print "
        "29.2 % error for DAGSVM on Covertype. One input a soil type gives "
        f"{plain['covertype', 'dagsvm']:.1f} %; the Forest Service's climate and "
        f"geology zones in their place {coded['covertype', 'dagsvm']:.1f} %. They are "
        f"one of {tried} codings that we tried, chosen because it comes near."
    )


def _vacuous(t: Tables) -> str:
    bounds = theorem1_bounds(t)
    sets = t["bounds"].dropna(subset=["bound"])["dataset"].nunique()
    return (
        "**A bound that says nothing.** On trained graphs of "
        f"{sets} data sets Theorem 1 of Platt et al. bounds the share of errors by "
        f"{bounds.min():,.0f} % at best. Its proof asks nothing of a DDAG that voting "
        "has not, so the vote has the same bound."
    )


def _filtered(t: Tables) -> str:
    unseen = blind.judged(t["blind"])
    apart = []
    for sets in (unseen, t["collection"]):
        means = blind.overall(sets).set_index("sets").loc["all"]
        share = 100 * means["evaluations_geometric"]
        apart.append((share, len(sets), f"{means['points']:+.2f} points"))
    (share, n, points), (known_share, known_n, known_points) = apart
    inferior = int((unseen["word"] == NOT_REPRODUCED).sum())
    undecided = int((unseen["word"] == WITHIN_CHANCE).sum())
    return (
        "**Most classes can be ruled out cheaply.** A filter over few support vectors, "
        f"in front of a DAG, leaves {share:.0f} % of DAGSVM's kernel values on {n} "
        f"sets that none of its rules had seen (geometric mean; {points} of accuracy, "
        f"inferior by {blind.MARGIN:g} points on {inferior or 'none'}, undecided on "
        f"{undecided or 'none'}), and "
        f"{known_share:.0f} % on the {known_n} sets where they were settled "
        f"({known_points})."
    )


FINDINGS = (
    ("04_don2018", _row_number),
    ("02_yu2011", _order),
    ("01_platt2000", _zones),
    ("01_platt2000", _vacuous),
    ("05_head_to_head", _filtered),
)


def findings(figures: Path) -> list[str]:
    """Collect the sentences whose tables are recorded below `figures`."""
    found = []
    for key, finding in FINDINGS:
        found += said(Tables(figures / key), finding)
    return found
