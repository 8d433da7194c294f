"""The systems of the four papers, one family a file.

Each builds its graph over a bank of two-class machines.
"""

from .adaptive import AdaptiveDAGSVC
from .codes import ECOCSVC
from .dcsvm import DCSVC
from .ddag import DAGSVC
from .direct import CrammerSingerSVC, WestonWatkinsSVC
from .filtered import FilteredDAGSVC
from .posterior import PosteriorSVC
from .trees import BinaryTreeSVC, DecisionTreeSVC
from .wins import AndGateSVC, MaxWinsSVC, OneVsRestSVC

__all__ = [
    "AdaptiveDAGSVC",
    "AndGateSVC",
    "BinaryTreeSVC",
    "CrammerSingerSVC",
    "DAGSVC",
    "DCSVC",
    "DecisionTreeSVC",
    "ECOCSVC",
    "FilteredDAGSVC",
    "MaxWinsSVC",
    "OneVsRestSVC",
    "PosteriorSVC",
    "WestonWatkinsSVC",
]
