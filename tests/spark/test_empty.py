"""Windows without rows on Spark: batch by both routes as in process, and a stream that stops and goes on."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.bad_rows import GAP, metric_name
from slicewise.spark.streaming import chunks
from slicewise.testing import Oracle
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_fake import FakeStream, Workers
from tests.spark.stream_running import SECOND, Folder, table_of


def test_only_the_chunks_of_keys_that_changed_are_written():
    """The last window of every key is kept, and there may be many keys."""
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), empty=True, n=sw.count())
    running = FakeStream(workload, shards=1, types={"k": pa.string()}, workers=Workers(0))
    with mock.patch.object(chunks, "KEYS", 4):
        running.batch([[{"t": 1, "k": str(i)} for i in range(12)]])
        running.batch([[{"t": 15, "k": "0"}]])
        written = running.handles[0].map.written
        assert sorted(name for name in written if name.startswith("reported")) == [f"reported {i}" for i in range(3)]
        written.clear()
        found = running.batch([[{"t": 38, "k": "0"}]])
    assert [name for name in written if name.startswith("reported")] == ["reported 0"]
    assert [(r.start, r.values["n"]) for r in found] == [(10, 1)]
    found = running.batch([[{"t": 99, "k": "11"}, {"t": 105, "k": "0"}]])
    assert [(r.key, r.start) for r in found if r.values["n"] == 0] == [
        *[(("0",), start) for start in (20,)],
        *[(("11",), start) for start in range(10, 90, 10)],
    ]


@pytest.fixture(scope="module")
def rows(spark):
    """Rows in bursts, weeks apart, of three keys that have other bursts."""
    n = F.col("id")
    burst = F.pmod(n * 37, F.lit(11)) * (n % 3 + 1)
    at = F.timestamp_micros(F.lit(1_700_000_000_000_000) + burst * 1_000_000_000_000 + n * 7_000_000)
    frame = spark.range(600).select(at.alias("ts"), (n % 3).alias("my key"), (n * 7 % 13).alias("v")).cache()
    yield frame
    frame.unpersist()


@pytest.mark.matrix
def test_empty_windows_are_in_batch_as_in_process_whatever_the_route(rows):
    windows = {
        "tumbling": sw.tumbling("10 minutes"),
        "sliding": sw.sliding("1 hour", every="20 minutes", offset="3 minutes"),
        "hopping": sw.sliding("1 minute", every="1 hour"),
        "cumulative": sw.cumulative("1 day", every="1 hour"),
        "days": sw.tumbling("1 day", zone="Europe/Berlin"),
        "weeks": sw.sliding("10 days", every="1 week", zone="America/New_York"),
    }
    workload = sw.Workload(time="ts", keys=["my key"])
    for name, window in windows.items():
        workload = workload.query(name, window, empty=True, n=sw.count(), total=sw.sum("v"))
        workload = workload.query(f"{name} in rows", window, empty=True, all=sw.collect_list("v"))
    workload = workload.query("with rows", windows["tumbling"], n=sw.count())
    found = on_spark(workload, rows)
    compare(found, in_process(workload, rows), ["my key"])
    assert {row["query"] for row in found.select(["query", "n"]).to_pylist() if row["n"] == 0} == set(windows)
    alone = sw.Workload(time="ts").query("q", windows["tumbling"], empty=True, n=sw.count())
    compare(on_spark(alone, rows), in_process(alone, rows), [])


def test_a_row_behind_more_than_a_million_empty_windows_is_named(spark):
    rows = spark.createDataFrame([(0, "a"), (5, "b"), (1_000_002, "a")], "s bigint, k string")
    rows = rows.select(F.timestamp_seconds("s").alias("ts"), "k")
    workload = sw.Workload("ts", keys=["k"])
    for aggregates in ({"n": sw.count()}, {"l": sw.collect_list("k")}):
        with pytest.raises(PythonException) as caught:
            workload.query("q", sw.tumbling("1 second"), empty=True, **aggregates).run(rows).collect()
        assert (
            "the record of time 1970-01-12 13:46:42+00:00, key k='a': 1000001 empty windows of tumbling('1 second') "
            "would be due because of it, between it and the window that ends at 1970-01-01 00:00:01+00:00, and no "
            "record may bring more than 1000000; filter such records out before run(), or take a longer `every`"
        ) in str(caught.value)


@pytest.mark.streams
@pytest.mark.matrix
def test_a_stream_fills_gaps_across_restarts_and_counts_the_row_behind_too_large_a_one(spark, tmp_path):
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"], lateness="1 minute").query(
        "q", sw.tumbling("10 seconds"), empty=True, n=sw.count()
    )
    oracle = Oracle(workload)

    def step(*rows):
        folder.add(table_of([(*row, 0) for row in rows]))
        run = folder.run(spark, workload)
        oracle.process_batch([(s * SECOND, {}, (k,)) for s, k in rows if s < 1e7])
        latest = max(s for s, _ in rows)
        expected = [
            (*r.key, r.start // SECOND, r.change, r.revision, r.values["n"]) for r in oracle.advance(latest * SECOND)
        ]
        found = [(r["k"], r["start"], r["change"], r["revision"], r["n"]) for r in run.rows()]
        assert sorted(found) == sorted(expected)
        return run.metrics()[-1], found

    step((5, "a"), (5, "b"), (12, "b"))
    step((55, "a"))
    step((25, "a"), (61, "b"))
    _, found = step((120, "a"), (130, "b"))
    assert ("a", 60, "insert", 0, 0) in found
    metrics, _ = step((20_000_000, "a"))
    assert metrics[metric_name(GAP)] == 1
