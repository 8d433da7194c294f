"""The register of the data sets: one card each, read from cards.toml."""

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

FILES = Path(__file__).parent / "files"

ALIASES = {
    "mnist49": "mnist",
    "cleveland": "heart",
    "wine-quality": "winequality-red",
    "wine-quality-red": "winequality-red",
    "wine-quality-white": "winequality-white",
    "optdigit": "optdigits",
    "pendigit": "pendigits",
    "covtype": "covertype",
    "imagesegmentation": "segmentation",
}


@dataclass(frozen=True)
class Card:
    """What a data set is, whose it is, and what was done to it."""

    name: str
    title: str
    source: str
    licence: str
    citation: str
    rows: dict[str, int]
    inputs: int
    classes: int
    done: str
    scaling: str
    sha256: str
    originals: dict[str, str] = field(default_factory=dict, repr=False)
    features: tuple[str, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = field(default=(), repr=False)
    layout: dict = field(default_factory=dict, repr=False)
    address: str = field(default="", repr=False)

    @property
    def shipped(self) -> bool:
        """True if the rows come with the package."""
        return bool(self.originals) and not self.address

    @property
    def path(self) -> Path:
        """Where the shipped file is."""
        return FILES / f"{self.name}.bin"

    @property
    def split(self) -> str:
        """The rows as text: "16000 + 4000" for a training and a test part."""
        return " + ".join(str(n) for n in self.rows.values())

    @property
    def provenance(self) -> str:
        """Where the rows are found, in a word."""
        if self.address:
            return "fetched"
        return "shipped" if self.shipped else "generated" if self.name == "artificial" else "scikit-learn"

    def __str__(self) -> str:
        originals = "".join(f"\n  {digest}  {file}" for file, digest in self.originals.items())
        return (
            f"{self.name}: {self.title}\n"
            f"{self.split} rows, {self.inputs} inputs, {self.classes} classes; {self.provenance}\n"
            f"What was done: {self.done}\nScaled: {self.scaling}\n"
            f"Source: {self.source}\nLicence: {self.licence}\nCitation: {self.citation}"
            + (f"\nSHA-256 of the originals:{originals}" if originals else "")
        )


@lru_cache(maxsize=1)
def cards() -> dict[str, Card]:
    """Every card, by name."""
    with open(Path(__file__).with_name("cards.toml"), "rb") as file:
        entries = tomllib.load(file)
    for name, entry in entries.items():
        for key in ("features", "class_names"):
            entry[key] = tuple(entry.get(key, ()))
    return {name: Card(name, **entry) for name, entry in entries.items()}


def card_of(name: str) -> Card:
    """The card of a data set; a hyphen or an underscore, capitals or none, and the papers' other names all do."""
    key = str(name).lower().replace("_", "-")
    key = ALIASES.get(key, key)
    if key not in cards():
        raise ValueError(f"there is no data set {name!r}; there are: {', '.join(cards())}")
    return cards()[key]


def list_text() -> str:
    """All cards as a plain table, a line each."""
    head = ("name", "rows", "inputs", "classes", "where", "licence", "title")
    lines = [head] + [
        (c.name, c.split, str(c.inputs), str(c.classes), c.provenance, c.licence.split(" (")[0].split(";")[0], c.title)
        for c in cards().values()
    ]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join("  ".join(v.ljust(w) for v, w in zip(line, widths)).rstrip() for line in lines)


def terms() -> str:
    """The note of each data set's terms, as Markdown: what files/README.md holds."""
    parts = [
        "# Terms of the data sets\n\nThe code's licence does not cover the data. Written by `dagsvm-lab data build` "
        "from the cards; USPS is exact to the sixth decimal, all other values are exactly those of the originals."
    ]
    for card in cards().values():
        file = f" (`{card.path.name}`)" if card.shipped else f" ({card.provenance}, not shipped)"
        parts.append(
            f"## {card.title}{file}\n\n- Licence: {card.licence}\n- Source: <{card.source}>\n"
            f"- Citation: {card.citation}\n- What was done: {card.done}"
        )
    return "\n\n".join(parts).replace("<generated from a seed", "generated from a seed").replace("2018>", "2018") + "\n"
