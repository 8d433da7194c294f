"""Outputs of machines, computed only where a graph asks for them.

The label of a row is the one that follows from the signs of `Bank.decision`, whose
blocks have one shape and give a row the same bits in any batch. Here sums are formed in
whatever shape is cheapest, so outputs differ from those by rounding. An output within
its bound of zero is computed again as its block has it. So labels depend on nothing but
the row.

Which way is cheapest is decided by counting, never by timing. The unit of cost is one
multiply-add of a float32 product, about 1/60 of a nanosecond on one core.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from .kept import KeptValues, SharedVectors
from .kernels import Kernel, squared
from .outputs import BLOCK_ROWS, EDGE, BlockOutputs, LinearOutputs, rounding_terms
from .rows import Rows

CALL = 500_000  # cost of asking one machine of a group of rows, whatever their number
VALUE = 20  # of a kernel value, beside one for each input: its exponential
COEFFICIENT = 20  # of a coefficient of all machines at once: a sparse product
SINGLE_VALUE = 60  # of a kernel value with a single row,
SINGLE_INPUT = 3  # and of an input of it: memory is read
DENSE = 1 << 16  # coefficients up to which a dense product beats a sparse one
GROUP_VALUES = 1 << 17  # kernel values of a group that are held at once
DENSE_ROWS = 16  # from so many rows on dense products class by class beat a sparse one
MEMORY = 3.0  # times the bank's that all that is prepared here may take
MACHINE_BYTES = 1500  # of a machine's objects, beside its support vectors
GATHERED = 2.0  # times that where support vectors are apart in memory
EVERY_OUTPUTS = 1 << 20  # outputs up to which all are computed in any shape
FLOAT32 = float(np.finfo(np.float32).eps)
FLOAT64 = 4.0 * float(np.finfo(np.float64).eps)
UNDERFLOW = float(np.finfo(np.float32).tiny)  # a smaller kernel value may become 0


class NeedsBlocks(ArithmeticError):
    """One row's answer is within rounding of another: `Bank.decision` decides."""


