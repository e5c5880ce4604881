"""Windows on measures other than event time, and windows with two measures. Discretisers like those beside them.

A row counts in such windows if it has all their measures and goes back on none: *it fits*. Which rows do is a column
beside the user's, one for all windows on the same measures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.amounts import ROWS, Amount
from slicewise.columns import Column
from slicewise.slicing.discretise import NO_ROWS, Came, Discretiser, Found, Needed, Step
from slicewise.slicing.kernels import KeyTimeIndex, enumerate_ranges
from slicewise.slicing.periodic import NEVER
from slicewise.slicing.tuples import Tuples
from slicewise.slicing.views import View
from slicewise.windows import Sliding, Window

__all__ = [
    "Counted",
    "LookingBack",
    "Misfit",
    "Seen",
    "Ticks",
    "Units",
    "fits_column",
    "fitting",
    "found_at",
    "is_by_position",
    "last_tick",
    "measures_of",
    "misfits",
    "next_tick",
    "reading",
    "tick_memory",
    "ticks_of",
]


# -- rows that fit


def measures_of(window: Window) -> tuple[str, ...]:
    """The columns that a window is measured by."""
    return tuple(m.column for m in window.measures if m.column is not None)


def reading(column: Column) -> np.ndarray:
    """A measure as numbers that can be compared with the bounds of windows; decimals become doubles."""
    if pa.types.is_decimal(column.type):
        return column.values.astype(np.float64) / 10**column.type.scale
    return column.values


def fits_column(measures: Sequence[str]) -> str:
    """The column that says which rows fit."""
    return "\0fits " + "\0".join(measures)


def fitting(columns: Mapping[str, Column], measures: Sequence[str]) -> Column:
    """Which new rows have all measures."""
    known = np.logical_and.reduce([columns[name].mask for name in measures])
    return Column(known.astype(np.int64), pa.bool_())


@dataclass(frozen=True)
class Misfit:
    """A row that goes back on a measure, or has a measure that is no number: its place, and what is wrong with it."""

    row: int
    what: str


def misfits(rows: Tuples, measures: Sequence[str]) -> list[Misfit]:
    """The new rows that do not fit: each must lie between the last row that does and the next that did before.

    Rows that were there before fit. Of two new rows that contradict each other the later one is left out::

        time   1   2   3   4   5          rows at 1, 3 and 5 were there, those at 2 and 4 come
        km    10  40  20  25  30          40 goes beyond the 20 that follows: left out; 25 fits
    """
    found: list[Misfit] = []
    fits = rows.columns[fits_column(measures)].values > 0
    for name in measures:
        value = reading(rows.columns[name])
        if value.dtype.kind == "f":
            for row in np.flatnonzero(fits & ~np.isfinite(value)).tolist():
                fits[row] = False
                what = f"the measure {name!r} must be a finite number; got {value[row]} at time {rows.time[row]}"
                found.append(Misfit(row, what))
        places = np.flatnonzero(fits)
        key, here = rows.key[places], value[places]
        back = (key[1:] == key[:-1]) & (here[1:] < here[:-1])
        if back.any():
            wrong = _going_back(rows, name, places[np.isin(key, key[1:][back])])
            fits[[m.row for m in wrong]] = False
            found += wrong
    return found


def _going_back(rows: Tuples, name: str, places: np.ndarray) -> list[Misfit]:
    """One row after the other; for the keys in which something is wrong."""
    value, fresh, key = reading(rows.columns[name]), rows.fresh, rows.key
    following = np.full(len(places), -1)  # the next row of the key that was there before
    after = -1
    for i in range(len(places) - 1, -1, -1):
        if after >= 0 and key[after] != key[places[i]]:
            after = -1
        if not fresh[places[i]]:
            after = int(places[i])
        following[i] = after
    found, last = [], -1
    for at, after in zip(places.tolist(), following.tolist(), strict=True):
        if last >= 0 and key[last] != key[at]:
            last = -1
        if fresh[at]:
            wrong = ("after", last) if last >= 0 and value[last] > value[at] else None
            if wrong is None and after >= 0 and value[after] < value[at]:
                wrong = ("before", after)
            if wrong is not None:
                word, other = wrong
                what = (
                    f"the measure {name!r} must not go backwards; got {value[at]} at time {rows.time[at]}, {word} "
                    f"{value[other]} at time {rows.time[other]}"
                )
                found.append(Misfit(at, what))
                continue
        last = at
    return found


class Counted:
    """The rows of a view that count in some windows: all of them, or those that fit.

    Attributes
    ----------
    rows
        Their places in the view; None if all rows count.
    starts, ends
        For each key of the view, its rows among those that count.
    """

    def __init__(self, view: View, measures: Sequence[str]) -> None:
        self.view = view
        self.rows: np.ndarray | None = None
        self.starts, self.ends = view.starts, view.ends
        self.key, self.time = view.rows.key, view.time
        if measures:
            fits = view.rows.columns[fits_column(measures)].values > 0
            if not fits.all():
                self.rows = np.flatnonzero(fits)
                self.starts, self.ends = np.searchsorted(self.rows, (view.starts, view.ends))
                self.key, self.time = self.key[self.rows], self.time[self.rows]

    def measure(self, name: str) -> np.ndarray:
        """The values of a measure."""
        values = reading(self.view.rows.columns[name])
        return values if self.rows is None else values[self.rows]

    def number_of(self, place: np.ndarray) -> np.ndarray:
        """How many rows that count come before places of the view."""
        return place if self.rows is None else np.searchsorted(self.rows, place)

    def place_of(self, number: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Where in the view, for each key, the row of a number stands; ``otherwise`` where the key has none."""
        if self.rows is None:
            return np.where(number < self.ends, number, otherwise)
        out = otherwise.copy()
        there = number < self.ends
        out[there] = self.rows[number[there]]
        return out

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each row that counts, which of the view's keys it belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds rows by key and time."""
        return KeyTimeIndex(self.key, self.time)


