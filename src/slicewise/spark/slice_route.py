"""The route of slices: the JVM slices rows and computes partials, NumPy composes windows of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slicewise.errors import QueryError
from slicewise.kernels import segment_starts
from slicewise.plan.axes import Axis, axes_of
from slicewise.plan.panels import Form
from slicewise.plan.plan import ARRIVAL, VALUES, Plan, plan_for
from slicewise.plan.routes import ROWS, has_short_sessions, has_whole_windows, is_sliced_in_numpy
from slicewise.results import ResultSchema
from slicewise.slicing import Edges, PeriodicWindows
from slicewise.spark.cells import cell_of
from slicewise.spark.composing import Composer
from slicewise.spark.computed_columns import with_computed
from slicewise.spark.known_frame import named, with_added
from slicewise.spark.output import Output
from slicewise.spark.partials import partials_of
from slicewise.spark.row_numbering import measure_rows, partials_by_position
from slicewise.spark.session import partitions_to_keep, setting
from slicewise.spark.slice_columns import SliceColumns
from slicewise.spark.slice_sources import RowSlicer, SliceReader, SliceSource
from slicewise.spark.source import TIME, Source, value_name
from slicewise.spark.whole_windows import run_whole_sessions, run_whole_slices

__all__ = ["run_slices"]

CELL = "cell"
#: Where rows lie far apart, in how many ranges windows of schedules are listed, and at least how many edges in each.
MOST_RANGES, EDGES_TOGETHER = 100_000, 64
#: How many starts and ends of a schedule are listed at most.
MOST_LISTED = 20_000_000


def run_slices(source: Source, shuffle: str, store: str | None = None, form: Form | None = None) -> DataFrame:
    """The results of queries that the JVM can slice; ``shuffle`` is what is brought together by key."""
    source = _with_lists(source)
    workload = dataclasses.replace(source.workload, watermark=0, lateness=0, order=())
    # With order columns the JVM sorts rows of equal time, and slices arrive in the order of their rows.
    ties = ARRIVAL if source.workload.order else VALUES
    how: dict[str, Any] = {"ties": ties, "store": store, "form": form}
    make_plan = partial(plan_for, workload, dict(source.types), time_type=source.time_type, **how)
    plan = make_plan()
    rows = with_computed(source, source.projected().where(f"{TIME} IS NOT NULL"), source.columns)
    edges = Edges(PeriodicWindows(plan.windows, workload.keys), plan.gaps)
    cells = {CELL: cell_of(F.col(TIME), edges)} if plan.windows or plan.gaps else {}
    if not plan.panels and (windows := _run_whole(source, rows, cells, shuffle, plan.schema)) is not None:
        return windows
    measures = axes_of(plan.context, source.types)
    output = Output(plan.schema, spans=any(m.by_position for m in measures))
    sent, slices = (
        _rows_by_key(source, rows)
        if shuffle == ROWS and is_sliced_in_numpy(source.workload)
        else _slices_by_key(source, rows, plan, measures, cells, shuffle)
    )
    composer = Composer(make_plan, output, slices, measures)
    return output.to_user(sent.mapInArrow(composer.__call__, output.spark_schema()))


def _rows_by_key(source: Source, rows: DataFrame) -> tuple[DataFrame, SliceSource]:
    """What aggregates read of the rows, brought together by key; and what slices them there."""
    read = dict.fromkeys(name for q in source.workload.queries for a in q.aggregates.values() for name in a.columns)
    columns = {name: (value_name(source.columns.index(name)), source.types[name]) for name in read}
    names = [*source.key_names, TIME, *(name for name, _ in columns.values())]
    sent = rows.select(*names).repartition(*source.key_names)
    return named(sent, names), RowSlicer(columns)


def _slices_by_key(
    source: Source, rows: DataFrame, plan: Plan, measures: Sequence[Axis], cells: dict[str, Expression], shuffle: str
) -> tuple[DataFrame, SliceSource]:
    """The slices of the rows, brought together by key; and what reads them there."""
    # Measured rows are brought together by key to be sorted, and their slices stay where they are.
    together = bool(measures)
    if shuffle == ROWS and source.key_names and not together:
        rows, together = rows.repartition(*source.key_names), True
    rows = with_added(rows, cells)
    slice_columns, measured, partials = SliceColumns(), None, partial(partials_of, source=source)
    places = [*cells]
    if measures:
        numbered, rows, axis_cells, measured = measure_rows(source, rows, plan, measures, slice_columns)
        places, partials = [*cells, *axis_cells], partial(partials_by_position, source=numbered)
    first = last = CELL
    if measures or plan.gaps or plan.filled:
        # Of a row that comes after too many empty windows, the error tells the time.
        first, last = (slice_columns.column((n,), f(TIME)) for n, f in (("first", F.min), ("last", F.max)))
    readers = tuple(partials(monoid, slice_columns=slice_columns) for monoid in plan.monoids)
    sliced = _sliced(rows, source.key_names, places, slice_columns, [CELL] if first == CELL else [])
    if not together or _spreads_groups(source):
        sliced = _by_key(source, sliced)
    return sliced, SliceReader(readers, first, last, measured)


def _by_key(source: Source, sliced: DataFrame) -> DataFrame:
    """Slices brought together by key. They are few bytes, and windows of them many results: all cores compose."""
    if not source.key_names:
        return sliced.repartition(1)
    partitions = partitions_to_keep(source.frame.sparkSession)
    if partitions is None:
        return sliced.repartition(*source.key_names)
    return sliced.repartition(partitions, *source.key_names)


def _run_whole(
    source: Source, rows: DataFrame, cells: dict[str, Expression], shuffle: str, schema: ResultSchema
) -> DataFrame | None:
    """The results where Spark's own functions give them, and nothing is composed; None elsewhere."""
    if has_whole_windows(source.workload):
        return run_whole_slices(source, rows, cells[CELL], schema)
    if shuffle == ROWS and has_short_sessions(source.workload):
        return run_whole_sessions(source, rows, schema)
    return None


