"""A published table beside the recorded one that answers it, cell by cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from . import verdicts as v
from .verdicts import WRITTEN


@dataclass(frozen=True)
class Cells:
    """A published table and the recorded one that answers it, cell by cell, in one
    reading.

    `columns` gives each column its rule; `fitted(key, column)` marks cells that the
    reading was fitted on.
    """

    id: str
    printed: pd.DataFrame
    place: str
    table: str
    keys: Sequence[str]
    columns: dict[str, Sequence]
    reading: str = WRITTEN
    fitted: Callable[[tuple, str], bool] | None = None

    @property
    def digits(self) -> dict[str, int]:
        """How many decimals were printed, by column."""
        return {name: v.decimals(self.printed[name]) for name in self.columns}

    def against(self, measured: pd.DataFrame | None) -> pd.DataFrame:
        """Compare with a measured table: a row a cell, its name, keys, quantity,
        published, measured, verdict.
        """
        if measured is not None and not {*self.keys} <= {*measured.columns}:
            raise ValueError(f"{self.table}: its rows need {', '.join(self.keys)}")
        found = v.compare(self.printed, measured, self.keys, self.columns)
        if self.fitted is not None:
            keys = found[list(self.keys)].itertuples(index=False, name=None)
            pairs = zip(keys, found["quantity"], strict=True)
            fitted = np.array([self.fitted(*pair) for pair in pairs], dtype=bool)
            found.loc[fitted & found["measured"].notna(), "verdict"] = v.FITTED
        return found

    def texts(self, measured: pd.DataFrame | None) -> pd.DataFrame:
        """Compare, and say numbers in words: the published as printed, the measured
        with a decimal more.
        """
        found = self.against(measured)
        decimals = [self.digits[name] for name in found["quantity"]]
        for column, more in {"published": 0, "measured": 1}.items():
            pairs = zip(found[column], decimals, strict=True)
            found[column] = [v.number(x, printed + more) for x, printed in pairs]
        return found
