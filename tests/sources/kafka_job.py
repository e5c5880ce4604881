"""A job to be killed: ``python -m tests.sources.kafka_job FOLDER SERVERS`` reads what is there into two sinks."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import slicewise as sw
from slicewise.sources import kafka
from slicewise.spark import local_session
from tests.sessions import PATIENT

TOPIC = "killed"
WORKLOAD = sw.Workload(time="ts", keys=["k"], watermark="2 seconds").query(
    "seconds", sw.tumbling("5 seconds"), n=sw.count(), all=sw.collect_list("v")
)


def _messages(session: SparkSession, servers: str) -> DataFrame:
    """The messages, in a session of their own: streams that share a Python source can fail while Spark sends it."""
    kafka.register(session)
    options = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, "startingOffsets": "earliest"}
    reader = session.readStream.format(kafka.NAME).options(**options).option("maxOffsetsPerTrigger", 30)
    row = "from_json(CAST(value AS STRING), 'ts TIMESTAMP, k STRING, v BIGINT') AS row"
    return reader.load().selectExpr("partition", "offset", row).selectExpr("partition", "offset", "row.*")


def main(folder: Path, servers: str) -> None:
    """One query keeps the messages themselves, the other windows over them."""
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": quick_start}
    session = local_session("kafka_job", master="local[2]", conf=PATIENT | conf)
    queries = []
    for name in ("messages", "windows"):
        messages = _messages(session.newSession(), servers)
        frame = messages if name == "messages" else WORKLOAD.run(messages)
        writer = frame.writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        queries.append(writer.format("parquet").start(str(folder / name)))
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
