"""Sessions: windows of activity, closed by a gap without rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slicewise.amounts import ROWS, TIME, UNITS, Amount, Measure, to_amount
from slicewise.amounts.microseconds import length_us
from slicewise.columns import Column, type_name
from slicewise.conditions.expression import Expression
from slicewise.errors import DataError, QueryError
from slicewise.times import LARGEST_TIME
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import Length, format_amount

__all__ = ["RowSession", "Session", "session"]


@dataclass(frozen=True, repr=False)
class Session(Window):
    """Activity closed by a ``gap`` without rows: ``[first, last + gap)``."""

    gap: Amount

    @property
    def context(self) -> Context:
        return Context.SESSION

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.gap.measure,)

    @property
    def session_gap(self) -> int | None:
        return int(self.gap.size) if self.gap.measure.is_event_time else None

    def __repr__(self) -> str:
        return f"session({format_amount(self.gap)})"


@dataclass(frozen=True, repr=False)
class RowSession(Window):
    """Sessions that are found row by row: they last less than ``max_length``, or every row has a ``gap`` of its own.

    Rows in order tell where they end, and a row out of order may move every later end. ``unit`` is what an integer time
    column counts.
    """

    gap: Amount | Expression
    max_length: Amount | None = None
    unit: str | None = None

    @property
    def kind(self) -> str:
        return "session"

    @property
    def context(self) -> Context:
        return Context.FORWARD_FREE

    @functools.cached_property
    def time_measure(self) -> Measure | None:
        return next((length.measure for length in self.lengths.values()), None)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.time_measure or TIME,)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.gap,) if isinstance(self.gap, Expression) else ()

    @property
    def reach(self) -> int | None:
        return None if self.max_length is None and isinstance(self.gap, Expression) else super().reach

    def in_unit(self, unit: str | None) -> Self:
        converted = super().in_unit(unit)
        return converted if converted.unit == unit else dataclasses.replace(converted, unit=unit)

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        if not isinstance(self.gap, Expression):
            return
        type_, t = types[self.gap], pa.types
        counts = self.unit is None and t.is_integer(time_type)
        if not (t.is_integer(type_) or _is_text(type_) or t.is_duration(type_) or t.is_null(type_)):
            raise DataError(
                f"the gap {self.gap} must be a text such as '5 minutes', a duration, or an integer where time is an "
                f"integer column; got {type_name(type_)}"
            )
        if t.is_integer(type_) and self.unit is None and not counts:
            raise DataError(
                f"the gap {self.gap} is an integer, and the time column holds timestamps; make it a text such as "
                "'5 minutes', or a duration"
            )
        if counts and not (t.is_integer(type_) or t.is_null(type_)):
            raise DataError(
                f"the gap {self.gap} is {type_name(type_)}, and the time column holds integers; make it an integer, or "
                "say what those count: Workload(unit=...)"
            )

    def gaps(self, columns: Mapping[str, Column], rows: int) -> np.ndarray:
        """The gap of each row as event times are counted; 0 for a row that belongs to no session."""
        if not isinstance(self.gap, Expression):
            return np.full(rows, int(self.gap.size))
        column = columns[self.gap]
        if pa.types.is_integer(column.type):
            gaps = column.values
        elif _is_text(column.type):
            texts, place = np.unique(np.array([str(v) for v in column.values.tolist()], object), return_inverse=True)
            gaps = np.array([_length(text, self.unit) for text in texts.tolist()], np.int64)[place]
        else:
            gaps = _in_unit(column.values.astype(np.int64), self.unit)
        positive: np.ndarray = np.clip(np.where(column.mask, gaps, 0), 0, LARGEST_TIME)
        return positive

    def __repr__(self) -> str:
        gap = repr(self.gap) if isinstance(self.gap, Expression) else format_amount(self.gap)
        longest = "" if self.max_length is None else f", max_length={format_amount(self.max_length)}"
        return f"session({gap}{longest})"


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _length(text: str, unit: str | None) -> int:
    """The length that a text says; 0 where it says none, as of a cast that fails."""
    try:
        return int(_in_unit(np.array([length_us(text, "gap")]), unit)[0])
    except QueryError:
        return 0


def _in_unit(micros: np.ndarray, unit: str | None) -> np.ndarray:
    """Lengths in whole units, cut off."""
    per_second, per_micro = UNITS[unit or TIME.unit], UNITS[unit or TIME.unit] // UNITS[TIME.unit]
    lengths: np.ndarray = np.clip(micros, -LARGEST_TIME, LARGEST_TIME // max(per_micro, 1))
    return lengths * per_micro if per_micro else lengths // (UNITS[TIME.unit] // per_second)


def session(gap: Length | Expression, *, max_length: Length | None = None) -> Session | RowSession:
    """Activity closed by a gap: a row at most ``gap`` after the one before joins its session.

    Parameters
    ----------
    gap : str, int, timedelta, Amount or Expression
        How long no row comes before a session is over: in event time, or as ``sw.units(2, "km")`` how far a column
        advances without one. With ``sw.expr("...")`` every row says how long it is waited for the next one: by a text
        such as ``'5 minutes'``, a duration, or an integer where time is an integer column; the session is over when no
        row waits any more. Rows whose gap is null or not positive belong to no session.
    max_length : str, int or timedelta, optional
        A row that comes so long after the first of its session starts the next one.

    Returns
    -------
    Session or RowSession
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.session("30 seconds")
    session('30 seconds')
    >>> op = sw.Workload(time="ts").query("visits", sw.session(5), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(1, 9, 3), (12, 17, 5)]

    No visit is longer than 8; a video is waited for longer than a page:

    >>> op = sw.Workload(time="ts").query("visits", sw.session(5, max_length=8), n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 8, 9, 11]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(1, 9, 3), (9, 16, 2)]
    >>> patient = sw.session(sw.expr("case when kind = 'video' then 60 else 5 end"))
    >>> op = sw.Workload(time="ts").query("visits", patient, n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 50, 80], "kind": ["page", "video", "page", "page"]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(1, 64, 3), (80, 85, 1)]
    """
    waits = gap if isinstance(gap, Expression) else to_amount(gap, name="gap")
    if isinstance(waits, Amount) and waits.measure == ROWS:
        raise QueryError(
            f"`gap` must be a length of event time, or units of a column; got {format_amount(waits)}; positions have "
            "no gaps",
            parameter="gap",
        )
    if max_length is None:
        return RowSession(waits) if isinstance(waits, Expression) else Session(waits)
    return RowSession(waits, _read_max_length(max_length, waits))


def _read_max_length(value: Any, gap: Amount | Expression) -> Amount:
    longest = to_amount(value, name="max_length")
    if not longest.measure.is_event_time:
        raise QueryError(
            f"`max_length` must be a length of event time; got {format_amount(longest)}", parameter="max_length"
        )
    if isinstance(gap, Amount) and gap.measure != longest.measure:
        raise QueryError(
            f"`max_length` must be in the measure of `gap`; got {format_amount(longest)} and {format_amount(gap)}",
            parameter="max_length",
        )
    return longest
