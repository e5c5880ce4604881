"""Harness: a workload over given micro-batches, for tests. ``slicewise.testing.stream`` is the door to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from slicewise.errors import DataError
from slicewise.spark.result_frames import latest
from slicewise.spark.source import column
from slicewise.workload import Workload

__all__ = ["stream"]

#: The column that says in which micro-batch a result was reported.
BATCH = "batch"


def stream(
    batches: Sequence[DataFrame], workload: Workload, *, folded: bool = True, partitions: int = 2, **options: Any
) -> DataFrame:
    """Run a workload as a stream over given micro-batches, and give back what it reported.

    Each DataFrame becomes one micro-batch, in ``partitions`` partitions. Spark really streams: the rows go through
    files, packs, shards and the state store.

    Parameters
    ----------
    folded
        Only what is true in the end (:func:`slicewise.latest`), or every row with its micro-batch in column ``batch``.
    options
        Those of :meth:`slicewise.Workload.run`.
    """
    if not batches:
        raise DataError("`stream` needs at least one micro-batch; got none")
    if not folded and BATCH in (*workload.keys, *(name for q in workload.queries for name in q.aggregates)):
        raise DataError(f"with folded=False the results have a column {BATCH!r}; give yours another name")
    session, schema = batches[0].sparkSession, batches[0].schema
    # Files hold names that Parquet takes, whatever the columns are called.
    plain = T.StructType([T.StructField(f"c{i}", f.dataType, f.nullable) for i, f in enumerate(schema.fields)])
    with tempfile.TemporaryDirectory(prefix="slicewise-") as folder:
        source = Path(folder) / "source"
        source.mkdir()
        for number, batch in enumerate(batches):
            if batch.columns != schema.names:
                batch = batch.select(*map(column, schema.names))
            _write(batch.toDF(*plain.names).toArrow(), source, number, partitions)
        rows = session.readStream.schema(plain).option("maxFilesPerTrigger", partitions).parquet(str(source))
        results = workload.run(rows.toDF(*schema.names), **options)
        reported = _collected(session, results, Path(folder) / "checkpoint", numbered=not folded)
    return latest(reported) if folded else reported


def _write(table: pa.Table, folder: Path, number: int, partitions: int) -> None:
    """A micro-batch as files whose times of change put them in order."""
    size = -(-table.num_rows // partitions)
    for part in range(partitions):
        path = folder / f"{number:06}-{part:03}.parquet"
        pq.write_table(table.slice(part * size, size) if size else table, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def _collected(session: SparkSession, results: DataFrame, checkpoint: Path, *, numbered: bool) -> DataFrame:
    tables: list[pa.Table] = []

    def keep(frame: DataFrame, batch: int) -> None:
        table = frame.toArrow()
        if numbered:
            table = table.append_column(BATCH, pa.array([batch] * table.num_rows, pa.int64()))
        tables.append(table)

    query = (
        results.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    schema = results.schema.add(BATCH, "long") if numbered else results.schema
    # In one piece: Spark stops reading a table where a piece without rows follows another, and loses what comes after.
    return session.createDataFrame(pa.concat_tables(tables).combine_chunks() if tables else [], schema)
