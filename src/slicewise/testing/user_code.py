"""User code: the windows that a user's object or policy defines over the rows of one key, with its answers checked.

Cutty's discretisation, both kinds, windows whose edges the object places, and MTA's window slide policy, by definition.
Read by the oracle.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from slicewise.errors import DataError
from slicewise.testing.context_windows import WindowRange, looking_back
from slicewise.testing.oracle_rows import OF_QUERY, ON_ROWS, RefusedRowError, Row, aggregated, column_of
from slicewise.times import largest_time
from slicewise.windows import Evict

__all__ = ["deterministic", "non_deterministic", "placing_edges", "policy"]


def deterministic(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Begins count with the row and come first, ends before it; windows end in the order in which they began.

    ::

                  a       b       c       d
        begins,   1,0     1,0     0,1     0,0
        ends
                 [0---------------)
                          [1--------------        open: no end
    """
    discretiser = _make(query)
    windows: list[WindowRange] = []
    open_at: list[int] = []
    for i, row in enumerate(rows):
        begins, ends = _begins_and_ends(query, row, _ask(query, discretiser, row))
        open_at += [i] * begins
        if ends > len(open_at):
            raise _refuse(query, row, f"ends {ends} windows, but only {len(open_at)} are open")
        ended, open_at = open_at[:ends], open_at[ends:]
        # A window that began with this very row and ends before it holds nothing.
        windows += [WindowRange(rows[low].time, row.time, low, i, row.time, row.time) for low in ended if low < i]
    return windows + [WindowRange(rows[low].time, None, low, len(rows), math.inf, math.inf) for low in open_at]


