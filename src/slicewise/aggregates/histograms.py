"""Histograms: the distinct values in order and the count of each, and what can be read off them.

One partial serves distinct counts, modes, medians and percentiles. On arrays it is ragged: the values of all slices end
to end, sorted within each, so that slices are merged like sorted runs and no rows are sorted twice. It has an inverse:
counts are subtracted, and what is counted no more is gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.arithmetic import Sum
from slicewise.aggregates.base import Aggregate, Monoid, Parts, column_of_objects, put_parts, rescaled
from slicewise.aggregates.checks import (
    OneColumn,
    check_column,
    check_k,
    from_first,
    need_numbers,
    need_orderable,
    need_types,
    present,
)
from slicewise.aggregates.ordering import order_key, order_keys
from slicewise.columns import Column, physical_dtype
from slicewise.errors import AggregateError
from slicewise.kernels import order_within, segment_lengths, segment_starts
from slicewise.ragged import Ragged

__all__ = ["CountDistinct", "Histogram", "HistogramMonoid", "Mode", "MostFrequent", "OfHistogram", "Run", "SumDistinct"]

_INT64 = np.dtype(np.int64)
_REQUIRED: Any = object()
#: Decimals of so many digits are held as integers of 64 bits.
_LONG_DIGITS = 18

#: A histogram of single values: pairs of a value and its count, by value.
Run = tuple[tuple[Any, int], ...]


class OfHistogram(Aggregate):
    """An aggregate that is read off a histogram of its columns. Rows with a null in one of them do not count."""

    commutative = True
    invertible = True
    kind = "holistic"
    identity: Run = ()

    def lift(self, *values: Any) -> Run:
        return ((_plain_zero(values[0]) if len(values) == 1 else tuple(map(_plain_zero, values)), 1),)

    def combine(self, a: Run, b: Run) -> Run:
        merged: list[tuple[Any, int]] = []
        last = None
        for value, count in heapq.merge(a, b, key=lambda run: order_key(run[0])):
            key = order_key(value)
            if merged and key == last:
                merged[-1] = (merged[-1][0], merged[-1][1] + count)
            else:
                merged.append((value, count))
            last = key
        return tuple(run for run in merged if run[1])

    def invert(self, a: Run, b: Run) -> Run:
        return self.combine(a, tuple((value, -count) for value, count in b))

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        """The results of histograms."""
        raise NotImplementedError


def _plain_zero(value: Any) -> Any:
    """-0.0 is 0.0, in every histogram."""
    return 0.0 if isinstance(value, float) and value == 0.0 else value


class HistogramMonoid(Monoid):
    """One ragged part: the distinct values in order, a column for each of the aggregate's, and the count of each.

    Runtime complexity: O(d log d) for d values to make partials or to merge them, in array steps.
    """

    aggregate: OfHistogram
    exact = True
    identity = ((),)
    kept_as = ("histogram",)

    def __init__(self, aggregate: OfHistogram, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types) or pa.null()
        self._held = [*map(_held_dtype, types), _INT64]
        self.dtypes = (Ragged.none(0, self._held).dtype,)

    def identities(self, n: int) -> Parts:
        return (Ragged.none(n, self._held),)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        valid = _all_valid(columns, len(times))
        held = [_held(column)[valid] for column in columns]
        counts = np.ones(len(held[0]), np.int64)
        return (Ragged(valid.astype(np.int64), *held, counts),)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        starts, valid, *held = from_first(starts, _all_valid(columns, len(times)), *map(_held, columns))
        lengths = segment_lengths(starts, len(valid))
        if not valid.all():
            kept = np.concatenate([[0], np.cumsum(valid)])
            lengths = kept[starts + lengths] - kept[starts]
            held = [values[valid] for values in held]
        return (self._grouped(Ragged(lengths, *held)),)

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = len(a[0])
        by_pairs = np.arange(2 * n).reshape(2, n).T.reshape(-1)
        return self.fold((Ragged.concat([a[0], b[0]])[by_pairs],), np.arange(0, 2 * n, 2))

    def invert(self, a: Parts, b: Parts) -> Parts:
        *values, counts = b[0].columns
        (runs,) = self.combine(a, (Ragged(b[0].lengths, *values, -counts),))
        if runs.columns[-1].all():
            return (runs,)
        kept = runs.columns[-1] != 0
        so_far = np.concatenate([[0], np.cumsum(kept)])
        lengths = so_far[runs.starts + runs.lengths] - so_far[runs.starts]
        return (Ragged(lengths, *(column[kept] for column in runs.columns)),)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        runs = parts[0]
        if not len(starts):
            return self.identities(0)
        if starts[0]:
            runs, starts = runs[int(starts[0]) :], starts - starts[0]
        if len(starts) == len(runs):
            return (runs,)
        return (self._grouped(Ragged(np.add.reduceat(runs.lengths, starts), *runs.columns)),)

    def _grouped(self, rows: Ragged) -> Ragged:
        """Rows of values and counts, or of values alone, as histograms: sorted, and each value once."""
        counts = rows.columns[len(self.types)] if len(rows.columns) > len(self.types) else None
        values = rows.columns[: len(self.types)]
        if not len(values[0]):
            return Ragged(rows.lengths, *values, np.empty(0, np.int64))
        entry = np.repeat(np.arange(len(rows)), rows.lengths)
        keys = self.value_keys(values)
        order = order_within(entry, keys)
        if order is not None:  # within an entry, so that the entries of rows stay as they are
            values, keys = tuple(v[order] for v in values), keys[order]
            counts = None if counts is None else counts[order]
        heads = segment_starts((entry[1:] != entry[:-1]) | (keys[1:] != keys[:-1]))
        if len(heads) == len(keys):
            return Ragged(rows.lengths, *values, np.ones(len(keys), np.int64) if counts is None else counts)
        counts = segment_lengths(heads, len(keys)) if counts is None else np.add.reduceat(counts, heads)
        lengths = np.bincount(entry[heads], minlength=len(rows))
        return Ragged(lengths, *(v[heads] for v in values), counts)

    def value_keys(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Integers in the order of values, or of rows of several; equal where these are."""
        some = np.ones(len(values[0]), bool)
        keys = [order_keys(v, some, type_) for v, type_ in zip(values, self.types, strict=True)]
        joined = keys[0]
        for other in keys[1:]:
            left, right = (np.unique(k, return_inverse=True)[1] for k in (joined, other))
            joined = left * (int(right.max(initial=0)) + 1) + right
        return joined

    def lower(self, parts: Parts) -> Column:
        return self.aggregate.read(self, parts[0])

    def column(self, values: np.ndarray, place: int = 0) -> Column:
        """Values of a histogram as a column of the type that they have to the user."""
        type_ = self.types[place]
        return Column(values.astype(object) if pa.types.is_decimal(type_) else values, type_)

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        *values, counts = parts[0].columns
        for i, (name, type_, dtype) in enumerate(zip(self.aggregate.columns, self.types, self._held, strict=False)):
            if pa.types.is_decimal(type_):
                values[i] = _rescaled(values[i], type_.scale, types[name].scale).astype(dtype)
        return (Ragged(parts[0].lengths, *values, counts),)

    def upgraded(self, parts: Parts) -> Parts:
        if len(parts) == 1:
            return parts
        # Up to format 5 each slice had an array of values and one of counts, and decimals were doubles.
        dtypes = [next((values.dtype for values in parts[0]), self._held[0]), _INT64]
        return (Ragged.of_arrays(*parts, dtypes=dtypes),)


