"""Notebook 01's rules on cases in which a statement is true and false."""

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab import load
from dagsvm_lab.papers.platt2000 import difference, majority, platt, rank_correlation
from dagsvm_lab.report.claims import INFERRED, WRITTEN, Outcome, Tables

NO, YES, CHANCE = "not reproduced", "reproduced", "within chance"


def verdict(id: str, reading: str = WRITTEN, **tables: pd.DataFrame) -> str:
    """The word for a claim over made tables."""
    return platt.claims[id].judge(tables, reading).word


def test_a_difference_in_points_and_its_limits():
    d, low, high = difference(60, 40, 1000)
    assert d == pytest.approx(2.0) and low == pytest.approx(
        2 - 196 * np.sqrt(100 - 0.4) / 1000
    )
    assert difference(0, 0, 10) == (0, 0, 0)
    assert difference(70, 30, 1000)[1] > 0 > difference(30, 70, 1000)[2]


def test_rank_correlations_are_pooled_by_fishers_z():
    x = np.arange(20.0)
    one, low, high = rank_correlation([(x, x**2), (x, x**3)])
    assert one > 0.99 and low > 0.9
    r = rank_correlation([(x, np.roll(x, 7))])
    both = rank_correlation([(x, np.roll(x, 7)), (x, np.roll(x, 7))])
    assert both[0] == pytest.approx(r[0]) and both[2] - both[1] < r[2] - r[1]
    assert np.arctanh(r[2]) - np.arctanh(r[0]) == pytest.approx(1.96 / np.sqrt(17))


def test_most():
    words = [Outcome(word, "") for word in (YES, YES, NO)]
    assert majority(words).word == YES and majority(words[1:]).word == CHANCE


def power(exponent: float, unit=lambda n: 1.0, noise: float = 1e-3) -> pd.DataFrame:
    """A `scaling` table whose work follows a law exactly, but for noise."""
    rows, rng = [], np.random.default_rng(0)
    for solver in ("smo1998", "libsvm"):
        rows += [
            (solver, "machine", 2, m, 0, m**exponent) for m in (500, 1000, 2000, 4000)
        ]
        for n in (2, 3, 4, 5, 7):
            one = 2100.0**exponent
            rows += [(solver, "1-v-r", n, 2100, d, n * one * unit(n)) for d in range(2)]
            rows += [
                (
                    solver,
                    "1-v-1",
                    n,
                    2100,
                    d,
                    n * (n - 1) / 2 * (4200 / n) ** exponent * unit(n),
                )
                for d in range(2)
            ]
    table = pd.DataFrame(
        rows, columns=["solver", "kind", "n_classes", "m", "draw", "work"]
    )
    return table.assign(
        work=table["work"] * np.exp(noise * rng.normal(size=len(table)))
    )


@pytest.mark.parametrize("reading", [WRITTEN, INFERRED])
def test_an_ideal_trainer_passes_the_rules_about_time(reading):
    words = {id: verdict(f"platt-{id}", reading, scaling=power(2.0))
             for id in ("superlinear", "exponent", "time-rest", "time-pairs", "time-twice")}  # fmt: skip
    assert words == dict.fromkeys(words, YES)


def test_a_vague_exponent_is_no_success():
    words = {
        verdict(f"platt-{id}", scaling=power(2.0, noise=2.0))
        for id in ("exponent", "time-rest")
    }
    assert YES not in words


def test_other_trainers_fail_them():
    assert verdict("platt-superlinear", scaling=power(0.9)) == NO
    assert verdict("platt-exponent", scaling=power(1.4)) == NO
    assert verdict("platt-time-rest", scaling=power(2.0, unit=float)) == NO
    assert verdict("platt-time-pairs", scaling=power(2.0, unit=float)) == NO
    assert verdict("platt-time-pairs", scaling=power(1.2)) == NO
    assert verdict("platt-time-twice", scaling=power(1.0)) == NO


def lists(gained: dict[str, int]) -> pd.DataFrame:
    return pd.DataFrame([(d, "random", i < n) for d, n in gained.items() for i in range(300)],
                        columns=["dataset", "kind", "significant"])  # fmt: skip


def test_order_is_judged_by_how_many_lists_differ():
    assert verdict("platt-order", orders=lists({"usps": 0, "letter": 15})) == YES
    assert verdict("platt-order", orders=lists({"usps": 0, "letter": 25})) == NO


def test_a_tie_of_kernels_is_a_tie():
    table = pd.DataFrame(
        {
            "coding": ["", "plain"],
            "gaussian_pct": [4.0, 20.0],
            "polynomial_pct": [5.0, 20.2],
        }
    )
    assert (
        verdict("platt-gaussian-best", kernels=table.assign(p_exact=[0.01, 0.01]))
        == YES
    )
    assert (
        verdict("platt-gaussian-best", kernels=table.assign(p_exact=[0.01, 0.6]))
        == CHANCE
    )
    assert (
        verdict(
            "platt-gaussian-best", kernels=table.assign(p_exact=0.01, gaussian_pct=21.0)
        )
        == NO
    )


