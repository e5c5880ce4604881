"""Conditions as SQL: what Spark must compute so that a row meets a condition there exactly when it does in process.

The tree of a condition becomes the text of a Spark expression, with every conversion spelled out, so that neither the
session's settings (ANSI mode, decimal rules, string literals), nor collations, nor Spark's own idea of common types
play a part. What cannot be written exactly is not written: :class:`UntranslatableError` gives the reason.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slicewise.conditions.expression import Expression
from slicewise.conditions.parsing import Literal, Name, Tree, parse

__all__ = ["UntranslatableError", "condition_sql", "text_literal"]

#: What Spark's decimals hold.
DIGITS = 38
LONG = 2**63
_PLAIN_TEXT = re.compile(r"[\w .,:;@#+/-]*", re.ASCII)


class UntranslatableError(Exception):
    """A condition that only Python computes exactly; the message names the part."""


@dataclass(frozen=True)
class _Typed:
    """The text of an expression and what it gives.

    ``most`` is the largest absolute value of integers, which are BIGINT or smaller where ``long``, else DECIMAL(38, 0);
    ``digits`` and ``scale`` are those of decimals.
    """

    text: str
    kind: str
    most: int = 0
    long: bool = True
    digits: int = 0
    scale: int = 0
    type: pa.DataType | None = None


def condition_sql(condition: str, types: Mapping[str, pa.DataType], named: Callable[[str], str]) -> str:
    """A Spark expression that is true for the rows that meet a condition, and false for all others.

    Parameters
    ----------
    named
        What a column is called in Spark's SQL.

    Examples
    --------
    >>> condition_sql("price < 10 and kind = 'a'", {"price": pa.int32(), "kind": pa.string()}, str)
    "coalesce(((price < CAST(10 AS BIGINT)) AND (CAST(kind AS STRING) = 'a')), false)"
    """
    if isinstance(condition, Expression):  # a column like any other, computed before
        return f"coalesce({named(condition)}, false)"
    translated = _Translation(types, named).of(parse(condition))
    if translated.kind not in ("boolean", "null"):
        raise UntranslatableError(f"{condition!r} is neither true nor false")
    return f"coalesce({translated.text}, false)"


class _Translation:
    def __init__(self, types: Mapping[str, pa.DataType], named: Callable[[str], str]) -> None:
        self.types, self.named = types, named

    def of(self, tree: Tree) -> _Typed:
        if isinstance(tree, Literal):
            return _literal(tree.value)
        if isinstance(tree, Name):
            return _column(self.named(tree.name), self.types[tree.name])
        operands = [self.of(operand) for operand in tree.operands]
        if tree.op == "neg":
            return _calculate("-", _literal(0), operands[0])
        if tree.op == "is null":
            return _Typed(f"({operands[0].text} IS NULL)", "boolean")
        if tree.op in ("and", "or", "not"):
            return _logic(tree.op, operands)
        if tree.op == "in":
            return _logic("or", [_compare("==", operands[0], other) for other in operands[1:]])
        if tree.op in ("==", "!=", "<", "<=", ">", ">="):
            return _compare(tree.op, operands[0], operands[1])
        return _calculate(tree.op, operands[0], operands[1])


_NULL = _Typed("CAST(NULL AS BOOLEAN)", "null")


def _literal(value: Any) -> _Typed:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _Typed(str(value).lower(), "boolean")
    if isinstance(value, str):
        return _Typed(text_literal(value), "text")
    if isinstance(value, int):
        return _integer(str(value), most=abs(value), long=abs(value) < LONG)
    if isinstance(value, float):
        return _Typed(f"CAST('{value!r}' AS DOUBLE)", "float")
    _, figures, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    digits = max(len(figures) + max(int(exponent), 0), scale)
    return _Typed(f"CAST('{value:f}' AS {_decimal_type(digits, scale)})", "decimal", digits=digits, scale=scale)


def text_literal(value: str) -> str:
    """A text in Spark's SQL; one that a parser's settings might read otherwise is spelled in bytes."""
    plain = _PLAIN_TEXT.fullmatch(value)
    return f"'{value}'" if plain else f"CAST(X'{value.encode().hex()}' AS STRING)"


def _column(text: str, type_: pa.DataType) -> _Typed:
    t = pa.types
    if t.is_null(type_):
        return _NULL
    if t.is_boolean(type_):
        return _Typed(text, "boolean")
    if t.is_integer(type_):
        return _Typed(text, "integer", most=2 ** (type_.bit_width - 1))
    if t.is_floating(type_):
        return _Typed(text if t.is_float64(type_) else f"CAST({text} AS DOUBLE)", "float")
    if t.is_decimal(type_):
        return _Typed(text, "decimal", digits=type_.precision, scale=type_.scale)
    if t.is_string(type_):
        return _Typed(_cast(text, "STRING"), "text")  # whatever the column's collation, compared as bytes
    kinds = {"timestamp": t.is_timestamp, "date": t.is_date, "duration": t.is_duration, "bytes": t.is_binary}
    kind = next((kind for kind, is_it in kinds.items() if is_it(type_)), str(type_))
    return _Typed(text, kind, type=type_)


def _logic(op: str, operands: list[_Typed]) -> _Typed:
    for operand in operands:
        if operand.kind not in ("boolean", "null"):
            raise UntranslatableError(f"{operand.text} is neither true nor false")
    if op == "not":
        return _Typed(f"(NOT {operands[0].text})", "boolean")
    texts = [operand.text for operand in operands]
    while len(texts) > 1:  # in pairs: a long list must not become a deep tree
        texts = [f"({f' {op.upper()} '.join(texts[i : i + 2])})" for i in range(0, len(texts), 2)]
    return _Typed(texts[0], "boolean")


_NUMBERS = ("integer", "decimal", "float")


def _compare(sign: str, a: _Typed, b: _Typed) -> _Typed:
    if "null" in (a.kind, b.kind):
        return _Typed(_NULL.text, "boolean")
    if a.kind in _NUMBERS and b.kind in _NUMBERS:
        a, b = _alike(a, b)
    elif a.kind != b.kind or a.kind not in _COMPARED or (a.kind == "timestamp" and a.type != b.type):
        raise UntranslatableError(f"{a.text} and {b.text} are not of one kind")
    return _Typed(f"({a.text} {'=' if sign == '==' else sign} {b.text})", "boolean")


_COMPARED = ("text", "bytes", "boolean", "timestamp", "date", "duration")


def _calculate(sign: str, a: _Typed, b: _Typed) -> _Typed:
    if "null" in (a.kind, b.kind):
        return _NULL
    if a.kind not in _NUMBERS or b.kind not in _NUMBERS:
        raise UntranslatableError(f"{a.text} {sign} {b.text} does not calculate with numbers")
    if sign == "/" and a.kind == b.kind == "integer":
        a, b = _double(a), _double(b)
    if "float" in (a.kind, b.kind):
        a, b = _double(a), _double(b)
        return _Typed(_guarded(sign, a, b), "float")
    if "decimal" in (a.kind, b.kind):
        return _decimals(sign, _as_decimal(a), _as_decimal(b))
    most = {"*": a.most * b.most, "%": min(a.most, b.most)}.get(sign, a.most + b.most)
    long = a.long and b.long and (sign == "%" or most < LONG)
    x, y = (_integer(v.text, v.most, long) for v in (a, b))
    return _integer(_guarded(sign, x, y), most, long)


def _decimals(sign: str, a: _Typed, b: _Typed) -> _Typed:
    """Spark's own types of results; within 38 digits nothing is rounded."""
    if sign == "/":
        raise UntranslatableError(f"the division of the decimals {a.text} and {b.text} is rounded")
    whole, scale = max(a.digits - a.scale, b.digits - b.scale), max(a.scale, b.scale)
    digits = whole + scale + 1
    if sign == "*":
        digits, scale = a.digits + b.digits + 1, a.scale + b.scale
    _decimal_type(digits, scale)
    text = _guarded(sign, a, b)
    return _Typed(_cast(text, _decimal_type(digits, scale)), "decimal", digits=digits, scale=scale)


