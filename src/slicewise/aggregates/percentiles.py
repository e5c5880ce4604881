"""Percentiles: median and percentile, by merging sorted runs.

A partial is a *run*: the distinct values in order, each with its count, so that a slice of a sensor that repeats itself
is small, and merging slices never sorts rows again.
"""

from __future__ import annotations

import heapq
import math
import numbers
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts, column_of_objects
from slicewise.aggregates.checks import OneColumn, as_float64, from_first, need_numbers, need_types
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.kernels import segment_lengths

__all__ = ["Median", "Percentile"]

_OBJECT = np.dtype(object)
_REQUIRED: Any = object()

Run = tuple[tuple[Any, int], ...]


class Percentile(OneColumn):
    """The value below which a share ``q`` of the values lies, interpolated as Spark's ``percentile``; a double.

    The position in the sorted values is ``q * (n - 1)``; between two values the answer lies on the line between them.
    NaN sorts last. Null when there are no values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    q : float or sequence of float
        A share between 0 and 1, or a list of shares for a list of results.

    Notes
    -----
    Partials hold the distinct values and their counts, so they grow with the number of distinct values d in a slice.
    Runtime complexity: O(d log d) to make one, O(d) to merge two.

    Examples
    --------
    >>> p = Percentile("v", 0.25)
    >>> p.lower(p.combine(p.lift(0), p.lift(10)))
    2.5
    >>> Percentile("v", [0.25, 0.75]).bind(pa.int64()).result
    ListType(list<item: double>)
    """

    name = "percentile"
    commutative = True
    kind = "holistic"
    identity: Run = ()

    def __init__(self, column: str | None = None, q: float | Sequence[float] = _REQUIRED) -> None:
        super().__init__(column)
        self._gives_list = isinstance(q, (list, tuple, np.ndarray))
        shares: list[Any] = list(q) if isinstance(q, (list, tuple, np.ndarray)) else [q]
        if not shares or not all(_is_share(x) for x in shares):
            got = "nothing" if q is _REQUIRED else repr(q)
            raise AggregateError(
                f"`q` of `{self.name}` must be a number from 0 to 1, or a list of them; got {got}: "
                "0.9 is the 90th percentile"
            )
        self.q = tuple(float(x) for x in shares)

    def parameters(self) -> tuple[Any, ...]:
        return (list(self.q) if self._gives_list else self.q[0],)

    def __hash__(self) -> int:
        return hash((type(self), self.columns, self.q, self._gives_list))

    def lift(self, *values: Any) -> Run:
        return ((values[0], 1),)

    def combine(self, a: Run, b: Run) -> Run:
        merged: list[tuple[Any, int]] = []
        for value, count in heapq.merge(a, b, key=lambda run: (run[0] != run[0], run[0])):
            if merged and (merged[-1][0] == value or (merged[-1][0] != merged[-1][0] and value != value)):
                merged[-1] = (merged[-1][0], merged[-1][1] + count)
            else:
                merged.append((value, count))
        return tuple(merged)

    def lower(self, partial: Run) -> Any:
        if not partial:
            return None
        rows = [float(value) for value, count in partial for _ in range(count)]
        results = [_interpolate(rows, q) for q in self.q]
        return results if self._gives_list else results[0]

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(pa.float64()) if self._gives_list else pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return RunsMonoid(self, types)


class Median(Percentile):
    """The middle value, or the mean of the two in the middle; a double, null when there are no values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Partials hold the distinct values and their counts, so they grow with the number of distinct values d in a slice.
    Runtime complexity: O(d log d) to make one, O(d) to merge two.

    Examples
    --------
    >>> median = Median()
    >>> median.lower(median.combine(median.lift(7), median.lift(2)))
    4.5
    """

    name = "median"

    def __init__(self, column: str | None = None) -> None:
        super().__init__(column, 0.5)

    def parameters(self) -> tuple[Any, ...]:
        return ()


def _is_share(x: Any) -> bool:
    return not isinstance(x, bool) and isinstance(x, numbers.Real) and 0.0 <= float(x) <= 1.0


def _interpolate(rows: list[float], q: float) -> float:
    position = (len(rows) - 1) * q
    lower, higher = math.floor(position), math.ceil(position)
    if rows[lower] == rows[higher] or lower == higher:
        return rows[lower]
    # In this form, as Spark has it: the other one rounds differently, and gives a number where infinities meet.
    return rows[lower] + (position - lower) * (rows[higher] - rows[lower])


