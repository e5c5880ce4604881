"""Computing: the tree of a condition on whole columns, as Spark's SQL would. Reads trees of ``parsing``.

Every step takes and gives :class:`Values`: an array (or one value for all rows), where it is not null, and its kind.
"""

from __future__ import annotations

import decimal
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.conditions.parsing import Literal, Name, Node, Tree, parse, point_at
from slicewise.errors import DataError

__all__ = ["as_array", "truth_of"]

#: Kinds of values, as messages call them. Those without an entry can only be tested by `is null`.
_CALLED = {
    "integer": "a number",
    "float": "a number",
    "decimal": "a number",
    "text": "text",
    "bytes": "bytes",
    "boolean": "true or false",
    "null": "null",
    "timestamp": "a timestamp",
    "date": "a date",
    "time": "a time of day",
    "duration": "a duration",
}
_NUMBERS = ("integer", "decimal", "float")
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
    "%": np.fmod,
}
_INT64 = 2**63
_to_decimals = np.frompyfunc(decimal.Decimal, 1, 1)


def truth_of(text: str, columns: Mapping[str, Column], rows: int, subject: str) -> np.ndarray:
    """Whether the expression is true of each row; errors begin with ``subject``.

    >>> truth_of("v / 2 > 1", {"v": Column.of([1, 3, None])}, 3, "the condition")
    array([False,  True, False])
    """
    try:
        with decimal.localcontext(decimal.Context(prec=100)), np.errstate(all="ignore"):
            answer = _Expression(text, columns, subject).compute(parse(text))
    except (ArithmeticError, RecursionError) as error:
        raise DataError(f"{subject} cannot be computed: {error!r}; make it simpler, or cast the columns") from error
    if answer.kind not in ("boolean", "null"):
        raise DataError(f"{subject} is {_called(answer.kind)}, not true or false; compare it with something")
    return np.broadcast_to(answer.true, (rows,))


def as_array(column: Column) -> np.ndarray:
    """A column as a user's function sees it: NumPy's own type where there is one, masked where it has nulls.

    >>> as_array(Column.of([True, None, False]))
    masked_array(data=[True, --, False], mask=[False,  True, False], fill_value=True)
    """
    kind = _kind_of(column.type)
    if kind == "boolean":
        values = column.values.astype(bool)
    elif kind in ("timestamp", "duration", "date"):
        days = kind == "date" and not pa.types.is_date64(column.type)
        unit = "D" if days else "ms" if kind == "date" else "us"
        values = column.values.view(f"{'m' if kind == 'duration' else 'M'}8[{unit}]")
    elif kind == "null":
        values = np.zeros(len(column))
    elif column.values.dtype == object:
        # Under the mask stands what can be compared: NumPy compares first and masks then.
        filler = {"text": "", "bytes": b"", "decimal": decimal.Decimal(0)}.get(kind)
        values = np.empty(len(column), object)
        values[:] = [filler if v is None else v for v in column.to_pylist()]
    else:
        values = column.values
    nulls = np.ones(len(column), bool) if kind == "null" else None if column.valid is None else ~column.valid
    return values if nulls is None else np.ma.MaskedArray(values, nulls)


def _kind_of(type_: pa.DataType) -> str:
    t = pa.types
    kinds = {
        "boolean": t.is_boolean,
        "integer": t.is_integer,
        "float": t.is_floating,
        "decimal": t.is_decimal,
        "text": lambda x: t.is_string(x) or t.is_large_string(x) or t.is_string_view(x),
        "bytes": lambda x: t.is_binary(x) or t.is_large_binary(x) or t.is_fixed_size_binary(x),
        "null": t.is_null,
        "timestamp": t.is_timestamp,
        "date": t.is_date,
        "time": t.is_time,
        "duration": t.is_duration,
    }
    return next((kind for kind, is_it in kinds.items() if is_it(type_)), str(type_))


def _called(kind: str) -> str:
    return _CALLED.get(kind, f"a value of type {kind}")


