"""Computed columns: typed expressions on whole columns, as Spark's SQL would. Reads trees of ``typed``.

Every step takes and gives :class:`Values`. What is not asked for is not computed into an error: the value of a ``case``
counts only where its condition holds. Rows on which a number leaves its type are told apart from all others.
"""

from __future__ import annotations

import decimal
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column, type_name
from slicewise.conditions.arithmetic import (
    calculated,
    compared,
    floored,
    magnitude,
    of_doubles,
    out_of_range,
    rounded,
)
from slicewise.conditions.casts import cast_values, shown, widened_values
from slicewise.conditions.typed import Typed, typed
from slicewise.errors import DataError

__all__ = ["Computed", "compute", "constant", "type_of"]


@dataclass(frozen=True, eq=False)
class Computed:
    """The column of an expression, and for each row that it cannot be computed for, why."""

    column: Column
    failures: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class Values:
    """An array or a single value, and where it is not null."""

    values: Any
    valid: Any = np.True_  # NumPy's, because Python's ~True is -2


@functools.lru_cache(maxsize=1024)
def _cached(text: str, types: tuple[tuple[str, pa.DataType], ...], subject: str) -> Typed:
    tree = typed(text, dict(types), subject)
    if pa.types.is_null(tree.type):
        raise DataError(f"{subject} is always null, so its type is not known; declare it: cast(null as double)")
    return tree


def type_of(text: str, types: Mapping[str, pa.DataType], names: tuple[str, ...], subject: str) -> pa.DataType:
    """The type of an expression that reads these columns.

    >>> type_of("v + 1", {"v": pa.int32()}, ("v",), "`expr`")
    DataType(int32)
    """
    return _cached(text, tuple((name, types[name]) for name in names), subject).type


def compute(
    text: str, columns: Mapping[str, Column], names: tuple[str, ...], rows: int, subject: str = "`expr`"
) -> Computed:
    """The values of an expression that reads these columns; errors begin with ``subject``.

    Examples
    --------
    >>> columns = {"a": Column.of([7, None, 2**62]), "b": Column.of([2, 3, 2])}
    >>> product = compute("a * b", columns, ("a", "b"), 3)
    >>> product.column.to_pylist()[:2], product.failures
    ([14, None], {2: '4611686018427387904 * 2 does not fit bigint'})

    Notes
    -----
    Runtime complexity: O(rows) for each operator, in array steps; decimals and text take one step of Python per row.
    """
    tree = _cached(text, tuple((name, columns[name].type) for name in names), subject)
    computation = _Computation(columns, rows)
    with np.errstate(all="ignore"):
        values = computation.of(tree, np.True_)
    return Computed(_column(values, tree.type, rows), computation.failures)


def constant(node: Typed) -> Any:
    """The value of a node that reads no columns, as columns hold it; None for null."""
    values = _Computation({}, 1).of(node, np.True_)
    return np.broadcast_to(values.values, (1,))[0].item() if np.all(values.valid) else None


def _column(values: Values, type_: pa.DataType, rows: int) -> Column:
    data = np.broadcast_to(values.values, (rows,))
    if pa.types.is_boolean(type_):
        data = data.astype(np.int64)
    valid = np.broadcast_to(values.valid, (rows,))
    if valid.all():
        return Column(np.ascontiguousarray(data), type_)
    filler: Any = 0
    if data.dtype == object:
        filler = 0 if pa.types.is_decimal(type_) else None
    return Column(np.where(valid, data, np.array(filler, data.dtype)), type_, np.array(valid))


