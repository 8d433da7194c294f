"""Hard duals: by hand, by LIBSVM, by their own conditions; and without cvxopt."""

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from hard_problems import hard_problem
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from dagsvm_lab import CrammerSingerSVC, MaxWinsSVC, load, solve_qp, solve_smo
from dagsvm_lab.solvers.dual import measure, problem, snap
from dagsvm_lab.solvers.hard import HardDual, solve_hard
from dagsvm_lab.solvers.lowrank import centred_factor
from dagsvm_lab.solvers.vertex import ActiveSet

EPS = np.finfo(float).eps


def hard(K, s, p, u, beta=None, **how):
    """alpha of `solve_hard` on a matrix, from zero if no start is given."""
    start = np.zeros(len(s)) if beta is None else beta
    found = solve_hard(HardDual.of_matrix(K, s, p, u), start, **how)
    return None if found is None else s * found


def conditions(K, s, p, u, alpha) -> tuple[float, float]:
    """(largest violation, what rounding may do to it), written out for one row each."""
    f = [
        sum(alpha[j] * s[j] * K[i, j] for j in np.flatnonzero(alpha))
        for i in range(len(s))
    ]
    up, low = [-np.inf], [np.inf]
    for i in range(len(s)):
        v = s[i] * p[i] - f[i]
        rises = alpha[i] < u[i] if s[i] > 0 else alpha[i] > 0
        falls = alpha[i] > 0 if s[i] > 0 else alpha[i] < u[i]
        up += [v] if rises else []
        low += [v] if falls else []
    top, bottom = max(up), min(low)
    violation = max(0.0, top - bottom) if np.isfinite(top - bottom) else 0.0
    return violation, EPS * np.abs(np.diagonal(K)).max() * alpha.sum()


def objective(K, s, p, alpha) -> float:
    beta = s * alpha
    return 0.5 * beta @ K @ beta - p @ alpha


def libsvm(case, s, u) -> np.ndarray:
    """alpha of LIBSVM, as far as 20,000 iterations bring it."""
    live = u > 0
    machine = SVC(kernel="precomputed", C=case.C, tol=1e-6, max_iter=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(case.K[np.ix_(live, live)], s[live], u[live] / case.C)
    beta = np.zeros(len(s))
    beta[np.flatnonzero(live)[machine.support_]] = machine.dual_coef_[0]
    return np.abs(beta)


def check(seed: int) -> None:
    """Solve one problem: converged in its limit, and LIBSVM's objective or better."""
    case = hard_problem(seed)
    s, p, u = problem(case.y, case.C, upper=case.upper)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        dual = solve_smo(case.K, case.y, case.C, tol=1e-6, upper=case.upper)
    violation, noise = conditions(case.K, s, p, u, dual.alpha)
    said = f"{case.kind}, seed {seed}: violation {violation:.3g}, noise {noise:.3g}"
    # the two violations differ by the rounding of the sums that they are formed from
    assert dual.converged, said
    assert violation <= max(1e-6, 4 * noise) + 4 * noise, said
    assert (dual.alpha >= 0).all() and (dual.alpha <= u).all(), said
    assert abs(s @ dual.alpha) <= 1e-9 * dual.alpha.sum(), said
    if case.kind == "soft":  # LIBSVM has p = 1
        return
    ours = objective(case.K, s, p, dual.alpha)
    theirs = objective(case.K, s, p, libsvm(case, s, u))
    rounding = 1e-9 * abs(theirs) + 4 * noise * dual.alpha.sum()
    assert ours <= theirs + rounding, f"{said}: {ours} above LIBSVM's {theirs}"


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_hard_problems_are_solved(first):
    for seed in range(first, first + 20):
        check(seed)


@pytest.mark.slow
def test_four_hundred_hard_problems_are_solved():
    for seed in range(1000, 1400):
        check(seed)


def test_equal_rows_by_hand():
    # x = 1, 1, -1. With labels 1, -1, -1 nothing is gained by w: the twins lose 2 as
    # long as |f| <= 1, so both are at C and the third is 0, whatever C is.
    X = np.array([[1.0], [1.0], [-1.0]])
    K, p = X @ X.T, np.ones(3)
    for C in (1.0, 1e4, 1e10):
        alpha = hard(K, np.array([1.0, -1.0, -1.0]), p, np.full(3, C))
        np.testing.assert_array_equal(alpha, [C, C, 0.0])
    # With labels 1, 1, -1: w = 1, and the twins share 1/2 in any way; a vertex has one.
    alpha = hard(K, np.array([1.0, 1.0, -1.0]), p, np.full(3, 10.0))
    np.testing.assert_allclose(np.sort(alpha), [0.0, 0.5, 0.5], atol=1e-15)
    assert alpha[2] == pytest.approx(0.5)


def test_lines_that_depend_leave_a_vertex():
    # 120 points of a lattice in the plane: at most three free rows are independent
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, size=(120, 2)).astype(float)
    s = np.where(X[:, 0] + rng.normal(size=120) > 2, 1.0, -1.0)
    K, p, u = X @ X.T, np.ones(120), np.full(120, 7.0)
    alpha = hard(K, s, p, u)
    free = (alpha > 0) & (alpha < u)
    lines = np.column_stack([X[free], np.ones(free.sum())])
    assert free.sum() == np.linalg.matrix_rank(lines) <= 3
    violation, noise = conditions(K, s, p, u, alpha)
    assert violation <= 4 * noise + 1e-9


