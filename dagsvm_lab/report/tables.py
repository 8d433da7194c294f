"""How a table is shown: HTML, verdicts marked by word, sign and colour, plain text
beside; always the same bytes.
"""

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd

from .verdicts import WORDS, number

SIGNS = dict(zip(WORDS, "✓≈~✗¶∅≡⊂○?–▫", strict=True))
# text and background of the first four verdicts, and of all others: readable on white
# and on dark pages, told apart by colour-blind readers
_INKS = ("#003a5c", "#0b4a4a", "#5c4a00", "#6b2500", *["#404040"] * 8)
_PAPERS = ("#cfe6f5", "#d6f0ea", "#fbeeb8", "#fbd9c6", *["#ebebeb"] * 8)
INKS = dict(zip(WORDS, _INKS, strict=True))
PAPERS = dict(zip(WORDS, _PAPERS, strict=True))
BY_SIGN = {sign: word for word, sign in SIGNS.items()}


class Table:
    """A DataFrame as notebooks display it; `precision` gives decimals, one number or by
    column.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        precision: int | Mapping[str, int] = 2,
        caption: str | None = None,
    ) -> None:
        named = any(name is not None for name in df.index.names)
        if named:
            df = df.reset_index()
        self.caption = caption
        if isinstance(precision, int):
            precision = dict.fromkeys(df, precision)
        self.cells = {}
        self.side = {}
        for name in df:
            digits = precision.get(name, 2)
            cells = [_text(x, digits) for x in df[name].tolist()]
            self.cells[name] = cells
            self.side[name] = "right" if all(map(_is_number, cells)) else "left"

    def __repr__(self) -> str:
        columns = []
        for name, cells in self.cells.items():
            column = [str(name), *cells]
            width = max(map(len, column))
            pad = str.rjust if self.side[name] == "right" else str.ljust
            columns.append([pad(cell, width) for cell in column])
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        if self.caption:
            lines.insert(0, self.caption)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = []
        columns = []
        for name, cells in self.cells.items():
            look = f'style="text-align:{self.side[name]}"'
            title = escape(str(name).replace("_", " "))
            heads.append(f'<th scope="col" {look}>{title}</th>')
            columns.append([f"<td {look}>{_marked(text)}</td>" for text in cells])
        rows = [f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True)]
        head = f"<thead><tr>{''.join(heads)}</tr></thead>"
        body = "\n".join([head, "<tbody>", *rows, "</tbody>"])
        label = escape(self.caption or "table")
        caption = f"<caption>{label}</caption>" if self.caption else ""
        box = f'style="overflow-x:auto" tabindex="0" role="region" aria-label="{label}"'
        return f'<div {box}><table class="dagsvm">{caption}\n{body}</table></div>'


def _text(value, digits: int) -> str:
    """A cell as text: a verdict with its sign, a float with so many decimals."""
    if isinstance(value, str) and value in SIGNS:
        return f"{SIGNS[value]} {value}"
    if isinstance(value, str):
        return value or "-"
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "-"
    if isinstance(value, float):
        return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: never -0
    return str(value)


def _is_number(text: str) -> bool:
    """Whether a cell stands on the right."""
    return text == "-" or text.removeprefix("-").replace(".", "", 1).isdecimal()


def _marked(text: str) -> str:
    """Escape a cell's text; what begins or ends with a verdict's sign is coloured."""
    word = BY_SIGN.get(text[:1]) or BY_SIGN.get(text[-1:])
    if word is None or len(text) < 2:
        return escape(text)
    look = f"color:{INKS[word]};background:{PAPERS[word]};padding:0 .3em"
    return f'<span style="{look}">{escape(text)}</span>'


def show(
    df: pd.DataFrame, precision: int | Mapping[str, int] = 2, caption: str | None = None
) -> None:
    """Display a table: HTML where it is shown, plain text elsewhere."""
    from IPython.display import display

    display(Table(df, precision, caption))


def matrix(
    long: pd.DataFrame, index: Sequence[str], digits: Mapping[str, int]
) -> pd.DataFrame:
    """Pivot judged cells to the paper's layout: "measured (published) sign", a row for
    each value of the keys `index`.

    The columns are the other keys with the quantity, in the order in which they come.
    """
    told = (*index, "published", "measured", "verdict")
    others = [column for column in long.columns if column not in told]
    out: dict[tuple, dict[str, str]] = {}
    for row in long.to_dict("records"):
        decimals = digits.get(row["quantity"], 2)
        measured = number(row["measured"], decimals) or "-"
        published = number(row["published"], decimals)
        key = tuple(str(row[name]) for name in index)
        line = out.setdefault(key, dict(zip(index, key, strict=True)))
        column = " ".join(str(row[name]) for name in others)
        line[column] = f"{measured} ({published}) {SIGNS[row['verdict']]}"
    return pd.DataFrame(out.values()).fillna("")
