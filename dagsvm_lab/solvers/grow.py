r"""The loop of long duals: active sets that grow, of all duals of a chunk at once.

    active rows: a few of each side
    until no row of a dual violates by more than tol:
        step the active rows until they violate by no more than `aim`
        judge: v, the violation and the objective, on all rows
        aim lower; leave out active rows that rest at a bound, take in the worst others

After every judgement sum b = 0, lo <= b <= hi, and v is right on all rows. The
objective never rises. A dual ends where it is solved, out of steps, or has gained
nothing in four judgements: then rounding is all that is left, or K is not positive
semidefinite.

Steps are those of steps.py, on the stacked values of few active rows. Active rows that
take long are solved by Newton's method (newton.py), those that take very long by
hard.py, and so is a dual that takes too long altogether. search.py holds what is known
of the duals between steps, and active.py chooses the active rows by it.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| SPREAD = 1.6 | width over width | of active sets stacked together. |
| | | Letter: 1.2 1.04, 2.5 1.20; Pendigits: 1.01, .97 |
| NARROW_ROWS = 16,384 | stacked rows | fewer are stacked whatever their widths. |
| | | Segment, Pendigits: a quarter .99, 1.01, four times 1.01, 1.00 |
| SLOW = 100 | steps, and one a row, till Newton's method | One-versus-rest, |
| | | C = 1000, Segment: never 1.56, 400 1.09; Vehicle: never 2.21, 400 1.27 |
| HARD_STEPS = 4 | times these steps, till hard.py | 2 .5 to 1.3, 8 .9 to 2.8; a |
| | | cubic kernel on Covertype: 2 1.1, 8 .8 |
| HARD_ROWS = 700 | active rows | hard.py solves no more. Segment, one class against |
| | | the others, cubic, C = 1e4: never 26; Covertype: 1000 1.4 |
| AGAIN = 2 | times the steps, after which hard.py is asked again | 10 1.0 |
| SYSTEM = 240,000 | cubed free rows that are worth a step | a dual whose system costs |
| | | more than a step a row takes as many first. Covertype's pairs, C = 10: never |
| | | 1.95, 80,000 .97; C = 100: 1.77, .89; Letter one-versus-rest: 1.00, .91 |
| LEAST_GAIN = 1e-12 | of the objective | a smaller fall may be rounding; |
| LEAST_SINGLE_GAIN = 1e-6 | of the objective | in float32 |
"""

from collections.abc import Iterator

import numpy as np

from .active import aim_anew, choose_next
from .columns import arrays
from .dual import ranges, span, starts
from .hard import HardDual, solve_hard
from .lowrank import KeptFactor, centred_factor
from .newton import solve_newton
from .search import Search
from .steps import Point, smo_one, smo_stack
from .table import own_matrices
from .values import KernelValues

SPREAD = 1.6
NARROW_ROWS = 16_384
SLOW = 100
HARD_STEPS = 4
HARD_ROWS = 700
AGAIN = 2
SYSTEM = 240_000
LEAST_GAIN = 1e-12
LEAST_SINGLE_GAIN = 1e-6


def run(search: Search, values: KernelValues, tol: float) -> None:
    """Bring every dual to `tol`, or as far as it goes: the loop at the top."""
    exact = values.dtype == np.float64
    search.allow(exact)
    least = LEAST_GAIN if exact else LEAST_SINGLE_GAIN
    every = np.arange(len(search.steps))
    has_steps = search.steps < search.limit
    live = every[has_steps & ~search.solved(every, tol)]
    while len(live):
        step(search, values, live)
        search.judge(live, values.products(search, live))
        search.count_gains(live, least)
        if exact:
            for k in live[search.gives_up(live, tol)]:
                finish_hard(search, values, k)
        live = live[~search.ended(live, tol)]
        choose_next(search, live, tol)


def judge_in_double(search: Search, values: KernelValues) -> None:
    """Judge in float64 what the loop has found in float32, and aim at what is left.

    Only near rows are judged anew: at the others float64 finds no violation either.
    """
    some = np.flatnonzero(np.isfinite(search.violation))
    near = search.near()
    f = search.goal - search.v  # as float32 has it, which stays at rows not near
    for k in some:
        # all rows with beta are near: no term of K beta is missing
        rows = search.first[k] + np.flatnonzero(near[search.of(k)])
        ids = values.ids[rows]
        f[rows] = values.rows[k].within(ids, search.beta[rows], values.each)
    judged, _ = search.rows_of(some)
    search.judge(some, f[judged])
    aim_anew(search, some)


