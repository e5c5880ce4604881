"""Snapshots: the state of an operator as plain data, and back.

A snapshot is a dictionary of NumPy arrays, numbers, strings and bytes, and of what user code keeps: everything that
:mod:`slicewise.plain` writes and reads, given the classes that the workload trusts. It says which format it has and
which workload it belongs to; a workload whose queries were added or removed since continues from it, any other refuses
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Parts
from slicewise.amounts import ROWS
from slicewise.columns import Column, type_name
from slicewise.errors import StateError
from slicewise.plan.plan import Plan
from slicewise.slicing.accounts import KeptRows
from slicewise.slicing.adapting import Labels, adapted_state, carried_state
from slicewise.slicing.answers.answers import Reported, Table
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.held_results import results_from_data, results_to_data
from slicewise.slicing.input import Batch, check_time
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.context_aware import ContextAwareQueries, ContextAwareState, carried_track
from slicewise.slicing.rows.ledgers import Ledger
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.user_code import is_shown
from slicewise.slicing.widening import check_types, widened
from slicewise.windows import Policy, Sliding, Window
from slicewise.workload import Workload

if TYPE_CHECKING:
    from slicewise.slicing.operator import Operator

__all__ = ["FORMAT", "counting", "describe", "fingerprint", "renumbered", "restore", "retire", "take"]

FORMAT = 4
#: What may not change between a snapshot and the workload that continues from it.
IDENTITY = ("time", "unit", "keys", "order", "lateness", "ordered")


def describe(workload: Workload, ordered: bool) -> dict[str, Any]:
    """What a workload is, as far as its state depends on it."""
    return {
        "time": workload.time,
        "unit": workload.unit,
        "keys": list(workload.keys),
        "order": list(workload.order),
        "lateness": workload.lateness,
        "ordered": ordered,
        "queries": {q.name: repr(q) for q in workload.queries},
    }


def fingerprint(description: Mapping[str, Any]) -> str:
    """A short name for a description."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def counting(workload: Workload) -> list[str]:
    """The queries that count rows from the first one that they saw."""
    return [q.name for q in workload.queries if _counts_rows(q.window)]


def retire(
    retired: frozenset[str], counting: Iterable[str], going_on: Collection[str], workload: Workload
) -> frozenset[str]:
    """The names that no query may count rows under any more, when only some queries go on in a workload.

    A count that begins anew under an old name would give new results the positions of old ones: whoever stored those
    under query and span would take the one for the other.
    """
    gone = retired | (frozenset(counting) - frozenset(going_on))
    for query in workload.queries:
        if _counts_rows(query.window) and query.name in gone:
            raise StateError(
                f"query {query.name!r} counted rows under this name before, and would now count from 0 again; its "
                "spans would repeat those of results that were reported already: give it another name"
            )
    return gone


def take(op: Operator) -> dict[str, Any]:
    """The state of an operator as plain data."""
    description = describe(op.workload, op.ordered)
    snapshot: dict[str, Any] = {
        "format": FORMAT,
        "fingerprint": fingerprint(description),
        "workload": description,
        "watermark": op._watermark,
        "counters": [op._rows, op._results, op._late_rows],
    }
    if op._engine is None:
        return snapshot
    assert op._time_type is not None
    state, labels = op._engine.settled(), Labels.of(op._engine.plan)
    return snapshot | {
        "types": _schema_to_bytes({**_types_read(op), "\0time": op._time_type}),
        "counting": counting(op.workload),
        "retired": sorted(op._retired),
        "keys": list(op._keys.values),
        "numbering": op._keys.numbering,
        "labels": {"aggregates": labels.aggregates, "windows": labels.windows, "gaps": labels.gaps},
        "slices": _arrays(state.slices, without="parts") | {"parts": [list(p) for p in state.slices.parts]},
        "tuples": _arrays(state.tuples, without="columns") | {"columns": _columns_to_data(state.tuples.columns)},
        "reported": [_arrays(t) for t in (state.reported.windows, *state.reported.sessions)],
        "forgotten": state.forgotten,
        "latest": state.latest,
        "since": dict(state.since),
        "after": dict(state.after),
        "tracks": [_track_to_data(*both) for both in zip(op._engine.tracks, state.tracks, strict=True)],
        "waiting": [(_batch_to_data(k.batch), k.key) for k in op._waiting],
        "late": [(_batch_to_data(k.batch), k.key) for k in op._late],
        "held": results_to_data(op._outbox.results),
    }


