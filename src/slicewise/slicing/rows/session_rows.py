"""Sessions among ordered rows: those of limited length, and those in which every row has a gap. A discretiser.

Whether a row joins depends on the first row of the session and on all others in it, so sessions are found one row after
the other::

    times      0   3   6   9   12          session(4, max_length=10)
               [----------------)          the row at 12 comes 10 or more after the first
                                [----      and starts the next
               ^
    with a late row at -2, the session ends before 9 instead
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, sorted_unique
from slicewise.slicing.rows.discretisers import Discretiser, Retained
from slicewise.slicing.rows.monotonic import parted, reduced
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY
from slicewise.windows import RowSession

__all__ = ["SessionRows"]

#: What is remembered of each key: when its open session began, and until when a row joins it as far as is final.
Memory = tuple[np.ndarray, np.ndarray]


class SessionRows(Discretiser):
    """``session("5 minutes", max_length="2 hours")`` and ``session(sw.expr("..."))``.

    At the horizon at most one session of a key is open. Its rows up to there stand in slices, and all that must be
    known of them is remembered: when it began, and the latest of time + gap.
    """

    distinct = True

    def __init__(self, window: RowSession) -> None:
        super().__init__([window])
        self.window = window
        self.longest = INFINITY if window.max_length is None else int(window.max_length.size)
        #: The gap of each row, where rows have gaps; of a slice, whether its rows belong to sessions.
        self.column = f"\0{window!r}" if window.reads else None

    @property
    def notes(self) -> Mapping[str, pa.DataType]:
        return {} if self.column is None else {self.column: pa.int64()}

    def note(self, columns: Mapping[str, Column], horizon: np.ndarray) -> dict[str, Column]:
        if self.column is None:
            return {}
        return {self.column: Column(self.window.gaps(columns, len(horizon)), pa.int64())}

    def mark_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
        return {} if self.column is None else {self.column: np.minimum(view.marks(self.column)[begins], 1)}

    def have_windows(self, columns: Mapping[str, Column]) -> np.ndarray | None:
        return self.window.gaps(columns, 0) > 0 if self.window.reads else None

    def find_on(self, view: OrderedRows, step: Step, memory: Memory | None) -> tuple[WindowRanges, Retained, Memory]:
        began, until = _grown(memory, view)
        place, reach = self._counting(view, began, until)
        key, time = view.key[place], view.time[place]
        low = session_starts(key, time, reach, self.longest)
        high = np.append(low[1:], len(place))[: len(low)]
        first = time[low]
        latest = reduced(np.maximum, reach, low, high)
        # The last instant at which a row would join.
        decided = np.minimum(latest, first + (self.longest - 1))
        end = np.minimum(latest, first + self.longest)
        rows = None if len(place) == len(view) else place
        sessions = WindowRanges(np.zeros(len(low), np.int64), key[low], low, high, first, end, decided, rows)
        due = (decided >= step.old_horizon) & (decided < step.watermark)
        settled = view.first_at(step.horizon)
        is_open = np.flatnonzero((decided >= step.horizon) & (first < step.horizon))
        began[view.keys] = np.maximum(began[view.keys], step.horizon)
        began[key[low[is_open]]] = first[is_open]
        final = np.where(time < step.horizon, reach, -INFINITY)
        until[key[low[is_open]]] = reduced(np.maximum, final, low, high)[is_open]
        begins = self._parted(view, place, place[low[is_open]], settled)
        return sessions.take(np.flatnonzero(due)), Retained(settled, begins), (began, until)

    def _counting(self, view: OrderedRows, began: np.ndarray, until: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places that belong to sessions which are not final, and how far a row after each may be to join."""
        gap = np.full(len(view), self._fixed_gap) if self.column is None else view.marks(self.column)
        place = np.flatnonzero((gap > 0) & (view.time >= began[view.key]))
        reach = view.time[place] + gap[place]
        sliced = view.slice_at(place) >= 0
        reach[sliced] = until[view.key[place[sliced]]]
        return place, reach

    @property
    def _fixed_gap(self) -> int:
        return int(self.window.gaps({}, 1)[0])

    def _parted(self, view: OrderedRows, place: np.ndarray, begins: np.ndarray, settled: np.ndarray) -> np.ndarray:
        """Where slices begin: with the open sessions, and so that none holds rows that belong to none."""
        begins = sorted_unique(begins[begins < view.of_key(settled, begins)])
        counts = np.zeros(len(view), bool)
        counts[place] = True
        return parted(view, counts, begins, settled)


