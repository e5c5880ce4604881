"""Arithmetic aggregates: count, sum and average, and the latter two with null for what does not fit.

Partials of ``sum`` and ``avg`` are a total and the number of its values, because Spark's sum of nothing is null, not 0.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates import exact
from slicewise.aggregates.base import Aggregate, Monoid, Parts
from slicewise.aggregates.checks import OneColumn, need_numbers, need_types, present
from slicewise.columns import Column
from slicewise.errors import OverflowInWindowError
from slicewise.kernels import segment_lengths

__all__ = ["Avg", "Count", "Sum", "TryAvg", "TrySum", "fitting_sums", "overflow_text"]

# Python's default context rounds decimals to 28 digits; Spark's have up to 38 and are summed exactly.
_EXACT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)
_OBJECT = np.dtype(object)


class Count(OneColumn):
    """The number of rows, or of the values of a column that are not null, as a 64-bit integer.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, or with ``"*"``, all rows count.

    Examples
    --------
    >>> Count(), Count("v"), Count("*")
    (count(), count('v'), count())
    >>> Count().bind().result
    DataType(int64)
    """

    name = "count"
    commutative = True
    invertible = True
    kind = "distributive"
    identity = 0

    def __init__(self, column: str | None = None) -> None:
        super().__init__(None if column == "*" else column)
        # Without a column it counts rows, whatever is in them.
        self.skips_nulls = bool(self.columns)

    def lift(self, *values: Any) -> int:
        return 1

    def combine(self, a: int, b: int) -> int:
        return a + b

    def invert(self, a: int, b: int) -> int:
        return a - b

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def bind(self, *types: pa.DataType) -> Monoid:
        return CountMonoid(self, types)


class CountMonoid(Monoid):
    """Partials are plain int64 counts."""

    result = pa.int64()
    identity = (0,)
    dtypes = (_INT64,)
    exact = True
    kept_as = ("values",)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        if columns and columns[0].valid is not None:
            return (columns[0].valid.astype(np.int64),)
        return (np.ones(len(times), np.int64),)

    def combine(self, a: Parts, b: Parts) -> Parts:
        return (a[0] + b[0],)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return (a[0] - b[0],)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return (np.add.reduceat(parts[0], starts),)

    def scan(self, parts: Parts) -> Parts:
        return (parts[0].cumsum(),)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        if columns and columns[0].valid is not None:
            return self.fold(self.lift(columns, times), starts)
        return (segment_lengths(starts, len(times)),)

    def lower(self, parts: Parts) -> Column:
        return Column(parts[0], self.result)


class _Totals(OneColumn):
    """Total and number of values: what sum and average share."""

    commutative = True
    invertible = True
    identity = (0, 0)

    def lift(self, *values: Any) -> tuple[Any, int]:
        return values[0], 1

    def combine(self, a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
        if not a[1]:
            return b
        if not b[1]:
            return a
        if isinstance(a[0], decimal.Decimal):
            return _EXACT.add(a[0], b[0]), a[1] + b[1]
        return a[0] + b[0], a[1] + b[1]

    def invert(self, a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
        if not b[1]:
            return a
        if a[1] == b[1]:
            return self.identity
        if isinstance(a[0], decimal.Decimal):
            return _EXACT.subtract(a[0], b[0]), a[1] - b[1]
        return a[0] - b[0], a[1] - b[1]

    def finish(self, totals: np.ndarray, counts: np.ndarray, type_: pa.DataType, result: pa.DataType) -> Column:
        """The results, from the two parts, for a column of one type and of the type that follows from it."""
        raise NotImplementedError

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        raise NotImplementedError

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0], durations=True)
        if pa.types.is_floating(types[0]):
            return FloatTotals(self, types)
        if pa.types.is_decimal(types[0]):
            return DecimalTotals(self, types)
        return IntTotals(self, types)


class Sum(_Totals):
    """The sum of the values that are not null; null when there are none.

    Integers of any width give a 64-bit integer, floats a double, ``decimal(p, s)`` a ``decimal(min(p + 10, 38), s)``,
    as Spark's ``sum``. A window whose total does not fit raises :class:`~slicewise.errors.OverflowInWindowError`;
    whether a total on the way to it fits does not matter.

    Parameters
    ----------
    column : str, optional
        A column of numbers or durations. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> Sum("v").bind(pa.int32()).result
    DataType(int64)
    >>> total = Sum()
    >>> total.lower(total.combine(total.lift(2), total.lift(5)))
    7
    """

    name = "sum"
    kind = "distributive"

    def lower(self, partial: tuple[Any, int]) -> Any:
        return partial[0] if partial[1] else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        type_ = types[0]
        if pa.types.is_decimal(type_):
            return pa.decimal128(min(type_.precision + 10, 38), type_.scale)
        if pa.types.is_duration(type_):
            return type_
        return pa.float64() if pa.types.is_floating(type_) else pa.int64()

    def finish(self, totals: np.ndarray, counts: np.ndarray, type_: pa.DataType, result: pa.DataType) -> Column:
        return fitting_sums(self, totals, counts, result)


class Avg(_Totals):
    """The mean of the values that are not null; null when there are none.

    Integers and floats give a double, ``decimal(p, s)`` a ``decimal(p + 4, s + 4)`` of at most 38 digits, rounded half
    up, as Spark's ``avg``. Integers are summed exactly and divided once.

    Parameters
    ----------
    column : str, optional
        A column of numbers or durations. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> mean = Avg("v")
    >>> mean.lower(mean.combine(mean.lift(2), mean.lift(5)))
    3.5
    >>> mean.bind(pa.decimal128(10, 2)).result
    Decimal128Type(decimal128(14, 6))
    """

    name = "avg"
    kind = "algebraic"

    def lower(self, partial: tuple[Any, int]) -> Any:
        total, n = partial
        if not n:
            return None
        if isinstance(total, decimal.Decimal):
            scale = -int(total.as_tuple().exponent)
            return _EXACT.divide(total, n).quantize(decimal.Decimal(1).scaleb(-min(scale + 4, 38)), context=_EXACT)
        return total / n

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        type_ = types[0]
        if pa.types.is_decimal(type_):
            return pa.decimal128(min(type_.precision + 4, 38), min(type_.scale + 4, 38))
        return type_ if pa.types.is_duration(type_) else pa.float64()

    def finish(self, totals: np.ndarray, counts: np.ndarray, type_: pa.DataType, result: pa.DataType) -> Column:
        if pa.types.is_floating(result):
            return Column(_divide(totals, counts), result, present(counts))
        unit = 1
        if pa.types.is_decimal(result):
            _check_digits(self, totals, pa.decimal128(min(type_.precision + 10, 38), type_.scale))
            unit = 10 ** (result.scale - type_.scale)
        means = np.empty(len(totals), object)
        means[:] = [_half_up(int(t) * unit, max(int(n), 1)) for t, n in zip(totals, counts, strict=True)]
        if pa.types.is_decimal(result):
            _check_digits(self, means, result)
            return Column(means, result, present(counts))
        return Column(means.astype(np.int64), result, present(counts))


class TrySum(Sum):
    """The sum of the values that are not null; null when there are none, or when it does not fit its type.

    As ``sum``, which raises where this is null. Only the total of a window counts, not one on the way to it.

    Parameters
    ----------
    column : str, optional
        A column of numbers or durations. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> total = TrySum("v").bind(pa.int64())
    >>> total.lower((np.array([2**63, 7], object), np.array([2, 1]))).to_pylist()
    [None, 7]
    """

    name = "try_sum"

    def finish(self, totals: np.ndarray, counts: np.ndarray, type_: pa.DataType, result: pa.DataType) -> Column:
        limits = _digits_of(result) if pa.types.is_decimal(result) else (exact.INT64_MIN, exact.INT64_MAX)
        return super().finish(*_only_fitting(totals, counts, limits), type_, result)


class TryAvg(Avg):
    """The mean of the values that are not null; null when there are none, or when it does not fit its type.

    As ``avg``, which raises where this is null; that happens to decimals only.

    Parameters
    ----------
    column : str, optional
        A column of numbers or durations. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> mean = TryAvg()
    >>> mean.lower(mean.combine(mean.lift(2), mean.lift(5)))
    3.5
    """

    name = "try_avg"

    def finish(self, totals: np.ndarray, counts: np.ndarray, type_: pa.DataType, result: pa.DataType) -> Column:
        if pa.types.is_decimal(result):
            totals, counts = _only_fitting(totals, counts, _digits_of(Sum().result_type(type_)))
            # What rounds to a number of too many digits is as large as that number is.
            shift = 10 ** (result.scale - type_.scale)
            low, high = _digits_of(result)
            means = np.array(
                [_half_up(t * shift, max(n, 1)) for t, n in zip(totals, counts.tolist(), strict=True)], object
            )
            counts = np.where((means >= low) & (means <= high), counts, 0)
            totals = np.where(counts > 0, totals, 0)
        return super().finish(totals, counts, type_, result)


def _only_fitting(totals: np.ndarray, counts: np.ndarray, limits: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Totals and counts, both 0 where the total is beyond the limits."""
    if totals.dtype != object:
        return totals, counts
    fits = np.array([limits[0] <= total <= limits[1] for total in totals.tolist()], bool)
    return np.where(fits, totals, 0), np.where(fits, counts, 0)


