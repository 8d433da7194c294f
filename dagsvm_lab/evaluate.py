"""Outputs of machines, computed only where a graph asks for them.

The label of a row is the one that follows from the signs of `Bank.decision`, whose
blocks have one shape and give a row the same bits in any batch. Here sums are formed in
whatever shape is cheapest (ways.py), so outputs differ from those by rounding. An
output within its bound of zero (prepared.py) is computed again as its block has it. So
labels depend on nothing but the row.
"""

import numpy as np

from .kept import KeptValues
from .ways import Ways


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
    unsure : bool (n_rows,): rows whose answer a graph or a first stage leaves in doubt.
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
        if not at_once and KeptValues.worth_keeping(prepared, *X.shape):
            self.kept = KeptValues(prepared, self.Z)

    def ask(self, rows: np.ndarray, machines: np.ndarray) -> np.ndarray:
        """The output of machine machines[k] for row rows[k], of sure sign."""
        if self.f is None:
            outputs = self._ask_groups(rows, machines)
        else:
            outputs = self.f[rows, machines]
        size = np.abs(outputs)
        # in float32 kernel values are at most 1, and no output is infinite
        finite = self.prepared.in_float32 or size.max() < np.inf
        if not (finite and size.min() > self.largest_slack):
            self._settle(rows, machines, outputs)
        return outputs

    def ask_every(self) -> tuple[np.ndarray, np.ndarray]:
        """All outputs (rows, machines), and bounds of their rounding."""
        f = self.prepared.every(self.Z) if self.f is None else self.f
        return f, self.prepared.slack(self.row_rounding[:, None])

    def closer(self, row: int) -> tuple[np.ndarray, np.ndarray] | None:
        """All outputs of one row with closer bounds, where there are any."""
        if not self.prepared.in_float32:
            return None
        return self.prepared.closer(self.Z[row], self.row_rounding[row])

    def _settle(self, rows, machines, outputs) -> None:
        """Replace those of the outputs whose signs are not sure."""
        size = np.abs(outputs)
        clear = (size > self.largest_slack) & (size < np.inf)
        near = np.flatnonzero(~clear)
        # within the largest bound; now by the row's and the machine's own
        row_rounding = self.row_rounding[rows[near]]
        slack = self.prepared.slack(row_rounding, machines[near])
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
        order = machines.astype(self.key).argsort(kind="stable")  # by machine
        rows = rows.take(order)
        sizes = np.bincount(machines)
        asked = sizes.nonzero()[0]
        f = np.empty(len(rows))
        start = 0
        for t, size in zip(asked.tolist(), sizes[asked].tolist(), strict=True):
            stop = start + size
            self._ask_group(rows[start:stop], t, f[start:stop])
            start = stop
        outputs = np.empty(len(rows))  # in the order in which they were asked for
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
    if prepared.in_float32:
        f, slack = prepared.closer(z, row_rounding, t)
        if abs(f) > slack:
            return float(f)
    return prepared.in_block(x, t)


class Walker:
    """Outputs of machines for one row, all at once or each when it is asked for.

    Parameters
    ----------
    prepared : PreparedMachines or LinearMachines
    x : ndarray of shape (n_inputs,)
    ways : Ways
    steps : int
        Machines that the row is expected to meet.
    """

    def __init__(self, prepared, x: np.ndarray, ways: Ways, steps: int):
        self.prepared = prepared
        self.x = x
        self.z, self.row_rounding = prepared.transform_row(x)
        self.at_once = ways.every(1) <= ways.walk(steps)
        self.known: list[float] | None = None  # all outputs
        self.sure: list[bool] = []  # whether their signs are

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
        if not self.prepared.in_float32:
            return None
        return self.prepared.closer(self.z, self.row_rounding)

    def ask(self, t: int) -> float:
        """Compute f_t(x), of sure sign."""
        if not self.at_once:
            return self._ask_alone(t)
        if self.known is None:
            f, slack = self.ask_every()
            size = np.abs(f)
            sure = (size > slack) & (size < np.inf)
            self.sure = sure.tolist()
            self.known = f.tolist()
        return self.known[t] if self.sure[t] else self._settled(t)

    def _ask_alone(self, t: int) -> float:
        machine = self.prepared.machine(t)
        f = machine.output(self.z)
        if np.inf > abs(f) > self.prepared.slack(self.row_rounding, t):
            return f
        return self._settled(t)

    def _settled(self, t: int) -> float:
        return settled(self.prepared, self.x, self.z, self.row_rounding, t)
