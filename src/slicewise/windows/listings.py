"""Listings: where windows lie that follow no arithmetic: in a table, or by a schedule. Given by kinds, for the engine.

A listing gives windows for a range of event time. Windows of some keys only are in *groups*: all keys of a group have
the same windows.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slicewise.errors import QueryError
from slicewise.times import INFINITY, LARGEST_TIME
from slicewise.windows.bounds import Bounds, read_bounds

__all__ = ["EdgeTable", "Listing", "Schedule", "WindowList"]

#: About how many edges are listed between two rows, before those between them are left out.
MOST_BETWEEN = 1_000_000
#: How many edges tell how far they lie apart.
EDGES_APART = 3


class WindowList(NamedTuple):
    """Windows, one array entry each: bounds, and the group of keys that has it; 0 where there are no groups."""

    start: np.ndarray
    end: np.ndarray
    group: np.ndarray

    def take(self, index: np.ndarray) -> WindowList:
        """The windows at ``index``."""
        return WindowList(self.start[index], self.end[index], self.group[index])


class Listing:
    """Windows that can be listed, for all keys alike or by key.

    Attributes
    ----------
    is_complete
        All windows are there at once, whatever range is asked for.
    keys
        The key columns that windows depend on; none where all keys have the same.
    groups
        For the values of these columns the number of the group; a key that is not here has no windows.
    """

    is_complete = False
    keys: tuple[str, ...] = ()
    groups: Mapping[tuple[Any, ...], int] = {}

    @property
    def group_count(self) -> int:
        """How many groups there are; one where all keys have the same windows."""
        return max(self.groups.values(), default=0) + 1 if self.keys else 1

    def windows(self, after: int, upto: int) -> WindowList:
        """All windows that start before ``upto`` and end after ``after``, or more."""
        raise NotImplementedError

    def windows_in(self, ranges: Sequence[tuple[int, int]]) -> WindowList:
        """All windows that hold an instant of some ranges of event time, bounds included; each once."""
        lists = [self.windows(low, high + 1) for low, high in ranges]
        if len(lists) == 1:
            return lists[0]
        start, end, group = (np.concatenate(columns) for columns in zip(*lists, strict=True))
        order = np.lexsort((end, start, group))
        start, end, group = start[order], end[order], group[order]
        again = (start[1:] == start[:-1]) & (end[1:] == end[:-1]) & (group[1:] == group[:-1])
        return WindowList(start, end, group).take(np.flatnonzero(np.concatenate([[True], ~again])[: len(start)]))

    def next_edge(self, t: int) -> int | None:
        """The least start or end after ``t``; None if there is none."""
        raise NotImplementedError

    def edges_apart(self, t: int) -> int | None:
        """About how far the next edges after ``t`` lie apart; None if there are none."""
        edges = [t]
        while len(edges) <= EDGES_APART and (edge := self.next_edge(edges[-1])) is not None:
            edges.append(edge)
        return max((edges[-1] - t) // (len(edges) - 1), 1) if len(edges) > 1 else None

    def is_far(self, low: int, high: int) -> bool:
        """Whether there are more edges between two instants than one would list, as far as one can see."""
        apart = None if self.is_complete else self.edges_apart(low)
        return apart is not None and high - low > MOST_BETWEEN * apart

    def digest(self, after: int, until: int) -> str:
        """A short name for the windows that a state depends on, whose horizon and watermark these are."""
        if abs(after) > LARGEST_TIME or abs(until) > LARGEST_TIME:
            return ""
        listed = self.windows(after, until)
        content = hashlib.sha256(np.concatenate([listed.start, listed.end]).tobytes())
        return f"{len(listed.start)} open windows, {content.hexdigest()[:16]}"


class EdgeTable(Listing):
    """Windows from a table, with the columns beside their bounds as keys.

    Parameters
    ----------
    bounds
        The bounds of all windows, in any order.
    keys
        The values of key columns, for each window.
    """

    is_complete = True

    def __init__(self, bounds: Bounds, keys: Mapping[str, Sequence[Any]], types: Mapping[str, pa.DataType]) -> None:
        self.keys, self.key_types = tuple(keys), dict(types)
        values = list(zip(*keys.values(), strict=True)) if keys else [()] * len(bounds.start)
        groups: dict[tuple[Any, ...], int] = {}
        group = np.array([groups.setdefault(value, len(groups)) for value in values], np.int64)
        # Groups are known by what their keys are, so that those of a table that has grown stay in the same order.
        names = np.array([_hash_of(value) for value in groups], np.int64)
        order = np.lexsort((bounds.end, bounds.start, names[group]))
        self.groups = groups if keys else {}
        self.list = WindowList(bounds.start[order], bounds.end[order], group[order])
        self._names = names[self.list.group]
        self._digests: dict[int, str] = {}
        self._check_once(values, order, bounds)
        self.edges = np.unique(np.concatenate([bounds.start, bounds.end]))

    def _check_once(self, values: Sequence[tuple[Any, ...]], order: np.ndarray, bounds: Bounds) -> None:
        start, end, group = self.list
        again = (start[1:] == start[:-1]) & (end[1:] == end[:-1]) & (group[1:] == group[:-1])
        if again.any():
            at = int(order[1:][again][0])
            key = dict(zip(self.keys, values[at], strict=True))
            of_key = f" of {', '.join(f'{n}={v!r}' for n, v in key.items())}" if key else ""
            raise QueryError(
                f"the window {bounds.shown(at)}{of_key} is in the table of edges twice; leave one out",
                parameter="table",
            )

    def rows(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Each window with its bounds and the values of its key columns."""
        values = {group: dict(zip(self.keys, value, strict=True)) for value, group in self.groups.items()}
        listed = zip(*(column.tolist() for column in self.list), strict=True)
        return [(start, end, values.get(group, {})) for start, end, group in listed]

    def windows(self, after: int, upto: int) -> WindowList:
        return self.list

    def next_edge(self, t: int) -> int | None:
        at = int(np.searchsorted(self.edges, t, "right"))
        return int(self.edges[at]) if at < len(self.edges) else None

    def digest(self, after: int, until: int) -> str:
        begun = self.list.start < until
        count = int(begun.sum())
        if count not in self._digests:
            columns = (self._names, self.list.start, self.list.end)
            content = hashlib.sha256(b"".join(np.ascontiguousarray(c[begun]).tobytes() for c in columns))
            self._digests[count] = f"{count} windows, {content.hexdigest()[:16]}"
        return self._digests[count]

    @property
    def content(self) -> str:
        """A name for all of its windows: two tables with the same ones have the same."""
        return ", ".join([*self.keys, self.digest(-INFINITY, INFINITY)])

    @functools.cached_property
    def longest(self) -> int:
        """The length of the longest window."""
        return int((self.list.end - self.list.start).max(initial=0))

    @functools.cached_property
    def overlap(self) -> int:
        """The most windows of one key that hold an instant at once."""
        start, end, group = self.list
        times, groups = np.concatenate([end, start]), np.concatenate([group, group])
        change = np.repeat([-1, 1], len(start))
        order = np.lexsort((change, times, groups))  # ends first: a window holds its start, and not its end
        return int(np.cumsum(change[order]).max(initial=1))

    def by_number(self, name: str, values: Sequence[tuple[Any, ...]]) -> EdgeTable:
        """The same windows for keys that are one number each: the place of their key among these ``values``."""
        table = object.__new__(EdgeTable)
        table.__dict__.update(self.__dict__)
        numbered = {(number,): self.groups.get(value) for number, value in enumerate(values)}
        table.keys, table.key_types = (name,), {name: pa.int64()}
        table.groups = {key: group for key, group in numbered.items() if group is not None}
        return table

    @property
    def group_count(self) -> int:
        return int(self.list.group.max(initial=0)) + 1


