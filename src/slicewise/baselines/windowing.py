"""Windowing: where the windows of a workload lie, for all its queries at once. Shared by all baselines.

Tumbling and sliding windows, and those of a table, are arithmetic on arrays with an entry per query (per window of a
table). Sessions are found from rows, one :class:`Sessions` per query and key.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slicewise.windows import Sliding, TableEdges, Window

__all__ = ["Due", "Sessions", "TimeWindows"]

#: The slide of a window that comes only once: further than any event time.
ONCE = 2**61


class Due(NamedTuple):
    """Windows, one entry each: the query, start and end."""

    query: np.ndarray
    start: np.ndarray
    end: np.ndarray


class TimeWindows:
    """The windows of some queries on event time.

    Parameters
    ----------
    windows
        The windows by the number of their query: tumbling, sliding or from a table without keys.

    Examples
    --------
    >>> import slicewise as sw
    >>> windows = TimeWindows({0: sw.tumbling(10), 1: sw.sliding(20, every=5)})
    >>> due = windows.ended(low=10, high=20, first=0, last=99)
    >>> list(zip(*(column.tolist() for column in due)))
    [(0, 10, 20), (1, -5, 15), (1, 0, 20)]
    >>> windows.edges(low=0, high=10).tolist()
    [5, 10]
    """

    def __init__(self, windows: dict[int, Window]) -> None:
        rows = [(query, *row) for query, window in windows.items() for row in _progressions(window)]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        self.query, self.offset, self.length, self.every = columns

    def __len__(self) -> int:
        return len(self.query)

    def ended(self, low: int, high: int, first: int, last: int) -> Due:
        """The windows that end in ``(low, high]`` and may hold rows from ``first`` to ``last``."""
        base = self.offset + self.length
        k = (max(low, first) - base) // self.every + 1
        behind = np.minimum((high - base) // self.every, (last - self.offset) // self.every) + 1
        count = np.maximum(behind - k, 0)
        row = np.repeat(np.arange(len(k)), count)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        start = self.offset[row] + (k[row] + nth) * self.every[row]
        return Due(self.query[row], start, start + self.length[row])

    def edges(self, low: int, high: int, *, ends: bool = True) -> np.ndarray:
        """Where windows start, and end, after ``low`` and at or before ``high``; in order, each once."""
        offset = np.concatenate([self.offset, self.offset + self.length]) if ends else self.offset
        every = np.concatenate([self.every, self.every]) if ends else self.every
        k = (low - offset) // every + 1
        count = np.maximum((high - offset) // every + 1 - k, 0)
        row = np.repeat(np.arange(len(k)), count)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        return np.unique(offset[row] + (k[row] + nth) * every[row])

    def edge_before(self, time: int) -> int:
        """The last edge at or before an instant; further back than all rows if there is none."""
        offset = np.concatenate([self.offset, self.offset + self.length])
        every = np.concatenate([self.every, self.every])
        edges = offset + (time - offset) // every * every
        return int(edges.max()) if len(edges) else -ONCE

    def next_end(self, after: int) -> int:
        """The first end after an instant."""
        base = self.offset + self.length
        return int((base + ((after - base) // self.every + 1) * self.every).min()) if len(self) else ONCE

    def needed_from(self, horizon: int) -> int:
        """The start of the first window that ends after an instant: what lies before is in none."""
        k = (horizon - self.offset - self.length) // self.every + 1
        return int((self.offset + k * self.every).min()) if len(self) else ONCE

    def holding(self, time: int, after: int, upto: int) -> list[tuple[int, int, int]]:
        """The windows that hold an instant and end in ``(after, upto]``, as (query, start, end)."""
        due = self.ended(max(after, time), upto, time, time)
        return list(zip(due.query.tolist(), due.start.tolist(), due.end.tolist(), strict=True))

    @property
    def pane(self) -> int:
        """The longest length that divides all lengths and slides, and the offsets from the first."""
        shifts = (self.offset - self.offset[0]).tolist()
        return math.gcd(*self.length.tolist(), *self.every.tolist(), *shifts)


def _progressions(window: Window) -> list[tuple[int, int, int]]:
    """A window as (offset, length, every); one entry per window of a table."""
    if isinstance(window, TableEdges):
        return [(start, end - start, ONCE) for start, end, _ in window.table.rows()]
    assert isinstance(window, Sliding)
    return [(window.offset, int(window.length.size), int(window.every.size))]


class Sessions:
    """The sessions of one query and key that are not over.

    Examples
    --------
    >>> sessions = Sessions(gap=5)
    >>> sessions.add([1, 3, 20])
    >>> sessions.add([8, 27])
    >>> sessions.open
    [[1, 8], [20, 20], [27, 27]]
    >>> sessions.ended(26), sessions.open
    ([(1, 8), (20, 20)], [[27, 27]])
    """

    def __init__(self, gap: int) -> None:
        self.gap = gap
        self.open: list[list[int]] = []

    def add(self, times: Sequence[int]) -> None:
        """Let rows join: times in order."""
        if len(times) == 1:
            self._join(times[0], times[0])
            return
        at = np.asarray(times, np.int64)
        cuts = np.flatnonzero(np.diff(at) > self.gap) + 1
        for first, last in zip(at[np.r_[0, cuts]].tolist(), at[np.r_[cuts, len(at)] - 1].tolist(), strict=True):
            self._join(first, last)

    def _join(self, first: int, last: int) -> None:
        """Put in a run of rows, and make one of what it bridges."""
        newest = self.open[-1] if self.open else None
        if newest is not None and newest[0] <= first and first - self.gap <= newest[1]:
            newest[1] = max(newest[1], last)
            return
        low = bisect_left(self.open, first - self.gap, key=lambda run: run[1])
        high = low
        while high < len(self.open) and self.open[high][0] <= last + self.gap:
            high += 1
        joined = self.open[low:high]
        self.open[low:high] = (
            [[min(first, *(r[0] for r in joined)), max(last, *(r[1] for r in joined))]] if joined else [[first, last]]
        )

    def ended(self, watermark: int) -> list[tuple[int, int]]:
        """Take out the sessions that are over: (first, last) of their rows."""
        over = [(first, last) for first, last in self.open if last + self.gap < watermark]
        self.open = self.open[len(over) :]
        return over
