"""Edges: windows that are data, the rows of a table or what a schedule says. No row of the stream is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import pyarrow as pa

from slicewise.amounts import INTEGER, TIME, Measure
from slicewise.columns import arrow_of, to_python
from slicewise.errors import DataError, QueryError, did_you_mean
from slicewise.windows.bounds import Bounds, columns_of
from slicewise.windows.kinds import ContextFree
from slicewise.windows.listings import EdgeTable, Listing, Schedule
from slicewise.windows.parameters import format_code

__all__ = ["ScheduledEdges", "TableEdges", "edges"]


@dataclass(frozen=True, repr=False)
class TableEdges(ContextFree):
    """Windows from a table of starts and ends. Two tables are the same window if they hold the same windows."""

    content: str
    on: Measure
    zoned: bool | None
    table: EdgeTable = field(compare=False)

    @property
    def kind(self) -> str:
        return "edges"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.on,)

    @property
    def listing(self) -> Listing:
        return self.table

    @property
    def instants(self) -> Mapping[str, int]:
        return {"start": int(self.table.edges[0]), "end": int(self.table.edges[-1])}

    @property
    def overlap(self) -> int:
        return self.table.overlap

    @property
    def reach(self) -> int:
        return self.table.longest

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        if self.on == INTEGER and unit is not None:
            return {"on": Measure("time", unit=unit)}
        raise QueryError(
            f"the table of edges holds timestamps, and the time column counts {unit}; give bounds as integers in "
            f"{unit} too",
            parameter="unit",
        )

    def check_time(self, time_type: pa.DataType) -> None:
        if self.zoned is None or not pa.types.is_timestamp(time_type):
            return
        zoned = time_type.tz is not None
        if zoned != self.zoned:
            have, has = (("with", "without")[not z] for z in (self.zoned, zoned))
            raise DataError(
                f"the table of edges holds timestamps {have} a time zone, and the time column {has} one; convert the "
                "bounds to the type of the time column"
            )

    def check_keys(self, keys: Sequence[str]) -> None:
        for name in self.table.keys:
            if name not in keys:
                known = f"its keys are {', '.join(map(repr, keys))}" if keys else "it has no keys"
                near = f"; {did_you_mean(name, ['start', 'end', *keys])}" if keys else ""
                raise QueryError(
                    f"the table of edges has a column {name!r}, which is no key of the workload: {known}{near}",
                    parameter="table",
                    column=name,
                )

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        for name, type_ in self.table.key_types.items():
            if _family_of(type_) != _family_of(types[name]):
                raise DataError(
                    f"key {name!r} is {types[name]} in rows and {type_} in the table of edges, so that no row would "
                    "have a window; make them the same"
                )

    def by_number(self, name: str, keys: Sequence[str], values: Sequence[tuple[Any, ...]]) -> Self:
        if not self.table.keys:
            return self
        at = [keys.index(key) for key in self.table.keys]
        return replace(self, table=self.table.by_number(name, [tuple(value[i] for i in at) for value in values]))

    def __repr__(self) -> str:
        # Not the windows themselves: a table that has grown is the same to those who go on with it.
        return f"edges({', '.join(repr(name) for name in ('start', 'end', *self.table.keys))})"


def _family_of(type_: pa.DataType) -> str:
    """What values of a type can be equal to."""
    t = pa.types
    if t.is_dictionary(type_):
        type_ = type_.value_type
    families = {
        "integer": t.is_integer(type_),
        "text": t.is_string(type_) or t.is_large_string(type_),
        "binary": t.is_binary(type_) or t.is_large_binary(type_),
        "decimal": t.is_decimal(type_),
        "instant": t.is_timestamp(type_) and type_.tz is not None,
    }
    return next((name for name, holds in families.items() if holds), str(type_))


@dataclass(frozen=True, repr=False)
class ScheduledEdges(ContextFree):
    """Windows by the user's own schedule. It runs on whatever time the workload has, in its integers."""

    has_lengths = False
    schedule: Listing
    name: str = field(compare=False)

    @property
    def kind(self) -> str:
        return "edges"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def listing(self) -> Listing:
        return self.schedule

    @property
    def reach(self) -> None:
        return None

    def listed_in(self, ranges: Sequence[tuple[int, int]]) -> Self:
        windows = self.schedule.windows_in(ranges)
        bounds = Bounds(windows.start, windows.end, TIME, None)
        return replace(self, schedule=EdgeTable(bounds, {}, {}))

    def __repr__(self) -> str:
        return f"edges({self.name})"


class _TwoFunctions(NamedTuple):
    """A schedule that was given as two functions."""

    next_edge: Callable[[int], Any]
    windows: Callable[[int, int], Any]


