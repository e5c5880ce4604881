"""Conditions: which rows start a window, or belong to a frame: a column, a small expression, or the user's function.

A leaf: it knows columns, and nothing of windows. The language is that of computed columns too
(:mod:`slicewise.conditions.expression`), and a condition with functions in it is one of those. Any other is parsed by
hand into a tree and computed on whole columns; Python's ``eval`` is never used. It means what it means in Spark's SQL:

* three-valued logic: whatever is compared with null is null, and null is not true;
* NaN equals NaN and is larger than any other number; an integer meets a floating number as a double;
* ``/`` gives a floating number, ``%`` has the sign of its left side, and both give null when the right side is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column, type_name
from slicewise.conditions.computing import as_array, truth_of
from slicewise.conditions.expression import Expression, expr, true_rows
from slicewise.conditions.parsing import is_plain, names_in, parse
from slicewise.errors import DataError, QueryError, did_you_mean

__all__ = ["Condition"]

_Arrays = dict[str, np.ndarray]
_Function = Callable[[_Arrays], Any]


@dataclass(frozen=True)
class Condition:
    """A test of rows, made by :meth:`of`.

    ``predicate`` is the text of an expression or the user's function; ``columns`` are the columns that it reads.

    Examples
    --------
    >>> condition = Condition.of("price < 10 and kind is not null")
    >>> condition.columns
    ('price', 'kind')
    >>> columns = {"price": Column.of([5, None, 7, 20]), "kind": Column.of(["a", "b", None, "d"])}
    >>> condition.mask(columns)
    array([ True, False, False, False])

    A function takes the columns it names as arrays; one with nulls is a masked array.

    >>> Condition.of(lambda c: c["price"] % 2 == 1, ["price"]).mask(columns)
    array([ True, False,  True, False])
    """

    predicate: str | _Function
    columns: tuple[str, ...]

    @classmethod
    def of(cls, predicate: Any, columns: Sequence[str] = ()) -> Condition:
        """Read a condition: an expression in text, or a function and the columns that it reads.

        Parameters
        ----------
        predicate
            A column name, an expression, or a function from arrays by column name to one boolean per row.
        columns
            The columns that a function reads; an expression names its own.

        Raises
        ------
        QueryError
            With the place in the text where it cannot be read.

        Examples
        --------
        >>> Condition.of("price < < 10")
        Traceback (most recent call last):
        slicewise.errors.QueryError: `condition` has '<' where a value should be; got
            price < < 10
                    ^
        write a column name, or an expression such as "price < 10 and kind = 'trade'"
        """
        if isinstance(predicate, Expression):
            return cls(predicate, (predicate,))
        if isinstance(predicate, str) and predicate.strip():
            tree = parse(predicate)
            return cls(predicate, tuple(dict.fromkeys(names_in(tree)))) if is_plain(tree) else cls.of(expr(predicate))
        if callable(predicate):
            return cls(predicate, tuple(columns))
        raise QueryError(
            f"`condition` must be a column name, an expression such as 'price < 10', or a function; got {predicate!r}",
            parameter="condition",
        )

    def mask(self, columns: Mapping[str, Column], rows: int | None = None, *, query: str | None = None) -> np.ndarray:
        """Whether the condition is true of each row: neither false nor null.

        Parameters
        ----------
        columns
            The columns by name, at least those that the condition reads.
        rows
            The number of rows, needed where there are no columns.
        query
            The query that the condition belongs to, for error messages.

        Raises
        ------
        DataError
            A column is missing, values of different kinds are compared, or the user's function fails.

        Notes
        -----
        Runtime complexity: O(rows) for each operator of the expression, in array steps.
        """
        if rows is None:
            rows = len(next(iter(columns.values())))
        subject = str(self) if query is None else f"query {query!r}: {self}"
        for name in self.columns:
            if name not in columns:
                raise DataError(
                    f"{subject} reads a column {name!r} that the rows do not have; {did_you_mean(name, columns)}"
                )
        if isinstance(self.predicate, Expression):
            return _truth_in(columns[self.predicate], subject)
        if isinstance(self.predicate, str):
            return truth_of(self.predicate, columns, rows, subject)
        if not self.columns:
            raise QueryError(
                f"{subject} is a function that reads no columns; name them: columns=['price']",
                parameter="columns",
                query=query,
            )
        return _call(self.predicate, {name: as_array(columns[name]) for name in self.columns}, rows, subject)

    def __str__(self) -> str:
        if isinstance(self.predicate, str):
            text = self.predicate.text if isinstance(self.predicate, Expression) else self.predicate
            return f"the condition {text!r}"
        return f"the condition {getattr(self.predicate, '__qualname__', repr(self.predicate))}"


def _truth_in(column: Column, subject: str) -> np.ndarray:
    if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise DataError(f"{subject} is {type_name(column.type)}, not true or false; compare it with something")
    return true_rows(column)


def _call(function: _Function, arrays: _Arrays, rows: int, subject: str) -> np.ndarray:
    """Whether the user's function is true of each row; where it fails, the error names the first row it fails on."""
    try:
        answer = function(dict(arrays))
    except Exception as error:
        raise DataError(
            f"{subject} raised {type(error).__name__}: {error}; {_failing_row(function, arrays, rows)}"
        ) from error
    data = np.asarray(np.ma.getdata(answer))
    if data.shape != (rows,) or data.dtype != np.bool_:
        raise DataError(
            f"{subject} must return one boolean per row, an array of shape ({rows},) and type bool; "
            f"got shape {data.shape} and type {data.dtype}"
        )
    return data & ~np.ma.getmaskarray(answer) if np.ma.isMaskedArray(answer) else data


def _failing_row(function: _Function, arrays: _Arrays, rows: int) -> str:
    for i in range(rows):
        try:
            function({name: array[i : i + 1] for name, array in arrays.items()})
        except Exception:
            record = ", ".join(f"{n}={array[i : i + 1].tolist()[0]!r}" for n, array in arrays.items())
            return f"row {i} of {rows}: {record}"
    return f"on {rows} rows at once, though on none of them alone"
