"""Vectors: windows on several measures over one set of slices, all of whose rows are there.

Slices stand in the order of their rows and are cut at the edges of every measure, so that in each of them they are in
order, and no window begins or ends inside a slice. Windows on event time and sessions are the engine's; the others are
found here, by the first value of each slice in their measure. Rows without a measure are slices of their own, which
windows on that measure pass over::

    position   0   100   200   300          counts:     [0, 200) [200, 400)
    km         0         5     -            km:         [0, 5)   [5, 10)
    markers    0   0     1     1            punctuated: two windows
    slice      a   b     c     d
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from slicewise.aggregates.base import Parts
from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, enumerate_ranges, running_last, segment_starts, sorted_unique
from slicewise.plan.axes import Marks, Measure, Positions, Units
from slicewise.plan.plan import Group, Plan
from slicewise.results import INSERT, OPEN_END, Block
from slicewise.slicing.answers.answers import QueryFanOut
from slicewise.slicing.answers.lowering import Asked
from slicewise.slicing.answers.range_stores import STORES, Store
from slicewise.slicing.engine import Engine
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.slides import last_tick
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.window_manager import Windows, ended_windows, no_windows
from slicewise.times import INFINITY
from slicewise.windows import Sliding

__all__ = ["Composition", "find_windows"]


class Composition:
    """Answers every window of a plan over complete slices; ``measures`` are those of the plan's context windows."""

    def __init__(self, plan: Plan, measures: Sequence[Measure]) -> None:
        self.plan = plan
        self.measures = tuple(measures)
        self._on_time = replace(plan, context=())
        self._queries = [[QueryFanOut(_queries(group, m)) for group in plan.groups] for m in measures]

    def blocks(self, slices: Slices, firsts: Sequence[Column], keys: KeyTable) -> Iterator[Block]:
        """The results of all windows.

        Parameters
        ----------
        slices
            Sorted by key and, within a key, in the order of their first rows.
        firsts
            For each measure its value at the first row of each slice; null where rows have none.
        """
        if self.plan.windows or self.plan.gaps:
            engine = Engine(self._on_time)
            engine.insert_slices(slices)
            results, _ = engine.advance(INFINITY, keys)
            yield from results.blocks
        answers = _Answers(self.plan, slices, keys)
        for measure, first, queries in zip(self.measures, firsts, self._queries, strict=True):
            own = answers
            if first.valid is not None:
                some = np.flatnonzero(first.valid)
                own, first = _Answers(self.plan, slices.take(some), keys), first.take(some)
            if len(own.slices):
                found = find_windows(measure, own.slices, first.values)
                yield from own.blocks(found, queries, by_position=measure.by_position)


def _queries(group: Group, measure: Measure) -> list[np.ndarray]:
    return [group.context.get(place, np.empty(0, np.int64)) for place in measure.places]


# Where windows lie


def find_windows(measure: Measure, slices: Slices, first: np.ndarray) -> Windows:
    """The windows on one measure, each with the range of slices that it is made of."""
    if isinstance(measure, Marks):
        return _between_marks(slices, first)
    if isinstance(measure, Units) and not measure.gauge.exact:
        return _on_doubles(measure.windows, slices.key, first)
    if isinstance(measure, Positions):
        return _full_windows(measure.windows, slices, first)
    periodic = PeriodicWindows(measure.windows)
    index = KeyTimeIndex(slices.key, first)
    found = ended_windows(periodic, replace(slices, first=first, last=first), index, -INFINITY, INFINITY)
    if measure.gauge.scale:
        step = 10**measure.gauge.scale
        return replace(found, start=found.start / step, end=found.end / step)
    return found


