"""Output: results on their way from Python into the JVM, and the columns that the user sees.

Python sends what it computes (keys, the query's number, bounds, values); names, marks and structs that are the same
for every row are added by the JVM, where a constant costs nothing and a column that is not selected is never computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slicewise.amounts import UNITS
from slicewise.errors import AggregateError
from slicewise.plan.condition_sql import text_literal
from slicewise.results import CHANGES, OPEN_END, Block, ResultSchema, value_column
from slicewise.spark.source import key_name, sql_name
from slicewise.spark.types import spark_type

__all__ = ["LATE", "REASON", "Output", "check_known_types", "columns_of_queries", "describe", "instant", "micros"]

NO_SPAN = "CAST(NULL AS STRUCT<`start`: DOUBLE, `end`: DOUBLE>)"

#: The columns of rows that are given back: the row, and why it is. ``LATE`` is also the ``change`` of such a row, and
#: ``LATE_CHANGE`` the number that Python sends for it.
LATE, REASON = "late", "reason"
LATE_CHANGE = len(CHANGES)

DAY = 86_400_000_000

#: The metadata of the ``query`` column that holds the result columns of each query.
METADATA = "slicewise.queries"


def describe(schema: ResultSchema) -> dict[str, dict[str, list[str]]]:
    """The metadata of the ``query`` column, which Parquet and Delta keep."""
    return {METADATA: {name: list(columns) for name, columns in schema.queries}}


def columns_of_queries(results: DataFrame) -> dict[str, list[str]]:
    """The result columns of each query; empty where the metadata was lost."""
    columns: dict[str, list[str]] = results.schema["query"].metadata.get(METADATA, {})
    return columns


def check_known_types(schema: ResultSchema) -> None:
    """Spark must know the types of all columns in advance."""
    for name, type_ in schema.column_types.items():
        if pa.types.is_null(type_):
            raise AggregateError(
                f"Spark must know the type of {name!r} in advance; declare it: sw.aggregate(..., result='double'), "
                "or cast the column of nulls that it reads"
            )


@dataclass(frozen=True)
class Output:
    """How results of one schema travel.

    Attributes
    ----------
    spans
        Whether any window is on a measure other than time.
    marks
        Whether results may be corrected: in batch every row is an insert, and needs no mark.
    late
        The type of input rows, where late and bad ones are given back among the results.
    """

    schema: ResultSchema
    spans: bool
    marks: bool = False
    late: pa.DataType | None = None

    def arrow_schema(self) -> pa.Schema:
        """The columns that Python sends."""
        schema = self.schema
        keys = [(key_name(i), type_) for i, type_ in enumerate(schema.key_types)]
        bounds = [("query", pa.int32()), ("start", schema.time_type), ("end", schema.time_type)]
        bounds = bounds[2:] if schema.wide else bounds
        spans = [("span_start", pa.float64()), ("span_end", pa.float64())] if self.spans else []
        marks = [("change", pa.int8()), ("revision", pa.int32())] if self.marks else []
        values = [(f"v{i}", type_) for i, type_ in enumerate(schema.column_types.values())]
        late = [(LATE, self.late), (REASON, pa.string())] if self.late is not None else []
        return pa.schema([*keys, *bounds, *spans, *marks, *values, *late])

    def spark_schema(self) -> T.StructType:
        """The same, in Spark's types."""
        return T.StructType([T.StructField(f.name, spark_type(f.type)) for f in self.arrow_schema()])

    def batch(self, block: Block, keys: Sequence[pa.Array]) -> pa.RecordBatch:
        """A block of results as a record batch, with these key columns."""
        schema = self.schema
        first, last = (block.start, block.end) if block.times is None else block.times
        arrays = [_as(key, type_) for key, type_ in zip(keys, schema.key_types, strict=True)]
        if schema.wide:
            arrays.append(schema.instants(last))
        else:
            arrays += [pa.array(block.query.astype(np.int32)), *(schema.instants(b) for b in (first, last))]
        if self.spans:
            arrays += [_span(b, block) for b in (block.start, block.end)]
        if self.marks:
            arrays += [pa.array(block.change.astype(np.int8)), pa.array(block.revision.astype(np.int32))]
        arrays += [value_column(block, schema, name, type_) for name, type_ in schema.column_types.items()]
        if self.late is not None:
            arrays += [pa.nulls(len(block), self.late), pa.nulls(len(block), pa.string())]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema())

    def returned(self, rows: pa.Array, keys: Sequence[pa.Array], reasons: pa.Array) -> pa.RecordBatch:
        """Rows that are given back, late or bad, as a record batch among the results."""
        columns = {key_name(i): key for i, key in enumerate(keys)}
        columns |= {"change": pa.array(np.full(len(rows), LATE_CHANGE, np.int8)), LATE: rows, REASON: reasons}
        schema = self.arrow_schema()
        arrays = [_as(columns[f.name], f.type) if f.name in columns else pa.nulls(len(rows), f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_user(self, sent: DataFrame) -> DataFrame:
        """The result columns of the user, from what Python sent."""
        schema = self.schema
        keys = [f"{key_name(i)} AS {sql_name(name)}" for i, name in enumerate(schema.key_names)]
        marks = [f"{_chosen([*CHANGES, LATE], 'change')} AS change", "revision"]
        values = [f"v{i} AS {sql_name(name)}" for i, name in enumerate(schema.column_types)]
        behind = [
            *(marks if self.marks else ["'insert' AS change", "0 AS revision"]),
            *values,
            *([LATE, REASON] if self.late is not None else []),
        ]
        if schema.wide:
            return sent.select(*map(F.expr, [*keys, "`end`", *behind]))
        query = F.expr(_named([name for name, _ in schema.queries])).alias("query", metadata=describe(schema))
        return sent.select(*map(F.expr, keys), query, *map(F.expr, [*self._bounds(), *behind]))

    def _bounds(self) -> list[str]:
        """Window and span, in SQL."""
        span, window = NO_SPAN, "struct(`start`, `end`)"
        if self.spans:
            both = "named_struct('start', span_start, 'end', span_end)"
            span = f"CASE WHEN span_start IS NOT NULL THEN {both} ELSE {NO_SPAN} END"
        if self.late is not None:
            window = f"CASE WHEN `start` IS NOT NULL THEN {window} END"
        return [f"{window} AS `window`", f"{span} AS span"]


def instant(at: str, schema: ResultSchema) -> str:
    """An event time, from its integer to the type that the user sees; :meth:`ResultSchema.instants` in SQL.

    As text, as all that is long: every function that is called takes several round trips to the JVM.
    """
    if not pa.types.is_timestamp(schema.time_type):
        return at
    us = micros(at, schema.unit)
    if schema.time_type.tz:
        return f"timestamp_micros({us})"
    # Days apart: the seconds of an interval end after 31 700 years, before event times do.
    rest = f"pmod({us}, {DAY})"
    days = f"CAST(round((({us}) - {rest}) / {DAY}) AS INT)"
    seconds = f"CAST(CAST({rest} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
    return f"(TIMESTAMP_NTZ '1970-01-01' + make_dt_interval({days}, 0, 0, {seconds}))"


def micros(at: str, unit: str) -> str:
    """An event time in whole microseconds; null where 64 bits do not hold it, as a watermark may be far away."""
    multiplier, divisor = UNITS["microseconds"] // UNITS[unit], UNITS[unit] // UNITS["microseconds"]
    if divisor <= 1:
        return f"try_multiply({at}, {multiplier})" if multiplier > 1 else at
    # As a decimal: a double would round numbers as large as these.
    return f"CAST(CAST(({at}) - pmod({at}, {divisor}) AS DECIMAL(20, 0)) / {divisor} AS BIGINT)"


def _named(names: list[str]) -> str:
    one = f"CASE WHEN query IS NOT NULL THEN {text_literal(names[0])} END"
    return one if len(names) == 1 else _chosen(names, "query")


def _chosen(words: list[str], number: str) -> str:
    """The word whose number stands in a column, in SQL."""
    return f"get(array({', '.join(map(text_literal, words))}), CAST({number} AS INT))"


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def _span(bounds: np.ndarray, block: Block) -> pa.Array:
    if block.times is None:
        return pa.nulls(len(bounds), pa.float64())
    return pa.array(bounds, mask=bounds == OPEN_END).cast(pa.float64())
