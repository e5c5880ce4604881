"""A job for a client of Spark Connect, thin or not: a batch, a stream that is started twice, and a look at its state.

    python connect_job.py URL FOLDER [ship]

Reads and writes in a folder that client and server share. With ``ship`` the server's Pythons need not have slicewise.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import slicewise as sw

SCHEMA = "minute bigint, machine string, v bigint"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
WORKLOAD = (
    sw.Workload(time="minute", keys=["machine"], unit="seconds", watermark="5 seconds")
    .query("minute", sw.tumbling("1 minute"), total=sw.sum("v"), n=sw.count())
    .query("trend", sw.sliding("1 minute", every="20 seconds"), mean=sw.avg("v"), all=sw.collect_list("v"))
    .query("last", sw.sliding(sw.rows(10), every=sw.rows(5)), most=sw.max("v"))
)
TYPES = {"machine": "string", "v": "bigint"}
#: Nothing but counts: there is no column to measure by.
COUNTED = sw.Workload(time="minute", keys=["machine"]).query("tens", sw.tumbling(sw.rows(10)), n=sw.count())


def rows(part: int) -> list[dict[str, Any]]:
    """The rows of one of two files, no two of a key at the same time."""
    return [{"minute": m, "machine": "abc"[m % 3], "v": m * m % 97} for m in range(part * 200, part * 200 + 200)]


def main(url: str, folder: str, *how: str) -> None:
    """Write ``batch.parquet`` and ``counted.parquet`` here, and let the server write ``stream``."""
    spark = SparkSession.builder.remote(url).getOrCreate()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    probe = sw.spark.ship(spark) if "ship" in how else sw.spark.probe(spark)
    print(probe)
    source = Path(folder) / "in"
    source.mkdir()
    for part in range(2):
        (source / f"{part}.json").write_text("\n".join(map(json.dumps, rows(part))))
        read = spark.readStream.schema(SCHEMA).json(str(source))
        writer = WORKLOAD.run(read, idle="1 hour").writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/stream")
        query.awaitTermination()
    frame = spark.read.schema(SCHEMA).json(str(source))
    pq.write_table(WORKLOAD.run(frame).toArrow(), f"{folder}/batch.parquet")
    pq.write_table(COUNTED.run(frame).toArrow(), f"{folder}/counted.parquet")
    pq.write_table(spark.read.parquet(f"{folder}/stream").toArrow(), f"{folder}/stream.parquet")
    print(sw.inspect(f"{folder}/checkpoint", spark))
    spark.stop()


def check(folder: Path) -> None:
    """Compare what was written with what the operator says."""
    from tests.spark.running import compare

    operator, counted = (workload.operator(types=TYPES) for workload in (WORKLOAD, COUNTED))
    reported = []
    for part in range(2):
        table = pa.Table.from_pylist(rows(part))
        counted.process_batch(table)
        operator.process_batch(table)
        reported.append(operator.advance(part * 200 + 199 - 5).to_arrow())
    stream = pa.concat_tables(reported)
    assert stream.num_rows > 40
    compare(pq.read_table(folder / "stream.parquet"), stream, ["machine"])
    rest = operator.close().to_arrow()
    compare(pq.read_table(folder / "batch.parquet"), pa.concat_tables([stream, rest]), ["machine"])
    compare(pq.read_table(folder / "counted.parquet"), counted.close().to_arrow(), ["machine"])


if __name__ == "__main__":
    main(*sys.argv[1:])
