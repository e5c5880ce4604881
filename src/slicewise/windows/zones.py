"""Zones: when it is first as late as some local time says, for whole arrays of local times. Read by calendars.

A zone is a list of *stretches* in which its distance from UTC stays the same. They come from :mod:`zoneinfo`, year by
year and only for the years that are asked for.
"""

from __future__ import annotations

import functools
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from slicewise.errors import QueryError, did_you_mean

__all__ = ["NAIVE", "Zone", "zone_of"]

#: The zone of timestamps that have none, and of dates: local time is what they say.
NAIVE = "naive"

DAY = 86_400_000_000
#: No zone is further from UTC than this.
FURTHEST = DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: No zone changed before the first of these years; from the other on, rules repeat with the calendar, every 400 years.
_FIRST_YEAR, _LAST_YEAR, _CYCLE = 1800, 2500, 400


class Zone:
    """A time zone by its name.

    Parameters
    ----------
    name
        As in the IANA database, such as ``"Europe/Berlin"``; or ``"naive"``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._info = None if name == NAIVE else zoneinfo.ZoneInfo(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return zone_of, (self.name,)

    def first_instants(self, local: np.ndarray) -> np.ndarray:
        """The first instant at which the local time is each of these or later, in microseconds.

        In Berlin, 02:30 on the day on which clocks skip that hour is 03:00; and 02:30 on the day on which they go back
        is the first of the two:

        >>> local = np.array(["2024-03-31T02:30", "2024-10-27T02:30"], "M8[us]").astype(np.int64)
        >>> zone_of("Europe/Berlin").first_instants(local).astype("M8[us]").astype("M8[m]")
        array(['2024-03-31T01:00', '2024-10-27T00:30'], dtype='datetime64[m]')

        Runtime complexity: O(log n) each, where the zone changed n times between them.
        """
        if self._info is None or not len(local):
            return local
        begins, shifts = self._stretches(int(local.min()) - FURTHEST, int(local.max()) + FURTHEST)
        # How late it has ever been at the end of each stretch. Where clocks went back, the next one adds nothing.
        latest = np.maximum.accumulate(np.append(begins[1:], 2**61) + shifts)
        at = np.searchsorted(latest, local, "right")
        instants: np.ndarray = np.maximum(begins[at], local - shifts[at])
        return instants

    def _stretches(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Where stretches begin that touch ``[low, high]``, and their distances from UTC."""
        first, last = (int(np.datetime64(at, "us").astype("M8[Y]").astype(int)) + 1970 for at in (low, high))
        first = max(first, _FIRST_YEAR)
        begins, shifts = [-(2**61)], [self._at(_seconds(_like(first)[0]))]
        for year in range(first, last + 1):
            same, moved = _like(year)
            for begin, shift in self._changes(same):
                begins.append(begin + moved)
                shifts.append(shift)
        return np.array(begins), np.array(shifts)

    @functools.cache  # noqa: B019  (zones are few, and live as long as the program)
    def _changes(self, year: int) -> list[tuple[int, int]]:
        """When the zone changes in a year, and the distance from UTC behind each change; both in microseconds."""
        changes: list[tuple[int, int]] = []
        days = range(_seconds(year), _seconds(year + 1) + 1, 86_400)
        shifts = [self._at(second) for second in days]
        for day, before, after in zip(days, shifts, shifts[1:], strict=False):
            if before != after:
                self._search(day, day + 86_400, changes)
        return changes

    def _search(self, low: int, high: int, changes: list[tuple[int, int]]) -> None:
        """Add the changes between two seconds, of which the first is before them and the other behind them."""
        while self._at(low) != self._at(high):
            before, behind = low, high
            while behind - before > 1:
                middle = (before + behind) // 2
                before, behind = (middle, behind) if self._at(middle) == self._at(low) else (before, middle)
            low = behind
            changes.append((low * 1_000_000, self._at(low)))

    def _at(self, second: int) -> int:
        shift = (_EPOCH + timedelta(seconds=second)).astimezone(self._info).utcoffset() or timedelta(0)
        return shift.days * DAY + shift.seconds * 1_000_000


def _like(year: int) -> tuple[int, int]:
    """A year with the same rules, and how many microseconds later the other one is."""
    if year < _LAST_YEAR:
        return year, 0
    cycles = (year - _LAST_YEAR) // _CYCLE + 1
    return year - cycles * _CYCLE, cycles * 146_097 * DAY


def _seconds(year: int) -> int:
    return int(np.datetime64(year - 1970, "Y").astype("M8[s]").astype(np.int64))


@functools.cache
def _known(name: str) -> Zone:
    return Zone(name)


def zone_of(name: Any) -> Zone:
    """The zone of a name; refuses names of none.

    >>> zone_of(1)
    Traceback (most recent call last):
    slicewise.errors.QueryError: `zone` must name a time zone, such as 'Europe/Berlin'; got 1
    """
    name = getattr(name, "key", name)  # a ZoneInfo
    if not isinstance(name, str) or not name:
        raise QueryError(f"`zone` must name a time zone, such as 'Europe/Berlin'; got {name!r}", parameter="zone")
    try:
        return _known(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise QueryError(_unknown(name), parameter="zone") from None


def _unknown(name: str) -> str:
    names = zoneinfo.available_timezones()
    if not names:
        return f"`zone` is {name!r}, and this machine has no time zones at all; install them: pip install tzdata"
    near = did_you_mean(name, names)
    tip = near if near.startswith("did") else "write it as in 'Europe/Berlin', or 'UTC'"
    return f"`zone` is no time zone that this machine knows; got {name!r}; {tip}"
