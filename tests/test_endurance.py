"""Many fits and predictions in one process take no more memory than few."""

import gc

import numpy as np
import psutil
import pytest

from dagsvm_lab import DCSVC, AdaptiveDAGSVC, BinaryTreeSVC, MaxWinsSVC, load


@pytest.mark.slow
def test_five_hundred_fits_and_ten_thousand_predictions_keep_memory():
    d, used = load("vowel", scaled=True), []
    X, y = d.X_train[::4], d.y_train[::4]
    systems = (MaxWinsSVC, AdaptiveDAGSVC, BinaryTreeSVC, DCSVC)
    for k in range(500):
        est = systems[k % 4](C=1 + k % 7, gamma=1.0).fit(X, y)
        for row in d.X_test[: 20 if k else 1]:
            est.predict(row[None])
        if k % 100 == 99:
            gc.collect()
            used.append(psutil.Process().memory_info().rss / 1e6)
    assert max(np.diff(used[1:])) < 10 and used[-1] - used[1] < 20, used  # MB
