"""A training table: what was known of each card when somebody tried to pay with it, and whether it was fraud.

The windows end at the attempt, and no attempt sees a payment after it: what the model learns from is what it will be
given. The same workload reports the same numbers on a stream, as payments come in.
"""

import random
from datetime import datetime, timedelta

import slicewise as sw
from slicewise.spark import local_session

workload = (
    sw.Workload(time="ts", keys=["card"])
    .query("hour", sw.trailing("1 hour"), n=sw.count(), spent=sw.sum("amount"))
    .query(
        "month", sw.trailing("30 days"), mean=sw.avg("amount"), top=sw.max("amount"), shops=sw.count_distinct("shop")
    )
    .query("last", sw.trailing(sw.rows(3)), amounts=sw.collect_list("amount"))
    .query("days", sw.tumbling("1 day"), n=sw.count())
)

rng = random.Random(7)
start = datetime(2024, 5, 1)
payments = [
    (rng.choice("AAB"), start + timedelta(minutes=rng.randrange(40 * 1440)), rng.randrange(1, 90), rng.choice("xyz"))
    for _ in range(4000)
]
attempts = [  # card, time, and what we want to learn; nothing is known of card C
    ("A", start + timedelta(days=31, hours=12), False),
    ("A", start + timedelta(days=31, hours=12, minutes=10), True),
    ("B", start + timedelta(hours=9), False),
    ("C", start + timedelta(days=35), True),
]

spark = local_session()
events = spark.createDataFrame(payments, "card string, ts timestamp_ntz, amount bigint, shop string")
points = spark.createDataFrame(attempts, "card string, asked_at timestamp_ntz, fraud boolean")
table = workload.attach(points, events, time="asked_at").orderBy("card", "asked_at")
for row in table.collect():
    print(f"card {row.card} at {row.asked_at:%d %b %H:%M}, fraud: {row.fraud}")
    print(f"  last hour {row.hour_n} payments, {row.hour_spent or 0} spent; the day before {row.days_n} payments")
    print(
        f"  30 days   mean {row.month_mean and round(row.month_mean, 2)}, top {row.month_top}, {row.month_shops} shops"
    )
    print(f"  last      {row.last_amounts}")
spark.stop()
