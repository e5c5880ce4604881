"""Discretisers: where context-aware windows lie among the rows of a track. Cutty's word for turning rows into windows.

The rows of each key are in event-time order and have positions 0, 1, 2, ... over the whole life of the stream; every
window is a range of neighbouring rows. A discretiser is asked once per watermark step, with the rows whose order may
still change and those that undecided windows need, and answers for all keys at once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.results import OPEN_END
from slicewise.slicing.kernels import KeyTimeIndex, enumerate_ranges, segment_lengths, segment_starts
from slicewise.slicing.periodic import NEVER
from slicewise.slicing.tuples import Tuples
from slicewise.windows import Frames, Punctuated, Sliding, Window

__all__ = ["Counts", "Discretiser", "Found", "Marked", "Needed", "RowsPerTick", "Step", "TimePerRows", "Units", "View"]


NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Step:
    """One move of the watermark.

    Attributes
    ----------
    before
        The horizon before it: windows decided by earlier rows were final already.
    watermark
        The new watermark: windows due by then are reported.
    horizon
        The new horizon: the order of earlier rows is final from now on.
    """

    before: int
    watermark: int
    horizon: int


@dataclass(frozen=True, eq=False)
class Needed:
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


class View:
    """The rows of a track: sorted by key and time, with the position of each key's first row.

    Rows that are not needed as such any more stand together in one place: a *slice*, at the place of its first row,
    with a ``weight`` of as many rows. All other rows have a weight of 1.
    """

    def __init__(self, rows: Tuples, weight: np.ndarray, base: np.ndarray, last_seen: np.ndarray) -> None:
        self.rows = rows
        self.weight = weight
        self.all_single = int(weight.sum()) == len(weight)
        self.time = rows.time
        self.starts = segment_starts(rows.key[1:] != rows.key[:-1]) if len(rows) else np.empty(0, np.int64)
        self.lengths = segment_lengths(self.starts, len(rows))
        self.keys = rows.key[self.starts]
        self.base = base[self.keys]
        self.last_seen = last_seen[self.keys]

    @property
    def ends(self) -> np.ndarray:
        """Where each key's rows end."""
        return self.starts + self.lengths

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each row, which of the keys it belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    @functools.cached_property
    def position(self) -> np.ndarray:
        """The position of each row among all rows of its key, since the beginning."""
        if self.all_single:
            return np.arange(len(self.time)) + np.repeat(self.base - self.starts, self.lengths)
        before = np.cumsum(self.weight) - self.weight
        return before + np.repeat(self.base - before[self.starts], self.lengths)

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds rows by key and time."""
        return KeyTimeIndex(self.rows.key, self.time)

    def place_of(self, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Where in the view the row of some key at a position stands."""
        if self.all_single:
            return position - self.base[segment] + self.starts[segment]
        return self._by_position.locate(self.keys[segment], position)

    @functools.cached_property
    def _by_position(self) -> KeyTimeIndex:
        return KeyTimeIndex(self.rows.key, self.position)

    def position_at(self, place: np.ndarray) -> np.ndarray:
        """For each key, the position of the row at a place, or the next position if the place is its end."""
        after = self.base + np.add.reduceat(self.weight, self.starts) if len(self.keys) else self.base
        inside = place < self.ends
        out = after.copy()
        out[inside] = self.position[place[inside]]
        return out

    def first_at(self, time: int) -> np.ndarray:
        """For each key, its first row at or after a time."""
        if time >= NEVER:
            return self.ends
        return self.index.locate(self.keys, np.full(len(self.keys), time))

    def earliest(self, low: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """For each key, the first of some rows, but no later than a limit."""
        out = limit.copy()
        np.minimum.at(out, self.segment[low], low)
        return out


@dataclass(frozen=True, eq=False)
class Found:
    """Windows that are due, over the rows of a view.

    Attributes
    ----------
    family
        The number of the window among the discretiser's.
    low, high
        The range of rows; positions in the view, or in ``rows`` where only some rows count.
    start, end
        The bounds that are reported.
    decided
        The event time of the row that decided the window: once the horizon has passed it, the window is final.
    rows
        The rows that count, if not all do.
    """

    family: np.ndarray
    key: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    end: np.ndarray
    decided: np.ndarray
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.family)

    def take(self, index: np.ndarray) -> Found:
        """The windows at ``index``."""
        names = ("family", "key", "low", "high", "start", "end", "decided")
        return Found(*[getattr(self, n)[index] for n in names], self.rows)  # type: ignore[call-arg]


class Discretiser:
    """Finds the windows of some queries of one kind.

    Attributes
    ----------
    windows
        The different windows of that kind.
    by_position
        The bounds that are reported are not event times.
    """

    by_position = False

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = tuple(windows)

    @property
    def name(self) -> str:
        """Tells the discretiser from others of its track, also after some of its windows have gone."""
        return repr(self.windows[0])

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        """The windows due and not final before the step, and what is needed after it."""
        raise NotImplementedError

    def find_on(self, view: View, step: Step, memory: Any) -> tuple[Found, Needed, Any]:
        """The same for windows that remember something of earlier rows: what to remember comes back as well."""
        return *self.find(view, step), None

    def save(self, memory: Any) -> Any:
        """What is remembered, as plain data."""
        return memory

    def load(self, data: Any) -> Any:
        """What :meth:`save` gave, back again."""
        return data


