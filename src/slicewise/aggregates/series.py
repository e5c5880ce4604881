"""Time series: what goes from each row to the next. Time-weighted averages, and counters: their increase and its rate.

A partial is a *chain*: its first and its last row, each with its time and value, and the sum of its *links*, one
between each two neighbouring rows. Two chains become one by the link from the last row of the first to the first row of
the second. So rows must come in order; where they do not, the engine keeps them.
"""

from __future__ import annotations

import decimal
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates import exact
from slicewise.aggregates.arithmetic import Sum, fitting_sums
from slicewise.aggregates.base import Monoid, Parts, fold_pairwise
from slicewise.aggregates.checks import OneColumn, as_float64, from_first, need_numbers, need_types
from slicewise.amounts import UNITS
from slicewise.columns import Column, physical_dtype
from slicewise.kernels import segment_lengths

__all__ = ["Increase", "Rate", "TimeWeightedAvg"]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


class _Chain(OneColumn):
    """Rows in order: how many, the sum of links, the first value and the last one. Times are positions."""

    kind = "algebraic"
    identity = (0, 0, None, None)

    def lift(self, *values: Any) -> tuple[Any, ...]:
        return 1, 0, values[0], values[0]

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not a[0] or not b[0]:
            return a if a[0] else b
        # Python's own context would round long decimals.
        with decimal.localcontext(decimal.Context(prec=200)):
            return a[0] + b[0], a[1] + self.link(a[3], b[2]) + b[1], a[2], b[3]

    def link(self, before: Any, value: Any) -> Any:
        """What two neighbouring rows add."""
        raise NotImplementedError


class TimeWeightedAvg(_Chain):
    """The mean of a column over time, as a double: each value holds until the next row.

    The last value holds until the window's end; in windows whose end only rows tell (sessions, counts, punctuations,
    user windows) until their last row. Null rows are left out, and of rows with equal times the last counts. Null where
    no time passes. Over single values, which have no event time, the times are positions.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    A tank that was at 10 for two seconds and at 40 for eight:

    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), level=sw.time_weighted_avg("v")).operator()
    >>> _ = op.process_batch({"t": [0, 2], "v": [10, 40]})
    >>> next(iter(op.close())).values
    {'level': 34.0}
    """

    name = "time_weighted_avg"

    lasts = True

    def link(self, before: Any, value: Any) -> float:
        return float(before)

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        return partial[1] / (partial[0] - 1) if partial[0] > 1 else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return HoldingMonoid(self, types)


class Increase(_Chain):
    """By how much a counter grew, of the type that ``sum`` gives; 0 for one row, null for none.

    Over neighbouring rows, the value less the one before or, where it is less than that because the counter started
    again, the value itself. Null rows are left out.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> requests = Increase()
    >>> up, reset = requests.combine(requests.lift(10), requests.lift(25)), requests.lift(5)
    >>> requests.lower(up), requests.lower(requests.combine(up, reset))
    (15, 20)
    """

    name = "increase"

    def link(self, before: Any, value: Any) -> Any:
        return value if value < before else value - before

    def lower(self, partial: tuple[Any, ...]) -> Any:
        return partial[1] if partial[0] else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return Sum().result_type(*types)

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return IncreaseMonoid(self, types)


class Rate(Increase):
    """How fast a counter grew, per second, as a double: its increase over the time from its first row to its last.

    Per unit of the time column where that holds integers without a ``unit``. Null rows are left out. Null where no time
    passes. Over single values, which have no event time, the times are positions.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> requests = Rate()
    >>> requests.lower(requests.combine(requests.lift(10), requests.lift(25)))
    15.0
    """

    name = "rate"

    def lower(self, partial: tuple[Any, ...]) -> Any:
        return float(partial[1]) / (partial[0] - 1) if partial[0] > 1 else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return RateMonoid(self, types)