def test_parameters_need_one_setting_that_ties_for_all_methods():
    rows = [("usps", "", m, "rbf", s, 10, p) for m, ps in {"1-v-r": (1, 0.3), "dagsvm": (0.01, 1)}.items()
            for s, p in zip((1.0, 2.0), ps, strict=True)]  # fmt: skip
    table = pd.DataFrame(
        rows,
        columns=["dataset", "coding", "method", "kernel", "sigma", "C", "p_to_best"],
    )
    assert verdict("platt-parameters", selection=table) == YES
    assert (
        verdict(
            "platt-parameters", selection=table.assign(p_to_best=[1, 0.01, 0.01, 1])
        )
        == NO
    )


def test_pessimistic_needs_a_bound_that_says_something_and_an_error_far_below():
    runs = lambda bound, error: pd.DataFrame(
        {"bound_e": [bound], "error": [error], "test_rows": [100_000]}
    )
    assert verdict("platt-pessimistic", simulation=runs(0.5, 0.0)) == YES
    assert verdict("platt-pessimistic", simulation=runs(0.5, 0.2)) == NO
    assert (
        verdict("platt-pessimistic", simulation=runs(2.0, 0.0)) == "not available here"
    )


def test_lemma_4_counts_draws_that_could_fail():
    draws = lambda hits, n, eps=0.3: pd.DataFrame(
        {"epsilon": eps, "delta": 0.05, "exceeded": np.arange(n) < hits}
    )
    assert verdict("platt-lemma4", lemma4=draws(0, 100)) == YES
    assert verdict("platt-lemma4", lemma4=draws(0, 20)) == CHANCE
    assert verdict("platt-lemma4", lemma4=draws(20, 100)) == NO
    assert (
        verdict("platt-lemma4", lemma4=draws(0, 100, eps=1.5)) == "not available here"
    )


def test_overfitting_needs_a_lower_training_and_a_higher_test_error():
    table = pd.DataFrame({"only_hard_wrong": [90, 90, 10], "only_paper_wrong": [40, 40, 10], "test_rows": 2000,
                          "hard_train_pct": 0.0, "paper_train_pct": 1.0})  # fmt: skip
    assert verdict("platt-regularised", regularised=table) == YES
    assert (
        verdict("platt-regularised", regularised=table.assign(only_hard_wrong=40))
        == CHANCE
    )
    assert (
        verdict("platt-regularised", regularised=table.assign(hard_train_pct=2.0)) == NO
    )


def test_size_grows():
    table = pd.DataFrame([("letter", "max-wins", n, n**g) for g in (1.5,) for n in (2, 4, 8, 16) for _ in range(3)],
                         columns=["dataset", "method", "n_classes", "size_k"])  # fmt: skip
    assert verdict("platt-size-grows", growth=table) == YES
    assert (
        verdict(
            "platt-size-grows", growth=table.assign(size_k=table["n_classes"] ** 0.9)
        )
        == NO
    )


def test_mcnemar_claims_look_at_the_side():
    rows = pd.DataFrame({"dataset": "covertype", "method_a": ["1-v-r", "1-v-r", "max-wins"],
                         "method_b": ["max-wins", "dagsvm", "dagsvm"], "only_a_wrong": [900, 900, 300],
                         "only_b_wrong": [600, 600, 500], "p_exact": 0.0})  # fmt: skip
    assert verdict("platt-covertype-wins", mcnemar=rows) == YES
    turned = rows.rename(
        columns={"only_a_wrong": "only_b_wrong", "only_b_wrong": "only_a_wrong"}
    )
    assert verdict("platt-covertype-wins", mcnemar=turned) == NO
    assert (
        verdict("platt-mcnemar-usps", mcnemar=rows.assign(dataset="usps")) == NO
    )  # Max Wins beats DAGSVM
    assert (
        verdict("platt-mcnemar-usps", mcnemar=rows.assign(dataset="usps", p_exact=0.5))
        == YES
    )


def test_shattered_points_against_both_forms_of_theorem_3():
    table = pd.DataFrame(
        {"points": [3, 4], "printed": [2.0, 3.0], "corrected": [3.0, 4.0]}
    )
    assert (
        verdict("platt-theorem3", shattered=table),
        verdict("platt-theorem3", INFERRED, shattered=table),
    ) == (
        NO,
        YES,
    )


def test_without_a_record_nothing_is_claimed(tmp_path):
    rows = list(platt.rows(Tables(tmp_path)))
    assert {row["verdict"] for row in rows if row["kind"] != "cell"} == {
        "not available here",
        "not checkable",
    }
    assert len({row["id"] for row in rows}) == len(rows)


def test_what_covertype_codes_mean():
    d = load("covertype")
    assert (d.X_train[:, 10:14].sum(axis=1) == 1).all() and (
        d.X_train[:, 14:].sum(axis=1) == 1
    ).all()
