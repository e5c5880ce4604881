"""A stream on Spark Connect that keeps a table, ``results.db``: ``python -m tests.spark.upsert_connect FOLDER``.

The server runs the function of ``foreachBatch`` in a Python of its own, and does not tell it which stream it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import slicewise as sw
from tests.sessions import PATIENT
from tests.spark.connect_job import ROCKSDB, SCHEMA, WORKLOAD, rows


def main(folder: Path) -> None:
    """Start the stream twice, each time with another file; write every micro-batch twice."""
    conf = PATIENT | {"spark.sql.streaming.stateStore.providerClass": ROCKSDB, "spark.sql.shuffle.partitions": "2"}
    builder = SparkSession.builder.remote("local[2]")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    keep = sw.upsert(WORKLOAD, f"sqlite:///{folder}/results.db", table="results")
    source = folder / "in"
    source.mkdir()
    for part in range(2):
        (source / f"{part}.json").write_text("\n".join(map(json.dumps, rows(part))))
        results = WORKLOAD.run(spark.readStream.schema(SCHEMA).json(str(source)))
        for again in ("once", "twice"):
            writer = results.writeStream.foreachBatch(keep).trigger(availableNow=True)
            writer.option("checkpointLocation", str(folder / again)).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
