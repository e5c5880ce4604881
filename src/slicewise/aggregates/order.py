"""Order aggregates: the extremes of a column, their counts and the distance between them.

Floating point numbers are in Spark's order: NaN is larger than any number and equal to itself, -0.0 equals 0.0.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates import exact
from slicewise.aggregates.base import Aggregate, Monoid, ObjectMonoid, Parts
from slicewise.aggregates.checks import OneColumn, from_first, need_orderable, need_types, present
from slicewise.columns import Column, column_of_objects, is_integral, physical_dtype
from slicewise.errors import AggregateError, OverflowInWindowError
from slicewise.kernels import segment_lengths

__all__ = ["Max", "MaxCount", "Min", "MinCount", "Range", "larger", "smaller"]

_BOOL = np.dtype(bool)
_OBJECT = np.dtype(object)
_INT64 = np.dtype(np.int64)
_DAY_US = 86_400_000_000
#: What the parts of extremes are called, which several aggregates share.
SMALLEST, LARGEST = "smallest", "largest"


def larger(a: Any, b: Any) -> Any:
    """The larger of two values, the first if they are equal.

    >>> larger(1, 2), larger(float("nan"), 7.0), larger(7.0, float("nan"))
    (2, nan, nan)
    """
    return a if a >= b or a != a else b


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two values, the first if they are equal.

    >>> smaller(1, 2), smaller(float("nan"), 7.0), smaller(7.0, float("nan"))
    (1, 7.0, 7.0)
    """
    return a if a <= b or b != b else b


class _Extreme(OneColumn):
    commutative = True
    kind = "distributive"
    identity = None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return types[0]


class Max(_Extreme):
    """The largest value that is not null, in the column's type; null when there are none.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> Max("v").bind(pa.float32()).result
    DataType(float)
    >>> top = Max()
    >>> top.lower(top.combine(top.lift(3), top.lift(8)))
    8
    """

    name = "max"
    selective = True

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return larger(a, b)

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        if physical_dtype(types[0]).hasobject:
            return _ObjectExtreme(self, types, LARGEST)
        floats = pa.types.is_floating(types[0])
        return ExtremeMonoid(self, types, np.maximum, -np.inf if floats else exact.INT64_MIN)


class Min(_Extreme):
    """The smallest value that is not null, in the column's type; null when there are none.

    NaN is the answer only where every value is NaN.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> low = Min()
    >>> low.lower(low.combine(low.lift("pear"), low.lift("fig")))
    'fig'
    """

    name = "min"
    selective = True

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return smaller(a, b)

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        if physical_dtype(types[0]).hasobject:
            return _ObjectExtreme(self, types, SMALLEST)
        if pa.types.is_floating(types[0]):
            # `fmin` passes over NaN, so that NaN is its identity; `minimum` would spread it.
            return ExtremeMonoid(self, types, np.fmin, np.nan)
        return ExtremeMonoid(self, types, np.minimum, exact.INT64_MAX)


