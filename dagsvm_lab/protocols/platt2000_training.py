"""Training in Platt, Cristianini and Shawe-Taylor 2000: how kernels were chosen, how time grows, Covertype's coding."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from ..datasets import Dataset, load
from ..graphs import costs
from ..kernels import Kernel
from ..machines import pair_code, rest_code, train
from ..papers.common import slope, stratified_split, timed
from ..report.verdicts import WORDS, compare, published
from .platt2000 import METHODS, decisions, gaussian, graph_of, stored_size


def validation_parts(data: Dataset, share: float = 1.0, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(X, y) to train on and (X, y) to validate on: 70 % and 30 % of the training rows, or the set's validation rows.

    `share` first draws that part of the rows, class by class.
    """
    X, y = data.X_train, data.y_train
    if data.X_valid is None:
        a, b = stratified_split(y, 0.7, seed)
        parts = X[a], y[a], X[b], y[b]
    else:
        parts = X, y, data.X_valid, data.y_valid
    if share < 1:
        a, b = (stratified_split(part, share, seed)[0] for part in (parts[1], parts[3]))
        parts = parts[0][a], parts[1][a], parts[2][b], parts[3][b]
    return parts


def gaussians(steps: Iterable[int]) -> list[dict]:
    """Gaussian kernels of sigma^2 = 0.1 x 2^k, the grid that Table 1's widths for USPS and Letter lie on."""
    widths = [float(np.sqrt(0.1 * 2.0**k)) for k in steps]
    return [{"kernel": "rbf", "degree": np.nan, "sigma": s, "machine": gaussian(s)} for s in widths]


def polynomials(X: np.ndarray, degrees: Iterable[int] = range(1, 7)) -> list[dict]:
    """(x.y / s)^d and (x.y / s + 1)^d with s the mean |x|^2: the paper gives no scale; with this one K(x, x) is about
    1 or 2^d."""
    scale = 1.0 / float(np.mean(np.einsum("ij,ij->i", X, X, dtype=float)))
    forms = {"poly": 0.0, "poly + 1": 1.0}
    return [{"kernel": name, "degree": d, "sigma": np.nan, "machine": Kernel("poly", scale, d, one)}
            for name, one in forms.items() for d in degrees]  # fmt: skip


def selection(
    name: str, kernels: Callable[[np.ndarray], list[dict]], Cs: Sequence[float], share: float = 1.0, seed: int = 0,
    n_jobs: int = 2, max_iter: int = 200_000,
) -> pd.DataFrame:  # fmt: skip
    """Validation error (%) of every kernel, C and method; `stopped` counts machines that ended at `max_iter` steps."""
    X, y, V, w = validation_parts(load(name, scaled=True), share, seed)
    classes, codes = np.unique(y, return_inverse=True)
    truth, n, rows = np.searchsorted(classes, w), len(classes), []
    for kernel in kernels(X):
        for C in Cs:
            for code, methods in ((rest_code(n), METHODS[:1]), (pair_code(n), METHODS[1:])):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    bank = train(X, codes, code, kernel["machine"], C, n_jobs=n_jobs, max_iter=max_iter)
                f = decisions(bank, V)
                for method in methods:
                    error = 100 * np.mean(graph_of(method, n).run(f)[0] != truth)
                    rows.append({"dataset": name, "method": method, **kernel, "C": C, "validation_error_pct": error,
                                 "train_rows": len(y), "stopped": int((~bank.converged).sum())})  # fmt: skip
    return pd.DataFrame(rows).drop(columns="machine")


CS = (1.0, 10.0, 100.0)
STEPS = {"usps": range(6, 11), "letter": range(0, 5), "covertype": range(2, 8)}  # k of sigma^2 = 0.1 x 2^k
SCREENED = 0.2  # share of the rows on which all kernels are tried
KEPT = {"usps": 1.0, "letter": 1.0, "covertype": 0.5}  # and on which the best of them are


def corner(X: np.ndarray) -> list[dict]:
    """USPS's two published widths and the polynomials of degree 1 and 3: enough for a quick look."""
    return gaussians([7, 8]) + polynomials(X, [1, 3])


def screening(name: str, **options) -> pd.DataFrame:
    """`selection` over all polynomials and the Gaussians, on the share SCREENED of the rows."""
    return selection(name, lambda X: gaussians(STEPS[name]) + polynomials(X), CS, SCREENED, **options)


