"""Rolling counts: how often was each card used in the last hour, the last 12 hours, the last 24 hours?

One pass over the stream answers all three. With `emit="changes"` a micro-batch reports only the windows that it
changed, including those that end in the hours ahead. Stored by card, query and end, they form a table with the counts
of every hour to come: counts fall when payments grow old, without another row being written.
"""

import json
import os
import tempfile
from datetime import datetime
from pathlib import Path

import slicewise as sw
from slicewise.spark import local_session

workload = (
    sw.Workload(time="ts", keys=["card"], watermark="5 minutes", lateness="1 hour")
    .query("1 h", sw.sliding("1 hour", every="1 hour"), n=sw.count())
    .query("12 h", sw.sliding("12 hours", every="1 hour"), n=sw.count())
    .query("24 h", sw.sliding("24 hours", every="1 hour"), n=sw.count())
)

files = [  # what arrives together: card and time of a payment on the first of May
    [("A", "08:10"), ("A", "08:40"), ("B", "08:20")],
    [("A", "09:05"), ("A", "09:15")],
    [("B", "21:30")],
]
table = {}  # in production a table that foreachBatch merges into, by card, query and end


def merge(results, batch):
    changed = results.select("card", "query", "window.end", "n").collect()
    for row in changed:
        table[row.card, row.query, row.end] = row.n
    print(f"batch {batch}: {len(changed)} counts changed")


def show(hour):
    now = datetime(2024, 5, 1, hour)
    for card in "AB":
        counts = [f"{query}: {table.get((card, query, now), 0)}" for query in ("1 h", "12 h", "24 h")]
        print(f"  {now:%H:%M}  card {card}  {'   '.join(counts)}")


with tempfile.TemporaryDirectory() as folder:
    for number, rows in enumerate(files):
        path = Path(folder) / f"{number}.json"
        path.write_text("\n".join(json.dumps({"card": c, "ts": f"2024-05-01T{t}:00"}) for c, t in rows))
        os.utime(path, (number, number))  # the order in which Spark reads them
    spark = local_session()
    payments = spark.readStream.schema("card string, ts timestamp_ntz").option("maxFilesPerTrigger", 1).json(folder)
    stream = workload.run(payments, emit="changes").writeStream.foreachBatch(merge)
    stream.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True).start().awaitTermination()
    spark.stop()
for hour in (9, 10, 21, 22):
    show(hour)
