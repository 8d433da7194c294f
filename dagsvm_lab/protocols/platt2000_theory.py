"""The analysis of Platt, Cristianini and Shawe-Taylor 2000 (sections 2, 3, 6) on DDAGs that were really trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd

from ..bounds import (
    D_prime,
    enclosing_radius,
    fat_shattering,
    first_informative_m,
    lemma4_observed,
    lemma4_uniform,
    node_margins,
    theorem1,
    theorem2,
)
from ..datasets import load
from ..kernels import Kernel
from ..machines import Bank, pair_code, train
from ..papers.common import stratified_split
from ..systems.ddag import ddag
from .platt2000 import decisions, gaussian

DELTA = 0.05
HARD = 1e6  # C so large that no alpha reaches it where the classes can be separated
SMALL = 500  # rows up to which the exact solver trains
BASES = {"2": 2.0, "e": float(np.e)}
BOUNDED = {  # data set -> (kernel, what its rows are): each pair of classes can be, or nearly be, separated
    "iris": Kernel("linear"),
    "wine": Kernel("linear"),
    "usps": gaussian(5.06),
    "letter": gaussian(0.447),
}


def graph_facts(names: Iterable[str]) -> pd.DataFrame:
    """Nodes, leaves and path lengths of DDAGs that are built, and run on random machine outputs: one a data set."""
    rows = []
    for name in names:
        n = load(name).card.classes
        graph = ddag(range(n), n)
        paths = graph.run(np.random.default_rng(0).standard_normal((5000, n * (n - 1) // 2)))[1]
        steps = np.asarray(paths.sum(axis=1)).ravel()
        inner = int((graph.machine >= 0).sum())
        rows.append((name, n, inner, graph.n_nodes - inner, int(steps.min()), int(steps.max())))
    return pd.DataFrame(rows, columns=["dataset", "n_classes", "nodes", "leaves", "path_min", "path_max"])


def discriminants(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rows on their first two linear discriminants: a plane in which classes can be seen apart."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(n_components=2, solver="eigen", shrinkage="auto").fit_transform(X, y)


def margins_of(bank: Bank, X: np.ndarray, codes: np.ndarray) -> pd.DataFrame:
    """gamma of every ij-node over the rows of its two classes, 1/|w| beside it, and its training errors.

    Section 3 defines the margin where the hyperplane separates its classes: a node with training errors has none (NaN).
    """
    f, sides, norms = decisions(bank, X), bank.code.T[codes], []
    for beta in bank.coef:
        V = bank.vectors[beta.indices]
        norms.append(np.sqrt(beta.data @ bank.kernel(V, V) @ beta.data))
    first, second = (np.argmax(bank.code == sign, axis=1) for sign in (1, -1))
    errors = ((sides * f <= 0) & (sides != 0)).sum(axis=0)
    return pd.DataFrame({"first": first, "second": second, "gamma": node_margins(f, sides, norms),
                         "one_over_norm": 1 / np.array(norms), "training_errors": errors})  # fmt: skip


def radius(X: np.ndarray, y: np.ndarray, kernel: Kernel, most: int = 1500, seed: int = 0) -> dict[str, float]:
    """Radius of the smallest ball around the rows, exact, and the cheap bound max |phi(x)|.

    Of more than `most` rows the exact ball holds a stratified sample; `radius` is the one that surely holds them all.
    """
    rows = np.arange(len(X)) if len(X) <= most else stratified_split(y, most / len(X), seed)[0]
    exact = enclosing_radius(X=X[rows], kernel=kernel)
    cheap = enclosing_radius(X=X, kernel=kernel, method="origin")
    return {"radius": exact if len(rows) == len(X) else cheap, "radius_exact": exact, "radius_cheap": cheap,
            "ball_rows": len(rows)}  # fmt: skip


def hard_margin(name: str, n_jobs: int = 2) -> tuple[pd.DataFrame, dict]:
    """(every node's margin, facts of the set) of a hard-margin DDAG on the training rows."""
    data = load(name, scaled=True)
    classes, codes = np.unique(data.y_train, return_inverse=True)
    X, kernel = np.asarray(data.X_train, dtype=float), BOUNDED[name]
    solver = "qp" if len(X) <= SMALL else "smo"
    bank = train(X, codes, pair_code(len(classes)), kernel, HARD, solver=solver, n_jobs=n_jobs)
    margins = margins_of(bank, X, codes)
    facts = {"dataset": name, "n_classes": len(classes), "m": len(codes), **radius(X, codes, kernel)}
    facts["names"] = [str(c) for c in classes]
    return margins.assign(dataset=name), facts


def bounds_table(margins: pd.DataFrame, facts: dict) -> pd.DataFrame:
    """D' and the bounds: Theorem 1 (printed, and as its lemma gives it), Theorem 2 for each class; in both bases.

    Where a node that counts has training errors the theorem does not apply: D' and bound stay empty.
    """
    j_nodes = {f"theorem2_class_{name}": margins[(margins["first"] == c) | (margins["second"] == c)]
               for c, name in enumerate(facts["names"])}  # fmt: skip
    formulas = {"theorem1_paper": (theorem1, margins), "theorem1_lemma": (lemma4_uniform, margins)}
    formulas |= {"lemma4_observed": (lemma4_observed, margins)}
    formulas |= {variant: (theorem2, nodes) for variant, nodes in j_nodes.items()}
    rows, about = [], {k: v for k, v in facts.items() if k != "names"}
    for variant, (formula, nodes) in formulas.items():
        gammas, wrong = nodes["gamma"].to_numpy(), int((nodes["training_errors"] > 0).sum())
        D = np.nan if wrong else D_prime(gammas)
        for base in BASES.values():
            bound = np.nan if wrong else formula(gammas, facts["radius"], facts["m"], DELTA, log_base=base)
            found = {"D_prime": D, "variant": variant, "log_base": base, "bound": bound}
            rows.append({**about, **found, "nodes": len(nodes), "nodes_with_errors": wrong})
    return pd.DataFrame(rows)


def margin_summary(margins: pd.DataFrame) -> pd.DataFrame:
    """Nodes, nodes with training errors, least and median gamma of each data set."""
    groups = margins.groupby("dataset", sort=False)
    errors = groups["training_errors"].apply(lambda counts: int((counts > 0).sum()))
    found = {"nodes": groups.size(), "with_errors": errors, "least_gamma": groups["gamma"].min()}
    return pd.DataFrame(found | {"median_gamma": groups["gamma"].median()}).reset_index()


def side_by_side(bounds: pd.DataFrame) -> pd.DataFrame:
    """The forms of Theorem 1 as columns, a row a data set and logarithm, and the printed one over the lemma's."""
    keys = ["dataset", "m", "radius_exact", "radius_cheap", "D_prime", "log_base"]
    part = bounds[~bounds["variant"].str.startswith("theorem2")].dropna(subset="bound")
    wide = part.pivot_table(index=keys, columns="variant", values="bound", sort=False)
    return wide.assign(printed_over_lemma=wide["theorem1_paper"] / wide["theorem1_lemma"]).reset_index()


def gains(bounds: pd.DataFrame) -> pd.DataFrame:
    """Theorem 2's bound of every class (base 2) as a share of Theorem 1's, and 2/N, the share if margins were equal."""
    part = bounds[bounds["log_base"] == 2].dropna(subset="bound")
    one = part[part["variant"] == "theorem1_paper"].set_index("dataset")["bound"]
    part = part[part["variant"].str.startswith("theorem2")]
    share = part["bound"] / part["dataset"].map(one)
    return part[["dataset", "variant", "bound"]].assign(share=share, equal_margins=2 / part["n_classes"])


def informative(ns: Sequence[int], gammas: Sequence[float]) -> pd.DataFrame:
    """First m at which Theorem 1 says anything, over N and gamma / R: as printed, as its lemma gives it, both bases."""
    rows, forms = [], {"paper": theorem1, "lemma": lemma4_uniform}
    for n, gamma, base, form in product(ns, gammas, BASES, forms):
        margins = np.full(n * (n - 1) // 2, gamma)
        rows.append((n, gamma, base, form, first_informative_m(margins, 1.0, DELTA, BASES[base], forms[form])))
    return pd.DataFrame(rows, columns=["n_classes", "gamma", "log_base", "variant", "m"])


def discs(m: int, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """m rows of three classes, uniform on equal discs `gap` apart in the corners of a ball of radius 1."""
    # circumradius a and disc radius r: a sqrt(3) = 2 r + gap and a + r = 1
    a = (2 + gap) / (2 + np.sqrt(3))
    codes = rng.integers(0, 3, m)
    angle, far = rng.uniform(0, 2 * np.pi, m), (1 - a) * np.sqrt(rng.uniform(0, 1, m))
    corner = 2 * np.pi * codes / 3
    X = np.column_stack([a * np.cos(corner) + far * np.cos(angle), a * np.sin(corner) + far * np.sin(angle)])
    return X, codes


def outermost(X: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of each class's convex hull: a hard-margin hyperplane depends on no other rows."""
    from scipy.spatial import ConvexHull

    keep = []
    for c in np.unique(codes):
        rows = np.flatnonzero(codes == c)
        keep.append(rows[ConvexHull(X[rows]).vertices] if len(rows) > X.shape[1] else rows)
    keep = np.concatenate(keep)
    return X[keep], codes[keep]


def perceptron_ddag(X: np.ndarray, codes: np.ndarray, tol: float = 1e-3) -> tuple[Bank, np.ndarray]:
    """(bank, margins) of a hard-margin Perceptron DDAG."""
    n = int(codes.max()) + 1
    bank = train(X, codes, pair_code(n), Kernel("linear"), HARD, tol=tol, n_jobs=1)
    return bank, margins_of(bank, X, codes)["gamma"].to_numpy()


def simulation(
    sizes: Sequence[int], gaps: Sequence[float], repeats: int, test_rows: int = 100_000, seed: int = 0
) -> pd.DataFrame:
    """Bound and error on fresh rows of hard-margin DDAGs on `discs`, where R = 1 is known and truth can be sampled."""
    rng, rows = np.random.default_rng(seed), []
    for gap in gaps:
        T, truth = discs(test_rows, gap, rng)
        for m in sizes:
            for k in range(repeats):
                bank, gammas = perceptron_ddag(*outermost(*discs(m, gap, rng)))
                error = np.mean(ddag(range(3), 3).run(bank.decision(T))[0] != truth)
                bound = {f"bound_{b}": theorem1(gammas, 1.0, m, DELTA, log_base=base) for b, base in BASES.items()}
                D = D_prime(gammas)
                rows.append({"gap": gap, "m": m, "repeat": k, "D_prime": D, "error": error, **bound})
    return pd.DataFrame(rows)


def dimension(dimensions: Sequence[int], m: int = 60, gap: float = 0.3, seed: int = 0) -> pd.DataFrame:
    """Theorem 1 for the same rows turned into spaces of growing dimension, which holds the margins.

    Beside it, summed over nodes: fat(gamma/8) by Theorem 3, and n + 1, which is all that the dimension alone says.
    """
    rng = np.random.default_rng(seed)
    X, codes = discs(m, gap, rng)
    rows = []
    for d in dimensions:
        turn = np.linalg.qr(rng.standard_normal((d, 2)))[0]
        bank, gammas = perceptron_ddag(X @ turn.T, codes, tol=1e-10)
        R = enclosing_radius(X=X @ turn.T)
        k = sum(fat_shattering(g / 8, R, d) for g in gammas)
        rows.append((d, D_prime(gammas), R, theorem1(gammas, R, m, DELTA), k, len(gammas) * (d + 1)))
    return pd.DataFrame(rows, columns=["dimension", "D_prime", "radius", "bound", "fat_sum", "vc_sum"])
