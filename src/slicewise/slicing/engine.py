"""The engine: the slice manager. Keeps the slices of many keys, lets rows in, and answers watermark steps.

One step, :meth:`Engine.advance`, goes through the paper's cast in order: the pieces that the slicer cut since the last
step are merged into the slices (*update*), slices that nothing separates any more become one (*merge*), sessions are
composed, windows that ended or were corrected are looked up and answered, and slices that serve no window leave. State
is replaced only when the whole step has succeeded, so an error loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slicewise.aggregates.base import put_parts
from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.kernels import KeyTimeIndex
from slicewise.plan.plan import Plan
from slicewise.results import Block, Results
from slicewise.slicing.answers.answers import Reported, Reporter
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.context_aware import ContextAwareQueries, ContextAwareState, new_tracks
from slicewise.slicing.rows.discretisers import Step
from slicewise.slicing.rows.handover import waiting
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import ALL, PeriodicWindows
from slicewise.slicing.time.slicer import cut_rows, cut_stream
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.time.window_manager import Sessions, corrected_windows, ended_windows, find_sessions, no_windows
from slicewise.slicing.user_code import shown_columns, with_lifted
from slicewise.times import INFINITY

__all__ = ["Engine", "Lateness", "State"]

#: Fewer slices than this are not worth merging.
FEW_SLICES = 256


@dataclass(frozen=True, eq=False)
class State:
    """All that an engine knows, as data. Nothing here is ever changed in place.

    Attributes
    ----------
    watermark
        Every window that ended at or before it has been reported.
    latest
        The latest event time of any row that came.
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
    watermark: int = -INFINITY
    forgotten: int = -INFINITY
    latest: int = -INFINITY
    since: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    tracks: tuple[ContextAwareState, ...] = ()


