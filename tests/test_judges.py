"""Every judge on cases that must pass and cases that must fail."""

import numpy as np
import pytest

from dagsvm_lab.report import judges as j
from dagsvm_lab.report.claims import Outcome
from dagsvm_lab.report.verdicts import (
    ASSUMPTION_NOT_MET,
    BY_DEFINITION,
    CLOSE,
    NOT_AVAILABLE,
    NOT_REPRODUCED,
    OTHER_MACHINE,
    REPRODUCED,
    WITHIN_CHANCE,
)

GOOD = REPRODUCED
CHANCE = WITHIN_CHANCE
BAD = NOT_REPRODUCED
X = np.array([1.0, 2, 4, 8, 16, 32])


@pytest.mark.parametrize(
    ("judge", "arguments", "word"),
    [
        (j.against, (104, 100), GOOD),
        (j.against, (112, 100), CLOSE),
        (j.against, (120, 100), BAD),
        (j.against, (1.25, 1.2, ("points", 0.1, 0.2)), GOOD),
        (j.above, (1, 0.1, 2), GOOD),
        (j.above, (1, -0.1, 2), CHANCE),
        (j.above, (-1, -2, -0.1), BAD),
        (j.above, (0, 0, 0), CHANCE),
        (j.above, (np.nan, np.nan, np.nan), NOT_AVAILABLE),
        (j.not_below, (0.0, -0.3, 0.3, 0.5), GOOD),
        (j.not_below, (2.0, 1.0, 3.0, 0.5), GOOD),
        (j.not_below, (-0.4, -0.8, 0.1, 0.5), CHANCE),
        (j.not_below, (-1.0, -1.4, -0.6, 0.5), BAD),
        (j.near_zero, (0.1, -0.2, 0.4, 0.5), GOOD),
        (j.near_zero, (0.1, -0.8, 1.0, 0.5), CHANCE),
        (j.near_zero, (1.0, 0.6, 1.4, 0.5), BAD),
        (j.near_zero, (-1.0, -1.4, -0.6, 0.5), BAD),
        (j.every, ([True, True],), GOOD),
        (j.every, ([True, False],), BAD),
        (j.every, ([],), NOT_AVAILABLE),
        (j.some, ([False, True],), GOOD),
        (j.some, ([False, False],), BAD),
        (j.majority, ([1.0] * 9 + [0.0] * 5,), GOOD),
        (j.majority, ([True] * 5 + [False] * 4,), CHANCE),
        (j.majority, ([-1.0] * 9,), BAD),
        (j.paired, (40, 10, 1000), GOOD),
        (j.paired, (12, 10, 1000), CHANCE),
        (j.paired, (0, 0, 1000), CHANCE),
        (j.paired, (10, 40, 1000), BAD),
        (j.mean_above, ([1.0, 1.1, 0.9],), GOOD),
        (j.mean_above, ([1.0, -1.1, 0.2],), CHANCE),
        (j.mean_above, ([1.0],), CHANCE),
        (j.mean_above, ([-1.0, -1.1, -0.9],), BAD),
        (j.correlated, (np.arange(20), np.arange(20) ** 2), GOOD),
        (j.correlated, (np.arange(20), -np.arange(20)), BAD),
        (j.correlated, (np.arange(4), [2, 1, 4, 3]), CHANCE),
        (j.judge_exponent, (2.02, 1.9, 2.1, 2.0), GOOD),
        (j.judge_exponent, (2.2, 0.9, 3.5, 2.0), CHANCE),
        (j.judge_exponent, (2.4, 2.3, 2.5, 2.0), BAD),
        (j.judge_exponent, (1.4, 1.3, 1.5, 2.0), BAD),
        (j.judge_exponent, (1.4, 1.3, 1.5, 2.0, True), GOOD),
        (j.judge_exponent, (0.02, -0.1, 0.1, 0.0), GOOD),
        (j.exponent, (X, 3 * X**2, 2.0), GOOD),
        (j.exponent, (X, 3 * X**2, 1.0), BAD),
        (j.exponent, (X, 3 * X**0.5, 1.0, True), GOOD),
        (j.drawn, (np.arange(100), 50), GOOD),
        (j.drawn, (np.arange(100), 120), BAD),
        (j.share_of_draws, ([True] + [False] * 9,), GOOD),
        (j.share_of_draws, ([True] + [False] * 99,), BAD),
        (j.clock, ([1, 1], [2, 3]), GOOD),
        (j.clock, ([1, 1], [1.02, 3]), CHANCE),
        (j.clock, ([1, 1], [0.5, 3]), BAD),
        (j.clock, ([1], [2.1], 2.0), GOOD),
        (j.clock, ([1], [2.5], 2.0), CLOSE),
        (j.clock, ([1], [4.0], 2.0), BAD),
    ],
)
def test_words(judge, arguments, word):
    assert judge(*arguments).word == word


def test_what_most_sets_say():
    good, bad = Outcome(GOOD, "a"), Outcome(BAD, "b")
    assert j.most_outcomes([good, good, bad]).word == GOOD
    assert j.most_outcomes([good, bad, bad]).word == BAD
    assert j.most_outcomes([good, bad]) == Outcome(CHANCE, "a; b")


def test_an_assumption_comes_before_the_verdict():
    good = Outcome(GOOD, "1.0")
    assert j.assuming(True, "", good) is good
    found = j.assuming(False, "layers are not independent", good)
    assert found.word == ASSUMPTION_NOT_MET and "not independent" in found.text


def test_what_is_no_verdict():
    assert j.seconds("3.2 s").word == OTHER_MACHINE
    assert j.definition().word == BY_DEFINITION


def test_a_majority_says_how_many_it_needs():
    assert j.majority([1.0] * 14).tells == "12 of 14 sets or more"
    assert "too few" in j.majority([1.0] * 3).tells
    assert j.majority([2.0, 4.0, -1.0]).effect == "median 2"


def test_a_difference_in_points_and_its_limits():
    d, low, high = j.points_apart(60, 40, 1000)
    assert d == pytest.approx(2.0)
    assert low == pytest.approx(2 - 196 * np.sqrt(100 - 0.4) / 1000)
    assert high == pytest.approx(2 * d - low)
    assert j.points_apart(0, 0, 10) == (0, 0, 0)
    assert "points" in j.paired(60, 40, 1000).effect


def test_a_remark_says_effect_power_and_chance():
    made = Outcome(GOOD, "x", effect="1 point", tells="2 points", chance="half")
    assert made.remark == "effect 1 point; tells 2 points; chance half"
    assert Outcome(GOOD, "x").remark == ""


def test_on_each_takes_the_worst_word():
    good, bad = Outcome(GOOD, "a"), Outcome(BAD, "b")
    chance = Outcome(CHANCE, "c")
    assert j.on_each([good, good]).word == GOOD
    assert j.on_each([good, chance]).word == CHANCE
    assert j.on_each([good, chance, bad]).word == BAD
    assert j.on_each([good, bad]).text == "1 of 2"