def restore(op: Operator, snapshot: Mapping[str, Any]) -> None:
    """Put the state of a snapshot into an operator, which is left as it was if that is refused."""
    _check(op, snapshot)
    if "slices" not in snapshot:
        op._forget_everything()
        op._watermark = snapshot["watermark"]
        op._rows, op._results, op._late_rows = snapshot["counters"]
        return
    was = _schema_from_bytes(snapshot["types"])
    time_type = was.pop("\0time")
    if op._time_type not in (None, time_type):
        raise StateError(
            f"the state was written with the time column {op.workload.time!r} as {type_name(time_type)}, and now it is "
            f"{type_name(op._time_type)}; cast it to {type_name(time_type)}, or start anew without the old state"
        )
    had = snapshot["workload"]["queries"]
    kept = op.workload._with(tuple(q for q in op.workload.queries if had.get(q.name) == repr(q)))
    going_on = [q.name for q in kept.queries]
    retired = retire(frozenset(snapshot["retired"]), snapshot["counting"], going_on, op.workload)
    types = check_types(was, op._types, {m.column for q in kept.queries for m in q.window.measures if m.column})
    missing = [c for c in op.workload.columns if c not in types]
    if missing:
        raise StateError(
            f"the snapshot never read column {missing[0]!r}, so its type is not known; say it when the operator is "
            f"made: operator(types={{{missing[0]!r}: 'double'}})"
        )
    labels = Labels(*(tuple(snapshot["labels"][n]) for n in ("aggregates", "windows", "gaps")))
    plan = op._plan(kept, types, time_type)
    engine = Engine(plan, carried_state(_state(snapshot, plan, was, labels), labels, plan))
    if kept.queries != op.workload.queries:
        check_time(op.workload, time_type)
        plan = op._plan(op.workload, types, time_type)
        engine = Engine(plan, adapted_state(engine, plan))
    keys = KeyTable([types[k] for k in op.workload.keys])
    for key in snapshot["keys"]:
        keys.number(key)
    keys.numbering = snapshot["numbering"]
    op._forget_everything()
    op._types, op._time_type, op._keys, op._engine = types, time_type, keys, engine
    op._buffer.time_type = time_type
    op._watermark = snapshot["watermark"]
    op._retired = retired
    op._rows, op._results, op._late_rows = snapshot["counters"]
    op._waiting = [KeptRows(_batch_from_data(b), key) for b, key in snapshot["waiting"]]
    op._late = [KeptRows(_batch_from_data(b), key) for b, key in snapshot["late"]]
    op._outbox.add(results_from_data(snapshot.get("held")))


def renumbered(state: State, numbers: np.ndarray) -> State:
    """The state after keys got other numbers; the order of keys stays."""
    tables = [replace(t, key=numbers[t.key]) for t in (state.reported.windows, *state.reported.sessions)]
    return replace(
        state,
        slices=replace(state.slices, key=numbers[state.slices.key]),
        tuples=replace(state.tuples, key=numbers[state.tuples.key]),
        reported=Reported(tables[0], tuple(tables[1:])),
    )


def _check(op: Operator, snapshot: Mapping[str, Any]) -> None:
    if not isinstance(snapshot, Mapping) or "format" not in snapshot or "workload" not in snapshot:
        raise StateError(f"this is no snapshot of an operator; got {type(snapshot).__name__}; use what snapshot() gave")
    if snapshot["format"] > FORMAT:
        raise StateError(
            f"the snapshot has format {snapshot['format']}, and this version reads up to {FORMAT}; upgrade slicewise"
        )
    if snapshot["format"] < FORMAT:
        raise StateError(
            f"the snapshot has format {snapshot['format']}, and this version reads {FORMAT}; finish with the version "
            "that took it, or start anew"
        )
    was, now = snapshot["workload"], describe(op.workload, op.ordered)
    for name in IDENTITY:
        if was[name] != now[name]:
            raise StateError(
                f"the snapshot belongs to another workload: its `{name}` is {was[name]!r}, this one's {now[name]!r}; "
                "only queries may be added or removed"
            )
    if not any(was["queries"].get(name) == said for name, said in now["queries"].items()):
        raise StateError(
            f"the snapshot belongs to another workload: it has queries {sorted(was['queries'])}, this one "
            f"{sorted(now['queries'])}, and none is the same"
        )


def _counts_rows(window: Window) -> bool:
    """Whether results are known by positions of rows."""
    return isinstance(window, (Sliding, Policy)) and window.every.measure == ROWS


def _types_read(op: Operator) -> dict[str, pa.DataType]:
    """The types of what the workload reads; the user may have told those of other columns too."""
    return {name: op._types[name] for name in (*op.workload.keys, *op.workload.columns)}


