"""Table reader: typed access to the tables of a job file. Mistakes become diagnostics, nothing is raised."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from slicewise.cli.diagnostics import Diagnostics, KeyPath, dotted
from slicewise.errors import did_you_mean
from slicewise.options import RunOptions

__all__ = ["TableReader", "described", "expand"]

_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<braced>[^{}]*)\}|(?P<open>\{)|(?P<bare>[A-Za-z_]\w*))")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
#: The full names of keys that people put into the wrong table.
_FULL_NAMES = {
    **{option.name: f"results.{option.name}" for option in RunOptions.all()},
    "available_now": "trigger.available_now",
    "checkpoint": "sink.checkpoint",
    "conf": "spark.conf",
    "keys": "workload.keys",
    "lateness": "workload.lateness",
    "master": "spark.master",
    "mode": "sink.mode",
    "once": "trigger.once",
    "order": "workload.order",
    "packages": "spark.packages",
    "processing_time": "trigger.processing_time",
    "schema": "source.schema",
    "time": "workload.time",
    "unit": "workload.unit",
    "watermark": "workload.watermark",
    "where": "source.where",
}


class TableReader:
    """Reads one table of a job. A value that is missing or of the wrong type becomes a diagnostic and is read as None.

    ``known`` are the keys that the table may have; other keys become diagnostics at once.
    """

    def __init__(
        self, table: Mapping[str, Any], path: KeyPath, diagnostics: Diagnostics, known: Iterable[str] | None
    ) -> None:
        self.table, self.path, self.diagnostics = table, path, diagnostics
        if known is not None:
            self._refuse_unknown(tuple(known))

    def _refuse_unknown(self, known: tuple[str, ...]) -> None:
        kind = "table or key" if not self.path else "key"
        for key in self.table:
            if key not in known:
                tip = f"it is `{_FULL_NAMES[key]}`" if key in _FULL_NAMES else did_you_mean(key, known)
                self.note(key, f"unknown {kind} `{self.full_name(key)}`; {tip}")

    def has(self, key: str) -> bool:
        return key in self.table

    def full_name(self, key: str) -> str:
        """The key with the path of its table, as messages show it."""
        return dotted((*self.path, key))

    def note(self, key: str | None, message: str, *, at: int | None = None) -> None:
        """Add a diagnostic about the value of ``key``, or about the whole table."""
        self.diagnostics.add(self.path if key is None else (*self.path, key), message, at=at)

    def text(self, key: str, *, needed: str | None = None, expands: bool = False, empty: bool = False) -> str | None:
        """A string; ``needed`` ends the message if it is missing; ``expands`` replaces environment variables."""
        value = self._value(key, str, "a string", needed)
        if value is None:
            return None
        if not empty and not value.strip():
            self.note(key, f"`{self.full_name(key)}` is empty")
            return None
        return self._expand(value, (*self.path, key)) if expands else value

    def flag(self, key: str) -> bool:
        return bool(self._value(key, bool, "true or false", None))

    def size(self, key: str) -> Any:
        """A number of rows, or a word for it."""
        return self._value(key, (int, str), "a number of rows", None)

    def texts(self, key: str, *, expands: bool = False) -> tuple[str, ...]:
        """A list of strings."""
        texts = []
        for i, item in enumerate(self._value(key, list, "a list of strings", None) or ()):
            path = (*self.path, key, i)
            if not isinstance(item, str):
                self.diagnostics.add(path, f"`{dotted(path)}` must be a string; got {described(item)}")
            else:
                texts.append(self._expand(item, path) if expands else item)
        return tuple(texts)

    def table_of(self, key: str, known: Iterable[str] | None, *, needed: str | None = None) -> TableReader | None:
        """A table inside this one."""
        value = self._value(key, dict, "a table", needed)
        return None if value is None else TableReader(value, (*self.path, key), self.diagnostics, known)

    def options(self, key: str) -> dict[str, str]:
        """A table of options for Spark, which takes strings: numbers and booleans are written as Spark writes them.

        Names of Spark's options have dots, which TOML reads as nested tables: their keys are joined again.
        """
        table = self.table_of(key, None)
        return self._flat(table.table, table.path, "") if table else {}

    def _flat(self, table: Mapping[str, Any], path: KeyPath, prefix: str) -> dict[str, str]:
        options: dict[str, str] = {}
        for name, value in table.items():
            inside = (*path, name)
            if isinstance(value, dict):
                options |= self._flat(value, inside, f"{prefix}{name}.")
            elif isinstance(value, list):
                self.diagnostics.add(inside, f"`{dotted(inside)}` must be a string, number or boolean; got a list")
            elif isinstance(value, bool):
                options[prefix + name] = str(value).lower()
            else:
                options[prefix + name] = self._expand(value, inside) if isinstance(value, str) else str(value)
        return options

    def one_of(self, key: str, known: tuple[str, ...], default: str) -> str:
        """A string that is one of the known words."""
        value = self.text(key)
        if value is None:
            return default
        if value not in known:
            self.note(key, f"`{self.full_name(key)}` must be one of {', '.join(known)}; got {value!r}", at=0)
            return default
        return value

    def _value(self, key: str, type_: type | tuple[type, ...], expected: str, needed: str | None) -> Any:
        if key not in self.table:
            if needed is not None:
                self.note(None, f"`{self.full_name(key)}` is missing; {needed}")
            return None
        value = self.table[key]
        if not isinstance(value, type_):
            self.note(key, f"`{self.full_name(key)}` must be {expected}; got {described(value)}")
            return None
        return value

    def _expand(self, value: str, path: KeyPath) -> str:
        expanded, wrong = expand(value, os.environ)
        for message, at in wrong:
            self.diagnostics.add(path, f"`{dotted(path)}`: {message}", at=at)
        return expanded


def expand(text: str, variables: Mapping[str, str]) -> tuple[str, list[tuple[str, int]]]:
    """The text with ``$NAME`` and ``${NAME}`` replaced, and a message and index for each mistake; ``$$`` is a dollar.

    >>> expand("${DATA}/in $$5", {"DATA": "/data"})
    ('/data/in $5', [])
    >>> expand("$DATE", {"DATA": "/data"})
    ('$DATE', [('there is no environment variable `DATE`; set it, or write $$ for a dollar', 0)])
    """
    wrong: list[tuple[str, int]] = []

    def replace(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["bare"] if match["braced"] is None else match["braced"]
        if match["open"] or not _NAME.match(name):
            wrong.append(
                ("expected ${NAME}, the name of an environment variable; write $$ for a dollar", match.start())
            )
        elif name not in variables:
            message = f"there is no environment variable `{name}`; set it, or write $$ for a dollar"
            wrong.append((message, match.start()))
        else:
            return variables[name]
        return match[0]

    return _VARIABLE.sub(replace, text), wrong


def described(value: Any) -> str:
    """The value as messages show it, with its TOML type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    shown = value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    words = {str: "a string", int: "a number", float: "a number"}
    return f"{shown}, {words.get(type(value), 'a date or time')}"
