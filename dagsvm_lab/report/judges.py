"""The judges: how a claim becomes a word. Every paper's claims use these and no others.

Each takes numbers that a run measured and returns an `Outcome`: the word, the numbers
with an interval or counts, and where it helps the size of the effect, what the rule
could have told apart, and what chance alone gives. tests/test_judges.py runs each on
cases that must pass and cases that must fail.

    against        a number against a printed one
    above          "more": an interval above 0
    not_below      "as good as": an interval above a margin of non-inferiority
    near_zero      "no effect": an interval within a margin
    every, some    "on each set", "may" (on some set)
    majority       "in general", "in most cases": a sign test over sets
    most_outcomes  "tends to": the word that most sets have
    on_each        "on each set", judged set by set: the worst word
    paired         two systems on the same rows: McNemar's exact test
    mean_above     "above 0" in the mean of repetitions
    correlated     "the more ..., the more ..."
    exponent       a power law's exponent against a printed one
    drawn          a printed number of one unknown draw, among our own draws
    clock          a ratio of seconds of one run on one machine
    seconds        absolute seconds: they belong to a machine
    assuming       a statement under an assumption that may not be met
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from ..statistics import (
    binomial_interval,
    corrected_interval,
    rank_correlation,
    sign_interval,
    slope_interval,
)
from . import verdicts as v
from .claims import Outcome

WORSE_FIRST = (v.NOT_REPRODUCED, v.WITHIN_CHANCE, v.CLOSE, v.REPRODUCED)


def interval_text(estimate: float, low: float, high: float, digits: int = 2) -> str:
    """Write an estimate with its 95 % interval."""
    middle, low, high = (f"{x:.{digits}f}" for x in (estimate, low, high))
    return f"{middle} [{low}, {high}]"


def against(
    measured: float, printed: float, rule: Sequence = ("count",), digits: int = 0
) -> Outcome:
    """Judge a number against a printed one by a rule of `verdicts.judge`; `digits`
    decimals were printed."""
    word = v.judge(rule, printed, measured, digits)
    tells = ""
    match rule:
        case ("count",):
            tells = "differences of 5 %"
        case ("exact",):
            tells = "the last printed digit"
        case ("points", near, _):
            tells = f"differences of {near:g}"
        case (_, near, _):
            tells = f"differences of {100 * near:g} %"
    return Outcome(word, v.number(measured, digits + 1), tells=tells)


def above(
    estimate: float, low: float, high: float, digits: int = 2, chance: str = ""
) -> Outcome:
    """Judge "more": reproduced if the interval is above 0, not reproduced if below,
    else within chance."""
    if np.isnan(estimate):
        return Outcome(v.NOT_AVAILABLE, "")
    if low > 0:
        word = v.REPRODUCED
    elif high < 0:
        word = v.NOT_REPRODUCED
    else:
        word = v.WITHIN_CHANCE
    text = interval_text(estimate, low, high, digits)
    tells = ""
    if not np.isinf(high):
        half = (high - low) / 2
        tells = f"differences of {half:.{digits}f}"
    return Outcome(word, text, tells=tells, chance=chance)


def not_below(
    estimate: float, low: float, high: float, margin: float, digits: int = 2
) -> Outcome:
    """Judge "as good as" (non-inferiority): reproduced if even the lower limit is above
    -margin, not reproduced if even the upper one is below it, else within chance."""
    if low >= -margin:
        word = v.REPRODUCED
    elif high < -margin:
        word = v.NOT_REPRODUCED
    else:
        word = v.WITHIN_CHANCE
    text = interval_text(estimate, low, high, digits)
    return Outcome(word, text, tells=f"a loss of more than {margin:g}")


def near_zero(
    estimate: float, low: float, high: float, margin: float, digits: int = 2
) -> Outcome:
    """Judge "no effect": reproduced if the whole interval is within the margin, not
    reproduced if it is beyond it, else within chance."""
    if -margin <= low and high <= margin:
        word = v.REPRODUCED
    elif low > margin or high < -margin:
        word = v.NOT_REPRODUCED
    else:
        word = v.WITHIN_CHANCE
    text = interval_text(estimate, low, high, digits)
    return Outcome(word, text, tells=f"effects beyond {margin:g}")


def every(holds: Sequence[bool], of: str = "", tells: str = "") -> Outcome:
    """Judge "on each": one exception is enough to fail; `of` names the cases."""
    holds = np.asarray(holds, dtype=bool)
    text = f"{int(holds.sum())} of {len(holds)}"
    if of:
        text += f" {of}"
    all_hold = bool(holds.all()) if len(holds) else None
    return Outcome(v.claim_verdict(all_hold), text, tells=tells)


def some(holds: Sequence[bool], of: str = "sets") -> Outcome:
    """Judge "may": it holds if it happens in one case."""
    holds = np.asarray(holds, dtype=bool)
    text = f"on {int(holds.sum())} of {len(holds)} {of}"
    one_holds = bool(holds.any()) if len(holds) else None
    return Outcome(v.claim_verdict(one_holds), text)


def majority(differences: Sequence[float], of: str = "sets") -> Outcome:
    """Judge "in general", "in most cases": a sign test of differences, a case each,
    those of 0 left out.

    Truth values may be given, too: True counts as for, False as against.
    """
    values = np.asarray(differences)
    if values.dtype == bool:
        values = np.where(values, 1.0, -1.0)
    # differences of equal numbers may be off by their last bits
    values = np.round(values.astype(float), 9)
    better = int((values > 0).sum())
    worse = int((values < 0).sum())
    equal = int((values == 0).sum())
    outcome = above(*sign_interval(better, worse))
    text = f"{better} {of} for, {worse} against"
    if equal:
        text += f", {equal} equal"
    return replace(
        outcome,
        text=text,
        effect=_median(values),
        tells=_sign_power(better + worse, of),
    )


def _median(values: np.ndarray) -> str:
    """The median of some values, in words; nothing of none."""
    if not len(values):
        return ""
    median = np.nanmedian(values)
    return f"median {median:,.0f}" if abs(median) >= 1000 else f"median {median:.3g}"


def _sign_power(n: int, of: str) -> str:
    """How many of n cases must agree before a sign test speaks."""
    for needed in range(n + 1):
        _, low, _ = sign_interval(needed, n - needed)
        if low > 0:
            return f"{needed} of {n} {of} or more"
    return f"nothing: {n} {of} are too few"


def most_outcomes(outcomes: Iterable[Outcome]) -> Outcome:
    """Judge "tends to": the word that more than half of the outcomes have; without
    one, within chance."""
    outcomes = list(outcomes)
    words = pd.Series([o.word for o in outcomes]).value_counts()
    most_have_it = words.iloc[0] > len(outcomes) / 2
    word = words.index[0] if most_have_it else v.WITHIN_CHANCE
    return Outcome(word, "; ".join(o.text for o in outcomes))


def on_each(outcomes: Iterable[Outcome]) -> Outcome:
    """Judge "on each set" case by case: the worst word that a case has."""
    outcomes = list(outcomes)
    words = [outcome.word for outcome in outcomes]
    word = next((w for w in WORSE_FIRST if w in words), v.NOT_AVAILABLE)
    held = words.count(v.REPRODUCED)
    return Outcome(
        word, f"{held} of {len(words)}", tells=outcomes[0].tells if words else ""
    )


def paired(wins: int, losses: int, n: int | None = None, digits: int = 2) -> Outcome:
    """Judge "more accurate" on the same rows by McNemar's exact test at .05: `wins`
    rows that only the first gets right, `losses` that only the second does, of n."""
    wins = int(wins)
    losses = int(losses)
    p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    if p >= 0.05:
        word = v.WITHIN_CHANCE
    else:
        word = v.REPRODUCED if wins > losses else v.NOT_REPRODUCED
    text = f"{wins - losses:+d} rows, p {v.number(p, 4)}"
    effect = ""
    if n:
        mean, low, high = points_apart(wins, losses, n)
        effect = f"{interval_text(mean, low, high, digits)} points"
    return Outcome(word, text, effect=effect)


def points_apart(wins: int, losses: int, n: int) -> tuple[float, float, float]:
    """Estimate, in points, how much more the first of two systems gets right on the
    same n rows, with 95 % limits."""
    d = (wins - losses) / n
    # a row counts 1, -1 or 0: n times the variance of that
    spread = max(wins + losses - n * d**2, 0)
    half = 1.96 * np.sqrt(spread) / n
    return 100 * d, 100 * (d - half), 100 * (d + half)


def mean_above(
    values: Sequence[float], test_over_train: float = 0.0, digits: int = 2
) -> Outcome:
    """Judge "above 0" by Student's interval of the mean; `test_over_train` corrects for
    splits that share rows (Nadeau and Bengio 2003)."""
    return above(*corrected_interval(values, test_over_train), digits=digits)


def correlated(x: Sequence[float], y: Sequence[float]) -> Outcome:
    """Judge "the more x, the more y" by Spearman's correlation."""
    return above(*rank_correlation(x, y))


