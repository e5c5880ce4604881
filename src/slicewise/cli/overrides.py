"""Overrides: ``--set key.path=value``, put into a job before it is checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from slicewise.cli.diagnostics import Mistake, Mistakes, Path, dotted

__all__ = ["apply_overrides"]

_HELP = "write --set key.path=value, as in --set sink.path=out"


def apply_overrides(job: dict[str, Any], overrides: Iterable[str], mistakes: Mistakes) -> None:
    """Put each override into ``job``; what cannot be read is noted."""
    given: dict[Path, str] = {}
    for said in overrides:
        where = f"--set {said}"
        key, equals, value = said.partition("=")
        path = _path(key)
        if not equals or path is None:
            mistakes.found.append(Mistake(where, f"expected a key, = and a value; {_HELP}"))
            continue
        message = _put(job, path, _value(value))
        if message is not None:
            mistakes.found.append(Mistake(where, message))
        given[path] = where
    mistakes.given = given


def _path(key: str) -> Path | None:
    """The parts of a dotted key.

    >>> _path('spark.conf."a.b"')
    ('spark', 'conf', 'a.b')
    """
    if "\n" in key or "=" in key or "#" in key:
        return None
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return None
    path: list[str] = []
    while isinstance(table, dict):
        (part,) = table
        path.append(part)
        table = table[part]
    return tuple(path)


def _value(text: str) -> Any:
    """A TOML value where the text is one, else the text.

    >>> _value("true"), _value("3"), _value('["a"]'), _value("5 seconds"), _value("out#1")
    (True, 3, ['a'], '5 seconds', 'out#1')
    """
    try:
        found = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    # A value of several lines could say further keys, and one with a comment loses something.
    alone = set(found) == {"v"} and ("#" not in text or text.strip()[-1] in "\"'}]")
    return found["v"] if alone else text


def _put(job: dict[str, Any], path: Path, value: Any) -> str | None:
    """Set the value; a message where something that is no table is in the way."""
    table: Any = job
    for n, part in enumerate(path[:-1], 1):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return f"`{dotted(path[:n])}` is no table, so it has no `{path[n]}`"
    table[path[-1]] = value
    return None
