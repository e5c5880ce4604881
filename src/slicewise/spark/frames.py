"""Frames: what people do next with a DataFrame of results."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from slicewise.errors import DataError, did_you_mean
from slicewise.results import RESERVED
from slicewise.spark.output import columns_of_queries
from slicewise.spark.source import column
from slicewise.workload import Workload

__all__ = ["latest", "only"]


def latest(results: DataFrame) -> DataFrame:
    """What is finally true: of each window the last revision, without windows that were withdrawn.

    The result has the columns of ``results`` but ``change`` and ``revision``, and is a batch DataFrame's job: read what
    a stream has written, and ask for the latest of it.
    """
    _check_results(results)
    if results.isStreaming:
        raise DataError("`latest` needs all rows to be there; write the stream out, and ask for the latest of that")
    names = results.columns
    keys = names[: names.index("query")]
    # A window on rows or units is known by its span: several have the same times, and late rows move those.
    bounds = F.when(F.col("span").isNull(), F.col("window"))
    window = [*map(column, keys), F.col("query"), F.col("span"), bounds]
    newest = Window.partitionBy(*window).orderBy(F.col("revision").desc())
    number = _unused("number", names)
    ranked = results.withColumn(number, F.row_number().over(newest))
    kept = ranked.where((F.col(number) == 1) & F.col("change").isin("insert", "update"))
    return kept.drop(number, "change", "revision")


def only(results: DataFrame, query: str, workload: Workload | None = None) -> DataFrame:
    """The rows of one query, with just its columns: keys, window, span, change, revision and its aggregates.

    Which columns are the query's is known from the results; where that was lost on the way, give the ``workload``.
    """
    _check_results(results)
    known = columns_of_queries(results)
    if workload is not None:
        known = {q.name: list(q.aggregates) for q in workload.queries}
    if not known:
        raise DataError("these results no longer know which columns are whose; say it: only(results, query, workload)")
    if query not in known:
        raise DataError(f"there is no query {query!r} in the results; {did_you_mean(query, known)}")
    names = results.columns
    kept = [*names[: names.index("query")], "window", "span", "change", "revision", *known[query]]
    return results.where(F.col("query") == query).select(*map(column, kept))


def _check_results(results: DataFrame) -> None:
    missing = [name for name in RESERVED if name not in getattr(results, "columns", ())]
    if missing:
        raise DataError(f"these are not results of a workload: there is no column {missing[0]!r}; pass what run() gave")


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name
