"""A module of the user's that travels beside slicewise: a workload with an aggregate and a window of his own."""

from __future__ import annotations

import slicewise as sw

SCHEMA = "minute bigint, machine string, v bigint"


def longer(a: str, b: str) -> str:
    """The longer text; the first of two that are equally long."""
    return a if len(a) >= len(b) else b


class Shifts:
    """Windows from the first row of fifty minutes to that of the next fifty."""

    def __init__(self) -> None:
        self.number: int | None = None

    def on_record(self, time: int, row: dict[str, object]) -> tuple[int, int]:
        """How many windows begin and end with this row."""
        before, self.number = self.number, time // 50
        return int(self.number != before), int(before is not None and self.number != before)


def workload() -> sw.Workload:
    """Queries of all routes."""
    longest = sw.aggregate(combine=longer, identity="", result="string", name="longest")
    return (
        sw.Workload(time="minute", keys=["machine"], watermark=5)
        .query("hour", sw.tumbling(60), total=sw.sum("v"), n=sw.count())
        .query("trend", sw.sliding(60, every=20), mean=sw.avg("v"), name=longest("machine"))
        .query("last", sw.sliding(sw.rows(10), every=sw.rows(5)), most=sw.max("v"))
        .query("shift", sw.user_defined(Shifts), n=sw.count())
    )


def on_the_clock() -> sw.Workload:
    """A workload that can follow the clock."""
    base = sw.Workload(time="minute", unit="seconds", keys=["machine"], watermark="5 seconds")
    return base.query("hour", sw.tumbling("1 minute"), total=sw.sum("v"), n=sw.count())


def rows(part: int) -> list[dict[str, object]]:
    """The rows of one of two files."""
    minutes = range(part * 200, part * 200 + 200)
    return [{"minute": m - m % 3, "machine": "abc"[m % 3] * (m % 2 + 1), "v": m * m % 97} for m in minutes]
