"""Real streams for tests: a folder of files as the source, every micro-batch kept with its number."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import slicewise as sw
from tests.arrow_rows import rows_with_maps

SECOND = 1_000_000
TABLE = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])
SCHEMA = "ts timestamp, k string, v bigint"


def table_of(rows: list[tuple[float | None, Any, Any]]) -> pa.Table:
    """Rows of seconds, key and value."""
    times = [None if s is None else round(s * SECOND) for s, _, _ in rows]
    columns = [pa.array(times, pa.int64()).cast(TABLE.field(0).type)]
    columns += [pa.array([row[i] for row in rows], TABLE.field(i).type) for i in (1, 2)]
    return pa.table(columns, schema=TABLE)


class Folder:
    """Files that a stream reads, one micro-batch each, in the order in which they were added."""

    def __init__(self, path: Path) -> None:
        self.path = path / "source"
        self.checkpoint = str(path / "checkpoint")
        self.path.mkdir()
        self._count = 0

    def add(self, table: pa.Table) -> None:
        """One more file. It appears at once and whole, under a time that puts it behind the others."""
        hidden, shown = self.path / f".{self._count}", self.path / f"{self._count:06}.parquet"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_000_000_000 + self._count, 1_000_000_000 + self._count))
        hidden.rename(shown)
        self._count += 1

    def rows(self, spark: SparkSession, schema: str = SCHEMA) -> DataFrame:
        """The files as a stream."""
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self.path))

    def run(self, spark: SparkSession, workload: sw.Workload, schema: str = SCHEMA, **options: Any) -> Run:
        """Run a workload over what is there and not done yet."""
        run = Run(workload.run(self.rows(spark, schema), **options), self.checkpoint)
        run.query.awaitTermination()
        return run


class Run:
    """A running query, and what came out of it."""

    def __init__(self, results: DataFrame, checkpoint: str | None, **trigger: Any) -> None:
        self.tables: dict[int, pa.Table] = {}
        writer = results.writeStream.foreachBatch(self._keep).trigger(**(trigger or {"availableNow": True}))
        self.query: StreamingQuery = (writer.option("checkpointLocation", checkpoint) if checkpoint else writer).start()

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.tables[batch] = frame.toArrow()

    def rows(self) -> list[dict[str, Any]]:
        """All results so far, event times as microseconds."""
        return [row for batch in sorted(self.tables) for row in plain(self.tables[batch])]

    def until(self, done: Callable[[list[dict[str, Any]]], bool], seconds: float = 120) -> list[dict[str, Any]]:
        """Wait for results, then stop."""
        end = time.monotonic() + seconds
        try:
            while not done(self.rows()):
                if self.query.exception() is not None:
                    raise self.query.exception()  # type: ignore[misc]
                assert time.monotonic() < end, f"only {self.rows()} after {seconds} s"
                time.sleep(0.2)
            return self.rows()
        finally:
            self.query.stop()

    def metrics(self) -> list[dict[str, Any]]:
        """What each micro-batch observed."""
        seen = [p["observedMetrics"] for p in self.query.recentProgress]
        return [row.asDict() for named in seen for name, row in named.items() if name.startswith("slicewise")]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of results as plain values; ``start`` and ``end`` in seconds."""
    found = []
    bounds = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    at = table.column_names.index("window")
    for row in rows_with_maps(table.set_column(at, "window", table.column("window").cast(bounds))):
        window = row.pop("window")
        row["start"], row["end"] = (None, None) if window is None else (_seconds(b) for b in window.values())
        found.append(row)
    return found


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND
