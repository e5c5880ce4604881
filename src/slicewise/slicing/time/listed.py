"""Listed windows: those that follow no arithmetic, as arrays in which windows are found by search.

The windows of a table or a schedule are divided into *chains*, in which starts and ends ascend together::

    [a      )                      chain 0: a b d
        [b         )               chain 1: c, which lies inside of b
           [c   )
              [d         )

So the windows of a chain that hold an instant stand side by side, as those of a regular window do, and a chain is a
*family* like any other (see :mod:`slicewise.slicing.time.periodic`), whose windows are numbered by their place in one
array of all chains. Where windows depend on the key, every group of keys has families of its own.

A table is there as a whole. Of a schedule, windows are known for a range of event time at once, which follows the rows;
where that would be very many windows, because a row lies far from the others, for ranges around the rows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from slicewise.kernels import KeyTimeIndex, enumerate_ranges, sorted_unique
from slicewise.times import INFINITY, LARGEST_TIME
from slicewise.windows import Listing, WindowList

__all__ = ["ListedWindows", "NumberedKeys"]

#: When more of a schedule must be known, it is asked for about this many edges more than that.
EDGES_AHEAD = 64


class NumberedKeys(Protocol):
    """Which keys numbers stand for."""

    @property
    def values(self) -> Sequence[tuple[object, ...]]:
        """All keys in the order of their numbers."""


class ListedWindows:
    """The windows of some listings, one array entry each, by family.

    Attributes
    ----------
    owner
        For each family the number of its listing.
    start, end
        The bounds of all windows, those of a family side by side and ascending.
    low, high
        Where those of each family stand.
    """

    def __init__(self, listings: Sequence[Listing], key_names: Sequence[str] = ()) -> None:
        self.listings = tuple(listings)
        self._key_names = tuple(key_names)
        self._schedules = [listing for listing in listings if not listing.is_complete]
        self._lists = [listing.windows(0, 1) if listing.is_complete else _NOTHING for listing in listings]
        #: The ranges that are known of schedules, ascending: all windows that hold an instant of one, bounds included.
        self._known: list[tuple[int, int]] = []
        self._keys: NumberedKeys | None = None
        self._groups = [np.empty(0, np.int64) for _ in listings]
        self._arrange()

    def __len__(self) -> int:
        return len(self.low)

    def _arrange(self) -> None:
        """Divide all windows into families."""
        families, owners, self._common, self._by_group = [], [], [], []
        count = 0
        for number, (listing, windows) in enumerate(zip(self.listings, self._lists, strict=True)):
            chain = _chains(windows)
            groups, chains = listing.group_count, int(chain.max(initial=0)) + 1
            families.append(count + chain * groups + windows.group)
            owners += [number] * (groups * chains)
            for begin in range(count, count + groups * chains, groups):
                if listing.keys:
                    self._by_group.append((begin, number))
                else:
                    self._common.append(begin)
            count += groups * chains
        self.owner = np.array(owners, np.int64)
        self.common = np.array(self._common, np.int64)
        family, start, end = (
            np.concatenate([np.empty(0, np.int64), *arrays])
            for arrays in (families, [w.start for w in self._lists], [w.end for w in self._lists])
        )
        order = np.lexsort((end, start, family))
        family, self.start, self.end = family[order], start[order], end[order]
        self.low, self.high = (np.searchsorted(family, np.arange(count), side) for side in ("left", "right"))
        self._starts, self._ends = KeyTimeIndex(family, self.start), KeyTimeIndex(family, self.end)
        self.edges = sorted_unique(np.concatenate([self.start, self.end]))
        self._all_ends = np.sort(self.end)
        steps = np.diff(self.end)[np.diff(family) == 0]
        #: The least distance between the ends of two windows of a family.
        self.shortest = max(int(steps.min(initial=INFINITY)), 1)

    # What is known of schedules

    def cover(self, low: int, high: int, times: np.ndarray | None = None) -> None:
        """Know all windows that hold an instant between these two, both included. Numbers of windows may change.

        Where that is too much, those that hold one of the ``times``, which lie between the two.
        """
        if not self._schedules or self.knows(low, high):
            return
        low, high = max(low, -LARGEST_TIME), min(high, LARGEST_TIME)
        if times is not None and self.is_far(low, high):
            self._cover_around(times)
            return
        known_low, known_high = self._known[-1] if self._known else (low, high)
        width = high - low + 1
        # What was known stays if it is near: rows come a little out of order.
        first = max(min(low, known_low), low - width)
        ahead = self._edges_apart(high)
        if ahead is not None:
            # So far ahead that the next rows find what they need.
            last = max(min(known_high, high + width), high + max(width, EDGES_AHEAD * ahead))
            self._list([(first, min(last, LARGEST_TIME))])
        else:
            self._list([(first, high)])
            self._known = [(first, INFINITY)]  # no window starts behind these

    def _cover_around(self, times: np.ndarray) -> None:
        """Know all windows that hold one of some times, and few others: a row far away lists nothing in between."""
        times = sorted_unique(np.clip(times, -LARGEST_TIME, LARGEST_TIME))
        if all(self.knows(t, t) for t in (int(times[0]), int(times[-1]))):
            low, high = np.array(self._known).T
            at = np.searchsorted(low, times, "right") - 1
            if (times <= high[at]).all():
                return
        near = EDGES_AHEAD * (self._edges_apart(int(times[0])) or 1)
        starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(times) > near)])
        ends = np.append(starts[1:], len(times)) - 1
        self._list(list(zip(times[starts].tolist(), times[ends].tolist(), strict=True)))

    def _list(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Ask schedules for the windows that hold an instant of some ranges, and forget all others."""
        for i, listing in enumerate(self.listings):
            if not listing.is_complete:
                self._lists[i] = listing.windows_in(ranges)
        self._known = list(ranges)
        self._arrange()

    def is_far(self, low: int, high: int) -> bool:
        """Whether there are more edges of schedules between two instants than one would list, as far as one can see."""
        return any(schedule.is_far(low, high) for schedule in self._schedules)

    def _edges_apart(self, t: int) -> int | None:
        """About how far the next edges of schedules lie apart; None if there are none."""
        apart = [schedule.edges_apart(t) for schedule in self._schedules]
        return min((distance for distance in apart if distance is not None), default=None)

    def knows(self, low: int, high: int) -> bool:
        """Whether all windows are known that hold an instant between these two."""
        return not self._schedules or any(begin <= low and high <= end for begin, end in self._known)

    def edges_between(self, low: int, high: int) -> np.ndarray | None:
        """The edges in ``(low, high]``, ascending and each once; None if schedules have very many."""
        if self._schedules and not self.knows(low, high) and self.is_far(low, high):
            return None
        self.cover(low, high)
        return self.edges[np.searchsorted(self.edges, low, "right") : np.searchsorted(self.edges, high, "right")]

    def next_edge(self, t: int) -> int:
        """The first edge after ``t``."""
        at = int(np.searchsorted(self.edges, t, "right"))
        if at < len(self.edges) and self.knows(t, int(self.edges[at])):
            return int(self.edges[at])
        following = (listing.next_edge(t) for listing in self.listings)
        return min((edge for edge in following if edge is not None), default=INFINITY)

    def next_end(self, t: int) -> int:
        """No window ends after ``t`` and before this."""
        if self._schedules:
            return t + 1 if t <= -INFINITY else self.next_edge(t)
        at = int(np.searchsorted(self._all_ends, t, "right"))
        return int(self._all_ends[at]) if at < len(self._all_ends) else INFINITY

    def open_starts(self, t: int) -> np.ndarray:
        """The starts of all windows that hold an instant."""
        if abs(t) >= INFINITY:
            return np.empty(0, np.int64)
        if not self.knows(t, t):
            lists = (listing.windows(t, t + 1) for listing in self.listings)
            return np.concatenate([w.start[(w.start <= t) & (w.end > t)] for w in lists])
        f = np.arange(len(self))
        _, m = enumerate_ranges(self.first(f, t), self.last(f, t))
        starts: np.ndarray = self.start[m]
        return starts

    def oldest_open_start(self, t: int) -> int:
        """The earliest start of any window that ends after ``t``."""
        if abs(t) >= INFINITY:
            return INFINITY if t > 0 else -INFINITY
        m = self.first(np.arange(len(self)), t)
        starts = self.start[m[m < self.high]]
        if not self._schedules:
            return int(starts.min(initial=INFINITY))
        # What is not known yet starts at the next edge, or holds this instant.
        oldest = int(np.concatenate([starts, self.open_starts(t)]).min(initial=INFINITY))
        following = (schedule.next_edge(t) for schedule in self._schedules)
        return min([oldest, *(edge for edge in following if edge is not None)])

    # Families, as of regular windows

    def first(self, f: np.ndarray, t: np.ndarray | int) -> np.ndarray:
        """The place of the first window of family ``f`` that ends after ``t``."""
        return self._located(self._ends, self.end, f, t)

    def last(self, f: np.ndarray, t: np.ndarray | int) -> np.ndarray:
        """The place of the last window of family ``f`` that starts up to ``t``; before the first if none does."""
        return self._located(self._starts, self.start, f, t) - 1

    def _located(self, index: KeyTimeIndex, bounds: np.ndarray, f: np.ndarray, t: np.ndarray | int) -> np.ndarray:
        """How many of the bounds come before those of family ``f`` that lie after ``t``."""
        t = np.asarray(t, np.int64)
        if len(self) == 1:  # one list, as most are: no family to be told from others
            places = bounds.searchsorted(t, "right")
            return places if t.ndim else np.full(len(f), places)
        f, t = np.broadcast_arrays(f, t)
        return index.locate(f, t + 1)

    # Families of keys

    def name_keys(self, keys: NumberedKeys) -> None:
        """Learn which keys the numbers of keys stand for."""
        if not self._by_group:
            return
        values = keys.values
        if keys is not self._keys:
            self._keys, self._groups = keys, [np.empty(0, np.int64) for _ in self.listings]
        for number, listing in enumerate(self.listings):
            known = self._groups[number]
            if listing.keys and len(known) < len(values):
                places = [self._key_names.index(name) for name in listing.keys]
                new = values[len(known) :]
                group = [listing.groups.get(tuple(value[i] for i in places), -1) for value in new]
                self._groups[number] = np.concatenate([known, np.array(group, np.int64)])

    def families_of(self, key: np.ndarray) -> Iterator[np.ndarray]:
        """The families that not all keys have: for each chain those of some keys, -1 for keys without windows."""
        for begin, number in self._by_group:
            group = self._groups[number][key]
            yield np.where(group >= 0, begin + group, -1)


_NOTHING = WindowList(*(np.empty(0, np.int64) for _ in range(3)))


def _chains(windows: WindowList) -> np.ndarray:
    """For each window the number of its chain among those of its group; as few chains as can be.

    Windows are taken by start, and each goes to the chain whose last end is the greatest that is not behind its own.
    There are more chains than one only where a window lies inside another.
    """
    start, end, group = windows
    chain = np.zeros(len(start), np.int64)
    order = np.lexsort((end, start, group))
    back = (group[order][1:] == group[order][:-1]) & (end[order][1:] < end[order][:-1])
    if not back.any():
        return chain
    ends: list[tuple[int, int]] = []  # the last end of each chain, ascending, with the chain
    of_group = -1
    for i in order.tolist():
        if group[i] != of_group:
            ends, of_group = [], int(group[i])
        at = bisect_right(ends, (int(end[i]), len(ends)))
        number = ends.pop(at - 1)[1] if at else len(ends)
        chain[i] = number
        insort(ends, (int(end[i]), number))
    return chain
