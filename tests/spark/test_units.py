"""Integer time under lengths in time, on Spark: batches and streams beside the operator and beside timestamps."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.amounts import UNITS
from slicewise.errors import DataError, QueryError
from slicewise.plan.plan import VALUES
from slicewise.slicing.operator import Operator
from slicewise.testing import Oracle
from slicewise.times import largest_time
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same
from tests.slicing.strategies import mixed_workloads, workloads
from tests.slicing.test_units import far_times, far_workloads, without_times
from tests.slicing.unit_time import TICKS, in_durations, in_integers
from tests.spark.running import compare, in_process, on_spark, rows_of
from tests.spark.stream_fake import FakeStream, Reference, Workers
from tests.spark.stream_running import Folder
from tests.spark.stream_strategies import micro_batches, says_how_long

some = fewer(6, least=5)


# -- streams, without a JVM


def waiting_workloads() -> st.SearchStrategy[sw.Workload]:
    both = st.one_of(workloads(without_times), mixed_workloads())
    return st.builds(lambda w, wait: w.with_delays(wait, w.lateness), both, st.sampled_from([0, 0, 5, 20]))


def in_column(batches, unit: str, data: st.DataObject):
    """Micro-batches of ticks in the unit of a column, between the ticks where the unit is finer."""
    size, _, _ = TICKS[unit]

    def at(tick):
        return None if tick is None else tick * size + (data.draw(st.integers(0, size - 1)) if size > 1 else 0)

    return [[[{**row, "t": at(row["t"])} for row in part] for part in batch] for batch in batches]


def shown(results, workload: sw.Workload, unit: str | None):
    """Results as a table on Spark has them: event times as microseconds, nanoseconds cut off."""
    # Ticks are reported in what they are counted in, other windows in their own measure.
    measures = {
        q.name: getattr(getattr(q.window, "every", None), "measure", q.window.measure) for q in workload.queries
    }
    by_position = {name for name, measure in measures.items() if not measure.is_event_time}

    def micros(t):
        return t if t is None or unit is None else t * 10**6 // UNITS[unit]

    return [
        [r if r.query in by_position else r._replace(start=micros(r.start), end=micros(r.end)) for r in batch]
        for batch in results
    ]


@some
@given(waiting_workloads(), micro_batches(bad=True), st.sampled_from(sorted(UNITS)), st.data(), st.integers(0, 1))
def test_every_micro_batch_gives_the_results_of_the_definition(ticks, batches, unit, data, workers):
    batches, workload = in_column(batches, unit, data), in_durations(ticks, unit)
    stream, oracle = FakeStream(workload, workers=Workers(workers)), Oracle(in_integers(ticks, unit), ties=VALUES)
    found = [stream.batch(batch) for batch in batches]
    by_definition = Reference(oracle, in_integers(ticks, unit))
    assert_same(found, shown([by_definition.batch(batch) for batch in batches], workload, unit))
    assert sum(r.late for r in stream.metrics) == len(oracle.late())
    in_process = Reference(Operator(workload, types=TYPES, ties=VALUES), workload)
    assert_same(found, shown([in_process.batch(batch) for batch in batches], workload, unit))


@some
@given(waiting_workloads().filter(says_how_long), micro_batches(), st.sampled_from(sorted(UNITS)), st.data())
def test_with_changes_and_restarts_too(ticks, batches, unit, data):
    batches, workload = in_column(batches, unit, data), in_durations(ticks, unit)
    stream = FakeStream(workload, emit="changes", late="collect")
    reference = Reference(Oracle(stream.job.engine_workload, ties=VALUES), workload, stream.job.ahead)
    found = []
    for batch in batches:
        if data.draw(st.booleans()):
            stream = stream.again(emit="changes", late="collect")
        found.append(stream.batch(batch))
    assert_same(found, shown([reference.batch(batch) for batch in batches], workload, unit))


@pytest.mark.slow
@some
@given(
    far_workloads(),
    st.sampled_from([0, 5, 2**60, 2**62, 2**63 - 1]),
    st.sampled_from(["complete", "changes"]),
    st.data(),
)
def test_the_ends_of_time_do_not_stop_a_stream(workload, wait, emit, data):
    workload = workload.with_delays(wait, workload.lateness)
    row = st.builds(lambda t: {**dict.fromkeys(TYPES), "t": t, "v": t % 7}, far_times(workload.unit))
    batches = data.draw(st.lists(st.lists(st.lists(row, max_size=4), max_size=2), max_size=4))
    stream = FakeStream(workload, emit=emit)
    oracle, latest = Oracle(stream.job.engine_workload, ties=VALUES), None
    for batch in batches:
        found = stream.batch(batch)
        for part in batch:
            for row in part:
                oracle.process(row["t"], row)
                latest = row["t"] if latest is None else max(latest, row["t"])
        if latest is not None:
            expected = oracle.advance(stream.job.watermark(latest))
            assert_same([found], shown([expected], workload, workload.unit))


def test_a_lag_beyond_64_bits_of_milliseconds_is_bounded():
    workload = sw.Workload("t", unit="seconds", watermark=2**60).query(
        "q", sw.tumbling("10 seconds"), n=sw.count(), all=sw.collect_list("v")
    )
    stream = FakeStream(workload, emit="changes")
    stream.batch([[{**dict.fromkeys(TYPES), "t": 9843, "v": 1}]])
    assert {report.watermark_lag_ms for report in stream.metrics} - {None} == {2**62}


@pytest.mark.parametrize("unit", UNITS)
def test_a_silent_stream_follows_the_clock_in_its_own_unit(unit):
    second = UNITS[unit]
    workload = sw.Workload("t", unit=unit, keys=["k"], watermark="5 seconds").query(
        "q", sw.tumbling("10 seconds"), n=sw.count()
    )
    stream = FakeStream(workload, types={"k": pa.string()}, idle="30 seconds")
    assert stream.batch([[{"t": t * second, "k": "a"} for t in (1, 12)]]) == []
    assert stream.tick(29_999) == []
    found = stream.tick(1)
    assert [(r.start, r.end) for r in found] == [(0, 10**7), (10**7, 2 * 10**7)]
    # 12 s was the latest event time when 30 s of silence began: the watermark is at 12 + 30 - 5.
    assert {report.watermark for report in stream.metrics[-1:]} == {37 * second}


# -- batches

#: Every route: sliced in the JVM, numbered there, rows in Python. Lengths are whole seconds, for the coarsest unit.
WINDOWS = {
    "tens": sw.tumbling("10 seconds", offset="3 seconds"),
    "slide": sw.sliding("25 seconds", every="10 seconds"),
    "grown": sw.cumulative("1 minute", every="20 seconds"),
    "ever": sw.landmark(every="30 seconds", since="2024-03-01"),
    "once": sw.between("2024-03-01 00:00:10", "2024-03-01 00:02:00"),
    "visit": sw.session("2 seconds"),
    "counted": sw.sliding(sw.rows(20), every=sw.rows(10)),
    "marked": sw.punctuated("v = 3"),
    "runs": sw.frames("v > 2"),
    "last": sw.sliding(sw.rows(3), every="10 seconds"),
    "recent": sw.sliding("10 seconds", every=sw.rows(4)),
}
START = 1_709_251_200  # 2024-03-01


def workload_of(unit: str | None, names) -> sw.Workload:
    found = sw.Workload("at", keys=["k"], order=["u"], unit=unit)
    for name in names:
        found = found.query(name, WINDOWS[name], n=sw.count(), s=sw.sum("v"), listed=sw.collect_list("u"))
    return found


@pytest.fixture(scope="module")
def seconds(spark):
    """Rows of whole seconds, some before the first, all at times of their own within a key."""
    rng = np.random.default_rng(7)
    at = np.sort(rng.choice(np.arange(-60, 240), 200, replace=False)) + START
    table = pa.table(
        {"sec": at, "k": [f"k{i % 3}" for i in range(200)], "v": rng.integers(0, 6, 200), "u": np.arange(200)}
    )
    return spark.createDataFrame(table).repartition(3).cache()


@pytest.mark.parametrize("unit", UNITS)
def test_a_batch_gives_the_windows_of_the_same_rows_as_timestamps(seconds, unit):
    frame = seconds.withColumn("at", F.col("sec") * F.lit(UNITS[unit]))
    stamps = seconds.withColumn("at", F.expr("timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, sec)"))
    workload = workload_of(unit, WINDOWS)
    found = on_spark(workload, frame)
    compare(found, on_spark(workload_of(None, WINDOWS), stamps), ["k"])
    compare(found, in_process(workload, frame), ["k"])
    assert found.schema == on_spark(workload_of(None, WINDOWS), stamps).schema


@pytest.mark.parametrize("unit", UNITS)
def test_one_tumbling_window_is_shown_as_timestamps_by_the_jvm(seconds, unit):
    frame = seconds.withColumn("at", F.col("sec") * F.lit(UNITS[unit]))
    workload = sw.Workload("at", unit=unit).query("q", WINDOWS["tens"], n=sw.count())
    compare(on_spark(workload, frame), in_process(workload, frame), [])


def test_nanoseconds_decide_and_are_cut_off_when_they_are_shown(spark):
    """Rows less than a microsecond apart, also before 1970; the bounds of their windows are floored."""
    times = [-1500, -1, 0, 1, 999, 1000, 1_000_999, 1_001_000, 3_002_001]
    table = pa.table(
        {"at": pa.array(times, pa.int64()), "k": ["a"] * 9, "v": [3, 1, 5, 4, 0, 3, 5, 5, 1], "u": range(9)}
    )
    workload = (
        sw.Workload("at", unit="nanoseconds", order=["u"])
        .query("visit", sw.session("1 millisecond"), listed=sw.collect_list("u"))
        .query("tens", sw.tumbling("1 microsecond"), listed=sw.collect_list("u"))
        .query("one", sw.landmark(every="1 us", since=-1), listed=sw.collect_list("u"))
        .query("marked", sw.punctuated("v = 3"), listed=sw.collect_list("u"))
        .query("sums", sw.session("1 millisecond"), n=sw.count())
    )
    frame = spark.createDataFrame(table).repartition(2)
    found = on_spark(workload, frame)
    op = workload.operator()
    op.process_batch(table)
    results = list(op.close())
    visits = [(r.start, r.end, r.values["listed"]) for r in results if r.query == "visit"]
    # 1 000 999 is one gap after 999 and joins it; 1 001 000 is one after 1000.
    assert visits == [(-1500, 2_001_000, list(range(8))), (3_002_001, 4_002_001, [8])]
    shown_on_spark = [(row["query"], *row["window"].values(), row["listed"], row["n"]) for row in rows_of(found)]
    floored = [
        (r.query, r.start // 1000, None if r.end is None else r.end // 1000, r.values.get("listed"), r.values.get("n"))
        for r in results
    ]
    assert sorted(map(repr, shown_on_spark)) == sorted(map(repr, floored))
    assert ("visit", -2, 2001, list(range(8)), None) in shown_on_spark


# -- what is refused, and what is bad

KNOWN = "'seconds', 'milliseconds', 'microseconds', 'nanoseconds'"


def hourly(unit: str | None, **how) -> sw.Workload:
    return sw.Workload("at", unit=unit, **how).query("q", sw.tumbling("1 hour"), n=sw.count())


def refuses(error, message: str):
    """Expect an error whose whole message this is."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("type_", ["tinyint", "smallint", "int", "bigint"])
