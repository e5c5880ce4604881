"""Partials: aggregates as expressions that the JVM computes per slice, and how Arrow brings them back as parts.

For each aggregate two things stand side by side: what Spark computes for a slice, and how those columns become the
parts of the engine's monoid. Expressions that several aggregates need (the count of a column, its maximum) are computed
and sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates import exact
from slicewise.aggregates.arithmetic import Avg, Count, Sum, TryAvg, TrySum
from slicewise.aggregates.base import Aggregate, Monoid, ObjectMonoid, Parts
from slicewise.aggregates.bests import Largest, Smallest
from slicewise.aggregates.bits import BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf
from slicewise.aggregates.comoments import Corr, CovarPop, CovarSamp
from slicewise.aggregates.distinct import CountDistinct, SumDistinct
from slicewise.aggregates.distinct_sketches import ApproxCountDistinct, HllSketchAgg, ThetaSketchAgg
from slicewise.aggregates.filtered import Filtered, FilteredMonoid
from slicewise.aggregates.frequencies import Histogram, Mode, MostFrequent
from slicewise.aggregates.frequent_items import ApproxMostFrequent
from slicewise.aggregates.higher_moments import Kurtosis, Skewness
from slicewise.aggregates.moments import GeometricMean, Product, StdDev, StdDevPop, Variance, VarPop
from slicewise.aggregates.order import DecimalRange, Max, MaxCount, Min, MinCount, Range
from slicewise.aggregates.percentiles import Median, Percentile
from slicewise.aggregates.picks import AnyValue, First, Last, MaxBy, MinBy
from slicewise.aggregates.quantile_sketches import ApproxPercentile, KllSketchAggDouble
from slicewise.aggregates.regression import (
    RegrAvgX,
    RegrAvgY,
    RegrCount,
    RegrIntercept,
    RegrR2,
    RegrSlope,
    RegrSXX,
    RegrSXY,
    RegrSYY,
)
from slicewise.aggregates.sharing import SharedMonoid, shared_parts
from slicewise.aggregates.visual import M4, Ohlc, OhlcMonoid
from slicewise.aggregates.weighted import WeightedAvg
from slicewise.columns import Column
from slicewise.spark.computed_columns import FilteredSource
from slicewise.spark.histogram_partials import best_values, sketches, values
from slicewise.spark.moment_partials import (
    comoments,
    higher_moments,
    moments,
    pair_counts,
    pair_means,
    weighted_totals,
)
from slicewise.spark.row_order import comparable, tie_breakers
from slicewise.spark.slice_columns import Columns, Label, Reader, SliceColumns, count_of, values_of
from slicewise.spark.source import TIME, Source
from slicewise.spark.totals import WholeWindow, totals, whole_avg, whole_sum
from slicewise.spark.types import holds_map

__all__ = ["PARTIALS", "counting", "partials_of", "whole_window"]

#: ``F.min`` or ``F.max``.
_Function = Callable[[Expression], Expression]


def partials_of(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """Add what the JVM must compute for an aggregate to the slice columns; the reader turns it into parts."""
    if isinstance(monoid, SharedMonoid):
        return partial(_read_shared, monoid.places, [partials_of(m, source, slice_columns) for m in monoid.members])
    if isinstance(monoid, FilteredMonoid):
        source, slice_columns = counting(monoid, source, slice_columns)
        monoid = monoid.inner
    return PARTIALS[type(monoid.aggregate)](monoid, source, slice_columns)


def counting(
    monoid: FilteredMonoid, source: Source, slice_columns: SliceColumns
) -> tuple[FilteredSource, SliceColumns]:
    """What an aggregate that counts some rows only is computed from."""
    condition = monoid.condition
    return FilteredSource(source, condition), slice_columns.of_some(condition)


def whole_window(aggregate: Aggregate, source: Source, name: str, label: str) -> WholeWindow | None:
    """What the JVM computes for a whole window, where that is all there is to do; else None.

    The names of its columns begin with ``name``, and ``label`` names the window with its query and key, for errors.
    """
    if isinstance(aggregate, Filtered):
        source, aggregate = FilteredSource(source, aggregate.condition), aggregate.counted
    function = _WHOLE.get(type(aggregate))
    return None if function is None else function(aggregate, source, name, label)


def _by_spark(function: str) -> Callable[[Aggregate, Source, str, str], WholeWindow]:
    """Spark's own function of the aggregate's column, or of its rows where it has none."""

    def compute(aggregate: Aggregate, source: Source, name: str, label: str) -> WholeWindow:
        counted = source.internal_sql(aggregate.columns[0]) if aggregate.columns else source.selected_sql("1")
        return WholeWindow({name: f"{function}({counted})"}, name)

    return compute


def _product(aggregate: Aggregate, source: Source, name: str, label: str) -> WholeWindow:
    """The product, which has no name in SQL."""
    return WholeWindow({name: F.product(source.internal(aggregate.columns[0]))}, name)


_WHOLE: dict[type[Aggregate], Callable[[Aggregate, Source, str, str], WholeWindow | None]] = {
    Count: _by_spark("count"),
    Sum: whole_sum,
    Avg: whole_avg,
    Min: _by_spark("min"),
    Max: _by_spark("max"),
    Product: _product,
    StdDev: _by_spark("stddev"),
    StdDevPop: _by_spark("stddev_pop"),
    Variance: _by_spark("variance"),
    VarPop: _by_spark("var_pop"),
    CountIf: _by_spark("count_if"),
    BoolAnd: _by_spark("bool_and"),
    BoolOr: _by_spark("bool_or"),
    BitAnd: _by_spark("bit_and"),
    BitOr: _by_spark("bit_or"),
    BitXor: _by_spark("bit_xor"),
}


# What the JVM computes


def _counts(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    columns = monoid.aggregate.columns
    return partial(_read_numbers, [count_of(columns[0] if columns else None, source, slice_columns)])


def _products(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name = monoid.aggregate.columns[0]
    value = source.internal(name).cast("double")
    names = [
        slice_columns.column(("product", name), F.product(F.when(value != 0, value))),
        _zeros(name, value, slice_columns),
        count_of(name, source, slice_columns),
    ]
    return partial(_read_products, names)


def _logarithms(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name = monoid.aggregate.columns[0]
    value = source.internal(name).cast("double")
    names = [
        slice_columns.column(("logarithms", name), F.sum(F.when(value > 0, F.ln(value)))),
        count_of(name, source, slice_columns),
        _zeros(name, value, slice_columns),
        slice_columns.column(("negatives", name), F.count_if(value < 0)),
    ]
    return partial(_read_numbers, names)


def _zeros(name: str, value: Expression, slice_columns: SliceColumns) -> str:
    return slice_columns.column(("zeros", name), F.count_if(value == 0))


def _truths(met: Callable[[Expression], Expression], monoid: Monoid, source: Source, columns: SliceColumns) -> Reader:
    """How many values there are, and how many of them decide."""
    name = monoid.aggregate.columns[0]
    decisive = columns.column((monoid.aggregate.name, name), F.count_if(met(source.internal(name))))
    return partial(_read_numbers, [count_of(name, source, columns), decisive])


def _met(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name = monoid.aggregate.columns[0]
    return partial(_read_numbers, [slice_columns.column(("count_if", name), F.count_if(source.internal(name)))])


def _bits(function: _Function, monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name = monoid.aggregate.columns[0]
    bits = slice_columns.column((function.__name__, name), function(source.internal(name)))
    return partial(_read_filled, [bits, count_of(name, source, slice_columns)], monoid.identity)


def _extreme(function: _Function, monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    extreme = _extreme_of(function, monoid.aggregate.columns[0], source, slice_columns)
    if isinstance(monoid, ObjectMonoid):
        return partial(_read_objects, extreme, monoid.types[0])
    return partial(_read_extreme, extreme, monoid.types[0], monoid.identity[0])


def _extreme_of(function: _Function, name: str, source: Source, slice_columns: SliceColumns) -> str:
    return slice_columns.column((function.__name__, name), function(source.internal(name)))


def _range(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    low, high = (_extreme_of(function, name, source, slice_columns) for function in (F.min, F.max))
    if isinstance(monoid, DecimalRange):
        return partial(_read_both, low, high, type_)
    return partial(_read_range, low, high, type_, monoid.identity)


def _extreme_count(function: _Function, monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name = monoid.aggregate.columns[0]
    top = _extreme_of(function, name, source, slice_columns)
    every = slice_columns.column(("list", name), F.collect_list(source.internal(name)))
    slice_columns.hidden.add(every)
    held = F.size(F.filter(F.col(every), lambda x: x.eqNullSafe(F.col(top)))).cast("long")
    count = slice_columns.derived((f"{function.__name__} count", name), held)
    if isinstance(monoid, ObjectMonoid):
        return partial(_read_pairs, top, count, monoid.types[0], (None, 0))
    return partial(_read_extreme_count, top, count, monoid.types[0], monoid.identity[0])


def _position(monoid: Monoid, source: Source, slice_columns: SliceColumns, *, last: bool) -> Reader:
    name, ignored = monoid.aggregate.columns[0], getattr(monoid.aggregate, "ignorenulls", False)
    row = _in_order(source, name)
    row = F.when(source.internal(name).isNotNull(), row) if ignored else row
    label = ("last" if last else "first", name, *(["not null"] if ignored else []))
    time, value = _fields(slice_columns, label, _outermost(row, monoid.types[0], last=last), ["t", "v"])
    return partial(_read_position, time, value, monoid.types[0], monoid.identity[0])


def _by(monoid: Monoid, source: Source, slice_columns: SliceColumns, *, largest: bool) -> Reader:
    name, by = monoid.aggregate.columns
    value, measured = _plain(source, name), source.internal(by)
    place = [
        *(_reversed(measured, monoid.types[1]) if largest else [measured]),
        F.col(TIME).alias("t"),
        *_order(source),
    ]
    row = F.when(measured.isNotNull(), F.struct(*place, value.alias("v"), measured.alias("by")))
    picked = _outermost(row, monoid.types[0], last=False)
    extreme, time, value_at = _fields(
        slice_columns, ("max by" if largest else "min by", name, by), picked, ["by", "t", "v"]
    )
    return partial(_read_peak, extreme, time, value_at, monoid.types[1], monoid.types[0])


def _candle(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    row = F.when(source.internal(name).isNotNull(), _in_order(source, name))
    first, last = (
        _fields(slice_columns, (which, name), function(row), ["t", "v"])
        for which, function in (("m4 first", F.min), ("m4 last", F.max))
    )
    assert isinstance(monoid, OhlcMonoid)
    high, low = (
        _extreme(function, member, source, slice_columns)
        for function, member in zip((F.max, F.min), monoid.members[1:3], strict=True)
    )
    return lambda columns: (
        *_read_position(first[0], first[1], type_, exact.INT64_MAX, columns),
        *high(columns),
        *low(columns),
        *_read_position(last[0], last[1], type_, exact.INT64_MIN, columns),
    )


def _m4(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    value, t = source.internal(name), F.col(TIME)
    row = F.when(value.isNotNull(), _in_order(source, name))
    first = _fields(slice_columns, ("m4 first", name), F.min(row), ["t", "v"])
    last = _fields(slice_columns, ("m4 last", name), F.max(row), ["t", "v"])
    low = F.min(F.when(value.isNotNull(), F.struct(value.alias("by"), t.alias("t"))))
    # The largest value at the earliest time: bitwise not turns the order of times around.
    high = F.max(F.when(value.isNotNull(), F.struct(value.alias("by"), F.bitwise_not(t).alias("t"))))
    lows, highs = (_fields(slice_columns, (f"m4 {k}", name), e, ["by", "t"]) for k, e in (("min", low), ("max", high)))
    return partial(_read_m4, first, last, lows, highs, type_)


def _in_order(source: Source, name: str) -> Expression:
    """A row as its place in the order of rows: time, where there are order columns what breaks ties, then the value."""
    return source.selected(F.struct(F.col(TIME).alias("t"), *_order(source), _plain(source, name).alias("v")))


def _order(source: Source) -> list[Expression]:
    return tie_breakers(source) if source.workload.order else []


def _plain(source: Source, name: str) -> Expression:
    """A column that is compared; a map as it is, because it cannot be."""
    value, type_ = source.internal(name), source.types[name]
    return value if holds_map(type_) else comparable(value, type_)


def _outermost(row: Expression, type_: pa.DataType, *, last: bool) -> Expression:
    """The first or last row, compared as a whole."""
    if holds_map(type_):
        whole = F.when(row.isNotNull(), row.withField("v", comparable(row["v"], type_)))
        return (F.max_by if last else F.min_by)(row, whole)
    return (F.max if last else F.min)(row)


def _fields(slice_columns: SliceColumns, label: Label, expression: Expression, names: list[str]) -> list[str]:
    """The named fields of a row that was picked, each as a column of its own."""
    row = slice_columns.column(label, expression)
    slice_columns.hidden.add(row)
    return [slice_columns.derived((*label, name), F.col(row)[name]) for name in names]


def _reversed(value: Expression, type_: pa.DataType) -> list[Expression]:
    """Expressions whose smallest value is the largest of ``value``."""
    t = pa.types
    if t.is_floating(type_):
        # NaN is the largest of all and stays so when it is negated.
        return [~F.isnan(value), -value]
    if t.is_decimal(type_):
        return [-value]
    if t.is_duration(type_):
        # As bitwise not: -1 less the value. The shortest of all durations has no negative.
        return [F.expr("INTERVAL '-0.000001' SECOND") - value]
    if t.is_boolean(type_):
        return [~value]
    if t.is_timestamp(type_):
        return [F.bitwise_not(F.unix_micros(value))]
    if t.is_date(type_):
        return [F.bitwise_not(F.unix_date(value))]
    return [F.bitwise_not(value)]


#: How the partials of each aggregate are computed: the classes that :data:`slicewise.plan.routes.IN_THE_JVM` names.
PARTIALS: dict[type[Aggregate], Callable[[Monoid, Source, SliceColumns], Reader]] = {
    Count: _counts,
    Sum: totals,
    Avg: totals,
    Product: _products,
    GeometricMean: _logarithms,
    StdDev: moments,
    StdDevPop: moments,
    Variance: moments,
    VarPop: moments,
    Skewness: higher_moments,
    Kurtosis: higher_moments,
    Corr: comoments,
    CovarPop: comoments,
    CovarSamp: comoments,
    RegrIntercept: comoments,
    RegrR2: comoments,
    RegrSlope: comoments,
    RegrSXX: comoments,
    RegrSXY: comoments,
    RegrSYY: comoments,
    RegrCount: pair_counts,
    RegrAvgX: pair_means,
    RegrAvgY: pair_means,
    WeightedAvg: weighted_totals,
    TrySum: totals,
    TryAvg: totals,
    CountIf: _met,
    BoolAnd: partial(_truths, lambda truth: ~truth),
    BoolOr: partial(_truths, lambda truth: truth),
    BitAnd: partial(_bits, F.bit_and),
    BitOr: partial(_bits, F.bit_or),
    BitXor: partial(_bits, F.bit_xor),
    Min: partial(_extreme, F.min),
    Max: partial(_extreme, F.max),
    Range: _range,
    MinCount: partial(_extreme_count, F.min),
    MaxCount: partial(_extreme_count, F.max),
    First: partial(_position, last=False),
    Last: partial(_position, last=True),
    AnyValue: partial(_position, last=False),
    MinBy: partial(_by, largest=False),
    MaxBy: partial(_by, largest=True),
    M4: _m4,
    Ohlc: _candle,
    **dict.fromkeys((CountDistinct, SumDistinct, Histogram, Mode, MostFrequent, Median, Percentile), values),
    **dict.fromkeys((Largest, Smallest), best_values),
    **dict.fromkeys((ApproxCountDistinct, HllSketchAgg, ThetaSketchAgg), sketches),
    **dict.fromkeys((ApproxPercentile, KllSketchAggDouble), sketches),
    ApproxMostFrequent: values,
}


# How it comes back


def _read_shared(places: Sequence[Sequence[int]], readers: Sequence[Reader], columns: Columns) -> Parts:
    return shared_parts(places, [read(columns) for read in readers])


def _read_numbers(names: Sequence[str], columns: Columns) -> Parts:
    return tuple(values_of(columns, n).values for n in names)


def _read_filled(names: Sequence[str], identity: Sequence[Any], columns: Columns) -> Parts:
    parts = [values_of(columns, n) for n in names]
    return tuple(
        c.values if c.valid is None else np.where(c.valid, c.values, x) for c, x in zip(parts, identity, strict=True)
    )


def _read_products(names: Sequence[str], columns: Columns) -> Parts:
    products, zeros, n = (values_of(columns, name) for name in names)
    mantissa, exponent = np.frexp(np.where(products.mask, products.values, 1.0))
    return mantissa, exponent.astype(np.int64), zeros.values, n.values


def _read_objects(name: str, type_: pa.DataType, columns: Columns) -> Parts:
    return (values_of(columns, name, type_).to_objects(),)


def _read_extreme(name: str, type_: pa.DataType, identity: Any, columns: Columns) -> Parts:
    extremes = values_of(columns, name, type_)
    if extremes.valid is None:
        return extremes.values, extremes.mask
    return np.where(extremes.valid, extremes.values, identity), extremes.valid


def _read_range(low: str, high: str, type_: pa.DataType, identity: Sequence[Any], columns: Columns) -> Parts:
    least, some = _read_extreme(low, type_, identity[0], columns)
    return least, _read_extreme(high, type_, identity[1], columns)[0], some


def _read_both(low: str, high: str, type_: pa.DataType, columns: Columns) -> Parts:
    return *_read_objects(low, type_, columns), *_read_objects(high, type_, columns)


def _read_pairs(one: str, other: str, type_: pa.DataType, empty: Any, columns: Columns) -> Parts:
    a, b = values_of(columns, one, type_), Column.of(columns[other])
    out = np.empty(len(a), object)
    for i, (x, y, ok) in enumerate(zip(a.to_pylist(), b.to_pylist(), a.mask.tolist(), strict=True)):
        out[i] = (x, y) if ok else empty
    return (out,)


def _read_extreme_count(top: str, count: str, type_: pa.DataType, identity: Any, columns: Columns) -> Parts:
    values, some = _read_extreme(top, type_, identity, columns)
    return values, np.where(some, values_of(columns, count).values, 0)


def _read_position(time: str, value: str, type_: pa.DataType, missing: Any, columns: Columns) -> Parts:
    times, values = values_of(columns, time), values_of(columns, value, type_)
    when = times.values if times.valid is None else np.where(times.valid, times.values, missing)
    return when, values.values, values.mask


def _read_peak(by: str, time: str, value: str, by_type: pa.DataType, type_: pa.DataType, columns: Columns) -> Parts:
    extremes, picked = _read_extremes_row(by, time, by_type, columns), values_of(columns, value, type_)
    return *extremes, picked.values, picked.mask


def _read_extremes_row(by: str, time: str, type_: pa.DataType, columns: Columns, *, flipped: bool = False) -> Parts:
    measured, times = values_of(columns, by, type_), values_of(columns, time)
    when = ~times.values if flipped else times.values
    if measured.valid is not None:
        when = np.where(measured.valid, when, exact.INT64_MAX)
    return measured.values, when, measured.mask


def _read_m4(
    first: list[str], last: list[str], low: list[str], high: list[str], type_: pa.DataType, columns: Columns
) -> Parts:
    return (
        *_read_position(first[0], first[1], type_, exact.INT64_MAX, columns),
        *_read_position(last[0], last[1], type_, exact.INT64_MIN, columns),
        *_read_extremes_row(low[0], low[1], type_, columns),
        *_read_extremes_row(high[0], high[1], type_, columns, flipped=True),
    )
