"""Aggregates by category: a map from the values of a column to the aggregate of their rows, ``sw.sum("v").by("kind")``.

The partial of a slice is a run of categories, ascending, with the partials of the aggregate inside beside it. Partials
are folded by putting the runs of all slices end to end, sorting them once, and folding equal categories with the
functions of the aggregate inside, for all slices and categories in one call::

    slice 0   a: 3   c: 1          a: 3   b: 4   c: 1 + 2
    slice 1   b: 4   c: 2    ->
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, ObjectMonoid, Parts, rescaled, take_parts
from slicewise.aggregates.checks import is_orderable
from slicewise.aggregates.filtered import Filtered
from slicewise.aggregates.guarded import is_user_code
from slicewise.aggregates.ordering import order_keys
from slicewise.amounts import Amount
from slicewise.columns import Column, physical_dtype, type_name
from slicewise.errors import AggregateError, QueryError
from slicewise.kernels import segment_lengths, segment_starts
from slicewise.ragged import Ragged

__all__ = ["By", "ByMonoid", "categorised"]


class By(Aggregate):
    """An aggregate for each value of a column; made by :meth:`Aggregate.by`.

    Attributes
    ----------
    inner : Aggregate
        The aggregate of each category.
    category : str
        The column whose values are the categories.
    most : int
        A window with more categories has no value.
    """

    kind = "holistic"
    skips_nulls = False

    def __init__(self, inner: Aggregate, category: str, most: int) -> None:
        super().__init__(*inner.columns, category)
        self.inner, self.category, self.most = inner, category, most
        self.name = inner.name
        self.commutative, self.timed = inner.commutative, inner.timed
        self.identity: dict[Any, Any] = {}

    def over(self, *columns: str) -> Aggregate:
        return By(self.inner.over(*columns[:-1]), columns[-1], self.most)

    @property
    def base(self) -> Aggregate:
        return self.inner.base

    @property
    def lengths(self) -> Mapping[str, Amount]:
        return self.inner.lengths

    def in_unit(self, unit: str | None) -> Self:
        inner = self.inner.in_unit(unit)
        return self if inner is self.inner else type(self)(inner, self.category, self.most)

    def lift(self, *values: Any) -> Any:
        """The last of the values is the category."""
        *inner, category = values
        if category is None:
            return {}
        skipped = self.inner.skips_nulls and None in inner
        return {category: self.inner.identity if skipped else self.inner.lift(*inner)}

    def combine(self, a: Any, b: Any) -> Any:
        both = {c: self.inner.combine(a[c], b[c]) for c in a.keys() & b.keys()}
        return {**a, **b, **both}

    def lower(self, partial: Any) -> Any:
        if len(partial) > self.most:
            return None
        return {category: self.inner.lower(partial[category]) for category in sorted(partial)}

    def result_type(self, *types: pa.DataType) -> pa.DataType | None:
        inner = self.inner.result_type(*types[:-1])
        return None if inner is None else pa.map_(types[-1], inner)

    def bind(self, *types: pa.DataType) -> Monoid:
        _check_categories(self, types[-1])
        if is_user_code(self.inner):
            return UserByMonoid(self, types)
        return ByMonoid(self, types, self.inner.bind(*types[:-1]))

    def parameters(self) -> tuple[Any, ...]:
        return (self.inner, self.most)

    def __repr__(self) -> str:
        return f"{self.inner!r}.by({self.category!r}, most={self.most})"


def categorised(aggregate: Aggregate, category: Any, most: Any) -> Aggregate:
    """The aggregate for each category; a condition that rows must meet comes before."""
    if isinstance(aggregate, Filtered):
        return Filtered(categorised(aggregate.inner, category, most), aggregate.condition)
    if isinstance(aggregate, By):
        raise QueryError(
            f"{aggregate!r} has categories already; got {category!r} too; make one column of both, as in "
            "sw.expr(\"case when a = 1 then 'x' else b end\")",
            parameter="by",
        )
    if not isinstance(category, str) or not category:
        raise QueryError(f"`by` must name a column, or be an expression; got {category!r}", parameter="by")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise QueryError(f"`most` must be a number of categories, 1 or more; got {most!r}", parameter="most")
    return By(aggregate, category, most)


def _check_categories(aggregate: By, type_: pa.DataType) -> None:
    if pa.types.is_floating(type_) or not is_orderable(type_):
        raise AggregateError(
            f"`by` of {aggregate!r} cannot take {type_name(type_)}: floats that look the same may differ, and lists, "
            "structs and maps have no order; cast the column, or round it to a decimal"
        )


class UserByMonoid(ObjectMonoid):
    """A user's aggregate by category: one dictionary per slice, so that each call of theirs can fail alone."""

    aggregate: By

    def overfull(self, parts: Parts) -> np.ndarray:
        return np.flatnonzero([len(partial) > self.aggregate.most for partial in parts[0]])