def _hash_of(value: tuple[Any, ...]) -> int:
    return int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:8], "big", signed=True)


class Schedule(Listing):
    """Windows by the user's own object, with ``next_edge`` and ``windows``. No row is shown to it.

    Parameters
    ----------
    code
        What has the two functions.
    name
        What messages call it.
    """

    def __init__(self, code: Any, name: str) -> None:
        self.code, self.name = code, name

    def next_edge(self, t: int) -> int | None:
        given = self.code.next_edge(t)
        if given is None:
            return None
        near = type(given) is int and abs(given) <= LARGEST_TIME
        edge = given if near else int(read_bounds([given], "next_edge").values[0])
        if edge <= t:
            raise QueryError(
                f"`next_edge({t})` of {self.name} must be later than {t}; got {edge}; give the least start or end "
                "after it, or None if there is none",
                parameter="next_edge",
            )
        return edge

    def windows(self, after: int, upto: int) -> WindowList:
        what = f"`windows({after}, {upto})` of {self.name}"
        try:
            bounds = Bounds.of(self.code.windows(after, upto), empty=True)
        except QueryError as error:
            raise QueryError(f"{what}: {error}", parameter="windows") from None
        touching = (bounds.start < upto) & (bounds.end > after)
        start, end = bounds.start[touching], bounds.end[touching]
        order = np.lexsort((end, start))
        start, end = start[order], end[order]
        again = np.flatnonzero((start[1:] == start[:-1]) & (end[1:] == end[:-1]))
        if len(again):
            at = int(again[0])
            raise QueryError(f"{what} has the window [{start[at]}, {end[at]}) twice", parameter="windows")
        return WindowList(start, end, np.zeros(len(start), np.int64))
