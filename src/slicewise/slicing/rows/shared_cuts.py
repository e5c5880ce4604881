"""Pieces: the rows and slices of a track as what windows are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, put_parts, take_parts
from slicewise.columns import Column
from slicewise.kernels import expand_ranges
from slicewise.plan.plan import Group, Plan
from slicewise.slicing.answers.lowering import Asked
from slicewise.slicing.answers.range_stores import STORES, Store
from slicewise.slicing.rows.cut_updates import CachedCuts, CutUpdate, divided
from slicewise.slicing.rows.discretisers import WindowRanges
from slicewise.slicing.rows.ordered_rows import OrderedRows

__all__ = ["ARRIVAL", "LAST", "OWN_COLUMNS", "SLOT", "WEIGHT", "Ranges", "SharedCuts"]

#: Columns beside the user's. Of each row, or slice of rows: the arrival number of its first row, and where what is to
#: be known of a slice stands (-1 for a single row).
ARRIVAL, SLOT = "\0arrival", "\0slot"
OWN_COLUMNS = (ARRIVAL, SLOT)
#: What is to be known of slices, beside the partials of aggregates: the arrival number of the last row, how many rows.
LAST, WEIGHT = "\0last", "\0weight"


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges of rows that will be asked for, beside windows."""

    low: np.ndarray
    high: np.ndarray


