"""SMO against the exact solver and LIBSVM: objectives and certificates on random and on
awkward duals.
"""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from dagsvm_lab import MaxWinsSVC, load
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, train, train_grid
from dagsvm_lab.solvers import certify, short, solve_qp, solve_smo
from dagsvm_lab.solvers.dual import Dual, Duals, rounding
from dagsvm_lab.solvers.long import Settings, solve_long


def reference(K, s, p, u, tol=1e-6, most=200_000):
    """alpha by SMO as the papers have it (Keerthi et al. 2001): the two worst
    violators, one step, again.
    """
    n, alpha, f, steps = len(s), [0.0] * len(s), [0.0] * len(s), 0  # f = K (s alpha)
    while steps < most:
        v = [s[i] * p[i] - f[i] for i in range(n)]
        up = [i for i in range(n) if (alpha[i] < u[i] if s[i] > 0 else alpha[i] > 0)]
        low = [i for i in range(n) if (alpha[i] > 0 if s[i] > 0 else alpha[i] < u[i])]
        if not up or not low:
            break
        i, j = max(up, key=v.__getitem__), min(low, key=v.__getitem__)
        if v[i] - v[j] <= tol:
            break
        eta = max(K[i][i] + K[j][j] - 2 * K[i][j], 1e-12)
        room_i = u[i] - alpha[i] if s[i] > 0 else alpha[i]
        room_j = alpha[j] if s[j] > 0 else u[j] - alpha[j]
        t = min((v[i] - v[j]) / eta, room_i, room_j)
        alpha[i] = (u[i] if s[i] > 0 else 0.0) if t == room_i else alpha[i] + s[i] * t
        alpha[j] = (0.0 if s[j] > 0 else u[j]) if t == room_j else alpha[j] - s[j] * t
        f = [f[k] + t * (K[k][i] - K[k][j]) for k in range(n)]
        steps += 1
    return np.array(alpha)


def many(solve, X, kernel, problems, **how):
    """The Dual of each (rows, y, p, u) by a solver of whole banks."""
    ends = np.cumsum([0] + [len(rows) for rows, *_ in problems])
    duals = Duals(
        ends,
        *(
            np.concatenate(part).astype(kind)
            for part, kind in zip(
                zip(*problems, strict=True), (int, float, float, float), strict=True
            )
        ),
    )
    left = solve(X, kernel, duals, np.arange(len(problems)), **how)
    found = []
    for t in range(len(problems)):
        numbers = (
            getattr(duals, k)[t]
            for k in (
                "bias",
                "objective",
                "gap",
                "gap",
                "kkt_violation",
                "n_iter",
                "converged",
            )
        )
        part = duals.part(t)
        found.append(Dual(duals.alpha[part], *numbers, duals.p[part], duals.u[part]))
    return found if left is None else (found, left)


def solve_grown(X, kernel, duals, which, **how):
    """The solver of long duals."""
    solve_long(X, kernel, None, duals, which, Settings(**how))


def solve_stacked(X, kernel, duals, which, tol=1e-3):
    """A path of one solved by the stacked solver."""
    return short.solve_short(X, kernel, [duals], which, tol=tol)[0]


def whole(y, C):
    return np.arange(len(y)), y, np.ones(len(y)), np.full(len(y), C)


KERNELS = (
    Kernel("rbf", 0.5),
    Kernel("rbf", 20.0),
    Kernel("linear"),
    Kernel("poly", 0.5, 3, 1.0),
)


@st.composite
def problems(draw):
    """(X, y, C, kernel): overlapping clouds or not, equal rows of opposite labels, one
    row a class, constant inputs.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    y = np.where(rng.random(n) < draw(st.sampled_from([0.1, 0.5])), 1.0, -1.0)
    y[:2] = 1, -1
    X = rng.normal(size=(n, d)) + np.outer(
        y, np.full(d, draw(st.sampled_from([0.0, 0.5, 4.0])))
    )
    kind = draw(st.sampled_from(["plain", "equal rows", "one row", "constant"]))
    if kind == "equal rows":
        X[n // 2 :] = X[: n - n // 2]
    elif kind == "one row":
        y[1:] = -1
    elif kind == "constant":
        X[:, 0] = 3.0
    return X, y, 10.0 ** draw(st.integers(-6, 6)), draw(st.sampled_from(KERNELS))


def scale(K, dual) -> float:
    """Size of the dual's objective terms, against which differences are judged."""
    return max(dual.alpha.sum(), 1e-12)


