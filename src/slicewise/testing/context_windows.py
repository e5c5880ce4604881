"""Context-aware windows: where they lie among the rows of one key, by definition. The oracle reports them.

The rows are in event-time order and have positions 0, 1, 2, ...; every window is a range ``[low, high)`` of positions.
Each has a time at which it is *due*, when the watermark reaches it, and a time at which a row or a tick has *decided*
it: once no row can arrive before that time, the window is final.

======================================  ==========================  =========================  ======================
window                                  holds                       start, end                 due
======================================  ==========================  =========================  ======================
``sliding(rows(n), every=rows(m))``     positions [k m, k m + n)    these positions            after its last row
``sliding(units(x), every=units(y))``   measures [k y, k y + x)     these bounds               at the first row beyond
other kinds on rows or units            as on event time            these bounds               as above
``session(units(x))``                   a run less far apart        [first, last + x)          at the first row beyond
``session(x, max_length=y)``            a run less far apart, less  [first, last + x), or      behind the last instant
                                        than y behind the first     [first, first + y)         at which a row joins
``punctuated``                          from marker to marker       times of the markers       at the marker behind it
``trailing(n)``                         the rows of n before each   [t - n, t]                 after t; at t where the
                                        time t that has rows                                   rows at t are not in it
``trailing(rows(n))``                   the last n up to each row   these positions            after its row
``frames``                              a run that meets the        times of its first row     at the row that breaks
                                        condition                   and of the row behind it   the run
``sliding`` with two measures,          at each tick of ``every``,  positions; time and tick;  after the m-th row; at
``policy``, ``adaptive``                the last ``length`` before  measure and tick           the tick; at the first
                                        it, or the rows not                                    row at or beyond it
                                        evicted
======================================  ==========================  =========================  ======================

Windows that users write in code are in :mod:`slicewise.testing.user_code`. Conditions are the one part of the oracle
that runs code of the engine: the masks of :mod:`slicewise.conditions`, which have a twin of their own, row by row, in
the tests.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from slicewise.amounts import ROWS, Amount, to_offset
from slicewise.columns import Column
from slicewise.errors import DataError, QueryError
from slicewise.testing.oracle_rows import ANYWHERE, OF_QUERY, RefusedRowError, Row, column_of
from slicewise.testing.ticks import tick_after, ticks_over, windows_with

__all__ = [
    "Tick",
    "WindowRange",
    "counts",
    "frames",
    "gap_of",
    "looking_back",
    "measure_sessions",
    "multi_measure",
    "punctuated",
    "row_sessions",
    "trailing",
    "units",
]


class WindowRange(NamedTuple):
    """A window: its bounds as reported, its positions, when it is due, and the event time that decides it."""

    start: Any
    end: Any
    low: int
    high: int
    due: float
    decided: float


class Tick(NamedTuple):
    """A moment at which to report: the number of rows before it, and the times of its :class:`WindowRange`."""

    at: Any
    high: int
    due: float
    decided: float


def counts(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Full windows only.

    ::

        positions   0  1  2  3  4  5  6          sliding(rows(3), every=rows(2))
                   [0-------)
                         [1-------)
                               [2-------)
    """
    windows = []
    for low, high in _positions(query.window, len(rows)):
        last = rows[high - 1].time
        windows.append(WindowRange(low, high, low, high, last + 1, last))
    return windows


def _positions(window: Any, n: int) -> list[tuple[int, int]]:
    """The windows on rows that n rows fill."""
    if window.kind == "between":
        listed = [(window.start, window.end)]
    elif window.kind == "landmark":
        listed = [(window.since, end) for end in range(window.since + window.every.size, n + 1, window.every.size)]
    elif window.kind == "cumulative":
        grown = range(window.every.size, window.length.size + 1, window.every.size)
        listed = [(start, start + g) for start in range(window.offset, n, window.length.size) for g in grown]
    else:
        starts = range(window.offset, n, window.every.size)
        listed = [(start, start + window.length.size) for start in starts]
    return [(start, end) for start, end in listed if end <= n]


