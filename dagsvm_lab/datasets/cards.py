"""The register of the data sets: one card each, read from cards.toml."""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKED_SETS = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Card:
    """What a data set is, whose it is, and what was done to it."""

    name: str
    title: str
    source: str
    licence: str
    citation: str
    rows: dict[str, int]  # of each part, in file order
    inputs: int
    classes: int
    done: str
    scaling: str  # what load(name, scaled=True) does
    sha256: str  # of the shipped file, or scikit-learn's arrays; "" for what is made
    where: str = "shipped"
    originals: dict[str, str] = field(default_factory=dict, repr=False)  # file: SHA-256
    layout: dict = field(default_factory=dict, repr=False)  # how to read the originals
    class_names: tuple[str, ...] = field(default=(), repr=False)
    features: tuple[str, ...] = field(default=(), repr=False)
    address: str = field(default="", repr=False)  # whence it is fetched, if not shipped
    names: tuple[str, ...] = field(default=(), repr=False)  # what else papers call it

    @property
    def path(self) -> Path:
        """Where the shipped file is."""
        return PACKED_SETS / f"{self.name}.npz"

    @property
    def split(self) -> str:
        """The rows as text: "16000 + 4000"."""
        return " + ".join(map(str, self.rows.values()))


@cache
def cards() -> dict[str, Card]:
    """Return every card, by name."""
    text = Path(__file__).with_name("cards.toml").read_text(encoding="utf-8")
    found = {}
    for name, entry in tomllib.loads(text).items():
        for key, value in entry.items():
            if isinstance(value, list):
                entry[key] = tuple(value)
        found[name] = Card(name, **entry)
    return found


def shipped() -> list[Card]:
    """Return the cards of the sets whose rows come with the package."""
    return [card for card in cards().values() if card.where == "shipped"]


def card_of(name: str) -> Card:
    """Return the card of a data set.

    Hyphen or underscore, capitals or none, and the papers' other names all do.
    """
    key = str(name).lower().replace("_", "-")
    for card in cards().values():
        if key == card.name or key in card.names:
            return card
    raise ValueError(f"there is no data set {name!r}; there are: {', '.join(cards())}")


def list_text() -> str:
    """Return all cards as a plain table, a line each."""
    lines = [("name", "rows", "inputs", "classes", "where", "licence", "title")]
    for c in cards().values():
        licence = re.split(r" \(|;|,", c.licence)[0]  # its name, without conditions
        sizes = (c.split, str(c.inputs), str(c.classes))
        lines.append((c.name, *sizes, c.where, licence, c.title))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def terms() -> str:
    """Return the note of each data set's terms: what files/README.md holds."""
    text = (
        "# Terms of the data sets\n\nThe licence of the code does not cover the data. "
        "This note is written from the cards by `dagsvm-lab data build`. All values "
        "are exactly those of the originals, MNIST's sums apart.\n"
    )
    for c in cards().values():
        where = f"not shipped: {c.where}"
        if c.where == "shipped":
            where = f"`{c.path.name}`"
        text += (
            f"\n## {c.title} ({where})\n\n- Licence: {c.licence}\n"
            f"- Source: {c.source}\n- Citation: {c.citation}\n"
            f"- What was done: {c.done}\n"
        )
    return text
