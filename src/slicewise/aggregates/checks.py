"""Checks and small steps that aggregates share: arguments, types, nulls, segments of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.columns import Column, is_integral
from slicewise.errors import AggregateError

__all__ = [
    "OneColumn",
    "as_float64",
    "check_column",
    "check_k",
    "from_first",
    "is_orderable",
    "need_booleans",
    "need_integers",
    "need_numbers",
    "need_orderable",
    "need_types",
    "present",
]


class OneColumn(Aggregate):
    """An aggregate of one column; without one, it runs over single values."""

    def __init__(self, column: str | None = None) -> None:
        super().__init__(*check_column(self.name, "column", column))


def check_column(name: str, parameter: str, column: Any) -> tuple[str, ...]:
    """The column as a tuple, empty when there is none."""
    if column is None:
        return ()
    if not isinstance(column, str):
        raise AggregateError(
            f"`{parameter}` of `{name}` must be the name of a column; got {column!r}: pass its name as a string"
        )
    return (column,)


def check_k(name: str, k: Any, *, missing: bool = False) -> int:
    """How many values are wanted, a positive integer."""
    if missing or isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        got = "nothing" if missing else repr(k)
        raise AggregateError(f"`k` of `{name}` must be a whole number from 1 on; got {got}: 10 keeps the ten best")
    return int(k)


def need_types(aggregate: Aggregate, types: tuple[pa.DataType, ...], n: int) -> None:
    """Refuse to bind an aggregate of ``n`` columns to another number of types."""
    if len(types) != n:
        raise AggregateError(
            f"`{aggregate.name}` works on {n} column{'' if n == 1 else 's'}; got {len(types)} types: "
            "name its columns when you create it"
        )


def _subject(aggregate: Aggregate, position: int) -> str:
    named = position < len(aggregate.columns)
    return f"`{aggregate.name}` of column {aggregate.columns[position]!r}" if named else f"`{aggregate.name}`"


def need_numbers(aggregate: Aggregate, type_: pa.DataType, position: int = 0, *, durations: bool = False) -> None:
    """Refuse types other than integers, floats and decimals, also those held as numbers, such as booleans and dates."""
    t = pa.types
    if t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_) or (durations and t.is_duration(type_)):
        return
    raise AggregateError(
        f"{_subject(aggregate, position)} needs numbers; got {type_}: cast the column to a numeric type first"
    )


def need_booleans(aggregate: Aggregate, type_: pa.DataType) -> None:
    """Refuse types other than booleans."""
    if not pa.types.is_boolean(type_):
        raise AggregateError(
            f"{_subject(aggregate, 0)} needs booleans; got {type_}: compare the column with something first"
        )


def need_integers(aggregate: Aggregate, type_: pa.DataType) -> None:
    """Refuse types other than integers."""
    if not pa.types.is_integer(type_):
        raise AggregateError(f"{_subject(aggregate, 0)} needs integers; got {type_}: cast the column to one first")


def is_orderable(type_: pa.DataType) -> bool:
    """Whether values of this type have an order: all but lists, structs and maps."""
    t = pa.types
    return (
        is_integral(type_)
        or t.is_floating(type_)
        or t.is_decimal(type_)
        or t.is_null(type_)
        or t.is_string(type_)
        or t.is_large_string(type_)
        or t.is_string_view(type_)
        or t.is_binary(type_)
        or t.is_large_binary(type_)
        or t.is_fixed_size_binary(type_)
    )


def need_orderable(aggregate: Aggregate, type_: pa.DataType, position: int = 0) -> None:
    """Refuse types whose values have no order."""
    if not is_orderable(type_):
        raise AggregateError(
            f"{_subject(aggregate, position)} needs values that can be ordered; got {type_}: "
            "take a field or an element of it as a column of its own first"
        )


def as_float64(column: Column) -> np.ndarray:
    """Numbers as doubles, 0.0 where null."""
    if column.values.dtype != object:
        values = column.values.astype(np.float64, copy=False)
        return values if column.valid is None else np.where(column.valid, values, 0.0)
    out = np.zeros(len(column), np.float64)
    unit = 10**column.type.scale
    # Python divides integers with one rounding only, as Spark's Decimal.toDouble.
    out[column.mask] = [v / unit for v in column.values[column.mask].tolist()]
    return out


def present(counts: np.ndarray) -> np.ndarray | None:
    """``valid`` of results: null where nothing was counted."""
    return None if not len(counts) or np.minimum.reduce(counts) > 0 else counts > 0


def from_first(starts: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same segments without what is before the first: ``(starts, *arrays)``."""
    if not len(starts) or starts[0] == 0:
        return (starts, *arrays)
    return (starts - starts[0], *(a[starts[0] :] for a in arrays))
