"""The conformal DAG: its guarantee by simulation, its graph against a plain walk, its folds and ranges by hand."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dagsvm_lab import DAGSVC, ConformalDAGSVC, load
from dagsvm_lab.graphs import GraphTooLarge, leads
from dagsvm_lab.kernels import Kernel
from dagsvm_lab.machines import pair_code, train
from dagsvm_lab.systems.glance import RIDGE, SAFE, bound_of, drawn, loses
from dagsvm_lab.systems.plan import FEWEST, ODD, Plan, outside, parts_of, ranges, words

SETTINGS = dict(C=8, gamma=1.0)


@pytest.fixture(scope="module")
def segments():
    d = load("segment")
    low, high = d.X.min(axis=0), d.X.max(axis=0)
    X = 2 * (d.X - low) / np.where(high > low, high - low, 1) - 1
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], d.y[order]


@pytest.fixture(scope="module")
def fitted(segments):
    X, y = segments
    return ConformalDAGSVC(**SETTINGS).fit(X[:700], y[:700])


def test_parts_are_blocks_of_each_class_in_order():
    codes = np.array([0, 1, 0, 1, 0, 0, 2, 1, 0, 0])
    usable = np.array([True] * 9 + [False])
    assert parts_of(codes, usable, 3).tolist() == [0, 0, 0, 1, 1, 1, -1, 2, 2, -1]


def test_tails_by_hand():
    f, codes = np.array([[0.0], [2.0], [-3.0], [9.0], [4.0]]), np.array([0, 0, 1, 1, 2])
    low, high, below, above = ranges(f, codes, np.array([True, True, False]))[:, 0]
    mean, lean = (2 * 2.0 + 2 * 12.0) / 4, 3 * FEWEST  # of the spreads 2 and 12 of the outermost row, a row one vote
    shrunk = np.array([(2 * 2 + mean * lean) / (2 + lean), (2 * 12 + mean * lean) / (2 + lean), mean])
    assert below == pytest.approx(shrunk) and above == pytest.approx(shrunk)
    shift = np.log(2) * shrunk
    assert low == pytest.approx([0 + shift[0], -3 + shift[1], -np.inf])
    assert high == pytest.approx([2 - shift[0], 9 - shift[1], np.inf])
    d = outside(np.array([5.0]), np.array([low, high, below, above]))[0]
    assert d == pytest.approx([np.log(2) + 3 / shrunk[0], np.log(2) - 4 / shrunk[1], -np.inf])


def test_as_far_out_with_chance_e_to_minus_d():
    f, new = np.random.default_rng(1).laplace(size=(2, 2_000, 100))
    d = outside(new, ranges(f, np.zeros(2_000, int), np.array([True])))[..., 0]
    for w in (3, 4):
        share = ((d > w) & (new > 0)).mean(axis=0)  # the outermost row of 2,000 is where chance has put it
        assert 0.5 < np.median(share) / np.exp(-w) < 2


def test_a_spread_is_that_of_the_outer_tenth():
    tail = np.random.default_rng(0).exponential(size=20_000)
    f = np.concatenate([-2 * tail, 5 + tail])[:, None]
    _, _, below, above = ranges(f, np.repeat([0, 1], 20_000), np.array([True, True]))[:, 0]
    assert below[0] == pytest.approx(2, rel=0.05) and above[1] == pytest.approx(1, rel=0.05)


def test_sets_are_bits_of_words():
    sets = np.random.default_rng(0).random((5, 130)) < 0.5
    packed = words(sets)
    assert packed.shape == (3, 5)
    for k in range(5):
        number = int.from_bytes(np.ascontiguousarray(packed[:, k]).tobytes(), "little")
        assert [c for c in range(192) if number >> c & 1] == np.flatnonzero(sets[k]).tolist()


def test_outputs_are_held_out(segments, fitted):
    X, y = segments
    X, codes = X[:700], np.unique(y[:700], return_inverse=True)[1]
    part = parts_of(codes, np.ones(700, dtype=bool), 5)
    f = np.zeros((700, 21))
    for k in range(5):
        f[part == k] = train(X[part != k], codes[part != k], pair_code(7), Kernel("rbf", 1.0), 8.0).decision(
            X[part == k]
        )
    assert np.allclose(ranges(f, codes, np.ones(7, dtype=bool)), fitted.ranges_, atol=1e-3)


def plain(est, f, plan):
    """Class, machines, glances and luck of one row, said plainly: only the choice of machines is the plan's."""
    n, pairs = len(est.classes_), list(zip(*np.triu_indices(len(est.classes_), 1), strict=True))
    left, odd, struck, asked, reopened = set(range(n)), set(), set(), set(), False
    for k, (_, bound) in enumerate(est.glances_):
        g = f[len(pairs) + k * n : len(pairs) + (k + 1) * n]
        left = {c for c in range(n) if max(g) - g[c] <= bound}
        struck = set(range(n)) - left
        asked.add(len(pairs) + k)
        if len(left) == 1:
            break
    while len(left) > 1:
        out = set(range(64)) if reopened else struck
        state = words(np.array([[c in part for c in range(64)] for part in (left, odd, out)])).T
        t = plan.ask((state.tobytes(), tuple(sorted(asked))))
        asked.add(t)
        if set(pairs[t]) <= left:
            left.remove(pairs[t][1] if f[t] >= 0 else pairs[t][0])
        if reopened:
            continue
        low, high, below, above = est.ranges_[:, t]
        d = np.maximum((low - f[t]) / below, (f[t] - high) / above)
        far = {c for c in left if d[c] > est.level_}
        odd = {c for c in odd | set(np.flatnonzero(d > min(est.level_, ODD)).tolist()) if c in left - far}
        left, struck = left - far, struck | far
        if not left or (len(left) == 1 and odd and struck):
            left, odd, reopened = left | struck, set(), True
    met = [t for t in asked if t < len(pairs)]
    for k in range(sum(t >= len(pairs) for t in asked)):
        met += range(len(pairs) + k * n, len(pairs) + (k + 1) * n)
    return left.pop(), sorted(met), reopened


