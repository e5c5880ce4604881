"""Context-aware state: what is kept for queries on ordered rows, as data."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.intake.input import conform
from slicewise.slicing.rows.cut_updates import CachedCuts
from slicewise.slicing.rows.discretisers import Remembered
from slicewise.slicing.rows.monotonic import fits_column
from slicewise.slicing.rows.ordered_rows import ARRIVAL, LAST_ARRIVAL
from slicewise.slicing.rows.punctuation import PUNCTUATION
from slicewise.slicing.rows.registry import discretisers_for
from slicewise.slicing.state.part_labels import Labels, carried_parts, labels_from_data
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.times import INFINITY

__all__ = ["ContextAwareState", "carried_queries", "empty_sets", "monoids_of", "new_context_aware", "see_punctuation"]


@record
class ContextAwareState:
    """What is kept for context-aware queries that began to count rows at the same moment, as data.

    Attributes
    ----------
    rows
        The rows whose order may still change, and those that windows need as such.
    slices
        Earlier rows, folded; the parts are those of ``aggregates``.
    base, last_seen
        For every key: the position of its first row that is still here, and the latest event time of any of its rows.
    queries
        The names of the queries.
    since
        The event time from which on rows are counted.
    arrived
        How many rows have arrived so far.
    labels
        What the parts of slices hold.
    windows
        For each discretiser, by name, the windows that it numbers.
    reported, memory
        For each discretiser, by name, what it has reported and what user code remembers.
    cuts
        What was folded of rows whose order may still change. Not saved, because it can be folded again.
    handed_over
        Rows up to the watermark, and so many of the first arrivals, are in the time slices already.
    """

    rows: Tuples
    slices: Slices
    base: np.ndarray
    last_seen: np.ndarray
    queries: tuple[str, ...]
    since: int = -INFINITY
    arrived: int = 0
    labels: Labels = ()
    windows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reported: Mapping[str, ReportedWindows] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    cuts: CachedCuts = field(default_factory=CachedCuts.none)
    handed_over: int = 0

    @classmethod
    def empty(cls, plan: Plan, queries: tuple[str, ...], since: int = -INFINITY) -> ContextAwareState:
        """No rows at all."""
        by_name = {q.name: q for q in plan.workload.queries}
        discretisers = discretisers_for(list(dict.fromkeys(by_name[name].window for name in queries)))
        notes = {name: kind for d in discretisers for name, kind in d.notes.items()}
        fits = {fits_column(d.measures): pa.bool_() for d in discretisers if d.measures}
        shown = {PUNCTUATION: pa.bool_()} if see_punctuation(plan, queries) else {}
        rows = Tuples.empty({**plan.column_types, **notes, **fits, **shown, ARRIVAL: pa.int64()})
        monoids = [plan.monoids[i] for i in monoids_of(plan, queries)]
        marks = dict.fromkeys((ARRIVAL, LAST_ARRIVAL, *notes, *shown), NO_ROWS)
        return cls(
            rows,
            replace(Slices.empty(monoids), marks=marks),
            NO_ROWS,
            NO_ROWS,
            queries,
            since,
            labels=tuple(m.labels for m in monoids),
            windows={d.name: tuple(map(repr, d.windows)) for d in discretisers},
        )

    def of_keys(self, low: int, high: int) -> ContextAwareState:
        """What is kept of the keys from number ``low`` to before ``high``; only of a state whose memory is saved."""
        rows, slices = (_key_range(part.key, low, high) for part in (self.rows, self.slices))
        return replace(
            self,
            rows=self.rows.take(rows),
            slices=self.slices.take(slices),
            base=self.base[low:high],
            last_seen=self.last_seen[low:high],
            reported={
                name: table.take(np.flatnonzero((table.key >= low) & (table.key < high)))
                for name, table in self.reported.items()
            },
            memory={name: memory.of_keys(low, high) for name, memory in self.memory.items()},
        )

    def joined(self, others: Sequence[ContextAwareState]) -> ContextAwareState:
        """This state with what is kept of other keys, all of them later; memory is saved."""
        parts = [self, *others]
        return replace(
            self,
            rows=Tuples.concat([part.rows for part in parts]),
            slices=Slices.concat([part.slices for part in parts]),
            base=np.concatenate([part.base for part in parts]),
            last_seen=np.concatenate([part.last_seen for part in parts]),
            reported={
                name: functools.reduce(ReportedWindows.joined, (part.reported[name] for part in parts))
                for name in self.reported
            },
            memory={name: Remembered.concat([part.memory[name] for part in parts]) for name in self.memory},
        )

    def to_data(self) -> dict[str, Any]:
        """The state as plain data; memory must be saved already."""
        return {
            "rows": self.rows.to_data(),
            "slices": self.slices.to_data(),
            **{name: getattr(self, name) for name in _PLAIN},
            "labels": self.labels,
            "windows": dict(self.windows),
            "reported": {name: table.to_data() for name, table in self.reported.items()},
            "memory": {name: memory.to_data() for name, memory in self.memory.items()},
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ContextAwareState:
        """The state from what :meth:`to_data` gave. All its rows are in the time slices too."""
        return cls(
            rows=Tuples.from_data(data["rows"]),
            slices=Slices.from_data(data["slices"]),
            **{name: data[name] for name in _PLAIN},
            labels=labels_from_data(data),
            windows={name: tuple(windows) for name, windows in data["windows"].items()},
            reported={name: ReportedWindows.from_data(table) for name, table in data["reported"].items()},
            memory={name: Remembered.from_data(memory) for name, memory in data["memory"].items()},
            handed_over=data["arrived"],
        )


#: What is plain data as it is.
_PLAIN = ("base", "last_seen", "queries", "since", "arrived")


def _key_range(key: np.ndarray, low: int, high: int) -> slice:
    return slice(*np.searchsorted(key, [low, high]).tolist())


def new_context_aware(plan: Plan) -> tuple[ContextAwareState, ...]:
    """The states of the context-aware queries of a plan that has seen nothing."""
    if not plan.context:  # a batch finds their windows elsewhere
        return ()
    return empty_sets(plan, [q.name for q in plan.workload.queries if q.window.needs_rows])


def empty_sets(plan: Plan, queries: Sequence[str], since: int = -INFINITY) -> tuple[ContextAwareState, ...]:
    """No rows at all, for the queries that count data alone, and for those that see punctuation too, if there are any.

    The former share their rows with the time slices, so they come first.
    """
    seeing = tuple(name for name in queries if see_punctuation(plan, [name]))
    counting = tuple(name for name in queries if name not in seeing)
    return tuple(ContextAwareState.empty(plan, names, since) for names in (counting, seeing) if names)


def see_punctuation(plan: Plan, queries: Sequence[str]) -> bool:
    """Whether some queries of one set are shown rows that are no data."""
    if plan.workload.punctuation is None:
        return False
    return any(q.window.sees_punctuation for q in plan.workload.queries if q.name in queries)


def carried_queries(state: ContextAwareState, plan: Plan) -> ContextAwareState | None:
    """The state for a plan with other queries; None if none of its queries are left."""
    names = tuple(name for name in state.queries if any(q.name == name for q in plan.workload.queries))
    if not names:
        return None
    wanted = ContextAwareState.empty(plan, names)
    reported = {}
    for name, table in state.reported.items():
        if name in wanted.windows:
            places = {window: i for i, window in enumerate(wanted.windows[name])}
            reported[name] = table.renumbered(np.array([places.get(w, -1) for w in state.windows[name]], np.int64))
    nothing = Column.of([None] * len(state.rows))
    columns = {n: state.rows.columns.get(n, conform(nothing, c.type, n)) for n, c in wanted.rows.columns.items()}
    monoids = [plan.monoids[i] for i in monoids_of(plan, names)]
    return replace(
        state,
        rows=replace(state.rows, columns=columns),
        slices=replace(state.slices, parts=carried_parts(state.slices, state.labels, monoids, plan)),
        queries=names,
        labels=wanted.labels,
        windows=wanted.windows,
        reported=reported,
        memory={name: memory for name, memory in state.memory.items() if name in wanted.windows},
        cuts=CachedCuts.none(),
    )


def monoids_of(plan: Plan, queries: Sequence[str]) -> list[int]:
    """Which of a plan's monoids some queries need."""
    asked = set(queries)
    computed = {a for q in plan.workload.queries if q.name in asked for a in q.aggregates.values()}
    needed = (answer for a, answer in zip(plan.aggregates, plan.answers, strict=True) if a in computed)
    return sorted({plan.components[answer.component].kept for answer in needed})
