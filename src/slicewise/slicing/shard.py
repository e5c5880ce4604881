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

from slicewise.plan.plan import VALUES
from slicewise.slicing.accounts import KeptRows
from slicewise.slicing.engine import Engine
from slicewise.slicing.input import Batch
from slicewise.slicing.operator import Operator
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from slicewise.windows import Session
from slicewise.workload import Workload

__all__ = ["Shard"]

#: What a Python value takes that an array or a table of keys refers to.
_OBJECT_BYTES = 100


@dataclass(frozen=True, eq=False)
class _SlicedRows:
    """Rows of which only their slices are known, one entry per slice; stands where an operator keeps rows."""

    times: np.ndarray
    last: np.ndarray
    rows: np.ndarray

    def take(self, index: np.ndarray) -> _SlicedRows:
        return _SlicedRows(self.times[index], self.last[index], self.rows[index])


class Shard(Operator):
    """An operator whose types are known from the start, and that takes rows or slices."""

    def __init__(self, workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        # Micro-batches and partitions say nothing about the order of rows.
        super().__init__(workload, types=types, ties=VALUES)
        self._bind(dict(self._types), time_type)

    @property
    def engine(self) -> Engine:
        """The engine, which is always there."""
        assert self._engine is not None
        return self._engine

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
        return _column(sources, column), [_column(sources, key) for key in keys]

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


def _column(sources: Sequence[Mapping[str, Any]], name: str) -> pa.Array:
    return pa.chunked_array([c for s in sources for c in _chunks(s[name])]).combine_chunks()


def _chunks(column: Any) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