def finish_hard(search: Search, values: KernelValues, k: int) -> None:
    """Solve dual k by hard.py, if it is short or of low rank, or has taken long."""
    own = search.of(k)
    prepared_rows = values.rows[k]
    ids = values.ids[own]
    left = prepared_rows.left[ids]
    s = search.duals.s[own]
    p = search.duals.p[own]
    u = search.duals.u[own]
    most_rank = search.most_rank(k)

    def columns(at: np.ndarray) -> np.ndarray:
        """Kernel columns of some of the dual's rows."""
        return prepared_rows.block(left, ids[at])

    def factored(live_diagonal, live_columns) -> np.ndarray | None:
        """The factor of K: that of the dual before, if it had the same rows."""
        live = ids[u > 0]
        kept = search.factor
        if kept is None or not kept.is_of(prepared_rows, live, most_rank):
            Z = centred_factor(live_diagonal, live_columns, most_rank)
            search.factor = KeptFactor(prepared_rows, live, most_rank, Z)
        return search.factor.Z

    dual = HardDual(prepared_rows.diagonal(ids), columns, s, p, u)
    beta = solve_hard(dual, search.beta[own], factored=factored, inside=True)
    search.allowed[k] = min(search.limit[k], AGAIN * search.steps[k])
    if beta is None:  # of high rank: on with SMO
        return
    search.beta[own] = beta
    one = np.array([k])
    search.judge(one, values.products(search, one))
    search.count_gains(one, LEAST_GAIN)


def step(search: Search, values: KernelValues, some: np.ndarray) -> None:
    """Step the active rows of some duals until they violate by no more than `aim`."""
    rows, count = search.active_rows(some)
    first = starts(count)  # k counts within `some` from here on
    room = search.settings.cache_size * 2**18  # a quarter of the MB, in bytes
    alone = np.zeros(len(some), bool)
    if values.shared:  # many active rows step alone, where their kernel rows are kept
        for k in np.flatnonzero(count > search.settings.alone):
            own = rows[span(first, count, k)]
            alone[k] = values.columns[some[k]].learn(values.ids[own])
    for k in np.flatnonzero(alone):
        own = rows[span(first, count, k)]
        step_alone(search, values, some[k], own, room / alone.sum())
    together = np.flatnonzero(~alone)
    for group in groups(together, count, room / values.dtype.itemsize):
        own = rows[ranges(first[group], count[group])]
        step_stack(search, values, some[group], own, count[group])


def groups(which: np.ndarray, count: np.ndarray, most: float) -> Iterator[np.ndarray]:
    """Duals of similarly many active rows: padding to the widest costs little.

    The stacked kernels of several have at most `most` values.
    """
    by_count = np.argsort(count[which], kind="stable")
    order = which[by_count]
    while len(order):
        # of a group that ends here: the width that it is padded to, and its duals
        width = count[order].astype(float)
        n = np.arange(1, len(order) + 1)
        unlike = width > SPREAD * width[0] + 16  # stacks are padded to multiples of it
        many_rows = n * width > NARROW_ROWS
        many_values = n * width**2 > most
        over = (unlike & many_rows) | many_values
        over[0] = False  # one dual is a group, whatever its size
        size = over.argmax() if over.any() else len(order)
        yield order[:size]
        order = order[size:]


def step_alone(search: Search, values: KernelValues, k: int, rows, room: float) -> None:
    """Step the many active `rows` of dual k on kept kernel rows, cut when asked for.

    Those cut are kept while `room` bytes last.
    """
    ids = values.ids[rows].tolist()
    place = values.place[rows]
    half = values.half[rows]
    columns = values.columns[k]
    spare = arrays(len(rows), values.dtype)

    def fetch(i: int) -> np.ndarray:
        """H of the active row i."""
        K = columns.row(ids[i]).take(place, out=next(spare), mode="clip")
        return values.halve(K, half, half[i])

    every = slice(None)
    point = search.point(rows, every, rows.shape, values.dtype)
    row_bytes = len(rows) * values.dtype.itemsize
    most = max(2, int(room / row_bytes))
    left = search.allowed[k] - search.steps[k]
    search.steps[k] += smo_one(fetch, point, search.aim[k], left, most)
    search.store(rows, point, every)


