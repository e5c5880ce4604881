"""Expressions by definition: the value of a computed column in one row, over plain Python values. Read by the oracle.

Of the engine it shares the parser and the types of nodes, which the tests compare with Spark's; the values are worked
out here a second time: integers without a limit and then checked, decimals as exact fractions and then rounded.
"""

from __future__ import annotations

import datetime
import decimal
import math
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.conditions.expression import Expression
from slicewise.conditions.typed import Typed, typed
from slicewise.slicing.intake.input import value_in

__all__ = ["OutOfTypeError", "computed_row", "expression_value", "given_columns", "is_meant"]

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
}


class OutOfTypeError(ArithmeticError):
    """A number leaves the type that it has in an expression."""


def computed_row(columns: Any, row: Mapping[str, Any], types: Mapping[str, pa.DataType] | None = None) -> Any:
    """A row with the computed ones among these columns."""
    computed = [c for c in columns if isinstance(c, Expression)]
    return {**row, **{c: expression_value(c, row, types) for c in computed}} if computed else row


def given_columns(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row as it came, without computed columns."""
    return {name: value for name, value in row.items() if not isinstance(name, Expression)}


def is_meant(where: Expression | None, row: Mapping[str, Any], types: Mapping[str, pa.DataType] | None = None) -> bool:
    """Whether a row meets the filter of a workload."""
    return where is None or expression_value(where, row, types) is True


def expression_value(
    expression: Expression, row: Mapping[str, Any], types: Mapping[str, pa.DataType] | None = None
) -> Any:
    """The value of an expression in one row, None for null.

    Examples
    --------
    >>> expression_value(Expression("case when a > 2 then a * b end"), {"a": 3, "b": 0.5})
    1.5
    """
    values = {name: value_in(row, name) for name in expression.names}
    known = {n: (types or {}).get(n) or Column.of([v]).type for n, v in values.items()}
    return _value(typed(expression.text, known, repr(expression)), values)


def _value(node: Typed, row: Mapping[str, Any]) -> Any:
    if node.op == "column":
        value = row[node.value]
        return value.item() if isinstance(value, np.generic) else value
    if node.op == "literal":
        return node.value
    if node.op in _LAZY:
        return _LAZY[node.op](node, row)
    operands = [_value(operand, row) for operand in node.operands]
    if node.op == "is null":
        return operands[0] is None
    if node.op in ("least", "greatest"):
        return _extreme(node.op, [v for v in operands if v is not None])
    if None in operands:
        return None
    return _EAGER[node.op](node, *operands)


def _and(node: Typed, row: Mapping[str, Any]) -> bool | None:
    values = []
    for operand in node.operands:
        values.append(_value(operand, row))
        if values[-1] is False:
            return False
    return None if None in values else True


def _or(node: Typed, row: Mapping[str, Any]) -> bool | None:
    values = []
    for operand in node.operands:
        values.append(_value(operand, row))
        if values[-1] is True:
            return True
    return None if None in values else False


def _case(node: Typed, row: Mapping[str, Any]) -> Any:
    for condition, value in zip(node.operands[:-1:2], node.operands[1::2], strict=True):
        if _value(condition, row) is True:
            return _value(value, row)
    return _value(node.operands[-1], row)


def _coalesce(node: Typed, row: Mapping[str, Any]) -> Any:
    return next((v for v in (_value(operand, row) for operand in node.operands) if v is not None), None)


def _order(value: Any) -> Any:
    """NaN is larger than every other number, and equal to itself."""
    return (value != value, 0 if value != value else value) if isinstance(value, float) else value


def _extreme(op: str, values: list[Any]) -> Any:
    return (min if op == "least" else max)(values, key=_order, default=None)


def _compare(node: Typed, a: Any, b: Any) -> bool:
    return bool(_SIGNS[node.op](_order(a), _order(b)))


def _checked(value: Any, type_: pa.DataType) -> Any:
    """A number of its type, or an error."""
    t = pa.types
    if t.is_integer(type_):
        if not -(2 ** (type_.bit_width - 1)) <= value < 2 ** (type_.bit_width - 1):
            raise OutOfTypeError(f"{value} does not fit {type_}")
        return int(value)
    if t.is_decimal(type_):
        unscaled = _half_up(Fraction(value) * 10**type_.scale)
        if abs(unscaled) >= 10**type_.precision:
            raise OutOfTypeError(f"{value} does not fit {type_}")
        return decimal.Decimal(unscaled).scaleb(-type_.scale, decimal.Context(prec=100))
    return float(np.float32(value)) if type_ == pa.float32() else float(value)


def _half_up(value: Fraction) -> int:
    whole = math.floor(abs(value) + Fraction(1, 2))
    return -whole if value < 0 else whole


def _calculate(node: Typed, a: Any, b: Any) -> Any:
    if pa.types.is_floating(node.type):
        if node.op in "/%" and b == 0:
            return None
        with np.errstate(all="ignore"):
            kind = np.float32 if node.type == pa.float32() else np.float64
            function: Any = {"/": np.divide, "%": np.fmod, **_SIGNS}[node.op]
            return float(function(kind(a), kind(b)))
    a, b = Fraction(a), Fraction(b)
    if node.op in "/%" and b == 0:
        return None
    if node.op == "%":
        return _checked(a - b * math.trunc(a / b), node.type)
    return _checked(a / b if node.op == "/" else _SIGNS[node.op](a, b), node.type)


def _signed(node: Typed, a: Any) -> Any:
    value = -a if node.op == "neg" else abs(a)
    return value if isinstance(a, float) else _checked(value, node.type)


def _of_double(node: Typed, *arguments: float) -> float | None:
    if node.op in ("ln", "log10") and arguments[0] <= 0:
        return None
    if node.op == "pow" and (math.isnan(arguments[1]) or (abs(arguments[0]) == 1 and math.isinf(arguments[1]))):
        return math.nan
    names = {"ln": "log", "pow": "power"}
    with np.errstate(all="ignore"):
        return float(getattr(np, names.get(node.op, node.op))(*map(np.float64, arguments)))


def _whole(node: Typed, a: Any) -> Any:
    if isinstance(a, float) and not math.isfinite(a):
        raise OutOfTypeError(f"{a} is no integer")
    return _checked((math.floor if node.op == "floor" else math.ceil)(a), node.type)


def _round(node: Typed, a: Any) -> Any:
    if isinstance(a, float) and not math.isfinite(a):
        return a
    exact = Fraction(repr(a)) if isinstance(a, float) else Fraction(a)
    rounded = Fraction(_half_up(exact * Fraction(10) ** node.value)) / Fraction(10) ** node.value
    return _checked(float(rounded) if isinstance(a, float) else rounded, node.type)


def _widen(node: Typed, a: Any) -> Any:
    try:
        return _checked(a, node.type) if isinstance(a, (int, float, decimal.Decimal)) else a
    except OutOfTypeError:
        return None


def _cast(node: Typed, a: Any) -> Any:
    t, to = pa.types, node.type
    if t.is_string(to):
        return _shown(a, node.operands[0].type)
    if isinstance(a, str):
        return _read(a.strip(), to)
    if t.is_boolean(to):
        return a != 0
    if isinstance(a, (datetime.date, datetime.datetime)) or t.is_timestamp(to) or t.is_date(to):
        raise NotImplementedError(f"the oracle has no definition of a cast from {node.operands[0].type} to {to}")
    if t.is_floating(to):
        return _checked(a, to)
    if isinstance(a, float) and not math.isfinite(a):
        return None
    if a == 2.0**63 and isinstance(a, float) and to == pa.int64():
        return 2**63 - 1  # Spark's largest bigint, as a double
    if isinstance(a, float) and t.is_decimal(to):
        a = Fraction(repr(a))
    return _widen(node, int(a) if t.is_integer(to) else decimal_of(a, to))


def decimal_of(a: Any, to: pa.DataType) -> Any:
    """A number as a decimal of a type, None where it does not fit."""
    try:
        return _checked(a, to)
    except OutOfTypeError:
        return None


def _shown(a: Any, type_: pa.DataType) -> str:
    if isinstance(a, bool):
        return str(a).lower()
    if isinstance(a, float):
        raise NotImplementedError("the oracle does not write floats as Java does")
    return f"{a:f}" if isinstance(a, decimal.Decimal) else str(a)


def _read(text: str, to: pa.DataType) -> Any:
    t = pa.types
    if t.is_boolean(to):
        words = {**dict.fromkeys(("t", "true", "y", "yes", "1"), True), **dict.fromkeys(("f", "false", "n", "no", "0"))}
        known = words.get(text.lower(), "neither")
        return None if known == "neither" else bool(known)
    if t.is_integer(to):
        return _widen(Typed("widen", to), int(text)) if re.fullmatch(r"[+-]?[0-9]+", text) else None
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    return float(text) if t.is_floating(to) else decimal_of(Fraction(text), to)


_LAZY: dict[str, Callable[[Typed, Mapping[str, Any]], Any]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
}
_EAGER: dict[str, Callable[..., Any]] = {
    "not": lambda _node, a: not a,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _compare),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _calculate),
    **dict.fromkeys(("neg", "abs"), _signed),
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "sin", "cos", "tan", "pow"), _of_double),
    **dict.fromkeys(("floor", "ceil"), _whole),
    "round": _round,
    "widen": _widen,
    "cast": _cast,
}
