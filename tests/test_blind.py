"""The blind test's loop and its judgement, on made files: fresh sets do not ship."""

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab import load
from dagsvm_lab.files import project_root
from dagsvm_lab.papers import blind
from dagsvm_lab.report import verdicts


@pytest.fixture
def folder(tmp_path):
    """Iris in KEEL's form with a category, and as columns with names."""
    d = load("iris")
    lines = ["@relation iris", "@attribute Kind {a, b}"]
    lines += [f"@attribute x{k} real [0, 9]" for k in range(4)]
    for k, (x, label) in enumerate(zip(d.X, d.y, strict=True)):
        lines.append(", ".join(["ab"[k % 2], *map(str, x), str(label)]))
    lines += ["a, 1, 1, 1, 1, rare", "b, 1, 1, 1, 1, rare", "b, ?, 1, 1, 1, 0"]
    (tmp_path / "movement_libras.dat").write_text("\n".join(lines), encoding="utf-8")
    named = [
        f"N{k}  {'  '.join(map(str, x))}  class{label}"
        for k, (x, label) in enumerate(zip(d.X, d.y, strict=True))
    ]
    (tmp_path / "yeast.data").write_text("\n".join(named), encoding="utf-8")
    return tmp_path


def test_categories_are_indicators_and_rare_classes_are_left_out(folder):
    X, categorical, y = blind.read(folder / "movement_libras.dat")
    assert X.shape == (150, 6) and categorical.tolist() == [True] * 2 + [False] * 4
    assert set(y) == {"0", "1", "2"}
    assert (X[:, 0] == np.arange(150) % 2).sum() == 0 and (X[:, :2].sum(1) == 1).all()
    X, categorical, y = blind.read(folder / "yeast.data")
    assert X.shape == (150, 4) and not categorical.any()
    np.testing.assert_array_equal(X, load("iris").X)


def test_a_split_is_standardised_on_its_training_rows(folder):
    g = next(blind.splits(folder, "movement_libras"))
    assert len(g.y) == 105 and len(g.y_test) == 45
    np.testing.assert_allclose(g.X[:, 2:].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(g.X[:, 2:].std(axis=0), 1, atol=1e-12)
    assert set(np.unique(g.X[:, :2])) == {0, 1}


def test_a_row_counts_what_is_lost_and_won(folder):
    found = blind.row(next(blind.splits(folder, "yeast")))
    gained = (found["filtered_pct"] - found["dag_pct"]) / 100 * found["test_rows"]
    assert found["won"] - found["lost"] == pytest.approx(gained)
    assert found["C"] in blind.C_GRID and found["classes"] == 3


def made(points, ratio, classes=3):
    n = len(points)
    return pd.DataFrame(
        {
            "dataset": f"of {classes}",
            "classes": classes,
            "train_rows": 700,
            "test_rows": 300,
            "dag_pct": 90.0,
            "filtered_pct": 90.0 + np.array(points),
            "dag_evaluations": 100.0,
            "filtered_evaluations": 100.0 * ratio,
            "filter_vectors": 8,
            "lost": np.arange(n),
            "won": 0,
        }
    )


@pytest.mark.parametrize(
    ("points", "word"),
    [
        (np.tile([0.1, -0.1], 5), verdicts.REPRODUCED),
        (np.zeros(10), verdicts.REPRODUCED),
        (np.tile([-2.1, -1.9], 5), verdicts.NOT_REPRODUCED),
        (np.tile([2.0, -3.0], 5), verdicts.WITHIN_CHANCE),
    ],
)
def test_not_inferior_by_half_a_point(points, word):
    assert blind.judged(made(points, 0.5))["word"].tolist() == [word]


def test_means_over_sets_name_those_that_lose():
    tables = [made(np.full(10, 0.1), 0.25, 12), made(np.full(10, -0.2), 1.21)]
    means = blind.overall(blind.judged(pd.concat(tables))).set_index("sets")
    assert means.loc["all", "evaluations_geometric"] == pytest.approx(0.55)
    assert means.loc["all", "evaluations_arithmetic"] == pytest.approx(0.73)
    assert means.loc["all", ["below", "dearer"]].tolist() == ["of 3", "of 3"]
    assert means.loc["ten classes or more", "number"] == 1


def test_the_recorded_table_has_every_split_and_its_counts_fit():
    path = project_root() / "figures" / "05_head_to_head" / "blind.csv"
    table = pd.read_csv(path)
    splits = table.groupby("dataset", sort=False)["split"].apply(list)
    assert splits.index.tolist() == list(blind.FILES)
    assert all(found == list(range(blind.SPLITS)) for found in splits)
    gained = (table["filtered_pct"] - table["dag_pct"]) / 100 * table["test_rows"]
    np.testing.assert_allclose(table["won"] - table["lost"], gained, atol=1e-6)
