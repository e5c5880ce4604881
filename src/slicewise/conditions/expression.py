"""Expressions: columns that are computed, ``sw.expr("price * volume")``. They stand wherever the name of a column may.

An expression is the name of the column that it makes, a name that no column of the user's has. So everything that knows
columns by name knows computed ones too; only who reads rows computes them (:func:`derive`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column, type_name
from slicewise.conditions.computed import compute, type_of
from slicewise.conditions.parsing import names_in, parse
from slicewise.conditions.typed import check_names
from slicewise.errors import DataError, QueryError

__all__ = [
    "Expression",
    "check_truth",
    "check_type_of",
    "derive",
    "derived_types",
    "expr",
    "inputs_of",
    "plain_name",
    "refuse_missing",
    "selection",
    "true_rows",
]

#: How the names of computed columns begin; no column of the user's begins like this.
_PREFIX = "\0expr "


class Expression(str):
    """The name of a column that is computed; see :func:`expr`."""

    __slots__ = ()

    def __new__(cls, text: str) -> Expression:
        return super().__new__(cls, _PREFIX + text)

    @property
    def text(self) -> str:
        """What the user wrote."""
        return self[len(_PREFIX) :]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return _names(self.text)

    def where(self, condition: Expression) -> Expression:
        """The same where a condition is true, and null elsewhere: what is left out is not computed."""
        return Expression(f"case when {condition.text} then {self.text} end")

    def __repr__(self) -> str:
        return f"expr({self.text!r})"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __getnewargs__(self) -> tuple[str]:
        return (self.text,)


@functools.lru_cache(maxsize=1024)
def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names_in(parse(text, "expr"))))


def expr(text: str) -> Expression:
    """A column that is computed from others, wherever a column may stand.

    Parameters
    ----------
    text : str
        Columns (``price``, ``a.b`` for a field of a struct, backticks for names that are no single word), numbers,
        texts, ``+ - * / %``, comparisons, ``and or not``, ``is null``, ``in``, ``between``, ``case when``, ``cast``,
        and the functions ``abs ceil coalesce cos exp floor greatest least ln log10 pow round sin sqrt tan``. It means
        what it means in Spark's SQL, with Spark's types; see the page on expressions.

    Returns
    -------
    Expression
        What stands for the column.

    Raises
    ------
    QueryError
        With the place in the text where it cannot be read.

    Notes
    -----
    What is divided by zero, and casts that fail, are null. A number that leaves its type is an error that names the
    row; on a stream the row is bad.

    Runtime complexity: O(rows) for each operator, in array steps; on Spark inside the JVM where its answer is the same.

    Examples
    --------
    >>> import slicewise as sw
    >>> turnover = sw.sum(sw.expr("price * volume"))
    >>> turnover
    sum(expr('price * volume'))
    >>> op = sw.Workload(time="ts").query("q", sw.tumbling(60), turnover=turnover).operator()
    >>> _ = op.process_batch({"ts": [10, 20], "price": [1.5, 2.0], "volume": [10, 20]})
    >>> [r.values for r in op.close()]
    [{'turnover': 55.0}]
    """
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"`expr` must be an expression such as 'price * volume'; got {text!r}", parameter="expr")
    if isinstance(text, Expression):
        return text
    parse(text, "expr")
    return Expression(text)


def inputs_of(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns that rows must have for these, computed or not."""
    inputs = [name for c in columns for name in (c.names if isinstance(c, Expression) else (c,))]
    return tuple(dict.fromkeys(inputs))


def plain_name(name: str) -> str:
    """The name of a column, computed or not, as plain text: in state there are no objects of ours.

    >>> plain_name(expr("v + 1"))
    '\\x00expr v + 1'
    """
    return name[:]


def derived_types(columns: Iterable[str], types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The types of the computed columns among these, where those that they read have these types.

    >>> derived_types([expr("v / 2"), "v"], {"v": pa.int64()})
    {expr('v / 2'): DataType(double)}
    """
    derived: dict[str, pa.DataType] = {}
    for c in columns:
        if isinstance(c, Expression):
            check_names(c.text, types, repr(c))
            derived[c] = type_of(c.text, types, c.names, repr(c))
    return derived


def derive(
    columns: Iterable[str], known: Mapping[str, Column], rows: int
) -> tuple[dict[str, Column], dict[int, tuple[str, str]]]:
    """The computed columns among these, and for each row that one of them cannot be computed for, which and why.

    >>> derive([expr("v + 1")], {"v": Column.of([1, 2**63 - 1])}, 2)[1]
    {1: ("expr('v + 1')", '9223372036854775807 + 1 does not fit bigint')}
    """
    derived: dict[str, Column] = {}
    failures: dict[int, tuple[str, str]] = {}
    for c in columns:
        if isinstance(c, Expression) and c not in known:
            check_names(c.text, known, repr(c))
            computed = compute(c.text, known, c.names, rows, repr(c))
            derived[c] = computed.column
            for row, why in computed.failures.items():
                failures.setdefault(row, (repr(c), why))
    return derived, failures


def selection(
    where: Expression | None, known: Mapping[str, Column], rows: int, *, unless: Expression | None = None
) -> tuple[np.ndarray, dict[int, tuple[str, str]]]:
    """Which rows meet a filter and do not meet another, and for which that cannot be computed, and why.

    Those are among the first too.
    """
    mask = np.ones(rows, bool)
    derived, failures = derive([c for c in (where, unless) if c is not None], known, rows)
    if where is not None:
        check_type_of(where, derived[where].type)
        mask &= true_rows(derived[where])
    if unless is not None:
        check_type_of(unless, derived[unless].type, "punctuation")
        mask &= ~true_rows(derived[unless])
    mask[list(failures)] = True
    return mask, failures


def check_type_of(where: Expression, type_: pa.DataType, parameter: str = "where") -> None:
    """Refuse a filter of rows that is neither true nor false."""
    if not pa.types.is_boolean(type_):
        raise DataError(
            f"`{parameter}` must be true or false; got {where.text!r}, which is {type_name(type_)}; compare it with "
            "something"
        )


def refuse_missing(columns: Iterable[str], name: str, known: Iterable[str]) -> None:
    """Refuse rows without a column that one of these expressions reads; the error shows where it stands."""
    readers = [c for c in columns if isinstance(c, Expression) and name in c.names]
    if readers and name not in columns:
        reader = min(readers, key=len)
        check_names(reader.text, [*known, *(n for n in reader.names if n != name)], repr(reader))


def check_truth(condition: Any, parameter: str) -> Expression:
    """A filter as an expression; refuses what is none, and says what ``where`` takes."""
    if not isinstance(condition, str) or not condition.strip():
        raise QueryError(
            f"`{parameter}` must be a condition such as \"kind = 'view'\"; got {condition!r}", parameter=parameter
        )
    if isinstance(condition, Expression):
        return condition
    parse(condition, parameter)
    return Expression(condition)


def true_rows(column: Column) -> np.ndarray:
    """Where a boolean column is true: neither false nor null."""
    holds: np.ndarray = column.values != 0
    return holds if column.valid is None else holds & column.valid
