"""Displays of fitted systems: what is drawn, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dagsvm_lab import (
    DAGSVC,
    DCSVC,
    AdaptiveDAGSVC,
    BankDisplay,
    FilteredDAGSVC,
    GraphDisplay,
    MaxWinsSVC,
    OneVsRestSVC,
    load,
)
from dagsvm_lab.graphs import GraphTooLarge
from dagsvm_lab.plots import RED
from dagsvm_lab.plots.graphs import way

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris_frame():
    d = load_iris(as_frame=True)
    return d.data, d.target_names[d.target]


def coloured(ax) -> int:
    return sum(line.get_color() == RED for line in ax.lines)


def written(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("make", [DAGSVC, AdaptiveDAGSVC, DCSVC, FilteredDAGSVC])
def test_a_graph_is_drawn_with_the_way_of_a_row(make, iris_frame):
    X, y = iris_frame
    X = X.to_numpy()
    est = make().fit(X, y)
    shown = GraphDisplay.from_estimator(est, path_of=X[:1])
    system = getattr(est, "base_", est)
    _, cost = system.predict_with_cost(X[:1])
    assert coloured(shown.ax_) == cost.binary_decisions[0], "an edge a decision"
    assert set(est.classes_) <= set(written(shown.ax_)), "each class has a leaf"
    assert shown.figure_ is shown.ax_.figure


@pytest.mark.parametrize("make", [DAGSVC, AdaptiveDAGSVC])
def test_nodes_of_classes_with_long_names_stand_apart(make):
    names = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"])
    d = load("artificial", n_per_class=20, seed=0)
    y = names[np.searchsorted(np.unique(d.y), d.y)]
    ax = GraphDisplay.from_estimator(make().fit(d.X, y)).ax_
    ax.figure.canvas.draw()
    boxes = [t.get_bbox_patch().get_window_extent() for t in ax.texts]
    layers = {}
    for box in boxes:
        layers.setdefault(round(box.y0), []).append((box.x0, box.x1))
    for layer in layers.values():
        layer.sort()
        pairs = zip(layer, layer[1:], strict=False)
        assert all(one[1] <= other[0] for one, other in pairs)


def test_a_pipeline_takes_the_row_that_its_predict_takes(iris_frame):
    X, y = iris_frame
    pipe = make_pipeline(StandardScaler(), DAGSVC()).fit(X.to_numpy(), y)
    ax = plt.subplots()[1]
    shown = GraphDisplay.from_estimator(pipe, path_of=X.to_numpy()[120], ax=ax)
    assert shown.ax_ is ax
    leaf = way(shown.graph, shown.path)[-1]
    answer = pipe.classes_[shown.graph.label[leaf]]
    assert answer == pipe.predict(X.to_numpy()[[120]])[0]
    plain = GraphDisplay.from_estimator(pipe)
    assert coloured(plain.ax_) == 0, "no row, no way"


def test_what_has_no_graph_or_too_large_a_graph_is_refused(iris_frame):
    X, y = iris_frame
    with pytest.raises(TypeError, match="MaxWinsSVC has no decision graph"):
        GraphDisplay.from_estimator(MaxWinsSVC().fit(X, y))
    d = load("letter", scaled=True)
    est = AdaptiveDAGSVC().fit(d.X_train[:600], d.y_train[:600])
    with pytest.raises(GraphTooLarge, match="more than 500 nodes"):
        GraphDisplay.from_estimator(est)


def test_the_fields_of_a_bank_hold_its_support_vectors(iris_frame):
    X, y = iris_frame
    est = DAGSVC().fit(X, y)
    shown = BankDisplay.from_estimator(est)
    fields = np.ma.filled(np.ma.masked_invalid(shown.im_.get_array()), 0)
    assert sorted(fields[fields > 0]) == sorted(est.machines_.n_support)
    assert written(shown.ax_) == [str(n) for n in est.machines_.n_support]


def test_other_machines_are_drawn_as_their_coding_matrix(iris_frame):
    X, y = iris_frame
    est = make_pipeline(StandardScaler(), OneVsRestSVC()).fit(X, y)
    shown = BankDisplay.from_estimator(est)
    np.testing.assert_array_equal(shown.im_.get_array(), est[-1].machines_.code)
