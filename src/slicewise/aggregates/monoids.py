"""Monoids: the algebra of an aggregate on arrays, for columns of known types. What the engine runs.

:mod:`slicewise.aggregates.base` has the aggregates, and makes monoids of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.parts import Parts, fold_pairwise, fold_ranges, rescaled, scan_pairwise
from slicewise.columns import Column, column_of_objects
from slicewise.errors import AggregateError

if TYPE_CHECKING:
    from slicewise.aggregates.base import Aggregate

__all__ = ["Monoid", "ObjectMonoid"]

#: No places at all, for those who ask in every step.
_NOWHERE = np.empty(0, np.int64)


class Monoid(ABC):
    """An aggregate on columns of known types: the same functions, on arrays of partials.

    :meth:`Aggregate.bind` makes it. A subclass gives ``lift``, ``combine`` and ``lower``.

    Parameters
    ----------
    aggregate : Aggregate
        The aggregate that is bound.
    types : sequence of pyarrow.DataType
        The types of its columns, in order.

    Attributes
    ----------
    result : pyarrow.DataType
        The type of what ``lower`` gives; ``pa.null()`` where it follows from the results alone.
    identity : tuple
        One scalar per part; combining with it changes nothing.
    dtypes : tuple of numpy.dtype
        One per part.
    exact : bool
        ``combine`` rounds nothing for these types, so that ``invert`` may be used freely.
    kept_as : tuple of str
        What each part holds, such as ``("total", "values")``, if other aggregates of the same columns hold it as well:
        parts of equal names, over equal columns, are kept once. Nothing for an aggregate that shares nothing.

    Notes
    -----
    Runtime complexity: ``lift``, ``combine`` and ``lower`` take O(n) for n rows or partials, in array steps; ``fold``
    takes O(n) combines, ``scan`` O(n log n) unless a subclass has a better way.

    Examples
    --------
    The sums of rows 0 and 1, and of row 2:

    >>> from slicewise.aggregates import sum
    >>> monoid = sum("v").bind(pa.int64())
    >>> partials = monoid.lift_fold([Column.of([1, 2, 40])], np.array([7, 8, 9]), np.array([0, 2]))
    >>> monoid.lower(partials).to_pylist()
    [3, 40]
    """

    #: How the names of columns begin that hold what user code made of rows; no column of the user's begins like this.
    LIFTED: ClassVar[str] = "\0lifted "

    result: pa.DataType
    identity: tuple[Any, ...]
    dtypes: tuple[np.dtype, ...]
    exact: bool = False
    kept_as: tuple[str, ...] = ()

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType]) -> None:
        self.aggregate = aggregate
        self.types = tuple(types)
        #: The columns of rows that `fold_rows` looks at.
        self.reads: tuple[str, ...] = aggregate.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """What each part is called where partials are kept; parts of equal labels are kept once."""
        of = ", ".join(map(repr, self.aggregate.columns)) or "rows"
        if self.kept_as:
            return tuple(f"{name} of {of}" for name in self.kept_as)
        return tuple(f"{i} of {self.aggregate!r}" for i in range(len(self.dtypes)))

    @property
    def is_shared(self) -> bool:
        """Whether parts may be shared with other aggregates: partials are combined in any order."""
        return bool(self.kept_as) and self.aggregate.commutative

    @abstractmethod
    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        """One partial per row. ``times`` are the rows' event times, ``columns`` the aggregate's input columns."""

    @abstractmethod
    def combine(self, a: Parts, b: Parts) -> Parts:
        """Element by element, the partials of ``a`` before those of ``b``."""

    @abstractmethod
    def lower(self, parts: Parts) -> Column:
        """One result per partial, of the type ``result``."""

    def invert(self, a: Parts, b: Parts) -> Parts:
        """Element by element, ``a`` without ``b``."""
        raise AggregateError(f"`{self.aggregate.name}` cannot be inverted; a partial cannot be taken out of it again")

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        """One partial per segment ``parts[starts[i]:starts[i + 1]]``; no segment is empty."""
        return fold_pairwise(self.combine, parts, starts)

    def over_ranges(self, parts: Parts, low: np.ndarray, high: np.ndarray) -> Parts:
        """The combination of the partials in each range ``[low, high)``, or what stands for it until it is lowered."""
        return fold_ranges(self.fold, parts, low, high)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        """``fold(lift(...))``: one partial per segment of rows. Override where lifting row by row is a waste."""
        return self.fold(self.lift(columns, times), starts)

    def fold_rows(self, columns: Mapping[str, Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        """One partial per segment of rows, from what the aggregate reads among their columns."""
        return self.lift_fold(list(map(columns.__getitem__, self.reads)), times, starts)

    def failed(self, parts: Parts) -> np.ndarray:
        """The places of partials that could not be computed, which only happens to user code."""
        return _NOWHERE

    def overfull(self, parts: Parts) -> np.ndarray:
        """The places of partials that have more categories than they may, and so no result."""
        return _NOWHERE

    def scan(self, parts: Parts) -> Parts:
        """Running combination over all partials."""
        return scan_pairwise(self.combine, parts)

    def scaled_by(self) -> tuple[int | None, ...]:
        """For each part that holds unscaled decimals, the number of the column whose scale it has; None for others."""
        return (None,) * len(self.dtypes)

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        """Partials from when the columns had these types, none wider than now, as partials of the present types."""
        out = []
        for part, column in zip(parts, self.scaled_by(), strict=True):
            if column is not None and pa.types.is_decimal(self.types[column]):
                digits = self.types[column].scale - types[self.aggregate.columns[column]].scale
                part = rescaled(part, digits) if digits else part
            out.append(part)
        return tuple(out)

    def upgraded(self, parts: Parts) -> Parts:
        """Partials as an older format kept them, as they are kept now."""
        return parts

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        """Partials of windows, each carried on to the end of its window, before they are lowered.

        For what depends on the time that passes after the last row. Called where windows end at an event time that is
        known without rows; of others, the last row is the end.
        """
        return parts

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:  # noqa: B027
        """Set the type and the unit of event times, for results that report them; int64 by default."""

    def break_ties_by_value(self) -> None:  # noqa: B027
        """Pick among rows of equal time by their values, where their order of arrival is not known.

        ``combine`` must then be commutative. For aggregates that are ``timed``.
        """

    def identities(self, n: int) -> Parts:
        """``n`` partials of no rows at all."""
        return tuple(map(_full, repeat(n), self.identity, self.dtypes))

    def __repr__(self) -> str:
        return f"{self.aggregate!r} on {', '.join(map(str, self.types)) or 'rows'}"


class ObjectMonoid(Monoid):
    """An aggregate on single values, run over arrays of Python objects."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types) or pa.null()
        self.identity = (aggregate.identity,)
        self.dtypes = (np.dtype(object),)
        # We trust user code on Python values: what it inverts, it inverts exactly.
        self.exact = aggregate.invertible
        self._combine = np.frompyfunc(aggregate.combine, 2, 1)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        out = np.empty(len(times), object)
        aggregate = self.aggregate
        if not columns:
            out[:] = [aggregate.lift() for _ in range(len(times))]
            return (out,)
        rows = zip(*(c.to_pylist() for c in columns), strict=True)
        if aggregate.skips_nulls and any(c.valid is not None for c in columns):
            lifted = [aggregate.identity if None in row else aggregate.lift(*row) for row in rows]
        else:
            lifted = [aggregate.lift(*row) for row in rows]
        _fill(out, lifted)
        return (out,)

    def combine(self, a: Parts, b: Parts) -> Parts:
        if not len(a[0]):
            return (np.empty(0, object),)
        with np.errstate(all="ignore"):  # NumPy would warn of floating point errors inside the objects
            return (self._combine(a[0], b[0]),)

    def invert(self, a: Parts, b: Parts) -> Parts:
        out = np.empty(len(a[0]), object)
        _fill(out, [self.aggregate.invert(x, y) for x, y in zip(a[0], b[0], strict=True)])
        return (out,)

    def lower(self, parts: Parts) -> Column:
        lowered = [self.aggregate.lower(p) for p in parts[0]]
        return column_of_objects(lowered, self.result)


def _fill(out: np.ndarray, values: Sequence[Any]) -> None:
    # `out[:] = values` would unpack values that are themselves sequences of one length into a second dimension.
    for i, value in enumerate(values):
        out[i] = value


def _full(n: int, value: Any, dtype: np.dtype) -> np.ndarray:
    out = np.empty(n, dtype)
    if dtype.hasobject:
        for i in range(n):
            out[i] = value
    else:
        out[:] = value
    return out
