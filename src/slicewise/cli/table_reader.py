"""Table reader: the values of a job's tables, read with their types checked, every mistake noted and none raised."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from slicewise.cli.diagnostics import Mistakes, Path, dotted
from slicewise.errors import did_you_mean
from slicewise.options import RunOptions

__all__ = ["Fields", "expand", "kind_of"]

_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<braced>[^{}]*)\}|(?P<open>\{)|(?P<bare>[A-Za-z_]\w*))")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
#: Where a key stands that people look for elsewhere.
_ELSEWHERE = {
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


class Fields:
    """One table of a job. A value that is missing or of the wrong type is noted, and read as None.

    ``known`` are the keys that the table may have; others are noted at once.
    """

    def __init__(self, table: Mapping[str, Any], path: Path, mistakes: Mistakes, known: Iterable[str] | None) -> None:
        self.table, self.path, self.mistakes = table, path, mistakes
        if known is not None:
            self._refuse_unknown(tuple(known))

    def _refuse_unknown(self, known: tuple[str, ...]) -> None:
        what = "table or key" if not self.path else "key"
        for key in self.table:
            if key not in known:
                tip = did_you_mean(key, known)
                if key in _ELSEWHERE and tip.startswith("known"):
                    tip = f"it is `{_ELSEWHERE[key]}`"
                self.note(key, f"unknown {what} `{dotted((*self.path, key))}`; {tip}")

    def has(self, key: str) -> bool:
        return key in self.table

    def note(self, key: str | None, message: str, *, at: int | None = None) -> None:
        """A mistake about the value of ``key``, or about the table."""
        self.mistakes.add(self.path if key is None else (*self.path, key), message, at=at)

    def text(self, key: str, *, needed: str | None = None, expands: bool = False, empty: bool = False) -> str | None:
        """A text; ``needed`` is an example where there must be one; ``expands`` replaces environment variables."""
        value = self._value(key, str, "a text", needed)
        if value is None:
            return None
        if not empty and not value.strip():
            self.note(key, f"`{self.said(key)}` is empty")
            return None
        return self._expand(value, (*self.path, key)) if expands else value

    def flag(self, key: str) -> bool:
        return bool(self._value(key, bool, "true or false", None))

    def texts(self, key: str, *, expands: bool = False) -> tuple[str, ...]:
        """A list of texts."""
        found = []
        for i, item in enumerate(self._value(key, list, "a list of texts", None) or ()):
            path = (*self.path, key, i)
            if not isinstance(item, str):
                self.mistakes.add(path, f"`{dotted(path)}` must be a text; got {kind_of(item)}")
            else:
                found.append(self._expand(item, path) if expands else item)
        return tuple(found)

    def table_of(self, key: str, known: Iterable[str] | None, *, needed: str | None = None) -> Fields | None:
        """A table inside this one."""
        value = self._value(key, dict, "a table", needed)
        return None if value is None else Fields(value, (*self.path, key), self.mistakes, known)

    def options(self, key: str) -> dict[str, str]:
        """A table of options for Spark, which takes texts: numbers and booleans are written as Spark writes them.

        Spark's names have dots, and TOML reads a dotted key as tables: they are put together again.
        """
        table = self.table_of(key, None)
        return self._flat(table.table, table.path, "") if table else {}

    def _flat(self, table: Mapping[str, Any], path: Path, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in table.items():
            inside = (*path, name)
            if isinstance(value, dict):
                found |= self._flat(value, inside, f"{prefix}{name}.")
            elif isinstance(value, list):
                self.mistakes.add(inside, f"`{dotted(inside)}` must be a text, number or boolean; got a list")
            elif isinstance(value, bool):
                found[prefix + name] = str(value).lower()
            else:
                found[prefix + name] = self._expand(value, inside) if isinstance(value, str) else str(value)
        return found

    def said(self, key: str) -> str:
        return dotted((*self.path, key))

    def one_of(self, key: str, known: tuple[str, ...], default: str) -> str:
        """A text that is one of the known words."""
        value = self.text(key)
        if value is not None and value not in known:
            self.note(key, f"`{self.said(key)}` must be one of {', '.join(known)}; got {value!r}", at=0)
        return value if value in known else default  # type: ignore[return-value]

    def _value(self, key: str, type_: type, what: str, needed: str | None) -> Any:
        if key not in self.table:
            if needed is not None:
                self.note(None, f"`{self.said(key)}` is missing; {needed}")
            return None
        value = self.table[key]
        if not isinstance(value, type_):
            self.note(key, f"`{self.said(key)}` must be {what}; got {kind_of(value)}")
            return None
        return value

    def _expand(self, value: str, path: Path) -> str:
        expanded, wrong = expand(value, os.environ)
        for message, at in wrong:
            self.mistakes.add(path, f"`{dotted(path)}`: {message}", at=at)
        return expanded


def expand(text: str, variables: Mapping[str, str]) -> tuple[str, list[tuple[str, int]]]:
    """The text with ``$NAME`` and ``${NAME}`` replaced, and what is wrong in it; ``$$`` is a dollar.

    >>> expand("${DATA}/in $$5", {"DATA": "/data"})
    ('/data/in $5', [])
    >>> expand("$DATE", {"DATA": "/data"})
    ('$DATE', [('there is no environment variable `DATE`; set it, or write $$ for a dollar', 0)])
    """
    wrong: list[tuple[str, int]] = []

    def replace(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        name = found["bare"] if found["braced"] is None else found["braced"]
        if found["open"] or not _NAME.match(name):
            wrong.append(
                ("expected ${NAME}, the name of an environment variable; write $$ for a dollar", found.start())
            )
        elif name not in variables:
            message = f"there is no environment variable `{name}`; set it, or write $$ for a dollar"
            wrong.append((message, found.start()))
        else:
            return variables[name]
        return found[0]

    return _VARIABLE.sub(replace, text), wrong


def kind_of(value: Any) -> str:
    """The value as a message shows it, with its TOML type."""
    if isinstance(value, bool):
        return str(value).lower()
    names = {dict: "a table", list: "a list"}
    for type_, name in names.items():
        if isinstance(value, type_):
            return name
    shown = value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    words = {str: "a text", int: "a number", float: "a number"}
    return f"{shown}, {words.get(type(value), 'a date or time')}"
