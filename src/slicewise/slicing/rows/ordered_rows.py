"""Views: the rows of a track as discretisers see them, sorted by key and time, with the position of each."""

from __future__ import annotations

import functools

import numpy as np

from slicewise.kernels import KeyTimeIndex, segment_lengths, segment_starts
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY

__all__ = ["OrderedRows"]


class OrderedRows:
    """The rows of a track: sorted by key and time, with the position of each key's first row.

    Rows that are not needed as such any more stand together in one place: a *slice*, at the place of its first row,
    with a *weight* of as many rows. Slices are few, so what they add to places is kept beside them::

        place       0        1     2  3  4          two slices, of 100 and 50 rows, then single rows
        rows before 0        100   150
        row         [------) [---)  a  b  c

    Parameters
    ----------
    folded, weight
        The places of slices, ascending, and how many rows each is.
    base, last_seen
        For every key: the position of its first row here, and the latest event time of any row it ever had.
    """

    def __init__(
        self, rows: Tuples, folded: np.ndarray, weight: np.ndarray, base: np.ndarray, last_seen: np.ndarray
    ) -> None:
        self.rows = rows
        self.folded = folded
        #: How many rows more than places there are before the first slice, the second, ..., and after the last.
        self._more = np.concatenate([[0], np.cumsum(weight - 1)])
        self.time = rows.time
        if not len(rows) or rows.key[0] == rows.key[-1]:
            self.starts = np.zeros(min(len(rows), 1), np.int64)
        else:
            self.starts = segment_starts(rows.key[1:] != rows.key[:-1])
        self.lengths = segment_lengths(self.starts, len(rows))
        self.keys = rows.key[self.starts]
        self.base = base[self.keys]
        self.last_seen = last_seen[self.keys]
        self._shift = self.base - self.before(self.starts)
        self._first_at: dict[int, np.ndarray] = {}

    @functools.cached_property
    def ends(self) -> np.ndarray:
        """Where each key's rows end."""
        return self.starts + self.lengths

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each row, which of the keys it belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.lengths)

    def before(self, place: np.ndarray) -> np.ndarray:
        """How many rows, of all keys, come before a place."""
        if not len(self.folded):
            return place
        return place + self._more[np.searchsorted(self.folded, place)]

    @functools.cached_property
    def position(self) -> np.ndarray:
        """The position of each row among all rows of its key, since the beginning."""
        return self.before(np.arange(len(self.time))) + np.repeat(self._shift, self.lengths)

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds rows by key and time."""
        return KeyTimeIndex(self.rows.key, self.time)

    def place_of(self, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Where in the view the row of some key at a position stands; inside of a slice, where the next row does."""
        wanted = position - self._shift[segment] if len(self.keys) > 1 else position - self._shift
        if not len(self.folded):
            return wanted
        if len(self.keys) == 1 and wanted.min(initial=INFINITY) > self._rows_before_slices[-1]:
            # Behind all slices, as every window is that ends with a row whose order was not final.
            return np.maximum(wanted - self._more[-1], self.folded[-1] + 1)
        slices = np.searchsorted(self._rows_before_slices, wanted)
        behind = np.concatenate([[0], self.folded + 1])
        return np.maximum(wanted - self._more[slices], behind[slices])

    @functools.cached_property
    def _rows_before_slices(self) -> np.ndarray:
        return self.before(self.folded)

    def position_at(self, place: np.ndarray) -> np.ndarray:
        """For each key, the position of the row at a place, or the next position if the place is its end."""
        return self.before(place) + self._shift

    def first_at(self, time: int) -> np.ndarray:
        """For each key, its first row at or after a time."""
        if time >= INFINITY:
            return self.ends.copy()
        if time not in self._first_at:
            self._first_at[time] = self.index.locate(self.keys, np.full(len(self.keys), time))
        return self._first_at[time].copy()

    def earliest(self, low: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """For each key, the first of some rows, but no later than a limit."""
        out = limit.copy()
        if len(self.keys) == 1:
            out[0] = min(out[0], low.min(initial=out[0]))
        else:
            np.minimum.at(out, self.segment[low], low)
        return out