def step_stack(search: Search, values: KernelValues, group, rows, count) -> None:
    """Step the active `rows` of the duals `group`, `count` of each, in stacked arrays.

    Those that take long go on by Newton's method; where that fails, by more steps; and
    if that takes very long, and they are few, by hard.py.
    """
    at, shape = stacked(count)
    table = own_matrices(values.half_distances(group, rows, at, shape))
    point = search.point(rows, at, shape, values.dtype)
    left = search.allowed[group] - search.steps[group]
    most = np.minimum(left, patience(point, count))
    taken = smo_stack(table, point, search.aim[group], most)
    search.store(rows, point, at)
    search.steps[group] += taken
    first = starts(count)
    for k in np.flatnonzero((taken >= most) & (taken < left)):
        t = group[k]
        own = rows[span(first, count, k)]
        if step_newton(search, t, own):
            continue
        one = point.of(k)
        rest = left[k] - taken[k]
        again = min(rest, HARD_STEPS * most[k]) if count[k] <= HARD_ROWS else rest
        more = smo_one(table.half(k), one, search.aim[t], again)
        search.steps[t] += more
        search.store(own, one, slice(count[k]))
        took_all = more == again
        if took_all and again < rest:  # never with many rows, where `again` is the rest
            step_hard(search, t, own)


def stacked(count: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], tuple[int, int]]:
    """Where rows stand in a stack of duals with `count` each, and the stack's shape.

    That is, each row's dual, and its place there. The width is a multiple of 16.
    """
    dual = np.repeat(np.arange(len(count)), count)
    place = ranges(np.zeros_like(count), count)
    width = -(-count.max() // 16) * 16
    return (dual, place), (len(count), width)


def patience(point: Point, count: np.ndarray) -> np.ndarray:
    """Steps to try before Newton's method, for each dual of a stack.

    They are the more, the more its linear system would cost.
    """
    inside = (point.beta > point.lo) & (point.beta < point.hi)
    free = inside.sum(1)
    return SLOW + np.maximum(count, free**3 // SYSTEM)


def step_newton(search: Search, k: int, rows: np.ndarray) -> bool:
    """Solve the active `rows` of dual k by Newton's method; whether it could."""
    K, goal = active_system(search, k, rows)
    table = own_matrices(K[None])  # Newton's method reads K alone
    # (1, rows): a stack of one, as all that goes in
    s = search.duals.s[None, rows]
    u = search.duals.u[None, rows]
    beta = search.beta[None, rows]
    found, v, settled, rounds = solve_newton(
        table, s, u, goal[None], beta, np.zeros(1, int), beta.sum()
    )
    search.steps[k] += int(rounds[0])
    if settled[0]:
        search.beta[rows] = found[0]
        search.v[rows] = v[0]
    return bool(settled[0])


def step_hard(search: Search, k: int, rows: np.ndarray) -> None:
    """Solve the active `rows` of dual k by hard.py."""
    K, goal = active_system(search, k, rows)
    s = search.duals.s[rows]
    u = search.duals.u[rows]
    beta = search.beta[rows]
    found = solve_hard(HardDual.of_matrix(K, s, s * goal, u, beta.sum()), beta)
    search.beta[rows] = found
    search.v[rows] = goal - K @ found


def active_system(
    search: Search, k: int, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(K, goal) of the active `rows` of dual k, its other rows held.

    Support vectors that are not active stay as they are: their share goes into goal.
    """
    support = search.first[k] + np.flatnonzero(search.beta[search.of(k)])
    held = support[~search.active[support]]
    both = np.concatenate([rows, held])
    kernel = search.kernels[k if len(search.kernels) > 1 else 0]
    K = kernel.square(search.X, search.duals.rows[both])
    n = len(rows)
    own = np.ascontiguousarray(K[:n, :n])
    of_held = K[:n, n:] @ search.beta[held]
    return own, search.goal[rows] - of_held
