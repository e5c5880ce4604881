"""Parameters: how windows read, check and write what they are given. Below all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

from slicewise.amounts import INTEGER, TIME, Amount, Measure, format_instant, in_unit, to_offset
from slicewise.conditions import Condition
from slicewise.errors import QueryError

__all__ = [
    "Instant",
    "Length",
    "check_columns",
    "check_conditions",
    "format_amount",
    "format_code",
    "format_offset",
    "format_position",
    "in_time_unit",
    "offset_in_unit",
    "read_offset",
    "read_tick_offset",
]

#: What :func:`slicewise.amounts.to_amount` reads, and :func:`slicewise.amounts.to_position`.
Length = str | int | timedelta | np.timedelta64 | np.integer[Any] | Amount
Instant = str | int | float | date | np.datetime64 | np.integer[Any] | Amount


# Reading


def read_offset(offset: Length, length: Amount) -> int:
    """The smallest offset that means the same: windows a whole ``length`` apart are the same windows.

    >>> read_offset("90 minutes", Amount(3_600_000_000, TIME))
    1800000000
    """
    amount = to_offset(offset, name="offset")
    if amount.size == 0:
        return 0
    if amount.measure != length.measure:
        raise QueryError(
            f"`offset` must be in the measure of the window; got {format_amount(amount)} with {format_amount(length)}",
            parameter="offset",
        )
    return amount.size % length.size  # type: ignore[return-value]  # a float for units that are floats


def read_tick_offset(offset: Length, every: Amount) -> int:
    """The same for windows that are reported at ticks of ``every``, which must be event time to be shifted."""
    amount = to_offset(offset, name="offset")
    if amount.size and not every.measure.is_event_time:
        raise QueryError(
            f"`offset` shifts ticks of event time; got {format_amount(amount)} with every={format_amount(every)}; "
            "leave it out",
            parameter="offset",
        )
    return read_offset(offset, every)


def offset_in_unit(offset: int, measure: Measure, unit: str | None) -> dict[str, Any]:
    """The parameter ``offset`` of a window, which is on a measure, in the unit of the time column."""
    if not offset or not measure.is_event_time:
        return {}
    return {"offset": in_time_unit(Amount(offset, measure), unit, "offset").size}


def check_conditions(conditions: Sequence[Any], columns: Any) -> tuple[str, ...]:
    """The columns that functions among conditions name; refuses what is no condition."""
    named = check_columns(columns)
    if named and all(isinstance(condition, str) for condition in conditions):
        raise QueryError(
            f"`columns` is for a function; the expression {conditions[0]!r} says what it reads; leave it out",
            parameter="columns",
        )
    for condition in conditions:
        Condition.of(condition, named)  # what cannot be read is refused here
    return named


def check_columns(columns: Any) -> tuple[str, ...]:
    """The columns that user code reads; refuses what is no list of names."""
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    if not listed or not all(isinstance(c, str) for c in columns):
        raise QueryError(f"`columns` must be a list of column names; got {columns!r}", parameter="columns")
    return tuple(columns)


def in_time_unit(amount: Amount, unit: str | None, name: str, *, instant: bool = False) -> Amount:
    """A length of event time as the engine counts it: in this unit; without one microseconds, or plain integers."""
    if unit is None and amount.measure == INTEGER:
        return amount
    return in_unit(amount, unit or TIME.unit, name=name, instant=instant)


# Writing: as the Python that makes the same


def format_amount(amount: Amount) -> str:
    """A length as an argument.

    >>> format_amount(Amount(5_000_000, TIME)), format_amount(Amount(5, INTEGER))
    ("'5 seconds'", '5')
    """
    return repr(str(amount)) if amount.measure.kind == "time" else str(amount)


def format_offset(offset: int, measure: Measure) -> str:
    """An offset behind other arguments; nothing for none."""
    return f", offset={format_amount(Amount(offset, measure))}" if offset else ""


def format_position(at: int | float, measure: Measure) -> str:
    """A point on a measure as an argument.

    >>> format_position(0, TIME), format_position(7, INTEGER), format_position(2.5, Measure("units", "km"))
    ("'1970-01-01 00:00:00'", '7', "units(2.5, 'km')")
    """
    return repr(format_instant(int(at), measure.unit)) if measure.kind == "time" else str(Amount(at, measure))


def format_code(code: Any) -> str:
    """An expression, or the name of the user's function or class."""
    return repr(code) if isinstance(code, str) else getattr(code, "__qualname__", repr(code))
