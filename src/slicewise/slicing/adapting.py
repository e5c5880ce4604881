"""Adapting: carry the state of an engine over to a plan with queries added or removed.

Used while an operator runs, and when a snapshot is restored into a workload that has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slicewise.aggregates.base import Parts
from slicewise.columns import Column
from slicewise.plan.plan import Plan, needs_rows
from slicewise.slicing.answers.answers import Reported, Table
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.input import conform
from slicewise.slicing.rows.context_aware import ContextAwareState, carried_track
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.windows import Session
from slicewise.workload import Query

__all__ = ["Labels", "adapted_state", "carried_state"]


@dataclass(frozen=True)
class Labels:
    """What the arrays of a state stand for: which aggregates, windows and gaps, in which order."""

    aggregates: tuple[str, ...]
    windows: tuple[str, ...]
    gaps: tuple[int, ...]

    @classmethod
    def of(cls, plan: Plan) -> Labels:
        """The labels of a plan's states."""
        return cls(tuple(map(repr, plan.aggregates)), tuple(map(repr, plan.windows)), plan.gaps)


def adapted_state(engine: Engine, plan: Plan) -> State:
    """The state of ``engine`` as ``plan`` needs it.

    Queries that both have go on as if nothing had happened. For a new one :func:`complete_since` says from which event
    time on it is complete.
    """
    old = engine.settled()
    state = carried_state(old, Labels.of(engine.plan), plan)
    before = {q.name: q for q in engine.plan.workload.queries}
    added = [q for q in plan.workload.queries if before.get(q.name) != q]
    counting = tuple(q.name for q in added if needs_rows(q.window))
    begin = max(old.latest + 1, engine.horizon) if old.latest > -INFINITY else -INFINITY
    if counting:
        state = replace(state, tracks=(*state.tracks, ContextAwareState.empty(plan, counting, begin)))
    if not added or old.latest <= -INFINITY:
        return state
    target = Engine(plan, state)
    state = target.state
    cut_anew = set(plan.tuple_types) <= set(old.tuples.columns) and int(old.slices.rows.sum()) == len(old.tuples)
    if cut_anew and len(state.tuples):
        # The rows are there: cut them at the edges of the new query, and nothing is lost to it.
        cells = target.edges.needed_cells(state.tuples.time, target.horizon)
        state = replace(state, slices=state.tuples.cut(cells, plan.gaps, plan.monoids))
    had = set() if cut_anew and len(state.tuples) else set(map(repr, engine.plan.aggregates))
    missing = {repr(a) for q in added for a in q.aggregates.values()} - had if had else set()
    periodic = [q for q in added if q.name not in counting]
    since = {q.name: complete_since(q, state, missing) for q in periodic} | dict.fromkeys(counting, begin)
    after = {q.name: old.watermark for q in periodic}
    return replace(state, since={**state.since, **since}, after={**state.after, **after})


def complete_since(query: Query, state: State, missing: set[str]) -> int:
    """The event time from which a query that is added now gets every window right.

    Rows before ``state.forgotten`` are gone, slices that are there do not have the partials of ``missing`` aggregates,
    and a slice that an edge of the new query runs through cannot be told apart.
    """
    slices, since = state.slices, state.forgotten
    if any(repr(a) in missing for a in query.aggregates.values()):
        since = max(since, state.latest + 1)
    if isinstance(query.window, Session):
        gap = int(query.window.gap.size)
        unclear = slices.last[slices.last - slices.first > gap]
        since = max(since, int(unclear.max()) + 1 if len(unclear) else -INFINITY)
        # A session that starts within the gap after a row that is gone might have started with that row.
        return since + gap if since > -INFINITY else since
    grid = Edges(PeriodicWindows([query.window])).needed
    unclear = slices.last[grid.floor(slices.first) != grid.floor(slices.last)]
    return max(since, int(unclear.max()) + 1 if len(unclear) else -INFINITY)


def carried_state(state: State, labels: Labels, plan: Plan) -> State:
    """A state whose arrays stand for ``labels``, rearranged for ``plan``; nothing is pending in it."""
    names = {q.name for q in plan.workload.queries}
    return replace(
        state,
        slices=replace(
            state.slices,
            closed=_levels(state.slices.closed, labels.gaps, plan.gaps),
            parts=_parts(state.slices, labels.aggregates, plan),
        ),
        tuples=_tuples(state.tuples, labels.gaps, plan),
        reported=_reported(state.reported, labels, plan),
        tracks=tuple(t for t in (carried_track(track, plan) for track in state.tracks) if t is not None),
        since={n: t for n, t in state.since.items() if n in names},
        after={n: t for n, t in state.after.items() if n in names},
    )


def _levels(closed: np.ndarray, old: Sequence[int], new: Sequence[int]) -> np.ndarray:
    """Closed under a gap means closed under every smaller one: count the new gaps up to the largest closed one.

    >>> _levels(np.array([0, 1, 2]), old=(10, 30), new=(5, 20, 30))
    array([0, 1, 3])
    """
    largest = np.array([-1, *old])
    return np.searchsorted(np.array(new, np.int64), largest, "right")[closed]


def _parts(slices: Slices, aggregates: Sequence[str], plan: Plan) -> tuple[Parts, ...]:
    place = {label: i for i, label in enumerate(aggregates)}
    found = []
    for monoid in plan.monoids:
        at = place.get(repr(monoid.aggregate))
        found.append(monoid.identities(len(slices)) if at is None else slices.parts[at])
    return tuple(found)


def _tuples(tuples: Tuples, gaps: Sequence[int], plan: Plan) -> Tuples:
    types = plan.tuple_types
    if not types or not len(tuples):
        return Tuples.empty(types)
    nothing = Column.of([None] * len(tuples))
    columns = {name: tuples.columns.get(name) or conform(nothing, type_, name) for name, type_ in types.items()}
    return replace(tuples, closed=_levels(tuples.closed, gaps, plan.gaps), columns=columns)


def _reported(reported: Reported, labels: Labels, plan: Plan) -> Reported:
    now = {repr(w): i for i, w in enumerate(plan.windows)}
    renamed = np.array([now.get(w, -1) for w in labels.windows], np.int64)
    windows = reported.windows
    if len(windows):
        windows = replace(windows, owner=renamed[windows.owner])
        windows = windows.take(windows.owner >= 0)
    place = {gap: i for i, gap in enumerate(labels.gaps)}
    sessions = tuple(reported.sessions[place[g]] if g in place else Table.empty() for g in plan.gaps)
    return Reported(windows, sessions)
