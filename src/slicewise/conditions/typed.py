"""Typed expressions: a tree whose every node has a type, with all conversions in it. Spark's rules, spelled out once.

Between parsing and whoever computes: NumPy (``computed``) or the JVM (``plan/expression_sql``). Operands of a
comparison or of a sum have one type, because conversions have become nodes of their own, so neither has rules of its
own to get wrong.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from slicewise.columns import type_name
from slicewise.conditions.parsing import Literal, Name, Node, Tree, parse, point_at
from slicewise.errors import DataError, did_you_mean

__all__ = ["Typed", "check_names", "is_number", "typed"]

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
#: How many digits a decimal needs to hold every integer of a type.
_DIGITS = {1: 3, 2: 5, 4: 10, 8: 20}
_MOST_DIGITS = 38
_LEAST_SCALE = 6
_NULL = pa.null()
_DOUBLE, _FLOAT, _BOOLEAN = pa.float64(), pa.float32(), pa.bool_()
_OF_DOUBLES = ("sqrt", "exp", "ln", "log10", "sin", "cos", "tan", "pow")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, eq=False)
class Typed:
    """A node with its type.

    ``value`` is that of a literal, or the name of a column. ``widen`` is a conversion to a type that holds every value,
    ``cast`` one that the user wrote, which gives null where it fails.
    """

    op: str
    type: pa.DataType
    operands: tuple[Typed, ...] = ()
    at: int = 0
    value: Any = None


def is_number(type_: pa.DataType) -> bool:
    """Whether one can calculate with values of this type."""
    return type_ in INTEGERS or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def check_names(text: str, known: Mapping[str, Any] | Sequence[str], subject: str) -> None:
    """Refuse an expression that reads a column that is not there; the error shows where in the text."""
    for name in _names(parse(text)):
        if name.name not in known:
            raise DataError(
                f"{subject} reads a column {name.name!r} that the rows do not have; got\n"
                f"{point_at(text, name.at)}\n{did_you_mean(name.name, known)}"
            )


def _names(tree: Tree) -> list[Name]:
    if isinstance(tree, Node):
        return [name for operand in tree.operands for name in _names(operand)]
    return [tree] if isinstance(tree, Name) else []


def typed(text: str, types: Mapping[str, pa.DataType], subject: str) -> Typed:
    """An expression over columns of these types; errors begin with ``subject``.

    Examples
    --------
    >>> product = typed("price * 1.25", {"price": pa.decimal128(10, 2)}, "`expr`")
    >>> product.type
    Decimal128Type(decimal128(14, 4))
    >>> typed("name + 1", {"name": pa.string()}, "`expr`")
    Traceback (most recent call last):
    slicewise.errors.DataError: `expr` calculates with string; got
        name + 1
             ^
    calculate with numbers only
    """
    return _Typing(text, types, subject).of(parse(text))


class _Typing:
    def __init__(self, text: str, types: Mapping[str, pa.DataType], subject: str) -> None:
        self.text, self.types, self.subject = text, types, subject

    def of(self, tree: Tree) -> Typed:
        if isinstance(tree, Literal):
            return _literal(tree.value, tree.at)
        if isinstance(tree, Name):
            return Typed("column", _known(self.types[tree.name]), (), tree.at, tree.name)
        operands = [self.of(operand) for operand in tree.operands]
        for ops, method in self._methods():
            if tree.op in ops:
                return method(tree, operands)
        raise AssertionError(tree.op)

    def _methods(self) -> tuple[tuple[tuple[str, ...], Callable[[Node, list[Typed]], Typed]], ...]:
        return (
            (("is null",), self._is_null),
            (("and", "or", "not"), self._logic),
            (("in",), self._in),
            (_COMPARISONS, self._compare),
            (("+", "-", "*", "/", "%"), self._calculate),
            (("neg", "abs"), self._signed),
            (_OF_DOUBLES, self._of_doubles),
            (("floor", "ceil"), self._whole),
            (("round",), self._round),
            (("case",), self._case),
            (("coalesce", "least", "greatest"), self._choice),
            (("cast",), self._cast),
        )

    def _refuse(self, what: str, at: int, instead: str) -> NoReturn:
        raise DataError(f"{self.subject} {what}; got\n{point_at(self.text, at)}\n{instead}")

    # Truth

    def _is_null(self, tree: Node, operands: list[Typed]) -> Typed:
        return Typed("is null", _BOOLEAN, tuple(operands), tree.at)

    def _logic(self, tree: Node, operands: list[Typed]) -> Typed:
        return Typed(tree.op, _BOOLEAN, tuple(self._truth(operand) for operand in operands), tree.at)

    def _truth(self, operand: Typed) -> Typed:
        if operand.type not in (_BOOLEAN, _NULL):
            what = f"has {type_name(operand.type)} where true or false should be"
            self._refuse(what, operand.at, "compare it with something")
        return converted(operand, _BOOLEAN)

    def _in(self, tree: Node, operands: list[Typed]) -> Typed:
        equal = tuple(self._compared("==", operands[0], other, tree.at) for other in operands[1:])
        return equal[0] if len(equal) == 1 else Typed("or", _BOOLEAN, equal, tree.at)

    def _compare(self, tree: Node, operands: list[Typed]) -> Typed:
        return self._compared(tree.op, operands[0], operands[1], tree.at)

    def _compared(self, sign: str, a: Typed, b: Typed, at: int) -> Typed:
        common = common_type(a.type, b.type)
        if common is None or not (is_number(common) or common == _NULL or _is_comparable(common)):
            what = f"compares {type_name(a.type)} with {type_name(b.type)}"
            self._refuse(what, at, "compare values of one kind: numbers with numbers, text with text")
        return Typed(sign, _BOOLEAN, (converted(a, common), converted(b, common)), at)

    # Numbers

    def _numbers(self, operands: list[Typed], at: int) -> None:
        for operand in operands:
            if operand.type != _NULL and not is_number(operand.type):
                self._refuse(f"calculates with {type_name(operand.type)}", at, "calculate with numbers only")

    def _calculate(self, tree: Node, operands: list[Typed]) -> Typed:
        self._numbers(operands, tree.at)
        a, b = operands
        if _NULL in (a.type, b.type):
            other = b.type if a.type == _NULL else a.type
            a, b = (converted(v, _DOUBLE if other == _NULL else other) for v in (a, b))
        floats = pa.types.is_floating(a.type) or pa.types.is_floating(b.type)
        if not floats and (pa.types.is_decimal(a.type) or pa.types.is_decimal(b.type)):
            a, b = (_as_decimal(v) for v in (a, b))
            return Typed(tree.op, decimal_result(tree.op, a.type, b.type), (a, b), tree.at)
        common = common_type(a.type, b.type)
        if common is None or pa.types.is_decimal(common):
            common = _DOUBLE
        if tree.op == "/":
            common = _DOUBLE  # also of integers and of floats
        return Typed(tree.op, common, (converted(a, common), converted(b, common)), tree.at)

    def _signed(self, tree: Node, operands: list[Typed]) -> Typed:
        self._numbers(operands, tree.at)
        (a,) = operands
        return Typed(tree.op, a.type, (a,), tree.at) if a.type != _NULL else converted(a, _DOUBLE)

    def _of_doubles(self, tree: Node, operands: list[Typed]) -> Typed:
        self._numbers(operands, tree.at)
        return Typed(tree.op, _DOUBLE, tuple(converted(v, _DOUBLE) for v in operands), tree.at)

    def _whole(self, tree: Node, operands: list[Typed]) -> Typed:
        self._numbers(operands, tree.at)
        (a,) = operands
        if pa.types.is_decimal(a.type):
            digits = a.type.precision - a.type.scale + 1
            return Typed(tree.op, pa.decimal128(digits if a.type.scale else a.type.precision, 0), (a,), tree.at)
        if a.type in INTEGERS:
            return converted(a, pa.int64())
        return Typed(tree.op, pa.int64(), (converted(a, _DOUBLE),), tree.at)

    def _round(self, tree: Node, operands: list[Typed]) -> Typed:
        self._numbers(operands[:1], tree.at)
        a, places = operands[0], 0
        if len(operands) == 2:
            literal = operands[1]
            if literal.op != "literal" or not isinstance(literal.value, int) or abs(literal.value) > _MOST_DIGITS:
                self._refuse(
                    "rounds to a number of places that is no whole number", literal.at, "write it: round(v, 2)"
                )
            places = literal.value
        if a.type == _NULL:
            return converted(a, _DOUBLE)
        return Typed("round", rounded_type(a.type, places), (a,), tree.at, places)

    # Choices

    def _case(self, tree: Node, operands: list[Typed]) -> Typed:
        conditions = [self._truth(condition) for condition in operands[:-1:2]]
        values = self._alike([*operands[1::2], operands[-1]], tree.at)
        pairs = [v for pair in zip(conditions, values[:-1], strict=True) for v in pair]
        return Typed("case", values[0].type, (*pairs, values[-1]), tree.at)

    def _choice(self, tree: Node, operands: list[Typed]) -> Typed:
        values = self._alike(operands, tree.at)
        type_ = values[0].type
        if tree.op != "coalesce" and not (is_number(type_) or type_ == _NULL or _is_comparable(type_)):
            what = f"takes the {tree.op} of {type_name(type_)}"
            self._refuse(what, tree.at, "take it of values that can be compared")
        return Typed(tree.op, type_, tuple(values), tree.at)

    def _alike(self, operands: list[Typed], at: int) -> list[Typed]:
        common: pa.DataType | None = _NULL
        for operand in operands:
            before = common
            common = common_type(common, operand.type)
            if common is None:
                what = f"has {type_name(before)} and {type_name(operand.type)} for one value"
                self._refuse(what, operand.at, "make them one type: cast(... as double)")
        return [converted(operand, common) for operand in operands]

    def _cast(self, tree: Node, operands: list[Typed]) -> Typed:
        (a,) = operands
        assert tree.to is not None
        if a.type == tree.to or a.type == _NULL:
            return converted(a, tree.to)
        if not can_cast(a.type, tree.to):
            what = f"casts {type_name(a.type)} to {type_name(tree.to)}"
            self._refuse(what, tree.at, "there is no such cast")
        return Typed("cast", tree.to, (a,), tree.at)


# Types of values


def _known(type_: pa.DataType) -> pa.DataType:
    """A type as expressions know it: those that Spark does not have as the one that holds them."""
    t = pa.types
    if t.is_unsigned_integer(type_):
        return pa.int64()
    if t.is_dictionary(type_):
        return _known(type_.value_type)
    if t.is_large_string(type_) or t.is_string_view(type_):
        return pa.string()
    if t.is_float16(type_):
        return _FLOAT
    return type_


def _literal(value: Any, at: int) -> Typed:
    if value is None:
        return Typed("literal", _NULL, (), at)
    if isinstance(value, bool):
        type_ = _BOOLEAN
    elif isinstance(value, str):
        type_ = pa.string()
    elif isinstance(value, float):
        type_ = _DOUBLE
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        type_ = pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
    else:
        value = decimal.Decimal(value)
        digits, scale = _digits_of(value)
        type_ = pa.decimal128(digits, scale)
    return Typed("literal", type_, (), at, value)


def _digits_of(value: decimal.Decimal) -> tuple[int, int]:
    _, figures, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    digits = max(len(figures) + max(int(exponent), 0), scale, 1)
    if digits > _MOST_DIGITS:
        raise DataError(f"the number {value} has more than {_MOST_DIGITS} digits; write it with an exponent, 1.5e0")
    return digits, scale


def _is_comparable(type_: pa.DataType) -> bool:
    t = pa.types
    return any(
        is_it(type_)
        for is_it in (t.is_boolean, t.is_string, t.is_timestamp, t.is_date, t.is_binary, t.is_duration, t.is_time)
    )


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both; None where there is none.

    >>> common_type(pa.int32(), pa.float32()), common_type(pa.int8(), pa.decimal128(10, 2))
    (DataType(double), Decimal128Type(decimal128(10, 2)))
    """
    t = pa.types
    if a == b or b == _NULL:
        return a
    if a == _NULL:
        return b
    if not (is_number(a) and is_number(b)):
        return None
    if t.is_floating(a) or t.is_floating(b):
        return _DOUBLE  # also of a float and the shortest integer
    if a in INTEGERS and b in INTEGERS:
        return max(a, b, key=lambda type_: type_.bit_width)
    x, y = (_decimal_of(type_) for type_ in (a, b))
    scale = max(x.scale, y.scale)
    return bounded(max(x.precision - x.scale, y.precision - y.scale) + scale, scale)


