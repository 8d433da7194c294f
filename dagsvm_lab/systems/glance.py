"""A glance: a few kernel values, read once for all classes, that say of most of them that a row is not theirs.

Beside the bank stand short machines, one a class against the rest, over the same q support vectors. Over their kernel
values z, centred and divided by their common spread, machine l is a logistic regression,

    minimise  sum_i log(1 + exp(-y_i g_l(x_i))) + RIDGE / 2 |w|^2,    g_l(x) = w.z + b,    y_i = +-1,

solved by Newton's method (Hosmer and Lemeshow 1989, section 2.2), so that g_l is the log odds of class l. How far it
stands behind the best is lead_l(x) = max_k g_k(x) - g_l(x). Classes further behind than a bound are struck off. A
second glance, over more support vectors, is for rows of which the first leaves several classes; then it alone counts.
Bounds come from rows that the short machines have not seen, with SAFE to spare: few right answers may be lost.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix, vstack
from scipy.special import expit

from ..graphs import costs, leads
from ..machines import STATS, Bank, pair_index, rest_code
from .classifier import Sample
from .held import Held

RIDGE = 0.1  # weight of |w|^2
SIZES = (8, 16, 32, 64, 128)  # support vectors of a glance
WORK = 1e10  # machines x rows x q^2: glances beyond are not tried
DRAWN = 1000, 600  # rows and support vectors, at most, among which a glance's are found
HUGE = 1e100  # kernel values out of 1 / HUGE to HUGE are left to the machines
FAINT = 3e-4  # of the largest weight: rows below it have no say in the direction of a Newton step
STEPS, SOLVED = 30, 1e-9  # Newton steps at most; what the loss may still fall at the end, over itself
SHARES = 0.004, 0.002, 0.001, 0.0005, 0.00025, 0.0  # of the rows, whose right answers glances may take
SAFE = 1.5, 1.0  # times what held-out rows need, and nats more; at 1.25 Optdigits loses 6 rows of 1,797 and wins none
NEGLIGIBLE = 1000  # one row lost in so many does not count


def drawn(bank: Bank, X, codes: np.ndarray, most: int) -> np.ndarray:
    """The support vectors that glances read, best first, as places in `bank.support`.

    Each is the one whose kernel values, beside those of the ones before, explain most of which class a row is of
    (orthogonal matching pursuit: Pati, Rezaiifar and Krishnaprasad 1993). None, if these are out of range.
    """
    rng = np.random.default_rng(0)
    rows, some = (rng.permutation(m)[:most] for m, most in zip((len(codes), len(bank.support)), DRAWN, strict=True))
    K, Y = values(bank, some, X[rows]), np.eye(bank.code.shape[1])[codes[rows]]
    K, Y = K - K.mean(axis=0), (Y - Y.mean(axis=0)) / np.sqrt(Y.mean(axis=0) + 1e-9)
    if not 1 / HUGE < np.abs(K).max(initial=0.0) < HUGE:  # they say nothing, or their squares would not be numbers
        return some[:0]
    ridge, found = 1e-3 * (K**2).sum(axis=0).mean(), []
    for _ in range(min(most, len(some))):
        size = (K**2).sum(axis=0) + ridge
        score = ((K.T @ Y) ** 2).sum(axis=1) / size
        score[found] = -1.0
        k = int(score.argmax())
        found.append(k)
        own = K[:, k].copy()
        K -= np.outer(own, own @ K / size[k])
        Y -= np.outer(own, own @ Y / size[k])
    return some[found]


def values(bank: Bank, support: np.ndarray, X) -> np.ndarray:
    """Kernel values of rows of X with some of the bank's support vectors."""
    if bank.vectors is None or not len(support):
        return X[:, bank.support[support]]
    return bank.kernel(X, bank.vectors[support])


