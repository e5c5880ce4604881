"""Windowing: where the windows of a workload lie, for all its queries at once. Shared by all baselines.

Tumbling and sliding windows are arithmetic on arrays with an entry per query, those of tables are searched for.
Sessions are found from rows, one :class:`Sessions` per query and key.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slicewise.windows import Sliding, TableEdges, Window

__all__ = ["Due", "Sessions", "TimeWindows"]

#: Further than any event time.
NEVER = 2**61


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
        regular = [(query, *_progression(w)) for query, w in windows.items() if isinstance(w, Sliding)]
        self.query, self.offset, self.length, self.every = np.array(regular, np.int64).reshape(-1, 4).T
        listed = [
            (q, start, end) for q, w in windows.items() if isinstance(w, TableEdges) for start, end, _ in w.table.rows()
        ]
        self.listed = _Listed(np.array(listed, np.int64).reshape(-1, 3))
        self.queries = sorted(windows)

    def ended(self, low: int, high: int, first: int, last: int) -> Due:
        """The windows that end in ``(low, high]`` and may hold rows from ``first`` to ``last``."""
        base = self.offset + self.length
        k = (max(low, first) - base) // self.every + 1
        behind = np.minimum((high - base) // self.every, (last - self.offset) // self.every) + 1
        row, nth = _counted(np.maximum(behind - k, 0))
        start = self.offset[row] + (k[row] + nth) * self.every[row]
        regular = Due(self.query[row], start, start + self.length[row])
        listed = self.listed.ended(max(low, first), high, last)
        return (
            Due(*(np.concatenate(columns) for columns in zip(regular, listed, strict=True)))
            if len(listed.end)
            else regular
        )

    def edges(self, low: int, high: int, *, ends: bool = True) -> np.ndarray:
        """Where windows start, and end, after ``low`` and at or before ``high``; in order, each once."""
        offset, every = self._grids(ends)
        k = (low - offset) // every + 1
        row, nth = _counted(np.maximum((high - offset) // every + 1 - k, 0))
        listed = _between(self.listed.edges if ends else self.listed.starts, low, high)
        return np.unique(np.concatenate([offset[row] + (k[row] + nth) * every[row], listed]))

    def _grids(self, ends: bool) -> tuple[np.ndarray, np.ndarray]:
        if not ends:
            return self.offset, self.every
        return np.concatenate([self.offset, self.offset + self.length]), np.concatenate([self.every, self.every])

    def edge_before(self, time: int) -> int:
        """The last edge at or before an instant; further back than all rows if there is none."""
        offset, every = self._grids(True)
        edges = offset + (time - offset) // every * every
        place = int(np.searchsorted(self.listed.edges, time, side="right"))
        return max(int(edges.max(initial=-NEVER)), int(self.listed.edges[place - 1]) if place else -NEVER)

    def next_start(self, after: int) -> int:
        """The first start after an instant."""
        starts = self.offset + ((after - self.offset) // self.every + 1) * self.every
        return min(int(starts.min(initial=NEVER)), _first_after(self.listed.starts, after))

    def next_end(self, after: int) -> int:
        """The first end after an instant."""
        base = self.offset + self.length
        ends = base + ((after - base) // self.every + 1) * self.every
        return min(int(ends.min(initial=NEVER)), _first_after(self.listed.end, after))

    def needed_from(self, horizon: int) -> int:
        """The start of the first window that ends after an instant: what lies before is in none."""
        k = (horizon - self.offset - self.length) // self.every + 1
        return min(int((self.offset + k * self.every).min(initial=NEVER)), self.listed.needed_from(horizon))

    def holding(self, time: int, after: int, upto: int) -> list[tuple[int, int, int]]:
        """The windows that hold an instant and end in ``(after, upto]``, as (query, start, end)."""
        due = self.ended(max(after, time), upto, time, time)
        return list(zip(due.query.tolist(), due.start.tolist(), due.end.tolist(), strict=True))

    @property
    def pane(self) -> int:
        """The longest length that divides all lengths and slides, and the offsets from the first."""
        shifts = (self.offset - self.offset[0]).tolist()
        return math.gcd(*self.length.tolist(), *self.every.tolist(), *shifts)


class _Listed:
    """The windows of tables by their ends, so that a step looks at those around it and not at all of them."""

    def __init__(self, windows: np.ndarray) -> None:
        self.query, self.start, self.end = windows[np.argsort(windows[:, 2], kind="stable")].T
        self.starts, self.edges = np.unique(self.start), np.unique(np.concatenate([self.start, self.end]))
        #: The earliest start of each window and of those that end after it.
        self._earliest = np.minimum.accumulate(self.start[::-1])[::-1]

    def ended(self, low: int, high: int, last: int) -> Due:
        some = slice(*np.searchsorted(self.end, [low, high], side="right"))
        chosen = self.start[some] <= last
        return Due(self.query[some][chosen], self.start[some][chosen], self.end[some][chosen])

    def needed_from(self, horizon: int) -> int:
        return _at(self._earliest, int(np.searchsorted(self.end, horizon, side="right")))


def _at(values: np.ndarray, place: int) -> int:
    return int(values[place]) if place < len(values) else NEVER


def _first_after(values: np.ndarray, after: int) -> int:
    return _at(values, int(np.searchsorted(values, after, side="right")))


def _between(values: np.ndarray, low: int, high: int) -> np.ndarray:
    return values[slice(*np.searchsorted(values, [low, high], side="right"))]


def _counted(count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of rows, each as often as it counts, and how often it came before.

    >>> _counted(np.array([2, 0, 1]))
    (array([0, 0, 2]), array([0, 1, 0]))
    """
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)


def _progression(window: Sliding) -> tuple[int, int, int]:
    """A window as (offset, length, every)."""
    return window.offset, int(window.length.size), int(window.every.size)


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
