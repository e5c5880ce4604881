"""Passing: rows of a track on their way into the time slices.

Where a workload has both kinds of queries, a new row waits in the track until the watermark passes it. Then it is in
order, and what is folded for the windows of the track serves the time slices as well.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from slicewise.kernels import expand_ranges, segment_starts
from slicewise.plan.plan import Plan
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.shared_cuts import ARRIVAL, SharedCuts
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.slicer import starts_among
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples

__all__ = ["Handover", "waiting"]


def waiting(rows: Tuples, watermark: int, given: int) -> np.ndarray:
    """Where the rows stand that are in no time slice yet: not passed by the watermark, and not ``given`` otherwise."""
    return np.flatnonzero((rows.time >= watermark) & (rows.columns[ARRIVAL].values >= given))


@dataclass(frozen=True, eq=False)
class Handover:
    """Ranges of rows of a view, each of one key and inside one cell of the time slices."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, view: OrderedRows, before: int, watermark: int, given: int, edges: Edges) -> Handover:
        """The rows that the watermark passes on its way from one event time to another."""
        places, _ = expand_ranges(view.first_at(before), view.first_at(watermark))
        places = places[view.rows.columns[ARRIVAL].values[places] >= given] if given else places
        if not len(places):
            return cls(places, places)
        time = view.time[places]
        starts = starts_among(time, edges) if len(view.keys) == 1 and not given else None
        if starts is None:
            key, cells = view.rows.key[places], edges.cells(time)
            apart = (key[1:] != key[:-1]) | (cells[1:] != cells[:-1]) | (places[1:] != places[:-1] + 1)
            starts = segment_starts(apart)
        return cls(places[starts], places[np.append(starts[1:], len(places)) - 1] + 1)

    def slices(self, plan: Plan, pieces: SharedCuts, shared: Collection[int]) -> Slices:
        """The time slices of these rows. The aggregates that are ``shared`` are there already, in the cuts."""
        rows = self.high - self.low
        parts = tuple(
            pieces.over(i, self.low, self.high) if i in shared else pieces.fold(monoid, self.low, self.high)
            for i, monoid in enumerate(plan.monoids)
        )
        first, last = pieces.time[self.low], pieces.time[self.high - 1]
        return Slices(pieces.rows.key[self.low], first, last, rows, rows, np.zeros(len(rows), np.int64), parts)
