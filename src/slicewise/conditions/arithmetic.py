"""Arithmetic: the numbers of expressions on arrays, with Spark's rounding, and where a result leaves its type.

Integers of every length are int64 here and floats of both kinds float64, as in columns; decimals are Python's integers,
unscaled. Used by ``computed``.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = [
    "calculated",
    "compared",
    "each",
    "floored",
    "half_up",
    "magnitude",
    "of_doubles",
    "out_of_range",
    "rounded",
    "to_float32",
]

_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_INT64 = 2**63


def each(function: Callable[..., Any], valid: Any, *arrays: Any, filler: Any = 0) -> np.ndarray:
    """A function of Python values, where they are not null."""
    valid, *inputs = np.broadcast_arrays(valid, *arrays)
    out = np.full(valid.size, filler, object)
    places = np.flatnonzero(valid)
    rows = zip(*(array.reshape(-1)[places].tolist() for array in inputs), strict=True)
    for place, row in zip(places.tolist(), rows, strict=True):
        out[place] = function(*row)
    return out.reshape(valid.shape)


def compared(sign: str, x: Any, y: Any, valid: Any) -> Any:
    """Whether values of one type compare so: NaN equals NaN and is larger than all others."""
    if x.dtype == object or y.dtype == object:
        return each(_SIGNS[sign], valid, x, y, filler=False).astype(bool)
    holds = _SIGNS[sign](x, y)
    if x.dtype.kind == "f":
        x_nan, y_nan = np.isnan(x), np.isnan(y)
        if x_nan.any() or y_nan.any():
            holds = np.where(x_nan | y_nan, _SIGNS[sign](x_nan.astype(int), y_nan.astype(int)), holds)
    return holds & valid


def calculated(
    sign: str, x: Any, y: Any, valid: Any, types: Sequence[pa.DataType], result: pa.DataType
) -> tuple[Any, Any]:
    """What arithmetic gives, and where it does not fit; the operands have one type, or are decimals."""
    if pa.types.is_decimal(result):
        return _decimals(sign, x, y, valid, types[0].scale, types[1].scale, result)
    if pa.types.is_floating(result):
        single = result == pa.float32()
        x, y = (x.astype(np.float32), y.astype(np.float32)) if single else (x, y)
        out = np.fmod(x, y) if sign == "%" else _SIGNS[sign](x, y)
        return out.astype(np.float64), np.False_
    if sign == "%":
        # The remainders by 1 and by -1 are the same, and the latter overflows; by 0 there is none.
        return np.fmod(x, np.where((y == 0) | (y == -1), 1, y)), np.False_
    out = _SIGNS[sign](x, y)
    if result != pa.int64():
        return out, out_of_range(out, result) & valid
    return out, _wrapped(sign, x, y, out) & valid


def _wrapped(sign: str, x: Any, y: Any, out: Any) -> Any:
    """Where 64-bit arithmetic has wrapped around."""
    if sign == "+":
        return ((x ^ out) & (y ^ out)) < 0
    if sign == "-":
        return ((x ^ y) & (x ^ out)) < 0
    if not out.size or _most(x) * _most(y) < _INT64:
        return np.False_
    exact = np.asarray(x).astype(object) * np.asarray(y).astype(object)
    return np.asarray((exact >= _INT64) | (exact < -_INT64), bool)


def _most(whole: Any) -> int:
    return max(-int(whole.min()), int(whole.max())) if whole.size else 0


def out_of_range(values: Any, type_: pa.DataType) -> Any:
    """Where integers do not fit their type."""
    if not pa.types.is_integer(type_):
        return np.False_
    limit = 2 ** (type_.bit_width - 1)
    if limit == _INT64:
        return np.False_
    return (values < -limit) | (values >= limit)


def _decimals(
    sign: str, x: Any, y: Any, valid: Any, x_scale: int, y_scale: int, result: pa.DataType
) -> tuple[Any, Any]:
    """Exact, then rounded half up to the scale of the result."""
    scale, limit = result.scale, 10**result.precision
    common = max(x_scale, y_scale)
    x_up, y_up = 10 ** (common - x_scale), 10 ** (common - y_scale)

    def compute(a: int, b: int) -> int:
        if sign == "/":
            return half_up(a * 10 ** (scale + y_scale), b * 10**x_scale)
        if sign == "*":
            return _at_scale(a * b, x_scale + y_scale, scale)
        a, b = a * x_up, b * y_up
        if sign == "%":
            rest = abs(a) % abs(b)
            return _at_scale(-rest if a < 0 else rest, common, scale)
        return _at_scale(a + b if sign == "+" else a - b, common, scale)

    out = each(compute, valid, x, y)
    return out, np.asarray((out >= limit) | (out <= -limit), bool) & valid


def _at_scale(unscaled: int, scale: int, target: int) -> int:
    return unscaled * 10 ** (target - scale) if target >= scale else half_up(unscaled, 10 ** (scale - target))


def half_up(a: int, b: int) -> int:
    """``a / b`` as the nearest integer; a half goes away from zero.

    >>> half_up(5, 2), half_up(-5, 2), half_up(-7, 3)
    (3, -3, -2)
    """
    quotient = (2 * abs(a) + abs(b)) // (2 * abs(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def magnitude(op: str, values: Any) -> Any:
    """``abs`` or ``neg``."""
    return np.asarray(-values if op == "neg" else abs(values), values.dtype)


def of_doubles(op: str, *arguments: Any) -> tuple[Any, Any]:
    """A function of doubles, and where it is defined: there are no logarithms of what is not positive."""
    x = arguments[0]
    if op in ("ln", "log10"):
        return (np.log if op == "ln" else np.log10)(np.where(x <= 0, 1.0, x)), ~(x <= 0)
    if op == "pow":
        y = arguments[1]
        # As in Java: one to the power of what is no number is no number.
        unclear = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
        return np.where(unclear, np.nan, np.power(x, y)), np.True_
    return getattr(np, op)(x), np.True_


def floored(op: str, values: Any, valid: Any, type_: pa.DataType) -> tuple[Any, Any]:
    """``floor`` or ``ceil`` as integers, and where doubles leave 64 bits, as infinities and NaN do."""
    if pa.types.is_decimal(type_):
        unit = 10**type_.scale
        whole = each((lambda v: v // unit) if op == "floor" else (lambda v: -(-v // unit)), valid, values)
        return whole, np.False_
    whole = np.floor(values) if op == "floor" else np.ceil(values)
    inside = (whole >= -(2.0**63)) & (whole < 2.0**63)
    return np.where(inside, whole, 0).astype(np.int64), ~inside & valid


def rounded(values: Any, valid: Any, type_: pa.DataType, result: pa.DataType, places: int) -> tuple[Any, Any]:
    """Numbers rounded half up to so many places, and where they do not fit."""
    if pa.types.is_decimal(type_):
        out = each(lambda v: _rounded_decimal(v, type_.scale, result.scale, places), valid, values)
        wrong = np.asarray(abs(out) >= 10**result.precision, bool)
        return np.where(wrong, 0, out), wrong
    if pa.types.is_floating(type_):
        return _rounded_floats(values, valid, type_, places), np.False_
    if places >= 0:
        return values, np.False_
    unit = 10**-places
    exact = each(lambda v: half_up(v, unit) * unit, valid, values)
    limit = 2 ** (type_.bit_width - 1)
    wrong = np.asarray((exact >= limit) | (exact < -limit), bool)
    return np.where(wrong, 0, exact).astype(np.int64), wrong


def _rounded_decimal(unscaled: int, scale: int, target: int, places: int) -> int:
    if places < 0:
        unit = 10**-places
        return int(half_up(unscaled, 10**scale * unit) * unit)
    return _at_scale(unscaled, scale, target)


def _rounded_floats(values: Any, valid: Any, type_: pa.DataType, places: int) -> Any:
    if places == 0:
        whole = np.trunc(values)
        up = np.abs(values - whole) >= 0.5  # of infinities NaN, which is not
        return whole + np.where(up, np.sign(values), 0.0) + 0.0  # here neither
    unit = decimal.Decimal(1).scaleb(-places)

    def compute(v: float) -> float:
        if not np.isfinite(v):
            return v
        # As the digits that are shown, not as the double that they stand for; a float is widened first, as in Spark.
        digits = decimal.Decimal(repr(v))
        if -digits.as_tuple().exponent <= places:  # type: ignore[operator]
            return v + 0.0
        with decimal.localcontext(decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)):
            return float(digits.quantize(unit)) + 0.0  # there is no -0.0 among decimals

    out = each(compute, valid, values, filler=0.0).astype(np.float64)
    return to_float32(out) if type_ == pa.float32() else out


def to_float32(values: Any) -> Any:
    """Doubles, rounded to what 32 bits hold."""
    return values.astype(np.float32).astype(np.float64)