def _rescaled(values: np.ndarray, scale: int, old_scale: int) -> np.ndarray:
    """Unscaled decimals of another scale, or doubles with the digits that they show, as unscaled decimals."""
    if values.dtype != np.float64:
        return rescaled(values.astype(object), scale - old_scale) if scale != old_scale else values
    out = np.empty(len(values), object)
    out[:] = [int(Decimal(repr(v)).scaleb(scale).to_integral_value()) for v in values.tolist()]
    return out


def _held_dtype(type_: pa.DataType) -> np.dtype:
    short = pa.types.is_decimal(type_) and type_.precision <= _LONG_DIGITS
    return _INT64 if short else physical_dtype(type_)


def _held(column: Column) -> np.ndarray:
    """The values of a column as histograms hold them."""
    if column.values.dtype == np.float64:
        return column.values + 0.0  # -0.0 becomes 0.0
    if pa.types.is_decimal(column.type) and column.type.precision <= _LONG_DIGITS:
        return column.values.astype(np.int64)
    return column.values


def _all_valid(columns: Sequence[Column], n: int) -> np.ndarray:
    """Which rows have no null in any column."""
    valid = np.ones(n, bool)
    for column in columns:
        if column.valid is not None:
            valid &= column.valid
    return valid


class Histogram(OneColumn, OfHistogram):
    """How often each value occurs: a map from value to count, by ascending value; an empty one when there are none.

    Nulls are left out. NaN is one key and the largest, -0.0 is 0.0.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).

    Notes
    -----
    Partials grow with the number of distinct values d in a slice; ``count_distinct``, ``mode``, ``median`` and their
    like are read off the same ones. Runtime complexity: O(d log d) to make one or to merge two.

    Examples
    --------
    >>> letters = Histogram()
    >>> letters.lower(letters.combine(letters.lift("b"), letters.combine(letters.lift("a"), letters.lift("b"))))
    {'a': 1, 'b': 2}
    """

    name = "histogram"

    def lower(self, partial: Run) -> dict[Any, int]:
        return dict(partial)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        values, counts = monoid.column(runs.columns[0]).to_pylist(), runs.columns[1].tolist()
        pairs = list(zip(values, counts, strict=True))
        ends = np.cumsum(runs.lengths)
        bounds = zip((ends - runs.lengths).tolist(), ends.tolist(), strict=True)
        return column_of_objects([dict(pairs[start:end]) for start, end in bounds], monoid.result)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.map_(types[0], pa.int64())

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return HistogramMonoid(self, types)


