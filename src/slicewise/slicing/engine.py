"""The engine: the slice manager. Keeps the slices of many keys, lets rows in, and answers watermark steps.

One step, :meth:`Engine.advance`, goes through the paper's cast in order: the pieces that the slicer cut since the last
step are merged into the slices (*update*), slices that nothing separates any more become one (*merge*), sessions are
composed, windows that ended or were corrected are looked up and answered, and slices that serve no window leave. State
is replaced only when the whole step has succeeded, so an error loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slicewise.columns import Column
from slicewise.plan.plan import Plan
from slicewise.results import Block, Results
from slicewise.slicing.cutting import cut_rows
from slicewise.slicing.edges import Edges
from slicewise.slicing.kernels import KeyTimeIndex
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.periodic import NEVER, PeriodicWindows
from slicewise.slicing.reports import Reported, Reporter
from slicewise.slicing.slices import Slices
from slicewise.slicing.triggers import Sessions, corrected_windows, ended_windows, find_sessions, no_windows
from slicewise.slicing.tuples import Tuples

__all__ = ["Engine", "State", "Verdict"]


@dataclass(frozen=True, eq=False)
class State:
    """All that an engine knows, as data. Nothing here is ever changed in place.

    Attributes
    ----------
    watermark
        Every window that ended at or before it has been reported.
    pieces, rows
        What came since: slices cut from new rows, and the new rows themselves where they are stored.
    reported
        Results that may still be corrected and cannot be derived from the slices.
    forgotten
        Every row before this event time may have left the state: a query added later is complete from here on.
    since, after
        For each query, by name: it reports windows that start at or after ``since`` and are due after ``after``.
    """

    slices: Slices
    tuples: Tuples
    reported: Reported
    watermark: int = -NEVER
    pieces: tuple[Slices, ...] = ()
    rows: tuple[Tuples, ...] = ()
    forgotten: int = -NEVER
    latest: int = -NEVER
    since: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of rows on arrival: which are late, and which must wait for the next step to be judged."""

    late: np.ndarray
    waiting: np.ndarray