def test_an_offset_of_all_rows_changes_nothing():
    X = np.random.default_rng(0).normal(size=(60, 3))
    s = np.where(X[:, 0] > 0.3 * X[:, 1] ** 2, 1.0, -1.0)
    p, u = np.ones(60), np.full(60, 100.0)
    near = hard(X @ X.T, s, p, u)
    far = hard((X + 1e3) @ (X + 1e3).T, s, p, u)
    np.testing.assert_allclose(far, near, atol=1e-6 * near.max())


def test_a_kernel_of_full_rank_is_solved_on_itself():
    # what the factor leaves out of a smooth kernel is more than rounding at C = 1e9
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    s = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    K, p, u = rbf_kernel(X, gamma=0.02), np.ones(300), np.full(300, 1e9)
    violation, noise = conditions(K, s, p, u, hard(K, s, p, u))
    assert violation <= 4 * noise


def test_rank_that_is_too_large_is_refused_and_the_start_kept():
    X = np.random.default_rng(0).normal(size=(50, 4))
    s = np.where(X[:, 0] > 0, 1.0, -1.0)
    p, u = np.ones(50), np.full(50, 10.0)
    K = X @ X.T
    three, four, six = (partial(centred_factor, most_rank=k) for k in (3, 4, 6))
    assert hard(K, s, p, u, factored=three) is None
    assert hard(K, s, p, u, factored=four) is not None
    asked = []

    def columns(rows):
        asked.extend(rows)
        return rbf_kernel(X, X[rows])

    dual = HardDual(np.ones(50), columns, s, p, u)
    assert solve_hard(dual, np.zeros(50), factored=six) is None
    assert len(asked) <= 8


@pytest.mark.parametrize("total", [0.0, 3.0, -2.5])
def test_rows_may_sum_to_what_others_leave(total):
    # four rows held at values that sum to -total, the others solved around them
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    s = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    K, u = rbf_kernel(X, gamma=0.3), np.full(60, 20.0)
    held = np.array([3, 11, 27, 50])
    beta = np.zeros(60)
    beta[held] = -total / 4
    rest = np.setdiff1d(np.arange(60), held)
    side = rest[s[rest] == (1.0 if total > 0 else -1.0)]
    beta[side] = total / len(side)
    K_rest = K[np.ix_(rest, rest)]
    goal = s[rest] - K[np.ix_(rest, held)] @ beta[held]
    signs = s[rest]
    dual = HardDual.of_matrix(K_rest, signs, signs * goal, u[rest], total)
    found = solve_hard(dual, beta[rest])
    assert found.sum() == pytest.approx(total, abs=1e-10)
    alpha = signs * found
    violation, noise = conditions(K_rest, signs, signs * goal, u[rest], alpha)
    assert violation <= max(4 * noise, 1e-9), violation