# -- ticks


@dataclass(frozen=True, eq=False)
class Seen:
    """What must be known of rows that are gone, for every key: how many counted that are final, and the last's time."""

    final: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, memory: tuple[np.ndarray, np.ndarray] | None, counted: Counted) -> Seen:
        """What is remembered, with room for the keys of now."""
        final, last = memory or (NO_ROWS, NO_ROWS)
        many = max(len(final), int(counted.view.keys.max(initial=-1)) + 1)
        more = many - len(final)
        return cls(np.append(final, np.zeros(more, np.int64)), np.append(last, np.full(more, -NEVER)))


@dataclass(frozen=True, eq=False)
class Ticks:
    """Moments at which windows are reported: the key, how many rows come before, the bound, and what decided it."""

    segment: np.ndarray
    high: np.ndarray
    at: np.ndarray
    decided: np.ndarray


def ticks_of(every: Amount, counted: Counted, seen: Seen, step: Step) -> tuple[Ticks, np.ndarray]:
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


def _after_rows(every: int, counted: Counted, base: np.ndarray, step: Step) -> Ticks:
    position = np.arange(len(counted.time)) + np.repeat(base - counted.starts, counted.ends - counted.starts)
    due = ((position + 1) % every == 0) & (counted.time >= step.before) & (counted.time < step.watermark)
    at = np.flatnonzero(due)
    return Ticks(counted.segment[at], at + 1, position[at] + 1, counted.time[at])


