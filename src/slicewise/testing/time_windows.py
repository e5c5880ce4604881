"""Windows on event time by definition: which hold an instant, and which sessions some rows make. Used by the oracle."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from slicewise.testing.oracle_rows import Row

__all__ = ["KINDS", "Window", "is_endless", "sessions_of", "tick_beside", "windows_between", "windows_of"]

#: The kinds that are defined here.
KINDS = ("tumbling", "sliding", "session", "cumulative", "landmark", "between", "edges")

Window = tuple[int, int]


def windows_of(window: Any, time: int, key: Mapping[str, Any] | None = None) -> list[Window]:
    """The context-free windows that hold an instant of a key; of the endless ticks of a landmark, the first only."""
    if hasattr(window, "zone"):
        return [(start, end) for start, end in calendar_windows(window, time) if start <= time < end]
    if window.kind in ("tumbling", "sliding"):
        return list(_sliding(window, time))
    if window.kind == "cumulative":
        period = (time - window.offset) // window.length.size
        start = window.offset + period * window.length.size
        ends = range(start + window.every.size, start + window.length.size + 1, window.every.size)
        return [(start, end) for end in ends if time < end]
    if window.kind == "landmark":
        ticks = (time - window.since) // window.every.size + 1
        return [(window.since, window.since + ticks * window.every.size)] if time >= window.since else []
    if window.kind == "edges":
        return [(start, end) for start, end in _listed(window, time, key or {}) if start <= time < end]
    return [(window.start, window.end)] if window.start <= time < window.end else []


@functools.cache
def tick_beside(window: Any, tick: int, way: int) -> int:
    """The next instant at which a window of a grid ends, or the one before."""
    if not hasattr(window, "zone"):
        return int(tick + way * window.every.size)
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
    ends: set[int] = set()
    # Windows around these instants and their neighbours: one that follows ends at most so many days later.
    for back in range(days[window.length.unit] * window.length.count + 3):
        ends |= {end for _, end in calendar_windows(window, tick - back * _DAY)}
    for ahead in range(days[window.every.unit] * window.every.count + 3):
        ends |= {end for _, end in calendar_windows(window, tick + ahead * _DAY)}
    return min(end for end in ends if end > tick) if way > 0 else max(end for end in ends if end < tick)


def windows_between(window: Any, some: list[Window]) -> list[Window]:
    """The windows behind the first of some to end and before the last, with rows or without, in the order of ends."""
    if not some:
        return []
    first, last = (pick(some, key=lambda w: w[::-1]) for pick in (min, max))
    if hasattr(window, "zone"):
        # Bounds are days, and no day is longer than two: some window of each day is near one of these instants.
        near = [w for time in range(first[0], last[1] + _DAY, _DAY) for w in calendar_windows(window, time)]
    elif window.kind == "cumulative":
        near = [w for time in range(first[0], last[1], window.every.size) for w in windows_of(window, time)]
    else:
        near = [(start, start + window.length.size) for start in range(first[0], last[0] + 1, window.every.size)]
    return sorted({w for w in near if first[::-1] < w[::-1] < last[::-1]}, key=lambda w: w[::-1])


def _listed(window: Any, time: int, key: Mapping[str, Any]) -> list[Window]:
    """The windows of a table that a key has, or those that a schedule gives around an instant."""
    if hasattr(window, "schedule"):
        return [(start, end) for start, end in window.schedule.code.windows(time, time + 1)]
    return [(start, end) for start, end, of in window.table.rows() if all(key[name] == of[name] for name in of)]


def _sliding(window: Any, time: int) -> Iterator[Window]:
    start = (time - window.offset) // window.every.size * window.every.size + window.offset
    while time < start + window.length.size:
        yield start, start + window.length.size
        start -= window.every.size


# Calendars

_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400_000_000


def calendar_windows(window: Any, time: int) -> list[Window]:
    """The windows of a calendar that could hold an instant, and their neighbours, whose bounds are days."""
    days = window.every.unit in ("day", "week")
    each = {"week": 7, "quarter": 3, "year": 12}
    every, length = (size.count * each.get(size.unit, 1) for size in (window.every, window.length))
    months, shift = (0, window.offset) if isinstance(window.offset, int) else (window.offset.count, 0)
    now = (_EPOCH + timedelta(microseconds=time - shift)).date()
    number = (now - _EPOCH.date()).days if days else (now.year - 1970) * 12 + now.month - 1
    origin = months - (3 if window.every.unit == "week" else 0)
    numbers = [n for n in range(number - length - every - 3, number + every + 3) if (n - origin) % every == 0]
    bounds = [(_begin(n, days, shift, window.zone), _begin(n + length, days, shift, window.zone)) for n in numbers]
    return [(start, end) for start, end in bounds if start < end]


def _begin(number: int, days: bool, shift: int, zone: str) -> int:
    day = date(1970, 1, 1) + timedelta(days=number) if days else date(1970 + number // 12, number % 12 + 1, 1)
    return first_instant(datetime(day.year, day.month, day.day) + timedelta(microseconds=shift), zone)


@functools.cache
def first_instant(local: datetime, zone: str) -> int:
    """The first instant at which clocks in a zone show a local time or a later one: looked for minute by minute."""
    at = round((local - _EPOCH) / timedelta(microseconds=1))
    if zone == "naive":
        return at
    info = ZoneInfo(zone)

    def is_reached(microseconds: int) -> bool:
        instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
        return instant.astimezone(info).replace(tzinfo=None) >= local

    second = 1_000_000
    reached = next(t for t in range(at - 36 * 3600 * second, 2**62, 60 * second) if is_reached(t))
    return next(t for t in range(reached - 60 * second, reached + 1, second) if is_reached(t))


def is_endless(window: Any) -> bool:
    """Whether windows that hold an instant are reported at every tick for ever."""
    return bool(window.kind == "landmark")


def sessions_of(rows: list[Row], gap: int) -> list[tuple[Window, list[Row]]]:
    """Runs of rows in which each follows the one before by at most ``gap``."""
    runs: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: row.place):
        if runs and row.time - runs[-1][-1].time <= gap:
            runs[-1].append(row)
        else:
            runs.append([row])
    return [((run[0].time, run[-1].time + gap), run) for run in runs]