def _with_lists(source: Source) -> Source:
    """The source with windows of schedules listed for the range of its rows, which takes a pass over their times."""
    queries = source.workload.queries
    listings = [q.window.listing for q in queries if q.window.listing is not None]
    if all(listing.is_complete for listing in listings):
        return source
    (first, last) = source.projected().agg(F.min(TIME), F.max(TIME)).first() or (None, None)
    low, high = (0, 0) if first is None or last is None else (int(first), int(last))
    ranges = [(low, high)]
    far = [listing for listing in listings if listing.is_far(low, high)]
    if far:
        ranges = _ranges_of_rows(source, low, high, min(listing.edges_apart(low) or 1 for listing in far))
    listed = tuple(dataclasses.replace(q, window=q.window.listed_in(ranges)) for q in queries)
    return dataclasses.replace(source, workload=source.workload.with_queries(listed))


def _ranges_of_rows(source: Source, low: int, high: int, apart: int) -> list[tuple[int, int]]:
    """Where rows lie between two times, as few ranges: a row far from the others must not list what is in between."""
    near = EDGES_TOGETHER * apart
    bucket = F.call_function("div", F.col(TIME) - F.lit(low), F.lit(max((high - low) // MOST_RANGES, near)))
    rows = source.projected().where(F.col(TIME).isNotNull()).groupBy(bucket.alias(CELL))
    table = rows.agg(F.min(TIME).alias("first"), F.max(TIME).alias("last")).sort("first").toArrow()
    first, last = (table.column(name).to_numpy() for name in ("first", "last"))
    starts = segment_starts(first[1:] - last[:-1] > near)
    ends = np.append(starts[1:], len(first)) - 1
    listed = int((last[ends] - first[starts]).sum()) // apart
    if listed > MOST_LISTED:
        raise QueryError(
            f"rows from {low} to {high} lie among about {listed} starts and ends of windows of a schedule, and no more "
            f"than {MOST_LISTED} are listed; leave out rows whose time is wrong, or take longer windows"
        )
    return list(zip(first[starts].tolist(), last[ends].tolist(), strict=True))


def _spreads_groups(source: Source) -> bool:
    """Whether the session makes every aggregation shuffle unless rows are partitioned by all of its columns."""
    required = setting(source.frame.sparkSession, "spark.sql.requireAllClusterKeysForDistribution", "false")
    return required.lower() == "true"


def _sliced(
    rows: DataFrame, keys: list[str], cells: list[str], slice_columns: SliceColumns, sent: list[str]
) -> DataFrame:
    """One row per key and slice, with the columns that the composer reads; ``sent`` are those of the cells."""
    sliced = rows.groupBy(*keys, *cells).agg(*(e.alias(n) for n, e in slice_columns.expressions.items()))
    if slice_columns.after:
        names = [*keys, *cells, *slice_columns.expressions]
        sliced = sliced.select(*names, *(e.alias(n) for n, e in slice_columns.after.items()))
    names = [*keys, *sent, *slice_columns.sent]
    return named(sliced.select(*names), names)
