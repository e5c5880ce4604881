"""A result that does not fit its type, on Spark: the error says whose it is, and a stream can go on without it."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import slicewise as sw
from tests.spark.stream_running import SCHEMA, Folder, Run, table_of

BIG = 2**62
REASON = (
    "`sum` of column 'v' does not fit in a 64-bit integer: a window gives 9223372036854775808; cast the column to a "
    "wider type, such as a decimal with fewer decimals or double"
)
TENS = "[1970-01-01 00:00:10+00:00, 1970-01-01 00:00:20+00:00)"
#: Key b overflows at seconds 11 and 12.
ROWS = [(t, k, BIG if k == "b" and t in (11, 12) else 1) for t in (1, 2, 11, 12) for k in "abc"]


def message_of(error):
    """What slicewise said, without what Spark says around it."""
    (found,) = set(re.findall(r"OverflowInWindowError: (.*)", str(error)))
    return found


@pytest.mark.parametrize(
    ("window", "place"),
    [
        (sw.sliding("10 seconds", every="10 seconds", offset="0 seconds"), f"window {TENS}"),
        (sw.session("3 seconds"), "window [1970-01-01 00:00:11+00:00, 1970-01-01 00:00:15+00:00)"),
        (sw.tumbling(sw.rows(2)), "span [2, 4)"),
        (sw.frames("v > 1"), "window [1970-01-01 00:00:11+00:00, open)"),
        (sw.sliding(sw.rows(2), every="10 seconds"), "window [1970-01-01 00:00:11+00:00, 1970-01-01 00:00:20+00:00)"),
    ],
    ids=["slices", "session", "counts", "rows", "last rows"],
)
def test_a_batch_names_query_key_and_window(spark, window, place):
    frame = spark.createDataFrame(table_of(ROWS))
    workload = sw.Workload("ts", keys=["k"]).query("fine", sw.session("1 hour"), n=sw.count())
    with pytest.raises(PySparkException) as caught:
        workload.query("big", window, s=sw.sum("v")).run(frame).collect()
    assert message_of(caught.value) == f"query 'big', key k='b', {place}: {REASON}"


def test_one_tumbling_window_that_spark_computes_alone_is_named_too(spark):
    workload = sw.Workload("ts", keys=["k"]).query("big", sw.tumbling("10 seconds"), s=sw.sum("v"), n=sw.count())
    with pytest.raises(PySparkException) as caught:
        workload.run(spark.createDataFrame(table_of(ROWS))).collect()
    assert f"[USER_RAISED_EXCEPTION] query 'big', key k='b', window {TENS}: {REASON} SQLSTATE" in str(caught.value)


TODO = (
    "the stream meets this window again at every restart: remove query 'big' from the workload, or replace it by one "
    "of another name over a wider column, and start with the same checkpoint; where no other query stays, with a new "
    "one"
)


@pytest.mark.streams
@pytest.mark.parametrize(
    ("window", "place"), [(sw.tumbling("10 seconds"), f"window {TENS}"), (sw.tumbling(sw.rows(2)), "span [2, 4)")]
)
def test_a_stream_says_what_to_do_and_goes_on_when_it_is_done(spark, tmp_path, window, place):
    folder = Folder(tmp_path)
    folder.add(table_of(ROWS[:6]))
    kept = sw.Workload("ts", keys=["k"]).query("kept", sw.tumbling("10 seconds"), n=sw.count())
    broken = kept.query("big", window, s=sw.sum("v"))
    folder.run(spark, broken)
    folder.add(table_of([*ROWS[6:], (21, "c", 1)]))
    folder.add(table_of([(35, k, BIG) for k in "ab"] + [(36, k, BIG) for k in "ab"] + [(41, "c", 1)]))
    for _ in range(2):
        with pytest.raises(StreamingQueryException) as caught:
            folder.run(spark, broken)
        assert message_of(caught.value) == f"query 'big', key k='b', {place}: {REASON}; {TODO}"
    wide = kept.query("wide", window, total=sw.sum("w"))
    rows = folder.rows(spark, SCHEMA).selectExpr("*", "cast(v as decimal(20, 0)) as w")
    run = Run(wide.run(rows), folder.checkpoint)
    run.query.awaitTermination()
    found = run.rows()
    counts = {(r["k"], r["start"]): r["n"] for r in found if r["query"] == "kept"}
    assert counts == {(k, t): 2 for t in (0, 10) for k in "abc"} | {("c", 20): 1, ("a", 30): 2, ("b", 30): 2}
    totals = {r["k"]: r["total"] for r in found if r["query"] == "wide" and r["start"] in (30, 35)}
    assert totals["a"] == totals["b"] == 2**63
