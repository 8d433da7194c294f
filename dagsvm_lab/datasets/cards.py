"""The register of the data sets: one card each, read from cards.toml."""

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

FILES = Path(__file__).parent / "files"

ALIASES = {
    "mnist49": "mnist",
    "cleveland": "heart",
    "covtype": "covertype",
    "optdigit": "optdigits",
    "pendigit": "pendigits",
    "wine-quality": "winequality-red",  # the paper's has six classes
    "wine-quality-red": "winequality-red",
    "wine-quality-white": "winequality-white",
}


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
    sha256: str  # of the shipped file; of the arrays, for scikit-learn's sets; empty for what is generated
    where: str = "shipped"
    originals: dict[str, str] = field(default_factory=dict, repr=False)  # file: SHA-256
    layout: dict = field(default_factory=dict, repr=False)  # how to read the originals
    class_names: tuple[str, ...] = field(default=(), repr=False)
    features: tuple[str, ...] = field(default=(), repr=False)
    address: str = field(default="", repr=False)  # where the files of a set that is not shipped are fetched

    @property
    def path(self) -> Path:
        """Where the shipped file is."""
        return FILES / f"{self.name}.bin"

    @property
    def split(self) -> str:
        """The rows as text: "16000 + 4000" for a training and a test part."""
        return " + ".join(str(n) for n in self.rows.values())

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.title}",
            f"{self.split} rows, {self.inputs} inputs, {self.classes} classes; {self.where}",
            *(f"{what}: {text}" for what, text in self.notes.items()),
            f"Scaled: {self.scaling}",
            *(f"Original {file}: SHA-256 {digest}" for file, digest in self.originals.items()),
        ]
        return "\n".join(lines)

    @property
    def notes(self) -> dict[str, str]:
        """The terms: licence, source, citation, and what was done to the data."""
        return {
            "Licence": self.licence,
            "Source": self.source,
            "Citation": self.citation,
            "What was done": self.done,
        }


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """Every card, by name."""
    with open(Path(__file__).with_name("cards.toml"), "rb") as file:
        entries = tomllib.load(file)
    for entry in entries.values():
        for key in ("features", "class_names"):
            entry[key] = tuple(entry.get(key, ()))
    return {name: Card(name, **entry) for name, entry in entries.items()}


def shipped() -> list[Card]:
    """The cards of the sets whose rows come with the package."""
    return [card for card in cards().values() if card.where == "shipped"]


def card_of(name: str) -> Card:
    """The card of a data set; hyphen or underscore, capitals or none, and the papers' other names all do."""
    key = str(name).lower().replace("_", "-")
    key = ALIASES.get(key, key)
    if key not in cards():
        raise ValueError(f"there is no data set {name!r}; there are: {', '.join(cards())}")
    return cards()[key]


def list_text() -> str:
    """All cards as a plain table, a line each."""
    lines = [("name", "rows", "inputs", "classes", "where", "licence", "title")]
    for c in cards().values():
        licence = c.licence.split(" (")[0].split(";")[0].split(",")[0]
        lines.append((c.name, c.split, str(c.inputs), str(c.classes), c.where, licence, c.title))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def terms() -> str:
    """The note of each data set's terms, as Markdown: what files/README.md holds."""
    parts = [
        "# Terms of the data sets\n\nThe licence of the code does not cover the data. This note is written from the "
        "cards by `dagsvm-lab data build`. All values are exactly those of the originals, MNIST's sums apart."
    ]
    for card in cards().values():
        where = f"`{card.path.name}`" if card.where == "shipped" else f"not shipped: {card.where}"
        notes = "\n".join(f"- {what}: {text}" for what, text in card.notes.items())
        parts.append(f"## {card.title} ({where})\n\n{notes}")
    return "\n\n".join(parts) + "\n"
