"""Bests: aggregates that keep the ``k`` rows that come first in some order, by value, by time, or by another column.

Partials are ragged and hold at most ``k`` rows each, best first. As with picks, those that go by event time carry it,
so that late rows can be combined into a partial that is already there; equal times go by position or, where rows have
none, by the value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, rescaled
from slicewise.aggregates.checks import OneColumn, check_k, need_orderable, need_types
from slicewise.aggregates.ordering import order_key, order_keys
from slicewise.columns import Column, column_of_objects, physical_dtype
from slicewise.ragged import Ragged

__all__ = ["BestMonoid", "FirstK", "Largest", "LastK", "PeaksMonoid", "Smallest", "ValuesMonoid"]

_REQUIRED: Any = object()
_BOOL, _INT64 = np.dtype(bool), np.dtype(np.int64)


class _OfK(OneColumn):
    """An aggregate of one column that keeps ``k`` values."""

    kind = "algebraic"
    identity: tuple[Any, ...] = ()

    def __init__(self, column: str | None = None, k: int = _REQUIRED) -> None:
        super().__init__(column)
        self.k = check_k(self.name, k, missing=k is _REQUIRED)

    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    def lift(self, *values: Any) -> tuple[Any, ...]:
        return (values[0],)

    def lower(self, partial: tuple[Any, ...]) -> list[Any]:
        return list(partial)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(types[0])


class _OfValues(_OfK):
    commutative = True

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_orderable(self, types[0])
        return ValuesMonoid(self, types, self.k, largest=isinstance(self, Largest))


class Largest(_OfValues):
    """The ``k`` largest values as a list, largest first; duplicates are kept, nulls left out; empty for none.

    NaN is larger than any number.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    k : int
        How many values are wanted.

    Notes
    -----
    Runtime complexity: O(k log k) to merge two partials, which hold up to k values.

    Examples
    --------
    >>> top = Largest(k=2)
    >>> top.lower(top.combine(top.lift(7), top.combine(top.lift(2), top.lift(7))))
    [7, 7]
    """

    name = "largest"

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(a + b, key=order_key, reverse=True)[: self.k])


class Smallest(_OfValues):
    """The ``k`` smallest values as a list, smallest first; duplicates are kept, nulls left out; empty for none.

    NaN is larger than any number.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    k : int
        How many values are wanted.

    Notes
    -----
    Runtime complexity: O(k log k) to merge two partials, which hold up to k values.

    Examples
    --------
    >>> low = Smallest(k=2)
    >>> low.lower(low.combine(low.lift(7), low.combine(low.lift(2), low.lift(7))))
    [2, 7]
    """

    name = "smallest"

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted(a + b, key=order_key)[: self.k])


class _ByTime(_OfK):
    timed = True
    skips_nulls = False

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        return EndsMonoid(self, types, self.k, last=isinstance(self, LastK))


class FirstK(_ByTime):
    """The values of the first ``k`` rows in event-time order, oldest first, also those that are null.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    k : int
        How many rows are wanted.

    Notes
    -----
    Runtime complexity: O(k log k) to merge two partials, which hold up to k rows.

    Examples
    --------
    >>> begin = FirstK(k=2)
    >>> begin.lower(begin.combine(begin.lift("a"), begin.combine(begin.lift("b"), begin.lift("c"))))
    ['a', 'b']
    """

    name = "first_k"

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return (a + b)[: self.k]


class LastK(_ByTime):
    """The values of the last ``k`` rows in event-time order, oldest first, also those that are null.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    k : int
        How many rows are wanted.

    Notes
    -----
    Runtime complexity: O(k log k) to merge two partials, which hold up to k rows.

    Examples
    --------
    >>> end = LastK(k=2)
    >>> end.lower(end.combine(end.lift("a"), end.combine(end.lift("b"), end.lift("c"))))
    ['b', 'c']
    """

    name = "last_k"

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return (a + b)[-self.k :]


class BestMonoid(Monoid):
    """One ragged part: up to ``k`` rows in order. A subclass says what a row is and which come first."""

    exact = True
    identity = ((),)
    #: The last ``k`` rows in order are kept, and not the first.
    _last = False
    _by_value = False

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], k: int, held: Sequence[np.dtype]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types) or pa.null()
        self.k = k
        self._held = list(held)
        self.dtypes = (Ragged.none(0, self._held).dtype,)

    @abstractmethod
    def order(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Arrays by which ``np.lexsort`` puts rows in order; the most important one last."""

    @abstractmethod
    def picked(self, columns: Sequence[np.ndarray]) -> Column:
        """The values of rows."""

    @abstractmethod
    def decimals(self) -> dict[int, int]:
        """Which columns of rows hold values of which of the aggregate's columns."""

    def identities(self, n: int) -> Parts:
        return (Ragged.none(n, self._held),)

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = len(a[0])
        by_pairs = np.arange(2 * n).reshape(2, n).T.reshape(-1)
        return self.fold((Ragged.concat([a[0], b[0]])[by_pairs],), np.arange(0, 2 * n, 2))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        rows = parts[0]
        if not len(starts):
            return self.identities(0)
        if starts[0]:
            rows, starts = rows[int(starts[0]) :], starts - starts[0]
        if len(starts) == len(rows):
            return (rows,)
        lengths = np.add.reduceat(rows.lengths, starts)
        entry = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((*self.order(rows.columns), entry))
        nth = np.arange(len(order)) - (np.cumsum(lengths) - lengths)[entry]
        kept = order[nth >= lengths[entry] - self.k if self._last else nth < self.k]
        return (Ragged(np.minimum(lengths, self.k), *(column[kept] for column in rows.columns)),)

    def lower(self, parts: Parts) -> Column:
        rows = parts[0]
        values = self.picked(rows.columns).to_pylist()
        ends = np.cumsum(rows.lengths)
        bounds = zip((ends - rows.lengths).tolist(), ends.tolist(), strict=True)
        return column_of_objects([self._answer(values[start:end]) for start, end in bounds], self.result)

    def _answer(self, values: list[Any]) -> list[Any] | None:
        return values

    def break_ties_by_value(self) -> None:
        self._by_value = True

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        columns = list(parts[0].columns)
        for place, column in self.decimals().items():
            if pa.types.is_decimal(self.types[column]):
                digits = self.types[column].scale - types[self.aggregate.columns[column]].scale
                columns[place] = rescaled(columns[place], digits) if digits else columns[place]
        return (Ragged(parts[0].lengths, *columns),)