class Engine:
    """The slicing engine of one plan."""

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        self.plan = plan
        self.windows = PeriodicWindows(plan.windows)
        self.edges = Edges(self.windows, plan.gaps)
        self.reporter = Reporter(plan)
        self.state = state or State(
            Slices.empty(plan.monoids), Tuples.empty(plan.tuple_types), Reported.empty(len(plan.gaps))
        )

    @property
    def horizon(self) -> int:
        """Windows that ended at or before it can be corrected no more."""
        return self._horizon(self.state.watermark)

    def _horizon(self, watermark: int) -> int:
        return watermark if abs(watermark) >= NEVER else watermark - self.plan.workload.lateness

    # Rows in

    def judge(self, times: np.ndarray) -> Verdict:
        """Which rows are late, and which will only be known to be when sessions are composed."""
        nothing = np.empty(0, np.int64)
        old = np.flatnonzero(times <= self.horizon)
        if not len(old):
            return Verdict(nothing, nothing)
        inside, still_open = self.windows.open_mask(times[old], self.horizon)
        if not self.plan.gaps:
            return Verdict(old[inside & ~still_open], nothing)
        # A row joins an open session however old it is, if other rows lead from the session to it.
        return Verdict(nothing, old[~still_open & (times[old] + self.plan.gaps[-1] < self.horizon)])

    def insert(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column]) -> None:
        """Let rows in: cut them into slices, and store them where the plan says so."""
        if not len(times):
            return
        plan, state = self.plan, self.state
        pieces = cut_rows(key, times, columns, self.edges, plan.monoids, plan.recomputed)
        rows = state.rows
        if plan.recomputed:
            rows = (*rows, Tuples.new(key, times, {name: columns[name] for name in plan.tuple_types}))
        latest = max(state.latest, int(pieces.last.max()))
        self.state = replace(state, pieces=(*state.pieces, pieces), rows=rows, latest=latest)

    def next_due(self) -> int:
        """The first event time at which a row would let some window be reported; for ordered streams."""
        due = NEVER
        if len(self.windows):
            families = np.arange(len(self.windows))
            following = self.windows.ended_by(families, self.state.watermark) + 1
            due = int(self.windows.ends(families, following).min())
        if self.plan.gaps:
            state = self.settled()
            alive = state.slices.last[state.slices.closed < len(self.plan.gaps)]
            if len(alive):
                due = min(due, int(alive.min()) + self.plan.gaps[0] + 1)
        return due

    def forget(self, latest: int) -> None:
        """Note that rows up to this event time were turned away."""
        self.state = replace(self.state, forgotten=max(self.state.forgotten, latest + 1))

    # Results out

    def advance(self, watermark: int, keys: KeyTable) -> tuple[Results, list[Sessions]]:
        """Move the watermark: report what ended, correct what changed, drop what is over.

        Returns the results, and the sessions under each gap that rows could join in this step.
        """
        before, state = self.horizon, self.settled()
        slices, tuples = state.slices, state.tuples
        after = self._horizon(watermark)
        blocks: list[Block] = []
        answers = self.reporter.answers(slices, keys, state.since, state.after)
        reported, found = state.reported, []
        for level, gap in enumerate(self.plan.gaps):
            sessions = find_sessions(slices, gap, level)
            turned_away = sessions.end < before
            reported, more = answers.sessions(sessions, level, ~turned_away, watermark, reported)
            blocks += more
            over = turned_away | (sessions.end < after)
            slices, tuples = _close(slices, tuples, sessions, over, level, bool(self.plan.recomputed))
            reported = reported.without_sessions_before(level, after)
            found.append(sessions.take(~turned_away))
        index = KeyTimeIndex(slices.key, slices.first)
        changed = no_windows()
        if self.plan.workload.lateness and state.watermark > -NEVER:
            changed = corrected_windows(self.windows, slices, index, before, state.watermark)
        ended = ended_windows(self.windows, slices, index, state.watermark, watermark)
        reported, more = answers.windows(changed, ended, reported)
        blocks += more
        kept = self._still_needed(slices, after)
        forgotten = state.forgotten
        if not kept.all():
            forgotten = max(forgotten, int(slices.last[~kept].max()) + 1)
            slices = slices.take(np.flatnonzero(kept))
        self.state = replace(
            state,
            slices=slices.reported(),
            tuples=tuples.behind(slices) if len(tuples) else tuples,
            reported=reported.without_windows_before(after),
            watermark=watermark,
            forgotten=forgotten,
        )
        return Results(self.plan.schema, blocks), found

    def settled(self) -> State:
        """The state with the pieces merged into the slices, and no more slices than needed."""
        state, plan = self.state, self.plan
        slices = state.slices.settled(state.pieces, self.edges, self.horizon, plan.gaps, plan.monoids)
        tuples = state.tuples
        if plan.recomputed:
            tuples = tuples.joined(state.rows, plan.workload.order)
            slices = self._recomputed(slices, tuples)
        return replace(state, slices=slices, tuples=tuples, pieces=(), rows=())

    def _recomputed(self, slices: Slices, tuples: Tuples) -> Slices:
        """Compute again, from the stored tuples, what depends on the order of rows."""
        overlapping = (slices.key[1:] == slices.key[:-1]) & (slices.first[1:] <= slices.last[:-1])
        if overlapping.any() and int(slices.rows.sum()) == len(tuples):
            # Rows of an open session lie among those of a closed one. Only slices that follow each other can be combined
            # in order, so they are split at each other's rows.
            cells = self.edges.needed_cells(tuples.time, self.horizon)
            return tuples.cut(cells, self.plan.gaps, self.plan.monoids)
        dirty = np.flatnonzero(slices.fresh)
        if not len(dirty):
            return slices
        rows, starts = tuples.rows_of(slices.take(dirty))
        parts = list(slices.parts)
        for i in self.plan.recomputed:
            fresh = tuples.fold(self.plan.monoids[i], rows, starts)
            parts[i] = tuple(_replaced(p, dirty, f) for p, f in zip(parts[i], fresh, strict=True))
        return replace(slices, parts=tuple(parts))

    def _still_needed(self, slices: Slices, horizon: int) -> np.ndarray:
        kept = slices.first >= self.windows.oldest_open_start(horizon)
        if self.plan.gaps:
            kept |= slices.closed < len(self.plan.gaps)
        return kept

    def _check(self) -> None:
        """The invariants, for tests."""
        self.state.slices._check(self.edges, self.horizon, self.plan.gaps)


def _close(
    slices: Slices, tuples: Tuples, sessions: Sessions, over: np.ndarray, level: int, stored: bool
) -> tuple[Slices, Tuples]:
    """Mark the slices of sessions that are over, so that no row joins them again under this gap."""
    if not over.any():
        return slices, tuples
    members = np.zeros(len(sessions.slices) + 1, np.int64)
    np.add.at(members, sessions.low[over], 1)
    np.add.at(members, sessions.high[over], -1)
    done = sessions.slices[np.cumsum(members[:-1]) > 0]
    closed = slices.closed.copy()
    closed[done] = np.maximum(closed[done], level + 1)
    if stored:
        tuples = tuples.marked(slices.take(done), closed[done])
    return replace(slices, closed=closed), tuples


def _replaced(array: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = array.astype(np.result_type(array.dtype, values.dtype))
    if values.dtype == object:
        for i, value in zip(index.tolist(), values, strict=True):
            out[i] = value
    else:
        out[index] = values
    return out
