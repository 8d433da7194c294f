"""`make verdicts` on a run that was kept in a folder of its own."""

import shutil
import sys

import pandas as pd

from dagsvm_lab.files import project_root

ROOT = project_root()
sys.path.append(str(ROOT / "tests"))


def test_it_lists_the_verdicts_that_a_run_changes(tmp_path, capsys):
    import verdicts

    folder = tmp_path / "02_yu2011"
    shutil.copytree(ROOT / "figures" / "02_yu2011", folder)
    assert verdicts.main(str(tmp_path)) == 0
    said = capsys.readouterr().out
    assert "02_yu2011" not in said and "none differs" in said
    table = pd.read_csv(folder / "table2.csv")
    table["adaptive"] /= 2
    table.to_csv(folder / "table2.csv", index=False)
    (folder / "table1.csv").unlink()
    assert verdicts.main(str(tmp_path)) == 1
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines and all("yu-table2" in line for line in lines), lines


def test_outside_of_git_the_shipped_scorecard_is_the_committed_one(
    tmp_path, monkeypatch
):
    import verdicts

    (tmp_path / "figures").mkdir()
    shutil.copy(ROOT / "figures" / "scorecard.csv", tmp_path / "figures")
    monkeypatch.setattr(verdicts, "ROOT", tmp_path)
    assert verdicts.words(verdicts.committed())
