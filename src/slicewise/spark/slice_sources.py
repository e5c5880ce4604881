"""Slice sources: a partition that Spark has brought together by key, as slices of the engine.

Either each row of it is a slice, which the JVM has computed, or they are the rows themselves, which are sliced here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.kernels import order_by, segment_starts
from slicewise.plan.plan import Plan
from slicewise.slicing import Edges, PeriodicWindows, Slices, cut_rows
from slicewise.spark.arrow_io import tables_of
from slicewise.spark.key_numbers import normal_form, number_keys
from slicewise.spark.row_numbering import Measured
from slicewise.spark.slice_columns import Reader
from slicewise.spark.source import TIME, key_name
from slicewise.spark.types import read
from slicewise.times import INFINITY

__all__ = ["KeyedSlices", "RowSlicer", "SliceReader", "SliceSource"]

#: How many rows are sliced at once, so that memory follows the slices of a partition and not its rows.
CHUNK = 1_000_000


class KeyedSlices(NamedTuple):
    """Slices by key, in the order of their rows.

    Attributes
    ----------
    keys
        The columns of the keys, each key once; slices are numbered by the place of theirs.
    firsts
        Where each slice begins on every axis other than event time.
    """

    keys: list[pa.Array]
    slices: Slices
    firsts: list[Column]


class SliceSource(Protocol):
    """What makes slices of the batches of a partition, of which one at least has rows."""

    def slices(self, plan: Plan, batches: Iterator[pa.RecordBatch]) -> KeyedSlices:
        """The slices."""


@dataclass(frozen=True)
class SliceReader:
    """Reads slices that the JVM has computed.

    Attributes
    ----------
    readers
        For each monoid of the plan, how its columns become parts.
    first, last
        The columns that hold the first and last event time of a slice, or its cell where those do not matter.
    measured
        The columns that hold the place of a slice on axes other than event time.
    """

    readers: tuple[Reader, ...]
    first: str
    last: str
    measured: Measured | None = None

    def slices(self, plan: Plan, batches: Iterator[pa.RecordBatch]) -> KeyedSlices:
        """All slices of the partition."""
        table = pa.Table.from_batches([batch for batch in batches if batch.num_rows])
        keys, numbers = _keys_of(plan, table)
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        first, last = (Column.of(columns[name]).values for name in (self.first, self.last))
        rows = once = np.ones(len(numbers), np.int64)
        firsts: list[Column] = []
        place = first
        if self.measured is not None:
            place, rows = (Column.of(columns[name]).values for name in (self.measured.position, self.measured.rows))
            firsts = [Column.of(columns[name]) for name in self.measured.firsts]
        parts = tuple(reader(columns) for reader in self.readers)
        slices = Slices(numbers, first, last, rows, once, np.zeros(len(numbers), np.int64), parts)
        order = order_by(numbers, place)
        if len(first) and first.min() <= -INFINITY:
            # Before the first edge of all: no window holds it.
            order = np.arange(len(first)) if order is None else order
            order = order[first[order] > -INFINITY]
        if order is not None:
            slices, firsts = slices.take(order), [f.take(order) for f in firsts]
        return KeyedSlices(keys, slices, firsts)


@dataclass(frozen=True)
class RowSlicer:
    """Slices rows, which come in any order, as the engine does on a stream.

    Attributes
    ----------
    columns
        The columns that aggregates read, by name: how Spark calls each, and its type.
    """

    columns: Mapping[str, tuple[str, pa.DataType]]

    def slices(self, plan: Plan, batches: Iterator[pa.RecordBatch]) -> KeyedSlices:
        """The slices of all rows, which are taken in chunks."""
        edges = Edges(PeriodicWindows(plan.windows, plan.workload.keys), plan.gaps)
        keys, pieces, met = [], [], 0
        for table in tables_of(batches, CHUNK):
            some, numbers = _keys_of(plan, table)
            columns = {name: read(table.column(c).combine_chunks(), type_) for name, (c, type_) in self.columns.items()}
            piece = cut_rows(numbers, table.column(TIME).to_numpy(), columns, edges, plan.monoids)
            pieces.append(replace(piece, key=piece.key + met))
            keys.append(pa.table(some, _key_names(plan)))
            met += keys[-1].num_rows
        distinct, numbers = _keys_of(plan, pa.concat_tables(keys))
        slices = Slices.concat(pieces)
        slices = replace(slices, key=numbers[slices.key])
        order = order_by(slices.key, slices.first)
        slices = slices if order is None else slices.take(order)
        cells = edges.cells(slices.first)
        starts = segment_starts((slices.key[1:] != slices.key[:-1]) | (cells[1:] != cells[:-1]))
        return KeyedSlices(list(map(normal_form, distinct)), slices.merged(starts, plan.monoids), [])


def _key_names(plan: Plan) -> list[str]:
    return [key_name(i) for i in range(len(plan.schema.key_types))]


def _keys_of(plan: Plan, table: pa.Table) -> tuple[list[pa.Array], np.ndarray]:
    """The different keys of a table, and for each row the place of its key among them."""
    keys = [table.column(name).combine_chunks() for name in _key_names(plan)]
    numbers, some_row = number_keys(keys, table.num_rows)
    return [key.take(pa.array(some_row)) for key in keys], numbers