def noise(K, dual) -> float:
    """What rounding may cost the objective, whose large quadratic terms cancel."""
    return 10 * np.finfo(float).eps * float(dual.alpha @ np.abs(K) @ dual.alpha)


# found by `make fuzz`: K says by 8 digits less how far apart these rows are
NEAR_TWINS = np.array([[5.65634913], [5.65584199]])


@pytest.mark.qp
@pytest.mark.slow
@given(problems())
@settings(max_examples=200, deadline=None)
@example((NEAR_TWINS, np.array([1.0, -1.0]), 1e4, Kernel("poly", 0.5, 3, 1.0)))
def test_smo_batch_and_exact_agree(problem):
    X, y, C, kernel = problem
    K = kernel(X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # judged below
        duals = [
            solve_smo(K, y, C, tol=1e-6),
            *many(solve_grown, X, kernel, [whole(y, C)], tol=1e-6),
        ]
        settled, left = many(solve_stacked, X, kernel, [whole(y, C)], tol=1e-6)
        duals += [] if len(left) else settled
        exact = solve_qp(K, y, C)
    for dual in duals:
        c = certify(K, y, dual)
        assert abs(c.objective - dual.objective) <= 1e-8 * scale(K, dual) + noise(
            K, dual
        )
        assert (dual.alpha >= 0).all(), dual.alpha.min()
        assert (dual.alpha <= C).all(), np.max(dual.alpha - C)
        assert abs(y @ dual.alpha) <= 1e-9 * max(dual.alpha.max(), 1e-300) * len(y)
        least = rounding(K.diagonal(), dual.alpha)
        assert dual.converged == (dual.kkt_violation <= max(1e-6, 4 * least))
        if dual.converged:
            # weak duality bounds both ends: what tol leaves open is at most tol x sum
            # of alpha
            assert abs(dual.objective - exact.objective) <= 1e-5 * scale(
                K, exact
            ) + 1e-9 + noise(K, dual)
    assert (
        all(dual.converged for dual in duals) or C * np.abs(K).max() > 1e6
    )  # rounding of v exceeds tol


def test_alphas_do_not_pass_their_bounds_by_rounding():
    rng = np.random.default_rng(40)
    X, y = rng.normal(size=(30, 1)).round(1), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    [dual] = many(solve_grown, X, Kernel("rbf", 0.5), [whole(y, 1e-4)], tol=1e-6)
    assert dual.alpha.max() == 1e-4


# found by `make fuzz`: nearly all at their bounds, which do not sum to zero
BOUNDED = (
    np.array([[1.304], [0.947], [-0.704], [-1.265], [-0.623], [0.041]]),
    np.array([1.0, -1, 1, 1, -1, -1]),
)


# found by `make fuzz`: a few steps before the end, none lowers the objective beyond its
# rounding
LARGE = np.tile(
    [
        [3.46, 3.68],
        [-3.59, -2.96],
        [3.87, 5.37],
        [3.33, 4.35],
        [-3.10, -3.91],
        [-4.74, -4.92],
        [-4.46, -3.78],
        [-5.01, -4.21],
    ],
    (2, 1),
)
STALLED = LARGE, np.array([1.0, -1, 1, 1, -1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1])


@pytest.mark.qp
@given(problems(), st.floats(1e-9, 1.0))
@example((*BOUNDED, 0.1, Kernel("linear")), 0.99999)
@example((*STALLED, 1e3, Kernel("poly", 0.5, 3, 1.0)), 1.0)
@settings(max_examples=50, deadline=None)
def test_soft_labels_near_zero(problem, least):
    X, y, C, kernel = problem
    C = min(C, 1e3)
    soft = np.linspace(least, 1.0, len(y))
    K, upper = kernel(X, X), C / soft
    dual, exact = (
        solve_smo(K, y, tol=1e-6, linear=soft, upper=upper),
        solve_qp(K, y, linear=soft, upper=upper),
    )
    task = (np.arange(len(y)), y, soft, upper)
    settled, left = many(solve_stacked, X, kernel, [task])
    for found in (
        dual,
        *many(solve_grown, X, kernel, [task], tol=1e-6),
        *([] if len(left) else settled),
    ):
        assert found.converged
        assert abs(found.objective - exact.objective) <= 1e-5 * scale(K, exact) + 1e-9


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("gamma", [0.1, 5.0])
def test_objectives_are_libsvms(C, gamma):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.where(y[50:] == 1, 1.0, -1.0)
    kernel = Kernel("rbf", gamma)
    K = kernel(X, X)
    lib = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K, y)
    beta = np.zeros(len(y))
    beta[lib.support_] = lib.dual_coef_[0]
    theirs = 0.5 * beta @ K @ beta - np.abs(beta).sum()
    found = [solve_smo(K, y, C, tol=1e-6)]
    found += many(solve_grown, X, kernel, [whole(y, C)], tol=1e-6)
    found += many(solve_stacked, X, kernel, [whole(y, C)])[0]
    for dual in found:
        assert abs(dual.objective - theirs) <= 1e-8 * abs(theirs)
        assert abs(dual.bias - lib.intercept_[0]) < 1e-4


