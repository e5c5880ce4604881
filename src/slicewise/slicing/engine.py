"""The engine: drives both halves of ``slicing`` through watermark steps, and decides what becomes of a row.

Time slices (:mod:`slicewise.slicing.time`) serve windows on event time and sessions, ordered rows
(:mod:`slicewise.slicing.rows`) the windows whose bounds depend on rows. Where a workload has both, rows go through the
ordered rows first, and are handed over when the watermark passes them. State is replaced only when the whole step has
succeeded, so an error loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.kernels import bytes_of
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.results import Results
from slicewise.slicing.answers.answers import Answers, ReportLimits
from slicewise.slicing.intake.user_code import shows_rows, with_lifted
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.context_aware import ContextAwareQueries, ContextAwareStep
from slicewise.slicing.rows.context_state import ContextAwareState, new_context_aware
from slicewise.slicing.rows.handover import Handover
from slicewise.slicing.rows.punctuation import data_among, without_punctuation
from slicewise.slicing.steps import Step
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.slice_manager import SliceManager, TimeState
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.time.window_manager import Sessions
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.times import INFINITY, Extent

__all__ = ["Engine", "Lateness", "State"]


@dataclass(frozen=True, eq=False)
class State:
    """All that an engine knows, as data. Nothing here is ever changed in place.

    Attributes
    ----------
    time
        What is kept for windows on event time and sessions.
    context_aware
        What is kept for windows on ordered rows, for each set of queries that began to count at the same moment.
    watermark
        Every window that ended at or before it has been reported.
    latest
        The latest event time of any row that came.
    reports_from, reports_after
        For each query, by name: it reports windows that start at or after the one and are due after the other.
    """

    time: TimeState
    context_aware: tuple[ContextAwareState, ...] = ()
    watermark: int = -INFINITY
    latest: int = -INFINITY
    reports_from: Mapping[str, int] = field(default_factory=dict)
    reports_after: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, plan: Plan) -> State:
        """Nothing seen."""
        return cls(TimeState.empty(plan), new_context_aware(plan))

    def to_data(self) -> dict[str, Any]:
        """The state as plain data; user code's memory must be saved already."""
        return {
            "time": self.time.to_data(),
            "context_aware": [queries.to_data() for queries in self.context_aware],
            "watermark": self.watermark,
            "latest": self.latest,
            "reports_from": dict(self.reports_from),
            "reports_after": dict(self.reports_after),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> State:
        """The state from what :meth:`to_data` gave."""
        return cls(
            TimeState.from_data(data["time"]),
            tuple(ContextAwareState.from_data(queries) for queries in data["context_aware"]),
            data["watermark"],
            data["latest"],
            dict(data["reports_from"]),
            dict(data["reports_after"]),
        )

    @property
    def rows(self) -> list[Tuples]:
        """All rows that are stored as such, wherever they are."""
        return [self.time.tuples, *(queries.rows for queries in self.context_aware)]

    @property
    def nbytes(self) -> int:
        """Bytes in arrays: of slices, of stored rows, and of what was reported and may be corrected."""
        windows = [self.time.reported, *(r for queries in self.context_aware for r in queries.reported.values())]
        return bytes_of((*self.slices, *self.rows, *windows, *self.time.ticks.values()))

    @property
    def slices(self) -> list[Slices]:
        """All slices, wherever they are."""
        return [self.time.slices, *(queries.slices for queries in self.context_aware)]


@record
class Lateness:
    """What becomes of rows on arrival: which are late, and which must wait for the next step to be judged."""

    late: np.ndarray
    waiting: np.ndarray


NONE_LATE = Lateness(NO_ROWS, NO_ROWS)


class Engine:
    """The slicing engine of one plan."""

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        self.plan = plan
        #: Whether some function of the user says something of single rows.
        self.shows_rows = shows_rows(plan)
        state = State.empty(plan) if state is None else _with_user_code(state, plan)
        self.time = SliceManager(plan, state.time)
        sets = [ContextAwareQueries(plan, queries) for queries in state.context_aware]
        self.context_aware = sorted(sets, key=lambda queries: queries.sees_punctuation)
        self._notes_horizons = any(queries.arriving.notes_horizons for queries in sets)
        self._has_time_windows = bool(plan.windows or plan.gaps)
        # Where data is put in order anyway, time slices get it from there, unless they keep rows of their own.
        hands_over = bool(self.context_aware) and not self.context_aware[0].sees_punctuation
        hands_over &= self._has_time_windows and not plan.recomputed
        self._handover = Handover(self.time) if hands_over else None
        #: Whether some window lies elsewhere for other keys.
        self._depends_on_keys = self.time.windows.listed is not None
        self.latest = state.latest
        self.pass_watermark(state.watermark)
        self.limit_reports(state.reports_from, state.reports_after)

    @property
    def state(self) -> State:
        """The state after the last step."""
        context_aware = tuple(queries.state for queries in self.context_aware)
        return State(self.time.state, context_aware, self.watermark, self.latest, self.reports_from, self.reports_after)

    def limit_reports(self, start: Mapping[str, int], due: Mapping[str, int]) -> None:
        """From now on, report of these queries only windows that start at or after ``start``, due after ``due``."""
        self.reports_from, self.reports_after = start, due
        self._limits = ReportLimits.of(self.plan, start, due)

    @property
    def edges(self) -> Edges:
        """Where time slices are cut."""
        return self.time.edges

    def pass_watermark(self, watermark: int) -> None:
        """Every window that ended at or before it has been reported."""
        self.watermark = watermark
        #: Windows that ended at or before it can be corrected no more.
        self.horizon = self._horizon(watermark)

    def _horizon(self, watermark: int) -> int:
        # A lateness beyond the range of time never closes a window.
        return watermark if abs(watermark) >= INFINITY else max(watermark - self.plan.workload.lateness, -INFINITY)

    # Rows in

    def judge(
        self, times: np.ndarray, key: np.ndarray, keys: KeyTable, columns: Mapping[str, Column], earliest: int
    ) -> Lateness:
        """Which rows are late, and which will only be known to be when sessions are composed.

        Punctuation is late before the horizon, where the windows that see it are final.
        """
        if self._depends_on_keys:
            self.time.windows.name_keys(keys)
        horizon = self.horizon
        if self.plan.ordered or horizon <= -INFINITY or earliest > horizon:
            return NONE_LATE
        data = data_among(columns) if self.context_aware else None
        if data is None:
            return self._judge(times, key, columns, horizon)
        columns = {name: column.take(data) for name, column in without_punctuation(columns).items()}
        judged = self._judge(times[data], key[data], columns, horizon) if len(data) else NONE_LATE
        late = times < horizon
        late[data] = False
        return Lateness(np.union1d(np.flatnonzero(late), data[judged.late]), data[judged.waiting])

    def judge_slices(self, slices: Slices, keys: KeyTable) -> Lateness:
        """The same of slices, of which all rows are late or none is."""
        if not len(slices):
            return NONE_LATE
        return self.judge(slices.first, slices.key, keys, {}, int(slices.first.min()))

    def _judge(self, times: np.ndarray, key: np.ndarray, columns: Mapping[str, Column], horizon: int) -> Lateness:
        old = np.flatnonzero(times <= horizon)
        inside, still_open = self.time.windows.open_mask(times[old], horizon, key[old])
        if self.context_aware:
            # A row at the horizon still counts where rows are counted; any earlier one would have.
            for queries in self.context_aware:
                inside |= queries.have_windows(columns, len(times))[old]
            still_open |= times[old] == horizon
        if not self.plan.gaps:
            return Lateness(old[inside & ~still_open], NO_ROWS)
        # A row joins an open session however old it is, if other rows lead from the session to it.
        return Lateness(NO_ROWS, old[~still_open & (times[old] + self.plan.gaps[-1] < horizon)])

    def insert(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], extent: Extent) -> None:
        """Let rows in, at least one: cut them into slices, and store them where the plan says so."""
        if self.context_aware:
            self._insert_in_order(key, times, columns, extent.earliest)
        else:
            self.time.insert(key, times, columns, extent)
        self.latest = max(self.latest, extent.latest)

    def _insert_in_order(
        self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], earliest: int
    ) -> None:
        """Let rows in where windows depend on them, and data among them into the time slices."""
        came = self._horizons(times) if self._notes_horizons else NO_ROWS
        counted = [queries.counted(key, times, columns, self.horizon, earliest, came) for queries in self.context_aware]
        if self._has_time_windows:
            self._insert_on_time(key, times, columns)
        for queries, rows in zip(self.context_aware, counted, strict=True):
            queries.insert(rows, len(times))

    def _insert_on_time(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column]) -> None:
        """Let data into the time slices, at once or by the handover."""
        data = data_among(columns)
        columns = without_punctuation(columns)
        if data is not None:
            key, times, columns = key[data], times[data], {name: c.take(data) for name, c in columns.items()}
        if not len(times):
            return
        if self._handover is not None:
            self._handover.insert(key, times, columns, self.watermark, self.context_aware[0].state.since)
        else:
            self.time.insert(key, times, columns)

    def _horizons(self, times: np.ndarray) -> np.ndarray:
        """The horizon when each of some rows came: in order, each is the watermark for the next, step or no step."""
        if not self.plan.ordered:
            return np.full(len(times), self.horizon)
        lateness = min(self.plan.workload.lateness, INFINITY)
        before = np.concatenate([[self._horizon(self.latest)], times[:-1] - lateness])
        horizons: np.ndarray = np.maximum(before, self.horizon)
        return horizons

    def follow(self, times: np.ndarray) -> None:
        """Take note of the event times of rows that nobody asks for: they move the watermark all the same."""
        if len(times):
            self.latest = max(self.latest, int(times.max()))

    def insert_slices(self, slices: Slices) -> None:
        """Let in slices that were cut elsewhere, at the edges of this plan; in any order."""
        if len(slices):
            self.time.insert_slices(slices)
            self.latest = max(self.latest, int(slices.last.max()))

    def next_due(self) -> tuple[int, int]:
        """For ordered streams: the event time of the first row that would let some window be reported, and after how
        many rows one would where rows are counted."""
        watermark = self.watermark
        waiting = NO_ROWS
        if self._handover is not None and self.plan.gaps:  # only sessions depend on rows that are not handed over yet
            waiting = self._waiting([self.context_aware[0].compacted()]).time
        due, rows = self.time.next_due(watermark, waiting), INFINITY
        for queries in self.context_aware:
            at, number = queries.next_due(watermark)
            due, rows = min(due, at), min(rows, number)
        return due, rows

    def forget(self, latest: int) -> None:
        """Note that rows up to this event time were turned away."""
        self.time.forget(latest)

    # Results out

    def advance(self, watermark: int, keys: KeyTable) -> tuple[Results, list[Sessions]]:
        """Move the watermark: report what ended, correct what changed, drop what is over.

        Returns the results, and the sessions under each gap that rows could join in this step.
        """
        step = Step(self.horizon, watermark, self._horizon(watermark), self.watermark)
        if self.time.can_wait(step):
            self.watermark, self.horizon = watermark, step.horizon
            return Results(self.plan.schema), []
        if self._depends_on_keys:
            self.time.windows.name_keys(keys)
        context_steps: list[ContextAwareStep] = []
        handed_over = None
        if self.context_aware:
            context_steps = self._advance_context_aware(step, Answers(self.plan, keys))
            handed_over = context_steps[0].handed_over
        blocks, sessions = [], []
        time_step = None
        if self._has_time_windows:
            time_step = self.time.advance(step, Answers(self.plan, keys, self._limits), handed_over)
            blocks, sessions = time_step.blocks, time_step.sessions
        for context_step in context_steps:
            blocks = blocks + context_step.blocks
        self.watermark, self.horizon = watermark, step.horizon
        if time_step is not None:
            self.time.commit(time_step.state)
        for queries, context_step in zip(self.context_aware, context_steps, strict=True):
            queries.commit(context_step.state)
        return Results(self.plan.schema, blocks), sessions

    def _advance_context_aware(self, step: Step, answers: Answers) -> list[ContextAwareStep]:
        try:
            # The first ones count all rows that came, so that these can be handed over from there.
            return [
                queries.advance(step, answers, self._handover if i == 0 else None)
                for i, queries in enumerate(self.context_aware)
            ]
        except RefusedRowsError:
            self._take_back()
            raise

    def _take_back(self) -> None:
        """Cut the rows that were left out of the ordered rows: they will not be handed over any more.

        What one set of queries leaves out, all of them do.
        """
        ago = {number for queries in self.context_aware for number in queries.left_out_ago}
        for i, queries in enumerate(self.context_aware):
            queries.leave_out(ago)
            left_out, queries.left_out = queries.left_out, []
            if self._handover is not None and i == 0:
                for rows in left_out:
                    self._handover.take_back(rows, self.watermark, queries.state.handed_over)

    def _waiting(self, context_aware: list[ContextAwareState]) -> Tuples:
        """The rows that are in no time slice yet, of those in some states."""
        if self._handover is None:
            return Tuples.empty({})
        handed_over = self.context_aware[0].state.handed_over
        return self._handover.waiting(context_aware[0].rows, self.watermark, handed_over)

    def compacted(self) -> State:
        """The state with everything that came since the last step, and no more slices than needed."""
        with self.plan.costs.paused():
            return self._with_all(self.time.compacted)

    def held(self) -> State:
        """The state with everything that came since the last step, in the slices in which it is held."""
        return self._with_all(self.time.joined)

    def _with_all(self, time_with: Callable[[int, Slices | None], TimeState]) -> State:
        with self.plan.costs.paused():
            context_aware = [queries.compacted() for queries in self.context_aware]
            waiting = self._waiting(context_aware)
            handed_over = self.time.cut(waiting) if len(waiting) else None
        time = time_with(self.horizon, handed_over)
        return replace(self.state, time=time, context_aware=tuple(context_aware), latest=self.latest)

    def saved(self) -> State:
        """The settled state with what user code remembers as plain data."""
        state = self.compacted()
        both = zip(self.context_aware, state.context_aware, strict=True)
        return replace(state, context_aware=tuple(queries.saved(settled) for queries, settled in both))

    def renumber_keys(self, numbers: np.ndarray) -> None:
        """Keys got other numbers; the order of keys stays. Not where rows are counted: positions go by key."""
        assert not self.context_aware
        self.time.state = self.time.state.renumbered(numbers)

    def _check(self) -> None:
        """The invariants, for tests."""
        self.time._check(self.horizon)


def _with_user_code(state: State, plan: Plan) -> State:
    """The state with what user code makes of stored rows, which is not saved with them."""
    time = state.time
    if plan.recomputed:
        time = replace(time, tuples=with_lifted(time.tuples, plan))
    context_aware = tuple(replace(q, rows=with_lifted(q.rows, plan)) for q in state.context_aware)
    return replace(state, time=time, context_aware=context_aware)
