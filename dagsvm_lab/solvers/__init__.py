"""How the machines are trained: the solver's concepts, as a map.

`solve_qp` takes interior points (cvxopt), `solve_smo` steps of SMO (NumPy); `certify`
recomputes objectives, gap and the largest KKT violation of an answer from the kernel.

What is solved
    dual (dual.py)          signs s, linear term p, bounds u: every two-class machine
    beta, v                 beta = s alpha; v = s p - K beta, minus the gradient
    certificate             objectives, gap, bias and violation (max v of what may rise
                            less min v of what may fall), judged in float64
    rounding, converged     violation <= max(tol, 4 noise), whatever the solver
    snap                    an alpha within rounding of a bound is at it
    Duals                   the machines of a bank end to end, with their solutions
    path                    the same machines for growing C: a solution starts the next
    direct dual (direct.py) all classes at once: Crammer-Singer, Weston-Watkins
How
    bank (solve.py)         which machine goes where, and the warning at the end
    step (steps.py)         SMO of second order on one dual, or on a stack of them
    H                       half squared distances, which steps take in K's place
    short (short.py)        whole duals stacked: SMO, then Newton, to the last digit
    long (long.py, grow.py)  active rows of many duals, grown till none violates
    judge (search.py)       v, violation and objective on all rows
    rest (active.py)        active rows that pull outwards leave, violators come in
    Newton (newton.py)      all free variables of a stack by one linear system each
    hard (hard.py)          low rank, equal rows, huge C: from K = Z Z' (lowrank.py)
    active set (vertex.py)  crossover, then from vertex to vertex by lines (lines.py)
    qp (qp.py)              cvxopt's interior points, then hard.py: solver="qp" alone
    working set (working.py)  rows of a direct dual: descent, then conjugate gradients
    narrow (narrow.py)      linear, few inputs: interior points, then vertex.py
    interior (interior.py)  Mehrotra's method: direct duals of few rows that take long
    inner (inner.py)        the same for linear machines: narrow ones, and in hard.py
    ball (ball.py)          the smallest enclosing ball, by vertex.py
Kernel values
    table (table.py)        those of many machines, in units that classes can share
    values (values.py)      those of long duals, of active rows and for judging
    columns (columns.py)    rows of the kernel matrix, computed on demand and kept
"""

from .dual import Certificate, Dual, certify
from .long import solve_smo
from .qp import solve_qp

__all__ = ["Certificate", "Dual", "certify", "solve_qp", "solve_smo"]
