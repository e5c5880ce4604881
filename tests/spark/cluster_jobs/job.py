"""A job for spark-submit: the workload of `machines` as a batch and as a stream; what came out is put into files.

    spark-submit --py-files slicewise.zip,machines.py job.py FOLDER [py-file ...]

Further arguments are given to the session as files that the job adds itself; "ship" lets slicewise send itself.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, folder: str) -> None:
    """Read ``folder/in``, write ``folder/batch.parquet``, ``folder/stream.parquet`` and ``folder/idle.parquet``."""
    import machines

    workload = machines.workload()
    batch = workload.run(spark.read.schema(machines.SCHEMA).json(f"{folder}/in"))
    pq.write_table(batch.toArrow(), f"{folder}/batch.parquet")
    rows = spark.readStream.schema(machines.SCHEMA).option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    stream(workload.run(rows), folder, "stream")
    stream(machines.on_the_clock().run(rows, idle="1 hour"), folder, "idle")


def stream(results: DataFrame, folder: str, name: str) -> None:
    """Write what comes out of a stream of what is there."""
    tables: list[pa.Table] = []

    def keep(frame: DataFrame, number: int) -> None:
        tables.append(frame.toArrow())

    writer = results.writeStream.foreachBatch(keep).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoint of {name}").start().awaitTermination()
    pq.write_table(pa.concat_tables(tables), f"{folder}/{name}.parquet")


def ship(spark: SparkSession) -> None:
    """The workers lack slicewise before, and nothing afterwards; a stream runs."""
    import slicewise.spark

    before = slicewise.spark.probe(spark)
    assert [worker.missing for worker in before.workers] == [["slicewise"]], before
    assert before.stream is not None
    assert "No module named 'slicewise'" in before.stream, before
    after = slicewise.spark.ship(spark)
    assert not after.problems, after


def main(folder: str, *py_files: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    for path in py_files:
        if path == "ship":
            ship(spark)
        else:
            spark.sparkContext.addPyFile(path)
    run(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