def _decimal_of(type_: pa.DataType) -> pa.DataType:
    return type_ if pa.types.is_decimal(type_) else pa.decimal128(_DIGITS[type_.bit_width // 8], 0)


def bounded(digits: int, scale: int) -> pa.DataType:
    """A decimal of so many digits, or as many as there may be, where those before the point come first."""
    if digits <= _MOST_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(_MOST_DIGITS, max(0, _MOST_DIGITS - (digits - scale)))


def _as_decimal(a: Typed) -> Typed:
    """An operand beside a decimal: a whole number that is written out has the digits that are written."""
    if a.type in INTEGERS and a.op == "literal":
        return Typed("literal", pa.decimal128(len(str(abs(a.value))), 0), (), a.at, decimal.Decimal(a.value))
    return converted(a, _decimal_of(a.type))


def decimal_result(sign: str, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """What arithmetic on decimals gives: as many digits as it takes, and 38 where those are more.

    >>> decimal_result("*", pa.decimal128(20, 10), pa.decimal128(20, 10))
    Decimal128Type(decimal128(38, 17))
    """
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    digits = whole + scale + 1
    if sign == "*":
        digits, scale = a.precision + b.precision + 1, a.scale + b.scale
    elif sign == "/":
        scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
        digits = a.precision - a.scale + b.scale + scale
    elif sign == "%":
        digits = min(a.precision - a.scale, b.precision - b.scale) + scale
    if digits <= _MOST_DIGITS:
        return pa.decimal128(digits, scale)
    # Digits before the point come first; at least six stay behind it.
    return pa.decimal128(_MOST_DIGITS, max(_MOST_DIGITS - (digits - scale), min(scale, _LEAST_SCALE)))


def rounded_type(type_: pa.DataType, places: int) -> pa.DataType:
    """The type of a number that is rounded to so many places."""
    if not pa.types.is_decimal(type_):
        return type_
    whole = type_.precision - type_.scale + 1
    if places < 0:
        return pa.decimal128(min(max(whole, 1 - places), _MOST_DIGITS), 0)
    scale = min(type_.scale, places)
    return pa.decimal128(min(whole + scale, _MOST_DIGITS), scale)


def converted(a: Typed, type_: pa.DataType) -> Typed:
    """The same values, of a type that holds them."""
    if a.type == type_:
        return a
    if a.type == _NULL:
        return Typed("literal", type_, (), a.at) if a.op == "literal" else Typed("widen", type_, (a,), a.at)
    return Typed("widen", type_, (a,), a.at)


def can_cast(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether there is a cast from one type to the other: Spark's, with ANSI on."""
    t = pa.types
    text = pa.string()
    number = is_number(a) or a == _BOOLEAN
    if b == text:
        return number or t.is_date(a) or t.is_timestamp(a)
    if a == text:
        return True
    if t.is_timestamp(a):
        return is_number(b) or t.is_date(b) or t.is_timestamp(b)
    if t.is_date(a):
        return bool(t.is_timestamp(b))
    if t.is_timestamp(b):
        return is_number(a)
    return number and (is_number(b) or b == _BOOLEAN)