@pytest.mark.parametrize("glances", [True, False])
def test_graph_is_the_plain_walk(segments, glances):
    X, y = segments
    est = ConformalDAGSVC(glances=glances, **SETTINGS).fit(X[:700], y[:700])
    assert bool(len(est.glances_)) == glances
    X = X[700:1000]
    f, plan = est.asked_.decision(X), est._plan(est.level_, est.settled_)
    labels, cost = est.predict_with_cost(X)
    paths = est.decision_path(X)
    uses = np.abs(est.asked_.coef.toarray()) > 0
    again = 0
    for k in range(len(X)):
        answer, asked, reopened = plain(est, f[k], plan)
        again += reopened
        assert est.classes_[answer] == labels[k]
        assert asked == sorted(paths[[k]].indices)
        assert cost.binary_decisions[k] == len(asked)
        assert cost.kernel_evaluations[k] == uses[asked].any(axis=0).sum()
    assert again < 100


def test_short_machines_are_logistic_regressions(segments, fitted):
    X, y = segments
    q, codes = int(fitted.glances_[-1, 0]), np.searchsorted(fitted.classes_, y[:700])
    at = fitted.glance_support_[:q]
    k = Kernel("rbf", 1.0)(X[:700], fitted.machines_.vectors[at])
    spread = np.sqrt(k.var(axis=0).mean())
    n = len(fitted.classes_)
    f = fitted.asked_.decision(X[:700])[:, -n:]
    for c in range(n):
        theirs = LogisticRegression(C=1 / RIDGE, tol=1e-10, max_iter=10_000).fit(
            (k - k.mean(axis=0)) / spread, codes == c
        )
        g = theirs.decision_function((k - k.mean(axis=0)) / spread)
        assert np.abs(f[:, c] - g).max() < 1e-3 * np.abs(g).max()


