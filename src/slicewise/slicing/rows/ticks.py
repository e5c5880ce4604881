"""Ticks: the moments at which windows with a slide of their own are reported, by rows, event time or a measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.amounts import ROWS, Amount
from slicewise.kernels import enumerate_ranges
from slicewise.slicing.rows.discretisers import Arrivals
from slicewise.slicing.rows.monotonic import MeasuredRows
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY

__all__ = ["TickState", "Ticks", "found_at", "is_by_position", "last_tick", "next_tick", "tick_memory", "ticks_of"]


@dataclass(frozen=True, eq=False)
class TickState:
    """Of rows that are gone, per key: the number of final rows that counted, and the time of the last one."""

    final: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, memory: tuple[np.ndarray, np.ndarray] | None, counted: MeasuredRows) -> TickState:
        """What is remembered, with room for the keys of now."""
        final, last = memory or (NO_ROWS, NO_ROWS)
        many = max(len(final), int(counted.view.keys.max(initial=-1)) + 1)
        more = many - len(final)
        return cls(np.append(final, np.zeros(more, np.int64)), np.append(last, np.full(more, -INFINITY)))


@dataclass(frozen=True, eq=False)
class Ticks:
    """Moments at which windows are reported: the key, how many rows come before, the bound, and what decided it."""

    segment: np.ndarray
    high: np.ndarray
    at: np.ndarray
    decided: np.ndarray


def ticks_of(every: Amount, counted: MeasuredRows, seen: TickState, step: Step) -> tuple[Ticks, np.ndarray]:
    """The ticks due and not final before the step, and the position of each key's first row that is still here.

    From the first tick after a key's first row to the first after its last row; of rows, every m-th.
    """
    view = counted.view
    settled = counted.number_of(view.first_at(step.before))
    base = seen.final[view.keys] - (settled - counted.starts)
    if every.measure == ROWS:
        return _after_rows(int(every.size), counted, base, step), base
    if every.measure.column is None:
        return _at_times(int(every.size), counted, seen.last[view.keys], step), base
    return _on_measure(every, counted, step), base


def _after_rows(every: int, counted: MeasuredRows, base: np.ndarray, step: Step) -> Ticks:
    position = np.arange(len(counted.time)) + np.repeat(base - counted.starts, counted.ends - counted.starts)
    due = ((position + 1) % every == 0) & (counted.time >= step.before) & (counted.time < step.watermark)
    at = np.flatnonzero(due)
    return Ticks(counted.segment[at], at + 1, position[at] + 1, counted.time[at])


def _at_times(every: int, counted: MeasuredRows, last_seen: np.ndarray, step: Step) -> Ticks:
    some = np.flatnonzero(counted.starts < counted.ends)
    last_seen, starts, ends = last_seen[some], counted.starts[some], counted.ends[some]

    def tick_after(t: np.ndarray) -> np.ndarray:
        return t // every + 1

    # Ticks up to the one after the last row; those up to the one after the row that was last before are known.
    last = np.minimum(tick_after(counted.time[ends - 1]), step.watermark // every)
    known = np.where(last_seen > -INFINITY, np.minimum(tick_after(last_seen) * every, step.before), -INFINITY)
    first = np.maximum(tick_after(counted.time[starts]), tick_after(known))
    which, number = enumerate_ranges(first, last)
    tick = number * every
    segment = some[which]
    return Ticks(segment, counted.index.locate(counted.view.keys[segment], tick), tick, tick - 1)


def _on_measure(every: Amount, counted: MeasuredRows, step: Step) -> Ticks:
    """A tick is decided by the first row at or beyond it; the one after the last row by the end of the stream."""
    assert every.measure.column is not None
    measure, size = counted.measure(every.measure.column), every.size
    behind = (counted.time >= step.before) & (counted.time <= step.watermark)
    behind[counted.starts[counted.starts < counted.ends]] = False
    row = np.flatnonzero(behind)
    which, k = enumerate_ranges(last_tick(measure[row - 1], size) + 1, last_tick(measure[row], size))
    high = row[which]
    segment, decided = counted.segment[high], counted.time[high]
    if step.watermark >= INFINITY:
        some = np.flatnonzero(counted.starts < counted.ends)
        segment, high = np.append(segment, some), np.append(high, counted.ends[some])
        k = np.append(k, last_tick(measure[counted.ends[some] - 1], size) + 1)
        decided = np.append(decided, np.full(len(some), INFINITY))
    return Ticks(segment, high, k * size, decided)


def next_tick(every: Amount, came: Arrivals, watermark: int) -> tuple[int, int]:
    """When the next tick may come, for windows in which all rows count: an event time, and a number of rows."""
    size = every.size
    if every.measure == ROWS:
        waits = bool((came.rows // size > came.final // size).any())
        return watermark + 1 if waits else INFINITY, int((size - came.rows % size).min()) + 1
    seen = came.last[came.last > -INFINITY]
    if every.measure.column is not None or (seen // size + 1 < watermark // size).any():
        return -INFINITY, 1  # the next row of a key that was silent brings all ticks since its last one
    return int(watermark // size + 1) * int(size), INFINITY


def tick_memory(counted: MeasuredRows, seen: TickState, base: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
    """What to remember for the next step."""
    view = counted.view
    final, last = seen.final.copy(), seen.last.copy()
    final[view.keys] = base + counted.number_of(view.first_at(step.horizon)) - counted.starts
    some = counted.starts < counted.ends
    keys = view.keys[some]
    last[keys] = np.maximum(last[keys], counted.time[counted.ends[some] - 1])
    return final, last


def last_tick(value: np.ndarray, step: Any, offset: Any = 0, length: Any = 0) -> np.ndarray:
    """The number k of the last tick ``k * step + offset + length`` at or before each value.

    On floats these sums are rounded, and as rounded they are the bounds.

    >>> last_tick(np.array([0.29, 0.3, 0.6]), 0.1)      # 3 * 0.1 is a little more than 0.3, and 6 * 0.1 than 0.6
    array([2, 2, 5])
    """

    def tick(k: np.ndarray) -> np.ndarray:
        return k * step + offset + length

    k = np.floor((value - offset - length) / step).astype(np.int64)
    while len(beyond := np.flatnonzero(tick(k) > value)):  # division is rounded: the guess may be beside the truth
        k[beyond] -= 1
    while len(short := np.flatnonzero(tick(k + 1) <= value)):
        k[short] += 1
    return k


def found_at(every: Amount, counted: MeasuredRows, base: np.ndarray, ticks: Ticks, low: np.ndarray) -> WindowRanges:
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
    )


def is_by_position(every: Amount) -> bool:
    """Whether ticks are no event times."""
    return every.measure == ROWS or every.measure.column is not None
