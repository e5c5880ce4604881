"""The route of slices: the JVM slices rows and computes partials, NumPy composes windows of them."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slicewise.errors import QueryError
from slicewise.kernels import segment_starts
from slicewise.plan.axes import axes_of
from slicewise.plan.panels import Form
from slicewise.plan.plan import ARRIVAL, VALUES, plan_for
from slicewise.plan.routes import ROWS, is_one_tumbling
from slicewise.results import ResultSchema
from slicewise.slicing import Edges, PeriodicWindows
from slicewise.spark.cells import cell_of
from slicewise.spark.composing import Composer
from slicewise.spark.computed_columns import with_computed
from slicewise.spark.known_frame import named, with_added
from slicewise.spark.output import Output, instant
from slicewise.spark.partials import partials_of, whole_window
from slicewise.spark.row_numbering import measure_rows, partials_by_position
from slicewise.spark.session import setting
from slicewise.spark.slice_columns import SliceColumns
from slicewise.spark.source import TIME, Source
from slicewise.windows import Sliding

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
    rows = with_computed(source, source.projected().where(F.col(TIME).isNotNull()), source.columns)
    edges = Edges(PeriodicWindows(plan.windows, workload.keys), plan.gaps)
    cells: list[str] = []
    if plan.windows or plan.gaps:
        rows, cells = with_added(rows, {CELL: cell_of(F.col(TIME), edges)}), [CELL]
    if is_one_tumbling(workload) and not plan.panels:
        label = _label(source, plan.schema)
        functions = [whole_window(a, source, label) for a in workload.queries[0].aggregates.values()]
        if all(f is not None for f in functions):
            return _one_tumbling(source, rows, functions, plan.schema)  # type: ignore[arg-type]
    slice_columns, measured, partials = SliceColumns(), None, partial(partials_of, source=source)
    measures = axes_of(plan.context, source.types)
    if measures:
        numbered, rows, axis_cells, measured = measure_rows(source, rows, plan, measures, slice_columns)
        cells, partials = cells + axis_cells, partial(partials_by_position, source=numbered)
    first = last = CELL
    if measures or plan.gaps or plan.filled:
        # Of a row that comes after too many empty windows, the error tells the time.
        first, last = (slice_columns.column((n,), f(TIME)) for n, f in (("first", F.min), ("last", F.max)))
    readers = tuple(partials(monoid, slice_columns=slice_columns) for monoid in plan.monoids)
    # Measured rows were brought together by key to be sorted, and their slices stay where they are.
    together = measured is not None
    if shuffle == ROWS and source.key_names and not together:
        rows, together = rows.repartition(*source.key_names), True
    sliced = _sliced(rows, source.key_names, cells, slice_columns)
    if not together or _spreads_groups(source):
        sliced = sliced.repartition(*source.key_names) if source.key_names else sliced.repartition(1)
    output = Output(plan.schema, spans=any(m.by_position for m in measures))
    composer = Composer(make_plan, output, readers, first, last, measured)
    return output.to_user(sliced.mapInArrow(composer.__call__, output.spark_schema()))


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


def _sliced(rows: DataFrame, keys: list[str], cells: list[str], slice_columns: SliceColumns) -> DataFrame:
    """One row per key and slice, with the columns that the composer reads."""
    sliced = rows.groupBy(*keys, *cells).agg(*(e.alias(n) for n, e in slice_columns.expressions.items()))
    if slice_columns.after:
        names = [*keys, *cells, *slice_columns.expressions]
        sliced = sliced.select(*names, *(e.alias(n) for n, e in slice_columns.after.items()))
    names = [*keys, *[c for c in cells if c == CELL], *slice_columns.sent]
    return named(sliced.select(*names), names)


def _one_tumbling(source: Source, rows: DataFrame, functions: list[Expression], schema: ResultSchema) -> DataFrame:
    """Each window is one slice, which Spark's own functions compute; there is nothing to compose."""
    query = source.workload.queries[0]
    assert isinstance(query.window, Sliding)
    values = {name: f"v{i}" for i, name in enumerate(query.aggregates)}
    windows = rows.groupBy(*source.key_names, CELL).agg(
        *(f.alias(name) for f, name in zip(functions, values.values(), strict=True))
    )
    end = F.col(CELL) + F.lit(int(query.window.length.size))
    bounds = [instant(F.col(CELL), schema).alias("start"), instant(end, schema).alias("end")]
    windows = windows.select(*source.key_names, F.lit(0).alias("query"), *bounds, *values.values())
    return Output(schema, spans=False).to_user(windows)


def _label(source: Source, schema: ResultSchema) -> Expression:
    """Query, key and window of a group of rows, as :class:`slicewise.results.WindowLabel` names them."""
    (query,) = source.workload.queries
    assert isinstance(query.window, Sliding)
    key_texts = []
    for name, key_column in zip(schema.key_names, source.key_names, strict=True):
        quote = F.lit("'" if pa.types.is_string(source.types[name]) else "")
        value = F.coalesce(F.concat(quote, F.col(key_column).cast("string"), quote), F.lit("None"))
        key_texts.append(F.concat(F.lit(f"{name}="), value))
    key = [F.lit(", key "), F.concat_ws(", ", *key_texts)] if key_texts else []
    # Formatted without the session's time zone.
    utc = dataclasses.replace(schema, time_type=pa.timestamp("us")) if _has_zone(schema) else schema
    zone = F.lit("+00:00" if _has_zone(schema) else "")
    first, last = F.col(CELL), F.col(CELL) + F.lit(int(query.window.length.size))
    bounds = [F.concat(instant(at, utc).cast("string"), zone) for at in (first, last)]
    window = [F.lit(", window ["), bounds[0], F.lit(", "), bounds[1], F.lit(")")]
    return F.concat(F.lit(f"query {query.name!r}"), *key, *window)


def _has_zone(schema: ResultSchema) -> bool:
    return pa.types.is_timestamp(schema.time_type) and schema.time_type.tz is not None