def test_integers_under_durations_need_their_unit(spark, tmp_path, type_, streaming):
    frame = spark.createDataFrame([(1,)], f"at {type_}")
    if streaming:
        frame = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    message = (
        f"the time column 'at' holds {type_}, but the windows are given as durations; say what its integers count: "
    )
    with refuses(DataError, message + f"Workload(time='at', unit=...) with one of {KNOWN}"):
        hourly(None).run(frame)
    assert hourly("seconds").run(frame).schema["window"].dataType.simpleString() == (
        "struct<start:timestamp_ntz,end:timestamp_ntz>"
    )


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz", "date"])
def test_a_unit_is_for_integers(spark, tmp_path, type_, streaming):
    frame = spark.sql(f"select cast(null as {type_}) as at")
    if streaming:
        frame = spark.readStream.schema(frame.schema).parquet(str(tmp_path))
    message = f"the time column 'at' holds {type_}, and `unit` says what integers count; got unit='seconds'; "
    with refuses(DataError, message + "leave it out for timestamps, or cast the column"):
        hourly("seconds").run(frame)


def test_windows_that_only_count_rows_show_the_columns_own_integers(spark):
    frame = spark.createDataFrame([(1_700_000_000, 1), (1_700_000_060, 2)], "at bigint, v bigint")
    for window in (sw.tumbling(sw.rows(2)), sw.sliding(sw.rows(20), every=sw.rows(10)), sw.frames("v > 0")):
        workload = sw.Workload("at").query("q", window, n=sw.count())
        found = workload.run(frame)
        assert found.schema["window"].dataType.simpleString() == "struct<start:bigint,end:bigint>"
        compare(found.toArrow(), in_process(workload, frame), [])
    timed = sw.Workload("at", unit="seconds").query("q", sw.tumbling(sw.rows(2)), n=sw.count())
    (row,) = rows_of(timed.run(frame).toArrow())
    assert row["window"] == {"start": 1_700_000_000_000_000, "end": 1_700_000_060_000_000}


