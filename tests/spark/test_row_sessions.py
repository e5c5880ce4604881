"""Sessions that are found row by row on Spark: a gap for every row as `session_window` has it, batch and streams."""

# ruff: noqa: E501

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark.running import ansi, compare, in_process, on_spark
from tests.spark.stream_running import Folder, table_of

GAP = "case when v = 0 then '0 seconds' when v < 3 then '40 seconds' when v < 9 then '5 seconds' when v = 9 then '-1 s' end"


@pytest.fixture(scope="module")
def rows(spark):
    """Rows of three keys, in bursts; some times are equal."""
    n = F.col("id")
    at = F.timestamp_micros((n * n * 7919 % 9_000_001) * 1000)
    frame = spark.range(3000).select(at.alias("ts"), (n % 3).alias("my key"), (n * 7 % 13).alias("v"))
    frame = frame.where("second(ts) < 35").cache()
    yield frame
    frame.unpersist()


@pytest.mark.matrix
def test_a_gap_per_row_is_that_of_spark(spark, rows):
    """Also a gap that is null, not positive, or no length."""
    workload = sw.Workload(time="ts", keys=["my key"])
    workload = workload.query("visits", sw.session(sw.expr(GAP)), n=sw.count(), total=sw.sum("v"))
    window = F.session_window("ts", F.expr(GAP.replace("-1 s'", "-1 seconds'")))
    with ansi(spark, False):
        expected = rows.groupBy("my key", window).agg(F.count("*"), F.sum("v")).collect()
    found = workload.run(rows).collect()
    assert len(found) > 20
    assert sorted((r["my key"], r["window"]["start"], r["window"]["end"], r["n"], r["total"]) for r in found) == sorted(
        (key, w["start"], w["end"], n, total) for key, w, n, total in expected
    )


@pytest.mark.matrix
def test_batch_is_as_in_process(rows):
    workload = sw.Workload(time="ts", keys=["my key"])
    windows = {
        "short": sw.session("5 seconds", max_length="20 seconds"),
        "by row": sw.session(sw.expr(GAP)),
        "both": sw.session(sw.expr(GAP), max_length="1 minute"),
        "beside": sw.sliding("1 minute", every="10 seconds"),
    }
    for name, window in windows.items():
        workload = workload.query(name, window, n=sw.count(), total=sw.sum("v"), last=sw.last("v"))
    compare(on_spark(workload, rows), in_process(workload, rows), ["my key"])


def test_a_stream_corrects_sessions_and_goes_on_where_it_stopped(spark, tmp_path):
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"], watermark="1 second", lateness="1 minute")
    workload = workload.query("short", sw.session("4 seconds", max_length="6 seconds"), n=sw.count())
    workload = workload.query(
        "by row", sw.session(sw.expr("case when v > 0 then '9 seconds' else '2 seconds' end")), n=sw.count()
    )

    def reported(run, query):
        return [(r["start"], r["end"], r["change"], r["n"]) for r in run.rows() if r["query"] == query]

    folder.add(table_of([(t, "a", 0) for t in (2, 4, 6, 8, 10, 12)] + [(30, "a", 1)]))
    run = folder.run(spark, workload)
    assert reported(run, "short") == [(2, 8, "insert", 3), (8, 14, "insert", 3)]
    assert reported(run, "by row") == [(2, 14, "insert", 6)]
    folder.add(table_of([(0, "a", 0), (39, "a", 0), (60, "a", 0)]))
    run = folder.run(spark, workload)
    changes = [(2, 8, "retract", None), (8, 14, "retract", None), (0, 6, "insert", 3), (6, 12, "insert", 3)]
    assert reported(run, "short") == [*changes, (12, 16, "insert", 1), (30, 34, "insert", 1), (39, 43, "insert", 1)]
    assert reported(run, "by row") == [(2, 14, "retract", None), (0, 14, "insert", 7), (30, 41, "insert", 2)]
    assert run.metrics()[-1]["late"] == 0
