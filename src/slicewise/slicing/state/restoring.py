"""Restoring: an engine that goes on from a state, with queries added or removed and types that may have grown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slicewise.columns import type_name
from slicewise.conditions.expression import derived_types
from slicewise.errors import StateError
from slicewise.plan.plan import Plan
from slicewise.slicing.engine import Engine
from slicewise.slicing.intake.input import check_time
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.state.adapting import adapted_state, carried_state
from slicewise.slicing.state.snapshots import OperatorState, retire
from slicewise.slicing.state.widening import check_types, widened_state
from slicewise.slicing.time.listed import ListedWindows
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["Restored", "continue_from"]

MakePlan = Callable[[Workload, Mapping[str, pa.DataType], pa.DataType], Plan]


@dataclass(frozen=True, eq=False)
class Restored:
    """What goes on: the engine, the keys, the types of columns, and the names that no query may count rows under."""

    engine: Engine
    keys: KeyTable
    types: dict[str, pa.DataType]
    retired: frozenset[str]


def continue_from(
    state: OperatorState,
    workload: Workload,
    types: Mapping[str, pa.DataType],
    time_type: pa.DataType | None,
    make_plan: MakePlan,
) -> Restored:
    """What a workload goes on with from a state that has seen rows.

    ``types`` and ``time_type`` are those that are known already; None if the time column was not seen yet.

    Raises
    ------
    StateError
        If the state cannot be continued with them.
    """
    bound = state.bound
    assert bound is not None
    if time_type not in (None, bound.time_type):
        was = type_name(bound.time_type)
        raise StateError(
            f"the state was written with the time column {workload.time!r} as {was}, and now it is "
            f"{type_name(time_type)}; cast it to {was}, or start anew without the old state"
        )
    queries = state.description["queries"]
    kept = workload.with_queries(tuple(q for q in workload.queries if queries.get(q.name) == repr(q)))
    retired = retire(bound.retired, bound.counting, [q.name for q in kept.queries], workload)
    measured = {m.column for q in kept.queries for m in q.window.measures if m.column}
    missing = [c for c in workload.inputs if c not in {**bound.types, **types}]
    if missing:
        raise StateError(
            f"the snapshot never read column {missing[0]!r}, so its type is not known; declare it when the operator is "
            f"made: operator(types={{{missing[0]!r}: 'double'}})"
        )
    derived = derived_types(workload.columns, {**bound.types, **types})
    wider = check_types(bound.types, {**types, **derived}, measured)
    plan = make_plan(kept, wider, bound.time_type)
    engine = Engine(plan, widened_state(carried_state(bound.engine, bound.layout, plan), bound.types, plan))
    _check_new_edges(kept, state, engine)
    if kept.queries != workload.queries:
        check_time(workload, bound.time_type)
        plan = make_plan(workload, wider, bound.time_type)
        engine = Engine(plan, adapted_state(engine, plan))
    keys = KeyTable([wider[k] for k in workload.keys], workload.keys)
    for key in bound.keys:
        keys.number(key)
    keys.numbering = bound.numbering
    return Restored(engine, keys, wider, retired)


def _check_new_edges(kept: Workload, state: OperatorState, engine: Engine) -> None:
    """Refuse windows that were added where rows have come already, and have left or stand in one slice."""
    time = engine.state.time
    slices = time.slices
    for query in kept.queries:
        listing, begun = query.window.listing, state.description.get("edges", {}).get(query.name)
        if listing is None or begun is None or abs(begun[1]) >= INFINITY:
            continue
        watermark, latest = begun[1], max(int(slices.last.max(initial=-INFINITY)), time.complete_from)
        if latest < watermark:
            continue
        listed = ListedWindows([listing], kept.keys)
        rows = np.concatenate([slices.first, slices.last, [watermark, time.complete_from]])
        listed.cover(watermark, latest, np.clip(rows, watermark, latest))
        starts = listed.start[(listed.start >= watermark) & (listed.start < time.complete_from)]
        if len(starts):
            raise StateError(
                f"the edges of query {query.name!r} have a new window that starts at {starts.min()}, and rows up to "
                f"{time.complete_from - 1} have come and left already; add windows before rows of their time come"
            )
        edges = listed.edges
        low = np.searchsorted(edges, np.maximum(slices.first, watermark - 1), "right")
        inside = np.flatnonzero(low < np.searchsorted(edges, slices.last, "right"))
        if len(inside):
            at = inside[0]
            raise StateError(
                f"the edges of query {query.name!r} have a new start or end at {edges[low[at]]}, and rows around it "
                f"have come already: from {slices.first[at]} to {slices.last[at]} they are one slice; add windows "
                "before rows of their time come"
            )
