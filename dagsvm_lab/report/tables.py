"""How a table is shown: HTML, verdicts marked by word, sign and colour, plain text beside; always the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd

from .verdicts import WORDS, missing, number

SIGNS = dict(zip(WORDS, "✓≈~✗≡⊂○?–", strict=True))
# text and background of each verdict: readable on white and on dark pages, told apart by colour-blind readers
INKS = dict(zip(WORDS, ("#003a5c", "#0b4a4a", "#5c4a00", "#6b2500") + ("#404040",) * 5, strict=True))
PAPERS = dict(zip(WORDS, ("#cfe6f5", "#d6f0ea", "#fbeeb8", "#fbd9c6") + ("#ebebeb",) * 5, strict=True))
BY_SIGN = {sign: word for word, sign in SIGNS.items()}


class Table:
    """A DataFrame as notebooks display it; `precision` gives decimals, one number or by column."""

    def __init__(self, df: pd.DataFrame, precision: int | Mapping[str, int] = 2, caption: str | None = None) -> None:
        named = any(name is not None for name in df.index.names)
        self.df, self.precision, self.caption = df.reset_index() if named else df, precision, caption
        self.cells = {name: [self._text(name, x) for x in self.df[name].tolist()] for name in self.df.columns}

    def _text(self, column: str, value) -> str:
        if isinstance(value, list | tuple) or not (missing(value) or value == ""):
            if not isinstance(value, float):
                return f"{SIGNS[value]} {value}" if isinstance(value, str) and value in SIGNS else str(value)
            digits = self.precision if isinstance(self.precision, int) else self.precision.get(column, 2)
            return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no minus sign on a zero
        return "-"

    def _numeric(self, name: str) -> bool:
        return all(text == "-" or text.removeprefix("-").replace(".", "", 1).isdecimal() for text in self.cells[name])

    def __repr__(self) -> str:
        columns = []
        for name, cells in self.cells.items():
            width = max(map(len, [str(name), *cells]))
            pad = str.rjust if self._numeric(name) else str.ljust
            columns.append([pad(cell, width) for cell in (str(name), *cells)])
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        return "\n".join([self.caption, *lines] if self.caption else lines)

    def _repr_html_(self) -> str:
        def cell(name: str, text: str) -> str:
            word = BY_SIGN.get(text[:1]) or BY_SIGN.get(text[-1:])
            if word and len(text) > 1:
                text = (
                    f'<span style="color:{INKS[word]};background:{PAPERS[word]};padding:0 .3em">{escape(text)}</span>'
                )
            else:
                text = escape(text)
            return f'<td style="text-align:{"right" if self._numeric(name) else "left"}">{text}</td>'

        heads = "".join(
            f'<th scope="col" style="text-align:{"right" if self._numeric(name) else "left"}">'
            f"{escape(str(name).replace('_', ' '))}</th>"
            for name in self.cells
        )
        rows = [
            "<tr>" + "".join(cell(name, text) for name, text in zip(self.cells, line, strict=True)) + "</tr>"
            for line in zip(*self.cells.values(), strict=True)
        ]
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        body = "\n".join([f"<thead><tr>{heads}</tr></thead>", "<tbody>", *rows, "</tbody>"])
        label = escape(self.caption or "table", quote=True)
        return (
            f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{label}">'
            f'<table class="dagsvm">{caption}\n{body}</table></div>'
        )


def show(df: pd.DataFrame, precision: int | Mapping[str, int] = 2, caption: str | None = None) -> None:
    """Display a table: HTML where it is shown, plain text elsewhere."""
    try:
        from IPython.display import display
    except ImportError:
        display = print
    display(Table(df, precision, caption))


def matrix(long: pd.DataFrame, index: str | Sequence[str], digits: Mapping[str, int]) -> pd.DataFrame:
    """Pivot judged cells to the paper's layout: "measured (published) sign", a row for each value of `index`.

    `index` is a key or several. The columns are the other keys with the quantity, in the order in which they come.
    """
    index = [index] if isinstance(index, str) else list(index)
    others = [c for c in long.columns if c not in (*index, "published", "measured", "verdict")]
    out: dict[tuple, dict[str, str]] = {}
    for row in long.to_dict("records"):
        d, key = digits.get(row["quantity"], 2), tuple(str(row[name]) for name in index)
        text = f"{number(row['measured'], d) or '-'} ({number(row['published'], d)}) {SIGNS[row['verdict']]}"
        out.setdefault(key, dict(zip(index, key, strict=True)))[" ".join(str(row[c]) for c in others)] = text
    return pd.DataFrame(out.values()).fillna("")
