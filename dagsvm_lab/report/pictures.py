"""How figures and paragraphs are displayed in a notebook."""

from io import BytesIO


def paragraph(text: str) -> None:
    """Display a paragraph in Markdown, if it has a word."""
    from IPython.display import Markdown, display

    if text:
        display(Markdown(text))


def laid_out(fig):
    """Lay a figure out, for good; the box that holds all that is drawn.

    Every way to save it would do both again, which takes half of the time.
    """
    from matplotlib import rcParams

    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    box = fig.get_tightbbox()
    return box.padded(rcParams["savefig.pad_inches"])


def png(fig, dpi: int, box) -> bytes:
    """Draw a figure with 128 colours: enough for lines and letters, in a third of the
    room.
    """
    from PIL import Image

    out = BytesIO()
    pil = {"compress_level": 0}
    fig.savefig(out, format="png", dpi=dpi, bbox_inches=box, pil_kwargs=pil)
    picture = Image.open(out).convert("RGB")
    # MAXCOVERAGE keeps the colour of a few marks apart from another's
    coverage = Image.Quantize.MAXCOVERAGE
    small = BytesIO()
    few = picture.quantize(128, coverage, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()


def display_picture(picture: bytes, alt: str) -> None:
    """Display a PNG, with a text for those who cannot see it."""
    from IPython.display import Image, display

    display(Image(picture, alt=alt))


def close(fig) -> None:
    """Let pyplot forget a figure that it made."""
    if hasattr(fig, "number"):
        import matplotlib.pyplot as plt

        plt.close(fig)


def display_figure(fig, alt: str) -> None:
    """Display a figure that is not kept, with a text for those who cannot see it."""
    display_picture(png(fig, 100, laid_out(fig)), alt)
    close(fig)