@dataclass(frozen=True, eq=False)
class Values:
    """An array or a single value, where it is not null, and what kind of values they are."""

    kind: str
    values: Any
    valid: Any = np.True_  # NumPy's, because Python's ~True is -2

    @property
    def true(self) -> Any:
        """Where a boolean is true: not where it is false or null."""
        return self.values & self.valid

    @property
    def false(self) -> Any:
        """Where a boolean is false."""
        return ~self.values & self.valid


_NULL = Values("null", np.False_, np.False_)


def _three_valued(true: Any, false: Any) -> Values:
    return Values("boolean", true, true | false)


class _Expression:
    """One computation of a condition: its text for error messages, and the columns that its names stand for."""

    def __init__(self, text: str, columns: Mapping[str, Column], subject: str) -> None:
        self.text, self.columns, self.subject = text, columns, subject

    def compute(self, tree: Tree) -> Values:
        """The values of a tree."""
        if isinstance(tree, Literal):
            return _literal(tree.value)
        if isinstance(tree, Name):
            return _column(self.columns[tree.name])
        operands = [self.compute(operand) for operand in tree.operands]
        if tree.op == "neg":
            return self._calculate(Node("-", tree.operands, tree.at), _literal(0), *operands)
        if tree.op == "is null":
            return Values("boolean", ~(operands[0].valid & np.True_))
        if tree.op in ("and", "or", "not"):
            return self._logic(tree, operands)
        if tree.op == "in":
            equal = [self._compare(tree, "==", operands[0], other) for other in operands[1:]]
            return self._logic(Node("or", tree.operands[1:], tree.at), equal)
        if tree.op in ("==", "!=", "<", "<=", ">", ">="):
            return self._compare(tree, tree.op, *operands)
        return self._calculate(tree, *operands)

    def _logic(self, tree: Node, operands: list[Values]) -> Values:
        for operand, part in zip(operands, tree.operands, strict=True):
            if operand.kind not in ("boolean", "null"):
                self._refuse(
                    f"has {_called(operand.kind)} where true or false should be",
                    part.at,
                    "compare it with something",
                )
        if tree.op == "not":
            return _three_valued(operands[0].false, operands[0].true)
        true, false = [v.true for v in operands], [v.false for v in operands]
        if tree.op == "and":
            return _three_valued(functools.reduce(operator.and_, true), functools.reduce(operator.or_, false))
        return _three_valued(functools.reduce(operator.or_, true), functools.reduce(operator.and_, false))

    def _compare(self, tree: Node, sign: str, a: Values, b: Values) -> Values:
        if "null" in (a.kind, b.kind):
            return Values("boolean", np.False_, np.False_)
        numbers = a.kind in _NUMBERS and b.kind in _NUMBERS
        if not numbers and (a.kind != b.kind or a.kind not in _CALLED):
            what = f"compares {_called(a.kind)} with {_called(b.kind)}"
            self._refuse(what, tree.at, "compare values of one kind: numbers with numbers, text with text")
        valid = a.valid & b.valid
        if numbers and (_meet_as_doubles(a, b) or _meet_as_doubles(b, a)):
            x, y = _to_floats(a.values), _to_floats(b.values)
        else:
            x, y = _same_numbers(a, b) if numbers else (a.values, b.values)
        if _is_object(x) or _is_object(y):
            holds = _where(valid, _SIGNS[sign], x, y, bool)
        elif "float" in (a.kind, b.kind):
            holds = _compare_floats(sign, x, y)
        else:
            holds = _SIGNS[sign](x, y)
        return Values("boolean", holds & valid, valid)

    def _calculate(self, tree: Node, a: Values, b: Values) -> Values:
        for operand in (a, b):
            if operand.kind not in (*_NUMBERS, "null"):
                self._refuse(f"calculates with {_called(operand.kind)}", tree.at, "calculate with numbers only")
        if "null" in (a.kind, b.kind):
            return _NULL
        x, y = _same_numbers(a, b)
        kind = max(a.kind, b.kind, key=_NUMBERS.index)
        valid = a.valid & b.valid
        if tree.op in "/%":
            valid = valid & (y != 0)
        if kind == "integer" and tree.op == "/":
            kind, x, y = "float", _to_floats(x), _to_floats(y)
        elif kind == "integer" and not _fits(tree.op, x, y):
            x, y = _to_objects(x), _to_objects(y)  # exact, where int64 would wrap around
        if _is_object(x) or _is_object(y):
            function = _remainder if tree.op == "%" else _SIGNS[tree.op]
            return Values(kind, _where(valid, function, x, y, object), valid)
        if tree.op == "%" and kind == "integer":
            y = np.where(y == 0, 1, y)
        return Values(kind, _SIGNS[tree.op](x, y), valid)

    def _refuse(self, what: str, at: int, instead: str) -> NoReturn:
        raise DataError(f"{self.subject} {what}; got\n{point_at(self.text, at)}\n{instead}")


