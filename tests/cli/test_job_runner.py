"""From a job to the calls on Spark's objects, with stand-ins that record them."""

# Messages stand on one line, as they are said.
# ruff: noqa: E501

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import types
from pathlib import Path

import pytest

from slicewise.cli.job_runner import (
    flattened,
    follow,
    open_session,
    read_source,
    run_batch,
    short_error,
    start_stream,
    stopping,
)
from slicewise.cli.jobs import read_job
from slicewise.cli.status import Status, count, size
from slicewise.errors import DataError
from tests.cli.jobfiles import BATCH, STREAM, write
from tests.cli.test_status import console


class Recorder:
    """Takes any call, and notes it; every attribute and every result is the recorder itself."""

    columns = ("k", "my `col`", "query", "window", "span", "total")

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _Call(self, name)

    def said(self):
        return " ".join(self.calls)


class _Call:
    def __init__(self, recorder, name):
        self.recorder, self.name = recorder, name

    def __call__(self, *args, **kwargs):
        given = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
        self.recorder.calls.append(f"{self.name}({', '.join(given)})")
        return self.recorder

    def __getattr__(self, name):  # spark.read.format: an attribute that is not called
        if name.startswith("_"):
            raise AttributeError(name)
        self.recorder.calls.append(self.name)
        return _Call(self.recorder, name)


def job(tmp_path: Path, text: str, *overrides: str):
    return read_job(write(tmp_path, text), overrides)


# -- sources


def source_calls(source):
    spark = Recorder()
    read_source(spark, source)
    return spark.said()


def test_a_batch_source_is_read(tmp_path):
    said = source_calls(job(tmp_path, BATCH).source)
    assert (
        said == "read options(header='true') format('csv') schema('ts TIMESTAMP, sensor STRING, v DOUBLE') load('in')"
    )


def test_a_stream_source_is_read(tmp_path):
    said = source_calls(job(tmp_path, STREAM).source)
    schema = "ts TIMESTAMP, sensor STRING, v DOUBLE, page STRING"
    assert said == f"readStream options() format('parquet') schema('{schema}') load('in')"


def test_several_paths_filters_and_computed_columns(tmp_path):
    overrides = ['source.path=["a", "b"]', 'source.select=["*", "v + 1 AS w"]', "source.where=v > 0"]
    said = source_calls(job(tmp_path, BATCH, *overrides).source)
    assert said.endswith("load(['a', 'b']) where('v > 0') selectExpr('*', 'v + 1 AS w')")


def test_a_table_and_a_source_without_a_path(tmp_path):
    table = job(tmp_path, BATCH, 'source={table="db.t"}').source
    assert source_calls(table) == "read options() table('db.t')"
    rate = job(tmp_path, BATCH, 'source={format="jdbc", options={url="x"}}').source
    assert source_calls(rate) == "read options(url='x') format('jdbc') load()"


# -- sinks


def batch_calls(sink):
    df = Recorder()
    run_batch(None, df, sink, Status(console()))
    return df.said()


def test_a_batch_is_written(tmp_path):
    assert batch_calls(job(tmp_path, BATCH).sink) == "write mode('error') options() format('parquet') save('out')"
    fancy = job(
        tmp_path, BATCH, "sink.mode=append", 'sink.partition_by=["query"]', "sink.options.compression=zstd"
    ).sink
    said = "write mode('append') options(compression='zstd') partitionBy('query') format('parquet') save('out')"
    assert batch_calls(fancy) == said
    table = job(tmp_path, BATCH, 'sink={table="t", mode="overwrite"}').sink
    assert batch_calls(table) == "write mode('overwrite') options() saveAsTable('t')"


def test_a_batch_is_shown(tmp_path):
    assert batch_calls(job(tmp_path, BATCH, 'sink={format="console"}').sink) == "show(20, False)"
    options = 'sink={format="console", options={numRows=5, truncate=12}}'
    assert batch_calls(job(tmp_path, BATCH, options).sink) == "show(5, 12)"


def stream_calls(job):
    df = Recorder()
    start_stream(df, job)
    return df.said()


def test_a_stream_is_started(tmp_path):
    said = stream_calls(job(tmp_path, STREAM))
    assert said == (
        "writeStream queryName('job') outputMode('append') options() option('checkpointLocation', 'state') "
        "trigger(availableNow=True) format('parquet') start('out')"
    )


@pytest.mark.parametrize(
    ("trigger", "call"),
    [
        ("{once=true}", "trigger(once=True)"),
        ('{processing_time="90 s"}', "trigger(processingTime='1 minute 30 seconds')"),
    ],
)
def test_triggers(tmp_path, trigger, call):
    assert f" {call} " in stream_calls(job(tmp_path, STREAM, f"trigger={trigger}"))


def test_a_stream_without_a_trigger_and_without_a_path(tmp_path):
    text = STREAM[: STREAM.index("[trigger]")]
    said = stream_calls(job(tmp_path, text, 'sink={format="console", checkpoint="c"}'))
    assert said.endswith("option('checkpointLocation', 'c') format('console') start()")
    said = stream_calls(job(tmp_path, text, 'sink={table="t", checkpoint="c", partition_by=["sensor"]}'))
    assert said.endswith("partitionBy('sensor') toTable('t')")


