"""Policy windows: MTA's slide policies. Every row joins its key's window, then the oldest rows leave as they must.

Windows are found and answered in one go: what is asked of them is in the tree that the policy is asked about, so a step
takes what its rows take, however many are in the window.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate, Monoid, Parts, concat_parts, take_parts
from slicewise.aggregates.multi import Multi
from slicewise.amounts import ROWS, Measure
from slicewise.errors import StateError, UserCodeError
from slicewise.labels import RowLabel
from slicewise.slicing.rows.discretisers import Arrivals, Discretiser, Remembered, Retained
from slicewise.slicing.rows.monotonic import MeasuredRows, measures_of
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.policy_trees import Dimensions, KeyTrees, Leaf, Leaves, ShownRow, stored_nodes
from slicewise.slicing.rows.ticks import Ticks, TickState, is_by_position, next_tick, tick_memory, ticks_of
from slicewise.slicing.rows.user_windows import raise_first
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.swag.amta import AMTA
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stored_nodes import StoredNodes
from slicewise.swag.stores.base import Store
from slicewise.times import INFINITY
from slicewise.windows import Policy

__all__ = ["PolicyWindows"]


@dataclass(frozen=True, eq=False)
class _Memory:
    """What is remembered of the ticks, and of each key its window: as trees, or as state has it."""

    ticks: tuple[np.ndarray, np.ndarray]
    windows: dict[int, Any]


class PolicyWindows(Discretiser):
    """``policy``: after each row the longest prefix that the user's ``evict`` condemns leaves."""

    distinct = True

    def __init__(self, window: Any) -> None:
        super().__init__([window])
        self.window: Policy = window
        self.store: Store | None = getattr(window, "store", None)
        self.measures = measures_of(window)
        self.by_position = is_by_position(window.every)
        self.slide = None if window.every.measure == ROWS else window.every
        self.offset = window.offset
        self.dimensions = Dimensions(self._watched(), ())
        self._asked: Sequence[int] = ()
        self._query = ""
        self._key_of: Callable[[int], tuple[Any, ...]] = lambda key: ()

    def _watched(self) -> Aggregate:
        # Without anything to watch, there is something to keep a tree of all the same.
        return Multi(**dict(self.window.watch)) if self.window.watch else Multi(rows=Count())

    def answer(self, query: str, monoids: Mapping[int, Monoid], key_of: Callable[[int], tuple[Any, ...]]) -> None:
        """What is asked of the windows: further dimensions of the tree. Stores name it by query and key."""
        self._query, self._key_of = query, key_of
        self._asked = list(monoids)
        self.dimensions = Dimensions(self.dimensions.watched, list(monoids.values()))

    # State

    def save(self, memory: _Memory) -> Remembered:
        """The windows as data; those of keys that were not seen since it was read are data still."""
        windows = {k: w.to_data() if isinstance(w, KeyTrees) else w for k, w in memory.windows.items()}
        return Remembered(memory.ticks, windows)

    def load(self, data: Remembered) -> _Memory:
        final, last = data.arrays
        return _Memory((final, last), dict(data.by_key))

    # Windows

    def find_on(self, view: OrderedRows, step: Step, memory: _Memory | None) -> tuple[WindowRanges, Retained, _Memory]:
        """The windows due, what is needed after the step, and what to remember as of the new horizon."""
        counted = MeasuredRows(view, self.measures)
        seen = TickState.of(memory.ticks if memory else None, counted)
        ticks, base = ticks_of(self.window.every, counted, seen, step, self.offset)
        windows = dict(memory.windows) if memory else {}
        places = view.first_at(step.horizon)
        low, settled = counted.number_of(view.first_at(step.old_horizon)), counted.number_of(places)
        by_key = np.argsort(ticks.segment, kind="stable")
        bounds = np.searchsorted(ticks.segment[by_key], np.arange(len(view.keys) + 1))
        at_ticks = TickWindows(len(ticks.high), self._asked)
        failures: list[UserCodeError] = []
        for s in np.flatnonzero((low < counted.ends) | (bounds[1:] > bounds[:-1])).tolist():
            key, first = int(view.keys[s]), int(low[s])
            leaves = self._leaves(counted, first, int(counted.ends[s]))
            try:
                before = self._trees(key, windows.get(key), leaves, int(counted.starts[s] - base[s]) - first)
                windows[key], rows = before.advanced(leaves, int(settled[s]) - first, self._slid)
            except UserCodeError as error:
                failures.append(error)
                continue
            for tick in by_key[bounds[s] : bounds[s + 1]].tolist():
                number = int(ticks.high[tick]) - first
                at_ticks.put(
                    tick, rows[number - 1] if number else before.last, self._place(counted, first + number - 1)
                )
        raise_first(failures)
        # A tick may follow the last row of a key, which stays for that.
        needed = np.minimum(counted.place_of(np.maximum(settled - 1, counted.starts), places), places)
        ranges = at_ticks.ranges(self.window.every.measure, view, ticks)
        return ranges, Retained(needed, NO_ROWS), _Memory(tick_memory(counted, seen, base, step), windows)

    def next_due(self, came: Arrivals, watermark: int) -> tuple[int, int]:
        return (-INFINITY, 1) if self.measures else next_tick(self.window.every, came, watermark, self.offset)

    def _trees(self, key: int, kept: KeyTrees | Mapping[str, Any] | int | None, leaves: Leaves, shift: int) -> KeyTrees:
        """What is kept of a key. ``shift`` leads from positions to numbers of leaves.

        Earlier versions kept the position of the front alone, and all rows of the window: they are there once more.
        """
        if isinstance(kept, KeyTrees):
            if self.dimensions.is_like(kept.dimensions):
                return kept
            kept = kept.to_rows()
        if isinstance(kept, Mapping) and "ends" in kept:
            new_nodes = functools.partial(self._new_nodes, key)
            return KeyTrees.from_ends(kept, self.dimensions, self._stored(kept["name"]), new_nodes)
        nodes = self._new_nodes(key)
        if isinstance(kept, Mapping):
            return KeyTrees.from_rows(kept, self.dimensions, nodes)
        front = kept or 0
        rows = leaves.lift(front + shift, 0) if kept is not None else ()
        return KeyTrees.new(self.dimensions, rows, front, nodes)

    def _new_nodes(self, key: int) -> SharedNodes:
        """Where the nodes of a new tree go: a dictionary, or a store under the names of query and key."""
        if self.store is None:
            return SharedNodes()
        # Another tree for the same key, after a restart or with other queries, must not take the names of this one.
        nodes = self._stored(f"query {self._query!r}, key {self._key_of(key)!r}, tree {uuid.uuid4().hex[:12]}")
        nodes.pairs.claim()
        return nodes

    def _stored(self, name: str) -> StoredNodes:
        if self.store is None:
            raise StateError(f"the snapshot has left the nodes of {name} in a store; give it: policy(..., store=...)")
        return stored_nodes(self.store, name)

    def _slid(self, tree: AMTA) -> int:
        """Let the oldest rows leave; how many did."""
        return tree.enforce(self._evicts, monotone=self.window.monotone)

    def _evicts(self, total: Any, oldest: Any) -> bool:
        verdict = self.window.evict(total, oldest) if self.window.watch else self.window.evict({}, {})
        if not isinstance(verdict, (bool, np.bool_)):
            raise _VerdictError(f"must return true or false; got {verdict!r}")
        return bool(verdict)

    # Rows

    def _leaves(self, counted: MeasuredRows, low: int, high: int) -> Leaves:
        """The rows of a key from number ``low`` on, to be lifted when they are shown."""
        view, column = counted.view, self.window.every.measure.column

        def lifted(first: int, last: int) -> Iterator[Leaf]:
            some = slice(low + first, low + last)
            place = some if counted.rows is None else counted.rows[some]
            row = view.row_at(place)
            columns, times = view.rows.columns, counted.time[some]
            starts = np.arange(len(times))
            parts = [
                m.fold_rows({n: columns[n].take(row) for n in m.reads}, times, starts) for m in self.dimensions.monoids
            ]
            arrivals = view.first_arrival(place).tolist()
            on = [None] * len(times) if column is None else counted.measure(column)[some].tolist()
            firsts = list(zip(times.tolist(), arrivals, on, strict=True))
            watched = [columns[n].take(row).to_pylist() for n in self.dimensions.watched.columns]
            rows = zip(*watched, strict=True) if watched else [()] * len(times)
            lift = self.dimensions.watched.lift
            for i, values in enumerate(rows):
                yield Leaf(lift(*values), tuple(take_parts(p, slice(i, i + 1)) for p in parts), firsts[i], 1)

        arrivals = view.first_arrival(slice(low, high) if counted.rows is None else counted.rows[low:high])
        return Leaves(lifted, arrivals, lambda number, error: self._failed(counted, low + number, error))

    def _failed(self, counted: MeasuredRows, at: int, error: Exception) -> UserCodeError:
        what = str(error) if isinstance(error, _VerdictError) else f"raised {error!r}"
        label = RowLabel({}, int(counted.time[at]))
        return UserCodeError(repr(self.window), what, [self._place(counted, at)], label)

    @staticmethod
    def _place(counted: MeasuredRows, at: int) -> int:
        return at if counted.rows is None else int(counted.rows[at])


