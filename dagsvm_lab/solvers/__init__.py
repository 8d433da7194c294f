"""Two solvers of one dual, and the certificate that judges both.

`solve_qp` is exact (cvxopt), `solve_smo` is fast (NumPy); `certify` recomputes objectives, gap and the
largest KKT violation of either's answer from the kernel alone.
"""

from .dual import Certificate, Dual, certify
from .qp import solve_qp
from .smo import solve_smo

__all__ = ["Certificate", "Dual", "certify", "solve_qp", "solve_smo"]
