"""The setting in which the tour and notebook 05 compare systems, and its rules.

`ground` gives training and test rows, `field` the systems, `compare` fits them over
shared machines. Then come the rules, one set at a time: `difference` is by how many
points one of two systems is more accurate, on the same rows; `time_ratio` how much
longer it takes; `SENTENCES` are what the papers say of systems, judged by `said`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from .. import systems as s
from ..datasets import load
from ..datasets.scaling import scale_like_training
from ..report import judges
from ..report import verdicts as v
from ..report.claims import Outcome
from ..statistics import corrected_interval
from .blind import MARGIN
from .common import Split, mean_over_splits, stratified_split, timed

TEST = 4000  # test rows at most
COSTS = ["kernel_evaluations", "support_vectors", "binary_decisions"]
CLOCKS = {"batch_us": "a batch", "one_row_us": "one row"}
PAIRED = (  # systems whose answers are compared row by row
    ("dagsvm", "max-wins"),
    ("adaptive", "dagsvm"),
    ("btppsvm", "c-bts"),
    ("posterior ovo", "max-wins"),
    ("dcsvm 2%", "max-wins"),
    ("filtered", "dagsvm"),
    ("filtered dcsvm", "dcsvm 0%"),
)


def ground(name: str, rows: int, seed: int = 0, own: bool = True) -> Split:
    """Training rows, at most `rows`, and test rows, at most TEST, of a set.

    The set's own split; halves by class where it has none, or with own=False.
    """
    d = load(name)
    if own and d.X_test is not None:
        parts = [(d.X_train, d.y_train), (d.X_test, d.y_test)]
    else:
        whole = ~np.isnan(d.X).any(axis=1)
        X = d.X[whole]
        y = d.y[whole]
        parts = [(X[half], y[half]) for half in stratified_split(y, 0.5, seed)]
    kept = []
    for (X, y), most in zip(parts, (rows, TEST), strict=True):
        some = stratified_split(y, min(1, most / len(y)), seed)[0]
        kept.append((X[some].astype(float), y[some]))
    (X, y), (X_test, y_test) = kept
    X, X_test = scale_like_training(X, X_test)
    return Split(name, X, y, X_test, y_test, seed=seed)


def field(seed: int = 0, **p) -> dict[str, tuple]:
    """(family, bank, estimator) of every system; those that name the same bank are
    graphs over the same machines.
    """
    tree = s.BinaryTreeSVC
    dc = s.DCSVC
    groups = s.DecisionTreeSVC
    bts = tree(pair="random", routing="samples", random_state=seed, **p)
    sparse_code = s.ECOCSVC(code="sparse", random_state=seed, **p)
    type_4 = groups(separate="many", distance="mahalanobis", **p)
    return {
        "1-v-r": ("rest", "rest", s.OneVsRestSVC(**p)),
        "max-wins": ("pairs", "pairs", s.MaxWinsSVC(**p)),
        "and-gate": ("pairs", "pairs", s.AndGateSVC(**p)),
        "dagsvm": ("DAG", "pairs", s.DAGSVC(**p)),
        "adaptive": ("DAG", "pairs", s.AdaptiveDAGSVC(**p)),
        "filtered": ("filtered", "pairs", s.FilteredDAGSVC(**p)),
        "filtered dcsvm": ("filtered", "pairs", s.FilteredDAGSVC(base=dc(), **p)),
        "bts": ("tree", "pairs", bts),
        "c-bts": ("tree", "pairs", tree(pair="centre", routing="samples", **p)),
        "dcsvm 0%": ("DCSVM", "pairs", dc(**p)),
        "dcsvm 2%": ("DCSVM", "pairs", dc(threshold=0.02, **p)),
        "dcsvm 5%": ("DCSVM", "pairs", dc(threshold=0.05, **p)),
        "posterior ovo": ("pairs", "soft pairs", s.PosteriorSVC(**p)),
        "posterior ovr": ("rest", "soft rest", s.PosteriorSVC(strategy="ovr", **p)),
        "btppsvm": ("tree", "soft pairs", tree(labels="soft", **p)),
        "ecoc dense": ("codes", "dense", s.ECOCSVC(random_state=seed, **p)),
        "ecoc sparse": ("codes", "sparse", sparse_code),
        "ta type 1": ("tree", "groups 1", groups(**p)),
        "ta type 2": ("tree", "groups 2", groups(separate="many", **p)),
        "ta type 3": ("tree", "groups 3", groups(distance="mahalanobis", **p)),
        "ta type 4": ("tree", "groups 4", type_4),
        "crammer-singer": ("direct", "direct 1", s.CrammerSingerSVC(**p)),
        "weston-watkins": ("direct", "direct 2", s.WestonWatkinsSVC(**p)),
        "libsvm": ("peer", None, SVC(C=p["C"], gamma=p["gamma"])),
    }


def compare(
    g: Split, chosen: Mapping[str, tuple]
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Fit and time systems (as from `field`) on one ground.

    The first that names a bank trains it. The table has a row a system: accuracy, mean
    cost of a test row, size, seconds to train (a shared bank's included) and to test.
    Beside it stands which test rows each system gets wrong.
    """
    banks: dict = {}
    rows = []
    wrong = {}
    for name, (family, bank, est) in chosen.items():
        trained, before = banks.get(bank, (None, 0.0))
        _, seconds = timed(partial(_fitted, est, trained, g))
        if bank is None:
            labels, measured = _of_libsvm(est, g)
        else:
            banks.setdefault(bank, (est.machines_, seconds))
            labels, measured = _of_ours(est, g)
        refused = np.nan
        if name == "and-gate":
            refused = 100 * est.unclassified(g.X_test).mean()
        wrong[name] = labels != g.y_test
        rows.append(
            {
                "dataset": g.name,
                "system": name,
                "family": family,
                "test_rows": len(labels),
                "accuracy_pct": 100 * np.mean(~wrong[name]),
                "unclassified_pct": refused,
                **measured,
                "train_s": before + seconds,
            }
        )
    return pd.DataFrame(rows), wrong


