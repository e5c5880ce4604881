"""Visual aggregates: what charts are drawn from. M4 for lines, open, high, low and close for candles.

M4 is after Jugel, Jerzak, Hackenbroich and Markl, "M4: A Visualization-Oriented Time Series Data Aggregation" (VLDB
2014): a chart that is as wide as there are windows looks the same drawn from first, last, lowest and highest point of
each window as drawn from all points.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.checks import OneColumn, need_orderable, need_types
from slicewise.aggregates.order import Max, Min, larger, smaller
from slicewise.aggregates.picks import PeakMonoid, PositionMonoid
from slicewise.amounts import to_micros
from slicewise.columns import Column

__all__ = ["M4", "Ohlc", "OhlcMonoid"]

_POINTS = ("first", "last", "min", "max")
_CANDLE = ("open", "high", "low", "close")


class M4(OneColumn):
    """The first, last, smallest and largest value that is not null, each with its event time; null if there are none.

    A struct of ``first, last, min, max`` in the column's type and ``first_time, last_time, min_time, max_time``; where
    the extreme occurs several times, its first occurrence counts. Over single values, which have no event time, the
    times are positions.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> m4 = M4()
    >>> point = m4.combine(m4.combine(m4.lift(5), m4.lift(9)), m4.lift(4))
    >>> m4.lower(point)
    {'first': 5, 'last': 4, 'min': 4, 'max': 9, 'first_time': 0, 'last_time': 2, 'min_time': 2, 'max_time': 1}
    """

    name = "m4"
    timed = shows_time = True
    kind = "algebraic"
    identity = None

    def lift(self, *values: Any) -> tuple[Any, ...]:
        value = values[0]
        return 1, value, value, (value, 0), (value, 0)

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        n = a[0]
        low = a[3] if smaller(a[3][0], b[3][0]) is a[3][0] else (b[3][0], b[3][1] + n)
        high = a[4] if larger(a[4][0], b[4][0]) is a[4][0] else (b[4][0], b[4][1] + n)
        return n + b[0], a[1], b[2], low, high

    def lower(self, partial: Any) -> dict[str, Any] | None:
        if partial is None:
            return None
        n, first, last, low, high = partial
        return _struct((first, last, low[0], high[0]), (0, n - 1, low[1], high[1]))

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return _struct_type(types[0], pa.int64())

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return M4Monoid(self, types)


class M4Monoid(Monoid):
    """Four picks side by side, three parts each."""

    exact = True

    def __init__(self, aggregate: M4, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self._picks: tuple[Monoid, ...] = (
            PositionMonoid(aggregate, types, last=False, skips_nulls=True),
            PositionMonoid(aggregate, types, last=True, skips_nulls=True),
            PeakMonoid(aggregate, types, types[0], (), largest=False),
            PeakMonoid(aggregate, types, types[0], (), largest=True),
        )
        self.identity = tuple(x for pick in self._picks for x in pick.identity)
        self.dtypes = tuple(x for pick in self._picks for x in pick.dtypes)
        self.set_time_type(pa.int64())

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self._time, self._unit = type_, unit if pa.types.is_timestamp(type_) else "microseconds"
        self.result = _struct_type(self.types[0], type_)

    def scaled_by(self) -> tuple[int | None, ...]:
        return tuple(x for pick in self._picks for x in pick.scaled_by())

    def break_ties_by_value(self) -> None:
        for pick in self._picks:
            pick.break_ties_by_value()

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return tuple(x for pick in self._picks for x in pick.lift(columns, times))

    def combine(self, a: Parts, b: Parts) -> Parts:
        return tuple(x for i, pick in enumerate(self._picks) for x in pick.combine(_three(a, i), _three(b, i)))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return tuple(x for i, pick in enumerate(self._picks) for x in pick.fold(_three(parts, i), starts))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return tuple(x for pick in self._picks for x in pick.lift_fold(columns, times, starts))

    def lower(self, parts: Parts) -> Column:
        first_times, firsts, some, last_times, lasts, _, lows, low_times, _, highs, high_times, _ = parts
        valid = None if some.all() else some
        values = [Column(v, self.types[0], valid) for v in (firsts, lasts, lows, highs)]
        times = [
            Column(to_micros(np.where(some, t, 0), self._unit), self._time, valid)
            for t in (first_times, last_times, low_times, high_times)
        ]
        return _StructColumn([*values, *times], self.result, valid)


class Ohlc(OneColumn):
    """The first, largest, smallest and last value that is not null, as a candle shows them; null if there are none.

    A struct of ``open, high, low, close`` in the column's type.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> candle = Ohlc()
    >>> candle.lower(candle.combine(candle.combine(candle.lift(5), candle.lift(9)), candle.lift(4)))
    {'open': 5, 'high': 9, 'low': 4, 'close': 4}
    """

    name = "ohlc"
    timed = True
    kind = "algebraic"
    identity = None

    def lift(self, *values: Any) -> tuple[Any, ...]:
        return (values[0],) * 4

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return a[0], larger(a[1], b[1]), smaller(a[2], b[2]), b[3]

    def lower(self, partial: Any) -> dict[str, Any] | None:
        return None if partial is None else dict(zip(_CANDLE, partial, strict=True))

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.struct([(name, types[0]) for name in _CANDLE])

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return OhlcMonoid(self, types)


class OhlcMonoid(Monoid):
    """The first value, the largest, the smallest and the last side by side; the first and the last with their times."""

    exact = True

    def __init__(self, aggregate: Ohlc, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)
        self.members: tuple[Monoid, ...] = (
            PositionMonoid(aggregate, types, last=False, skips_nulls=True),
            Max(*aggregate.columns).bind(*types),
            Min(*aggregate.columns).bind(*types),
            PositionMonoid(aggregate, types, last=True, skips_nulls=True),
        )
        self.identity = tuple(x for member in self.members for x in member.identity)
        self.dtypes = tuple(x for member in self.members for x in member.dtypes)
        ends = list(accumulate(len(member.dtypes) for member in self.members))
        self._places = tuple(map(slice, [0, *ends], ends))

    def scaled_by(self) -> tuple[int | None, ...]:
        return tuple(x for member in self.members for x in member.scaled_by())

    def break_ties_by_value(self) -> None:
        for member in self.members:
            member.break_ties_by_value()

    def _of_each(self, parts: Parts) -> list[tuple[Monoid, Parts]]:
        return [(member, parts[place]) for member, place in zip(self.members, self._places, strict=True)]

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return tuple(x for member in self.members for x in member.lift(columns, times))

    def combine(self, a: Parts, b: Parts) -> Parts:
        pairs = zip(self._of_each(a), self._of_each(b), strict=True)
        return tuple(x for (member, left), (_, right) in pairs for x in member.combine(left, right))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return tuple(x for member, some in self._of_each(parts) for x in member.fold(some, starts))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return tuple(x for member in self.members for x in member.lift_fold(columns, times, starts))

    def lower(self, parts: Parts) -> Column:
        some = parts[2]  # whether there is a first value that is not null
        fields = [member.lower(held) for member, held in self._of_each(parts)]
        return _StructColumn(fields, self.result, None if some.all() else some)


class _StructColumn(Column):
    """A column of structs that are kept field by field, and become Python's dictionaries only if somebody asks."""

    fields: tuple[Column, ...]

    def __init__(self, fields: Sequence[Column], type_: pa.DataType, valid: np.ndarray | None) -> None:
        vars(self).update(fields=tuple(fields), type=type_, valid=valid)

    @functools.cached_property
    def values(self) -> np.ndarray:
        names = [self.type.field(i).name for i in range(self.type.num_fields)]
        rows = zip(*(field.to_pylist() for field in self.fields), strict=True)
        out = np.empty(len(self), object)
        out[:] = [
            dict(zip(names, row, strict=True)) if ok else None for row, ok in zip(rows, self.mask.tolist(), strict=True)
        ]
        return out

    def __len__(self) -> int:
        return len(self.fields[0])

    def take(self, index: np.ndarray | slice) -> Column:
        valid = None if self.valid is None else self.valid[index]
        return _StructColumn([field.take(index) for field in self.fields], self.type, valid)

    @classmethod
    def concat(cls, columns: Sequence[Any]) -> Column:
        fields = [Column.concat(some) for some in zip(*(column.fields for column in columns), strict=True)]
        full = all(column.valid is None for column in columns)
        return cls(fields, columns[0].type, None if full else np.concatenate([column.mask for column in columns]))

    def to_arrow(self) -> pa.Array:
        types = [self.type.field(i) for i in range(self.type.num_fields)]
        arrays = [field.to_arrow().cast(of.type) for field, of in zip(self.fields, types, strict=True)]
        mask = None if self.valid is None else pa.array(~self.valid)
        return pa.StructArray.from_arrays(arrays, fields=types, mask=mask)


def _three(parts: Parts, i: int) -> Parts:
    return parts[3 * i : 3 * i + 3]


def _struct(values: Sequence[Any], times: Sequence[Any]) -> dict[str, Any]:
    return {
        **dict(zip(_POINTS, values, strict=True)),
        **{f"{point}_time": t for point, t in zip(_POINTS, times, strict=True)},
    }


def _struct_type(value: pa.DataType, time: pa.DataType) -> pa.DataType:
    return pa.struct([(point, value) for point in _POINTS] + [(f"{point}_time", time) for point in _POINTS])
