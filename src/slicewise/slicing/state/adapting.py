"""Adapting: carry the state of an engine over to a plan with queries added or removed.

Used while an operator runs, and when a snapshot is restored into a workload that has changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.plan.plan import Plan
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.intake.input import conform
from slicewise.slicing.rows.context_state import carried_queries, empty_sets
from slicewise.slicing.state.part_labels import Labels, carried_parts, labels_from_data
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slice_manager import TimeState
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.workload import Query

__all__ = ["StateLayout", "adapted_state", "carried_state"]


@dataclass(frozen=True)
class StateLayout:
    """What the arrays of a state stand for: which parts of partials, windows and gaps, in which order."""

    labels: Labels
    windows: tuple[str, ...]
    gaps: tuple[int, ...]

    @classmethod
    def of(cls, plan: Plan) -> StateLayout:
        """The layout of a plan's states."""
        return cls(
            tuple(m.labels for m in plan.monoids),
            tuple("\0".join(_window_labels(number, plan)) for number in range(len(plan.windows))),
            plan.gaps,
        )

    def to_data(self) -> dict[str, Any]:
        """The layout as plain data."""
        return {"labels": self.labels, "windows": self.windows, "gaps": self.gaps}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> StateLayout:
        """The layout from what :meth:`to_data` gave."""
        return cls(labels_from_data(data), tuple(data["windows"]), tuple(data["gaps"]))


def adapted_state(engine: Engine, plan: Plan) -> State:
    """The state of ``engine`` as ``plan`` needs it.

    Queries that both have go on as if nothing had happened. For a new one :func:`complete_since` tells from which event
    time on it is complete.
    """
    old = engine.compacted()
    state = carried_state(old, StateLayout.of(engine.plan), plan)
    before = {q.name: q for q in engine.plan.workload.queries}
    added = [q for q in plan.workload.queries if before.get(q.name) != q]
    counting = tuple(q.name for q in added if q.window.needs_rows)
    begin = max(old.latest + 1, engine.horizon) if old.latest > -INFINITY else -INFINITY
    state = replace(state, context_aware=(*state.context_aware, *empty_sets(plan, counting, begin)))
    if not added or old.latest <= -INFINITY:
        return state
    target = Engine(plan, state)
    tuples = target.state.time.tuples
    whole = set(plan.tuple_types) <= set(old.time.tuples.columns) and _all_rows_are_stored(old.time)
    if whole and len(tuples):
        # The rows are there: cut them at the edges of the new query, and nothing is lost to it.
        horizon = target.time.kept_since(target.horizon)
        slices = tuples.cut(target.edges.needed_cells(tuples.time, horizon), plan.gaps, plan.monoids)
        state = replace(state, time=replace(state.time, slices=slices))
        known_since = dict.fromkeys((label for monoid in plan.monoids for label in monoid.labels), -INFINITY)
    else:
        known_since = _known_since(engine)
    on_time = [q for q in added if q.name not in counting]
    since = {q.name: complete_since(q, state, plan, known_since) for q in on_time} | dict.fromkeys(counting, begin)
    after = {q.name: old.watermark for q in on_time}
    return replace(
        state,
        reports_from={**state.reports_from, **since},
        reports_after={**state.reports_after, **after},
    )


def _known_since(engine: Engine) -> dict[str, int]:
    """For each part that is kept, the event time from which on time slices have it: not before a query asked for it."""
    plan = engine.plan
    known: dict[str, int] = {}
    monoids = {a: answer.monoid for a, answer in zip(plan.aggregates, plan.answers, strict=True)}
    for query in (q for q in plan.workload.queries if not q.window.needs_rows):
        since = engine.reports_from.get(query.name, -INFINITY)
        for label in (label for a in query.aggregates.values() for label in monoids[a].labels):
            known[label] = min(known.get(label, INFINITY), since)
    return known