def _fitted(est, bank, g: Split):
    """`est` fitted, over a given bank if there is one."""
    return est.fit_over(bank, g.X, g.y) if bank else est.fit(g.X, g.y)


def _of_ours(est, g: Split) -> tuple[np.ndarray, dict]:
    """Labels of the test rows, and what they cost."""
    (labels, found), seconds = timed(lambda: est.predict_with_cost(g.X_test))
    measured = {count: getattr(found, count).mean() for count in COSTS}
    measured["machines"] = len(est.machines_.code)
    measured["size_kparameters"] = est.n_parameters_ / 1000
    return labels, measured | {"test_s": seconds}


def _of_libsvm(est, g: Split) -> tuple[np.ndarray, dict]:
    """The same of LIBSVM, which asks every pair and keeps no count."""
    labels, seconds = timed(lambda: est.predict(g.X_test))
    coefficients = int(np.count_nonzero(est.dual_coef_))
    machines = len(est.intercept_)
    counts = (len(est.support_), coefficients, machines)
    measured = dict(zip(COSTS, counts, strict=True))
    measured["machines"] = machines
    measured["size_kparameters"] = (est.support_vectors_.size + coefficients) / 1000
    return labels, measured | {"test_s": seconds}


def row_by_row(g: Split, wrong: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Rows that only one of two systems gets right, for each pair of PAIRED."""
    found = []
    for one, other in PAIRED:
        if one in wrong and other in wrong:
            won = int(np.sum(~wrong[one] & wrong[other]))
            lost = int(np.sum(wrong[one] & ~wrong[other]))
            rows = (len(g.y), len(g.y_test))
            found.append((g.name, one, other, won, lost, *rows))
    columns = "dataset one other won lost train_rows test_rows".split()
    return pd.DataFrame(found, columns=columns)


def difference(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Points by which one system is more accurate than another, with 95 % limits.

    `rows` are those of one set and pair from `row_by_row`, a split each. Several splits
    share rows: the limits are Nadeau and Bengio's (2003). Those of one split are of the
    rows that only one of the two gets right.
    """
    if len(rows) == 1:
        won, lost, n = rows[["won", "lost", "test_rows"]].iloc[0]
        return judges.points_apart(int(won), int(lost), int(n))
    points = 100 * (rows["won"] - rows["lost"]) / rows["test_rows"]
    return mean_over_splits(points, rows["test_rows"], rows["train_rows"])


def time_ratio(
    rounds: pd.DataFrame, one: str, other: str, clock: str
) -> tuple[float, float, float]:
    """How much longer `one` takes than `other`, with 95 % limits.

    `rounds` are those of one set: in each, all systems were timed in turn. The mean is
    geometric, the limits Student's, of the logarithms.
    """
    wide = rounds.pivot(index="round", columns="system", values=clock)
    return geometric(wide[one] / wide[other])


def geometric(ratios) -> tuple[float, float, float]:
    """Geometric mean of ratios with 95 % limits (Student's, of the logarithms).

    >>> [round(x, 2) for x in geometric([0.5, 1.0, 2.0])]
    [1.0, 0.18, 5.59]
    """
    return tuple(np.exp(corrected_interval(np.log(ratios), 0.0)).tolist())


@dataclass(frozen=True, eq=False)
class OnOneSet:
    """What was found on one set: rows of the tables, and how they are judged."""

    means: pd.DataFrame  # of the race over splits, a row a system
    pairs: pd.DataFrame  # from `row_by_row`, a split and pair each
    rounds: pd.DataFrame  # dataset, round, system, batch_us, one_row_us

    def as_accurate(self, one: str, other: str) -> Outcome:
        """Not inferior by the margin, on the same rows."""
        return judges.not_below(*difference(self._of(one, other)), MARGIN)

    def more_accurate(self, one: str, other: str) -> Outcome:
        """More accurate on the same rows."""
        return judges.above(*difference(self._of(one, other)))

    def _of(self, one: str, other: str) -> pd.DataFrame:
        return self.pairs[(self.pairs["one"] == one) & (self.pairs["other"] == other)]

    def fewer(self, cost: str, one: str, other: str) -> Outcome:
        """Fewer in the mean: counts are exact."""
        return judges.every([self.means[cost][one] < self.means[cost][other]])

    def no_more(self, cost: str, one: str, other: str) -> Outcome:
        """As many at most."""
        return judges.every([self.means[cost][one] <= self.means[cost][other]])

    def faster(self, clock: str, one: str, other: str) -> Outcome:
        """Less time, by the interval of the ratio."""
        ratio, low, high = time_ratio(self.rounds, one, other, clock)
        return judges.above(1 - ratio, 1 - high, 1 - low)

    def as_counted(self, clock: str, one: str, other: str) -> Outcome:
        """The ratio of times is that of kernel evaluations: within 15 %, or 30 %."""
        evaluations = self.means["kernel_evaluations"]
        counted = evaluations[one] / evaluations[other]
        ratio = time_ratio(self.rounds, one, other, clock)[0]
        return judges.against(ratio, counted, ("count", 0.15, 0.3), 2)


@dataclass(frozen=True)
class Sentence:
    """What a paper says of systems, as it would read if it held everywhere."""

    paper: str
    text: str
    judge: Callable[[OnOneSet], Outcome]


SENTENCES = (
    Sentence(
        "Platt",
        "DAGSVM is as accurate as Max Wins",
        lambda t: t.as_accurate("dagsvm", "max-wins"),
    ),
    Sentence(
        "Platt",
        "DAGSVM evaluates fewer kernels than Max Wins",
        lambda t: t.fewer("kernel_evaluations", "dagsvm", "max-wins"),
    ),
    Sentence(
        "Platt",
        "DAGSVM answers a batch faster than Max Wins",
        lambda t: t.faster("batch_us", "dagsvm", "max-wins"),
    ),
    Sentence(
        "Platt",
        "DAGSVM answers one row faster than Max Wins",
        lambda t: t.faster("one_row_us", "dagsvm", "max-wins"),
    ),
    Sentence(
        "Platt",
        "kernel evaluations indicate the time of a batch (DAGSVM, Max Wins)",
        lambda t: t.as_counted("batch_us", "dagsvm", "max-wins"),
    ),
    Sentence(
        "Platt",
        "kernel evaluations indicate the time of one row (DAGSVM, Max Wins)",
        lambda t: t.as_counted("one_row_us", "dagsvm", "max-wins"),
    ),
    Sentence(
        "Yu",
        "the adaptive order is as accurate as the list's",
        lambda t: t.as_accurate("adaptive", "dagsvm"),
    ),
    Sentence(
        "Yu",
        "the adaptive order is more accurate than the list's",
        lambda t: t.more_accurate("adaptive", "dagsvm"),
    ),
    Sentence(
        "Wang",
        "c-BTS asks fewer machines than DAGSVM",
        lambda t: t.fewer("binary_decisions", "c-bts", "dagsvm"),
    ),
    Sentence(
        "Wang",
        "c-BTS answers a batch faster than DAGSVM",
        lambda t: t.faster("batch_us", "c-bts", "dagsvm"),
    ),
    Sentence(
        "Wang",
        "BTPPSVM is as accurate as c-BTS",
        lambda t: t.as_accurate("btppsvm", "c-bts"),
    ),
    Sentence(
        "Wang",
        "a vote of soft-label machines is as accurate as Max Wins",
        lambda t: t.as_accurate("posterior ovo", "max-wins"),
    ),
    Sentence(
        "Don",
        "DCSVM (2%) asks fewer machines than DAGSVM",
        lambda t: t.fewer("binary_decisions", "dcsvm 2%", "dagsvm"),
    ),
    Sentence(
        "Don",
        "DCSVM (2%) answers a batch faster than Max Wins",
        lambda t: t.faster("batch_us", "dcsvm 2%", "max-wins"),
    ),
    Sentence(
        "Don",
        "DCSVM (2%) is as accurate as Max Wins",
        lambda t: t.as_accurate("dcsvm 2%", "max-wins"),
    ),
    Sentence(
        "Don",
        "DCSVM asks no more machines at 5% than at 0%",
        lambda t: t.no_more("binary_decisions", "dcsvm 5%", "dcsvm 0%"),
    ),
    Sentence(
        "here",
        "the filtered DAG is as accurate as DAGSVM",
        lambda t: t.as_accurate("filtered", "dagsvm"),
    ),
    Sentence(
        "here",
        "the filtered DAG evaluates fewer kernels than DAGSVM",
        lambda t: t.fewer("kernel_evaluations", "filtered", "dagsvm"),
    ),
    Sentence(
        "here",
        "the filtered DAG answers a batch faster than DAGSVM",
        lambda t: t.faster("batch_us", "filtered", "dagsvm"),
    ),
    Sentence(
        "here",
        "the filtered DAG answers one row faster than DAGSVM",
        lambda t: t.faster("one_row_us", "filtered", "dagsvm"),
    ),
)


def said(race: pd.DataFrame, pairs: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """Judge SENTENCES set by set: on how many each holds, where it fails, and where
    the rows or rounds do not tell."""
    found = {}
    for name in dict.fromkeys(race["dataset"]):
        own = race[race["dataset"] == name]
        found[name] = OnOneSet(
            own.groupby("system").mean(numeric_only=True),
            pairs[pairs["dataset"] == name],
            rounds[rounds["dataset"] == name],
        )
    rows = []
    for sentence in SENTENCES:
        words = {name: sentence.judge(on).word for name, on in found.items()}
        rows.append(
            {
                "paper": sentence.paper,
                "sentence": sentence.text,
                "holds_on": sum(
                    word in (v.REPRODUCED, v.CLOSE) for word in words.values()
                ),
                "of": len(words),
                "fails_on": _named(words, v.NOT_REPRODUCED),
                "undecided_on": _named(words, v.WITHIN_CHANCE),
            }
        )
    return pd.DataFrame(rows)


def _named(words: Mapping[str, str], word: str) -> str:
    """The sets with this word, or a dash."""
    return ", ".join(name for name in words if words[name] == word) or "-"
