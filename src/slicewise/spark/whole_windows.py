"""Whole windows: those of one query, where each is one slice, or a short session. The JVM computes them alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, GroupedData, Window
from pyspark.sql import functions as F

from slicewise.plan.condition_sql import text_literal
from slicewise.results import ResultSchema
from slicewise.spark.cells import Buckets, constants, spacing
from slicewise.spark.computed_columns import key_texts
from slicewise.spark.known_frame import with_added
from slicewise.spark.output import Output, instant
from slicewise.spark.partials import whole_window
from slicewise.spark.source import TIME, Source
from slicewise.spark.totals import WholeWindow
from slicewise.times import INFINITY
from slicewise.windows.listings import EdgeTable

__all__ = ["run_whole_sessions", "run_whole_slices"]

#: Whether a row joins the session of the row before, when its window starts, and when that ends.
JOINS, START, END = "joins", "window_start", "window_end"
#: Where a row lies among the edges of a table.
BUCKET = "bucket"


class Placed(NamedTuple):
    """Rows with the window that they lie in.

    Attributes
    ----------
    bounds
        The columns that tell windows apart: the start, and where the end does not follow from it, the end.
    end
        The end of a window in SQL, from these columns.
    held
        Whether there is a window at all, from these columns; None where there always is.
    """

    rows: DataFrame
    bounds: tuple[str, ...]
    end: str
    held: Expression | None = None


def run_whole_slices(source: Source, rows: DataFrame, cell: Expression, schema: ResultSchema) -> DataFrame | None:
    """The results of a query whose windows are slices, ``cell`` the start of a row's; None where they are composed."""
    (query,) = source.workload.queries
    table = query.window.listing
    if isinstance(table, EdgeTable):
        placed = _in_table(rows, cell, table)
    else:
        family = query.window.family
        assert family is not None
        placed = Placed(with_added(rows, {START: cell}), (START,), f"{START} + {family.length}")
    values = None if placed is None else _values(source, schema, placed.end)
    if placed is None or values is None:
        return None
    grouped = placed.rows.groupBy(*source.key_names, *placed.bounds)
    windows = grouped.agg(*_aggregated(values)) if placed.held is None else _held(grouped, placed.held, values)
    return _to_user(windows, source, schema, placed.end, values)


def run_whole_sessions(source: Source, rows: DataFrame, schema: ResultSchema) -> DataFrame | None:
    """The results of a query of sessions, which rows in order show; None where slices must be composed."""
    (query,) = source.workload.queries
    gap = query.window.session_gap
    assert gap is not None
    values = _values(source, schema, END)
    if values is None:
        return None
    in_order = Window.partitionBy(*source.key_names).orderBy(TIME)
    apart = F.col(TIME) - F.lag(TIME).over(in_order) <= gap
    rows = with_added(rows, {JOINS: F.coalesce(apart, F.lit(False))})
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rows = with_added(rows, {START: F.max(F.when(~F.col(JOINS), F.col(TIME))).over(so_far)})
    sessions = rows.groupBy(*source.key_names, START)
    windows = sessions.agg(F.expr(f"max({TIME}) + {gap} AS {END}"), *_aggregated(values))
    return _to_user(windows, source, schema, END, values)


def _values(source: Source, schema: ResultSchema, end: str) -> list[WholeWindow] | None:
    """What Spark computes for a whole window that ends there; None where it does not have all it takes."""
    (query,) = source.workload.queries
    label = _label(query.name, source, schema, end)
    asked = enumerate(query.aggregates.values())
    values = [whole_window(aggregate, source, f"v{i}", label) for i, aggregate in asked]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _aggregated(values: Iterable[WholeWindow]) -> list[Expression]:
    columns = [column for value in values for column in value.aggregated.items()]
    return [F.expr(f"{c} AS {name}") if isinstance(c, str) else c.alias(name) for name, c in columns]


def _to_user(
    windows: DataFrame, source: Source, schema: ResultSchema, end: str, values: Iterable[WholeWindow]
) -> DataFrame:
    bounds = f"{instant(START, schema)} AS `start`", f"{instant(end, schema)} AS `end`"
    shown = [f"{value.value} AS v{i}" for i, value in enumerate(values)]
    windows = windows.selectExpr(*source.key_names, "0 AS query", *bounds, *shown)
    return Output(schema, spans=False).to_user(windows)


def _held(grouped: GroupedData, held: Expression, values: Iterable[WholeWindow]) -> DataFrame:
    """The groups that a window holds, before anything is asked of them that might fail.

    That is an aggregate, too: Spark would put a condition on the cell before the grouping, and ask every row.
    """
    return grouped.agg(F.when(F.count(F.lit(1)) > 0, held).alias("held"), *_aggregated(values)).where("held")


def _in_table(rows: DataFrame, cell: Expression, table: EdgeTable) -> Placed | None:
    """Rows with the window of a table that they lie in; None where that is not found in the JVM.

    Numbers of a table take Spark long to plan, many times more than to look up. So each array of them stands in the
    plan once or twice: rows are grouped by both bounds of their window, and no end is looked up from its start.
    """
    start, step = F.col(START), spacing(table.edges)
    if step is not None and len(table.edges) == len(table.list.start) + 1:
        held = start.between(int(table.edges[0]), int(table.edges[-1]) - 1)
        return Placed(with_added(rows, {START: cell}), (START,), f"{START} + {step}", held)
    buckets = Buckets.among(table.edges)
    if buckets is None:
        return None
    # What no window holds is one group, wherever it lies.
    inside = np.isin(buckets.start, table.list.start)
    listed = {START: np.where(inside, buckets.start, -INFINITY), END: np.where(inside, buckets.end, -INFINITY)}
    # One after another: what is read twice is computed once.
    rows = with_added(rows, {BUCKET: buckets.holding(F.col(TIME))})
    bounds = {name: F.get(constants(at), F.col(BUCKET)) for name, at in listed.items()}
    return Placed(with_added(rows, bounds), (START, END), END, start > -INFINITY)


def _label(name: str, source: Source, schema: ResultSchema, end: str) -> str:
    """Query, key and window of a group of rows in SQL, as :class:`slicewise.results.WindowLabel` names them."""
    # Formatted without the session's time zone.
    utc = dataclasses.replace(schema, time_type=pa.timestamp("us")) if _has_zone(schema) else schema
    bounds = [f"CAST({instant(at, utc)} AS STRING)" for at in (START, end)]
    zone = "+00:00" if _has_zone(schema) else ""
    window = ["', window ['", bounds[0], text_literal(f"{zone}, "), bounds[1], text_literal(f"{zone})")]
    return f"concat({', '.join([text_literal(f'query {name!r}'), *key_texts(source), *window])})"


def _has_zone(schema: ResultSchema) -> bool:
    return pa.types.is_timestamp(schema.time_type) and schema.time_type.tz is not None
