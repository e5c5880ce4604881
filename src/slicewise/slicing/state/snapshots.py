"""Snapshots: the state of an operator, as a type and as plain data.

As data it is a dictionary of NumPy arrays, numbers, strings and bytes, and of what user code keeps: everything that
:mod:`slicewise.plain` writes and reads, given the classes that the workload trusts. It has the number of its format and
a description of the workload it belongs to; a workload whose queries were added or removed since continues from it, any
other refuses it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from slicewise.amounts import ROWS, format_instant
from slicewise.columns import types_from_data, types_to_data
from slicewise.conditions.expression import plain_name
from slicewise.errors import StateError
from slicewise.plan.panels import Form
from slicewise.results import Results
from slicewise.slicing.engine import State
from slicewise.slicing.intake.held_rows import HeldRows
from slicewise.slicing.state.adapting import StateLayout
from slicewise.slicing.state.held_results import results_from_data, results_to_data
from slicewise.windows import Window
from slicewise.workload import Workload

__all__ = [
    "FORMAT",
    "BoundState",
    "Counters",
    "OperatorState",
    "begun_edges",
    "counting",
    "describe",
    "fingerprint",
    "retire",
]

#: The format that is written, and the oldest one that is read.
FORMAT, OLDEST = 7, 5
#: What may not change between a snapshot and the workload that continues from it.
IDENTITY = ("time", "unit", "keys", "order", "lateness", "ordered", "where", "punctuation")
#: The name under which the type of the time column stands beside those of other columns.
_TIME = "\0time"


@dataclass(frozen=True)
class Counters:
    """How many rows came, results went out, and rows came too late; and what it cost, by the names of ``Costs``."""

    rows: int = 0
    results: int = 0
    late_rows: int = 0
    costs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BoundState:
    """What an operator knows once the types of columns are known.

    Attributes
    ----------
    types, time_type
        The types of the columns that are read, and of the bounds of windows on event time.
    layout
        What the arrays of the engine's state stand for.
    keys, numbering
        All keys in the order of their numbers, and how often they got other numbers.
    counting
        The names of the queries that count rows from the first one that they saw.
    retired
        Names under which rows were counted and that no query may take again.
    waiting, late
        Rows outside of the slices: those that wait to be judged, and late ones that nobody has asked for yet.
    """

    types: Mapping[str, pa.DataType]
    time_type: pa.DataType
    layout: StateLayout
    engine: State
    keys: Sequence[tuple[Any, ...]]
    numbering: int
    counting: Sequence[str] = ()
    retired: frozenset[str] = frozenset()
    waiting: Sequence[HeldRows] = ()
    late: Sequence[HeldRows] = ()

    def to_data(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "types": types_to_data({**self.types, _TIME: self.time_type}),
            "layout": self.layout.to_data(),
            "engine": self.engine.to_data(),
            "keys": list(self.keys),
            "numbering": self.numbering,
            "counting": list(self.counting),
            "retired": sorted(self.retired),
            "waiting": [held.to_data() for held in self.waiting],
            "late": [held.to_data() for held in self.late],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> BoundState:
        """The state from what :meth:`to_data` gave."""
        types = types_from_data(data["types"])
        return cls(
            time_type=types.pop(_TIME),
            types=types,
            layout=StateLayout.from_data(data["layout"]),
            engine=State.from_data(data["engine"]),
            keys=data["keys"],
            numbering=data["numbering"],
            counting=data["counting"],
            retired=frozenset(data["retired"]),
            waiting=[HeldRows.from_data(held) for held in data["waiting"]],
            late=[HeldRows.from_data(held) for held in data["late"]],
        )


@dataclass(frozen=True, eq=False)
class OperatorState:
    """All that an operator knows.

    Attributes
    ----------
    description
        What the workload is, see :func:`describe`.
    bound
        None before the first row.
    held
        Results that wait for the next call, because an error went first.
    """

    description: Mapping[str, Any]
    watermark: int
    counters: Counters
    bound: BoundState | None = None
    held: Results = field(default_factory=Results)

    def to_data(self) -> dict[str, Any]:
        """The state as plain data, with the number of the format."""
        counters = self.counters
        return {
            "format": FORMAT,
            "fingerprint": fingerprint(self.description),
            "workload": dict(self.description),
            "watermark": self.watermark,
            "counters": [counters.rows, counters.results, counters.late_rows],
            "costs": dict(counters.costs),
            "bound": None if self.bound is None else self.bound.to_data(),
            "held": results_to_data(self.held),
        }

    @classmethod
    def from_data(cls, data: Any) -> OperatorState:
        """The state from what :meth:`to_data` gave.

        Raises
        ------
        StateError
            If it is something else, or has another format.
        """
        if not isinstance(data, Mapping) or "format" not in data or "workload" not in data:
            raise StateError(
                f"this is not a snapshot of an operator; got {type(data).__name__}; use what snapshot() gave"
            )
        if data["format"] > FORMAT:
            raise StateError(
                f"the snapshot has format {data['format']}, and this version reads up to {FORMAT}; upgrade slicewise"
            )
        if data["format"] < OLDEST:
            raise StateError(
                f"the snapshot has format {data['format']}, and this version reads {OLDEST} to {FORMAT}; finish with "
                "the version that took it, or start anew"
            )
        bound = None if data["bound"] is None else BoundState.from_data(data["bound"])
        held = results_from_data(data["held"])
        rows, results, late_rows = data["counters"]
        counters = Counters(rows, results, late_rows, data.get("costs", {}))
        return cls(data["workload"], data["watermark"], counters, bound, held)

    def check(self, workload: Workload, ordered: bool, form: Form | None = None) -> None:
        """Refuse to continue with a workload that the state does not belong to, or in another form."""
        form = Form() if form is None else form
        was, now = self.description, describe(workload, ordered)
        self._check_form(form, now["queries"])
        for name in IDENTITY:
            if was.get(name) != now.get(name):
                raise StateError(
                    f"the snapshot belongs to another workload: its `{name}` is {was.get(name)!r}, this one's "
                    f"{now.get(name)!r}; only queries may be added or removed"
                )
        if not any(was["queries"].get(name) == query for name, query in now["queries"].items()):
            raise StateError(
                f"the snapshot belongs to another workload: it has queries {sorted(was['queries'])}, this one "
                f"{sorted(now['queries'])}, and none is the same"
            )

        self._check_edges(workload)

    def _check_form(self, form: Form, queries: Mapping[str, str]) -> None:
        was = Form.described(self.description)
        for name in ("shape", "emit"):
            if getattr(was, name) != getattr(form, name):
                raise StateError(
                    f"the state was written with {name}={getattr(was, name)!r}, and this run has "
                    f"{name}={getattr(form, name)!r}; go on with the same, or start anew"
                )
        if form.wide and queries != self.description["queries"]:
            raise StateError(
                f"the state was written with shape='wide' and queries {sorted(self.description['queries'])}, and this "
                f"run has {sorted(queries)}: a row has the columns of all queries, so none may be added, removed or "
                "changed; start anew"
            )

    def _check_edges(self, workload: Workload) -> None:
        """Refuse lists of windows that are others than they were, up to where windows have begun."""
        for query in workload.queries:
            listing, was = query.window.listing, self.description.get("edges", {}).get(query.name)
            if listing is None or was is None or self.description["queries"].get(query.name) != repr(query):
                continue
            after, until, content = was
            if listing.digest(after, until) != content:
                raise StateError(
                    f"the edges of query {query.name!r} are not those that the state was written with: there were "
                    f"{content.split(', ')[0]} that start before its watermark, {_shown(until, workload)}, and now "
                    f"there are {listing.digest(after, until).split(', ')[0]} or other ones; windows may be added "
                    "behind the watermark only: start anew for others, or give the query another name"
                )

    def with_lateness(self, lateness: int, watermark: int) -> OperatorState:
        """The same state for a workload that corrects for so long, when its watermark stands there."""
        bound = self.bound
        if bound is not None:
            bound = replace(bound, engine=replace(bound.engine, watermark=watermark))
        return replace(self, description={**self.description, "lateness": lateness}, watermark=watermark, bound=bound)


def describe(workload: Workload, ordered: bool) -> dict[str, Any]:
    """What a workload is, as far as its state depends on it."""
    filters = {"where": workload.where, "punctuation": workload.punctuation}
    return {name: given.text for name, given in filters.items() if given is not None} | {
        "time": workload.time,
        "unit": workload.unit,
        "keys": list(workload.keys),
        "order": [plain_name(name) for name in workload.order],
        "lateness": workload.lateness,
        "ordered": ordered,
        "queries": {q.name: repr(q) for q in workload.queries},
    }


def begun_edges(workload: Workload, horizon: int, watermark: int) -> dict[str, Any]:
    """What a state depends on of windows that are lists; nothing where there are none."""
    lists = [(q.name, q.window.listing) for q in workload.queries if q.window.listing is not None]
    begun = {name: [horizon, watermark, listing.digest(horizon, watermark)] for name, listing in lists}
    return {"edges": begun} if begun else {}


def _shown(time: int, workload: Workload) -> str:
    measure = workload.time_measure
    return str(time) if measure.kind == "integer" else format_instant(time, measure.unit)


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


def _counts_rows(window: Window) -> bool:
    """Whether results are known by positions of rows."""
    every = window.lengths.get("every")
    return every is not None and every.measure == ROWS
