"""Running: a workload on a DataFrame, batch or stream."""

from __future__ import annotations

import dataclasses
import warnings

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slicewise.bad_rows import NO_TIME
from slicewise.errors import DataError, QueryError
from slicewise.options import RunOptions
from slicewise.plan.panels import Form
from slicewise.plan.plan import check_max_slice, check_runnable, check_store
from slicewise.spark.batch import run_batch
from slicewise.spark.computed_columns import with_meant
from slicewise.spark.output import LATE, REASON
from slicewise.spark.session import check_streaming, check_workers, share_py_files
from slicewise.spark.source import Source, column, sql_name
from slicewise.spark.streaming.stream import run_stream
from slicewise.spark.whole_rows import check_returned_rows, check_shown_rows
from slicewise.workload import Workload
from slicewise.workload.processing import check_on_clock

__all__ = ["run"]


def run(workload: Workload, frame: DataFrame, options: RunOptions) -> DataFrame:
    """The results of a workload over a DataFrame: what :meth:`slicewise.Workload.run` calls.

    Parameters
    ----------
    workload : Workload
        What to compute; it needs at least one query.
    frame : DataFrame
        The rows, a batch or a stream.
    options : RunOptions
        How to run it; :meth:`slicewise.Workload.run` takes the same options as keywords and says what each one means.

    Returns
    -------
    DataFrame
        The results, of a stream as a stream.

    Raises
    ------
    QueryError
        The workload or an option does not fit the DataFrame.
    SetupError
        The session or its workers lack something that slicewise needs.

    Examples
    --------
    >>> import slicewise as sw
    >>> spark = sw.spark.local_session()
    >>> workload = sw.Workload(time="id").query("per_ten", sw.tumbling(10), n=sw.count())
    >>> results = run(workload, spark.range(25), RunOptions()).select("window.*", "n").orderBy("start")
    >>> [tuple(row) for row in results.collect()]
    [(0, 10, 10), (10, 20, 10), (20, 30, 5)]
    """
    if not workload.queries:
        raise QueryError(
            "the workload has no queries; add one: .query('per_minute', sw.tumbling('1 minute'), n=sw.count())"
        )
    check_runnable(workload)
    _check_stores(workload)
    _check_clock(workload, options, batch=not getattr(frame, "isStreaming", True))
    if getattr(frame, "isStreaming", False):
        _check_watermarks(workload)
    check_max_slice(options.max_slice)
    source = Source.of(workload, frame)
    options.check(stream=frame.isStreaming)
    check_store(options.store, workload)
    Form.of_run(options).check(workload)
    check_workers(frame.sparkSession, streams=frame.isStreaming)
    if options.late == "collect":
        _check_free(workload)
        check_returned_rows(frame)
    if options.bad == "fail":
        check_shown_rows(frame)
    if frame.isStreaming:
        check_streaming(frame.sparkSession)
        share_py_files(frame.sparkSession)
        _warn_of_watermark(source)
        return run_stream(source, options)
    return _run_batch(with_meant(_without_watermarks(source)), options)


def _check_stores(workload: Workload) -> None:
    for query in workload.queries:
        if getattr(query.window, "store", None) is not None:
            raise QueryError(
                f"query {query.name!r}: `store` keeps the nodes of {query.window!r} for one process, but on Spark many "
                "processes run it, with their state in the checkpoint; leave it out",
                parameter="store",
                query=query.name,
            )


def _check_clock(workload: Workload, options: RunOptions, *, batch: bool) -> None:
    """Refuse what processing time has no answer to on Spark."""
    time = workload.on_clock
    if time is None:
        return
    if batch:
        raise QueryError(
            f"{time!r} is not for batches: a batch has no clock that a second run would share; name the time column: "
            "Workload(time='ts')",
            parameter="time",
        )
    if time.clock is not None:
        raise QueryError(
            f"on Spark the clock is that of the micro-batch, so that one that is repeated gives the same answer; got "
            f"{time!r}; leave `clock` out",
            parameter="clock",
        )
    check_on_clock(time, {"ordered": options.ordered})


def _check_watermarks(workload: Workload) -> None:
    if workload.watermark_from is not None:
        raise QueryError(
            f"`watermark_from` is not for streams: Spark does not say in which order rows came, so that a watermark "
            f"has no place among them; got {workload.watermark_from!r}; give the workload a `watermark`, or run it in "
            "process with operator()",
            parameter="watermark_from",
        )


def _without_watermarks(source: Source) -> Source:
    """The source of a batch, which has no use for watermarks, without the rows that are some."""
    name = source.workload.watermark_from
    if name is None:
        return source
    return dataclasses.replace(source, frame=source.frame.where(F.expr(f"{source.given(name)} IS NULL")))


def _warn_of_watermark(source: Source) -> None:
    for field in source.frame.schema.fields:
        if "spark.watermarkDelayMs" in field.metadata:
            warnings.warn(
                f"the DataFrame has a watermark on {field.name!r}; the workload's own decides: give it there, "
                "sw.Workload(watermark=...)",
                stacklevel=4,
            )


def _run_batch(source: Source, options: RunOptions) -> DataFrame:
    if options.bad == "fail":
        source = dataclasses.replace(source, frame=source.frame.where(_has_time_or_fails(source)))
    results = run_batch(source, options.shuffle, options.store, Form.of_run(options))
    return results if options.late is None else results.unionByName(_without_time(source), allowMissingColumns=True)


def _has_time_or_fails(source: Source) -> Column:
    row = F.to_json(F.struct(*(column(name) for name in source.frame.columns)))
    message = F.concat(F.lit("a row has no event time that a window could hold, and bad='fail': "), row)
    has_time = F.expr(f"{source.event_time} IS NOT NULL")
    return F.when(has_time, F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))


def _without_time(source: Source) -> DataFrame:
    """Rows that no window can hold, as rows of their own among the results."""
    rows = source.frame.where(F.expr(f"{source.event_time} IS NULL"))
    whole = F.struct(*(column(name) for name in source.frame.columns)).alias(LATE)
    keys = [F.expr(f"{source.given(name)} AS {sql_name(name)}") for name in source.workload.keys]
    return rows.select(*keys, F.lit(LATE).alias("change"), whole, F.lit(NO_TIME).alias(REASON))


def _check_free(workload: Workload) -> None:
    taken = [*workload.keys, *(name for q in workload.queries for name in q.aggregates)]
    for name in (LATE, REASON):
        if name in taken:
            raise DataError(f"with late='collect' the results have a column {name!r}; give yours another name")
