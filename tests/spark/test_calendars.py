"""Windows of the calendar on Spark: batch sliced in the JVM and streams, as in process."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.errors import DataError
from slicewise.plan.plan import VALUES
from slicewise.plan.routes import route_of
from slicewise.testing import Oracle
from tests.profiles import fewer
from tests.slicing.running import assert_same
from tests.slicing.test_calendars import cases
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_fake import FakeStream, Reference, Workers
from tests.spark.stream_running import Folder, table_of

TYPES = {"k": pa.string(), "v": pa.int64()}


@fewer(6, least=5)
@given(cases(), st.integers(1, 3), st.integers(0, 1))
def test_micro_batches_give_the_results_of_the_oracle(case, shards, workers):
    workload, time_type, epochs = case
    batches = [[[dict(zip("tkv", row, strict=True)) for row in rows]] for rows, _ in epochs]
    stream = FakeStream(workload, types=TYPES, time_type=time_type, shards=shards, workers=Workers(workers))
    expected = Reference(Oracle(workload, ties=VALUES), workload)
    assert_same([stream.batch(batch) for batch in batches], [expected.batch(batch) for batch in batches])


@pytest.fixture(scope="module")
def rows(spark):
    """An hour between two rows, over 400 days."""
    n = F.col("id")
    at = F.timestamp_micros(F.lit(1_700_000_000_000_000) + n * 3_599_000_000)
    frame = spark.range(9600).select(at.alias("ts"), (n % 3).alias("my key"), (n * 7 % 13).alias("v")).cache()
    yield frame
    frame.unpersist()


@pytest.mark.matrix
def test_calendars_are_in_batch_as_in_process_whatever_the_route(spark, rows):
    workload = sw.Workload(time="ts", keys=["my key"])
    windows = {
        "days": sw.tumbling("1 day", zone="Europe/Berlin"),
        "months": sw.tumbling("1 month", zone="America/New_York"),
        "quarters": sw.sliding("2 quarters", every="1 month", zone="Asia/Tokyo"),
        "weeks": sw.sliding("30 days", every="1 week", offset="6 hours", zone="Europe/Berlin"),
    }
    for name, window in windows.items():
        workload = workload.query(name, window, n=sw.count(), total=sw.sum("v"))
        workload = workload.query(f"{name} in rows", window, all=sw.collect_list("v"))  # computed in Python
    assert {route_of(workload.named(name)).choice for name in windows} == {"slices"}
    workload = workload.query("sliding", sw.sliding("10 days", every="3 days"), n=sw.count())
    workload = workload.query("session", sw.session("1 hour"), n=sw.count())
    workload = workload.query("rows", sw.tumbling(sw.rows(100)), n=sw.count())
    compare(on_spark(workload, rows), in_process(workload, rows), ["my key"])
    # One tumbling window alone, and timestamps that have no zone.
    alone = sw.Workload(time="ts", keys=["my key"]).query("days", windows["days"], n=sw.count())
    compare(on_spark(alone, rows), in_process(alone, rows), ["my key"])
    naive = rows.withColumn("ts", F.expr("cast(ts as timestamp_ntz)"))
    own = sw.Workload(time="ts").query("months", sw.tumbling("1 month", zone="naive"), n=sw.count())
    compare(on_spark(own, naive), in_process(own, naive), [])
    with pytest.raises(DataError, match="but the time column has none; write zone='naive'"):
        alone.run(naive)


def test_months_of_utc_are_those_that_spark_counts(spark, rows):
    workload = sw.Workload(time="ts").query("months", sw.tumbling("1 month", zone="UTC"), n=sw.count())
    found = [(r["window"]["start"], r["n"]) for r in workload.run(rows).collect()]
    month = F.to_utc_timestamp(F.date_trunc("month", F.from_utc_timestamp("ts", "UTC")), "UTC")
    with_spark = rows.groupBy(month.alias("month")).count().collect()
    assert sorted(found) == sorted((r["month"], r["count"]) for r in with_spark)


@pytest.mark.streams
@pytest.mark.matrix
def test_a_stream_of_days_and_months_goes_on_where_it_stopped(spark, tmp_path):
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"], watermark="1 hour", lateness="2 days")
    workload = workload.query("day", sw.tumbling("1 day", zone="Europe/Berlin"), s=sw.sum("v"))
    workload = workload.query("month", sw.tumbling("1 month", zone="Europe/Berlin"), s=sw.sum("v"))
    workload = workload.query("tens", sw.tumbling("10 hours"), s=sw.sum("v"))

    def at(text):
        return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()

    def reported(run, query):
        bounds = [[dt.datetime.fromtimestamp(r[n], dt.UTC) for n in ("start", "end")] for r in run.rows()]
        both = zip(run.rows(), bounds, strict=True)
        return [(f"{s:%m-%d %H}", f"{e:%m-%d %H}", r["change"], r["s"]) for r, (s, e) in both if r["query"] == query]

    folder.add(table_of([(at("2024-03-30 22:00"), "a", 1), (at("2024-03-31 21:30"), "a", 2)]))
    folder.add(table_of([(at("2024-03-31 23:30"), "a", 4)]))
    run = folder.run(spark, workload)
    assert reported(run, "day") == [("03-29 23", "03-30 23", "insert", 1), ("03-30 23", "03-31 22", "insert", 2)]
    assert reported(run, "month") == [("02-29 23", "03-31 22", "insert", 3)]
    folder.add(table_of([(at("2024-03-31 10:00"), "a", 8), (at("2024-05-01 00:00"), "a", 0)]))
    run = folder.run(spark, workload)
    assert reported(run, "day")[:2] == [("03-30 23", "03-31 22", "update", 10), ("03-31 22", "04-01 22", "insert", 4)]
    assert ("02-29 23", "03-31 22", "update", 11) in reported(run, "month")
    assert ("03-31 22", "04-30 22", "insert", 4) in reported(run, "month")
