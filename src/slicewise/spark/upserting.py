"""Upserting: results of a stream into a table of a database, where late rows correct what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slicewise.errors import DataError, QueryError
from slicewise.plan.panels import WIDE_FIXED, wide_columns
from slicewise.results import CHANGES, RESERVED
from slicewise.spark.databases import database_of
from slicewise.spark.result_frames import is_wide
from slicewise.spark.result_tables import BOUNDS, IDENTITY, ResultTable, WideIdentity
from slicewise.spark.source import column
from slicewise.workload import Workload

__all__ = ["Upsert", "upsert"]

#: The local property of a stream's thread that has its id, which is kept in the checkpoint.
_STREAM = "sql.streaming.queryId"


def upsert(workload: Workload, url: str, *, table: str, latest: bool = False) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that keeps a table true: corrected windows are replaced, withdrawn ones deleted.

    Parameters
    ----------
    workload : Workload
        The workload whose results are written.
    url : str
        ``"postgresql://user@host/database"``, with the extra ``postgres``, or ``"sqlite:///results.db"``.
    table : str
        The name of the table, which is made by the first micro-batch; on PostgreSQL also ``"schema.table"``. Queries
        that are added later add their columns.
    latest : bool, optional
        Show one row for each key and query, that of the window with the latest end. ``table`` is a view then, and all
        windows are in a table of its name and ``_history``.

    Returns
    -------
    callable
        What ``foreachBatch`` takes.

    Raises
    ------
    QueryError
        The URL is that of no database we know, or a column has a name that the table needs.
    MissingPackageError
        The URL is PostgreSQL's, and psycopg is not installed.

    Notes
    -----
    The columns are the keys, ``query``, ``window_start``, ``window_end``, ``span_start``, ``span_end``, ``revision``,
    and those of all queries. A row is known as :func:`slicewise.latest` knows it: by the keys, the query,
    and the span or, where there is none, the window; nulls are equal. Of wide results the columns are the keys,
    ``end``, ``revision`` and those of all queries, and a row is known by keys and ``end``. With ``emit="differences"``
    and ``latest=True`` the table shows what holds now for each key.

    A micro-batch is one transaction. The table ``slicewise_batches`` has the last that was written of each stream, so
    that one that Spark repeats changes nothing. The results of a micro-batch go through the driver.

    Examples
    --------
    With a workload and a streaming DataFrame ``df``::

        keep = sw.upsert(workload, "postgresql://localhost/shop", table="sales")
        workload.run(df).writeStream.foreachBatch(keep).option("checkpointLocation", "checkpoint").start()

    Errors show no more of a URL than its beginning, since it may hold a password:

    >>> import slicewise as sw
    >>> sw.upsert(sw.Workload(time="t"), "mysql://user:secret@host/shop", table="sales")
    Traceback (most recent call last):
        ...
    slicewise.errors.QueryError: `url` must begin with postgresql:// or sqlite:///; got 'mysql://...'
    """
    if not isinstance(workload, Workload):
        raise QueryError(f"`workload` must be a Workload; got {type(workload).__name__}", parameter="workload")
    if not isinstance(table, str) or not all(table.split(".")):
        raise QueryError(f"`table` must be the name of a table; got {table!r}", parameter="table")
    values = tuple(dict.fromkeys(name for query in workload.queries for name in query.aggregates))
    for name in (*workload.keys, *values):
        if name in (*BOUNDS, IDENTITY):
            raise QueryError(f"the table has a column {name!r} of its own; give yours another name", column=name)
    database = database_of(url)
    return Upsert(ResultTable(database, table, tuple(workload.keys), bool(latest)), values, workload)


@dataclass(frozen=True)
class Upsert:
    """Writes micro-batches of results, as ``foreachBatch`` hands them over.

    Attributes
    ----------
    table
        Where they go.
    values
        The result columns of all queries in the long shape.
    workload
        Whose results they are.
    """

    table: ResultTable
    values: tuple[str, ...]
    workload: Workload

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write a micro-batch; rows that were given back, late or bad, are no results and are left out."""
        table, fixed, values = self.table, [F.col("query"), *_bounds()], self.values
        if is_wide(batch):
            table, fixed = replace(table, identity=WideIdentity), [F.col("end")]
            values = tuple(wide_columns(self.workload))
        expected = (*table.keys, *(WIDE_FIXED if is_wide(batch) else RESERVED), *values)
        missing = [name for name in expected if name not in batch.columns]
        if missing:
            raise DataError(f"these are not results of this workload: there is no column {missing[0]!r}")
        results = batch.where(F.col("change").isin(*CHANGES)).select(
            *map(column, table.keys), *fixed, "change", "revision", *map(column, values)
        )
        table.write(results.toArrow(), _stream_of(batch.sparkSession), batch_id)


def _bounds() -> list[Column]:
    return [F.col(name.replace("_", ".")).alias(name) for name in BOUNDS]


def _stream_of(session: Any) -> str | None:
    """The id of the stream to which a micro-batch belongs; none on Spark Connect, which does not tell."""
    try:
        context = session.sparkContext
    except Exception:  # Spark Connect, or a platform that shows no context
        return None
    return context.getLocalProperty(_STREAM) or ""
