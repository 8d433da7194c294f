"""The scorecard: every statement and table cell of the papers beside what was recorded, and a word for each reading."""

import re
from pathlib import Path

import pandas as pd

from ..files import project_root, write_atomically
from ..papers.findings import findings
from .claims import Paper, Tables, papers
from .tables import SIGNS
from .verdicts import NOT_AVAILABLE, NOT_REPRODUCED, WORDS

GREYS = ("#d0d0d0", "#e2e2e2", "#c0c0c0", "#8c8c8c", "#f2f2f2")
COLOURS = dict(zip(WORDS, ("#0072b2", "#56b4e9", "#f0e442", "#d55e00") + GREYS, strict=True))


def judged(paper: Paper, tables: Tables) -> pd.DataFrame:
    """Judge a paper's claims and table cells: `Paper.rows` as words, after a column of the paper's key."""
    rows = pd.DataFrame(paper.rows(tables)).fillna("").astype(str)
    rows.insert(0, "paper", paper.key)
    return rows


def scorecard(figures: Path) -> pd.DataFrame:
    """Judge all papers by the tables recorded below `figures`."""
    return pd.concat([judged(p, Tables(figures / p.key)) for p in papers().values()], ignore_index=True)


def tally(card: pd.DataFrame) -> pd.DataFrame:
    """Count the words: a row for each paper's statements and cells, as written and, where there is one, as inferred."""
    card = card.assign(of=card["kind"].eq("cell").map({True: "table cells", False: "statements"}))
    card = card.rename(columns={"verdict": "as written", "inferred_verdict": "as inferred"})
    long = card.melt(["paper", "of"], ["as written", "as inferred"], "reading", "word").query("word != ''")
    counts = pd.crosstab([long["paper"], long["of"], long["reading"]], long["word"]).rename_axis(columns=None)
    rows = counts[[w for w in WORDS if w in counts]].reset_index()
    rows = rows.sort_values(["paper", "of", "reading"], ascending=[True, True, False], ignore_index=True)
    return rows.assign(paper=rows["paper"].map({key: paper.title for key, paper in papers().items()}))


def texts(card: pd.DataFrame, root: Path) -> dict[Path, str]:
    """Return what scorecard.csv, scorecard.md and README.md, with its table and findings, should hold."""
    figures, readme, counts = root / "figures", root / "README.md", tally(card)
    found = {figures / "scorecard.csv": card.to_csv(index=False, lineterminator="\n"),
             figures / "scorecard.md": _page(card, counts)}  # fmt: skip
    parts = {"scorecard": _markdown(counts), "findings": "\n".join(f"- {said}" for said in findings(figures))}
    page = readme.read_text(encoding="utf-8")
    for name, part in parts.items():
        page = re.sub(f"(?<=<!-- {name} -->\n).*?(?=\n<!-- /{name} -->)", lambda _, part=part: part, page, flags=re.S)
    return found | {readme: page}


def main(root: Path | None = None) -> int:
    """Write figures/scorecard.* and README's table and findings; say what they count."""
    from matplotlib import rc_context

    root = root or project_root()
    figures = root / "figures"
    card = scorecard(figures)
    counts = tally(card)
    for path, text in texts(card, root).items():
        write_atomically(path, lambda part, text=text: part.write_text(text, encoding="utf-8", newline="\n"))
    with rc_context({"svg.hashsalt": "scorecard"}):
        write_atomically(figures / "scorecard.svg", lambda part: draw(counts).savefig(part, metadata={"Date": None}))
    print(_markdown(counts))
    lost = card[(card["verdict"] == NOT_AVAILABLE) & (card["kind"] != "cell")]
    for (paper, why), names in lost.groupby(["paper", "measured"])["id"]:
        print(f"{paper}, {why}: {', '.join(names)}")
    print(sentence(card))
    return 0


def sentence(card: pd.DataFrame) -> str:
    """Say in one line how many statements and cells there are, and what became of them in either reading."""
    words = [card[c].value_counts() for c in ("verdict", "inferred_verdict")]
    first, second = (", ".join(f"{n[word]} {word}" for word in WORDS if word in n) for n in words)
    cells = int((card["kind"] == "cell").sum())
    return f"{len(card) - cells} statements and {cells} table cells; as written: {first}; as inferred: {second}"


def _markdown(table: pd.DataFrame) -> str:
    lines = [table.columns, ["---"] * table.shape[1], *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)


def _page(card: pd.DataFrame, counts: pd.DataFrame) -> str:
    parts = ["# Scorecard", "Written by `dagsvm-lab scorecard` from the recorded tables.", _markdown(counts)]
    for key, paper in papers().items():
        rows = card[card["paper"] == key]
        parts += [f"## {paper.title}", _markdown(rows[rows["kind"] != "cell"].drop(columns="paper"))]
        far = rows[(rows["kind"] == "cell") & (rows[["verdict", "inferred_verdict"]] == NOT_REPRODUCED).any(axis=1)]
        if len(far):
            told = ["id", "place", "published", "measured", "verdict", "inferred", "inferred_verdict"]
            parts += ["Table cells not reproduced in one reading or both:", _markdown(far[told])]
    return "\n\n".join(parts) + "\n"


def draw(counts: pd.DataFrame):
    """Draw a tally as stacked bars, statements beside table cells, a bar a paper and reading; return the figure."""
    from matplotlib.figure import Figure

    words = [w for w in WORDS if w in counts]
    groups = counts.groupby("of")
    figure = Figure(figsize=(9, 1.3 + 0.3 * groups.size().max()), layout="constrained")
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for ax, (kind, rows) in zip(axes, groups, strict=True):
        short = rows["paper"].str.replace(r"^([\w ]+?),.* (\d{4})$", r"\1 \2", regex=True)
        names, left = short + ", " + rows["reading"], 0
        total = rows[words].sum(axis=1).max()
        for word in words:
            bars = ax.barh(names, rows[word], left=left, color=COLOURS[word], label=f"{SIGNS[word]} {word}")
            texts = [str(n) if n > total / 30 else "" for n in rows[word]]
            dark = word in ("reproduced", "not reproduced")
            ax.bar_label(bars, texts, label_type="center", fontsize=8, color="white" if dark else "black")
            left = left + rows[word]
        ax.set_title(kind, fontsize=10)
        ax.tick_params(labelsize=8)
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure
