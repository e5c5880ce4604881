"""Picks: aggregates whose answer is the value of one row, the first, the last, or the one where another column peaks.

Scalar versions go by position: ``combine(a, b)`` has ``a`` before ``b``. The array partials carry the event time of
the row they picked and go by that, so that late rows can be combined into a partial that is already there; equal times
go by position or, where rows have none, by the value: of rows that tie, all but the last pick the smallest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, take_parts
from slicewise.aggregates.bests import PeaksMonoid
from slicewise.aggregates.checks import OneColumn, check_column, check_k, from_first, need_orderable, need_types
from slicewise.aggregates.exact import INT64_MAX, INT64_MIN
from slicewise.aggregates.order import larger, smaller
from slicewise.aggregates.ordering import order_key, order_keys
from slicewise.columns import Column, physical_dtype
from slicewise.errors import AggregateError
from slicewise.kernels import segment_lengths

__all__ = ["AnyValue", "First", "Last", "MaxBy", "MinBy"]

NO_ROWS = np.empty(0, np.int64)
_BOOL = np.dtype(bool)
_INT64 = np.dtype(np.int64)


class _ByPosition(OneColumn):
    timed = True
    kind = "distributive"
    skips_nulls = False
    identity = ()

    def __init__(self, column: str | None = None, ignorenulls: bool = False) -> None:
        super().__init__(column)
        if not isinstance(ignorenulls, bool):
            raise AggregateError(f"`ignorenulls` of `{self.name}` must be True or False; got {ignorenulls!r}")
        self.ignorenulls = self.skips_nulls = ignorenulls

    def parameters(self) -> tuple[Any, ...]:
        return (True,) if self.ignorenulls else ()

    def lift(self, *values: Any) -> tuple[Any, ...]:
        return (values[0],)

    def lower(self, partial: tuple[Any, ...]) -> Any:
        return partial[0] if partial else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return types[0]

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        return PositionMonoid(self, types, last=isinstance(self, Last), skips_nulls=self.ignorenulls)


class First(_ByPosition):
    """The value of the first row in event-time order, also when it is null. Also called ``first_value``.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    ignorenulls : bool
        Take the first value that is not null.

    Examples
    --------
    >>> first = First()
    >>> first.lower(first.combine(first.lift("a"), first.lift("b")))
    'a'
    """

    name = "first"
    selective = True

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a or b


class AnyValue(_ByPosition):
    """Some value; here the first in event-time order, also when it is null, so that the same rows give the same answer.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    ignorenulls : bool
        Take the first value that is not null.

    Examples
    --------
    >>> some = AnyValue()
    >>> some.lower(some.combine(some.lift("a"), some.lift("b")))
    'a'
    """

    name = "any_value"
    selective = True

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a or b


class Last(_ByPosition):
    """The value of the last row in event-time order, also when it is null. Also called ``last_value``.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    ignorenulls : bool
        Take the last value that is not null.

    Examples
    --------
    >>> last = Last()
    >>> last.lower(last.combine(last.lift("a"), last.lift("b")))
    'b'
    """

    name = "last"
    selective = True

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return b or a


class _By(Aggregate):
    selective = True
    timed = True
    kind = "algebraic"
    # A null `by` leaves the row out, a null value does not: `lift` sees to that itself.
    skips_nulls = False
    identity = ()

    def __init__(self, value: str | None = None, by: str | None = None, k: int | None = None) -> None:
        if (value is None) != (by is None):
            raise AggregateError(
                f"`{self.name}` takes two columns, `value` and `by`; got value={value!r}, by={by!r}: give both"
            )
        super().__init__(*check_column(self.name, "value", value), *check_column(self.name, "by", by))
        self.k = None if k is None else check_k(self.name, k)
        if k is not None:
            self.selective = False

    def parameters(self) -> tuple[Any, ...]:
        return () if self.k is None else (self.k,)

    def lift(self, *values: Any) -> tuple[Any, ...]:
        value, by = values
        row = () if by is None else (by, value)
        return row if self.k is None or not row else (row,)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not a or not b:
            return a or b
        if self.k is not None:
            best_first = sorted(a + b, key=lambda row: order_key(row[0]), reverse=isinstance(self, MaxBy))
            return tuple(best_first[: self.k])
        return a if self._pick(a[0], b[0]) is a[0] else b

    def _pick(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def lower(self, partial: tuple[Any, ...]) -> Any:
        if not partial:
            return None
        return partial[1] if self.k is None else [value for _, value in partial]

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return types[0] if self.k is None else pa.list_(types[0])

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 2)
        need_orderable(self, types[1], 1)
        if self.k is not None:
            return PeaksMonoid(self, types, self.k, largest=isinstance(self, MaxBy))
        return PeakMonoid(self, types, types[1], types[:1], largest=isinstance(self, MaxBy))


class MaxBy(_By):
    """The value of the row where ``by`` is largest (ArgMax), the first of them in event-time order on ties.

    Rows whose ``by`` is null are left out; the value may be of any type, and null. Spark's ``max_by`` leaves open which
    row wins a tie.

    Parameters
    ----------
    value : str, optional
        The column of the answer, of any type. Without columns, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    by : str, optional
        The column that is compared: numbers, text, bytes, dates or times.
    k : int, optional
        Give a list of the values of the ``k`` best rows, best first; null for none.

    Examples
    --------
    >>> winner = MaxBy()
    >>> winner.lower(winner.combine(winner.lift("ann", 3), winner.lift("bob", 8)))
    'bob'
    """

    name = "max_by"

    def _pick(self, a: Any, b: Any) -> Any:
        return larger(a, b)


class MinBy(_By):
    """The value of the row where ``by`` is smallest (ArgMin), the first of them in event-time order on ties.

    Rows whose ``by`` is null are left out; the value may be of any type, and null. Spark's ``min_by`` leaves open which
    row wins a tie.

    Parameters
    ----------
    value : str, optional
        The column of the answer, of any type. Without columns, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    by : str, optional
        The column that is compared: numbers, text, bytes, dates or times.
    k : int, optional
        Give a list of the values of the ``k`` best rows, best first; null for none.

    Examples
    --------
    >>> loser = MinBy()
    >>> loser.lower(loser.combine(loser.lift("ann", 3), loser.lift("bob", 8)))
    'ann'
    """

    name = "min_by"

    def _pick(self, a: Any, b: Any) -> Any:
        return smaller(a, b)


class PickMonoid(Monoid):
    """Partials are rows: combining keeps one of two, folding keeps one of a segment."""

    exact = True
    #: The number of the part that holds a partial's value, the next one being whether it is not null; None without one.
    value: int | None = None
    _by_value = False

    def break_ties_by_value(self) -> None:
        self._by_value = self.value is not None

    def _smaller(self, a: Parts, b: Parts, tied: np.ndarray) -> np.ndarray:
        """Which of some partials ``b`` have a smaller value than ``a``, a null being the smallest."""
        assert self.value is not None
        values, some = (np.concatenate([a[place][tied], b[place][tied]]) for place in (self.value, self.value + 1))
        keys, n = order_keys(values, some, self.value_type), len(tied)
        return some[:n] & (~some[n:] | (keys[n:] < keys[:n]))

    def _outermost(self, parts: Parts, hits: np.ndarray, starts: np.ndarray, *, last: bool = False) -> np.ndarray:
        """Of the rows at ``hits``, in each segment that has any the one with the smallest value, or the largest."""
        segment = np.searchsorted(starts, hits, "right") - 1
        if (segment[1:] == segment[:-1]).any():
            assert self.value is not None
            values, some = parts[self.value][hits], parts[self.value + 1][hits]
            keys = np.where(some, order_keys(values, some, self.value_type), 0)
            order = np.lexsort((keys, some, segment))
            hits, segment = hits[order], segment[order]
        outer = (
            np.append(segment[1:] != segment[:-1], True) if last else np.insert(segment[1:] != segment[:-1], 0, True)
        )
        outermost: np.ndarray = hits[outer]
        return outermost

    @property
    def value_type(self) -> pa.DataType:
        """The type of the value that is picked."""
        return self.types[0]

    @abstractmethod
    def replaces(self, a: Parts, b: Parts) -> np.ndarray:
        """Where ``b`` is picked and not ``a``."""

    @abstractmethod
    def pick(self, parts: Parts, starts: np.ndarray) -> np.ndarray:
        """The index of the row picked in each segment."""

    def combine(self, a: Parts, b: Parts) -> Parts:
        replaced = self.replaces(a, b)
        return tuple(np.where(replaced, y, x) for x, y in zip(a, b, strict=True))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return take_parts(parts, self.pick(parts, starts))


class PositionMonoid(PickMonoid):
    """Three parts: the event time of the row, its value, and whether that is not null."""

    value = 1

    def __init__(
        self, aggregate: Aggregate, types: Sequence[pa.DataType], *, last: bool, skips_nulls: bool = False
    ) -> None:
        super().__init__(aggregate, types)
        self.result = types[0]
        self.identity = (INT64_MIN if last else INT64_MAX, filler(types[0]), False)
        self.dtypes = (_INT64, physical_dtype(types[0]), _BOOL)
        self._last, self._skips_nulls = last, skips_nulls

    def scaled_by(self) -> tuple[int | None, ...]:
        return None, 0, None

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        column = columns[0]
        if self._skips_nulls and column.valid is not None:
            times = np.where(column.valid, times, self.identity[0])
        return times, column.values, column.mask

    def replaces(self, a: Parts, b: Parts) -> np.ndarray:
        replaced: np.ndarray = b[0] >= a[0] if self._last else b[0] < a[0]
        tied = np.flatnonzero(b[0] == a[0]) if self._by_value else NO_ROWS
        if len(tied):
            smaller = self._smaller(a, b, tied)
            replaced[tied] = ~smaller if self._last else smaller
        return replaced

    def pick(self, parts: Parts, starts: np.ndarray) -> np.ndarray:
        times = parts[0]
        if self._by_value:
            return self._pick_by_value(parts, starts)
        if self._last:
            ends = starts + segment_lengths(starts, len(times)) - 1
            latest = np.maximum.reduceat(times, starts)
            # Rows mostly come in order: then the last one is picked, without a search.
            return ends if (latest == times[ends]).all() else _find(times, latest, starts, last=True)
        earliest = np.minimum.reduceat(times, starts)
        return starts if (earliest == times[starts]).all() else _find(times, earliest, starts, last=False)

    def _pick_by_value(self, parts: Parts, starts: np.ndarray) -> np.ndarray:
        offset = starts[0] if len(starts) else 0
        starts, times, values, some = from_first(starts, *parts)
        outer = (np.maximum if self._last else np.minimum).reduceat(times, starts)
        hits = np.flatnonzero(times == np.repeat(outer, segment_lengths(starts, len(times))))
        return self._outermost((times, values, some), hits, starts, last=self._last) + offset

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        if self._skips_nulls and columns[0].valid is not None:
            return self.fold(self.lift(columns, times), starts)
        index = self.pick((times, columns[0].values, columns[0].mask), starts)
        column = columns[0].take(index)
        return times[index], column.values, column.mask

    def lower(self, parts: Parts) -> Column:
        return Column(parts[1], self.result, None if parts[2].all() else parts[2])


class PeakMonoid(PickMonoid):
    """Three parts, ``by``, event time, whether there is a row; and two per payload, value, whether it is not null.

    ``by`` is the last of the columns.
    """

    def __init__(
        self,
        aggregate: Aggregate,
        types: Sequence[pa.DataType],
        by: pa.DataType,
        payload: Sequence[pa.DataType],
        *,
        largest: bool,
    ) -> None:
        super().__init__(aggregate, types)
        self.result = payload[0] if payload else by
        self.identity = (filler(by), INT64_MAX, False)
        self.dtypes = (physical_dtype(by), _INT64, _BOOL)
        for type_ in payload:
            self.identity = (*self.identity, filler(type_), False)
            self.dtypes = (*self.dtypes, physical_dtype(type_), _BOOL)
        self._largest = largest
        self.value = 3 if payload else None

    def scaled_by(self) -> tuple[int | None, ...]:
        payload = (len(self.dtypes) - 3) // 2
        return len(self.types) - 1, None, None, *(x for i in range(payload) for x in (i, None))

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        *payload, by = columns
        if by.valid is not None:
            times = np.where(by.valid, times, INT64_MAX)
        parts: Parts = (by.values, times, by.mask)
        for column in payload:
            parts = (*parts, column.values, column.mask if by.valid is None else column.mask & by.valid)
        return parts

    def replaces(self, a: Parts, b: Parts) -> np.ndarray:
        n = len(a[0])
        keys = order_keys(np.concatenate([a[0], b[0]]), np.concatenate([a[2], b[2]]))
        x, y = (keys[:n], keys[n:]) if self._largest else (keys[n:], keys[:n])
        replaced: np.ndarray = b[2] & (~a[2] | (y > x) | ((y == x) & (b[1] < a[1])))
        tied = np.flatnonzero(a[2] & b[2] & (y == x) & (b[1] == a[1])) if self._by_value else NO_ROWS
        if len(tied):
            replaced[tied] = self._smaller(a, b, tied)
        return replaced

    def pick(self, parts: Parts, starts: np.ndarray) -> np.ndarray:
        offset = starts[0] if len(starts) else 0
        starts, by, times, some = from_first(starts, *parts[:3])
        lengths = segment_lengths(starts, len(by))
        ufunc, worst = (np.maximum, INT64_MIN) if self._largest else (np.minimum, INT64_MAX)
        keys = np.where(some, order_keys(by, some), worst)
        hits = some & (keys == np.repeat(ufunc.reduceat(keys, starts), lengths))
        earliest = np.minimum.reduceat(np.where(hits, times, INT64_MAX), starts)
        peaks = np.flatnonzero(hits & (times == np.repeat(earliest, lengths)))
        if self._by_value and len(peaks):
            peaks = self._outermost(tuple(p[offset:] for p in parts), peaks, starts)
        index: np.ndarray = _first_hits(peaks, starts, lengths) + offset
        return index

    def lower(self, parts: Parts) -> Column:
        return Column(parts[3], self.result, None if parts[4].all() else parts[4])


def filler(type_: pa.DataType) -> Any:
    """The filler of a column, which stands where there is no value."""
    dtype = physical_dtype(type_)
    return None if dtype.hasobject else dtype.type(0).item()


def _find(times: np.ndarray, wanted: np.ndarray, starts: np.ndarray, *, last: bool) -> np.ndarray:
    offset = starts[0] if len(starts) else 0
    starts, times = from_first(starts, times)
    lengths = segment_lengths(starts, len(times))
    hits = np.flatnonzero(times == np.repeat(wanted, lengths))
    place = np.searchsorted(hits, starts + lengths) - 1 if last else np.searchsorted(hits, starts)
    index: np.ndarray = hits[place] + offset
    return index


def _first_hits(hits: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    # A segment without a hit has no row to pick: its first partial is as empty as the others.
    if not len(hits):
        return starts
    nearest = hits[np.minimum(np.searchsorted(hits, starts), len(hits) - 1)]
    return np.where((nearest >= starts) & (nearest < starts + lengths), nearest, starts)
