"""What each way of asking the machines costs: the cheapest is taken.

That is decided by counting, never by timing. The unit of cost is one multiply-add of a
float32 product, about 1/60 of a nanosecond on one core.
"""

import numpy as np

from .outputs import EDGE, LinearOutputs
from .prepared import DENSE_ROWS

CALL = 500_000  # cost of asking one machine of a group of rows, whatever their number
VALUE = 20  # of a kernel value, beside one for each input: its exponential
COEFFICIENT = 20  # of a coefficient of all machines at once: a sparse product
SINGLE_VALUE = 60  # of a kernel value with a single row,
SINGLE_INPUT = 3  # and of an input of it: memory is read
GATHERED = 2.0  # times that where support vectors are apart in memory


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
        n_blocks = -(-n // self.block_rows)
        rows = n_blocks * (self.block_rows + 2 * EDGE)
        return rows * self._dense_row() + 10 * CALL

    def every(self, n: int) -> float:
        """All machines, in any shape."""
        if self.linear:
            return n * SINGLE_INPUT * self.weights + CALL
        if n >= DENSE_ROWS:
            return n * self._dense_row() + self.n_pieces * CALL
        value = self.single_value if n == 1 else self.value
        row = self.n_support * value + COEFFICIENT * self.nonzero
        return n * row + 4 * CALL

    def nodes(self, n: int, steps: int) -> float:
        """The machines on the way of each row, group by group."""
        if self.linear:
            return np.inf
        asked = n * steps
        groups = min(asked, 4 * self.n_machines)
        return groups * CALL + asked * self.own * self.value

    def walk(self, steps: int) -> float:
        """The machines on the way of one row."""
        if self.linear:
            return np.inf
        values = GATHERED * self.own * self.single_value
        return steps * (CALL + values)

    def _dense_row(self) -> float:
        """A row of all machines, as dense products class by class."""
        return self.n_support * self.value + self.weights
