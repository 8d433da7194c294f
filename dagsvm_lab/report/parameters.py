"""A notebook's parameters: their defaults, which decide numbers, and how they read."""

import re
from collections.abc import Mapping
from itertools import pairwise

from .prose import listed

PROFILES = ("quick", "full")
DEFAULTS = {"profile": "quick", "seed": 0}  # of every notebook; other defaults are None
NOT_COUNTED = ("n_jobs", "out_dir")  # parameters that decide no number


def changed(parameters: Mapping) -> dict:
    """Return the parameters that are not the defaults and decide numbers."""
    return {
        name: value
        for name, value in parameters.items()
        if name not in NOT_COUNTED and value != DEFAULTS.get(name)
    }


def in_words(parameters: Mapping) -> str:
    """Write parameters as a page says them.

    >>> in_words({"profile": "full", "seed": 7, "datasets": "iris,wine", "sigma": None})
    'profile full, seed 7, sets iris and wine'
    """
    parts = []
    for name, value in parameters.items():
        if value is None or name in NOT_COUNTED:
            continue
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, list | tuple):
            value = listed(value)
        parts.append(f"{'sets' if name == 'datasets' else name} {value}")
    return ", ".join(parts)


def refuse_unknown() -> None:
    """Raise for a name that papermill gave this notebook and its parameters cell does
    not have.
    """
    from IPython import get_ipython

    cells = getattr(get_ipython(), "user_ns", {}).get("In", ())
    for parameters, cell in pairwise(cells):
        # what papermill writes over the cell that it puts in
        if not cell.startswith("# Parameters\n"):
            continue
        known = re.findall(r"^(\w+) *[:=]", parameters, re.M)
        given = re.findall(r"^(\w+) *[:=]", cell, re.M)
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(
                f"no parameter {', '.join(unknown)}; there are {', '.join(known)}"
            )
