"""Answers: from windows over partials to result blocks. One answerer for time slices, ordered rows and batch.

Whoever finds windows says of which family each of them is (:class:`~slicewise.slicing.window_ranges.WindowRanges`) and
which queries ask for which family (:class:`QueryFanOut`); where the partials stand is a :class:`Partials`. Queries with
the same aggregates form a group, and share every value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from slicewise.aggregates.base import Parts, pick_parts, take_parts
from slicewise.columns import Column
from slicewise.kernels import enumerate_ranges
from slicewise.plan.plan import Group, Plan
from slicewise.results import RETRACT, Block
from slicewise.slicing.answers.lowering import Asked, joined_columns
from slicewise.slicing.answers.range_stores import STORES, LazyStore, Store
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.window_ranges import WindowRanges

__all__ = ["Answers", "Partials", "QueryFanOut", "ReportLimits", "StoredPartials"]


#: The queries of so few windows are put together one by one: that is faster than array code for all of them.
FEW_WINDOWS = 32


class Partials(Protocol):
    """What windows are ranges of."""

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over ranges, none of them empty."""

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and the last row of ranges."""


class StoredPartials:
    """The partials of slices in order; range stores are built when they are first asked.

    Parameters
    ----------
    parts
        For each of the plan's monoids the partials of all slices.
    some
        Which of the slices ranges are about; all of them if it is None.
    first, last
        Of those, the event times of the first and the last row, the last ones ascending within a key; only where times
        are asked for.
    disjoint
        No two ranges share a slice, so that each is folded once whatever the store: the lazy one.
    """

    def __init__(
        self,
        plan: Plan,
        parts: Sequence[Parts],
        *,
        some: np.ndarray | None = None,
        first: np.ndarray | None = None,
        last: np.ndarray | None = None,
        disjoint: bool = False,
    ) -> None:
        self.plan, self.disjoint = plan, disjoint
        self._parts, self._first, self._last, self._some = parts, first, last, some
        self._stores: dict[int, Store] = {}

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        store = self._stores.get(component)
        if store is None:
            planned = self.plan.components[component]
            parts = pick_parts(self._parts[planned.kept], planned.places)
            parts = parts if self._some is None else take_parts(parts, self._some)
            kind = LazyStore if self.disjoint else STORES[planned.store.choice]
            store = self._stores[component] = kind(planned.monoid, parts)
        return store.query(low, high)

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self._first is not None
        assert self._last is not None
        return self._first[low], self._last[high - 1]


class QueryFanOut:
    """Which queries of one group ask for which family of windows. A window is answered once, and reported for each."""

    def __init__(self, queries: Sequence[np.ndarray]) -> None:
        self._of_family = [np.asarray(q, np.int64) for q in queries]
        self._counts = np.array([len(q) for q in queries], np.int64)
        self._queries = np.concatenate([*queries, np.empty(0, np.int64)]).astype(np.int64)
        self._offset = np.cumsum(self._counts) - self._counts
        self._some_each = bool((self._counts > 0).all())
        self._one_each = bool((self._counts == 1).all())
        self._at_most_one = bool((self._counts <= 1).all())

    def of(self, family: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray]:
        """For windows of these families: which of them are asked for, and for each result its window and its query.

        None stands for all windows in order; the windows of results are positions among those that are asked for.
        """
        if self._one_each:
            return None, None, self._queries[family]
        if self._some_each and len(family) <= FEW_WINDOWS:
            query = np.concatenate([self._of_family[f] for f in family.tolist()])
            return None, np.arange(len(family)).repeat(self._counts[family]), query
        counts = self._counts[family]
        asked = None if self._some_each else counts.nonzero()[0]
        if asked is not None:
            family, counts = family[asked], counts[asked]
        low = self._offset[family]
        if self._at_most_one:
            return asked, None, self._queries[low]
        window, at = enumerate_ranges(low, low + (counts - 1))
        return asked, window, self._queries[at]

    def first_query(self, family: np.ndarray, at: int) -> int:
        """A query that has asked for the window at a place, when these are the families of windows."""
        return int(self._queries[self._offset[family[at]]])


@dataclass(frozen=True, eq=False)
class ReportLimits:
    """What queries that were added later must not report; one entry per query of the workload.

    A query reports windows that start at or after its ``start`` and are due after its ``due``.
    """

    start: np.ndarray
    due: np.ndarray

    @classmethod
    def of(cls, plan: Plan, start: Mapping[str, int], due: Mapping[str, int]) -> ReportLimits | None:
        """The limits of queries by name; None if there are none."""
        if not start and not due:
            return None
        names, lowest = [q.name for q in plan.workload.queries], np.iinfo(np.int64).min
        return cls(np.array([start.get(n, lowest) for n in names]), np.array([due.get(n, lowest) for n in names]))


class Answers:
    """Makes the result blocks of one step."""

    def __init__(self, plan: Plan, keys: KeyTable, limits: ReportLimits | None = None) -> None:
        self.plan, self.keys, self.limits = plan, keys, limits

    def blocks(
        self,
        windows: WindowRanges,
        queries: Sequence[QueryFanOut],
        partials: Partials,
        change: np.ndarray | None = None,
        revision: np.ndarray | None = None,
        *,
        by_position: bool = False,
        to_end: bool = False,
    ) -> list[Block]:
        """The results of windows, a block for each group of queries that asks for any of them.

        Parameters
        ----------
        queries
            For each of the plan's groups, which of its queries ask for which family.
        change, revision
            How each window is reported; all are new if nothing is said.
        by_position
            The bounds are positions or units; the event times of first and last rows are reported beside them.
        to_end
            The windows end at an event time that is known without rows, so that time passes after the last row.
        """
        count = len(windows.family)
        if not count:
            return []
        change = np.zeros(count, np.int64) if change is None else change  # INSERT
        revision = np.zeros(count, np.int64) if revision is None else revision
        blocks = []
        for group, fan_out in zip(self.plan.groups, queries, strict=True):
            asked, window, query = fan_out.of(windows.family)
            if not len(query):
                continue
            w = windows if asked is None else windows.take(asked)
            how = (change, revision) if asked is None else (change[asked], revision[asked])
            label = partial(fan_out.first_query, w.family)
            lowering = Asked(self.plan, self.keys, label, w.key, w.start, w.end, by_position, to_end)
            values = self._values(group, lowering, partials, w)
            times = w.times or (partials.times(w.low, w.high) if by_position else None)
            keys = self.keys.decode(w.key)
            block = Block(keys, query, w.start, w.end, how[0], how[1], values, times, w.repeats, window)
            blocks.append(self._finished(block, w.decided))
        return blocks

    def values(self, query: int, windows: WindowRanges, partials: Partials) -> tuple[Column, ...]:
        """The values of one query over windows on event time, also over those without rows."""
        lowering = Asked(
            self.plan,
            self.keys,
            lambda _: query,
            windows.key,
            windows.start,
            windows.end,
            by_position=False,
            to_end=True,
        )
        return self._values(self.plan.group_of(query), lowering, partials, windows)

    def _values(self, group: Group, lowering: Asked, partials: Partials, windows: WindowRanges) -> tuple[Column, ...]:
        """The results of a group's aggregates over windows. Aggregates of one component share its ranges."""
        held = windows.high > windows.low
        if not np.logical_and.reduce(held):
            return self._values_with_empty(group, lowering, partials, windows, held)
        ranges: dict[int, Parts] = {}
        values = []
        for aggregate in group.aggregates:
            answer = self.plan.answers[aggregate]
            if answer.component not in ranges:
                ranges[answer.component] = partials.query(answer.component, windows.low, windows.high)
            values.append(lowering.lower(answer.monoid, pick_parts(ranges[answer.component], answer.places)))
        return tuple(values)

    def _values_with_empty(
        self, group: Group, lowering: Asked, partials: Partials, windows: WindowRanges, held: np.ndarray
    ) -> tuple[Column, ...]:
        """The same where some windows have no rows: theirs is the value of no rows."""
        index, others = np.flatnonzero(held), np.flatnonzero(~held)
        some = self._values(group, lowering.take(index), partials, windows.take(index)) if len(index) else ()
        empty = lowering.take(others[:1])
        place = np.full(len(held), len(index))
        place[index] = np.arange(len(index))
        values = []
        for at, aggregate in enumerate(group.aggregates):
            monoid = self.plan.answers[aggregate].monoid
            nothing = empty.lower_nothing(monoid)
            values.append(joined_columns([*some[at : at + 1], nothing]).take(place))
        return tuple(values)

    def retractions(
        self, gone: ReportedWindows, queries: Sequence[QueryFanOut], *, by_position: bool = False
    ) -> list[Block]:
        """The withdrawal of windows that were reported and are no more."""
        if not len(gone):
            return []
        blocks = []
        for fan_out in queries:
            asked, window, query = fan_out.of(gone.family)
            if not len(query):
                continue
            w = gone if asked is None else gone.take(asked)
            marks = np.full(len(w), RETRACT), w.revision + 1
            nowhere = np.full(len(w), np.iinfo(np.int64).max)
            times = (nowhere, nowhere) if by_position else None
            keys = self.keys.decode(w.key)
            block = Block(keys, query, w.start, w.end, *marks, (), times, window=window)
            blocks.append(self._finished(block, w.until + 1))
        return blocks

    def _finished(self, block: Block, due: np.ndarray) -> Block:
        """Leave out what a query must not report; ``due`` says of each window when it is."""
        if self.limits is not None:
            query = block.query
            window = np.arange(len(query)) if block.window is None else block.window
            fits = (block.start[window] >= self.limits.start[query]) & (due[window] > self.limits.due[query])
            block = replace(block, query=query[fits], window=window[fits])
        return block if block.window is None or block.repeats is None else block.of_each_query()
