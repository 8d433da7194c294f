"""What figures share: colours that colour-blind readers tell apart, and a style.

The palette is Okabe and Ito's.
"""

PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#999999",
)
BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW, GREY = PALETTE
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


def figure(
    rows: int = 1, columns: int = 1, size: tuple[float, float] | None = None, **options
):
    """Make (figure, axes) in the common style.

    `size` is in inches, by default 4.2 x 3.2 a panel; `options` are those of
    `matplotlib.pyplot.subplots`.
    """
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)  # not a context: legends and titles come later
    if size is None:
        size = (4.2 * columns, 3.2 * rows)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)
