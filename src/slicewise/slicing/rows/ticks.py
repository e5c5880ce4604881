"""Ticks: the moments at which windows with a slide of their own are reported, by rows, event time or a measure.

Where rows are far apart, all ticks between two of them report the same rows. They are counted and not made here: a day
without rows and a tick every second are one entry, from which results are made as they are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slicewise.amounts import ROWS, Amount
from slicewise.kernels import enumerate_ranges
from slicewise.results import Repeats
from slicewise.slicing.rows.discretisers import Arrivals
from slicewise.slicing.rows.monotonic import MeasuredRows
from slicewise.slicing.rows.slides import last_tick
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY

#: As size ticks are looked up one by one: fewer than that are not worth being counted.
FEW_TICKS = 10_000

__all__ = [
    "TickState",
    "Ticks",
    "is_by_position",
    "next_tick",
    "tick_memory",
    "ticks_of",
    "windows_at",
]


@dataclass(frozen=True, eq=False)
class TickState:
    """Of rows that are gone, per key: the number of final rows that counted, and the time of the last one."""

    final: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, memory: tuple[np.ndarray, np.ndarray] | None, counted: MeasuredRows) -> TickState:
        """What is remembered, with room for the keys of now."""
        final, last = memory or (NO_ROWS, NO_ROWS)
        size = max(len(final), int(counted.view.keys.max(initial=-1)) + 1)
        added = size - len(final)
        return cls(np.append(final, np.zeros(added, np.int64)), np.append(last, np.full(added, -INFINITY)))


@dataclass(frozen=True, eq=False)
class Ticks:
    """Moments at which windows are reported: the key, how size rows come before, the bound, and what decided it.

    With ``repeats`` an entry is the first of several ticks, all after the same rows; see :class:`WindowRanges`.
    """

    segment: np.ndarray
    high: np.ndarray
    at: np.ndarray
    decided: np.ndarray
    repeats: Repeats | None = None


@dataclass(frozen=True, eq=False)
class _Runs:
    """Ticks from one number to another, both included, that follow the same rows: the key, and how size rows."""

    segment: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def joined(self, other: _Runs) -> _Runs:
        names = self.__dataclass_fields__
        return _Runs(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))

    def between(self, low: int, high: int) -> _Runs:
        """Those of the ticks that lie in a range, both ends included."""
        return _Runs(self.segment, self.high, np.maximum(self.first, low), np.minimum(self.last, high))

    def single(self) -> _Runs:
        """Each tick by itself."""
        which, number = enumerate_ranges(self.first, self.last)
        return _Runs(self.segment[which], self.high[which], number, number)

    def some(self) -> _Runs:
        """Without those in which there is no tick."""
        kept = np.flatnonzero(self.first <= self.last)
        return _Runs(self.segment[kept], self.high[kept], self.first[kept], self.last[kept])

    def repeats(self, size: int | float, offset: int = 0) -> Repeats:
        return Repeats(self.first, self.last - self.first + 1, size, offset)


def ticks_of(
    every: Amount, counted: MeasuredRows, seen: TickState, step: Step, offset: int = 0
) -> tuple[Ticks, np.ndarray]:
    """The ticks due and not final before the step, and the position of each key's first row that is still here.

    From the first tick after a key's first row to the first after its last row; of rows, every m-th. Ticks of event
    time lie ``offset`` behind the multiples of the slide.
    """
    view = counted.view
    settled = counted.number_of(view.first_at(step.old_horizon))
    base = seen.final[view.keys] - (settled - counted.starts)
    if every.measure == ROWS:
        return _after_rows(int(every.size), counted, base, step), base
    if every.measure.column is None:
        return _at_times(int(every.size), offset, counted, seen.last[view.keys], step), base
    return _on_measure(every, counted, step), base


def _after_rows(every: int, counted: MeasuredRows, base: np.ndarray, step: Step) -> Ticks:
    position = np.arange(len(counted.time)) + np.repeat(base - counted.starts, counted.ends - counted.starts)
    due = ((position + 1) % every == 0) & (counted.time >= step.old_horizon) & (counted.time < step.watermark)
    at = np.flatnonzero(due)
    return Ticks(counted.segment[at], at + 1, position[at] + 1, counted.time[at])


def _at_times(every: int, offset: int, counted: MeasuredRows, last_seen: np.ndarray, step: Step) -> Ticks:
    some = np.flatnonzero(counted.starts < counted.ends)
    last_seen, starts, ends = last_seen[some], counted.starts[some], counted.ends[some]

    def tick_after(t: np.ndarray) -> np.ndarray:
        return (t - offset) // every + 1

    # Ticks up to the one after the last row; those up to the one after the row that was last before are known.
    last = np.minimum(tick_after(counted.time[ends - 1]), (step.watermark - offset) // every)
    due = tick_after(last_seen) * every + offset
    known = np.where(last_seen > -INFINITY, np.minimum(due, step.old_horizon), -INFINITY)
    first = np.maximum(tick_after(counted.time[starts]), tick_after(known))
    if int(np.maximum(last - first + 1, 0).sum()) <= FEW_TICKS:
        which, number = enumerate_ranges(first, last)
        tick = number * every + offset
        segment = some[which]
        return Ticks(segment, counted.index.locate(counted.view.keys[segment], tick), tick, tick - 1)
    runs = _between_rows(every, offset, counted, some, first, last)
    # Ticks up to the old watermark may be known, and those after the new horizon may change: both are compared one by
    # one with what was reported.
    passed, final = (step.old_watermark - offset) // every, (step.horizon - offset) // every
    apart = runs.between(-INFINITY, passed).single().joined(runs.between(max(passed, final) + 1, INFINITY).single())
    runs = runs.between(passed + 1, final).some().joined(apart)
    tick = runs.first * every + offset
    return Ticks(runs.segment, runs.high, tick, tick - 1, runs.repeats(every, offset))


def _between_rows(
    every: int, offset: int, counted: MeasuredRows, some: np.ndarray, first: np.ndarray, last: np.ndarray
) -> _Runs:
    """The ticks from one number to another of each of some keys, put together where they follow the same row."""
    before = (counted.time - offset) // every  # the last tick at or before each row
    following = np.append(before[1:], 0)
    following[counted.ends[some] - 1] = INFINITY
    first_of, last_of = np.zeros(len(counted.starts), np.int64), np.full(len(counted.starts), -1)
    first_of[some], last_of[some] = first, last
    segment = counted.segment
    runs = _Runs(
        segment,
        np.arange(1, len(before) + 1),
        np.maximum(before + 1, first_of[segment]),
        np.minimum(following, last_of[segment]),
    )
    return runs.some()


def _on_measure(every: Amount, counted: MeasuredRows, step: Step) -> Ticks:
    """A tick is decided by the first row at or beyond it; the one after the last row by the end of the stream."""
    assert every.measure.column is not None
    measure, size = counted.measure(every.measure.column), every.size
    behind = (counted.time >= step.old_horizon) & (counted.time <= step.watermark)
    behind[counted.starts[counted.starts < counted.ends]] = False
    row = np.flatnonzero(behind)
    runs = _Runs(counted.segment[row], row, last_tick(measure[row - 1], size) + 1, last_tick(measure[row], size))
    if int(np.maximum(runs.last - runs.first + 1, 0).sum()) <= FEW_TICKS:
        runs = runs.single()
    else:
        decided = counted.time[runs.high]
        several = (decided > step.old_watermark) & (decided < step.horizon)
        apart = _Runs(runs.segment, runs.high, runs.first, np.where(several, runs.first - 1, runs.last)).single()
        runs = _Runs(runs.segment, runs.high, runs.first, np.where(several, runs.last, runs.first - 1)).some()
        runs = runs.joined(apart)
    decided = counted.time[runs.high]
    if step.watermark >= INFINITY:
        some = np.flatnonzero(counted.starts < counted.ends)
        number = last_tick(measure[counted.ends[some] - 1], size) + 1
        runs = runs.joined(_Runs(some, counted.ends[some], number, number))
        decided = np.append(decided, np.full(len(some), INFINITY))
    return Ticks(runs.segment, runs.high, runs.first * size, decided, runs.repeats(size))


def next_tick(every: Amount, came: Arrivals, watermark: int, offset: int = 0) -> tuple[int, int]:
    """When the next tick may come, for windows in which all rows count: an event time, and a number of rows."""
    size = every.size
    if every.measure == ROWS:
        waits = bool((came.rows // size > came.final // size).any())
        return watermark + 1 if waits else INFINITY, int((size - came.rows % size).min()) + 1
    seen, watermark = came.last[came.last > -INFINITY] - offset, watermark - offset
    if every.measure.column is not None or (seen // size + 1 < watermark // size).any():
        return -INFINITY, 1  # the next row of a key that was silent brings all ticks since its last one
    return int(watermark // size + 1) * int(size) + offset, INFINITY


def tick_memory(counted: MeasuredRows, seen: TickState, base: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """What to remember for the next step."""
    view = counted.view
    final, last = seen.final.copy(), seen.last.copy()
    final[view.keys] = base + counted.number_of(view.first_at(step.horizon)) - counted.starts
    some = counted.starts < counted.ends
    keys = view.keys[some]
    last[keys] = np.maximum(last[keys], counted.time[counted.ends[some] - 1])
    return final, last


def windows_at(every: Amount, counted: MeasuredRows, base: np.ndarray, ticks: Ticks, low: np.ndarray) -> WindowRanges:
    """The windows at some ticks that are not empty, with bounds in the measure of the ticks."""
    some = np.flatnonzero(low < ticks.high)
    low, segment = low[some], ticks.segment[some]
    if every.measure == ROWS:
        start = base[segment] + low - counted.starts[segment]
    elif every.measure.column is None:
        start = counted.time[low]
    else:
        start = counted.measure(every.measure.column)[low]
    return WindowRanges(
        np.zeros(len(low), np.int64),
        counted.view.keys[segment],
        low,
        ticks.high[some],
        start,
        ticks.at[some],
        ticks.decided[some],
        counted.rows,
        None if ticks.repeats is None else ticks.repeats.take(some),
    )


def is_by_position(every: Amount) -> bool:
    """Whether ticks are no event times."""
    return every.measure == ROWS or every.measure.column is not None
