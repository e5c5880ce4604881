"""A dashboard over the sensors of a football match, in process: several windows in one pass, late rows corrected.

Positions arrive 2000 times a second, a fifth of them up to two seconds late. One workload answers all questions of the
dashboard from the same slices: per second, over the last ten seconds, since kick-off, and while a sensor is active.
"""

from __future__ import annotations

from collections import Counter

import slicewise as sw
from slicewise.testing import disordered, football

SECOND = 1_000_000

dashboard = (
    sw.Workload(time="ts", unit="microseconds", keys=["sensor"], watermark="1 second", lateness="10 seconds")
    .query("per_second", sw.tumbling("1 second"), speed=sw.avg("v"), n=sw.count())
    .query("trend", sw.sliding("10 seconds", every="5 seconds"), speed=sw.avg("v"), peak=sw.max("v"))
    .query("so_far", sw.landmark(every="10 seconds"), peak=sw.max("v"), n=sw.count())
    .query("active", sw.session("1 second"), n=sw.count(), middle=sw.median("v"))
)


def main() -> None:
    stream = disordered(football(120_000, keys=4, seed=1), fraction=0.2, max_delay_us=2_000_000, seed=2)
    batches = ({"ts": chunk.times, "sensor": chunk.keys, **chunk.columns} for chunk in stream.chunks(10_000))
    op = dashboard.operator()
    reported = [result for results in op.drive(batches) for result in results]
    for query in dashboard.queries:
        changes = Counter(result.change for result in reported if result.query == query.name)
        print(f"{query.name:<10}  {changes['insert']:>3} windows  {changes['update']:>2} corrections")
    print("last windows of sensor 0:")
    for query in dashboard.queries:
        # The last revision of a window is its final one.
        windows = {(r.end, r.start): r for r in reported if (r.key, r.query) == ((0,), query.name)}
        last = windows[max(windows)]
        values = ", ".join(f"{name} {value:.0f}" for name, value in last.values.items())
        print(f"{query.name:<10}  second {last.start / SECOND:>6.3f} to {last.end / SECOND:.3f}  {values}")
    print(f"{op.stats().rows} rows, {op.stats().late_rows} of them too late for every window")


if __name__ == "__main__":
    main()
