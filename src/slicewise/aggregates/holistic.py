"""Holistic aggregates, whose partials hold all their rows: lists, sets, text. Percentiles are in ``percentiles``."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, ObjectMonoid, Parts
from slicewise.aggregates.checks import OneColumn, need_types
from slicewise.aggregates.ordering import order_key
from slicewise.columns import Column
from slicewise.errors import AggregateError

__all__ = ["CollectList", "CollectSet", "Concat", "listagg"]


#: What Python itself tells apart and puts in order as Spark does, but for NaN. Lists have no hash.
_PLAIN = frozenset({bool, int, float, str, bytes, datetime.date, datetime.datetime})


class _Gathering(OneColumn):
    """An aggregate that makes the partial of several rows at once, not by combining them one by one."""

    def of_values(self, values: Iterable[Any]) -> Any:
        """The partial of rows with these values, none of them null."""
        raise NotImplementedError

    def gather(self, partials: Sequence[Any]) -> Any:
        """The partial of these partials, in order."""
        raise NotImplementedError

    def lift(self, *values: Any) -> Any:
        return self.of_values(values)

    def combine(self, a: Any, b: Any) -> Any:
        return self.gather((a, b))

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        return GatheringMonoid(self, types)


class GatheringMonoid(ObjectMonoid):
    """One part of Python values; a segment is gathered in one step, since pairwise would copy it log n times."""

    aggregate: _Gathering

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        partials = parts[0].tolist()
        return self._each(starts, len(partials), lambda start, end: self.aggregate.gather(partials[start:end]))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        rows = columns[0].to_pylist()
        if columns[0].valid is None:
            return self._each(starts, len(rows), lambda start, end: self.aggregate.of_values(rows[start:end]))
        return self._each(
            starts, len(rows), lambda start, end: self.aggregate.of_values(v for v in rows[start:end] if v is not None)
        )

    @staticmethod
    def _each(starts: np.ndarray, n: int, gather: Any) -> Parts:
        out = np.empty(len(starts), object)
        bounds = [*starts.tolist(), n]
        for i in range(len(starts)):
            out[i] = gather(bounds[i], bounds[i + 1])
        return (out,)


class CollectList(_Gathering):
    """The values that are not null as a list, in event-time order; an empty list when there are none.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Partials grow with the rows of a slice. Runtime complexity: O(n) for a window of n values, in time and memory.

    Examples
    --------
    >>> values = CollectList()
    >>> values.lower(values.combine(values.lift("a"), values.lift("b")))
    ['a', 'b']
    """

    name = "collect_list"
    invertible = True
    identity = ()

    def of_values(self, values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(values)

    def gather(self, partials: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(partials))

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a + b

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """``a`` without its end ``b``."""
        return a[: len(a) - len(b)]

    def lower(self, partial: tuple[Any, ...]) -> list[Any]:
        return list(partial)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(types[0])


class CollectSet(_Gathering):
    """The distinct values that are not null, as a list; an empty list when there are none.

    Spark leaves the order open; here it is ascending, with NaN last, so that the same rows always give the same list.

    Parameters
    ----------
    column : str, optional
        A column of any type. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Notes
    -----
    Partials grow with the distinct values of a slice. Runtime complexity: O(n log n) for a window of n values.

    Examples
    --------
    >>> values = CollectSet()
    >>> values.lower(values.combine(values.lift(7), values.combine(values.lift(2), values.lift(7))))
    [2, 7]
    """

    name = "collect_set"
    commutative = True
    identity = ()

    def of_values(self, values: Iterable[Any]) -> tuple[Any, ...]:
        rows = list(values)
        if _PLAIN.issuperset(map(type, rows)):
            distinct = {v: v for v in rows}
            if all(map(operator.eq, distinct, distinct)):  # else there is a NaN
                return tuple(sorted(distinct.values()))
        keyed = {order_key(v): v for v in rows}
        return tuple(keyed[key] for key in sorted(keyed))

    def gather(self, partials: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        return self.of_values(chain.from_iterable(partials))

    def lower(self, partial: tuple[Any, ...]) -> list[Any]:
        return list(partial)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(types[0])


class Concat(_Gathering):
    """The strings that are not null, joined in event-time order; null when there are none.

    ``listagg`` and ``string_agg`` are Spark's names for it, with ``delimiter`` for ``separator``.

    Parameters
    ----------
    column : str, optional
        A column of strings or of bytes. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    separator : str or bytes
        What stands between two values.

    Notes
    -----
    Partials grow with the text of a slice. Runtime complexity: O(n) for a window of n characters, in time and memory.

    Examples
    --------
    >>> path = Concat("page", separator=" > ")
    >>> path.lower(path.combine(path.lift("home"), path.lift("cart")))
    'home > cart'
    """

    name = "concat"
    identity = None

    def __init__(self, column: str | None = None, separator: str | bytes = "") -> None:
        super().__init__(column)
        if not isinstance(separator, (str, bytes)):
            raise AggregateError(f"`separator` of `concat` must be a string; got {separator!r}: ', ' is one")
        self.separator = separator

    def parameters(self) -> tuple[Any, ...]:
        return (self.separator,) if self.separator else ()

    def of_values(self, values: Iterable[Any]) -> Any:
        return self.gather(list(values))

    def gather(self, partials: Sequence[Any]) -> Any:
        some = [p for p in partials if p is not None]
        if not some:
            return None
        return (self.separator or type(some[0])()).join(some)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.binary() if _is_binary(types[0]) else pa.string()

    def bind(self, *types: pa.DataType) -> Monoid:
        monoid = super().bind(*types)
        t = pa.types
        of = f" of column {self.columns[0]!r}" if self.columns else ""
        text = t.is_string(types[0]) or t.is_large_string(types[0]) or t.is_string_view(types[0])
        if not text and not _is_binary(types[0]):
            raise AggregateError(f"`concat`{of} needs strings; got {types[0]}: cast the column to string first")
        if self.separator and isinstance(self.separator, str) is not text:
            raise AggregateError(
                f"`concat`{of} joins {types[0]} by something of that type; got {self.separator!r}: "
                f"{', ' if text else b', '!r} is one"
            )
        return monoid


def _is_binary(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_))


def listagg(column: str | None = None, delimiter: str | bytes | None = None) -> Concat:
    """The strings that are not null, joined in event-time order; null when there are none. Spark's name of ``concat``.

    Parameters
    ----------
    column : str, optional
        A column of strings or of bytes. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    delimiter : str or bytes, optional
        What stands between two values; nothing by default.

    Returns
    -------
    Concat
        The aggregate.

    Examples
    --------
    >>> listagg("page", delimiter=", ")
    concat('page', ', ')
    """
    if delimiter is not None and not isinstance(delimiter, (str, bytes)):
        raise AggregateError(f"`delimiter` of `listagg` must be a string; got {delimiter!r}: ', ' is one")
    return Concat(column, "" if delimiter is None else delimiter)