def exponent(
    x: Sequence[float],
    y: Sequence[float],
    printed: float,
    at_most: bool = False,
    near: float = 0.05,
) -> Outcome:
    """Judge the exponent of y as a power of x against a printed one, give or take
    `near` of it: does our interval meet it?

    An interval as wide as the printed number tells nothing: within chance. With
    `at_most` a smaller exponent is as good ("O(n)", "grows no faster than").
    """
    return judge_exponent(*slope_interval(x, y), printed, at_most, near)


def judge_exponent(
    estimate: float,
    low: float,
    high: float,
    printed: float,
    at_most: bool = False,
    near: float = 0.05,
) -> Outcome:
    """Judge an exponent that has its interval already, as `exponent` does."""
    slack = near * max(abs(printed), 1.0)
    below = low <= printed + slack
    meets = below if at_most else below and high >= printed - slack
    if not meets:
        word = v.NOT_REPRODUCED
    else:
        vague = high - low >= max(abs(printed), 1.0)
        word = v.WITHIN_CHANCE if vague else v.REPRODUCED
    text = interval_text(estimate, low, high)
    return Outcome(word, text, tells=f"exponents {(high - low) / 2:.2f} apart")


def drawn(values: Sequence[float], printed: float, digits: int = 0) -> Outcome:
    """Judge a printed number of one unknown draw: reproduced if the middle 95 % of our
    draws hold it."""
    low, high = np.quantile(values, [0.025, 0.975])
    near = 0.5 * 10.0**-digits
    inside = low - near <= printed <= high + near
    middle, least, most = (v.number(x, 1) for x in (np.median(values), low, high))
    text = f"{middle} [{least}, {most}]"
    return Outcome(v.claim_verdict(inside), text, tells="what 95 % of draws never show")


