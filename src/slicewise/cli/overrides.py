"""Overrides: ``--set key.path=value``, put into a job before it is checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from slicewise.cli.diagnostics import Diagnostic, Diagnostics, KeyPath, dotted

__all__ = ["apply_overrides"]

_HELP = "write --set key.path=value, as in --set sink.path=out"


def apply_overrides(job: dict[str, Any], overrides: Iterable[str], diagnostics: Diagnostics) -> None:
    """Put each override into ``job``; those that cannot be read become diagnostics."""
    applied: dict[KeyPath, str] = {}
    for override in overrides:
        origin = f"--set {override}"
        key, equals, value = override.partition("=")
        path = _path(key)
        if not equals or path is None:
            diagnostics.entries.append(Diagnostic(origin, f"expected a key, = and a value; {_HELP}"))
            continue
        message = _put(job, path, _value(value))
        if message is not None:
            diagnostics.entries.append(Diagnostic(origin, message))
        applied[path] = origin
    diagnostics.overrides = applied


def _path(key: str) -> KeyPath | None:
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
    """A TOML value where the text is one, otherwise the text itself.

    >>> _value("true"), _value("3"), _value('["a"]'), _value("5 seconds"), _value("out#1")
    (True, 3, ['a'], '5 seconds', 'out#1')
    """
    try:
        table = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    # Several lines could define further keys, and a comment would be dropped: such a text is not a single value.
    single = set(table) == {"v"} and ("#" not in text or text.strip()[-1] in "\"'}]")
    return table["v"] if single else text


def _put(job: dict[str, Any], path: KeyPath, value: Any) -> str | None:
    """Set the value; returns a message if something on the way is not a table."""
    table: Any = job
    for n, part in enumerate(path[:-1], 1):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return f"`{dotted(path[:n])}` is not a table, so it has no `{path[n]}`"
    table[path[-1]] = value
    return None
