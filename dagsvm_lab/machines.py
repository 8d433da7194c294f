"""Machines: which classes each of them separates, and how a bank of them is trained.

A coding matrix (machines x classes) of -1, 0, +1 says it: one-versus-one,
one-versus-rest or any error-correcting code. Every machine becomes a dual over the rows
of its classes; the solved duals become the `Bank` (bank.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from .bank import STATS, Bank
from .kernels import Kernel
from .rows import rows_of
from .solvers.dual import Duals
from .solvers.solve import solve_bank

SETTINGS = dict(
    tol=1e-3, solver="smo", cache_size=2000.0, n_jobs=None, max_iter=-1, verbose=0
)  # of the solver


def pair_code(n: int) -> np.ndarray:
    """Coding matrix of all pairs (0,1), (0,2), ... (n-2,n-1).

    +1 stands at a pair's first class, -1 at its second.
    """
    i, j = np.triu_indices(n, 1)
    machine = np.arange(len(i))
    code = np.zeros((len(i), n), np.int8)
    code[machine, i] = 1
    code[machine, j] = -1
    return code


def rest_code(n: int) -> np.ndarray:
    """Coding matrix of one-versus-rest: +1 on the diagonal, -1 elsewhere."""
    return (2 * np.eye(n, dtype=np.int8) - 1).astype(np.int8)


def entries(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(machine, class) of every entry of a coding matrix that is not 0.

    SciPy's own way takes forty times as long.
    """
    n = code.shape[1]
    some = max(1, (1 << 20) // n)  # machines looked at together: a code can be large
    parts = []
    for k in range(0, len(code), some):
        used = code[k : k + some] != 0  # (some machines, classes)
        parts.append(np.flatnonzero(used) + k * n)
    return np.divmod(np.concatenate(parts), n)


def pair_index(i, j, n: int):
    """Row of the pair i < j in `pair_code(n)`."""
    return i * (2 * n - i - 1) // 2 + (j - i - 1)


def train(X, codes, code, kernel, C=1.0, **more) -> Bank:
    """Train the machines of a coding matrix on rows X of class indices `codes`.

    C is a number, or one a machine; `weight` multiplies the upper bounds.
    `soft(t, rows, sign)` gives machine t soft labels in [-1, 1], where 0 drops a row,
    and `labels` says in words what they are. `kernels` are the machines' own, where
    they differ; all else takes the place of what SETTINGS says.
    """
    return train_grid(X, codes, code, [kernel], [C], **more)[0][0]


def train_grid(
    X,
    codes,
    code,
    grid: Sequence[Kernel],
    Cs: Sequence,
    *,
    weight=None,
    soft=None,
    labels="hard",
    kernels=None,
    sets=None,
    **settings,
) -> list[list[Bank]]:
    """Train a Bank for every kernel of `grid` and, from the smallest on, every C.

    Arguments are those of `train`. Machines of different C share kernel values, those
    of different kernels their steps; one that a larger C does not change is not trained
    again. Only if `grid` has one kernel, machines may have `kernels` of their own. With
    `sets` (bool, sets x rows) there is a Bank for every kernel and, in turn, every set,
    trained on the set's rows alone; sets share kernel values and steps.
    """
    X = rows_of(X)
    codes = np.asarray(codes)
    code = np.asarray(code, np.int8)
    _refuse_untrainable(X, Cs, {*grid, *(kernels or [])})
    # banks stand kernel by kernel, and set by set within each
    n_sets = 1 if sets is None else len(sets)
    of_banks = [kernel for kernel in grid for _ in range(n_sets)]
    own = kernels  # each machine's kernel, of all banks; None if all have one
    if len(grid) > 1:
        own = [kernel for kernel in of_banks for _ in code]
    one = _problems_of_banks(codes, code, len(of_banks), weight, soft, sets)
    path = [one.times(C) for C in Cs]
    alike = codes if sets is None else _alike(codes, sets)
    solve_bank(X, grid[0], path, own, codes=alike, **(SETTINGS | settings))
    more = dict(code=code, kernels=kernels, labels=labels)
    return _many_banks(X, codes, path, Cs, of_banks, **more)


def _problems_of_banks(codes, code, n_banks: int, weight, soft, sets) -> Duals:
    """`problems` of the machines of many banks, whose sets take turns.

    Of m machines a bank, machine t of all of them is machine t % m of bank t // m.
    """
    m = len(code)
    every = np.tile(code, (n_banks, 1))  # the machines of all banks

    def inside(machine, rows) -> np.ndarray:
        """Whether the sets of these machines, of all banks, hold these rows."""
        return sets[machine // m % len(sets), rows]

    def softened(machine: int, *rows) -> np.ndarray:
        """Soft labels: those of a machine are the same in every bank."""
        return soft(machine % m, *rows)

    own_soft = None if soft is None else softened
    own_rows = None if sets is None else inside
    return problems(codes, every, weight, own_soft, own_rows)


def _refuse_untrainable(X, Cs: Sequence, kernels: set[Kernel]) -> None:
    """Raise a ValueError for a C that bounds nothing, or kernel values out of range."""
    for C in Cs:
        if not (np.asarray(C, dtype=float) > 0).all():
            raise ValueError(f"C must be positive; got {C!r}")
    for kernel in kernels:
        kernel.check(X)


def _alike(codes: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """A number for each row: the same for rows of one class that are in the same sets.

    Every machine is trained on all rows of a number, or on none.
    """
    class_and_sets = np.vstack([codes, sets])  # (1 + sets, rows)
    _, number = np.unique(class_and_sets, axis=1, return_inverse=True)
    return number.ravel()


def _many_banks(
    X, codes, path: list[Duals], Cs: Sequence, of_banks: list[Kernel], *, code, **more
) -> list[list[Bank]]:
    """The Banks of solved duals that stand bank by bank, one for each C.

    `of_banks` are the banks' kernels.
    """
    m = len(code)
    found = []
    for k, kernel in enumerate(of_banks):
        machines = slice(k * m, k * m + m)
        banks = _banks(X, codes, path, Cs, machines, kernel, code=code, **more)
        found.append(list(banks))
    return found


def _banks(
    X, codes, path: list[Duals], Cs: Sequence, own: slice, kernel: Kernel, **more
) -> Iterator[Bank]:
    """The Banks of the machines `own` of solved duals, one for each C."""
    ends = path[0].ends[own.start : own.stop + 1]
    inside = slice(ends[0], ends[-1])
    before = None
    for C, duals in zip(Cs, path, strict=True):
        alpha = duals.alpha[inside]
        # where a larger C changes nothing, the banks share their arrays
        if before is None or not np.array_equal(alpha, before):
            before = alpha
            beta = duals.s[inside] * alpha
            starts = ends - ends[0]
            coef = _coefficients(beta, duals.rows[inside], starts, len(codes))
            stats = {name: getattr(duals, name)[own] for name in STATS}
            bank = bank_over(X, codes, coef, kernel, C=None, **more, **stats)
        each_C = np.broadcast_to(np.asarray(C, float), len(ends) - 1).copy()
        yield replace(bank, C=each_C)


def _coefficients(
    beta: np.ndarray, rows: np.ndarray, starts: np.ndarray, n_rows: int
) -> csr_matrix:
    """(machines, n_rows) of machines end to end, each from its start: beta of `rows`,
    zeros left out."""
    support = np.flatnonzero(beta)
    ends = np.searchsorted(support, starts)
    parts = (beta[support], rows[support], ends)
    return csr_matrix(parts, shape=(len(starts) - 1, n_rows))


def bank_over(X, codes: np.ndarray, coef: csr_matrix, kernel: Kernel, **more) -> Bank:
    """The Bank with these coefficients (machines x rows of X).

    `more` are its fields that no row knows.
    """
    support, column = np.unique(coef.indices.astype(int), return_inverse=True)
    parts = (coef.data, column, coef.indptr)
    return Bank(
        coef=csr_matrix(parts, shape=(coef.shape[0], len(support))),
        support=support,
        support_class=codes[support],
        vectors=None if kernel.precomputed else X[support],
        kernel=kernel,
        n_inputs=X.shape[1],
        n_rows=X.shape[0],
        **more,
    )


def problems(
    codes: np.ndarray,
    code: np.ndarray,
    weight=None,
    soft: Callable | None = None,
    inside: Callable | None = None,
) -> Duals:
    """The duals of a coding matrix on rows of classes `codes`, for C = 1.

    Arguments are those of `train`; `inside(machines, rows)` says of each of these rows
    whether the machine is trained on it.
    """
    machine, rows, s = _members(codes, code)
    if inside is not None:
        there = inside(machine, rows)
        machine = machine[there]
        rows = rows[there]
        s = s[there]
    ends = np.searchsorted(machine, np.arange(len(code) + 1))
    p = np.ones(len(rows))
    u = np.ones(len(rows))
    if weight is not None:
        u = np.asarray(weight, float)[rows]
    duals = Duals(ends, rows, s, p, u)
    return duals if soft is None else _softened(duals, soft)


def _members(
    codes: np.ndarray, code: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Machine, row and sign of every row of every machine, end to end.

    Within a machine the rows ascend.
    """
    t, c = entries(code)
    order = np.argsort(codes, kind="stable")  # the rows by class
    first = np.searchsorted(codes[order], np.arange(code.shape[1] + 1))
    n = np.diff(first)[c]  # rows of each machine's each class
    # first[c], first[c] + 1, ... n of them, for one (machine, class) after the other:
    # counting through all of them, less what was counted before each
    before = np.cumsum(n) - n
    place = np.arange(n.sum()) + np.repeat(first[c] - before, n)
    rows = order[place]
    machine = np.repeat(t, n)
    s = np.repeat(code[t, c], n).astype(float)
    ascending = np.argsort(machine * len(codes) + rows, kind="stable")
    return machine[ascending], rows[ascending], s[ascending]


def _softened(duals: Duals, soft: Callable) -> Duals:
    """The duals with soft labels y: s = sign y, p = |y|, u / |y|; y = 0 drops out."""
    labels = []
    for t in range(len(duals.ends) - 1):
        part = duals.part(t)
        own = soft(t, duals.rows[part], duals.s[part])
        labels.append(np.asarray(own, float))
    y = np.concatenate(labels)
    kept = y != 0
    # each machine's new end: how many entries before the old one are kept
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    ends = kept_before[duals.ends]
    y = y[kept]
    p = np.abs(y)
    u = duals.u[kept] / p
    return Duals(ends, duals.rows[kept], np.sign(y), p, u)
