"""Stats: what an operator holds and has done, in numbers and as a table of slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slicewise.amounts import UNITS
from slicewise.plan.plan import Plan
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.state.snapshots import Counters
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY

__all__ = ["COUNTED", "Stats", "slices_table", "watermark_lag"]

#: What is counted of the work that is done, in the order in which it is shown.
COUNTED = ("merges", "splits", "updates", "recomputations", "combines", "lifts")


@dataclass(frozen=True)
class Stats:
    """What an operator holds, and what it has done since it was made; a snapshot keeps what was counted.

    Attributes
    ----------
    keys, slices, tuples
        How many keys have anything kept, in how many slices, and how many rows are kept as such.
    state_bytes
        Those of arrays: slices, and stored tuples where there are any.
    rows, results, late_rows
        How many rows came in, how many results went out, and how many rows came too late.
    watermark
        Where the watermark stands; None before it has moved.
    watermark_lag_ms
        How far it is behind the latest event time, in milliseconds; None where integers have no unit.
    merges, splits, updates
        Slices that became part of another one, became two, and took rows in or gave them away.
    recomputations
        Partials that were computed again from stored tuples.
    combines
        Pairs of partials that were combined, or parted by an inverse.
    lifts
        Rows whose partials were made; aggregates that share a partial lift once.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
    >>> _ = op.process_batch({"t": [1, 4, 12]})
    >>> _ = op.advance(10)
    >>> stats = op.stats()
    >>> stats.rows, stats.results, stats.slices, stats.watermark
    (3, 1, 1, 10)
    """

    keys: int = 0
    slices: int = 0
    tuples: int = 0
    state_bytes: int = 0
    rows: int = 0
    results: int = 0
    late_rows: int = 0
    watermark: int | None = None
    watermark_lag_ms: int | None = None
    merges: int = 0
    splits: int = 0
    updates: int = 0
    recomputations: int = 0
    combines: int = 0
    lifts: int = 0

    @property
    def bytes(self) -> int:
        """The same as ``state_bytes``."""
        return self.state_bytes

    @classmethod
    def of(cls, state: State, plan: Plan, counters: Counters, watermark: int | None) -> Stats:
        """What a state holds, and what was counted on the way to it."""
        held: list[Slices | Tuples] = [*state.slices, *state.rows]
        costs = {name: n for name, n in counters.costs.items() if name in COUNTED}
        return cls(
            keys=len(np.unique(np.concatenate([part.key for part in held]))),
            slices=sum(map(len, state.slices)),
            tuples=sum(map(len, state.rows)),
            state_bytes=state.nbytes,
            rows=counters.rows,
            results=counters.results,
            late_rows=counters.late_rows,
            watermark=watermark,
            watermark_lag_ms=watermark_lag(plan, state.latest, watermark),
            **costs,
        )


def watermark_lag(plan: Plan, latest: int, watermark: int | None) -> int | None:
    """How many milliseconds the watermark is behind the latest event time; None if they are not known."""
    if watermark is None or latest <= -INFINITY:
        return None
    unit = plan.workload.unit or (None if pa.types.is_integer(plan.schema.time_type) else "microseconds")
    # Bounded, since a watermark as far behind as can be said is no 64-bit number of milliseconds.
    return None if unit is None else min(max(latest - watermark, 0) * 1000 // UNITS[unit], INFINITY)


def slices_table(engine: Engine, keys: KeyTable) -> pa.Table:
    """The time slices as they stand: key columns, start and end (the edges around it), first, last and rows."""
    slices = engine.held().time.slices
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
