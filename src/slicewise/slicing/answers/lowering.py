"""Lowering: from the partials of windows to their results, and whose result it is where there can be none.

The one place where the engine calls ``Monoid.lower``. An aggregate does not know what its partials belong to; what asks
for answers does, and says it in :class:`Asked`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, take_parts
from slicewise.aggregates.guarded import GuardedMonoid
from slicewise.columns import Column, column_of_objects
from slicewise.errors import OverflowInWindowError, OverfullError, UserCodeInWindowError
from slicewise.labels import WindowLabel
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.results import OPEN_END
from slicewise.slicing.keys import KeyTable

__all__ = ["Asked", "joined_columns"]


@record
class Asked:
    """Windows that are about to be answered, one entry each.

    Attributes
    ----------
    query_of
        The position in the workload of a query that has asked for the window at a place; called only for an error.
    by_position
        The bounds are positions or units, and not event times.
    to_end
        The windows end at an event time that is known without rows.
    """

    plan: Plan
    keys: KeyTable
    query_of: Callable[[int], int]
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    by_position: bool = False
    to_end: bool = False

    def lower(self, bound: Monoid, parts: Parts) -> Column:
        """The results of one of the plan's aggregates over these windows, from their partials."""
        if self.to_end:
            parts = bound.until(parts, self.end)
        overfull = bound.overfull(parts)
        if len(overfull):
            reason = f"{bound.aggregate!r} has more categories than `most` allows"
            self.plan.failures.append(OverfullError(reason, self.label(int(overfull[0])), len(overfull) - 1))
        if type(bound) is GuardedMonoid:  # a check by isinstance of an abstract class takes longer than all of this
            return self._lower_user_code(bound, parts)
        try:
            return bound.lower(parts)
        except OverflowInWindowError:
            at = _first_to_fail(bound, parts)
            try:
                bound.lower(take_parts(parts, slice(at, at + 1)))
            except OverflowInWindowError as error:
                raise OverflowInWindowError(error.reason, self.label(at)) from None
            raise

    def lower_nothing(self, bound: Monoid) -> Column:
        """The result of no rows, for the first of these windows."""
        return replace(self, to_end=False).lower(bound, bound.identities(min(len(self.key), 1)))

    def take(self, index: np.ndarray) -> Asked:
        """The windows at ``index``."""
        return replace(
            self,
            query_of=lambda at: self.query_of(int(index[at])),
            key=self.key[index],
            start=self.start[index],
            end=self.end[index],
        )

    def _lower_user_code(self, bound: GuardedMonoid, parts: Parts) -> Column:
        """The results of an aggregate of the user's; those that failed are null, and noted."""
        column, failures = bound.lower_each(parts)
        if failures:
            at, failure = next(iter(failures.items()))
            self.plan.failures.append(UserCodeInWindowError(failure.text, self.label(at), len(failures) - 1))
        return column

    def label(self, at: int) -> WindowLabel:
        """Whose the window at a place is."""
        schema = self.plan.schema
        key = dict(zip(schema.key_names, self.keys.key(int(self.key[at])), strict=True))
        start, end = self.start[at].item(), self.end[at].item()
        time_type = None if self.by_position else schema.time_type
        name = self.plan.workload.queries[self.query_of(at)].name
        return WindowLabel(name, key, start, None if end == OPEN_END else end, time_type, schema.unit)


def _first_to_fail(monoid: Monoid, parts: Parts) -> int:
    """The place of the first partial that cannot be lowered, found by halves."""
    low, high = 0, len(parts[0])
    while high - low > 1:
        middle = (low + high) // 2
        try:
            monoid.lower(take_parts(parts, slice(low, middle)))
        except OverflowInWindowError:
            high = middle
        else:
            low = middle
    return low


def joined_columns(columns: Sequence[Column]) -> Column:
    """Columns of one result end to end."""
    if len(columns) == 1:
        return columns[0]
    if all(column.type == columns[0].type for column in columns):
        return Column.concat(list(columns))
    # The type follows from the values, of which a piece may have none.
    return column_of_objects([value for column in columns for value in column.to_pylist()], columns[0].type)
