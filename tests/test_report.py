"""Claims, cells, the scorecard and how tables are shown, on a small paper whose answers
are known.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab.files import project_root, write_atomically
from dagsvm_lab.papers.findings import findings
from dagsvm_lab.report import scorecard as sc
from dagsvm_lab.report import verdicts as v
from dagsvm_lab.report.agreement import agreement
from dagsvm_lab.report.claims import INFERRED, Outcome, Paper, Tables
from dagsvm_lab.report.record import Record
from dagsvm_lab.report.tables import SIGNS, Table, matrix


@pytest.fixture
def paper(monkeypatch):
    printed = pd.DataFrame({"set": ["a", "b"], "error": [2.0, 5.0], "n": [10, 20]})
    monkeypatch.setattr(v, "published", lambda name: printed)
    p = Paper("09_test1999", "Tester, Other 1999")

    p.states(
        "path",
        "1",
        "paths have N - 1 nodes",
        lambda t: t["graph"].eval("path == n - 1"),
    )
    p.states(
        "ratio",
        "2",
        "twice",
        lambda t: t["graph"]["n"].sum() / 10,
        lambda t: 2.1,
        published=2.0,
    )
    p.states("truth", "3", "more", lambda t: t["graph"]["n"].max() > 100)
    p.states(
        "misspelt", "4", "a column that is not there", lambda t: t["graph"]["nn"] > 1
    )
    p.states("made", "5", "true by construction", lambda t: True, kind="definition")
    p.uncheckable("clock", place="6", text="fast", reason="their machine is gone")
    common = dict(place="Table 1", published="x", keys=["set"])
    p.cells(
        "t1", table="t1", columns={"error": ("error", 100), "n": ("count",)}, **common
    )
    inferred = dict(reading=INFERRED, fitted=lambda key, column: key == ("b",))
    p.cells("t1", table="t2", columns={"error": ("error", 100)}, **inferred, **common)
    return p


@pytest.fixture
def folder(tmp_path):
    pd.DataFrame({"n": [4, 7], "path": [3, 6]}).to_csv(
        tmp_path / "graph.csv", index=False
    )
    pd.DataFrame({"set": ["a", "b"], "error": [3.0, 40.0], "n": [10, 30]}).to_csv(
        tmp_path / "t1.csv", index=False
    )
    pd.DataFrame({"set": ["a", "b"], "error": [2.0, 5.0]}).to_csv(
        tmp_path / "t2.csv", index=False
    )
    return tmp_path


def words(paper, folder, *ids):
    return [paper.claims[id].judge(Tables(folder)).word for id in ids]


def test_claims_give_their_words(paper, folder):
    assert words(paper, folder, "path", "ratio", "truth", "made", "clock") == [
        v.REPRODUCED,
        v.NOT_REPRODUCED,
        v.NOT_REPRODUCED,
        v.BY_DEFINITION,
        v.NOT_CHECKABLE,
    ]
    assert paper.claims["ratio"].judge(Tables(folder), INFERRED) == Outcome(
        v.REPRODUCED, "2.1"
    )
    assert paper.claims["path"].judge(Tables(folder)).text == "2 of 2"


def test_a_missing_table_is_not_available_and_a_misspelt_column_raises(
    paper, folder, tmp_path_factory
):
    assert (
        words(paper, tmp_path_factory.mktemp("empty"), "path", "misspelt")
        == [v.NOT_AVAILABLE] * 2
    )
    with pytest.raises(KeyError, match="nn"):
        paper.claims["misspelt"].judge(Tables(folder))


def test_a_claim_stated_twice_and_an_unknown_reading_are_refused(paper):
    with pytest.raises(ValueError, match="twice"):
        paper.states("path", "1", "again", lambda t: True)
    with pytest.raises(ValueError, match="reading"):
        paper.cells(
            "t9",
            place="",
            published="x",
            table="t",
            keys=["set"],
            columns={},
            reading="as hoped",
        )


def test_rows_hold_both_readings_of_a_cell(paper, folder):
    del paper.claims["misspelt"]
    rows = pd.DataFrame(paper.rows(Tables(folder))).fillna("").set_index("id")
    assert rows.loc["t1/a/error", ["verdict", "inferred_verdict"]].tolist() == [
        v.REPRODUCED,
        v.REPRODUCED,
    ]
    assert rows.loc["t1/b/error", ["verdict", "inferred_verdict"]].tolist() == [
        v.NOT_REPRODUCED,
        v.FITTED,
    ]
    n = rows.loc["t1/b/n", ["published", "measured", "verdict", "inferred_verdict"]]
    assert n.tolist() == ["20", "30", v.NOT_REPRODUCED, ""]
    assert rows.loc["ratio", ["measured", "inferred"]].tolist() == ["1.1", "2.1"]


def test_a_misprint_fails_as_printed_and_holds_as_meant(paper, folder):
    tables = Tables(folder)
    for id, printed, meant in (
        ("slip", False, True),
        ("wrong", False, False),
        ("right", True, True),
    ):
        paper.states(
            id,
            "7",
            "a formula",
            lambda t, holds=printed: holds,
            lambda t, holds=meant: holds,
            kind="misprint",
        )
    words = [paper.claims[id].judge(tables).word for id in ("slip", "wrong", "right")]
    assert words == [v.MISPRINT, v.NOT_REPRODUCED, v.REPRODUCED]
    assert paper.claims["slip"].judge(tables, INFERRED).word == v.REPRODUCED


def test_what_was_picked_is_fitted_and_so_is_what_is_computed_from_it(paper, folder):
    paper.picked(
        "t2", why="C was chosen by it", cells=lambda key, column: key == ("a",)
    )
    paper.cells(
        "t3",
        place="",
        published="x",
        table="t2",
        keys=["set"],
        columns={"error": ("error", 100)},
        reading=INFERRED,
    )
    del paper.claims["misspelt"]
    rows = pd.DataFrame(paper.rows(Tables(folder))).set_index("id")
    assert rows.loc["t3/a/error", "inferred_verdict"] == v.FITTED
    assert rows.loc["t3/b/error", "inferred_verdict"] == v.REPRODUCED
    for id, fitted in (("sum", True), ("other", False), ("silent", None)):
        paper.states(
            id,
            "7",
            "errors add up to seven",
            lambda t: False,
            lambda t: bool(t["t2"]["error"].sum() == 7),
            fitted=fitted,
        )
    ids = ("sum", "other", "silent")
    words = [paper.claims[id].judge(Tables(folder), INFERRED).word for id in ids]
    assert words == [v.FITTED, v.REPRODUCED, v.REPRODUCED]
    assert paper.claims["sum"].judge(Tables(folder)).word == v.NOT_REPRODUCED
    assert paper.undeclared(folder) == ["silent"]


def test_what_a_reader_s_run_left_out_is_not_in_it(paper, folder):
    paper.states("first", "8", "the first", lambda t: t["graph"].query("n > 9").iloc[0])
    part = Tables(folder, only={"graph"})
    assert paper.claims["path"].judge(part).word == v.REPRODUCED
    assert paper.claims["first"].judge(part) == Outcome(v.NOT_IN_RUN, "")
    none = Tables(folder, only=set())
    assert paper.claims["path"].judge(none) == Outcome(v.NOT_IN_RUN, "")
    del paper.claims["misspelt"]
    cells = [row for row in paper.rows(part) if row["kind"] == "cell"]
    assert {row["verdict"] for row in cells if "verdict" in row} == {v.NOT_IN_RUN}
    with pytest.raises(IndexError):
        paper.claims["first"].judge(Tables(folder))


@pytest.mark.parametrize(
    ("column", "recorded", "fresh", "rule", "agree"),
    [
        ("error_pct", 5.0, 9.0, ("percent", 100), True),
        ("error_pct", 5.0, 30.0, ("percent", 100), False),
        ("error_pct", 5.0, 9.0, ("percent", 10_000), False),
        ("error_pct", 5.0, 9.0, ("percent", {"a": 100, "b": 100}), True),
        ("error_pct", 98.0, 94.0, None, True),  # without n: within 2.5 % of 98
        ("error_pct", 98.0, 92.0, None, False),
        ("vectors", 100, 104, None, True),
        ("vectors", 100, 106, None, False),
        ("vectors", 100, 106, ("count", 0.1), True),
        ("gain", -0.5, 0.5, ("points", 1.0), True),
        ("gain", -0.6, 0.5, ("points", 1.0), False),
        ("root", "5-6", "5-6", None, True),
        ("root", "5-6", "1-6", None, False),
        ("root", True, False, None, False),
        ("mean", np.nan, np.nan, None, True),
        ("mean", np.nan, 1.0, None, False),
    ],
)
def test_two_cells_agree(column, recorded, fresh, rule, agree):
    here, there = (
        pd.DataFrame({"set": ["a", "b"], column: [value, recorded], "train_s": [t, 1]})
        for t, value in enumerate((fresh, recorded))
    )
    rules = {column: rule} if rule else None
    found = agreement(here, there, ["set"], rules)
    assert (found.rows, found.recorded_rows, found.cells) == (2, 2, 2), "no seconds"
    assert found.differ == (() if agree else (f"a {column}",))


def test_tables_agree_over_the_rows_of_both():
    there = pd.DataFrame({"set": list("abc"), "n": [1, 2, 3], "p_exact": [0.1] * 3})
    here = pd.DataFrame({"set": list("cd"), "n": [3, 9], "p_exact": [0.9] * 2})
    said = str(agreement(here, there, ["set"]))
    assert said == "1 of 1 cells agree with the record, in 1 of its 3 rows"
    said = str(agreement(here[1:], there, ["set"]))
    assert said == "no row of it is in the record"
    many = pd.DataFrame({"n": range(10, 20)})
    said = str(agreement(2 * many, many, ()))
    assert said.endswith("differs: 0 n, 1 n, 2 n, 3 n and 6 others")
    with pytest.raises(ValueError, match="this run has no column k"):
        agreement(here, there, ["k"])
    with pytest.raises(ValueError, match="record has rows that set do not tell apart"):
        agreement(here, pd.concat([there, there]), ["set"])


def test_the_tally_counts_every_word_once(paper, folder):
    del paper.claims["misspelt"]
    (folder / paper.key).mkdir()
    for file in folder.glob("*.csv"):
        file.rename(folder / paper.key / file.name)
    card = sc.scorecard({paper.key: paper}, folder)
    counts = sc.tally(card)
    used = [w for w in v.WORDS if w in counts]
    all_of_them = counts[counts["of"] != "independent statements"]
    assert (
        all_of_them[used].sum().sum()
        == len(card) + (card["inferred_verdict"] != "").sum()
    )
    assert counts["reading"].tolist() == ["as written", "as inferred"] * 3
    assert "5 statements (5 independent) and 4 table cells" in sc.sentence(card)


def test_claims_that_share_their_evidence_count_once(paper, folder):
    del paper.claims["misspelt"]
    for id in ("path", "truth", "made"):
        paper.claims[id].evidence = "graph"
    card = sc.judged(paper, Tables(folder))
    [one] = sc.independent(card[card["evidence"] != ""]).to_dict("records")
    assert one["id"] == "graph"
    # reproduced, not reproduced, by definition: as frequent, the last is no success
    assert one["verdict"] == v.BY_DEFINITION
    paper.claims["made"].evidence = ""
    card = sc.judged(paper, Tables(folder))
    [one] = sc.independent(card[card["evidence"] != ""]).to_dict("records")
    assert one["verdict"] == v.NOT_REPRODUCED
    counts = sc.tally(card, {paper.key: "Tester"})
    rows = counts.query("reading == 'as written'").set_index("of")
    assert rows.loc["statements", "not reproduced"] == 2
    assert rows.loc["independent statements", "not reproduced"] == 2
    assert rows.loc["statements", "reproduced"] == 1
    assert rows.loc["independent statements", "reproduced"] == 0
    assert set(counts["paper"]) == {"Tester"}


def test_the_command_writes_what_it_counts(paper, folder, capsys):
    del paper.claims["misspelt"]
    about = {paper.key: paper}, lambda figures: ["found"], folder
    readme = folder / "README.md"
    readme.write_text("before\n<!-- scorecard -->\nold\n<!-- /scorecard -->\nafter\n")
    assert sc.write(*about) == 0
    for path, whole in sc.texts(*about).items():
        assert path.read_text(encoding="utf-8") == whole
    text = readme.read_text()
    assert (
        text.startswith("before")
        and text.endswith("after\n")
        and "Tester" in text
        and "old" not in text
    )
    assert {p.name for p in (folder / "figures").iterdir()} == {
        "scorecard.csv",
        "scorecard.md",
        "scorecard.svg",
    }
    capsys.readouterr()


def test_a_table_is_shown_as_text_and_html_with_marked_verdicts():
    columns = {
        "data_set": ["a<b", "c"],
        "error": [1.234, np.nan],
        "rows": [3, 40],
        "verdict": ["close", "fitted"],
    }
    df = pd.DataFrame(columns)
    shown = Table(df, precision={"error": 1}, caption="T")
    lines = repr(shown).splitlines()
    assert lines[0] == "T" and lines[1].split() == [
        "data_set",
        "error",
        "rows",
        "verdict",
    ]
    assert (
        lines[2].split() == ["a<b", "1.2", "3", SIGNS["close"], "close"]
        and lines[3].split()[1] == "-"
    )
    html = shown._repr_html_()
    assert html == Table(df, precision={"error": 1}, caption="T")._repr_html_()
    assert (
        "a&lt;b" in html
        and "<th scope=" in html
        and f"{SIGNS['close']} close</span>" in html
        and "data set" in html
    )


def test_matrix_has_the_papers_layout():
    rows = [
        ("a", "x", "error", 1.0, 1.04, v.REPRODUCED),
        ("a", "y", "error", 2.0, 9.0, v.NOT_REPRODUCED),
        ("b", "x", "error", 3.0, np.nan, v.NOT_AVAILABLE),
    ]
    long = pd.DataFrame(
        rows, columns=["set", "method", "quantity", "published", "measured", "verdict"]
    )
    wide = matrix(long, ["set"], {"error": 1})
    assert wide.columns.tolist() == ["set", "x error", "y error"]
    assert wide.iloc[0].tolist() == [
        "a",
        f"1 (1) {SIGNS[v.REPRODUCED]}",
        f"9 (2) {SIGNS[v.NOT_REPRODUCED]}",
    ]
    assert wide.iloc[1, 2] == ""


def test_a_record_refuses_an_unknown_profile(tmp_path):
    with pytest.raises(ValueError, match="fulll"):
        Record("01_platt2000", out_dir=tmp_path, profile="fulll")


def test_findings_are_computed_from_tables_and_left_out_without_them(tmp_path):
    assert findings(tmp_path) == []
    (tmp_path / "04_don2018").mkdir()
    variants = ["the Id among the inputs", "without the Id", "nothing but the Id"]
    rows = pd.DataFrame(
        {
            "dataset": "glass",
            "variant": variants,
            "one-versus-one, %": [91.2, 70.4, 97.6],
        }
    )
    rows.to_csv(tmp_path / "04_don2018" / "three_sets.csv", index=False)
    (tmp_path / "02_yu2011").mkdir()
    rows = pd.DataFrame(
        {"dataset": ["iris", "vowel"], "unsettled": [0, 21], "n_test": [54, 420]}
    ).assign(percentile=[50.0, 60.0])
    for name in ("chosen_orders", "orders", "splits_drawn", "percentiles"):
        rows.to_csv(tmp_path / "02_yu2011" / f"{name}.csv", index=False)
    glass, order = findings(tmp_path)
    assert "91 %" in glass and "70 %" in glass and "98 %" in glass
    assert "all but 0 to 5 %" in order and "all but 5.0 %. No order" in order


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    write_atomically(path, lambda part: part.write_text("old"))

    def fails(part: Path) -> None:
        part.write_text("ne")
        raise OSError("disk full")

    with pytest.raises(OSError):
        write_atomically(path, fails)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_record_says_what_produced_it_wherever_it_is_called_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Record("01_x", out_dir="runs").folder == project_root() / "runs" / "01_x"
    run = Record("01_x", out_dir=tmp_path, seed=3)
    assert list(run.progress(iter("ab"), "letters", total=2)) == ["a", "b"]
    assert run.map(pow, [(2, 3), (3, 2)], "powers") == [8, 9]
    assert run.expected("letters").data == ""
    run.loops["letters"] = 12.3
    run.close(["iris", "letter"])
    assert (
        run.expected("letters").data
        == "*The next cell took: letters 12 s in the last run here (quick profile).*"
    )
    written = json.loads((tmp_path / "01_x" / "run.json").read_text())
    assert (
        written["parameters"] == {"profile": "quick", "seed": 3}
        and len(written["data"]["letter"]) == 64
    )
    shown = dict(run.provenance().to_numpy().tolist())
    assert shown["data: letter"] == written["data"]["letter"][:12] and "numpy" in shown


def test_figures_are_the_same_bytes_each_time(tmp_path):
    from matplotlib.figure import Figure

    for out in ("a", "b"):
        figure = Figure()
        figure.subplots().plot([1, 2, 3], label="x")
        Record("01_x", out_dir=tmp_path / out).figure("line", figure)
    for name in ("line.svg", "line.png"):
        assert (tmp_path / "a/01_x" / name).read_bytes() == (
            tmp_path / "b/01_x" / name
        ).read_bytes()


def test_report_knows_no_paper():
    """It can be imported without them: papers are given to it from above."""
    script = (
        "import sys, pkgutil, importlib, dagsvm_lab.report as report\n"
        "for m in pkgutil.iter_modules(report.__path__):\n"
        "    importlib.import_module(f'dagsvm_lab.report.{m.name}')\n"
        "print([n for n in sys.modules if n.startswith('dagsvm_lab.papers')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
