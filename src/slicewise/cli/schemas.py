"""Schemas: the columns of a DDL schema such as ``"ts TIMESTAMP, v DECIMAL(10, 2)"``.

Reads as much as is needed to find a missing column before Spark is started. Spark has the last word on types.
"""

from __future__ import annotations

import re

__all__ = ["SchemaError", "column_types"]

_COLUMN = re.compile(r"\s*(?P<name>`(?:[^`]|``)+`|[^\s:`,()<>]+)(?:\s*:\s*|\s+)(?P<type>\S.*)$", re.DOTALL)
_REST = re.compile(r"\s+(not\s+null|comment\s+|default\s+).*$", re.DOTALL | re.IGNORECASE)
_PAIRS = {")": "(", ">": "<"}


class SchemaError(Exception):
    """A schema that cannot be read; ``at`` is the index of the character at fault."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def column_types(schema: str) -> dict[str, str]:
    """The columns of a schema, with their types in lower case.

    >>> column_types("ts TIMESTAMP, `my col` DECIMAL(10, 2) NOT NULL")
    {'ts': 'timestamp', 'my col': 'decimal(10, 2)'}
    """
    types: dict[str, str] = {}
    for at, column in _split(schema):
        match = _COLUMN.match(column)
        if match is None:
            got = column.strip() or "nothing"
            raise SchemaError(f"expected a name and a type, as in 'v DOUBLE'; got {got!r}", at)
        name = match["name"]
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        if name in types:
            raise SchemaError(f"the column {name!r} appears twice", at)
        types[name] = _REST.sub("", match["type"]).strip().lower()
    return types


def _split(schema: str) -> list[tuple[int, str]]:
    """The columns, each with the index at which it begins: split at commas outside brackets and quotes."""
    parts, start, open_, quote = [], 0, [], ""
    for i, char in enumerate(schema):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in "(<":
            open_.append(char)
        elif char in ")>":
            if not open_ or open_.pop() != _PAIRS[char]:
                raise SchemaError(f"{char!r} closes nothing", i)
        elif char == "," and not open_:
            parts.append((start, schema[start:i]))
            start = i + 1
    if quote or open_:
        raise SchemaError(f"{quote or open_[-1]!r} is not closed", len(schema))
    parts.append((start, schema[start:]))
    return [(at + len(part) - len(part.lstrip()), part) for at, part in parts]
