"""A job to be killed: ``python -m tests.sources.kafka_job FOLDER SERVERS`` reads what is there into two sinks."""

from __future__ import annotations

import sys
from pathlib import Path

import slicewise as sw
from slicewise.sources import kafka
from slicewise.spark import local_session
from tests.sessions import PATIENT

TOPIC = "killed"
WORKLOAD = sw.Workload(time="ts", keys=["k"], watermark="2 seconds").query(
    "seconds", sw.tumbling("5 seconds"), n=sw.count(), all=sw.collect_list("v")
)


def main(folder: Path, servers: str) -> None:
    """One query keeps the messages themselves, the other windows over them."""
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    conf = {"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": quick_start}
    session = local_session("kafka_job", master="local[2]", conf=PATIENT | conf)
    kafka.register(session)
    options = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, "startingOffsets": "earliest"}
    reader = session.readStream.format(kafka.NAME).options(**options).option("maxOffsetsPerTrigger", 30)
    row = "from_json(CAST(value AS STRING), 'ts TIMESTAMP, k STRING, v BIGINT') AS row"
    messages = reader.load().selectExpr("partition", "offset", row).selectExpr("partition", "offset", "row.*")
    queries = []
    for name, frame in (("messages", messages), ("windows", WORKLOAD.run(messages))):
        writer = frame.writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        queries.append(writer.format("parquet").start(str(folder / name)))
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
