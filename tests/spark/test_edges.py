"""Windows from tables and schedules on Spark: batch as in process, sliced in the JVM; streams that go on when a table grows."""

# ruff: noqa: E501

from __future__ import annotations

import bisect
import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.plan import plan_for
from slicewise.plan.routes import route_of
from slicewise.slicing import Edges, PeriodicWindows
from slicewise.spark import slice_route
from slicewise.spark.cells import cell_of, choose_cells
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_running import SECOND, Folder, table_of

UTC = pa.timestamp("us", "UTC")


def seconds(*values: float) -> pa.Array:
    return pa.array([round(v * SECOND) for v in values], pa.int64()).cast(UTC)


class Growing:
    """A schedule: each window twice as long as the one before, from the epoch on; and one before it."""

    def windows(self, after, upto):
        bounds = [(-2 * SECOND, 0), *((2**n * SECOND, 2 ** (n + 1) * SECOND) for n in range(30))]
        return [(s, e) for s, e in bounds if s < upto and e > after]

    def next_edge(self, t):
        return min((edge for window in self.windows(t, 2**60) for edge in window if edge > t), default=None)


#: Windows beside each other, inside each other, by key (one key has none, one is in no row), and many.
TABLES = {
    "shifts": sw.edges({"start": seconds(0, 8, 30), "end": seconds(8, 30, 31.5)}),
    "nested": sw.edges({"start": seconds(-5, 0, 0, 20), "end": seconds(200, 50, 10, 25)}),
    "by key": sw.edges({"start": seconds(0, 5, 7, 7), "end": seconds(60, 10, 9, 70), "my key": [1, 1, 2, 99]}),
    "many": sw.edges({"start": seconds(*np.arange(0, 100, 0.25)), "end": seconds(*np.arange(0.25, 100.25, 0.25))}),
    "growing": sw.edges(Growing()),
}


@pytest.fixture(scope="module")
def rows(spark):
    n = F.col("id")
    frame = spark.range(3000).select(
        F.timestamp_micros(n * 37_000 - 3_000_000).alias("ts"), (n % 3).alias("my key"), (n * 7 % 13).alias("v")
    )
    frame = frame.cache()
    yield frame
    frame.unpersist()


@pytest.mark.matrix
def test_lists_of_windows_are_in_batch_as_in_process_whatever_the_route(rows):
    workload = sw.Workload(time="ts", keys=["my key"])
    for name, window in TABLES.items():
        workload = workload.query(name, window, n=sw.count(), total=sw.sum("v"))
        # Computed in Python, over rows in order.
        workload = workload.query(f"{name} in rows", window, all=sw.collect_list("v"))
    assert {route_of(workload.named(name)).choice for name in TABLES} == {"slices"}
    assert {route_of(workload.named(f"{name} in rows")).choice for name in TABLES} == {"rows"}
    workload = workload.query("sliding", sw.sliding("10 seconds", every="3 seconds"), n=sw.count())
    workload = workload.query("session", sw.session("110 milliseconds"), n=sw.count())
    workload = workload.query("rows", sw.tumbling(sw.rows(100)), n=sw.count())
    compare(on_spark(workload, rows), in_process(workload, rows), ["my key"])