def _full_windows(windows: Sequence[Sliding], slices: Slices, position: np.ndarray) -> Windows:
    """Windows on positions: those that end with a row or before, however many more the last rows lie in."""
    starts = segment_starts(slices.key[1:] != slices.key[:-1])
    keys, rows = slices.key[starts], np.add.reduceat(slices.rows, starts)
    index = KeyTimeIndex(slices.key, position)
    found = no_windows()
    for family, window in enumerate(windows):
        n, m = int(window.length.size), int(window.every.size)
        which, k = enumerate_ranges(np.zeros(len(keys), np.int64), (rows - n - window.offset) // m)
        key, start = keys[which], k * m + window.offset
        low, high = index.locate(key, start), index.locate(key, start + n)
        found = found.joined(_windows(np.full(len(k), family), key, start, start + n, low, high))
    return found


def _between_marks(slices: Slices, number: np.ndarray) -> Windows:
    """One window per number of markers passed; the last of a key has no end."""
    key = slices.key
    low = segment_starts((key[1:] != key[:-1]) | (number[1:] != number[:-1]))
    high = np.append(low[1:], len(key))
    end = np.full(len(low), OPEN_END)
    ended = np.flatnonzero(key[low[1:]] == key[low[:-1]])
    end[ended] = slices.first[low[ended + 1]]
    return _windows(np.zeros(len(low), np.int64), key[low], slices.first[low], end, low, high)


def _on_doubles(windows: Sequence[Sliding], key: np.ndarray, value: np.ndarray) -> Windows:
    """Windows on floating numbers, whose bounds are rounded; as rounded they are the bounds."""
    ranks = np.unique(value)
    index = KeyTimeIndex(key, np.searchsorted(ranks, value))
    found = no_windows()
    for family, window in enumerate(windows):
        length, every, offset = window.length.size, window.every.size, window.offset
        first = last_tick(value, every, offset, length) + 1
        last = last_tick(value, every, offset)
        # A slice adds the windows after those of the slice before it; it is the first slice of each.
        same = key[1:] == key[:-1]
        first[1:] = np.where(same, np.maximum(first[1:], last[:-1] + 1), first[1:])
        low, k = enumerate_ranges(first, last)
        start = k * every + offset
        high = index.locate(key[low], np.searchsorted(ranks, start + length))
        found = found.joined(_windows(np.full(len(low), family), key[low], start, start + length, low, high))
    return found


def _windows(
    family: np.ndarray, key: np.ndarray, start: np.ndarray, end: np.ndarray, low: np.ndarray, high: np.ndarray
) -> Windows:
    return Windows(family, key, start, end, low, high, np.zeros(len(family), bool))


# What they answer


class _Answers:
    """Answers over some slices; stores are built when first asked."""

    def __init__(self, plan: Plan, slices: Slices, keys: KeyTable) -> None:
        self.plan, self.slices, self.keys = plan, slices, keys
        self._stores: dict[int, Store] = {}

    def blocks(self, found: Windows, queries: Sequence[QueryFanOut], *, by_position: bool) -> Iterator[Block]:
        for group, expansion in zip(self.plan.groups, queries, strict=True):
            row, query = expansion.apply(found.family)
            if not len(query):
                continue
            asked = found if row is None else found.take(sorted_unique(row))
            named = Asked(
                self.plan,
                self.keys,
                partial(expansion.first_query, asked.family),
                asked.key,
                asked.start,
                asked.end,
                by_position,
            )
            values = tuple(named.lower(m, self._parts(m, asked)) for m in group.monoids)
            mine = found
            if row is not None:
                at = np.searchsorted(sorted_unique(row), row)
                values, mine = tuple(v.take(at) for v in values), found.take(row)
            marks = np.full(len(query), INSERT), np.zeros(len(query), np.int64)
            times = self._times(mine) if by_position else None
            yield Block(self.keys.decode(mine.key), query, mine.start, mine.end, *marks, values, times)

    def _parts(self, monoid: int, asked: Windows) -> Parts:
        bound = self.plan.monoids[monoid]
        if monoid not in self._stores:
            self._stores[monoid] = STORES[self.plan.stores[monoid].choice](bound, self.slices.parts[monoid])
        return self._stores[monoid].query(asked.low, asked.high)

    def _times(self, found: Windows) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and last row of windows."""
        # Slices of rows with and without some measure may lie among each other: the last one need not end last.
        last = running_last(self.slices.key, self.slices.last)
        return self.slices.first[found.low], last[found.high - 1]
