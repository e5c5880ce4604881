"""Rises: the longest run of neighbouring rows that grow. The monoid "LIS" of the MTA paper.

A partial knows its first and its last run and the longest of all: when two partials meet, only the last run of the one
and the first run of the other can become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts, fold_pairwise
from slicewise.aggregates.checks import OneColumn, from_first, need_orderable, need_types
from slicewise.aggregates.order import larger
from slicewise.aggregates.ordering import order_keys
from slicewise.amounts import to_micros
from slicewise.columns import Column, physical_dtype
from slicewise.kernels import segment_lengths

__all__ = ["LongestRise"]

_INT64 = np.dtype(np.int64)


class LongestRise(OneColumn):
    """The longest run of neighbouring rows each larger than the one before, as a struct; the first of equal length.

    ``start`` and ``end`` are the times of its first and its last row, ``length`` is the number of its rows. Null rows
    are left out; null when there are no others. NaN is larger than any number. Over single values, which have no event
    time, the times are positions.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates or times. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Examples
    --------
    >>> from functools import reduce
    >>> rise = LongestRise()
    >>> rise.lower(reduce(rise.combine, map(rise.lift, [5, 3, 4, 8, 7])))
    {'start': 1, 'end': 3, 'length': 3}
    """

    name = "longest_rise"
    shows_time = True
    kind = "algebraic"
    #: Rows, first and last value, the lengths of the first and the last run, where the longest begins, and its length.
    identity = None

    def lift(self, *values: Any) -> tuple[Any, ...]:
        return 1, values[0], values[0], 1, 1, 0, 1

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        n, first, end, head, tail, at, best = a
        m, begin, last, next_head, next_tail, next_at, next_best = b
        joined = begin != end and larger(begin, end) is begin and not (begin != begin and end != end)
        across = tail + next_head if joined else 0
        if across > best:
            at, best = n - tail, across
        if next_best > best:
            at, best = n + next_at, next_best
        head = n + next_head if joined and head == n else head
        tail = tail + m if joined and next_tail == m else next_tail
        return n + m, first, last, head, tail, at, best

    def lower(self, partial: Any) -> dict[str, int] | None:
        if partial is None:
            return None
        *_, at, best = partial
        return {"start": at, "end": at + best - 1, "length": best}

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return _struct_type(pa.int64())

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return RisesMonoid(self, types)


class RisesMonoid(Monoid):
    """Twelve parts: rows, first and last value, first and last time; length and far end of the first and of the last
    run; length, start and end of the longest."""

    exact = True

    def __init__(self, aggregate: LongestRise, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        dtype = physical_dtype(types[0])
        # Numbers stand as integers of the same order, in which NaN has its place; their values are not asked for.
        held = dtype if dtype.hasobject else _INT64
        blank = _blank(types[0]) if dtype.hasobject else 0
        self.identity = (0, blank, blank, *[0] * 9)
        self.dtypes = (_INT64, held, held, *[_INT64] * 9)
        self.set_time_type(pa.int64())

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self._time, self._unit = type_, unit if pa.types.is_timestamp(type_) else "microseconds"
        self.result = _struct_type(type_)

    def scaled_by(self) -> tuple[int | None, ...]:
        return None, 0, 0, *[None] * 9

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        column = columns[0]
        some, one = column.mask, column.mask.astype(np.int64)
        values = column.values if self.dtypes[1].hasobject else order_keys(column.values, some)
        if column.valid is not None:
            values, times = np.where(some, values, self.identity[1]), np.where(some, times, 0)
        return one, values, values, times, times, one, times, one, times, one, times, times

    def combine(self, a: Parts, b: Parts) -> Parts:
        n, first, end, first_time, _, head, head_end, tail, tail_start, best, start, stop = a
        m, begin, last, _, last_time, next_head, next_end, next_tail, next_start, next_best, later, latest = b
        joined = np.asarray(begin > end, bool)
        across = np.where(joined, tail + next_head, 0)
        longer, whole, through = across > best, joined & (head == n), joined & (next_tail == m)
        best, start, stop = (np.where(longer, *x) for x in ((across, best), (tail_start, start), (next_end, stop)))
        longer = next_best > best
        both = (
            *(n + m, first, last, first_time, last_time),
            *(np.where(whole, n + next_head, head), np.where(whole, next_end, head_end)),
            *(np.where(through, tail + m, next_tail), np.where(through, tail_start, next_start)),
            *(np.where(longer, next_best, best), np.where(longer, later, start), np.where(longer, latest, stop)),
        )
        no_a, no_b = a[0] == 0, b[0] == 0
        if not (no_a.any() or no_b.any()):
            return both
        return tuple(np.where(no_b, x, np.where(no_a, y, z)) for x, y, z in zip(a, b, both, strict=True))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        parts = self.lift(columns, times)
        if columns[0].valid is not None or not len(starts):
            return fold_pairwise(self.combine, parts, starts) if len(starts) else self.identities(0)
        starts, values, when = from_first(starts, parts[1], parts[3])
        lengths, ends = segment_lengths(starts, len(values)), starts + segment_lengths(starts, len(values)) - 1
        begins = np.ones(len(values), bool)
        begins[1:] = ~np.asarray(values[1:] > values[:-1], bool)
        begins[starts] = True
        runs = np.flatnonzero(begins)
        size, first = segment_lengths(runs, len(values)), np.searchsorted(runs, starts)
        best = np.maximum.reduceat(size, first)
        hits = np.flatnonzero(size == np.repeat(best, segment_lengths(first, len(runs))))
        longest, last = hits[np.searchsorted(hits, first)], np.append(first[1:], len(runs)) - 1
        return (
            *(lengths, values[starts], values[ends], when[starts], when[ends]),
            *(size[first], when[starts + size[first] - 1], size[last], when[runs[last]]),
            *(best, when[runs[longest]], when[runs[longest] + best - 1]),
        )

    def lower(self, parts: Parts) -> Column:
        some = parts[0] > 0
        start, end = (Column(to_micros(t, self._unit), self._time).to_pylist() for t in parts[10:])
        out = np.empty(len(some), object)
        rows = zip(start, end, parts[9].tolist(), some.tolist(), strict=True)
        for i, (begin, stop, length, ok) in enumerate(rows):
            out[i] = {"start": begin, "end": stop, "length": length} if ok else None
        return Column(out, self.result, None if some.all() else some)


def _blank(type_: pa.DataType) -> Any:
    """A value that compares with those of a column, where there is none."""
    if pa.types.is_decimal(type_):
        return 0
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    return "" if text else b""


def _struct_type(time: pa.DataType) -> pa.DataType:
    return pa.struct([("start", time), ("end", time), ("length", pa.int64())])
