"""Windows on measures other than event time, and windows with two measures. Discretisers like those beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from slicewise.amounts import ROWS
from slicewise.kernels import enumerate_ranges
from slicewise.slicing.rows.discretisers import Arrivals, Discretiser, Retained
from slicewise.slicing.rows.monotonic import MeasuredRows, measures_of
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.slides import last_tick
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
from slicewise.windows import Sliding

__all__ = ["MultiMeasureWindows", "UnitWindows"]


class UnitWindows(Discretiser):
    """Windows on a numeric column that only advances: ``sliding(units(10, "km"), every=units(1, "km"))``."""

    by_position = True
    distinct = True

    def __init__(self, windows: Sequence[Sliding]) -> None:
        super().__init__(windows)
        self.measures = measures_of(windows[0])

    @property
    def name(self) -> str:
        return f"units of {self.measures[0]}"

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        counted = MeasuredRows(view, self.measures)
        pieces = [self._find(f, w, counted) for f, w in enumerate(self.windows) if isinstance(w, Sliding)]
        every = WindowRanges(*[np.concatenate(c) for c in zip(*pieces, strict=True)], counted.rows)  # type: ignore[call-arg, arg-type]
        undecided = every.low[every.decided >= step.horizon]
        if counted.rows is not None:
            undecided = counted.rows[undecided]
        needed = view.earliest(undecided, view.first_at(step.horizon))
        due = (every.decided >= step.old_horizon) & (every.decided <= step.watermark)
        return every.take(np.flatnonzero(due)), Retained(needed, NO_ROWS)

    def _find(self, family: int, window: Sliding, counted: MeasuredRows) -> tuple[np.ndarray, ...]:
        measure = counted.measure(self.measures[0])
        length, every, offset = window.length.size, window.every.size, window.offset
        first = last_tick(measure, every, offset, length) + 1
        last = last_tick(measure, every, offset)
        # A row adds the windows after those of the row before it; it is the first row of each.
        same = counted.key[1:] == counted.key[:-1]
        first[1:] = np.where(same, np.maximum(first[1:], last[:-1] + 1), first[1:])
        low, k = enumerate_ranges(first, last)
        start = k * every + offset
        limit = counted.ends[counted.segment[low]]
        high = _bisect(measure, start + length, low, limit)
        ended = high < limit
        decided = np.full(len(low), INFINITY)
        decided[ended] = counted.time[high[ended]]
        return np.full(len(low), family), counted.key[low], low, high, start, start + length, decided


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

    def find_on(
        self, view: OrderedRows, step: Step, memory: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[WindowRanges, Retained, tuple[np.ndarray, np.ndarray]]:
        counted = MeasuredRows(view, self.measures)
        seen = TickState.of(memory, counted)
        ticks, base = ticks_of(self.every, counted, seen, step)
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
        return (-INFINITY, 1) if self.measures else next_tick(self.every, came, watermark)

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
        return lambda segment, high: _bisect(measure, measure[high - 1] - size, starts[segment], high, right=True)


def _bisect(
    value: np.ndarray, wanted: np.ndarray, low: np.ndarray, high: np.ndarray, *, right: bool = False
) -> np.ndarray:
    """The first place in each range ``[low, high)`` of ascending values that is not before the wanted one, or beyond.

    >>> _bisect(np.array([1, 2, 2, 5, 0, 4]), np.array([2, 2]), np.array([0, 4]), np.array([4, 6]))
    array([1, 5])
    >>> _bisect(np.array([1, 2, 2, 5, 0, 4]), np.array([2, 2]), np.array([0, 4]), np.array([4, 6]), right=True)
    array([3, 5])
    """
    low, high = low.copy(), high.copy()
    while len(todo := np.flatnonzero(low < high)):
        middle = (low[todo] + high[todo]) // 2
        before = value[middle] <= wanted[todo] if right else value[middle] < wanted[todo]
        low[todo] = np.where(before, middle + 1, low[todo])
        high[todo] = np.where(before, high[todo], middle)
    return low
