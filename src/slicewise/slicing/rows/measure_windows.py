"""Windows on measures other than event time, and windows with two measures. Discretisers like those beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from slicewise.amounts import ROWS
from slicewise.kernels import bisect, enumerate_ranges, segment_ends, segment_starts, sorted_unique
from slicewise.slicing.rows.discretisers import Arrivals, Discretiser, Retained
from slicewise.slicing.rows.measure_families import MeasureFamily, family_on_measure
from slicewise.slicing.rows.monotonic import MeasuredRows, measures_of
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.ticks import (
    TickState,
    is_by_position,
    next_tick,
    tick_memory,
    ticks_of,
    windows_at,
)
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY
from slicewise.windows import Session, Sliding, Window

__all__ = ["MeasureSessions", "MultiMeasureWindows", "UnitWindows"]


class MeasureDiscretiser(Discretiser):
    """Windows on a numeric column that only advances, each decided by the first row at or beyond its end.

    Rows before the horizon stand in slices, which start where undecided windows do. All rows of slices are before the
    horizon, so that a window that ends at or before the last of them is final.
    """

    by_position = True
    distinct = True

    def __init__(self, windows: Sequence[Window]) -> None:
        super().__init__(windows)
        (self.sliced_measure,) = self.measures = measures_of(windows[0])

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        counted = MeasuredRows(view, self.measures, sliced=True)
        windows, added = self._open_windows(counted)
        settled = view.first_at(step.horizon)
        undecided = (windows.decided >= step.horizon).nonzero()[0]
        # The last row of each key, too: the next one must not go back behind it.
        last = counted.number_of(settled) - 1
        last = last[last >= counted.starts]
        begins = counted.places(sorted_unique(np.concatenate([windows.low[undecided], added[undecided], last])))
        begins = begins[begins < view.of_key(settled, begins)]
        due = (windows.decided >= step.old_horizon) & (windows.decided <= step.watermark)
        return windows.take(due.nonzero()[0]), Retained(settled, counted.apart_from_misfits(begins, settled))

    def _open_windows(self, counted: MeasuredRows) -> tuple[WindowRanges, np.ndarray]:
        """The windows that are not known to be final, with the row because of which each is reported."""
        raise NotImplementedError


class UnitWindows(MeasureDiscretiser):
    """Windows whose bounds on the column are known: ``sliding(units(10, "km"), every=units(1, "km"))`` and others."""

    def __init__(self, windows: Sequence[Window]) -> None:
        super().__init__(windows)
        self._families = [family_on_measure(window) for window in windows]

    @functools.cached_property
    def name(self) -> str:
        return f"units of {self.measures[0]}"

    def _open_windows(self, counted: MeasuredRows) -> tuple[WindowRanges, np.ndarray]:
        pieces = [self._of_family(number, family, counted) for number, family in enumerate(self._families)]
        *columns, added = map(np.concatenate, zip(*pieces, strict=True)) if len(pieces) > 1 else pieces[0]
        return WindowRanges(*columns, counted.rows), added  # type: ignore[call-arg, arg-type]

    def _of_family(self, number: int, family: MeasureFamily, counted: MeasuredRows) -> tuple[np.ndarray, ...]:
        measure = counted.measure(self.measures[0])
        first, last = family.numbers(measure)
        # A row adds the windows after those of the row before it.
        after = np.maximum(first[1:], last[:-1] + 1)
        one_key = len(counted.starts) == 1
        first[1:] = after if one_key else np.where(counted.key[1:] == counted.key[:-1], after, first[1:])
        added, window = enumerate_ranges(first, last)
        start, end = family.bounds(window)
        final = counted.final_measure(self.measures[0])
        still_open = (end > (final if one_key else final[counted.segment[added]])).nonzero()[0]
        added, start, end = added[still_open], start[still_open], end[still_open]
        segment = counted.segment[added]
        limit, key = counted.ends[segment], counted.key[added]
        locate = counted.places_on(self.measures[0])
        low = locate(key, start, counted.starts[segment], added)
        high = locate(key, end, added, limit)
        ended = high < limit
        decided = np.full(len(added), INFINITY)
        decided[ended] = counted.time[high[ended]]
        return np.full(len(added), number), key, low, high, start, end, decided, added


class MeasureSessions(MeasureDiscretiser):
    """``session(units(2, "km"))``: runs of rows that are never further apart than the gap."""

    def __init__(self, window: Session) -> None:
        super().__init__([window])
        self.gap = window.gap.size

    def _open_windows(self, counted: MeasuredRows) -> tuple[WindowRanges, np.ndarray]:
        measure, last = counted.measure(self.measures[0]), counted.last_measure(self.measures[0])
        n = len(measure)
        apart = (counted.key[1:] != counted.key[:-1]) | (measure[1:] > last[:-1] + self.gap)
        low = segment_starts(apart) if n else NO_ROWS
        high = segment_ends(low, n)
        end = last[high - 1] + self.gap
        segment = counted.segment[low]
        ended = high < counted.ends[segment]
        decided = np.full(len(low), INFINITY)
        decided[ended] = counted.time[high[ended]]
        sessions = WindowRanges(
            np.zeros(len(low), np.int64), counted.key[low], low, high, measure[low], end, decided, counted.rows
        )
        still_open = (end >= counted.final_measure(self.measures[0])[segment]).nonzero()[0]
        return sessions.take(still_open), low[still_open]


class MultiMeasureWindows(Discretiser):
    """Length in one measure, slide in another: at each tick of ``every`` the last ``length`` before it.

    A length of rows counts them, fewer at the beginning. A length on time or another measure reaches back from the last
    row before the tick: it takes the rows less than ``length`` before that one, itself included.
    """

    distinct = True

    def __init__(self, window: Sliding) -> None:
        super().__init__([window])
        self.length, self.every = window.length, window.every
        self.measures = measures_of(window)
        self.by_position = is_by_position(window.every)
        self.slide = None if window.every.measure == ROWS else window.every
        self.offset = window.offset

    def find_on(
        self, view: OrderedRows, step: Step, memory: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[WindowRanges, Retained, tuple[np.ndarray, np.ndarray]]:
        counted = MeasuredRows(view, self.measures)
        seen = TickState.of(memory, counted)
        ticks, base = ticks_of(self.every, counted, seen, step, self.offset)
        low_of = self._reach(counted)
        low = low_of(ticks.segment, ticks.high)
        windows = windows_at(self.every, counted, base, ticks, low)
        # Everything that the next windows reach back to, and the last row before them.
        settled = view.first_at(step.horizon)
        high = counted.number_of(settled)
        some = np.flatnonzero(high > counted.starts)
        first = high.copy()
        first[some] = np.minimum(low_of(some, high[some]), high[some] - 1)
        needed = np.minimum(counted.place_of(first, settled), settled)
        return windows, Retained(needed, NO_ROWS), tick_memory(counted, seen, base, step)

    def next_due(self, came: Arrivals, watermark: int) -> tuple[int, int]:
        return (-INFINITY, 1) if self.measures else next_tick(self.every, came, watermark, self.offset)

    def _reach(self, counted: MeasuredRows) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """What finds the first row of windows that end before a row."""
        size, starts = self.length.size, counted.starts
        if self.length.measure == ROWS:
            return lambda segment, high: np.maximum(high - int(size), starts[segment])
        column = self.length.measure.column
        if column is None:
            keys = counted.view.keys
            return lambda segment, high: counted.index.locate(keys[segment], counted.time[high - 1] - int(size) + 1)
        measure = counted.measure(column)
        return lambda segment, high: bisect(measure, measure[high - 1] - size, starts[segment], high, right=True)