class SharedCuts:
    """Rows and slices of a track, cut at the bounds of some windows; each cut is folded once."""

    def __init__(
        self,
        plan: Plan,
        view: OrderedRows,
        slices: Mapping[str, Parts],
        windows: Sequence[WindowRanges | Ranges],
        *,
        some: np.ndarray | None = None,
        inner: np.ndarray | None = None,
    ) -> None:
        self.plan = plan
        self.slices = slices
        self.rows = view.rows if some is None else view.rows.take(some)
        self.time = self.rows.time
        self.slot = self.rows.columns[SLOT].values
        # Only single rows are ever counted without others.
        self.folded = view.folded if some is None else np.empty(0, np.int64)
        self._before: Callable[[np.ndarray], np.ndarray] = view.before if some is None else lambda place: place
        self._cut(windows, inner)
        self._parts: dict[int, Parts] = {}
        self._stores: dict[int, Store] = {}
        self._revision: CutUpdate | None = None
        self._how: Mapping[int, str] = {}

    def _cut(self, windows: Sequence[WindowRanges | Ranges], inner: np.ndarray | None) -> None:
        """Cut at the bounds of windows and, where cuts may hold so many rows only, at ``inner`` ones and others."""
        mark = np.zeros(len(self.rows) + 1, bool)
        for found in windows:
            mark[found.low] = mark[found.high] = True
        self.cuts = np.flatnonzero(mark)
        self.inner = np.zeros(len(self.cuts), bool)
        if inner is not None and len(self.cuts) and self.plan.max_slice is not None:
            self.cuts = divided(self.cuts, inner, self.plan.max_slice)
            self.inner = ~mark[self.cuts]
        self._is_cut = mark
        #: The number of the cut that begins at a place where one does.
        self.number = np.empty(len(mark), np.int64)
        self.number[self.cuts] = np.arange(len(self.cuts))
        opened = np.zeros(len(self.cuts), np.int64)
        for found in windows:
            opened += np.bincount(self.number[found.low], minlength=len(opened))
            opened -= np.bincount(self.number[found.high], minlength=len(opened))
        #: Which cuts are part of any window; the others are never asked for, and not folded.
        self.covered = np.cumsum(opened)[:-1] > 0

    def revise(self, known: CachedCuts, came: np.ndarray | None, had: int, removal: Mapping[int, str]) -> None:
        """Make the partials of cuts from those of the last step, as ``removal`` says for each aggregate."""
        came = np.arange(len(self.rows)) if came is None else came
        self._revision = CutUpdate(known, came, had, self.cuts, self.covered)
        self._how = removal

    def first_of(self, place: np.ndarray) -> np.ndarray:
        """The arrival number of the first row at a place."""
        return self.rows.columns[ARRIVAL].values[place]

    def last_of(self, place: np.ndarray) -> np.ndarray:
        """The arrival number of the last row at a place."""
        arrival = self.first_of(place)
        if not len(self.folded):
            return arrival
        slot = self.slot[place]
        return np.where(slot >= 0, self.slices[LAST][0][slot], arrival)

    def count(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """How many rows there are from one place to another."""
        return self._before(high) - self._before(low)

    def answers(self, group: Group, found: WindowRanges, asked: Asked) -> tuple[Column, ...]:
        """The results of a group's aggregates over windows."""
        first, last = self.number[found.low], self.number[found.high]
        return tuple(asked.lower(m, self._store(m).query(first, last)) for m in group.monoids)

    def _store(self, number: int) -> Store:
        if number not in self._stores:
            monoid, kind = self.plan.monoids[number], self.plan.stores[number].choice
            self._stores[number] = STORES[kind](monoid, self.parts(number))
        return self._stores[number]

    def parts(self, number: int) -> Parts:
        """The partials of all cuts, of one aggregate."""
        if number not in self._parts:
            self._parts[number] = self._made(number)
        return self._parts[number]

    def _made(self, number: int) -> Parts:
        monoid = self.plan.monoids[number]
        if self._revision is not None:
            return self._revision.parts(monoid, self._how[number], self._fold_rows, self.fold)
        low, high = self.cuts[:-1], self.cuts[1:]
        if self.covered.all():
            return self.fold(monoid, low, high)
        at = np.flatnonzero(self.covered)
        return put_parts(monoid.identities(len(low)), at, self.fold(monoid, low[at], high[at]))

    def over(self, number: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges; put together from the cuts, if there are cuts in all of them."""
        monoid = self.plan.monoids[number]
        if not (self._is_cut[low].all() and self._is_cut[high].all()):
            return self.fold(monoid, low, high)
        first, last = self.number[low], self.number[high]
        inside, begins = expand_ranges(first, last)
        if not self.covered[inside].all():
            return self.fold(monoid, low, high)
        parts = take_parts(self.parts(number), inside)
        return parts if len(inside) == len(low) else monoid.fold(parts, begins)

    def fold(self, monoid: Monoid, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges, none of which begins before the one before it ends."""
        if not len(low):
            return monoid.identities(0)
        if len(low) == 1 or (low[1:] == high[:-1]).all():
            first, last = int(low[0]), int(high[-1])
            known = np.searchsorted(self.folded, [first, last])
            return self._fold(monoid, slice(first, last), low - first, self.folded[known[0] : known[1]] - first)
        return self._fold_rows(monoid, *expand_ranges(low, high))

    def _fold_rows(self, monoid: Monoid, index: np.ndarray, offset: np.ndarray) -> Parts:
        """The partials over groups of rows, each from its offset on."""
        folded = np.flatnonzero(self.slot[index] >= 0) if len(self.folded) else self.folded
        return self._fold(monoid, index, offset, folded)

    def _fold(self, monoid: Monoid, index: np.ndarray | slice, offset: np.ndarray, folded: np.ndarray) -> Parts:
        columns = {name: self.rows.columns[name].take(index) for name in monoid.reads}
        time = self.time[index]
        if not len(folded):
            return monoid.fold_rows(columns, time, offset)
        # Slices have their partials already: they are cut out of the rows around them.
        mark = np.zeros(len(time) + 1, bool)
        mark[offset] = mark[folded] = mark[folded + 1] = True
        starts = np.flatnonzero(mark[:-1])
        number = np.empty(len(time), np.int64)
        number[starts] = np.arange(len(starts))
        parts = monoid.fold_rows(columns, time, starts)
        known = take_parts(self.slices[repr(monoid.aggregate)], self.slot[index][folded])
        parts = put_parts(parts, number[folded], known)
        first = number[offset]
        many = np.flatnonzero(np.diff(first, append=len(starts)) > 1)
        out = take_parts(parts, first)
        if not len(many):
            return out
        # Most cuts are of one piece; only the others have anything to combine.
        inside, begins = expand_ranges(first[many], np.append(first[1:], len(starts))[many])
        return put_parts(out, many, monoid.fold(take_parts(parts, inside), begins))
