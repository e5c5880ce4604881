"""Columns: one array, its nulls and its type. What rows look like to aggregates and to the engine.

A leaf between the outside (Arrow, NumPy, pandas, Python lists) and the arrays that the engine computes on. Inside there
are only four physical forms, so that an aggregate needs one piece of code for each and not one for each type:

=================================================  ==========================================================
Arrow type                                         ``values``
=================================================  ==========================================================
integers, booleans, dates, timestamps, durations   int64 (days for date32, microseconds for the rest of time)
floating point                                     float64
decimals                                           object: Python ints, unscaled, so that sums are exact
everything else (strings, binary, lists, structs)  object: Python values
=================================================  ==========================================================

A null is a False in ``valid``; ``values`` holds a filler there (0, 0.0, or None in object columns), which must not be
read. NaN is a value like any other, never a null.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.errors import DataError
from slicewise.records import record
from slicewise.value_kinds import MISSING, check_kinds, kind_of_class, kind_of_type

__all__ = [
    "NATIVE_TYPES",
    "TYPE_NAMES",
    "Column",
    "arrow_of",
    "beyond_python",
    "holds_dates",
    "is_integral",
    "physical_dtype",
    "to_python",
    "type_name",
]

#: Arrow types by their names in Spark.
TYPE_NAMES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

_OBJECTS = np.dtype(object)
_VALUES_OF = attrgetter("values")
_EPOCH = datetime.date(1970, 1, 1).toordinal()
#: NumPy arrays of these dtypes are columns as they are.
NATIVE_TYPES = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}


def type_name(type_: pa.DataType) -> str:
    """What Spark calls a type; Arrow's name for those that Spark does not have.

    >>> type_name(pa.int64()), type_name(pa.decimal128(10, 2)), type_name(pa.list_(pa.int32())), type_name(pa.uint8())
    ('bigint', 'decimal(10,2)', 'array<int>', 'uint8')
    """
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in type_)}>"
    return next((name for name, known in TYPE_NAMES.items() if known == type_), str(type_))


def is_integral(type_: pa.DataType) -> bool:
    """Whether values of this type are held as int64."""
    t = pa.types
    integral: bool = (
        t.is_integer(type_)
        or t.is_boolean(type_)
        or t.is_timestamp(type_)
        or t.is_date(type_)
        or t.is_duration(type_)
        or t.is_time(type_)
    )
    return integral


def physical_dtype(type_: pa.DataType) -> np.dtype:
    """The NumPy dtype of a column's ``values``."""
    if is_integral(type_):
        return np.dtype(np.int64)
    if pa.types.is_floating(type_):
        return np.dtype(np.float64)
    return np.dtype(object)