def test_a_glance_keeps_what_held_out_rows_need():
    own = np.array([0.0, 0.0, 0.5, 3.0, 0.2, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert bound_of(own, 0.0) == SAFE[0] * 3.0 + SAFE[1] and bound_of(own, 0.1) == SAFE[0] * 1.0 + SAFE[1]
    before = np.ones(3000, bool)
    right = before.copy()
    right[:3] = False
    assert not loses(right, before) and loses(right, before, share=0.0)
    right[:4] = False
    assert loses(right, before) and not loses(right, before, ease=4)


def test_a_class_of_few_rows_is_left_by_every_glance():
    g = np.array([[9.0, 0.0, -9.0]])
    assert leads(g, np.array([True, True, False])).tolist() == [[0.0, 9.0, -np.inf]]


def test_each_support_vector_of_a_glance_explains_most_of_what_is_left():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    X[codes == 1] += 2
    bank = train(X, codes, pair_code(3), Kernel("rbf", 0.5), 1.0)
    found = drawn(bank, X, codes, 4)
    K, Y = Kernel("rbf", 0.5)(X, bank.vectors), np.eye(3)[codes]
    K, Y = K - K.mean(axis=0), (Y - Y.mean(axis=0)) / np.sqrt(Y.mean(axis=0))
    eye, ridge = np.eye(60), 1e-3 * (K**2).sum(axis=0).mean()
    proj = eye
    for k in found:
        gain = [
            np.linalg.norm(Y.T @ proj @ K[:, c]) ** 2 / (np.linalg.norm(proj @ K[:, c]) ** 2 + ridge)
            for c in range(len(bank.support))
        ]
        assert gain[k] == pytest.approx(
            max(g for c, g in enumerate(gain) if c not in found[: list(found).index(k)]), rel=0.02
        )
        v = proj @ K[:, k]
        proj = proj - np.outer(v, v) / (v @ v + ridge)


def test_it_is_cheaper_than_the_dag_and_as_accurate(segments, fitted):
    X, y = segments
    dag = DAGSVC(**SETTINGS).fit_over(fitted.machines_, X[:700], y[:700])
    labels, cost = fitted.predict_with_cost(X[700:])
    theirs, dearer = dag.predict_with_cost(X[700:])
    assert cost.kernel_evaluations.mean() < 0.5 * dearer.kernel_evaluations.mean()
    assert abs((labels == y[700:]).mean() - (theirs == y[700:]).mean()) < 0.01


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3])
def test_theorem_by_simulation(segments, fitted, alpha):
    X, y = segments
    scores = fitted.doubts(X[700:])
    own = np.searchsorted(fitted.classes_, y[700:])
    rng, hits, n, new = np.random.default_rng(1), [], 99, 200
    sets_seen = []
    for _ in range(300):
        rows = rng.choice(len(own), n + new, replace=False)
        est = fitted._variant(calibration_=np.sort(scores[rows[:n], own[rows[:n]]]))
        q = est.threshold(alpha)
        hits.append((scores[rows[n:], own[rows[n:]]] <= q).mean())
        sets_seen.append(q)
    assert np.mean(hits) >= 1 - alpha - 3 * np.std(hits) / np.sqrt(300)


def test_sets_hold_the_answer_and_shrink_with_alpha(segments, fitted):
    X, y = segments
    est = fitted.calibrate(X[700:900], y[700:900])
    assert np.array_equal(est.predict(X[900:]), fitted.predict(X[900:])) and len(est.calibration_) == 200
    before = np.ones((len(X) - 900, 7), dtype=bool)
    for alpha in (0.001, 0.01, 0.05, 0.3):
        sets = est.predict_set(X[900:], alpha)
        assert (sets <= before).all()
        assert sets[np.arange(len(sets)), np.searchsorted(est.classes_, est.predict(X[900:]))].all()
        before = sets
    assert est.predict_set(X[900:], 0.001).all()  # 200 rows cannot promise one in a thousand
    assert np.array_equal(est.predict_set(X[900:]), est.predict_set(X[900:], est.alpha))
    strange = est.calibrate(X[700:900], np.full(200, -7))
    assert strange.predict_set(X[900:]).all()  # every label is unknown, so nothing can be ruled out


def test_few_rows_and_two_classes_are_the_ddag(segments):
    X, y = segments
    few = np.concatenate([np.flatnonzero(y == c)[: FEWEST - 1] for c in np.unique(y)])
    two = np.isin(y[:700], np.unique(y)[:2])
    for rows in (few, np.flatnonzero(two)):
        est, dag = ConformalDAGSVC(**SETTINGS).fit(X[rows], y[rows]), DAGSVC(**SETTINGS).fit(X[rows], y[rows])
        assert np.isnan(est.level_)
        assert (est.predict(X) == dag.predict(X)).all()
        assert est.predict_set(X[:20]).all()


