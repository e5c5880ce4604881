"""Discretisers: where context-aware windows lie among ordered rows. Cutty's word for turning rows into windows.

The rows of each key are in event-time order and have positions 0, 1, 2, ... over the whole life of the stream; every
window is a range of neighbouring rows. A discretiser is asked once per watermark step, with the rows whose order may
still change and those that undecided windows need, and answers for all keys at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid
from slicewise.aggregates.parts import parts_from_data, parts_to_data
from slicewise.amounts import Amount
from slicewise.columns import Column
from slicewise.kernels import enumerate_ranges, segment_ends, segment_lengths, segment_starts
from slicewise.records import record
from slicewise.results import OPEN_END
from slicewise.slicing.rows.monotonic import fitting
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.steps import Step
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY
from slicewise.windows import Conditional, Frames, Punctuated, Shape, Window

__all__ = [
    "Arrivals",
    "ConditionWindows",
    "CountWindows",
    "Discretiser",
    "FrameWindows",
    "MarkerWindows",
    "PunctuationWindows",
    "Remembered",
    "Retained",
    "condition_column",
    "ordinals",
]


@dataclass(frozen=True, eq=False)
class Remembered:
    """What a discretiser remembers, as plain data.

    Attributes
    ----------
    arrays
        With an entry for every key.
    by_key
        What some keys need beside it, by their number.
    """

    arrays: tuple[np.ndarray, ...] = ()
    by_key: Mapping[int, Any] = field(default_factory=dict)

    def of_keys(self, low: int, high: int) -> Remembered:
        """What is remembered of the keys from number ``low`` to before ``high``."""
        return Remembered(
            tuple(array[low:high] for array in self.arrays), {k: v for k, v in self.by_key.items() if low <= k < high}
        )

    @classmethod
    def concat(cls, parts: Sequence[Remembered]) -> Remembered:
        """What is remembered of several ranges of keys, in order."""
        arrays = tuple(np.concatenate(arrays) for arrays in zip(*(part.arrays for part in parts), strict=True))
        return cls(arrays, {key: value for part in parts for key, value in part.by_key.items()})

    def widened(self, monoids: Sequence[Monoid], types: Mapping[str, pa.DataType]) -> Remembered:
        """The same where columns had other types: partials by their labels, under ``asked``, become wider."""
        windows = {
            key: {**value, "asked": _widened(value["asked"], monoids, types)} if _has_partials(value) else value
            for key, value in self.by_key.items()
        }
        return Remembered(self.arrays, windows)

    def to_data(self) -> tuple[tuple[np.ndarray, ...], dict[int, Any]]:
        """The memory as plain data."""
        return self.arrays, dict(self.by_key)

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> Remembered:
        """The memory from what :meth:`to_data` gave."""
        arrays, by_key = data
        return cls(tuple(arrays), by_key)


def _has_partials(value: Any) -> bool:
    return isinstance(value, Mapping) and "asked" in value


def _widened(asked: Mapping[str, Any], monoids: Sequence[Monoid], types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    out = dict(asked)
    for monoid in monoids:
        if all(label in asked for label in monoid.labels):
            parts = monoid.widened(parts_from_data([asked[label] for label in monoid.labels]), types)
            out |= zip(monoid.labels, parts_to_data(parts), strict=True)
    return out


@record
class Retained:
    """What must stay of a view's rows after a step.

    Attributes
    ----------
    rows
        For each key, the first row that is needed as such; earlier ones are only needed in slices, or not at all.
    begins
        The rows with which undecided windows begin: where those slices must start.
    """

    rows: np.ndarray
    begins: np.ndarray


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Of each key, how many rows have come, how many of them before the watermark, and when the last one did."""

    rows: np.ndarray
    final: np.ndarray
    last: np.ndarray


