"""Calendar lengths: days, weeks, months, quarters and years, which are as long as the calendar makes them.

Only windows with a zone have them. Everywhere else a day is 24 hours, and a month is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from slicewise.amounts.microseconds import CALENDAR_WORDS, refusal, shown
from slicewise.errors import QueryError

__all__ = ["CalendarLength", "refuse_without_zone", "to_calendar"]

#: For each unit the family that it counts, and how many of them it has.
_UNITS = {"day": ("day", 1), "week": ("day", 7), "month": ("month", 1), "quarter": ("month", 3), "year": ("month", 12)}
_SPELLINGS = {
    **dict.fromkeys(("day", "days", "d"), "day"),
    **dict.fromkeys(("week", "weeks", "w", "wk", "wks"), "week"),
    **CALENDAR_WORDS,
}
_NUMPY_UNITS = {"D": "day", "W": "week", "M": "month", "Y": "year"}
_TERM = re.compile(r"([+-]?)\s*([0-9]{1,9})\s*([a-z]+)\s*")


@dataclass(frozen=True)
class CalendarLength:
    """A number of days, weeks, months, quarters or years.

    >>> str(CalendarLength(1, "quarter")), CalendarLength(1, "quarter").steps
    ('1 quarter', 3)
    """

    count: int
    unit: str

    @property
    def family(self) -> str:
        """What it is counted in: ``day`` or ``month``."""
        return _UNITS[self.unit][0]

    @property
    def steps(self) -> int:
        """How many of these."""
        return self.count * _UNITS[self.unit][1]

    @property
    def origin(self) -> int:
        """Where it is counted from: days or months after 1970-01-01. Weeks begin on Mondays."""
        return -3 if self.unit == "week" else 0

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if abs(self.count) == 1 else 's'}"


def to_calendar(value: object, *, name: str) -> CalendarLength:
    """Read a positive calendar length: text, or a timedelta in whole days.

    >>> to_calendar("3 months", name="length")
    CalendarLength(count=3, unit='month')
    """
    length = calendar_length(value, name)
    if length is None:
        raise refusal(
            name,
            f"is no length of the calendar; got {_got(value)}; with `zone` it is a number of days, weeks, months, "
            "quarters or years, as in '3 months'; leave `zone` out for windows of fixed length",
        )
    if length.count <= 0:
        raise refusal(name, f"must be positive; got {_got(value)}")
    return length


def calendar_length(value: object, name: str) -> CalendarLength | None:
    """A calendar length, also of zero or less; None for what is none."""
    if isinstance(value, str):
        return _read(value, name)
    if isinstance(value, np.timedelta64):
        unit, step = np.datetime_data(value.dtype)
        known = unit in _NUMPY_UNITS and not np.isnat(value)
        return CalendarLength(int(value.astype(np.int64)) * step, _NUMPY_UNITS[unit]) if known else None
    if isinstance(value, timedelta) and value == timedelta(value.days):
        return CalendarLength(value.days, "day")
    return None


def _read(text: str, name: str) -> CalendarLength | None:
    body = re.sub(r"^interval\b", "", text.strip().lower()).strip()
    terms = _TERM.findall(body) if re.fullmatch(rf"(?:{_TERM.pattern})+", body) else []
    units = [_SPELLINGS.get(unit) for _, _, unit in terms]
    if len(terms) > 1 and any(units):
        raise refusal(
            name,
            f"mixes units, and how long it is depends on which comes first; got {text!r}; with `zone` it is one number "
            "of days, weeks, months, quarters or years, as in '3 months'",
        )
    if not terms or units[0] is None:
        return None
    return CalendarLength(int(terms[0][0] + terms[0][1]), units[0])


def refuse_without_zone(value: object, *, name: str) -> None:
    """Refuse a length in months, quarters or years where no zone says whose calendar counts.

    >>> refuse_without_zone("1 month", name="length")
    Traceback (most recent call last):
    slicewise.errors.QueryError: `length` is in months, which are not all equally long; got '1 month'; say in which \
time zone they begin, as in zone='Europe/Berlin'
    """
    if isinstance(value, np.timedelta64):
        units = [_NUMPY_UNITS.get(np.datetime_data(value.dtype)[0])]
    else:
        words = re.findall(r"[a-z]+", value.lower()) if isinstance(value, str) else []
        units = [CALENDAR_WORDS.get(word) for word in words]
    unit = next((unit for unit in units if unit in ("month", "quarter", "year")), None)
    if unit is not None:
        raise QueryError(
            f"`{name}` is in {unit}s, which are not all equally long; got {shown(value)}; say in which time zone they "
            "begin, as in zone='Europe/Berlin'",
            parameter=name,
        )


def _got(value: object) -> str:
    return str(value) if hasattr(value, "measure") else shown(value)
