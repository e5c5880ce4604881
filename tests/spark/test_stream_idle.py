"""Streams that fall silent: micro-batches are counted, with and without an end, and over restarts."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import slicewise as sw
from slicewise.spark.streaming.heartbeat import SOURCE, HeartbeatReader, beat_interval
from tests.spark.stream_running import Folder, Run, table_of

TENS = sw.Workload("ts", keys=["k"], watermark="1 second").query("q", sw.tumbling("10 seconds"), total=sw.sum("v"))


@pytest.fixture
def folder(tmp_path):
    """Three files, of which the last moves the watermark behind the windows of the first two."""
    folder = Folder(tmp_path)
    for rows in ([(1, "a", 1)], [(2, "b", 2), (3, "a", 3)], [(19.5, "a", 4)]):
        folder.add(table_of(rows))
    return folder


def seen(rows):
    return sorted((r["k"], r["start"], r["total"]) for r in rows)


# -- the source itself


def test_the_heartbeat_follows_idle_within_limits():
    second = 1_000_000
    lengths = {idle: beat_interval(idle) for idle in (0, second, 30 * second, 240 * second, 10**12)}
    assert lengths == {0: 250, second: 250, 30 * second: 7_500, 240 * second: 60_000, 10**12: 60_000}


def at(beat):
    return {SOURCE: beat}


def test_there_is_one_row_for_all_beats_since_the_last_and_none_without(monkeypatch):
    now = 10_000
    monkeypatch.setattr(time, "time_ns", lambda: now * 1_000_000)
    reader = HeartbeatReader(250)
    start = reader.initialOffset()
    assert start == at(10_000)
    now = 10_249
    assert reader.latestOffset(start, None) == start
    assert reader.partitions(start, start) == []
    now = 11_260
    end = reader.latestOffset(start, None)
    assert end == at(11_250)
    assert [row for p in reader.partitions(start, end) for row in reader.read(p)] == [(11_250,)]
    # A clock that was set back stands still, also where the interval is another after a restart.
    now = 9_000
    assert HeartbeatReader(400).latestOffset(end, None) == end


def test_where_the_stream_ends_the_clock_stands_still(monkeypatch):
    now = 10_000
    monkeypatch.setattr(time, "time_ns", lambda: now * 1_000_000)
    reader = HeartbeatReader(250)
    reader.prepareForTriggerAvailableNow()
    now = 20_000
    assert reader.latestOffset(at(5_000), None) == at(10_000)
    assert reader.latestOffset(at(10_000), None) == at(10_000)


# -- on Spark


@pytest.mark.streams
@pytest.mark.matrix
def test_a_stream_of_what_is_there_ends_and_the_next_one_reports_what_was_silent(spark, folder):
    run = Run(TENS.run(folder.rows(spark), idle="2 seconds"), folder.checkpoint)
    assert run.query.awaitTermination(120)
    assert sorted(run.tables) == [0, 1, 2]
    assert [m["rows"] for m in run.metrics()] == [1, 2, 1]
    assert seen(run.rows()) == [("a", 0, 4), ("b", 0, 2)]
    inspected = sw.inspect(folder.checkpoint, spark)
    assert (inspected.rows, inspected.offsets) == (4, ('{"logOffset":2}',))
    time.sleep(2.5)
    again = folder.run(spark, TENS, idle="2 seconds")
    assert list(again.tables) == [3]
    assert seen(again.rows()) == [("a", 10, 4)]


@pytest.mark.streams
def test_a_stream_that_is_started_again_with_rows_is_not_silent(spark, folder):
    folder.run(spark, TENS, idle="2 seconds")
    time.sleep(2.5)
    for second in (11, 12, 19.8):
        folder.add(table_of([(second, "b", 5)]))
    again = folder.run(spark, TENS, idle="2 seconds")
    assert sorted(again.tables) == [3, 4, 5]
    assert (again.rows(), [m["late"] for m in again.metrics()]) == ([], [0, 0, 0])


@pytest.mark.streams
def test_a_stream_without_an_interval_does_not_spin(spark, folder):
    started = time.monotonic()
    run = Run(TENS.run(folder.rows(spark), idle="4 seconds"), folder.checkpoint, processingTime="0 seconds")
    found = run.until(lambda rows: len(rows) >= 3)
    seconds = time.monotonic() - started
    assert seen(found) == [("a", 0, 4), ("a", 10, 4), ("b", 0, 2)]
    # Three with rows, then one for each beat, a second long.
    assert 3 < len(run.tables) <= 3 + 1 + seconds


@pytest.mark.streams
def test_nothing_runs_between_two_beats(spark, folder):
    run = Run(TENS.run(folder.rows(spark), idle="1 hour"), folder.checkpoint, processingTime="0 seconds")
    run.until(lambda rows: len(rows) >= 2 and not time.sleep(5))
    assert 3 <= len(run.tables) <= 4


@pytest.mark.streams
def test_a_micro_batch_that_is_repeated_finds_the_same_silence(spark, folder):
    def start():
        return Run(TENS.run(folder.rows(spark), idle="2 seconds"), folder.checkpoint, processingTime="0 seconds")

    once = start()
    once.until(lambda rows: len(rows) >= 3)
    last = max(batch for batch, table in once.tables.items() if table.num_rows)
    assert last > 2
    crash_before_commit(Path(folder.checkpoint), last)
    again = start()
    again.until(lambda rows: max(again.tables, default=0) > last + 1)
    assert min(again.tables) == last
    assert again.tables[last].equals(once.tables[last])
    assert watermarks(again)[last] == watermarks(once)[last]
    assert [batch for batch, table in again.tables.items() if table.num_rows] == [last]


def crash_before_commit(checkpoint, batch):
    """Leave a checkpoint as if the machine had gone down when this micro-batch was about to be committed."""
    for log, first in (("offsets", batch + 1), ("commits", batch)):
        for path in (checkpoint / log).iterdir():
            if int(re.search(r"[0-9]+", path.name).group()) >= first:
                path.unlink()


def watermarks(run):
    return {
        progress["batchId"]: row["watermark"]
        for progress in run.query.recentProgress
        for row in progress["observedMetrics"].values()
    }


# -- switched on and off


@pytest.mark.streams
@pytest.mark.parametrize(("before", "after"), [({}, {"idle": "2 seconds"}), ({"idle": "2 seconds"}, {})])
def test_spark_refuses_a_checkpoint_from_before_the_switch_and_the_old_query_goes_on(spark, folder, before, after):
    """What docs/cluster.md quotes: from Python, Spark counts the sources before slicewise is asked."""
    folder.run(spark, TENS, **before)
    was, now = (2 if options else 1 for options in (before, after))
    message = f"There are [{was}] sources in the checkpoint offsets and now there are [{now}] sources requested"
    with pytest.raises(StreamingQueryException, match=re.escape(message)):
        folder.run(spark, TENS, **after)
    folder.add(table_of([(40, "a", 5)]))
    assert seen(folder.run(spark, TENS, **before).rows()) == [("a", 10, 4)]
