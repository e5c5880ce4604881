"""Percentiles: median and percentile, read off histograms or, for many windows at once, off a wavelet matrix."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid
from slicewise.aggregates.checks import OneColumn, as_float64, need_numbers, need_types
from slicewise.aggregates.histogram_ranges import SPAN, HistogramRanges, Piece
from slicewise.aggregates.histograms import HistogramMonoid, OfHistogram, Run
from slicewise.columns import Column, column_of_objects
from slicewise.errors import AggregateError
from slicewise.ragged import Ragged
from slicewise.wavelet import WaveletMatrix, dense_ranks

__all__ = ["Median", "Percentile"]

_REQUIRED: Any = object()


class Percentile(OneColumn, OfHistogram):
    """The value below which a share ``q`` of the values lies, interpolated as Spark's ``percentile``; a double.

    The position in the sorted values is ``q * (n - 1)``; between two values the answer lies on the line between them.
    NaN sorts last. Null when there are no values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    q : float or sequence of float
        A share between 0 and 1, or a list of shares for a list of results.
    frequency : int
        How often each row counts, as in Spark's function; a column of frequencies is refused.

    Notes
    -----
    Partials hold the distinct values and their counts, so they grow with the number of distinct values d in a slice.
    Runtime complexity: O(d log d) to make one or to merge two; many windows that share slices are answered together
    without merging any (:mod:`slicewise.wavelet`), in O(log d) array steps.

    Examples
    --------
    >>> p = Percentile("v", 0.25)
    >>> p.lower(p.combine(p.lift(0), p.lift(10)))
    2.5
    >>> Percentile("v", [0.25, 0.75]).bind(pa.int64()).result
    ListType(list<item: double>)
    """

    name = "percentile"
    ranked = True

    def __init__(self, column: str | None = None, q: float | Sequence[float] = _REQUIRED, frequency: int = 1) -> None:
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
        if isinstance(frequency, bool) or not isinstance(frequency, (int, np.integer)) or frequency < 1:
            raise AggregateError(
                f"`frequency` of `{self.name}` must be a whole number from 1 on, the same for all rows; got "
                f"{frequency!r}: repeat rows that count several times"
            )
        self.frequency = int(frequency)

    def parameters(self) -> tuple[Any, ...]:
        shares = list(self.q) if self._gives_list else self.q[0]
        return (shares,) if self.frequency == 1 else (shares, self.frequency)

    def __hash__(self) -> int:
        return hash((type(self), self.columns, self.q, self._gives_list, self.frequency))

    def lower(self, partial: Run) -> Any:
        if not partial:
            return None
        rows = [float(value) for value, count in partial for _ in range(count * self.frequency)]
        results = [_interpolate(rows, q) for q in self.q]
        return results if self._gives_list else results[0]

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(pa.float64()) if self._gives_list else pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return HistogramMonoid(self, types)

    def read(self, monoid: HistogramMonoid, runs: Ragged) -> Column:
        values, counts = runs.columns
        # The number of rows up to and including each value, over all partials; a 0 before the first.
        rows = np.concatenate([[0], np.cumsum(counts)])
        starts = runs.starts
        before = rows[starts]
        total = rows[starts + runs.lengths] - before

        def nth(window: np.ndarray, place: np.ndarray) -> np.ndarray:
            picked: np.ndarray = values[np.searchsorted(rows[1:], before[window] + place + 1)]
            return picked

        return self.read_ranks(monoid, total, nth)

    def read_ranges(self, monoid: HistogramMonoid, ranges: HistogramRanges) -> Column:
        values = len(ranges.runs.columns[0])
        if not ranges.pays(min(values, SPAN).bit_length(), 2 * len(self.q)):
            return super().read_ranges(monoid, ranges)
        results = [(piece.index, self._read_piece(monoid, piece)) for piece in ranges.pieces()]
        index = np.concatenate([at for at, _ in results])
        return Column.concat([column for _, column in results]).take(np.argsort(index))

    def _read_piece(self, monoid: HistogramMonoid, piece: Piece) -> Column:
        values, counts = piece.rows
        ranks, place = dense_ranks(monoid.value_keys([values]))
        matrix = WaveletMatrix(ranks, None if (counts == 1).all() else counts)

        def nth(window: np.ndarray, at: np.ndarray) -> np.ndarray:
            picked: np.ndarray = values[place[matrix.kth(piece.low[window], piece.high[window], at)]]
            return picked

        return self.read_ranks(monoid, matrix.total(piece.low, piece.high), nth)

    def read_ranks(
        self, monoid: HistogramMonoid, total: np.ndarray, nth: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> Column:
        """The results of windows with so many rows, where ``nth(windows, places)`` gives values by their place."""
        some = np.flatnonzero(total)
        results = np.zeros((len(self.q), len(total)))
        for row, q in zip(results, self.q, strict=True):
            position = (total[some] * self.frequency - 1) * q
            below, above = np.floor(position), np.ceil(position)
            places = [place.astype(np.int64) // self.frequency for place in (below, above)]
            low = high = _doubles(monoid, nth(some, places[0]))
            apart = np.flatnonzero(places[0] != places[1])
            if len(apart):
                high = low.copy()
                high[apart] = _doubles(monoid, nth(some[apart], places[1][apart]))
            # In this form, as Spark has it: the other one rounds differently, and gives a number where infinities meet.
            with np.errstate(invalid="ignore", over="ignore"):
                between = low + (position - below) * (high - low)
            row[some] = np.where((low == high) | (below == above), low, between)
        valid = None if len(some) == len(total) else total > 0
        if not self._gives_list:
            return Column(results[0], monoid.result, valid)
        lists = [r if ok else None for r, ok in zip(results.T.tolist(), (total > 0).tolist(), strict=True)]
        return column_of_objects(lists, monoid.result)


class Median(Percentile):
    """The middle value, or the mean of the two in the middle; a double, null when there are no values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Partials hold the distinct values and their counts, so they grow with the number of distinct values d in a slice.
    Runtime complexity: O(d log d) to make one or to merge two; many windows that share slices are answered together
    without merging any (:mod:`slicewise.wavelet`), in O(log d) array steps.

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


def _doubles(monoid: HistogramMonoid, values: np.ndarray) -> np.ndarray:
    """Values as doubles, before they are subtracted, as in Spark: integers far apart would wrap around."""
    return as_float64(monoid.column(values))
