"""Ordered rows: what context-aware windows are ranges of. The rows of each key in event-time order, with positions.

Rows that are not needed as such any more stand together in slices; everything else is a single row.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, segment_ends, segment_starts
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.times import INFINITY

__all__ = ["ARRIVAL", "LAST_ARRIVAL", "OrderedRows"]

#: The arrival number of a row, or of the first row of a slice: a column of rows, a mark of slices.
ARRIVAL = "\0arrival"
#: The arrival number of the last row of a slice.
LAST_ARRIVAL = "\0last arrival"


class OrderedRows:
    """Slices and single rows, sorted by key and time, with the position of each key's first row.

    All slices of a key come before its single rows. A slice stands in one *place*, like a row, and counts as many
    positions as it has rows. Slices are few, so what they add to places is kept beside them::

        place       0        1     2  3  4          two slices, of 100 and 50 rows, then single rows
        rows before 0        100   150
        row         [------) [---)  a  b  c

    Parameters
    ----------
    base, last_seen
        For every key: the position of its first row here, and the latest event time of any row it ever had.
    """

    def __init__(self, slices: Slices, rows: Tuples, base: np.ndarray, last_seen: np.ndarray) -> None:
        self.slices = slices
        self.rows = rows
        self.slice_places, self._row_places = _places(slices, rows)
        self.key = self.merged(slices.key, rows.key)
        self.time = self.merged(slices.first, rows.time)
        size = len(self.key)
        #: Where each key's rows start and end.
        self.starts, self.ends = np.zeros(min(size, 1), np.int64), np.full(min(size, 1), size)
        if size and self.key[0] != self.key[-1]:
            self.starts = segment_starts(self.key[1:] != self.key[:-1])
            self.ends = segment_ends(self.starts, size)
        self.keys = self.key[self.starts]
        self.base = base[self.keys]
        self.last_seen = last_seen[self.keys]
        #: What the position of a row of each key is more than the number of rows, of all keys, before it.
        self._shift = self.base - self.before(self.starts) if len(self.keys) > 1 else self.base
        self._first_at: dict[int, np.ndarray] = {}
        self._marks: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.key)

    # Places

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each place, which of the keys it belongs to."""
        return np.arange(len(self.starts)).repeat(self.ends - self.starts)

    def before(self, place: np.ndarray) -> np.ndarray:
        """How many rows, of all keys, come before a place."""
        if not len(self.slice_places):
            return place
        rows: np.ndarray = self._rows_before[place]
        return rows

    @functools.cached_property
    def _rows_before(self) -> np.ndarray:
        """How many rows come before each place, and before the end."""
        count = len(self.slice_places)
        if self._row_places is None:
            rows = np.arange(len(self) + 1)
            rows[1 : count + 1] = self.slices.rows.cumsum()
            rows[count + 1 :] += rows[count] - count
            return rows
        rows = np.ones(len(self) + 1, np.int64)
        rows[self.slice_places + 1] = self.slices.rows
        rows[0] = 0
        return rows.cumsum()

    @functools.cached_property
    def position(self) -> np.ndarray:
        """The position of each row among all rows of its key, since the beginning."""
        out: np.ndarray = self.before(np.arange(len(self))) + self._shift.repeat(self.ends - self.starts)
        return out

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds places by key and time."""
        return KeyTimeIndex(self.key, self.time)

    def slices_before(self, place: np.ndarray) -> np.ndarray:
        """How many slices, of all keys, come before a place."""
        if self._row_places is None:
            few: np.ndarray = np.minimum(place, len(self.slice_places))
            return few
        slices: np.ndarray = self._slices_before[place]
        return slices

    @functools.cached_property
    def _slices_before(self) -> np.ndarray:
        """How many slices come before each place, and before the end."""
        mark = np.zeros(len(self) + 1, np.int64)
        mark[self.slice_places + 1] = 1
        return mark.cumsum()

    def place_of(self, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Where the row of some key at a position stands; inside of a slice, where the next row does."""
        wanted: np.ndarray = position - (self._shift[segment] if len(self.keys) > 1 else self._shift)
        if not len(self.slice_places):
            return wanted
        if self._row_places is not None:
            places: np.ndarray = self._rows_before.searchsorted(wanted)
            return places
        # Behind the last slice every place is a row.
        before = self._rows_before[: len(self.slice_places) + 1]
        last = before[-1]
        return np.where(wanted > last, wanted - (last - len(self.slice_places)), before.searchsorted(wanted))

    def position_at(self, place: np.ndarray) -> np.ndarray:
        """For each key, the position of the row at a place, or the next position if the place is its end."""
        out: np.ndarray = self.before(place) + self._shift
        return out

    def first_at(self, time: int) -> np.ndarray:
        """For each key, its first place at or after a time."""
        places = self._first_at.get(time)
        if places is None:
            if time >= INFINITY:
                places = self.ends.copy()
            elif len(self.keys) == 1:
                places = np.array([self.time.searchsorted(time)])
            else:
                places = self.index.locate(self.keys, np.full(len(self.keys), time))
            self._first_at[time] = places
        return places.copy()

    def earliest(self, low: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """For each key, the first of some places, but no later than a limit."""
        out = limit.copy()
        if len(self.keys) == 1:
            out[0] = min(out[0], low.min(initial=out[0]))
        else:
            np.minimum.at(out, self.segment[low], low)
        return out

    def of_key(self, values: np.ndarray, place: np.ndarray) -> np.ndarray:
        """What is known of each key, for the key of each place; one entry for all places where there is one key."""
        return values[self.segment[place]] if len(self.keys) > 1 else values[:1]

    # What stands there

    def row_at(self, place: Any) -> Any:
        """The numbers, among single rows, of the rows at places; a run of places may be given as a slice."""
        if not len(self.slice_places):
            return place
        if isinstance(place, slice):
            shift = int(self.slice_places.searchsorted(place.start))
            return slice(place.start - shift, place.stop - shift)
        return place - len(self.slice_places) if self._row_places is None else self._row_numbers[place]

    @functools.cached_property
    def _row_numbers(self) -> np.ndarray:
        """For each place the number, among single rows, of the row that stands there."""
        assert self._row_places is not None
        numbers = np.empty(len(self), np.int64)
        numbers[self._row_places] = np.arange(len(self.rows))
        return numbers

    def column(self, name: str, place: Any) -> Column:
        """A column of the single rows at places."""
        return self.rows.columns[name].take(self.row_at(place))

    def marks(self, name: str) -> np.ndarray:
        """What is noted of every place: a column of rows that slices have as a mark; 0 for slices without it."""
        marks = self._marks.get(name)
        if marks is None:
            of_slices = self.slices.marks.get(name)
            of_rows = self.rows.columns[name].values if len(self.rows) else NO_ROWS
            if of_slices is None:
                of_slices = np.zeros(len(self.slices), of_rows.dtype)
            marks = self._marks[name] = self.merged(of_slices, of_rows)
        return marks

    def last_time(self, place: np.ndarray) -> np.ndarray:
        """The event time of the last row at each place."""
        times: np.ndarray = self._last_times[place]
        return times

    @functools.cached_property
    def _last_times(self) -> np.ndarray:
        return self.merged(self.slices.last, self.rows.time)

    def first_arrival(self, place: np.ndarray | slice) -> np.ndarray:
        """The arrival number of the first row at each place."""
        arrivals: np.ndarray = self.marks(ARRIVAL)[place]
        return arrivals

    def last_arrival(self, place: np.ndarray) -> np.ndarray:
        """The arrival number of the last row at each place."""
        arrivals: np.ndarray = self._last_arrivals[place]
        return arrivals

    @functools.cached_property
    def _last_arrivals(self) -> np.ndarray:
        if not len(self.slice_places):
            return self.marks(ARRIVAL)
        return self.merged(
            self.slices.marks[LAST_ARRIVAL], self.rows.columns[ARRIVAL].values if len(self.rows) else NO_ROWS
        )

    def slice_at(self, place: np.ndarray) -> np.ndarray:
        """The number of the slice at each place, or -1 for a single row."""
        if not len(self.slice_places):
            return np.full(len(place), -1)
        if self._row_places is None:
            return np.where(place < len(self.slice_places), place, -1)
        at = self.slice_places.searchsorted(place)
        there = self.slice_places[np.minimum(at, len(self.slice_places) - 1)] == place
        return np.where(there, at, -1)

    def places_before(self, slices: Slices, rows: Tuples, moved: np.ndarray | None) -> np.ndarray:
        """For each place the one where its content stood in the last step, with new rows behind all of them.

        ``slices`` and ``rows`` are those of the last step; ``moved`` says of each row of now where it stood among those
        with new ones behind them, None if none moved.
        """
        old_slices, old_rows = _places(slices, rows)
        came = np.arange(len(self.rows)) if moved is None else moved
        if not len(slices):
            return came
        old_rows = len(slices) + np.arange(len(rows)) if old_rows is None else old_rows
        there = np.append(old_rows, 0)
        of_rows = np.where(came < len(rows), there[np.minimum(came, len(rows))], came + len(slices))
        return self.merged(old_slices, of_rows)

    def merged(self, of_slices: np.ndarray, of_rows: np.ndarray) -> np.ndarray:
        """Values of slices and of single rows, by place."""
        if not len(of_slices):
            return of_rows
        if self._row_places is None:
            return np.concatenate([of_slices, of_rows])
        out = np.empty(len(of_slices) + len(of_rows), np.result_type(of_slices, of_rows))
        out[self.slice_places] = of_slices
        out[self._row_places] = of_rows
        return out


def _places(slices: Slices, rows: Tuples) -> tuple[np.ndarray, np.ndarray | None]:
    """Where slices and single rows stand among all of them; None for rows that stand behind all slices."""
    if not len(slices):
        return NO_ROWS, None
    if not len(rows) or slices.key[-1] <= rows.key[0]:
        return np.arange(len(slices)), None
    of_slices = np.arange(len(slices)) + rows.key.searchsorted(slices.key)
    is_row = np.ones(len(slices) + len(rows), bool)
    is_row[of_slices] = False
    return of_slices, is_row.nonzero()[0]