class ByMonoid(Monoid):
    """One ragged part: the categories of a slice, ascending, and the partial of each.

    Runtime complexity: O(c log c) for c categories of all slices to make partials or to merge them, in array steps.
    """

    aggregate: By

    def __init__(self, aggregate: By, types: Sequence[pa.DataType], inner: Monoid) -> None:
        super().__init__(aggregate, types)
        self.inner = inner
        self.dtypes = (self._none(0).dtype,)
        self.identity = ((),)
        self._set_result()

    def _none(self, n: int) -> Ragged:
        return Ragged(np.zeros(n, np.int64), np.empty(0, physical_dtype(self.types[-1])), *self.inner.identities(0))

    def _set_result(self) -> None:
        inner = self.inner.result
        self.result = pa.null() if pa.types.is_null(inner) else pa.map_(self.types[-1], inner)

    def identities(self, n: int) -> Parts:
        return (self._none(n),)

    # Rows

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self.lift_fold(columns, times, np.arange(len(times)))

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        *inputs, category = columns
        if not len(starts):
            return self.identities(0)
        entry = np.repeat(np.arange(len(starts)), segment_lengths(starts, len(times)))
        rows = np.flatnonzero(category.mask[starts[0] :])

        def fold(order: np.ndarray, heads: np.ndarray) -> Parts:
            index = starts[0] + rows[order]
            return self.inner.lift_fold([c.take(index) for c in inputs], times[index], heads)

        return self._grouped(category.values[starts[0] + rows], entry[rows], len(starts), fold)

    # Partials

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        runs: Ragged = parts[0]
        if not len(starts):
            return self.identities(0)
        if starts[0]:
            runs, starts = runs[int(starts[0]) :], starts - starts[0]
        entry = np.repeat(np.arange(len(starts)), np.add.reduceat(runs.lengths, starts))
        categories, *inner = runs.columns

        def fold(order: np.ndarray, heads: np.ndarray) -> Parts:
            return self.inner.fold(take_parts(tuple(inner), order), heads)

        return self._grouped(categories, entry, len(starts), fold)

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = len(a[0])
        by_pairs = np.arange(2 * n).reshape(2, n).T.reshape(-1)
        return self.fold((Ragged.concat([a[0], b[0]])[by_pairs],), np.arange(0, 2 * n, 2))

    def _grouped(
        self, categories: np.ndarray, entry: np.ndarray, count: int, fold: Callable[[np.ndarray, np.ndarray], Parts]
    ) -> Parts:
        """One run per entry; ``fold`` is given places by category, in their own order, and where each begins."""
        if not len(entry):
            return self.identities(count)
        keys = order_keys(categories, np.ones(len(entry), bool))
        order = np.lexsort((keys, entry))  # stable: what comes first within a category stays so
        keys, entry = keys[order], entry[order]
        heads = segment_starts((entry[1:] != entry[:-1]) | (keys[1:] != keys[:-1]))
        lengths = np.bincount(entry[heads], minlength=count)
        return (Ragged(lengths, categories[order[heads]], *fold(order, heads)),)

    # Results

    def overfull(self, parts: Parts) -> np.ndarray:
        return np.flatnonzero(parts[0].lengths > self.aggregate.most)

    def lower(self, parts: Parts) -> Column:
        valid = parts[0].lengths <= self.aggregate.most
        runs: Ragged = parts[0] if valid.all() else parts[0][np.flatnonzero(valid)]
        categories, *inner = runs.columns
        keys = Column(categories, self.types[-1]).to_pylist()
        values = self.inner.lower(tuple(inner)).to_pylist()
        out, bounds = np.empty(len(valid), object), np.append(runs.starts, len(keys)).tolist()
        for i, (low, high) in zip(np.flatnonzero(valid).tolist(), itertools.pairwise(bounds), strict=True):
            out[i] = dict(zip(keys[low:high], values[low:high], strict=True))
        return Column(out, self.result, None if valid.all() else valid)

    # What the plan says of it

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        categories, *inner = parts[0].columns
        was, now = types[self.aggregate.category], self.types[-1]
        digits = now.scale - was.scale if pa.types.is_decimal(now) else 0
        wider = rescaled(categories, digits) if digits else categories
        return (Ragged(parts[0].lengths, wider, *self.inner.widened(tuple(inner), types)),)

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        categories, *inner = parts[0].columns
        lengths = parts[0].lengths
        return (Ragged(lengths, categories, *self.inner.until(tuple(inner), np.repeat(ends, lengths))),)

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self.inner.set_time_type(type_, unit)
        self._set_result()

    def break_ties_by_value(self) -> None:
        self.inner.break_ties_by_value()
