"""Computed columns on Spark: expressions inside the JVM, and rows that nobody means left out before anything else.

In a batch the JVM computes a column where its answer is Python's, to the last bit; else Python does, on the way. On a
stream Python has the rows anyway, and computes where they are packed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slicewise.conditions.expression import Expression, derive
from slicewise.errors import ExpressionError, QueryError
from slicewise.plan.condition_sql import UntranslatableError, text_literal
from slicewise.plan.expression_sql import expression_sql
from slicewise.spark.session import setting
from slicewise.spark.source import TIME, Source
from slicewise.spark.types import read, spark_type
from slicewise.spark.versions import arrow_function, has_arrow_functions
from slicewise.workload import without_punctuation, without_where

__all__ = ["FilteredSource", "is_data", "is_meant", "key_texts", "with_computed", "with_data", "with_meant"]


def with_meant(source: Source) -> Source:
    """The source of a batch without the rows that its workload does not mean."""
    if source.workload.where is None:
        return source
    frame = source.frame.where(is_meant(source))
    return dataclasses.replace(source, workload=without_where(source.workload), frame=frame)


def is_meant(source: Source) -> Column:
    """Whether the workload means a row of the source: true, or else false or null."""
    where = source.workload.where
    if where is None:
        return F.lit(True)
    return _asked(where, source)


def with_data(source: Source) -> Source:
    """The source of a batch without the rows that are no data, for queries that do not see them."""
    if source.workload.punctuation is None:
        return source
    frame = source.frame.where(is_data(source))
    return dataclasses.replace(source, workload=without_punctuation(source.workload), frame=frame)


def is_data(source: Source) -> Column:
    """Whether a row of the source is data, and no punctuation."""
    punctuation = source.workload.punctuation
    return F.lit(True) if punctuation is None else ~F.coalesce(_asked(punctuation, source), F.lit(False))


def _asked(condition: Expression, source: Source) -> Column:
    """Whether the rows that came meet a condition."""
    return _computed(condition, source, source.given, text_literal("a record"))


def with_computed(source: Source, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Projected rows with the computed ones among these columns."""
    computed = [c for c in columns if isinstance(c, Expression)]
    if not computed:
        return rows
    label = _row_label(source)
    added = [_computed(c, source, source.internal_sql, label).alias(source.internal_sql(c)) for c in computed]
    return rows.select("*", *added)


def _computed(
    expression: Expression,
    source: Source,
    named: Callable[[str], str],
    label: str,
) -> Column:
    """A computed column of some rows: as an expression of the JVM if that is the same, else through Python."""
    try:
        text = expression_sql(expression, source.types, named, label)
    except UntranslatableError:
        return _in_python(expression, source, named)
    return F.expr(text) if _has_types_of_spark(expression, text, source) else _in_python(expression, source, named)


def _has_types_of_spark(expression: Expression, text: str, source: Source) -> bool:
    """Whether the session gives decimals the digits that Spark gives them unless it is told otherwise."""
    if "DECIMAL" not in text and not any(pa.types.is_decimal(source.types[name]) for name in expression.names):
        return True
    return setting(source.frame.sparkSession, "spark.sql.decimalOperations.allowPrecisionLoss", "true") == "true"


def _type_of(expression: Expression, source: Source) -> pa.DataType:
    return source.types[expression] if expression in source.types else pa.bool_()


def _in_python(expression: Expression, source: Source, named: Callable[[str], str]) -> Column:
    names, result = expression.names, _type_of(expression, source)
    types = [source.types[name] for name in names]

    def compute(*arrays: pa.Array) -> pa.Array:
        known = {name: read(array, type_) for name, array, type_ in zip(names, arrays, types, strict=False)}
        derived, failures = derive([expression], known, len(arrays[0]))
        if failures:
            row = min(failures)
            raise ExpressionError(*failures[row], [row], left_out=False)
        return derived[expression].to_arrow()

    inputs = [F.expr(named(name)) for name in names] or [F.lit(0)]
    if not has_arrow_functions():
        raise QueryError(
            f"{expression} is computed in Python, for which a batch needs Spark 4.1; make it a column of its own before"
        )
    return arrow_function(compute, spark_type(result))(*inputs)


def _row_label(source: Source) -> str:
    """A text that says which row it is, in SQL, as :class:`slicewise.results.RowLabel` does."""
    time = f"CAST({TIME} AS STRING)"
    if pa.types.is_timestamp(source.time_type) and source.workload.unit is None:
        # Written without the session's time zone.
        clock = f"TIMESTAMP_NTZ'1970-01-01' + make_dt_interval(0, 0, 0, {TIME} / 1000000)"
        time = f"concat(CAST({clock} AS STRING), {text_literal('+00:00' if source.time_type.tz else '')})"
    return f"concat({', '.join([text_literal('the record of time '), time, *key_texts(source)])})"


def key_texts(source: Source) -> list[str]:
    """Texts that end to end say which key it is, in SQL, for labels of rows and of windows."""
    texts = []
    for i, (name, key) in enumerate(zip(source.workload.keys, source.key_names, strict=True)):
        quote = text_literal("'" if pa.types.is_string(source.types[name]) else "")
        shown = f"concat({quote}, CAST({key} AS STRING), {quote})"
        texts += [text_literal(f"{', ' if i else ', key '}{name}="), f"coalesce({shown}, 'None')"]
    return texts


class FilteredSource(Source):
    """A source for an aggregate that counts some rows only: in all others, its columns are null."""

    def __init__(self, source: Source, condition: Expression) -> None:
        super().__init__(**{field.name: getattr(source, field.name) for field in dataclasses.fields(source)})
        self.__dict__.update(around=source, counts=source.internal_sql(condition))

    def internal_sql(self, name: str) -> str:
        return self.selected_sql(self.__dict__["around"].internal_sql(name))

    def selected(self, value: Column) -> Column:
        return F.when(F.expr(self.__dict__["counts"]), value)

    def selected_sql(self, value: str) -> str:
        return f"CASE WHEN {self.__dict__['counts']} THEN {value} END"