def _digits_of(type_: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest unscaled value of a decimal type."""
    return 1 - 10**type_.precision, 10**type_.precision - 1


def fitting_sums(aggregate: Aggregate, totals: np.ndarray, counts: np.ndarray, result: pa.DataType) -> Column:
    """Totals as results, null where nothing was counted; an error where one does not fit the type."""
    if totals.dtype != object:
        return Column(totals, result, present(counts))
    if pa.types.is_decimal(result):
        _check_digits(aggregate, totals, result)
    else:
        totals = exact.shrink(totals)
        if totals.dtype == object:
            worst = next(t for t in totals if not exact.INT64_MIN <= t <= exact.INT64_MAX)
            raise _overflow(aggregate, worst, "a 64-bit integer")
    return Column(totals, result, present(counts))


def _divide(totals: np.ndarray, counts: np.ndarray) -> np.ndarray:
    divisors = np.maximum(counts, 1)
    if totals.dtype != object:
        if totals.dtype == np.float64 or max(-int(totals.min(initial=0)), int(totals.max(initial=0))) <= 2**53:
            means: np.ndarray = totals / divisors
            return means
        totals = totals.astype(object)
    # Beyond 2**53 Python's division rounds once where NumPy would round twice, so a mean does not depend on whether
    # its neighbours in the array overflowed.
    exact_means: np.ndarray = totals / divisors.astype(object)
    return exact_means.astype(np.float64)


def _half_up(numerator: int, denominator: int) -> int:
    quotient = (2 * abs(numerator) + denominator) // (2 * denominator)
    return quotient if numerator >= 0 else -quotient


def _check_digits(aggregate: Aggregate, unscaled: np.ndarray, type_: pa.DataType) -> None:
    limit = 10**type_.precision
    for value in unscaled.tolist():
        if not -limit < value < limit:
            raise _overflow(aggregate, _EXACT.scaleb(decimal.Decimal(value), -type_.scale), str(type_))


def _overflow(aggregate: Aggregate, value: Any, type_: str) -> OverflowInWindowError:
    before, after = overflow_text(aggregate, type_)
    return OverflowInWindowError(f"{before}{value}{after}")


def overflow_text(aggregate: Aggregate, type_: str) -> tuple[str, str]:
    """The message about a window whose total does not fit: the text before the total, and the text after it."""
    of = f" of column {aggregate.columns[0]!r}" if aggregate.columns else ""
    return (
        f"`{aggregate.name}`{of} does not fit in {type_}: a window gives ",
        "; cast the column to a wider type, such as a decimal with fewer decimals or double",
    )


class _TotalsMonoid(Monoid):
    """Two parts: the total, and the number of its values."""

    aggregate: _Totals
    kept_as = ("total", "values")

    def __init__(self, aggregate: _Totals, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, valid = columns[0].values, columns[0].valid
        if valid is None:
            return values, np.ones(len(values), np.int64)
        return np.where(valid, values, self.identity[0]), valid.astype(np.int64)

    def lower(self, parts: Parts) -> Column:
        return self.aggregate.finish(parts[0], parts[1], self.types[0], self.result)


class FloatTotals(_TotalsMonoid):
    """Sums of doubles. An infinity or a NaN in a window is its answer, as in Spark, so NumPy's warnings are off."""

    identity = (0.0, 0)
    dtypes = (_FLOAT64, _INT64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return a[0] + b[0], a[1] + b[1]

    def invert(self, a: Parts, b: Parts) -> Parts:
        counts = a[1] - b[1]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(counts == 0, 0.0, a[0] - b[0]), counts

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(parts[0], starts), np.add.reduceat(parts[1], starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        if columns[0].valid is not None:
            return self.fold(self.lift(columns, times), starts)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(columns[0].values, starts), segment_lengths(starts, len(times))

    def scan(self, parts: Parts) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return parts[0].cumsum(), parts[1].cumsum()


class IntTotals(_TotalsMonoid):
    """Sums of integers: int64, or Python ints where those are not enough (see :mod:`slicewise.aggregates.exact`)."""

    identity = (0, 0)
    dtypes = (_INT64, _INT64)
    exact = True

    def __init__(self, aggregate: _Totals, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        # A sum of 32-bit integers cannot overflow before there are 2**31 of them, so no bound needs to be computed.
        narrow = pa.types.is_integer(types[0]) and types[0].bit_width < 64
        self._magnitude = 2 ** types[0].bit_width if narrow else None

    def combine(self, a: Parts, b: Parts) -> Parts:
        return exact.add(a[0], b[0]), a[1] + b[1]

    def invert(self, a: Parts, b: Parts) -> Parts:
        return exact.subtract(a[0], b[0]), a[1] - b[1]

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return exact.fold(parts[0], starts), np.add.reduceat(parts[1], starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        values, valid = columns[0].values, columns[0].valid
        if valid is None:
            return exact.fold(values, starts, self._magnitude), segment_lengths(starts, len(values))
        totals = exact.fold(np.where(valid, values, 0), starts, self._magnitude)
        return totals, np.add.reduceat(valid, starts, dtype=np.int64)

    def scan(self, parts: Parts) -> Parts:
        return exact.scan(parts[0]), parts[1].cumsum()


class DecimalTotals(_TotalsMonoid):
    """Sums of decimals: unscaled Python ints, always exact."""

    identity = (0, 0)
    dtypes = (_OBJECT, _INT64)
    exact = True

    def scaled_by(self) -> tuple[int | None, ...]:
        return 0, None

    def combine(self, a: Parts, b: Parts) -> Parts:
        return a[0] + b[0], a[1] + b[1]

    def invert(self, a: Parts, b: Parts) -> Parts:
        return a[0] - b[0], a[1] - b[1]

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return np.add.reduceat(parts[0], starts), np.add.reduceat(parts[1], starts)

    def scan(self, parts: Parts) -> Parts:
        return np.add.accumulate(parts[0]), parts[1].cumsum()