class CountDistinct(OfHistogram):
    """How many different values there are, or different rows of several columns. Rows with a null do not count.

    NaN equals NaN, and -0.0 equals 0.0.

    Parameters
    ----------
    *columns : str
        One column or more, of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Exact. Partials hold the distinct values of a slice with their counts. Runtime complexity: O(d log d) for d of them
    to make one or to merge two; many windows at once are counted without merging (:mod:`slicewise.wavelet`).

    Examples
    --------
    >>> users = CountDistinct("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    name = "count_distinct"

    def __init__(self, *columns: str) -> None:
        super().__init__(*(name for column in columns for name in check_column(self.name, "columns", column)))

    def lower(self, partial: Run) -> int:
        return len(partial)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        return Column(runs.lengths, monoid.result)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, max(len(self.columns), 1))
        return HistogramMonoid(self, types)


class SumDistinct(OneColumn, OfHistogram):
    """The sum of the different values, of the type that ``sum`` has; null when there are none.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Exact for integers and decimals. Partials hold the distinct values of a slice with their counts. Runtime complexity:
    O(d log d) for d of them to make one or to merge two.

    Examples
    --------
    >>> total = SumDistinct()
    >>> total.lower(total.combine(total.lift(7), total.combine(total.lift(2), total.lift(7))))
    9
    """

    name = "sum_distinct"

    def lower(self, partial: Run) -> Any:
        total, values = Sum(), [Sum().lift(value) for value, _ in partial]
        partial_sum: Any = total.identity
        for value in values:
            partial_sum = total.combine(partial_sum, value)
        return total.lower(partial_sum)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        total = _NamedSum(self).bind(*monoid.types)
        some = np.flatnonzero(runs.lengths)
        values = monoid.column(runs.columns[0])
        sums = total.lift_fold([values], np.zeros(len(values), np.int64), runs.starts[some])
        return total.lower(put_parts(total.identities(len(runs)), some, sums))

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return Sum().result_type(*types)

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return HistogramMonoid(self, types)


class _NamedSum(Sum):
    """A sum under the name of another aggregate, which its messages have."""

    def __init__(self, of: Aggregate) -> None:
        super().__init__(*of.columns)
        self.name = of.name


class Mode(OneColumn, OfHistogram):
    """The most frequent value, the least of several; null when there are none.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    deterministic : bool
        As Spark's: True asks for the least of the most frequent values, False takes any of them. Here the answer is the
        least one either way.

    Notes
    -----
    Partials hold the distinct values of a slice with their counts. Runtime complexity: O(d log d) for d of them to make
    one or to merge two.

    Examples
    --------
    >>> mode = Mode()
    >>> mode.lower(mode.combine(mode.lift(7), mode.combine(mode.lift(2), mode.lift(7))))
    7
    """

    name = "mode"

    def __init__(self, column: str | None = None, deterministic: bool = False) -> None:
        super().__init__(column)
        if not isinstance(deterministic, bool):
            raise AggregateError(f"`deterministic` of `mode` must be True or False; got {deterministic!r}")

    def lower(self, partial: Run) -> Any:
        most = max((count for _, count in partial), default=0)
        return next((value for value, count in partial if count == most), None)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        place = most_frequent_first(runs, 1)
        out = np.zeros(len(runs), runs.columns[0].dtype)
        out[np.flatnonzero(runs.lengths)] = runs.columns[0][place.columns[0]]
        column = monoid.column(out)
        return Column(column.values, column.type, present(runs.lengths))

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return types[0]

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return HistogramMonoid(self, types)


class MostFrequent(OneColumn, OfHistogram):
    """The ``k`` most frequent values with their counts, most frequent first, then by ascending value.

    An array of structs of ``value`` and ``count``, empty when there are no values; nulls are left out.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    k : int
        How many values are wanted.

    Notes
    -----
    Partials hold the distinct values of a slice with their counts. Runtime complexity: O(d log d) for d of them to make
    one or to merge two.

    Examples
    --------
    >>> top = MostFrequent(k=1)
    >>> top.lower(top.combine(top.lift("b"), top.combine(top.lift("a"), top.lift("b"))))
    [{'value': 'b', 'count': 2}]
    """

    name = "most_frequent"

    def __init__(self, column: str | None = None, k: int = _REQUIRED) -> None:
        super().__init__(column)
        self.k = check_k(self.name, k, missing=k is _REQUIRED)

    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    def lower(self, partial: Run) -> list[dict[str, Any]]:
        best = sorted(partial, key=lambda run: -run[1])[: self.k]
        return [{"value": value, "count": count} for value, count in best]

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        place = most_frequent_first(runs, self.k)
        at = place.columns[0]
        values, counts = monoid.column(runs.columns[0][at]).to_pylist(), runs.columns[1][at].tolist()
        best = [{"value": value, "count": count} for value, count in zip(values, counts, strict=True)]
        ends = np.cumsum(place.lengths)
        bounds = zip((ends - place.lengths).tolist(), ends.tolist(), strict=True)
        return column_of_objects([best[start:end] for start, end in bounds], monoid.result)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(pa.struct([("value", types[0]), ("count", pa.int64())]))

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return HistogramMonoid(self, types)


def most_frequent_first(runs: Ragged, k: int) -> Ragged:
    """Where the ``k`` most frequent values of each histogram stand in it, the smaller value first of equal ones.

    >>> most_frequent_first(Ragged(np.array([3, 1]), np.array([5, 7, 8, 1]), np.array([1, 4, 4, 2])), 2).tolist()
    [[1, 2], [3]]
    """
    entry = np.repeat(np.arange(len(runs)), runs.lengths)
    order = np.lexsort((-runs.columns[-1], entry))
    nth = np.arange(len(order)) - runs.starts[entry]
    return Ragged(np.minimum(runs.lengths, k), order[nth < k])
