"""Ordered rows: what context-aware windows are ranges of. The rows of each key in event-time order, with positions.

Rows that are not needed as such any more stand together in slices; everything else is a single row.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, segment_lengths, segment_starts
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
        #: How many rows more than places there are before the first slice, the second, ..., and after the last.
        self._excess = np.concatenate([[0], np.cumsum(slices.rows - 1)])
        if not len(self.key) or self.key[0] == self.key[-1]:
            self.starts = np.zeros(min(len(self.key), 1), np.int64)
        else:
            self.starts = segment_starts(self.key[1:] != self.key[:-1])
        self.lengths = segment_lengths(self.starts, len(self.key))
        self.keys = self.key[self.starts]
        self.base = base[self.keys]
        self.last_seen = last_seen[self.keys]
        self._shift = self.base - self.before(self.starts)
        self._first_at: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.key)

    # Places

    @functools.cached_property
    def ends(self) -> np.ndarray:
        """Where each key's rows end."""
        ends: np.ndarray = self.starts + self.lengths
        return ends

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each place, which of the keys it belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    def before(self, place: np.ndarray) -> np.ndarray:
        """How many rows, of all keys, come before a place."""
        if not len(self.slice_places):
            return place
        out: np.ndarray = place + self._excess[np.searchsorted(self.slice_places, place)]
        return out

    @functools.cached_property
    def position(self) -> np.ndarray:
        """The position of each row among all rows of its key, since the beginning."""
        out: np.ndarray = self.before(np.arange(len(self))) + np.repeat(self._shift, self.lengths)
        return out

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds places by key and time."""
        return KeyTimeIndex(self.key, self.time)

    def place_of(self, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Where the row of some key at a position stands; inside of a slice, where the next row does."""
        wanted: np.ndarray = position - self._shift[segment] if len(self.keys) > 1 else position - self._shift
        if not len(self.slice_places):
            return wanted
        if len(self.keys) == 1 and wanted.min(initial=INFINITY) > self._rows_before_slices[-1]:
            # Behind all slices, as every window is that ends with a row whose order was not final.
            behind_all: np.ndarray = np.maximum(wanted - self._excess[-1], self.slice_places[-1] + 1)
            return behind_all
        slices = np.searchsorted(self._rows_before_slices, wanted)
        behind = np.concatenate([[0], self.slice_places + 1])
        places: np.ndarray = np.maximum(wanted - self._excess[slices], behind[slices])
        return places

    @functools.cached_property
    def _rows_before_slices(self) -> np.ndarray:
        return self.before(self.slice_places)

    def position_at(self, place: np.ndarray) -> np.ndarray:
        """For each key, the position of the row at a place, or the next position if the place is its end."""
        out: np.ndarray = self.before(place) + self._shift
        return out

    def first_at(self, time: int) -> np.ndarray:
        """For each key, its first place at or after a time."""
        if time >= INFINITY:
            return self.ends.copy()
        if time not in self._first_at:
            self._first_at[time] = self.index.locate(self.keys, np.full(len(self.keys), time))
        return self._first_at[time].copy()

    def earliest(self, low: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """For each key, the first of some places, but no later than a limit."""
        out = limit.copy()
        if len(self.keys) == 1:
            out[0] = min(out[0], low.min(initial=out[0]))
        else:
            np.minimum.at(out, self.segment[low], low)
        return out

    def of_key(self, values: np.ndarray, place: np.ndarray) -> np.ndarray:
        """What is known of each key, for the key of each place."""
        return values[self.segment[place]] if len(self.keys) > 1 else np.broadcast_to(values[:1], place.shape)

    # What stands there

    def row_at(self, place: Any) -> Any:
        """The numbers, among single rows, of the rows at places; a run of places may be given as a slice."""
        if not len(self.slice_places):
            return place
        if isinstance(place, slice):
            shift = int(np.searchsorted(self.slice_places, place.start))
            return slice(place.start - shift, place.stop - shift)
        return place - np.searchsorted(self.slice_places, place)

    def column(self, name: str, place: Any) -> Column:
        """A column of the single rows at places."""
        return self.rows.columns[name].take(self.row_at(place))

    def marks(self, name: str) -> np.ndarray:
        """What is noted of every place: a column of rows that slices have as a mark; 0 for slices without it."""
        of_slices = self.slices.marks.get(name)
        of_rows = self.rows.columns[name].values if len(self.rows) else NO_ROWS
        if of_slices is None:
            of_slices = np.zeros(len(self.slices), of_rows.dtype)
        return self.merged(of_slices, of_rows)

    def last_time(self, place: np.ndarray) -> np.ndarray:
        """The event time of the last row at each place."""
        return self._of_slices(place, self.time[place], self.slices.last)

    def first_arrival(self, place: np.ndarray | slice) -> np.ndarray:
        """The arrival number of the first row at each place."""
        arrivals: np.ndarray = self._arrivals[place]
        return arrivals

    def last_arrival(self, place: np.ndarray) -> np.ndarray:
        """The arrival number of the last row at each place."""
        if not len(self.slice_places):
            arrivals: np.ndarray = self._arrivals[place]
            return arrivals
        return self._of_slices(place, self._arrivals[place], self.slices.marks[LAST_ARRIVAL])

    @functools.cached_property
    def _arrivals(self) -> np.ndarray:
        return self.marks(ARRIVAL)

    def slice_at(self, place: np.ndarray) -> np.ndarray:
        """The number of the slice at each place, or -1 for a single row."""
        if not len(self.slice_places):
            return np.full(len(place), -1)
        at = np.searchsorted(self.slice_places, place)
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

    def _of_slices(self, place: np.ndarray, of_place: np.ndarray, of_slice: np.ndarray) -> np.ndarray:
        if not len(self.slice_places):
            return of_place
        number = self.slice_at(place)
        return np.where(number >= 0, of_slice[number], of_place)

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
    of_slices = np.arange(len(slices)) + np.searchsorted(rows.key, slices.key)
    return of_slices, np.arange(len(rows)) + np.searchsorted(slices.key, rows.key, "right")
