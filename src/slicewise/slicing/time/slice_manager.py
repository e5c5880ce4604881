"""The slice manager: the slices of many keys on event time. Lets rows in, answers watermark steps.

One step, :meth:`SliceManager.advance`, goes through the paper's cast in order: the slices that the slicer cut since the
last step are merged into those that are kept (*update*), slices that nothing separates any more become one (*merge*),
sessions are composed, windows that ended or were corrected are looked up and answered, and slices that serve no window
leave. The state after a step is taken only when the whole step has succeeded, so an error loses nothing.

Steps of few rows leave the slices where they are (:class:`~slicewise.slicing.time.standing_slices.StandingSlices`), so
that they cost what they touch; any other step sorts and merges all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from slicewise.aggregates.base import put_parts
from slicewise.columns import Column
from slicewise.plan.plan import Plan
from slicewise.ragged import Ragged
from slicewise.records import record
from slicewise.results import Block
from slicewise.slicing.answers.answers import Answers, QueryFanOut, StoredPartials
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.answers.reported_ticks import ReportedTicks
from slicewise.slicing.intake.shown_columns import shown_columns
from slicewise.slicing.steps import Step
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.empty_windows import EmptyWindows
from slicewise.slicing.time.panels import Panels, Ticks, slide_of
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slicer import cut_rows, cut_stream
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.standing_slices import StandingSlices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.time.window_manager import (
    Sessions,
    SortedSlices,
    WindowSlices,
    due_windows,
    entries_of,
    find_sessions,
)
from slicewise.times import INFINITY, Extent

__all__ = ["SliceManager", "TimeState", "TimeStep"]

#: Fewer slices than this are not worth merging.
FEW_SLICES = 256
#: With fewer slices than this, to sort and merge them is as fast as to leave them where they are.
WORTH_STANDING = 16
#: A step of so few new slices leaves slices where they are, and of one more for so many slices that are held, up to a
#: number: to take in one where it stands takes about as long as to sort and merge so many.
FEW_NEW, SLICES_PER_NEW, MOST_NEW = 4, 1000, 64
#: So few new slices may wait for the next step, which then is still one of few.
FEW_WAITING = FEW_NEW // 2
#: How often slices that serve no window leave while slices stand: a step of one row would take half as long again.
STEPS_OF_LEAVING = 16
#: So many rows of a step for each slice that is held take longer than to put the slices where they will stand.
ROWS_PER_SLICE = 16


@record
class TimeState:
    """What is kept for windows on event time, as data. Nothing here is ever changed in place.

    Attributes
    ----------
    tuples
        The rows behind the slices, where partials alone are not enough.
    reported
        Results that may still be corrected and cannot be derived from the slices; families are the plan's windows,
        then its session gaps.
    complete_from
        Every row before this event time may have left the state: a query added later is complete from here on.
    ticks
        Where only differences are reported, the ticks that they may still differ from.
    """

    slices: Slices
    tuples: Tuples
    reported: ReportedWindows = field(default_factory=ReportedWindows.none)
    complete_from: int = -INFINITY
    ticks: Ticks = field(default_factory=dict)

    @classmethod
    def empty(cls, plan: Plan) -> TimeState:
        """Nothing seen."""
        return cls(Slices.empty(plan.monoids), Tuples.empty(plan.tuple_types))

    def to_data(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "slices": self.slices.to_data(),
            "tuples": self.tuples.to_data(),
            "reported": self.reported.to_data(),
            "complete_from": self.complete_from,
            "ticks": {name: ticks.to_data() for name, ticks in self.ticks.items()},
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> TimeState:
        """The state from what :meth:`to_data` gave."""
        return cls(
            Slices.from_data(data["slices"]),
            Tuples.from_data(data["tuples"]),
            ReportedWindows.from_data(data["reported"]),
            data["complete_from"],
            {name: ReportedTicks.from_data(ticks) for name, ticks in data.get("ticks", {}).items()},
        )

    @property
    def keys(self) -> np.ndarray:
        """The numbers of the keys of which something is known, sorted, each once."""
        ticks = [numbers for ticks in self.ticks.values() for numbers in (ticks.key, ticks.due_key)]
        return np.unique(np.concatenate([self.slices.key, self.reported.key, *ticks]))

    def renumbered(self, numbers: np.ndarray) -> TimeState:
        """The state after keys got other numbers; the order of keys stays."""
        return replace(
            self,
            slices=replace(self.slices, key=numbers[self.slices.key]),
            tuples=replace(self.tuples, key=numbers[self.tuples.key]),
            reported=replace(self.reported, key=numbers[self.reported.key]),
            ticks={name: ticks.renumbered(numbers) for name, ticks in self.ticks.items()},
        )


@record
class TimeStep:
    """What a step came to: the state after it, its results, and under each gap the sessions that rows could join."""

    state: TimeState
    blocks: list[Block]
    sessions: list[Sessions]


class SliceManager:
    """The time slices of one plan."""

    def __init__(self, plan: Plan, state: TimeState) -> None:
        self.plan = plan
        self._state = state
        #: The same slices, where steps leave them; None while steps sort and merge all of them.
        self._standing: StandingSlices | None = None
        #: Whether the slices that stand were asked in a step, how far back they are needed after it, and how many
        #: such steps there were.
        self._stood, self._settles, self._steps = True, -INFINITY, 0
        #: The slices of the state, if they are those that stand.
        self._known_slices: Slices | None = None
        self.windows = PeriodicWindows(plan.windows, plan.workload.keys)
        self.edges = Edges(self.windows, plan.gaps)
        #: For each group, the queries of every window, then those of every session gap.
        self._queries = [QueryFanOut(plan.time_queries(group)) for group in plan.groups]
        self._panels, self._slide = Panels(plan) if plan.panels else None, slide_of(plan)
        self._empty = EmptyWindows(plan) if plan.filled else None
        self._one_key = not plan.workload.keys
        # What came since the last step: slices cut from new rows, and the rows themselves where they are stored.
        self._new_slices: list[Slices] = []
        self._new_rows: list[Tuples] = []
        #: The monoids that no window over time slices asks for, and those that are not computed when rows are cut.
        self._unasked = _unasked(plan)
        self._left_out = self._unasked.union(plan.recomputed)
        # Slices may be merged when there are many; at once only if partials of one slice must be combined in order.
        in_any_order = all(m.aggregate.commutative for m in plan.monoids) or plan.ordered
        self._merges_late = in_any_order and not plan.recomputed
        self._merge_at = 0
        # Parts that hold several values each cannot be changed where they are.
        ragged = any(isinstance(part, Ragged) for monoid in plan.monoids for part in monoid.identities(0))
        self._can_stand = self._merges_late and bool(plan.windows) and not (plan.gaps or plan.context or ragged)
        # Which rows were there when is of interest only where results are corrected or compared.
        self._can_wait = self._can_stand and not (plan.workload.lateness or plan.panels)

    @property
    def state(self) -> TimeState:
        """The state after the last step."""
        if self._standing is not None and self._state.slices is not self._known_slices:
            self._known_slices = self._standing.slices()
            self._state = replace(self._state, slices=self._known_slices)
        return self._state

    @state.setter
    def state(self, state: TimeState) -> None:
        self._state, self._standing = state, None

    @property
    def held(self) -> int:
        """How many slices are held, without those of rows that came since the last step."""
        return len(self._state.slices) if self._standing is None else self._standing.count

    # Rows in

    def insert(
        self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], extent: Extent | None = None
    ) -> None:
        """Cut rows into slices, and store them where the plan says so; ``extent`` if it is known."""
        plan = self.plan
        self._new_slices += cut_stream(
            key, times, columns, self.edges, plan.monoids, self._left_out, one_key=self._one_key, extent=extent
        )
        if plan.recomputed:
            stored = {name: columns[name] for name in plan.tuple_types} | shown_columns(columns)
            self._new_rows.append(Tuples.new(key, times, stored))

    def insert_slices(self, slices: Slices) -> None:
        """Let in slices that were cut elsewhere, at the edges of this plan; in any order."""
        self._new_slices.append(slices)

    def cut(self, rows: Tuples) -> Slices:
        """Slices of rows that are kept elsewhere."""
        return cut_rows(rows.key, rows.time, rows.columns, self.edges, self.plan.monoids, self._unasked)

    def forget(self, latest: int) -> None:
        """Note that rows up to this event time were turned away."""
        self._state = replace(self._state, complete_from=max(self._state.complete_from, latest + 1))

    def next_due(self, watermark: int, waiting: np.ndarray) -> int:
        """For ordered streams: the event time of the first row that would let some window be reported.

        ``waiting`` are the event times of rows that will be handed over.
        """
        due = self.windows.next_end(watermark)
        if self.plan.gaps:
            slices = self.state.slices
            alive = slices.last[slices.closed_gaps < len(self.plan.gaps)]
            if len(alive) or len(waiting):
                oldest = min(alive.min(initial=INFINITY), waiting.min(initial=INFINITY))
                due = min(due, int(oldest) + self.plan.gaps[0] + 1)
        return due

    # Results out

    def can_wait(self, step: Step) -> bool:
        """Whether what came may wait for a later step: nothing is due in this one, and there is not much of it yet."""
        if not self._can_wait or self.windows.may_end(step.old_watermark, step.watermark):
            return False
        return sum([len(piece.key) for piece in self._new_slices]) <= FEW_WAITING

    def advance(self, step: Step, answers: Answers, handed_over: Slices | None = None) -> TimeStep:
        """Report what ended, correct what changed, drop what is over; gives the state after it, which is not yet taken.

        ``handed_over`` are slices of rows that waited elsewhere until the watermark passed them.
        """
        if self._can_stand and self._stands(step):
            return self._advance_standing(step, answers)
        self.state = self.state
        state = self._current(step.old_horizon, self._received(handed_over))
        slices, tuples, reported = state.slices, state.tuples, state.reported
        blocks: list[Block] = []
        open_sessions = []
        for level, gap in enumerate(self.plan.gaps):
            sessions = find_sessions(slices, gap, level)
            closed = sessions.end < step.old_horizon
            reported, results = self._report_sessions(sessions, level, ~closed, step, reported, slices, answers)
            blocks += results
            slices, tuples = _close(slices, tuples, sessions, closed | (sessions.end < step.horizon), level)
            open_sessions.append(sessions.take(~closed) if np.logical_or.reduce(closed) else sessions)
        sorted_slices = SortedSlices(self.plan, slices, one_key=self._one_key)
        reported, ticks, results = self._report_windows(step, reported, sorted_slices, answers)
        blocks += results
        forgotten = state.complete_from
        if len(slices) >= self._merge_at or step.watermark >= INFINITY:
            slices, forgotten = self._without_old(slices, step.horizon, forgotten)
            tuples = tuples.behind(slices) if len(tuples) else tuples
            self._merge_at = 2 * len(slices) + FEW_SLICES if self._merges_late else 0
        after = TimeState(slices.reported(), tuples, reported.correctable(step.horizon), forgotten, ticks)
        return TimeStep(after, blocks, open_sessions)

    def commit(self, state: TimeState) -> None:
        """Take the state after a step."""
        if self._standing is not None:
            self._standing.settle()
            self._steps += 1
            left = None
            if self._steps % STEPS_OF_LEAVING == 0:
                left = self._standing.leave(self._oldest_needed(self._settles))
            if left is not None and left >= state.complete_from:
                state = replace(state, complete_from=left + 1)
            self._state, self._known_slices = state, None
            return
        came = sum(int(piece.rows.sum()) for piece in self._new_slices) if self._can_stand and self._stood else 0
        self.state = state
        self._new_slices, self._new_rows = [], []
        if came and len(state.slices) >= FEW_SLICES and came <= ROWS_PER_SLICE * len(state.slices):
            # Slices that were cut anew from about as many rows: the next step may be a small one.
            self._stand()

    def compacted(self, horizon: int, handed_over: Slices | None = None) -> TimeState:
        """The state with what came since merged into the slices, and no more slices than needed."""
        return self._merged(horizon, self._new_slices + self._received(handed_over))

    def joined(self, horizon: int, handed_over: Slices | None = None) -> TimeState:
        """The state with what came since, in the slices in which it is held. Few slices are merged first, for good."""
        if not self._merges_late:
            return self.compacted(horizon, handed_over)
        if handed_over is None and self.held + sum(map(len, self._new_slices)) < FEW_SLICES:
            self.state, self._new_slices = self._merged(horizon, self._new_slices), []
            return self.state
        new = self._new_slices + self._received(handed_over)
        return replace(self.state, slices=self.state.slices.joined(new))

    # Inside

    def _stands(self, step: Step) -> bool:
        """Whether a step leaves slices where they are: it has few new ones, and few windows to look up."""
        if step.watermark >= INFINITY or step.old_watermark <= -INFINITY:
            return False
        standing = self._standing
        held = len(self._state.slices) if standing is None else standing.count
        if held < WORTH_STANDING if standing is None else standing.is_wasteful:
            return False
        new = sum([len(piece.key) for piece in self._new_slices])
        if new > min(FEW_NEW + held // SLICES_PER_NEW, MOST_NEW):
            return False
        passed = step.watermark - step.old_watermark
        return self._one_key or (passed // self.windows.shortest + 1) * len(self.windows) <= held

    def _stand(self) -> StandingSlices:
        standing = StandingSlices(self.plan, self._state.slices, self.edges.next_edge)
        self._standing, self._known_slices, self._stood = standing, self._state.slices, False
        return standing

    def _advance_standing(self, step: Step, answers: Answers) -> TimeStep:
        """A step that costs what it touches. New slices are let in for good: an error in the answers loses nothing."""
        standing = self._stand() if self._standing is None else self._standing
        new, self._new_slices = self._new_slices, []
        self._known_slices, self._stood, self._settles = None, True, step.horizon
        standing.insert(new)
        reported, ticks, blocks = self._report_windows(step, self._state.reported, standing, answers)
        state = self._state
        reported = reported.correctable(step.horizon)
        if reported is not state.reported or ticks is not state.ticks:
            state = TimeState(state.slices, state.tuples, reported, state.complete_from, ticks)
        return TimeStep(state, blocks, [])

    def _report_windows(
        self, step: Step, reported: ReportedWindows, slices: WindowSlices, answers: Answers
    ) -> tuple[ReportedWindows, Ticks, list[Block]]:
        """Result rows for corrected and for newly ended windows."""
        ticks = self._state.ticks
        if self._panels is not None:
            return self._panels.report(step, reported, ticks, slices, answers)
        reported, windows, change, revision = due_windows(
            self.windows, slices, step, reported, corrects=bool(self.plan.workload.lateness), empty=self._empty
        )
        blocks = answers.blocks(windows, self._queries, slices, change, revision, to_end=True)
        if self._empty is not None and len(windows):
            reported, empty = self._empty.between(windows, reported, answers.limits)
            for ranges in empty:
                blocks += answers.blocks(ranges, self._queries, slices, to_end=True)
        return reported, ticks, blocks

    def _report_sessions(
        self,
        sessions: Sessions,
        level: int,
        counted: np.ndarray,
        step: Step,
        reported: ReportedWindows,
        slices: Slices,
        answers: Answers,
    ) -> tuple[ReportedWindows, list[Block]]:
        """Result rows for sessions that are complete, were corrected, or are no more."""
        ready = (counted & (sessions.end < step.watermark)).nonzero()[0]
        if not len(ready) and not self.plan.workload.lateness:
            return reported, []
        windows = sessions.ranges(ready, len(self.plan.windows) + level)
        change = revision = None
        blocks: list[Block] = []
        if self.plan.workload.lateness:
            of_level = reported.family == len(self.plan.windows) + level
            compared = reported.take(of_level).compare(entries_of(windows), sessions.unreported[ready])
            reported = reported.take(~of_level).joined(compared.now)
            blocks += answers.retractions(compared.gone, self._queries)
            windows, change = windows.take(compared.shown), compared.change
            revision = compared.now.revision[compared.shown]
        some = None if len(sessions.slices) == len(slices) else sessions.slices
        partials = StoredPartials(self.plan, slices.parts, some=some, disjoint=True)
        return reported, blocks + answers.blocks(windows, self._queries, partials, change, revision)

    def _received(self, handed_over: Slices | None) -> list[Slices]:
        """Slices of rows that waited elsewhere, without what nobody asks time slices for."""
        if handed_over is None:
            return []
        parts = list(handed_over.parts)
        for number in self._unasked:
            parts[number] = self.plan.monoids[number].identities(len(handed_over))
        return [replace(handed_over, parts=tuple(parts))]

    def _current(self, horizon: int, handed_over: list[Slices]) -> TimeState:
        """The state with what came since, merged if it is time to."""
        new = self._new_slices + handed_over
        if len(self.state.slices) + sum(map(len, new)) >= self._merge_at:
            return self._merged(horizon, new)
        state = self.state
        slices = state.slices.joined(new)
        return TimeState(slices, state.tuples, state.reported, state.complete_from, state.ticks)

    def _merged(self, horizon: int, new: Sequence[Slices]) -> TimeState:
        """The state with new slices merged into those that are there."""
        state, plan = self.state, self.plan
        slices, forgotten = self._without_old(state.slices, horizon, state.complete_from)
        slices = slices.compacted(new, self.edges, self.kept_since(horizon), plan.gaps, plan.monoids, plan.costs)
        tuples = state.tuples
        if plan.recomputed:
            tuples = tuples.joined(self._new_rows, plan.order)
            slices = self._recomputed(slices, tuples, horizon)
        return replace(state, slices=slices, tuples=tuples, complete_from=forgotten)

    def kept_since(self, horizon: int) -> int:
        """The event time behind which edges are kept that windows have. A slice must be there when it leaves them."""
        return horizon - self._slide if abs(horizon) < INFINITY else horizon

    def _oldest_needed(self, horizon: int) -> int:
        """The event time from which on slices are needed. A table that has come to its end may still be continued."""
        oldest = self.windows.oldest_open_start(self.kept_since(horizon))
        return oldest if self.windows.listed is None or oldest < INFINITY else horizon

    def _without_old(self, slices: Slices, horizon: int, forgotten: int) -> tuple[Slices, int]:
        """Without slices that serve no window any more, and the event time from which all rows are still there."""
        needed = slices.first >= self._oldest_needed(horizon)
        if self.plan.gaps:
            needed |= slices.closed_gaps < len(self.plan.gaps)
        if needed.all():
            return slices, forgotten
        return slices.take(np.flatnonzero(needed)), max(forgotten, int(slices.last[~needed].max()) + 1)

    def _recomputed(self, slices: Slices, tuples: Tuples, horizon: int) -> Slices:
        """Compute again, from the stored tuples, what depends on the order of rows."""
        overlapping = (slices.key[1:] == slices.key[:-1]) & (slices.first[1:] <= slices.last[:-1])
        if overlapping.any() and int(slices.rows.sum()) == len(tuples):
            # Rows of an open session lie among those of a closed one. Only slices that follow each other can be
            # combined in order, so they are split at each other's rows.
            cells = self.edges.needed_cells(tuples.time, self.kept_since(horizon))
            cut = tuples.cut(cells, self.plan.gaps, self.plan.monoids)
            self.plan.costs.count(splits=max(len(cut) - len(slices), 0), recomputations=len(cut), rows=len(tuples))
            return cut
        dirty = np.flatnonzero(slices.unreported)
        if not len(dirty):
            return slices
        rows, starts = tuples.rows_of(slices.take(dirty))
        again = np.flatnonzero(slices.rows[dirty] > slices.unreported[dirty])
        self.plan.costs.count(
            recomputations=len(again) * len(self.plan.recomputed), rows=int(slices.rows[dirty[again]].sum())
        )
        parts = list(slices.parts)
        for i in self.plan.recomputed:
            parts[i] = put_parts(parts[i], dirty, tuples.fold(self.plan.monoids[i], rows, starts))
        return replace(slices, parts=tuple(parts))

    def _check(self, horizon: int) -> None:
        """The invariants, for tests."""
        self.state.slices._check(self.edges, self.kept_since(horizon), self.plan.gaps)


def _unasked(plan: Plan) -> frozenset[int]:
    """Positions of the monoids that only windows on ordered rows ask for: a median of the last rows may be most of what
    there is to keep, and time slices do without it."""
    on_time = {a for q in plan.workload.queries if not q.window.needs_rows for a in q.aggregates.values()}
    answers = [answer for a, answer in zip(plan.aggregates, plan.answers, strict=True) if a in on_time]
    return frozenset(range(len(plan.monoids))) - {plan.components[answer.component].kept for answer in answers}


def _close(slices: Slices, tuples: Tuples, sessions: Sessions, over: np.ndarray, level: int) -> tuple[Slices, Tuples]:
    """Mark the slices of sessions that are over, so that no row joins them again under this gap."""
    if not np.logical_or.reduce(over):
        return slices, tuples
    members = np.zeros(len(sessions.slices) + 1, np.int64)
    np.add.at(members, sessions.low[over], 1)
    np.add.at(members, sessions.high[over], -1)
    done = sessions.slices[np.cumsum(members[:-1]) > 0]
    closed = slices.closed_gaps.copy()
    closed[done] = np.maximum(closed[done], level + 1)
    if len(tuples):
        tuples = tuples.marked(slices.take(done), closed[done])
    return replace(slices, closed_gaps=closed), tuples
