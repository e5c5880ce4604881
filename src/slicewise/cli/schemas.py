"""Schemas: the columns of a schema that is written as Spark reads it, ``"ts TIMESTAMP, v DECIMAL(10, 2)"``.

Enough of it to find a column that is not there, before Spark is started. Spark has the last word on types.
"""

from __future__ import annotations

import re

__all__ = ["SchemaError", "column_types"]

_COLUMN = re.compile(r"\s*(?P<name>`(?:[^`]|``)+`|[^\s:`,()<>]+)(?:\s*:\s*|\s+)(?P<type>\S.*)$", re.DOTALL)
_REST = re.compile(r"\s+(not\s+null|comment\s+|default\s+).*$", re.DOTALL | re.IGNORECASE)
_PAIRS = {")": "(", ">": "<"}


class SchemaError(Exception):
    """What cannot be read, and the character of the schema at which that shows."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def column_types(schema: str) -> dict[str, str]:
    """The columns of a schema, with their types in lower case.

    >>> column_types("ts TIMESTAMP, `my col` DECIMAL(10, 2) NOT NULL")
    {'ts': 'timestamp', 'my col': 'decimal(10, 2)'}
    """
    found: dict[str, str] = {}
    for at, column in _split(schema):
        read = _COLUMN.match(column)
        if read is None:
            got = column.strip() or "nothing"
            raise SchemaError(f"expected a name and a type, as in 'v DOUBLE'; got {got!r}", at)
        name = read["name"]
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        if name in found:
            raise SchemaError(f"the column {name!r} is there twice", at)
        found[name] = _REST.sub("", read["type"]).strip().lower()
    return found


def _split(schema: str) -> list[tuple[int, str]]:
    """The columns, each with where it begins: cut at commas outside brackets and quotes."""
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
