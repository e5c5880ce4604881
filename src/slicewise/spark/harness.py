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

from slicewise.errors import DataError
from slicewise.spark.frames import latest
from slicewise.workload import Workload

__all__ = ["stream"]


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
    session, schema = batches[0].sparkSession, batches[0].schema
    with tempfile.TemporaryDirectory(prefix="slicewise-") as folder:
        source = Path(folder) / "source"
        source.mkdir()
        for number, batch in enumerate(batches):
            _write(batch.select(*(f"`{n}`" for n in schema.names)).toArrow(), source, number, partitions)
        rows = session.readStream.schema(schema).option("maxFilesPerTrigger", partitions).parquet(str(source))
        results = workload.run(rows, **options)
        reported = _collected(session, results, Path(folder) / "checkpoint")
    return latest(reported.drop("batch")) if folded else reported


def _write(table: pa.Table, folder: Path, number: int, partitions: int) -> None:
    """A micro-batch as files whose times of change put them in order."""
    size = -(-table.num_rows // partitions)
    for part in range(partitions):
        path = folder / f"{number:06}-{part:03}.parquet"
        pq.write_table(table.slice(part * size, size) if size else table, path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def _collected(session: SparkSession, results: DataFrame, checkpoint: Path) -> DataFrame:
    tables: list[pa.Table] = []

    def keep(frame: DataFrame, batch: int) -> None:
        found = frame.toArrow()
        tables.append(found.append_column("batch", pa.array([batch] * found.num_rows, pa.int64())))

    query = (
        results.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    schema = results.schema.add("batch", "long")
    return session.createDataFrame(pa.concat_tables(tables), schema) if tables else session.createDataFrame([], schema)
