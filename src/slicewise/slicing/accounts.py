"""Accounts: what an operator says of itself, and the rows that it keeps outside of slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slicewise.slicing.engine import Engine, State
from slicewise.slicing.input import Batch
from slicewise.slicing.keys import KeyTable
from slicewise.times import INFINITY

__all__ = ["KeptRows", "LateRow", "Stats", "slices_table"]


class LateRow(NamedTuple):
    """A row for which no window was open any more."""

    time: int
    key: tuple[Any, ...]
    row: dict[str, Any]


@dataclass(frozen=True)
class Stats:
    """What an operator holds and has done.

    ``bytes`` are those of arrays: slices, and stored tuples where there are any.
    """

    keys: int
    slices: int
    tuples: int
    bytes: int
    rows: int
    results: int
    late_rows: int
    watermark: int | None

    @classmethod
    def of(cls, state: State, rows: int, results: int, late_rows: int, watermark: int | None) -> Stats:
        """What a state holds, and what was counted on the way to it."""
        stored = [state.tuples, *(track.rows for track in state.tracks)]
        folded = sum(track.slice_count for track in state.tracks)
        return cls(
            keys=len(np.unique(np.concatenate([state.slices.key, *(t.key for t in stored)]))),
            slices=len(state.slices) + folded,
            tuples=sum(len(t) for t in stored) - folded,
            bytes=state.slices.nbytes + sum(t.nbytes for t in stored),
            rows=rows,
            results=results,
            late_rows=late_rows,
            watermark=watermark,
        )


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows outside of the slices: late, or waiting to be judged."""

    batch: Batch
    key: np.ndarray

    def take(self, index: np.ndarray) -> KeptRows:
        """The rows at ``index``."""
        return KeptRows(self.batch.take(index), self.key[index])

    def late(self, keys: KeyTable) -> Iterator[LateRow]:
        """The rows as they are given back."""
        rows = self.batch.rows()
        for time, key, row in zip(self.batch.times.tolist(), self.key.tolist(), rows, strict=True):
            yield LateRow(time, keys.values[key] if keys.types else (), row)


def slices_table(engine: Engine, keys: KeyTable) -> pa.Table:
    """The slices as they stand: key columns, start and end (the edges around it), first, last and rows."""
    s = engine.settled().slices
    cells = engine.edges.needed_cells(s.first, engine.horizon)
    ends = np.array([engine.edges.needed_after(int(t), engine.horizon) for t in s.last], np.int64)
    names = {n: k.to_arrow() for n, k in zip(engine.plan.workload.keys, keys.decode(s.key), strict=True)}
    return pa.table(
        {
            **names,
            "start": pa.array(cells, mask=cells <= -INFINITY),
            "end": pa.array(ends, mask=ends >= INFINITY),
            "first": s.first,
            "last": s.last,
            "rows": s.rows,
        }
    )
