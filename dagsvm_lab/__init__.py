"""Four papers on multiclass SVMs, as estimators, notebooks and computed verdicts.

The estimators and the common helpers are reachable from here and imported on first use,
so that `import dagsvm_lab` costs next to nothing.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

__version__ = "3.0.0"

_NAMES = {
    "systems": "OneVsRestSVC MaxWinsSVC AndGateSVC DAGSVC AdaptiveDAGSVC BinaryTreeSVC "
    "DecisionTreeSVC DCSVC FilteredDAGSVC PosteriorSVC ECOCSVC CrammerSingerSVC "
    "WestonWatkinsSVC",
    "systems.search": "tune",
    "systems.comparison": "compare",
    "graphs": "DecisionGraph",
    "kernels": "Kernel gamma_from_sigma",
    "plots.displays": "BankDisplay GraphDisplay",
    "solvers": "solve_qp solve_smo",
    "report.record": "Record",
    "report.tables": "show",
    "datasets": "load catalogue",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_NEEDS_PANDAS = {"Record", "show"}  # reachable by name, and refused in a sentence
_MISSING = set() if find_spec("pandas") else _NEEDS_PANDAS
__all__ = ["__version__", *(name for name in _HOME if name not in _MISSING)]

if TYPE_CHECKING:  # what the table says, for type checkers and editors
    from .datasets import catalogue as catalogue
    from .datasets import load as load
    from .graphs import DecisionGraph as DecisionGraph
    from .kernels import Kernel as Kernel
    from .kernels import gamma_from_sigma as gamma_from_sigma
    from .plots.displays import BankDisplay as BankDisplay
    from .plots.displays import GraphDisplay as GraphDisplay
    from .report.record import Record as Record
    from .report.tables import show as show
    from .solvers import solve_qp as solve_qp
    from .solvers import solve_smo as solve_smo
    from .systems import *  # noqa: F403
    from .systems.comparison import compare as compare
    from .systems.search import tune as tune


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
