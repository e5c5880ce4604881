"""Input: from what the user hands in to checked arrays. What is wrong with rows is found before any state moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.amounts import INTEGER, UNITS
from slicewise.columns import NATIVE_TYPES, TYPE_NAMES, Column, arrow_of, physical_dtype
from slicewise.conditions.expression import Expression, inputs_of, refuse_missing, selection
from slicewise.errors import DataError, did_you_mean
from slicewise.labels import RowLabel
from slicewise.records import record
from slicewise.times import INFINITY, Extent, largest_time
from slicewise.workload import Workload

__all__ = [
    "CLOCK_TYPE",
    "Batch",
    "as_mapping",
    "bounds_type",
    "check_time",
    "column_in",
    "conform",
    "meant_rows",
    "needs_unit",
    "parse_types",
    "picked",
    "read_batch",
    "read_keys",
    "selected_rows",
    "to_times",
    "value_in",
    "watermark_limit",
]

#: The name under which rows that came one at a time, as mappings, stand in a batch's source.
ROWS = "\0rows"
#: The type of processing time.
CLOCK_TYPE = pa.timestamp("us", "UTC")
#: How many microseconds one count is in columns that do not count those.
_TICKS = {pa.date32().id: 86_400_000_000, pa.date64().id: 1000}
_NULL = pa.null().id
#: Where event times stand beside the columns of the user, so that a query may read his time column as it came.
EVENT_TIME = "\0time"


@record
class Batch:
    """Rows, checked: event times, key columns as Arrow arrays, and the other columns that the workload reads.

    ``source`` is what the user handed in, with all its columns, so that late rows can be given back whole.
    ``selected`` are the rows that the workload is about, None for all; ``failures`` those of which that cannot be told,
    with the expression and what is wrong. ``extent`` is how the event times lie, where somebody has looked.
    """

    times: np.ndarray
    time_type: pa.DataType
    keys: list[pa.Array]
    columns: dict[str, Column]
    source: Mapping[str, Any]
    selected: np.ndarray | None = None
    failures: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    extent: Extent | None = None

    def __len__(self) -> int:
        return len(self.times)

    def types(self, workload: Workload) -> dict[str, pa.DataType]:
        """The types of the columns that the workload reads."""
        of_keys = {name: key.type for name, key in zip(workload.keys, self.keys, strict=True)}
        return of_keys | {name: column.type for name, column in self.columns.items()}

    def take(self, index: np.ndarray) -> Batch:
        """The rows at ``index``, as they came, to be given back; not to be processed again."""
        source = {name: picked(data, index) for name, data in self.source.items()}
        return Batch(self.times[index], self.time_type, [], {}, source)

    def pick(self, index: np.ndarray) -> Batch:
        """The rows at ``index``, to be processed."""
        columns = {name: column.take(index) for name, column in self.columns.items()}
        keys = [key.take(pa.array(index)) for key in self.keys]
        selected = None if self.selected is None else self.selected[index]
        failures = {i: self.failures[row] for i, row in enumerate(index.tolist()) if row in self.failures}
        return Batch(self.times[index], self.time_type, keys, columns, self.take(index).source, selected, failures)

    @property
    def meant(self) -> np.ndarray:
        """``selected`` as an array, also when all rows are."""
        return np.ones(len(self), bool) if self.selected is None else self.selected

    def label(self, row: int, workload: Workload) -> RowLabel:
        """One of the rows, for messages."""
        key = {name: column[row].as_py() for name, column in zip(workload.keys, self.keys, strict=True)}
        return RowLabel(key, int(self.times[row]), self.time_type, workload.time_measure.unit)

    def source_list(self, name: str) -> list[Any]:
        """A column as it came, as Python values."""
        data = self.source[name]
        if isinstance(data, Column):
            return data.to_pylist()
        if isinstance(data, (pa.Array, pa.ChunkedArray)):
            return list(data.to_pylist())
        return data.tolist() if hasattr(data, "tolist") else list(data)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as they came, as dictionaries."""
        if ROWS in self.source:
            return [dict(row) for row in self.source[ROWS]]
        names = list(self.source)
        columns = [self.source_list(name) for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def parse_types(types: Mapping[str, Any] | None) -> dict[str, pa.DataType]:
    """Types as the user gives them: Arrow types, or Spark's names for them."""
    parsed = {}
    for column, type_ in (types or {}).items():
        if isinstance(type_, str):
            if type_.lower() not in TYPE_NAMES:
                raise DataError(
                    f"`types`: {type_!r} for column {column!r} is not a type; {did_you_mean(type_, TYPE_NAMES)}"
                )
            type_ = TYPE_NAMES[type_.lower()]
        if not isinstance(type_, pa.DataType):
            raise DataError(f"`types`: column {column!r} needs an Arrow type or a name such as 'double'; got {type_!r}")
        parsed[column] = type_
    return parsed


def read_batch(
    data: Any,
    workload: Workload,
    types: Mapping[str, pa.DataType],
    *,
    time: str | None = None,
    now: int | None = None,
) -> Batch:
    """Check a batch of rows: a mapping of arrays, an Arrow table or record batch, or a pandas DataFrame.

    ``time`` is where event times stand, if that is not the workload's time column; ``now`` is the time of all rows
    where they have none.
    """
    columns, time = data if type(data) is dict else as_mapping(data), time or workload.time
    timed = (time,) if now is None else ()
    given = {}
    for name in (*timed, *workload.keys, *workload.inputs):
        column = columns.get(name)
        given[name] = _field_named(columns, name, workload) if column is None else column
    kept = None if workload.where is None or now is not None else _with_time_or_meant(given, time, workload, types)
    if kept is not None:
        return read_batch({n: picked(d, kept) for n, d in columns.items()}, workload, types, time=time)
    times, time_type, extent = to_times(given[time], workload) if now is None else _stamped(columns, now)
    keys = [_arrow(given[name], name, types.get(name)) for name in workload.keys] if workload.keys else []
    values = {name: _column(given[name], name, types.get(name)) for name in workload.inputs}
    # Columns that nobody reads must fit too: late rows are given back whole.
    others = {} if columns.keys() <= given.keys() else {n: data for n, data in columns.items() if n not in given}
    for name, column in (*zip(workload.keys, keys, strict=True), *values.items(), *others.items()):
        length = len(column.values) if type(column) is Column else _length(column, name)
        if length != len(times):
            raise DataError(
                f"all columns must have the same number of rows; got {len(times)} in {time!r} and {length} in {name!r}"
            )
    if not workload.filters:
        return Batch(times, time_type, keys, values, columns, extent=extent)
    selected, failures = selected_rows(workload, values, types, len(times))
    return Batch(times, time_type, keys, values, columns, selected, failures, extent)


def _field_named(columns: Mapping[str, Any], name: str, workload: Workload) -> Any:
    """A column that does not stand under its name: a field of a struct, or it is missing."""
    data = column_in(columns, name)
    if data is None:
        refuse_missing([*workload.columns, *workload.filters], name, columns)
        raise DataError(f"there is no column {name!r} in the rows; {did_you_mean(name, columns)}")
    return data


def _stamped(columns: Mapping[str, Any], now: int) -> tuple[np.ndarray, pa.DataType, Extent]:
    """The clock's time for every row, its type, and how these times lie."""
    rows = next((_length(column, name) for name, column in columns.items()), 0)
    return np.full(rows, now, np.int64), CLOCK_TYPE, Extent(now, now, True)


def _with_time_or_meant(
    given: Mapping[str, Any], time: str, workload: Workload, types: Mapping[str, pa.DataType]
) -> np.ndarray | None:
    """The rows without those that nobody means and whose event time is missing or out of range; None for all."""
    times = _column(given[time], workload.time, None)
    timeless = np.ones(len(times), bool) if pa.types.is_null(times.type) else ~times.mask
    if physical_dtype(times.type).kind == "i":
        timeless |= _beyond(times.values, _largest(times.type, workload))
    assert workload.where is not None
    values = {name: _column(given[name], name, types.get(name)) for name in workload.where.names}
    if not timeless.any() or any(len(column) != len(times) for column in values.values()):
        return None
    selected, _ = meant_rows(workload, values, types, len(times))
    assert selected is not None
    nobodys = timeless & ~selected
    return np.flatnonzero(~nobodys) if nobodys.any() else None


def selected_rows(
    workload: Workload, values: Mapping[str, Column], types: Mapping[str, pa.DataType], rows: int
) -> tuple[np.ndarray | None, dict[int, tuple[str, str]]]:
    """Which rows the workload is about, None for all; and of which that cannot be told, and why.

    Punctuation that no window sees is not among them.
    """
    return _selected(workload.where, workload.unseen_punctuation, values, types, rows)


def meant_rows(
    workload: Workload, values: Mapping[str, Column], types: Mapping[str, pa.DataType], rows: int
) -> tuple[np.ndarray | None, dict[int, tuple[str, str]]]:
    """Which rows meet ``where``, data and punctuation; and of which that cannot be told, and why."""
    return _selected(workload.where, None, values, types, rows)


def _selected(
    where: Expression | None,
    unless: Expression | None,
    values: Mapping[str, Column],
    types: Mapping[str, pa.DataType],
    rows: int,
) -> tuple[np.ndarray | None, dict[int, tuple[str, str]]]:
    if where is None and unless is None:
        return None, {}
    names = inputs_of(c for c in (where, unless) if c is not None)
    known = {name: conform(values[name], types.get(name, values[name].type), name) for name in names}
    return selection(where, known, rows, unless=unless)


def column_in(columns: Mapping[str, Any], name: str) -> Any:
    """A column by its name, or the field of a struct: ``a.b``; None if there is neither."""
    if name in columns:
        return columns[name]
    for at in reversed([i for i, c in enumerate(name) if c == "."]):
        if name[:at] in columns:
            return _field(columns[name[:at]], name[at + 1 :])
    return None


def _field(data: Any, path: str) -> Any:
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        if not pa.types.is_struct(data.type):
            return None
        fields = {field.name: pc.struct_field(data, [field.name]) for field in data.type}
        return column_in(fields, path)
    values = data.to_pylist() if isinstance(data, Column) else list(data)
    if not all(v is None or isinstance(v, Mapping) for v in values):
        return None
    try:
        return [None if v is None else value_in(v, path) for v in values]
    except KeyError:
        return None


def value_in(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column in one row, or of a field of a struct; a KeyError if there is neither."""
    if name in row or "." not in name:
        return row[name]
    for at in reversed([i for i, c in enumerate(name) if c == "."]):
        inner = row.get(name[:at], name)
        if inner is None:
            return None
        if isinstance(inner, Mapping):
            return value_in(inner, name[at + 1 :])
    raise KeyError(name)


def to_times(data: Any, workload: Workload) -> tuple[np.ndarray, pa.DataType, Extent | None]:
    """Event times as int64, the type that window bounds have in results, and how the times lie, if there are any."""
    name = workload.time
    column = _column(data, name, None)
    values, type_ = column.values, column.type
    if not len(values):
        return np.empty(0, np.int64), pa.timestamp("us"), None
    if type_.id == _NULL:
        raise DataError(f"the time column {name!r} is null in row 0; every row needs an event time")
    bounds = bounds_type(type_, workload)
    tick = _TICKS.get(type_.id, 1)
    if column.valid is not None:
        row = int(np.flatnonzero(~column.valid)[0])
        raise DataError(f"the time column {name!r} is null in row {row}; every row needs an event time")
    largest = _largest(type_, workload)
    extent = Extent.of(values)
    # Before they are multiplied: days far away would wrap around.
    if extent.earliest < -largest or extent.latest > largest:
        row = int(np.argmax(_beyond(values, largest)))
        at = int(values[row]) * tick
        raise DataError(f"the time column {name!r} holds {at} in row {row}, which is out of range")
    if tick == 1:
        return values, bounds, extent
    return values * tick, bounds, Extent(extent.earliest * tick, extent.latest * tick, extent.in_order)


def _largest(type_: pa.DataType, workload: Workload) -> int:
    """The largest event time, as a column of this type counts."""
    return largest_time(workload.unit) // _TICKS.get(type_.id, 1)


def _beyond(values: np.ndarray, largest: int) -> np.ndarray:
    """Which values are out of range."""
    beyond: np.ndarray = (values < -largest) | (values > largest)
    return beyond


def bounds_type(type_: pa.DataType, workload: Workload, shown: str | None = None) -> pa.DataType:
    """The type of window bounds in tables when the time column has this type, which must fit the workload.

    ``shown`` is the type as messages call it, if not as Arrow does.
    """
    name, shown, t = workload.time, shown or str(type_), pa.types
    if t.is_integer(type_):
        if workload.needs_unit:
            for query in workload.queries:
                query.check_time(type_)  # one that goes with no unit knows a better reason
            raise DataError(needs_unit(workload, shown))
        return pa.int64() if workload.unit is None else pa.timestamp("us")
    if workload.unit is not None:
        raise DataError(
            f"the time column {name!r} holds {shown}, and `unit` says what integers count; got unit="
            f"{workload.unit!r}; leave it out for timestamps, or cast the column"
        )
    if not (t.is_timestamp(type_) or t.is_date(type_)):
        raise DataError(
            f"the time column {name!r} must hold timestamps, or integers (with their `unit`, or those in which the "
            f"windows are given); got {shown}"
        )
    if workload.time_measure == INTEGER:
        raise DataError(
            f"the time column {name!r} holds {shown}, but the windows are given in plain integers; give them as "
            "durations, such as '10 seconds'"
        )
    return pa.timestamp("us", getattr(type_, "tz", None) and "UTC")


def check_time(workload: Workload, time_type: pa.DataType) -> None:
    """Refuse queries that came later and do not go with the event times so far, whose bounds have this type."""
    if workload.unit is None:
        bounds_type(time_type, workload)


def watermark_limit(unit: str | None) -> int:
    """What no watermark reaches: it may lie beyond all event times, where the last windows end."""
    return min(2 * largest_time(unit), INFINITY)


def needs_unit(workload: Workload, shown: str) -> str:
    """What to say of integers, called so, under lengths in time."""
    known = ", ".join(map(repr, UNITS))
    return (
        f"the time column {workload.time!r} holds {shown}, but the windows are given as durations; say what its "
        f"integers count: Workload(time={workload.time!r}, unit=...) with one of {known}"
    )


def conform(column: Column, type_: pa.DataType, name: str) -> Column:
    """The column in the type that this operator knows for it."""
    if column.type == type_:
        return column
    if pa.types.is_null(column.type):
        filler: Any = None if physical_dtype(type_).hasobject else 0
        values = np.full(len(column), filler, physical_dtype(type_))
        return Column(values, type_, np.zeros(len(column), bool))
    t = pa.types
    if t.is_integer(column.type) and t.is_integer(type_):
        return _in_range(Column(column.values, type_, column.valid), name)
    if t.is_floating(type_) and (t.is_floating(column.type) or t.is_integer(column.type)):
        return Column(column.values.astype(np.float64), type_, column.valid)
    if t.is_timestamp(type_) and t.is_timestamp(column.type) and bool(type_.tz) == bool(column.type.tz):
        return Column(column.values, type_, column.valid)
    if _is_text(type_) and _is_text(column.type):
        return Column(column.values, type_, column.valid)
    if t.is_decimal(type_) and (t.is_decimal(column.type) or t.is_integer(column.type)):
        return _column(column.to_pylist(), name, type_)
    raise DataError(
        f"column {name!r} held {type_} so far, and now {column.type}; cast it, or say what it is from the start: "
        f"operator(types={{{name!r}: 'double'}})"
    )


def as_mapping(data: Any) -> Mapping[str, Any]:
    """The columns of a batch by name, whatever holds them."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        names = data.column_names
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise DataError(f"the rows have the column {twice[0]!r} twice; rename one of them")
        return {name: data.column(name) for name in names}
    if isinstance(data, Mapping):
        return data
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        names = [str(c) for c in data.columns]
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise DataError(f"the rows have the column {twice[0]!r} twice; rename one of them")
        return {name: data[name].to_numpy() if _is_plain(data[name]) else data[name] for name in data.columns}
    raise DataError(
        f"rows must come as a mapping of columns, an Arrow table or a pandas DataFrame; got {type(data).__name__}"
    )


def _arrow(data: Any, name: str, type_: pa.DataType | None) -> pa.Array:
    """A key column; of the type that is known for it, if one is."""
    try:
        if isinstance(data, pa.ChunkedArray):
            array = data.combine_chunks() if data.num_chunks != 1 else data.chunk(0)
        else:
            array = data if isinstance(data, pa.Array) else arrow_of(data, None if _is_typed(data) else type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be read as one type: {error}") from error
    if type_ is None or array.type == type_:
        return array
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    return conform(_column(array, name, None), plain, name).to_arrow()


def read_keys(data: Any, name: str) -> pa.Array:
    """A key column, whatever its type."""
    return _arrow(data, name, None)


def _column(data: Any, name: str, type_: pa.DataType | None) -> Column:
    if type(data) is np.ndarray and data.ndim == 1:
        native = NATIVE_TYPES.get(data.dtype)
        if native is not None and (type_ is None or type_ == native):
            return Column(data, native)
    # Arrow would cast texts to numbers and numbers to texts; `conform` says what goes together.
    if isinstance(data, (pa.Array, pa.ChunkedArray)) or _is_typed(data):
        type_ = None
    try:
        return Column.of(data, type_)
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be read as one type: {error}") from error


def _in_range(column: Column, name: str) -> Column:
    bits = column.type.bit_width
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if pa.types.is_unsigned_integer(column.type):
        low, high = 0, 2**bits - 1
    wrong = np.flatnonzero(((column.values < low) | (column.values > high)) & column.mask)
    if len(wrong):
        raise DataError(
            f"column {name!r} holds {column.type}; got {column.values[wrong[0]]} in row {wrong[0]}; say that it is "
            f"larger from the start: operator(types={{{name!r}: 'bigint'}})"
        )
    return column


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_typed(data: Any) -> bool:
    """Whether an array of NumPy or pandas says itself that it holds times, texts or booleans."""
    return getattr(getattr(data, "dtype", None), "kind", "O") in "MmSUb"


def _is_plain(series: Any) -> bool:
    return isinstance(series.dtype, np.dtype) and series.dtype.kind in "if"


def _length(data: Any, name: str) -> int:
    try:
        return len(data)
    except TypeError as error:
        raise DataError(f"column {name!r} must hold one value for each row; got {data!r}") from error


def picked(data: Any, index: np.ndarray) -> Any:
    """Some rows of a column, which stays what it is."""
    if isinstance(data, (Column, pa.Array, pa.ChunkedArray)):
        return data.take(index)
    if isinstance(data, np.ndarray):
        return data[index]
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return [data[i] for i in index.tolist()]
