"""Pieces: the rows and slices of a track as what windows are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, put_parts, take_parts
from slicewise.columns import Column
from slicewise.plan.plan import Group, Plan
from slicewise.slicing.discretise import NO_ROWS, Found
from slicewise.slicing.kernels import expand_ranges, sorted_unique
from slicewise.slicing.stores import STORES, Store
from slicewise.slicing.tuples import Tuples

__all__ = ["ARRIVAL", "LAST", "OWN_COLUMNS", "SLOT", "WEIGHT", "Pieces"]

#: Columns beside the user's. Of each row, or slice of rows: the arrival numbers of its first and last row, how many
#: rows it is, and where its partials stand (-1 for a single row, which has none yet).
ARRIVAL, LAST, WEIGHT, SLOT = "\0arrival", "\0last", "\0weight", "\0slot"
OWN_COLUMNS = (ARRIVAL, LAST, WEIGHT, SLOT)


class Pieces:
    """Rows and slices of a track, cut at the bounds of some windows; each cut is folded once."""

    def __init__(
        self,
        plan: Plan,
        rows: Tuples,
        slices: Mapping[str, Parts],
        some: np.ndarray | None,
        windows: Sequence[Found],
    ) -> None:
        self.plan = plan
        self.cuts = sorted_unique(np.concatenate([NO_ROWS, *(w.low for w in windows), *(w.high for w in windows)]))
        self._stores: dict[int, Store] = {}
        self.slices = slices
        self.rows = rows if some is None else rows.take(some)
        self.time = self.rows.time
        self.first, self.last = (self.rows.columns[name].values for name in (ARRIVAL, LAST))
        self.slot = self.rows.columns[SLOT].values
        self.before = np.concatenate([[0], np.cumsum(self.rows.columns[WEIGHT].values)])
        self.folded = np.flatnonzero(self.slot >= 0)

    def answers(self, group: Group, low: np.ndarray, high: np.ndarray) -> tuple[Column, ...]:
        """The results of a group's aggregates over ranges."""
        first, last = np.searchsorted(self.cuts, low), np.searchsorted(self.cuts, high)
        return tuple(self.plan.monoids[m].lower(self._store(m).query(first, last)) for m in group.monoids)

    def _store(self, number: int) -> Store:
        if number not in self._stores:
            monoid, kind = self.plan.monoids[number], self.plan.stores[number].choice
            self._stores[number] = STORES[kind](monoid, self.fold(monoid, self.cuts[:-1], self.cuts[1:]))
        return self._stores[number]

    def fold(self, monoid: Monoid, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one aggregate over ranges, none of which begins before the one before it ends."""
        index, offset = expand_ranges(low, high)
        folded = np.flatnonzero(self.slot[index] >= 0)
        # Slices have their partials already: they are cut out of the rows around them.
        starts = sorted_unique(np.concatenate([offset, folded, folded + 1]))
        starts = starts[starts < len(index)]
        columns = [self.rows.columns[name].take(index) for name in monoid.aggregate.columns]
        parts = monoid.lift_fold(columns, self.time[index], starts)
        if not len(folded):
            return parts
        known = take_parts(self.slices[repr(monoid.aggregate)], self.slot[index[folded]])
        return monoid.fold(put_parts(parts, np.searchsorted(starts, folded), known), np.searchsorted(starts, offset))
