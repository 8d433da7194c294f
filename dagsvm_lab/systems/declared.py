"""What an estimator's declaration says, said once.

The types of its parameters become scikit-learn's checks, and its parent's
documentation is part of its own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc, isfunction, signature
from numbers import Integral, Real
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

# kinds of parameters: the type for readers, then what scikit-learn checks
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Bound = Annotated[float, Interval(Real, 0, None, closed="right")]  # may be infinite
Finite = Annotated[float, Interval(Real, None, None, closed="neither")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Natural = Annotated[int, Interval(Integral, 0, None, closed="left")]
Limit = Annotated[
    int, Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})
]
Never = Annotated[bool, Options(bool, {False})]  # as in another's signature
Verbosity = Annotated[int, "verbose"]
Folds = Annotated[Any, "cv_object"]
Array = Annotated[Any, "array-like"]
Seed = Annotated[int | np.random.RandomState | None, "random_state"]

CHECKS = {bool: "boolean", int: Integral, float: Real, type(None): None, dict: dict}
INHERITED = ("Parameters", "Attributes")  # sections that a subclass inherits
ARGUMENTS = {  # of methods, with the same meaning everywhere
    "X": "array-like of shape (n_samples, n_features)\n"
    "    Rows, or their kernel values with the training rows if the kernel is"
    " precomputed.",
    "y": "array-like of shape (n_samples,)\n    Class labels of the rows.",
    "sample_weight": "array-like of shape (n_samples,), default=None\n"
    "    How often each row counts; one with a negative weight is left out, as in SVC.",
}


def constraints(cls: type) -> dict[str, Any]:
    """scikit-learn's `_parameter_constraints`, from the types of the parameters."""
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Any] = {}
    for name in signature(cls).parameters:
        unchecked = hints[name] is Any
        found[name] = "no_validation" if unchecked else _checks(hints[name])
    return found


def _checks(hint: Any) -> list:
    """scikit-learn's checks for one type."""
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin is Annotated:
        return list(parts[1:])
    if origin is Literal:
        return [StrOptions(set(parts))]
    if origin in (Union, type(int | None)):
        return [check for part in parts for check in _checks(part)]
    if hint is Callable or origin is Callable:
        return [callable]
    return [CHECKS.get(hint, hint)]


def inherited(doc: str, parent: str) -> str:
    """The docstring `doc`, its parent's parameters and attributes before its own."""
    own = _sections(doc)
    theirs = _sections(parent)
    merged = {"": own.pop("")}
    for name in INHERITED:
        entries = _entries(theirs.get(name, ""))
        entries |= _entries(own.pop(name, ""))
        if entries:
            merged[name] = "\n".join(entries.values())
    merged |= own
    parts = []
    for name, text in merged.items():
        underlined = f"{name}\n{'-' * len(name)}\n" if name else ""
        parts.append(underlined + text)
    return "\n\n".join(parts) + "\n"


def _sections(doc: str) -> dict[str, str]:
    """The sections of a numpydoc docstring by name; what stands before them as ""."""
    text = "\n\n" + cleandoc(doc) + "\n"
    # what stands before the first section, then its name, its body, the next name ...
    before, *parts = re.split(r"\n\n(\w[\w ]+)\n-+\n", text)
    found = {"": before.strip()}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        found[name] = body.rstrip()
    return found


def _entries(section: str) -> dict[str, str]:
    """The entries of a section by the name that each begins with."""
    found = {}
    for part in re.split(r"\n(?=\S)", section):  # an entry begins at the margin
        if part:
            part = part.rstrip()
            found[part.split(" :")[0]] = part
    return found


def document(cls: type) -> None:
    """Complete the docstrings of `cls` and of its methods, in place.

    The class gets its parent's entries, a public method that takes X what its
    arguments are.
    """
    parents = (c for c in cls.__mro__[1:] if issubclass(c, Declared))
    parent = next((c.__doc__ for c in parents if c is not Declared), None)
    if cls.__doc__ and parent:
        cls.__doc__ = inherited(cls.__doc__, parent)
    for name, method in vars(cls).items():
        if name[0] == "_" or not isfunction(method) or not method.__doc__:
            continue
        given = [key for key in signature(method).parameters if key != "self"]
        if "X" in given:
            entries = [f"{key} : {ARGUMENTS.get(key, '')}" for key in given]
            general = "\n\nParameters\n----------\n" + "\n".join(entries)
            method.__doc__ = inherited(method.__doc__, general)


@dataclass_transform(kw_only_default=True, eq_default=False)
class Declared:
    """A class whose annotated attributes are its parameters.

    They are those of `__init__`, of the checks and of the documentation.
    """

    _parameter_constraints: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **more) -> None:
        super().__init_subclass__(**more)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        if "_parameter_constraints" not in vars(cls):
            cls._parameter_constraints = constraints(cls)
        document(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """What scikit-learn would read from the signature at every fit."""
        return sorted(cls._parameter_constraints)
