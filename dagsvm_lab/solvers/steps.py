"""The step that every dual is solved by, for one dual (`lean`) and for a stack of them (`together`).

    minimise 1/2 b'Kb - (s p)'b   with  sum b = 0,  lo <= b <= hi        (b = s alpha, alpha in [0, u])

v = s p - K b is minus the gradient. A step moves b_i up and b_j down by t; the solution has max v over {b < hi} at most
min v over {b > lo}. i is the maximal violator, j the best partner of second order (Fan, Chen, Lin 2005, JMLR
6:1889-1918, WSS 2): it gains most, (v_i - v_j)^2 / eta_ij, where eta_ij = K_ii + K_jj - 2 K_ij.

Two things keep the loop lean.
- v is kept twice, vU is -inf where b may not rise and vL is +inf where it may not fall: one argmax needs no mask.
- Instead of K it uses H_ij = eta_ij / 2. K_in - K_jn is H_jn - H_in plus the same number for every n, and only
  differences of v matter, to steps and to the violation. In float32 (Gaussians, K_ii = 1) H is kept above zero.

| constant | unit | seconds with other values, over today's (one core) |
|---|---|---|
| STRETCH = 1.2 | of the least point along t | Letter: 1 1.07, 1.4 1.06; Vowel: 1.07, 1.04; Vehicle: 1.05, .95 |
| STEPS = 16 | steps between two looks at who is done | Letter: 8 .99, 32 .96; Segment: 1.03, 1.14 |
| FEW = 3 | duals that go one by one | Letter: 1 1.09, 8 1.01; Segment: 1.18, 1.01 |
| TAU | least eta | keeps equal rows from dividing by zero (LIBSVM's value) |
| SLIGHT | added to H in float32 | keeps float32 from calling rows equal that are not |
"""

import numpy as np
from scipy.linalg.blas import daxpy, saxpy

STRETCH = 1.2
STEPS = 16
FEW = 3
TAU = 1e-12
SLIGHT = np.array(5e-7, np.float32)


def together(table, v2, b, lo, hi, stop, limit) -> tuple[np.ndarray, np.ndarray]:
    """(steps, reached) of the duals of a Table; b and the two copies of v change in place.

    When only a few of many are left, they are given back unfinished, to go on in better company.
    """
    taken, reached = np.zeros(len(b), int), np.ones(len(b), bool)
    who = np.flatnonzero(v2[0].max(1) - v2[1].min(1) > stop)
    room = limit[who] >= STEPS
    late, who = who[~room].tolist(), who[room]
    while len(who) > FEW and reached.all():
        v, x, low, high = v2.take(who, 1), b[who], lo[who].ravel(), hi[who].ravel()
        still = open_ = np.ones(len(who), bool)
        while still.sum() > 0.75 * len(who) and still[open_].all():
            t = _march(table, who, v, x, low, high)
            taken[who] += STEPS
            open_ = (v[0].max(1) - v[1].min(1) > stop[who]) & (t > 0)
            still = open_ & (taken[who] + STEPS <= limit[who])
        v2[:, who], b[who] = v, x
        late += who[open_ & ~still].tolist()
        who = who[still]
        if FEW < len(who) <= len(b) // 4:
            reached[who] = False
    for k in late + who[reached[who]].tolist():
        taken[k] += lean(table.half(k), v2[:, k], b[k], lo[k], hi[k], stop[k], limit[k] - taken[k])
    return taken, reached