def _state(snapshot: Mapping[str, Any], plan: Plan, was: Mapping[str, pa.DataType], labels: Labels) -> State:
    slices, tuples = dict(snapshot["slices"]), dict(snapshot["tuples"])
    widen = _Widening(plan, was)
    parts = tuple(widen.parts(label, p) for label, p in zip(labels.aggregates, slices.pop("parts"), strict=True))
    columns = widen.columns(tuples.pop("columns"))
    windows, *sessions = (Table(**t) for t in snapshot["reported"])
    return State(
        slices=Slices(**slices, parts=parts),
        tuples=Tuples(**tuples, columns=columns),
        reported=Reported(windows, tuple(sessions)),
        watermark=snapshot["watermark"],
        forgotten=snapshot["forgotten"],
        latest=snapshot["latest"],
        since=dict(snapshot["since"]),
        after=dict(snapshot["after"]),
        tracks=tuple(t for t in (_track_from_data(d, plan, widen) for d in snapshot["tracks"]) if t is not None),
    )


def _track_to_data(track: ContextAwareQueries, state: ContextAwareState) -> dict[str, Any]:
    saved = {d.name: d for d in track.discretisers}
    return {
        "rows": _arrays(state.rows, without="columns") | {"columns": _columns_to_data(state.rows.columns)},
        "slices": {name: list(parts) for name, parts in state.slices.items()},
        "base": state.base,
        "last_seen": state.last_seen,
        "queries": state.queries,
        "since": state.since,
        "arrived": state.arrived,
        "windows": dict(state.windows),
        "ledgers": {name: _arrays(ledger) for name, ledger in state.ledgers.items()},
        "memory": {name: saved[name].save(memory) for name, memory in state.memory.items()},
    }


def _track_from_data(data: Mapping[str, Any], plan: Plan, widen: _Widening) -> ContextAwareState | None:
    rows = dict(data["rows"])
    columns = widen.columns(rows.pop("columns"))
    ledgers = {name: Ledger(**arrays) for name, arrays in data["ledgers"].items()}
    same = {name: data[name] for name in ("base", "last_seen", "queries", "since", "arrived", "windows")}
    slices = {name: widen.parts(name, parts) for name, parts in data["slices"].items()}
    state = ContextAwareState(Tuples(**rows, columns=columns), slices, ledgers=ledgers, **same, given=data["arrived"])
    kept = carried_track(state, plan)
    if kept is None:
        return None
    saved = {d.name: d for d in ContextAwareQueries(plan, kept).discretisers}
    memory = {name: saved[name].load(m) for name, m in data["memory"].items() if name in saved}
    return replace(kept, memory=memory)


class _Widening:
    """Reads what was written with the types ``was`` as a plan with other, wider types needs it."""

    def __init__(self, plan: Plan, was: Mapping[str, pa.DataType]) -> None:
        self.types, self.was = plan.column_types, was
        self.monoids = {repr(m.aggregate): m for m in plan.monoids}

    def parts(self, aggregate: str, parts: Sequence[np.ndarray]) -> Parts:
        monoid = self.monoids.get(aggregate)
        return tuple(parts) if monoid is None else monoid.widened(tuple(parts), self.was)

    def columns(self, data: Mapping[str, Sequence[Any]]) -> dict[str, Column]:
        columns = _columns_from_data(data)
        return {n: widened(c, self.types[n]) if n in self.types else c for n, c in columns.items()}


def _arrays(data: Any, without: str = "") -> dict[str, np.ndarray]:
    return {f.name: getattr(data, f.name) for f in fields(data) if f.name != without}


def _schema_to_bytes(types: Mapping[str, pa.DataType]) -> bytes:
    return pa.schema(list(types.items())).serialize().to_pybytes()


def _schema_from_bytes(data: bytes) -> dict[str, pa.DataType]:
    schema = pa.ipc.read_schema(pa.py_buffer(data))
    return {field.name: field.type for field in schema}


def _columns_to_data(columns: Mapping[str, Column]) -> dict[str, tuple[np.ndarray, bytes, np.ndarray]]:
    return {
        name: (c.values, _schema_to_bytes({"": c.type}), np.ones(len(c), bool) if c.valid is None else c.valid)
        for name, c in columns.items()
        if not is_shown(name)
    }


def _columns_from_data(data: Mapping[str, Sequence[Any]]) -> dict[str, Column]:
    return {
        name: Column(values, _schema_from_bytes(type_)[""], None if valid.all() else valid)
        for name, (values, type_, valid) in data.items()
    }


def _batch_to_data(batch: Batch) -> dict[str, Any]:
    return {"times": batch.times, "source": {name: batch.source_list(name) for name in batch.source}}


def _batch_from_data(data: Mapping[str, Any]) -> Batch:
    return Batch(data["times"], pa.null(), [], {}, data["source"])
