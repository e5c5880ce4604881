"""Composing: from the slices that the JVM computed to windows, many keys in one call.

A partition holds all slices of its keys. They become the engine's slices, and the engine answers every window of every
query at once, as if the watermark had passed everything. Keys are taken in groups, so that memory follows the slices
and not the results, of which there may be far more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.kernels import order_by, segment_starts
from slicewise.plan.plan import Plan
from slicewise.slicing import Composition, Slices
from slicewise.spark.arrow_io import result_batches
from slicewise.spark.key_numbers import KeyNumbers, number_keys
from slicewise.spark.output import Output
from slicewise.spark.row_numbering import Measured
from slicewise.spark.slice_columns import Reader
from slicewise.spark.source import key_name
from slicewise.times import INFINITY

__all__ = ["Composer"]

#: How many slices are composed at once, if no key has more; the second where each of them lies in many windows.
LARGE_CHUNK, SMALL_CHUNK = 500_000, 20_000
#: About how many results a chunk may have, when no slice shares its windows with another.
RESULTS = 20_000_000


@dataclass(frozen=True)
class Composer:
    """The function that Spark calls for each partition of slices.

    Attributes
    ----------
    make_plan
        Called in the worker: plans hold functions that do not travel.
    readers
        For each monoid of the plan, how its columns become parts.
    first, last
        The columns that hold the first and last event time of a slice, or its cell where those do not matter.
    measured
        The columns that hold the place of a slice on axes other than event time.
    """

    make_plan: Callable[[], Plan]
    output: Output
    readers: tuple[Reader, ...]
    first: str
    last: str
    measured: Measured | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        table = pa.Table.from_batches(received)
        keys = [table.column(key_name(i)).combine_chunks() for i in range(len(self.output.schema.key_types))]
        numbers, some_row = number_keys(keys, table.num_rows)
        slices, firsts = self._slices(table, numbers)
        distinct = [k.take(pa.array(some_row)) for k in keys]
        plan = self.make_plan()
        composition = Composition(plan, self.measured.measures if self.measured else ())
        for chunk in _by_keys(slices, _chunk_size(plan)):
            chunk_firsts = [first.take(chunk) for first in firsts]
            for block in composition.blocks(slices.take(chunk), chunk_firsts, KeyNumbers(distinct)):  # type: ignore[arg-type]
                yield from result_batches(block, distinct, self.output)

    def _slices(self, table: pa.Table, numbers: np.ndarray) -> tuple[Slices, list[Column]]:
        """The slices by key, in the order of their rows, and where each begins on every axis."""
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        first, last = (Column.of(columns[name]).values for name in (self.first, self.last))
        rows = once = np.ones(len(numbers), np.int64)
        firsts: list[Column] = []
        place = first
        if self.measured is not None:
            place, rows = (Column.of(columns[name]).values for name in (self.measured.position, self.measured.rows))
            firsts = [Column.of(columns[name]) for name in self.measured.firsts]
        parts = tuple(read(columns) for read in self.readers)
        slices = Slices(numbers, first, last, rows, once, np.zeros(len(numbers), np.int64), parts)
        order = order_by(numbers, place)
        if len(first) and first.min() <= -INFINITY:
            # Before the first edge of all: no window holds it.
            order = np.arange(len(first)) if order is None else order
            order = order[first[order] > -INFINITY]
        return (slices, firsts) if order is None else (slices.take(order), [f.take(order) for f in firsts])


def _chunk_size(plan: Plan) -> int:
    overlap = sum(q.overlap for q in plan.characteristics.queries)
    return min(max(RESULTS // max(overlap, 1), SMALL_CHUNK), LARGE_CHUNK)


def _by_keys(slices: Slices, size: int) -> Iterator[slice]:
    """The slices, sorted by key, in chunks of about this size that hold whole keys."""
    bounds = np.append(segment_starts(slices.key[1:] != slices.key[:-1]), len(slices))
    at = 0
    while bounds[at] < len(slices):
        end = max(int(np.searchsorted(bounds, bounds[at] + size, "right")) - 1, at + 1)
        yield slice(int(bounds[at]), int(bounds[end]))
        at = end
