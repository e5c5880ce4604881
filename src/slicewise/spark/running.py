"""Running: a workload on a DataFrame, batch or stream."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slicewise.errors import DataError, QueryError
from slicewise.plan.plan import check_runnable
from slicewise.spark.batch import run_batch
from slicewise.spark.source import Source, column
from slicewise.workload import Workload

__all__ = ["LATE", "run"]

#: The column that holds late rows, and what ``change`` says of them.
LATE = "late"


def run(workload: Workload, frame: DataFrame, *, late: str | None = None) -> DataFrame:
    """The results of a workload over a DataFrame."""
    if not workload.queries:
        raise QueryError(
            "the workload has no queries; add one: workload.query('per_minute', sw.tumbling('1 minute'), …)"
        )
    if late not in (None, "collect"):
        raise QueryError(f"`late` must be 'collect' or left out; got {late!r}")
    check_runnable(workload)
    source = Source.of(workload, frame)
    if late == "collect":
        _check_free(workload)
    results = run_batch(source)
    return results if late is None else results.unionByName(_without_time(source), allowMissingColumns=True)


def _without_time(source: Source) -> DataFrame:
    """Rows that no window can hold, as rows of their own among the results."""
    rows = source.frame.where(source.event_time.isNull())
    whole = F.struct(*(column(name) for name in source.frame.columns)).alias(LATE)
    keys = [column(name) for name in source.workload.keys]
    return rows.select(*keys, F.lit(LATE).alias("change"), whole)


def _check_free(workload: Workload) -> None:
    taken = [*workload.keys, *(name for q in workload.queries for name in q.aggregates)]
    if LATE in taken:
        raise DataError(f"with late='collect' the results have a column {LATE!r}; give yours another name")
