"""What plain Spark answers: its own windows, sessions and OVER frames in the shape of our results, to compare with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

import slicewise as sw
from tests.arrow_rows import rows_with_maps
from tests.spark.running import same

Both = tuple[sw.windows.Window, Column]


def tumbling(length: str, offset: str | None = None) -> Both:
    """Our window beside Spark's."""
    ours = sw.tumbling(length) if offset is None else sw.tumbling(length, offset=offset)
    return ours, F.window("ts", length, startTime=offset)


def sliding(length: str, every: str, offset: str | None = None) -> Both:
    """Our window beside Spark's."""
    ours = sw.sliding(length, every=every) if offset is None else sw.sliding(length, every=every, offset=offset)
    return ours, F.window("ts", length, every, offset)


def session(gap: str) -> Both:
    """Our window beside Spark's."""
    return sw.session(gap), F.session_window("ts", gap)


def grouped(
    frame: DataFrame, keys: Iterable[str], windows: Mapping[str, Column], functions: Mapping[str, Column]
) -> DataFrame:
    """``groupBy(keys, window)`` for each of the windows, one below the other."""
    keys = list(keys)
    answers = []
    for name, window in windows.items():
        found = frame.groupBy(*keys, window.alias("window")).agg(*(f.alias(n) for n, f in functions.items()))
        answers.append(found.select(*keys, F.lit(name).alias("query"), "window", *functions))
    return reduce(DataFrame.unionByName, answers)


def over_rows(
    frame: DataFrame, keys: list[str], order: list[str], size: int, every: int, functions: Mapping[str, Column]
) -> DataFrame:
    """Windows of rows as an OVER frame: the rows at which a full window ends."""
    placed = Window.partitionBy(*keys).orderBy(*order)
    framed = placed.rowsBetween(-(size - 1), 0)
    place = F.row_number().over(placed).alias("place")
    bounds = F.struct(F.min("ts").over(framed).alias("start"), F.max("ts").over(framed).alias("end")).alias("window")
    found = frame.select(*keys, place, bounds, *(f.over(framed).alias(n) for n, f in functions.items()))
    found = found.where((F.col("place") >= size) & ((F.col("place") - size) % every == 0))
    start = (F.col("place") - size).cast("double")
    return found.withColumn("span", F.struct(start.alias("start"), (start + size).alias("end"))).drop("place")


def assert_equal(found: DataFrame, expected: DataFrame, place: Iterable[str], *, exact: bool = False) -> int:
    """Two DataFrames hold the same rows; ``place`` are the columns that tell one row from another.

    All columns of ``expected`` are compared, their types too. How many rows there were is given back.
    """
    place = list(place)
    for field in expected.schema:
        assert found.schema[field.name].dataType.simpleString() == field.dataType.simpleString(), field.name
    mine, theirs = (_by_place(frame.select(*map(_quoted, expected.columns)), place) for frame in (found, expected))
    missing, extra = (sorted(a.keys() - b.keys(), key=repr) for a, b in ((theirs, mine), (mine, theirs)))
    assert not missing, f"{len(missing)} missing, {len(extra)} too many: {missing[:3]} {extra[:3]}"
    assert not extra, f"{len(extra)} too many: {extra[:3]}"
    agree = _is if exact else same
    wrong = [
        (at, name, row[name], theirs[at][name])
        for at, row in mine.items()
        for name in row
        if not agree(row[name], theirs[at][name])
    ]
    assert not wrong, f"{len(wrong)} values differ, in {sorted({w[1] for w in wrong})}: {wrong[:3]}"
    return len(mine)


def _is(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is, a, b))
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _quoted(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _by_place(frame: DataFrame, place: list[str]) -> dict[str, dict[str, Any]]:
    rows = plain_rows(frame.toArrow())
    found = {repr([row[name] for name in place]): row for row in rows}
    assert len(found) == len(rows), "two rows for one window"
    return found


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, instants as microseconds: a datetime of one zone does not know its own second hour."""
    columns = {name: _without_zones(table.column(i).combine_chunks()) for i, name in enumerate(table.column_names)}
    return rows_with_maps(pa.table(columns))


def _without_zones(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    if pa.types.is_struct(array.type):
        fields = [_without_zones(f) for f in array.flatten()]
        return pa.StructArray.from_arrays(fields, names=[f.name for f in array.type], mask=array.is_null())
    return array
