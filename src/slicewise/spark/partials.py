"""Partials: aggregates as expressions that the JVM computes per slice, and how Arrow brings them back as parts.

For each aggregate two things stand side by side: what Spark computes for a slice, and how those columns become the
parts of the engine's monoid. Expressions that several aggregates need (the count of a column, its maximum) are computed
and sent once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates import exact
from slicewise.aggregates.base import Aggregate, Monoid, ObjectMonoid, Parts
from slicewise.columns import Column
from slicewise.spark.ordering import comparable, tie_breakers
from slicewise.spark.source import TIME, Source
from slicewise.spark.types import holds_map, read

__all__ = ["Reader", "Shelf", "partials_of", "plain_function"]

#: The columns of some slices, by the names that the shelf gave them.
Columns = Mapping[str, pa.Array]
Reader = Callable[[Columns], Parts]


@dataclass
class Shelf:
    """The columns that the JVM computes per slice: each expression once, however many aggregates ask for it."""

    expressions: dict[str, Expression] = field(default_factory=dict)
    #: Computed from the others, and those of the others that are needed for nothing else.
    after: dict[str, Expression] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict)

    def column(self, label: str, expression: Expression) -> str:
        """The name of a column that holds this aggregate expression; ``label`` says what it is."""
        return self._put(label, expression, self.expressions)

    def derived(self, label: str, expression: Expression) -> str:
        """The name of a column that is computed from those of the slice."""
        return self._put(label, expression, self.after)

    def _put(self, label: str, expression: Expression, where: dict[str, Expression]) -> str:
        name = self._names.setdefault(label, f"p{len(self._names)}")
        where.setdefault(name, expression)
        return name

    @property
    def sent(self) -> list[str]:
        """The columns that go to the composer."""
        return [n for n in (*self.expressions, *self.after) if n not in self.hidden]


def partials_of(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    """Put on the shelf what the JVM must compute for an aggregate; the reader turns it into parts."""
    return _KINDS[monoid.aggregate.name](monoid, source, shelf)


def plain_function(aggregate: Aggregate, source: Source) -> Expression | None:
    """Spark's own function for a whole window, where that is all there is to do."""
    if aggregate.name == "count" and not aggregate.columns:
        return F.count(F.lit(1))
    function = _PLAIN.get(aggregate.name)
    return None if function is None else function(source.inside(aggregate.columns[0]))


_PLAIN: dict[str, Callable[[Expression], Expression]] = {
    "count": F.count,
    "sum": F.sum,
    "avg": F.avg,
    "min": F.min,
    "max": F.max,
    "product": F.product,
    "stddev": F.stddev,
    "stddev_pop": F.stddev_pop,
    "variance": F.variance,
    "var_pop": F.var_pop,
}


# What the JVM computes


def _count_of(name: str | None, source: Source, shelf: Shelf) -> str:
    """How many values of a column are not null; of one that never is, how many rows."""
    if name is None or name not in source.nullable:
        return shelf.column("rows", F.count(F.lit(1)))
    return shelf.column(f"count {name}", F.count(source.inside(name)))


