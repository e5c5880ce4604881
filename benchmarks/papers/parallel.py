"""One master of general stream slicing's Figure 17: ``parallel.py MASTER ROWS REPEAT`` prints seconds as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

#: 80 windows: the lengths of a dashboard at 80 zoom levels. Spark's own way takes a grouping for each; four are enough
#: to see what one costs, and the others would cost the same.
LENGTHS = [1000 + 19_000 * i // 79 for i in range(80)]
OWN = 4


def main(master: str, rows: int, repeat: int) -> None:
    """Seconds of slicewise for 80 windows of M4, and of Spark's windows for the same, by four of them."""
    conf = {"spark.driver.memory": "3g", "spark.executor.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    spark = local_session("parallel", master=master, conf=conf)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "rows")
            made = spark.range(rows).select(
                F.timestamp_micros(F.col("id") * 500).alias("ts"),
                (F.col("id") % 16).alias("k"),
                (F.abs(F.hash("id")) % 84_232).alias("v"),
            )
            made.repartition(4).write.parquet(path)
            frame = spark.read.parquet(path)
            check(frame)
            found = {"slicewise": [seconds(slicewise(frame)) for _ in range(repeat + 1)][1:]}
            found["without rows"] = [seconds(slicewise(frame.limit(0))) for _ in range(repeat + 1)][1:]
            found["Spark's windows"] = [seconds(own(frame)) * len(LENGTHS) / OWN for _ in range(repeat + 1)][1:]
    finally:
        spark.stop()
    print(json.dumps(found))


def slicewise(frame: DataFrame, lengths: list[int] | None = None) -> DataFrame:
    workload = sw.Workload("ts", keys=["k"])
    for length in lengths or LENGTHS:
        workload = workload.query(f"w{length}", sw.tumbling(f"{length} ms"), m4=sw.m4("v"))
    return workload.run(frame)


def own(frame: DataFrame) -> DataFrame:
    """Minimum, maximum, first and last of each window by Spark's own functions."""
    columns = [
        F.min("v").alias("low"),
        F.max("v").alias("high"),
        F.min_by("v", "ts").alias("first"),
        F.max_by("v", "ts").alias("last"),
    ]
    parts = [
        frame.groupBy("k", F.window("ts", f"{n} milliseconds")).agg(*columns)
        for n in LENGTHS[:: len(LENGTHS) // OWN][:OWN]
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


def check(frame: DataFrame) -> None:
    """Windows, and the sums of their minima and maxima, by both ways."""
    chosen = LENGTHS[:: len(LENGTHS) // OWN][:OWN]
    theirs = own(frame).agg(F.count("*"), F.sum("low"), F.sum("high"), F.sum("first"), F.sum("last")).collect()[0]
    values = [F.sum(f"m4.{name}") for name in ("min", "max", "first", "last")]
    ours = slicewise(frame, chosen).agg(F.count("*"), *values).collect()[0]
    if tuple(ours) != tuple(theirs):
        raise SystemExit(f"slicewise says {tuple(ours)}, Spark {tuple(theirs)}")


def seconds(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
