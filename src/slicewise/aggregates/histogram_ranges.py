"""Histograms of ranges of slices that are not made: what is asked of them is read off all slices at once.

A window that slides over sixty slices shares fifty-nine of them with the next one. Merging them for each window would
touch every value sixty times; ranks in a wavelet matrix (:mod:`slicewise.wavelet`) touch it once for each bit of its
rank, whatever the length of windows. Made by range stores, lowered by histogram monoids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from slicewise.kernels import expand_ranges
from slicewise.ragged import Ragged

__all__ = ["HistogramRanges", "Piece"]

#: Ranges are answered in pieces that span about so many values, or four of the longest range: ranks stay small, and
#: arrays in the cache of a core.
SPAN = 2**15
#: How many values of slices are merged at once, where they are.
MERGED = 2**21
#: What it costs to merge a value, in terms of one value in one level of a matrix; and one look-up there.
MERGE, LOOK_UP = 4, 2


@dataclass(frozen=True, eq=False)
class Piece:
    """Some of the ranges, with the values that they are about.

    Attributes
    ----------
    index
        Which ranges.
    rows
        The distinct values of slices with their counts, as in a histogram monoid.
    low, high
        The ranges of rows.
    """

    index: np.ndarray
    rows: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray


class HistogramRanges:
    """For each of some ranges ``[low, high)`` of histograms, that of all of them. Stands where partials do.

    Parameters
    ----------
    runs
        The histograms of slices.
    """

    def __init__(self, runs: Ragged, low: np.ndarray, high: np.ndarray) -> None:
        self.runs, self.low, self.high = runs, low, high

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, index: Any) -> HistogramRanges:
        return HistogramRanges(self.runs, self.low[index], self.high[index])

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The ranges as ranges of values, end to end."""
        starts = np.concatenate([[0], np.cumsum(self.runs.lengths)])
        return starts[self.low], starts[self.high]

    @property
    def values_to_merge(self) -> int:
        """How many values merging all ranges would touch."""
        low, high = self.bounds
        return int((high - low).sum())

    @property
    def are_large(self) -> bool:
        """Whether there are too many values to merge them all at once."""
        return self.values_to_merge > MERGED

    def pays(self, bits: int, look_ups: int) -> bool:
        """Whether ranking all values once, in so many levels, costs less than merging those of each range."""
        low, high = self.bounds
        span = int(high.max(initial=0) - low.min(initial=0))
        prepared = span * (MERGE + bits) + len(self) * look_ups * bits * LOOK_UP
        return prepared < MERGE * self.values_to_merge

    def pieces(self) -> Iterator[Piece]:
        """The ranges in pieces whose values lie together; pieces may share values."""
        low, high = self.bounds
        if not len(low):
            return
        order = np.argsort(low, kind="stable") if (low[1:] < low[:-1]).any() else np.arange(len(low))
        low, high = low[order], high[order]
        longest = int((high - low).max())
        at = 0
        while at < len(low):
            first = int(low[at])
            end = int(np.searchsorted(low, first + max(SPAN, 3 * longest), "right"))
            last = int(high[at:end].max())
            rows = tuple(column[first:last] for column in self.runs.columns)
            yield Piece(order[at:end], rows, low[at:end] - first, high[at:end] - first)
            at = end

    def to_merge(self) -> Iterator[tuple[Ragged, np.ndarray]]:
        """The histograms of some ranges end to end, and where each range begins among them; all in order."""
        low, high = self.bounds
        touched = np.cumsum(high - low)
        at = 0
        while at < len(low):
            before = int(touched[at - 1]) if at else 0
            end = max(int(np.searchsorted(touched, before + MERGED, "right")), at + 1)
            index, starts = expand_ranges(self.low[at:end], self.high[at:end])
            yield self.runs[index], starts
            at = end
