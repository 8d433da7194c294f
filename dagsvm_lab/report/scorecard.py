"""The scorecard: every statement and table cell of the four papers beside what was recorded, with a word.

`published/claims.toml` states the claims and which recorded table decides each; its head explains the form.
A claim's source is a short pipeline over one CSV of figures/<paper>/, each step optional, in this order:
    table -> where -> sort -> group -> pivot -> mean -> value
The value is an expression over the columns that are left. A truth value decides an ordering, a number is judged
against the published one by the claim's rule (see verdicts.py).
"""

import tomllib
from pathlib import Path

import pandas as pd

from .record import project_root, write_atomically
from .verdicts import (
    NOT_AVAILABLE,
    NOT_CHECKABLE,
    NOT_REPRODUCED,
    PUBLISHED,
    WORDS,
    claim_verdict,
    compare,
    decimals,
    judge,
    missing,
    published,
)

PAPERS = {
    "01_platt2000": "Platt, Cristianini, Shawe-Taylor 2000",
    "02_yu2011": "Yu, Rhuma, Naqvi, Chambers 2011",
    "03_wang2011": "Wang, Zheng, Zhou 2011",
    "04_don2018": "Rathgamage Don, Iacob 2018",
}
COLUMNS = ["paper", "id", "place", "kind", "statement", "published", "measured", "verdict"]
COLOURS = dict(zip(WORDS, ("#0072b2", "#56b4e9", "#d55e00", "#e6e6e6", "#cc9fbf", "#8c8c8c"), strict=True))
BEGIN, END = "<!-- scorecard -->", "<!-- /scorecard -->"


class NotRecordedError(Exception):
    """A claim's rows are not in the record; says which."""


def claims() -> dict[str, list[dict]]:
    """The claims ("claim") and the tables judged cell by cell ("cells"), as claims.toml states them."""
    return tomllib.loads((PUBLISHED / "claims.toml").read_text(encoding="utf-8"))


def measure(source: dict, folder: Path):
    """What `source` selects from the tables in `folder`: a number, a truth value, or a column of truth values."""
    if "table" not in source:
        return pd.eval(source["value"], engine="python")
    name = source["table"]
    path = (PUBLISHED.parent if name.startswith("published/") else folder) / f"{name}.csv"
    if not path.is_file():
        raise NotRecordedError(f"no table {name}")
    try:
        rows = _shape(pd.read_csv(path), source)
        if len(rows) < source.get("rows", 1):
            raise NotRecordedError(f"{name}: {len(rows)} of {source.get('rows', 1)} rows")
        if source.get("mean"):
            rows = rows.mean(numeric_only=True).to_frame().T
        found = rows.eval(source["value"], engine="python")
    except (KeyError, NameError, TypeError, AttributeError) as error:  # a column is missing, or of another kind
        raise NotRecordedError(f"{name}: {str(error).strip(chr(39))}") from None
    if isinstance(found, pd.Series) and len(found) == 1:
        return found.iloc[0]
    if isinstance(found, pd.Series) and found.dtype != bool:
        raise NotRecordedError(f"{name}: {len(found)} rows where one was expected")
    return found


def _shape(rows: pd.DataFrame, source: dict) -> pd.DataFrame:
    if "where" in source:
        rows = rows.query(source["where"], engine="python")
    if "sort" in source:
        rows = rows.sort_values(source["sort"], kind="stable")
    if "group" in source:
        by, column = source["group"]
        rows = rows.groupby(by)[column].agg(["first", "last", "min", "max", "mean"]).reset_index()
    if "pivot" in source and len(rows):
        pivot = source["pivot"]
        names = rows.eval(pivot["columns"], engine="python")
        names = names.map(lambda x: x if isinstance(x, str) else f"{x:g}")
        rows = rows.assign(column=names, all=0)
        how = {"index": pivot.get("index", "all"), "aggfunc": pivot.get("by", "mean")}
        rows = rows.pivot_table(pivot["values"], columns="column", **how).reset_index()
    used = [c for c in rows.columns if isinstance(c, str) and c in source["value"]]
    # a data set that is not at hand neither holds nor fails
    return rows.dropna(subset=used).infer_objects()


def evaluate(claim: dict, folder: Path) -> tuple[str, str]:
    """(what was measured, as text; the verdict) of one claim, from the tables in `folder`."""
    if claim["kind"] == "uncheckable":
        return claim["reason"], NOT_CHECKABLE
    try:
        found = measure(claim["source"], folder)
    except NotRecordedError as reason:
        return str(reason), NOT_AVAILABLE
    number = claim.get("published")
    if number is not None:
        found = float(found.sum() if isinstance(found, pd.Series) else found)
        digits = decimals(number)
        return _number(found, digits + 1), judge(claim.get("rule", ["count"]), number, found, digits)
    if isinstance(found, pd.Series):
        return f"{found.sum()} of {len(found)}", claim_verdict(bool(found.all()))
    return "holds" if found else "does not hold", claim_verdict(bool(found))


