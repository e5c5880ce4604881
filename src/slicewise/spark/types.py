"""Types: Spark's and Arrow's, each in terms of the other. Arrow's are what the engine knows."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as T

from slicewise.columns import Column
from slicewise.errors import DataError

__all__ = ["arrow_type", "holds_map", "is_readable", "reaches_python", "read", "spark_type"]

_SAME: tuple[tuple[T.DataType, pa.DataType], ...] = (
    (T.BooleanType(), pa.bool_()),
    (T.ByteType(), pa.int8()),
    (T.ShortType(), pa.int16()),
    (T.IntegerType(), pa.int32()),
    (T.LongType(), pa.int64()),
    (T.FloatType(), pa.float32()),
    (T.DoubleType(), pa.float64()),
    (T.StringType(), pa.string()),
    (T.BinaryType(), pa.binary()),
    (T.DateType(), pa.date32()),
    (T.TimestampType(), pa.timestamp("us", "UTC")),
    (T.TimestampNTZType(), pa.timestamp("us")),
    (T.DayTimeIntervalType(), pa.duration("us")),
    (T.NullType(), pa.null()),
)


def arrow_type(type_: T.DataType, column: str) -> pa.DataType:
    """The Arrow type of a column; ``column`` is its name, for the error.

    >>> arrow_type(T.StructType().add("a", T.LongType()), "s")
    StructType(struct<a: int64>)
    """
    for spark, arrow in _SAME:
        if type(type_) is type(spark):
            return arrow
    if isinstance(type_, T.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, (T.CharType, T.VarcharType)):
        return pa.string()
    if isinstance(type_, T.ArrayType):
        return pa.list_(arrow_type(type_.elementType, column))
    if isinstance(type_, T.StructType) and reaches_python(type_):
        return pa.struct([(f.name, arrow_type(f.dataType, column)) for f in type_.fields])
    if isinstance(type_, T.MapType):
        return pa.map_(arrow_type(type_.keyType, column), arrow_type(type_.valueType, column))
    raise DataError(f"column {column!r} is of type {type_.simpleString()}, which slicewise cannot read; cast it first")


def is_readable(type_: T.DataType) -> bool:
    """Whether slicewise can read values of this type.

    >>> is_readable(T.VariantType())
    False
    """
    try:
        arrow_type(type_, "")
    except DataError:
        return False
    return True


def reaches_python(type_: T.DataType) -> bool:
    """Whether values of this type come to Python: Arrow has no two fields of one name, PyArrow no intervals of months.

    >>> reaches_python(T.StructType().add("a", T.LongType()).add("a", T.LongType()))
    False
    """
    if isinstance(type_, T.YearMonthIntervalType):
        return False
    if isinstance(type_, T.StructType):
        return len(set(type_.names)) == len(type_.names) and all(reaches_python(f.dataType) for f in type_.fields)
    if isinstance(type_, T.ArrayType):
        return reaches_python(type_.elementType)
    if isinstance(type_, T.MapType):
        return reaches_python(type_.keyType) and reaches_python(type_.valueType)
    return True


def read(array: pa.Array, type_: pa.DataType) -> Column:
    """A column that came from Spark, with the type that it has in the plan."""
    # Spark gives timestamps the zone of the session, and marks items of nested types that are never null.
    received = Column.of(array)
    return Column(received.values, type_, received.valid)


def holds_map(type_: pa.DataType) -> bool:
    """Whether there is a map in values of this type, so that Spark cannot compare them.

    >>> holds_map(pa.list_(pa.map_(pa.string(), pa.int64())))
    True
    """
    if pa.types.is_map(type_):
        return True
    return any(holds_map(type_.field(i).type) for i in range(type_.num_fields))


def spark_type(type_: pa.DataType) -> T.DataType:
    """The Spark type of a result.

    >>> spark_type(pa.list_(pa.float64())).simpleString()
    'array<double>'
    """
    for spark, arrow in _SAME:
        if arrow == type_:
            return spark
    t = pa.types
    if t.is_decimal(type_):
        return T.DecimalType(type_.precision, type_.scale)
    if t.is_timestamp(type_):
        return T.TimestampType() if type_.tz else T.TimestampNTZType()
    if t.is_list(type_) or t.is_large_list(type_):
        return T.ArrayType(spark_type(type_.value_type))
    if t.is_struct(type_):
        return T.StructType([T.StructField(f.name, spark_type(f.type)) for f in type_])
    if t.is_map(type_):
        return T.MapType(spark_type(type_.key_type), spark_type(type_.item_type))
    if t.is_large_string(type_):
        return T.StringType()
    if t.is_large_binary(type_):
        return T.BinaryType()
    raise DataError(f"Spark has no type for {type_}; give the aggregate another `result`")
