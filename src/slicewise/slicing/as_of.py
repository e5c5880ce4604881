"""As of: what windows hold at points in time, for many points of many keys at once. Behind ``attach``.

Rows are sorted once, by key and time. What a window holds as of a point is then a range of rows, whose ends are found
by search. Points in order have ranges in order, so that a piece of the points needs a piece of the rows and no more:
one after the other they are answered by the range stores that the plan has chosen, and memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, concat_parts, pick_parts, take_parts
from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, expand_ranges
from slicewise.plan.plan import Plan
from slicewise.slicing.answers.doubling_store import DoublingStore
from slicewise.slicing.answers.lowering import Asked, joined_columns
from slicewise.slicing.answers.range_stores import STORES, Store
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.time.tuples import Tuples

__all__ = ["AsOf", "Points"]

#: How many rows, and how many points, a piece has at least; more where single ranges are long.
SPAN = 2**16
#: How many rows are folded at once where the rows of each point are folded by themselves.
FOLDED = 2**20
#: How many times the rows of the longest range a piece has: rows that two pieces need are looked at twice.
RANGES_IN_A_PIECE = 4


@dataclass(frozen=True, eq=False)
class Points:
    """Points in time, sorted by key and time."""

    key: np.ndarray
    time: np.ndarray

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: slice | np.ndarray) -> Points:
        """The points at ``index``."""
        return Points(self.key[index], self.time[index])


@dataclass(frozen=True, eq=False)
class Ranges:
    """What one window holds as of some points: ranges of rows, and the bounds that messages show."""

    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def take(self, index: slice | np.ndarray) -> Ranges:
        """Those at ``index``."""
        return Ranges(self.low[index], self.high[index], self.start[index], self.end[index])


class AsOf:
    """The queries of a workload as of points.

    Parameters
    ----------
    plan
        Made ``over_rows``.
    keys
        What the numbers of keys stand for.
    """

    def __init__(self, plan: Plan, keys: KeyTable) -> None:
        self.plan, self.keys = plan, keys
        queries = plan.workload.queries
        self._places = {a: i for i, a in enumerate(plan.aggregates)}
        #: The queries that ask for each component.
        self._asking: dict[int, list[int]] = {}
        for number, query in enumerate(queries):
            for aggregate in query.aggregates.values():
                asking = self._asking.setdefault(plan.answers[self._places[aggregate]].component, [])
                if number not in asking:
                    asking.append(number)

    def columns(self, rows: Tuples, points: Points) -> list[Column]:
        """The columns of all queries, one value for each point."""
        index = KeyTimeIndex(rows.key, rows.time)
        ranges = [self._ranges(number, index, points) for number in range(len(self.plan.workload.queries))]
        pieces = [
            self._piece(rows, points.take(piece), [r.take(piece) for r in ranges]) for piece in _pieces(ranges, points)
        ]
        if not pieces:
            return self.nothing(0)
        return [joined_columns(columns) for columns in zip(*pieces, strict=True)]

    def first_needed(self, rows: Tuples, key: int, time: int) -> int:
        """The first of some rows that points of a key at a time or later may hold."""
        point = Points(np.array([key]), np.array([time]))
        index = KeyTimeIndex(rows.key, rows.time)
        return min(int(self._ranges(n, index, point).low[0]) for n in range(len(self.plan.workload.queries)))

    def nothing(self, n: int) -> list[Column]:
        """The columns of ``n`` points that have no rows."""
        none = np.zeros(n, np.int64)
        columns: list[Column] = []
        for number in range(len(self.plan.workload.queries)):
            ranges = Ranges(none, none, none, none)
            columns += self._lowered(number, Points(none, none), ranges, {})
        return columns

    def _ranges(self, number: int, index: KeyTimeIndex, points: Points) -> Ranges:
        held = self.plan.workload.queries[number].window.as_of(points.time)
        high = index.locate(points.key, held.behind)
        # Of "neither" end of a length of 1 nothing is left, and the first instant inside lies behind the last.
        low = np.minimum(index.locate(points.key, held.first), high)
        if held.rows is not None:
            low = np.maximum(low, high - held.rows)
        return Ranges(low, high, held.start, held.end)

    # One piece

    def _piece(self, rows: Tuples, points: Points, ranges: list[Ranges]) -> list[Column]:
        first, last = min(int(r.low[0]) for r in ranges), max(int(r.high[-1]) for r in ranges)
        partials = _RowPartials(self.plan, rows.take(slice(first, last)))
        distinct = [_distinct(r) for r in ranges]
        some = [r.take(index) for r, (index, _) in zip(ranges, distinct, strict=True)]
        held = [np.flatnonzero(r.high > r.low) for r in some]
        parts = self._parts(partials, [r.take(h) for r, h in zip(some, held, strict=True)], first)
        columns: list[Column] = []
        for number in range(len(self.plan.workload.queries)):
            index, of_point = distinct[number]
            asked = {component: of_query[number] for component, of_query in parts.items() if number in of_query}
            lowered = self._lowered(number, points.take(index), some[number], asked)
            columns += lowered if of_point is None else [column.take(of_point) for column in lowered]
        return columns

    def _parts(self, partials: _RowPartials, ranges: list[Ranges], first: int) -> dict[int, dict[int, Parts]]:
        """For each component and each query that asks for it, the partials of its ranges, none of them empty."""
        parts: dict[int, dict[int, Parts]] = {}
        for component, asking in self._asking.items():
            sizes = [len(ranges[number].low) for number in asking]
            if not sum(sizes):
                continue
            # All at once, so that what a store prepares is prepared once.
            low = np.concatenate([ranges[number].low for number in asking]) - first
            high = np.concatenate([ranges[number].high for number in asking]) - first
            together = partials.query(component, low, high)
            ends = np.cumsum(sizes).tolist()
            parts[component] = {
                number: take_parts(together, slice(end - size, end))
                for number, size, end in zip(asking, sizes, ends, strict=True)
            }
        return parts

    def _lowered(self, number: int, points: Points, ranges: Ranges, parts: Mapping[int, Parts]) -> list[Column]:
        """The values of a query: of its ranges with rows from their partials, of the others that of no rows."""
        query = self.plan.workload.queries[number]
        to_end = not query.window.counts_rows
        with_rows, without = np.flatnonzero(ranges.high > ranges.low), np.flatnonzero(ranges.high <= ranges.low)
        columns = []
        for aggregate in query.aggregates.values():
            answer = self.plan.answers[self._places[aggregate]]
            lowered: list[Column] = []
            if len(with_rows):
                picked = pick_parts(parts[answer.component], answer.places)
                lowered.append(self._asked(number, points, ranges, with_rows, to_end).lower(answer.monoid, picked))
            if len(without) or not len(with_rows):
                one = self._asked(number, points, ranges, without[:1], False)
                lowered.append(one.lower_nothing(answer.monoid))
            place = np.full(len(ranges.low), len(with_rows))
            place[with_rows] = np.arange(len(with_rows))
            columns.append(lowered[0] if not len(without) else joined_columns(lowered).take(place))
        return columns

    def _asked(self, number: int, points: Points, ranges: Ranges, index: np.ndarray, to_end: bool) -> Asked:
        bounds = ranges.start[index], ranges.end[index]
        return Asked(self.plan, self.keys, lambda _: number, points.key[index], *bounds, to_end=to_end)


class _RowPartials:
    """The partials of single rows in order; range stores are built when they are first asked."""

    def __init__(self, plan: Plan, rows: Tuples) -> None:
        self.plan, self.rows = plan, rows
        self._parts: dict[int, Parts] = {}

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over ranges, none of them empty."""
        planned = self.plan.components[component]
        choice = planned.store.choice
        if choice == "rows":
            return pick_parts(self._folded(self.plan.monoids[planned.kept], low, high), planned.places)
        if planned.kept not in self._parts:
            every = np.arange(len(self.rows))
            monoid = self.plan.monoids[planned.kept]
            self._parts[planned.kept] = monoid.fold_rows(self.rows.columns, self.rows.time, every)
        parts = pick_parts(self._parts[planned.kept], planned.places)
        kind: type[Store] = DoublingStore if choice == "doubling" else STORES[choice]
        return kind(planned.monoid, parts).query(low, high)

    def _folded(self, monoid: Monoid, low: np.ndarray, high: np.ndarray) -> Parts:
        """The rows of each range folded by themselves, so many at once that memory stays bounded."""
        before = np.concatenate([[0], np.cumsum(high - low)])
        out, at = [], 0
        while at < len(low):
            end = max(int(np.searchsorted(before, before[at] + FOLDED, "right")) - 1, at + 1)
            index, starts = expand_ranges(low[at:end], high[at:end])
            out.append(self.rows.fold(monoid, index, starts))
            at = end
        return concat_parts(out)


