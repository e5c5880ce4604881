"""Docstrings: every public name has a summary, its parameters, what it returns, and an example that runs.

The examples themselves are run as doctests of their modules.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator

import pytest

import slicewise as sw
from slicewise.slicing import LateRow, Operator, Stats

#: The modules that users import from, each with its names in ``__all__``.
MODULES = (
    "slicewise",
    "slicewise.baselines",
    "slicewise.plot",
    "slicewise.sources.kafka",
    "slicewise.spark",
    "slicewise.swag",
    "slicewise.swag.stores",
    "slicewise.testing",
)
#: Plain data, which has no docstring of its own.
CONSTANTS = (dict, str)
#: What users get without naming it.
GIVEN = {"LateRow": LateRow, "Stats": Stats}
#: Classes whose every method has an example of its own: those that users work with.
WITH_METHODS: dict[str, type] = {"Workload": sw.Workload, "Results": sw.Results, "Operator": Operator}
#: Methods for the stages that come after, not for users.
INTERNAL = {"Workload.named", "Workload.time_length", "baselines.SumWithoutInverse.bind"}
#: Where classes keep a contract that others call: aggregates for the engine, sources for Spark.
CALLED_BY_OTHERS = ("slicewise", "slicewise.sources.kafka")


def _public() -> dict[str, object]:
    """Every public name under the module that it is imported from, ``slicewise`` itself left out."""
    names: dict[str, object] = dict(GIVEN)
    for path in MODULES:
        module = importlib.import_module(path)
        prefix = path.removeprefix("slicewise").lstrip(".")
        names |= {f"{prefix}.{name}".lstrip("."): getattr(module, name) for name in module.__all__}
    return {name: member for name, member in names.items() if not isinstance(member, CONSTANTS)}


def _own_methods(cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        if not name.startswith("_") and not isinstance(member, property) and callable(getattr(cls, name)):
            yield name


PUBLIC = _public()
METHODS = {f"{owner}.{name}": getattr(cls, name) for owner, cls in WITH_METHODS.items() for name in _own_methods(cls)}
MEMBERS = {name: member for name, member in (PUBLIC | METHODS).items() if name not in INTERNAL}
#: The methods of all other public classes: an example of the class that calls them is enough.
OTHER_METHODS = {
    f"{path.removeprefix('slicewise.')}.{owner}.{name}": (cls, name)
    for path in MODULES
    if path not in CALLED_BY_OTHERS
    for owner, cls in vars(importlib.import_module(path)).items()
    if owner in importlib.import_module(path).__all__ and isinstance(cls, type)
    for name in _own_methods(cls)
}


def sections_of(doc: str) -> dict[str, str]:
    """The text of each numpydoc section by its title; the summary and what follows it stand under ``""``.

    >>> sections_of("Add.\\n\\nReturns\\n-------\\nint\\n    The sum.")
    {'': 'Add.', 'Returns': 'int\\n    The sum.'}
    """
    parts = re.split(r"^(\w+(?: \w+)*)\n-{3,}\n", doc, flags=re.MULTILINE)
    return {"": parts[0].strip(), **{title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}}


def parameters_of(member: object) -> list[str]:
    """The names of the parameters that a caller gives: without ``self``, and none for classes without an own init."""
    if hasattr(member, "_fields"):
        return list(member._fields)
    if isinstance(member, type):
        if issubclass(member, BaseException) and "__init__" not in vars(member):
            return []
        member = member.__init__
        bound = True
    else:
        bound = "." in getattr(member, "__qualname__", "") and not inspect.ismethod(member)
    if not isinstance(member, (types.FunctionType, types.MethodType)):
        return []
    return list(inspect.signature(member).parameters)[bound:]


def lacks(member: object) -> list[str]:
    """What is missing from the docstring of a public name, in words."""
    doc = inspect.cleandoc(getattr(member, "__doc__", None) or "")
    sections = sections_of(doc)
    summary = sections[""].split("\n\n")[0]
    missing = []
    if not summary.endswith(".") or "\n" in summary:
        missing.append(f"a summary of one line that ends with a full stop; got {summary!r}")
    if isinstance(member, types.ModuleType):
        return missing
    # What is made by others, and only read by users, says what it holds.
    entries = sections.get("Parameters", "") + "\n" + (sections.get("Attributes", "") if is_record(member) else "")
    listed = {
        name.strip().lstrip("*")
        for line in entries.splitlines()
        if not line.startswith(" ")
        for name in line.split(" : ")[0].split(",")
    }
    missing += [f"{name!r} under Parameters" for name in parameters_of(member) if name not in listed]
    if not isinstance(member, type) and _returns_something(member) and not sections.keys() & {"Returns", "Yields"}:
        missing.append("Returns")
    examples = sections.get("Examples", "")
    if ">>> " not in examples or "+SKIP" in examples:
        missing.append("Examples that run")
    return missing


def lacks_as_method(cls: type, name: str) -> list[str]:
    """What is missing from a method: it may be said by the method of a base class, an example by the class itself."""
    classes = [base for base in cls.__mro__ if name in vars(base)]
    found = [lacks(vars(base)[name]) for base in classes if inspect.getdoc(vars(base)[name])]
    missing = [text for text in found[0] if all(text in others for others in found)] if found else ["a docstring"]
    if any(f".{name}(" in (base.__doc__ or "") for base in cls.__mro__) and "Examples that run" in missing:
        missing.remove("Examples that run")
    return missing


def is_record(member: object) -> bool:
    """Whether a class is plain data, whose fields are both what it takes and what it has."""
    return isinstance(member, type) and (dataclasses.is_dataclass(member) or hasattr(member, "_fields"))


def _returns_something(member: object) -> bool:
    assert isinstance(member, Callable)
    return inspect.signature(member).return_annotation not in (None, "None")


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_public_name_is_documented(name):
    assert lacks(MEMBERS[name]) == []


@pytest.mark.parametrize("name", sorted(OTHER_METHODS.keys() - INTERNAL))
def test_method_is_documented(name):
    assert lacks_as_method(*OTHER_METHODS[name]) == []


# -- the check itself


def _undocumented(a: int, b: int) -> int:
    """Add.

    Parameters
    ----------
    a : int
        One.
    """


def _documented(a: int, *others: int) -> int:
    """Add.

    Parameters
    ----------
    a, *others
        The numbers.

    Returns
    -------
    int
        The sum.

    Examples
    --------
    >>> 1 + 1
    2
    """


class _Silent:
    def method(self, a: int) -> None:
        """Do it"""


def test_check_finds_what_is_missing():
    assert lacks(_undocumented) == ["'b' under Parameters", "Returns", "Examples that run"]
    assert lacks(_documented) == []
    assert lacks(_Silent)[0] == "a summary of one line that ends with a full stop; got ''"
    assert lacks(_Silent.method) == [
        "a summary of one line that ends with a full stop; got 'Do it'",
        "'a' under Parameters",
        "Examples that run",
    ]