class RunsMonoid(Monoid):
    """Two parts, both of arrays: the distinct values in order, and the count of each.

    Integers stay integers until the answer, so that large ones stay distinct; decimals become doubles, as all numbers
    do in Spark's percentile.
    """

    aggregate: Percentile
    dtypes = (_OBJECT, _OBJECT)
    exact = True
    kept_as = ("runs", "lengths of runs")

    def __init__(self, aggregate: Percentile, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types)
        dtype = np.int64 if pa.types.is_integer(types[0]) else np.float64
        self.identity = (np.empty(0, dtype), np.empty(0, np.int64))

    def _values(self, column: Column) -> np.ndarray:
        return column.values if self.identity[0].dtype == np.int64 else as_float64(column)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        n = len(times)
        return self.lift_fold(columns, times, np.arange(n))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        column = columns[0]
        starts, values, valid = from_first(starts, self._values(column), column.mask)
        lengths = segment_lengths(starts, len(values))
        if column.valid is not None:
            kept = np.concatenate([[0], np.cumsum(valid)])
            lengths = kept[starts + lengths] - kept[starts]
            values = values[valid]
        return _cut(_sorted(values, lengths), None, lengths)

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = len(a[0])
        pairs = []
        for x, y in zip(a, b, strict=True):
            both = np.empty(2 * n, object)
            both[::2], both[1::2] = x, y
            pairs.append(both)
        return self.fold(tuple(pairs), np.arange(0, 2 * n, 2))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, runs, counts = from_first(starts, *parts)
        if not len(starts):
            return runs, counts
        lengths = np.add.reduceat(_lengths(runs), starts)
        values = np.concatenate(runs)
        order = _order(values, lengths)
        return _cut(values[order], np.concatenate(counts)[order], lengths)

    def lower(self, parts: Parts) -> Column:
        runs, counts = parts
        ends = np.cumsum(_lengths(runs))
        values = np.concatenate([self.identity[0], *runs])
        # The number of rows up to and including each run, over all partials; a 0 before the first.
        rows = np.concatenate([[0], np.cumsum(np.concatenate([self.identity[1], *counts]))])
        before = rows[np.concatenate([[0], ends[:-1]])] if len(ends) else ends
        total = rows[ends] - before
        some = total > 0
        results = np.zeros((len(self.aggregate.q), len(runs)))
        for row, q in zip(results, self.aggregate.q, strict=True):
            row[some] = _at(values, rows[1:], before[some], (total[some] - 1) * q)
        if not self.aggregate._gives_list:
            return Column(results[0], self.result, None if some.all() else some)
        lists = [r if ok else None for r, ok in zip(results.T.tolist(), some.tolist(), strict=True)]
        return column_of_objects(lists, self.result)


def _at(values: np.ndarray, rows: np.ndarray, before: np.ndarray, position: np.ndarray) -> np.ndarray:
    below, above = np.floor(position), np.ceil(position)
    low, high = (
        # Doubles before they are subtracted, as in Spark: integers more than 2**63 apart would wrap around.
        values[np.searchsorted(rows, before + place.astype(np.int64) + 1)].astype(np.float64)
        for place in (below, above)
    )
    with np.errstate(invalid="ignore", over="ignore"):
        between = low + (position - below) * (high - low)
    answers: np.ndarray = np.where((low == high) | (below == above), low, between)
    return answers


def _lengths(runs: np.ndarray) -> np.ndarray:
    return np.fromiter(map(len, runs), np.int64, len(runs))


def _sorted(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sorted within each segment."""
    # NumPy sorts a long array of one kind several times faster than it sorts by two keys.
    if len(values) < 16 * len(lengths):
        return values[np.lexsort((values, np.repeat(np.arange(len(lengths)), lengths)))]
    out = values.copy()
    ends = np.cumsum(lengths)
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        out[start:end].sort()
    return out


def _order(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The index that sorts within each segment."""
    if len(values) < 16 * len(lengths):
        return np.lexsort((values, np.repeat(np.arange(len(lengths)), lengths)))
    out = np.empty(len(values), np.int64)
    ends = np.cumsum(lengths)
    for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True):
        # Stable: it finds the runs that are sorted already and only merges them.
        out[start:end] = start + np.argsort(values[start:end], kind="stable")
    return out


def _cut(values: np.ndarray, counts: np.ndarray | None, lengths: np.ndarray) -> Parts:
    """Sorted segments as runs: equal neighbours become one, and each segment an array of its own."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    new = np.ones(len(values), bool)
    new[1:] = values[1:] != values[:-1]
    if values.dtype == np.float64 and len(values) and np.isnan(values).any():
        new[1:] &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    new[starts[starts < len(values)]] = True
    kept = np.flatnonzero(new)
    cuts = np.searchsorted(kept, np.append(starts, len(values))).tolist()
    values = values[kept]
    counts = segment_lengths(kept, len(new)) if counts is None else np.add.reduceat(counts, kept)
    out = np.empty(len(lengths), object), np.empty(len(lengths), object)
    for i, (start, end) in enumerate(pairwise(cuts)):
        out[0][i], out[1][i] = values[start:end], counts[start:end]
    return out
