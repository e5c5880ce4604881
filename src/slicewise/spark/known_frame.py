"""Known frames: DataFrames whose columns are given, for where Spark must not be asked: in functions of a pipeline.

Spark Declarative Pipelines call a function such as ``@dp.table`` before its sources exist, and refuse whatever would
have a DataFrame analysed there: its schema, its columns, whether it is a stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import NullType, StructField, StructType

from slicewise.errors import DataError, QueryError

__all__ = ["KnownFrame", "is_known", "known", "named", "with_added"]


def known(frame: DataFrame, schema: StructType, *, stream: bool) -> DataFrame:
    """A DataFrame for ``run`` whose columns are given, so that Spark is not asked about it.

    In functions of Spark Declarative Pipelines it must not be, and elsewhere it saves the question.

    Parameters
    ----------
    frame
        The DataFrame.
    schema
        Its columns, all of them.
    stream
        Whether it is a stream.

    Returns
    -------
    DataFrame
        What :meth:`slicewise.Workload.run` takes, and nothing else does.

    Examples
    --------
    In a pipeline, ``workload.run(sw.spark.known(spark.readStream.table("clicks"), COLUMNS, stream=True))``. The columns
    are a ``StructType``, since Spark would have to be asked what a text means:

    >>> known(None, "ts TIMESTAMP, v DOUBLE", stream=True)
    Traceback (most recent call last):
        ...
    slicewise.errors.QueryError: `schema` must be a StructType; got str; make one outside of the pipeline's functions:
    StructType.fromDDL("ts TIMESTAMP, v DOUBLE")
    """
    if not isinstance(schema, StructType):
        raise QueryError(
            f"`schema` must be a StructType; got {type(schema).__name__}; make one outside of the pipeline's "
            'functions: StructType.fromDDL("ts TIMESTAMP, v DOUBLE")',
            parameter="schema",
        )
    if not isinstance(frame, DataFrame):
        raise DataError(f"`known` takes a Spark DataFrame; got {type(frame).__name__}")
    return cast(DataFrame, KnownFrame(frame, schema, bool(stream)))


def is_known(frame: Any) -> bool:
    """Whether Spark must not be asked about a DataFrame."""
    return isinstance(frame, KnownFrame)


def named(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The same DataFrame, whose columns have these names.

    A DataFrame of Spark Connect asks the server for them before ``mapInArrow``. There is no public way to tell it; what
    it has been told before it remembers here, and nothing but the names is read.
    """
    remembered = vars(frame)
    if remembered.get("_cached_schema", frame) is None:
        remembered["_cached_schema"] = StructType([StructField(name, NullType()) for name in names])
    return frame


def with_added(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """A DataFrame with more columns, of names that it does not have.

    As ``withColumns``, for which a server of Spark Connect looks up the tables that are read as soon as it is told of
    them. A pipeline then no longer sees that a view reads another of its tables, and fills the view first, with what
    the last run left in that table.
    """
    return frame.select("*", *(added.alias(name) for name, added in columns.items()))


class KnownFrame:
    """A DataFrame that knows its columns, and whether it is a stream, without asking Spark.

    Parameters
    ----------
    frame
        The DataFrame.
    schema
        Its columns.
    stream
        Whether it is a stream.
    """

    def __init__(self, frame: DataFrame, schema: StructType, stream: bool) -> None:
        self._frame = frame
        self.schema = schema
        self.isStreaming = stream

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @property
    def sparkSession(self) -> Any:
        """The session of the DataFrame."""
        return self._frame.sparkSession

    def where(self, condition: Column) -> KnownFrame:
        """Some of its rows, which have the same columns."""
        return KnownFrame(self._frame.where(condition), self.schema, self.isStreaming)

    def select(self, *columns: Column) -> DataFrame:
        """Other columns, of which no more is known than of any DataFrame."""
        return self._frame.select(*columns)
