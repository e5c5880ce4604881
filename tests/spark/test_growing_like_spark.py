"""Growing aggregates beside Spark's own functions, over tumbling, sliding and session windows, in one job."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark import data
from tests.spark.spark_own import assert_equal, grouped, session, sliding, tumbling

WINDOWS = {
    "tumbling": lambda: tumbling("10 seconds"),
    "sliding, far": lambda: sliding("60 seconds", "4 seconds"),
    "session": lambda: session("3 seconds"),
}
AGGREGATES = {
    "median_i": (sw.median("i"), lambda: F.median("i")),
    "median_f": (sw.median("f"), lambda: F.median("f")),
    "median_d": (sw.median("d"), lambda: F.median("d")),
    "percentiles": (sw.percentile("x", [0.0, 0.3, 1.0]), lambda: F.percentile("x", [0.0, 0.3, 1.0])),
    "weighed": (sw.percentile("i", 0.4, 3), lambda: F.percentile("i", F.lit(0.4), 3)),
    # Not Spark's own distinct aggregates, several of which miscount over one session window.
    "distinct_f": (sw.count_distinct("f"), lambda: F.size(F.collect_set("f")).cast("long")),
    "distinct_s": (sw.count_distinct("s"), lambda: F.size(F.collect_set("s")).cast("long")),
    "mode_small": (sw.mode("small"), lambda: F.mode("small", True)),
    "mode_f": (sw.mode("f", deterministic=True), lambda: F.mode("f", True)),
    "mode_s": (sw.mode("s"), lambda: F.mode("s", True)),
    "mode_day": (sw.mode("day"), lambda: F.mode("day", True)),
    "largest": (sw.largest("x", 3), lambda: F.slice(F.sort_array(F.collect_list("x"), asc=False), 1, 3)),
    "smallest": (sw.smallest("s", 2), lambda: F.slice(F.sort_array(F.collect_list("s")), 1, 2)),
}


@pytest.fixture(scope="module")
def rows(spark):
    frame = data.frame_of(spark, data.random_rows(400, seed=3)).cache()
    yield frame
    frame.unpersist()


def assert_as_spark(frame, aggregates):
    windows = {name: make() for name, make in WINDOWS.items()}
    workload = sw.Workload("ts", keys=["k"])
    for name, (window, _) in windows.items():
        workload = workload.query(name, window, **{n: a for n, (a, _) in aggregates.items()})
    functions = {n: make() for n, (_, make) in aggregates.items()}
    expected = grouped(frame, ["k"], {n: w for n, (_, w) in windows.items()}, functions)
    return assert_equal(workload.run(frame), expected, ["k", "query", "window"])


def test_growing_aggregates_have_spark_s_answers(rows):
    assert assert_as_spark(rows, AGGREGATES) > 300


@pytest.mark.parametrize(
    ("aggregate", "function"),
    [
        (sw.count_distinct("i", "s"), lambda: F.count_distinct("i", "s")),
        (sw.sum_distinct("d"), lambda: F.sum_distinct("d")),
    ],
    ids=["count_distinct", "sum_distinct"],
)
def test_distinct_aggregates_one_at_a_time(rows, aggregate, function):
    """Spark miscounts two distinct aggregates over one session window."""
    assert_as_spark(rows, {"x": (aggregate, function)})
