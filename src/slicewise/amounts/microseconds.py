"""Lengths and points in time in whole microseconds: read from text, from Python's types and from NumPy's, and written.

Each reader takes the ``name`` of the parameter that the value was given for, and errors begin with it.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import NoReturn

import numpy as np

from slicewise.errors import QueryError, did_you_mean

__all__ = [
    "CALENDAR_WORDS",
    "INT64_MAX",
    "INT64_MIN",
    "cut_to_a_line",
    "format_length",
    "in_int64",
    "instant_us",
    "length_us",
    "refusal",
    "shown",
]

# The longest first: format_length takes them in this order. Weeks are read but never written.
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

#: How the units are written that have no fixed length, and the days to suggest for them.
CALENDAR_WORDS = {
    **dict.fromkeys(("month", "months", "mon", "mons", "mo", "mos"), "month"),
    **dict.fromkeys(("quarter", "quarters", "q"), "quarter"),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), "year"),
}
_CALENDAR_DAYS = {"month": 30, "quarter": 91, "year": 365}

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

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_EPOCH = datetime(1970, 1, 1)
# Longer texts are no lengths, and Python refuses to turn more than 4300 digits into an integer.
_LONGEST_TEXT = 200


def length_us(value: str | timedelta | np.timedelta64, name: str) -> int:
    """The microseconds of a length, which may be zero or negative.

    >>> length_us("1h30m", "length"), length_us("-0.5 s", "offset")
    (5400000000, -500000)
    """
    if isinstance(value, str):
        us = _read_length(value, name)
    elif isinstance(value, np.timedelta64):
        us = _numpy_length_us(value, name)
    else:
        us = _timedelta_us(value, name)
    return in_int64(us, value, name)


def instant_us(value: str | date | np.datetime64, name: str) -> int:
    """The microseconds from the epoch to a point in time; without an offset it is taken as UTC.

    >>> instant_us("1970-01-01 01:00+01:00", "since"), instant_us(date(1970, 1, 2), "since")
    (0, 86400000000)
    """
    if isinstance(value, str):
        return _datetime_us(_read_iso(value, name), value, name)
    if isinstance(value, np.datetime64):
        return in_int64(_numpy_instant_us(value, name), value, name)
    if isinstance(value, datetime):
        return _datetime_us(value, value, name)
    return _datetime_us(datetime(value.year, value.month, value.day), value, name)


def _read_length(text: str, name: str) -> int:
    """Microseconds of a text like '1 hour 30 minutes', '1h30m' or 'interval -5 minutes'."""
    # Fractions all the way: 0.1 seconds is exactly 100 000 microseconds, which no float can promise.
    body = re.sub(r"^interval\b", "", text.strip().lower()).strip()
    if not body:
        raise refusal(name, f"is empty; got {text!r}; write a length like '10 minutes'")
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
        raise refusal(
            name,
            f"is not a point in time that we can read; got {shown(text)}; "
            "write it as in '2024-01-01', '2024-01-01 12:00:00.5' or '2024-01-01T12:00:00+01:00'",
        ) from None


def _timedelta_us(value: timedelta, name: str) -> int:
    # pandas.Timedelta is a timedelta that also counts nanoseconds.
    if getattr(value, "nanoseconds", 0):
        _refuse_fraction(value, name)
    return value.days * _WRITTEN["day"] + value.seconds * 1_000_000 + value.microseconds


def _datetime_us(value: datetime, original: object, name: str) -> int:
    # pandas.NaT is a datetime, and the only one that differs from itself; pandas.Timestamp counts nanoseconds.
    if value != value:
        _refuse_missing(original, name)
    if getattr(value, "nanosecond", 0):
        _refuse_fraction(original, name)
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
        raise refusal(
            name,
            f"is a numpy.timedelta64 without a unit; got {shown(value)}; "
            "write numpy.timedelta64(10, 's') or '10 seconds'",
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


def _whole_us(us: Fraction, original: object, name: str) -> int:
    if us.denominator != 1:
        _refuse_fraction(original, name)
    return us.numerator


def in_int64(size: int, original: object, name: str) -> int:
    """The size, unless it is too large; ``original`` is what the user passed, for the message."""
    if not INT64_MIN <= size <= INT64_MAX:
        _refuse_range(original, name)
    return size


def format_length(us: Fraction) -> str:
    """'1 hour 30 minutes'; each term of a negative length has its own sign, which both our reader and Spark's need."""
    sign, rest, terms = "-" if us < 0 else "", abs(us), []
    sizes: dict[str, int | Fraction] = {**_WRITTEN, "nanosecond": Fraction(1, 1000)}
    for word, size in sizes.items():
        n, rest = divmod(rest, size)
        if n:
            terms.append(f"{sign}{n} {word}{'' if n == 1 else 's'}")
    return " ".join(terms) or "0 seconds"


def refusal(name: str, problem: str) -> QueryError:
    """The error about the value of the parameter ``name``."""
    return QueryError(f"`{name}` {problem}", parameter=name)


def shown(value: object) -> str:
    """The value as a message shows it: by its repr, cut to a line."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return cut_to_a_line(repr(value))


def cut_to_a_line(text: str) -> str:
    """The text, or its beginning where it is too long for a message."""
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse_text(rest: str, text: str, name: str) -> NoReturn:
    """Say why ``rest``, what is left of ``text``, does not begin with a number and a unit."""
    lone_number = _LONE_NUMBER.match(rest) if len(rest) <= _LONGEST_TEXT else None
    if lone_number:
        number = lone_number.group(1)
        integer = f", or the integer {number} where time is an integer column" if text.strip().isdecimal() else ""
        raise refusal(name, f"has a number without a unit; got {text!r}; write '{number} seconds'{integer}")
    if _LONE_WORD.match(rest) and rest in _SINGULAR:
        raise refusal(name, f"has a unit without a number; got {text!r}; write '1 {_SINGULAR[rest]}'")
    raise refusal(
        name,
        f"is not a length that we can read; got {shown(text)}; "
        "write numbers with units, as in '10 minutes', '1 hour 30 minutes' or '250 ms'",
    )


def _refuse_unit(number: str, unit: str, text: str, name: str) -> NoReturn:
    if unit in CALENDAR_WORDS:
        days = Fraction(number) * _CALENDAR_DAYS[CALENDAR_WORDS[unit]]
        _refuse_calendar(unit, f"{max(round(days), 1)} days", text, name)
    hint = did_you_mean(unit, [word + "s" for word in _SPELLINGS if word != "nanosecond"])
    raise refusal(name, f"has an unknown unit {unit!r}; got {text!r}; {hint}")


def _refuse_calendar(unit: str, instead: str, original: object, name: str) -> NoReturn:
    raise refusal(
        name, f"is in {unit!r}, which has no fixed length; got {shown(original)}; use days, as in '{instead}'"
    )


def _refuse_fraction(original: object, name: str) -> NoReturn:
    raise refusal(
        name, f"has a fraction of a microsecond; got {shown(original)}; time is in whole microseconds, so round it"
    )


def _refuse_range(original: object, name: str) -> NoReturn:
    raise refusal(
        name,
        f"does not fit 64 bits; got {shown(original)}; "
        "the largest is 2**63 - 1, in microseconds about 292 000 years, so use a smaller value",
    )


def _refuse_missing(original: object, name: str) -> NoReturn:
    raise refusal(name, f"is missing; got {shown(original)} (not a time); give a value or leave the parameter out")
