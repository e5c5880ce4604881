"""Handover: rows on their way from the ordered rows into the time slices.

Where a workload has both kinds of queries, a new row waits among the ordered rows until the watermark passes it. Then
it is in order, and what is folded for the windows on ordered rows serves the time slices as well::

    event time      1  2  3  |  4  5  6      the watermark moves behind 3: the rows before it go into time slices,
    ordered rows    a  b  c  |  d  e  f      cut at the edges of both; d, e and f wait
    time slices    [a  b][c]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import expand_ranges, segment_starts
from slicewise.slicing.rows.ordered_rows import ARRIVAL, OrderedRows
from slicewise.slicing.rows.shared_cuts import Ranges, SharedCuts
from slicewise.slicing.steps import Step
from slicewise.slicing.time.slice_manager import SliceManager
from slicewise.slicing.time.slicer import starts_among
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples

__all__ = ["Handover"]


class Handover:
    """Hands the rows of one set of context-aware queries over to the time slices.

    The first rows to arrive, so many as ``handed_over`` says, are in the time slices already: they were there when the
    state was saved.
    """

    def __init__(self, time: SliceManager) -> None:
        self.time = time

    def insert(
        self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], watermark: int, since: int
    ) -> None:
        """Cut those of some new rows that will not wait: the watermark has passed them, or nobody counts them."""
        old = np.flatnonzero(times < max(watermark, since))
        if len(old) == len(times):
            self.time.insert(key, times, columns)
        elif len(old):
            self.time.insert(key[old], times[old], {name: c.take(old) for name, c in columns.items()})

    def waiting(self, rows: Tuples, watermark: int, handed_over: int) -> Tuples:
        """Those of some ordered rows that are in no time slice yet."""
        arrival = rows.columns[ARRIVAL].values
        return rows.take(np.flatnonzero((rows.time >= watermark) & (arrival >= handed_over)))

    def take_back(self, rows: Tuples, watermark: int, handed_over: int) -> None:
        """Cut rows that leave the ordered rows before the watermark has passed them."""
        waiting = self.waiting(rows, watermark, handed_over)
        if len(waiting):
            self.time.insert_slices(self.time.cut(waiting))

    def ranges(self, view: OrderedRows, step: Step, handed_over: int) -> Ranges:
        """The rows that the watermark passes in a step, as ranges of one key inside one cell of the time slices."""
        edges = self.time.edges
        places, _ = expand_ranges(view.first_at(step.old_watermark), view.first_at(step.watermark))
        if handed_over:
            places = places[view.first_arrival(places) >= handed_over]
        if not len(places):
            return Ranges(places, places)
        time = view.time[places]
        starts = starts_among(time, edges) if len(view.keys) == 1 and not handed_over else None
        if starts is None:
            key, cells = view.key[places], edges.cells(time)
            apart = (key[1:] != key[:-1]) | (cells[1:] != cells[:-1]) | (places[1:] != places[:-1] + 1)
            starts = segment_starts(apart)
        return Ranges(places[starts], places[np.append(starts[1:], len(places)) - 1] + 1)

    def slices(self, cuts: SharedCuts, ranges: Ranges, shared: Collection[int]) -> Slices:
        """The time slices of ranges of rows. The aggregates that are ``shared`` are there already, in the cuts."""
        low, high = ranges.low, ranges.high
        rows = high - low
        parts = tuple(
            cuts.over(i, low, high) if i in shared else cuts.fold(i, low, high)
            for i in range(len(self.time.plan.monoids))
        )
        view = cuts.view
        return Slices(
            view.key[low], view.time[low], view.time[high - 1], rows, rows, np.zeros(len(rows), np.int64), parts
        )