@record
class Column:
    """An array of one type, with nulls.

    Parameters
    ----------
    values
        The physical array, see the table above.
    type
        What the values are to the user, as an Arrow type.
    valid
        False where a value is null; None when nothing is.

    Examples
    --------
    >>> c = Column.of([3, None, 5])
    >>> c.values, c.valid, c.type
    (array([3, 0, 5]), array([ True, False,  True]), DataType(int64))
    >>> c.to_arrow().to_pylist()
    [3, None, 5]
    """

    values: np.ndarray
    type: pa.DataType
    valid: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes in arrays; Python objects are counted as pointers."""
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)

    def take(self, index: np.ndarray | slice) -> Column:
        """The rows at ``index``: integers, a boolean mask or a slice."""
        return Column(self.values[index], self.type, None if self.valid is None else self.valid[index])

    def to_data(self) -> tuple[np.ndarray, bytes, np.ndarray]:
        """The column as plain data."""
        return self.values, types_to_data({"": self.type}), self.mask

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> Column:
        """The column from what :meth:`to_data` gave."""
        values, type_, valid = data
        return cls(values, types_from_data(type_)[""], None if valid.all() else valid)

    @property
    def mask(self) -> np.ndarray:
        """``valid`` as an array, also when nothing is null."""
        return np.ones(len(self), bool) if self.valid is None else self.valid

    @classmethod
    def concat(cls, columns: Sequence[Column]) -> Column:
        """Columns of one type, end to end."""
        if len(columns) == 1:
            return columns[0]
        kind = type(columns[0])
        if kind is not cls and all(type(column) is kind for column in columns):
            return kind.concat(columns)
        valid = None
        for column in columns:
            if column.valid is not None:
                valid = np.concatenate([c.mask for c in columns])
                break
        return cls(np.concatenate([*map(_VALUES_OF, columns)]), columns[0].type, valid)

    @classmethod
    def of(cls, data: Any, type: pa.DataType | None = None) -> Column:
        """A column from whatever the user has: NumPy, Arrow, pandas, a list.

        NumPy arrays of int64 and float64 are taken as they are, without a copy. A NaN stays a NaN; None, NaT and
        ``pd.NA`` are nulls.
        """
        if isinstance(data, Column):
            return data
        if isinstance(data, np.ndarray):
            if data.ndim != 1:
                raise DataError(f"a column must have one dimension; got an array of shape {data.shape}")
            # A masked array hides its nulls from everything but Arrow.
            native = None if isinstance(data, np.ma.MaskedArray) else NATIVE_TYPES.get(data.dtype)
            if native is not None and (type is None or type == native):
                return cls(data, native)
        if isinstance(data, (pa.Array, pa.ChunkedArray)):
            array = data if type is None or data.type == type else data.cast(type)
        else:
            array = arrow_of(data, type)
        return cls._of_arrow(array)

    @classmethod
    def _of_arrow(cls, array: pa.Array | pa.ChunkedArray) -> Column:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
            if isinstance(array, pa.ChunkedArray):  # combine_chunks of no chunks at all
                array = pa.array([], array.type)
        type_ = array.type
        if pa.types.is_dictionary(type_):
            return cls._of_arrow(array.dictionary_decode())
        if pa.types.is_unsigned_integer(type_) and type_.bit_width == 64:
            raise DataError("unsigned 64-bit integers have no counterpart in Spark; cast the column to int64 first")
        if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_time(type_):
            array, type_ = _as_microseconds(array)
        valid = None if array.null_count == 0 else _to_numpy(array.is_valid())
        return cls(_physical(array, type_), type_, valid)

    def to_arrow(self) -> pa.Array:
        """The column as an Arrow array of its type."""
        mask = None if self.valid is None else ~self.valid
        if pa.types.is_decimal(self.type):
            scale = self.type.scale
            unscaled = self.values.tolist()
            keep = self.mask.tolist()
            with decimal.localcontext(decimal.Context(prec=100)):
                items = [
                    decimal.Decimal(v).scaleb(-scale) if ok else None for v, ok in zip(unscaled, keep, strict=True)
                ]
            return pa.array(items, type=self.type)
        if self.values.dtype == object:
            items = self.values.tolist()
            if mask is not None:
                items = [None if gone else v for v, gone in zip(items, mask.tolist(), strict=True)]
            if pa.types.is_null(self.type):
                return pa.array(items)
            return _of_objects(items, self.type)
        if pa.types.is_date32(self.type):
            return pa.array(self.values.astype(np.int32), mask=mask).cast(self.type)
        if pa.types.is_boolean(self.type):
            return pa.array(self.values.astype(bool), mask=mask)
        if self.values.dtype == np.int64 and not pa.types.is_integer(self.type):
            return pa.array(self.values, mask=mask).cast(self.type)
        return pa.array(self.values, type=pa.from_numpy_dtype(self.values.dtype), mask=mask).cast(self.type, safe=False)

    def to_objects(self) -> np.ndarray:
        """The values as an object array of Python values, None where null."""
        out = np.empty(len(self.values), object)
        out[:] = self.to_pylist()
        return out

    def to_pylist(self) -> list[Any]:
        """The values as Python values, None where null."""
        as_objects = self.values.dtype == object and not pa.types.is_decimal(self.type)
        values: list[Any] = self.values.tolist() if as_objects else self.to_arrow().to_pylist()
        rows = zip(values, self.mask.tolist(), strict=True) if self.valid is not None and as_objects else None
        return values if rows is None else [v if ok else None for v, ok in rows]


def _of_objects(items: list[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(items, type=type_)
    except pa.ArrowInvalid as error:
        # Arrow finds durations too large within a day of the least that 64 bits hold, and takes integers.
        if "Timedelta" not in str(error):
            raise
        try:
            return pa.array(_in_microseconds(items), type=type_)
        except OverflowError:
            raise error from None


def _in_microseconds(value: Any) -> Any:
    """Durations as integers, wherever they are inside of a value."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if isinstance(value, dict):
        return {name: _in_microseconds(v) for name, v in value.items()}
    return [_in_microseconds(v) for v in value] if isinstance(value, (list, tuple)) else value