class ExtremeMonoid(Monoid):
    """Two parts: the extreme, and whether there is one, since the identity of an integer may be a value too."""

    exact = True

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], ufunc: np.ufunc, identity: Any) -> None:
        super().__init__(aggregate, types)
        self.result = types[0]
        self.identity = (identity, False)
        self.dtypes = (physical_dtype(types[0]), _BOOL)
        self.kept_as = (LARGEST if ufunc is np.maximum else SMALLEST, "some")
        self._ufunc = ufunc

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, valid = columns[0].values, columns[0].valid
        if valid is None:
            return values, np.ones(len(values), bool)
        return np.where(valid, values, self.identity[0]), valid

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._ufunc(a[0], b[0]), a[1] | b[1]

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self._ufunc.reduceat(parts[0], starts), np.logical_or.reduceat(parts[1], starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        if columns[0].valid is not None:
            return self.fold(self.lift(columns, times), starts)
        return self._ufunc.reduceat(columns[0].values, starts), np.ones(len(starts), bool)

    def scan(self, parts: Parts) -> Parts:
        return self._ufunc.accumulate(parts[0]), np.logical_or.accumulate(parts[1])

    def lower(self, parts: Parts) -> Column:
        values, some = parts
        if some.all():
            return Column(values, self.result)
        return Column(np.where(some, values, 0), self.result, some)


class _ObjectExtreme(ObjectMonoid):
    """Extremes of Python values. Left to right is as good as pairwise here, because partials do not grow."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], *kept_as: str) -> None:
        super().__init__(aggregate, types)
        self.kept_as = kept_as

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        with np.errstate(all="ignore"):
            return (self._combine.reduceat(parts[0], starts, dtype=object),)

    def scan(self, parts: Parts) -> Parts:
        with np.errstate(all="ignore"):
            return (self._combine.accumulate(parts[0], dtype=object),)


class Range(OneColumn):
    """The largest value minus the smallest; null when there are none.

    Integers give a 64-bit integer (a difference that does not fit raises), floats keep their type, decimals gain a
    digit as in Spark's ``max(v) - min(v)``; the range of dates and timestamps is a duration.

    Parameters
    ----------
    column : str, optional
        A column of numbers, dates or times. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> spread = Range()
    >>> spread.lower(spread.combine(spread.lift(3), spread.lift(8)))
    5
    """

    name = "range_"
    commutative = True
    kind = "algebraic"
    identity = None

    def lift(self, *values: Any) -> tuple[Any, Any]:
        return values[0], values[0]

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return smaller(a[0], b[0]), larger(a[1], b[1])

    def lower(self, partial: Any) -> Any:
        if partial is None:
            return None
        low, high = partial
        if isinstance(low, decimal.Decimal):
            return decimal.Context(prec=100).subtract(high, low)
        return high - low

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        type_ = types[0]
        if pa.types.is_decimal(type_):
            return pa.decimal128(min(type_.precision + 1, 38), type_.scale)
        if pa.types.is_floating(type_):
            return type_
        return pa.int64() if pa.types.is_integer(type_) else pa.duration("us")

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        type_ = types[0]
        countable = is_integral(type_) and not pa.types.is_boolean(type_)
        if not (countable or pa.types.is_floating(type_) or pa.types.is_decimal(type_)):
            of = f" of column {self.columns[0]!r}" if self.columns else ""
            raise AggregateError(
                f"`range_`{of} needs numbers or times, which can be subtracted; got {type_}: use `min` and `max`, "
                "or cast the column first"
            )
        if pa.types.is_decimal(type_):
            return DecimalRange(self, types)
        return RangeMonoid(self, types)


class RangeMonoid(Monoid):
    """Three parts: the smallest, the largest, and whether there are any."""

    exact = True
    kept_as = (SMALLEST, LARGEST, "some")

    def __init__(self, aggregate: Range, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)
        self._low, self._high = Min().bind(*types), Max().bind(*types)
        self.identity = (self._low.identity[0], *self._high.identity)
        self.dtypes = (self._low.dtypes[0], *self._high.dtypes)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self._low.lift(columns, times)[0], *self._high.lift(columns, times)

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._low.combine(a[::2], b[::2])[0], *self._high.combine(a[1:], b[1:])

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self._low.fold(parts[::2], starts)[0], *self._high.fold(parts[1:], starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return self._low.lift_fold(columns, times, starts)[0], *self._high.lift_fold(columns, times, starts)

    def scan(self, parts: Parts) -> Parts:
        return self._low.scan(parts[::2])[0], *self._high.scan(parts[1:])

    def lower(self, parts: Parts) -> Column:
        low, high, some = parts
        valid = None if some.all() else some
        if low.dtype == np.float64:
            with np.errstate(invalid="ignore"):
                return Column(np.where(some, high - low, 0.0), self.result, valid)
        ranges = exact.subtract(np.where(some, high, 0), np.where(some, low, 0))
        unit = _DAY_US if pa.types.is_date32(self.types[0]) else 1000 if pa.types.is_date64(self.types[0]) else 1
        if ranges.dtype != object and int(ranges.max(initial=0)) > exact.INT64_MAX // unit:
            ranges = ranges.astype(object)
        ranges = ranges * unit
        if ranges.dtype == object:
            of = f" of column {self.aggregate.columns[0]!r}" if self.aggregate.columns else ""
            raise OverflowInWindowError(
                f"`range_`{of} does not fit in a 64-bit integer: a window gives {max(ranges)}; "
                "cast the column to decimal or double"
            )
        return Column(ranges, self.result, valid)


class DecimalRange(Monoid):
    """Two parts of Python values: the smallest and the largest, None where there are none."""

    exact = True
    identity = (None, None)
    dtypes = (_OBJECT, _OBJECT)
    kept_as = (SMALLEST, LARGEST)

    def __init__(self, aggregate: Range, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)
        self._both = Min().bind(*types), Max().bind(*types)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        low, high = (monoid.lift(columns, times) for monoid in self._both)
        return *low, *high

    def combine(self, a: Parts, b: Parts) -> Parts:
        low, high = (m.combine((x,), (y,)) for m, x, y in zip(self._both, a, b, strict=True))
        return *low, *high

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        low, high = (m.fold((part,), starts) for m, part in zip(self._both, parts, strict=True))
        return *low, *high

    def scan(self, parts: Parts) -> Parts:
        low, high = (m.scan((part,)) for m, part in zip(self._both, parts, strict=True))
        return *low, *high

    def lower(self, parts: Parts) -> Column:
        limit = decimal.Decimal(10) ** (self.result.precision - self.result.scale)
        pairs = (None if low is None else (low, high) for low, high in zip(*parts, strict=True))
        ranges = [self.aggregate.lower(pair) for pair in pairs]
        for value in ranges:
            if value is not None and value >= limit:
                of = f" of column {self.aggregate.columns[0]!r}" if self.aggregate.columns else ""
                raise OverflowInWindowError(
                    f"`range_`{of} does not fit in {self.result}: a window gives {value}; cast the column to fewer "
                    "decimals or to double"
                )
        return column_of_objects(ranges, self.result)

    def upgraded(self, parts: Parts) -> Parts:
        if len(parts) == 2:
            return parts
        low, high = np.empty(len(parts[0]), object), np.empty(len(parts[0]), object)
        for i, pair in enumerate(parts[0]):
            low[i], high[i] = pair or (None, None)
        return low, high


class _ExtremeCount(OneColumn):
    commutative = True
    kind = "algebraic"
    identity = (None, 0)

    def lift(self, *values: Any) -> tuple[Any, int]:
        return values[0], 1

    def combine(self, a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
        if not a[1] or not b[1]:
            return a if a[1] else b
        if a[0] == b[0] or (a[0] != a[0] and b[0] != b[0]):
            return a[0], a[1] + b[1]
        return a if self._pick(a[0], b[0]) is a[0] else b

    def lower(self, partial: tuple[Any, int]) -> int | None:
        return partial[1] or None

    def _pick(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        if physical_dtype(types[0]).hasobject:
            return _ObjectExtreme(self, types)
        return ExtremeCountMonoid(self, types, (Max() if isinstance(self, MaxCount) else Min()).bind(*types))


class MaxCount(_ExtremeCount):
    """The number of rows with the largest value; null when there are no values.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> most = MaxCount()
    >>> most.lower(most.combine(most.lift(8), most.combine(most.lift(3), most.lift(8))))
    2
    """

    name = "max_count"

    def _pick(self, a: Any, b: Any) -> Any:
        return larger(a, b)


class MinCount(_ExtremeCount):
    """The number of rows with the smallest value; null when there are no values.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> least = MinCount()
    >>> least.lower(least.combine(least.lift(8), least.combine(least.lift(3), least.lift(8))))
    1
    """

    name = "min_count"

    def _pick(self, a: Any, b: Any) -> Any:
        return smaller(a, b)


class ExtremeCountMonoid(Monoid):
    """Two parts: the extreme, and the number of rows that hold it; where it is 0, there is no extreme."""

    result = pa.int64()
    exact = True

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], extremes: Monoid) -> None:
        super().__init__(aggregate, types)
        self._extremes = extremes
        self.kept_as = (extremes.kept_as[0], f"rows with the {extremes.kept_as[0]}")
        self.identity = (extremes.identity[0], 0)
        self.dtypes = (extremes.dtypes[0], _INT64)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, some = self._extremes.lift(columns, times)
        return values, some.astype(np.int64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        top, _ = self._extremes.combine((a[0], a[1] > 0), (b[0], b[1] > 0))
        return top, np.where(_same(a[0], top), a[1], 0) + np.where(_same(b[0], top), b[1], 0)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, values, counts = from_first(starts, *parts)
        top, _ = self._extremes.fold((values, counts > 0), starts)
        hits = _same(values, np.repeat(top, segment_lengths(starts, len(values))))
        return top, np.add.reduceat(np.where(hits, counts, 0), starts)

    def lower(self, parts: Parts) -> Column:
        return Column(parts[1], self.result, present(parts[1]))


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    equal: np.ndarray = a == b
    return equal | (np.isnan(a) & np.isnan(b)) if a.dtype == np.float64 else equal
