"""Bounds: starts and ends of windows as users give them, in a table of any form, as checked integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.amounts import INTEGER, TIME, Measure, to_instant
from slicewise.errors import QueryError, did_you_mean
from slicewise.times import LARGEST_TIME
from slicewise.windows.parameters import format_position

__all__ = ["Bounds", "Times", "columns_of", "read_bounds"]

_FORMS = (
    "an Arrow table, a pandas or Spark DataFrame, a mapping of arrays with `start` and `end`, or a list of (start, end)"
)


class Times(NamedTuple):
    """Points in event time: integers, what they count, and whether they had a time zone; None if nobody said."""

    values: np.ndarray
    measure: Measure
    zoned: bool | None


class Bounds(NamedTuple):
    """The bounds of windows, each of which ends after it starts."""

    start: np.ndarray
    end: np.ndarray
    measure: Measure
    zoned: bool | None

    @classmethod
    def of(cls, table: Any, *, empty: bool = False) -> Bounds:
        """The bounds in a table that has no other columns; it may be ``empty``."""
        columns = columns_of(table)
        others = [name for name in columns if name not in ("start", "end")]
        if others:
            raise QueryError(f"there is a column {others[0]!r} beside `start` and `end`; leave it out")
        return cls.in_columns(columns, empty=empty)

    @classmethod
    def in_columns(cls, columns: Mapping[str, Any], *, empty: bool = False) -> Bounds:
        """The bounds in the columns ``start`` and ``end``."""
        for name in ("start", "end"):
            if name not in columns:
                raise QueryError(
                    f"a table of edges needs a column {name!r}; {did_you_mean(name, list(columns))}", parameter="table"
                )
        start, end = (columns[name] for name in ("start", "end"))
        if len(start) != len(end):
            raise QueryError(
                f"`start` and `end` must be as long as each other; got {len(start)} and {len(end)}", parameter="table"
            )
        if not len(start):
            if empty:
                nothing = np.empty(0, np.int64)
                return cls(nothing, nothing, TIME, None)
            raise QueryError("a table of edges needs at least one window; got none", parameter="table")
        starts, ends = read_bounds(start, "start"), read_bounds(end, "end")
        if (starts.measure, starts.zoned) != (ends.measure, ends.zoned):
            raise QueryError(
                f"`start` and `end` must be of the same kind; got {_kind(starts)} and {_kind(ends)}", parameter="table"
            )
        bounds = cls(starts.values, ends.values, starts.measure, starts.zoned)
        wrong = np.flatnonzero(bounds.end <= bounds.start)
        if len(wrong):
            raise QueryError(
                f"`end` must lie after `start`; window {wrong[0]} of the table is {bounds.shown(int(wrong[0]))}",
                parameter="table",
            )
        return bounds

    def shown(self, at: int) -> str:
        """One window, for messages."""
        start, end = (format_position(int(bound[at]), self.measure).strip("'") for bound in (self.start, self.end))
        return f"[{start}, {end})"


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of a table, whatever its form."""
    if isinstance(table, (str, Path)):
        return columns_of(_read_file(Path(table)))
    if hasattr(table, "toArrow") and hasattr(table, "schema"):  # a Spark DataFrame, which this stage does not know
        table = table.toArrow()
    elif type(table).__module__.startswith("pandas") and hasattr(table, "columns"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        names = table.schema.names
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise QueryError(f"a table of edges has the column {repeated!r} twice; leave one out", parameter="table")
        return {name: table.column(name) for name in names}
    if isinstance(table, Mapping):
        return {str(name): column for name, column in table.items()}
    if isinstance(table, Sequence) and not isinstance(table, (str, bytes)):
        if table and all(isinstance(row, Mapping) for row in table):
            return columns_of(pa.Table.from_pylist(list(table)))
        return _columns_of_pairs(table)
    raise QueryError(f"edges take {_FORMS}; got {type(table).__name__}", parameter="table")


def _columns_of_pairs(pairs: Sequence[Any]) -> dict[str, Any]:
    for at, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise QueryError(
                f"a list of edges holds pairs (start, end); got {pair!r} at {at}; with keys, give a table or a list of "
                "mappings",
                parameter="table",
            )
    return {name: [pair[side] for pair in pairs] for side, name in enumerate(("start", "end"))}


def _read_file(path: Path) -> pa.Table:
    from pyarrow import csv, feather, json, parquet

    readers = {
        ".parquet": parquet.read_table,
        ".csv": csv.read_csv,
        ".json": json.read_json,
        ".jsonl": json.read_json,
        ".feather": feather.read_table,
        ".arrow": feather.read_table,
    }
    if path.suffix not in readers and not path.is_dir():
        raise QueryError(
            f"a table of edges is read from a file that ends in {', '.join(readers)}; got {str(path)!r}",
            parameter="table",
        )
    try:
        table: pa.Table = readers.get(path.suffix, parquet.read_table)(str(path))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise QueryError(f"the table of edges {str(path)!r} cannot be read: {reason}", parameter="table") from None
    return table


def read_bounds(column: Any, name: str) -> Times:
    """Points in event time as integers; refuses what is none, naming the first."""
    try:
        array = column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column)
    except (pa.ArrowException, TypeError, OverflowError):
        raise QueryError(
            f"`{name}` must hold timestamps or integers of 64 bits; got {_first_odd(column)}", parameter="table"
        ) from None
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if array.null_count:
        at = int(pc.index(array.is_null(), True).as_py())
        raise QueryError(f"`{name}` of window {at} is null; every window has a start and an end", parameter="table")
    type_ = array.type
    if pa.types.is_dictionary(type_):
        array, type_ = array.dictionary_decode(), type_.value_type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return Times(_checked([to_instant(text, name=name)[0] for text in array.to_pylist()], name), TIME, None)
    try:
        if pa.types.is_integer(type_):
            return Times(_checked(array.cast(pa.int64()).to_numpy(), name), INTEGER, None)
        if pa.types.is_date(type_):
            array = array.cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
            return Times(_checked(array.cast(pa.int64()).to_numpy(), name), TIME, None)
        if pa.types.is_timestamp(type_):
            array = array.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
            return Times(_checked(array.to_numpy(), name), TIME, type_.tz is not None)
    except pa.ArrowInvalid as error:
        raise QueryError(
            f"`{name}` must hold whole microseconds, and integers of 64 bits; {error}; round it", parameter="table"
        ) from None
    raise QueryError(
        f"`{name}` must hold timestamps, dates or integers, as the time column does; got {type_}", parameter="table"
    )


def _checked(values: Any, name: str) -> np.ndarray:
    array = np.array(values, np.int64)
    far = np.flatnonzero(np.abs(array) > 3 * LARGEST_TIME)
    if len(far):
        raise QueryError(
            f"`{name}` of window {far[0]} is {array[far[0]]}, further than event times reach", parameter="table"
        )
    return array


def _first_odd(column: Any) -> str:
    values = list(column)
    kinds = list(dict.fromkeys(type(value).__name__ for value in values))
    return " and ".join(kinds[:3]) if len(kinds) > 1 else repr(values[0])[:60]


def _kind(times: Times) -> str:
    if times.measure == INTEGER:
        return "integers"
    return "timestamps" + {True: " with a time zone", False: " without a time zone", None: ""}[times.zoned]
