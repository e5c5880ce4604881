"""The core: what an operator in process and a shard of a stream share. Types, keys, the engine, and what it counts.

Rows are let in here, the watermark moves here, and everything that is known can be saved here and restored. What
becomes of rows that are refused is the caller's: an operator raises an error, a shard gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.conditions.expression import derived_types
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.plan.costs import Costs
from slicewise.plan.panels import Form
from slicewise.plan.plan import ARRIVAL, MaxSlice, Plan, check_max_slice, check_runnable, check_store, plan_for
from slicewise.records import record
from slicewise.results import Results
from slicewise.slicing.engine import Engine
from slicewise.slicing.intake.admission import Admission, IncomingRows, Refusal
from slicewise.slicing.intake.held_rows import HeldRows, LateRow
from slicewise.slicing.intake.input import Batch, check_time, conform, parse_types
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.state.adapting import StateLayout, adapted_state
from slicewise.slicing.state.restoring import continue_from
from slicewise.slicing.state.snapshots import (
    BoundState,
    Counters,
    OperatorState,
    begun_edges,
    counting,
    describe,
    retire,
)
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.window_manager import Sessions
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.times import INFINITY, Extent
from slicewise.workload import Workload

__all__ = ["Core", "Insertion"]

NOTHING = Results()


@record
class Insertion:
    """What became of a batch: the rows that were let in, which of them are late, and those that were refused."""

    batch: Batch
    late: np.ndarray
    refusals: list[Refusal] = field(default_factory=list)


@record
class SliceRefusal:
    """Slices that were not let in: what is wrong with the first, and how many rows they hold."""

    error: RefusedRowsError
    rows: int


class Core:
    """A workload that runs: rows and watermarks in, results out, state as a value.

    Parameters
    ----------
    judges_gaps
        Whether rows after too many ticks are refused.
    form
        How results are shown.

    Attributes
    ----------
    types, time_type
        What is known of the types of columns; ``time_type`` is None before the first row.
    engine
        None before the first row.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        ordered: bool = False,
        store: str | None = None,
        types: Mapping[str, Any] | None = None,
        max_slice: MaxSlice = None,
        ties: str = ARRIVAL,
        judges_gaps: bool = True,
        form: Form | None = None,
    ) -> None:
        self.form = Form() if form is None else form
        self.form.check(workload)
        check_store(store, workload)
        check_max_slice(max_slice)
        check_runnable(workload)
        self.workload = workload
        self.ordered = ordered
        self.store = store
        self.max_slice = max_slice
        self.ties = ties
        self.types = parse_types(types)
        #: What everything has cost since this was made, or since what it was restored from was.
        self.costs = Costs()
        self._judges_gaps = judges_gaps
        self.forget_everything()

    def forget_everything(self) -> None:
        """Become as if nothing had been seen."""
        self.time_type: pa.DataType | None = None
        self.engine: Engine | None = None
        self.keys = KeyTable([])
        self.watermark = -INFINITY
        self._waiting: list[HeldRows] = []
        self._late: list[HeldRows] = []
        self._rows = self._results = self._late_rows = 0
        self.costs.take({})
        self._admission: Admission | None = None
        #: Names of queries that counted rows and are gone.
        self._retired: frozenset[str] = frozenset()

    @property
    def counters(self) -> Counters:
        """How many rows came, results went out, and rows came too late."""
        return Counters(self._rows, self._results, self._late_rows, self.costs.to_data())

    # Rows in

    def insert(self, batch: Batch) -> Insertion:
        """Let checked rows in, without those that are refused; all of the others or none."""
        engine = self.bound(batch)
        if self.ordered and len(batch.times):
            self._check_order(batch, engine.latest)
        incoming = (self._admission or self._admits()).admit(batch)
        late = self._insert(engine, incoming) if len(incoming.batch.times) else NO_ROWS
        if batch.selected is not None:
            engine.follow(batch.times)
        return Insertion(incoming.batch, late, incoming.refusals)

    def _admits(self) -> Admission:
        engine = self.engine
        assert engine is not None
        if self._admission is None:
            gaps = self._judges_gaps
            self._admission = Admission(engine, self.workload, self.types, self.keys, judges_gaps=gaps)
        return self._admission

    def check(self, batch: Batch) -> None:
        """Refuse a batch that does not go with what came before, as :meth:`insert` would."""
        engine = self.bound(batch)
        if self.ordered:
            self._check_order(batch, engine.latest)
        for name, column in batch.columns.items():
            conform(column, self.types[name], name)

    def _insert(self, engine: Engine, incoming: IncomingRows) -> np.ndarray:
        """Let rows in that nothing is wrong with; which of them are late."""
        batch, key, columns = incoming.batch, incoming.key, incoming.columns
        times, extent = batch.times, batch.extent or Extent.of(batch.times)
        lateness = engine.judge(times, key, self.keys, columns, extent.earliest)
        late = lateness.late
        if len(late):
            rest = np.delete(np.arange(len(times)), late)
            if len(rest):
                some = {n: c.take(rest) for n, c in columns.items()}
                engine.insert(key[rest], times[rest], some, Extent.of(times[rest]))
            self._drop_late(HeldRows.of_batch(batch, key, late))
        else:
            engine.insert(key, times, columns, extent)
        if len(lateness.waiting):
            self._waiting.append(HeldRows.of_batch(batch, key, lateness.waiting))
        self._rows += len(times)
        return late

    def insert_slices(self, slices: Slices) -> SliceRefusal | None:
        """Let in slices that were cut elsewhere, at the edges of this plan, with the numbers of keys.

        Gives back what was wrong with some of them, which were left out.
        """
        assert self.engine is not None
        refused = None
        error = (self._admission or self._admits()).judge_slices(slices)
        if error is not None:
            kept = np.delete(np.arange(len(slices)), error.rows)
            refused, slices = SliceRefusal(error, int(slices.rows[error.rows].sum())), slices.take(kept)
        lateness = self.engine.judge_slices(slices, self.keys)
        rows = int(slices.rows.sum())
        self._rows += rows
        # They were lifted and folded where they were cut.
        self.costs.lifts += rows * len(slices.parts)
        self.costs.combines += (rows - len(slices)) * len(slices.parts)
        if len(lateness.late):
            self._drop_late(HeldRows.of_slices(slices, lateness.late))
            slices = slices.take(np.delete(np.arange(len(slices)), lateness.late))
        elif len(lateness.waiting):
            self._waiting.append(HeldRows.of_slices(slices, lateness.waiting))
        self.engine.insert_slices(slices)
        return refused

    def _check_order(self, batch: Batch, latest: int) -> None:
        times, extent = batch.times, batch.extent or Extent.of(batch.times)
        if extent.in_order and extent.earliest >= latest:
            return
        so_far = np.maximum.accumulate(np.concatenate([[latest], times[:-1]]))
        back = np.flatnonzero((times < so_far) & batch.meant)
        if len(back):
            before = so_far[back[0]]
            raise DataError(
                f"rows must come in event-time order with ordered=True; row {back[0]} has {times[back[0]]} after "
                f"{before}; sort them, or use operator() and advance()"
            )

    def bound(self, batch: Batch) -> Engine:
        """The engine, made when the first rows show the types of the columns."""
        if self.engine is not None:
            if batch.time_type != self.time_type:
                zones = not (pa.types.is_integer(batch.time_type) or pa.types.is_integer(self.time_type))
                kinds = "with and without a time zone" if zones else "integers and timestamps"
                raise DataError(
                    f"the time column {self.workload.time!r} held {self.time_type} so far, and now {batch.time_type}; "
                    f"{kinds} cannot be mixed: convert one of them"
                )
            return self.engine
        types = dict(self.types)
        for name, type_ in batch.types(self.workload).items():
            if name not in types and pa.types.is_null(type_):
                raise DataError(
                    f"column {name!r} holds only nulls so far, so its type is not known; declare it: "
                    f"operator(types={{{name!r}: 'double'}})"
                )
            types.setdefault(name, type_)
        return self.bind(types, batch.time_type)

    def bind(self, types: dict[str, pa.DataType], time_type: pa.DataType) -> Engine:
        """Make the engine for columns of these types."""
        types = {**types, **derived_types(self.workload.columns, types)}
        self.engine = Engine(self._plan(self.workload, types, time_type))
        self.engine.pass_watermark(self.watermark)
        self.types, self.time_type = types, time_type
        self.keys = KeyTable([types[k] for k in self.workload.keys], self.workload.keys)
        self._admission = None
        return self.engine

    def _plan(self, workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> Plan:
        return plan_for(
            workload,
            types,
            time_type=time_type,
            ordered=self.ordered,
            store=self.store,
            max_slice=self.max_slice,
            ties=self.ties,
            costs=self.costs,
            form=self.form,
        )

    # Results out

    def step(self, watermark: int) -> Results:
        """Move the watermark: report what ended, correct what changed."""
        if self.engine is None:
            self.watermark = watermark
            return NOTHING
        try:
            results, sessions = self.engine.advance(watermark, self.keys)
        except RefusedRowsError:
            self._admits().forget_rows()
            raise
        if self._waiting:
            self._judge_waiting(sessions)
        self.watermark = watermark
        self._results += len(results)
        return results

    def _judge_waiting(self, sessions: list[Sessions]) -> None:
        """Old rows counted if they turned out to lie in a session that is still open; else they are late."""
        assert self.engine is not None
        for held in self._waiting:
            joined = np.zeros(len(held.key), bool)
            for of_gap, gap in zip(sessions, self.engine.plan.gaps, strict=True):
                joined |= of_gap.hold(held.key, held.first, gap)
            if not joined.all():
                self._drop_late(held.take(np.flatnonzero(~joined)))
        self._waiting = []

    def _drop_late(self, held: HeldRows) -> None:
        assert self.engine is not None
        if held.batch is not None:
            self._late.append(held)
        self._late_rows += held.count
        self.engine.forget(int(held.last.max()))

    def late_rows(self) -> Iterator[LateRow]:
        """The late rows since they were last taken."""
        return (row for held in self.take_late() for row in held.as_late(self.keys))

    def take_late(self) -> list[HeldRows]:
        """The late rows since they were last taken, as they are held."""
        late, self._late = self._late, []
        return late

    def renumber_keys(self, *, late_rows_have_keys: bool = False) -> None:
        """Renumber keys from time to time, so that keys without state take no memory.

        Late rows are known by the numbers of their keys, unless they are given back with key columns of their own.
        """
        engine = self.engine
        if engine is None or not self.keys.types:
            return
        if engine.context_aware:
            return  # a key that counts rows goes on counting where it stopped
        if len(self.keys) < 1024 or len(self.keys) < 4 * engine.time.held or self._waiting:
            return
        if self._late and not late_rows_have_keys:
            return
        used = engine.time.state.keys
        if 2 * len(used) < len(self.keys):
            self.keys, numbers = self.keys.without_unused(used)
            self._admission = None
            engine.renumber_keys(numbers)

    # State as a value

    def saved(self, watermark: int | None = None) -> OperatorState:
        """Everything that is known; ``watermark`` is the user's, if it is not the engine's."""
        begun = self.watermark if watermark is None else watermark
        horizon = begun if abs(begun) >= INFINITY else max(begun - self.workload.lateness, -INFINITY)
        description = describe(self.workload, self.ordered) | self.form.non_defaults()
        description |= begun_edges(self.workload, horizon, begun)
        if self.engine is None:
            return OperatorState(description, self.watermark, self.counters)
        assert self.time_type is not None
        bound = BoundState(
            # The user may have given the types of other columns too.
            types={name: self.types[name] for name in self._typed_columns},
            time_type=self.time_type,
            layout=StateLayout.of(self.engine.plan),
            engine=self.engine.saved(),
            keys=self.keys.values,
            numbering=self.keys.numbering,
            counting=counting(self.workload),
            retired=self._retired,
            waiting=self._waiting,
            late=self._late,
        )
        return OperatorState(description, self.watermark, self.counters, bound)

    @property
    def _typed_columns(self) -> dict[str, None]:
        return dict.fromkeys([*self.workload.keys, *self.workload.inputs, *self.workload.columns])

    def restore(self, state: OperatorState) -> None:
        """Continue from a state; everything is left as it was if that is refused."""
        state.check(self.workload, self.ordered, self.form)
        bound = state.bound
        if bound is None:
            self.forget_everything()
        else:
            restored = continue_from(state, self.workload, self.types, self.time_type, self._plan)
            self.forget_everything()
            self.types, self.keys, self.engine = restored.types, restored.keys, restored.engine
            self.time_type = bound.time_type
            self._retired = restored.retired
            self._waiting, self._late = list(bound.waiting), list(bound.late)
        self.watermark = state.watermark
        counters = state.counters
        self._rows, self._results, self._late_rows = counters.rows, counters.results, counters.late_rows
        self.costs.take(counters.costs)

    def adapt(self, workload: Workload) -> None:
        """Run another workload from here on: the same one with queries added or removed."""
        check_store(self.store, workload)
        self.form.check(workload)
        if self.form.wide:
            raise QueryError(
                "with shape='wide' a row has the columns of all queries, so none can be added or removed while it "
                "runs; make a new operator",
                parameter="shape",
            )
        retired = self._retired
        if self.engine is not None:
            going_on = {q.name for q in workload.queries if q in self.workload.queries}
            retired = retire(retired, counting(self.workload), going_on, workload)
            missing = [c for c in workload.inputs if c not in self.types]
            if missing:
                raise QueryError(
                    f"column {missing[0]!r} was never read before, so its type is not known; declare it when the "
                    f"operator is made: operator(types={{{missing[0]!r}: 'double'}})",
                    column=missing[0],
                )
            assert self.time_type is not None
            check_time(workload, self.time_type)
            self.types = {**self.types, **derived_types(workload.columns, self.types)}
            plan = self._plan(workload, self.types, self.time_type)
            self.engine = Engine(plan, adapted_state(self.engine, plan))
        self.workload, self._admission = workload, None
        self._retired = retired
