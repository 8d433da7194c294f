"""Four papers on multiclass support vector machines, as estimators, notebooks and computed verdicts.

The estimators and the common helpers are reachable from here and imported on first use, so that
`import dagsvm_lab` costs next to nothing.
"""

from importlib import import_module

__version__ = "2.0.0"

_HOME = {
    "OneVsRestSVC": "systems",
    "MaxWinsSVC": "systems",
    "AndGateSVC": "systems",
    "DAGSVC": "systems",
    "AdaptiveDAGSVC": "systems",
    "BinaryTreeSVC": "systems",
    "DCSVC": "systems",
    "PosteriorSVC": "systems",
    "ECOCSVC": "systems",
    "DecisionTreeSVC": "systems",
    "tune": "systems.search",
    "CrammerSingerSVC": "systems.direct",
    "WestonWatkinsSVC": "systems.direct",
    "DecisionGraph": "graphs",
    "Kernel": "kernels",
    "gamma_from_sigma": "kernels",
    "solve_qp": "solvers",
    "solve_smo": "solvers",
    "Record": "report.record",
    "show": "report.tables",
    "load": "datasets",
    "catalogue": "datasets",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
