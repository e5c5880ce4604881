"""Edge windows: those of the user's own making whose edges user code places. A discretiser like those beside it.

User code is notified of rows in event-time order, key by key, and adds and removes edges, also behind the row. What it
remembers and the edges are kept as of the horizon, because the order of later rows may still change; these are shown
again in every step, so that edges are always those of one pass in order::

    event time        1     4      |     9    12        the horizon is at 7
    kept        object and edges --+
    shown again                          i    j

A row acts at or after the horizon that stood when it came. It is shown again until its order is final, and the horizon
moves on meanwhile; so edges, and windows, are *final* only before the horizons of all rows that may be shown again.
From there on rows are kept as such. A row that user code fails on counts in none of these windows, and stays for all
others.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.errors import UserCodeError
from slicewise.labels import RowLabel
from slicewise.results import OPEN_END
from slicewise.slicing.rows.context_edges import ContextEdges
from slicewise.slicing.rows.discretisers import Discretiser, Remembered, Retained
from slicewise.slicing.rows.monotonic import parted, reduced
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.user_windows import raise_first
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY, largest_time
from slicewise.windows import UserDefined

__all__ = ["EdgeWindows"]

#: The horizon when a row came: a column of rows.
HORIZON = "\0horizon"


@dataclass(frozen=True, eq=False)
class _Memory:
    """What is kept of one key as of the horizon: the user's object, and edges, of which those before ``final`` are."""

    thing: Any
    edges: ContextEdges
    final: int = -INFINITY


