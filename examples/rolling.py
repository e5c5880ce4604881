"""Rolling counts: how often was each card used in the last hour, the last 12 hours, the last 24 hours? Every minute.

A row has a card, a minute and the three counts. Rows are written only where the counts are not those of the minute
before: when a payment comes, and when one has grown older than an hour, 12 hours or 24 hours. A payment that comes late
corrects the minutes that it changes. `sw.upsert` keeps the rows in a table; `now` shows the present one of each card.
"""

import json
import os
import sqlite3
import tempfile
from pathlib import Path

import slicewise as sw
from slicewise.spark import local_session

workload = sw.Workload(time="ts", keys=["card"], watermark="5 minutes", lateness="1 hour")
for hours in (1, 12, 24):
    workload = workload.query(f"last_{hours}h", sw.sliding(f"{hours} hours", every="1 minute"), n=sw.count())

files = [  # what arrives together: card, and day and time of a payment in May
    [("A", "01T08:10"), ("A", "01T08:40"), ("B", "01T08:20")],
    [("A", "01T09:20"), ("A", "01T08:10")],  # the second one comes late
    [("B", "01T21:30")],
    [("A", "02T09:00")],
]
COUNTS = ["last_1h_n", "last_12h_n", "last_24h_n"]

with tempfile.TemporaryDirectory() as folder:
    for number, rows in enumerate(files):
        path = Path(folder) / f"{number}.json"
        path.write_text("\n".join(json.dumps({"card": c, "ts": f"2024-05-{t}:00"}) for c, t in rows))
        os.utime(path, (number, number))  # the order in which Spark reads them
    keep = sw.upsert(workload, f"sqlite:///{folder}/counts.db", table="now", latest=True)

    def merge(results, batch):
        for row in results.orderBy("end", "card").collect():
            counts = "withdrawn" if row.change == "retract" else " ".join(f"{row[name]:>2}" for name in COUNTS)
            print(f"batch {batch}  {row.end:%d %H:%M}  card {row.card}  {counts}  {row.change}")
        keep(results, batch)

    spark = local_session()
    payments = spark.readStream.schema("card string, ts timestamp_ntz").option("maxFilesPerTrigger", 1).json(folder)
    stream = workload.run(payments, shape="wide", emit="differences").writeStream.foreachBatch(merge)
    stream.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    with sqlite3.connect(f"{folder}/counts.db") as database:
        for row in database.execute(f"SELECT card, {', '.join(COUNTS)} FROM now ORDER BY card"):
            print("now      ", *row)
