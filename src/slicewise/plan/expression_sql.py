"""Expressions as SQL: a computed column as Spark must compute it, so that the JVM's answer is ours to the last bit.

A typed expression becomes the text of a Spark expression with every conversion spelled out, so that neither ANSI mode
nor Spark's own idea of common types plays a part. Integers and decimals are added by functions that give null where
they leave their type, and null becomes an error that names the row. What cannot be written exactly is not written:
:class:`~slicewise.plan.condition_sql.UntranslatableError` gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from slicewise.columns import TYPE_NAMES, type_name
from slicewise.conditions.computed import constant
from slicewise.conditions.expression import Expression
from slicewise.conditions.parsing import nodes_in, parse
from slicewise.conditions.typed import INTEGERS, Typed, typed
from slicewise.plan.condition_sql import UntranslatableError, text_literal
from slicewise.plan.decisions import Decision

__all__ = ["expression_sql", "in_the_jvm"]

#: Functions whose last digit depends on who computes them.
_INEXACT = ("exp", "ln", "log10", "pow", "sin", "cos", "tan")
#: A longer text would take Spark longer to read than Python takes to compute it.
_LONGEST = 20_000
_MOST_DIGITS = 38
#: Java's negation of decimals gives at most so many digits.
_DIGITS_WITH_SIGN = 34
_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_DOUBLE, _FLOAT, _TEXT, _BOOLEAN = pa.float64(), pa.float32(), pa.string(), pa.bool_()


def in_the_jvm(columns: Iterable[str], types: Mapping[str, pa.DataType] | None = None) -> Decision:
    """Whether the JVM computes these columns as Python does; without ``types``, as far as that can be told.

    >>> in_the_jvm([Expression("sin(v)")])
    Decision(choice=False, reason="Java and NumPy may differ in the last digit of sin: expr('sin(v)') is computed in \
Python")
    """
    for column in columns:
        if not isinstance(column, Expression):
            continue
        try:
            if types is None:
                _check_functions(column)
            else:
                expression_sql(column, types, str, "''")
        except UntranslatableError as error:
            return Decision(False, f"{error}: {column!r} is computed in Python")
    return Decision(True, "")


def _check_functions(expression: Expression) -> None:
    for node in nodes_in(parse(expression.text)):
        if node.op in _INEXACT:
            raise UntranslatableError(f"Java and NumPy may differ in the last digit of {node.op}")


def expression_sql(
    expression: Expression, types: Mapping[str, pa.DataType], named: Callable[[str], str], row: str
) -> str:
    """A Spark expression with the values of a computed column.

    Parameters
    ----------
    named
        What a column is called in Spark's SQL.
    row
        An expression of a text that says which row it is, for errors.

    Examples
    --------
    >>> expression_sql(Expression("v / 2"), {"v": pa.int32()}, str, "''")
    'try_divide(CAST(v AS DOUBLE), CAST(CAST(2 AS INT) AS DOUBLE))'
    """
    _check_functions(expression)
    return _Translation(expression, named, row).of(typed(expression.text, types, repr(expression)))


class _Translation:
    def __init__(self, expression: Expression, named: Callable[[str], str], row: str) -> None:
        self.expression, self.named, self.row = expression, named, row

    def of(self, node: Typed) -> str:
        text = self._sql_of(node)
        # Checked for each part: some repeat an operand, which would double the text with every level.
        if len(text) > _LONGEST:
            raise UntranslatableError("it is too long for Spark's parser")
        return text

    def _sql_of(self, node: Typed) -> str:
        if node.op == "column":
            return self.named(node.value)
        if node.op == "literal":
            return _literal(node)
        texts = [self.of(operand) for operand in node.operands]
        if node.op in _TRIED:
            return self._calculated(node, texts)
        if node.op in ("and", "or"):
            return _in_pairs(node.op.upper(), texts)
        if node.op in ("==", "!=", "<", "<=", ">", ">="):
            return f"({texts[0]} {'=' if node.op == '==' else node.op} {texts[1]})"
        if node.op in ("coalesce", "least", "greatest", "sqrt"):
            return f"{node.op}({', '.join(texts)})"
        return getattr(self, f"_{node.op.replace(' ', '_')}")(node, texts)  # type: ignore[no-any-return]

    def _not(self, node: Typed, texts: list[str]) -> str:
        return f"(NOT {texts[0]})"

    def _is_null(self, node: Typed, texts: list[str]) -> str:
        return f"({texts[0]} IS NULL)"

    def _case(self, node: Typed, texts: list[str]) -> str:
        pairs = zip(texts[:-1:2], texts[1::2], strict=True)
        branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {branches} ELSE {texts[-1]} END"

    def _calculated(self, node: Typed, texts: list[str]) -> str:
        tried = f"{_TRIED[node.op]}({', '.join(texts)})"
        if pa.types.is_floating(node.type):
            return tried if node.op in "/%" else f"({texts[0]} {node.op} {texts[1]})"
        if node.op == "%":
            return tried
        known = [_known(self, operand) for operand in node.operands]
        known += [f"{texts[1]} <> 0"] if node.op == "/" else []
        return self._or_fail(tried, known, node.type)

    def _or_fail(self, tried: str, known: list[str], type_: pa.DataType) -> str:
        """What was tried; where it is null though nothing in it is, the row is named in an error."""
        wrong = text_literal(
            f": a number does not fit {type_name(type_)}; fix it, or filter such rows out before run()"
        )
        message = f"concat({text_literal(f'{self.expression!r} at ')}, {self.row}, {wrong})"
        failing = f"CAST(raise_error({message}) AS {spark_name(type_)})"
        return f"coalesce({tried}, CASE WHEN {' AND '.join(known)} THEN {failing} END)"

    def _neg(self, node: Typed, texts: list[str]) -> str:
        if pa.types.is_decimal(node.type) and node.type.precision > _DIGITS_WITH_SIGN:
            raise UntranslatableError("Java rounds decimals of more than 34 digits when their sign changes")
        if node.type not in INTEGERS:
            return f"(- {texts[0]})"
        zero = f"CAST(0 AS {spark_name(node.type)})"
        return self._or_fail(f"try_subtract({zero}, {texts[0]})", [_known(self, node.operands[0])], node.type)

    def _abs(self, node: Typed, texts: list[str]) -> str:
        negative = self._neg(node, texts)
        return f"greatest({texts[0]}, {negative})" if node.type in INTEGERS else f"abs({texts[0]})"

    def _floor(self, node: Typed, texts: list[str]) -> str:
        whole = f"{node.op}({texts[0]})"
        if pa.types.is_decimal(node.type):
            return whole
        low, high = (f"CAST('{sign}9223372036854775808' AS DOUBLE)" for sign in ("-", ""))
        inside = f"{texts[0]} >= {low} AND {texts[0]} < {high}"
        return self._or_fail(f"CASE WHEN {inside} THEN {whole} END", [_known(self, node.operands[0])], node.type)

    _ceil = _floor

    def _round(self, node: Typed, texts: list[str]) -> str:
        if pa.types.is_floating(node.type):
            raise UntranslatableError("Java and Python may round the digits of a double differently")
        if node.type in INTEGERS:
            if node.value >= 0:
                return texts[0]
            raise UntranslatableError("whole numbers are rounded in Python")
        if node.value < 0 and node.type.precision == _MOST_DIGITS:
            raise UntranslatableError("38 digits may not hold what is rounded up")
        return f"round({texts[0]}, {node.value})"

    def _widen(self, node: Typed, texts: list[str]) -> str:
        a, b = node.operands[0].type, node.type
        decimals = pa.types.is_decimal(a) and pa.types.is_decimal(b)
        if decimals and (b.scale < a.scale or b.precision - b.scale < a.precision - a.scale):
            raise UntranslatableError("38 digits are not enough for both of two decimals")
        return f"CAST({texts[0]} AS {spark_name(b)})"

    def _cast(self, node: Typed, texts: list[str]) -> str:
        a, b = node.operands[0].type, node.type
        if node.operands[0].op == "literal" and (pa.types.is_date(b) or pa.types.is_timestamp(b)):
            made = "date_from_unix_date" if pa.types.is_date(b) else "timestamp_micros"
            at = constant(node)
            return f"CAST(NULL AS {spark_name(b)})" if at is None else f"{made}({at})"
        if not _same_cast(a, b):
            raise UntranslatableError(
                f"casts of {type_name(a)} to {type_name(b)} depend on Spark's settings or on Java"
            )
        return f"try_cast({texts[0]} AS {spark_name(b)})"


def _known(translation: _Translation, node: Typed) -> str:
    """Whether a value is not null. Of sums it is enough that their parts are: they fail where they do not fit."""
    if node.op == "literal":
        return "true" if node.value is not None else "false"
    if node.op in ("+", "-", "*", "neg", "abs", "widen"):
        return " AND ".join(_known(translation, operand) for operand in node.operands)
    return f"({translation.of(node)} IS NOT NULL)"


def _in_pairs(word: str, texts: list[str]) -> str:
    while len(texts) > 1:  # a long list must not become a deep tree
        texts = [f"({f' {word} '.join(texts[i : i + 2])})" for i in range(0, len(texts), 2)]
    return texts[0]


def _literal(node: Typed) -> str:
    if node.value is None:
        return f"CAST(NULL AS {spark_name(node.type)})"
    if pa.types.is_boolean(node.type):
        return str(node.value).lower()
    if pa.types.is_string(node.type):
        return text_literal(node.value)
    if pa.types.is_decimal(node.type):
        return f"CAST('{node.value:f}' AS {spark_name(node.type)})"
    if pa.types.is_floating(node.type):
        return f"CAST('{node.value!r}' AS DOUBLE)"
    return f"CAST({node.value} AS {spark_name(node.type)})"


def spark_name(type_: pa.DataType) -> str:
    """What a type is called in Spark's SQL."""
    if pa.types.is_null(type_):
        return "VOID"
    name = type_name(type_)
    if name not in TYPE_NAMES and not pa.types.is_decimal(type_):
        raise UntranslatableError(f"values of {name} are chosen in Python")
    return name.upper()


def _same_cast(a: pa.DataType, b: pa.DataType) -> bool:
    """Whether Java's ``try_cast`` is ours whatever the settings of the session."""
    t = pa.types
    whole, text = (*INTEGERS, _BOOLEAN), b == _TEXT
    if text:
        return a in whole or t.is_date(a)
    if a == _TEXT:
        return b in whole or t.is_decimal(b) or b == _DOUBLE
    if t.is_timestamp(a) or t.is_timestamp(b) or t.is_date(a) or t.is_date(b):
        return False
    if t.is_floating(a):
        return not t.is_decimal(b)
    # Spark's optimizer drops a float between an integer and a double, and with it the rounding to 24 bits.
    return not (b == _FLOAT and (t.is_decimal(a) or a in (pa.int32(), pa.int64())))