class KnownOutputs:
    """The outputs of all machines for all rows, as an evaluator: see `Evaluator`.

    Parameters
    ----------
    f : ndarray of shape (n_rows, n_machines)
        Outputs as `Bank.decision` gives them: none of them is unsure.
    """

    def __init__(self, f: np.ndarray):
        self.f = f
        self.unsure = np.zeros(len(f), dtype=bool)

    def ask(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray:
        """The output of machine machines[k] for row rows[k]."""
        return self.f[rows, machines]

    def ask_every(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All outputs (rows, machines), and bounds of their rounding: none."""
        return self.f, None


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
        self.single = self.dtype == np.float32
        self.bias = bias
        self.farthest = blocks.farthest
        self.vector_rounding = np.zeros(len(vectors))
        self.vector_rounding[blocks.used] = blocks.vector_rounding
        # two roundings lie between an output of float32 and that of a block
        self.unit = 2.0 * FLOAT32 if self.single else FLOAT64
        self.flat, self.steep = rounding_terms(coef, self.vector_rounding)
        self.flattest = float(self.flat.max())
        self.steepest = float(self.steep.max())
        self.n_support = np.diff(coef.indptr)
        self.place = np.zeros(len(vectors), dtype=np.int32)  # in `rows`
        self.place[blocks.used] = np.arange(len(blocks.used))
        self.machines: list[Machine | None] = [None] * len(bias)
        self.shared = SharedVectors(coef, self.place)
        self._kept = self._that_fit()

    def _that_fit(self) -> np.ndarray:
        """Whether the copies of each machine's support vectors fit in the memory."""
        vector = self.vectors[:1].nbytes * self.dtype.itemsize / 8.0
        bank = self.vectors.nbytes + self.coef.data.nbytes + self.coef.indices.nbytes
        used = len(self.vectors) * vector + self.blocks.weights_size * 4
        used += self.coef.nnz * (self.dtype.itemsize + 4)  # every_coef
        size = np.cumsum(self.n_support * vector + MACHINE_BYTES)
        return size <= MEMORY * bank - used

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
            inside = slice(self.coef.indptr[t], self.coef.indptr[t + 1])
            part = self.place[self.coef.indices[inside]]
            coef = self.coef.data[inside].astype(self.dtype)
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
        return Z, np.asarray(self.kernel.row_rounding(Z, self.farthest), float)

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
            if len(Z[part]) >= DENSE_ROWS:
                f[part] = self.blocks.any_rows(Z[part])
            else:
                values = self.rows.block_transposed(Z[part], slice(None))
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
        values = self.rows.single_values(z, self.place[part]).astype(float)
        size = abs(coef)
        machines = slice(None) if t is None else t
        summing = 0.25 * np.sqrt(self.n_support[machines] + 1.0) + 2.0
        moved = size @ (values * (self.vector_rounding[part] + row_rounding))
        moved += summing * (size @ values) + UNDERFLOW * self.flat[machines]
        return coef @ values + self.bias[machines], self.unit * moved


class LinearMachines:
    """As `PreparedMachines`, for linear kernels: all machines are one product."""

    single = False

    def __init__(self, bias: np.ndarray, blocks: LinearOutputs):
        self.blocks = blocks
        self.weights = blocks.weights
        self.bias = bias
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


class Ways:
    """What each way of asking the machines costs: the cheapest is taken.

    Parameters
    ----------
    coef : csr_matrix of shape (n_machines, n_support)
    inputs : int
    blocks : BlockOutputs or LinearOutputs
        What computes all outputs of blocks of rows.
    block_rows : int
    """

    def __init__(self, coef, inputs: int, blocks, block_rows: int):
        self.block_rows = block_rows
        self.n_machines = coef.shape[0]
        self.own = coef.nnz / self.n_machines  # support vectors of a machine
        self.n_support = coef.shape[1]
        self.nonzero = coef.nnz
        self.weights = blocks.weights_size
        self.n_pieces = blocks.n_pieces
        self.value = inputs + 2 + VALUE
        self.single_value = SINGLE_INPUT * (inputs + 2) + SINGLE_VALUE
        self.linear = isinstance(blocks, LinearOutputs)
        if self.linear:  # kernel values are never computed
            self.n_support = 0
            self.nonzero = 0

    def blocks(self, n: int) -> float:
        """All machines, in blocks of one shape."""
        full = -(-n // self.block_rows) * (self.block_rows + 2 * EDGE)
        return full * (self.n_support * self.value + self.weights) + 10 * CALL

    def every(self, n: int) -> float:
        """All machines, in any shape."""
        if self.linear:
            return n * SINGLE_INPUT * self.weights + CALL
        if n >= DENSE_ROWS:
            row = self.n_support * self.value + self.weights
            return n * row + self.n_pieces * CALL
        value = self.single_value if n == 1 else self.value
        return n * (self.n_support * value + COEFFICIENT * self.nonzero) + 4 * CALL

    def nodes(self, n: int, steps: int) -> float:
        """The machines on the way of each row, group by group."""
        if self.linear:
            return np.inf
        groups = min(n * steps, 4 * self.n_machines)
        return groups * CALL + n * steps * self.own * self.value

    def walk(self, steps: int) -> float:
        """The machines on the way of one row."""
        if self.linear:
            return np.inf
        return steps * (CALL + GATHERED * self.own * self.single_value)


class Evaluator:
    """The outputs of machines for one batch of rows, computed where they are asked for.

    Rows that are asked of the same machine go through one product, `exp` in place and
    one product with the machine's coefficients. Where that costs less, all machines are
    asked of all rows first.

    Parameters
    ----------
    prepared : PreparedMachines or LinearMachines
    X : ndarray of shape (n_rows, n_inputs)
    at_once : bool
        Whether to ask all machines of all rows at once.

    Attributes
    ----------
    unsure : bool (n_rows,): rows of which an output asked for is within rounding of 0.
    """

    def __init__(self, prepared, X: np.ndarray, at_once: bool):
        self.prepared = prepared
        self.X = X
        self.key = np.min_scalar_type(len(prepared.bias))  # a short key sorts faster
        self.Z, self.row_rounding = prepared.transform(X)
        self.unsure = np.zeros(len(X), dtype=bool)
        self.largest_slack = prepared.largest_slack(self.row_rounding.max())
        self.f = prepared.every(self.Z) if at_once else None  # (rows, machines)
        self.kept = None
        if not at_once and KeptValues.pay(prepared, *X.shape):
            self.kept = KeptValues(prepared, self.Z)

    def ask(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray:
        """The output of machine machines[k] for row rows[k], of sure sign."""
        if self.f is None:
            outputs = self._ask_groups(rows, machines)
        else:
            outputs = self.f[rows, machines]
        size = np.abs(outputs)
        # in float32 kernel values are at most 1, and no output is infinite
        finite = self.prepared.single or size.max() < np.inf
        if not (finite and size.min() > self.largest_slack):
            self._settle(rows, machines, outputs)
        return outputs

    def ask_every(self) -> tuple[np.ndarray, np.ndarray]:
        """All outputs (rows, machines), and bounds of their rounding."""
        f = self.prepared.every(self.Z) if self.f is None else self.f
        return f, self.prepared.slack(self.row_rounding[:, None])

    def closer(self, row: int) -> tuple[np.ndarray, np.ndarray] | None:
        """All outputs of one row with closer bounds, where there are any."""
        if not self.prepared.single:
            return None
        return self.prepared.closer(self.Z[row], self.row_rounding[row])

    def _settle(self, rows, machines, outputs) -> None:
        """Replace those of the outputs whose signs are not sure."""
        size = np.abs(outputs)
        near = np.flatnonzero(~((size > self.largest_slack) & (size < np.inf)))
        slack = self.prepared.slack(self.row_rounding[rows[near]], machines[near])
        sure = (size[near] > slack) & (size[near] < np.inf)
        for k in near[~sure].tolist():
            row = rows[k]
            of_row = self.X[row], self.Z[row], self.row_rounding[row]
            outputs[k] = settled(self.prepared, *of_row, int(machines[k]))

    def _ask_groups(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray:
        """Outputs of rows, those of one machine together."""
        if self.kept is not None:
            outputs = self.kept.ask(rows, machines)
            if outputs is not None:
                return outputs
        order = machines.astype(self.key).argsort(kind="stable")
        rows = rows.take(order)
        sizes = np.bincount(machines)
        asked = sizes.nonzero()[0]
        f = np.empty(len(rows))
        start = 0
        for t, size in zip(asked.tolist(), sizes[asked].tolist(), strict=True):
            stop = start + size
            self._ask_group(rows[start:stop], t, f[start:stop])
            start = stop
        outputs = np.empty(len(rows))
        outputs[order] = f
        return outputs

    def _ask_group(self, rows: np.ndarray, t: int, f: np.ndarray) -> None:
        """Write the outputs of machine t for these rows to f."""
        machine = self.prepared.machines[t] or self.prepared.machine(t)
        if len(rows) <= machine.most:
            f[:] = machine.outputs(self.Z.take(rows, axis=0))
            return
        for first in range(0, len(rows), machine.most):
            part = slice(first, first + machine.most)
            f[part] = machine.outputs(self.Z.take(rows[part], axis=0))


def settled(prepared, x: np.ndarray, z: np.ndarray, row_rounding: float, t: int):
    """f_t(x), or a number of the same sign; z is the transformed row."""
    if prepared.single:
        f, slack = prepared.closer(z, row_rounding, t)
        if abs(f) > slack:
            return float(f)
    return prepared.in_block(x, t)


class Walker:
    """Outputs of machines for one row, all at once or each when it is asked for.

    Parameters
    ----------
    prepared, ways, steps :
        As of `Evaluator`.
    x : ndarray of shape (n_inputs,)

    Attributes
    ----------
    computed : kernel values computed so far.
    """

    def __init__(self, prepared, x: np.ndarray, ways: Ways, steps: int):
        self.prepared = prepared
        self.x = x
        self.z, self.row_rounding = prepared.transform_row(x)
        self.at_once = ways.every(1) <= ways.walk(steps)
        self.known: list[float] | None = None  # all outputs
        self.sure: list[bool] = []  # whether their signs are
        self.computed = 0

    def ask_every(self) -> tuple[np.ndarray, np.ndarray]:
        """All outputs (machines,), and bounds of their rounding."""
        return self.every(), self.prepared.slack(self.row_rounding)

    def every(self) -> np.ndarray:
        """All outputs (machines,), each within `largest_slack` of a block's."""
        return self.prepared.every_of_row(self.z)

    @property
    def largest_slack(self) -> float:
        """A bound of the rounding of any output."""
        return self.prepared.largest_slack(self.row_rounding)

    def closer(self) -> tuple[np.ndarray, np.ndarray] | None:
        """All outputs with closer bounds, where there are any."""
        if not self.prepared.single:
            return None
        return self.prepared.closer(self.z, self.row_rounding)

    def ask(self, t: int) -> float:
        """Compute f_t(x), of sure sign."""
        if not self.at_once:
            return self._ask_alone(t)
        if self.known is None:
            f, slack = self.ask_every()
            self.sure = ((np.abs(f) > slack) & (np.abs(f) < np.inf)).tolist()
            self.known = f.tolist()
        return self.known[t] if self.sure[t] else self._settled(t)

    def _ask_alone(self, t: int) -> float:
        machine = self.prepared.machine(t)
        f = machine.output(self.z)
        self.computed += len(machine.coef)
        if np.inf > abs(f) > self.prepared.slack(self.row_rounding, t):
            return f
        return self._settled(t)

    def _settled(self, t: int) -> float:
        return settled(self.prepared, self.x, self.z, self.row_rounding, t)
