"""Shared cuts: ordered rows cut at the bounds of all windows; each cut is folded once and serves all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from slicewise.aggregates.base import Parts, concat_parts, pick_parts, put_parts, take_parts
from slicewise.kernels import expand_ranges, segment_ends
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.slicing.answers.range_stores import STORES, Store
from slicewise.slicing.rows.cut_updates import CachedCuts, CutUpdate, divided
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges

__all__ = ["Ranges", "SharedCuts"]

_LOW, _HIGH = attrgetter("low"), attrgetter("high")


@record
class Ranges:
    """Ranges of places that will be asked for, beside windows."""

    low: np.ndarray
    high: np.ndarray


class SharedCuts:
    """The places of ordered rows, cut at the bounds of some windows. Where windows find their partials.

    Parameters
    ----------
    monoids
        Which of the plan's monoids the slices among the rows have partials of, in the order of their parts.
    some
        The places that count; windows are then ranges of these.
    inner
        Where the rows stand with which cuts began that were divided by size; None if the size does not matter.
    max_rows
        How many rows a cut may hold, if its size matters.
    """

    def __init__(
        self,
        plan: Plan,
        monoids: Sequence[int],
        view: OrderedRows,
        windows: Sequence[WindowRanges | Ranges],
        *,
        some: np.ndarray | None = None,
        inner: np.ndarray | None = None,
        max_rows: int | None = None,
    ) -> None:
        self.plan = plan
        self._max_rows = max_rows
        self.view = view
        self._some = some
        self._size = len(view) if some is None else len(some)
        self._part_of = {monoid: i for i, monoid in enumerate(monoids)}
        self._slices = view.slice_places
        #: The numbers of the slices and of the single rows that count; None for all of them.
        self._slice_numbers: np.ndarray | None = None
        self._single_rows: np.ndarray | None = None
        if some is not None:
            number = view.slice_at(some)
            is_slice = number >= 0
            self._slices = is_slice.nonzero()[0]
            self._slice_numbers, self._single_rows = number[self._slices], view.row_at(some[~is_slice])
        self._cut(windows, inner)
        self._parts: dict[int, Parts] = {}
        self._stores: dict[int, Store] = {}
        self._update: CutUpdate | None = None
        self._removal: Mapping[int, str] = {}

    def _cut(self, windows: Sequence[WindowRanges | Ranges], inner: np.ndarray | None) -> None:
        """Cut at the bounds of windows and, where cuts may hold so many rows only, at ``inner`` ones and others."""
        low = np.concatenate([NO_ROWS, *map(_LOW, windows)])
        high = np.concatenate([NO_ROWS, *map(_HIGH, windows)])
        mark = np.zeros(self._size + 1, bool)
        mark[low] = True
        mark[high] = True
        self._is_bound = mark
        self.bounds = mark.nonzero()[0]
        self.inner = np.zeros(len(self.bounds), bool)
        if inner is not None and len(self.bounds) and self._max_rows is not None:
            self.bounds = divided(self.bounds, inner, self._max_rows)
            self.inner = ~mark[self.bounds]
        #: The number of the cut that begins at a place where one does.
        self._number = np.empty(len(mark), np.int64)
        self._number[self.bounds] = np.arange(len(self.bounds))
        count = len(self.bounds)
        opened = np.bincount(self._number[low], minlength=count) - np.bincount(self._number[high], minlength=count)
        #: Which cuts are part of any window; the others are never asked for, and not folded.
        self.covered = opened.cumsum()[:-1] > 0
        self._all_covered = bool(np.logical_and.reduce(self.covered))

    def update(self, cached: CachedCuts, places_before: np.ndarray, size: int, removal: Mapping[int, str]) -> None:
        """Make the partials of cuts from those of the last step, as ``removal`` tells for each aggregate.

        ``places_before`` are the places of rows in the last step, which had ``size`` of them.
        """
        self._update = CutUpdate(cached, places_before, size, self.bounds, self.covered, self.plan.costs)
        self._removal = removal

    # What windows are made of

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over windows."""
        if component not in self._stores:
            planned = self.plan.components[component]
            parts = pick_parts(self.parts(planned.kept), planned.places)
            self._stores[component] = STORES[planned.store.choice](planned.monoid, parts)
        return self._stores[component].query(self._number[low], self._number[high])

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and the last row of windows."""
        return self.view.time[self._place(low)], self.view.last_time(self._place(high - 1))

    def content(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What tells whether windows still hold the same rows: arrivals of the first and last row, and how many."""
        held = high > low
        if np.logical_and.reduce(held):
            first, last = self._place(low), self._place(high - 1)
            return self.view.first_arrival(first), self.view.last_arrival(last), self.count(low, high)
        arrivals = np.full((2, len(low)), -1)
        first, last = self._place(low[held]), self._place(high[held] - 1)
        arrivals[:, held] = self.view.first_arrival(first), self.view.last_arrival(last)
        return arrivals[0], arrivals[1], self.count(low, high)

    def count(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """How many rows there are in ranges."""
        if self._some is None:
            counts: np.ndarray = self.view.before(high) - self.view.before(low)
        elif not len(self._slices):
            counts = high - low
        else:
            rows = self.view.before(self._some + 1) - self.view.before(self._some)
            before = np.concatenate([[0], np.cumsum(rows)])
            counts = before[high] - before[low]
        return counts

    def parts(self, monoid: int) -> Parts:
        """The partials of all cuts, of one aggregate."""
        if monoid not in self._parts:
            self._parts[monoid] = self._folded(monoid)
        return self._parts[monoid]

    def over(self, monoid: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges; put together from the cuts, if there are cuts in all of them."""
        every = np.logical_and.reduce
        if not (every(self._is_bound[low]) and every(self._is_bound[high])):
            return self.fold(monoid, low, high)
        inside, begins = expand_ranges(self._number[low], self._number[high])
        if not (self._all_covered or every(self.covered[inside])):
            return self.fold(monoid, low, high)
        parts = take_parts(self.parts(monoid), inside)
        return parts if len(inside) == len(low) else self.plan.monoids[monoid].fold(parts, begins)

    def fold(self, monoid: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges of one key each; none begins before the one before it ends."""
        if not len(low):
            return self.plan.monoids[monoid].identities(0)
        return self._fold(monoid, self._groups(low, high))

    # Inside

    def _place(self, index: Any) -> Any:
        return index if self._some is None else self._some[index]

    def _folded(self, monoid: int) -> Parts:
        bound = self.plan.monoids[monoid]
        if self._update is not None:
            return self._update.parts(monoid, bound, self._removal[monoid], self._fold_places, self.fold)
        low, high = self.bounds[:-1], self.bounds[1:]
        if self._all_covered:
            return self.fold(monoid, low, high)
        at = self.covered.nonzero()[0]
        return put_parts(bound.identities(len(low)), at, self.fold(monoid, low[at], high[at]))

    def _fold_places(self, monoid: int, index: np.ndarray, offset: np.ndarray) -> Parts:
        """The partials over groups of ascending places of one key each, every group from its offset on."""
        ends = segment_ends(offset, len(index))
        place = self._place(index)
        if not len(self._slices):
            return self._fold(monoid, _Groups(None, offset, ends, None, self.view.row_at(place)))
        number = self.view.slice_at(place)
        is_slice = number >= 0
        at = is_slice.nonzero()[0]
        low, high = at.searchsorted(offset), at.searchsorted(ends)
        rows = self.view.row_at(place[~is_slice])
        return self._fold(monoid, _Groups((low, high), offset - low, ends - high, number[at], rows))

    def _groups(self, low: np.ndarray, high: np.ndarray) -> _Groups:
        """The slices and the rows of ranges."""
        if not len(self._slices):
            return _Groups(None, low, high, None, self._single_rows)
        before, behind = self._slices_before(low), self._slices_before(high)
        return _Groups((before, behind), low - before, high - behind, self._slice_numbers, self._single_rows)

    def _slices_before(self, index: np.ndarray) -> np.ndarray:
        """How many slices come before each of some places."""
        return self.view.slices_before(index) if self._some is None else self._slices.searchsorted(index)

    def _fold(self, monoid: int, groups: _Groups) -> Parts:
        """The partials over groups of slices and rows behind them.

        Slices have their partials already, and rows are folded::

            groups     A B c  |  d e  |  F        slices A, B and F; rows c, d and e
            pieces     A  B  F  (c)  (d e)        each slice is one, and so are the rows of each group
            first      0         4       2        with which piece each group begins
            inside     0 1 3                      the pieces of groups that have several
        """
        bound = self.plan.monoids[monoid]
        has_rows = groups.rows_high > groups.rows_low
        if groups.slices is None:
            return self._fold_rows(monoid, groups, has_rows)
        low, high = groups.slices
        slices = high - low
        if not np.logical_or.reduce(slices):
            return self._fold_rows(monoid, groups, has_rows)
        pieces = self.view.slices.parts[self._part_of[monoid]]
        pieces = pieces if groups.slice_numbers is None else take_parts(pieces, groups.slice_numbers)
        row_piece = len(pieces[0]) - 1 + has_rows.cumsum()
        if np.logical_or.reduce(has_rows):
            pieces = concat_parts([pieces, self._fold_rows(monoid, groups, has_rows)])
        first = np.where(slices > 0, low, row_piece)
        out = take_parts(pieces, first)
        count = slices + has_rows
        several = (count > 1).nonzero()[0]
        if not len(several):
            return out
        low, high, has_rows = low[several], high[several], has_rows[several]
        inside, begins = expand_ranges(low, high + has_rows)
        inside[(begins + (high - low))[has_rows]] = row_piece[several[has_rows]]
        return put_parts(out, several, bound.fold(take_parts(pieces, inside), begins))

    def _fold_rows(self, monoid: int, groups: _Groups, some: np.ndarray) -> Parts:
        """The partials over the rows of those groups that have some."""
        low, high = groups.rows_low, groups.rows_high
        every = np.logical_and.reduce
        if not every(some):
            low, high = low[some], high[some]
        if every(low[1:] == high[:-1]):
            first = int(low[0])
            rows: Any = slice(first, int(high[-1]))
            starts = low - first
        else:
            rows, starts = expand_ranges(low, high)
        if groups.rows is not None:
            rows = groups.rows[rows]
        columns, bound = self.view.rows.columns, self.plan.monoids[monoid]
        return bound.fold_rows(
            {name: columns[name].take(rows) for name in bound.reads}, self.view.rows.time[rows], starts
        )


@record
class _Groups:
    """Groups of places of one key each, as ranges of slices and of rows: a key's slices come before its rows.

    Attributes
    ----------
    slices
        From which to before which slice each group goes; None if no slice is in any.
    rows_low, rows_high
        From which to before which row.
    slice_numbers, rows
        Which slices and rows are counted here; None for all.
    """

    slices: tuple[np.ndarray, np.ndarray] | None
    rows_low: np.ndarray
    rows_high: np.ndarray
    slice_numbers: np.ndarray | None
    rows: np.ndarray | None
