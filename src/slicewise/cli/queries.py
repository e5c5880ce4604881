"""Queries: the tables ``[workload]`` and ``[queries.*]`` of a job, made into a :class:`Workload`.

What slicewise itself refuses is noted at the line of the query or field that it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, UNITS
from slicewise.cli.call_parser import NotationError, read_aggregate, read_window
from slicewise.cli.table_reader import Fields, kind_of
from slicewise.errors import AggregateError, SlicewiseError, did_you_mean
from slicewise.windows import Window
from slicewise.workload import Workload

__all__ = ["read_workload"]

_WORKLOAD = ("time", "unit", "keys", "watermark", "lateness", "order")
_NO_QUERIES = (
    'there are no queries; add one: [queries.per_minute] with window = "tumbling(\'1 minute\')" and n = "count()"'
)
_INTEGERS = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_TIMES = ("timestamp", "timestamp_ntz", "timestamp_ltz", "date", *_INTEGERS)
_ARROW = {
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.timestamp("us"),
}


def read_workload(top: Fields, columns: Mapping[str, str] | None) -> Workload | None:
    """The workload of a job; None, and what is wrong noted, where it cannot be made.

    ``columns`` are those of the source with their types, where they are known.
    """
    table = top.table_of("workload", _WORKLOAD, needed='name the event-time column: [workload] with time = "ts"')
    queries = top.table_of("queries", None, needed=None)
    if not top.has("queries") or (queries is not None and not queries.table):
        top.note("queries" if top.has("queries") else None, _NO_QUERIES)
    said = _said(table)
    base = _base(table, said)
    # With a base of its own where the workload cannot be made, so that mistakes in queries are found all the same.
    workload = base or Workload("time")
    for name in queries.table if queries else ():
        query = queries.table_of(name, None) if queries else None
        if query is not None:
            workload = _add(workload, query, str(name))
    if table is not None and columns is not None:
        _check_columns(table, said, queries, columns)
        if base is not None:
            _check_time(table, workload, columns)
    return None if base is None or table is None else workload


def _said(table: Fields | None) -> dict[str, Any]:
    """What the workload table says, of the right types."""
    if table is None:
        return {}
    said: dict[str, Any] = {"time": table.text("time", needed='name the event-time column, as in time = "ts"')}
    unit = table.text("unit")
    if unit is not None or not table.has("unit"):
        said["unit"] = unit
    for key in ("keys", "order"):
        said[key] = table.texts(key)
    for key in ("watermark", "lateness"):
        value = table.table.get(key, 0)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            said[key] = value
        else:
            table.note(key, f'`workload.{key}` must be a duration such as "2 seconds"; got {kind_of(value)}')
    return said


def _base(table: Fields | None, said: dict[str, Any]) -> Workload | None:
    if table is None or said.get("time") is None:
        return None
    fine = {"time": said["time"]}
    whole = True
    for key in _WORKLOAD[1:]:  # one by one, so that each gets its own mistake
        try:
            Workload(**{**fine, key: said[key]})
            fine[key] = said[key]
        except (SlicewiseError, KeyError) as e:
            whole = False
            if isinstance(e, SlicewiseError):
                named = re.match(r"`(\w+)`", str(e))
                about = named[1] if named and table.has(named[1]) else key
                table.note(about if table.has(about) else None, f"[workload] {e}", at=0)
    return Workload(**fine) if whole else None


def _add(workload: Workload, query: Fields, name: str) -> Workload:
    """The workload with the query, or without it where something is wrong with it."""
    window = _window(query)
    aggregates = dict(_aggregates(query))
    if window is None or len(aggregates) < len(query.table) - 1:
        window = window or Window()
        _try_each(workload, query, name, window, aggregates)
        return workload
    if not aggregates:
        query.note(None, f'query {name!r} computes nothing; add an aggregate, such as n = "count()"')
        return workload
    if not _try_each(workload, query, name, window, aggregates):
        return workload
    try:
        return workload.query(name, window, **aggregates)
    except SlicewiseError as e:
        query.note(None, str(e))
        return workload


def _try_each(workload: Workload, query: Fields, name: str, window: Window, aggregates: dict[str, Aggregate]) -> bool:
    """Try each aggregate alone, so that every mistake is found; one about the query is noted once, at its window."""
    fine = True
    for column, aggregate in aggregates.items():
        try:
            if type(window) is Window:  # none could be read: the names alone are checked
                workload._check_aggregate(name, column, aggregate)
            else:
                workload.query(name, window, **{column: aggregate})
        except SlicewiseError as e:
            fine = False
            about_column = repr(column) in str(e) and str(e).startswith("query ")
            query.note(column if about_column else "window", str(e))
    return fine


def _window(query: Fields) -> Window | None:
    text = query.text("window", needed="every query has one, as in window = \"tumbling('1 minute')\"", empty=True)
    if text is None:
        return None
    try:
        return read_window(text)
    except NotationError as e:
        query.note("window", f"`{query.said('window')}`: {e}", at=e.at)
        return None


def _aggregates(query: Fields) -> Iterator[tuple[str, Aggregate]]:
    for column, said in query.table.items():
        if column == "window":
            continue
        if not isinstance(said, str):
            message = f'`{query.said(column)}` must be an aggregate in quotes, as in "sum(v)"; got {kind_of(said)}'
            query.note(column, message)
            continue
        try:
            yield column, read_aggregate(said)
        except NotationError as e:
            query.note(column, f"`{query.said(column)}`: {e}", at=e.at)


# -- against the schema, where there is one


def _check_columns(table: Fields, said: dict[str, Any], queries: Fields | None, columns: Mapping[str, str]) -> None:
    """Every column that is read is in the schema; upper and lower case are the same, as to Spark."""
    known = {c.lower() for c in columns}

    def missing(name: str) -> str | None:
        tip = did_you_mean(name, columns)
        return None if name.lower() in known else f"there is no column {name!r} in `source.schema`; {tip}"

    if said.get("time") and (message := missing(said["time"])):
        table.note("time", message, at=0)
    for key in ("keys", "order"):
        for i, name in enumerate(said.get(key, ())):
            if message := missing(name):
                table.mistakes.add((*table.path, key, i), message, at=0)
    inner = [queries.table_of(name, None) for name in queries.table] if queries else []
    for query in filter(None, inner):
        for column, names, aggregate in _reads(query):
            wrong = [(name, message) for name in names if (message := missing(name))]
            for name, message in wrong:
                query.note(column, message, at=max(query.table[column].find(name), 0))
            if aggregate is not None and not wrong:
                _check_types(query, column, aggregate, {c.lower(): t for c, t in columns.items()})


def _reads(query: Fields) -> Iterator[tuple[str, tuple[str, ...], Aggregate | None]]:
    """For each text of a query that can be read: its key, the columns that it reads, and the aggregate that it is."""
    for key, said in query.table.items():
        try:
            if key == "window":
                yield key, read_window(said).reads, None
            else:
                aggregate = read_aggregate(said)
                yield key, aggregate.columns, aggregate
        except (NotationError, TypeError, AttributeError):
            continue  # noted before


def _check_types(query: Fields, column: str, aggregate: Aggregate, types: Mapping[str, str]) -> None:
    found = [_arrow_type(types[c.lower()]) for c in aggregate.columns]
    if not found or any(t is None for t in found):
        return
    try:
        aggregate.bind(*found)
    except AggregateError as e:
        query.note(column, str(e), at=0)


def _arrow_type(name: str) -> pa.DataType | None:
    decimal = re.fullmatch(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
    if decimal and 0 < int(decimal[1]) <= 38:
        return pa.decimal128(int(decimal[1]), int(decimal[2] or 0))
    return _ARROW.get(name)


def _check_time(table: Fields, workload: Workload, columns: Mapping[str, str]) -> None:
    type_ = {c.lower(): t for c, t in columns.items()}.get(workload.time.lower())
    if type_ is None:
        return
    if type_ not in _TIMES:
        table.note(
            "time", f"the time column {workload.time!r} is {type_.upper()}; it must be TIMESTAMP or an integer", at=0
        )
    elif workload.unit is not None and type_ not in _INTEGERS:
        message = f"`workload.unit` says what integers count, and the time column {workload.time!r} is {type_.upper()}"
        table.note("unit", f"{message}; leave it out", at=0)
    elif workload.time_measure == INTEGER and type_ not in _INTEGERS:
        message = f"lengths are plain integers, but the time column {workload.time!r} is {type_.upper()}"
        table.note("time", f"{message}; write them as in '10 minutes'", at=0)
    elif workload.needs_unit and type_ in _INTEGERS:
        message = f"lengths are durations, but the time column {workload.time!r} is {type_.upper()}"
        known = ", ".join(f'"{unit}"' for unit in UNITS)
        table.note("time", f"{message}; say what it counts: unit = one of {known}", at=0)
