"""Job runner: a job on Spark, from source through workload to sink. Uses Spark objects without importing pyspark."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slicewise.cli.jobs import KAFKA, Job, Sink, Source
from slicewise.cli.status import BatchWatch, Progress, Status

__all__ = [
    "computed",
    "flattened",
    "follow",
    "open_session",
    "read_source",
    "run_batch",
    "short_error",
    "silence_logs",
    "start_stream",
    "stopping",
]

_POLL_SECONDS = 0.5
_LONGEST_MESSAGE = 20
#: Our errors in what Spark reports of its workers, which is text: a line, and those that continue it.
_OUR_ERRORS = re.compile(r"slicewise\.errors\.\w+: (.*(?:\n(?!\s*\n|\tat |\s+at |Traceback|Caused by).*)*)")
#: Spark counts the sources of a stream before anything of ours runs. A job has one, and with `idle` two.
_SOURCES = re.compile(r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\] sources")
#: What to change in the job, by Spark's error conditions.
_TIPS = {
    "PATH_ALREADY_EXISTS": 'give the job another sink.path, or a sink.mode: "overwrite" or "append"',
    "TABLE_OR_VIEW_ALREADY_EXISTS": 'give the job another sink.table, or a sink.mode: "overwrite" or "append"',
    "DATA_SOURCE_NOT_FOUND": "name the package that has the format: --packages GROUP:NAME:VERSION",
}


def open_session(job: Job, master: str | None, conf: Mapping[str, str], packages: tuple[str, ...]) -> Any:
    """A Spark session for the job; options of the command line take precedence over those of the job."""
    from slicewise.spark import local_session

    return local_session(
        app_name=job.name,
        master=master or job.spark.master,
        conf={**job.spark.conf, **conf},
        packages=[*dict.fromkeys([*job.spark.packages, *packages])],
    )


def read_source(spark: Any, source: Source) -> Any:
    """The rows of a job, as a DataFrame."""
    if source.format == KAFKA:
        from slicewise.sources import kafka

        kafka.register(spark)
    reader = (spark.readStream if source.stream else spark.read).options(**source.options)
    if source.table is not None:
        df = reader.table(source.table)
    else:
        reader = reader.format(source.format)
        if source.schema is not None:
            reader = reader.schema(source.schema)
        paths = source.path[0] if len(source.path) == 1 else list(source.path)
        df = reader.load(paths) if paths else reader.load()
    if source.where is not None:
        df = df.where(source.where)
    return df.selectExpr(*source.select) if source.select else df


def computed(spark: Any, job: Job) -> Any:
    """What goes to the sink: results, or points with the values of queries."""
    rows = read_source(spark, job.source)
    if job.attach is None:
        return job.workload.run(rows, **job.results)
    if job.attach.points is None:
        return job.workload.attach(rows, time=job.attach.time)
    return job.workload.attach(read_source(spark, job.attach.points), rows, job.attach.time)


def flattened(df: Any) -> Any:
    """The results with ``window_start``, ``window_end``, ``span_start``, ``span_end`` instead of the two structs."""
    expressions = []
    for column in df.columns:
        name = "`" + column.replace("`", "``") + "`"
        is_struct = column in ("window", "span")
        expressions += [f"{column}.{b} AS {column}_{b}" for b in ("start", "end")] if is_struct else [name]
    return df.selectExpr(*expressions)


def run_batch(spark: Any, df: Any, sink: Sink, status: Status) -> None:
    """Write the results of a batch, and show meanwhile how many tasks are done."""
    if sink.format == "console":
        status.quiet()
        df.show(*_console_options(sink.options))
        return
    writer = df.write.mode(sink.mode).options(**sink.options)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    with BatchWatch(spark, status):
        if sink.table is not None:
            writer.saveAsTable(sink.table)
        else:
            writer.format(sink.format).save(sink.path)


def _console_options(options: Mapping[str, str]) -> tuple[int, bool | int]:
    """The number of rows to show and where to cut them, from the options of Spark's console sink."""
    rows = options.get("numRows", "20")
    cut = options.get("truncate", "false")
    return int(rows) if rows.isdecimal() else 20, int(cut) if cut.isdecimal() else cut == "true"


def start_stream(df: Any, job: Job) -> Any:
    """Start the stream; returns the streaming query."""
    sink, trigger = job.sink, job.trigger
    writer = df.writeStream.queryName(job.name).outputMode(sink.mode).options(**sink.options)
    writer = writer.option("checkpointLocation", sink.checkpoint)
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if trigger.available_now:
        writer = writer.trigger(availableNow=True)
    elif trigger.once:
        writer = writer.trigger(once=True)
    elif trigger.processing_time is not None:
        writer = writer.trigger(processingTime=trigger.processing_time)
    if sink.table is not None:
        return writer.toTable(sink.table)
    writer = writer.format(sink.format)
    return writer.start(sink.path) if sink.path is not None else writer.start()


def silence_logs(spark: Any) -> None:
    """Keep Spark from logging the tasks that end when a stream is stopped in the middle of a micro-batch."""
    # Spark Connect has no context; its server logs on its own machine.
    with contextlib.suppress(Exception):
        spark.sparkContext.setLogLevel("OFF")


def follow(
    query: Any,
    status: Status,
    stop: threading.Event,
    *,
    before_stop: Callable[[], None] = lambda: None,
    poll: float = _POLL_SECONDS,
) -> bool:
    """Show each micro-batch until the stream ends or ``stop`` is set; True when it ended by itself.

    A stream that failed raises what Spark raised.
    """
    seen = -1
    while query.isActive and not stop.is_set():
        seen = _report(query, status, seen)
        stop.wait(poll)
    if stop.is_set() and query.isActive:
        before_stop()
        query.stop()
        return False
    query.awaitTermination()
    _report(query, status, seen)
    return not stop.is_set()


def _report(query: Any, status: Status, seen: int) -> int:
    """Show the micro-batches after ``seen``; returns the number of the last one."""
    for report in query.recentProgress:
        # As JSON, because the object itself holds observed metrics as rows of Spark.
        progress = Progress.of(json.loads(report.json) if hasattr(report, "json") else report)
        if progress.batch > seen:
            status.micro_batch(progress)
            seen = progress.batch
    return seen


@contextlib.contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or a request to terminate) sets; a second Ctrl-C interrupts at once.

    Spark's own handler would cancel the jobs of the running micro-batch, and the stream would end as failed.
    """
    stop = threading.Event()

    def handle(signum: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def short_error(error: BaseException) -> str:
    """The message of an error of Spark, without the stack traces of three languages.

    >>> short_error(ValueError("An error occurred\\nTraceback\\nslicewise.errors.DataError: null time\\n\\tat org.x"))
    'null time'
    """
    text = str(error) or type(error).__name__
    messages: list[str] = _OUR_ERRORS.findall(text)
    if messages:
        return messages[-1].strip()
    sources = _SOURCES.search(text)
    if sources is not None:
        from slicewise.spark.streaming.heartbeat import switched_message

        return switched_message(int(sources[2]) > int(sources[1]))
    text = re.split(r"\n+(?:JVM stacktrace:|=== Streaming Query ===)", text)[0]
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s+at |\s*\.\.\. \d+ more", line)]
    tips = [tip for condition, tip in _TIPS.items() if f"[{condition}" in text]
    return "\n".join([*lines[:_LONGEST_MESSAGE], *tips])
