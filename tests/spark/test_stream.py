"""Streams on Spark: the same answers as batch, as the operator, as the oracle, and as Spark's own windows."""

from __future__ import annotations

import datetime as dt
import random
import re
import socket
import threading
import time as wall
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.bad_rows import AHEAD, BAD, GAP, LATE, NO_TIME, metric_name
from slicewise.same import is_same
from slicewise.spark.streaming.shard_reports import SHARD_METRICS
from slicewise.testing import Oracle, fold
from tests.slicing.strategies import SessionByEdges
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_running import SCHEMA, SECOND, Folder, Run, plain, table_of

FAR = 600  # seconds; all other rows come long before
WAIT = 2


class Visits(SessionByEdges):
    """Sessions of 400 ms, by edges that user code places."""

    gap = 400_000


class BeforeThrees:
    """The second before each 3."""

    def notify_context(self, time, row, edges):
        if row["v"] == 3:
            edges.add_start(time - SECOND)
            edges.add_end(time)


MIXED = (
    sw.Workload(time="ts", keys=["k"], watermark="2 seconds", lateness="1 minute")
    .query("tumbling", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
    .query("sliding", sw.sliding("10 seconds", every="3 seconds"), mean=sw.avg("v"), first=sw.first("v"))
    .query("visit", sw.session("400 milliseconds"), n=sw.count(), all=sw.collect_list("v"))
    .query("growing", sw.cumulative("20 seconds", every="5 seconds"), most=sw.max("v"))
    .query("landmark", sw.landmark(every="20 seconds", since="1970-01-01 00:00:10"), n=sw.count())
    .query("rows", sw.sliding(sw.rows(20), every=sw.rows(7)), mid=sw.median("v"))
    .query("last ten", sw.sliding(sw.rows(10), every="5 seconds"), total=sw.sum("v"))
    .query("punctuated", sw.punctuated("v = 3"), n=sw.count())
    .query("frames", sw.frames("v > 2", min_rows=2), n=sw.count())
    .query("visit by edges", sw.user_defined(Visits), total=sw.sum("v"))
    .query("before threes", sw.user_defined(BeforeThrees, columns=["v"]), seen=sw.collect_list("v"))
)


def disordered_batches(seed: int, within: float, count: int = 4, rows: int = 600) -> list[pa.Table]:
    """Rows of three keys, one of them null; no two at the same time, each at most ``within`` seconds late."""
    rng = random.Random(seed)
    times = [n * 0.05 + rng.random() * 0.04 + (5 if n > rows // 2 else 0) for n in range(rows)]
    arrival = sorted(range(rows), key=lambda n: times[n] + rng.random() * within)
    made = [(times[n], rng.choice(["a", "b", None]), rng.choice([None, 0, 1, 3, 4, 5])) for n in arrival]
    size = -(-rows // count)
    batches = [table_of(made[at : at + size]) for at in range(0, rows, size)]
    return [*batches, table_of([(FAR + i, k, None) for i, k in enumerate(["a", "b", None])])]


def finished(table: pa.Table) -> pa.Table:
    """The windows that the far row has brought to their end, without marks."""
    end = pc.struct_field(table.column("window"), "end").cast(pa.int64())
    kept = table.filter(pc.fill_null(pc.less(end, (FAR - WAIT) * SECOND), False))
    return kept.drop_columns([n for n in ("change", "revision", "batch") if n in kept.column_names])


@pytest.fixture(scope="module")
def mixed(spark):
    """A stream out of order by more than it waits for, so that results are corrected: rows, and what it reported."""
    batches = [spark.createDataFrame(t, SCHEMA) for t in disordered_batches(1, within=6)]
    reported = sw.testing.stream(batches, MIXED, folded=False, partitions=2).cache()
    rows = batches[0]
    for more in batches[1:]:
        rows = rows.union(more)
    return batches, rows, reported


@pytest.mark.matrix
def test_what_is_finally_true_is_what_batch_and_operator_say(mixed):
    _, rows, reported = mixed
    true = finished(sw.latest(reported.drop("batch")).toArrow())
    assert true.num_rows > 500
    assert reported.where("change <> 'insert'").count() > 30
    compare(true, finished(on_spark(MIXED, rows)), ["k"])
    compare(true, finished(in_process(MIXED, rows)), ["k"])


@pytest.mark.matrix
def test_every_micro_batch_reports_what_operator_and_oracle_report(mixed):
    batches, _, reported = mixed
    op, oracle = MIXED.operator(types={"k": "string", "v": "bigint"}), Oracle(MIXED)
    latest = None
    by_batch: dict[int, list] = {}
    for row in plain(reported.toArrow()):
        by_batch.setdefault(row["batch"], []).append(row)
    folded, defined = [], []
    for number, batch in enumerate(batches):
        table = batch.toArrow()
        op.process_batch(table)
        times = table.column("ts").cast(pa.int64()).to_pylist()
        for time, row in zip(times, table.to_pylist(), strict=True):
            oracle.process(time, row, (row["k"],))
        latest = max(times) if latest is None else max(latest, *times)
        results = op.advance(latest - WAIT * SECOND)
        defined += oracle.advance(latest - WAIT * SECOND)
        folded += results
        expected = plain(results.to_arrow())
        mine, theirs = (sorted(map(_marked, rows)) for rows in (by_batch.get(number, []), expected))
        assert mine == theirs, f"micro-batch {number}"
    true, by_definition = fold(folded), fold(defined)
    assert true.keys() == by_definition.keys()
    assert all(is_same(true[at], by_definition[at]) for at in true)


def _marked(row):
    values = {n: round(v, 9) if isinstance(v, float) else v for n, v in sorted(row.items()) if n != "batch"}
    return repr(values)


# Beside Spark's own


@pytest.mark.matrix
def test_finished_windows_equal_those_of_sparks_own_aggregation(spark, tmp_path):
    folder = Folder(tmp_path)
    for table in disordered_batches(2, within=1.5):
        folder.add(table)
    windows = {
        "tumbling": (sw.tumbling("1 second"), F.window("ts", "1 second")),
        "sliding": (sw.sliding("10 seconds", every="3 seconds"), F.window("ts", "10 seconds", "3 seconds")),
        "session": (sw.session("400 milliseconds"), F.session_window("ts", "400 milliseconds")),
    }
    workload = sw.Workload("ts", keys=["k"], watermark="2 seconds")
    for name, (ours, _) in windows.items():
        workload = workload.query(name, ours, n=sw.count(), total=sw.sum("v"), mean=sw.avg("v"))
    ours = folder.run(spark, workload).rows()
    assert {row["change"] for row in ours} == {"insert"}
    for name, (_, window) in windows.items():
        rows = folder.rows(spark).withWatermark("ts", "2 seconds")
        grouped = rows.groupBy("k", window.alias("window"))
        grouped = grouped.agg(F.count("*").alias("n"), F.sum("v").alias("total"), F.avg("v").alias("mean"))
        run = Run(grouped, str(tmp_path / name))
        run.query.awaitTermination()
        mine, theirs = (_by_window(r) for r in ([r for r in ours if r["query"] == name], run.rows()))
        assert len(theirs) > 30
        assert mine == theirs


def _by_window(rows):
    kept = [r for r in rows if r["end"] < FAR - WAIT]
    found = {(r["k"], r["start"], r["end"]): (r["n"], r["total"], r["mean"] and round(r["mean"], 9)) for r in kept}
    assert len(found) == len(kept)
    return found


# Sources, triggers, what users do before and after


def test_a_rate_source_with_a_clocked_trigger_and_filters_before_and_after(spark):
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    rows = rows.where("value % 2 = 0").select(F.col("timestamp").alias("my ts"), (F.col("value") % 6).alias("a.b"))
    workload = sw.Workload("my ts", keys=["a.b"]).query("q", sw.tumbling("1 second"), n=sw.count())
    results = workload.run(rows).where("n > 3").select("`a.b`", "window", (F.col("n") * 2).alias("twice"))
    run = Run(results, None, processingTime="500 milliseconds")
    found = run.until(lambda rows: len({r["start"] for r in rows}) >= 4)
    assert {r["a.b"] for r in found} == {0, 2, 4}
    starts = sorted({r["start"] for r in found})
    for start in starts[1:-1]:
        assert sum(r["twice"] for r in found if r["start"] == start) == 100


def test_a_socket_source(spark):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        lines = "".join(f"{1000 * n},{'ab'[n % 2]},{n}\n" for n in range(40)).encode()
        done = threading.Event()

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.sendall(lines)
                done.wait(180)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        said = F.split("value", ",")
        rows = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
        rows = rows.select(said[0].cast("long").alias("t"), said[1].alias("k"), said[2].cast("int").alias("v"))
        workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10_000), total=sw.sum("v"))
        run = Run(workload.run(rows), None, processingTime="0 seconds")
        found = run.until(lambda rows: len(rows) >= 6)
        done.set()
    totals = {(r["k"], round(r["start"] * SECOND)): r["total"] for r in found}
    assert totals["a", 0] == sum(range(0, 10, 2))
    assert totals["b", 20_000] == sum(range(21, 30, 2))


@pytest.mark.streams
def test_last_windows_come_out_when_nothing_comes_any_more(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(table_of([(1, "a", 1), (2, "b", 2), (12, "a", 3)]))
    workload = sw.Workload("ts", keys=["k"], watermark="1 second").query(
        "q", sw.tumbling("10 seconds"), total=sw.sum("v")
    )
    run = Run(workload.run(folder.rows(spark), idle="2 seconds"), folder.checkpoint, processingTime="200 milliseconds")
    found = run.until(lambda rows: len(rows) >= 3)
    assert sorted((r["k"], r["start"], r["total"]) for r in found) == [("a", 0, 1), ("a", 10, 3), ("b", 0, 2)]


@pytest.mark.matrix
def test_changes_are_reported_as_they_come(spark, tmp_path):
    folder = Folder(tmp_path)
    for n in range(3):
        folder.add(table_of([(n, "a", 1)]))
    workload = sw.Workload("ts", keys=["k"], watermark="1 second").query("q", sw.tumbling("1 hour"), n=sw.count())
    found = folder.run(spark, workload, emit="changes").rows()
    assert [(r["change"], r["revision"], r["n"]) for r in found] == [
        ("insert", 0, 1),
        ("update", 1, 2),
        ("update", 2, 3),
    ]


# Many keys, bad rows, progress


def test_a_hundred_thousand_keys_in_one_micro_batch(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(table_of([(1 + n % 3, f"key {n}", n) for n in range(100_000)]))
    folder.add(table_of([(60, "key 0", 0)]))
    workload = sw.Workload("ts", keys=["k"], watermark="1 second").query("q", sw.tumbling("10 seconds"), v=sw.sum("v"))
    run = folder.run(spark, workload)
    found = run.rows()
    assert len(found) == 100_000
    assert all(r["k"] == f"key {r['v']}" for r in found)
    assert run.metrics()[0]["keys"] == 100_000


INTEGERS = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), n=sw.count())
POISON = pa.table({"t": pa.array([1, None, 2**62, 3, -(2**63), 25]), "k": list("aabbca"), "v": range(6)})


@pytest.mark.streams
def test_rows_without_a_usable_event_time_are_counted_collected_or_fail(spark, tmp_path):
    schema = "t bigint, k string, v bigint"
    for name, options in {"counted": {}, "collected": {"late": "collect"}, "failed": {"bad": "fail"}}.items():
        (tmp_path / name).mkdir()
        folder = Folder(tmp_path / name)
        folder.add(POISON)
        if name == "failed":
            with pytest.raises(Exception, match=r"no event time that a window could hold, and bad='fail': .*'v': 1"):
                folder.run(spark, INTEGERS, schema, **options)
            continue
        run = folder.run(spark, INTEGERS, schema, **options)
        assert [m["bad"] for m in run.metrics()] == [m["bad_no_event_time"] for m in run.metrics()] == [3]
        assert [m["watermark"] for m in run.metrics()] == [25]
        given_back = [r["late"] for r in run.rows() if r["change"] == "late"]
        assert sorted(r["v"] for r in given_back) == ([] if name == "counted" else [1, 2, 4])
        assert {(r["k"], r["n"]) for r in run.rows() if r["change"] == "insert"} == {("a", 1), ("b", 1)}
        assert all(r["query"] is None and r["start"] is None for r in run.rows() if r["change"] == "late")
        if name == "collected":
            assert {(r["change"], r["reason"]) for r in run.rows()} == {("late", NO_TIME), ("insert", None)}


def instant(seconds):
    """How Spark shows an instant, in the zone of this machine."""
    return dt.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.matrix
def test_progress_and_inspection_tell_how_the_stream_stands(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(table_of([(1, "a", 1), (2, "b", 2), (12, "a", 3), (None, "a", 0)]))
    folder.add(table_of([(30, "c", 1), (3, "a", 9), (31, None, 1)]))
    workload = sw.Workload("ts", keys=["k"], watermark="1 second").query("q", sw.tumbling("10 seconds"), s=sw.sum("v"))
    run = folder.run(spark, workload)
    first, second = run.metrics()
    kinds = dict.fromkeys(map(metric_name, BAD), 0)
    assert first.keys() == second.keys() == {field.name for field in SHARD_METRICS}
    came = {"rows": 3, "late": 0, "bad": 1, "failed": 0, "overfull": 0, "keys": 2, "slices": 1, "tuples": 0, "lifts": 3}
    came |= {"watermark": instant(11), "watermark_lag_ms": 1000, **kinds, "bad_no_event_time": 1}
    assert {name: first[name] for name in came} == came
    # The row at 3 came when the watermark stood at 11, behind the end of its only window.
    came = {"rows": 3, "late": 1, "bad": 0, "failed": 0, "overfull": 0, "keys": 4, "slices": 2, "tuples": 0}
    came |= {"watermark": instant(30), "watermark_lag_ms": 1000, **kinds}
    assert {name: second[name] for name in came} == came
    assert second["lifts"] > first["lifts"]
    assert second["state_bytes"] > 0
    told = sw.inspect(folder.checkpoint, spark)
    assert (told.shards, told.keys, told.slices, told.tuples) == (3, 4, 2, 0)
    assert (told.rows, told.results, told.late, told.watermark) == (6, 3, 1, 30 * SECOND)
    assert told.results == len(run.rows())
    assert told.bad == {NO_TIME: 1}
    assert told.bytes > 500
    assert told.queries == {"q": "q: tumbling('10 seconds') -> s=sum('v')"}
    assert told.since == {}
    said = str(told)
    for words in (
        "3 shards, 4 keys, 2 slices, 0 stored rows",
        "6 rows in (1 late), 3 results out",
        "bad rows: 1 no event time",
    ):
        assert words in said
    assert "watermark 1970-01-01 00:00:30" in said


@pytest.mark.streams
def test_rows_too_far_ahead_are_judged_by_the_micro_batchs_own_time_also_when_it_is_repeated(spark, tmp_path):
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("1 second"), n=sw.count())
    options = {"ahead": "6 minutes", "late": "collect"}
    now = wall.time()
    folder.add(table_of([(now - 9000, "a", 0), (now - 100, "b", 1), (now + 3600, "a", 2)]))

    def fail(frame, batch):
        frame.count()
        raise RuntimeError("the sink is down")

    writer = workload.run(folder.rows(spark), **options).writeStream.foreachBatch(fail)
    query = writer.trigger(availableNow=True).option("checkpointLocation", folder.checkpoint).start()
    with pytest.raises(Exception, match="the sink is down"):
        query.awaitTermination()
    # As if that had been two hours ago: the row of the past minutes is too far ahead of the micro-batch's own time.
    set_back_the_first_micro_batch(folder, hours=2)
    folder.add(table_of([(now - 50, "a", 3), (now - 100, "b", 4)]))
    run = folder.run(spark, workload, **options)
    assert sorted(r["late"]["v"] for r in plain(run.tables[0]) if r["reason"] == AHEAD) == [1, 2]
    assert [m["bad_too_far_ahead"] for m in run.metrics()] == [2, 0]
    given_back = [(r["late"]["v"], r["reason"]) for r in run.rows() if r["change"] == "late"]
    assert sorted(given_back) == [(1, AHEAD), (2, AHEAD)]
    assert sw.inspect(folder.checkpoint, spark).bad == {AHEAD: 2}


def set_back_the_first_micro_batch(folder, hours):
    """Let the log of a stream say that its first micro-batch was planned earlier."""
    offsets = Path(folder.checkpoint) / "offsets"
    text = (offsets / "0").read_text()
    earlier = re.sub(r'(?<="batchTimestampMs":)\d+', lambda ms: str(int(ms[0]) - hours * 3_600_000), text)
    assert earlier != text
    (offsets / "0").write_text(earlier)
    (offsets / ".0.crc").unlink()


@pytest.mark.streams
def test_a_row_ten_years_ahead_does_not_stop_a_stream_of_ticks(spark, tmp_path):
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"], lateness="1 minute").query(
        "q", sw.sliding(sw.rows(2), every="1 second"), s=sw.sum("v")
    )
    folder.add(table_of([(0, "a", 1), (0, "b", 1)]))
    folder.add(table_of([(10 * 365 * 86_400, "a", 2), (3, "b", 2)]))
    folder.add(table_of([(10, "a", 3), (10 * 365 * 86_400, "c", 3)]))
    run = folder.run(spark, workload, late="collect")
    assert [m["bad_gap"] for m in run.metrics()] == [0, 1, 0]
    assert [(r["late"]["v"], r["reason"]) for r in run.rows() if r["change"] == "late"] == [(2, GAP), (3, LATE)]
    # It has moved the watermark: the next row of its key is late.
    assert sorted(r["end"] for r in run.rows() if r["k"] == "b") == [1, 2, 3, 4]
    assert sw.inspect(folder.checkpoint, spark).bad == {GAP: 1}
    with pytest.raises(Exception, match=r"315360000 ticks of .* the record was left out\..*; and bad='fail': \{'ts'"):
        Run(workload.run(folder.rows(spark), bad="fail"), str(tmp_path / "other")).query.awaitTermination()


def test_without_keys_there_is_one_key(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(table_of([(1, "a", 1), (12, "b", 2)]))
    workload = sw.Workload("ts").query("q", sw.tumbling("10 seconds"), s=sw.sum("v"))
    run = folder.run(spark, workload, emit="changes")
    assert [m["keys"] for m in run.metrics()] == [1]
    assert sw.inspect(folder.checkpoint, spark).watermark == 12 * SECOND
    assert sorted(r["s"] for r in run.rows()) == [1, 2]