def cloud(n: int, seed: int = 0, shift: float = 0.7):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + shift * y[:, None], y


def test_row_order_and_input_precision_do_not_matter():
    X, y = cloud(200)
    kernel, order = Kernel("rbf", 1.0), np.random.default_rng(1).permutation(200)
    plain = solve_smo(kernel(X, X), y, 10.0, tol=1e-8)
    other = solve_smo(kernel(X[order], X[order]), y[order], 10.0, tol=1e-8)
    np.testing.assert_allclose(plain.alpha[order], other.alpha, atol=1e-5)
    single = X.astype(np.float32)
    low = solve_smo(kernel(single, single).astype(np.float32), y, 10.0, tol=1e-4)
    assert low.converged and abs(low.objective - plain.objective) <= 1e-4 * abs(
        plain.objective
    )


def test_a_kernel_that_is_not_positive_semidefinite_ends_with_an_honest_certificate():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(60, 60))
    K = K + K.T
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    dual = solve_smo(K, y, 1.0)
    for found in (dual, *many(solve_grown, K, Kernel("precomputed"), [whole(y, 1.0)])):
        violation = certify(K, y, found).kkt_violation
        assert found.n_iter < 10_000 and found.converged == (violation <= 1e-3)
        assert found.alpha.any() and abs(violation - found.kkt_violation) <= 1e-9


@pytest.mark.qp
@pytest.mark.parametrize("n, seed", [(300, 8), (900, 0)], ids=["short", "long"])
def test_the_bias_of_bounds_alone_is_their_middle(n, seed):
    # both classes' bounds have the same sum up to rounding, and all alphas are at them
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, weights=[0.75], random_state=seed
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = np.random.default_rng(seed).choice([0.1, 1, 10.0], size=n)
    how = dict(C=1e-3, class_weight="balanced", gamma=0.2)
    est = MaxWinsSVC(**how).fit(X, y, weight)
    exact = MaxWinsSVC(solver="qp", **how).fit(X, y, weight)
    assert est.intercept_ == pytest.approx(exact.intercept_, abs=1e-6)
    np.testing.assert_array_equal(est.predict(X), exact.predict(X))