def units(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Windows on a measure that never goes back; one is over with the first row at or beyond its end."""
    measures = measured(rows, query.window.measure.column)
    held = {w for u in measures for w in _reported_for(query.window, u)}
    windows = []
    for start, end in sorted(held):
        low, high = bisect_left(measures, start), bisect_left(measures, end)
        time = rows[high].time if high < len(rows) else math.inf
        windows.append(WindowRange(start, end, low, high, time, time))
    return windows


def _reported_for(window: Any, u: Any) -> list[tuple[Any, Any]]:
    """The windows on a measure that a row at ``u`` causes to be reported."""
    if window.kind == "between":
        return [(window.start, window.end)] if window.start <= u < window.end else []
    if window.kind == "landmark":
        end = tick_after(u, window.every.size, window.since) * window.every.size + window.since
        return [(window.since, end)] if window.since <= u else []
    if window.kind == "cumulative":
        length, every = window.length.size, window.every.size
        period = tick_after(u, length, window.offset) - 1
        start, last = period * length + window.offset, (period + 1) * length + window.offset
        grown = [start + k * every for k in range(1, round(length / every))]
        return [(start, end) for end in [*grown, last] if u < end]
    return windows_with(u, window.length.size, window.every.size, window.offset)


def measure_sessions(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Runs of rows that are at most the gap apart on a measure; one is over with the first row further away.

    ::

        km   0  1  3        8  9          session(units(2, "km"))
            [0--------)    [1----         ends at 5; the second is open until a row comes beyond 11
    """
    gap, measures = query.window.gap.size, measured(rows, query.window.measure.column)
    starts = [i for i in range(len(rows)) if i == 0 or measures[i] > measures[i - 1] + gap]
    windows = []
    for low, high in itertools.pairwise([*starts, len(rows)]):
        time = rows[high].time if high < len(rows) else math.inf
        windows.append(WindowRange(measures[low], measures[high - 1] + gap, low, high, time, time))
    return windows


def row_sessions(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Sessions of limited length, or in which every row has a gap; one is over behind the last instant that would join.

    ::

        time   0  3  6  9  12          session(4, max_length=10)
              [0------------)          ends at 10
                            [1----)    ends at 16
    """
    longest = math.inf if query.window.max_length is None else query.window.max_length.size
    windows: list[WindowRange] = []
    low, latest = 0, 0
    for i, row in enumerate([*rows, None]):
        if i and (row is None or row.time > latest or row.time - rows[low].time >= longest):
            first = rows[low].time
            joins = min(latest, first + longest - 1)
            windows.append(WindowRange(first, min(latest, first + longest), low, i, joins + 1, joins))
            low, latest = i, 0
        if row is not None:
            reach = row.time + (gap_of(query.window, row) or 0)
            latest = reach if low == i else max(latest, reach)
    return windows


def gap_of(window: Any, row: Row) -> int | None:
    """How long a session waits for the next row, as the row says; None where it says nothing."""
    if not isinstance(window.gap, str):
        return int(window.gap.size)
    gap = column_of(row.values, window.gap, "is a gap")
    if gap is None or isinstance(gap, int):
        return gap
    try:
        return int(to_offset(gap, name="gap").size)
    except QueryError:
        return None


def punctuated(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """A marker starts a window and ends the one before; the rows before the first marker are a window too.

    ::

        a  b  M  c  M  d
        [0----)
              [1----)
                    [2----        open: no end

    With a condition for ends, rows that no window has begun for are in none::

        a  S  b  E  c  S  d
           [0----)                the row E is in it with closed="both"
                       [1----     open: no end
    """
    if query.window.end is not None:
        return _started_and_ended(query, rows)
    meets = meeting(query, rows)
    bounds = [*(i for i in range(len(rows)) if i == 0 or meets[i]), len(rows)]
    return [_run(rows, low, high) for low, high in itertools.pairwise(bounds)]


def _started_and_ended(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    starts, ends = meeting(query, rows, 0), meeting(query, rows, 1)
    windows, low = [], None
    for i, row in enumerate(rows):
        if low is not None and (starts[i] or ends[i]):
            high = i + 1 if ends[i] and query.window.closed == "both" else i
            windows.append(WindowRange(rows[low].time, row.time, low, high, row.time, row.time))
            low = None
        if starts[i]:
            low = i
    return windows if low is None else [*windows, _run(rows, low, len(rows))]


def frames(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Maximal runs of rows that meet the condition, if they are long enough.

    ::

        1  1  0  1  0  1  1          min_rows=2
        [0----)        [1----        the second is open: no end
    """
    meets = meeting(query, rows)
    starts = [i for i in range(len(rows)) if meets[i] and (i == 0 or not meets[i - 1])]
    ends = [next((j for j in range(i, len(rows)) if not meets[j]), len(rows)) for i in starts]
    runs = zip(starts, ends, strict=True)
    return [_run(rows, low, high) for low, high in runs if high - low >= query.window.min_rows]


def trailing(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """As of each time that has rows, or as of each row.

    ::

        times      0   5 5      12                 trailing(10)
                  -]                               [-10, 0]
              ---------]                           [-5, 5]
                     (----------]                  [2, 12]
    """
    window, windows = query.window, []
    at_end, at_start = window.closed in ("right", "both"), window.closed in ("left", "both")
    if window.length.measure == ROWS:
        for i, row in enumerate(rows):
            high = i + at_end
            low = max(0, high - (window.length.size - 1 + at_end + at_start))
            windows.append(WindowRange(low, high, low, high, row.time + 1, row.time))
        return windows
    for t in sorted({row.time for row in rows}):
        start = t - window.length.size
        held = [
            i
            for i, row in enumerate(rows)
            if start < row.time < t or (at_start and row.time == start) or (at_end and row.time == t)
        ]
        low, high = (held[0], held[-1] + 1) if held else (0, 0)
        windows.append(WindowRange(start, t, low, high, t + 1 if at_end else t, t))
    return windows


def multi_measure(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """Length in one measure, slide in another: at each tick of ``every`` the last ``length`` before it.

    A length of rows counts them. A length on time or another measure reaches back from the last row before the tick:
    it takes the rows less than ``length`` before that one, itself included.
    """
    length = query.window.length
    if length.measure == ROWS:
        return looking_back(rows, query.window, lambda high: max(0, high - length.size))
    measures = measured(rows, length.measure.column)
    return looking_back(rows, query.window, lambda high: bisect_right(measures, measures[high - 1] - length.size))


def looking_back(rows: Sequence[Row], window: Any, low_of: Callable[[int], int]) -> list[WindowRange]:
    """At each tick of ``every``, the rows before it from ``low_of(high)`` on, where ``high`` of them come before."""
    every, windows = window.every, []
    for tick in _ticks(rows, every, window.offset):
        low = low_of(tick.high)
        if low < tick.high:
            start = low if every.measure == ROWS else measured(rows, every.measure.column)[low]
            windows.append(WindowRange(start, tick.at, low, tick.high, tick.due, tick.decided))
    return windows


def _ticks(rows: Sequence[Row], every: Amount, offset: int) -> list[Tick]:
    """From the first tick after the first row to the first after the last row; of rows, every m-th."""
    if every.measure == ROWS:
        highs = range(int(every.size), len(rows) + 1, int(every.size))
        return [Tick(high, high, rows[high - 1].time + 1, rows[high - 1].time) for high in highs]
    column = every.measure.column
    measures = measured(rows, column)
    ticks = []
    for at in ticks_over(measures[0], measures[-1], every.size, offset) if rows else ():
        high = bisect_left(measures, at)
        if column is None:
            ticks.append(Tick(at, high, at, at - 1))
        else:
            time = rows[high].time if high < len(rows) else math.inf
            ticks.append(Tick(at, high, time, time))
    return ticks


def _run(rows: Sequence[Row], low: int, high: int) -> WindowRange:
    """The window from one row up to another; a window that runs to the last row is still open."""
    if high == len(rows):
        return WindowRange(rows[low].time, None, low, high, math.inf, math.inf)
    end = rows[high].time
    return WindowRange(rows[low].time, end, low, high, end, end)


def measured(rows: Sequence[Row], column: str | None) -> list[Any]:
    """The measure of each row: its event time, or the value of a column."""
    return [row.time if column is None else row.values[column] for row in rows]


def check_condition(query: Any, row: Row) -> None:
    """Refuse a row on which the user's function raises that says which rows start windows or belong to frames."""
    for number, rule in enumerate(getattr(query.window, "rules", ())):
        if isinstance(rule.predicate, str):
            continue
        try:
            _mask(query, [row], number)
        except DataError as error:
            raise _refused(query, row, error, ANYWHERE) from error


def meeting(query: Any, rows: Sequence[Row], number: int = 0) -> list[bool]:
    """Which rows meet a condition of a window: its only one, or that of ends."""
    try:
        return _mask(query, rows, number)
    except DataError:
        for row in rows:
            try:
                _mask(query, [row], number)
            except DataError as error:
                raise _refused(query, row, error) from error
        raise


def _refused(query: Any, row: Row, error: DataError, out_of: str = OF_QUERY) -> RefusedRowError:
    return RefusedRowError(row, query.name, str(error).removeprefix(f"query {query.name!r}: "), out_of)


def _mask(query: Any, rows: Sequence[Row], number: int) -> list[bool]:
    rule = query.window.rules[number]
    columns = {}
    for name in rule.columns:
        values = [column_of(row.values, name, f"{rule} reads") for row in rows]
        try:
            columns[name] = Column.of(values)
        except (pa.ArrowException, TypeError) as error:
            raise DataError(f"the column {name!r} has values of different types; {error}") from error
    mask: list[bool] = rule.mask(columns, len(rows), query=query.name).tolist()
    return mask
