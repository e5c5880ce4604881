"""Docstrings: every public name has a summary, its parameters, what it returns, and an example that runs.

The examples themselves are run as doctests of their modules.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable

import pytest

import slicewise as sw

_OPERATOR = sw.Workload(time="ts").query("rows", sw.tumbling(1), n=sw.count()).operator()

#: Plain data, which has no docstring of its own.
CONSTANTS = {"AGGREGATES", "ALIASES"}
#: Classes whose methods users call.
WITH_METHODS: dict[str, type] = {"Workload": sw.Workload, "Results": sw.Results, "Operator": type(_OPERATOR)}
#: Methods for the stages that come after, not for users.
INTERNAL = {"Workload.named", "Workload.time_length"}


def _members() -> dict[str, object]:
    names = {name: getattr(sw, name) for name in sw.__all__ if name not in CONSTANTS}
    for owner, cls in WITH_METHODS.items():
        for name, member in vars(cls).items():
            if not name.startswith("_") and not isinstance(member, property) and callable(getattr(cls, name)):
                names[f"{owner}.{name}"] = getattr(cls, name)
    return {name: member for name, member in names.items() if name not in INTERNAL}


MEMBERS = _members()


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
    listed = {
        name.strip().lstrip("*")
        for line in sections.get("Parameters", "").splitlines()
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


def _returns_something(member: object) -> bool:
    assert isinstance(member, Callable)
    return inspect.signature(member).return_annotation not in (None, "None")


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_public_name_is_documented(name):
    assert lacks(MEMBERS[name]) == []


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
