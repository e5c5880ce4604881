"""Late rows on a stream: results are corrected or withdrawn, and `sw.latest` gives those that hold in the end.

Rides of a bike come in three micro-batches. The last one brings a ride that another station held back. It changes a
count that was already reported, and it joins two trips into one, so both are withdrawn.
"""

from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

workload = (
    sw.Workload(time="ts", keys=["bike"], watermark="5 minutes", lateness="2 hours")
    .query("per hour", sw.tumbling("1 hour"), rides=sw.count(), km=sw.sum("km"))
    .query("trip", sw.session("20 minutes"), rides=sw.count(), km=sw.sum("km"))
)

spark = local_session()


def batch(*rides):
    rows = [(7, f"2024-05-01 {time}", km) for time, km in rides]
    return spark.createDataFrame(rows, "bike int, ts string, km int").withColumn("ts", F.to_timestamp_ntz("ts"))


def show(results):
    for r in results.orderBy("batch" if "batch" in results.columns else "query", "query", "window.start").collect():
        label = f"batch {r.batch}  {r.change:<7}" if "batch" in results.columns else "finally"
        counted = "" if r.rides is None else f"  {r.rides} rides, {r.km} km"
        print(f"{label}  {r.query:<8}  {r.window.start:%H:%M} to {r.window.end:%H:%M}{counted}")


arrived = [
    batch(("08:05", 2), ("08:15", 3), ("08:50", 4)),
    batch(("10:00", 1)),
    batch(("08:32", 9)),  # late: hours after the others
]
reported = sw.testing.stream(arrived, workload, folded=False).cache()
show(reported)
show(sw.latest(reported.drop("batch")))
spark.stop()
