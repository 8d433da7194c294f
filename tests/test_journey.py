"""From a table of mixed columns to an answer, as a user of the package would go."""

import numpy as np
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dagsvm_lab import DAGSVC, MaxWinsSVC, compare, tune

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV file: 2,000 rows of eight numbers and three categories, 5 % missing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(6, size=2000)
    frame = pd.DataFrame(rng.normal(size=(2000, 8)) + rng.normal(size=(6, 8))[kind])
    frame.columns = [f"x{k}" for k in range(8)]
    for name in ("colour", "shape", "maker"):
        often = rng.dirichlet(np.ones(4), size=6)  # of each category in each class
        frame[name] = [f"{name}{rng.choice(4, p=often[k])}" for k in kind]
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    frame["answer"] = np.array(["ash", "beech", "elm", "fir", "oak", "yew"])[kind]
    path = tmp_path_factory.mktemp("own") / "own.csv"
    frame.to_csv(path, index=False)
    return path


def test_from_a_file_to_an_answer(table, tmp_path):
    frame = pd.read_csv(table)
    X = frame.drop(columns="answer")
    y = frame["answer"]
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(handle_unknown="ignore"),
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )
    A, B, a, b = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

    pipe = make_pipeline(columns, DAGSVC())
    found = tune(pipe, A, a, C=[0.3, 3.0], gamma=[0.01, 0.05], cv=3)
    best = found.best_estimator_
    assert best.score(B, b) > 0.6, "six classes"
    with pytest.raises(ValueError, match="columns are missing"):
        best.predict(B.drop(columns="colour"))

    systems = compare(A, a, best, cv=3)
    assert {"MaxWinsSVC", "DAGSVC", "FilteredDAGSVC"} <= set(systems.names)
    k = systems.names.index("DAGSVC")
    assert systems.measures["binary_decisions"][k] == 5, "six classes: five decisions"

    labels, cost = best[-1].predict_with_cost(best[:-1].transform(B))
    np.testing.assert_array_equal(labels, best.predict(B))
    vectors = len(best[-1].support_)
    assert (cost.kernel_evaluations < vectors).all(), "a path asks some machines"

    best[-1].save(tmp_path / "system.npz")
    again = make_pipeline(best[:-1], DAGSVC.load(tmp_path / "system.npz"))
    np.testing.assert_array_equal(again.predict(B), labels)
    row = best[:-1].transform(B[:1])  # a service keeps the steps and the system apart
    assert best[-1].predict(row)[0] == labels[0]


def test_its_pictures(table):
    plt = pytest.importorskip("matplotlib.pyplot")
    frame = pd.read_csv(table).dropna()
    X = frame[[f"x{k}" for k in range(8)]]
    systems = [DAGSVC(), MaxWinsSVC()]
    ax = compare(X, frame["answer"], systems, cv=2).plot()
    assert len(ax.texts) == 2
    plt.close(ax.figure)
    est = DAGSVC().fit(X, frame["answer"])
    shown = ConfusionMatrixDisplay.from_estimator(est, X, frame["answer"])
    assert shown.confusion_matrix.sum() == len(X)
    plt.close(shown.figure_)