@pytest.mark.parametrize(
    "how",
    [dict(kernel="poly", gamma=0.5, coef0=1, C=1e4), dict(gamma=0.5, C=1e6)],
    ids=["cubic", "gaussian"],
)
def test_hard_active_rows_take_no_million_steps(how):
    # 1,078,946 steps, and 82,958, where steps alone went on after Newton's method
    segment = load("segment", scaled=True)
    y = segment.y == np.unique(segment.y)[2]
    machines = MaxWinsSVC(**how).fit(segment.X, y).machines_
    assert machines.n_iter[0] < 40_000, machines.n_iter
    assert machines.converged[0]
    K = machines.kernel(segment.X, segment.X)
    alpha = np.zeros(len(y))
    alpha[machines.support] = np.abs(machines.coef.toarray()[0])
    s = np.where(y, -1.0, 1.0)  # the first class is False
    p, u = np.ones(len(y)), np.full(len(y), how["C"])
    violation, noise = conditions(K, s, p, u, alpha)
    assert violation <= max(1e-3, 4 * noise), violation


@pytest.mark.slow
def test_a_dual_of_full_rank_is_solved_after_long():
    # 10,000,008 steps, and a violation of 18, before: free rows of a smooth kernel
    wine = load("winequality-red")
    X = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    est = MaxWinsSVC(gamma=0.01, C=1e6).fit(X, wine.y == 6)
    machines = est.machines_
    assert machines.converged[0], machines.kkt_violation
    assert machines.n_iter[0] < 200_000, machines.n_iter


def test_a_rank_below_half_of_the_rows_is_solved_to_a_vertex():
    # two classes that overlap, cubic in six inputs: rank 83 of 300 rows
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 6))
    s = np.where(X[:, 0] * X[:, 1] + rng.normal(size=300) > 0, 1.0, -1.0)
    K, p, u = (0.3 * X @ X.T + 1) ** 3, np.ones(300), np.full(300, 100.0)
    alpha = hard(K, s, p, u, inside=True)
    violation, noise = conditions(K, s, p, u, alpha)
    assert violation <= max(4 * noise, 1e-9), violation
    free = (alpha > 0) & (alpha < u)
    assert np.count_nonzero(free) <= 84, free.sum()  # a vertex: at most rank + 1


@pytest.mark.parametrize("seed", range(20))
def test_a_matrix_that_is_no_kernel_never_makes_the_start_worse(seed):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(30, 30))
    K = K + K.T
    s = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    p, u = np.ones(30), np.full(30, 5.0)
    start = np.zeros(30)
    start[np.flatnonzero(s > 0)[0]] = 1.0
    start[np.flatnonzero(s < 0)[0]] = -1.0
    alpha = hard(K, s, p, u, start)
    assert objective(K, s, p, alpha) <= objective(K, s, p, np.abs(start)) + 1e-9
    assert (alpha >= 0).all(), alpha.min()
    assert (alpha <= u).all(), np.max(alpha - u)
    assert abs(s @ alpha) <= 1e-12 * alpha.sum()


def test_steps_that_only_rounding_moves_come_to_an_end():
    # Two rows took each other's place 20,000 times, to the limit of the steps.
    segment = load("segment")
    Z = segment.X - segment.X.mean(axis=0)
    s = np.where(segment.y == 1, 1.0, -1.0)
    C = 1e4
    active = ActiveSet(Z, np.minimum(s * C, 0.0), np.maximum(s * C, 0.0))
    beta = active.solve(s, np.zeros(len(s)))
    assert active.steps < 1000, active.steps
    v = s - Z @ (Z.T @ beta)
    violation = v[beta < active.hi].max() - v[beta > active.lo].min()
    assert violation < 1e-6, violation


def test_alphas_within_rounding_of_a_bound_are_at_it():
    # all at their bounds but for rounding: the bias is the middle, not one row's value
    X = np.array([[2.0], [1.0], [-1.0], [-3.0]])
    s = np.array([1.0, 1.0, -1.0, -1.0])
    u = np.full(4, 0.01)
    near = np.array([0.01, 0.01 * (1 - 1e-14), 0.01, 0.01])
    alpha = snap(near, u)
    np.testing.assert_array_equal(alpha, u)
    f = X @ X.T @ (s * alpha)
    v = s - f
    found = measure(f, s, np.ones(4), u, alpha)
    middle = 0.5 * (v[s < 0].max() + v[s > 0].min())
    assert found.bias == pytest.approx(middle)
    assert measure(f, s, np.ones(4), u, near).bias == pytest.approx(v[1])
    kept = np.array([0.01, 1e-10, 0.0, 0.005])
    np.testing.assert_array_equal(snap(kept, u), kept)
    np.testing.assert_array_equal(snap(1e-15 * u, np.full(4, np.inf)), 1e-15 * u)


