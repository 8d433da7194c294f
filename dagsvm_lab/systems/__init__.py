"""The systems of the four papers, one family a file; each builds its graph over a bank of two-class machines."""

from .adaptive import AdaptiveDAGSVC
from .codes import ECOCSVC
from .conformal import ConformalDAGSVC
from .dcsvm import DCSVC
from .ddag import DAGSVC
from .direct import CrammerSingerSVC, WestonWatkinsSVC
from .posterior import PosteriorSVC
from .trees import BinaryTreeSVC, DecisionTreeSVC
from .wins import AndGateSVC, MaxWinsSVC, OneVsRestSVC

__all__ = ["AdaptiveDAGSVC", "AndGateSVC", "BinaryTreeSVC", "ConformalDAGSVC", "CrammerSingerSVC", "DAGSVC", "DCSVC",
           "DecisionTreeSVC", "ECOCSVC", "MaxWinsSVC", "OneVsRestSVC", "PosteriorSVC", "WestonWatkinsSVC"]  # fmt: skip
