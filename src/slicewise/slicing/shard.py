"""Shard: a workload for some of the keys of a stream, where rows may have been sliced before they came.

What Spark's stateful workers run. Beside rows it takes slices that were cut elsewhere, at the edges of the same plan;
as no edge of a window lies inside a slice, all rows of a slice are late or none is. One row never stops a stream: rows
that an operator would refuse are left out, counted and given back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.errors import FailedWindowsError, RefusedRowsError
from slicewise.plan.panels import Form
from slicewise.plan.plan import VALUES
from slicewise.results import Results
from slicewise.slicing.core import Core
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.intake.input import EVENT_TIME, Batch, read_batch
from slicewise.slicing.intake.user_code import joined_failures, take_window_failures
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.state.snapshots import Counters, OperatorState
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["BadRows", "Shard", "column_of"]

#: What a Python value takes that an array or a table of keys refers to.
_OBJECT_BYTES = 100


@dataclass(frozen=True, eq=False)
class BadRows:
    """Rows that were refused for one reason, and what is wrong with the first of them.

    ``source`` holds the columns of those that came in this micro-batch, as they came. Of rows that came earlier only
    what the workload reads is known: ``records`` are those, with the numbers of their keys. Of rows that came in slices
    only their number is.
    """

    reason: str
    message: str
    source: Mapping[str, Any] | None
    records: Tuples | None = None
    sliced: int = 0

    def __len__(self) -> int:
        if self.records is not None or self.sliced:
            return self.sliced if self.records is None else len(self.records)
        return len(next(iter(self.source.values()))) if self.source else 0


@dataclass(frozen=True, eq=False)
class _Arrival:
    """Rows that came since the last step, and which of them were not late."""

    batch: Batch
    kept: np.ndarray


class Shard:
    """A workload whose types are known from the start, and that takes rows or slices.

    ``gaps`` says whether rows after too many ticks are refused; where rows were judged by the clock before they came,
    they are not.
    """

    def __init__(
        self,
        workload: Workload,
        types: Mapping[str, pa.DataType],
        time_type: pa.DataType,
        *,
        gaps: bool = True,
        store: str | None = None,
        max_slice: int | str | None = None,
        form: Form | None = None,
    ) -> None:
        # Micro-batches and partitions say nothing about the order of rows.
        self._core = Core(
            workload, types=types, ties=VALUES, judges_gaps=gaps, store=store, max_slice=max_slice, form=form
        )
        self._core.bind(dict(self._core.types), time_type)
        self._bad: list[BadRows] = []
        self._failed: list[FailedWindowsError] = []
        self._arrivals: list[_Arrival] = []
        #: Slices that came since the last step and are not let in yet.
        self._slices: list[Slices] = []

    @property
    def workload(self) -> Workload:
        """The workload that it runs."""
        return self._core.workload

    @property
    def engine(self) -> Engine:
        """The engine, which is always there."""
        assert self._core.engine is not None
        return self._core.engine

    @property
    def keys(self) -> KeyTable:
        """The numbers of keys."""
        return self._core.keys

    @property
    def watermark(self) -> int:
        """Where the watermark stands."""
        return self._core.watermark

    @property
    def counters(self) -> Counters:
        """How many rows came, results went out, and rows came too late."""
        return self._core.counters

    @property
    def key_count(self) -> int:
        """How many keys there are; without key columns there is one as soon as a row has come."""
        return len(self.keys) if self.workload.keys else int(self.counters.rows > 0)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes: those of arrays, and what Python objects in them and keys take on average."""
        state = self.engine.state
        keys = len(self.keys) * max(len(self.workload.keys), 1)
        return state.nbytes + _OBJECT_BYTES * (keys + _objects(state))

    # Rows in

    def take_rows(self, columns: Mapping[str, Any]) -> None:
        """Let in rows whose event times stand in :data:`EVENT_TIME`: the time column may be of a type of its own."""
        batch = read_batch(columns, self.workload, self._core.types, time=EVENT_TIME)
        if not len(batch):
            return
        insertion = self._core.insert(batch)
        for refusal in insertion.refusals:
            self._bad.append(BadRows(refusal.error.reason, str(refusal.error), refusal.rows.source))
        if self.engine.context_aware:
            kept = np.delete(np.arange(len(insertion.batch)), insertion.late)
            self._arrivals.append(_Arrival(insertion.batch, kept))

    def take_slices(self, keys: Sequence[pa.Array], count: int, slices: Slices) -> None:
        """Let in slices whose keys are positions in these key columns, of ``count`` keys."""
        numbers = self.keys.encode(keys, count)
        slices = replace(slices, key=numbers[slices.key])
        if self.engine.plan.filled:
            self._slices.append(slices)
        else:
            self._core.insert_slices(slices)

    def _take_together(self) -> None:
        """Let in slices that are judged by what came with them: how far they lie from each other."""
        slices, self._slices = self._slices, []
        refused = self._core.insert_slices(Slices.concat(slices)) if slices else None
        if refused is not None:
            self._bad.append(BadRows(refused.error.reason, str(refused.error), None, sliced=refused.rows))

    def follow(self, latest: int) -> None:
        """Take note of the latest event time of all rows, those of other shards and those that nobody asks for too.

        It is part of what a query that is added later says: since when it is complete.
        """
        self.engine.follow(np.array([latest]))

    def begin(self, queries: Sequence[str], at: int) -> None:
        """Let added queries report what starts at or after this event time, where the watermark runs ahead of rows."""
        engine = self.engine
        gaps = {q.name: q.window.session_gap or 0 for q in self.workload.queries}
        # A session that starts within the gap after an earlier row might have started with that row.
        since = {n: max(engine.reports_from[n], at + gaps.get(n, 0)) for n in queries if n in engine.reports_after}
        after = dict.fromkeys(since, -INFINITY)
        engine.limit_reports({**engine.reports_from, **since}, {**engine.reports_after, **after})

    # Results out

    def advance(self, watermark: int) -> Results:
        """Move the watermark on; rows that are found out when they are put in order are left out, and it goes on."""
        self._take_together()
        self.engine.plan.failures.clear()  # of a step that was not finished
        noted: set[tuple[str, int]] = set()
        while True:
            try:
                results = self._core.step(watermark)
            except RefusedRowsError as error:
                self._note_records(error, noted)
                continue
            self._arrivals = []
            self._core.renumber_keys(late_rows_have_keys=True)
            self._failed = joined_failures([*self._failed, *take_window_failures(self.engine.plan)])
            return results

    def failed_windows(self) -> list[FailedWindowsError]:
        """The errors of the windows that have no value since this was last asked, one for each kind."""
        failed, self._failed = self._failed, []
        return failed

    def late_rows(self, column: str, keys: Sequence[str]) -> tuple[pa.Array, list[pa.Array]] | None:
        """One column of the late rows since this was last asked, and their keys; None when there are none."""
        sources = [held.batch.source for held in self._core.take_late() if held.batch is not None]
        if not sources:
            return None
        return column_of(sources, column), [column_of(sources, key) for key in keys]

    def drop_late_rows(self) -> None:
        """Late rows are counted, and nobody asks for them."""
        self._core.take_late()

    def bad_rows(self) -> list[BadRows]:
        """The rows that were refused since this was last asked."""
        bad, self._bad = self._bad, []
        return bad

    # State as a value

    def state(self, watermark: int | None = None) -> OperatorState:
        """Everything that the shard knows; ``watermark`` is the user's, if it is not the engine's."""
        return self._core.saved(watermark)

    def restore(self, state: OperatorState) -> None:
        """Continue from a state of this workload; queries may have been added or removed since."""
        self._core.restore(state)

    def _note_records(self, error: RefusedRowsError, noted: set[tuple[str, int]]) -> None:
        """Rows that a step refused: as they came, if that was since the last step.

        ``noted`` are those of this step, by reason and by how many rows ago they came: two queries may refuse a row.
        """
        if error.records is None:
            raise error
        rows = [(error.reason, ago) for ago in error.ago.tolist()]
        rest = np.array([i for i, row in enumerate(rows) if row not in noted], np.int64)
        noted.update(rows)
        ago = error.ago[rest]
        for arrival in reversed(self._arrivals):
            at = len(arrival.kept) - ago
            here = (at >= 0) & (at < len(arrival.kept))
            if here.any():
                came = arrival.batch.take(arrival.kept[at[here]])
                self._bad.append(BadRows(error.reason, str(error), came.source))
            ago, rest = (ago - len(arrival.kept))[~here], rest[~here]
        if len(rest):
            self._bad.append(BadRows(error.reason, str(error), None, error.records.take(rest)))


def _objects(state: State) -> int:
    """How many Python objects arrays refer to."""
    arrays = [p for slices in state.slices for parts in slices.parts for p in parts]
    arrays += [column.values for rows in state.rows for column in rows.columns.values()]
    return sum(len(a) for a in arrays if a.dtype.hasobject)


def column_of(sources: Sequence[Mapping[str, Any]], name: str) -> pa.Array:
    """One column of rows as they came, of several batches."""
    return pa.chunked_array([c for s in sources for c in _chunks(s[name])]).combine_chunks()


def _chunks(column: Any) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
