"""Calendars: windows of days, weeks, months, quarters and years in a time zone. Context free, and listed as a schedule.

Days and months are counted from 1970-01-01 00:00 local time, weeks from the Monday before. A day begins at the first
instant at which the local date is that day or later::

    clocks skip 02:00 to 03:00         [ 23 hours )
    clocks go back across midnight     [ the new day: 25 hours, of which one has the old date again )
    a day that did not take place      no window
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slicewise.amounts import TIME, Amount, Measure, to_offset
from slicewise.amounts.calendar import CalendarLength, calendar_length, to_calendar
from slicewise.errors import DataError, QueryError
from slicewise.times import LARGEST_TIME
from slicewise.windows.bounds import Bounds
from slicewise.windows.kinds import ContextFree, LookBack
from slicewise.windows.listings import EdgeTable, Listing, WindowList
from slicewise.windows.parameters import format_amount
from slicewise.windows.zones import DAY, FURTHEST, NAIVE, Zone, zone_of

__all__ = ["Calendar", "CalendarSliding"]

#: The most days that a unit of each family has.
_LONGEST = {"day": 1, "month": 31}
#: The fewest half days: half a day is less than any that took place.
_SHORTEST = {"day": 1, "month": 55}


@dataclass(frozen=True)
class Calendar(Listing):
    """Windows of ``length`` days or months every ``every``, from ``origin`` on, in a zone.

    ``shift`` is added to the local time of all bounds, in microseconds.
    """

    family: str
    length: int
    every: int
    origin: int
    shift: int
    zone: Zone
    #: Where several windows end together, only the longest of them: the one as of that tick.
    one_each: bool = False

    def windows(self, after: int, upto: int) -> WindowList:
        after, upto = (min(max(at, -LARGEST_TIME), LARGEST_TIME) for at in (after, upto))
        # One further on both sides: what is asked for is instants, and windows lie on local time.
        first = (self._number(after - FURTHEST - self.shift) - self.length - self.origin) // self.every - 1
        last = (self._number(upto + FURTHEST - self.shift) - self.origin) // self.every + 1
        begin = self.origin + np.arange(first, last + 1) * self.every
        start, end = self.first_instants(begin), self.first_instants(begin + self.length)
        # What begins where it ends did not take place.
        some = (start < upto) & (end > after) & (start < end)
        if self.one_each:
            some[1:] &= end[1:] > end[:-1]
        return WindowList(start[some], end[some], np.zeros(int(some.sum()), np.int64))

    def next_edge(self, t: int) -> int | None:
        if t >= LARGEST_TIME:
            return None
        listed = self.windows(t, max(t, -LARGEST_TIME) + (self.every + 2) * _LONGEST[self.family] * DAY)
        edges = np.concatenate([listed.start, listed.end])
        return int(edges[edges > t].min())

    def first_instants(self, number: np.ndarray) -> np.ndarray:
        """When days or months begin, by their numbers."""
        days = number if self.family == "day" else number.astype("M8[M]").astype("M8[D]").astype(np.int64)
        return self.zone.first_instants(days * DAY + self.shift)

    def _number(self, local: int) -> int:
        """The day or month that a local time lies in."""
        day = local // DAY
        return day if self.family == "day" else int(np.datetime64(day, "D").astype("M8[M]").astype(np.int64))


@dataclass(frozen=True, repr=False)
class CalendarSliding(ContextFree):
    """A window of ``length`` every ``every`` in the calendar of a zone; tumbling when the two are the same.

    ``offset`` is microseconds of local time, or months.
    """

    length: CalendarLength
    every: CalendarLength
    zone: str
    offset: int | CalendarLength = 0
    #: Its windows around all rows, where these are known.
    table: EdgeTable | None = field(default=None, compare=False)
    #: Of windows that end together, only the longest.
    ticks_only: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, length: Any, every: Any, offset: Any, zone: Any) -> CalendarSliding:
        """The window that a user describes."""
        known, size, slide = zone_of(zone), to_calendar(length, name="length"), to_calendar(every, name="every")
        if size.family != slide.family:
            raise QueryError(
                "`every` must be days or weeks where `length` is, and months, quarters or years where that is; got "
                f"every={str(slide)!r} and length={str(size)!r}; rolling thirty days are sliding('30 days', "
                "every='1 day', zone=...)",
                parameter="every",
            )
        return cls(size, slide, known.name, _read_offset(offset, slide))

    @property
    def kind(self) -> str:
        return "tumbling" if self.is_tumbling else "sliding"

    @property
    def is_tumbling(self) -> bool:
        return self.length == self.every

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def listing(self) -> Listing:
        return self.calendar if self.table is None else self.table

    @functools.cached_property
    def calendar(self) -> Calendar:
        """Where its windows lie."""
        months, shift = (self.offset.steps, 0) if isinstance(self.offset, CalendarLength) else (0, self.offset)
        every, length = self.every, self.length.steps
        origin = every.origin + months
        return Calendar(every.family, length, every.steps, origin, shift, zone_of(self.zone), self.ticks_only)

    @property
    def overlap(self) -> int:
        return -(-self.length.steps // self.every.steps)

    @property
    def reach(self) -> int:
        return (self.length.steps * _LONGEST[self.length.family] + 1) * DAY

    @property
    def grid(self) -> Hashable:
        calendar = self.calendar
        ends = (calendar.origin + calendar.length) % calendar.every
        return self.zone, calendar.family, calendar.every, ends, calendar.shift

    @property
    def slides(self) -> tuple[int, int]:
        return self._lasting(self.every)

    @property
    def extents(self) -> tuple[int, int]:
        return self._lasting(self.length)

    @staticmethod
    def _lasting(length: CalendarLength) -> tuple[int, int]:
        # A day that did not take place counts among those of a longer window, so that all but one may be shorter.
        return length.steps * _SHORTEST[length.family] * DAY // 2, (length.steps * _LONGEST[length.family] + 1) * DAY

    @property
    def everywhere(self) -> Self:
        return self if self.table is None else replace(self, table=None)

    @property
    def at_ticks(self) -> Self:
        return replace(self, table=None, ticks_only=True)

    @property
    def looks_back(self) -> bool:
        return True

    def as_of(self, time: np.ndarray) -> LookBack:
        if not len(time):
            return LookBack(time, time, time, time)
        behind = (self.every.steps + 2) * _LONGEST[self.every.family] * DAY
        start, end, _ = self.calendar.windows(int(time.min()) - behind, int(time.max()) + 1)
        tick = end[np.searchsorted(end, time, "right") - 1]
        last = np.searchsorted(end, tick)  # where a day did not take place, two windows end at once
        return LookBack(start[last], end[last], start[last], end[last])

    def listed_in(self, ranges: Sequence[tuple[int, int]]) -> Self:
        listed = self.calendar.windows_in(ranges)
        return replace(self, table=EdgeTable(Bounds(listed.start, listed.end, TIME, None), {}, {}))

    def in_unit(self, unit: str | None) -> Self:
        if unit is not None:
            raise QueryError(
                f"`unit` cannot be combined with {self!r}: a calendar is for timestamps; make the time column one, "
                "and leave `unit` out",
                parameter="unit",
            )
        return self

    def check_time(self, time_type: pa.DataType) -> None:
        if pa.types.is_integer(time_type):
            raise DataError(f"{self!r} follows a calendar, but the time column holds integers; make it a timestamp")
        zoned = time_type.tz is not None
        if zoned and self.zone == NAIVE:
            raise DataError(
                f"{self!r} is for timestamps without a time zone, but the time column has one; say in which zone days "
                "begin, as in zone='Europe/Berlin'"
            )
        if not zoned and self.zone != NAIVE:
            raise DataError(
                f"{self!r} follows the calendar of a time zone, but the time column has none; write zone={NAIVE!r}, or "
                "give the column its zone"
            )

    def __repr__(self) -> str:
        every = "" if self.is_tumbling else f", every={str(self.every)!r}"
        return f"{self.kind}({str(self.length)!r}{every}{_format_offset(self.offset)}, zone={self.zone!r})"


def _format_offset(offset: int | CalendarLength) -> str:
    if not offset:
        return ""
    text = repr(str(offset)) if isinstance(offset, CalendarLength) else format_amount(Amount(offset, TIME))
    return f", offset={text}"


def _read_offset(offset: Any, every: CalendarLength) -> int | CalendarLength:
    """What is added to local time: a duration, or months; as little as means the same."""
    months = calendar_length(offset, "offset") if every.family == "month" else None
    if months is not None and months.family == "month":
        steps = months.steps % every.steps
        return CalendarLength(steps, "month") if steps else 0
    amount = to_offset(offset, name="offset")
    if not amount.size:
        return 0
    if amount.measure != TIME:
        raise QueryError(
            f"`offset` must be a duration, which is added to local time; got {format_amount(amount)}",
            parameter="offset",
        )
    return int(amount.size) % (every.steps * DAY) if every.family == "day" else int(amount.size)
