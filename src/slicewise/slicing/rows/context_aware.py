"""Tracks: rows in order, for the windows that only rows can tell. The second half of the slice manager.

Context-aware windows (counts, other measures, punctuations, frames, user code) are ranges of rows in event-time order.
A track keeps the rows whose order may still change, and those that undecided windows need; at each watermark step its
discretisers say where windows lie, rows are cut at the bounds of all of them into slices that all queries share, and
what was reported before is compared with what is true now.

The order of rows before the horizon is final: a row that comes later than that does not count here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts, take_parts
from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.kernels import expand_ranges, sorted_unique
from slicewise.plan.characteristics import AggregateTraits
from slicewise.plan.decisions import how_rows_leave
from slicewise.plan.plan import Group, Plan
from slicewise.results import INSERT, RETRACT, UPDATE, Block
from slicewise.slicing.answers.answers import QueryFanOut
from slicewise.slicing.answers.lowering import Asked
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.context_state import (
    ContextAwareState,
    carried_track,
    discretisers_for,
    monoids_of,
    new_tracks,
    no_slices,
)
from slicewise.slicing.rows.cut_updates import CachedCuts
from slicewise.slicing.rows.discretisers import (
    NO_ROWS,
    Arrivals,
    ConditionWindows,
    Step,
    WindowRanges,
    ordinals,
)
from slicewise.slicing.rows.handover import Handover
from slicewise.slicing.rows.ledgers import Ledger, entries_of
from slicewise.slicing.rows.monotonic import Misfit, fits_column, fitting, misfits
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.shared_cuts import ARRIVAL, LAST, SLOT, WEIGHT, Ranges, SharedCuts
from slicewise.slicing.rows.slides import MeasureLimit, limit_of
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.user_code import is_shown, shown_columns, with_key
from slicewise.times import INFINITY

__all__ = ["ContextAwareQueries", "ContextAwareState", "Ledger", "carried_track", "new_tracks"]


class ContextAwareQueries:
    """The context-aware queries of a plan that began to count rows at the same moment."""

    def __init__(self, plan: Plan, state: ContextAwareState) -> None:
        self.plan = plan
        self.state = state
        asked = set(state.queries)
        served = {name: number for number, (name, _) in enumerate(plan.schema.queries) if name in asked}
        windows = dict.fromkeys(plan.workload.queries[number].window for number in served.values())
        self.discretisers = discretisers_for(list(windows))
        place = {window: i for i, window in enumerate(plan.context)}
        mine = set(served.values())
        #: For each discretiser and each group, the queries of each of its windows.
        self.queries = [
            [QueryFanOut([_of_track(g, place[w], mine) for w in d.windows]) for g in plan.groups]
            for d in self.discretisers
        ]
        self.monoids = monoids_of(plan, state.queries)
        #: How the partials of cuts change when rows leave them, for each monoid.
        self.removal = {i: _removal(plan.monoids[i]) for i in self.monoids}
        self._pending: list[Tuples] = []
        #: Rows that were taken out since somebody looked here: they count in time windows as ever.
        self.left_out: list[Tuples] = []
        self._arrived = state.arrived

    def counted(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], horizon: int) -> Tuples:
        """Those of some new rows that come in time to count, with what is to be known of them."""
        arrival = np.arange(self._arrived, self._arrived + len(times))
        mine = {name: columns[name] for name in self.plan.column_types} | shown_columns(columns)
        if len(times) and times.min() < max(horizon, self.state.since):
            kept = np.flatnonzero(times >= max(horizon, self.state.since))
            key, times, arrival = key[kept], times[kept], arrival[kept]
            mine = {name: column.take(kept) for name, column in mine.items()}
        else:
            # Rows wait for the next step, and the caller's arrays are not ours to keep.
            key, times, mine = key.copy(), times.copy(), {name: _copy(column) for name, column in mine.items()}
        for discretiser in self.discretisers:
            if isinstance(discretiser, ConditionWindows) and discretiser.column not in mine:
                mine[discretiser.column] = discretiser.mark(mine, len(arrival))
            if discretiser.measures:
                mine[fits_column(discretiser.measures)] = fitting(mine, discretiser.measures)
        mine[ARRIVAL] = Column(arrival, pa.int64())
        mine[SLOT] = Column(np.full(len(arrival), -1), pa.int64())
        return Tuples.new(key, times, mine)

    @property
    def pending(self) -> Sequence[Tuples]:
        """The rows that came since the last step."""
        return self._pending

    def insert(self, rows: Tuples, arrived: int) -> None:
        """Let rows in, of so many that arrived."""
        if len(rows):
            self._pending.append(rows)
        self._arrived += arrived

    def advance(
        self, step: Step, keys: KeyTable, edges: Edges | None = None
    ) -> tuple[ContextAwareState, list[Block], Slices | None]:
        """Report what is due, correct what changed; gives the state after the step, which is not yet taken.

        With the ``edges`` of time slices it also gives slices of the rows that the watermark passes.

        Rows whose measure goes backwards are left out of the windows on it, rows that user code stumbles over out of
        the track; the step can be taken again.
        """
        rows, came = self.state.rows.joined_in_order(self._pending, self.plan.order)
        self._refuse_misfits(rows)
        try:
            return self._advance(step, rows, came, keys, edges)
        except RefusedRowsError as error:
            self._leave_out(rows.columns[ARRIVAL].values[error.rows])
            raise self._with_records(with_key(error, rows, keys, self.plan.schema), rows) from error.__cause__

    def _advance(
        self, step: Step, rows: Tuples, came: np.ndarray | None, keys: KeyTable, edges: Edges | None
    ) -> tuple[ContextAwareState, list[Block], Slices | None]:
        state = self.state
        many = max(len(keys), 1)  # without key columns there is one key
        base, last_seen = _grown(state.base, many, 0), _grown(state.last_seen, many, -INFINITY)
        slot = rows.columns[SLOT].values
        folded = np.flatnonzero(slot >= 0)
        view = OrderedRows(rows, folded, state.slices[WEIGHT][0][slot[folded]], base, last_seen)
        memory: dict[str, Any] = {}
        first, begins, all_found = view.first_at(step.horizon), [], []
        for discretiser in self.discretisers:
            found, needed, kept = discretiser.find_on(view, step, state.memory.get(discretiser.name))
            if kept is not None:
                memory[discretiser.name] = kept
            first = np.minimum(first, needed.rows)
            begins.append(needed.begins)
            all_found.append(found)
        begin = sorted_unique(np.concatenate([NO_ROWS, *begins]))
        begin = begin[begin < _of_row(first, view, begin)]
        # Rows are cut at the bounds of the windows of all queries, and each cut is folded once.
        shared: list[WindowRanges | Ranges] = [f for f in all_found if f.rows is None]
        passing = None if edges is None else Handover.of(view, step.passed, step.watermark, state.given, edges)
        # Where cuts are kept for corrections, they must lie at the same rows in the next step.
        once = self.plan.ordered or not self.plan.workload.lateness
        if once:
            shared.append(Ranges(begin, _slice_ends(view, first, begin)))
            shared += [Ranges(passing.low, passing.high)] if passing is not None else []
        pieces = SharedCuts(self.plan, view, state.slices, shared, inner=self._inner_bounds(came))
        if len(state.cuts):
            pieces.revise(state.cuts, came, len(state.rows), self.removal)
        passed = None
        if passing is not None and len(passing.low):
            passed = passing.slices(self.plan, pieces, self.monoids if once else ())
        ledgers: dict[str, Ledger] = {}
        blocks: list[Block] = []
        for number, (discretiser, found) in enumerate(zip(self.discretisers, all_found, strict=True)):
            own = pieces
            if found.rows is not None:
                own = SharedCuts(self.plan, view, state.slices, [found], some=found.rows)
            before = state.ledgers.get(discretiser.name, Ledger.empty())
            ledger, more = self._report(number, found, own, before, step, keys)
            blocks += more
            ledgers[discretiser.name] = ledger.take(np.flatnonzero(ledger.decided >= step.horizon))
        if len(view.keys):
            last_seen[view.keys] = np.maximum(last_seen[view.keys], view.time[view.ends - 1])
        rows, slices, cuts = self._folded(view, pieces, first, begin, base, once)
        names = (state.queries, state.since, self._arrived, state.windows)
        return (
            ContextAwareState(rows, slices, base, last_seen, *names, ledgers, memory, cuts, state.given),
            blocks,
            passed,
        )

    def _folded(
        self, view: OrderedRows, pieces: SharedCuts, first: np.ndarray, begins: np.ndarray, base: np.ndarray, once: bool
    ) -> tuple[Tuples, Mapping[str, Parts], CachedCuts]:
        """The rows that are needed as such, and before them slices that start where undecided windows begin.

        Everything before a key's first begin is dropped, and its position noted in ``base``.
        """
        rows = view.rows
        # The first row to stay of each key, in a slice or as such.
        oldest = view.earliest(begins, first)
        if len(view.keys):
            base[view.keys] = view.position_at(oldest)
        low, high, number = self._shifting(view, pieces, first, oldest)
        # A cut of which some rows are needed as such stays one by itself: a slice starts with it.
        begins = sorted_unique(np.concatenate([begins, low[low < _of_row(first, view, low)]]))
        ends = _slice_ends(view, first, begins)
        single, _ = expand_ranges(first, view.ends)
        names = {i: repr(self.plan.monoids[i].aggregate) for i in self.monoids}
        cuts = CachedCuts.none()
        if len(low):
            low, high = (_moved(view, first, begins, place) for place in (low, high))
            partials = {names[i]: take_parts(pieces.parts(i), number) for i in self.monoids}
            cuts = CachedCuts(low, high, pieces.inner[number], partials)
        if not len(begins):
            return _aged(rows.take(single)), no_slices(self.plan, self.state.queries), cuts
        parts = {
            names[i]: pieces.over(i, begins, ends) if once else pieces.fold(self.plan.monoids[i], begins, ends)
            for i in self.monoids
        }
        parts[LAST], parts[WEIGHT] = (pieces.last_of(ends - 1),), (pieces.count(begins, ends),)
        return _aged(rows.take(single)).joined_before(self._as_rows(rows, begins, ends)), parts, cuts

    def _inner_bounds(self, came: np.ndarray | None) -> np.ndarray | None:
        """Where the rows stand with which cuts began that were divided by size; None if the size does not matter.

        It matters where cuts change after they were folded.
        """
        if self.plan.max_slice is None or self.plan.ordered or not self.plan.workload.lateness:
            return None
        inner = self.state.cuts.low[self.state.cuts.inner]
        if came is None:
            return inner
        place = np.empty(len(came), np.int64)
        place[came] = np.arange(len(came))
        return place[inner]

    def _shifting(
        self, view: OrderedRows, pieces: SharedCuts, first: np.ndarray, oldest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cuts of some window whose rows may still shift, and which of the cuts they are."""
        low, high = pieces.cuts[:-1], pieces.cuts[1:]
        if not len(low) or (len(first) == 1 and high[-1] <= first[0]):
            return NO_ROWS, NO_ROWS, NO_ROWS
        shifting = pieces.covered & (high > _of_row(first, view, low)) & (low >= _of_row(oldest, view, low))
        shifting &= high <= _of_row(view.ends, view, low)
        number = np.flatnonzero(shifting)
        return low[number], high[number], number

    def _as_rows(self, rows: Tuples, begins: np.ndarray, ends: np.ndarray) -> Tuples:
        """Slices as rows of many: at the place of the first, without values, with what is to be known of them."""
        out = rows.take(begins)
        nothing = np.zeros(len(begins), bool)
        columns = {name: replace(c, valid=nothing) for name, c in out.columns.items() if name in self.plan.column_types}
        for discretiser in self.discretisers:
            if discretiser.measures:
                fits = fits_column(discretiser.measures)
                columns[fits] = replace(out.columns[fits], values=np.zeros(len(begins), np.int64))
            if isinstance(discretiser, ConditionWindows):
                # A frame goes on with the last row of a slice, a punctuation starts with the first.
                at = ends - 1 if discretiser.frames else begins
                columns[discretiser.column] = rows.columns[discretiser.column].take(at)
        columns |= {name: column for name, column in out.columns.items() if is_shown(name)}
        columns[ARRIVAL] = out.columns[ARRIVAL]
        columns[SLOT] = Column(np.arange(len(begins)), pa.int64())
        return replace(out, columns=columns)

    def next_due(self, watermark: int) -> tuple[int, int]:
        """For ordered streams, when the next window may be reported: an event time, and a number of rows.

        Nothing can be reported before a row at or after that time has come, or that many rows. To be asked when no row
        is pending.
        """
        state, time = self.state, self.state.rows.time
        slot = state.rows.columns[SLOT].values
        weight = np.where(slot >= 0, np.append(state.slices[WEIGHT][0], 0)[slot], 1)

        def counted(some: np.ndarray) -> np.ndarray:
            return state.base + np.bincount(state.rows.key[some], weight[some], len(state.base)).astype(np.int64)

        came = Arrivals(counted(time <= INFINITY), counted(time < watermark), state.last_seen)
        if self.plan.workload.keys or not len(state.base):
            # Keys that have not come yet begin with nothing.
            came = Arrivals(np.append(came.rows, 0), np.append(came.final, 0), np.append(came.last, -INFINITY))
        due = [d.next_due(came, watermark) for d in self.discretisers]
        return min(time for time, _ in due), min(rows for _, rows in due)

    def settled(self) -> ContextAwareState:
        """The state with the rows that came since the last step; time slices were given all of them."""
        rows = self.state.rows.joined(self._pending, self.plan.order)
        return replace(self.state, rows=rows, arrived=self._arrived, cuts=CachedCuts.none(), given=self._arrived)

    def commit(self, state: ContextAwareState) -> None:
        """Take the state after a step."""
        self.state = state
        self._pending = []

    def _refuse_misfits(self, rows: Tuples) -> None:
        """Leave rows that go back on a measure out of the windows on it, and say so."""
        found: list[tuple[Misfit, str]] = []
        for measures in dict.fromkeys(d.measures for d in self.discretisers if d.measures):
            wrong = misfits(rows, measures, self._limits(measures))
            # Those of one reason; the others come up when the step is taken again.
            wrong = [m for m in wrong if m.reason == (found[0][0] if found else wrong[0]).reason]
            if wrong:
                self._mark_misfits(fits_column(measures), rows.columns[ARRIVAL].values[[m.row for m in wrong]])
                found += [(m, " and ".join(map(repr, measures))) for m in wrong]
        if found:
            first, on = found[0]
            places = dict.fromkeys(m.row for m, _ in found)
            error = RefusedRowsError(f"{first.what}; the row was left out of the windows on {on}", places, first.reason)
            if len(places) > 1:
                error.add_note(f"{len(places) - 1} more rows were left out")
            raise self._with_records(error, rows)

    def _with_records(self, error: RefusedRowsError, rows: Tuples) -> RefusedRowsError:
        error.records = rows.take(np.array(error.rows, np.int64))
        error.ago = self._arrived - error.records.columns[ARRIVAL].values
        return error

    def _limits(self, measures: tuple[str, ...]) -> dict[str, MeasureLimit]:
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

    def _leave_out(self, arrivals: np.ndarray) -> None:
        """Take rows out for good: of those that have just come, and of those that were there."""

        def without(rows: Tuples) -> Tuples:
            out = np.isin(rows.columns[ARRIVAL].values, arrivals)
            self.left_out.append(rows.take(np.flatnonzero(out)))
            return rows.take(np.flatnonzero(~out))

        self._pending = [without(rows) for rows in self._pending]
        self.state = replace(self.state, rows=without(self.state.rows), cuts=CachedCuts.none())

    def _report(
        self, number: int, found: WindowRanges, pieces: SharedCuts, before: Ledger, step: Step, keys: KeyTable
    ) -> tuple[Ledger, list[Block]]:
        """Compare what is true with what was said: new windows, windows of other rows, and windows that are no more."""
        if not len(before) and (found.decided < step.horizon).all():
            # Nothing was said that could change, and nothing is said now that could.
            return Ledger.empty(), self._inserts(number, found, pieces, keys)
        several, found = found.divided()
        now = entries_of(found, pieces)
        if not self.discretisers[number].distinct:
            now = replace(now, nth=ordinals(found.family, found.key, found.start, found.end))
        at = before.find(now)
        known = at >= 0
        old = before.take(at[known])
        changed = ~known
        changed[known] = ~old.same_rows(now.take(known))
        now.revision[known] = old.revision + changed[known]
        gone = np.ones(len(before), bool)
        gone[at[known]] = False
        shown = np.flatnonzero(changed)
        change = np.where(known, UPDATE, INSERT)[shown]
        blocks = self._retractions(number, before.take(gone), keys) + self._inserts(number, several, pieces, keys)
        if len(shown):
            blocks += self._blocks(number, found.take(shown), now.revision[shown], change, pieces, keys)
        return now, blocks

    def _inserts(self, number: int, found: WindowRanges, pieces: SharedCuts, keys: KeyTable) -> list[Block]:
        """Windows that are new."""
        insert, never = np.full(len(found), INSERT), np.zeros(len(found), np.int64)
        return self._blocks(number, found, never, insert, pieces, keys) if len(found) else []

    def _blocks(
        self,
        number: int,
        found: WindowRanges,
        revision: np.ndarray,
        change: np.ndarray,
        pieces: SharedCuts,
        keys: KeyTable,
    ) -> list[Block]:
        by_position = self.discretisers[number].by_position
        blocks = []
        for g, group in enumerate(self.plan.groups):
            expansion = self.queries[number][g]
            row, query = expansion.apply(found.family)
            if not len(query):
                continue
            windows = found if row is None else found.take(sorted_unique(row))
            first_query = partial(expansion.first_query, windows.family)
            asked = Asked(self.plan, keys, first_query, windows.key, windows.start, windows.end, by_position)
            values = pieces.answers(group, windows, asked)
            mine, heads = found, (change, revision)
            if row is not None:
                values = tuple(a.take(np.searchsorted(sorted_unique(row), row)) for a in values)
                mine, heads = found.take(row), (change[row], revision[row])
            times = (pieces.time[mine.low], pieces.time[mine.high - 1]) if by_position else None
            bounds = mine.start, mine.end
            blocks.append(Block(keys.decode(mine.key), query, *bounds, *heads, values, times, mine.repeats))
        return blocks

    def _retractions(self, number: int, gone: Ledger, keys: KeyTable) -> list[Block]:
        blocks = []
        for g in range(len(self.plan.groups)):
            row, query = self._asked(number, g, gone.family)
            if len(row):
                marks = np.full(len(row), RETRACT), gone.revision[row] + 1
                by_position = self.discretisers[number].by_position
                nowhere = np.full(len(row), np.iinfo(np.int64).max) if by_position else None
                blocks.append(
                    Block(
                        keys.decode(gone.key[row]),
                        query,
                        gone.start[row],
                        gone.end[row],
                        *marks,
                        (),
                        None if nowhere is None else (nowhere, nowhere),
                    )
                )
        return blocks

    def _asked(self, number: int, group: int, family: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The windows that a group's queries ask for, once for each query."""
        row, query = self.queries[number][group].apply(family)
        return (np.arange(len(family)) if row is None else row), query


def _removal(monoid: Monoid) -> str:
    return how_rows_leave(AggregateTraits.of(monoid.aggregate), exact=monoid.exact).choice


def _copy(column: Column) -> Column:
    return replace(column, values=column.values.copy(), valid=None if column.valid is None else column.valid.copy())


def _aged(rows: Tuples) -> Tuples:
    return replace(rows, fresh=np.zeros(len(rows), bool))


def _of_row(of_key: np.ndarray, view: OrderedRows, place: np.ndarray) -> np.ndarray:
    """What is known of the key of the row at each place."""
    return of_key[view.segment[place]] if len(view.keys) > 1 else np.broadcast_to(of_key[:1], place.shape)


def _slice_ends(view: OrderedRows, first: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Slices end where the next one starts, or where rows are needed as such."""
    return np.minimum(np.append(begins[1:], len(view.rows))[: len(begins)], _of_row(first, view, begins))


def _moved(view: OrderedRows, first: np.ndarray, begins: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Where rows, or the ends of their keys, stand after the rows before ``first`` have become slices."""
    ends = view.ends
    segment = np.searchsorted(ends, place) if len(ends) > 1 else np.zeros(len(place), np.int64)
    slices = np.searchsorted(begins, ends)  # of this key and those before it
    gone = np.cumsum(first - view.starts)
    as_row = place - gone[segment] + slices[segment]
    before = np.searchsorted(begins, place)
    as_slice = before + (view.starts - (gone - (first - view.starts)))[segment]
    return np.where(place < first[segment], as_slice, as_row)


def _of_track(group: Group, window: int, mine: set[int]) -> np.ndarray:
    return np.array([q for q in group.context.get(window, NO_ROWS).tolist() if q in mine], np.int64)


def _grown(array: np.ndarray, size: int, filler: int) -> np.ndarray:
    """A copy with room for more keys."""
    out = np.full(max(size, len(array)), filler, np.int64)
    out[: len(array)] = array
    return out
