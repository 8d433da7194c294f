"""The bank: the trained two-class machines of a system, over shared kernel rows.

Which classes each machine separates is a row of a coding matrix, -1, 0 or +1 a class
(machines.py). Support vectors are stored once, with one sparse row of coefficients
beta = s alpha a machine: f_t(x) = sum_i beta_ti K(x_i, x) + bias_t, and f_t(x) > 0
means the +1 side.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix, issparse

from .evaluate import Evaluator, KnownOutputs, NeedsBlocks, Walker
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
from .prepared import EVERY_OUTPUTS, LinearMachines, PreparedMachines
from .rows import rows_of
from .threads import one_thread
from .ways import Ways

STATS = ("bias", "objective", "gap", "kkt_violation", "n_iter", "converged")
CSR = ("data", "indices", "indptr")  # the arrays that a matrix is saved as


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
        out = self._biases(X.shape[0], machines)
        with one_thread():
            if machines is None and fast:
                parts = self._whole
            else:
                parts = self._outputs(machines, fast)
            self._add_outputs(X, parts, out, n_jobs)
        if not np.isfinite(out).all():
            raise ValueError(
                f"outputs for inputs up to {abs(X).max():.1e} are not finite: scale the"
                " inputs"
            )
        return out

    def _biases(self, n: int, machines: np.ndarray | None) -> np.ndarray:
        """The biases of machines, repeated for n rows: (rows, machines)."""
        bias = self.bias if machines is None else self.bias[np.atleast_1d(machines)]
        if self.block_rows == BLOCK_ROWS:
            return np.tile(bias, (n, 1))
        # machine by machine in memory, as its products come
        return np.repeat(bias[:, None], n, axis=1).T

    def _add_outputs(self, X, parts, out: np.ndarray, n_jobs: int | None) -> None:
        """Add what `parts` compute of the rows X to `out`, block by block."""
        n = X.shape[0]
        block_rows = self.block_rows
        linear = any(isinstance(outputs, LinearOutputs) for _, outputs in parts)
        without_edges = issparse(self.vectors) and not linear

        def fill(start: int) -> None:
            """Add the outputs of one block."""
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
            return
        parallel = Parallel(n_jobs=n_jobs, require="sharedmem")
        parallel(delayed(fill)(start) for start in starts)

    def _outputs(
        self, machines: np.ndarray | None, fast: bool = True
    ) -> list[tuple[slice, BlockOutputs | LinearOutputs]]:
        """What computes the outputs of blocks, and the machines that each is for."""
        if machines is None:
            machines = np.arange(len(self.bias))
        machines = np.atleast_1d(machines)
        coef = self.coef[machines]
        own = self.kernels and [self.kernels[t] for t in machines]
        weights = linear_weights(coef, self.vectors, own or [self.kernel])
        if weights is not None:
            return [(slice(None), LinearOutputs(weights))]
        if own is None:
            return [(slice(None), self._block_outputs(self.kernel, coef, fast))]
        parts = []
        for k, kernel in enumerate(own):
            outputs = self._block_outputs(kernel, coef[k], fast)
            parts.append((slice(k, k + 1), outputs))
        return parts

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
        too_many = n * len(self.bias) > EVERY_OUTPUTS
        at_once = np.inf if too_many else ways.every(n)
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
        own["coef"] = coef[:, used].tocsr()
        own["support"] = self.support[used]
        own["support_class"] = self.support_class[used]
        if self.vectors is not None:
            own["vectors"] = self.vectors[used]
        if self.kernels:
            own["kernels"] = [self.kernels[t] for t in machines]
        return replace(self, **own)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The bank as named arrays, for np.savez."""
        values = {}
        for field in fields(self):
            if not field.name.startswith("kernel"):
                values[field.name] = getattr(self, field.name)
        values |= self._kernel_arrays()
        for name in ("coef", "vectors"):
            matrix = values[name]
            if issparse(matrix):
                values[name] = None
                for part in CSR:
                    values[f"{name}_{part}"] = getattr(matrix, part)
        known = {name: value for name, value in values.items() if value is not None}
        return {name: np.asarray(value) for name, value in known.items()}

    def _kernel_arrays(self) -> dict:
        """Name, numbers and widths of the bank's kernel, and of the machines' own."""
        own = [self.kernel, *(self.kernels or [])]
        # one array holds all widths: those of a kernel without any are ones
        some_have_widths = any(kernel.widths for kernel in own)
        plain = (1.0,) * (self.n_inputs if some_have_widths else 0)
        widths = [kernel.widths or plain for kernel in own]
        return {
            "kernel_name": self.kernel.name,
            "kernel_numbers": [[k.gamma, k.degree, k.coef0] for k in own],
            "kernel_widths": np.array(widths, dtype=float),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The bank that `to_arrays` described."""
        a = {"vectors": None} | arrays
        a["n_inputs"] = int(a["n_inputs"])
        a["n_rows"] = int(a["n_rows"])
        a["labels"] = str(a["labels"])
        kernel, *kernels = _kernels_of(
            str(a.pop("kernel_name")), a.pop("kernel_numbers"), a.pop("kernel_widths")
        )
        n = len(a["support"])
        shapes = {"coef": (len(a["bias"]), n), "vectors": (n, a["n_inputs"])}
        for name, shape in shapes.items():
            if f"{name}_data" in a:
                parts = tuple(a.pop(f"{name}_{part}") for part in CSR)
                a[name] = csr_matrix(parts, shape=shape)
        return cls(kernel=kernel, kernels=kernels or None, **a)


def _kernels_of(name: str, numbers: np.ndarray, widths: np.ndarray) -> list[Kernel]:
    """The kernels of this name with these rows of numbers and widths."""
    kernels = []
    for own, wide in zip(numbers.tolist(), widths.tolist(), strict=True):
        gamma, degree, coef0 = own
        kernels.append(Kernel(name, gamma, int(degree), coef0, tuple(wide) or None))
    return kernels
