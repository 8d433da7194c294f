"""Fitted systems drawn in one call, after scikit-learn's displays."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..bank import Bank
from ..graphs import DecisionGraph
from .graphs import draw

MOST_NODES = 500  # of a graph whose drawing can be read at all
LETTER = 0.0085  # inches that a letter is wide, at a size of one point
MOST_COUNTS = 15  # classes up to which the counts are written into their fields


class GraphDisplay:
    """A system's decision graph, and one row's way through it.

    Make it with `from_estimator`.

    Parameters
    ----------
    graph : DecisionGraph
        The graph.
    names : iterable
        Of the classes.
    code : ndarray of shape (n_machines, n_classes), default=None
        The coding matrix, which names the two sides of each machine.
    path : ndarray of shape (n_machines,), default=None
        The machine outputs of the row whose way is coloured.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dagsvm_lab import DAGSVC, GraphDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = GraphDisplay.from_estimator(DAGSVC().fit(X, y), path_of=X[0])
    >>> len(shown.ax_.texts)  # three machines with the classes left, three leaves
    9
    """

    def __init__(
        self,
        graph: DecisionGraph,
        *,
        names: Iterable[Any],
        code: np.ndarray | None = None,
        path: np.ndarray | None = None,
    ) -> None:
        self.graph = graph
        self.names = names
        self.code = code
        self.path = path

    @classmethod
    def from_estimator(cls, estimator, *, path_of=None, ax=None, size=9) -> Self:
        """Draw the graph of a fitted estimator, or of a pipeline that ends in one.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A system with a decision graph. Of a FilteredDAGSVC the whole graph behind
            the filter is drawn.
        path_of : array-like of shape (n_features,) or (1, n_features), default=None
            The row whose way is coloured, as `predict` takes it.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        size : float, default=9
            Of the letters, in points.

        Returns
        -------
        display : GraphDisplay
            The drawing.
        """
        system, row = _system(estimator, path_of)
        if not isinstance(system.graph_, DecisionGraph):
            raise TypeError(
                f"{type(system).__name__} has no decision graph: each row meets all "
                "machines"
            )
        path = None
        if row is not None:
            path = system.machines_.decision(row)[0]
        bank = system.machines_
        display = cls(system.graph_, names=system.classes_, code=bank.code, path=path)
        return display.plot(ax, size=size)

    def plot(self, ax=None, *, size: float = 9) -> Self:
        """Draw the graph; the display is returned."""
        names = list(self.names)
        layers = np.bincount(self.graph.grow(MOST_NODES).depth())
        node = max(0.09, LETTER * self._letters(names))  # width, in sizes of letters
        width = max(node * layers.max(), 0.54)
        height = 0.07 * size * max(len(layers), 4)
        self.ax_ = _axes(ax, (size * width, height))
        self.figure_ = self.ax_.figure
        draw(self.graph, self.ax_, names, self.code, self.path, size)
        for text in self.ax_.texts:
            text.set_in_layout(False)  # its box may stand out; the graph has margins
        return self

    def _letters(self, names: list) -> float:
        """Count the letters beside which a node's neighbours must stand.

        The classes that are left, in smaller letters below, have twice the room of the
        node's own words at most: with many classes they would take the whole page.
        """
        lengths = np.array([len(str(name)) for name in names])
        words = 2 * lengths.max() + 6
        depth = self.graph.depth()
        beside = np.bincount(depth)[depth] > 1
        below = 0.78 * (self.graph.possible[beside] @ (lengths + 1))
        return max(words, min(below.max(initial=0), 2 * words))


class BankDisplay:
    """The machines of a system: what each parts, and how many support vectors it has.

    One-vs-one machines are drawn as a field for each pair of classes, others as a line
    of the coding matrix. Make it with `from_estimator`.

    Parameters
    ----------
    bank : Bank
        The machines.
    names : iterable
        Of the classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    im_ : matplotlib AxesImage
        The fields.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dagsvm_lab import BankDisplay, DAGSVC
    >>> est = DAGSVC().fit(*load_iris(return_X_y=True))
    >>> BankDisplay.from_estimator(est).im_.get_array().shape
    (3, 3)
    """

    def __init__(self, bank: Bank, *, names: Iterable[Any]) -> None:
        self.bank = bank
        self.names = names

    @classmethod
    def from_estimator(cls, estimator, *, ax=None) -> Self:
        """Draw the machines of a fitted estimator, or of a pipeline that ends in one.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Any system of the package.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : BankDisplay
            The drawing.
        """
        system, _ = _system(estimator, None)
        return cls(system.machines_, names=system.classes_).plot(ax)

    def plot(self, ax=None) -> Self:
        """Draw the machines; the display is returned."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        names = [str(name) for name in self.names]
        if (np.count_nonzero(self.bank.code, axis=1) == 2).all():
            self._plot_pairs(names)
        else:
            self._plot_code(names)
        return self

    def _plot_pairs(self, names: list[str]) -> None:
        """Draw a field a pair of classes, coloured by its machine's support vectors."""
        counts = np.full((len(names), len(names)), np.nan)
        pairs = np.nonzero(self.bank.code)[1].reshape(-1, 2)  # (machines, 2)
        counts[pairs[:, 1], pairs[:, 0]] = self.bank.n_support
        self.im_ = self.ax_.imshow(counts, cmap="Blues", vmin=0)
        if len(names) <= MOST_COUNTS:
            dark = 0.6 * self.bank.n_support.max()
            for (i, j), count in zip(pairs, self.bank.n_support, strict=True):
                ink = "white" if count > dark else "black"
                self.ax_.text(i, j, str(count), ha="center", va="center", color=ink)
        self.ax_.set_xticks(range(len(names)), names, rotation="vertical")
        self.ax_.set_yticks(range(len(names)), names)
        self.ax_.set_title("support vectors of each one-vs-one machine")

    def _plot_code(self, names: list[str]) -> None:
        """Draw the coding matrix, a line a machine."""
        self.im_ = self.ax_.imshow(
            self.bank.code, cmap="coolwarm", vmin=-1, vmax=1, aspect="auto"
        )
        self.ax_.set_xticks(range(len(names)), names, rotation="vertical")
        if len(self.bank.code) <= MOST_COUNTS:
            counts = [f"{count}" for count in self.bank.n_support]
            self.ax_.set_yticks(range(len(counts)), counts)
            self.ax_.set_ylabel("support vectors of each machine")
        else:
            self.ax_.set_ylabel("machine")
        self.ax_.set_title("classes that each machine calls +1 and -1")


def _system(estimator, row) -> tuple:
    """The system at the end of a pipeline, and a row as its machines take it."""
    if row is not None and np.ndim(row) == 1:
        row = np.reshape(row, (1, -1))
    if isinstance(estimator, Pipeline):
        if row is not None:
            row = estimator[:-1].transform(row)
        estimator = estimator[-1]
    check_is_fitted(estimator)
    if row is not None:
        row = estimator._checked_rows(row)
    return getattr(estimator, "base_", estimator), row


def _axes(ax, size: tuple[float, float] | None = None):
    """These axes, or those of a new figure of `size` inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]
