"""The bank: the two-class machines of a multiclass system, over shared kernel rows.

A bank is a coding matrix (machines x classes) of -1, 0, +1: one-versus-one,
one-versus-rest or any error-correcting code. Support vectors are stored once, with one
sparse row of coefficients beta = s alpha a machine:
f_t(x) = sum_i beta_ti K(x_i, x) + bias_t, and f_t(x) > 0 means the +1 side.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix, issparse

from .evaluate import (
    EVERY_OUTPUTS,
    Evaluator,
    KnownOutputs,
    LinearMachines,
    NeedsBlocks,
    PreparedMachines,
    Walker,
    Ways,
)
from .kernels import Kernel
from .outputs import (
    BLOCK_OUTPUTS,
    BLOCK_ROWS,
    EDGE,
    FEW_ROWS,
    BlockOutputs,
    LinearOutputs,
    SupportVectors,
    linear_weights,
)
from .rows import rows_of
from .solvers.bank import solve_bank
from .solvers.dual import Duals
from .threads import one_thread

STATS = ("bias", "objective", "gap", "kkt_violation", "n_iter", "converged")
SETTINGS = dict(
    tol=1e-3, solver="smo", cache_size=2000.0, n_jobs=None, max_iter=-1, verbose=0
)  # of the solver
CSR = ("data", "indices", "indptr")


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
        parts.append(np.flatnonzero(code[k : k + some] != 0) + k * n)
    return np.divmod(np.concatenate(parts), n)


def pair_index(i, j, n: int):
    """Row of the pair i < j in `pair_code(n)`."""
    return i * (2 * n - i - 1) // 2 + (j - i - 1)


@dataclass
class Bank:
    """Trained machines; plain arrays only, so that a bank can be stored and sent."""

    code: np.ndarray  # (machines, classes) of -1, 0, +1
    support: np.ndarray  # (vectors,) training rows, ascending
    vectors: np.ndarray | None  # (vectors, inputs); None: the kernel is precomputed
    coef: csr_matrix  # (machines, vectors)
    bias: np.ndarray  # (machines,), as the certificates below
    kernel: Kernel
    kernels: list[Kernel] | None  # the machines' own, where they differ
    objective: np.ndarray
    gap: np.ndarray
    kkt_violation: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    n_inputs: int
    support_class: np.ndarray  # (vectors,) class indices
    C: np.ndarray  # bound of each machine's dual variables, before weights
    labels: str  # what was learnt: "hard", "soft: ...", "direct" (one dual for all)
    n_rows: int  # rows that the bank was trained on

    @property
    def n_support(self) -> np.ndarray:
        """Support vectors of each machine."""
        return np.diff(self.coef.indptr)

    @property
    def n_parameters(self) -> int:
        """Numbers that the machines consist of, as Platt counts them."""
        return len(self.support) * self.n_inputs + self.coef.nnz

    @property
    def block_rows(self) -> int:
        """Rows that `decision` evaluates together."""
        few = len(self.bias) * BLOCK_ROWS > BLOCK_OUTPUTS
        return FEW_ROWS if few else BLOCK_ROWS

    def decision(
        self,
        X,
        machines: np.ndarray | None = None,
        n_jobs: int | None = None,
        fast: bool = True,
    ) -> np.ndarray:
        """Outputs of machines, the same bits whatever batch a row is in.

        Rows go through in blocks of one fixed shape, so that every sum is formed in one
        order.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_inputs)
        machines : ndarray, default=None
            The machines to ask; None asks all.
        n_jobs : int, default=None
            Threads.
        fast : bool
            Whether to use float32 where that is good to about 1e-4.

        Returns
        -------
        f : ndarray of shape (n_rows, n_machines)
        """
        X = rows_of(X)
        n = X.shape[0]
        block_rows = self.block_rows
        bias = self.bias if machines is None else self.bias[np.atleast_1d(machines)]
        if block_rows == BLOCK_ROWS:
            out = np.tile(bias, (n, 1))
        else:  # machine by machine in memory, as its products come
            out = np.repeat(bias[:, None], n, axis=1).T
        with one_thread():
            if machines is None and fast:
                parts = self._whole
            else:
                parts = self._outputs(machines, fast)
            linear = any(isinstance(outputs, LinearOutputs) for _, outputs in parts)
            without_edges = issparse(self.vectors) and not linear

            def fill(start: int) -> None:
                """Add the outputs of one block to `out`."""
                stop = start + block_rows
                if without_edges:
                    block = X[start:stop]
                else:  # blocks have one shape: the end rows are repeated beyond them
                    around = np.arange(start - EDGE, stop + EDGE)
                    block = X[np.clip(around, 0, n - 1)]
                with np.errstate(over="ignore", invalid="ignore"):
                    for columns, outputs in parts:
                        out[start:stop, columns] += outputs(block)[: n - start]

            starts = range(0, n, block_rows)
            if len(starts) == 1:
                fill(0)
            else:
                parallel = Parallel(n_jobs=n_jobs, require="sharedmem")
                parallel(delayed(fill)(start) for start in starts)
        if not np.isfinite(out).all():
            raise ValueError(
                f"outputs for inputs up to {abs(X).max():.1e} are not finite: scale the"
                " inputs"
            )
        return out

    def _outputs(
        self, machines: np.ndarray | None, fast: bool = True
    ) -> list[tuple[slice, BlockOutputs | LinearOutputs]]:
        """What computes the outputs of blocks, and the machines that each is for."""
        machines = np.arange(len(self.bias)) if machines is None else machines
        machines = np.atleast_1d(machines)
        coef = self.coef[machines]
        own = self.kernels and [self.kernels[t] for t in machines]
        weights = linear_weights(coef, self.vectors, own or [self.kernel])
        if weights is not None:
            return [(slice(None), LinearOutputs(weights))]
        if own is None:
            return [(slice(None), self._block_outputs(self.kernel, coef, fast))]
        return [
            (slice(k, k + 1), self._block_outputs(kernel, coef[k], fast))
            for k, kernel in enumerate(own)
        ]

    def _block_outputs(self, kernel: Kernel, coef: csr_matrix, fast) -> BlockOutputs:
        """The outputs of machines with these coefficients for blocks."""
        vectors = SupportVectors(self.support, self.support_class, self.vectors)
        return BlockOutputs(vectors, kernel, coef, self.block_rows, fast)

    @cached_property
    def _whole(self) -> list[tuple[slice, BlockOutputs | LinearOutputs]]:
        """`_outputs` of all machines."""
        return self._outputs(None)

    @cached_property
    def _prepared(self) -> PreparedMachines | LinearMachines | None:
        """What rows are evaluated with outside blocks; None where only blocks can."""
        if self.vectors is None or issparse(self.vectors) or not self.coef.nnz:
            return None
        _, blocks = self._whole[0]
        if isinstance(blocks, LinearOutputs):
            return LinearMachines(self.bias, blocks)
        if self.kernels is not None or blocks.vector_rounding is None:
            return None
        return PreparedMachines(self.vectors, self.coef, self.bias, self.kernel, blocks)

    @cached_property
    def _ways(self) -> Ways:
        """What each way of asking the machines costs."""
        _, blocks = self._whole[0]
        return Ways(self.coef, self.n_inputs, blocks, self.block_rows)

    def evaluator(
        self,
        X,
        steps: int | None = None,
        n_jobs: int | None = None,
        every: bool = False,
    ) -> KnownOutputs | Evaluator:
        """Answer a graph's questions about rows, in the way that costs least.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_inputs)
        steps : int, default=None
            Machines that a row is expected to meet; None is one fewer than classes.
        n_jobs : int, default=None
            Threads.
        every : bool
            Whether all machines will be asked of every row.

        Returns
        -------
        asked : KnownOutputs or Evaluator
        """
        steps = self.code.shape[1] - 1 if steps is None else steps
        prepared = None if issparse(X) or not X.shape[0] else self._prepared
        if prepared is None:
            return KnownOutputs(self.decision(X, n_jobs=n_jobs))
        n = X.shape[0]
        ways = self._ways
        blocks = ways.blocks(n)
        many = n * len(self.bias) > EVERY_OUTPUTS
        at_once = np.inf if many else ways.every(n)
        by_node = np.inf if every else ways.nodes(n, steps)
        if blocks <= min(at_once, by_node):
            return KnownOutputs(self.decision(X, n_jobs=n_jobs))
        with one_thread():
            return Evaluator(prepared, X, at_once < by_node)

    def walker(self, x: np.ndarray, steps: int | None = None) -> Walker:
        """Prepare one row for machines asked one by one.

        Parameters
        ----------
        x : ndarray of shape (n_inputs,)
        steps : int, default=None
            Machines that it is expected to meet; None is one fewer than classes.

        Returns
        -------
        walker : Walker
            It, and this method, raise `NeedsBlocks` where only blocks can answer.
        """
        if issparse(x) or self._prepared is None:
            raise NeedsBlocks("single rows of this bank go through blocks")
        steps = self.code.shape[1] - 1 if steps is None else steps
        return Walker(self._prepared, x, self._ways, steps)

    def __getstate__(self) -> dict:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def select(self, machines: np.ndarray) -> Self:
        """The bank of the chosen machines alone, with only their support vectors."""
        coef = self.coef[machines]
        used = np.unique(coef.indices)
        own = {name: getattr(self, name)[machines] for name in ("code", "C", *STATS)}
        own["kernels"] = [self.kernels[t] for t in machines] if self.kernels else None
        own["vectors"] = None if self.vectors is None else self.vectors[used]
        own |= dict(
            coef=coef[:, used].tocsr(),
            support=self.support[used],
            support_class=self.support_class[used],
        )
        return replace(self, **own)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The bank as named arrays, for np.savez."""
        own = [self.kernel, *(self.kernels or [])]
        # one array holds all widths: those of a kernel without any are ones
        plain = (1.0,) * (self.n_inputs if any(k.widths for k in own) else 0)
        values = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if not f.name.startswith("kernel")
        }
        values["kernel_name"] = self.kernel.name
        values["kernel_numbers"] = [[k.gamma, k.degree, k.coef0] for k in own]
        values["kernel_widths"] = np.array(
            [k.widths or plain for k in own], dtype=float
        )
        for name in ("coef", "vectors"):
            if issparse(matrix := values[name]):
                values |= {name: None} | {
                    f"{name}_{part}": getattr(matrix, part) for part in CSR
                }
        return {
            name: np.asarray(value)
            for name, value in values.items()
            if value is not None
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The bank that `to_arrays` described."""
        a = {"vectors": None} | arrays
        a |= {
            "n_inputs": int(a["n_inputs"]),
            "n_rows": int(a["n_rows"]),
            "labels": str(a["labels"]),
        }
        name = str(a.pop("kernel_name"))
        numbers = zip(
            a.pop("kernel_numbers").tolist(),
            a.pop("kernel_widths").tolist(),
            strict=True,
        )
        kernel, *kernels = [
            Kernel(name, g, int(d), c, tuple(w) or None) for (g, d, c), w in numbers
        ]
        n = len(a["support"])
        for name, shape in (
            ("coef", (len(a["bias"]), n)),
            ("vectors", (n, a["n_inputs"])),
        ):
            if f"{name}_data" in a:
                a[name] = csr_matrix(
                    tuple(a.pop(f"{name}_{part}") for part in CSR), shape=shape
                )
        return cls(kernel=kernel, kernels=kernels or None, **a)


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
    m = len(code)
    n_sets = 1 if sets is None else len(sets)
    # banks stand kernel by kernel, and set by set within each; machine t of all of
    # them is machine t % m of bank t // m
    of_banks = [kernel for kernel in grid for _ in range(n_sets)]
    every = np.tile(code, (len(of_banks), 1))  # the machines of all banks
    own = kernels  # each machine's kernel, of all banks; None if all have one
    if len(grid) > 1:
        own = [kernel for kernel in of_banks for _ in code]

    def inside(machine, rows) -> np.ndarray:
        """Whether the sets of these machines, of all banks, hold these rows."""
        return sets[machine // m % n_sets, rows]

    def softened(machine: int, *rows) -> np.ndarray:
        """Soft labels: those of a machine are the same in every bank."""
        return soft(machine % m, *rows)

    one = problems(
        codes, every, weight, soft and softened, None if sets is None else inside
    )
    path = [one.times(C) for C in Cs]
    alike = codes if sets is None else _alike(codes, sets)
    solve_bank(X, grid[0], path, own, codes=alike, **(SETTINGS | settings))
    more = dict(code=code, kernels=kernels, labels=labels)
    found = []
    for k, kernel in enumerate(of_banks):
        machines = slice(k * m, k * m + m)
        found.append([*_banks(X, codes, path, Cs, machines, kernel, **more)])
    return found


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
    rows = np.vstack([codes, sets])
    return np.unique(rows, axis=1, return_inverse=True)[1].ravel()


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
    coef = csr_matrix(
        (coef.data, column, coef.indptr), shape=(coef.shape[0], len(support))
    )
    vectors = None if kernel.precomputed else X[support]
    of_rows = dict(
        support=support,
        support_class=codes[support],
        vectors=vectors,
        n_inputs=X.shape[1],
    )
    return Bank(coef=coef, kernel=kernel, n_rows=X.shape[0], **of_rows, **more)


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
    upper = np.ones(len(rows)) if weight is None else np.asarray(weight, float)[rows]
    duals = Duals(ends, rows, s, np.ones(len(rows)), upper)
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
    # first[c], first[c] + 1, ... n of them, for one (machine, class) after the other
    place = np.repeat(first[c] + n - np.cumsum(n), n) + np.arange(n.sum())
    rows = order[place]
    machine = np.repeat(t, n)
    s = np.repeat(code[t, c], n).astype(float)
    ascending = np.argsort(machine * len(codes) + rows, kind="stable")
    return machine[ascending], rows[ascending], s[ascending]


def _softened(duals: Duals, soft: Callable) -> Duals:
    """The duals with soft labels y: s = sign y, p = |y|, u / |y|; y = 0 drops out."""
    labels = []
    for t, (a, b) in enumerate(zip(duals.ends[:-1], duals.ends[1:], strict=True)):
        labels.append(np.asarray(soft(t, duals.rows[a:b], duals.s[a:b]), float))
    y = np.concatenate(labels)
    kept = y != 0
    # each machine's new end: how many entries before the old one are kept
    ends = np.concatenate([[0], np.cumsum(kept)])[duals.ends]
    y = y[kept]
    p = np.abs(y)
    return Duals(ends, duals.rows[kept], np.sign(y), p, duals.u[kept] / p)