class ChainMonoid(Monoid):
    """Six parts: the number of rows, the sum of links, the time and value of the first row, and those of the last."""

    def __init__(self, aggregate: _Chain, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)
        value = self._value_dtype()
        zero = 0 if value.hasobject else value.type(0).item()
        self.identity = (0, zero, 0, zero, 0, zero)
        self.dtypes = (_INT64, value, _INT64, value, _INT64, value)

    def _value_dtype(self) -> np.dtype:
        return physical_dtype(self.types[0])

    def _values(self, column: Column) -> np.ndarray:
        return column.values if column.valid is None else np.where(column.valid, column.values, self.identity[1])

    @abstractmethod
    def links(self, times: np.ndarray, values: np.ndarray, next_times: np.ndarray, following: np.ndarray) -> np.ndarray:
        """What each row adds with the one that follows it."""

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, some = self._values(columns[0]), columns[0].mask
        when = times if columns[0].valid is None else np.where(some, times, 0)
        nothing = np.full(len(times), self.identity[1], self.dtypes[1])
        return some.astype(np.int64), nothing, when, values, when, values

    def combine(self, a: Parts, b: Parts) -> Parts:
        both = (a[0] + b[0], self._sum(self._sum(a[1], self.links(*a[4:], *b[2:4])), b[1]), *a[2:4], *b[4:])
        no_a, no_b = a[0] == 0, b[0] == 0
        if not (no_a.any() or no_b.any()):
            return both
        return tuple(np.where(no_b, x, np.where(no_a, y, z)) for x, y, z in zip(a, b, both, strict=True))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, *rest = from_first(starts, *parts)
        n, links, first_time, first, last_time, last = rest
        if not len(starts) or not n.all():
            return fold_pairwise(self.combine, tuple(rest), starts)
        lengths = segment_lengths(starts, len(n))
        between = np.full(len(n), self.identity[1], self.dtypes[1])
        inner = self.links(last_time[:-1], last[:-1], first_time[1:], first[1:])
        between = between.astype(np.result_type(between.dtype, inner.dtype), copy=False)
        between[1:] = inner
        between[starts] = self.identity[1]
        ends = starts + lengths - 1
        total = self._folded(self._sum(links, between), starts)
        return np.add.reduceat(n, starts), total, first_time[starts], first[starts], last_time[ends], last[ends]

    def _sum(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            total: np.ndarray = a + b
            return total

    def _folded(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            folded: np.ndarray = np.add.reduceat(values, starts)
            return folded


class HoldingMonoid(ChainMonoid):
    """A link is a value times the time for which it holds."""

    def _value_dtype(self) -> np.dtype:
        return _FLOAT64

    def _values(self, column: Column) -> np.ndarray:
        return as_float64(column)

    def links(self, times: np.ndarray, values: np.ndarray, next_times: np.ndarray, following: np.ndarray) -> np.ndarray:
        passed = next_times - times
        with np.errstate(over="ignore", invalid="ignore"):
            # Not even an infinity counts where it holds for no time.
            return np.where(passed == 0, 0.0, values * passed)

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        n, links, first_time, first, last_time, last = parts
        ends = np.where(n > 0, ends, last_time)
        return n, self._sum(links, self.links(last_time, last, ends, last)), first_time, first, ends, last

    def lower(self, parts: Parts) -> Column:
        passed = parts[4] - parts[2]
        valid = passed != 0
        means = parts[1] / np.where(valid, passed, 1)
        return Column(np.where(valid, means, 0.0), self.result, None if valid.all() else valid)


class IncreaseMonoid(ChainMonoid):
    """A link is the growth of a counter. Integers and decimals are added exactly, see ``exact``."""

    def links(self, times: np.ndarray, values: np.ndarray, next_times: np.ndarray, following: np.ndarray) -> np.ndarray:
        base = np.where(following < values, self.identity[1], values)
        if self.dtypes[1] == _INT64:
            return exact.subtract(following, base)
        with np.errstate(over="ignore", invalid="ignore"):
            grown: np.ndarray = following - base
            return grown

    def _sum(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return exact.add(a, b) if self.dtypes[1] == _INT64 else super()._sum(a, b)

    def _folded(self, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
        if self.dtypes[1] == _INT64:
            return exact.fold(values, starts)
        return super()._folded(values, starts)

    def scaled_by(self) -> tuple[int | None, ...]:
        return None, 0, None, 0, None, 0

    def lower(self, parts: Parts) -> Column:
        return fitting_sums(self.aggregate, parts[1], parts[0], self.result)


class RateMonoid(IncreaseMonoid):
    """The increase, and the time it took."""

    def __init__(self, aggregate: Rate, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self._per = 1

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self._per = UNITS[unit] if pa.types.is_timestamp(type_) else 1

    def lower(self, parts: Parts) -> Column:
        passed = parts[4] - parts[2]
        valid = passed != 0
        # Sums of integers leave 64 bits as Python's, which are no decimals.
        is_decimal = pa.types.is_decimal(self.types[0])
        grown = as_float64(Column(parts[1], self.types[0])) if is_decimal else parts[1].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            rates = grown / (np.where(valid, passed, self._per) / self._per)
        return Column(np.where(valid, rates, 0.0), self.result, None if valid.all() else valid)
