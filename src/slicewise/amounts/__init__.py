"""Amounts: lengths that carry their measure ("10 minutes", ``rows(100)``, ``units(10, "km")``), and points in time.

A leaf: it imports only the errors. Windows and workloads turn the lengths, offsets and instants that users pass into
these, so that the rest of the code only ever sees int64 microseconds (or what an integer time column counts), row
counts and units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from slicewise.amounts.microseconds import (
    INT64_MAX,
    INT64_MIN,
    cut_to_a_line,
    format_length,
    in_int64,
    instant_us,
    length_us,
    refusal,
    shown,
)
from slicewise.errors import QueryError

__all__ = [
    "INTEGER",
    "ROWS",
    "TIME",
    "UNITS",
    "Amount",
    "Measure",
    "format_instant",
    "from_micros",
    "in_unit",
    "rows",
    "to_amount",
    "to_instant",
    "to_micros",
    "to_offset",
    "to_position",
    "units",
]

#: What the integers of a time column may count, and how many of them a second has.
UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}


@dataclass(frozen=True)
class Measure:
    """What a length is counted in: ``time``, ``integer`` (integer time), ``rows`` or ``units`` of a column.

    ``unit`` is that of ``time``: microseconds, unless an integer time column counts something else.
    """

    kind: str
    column: str | None = None
    unit: str = field(default="microseconds", repr=False)

    def __str__(self) -> str:
        return f"units of {self.column!r}" if self.kind == "units" else self.kind

    @property
    def is_event_time(self) -> bool:
        """Whether it is a length of event time, in whatever it is counted."""
        return self.kind in ("time", "integer")


TIME = Measure("time")
INTEGER = Measure("integer")
ROWS = Measure("rows")


@dataclass(frozen=True)
class Amount:
    """A length and its measure.

    ``size`` is an int in the measure's unit for time, an int for integer time and rows, an int or a float for units.

    >>> str(to_amount("90 min", name="length"))
    '1 hour 30 minutes'
    >>> str(rows(100)), str(units(10, "km"))
    ('rows(100)', "units(10, 'km')")
    """

    size: int | float
    measure: Measure

    def __str__(self) -> str:
        if self.measure.kind == "time":
            return format_length(Fraction(int(self.size) * UNITS["microseconds"], UNITS[self.measure.unit]))
        if self.measure.kind == "rows":
            return f"rows({self.size})"
        if self.measure.kind == "units":
            return f"units({self.size}, {self.measure.column!r})"
        return str(self.size)


def rows(n: int) -> Amount:
    """A length of ``n`` rows, or the position behind them, counted per key in event-time order.

    Parameters
    ----------
    n : int
        The number of rows; 0 only as a position, the first row's.

    Returns
    -------
    Amount
        A length for windows such as ``sw.tumbling`` and ``sw.sliding``, a position for ``sw.between``.

    Examples
    --------
    The sum of every three rows:

    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(sw.rows(3)), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"t": [1, 2, 3, 4], "v": [10, 20, 30, 40]})
    >>> next(iter(op.close())).values
    {'total': 60}
    """
    if not _is_integer(n) or not 0 <= n <= INT64_MAX:
        raise QueryError(
            f"`rows` takes a whole number of rows, not negative; got {_got(n)}; write rows(100) for a hundred rows",
            parameter="n",
        )
    return Amount(int(n), ROWS)


def units(size: int | float, column: str) -> Amount:
    """A length of ``size`` on ``column``, any numeric column that only advances, or a point on it.

    Parameters
    ----------
    size : int or float
        The length in what the column counts, finite; lengths are positive, a point may lie anywhere.
    column : str
        A numeric column that never decreases with event time, such as a mileage or a meter reading.

    Returns
    -------
    Amount
        A length for windows such as ``sw.tumbling`` and ``sw.sliding``, a point for ``sw.between``.

    Examples
    --------
    The fuel of every ten kilometres:

    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(sw.units(10, "km")), fuel=sw.sum("litres")).operator()
    >>> _ = op.process_batch({"t": [1, 2, 3], "km": [2.0, 9.5, 12.0], "litres": [0.2, 0.5, 0.1]})
    >>> [(result.start, result.end, result.values["fuel"]) for result in op.close()]
    [(0, 10, 0.7), (10, 20, 0.1)]
    """
    if not _is_finite(size):
        raise QueryError(
            f"`units` takes a finite number as its size; got {_got(size)}; "
            "write units(10, 'km') for ten of the column 'km'",
            parameter="size",
        )
    if not isinstance(column, str) or not column:
        raise QueryError(
            f"`units` takes the name of a numeric column; got {_got(column)}; "
            "write units(10, 'km') for ten of the column 'km'",
            parameter="column",
        )
    exact = int(size) if _is_integer(size) else float(size)
    return Amount(exact, Measure("units", column))


def to_amount(value: object, *, name: str) -> Amount:
    """Read a positive length: text, timedelta, integer, Amount or ``numpy.timedelta64``.

    ``name`` is the parameter the value was given for; errors begin with it.

    >>> to_amount("1.5 seconds", name="every").size
    1500000
    >>> to_amount("0 seconds", name="every")
    Traceback (most recent call last):
    slicewise.errors.QueryError: `every` must be positive; got '0 seconds'
    """
    amount = to_offset(value, name=name)
    # "Not above zero", rather than "at most zero", so that a NaN does not get through.
    if not amount.size > 0:
        raise refusal(name, f"must be positive; got {_got(value)}")
    return amount


def to_offset(value: object, *, name: str) -> Amount:
    """Read a length that may be zero or negative. The integer 0 comes back as integer time and fits any measure.

    >>> to_offset("-3 hours", name="offset").size
    -10800000000
    """
    if isinstance(value, Amount):
        return value
    if isinstance(value, (str, timedelta, np.timedelta64)):
        return Amount(length_us(value, name), TIME)
    if _is_integer(value):
        return Amount(in_int64(int(value), value, name), INTEGER)
    raise _not_a_length(value, name)


def to_instant(value: object, *, name: str) -> tuple[int, Measure]:
    """Read a point in time: ``(microseconds since the epoch, TIME)``, or ``(int, INTEGER)`` for a plain integer.

    An aware datetime is converted to UTC; a naive one, a date and an ISO text without an offset are taken as UTC.

    >>> to_instant("2024-01-01 01:00+01:00", name="since")
    (1704067200000000, Measure(kind='time', column=None))
    >>> to_instant(7, name="since")
    (7, Measure(kind='integer', column=None))
    """
    if isinstance(value, (str, date, np.datetime64)):
        return instant_us(value, name), TIME
    if _is_integer(value):
        return in_int64(int(value), value, name), INTEGER
    raise refusal(
        name,
        f"must be a point in time; got {_got_kind(value)}; "
        "write a datetime, a date, a text like '2024-01-01 12:00:00', or an integer where time is an integer column",
    )


def to_position(value: object, *, name: str, on: Measure | None = None) -> tuple[int | float, Measure]:
    """Read a point on any measure: of rows or units an Amount, of event time as :func:`to_instant` reads it.

    Where it is known to lie ``on`` rows or units of a column, a plain number will do.

    >>> to_position(rows(100), name="start")
    (100, Measure(kind='rows', column=None))
    >>> to_position(2.5, name="since", on=Measure("units", "km"))
    (2.5, Measure(kind='units', column='km'))
    """
    if on is not None and not on.is_event_time and not isinstance(value, Amount):
        if on == ROWS and _is_integer(value):
            return rows(value).size, ROWS
        if on.column is not None and _is_finite(value):
            return units(value, on.column).size, on  # type: ignore[arg-type]  # a number, or it is not finite
        example = "rows(100)" if on == ROWS else f"units(2.5, {on.column!r})"
        raise refusal(name, f"must be a number or a position on {on}, such as {example}; got {_got_kind(value)}")
    if isinstance(value, Amount) and not value.measure.is_event_time:
        return value.size, value.measure
    return to_instant(value, name=name)


def in_unit(amount: Amount, unit: str, *, name: str, instant: bool = False) -> Amount:
    """A length of event time in the unit of an integer time column; a plain integer is in that unit already.

    An ``instant`` is a length since the epoch, and reads otherwise in messages.

    >>> in_unit(to_amount("1 hour", name="length"), "seconds", name="length").size
    3600
    """
    if amount.measure.kind == "integer" or amount.measure.unit == unit:
        return Amount(amount.size, Measure("time", unit=unit))
    exact = Fraction(amount.size) * UNITS[unit] / UNITS[amount.measure.unit]
    got = repr(format_instant(int(amount.size), amount.measure.unit) if instant else str(amount))
    if exact.denominator != 1:
        raise refusal(name, f"must be a whole number of {unit}, the time column's unit; got {got}; round it")
    if not INT64_MIN <= exact.numerator <= INT64_MAX:
        raise refusal(name, f"does not fit 64 bits in {unit}, the time column's unit; got {got}; use less")
    return Amount(exact.numerator, Measure("time", unit=unit))


def from_micros(us: int, unit: str) -> int:
    """Microseconds, a reading of the clock, in another unit; what is left over is cut off.

    >>> from_micros(1_999_999, "seconds"), from_micros(1, "nanoseconds")
    (1, 1000)
    """
    return us * UNITS[unit] // UNITS["microseconds"]


def to_micros(times: np.ndarray, unit: str) -> np.ndarray:
    """Event times in whole microseconds: nanoseconds are cut off, before the epoch too, as Spark cuts them.

    >>> to_micros(np.array([3, -3]), "milliseconds"), to_micros(np.array([1, -1]), "nanoseconds")
    (array([ 3000, -3000]), array([ 0, -1]))
    """
    factor, divisor = UNITS["microseconds"] // UNITS[unit], UNITS[unit] // UNITS["microseconds"]
    return times // divisor if divisor > 1 else times * factor


def format_instant(at: int, unit: str = "microseconds") -> str:
    """Write an event time as UTC, for messages and ``explain``.

    >>> format_instant(1704067210_500000)
    '2024-01-01 00:00:10.5'
    >>> format_instant(-1), format_instant(-1, "nanoseconds")
    ('1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.999999999')
    """
    seconds, fraction = divmod(int(at), UNITS[unit])
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    # NumPy writes the day, because datetime ends at the year 9999 and int64 microseconds do not.
    text = f"{np.datetime64(days, 'D')} {clock}"
    return f"{text}.{fraction:0{len(str(UNITS[unit])) - 1}}".rstrip("0") if fraction else text


def _is_integer(value: object) -> TypeGuard[int]:
    # bool is an int, and numpy.timedelta64 a numpy.integer; neither is a number of anything.
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _is_finite(size: object) -> bool:
    if _is_integer(size):
        return INT64_MIN <= size <= INT64_MAX
    return isinstance(size, (float, np.floating)) and math.isfinite(size)


def _got(value: object) -> str:
    return cut_to_a_line(str(value)) if isinstance(value, Amount) else shown(value)


def _got_kind(value: object) -> str:
    if value is None:
        return "None"
    kind = "boolean" if isinstance(value, (bool, np.bool_)) else type(value).__name__
    return f"{_got(value)}, {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _not_a_length(value: object, name: str) -> QueryError:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        example = number if 0.001 <= number < 1e12 else 10.0
        seconds = int(example) if example.is_integer() else example
        return refusal(
            name,
            f"must say what it is counted in; got {_got(value)}, a float; write '{seconds} seconds' for time, "
            f"or the integer {max(round(example), 1)} where time is an integer column",
        )
    return refusal(
        name,
        f"must be a length; got {_got_kind(value)}; "
        "write '10 minutes', a timedelta, rows(100), units(10, 'km'), or an integer where time is an integer column",
    )