class _VerdictError(Exception):
    """A policy has answered something else than true or false."""


class TickWindows:
    """The windows at some ticks, with their partials: what windows on other rows find in cuts."""

    def __init__(self, ticks: int, components: Sequence[int]) -> None:
        self._rows: list[ShownRow | None] = [None] * ticks
        self._last = np.zeros(ticks, np.int64)
        self._part_of = {component: i for i, component in enumerate(components)}
        self._windows: list[Leaf] = []
        self._view: OrderedRows

    def put(self, tick: int, row: ShownRow, place: int) -> None:
        """A tick that follows a row at a place, and what the row came to."""
        self._rows[tick], self._last[tick] = row, place

    def ranges(self, measure: Measure, view: OrderedRows, ticks: Ticks) -> WindowRanges:
        """The windows that are not empty, each the only one of its range; bounds are in the measure of the ticks."""
        shown = [(i, row.front, row.window) for i, row in enumerate(self._rows) if row is not None and row.window]
        some = np.array([i for i, _, _ in shown], np.int64)
        self._windows, self._last, self._view = [window for _, _, window in shown], self._last[some], view
        if measure == ROWS:
            start = np.array([front for _, front, _ in shown], np.int64)
        elif measure.column is None:
            start = self._first(0)
        else:
            start = np.array([window.first[2] for window in self._windows])
        low = np.arange(len(some))
        return WindowRanges(
            np.zeros(len(some), np.int64),
            view.keys[ticks.segment[some]],
            low,
            low + 1,
            start,
            ticks.at[some],
            ticks.decided[some],
            repeats=None if ticks.repeats is None else ticks.repeats.take(some),
            partials=self,
        )

    def _first(self, which: int) -> np.ndarray:
        return np.array([window.first[which] for window in self._windows], np.int64)

    # What windows are made of

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over windows."""
        part = self._part_of[component]
        return concat_parts([self._windows[i].asked[part] for i in low.tolist()])

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and the last row of windows."""
        return self._first(0)[low], self._view.last_time(self._last[low])

    def content(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What tells whether windows still hold the same rows: arrivals of the first and last row, and how many."""
        count = np.array([self._windows[i].rows for i in low.tolist()], np.int64)
        return self._first(1)[low], self._view.last_arrival(self._last[low]), count
