"""Filtered aggregates: only rows that meet a condition count, ``sw.count().where("kind = 'view'")``. SQL's FILTER.

The condition is a computed column like any other, the last of the aggregate's. Partials are those of the aggregate
inside: rows that do not meet the condition are skipped when they are folded, and nothing else knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, put_parts
from slicewise.amounts import Amount
from slicewise.columns import Column, type_name
from slicewise.conditions.expression import Expression, check_truth, true_rows
from slicewise.errors import AggregateError

__all__ = ["Filtered", "FilteredMonoid", "WrappedMonoid", "filtered", "unfiltered"]


class Filtered(Aggregate):
    """An aggregate of the rows that meet a condition; made by :meth:`Aggregate.where`.

    Attributes
    ----------
    inner : Aggregate
        The aggregate without the condition.
    counted : Aggregate
        The same, whose computed columns are null where the condition is not met: what does not count cannot fail.
    condition : Expression
        The condition, as the name of its column.
    """

    skips_nulls = False  # the aggregate inside decides

    def __init__(self, inner: Aggregate, condition: Expression) -> None:
        computed = tuple(c.where(condition) if isinstance(c, Expression) else c for c in inner.columns)
        super().__init__(*computed, condition)
        self.inner, self.condition = inner, condition
        self.counted = inner.over(*computed)
        self.name = inner.name
        self.identity = inner.identity
        self.commutative, self.invertible = inner.commutative, inner.invertible
        self.selective, self.timed, self.kind = inner.selective, inner.timed, inner.kind

    @property
    def base(self) -> Aggregate:
        return self.inner.base

    @property
    def lengths(self) -> Mapping[str, Amount]:
        return self.inner.lengths

    def in_unit(self, unit: str | None) -> Self:
        inner = self.inner.in_unit(unit)
        return self if inner is self.inner else type(self)(inner, self.condition)

    def lift(self, *values: Any) -> Any:
        """The last of the values says whether the row counts."""
        *inner, counts = values
        skipped = not counts or (self.inner.skips_nulls and None in inner)
        return self.identity if skipped else self.inner.lift(*inner)

    def combine(self, a: Any, b: Any) -> Any:
        return self.inner.combine(a, b)

    def lower(self, partial: Any) -> Any:
        return self.inner.lower(partial)

    def invert(self, a: Any, b: Any) -> Any:
        return self.inner.invert(a, b)

    def result_type(self, *types: pa.DataType) -> pa.DataType | None:
        return self.inner.result_type(*types[:-1])

    def bind(self, *types: pa.DataType) -> Monoid:
        if types and not (pa.types.is_boolean(types[-1]) or pa.types.is_null(types[-1])):
            raise AggregateError(
                f"`where` of {self!r} must be true or false; got {type_name(types[-1])}: compare it with something"
            )
        return FilteredMonoid(self, types, self.counted.bind(*types[:-1]))

    def parameters(self) -> tuple[Any, ...]:
        return (self.inner,)

    def __repr__(self) -> str:
        return f"{self.inner!r}.where({self.condition.text!r})"


def filtered(aggregate: Aggregate, condition: Any) -> Filtered:
    """The aggregate over the rows that meet a condition; a second condition must be met too."""
    test = check_truth(condition, "where")
    if not isinstance(aggregate, Filtered):
        return Filtered(aggregate, test)
    return Filtered(aggregate.inner, Expression(f"({aggregate.condition.text}) and ({test.text})"))


def unfiltered(aggregate: Aggregate) -> Aggregate:
    """The aggregate without its condition, if it has one."""
    return aggregate.inner if isinstance(aggregate, Filtered) else aggregate


class WrappedMonoid(Monoid):
    """A monoid whose partials are those of another one."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType], inner: Monoid) -> None:
        super().__init__(aggregate, types)
        self.inner = inner
        self.identity, self.dtypes, self.kept_as = inner.identity, inner.dtypes, inner.kept_as
        self.result, self.exact = inner.result, inner.exact

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self.inner.combine(a, b)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return self.inner.invert(a, b)

    def lower(self, parts: Parts) -> Column:
        return self.inner.lower(parts)

    def upgraded(self, parts: Parts) -> Parts:
        return self.inner.upgraded(parts)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self.inner.fold(parts, starts)

    def over_ranges(self, parts: Parts, low: np.ndarray, high: np.ndarray) -> Parts:
        return self.inner.over_ranges(parts, low, high)

    def scan(self, parts: Parts) -> Parts:
        return self.inner.scan(parts)

    def identities(self, n: int) -> Parts:
        return self.inner.identities(n)

    def overfull(self, parts: Parts) -> np.ndarray:
        return self.inner.overfull(parts)

    def scaled_by(self) -> tuple[int | None, ...]:
        return self.inner.scaled_by()

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        return self.inner.widened(parts, types)

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        return self.inner.until(parts, ends)

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self.inner.set_time_type(type_, unit)
        self.result = self.inner.result

    def break_ties_by_value(self) -> None:
        self.inner.break_ties_by_value()


class FilteredMonoid(WrappedMonoid):
    """The aggregate inside on the rows that meet the condition; of segments without any, the identity."""

    aggregate: Filtered

    @property
    def condition(self) -> Expression:
        """The column that says which rows count."""
        return self.aggregate.condition

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self._of_some(columns, times, np.arange(len(times)), lambda c, t, _: self.inner.lift(c, t))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return self._of_some(columns, times, starts, self.inner.lift_fold)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{label} where {self.condition.text}" for label in self.inner.labels)

    def _of_some(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray, fold: Any) -> Parts:
        *inner, condition = columns
        counts = true_rows(condition)
        if counts.all():
            return fold(inner, times, starts)  # type: ignore[no-any-return]
        index = np.flatnonzero(counts)
        # How many rows that count stand before each segment, and behind the last.
        before = np.searchsorted(index, np.append(starts, len(times)))
        some = np.flatnonzero(before[1:] > before[:-1])
        parts = self.identities(len(starts))
        if not len(some):
            return parts
        folded = fold([c.take(index) for c in inner], times[index], before[some])
        return put_parts(parts, some, folded)