class Discretiser:
    """Finds the windows of some queries of one kind.

    Attributes
    ----------
    windows
        The different windows of that kind.
    by_position
        The bounds that are reported are not event times.
    distinct
        No two windows of a key have the same bounds.
    measures
        The columns by which windows are measured; rows without them, or that go back on one, do not count.
    sliced_measure
        The one measure of windows that can do with slices of rows, which then say where they begin and end on it.
    refusals
        The column, one of ``notes``, that says which rows count, where user code that fails on a row costs that row in
        these windows alone. None where it costs it in all windows on rows, or there is none.
    ends_in_time
        Windows end at an event time that is known without rows behind it, so that time passes after their last row.
    slide, offset
        What lies between two ticks at which windows are reported, whether rows have come or not, and how far behind its
        multiples they lie; None where only rows bring windows about.
    """

    by_position = False
    distinct = False
    ends_in_time = False
    measures: tuple[str, ...] = ()
    sliced_measure: str | None = None
    refusals: str | None = None
    slide: Amount | None = None
    offset: int = 0

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = tuple(windows)

    @functools.cached_property
    def name(self) -> str:
        """Identifies the discretiser among others of the same state, also after some of its windows have gone."""
        return repr(self.windows[0])

    @property
    def notes(self) -> Mapping[str, pa.DataType]:
        """The columns, beside the user's, that rows have for these windows, and slices as marks."""
        return {}

    def note(self, columns: Mapping[str, Column], horizon: np.ndarray) -> dict[str, Column]:
        """What is noted of new rows, once, when they come; of each, at which horizon it did."""
        return {}

    def mark_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
        """The same for slices of places."""
        return {}

    def have_windows(self, columns: Mapping[str, Column]) -> np.ndarray | None:
        """Which of some rows would count if they came in time; None if all of them would."""
        return fitting(columns, self.measures).values > 0 if self.measures else None

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        """The windows due and not final before the step, and what is needed after it."""
        raise NotImplementedError

    def find_on(self, view: OrderedRows, step: Step, memory: Any) -> tuple[WindowRanges, Retained, Any]:
        """The same for windows that remember something of earlier rows: what to remember comes back as well."""
        return *self.find(view, step), None

    def answer(self, query: str, monoids: Mapping[int, Monoid], key_of: Callable[[int], tuple[Any, ...]]) -> None:
        """What will be asked of the windows, by component of the plan; for those that compute it as they are found.

        ``query`` is the first that asks, and ``key_of`` gives the values of a key.
        """

    def next_due(self, came: Arrivals, watermark: int) -> tuple[int, int]:
        """For ordered streams, when the next window may be reported: an event time, and a number of rows."""
        return -INFINITY, 1  # any row may tell

    def save(self, memory: Any) -> Remembered:
        """What is remembered, as plain data."""
        return Remembered(memory)

    def load(self, data: Remembered) -> Any:
        """What :meth:`save` gave, back again."""
        return data.arrays


