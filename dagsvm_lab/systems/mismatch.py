"""Whether a system may be fitted over machines that are trained already."""

from typing import TYPE_CHECKING

import numpy as np

from ..bank import Bank
from ..kernels import kernel_class
from ..rows import equal
from .sample import Sample

if TYPE_CHECKING:
    from .base import BankClassifier


def mismatch(
    system: "BankClassifier", sample: Sample, bank: Bank, code: np.ndarray
) -> str | None:
    """Why `bank` will not do for this system and these rows; None if it will.

    `code` is the coding matrix of the machines that the system asks.
    """
    n_classes = bank.code.shape[1]
    if n_classes != sample.n_classes:
        return f"it tells {n_classes} classes apart, y has {sample.n_classes}"
    if not np.array_equal(bank.code, code):
        return "the system asks other machines"
    kind = system._label_kind
    if bank.labels == "direct" or kind not in (None, bank.labels):
        return (
            f"its machines learnt labels of the kind {bank.labels!r},"
            f" not {kind or 'hard'!r}"
        )
    precomputed = kernel_class(system.kernel).precomputed
    if precomputed != bank.kernel.precomputed or bank.n_inputs != sample.X.shape[1]:
        return f"it has {bank.n_inputs} inputs and the kernel {bank.kernel.name!r}"
    if reason := _other_scales(system, bank):
        return reason
    if not _trained_on(bank, sample):
        return (
            f"it was trained on other rows (there were {bank.n_rows}) or other labels"
        )
    return None


def _other_scales(system: "BankClassifier", bank: Bank) -> str | None:
    """Why the machines' scales of their own, or none, are not the system's."""
    scaled = any(kernel.widths for kernel in bank.kernels or [])
    # e1071's rule may leave all machines unscaled, each with its own kernel still
    lacking = system.scale_pairs and bank.kernels is None
    unwanted = system.scale_pairs is False and scaled
    if not lacking and not unwanted:
        return None
    have = "have" if scaled else "lack"
    return (
        f"scale_pairs={system.scale_pairs}, but its machines {have} scales of their own"
    )


def _trained_on(bank: Bank, sample: Sample) -> bool:
    """Whether the bank's support vectors are these rows, with these classes."""
    if bank.n_rows != len(sample.codes):
        return False
    if not np.array_equal(sample.codes[bank.support], bank.support_class):
        return False
    return bank.vectors is None or equal(sample.X[bank.support], bank.vectors)
