"""State by way of pandas: the stateful step of a stream on Spark 4.0, whose Python has no rows there, only tables.

Packs come and reports go as columns of text and bytes: pandas would make doubles of integers next to a null, and
Spark takes the instants inside of arrays and structs for those of the session's zone. Results are therefore Arrow's own
bytes, until another step in Python makes rows of them. The state is that of every other version, but Spark does not
continue a checkpoint of tables with rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import TimerValues

from slicewise.spark.arrow_io import from_ipc, to_ipc
from slicewise.spark.output import Output
from slicewise.spark.session import shared_workers
from slicewise.spark.shipping import carried, for_workers
from slicewise.spark.streaming.packs import SHARD
from slicewise.spark.streaming.processor import ShardJob, ShardProcessor, deferred
from slicewise.spark.streaming.shard_reports import SHARD_METRICS, bounded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PandasShardProcessor", "pandas_reports", "results_in_bytes"]

#: A report: the metrics side by side, as text, and a table of results as bytes..
REPORT = T.StructType(
    [*(T.StructField(name, T.StringType()) for name in SHARD_METRICS.names), T.StructField("results", T.BinaryType())]
)


def pandas_reports(packs: DataFrame, job: ShardJob) -> DataFrame:
    """The reports of all shards on their packs: metrics as in every other version, results as bytes."""
    packs = packs.withColumn("latest", F.col("latest").cast("string"))
    processor = carried(deferred(PandasShardProcessor(job)), packs.sparkSession)
    with shared_workers(packs.sparkSession):
        reports = packs.groupBy(SHARD).transformWithStateInPandas(processor, REPORT, "append", "none")
    metrics = F.struct(*(F.col(name).cast("long").alias(name) for name in SHARD_METRICS.names))
    return reports.select(metrics.alias("metrics"), "results")


def results_in_bytes(received: DataFrame, output: Output) -> DataFrame:
    """The results as rows, in the columns that Python sends."""
    return received.select("results").mapInArrow(for_workers(_unpacked, received.sparkSession), output.spark_schema())


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column(0).drop_null().to_pylist():
            yield from from_ipc(data).to_batches()


class PandasShardProcessor(ShardProcessor):
    """A processor whose packs and reports are tables of pandas."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:
        """Called by Spark with the packs of one shard."""
        metrics, results = self.report(key, [pack for table in rows for pack in _packs(table)])
        yield _report(metrics, None)
        for table in bounded(results):
            yield _report({}, to_ipc(table))


def _packs(table: pd.DataFrame) -> Iterator[Row]:
    for pack in table.to_dict("records"):
        yield Row(**pack | {"latest": None if pack["latest"] is None else int(pack["latest"])})


def _report(metrics: dict[str, int | None], results: bytes | None) -> pd.DataFrame:
    import pandas as pd

    values = {name: None if metrics.get(name) is None else str(metrics[name]) for name in SHARD_METRICS.names}
    return pd.DataFrame({**{name: [value] for name, value in values.items()}, "results": [results]}, dtype=object)