def holds_dates(type_: pa.DataType) -> bool:
    """Whether values of this type are timestamps or dates, or hold some.

    >>> holds_dates(pa.list_(pa.date32())), holds_dates(pa.list_(pa.int64()))
    (True, False)
    """
    if pa.types.is_nested(type_):
        return any(holds_dates(type_.field(i).type) for i in range(type_.num_fields))
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


def beyond_python(column: Column) -> np.ndarray:
    """The places of timestamps and dates for which Python has no object: its years are 1 to 9999.

    >>> beyond_python(Column.of(pa.array([0, 10**18, None], pa.timestamp("us"))))
    array([1])
    """
    if pa.types.is_timestamp(column.type):
        ticks = 86_400_000_000
    elif pa.types.is_date(column.type):
        ticks = 86_400_000 if pa.types.is_date64(column.type) else 1
    else:
        return np.empty(0, np.int64)
    first, last = (limit.toordinal() - _EPOCH for limit in (datetime.date.min, datetime.date.max))
    day = column.values // ticks
    return np.flatnonzero(((day < first) | (day > last)) & column.mask)


def to_python(array: pa.Array, what: str) -> list[Any]:
    """The values as Python values; ``what`` names them where Python has no object for one of them.

    >>> to_python(pa.array([0, 253_402_300_800], pa.timestamp("s")), "key 'day'")
    Traceback (most recent call last):
    slicewise.errors.DataError: key 'day' has 10000-01-01 00:00:00, and Python's dates end with the year 9999
    """
    try:
        values: list[Any] = array.to_pylist()
    except (OverflowError, ValueError):
        raise DataError(f"{what} has {_first_beyond(array)}, and Python's dates end with the year 9999") from None
    return values


def _first_beyond(array: pa.Array) -> str:
    """The text of the first value for which Python has no object."""
    for scalar in array:
        try:
            scalar.as_py()
        except (OverflowError, ValueError):
            nested = pa.types.is_nested(array.type)
            return f"a date in a value of {array.type}" if nested else str(scalar.cast(pa.string()).as_py())
    raise AssertionError("all of them can be shown")


def arrow_of(data: Any, type_: pa.DataType | None = None) -> pa.Array:
    """An Arrow array from a list, a NumPy array or a pandas column, of the given type where there is one.

    >>> arrow_of([1, 2.5], pa.int64())
    Traceback (most recent call last):
    pyarrow.lib.ArrowInvalid: Float value 2.5... was truncated converting to int64
    >>> arrow_of([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 15)])
    Traceback (most recent call last):
    slicewise.errors.DataError: dates and times without a time zone cannot be mixed; got datetime.datetime(2024, 1, 1, \
15, 0) in row 1; convert one of them
    """
    # pandas marks nulls by NaN in float columns: Arrow must not read them so, since NaN is a value here. Among Python
    # objects (texts) it can be nothing but a null.
    texts = hasattr(data, "iloc") and data.dtype == object
    if getattr(data, "dtype", _OBJECTS) != _OBJECTS:
        return _of_values(data, type_, texts)
    values = data if isinstance(data, list) else list(data)
    classes = set(map(type, values))
    if not MISSING.isdisjoint(cls.__name__ for cls in classes):
        values = [None if type(v).__name__ in MISSING else v for v in values]
    array = _of_values(values, type_, texts)
    kind = kind_of_type(array.type)
    if kind is None or any(kind_of_class(cls) not in (None, kind) for cls in classes):
        check_kinds(values, array.type)
    return array


