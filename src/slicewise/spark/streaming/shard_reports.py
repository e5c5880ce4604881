"""Shard reports: what a shard sends per micro-batch, in few and wide rows: its results and its metrics.

Spark converts what stateful Python code returns row by row. A report therefore holds each column of results as one
array, which is copied as a whole, and the JVM makes rows of them: another stage of Python would cost more than all the
rest of a small micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slicewise.bad_rows import BAD, metric_name
from slicewise.slicing import COUNTED
from slicewise.spark.output import Output

__all__ = ["KEPT", "LATEST", "SHARD_METRICS", "bounded", "report_type", "reports", "results_in"]

#: What a shard keeps, and what is the same in all of them or nearly so: the largest is shown.
KEPT, LATEST = ("keys", "slices", "tuples", "state_bytes"), ("watermark", "watermark_lag_ms")
#: The metrics of a shard: what arrived in this micro-batch, and what it keeps. Once per shard and micro-batch.
SHARD_METRICS = T.StructType(
    [
        T.StructField(name, T.LongType())
        for name in ("rows", "late", "bad", *map(metric_name, BAD), "failed", "overfull", *KEPT, *COUNTED, *LATEST)
    ]
)
#: What NumPy takes for a null among times.
NOT_A_TIME = np.iinfo(np.int64).min
#: How many results are in a report at most.
MOST = 200_000


def report_type(output: Output) -> T.StructType:
    """A report on results of this kind."""
    results = [T.StructField(f.name, T.ArrayType(f.dataType)) for f in output.spark_schema()]
    return T.StructType([T.StructField("metrics", SHARD_METRICS), T.StructField("results", T.StructType(results))])


def reports(metrics: Mapping[str, int | None], results: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Metrics and results as report rows; at least one row, even without results."""
    first = True
    for table in bounded(results):
        columns = zip(table.column_names, table.columns, strict=True)
        part = {name: _listed(column.combine_chunks()) for name, column in columns}
        yield Row(metrics=dict(metrics) if first else None, results=part)
        first = False
    if first:
        yield Row(metrics=dict(metrics), results=None)


def bounded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together, or cut, to tables of so many rows at most."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        for at in range(0, batch.num_rows, MOST):
            part = batch.slice(at, MOST)
            if sum(b.num_rows for b in held) + part.num_rows > MOST:
                yield pa.Table.from_batches(held)
                held = []
            held.append(part)
    if held:
        yield pa.Table.from_batches(held)


def results_in(received: DataFrame, output: Output) -> DataFrame:
    """The results as rows, in the columns that Python sends."""
    columns = (f"results.{name}" for name in output.arrow_schema().names)
    return received.select(F.expr(f"inline(arrays_zip({', '.join(columns)}))"))


def _listed(array: pa.Array) -> Any:
    """An array as a value of a list column: as one of NumPy, where Arrow takes that without a look at its items."""
    type_ = array.type
    if pa.types.is_timestamp(type_) and type_.unit == "us":
        # Not as Python's datetimes either: those end with the year 9999, and event times do not.
        return array.cast(pa.int64()).fill_null(NOT_A_TIME).to_numpy(zero_copy_only=False).view("M8[us]")
    if not array.null_count and (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        return array.to_numpy()
    if pa.types.is_string(type_):
        # Keys come again and again: one object for each, and not for each result.
        coded = array.dictionary_encode()
        words = np.array([*coded.dictionary.to_pylist(), None], object)
        return words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
    return np.fromiter(array.to_pylist(), object, len(array))