class ValuesMonoid(BestMonoid):
    """The largest or smallest values; a row is a value."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], k: int, *, largest: bool) -> None:
        super().__init__(aggregate, types, k, [physical_dtype(types[0])])
        self._largest = largest

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        some = columns[0].mask
        return (Ragged(some.astype(np.int64), columns[0].values[some]),)

    def of_lists(self, lengths: np.ndarray, columns: Sequence[Column]) -> Parts:
        """A partial for each list of values, which is in order already; the lists stand end to end."""
        return (Ragged(lengths, columns[0].values),)

    def order(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        keys = order_keys(columns[0], np.ones(len(columns[0]), bool))
        return [~keys if self._largest else keys]

    def picked(self, columns: Sequence[np.ndarray]) -> Column:
        return Column(columns[0], self.types[0])

    def decimals(self) -> dict[int, int]:
        return {0: 0}


class EndsMonoid(BestMonoid):
    """The first or last rows; a row is an event time, a value, and whether that is not null."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], k: int, *, last: bool) -> None:
        super().__init__(aggregate, types, k, [_INT64, physical_dtype(types[0]), _BOOL])
        self._last = last

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return (Ragged(np.ones(len(times), np.int64), times, columns[0].values, columns[0].mask),)

    def order(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        times, values, some = columns
        return [*(_value_order(values, some, self.types[0]) if self._by_value else ()), times]

    def picked(self, columns: Sequence[np.ndarray]) -> Column:
        return Column(columns[1], self.types[0], None if columns[2].all() else columns[2])

    def decimals(self) -> dict[int, int]:
        return {1: 0}


class PeaksMonoid(BestMonoid):
    """The rows where ``by`` is largest or smallest; a row is that, an event time, a value, and whether that is null."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], k: int, *, largest: bool) -> None:
        held = [physical_dtype(types[1]), _INT64, physical_dtype(types[0]), _BOOL]
        super().__init__(aggregate, types, k, held)
        self._largest = largest

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        value, by = columns
        some = by.mask
        rows = (array[some] for array in (by.values, times, value.values, value.mask))
        return (Ragged(some.astype(np.int64), *rows),)

    def order(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        by, times, values, some = columns
        keys = order_keys(by, np.ones(len(by), bool))
        ties = _value_order(values, some, self.types[0]) if self._by_value else ()
        return [*ties, times, ~keys if self._largest else keys]

    def picked(self, columns: Sequence[np.ndarray]) -> Column:
        return Column(columns[2], self.types[0], None if columns[3].all() else columns[3])

    def decimals(self) -> dict[int, int]:
        return {0: 1, 2: 0}

    def _answer(self, values: list[Any]) -> list[Any] | None:
        return values or None


def _value_order(values: np.ndarray, some: np.ndarray, type_: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """By value, nulls first."""
    return np.where(some, order_keys(values, some, type_), 0), some
