"""What a reader would repeat to a colleague: sentences whose every number comes from the recorded tables."""

from contextlib import suppress
from pathlib import Path

from ..report.claims import NotRecordedError, Tables


def _vacuous(t: Tables) -> str:
    wide = 100 * t["promises"].dropna(subset=["value"]).pivot_table("value", "dataset", "promise")
    bound, held = wide["Theorem 1, this graph"].min(), wide["held-out, binomial"]
    kept = int((wide["true error (test rows)"] <= held).sum())
    return (
        "**A bound that says nothing, and one that does.** On trained graphs Theorem 1 of Platt et al. promises errors "
        f"below {bound:,.0f} % at best. Held-out rows promise {held.min():.1f} to {held.max():.1f} %, and keep it on "
        f"{kept} of {len(held)} sets: elsewhere the test rows are of another kind."
    )


def _order(t: Tables) -> str:
    rows = t["chosen_orders"].groupby("dataset", sort=False)[["unsettled", "n_test"]].mean()
    share = 100 * rows["unsettled"] / rows["n_test"]
    return (
        "**Order hardly matters.** Most rows get the same answer whatever the order of the DAG's list: all but "
        f"{share.min():.1f} to {share.max():.1f} % on the six sets of Yu et al. No order can gain more than these rows."
    )


def _row_number(t: Tables) -> str:
    rows = t["three_sets"].query("dataset == 'glass'").set_index("variant")["one-versus-one, %"]
    return (
        "**Glass is classified by its row number.** With the Id column among the inputs, as Rathgamage Don and Iacob "
        f"must have had it, {rows['the Id among the inputs']:.0f} % are right; without it "
        f"{rows['without the Id']:.0f} %; by the Id alone {rows['nothing but the Id']:.0f} %."
    )


def _zones(t: Tables) -> str:
    plain, coded = (t[name].set_index(["dataset", "method"])["error_pct"] for name in ("table1", "table1_inferred"))
    return (
        "**Forty soil types were probably not forty inputs.** Platt et al. print 29.2 % error for DAGSVM on Covertype. "
        f"One input a soil type gives {plain['covertype', 'dagsvm']:.1f} %; the Forest Service's climate and geology "
        f"zones in their place, no number fitted, {coded['covertype', 'dagsvm']:.1f} %."
    )


def _values(t: Tables) -> str:
    overall, sets = t["overall"].set_index("system"), t["race"]["dataset"].nunique()
    ratio = 100 * overall.loc["conformal", "kernel_evaluations"] / overall.loc["dagsvm", "kernel_evaluations"]
    lost = overall.loc["dagsvm", "points"] - overall.loc["conformal", "points"]
    return (
        "**The value of an answer says more than its sign.** A graph that strikes classes off by how large answers "
        f"are, of short machines over few support vectors first, needs {ratio:.0f} % of DAGSVM's kernel values in the "
        f"mean of {sets} sets, at an accuracy {abs(lost):.2f} points {'lower' if lost > 0 else 'higher'}."
    )


FINDINGS = {_row_number: "04_don2018", _order: "02_yu2011", _zones: "01_platt2000", _vacuous: "01_platt2000",
            _values: "05_head_to_head"}  # fmt: skip


def findings(figures: Path) -> list[str]:
    """Collect the sentences whose tables are recorded below `figures`."""
    said = []
    for finding, key in FINDINGS.items():
        with suppress(NotRecordedError):
            said.append(finding(Tables(figures / key)))
    return said