def _counts(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    columns = monoid.aggregate.columns
    return partial(_read_numbers, [_count_of(columns[0] if columns else None, source, shelf)])


def _totals(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    value, n = source.inside(name), _count_of(monoid.aggregate.columns[0], source, shelf)
    if pa.types.is_int64(type_):
        # A total may leave 64 bits where Spark would fail: the halves of the numbers are summed apart.
        high = shelf.column(f"high {name}", F.sum(F.shiftright(value, 32)))
        low = shelf.column(f"low {name}", F.sum(value.bitwiseAND(F.lit(0xFFFFFFFF))))
        return partial(_read_halves, high, low, n)
    total = shelf.column(f"sum {name}", F.sum(value))
    if pa.types.is_decimal(type_):
        return partial(_read_decimal_totals, total, n)
    return partial(_read_numbers, [total, n])


def _products(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name = monoid.aggregate.columns[0]
    product = shelf.column(f"product {name}", F.product(source.inside(name)))
    return partial(_read_filled, [product, _count_of(name, source, shelf)], monoid.identity)


def _logarithms(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name = monoid.aggregate.columns[0]
    value = source.inside(name).cast("double")
    names = [
        shelf.column(f"logarithms {name}", F.sum(F.when(value > 0, F.ln(value)))),
        _count_of(name, source, shelf),
        shelf.column(f"zeros {name}", F.count_if(value == 0)),
        shelf.column(f"negatives {name}", F.count_if(value < 0)),
    ]
    return partial(_read_numbers, names)


def _moments(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name = monoid.aggregate.columns[0]
    value = source.inside(name).cast("double")
    names = [
        _count_of(name, source, shelf),
        shelf.column(f"mean {name}", F.avg(value)),
        shelf.column(f"spread {name}", F.var_pop(value)),
    ]
    return partial(_read_moments, names)


def _extreme(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, kind = monoid.aggregate.columns[0], monoid.aggregate.name
    found = _extreme_of(kind, name, source, shelf)
    if isinstance(monoid, ObjectMonoid):
        return partial(_read_objects, found, monoid.types[0])
    return partial(_read_extreme, found, monoid.types[0], monoid.identity[0])


def _extreme_of(kind: str, name: str, source: Source, shelf: Shelf) -> str:
    return shelf.column(f"{kind} {name}", (F.max if kind == "max" else F.min)(source.inside(name)))


def _range(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    low, high = (_extreme_of(kind, name, source, shelf) for kind in ("min", "max"))
    if isinstance(monoid, ObjectMonoid):
        return partial(_read_pairs, low, high, type_, None)
    return partial(_read_range, low, high, type_, monoid.identity)


def _extreme_count(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, kind = monoid.aggregate.columns[0], monoid.aggregate.name.removesuffix("_count")
    top = _extreme_of(kind, name, source, shelf)
    every = shelf.column(f"list {name}", F.collect_list(source.inside(name)))
    shelf.hidden.add(every)
    held = F.size(F.filter(F.col(every), lambda x: x.eqNullSafe(F.col(top)))).cast("long")
    count = shelf.derived(f"{kind} count {name}", held)
    if isinstance(monoid, ObjectMonoid):
        return partial(_read_pairs, top, count, monoid.types[0], (None, 0))
    return partial(_read_extreme_count, top, count, monoid.types[0], monoid.identity[0])


def _position(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, last = monoid.aggregate.columns[0], monoid.aggregate.name == "last"
    picked = _outermost(_in_order(source, name), monoid.types[0], last=last)
    time, value = _fields(shelf, f"{monoid.aggregate.name} {name}", picked, ["t", "v"])
    return partial(_read_position, time, value, monoid.types[0], None)


def _by(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, by = monoid.aggregate.columns
    value, measured = _plain(source, name), source.inside(by)
    largest = monoid.aggregate.name == "max_by"
    place = [
        *(_reversed(measured, monoid.types[1]) if largest else [measured]),
        F.col(TIME).alias("t"),
        *_order(source),
    ]
    row = F.when(measured.isNotNull(), F.struct(*place, value.alias("v"), measured.alias("by")))
    picked = _outermost(row, monoid.types[0], last=False)
    found, time, picked_value = _fields(shelf, f"{monoid.aggregate.name} {name} {by}", picked, ["by", "t", "v"])
    return partial(_read_peak, found, time, picked_value, monoid.types[1], monoid.types[0])


def _m4(monoid: Monoid, source: Source, shelf: Shelf) -> Reader:
    name, type_ = monoid.aggregate.columns[0], monoid.types[0]
    value, t = source.inside(name), F.col(TIME)
    row = F.when(value.isNotNull(), _in_order(source, name))
    first = _fields(shelf, f"m4 first {name}", F.min(row), ["t", "v"])
    last = _fields(shelf, f"m4 last {name}", F.max(row), ["t", "v"])
    low = F.min(F.when(value.isNotNull(), F.struct(value.alias("by"), t.alias("t"))))
    # The largest value at the earliest time: bitwise not turns the order of times around.
    high = F.max(F.when(value.isNotNull(), F.struct(value.alias("by"), F.bitwise_not(t).alias("t"))))
    lows, highs = (_fields(shelf, f"m4 {k} {name}", e, ["by", "t"]) for k, e in (("min", low), ("max", high)))
    return partial(_read_m4, first, last, lows, highs, type_)


def _in_order(source: Source, name: str) -> Expression:
    """A row as its place in the order of rows: time, where there are order columns what breaks ties, then the value."""
    return F.struct(F.col(TIME).alias("t"), *_order(source), _plain(source, name).alias("v"))


def _order(source: Source) -> list[Expression]:
    return tie_breakers(source) if source.workload.order else []


def _plain(source: Source, name: str) -> Expression:
    """A column that is compared; a map as it is, because it cannot be."""
    value, type_ = source.inside(name), source.types[name]
    return value if holds_map(type_) else comparable(value, type_)


def _outermost(row: Expression, type_: pa.DataType, *, last: bool) -> Expression:
    """The first or last row, compared as a whole."""
    if holds_map(type_):
        whole = F.when(row.isNotNull(), row.withField("v", comparable(row["v"], type_)))
        return (F.max_by if last else F.min_by)(row, whole)
    return (F.max if last else F.min)(row)


def _fields(shelf: Shelf, label: str, expression: Expression, names: list[str]) -> list[str]:
    """The named fields of a row that was picked, each as a column of its own."""
    row = shelf.column(label, expression)
    shelf.hidden.add(row)
    return [shelf.derived(f"{label}.{name}", F.col(row)[name]) for name in names]


def _reversed(value: Expression, type_: pa.DataType) -> list[Expression]:
    """Expressions whose smallest value is the largest of ``value``."""
    t = pa.types
    if t.is_floating(type_):
        # NaN is the largest of all and stays so when it is negated.
        return [~F.isnan(value), -value]
    if t.is_decimal(type_) or t.is_duration(type_):
        return [-value]
    if t.is_boolean(type_):
        return [~value]
    if t.is_timestamp(type_):
        return [F.bitwise_not(F.unix_micros(value))]
    if t.is_date(type_):
        return [F.bitwise_not(F.unix_date(value))]
    return [F.bitwise_not(value)]


_KINDS: dict[str, Callable[[Monoid, Source, Shelf], Reader]] = {
    "count": _counts,
    "sum": _totals,
    "avg": _totals,
    "product": _products,
    "geometric_mean": _logarithms,
    "stddev": _moments,
    "stddev_pop": _moments,
    "variance": _moments,
    "var_pop": _moments,
    "min": _extreme,
    "max": _extreme,
    "range_": _range,
    "min_count": _extreme_count,
    "max_count": _extreme_count,
    "first": _position,
    "last": _position,
    "min_by": _by,
    "max_by": _by,
    "m4": _m4,
}


# How it comes back


def _values(columns: Columns, name: str, type_: pa.DataType | None = None) -> Column:
    return Column.of(columns[name]) if type_ is None else read(columns[name], type_)


def _read_numbers(names: Sequence[str], columns: Columns) -> Parts:
    return tuple(_values(columns, n).values for n in names)


def _read_filled(names: Sequence[str], identity: Sequence[Any], columns: Columns) -> Parts:
    found = [_values(columns, n) for n in names]
    return tuple(
        c.values if c.valid is None else np.where(c.valid, c.values, x) for c, x in zip(found, identity, strict=True)
    )


def _read_halves(high: str, low: str, n: str, columns: Columns) -> Parts:
    return exact.joined(_values(columns, high).values, _values(columns, low).values), _values(columns, n).values


def _read_decimal_totals(total: str, n: str, columns: Columns) -> Parts:
    return _values(columns, total).values, _values(columns, n).values


def _read_moments(names: Sequence[str], columns: Columns) -> Parts:
    n, mean, spread = (_values(columns, name).values for name in names)
    return n, mean, spread * n


def _read_objects(name: str, type_: pa.DataType, columns: Columns) -> Parts:
    return (_values(columns, name, type_).to_objects(),)


def _read_extreme(name: str, type_: pa.DataType, identity: Any, columns: Columns) -> Parts:
    found = _values(columns, name, type_)
    if found.valid is None:
        return found.values, found.mask
    return np.where(found.valid, found.values, identity), found.valid


def _read_range(low: str, high: str, type_: pa.DataType, identity: Sequence[Any], columns: Columns) -> Parts:
    least, some = _read_extreme(low, type_, identity[0], columns)
    return least, _read_extreme(high, type_, identity[1], columns)[0], some


def _read_pairs(one: str, other: str, type_: pa.DataType, empty: Any, columns: Columns) -> Parts:
    a, b = _values(columns, one, type_), Column.of(columns[other])
    out = np.empty(len(a), object)
    for i, (x, y, ok) in enumerate(zip(a.to_pylist(), b.to_pylist(), a.mask.tolist(), strict=True)):
        out[i] = (x, y) if ok else empty
    return (out,)


def _read_extreme_count(top: str, count: str, type_: pa.DataType, identity: Any, columns: Columns) -> Parts:
    values, some = _read_extreme(top, type_, identity, columns)
    return values, np.where(some, _values(columns, count).values, 0)


def _read_position(time: str, value: str, type_: pa.DataType, missing: Any, columns: Columns) -> Parts:
    times, values = _values(columns, time), _values(columns, value, type_)
    when = times.values if times.valid is None else np.where(times.valid, times.values, missing)
    return when, values.values, values.mask


def _read_peak(by: str, time: str, value: str, by_type: pa.DataType, type_: pa.DataType, columns: Columns) -> Parts:
    found, values = _values(columns, value, type_), _read_extremes_row(by, time, by_type, columns)
    return *values, found.values, found.mask


def _read_extremes_row(by: str, time: str, type_: pa.DataType, columns: Columns, *, flipped: bool = False) -> Parts:
    measured, times = _values(columns, by, type_), _values(columns, time)
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
