"""Totals: sums and averages as the JVM computes them, per slice and per whole window.

Only the total of a window may be too large for its type, never that of a slice or of some rows on the way: large
numbers are cut into halves that are summed apart. Spark's own sums wrap around, turn null or fail when they overflow,
depending on ``spark.sql.ansi.enabled``; here only expressions are used that mean the same either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates import exact
from slicewise.aggregates.arithmetic import overflow_text
from slicewise.aggregates.base import Aggregate, Monoid, Parts
from slicewise.errors import OverflowInWindowError
from slicewise.plan.condition_sql import text_literal
from slicewise.spark.slice_columns import Columns, Label, Reader, SliceColumns, count_of, values_of
from slicewise.spark.source import Source
from slicewise.spark.types import spark_type

__all__ = ["WholeWindow", "totals", "totals_of", "whole_avg", "whole_sum"]

#: Decimals of so many digits have ten to spare in their sum; longer ones are cut before so many of their last digits.
SPARE_DIGITS, LOW_DIGITS = 28, 20
LOWER_HALF = 0xFFFFFFFF


# Per slice


def totals(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """Add the total and the count of a column to the slice columns; the reader makes the parts of the aggregate."""
    name = monoid.aggregate.columns[0]
    n = count_of(name, source, slice_columns)
    return totals_of((name,), source.internal(name), n, monoid.types[0], slice_columns)


def totals_of(label: Label, value: Expression, n: str, type_: pa.DataType, slice_columns: SliceColumns) -> Reader:
    """Add the total of some values, which ``label`` tells from others, beside their count, which is there as ``n``."""
    name = label[0]
    if pa.types.is_floating(type_):
        return partial(_read_floats, slice_columns.column(("sum", *label), F.sum(value)), n)
    if pa.types.is_decimal(type_) and type_.precision > SPARE_DIGITS:
        cut = F.lit(Decimal(f"{Decimal(1).scaleb(LOW_DIGITS - type_.scale):f}"))
        upper = F.call_function("div", value, cut).cast(f"decimal({38 - LOW_DIGITS}, 0)")
        high = slice_columns.column(("high", *label), F.try_sum(upper))
        low = slice_columns.column(("low", *label), F.try_sum(value % cut))
        return partial(_read_digits, name, high, low, n)
    if pa.types.is_int64(type_) or pa.types.is_duration(type_):
        upper, lower = _halves(_microseconds(value) if pa.types.is_duration(type_) else value)
        high = slice_columns.column(("high", *label), F.try_sum(upper))
        low = slice_columns.column(("low", *label), F.try_sum(lower))
        return partial(_read_halves, name, high, low, n)
    return partial(_read_total, name, slice_columns.column(("sum", *label), F.try_sum(value)), n)


def _halves(value: Expression) -> tuple[Expression, Expression]:
    """The upper and the lower 32 bits of 64-bit integers."""
    return F.shiftright(value, 32), value.bitwiseAND(F.lit(LOWER_HALF))


def _microseconds(duration: Expression) -> Expression:
    """A day-time interval of whatever fields as a 64-bit integer."""
    whole = duration.cast("interval day to second")
    day, hour, minute, second = (F.extract(F.lit(field), whole) for field in ("DAY", "HOUR", "MINUTE", "SECOND"))
    minutes = (day.cast("long") * 24 + hour) * 60 + minute
    return minutes * 60_000_000 + (second * 1_000_000).cast("long")


def _read_floats(total: str, n: str, columns: Columns) -> Parts:
    return values_of(columns, total).values, values_of(columns, n).values


def _read_total(name: str, total: str, n: str, columns: Columns) -> Parts:
    return _summed(name, total, n, columns), values_of(columns, n).values


def _read_halves(name: str, high: str, low: str, n: str, columns: Columns) -> Parts:
    upper, lower = (_summed(name, half, n, columns) for half in (high, low))
    return exact.joined(upper, lower), values_of(columns, n).values


def _read_digits(name: str, high: str, low: str, n: str, columns: Columns) -> Parts:
    upper, lower = (_summed(name, half, n, columns) for half in (high, low))
    return upper * 10**LOW_DIGITS + lower, values_of(columns, n).values


def _summed(name: str, total: str, n: str, columns: Columns) -> np.ndarray:
    """The totals of slices; an error where even halves did not fit, which takes thousands of millions of rows."""
    sums, counts = values_of(columns, total), values_of(columns, n).values
    lost = np.flatnonzero(~sums.mask & (counts > 0))
    if len(lost):
        raise OverflowInWindowError("".join(_limit_message(name, str(counts[lost[0]]))))
    return sums.values


def _limit_message(name: str, rows: str) -> tuple[str, str, str]:
    limit = "are more than can be summed exactly; add a query with shorter windows, so that slices are shorter"
    return f"column {name!r} has ", rows, f" values in one slice, which {limit}"


# Per window


class WholeWindow(NamedTuple):
    """What an aggregate gives over a whole window, in SQL: each function that is called takes the JVM some round trips.

    Attributes
    ----------
    aggregated
        Columns that Spark aggregates, in SQL or as an expression.
    value
        The value, from these columns.
    """

    aggregated: Mapping[str, str | Expression]
    value: str


def whole_sum(aggregate: Aggregate, source: Source, name: str, label: str) -> WholeWindow | None:
    """The sum over a whole window, which ``label`` names for errors; None where slices must be composed for it."""
    (column,) = aggregate.columns
    value, type_ = source.internal_sql(column), source.types[column]
    if pa.types.is_floating(type_):
        return WholeWindow({name: f"sum({value})"}, name)
    count = {f"{name}_count": f"count({value})"}
    if pa.types.is_int64(type_):
        halves, carried, rest = _carried(name, value)
        fits = f"{carried} BETWEEN {-(2**31)} AND {2**31 - 1}"
        before, after = map(text_literal, overflow_text(aggregate, "a 64-bit integer"))
        large = f"CAST(CAST(CAST({carried} AS DECIMAL(20, 0)) * {2**32} + {rest} AS DECIMAL(38, 0)) AS STRING)"
        error = f"CAST(raise_error(concat({label}, ': ', {before}, {large}, {after})) AS BIGINT)"
        exact_sum = f"CASE WHEN {fits} THEN shiftleft({carried}, 32) | {rest} WHEN NOT ({fits}) THEN {error} END"
        return WholeWindow(halves | count, f"coalesce({exact_sum}, {_refused(column, name, pa.int64(), label)})")
    if pa.types.is_duration(type_) or (pa.types.is_decimal(type_) and type_.precision > SPARE_DIGITS):
        return None
    result = aggregate.result_type(type_)
    assert result is not None
    return WholeWindow(
        {name: f"try_sum({value})"} | count, f"coalesce({name}, {_refused(column, name, result, label)})"
    )


def whole_avg(aggregate: Aggregate, source: Source, name: str, label: str) -> WholeWindow | None:
    """The average over a whole window, which ``label`` names for errors; None where slices must be composed for it."""
    (column,) = aggregate.columns
    value, type_ = source.internal_sql(column), source.types[column]
    if pa.types.is_floating(type_):
        return WholeWindow({name: f"avg({value})"}, name)
    if pa.types.is_duration(type_) or (pa.types.is_decimal(type_) and type_.precision > SPARE_DIGITS):
        return None
    count = {f"{name}_count": f"count({value})"}
    if pa.types.is_decimal(type_):
        result = aggregate.result_type(type_)
        assert result is not None
        refused = _refused(column, name, result, label)
        return WholeWindow({name: f"try_avg({value})"} | count, f"coalesce({name}, {refused})")
    # Summed exactly and divided once: Spark's own adds up doubles, and large integers lose digits on the way.
    if pa.types.is_int64(type_):
        sums, carried, rest = _carried(name, value)
        total = f"CAST({carried} AS DOUBLE) * {2**32}D + {rest}"
    else:
        sums, total = {name: f"try_sum({value})"}, f"CAST({name} AS DOUBLE)"
    refused = _refused(column, name, pa.float64(), label)
    return WholeWindow(sums | count, f"coalesce(try_divide({total}, {name}_count), {refused})")


def _carried(name: str, value: str) -> tuple[dict[str, str], str, str]:
    """The sums of the halves of 64-bit integers, and their sum as ``carried * 2**32 + rest`` from these.

    Null where there is none, or more than halves hold.
    """
    high, low = f"{name}_high", f"{name}_low"
    halves = {high: f"try_sum(shiftright({value}, 32))", low: f"try_sum({value} & {LOWER_HALF})"}
    return halves, f"({high} + shiftright({low}, 32))", f"({low} & {LOWER_HALF})"


def _refused(column: str, name: str, type_: pa.DataType, label: str) -> str:
    """Null where there are no values; where there are, the error that they are too many."""
    before, rows, after = _limit_message(column, f"CAST({name}_count AS STRING)")
    message = f"concat({label}, ': ', {text_literal(before)}, {rows}, {text_literal(after)})"
    return f"CASE WHEN {name}_count > 0 THEN CAST(raise_error({message}) AS {spark_type(type_).simpleString()}) END"
