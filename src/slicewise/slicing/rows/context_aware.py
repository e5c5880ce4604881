"""Context-aware queries: windows whose bounds depend on rows (counts, other measures, conditions, user code).

Such windows are ranges of rows in event-time order. The rows whose order may still change are kept, with those that
undecided windows need; at each watermark step the discretisers find where windows lie, rows are cut at the bounds of
all of them into cuts that all queries share, and what was reported before is compared with what is true now.

The order of rows before the horizon is final: a row that comes later than that does not count here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from slicewise.aggregates.base import take_parts
from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.kernels import expand_ranges, sorted_unique
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.results import Block
from slicewise.slicing.answers.answers import Answers, QueryFanOut
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.intake.user_code import with_key
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.arriving_rows import ArrivingRows
from slicewise.slicing.rows.compacting import moved, shifting, slice_ends
from slicewise.slicing.rows.context_state import ContextAwareState, monoids_of, see_punctuation
from slicewise.slicing.rows.cut_updates import CachedCuts, removal_of
from slicewise.slicing.rows.discretisers import Arrivals, Discretiser, Remembered, Retained, ordinals
from slicewise.slicing.rows.handover import Handover
from slicewise.slicing.rows.monotonic import Misfit, empty_marks, fits_column, marks_of_slices, misfits
from slicewise.slicing.rows.ordered_rows import ARRIVAL, LAST_ARRIVAL, OrderedRows
from slicewise.slicing.rows.punctuation import PUNCTUATION, DataRows
from slicewise.slicing.rows.registry import discretisers_for
from slicewise.slicing.rows.shared_cuts import Ranges, SharedCuts
from slicewise.slicing.rows.slides import MeasureLimit, limit_of
from slicewise.slicing.steps import Step
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.times import INFINITY

__all__ = ["ContextAwareQueries", "ContextAwareStep"]

NOTHING_REPORTED = ReportedWindows.none()
_BEGINS = attrgetter("begins")


@record
class ContextAwareStep:
    """What a step came to: the state after it, its results, and slices of the rows that the watermark passed."""

    state: ContextAwareState
    blocks: list[Block]
    handed_over: Slices | None


@record
class _Discretised:
    """What the discretisers found in a step.

    ``first`` and ``begins`` are what must stay of the rows: for each key the first place that is needed as such, and
    the places before it with which undecided windows begin. The slices there end at ``ends``.
    """

    windows: list[WindowRanges]
    memory: dict[str, Any]
    first: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


class ContextAwareQueries:
    """The context-aware queries of a plan that began to count rows at the same moment."""

    def __init__(self, plan: Plan, state: ContextAwareState) -> None:
        self.plan = plan
        names = set(state.queries)
        numbers = [number for number, (name, _) in enumerate(plan.schema.queries) if name in names]
        self.discretisers = discretisers_for(list(dict.fromkeys(plan.workload.queries[n].window for n in numbers)))
        self.state = replace(state, memory={**state.memory, **self._loaded(state)}, slices=self._marked(state.slices))
        #: For each discretiser and each group, the queries of each of its windows.
        self._queries = [self._fan_outs(d, numbers) for d in self.discretisers]
        self.monoids = monoids_of(plan, state.queries)
        #: By the measures that windows lie on, what these windows ask of each.
        self._limits = {d.measures: self._limits_of(d.measures) for d in self.discretisers if d.measures}
        #: Whether rows that are no data come here too.
        self.sees_punctuation = see_punctuation(plan, state.queries)
        #: What is taken of new rows.
        self.arriving = ArrivingRows(list(plan.column_types), self.discretisers, sees_punctuation=self.sees_punctuation)
        #: How the partials of cuts change when rows leave them, for each monoid.
        self._removal = {i: removal_of(plan.monoids[i]) for i in self.monoids}
        # Where cuts are kept for corrections, they must lie at the same rows in the next step, and serve windows alone.
        self._folds_once = plan.ordered or not plan.workload.lateness
        self._pending: list[Tuples] = []
        self._keys: KeyTable | None = None
        self._arrived = state.arrived
        #: Rows that were taken out since somebody looked here: they count in time windows as ever.
        self.left_out: list[Tuples] = []

    def _fan_outs(self, discretiser: Discretiser, numbers: Sequence[int]) -> list[QueryFanOut]:
        """For each group the queries of each window; the discretiser gets to know what they compute."""
        plan = self.plan
        queries = [plan.context_queries(group, discretiser.windows, numbers) for group in plan.groups]
        asking = [group for group, of_windows in zip(plan.groups, queries, strict=True) if any(map(len, of_windows))]
        asked = sorted({plan.answers[number].component for group in asking for number in group.aggregates})
        query = next(
            plan.workload.queries[n].name for n in numbers if plan.workload.queries[n].window in discretiser.windows
        )
        discretiser.answer(query, {component: plan.components[component].monoid for component in asked}, self._key_of)
        return [QueryFanOut(of_windows) for of_windows in queries]

    def _key_of(self, number: int) -> tuple[Any, ...]:
        """The values of a key that has come up in this step."""
        assert self._keys is not None
        return tuple(column.to_pylist()[0] for column in self._keys.decode(np.array([number])))

    # Rows in

    def have_windows(self, columns: Mapping[str, Column], rows: int) -> np.ndarray:
        """Which of so many rows would count in some window if they came in time."""
        having = np.zeros(rows, bool)
        for discretiser in self.discretisers:
            of_kind = discretiser.have_windows(columns)
            if of_kind is None:
                return np.ones(rows, bool)
            having |= of_kind
        return having

    def counted(
        self,
        key: np.ndarray,
        times: np.ndarray,
        columns: Mapping[str, Column],
        horizon: int,
        earliest: int,
        came: np.ndarray,
    ) -> Tuples:
        """Those of some new rows that count, with what is to be known of them.

        ``earliest`` is the earliest of their times, and ``came`` has the horizons at which they came, if ``arriving``
        rows are asked for it.
        """
        arrival = np.arange(self._arrived, self._arrived + len(times))
        oldest = max(horizon, self.state.since)
        return self.arriving.counted(key, times, columns, arrival, came, earliest=earliest, oldest=oldest)

    @property
    def pending(self) -> Sequence[Tuples]:
        """The rows that came since the last step."""
        return self._pending

    def insert(self, rows: Tuples, arrived: int) -> None:
        """Let rows in, of so many that arrived."""
        if len(rows):
            self._pending.append(rows)
        self._arrived += arrived

    def next_due(self, watermark: int) -> tuple[int, int]:
        """For ordered streams, when the next window may be reported: an event time, and a number of rows.

        Nothing can be reported before a row at or after that time has come, or that many rows. To be asked when no row
        is pending.
        """
        state = self.state
        size = len(state.base)
        sliced = state.base + np.bincount(state.slices.key, state.slices.rows, size).astype(np.int64)
        rows = sliced + np.bincount(state.rows.key, minlength=size)
        final = sliced + np.bincount(state.rows.key[state.rows.time < watermark], minlength=size)
        arrivals = Arrivals(rows, final, state.last_seen)
        if self.plan.workload.keys or not size:
            # A key that was never seen may come next.
            arrivals = Arrivals(np.append(rows, 0), np.append(final, 0), np.append(state.last_seen, -INFINITY))
        due = [d.next_due(arrivals, watermark) for d in self.discretisers]
        return min(time for time, _ in due), min(number for _, number in due)

    # Results out

    def advance(self, step: Step, answers: Answers, handover: Handover | None) -> ContextAwareStep:
        """Report what is due, correct what changed; gives the state after the step, which is not yet taken.

        Five phases. For windows of two rows every two rows, without lateness, when the watermark moves behind ``e``::

            arrange      slices [a]   rows b c d e f     what was kept, and the rows that came, by key and time
            discretise   [a b) [c d)  open: [e           where windows lie, and what must stay for undecided ones
            cut          | a b | c d | e                 at the bounds of all windows, and where slices will start
            report       insert [a b), insert [c d)      compared with what was reported before
            compact      slices [e]   rows f             final rows become slices, those of no window go

        With a ``handover``, the rows that the watermark passes go into the time slices, from the same cuts.

        Rows whose measure goes backwards are left out of the windows on it, rows on which user code fails of its
        windows or of all windows here; the step can then be taken again.
        """
        self._keys = answers.keys
        rows, moved = self.state.rows.joined_in_order(
            self._pending, self.plan.order, one_key=not self.plan.workload.keys, come_in_order=self.plan.ordered
        )
        self._refuse_misfits(rows)
        view, base, last_seen = self._arranged(rows, answers)
        try:
            discretised = self._discretise(view, step)
        except RefusedRowsError as error:
            cause, error = error.__cause__, with_key(error, view.key, answers.keys, self.plan.schema)
            error.rows = view.row_at(np.array(error.rows, np.int64)).tolist()
            raise self._with_records(error, rows) from cause
        passed = None if handover is None else handover.ranges(view, step, self.state.handed_over)
        cuts = self._cut(view, discretised, passed, moved)
        handed_over = None
        if handover is not None and passed is not None and len(passed.low):
            handed_over = handover.slices(cuts, passed, self.monoids if self._folds_once else ())
        reported, blocks = self._report(view, discretised, cuts, step, answers)
        if len(view.keys):
            last_seen[view.keys] = np.maximum(last_seen[view.keys], view.last_time(view.ends - 1))
        rows, slices, cached = self._compacted(view, discretised, cuts, base)
        state = replace(
            self.state,
            rows=rows,
            slices=slices,
            base=base,
            last_seen=last_seen,
            arrived=self._arrived,
            reported=reported,
            memory=discretised.memory,
            cuts=cached,
        )
        return ContextAwareStep(state, blocks, handed_over)

    def commit(self, state: ContextAwareState) -> None:
        """Take the state after a step."""
        self.state = state
        self._pending = []

    def compacted(self) -> ContextAwareState:
        """The state with the rows that came since the last step; all of them are handed over."""
        rows = self.state.rows.joined(self._pending, self.plan.order)
        return replace(self.state, rows=rows, arrived=self._arrived, cuts=CachedCuts.none(), handed_over=self._arrived)

    def saved(self, state: ContextAwareState) -> ContextAwareState:
        """A state of these queries with what user code remembers as plain data."""
        by_name = {d.name: d for d in self.discretisers}
        return replace(state, memory={name: by_name[name].save(memory) for name, memory in state.memory.items()})

    def _loaded(self, state: ContextAwareState) -> dict[str, Any]:
        """What user code remembers, where a state has it as plain data."""
        saved = {name: memory for name, memory in state.memory.items() if isinstance(memory, Remembered)}
        return {d.name: d.load(saved[d.name]) for d in self.discretisers if d.name in saved}

    def _marked(self, slices: Slices) -> Slices:
        """Slices with all marks: those of a state that was saved before windows on measures used slices have none."""
        marks: dict[str, np.ndarray] = {}
        for discretiser in self.discretisers:
            if discretiser.sliced_measure is not None:
                marks |= empty_marks(discretiser.sliced_measure, self.plan.column_types, len(slices))
        return replace(slices, marks={**marks, **slices.marks})

    # The phases of a step

    def _arranged(self, rows: Tuples, answers: Answers) -> tuple[OrderedRows, np.ndarray, np.ndarray]:
        """Rows and slices in order, and copies of what is known of each key, with room for new ones."""
        size = max(len(answers.keys), 1)  # without key columns there is one key
        base, last_seen = _grown(self.state.base, size, 0), _grown(self.state.last_seen, size, -INFINITY)
        return OrderedRows(self.state.slices, rows, base, last_seen), base, last_seen

    def _discretise(self, view: OrderedRows, step: Step) -> _Discretised:
        """Ask every discretiser where its windows lie."""
        windows: list[WindowRanges] = []
        retained: list[Retained] = []
        memory: dict[str, Any] = {}
        for discretiser in self.discretisers:
            try:
                ranges, needed, kept = discretiser.find_on(view, step, self.state.memory.get(discretiser.name))
            except RefusedRowsError as error:
                self._refuse(discretiser, view, np.array(error.rows, np.int64))
                raise
            windows.append(ranges)
            retained.append(needed)
            if kept is not None:
                memory[discretiser.name] = kept
        first = view.first_at(step.horizon)
        for needed in retained:
            first = np.minimum(first, needed.rows)
        begins = sorted_unique(np.concatenate([*map(_BEGINS, retained)]))
        if len(begins):
            begins = begins[begins < view.of_key(first, begins)]
        if self.sees_punctuation:
            data = DataRows(view)
            windows, begins = [data.held_by(ranges) for ranges in windows], data.parted(begins, first)
        return _Discretised(windows, memory, first, begins, slice_ends(view, first, begins))

    def _cut(
        self, view: OrderedRows, discretised: _Discretised, passed: Ranges | None, moved: np.ndarray | None
    ) -> SharedCuts:
        """Cut rows at the bounds of the windows of all queries in which all rows count; each cut is folded once."""
        shared: list[WindowRanges | Ranges] = [
            ranges for ranges in discretised.windows if ranges.rows is None and ranges.partials is None
        ]
        if self._folds_once:
            shared.append(Ranges(discretised.begins, discretised.ends))
            shared += [passed] if passed is not None else []
        state = self.state
        places_before = None
        if len(state.cuts):
            places_before = view.places_before(state.slices, state.rows, moved)
        inner = self._inner_bounds(places_before)
        limit = self.plan.rows_per_slice(state.arrived)
        cuts = SharedCuts(self.plan, self.monoids, view, shared, inner=inner, max_rows=limit)
        if places_before is not None:
            cuts.update(state.cuts, places_before, len(state.slices) + len(state.rows), self._removal)
        return cuts

    def _inner_bounds(self, places_before: np.ndarray | None) -> np.ndarray | None:
        """Where the rows stand with which cuts began that were divided by size; None if the size does not matter.

        It matters where cuts change after they were folded.
        """
        if self.plan.max_slice is None or self._folds_once:
            return None
        if places_before is None:
            return NO_ROWS
        place = np.empty(len(places_before), np.int64)
        place[places_before] = np.arange(len(places_before))
        inner: np.ndarray = place[self.state.cuts.low[self.state.cuts.inner]]
        return inner

    def _report(
        self, view: OrderedRows, discretised: _Discretised, cuts: SharedCuts, step: Step, answers: Answers
    ) -> tuple[dict[str, ReportedWindows], list[Block]]:
        """Compare what is true with what was reported: new windows, windows of other rows, and windows that are no
        more."""
        reported: dict[str, ReportedWindows] = {}
        blocks: list[Block] = []
        for number, (discretiser, windows) in enumerate(zip(self.discretisers, discretised.windows, strict=True)):
            partials: SharedCuts = windows.partials or cuts
            if windows.rows is not None:
                partials = SharedCuts(self.plan, self.monoids, view, [windows], some=windows.rows)
            queries, by_position = self._queries[number], discretiser.by_position
            how: Any = {"by_position": by_position, "to_end": discretiser.ends_in_time}
            before = self.state.reported.get(discretiser.name, NOTHING_REPORTED)
            if not len(before.key) and np.logical_and.reduce(windows.decided < step.horizon):
                # Nothing was reported that could change, and nothing is reported now that could.
                reported[discretiser.name] = NOTHING_REPORTED
                blocks += answers.blocks(windows, queries, partials, **how)
                continue
            several, windows = windows.divided()
            blocks += answers.blocks(several, queries, partials, by_position=by_position)
            now = _entries(windows, partials)
            if not discretiser.distinct:
                now = replace(now, nth=ordinals(windows.family, windows.key, windows.start, windows.end))
            compared = before.compare(now)
            blocks += answers.retractions(compared.gone, queries, by_position=by_position)
            shown, marks = compared.shown, (compared.change, compared.now.revision[compared.shown])
            blocks += answers.blocks(windows.take(shown), queries, partials, *marks, **how)
            reported[discretiser.name] = compared.now.correctable(step.horizon)
        return reported, blocks

    def _compacted(
        self, view: OrderedRows, discretised: _Discretised, cuts: SharedCuts, base: np.ndarray
    ) -> tuple[Tuples, Slices, CachedCuts]:
        """The rows that are needed as such, and before them slices that start where undecided windows begin.

        Everything before a key's first begin is dropped, and its position noted in ``base``.
        """
        first, begins, ends = discretised.first, discretised.begins, discretised.ends
        # The first row to stay of each key, in a slice or as such.
        oldest = view.earliest(begins, first)
        if len(view.keys):
            base[view.keys] = view.position_at(oldest)
        low, high, number = shifting(view, cuts, first, oldest)
        cached = CachedCuts.none()
        if len(low):
            # A cut of which some rows are needed as such stays one by itself: a slice starts with it.
            begins = sorted_unique(np.concatenate([begins, low[low < view.of_key(first, low)]]))
            ends = slice_ends(view, first, begins)
            low, high = (moved(view, first, begins, place) for place in (low, high))
            partials = {i: take_parts(cuts.parts(i), number) for i in self.monoids}
            cached = CachedCuts(low, high, cuts.inner[number], partials)
        single, _ = expand_ranges(first, view.ends)
        rows = view.rows.take(view.row_at(single)).reported()
        return rows, self._slices(view, cuts, begins, ends), cached

    def _slices(self, view: OrderedRows, cuts: SharedCuts, begins: np.ndarray, ends: np.ndarray) -> Slices:
        """Slices of places, with what discretisers must know of them."""
        fold = cuts.over if self._folds_once else cuts.fold
        last = ends - 1
        marks = {ARRIVAL: view.first_arrival(begins), LAST_ARRIVAL: view.last_arrival(last)}
        if self.sees_punctuation:
            marks[PUNCTUATION] = view.marks(PUNCTUATION)[begins]
        for discretiser in self.discretisers:
            marks |= discretiser.mark_slices(view, begins, ends)
            if discretiser.sliced_measure is not None:
                marks |= marks_of_slices(view, discretiser.sliced_measure, begins, ends)
        nothing = np.zeros(len(begins), np.int64)
        return Slices(
            view.key[begins],
            view.time[begins],
            view.last_time(last),
            cuts.count(begins, ends),
            nothing,
            nothing,
            tuple([fold(i, begins, ends) if len(begins) else self.plan.monoids[i].identities(0) for i in self.monoids]),
            marks,
        )

    # Rows that cannot count

    def _refuse_misfits(self, rows: Tuples) -> None:
        """Leave rows that go back on a measure out of the windows on it, and raise an error that names them."""
        refused: list[tuple[Misfit, str]] = []
        for measures, limits in self._limits.items():
            wrong = misfits(rows, self.state.slices, measures, limits)
            # Those of one reason; the others come up when the step is taken again.
            wrong = [m for m in wrong if m.reason == (refused[0][0] if refused else wrong[0]).reason]
            if wrong:
                self._mark_misfits(fits_column(measures), rows.columns[ARRIVAL].values[[m.row for m in wrong]])
                refused += [(m, " and ".join(map(repr, measures))) for m in wrong]
        if refused:
            first, on = refused[0]
            places = dict.fromkeys(m.row for m, _ in refused)
            error = RefusedRowsError(f"{first.what}; the row was left out of the windows on {on}", places, first.reason)
            if len(places) > 1:
                error.add_note(f"{len(places) - 1} more rows were left out")
            raise self._with_records(error, rows)

    def _with_records(self, error: RefusedRowsError, rows: Tuples) -> RefusedRowsError:
        error.records = rows.take(np.array(error.rows, np.int64))
        error.ago = self._arrived - error.records.columns[ARRIVAL].values
        return error

    def _limits_of(self, measures: tuple[str, ...]) -> dict[str, MeasureLimit]:
        """What the windows on some measures ask of each."""
        some = [d for d in self.discretisers if d.measures == measures]
        windows, slides = [w for d in some for w in d.windows], [d.slide for d in some]
        return {name: limit_of(name, windows, slides) for name in measures}

    def _mark_misfits(self, name: str, arrivals: np.ndarray) -> None:
        def marked(rows: Tuples) -> Tuples:
            fits = rows.columns[name]
            kept = ~np.isin(rows.columns[ARRIVAL].values, arrivals)
            return replace(rows, columns={**rows.columns, name: replace(fits, values=fits.values * kept)})

        self._pending = [marked(rows) for rows in self._pending]
        self.state = replace(self.state, rows=marked(self.state.rows))

    def _refuse(self, discretiser: Discretiser, view: OrderedRows, places: np.ndarray) -> None:
        """Take rows on which user code failed out of its windows or, where these have no say in it, of all here."""
        if discretiser.refusals is None:
            self._leave_out(view.first_arrival(places))
            return
        self._mark_misfits(discretiser.refusals, view.first_arrival(places))
        # What else came in this step must not hide that a row has left that was there before it.
        left = places[~view.rows.unreported[view.row_at(places)]]
        table = self.state.reported.get(discretiser.name, ReportedWindows.none())
        reported = {discretiser.name: table.with_changed(view.key[left], view.time[left])}
        self.state = replace(self.state, reported={**self.state.reported, **reported})

    @property
    def left_out_ago(self) -> list[int]:
        """How many rows ago those arrived that were taken out."""
        numbers = [rows.columns[ARRIVAL].values for rows in self.left_out]
        return [self._arrived - number for some in numbers for number in some.tolist()]

    def leave_out(self, ago: Collection[int]) -> None:
        """Take rows out for good that arrived so many rows ago, if they are still here."""
        arrivals = self._arrived - np.array(sorted(ago), np.int64)
        if any(np.isin(rows.columns[ARRIVAL].values, arrivals).any() for rows in (*self._pending, self.state.rows)):
            self._leave_out(arrivals)

    def _leave_out(self, arrivals: np.ndarray) -> None:
        """Take rows out for good: of those that have just come, and of those that were there."""

        def without(rows: Tuples) -> Tuples:
            out = np.isin(rows.columns[ARRIVAL].values, arrivals)
            self.left_out.append(rows.take(np.flatnonzero(out)))
            return rows.take(np.flatnonzero(~out))

        self._pending = [without(rows) for rows in self._pending]
        self.state = replace(self.state, rows=without(self.state.rows), cuts=CachedCuts.none())


def _entries(windows: WindowRanges, cuts: SharedCuts) -> ReportedWindows:
    """Windows as entries of the table of reported ones: correctable until the horizon has passed what decided them."""
    content = cuts.content(windows.low, windows.high)
    return ReportedWindows.new(windows.family, windows.key, windows.start, windows.end, windows.decided, content)


def _grown(array: np.ndarray, size: int, filler: int) -> np.ndarray:
    """A copy with room for all keys."""
    if size <= len(array):
        return array.copy()
    out = np.full(size, filler, np.int64)
    out[: len(array)] = array
    return out
