"""Wide results and differences on Spark: batch as in process, and streams that keep a table true."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from itertools import chain
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError, StateError
from slicewise.plan.plan import VALUES
from slicewise.spark.streaming import chunks
from slicewise.testing import Oracle, fold, shaped, stream
from tests.profiles import fewer
from tests.slicing.shapes import FORMS, UTC, assert_stands, calendar_steps, forms, replay, rolling
from tests.spark.stream_fake import Crash, FakeStream, Reference, Workers
from tests.spark.stream_strategies import micro_batches

some = fewer(4, least=5)
delays = st.sampled_from([0, 0, 5, 20])


# Streams without a JVM


@some
@given(st.data(), forms, delays, micro_batches(), st.integers(1, 3), st.sampled_from(["run", "stop", "crash"]))
def test_a_stream_is_true_at_every_watermark(data, form, delay, batches, shards, life):
    """Also when it is stopped behind every micro-batch, or goes down in the middle of some."""
    shape, emit = form
    workload = data.draw(rolling(wide=shape == "wide"))
    workload = workload.with_delays(delay, workload.lateness)
    running = FakeStream(workload, shards=shards, workers=Workers(0), shape=shape, emit=emit)
    oracle = Reference(Oracle(workload, ties=VALUES), workload)
    table, so_far = {}, []
    for batch in batches:
        if life == "crash":
            try:
                results = running.batch(batch, crash=(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))))
            except Crash:
                results = running.batch(batch)
        else:
            results = running.batch(batch)
        replay(table, results)
        so_far += oracle.batch(batch)
        assert_stands(table, shaped(workload, fold(so_far), oracle.latest - delay, shape=shape, emit=emit))
        if life == "stop":
            running = running.again(shape=shape, emit=emit, workers=Workers(0))


@some
@given(calendar_steps(), forms, st.integers(1, 2), st.booleans())
def test_a_stream_on_a_calendar_is_true_at_every_watermark(case, form, shards, stops):
    workload, epochs = case
    shape, emit = form
    options = {"shape": shape, "emit": emit, "types": {"k": pa.string(), "v": pa.int64()}, "time_type": UTC}
    running = FakeStream(workload, shards=shards, workers=Workers(0), **options)
    oracle = Reference(Oracle(workload, ties=VALUES), workload)
    table, so_far = {}, []
    for chunks_of_rows, _ in epochs:
        replay(table, running.batch(chunks_of_rows))
        so_far += oracle.batch(chunks_of_rows)
        assert_stands(table, shaped(workload, fold(so_far), oracle.latest, shape=shape, emit=emit))
        if stops:
            running = running.again(workers=Workers(0), **options)


@some
@given(rolling(), micro_batches(), st.integers(1, 3))
def test_wide_changes_are_those_of_the_long_shape(workload, batches, shards):
    """Windows that are reported before they end, side by side."""
    options = {"shards": shards, "emit": "changes"}
    wide, long = FakeStream(workload, shape="wide", **options), FakeStream(workload, **options)
    table, so_far = {}, []
    for batch in batches:
        replay(table, wide.batch(batch))
        so_far += long.batch(batch)
        assert_stands(table, shaped(workload, fold(so_far), shape="wide"))


def test_a_checkpoint_goes_on_in_its_own_form_only():
    workload = counts_of(10, 20)
    running = FakeStream(workload, shards=1, types=TYPES, shape="wide", emit="differences", workers=Workers(0))
    running.batch([[{"t": 1, "k": "a"}]])
    other = {"types": TYPES, "workers": Workers(0)}
    message = (
        "the checkpoint belongs to another workload: its `{}` is {!r}, this one's {!r}; only queries may be added or"
    )
    for form, shown in (
        ({"shape": "wide"}, message.format("emit", "differences", "complete")),
        ({"emit": "differences"}, message.format("shape", "wide", "long")),
    ):
        with pytest.raises(StateError, match=f"^{shown} removed$"):
            running.again(**form, **other).batch([[{"t": 2, "k": "a"}]])
    form = {"shape": "wide", "emit": "differences"}
    with pytest.raises(StateError) as error:
        running.again(workload.without("last_10"), **form, **other).batch([[{"t": 2, "k": "a"}]])
    assert str(error.value) == (
        "the state was written with shape='wide' and queries ['last_10', 'last_20'], and this run has ['last_20']: a "
        "row has the columns of all queries, so none may be added, removed or changed; start anew"
    )


def test_counts_fall_when_events_grow_old_though_no_row_comes():
    workload = sw.Workload("t", keys=["k"], unit="seconds")
    for seconds in (10, 60):
        workload = workload.query(f"s{seconds}", sw.sliding(f"{seconds} seconds", every="1 second"), n=sw.count())
    form = {"shape": "wide", "emit": "differences", "idle": "2 seconds"}
    running = FakeStream(workload, shards=1, types=TYPES, workers=Workers(0), **form)
    running.batch([[{"t": 100, "k": "a"}]])
    silent = [running.tick(seconds * 1000) for seconds in (1, 4, 10, 30, 30)]
    assert [[(r.end // 1_000_000, *r.values.values()) for r in step] for step in silent] == [
        [],
        [(101, 1, 1)],
        [(111, 0, 1)],
        [],
        [(161, 0, 0)],
    ]


def test_only_the_chunks_of_keys_that_changed_are_written():
    running = FakeStream(counts_of(1000), shards=1, types=TYPES, emit="differences", workers=Workers(0))
    with mock.patch.object(chunks, "KEYS", 4):
        running.batch([[{"t": 1, "k": str(i)} for i in range(12)]])
        running.batch([[{"t": 15, "k": "0"}]])
        written = running.handles[0].map.written
        written.clear()
        running.batch([[{"t": 38, "k": "0"}]])
    assert [name for name in written if name.startswith("ticks")] == ["ticks 0 0"]


# On Spark

TYPES = {"k": pa.string()}
START = datetime(2024, 5, 1)


def counts_of(*lengths, **settings):
    workload = sw.Workload("t", keys=["k"], **settings)
    for length in lengths:
        workload = workload.query(f"last_{length}", sw.sliding(length, every=10), n=sw.count())
    return workload


def minutes_of(*lengths, **settings):
    workload = sw.Workload("ts", keys=["k"], **settings)
    for n in lengths:
        workload = workload.query(f"m{n}", sw.sliding(f"{n} minutes", every="5 minutes"), n=sw.count(), s=sw.sum("v"))
    return workload


ROWS = [(m, "ab"[m % 3 // 2], m % 7 if m % 5 else None) for m in (1, 2, 9, 14, 31, 33, 80, 81, 3, 40, 120)]


def frame(spark, rows):
    data = [(START + timedelta(minutes=minute), key, value) for minute, key, value in rows]
    return spark.createDataFrame(data, "ts timestamp_ntz, k string, v bigint")


def in_process(workload, shape, emit):
    op = workload.operator(shape=shape, emit=emit)
    op.process_batch(
        {
            "ts": [START + timedelta(minutes=m) for m, _, _ in ROWS],
            "k": [k for _, k, _ in ROWS],
            "v": [v for _, _, v in ROWS],
        }
    )
    return op.close().to_arrow()


def as_set(rows):
    return sorted(str(sorted(row.items(), key=str)) for row in rows)


def test_batch_is_as_in_process_by_slices_and_by_rows(spark):
    workload = minutes_of(5, 30)
    by_rows = workload.query("texts", sw.sliding("10 minutes", every="5 minutes"), c=sw.concat("k"))
    for shape, emit in FORMS:
        for each in (workload, by_rows):
            expected = in_process(each, shape, emit)
            results = each.run(frame(spark, ROWS), shape=shape, emit=emit)
            assert results.columns == expected.column_names
            assert as_set(results.toArrow().to_pylist()) == as_set(expected.to_pylist()), (shape, emit)


def test_a_single_tumbling_query_is_wide_too(spark):
    workload = sw.Workload("ts", keys=["k"]).query("m", sw.tumbling("5 minutes"), n=sw.count())
    for shape, emit in FORMS:
        expected = as_set(in_process(workload, shape, emit).to_pylist())
        assert as_set(workload.run(frame(spark, ROWS), shape=shape, emit=emit).toArrow().to_pylist()) == expected


@pytest.mark.streams
def test_a_stream_and_an_upsert_are_as_a_batch(spark, tmp_path):
    """Late rows come in the third micro-batch; the last one lets every window end."""
    workload = minutes_of(5, 30, lateness="1 day")
    batches = [ROWS[:4], ROWS[4:8], ROWS[8:], [(9999, "a", 1), (9999, "b", 1)]]
    frames = [frame(spark, rows) for rows in batches]
    for shape, emit in FORMS:
        expected = workload.run(frame(spark, list(chain(*batches))), shape=shape, emit=emit)
        end = "end" if shape == "wide" else "window.end"
        expected = expected.where(f"{end} < timestamp_ntz'2024-05-05'").drop("change", "revision")
        reported = stream(frames, workload, folded=False, shape=shape, emit=emit).drop("batch")
        found = sw.latest(reported)
        assert as_set(found.toArrow().to_pylist()) == as_set(expected.toArrow().to_pylist()), (shape, emit)
        path = tmp_path / f"{shape}-{emit}.db"
        keep = sw.upsert(workload, f"sqlite:///{path}", table="t")
        keep(reported, 0)
        with sqlite3.connect(path) as database:
            assert database.execute("SELECT count(*) FROM t").fetchone() == (found.count(),)
    results = workload.run(frame(spark, ROWS), shape="wide")
    with pytest.raises(DataError) as error:
        sw.only(results, "m5")
    assert str(error.value) == (
        "these results are wide: a row has the columns of all queries; select those that you need"
    )


def test_the_latest_row_of_each_key_is_what_holds_now(spark, tmp_path):
    workload = minutes_of(5, 30, lateness="1 day")
    wide = workload.run(frame(spark, ROWS), shape="wide", emit="differences")
    keep = sw.upsert(workload, f"sqlite:///{tmp_path}/now.db", table="now", latest=True)
    keep(wide, 0)
    with sqlite3.connect(tmp_path / "now.db") as database:
        rows = database.execute('SELECT k, "end", m5_n, m30_n, m30_s FROM now ORDER BY k').fetchall()
    assert rows == [("a", "2024-05-01 02:35:00.000000", 0, 0, None), ("b", "2024-05-01 01:55:00.000000", 0, 0, None)]


def days_of(*lengths, **settings):
    """Around the day that did not take place."""
    workload = sw.Workload("ts", keys=["k"], **settings)
    for n in lengths:
        window = sw.sliding(f"{n} days", every="1 day", zone="Pacific/Apia")
        workload = workload.query(f"d{n}", window, n=sw.count(), s=sw.sum("v"))
    return workload


def in_apia(spark, rows):
    seconds = [(1_324_800_000 + minute * 9973, key, value) for minute, key, value in rows]
    return spark.createDataFrame(seconds, "s bigint, k string, v bigint").selectExpr(
        "timestamp_seconds(s) ts", "k", "v"
    )


def test_calendar_windows_are_in_batch_as_in_process(spark):
    workload = days_of(1, 3, 30)
    by_rows = workload.query("texts", sw.tumbling("1 day", zone="Pacific/Apia"), c=sw.concat("k"))
    rows = in_apia(spark, ROWS)
    for shape, emit in FORMS:
        for each in (workload, by_rows):
            op = each.operator(shape=shape, emit=emit)
            op.process_batch(rows.toArrow())
            found = each.run(rows, shape=shape, emit=emit).toArrow()
            assert by_instant(found) == by_instant(op.close().to_arrow()), (shape, emit)


@pytest.mark.streams
def test_a_stream_of_calendar_windows_is_as_a_batch(spark):
    """Late rows come in the third micro-batch, the last one lets every window end, and a table of days is true."""
    workload = days_of(1, 3, 30, lateness="90 days")
    ended = [(900, "a", 1), (900, "b", 1)]
    batches = [ROWS[:4], ROWS[4:8], ROWS[8:], ended]
    for shape, emit in FORMS:
        expected = workload.run(in_apia(spark, list(chain(*batches))), shape=shape, emit=emit)
        end = "end" if shape == "wide" else "window.end"
        by_then = f"unix_seconds({end}) < {1_324_800_000 + 899 * 9973}"
        frames = [in_apia(spark, rows) for rows in batches]
        reported = stream(frames, workload, folded=False, shape=shape, emit=emit).drop("batch")
        assert reported.where("revision > 0").count(), (shape, emit)
        found = sw.latest(reported).where(by_then).toArrow()
        whole = expected.where(by_then).drop("change", "revision").toArrow()
        assert by_instant(found) == by_instant(whole), (shape, emit)
        assert whole.num_rows > 20, (shape, emit)


def by_instant(table):
    """The rows of results, whatever the zone in which their ends are shown."""
    ends = table.column("end") if "end" in table.column_names else pc.struct_field(table.column("window"), "end")
    rows = table.drop_columns([name for name in ("window", "span", "end") if name in table.column_names])
    return as_set(rows.append_column("at", ends.cast(pa.int64())).to_pylist())


def test_bad_forms_are_refused(spark):
    workload = minutes_of(5, 30)
    rows = frame(spark, ROWS)

    def refused(workload, **options):
        with pytest.raises(QueryError) as error:
            workload.run(rows, **options)
        return str(error.value)

    assert refused(workload, emit="changes") == (
        "emit='changes' is for streams, and this DataFrame is a batch; leave it out"
    )
    assert refused(workload, shape="width") == "`shape` must be 'long' or 'wide'; got 'width'; did you mean 'wide'?"
    visits = workload.query("visits", sw.session("5 minutes"), n=sw.count())
    assert refused(visits, shape="wide") == (
        "query 'visits': shape='wide' takes windows that end at ticks, sw.tumbling and sw.sliding on event time; "
        "got session('5 minutes'); give it a workload of its own"
    )
