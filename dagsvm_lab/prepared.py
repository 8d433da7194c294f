"""Machines made ready to be asked in whatever shape is cheapest.

Their outputs differ from those of `Bank.decision`, whose blocks have one shape, by
rounding; each class here also says by how much at most.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from .kept import SharedVectors
from .kernels import Kernel, squared
from .outputs import BLOCK_ROWS, BlockOutputs, LinearOutputs, rounding_terms
from .rows import Rows

DENSE = 1 << 16  # coefficients up to which a dense product beats a sparse one
DENSE_ROWS = 16  # from so many rows on dense products class by class beat a sparse one
GROUP_VALUES = 1 << 17  # kernel values of a group that are held at once
EVERY_OUTPUTS = 1 << 20  # outputs up to which all are computed in any shape
MEMORY = 3.0  # times the bank's that all that is prepared here may take
MACHINE_BYTES = 1500  # of a machine's objects, beside its support vectors
FLOAT32 = float(np.finfo(np.float32).eps)
FLOAT64 = 4.0 * float(np.finfo(np.float64).eps)
UNDERFLOW = float(np.finfo(np.float32).tiny)  # a smaller kernel value may become 0


@dataclass
class Machine:
    """One machine as groups of rows ask it."""

    rows: Rows  # its support vectors, prepared, or those of all machines
    part: np.ndarray | slice  # which of them are its own
    coef: np.ndarray
    bias: float

    def __post_init__(self) -> None:
        # rows of a group whose kernel values are held at once
        self.most = max(1, GROUP_VALUES // max(1, len(self.coef)))

    def values(self, Z: np.ndarray) -> np.ndarray:
        """Kernel values (support vectors, rows) with transformed rows Z."""
        return self.rows.block_transposed(Z, self.part)

    def outputs(self, Z: np.ndarray) -> np.ndarray:
        """f of transformed rows Z."""
        return self.coef @ self.values(Z) + self.bias

    def output(self, z: np.ndarray) -> float:
        """f of one transformed row."""
        values = self.rows.single_values(z, self.part)
        return float(self.coef.dot(values)) + self.bias


class PreparedMachines:
    """What machines over one kernel are evaluated with, outside blocks of one shape.

    Made at the first prediction. With what `Bank.decision` uses it takes at most three
    times the bank's memory: the support vectors again, as factors of products (in
    float32 where blocks are of float32), the coefficients class by class, and each
    machine's support vectors side by side as long as there is room. Several threads may
    use it at once: what two of them make is equal.

    Parameters
    ----------
    vectors : ndarray of shape (n_support, n_inputs)
    coef, bias : the machines', over these vectors
    kernel : Kernel
    blocks : BlockOutputs
        The machines' outputs for blocks, whose prepared rows are used here too.
    """

    def __init__(
        self,
        vectors: np.ndarray,
        coef: csr_matrix,
        bias: np.ndarray,
        kernel: Kernel,
        blocks: BlockOutputs,
    ):
        self.vectors = vectors
        self.coef = coef
        self.kernel = kernel
        self.blocks = blocks
        self.rows = blocks.rows
        self.dtype = blocks.rows.dtype
        self.in_float32 = self.dtype == np.float32
        self.bias = bias
        self.farthest = blocks.farthest
        # what rounding may do to values with each support vector: (support vectors,)
        self.vector_rounding = np.zeros(len(vectors))
        self.vector_rounding[blocks.used] = blocks.vector_rounding
        # two roundings lie between an output of float32 and that of a block
        self.unit = 2.0 * FLOAT32 if self.in_float32 else FLOAT64
        self.flat, self.steep = rounding_terms(coef, self.vector_rounding)
        self.flattest = float(self.flat.max())
        self.steepest = float(self.steep.max())
        self.n_support = np.diff(coef.indptr)  # of each machine
        # of each support vector in `rows`
        self.place = np.zeros(len(vectors), dtype=np.int32)
        self.place[blocks.used] = np.arange(len(blocks.used))
        self.machines: list[Machine | None] = [None] * len(bias)  # those made so far
        self.shared = SharedVectors(coef, self.place)
        self._kept = self._that_fit()

    def _that_fit(self) -> np.ndarray:
        """Whether the copies of each machine's support vectors fit in the memory."""
        coef = self.coef
        number = self.dtype.itemsize
        vector = self.vectors[:1].nbytes * number / 8.0
        bank = self.vectors.nbytes + coef.data.nbytes + coef.indices.nbytes
        used = len(self.vectors) * vector + self.blocks.weights_size * number
        used += coef.nnz * (number + 4)  # every_coef
        copies = np.cumsum(self.n_support * vector + MACHINE_BYTES)
        return copies <= MEMORY * bank - used

    @cached_property
    def every_coef(self) -> csr_matrix | np.ndarray:
        """The coefficients as kernel values are multiplied with them."""
        coef = self.coef[:, self.blocks.used].astype(self.dtype)
        few = coef.shape[0] * coef.shape[1] <= DENSE
        return coef.toarray() if few else coef

    def machine(self, t: int) -> Machine:
        """The machine t."""
        known = self.machines[t]
        if known is None:
            every = self.coef
            inside = slice(every.indptr[t], every.indptr[t + 1])
            part = self.place[every.indices[inside]]
            coef = every.data[inside].astype(self.dtype)
            rows = self.rows
            if self._kept[t]:
                rows = rows.subset(part)
                part = slice(None)
            known = Machine(rows, part, coef, float(self.bias[t]))
            if self._kept[t]:
                self.machines[t] = known
        return known

    def transform(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows as factors of products; what rounding may do to their kernel values."""
        Z = self.rows.transform(X)
        row_rounding = self.kernel.row_rounding(Z, self.farthest)
        return Z, np.asarray(row_rounding, float)

    def transform_row(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """`transform` of one row."""
        z = self.rows.single(x)
        row_rounding = float(self.kernel.row_rounding(z, self.farthest))
        return z.astype(self.dtype), row_rounding

    def every_of_row(self, z: np.ndarray) -> np.ndarray:
        """Outputs (machines,) of one transformed row."""
        return self.every_coef @ self.rows.single_values(z) + self.bias

    def every(self, Z: np.ndarray) -> np.ndarray:
        """Outputs (rows, machines) of transformed rows, in no fixed shape."""
        f = np.empty((len(self.bias), len(Z))).T  # as products come: machine by machine
        size = max(1, min(BLOCK_ROWS, EVERY_OUTPUTS // len(self.bias)))
        for first in range(0, len(Z), size):
            part = slice(first, first + size)
            some = Z[part]
            if len(some) >= DENSE_ROWS:
                f[part] = self.blocks.any_rows(some)
            else:
                values = self.rows.block_transposed(some, slice(None))
                f[part] = (self.every_coef @ values).T
        f += self.bias
        return f

    def in_block(self, x: np.ndarray, t: int) -> float:
        """f_t(x), to the bit as `Bank.decision` has it."""
        return float(self.blocks.in_block(x, t) + self.bias[t])

    def slack(self, row_rounding, machines=slice(None)):
        """How far outputs may be from those of blocks."""
        return self.unit * (self.steep[machines] + self.flat[machines] * row_rounding)

    def largest_slack(self, row_rounding):
        """The largest `slack` of any machine, for a row or each of some rows."""
        return self.unit * (self.steepest + self.flattest * row_rounding)

    def closer(self, z: np.ndarray, row_rounding: float, t: int | None = None) -> tuple:
        """f_t of one transformed row, and a closer bound than `slack`.

        Only for the kernel that float32 is used with, the Gaussian: rounding moves its
        values in proportion to them, and most are small. Without `t`, arrays of all
        machines.
        """
        coef = self.coef
        part = slice(None)
        if t is not None:
            inside = slice(coef.indptr[t], coef.indptr[t + 1])
            part = coef.indices[inside]
            coef = coef.data[inside]
        # vectors that no machine uses have place 0, and coefficients 0
        values = self.rows.single_values(z, self.place[part]).astype(float)
        size = abs(coef)
        machines = slice(None) if t is None else t
        # what moves an output: the rounding of its values, and that of their sum
        value_rounding = self.vector_rounding[part] + row_rounding
        moved = size @ (values * value_rounding)
        summing = 0.25 * np.sqrt(self.n_support[machines] + 1.0) + 2.0
        moved += summing * (size @ values)
        f = coef @ values + self.bias[machines]
        # and values that have become 0
        return f, self.unit * moved + UNDERFLOW * self.flat[machines]


class LinearMachines:
    """As `PreparedMachines`, for linear kernels: all machines are one product."""

    in_float32 = False

    def __init__(self, bias: np.ndarray, blocks: LinearOutputs):
        self.blocks = blocks
        self.weights = blocks.weights
        self.bias = bias
        # what rounding may do to an output, times the row's length
        root = np.sqrt(self.weights.shape[1] + 4.0)
        self.size = FLOAT64 * root * np.sqrt(squared(self.weights))  # (machines,)
        self.largest = float(self.size.max())

    def transform(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows themselves, and their lengths."""
        return X, np.sqrt(squared(X))

    def transform_row(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The row itself, and its length."""
        return x, float(np.sqrt(x.dot(x)))

    def every_of_row(self, z: np.ndarray) -> np.ndarray:
        """Outputs (machines,) of one row."""
        return self.weights.dot(z) + self.bias

    def every(self, Z: np.ndarray) -> np.ndarray:
        """Outputs (rows, machines)."""
        return Z @ self.weights.T + self.bias

    def in_block(self, x: np.ndarray, t: int) -> float:
        """f_t(x), to the bit as `Bank.decision` has it."""
        return float(self.blocks.in_block(x, t) + self.bias[t])

    def largest_slack(self, length):
        """The largest `slack` of any machine, for a row or each of some rows."""
        return self.largest * length

    def slack(self, length, machines=slice(None)):
        """How far outputs for rows of this length may be from those of blocks."""
        return self.size[machines] * length
