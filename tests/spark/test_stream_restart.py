"""Streams that stop and start again: queries come and go, other workloads are refused, set-ups that cannot work."""

from __future__ import annotations

import importlib.util

import pytest
from pyspark.errors import StreamingQueryException

import slicewise as sw
from slicewise.errors import DataError, QueryError, SetupError, StateError
from slicewise.spark import session as spark_session
from tests.spark.stream_running import SECOND, Folder, table_of

BASE = sw.Workload("ts", keys=["k"], watermark="1 second", lateness="5 seconds")
TENS = BASE.query("tens", sw.tumbling("10 seconds"), s=sw.sum("v"))
BOTH = TENS.query("pairs", sw.tumbling(sw.rows(2)), s=sw.sum("v"))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def told(run, query):
    return sorted((r["k"], r["start"], r["s"]) for r in run.rows() if r["query"] == query)


@pytest.mark.streams
@pytest.mark.matrix
def test_queries_are_added_and_removed_between_two_runs(spark, folder):
    folder.add(table_of([(1, "a", 1), (5, "b", 2), (12, "a", 4)]))
    run = folder.run(spark, BOTH)
    assert told(run, "tens") == [("a", 0, 1), ("b", 0, 2)]

    # Without the counts, and with a query that can be answered from the slices that are there: it misses nothing.
    added = TENS.query("fives", sw.tumbling("5 seconds"), s=sw.sum("v"))
    folder.add(table_of([(13, "a", 8), (17, "b", 16), (31, "a", 0)]))
    run = folder.run(spark, added)
    assert told(run, "tens") == [("a", 10, 12), ("b", 10, 16)]
    assert sw.inspect(folder.checkpoint, spark).since == {}
    assert told(run, "fives") == [("a", 10, 12), ("b", 15, 16)]
    assert not told(run, "pairs")

    # A count that comes back would give old spans to new results: its old name is refused, under a new one it counts
    # the rows that come after those it missed.
    folder.add(table_of([(32, "a", 32), (33, "a", 64), (34, "a", 128), (60, "b", 0)]))
    with pytest.raises(
        StreamingQueryException, match="query 'pairs' counted rows under this name before, and would now"
    ):
        folder.run(spark, BOTH)
    run = folder.run(spark, TENS.query("twos", sw.tumbling(sw.rows(2)), s=sw.sum("v")))
    assert told(run, "tens") == [("a", 30, 224)]
    assert told(run, "twos") == [("a", 32, 96)]
    inspected = sw.inspect(folder.checkpoint, spark)
    assert inspected.since == {"twos": 31 * SECOND + 1}
    assert "complete since 1970-01-01 00:00:31" in str(inspected)


OTHERS = {
    "another key": (sw.Workload("ts", keys=["v"], lateness="5 seconds"), r"its `keys` is \['k'\], this one's \['v'\]"),
    "no key": (sw.Workload("ts", lateness="5 seconds"), r"its `keys` is \['k'\], this one's \[\]"),
    "another lateness": (sw.Workload("ts", keys=["k"]), "its `lateness` is 5000000, this one's 0"),
}


@pytest.mark.streams
def test_another_workload_is_refused_and_the_right_one_goes_on(spark, folder):
    folder.add(table_of([(1, "a", 1), (12, "b", 2)]))
    assert told(folder.run(spark, TENS), "tens") == [("a", 0, 1)]
    folder.add(table_of([(14, "a", 3), (40, "a", 0)]))
    for base, said in OTHERS.values():
        with pytest.raises(StreamingQueryException, match=f"the (snapshot|checkpoint) belongs to another.*{said}"):
            folder.run(spark, base.query("tens", sw.tumbling("10 seconds"), s=sw.sum("v")))
    with pytest.raises(StreamingQueryException, match=r"it has queries \['tens'\], this one \['x'\], and none is the"):
        folder.run(spark, BASE.query("x", sw.tumbling("1 second"), s=sw.sum("v")))
    with pytest.raises(StreamingQueryException, match="its `emit` is 'complete', this one's 'changes'"):
        folder.run(spark, TENS, emit="changes")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        with pytest.raises(StreamingQueryException, match=r"written with 3 shards, and this run has 5; set spark\.sql"):
            folder.run(spark, TENS)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "3")
    assert told(folder.run(spark, TENS), "tens") == [("a", 10, 3), ("b", 10, 2)]
    inspected = sw.inspect(folder.checkpoint, spark)
    assert (inspected.rows, inspected.results, inspected.watermark) == (4, 3, 39 * SECOND)


# What cannot work


@pytest.mark.streams
def test_a_state_store_that_is_not_rocksdb_is_refused(spark, folder):
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(SetupError, match=r"kept in RocksDB, and this session has HDFSBacked.*spark\.conf\.set\("):
            TENS.run(folder.rows(spark))
    finally:
        spark.conf.set(name, before)


@pytest.mark.streams
@pytest.mark.parametrize(("package", "said"), [("google.protobuf", "protobuf"), ("pandas", "'pandas<3'")])
def test_a_missing_package_is_named(spark, folder, monkeypatch, package, said):
    there = importlib.util.find_spec
    found = lambda name, *more: None if name == package else there(name, *more)  # noqa: E731
    monkeypatch.setattr(spark_session.importlib.util, "find_spec", found)
    with pytest.raises(SetupError, match=f"Spark keeps the state of streams with {said}.*pip install {said}"):
        TENS.run(folder.rows(spark))


@pytest.mark.streams
def test_options_that_make_no_sense_are_refused(spark, folder):
    rows = folder.rows(spark)
    with pytest.raises(
        QueryError, match=r"`emit` must be 'complete', 'changes' or 'differences'; got 'change'; did you mean"
    ):
        TENS.run(rows, emit="change")
    with pytest.raises(QueryError, match="`idle` has an unknown unit 'rows'; got '10 rows'; known: "):
        TENS.run(rows, idle="10 rows")
    integers = sw.Workload("v", keys=["k"]).query("q", sw.tumbling(10), n=sw.count())
    with pytest.raises(QueryError, match="`idle` is a duration on the clock, and event time must be too"):
        integers.run(rows, idle="10 seconds")
    taken = BASE.query("q", sw.tumbling("1 second"), late=sw.count())
    with pytest.raises(DataError, match="with late='collect' the results have a column 'late'; give yours another"):
        taken.run(rows, late="collect")
    with pytest.raises(DataError, match="`latest` needs all rows; write the stream out"):
        sw.latest(TENS.run(rows))


@pytest.mark.streams
def test_what_is_no_checkpoint_is_not_inspected(spark, folder, tmp_path):
    with pytest.raises(StateError, match="nowhere is not the checkpoint of a slicewise stream that has run"):
        sw.inspect(str(tmp_path / "nowhere"), spark)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StateError, match="empty is not the checkpoint of a slicewise stream that has run"):
        sw.inspect(str(tmp_path / "empty"), spark)