def _guarded(sign: str, a: _Typed, b: _Typed) -> str:
    text = f"({a.text} {sign} {b.text})"
    return f"CASE WHEN {b.text} <> 0 THEN {text} END" if sign in "/%" else text


def _alike(a: _Typed, b: _Typed) -> tuple[_Typed, _Typed]:
    """Two numbers as one kind: doubles if one is floating, else decimals, else integers."""
    if "float" in (a.kind, b.kind):
        return _double(a), _double(b)
    if a.kind != b.kind:
        a, b = _as_decimal(a), _as_decimal(b)
    if a.kind == "decimal":
        # Both must fit one type without losing digits.
        scale = max(a.scale, b.scale)
        _decimal_type(max(a.digits - a.scale, b.digits - b.scale) + scale, scale)
    return a, b


def _double(a: _Typed) -> _Typed:
    return a if a.kind == "float" else _Typed(_cast(a.text, "DOUBLE"), "float")


def _as_decimal(a: _Typed) -> _Typed:
    if a.kind == "decimal":
        return a
    digits = len(str(a.most))
    return _Typed(_cast(a.text, _decimal_type(digits, 0)), "decimal", digits=digits)


def _cast(text: str, type_: str) -> str:
    return f"CAST({text} AS {type_})"


def _integer(text: str, most: int, long: bool) -> _Typed:
    if most >= 10**DIGITS:
        raise UntranslatableError(f"integers as large as {decimal.Decimal(most):.3e} do not fit any Spark type")
    return _Typed(_cast(text, "BIGINT" if long else f"DECIMAL({DIGITS}, 0)"), "integer", most, long)


def _decimal_type(digits: int, scale: int) -> str:
    if digits > DIGITS:
        raise UntranslatableError(f"decimals of {digits} digits do not fit any Spark type")
    return f"DECIMAL({digits}, {scale})"