def test_a_class_of_one_row(segments):
    X, y = segments
    rows = np.concatenate([np.flatnonzero(y == c)[: 40 if k else 1] for k, c in enumerate(np.unique(y))])
    est = ConformalDAGSVC(**SETTINGS).fit(X[rows], y[rows])
    assert not np.isfinite(est.ranges_[:2, :, 0]).any()
    assert est.predict(X[rows])[0] == y[rows][0]


def test_copies_give_the_same_answers(segments, fitted, tmp_path):
    X, y = segments
    fitted.save(tmp_path / "model.npz")
    copies = [ConformalDAGSVC.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(fitted))]
    copies.append(ConformalDAGSVC(**SETTINGS).fit_over(fitted.machines_, X[:700], y[:700]))
    for est in copies:
        assert np.array_equal(est.decision_function(X), fitted.decision_function(X))
        assert np.array_equal(est.predict_set(X, 0.02), fitted.predict_set(X, 0.02))
        assert (est.decision_path(X) != fitted.decision_path(X)).nnz == 0


def test_one_row_is_answered_as_in_a_batch(segments, fitted):
    X, _ = segments
    assert [fitted.predict(x[None])[0] for x in X[700:800]] == fitted.predict(X[700:800]).tolist()


def test_a_graph_that_outgrows_its_limit_starts_anew(segments, fitted):
    X, _ = segments
    est = fitted._variant()
    for ask in (est.predict, est.decision_function, est.doubts, est.predict_with_cost):
        est.graph_ = est._make_graph()
        small, est.graph_.max_nodes = est.graph_, 40
        found, whole = ask(X), getattr(fitted, ask.__name__)(X)
        assert est.graph_ is not small
        assert np.array_equal(found[0], whole[0]) if isinstance(found, tuple) else np.array_equal(found, whole)
    est.graph_ = est._make_graph()
    small, est.graph_.max_nodes = est.graph_, 1
    assert est.predict(X[:1]) == fitted.predict(X[:1]) and est.graph_ is not small  # a row alone, too
    est.graph_ = est._make_graph()
    est.graph_.max_nodes = 1
    est._make_graph = lambda: est.graph_
    with pytest.raises(GraphTooLarge):
        est.predict(X[:8])


def test_precomputed_kernel(segments, fitted):
    X, y = segments
    kernel = Kernel("rbf", 1.0)
    est = ConformalDAGSVC(C=8, kernel="precomputed").fit(kernel(X[:700], X[:700]), y[:700])
    assert est.level_ == fitted.level_
    assert (est.predict(kernel(X[700:], X[:700])) == fitted.predict(X[700:])).mean() > 0.995


def test_loss_sets_how_bold_it_is(segments, fitted):
    X, y = segments
    both = [
        ConformalDAGSVC(loss=share, lookahead=1, **SETTINGS).fit_over(fitted.machines_, X[:700], y[:700])
        for share in (0, 1)
    ]
    assert both[0].level_ >= both[1].level_
    cost = [e.predict_with_cost(X[700:])[1].kernel_evaluations.mean() for e in both]
    assert cost[0] >= 0.95 * cost[1]


def test_a_plan_for_more_classes_than_a_word_has_bits():
    n, rng = 66, np.random.default_rng(0)
    i, j = np.triu_indices(n, 1)
    codes = np.repeat(np.arange(n), 10)
    f = rng.normal(size=(len(codes), len(i))) / 10 + (codes[:, None] == i) - (codes[:, None] == j)
    uses = rng.random((len(i), 200)) < 0.05
    plan = Plan(ranges(f, codes, np.ones(n, dtype=bool)), 8.0, f[::5], codes[::5], uses, {})
    rows = np.array([0, 333, 655])
    root = plan.start(np.ones(n, dtype=bool), 0)
    ends = plan.walk(rows, lambda rows, t: plan.strikes(f[rows, t], plan.edges[:, t]), [root], np.zeros(3, int))
    labels, paths, _ = plan.graph([]).run(f[rows])
    assert [plan.members(s) for s in ends] == [[k] for k in labels] == [[c] for c in codes[rows]]
    assert [list(s[1]) for s in ends] == [sorted(paths[[k]].indices) for k in range(3)]
    assert plan.costs(ends).tolist() == [uses[list(s[1])].any(axis=0).sum() for s in ends]
