"""Track states: what a track knows, as data, and which discretisers serve its queries. Held by the tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Parts
from slicewise.amounts import ROWS
from slicewise.columns import Column
from slicewise.plan.plan import Plan, needs_rows
from slicewise.slicing.input import conform
from slicewise.slicing.rows.cut_updates import CachedCuts
from slicewise.slicing.rows.discretisers import NO_ROWS, ConditionWindows, CountWindows, Discretiser
from slicewise.slicing.rows.ledgers import Ledger
from slicewise.slicing.rows.measure_windows import MultiMeasureWindows, UnitWindows
from slicewise.slicing.rows.monotonic import fits_column
from slicewise.slicing.rows.shared_cuts import LAST, OWN_COLUMNS, SLOT, WEIGHT
from slicewise.slicing.rows.user_windows import make_user_windows
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.windows import Sliding, Window

__all__ = ["ContextAwareState", "carried_track", "discretisers_for", "monoids_of", "new_tracks", "no_slices"]


@dataclass(frozen=True, eq=False)
class ContextAwareState:
    """All that a track knows, as data.

    ``queries`` are the names of those it serves, ``since`` is the event time from which on it counts rows. Ledgers and
    what user code remembers stand under the name of their discretiser, whose ``windows`` they number.
    ``base`` and ``last_seen`` have an entry for every key: the position of the key's first row that is still here, and
    the latest event time of any of its rows. The time slices were ``given`` all rows that the watermark has passed and
    so many of those that came first. ``cuts`` are what was folded of rows whose order may still change; it is
    not saved, because it can be folded again.
    """

    rows: Tuples
    slices: Mapping[str, Parts]
    base: np.ndarray
    last_seen: np.ndarray
    queries: tuple[str, ...]
    since: int = -INFINITY
    arrived: int = 0
    windows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ledgers: Mapping[str, Ledger] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    cuts: CachedCuts = field(default_factory=CachedCuts.none)
    given: int = 0

    @property
    def slice_count(self) -> int:
        """How many of the rows are slices of several."""
        return int((self.rows.columns[SLOT].values >= 0).sum())

    @property
    def is_row(self) -> np.ndarray:
        """Which of the rows are single ones."""
        return self.rows.columns[SLOT].values < 0

    @classmethod
    def empty(cls, plan: Plan, queries: tuple[str, ...], since: int = -INFINITY) -> ContextAwareState:
        """No rows at all."""
        said = {q.name: q for q in plan.workload.queries}
        discretisers = discretisers_for(list(dict.fromkeys(said[name].window for name in queries)))
        conditions = {d.column: pa.bool_() for d in discretisers if isinstance(d, ConditionWindows)}
        fits = {fits_column(d.measures): pa.bool_() for d in discretisers if d.measures}
        types = {**plan.column_types, **conditions, **fits, **dict.fromkeys(OWN_COLUMNS, pa.int64())}
        parts = no_slices(plan, queries)
        windows = {d.name: tuple(map(repr, d.windows)) for d in discretisers}
        return cls(Tuples.empty(types), parts, NO_ROWS, NO_ROWS, queries, since, windows=windows)


def new_tracks(plan: Plan) -> tuple[ContextAwareState, ...]:
    """The states of the tracks of a plan that has seen nothing: one, if rows must be counted at all."""
    if not plan.context:
        return ()
    asked = tuple(q.name for q in plan.workload.queries if needs_rows(q.window))
    return (ContextAwareState.empty(plan, asked),)


def carried_track(state: ContextAwareState, plan: Plan) -> ContextAwareState | None:
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
    wanted = ContextAwareState.empty(plan, names).rows.columns
    nothing = Column.of([None] * len(state.rows))
    columns = {n: state.rows.columns.get(n, conform(nothing, c.type, n)) for n, c in wanted.items()}
    return replace(
        state,
        rows=replace(state.rows, columns=columns),
        queries=names,
        slices={name: state.slices[name] for name in no_slices(plan, names)},
        cuts=CachedCuts.none(),
        windows={name: tuple(map(repr, d.windows)) for name, d in now.items()},
        ledgers=ledgers,
        memory={name: memory for name, memory in state.memory.items() if name in now},
    )


def monoids_of(plan: Plan, queries: Sequence[str]) -> list[int]:
    """Which of a plan's monoids some queries need."""
    asked = set(queries)
    computed = {a for q in plan.workload.queries if q.name in asked for a in q.aggregates.values()}
    return [i for i, a in enumerate(plan.aggregates) if a in computed]


def no_slices(plan: Plan, queries: Sequence[str]) -> dict[str, Parts]:
    parts = {repr(plan.monoids[i].aggregate): plan.monoids[i].identities(0) for i in monoids_of(plan, queries)}
    return parts | {LAST: (NO_ROWS,), WEIGHT: (NO_ROWS,)}


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
        return ("looking back", window)
    return (window.kind, window)


def _make(kind: str, windows: list) -> Discretiser:
    if kind == "counts":
        return CountWindows(windows)
    if kind == "units":
        return UnitWindows(windows)
    (window,) = windows
    if kind == "looking back":
        return MultiMeasureWindows(window)
    return ConditionWindows(window) if kind in ("punctuated", "frames") else make_user_windows(window)