def _pieces(ranges: Sequence[Ranges], points: Points) -> Iterator[slice]:
    """Pieces of points in order, whose ranges together do not span many more rows than the longest of them."""
    if not len(points):
        return
    low = np.minimum.reduce([r.low for r in ranges])
    high = np.maximum.reduce([r.high for r in ranges])
    at = 0
    while at < len(points):
        span = SPAN
        while True:
            end = min(int(np.searchsorted(low, low[at] + span, "right")), at + max(span, SPAN))
            longest = int((high[at:end] - low[at:end]).max())
            if RANGES_IN_A_PIECE * longest <= span or end == len(points):
                break
            span = RANGES_IN_A_PIECE * longest
        yield slice(at, end)
        at = end


def _distinct(ranges: Ranges) -> tuple[slice | np.ndarray, np.ndarray | None]:
    """One of each of the ranges that neighbouring points share, as those of a tumbling window, and whose each is."""
    new = np.ones(len(ranges.low), bool)
    new[1:] = (ranges.low[1:] != ranges.low[:-1]) | (ranges.high[1:] != ranges.high[:-1])
    new[1:] |= (ranges.end[1:] != ranges.end[:-1]) | (ranges.start[1:] != ranges.start[:-1])
    index = np.flatnonzero(new)
    if 2 * len(index) > len(new):
        return slice(None), None
    return index, np.cumsum(new) - 1
