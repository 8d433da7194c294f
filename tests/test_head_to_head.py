"""The rules of notebook 05, each sentence on a set where it holds and one where not."""

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab.papers.common import Split
from dagsvm_lab.papers.head_to_head import (
    PAIRED,
    SENTENCES,
    difference,
    geometric,
    row_by_row,
    said,
    time_ratio,
)

# of the systems that sentences name: kernel evaluations, decisions, microseconds
FIRST = ("max-wins", 100.0, 45.0, 10.0)
GOOD = {
    "dagsvm": (50.0, 9.0, 5.0),
    "adaptive": (50.0, 9.0, 5.0),
    "c-bts": (40.0, 5.0, 3.0),
    "btppsvm": (60.0, 6.0, 6.0),
    "dcsvm 0%": (40.0, 8.0, 4.0),
    "dcsvm 2%": (40.0, 7.0, 4.0),
    "dcsvm 5%": (40.0, 6.0, 4.0),
    "filtered": (20.0, 3.0, 2.0),
}
BAD = {
    "dagsvm": (120.0, 46.0, 20.0),
    "adaptive": (120.0, 46.0, 20.0),
    "c-bts": (200.0, 50.0, 30.0),
    "btppsvm": (60.0, 60.0, 60.0),
    "dcsvm 0%": (40.0, 50.0, 40.0),
    "dcsvm 2%": (40.0, 60.0, 40.0),
    "dcsvm 5%": (40.0, 70.0, 40.0),
    "filtered": (300.0, 50.0, 90.0),
}


def made(costs: dict, won: int, lost: int, name: str = "made") -> tuple:
    """Tables of one set: every first system of a pair wins and loses so many rows."""
    rows = []
    rounds = []
    for system, (kernels, decisions, us) in {FIRST[0]: FIRST[1:], **costs}.items():
        rows.append((name, system, kernels, decisions))
        for k in range(5):
            noisy = us * (1 + 0.01 * k)
            rounds.append((name, k, system, noisy, noisy))
    race = pd.DataFrame(
        rows, columns=["dataset", "system", "kernel_evaluations", "binary_decisions"]
    )
    rounds = pd.DataFrame(
        rounds, columns=["dataset", "round", "system", "batch_us", "one_row_us"]
    )
    pairs = pd.DataFrame([(name, *pair, won, lost, 4000, 4000) for pair in PAIRED])
    pairs.columns = "dataset one other won lost train_rows test_rows".split()
    return race, pairs, rounds


BOTH_WAYS = {sentence.text: (GOOD, BAD) for sentence in SENTENCES}
TIMES = [text for text in BOTH_WAYS if "kernel evaluations indicate" in text]
for text in TIMES:  # time that does not follow the count
    BOTH_WAYS[text] = (GOOD, GOOD | {"dagsvm": (50.0, 9.0, 11.0)})


@pytest.mark.parametrize("text", BOTH_WAYS)
def test_a_sentence_holds_on_one_set_and_fails_on_another(text):
    good, bad = BOTH_WAYS[text]
    more = 100 if "more accurate" in text else 3
    parts = [made(good, more, 3, "kept"), made(bad, 3, 100, "broken")]
    found = said(*(pd.concat(tables) for tables in zip(*parts, strict=True)))
    row = found.set_index("sentence").loc[text]
    assert (row["holds_on"], row["of"], row["fails_on"]) == (1, 2, "broken")
    assert row["undecided_on"] == "-"


def test_few_rows_or_rounds_leave_it_undecided():
    race, pairs, rounds = made(GOOD, 3, 4)
    pairs = pairs.assign(test_rows=75)
    slow = np.where(rounds["round"] % 2, 3.0, 0.4)
    rounds["batch_us"] = rounds["batch_us"].where(
        rounds["system"] != "filtered", 5 * slow
    )
    found = said(race, pairs, rounds).set_index("sentence")["undecided_on"]
    assert found["DAGSVM is as accurate as Max Wins"] == "made"
    assert found["the adaptive order is more accurate than the list's"] == "made"
    assert found["the filtered DAG answers a batch faster than DAGSVM"] == "made"


def test_a_difference_is_of_the_same_rows():
    truth = np.array([0, 1] * 50)
    g = Split("made", np.zeros((50, 1)), truth[:50], np.zeros((100, 1)), truth)
    wrong = {name: np.zeros(100, bool) for pair in PAIRED for name in pair}
    wrong["dagsvm"][:3] = True  # Max Wins has these right
    wrong["max-wins"][3:5] = True
    pairs = row_by_row(g, wrong)
    own = pairs[(pairs["one"] == "dagsvm") & (pairs["other"] == "max-wins")]
    assert own[["won", "lost", "test_rows"]].iloc[0].tolist() == [2, 3, 100]
    mean, low, high = difference(own)
    assert mean == pytest.approx(-1) and low < -5 and high > 3
    some = row_by_row(g, {name: wrong[name] for name in ("dagsvm", "max-wins")})
    assert len(some) == 1, "pairs of systems that did not run are left out"


def test_several_splits_have_an_interval_of_their_own():
    rows = pd.DataFrame(
        {"won": [3, 5, 4], "lost": [1, 1, 1], "train_rows": 100, "test_rows": 100}
    )
    mean, low, high = difference(rows)
    assert mean == pytest.approx(3.0) and low < 3 < high
    assert difference(rows.assign(won=4)) == (3.0, 3.0, 3.0)


def test_ratios_are_of_rounds_and_means_geometric():
    rounds = made(GOOD, 0, 0)[2]
    ratio, low, high = time_ratio(rounds, "filtered", "max-wins", "batch_us")
    assert ratio == pytest.approx(0.2) and low == pytest.approx(high)
    assert geometric([0.25, 4.0])[0] == pytest.approx(1.0)
