"""Two solvers of one dual, and the certificate that judges both.

`solve_qp` is exact (cvxopt), `solve_smo` is fast (NumPy); `certify` recomputes objectives, gap and the
largest KKT violation of either's answer from the kernel alone.
"""

from importlib import import_module

_HOME = {"Dual": "dual", "Certificate": "dual", "certify": "dual", "solve_qp": "qp", "solve_smo": "smo"}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