def non_deterministic(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """The row joins, then some rows leave from the front, then the rest is reported if the object triggers."""
    discretiser = _make(query)
    windows, front = [], 0
    for i, row in enumerate(rows):
        n, trigger = _eviction(query, row, _ask(query, discretiser, row))
        if n > i + 1 - front:
            raise _refuse(query, row, f"evicts {n} rows, but only {i + 1 - front} are in the window")
        front += n
        if trigger and front <= i:
            windows.append(WindowRange(rows[front].time, row.time, front, i + 1, row.time + 1, row.time))
    return windows


def placing_edges(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """One pass in order, in which the object adds and removes edges; the i-th start goes with the i-th end.

    ::

                  a       b       c           d
        edges     +0 +9           -9 +12
                 [0----------------------)                the start of a, the end of c

    A call acts at or after the horizon by which its row was judged. So a window is final when the horizon has passed
    its end and all rows that were judged when its end was not before the horizon.
    """
    discretiser, edges = _make(query, "notify_context(time, row, edges)"), _Edges(largest_time(query.window.unit))
    for row in rows:
        edges.horizon = row.horizon
        _ask(query, discretiser, row, edges)
        # What went wrong stays wrong where the object caught the error.
        wrong = [*edges.wrong, *edges.unpaired()]
        if wrong:
            raise _refuse(query, row, wrong[0], OF_QUERY)
    times = [row.time for row in rows]
    windows = []
    for i, start in enumerate(edges.starts):
        end = edges.ends[i] if i < len(edges.ends) else None
        low, high = bisect_left(times, start), len(rows) if end is None else bisect_left(times, end)
        if low < high:
            due = math.inf if end is None else end
            decided = max([due, *(row.time for row in rows if row.horizon <= due)])
            windows.append(WindowRange(start, end, low, high, due, decided))
    return windows


class _Edges:
    """Edges as an object places them, in two sorted lists."""

    def __init__(self, largest: int) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.largest, self.horizon = largest, -math.inf
        self.wrong: list[str] = []

    def add_start(self, time: int) -> None:
        self._add(self.starts, time)

    def add_end(self, time: int) -> None:
        self._add(self.ends, time)

    def remove_start(self, time: int) -> None:
        self._remove(self.starts, time)

    def remove_end(self, time: int) -> None:
        self._remove(self.ends, time)

    def unpaired(self) -> list[str]:
        """What is wrong with ends that have no start before them."""
        wrong = ["has more ends than starts"] if len(self.ends) > len(self.starts) else []
        pairs = zip(self.starts, self.ends, strict=False)
        return wrong + [
            f"has an end at {end} that is not after its start at {start}" for start, end in pairs if end <= start
        ]

    def _add(self, edges: list[int], time: int) -> None:
        self._check(time)
        edges.append(operator.index(time))
        edges.sort()

    def _remove(self, edges: list[int], time: int) -> None:
        self._check(time)
        if time not in edges:
            self._complain(f"removes an edge at {time}, where there is none")
        edges.remove(time)

    def _check(self, time: Any) -> None:
        if isinstance(time, bool) or not isinstance(time, (int, np.integer)):
            self._complain(f"has an edge at {time!r}, which is no event time")
        if abs(time) > self.largest:
            self._complain(f"has an edge at {time}, where there are no event times")
        if time < self.horizon:
            self._complain(f"has an edge at {time}, which is before the horizon {self.horizon}")

    def _complain(self, what: str) -> None:
        self.wrong.append(what)
        raise DataError(what)


def policy(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """After each row the longest prefix leaves for which, and for all shorter ones, ``evict(total, oldest)`` holds.

    A policy that is said to be monotone must not hold for a longer prefix than one for which it does not: what leaves
    then depends on how a tree was asked, so it is refused.
    """
    window = query.window
    front, fronts = 0, []
    for i, row in enumerate(rows):
        total = _watched(query, row, rows[front : i + 1])
        high = front + 1
        while high <= i + 1 and _evicts(query, row, total, _watched(query, row, rows[front:high])):
            high += 1
        if window.monotone:
            _check_monotone(query, row, total, rows[front : i + 1], high - front)
        front = high - 1
        fronts.append(front)
    return looking_back(rows, window, lambda high: fronts[high - 1])


def _check_monotone(query: Any, row: Row, total: dict[str, Any], rows: Sequence[Row], failed: int) -> None:
    """Refuse a policy that holds for more rows than the ``failed`` oldest ones, for which it does not."""
    for n in range(failed + 1, len(rows) + 1):
        if _evicts(query, row, total, _watched(query, row, rows[:n])):
            raise DataError(
                f"query {query.name!r}: {query.window!r} holds for the {n} oldest rows and not for {failed}; it is not "
                "monotone: say policy(..., monotone=False)"
            )


def _make(query: Any, method: str = "on_record(time, row)") -> Any:
    """A fresh discretiser: the user's object with the method that is asked about rows."""
    try:
        discretiser = query.window.factory()
    except Exception as error:
        raise DataError(f"query {query.name!r}: {query.window!r} cannot be made: {error!r}") from error
    if not callable(getattr(discretiser, method.partition("(")[0], None)):
        raise DataError(
            f"query {query.name!r}: {query.window!r} must make an object with a method {method}; got {discretiser!r}"
        )
    return discretiser


def _ask(query: Any, discretiser: Any, row: Row, edges: _Edges | None = None) -> Any:
    try:
        seen = {name: column_of(row.values, name, f"{query.window!r} reads") for name in query.window.columns}
    except DataError as error:
        raise RefusedRowError(row, query.name, str(error)) from error
    try:
        if edges is not None:
            return discretiser.notify_context(row.time, seen, edges)
        return discretiser.on_record(row.time, seen)
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r}", ON_ROWS if edges is None else OF_QUERY) from error


def _begins_and_ends(query: Any, row: Row, returned: Any) -> tuple[int, int]:
    if isinstance(returned, Evict):
        raise _refuse(
            query, row, f"returned {returned!r}, but is deterministic; say user_defined(..., deterministic=False)"
        )
    try:
        begins, ends = (operator.index(n) for n in returned)
    except (TypeError, ValueError):
        raise _refuse(query, row, f"must return two counts, begins and ends; got {returned!r}") from None
    if begins < 0 or ends < 0:
        raise _refuse(query, row, f"must not return negative counts; got {returned!r}")
    return begins, ends


def _eviction(query: Any, row: Row, returned: Any) -> tuple[int, bool]:
    counted = isinstance(returned, Evict) and isinstance(returned.n, (int, np.integer)) and returned.n >= 0
    if not counted or not isinstance(returned.trigger, (bool, np.bool_)):
        raise _refuse(query, row, f"must return sw.Evict(n, trigger), a count and a boolean; got {returned!r}")
    return int(returned.n), bool(returned.trigger)


def _watched(query: Any, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """What a policy sees of some rows, of which ``row`` has just come."""
    try:
        return aggregated(query.window.watch, rows)
    except DataError:
        raise
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r}") from error


def _evicts(query: Any, row: Row, total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    try:
        verdict = query.window.evict(total, oldest)
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r} on total={total} and oldest={oldest}") from error
    if not isinstance(verdict, (bool, np.bool_)):
        raise _refuse(query, row, f"must return true or false; got {verdict!r}")
    return bool(verdict)


def _refuse(query: Any, row: Row, what: str, out_of: str = ON_ROWS) -> RefusedRowError:
    return RefusedRowError(row, query.name, f"{query.window!r} {what}", out_of)
