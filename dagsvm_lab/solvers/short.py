r"""Short duals, whole and stacked: SMO for all machines at once, then Newton's method.

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha)

A bank of short machines costs Python per machine, not arithmetic. Here the duals of
dual.py stand in arrays (machines, rows), padded by rows whose p and u are 0, their
kernel values in a table (table.py), and nothing is done machine by machine. For several
values of C (a path) a table is made once; a machine with no alpha at its bound is that
of every larger C, and one with few of them starts from where it is.

1. SMO (steps.py), in float32 where that is safe, until the violation is a small share
   of the first one.
2. Newton's method on all free variables (newton.py), which ends at the exact solution.
3. What it does not settle goes on from the feasible point of step 1: SMO to a smaller
   share, Newton's method again. What is still open is given back (hard.py ends it).

After every step 0 <= alpha <= u and sum s alpha = 0.

Tried and not kept: Newton's method from zero (Vowel: half of the machines go round in
circles).

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| SHORT_ROWS = 700 | rows of a machine | more: long.py. Vehicle (435 rows), C = 100: |
| | | 256 2.4; Optdigits (760): 800 1.8; Segment (660), C = 1, 100, 1000: 500 .83, |
| | | .91, .95; five C of its folds (528): 500 1.35 to 1.75 |
| WIDE_ROWS = 500 | rows, where WIDE_INPUTS make kernel values dear and none is |
| WIDE_INPUTS = 32 | shared: 4,000 rows of USPS, linear: as SHORT_ROWS 1.26, 400 1.00; |
| | | 3,000 rows of 11 blobs, 40 inputs: 1.31; of Pendigits, 16 inputs: 500 1.20 |
| LEVELS | of the first violation | Vowel: a first level of .1 1.76, .001 .99; |
| | | Vehicle: 1.12, 1.06; Segment, C = 1000: the first two alone 1.49 |
| STEPS_A_ROW = 1 | steps a row and level | Vehicle, C = 100: 4 1.22; |
| | | Glass, C = 100: 3 1.26, .5 1.02 |
| STACK_CELLS = 2^21 | kernel values stacked at once | Vowel: a sixteenth 1.84, |
| | | eight times .98 |
| STACK_ROWS = 2^16 | rows stacked at once | 600 classes of 2 rows: a quarter 1.01, |
| | | twice 1.02; with no limit 2.2 |
| WARM = .2 | share of rows at their bound | from more, a larger C starts from zero. |
| | | Vowel, five C: 0 1.00, always warm 1.09 |
| MANY_CELLS = 2^22 | kernel values of all machines | more are shared by classes. |
| | | Vehicle: a quarter 1.15; Segment: never 1.6 |
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel
from ..rows import prepared
from .dual import Duals, box, is_solved, measure, ranges, rounding, snap
from .newton import solve_newton
from .steps import Point, smo_stack, split_gradient
from .table import (
    MOST_SHARED,
    KernelTable,
    SharedLayout,
    half_distances,
    own_matrices,
    scratch_array,
)

SHORT_ROWS = 700
WIDE_ROWS = 500
WIDE_INPUTS = 32
LEVELS = (0.01, 0.0003, 0.00001)
STEPS_A_ROW = 1
STACK_CELLS = 1 << 21
STACK_ROWS = 1 << 16
MANY_CELLS = 1 << 22
WARM = 0.2


def most_rows(X, kernel: Kernel, alone: bool) -> int:
    """Rows up to which a machine is short; `alone`: for one C and one kernel."""
    wide = X.shape[1] >= WIDE_INPUTS and not kernel.precomputed
    return WIDE_ROWS if wide and alone else SHORT_ROWS


def solve_short(
    X,
    kernel: Kernel,
    path: list[Duals],
    which: np.ndarray,
    kernels: list[Kernel] | None = None,
    progress: Callable = int,
    codes: np.ndarray | None = None,
    tol: float = 1e-3,
) -> list[np.ndarray]:
    """Solve the machines `which` of every Duals of a path exactly, in place.

    Parameters
    ----------
    X, kernel : the rows, and the kernel of all machines.
    path : the same machines, with bounds that grow from one Duals to the next.
    which : indices of machines.
    kernels : each machine's own kernel, where they differ.
    progress : told how many duals are done.
    codes : the classes of the rows of X, where machines are of whole classes.
    tol : violation at which a machine is `converged`.

    Returns
    -------
    list of ndarray
        For every Duals, the machines that are still open: each has a feasible alpha.
    """
    length = np.diff(path[0].ends)
    which = which[np.argsort(-length[which], kind="stable")]
    values = _Values(X, kernel, kernels, which)
    shared = None if codes is None else _shared_stacks(values, path[0], which, codes)
    stacks = shared or _own_stacks(values, path[0], which)
    still_open: list[list] = [[] for _ in path]
    for stack in stacks:
        for k, settled in enumerate(_solve_path(stack, path, tol)):
            still_open[k].append(stack.which[~settled])
        progress(len(stack.which) * len(path))
    return [np.sort(np.concatenate(parts)) for parts in still_open]


class _Values:
    """The kernels of the machines `which`, and what computes their values.

    Attributes
    ----------
    kernels : each machine's own kernel; None where all have one.
    number : (machines,) each machine's place in `every` and `uses`.
    uses : the different kernels, with how often they are used.
    every : rows prepared for each of them; None for a kernel of one machine alone.
    single : whether float32 is safe for steps.
    """

    def __init__(self, X, kernel: Kernel, kernels, which: np.ndarray):
        self.X = X
        self.kernels = kernels
        # one kernel of all counts as used more than once
        own = [kernel, kernel] if kernels is None else [kernels[t] for t in which]
        self.uses = Counter(own)
        self.every = []
        for one, uses in self.uses.items():
            self.every.append(prepared(X, one) if uses > 1 else None)
        shared = all(rows is not None for rows in self.every)
        self.single = shared and all(one.single_is_safe(X) for one in self.uses)
        self.number = np.zeros(which.max(initial=-1) + 1, int)
        if kernels is not None:
            order = {one: place for place, one in enumerate(self.uses)}
            self.number[which] = [order[kernels[t]] for t in which]

    def squares(self, part: np.ndarray, rows: np.ndarray, length: np.ndarray):
        """Kernel matrices (machines, width, width) of the machines `part`.

        `rows` (machines, width) are theirs, of which the first `length` are real. The
        machines are ordered by `number`.
        """
        width = rows.shape[1]
        K = scratch_array("K", (len(part), width, width), float)
        number = self.number[part]
        # machines of one kernel stand side by side
        ends = np.flatnonzero(np.diff(number)) + 1
        for group in np.split(np.arange(len(part)), ends):
            first = group[0]
            last = group[-1] + 1
            prepared_rows = self.every[number[first]]
            if prepared_rows is not None:
                prepared_rows.squares(rows[first:last], K[first:last])
                continue
            # a kernel of one machine alone
            n = length[first]
            own = self.kernels[part[first]]
            K_own = own.square(self.X, rows[first, :n])
            K[first] = 0.0
            K[first, :n, :n] = K_own
        return K


@dataclass(frozen=True)
class _Stack:
    """Some machines and the table of their kernel values.

    Attributes
    ----------
    which : the machines.
    at : (machine, row) in the stack of each of their variables, and
    flat : where each variable is in a Duals.
    """

    which: np.ndarray
    table: KernelTable
    at: tuple[np.ndarray, np.ndarray]
    flat: np.ndarray


def _variables(
    duals: Duals, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(machine, local, flat) of each variable of some machines.

    That is, its machine's place in `which`, and its own in the machine and in `duals`.
    """
    n = np.diff(duals.ends)[which]
    machine = np.repeat(np.arange(len(which)), n)
    local = ranges(np.zeros_like(n), n)
    flat = ranges(duals.ends[which], n)
    return machine, local, flat


