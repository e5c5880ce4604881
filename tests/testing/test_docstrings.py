"""Docstrings of `slicewise.swag` and `slicewise.testing`: numpydoc, complete, with examples (which doctest runs)."""

from __future__ import annotations

import inspect
import re

import pytest

from slicewise import swag, testing
from slicewise.swag import ALGORITHMS
from slicewise.swag.shared_plan import SharedRun

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (swag, testing)
    for name in module.__all__
    if callable(getattr(module, name))
}


def methods_of(cls):
    """The public methods that a class defines and no class of ours before it: the others are documented there."""
    known = {name for base in cls.__mro__[1:] if base.__module__.startswith("slicewise.") for name in vars(base)}
    found = {}
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if not name.startswith("_") and name not in known and inspect.isfunction(function):
            found[name] = function
    return found


#: The public classes, those they inherit from, and what `SharedPlan.run` returns.
CLASSES = {
    base.__qualname__: base
    for thing in (*PUBLIC.values(), SharedRun)
    if inspect.isclass(thing)
    for base in thing.__mro__
    if base.__module__.startswith(("slicewise.swag.", "slicewise.testing."))
}
EVERY = {
    **PUBLIC,
    **{f"{path}.{name}": method for path, cls in CLASSES.items() for name, method in methods_of(cls).items()},
}


def section(thing, title):
    """The text of one section of a docstring; empty where there is none."""
    match = re.search(
        rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", inspect.getdoc(thing) or "", re.DOTALL | re.MULTILINE
    )
    return match[1] if match else ""


def parameters_of(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []  # raised by us alone
    return [p.name for p in inspect.signature(thing).parameters.values() if p.name != "self"]


@pytest.mark.parametrize("path", EVERY)
def test_every_parameter_is_described(path):
    described = re.findall(r"^(\*{0,2}\w+(?:, \w+)*)$", section(EVERY[path], "Parameters"), re.MULTILINE)
    names = [name.lstrip("*") for line in described for name in line.split(", ")]
    assert names == parameters_of(EVERY[path])


@pytest.mark.parametrize("path", [path for path, thing in EVERY.items() if not inspect.isclass(thing)])
def test_whatever_is_returned_is_described(path):
    returns = inspect.signature(EVERY[path]).return_annotation not in (None, "None")
    kept = section(EVERY[path], "Returns") or section(EVERY[path], "Yields")
    assert bool(kept) == returns


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_has_an_example_that_runs(path):
    examples = section(PUBLIC[path], "Examples")
    assert ">>> " in examples
    assert "+SKIP" not in examples


@pytest.mark.parametrize("name", ["insert", "evict", "query"])
@pytest.mark.parametrize("algorithm", ALGORITHMS.values())
def test_operations_of_every_algorithm_state_their_cost(algorithm, name):
    assert "Runtime complexity: " in getattr(algorithm, name).__doc__


def test_sections_are_found():
    assert section(swag.roll, "Parameters").startswith("values\n")
    assert section(swag.roll, "Returns").startswith("numpy.ndarray or list of them\n")
    assert section(swag.roll, "Nowhere") == ""
