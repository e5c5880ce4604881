"""Frequencies: histograms as results, and the most frequent values. Read off the histograms that are the partials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid
from slicewise.aggregates.checks import OneColumn, check_k, need_orderable, need_types, present
from slicewise.aggregates.histograms import HistogramMonoid, OfHistogram, Run
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.kernels import order_by
from slicewise.ragged import Ragged, RaggedColumn

__all__ = ["Histogram", "Mode", "MostFrequent"]

_REQUIRED: Any = object()


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
        counted = Ragged(runs.lengths, monoid.column(runs.columns[0]).values, runs.columns[1])
        return RaggedColumn(counted, monoid.result, (monoid.types[0], pa.int64()))

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.map_(types[0], pa.int64())

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return HistogramMonoid(self, types)


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
        best = Ragged(place.lengths, monoid.column(runs.columns[0][at]).values, runs.columns[1][at])
        return RaggedColumn(best, monoid.result, (monoid.types[0], pa.int64()))

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
    entry, counts = np.repeat(np.arange(len(runs)), runs.lengths), runs.columns[-1]
    order = order_by(entry, counts.max(initial=0) - counts)
    order = np.arange(len(entry)) if order is None else order
    nth = np.arange(len(order)) - runs.starts[entry]
    return Ragged(np.minimum(runs.lengths, k), order[nth < k])
