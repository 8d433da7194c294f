"""The figures, one module a paper; here what they share: colours that colour-blind readers tell apart, and a style."""

from __future__ import annotations

import numpy as np

# Okabe and Ito's palette
BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"
)  # fmt: skip
PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY)
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler('color', {list(PALETTE)})",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "path",
    "image.cmap": "cividis",
}


def figure(rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None, **options):
    """(figure, axes) in the common style; `size` in inches, by default 4.2 x 3.2 a panel."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)  # not a context: legends and titles come later
    size = size or (4.2 * columns, 3.2 * rows)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


def heat(ax, values: np.ndarray, rows, columns, digits: int = 1, cmap: str = "cividis", **options) -> None:
    """Draw `values` as a heat map with every cell's number in it, NaN left blank."""
    image = ax.imshow(values, cmap=cmap, aspect="auto", **options)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.spines[:].set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            red, green, blue, _ = image.cmap(image.norm(value))
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            colour = "white" if dark else "black"
            ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center", fontsize=7, color=colour)