def edges(
    table: Any = None,
    *,
    next_edge: Callable[[int], Any] | None = None,
    windows: Callable[[int, int], Any] | None = None,
) -> TableEdges | ScheduledEdges:
    """Windows that are data: trading days, shifts, fiscal weeks; from a table or a schedule.

    They are context free: no row is asked where they lie, and slices are shared with all other queries.

    Parameters
    ----------
    table : table, path, list or schedule, optional
        A table with columns ``start`` and ``end``, of the type of the time column: Arrow, pandas, a Spark DataFrame, a
        mapping of arrays, a list of ``(start, end)``, or the path of a file with one (Parquet, CSV, JSON, Arrow). Order
        does not matter and windows may overlap. Further columns are keys of the workload: a window is there for the
        keys that are equal in them, and a key that is not in the table has no windows.

        Or a schedule: an object with ``next_edge(t)``, the least start or end after ``t`` (None if there is none), and
        ``windows(after, upto)``, all windows that start before ``upto`` and end after ``after``, as a table like that
        without keys. Times are those of the time column, microseconds for timestamps.
    next_edge, windows : callable, optional
        The two functions of a schedule, instead of an object that has them.

    Returns
    -------
    TableEdges or ScheduledEdges
        The window.

    Notes
    -----
    Runtime complexity: O(log n) per slice and window in a table of n windows, as long as no window lies inside another;
    else times the most windows of a key that lie inside each other.

    Examples
    --------
    >>> import slicewise as sw
    >>> shifts = sw.edges([(0, 8), (8, 16), (20, 28)])
    >>> op = sw.Workload(time="ts").query("shift", shifts, total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12, 18, 21], "v": [1, 2, 5, 7, 9]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(0, 8, 3), (8, 16, 5), (20, 28, 9)]

    Per exchange:

    >>> hours = sw.edges({"start": [9, 8], "end": [17, 16], "exchange": ["XETR", "XLON"]})
    >>> op = sw.Workload(time="ts", keys=["exchange"]).query("day", hours, n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [8, 8, 16], "exchange": ["XETR", "XLON", "XETR"]})
    >>> [(r.key, r.start, r.end, r.values["n"]) for r in op.close()]
    [(('XETR',), 9, 17, 1), (('XLON',), 8, 16, 1)]
    """
    if next_edge is not None or windows is not None:
        return _of_functions(table, next_edge, windows)
    if table is None:
        raise QueryError(
            "edges take a table with `start` and `end`, a schedule, or two functions next_edge= and windows=; got "
            "nothing",
            parameter="table",
        )
    code = [callable(getattr(table, name, None)) for name in ("next_edge", "windows")]
    if all(code):
        name = format_code(type(table))
        return ScheduledEdges(Schedule(table, name), name)
    if any(code) or callable(table):
        missing = ("next_edge", "windows")[code.index(False)]
        raise QueryError(
            f"a schedule has `next_edge(t)` and `windows(after, upto)`; {format_code(table)} has no `{missing}`",
            parameter="table",
        )
    columns = columns_of(table)
    bounds = Bounds.in_columns(columns)
    arrays = {n: _key_column(n, c, len(bounds.start)) for n, c in columns.items() if n not in ("start", "end")}
    keys = {name: to_python(array, f"key {name!r}") for name, array in arrays.items()}
    edge_table = EdgeTable(bounds, keys, {name: array.type for name, array in arrays.items()})
    return TableEdges(edge_table.content, bounds.measure, bounds.zoned, edge_table)


def _of_functions(table: Any, next_edge: Any, windows: Any) -> ScheduledEdges:
    if table is not None:
        raise QueryError("edges take a table or functions, not both; leave one of them out", parameter="table")
    for name, function in (("next_edge", next_edge), ("windows", windows)):
        if not callable(function):
            raise QueryError(
                f"`{name}` must be a function; got {function!r}; a schedule is both, next_edge= and windows=",
                parameter=name,
            )
    name = f"next_edge={format_code(next_edge)}, windows={format_code(windows)}"
    return ScheduledEdges(Schedule(_TwoFunctions(next_edge, windows), name), name)


def _key_column(name: str, column: Any, rows: int) -> pa.Array:
    array = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else arrow_of(column)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if len(array) != rows:
        raise QueryError(
            f"column {name!r} of the table of edges has {len(array)} values for {rows} windows", parameter="table"
        )
    if pa.types.is_floating(array.type) or pa.types.is_nested(array.type):
        raise QueryError(
            f"column {name!r} of the table of edges is {array.type}, and a key of edges is a text, an integer, a date "
            "or another type whose values can be looked up",
            parameter="table",
            column=name,
        )
    return array