class CountWindows(Discretiser):
    """Windows on positions, for all of a workload at once: ``sliding(rows(n), every=rows(m))`` and the others.

    Where they lie is arithmetic, as on event time. A window is reported when all its positions are taken, and none
    begins before the first.
    """

    by_position = True
    distinct = True
    name = "counts"

    def __init__(self, windows: Sequence[Window]) -> None:
        super().__init__(windows)
        self.periodic = PeriodicWindows(windows)
        # Columns, beside which positions of keys are rows of tables.
        regular = self.periodic
        self._every, self._phase, self._length, self._most = (
            column[:, None] for column in (regular.every, regular.phase, regular.length, regular.most)
        )
        self._slides = (self.periodic.shape == Shape.SLIDING)[:, None]
        # Window 0 of a sliding family is the first that begins with a row; the others have no window 0.
        self._first = np.where(self._slides, 0, 1)

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        if len(self.windows) == len(view.keys) == 1 and self.periodic.all_sliding:
            return self._find_one(view, step)
        undecided = view.position_at(view.first_at(step.old_horizon))
        # Rows at the watermark may still get company before them.
        passed = view.position_at(view.first_at(step.watermark))
        family, segment, number = self._numbers(self._first_ending_after(undecided), self._last_ended_by(passed))
        start, end = self.periodic.bounds(family, number)
        low, high = view.place_of(segment, start), view.place_of(segment, end)
        windows = WindowRanges(family, view.keys[segment], low, high, start, end, view.last_time(high - 1))
        settled = view.first_at(step.horizon)
        reached = passed if step.horizon == step.watermark else view.position_at(settled)
        return windows, Retained(settled, self._begins(view, reached))

    def _find_one(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        """The same where one window slides over one key: numbers, which are faster than arrays of one."""
        settled = view.first_at(step.horizon)
        passed, reached = int(view.position_at(view.first_at(step.watermark))[0]), int(view.position_at(settled)[0])
        undecided = int(view.position_at(view.first_at(step.old_horizon))[0])
        every, length = int(self.periodic.every[0]), int(self.periodic.length[0])
        end = np.arange(self._next_end(undecided), passed + 1, every)
        start, zeros = end - length, np.zeros(len(end), np.int64)
        low, high = view.place_of(zeros, start), view.place_of(zeros, end)
        windows = WindowRanges(zeros, view.keys[zeros], low, high, start, end, view.last_time(high - 1))
        begun = np.arange(self._next_end(reached) - length, reached, every)
        return windows, Retained(settled, view.place_of(zeros, begun))

    def _next_end(self, position: int) -> int:
        """Where the first of the only windows ends whose last row lies at a position or after it."""
        every, phase = int(self.periodic.every[0]), int(self.periodic.phase[0])
        return phase + every * max((position - phase) // every + 1, 0)

    def next_due(self, came: Arrivals, watermark: int) -> tuple[int, int]:
        # A window that is full waits for a row behind its last one.
        waits = self._end(self._first_ending_after(came.final)) <= came.rows
        missing = self._end(self._first_ending_after(came.rows)) - came.rows
        return watermark + 1 if waits.any() else INFINITY, int(missing.min()) + 1

    def _begins(self, view: OrderedRows, reached: np.ndarray) -> np.ndarray:
        """Where the windows begin that have begun before a position of each key, and end after it."""
        low = self._first_ending_after(reached)
        # Only sliding windows overlap with different begins; of the others, the next to end shows where all begin.
        high = np.where(self._slides, (reached - 1 - self._phase + self._length) // self._every, low)
        family, segment, number = self._numbers(low, np.minimum(high, self._most))
        start = self.periodic.starts(family, number)
        begun = (start < reached[segment]).nonzero()[0]
        return view.place_of(segment[begun], start[begun])

    def _numbers(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Windows from one number to another, both given per family and key: family, key and number of each."""
        which, number = enumerate_ranges(first.ravel(), last.ravel())
        keys = first.shape[1]
        if first.size == 1:
            return which, which, number
        family, segment = np.divmod(which, keys) if keys > 1 else (which, np.zeros(len(which), np.int64))
        return family, segment, number

    def _first_ending_after(self, position: np.ndarray) -> np.ndarray:
        """The number of the first window, per family and key, whose last row lies at a position or after it."""
        numbers: np.ndarray = np.maximum((position - self._phase) // self._every + 1, self._first)
        return numbers

    def _last_ended_by(self, position: np.ndarray) -> np.ndarray:
        """The number of the last window, per family and key, whose last row lies before a position."""
        numbers: np.ndarray = np.minimum((position - self._phase) // self._every, self._most)
        return numbers

    def _end(self, number: np.ndarray) -> np.ndarray:
        """Where windows end; never, if there are none of such numbers."""
        return np.where(number <= self._most, self._phase + number * self._every, INFINITY)


def condition_column(window: Window) -> str:
    """The column, beside the user's, that says which rows meet the condition of a window."""
    return f"\0{window!r}"


class ConditionWindows(Discretiser):
    """What windows by a condition share: which rows meet it is a column of the rows."""

    def __init__(self, window: Conditional) -> None:
        super().__init__([window])
        self.window = window
        self.column = condition_column(window)

    @property
    def notes(self) -> Mapping[str, pa.DataType]:
        return {self.column: self.window.code_type}

    def note(self, columns: Mapping[str, Column], horizon: np.ndarray) -> dict[str, Column]:
        """Which rows meet the condition, unless a function of the user's was shown them already."""
        if self.column in columns:
            return {}
        return {self.column: Column(self.window.codes(columns, len(horizon)), self.window.code_type)}

    def mark_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
        return {self.column: self._codes_of_slices(view, begins, ends)}

    def _codes_of_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """What stands for the rows of each slice."""
        raise NotImplementedError


class MarkerWindows(ConditionWindows):
    """``punctuated``: from each row that meets the condition to the next; what comes before the first is one, too."""

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        begins = view.marks(self.column) != 0
        begins[view.starts] = True
        return _due(view, *_runs(view, begins), step)

    def _codes_of_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """A window starts with the first row of a slice, or with none of them."""
        codes: np.ndarray = view.marks(self.column)[begins]
        return codes


class FrameWindows(ConditionWindows):
    """``frames``: runs of rows that meet the condition."""

    def __init__(self, window: Frames) -> None:
        super().__init__(window)
        self.min_rows = window.min_rows

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        meets = view.marks(self.column) != 0
        changes = meets.copy()
        changes[1:] ^= meets[:-1]
        changes[view.starts] = True
        runs = _runs(view, changes)
        low, high, decided = (values[meets[runs[0]]] for values in runs)
        return _due(view, low, high, decided, step, view.before(high) - view.before(low) >= self.min_rows)

    def _codes_of_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """A frame goes on with the last row of a slice."""
        codes: np.ndarray = view.marks(self.column)[ends - 1]
        return codes


class PunctuationWindows(ConditionWindows):
    """``punctuated`` with a condition for ends too: from a start to the next start or end.

    Codes are those of :meth:`slicewise.windows.Conditional.codes`. Of a slice, the code tells what is true behind it: 1
    if the window that began with it is open, 2 if a window has ended in it and none is open, 0 if nothing has changed.
    """

    def __init__(self, window: Punctuated) -> None:
        super().__init__(window)
        self.closed = window.closed

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        codes = view.marks(self.column)
        events = np.flatnonzero(codes)
        low = events[codes[events] & 1 > 0]
        following = np.append(events, len(codes))[np.searchsorted(events, low) + 1]
        high, decided = _ends(view, low, following)
        if self.closed == "both":
            ended = decided < INFINITY
            high[ended] += codes[high[ended]] >> 1
        return _due(view, low, high, decided, step)

    def _codes_of_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        codes = view.marks(self.column)
        events = np.append(np.flatnonzero(codes), len(codes))
        last = events[np.searchsorted(events, ends) - 1]
        inside = (last >= begins) & (last < ends)
        # A window that is open began with its slice; one that began later in it has ended.
        return np.where(inside, np.where(codes[np.minimum(last, len(codes) - 1)] & 1 > 0, 1, 2), 0)


def _runs(view: OrderedRows, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The runs of rows that begin where ``begins`` is true, each up to the next: from, to, and when that is decided."""
    low = begins.nonzero()[0]
    return low, *_ends(view, low, segment_ends(low, len(begins)))


def _ends(view: OrderedRows, low: np.ndarray, following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where windows end, with a row that follows or with their key, and when: never, as long as no row follows."""
    ends = view.of_key(view.ends, low)
    ended = following < ends
    decided = np.full(len(low), INFINITY)
    decided[ended] = view.time[following[ended]]
    return np.minimum(following, ends), decided


def _due(
    view: OrderedRows,
    low: np.ndarray,
    high: np.ndarray,
    decided: np.ndarray,
    step: Step,
    counted: np.ndarray | bool = True,
) -> tuple[WindowRanges, Retained]:
    """Of windows that rows decide, those that are reported now, if they count; and where undecided ones begin."""
    due = counted & (decided >= step.old_horizon) & (decided <= step.watermark)
    settled = view.first_at(step.horizon)
    undecided = (decided >= step.horizon) & (low < view.of_key(settled, low))
    retained = Retained(settled, low[undecided])
    low, high, decided = low[due], high[due], decided[due]
    end = np.where(decided < INFINITY, decided, OPEN_END)
    families = np.zeros(len(low), np.int64)
    return WindowRanges(families, view.key[low], low, high, view.time[low], end, decided), retained


def ordinals(*columns: np.ndarray) -> np.ndarray:
    """Number rows that are alike in all columns 0, 1, 2, ... in their order.

    >>> ordinals(np.array([5, 7, 5, 5]))
    array([0, 0, 1, 2])
    """
    n = len(columns[0])
    if not n:
        return np.empty(0, np.int64)
    order = np.lexsort(columns[::-1])
    apart = np.zeros(n - 1, bool)
    for column in columns:
        ordered = column[order]
        apart |= ordered[1:] != ordered[:-1]
    starts = segment_starts(apart)
    out = np.empty(n, np.int64)
    out[order] = np.arange(n) - np.repeat(starts, segment_lengths(starts, n))
    return out
