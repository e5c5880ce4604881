"""Histograms: the distinct values in order and the count of each, and what can be read off them.

One partial serves distinct counts, modes, medians and percentiles. On arrays it is ragged: the values of all slices end
to end, sorted within each, so that slices are merged like sorted runs and no rows are sorted twice. It has an inverse:
counts are subtracted, and what is counted no more is gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, rescaled
from slicewise.aggregates.checks import from_first
from slicewise.aggregates.histogram_ranges import HistogramRanges
from slicewise.aggregates.ordering import order_key, order_keys
from slicewise.columns import Column, physical_dtype
from slicewise.kernels import order_within, segment_lengths, segment_starts
from slicewise.ragged import Ragged

__all__ = ["HistogramMonoid", "OfHistogram", "Run"]

_INT64 = np.dtype(np.int64)
#: Decimals of so many digits are held as integers of 64 bits.
_LONG_DIGITS = 18

#: A histogram of single values: pairs of a value and its count, by value.
Run = tuple[tuple[Any, int], ...]


class OfHistogram(Aggregate):
    """An aggregate that is read off a histogram of its columns. Rows with a null in one of them do not count."""

    commutative = True
    invertible = True
    kind = "holistic"
    #: Ranges of histograms are read off the ranks of their values, without merging any.
    ranked: ClassVar[bool] = False
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

    def read_ranges(self, monoid: HistogramMonoid, ranges: HistogramRanges) -> Column:
        """The results of ranges of histograms; where there is a better way than to make these, a subclass has it."""
        if not len(ranges):
            return self.read(monoid, *monoid.identities(0))
        if not ranges.are_shared:
            return Column.concat([self.read(monoid, *monoid.fold((r,), starts)) for r, starts in ranges.to_merge()])
        made = [(index, self.read(monoid, runs)) for index, runs in ranges.histograms(monoid.value_keys)]
        index = np.concatenate([index for index, _ in made])
        place = np.empty_like(index)
        place[index] = np.arange(len(index))
        return Column.concat([column for _, column in made]).take(place)


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

    def of_lists(self, lengths: np.ndarray, columns: Sequence[Column]) -> Parts:
        """A partial for each list of rows without nulls; the lists are so long, and stand end to end."""
        return (self._grouped(Ragged(lengths, *map(_held, columns))),)

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

    def over_ranges(self, parts: Parts, low: np.ndarray, high: np.ndarray) -> Parts:
        ranges = HistogramRanges(parts[0], low, high)
        return (ranges,) if ranges.are_large else super().over_ranges(parts, low, high)

    def lower(self, parts: Parts) -> Column:
        held = parts[0]
        return (self.aggregate.read_ranges if isinstance(held, HistogramRanges) else self.aggregate.read)(self, held)

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
