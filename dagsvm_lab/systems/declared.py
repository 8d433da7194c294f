"""What an estimator's declaration says, said once: types become checks, a parent's documentation its children's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc, isfunction, signature
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Finite = Annotated[float, Interval(Real, None, None, closed="neither")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Natural = Annotated[int, Interval(Integral, 0, None, closed="left")]
Limit = Annotated[int, Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})]
Verbosity = Annotated[int, "verbose"]
Folds = Annotated[Any, "cv_object"]
Array = Annotated[Any, "array-like"]
Seed = Annotated[int | np.random.RandomState | None, "random_state"]
PLAIN = {bool: "boolean", int: Integral, float: Real, type(None): None, dict: dict}

SHARED = ("Parameters", "Attributes")  # sections of a docstring that a subclass inherits
DATA = {  # parameters of methods that mean the same everywhere
    "X": "array-like of shape (n_samples, n_features)\n    Rows, or their kernel values with the training rows if the "
    "kernel is precomputed.",
    "y": "array-like of shape (n_samples,)\n    Class labels of the rows.",
    "sample_weight": "array-like of shape (n_samples,), default=None\n    How often each row counts.",
}


def constraints(cls: type) -> dict[str, Any]:
    """scikit-learn's `_parameter_constraints`, from the types of the parameters of `cls`."""

    def of(hint: Any) -> list:
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return list(parts[1:])
        if origin is Literal:
            return [StrOptions(set(parts))]
        if origin in (Union, type(int | None)):
            return [c for part in parts for c in of(part)]
        return [callable] if hint is Callable or origin is Callable else [PLAIN.get(hint, hint)]

    hints = get_type_hints(cls, include_extras=True)
    return {name: "no_validation" if hints[name] is Any else of(hints[name]) for name in signature(cls).parameters}


def inherited(doc: str, parent: str) -> str:
    """The docstring `doc` with the entries of its parent's Parameters and Attributes before its own."""

    def split(text: str) -> dict[str, str]:
        title, *parts = re.split(r"\n\n(\w[\w ]+)\n-+\n", "\n\n" + cleandoc(text) + "\n")
        return {"": title.strip()} | dict(zip(parts[::2], (part.rstrip() for part in parts[1::2]), strict=True))

    def entries(section: str) -> dict[str, str]:
        return {e.split(" :")[0]: e.rstrip() for e in re.split(r"\n(?=\S)", section) if e}

    own, theirs = split(doc), split(parent)
    merged = {name: entries(theirs.get(name, "")) | entries(own.pop(name, "")) for name in SHARED}
    parts = {"": own.pop("")} | {name: "\n".join(e.values()) for name, e in merged.items() if e} | own
    return "\n\n".join(f"{name}\n{'-' * len(name)}\n{text}" if name else text for name, text in parts.items()) + "\n"


def document(cls: type) -> None:
    """Complete the docstrings of `cls`: its parent's entries, and what its methods are given."""
    parent = next((c.__doc__ for c in cls.__mro__[1:] if issubclass(c, Declared) and c is not Declared), None)
    if cls.__doc__ and parent:
        cls.__doc__ = inherited(cls.__doc__, parent)
    for name, method in vars(cls).items():
        if isfunction(method) and method.__doc__ and "X" in (given := signature(method).parameters) and name[0] != "_":
            entries = "\n".join(f"{key} : {DATA.get(key, '')}" for key in given if key != "self")
            method.__doc__ = inherited(method.__doc__, f"\n\nParameters\n----------\n{entries}")


@dataclass_transform(kw_only_default=True, eq_default=False)
class Declared:
    """A class whose annotated attributes are its parameters: of `__init__`, of the checks and of the documentation."""

    _parameter_constraints: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, **more) -> None:
        super().__init_subclass__(**more)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        if "_parameter_constraints" not in vars(cls):
            cls._parameter_constraints = constraints(cls)
        document(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls._parameter_constraints)  # what scikit-learn would read from the signature at every fit