def _shared_stacks(
    values: _Values, duals: Duals, which: np.ndarray, codes: np.ndarray
) -> Iterator[_Stack] | None:
    """Stacks of machines that share kernel values; None where that does not pay."""
    length = np.diff(duals.ends)[which]
    cells = int((length**2).sum())
    if not values.single or cells <= MANY_CELLS:
        return None
    _, _, flat = _variables(duals, which)
    layout = SharedLayout(np.unique(duals.rows[flat]), codes)
    if len(which) * len(layout.rows) // layout.size > cells:
        return None  # classes of few rows: steps cost more than kernel values
    if len(values.every) * layout.cells > min(MOST_SHARED, cells):
        return None
    return _stacks_over(layout, values, duals, which)


def _stacks_over(
    layout: SharedLayout, values: _Values, duals: Duals, which: np.ndarray
) -> Iterator[_Stack]:
    """Stacks of the machines `which`, the longest first, over one layout of rows."""
    singles = [prepared(values.X, own, np.float32) for own in values.uses]
    blocks = layout.share(values.every, singles)
    longest = int(np.diff(duals.ends)[which[0]])
    some = max(1, STACK_ROWS // longest)
    for first in range(0, len(which), some):
        part = which[first : first + some]
        machine, _, flat = _variables(duals, part)
        across, local = layout.units(len(part), machine, duals.rows[flat])
        table = KernelTable(blocks, values.number[part], across, layout.size)
        yield _Stack(part, table, (machine, local), flat)


def _own_stacks(values: _Values, duals: Duals, which: np.ndarray) -> Iterator[_Stack]:
    """Stacks of machines that have a kernel matrix each, the longest first.

    One at a time: the next one's table overwrites H (`scratch_array`).
    """
    length = np.diff(duals.ends)
    first = 0
    while first < len(which):
        width = max(1, int(length[which[first]]))
        some = max(1, min(STACK_CELLS // width**2, STACK_ROWS // width))
        part = which[first : first + some]
        first += len(part)
        by_kernel = np.argsort(values.number[part], kind="stable")
        part = part[by_kernel]
        machine, local, flat = _variables(duals, part)
        rows = np.zeros((len(part), width), int)  # row 0 fills up
        rows[machine, local] = duals.rows[flat]
        K = values.squares(part, rows, length[part])
        table = own_matrices(half_distances(K, values.single), K)
        yield _Stack(part, table, (machine, local), flat)


@dataclass
class _Point:
    """Where the machines of a stack stand: arrays (machines, rows), and `settled`.

    v = s p - K beta is right for the machines solved last.
    """

    s: np.ndarray
    p: np.ndarray
    u: np.ndarray
    beta: np.ndarray
    v: np.ndarray
    settled: np.ndarray


def _solve_path(stack: _Stack, path: list[Duals], tol: float) -> Iterator[np.ndarray]:
    """Solve the machines of a stack; for each Duals, which of them are settled."""
    shape = stack.table.place.shape
    s, p, u, beta, v = np.zeros((5, *shape))
    point = _Point(s, p, u, beta, v, np.zeros(len(stack.which), bool))
    s[:] = 1.0
    s[stack.at] = path[0].s[stack.flat]
    p[stack.at] = path[0].p[stack.flat]
    length = np.diff(path[0].ends)[stack.which]
    todo = np.arange(len(stack.which))
    for k, duals in enumerate(path):
        if k:
            duals.copy_stats(path[k - 1], stack.which)
        u[stack.at] = duals.u[stack.flat]
        if len(todo):
            steps = _solve(stack.table, point, todo)
            _store(stack, point, todo, duals, steps, tol)
        duals.alpha[stack.flat] = (s * beta)[stack.at]
        yield point.settled.copy()
        # larger bounds change only machines that have a row at its bound
        at_bound = (s * beta >= u) & (u > 0)
        full = at_bound.sum(1)
        todo = np.flatnonzero(~point.settled | (full > 0))
        beta[full > WARM * length] = 0.0


def _solve(table: KernelTable, point: _Point, todo: np.ndarray) -> np.ndarray:
    """Solve the machines `todo` from where they are; returns the steps of each."""
    steps = np.zeros(len(point.beta), int)
    live = todo
    for level in LEVELS:
        steps[live] += _descend(table, point, live, level)
        s = point.s[live]
        goal = s * point.p[live]
        beta = point.beta[live]
        found = solve_newton(table, s, point.u[live], goal, beta, live)
        point.beta[live], point.v[live], point.settled[live], rounds = found
        steps[live] += rounds
        live = live[~point.settled[live]]
        if not len(live):
            break
    return steps[todo]


def _descend(
    table: KernelTable, point: _Point, live: np.ndarray, level: float
) -> np.ndarray:
    """Take steps of the machines `live`, whose beta changes; how many of each."""
    s = point.s[live]
    p = point.p[live]
    u = point.u[live]
    b = point.beta[live]
    lo, hi = box(s, u)
    v = s * p
    if b.any():
        v = v - table.times(b, live)
    here = Point(split_gradient(v, b, lo, hi, table.H.dtype), b, lo, hi)
    # the violation of beta = 0: the largest p of one side and of the other
    above = np.where(s > 0, p, 0.0)
    below = np.where(s < 0, p, 0.0)
    of_zero = above.max(1) + below.max(1)
    limit = 50 + STEPS_A_ROW * (u > 0).sum(1)
    # machines with a matrix each have small systems: Newton's method has a last quarter
    leave = len(live) // 4 if table.units == 1 else 0
    steps = smo_stack(table.part(live), here, level * of_zero, limit, leave)
    point.beta[live] = here.beta
    return steps


def _store(
    stack: _Stack, point: _Point, todo: np.ndarray, duals: Duals, steps, tol: float
) -> None:
    """Put what was found of the machines `todo` into `duals`, and certify it.

    beta within rounding of a bound goes to it; `settled` falls where one is not solved.
    """
    s = point.s[todo]
    p = point.p[todo]
    u = point.u[todo]
    alpha = snap(s * point.beta[todo], u)
    beta = s * alpha
    if (beta != point.beta[todo]).any():
        point.beta[todo] = beta
        point.v[todo] = s * p - stack.table.times(beta, todo)
    noise = rounding(stack.table.largest_diagonal[todo, None], alpha)
    found = measure(s * p - point.v[todo], s, p, u, alpha, noise=noise)
    converged = is_solved(found.kkt_violation, tol, noise)
    point.settled[todo] &= converged
    duals.store_stats(stack.which[todo], found, steps, converged)
