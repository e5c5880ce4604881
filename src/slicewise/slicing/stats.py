"""Stats: what an operator holds and has done, in numbers and as a table of slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slicewise.slicing.engine import Engine, State
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.snapshots import Counters
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY

__all__ = ["Stats", "slices_table"]


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
    def of(cls, state: State, counters: Counters, watermark: int | None) -> Stats:
        """What a state holds, and what was counted on the way to it."""
        held: list[Slices | Tuples] = [*state.slices, *state.rows]
        return cls(
            keys=len(np.unique(np.concatenate([part.key for part in held]))),
            slices=sum(map(len, state.slices)),
            tuples=sum(map(len, state.rows)),
            bytes=sum(part.nbytes for part in held),
            rows=counters.rows,
            results=counters.results,
            late_rows=counters.late_rows,
            watermark=watermark,
        )


def slices_table(engine: Engine, keys: KeyTable) -> pa.Table:
    """The time slices as they stand: key columns, start and end (the edges around it), first, last and rows."""
    slices = engine.compacted().time.slices
    cells = engine.edges.needed_cells(slices.first, engine.horizon)
    ends = np.array([engine.edges.needed_after(int(t), engine.horizon) for t in slices.last], np.int64)
    names = {n: k.to_arrow() for n, k in zip(engine.plan.workload.keys, keys.decode(slices.key), strict=True)}
    return pa.table(
        {
            **names,
            "start": pa.array(cells, mask=cells <= -INFINITY),
            "end": pa.array(ends, mask=ends >= INFINITY),
            "first": slices.first,
            "last": slices.last,
            "rows": slices.rows,
        }
    )