def test_a_clock_needs_a_unit(spark, tmp_path):
    frame = spark.readStream.schema("at bigint").parquet(str(tmp_path))
    message = "`idle` is a duration on the clock, and event time must be too; got '10 seconds'"
    with refuses(QueryError, message):
        sw.Workload("at").query("q", sw.tumbling(sw.rows(2)), n=sw.count()).run(frame, idle="10 seconds")
    sw.Workload("at", unit="seconds").query("q", sw.tumbling(sw.rows(2)), n=sw.count()).run(frame, idle="10 seconds")


@pytest.mark.parametrize("unit", UNITS)
def test_the_first_and_the_last_event_times_have_their_windows_and_others_are_bad(spark, unit):
    latest = largest_time(unit)
    times = [-latest, latest, 0, latest + 1, -latest - 1, 2**63 - 1, -(2**63), None]
    frame = spark.createDataFrame([(t,) for t in times], "at bigint").repartition(2)
    workload = hourly(unit).query("visit", sw.session("1 second"), n=sw.count())
    good = frame.where(F.col("at").between(-latest, latest))
    for one in (workload, workload.without("visit"), workload.without("q")):
        found = one.run(frame, late="collect").toArrow()
        late = [row["late"]["at"] for row in found.select(["change", "late"]).to_pylist() if row["change"] == "late"]
        assert sorted(late, key=str) == sorted(times[3:], key=str)
        compare(one.run(frame).toArrow(), in_process(one, good), [])


