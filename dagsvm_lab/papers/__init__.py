"""The papers: their claims as functions of tables, and what several notebooks share."""

import pkgutil
from importlib import import_module
from pathlib import Path

import pandas as pd

from ..files import project_root
from ..report import scorecard as card
from ..report.claims import Paper


def papers() -> dict[str, Paper]:
    """Find the papers: every module here that states claims, by key."""
    found = {}
    for about in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{about.name}")
        for made in vars(module).values():
            if isinstance(made, Paper):
                found[made.key] = made
    return dict(sorted(found.items()))


def scorecard(figures: Path) -> pd.DataFrame:
    """Judge all papers by the tables recorded below `figures`."""
    return card.scorecard(papers(), figures)


def write_scorecard(root: Path | None = None) -> int:
    """Write figures/scorecard.* and README's table and findings; print the counts."""
    from .findings import findings

    return card.write(papers(), findings, root or project_root())
