"""The data sets: what load() gives, against their sources' counts and the originals."""

import gzip
import io
import lzma
import zipfile
from string import ascii_uppercase

import numpy as np
import pytest
from sklearn.svm import SVC

from dagsvm_lab.datasets import (
    catalogue,
    list_text,
    load,
    scale_like_training,
    standardise_like_training,
)
from dagsvm_lab.datasets.cards import cards, shipped

# rows of each part (train, test or train, valid, test), inputs, classes
WANT = {
    "usps": ((7291, 2007), 256, 10),
    "letter": ((16000, 4000), 16, 26),
    "covertype": ((11340, 3780, 565892), 54, 7),
    "optdigits": ((3823, 1797), 64, 10),
    "pendigits": ((7494, 3498), 16, 10),
    "mnist": ((60000, 10000), 49, 10),
    "vowel": ((528, 462), 10, 11),
    "vehicle": ((846,), 18, 4),
    "segment": ((2310,), 19, 7),
    "segmentation": ((210, 2100), 19, 7),
    "glass": ((214,), 9, 6),
    "heart": ((303,), 13, 5),
    "winequality-red": ((1599,), 11, 6),
    "winequality-white": ((4898,), 11, 7),
    "sensorless": ((58509,), 48, 11),
    "iris": ((150,), 4, 3),
    "wine": ((178,), 13, 3),
    "artificial": ((1800,), 2, 6),
}
COUNTS = {
    "covertype": [211840, 283301, 35754, 2747, 9493, 17367, 20510],
    "sensorless": [5319] * 11,
    "segment": [330] * 7,
    "segmentation": [330] * 7,
    "iris": [50] * 3,
    "wine": [59, 71, 48],
    "vowel": [90] * 11,
}


def test_every_set_is_in_the_table_above():
    assert set(cards()) == {*WANT, "svmguide4", "poker"}
    assert list(catalogue().index) == list(cards())
    for name, line in zip(cards(), list_text().splitlines()[1:], strict=True):
        assert line.startswith(name) and catalogue().loc[name, "rows"] in line


@pytest.mark.parametrize("name", WANT)
def test_rows_inputs_and_classes(name):
    parts, inputs, classes = WANT[name]
    d = load(name)
    given = [X for X in (d.X_train, d.X_valid, d.X_test) if X is not None]
    labels = [y for y in (d.y_train, d.y_valid, d.y_test) if y is not None]
    assert tuple(map(len, given)) == parts
    assert tuple(d.card.rows.values()) == parts
    np.testing.assert_array_equal(np.concatenate(given), d.X, err_msg=name)
    np.testing.assert_array_equal(np.concatenate(labels), d.y, err_msg=name)
    assert d.X.shape == (sum(parts), inputs)
    assert len(d.feature_names) == inputs == d.card.inputs
    assert d.X.dtype == (np.float32 if name == "covertype" else np.float64)
    labels, counts = np.unique(d.y, return_counts=True)
    assert len(labels) == classes
    assert len(d.class_names) == classes
    assert len(np.unique(d.y_train)) == classes
    assert d.card.classes == classes
    assert counts.tolist() == COUNTS.get(name, counts.tolist())


def counted(y: np.ndarray) -> str:
    """Rows of each class, from class 0 on."""
    return " ".join(map(str, np.bincount(y)))


def test_class_counts_of_the_splits():
    usps = load("usps")
    assert counted(usps.y_train) == "1194 1005 731 658 652 556 664 645 542 644"
    assert counted(usps.y_test) == "359 264 198 166 200 160 170 147 166 177"
    mnist = load("mnist")
    train = "5923 6742 5958 6131 5842 5421 5918 6265 5851 5949"
    assert counted(mnist.y_train) == train
    assert 0 <= mnist.X.min() and mnist.X.max() <= 4080
    cover = load("covertype")
    assert np.bincount(cover.y_train)[1:].tolist() == [1620] * 7
    assert np.bincount(cover.y_valid)[1:].tolist() == [540] * 7
    np.testing.assert_array_equal(cover.X[:, 10:14].sum(axis=1), 1)
    np.testing.assert_array_equal(cover.X[:, 14:].sum(axis=1), 1)
    assert "".join(np.unique(load("letter").y_test)) == ascii_uppercase


def _lines(folder, card):
    """First and last data line of a set's originals, read without the package."""
    ends = []
    for file in (list(card.originals)[0], list(card.originals)[-1]):
        data = (folder / file).read_bytes()
        if file.endswith(".xz"):
            data = lzma.decompress(data)
        if file.endswith(".zip"):
            data = zipfile.ZipFile(io.BytesIO(data)).read(file[:-4])
        lines = [line.strip() for line in data.decode().splitlines()]
        ends.append([line for line in lines if line and line[0] not in '@%y"'])
    return ends[0][0], ends[1][-1]


@pytest.mark.parametrize(
    "name", [card.name for card in shipped() if card.name != "mnist"]
)
def test_first_and_last_row_are_the_originals(name, originals):
    d = load(name, with_id=True) if name == "glass" else load(name)
    lines = _lines(originals / "data" / "vendorable", d.card)
    for line, x, y in zip(lines, d.X[[0, -1]], d.y[[0, -1]], strict=True):
        separator = next((s for s in ",;" if s in line), None)
        items = [item.strip().replace("?", "nan") for item in line.split(separator)]
        label = items.pop(0 if name in ("usps", "letter") else -1)
        items = items[3:] if name == "vowel" else items
        # exactly, to the last bit
        np.testing.assert_array_equal(x, [float(item) for item in items])
        assert str(y) == label or float(y) == float(label)


