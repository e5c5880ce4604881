"""Result frames: what users do next with a DataFrame of results."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from slicewise.errors import DataError, did_you_mean
from slicewise.plan.panels import WIDE_FIXED
from slicewise.results import RESERVED
from slicewise.spark.output import columns_of_queries
from slicewise.spark.source import column
from slicewise.workload import Workload

__all__ = ["is_wide", "latest", "only"]


def latest(results: DataFrame) -> DataFrame:
    """What is true in the end: the last revision of each window, without windows that were withdrawn.

    Parameters
    ----------
    results : DataFrame
        All results of a workload so far, as a batch: what a stream has written, read back.

    Returns
    -------
    DataFrame
        The columns of ``results`` but ``change`` and ``revision``; one row for each key, query and window, or for each
        key and window end where results are wide.

    Raises
    ------
    DataError
        The DataFrame is streaming, or holds no results.

    Notes
    -----
    Cost: a shuffle of all results by key, query and window.

    Examples
    --------
    With a session ``spark``, the hour that a late row corrected, once instead of twice::

        sw.latest(spark.read.parquet("results")).where("query = 'per_hour'").show()

    What is no DataFrame of results is refused:

    >>> import slicewise as sw
    >>> sw.latest([("a", 1)])
    Traceback (most recent call last):
    slicewise.errors.DataError: these are not results of a workload: there is no column 'query'; pass what run() gave
    """
    if not is_wide(results):
        _check_results(results)
    if results.isStreaming:
        raise DataError("`latest` needs all rows; write the stream out, and apply it to what was written")
    names = results.columns
    window = _identity(names, wide=is_wide(results))
    newest = Window.partitionBy(*window).orderBy(F.col("revision").desc())
    number = _unused("number", names)
    ranked = results.withColumn(number, F.row_number().over(newest))
    kept = ranked.where((F.col(number) == 1) & F.col("change").isin("insert", "update"))
    return kept.drop(number, "change", "revision")


def _identity(names: list[str], *, wide: bool) -> list[Column]:
    """What tells windows apart: keys, query and bounds, or keys and end."""
    if wide:
        return [*map(column, names[: names.index("end")]), F.col("end")]
    # A window on rows or units is known by its span: several have the same times, and late rows move those.
    bounds = F.when(F.col("span").isNull(), F.col("window"))
    return [*map(column, names[: names.index("query")]), F.col("query"), F.col("span"), bounds]


def is_wide(results: DataFrame) -> bool:
    """Whether results have the wide shape, in which a row has no query."""
    names = getattr(results, "columns", ())
    return "query" not in names and all(name in names for name in WIDE_FIXED)


def only(results: DataFrame, query: str, workload: Workload | None = None) -> DataFrame:
    """The results of one query, with just its columns.

    Parameters
    ----------
    results : DataFrame
        The results of a workload, batch or streaming.
    query : str
        The name of the query.
    workload : Workload, optional
        Says which columns are the query's. The results know it themselves, unless it was lost on their way: a CSV file
        keeps no metadata.

    Returns
    -------
    DataFrame
        The keys, ``window``, ``span``, ``change``, ``revision`` and the query's aggregates.

    Raises
    ------
    DataError
        There is no such query, or the results do not know whose columns are whose.

    Examples
    --------
    With a DataFrame ``df``::

        sw.only(workload.run(df), "per_minute").show()

    What is no DataFrame of results is refused:

    >>> import slicewise as sw
    >>> sw.only([("a", 1)], "per_minute")
    Traceback (most recent call last):
    slicewise.errors.DataError: these are not results of a workload: there is no column 'query'; pass what run() gave
    """
    if is_wide(results):
        raise DataError("these results are wide: a row has the columns of all queries; select those that you need")
    _check_results(results)
    known = columns_of_queries(results)
    if workload is not None:
        known = {q.name: list(q.aggregates) for q in workload.queries}
    if not known:
        raise DataError(
            "these results no longer know which columns belong to which query; name the workload: only(results, "
            "query, workload)"
        )
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