@dataclass(frozen=True, eq=False)
class Lateness:
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
        if state is None:
            self.state = replace(self.state, tracks=new_tracks(plan))
        self.state = _with_user_code(self.state, plan)
        self.tracks = [ContextAwareQueries(plan, track) for track in self.state.tracks]
        # Where rows are put in order anyway, time slices get them from there, unless they keep rows of their own.
        feeds = bool(self.tracks) and bool(plan.windows or plan.gaps) and not plan.recomputed
        self._feeder = self.tracks[0] if feeds else None
        self.latest = self.state.latest
        # What came since the last step: slices cut from new rows, and the rows themselves where they are stored.
        self._pieces: list[Slices] = []
        self._rows: list[Tuples] = []
        # Slices may be merged when there are many; at once only if partials of one slice must be combined in order.
        in_any_order = all(m.aggregate.commutative for m in plan.monoids) or plan.ordered
        self._merges_late = in_any_order and not plan.recomputed
        self._merge_at = 0

    @property
    def horizon(self) -> int:
        """Windows that ended at or before it can be corrected no more."""
        return self._horizon(self.state.watermark)

    def _horizon(self, watermark: int) -> int:
        # Who corrects for longer than time lasts never closes a window.
        return watermark if abs(watermark) >= INFINITY else max(watermark - self.plan.workload.lateness, -INFINITY)

    # Rows in

    def judge(self, times: np.ndarray) -> Lateness:
        """Which rows are late, and which will only be known to be when sessions are composed."""
        nothing = np.empty(0, np.int64)
        if self.plan.ordered or self.horizon <= -INFINITY or times.min() > self.horizon:
            return Lateness(nothing, nothing)
        old = np.flatnonzero(times <= self.horizon)
        inside, still_open = self.windows.open_mask(times[old], self.horizon)
        if self.tracks:
            # A row at the horizon still counts where rows are counted; any earlier one would have.
            inside[:] = True
            still_open |= times[old] == self.horizon
        if not self.plan.gaps:
            return Lateness(old[inside & ~still_open], nothing)
        # A row joins an open session however old it is, if other rows lead from the session to it.
        return Lateness(nothing, old[~still_open & (times[old] + self.plan.gaps[-1] < self.horizon)])

    def insert(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column]) -> None:
        """Let rows in: cut them into slices, and store them where the plan says so."""
        if not len(times):
            return
        plan = self.plan
        pieces = self._cut(key, times, columns) if plan.windows or plan.gaps else []
        counted = [track.counted(key, times, columns, self.horizon) for track in self.tracks]
        for track, rows in zip(self.tracks, counted, strict=True):
            track.insert(rows, len(times))
        if pieces:
            self._pieces += pieces
            if plan.recomputed:
                stored = {name: columns[name] for name in plan.tuple_types} | shown_columns(columns)
                self._rows.append(Tuples.new(key, times, stored))
        self.latest = max(self.latest, int(times.max()))

    def _cut(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column]) -> list[Slices]:
        """Slices of new rows, without those that wait in a track until the watermark passes them."""
        plan = self.plan
        if self._feeder is not None:
            old = np.flatnonzero(times < max(self.state.watermark, self._feeder.state.since))
            if not len(old):
                return []
            if len(old) < len(times):
                key, times, columns = key[old], times[old], {name: c.take(old) for name, c in columns.items()}
        known = {"one_key": not plan.workload.keys, "in_order": plan.ordered}
        return cut_stream(key, times, columns, self.edges, plan.monoids, plan.recomputed, **known)

    def insert_slices(self, slices: Slices) -> None:
        """Let in slices that were cut elsewhere, at the edges of this plan; in any order."""
        if len(slices):
            self._pieces.append(slices)
            self.latest = max(self.latest, int(slices.last.max()))

    def next_due(self) -> tuple[int, int]:
        """For ordered streams: the event time of the first row that would let some window be reported, and after how
        many rows one would where rows are counted."""
        due = rows = INFINITY
        for track in self.tracks:
            at, many = track.next_due(self.state.watermark)
            due, rows = min(due, at), min(rows, many)
        if len(self.windows):
            following = np.minimum(self.windows.ended_by(ALL, self.state.watermark) + 1, self.windows.most)
            ends = self.windows.ends(ALL, following)
            due = min(due, int(np.where(ends > self.state.watermark, ends, INFINITY).min()))
        if self.plan.gaps:
            slices = self.state.slices
            alive = slices.last[slices.closed < len(self.plan.gaps)]
            waits = self._waiting([track.settled() for track in self.tracks]).time
            if len(alive) or len(waits):
                due = min(
                    due, int(min(alive.min(initial=INFINITY), waits.min(initial=INFINITY))) + self.plan.gaps[0] + 1
                )
        return due, rows

    def _waiting(self, tracks: Sequence[ContextAwareState]) -> Tuples:
        """The rows that are in no slice yet, of those that stand in the tracks."""
        if self._feeder is None:
            return Tuples.empty({})
        rows = tracks[0].rows
        return rows.take(waiting(rows, self.state.watermark, self._feeder.state.given))

    def forget(self, latest: int) -> None:
        """Note that rows up to this event time were turned away."""
        self.state = replace(self.state, forgotten=max(self.state.forgotten, latest + 1))

    # Results out

    def advance(self, watermark: int, keys: KeyTable) -> tuple[Results, list[Sessions]]:
        """Move the watermark: report what ended, correct what changed, drop what is over.

        Returns the results, and the sessions under each gap that rows could join in this step.
        """
        before, after = self.horizon, self._horizon(watermark)
        moved = self._advance_tracks(Step(before, watermark, after, self.state.watermark), keys)
        state = self._current([slices for _, _, slices in moved if slices is not None])
        slices, tuples, reported = state.slices, state.tuples, state.reported
        answers = self.reporter.answers(slices, keys, state.since, state.after)
        blocks: list[Block] = []
        open_sessions = []
        for level, gap in enumerate(self.plan.gaps):
            sessions = find_sessions(slices, gap, level)
            turned_away = sessions.end < before
            reported, more = answers.sessions(sessions, level, ~turned_away, watermark, reported)
            blocks += more
            over = turned_away | (sessions.end < after)
            slices, tuples = _close(slices, tuples, sessions, over, level)
            reported = reported.without_sessions_before(level, after)
            open_sessions.append(sessions.take(~turned_away))
        index = KeyTimeIndex(slices.key, slices.first, one_key=not self.plan.workload.keys)
        changed = no_windows()
        if self.plan.workload.lateness and state.watermark > -INFINITY:
            changed = corrected_windows(self.windows, slices, index, before, state.watermark)
        ended = ended_windows(self.windows, slices, index, state.watermark, watermark)
        reported, more = answers.windows(changed, ended, reported)
        blocks += more
        for _, more, _ in moved:
            blocks += more
        forgotten = state.forgotten
        if len(slices) >= self._merge_at or watermark >= INFINITY:
            slices, forgotten = self._without_old(slices, after, forgotten)
            tuples = tuples.behind(slices) if len(tuples) else tuples
            self._merge_at = 2 * len(slices) + FEW_SLICES if self._merges_late else 0
        self.state = State(
            slices=slices.reported(),
            tuples=tuples,
            reported=reported.without_windows_before(after),
            watermark=watermark,
            forgotten=forgotten,
            latest=self.latest,
            since=state.since,
            after=state.after,
            tracks=tuple(track for track, _, _ in moved),
        )
        for track, (after_step, _, _) in zip(self.tracks, moved, strict=True):
            track.commit(after_step)
        self._pieces, self._rows = [], []
        return Results(self.plan.schema, blocks), open_sessions

    def _advance_tracks(self, step: Step, keys: KeyTable) -> list[tuple[ContextAwareState, list[Block], Slices | None]]:
        try:
            return [t.advance(step, keys, self.edges if t is self._feeder else None) for t in self.tracks]
        except RefusedRowsError:
            self._take_back()
            raise

    def _take_back(self) -> None:
        """Cut the rows that a track has left out: they will not come from there any more."""
        for track in self.tracks:
            left_out, track.left_out = track.left_out, []
            if track is self._feeder:
                for rows in left_out:
                    rows = rows.take(waiting(rows, self.state.watermark, track.state.given))
                    if len(rows):
                        self._pieces.append(self._cut_rows(rows))

    def _cut_rows(self, rows: Tuples) -> Slices:
        return cut_rows(rows.key, rows.time, rows.columns, self.edges, self.plan.monoids)

    def _current(self, more: list[Slices]) -> State:
        """The state with what came since, merged if it is time to."""
        state, pieces = self.state, self._pieces + more
        if len(state.slices) + sum(map(len, pieces)) >= self._merge_at:
            return self._merged(pieces)
        slices = state.slices.joined(pieces)
        return State(
            slices,
            state.tuples,
            state.reported,
            state.watermark,
            state.forgotten,
            self.latest,
            state.since,
            state.after,
            state.tracks,
        )

    def settled(self) -> State:
        """The state with what came since merged into the slices, and no more slices than needed."""
        tracks = tuple(track.settled() for track in self.tracks)
        waits = self._waiting(tracks)
        state = self._merged(self._pieces + ([self._cut_rows(waits)] if len(waits) else []))
        return replace(state, tracks=tracks)

    def _merged(self, pieces: list[Slices]) -> State:
        """The state with these pieces merged into the slices."""
        state, plan = self.state, self.plan
        slices, forgotten = self._without_old(state.slices, self.horizon, state.forgotten)
        slices = slices.settled(pieces, self.edges, self.horizon, plan.gaps, plan.monoids)
        tuples = state.tuples
        if plan.recomputed:
            tuples = tuples.joined(self._rows, plan.order)
            slices = self._recomputed(slices, tuples)
        return replace(state, slices=slices, tuples=tuples, forgotten=forgotten, latest=self.latest)

    def _without_old(self, slices: Slices, horizon: int, forgotten: int) -> tuple[Slices, int]:
        """Without slices that serve no window any more, and the event time from which all rows are still there."""
        needed = slices.first >= self.windows.oldest_open_start(horizon)
        if self.plan.gaps:
            needed |= slices.closed < len(self.plan.gaps)
        if needed.all():
            return slices, forgotten
        return slices.take(np.flatnonzero(needed)), max(forgotten, int(slices.last[~needed].max()) + 1)

    def _recomputed(self, slices: Slices, tuples: Tuples) -> Slices:
        """Compute again, from the stored tuples, what depends on the order of rows."""
        overlapping = (slices.key[1:] == slices.key[:-1]) & (slices.first[1:] <= slices.last[:-1])
        if overlapping.any() and int(slices.rows.sum()) == len(tuples):
            # Rows of an open session lie among those of a closed one. Only slices that follow each other can be
            # combined in order, so they are split at each other's rows.
            cells = self.edges.needed_cells(tuples.time, self.horizon)
            return tuples.cut(cells, self.plan.gaps, self.plan.monoids)
        dirty = np.flatnonzero(slices.fresh)
        if not len(dirty):
            return slices
        rows, starts = tuples.rows_of(slices.take(dirty))
        parts = list(slices.parts)
        for i in self.plan.recomputed:
            fresh = tuples.fold(self.plan.monoids[i], rows, starts)
            parts[i] = put_parts(parts[i], dirty, fresh)
        return replace(slices, parts=tuple(parts))

    def _check(self) -> None:
        """The invariants, for tests."""
        self.state.slices._check(self.edges, self.horizon, self.plan.gaps)


def _with_user_code(state: State, plan: Plan) -> State:
    """The state with what user code says of stored rows, which is not saved with them."""
    tuples = with_lifted(state.tuples, plan) if plan.recomputed else state.tuples
    tracks = [replace(t, rows=with_lifted(t.rows, plan, np.flatnonzero(t.is_row))) for t in state.tracks]
    return replace(state, tuples=tuples, tracks=tuple(tracks))


def _close(slices: Slices, tuples: Tuples, sessions: Sessions, over: np.ndarray, level: int) -> tuple[Slices, Tuples]:
    """Mark the slices of sessions that are over, so that no row joins them again under this gap."""
    if not over.any():
        return slices, tuples
    members = np.zeros(len(sessions.slices) + 1, np.int64)
    np.add.at(members, sessions.low[over], 1)
    np.add.at(members, sessions.high[over], -1)
    done = sessions.slices[np.cumsum(members[:-1]) > 0]
    closed = slices.closed.copy()
    closed[done] = np.maximum(closed[done], level + 1)
    if len(tuples):
        tuples = tuples.marked(slices.take(done), closed[done])
    return replace(slices, closed=closed), tuples
