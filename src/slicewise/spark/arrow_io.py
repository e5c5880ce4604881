"""Arrow in and out: record batches put together as they arrive from Spark, results cut to batches, tables as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from slicewise.results import Block
from slicewise.spark.output import Output

__all__ = ["from_ipc", "result_batches", "tables_of", "to_ipc"]

#: How many results are sent at once.
BATCH_ROWS = 200_000


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


def result_batches(block: Block, keys: Sequence[pa.Array], output: Output) -> Iterator[pa.RecordBatch]:
    """A block whose key column holds numbers of these keys, as record batches of a moderate size."""
    number = pa.array(block.keys[0].values) if keys else None
    batch = output.batch(block, [key.take(number) for key in keys])
    for at in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(at, BATCH_ROWS)


def to_ipc(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def from_ipc(data: bytes) -> pa.Table:
    """A table from its bytes."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