class EdgeWindows(Discretiser):
    """``user_defined`` whose object has ``notify_context``: windows between the edges that it places."""

    def __init__(self, window: UserDefined) -> None:
        super().__init__([window])
        self.window = window
        self.refusals = f"\0counts in {window!r}"
        self._largest = largest_time(window.unit)

    # Rows in

    @property
    def notes(self) -> Mapping[str, pa.DataType]:
        return {str(self.refusals): pa.bool_(), HORIZON: pa.int64()}

    def note(self, columns: Mapping[str, Column], horizon: np.ndarray) -> dict[str, Column]:
        counts = np.ones(len(horizon), np.int64)
        return {str(self.refusals): Column(counts, pa.bool_()), HORIZON: Column(horizon, pa.int64())}

    def mark_slices(self, view: OrderedRows, begins: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
        return {name: reduced(np.minimum, view.marks(name), begins, ends) for name in self.notes}

    # State

    def save(self, memory: dict[int, _Memory]) -> Remembered:
        return Remembered(
            (), {k: (copy.deepcopy(vars(m.thing)), *m.edges.to_data(), m.final) for k, m in memory.items()}
        )

    def load(self, data: Remembered) -> dict[int, _Memory]:
        return {key: self._loaded(*saved) for key, saved in data.by_key.items()}

    def _loaded(self, attributes: Mapping[str, Any], starts: Sequence[int], ends: Sequence[int], final: int) -> _Memory:
        thing = self.window.factory()
        vars(thing).update(copy.deepcopy(dict(attributes)))
        return _Memory(thing, ContextEdges(starts, ends, largest=self._largest), final)

    # Windows

    def find_on(
        self, view: OrderedRows, step: Step, memory: dict[int, _Memory] | None
    ) -> tuple[WindowRanges, Retained, dict[int, _Memory]]:
        """The windows due, what is needed after the step, and what to remember as of the new horizon."""
        kept = dict(memory or {})
        rows = _ShownRows(view, self)
        unshown, settled = view.first_at(step.old_horizon), view.first_at(step.horizon)
        final = rows.final(settled, step.horizon)
        due, begun = _Pieces(2), _Pieces(1)
        for s, key in enumerate(view.keys.tolist()):
            before = kept.get(key) or _Memory(self.window.factory(), ContextEdges(largest=self._largest))
            thing, edges = rows.show(before.thing, before.edges, int(unshown[s]), int(settled[s]))
            _, now = rows.show(thing, edges, int(settled[s]), int(view.ends[s]))
            kept[key] = _Memory(thing, edges.since(int(final[s])), int(final[s]))
            start, end = (np.array(bounds, np.int64) for bounds in now.windows())
            chosen = (end >= before.final) & (end <= step.watermark)
            due.add(s, start[chosen], end[chosen])
            begun.add(s, np.array(now.begun(int(final[s])), np.int64))
        raise_first(rows.failures)
        needed = view.index.locate(view.keys, final)
        begins = self._begins(view, begun, needed, rows.counts)
        return self._ranges(view, due, rows.counts, step.horizon, final), Retained(needed, begins), kept

    def _ranges(
        self, view: OrderedRows, due: _Pieces, counts: np.ndarray, horizon: int, final: np.ndarray
    ) -> WindowRanges:
        """Windows from the starts and ends that are due; those of no rows are left out."""
        segment, start, end = due.columns()
        key = view.keys[segment]
        low = view.index.locate(key, start)
        high = np.where(end < INFINITY, view.index.locate(key, end), view.ends[segment])
        some = None if counts.all() else np.flatnonzero(counts)
        if some is not None:
            low, high = np.searchsorted(some, low), np.searchsorted(some, high)
        # One that ends before the horizon, but not where edges are final, can change as long as one at the horizon.
        decided = np.where(end >= final[segment], np.maximum(end, min(horizon, INFINITY)), end)
        shown_end = np.where(end < INFINITY, end, OPEN_END)
        windows = WindowRanges(np.zeros(len(key), np.int64), key, low, high, start, shown_end, decided, some)
        return windows.take(np.flatnonzero(low < high))

    def _begins(self, view: OrderedRows, begun: _Pieces, needed: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Where slices must begin: with windows that are not final, and where rows begin or cease to count."""
        segment, start = begun.columns()
        begins = view.index.locate(view.keys[segment], start)
        return parted(view, counts, begins[begins < needed[segment]], needed)


class _Pieces:
    """Columns of numbers, key by key."""

    def __init__(self, columns: int) -> None:
        self._pieces: list[tuple[np.ndarray, ...]] = []
        self._columns = columns

    def add(self, segment: int, *columns: np.ndarray) -> None:
        """The numbers of one key."""
        if len(columns[0]):
            self._pieces.append((np.full(len(columns[0]), segment), *columns))

    def columns(self) -> tuple[np.ndarray, ...]:
        """Which key each is of, and the numbers."""
        if not self._pieces:
            return (NO_ROWS,) * (self._columns + 1)
        return tuple(np.concatenate(column) for column in zip(*self._pieces, strict=True))


class _ShownRows:
    """The rows of a step as user code is shown them.

    Attributes
    ----------
    counts
        For every place, whether its rows count: user code has not failed on them.
    failures
        An error for each row that it fails on in this step.
    """

    def __init__(self, view: OrderedRows, discretiser: EdgeWindows) -> None:
        self._view, self._window = view, discretiser.window
        self.counts: np.ndarray = view.marks(str(discretiser.refusals)) > 0
        self._horizon = view.marks(HORIZON)
        self.failures: list[UserCodeError] = []

    def final(self, settled: np.ndarray, horizon: int) -> np.ndarray:
        """For each key, before which time no row that may be shown again can act, nor a new one."""
        final = np.full(len(settled), horizon)
        for s, (low, high) in enumerate(zip(settled.tolist(), self._view.ends.tolist(), strict=True)):
            final[s] = min(horizon, int(self._horizon[low:high].min(initial=horizon)))
        return final

    def show(self, thing: Any, edges: ContextEdges, low: int, high: int) -> tuple[Any, ContextEdges]:
        """The object and the edges after some rows, without those that it fails on; as they were is left alone.

        A call that fails is undone by going back to the last copy and showing the rows since, without this one. Then a
        copy is made, so that however many calls fail, no row is shown more than twice because of it.
        """
        if low == high:
            return thing, edges
        kept, kept_at, copy_at = (thing, edges), low, -1
        thing, edges = copy.deepcopy(thing), edges.copy()
        calls, counts = self._calls(low, high), self.counts[low:high].tolist()
        at = low
        while at < high:
            if at == copy_at:
                kept, kept_at = (copy.deepcopy(thing), edges.copy()), at
            if counts[at - low]:
                error = self._notify(thing, edges, at, *calls[at - low])
                if error is not None:
                    self.failures.append(error)
                    self.counts[at] = counts[at - low] = False
                    thing, edges = copy.deepcopy(kept[0]), kept[1].copy()
                    at, copy_at = kept_at, at + 1
                    continue
            at += 1
        return thing, edges

    def _calls(self, low: int, high: int) -> list[tuple[int, dict[str, Any], int]]:
        """The time, the columns that are read and the horizon of each of some rows."""
        names = self._window.columns
        listed = [self._view.column(name, slice(low, high)).to_pylist() for name in names]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*listed, strict=True)]
        times, horizons = self._view.time[low:high].tolist(), self._horizon[low:high].tolist()
        return list(zip(times, rows or [{} for _ in times], horizons, strict=True))

    def _notify(
        self, thing: Any, edges: ContextEdges, at: int, time: int, row: dict[str, Any], horizon: int
    ) -> UserCodeError | None:
        """Show one row; the error if that fails."""
        edges.open(horizon)
        cause = None
        try:
            # A copy, because it may be shown again.
            thing.notify_context(time, row.copy(), edges)
            edges.check()
        except Exception as raised:
            cause = raised
        if cause is None and edges.failure is None:
            return None
        failure = edges.failure or f"raised {cause!r}"
        error = UserCodeError(repr(self._window), failure, [at], RowLabel({}, time))
        error.__cause__ = cause
        return error