def test_the_certificate_is_that_of_the_alphas_whatever_the_bound():
    wine = load("winequality-white", scaled=True)
    rng = np.random.default_rng(3)
    two = np.isin(wine.y, (6, 8))
    X = np.tile(wine.X[two][:700], (2, 1))
    y = wine.y[two][:700]
    mixed = np.where(rng.random(len(y)) < 0.1, rng.permutation(y), y)
    labels = np.r_[y, mixed]
    K = rbf_kernel(X, gamma=1.0)
    how = dict(kernel="precomputed", C=1e8, tol=1e-5)
    machines = MaxWinsSVC(**how).fit(K, labels).machines_
    assert machines.converged[0]
    beta = np.zeros(len(labels))
    beta[machines.support] = machines.coef.toarray()[0]
    s = np.where(labels == 6, 1.0, -1.0)  # the first class
    v = s - K.astype(np.longdouble) @ beta
    may_rise = beta < np.where(s > 0, 1e8, 0.0)
    may_fall = beta > np.where(s > 0, 0.0, -1e8)
    violation = float(v[may_rise].max() - v[may_fall].min())
    assert violation == pytest.approx(machines.kkt_violation[0], rel=0.2)


def test_a_limit_reached_is_never_silent():
    X, y = cloud(300, shift=0.1)
    kernel = Kernel("rbf", 1.0)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        dual = solve_smo(kernel(X, X), y, 100.0, max_iter=5)
    assert dual.n_iter == 5 and not dual.converged and dual.kkt_violation > 1e-3
    found = many(solve_grown, X, kernel, [whole(y, 100.0)] * 5, max_iter=40)
    assert all(d.n_iter <= 40 and not d.converged for d in found)
    with pytest.warns(ConvergenceWarning, match="3 of 3 machines"):
        train(X, np.arange(300) % 3, pair_code(3), kernel, 100.0, max_iter=40)


@pytest.mark.parametrize("tol", [-1.0, 0.0, np.nan, np.inf])
def test_a_tolerance_that_is_none_is_refused(tol):
    with pytest.raises(ValueError, match="tol must be a positive number"):
        solve_smo(np.eye(2), np.array([1, -1]), tol=tol)


def test_nothing_to_separate():
    for y in (np.ones(4), -np.ones(4), np.ones(1)):
        dual = solve_smo(np.eye(len(y)), y)
        long = many(solve_grown, np.eye(len(y)), Kernel("linear"), [whole(y, 1.0)])
        for found in (
            dual,
            *long,
            *many(solve_stacked, np.eye(len(y)), Kernel("linear"), [whole(y, 1.0)])[0],
        ):
            assert (
                found.converged
                and not found.alpha.any()
                and found.bias == y[0]
                and found.gap == 0.0
            )


# found by `make fuzz`: the plain reference gives up where every row has a twin, two of
# three with the other label
TWINS = np.tile(
    [
        [3.4, 4.0, 1.7],
        [-4.2, -5.2, -4.7],
        [3.5, 3.7, 4.4],
        [5.0, 3.9, 5.4],
        [-4.7, -3.6, -3.1],
    ],
    (2, 1),
)


@pytest.mark.qp
@given(problems(), st.booleans())
@example(
    (
        TWINS,
        np.array([1.0, -1, 1, 1, -1, -1, -1, -1, -1, -1]),
        1e6,
        Kernel("poly", 0.5, 3, 1.0),
    ),
    False,
)
@settings(max_examples=60, deadline=None)
def test_all_solvers_agree_with_the_reference(problem, soft):
    X, y, C, kernel = problem
    C = float(np.clip(C, 1e-3, 10.0))
    p = np.linspace(0.2, 1.0, len(y)) if soft else np.ones(len(y))
    K, u = kernel(X, X), C / p
    plain = y * reference(K.tolist(), y.tolist(), p.tolist(), u.tolist())
    objective = 0.5 * plain @ K @ plain - p @ np.abs(plain)
    task = (np.arange(len(y)), y, p, u)
    stacked, left = many(solve_stacked, X, kernel, [task] * 5)
    found = [
        solve_smo(K, y, tol=1e-6, linear=p, upper=u),
        solve_qp(K, y, linear=p, upper=u),
    ]
    found += [
        *many(solve_grown, X, kernel, [task] * 5, tol=1e-6),
        *([] if len(left) else stacked),
    ]
    slack = 1e-5 * max(np.abs(plain).sum(), abs(objective), 1e-3)
    for dual in found:  # as good as the reference, or better and proved
        assert dual.objective <= objective + slack
        assert dual.objective >= objective - slack or dual.gap <= slack


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.5), Kernel("poly", 0.05, 3, 1.0)])
def test_long_active_sets_step_on_shared_kernel_rows(kernel, soft):
    X, digits = load_digits(return_X_y=True)
    X = X[:900] / 16.0
    tasks = []
    for t in range(10):
        y = np.where(digits[:900] == t, 1.0, -1.0)
        soft_y = np.where((np.arange(900) + t) % 9, 0.9 * y, 0.0)
        rows = np.flatnonzero(soft_y) if soft else np.arange(900)
        size = np.abs(soft_y[rows]) if soft else np.ones(900)
        tasks.append((rows, y[rows], size, 5.0 / size))
    stacked = many(solve_grown, X, kernel, tasks, tol=1e-6)
    for cache_size in (2000.0, 5.0):  # all that is cut is kept, or hardly anything
        how = {"tol": 1e-6, "cache_size": cache_size, "alone": 20}
        found = many(solve_grown, X, kernel, tasks, **how)
        assert sum(d.n_iter for d in found) != sum(d.n_iter for d in stacked)
        for dual, one in zip(found, stacked, strict=True):
            assert dual.converged and dual.kkt_violation <= 1e-6
            assert dual.objective == pytest.approx(one.objective, rel=1e-7)


