"""Sliding windows over a DataFrame, beside Spark's own: the same answer, without a copy of each row per window.

Spark's `window()` copies a row into each of the 60 windows that cover it. slicewise computes each second once and
composes the windows from seconds.
"""

from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

spark = local_session()
readings = spark.range(10_000).select(
    F.timestamp_millis(F.lit(1_714_554_000_000) + F.col("id") * 20).alias("ts"),
    (F.col("id") % 4).alias("sensor"),
    (F.col("id") * 7919 % 1000).alias("v"),
)

workload = sw.Workload(time="ts", keys=["sensor"]).query(
    "trend", sw.sliding("1 minute", every="1 second"), total=sw.sum("v"), peak=sw.max("v"), n=sw.count()
)
ours = sw.only(workload.run(readings), "trend").select("sensor", "window", "total", "peak", "n").collect()

theirs = (
    readings.groupBy("sensor", F.window("ts", "1 minute", "1 second"))
    .agg(F.sum("v").alias("total"), F.max("v").alias("peak"), F.count("*").alias("n"))
    .collect()
)
spark.stop()

print(f"{len(ours)} windows, {len(theirs)} by Spark, {len(set(ours) ^ set(theirs))} differ")
for row in sorted(ours, key=lambda row: (row.window.start, row.sensor))[:4]:
    print(f"sensor {row.sensor}  until second {row.window.end:%S}  total {row.total}  peak {row.peak}  n {row.n}")
