"""The status of a running job: plain lines in a pipe, live on a terminal."""

from __future__ import annotations

import io
import types

from rich.console import Console

from slicewise.cli import status as status_module
from slicewise.cli.status import BatchWatch, Progress, Status
from slicewise.spark.streaming import heartbeat

OURS = {"rows": 12345, "late": 3, "bad": 0, "keys": 4, "slices": 240, "watermark": 1_717_243_200_500_000}
PROGRESS = {
    "batchId": 7,
    "numInputRows": 12345,
    "processedRowsPerSecond": 6789.1,
    "durationMs": {"addBatch": 1500, "triggerExecution": 1818},
    "observedMetrics": {"another": {"watermark": 1}, "slicewise 4eda75c47e496b16": OURS},
    "stateOperators": [{"numRowsTotal": 10, "memoryUsedBytes": 2048}, {"numRowsTotal": 5, "memoryUsedBytes": 1024}],
}
SAID = "12 345 rows, 6 789 rows/s, 3 late, watermark 2024-06-01 12:00:00.5, state 4 keys 240 slices 3.0 KiB"


def console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)


def test_progress_reads_what_spark_and_slicewise_report():
    found = Progress.of(PROGRESS)
    assert found == Progress(7, 12345, 6789.1, OURS["watermark"], 3, 4, 240, 3072, 1.818)
    assert str(found) == SAID


def test_progress_of_a_batch_without_rows_and_state():
    assert str(Progress.of({"batchId": 0, "numInputRows": 0, "processedRowsPerSecond": float("nan")})) == "0 rows"


def test_the_rows_of_the_heartbeat_are_not_counted():
    assert status_module._HEARTBEAT == heartbeat.SOURCE
    beat = {"endOffset": {heartbeat.SOURCE: 10_000}, "numInputRows": 1}
    rate, file = {"endOffset": 17, "numInputRows": 5}, {"endOffset": None, "numInputRows": 2}
    said = {"batchId": 3, "numInputRows": 8, "processedRowsPerSecond": 4.0, "sources": [rate, file, beat]}
    assert Progress.of(said) == Progress(3, 7, 4.0)
    silent = {"batchId": 3, "numInputRows": 1, "processedRowsPerSecond": 4.0, "sources": [beat]}
    assert str(Progress.of(silent)) == "0 rows"


def test_the_watermark_of_integer_times_is_an_integer():
    assert Progress(0, 1, watermark=17).shown(timestamps=False) == "1 rows, watermark 17"
    out = console()
    Status(out, timestamps=False).micro_batch(Progress(0, 1, watermark=17))
    assert out.file.getvalue() == "batch 0: 1 rows, watermark 17\n"


def test_in_a_pipe_every_event_is_a_line_without_escapes():
    out = console()
    with Status(out) as status:
        status.doing("starting Spark")
        status.micro_batch(Progress.of(PROGRESS))
        status.tasks(1, 2)
        status.line("done: [job] wrote it")
    assert out.file.getvalue() == (f"starting Spark\nbatch 7: {SAID}\ndone: [job] wrote it\n")


def test_on_a_terminal_the_status_is_live_and_counts_up():
    out = console(terminal=True)
    with Status(out) as status:
        status.doing("starting Spark")
        status.micro_batch(Progress(0, 10))
        status.micro_batch(Progress(1, 15))
        status.quiet()
        status.line("done")
    shown = out.file.getvalue()
    assert "batch 1: 15 rows; 25 rows so far" in shown
    assert shown.rstrip().endswith("done")
    assert (status.rows, status.batches) == (25, 2)


def test_tasks_of_a_batch_are_counted_while_it_runs(monkeypatch):
    monkeypatch.setattr(status_module, "_POLL_SECONDS", 0.01)
    info = types.SimpleNamespace(numCompletedTasks=3, numTasks=8)
    tracker = types.SimpleNamespace(
        getActiveStageIds=lambda: [1, 2], getStageInfo=lambda stage: info if stage == 1 else None
    )
    spark = types.SimpleNamespace(sparkContext=types.SimpleNamespace(statusTracker=lambda: tracker))
    out = console(terminal=True)
    status = Status(out)
    seen = []
    monkeypatch.setattr(status, "tasks", lambda done, of: seen.append((done, of)))
    with BatchWatch(spark, status) as watch:
        watch._thread.join(0.1)
    assert set(seen) == {(3, 8)}


def test_a_session_that_cannot_be_asked_is_left_alone(monkeypatch):
    monkeypatch.setattr(status_module, "_POLL_SECONDS", 0.01)
    with BatchWatch(object(), Status(console(terminal=True))) as watch:
        watch._thread.join(1)
    assert not watch._thread.is_alive()


def test_a_bar_is_drawn_on_a_terminal():
    out = console(terminal=True)
    with Status(out) as status:
        status.doing("running")
        status.tasks(1, 4)
        status.tasks(4, 4)
    assert "4 of 4 tasks" in out.file.getvalue()