def test_what_rounding_leaves_is_said():
    # C of 1e12: v has an error of about 1e-3, so that tol = 1e-9 cannot be held
    rng = np.random.default_rng(5)
    X = rng.normal(size=(140, 1))
    y = np.where(rng.random(140) < 0.5, "a", "b")
    with pytest.warns(ConvergenceWarning, match="above tol"):
        est = MaxWinsSVC(kernel="linear", C=1e12, tol=1e-9).fit(X, y)
    bank = est.machines_
    noise = EPS * (X**2).max() * np.abs(bank.coef).sum()
    assert 1e-9 < bank.kkt_violation[0] <= 4.1 * noise and bank.converged[0]


NEVER = [
    {"tol": -1},
    {"tol": np.nan},
    {"tol": np.inf},
    {"C": 10**400},
    {"C": "one"},
    {"C": -1.0},
]


@pytest.mark.parametrize("how", NEVER)
def test_numbers_that_cannot_be_meant_are_refused(how):
    for solve in (solve_smo, solve_qp):
        with pytest.raises(ValueError, match="must"):
            solve(np.eye(2), [1, -1], **how)


WITHOUT = """
import sys, warnings
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in ABSENT
        return None if hidden else self.finder.find_spec(name, path, target)
sys.meta_path = [Hiding(finder) for finder in sys.meta_path]
import numpy as np
from dagsvm_lab import *
warnings.simplefilter("error")
"""
FITS = """
from sklearn.datasets import load_wine
from sklearn.svm import SVC
wine = load_wine(return_X_y=True)
sets = {name: load(name, scaled=True) for name in ("iris", "glass", "vowel", "segment")}
iris = sets["iris"].X, sets["iris"].y
OneVsRestSVC(kernel="linear", C=100).fit(*iris)
CrammerSingerSVC(kernel="linear").fit(*wine)
tune(MaxWinsSVC(kernel="linear"), *iris, C=[1.0, 10.0, 100.0, 1000.0, 10000.0])
for name in ("glass", "vowel", "segment"):
    d = sets[name]
    for C in (1e3, 1e4):
        ours = MaxWinsSVC(kernel="linear", C=C).fit(d.X_train, d.y_train)
        assert ours.machines_.converged.all(), (name, C)
        theirs = SVC(kernel="linear", C=C, max_iter=20_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(d.X_train, d.y_train)
        same = np.mean(ours.predict(d.X_train) == theirs.predict(d.X_train))
        assert same > .99 or theirs.fit_status_ == 1, (name, C, same)
for seed in range(60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2)).round(1)
    y = np.where(X[:, 0] + rng.normal(size=120) > 0, 1, -1)
    for C in (10.0, 100.0):
        est = MaxWinsSVC(kernel="linear", C=C).fit(X, y)
        assert est.machines_.converged.all(), (seed, C)
        if seed >= 10:  # LIBSVM takes thirteen times as long
            continue
        theirs = SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
        f, g = est.decision_function(X), theirs.decision_function(X)
        sure = np.abs(g) > 1e-3
        assert (est.predict(X) == theirs.predict(X))[sure].all(), (seed, C)
assert "cvxopt" not in sys.modules
try:
    solve_qp(np.eye(2), [1, -1])
except ModuleNotFoundError as error:
    assert "dagsvm-lab[qp]" in str(error)
"""


def error_without(modules: set[str], code: str) -> str:
    """The error of code after `from dagsvm_lab import *`, some modules being absent."""
    code = f"ABSENT = {modules!r}{WITHOUT}{code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return run.stderr if run.returncode else ""


@pytest.mark.slow
def test_linear_kernels_are_trained_without_cvxopt():
    assert error_without({"cvxopt"}, FITS) == ""


def test_everything_is_imported_on_the_bare_installation():
    bare = {"cvxopt", "pandas", "matplotlib", "seaborn", "IPython", "papermill", "yaml"}
    code = 'assert "DAGSVC" in globals() and "tune" in globals()'
    assert error_without(bare, code) == ""
    code = 'assert "Record" in globals() and "show" in globals()'
    assert error_without(set(), code) == ""


def test_a_linear_direct_machine_needs_no_cvxopt():
    X, y = load_iris(return_X_y=True)
    machine = CrammerSingerSVC(kernel="linear", C=100.0, solver="qp").fit(X, y)
    assert machine.machines_.converged.all(), machine.machines_.kkt_violation.max()
    assert machine.score(X, y) > 0.97