class Seconds:
    """A schedule: seconds, without end."""

    def next_edge(self, t):
        return t // SECOND * SECOND + SECOND

    def windows(self, after, upto):
        start = np.arange(after // SECOND, -(-upto // SECOND)) * SECOND
        assert len(start) < 10**6
        return {"start": start, "end": start + SECOND}


def test_a_row_far_ahead_lists_no_windows_of_a_schedule_in_between(spark, rows, monkeypatch):
    far = spark.sql("select timestamp_micros(100000000000000000) as ts, 1L as `my key`, 3L as v")
    base = sw.Workload(time="ts", keys=["my key"])
    by_schedule, by_rule = (
        base.query("q", window, n=sw.count(), total=sw.sum("v"))
        for window in (sw.edges(Seconds()), sw.tumbling("1 second"))
    )
    found, expected = (on_spark(workload, rows.unionAll(far)) for workload in (by_schedule, by_rule))
    compare(found, expected, ["my key"])
    monkeypatch.setattr(slice_route, "MOST_LISTED", 100)
    message = (
        r"^rows from -3000000 to 100000000000000000 lie among about 110 starts and ends of windows of a schedule, and no "
        "more than 100 are listed; leave out rows whose time is wrong, or take longer windows$"
    )
    with pytest.raises(sw.QueryError, match=message):
        by_schedule.run(rows.unionAll(far))


def test_a_data_frame_is_a_table(spark, rows):
    days = spark.createDataFrame(
        pa.table({"start": seconds(0, 8), "end": seconds(8, 20), "my key": [1, 2]}).to_pandas()
    )
    workload = sw.Workload(time="ts", keys=["my key"]).query("q", sw.edges(days), n=sw.count())
    found = on_spark(workload, rows)
    compare(found, in_process(workload, rows), ["my key"])
    assert sorted(zip(found.column("my key").to_pylist(), found.column("n").to_pylist(), strict=True)) == [
        (1, 72),
        (2, 108),
    ]


@pytest.mark.parametrize(
    ("points", "choice"),
    [
        ([0, 7], "edges"),
        ([-3, 0, 7], "edges"),
        ([-3, 4, 11], "grid"),
        (list(range(0, 1000, 10)), "grid"),
        ([2**59 + n * 10**12 for n in range(2**16 + 1)], "grid"),
        ([*range(-500, 500, 10), 491], "buckets"),
        ([2**59 + n * n * 10**9 for n in range(100)], "buckets"),
        ([*range(50), 2**40], "lookup"),
    ],
)
def test_the_cell_of_a_row_is_the_last_edge_before_it(spark, points, choice):
    windows = sw.edges(list(itertools.pairwise(points)))
    workload = sw.Workload(time="t").query("q", windows, n=sw.count())
    plan = plan_for(workload, {}, time_type=pa.int64())
    edges = Edges(PeriodicWindows(plan.windows), plan.gaps)
    assert choose_cells(edges).choice == choice
    times = sorted({p + d for p in points for d in (-1, 0, 1)} | {points[0] - 10**6, points[-1] + 10**6})
    frame = spark.createDataFrame(pa.table({"t": times}).to_pandas())
    found = dict(frame.select("t", cell_of(F.col("t"), edges).alias("cell")).collect())
    before = [-(2**62), *points]
    assert found == {t: before[bisect.bisect(points, t)] for t in times}


BASE = sw.Workload("ts", keys=["k"], watermark="1 second", lateness="5 seconds")


def calendar(*rows: tuple[float, float, str]) -> sw.windows.TableEdges:
    starts, ends, keys = zip(*rows, strict=True)
    return sw.edges({"start": seconds(*starts), "end": seconds(*ends), "k": list(keys)})


@pytest.mark.streams
@pytest.mark.matrix
def test_a_stream_goes_on_with_a_table_that_has_grown_and_with_no_other(spark, tmp_path):
    folder = Folder(tmp_path)

    def workload(window):
        both = BASE.query("days", window, s=sw.sum("v")).query("growing", sw.edges(Growing()), s=sw.sum("v"))
        return both.query("tens", sw.tumbling("10 seconds"), s=sw.sum("v"))

    def told(run, query):
        return sorted((r["k"], r["start"], r["end"], r["change"], r["s"]) for r in run.rows() if r["query"] == query)

    days = [(0, 8, "a"), (4, 10, "b"), (8, 20, "a")]
    folder.add(table_of([(1, "a", 1), (5, "b", 2), (12, "a", 4), (2, "c", 64)]))
    run = folder.run(spark, workload(calendar(*days)))
    assert told(run, "days") == [("a", 0, 8, "insert", 1), ("b", 4, 10, "insert", 2)]
    assert told(run, "growing") == [("a", 1, 2, "insert", 1), ("b", 4, 8, "insert", 2), ("c", 2, 4, "insert", 64)]
    assert told(run, "tens") == [("a", 0, 10, "insert", 1), ("b", 0, 10, "insert", 2), ("c", 0, 10, "insert", 64)]

    folder.add(table_of([(7, "a", 8), (19, "a", 16), (33, "b", 32), (45, "c", 0)]))
    for other in ([*days[1:], (30, 40, "b")], [(0, 8, "b"), *days[1:]]):
        with pytest.raises(
            StreamingQueryException, match="the edges of query 'days' are not those that the state was written"
        ):
            folder.run(spark, workload(calendar(*other)))
    run = folder.run(spark, workload(calendar((30, 40, "b"), *reversed(days))))
    assert told(run, "days") == [("a", 0, 8, "update", 9), ("a", 8, 20, "insert", 20), ("b", 30, 40, "insert", 32)]
    assert told(run, "growing") == [("a", 4, 8, "insert", 8), ("a", 8, 16, "insert", 4), ("a", 16, 32, "insert", 16)]


def test_windows_that_do_not_say_how_long_they_are_cannot_be_reported_before_they_end(spark, tmp_path):
    workload = BASE.query("growing", sw.edges(Growing()), n=sw.count())
    with pytest.raises(
        sw.QueryError,
        match=r"^query 'growing': emit='changes' reports windows before they end, and edges\(Growing\) does",
    ):
        workload.run(Folder(tmp_path).rows(spark), emit="changes")
