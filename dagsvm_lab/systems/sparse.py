"""A sparse multinomial logistic regression that rejects classes: the filter.

Over the kernel values of a row with a few shared support vectors S, q of them,

    g(x) = W' z(x) + b,      z(x) = R^-T (k(S, x) - mean),                       (1)

with R'R the covariance of k(S, x) on training rows, so that z is white, and (W, b)
minimises

    sum_i -log softmax(g(x_i))_{y_i} + RIDGE m / 2 |W|^2     over m rows.        (2)

A class stands `lead` behind the best: lead_l(x) = max_k g_k(x) - g_l(x), log odds. The
filter rejects the classes whose lead is above a bound (Eq. 3, at `lead_bound`).

S is found by orthogonal matching pursuit of the class indicators (Pati, Rezaiifar and
Krishnaprasad 1993): each next support vector explains most of what those before have
left. Kernel matching pursuit (Vincent and Bengio 2002) chooses kernel functions in this
way; the import vector machine (Zhu and Hastie 2005) is a kernel logistic regression
over few rows, chosen by its loss.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from ..bank import STATS, Bank
from ..machines import rest_code

DRAWN_ROWS = 600  # among which matching pursuit looks; 1,000 chooses no better
DRAWN_VECTORS = 300  # support vectors among which it chooses
RIDGE = 1e-3  # per row; 1e-4 costs USPS and Letter a quarter more evaluations
LBFGS_STEPS = 60  # at most, in Eq. 2
KERNEL_RANGE = 1e100  # filters are not tried on kernel values above, or below 1 over it


def matching_pursuit(K: np.ndarray, codes: np.ndarray, n_vectors: int) -> np.ndarray:
    """Columns of K (rows, vectors) that explain the classes of its rows, best first."""
    target = _targets(codes)
    K = K - K.mean(axis=0)
    # of each column, what is not explained yet: its squared length, (vectors,), and
    # its products with the target, (vectors, classes)
    size = (K**2).sum(axis=0)
    match = K.T @ target
    floor = 1e-3 * size.mean()  # a column that is used up explains nothing
    n_found = min(n_vectors, K.shape[1])
    basis = np.zeros((n_found, len(K)))  # orthonormal rows: what each column adds
    found: list[int] = []
    for new in basis:
        gain = (match**2).sum(axis=1) / (size + floor)
        gain[found] = -1.0
        k = int(gain.argmax())
        column = K[:, k]
        before = basis[: len(found)]
        new[:] = column - (before @ column) @ before
        length = np.sqrt(new @ new + floor)
        new /= length
        along = new @ K
        match -= np.outer(along, match[k] / length)
        size -= along**2
        found.append(k)
    return np.array(found, dtype=int)


def _targets(codes: np.ndarray) -> np.ndarray:
    """The class indicators, centred; a rare class counts as much as a frequent one.

    Returned as (rows, classes).
    """
    n_classes = codes.max() + 1
    indicators = np.eye(n_classes)[codes]
    prior = indicators.mean(axis=0)
    return (indicators - prior) / np.sqrt(prior + 1e-9)


@dataclass(frozen=True)
class White:
    """White coordinates z of kernel values (rows, q), nested: fewer values, fewer z."""

    mean: np.ndarray  # (q,)
    root: np.ndarray  # (q, q), upper triangular, root' root = covariance

    @classmethod
    def of(cls, K: np.ndarray) -> "White":
        """The coordinates in which the rows of K are white."""
        mean = K.mean(axis=0)
        covariance = (K - mean).T @ (K - mean) / len(K)
        diagonal = np.diag_indices_from(covariance)
        # so that columns which say the same have a Cholesky factor, too
        ridge = 1e-6 * covariance[diagonal].mean()
        covariance[diagonal] += ridge
        return cls(mean, cholesky(covariance))

    def __call__(self, K: np.ndarray) -> np.ndarray:
        """z of each row and a one for the constant: (q + 1, rows), float32."""
        q = K.shape[1]
        R = self.root[:q, :q]
        centred = K - self.mean[:q]
        z = solve_triangular(R, centred.T, trans="T")
        constant = np.ones(len(K))
        return np.vstack([z, constant]).astype(np.float32)

    def unfolded(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W (classes, q), b) over the kernel values, from weights (q + 1, classes)."""
        q = len(weights) - 1
        R = self.root[:q, :q]
        W = solve_triangular(R, weights[:-1]).T
        b = weights[-1] - W @ self.mean[:q]
        return W, b


