"""A live dashboard over a football sensor: many windows, one pass, late rows corrected.

Positions arrive 2000 times a second, a fifth of them up to two seconds late. One workload answers all of the questions
of a dashboard from the same slices: per second, per minute, since kick-off, and while the ball was in play.
"""

from __future__ import annotations

import time

import slicewise as sw
from slicewise.testing import disordered, football

dashboard = (
    sw.Workload(time="ts", keys=["sensor"], watermark="1 second", lateness="10 seconds")
    .query("per_second", sw.tumbling("1 second"), speed=sw.avg("v"), n=sw.count())
    .query("trend", sw.sliding("1 minute", every="10 seconds"), speed=sw.avg("v"), peak=sw.max("v"))
    .query("so_far", sw.landmark(every="1 minute"), peak=sw.max("v"), n=sw.count())
    .query("possession", sw.session("1 second"), n=sw.count(), middle=sw.median("v"))
)


def main() -> None:
    print(dashboard.explain(), end="\n\n")
    stream = disordered(football(600_000, keys=4, seed=1), fraction=0.2, max_delay_us=2_000_000, seed=2)
    batches = ({"ts": c.times, "sensor": c.keys, **c.columns} for c in stream.chunks(20_000))
    op = dashboard.operator()
    started = time.perf_counter()
    results = sw.Results()
    for found in op.drive(batches):
        results = results + found
    seconds = time.perf_counter() - started
    shown = results.to_pandas().drop(columns=["span"])
    for query in ("per_second", "trend", "so_far", "possession"):
        mine = shown[shown["query"] == query].dropna(axis=1, how="all")
        print(f"{query}: {len(mine)} results", mine.tail(3).to_string(index=False), sep="\n", end="\n\n")
    print("changes:", shown["change"].value_counts().to_dict())
    print(f"{op.stats().rows} rows in {seconds:.2f} s; {op.stats().late_rows} rows came too late for every window")


if __name__ == "__main__":
    main()