class Counts(Discretiser):
    """``sliding(rows(n), every=rows(m))``: positions ``[k m, k m + n)``, for all such windows of a workload at once."""

    by_position = True
    name = "counts"

    def __init__(self, windows: Sequence[Sliding]) -> None:
        super().__init__(windows)
        self.n = np.array([int(w.length.size) for w in windows], np.int64)[:, None]
        self.m = np.array([int(w.every.size) for w in windows], np.int64)[:, None]
        self.offset = np.array([w.offset for w in windows], np.int64)[:, None]

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        undecided = view.position_at(view.first_at(step.before))
        # Rows at the watermark may still get company before them.
        passed = view.position_at(view.first_at(step.watermark))
        family, segment, start = self._starts(
            self._first_ending_at(undecided), (passed - self.n - self.offset) // self.m
        )
        end = start + self.n[family, 0]
        low, last = view.place_of(segment, start), view.place_of(segment, end - 1)
        found = Found(family, view.keys[segment], low, last + 1, start, end, view.time[last])
        settled = view.first_at(step.horizon)
        reached = view.position_at(settled)
        _, segment, start = self._starts(self._first_ending_at(reached), (reached - 1 - self.offset) // self.m)
        return found, Needed(settled, view.place_of(segment, start))

    def _starts(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Windows from one number to another, both given per window and key: which they are, and where they start."""
        which, k = enumerate_ranges(first.ravel(), last.ravel())
        family, segment = np.divmod(which, first.shape[1]) if first.shape[1] else (which, which)
        return family, segment, k * self.m[family, 0] + self.offset[family, 0]

    def _first_ending_at(self, position: np.ndarray) -> np.ndarray:
        """The first window whose last row lies at a position or after it."""
        return np.maximum(-((self.n + self.offset - 1 - position) // self.m), 0)


class TimePerRows(Discretiser):
    """``sliding(L, every=rows(m))``: after every m-th row, the rows less than L before it, itself included."""

    by_position = True

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        (window,) = self.windows
        assert isinstance(window, Sliding)
        length, every = int(window.length.size), int(window.every.size)
        tick = (view.position + 1) % every == 0
        at = np.flatnonzero(tick & (view.time >= step.before) & (view.time < step.watermark))
        key = view.rows.key[at]
        low = view.index.locate(key, view.time[at] - length + 1)
        position = view.position
        found = Found(np.zeros(len(at), np.int64), key, low, at + 1, position[low], position[at] + 1, view.time[at])
        settled = view.first_at(step.horizon)
        needed = view.first_at(step.horizon - length + 1) if step.horizon < NEVER else settled
        return found, Needed(np.minimum(needed, settled), NO_ROWS)


class RowsPerTick(Discretiser):
    """``sliding(rows(n), every=T)``: at each tick of T, the last n rows before it, fewer at the beginning."""

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        (window,) = self.windows
        assert isinstance(window, Sliding)
        n, every = int(window.length.size), int(window.every.size)

        def tick_after(t: np.ndarray) -> np.ndarray:
            return (t - window.offset) // every * every + every + window.offset

        # Ticks up to the one after the last row; those up to the one after the row that was last before are known.
        last = tick_after(view.time[view.ends - 1]) if len(view.keys) else view.ends
        known = np.where(view.last_seen > -NEVER, np.minimum(tick_after(view.last_seen), step.before), -NEVER)
        first = np.maximum(tick_after(view.time[view.starts]), tick_after(known)) if len(view.keys) else view.starts
        last = np.minimum(last, (step.watermark - window.offset) // every * every + window.offset)
        segment, number = enumerate_ranges(first // every, last // every)
        tick = first[segment] + (number - first[segment] // every) * every
        key = view.keys[segment]
        high = view.index.locate(key, tick)
        low = np.maximum(high - n, view.starts[segment])
        found = Found(np.zeros(len(key), np.int64), key, low, high, view.time[low], tick, tick - 1)
        settled = view.first_at(step.horizon)
        return found, Needed(np.maximum(settled - n, view.starts), NO_ROWS)


class Marked(Discretiser):
    """``punctuated`` and ``frames``: runs of rows told apart by a condition, which is a column of the rows."""

    def __init__(self, window: Punctuated | Frames) -> None:
        super().__init__([window])
        self.window = window
        self.column = f"\0{window!r}"
        self.frames = isinstance(window, Frames)
        self.min_rows = window.min_rows if isinstance(window, Frames) else 1

    def mark(self, columns: Mapping[str, Column], rows: int) -> Column:
        """Which rows meet the condition, as a column beside the user's; told once, when rows come."""
        return Column(self.window.rule.mask(columns, rows, query=repr(self.window)).astype(np.int64), pa.bool_())

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        meets = view.rows.columns[self.column].values.astype(bool)
        head = np.zeros(len(meets), bool)
        head[view.starts] = True
        if self.frames:
            begins = head | (meets != np.concatenate([[False], meets[:-1]]))
        else:
            begins = head | meets
        low = np.flatnonzero(begins)
        high = np.append(low[1:], len(meets))[: len(low)]
        segment = view.segment[low]
        ended = high < view.ends[segment]
        decided = np.full(len(low), NEVER)
        decided[ended] = view.time[high[ended]]
        counted = np.ones(len(low), bool)
        if self.frames:
            before = np.concatenate([[0], np.cumsum(view.weight)])
            counted = meets[low] & (before[high] - before[low] >= self.min_rows)
        due = counted & (decided >= step.before) & (decided <= step.watermark)
        found = Found(
            np.zeros(len(low), np.int64),
            view.rows.key[low],
            low,
            high,
            view.time[low],
            np.where(ended, decided, OPEN_END),
            decided,
        )
        settled = view.first_at(step.horizon)
        undecided = (decided >= step.horizon) & (meets[low] | (not self.frames)) & (low < settled[segment])
        return found.take(np.flatnonzero(due)), Needed(settled, low[undecided])


class Units(Discretiser):
    """Windows on a numeric column that only advances: ``sliding(units(10, "km"), every=units(1, "km"))``."""

    by_position = True

    def __init__(self, windows: Sequence[Sliding]) -> None:
        super().__init__(windows)
        self.column = str(windows[0].length.measure.column)

    @property
    def name(self) -> str:
        return f"units of {self.column}"

    def find(self, view: View, step: Step) -> tuple[Found, Needed]:
        column = view.rows.columns[self.column]
        rows = None if column.valid is None else np.flatnonzero(column.valid)
        measure = column.values if rows is None else column.values[rows]
        key = view.rows.key if rows is None else view.rows.key[rows]
        time = view.time if rows is None else view.time[rows]
        pieces = [self._find(f, w, key, measure, time) for f, w in enumerate(self.windows) if isinstance(w, Sliding)]
        every = Found(*[np.concatenate(c) for c in zip(*pieces, strict=True)], rows)  # type: ignore[call-arg]
        undecided = every.low[every.decided >= step.horizon]
        needed = view.earliest(undecided if rows is None else rows[undecided], view.first_at(step.horizon))
        due = (every.decided >= step.before) & (every.decided <= step.watermark)
        return every.take(np.flatnonzero(due)), Needed(needed, NO_ROWS)

    @staticmethod
    def _find(
        family: int, window: Sliding, key: np.ndarray, measure: np.ndarray, time: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        length, every, offset = window.length.size, window.every.size, window.offset
        first = np.floor((measure - offset - length) / every).astype(np.int64) + 1
        last = np.floor((measure - offset) / every).astype(np.int64)
        # A row adds the windows after those of the row before it; it is the first row of each.
        same = np.concatenate([[False], key[1:] == key[:-1]])
        first[1:] = np.where(same[1:], np.maximum(first[1:], last[:-1] + 1), first[1:])
        low, k = enumerate_ranges(first, last)
        start = k * every + offset
        high = _locate(key, measure, key[low], start + length)
        ended = high < len(key)
        ended[ended] = key[high[ended]] == key[low[ended]]
        decided = np.full(len(low), NEVER)
        decided[ended] = time[high[ended]]
        return np.full(len(low), family), key[low], low, high, start, start + length, decided

    def check(self, rows: Tuples) -> None:
        """Refuse a row whose measure goes backwards."""
        column = rows.columns[self.column]
        places = np.flatnonzero(column.mask)
        value, key = column.values[places], rows.key[places]
        back = np.flatnonzero((key[1:] == key[:-1]) & (value[1:] < value[:-1])) + 1
        if not len(back):
            return
        at = int(back[0])
        # The newer of the two rows is to blame.
        blamed = at if rows.fresh[places[at]] else at - 1
        raise RefusedRowsError(
            f"the measure {self.column!r} must not go backwards; it is {value[at - 1]} at time "
            f"{rows.time[places[at - 1]]} and {value[at]} at time {rows.time[places[at]]}; the row at time "
            f"{rows.time[places[blamed]]} was left out",
            [int(places[blamed])],
        )


def _locate(key: np.ndarray, value: np.ndarray, wanted_key: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How many rows, sorted by key and value, come before each wanted pair."""
    n = len(key)
    order = np.lexsort(
        (
            np.concatenate([np.ones(n, bool), np.zeros(len(wanted), bool)]),
            np.concatenate([value, wanted]),
            np.concatenate([key, wanted_key]),
        )
    )
    is_row = order < n
    before = np.cumsum(is_row)
    out = np.empty(len(wanted), np.int64)
    out[order[~is_row] - n] = before[~is_row]
    return out


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
