"""The systems of the four papers, one family a file.

Each builds its graph over a bank of two-class machines.

What every system has
    classifier.py, base.py    parameters, fitting and answers; a system's hooks
    declared.py, like_svc.py  kinds of parameters; attributes under SVC's names
    sample.py, mismatch.py    checked training data; which trained machines will do
    stored.py, believable.py  fitted estimators as files; what a file is checked for
What some have
    neighbourhood.py          shares of the classes around each row (posterior.py)
    geometry.py, growing.py   where the classes lie; how a tree grows (trees.py)
    sparse.py, study.py       a sparse logistic regression, the filter (filtered.py);
                              rows on which it is chosen
What is done with several
    search.py, comparison.py  choosing C and gamma; accuracy and cost side by side
    splits.py, folds.py       rows as they are given; what systems share on them
    grids.py                  the machines of every C, gamma and fold
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