def regressions(k: np.ndarray, sample: Sample, parts: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (classes x q) and constants of the classes' logistic regressions over kernel values k (rows x q).

    First those of all rows, then those without each part; these start where the first have ended.
    """
    codes, mass, n = sample.codes, sample.mass, sample.n_classes
    mean = mass @ k / mass.sum()
    spread = np.sqrt((mass @ (k - mean) ** 2).mean() / mass.sum()) + 1e-300
    z = np.column_stack([(k - mean) / spread, np.ones(len(k))])

    def fitted(fit: np.ndarray, start: np.ndarray) -> np.ndarray:
        share = mass[fit] / mass[fit].mean()
        return np.stack([_newton(z[fit], codes[fit] == c, share, start[c]) for c in range(n)])

    every = np.arange(len(k))
    whole = fitted(every, np.zeros((n, z.shape[1])))
    found = [whole, *(fitted(np.delete(every, part), whole) for part in parts)]
    return [(w[:, :-1] / spread, w[:, -1] - w[:, :-1] @ mean / spread) for w in found]


def _newton(z: np.ndarray, y: np.ndarray, mass: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The weights, the constant last, of one logistic regression."""
    ridge = np.append(np.full(len(w) - 1, RIDGE), 1e-6)

    def loss(w: np.ndarray, g: np.ndarray) -> float:
        return mass @ (np.logaddexp(0, g) - y * g) + ridge @ w**2 / 2

    g = z @ w
    value = loss(w, g)
    for _ in range(STEPS):
        p = expit(g)
        slope, weight = z.T @ (mass * (p - y)) + ridge * w, mass * p * (1 - p)
        near = np.flatnonzero(weight > FAINT * weight.max())
        step = np.linalg.solve((z[near] * weight[near, None]).T @ z[near] + np.diag(ridge), slope)
        fall, ahead = slope @ step, z @ step
        while (new := loss(w - step, g - ahead)) > value and fall > SOLVED * value:
            step, fall, ahead = step / 2, fall / 2, ahead / 2
        w, g, value = w - step, g - ahead, new
        if fall <= SOLVED * value:
            break
    return w


def short_machines(bank: Bank, sample: Sample, rows: np.ndarray, part: np.ndarray, known: np.ndarray) -> tuple:
    """The support vectors that glances may read, short machines of every size, and their leads on the held-out rows.

    Rows are held out in their `part`, 0, 1 and so on; the support vectors are the same for all.
    """
    n = sample.n_classes
    possible = [q for q in SIZES if 2 * q <= len(bank.support) and n * bank.n_rows * q * q <= WORK]
    at = drawn(bank, sample.X, sample.codes, max(possible, default=0))
    possible = [q for q in possible if q <= len(at)]
    read, short, g = values(bank, at, sample.X), {}, {q: np.zeros((len(rows), n)) for q in possible}
    parts = [rows[part == k] for k in range(part.max() + 1)]
    for q in possible:
        short[q], *others = regressions(read[:, :q], sample, parts)
        for k, (weights, constants) in enumerate(others):
            g[q][part == k] = read[parts[k], :q] @ weights.T + constants
    return at, short, {q: leads(odds, known) for q, odds in g.items()}


def bound_of(own: np.ndarray, share: float) -> float:
    """The lead beyond which a glance takes less than a share of the rows' right answers; `own` is 0 for others."""
    return float(SAFE[0] * np.sort(own)[-1 - int(share * len(own))] + SAFE[1])


def loses(right: np.ndarray, before: np.ndarray, share: float = 1.0, ease: float = 1.0) -> bool:
    """Whether too many right answers are lost, of those that were right before.

    Too many are two more than a share of the rows; or, beyond those that are won, one row, or one in NEGLIGIBLE.
    """
    lost, won = int((before & ~right).sum()), int((right & ~before).sum())
    return lost > share * len(right) + 2 or lost - won > ease * max(1, len(right) / NEGLIGIBLE)


def choose(held: Held, lead: dict[int, np.ndarray], bank: Bank, at: np.ndarray, share: float) -> tuple:
    """The sizes and bounds of the glances with which the DDAG needs fewest kernel values; none if that is cheapest.

    `lead` holds for each size the leads of the held-out rows. Glances after which the DDAG loses rows do not count.
    """
    own = {q: np.where(held.right, every[np.arange(len(every)), held.codes], 0.0) for q, every in lead.items()}
    order, uses = list(lead), with_marks(bank, at, list(lead))
    _, asked = _asked(held.look([], lead), [], uses.shape[0])
    best, least = (), costs(asked, uses).kernel_evaluations.mean()
    for sizes in [*((q,) for q in lead), *((p, q) for p in lead for q in lead if p < q <= 8 * p)]:
        for bold in SHARES:
            chain = tuple((q, bound_of(own[q], bold / len(sizes))) for q in sizes)
            labels, asked = _asked(held.look(chain, lead), [order.index(q) for q in sizes], uses.shape[0])
            if not loses(labels == held.codes, held.right, share):
                cost = costs(asked, uses).kernel_evaluations.mean()
                if cost < least:
                    best, least = chain, cost
                break
    return best


def with_marks(bank: Bank, at: np.ndarray, sizes: list[int]) -> csr_matrix:
    """The support vectors of each machine, then of glances that read the first of `at`."""
    marks = [csr_matrix((np.ones(q, bool), (np.zeros(q, int), at[:q])), shape=(1, len(bank.support))) for q in sizes]
    return vstack([bank.coef.astype(bool), *marks], format="csr")


def _asked(held: Held, glances: list[int], n_asked: int) -> tuple[np.ndarray, csr_matrix]:
    """The DDAG's answers among the classes left, and the machines, then the glances, that rows meet."""
    f, left, n, rows = held.f, held.left, held.left.shape[1], np.arange(len(held.f))
    asked = np.zeros((len(f), n_asked), bool)
    for k, glance in enumerate(glances, start=1):
        asked[:, f.shape[1] + glance] = held.taken >= k
    after = np.minimum.accumulate(np.where(left, np.arange(n), n)[:, ::-1], axis=1)[:, ::-1]
    before = np.maximum.accumulate(np.where(left, np.arange(n), -1), axis=1)
    i, j = after[:, 0].copy(), before[:, -1].copy()
    while (rows := rows[i[rows] < j[rows]]).size:
        t = pair_index(i[rows], j[rows], n)
        asked[rows, t], no = True, f[rows, t] < 0
        i[rows[no]], j[rows[~no]] = after[rows[no], i[rows[no]] + 1], before[rows[~no], j[rows[~no]] - 1]
    return i, csr_matrix(asked)


def with_short_machines(bank: Bank, at: np.ndarray, sizes: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> Bank:
    """The bank, and after its machines the short ones of glances of these sizes, which read the first of `at`."""
    n, shape = bank.code.shape[1], (bank.code.shape[1], len(bank.support))
    parts = [(w[:, :q].ravel(), np.tile(at[:q], n), np.arange(n + 1) * q) for q, w in zip(sizes, weights, strict=True)]
    coef = vstack([bank.coef, *(csr_matrix(part, shape=shape) for part in parts)], format="csr")
    none = {name: np.zeros(bias.size, getattr(bank, name).dtype) for name in ("C", *STATS[1:])}
    more = {name: np.concatenate([getattr(bank, name), zeros]) for name, zeros in none.items()}
    code = np.concatenate([bank.code, *[rest_code(n)] * len(parts)])
    return replace(bank, coef=coef, bias=np.concatenate([bank.bias, *bias]), code=code, **more)