def _of_values(data: Any, type_: pa.DataType | None, texts: bool) -> pa.Array:
    if type_ is not None and pa.types.is_integer(type_) and not isinstance(data, np.ndarray):
        # Asked for integers, Arrow silently cuts the fractions of Python numbers off; its cast refuses them.
        array = pa.array(data, from_pandas=texts)
        if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
            return array.cast(type_)
    return pa.array(data, type=type_, from_pandas=texts)


def _as_microseconds(array: pa.Array) -> tuple[pa.Array, pa.DataType]:
    t = array.type
    if pa.types.is_timestamp(t):
        target: pa.DataType = pa.timestamp("us", t.tz)
    elif pa.types.is_duration(t):
        target = pa.duration("us")
    else:
        target = pa.time64("us")
    # Nanoseconds are cut off, as in Spark, whose timestamps hold microseconds. Floored, not truncated towards zero, so
    # that an instant before 1970 does not move into the next microsecond.
    if getattr(t, "unit", "us") == "ns":
        nanos = array.cast(pa.int64())
        return _floor_div(nanos, 1000).cast(target), target
    return array.cast(target), target


def _floor_div(array: pa.Array, by: int) -> pa.Array:
    mask = None if array.null_count == 0 else _to_numpy(array.is_null())
    return pa.array(_to_numpy(array.fill_null(0)) // by, mask=mask)


def _to_numpy(array: pa.Array) -> np.ndarray:
    values: np.ndarray = array.to_numpy(zero_copy_only=False)
    return values


def _physical(array: pa.Array, type_: pa.DataType) -> np.ndarray:
    if pa.types.is_decimal(type_):
        scale = type_.scale
        out = np.empty(len(array), object)
        with decimal.localcontext(decimal.Context(prec=100)):
            out[:] = [0 if v is None else int(v.scaleb(scale)) for v in array.to_pylist()]
        return out
    if is_integral(type_):
        if pa.types.is_date32(type_):
            array = array.cast(pa.int32())
        elif pa.types.is_date64(type_):
            array = array.cast(pa.int64())
        if array.null_count:
            array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
        if pa.types.is_boolean(array.type):
            return _to_numpy(array).astype(np.int64)
        return _to_numpy(array.cast(pa.int64()))
    if pa.types.is_floating(type_):
        if array.null_count:
            array = array.fill_null(0.0)
        return _to_numpy(array).astype(np.float64, copy=False)
    out = np.empty(len(array), object)
    out[:] = array.to_pylist()
    return out


def types_to_data(types: Mapping[str, pa.DataType]) -> bytes:
    """Types by name as plain data."""
    data: bytes = pa.schema(list(types.items())).serialize().to_pybytes()
    return data


def types_from_data(data: bytes) -> dict[str, pa.DataType]:
    """Types by name from what :func:`types_to_data` gave."""
    return {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(data))}


def column_of_objects(values: list[Any], type_: pa.DataType) -> Column:
    """A column of results that are Python values, None where null."""
    if not pa.types.is_null(type_) and not pa.types.is_nested(type_):
        return Column.of(values, type_)
    out = np.empty(len(values), object)
    for i, value in enumerate(values):  # one by one: NumPy would look into values that are sequences themselves
        out[i] = value
    valid = np.array([v is not None for v in values], bool)
    return Column(out, type_, None if valid.all() else valid)