def _grown(memory: Memory | None, view: OrderedRows) -> Memory:
    """Copies of what is remembered, with room for the keys of now."""
    began, until = memory or (NO_ROWS, NO_ROWS)
    added = np.full(max(int(view.keys.max(initial=-1)) + 1 - len(began), 0), -INFINITY)
    return np.append(began, added), np.append(until, added)


def session_starts(key: np.ndarray, time: np.ndarray, reach: np.ndarray, longest: int) -> np.ndarray:
    """Where sessions start among rows by key and time, of which each may be followed by rows up to its ``reach``.

    A row starts one if it lies behind the reach of all rows of the session so far, or ``longest`` behind its first.

    >>> session_starts(np.zeros(5, np.int64), np.array([0, 3, 6, 9, 12]), np.array([4, 7, 10, 13, 16]), 10)
    array([0, 4])

    Runtime complexity: O(n log n), in array steps where nothing is cut for its length; where it is, a step for each
    session of the key that has most of them, and a row at a time where rows have gaps of different length.
    """
    if not len(key):
        return NO_ROWS
    starts = _gap_starts(key, time, reach)
    lasts = np.append(starts[1:], len(key)) - 1
    too_long = time[lasts] - time[starts] >= longest
    if not too_long.any():
        return starts
    if (np.diff(reach - time) == 0).all():
        return _cut_evenly(key, time, starts, lasts, too_long, longest)
    pieces = [starts[~too_long]]
    for start, last in zip(starts[too_long].tolist(), lasts[too_long].tolist(), strict=True):
        pieces.append(_cut_one_by_one(time[start : last + 1], reach[start : last + 1], longest) + start)
    return np.sort(np.concatenate(pieces))


def _gap_starts(key: np.ndarray, time: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Where sessions start of which none is cut for its length."""
    new_key = np.concatenate([[True], key[1:] != key[:-1]])
    number = np.cumsum(new_key) - 1
    # The latest reach so far of each key: with keys far apart, one running maximum does for all of them.
    order = np.argsort(reach, kind="stable")
    rank = np.empty(len(reach), np.int64)
    rank[order] = np.arange(len(reach))
    running = np.maximum.accumulate(rank + number * len(reach)) - number * len(reach)
    before = np.concatenate([[0], reach[order[running]][:-1]])
    starts = new_key | (time > before)
    return np.flatnonzero(starts)


def _cut_evenly(
    key: np.ndarray, time: np.ndarray, starts: np.ndarray, lasts: np.ndarray, too_long: np.ndarray, longest: int
) -> np.ndarray:
    """Where all gaps are equal: sessions that are too long are cut again and again, all of them at once."""
    index, pieces = KeyTimeIndex(key, time), [starts]
    start, last = starts[too_long], lasts[too_long]
    while len(start):
        start = index.locate(key[start], time[start] + longest)
        inside = start <= last
        start, last = start[inside], last[inside]
        pieces.append(start)
    return np.sort(np.concatenate(pieces))


def _cut_one_by_one(time: np.ndarray, reach: np.ndarray, longest: int) -> np.ndarray:
    starts, latest, first = [0], int(reach[0]), int(time[0])
    for i, (t, r) in enumerate(zip(time[1:].tolist(), reach[1:].tolist(), strict=True), 1):
        if t > latest or t - first >= longest:
            starts.append(i)
            latest, first = r, t
        else:
            latest = max(latest, r)
    return np.array(starts)