@dataclass
class _Computation:
    columns: Mapping[str, Column]
    rows: int
    failures: dict[int, str] = field(default_factory=dict)

    def of(self, node: Typed, active: Any) -> Values:
        """The values of a node; where ``active`` is false nobody asks for them."""
        if node.op == "column":
            return _read(self.columns[node.value], node.type)
        if node.op == "literal":
            return _literal(node)
        lazy = _LAZY.get(node.op)
        if lazy is not None:
            return lazy(self, node, active)
        operands = [self.of(operand, active) for operand in node.operands]
        return _EAGER[node.op](self, node, operands, active)

    def fail(self, wrong: Any, active: Any, describe: Callable[[int], str]) -> None:
        """Note the rows on which something is wrong."""
        for row in np.flatnonzero(np.broadcast_to(wrong & active, (self.rows,))).tolist():
            self.failures.setdefault(row, describe(row))

    def at(self, values: Values, type_: pa.DataType, row: int) -> str:
        """One of the values, for messages."""
        return shown(np.broadcast_to(values.values, (self.rows,))[row], type_)

    # Where operands are asked for only some rows

    def _logic(self, node: Typed, active: Any) -> Values:
        """Three-valued: ``and`` is decided by one that is false, ``or`` by one that is true."""
        decides = node.op == "or"
        decided, known = np.False_, np.True_
        for operand in node.operands:
            part = self.of(operand, active & ~decided)
            decided = decided | (part.valid & (part.values == decides))
            known = known & part.valid
        return Values(decided if decides else ~decided & known, decided | known)

    def _case(self, node: Typed, active: Any) -> Values:
        chosen, parts = active, []
        for condition, value in zip(node.operands[:-1:2], node.operands[1::2], strict=True):
            met = self.of(condition, chosen)
            holds = chosen & met.values & met.valid
            parts.append((holds, self.of(value, holds)))
            chosen = chosen & ~holds
        return _picked(parts, self.of(node.operands[-1], chosen))

    def _coalesce(self, node: Typed, active: Any) -> Values:
        chosen, parts = active, []
        for operand in node.operands[:-1]:
            value = self.of(operand, chosen)
            holds = chosen & value.valid
            parts.append((holds, value))
            chosen = chosen & ~holds
        return _picked(parts, self.of(node.operands[-1], chosen))

    # Where all operands are asked for

    def _not(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        return Values(~a.values, a.valid)

    def _is_null(self, node: Typed, operands: list[Values], active: Any) -> Values:
        return Values(~(operands[0].valid & np.True_))

    def _compare(self, node: Typed, operands: list[Values], active: Any) -> Values:
        a, b = operands
        valid = a.valid & b.valid
        return Values(compared(node.op, a.values, b.values, valid), valid)

    def _extreme(self, node: Typed, operands: list[Values], active: Any) -> Values:
        """The least or greatest of those that are not null; of equal ones the first."""
        sign = "<" if node.op == "least" else ">"
        best = operands[0]
        for other in operands[1:]:
            both = best.valid & other.valid
            takes = other.valid & (~best.valid | compared(sign, other.values, best.values, both))
            best = Values(_where(takes, other.values, best.values), best.valid | other.valid)
        return best

    def _calculate(self, node: Typed, operands: list[Values], active: Any) -> Values:
        a, b = operands
        types = [operand.type for operand in node.operands]
        valid = a.valid & b.valid
        if node.op in "/%":
            valid = valid & (b.values != 0)
        values, wrong = calculated(node.op, a.values, b.values, valid, types, node.type)
        self.fail(wrong, active, lambda row: self._too_large(node, operands, row))
        return Values(np.where(wrong, np.zeros((), values.dtype), values) if np.any(wrong) else values, valid)

    def _too_large(self, node: Typed, operands: list[Values], row: int) -> str:
        texts = [self.at(v, n.type, row) for v, n in zip(operands, node.operands, strict=True)]
        called = f" {node.op} ".join(texts) if len(texts) == 2 else f"{_CALLED.get(node.op, node.op)}({texts[0]})"
        return f"{called} does not fit {type_name(node.type)}"

    def _magnitude(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        values = magnitude(node.op, a.values)
        wrong = out_of_range(values, node.type) & a.valid
        # The one integer whose negative does not fit wraps around in 64 bits.
        if node.type == pa.int64():
            wrong = wrong | (a.valid & (a.values == -(2**63)))
        self.fail(wrong, active, lambda row: self._too_large(node, operands, row))
        return Values(values, a.valid)

    def _round(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        values, wrong = rounded(a.values, a.valid, node.operands[0].type, node.type, node.value)
        self.fail(wrong & a.valid, active, lambda row: self._too_large(node, operands, row))
        return Values(values, a.valid)

    def _floor(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        values, wrong = floored(node.op, a.values, a.valid, node.operands[0].type)
        self.fail(wrong, active, lambda row: self._too_large(node, operands, row))
        return Values(values, a.valid)

    def _of_doubles(self, node: Typed, operands: list[Values], active: Any) -> Values:
        values, defined = of_doubles(node.op, *(v.values for v in operands))
        valid = functools.reduce(operator.and_, [v.valid for v in operands])
        return Values(values, valid & defined)

    def _cast(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        return Values(*cast_values(a.values, a.valid, node.operands[0].type, node.type))

    def _widen(self, node: Typed, operands: list[Values], active: Any) -> Values:
        (a,) = operands
        return Values(*widened_values(a.values, a.valid, node.operands[0].type, node.type))


_CALLED = {"neg": "-"}
_LAZY: dict[str, Callable[[_Computation, Typed, Any], Values]] = {
    "and": _Computation._logic,
    "or": _Computation._logic,
    "case": _Computation._case,
    "coalesce": _Computation._coalesce,
}
_EAGER: dict[str, Callable[[_Computation, Typed, list[Values], Any], Values]] = {
    "not": _Computation._not,
    "is null": _Computation._is_null,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _Computation._compare),
    **dict.fromkeys(("least", "greatest"), _Computation._extreme),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _Computation._calculate),
    **dict.fromkeys(("neg", "abs"), _Computation._magnitude),
    **dict.fromkeys(("floor", "ceil"), _Computation._floor),
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "sin", "cos", "tan", "pow"), _Computation._of_doubles),
    "round": _Computation._round,
    "cast": _Computation._cast,
    "widen": _Computation._widen,
}


def _read(column: Column, type_: pa.DataType) -> Values:
    valid = np.True_ if column.valid is None else column.valid
    if pa.types.is_null(type_):
        return Values(np.zeros(len(column), bool), np.zeros(len(column), bool))
    if pa.types.is_boolean(type_):
        return Values(column.values != 0, valid)
    return Values(column.values, valid)


def _literal(node: Typed) -> Values:
    """A value for all rows, in the form that columns of its type have."""
    if node.value is None:
        # Of a kind that goes with the others; nobody reads it.
        return Values(_filler(node.type), np.False_)
    t = pa.types
    if t.is_decimal(node.type):
        # Python's own context has 28 digits.
        return Values(np.array(int(node.value.scaleb(node.type.scale, decimal.Context(prec=100))), object))
    if t.is_string(node.type):
        return Values(np.array(node.value, object))
    if t.is_boolean(node.type):
        return Values(np.bool_(node.value))
    return Values(np.float64(node.value) if t.is_floating(node.type) else np.int64(node.value))


def _filler(type_: pa.DataType) -> Any:
    t = pa.types
    if t.is_boolean(type_) or t.is_null(type_):
        return np.False_
    if t.is_decimal(type_):
        return np.array(0, object)
    if t.is_floating(type_):
        return np.float64(0)
    if t.is_integer(type_) or t.is_timestamp(type_) or t.is_date(type_) or t.is_duration(type_) or t.is_time(type_):
        return np.int64(0)
    return np.array(None, object)


def _picked(parts: list[tuple[Any, Values]], otherwise: Values) -> Values:
    """For each row the part that holds there."""
    values, valid = otherwise.values, otherwise.valid
    for holds, part in reversed(parts):
        values, valid = _where(holds, part.values, values), np.where(holds, part.valid, valid)
    return Values(values, valid)


def _where(holds: Any, a: Any, b: Any) -> Any:
    return np.where(holds, a, b)