def share_of_draws(
    holds: Sequence[bool], rare: float = 0.05, chance: str = ""
) -> Outcome:
    """Judge "so it was in the paper's draw": reproduced unless fewer than `rare` of our
    draws show it."""
    holds = np.asarray(holds, dtype=bool)
    share = float(holds.mean())
    low, high = binomial_interval(int(holds.sum()), len(holds))
    text = f"in {100 * share:.3g} % of {len(holds)} draws"
    return Outcome(
        v.claim_verdict(share >= rare),
        text,
        effect=f"[{low:.1f}, {high:.1f}] %",
        tells=f"what fewer than {100 * rare:g} % of draws show",
        chance=chance,
    )


def clock(
    ours: Sequence[float],
    theirs: Sequence[float],
    printed: float | None = None,
    noise: float = 0.1,
) -> Outcome:
    """Judge a ratio of seconds, `theirs` over `ours`, that one run measured on one
    machine, case by case (sets, or repetitions).

    Without a printed ratio: is the first faster in every case, by more than `noise`?
    One case slower by more fails it, one in between is within chance. With a printed
    ratio: the geometric mean within 15 % (reproduced) or 30 % (close).
    """
    ratio = np.asarray(theirs, dtype=float) / np.asarray(ours, dtype=float)
    mean = float(np.exp(np.log(ratio).mean()))
    text = f"{mean:.2f} times"
    if len(ratio) > 1:
        text += f" ({ratio.min():.2f} to {ratio.max():.2f})"
    if printed is not None:
        word = v.judge(("count", 0.15, 0.3), printed, mean, v.decimals([printed]))
        return Outcome(word, text, tells="differences of 15 %")
    if (ratio > 1 + noise).all():
        word = v.REPRODUCED
    elif (ratio < 1 / (1 + noise)).any():
        word = v.NOT_REPRODUCED
    else:
        word = v.WITHIN_CHANCE
    return Outcome(word, text, tells=f"differences of {100 * noise:g} %")


def seconds(text: str) -> Outcome:
    """Give absolute seconds, or a rank by seconds of other programs, no verdict."""
    return Outcome(v.OTHER_MACHINE, text)


def assuming(met: bool, why: str, outcome: Outcome) -> Outcome:
    """Judge a statement under an assumption: the outcome where it is met, else
    "assumption not met", with `why` beside what was measured."""
    if met:
        return outcome
    return Outcome(
        v.ASSUMPTION_NOT_MET, f"{outcome.text}; {why}", chance=outcome.chance
    )


def definition(text: str = "holds") -> Outcome:
    """Say that a statement is true by construction: it cannot fail."""
    return Outcome(v.BY_DEFINITION, text)
