"""Row order: what puts rows of equal event time in order inside the JVM, as the engine does it in Python.

A DataFrame does not keep the order in which rows arrived, so their values decide. What decides is the same on every
route, in a batch and on a stream: :func:`slicewise.plan.plan.tie_columns` gives the columns, and
:mod:`slicewise.aggregates.ordering` compares values.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from slicewise.spark.source import TIME, Source
from slicewise.spark.types import holds_map, spark_type

__all__ = ["comparable", "in_order", "tie_breakers"]


def in_order(source: Source) -> list[Column]:
    """What puts the rows of a key in order: time, what breaks ties, and the rest, so that nothing is by chance.

    Rows that are equal in all that breaks ties are alike to every query that depends on their order; the rest decides
    in which order floating point is added.
    """
    rest = [name for name in source.workload.inputs if name not in source.ties]
    return [F.col(TIME), *tie_breakers(source), *(_comparable(source, name) for name in rest)]


def tie_breakers(source: Source) -> list[Column]:
    """What puts rows of equal time in order."""
    return [_comparable(source, name) for name in source.ties]


def _comparable(source: Source, name: str) -> Column:
    return comparable(source.internal(name), source.types[name])


def comparable(value: Column, type_: pa.DataType) -> Column:
    """A value as something that Spark compares: maps as their sorted entries, texts byte by byte."""
    if holds_map(type_):
        return _without_maps(value, type_)
    # Whatever its collation: the engine knows none.
    return value.cast(spark_type(type_)) if _holds_text(type_) else value


def _without_maps(value: Column, type_: pa.DataType) -> Column:
    if pa.types.is_map(type_):
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.struct(
                comparable(entry["key"], type_.key_type).alias("key"),
                comparable(entry["value"], type_.item_type).alias("value"),
            ),
        )
        return F.sort_array(entries)
    if pa.types.is_struct(type_):
        fields = [comparable(value[field.name], field.type).alias(field.name) for field in type_]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.transform(value, lambda item: comparable(item, type_.value_type))


def _holds_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or any(_holds_text(type_.field(i).type) for i in range(type_.num_fields))