def _at_times(every: int, counted: Counted, last_seen: np.ndarray, step: Step) -> Ticks:
    some = np.flatnonzero(counted.starts < counted.ends)
    last_seen, starts, ends = last_seen[some], counted.starts[some], counted.ends[some]

    def tick_after(t: np.ndarray) -> np.ndarray:
        return t // every + 1

    # Ticks up to the one after the last row; those up to the one after the row that was last before are known.
    last = np.minimum(tick_after(counted.time[ends - 1]), step.watermark // every)
    known = np.where(last_seen > -NEVER, np.minimum(tick_after(last_seen) * every, step.before), -NEVER)
    first = np.maximum(tick_after(counted.time[starts]), tick_after(known))
    which, number = enumerate_ranges(first, last)
    tick = number * every
    segment = some[which]
    return Ticks(segment, counted.index.locate(counted.view.keys[segment], tick), tick, tick - 1)


def _on_measure(every: Amount, counted: Counted, step: Step) -> Ticks:
    """A tick is decided by the first row at or beyond it; the one after the last row by the end of the stream."""
    assert every.measure.column is not None
    measure, size = counted.measure(every.measure.column), every.size
    behind = (counted.time >= step.before) & (counted.time <= step.watermark)
    behind[counted.starts[counted.starts < counted.ends]] = False
    row = np.flatnonzero(behind)
    which, k = enumerate_ranges(last_tick(measure[row - 1], size) + 1, last_tick(measure[row], size))
    high = row[which]
    segment, decided = counted.segment[high], counted.time[high]
    if step.watermark >= NEVER:
        some = np.flatnonzero(counted.starts < counted.ends)
        segment, high = np.append(segment, some), np.append(high, counted.ends[some])
        k = np.append(k, last_tick(measure[counted.ends[some] - 1], size) + 1)
        decided = np.append(decided, np.full(len(some), NEVER))
    return Ticks(segment, high, k * size, decided)


def next_tick(every: Amount, came: Came, watermark: int) -> tuple[int, int]:
    """When the next tick may come, for windows in which all rows count: an event time, and a number of rows."""
    size = every.size
    if every.measure == ROWS:
        waits = bool((came.rows // size > came.final // size).any())
        return watermark + 1 if waits else NEVER, int((size - came.rows % size).min()) + 1
    seen = came.last[came.last > -NEVER]
    if every.measure.column is not None or (seen // size + 1 < watermark // size).any():
        return -NEVER, 1  # the next row of a key that was silent brings all ticks since its last one
    return int(watermark // size + 1) * int(size), NEVER


def tick_memory(counted: Counted, seen: Seen, base: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
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


# -- discretisers


class Units(Discretiser):
    """Windows on a numeric column that only advances: ``sliding(units(10, "km"), every=units(1, "km"))``."""

    by_position = True
    distinct = True

    def __init__(self, windows: Sequence[Sliding]) -> None:
        super().__init__(windows)
        self.measures = measures_of(windows[0])

    @property
    def name(self) -> str:
        return f"units of {self.measures[0]}"

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        counted = Counted(view, self.measures)
        pieces = [self._find(f, w, counted) for f, w in enumerate(self.windows) if isinstance(w, Sliding)]
        every = Found(*[np.concatenate(c) for c in zip(*pieces, strict=True)], counted.rows)  # type: ignore[call-arg]
        undecided = every.low[every.decided >= step.horizon]
        if counted.rows is not None:
            undecided = counted.rows[undecided]
        needed = view.earliest(undecided, view.first_at(step.horizon))
        due = (every.decided >= step.before) & (every.decided <= step.watermark)
        return every.take(np.flatnonzero(due)), Needed(needed, NO_ROWS)

    def _find(self, family: int, window: Sliding, counted: Counted) -> tuple[np.ndarray, ...]:
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
        decided = np.full(len(low), NEVER)
        decided[ended] = counted.time[high[ended]]
        return np.full(len(low), family), counted.key[low], low, high, start, start + length, decided


class LookingBack(Discretiser):
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

    def find_on(
        self, view: View, step: Step, memory: tuple[np.ndarray, np.ndarray] | None
    ) -> tuple[Found, Needed, tuple[np.ndarray, np.ndarray]]:
        counted = Counted(view, self.measures)
        seen = Seen.of(memory, counted)
        ticks, base = ticks_of(self.every, counted, seen, step)
        low_of = self._reach(counted)
        low = low_of(ticks.segment, ticks.high)
        found = found_at(self.every, counted, base, ticks, low)
        # Everything that the next windows reach back to, and the last row before them.
        settled = view.first_at(step.horizon)
        high = counted.number_of(settled)
        some = np.flatnonzero(high > counted.starts)
        first = high.copy()
        first[some] = np.minimum(low_of(some, high[some]), high[some] - 1)
        needed = np.minimum(counted.place_of(first, settled), settled)
        return found, Needed(needed, NO_ROWS), tick_memory(counted, seen, base, step)

    def next_due(self, came: Came, watermark: int) -> tuple[int, int]:
        return (-NEVER, 1) if self.measures else next_tick(self.every, came, watermark)

    def _reach(self, counted: Counted) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
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


def found_at(every: Amount, counted: Counted, base: np.ndarray, ticks: Ticks, low: np.ndarray) -> Found:
    """The windows at some ticks that are not empty, with bounds in the measure of the ticks."""
    some = np.flatnonzero(low < ticks.high)
    low, segment = low[some], ticks.segment[some]
    if every.measure == ROWS:
        start = base[segment] + low - counted.starts[segment]
    elif every.measure.column is None:
        start = counted.time[low]
    else:
        start = counted.measure(every.measure.column)[low]
    return Found(
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
