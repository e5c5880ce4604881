"""Tracks: rows in order, for the windows that only rows can tell. The second half of the slice manager.

Context-aware windows (counts, other measures, punctuations, frames, user code) are ranges of rows in event-time order.
A track keeps the rows whose order may still change, and those that undecided windows need; at each watermark step its
discretisers say where windows lie, rows are cut at the bounds of all of them into slices that all queries share, and
what was reported before is compared with what is true now.

The order of rows before the horizon is final: a row that comes later than that does not count here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Parts
from slicewise.amounts import ROWS
from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.plan.plan import Group, Plan, needs_rows
from slicewise.results import INSERT, RETRACT, UPDATE, Block
from slicewise.slicing.discretise import (
    NO_ROWS,
    Counts,
    Discretiser,
    Found,
    Marked,
    RowsPerTick,
    Step,
    TimePerRows,
    Units,
    View,
    ordinals,
)
from slicewise.slicing.intake import conform
from slicewise.slicing.kernels import expand_ranges, sorted_unique
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.ledgers import Ledger, entries_of
from slicewise.slicing.periodic import NEVER
from slicewise.slicing.pieces import ARRIVAL, LAST, OWN_COLUMNS, SLOT, WEIGHT, Pieces
from slicewise.slicing.reports import Expansion
from slicewise.slicing.tuples import Tuples
from slicewise.slicing.userwindows import make_user_windows
from slicewise.windows import Sliding, Window

__all__ = ["Ledger", "Track", "TrackState"]


@dataclass(frozen=True, eq=False)
class TrackState:
    """All that a track knows, as data.

    ``queries`` are the names of those it serves, ``since`` is the event time from which on it counts rows. Ledgers and
    what user code remembers stand under the name of their discretiser, whose ``windows`` they number.
    ``base`` and ``last_seen`` have an entry for every key: the position of the key's first row that is still here, and
    the latest event time of any of its rows.
    """

    rows: Tuples
    slices: Mapping[str, Parts]
    base: np.ndarray
    last_seen: np.ndarray
    queries: tuple[str, ...]
    since: int = -NEVER
    arrived: int = 0
    windows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slice_count(self) -> int:
        """How many of the rows are slices of several."""
        return int((self.rows.columns[SLOT].values >= 0).sum())

    @classmethod
    def empty(cls, plan: Plan, queries: tuple[str, ...], since: int = -NEVER) -> TrackState:
        """No rows at all."""
        said = {q.name: q for q in plan.workload.queries}
        discretisers = discretisers_for(list(dict.fromkeys(said[name].window for name in queries)))
        conditions = {d.column: pa.bool_() for d in discretisers if isinstance(d, Marked)}
        types = {**plan.column_types, **conditions, **dict.fromkeys(OWN_COLUMNS, pa.int64())}
        parts = {repr(m.aggregate): m.identities(0) for m in plan.monoids}
        windows = {d.name: tuple(map(repr, d.windows)) for d in discretisers}
        return cls(Tuples.empty(types), parts, NO_ROWS, NO_ROWS, queries, since, windows=windows)


def new_tracks(plan: Plan) -> tuple[TrackState, ...]:
    """The states of the tracks of a plan that has seen nothing: one, if rows must be counted at all."""
    if not plan.context:
        return ()
    asked = tuple(q.name for q in plan.workload.queries if needs_rows(q.window))
    return (TrackState.empty(plan, asked),)


def carried_track(state: TrackState, plan: Plan) -> TrackState | None:
    """The state of a track for a plan with other queries; None if it serves none of them."""
    said = {q.name: q for q in plan.workload.queries}
    names = tuple(name for name in state.queries if name in said)
    if not names:
        return None
    now = {d.name: d for d in discretisers_for(list(dict.fromkeys(said[name].window for name in names)))}
    ledgers = {}
    for name, ledger in state.ledgers.items():
        if name in now:
            places = {repr(w): i for i, w in enumerate(now[name].windows)}
            ledgers[name] = ledger.renumbered(np.array([places.get(w, -1) for w in state.windows[name]], np.int64))
    wanted = TrackState.empty(plan, names).rows.columns
    nothing = Column.of([None] * len(state.rows))
    columns = {n: state.rows.columns.get(n, conform(nothing, c.type, n)) for n, c in wanted.items()}
    return replace(
        state,
        rows=replace(state.rows, columns=columns),
        queries=names,
        slices=_carried_parts(state, plan),
        windows={name: tuple(map(repr, d.windows)) for name, d in now.items()},
        ledgers=ledgers,
        memory={name: memory for name, memory in state.memory.items() if name in now},
    )


class Track:
    """The context-aware queries of a plan that began to count rows at the same moment."""

    def __init__(self, plan: Plan, state: TrackState) -> None:
        self.plan = plan
        self.state = state
        served = {name: number for number, (name, _) in enumerate(plan.schema.queries) if name in set(state.queries)}
        windows = dict.fromkeys(plan.workload.queries[number].window for number in served.values())
        self.discretisers = discretisers_for(list(windows))
        place = {window: i for i, window in enumerate(plan.context)}
        mine = set(served.values())
        #: For each discretiser and each group, the queries of each of its windows.
        self.queries = [
            [Expansion([_of_track(g, place[w], mine) for w in d.windows]) for g in plan.groups]
            for d in self.discretisers
        ]
        self._pending: list[Tuples] = []
        self._arrived = state.arrived

    def counted(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], horizon: int) -> Tuples:
        """Those of some new rows that come in time to count, with what is to be known of them."""
        kept = np.flatnonzero(times >= max(horizon, self.state.since))
        mine = {name: columns[name].take(kept) for name in self.plan.column_types}
        for discretiser in self.discretisers:
            if isinstance(discretiser, Marked):
                mine[discretiser.column] = discretiser.mark(mine, len(kept))
        mine[ARRIVAL] = mine[LAST] = Column(self._arrived + kept, pa.int64())
        mine[WEIGHT] = Column(np.ones(len(kept), np.int64), pa.int64())
        mine[SLOT] = Column(np.full(len(kept), -1), pa.int64())
        return Tuples.new(key[kept], times[kept], mine)

    def insert(self, rows: Tuples, arrived: int) -> None:
        """Let rows in, of so many that arrived."""
        if len(rows):
            self._pending.append(rows)
        self._arrived += arrived

    def advance(self, step: Step, keys: KeyTable) -> tuple[TrackState, list[Block]]:
        """Report what is due, correct what changed; gives the state after the step, which is not yet taken.

        Rows that user code stumbles over, or whose measure goes backwards, are left out; the step can be taken again.
        """
        rows = self.state.rows.joined(self._pending, self.plan.workload.order)
        try:
            for discretiser in self.discretisers:
                if isinstance(discretiser, Units):
                    discretiser.check(rows)
            return self._advance(step, rows, keys)
        except RefusedRowsError as error:
            self._leave_out(rows.columns[ARRIVAL].values[error.rows])
            raise

    def _advance(self, step: Step, rows: Tuples, keys: KeyTable) -> tuple[TrackState, list[Block]]:
        state = self.state
        many = max(len(keys), 1)  # without key columns there is one key
        base, last_seen = _grown(state.base, many, 0), _grown(state.last_seen, many, -NEVER)
        view = View(rows, rows.columns[WEIGHT].values, base, last_seen)
        memory: dict[str, Any] = {}
        first, begins, all_found = view.first_at(step.horizon), [], []
        for discretiser in self.discretisers:
            found, needed, kept = discretiser.find_on(view, step, state.memory.get(discretiser.name))
            if kept is not None:
                memory[discretiser.name] = kept
            first = np.minimum(first, needed.rows)
            begins.append(needed.begins)
            all_found.append(found)
        # Rows are cut at the bounds of the windows of all queries, and each cut is folded once.
        pieces = Pieces(self.plan, rows, state.slices, None, [f for f in all_found if f.rows is None])
        ledgers: dict[str, Ledger] = {}
        blocks: list[Block] = []
        for number, (discretiser, found) in enumerate(zip(self.discretisers, all_found, strict=True)):
            own = pieces if found.rows is None else Pieces(self.plan, rows, state.slices, found.rows, [found])
            before = state.ledgers.get(discretiser.name, Ledger.empty())
            ledger, more = self._report(number, found, own, before, step, keys)
            blocks += more
            ledgers[discretiser.name] = ledger.take(np.flatnonzero(ledger.decided >= step.horizon))
        if len(view.keys):
            last_seen[view.keys] = np.maximum(last_seen[view.keys], view.time[view.ends - 1])
        rows, slices = self._folded(view, pieces, first, np.concatenate([NO_ROWS, *begins]), base)
        after = replace(state, rows=rows, slices=slices, base=base, last_seen=last_seen, arrived=self._arrived)
        return replace(after, ledgers=ledgers, memory=memory), blocks

    def _folded(
        self, view: View, pieces: Pieces, first: np.ndarray, begins: np.ndarray, base: np.ndarray
    ) -> tuple[Tuples, Mapping[str, Parts]]:
        """The rows that are needed as such, and before them slices that start where undecided windows begin.

        Everything before a key's first begin is dropped, and its position noted in ``base``.
        """
        rows = view.rows
        begins = sorted_unique(begins[begins < first[view.segment[begins]]])
        # The first row to stay of each key, in a slice or as such.
        oldest = view.earliest(begins, first)
        if len(view.keys):
            base[view.keys] = view.position_at(oldest)
        # Slices end where the next one starts, or where rows are needed as such.
        ends = np.minimum(np.append(begins[1:], len(rows))[: len(begins)], first[view.segment[begins]])
        single, _ = expand_ranges(first, view.ends)
        if not len(begins):
            return _aged(rows.take(single)), {repr(m.aggregate): m.identities(0) for m in self.plan.monoids}
        parts = {repr(m.aggregate): pieces.fold(m, begins, ends) for m in self.plan.monoids}
        slices = self._as_rows(rows, view, begins, ends)
        together = _aged(rows.take(single)).joined_before(slices)
        return together, parts

    def _as_rows(self, rows: Tuples, view: View, begins: np.ndarray, ends: np.ndarray) -> Tuples:
        """Slices as rows of many: at the place of the first, without values, with what is to be known of them."""
        total = np.concatenate([[0], np.cumsum(view.weight)])
        out = rows.take(begins)
        nothing = np.zeros(len(begins), bool)
        columns = {name: replace(c, valid=nothing) for name, c in out.columns.items() if name in self.plan.column_types}
        for discretiser in self.discretisers:
            if isinstance(discretiser, Marked):
                # A frame goes on with the last row of a slice, a punctuation starts with the first.
                at = ends - 1 if discretiser.frames else begins
                columns[discretiser.column] = rows.columns[discretiser.column].take(at)
        columns[ARRIVAL] = out.columns[ARRIVAL]
        columns[LAST] = rows.columns[LAST].take(ends - 1)
        columns[WEIGHT] = Column(total[ends] - total[begins], pa.int64())
        columns[SLOT] = Column(np.arange(len(begins)), pa.int64())
        return replace(out, columns=columns)

    def settled(self) -> TrackState:
        """The state with the rows that came since the last step."""
        rows = self.state.rows.joined(self._pending, self.plan.workload.order)
        return replace(self.state, rows=rows, arrived=self._arrived)

    def commit(self, state: TrackState) -> None:
        """Take the state after a step."""
        self.state = state
        self._pending = []

    def _leave_out(self, arrivals: np.ndarray) -> None:
        """Take rows out for good: of those that have just come, and of those that were there."""

        def without(rows: Tuples) -> Tuples:
            return rows.take(np.flatnonzero(~np.isin(rows.columns[ARRIVAL].values, arrivals)))

        self._pending = [without(rows) for rows in self._pending]
        self.state = replace(self.state, rows=without(self.state.rows))

    def _report(
        self, number: int, found: Found, pieces: Pieces, before: Ledger, step: Step, keys: KeyTable
    ) -> tuple[Ledger, list[Block]]:
        """Compare what is true with what was said: new windows, windows of other rows, and windows that are no more."""
        now = entries_of(found, pieces)
        if not len(before) and (found.decided < step.horizon).all():
            # Nothing was said that could change, and nothing is said now that could.
            insert = np.full(len(found), INSERT)
            return Ledger.empty(), self._blocks(number, found, now, insert, pieces, keys) if len(found) else []
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
        blocks = self._retractions(number, before.take(gone), keys)
        if len(shown):
            blocks += self._blocks(number, found.take(shown), now.take(shown), change, pieces, keys)
        return now, blocks

    def _blocks(
        self, number: int, found: Found, now: Ledger, change: np.ndarray, pieces: Pieces, keys: KeyTable
    ) -> list[Block]:
        times = None
        if self.discretisers[number].by_position:
            times = (pieces.time[found.low], pieces.time[found.high - 1])
        blocks = []
        for g, group in enumerate(self.plan.groups):
            row, query = self._asked(number, g, found.family)
            if not len(row):
                continue
            asked = sorted_unique(row)
            answers = pieces.answers(group, found.low[asked], found.high[asked])
            place = np.searchsorted(asked, row)
            blocks.append(
                Block(
                    keys.decode(now.key[row]),
                    query,
                    now.start[row],
                    now.end[row],
                    change[row],
                    now.revision[row],
                    tuple(a.take(place) for a in answers),
                    None if times is None else (times[0][row], times[1][row]),
                )
            )
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


def _carried_parts(state: TrackState, plan: Plan) -> dict[str, Parts]:
    many = state.slice_count
    names = {repr(m.aggregate): m for m in plan.monoids}
    return {name: state.slices[name] if name in state.slices else m.identities(many) for name, m in names.items()}


def _aged(rows: Tuples) -> Tuples:
    return replace(rows, fresh=np.zeros(len(rows), bool))


def _of_track(group: Group, window: int, mine: set[int]) -> np.ndarray:
    return np.array([q for q in group.context.get(window, NO_ROWS).tolist() if q in mine], np.int64)


def _grown(array: np.ndarray, size: int, filler: int) -> np.ndarray:
    """A copy with room for more keys."""
    out = np.full(max(size, len(array)), filler, np.int64)
    out[: len(array)] = array
    return out


def discretisers_for(windows: Sequence[Window]) -> list[Discretiser]:
    """One discretiser for all windows that can be found together, in a fixed order."""
    together: dict[tuple, list[Window]] = {}
    for window in windows:
        together.setdefault(_kind(window), []).append(window)
    return [_make(kind[0], found) for kind, found in together.items()]


def _kind(window: Window) -> tuple:
    if isinstance(window, Sliding):
        length, every = window.length.measure, window.every.measure
        if length == every:
            return ("counts",) if length == ROWS else ("units", length.column)
        return ("rows per tick" if length == ROWS else "time per rows", window)
    return (window.kind, window)


def _make(kind: str, windows: list) -> Discretiser:
    if kind == "counts":
        return Counts(windows)
    if kind == "units":
        return Units(windows)
    if kind == "rows per tick":
        return RowsPerTick(windows)
    if kind == "time per rows":
        return TimePerRows(windows)
    (window,) = windows
    return Marked(window) if kind in ("punctuated", "frames") else make_user_windows(window)