def _march(table, who, v, x, low, high) -> np.ndarray:
    """Take STEPS steps of the duals `who`, in place; returns the length of each one's last step.

    v and x are those of `who`, low and high theirs end to end.
    """
    P, width = x.shape
    H, row, across = table.H, table.row.take(who, 0).reshape(-1), table.across.take(who, 0)
    own, alone = np.arange(P) * width, table.units == 1
    shift = row[own] - own
    (vU, vL), flat = v, x.reshape(-1)
    fU, fL = vU.reshape(-1), vL.reshape(-1)
    H_i, H_j, gain = np.empty((3, P, width), H.dtype)
    units_i, units_j = (part if alone else part.reshape(*across.shape, -1) for part in (H_i, H_j))
    tau = None if H.dtype == np.float32 else np.full_like(gain, TAU)
    newton, pair, ends = H_j.reshape(-1), np.empty((2, P), int), np.empty((2, P), H.dtype)
    i, j = pair
    for _ in range(STEPS):
        vU.argmax(1, out=i)
        i += own
        H.take(i + shift if alone else row.take(i)[:, None] + across, 0, out=units_i, mode="clip")
        np.subtract(fU.take(i)[:, None], vL, out=gain)
        eta = H_i if tau is None else np.maximum(H_i, tau, out=H_j)
        np.divide(gain, eta, out=H_j)  # twice the unclipped step
        np.abs(gain, out=gain)
        gain *= H_j
        gain.argmax(1, out=j)
        j += own
        t = 0.5 * STRETCH * newton.take(j).astype(float)
        H.take(j + shift if alone else row.take(j)[:, None] + across, 0, out=units_j, mode="clip")
        at, top, floor = flat.take(pair), high.take(pair), low.take(pair)
        np.minimum(t, top[0] - at[0], out=t)
        np.minimum(t, at[1] - floor[1], out=t)
        np.maximum(t, 0.0, out=t)
        H_j -= H_i
        H_j *= t.astype(H.dtype)[:, None]
        v -= H_j
        at[0] += t
        at[1] -= t
        flat[pair] = at
        ends[0], ends[1] = fU.take(i), fL.take(j)
        fU[pair] = np.where(at < top, ends, -np.inf)
        fL[pair] = np.where(at > floor, ends, np.inf)
    return t


def lean(fetch, v2, b, lo, hi, stop: float, limit: int, room: int = 1 << 30, seen=None) -> int:
    """Steps taken until the violation is <= stop, or none is possible; b and the two copies of v change in place.

    fetch(i) computes H_i, above zero in float32; at most about `room` of them are kept, in `seen` for another call on
    the same rows. Only differences of v matter to a step, and K_in - K_jn = H_jn - H_in + the same for every n; eta is
    2 H_ij.
    """
    state, v2 = v2, v2.copy()
    vU, vL = v2
    (gain, size), level = np.empty_like(v2), np.empty((), v2.dtype)
    axpy, tau = (saxpy, None) if v2.dtype == np.float32 else (daxpy, np.full_like(gain, TAU))
    x, low, high = b.tolist(), lo.tolist(), hi.tolist()
    rows = {} if seen is None else seen
    steps = 0
    while x and steps < limit:
        i = int(vU.argmax())
        top = vU.item(i)
        H_i = rows.get(i)
        if H_i is None:
            if len(rows) >= room:
                rows.clear()
            H_i = rows[i] = fetch(i)
        level.fill(top)
        np.subtract(level, vL, out=gain)
        np.abs(gain, out=size)
        gain *= size
        gain /= H_i if tau is None else np.maximum(H_i, tau, out=size)
        j = int(gain.argmax())
        difference = top - vL.item(j)
        # the best partner is rarely the worst violator, but when it is none the whole set may be in order
        if not difference > stop and not top - vL.min() > stop:
            break
        t = min(0.5 * STRETCH * difference / max(H_i.item(j), TAU), high[i] - x[i], x[j] - low[j])
        if not t > 0.0:
            break
        H_j = rows.get(j)
        if H_j is None:
            H_j = rows[j] = fetch(j)
        axpy(H_i, vU, a=t)
        axpy(H_i, vL, a=t)
        axpy(H_j, vU, a=-t)
        axpy(H_j, vL, a=-t)
        x[i] += t
        x[j] -= t
        v_i, v_j = vU.item(i), vL.item(j)
        vL[i], vU[j] = v_i, v_j
        if x[i] >= high[i]:
            vU[i] = -np.inf
        if x[j] <= low[j]:
            vL[j] = np.inf
        steps += 1
    b[:], state[:] = x, v2
    return steps
