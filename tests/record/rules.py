"""Rules that every row of a recorded table must keep."""

import pandas as pd


def exceptions(table: pd.DataFrame, *rules: str) -> list[str]:
    """Name the rows that break a rule, an expression of columns as `DataFrame.eval`
    takes it; an empty list where all keep all."""
    found = []
    for rule in rules:
        for row in table[~table.eval(rule)].head(3).to_dict("records"):
            found.append(f"{rule}: {row}")
    return found
