"""One workload of all routes over a few thousand rows, run in a session of its own and checked against the operator.

    python tests/spark/mixed_workload.py connect | local-cluster | classic

Prints what kind of session it was and how many results were right; fails with the first difference otherwise.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark.running import compare, in_process, on_spark


def session(kind: str) -> SparkSession:
    """A session of this kind, on this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if kind == "connect":
        builder = SparkSession.builder.remote("local[2]")
    else:
        builder = SparkSession.builder.master({"local-cluster": "local-cluster[2,1,1024]", "classic": "local[2]"}[kind])
        builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    return builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()


def workload() -> sw.Workload:
    """Slices, rows and measures; lambdas of the user's, which travel to the workers."""
    longest = sw.aggregate(combine=lambda a, b: max(a, b, key=len), identity="", result="string", name="longest")
    return (
        sw.Workload(time="ts", keys=["my key"], order=["id"])
        .query("second", sw.tumbling("1 second"), total=sw.sum("v"), mean=sw.avg("x"))
        .query("trend", sw.sliding("10 seconds", every="1 second"), most=sw.max("x"), spread=sw.stddev("x"))
        .query("visit", sw.session("400 milliseconds"), opening=sw.first("a.b"), n=sw.count())
        .query("middle", sw.cumulative("1 minute", every="20 seconds"), middle=sw.median("x"), long=longest("a.b"))
        .query("hundred", sw.sliding(sw.rows(100), every=sw.rows(30)), total=sw.sum("v"))
        .query("marked", sw.punctuated("v = 7"), last=sw.last("a.b"))
    )


def main(kind: str) -> None:
    spark = session(kind)
    n = F.col("id")
    frame = spark.range(2000).select(
        "id",
        F.timestamp_micros(n * 37_000 + n % 7 * 50_000).alias("ts"),
        F.when(n % 3 > 0, n % 3).alias("my key"),
        (n * 7 % 13).alias("v"),
        F.when(n % 5 > 0, (n * 31 % 17).cast("double") / 3).alias("x"),
        n.cast("string").alias("a.b"),
    )
    # Nothing but counts: there is no column to measure by.
    counted = sw.Workload(time="ts", keys=["my key"], order=["id"]).query(
        "tens", sw.tumbling(sw.rows(10)), n=sw.count()
    )
    compare(on_spark(counted, frame), in_process(counted, frame), ["my key"])
    found = on_spark(workload(), frame)
    compare(found, in_process(workload(), frame), ["my key"])
    results = workload().run(frame)
    assert sw.only(results, "visit").columns[-2:] == ["opening", "n"]
    assert sw.latest(results).count() == found.num_rows
    print(f"{type(spark).__module__} {found.num_rows} results are right")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
