"""Batch: the same workload on a DataFrame and in process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.plan import plan_for
from slicewise.slicing import Edges, PeriodicWindows
from slicewise.spark.cells import choose_cells
from tests.spark.running import compare, in_process, on_spark


@pytest.fixture(scope="module")
def rows(spark):
    n = F.col("id")
    frame = spark.range(3000).select(
        F.timestamp_micros(n * 37_000 - 3_000_000).alias("ts"),
        (n % 3).alias("my key"),
        F.when(n % 11 > 0, n * 7 % 13 - 3).alias("v"),
        F.when(n % 5 > 0, (n * 31 % 17).cast("double") / 3).alias("x"),
        n.cast("string").alias("a.b"),
    )
    frame = frame.cache()
    yield frame
    frame.unpersist()


BASE = sw.Workload(time="ts", keys=["my key"])
NUMERIC = {
    "n": sw.count(),
    "nv": sw.count("v"),
    "total": sw.sum("v"),
    "mean": sw.avg("v"),
    "mean_x": sw.avg("x"),
    "least": sw.min("v"),
    "most": sw.max("v"),
    "spread": sw.range_("v"),
    "product": sw.product("x"),
    "geometric": sw.geometric_mean("x"),
    "deviation": sw.stddev("x"),
    "deviation_pop": sw.stddev_pop("x"),
    "var": sw.variance("v"),
    "var_all": sw.var_pop("x"),
    "most_often": sw.max_count("v"),
    "least_often": sw.min_count("v"),
}
PICKS = {
    "opening": sw.first("a.b"),
    "closing": sw.last("v"),
    "best": sw.max_by("a.b", "x"),
    "worst": sw.min_by("a.b", "x"),
    "highest": sw.max("a.b"),
    "chart": sw.m4("x"),
}
GATHERED = {
    "middle": sw.median("x"),
    "ninth": sw.percentile("v", 0.9),
    "all": sw.collect_list("v"),
    "text": sw.concat("a.b"),
}
WINDOWS = {
    "tumbling": sw.tumbling("1 second"),
    "sliding": sw.sliding("10 seconds", every="3 seconds", offset="1 second"),
    "cumulative": sw.cumulative("1 minute", every="10 seconds"),
    "landmark": sw.landmark(every="20 seconds", since="1970-01-01 00:00:10"),
    "between": sw.between("1970-01-01 00:00:10", "1970-01-01 00:00:20"),
    "session": sw.session("110 milliseconds"),
    "rows": sw.sliding(sw.rows(100), every=sw.rows(30)),
    "last ten": sw.sliding(sw.rows(10), every="5 seconds"),
    "last five": sw.sliding("5 seconds", every=sw.rows(10)),
    "punctuated": sw.punctuated("v = 3"),
    "frames": sw.frames("v > 0", min_rows=2),
}


def edges_of(workload):
    """Where a workload is cut."""
    plan = plan_for(workload, {"t": pa.int64(), "k": pa.int64()}, time_type=pa.int64())
    return Edges(PeriodicWindows(plan.windows), plan.gaps)


#: What is sliced together: one window that Spark's own stands in for, then what needs ever more of a slice.
TOGETHER = {
    "alone": ["tumbling"],
    "grids": ["tumbling", "sliding", "cumulative"],
    "times": ["tumbling", "sliding", "cumulative", "landmark", "between", "session"],
    "rows": ["rows", "last ten", "last five", "punctuated", "frames"],
    "all": list(WINDOWS),
}


@pytest.mark.parametrize("together", [*list(TOGETHER)[:-1], pytest.param("all", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("aggregates", [NUMERIC, PICKS, GATHERED], ids=["numeric", "picks", "gathered"])
def test_every_window_with_every_aggregate_is_as_in_process(rows, together, aggregates):
    workload = BASE
    for window in TOGETHER[together]:
        workload = workload.query(window, WINDOWS[window], **aggregates)
    compare(on_spark(workload, rows), in_process(workload, rows), ["my key"])


def test_without_keys_there_is_one_partition_for_all(rows):
    workload = sw.Workload(time="ts").query("q", sw.sliding("10 seconds", every="1 second"), total=sw.sum("v"))
    compare(on_spark(workload, rows), in_process(workload, rows), [])


@pytest.mark.matrix
def test_many_grids_are_looked_up_in_numpy_also_where_doubles_would_round(spark):
    workload = sw.Workload(time="t", keys=["k"])
    for prime in (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71):
        workload = workload.query(f"of {prime}", sw.tumbling(prime * 1000 + 1), n=sw.count(), least=sw.min("t"))
    n = F.col("id")
    far = F.when(n % 2 == 0, F.lit(2**55 + 1)).otherwise(0)
    frame = spark.range(500).select(F.when(n % 9 > 0, n * 997 + far).alias("t"), (n % 2).alias("k"))
    assert choose_cells(edges_of(workload)).choice == "lookup"
    compare(on_spark(workload, frame), in_process(workload, frame.where("t is not null")), ["k"])


@pytest.mark.parametrize("window", ["sliding", "session"])
def test_what_is_shuffled_changes_no_result(rows, window):
    workload = BASE.query(window, WINDOWS[window], total=sw.sum("v"), n=sw.count())
    found = workload.run(rows, shuffle="rows")
    exchanges = found._jdf.queryExecution().executedPlan().toString().count("Exchange hashpartitioning")
    assert exchanges == 1
    compare(found.toArrow(), in_process(workload, rows), ["my key"])


def test_a_timestamp_that_no_window_lies_around_is_given_back(spark):
    frame = spark.range(3).select(F.timestamp_micros(F.col("id") * 2**61).alias("ts"))
    workload = sw.Workload(time="ts").query("q", sw.sliding("2 seconds", every="1 second"), n=sw.count())
    found = workload.run(frame, late="collect").groupBy("change").count().collect()
    assert {row["change"]: row["count"] for row in found} == {"insert": 2, "late": 2}
