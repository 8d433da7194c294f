r"""Lines of free rows that are independent, and the system that they solve.

Every row of a dual has a line A_i = (z_i, 1), and a free row has A_i (w, bias) = g_i.
The lines are kept as QR factors of their differences, brought up to date as rows come
and go.

| constant | unit | seconds with other values, over today's (300 hard duals, one core) |
|---|---|---|
| UPDATES = 50 | changes of a QR factor before it is made anew | 0 1.1, 1000 1.0 |
| DEPENDENT = 1e-9 | share of a line that others leave | 1e-12 to 1e-6: 1.0 |
"""

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dtrtrs

UPDATES = 50
DEPENDENT = 1e-9


class Lines:
    """Independent lines A_i of free rows: the first row, and the others less the first.

    Attributes
    ----------
    Z : (n, rank), of all rows.
    rows : the free rows.
    Q, R : QR factors of the differences (rank, rows - 1).
    updates : changes of the factors since they were made anew.
    least : distance from the others up to which a line depends on them, at least.
    """

    def __init__(self, Z: np.ndarray, rows: np.ndarray):
        self.Z = Z
        self.least = 1e-3 * DEPENDENT * size_of(Z)
        self._factor(rows)

    def _factor(self, rows: np.ndarray) -> None:
        """Take `rows`, and factor their lines."""
        self.rows = rows
        self.updates = 0
        self.Q = np.zeros((self.Z.shape[1], 0))
        self.R = np.zeros((0, 0))
        if len(rows) > 1:
            others = self.Z[rows[1:]]
            differences = others - self.Z[rows[0]]
            self.Q, self.R = linalg.qr(differences.T, mode="economic")

    def append(self, row: int) -> None:
        """Add a row whose line is independent of the others."""
        rows = np.append(self.rows, row)
        if len(rows) < 3 or self.updates == UPDATES:
            return self._factor(rows)
        line = self.Z[row] - self.Z[rows[0]]
        at = len(rows) - 2
        self.Q, self.R = linalg.qr_insert(self.Q, self.R, line, at, which="col")
        self.rows = rows
        self.updates += 1

    def drop(self, k: int) -> None:
        """Leave out the k-th row."""
        rows = np.delete(self.rows, k)
        # all differences are from the row k = 0
        if k == 0 or len(rows) < 2 or self.updates == UPDATES:
            return self._factor(rows)
        Q, R = linalg.qr_delete(self.Q, self.R, k - 1, which="col")
        size = len(rows) - 1  # a square Q stays square, with a column too many
        self.Q = Q[:, :size]
        self.R = R[:size]
        self.rows = rows
        self.updates += 1

    def solve(self, g, beta, total) -> tuple[np.ndarray, np.ndarray, float]:
        """(beta of the free rows, w, bias) that solve the dual, all other beta held."""
        first = self.rows[0]
        others = self.rows[1:]
        held = beta.copy()
        held[self.rows] = 0.0
        rest = total - held.sum()
        # w, if the first had all the rest
        of_held = self.Z.T @ held
        w = of_held + rest * self.Z[first]
        # the free rows say R'Q'w = g_i - g_first: Q'w is `goal`; what of w is across
        # their lines stays
        along = self.Q.T @ w
        goal = triangular(self.R, g[others] - g[first], transposed=True)
        found = triangular(self.R, goal - along)
        across = 0.0  # a square Q leaves nothing
        if len(others) < len(w):
            across = w - self.Q @ along
        w = self.Q @ goal + across
        bias = float(g[first] - self.Z[first] @ w)
        return np.append(rest - found.sum(), found), w, bias

    def weights(self, row: int) -> np.ndarray | None:
        """The weights with which the lines make up that of another row, if they do."""
        line = self.Z[row] - self.Z[self.rows[0]]
        along = self.Q.T @ line
        across = line - self.Q @ along
        left = float(np.linalg.norm(across))
        size = float(np.linalg.norm(line))
        if left > max(DEPENDENT * size, self.least):
            return None
        found = triangular(self.R, along)
        return np.append(1.0 - found.sum(), found)


def triangular(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """The solution of R x = b, or of R'x = b; LAPACK refuses empty systems."""
    if not len(b):
        return b
    x, _ = dtrtrs(R, b, trans=transposed)
    return x


def size_of(Z: np.ndarray) -> float:
    """The root of the mean of |z_i|^2."""
    mean = (Z**2).sum() / len(Z)
    return float(np.sqrt(mean)) or 1.0  # Z may be all zero
