"""A paper's statements and table cells beside what was measured, as a page shows them.

`tables` are those that the page shows; `record` those of the recorded run, where a
reader's own run is shown and the recorded numbers stand beside it, else None.
"""

from collections.abc import Sequence

import pandas as pd

from .cells import Cells
from .claims import Claim
from .pictures import paragraph
from .recorded import Tables
from .tables import matrix, show
from .verdicts import NOT_IN_RUN

HEADS = {
    "statement": "claim",
    "place": "place",
    "published": "published",
    "measured": "measured",
    "verdict": "as written",
    "inferred": "measured, inferred",
    "inferred_verdict": "as inferred",
    "remarks": "remarks",
}
OF_THE_RECORD = {
    "measured": "recorded",
    "verdict": "recorded, as written",
    "inferred": "recorded, inferred",
    "inferred_verdict": "recorded, as inferred",
}


def show_claims(claims: Sequence[Claim], tables: Tables, record: Tables | None) -> None:
    """Show claims with the number and the verdict in either reading; columns that are
    empty for all of them are left out."""
    rows = pd.DataFrame([claim.row(tables) for claim in claims])
    table = rows.rename(columns=HEADS)[list(HEADS.values())]
    if record is not None:
        beside = pd.DataFrame([claim.row(record) for claim in claims])
        beside = beside.rename(columns=OF_THE_RECORD)[list(OF_THE_RECORD.values())]
        known = rows["verdict"] != NOT_IN_RUN
        table = table.join(beside.where(known, ""))
    kept = (table != "").any() | table.columns.isin(["claim", "as written"])
    show(table.loc[:, kept])


def show_cells(
    spec: Cells, layout: str, tables: Tables, record: Tables | None, recorded: bool
) -> None:
    """Show one published table in one reading beside the measured one; `recorded` says
    whether the measured one is the record's. A reader's run leaves out the cells that
    it does not have."""
    caption = f"{spec.place}, {spec.reading}"
    mine = tables.get(spec.table)
    judged = spec.against(mine)
    there = judged["measured"].notna()
    if not recorded:
        judged = judged[there]
        if not there.all():
            caption += f" ({(~there).sum()} of {len(there)} cells {NOT_IN_RUN})"
    if not len(judged):
        paragraph(f"*{caption}.*")
    elif layout == "long":
        texts = spec.texts(mine).loc[judged.index]
        if recorded:
            texts = texts.rename(columns={"measured": "recorded"})
        elif record is not None:
            beside = spec.texts(record.get(spec.table))
            texts["recorded"] = beside["measured"].loc[judged.index]
        show(texts, caption=caption)
    else:
        index = spec.keys[:1] if layout == "matrix" else spec.keys
        table = matrix(judged, index, spec.digits)
        show(table, caption=f"{caption}: measured (published)")