def test_mnist_is_the_sums_of_the_images(originals):
    d = load("mnist")
    for file, i, row in (("train", 0, d.X_train[0]), ("t10k", 9999, d.X_test[-1])):
        path = originals / "data" / "vendorable" / f"{file}-images-idx3-ubyte.gz"
        data = gzip.decompress(path.read_bytes())
        image = np.frombuffer(data, np.uint8, 784, 16 + 784 * i).astype(int)
        blocks = image.reshape(7, 4, 7, 4)  # a block's row, its row, a block's column
        np.testing.assert_array_equal(
            row, blocks.sum(axis=(1, 3)).ravel(), err_msg=f"image {i} of {file}"
        )


def test_vowel_is_split_by_speaker_as_the_original_says(originals):
    lines = (originals / "data" / "vendorable" / "vowel.dat").read_text().splitlines()
    rows = [
        [float(v) for v in line.split(",")]
        for line in lines
        if line.strip() and line[0] != "@"
    ]
    assert load("vowel").X_train.tolist() == [row[3:-1] for row in rows if row[0] == 0]
    assert load("vowel").X_test.tolist() == [row[3:-1] for row in rows if row[0] == 1]


def test_options_and_other_names():
    assert load("letter", train=15000).X_test.shape == (5000, 16)
    glass = load("Glass", with_id=True)
    assert glass.X[:, 0].tolist() == list(range(1, 215))
    assert glass.feature_names[0] == "Id"
    np.testing.assert_array_equal(glass.X[:, 1:], load("glass").X)
    assert np.isnan(load("cleveland").X).any(axis=1).sum() == 6
    whole = load("heart", drop_missing=True)
    assert whole.X_train.shape == (297, 13)
    assert len(whole.y) == 297
    assert not np.isnan(whole.X).any()
    assert load("wine_quality").card.name == "winequality-red"
    assert load("optdigit").card.name == "optdigits"
    with pytest.raises(ValueError, match="'poker-face'.*usps, letter"):
        load("poker-face")
    with pytest.raises(TypeError, match="'letter'.*with_id"):
        load("letter", with_id=True)
    with pytest.raises(ValueError, match="train"):
        load("letter", train=20000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in WANT if n not in ("usps", "letter", "mnist", "covertype")]
)
def test_scaling_is_fitted_on_training_rows(name):
    plain, scaled = load(name), load(name, scaled=True)
    train = plain.X_train
    low, high, mean, deviation = (
        f(train, axis=0) for f in (np.nanmin, np.nanmax, np.nanmean, np.nanstd)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        want = {
            "to [-1, 1]": 2 * (plain.X - low) / (high - low) - 1,
            "to mean 0, variance 1": (plain.X - mean) / deviation,
        }[plain.card.scaling]
    want[:, low == high] = 0
    np.testing.assert_allclose(scaled.X, want, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_scaling_of_the_sets_of_the_first_paper():
    np.testing.assert_array_equal(load("usps", scaled=True).X, load("usps").X)
    np.testing.assert_array_equal(
        load("letter", scaled=True).X, load("letter").X / 7.5 - 1
    )
    np.testing.assert_array_equal(load("mnist", scaled=True).X, load("mnist").X / 4080)
    plain, scaled = load("covertype"), load("covertype", scaled=True)
    assert scaled.X.dtype == np.float32
    np.testing.assert_array_equal(scaled.X[:, 10:], plain.X[:, 10:])
    assert np.abs(scaled.X_train[:, :10].mean(axis=0, dtype=float)).max() < 1e-5
    assert np.abs(scaled.X_train[:, :10].std(axis=0, dtype=float) - 1).max() < 1e-5
    # not fitted on these
    assert np.abs(scaled.X_test[:, :10].mean(axis=0, dtype=float)).max() > 0.1


@pytest.mark.parametrize("scale", [scale_like_training, standardise_like_training])
def test_other_rows_do_not_move_the_scaling(scale):
    rng = np.random.default_rng(0)
    train, other = rng.normal(size=(30, 4)), rng.normal(size=(10, 4))
    train[:, 2] = 0.1  # constant, and not in binary
    a, b = scale(train, other)
    c, d = scale(train, other * 100)
    np.testing.assert_array_equal(a, c)
    assert np.abs(d).max() > 10
    assert not a[:, 2].any() and not b[:, 2].any() and not d[:, 2].any()
    np.testing.assert_array_equal(scale(train, train)[1], a)
    integers = np.arange(6).reshape(3, 2)
    assert scale(integers)[0].dtype == np.float64
    assert scale(integers.astype(np.float32))[0].dtype == np.float32


def test_artificial_has_the_layout_of_figure_1():
    d = load("artificial")
    pair = np.isin(d.y, (1, 2))
    machine = SVC(kernel="linear", C=1).fit(d.X[pair], d.y[pair])
    side_of_1 = {k: np.mean(machine.predict(d.X[d.y == k]) == 1) for k in range(1, 7)}
    assert side_of_1[1] > 0.99 and side_of_1[2] < 0.01
    assert side_of_1[6] == 1 and side_of_1[4] == 0
    assert 0.01 <= side_of_1[5] <= 0.03 and 0.4 <= side_of_1[3] <= 0.6
    np.testing.assert_array_equal(load("artificial", seed=0).X, d.X)
    assert not np.array_equal(load("artificial", seed=1).X, d.X)
    assert len(load("artificial", n_per_class=10).y) == 60
    scaled = load("artificial", scaled=True)
    half = np.arange(len(d.y)) < 900
    accuracy = (
        SVC(gamma=0.5).fit(scaled.X[half], d.y[half]).score(scaled.X[~half], d.y[~half])
    )
    assert 0.975 < accuracy < 0.998  # the paper has 98.8 %


def test_arrays_are_the_callers_own():
    first = load("vowel")
    first.X[:] = 0
    assert load("vowel").X.any()
