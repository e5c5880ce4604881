"""Queries: makes a :class:`Workload` of the tables ``[workload]`` and ``[queries.*]`` of a job.

What a workload refuses is noted at the key that the attributes of the :class:`QueryError` name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, UNITS, rows
from slicewise.cli.call_parser import CallSyntaxError, read_aggregate, read_window
from slicewise.cli.table_reader import TableReader, described
from slicewise.conditions.expression import check_truth, derived_types, inputs_of
from slicewise.errors import AggregateError, DataError, QueryError, did_you_mean
from slicewise.windows import Window, tumbling
from slicewise.workload import ProcessingTime, Workload, processing_time

__all__ = ["read_workload"]

_PARAMETERS = ("time", "unit", "keys", "watermark", "lateness", "order", "where", "punctuation", "watermark_from")
#: Fits every workload, so that the aggregates of a query can be checked where its window cannot be read.
_ANY_WINDOW = tumbling(rows(1))
_NO_QUERIES = (
    'there are no queries; add one: [queries.per_minute] with window = "tumbling(\'1 minute\')" and n = "count()"'
)
#: Beside the window and the aggregates of a query: true where empty windows are reported. In quotes it is an aggregate.
_EMPTY = "empty"
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


def read_workload(top: TableReader, columns: Mapping[str, str] | None) -> Workload | None:
    """The workload of a job; None, with diagnostics, where it cannot be made.

    ``columns`` are those of the source with their types, where they are known.
    """
    table = top.table_of("workload", _PARAMETERS, needed='name the event-time column: [workload] with time = "ts"')
    queries = top.table_of("queries", None, needed=None)
    if not top.has("queries") or (queries is not None and not queries.table):
        top.note("queries" if top.has("queries") else None, _NO_QUERIES)
    parameters = {} if table is None else _parameters(table)
    base = None if table is None else _base(table, parameters)
    # Mistakes in queries are found even where the workload itself cannot be made.
    workload = base or Workload("time")
    for query in _tables(queries):
        workload = _add(workload, query)
    if table is not None and columns is not None:
        _check_columns(table, parameters, queries, columns)
        if base is not None:
            _check_time(table, workload, columns)
    return None if base is None else workload


def _tables(queries: TableReader | None) -> Iterator[TableReader]:
    for name in queries.table if queries else ():
        query = queries.table_of(name, None) if queries else None
        if query is not None:
            yield query


def _parameters(table: TableReader) -> dict[str, Any]:
    """The parameters of the workload, without those whose values have the wrong type."""
    parameters: dict[str, Any] = {}
    time = table.text("time", needed='name the event-time column, as in time = "ts"')
    if time is not None:
        parameters["time"] = processing_time() if time == "processing_time()" else time
    for key in ("unit", "where", "punctuation", "watermark_from"):
        text = table.text(key)
        if text is not None or not table.has(key):
            parameters[key] = text
    for key in ("keys", "order"):
        parameters[key] = table.texts(key)
    for key in ("watermark", "lateness"):
        value = table.table.get(key, 0)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            parameters[key] = value
        else:
            table.note(key, f'`workload.{key}` must be a duration such as "2 seconds"; got {described(value)}')
    return parameters


def _base(table: TableReader, parameters: Mapping[str, Any]) -> Workload | None:
    """The workload without queries; None where it cannot be made with all of its parameters."""
    accepted = dict(parameters)
    while "time" in accepted:
        try:
            workload = Workload(**accepted)
        except QueryError as e:
            table.note(e.parameter, f"[workload] {e}", at=0)
            if e.parameter not in accepted:
                return None
            del accepted[e.parameter]  # and try again, so that every mistake is found
        else:
            return workload if len(accepted) == len(_PARAMETERS) else None
    return None


def _add(workload: Workload, query: TableReader) -> Workload:
    """The workload with the query, or without it where something is wrong with it."""
    name = str(query.path[-1])
    window = _window(query)
    aggregates = dict(_aggregates(query))
    empty = _EMPTY in query.table and isinstance(query.table[_EMPTY], bool)
    complete = window is not None and len(aggregates) == len(query.table) - 1 - empty
    flag: dict[str, Any] = {_EMPTY: query.table[_EMPTY]} if empty and window is not None else {}
    if complete and not aggregates:
        query.note(None, f'query {name!r} computes nothing; add an aggregate, such as n = "count()"')
    while aggregates:
        try:
            added = workload.query(name, window or _ANY_WINDOW, **flag, **aggregates)
        except QueryError as e:
            complete = False
            # What is not about one of the columns, or about empty windows, is about the window.
            about = _EMPTY if flag and e.parameter == _EMPTY else "window"
            query.note(e.column if e.column in aggregates else about, str(e))
            if e.column not in aggregates:
                break
            del aggregates[e.column]  # and try again, so that every mistake is found
        else:
            return added if complete else workload
    return workload


def _window(query: TableReader) -> Window | None:
    text = query.text("window", needed="every query has one, as in window = \"tumbling('1 minute')\"", empty=True)
    if text is None:
        return None
    try:
        return read_window(text)
    except CallSyntaxError as e:
        query.note("window", f"`{query.full_name('window')}`: {e}", at=e.at)
        return None


def _aggregates(query: TableReader) -> Iterator[tuple[str, Aggregate]]:
    for column, text in query.table.items():
        if column == "window" or (column == _EMPTY and isinstance(text, bool)):
            continue
        if not isinstance(text, str):
            expected = 'an aggregate in quotes, as in "sum(v)"'
            query.note(column, f"`{query.full_name(column)}` must be {expected}; got {described(text)}")
            continue
        try:
            yield column, read_aggregate(text)
        except CallSyntaxError as e:
            query.note(column, f"`{query.full_name(column)}`: {e}", at=e.at)


# -- against the schema, where there is one


def _check_columns(
    table: TableReader, parameters: Mapping[str, Any], queries: TableReader | None, columns: Mapping[str, str]
) -> None:
    """Every column that is read must be in the schema; case is ignored, as Spark does."""
    known = {c.lower() for c in columns}

    def missing(name: str) -> str | None:
        tip = did_you_mean(name, columns)
        # A field of a struct, or a column with a dot in its name.
        parts = name.lower().split(".")
        if any(".".join(parts[: i + 1]) in known for i in range(len(parts))):
            return None
        return f"there is no column {name!r} in `source.schema`; {tip}"

    for key in ("time", "watermark_from"):
        name = parameters.get(key)
        if name is not None and not isinstance(name, ProcessingTime) and (message := missing(name)):
            table.note(key, message, at=0)
    for key in ("keys", "order"):
        for i, name in enumerate(parameters.get(key, ())):
            if message := missing(name):
                table.diagnostics.add((*table.path, key, i), message, at=0)
    for key in ("where", "punctuation"):
        for name in _names_in(parameters.get(key)):
            if message := missing(name):
                table.note(key, message, at=max(parameters[key].find(name), 0))
    for query in _tables(queries):
        for column, names, aggregate in _reads(query):
            wrong = [(name, message) for name in names if (message := missing(name))]
            for name, message in wrong:
                query.note(column, message, at=max(query.table[column].find(name), 0))
            if aggregate is not None and not wrong:
                _check_types(query, column, aggregate, {c.lower(): t for c, t in columns.items()})


def _names_in(condition: Any) -> tuple[str, ...]:
    try:
        return check_truth(condition, "where").names
    except QueryError:
        return ()  # noted before


def _reads(query: TableReader) -> Iterator[tuple[str, tuple[str, ...], Aggregate | None]]:
    """For each key of a query whose value can be read: the key, its input columns, and the aggregate if it is one."""
    for key, text in query.table.items():
        try:
            if key == "window":
                yield key, inputs_of(read_window(text).reads), None
            else:
                aggregate = read_aggregate(text)
                yield key, inputs_of(aggregate.columns), aggregate
        except (CallSyntaxError, TypeError, AttributeError):
            continue  # noted before


def _check_types(query: TableReader, column: str, aggregate: Aggregate, types: Mapping[str, str]) -> None:
    inputs = {c: _arrow_type(types.get(c.lower(), "")) for c in inputs_of(aggregate.columns)}
    if not inputs or any(t is None for t in inputs.values()):
        return
    try:
        known: Mapping[str, Any] = {**inputs, **derived_types(aggregate.columns, inputs)}
        aggregate.bind(*(known[c] for c in aggregate.columns))
    except (AggregateError, DataError) as e:
        query.note(column, str(e), at=0)


def _arrow_type(name: str) -> pa.DataType | None:
    decimal = re.fullmatch(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", name)
    if decimal and 0 < int(decimal[1]) <= 38:
        return pa.decimal128(int(decimal[1]), int(decimal[2] or 0))
    return _ARROW.get(name)


def _check_time(table: TableReader, workload: Workload, columns: Mapping[str, str]) -> None:
    type_ = {c.lower(): t for c, t in columns.items()}.get(workload.time.lower())
    if type_ is None:
        return
    if type_ not in _TIMES:
        table.note(
            "time", f"the time column {workload.time!r} is {type_.upper()}; it must be TIMESTAMP or an integer", at=0
        )
    elif workload.unit is not None and type_ not in _INTEGERS:
        message = f"`workload.unit` is for integers, and the time column {workload.time!r} is {type_.upper()}"
        table.note("unit", f"{message}; leave it out", at=0)
    elif workload.time_measure == INTEGER and type_ not in _INTEGERS:
        message = f"lengths are plain integers, but the time column {workload.time!r} is {type_.upper()}"
        table.note("time", f"{message}; write them as in '10 minutes'", at=0)
    elif workload.needs_unit and type_ in _INTEGERS:
        message = f"lengths are durations, but the time column {workload.time!r} is {type_.upper()}"
        known = ", ".join(f'"{unit}"' for unit in UNITS)
        table.note("time", f"{message}; say what it counts: unit = one of {known}", at=0)