def scorecard(figures: Path) -> pd.DataFrame:
    """One row a claim or table cell (COLUMNS), from the tables recorded below `figures`."""
    stated = claims()
    rows = []
    for claim in stated["claim"]:
        measured, verdict = evaluate(claim, figures / claim["paper"])
        number = claim.get("published", "")
        rows.append([*(claim[c] for c in ("paper", "id", "place", "kind", "text")), number, measured, verdict])
    for cells in stated["cells"]:
        printed = published(cells["published"])
        if "where" in cells:
            printed = printed.query(cells["where"], engine="python")
        path = figures / cells["paper"] / f"{cells['table']}.csv"
        keys, sizes = cells["keys"], [cells["n"]] if "n" in cells else []
        recorded = pd.read_csv(path) if path.is_file() else None
        if recorded is not None and not {*keys} <= {*recorded.columns}:
            raise ValueError(f"{path}: its rows need {', '.join(keys)}")
        rules = {
            column: [rule, *(sizes if rule in ("accuracy", "error") else [])]
            for rule, columns in cells["columns"].items()
            for column in columns
        }
        for cell in compare(printed, recorded, keys, rules).to_dict("records"):
            name = "/".join([cells["id"], *(str(cell[k]) for k in keys), cell["quantity"]])
            digits = decimals(printed[cell["quantity"]].dropna())
            number, measured = _number(cell["published"], digits), _number(cell["measured"], digits + 1)
            rows.append([cells["paper"], name, cells["place"], "cell", "", number, measured, cell["verdict"]])
    card = pd.DataFrame(rows, columns=COLUMNS)
    card["published"] = card["published"].astype(str)
    return card.sort_values("paper", kind="stable", ignore_index=True)


def tally(card: pd.DataFrame) -> pd.DataFrame:
    """How often each word fell: a row for each paper's statements and one for its table cells."""
    kind = card["kind"].eq("cell").map({True: "table cells", False: "statements"}).rename("of")
    counts = pd.crosstab([card["paper"], kind], card["verdict"])
    counts = counts.reindex(columns=list(WORDS), fill_value=0).rename_axis(columns=None).reset_index()
    return counts.assign(paper=counts["paper"].map(PAPERS))


def main(check: bool = False, root: Path | None = None) -> int:
    """0 after writing figures/scorecard.* and README's table; with `check`, 1 if csv or README are out of date."""
    root = root or project_root()
    figures, readme = root / "figures", root / "README.md"
    card = scorecard(figures)
    counts = tally(card)
    text = {figures / "scorecard.csv": card.to_csv(index=False, lineterminator="\n")}
    page = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    if BEGIN in page and END in page:
        head, tail = page.partition(BEGIN)[0], page.partition(END)[2]
        text[readme] = f"{head}{BEGIN}\n{_markdown(counts)}\n{END}{tail}"
    else:
        print(f"README.md has no {BEGIN} ... {END}: its table is not written")
    if check:
        stale = [path for path, new in text.items() if not path.is_file() or path.read_text("utf-8") != new]
        print("".join(f"{path.name} is out of date: run dagsvm-lab scorecard\n" for path in stale), end="")
        return int(bool(stale))
    text[figures / "scorecard.md"] = _page(card, counts)
    for path, new in text.items():
        write_atomically(path, lambda part, new=new: part.write_text(new, encoding="utf-8", newline="\n"))
    write_atomically(figures / "scorecard.svg", lambda part: _draw(counts, part))
    print(_markdown(counts))
    lost = card[(card["verdict"] == NOT_AVAILABLE) & (card["kind"] != "cell")]
    for (paper, why), names in lost.groupby(["paper", "measured"])["id"]:
        print(f"{paper}, {why}: {', '.join(names)}")
    words = card["verdict"].value_counts()
    parts = ", ".join(f"{words[word]} {word}" for word in WORDS if word in words)
    print(f"{(card['kind'] != 'cell').sum()} statements and {(card['kind'] == 'cell').sum()} table cells: {parts}")
    return 0


def _number(value, digits: int) -> str:
    """`value` with at most `digits` decimals, without idle zeros; "" where there is none."""
    if missing(value):
        return ""
    text = f"{round(float(value), digits) + 0.0:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _markdown(table: pd.DataFrame) -> str:
    lines = [table.columns, ["---"] * table.shape[1], *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)


def _page(card: pd.DataFrame, counts: pd.DataFrame) -> str:
    parts = ["# Scorecard", "Written by `dagsvm-lab scorecard` from the recorded tables.", _markdown(counts)]
    for paper, title in PAPERS.items():
        rows = card[card["paper"] == paper]
        parts += [f"## {title}", _markdown(rows[rows["kind"] != "cell"].drop(columns="paper"))]
        far = rows[(rows["kind"] == "cell") & (rows["verdict"] == NOT_REPRODUCED)]
        if len(far):
            parts += ["Table cells not reproduced:", _markdown(far[["id", "place", "published", "measured"]])]
    return "\n\n".join(parts) + "\n"


def _draw(counts: pd.DataFrame, path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "scorecard", "font.size": 9}):
        figure = Figure(figsize=(10, 3.2), layout="constrained")
        for ax, (kind, rows) in zip(figure.subplots(1, 2, sharey=True), counts.groupby("of"), strict=False):
            titles, left = rows["paper"].str.replace(r"^(\w+( Don)?),.* (\d+)$", r"\1 \3", regex=True), 0
            for word in WORDS:
                bars = ax.barh(titles, rows[word], left=left, color=COLOURS[word], label=word)
                wide = [str(n) if n > rows[list(WORDS)].sum(axis=1).max() / 40 else "" for n in rows[word]]
                ax.bar_label(
                    bars, wide, label_type="center", fontsize=8, color="white" if word == WORDS[0] else "black"
                )
                left = left + rows[word]
            ax.set_title(kind)
            ax.spines[["top", "right"]].set_visible(False)
        ax.invert_yaxis()
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
        figure.savefig(path, metadata={"Date": None})