def _literal(value: Any) -> Values:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return Values("boolean", np.bool_(value))
    if isinstance(value, str):
        return Values("text", np.array(value, object))
    if isinstance(value, int):
        return Values("integer", np.int64(value) if -_INT64 <= value < _INT64 else np.array(value, object))
    if isinstance(value, float):
        return Values("float", np.float64(value))
    return Values("decimal", np.array(value, object))


def _column(column: Column) -> Values:
    kind = _kind_of(column.type)
    valid = np.True_ if column.valid is None else column.valid
    if kind == "null":
        return Values("null", np.zeros(len(column), bool), np.zeros(len(column), bool))
    if kind == "boolean":
        return Values(kind, column.values != 0, valid)
    if kind == "decimal":
        return Values(kind, column.to_objects(), valid)
    return Values(kind, column.values, valid)


def _same_numbers(a: Values, b: Values) -> tuple[Any, Any]:
    """The values of two kinds of numbers as one: doubles if one is floating, else decimals, else integers."""
    kinds = {a.kind, b.kind}
    if "float" in kinds:
        return _to_floats(a.values), _to_floats(b.values)
    if kinds == {"integer", "decimal"}:
        return _as_decimals(a), _as_decimals(b)
    return a.values, b.values


def _meet_as_doubles(whole: Values, point: Values) -> bool:
    """Whether integers may meet a literal such as 10.5 as doubles and still compare exactly: decimals are slower."""
    if (whole.kind, point.kind) != ("integer", "decimal") or point.values.ndim or _is_object(whole.values):
        return False
    literal = point.values.item()
    return _most(whole.values) < 2**53 and float(literal).is_integer() == (literal == int(literal))


def _as_decimals(v: Values) -> Any:
    return v.values if v.kind == "decimal" else np.asarray(_to_decimals(_to_objects(v.values)), object)


def _to_floats(values: Any) -> Any:
    return values.astype(np.float64)


def _to_objects(values: Any) -> Any:
    return np.asarray(values).astype(object)  # Python's integers: `asarray` to object would keep NumPy's


def _is_object(values: np.ndarray | np.generic) -> bool:
    return values.dtype == object


def _where(valid: Any, function: Callable[[Any, Any], Any], x: Any, y: Any, dtype: type) -> np.ndarray:
    """The function of Python objects, where both are there: nulls cannot be compared."""
    valid, x, y = np.broadcast_arrays(valid, x, y)
    out = np.zeros(valid.shape, dtype)
    out[valid] = function(x[valid], y[valid])
    return out


def _compare_floats(sign: str, x: Any, y: Any) -> Any:
    """Doubles in Spark's order: NaN equals NaN and is larger than all others."""
    holds = _SIGNS[sign](x, y)
    x_nan, y_nan = np.isnan(x), np.isnan(y)
    if not (x_nan.any() or y_nan.any()):
        return holds
    return np.where(x_nan | y_nan, _SIGNS[sign](x_nan, y_nan), holds)


def _fits(sign: str, x: Any, y: Any) -> bool:
    """Whether no result of an operation on integers can leave 64 bits."""
    if _is_object(x) or _is_object(y):
        return False
    return (_most(x) * _most(y) if sign == "*" else _most(x) + _most(y)) < _INT64


def _most(whole: Any) -> int:
    """The largest absolute value."""
    return max(-int(whole.min()), int(whole.max())) if whole.size else 0


def _remainder(x: Any, y: Any) -> Any:
    """The remainder of integers or decimals as objects; Python's ``%`` has the sign of the right side."""
    rest = abs(x) % abs(y)
    return np.where(x < 0, -rest, rest)
