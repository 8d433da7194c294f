"""A reader's own table: what is read, and every refusal with what to do."""

import numpy as np
import pandas as pd
import pytest

from dagsvm_lab import DAGSVC
from dagsvm_lab.files import CommandError
from dagsvm_lab.papers.own import own_split, own_table


def whole() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    species = np.repeat(["ash", "oak", "elm"], 20)
    size = rng.normal(size=60) + 4 * (species == "oak")
    height = rng.normal(size=60) + 4 * (species == "elm")
    return pd.DataFrame({"size": size, "species": species, "height": height, "one": 1})


@pytest.fixture
def written(tmp_path):
    """Write a table, and return its path."""

    def write(table: pd.DataFrame) -> str:
        path = tmp_path / "trees.csv"
        table.to_csv(path, index=False)
        return str(path)

    return write


def test_a_whole_table_is_read_and_parted(written):
    data = own_table(written(whole()), "species")
    assert data.name == "trees" and data.features == ("size", "height", "one")
    assert data.class_names == ("ash", "elm", "oak") and data.X.shape == (60, 3)
    names = np.array(data.class_names)[data.y]
    assert (names == whole()["species"]).all(), "each row has its class"
    split = own_split(data, seed=1)
    assert np.bincount(split.y).tolist() == [10, 10, 10]
    assert split.X.shape == (30, 2), "a constant input is left out"
    np.testing.assert_allclose(np.abs(split.X).max(axis=0), 1, rtol=1e-5)
    assert DAGSVC().fit(split.X, split.y).score(split.X_test, split.y_test) > 0.8


def test_a_path_that_was_split_at_its_commas_is_put_together(written, tmp_path):
    path = tmp_path / "a,b.csv"
    whole().to_csv(path, index=False)
    assert own_table(str(path).split(","), "species").name == "a,b"


def test_a_target_comes_from_the_command_line_as_a_list(written, tmp_path):
    table = whole().rename(columns={"species": "kind, of tree"})
    data = own_table(written(table), "kind, of tree".split(","))
    assert data.class_names == ("ash", "elm", "oak")
    assert own_table(written(whole()), ["species"]).features == data.features


def without(column: str, rows: slice) -> pd.DataFrame:
    table = whole()
    table.loc[rows, column] = np.nan
    return table


@pytest.mark.parametrize(
    ("table", "target", "said"),
    [
        (whole(), "kind", "no column 'kind'; -p target takes one of size, species"),
        (whole(), None, "no target is given"),
        (whole()[["species"]], "species", "inputs beside 'species'"),
        (without("size", slice(0, 2)), "species", "'size' has 3 missing values of 60"),
        (without("size", slice(0, 2)), "species", "SimpleImputer"),
        (without("species", slice(5, 5)), "species", "'species' has 1 missing"),
        (whole().assign(soil="clay"), "species", r"'soil' holds words \('clay'\)"),
        (whole().assign(soil="clay"), "species", "get_dummies"),
        (whole().assign(height=np.inf), "species", "'height' has infinite values"),
        (whole().assign(species="ash"), "species", "has one class, 'ash'"),
        (whole().drop(columns="species"), "size", "60 values in 60 rows"),
        (whole().iloc[:42], "species", "class 'elm' of target 'species' has 2 rows"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(written, table, target, said):
    with pytest.raises(CommandError, match=said):
        own_table(written(table), target)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(CommandError, match="whole path"):
        own_table(str(tmp_path / "none.csv"), "species")
