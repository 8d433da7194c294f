"""Sets of classes that miss the true one with a chance of at most alpha.

Split conformal prediction (Papadopoulos et al. 2002; Vovk, Gammerman and Shafer 2005).
A score s(x, l) says how implausible class l is for x. Let (x_1, y_1), ..., (x_n, y_n)
be the calibration set, exchangeable with (x, y), and q the k-th smallest of
s(x_i, y_i) for k = ceil((1 - alpha)(n + 1)), infinite if k > n.

    Theorem. The set {l : s(x, l) <= q} misses y with probability at most alpha.
    Proof. s was settled before the calibration set was seen, so the n + 1 numbers
    s(x_i, y_i) and s(x, y) are exchangeable, and s(x, y) is among the k smallest with
    probability at least k / (n + 1) >= 1 - alpha; ties only help. If it is, it is at
    most the k-th smallest of the others, which is q.
"""

from typing import Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)


class SplitConformal:
    """A classifier with `set_scores`, `alpha` and `classes_` that predicts sets.

    Attributes
    ----------
    calibration_ : ndarray
        Sorted scores of the true classes of the calibration set; empty before
        `calibrate`.
    """

    def calibrate(self, X, y) -> Self:
        """Calibrate `predict_set` on a calibration set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that no machine was trained on, drawn as those to be predicted are.
        y : array-like of shape (n_samples,)
            Their classes. One that is not known counts as missed.

        Returns
        -------
        self : object
            This estimator.
        """
        y = column_or_1d(y)
        check_consistent_length(X, y)
        scores = self.set_scores(X)
        index = {label: k for k, label in enumerate(self.classes_.tolist())}
        place = np.array([index.get(label, -1) for label in y.tolist()])
        text, known_text = (isinstance(a[0], str) for a in (y, self.classes_))
        if text != known_text:
            raise ValueError(
                f"labels in y, as {y[0]!r}, are not of the fitted kind, as"
                f" {self.classes_[0]!r}"
            )
        own = scores[np.arange(len(scores)), place]
        own[place < 0] = np.inf  # a class that is not known is missed
        self.calibration_ = np.sort(own)
        return self

    def predict_set(self, X, alpha: float | None = None) -> np.ndarray:
        """Predict a set of classes that misses the true one with chance at most alpha.

        The chance is marginal: over rows and calibration sets drawn together, not for
        each class or region. Where the calibration set has fewer than 1 / alpha - 1
        rows, the threshold is infinite, and the sets hold every class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        alpha : float, default=None
            Chance of a miss; None takes the parameter `alpha`.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes)
            Whether each class belongs to the row's set; the answer of `predict` always
            does.
        """
        threshold = self.threshold(self.alpha if alpha is None else alpha)
        return self.set_scores(X) <= threshold

    def threshold(self, alpha: float) -> float:
        """Return the score q that belongs to a chance of a miss.

        Parameters
        ----------
        alpha : float
            Chance of a miss.

        Returns
        -------
        q : float
            The k-th smallest of `calibration_`, k = ceil((1 - alpha)(n + 1)); infinite
            where k > n.
        """
        check_is_fitted(self)
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be above 0 and below 1, and is {alpha!r}")
        n = len(self.calibration_)
        if not n:
            raise NotFittedError(
                "sets need a calibration set: call calibrate(X, y) with rows that were"
                " not trained on"
            )
        # less 1e-9: rounding must not lift a whole (1 - alpha)(n + 1) to the next k
        k = int(np.ceil((1 - alpha) * (n + 1) - 1e-9))
        return float(self.calibration_[k - 1]) if k <= n else np.inf
