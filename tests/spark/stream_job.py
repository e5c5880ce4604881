"""A stream to be killed: ``python -m tests.spark.stream_job FOLDER`` runs one workload into two sinks to the end."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame

import slicewise as sw
from slicewise.spark import local_session
from tests.sessions import PATIENT

SCHEMA = "ts timestamp, k string, v bigint"
#: The queries, by the folder of what they write: Spark's own file sink, and files by the number of the micro-batch.
SINKS = ("appended", "by_batch")

WORKLOAD = (
    sw.Workload(time="ts", keys=["k"], watermark="2 seconds", lateness="10 seconds")
    .query("sliding", sw.sliding("10 seconds", every="3 seconds"), total=sw.sum("v"), n=sw.count())
    .query("visit", sw.session("2 seconds"), n=sw.count(), all=sw.collect_list("v"))
    .query("rows", sw.sliding(sw.rows(7), every=sw.rows(3)), total=sw.sum("v"))
)


def main(folder: Path) -> None:
    """Start both queries from their checkpoints, and wait for them."""
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": quick_start}
    session = local_session("stream_job", master="local[2]", conf=PATIENT | conf)
    queries = []
    for sink in SINKS:
        rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "source"))
        writer = WORKLOAD.run(rows).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{sink}"))
        out = folder / sink
        if sink == "appended":
            queries.append(writer.format("parquet").start(str(out)))
            continue

        def write(frame: DataFrame, batch: int, out: Path = out) -> None:
            frame.write.mode("overwrite").parquet(str(out / f"batch={batch}"))

        queries.append(writer.foreachBatch(write).start())
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
