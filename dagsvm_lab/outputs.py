"""What a bank answers: outputs of blocks of rows, and of one row walked machine by machine."""

import numpy as np
from scipy.sparse import csr_matrix, issparse

from .kernels import Kernel, Rows, SparseRows, prepared, single_is_safe, squared

ROWS = 240  # rows evaluated at a time
OUTPUTS = 1 << 24  # outputs of a block of rows: for more machines than fit, blocks have 16 rows
EDGE = 8  # rows evaluated more than wanted on both sides of a block, where BLAS may round otherwise
FEW = 256  # support vectors up to which outputs are always float64
MODEST = 1e3  # largest coefficient for which float32 outputs are good to about 1e-4
DENSE = 1 << 16  # coefficients (machines x support vectors) up to which a dense product beats a sparse one


class Outputs:
    """Called with a block of rows, the outputs of machines that share a kernel, without their biases.

    One class at a time: its support vectors meet only the machines that use them, which for all pairs saves a factor of
    half the number of classes over one product with every coefficient.
    """

    def __init__(self, bank, kernel: Kernel, coef: csr_matrix, fast: bool = True):
        used = np.unique(coef.indices)
        used = used[np.argsort(bank.support_class[used], kind="stable")]
        self.support, self.n_machines, self.width = bank.support[used], coef.shape[0], bank.height + 2 * EDGE
        vectors = None if bank.vectors is None or not len(used) else bank.vectors[used]
        single = fast and in_single(vectors, kernel, coef)
        for dtype in (np.float32, np.float64) if single else (np.float64,):
            self.rows = None if vectors is None else prepared(vectors, kernel, dtype)
            self.pieces = self._weighed(bank.support_class[used], coef, used, dtype)
            # some BLAS kernels round the columns of a float32 product differently: then float64 it is
            tried = (0, -1) if dtype is np.float32 else ()
            probes = [self(np.repeat(vectors[[k]], self.width, axis=0)) for k in tried]
            if all((probe == probe[0]).all() for probe in probes):
                break

    def _weighed(self, classes: np.ndarray, coef: csr_matrix, used: np.ndarray, dtype) -> list[tuple]:
        """(some support vectors, the machines that use them, their coefficients), class by class."""
        if self.width < ROWS:  # so many machines that each has few of the support vectors
            return [(slice(None), None, coef[:, used].astype(dtype))]
        pieces, columns = [], coef.tocsc()[:, used]
        for part in [slice(*np.searchsorted(classes, [c, c + 1])) for c in np.unique(classes)]:
            ends = columns.indptr[part.start : part.stop + 1]
            inside = slice(ends[0], ends[-1])
            machines, row = np.unique(columns.indices[inside], return_inverse=True)
            weights = np.zeros((len(machines), part.stop - part.start), dtype)
            weights[row, np.repeat(np.arange(weights.shape[1]), np.diff(ends))] = columns.data[inside]
            pieces.append((part, machines, weights))
        return pieces

    def __call__(self, X) -> np.ndarray:
        left = None if self.rows is None else self.rows.place(X)
        total = np.zeros((self.n_machines, self.width)) if self.width >= ROWS else None
        for part, machines, weights in self.pieces:
            tile = X[:, self.support[part]].T if left is None else self.rows.under(left, part)
            if isinstance(self.rows, SparseRows):  # only the block's own rows: products have its width all the same
                tile = np.pad(tile, ((0, 0), (EDGE, self.width - EDGE - tile.shape[1])))
            if machines is None:
                return (weights @ np.ascontiguousarray(tile[:, EDGE:-EDGE])).T
            total[machines] += weights @ np.ascontiguousarray(tile)
        return total.T[EDGE:-EDGE]


def in_single(vectors, kernel: Kernel, coef: csr_matrix) -> bool:
    """Whether float32 is enough for the outputs of machines over these support vectors, to about 1e-4."""
    some = vectors is not None and vectors.shape[0] > FEW
    return bool(some and np.abs(coef.data).max() <= MODEST and single_is_safe(vectors, kernel))


def slopes(coef: csr_matrix, squares: np.ndarray, inputs: int) -> tuple[np.ndarray, np.ndarray, float]:
    """(flat, steep, root): rounding is up to (steep + flat root |x|^2) units, with `squares` of the vectors."""
    size, root = abs(coef), 0.25 * np.sqrt(inputs + 4)
    flat = size @ np.ones(len(squares))
    return flat, size @ (root * squares) + 0.25 * np.sqrt(np.diff(coef.indptr) + 1) * flat, root


def doubtful(f: np.ndarray, vectors, kernel: Kernel, coef: csr_matrix, X: np.ndarray, times: int = 1) -> np.ndarray:
    """Rows of X of whose outputs f some might have another sign if they were of float32, and may be so.

    Where f itself is of float32, two roundings lie between: `times` is 2.
    """
    if not in_single(vectors, kernel, coef):
        return np.empty(0, int)
    place = np.sqrt(2.0 * kernel.gamma) * kernel.shrunk(vectors.mean(axis=0))
    own, new = (squared(np.sqrt(2.0 * kernel.gamma) * kernel.shrunk(rows) - place) for rows in (vectors, X))
    flat, steep, root = slopes(coef, own, X.shape[1])
    bound = times * np.finfo(np.float32).eps * (steep + np.outer(root * new, flat))
    return np.flatnonzero((np.abs(f) <= bound).any(axis=1))


