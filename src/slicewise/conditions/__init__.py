"""Conditions: which rows start a window, or belong to a frame: a column, a small expression, or the user's function.

A leaf: it knows columns, and nothing of windows. An expression is read by hand into a tree and computed on whole
columns; nothing is ever given to Python's ``eval``. It means what it means in Spark's SQL:

* three-valued logic: whatever is compared with null is null, and null is not true;
* NaN equals NaN and is larger than any other number; an integer meets a floating number as a double;
* ``/`` gives a floating number, ``%`` has the sign of its left side, and both give null when the right side is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.conditions.computing import as_array, truth_of
from slicewise.conditions.parsing import names_in, parse
from slicewise.errors import DataError, QueryError, did_you_mean

__all__ = ["Condition"]


@dataclass(frozen=True)
class Condition:
    """A test of rows, made by :meth:`of`.

    ``columns`` are the names of the columns that it reads.

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

    said: str | Callable[[dict[str, np.ndarray]], Any]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, said: Any, columns: Sequence[str] = ()) -> Condition:
        """Read a condition: an expression in text, or a function and the columns that it reads.

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
        if isinstance(said, str) and said.strip():
            return cls(said, tuple(dict.fromkeys(names_in(parse(said)))))
        if callable(said):
            return cls(said, tuple(columns))
        raise QueryError(
            f"`condition` must be a column name, an expression such as 'price < 10', or a function; got {said!r}"
        )

    def mask(self, columns: Mapping[str, Column], rows: int | None = None, *, query: str | None = None) -> np.ndarray:
        """For each row whether the condition is true of it: neither false nor null.

        Parameters
        ----------
        columns
            The columns by name; more than the condition reads may be there.
        rows
            How many rows there are, where no column tells.
        query
            Whose condition it is, for error messages.

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
        who = "" if query is None else f"query {query!r}: "
        for name in self.columns:
            if name not in columns:
                raise DataError(
                    f"{who}{self} reads a column {name!r} that the rows do not have; {did_you_mean(name, columns)}"
                )
        if not isinstance(self.said, str):
            return self._call({name: as_array(columns[name]) for name in self.columns}, rows, who)
        return truth_of(self.said, columns, rows, f"{who}{self}")

    def _call(self, arrays: dict[str, np.ndarray], rows: int, who: str) -> np.ndarray:
        assert callable(self.said)
        if not arrays:
            raise QueryError(f"{who}{self} is a function that reads no columns; name them: columns=['price']")
        try:
            answer = self.said(dict(arrays))
        except Exception as error:
            raise DataError(
                f"{who}{self} raised {type(error).__name__}: {error}; {self._find_record(arrays, rows)}"
            ) from error
        data = np.asarray(np.ma.getdata(answer))
        if data.shape != (rows,) or data.dtype != np.bool_:
            raise DataError(
                f"{who}{self} must return one boolean per row, an array of shape ({rows},) and type bool; "
                f"got shape {data.shape} and type {data.dtype}"
            )
        return data & ~np.ma.getmaskarray(answer) if np.ma.isMaskedArray(answer) else data

    def _find_record(self, arrays: dict[str, np.ndarray], rows: int) -> str:
        assert callable(self.said)
        for i in range(rows):
            try:
                self.said({name: array[i : i + 1] for name, array in arrays.items()})
            except Exception:
                record = ", ".join(f"{n}={array[i : i + 1].tolist()[0]!r}" for n, array in arrays.items())
                return f"row {i} of {rows}: {record}"
        return f"on {rows} rows at once, though on none of them alone"

    def __str__(self) -> str:
        named = repr(self.said) if isinstance(self.said, str) else getattr(self.said, "__qualname__", repr(self.said))
        return f"the condition {named}"
