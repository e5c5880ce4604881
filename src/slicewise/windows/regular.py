"""Regular windows: lengths, slides and fixed points on a measure decide where they lie, and no row does.

The exception is a sliding window whose length and slide are on two measures: rows relate one to the other.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from slicewise.amounts import INTEGER, TIME, Amount, Measure, to_amount, to_position
from slicewise.amounts.calendar import refuse_without_zone
from slicewise.errors import QueryError
from slicewise.windows.calendars import CalendarSliding
from slicewise.windows.families import PeriodicFamily, Shape
from slicewise.windows.kinds import Context, ContextFree, Window
from slicewise.windows.parameters import (
    Instant,
    Length,
    format_amount,
    format_offset,
    format_position,
    in_time_unit,
    offset_in_unit,
    read_offset,
    read_tick_offset,
)

__all__ = [
    "Between",
    "ContextFree",
    "Cumulative",
    "Landmark",
    "Sliding",
    "between",
    "cumulative",
    "landmark",
    "sliding",
    "tumbling",
]


@dataclass(frozen=True, repr=False)
class Sliding(Window):
    """A window of ``length`` every ``every``; tumbling when the two are the same."""

    length: Amount
    every: Amount
    offset: int = 0

    @property
    def kind(self) -> str:
        return "tumbling" if self.is_tumbling else "sliding"

    @property
    def is_tumbling(self) -> bool:
        return self.length == self.every

    @property
    def context(self) -> Context:
        return Context.FREE if len(self.measures) == 1 else Context.FORWARD_AWARE

    @functools.cached_property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(dict.fromkeys((self.length.measure, self.every.measure)))

    @property
    def instants(self) -> Mapping[str, int]:
        return {"offset": self.offset}

    @property
    def overlap(self) -> int:
        # Not by the family alone: units may be fractions.
        return max(1, int(-(-self.length.size // self.every.size))) if self.axis is not None else 1

    @functools.cached_property
    def family(self) -> PeriodicFamily | None:
        every, length = self.every.size, self.length.size
        if self.axis is None or not (isinstance(every, int) and isinstance(length, int)):
            return None
        return PeriodicFamily(Shape.SLIDING, every, self.offset + length, length, self.offset)

    @property
    def grid(self) -> Hashable | None:
        if self.family is None or not self.is_periodic:
            return None
        return self.family.every, self.family.phase % self.family.every

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        return offset_in_unit(self.offset, self.every.measure, unit)

    def __repr__(self) -> str:
        offset = format_offset(self.offset, self.every.measure)
        if self.is_tumbling:
            return f"tumbling({format_amount(self.length)}{offset})"
        return f"sliding({format_amount(self.length)}, every={format_amount(self.every)}{offset})"


@dataclass(frozen=True, repr=False)
class Cumulative(ContextFree):
    """Within each ``length``, windows that grow by ``every``."""

    length: Amount
    every: Amount
    offset: int = 0

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.length.measure,)

    @property
    def instants(self) -> Mapping[str, int]:
        return {"offset": self.offset}

    @property
    def overlap(self) -> int:
        return round(self.length.size / self.every.size)

    @functools.cached_property
    def family(self) -> PeriodicFamily | None:
        every, length = self.every.size, self.length.size
        if not (isinstance(every, int) and isinstance(length, int) and isinstance(self.offset, int)):
            return None
        return PeriodicFamily(Shape.CUMULATIVE, every, self.offset, length, self.offset)

    @property
    def on_grid(self) -> bool:
        return self.family is not None and self.is_periodic

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        return offset_in_unit(self.offset, self.measure, unit)

    def __repr__(self) -> str:
        offset = format_offset(self.offset, self.length.measure)
        return f"cumulative({format_amount(self.length)}, every={format_amount(self.every)}{offset})"


@dataclass(frozen=True, repr=False)
class Landmark(ContextFree):
    """From the fixed point ``since`` to now, reported at every tick of ``every`` that brought rows.

    ``since`` is in the measure of ``every`` unless ``on`` is another one; a workload with a unit makes them one.
    """

    every: Amount
    since: int | float = 0
    on: Measure | None = None

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.every.measure,)

    @property
    def instants(self) -> Mapping[str, int | float]:
        return {"since": self.since}

    @property
    def overlap(self) -> int:
        return 2  # as of its family: the slices before the horizon merge into one

    @functools.cached_property
    def family(self) -> PeriodicFamily | None:
        every, since = self.every.size, self.since
        if not (isinstance(every, int) and isinstance(since, int)):
            return None
        return PeriodicFamily(Shape.FIXED, every, since, every, since)

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        measure = self.on or self.every.measure
        since = in_time_unit(Amount(self.since, measure), unit, "since", instant=True)
        if since.measure != in_time_unit(self.every, unit, "every").measure:
            raise QueryError(
                f"`since` and `every` must be in one measure; got {self!r}; use a point in time and a duration for a "
                "timestamp column, integers for an integer one, or say what those count: Workload(unit=...)",
                parameter="since",
            )
        return {"since": since.size, "on": None}

    def _is_in_unit(self, unit: str | None) -> bool:
        return self.on is None and super()._is_in_unit(unit)

    def __repr__(self) -> str:
        measure = self.on or self.every.measure
        since = format_position(self.since, measure) if measure.is_event_time else str(self.since)
        return f"landmark(every={format_amount(self.every)}, since={since})"


@dataclass(frozen=True, repr=False)
class Between(ContextFree):
    """One fixed window."""

    start: int | float
    end: int | float
    on: Measure = TIME

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.on,)

    @property
    def instants(self) -> Mapping[str, int | float]:
        return {"start": self.start, "end": self.end}

    @functools.cached_property
    def family(self) -> PeriodicFamily | None:
        start, end = self.start, self.end
        if not (isinstance(start, int) and isinstance(end, int)):
            return None
        return PeriodicFamily(Shape.FIXED, end - start, start, end - start, start, last=1)

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        bounds = {n: in_time_unit(Amount(at, self.on), unit, n, instant=True) for n, at in self.instants.items()}
        return {**{name: bound.size for name, bound in bounds.items()}, "on": bounds["end"].measure}

    def __repr__(self) -> str:
        return f"between({format_position(self.start, self.on)}, {format_position(self.end, self.on)})"


# The functions that users call: they read amounts, check them, and build the frozen descriptions.


def tumbling(length: Length, *, offset: Length = 0, zone: str | None = None) -> Sliding | CalendarSliding:
    """Windows of ``length``, end to end, aligned to the epoch plus ``offset``.

    Parameters
    ----------
    length : str, int, timedelta or Amount
        How long each window is: a duration such as ``"10 minutes"``, an integer where time is an integer column,
        ``sw.rows(100)`` or ``sw.units(10, "km")``. With ``zone``, a number of days, weeks, months, quarters or years.
    offset : str, int, timedelta or Amount, optional
        How far all windows are shifted, in the measure of ``length``; also backwards. With ``zone``, what is added to
        the local time at which they begin.
    zone : str, optional
        The time zone in whose calendar windows begin and end, such as ``"Europe/Berlin"``. Days are then as long as
        they are there, and weeks begin on Mondays. For timestamps without a zone and for dates it is ``"naive"``.

    Returns
    -------
    Sliding or CalendarSliding
        The window: sliding by its own length.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.tumbling("1 hour", offset="15 minutes")
    tumbling('1 hour', offset='15 minutes')
    >>> op = sw.Workload(time="ts").query("tens", sw.tumbling(10), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(0, 10, 3), (10, 20, 5)]

    Fiscal years that begin in April:

    >>> sw.tumbling("1 year", offset="3 months", zone="Asia/Tokyo")
    tumbling('1 year', offset='3 months', zone='Asia/Tokyo')
    """
    if zone is not None:
        return CalendarSliding.of(length, length, offset, zone)
    refuse_without_zone(length, name="length")
    amount = to_amount(length, name="length")
    return Sliding(amount, amount, read_offset(offset, amount))


def sliding(length: Length, *, every: Length, offset: Length = 0, zone: str | None = None) -> Sliding | CalendarSliding:
    """A window of ``length`` every ``every``; a slide longer than the length leaves gaps.

    Length and slide may be counted in different measures: ``sliding(sw.rows(10), every="5 seconds")`` is the last ten
    rows, every five seconds.

    Parameters
    ----------
    length : str, int, timedelta or Amount
        How long each window is: a duration such as ``"10 minutes"``, an integer where time is an integer column,
        ``sw.rows(100)`` or ``sw.units(10, "km")``. With ``zone``, a number of days, weeks, months, quarters or years.
    every : str, int, timedelta or Amount
        How far windows lie apart. With ``zone``, days or weeks where ``length`` is, else months, quarters or years.
    offset : str, int, timedelta or Amount, optional
        How far all windows are shifted, in the measure of ``every``; also backwards. Where ``length`` is in another
        measure, ``every`` must be event time. With ``zone``, what is added to the local time at which windows begin.
    zone : str, optional
        The time zone in whose calendar windows begin and end; see :func:`tumbling`.

    Returns
    -------
    Sliding or CalendarSliding
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.sliding("1 minute", every="1 second").context
    <Context.FREE: 'context free'>
    >>> op = sw.Workload(time="ts").query("recent", sw.sliding(10, every=5), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(-5, 5, 3), (0, 10, 3), (5, 15, 5), (10, 20, 5)]
    """
    if zone is not None:
        return CalendarSliding.of(length, every, offset, zone)
    refuse_without_zone(length, name="length")
    refuse_without_zone(every, name="every")
    size, slide = to_amount(length, name="length"), to_amount(every, name="every")
    if {size.measure, slide.measure} == {TIME, INTEGER}:
        raise QueryError(
            f"`length` and `every` mix a duration and a plain integer; got {format_amount(size)} and "
            f"{format_amount(slide)}; use durations for a timestamp column, integers for an integer one",
            parameter="every",
        )
    if size.measure != slide.measure:
        return Sliding(size, slide, read_tick_offset(offset, slide))
    return Sliding(size, slide, read_offset(offset, slide))


def cumulative(length: Length, *, every: Length, offset: Length = 0) -> Cumulative:
    """Within each ``length``, windows that start with it and grow by ``every``: today so far, every hour.

    Parameters
    ----------
    length : str, int, timedelta or Amount
        How long the longest window is: in event time, in ``sw.rows(100)`` or in ``sw.units(100, "km")``.
    every : str, int, timedelta or Amount
        By how much windows grow; it divides ``length``.
    offset : str, int, timedelta or Amount, optional
        How far all windows are shifted; also backwards.

    Returns
    -------
    Cumulative
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.cumulative("1 day", every="1 hour")
    cumulative('1 day', every='1 hour')
    >>> op = sw.Workload(time="ts").query("so_far", sw.cumulative(10, every=5), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 7, 12], "v": [1, 2, 3, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(0, 5, 3), (0, 10, 6), (10, 15, 5), (10, 20, 5)]
    """
    longest, step = to_amount(length, name="length"), to_amount(every, name="every")
    if longest.measure != step.measure:
        raise QueryError(
            f"`length` and `every` must be in one measure; got {format_amount(longest)} and {format_amount(step)}",
            parameter="every",
        )
    if Fraction(str(longest.size)) % Fraction(str(step.size)):  # as they are written: 0.3 is three times 0.1
        raise QueryError(
            f"`every` must divide `length`; got every={format_amount(step)} and length={format_amount(longest)}; "
            "the last growing window of each length would end beside it",
            parameter="every",
        )
    return Cumulative(longest, step, read_offset(offset, longest))


def landmark(*, every: Length, since: Instant | None = None) -> Landmark:
    """From a fixed point to now, reported at each tick of ``every`` that brought rows.

    Parameters
    ----------
    every : str, int, timedelta or Amount
        How far reports lie apart: in event time, in ``sw.rows(10)`` or in ``sw.units(5, "km")``.
    since : str, int, float, date, datetime or Amount, optional
        Where all windows start; by default at the epoch, at the first row, or at 0.

    Returns
    -------
    Landmark
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.landmark(every="1 hour", since="2024-01-01")
    landmark(every='1 hour', since='2024-01-01 00:00:00')
    >>> op = sw.Workload(time="ts").query("ever", sw.landmark(every=5, since=0), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(0, 5, 3), (0, 15, 8)]
    """
    step = to_amount(every, name="every")
    if since is None:
        return Landmark(step)
    start, measure = to_position(since, name="since", on=step.measure)
    if measure != step.measure and not (measure.is_event_time and step.measure.is_event_time):
        raise QueryError(
            f"`since` and `every` must be in one measure; got {format_position(start, measure)} and "
            f"{format_amount(step)}",
            parameter="since",
        )
    return Landmark(step, start, None if measure == step.measure else measure)


def between(start: Instant, end: Instant) -> Between:
    """One fixed window, ``[start, end)``.

    Parameters
    ----------
    start, end : str, int, date, datetime or Amount
        Its bounds: two points in time, two integers where time is an integer column, two positions such as
        ``sw.rows(100)``, which holds the rows from the 100th on, counted from 0, or two ``sw.units(5, "km")``.

    Returns
    -------
    Between
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.between("2024-01-01", "2024-02-01")
    between('2024-01-01 00:00:00', '2024-02-01 00:00:00')
    >>> op = sw.Workload(time="ts").query("early", sw.between(2, 12), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(2, 12, 2)]
    """
    first, measure = to_position(start, name="start")
    last, other = to_position(end, name="end")
    low, high = (str(bound) if isinstance(bound, Amount) else repr(bound) for bound in (start, end))
    if measure != other:
        on_time = measure.is_event_time and other.is_event_time
        must = "both be instants or both be integers" if on_time else "be in one measure"
        raise QueryError(f"`start` and `end` must {must}; got {low} and {high}", parameter="end")
    if last <= first:
        raise QueryError(f"`end` must lie after `start`; got start={low} and end={high}", parameter="end")
    return Between(first, last, measure)
