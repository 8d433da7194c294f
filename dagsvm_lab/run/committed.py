"""What a committed notebook looks like: outputs, and nothing that the next execution would change for no reason."""

import nbformat
from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

from ..files import write_atomically
from .runner import Outcome


def refresh(outcome: Outcome) -> None:
    """Replace the notebook by its executed copy, cleaned."""
    nb = clean(nbformat.read(outcome.job.executed, 4))
    write_atomically(outcome.job.notebook, lambda part: nbformat.write(nb, part))


def clean(nb):
    """Return `nb` without execution metadata, and with each stream in one piece."""
    nb.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })  # fmt: skip
    for cell in nb.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    nb, _ = CoalesceStreamsPreprocessor().preprocess(nb, {})
    return nb