@pytest.mark.qp
def test_stacked_duals_are_exact_and_say_what_they_could_not_settle():
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(120, 3)), Kernel("rbf", 0.5)
    tasks = []
    for n in (2, 7, 30, 80, 120):
        rows = np.sort(rng.choice(120, n, replace=False))
        y = np.where(X[rows, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
        y[:2] = 1, -1
        tasks.append((rows, y, np.ones(n), np.full(n, 10.0 ** rng.integers(-1, 3))))
    found, left = many(solve_stacked, X, kernel, tasks)
    assert len(left) == 0
    for dual, (rows, y, _, u) in zip(found, tasks, strict=True):
        K = kernel(X[rows], X[rows])
        assert dual.objective == pytest.approx(
            solve_qp(K, y, upper=u).objective, rel=1e-9
        )
        assert certify(K, y, dual).kkt_violation <= 1e-9 and dual.kkt_violation <= 1e-9
    twins = np.repeat(
        X[:20], 2, axis=0
    )  # equal rows with opposite labels: a singular system
    y = np.tile([1.0, -1.0], 20)
    bank = train(twins, (y < 0).astype(int), pair_code(2), kernel, 10.0)
    assert bank.objective[0] == pytest.approx(
        solve_qp(kernel(twins, twins), y, 10.0).objective, rel=1e-9
    )


@pytest.mark.parametrize("long", [False, True])
def test_larger_bounds_follow_from_smaller_ones(long):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(90, 3)), np.arange(90) % 3
    X[codes == 2] += (
        5.0  # apart from the others: at a large C, none of its alphas is at the bound
    )
    Cs, kernel = [0.01, 10.0, 300.0, 1e5, 1e6], Kernel("rbf", 0.5)
    # a machine whose steps are limited is solved as a long one, however short
    how = {"max_iter": 10**7} if long else {}
    (path,) = train_grid(X, codes, pair_code(3), [kernel], Cs, **how)
    for C, bank in zip(Cs, path, strict=True):
        alone = train(X, codes, pair_code(3), kernel, C, **how)
        np.testing.assert_array_equal(bank.C, C)
        assert bank.converged.all(), bank.kkt_violation.max()
        np.testing.assert_allclose(
            bank.objective, alone.objective, rtol=1e-4 if long else 1e-10
        )
        if not long:
            np.testing.assert_array_equal(bank.n_support, alone.n_support)
            np.testing.assert_allclose(
                bank.coef.toarray(), alone.coef.toarray(), rtol=1e-6, atol=1e-9
            )
    full = [abs(bank.coef[1]).max() for bank in path]
    assert full[0] == 0.01 and full[1] < 10.0
    for bank in path[2:]:  # what no bound holds stays, to the bit
        np.testing.assert_array_equal(bank.coef[1].data, path[1].coef[1].data)
        assert bank.n_iter[1] == path[1].n_iter[1]
