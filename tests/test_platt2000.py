"""Notebook 01's claims: each rule on a case that holds and one that fails."""

import numpy as np
import pandas as pd
import pytest
from both_ways import Made, table, word

from dagsvm_lab import load
from dagsvm_lab.papers import platt2000 as paper
from dagsvm_lab.papers.platt2000 import METHODS, platt
from dagsvm_lab.report.claims import INFERRED, WRITTEN, Tables

SETS = ("usps", "letter", "covertype")
GOOD, BAD, CHANCE = "reproduced", "not reproduced", "within chance"


def graphs(**changed):
    n = np.array([3, 4, 5])
    whole = dict(n_classes=n, nodes=n * (n - 1) // 2, leaves=n, tree_nodes=2**n - 1)
    whole |= dict(path_min=n - 1, path_max=n - 1, list_differs=0 * n)
    whole["tree_differs"] = 0 * n
    return {"graphs": table(**(whole | changed))}


def friedman(differs):
    return {"friedman": table(max_wins_differs=[0], dag_differs=[differs])}


def covered(uncovered):
    rows = [(s, 50, uncovered) for s in ("max-wins", "and-gate", "dagsvm")]
    return {"covered": table(rows, "system wrong uncovered")}


def growth(exponent):
    rows = [
        ("letter", "max-wins", n, n**exponent) for n in (2, 4, 8, 16) for _ in range(3)
    ]
    return {"growth": table(rows, "dataset method n_classes size_k")}


def overfit(more, fewer):
    rows = []
    for name in SETS:
        for second in ("1-v-1 pruned", "1-v-r unpruned"):
            rows.append((name, "1-v-1 unpruned", second, more, fewer, 2000))
    columns = "dataset first second only_first_wrong only_second_wrong test_rows"
    return {"overfit": table(rows, columns)}


def bounds(from_R):
    rows = [("iris", "theorem1", 100.0, from_R), ("iris", "lemma", 90.0, np.nan)]
    return {"bounds": table(rows, "dataset variant bound true_from_R")}


def simulation(bound, error):
    return {"simulation": table(bound_e=[bound], error=[error], test_rows=[100_000])}


def jnodes(sign):
    rng = np.random.default_rng(0)
    parts = []
    for name in SETS:
        x = np.arange(12.0)
        y = sign * x + rng.normal(size=12)
        parts.append(table(dataset=[name] * 12, D_prime=x, error_pct=y, joint_pct=y))
    return {"jnodes": pd.concat(parts)}


def orders(differing, wins=50):
    rows = []
    for name in SETS:
        for k in range(300):
            rows.append((name, k < differing, 10, wins, 2000))
    columns = "dataset significant gained max_wins_gains test_rows"
    return {"orders": table(rows, columns)}


def scaling(gamma=2.0, rest=1.0, pairs=1.0, noise=1e-3):
    """Work that follows a law but for noise; `rest` and `pairs` are further exponents
    over N of the two systems."""
    rng = np.random.default_rng(0)
    rows = []
    for solver in ("smo1998", "libsvm"):
        for pair in ("1-2", "2-3", "3-6"):
            for m in (500, 1000, 2000, 4000):
                rows.append((solver, "machine", pair, 2, m, 0, m**gamma))
        for n in (2, 3, 4, 5, 7):
            one = 2100.0**gamma
            all_pairs = n * (n - 1) / 2 * (4200 / n) ** gamma
            for draw in range(4):
                rows.append((solver, "1-v-r", "", n, 2100, draw, one * n**rest))
                work = all_pairs * n ** (pairs - 1)
                rows.append((solver, "1-v-1", "", n, 2100, draw, work))
    found = table(rows, "solver kind pair n_classes m draw work")
    found["work"] *= np.exp(noise * rng.normal(size=len(found)))
    return {"scaling": found}


def training(wins=2.0, **changed):
    rest = dict(usps=11.5, letter=2.2, covertype=3.0) | changed
    rows = []
    for solver in ("smo1998", "libsvm"):
        for name, ratio in rest.items():
            work = {"1-v-r": ratio, "max-wins": wins, "dagsvm": 1.0}
            rows += [(name, method, solver, work[method]) for method in METHODS]
    return {"training": table(rows, "dataset method solver work")}


def seconds(wins):
    rows = []
    for name in SETS:
        for method, s in zip(METHODS, (9.0, wins, 2.0), strict=True):
            rows.append((name, method, s))
    return {"printed": table(rows, "dataset method train_cpu_s")}


def kernels(gaussian_wrong, polynomial_wrong):
    rows = []
    for name in SETS:
        for method in METHODS:
            pct = (gaussian_wrong / 10, polynomial_wrong / 10)
            rows.append((name, method, *pct, gaussian_wrong, polynomial_wrong))
    columns = "dataset method gaussian_pct polynomial_pct only_gaussian_wrong"
    return {"kernels": table(rows, f"{columns} only_polynomial_wrong")}


def selection(p):
    rows = []
    for method, ps in {"1-v-r": p, "dagsvm": (0.01, 1)}.items():
        for sigma, value in zip((1.0, 2.0), ps, strict=True):
            rows.append(("usps", method, "rbf", sigma, 10, value))
    columns = "dataset method kernel sigma C p_to_best"
    return {"selection": table(rows, columns)}


def selected(p):
    rows = [(p, 3.0, 2.5)] * 9
    return {"selected": table(rows, "p_to_best printed_pct best_pct")}


def table1(error=(4.5, 4.6, 4.4), evaluations=(3000, 2000, 900), size=(700, 500, 500)):
    rows = []
    for name in SETS:
        for row in zip(METHODS, error, evaluations, size, strict=True):
            rows.append((name, *row))
    columns = "dataset method error_pct kernel_evaluations size_kparameters"
    return {"table1": table(rows, columns)}


def evaluated(**wins):
    """Both readings' tables with a ratio of Max Wins over DAGSVM on a set."""
    rows = []
    for name, ratio in wins.items():
        rows += [(name, "max-wins", 1000.0 * ratio), (name, "dagsvm", 1000.0)]
    made = table(rows, "dataset method kernel_evaluations")
    return {"table1": made, "table1_inferred": made}


def mcnemar(name, wins_only, dag_only, p):
    """Max Wins against the others: rows that only one gets wrong."""
    rows = [
        ("1-v-r", "max-wins", dag_only, wins_only, p),
        ("1-v-r", "dagsvm", 30, 30, 1.0),
        ("max-wins", "dagsvm", wins_only, dag_only, p),
    ]
    found = table(rows, "method_a method_b only_a_wrong only_b_wrong p_exact")
    return {"mcnemar": found.assign(dataset=name, test_rows=2000)}


def evaluation(dag_time, dag_evaluations=0.5):
    rows = []
    for k, name in enumerate(SETS):
        for method in METHODS:
            mine = method == "dagsvm"
            time = dag_time if mine else 1.0 + 0.1 * k
            count = dag_evaluations if mine else 1.0 + 0.1 * k
            rows.append((name, method, time, time, count))
    columns = "dataset method batch_us row_us kernel_evaluations"
    return {"evaluation": table(rows, columns)}


def sizes(apart):
    rows = [(name, "max-wins", apart, 100.0) for name in SETS]
    return {"sizes": table(rows, "dataset method apart_k nonzero_inputs_k")}


def shattered(printed):
    return {"shattered": table(points=[3], printed=[printed], corrected=[printed + 1])}


def lemma4(hits, n, error=0.1, epsilon=0.3):
    rows = [(epsilon, 0.05, error, k < hits) for k in range(n)]
    return {"lemma4": table(rows, "epsilon delta error_on_other_half exceeded")}


def both(id, holds, fails):
    """The same two cases in both readings."""
    return {(id, reading): (holds, fails) for reading in (WRITTEN, INFERRED)}


SPOILT = np.array([0, 1, 0])
BOTH_WAYS = {
    "platt-friedman": (friedman(0), friedman(1)),
    "platt-no-bound": (covered(1), covered(0)),
    "platt-size-grows": (growth(1.5), growth(0.9)),
    "platt-nodes": (graphs(), graphs(nodes=[3, 7, 10])),
    "platt-path": (graphs(), graphs(path_max=[2, 4, 4])),
    "platt-list": (graphs(), graphs(list_differs=SPOILT)),
    "platt-tree": (graphs(), graphs(tree_differs=SPOILT)),
    "platt-dimension": (
        {"dimension": table(bound=[7.0, 7.0])},
        {"dimension": table(bound=[7.0, 8.0])},
    ),
    "platt-theorem1-proof": (bounds(0.9), bounds(3.0)),
    "platt-pessimistic": (simulation(0.5, 0.0), simulation(0.5, 0.2)),
    "platt-cells": (
        {"midpoints": table(kernel=["linear", "rbf"], left=[0, 5])},
        {"midpoints": table(kernel=["linear", "rbf"], left=[1, 5])},
    ),
    "platt-jnodes": (jnodes(1), jnodes(-1)),
    "platt-jnodes-share": (jnodes(1), jnodes(-1)),
    "platt-theorem2": (
        {"classes": table(share=[0.5, np.nan])},
        {"classes": table(share=[1.5, np.nan])},
    ),
    "platt-safe": (
        {"safe": table(training_inside=[0, 0])},
        {"safe": table(training_inside=[0, 2])},
    ),
    "platt-order": (orders(15), orders(25)),
    "platt-faster-than-wins-printed": (seconds(5.0), seconds(2.0)),
    "platt-covertype-test": (
        {"datasets": table(dataset=["covertype"], test=[565_893])},
        {"datasets": table(dataset=["covertype"], test=[300_000])},
    ),
    "platt-parameters": (selection((1, 0.3)), selection((1, 0.01))),
    "platt-selected": (selected(0.02), selected(0.001)),
    "platt-errors-similar": (table1(), table1(error=(4.0, 5.5, 4.5))),
    "platt-mcnemar-usps": (
        mcnemar("usps", 30, 35, 0.6),
        mcnemar("usps", 30, 70, 0.001),
    ),
    "platt-mcnemar-letter": (
        mcnemar("letter", 70, 30, 0.001),
        mcnemar("letter", 30, 70, 0.001),
    ),
    "platt-covertype-wins": (
        mcnemar("covertype", 300, 500, 0.0) | orders(0),
        mcnemar("covertype", 500, 300, 0.0),
    ),
    "platt-wins-before-rest": (table1(), table1(evaluations=(2000, 2000, 900))),
    "platt-dag-fastest": (table1(), table1(evaluations=(3000, 900, 900))),
    "platt-evaluation-most": (evaluated(usps=2.25), evaluated(usps=1.5)),
    "platt-evaluation-least": (evaluated(covertype=1.6), evaluated(covertype=1.2)),
    "platt-sharing": (sizes(250.0), sizes(150.0)),
    "platt-size-comparable": (table1(), table1(size=(700, 300, 500))),
    ("platt-theorem3", WRITTEN): (shattered(3.0), shattered(2.0)),
    ("platt-theorem3", INFERRED): (shattered(2.0), shattered(1.0)),
    "platt-lemma4": (lemma4(0, 100), lemma4(20, 100)),
}
for _pair in (
    both("platt-regularised", overfit(300, 100), overfit(100, 300)),
    both("platt-superlinear", scaling(2.0), scaling(0.9)),
    both("platt-exponent", scaling(2.0), scaling(1.4)),
    both("platt-time-rest", scaling(), scaling(rest=2.0)),
    both("platt-time-pairs", scaling(), scaling(pairs=2.0)),
    both("platt-time-twice", scaling(2.0), scaling(1.0)),
    both("platt-faster-than-wins", training(), training(wins=1.0)),
    both("platt-gaussian-best", kernels(30, 90), kernels(90, 30)),
    both(
        "platt-training-usps",
        training(),
        training(usps=6.0),
    ),
    both(
        "platt-training-letter",
        training(),
        training(letter=7.0),
    ),
    both(
        "platt-training-order",
        training(),
        training(letter=0.9),
    ),
    both("platt-faster-answers", evaluation(0.5), evaluation(1.5)),
    both("platt-indication", evaluation(0.5), evaluation(1.0)),
):
    BOTH_WAYS |= _pair


def said(id: str, tables: dict, reading: str = WRITTEN) -> str:
    return word(platt, id, tables, reading)


def test_other_exponents_fail_eq_2():
    assert said("platt-time-pairs", scaling(1.2)) == BAD


def test_a_vague_exponent_is_no_success():
    noisy = scaling(noise=2.0)
    words = {said(f"platt-{id}", noisy) for id in ("exponent", "time-rest")}
    assert GOOD not in words


def test_a_kernel_that_ties_is_no_success_but_may_be_lowest():
    tie = kernels(30, 31)
    assert said("platt-gaussian-best", tie) == CHANCE
    assert said("platt-gaussian-best", tie, INFERRED) == GOOD


def test_a_lemma_that_no_draw_could_contradict_is_no_success():
    assert said("platt-lemma4", lemma4(0, 100, error=0.0)) == CHANCE
    assert said("platt-lemma4", lemma4(0, 20)) == CHANCE
    assert said("platt-lemma4", lemma4(0, 100, epsilon=1.5)) == "not available here"


def test_a_bound_above_1_is_no_situation():
    assert said("platt-pessimistic", simulation(2.0, 0.0)) == "not available here"


def test_trees_within_chance_of_each_other():
    assert said("platt-regularised", overfit(90, 90)) == CHANCE


def test_lists_that_beat_max_wins_are_said_beside_its_test():
    claim = platt.claims["platt-covertype-wins"]
    tables = Made(mcnemar("covertype", 300, 500, 0.0) | orders(0, wins=5))
    assert claim.judge(tables).chance == "300 of 300 random lists beat Max Wins"


def test_what_a_test_of_two_methods_can_tell():
    found = platt.claims["platt-mcnemar-usps"].judge(Made(mcnemar("usps", 30, 35, 0.6)))
    assert found.tells == f"differences of {196 * np.sqrt(65) / 2000:.2f} points"


def test_eq_2_is_judged_with_the_measured_exponent_too():
    claim = platt.claims["platt-time-pairs"]
    effect = claim.judge(Made(scaling(1.5))).effect
    assert effect.startswith("with the measured gamma 1.50: -0.00 [") or (
        effect.startswith("with the measured gamma 1.50: 0.00 [")
    )


def test_fitted_cells_are_those_the_readings_were_picked_by():
    specs = [c for c in platt.tables if c.reading == INFERRED]
    [spec] = specs
    fitted = spec.against(paper.PRINTED_TABLE1).query("verdict == 'fitted'")
    assert set(fitted["dataset"]) == {"usps", "covertype"}
    assert "error_pct" not in set(fitted.query("dataset == 'usps'")["quantity"])
    assert len(fitted) == 9 + 6


def test_without_a_record_nothing_is_claimed(tmp_path):
    rows = list(platt.rows(Tables(tmp_path)))
    words = {row["verdict"] for row in rows if row["kind"] != "cell"}
    printed = platt.claims["platt-faster-than-wins-printed"]
    assert words == {"not available here", "not checkable", BAD}
    assert printed.judge(Tables(tmp_path)).text == "0 of 3 sets"
    assert len({row["id"] for row in rows}) == len(rows)


@pytest.mark.parametrize("part", ["X_train", "X_valid", "X_test"])
def test_what_covertype_codes_mean(part):
    X = getattr(load("covertype"), part)
    assert (X[:, 10:14].sum(axis=1) == 1).all()
    assert (X[:, 14:].sum(axis=1) == 1).all()
