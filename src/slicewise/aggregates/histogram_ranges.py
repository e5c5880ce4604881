"""Histograms of ranges of slices that are not made: what is asked of them is read off all slices at once.

A window that slides over sixty slices shares fifty-nine of them with the next one. Merging them for each window would
touch every value sixty times; ranks in a wavelet matrix (:mod:`slicewise.wavelet`) touch it once for each bit of its
rank, whatever the length of windows. Made by range stores, lowered by histogram monoids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from slicewise.kernels import expand_ranges
from slicewise.ragged import Ragged
from slicewise.wavelet import dense_ranks

__all__ = ["HistogramRanges", "Piece"]

#: Ranges are answered in pieces that span about so many values, or four of the longest range: ranks stay small, and
#: arrays in the cache of a core.
SPAN = 2**15
#: How many values of slices are merged at once, where they are.
MERGED = 2**21
#: Where histograms are the differences of running counts, a piece spans about so many values, or four of the longest
#: range, and so many counts are made at once.
NARROW, COUNTS = 2**10, 2**18
#: Running counts are made where each value is in so many ranges.
SHARED = 4
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

    @property
    def are_shared(self) -> bool:
        """Whether ranges overlap so much that differences of running counts cost less than merging."""
        low, high = self.bounds
        return self.values_to_merge >= SHARED * int(high.max(initial=0) - low.min(initial=0))

    def pieces(self, *, narrow: bool = False) -> Iterator[Piece]:
        """The ranges in pieces whose values lie together; pieces may share values."""
        span = NARROW if narrow else SPAN
        low, high = self.bounds
        if not len(low):
            return
        order = np.argsort(low, kind="stable") if (low[1:] < low[:-1]).any() else np.arange(len(low))
        low, high = low[order], high[order]
        longest = int((high - low).max())
        at = 0
        while at < len(low):
            first = int(low[at])
            end = int(np.searchsorted(low, first + max(span, 3 * longest), "right"))
            last = int(high[at:end].max())
            rows = tuple(column[first:last] for column in self.runs.columns)
            yield Piece(order[at:end], rows, low[at:end] - first, high[at:end] - first)
            at = end

    def histograms(
        self, value_keys: Callable[[Sequence[np.ndarray]], np.ndarray]
    ) -> Iterator[tuple[np.ndarray, Ragged]]:
        """Some ranges after the other, each with its histogram: what was counted before its end less that before it.

        ``value_keys`` are integers in the order of values.
        """
        for piece in self.pieces(narrow=True):
            *values, counts = piece.rows
            ranks, places = dense_ranks(value_keys(values))
            step = max(COUNTS // max(len(places), 1), 1)
            for at in range(0, len(piece.index), step):
                some = slice(at, at + step)
                counted = _counts_in(ranks, counts, len(places), piece.low[some], piece.high[some])
                which, rank = counted.nonzero()
                held = [column[places[rank]] for column in values]
                lengths = np.bincount(which, minlength=len(counted))
                yield piece.index[some], Ragged(lengths, *held, counted[which, rank].astype(np.int64))

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


def _counts_in(ranks: np.ndarray, counts: np.ndarray, different: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How often each rank occurs in each range, by range and rank.

    >>> _counts_in(np.array([0, 1, 0, 2]), np.array([1, 1, 5, 1]), 3, np.array([0, 1]), np.array([3, 4]))
    array([[6, 1, 0],
           [5, 1, 1]], dtype=int32)
    """
    bounds, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    rows = slice(int(bounds[0]), int(bounds[-1]))
    behind = np.searchsorted(bounds, np.arange(rows.start, rows.stop), "right")
    between = np.bincount(behind * different + ranks[rows], counts[rows], len(bounds) * different)
    exact = np.int32 if counts[rows].sum() < 2**31 else np.int64
    running: np.ndarray = np.cumsum(between.reshape(len(bounds), different), axis=0, dtype=exact)
    counted: np.ndarray = running[place[len(low) :]] - running[place[: len(low)]]
    return counted
