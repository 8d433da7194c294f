"""The claims are well stated, every one can be evaluated, and the committed scorecard follows from the record."""

import shutil
from collections import Counter

import pandas as pd
import pytest

from dagsvm_lab.report import scorecard as sc
from dagsvm_lab.report.record import project_root
from dagsvm_lab.report.verdicts import NOT_AVAILABLE, PUBLISHED, WORDS

STATED = sc.claims()
SETS = ("usps", "letter", "covertype")
# Statements that the paper's own tables contradict
AGAINST_THEMSELVES = {
    "don-no-difference": "svmguide4: 57.88 against 71.21",
    "don-larger-better": "2 % is the worst threshold in the mean",
    "don-steps-below": "heart: 4.00 steps, 5 classes",
    "don-threshold-steps": "artificial: 3.76 steps at 2 %, 3.67 at 0.01 %",
}


def invented() -> dict[str, pd.DataFrame]:
    """Small tables, as the notebooks name them, on which every statement about them is true."""
    pairs = [(s, a, "dagsvm", 5, 4, 1.0, 1.0, False) for s in SETS for a in ("1-v-r", "max-wins")]
    kinds = {"pair-over-m": 2.0, "1-v-r-over-n": 1.0, "1-v-1-over-n": 0.0}
    seconds = {"pair-over-m": 9.0, "1-v-r-over-n": 5.0, "1-v-1-over-n": 2.0}
    bound = {"theorem1_paper": 9.0, "theorem1_lemma": 8.0, "theorem2_class_0": 4.0, "theorem2_class_1": 5.0}
    fourteen = sc.published("don2018_tables3to6")["dataset"]
    four = ("letter", "vowel", "usps", "sensorless")
    curve = {"letter": range(6), "usps": range(6), "vowel": (0, 0, 0, 5, 5, 5), "sensorless": (0, 4, 5, 5, 5, 6)}
    frame = {
        "01_platt2000/graph": ("n_classes nodes leaves path_min path_max", [(4, 6, 4, 3, 3), (26, 325, 26, 25, 25)]),
        "01_platt2000/dimension": ("dimension bound", [(2, 7.0), (200, 7.0)]),
        "01_platt2000/datasets": ("dataset test", [("covertype", 565893)]),
        "01_platt2000/bounds": (
            "dataset variant log_base bound",
            [(s, v, b, x) for s in SETS for v, x in bound.items() for b in (2, 2.718281828)],
        ),
        "01_platt2000/orders": (
            "dataset order accuracy_pct",
            [(s, o, a) for s in SETS for o, a in (("random-0", 95.0), ("random-1", 95.2), ("worst", 80.0))],
        ),
        "01_platt2000/scaling": (
            "solver kind n_classes seconds exponent",
            [(w, k, 5, seconds[k], e) for w in ("smo", "libsvm") for k, e in kinds.items()],
        ),
        "01_platt2000/selection": (
            "dataset method kernel sigma chosen",
            [(s, m, "rbf", g, True) for s in SETS for m, g in (("1-v-r", 1.0), ("dagsvm", 1.4))]
            + [("usps", "dagsvm", "poly", None, False)],
        ),
        "01_platt2000/mcnemar": (
            "dataset method_a method_b only_a_wrong only_b_wrong p_exact p_corrected significant",
            pairs,
        ),
        "02_yu2011/repeats": (
            "dataset seed method accuracy_pct kernel_evaluations",
            [
                (s, k, m, a, e)
                for s in sc.published("yu2011_table2")["dataset"]
                for k in (0, 1)
                for m, a, e in (("traditional", 90.0, 50), ("adaptive", 91.0, 52), ("max-wins", 91.0, 90))
            ],
        ),
        "02_yu2011/tuning": (
            "dataset pair recipe validation_accuracy_pct",
            [("iris", "0-1", "dbtc", 95.0), ("iris", "0-1", "cv", 95.5), ("iris", "0-1", "curve", 10.0)],
        ),
        "02_yu2011/identity": ("equation form difference", [(6, "printed", 0.0), (9, "printed", 1e-9)]),
        "03_wang2011/figure1": (
            "dataset k error_pct support_vectors",
            [(s, k, 5 - k / 10, 900 - k) for s in ("letter", "optdigit", "pendigit", "mnist") for k in range(1, 12)],
        ),
        "03_wang2011/paths": (
            "n_classes system mean_path log2_n log43",
            [(10, "dagsvm", 9.0, 3.3, 4.1), (10, "svm_cbts", 4.1, 3.3, 4.1), (10, "btppsvm", 3.3, 3.3, 4.1)],
        ),
        "03_wang2011/noise": (
            "dataset noise_pct machine accuracy_pct support_vectors",
            [("letter", n, m, a, v) for n in (0, 10) for m, a, v in (("ordinary", 90, 50), ("posterior", 91, 40))],
        ),
        "03_wang2011/layers": ("dataset predicted_error_pct measured_error_pct", [("letter", 5.1, 5.0)]),
        "03_wang2011/band": (
            "dataset system band machines accuracy_pct",
            [("letter", "svm_cbts", 0.2, 300, 95.2), ("letter", "svm_cbts", 0.0, 260, 95.0)],
        ),
        "04_don2018/predictions": (
            "machine label first_pct second_pct",
            [("1-6", k, p, 100 - p) for k, p in zip((1, 2, 3, 5, 6, 7), (100, 91.8, 100, 50, 0, 20), strict=True)]
            + [("5-6", k, 100.0, 0.0) for k in range(55)],
        ),
        "04_don2018/depth": ("case n_classes depth", [("any", 6, 5), ("halving", 8, 3), ("halving", 9, 4)]),
        "04_don2018/times": (
            "dataset method seconds",
            [(s, m, t) for s in fourteen for m, t in (("ovo", 2.0), ("dcsvm", 1.0))],
        ),
        "04_don2018/pareto": (
            "dataset system kernel_evaluations binary_decisions",
            [
                (s, m, 10 * d, d)
                for s in fourteen
                for m, d in (("max-wins", 45), ("dagsvm", 9), ("dcsvm", 5.5), ("adaptive", 9))
            ],
        ),
        "04_don2018/figure8": (
            "dataset threshold_pct accuracy_pct steps",
            [("letter", t, 96 - t, 20 - t) for t in (2.0, 0.01)] + [("vowel", t, 97.0, 5.4) for t in (2.0, 0.01)],
        ),
        "04_don2018/figure9": (
            "method threshold_pct accuracy_pct",
            [(m, t, a) for m, a in (("builtin", 95), ("dcsvm", 95.5), ("ovo", 96)) for t in (1.0, 2.0)],
        ),
        "04_don2018/figure10": (
            "dataset threshold_pct separation_pct",
            [(s, float(t), x) for s in four for t, x in enumerate(curve[s])],
        ),
    }
    return {name: pd.DataFrame(rows, columns=head.split()) for name, (head, rows) in frame.items()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A project whose record is the papers' own tables, and invented ones for what they do not print."""
    root = tmp_path_factory.mktemp("project")
    (root / "README.md").write_text(f"# Title\n{sc.BEGIN}\n{sc.END}\nThe end.\n", encoding="utf-8")
    for name, rows in invented().items():
        path = root / "figures" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(path, index=False)
    for cells in STATED["cells"]:
        printed = sc.published(cells["published"])
        if cells["published"] == "wang2011_tables2to4":
            printed = printed[printed["table"] == int(cells["table"][-1])]
        printed.to_csv(root / "figures" / cells["paper"] / f"{cells['table']}.csv", index=False)
    return root


def test_claims_are_well_formed():
    ids = [claim["id"] for claim in STATED["claim"]] + [cells["id"] for cells in STATED["cells"]]
    assert [name for name, n in Counter(ids).items() if n > 1] == []
    counts = Counter(claim["paper"] for claim in STATED["claim"])
    assert counts.keys() == sc.PAPERS.keys()
    assert all(counts[paper] >= least for paper, least in zip(sc.PAPERS, (18, 10, 18, 18), strict=True))
    for claim in STATED["claim"]:
        name, kind = claim["id"], claim["kind"]
        assert claim["place"] and claim["text"].endswith("."), name
        assert kind in {"value", "ratio", "order", "exists", "formula", "uncheckable"}, name
        assert (kind == "uncheckable") == ("reason" in claim) == ("source" not in claim), name
        assert ("published" in claim) or kind not in {"value", "ratio"}, name
        assert ("published" in claim) or "rule" not in claim, name


def test_no_verdict_is_typed_in():
    for claim in STATED["claim"]:
        said = {str(value).lower() for key, value in claim.items() if key != "text"}
        assert "verdict" not in claim and not said & set(WORDS), claim["id"]


def test_claims_hold_on_the_papers_own_numbers(tree):
    card = sc.scorecard(tree / "figures").set_index("id")
    wrong = card[~card["verdict"].isin(["reproduced", "other machine", "not checkable"])]
    expected = {*AGAINST_THEMSELVES, "don-steps-printed", "don-72"}
    assert {name: row["measured"] for name, row in wrong.iterrows() if name not in expected} == {}
    assert expected <= set(wrong.index)
    assert card.loc["don-72", ["measured", "verdict"]].tolist() == ["64.44", "not reproduced"]
    assert card.loc["don-steps-below", "measured"] == "13 of 14"
    assert card.loc["platt-evaluation-most", "measured"] == "2.29"
    assert card.loc["platt-table1/usps/dagsvm/train_cpu_s", "verdict"] == "other machine"


def test_the_word_follows_the_numbers(tree, tmp_path):
    folder = tmp_path / "figures"
    shutil.copytree(tree / "figures", folder)
    table = folder / "01_platt2000" / "table1.csv"
    rows = pd.read_csv(table).set_index(["dataset", "method"])
    rows.loc[("usps", "dagsvm"), "kernel_evaluations"] = 900  # 1877 / 900 = 2.09
    rows.loc[("letter", "dagsvm"), "error_pct"] = 9.9
    rows.drop([("covertype", "max-wins")]).to_csv(table)
    (folder / "01_platt2000" / "orders.csv").unlink()
    before, after = (sc.scorecard(f).set_index("id")["verdict"] for f in (tree / "figures", folder))
    changed = dict(after[before != after])
    assert changed["platt-evaluation-most"] == "close"
    assert changed["platt-errors-similar"] == "not reproduced"
    assert changed["platt-evaluation-least"] == changed["platt-order"] == NOT_AVAILABLE
    assert changed["platt-table1/letter/dagsvm/error_pct"] == "not reproduced"
    assert changed["platt-table1/covertype/max-wins/error_pct"] == NOT_AVAILABLE
    assert not any(name.startswith(("yu", "wang", "don")) for name in changed)


def test_mcnemar_only_counts_against_dagsvm(tmp_path):
    claim = next(c for c in STATED["claim"] if c["id"] == "platt-mcnemar-usps")
    head = "dataset,method_a,method_b,only_a_wrong,only_b_wrong,significant\nusps,1-v-r,max-wins,9,90,True\n"
    for dag_wrong, verdict in ((90, "not reproduced"), (9, "reproduced")):
        other = 99 - dag_wrong
        lines = f"usps,dagsvm,1-v-r,{dag_wrong},{other},True\nusps,max-wins,dagsvm,5,4,False\n"
        (tmp_path / "mcnemar.csv").write_text(head + lines)
        assert sc.evaluate(claim, tmp_path)[1] == verdict


def test_writing_twice_changes_nothing(tree, capsys):
    def state():
        return {p: p.read_bytes() for p in [*tree.glob("figures/scorecard.*"), tree / "README.md"]}

    assert sc.main(check=True, root=tree) == 1
    assert sc.main(root=tree) == 0
    first = state()
    assert {p.suffix for p in first} == {".csv", ".md", ".svg"}
    assert sc.main(root=tree) == 0 and state() == first
    assert sc.main(check=True, root=tree) == 0
    readme = (tree / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# Title\n") and readme.endswith(f"{sc.END}\nThe end.\n") and "| statements |" in readme
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith(f"{len(STATED['claim'])} statements and ")
    (tree / "README.md").write_text(readme.replace("| statements | 2", "| statements | 3"), encoding="utf-8")
    assert sc.main(check=True, root=tree) == 1 and "README.md is out of date" in capsys.readouterr().out


def test_without_a_record_it_says_so(tmp_path, capsys):
    assert sc.main(root=tmp_path) == 0
    out = capsys.readouterr().out
    assert "README.md has no" in out and "01_platt2000, no table table1: " in out
    assert "not available here" in out.splitlines()[-1]


def test_a_table_of_another_shape_is_named(tmp_path):
    claim = next(c for c in STATED["claim"] if c["id"] == "platt-evaluation-most")
    for head, line in (("dataset,method,evaluations", "usps,dagsvm,3"), ("set,kernel_evaluations", "usps,3")):
        (tmp_path / "table1.csv").write_text(f"{head}\n{line}\n")
        measured, verdict = sc.evaluate(claim, tmp_path)
        assert verdict == NOT_AVAILABLE and measured.startswith("table1: "), measured


def test_committed_scorecard_follows_from_the_record():
    figures = project_root() / "figures"
    if not any(figures.glob("*/run.json")):
        pytest.skip("nothing is recorded below figures/ yet")
    committed = pd.read_csv(figures / "scorecard.csv", dtype=str, keep_default_na=False).set_index("id")
    now = sc.scorecard(figures).set_index("id").reindex(committed.index.union([c["id"] for c in STATED["claim"]]))
    changed = [
        f"{name}: {committed['verdict'].get(name)} -> {row['verdict']} ({row['measured']})"
        for name, row in now.iterrows()
        if row["verdict"] != committed["verdict"].get(name)
    ]
    assert not changed, "verdicts moved:\n" + "\n".join(changed)
    assert sc.main(check=True) == 0, "run dagsvm-lab scorecard"


def test_published_folder_holds_only_tables_and_claims():
    assert {path.suffix for path in PUBLISHED.iterdir() if path.is_file()} == {".csv", ".toml"}