def multinomial(
    z: np.ndarray, codes: np.ndarray, row_weight: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """The weights (q + 1, classes) that minimise Eq. 2 on rows z (q + 1, rows).

    `start`, weights of as many or fewer coordinates, the constant last, is where the
    search begins.
    """
    m = len(codes)
    shape = (len(z), start.shape[1])
    own = codes, np.arange(m)  # each row's own class, in (classes, rows)
    share = (row_weight / row_weight.mean()).astype(np.float32)
    ridge = np.full((len(z), 1), RIDGE * m, np.float32)
    ridge[-1] = 0.0  # the constant is free

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Eq. 2 and its gradient; one array is g, exp g and the probabilities."""
        W = flat.reshape(shape).astype(np.float32)
        p = W.T @ z  # (classes, rows)
        p -= p.max(axis=0)
        own_g = p[own]
        np.exp(p, out=p)
        total = p.sum(axis=0)
        misfit = share @ (np.log(total) - own_g)
        penalty = 0.5 * (ridge * W**2).sum()
        p *= share / total
        p[own] -= share
        gradient = z @ p.T + ridge * W
        return float(misfit + penalty), gradient.ravel().astype(float)

    first = np.zeros(shape)
    first[: len(start) - 1] = start[:-1]
    first[-1] = start[-1]
    found = minimize(
        loss,
        first.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": LBFGS_STEPS},
    )
    return found.x.reshape(shape)


def leads(g: np.ndarray) -> np.ndarray:
    """How far each class is behind the best, of outputs g (..., classes)."""
    return g.max(axis=-1, keepdims=True) - g


def lead_bound(own: np.ndarray, share: float) -> float:
    """The bound at which the filter loses a share of right answers, or fewer.

    `own` are the leads of the own class on held-out rows, 0 for rows whose answer the
    graph has wrong anyway. A new row exceeds the k-th largest of m with chance
    k / (m + 1); where that is above the share for k = 1, the bound stands half as far
    again beyond the largest:

        bound = own_(k), the k-th largest,  k = floor(share (m + 1));
        k = 0:  max(1.5 own_(1) + 1, log m).                                     (3)
    """
    m = len(own)
    k = int(share * (m + 1))
    largest = -np.sort(-own)  # the largest first
    if k == 0:
        beyond = 1.5 * largest[0] + 1.0
        return float(max(beyond, np.log(m)))
    return float(largest[k - 1])


def filter_bank(bank: Bank, at: np.ndarray, W: np.ndarray, b: np.ndarray) -> Bank:
    """The filter's outputs g as those of a bank: a machine a class, over `at`.

    `at` are places in `bank.support`; W (classes, q), b (classes,).
    """
    n, q = W.shape
    order = np.argsort(at)
    at = at[order]
    # W as CSR, no entry left out, however small
    values = W[:, order].ravel()
    columns = np.tile(np.arange(q), n)
    row_starts = np.arange(n + 1) * q
    coef = csr_matrix((values, columns, row_starts))
    stats = {}  # a filter has no certificates: zeros, but for b
    for name in ("C", *STATS):
        stats[name] = np.zeros(n, getattr(bank, name).dtype)
    stats["bias"] = b
    return replace(
        bank,
        **stats,
        code=rest_code(n),
        coef=coef,
        support=bank.support[at],
        support_class=np.zeros(q, bank.support_class.dtype),  # one block: no sharing
        vectors=None if bank.vectors is None else bank.vectors[at],
        kernels=None,
    )
