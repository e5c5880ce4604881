"""Sessions, counts of rows and time windows in one workload, in this process, one row at a time.

A shop's clicks come in order, so with `ordered=True` each row is its own watermark: a window is reported as soon as a
row shows that it is over. Event time is an integer here, and `unit` says what it counts.
"""

import slicewise as sw

MINUTE = 60

workload = (
    sw.Workload(time="at", unit="seconds", keys=["user"])
    .query("visit", sw.session("10 minutes"), pages=sw.count(), spent=sw.sum("price"), left_from=sw.last("page"))
    .query("every 3 clicks", sw.tumbling(sw.rows(3)), path=sw.collect_list("page"))
    .query("half hour", sw.tumbling("30 minutes"), pages=sw.count(), spent=sw.sum("price"))
)

clicks = [
    (0, "ann", "home", 0),
    (1, "bob", "home", 0),
    (2, "ann", "shoes", 0),
    (6, "ann", "pay", 80),
    (8, "bob", "hats", 0),
    (25, "ann", "home", 0),
    (31, "bob", "hats", 0),
    (33, "bob", "pay", 25),
    (34, "ann", "socks", 0),
    (70, "ann", "home", 0),
]


def show(minute, results):
    for r in results:
        start, end = (r.start, r.end) if r.query == "every 3 clicks" else (r.start // MINUTE, r.end // MINUTE)
        print(f"{minute:>5}  {r.key[0]}  {r.query:<14}  {start:>2} to {end:<2}  {r.values}")


op = workload.operator(ordered=True)
for minute, user, page, price in clicks:
    show(minute, op.process(minute * MINUTE, {"user": user, "page": page, "price": price}))
show("end", op.close())