class Unsure(ArithmeticError):
    """One row's answer is within rounding of another, or its kernel has no lean form: `Bank.decision` decides."""


class Lean:
    """What single rows are evaluated with: support vectors in float64, and for each machine its own of them."""

    def __init__(self, bank):
        kernel = bank.kernel
        plain = bank.kernels is None and bank.vectors is not None and not issparse(bank.vectors) and bank.coef.nnz
        if not plain or callable(kernel.name):
            raise Unsure("single rows of this kernel go through blocks")
        self.rows, self.kernel, blocks = Rows(bank.vectors, kernel), kernel, bank._whole[0][1].rows
        self.unit = np.finfo(np.float32).eps if blocks.dtype == np.float32 else 4.0 * np.finfo(float).eps
        Z = self.rows.left[:, :-2] if kernel.name == "rbf" else self.rows.left
        squares, self.sparse, self.bias = squared(Z), bank.coef, bank.bias
        self.coef = bank.coef.toarray() if np.prod(bank.coef.shape) <= DENSE else bank.coef  # for all machines at once
        self.farthest = float(squares.max(initial=0.0))
        self.flat, self.steep, self.root = slopes(bank.coef, squares, Z.shape[1])
        self.machines: list[tuple | None] = [None] * len(self.bias)  # those asked before
        self.unknown, self.shared = np.full(len(bank.support), np.nan), {}  # kernel values; what whole glances share

    def machine(self, t: int) -> tuple[np.ndarray, np.ndarray, float, float, float]:
        """Support vectors, coefficients, bias and rounding of machine t."""
        own = slice(self.sparse.indptr[t], self.sparse.indptr[t + 1])
        numbers = (float(part[t]) for part in (self.bias, self.flat, self.steep))
        self.machines[t] = found = (self.sparse.indices[own], self.sparse.data[own], *numbers)
        return found

    def place(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Prepare x; with it what rounding may do to a kernel value, in units of the blocks' precision."""
        kernel = self.kernel
        if kernel.name == "rbf":
            z = kernel.shrunk(x - self.rows.mean) * np.sqrt(2.0 * kernel.gamma)
            square = float(z.dot(z))
            return np.concatenate([z, [-0.5 * square, 1.0]]), self.root * square
        z = kernel.shrunk(x)
        gamma, more = (1.0, 0.0) if kernel.name == "linear" else (abs(kernel.gamma), abs(kernel.coef0))
        power = kernel.degree if kernel.name == "poly" else 1
        largest = (gamma * np.sqrt(float(z.dot(z)) * self.farthest) + more) ** power
        return z, 16.0 * self.root * power * max(largest, 1.0)


class Walker:
    """Outputs of machines for one row x, each kernel value computed when it is first needed, and kept.

    Sums are formed in another order than in blocks, so outputs equal those of `Bank.decision` up to a bound of their
    rounding. Within it of the number that the output is compared with, `ask` raises `Unsure`, and the row should go
    through blocks: labels are the same whichever way is taken.
    """

    def __init__(self, lean: Lean, x: np.ndarray):
        self.lean, self.k, self.last = lean, lean.unknown.copy(), -1
        self.z, self.error = lean.place(x)

    def ask(self, t: int, cut: float = 0.0) -> float:
        """Compute f_t(x), to be compared with `cut`; the machine asked last is not computed again."""
        if t != self.last:
            own, beta, bias, flat, steep = self.lean.machines[t] or self.lean.machine(t)
            self.last, self.f = t, float(self.values(own).dot(beta)) + bias
            self.slack = self.lean.unit * (steep + flat * self.error)
        if abs(self.f - cut) <= self.slack:
            raise Unsure("an output is what it is compared with, within rounding")
        return self.f

    def values(self, own: np.ndarray) -> np.ndarray:
        k = self.k.take(own)
        missing = k != k
        if missing.any():
            new, rows = own[missing], self.lean.rows
            self.k[new] = rows.finish(rows.right[new].dot(self.z))
            k = self.k.take(own)
        return k

    def ask_some(self, machines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute f_t(x) of machines over the same support vectors; with each a bound of its rounding."""
        lean, first = self.lean, int(machines[0])
        if first not in lean.shared:
            lean.shared[first] = lean.machine(first)[0], np.stack([lean.machine(int(t))[1] for t in machines])
        own, beta = lean.shared[first]
        f = beta @ self.values(own) + lean.bias[machines]
        return f, lean.unit * (lean.steep[machines] + lean.flat[machines] * self.error)

    def ask_all(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute every f_t(x); with each a bound of its rounding."""
        lean = self.lean
        self.k = lean.rows.finish(lean.rows.right.dot(self.z))
        return lean.coef @ self.k + lean.bias, lean.unit * (lean.steep + lean.flat * self.error)
