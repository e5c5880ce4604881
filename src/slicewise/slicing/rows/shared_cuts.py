"""Shared cuts: ordered rows cut at the bounds of all windows; each cut is folded once and serves all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.aggregates.base import Parts, pick_parts, put_parts, take_parts
from slicewise.columns import Column
from slicewise.kernels import expand_ranges
from slicewise.plan.plan import Plan
from slicewise.slicing.answers.range_stores import STORES, Store
from slicewise.slicing.rows.cut_updates import CachedCuts, CutUpdate, divided
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges

__all__ = ["Ranges", "SharedCuts"]


@dataclass(frozen=True, eq=False)
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
        if some is not None:
            self._slices = np.flatnonzero(view.slice_at(some) >= 0) if len(view.slice_places) else NO_ROWS
        self._cut(windows, inner)
        self._parts: dict[int, Parts] = {}
        self._stores: dict[int, Store] = {}
        self._update: CutUpdate | None = None
        self._removal: Mapping[int, str] = {}

    def _cut(self, windows: Sequence[WindowRanges | Ranges], inner: np.ndarray | None) -> None:
        """Cut at the bounds of windows and, where cuts may hold so many rows only, at ``inner`` ones and others."""
        mark = np.zeros(self._size + 1, bool)
        for ranges in windows:
            mark[ranges.low] = mark[ranges.high] = True
        self.bounds = np.flatnonzero(mark)
        self.inner = np.zeros(len(self.bounds), bool)
        if inner is not None and len(self.bounds) and self._max_rows is not None:
            self.bounds = divided(self.bounds, inner, self._max_rows)
            self.inner = ~mark[self.bounds]
        self._is_bound = mark
        #: The number of the cut that begins at a place where one does.
        self._number = np.empty(len(mark), np.int64)
        self._number[self.bounds] = np.arange(len(self.bounds))
        opened = np.zeros(len(self.bounds), np.int64)
        for ranges in windows:
            opened += np.bincount(self._number[ranges.low], minlength=len(opened))
            opened -= np.bincount(self._number[ranges.high], minlength=len(opened))
        #: Which cuts are part of any window; the others are never asked for, and not folded.
        self.covered = np.cumsum(opened)[:-1] > 0

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
        if held.all():
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
        if not (self._is_bound[low].all() and self._is_bound[high].all()):
            return self.fold(monoid, low, high)
        inside, begins = expand_ranges(self._number[low], self._number[high])
        if not self.covered[inside].all():
            return self.fold(monoid, low, high)
        parts = take_parts(self.parts(monoid), inside)
        return parts if len(inside) == len(low) else self.plan.monoids[monoid].fold(parts, begins)

    def fold(self, monoid: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges, none of which begins before the one before it ends."""
        if not len(low):
            return self.plan.monoids[monoid].identities(0)
        if len(low) == 1 or (low[1:] == high[:-1]).all():
            first, last = int(low[0]), int(high[-1])
            inside = np.searchsorted(self._slices, [first, last])
            return self._fold(monoid, slice(first, last), low - first, self._slices[inside[0] : inside[1]] - first)
        return self._fold_places(monoid, *expand_ranges(low, high))

    # Inside

    def _place(self, index: Any) -> Any:
        return index if self._some is None else self._some[index]

    def _folded(self, monoid: int) -> Parts:
        bound = self.plan.monoids[monoid]
        if self._update is not None:
            return self._update.parts(monoid, bound, self._removal[monoid], self._fold_places, self.fold)
        low, high = self.bounds[:-1], self.bounds[1:]
        if self.covered.all():
            return self.fold(monoid, low, high)
        at = np.flatnonzero(self.covered)
        return put_parts(bound.identities(len(low)), at, self.fold(monoid, low[at], high[at]))

    def _fold_places(self, monoid: int, index: np.ndarray, offset: np.ndarray) -> Parts:
        """The partials over groups of places, each from its offset on."""
        slices = np.flatnonzero(self.view.slice_at(self._place(index)) >= 0) if len(self._slices) else NO_ROWS
        return self._fold(monoid, index, offset, slices)

    def _fold(self, monoid: int, index: np.ndarray | slice, offset: np.ndarray, slices: np.ndarray) -> Parts:
        """The partials over groups of places; ``slices`` are the positions in ``index`` at which slices stand."""
        bound = self.plan.monoids[monoid]
        place = self._place(index)
        if not len(slices):
            return bound.fold_rows(*self._rows(monoid, place), offset)
        place = np.arange(place.start, place.stop) if isinstance(place, slice) else place
        # Slices have their partials already: they are taken out from between the rows around them.
        mark = np.zeros(len(place) + 1, bool)
        mark[offset] = mark[slices] = mark[slices + 1] = True
        starts = np.flatnonzero(mark[:-1])
        number = np.empty(len(place), np.int64)
        number[starts] = np.arange(len(starts))
        sliced = np.zeros(len(place), bool)
        sliced[slices] = True
        parts = bound.identities(len(starts))
        single = np.flatnonzero(~sliced)
        if len(single):
            row_starts = starts[~sliced[starts]]
            rows = bound.fold_rows(*self._rows(monoid, place[single]), np.searchsorted(single, row_starts))
            parts = put_parts(parts, number[row_starts], rows)
        known = take_parts(self.view.slices.parts[self._part_of[monoid]], self.view.slice_at(place[slices]))
        parts = put_parts(parts, number[slices], known)
        first = number[offset]
        several = np.flatnonzero(np.diff(first, append=len(starts)) > 1)
        out = take_parts(parts, first)
        if not len(several):
            return out
        # Most cuts are of one piece; only the others have anything to combine.
        inside, begins = expand_ranges(first[several], np.append(first[1:], len(starts))[several])
        return put_parts(out, several, bound.fold(take_parts(parts, inside), begins))

    def _rows(self, monoid: int, place: Any) -> tuple[dict[str, Column], np.ndarray]:
        """The columns that an aggregate reads, and the event times, of single rows at places."""
        row = self.view.row_at(place)
        rows = self.view.rows
        columns = {name: rows.columns[name].take(row) for name in self.plan.monoids[monoid].reads}
        return columns, rows.time[row]
