"""Distinct values: how many there are, and their sum. Read off histograms or, for many windows at once, off ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.arithmetic import Sum
from slicewise.aggregates.base import Aggregate, Monoid, put_parts
from slicewise.aggregates.checks import OneColumn, check_column, need_numbers, need_types, present
from slicewise.aggregates.exact import INT64_MAX
from slicewise.aggregates.histogram_ranges import HistogramRanges
from slicewise.aggregates.histograms import HistogramMonoid, OfHistogram, Run
from slicewise.columns import Column
from slicewise.ragged import Ragged
from slicewise.wavelet import dense_ranks, distinct_in, previous_places

__all__ = ["CountDistinct", "SumDistinct"]


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
    ranked = True

    def __init__(self, *columns: str) -> None:
        super().__init__(*(name for column in columns for name in check_column(self.name, "columns", column)))

    def lower(self, partial: Run) -> int:
        return len(partial)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        return Column(runs.lengths, monoid.result)

    def read_ranges(self, monoid: HistogramMonoid, ranges: HistogramRanges) -> Column:
        if not ranges.pays(1, 1):
            return super().read_ranges(monoid, ranges)
        return Column(_distinct_in(monoid, ranges), monoid.result)

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
    ranked = True

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

    def read_ranges(self, monoid: HistogramMonoid, ranges: HistogramRanges) -> Column:
        values = ranges.runs.columns[0]
        # Sums of floats are added anew for each window, so that they do not drift.
        if values.dtype != np.int64 or not ranges.pays(1, 1) or _largest(values) * len(values) > INT64_MAX:
            return super().read_ranges(monoid, ranges)
        low, high = ranges.bounds
        sums = _distinct_in(monoid, ranges, weigh=True)
        as_held = sums.astype(object) if pa.types.is_decimal(monoid.result) else sums
        return Column(as_held, monoid.result, present(high - low))

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


def _distinct_in(monoid: HistogramMonoid, ranges: HistogramRanges, *, weigh: bool = False) -> np.ndarray:
    """How many distinct values ranges of histograms hold, or their sum."""
    out = np.zeros(len(ranges), np.int64)
    for piece in ranges.pieces():
        values = piece.rows[:-1]
        ranks, _ = dense_ranks(monoid.value_keys(values))
        weights = values[0] if weigh else None
        out[piece.index] = distinct_in(previous_places(ranks), piece.low, piece.high, weights)
    return out


def _largest(values: np.ndarray) -> int:
    """The largest absolute value."""
    return max(-int(values.min(initial=0)), int(values.max(initial=0)))
