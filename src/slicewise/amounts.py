"""Amounts: lengths that carry their measure ("10 minutes", ``rows(100)``, ``units(10, "km")``), and points in time.

A leaf: it imports only the errors. Windows and workloads turn everything the user says about lengths, offsets and
instants into these, so that the rest of the code only ever sees int64 microseconds (or what an integer time column
counts), row counts and units.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NoReturn, TypeGuard

import numpy as np

from slicewise.errors import QueryError, did_you_mean

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
            return _format_length(Fraction(int(self.size) * UNITS["microseconds"], UNITS[self.measure.unit]))
        if self.measure.kind == "rows":
            return f"rows({self.size})"
        if self.measure.kind == "units":
            return f"units({self.size}, {self.measure.column!r})"
        return str(self.size)


# The longest first: _format_length takes them in this order. Weeks are read but never written.
_WRITTEN = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}

_SPELLINGS: dict[str, tuple[Fraction, tuple[str, ...]]] = {
    "week": (Fraction(7 * _WRITTEN["day"]), ("w", "wk", "wks")),
    "day": (Fraction(_WRITTEN["day"]), ("d",)),
    "hour": (Fraction(_WRITTEN["hour"]), ("h", "hr", "hrs")),
    "minute": (Fraction(_WRITTEN["minute"]), ("m", "min", "mins")),
    "second": (Fraction(_WRITTEN["second"]), ("s", "sec", "secs")),
    "millisecond": (Fraction(_WRITTEN["millisecond"]), ("ms",)),
    # Two letters look like this: the micro sign U+00B5, and the Greek mu U+03BC that lower() makes of a capital one.
    "microsecond": (Fraction(1), ("us", "\u00b5s", "\u03bcs")),
    "nanosecond": (Fraction(1, 1000), ("ns",)),
}
_UNIT_US = {s: us for word, (us, short) in _SPELLINGS.items() for s in (word, word + "s", *short)}
_SINGULAR = {s: word for word, (_, short) in _SPELLINGS.items() for s in (word, word + "s", *short)}

# Days to suggest for the units that have no fixed length.
_CALENDAR_DAYS = {
    **dict.fromkeys(("month", "months", "mon", "mons", "mo", "mos"), 30),
    **dict.fromkeys(("quarter", "quarters", "q"), 91),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), 365),
}

_NUMPY_US: dict[str, int | Fraction] = {
    "W": 7 * _WRITTEN["day"],
    "D": _WRITTEN["day"],
    "h": _WRITTEN["hour"],
    "m": _WRITTEN["minute"],
    "s": _WRITTEN["second"],
    "ms": 1_000,
    "us": 1,
    "ns": Fraction(1, 10**3),
    "ps": Fraction(1, 10**6),
    "fs": Fraction(1, 10**9),
    "as": Fraction(1, 10**12),
}

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_TERM = re.compile(rf"([+-]?)\s*({_NUMBER})\s*([a-z\u00b5\u03bc]+)\s*")
_LONE_NUMBER = re.compile(rf"[+-]?\s*({_NUMBER})$")
_LONE_WORD = re.compile(r"[a-z\u00b5\u03bc]+$")
_BEYOND_MICROSECONDS = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1)
# Longer texts are no lengths, and Python refuses to turn more than 4300 digits into an integer.
_LONGEST_TEXT = 200


def rows(n: int) -> Amount:
    """A length of ``n`` rows, counted per key in event-time order.

    >>> rows(100).size
    100
    """
    if not _is_integer(n) or not 1 <= n <= _INT64_MAX:
        raise QueryError(
            f"`rows` takes a whole number of rows, at least 1; got {_got(n)}; write rows(100) for a hundred rows"
        )
    return Amount(int(n), ROWS)


def units(size: int | float, column: str) -> Amount:
    """A length of ``size`` on ``column``, any numeric column that only advances.

    >>> units(0.5, "km").measure
    Measure(kind='units', column='km')
    """
    if not _is_positive_finite(size):
        raise QueryError(
            f"`units` takes a positive, finite number as its size; got {_got(size)}; "
            "write units(10, 'km') for ten of the column 'km'"
        )
    if not isinstance(column, str) or not column:
        raise QueryError(
            f"`units` takes the name of a numeric column; got {_got(column)}; "
            "write units(10, 'km') for ten of the column 'km'"
        )
    exact = int(size) if _is_integer(size) else float(size)
    return Amount(exact, Measure("units", str(column)))


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
        raise QueryError(f"`{name}` must be positive; got {_got(value)}")
    return amount


def to_offset(value: object, *, name: str) -> Amount:
    """Read a length that may be zero or negative. The integer 0 comes back as integer time and fits any measure.

    >>> to_offset("-3 hours", name="offset").size
    -10800000000
    """
    if isinstance(value, Amount):
        return value
    if isinstance(value, str):
        return Amount(_in_int64(_read_length(value, name), value, name), TIME)
    if isinstance(value, np.timedelta64):
        return Amount(_in_int64(_numpy_length_us(value, name), value, name), TIME)
    if isinstance(value, timedelta):
        return Amount(_in_int64(_timedelta_us(value, name), value, name), TIME)
    if _is_integer(value):
        return Amount(_in_int64(int(value), value, name), INTEGER)
    _refuse_length(value, name)


def to_instant(value: object, *, name: str) -> tuple[int, Measure]:
    """Read a point in time: ``(microseconds since the epoch, TIME)``, or ``(int, INTEGER)`` for a plain integer.

    An aware datetime is converted to UTC; a naive one, a date and an ISO text without an offset are taken as UTC.

    >>> to_instant("2024-01-01 01:00+01:00", name="since")
    (1704067200000000, Measure(kind='time', column=None))
    >>> to_instant(7, name="since")
    (7, Measure(kind='integer', column=None))
    """
    if isinstance(value, str):
        return _datetime_us(_read_iso(value, name), value, name), TIME
    if isinstance(value, np.datetime64):
        return _in_int64(_numpy_instant_us(value, name), value, name), TIME
    if isinstance(value, datetime):
        return _datetime_us(value, value, name), TIME
    if isinstance(value, date):
        return _datetime_us(datetime(value.year, value.month, value.day), value, name), TIME
    if _is_integer(value):
        return _in_int64(int(value), value, name), INTEGER
    raise QueryError(
        f"`{name}` must be a point in time; got {_got_kind(value)}; "
        "write a datetime, a date, a text like '2024-01-01 12:00:00', or an integer where time is an integer column"
    )


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
        raise QueryError(f"`{name}` must be a whole number of {unit}, the time column's unit; got {got}; round it")
    if not _INT64_MIN <= exact.numerator <= _INT64_MAX:
        raise QueryError(f"`{name}` does not fit 64 bits in {unit}, the time column's unit; got {got}; use less")
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
    more, fewer = UNITS["microseconds"] // UNITS[unit], UNITS[unit] // UNITS["microseconds"]
    return times // fewer if fewer > 1 else times * more


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


def _format_length(us: Fraction) -> str:
    """'1 hour 30 minutes'; each term of a negative length has its own sign, as the reader (and Spark's) wants it."""
    sign, rest, terms = "-" if us < 0 else "", abs(us), []
    sizes: dict[str, int | Fraction] = {**_WRITTEN, "nanosecond": Fraction(1, 1000)}
    for word, size in sizes.items():
        n, rest = divmod(rest, size)
        if n:
            terms.append(f"{sign}{n} {word}{'' if n == 1 else 's'}")
    return " ".join(terms) or "0 seconds"


def _read_length(text: str, name: str) -> int:
    """Microseconds of a text like '1 hour 30 minutes', '1h30m' or 'interval -5 minutes'."""
    # Fractions all the way: 0.1 seconds is exactly 100 000 microseconds, which no float can promise.
    body = re.sub(r"^interval\b", "", text.strip().lower()).strip()
    if not body:
        raise QueryError(f"`{name}` is empty; got {text!r}; write a length like '10 minutes'")
    total, at = Fraction(0), 0
    while at < len(body):
        term = _TERM.match(body, at) if len(body) <= _LONGEST_TEXT else None
        if term is None:
            _refuse_text(body[at:], text, name)
        sign, number, unit = term.groups()
        if unit not in _UNIT_US:
            _refuse_unit(number, unit, text, name)
        total += Fraction(sign + number) * _UNIT_US[unit]
        at = term.end()
    return _whole_us(total, text, name)


def _read_iso(text: str, name: str) -> datetime:
    body = text.strip()
    # fromisoformat cuts digits beyond microseconds off without a word.
    if _BEYOND_MICROSECONDS.search(body):
        _refuse_fraction(text, name)
    try:
        return datetime.fromisoformat(body)
    except ValueError:
        raise QueryError(
            f"`{name}` is not a point in time that we can read; got {_got(text)}; "
            "write it as in '2024-01-01', '2024-01-01 12:00:00.5' or '2024-01-01T12:00:00+01:00'"
        ) from None


def _timedelta_us(value: timedelta, name: str) -> int:
    # pandas.Timedelta is a timedelta that also counts nanoseconds.
    if getattr(value, "nanoseconds", 0):
        _refuse_fraction(value, name)
    return value.days * _WRITTEN["day"] + value.seconds * 1_000_000 + value.microseconds


def _datetime_us(value: datetime, said: object, name: str) -> int:
    # pandas.NaT is a datetime, and the only one that differs from itself; pandas.Timestamp counts nanoseconds.
    if value != value:
        _refuse_missing(said, name)
    if getattr(value, "nanosecond", 0):
        _refuse_fraction(said, name)
    # Not astimezone(): it overflows in the first and the last hours that datetime knows.
    shift = value.utcoffset() or timedelta(0)
    return _timedelta_us(value.replace(tzinfo=None) - _EPOCH, name) - _timedelta_us(shift, name)


def _numpy_length_us(value: np.timedelta64, name: str) -> int:
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value):
        _refuse_missing(value, name)
    if unit in ("Y", "M"):
        _refuse_calendar("years" if unit == "Y" else "months", "30 days", value, name)
    if unit not in _NUMPY_US:
        raise QueryError(
            f"`{name}` is a numpy.timedelta64 without a unit; got {_got(value)}; "
            "write numpy.timedelta64(10, 's') or '10 seconds'"
        )
    return _whole_us(Fraction(int(value.astype(np.int64))) * step * _NUMPY_US[unit], value, name)


