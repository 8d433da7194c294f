"""Docstrings of what users import: numpydoc finds nothing, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from numpydoc.validate import validate

import dagsvm_lab
from dagsvm_lab import systems

# summary, parameters named and described, returns described, no section unknown
CODES = set(
    "GL01 GL06 GL07 GL08 SS01 SS03 SS04 PR01 PR02 PR04 PR06 PR07 PR09 PR10 "
    "RT01 RT03 RT05 YD01".split()
)
HELD = (
    "graphs",
    "kernels",
    "bank",
    "machines",
    "bounds",
    "statistics",
    "systems",
    "solvers",
    "datasets",
    "report",
    "papers",
)


def public():
    """Names of the package's public objects, and of the estimators' own methods."""
    for name in dagsvm_lab.__all__[1:]:
        value = getattr(dagsvm_lab, name)
        yield f"{value.__module__}.{value.__name__}"
        for method, part in (
            inspect.getmembers(value, inspect.isfunction)
            if inspect.isclass(value)
            else ()
        ):
            if not method.startswith("_") and part.__module__.startswith(
                "dagsvm_lab.systems."
            ):
                yield f"{part.__module__}.{part.__qualname__}"


OURS = sorted(
    {
        name
        for name in public()
        if name.startswith(("dagsvm_lab.systems", "dagsvm_lab.graphs"))
    }
)


@pytest.mark.parametrize("name", OURS)
def test_numpydoc_finds_nothing_missing(name):
    found = [(code, text) for code, text in validate(name)["errors"] if code in CODES]
    if "." + name.split(".")[-1] in (
        ".run",
        ".labels",
        ".walk",
        ".depth",
        ".grow",
        ".from_arrays",
    ):
        # the engine's own: their class says it
        found = [f for f in found if f[0] not in ("PR01", "RT01", "RT03")]
    assert not found


@pytest.mark.parametrize("name", systems.__all__)
def test_help_stands_alone(name):
    make = getattr(systems, name)
    parts = {
        p.split(" :")[0]
        for p in make.__doc__.split("Parameters\n")[1].split("\n")
        if " : " in p and p[0] != " "
    }
    assert set(make().get_params()) <= parts
    assert {"classes_", "machines_", "support_", "n_parameters_"} <= parts
    assert "Examples" in make.__doc__
    assert "CalibratedClassifierCV" in make.__doc__, "where probabilities come from"
    # a default in the text is the default in the signature
    for line in make.__doc__.splitlines():
        key, _, rest = line.partition(" : ")
        if (
            not line.startswith(" ")
            and "default=" in rest
            and key in make().get_params()
        ):
            assert (
                eval(rest.split("default=")[1].split(" in ")[0], {})
                == make().get_params()[key]
            )


def modules():
    """Every module whose examples are run."""
    for room in HELD:
        yield f"dagsvm_lab.{room}"
        path = getattr(importlib.import_module(f"dagsvm_lab.{room}"), "__path__", [])
        yield from (f"dagsvm_lab.{room}.{m.name}" for m in pkgutil.iter_modules(path))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.qp if name.endswith(".qp") else ())
        for name in sorted(modules())
    ],
)
def test_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs={"np": np})
    assert failed == 0


def test_types_see_through_the_table(monkeypatch):
    # with the eyes of a type checker, the package holds what its table gives on demand
    given = {name: getattr(dagsvm_lab, name) for name in dagsvm_lab.__all__}
    for name in dagsvm_lab.__all__[1:]:
        monkeypatch.delitem(vars(dagsvm_lab), name)
    monkeypatch.setattr("typing.TYPE_CHECKING", True)
    seen = vars(importlib.reload(dagsvm_lab))
    assert {name: seen.get(name) for name in given} == given


@pytest.mark.slow
def test_completion_in_jupyterlab():
    """What the kernel completes, JupyterLab offers: names, parameters, methods."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        client.execute_interactive(
            "from dagsvm_lab import DAGSVC, load\nimport dagsvm_lab\nest = DAGSVC()",
            timeout=300,
        )

        def offered(code: str) -> set[str]:
            found = client.complete(code, reply=True, timeout=300)["content"]
            return {match.rpartition(".")[2].rstrip("=") for match in found["matches"]}

        assert set(dagsvm_lab.__all__[1:]) <= offered("dagsvm_lab.")
        assert {"predict", "predict_with_cost"} <= offered("est.pre")
        assert {"fit", "fit_over"} <= offered("est.fi")
        assert {"C", "kernel", "gamma", "order"} <= offered("DAGSVC(")
        assert {"X_train", "y_train", "card"} <= offered('load("iris").')
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