# -- streams

SCHEMA = "ts bigint, k string, v bigint"


def epoch_rows(unit: str, rows) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array([None if s is None else (START + s) * UNITS[unit] for s, _, _ in rows], pa.int64()),
            "k": pa.array([k for _, k, _ in rows]),
            "v": pa.array([v for _, _, v in rows], pa.int64()),
        }
    )


def streamed(unit: str | None, **how) -> sw.Workload:
    return sw.Workload("ts", unit=unit, keys=["k"], watermark="2 seconds", lateness="20 seconds", **how).query(
        "tens", sw.tumbling("10 seconds"), s=sw.sum("v")
    )


@pytest.mark.streams
@pytest.mark.parametrize("unit", ["seconds", "nanoseconds"])
def test_a_stream_shows_timestamps_in_results_metrics_and_inspection(spark, tmp_path, unit):
    folder = Folder(tmp_path)
    folder.add(epoch_rows(unit, [(1, "a", 1), (4, "a", 2), (13, "a", 4)]))
    folder.add(epoch_rows(unit, [(3, "a", 8), (None, "b", 0), (34, "b", 16)]))
    folder.add(epoch_rows(unit, [(2, "a", 32)]))
    visits = streamed(unit).query("visit", sw.session("5 seconds"), n=sw.count(), seen=sw.collect_list("v"))
    run = folder.run(spark, visits, SCHEMA, late="collect")
    told = [
        (r["query"], r["start"] - START, r["end"] - START, r["change"], r["s"], r["seen"])
        for r in run.rows()
        if r["change"] != "late"
    ]
    assert sorted(told, key=repr) == sorted(
        [
            ("tens", 0, 10, "insert", 3, None),
            ("visit", 1, 9, "insert", None, [1, 2]),
            ("tens", 0, 10, "update", 11, None),
            ("visit", 1, 9, "update", None, [1, 8, 2]),
            ("tens", 10, 20, "insert", 4, None),
            ("visit", 13, 18, "insert", None, [4]),
        ],
        key=repr,
    )
    late = [r["late"] for r in run.rows() if r["change"] == "late"]
    assert [row["ts"] for row in late] == [None, (START + 2) * UNITS[unit]]
    seen = [(m["watermark"], m["rows"], m["late"], m["bad"]) for m in run.metrics()]
    first, last = "2024-03-01 00:00:11", "2024-03-01 00:00:32"
    assert seen == [(first, 3, 0, 0), (last, 2, 0, 1), (last, 1, 1, 0)]
    found = sw.inspect(folder.checkpoint, spark)
    assert found.watermark == (START + 32) * UNITS[unit]
    assert "watermark 2024-03-01 00:00:32, oldest row held 2024-03-01 00:00:" in str(found)
    assert found.queries["tens"] == "tens: tumbling('10 seconds') -> s=sum('v')"


@pytest.mark.streams
def test_another_unit_is_another_stream_and_the_old_one_goes_on(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(epoch_rows("seconds", [(1, "a", 1)]))
    folder.run(spark, streamed("seconds"), SCHEMA)
    folder.add(epoch_rows("seconds", [(4, "a", 2), (13, "a", 4)]))
    message = r"its `unit` is 'seconds', this one's 'milliseconds'; only queries may be added or removed"
    with pytest.raises(Exception, match=message):
        folder.run(spark, streamed("milliseconds"), SCHEMA)
    added = streamed("seconds").query("hours", sw.tumbling("1 hour"), n=sw.count())
    run = folder.run(spark, added, SCHEMA)
    assert [(r["query"], r["start"] - START, r["s"]) for r in run.rows()] == [("tens", 0, 3)]
