"""Rolling ranks: medians, percentiles and distinct counts of the last ``k`` values, for :func:`slicewise.swag.roll`.

Windows of up to 64 numbers are sorted all at once, by a network of comparators that each take two whole arrays: sorted
windows of two neighbours, of two of these, and so on, put together by Batcher's odd-even merge. Longer ones are read
off a wavelet matrix (:mod:`slicewise.wavelet`), as those of slices are.
"""

from __future__ import annotations

import numpy as np

from slicewise.aggregates.histogram_ranges import HistogramRanges
from slicewise.aggregates.histograms import HistogramMonoid
from slicewise.aggregates.percentiles import Percentile
from slicewise.columns import Column

__all__ = ["roll_ranks", "sorted_windows"]

#: Windows up to this length are sorted by a network, so many of them at once that they stay in the cache of a core.
_SORTED, _PIECE = 64, 2**13


def roll_ranks(monoid: HistogramMonoid, column: Column, k: int) -> Column:
    """The results of a histogram's aggregate over the last ``k`` values, at every value."""
    values = column.values
    sortable = isinstance(monoid.aggregate, Percentile) and column.valid is None and values.dtype != object
    if not sortable or not 1 < k <= min(_SORTED, len(column)):
        return _by_ranks(monoid, column, k)
    assert isinstance(monoid.aggregate, Percentile)
    first = _by_ranks(monoid, column.take(slice(0, k - 1)), k)
    return Column.concat([first, *_by_sorting(monoid, monoid.aggregate, values, k)])


def _by_ranks(monoid: HistogramMonoid, column: Column, k: int) -> Column:
    high = np.arange(1, len(column) + 1)
    return monoid.lower((HistogramRanges(monoid.lift([column], high)[0], np.maximum(high - k, 0), high),))


def _by_sorting(monoid: HistogramMonoid, aggregate: Percentile, values: np.ndarray, k: int) -> list[Column]:
    results = []
    for start in range(0, len(values) - k + 1, _PIECE):
        piece = values[start : start + _PIECE + k - 1]
        order = np.argsort(monoid.value_keys([piece]))
        places = np.empty(len(piece), np.int16)
        places[order] = np.arange(len(piece), dtype=np.int16)
        table, held = np.stack(sorted_windows(places, k)), piece[order]
        total = np.full(table.shape[1], k)

        def nth(
            window: np.ndarray, place: np.ndarray, table: np.ndarray = table, held: np.ndarray = held
        ) -> np.ndarray:
            picked: np.ndarray = held[table[place, window]]
            return picked

        results.append(aggregate.read_ranks(monoid, total, nth))
    return results


def sorted_windows(values: np.ndarray, k: int) -> list[np.ndarray]:
    """The sorted values of every whole window of ``k``: the smallest of each, the second smallest of each, and so on.

    >>> sorted_windows(np.array([6, 5, 0, 1]), 3)
    [array([0, 0]), array([5, 1]), array([6, 5])]
    """
    windows, size = [values], 1
    whole: list[np.ndarray] = []
    n = len(values) - k + 1
    while True:
        if k & size:
            done = len(whole)
            whole = merged([w[:n] for w in whole], [w[done : done + n] for w in windows])
        if len(whole) == k:
            return whole
        windows = merged([w[:-size] for w in windows], [w[size:] for w in windows])
        size *= 2


def merged(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
    """Two sorted lists as one, element by element of the arrays in them: Batcher's odd-even merge.

    >>> merged([np.array([1, 7])], [np.array([0, 3]), np.array([2, 9])])
    [array([0, 3]), array([1, 7]), array([2, 9])]
    """
    if not a or not b:
        return a or b
    if len(a) == len(b) == 1:
        return [np.minimum(a[0], b[0]), np.maximum(a[0], b[0])]
    even, odd = merged(a[::2], b[::2]), merged(a[1::2], b[1::2])
    out = even[:1]
    for i in range(max(len(even) - 1, len(odd))):
        if i + 1 < len(even) and i < len(odd):
            out += [np.minimum(odd[i], even[i + 1]), np.maximum(odd[i], even[i + 1])]
        else:
            out += [odd[i] if i < len(odd) else even[i + 1]]
    return out
