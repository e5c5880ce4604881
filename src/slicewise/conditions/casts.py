"""Casts: values of one type as those of another, null where that fails. Spark's ``try_cast``, in UTC.

Text is read as Spark reads it: blanks around it do not matter, and what is no number or date as a whole is null. Used
by ``computed``.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.conditions.arithmetic import each, half_up, to_float32

__all__ = ["cast_values", "shown", "widened_values"]

_DAY = 86_400_000_000
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_BLANKS = "".join(map(chr, range(0x21)))
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?", re.ASCII)
_NOT_FINITE = {"inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DATE = r"(?P<year>\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
_ONLY_DATE = re.compile(_DATE + r"(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    _DATE + r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d*))?)?"
    r"\s*(?P<zone>Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?",
    re.ASCII,
)

Cast = tuple[Any, Any]


def widened_values(values: Any, valid: Any, a: pa.DataType, b: pa.DataType) -> Cast:
    """Values in a type that holds them; decimals may lose digits where 38 are not enough."""
    t = pa.types
    if t.is_null(a):
        return (np.full(np.shape(values), None, object) if not t.is_decimal(b) else _as_objects(values)), valid
    if t.is_decimal(b):
        scale = a.scale if t.is_decimal(a) else 0
        return _to_scale(_as_objects(values), valid, scale, b)
    if t.is_floating(b):
        return _to_double(values, valid, a) if b == pa.float64() else _singles(_to_double(values, valid, a))
    return values, valid


def cast_values(values: Any, valid: Any, a: pa.DataType, b: pa.DataType) -> Cast:
    """Values cast to another type, and where they are not null."""
    t = pa.types
    if t.is_string(b):
        return each(lambda v: shown(v, a), valid, values, filler=None), valid
    if t.is_string(a):
        return _read(values, valid, b)
    if t.is_boolean(b):
        return (values != 0), valid
    if t.is_boolean(a):
        values, a = np.asarray(values).astype(np.int64), pa.int32()
    if t.is_timestamp(b):
        return _to_timestamp(values, valid, a)
    if t.is_date(b):
        return np.floor_divide(values, _DAY), valid
    if t.is_timestamp(a):
        return _from_timestamp(values, valid, b)
    if t.is_decimal(b):
        return _to_decimal(values, valid, a, b)
    if t.is_floating(b):
        if b == pa.float32() and t.is_integer(a):  # rounded once
            return np.asarray(values).astype(np.float32).astype(np.float64), valid
        doubles = _to_double(values, valid, a)
        return doubles if b == pa.float64() else _singles(doubles)
    return _to_integer(values, valid, a, b)


# Numbers


def _as_objects(values: Any) -> Any:
    return np.asarray(values).astype(object)


def _singles(cast: Cast) -> Cast:
    return to_float32(np.asarray(cast[0])), cast[1]


def _to_double(values: Any, valid: Any, a: pa.DataType) -> Cast:
    if not pa.types.is_decimal(a):
        return np.asarray(values).astype(np.float64), valid
    unit = 10**a.scale
    return each(lambda v: v / unit, valid, values, filler=0.0).astype(np.float64), valid


def _to_scale(unscaled: Any, valid: Any, scale: int, b: pa.DataType) -> Cast:
    up = b.scale - scale
    if up >= 0:
        out = each(lambda v: v * 10**up, valid, unscaled)
    else:
        out = each(lambda v: half_up(v, 10**-up), valid, unscaled)
    limit = 10**b.precision
    fits = np.asarray((out < limit) & (out > -limit), bool)
    return np.where(fits, out, 0), valid & fits


def _to_decimal(values: Any, valid: Any, a: pa.DataType, b: pa.DataType) -> Cast:
    if not pa.types.is_floating(a):
        return _to_scale(_as_objects(values), valid, a.scale if pa.types.is_decimal(a) else 0, b)
    # Of a float too the digits of the double that it is: Spark widens it first.
    texts = each(repr, valid & np.isfinite(values), values, filler=None)
    return _parsed(lambda text: _read_decimal(text, b), texts, valid & np.isfinite(values), 0, object)


def _to_integer(values: Any, valid: Any, a: pa.DataType, b: pa.DataType) -> Cast:
    limit = 2 ** (b.bit_width - 1)
    if pa.types.is_decimal(a):
        unit = 10**a.scale
        values = each(lambda v: -(-v // unit) if v < 0 else v // unit, valid, values)
    elif pa.types.is_floating(a):
        values = np.trunc(values)
        fits = (values >= -float(limit)) & (values < float(limit))
        whole = np.where(fits, values, 0).astype(np.int64)
        if limit == 2**63:  # as in Spark, where 2**63 as a double is taken for the largest bigint
            edge = values == float(limit)
            return np.where(edge, limit - 1, whole), valid & (fits | edge)
        return whole, valid & fits
    fits = np.asarray((values >= -limit) & (values < limit), bool)
    return np.where(fits, values, 0).astype(np.int64), valid & fits


# Times


def _to_timestamp(values: Any, valid: Any, a: pa.DataType) -> Cast:
    """Numbers are seconds; a date is its midnight."""
    t = pa.types
    if t.is_date(a):
        return values * _DAY, valid
    if t.is_timestamp(a):
        return values, valid
    if t.is_floating(a):
        micros = np.trunc(values * 1_000_000.0)
        fits = (micros >= -(2.0**63)) & (micros < 2.0**63)
        return np.where(fits, micros, 0).astype(np.int64), valid & fits
    scale = a.scale if t.is_decimal(a) else 0
    exact = each(lambda v: _toward_zero(v * 1_000_000, 10**scale), valid, values)
    fits = np.asarray((exact >= -(2**63)) & (exact < 2**63), bool)
    return np.where(fits, exact, 0).astype(np.int64), valid & fits


def _toward_zero(a: int, b: int) -> int:
    return -(-a // b) if a < 0 else a // b


def _from_timestamp(values: Any, valid: Any, b: pa.DataType) -> Cast:
    """Seconds since the epoch."""
    if pa.types.is_floating(b):
        seconds = np.asarray(values) / 1_000_000.0
        return (seconds, valid) if b == pa.float64() else _singles((seconds, valid))
    if pa.types.is_decimal(b):
        return _to_scale(_as_objects(values), valid, 6, b)
    return _to_integer(np.floor_divide(values, 1_000_000), valid, pa.int64(), b)


# Text


def _read(values: Any, valid: Any, b: pa.DataType) -> Cast:
    t = pa.types
    if t.is_boolean(b):
        return _parsed(_read_boolean, values, valid, False, bool)
    if t.is_decimal(b):
        return _parsed(lambda text: _read_decimal(text, b), values, valid, 0, object)
    if t.is_floating(b):
        doubles = _parsed(_read_float, values, valid, 0.0, np.float64)
        return doubles if b == pa.float64() else _singles(doubles)
    if t.is_date(b):
        return _parsed(_read_date, values, valid, 0, np.int64)
    if t.is_timestamp(b):
        return _parsed(_read_timestamp, values, valid, 0, np.int64)
    limit = 2 ** (b.bit_width - 1)
    return _parsed(lambda text: _read_integer(text, limit), values, valid, 0, np.int64)


def _parsed(read: Callable[[str], Any], values: Any, valid: Any, filler: Any, dtype: Any) -> Cast:
    out = each(read, valid, values, filler=None)
    known = np.reshape(np.array([v is not None for v in out.reshape(-1)], bool), out.shape)
    return np.where(known, out, filler).astype(dtype), valid & known


def _read_boolean(text: str) -> bool | None:
    word = text.strip(_BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _read_integer(text: str, limit: int) -> int | None:
    word = text.strip(_BLANKS)
    if not re.fullmatch(r"[+-]?\d+", word, re.ASCII):
        return None
    number = int(word)
    return number if -limit <= number < limit else None


def _read_float(text: str) -> float | None:
    word = text.strip(_BLANKS)
    if _FLOAT.fullmatch(word):
        return float(word.rstrip("dDfF"))
    if word.lower() == "nan":
        return float("nan")
    name = _NOT_FINITE.get(word.lower())
    return None if name is None else float(name)


def _read_decimal(text: str, b: pa.DataType) -> int | None:
    word = text.strip(_BLANKS)
    if not _DECIMAL.fullmatch(word):
        return None
    with decimal.localcontext(decimal.Context(prec=1000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)):
        number = decimal.Decimal(word)
        if number and number.adjusted() >= b.precision - b.scale:
            return None
        if number and number.adjusted() < -b.scale - 2:
            return 0
        sign, digits, exponent = number.as_tuple()
        unscaled = int("".join(map(str, digits)))
        up = int(exponent) + b.scale
        out = unscaled * 10**up if up >= 0 else half_up(unscaled, 10**-up)
    return None if out >= 10**b.precision else -out if sign else out


def _day_of(match: re.Match[str]) -> int | None:
    year, month, day = (int(match[name] or 1) for name in ("year", "month", "day"))
    try:
        return datetime.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _read_date(text: str) -> int | None:
    match = _ONLY_DATE.fullmatch(text.strip(_BLANKS))
    return None if match is None else _day_of(match)


def _read_timestamp(text: str) -> int | None:
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    day = None if match is None else _day_of(match)
    if match is None or day is None:
        return None
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((match["part"] or "").ljust(6, "0")[:6] or 0)
    return day * _DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros - _zone_micros(match["zone"])


def _zone_micros(zone: str | None) -> int:
    if zone is None or zone[0] not in "+-":
        return 0
    hours, minutes = re.fullmatch(r".(\d{1,2})(?::?(\d{2}))?", zone).groups()  # type: ignore[union-attr]
    minutes_off = int(hours) * 60 + int(minutes or 0)
    return (-minutes_off if zone[0] == "-" else minutes_off) * 60_000_000


def shown(value: Any, type_: pa.DataType) -> str:
    """A value as text.

    >>> shown(150, pa.decimal128(5, 2)), shown(1e10, pa.float64()), shown(True, pa.bool_()), shown(0, pa.date32())
    ('1.50', '1.0E10', 'true', '1970-01-01')
    """
    t = pa.types
    if t.is_boolean(type_):
        return "true" if value else "false"
    if t.is_decimal(type_):
        return f"{decimal.Decimal(int(value)).scaleb(-type_.scale, decimal.Context(prec=100)):f}"
    if t.is_floating(type_):
        return _java_float(_digits(value, np.float32 if type_ == pa.float32() else np.float64))
    if t.is_date(type_):
        return _shown_date(int(value))
    if t.is_timestamp(type_):
        day, rest = divmod(int(value), _DAY)
        seconds, micros = divmod(rest, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{_shown_date(day)} {clock}" + (f".{micros:06}".rstrip("0") if micros else "")
    return str(value)


def _shown_date(day: int) -> str:
    try:
        return datetime.date.fromordinal(day + _EPOCH).isoformat()
    except (ValueError, OverflowError):
        return str(np.datetime64(day, "D"))


def _digits(value: Any, kind: Any) -> str:
    """The fewest digits that stand for a float, or two if that is one: of those, the nearest."""
    two = f"{value:.1e}"
    return two if kind(two) == value else str(kind(value))


def _java_float(text: str) -> str:
    """The digits of a float as Java writes them: with a point, and an exponent below 0.001 and from 10 000 000 on."""
    if text in ("inf", "-inf", "nan"):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text]
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # how many digits stand before it
    minus = "-" if sign else ""
    if figures == "0":
        return f"{minus}0.0"
    if -3 < point <= 7:
        whole = figures[:point].ljust(point, "0") if point > 0 else "0"
        part = figures[point:] if point > 0 else "0" * -point + figures
        return f"{minus}{whole}.{part or '0'}"
    return f"{minus}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