def final(name: str, screened: pd.DataFrame, **options) -> pd.DataFrame:
    """`selection` over the Gaussians and each method's best polynomial of the screening, on the share KEPT."""
    table = screened[(screened["dataset"] == name) & (screened["kernel"] != "rbf")]
    best = table.loc[table.groupby("method")["validation_error_pct"].idxmin()]
    left = set(zip(best["kernel"], best["degree"].astype(int), strict=True))

    def kernels(X: np.ndarray) -> list[dict]:
        return gaussians(STEPS[name]) + [k for k in polynomials(X) if (k["kernel"], k["degree"]) in left]

    return selection(name, kernels, CS, KEPT[name], **options)


def choose(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with the column `chosen`: the least validation error of each data set and method, the first of equals."""
    best = table.groupby(["dataset", "method"])["validation_error_pct"].idxmin()
    return table.assign(chosen=table.index.isin(best))


def flatness(table: pd.DataFrame, within: float = 0.5) -> pd.DataFrame:
    """For each data set and method: the best Gaussian and polynomial errors, and how many Gaussian settings are within
    `within` points of the best."""
    rows = []
    for (name, method), part in table.groupby(["dataset", "method"], sort=False):
        round_, other = part[part["kernel"] == "rbf"], part[part["kernel"] != "rbf"]
        best = round_["validation_error_pct"].min()
        near = (round_["validation_error_pct"] <= best + within).sum()
        least = other["validation_error_pct"].min() if len(other) else np.nan
        rows.append((name, method, best, least, int(near), len(round_)))
    columns = ["dataset", "method", "gaussian_pct", "polynomial_pct", "settings_near_best", "settings"]
    return pd.DataFrame(rows, columns=columns)


def with_exponents(table: pd.DataFrame, over: str) -> pd.DataFrame:
    """`table` with the log-log slope of seconds over the column `over`, for each solver and kind."""
    groups = table.groupby(["solver", "kind"])
    slopes = {key: slope(part[over], part["seconds"]) for key, part in groups}
    return table.assign(exponent=[slopes[key] for key in zip(table["solver"], table["kind"], strict=True)])


def _clock(X, codes, code, kernel: Kernel, C: float, repeats: int) -> dict[str, float]:
    """CPU seconds of our solver and of LIBSVM, with a machine for each row of the coding matrix.

    Machines are trained one at a time, as Eqs. 1 and 2 count them: those of a bank trained at once share their work.
    """
    from sklearn.svm import SVC

    def ours(row: np.ndarray) -> None:
        train(X, codes, row[None], kernel, C, n_jobs=1)

    def libsvm(row: np.ndarray) -> None:
        used = np.flatnonzero(row[codes])
        SVC(C=C, gamma=kernel.gamma, cache_size=1000).fit(X[used], row[codes[used]])

    def seconds(fit: Callable[[np.ndarray], None]) -> float:
        return timed(lambda: [fit(row) for row in code], repeats, time.process_time)[1]

    return {"smo": seconds(ours), "libsvm": seconds(libsvm)}


def pair_times(sizes: Sequence[int], repeats: int = 2, seed: int = 0) -> pd.DataFrame:
    """CPU seconds to train one machine, Covertype's classes 1 against 2, on m rows that Table 1 does not train on."""
    data = load("covertype", scaled=True)
    rows = np.flatnonzero(data.y_test <= 2)
    rows = np.random.default_rng(seed).choice(rows, max(sizes), replace=False)
    X, codes = data.X_test[rows].astype(float), data.y_test[rows] - 1
    found = [{"solver": solver, "kind": "pair-over-m", "n_classes": 2, "m": m, "seconds": s}
             for m in sizes
             for solver, s in _clock(X[:m], codes[:m], pair_code(2), gaussian(1.0), 10.0, repeats).items()]  # fmt: skip
    return with_exponents(pd.DataFrame(found), "m")


def system_times(ns: Sequence[int], m: int, draws: int = 3, seed: int = 0) -> pd.DataFrame:
    """Mean CPU seconds to train 1-v-r and 1-v-1 systems on m rows of Covertype, of N of its seven classes.

    The classes stand in a random circle; draw d takes N neighbours from place d on, so seven draws are fair to all.
    """
    data, rng, found = load("covertype", scaled=True), np.random.default_rng(seed), []
    circle = 1 + rng.permutation(7)
    for n in ns:
        for draw in range(draws):
            pools = [np.flatnonzero(data.y_train == c) for c in np.roll(circle, -draw)[:n]]
            rows = np.concatenate([rng.choice(pool, m // n, replace=False) for pool in pools])
            X, codes = data.X_train[rows], np.repeat(np.arange(n), m // n)
            for kind, code in (("1-v-r-over-n", rest_code(n)), ("1-v-1-over-n", pair_code(n))):
                for solver, s in _clock(X, codes, code, gaussian(1.0), 10.0, 1).items():
                    found.append({"solver": solver, "kind": kind, "n_classes": n, "m": m, "draw": draw, "seconds": s})
    means = pd.DataFrame(found).groupby(["solver", "kind", "n_classes", "m"], sort=False)["seconds"].mean()
    return with_exponents(means.reset_index(), "n_classes")


EXPONENTS = {"pair-over-m": 2.0, "1-v-r-over-n": 1.0, "1-v-1-over-n": 0.0}  # the paper's, with gamma = 2


def exponents(recorded: pd.DataFrame | None, fresh: pd.DataFrame) -> pd.DataFrame:
    """Published, recorded and fresh exponents of the series in `fresh`."""
    now = fresh.groupby(["kind", "solver"], sort=False)["exponent"].first()
    then = now * np.nan if recorded is None else recorded.groupby(["kind", "solver"])["exponent"].first()
    paper = now.index.get_level_values("kind").map(EXPONENTS)
    return pd.DataFrame({"published": paper, "recorded": then, "fresh": now}, index=now.index).reset_index()


def codings() -> dict[str, Callable[[Dataset], tuple[np.ndarray, np.ndarray]]]:
    """Readings of "zero mean and unit variance" and "1-of-n code": functions that give (training rows, test rows)."""

    def coded(data: Dataset, weight: float, moments=None) -> tuple[np.ndarray, np.ndarray]:
        known = data.X_train if moments is None else moments(data)
        mean, deviation = known[:, :10].mean(axis=0, dtype=float), known[:, :10].std(axis=0, dtype=float)
        place = lambda X: np.hstack([(X[:, :10] - mean) / deviation, weight * X[:, 10:]])  # noqa: E731
        return place(data.X_train), place(data.X_test)

    return {
        "codes 0 and 1": lambda data: coded(data, 1.0),
        "codes 0 and 0.3": lambda data: coded(data, 0.3),
        "codes 0 and 0.5": lambda data: coded(data, 0.5),
        "codes 0 and 2 (-1 and 1)": lambda data: coded(data, 2.0),
        "no codes": lambda data: coded(data, 0.0),
        "moments of all 581,012 rows": lambda data: coded(data, 1.0, lambda d: d.X),
    }


def covertype_codings(names: Sequence[str], test_rows: int = 20_000, seed: int = 0, n_jobs: int = 2) -> pd.DataFrame:
    """Covertype's part of Table 1 under other readings of its coding, on a sample of the test rows."""
    data, rows = load("covertype"), []
    keep = np.sort(np.random.default_rng(seed).choice(len(data.y_test), test_rows, replace=False))
    classes, codes = np.unique(data.y_train, return_inverse=True)
    truth, n = np.searchsorted(classes, data.y_test[keep]), len(classes)
    for name in names:
        X, T = codings()[name](data)
        for code, methods in ((rest_code(n), METHODS[:1]), (pair_code(n), METHODS[1:])):
            bank = train(X, codes, code, gaussian(1.0), 10.0, n_jobs=n_jobs)
            f, size = decisions(bank, T[keep]), stored_size(bank) / 1000
            for method in methods:
                labels, paths, _ = graph_of(method, n).run(f)
                evaluations = costs(paths, bank.coef).kernel_evaluations.mean()
                rows.append((name, method, 100 * np.mean(labels != truth), evaluations, size))
    columns = ["coding", "method", "error_pct", "kernel_evaluations", "size_kparameters"]
    return pd.DataFrame(rows, columns=columns)


def judge_codings(table: pd.DataFrame, test_rows: int = 20_000) -> pd.DataFrame:
    """How many of Table 1's nine numbers for Covertype each reading reproduces, comes close to, or does neither."""
    printed = published("platt2000_table1").query("dataset == 'covertype' and method in @METHODS")
    rules = {"error_pct": ("error", test_rows), "kernel_evaluations": ("count",), "size_kparameters": ("count",)}
    found = []
    for coding, part in table.groupby("coding", sort=False):
        words = compare(printed, part, "method", rules)["verdict"].value_counts()
        found.append({"coding": coding} | {word: int(words.get(word, 0)) for word in WORDS[:3]})
    return pd.DataFrame(found)
