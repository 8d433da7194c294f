"""What many runs found, put together: tables stacked, verdicts side by side."""

import json

import numpy as np
import pandas as pd
import pytest
from batches import TABLE, papers

from dagsvm_lab.run import collect
from dagsvm_lab.run.cli import main

YU = "02_yu2011"


@pytest.fixture
def grid(tmp_path):
    """Runs as a batch leaves them: two seeds and two rates, a table each."""
    for seed in (1, 2):
        for rate in (0.25, 0.5):
            folder = tmp_path / f"rate={rate},seed={seed}"
            table = pd.DataFrame({"set": ["a", "b"], "sum": [seed + rate, 10.0]})
            written = folder / "01_good" / "sums.csv"
            written.parent.mkdir(parents=True)
            table.assign(verdict=["close", "fitted"]).to_csv(written, index=False)
            about = {
                "parameters": {"rate": rate, "seed": seed, "out_dir": "x"},
                "files": {"01_good_one.ipynb": "", "01_good/sums.csv": ""},
            }
            (folder / "01_good_one.stamp.json").write_text(json.dumps(about))
    return tmp_path


def test_tables_are_stacked_with_their_parameters(grid, capsys):
    assert main(["collect", str(grid)]) == 0
    said = capsys.readouterr().out
    assert "4 runs, 1 tables" in said
    table = pd.read_csv(grid / "collected" / "01_good" / "sums.csv")
    assert list(table) == "run param_rate param_seed set sum verdict".split()
    assert len(table) == 8 and table["sum"].iloc[0] == 1.25
    assert table["run"][0] == "rate=0.25,seed=1/01_good_one"
    first = table[table["set"] == "a"]
    np.testing.assert_array_equal(
        first["sum"], first["param_rate"] + first["param_seed"]
    )
    runs = pd.read_csv(grid / "collected" / "runs.csv")
    assert runs["close"].tolist() == [1] * 4 and runs["fitted"].tolist() == [1] * 4
    assert not list(grid.rglob("*.part*"))


def test_a_number_is_drawn_over_the_grid(grid, capsys):
    assert main(["collect", str(grid), "--figure", "01_good/sums", "sum"]) == 0
    drawn = grid / "collected" / "01_good-sums-sum.svg"
    assert drawn.is_file() and str(drawn) in capsys.readouterr().out
    for wrong in (["01_good/none", "sum"], ["01_good/sums", "none"]):
        assert main(["collect", str(grid), "--figure", *wrong]) == 2
        assert "there are" in capsys.readouterr().err


def test_the_line_through_the_grid_is_the_mean(grid):
    tables = collect.stacked(collect.runs_below(grid))
    fig = collect.drawing(tables, "01_good/sums", "sum")
    lines = fig.axes[0].lines
    expected = {"1": [5.625, 5.75], "2": [6.125, 6.25]}  # (seed + rate + 10) / 2
    assert {line.get_label(): line.get_ydata().tolist() for line in lines} == expected


def test_verdicts_stand_side_by_side(tmp_path, root):
    """The record's own tables as two runs, one of which lacks most of them."""
    for name, tables in {"all": "*.csv", "few": "table1.csv"}.items():
        files = {str(path): "" for path in sorted((root / "figures" / YU).glob(tables))}
        about = {"parameters": {"seed": 0}, "files": files}
        stamp = tmp_path / name / "02_yu2011_adaptive_dagsvm.stamp.json"
        stamp.parent.mkdir()
        stamp.write_text(json.dumps(about))
    found = collect.verdicts(collect.runs_below(tmp_path))[YU]
    few, every = (f"{name}/02_yu2011_adaptive_dagsvm" for name in ("few", "all"))
    assert list(found) == ["id", "reading", every, few]
    assert (found[few] == "not in this run").sum() > 5
    assert not (found[every] == "not in this run").any()


def test_a_folder_without_runs_gets_a_sentence(tmp_path, capsys):
    assert main(["collect", str(tmp_path)]) == 2
    assert "no finished run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_batch_over_a_grid_ends_in_one_table(notebook, tmp_path, capsys):
    notebook("01_good_one", TABLE)
    grid = tmp_path / "grid.yaml"
    grid.write_text("seed: [1, 2]\n")
    assert papers(tmp_path, "--grid", str(grid), "--jobs", "2") == 0
    assert "2 runs, 1 tables" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "collected" / "01_good" / "sums.csv")
    assert table["sum"].tolist() == [1.5, 2.5]