def test_flattened_results_have_no_structs():
    df = Recorder()
    flattened(df)
    assert df.calls == [
        "selectExpr('`k`', '`my ``col```', '`query`', 'window.start AS window_start', 'window.end AS window_end', "
        "'span.start AS span_start', 'span.end AS span_end', '`total`')"
    ]


def test_the_command_line_goes_before_the_job_in_settings_of_spark(tmp_path, monkeypatch):
    seen = {}
    monkeypatch.setitem(
        sys.modules, "slicewise.spark", types.SimpleNamespace(local_session=lambda **kw: seen.update(kw))
    )
    settings = 'spark={master="local[1]", packages=["a:a:1", "b:b:1"], conf={x=1, y=2}}'
    open_session(job(tmp_path, BATCH, settings), "local[3]", {"y": "3"}, ("b:b:1", "c:c:1"))
    assert seen["app_name"] == "job"
    assert seen["master"] == "local[3]"
    assert seen["conf"] == {"x": "1", "y": "3"}
    assert seen["packages"] == ["a:a:1", "b:b:1", "c:c:1"]


# -- following a stream


class Query:
    """A stream of ``batches`` micro-batches; ``awaitTermination`` raises ``error`` if there is one."""

    def __init__(self, batches, error=None, endless=False):
        self.left, self.done, self.error, self.endless, self.stopped = batches, [], error, endless, False

    @property
    def isActive(self):
        if self.left and not self.stopped:
            n = len(self.done)
            progress = {"batchId": n, "numInputRows": 10, "processedRowsPerSecond": 5.0}
            self.done.append(types.SimpleNamespace(json=json.dumps(progress)))
            self.left -= not self.endless
            return True
        return False

    @property
    def recentProgress(self):
        return self.done[-3:]

    def stop(self):
        self.stopped = True

    def awaitTermination(self):
        if self.error:
            raise self.error


def test_every_micro_batch_is_shown_once():
    out = console()
    status = Status(out)
    assert follow(Query(5), status, threading.Event(), poll=0) is True
    assert out.file.getvalue().splitlines() == [f"batch {n}: 10 rows, 5 rows/s" for n in range(5)]
    assert (status.rows, status.batches) == (50, 5)


def test_a_stream_that_fails_raises_what_spark_raised():
    with pytest.raises(DataError, match="null time"):
        follow(Query(1, DataError("null time")), Status(console()), threading.Event(), poll=0)


def test_a_stream_is_stopped_on_request():
    query, stop = Query(1, endless=True), threading.Event()
    threading.Timer(0.05, stop.set).start()
    seen = []
    assert follow(query, Status(console()), stop, before_stop=lambda: seen.append(query.stopped), poll=0.01) is False
    assert query.stopped
    assert seen == [False]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_to_stop_and_a_second_one_interrupts(signum):
    before = signal.getsignal(signum)
    with stopping() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signum)
        assert stop.wait(1)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signum)
    assert signal.getsignal(signum) is before


# -- what went wrong


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("[X] what.\n\nJVM stacktrace:\norg.apache.X\n\tat org.a", "[X] what."),
        (": org.apache.SparkException: Job aborted\n\tat org.a\n\tat org.b\n\t... 3 more", ": org.apache.SparkException: Job aborted"),
        (
            "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File 'x', line 3, in f\n"
            "slicewise.errors.DataError: null in the time column; fill it\n\n\tat org.apache.spark",
            "null in the time column; fill it",
        ),
        (
            "[STREAM_FAILED] Query terminated with exception: assertion failed: There are [1] sources in the checkpoint offsets "
            "and now there are [2] sources requested by the query. Cannot continue. SQLSTATE: XXKST",
            "the checkpoint was written without `idle`, and this run has it; leave it out, or start with a new checkpoint "
            "from the offsets that `sw.inspect` or `slicewise inspect` shows",
        ),
        (
            "assertion failed: There are [2] sources in the checkpoint offsets and now there are [1] sources requested",
            "the checkpoint was written with `idle`, and this run has none; give one, or start with a new checkpoint "
            "from the offsets that `sw.inspect` or `slicewise inspect` shows",
        ),
        ("[PATH_ALREADY_EXISTS] Path x", '[PATH_ALREADY_EXISTS] Path x\ngive the job another sink.path, or a sink.mode: "overwrite" or "append"'),
    ],
)  # fmt: skip
def test_errors_are_told_in_brief(text, said):
    assert short_error(RuntimeError(text)) == said


def test_an_error_without_a_message_is_told_by_its_name():
    assert short_error(RuntimeError()) == "RuntimeError"
    assert len(short_error(RuntimeError("line\n" * 100)).splitlines()) == 20


# -- numbers


def test_numbers_and_sizes_are_written_for_people():
    assert [count(n) for n in (0, 7, 2.5, 12.6, 1e6)] == ["0", "7", "2.5", "13", "1 000 000"]
    assert [size(n) for n in (0, 1023, 2048, 5 * 2**20, 2**40)] == ["0 B", "1023 B", "2.0 KiB", "5.0 MiB", "1024.0 GiB"]