def complete_since(query: Query, state: State, plan: Plan, known_since: Mapping[str, int]) -> int:
    """The event time from which a query that is added now gets every window right.

    Rows before ``complete_from`` are gone, slices that are there do not have the parts of partials that nobody asked
    for, and a slice that an edge of the new query runs through cannot be told apart.
    """
    slices, since = state.time.slices, state.time.complete_from
    asked = set(query.aggregates.values())
    monoids = (answer.monoid for a, answer in zip(plan.aggregates, plan.answers, strict=True) if a in asked)
    for label in (label for monoid in monoids for label in monoid.labels):
        since = max(since, known_since.get(label, state.latest + 1))
    gap = query.window.session_gap
    if gap is not None:
        unclear = slices.last[slices.last - slices.first > gap]
        since = max(since, int(unclear.max()) + 1 if len(unclear) else -INFINITY)
        # A session that starts within the gap after a row that is gone might have started with that row.
        return since + gap if since > -INFINITY else since
    grid = Edges(PeriodicWindows([query.window], plan.workload.keys)).needed
    unclear = slices.last[grid.floor(slices.first) != grid.floor(slices.last)]
    return max(since, int(unclear.max()) + 1 if len(unclear) else -INFINITY)


def carried_state(state: State, layout: StateLayout, plan: Plan) -> State:
    """A state whose arrays stand for ``layout``, rearranged for ``plan``; nothing is pending in it."""
    names = {q.name for q in plan.workload.queries}
    time = state.time
    slices = replace(
        time.slices,
        closed_gaps=_levels(time.slices.closed_gaps, layout.gaps, plan.gaps),
        parts=carried_parts(time.slices, layout.labels, plan.monoids, plan),
    )
    carried = (carried_queries(queries, plan) for queries in state.context_aware)
    return replace(
        state,
        time=replace(
            time,
            slices=slices,
            tuples=_tuples(time.tuples, layout.gaps, plan),
            reported=_reported(time.reported, layout, plan),
            ticks={name: ticks for name, ticks in time.ticks.items() if name in {p.name for p in plan.panels}},
        ),
        context_aware=tuple(queries for queries in carried if queries is not None),
        reports_from={n: t for n, t in state.reports_from.items() if n in names},
        reports_after={n: t for n, t in state.reports_after.items() if n in names},
    )


def _all_rows_are_stored(time: TimeState) -> bool:
    return int(time.slices.rows.sum()) == len(time.tuples)


def _levels(closed: np.ndarray, old: Sequence[int], new: Sequence[int]) -> np.ndarray:
    """Closed under a gap means closed under every smaller one: count the new gaps up to the largest closed one.

    >>> _levels(np.array([0, 1, 2]), old=(10, 30), new=(5, 20, 30))
    array([0, 1, 3])
    """
    largest = np.array([-1, *old])
    levels: np.ndarray = np.searchsorted(np.array(new, np.int64), largest, "right")[closed]
    return levels


def _tuples(tuples: Tuples, gaps: Sequence[int], plan: Plan) -> Tuples:
    types = plan.tuple_types
    if not types or not len(tuples):
        return Tuples.empty(types)
    nothing = Column.of([None] * len(tuples))
    columns = {name: tuples.columns.get(name) or conform(nothing, type_, name) for name, type_ in types.items()}
    return replace(tuples, closed_gaps=_levels(tuples.closed_gaps, gaps, plan.gaps), columns=columns)


def _window_labels(number: int, plan: Plan) -> list[str]:
    """What a window is called in states. How a list of windows reads does not tell it from another; its queries do."""
    window, queries = plan.windows[number], plan.workload.queries
    if number in plan.filled:
        query = queries[plan.filled[number]]
        return [f"{query.name}: {query.described_window}"]
    if window.listing is None:
        return [repr(window)]
    return [f"{query.name}: {window!r}" for query in queries if query.window == window and not query.empty]


def _reported(reported: ReportedWindows, layout: StateLayout, plan: Plan) -> ReportedWindows:
    """Families are windows, then gaps; both may have other numbers now."""
    windows = {label: i for i in range(len(plan.windows)) for label in _window_labels(i, plan)}
    gaps = {gap: len(plan.windows) + i for i, gap in enumerate(plan.gaps)}
    known = [[windows[label] for label in w.split("\0") if label in windows] for w in layout.windows]
    families = [numbers[0] if numbers else -1 for numbers in known] + [gaps.get(gap, -1) for gap in layout.gaps]
    return reported.renumbered(np.array(families, np.int64))
