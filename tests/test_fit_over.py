"""`fit_over`: every system over every kind of bank."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import dagsvm_lab as lab
from dagsvm_lab.systems.adaptive import dbtc_matrix
from dagsvm_lab.systems.base import Sample

PAIRS = [
    lab.MaxWinsSVC(),
    lab.AndGateSVC(),
    lab.DAGSVC(),
    lab.AdaptiveDAGSVC(),
    lab.BinaryTreeSVC(),
    lab.BinaryTreeSVC(retrain=True),
    lab.DCSVC(),
]
SYSTEMS = [
    *PAIRS,
    lab.MaxWinsSVC(scale_pairs=True),
    lab.DCSVC(scale_pairs=True),
    lab.PosteriorSVC(n_neighbors=5),
    lab.BinaryTreeSVC(labels="soft", n_neighbors=5),
    lab.OneVsRestSVC(),
    lab.PosteriorSVC(strategy="ovr"),
    lab.DecisionTreeSVC(),
    lab.ECOCSVC(random_state=0),
    lab.ECOCSVC(code="sparse", code_size=9, random_state=3),
]
TAKES = {  # kind of bank: positions of the systems above that can be fitted over it
    "pairs": range(7),
    "scaled pairs": [2, 3, 4, 7, 8],
    "soft pairs": [0, 1, 2, 3, 6, 9, 10],
    "rest": [11],
    "soft rest": [11, 12],
    "groups": [13],
    "dense": [14],
    "sparse": [15],
    "direct": [],
    "a tree's": [],
}


@pytest.fixture(scope="module")
def banks():
    """A bank of each kind, with a kernel and C that no system has by default."""
    X, y = (part[:150] for part in load_digits(n_class=6, return_X_y=True))
    how = dict(C=7.0, gamma=0.013)
    makers = {
        "pairs": lab.MaxWinsSVC(**how),
        "scaled pairs": lab.MaxWinsSVC(scale_pairs=True, **how),
        "soft pairs": lab.PosteriorSVC(n_neighbors=5, **how),
        "rest": lab.OneVsRestSVC(**how),
        "soft rest": lab.PosteriorSVC(strategy="ovr", **how),
        "groups": lab.DecisionTreeSVC(**how),
        "dense": lab.ECOCSVC(random_state=1, **how),
        "sparse": lab.ECOCSVC(code="sparse", code_size=9, **how),
        "direct": lab.CrammerSingerSVC(**how),
        "a tree's": lab.BinaryTreeSVC(pair="random", random_state=0, **how),
    }
    # no input is constant, so that scales are used
    X = X / 4 + np.random.default_rng(1).normal(scale=0.01, size=X.shape)
    return X, y, {name: est.fit(X, y).machines_ for name, est in makers.items()}


@pytest.mark.parametrize("kind", TAKES)
def test_fit_over_takes_what_the_bank_knows_or_refuses(kind, banks):
    X, y, made = banks
    bank = made[kind]
    for at, est in enumerate(SYSTEMS):
        over = clone(est)
        if at not in TAKES[kind]:
            with pytest.raises(
                ValueError,
                match=f"{type(est).__name__} cannot be fitted over this bank: ",
            ):
                over.fit_over(bank, X, y)
            continue
        over.fit_over(bank, X, y)
        own = clone(est).set_params(C=7.0, gamma=0.013)
        if (
            "soft" not in kind
            and "scaled" not in kind
            and kind not in ("dense", "sparse")
            or at in (7, 8, 9, 10, 12)
        ):
            own.fit(X, y)  # trained on its own with the bank's kernel and C: the same
            np.testing.assert_allclose(
                over.decision_function(X), own.decision_function(X), atol=1e-6
            )
            assert over.n_parameters_ == own.n_parameters_
        if isinstance(over, lab.AdaptiveDAGSVC):
            assert over.C_[0, 1] == 7.0 and over.gamma_[0, 1] == 0.013
            same = dbtc_matrix(
                Sample(X, y, bank.kernel, None, None),
                bank.kernels or [bank.kernel] * 15,
            )
            np.testing.assert_array_equal(over.separability_, same)


def test_fit_over_refuses_other_rows_labels_and_kernels(banks):
    X, y, made = banks
    for rows, labels, reason in (
        (X[:-1], y[:-1], "other rows"),
        (X[::-1].copy(), y[::-1], "other rows"),
        (X, np.roll(y, 1), "other labels"),
        (X[:, :-1], y, "inputs"),
        (X[y < 5], y[y < 5], "6 classes"),
    ):
        with pytest.raises(ValueError, match=reason):
            lab.DAGSVC().fit_over(made["pairs"], rows, labels)
    with pytest.raises(ValueError, match="precomputed|inputs|square"):
        lab.DAGSVC(kernel="precomputed").fit_over(made["pairs"], X @ X.T, y)
    with pytest.raises(ValueError, match="tune"):
        lab.AdaptiveDAGSVC(tune="dbtc").fit_over(made["pairs"], X, y)
    assert (
        lab.DAGSVC()
        .fit_over(made["pairs"], X, np.array(list("abcdef"))[y])
        .predict(X[:1])[0]
        in "abcdef"
    )
