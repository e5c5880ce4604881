"""Shard: the operator for some of the keys of a stream, where rows were sliced before they came.

What Spark's stateful workers run. Beside rows it takes slices that were cut elsewhere, at the edges of the same plan;
as no edge of a window lies inside a slice, all rows of a slice are late or none is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.errors import RefusedRowsError, UserCodeInWindowError
from slicewise.plan.plan import VALUES
from slicewise.slicing.accounts import KeptRows
from slicewise.slicing.engine import Engine
from slicewise.slicing.input import Batch
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.operator import Operator
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.windows import Session
from slicewise.workload import Workload

__all__ = ["BadRows", "Shard", "column_of"]

#: What a Python value takes that an array or a table of keys refers to.
_OBJECT_BYTES = 100


@dataclass(frozen=True, eq=False)
class BadRows:
    """Rows that were refused for one reason, and what is wrong with the first of them.

    ``source`` holds the columns of those that came in this micro-batch, as they came. Of rows that came earlier only
    what the workload reads is known: ``records`` are those, with the numbers of their keys.
    """

    reason: str
    message: str
    source: Mapping[str, Any] | None
    records: Tuples | None = None

    def __len__(self) -> int:
        if self.records is not None:
            return len(self.records)
        return len(next(iter(self.source.values()))) if self.source else 0


@dataclass(frozen=True, eq=False)
class _Arrival:
    """Rows that came since the last step, and which of them were let in."""

    batch: Batch
    kept: np.ndarray


@dataclass(frozen=True, eq=False)
class _SlicedRows:
    """Rows of which only their slices are known, one entry per slice; stands where an operator keeps rows."""

    times: np.ndarray
    last: np.ndarray
    rows: np.ndarray

    def take(self, index: np.ndarray) -> _SlicedRows:
        return _SlicedRows(self.times[index], self.last[index], self.rows[index])


class Shard(Operator):
    """An operator whose types are known from the start, and that takes rows or slices.

    Rows that an operator would refuse are left out and kept to be given back. ``gaps`` says whether rows after too many
    ticks are refused; where rows were judged by the clock before they came, they are not.
    """

    def __init__(
        self, workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType, *, gaps: bool = True
    ) -> None:
        # Micro-batches and partitions say nothing about the order of rows.
        super().__init__(workload, types=types, ties=VALUES)
        self._judges_gaps = gaps
        self._bind(dict(self._types), time_type)
        self._bad: list[BadRows] = []
        self._failed: UserCodeInWindowError | None = None
        self._arrivals: list[_Arrival] = []

    @property
    def engine(self) -> Engine:
        """The engine, which is always there."""
        assert self._engine is not None
        return self._engine

    @property
    def keys(self) -> KeyTable:
        """The numbers of keys."""
        return self._keys

    @property
    def watermark(self) -> int:
        """Where the watermark stands."""
        return self._watermark

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes: those of arrays, and what Python objects in them and keys take on average."""
        state = self.engine.state
        rows = [state.tuples, *(track.rows for track in state.tracks)]
        arrays = state.slices.nbytes + sum(r.nbytes for r in rows)
        return arrays + _OBJECT_BYTES * (
            len(self._keys) * max(len(self.workload.keys), 1) + _objects(state.slices, rows)
        )

    def take_slices(self, keys: Sequence[pa.Array], count: int, slices: Slices) -> None:
        """Let in slices whose keys are positions in these key columns, of ``count`` keys."""
        numbers = self._keys.encode(keys, count)
        slices = replace(slices, key=numbers[slices.key])
        verdict = self.engine.judge(slices.first)
        self._rows += int(slices.rows.sum())
        if len(verdict.late):
            kept = np.ones(len(slices), bool)
            kept[verdict.late] = False
            self._turn_away(_of_slices(slices, verdict.late))
            slices = slices.take(np.flatnonzero(kept))
        elif len(verdict.waiting):
            self._waiting.append(_of_slices(slices, verdict.waiting))
        self.engine.insert_slices(slices)

    def begin(self, queries: Sequence[str], at: int) -> None:
        """Let added queries report what starts at or after this event time, where the watermark runs ahead of rows."""
        state = self.engine.state
        gaps = {q.name: int(q.window.gap.size) for q in self.workload.queries if isinstance(q.window, Session)}
        # A session that starts within the gap after an earlier row might have started with that row.
        since = {n: max(state.since[n], at + gaps.get(n, 0)) for n in queries if n in state.after}
        after = dict.fromkeys(since, -INFINITY)
        self.engine.state = replace(state, since={**state.since, **since}, after={**state.after, **after})

    def late_rows(self, column: str, keys: Sequence[str]) -> tuple[pa.Array, list[pa.Array]] | None:
        """One column of the late rows since this was last asked, and their keys; None when there are none."""
        kept, self._late = self._late, []
        sources = [k.batch.source for k in kept if isinstance(k.batch, Batch)]
        if not sources:
            return None
        return column_of(sources, column), [column_of(sources, key) for key in keys]

    def bad_rows(self) -> list[BadRows]:
        """The rows that were refused since this was last asked."""
        bad, self._bad = self._bad, []
        return bad

    def failed_windows(self) -> UserCodeInWindowError | None:
        """The error of the windows that have no value since this was last asked."""
        failed, self._failed = self._failed, None
        return failed

    # One row never stops a stream, and no window: those that fail are noted, and the others go on.

    def _refuse_rows(self, error: RefusedRowsError | None, batch: Batch) -> None:
        if error is not None:
            self._note(error, batch)

    def _refuse_windows(self, error: UserCodeInWindowError | None) -> None:
        if error is not None:
            before = 0 if self._failed is None else 1 + self._failed.others
            first = self._failed or error
            self._failed = UserCodeInWindowError(first.reason, first.label, before + error.others)

    def _insert_shown(self, engine: Engine, batch: Batch, key: np.ndarray, columns: Mapping[str, Column]) -> None:
        if engine.tracks:
            kept = np.delete(np.arange(len(batch)), engine.judge(batch.times).late)
            self._arrivals.append(_Arrival(batch, kept))
        super()._insert_shown(engine, batch, key, columns)

    def _step(self, watermark: int) -> None:
        # Rows that are found out when they are put in order: the step is taken again without them.
        while True:
            try:
                super()._step(watermark)
            except RefusedRowsError as error:
                self._note_records(error)
            else:
                self._arrivals = []
                return

    def _note(self, error: RefusedRowsError, batch: Batch) -> None:
        self._bad.append(BadRows(error.reason, str(error), batch.take(np.array(error.rows, np.int64)).source))

    def _note_records(self, error: RefusedRowsError) -> None:
        """Rows that a step refused: as they came, if that was since the last step."""
        if error.records is None:
            raise error
        ago, rest = error.ago, np.arange(len(error.records))
        for arrival in reversed(self._arrivals):
            at = len(arrival.kept) - ago
            here = (at >= 0) & (at < len(arrival.kept))
            if here.any():
                came = arrival.batch.take(arrival.kept[at[here]])
                self._bad.append(BadRows(error.reason, str(error), came.source))
            ago, rest = (ago - len(arrival.kept))[~here], rest[~here]
        if len(rest):
            self._bad.append(BadRows(error.reason, str(error), None, error.records.take(rest)))

    def drop_late_rows(self) -> None:
        """Late rows are counted, and nobody asks for them."""
        self._late = []

    def _turn_away(self, kept: KeptRows) -> None:
        rows = kept.batch
        if not isinstance(rows, _SlicedRows):
            super()._turn_away(kept)
            return
        self._late_rows += int(rows.rows.sum())
        self.engine.forget(int(rows.last.max()))

    def _forget_silent_keys(self) -> None:
        # Late rows are given back with key columns of their own, so numbers of keys may change under them.
        late, self._late = self._late, []
        super()._forget_silent_keys()
        self._late = late


def _objects(slices: Slices, rows: Sequence[Tuples]) -> int:
    """How many Python objects arrays refer to."""
    arrays = [p for parts in slices.parts for p in parts] + [c.values for r in rows for c in r.columns.values()]
    return sum(len(a) for a in arrays if a.dtype.hasobject)


def _of_slices(slices: Slices, index: np.ndarray) -> KeptRows:
    rows = _SlicedRows(slices.first, slices.last, slices.rows)
    return KeptRows(rows.take(index), slices.key[index])  # type: ignore[arg-type]


def column_of(sources: Sequence[Mapping[str, Any]], name: str) -> pa.Array:
    """One column of rows as they came, of several batches."""
    return pa.chunked_array([c for s in sources for c in _chunks(s[name])]).combine_chunks()


def _chunks(column: Any) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