def _numpy_instant_us(value: np.datetime64, name: str) -> int:
    if np.isnat(value):
        _refuse_missing(value, name)
    unit, step = np.datetime_data(value.dtype)
    count = int(value.astype(np.int64)) * step
    if unit in ("Y", "M"):
        # Years and months have to be turned into days by NumPy, which wraps around silently far out.
        if abs(count) > 12 * 300_000:
            _refuse_range(value, name)
        count, unit = int(value.astype("datetime64[D]").astype(np.int64)), "D"
    return _whole_us(Fraction(count) * _NUMPY_US[unit], value, name)


def _whole_us(us: Fraction, said: object, name: str) -> int:
    if us.denominator != 1:
        _refuse_fraction(said, name)
    return us.numerator


def _in_int64(size: int, said: object, name: str) -> int:
    if not _INT64_MIN <= size <= _INT64_MAX:
        _refuse_range(said, name)
    return size


def _is_integer(value: object) -> TypeGuard[int]:
    # bool is an int, and numpy.timedelta64 a numpy.integer; neither is a number of anything.
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _is_positive_finite(size: object) -> bool:
    if _is_integer(size):
        return 0 < size <= _INT64_MAX
    return isinstance(size, (float, np.floating)) and 0 < float(size) < math.inf


def _got(value: object) -> str:
    """The value as a message shows it: an amount as it is written, everything else by its repr, cut to a line."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    shown = str(value) if isinstance(value, Amount) else repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _got_kind(value: object) -> str:
    if value is None:
        return "None"
    kind = "boolean" if isinstance(value, (bool, np.bool_)) else type(value).__name__
    return f"{_got(value)}, {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _refuse_length(value: object, name: str) -> NoReturn:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        example = number if 0.001 <= number < 1e12 else 10.0
        seconds = int(example) if example.is_integer() else example
        raise QueryError(
            f"`{name}` must say what it is counted in; got {_got(value)}, a float; write '{seconds} seconds' for time, "
            f"or the integer {max(round(example), 1)} where time is an integer column"
        )
    raise QueryError(
        f"`{name}` must be a length; got {_got_kind(value)}; "
        "write '10 minutes', a timedelta, rows(100), units(10, 'km'), or an integer where time is an integer column"
    )


def _refuse_text(rest: str, text: str, name: str) -> NoReturn:
    """Say why ``rest``, what is left of ``text``, does not begin with a number and a unit."""
    lone_number = _LONE_NUMBER.match(rest) if len(rest) <= _LONGEST_TEXT else None
    if lone_number:
        number = lone_number.group(1)
        integer = f", or the integer {number} where time is an integer column" if text.strip().isdecimal() else ""
        raise QueryError(f"`{name}` has a number without a unit; got {text!r}; write '{number} seconds'{integer}")
    if _LONE_WORD.match(rest) and rest in _SINGULAR:
        raise QueryError(f"`{name}` has a unit without a number; got {text!r}; write '1 {_SINGULAR[rest]}'")
    raise QueryError(
        f"`{name}` is not a length that we can read; got {_got(text)}; "
        "write numbers with units, as in '10 minutes', '1 hour 30 minutes' or '250 ms'"
    )


def _refuse_unit(number: str, unit: str, text: str, name: str) -> NoReturn:
    if unit in _CALENDAR_DAYS:
        days = Fraction(number) * _CALENDAR_DAYS[unit]
        _refuse_calendar(unit, f"{max(round(days), 1)} days", text, name)
    hint = did_you_mean(unit, [word + "s" for word in _SPELLINGS if word != "nanosecond"])
    raise QueryError(f"`{name}` has an unknown unit {unit!r}; got {text!r}; {hint}")


def _refuse_calendar(unit: str, instead: str, said: object, name: str) -> NoReturn:
    raise QueryError(
        f"`{name}` is in {unit!r}, which has no fixed length; got {_got(said)}; use days, as in '{instead}'"
    )


def _refuse_fraction(said: object, name: str) -> NoReturn:
    raise QueryError(
        f"`{name}` has a fraction of a microsecond; got {_got(said)}; time is in whole microseconds, so round it"
    )


def _refuse_range(said: object, name: str) -> NoReturn:
    raise QueryError(
        f"`{name}` does not fit 64 bits; got {_got(said)}; "
        "the largest is 2**63 - 1, in microseconds about 292 000 years, so use a smaller value"
    )


def _refuse_missing(said: object, name: str) -> NoReturn:
    raise QueryError(f"`{name}` is missing; got {_got(said)} (not a time); give a value or leave the parameter out")
