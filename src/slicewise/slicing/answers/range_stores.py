"""Range stores: answer many ranges of slices at once. Fed with the partials of slices and cuts, read by the answers.

Four ways behind one interface, ``query(low, high)`` for arrays of ranges ``[low, high)``, none empty. Which one is
taken is decided in :mod:`slicewise.plan.decisions`.

=======  ======================  ======================  =============================================
store    to build                per range of r slices   needs
=======  ======================  ======================  =============================================
lazy     nothing                 r - 1 combines          an associative combine
eager    n combines              2 log2(r) combines      an associative combine
prefix   n combines              1 invert                commutative, invertible, exact on these types
wavelet  log2(d) array steps     log2(d) look-ups        a histogram of d distinct values that is ranked
=======  ======================  ======================  =============================================
"""

from __future__ import annotations

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, concat_parts, put_parts, take_parts
from slicewise.aggregates.histogram_ranges import HistogramRanges

__all__ = ["STORES", "EagerStore", "LazyStore", "PrefixStore", "Store", "WaveletStore"]


class Store:
    """Partials in slice order, ready to be asked for ranges."""

    def __init__(self, monoid: Monoid, parts: Parts) -> None:
        self.monoid = monoid
        self.parts = parts

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        """The combination of the partials in each range ``[low, high)``."""
        raise NotImplementedError


class LazyStore(Store):
    """Folds each range when it is asked for."""

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        if (high - low == 1).all():
            return take_parts(self.parts, low)
        return self.monoid.over_ranges(self.parts, low, high)


class WaveletStore(Store):
    """Leaves histograms of slices as they are: aggregates read ranges off the ranks of all values at once."""

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        return (HistogramRanges(self.parts[0], low, high),)


class EagerStore(Store):
    """FlatFAT over the slices: a tree of partials, built level by level, its ranges answered level by level.

    Level ``k`` holds the combinations of ``2**k`` neighbours. A range takes at most one node on its left and one on its
    right in every level; all ranges climb together::

        level 2   a b c d                 range [1, 7) of eight slices:
        level 1   a b   c d   e f   g h   left takes b, then c d; right takes g, then e f
        level 0   a  b  c  d  e  f  g  h

    Runtime complexity: O(n) combines to build; O(log n) array steps to answer any number of ranges.
    """

    def __init__(self, monoid: Monoid, parts: Parts) -> None:
        super().__init__(monoid, parts)
        self.levels = [parts]
        while len(self.levels[-1][0]) > 1:
            below = self.levels[-1]
            pairs = len(below[0]) // 2 * 2
            even, odd = take_parts(below, slice(0, pairs, 2)), take_parts(below, slice(1, pairs, 2))
            self.levels.append(monoid.combine(even, odd))

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        n = len(low)
        # One array for both sides, so that each level costs one combine: left parts first, right parts behind them.
        both_sides = self.monoid.identities(2 * n)
        low, high = low.copy(), high.copy()
        for level in self.levels:
            left = np.flatnonzero((low < high) & (low & 1 == 1))
            right = np.flatnonzero((low < high) & (high & 1 == 1))
            if len(left) or len(right):
                nodes_left = take_parts(level, low[left])
                nodes_right = take_parts(level, high[right] - 1)
                before = concat_parts([take_parts(both_sides, left), nodes_right])
                after = concat_parts([nodes_left, take_parts(both_sides, n + right)])
                both_sides = put_parts(
                    both_sides, np.concatenate([left, n + right]), self.monoid.combine(before, after)
                )
            low, high = (low + 1) >> 1, high >> 1
            if not (low < high).any():
                break
        return self.monoid.combine(take_parts(both_sides, slice(None, n)), take_parts(both_sides, slice(n, None)))


class PrefixStore(Store):
    """Running combinations: a range is the one at its end without the one at its beginning."""

    def __init__(self, monoid: Monoid, parts: Parts) -> None:
        super().__init__(monoid, parts)
        self.running = concat_parts([monoid.identities(1), monoid.scan(parts)])

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        answers = self.monoid.invert(take_parts(self.running, high), take_parts(self.running, low))
        failed = self.monoid.failed(answers)
        if not len(failed):
            return answers
        # What could not be computed over all slices may well be over those of the range.
        return put_parts(answers, failed, LazyStore(self.monoid, self.parts).query(low[failed], high[failed]))


STORES: dict[str, type[Store]] = {
    "lazy": LazyStore,
    "eager": EagerStore,
    "prefix": PrefixStore,
    "wavelet": WaveletStore,
}
