"""Composing: from the slices that the JVM computed to windows, many keys in one call.

A partition holds all slices of its keys. They become the engine's slices, and the engine answers every window of every
query at once, as if the watermark had passed everything. Keys are taken in groups, so that memory follows the slices
and not the results, of which there may be far more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.columns import Column
from slicewise.kernels import order_by, segment_starts
from slicewise.plan.plan import Plan
from slicewise.results import Block
from slicewise.slicing.compose import Composition
from slicewise.slicing.time.slices import Slices
from slicewise.spark.measures import Measured
from slicewise.spark.output import Output
from slicewise.spark.shelf import Reader
from slicewise.spark.source import key_name

__all__ = ["Composer", "Numbers", "normal_form", "number_keys", "sent", "tables_of"]

#: How many slices are composed at once, if no key has more; the second where each of them lies in many windows.
LARGE_CHUNK, SMALL_CHUNK = 500_000, 20_000
#: About how many results a chunk may have, when no slice shares its windows with another.
RESULTS = 20_000_000
#: How many results are sent at once.
SENT = 200_000


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
            for block in composition.blocks(slices.take(chunk), chunk_firsts, Numbers(distinct)):  # type: ignore[arg-type]
                yield from sent(block, distinct, self.output)

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
        return (slices, firsts) if order is None else (slices.take(order), [f.take(order) for f in firsts])


@dataclass(frozen=True, eq=False)
class Numbers:
    """Stands for a table of keys where keys stay numbers until the end; ``columns`` are what the numbers stand for."""

    columns: Sequence[pa.Array]

    def key(self, number: int) -> tuple[Any, ...]:
        """One key, for errors."""
        return tuple(column[number].as_py() for column in self.columns)

    def decode(self, numbers: np.ndarray) -> tuple[Column, ...]:
        """The numbers themselves."""
        return (Column(numbers, pa.int64()),)


def number_keys(keys: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A number for each different key, and for each number a row that has it. A null is a key like any other.

    >>> number_keys([pa.array(["b", None, "b"]), pa.array([1, 1, 1])], 3)
    (array([0, 1, 0]), array([0, 1]))
    """
    numbers = np.zeros(rows, np.int64)
    if not rows:
        return numbers, numbers
    for key in keys:
        codes = _codes(key)
        numbers = numbers * (int(codes.max()) + 1) + codes
        numbers = _codes(pa.array(numbers))  # small again, so that the next column cannot overflow it
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(rows)[::-1]
    return numbers, firsts


def _codes(key: pa.Array) -> np.ndarray:
    if pa.types.is_struct(key.type):
        fields = [key.is_null().cast(pa.int8()), *key.flatten()]
        return number_keys(fields, len(key))[0]
    if pa.types.is_nested(key.type):
        return _codes_of_lists(key)
    if pa.types.is_floating(key.type):
        # Spark's keys: NaN is one key, and -0.0 is 0.0.
        values = key.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        values[np.isnan(values)] = np.nan
        key = pa.array(values.view(f"i{values.itemsize}"), mask=key.is_null().to_numpy(zero_copy_only=False))
    return key.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _codes_of_lists(key: pa.Array) -> np.ndarray:
    """Lists are compared by the codes of their items: Python's objects could not hold every instant of Arrow's."""
    items = _codes(key.flatten())
    lengths = pc.list_value_length(key).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    seen: dict[bytes | None, int] = {}
    codes = [
        seen.setdefault(items[start:end].tobytes() if some else None, len(seen))
        for start, end, some in zip((ends - lengths).tolist(), ends.tolist(), key.is_valid().to_pylist(), strict=True)
    ]
    return np.array(codes, np.int64)


def normal_form(key: pa.Array) -> pa.Array:
    """Keys as Spark's own ``groupBy`` shows them: -0.0 is 0.0, wherever it stands.

    >>> normal_form(pa.array([[-0.0, None], None])).to_pylist()
    [[0.0, None], None]
    """
    if pa.types.is_floating(key.type):
        return pc.add(key, pa.scalar(0.0, key.type))
    if pa.types.is_struct(key.type):
        fields = [normal_form(field) for field in key.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(key.type), mask=key.is_null())
    if pa.types.is_list(key.type):
        lengths = pc.list_value_length(key).fill_null(0).to_numpy(zero_copy_only=False)
        starts = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
        return pa.ListArray.from_arrays(starts, normal_form(key.flatten()), type=key.type, mask=key.is_null())
    return key


def tables_of(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Batches put together until there are at least ``size`` rows; those without rows are passed over."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= size:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


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


def sent(block: Block, keys: Sequence[pa.Array], output: Output) -> Iterator[pa.RecordBatch]:
    """A block whose key column holds numbers of these keys, as record batches of a moderate size."""
    number = pa.array(block.keys[0].values) if keys else None
    batch = output.batch(block, [key.take(number) for key in keys])
    for at in range(0, batch.num_rows, SENT):
        yield batch.slice(at, SENT)
